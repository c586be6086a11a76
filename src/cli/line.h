/* Lines from a person at a terminal, while something else has things to show.
 *
 * On a terminal that can move its cursor the line is edited (libedit: history,
 * completion, Emacs keys); what is to be shown appears above it and the line
 * stays as it was. On one that cannot, or where AVA_PLAIN is set (screen
 * readers), lines are read as the terminal gives them; what is shown stands on
 * lines of its own and the prompt comes again behind it. */
#ifndef CLI_LINE_H
#define CLI_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ava_error;
struct line;

#define LINE_TYPED_MAX 16384 /* bytes that can be typed; pastes have a bound of their own */
#define LINE_TEXT_MAX  ((size_t)1 << 20)

struct line_hooks {
	int (*wake_fd)(void *user); /* readable: ask `wants` */
	/* Is there something to show? Called also when `next_ms` has come. */
	bool (*wants)(void *user);
	/* Show it on stdout, in whole lines. */
	void (*show)(void *user);
	/* Text that is not done yet (*borrowed*): its end is kept in sight below what
	 * was shown, and goes when more is shown. NULL: none, or not here. */
	const char *(*tail)(size_t *len, void *user);
	/* When to ask again at the latest, clock_mono_ms; -1: when wake_fd says so. */
	int64_t (*next_ms)(void *user);
	/* Ctrl-C at an empty line; show what it did on stdout, in whole lines. */
	void (*interrupt)(void *user);
	/* Words that may stand for `word` (copied into `out`, at most `max`);
	 * first: it begins the line. Returns their number. */
	size_t (*complete)(const char *word, bool first, const char **out, size_t max, void *user);
	void *user;
};

/* stdin and stdout are terminals. `hooks` is *copied*. */
int line_open(struct line **l, const struct line_hooks *hooks, struct ava_error *err);
void line_close(struct line *l); /* NULL is fine */

/* The next line without its newline (*borrowed until the next call*; it may
 * hold newlines when it was pasted): 1. The end of input: 0. AVA_ECANCELED: the
 * program was asked to end. */
int line_read(struct line *l, const char *prompt, const char **text, struct ava_error *err);

/* The cursor cannot be moved here. */
bool line_is_plain(void);

#endif

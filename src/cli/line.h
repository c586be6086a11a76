/* Lines from a person at a terminal, while something else has things to show.
 *
 * On a terminal that can move its cursor the line is edited (libedit: history,
 * completion, Emacs keys); output appears above it and the line
 * stays as it was. On other terminals, or with AVA_PLAIN (screen readers), lines
 * are read as the terminal gives them; output stands on lines of its own and the
 * prompt comes again behind it. */
#ifndef CLI_LINE_H
#define CLI_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct ava_error;
struct chat;
struct line;

#define LINE_TYPED_MAX 16384 /* bytes that can be typed; pastes have a bound of their own */
#define LINE_TEXT_MAX  ((size_t)1 << 20)

/* Needs terminals at stdin and stdout. `chat` is *borrowed* for its output. */
int line_open(struct line **l, struct chat *chat, struct ava_error *err);
void line_close(struct line *l); /* NULL is fine */

/* The next line without its newline (*borrowed until the next call*; it may
 * hold newlines when it was pasted): 1. The end of input: 0. AVA_ECANCELED: the
 * program was asked to end. */
int line_read(struct line *l, const char *prompt, const char **text, struct ava_error *err);

/* Can the cursor not be moved on this terminal? */
bool line_is_plain(void);

#endif

/* What the daemon does, on one page: its slots, today's spend, each live run
 * on a line, proposals that wait for an answer, conversations at work. */
#ifndef CLI_OVERVIEW_H
#define CLI_OVERVIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct client;
struct ava_error;

struct overview {
	json_t *health;    /* owned, as all of these */
	json_t *runs;      /* array; the live ones */
	json_t *proposals; /* array; the open ones */
	json_t *sessions;  /* array; the newest */
};

/* Ask for all of it. On error `o` is empty. */
int overview_load(struct overview *o, struct client *c, struct ava_error *err);
void overview_free(struct overview *o);

/* One object of the four: new reference, NULL without memory. */
json_t *overview_json(const struct overview *o);

/* A page that is `columns` wide (0: no limit) and `rows` high (0: no limit; what
 * has no room is counted). Every line is followed by `end`. */
struct page {
	FILE *f;
	size_t columns, rows;
	const char *end; /* "\n", or what clears the rest of a row before it */
	size_t used;     /* rows so far */
};

void overview_print(const struct overview *o, struct page *p);
/* All that is known of one run, a status object. */
void overview_run(const json_t *run, struct page *p);
/* One line of the page, cut to its width; nothing when it is full. */
void page_line(struct page *p, const char *text);

/* "WebCrawler running (45s, 12k tokens, $0.02): Reading …" of a status object,
 * shorter where there are less than 60 columns. */
char *overview_words(const json_t *run, size_t columns); /* malloc'd; NULL: no memory */

/* Looking on: something is asked of the daemon and shown, anew whenever an
 * event comes, until it has ended or the person has had enough. On a terminal
 * it is one screen, elsewhere what `lines` prints. */

struct watch {
	/* Ask; *lsn becomes the cursor behind which events are news. */
	int (*load)(struct client *c, uint64_t *lsn, void *user, struct ava_error *err);
	void (*draw)(struct page *p, void *user);
	void (*lines)(void *user); /* to stdout */
	bool (*ended)(void *user); /* there is nothing more to come */
	bool plain;                /* lines also on a terminal */
	void *user;
};

/* CLI_DONE at the end or after Ctrl-C; CLI_FAILED and the like when the daemon
 * refuses. Another fatal signal ends the program as it would have, with the
 * terminal as it was. *c may be replaced; NULL when none is left. */
int watch_run(const struct watch *w, struct client **c);

#endif

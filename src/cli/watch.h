/* Looking on: something is asked of the daemon and shown, anew whenever an
 * event comes, until it has ended or the person has had enough. On a terminal
 * it is one screen, elsewhere what `lines` prints. */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/overview.h"

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

/* The output of a program, as a reader of its terminal sees it: of a line that is written over
 * only the last state, no colours and titles, and a count in place of binary bytes. Input comes
 * in pieces cut anywhere. */
#ifndef CODEC_SCREEN_H
#define CODEC_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define SCREEN_HELD 65536 /* longest line that can be written over, bytes */

struct screen {
	/* Called with text to show. `stays`: whole lines; else one line that will be replaced. */
	void (*shown)(const char *text, size_t len, bool stays, void *user);
	void *user;
	/* Private: */
	struct buf held;
	size_t start;    /* where the present line begins in `held` */
	size_t raw, bad; /* bytes of the present line as received, and those that are no text */
	uint64_t binary; /* bytes of binary lines before `held` */
	int state;
	bool returned; /* the present line ends in \r so far */
	int need;      /* bytes that a character begun still misses */
	char last;
};

void screen_init(struct screen *s,
		 void (*shown)(const char *text, size_t len, bool stays, void *user), void *user);
void screen_feed(struct screen *s, const char *bytes, size_t len);
/* The output ended: show and free the held text. */
void screen_fini(struct screen *s);

#endif

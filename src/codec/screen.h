/* The output of a program, as one who looks at its terminal would read it: of a line that is
 * written over and over what stands there at last, no colours and titles, and bytes that are no
 * text as how many they are. It comes in pieces cut anywhere. */
#ifndef CODEC_SCREEN_H
#define CODEC_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define SCREEN_HELD 65536 /* a line is written over within so many bytes */

struct screen {
	/* `stays`: whole lines; else one line that is about to be written over. */
	void (*shown)(const char *text, size_t len, bool stays, void *user);
	void *user;
	/* Inside: */
	struct buf held;
	size_t start;    /* of the line that is written, in `held` */
	size_t raw, bad; /* bytes of it as they came, and those that are no text */
	uint64_t binary; /* bytes of the lines before `held` that were none */
	int state;
	bool returned; /* \r was the last of the line so far */
	int need;      /* bytes that the character still has */
	char last;
};

void screen_init(struct screen *s,
		 void (*shown)(const char *text, size_t len, bool stays, void *user), void *user);
void screen_feed(struct screen *s, const char *bytes, size_t len);
/* Nothing more comes: what is held is shown, and freed. */
void screen_fini(struct screen *s);

#endif

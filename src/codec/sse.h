/* Server-sent events, reading side. Rules: facts of the HTML standard: lines
 * end \n, \r\n or \r (also split across reads), BOM, comments, one optional
 * space after the colon, several data lines joined by \n, dispatch on the
 * blank line; a frame not closed at the end is delivered by sse_end alone. Two objects of
 * JSON on lines that follow each other are two events, as no JSON has them: there are
 * services that leave the blank line out. */
#ifndef CODEC_SSE_H
#define CODEC_SSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct sse_event {         /* borrowed during the callback */
	const char *event; /* "message" when none was given */
	const char *data;
	size_t len;
	const char *id;      /* last id seen, "" when none */
	const char *machine; /* ava's own field: of a cluster, the one that it comes from; "" */
};

struct sse {
	int (*on_event)(const struct sse_event *e, void *user); /* 0: go on */
	void (*on_comment)(void *user);                         /* may be NULL */
	void *user;
	struct buf line, data, event, id, machine;
	bool started, after_cr, has_data;
};

void sse_init(struct sse *s, size_t max_frame);
void sse_fini(struct sse *s);
/* Read bytes of a stream. 0, the non-zero value of a callback (the remaining bytes are skipped), or
 * AVA_ETOOBIG / AVA_ENOMEM, after which the stream must not be fed. */
int sse_feed(struct sse *s, const char *data, size_t len);
/* The body ended: a last frame without its blank line counts after all. As sse_feed. */
int sse_end(struct sse *s);

#endif

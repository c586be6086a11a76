/* The pieces of which a stream has thousands, read without a tree: a piece of
 * text, of thinking or of a call's arguments, exactly in the shapes the services
 * send. Strict: whatever is not such a piece to the last byte gives DELTA_NONE
 * and is for jansson, so that both always agree on what was said. Pure. */
#ifndef PROVIDER_DELTA_H
#define PROVIDER_DELTA_H

#include <stdbool.h>
#include <stddef.h>

#include "provider/jscan.h"

struct buf;

enum delta_kind {
	DELTA_NONE,      /* not looked at: ask jansson */
	DELTA_EMPTY,     /* a piece that says nothing */
	DELTA_TEXT,      /* text_delta; content */
	DELTA_THINKING,  /* thinking_delta; reasoning_content */
	DELTA_REASONING, /* reasoning */
	DELTA_ARGS,      /* input_json_delta; function.arguments */
};

struct delta {
	enum delta_kind kind;
	unsigned index;    /* of the block, or of the call; 0 for text of a chunk */
	struct slice text; /* raw, borrowed from the event */
	bool escapes;      /* there are some in `text` */
};

/* `s`: the data of one event. */
void delta_messages(const char *s, size_t len, struct delta *d); /* Messages form */
void delta_chunk(const char *s, size_t len, struct delta *d);    /* chat completions */

/* Append the text with its escapes resolved: 0, AVA_ENOMEM, AVA_ETOOBIG. */
int delta_add(struct buf *out, const struct delta *d);

#endif

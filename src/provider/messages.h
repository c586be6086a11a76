/* messages.jsonl of a run (doc/MESSAGES.md): what was sent to the model, and
 * how the next request begins. Pure; the file itself is read by the caller. */
#ifndef PROVIDER_MESSAGES_H
#define PROVIDER_MESSAGES_H

#include <stddef.h>

#include "base/buf.h"

struct ava_error;

/* Where things are in what messages_request appended. */
struct messages_info {
	size_t head_len; /* the lines follow the head */
	size_t lines;    /* messages, amendments not counted */
	size_t torn;     /* bytes of an unfinished last line, left out */
};

/* Append the request up to its tail: the head of the spec line, then all
 * messages joined by commas, amendments applied. `info` may be NULL.
 * AVA_ECORRUPT naming the line, AVA_EFORMAT for a newer machine version,
 * AVA_ENOMEM, AVA_ETOOBIG. */
int messages_request(struct buf *out, const char *file, size_t len, struct messages_info *info,
		     struct ava_error *err);

#endif

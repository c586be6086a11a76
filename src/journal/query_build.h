/* Makes a chunk of a log's block index from the bytes of the log. Pure. */
#ifndef JOURNAL_QUERY_BUILD_H
#define JOURNAL_QUERY_BUILD_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "event/event.h"

/* Appends the chunk for `data`, which begins with a line at byte `at` of the
 * log and ends behind a newline; len from 1 to UINT32_MAX. 0 or AVA_ENOMEM
 * (then *out is as it was). */
int query_build(struct buf *out, const char *data, size_t len, uint64_t at);

/* What an InferEnd cost, from its metadata. */
struct query_cost {
	uint64_t input_tokens, output_tokens, microusd;
	uint64_t uncosted; /* 1: its price is unknown */
};
void query_cost(const struct event_view *v, struct query_cost *out);
/* A value of the metadata object, from its first byte; NULL: not there. */
const char *query_meta(const struct event_view *v, const char *key, size_t len);

#endif

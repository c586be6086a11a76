/* Makes a chunk of a log's block index from the bytes of the log. Pure. */
#ifndef JOURNAL_QUERY_BUILD_H
#define JOURNAL_QUERY_BUILD_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "event/event.h"

/* Appends the chunk for `data`, which begins with a line at byte `at` of the
 * log and ends behind a newline; len from 1 to UINT32_MAX. Lines of one block
 * begin within `block` bytes, at most QUERY_INDEX_BLOCK. 0 or AVA_ENOMEM (then
 * *out is as it was). */
int query_build(struct buf *out, const char *data, size_t len, uint64_t at, size_t block);

/* What an InferEnd cost, from its metadata. */
struct query_cost {
	uint64_t sums[4]; /* input tokens, output tokens, micro-USD; 1: its price is unknown */
};
void query_cost(const struct event_view *v, struct query_cost *out);
/* Its modelId; "" when there is none. */
void query_model(const struct event_view *v, const char **name, size_t *len);

#endif

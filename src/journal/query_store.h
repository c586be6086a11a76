/* The file of a block index: its head and its chunks, and how chunks are made
 * from a log and checked against it. Inside of query_cover and query_walk. */
#ifndef JOURNAL_QUERY_STORE_H
#define JOURNAL_QUERY_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "journal/query_cover.h"

struct query_chunk {
	struct query_index_head head;
	uint64_t pos; /* in the index file */
};

struct query_cover {
	int fd; /* of the index file; -1: none */
	struct query_chunk *chunks;
	size_t n, cap;
};

/* The log as it was when all chunks were found to fit. All 0: it was changing. */
struct query_mark {
	uint64_t inode, ctime_ns, mtime_ns, size;
};

#define QUERY_STORE_HEAD 64 /* bytes of the file's head */
bool query_store_head_get(const unsigned char *bytes, struct query_mark *mark, uint32_t *chunks);
void query_store_head_put(unsigned char *bytes, const struct query_mark *mark, uint32_t chunks);

/* Chunks of c->fd into *c, as many as are sound, in order and within `size`
 * bytes of the log. False: the file is no index, *mark is 0. */
bool query_store_load(struct query_cover *c, uint64_t size, struct query_mark *mark);

/* How many chunks from the first on hold what the log at `fd` has now. */
size_t query_store_verify(const struct query_cover *c, int fd);

/* The bytes of all chunks of *c to the same place of `out`. 0 or a code. */
int query_store_copy(const struct query_cover *c, int out);
/* What can be made of the rest of the log, up to `size`, to `out` and *c. On
 * error *c has what was made by then. */
int query_store_make(struct query_cover *c, int fd, uint64_t size, int out);

#endif

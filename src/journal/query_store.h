/* The file of a block index: its head and its chunks, and how chunks are made
 * from a log and checked against it. Inside of query_cover, query_small
 * and query_walk. */
#ifndef JOURNAL_QUERY_STORE_H
#define JOURNAL_QUERY_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "journal/files.h"
#include "journal/query_cover.h"

struct query_chunk {
	struct query_index_head head;
	uint64_t pos; /* in the index file */
};

struct query_cover {
	int fd;               /* of the index file; -1: none */
	unsigned char *bytes; /* owned; what stands in the file, instead of fd; NULL: fd */
	struct query_chunk *chunks;
	size_t n, cap;
};

/* The log as it was when all chunks were found to fit. All 0: it was changing. */
struct query_mark {
	uint64_t inode, ctime_ns, mtime_ns, size;
};

struct query_mark query_store_mark(const struct stat *st);
bool query_store_look(int fd, struct query_mark *m); /* false: no regular file */
bool query_store_same(const struct query_mark *a, const struct query_mark *b);
/* Can it not change any more without another ctime? */
bool query_store_settled(const struct query_mark *m);

/* A file of logs/index that is to take the place of the one there is. */
struct query_store_new {
	int rootfd, fd; /* fd: the caller closes it */
	char path[FILES_BUF], temp[FILES_BUF + 24];
};
/* False: the root cannot be written or is nearly full; then fd is -1. */
bool query_store_create(struct query_store_new *s, int rootfd, const char *path);
bool query_store_put(const struct query_store_new *s);  /* in its place */
void query_store_drop(const struct query_store_new *s); /* or not */

#define QUERY_STORE_HEAD 64 /* bytes of the file's head */
bool query_store_head_get(const unsigned char *bytes, struct query_mark *mark, uint32_t *chunks);
void query_store_head_put(unsigned char *bytes, const struct query_mark *mark, uint32_t chunks);

/* Chunks of c->fd into *c, as many as are sound, in order and within `size`
 * bytes of the log. False: the file is no index, *mark is 0. */
bool query_store_load(struct query_cover *c, uint64_t size, struct query_mark *mark);

/* `len` bytes of the index from `at` on. 0 or AVA_EIO. */
int query_store_read(const struct query_cover *c, void *bytes, size_t len, uint64_t at);
int query_store_add(struct query_cover *c, const struct query_chunk *chunk); /* 0, AVA_ENOMEM */

/* How many chunks from the first on hold what the log at `fd` has now. */
size_t query_store_verify(const struct query_cover *c, int fd);

/* The bytes of all chunks of *c to the same place of `out`. 0 or a code. */
int query_store_copy(const struct query_cover *c, int out);
/* What can be made of the rest of the log, up to `size`, to `out` and *c; when
 * it `rests` with a short chunk at its end. On error *c has what was made by
 * then. */
int query_store_make(struct query_cover *c, int fd, uint64_t size, bool rests, int out);

#endif

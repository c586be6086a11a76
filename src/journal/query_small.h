/* What is in small logs, so that those without anything wanted need not be
 * opened, and of the others only what is wanted read: a table of all, checked
 * against each. doc/QUERY.md, "The index". Part of ava_read. */
#ifndef JOURNAL_QUERY_SMALL_H
#define JOURNAL_QUERY_SMALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "journal/query_index.h"
#include "journal/query_store.h"

struct query_small;

#define QUERY_SMALL_PATH  "logs/index/small"
#define QUERY_SMALL_LEAST 64                  /* files, or new rows, that are worth it */
#define QUERY_SMALL_CHUNK ((uint64_t)8 << 10) /* bytes of a log that are worth a chunk */
#define QUERY_SMALL_HEAD  32                  /* bytes of the table's head */
#define QUERY_SMALL_ROW   160

struct query_small_place { /* of a log's chunk in the table */
	uint64_t at;
	uint32_t size; /* 0: it has none */
};

struct query_small_row {
	struct query_mark mark; /* of the file */
	uint64_t first;         /* lsn of its first event */
	uint32_t kinds;
	bool opaque; /* a line is broken, or the last one is not complete */
	char earliest[CLOCK_ISO_LEN], latest[CLOCK_ISO_LEN];
	unsigned char ids[32]; /* a Bloom filter */
	struct query_small_place chunk;
};

/* False: it is none. */
bool query_small_row_get(const unsigned char *bytes, struct query_small_row *r);
void query_small_row_put(unsigned char *bytes, const struct query_small_row *r);
/* From a small log's bytes, with the chunk that was made of them appended to
 * *chunk; `mark` and `chunk` are left alone. 0, AVA_ENOMEM. */
int query_small_row_of(struct query_small_row *r, const char *data, size_t len, struct buf *chunk);
/* Can a line of that file be wanted? */
bool query_small_row_fits(const struct query_small_row *r, const struct query *q);

/* The table of the root, empty when it is absent or damaged; NULL: no memory.
 * `want` is borrowed until close; `all`: every log is going to be added. */
struct query_small *query_small_open(int rootfd, const struct query *want, bool all);
/* The next file, relative to the root; `path` is borrowed until close. */
void query_small_add(struct query_small *t, const char *path);
/* Those that were added, as they are now, in the table. When enough have no
 * row, and the question is worth it: reads them, and stores the table. */
void query_small_find(struct query_small *t);
struct query_small_told {     /* of a file; all 0: nothing is known */
	bool left_out;        /* nothing wanted is in it */
	uint64_t first, size; /* lsn of its first event; bytes */
	struct query_small_place chunk;
};
void query_small_tell(const struct query_small *t, size_t i, struct query_small_told *out);
/* The table's file, for chunks; the caller closes it. -1: there is none. */
int query_small_take_file(struct query_small *t);
void query_small_close(struct query_small *t); /* NULL is allowed */

/* The index of one log of the table, for query_cover_close. NULL: it cannot
 * be had. */
struct query_cover *query_small_cover(int fd, const struct query_small_place *chunk);

#endif

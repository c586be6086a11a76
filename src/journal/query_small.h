/* What is in small logs, so that those without anything wanted need not be
 * opened: a table of all, checked against each. doc/QUERY.md, "The index".
 * Part of ava_read. */
#ifndef JOURNAL_QUERY_SMALL_H
#define JOURNAL_QUERY_SMALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "journal/query_index.h"
#include "journal/query_store.h"

struct query_small;

#define QUERY_SMALL_PATH  "logs/index/small"
#define QUERY_SMALL_LEAST 64 /* files, or new rows, that are worth it */
#define QUERY_SMALL_HEAD  16 /* bytes of the table's head */
#define QUERY_SMALL_ROW   160

struct query_small_row {
	struct query_mark mark; /* of the file */
	uint64_t first;         /* lsn of its first event */
	uint32_t kinds;
	bool opaque; /* a line is broken, or the last one is not complete */
	char earliest[CLOCK_ISO_LEN], latest[CLOCK_ISO_LEN];
	unsigned char ids[32]; /* a Bloom filter */
};

/* False: it is none. */
bool query_small_row_get(const unsigned char *bytes, struct query_small_row *r);
void query_small_row_put(unsigned char *bytes, const struct query_small_row *r);
/* From a small log's bytes; `mark` is left alone. 0, AVA_ENOMEM. */
int query_small_row_of(struct query_small_row *r, const char *data, size_t len);
/* Can a line of that file be wanted? */
bool query_small_row_fits(const struct query_small_row *r, const struct query *q);

/* The table of the root, empty when it is absent or damaged; NULL: no memory.
 * `want` is borrowed until close; `all`: every log is going to be added. */
struct query_small *query_small_open(int rootfd, const struct query *want, bool all);
/* The next file, relative to the root; `path` is borrowed until close. */
void query_small_add(struct query_small *t, const char *path);
/* When enough of those that were added have no row, and the question is worth
 * it: reads them, and stores the table. */
void query_small_make(struct query_small *t);
/* Is nothing wanted in the i-th file? *first: lsn of its first event, 0: not
 * known. */
bool query_small_leaves_out(const struct query_small *t, size_t i, uint64_t *first);
void query_small_close(struct query_small *t); /* NULL is allowed */

#endif

/* The block index of one log: found, checked against the log, extended, used.
 * doc/QUERY.md, "The index". Part of ava_read. */
#ifndef JOURNAL_QUERY_COVER_H
#define JOURNAL_QUERY_COVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "journal/query_index.h"

#define QUERY_COVER_LEAST      (2 * (uint64_t)QUERY_INDEX_CHUNK) /* bytes of a log worth it */
#define QUERY_COVER_SETTLED_MS 2000 /* a log that changed later than that may change unseen */

struct query_cover; /* immutable once open: any number of threads */

/* Of the log `path` (relative to the root) that is open at `fd`. With `make`
 * an index that is absent, stale, damaged or behind is made anew or extended
 * and stored, where the root can be written. NULL: there is none to be had, and the log is
 * read without: never an error. */
struct query_cover *query_cover_open(int rootfd, const char *path, int fd, bool make);
void query_cover_close(struct query_cover *c); /* NULL is allowed */

/* Can it spare reading anything for this question? And so much that it is
 * worth being made? */
bool query_cover_helps(const struct query *q);
bool query_cover_pays(const struct query *q);

/* Chunk i covers bytes [at, at + bytes) of the log, the first from 0, each
 * where the one before ends. NULL: there are no more. */
const struct query_index_head *query_cover_chunk(const struct query_cover *c, size_t i);

/* A part of a chunk of it, but for the starts, checked; the caller frees it.
 * NULL: it cannot be had. */
unsigned char *query_cover_part(const struct query_cover *c, const struct query_index_head *h,
				enum query_index_part part);

/* One question's way through a log. */
struct query_walk {
	const struct query_cover *cover;
	const struct query *want; /* borrowed while it is used */
	size_t next;              /* chunk whose stretches are not there yet */
	uint64_t at;              /* of the chunk whose are */
	uint64_t limit;           /* chunks from here on are not asked about */
	bool sure;                /* no line of it is broken */
	struct query_stretches found;
	size_t given;
	unsigned char *bytes; /* owned; parts of the chunk */
	size_t cap;
};

struct query_gap {         /* what is to be looked at next */
	uint64_t from, to; /* lines [from, to); to UINT64_MAX: to the end of the log */
	uint64_t reach;    /* reading up to here at once is worth it; >= to */
	bool sure;         /* no line in it is broken */
};

void query_walk_init(struct query_walk *w, const struct query_cover *c, const struct query *want);
void query_walk_fini(struct query_walk *w); /* accepts a zeroed one */
/* The next lines that begin at `at` or behind it. */
void query_walk_next(struct query_walk *w, uint64_t at, struct query_gap *out);

/* Only those of chunk i, into w->found: bytes of the chunk. False: no memory. */
bool query_walk_load(struct query_walk *w, size_t i);

/* Removes from logs/index what nobody needs any more. */
void query_cover_sweep(int rootfd);

/* Where the index of a log is; false: a log there has none. */
bool query_cover_path(const char *path, char *out, size_t size);

#endif

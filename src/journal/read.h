/* The read half of the journal, the archive ava_read: what programs need that
 * read a data root without a daemon. read.c implements ava_log_open, _next,
 * _wait and _close, which ava.h declares; the rest is here. */
#ifndef JOURNAL_READ_H
#define JOURNAL_READ_H

#include <ava.h>

#include "journal/index.h"
#include "journal/query.h"
#include "journal/read_root.h"

/* Is it a question at all? What ava_log_open would find wrong with it. */
int read_check(const struct ava_log_query *q, struct ava_error *err);

/* For those who count: the rows, chunk by chunk, instead of the lines. Which
 * rows of a chunk are wanted but for text, broken ones (INDEX_BROKEN) among
 * them: 0, AVA_ENOMEM, or AVA_ECORRUPT: the feed is not as it was written
 * (nothing was given yet: read_anew begins with one that is made anew). */
int read_select(struct ava_log *log, size_t chunk, uint16_t rows[INDEX_CHUNK], size_t *n,
		struct ava_error *err);
int read_anew(struct ava_log *log, struct ava_error *err);
struct log_index *read_index(struct ava_log *log);
const struct query *read_query(const struct ava_log *log);
/* Where the row of the event stands that ava_log_next gave. */
void read_row(const struct ava_log *log, size_t *chunk, size_t *row);
/* What is amiss with a broken row; AVA_ECORRUPT. */
int read_broken(struct ava_log *log, size_t chunk, size_t row, struct ava_error *err);
/* What is amiss with files, one after the other: AVA_ECORRUPT; 0: no more. */
int read_amiss(struct ava_log *log, struct ava_error *err);

/* Called from ava_log_next now and then with the bytes done so far and those
 * there were at the beginning. */
typedef void (*read_progress_fn)(uint64_t done, uint64_t total, void *user);
void read_progress(struct ava_log *log, read_progress_fn fn, void *user);

/* Makes the stored index of the logs anew. `events`, `files`: what is in it. */
int read_reindex(const char *root, uint64_t *events, uint64_t *files, struct ava_error *err);

#endif

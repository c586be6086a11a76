/* The read half of the journal, the archive ava_read: for programs that read a data root without
 * a daemon. read.c implements ava_log_open, _next, _wait and _close, which ava.h declares; the
 * rest is here. */
#ifndef JOURNAL_READ_H
#define JOURNAL_READ_H

#include <ava.h>

#include "journal/index.h"
#include "journal/query.h"
#include "journal/read_root.h"

/* The error that ava_log_open would find in the question, or 0. */
int read_check(const struct ava_log_query *q, struct ava_error *err);

/* ava_log_open for what is known to be near the ends of the daily logs: they are read as far back
 * as `after` and `since` ask for, without the stored index. */
int read_open_near(struct ava_log **out, const struct ava_log_query *q, struct ava_error *err);

/* For counting: rows, chunk by chunk, instead of lines. Selects a chunk's rows that are wanted,
 * text aside, broken ones (INDEX_BROKEN) among them: 0, AVA_ENOMEM, or AVA_ECORRUPT: the feed is
 * damaged (nothing was given yet: read_anew begins with a new one). */
int read_select(struct ava_log *log, size_t chunk, uint16_t rows[INDEX_CHUNK], size_t *n,
		struct ava_error *err);
int read_anew(struct ava_log *log, struct ava_error *err);
struct log_index *read_index(struct ava_log *log);
const struct query *read_query(const struct ava_log *log);
/* Tell the row of the event that ava_log_next gave. */
void read_row(const struct ava_log *log, size_t *chunk, size_t *row);
/* Report the damage of a broken row; AVA_ECORRUPT. */
int read_broken(struct ava_log *log, size_t chunk, size_t row, struct ava_error *err);
/* Report damaged files, one a call: AVA_ECORRUPT; 0: no more. */
int read_amiss(struct ava_log *log, struct ava_error *err);

/* Called from ava_log_next now and then with the bytes done and the bytes there were at the
 * beginning. */
typedef void (*read_progress_fn)(uint64_t done, uint64_t total, void *user);
void read_progress(struct ava_log *log, read_progress_fn fn, void *user);

/* Make the stored index of the logs anew. `events`, `files`: its content. */
int read_reindex(const char *root, uint64_t *events, uint64_t *files, struct ava_error *err);

#endif

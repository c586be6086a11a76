/* Rows of catalog.jsonl: one when a run is spawned, one when it has ended, so
 * that listings, quotes and "is this id taken" need no run file. The file is
 * an ordinary view of the journal; doc/JOURNAL.md has the form of a row. */
#ifndef JOURNAL_CATALOG_H
#define JOURNAL_CATALOG_H

#include <ava.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define CATALOG_PATH "catalog.jsonl"

enum catalog_kind { CATALOG_SPAWN, CATALOG_END };

struct catalog_totals {
	int64_t input_tokens, output_tokens; /* their sum is written as the row's tokens */
	int64_t cost_microusd;               /* written as decimal cents */
	int64_t duration_ms;
	int64_t calls, uncosted_calls, failed_calls, estimated_calls;
};

/* Fields that let a listing show an ended run without opening its files. */
struct catalog_shown {
	const char *task; /* the task's beginning; NULL: the row has none of these fields */
	const char *cwd, *stop_reason;
	int64_t iterations;
	int64_t limit_ms, limit_microusd, limit_tokens, limit_iterations; /* microusd -1: none */
};
#define CATALOG_TASK_MAX 200 /* most bytes of `task` */

/* Absent strings are "" (NULL is written as ""). */
struct catalog_row {
	enum catalog_kind kind;
	enum ava_status status;
	uint64_t lsn, spawn_lsn; /* of an end: that of the run's spawn row; 0: not written */
	const char *id, *trace_id, *session_id, *user_id, *role, *model, *request_id, *origin;
	const char *group_id;         /* the group of the run; "": none, and not written */
	int64_t group_index;          /* number of the run in it, from 1; 0: not written */
	const char *tags;             /* with a blank between two; "": none, and not written */
	const char *cwd;              /* "": none, or in `shown`, and not written */
	const char *order;            /* the standing order; "": none, and not written */
	int64_t started_ms, ended_ms; /* wall clock; -1: not yet, written as "" */
	uint64_t bytes;               /* size of the run's log */
	uint64_t types;               /* a bit per enum event_kind that occurs in that log */
	struct catalog_totals totals;
	struct catalog_shown shown;
	void *owned; /* memory of the strings after catalog_parse; else NULL */
};

/* The run's folder; "": none. */
static inline const char *catalog_cwd(const struct catalog_row *row)
{
	return row->shown.task ? row->shown.cwd : row->cwd;
}

/* Append the row's line with its \n. Strings are *borrowed during the call*. Returns
 * buf_check(out). */
int catalog_encode(struct buf *out, const struct catalog_row *row);

/* Parse a line (without \n). 0: *row owns its strings until catalog_row_fini. AVA_ECORRUPT: not
 * a row; AVA_ENOMEM. On error *row is zero. */
int catalog_parse(const char *line, size_t len, struct catalog_row *row, struct ava_error *err);
void catalog_row_fini(struct catalog_row *row);

/* Open part `part` of the catalog of a root for reading: a descriptor. AVA_ENOENT: no such file;
 * AVA_ECORRUPT: not a regular file, see `err`. */
int catalog_open(int rootfd, unsigned part, struct ava_error *err);

/* A place behind a row, and how the file stood when it was read up to there. */
struct catalog_place {
	uint64_t part, at, inode;
	int64_t mtime_ns;
	uint64_t crc; /* CRC32C of the last CATALOG_LOOK bytes before it */
};
#define CATALOG_LOOK 4096

/* Does the catalog still have, before this place, what it had? `rested`: nothing of ours has
 * written since. Looks at the file, and at the bytes before the place. */
bool catalog_holds(int rootfd, const struct catalog_place *place, bool rested);

/* Give each row of the catalog of a root, in all its parts, to `fn`; only lines that contain
 * `must`, if not NULL. `from`, if not NULL: the place to begin at (zeros: the beginning), moved
 * behind the last row. `row` NULL: the line is no row. To keep a row, copy the struct and zero the
 * original. A nonzero return of `fn` ends the walk and is returned, without a sentence. A missing
 * catalog has no rows. AVA_ECORRUPT, after the rows: the newest part is no regular file. */
typedef int (*catalog_fn)(struct catalog_row *row, void *user);
int catalog_each(int rootfd, struct catalog_place *from, const char *must, catalog_fn fn,
		 void *user, struct ava_error *err);

#endif

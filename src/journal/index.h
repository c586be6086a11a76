/* The log's index (feed): a small row for each event, so that questions read rows and fetch only
 * the lines they give. Derived from the logs, never synced, made anew whenever it is missing.
 * doc/QUERY.md, "The index". Part of ava_read: no loop. */
#ifndef JOURNAL_INDEX_H
#define JOURNAL_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/event.h"

struct ava_error;
struct query;

#define INDEX_HEAD   "logs/index/feed" /* files, ids, chunks, and rows that fill no chunk yet */
#define INDEX_RUNS   "logs/subagents"
#define INDEX_DAYS   "logs/ava"
#define INDEX_CHUNK  8192u /* most rows of a chunk */
#define INDEX_OTHER  62    /* kind of an event whose name is unknown */
#define INDEX_BROKEN 63    /* a line that is no event; its lsn is the previous line's */
#define INDEX_LINE   ((size_t)64 << 20) /* most bytes of an event's line; longer: INDEX_BROKEN */
_Static_assert(EVENT_NKINDS <= INDEX_OTHER, "a bit for each kind");

/* Kinds whose event may stand both in a run's log and in the day's, with one lsn. */
#define INDEX_COPIED                                                                               \
	(UINT64_C(1) << EVENT_SubagentSpawn | UINT64_C(1) << EVENT_SubagentComplete |              \
	 UINT64_C(1) << EVENT_Waiting | UINT64_C(1) << INDEX_OTHER)

enum index_column {               /* each an array of one number for each row of a chunk */
		    INDEX_KIND,   /* u8 */
		    INDEX_WHO,    /* u32: index in log_index.whos */
		    INDEX_TIME,   /* i64: ms since 1970 */
		    INDEX_LSN,    /* u64 */
		    INDEX_FILE,   /* u32: index in log_index.files */
		    INDEX_OFFSET, /* u64: where the event's line begins in the file */
		    INDEX_LEN,    /* u32: length of the line without its newline */
		    INDEX_MODEL,  /* u32: offset in log_index.strings; 0: "" */
		    INDEX_COST,   /* struct index_cost for each InferEnd, in their order */
		    INDEX_NCOLUMNS
};

struct index_cost {
	uint64_t input, output, microusd, unknown; /* unknown: 1 when the call has no price */
	uint64_t cached;                           /* of `input`: read from a cache */
};

struct index_chunk {
	uint32_t n, ncosts;
	uint64_t kinds; /* a bit for each kind of event in the chunk */
	uint64_t lsn_min, lsn_max;
	int64_t time_min, time_max;
	uint64_t bytes, pos; /* bytes: of the lines; pos: of the columns in the file of rows */
	uint32_t crc[INDEX_NCOLUMNS];
	uint8_t width[INDEX_NCOLUMNS]; /* bytes of a number in the file of rows, above the least */
	uint8_t unused[3];
};

enum index_flags {
	INDEX_IS_DAY = 1,
	INDEX_OVER = 2,    /* the file's run has ended: nothing follows */
	INDEX_RESTED = 4,  /* the file was not written to shortly before it was looked at */
	INDEX_GONE = 8,    /* the file was removed: its rows do not count */
	INDEX_UNREAD = 16, /* the file is unreadable, and this process has reported it */
};

struct index_file {
	uint32_t path, flags; /* path: offset in log_index.strings */
	uint64_t covered;     /* bytes from the file's beginning that have rows */
	uint64_t inode, last_lsn;
};

struct index_who { /* offsets in log_index.strings, each as a line has it */
	uint32_t agent, session, trace, user;
};

struct index_row {
	uint64_t lsn, offset;
	int64_t wall_ms;
	uint32_t len, file, who, model;
	struct index_cost cost;
	uint8_t kind, unused[7];
};

enum index_scope { INDEX_OF_DAYS, INDEX_OF_RUN, INDEX_OF_ALL };

struct log_index {
	int rootfd, rowsfd; /* rowsfd -1: there are no chunks in a file */
	enum index_scope scope;
	const char *run; /* *borrowed*; the id for INDEX_OF_RUN */
	bool follow;     /* a cut file is an error, not read anew */
	struct {
		uint64_t after;     /* lines up to this lsn need no rows */
		char since_day[11]; /* nor do daily logs before this date; "": all do */
	} bounds;                   /* of INDEX_OF_DAYS */
	struct index_file *files;
	struct index_who *whos;
	struct index_chunk *chunks;
	void **columns; /* INDEX_NCOLUMNS for each chunk; NULL: not read yet */
	char *strings;  /* for each string: its length (2 bytes), its bytes, 0 */
	size_t nfiles, files_cap, nwhos, whos_cap, nchunks, chunks_cap, nstrings, strings_cap;
	struct index_row *rows;          /* rows that are in no chunk of the file yet */
	size_t nrows, rows_cap, chunked; /* rows[0..chunked) are in chunks of memory */
	size_t nstored;                  /* chunks that are in the file */
	struct index_slots { /* hash tables: number + 1, or offset in `strings`; 0: free */
		uint32_t *v;
		size_t room; /* a power of two; 0: not made yet */
	} string_slots, who_slots, file_slots;
	bool in_memory; /* the index is not stored any more */
	/* scanned: bytes of logs read since the index was loaded */
	uint64_t generation, rows_size, loaded_crc, scanned;
	int64_t dir_ns[2];  /* change times of the folders, last listed; 0: list them */
	uint64_t quiet;     /* mark of the last daemon's orderly end that was seen; 0: none */
	size_t added;       /* files added since the index was loaded */
	size_t rested;      /* files and folders found since to need no further look */
	unsigned part;      /* the part of the run's log to look for next */
	bool first_gone;    /* a later part of the run's log exists without the first */
	struct index_torn { /* files that end inside a line, or cannot be read */
		uint32_t file, len; /* len UINT32_MAX: `at` is the error's code, without its sign */
		uint64_t at;
	} * torn; /* owned */
	size_t ntorn;
};

/* Open the index of the root, brought up to date with the logs, in memory; it is stored when much
 * was missing and the root can be written. With `anew` the stored index is ignored and replaced.
 * `want`, or NULL: when it is of what is near, the daily logs are read as far back as its lsn and
 * time ask for, without what is stored. 0 or a code. */
int index_open(struct log_index **out, int rootfd, enum index_scope scope, const char *run,
	       const struct query *want, bool anew, struct ava_error *err);
void index_close(struct log_index *f); /* NULL is allowed */

/* Append chunks of rows for lines written since the last look. `file`: only those of this file; -1:
 * of all that may have changed. AVA_ECORRUPT: a file was cut; the next call goes on. Only for an
 * index that follows. */
int index_look(struct log_index *f, long file, struct ava_error *err);
/* Forget the rows so far, which nobody needs any more: the next rows make chunk 0. */
void index_consumed(struct log_index *f);
long index_find_file(struct log_index *f, const char *path); /* -1: no such file */

/* A column of a chunk; NULL: unreadable or damaged. */
const void *index_column(struct log_index *f, size_t chunk, enum index_column column);

/* Release a chunk's columns until they are read again. */
void index_release(struct log_index *f, size_t chunk);

/* Begin to bring a root's stored index up to date on a thread of its own that nobody waits for:
 * the index is sound at any moment. At most one at once. */
void index_keep(const char *root);

/* Forget the stored index, which contradicts the logs: the next question makes it anew. */
void index_forget(int rootfd);

/* These are shared by index.c and index_look.c alone. */
int index_init(struct log_index *f, struct ava_error *err); /* make *f an empty index */
void index_reset(struct log_index *f);
bool index_load(struct log_index *f);  /* false: nothing usable */
void index_store(struct log_index *f); /* best effort */
/* Add the row of a line, given without its newline. False: no memory. */
bool index_row_add(struct log_index *f, uint32_t file, const char *line, size_t len,
		   uint64_t offset);
/* Make chunks in memory of rows that are in no chunk yet. */
int index_chunk_rows(struct log_index *f, struct ava_error *err);
/* The number of the file with this path, added if need be; -1: no memory. */
long index_file_add(struct log_index *f, const char *path, unsigned flags);

static inline const char *index_string(const struct log_index *f, uint32_t at)
{
	return f->strings + at + 2;
}
size_t index_string_len(const struct log_index *f, uint32_t at);

#endif

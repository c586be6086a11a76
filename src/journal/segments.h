/* The files of wal/: numbered, filled ahead, used again.
 *
 * Spare segments are zero-filled by the helper thread, so that syncing them later changes no
 * metadata; released ones become spare under a new, higher number. A file is in use when its
 * header has the number in its name. */
#ifndef JOURNAL_SEGMENTS_H
#define JOURNAL_SEGMENTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "journal/wal.h"

#define SEGMENTS_SPARE 16          /* most spare segments kept */
#define SEGMENTS_AHEAD 2           /* number of filled spares wanted */
#define SEGMENTS_FRESH "fresh.tmp" /* name in wal/ of a segment being made */
#define SEGMENTS_NAME  24          /* room for a name: "0000000000000001.seg" */

struct segments_live {
	uint64_t seq;
	bool filled; /* every block was written once: worth using again */
};

struct segments {
	int walfd;
	uint64_t bytes;     /* size of one segment */
	_Atomic bool hurry; /* fill segments without rests between the writes */
	pthread_mutex_t lock;
	uint64_t next_seq; /* lowest number not given to a file yet */
	uint64_t taken;    /* highest number in use; spares are above it */
	uint64_t spare[SEGMENTS_SPARE];
	unsigned nspare;
	struct segments_live *live; /* segments in use, not released; in ascending order */
	size_t nlive, caplive;
};

void segments_name(uint64_t seq, char out[SEGMENTS_NAME]);
/* The number in a file name; 0: not a segment's name. */
uint64_t segments_number(const char *name);

/* Begin with a folder in which every number is below `next_seq`. */
int segments_init(struct segments *s, int walfd, uint64_t bytes, uint64_t next_seq);
void segments_fini(struct segments *s);
/* From now on no segment is begun below `seq`. */
void segments_above(struct segments *s, uint64_t seq);
/* At start, in ascending order: first segments in use, needed or not (a release follows), then
 * spares. Only a segment with a good header may become a spare: its old number there shows that
 * its content is old. */
int segments_add_live(struct segments *s, uint64_t seq, bool has_header);
void segments_add_spare(struct segments *s, uint64_t seq);

/* Helper thread. Fill one spare segment, while there are fewer than SEGMENTS_AHEAD. 1: more to
 * do, 0: done, -1 and errno. */
int segments_prepare(struct segments *s);
/* Sleep as long as the last write took: half of the disk is for others. */
void segments_rest(int64_t took_us);
/* Release segments numbered below `before`. */
void segments_release(struct segments *s, uint64_t before);

/* ---- the writing end of the WAL: one open segment and the flush being built.
 *
 * Batches are added to a buffer that begins at a page and goes to the segment in one write,
 * whole pages, zero-padded; then one sync. When that fails the segment is dead: the added
 * batches are forgotten, and the next segment begins with an ABORT of their lsn range. */
#define LOG_FLUSH_MAX ((size_t)1 << 20) /* bytes of a flush; beyond it no further batch joins */

struct log {
	struct segments *pool;
	int fd; /* -1: no segment is open */
	bool filled;
	uint32_t salt;
	uint64_t seq; /* number of the newest segment begun; 0: none. The next has a higher one */
	unsigned char *buf;
	size_t cap, used;
	uint64_t at;         /* place of buf[0] in the segment; a multiple of WAL_PAGE */
	uint64_t flush;      /* end of the synced bytes in the segment */
	struct wal_pos good; /* end of the synced log, also while no segment is open */
	uint64_t lsn;        /* the next lsn after the last batch added */
	uint64_t abort_first, abort_last; /* lsn of an ABORT that is not yet on disk; 0: none */
	uint64_t unsynced_first;          /* lsn of the first batch of this flush; 0: none */
};

/* Begin behind the log that recovery found good: `good` is where that ends, `lsn` the next lsn. */
int log_init(struct log *l, struct segments *pool, struct wal_pos good, uint64_t lsn);
void log_fini(struct log *l);

/* Bytes of the longest batch that a segment takes. */
size_t log_room(uint64_t segment_bytes);

/* Go on in another segment; nothing may be waiting in the buffer. 0, or -1 and errno. */
int log_begin(struct log *l);
/* Is a better segment ready, or this one too full for `len` more bytes? */
bool log_should_roll(const struct log *l, size_t len);
/* Was nothing added that must be synced? */
static inline bool log_empty(const struct log *l)
{
	return l->unsynced_first == 0;
}
static inline bool log_full(const struct log *l)
{
	return l->used >= LOG_FLUSH_MAX;
}

/* Lay down a batch whose payload is complete; its head is written here. */
struct wal_pos log_add(struct log *l, const unsigned char *batch, size_t len, uint64_t first_lsn,
		       uint32_t lsn_count);
/* Write and sync the flush. -1 and errno: none of it counts, the segment is dead. */
int log_sync(struct log *l);
/* Add an empty batch, not synced, as proof that the batches before it were synced. */
void log_mark(struct log *l);

/* ---- bytes too long for the WAL: wal/blob-<lsn>-<n>, synced before the batch that
 * refers to them, removed once a checkpoint has released it. */
#define BLOB_NAME 48

/* Name of the blob of the n-th operation of the batch whose first lsn is `lsn`. */
void blob_name(uint64_t lsn, unsigned n, char out[BLOB_NAME]);

/* Write a blob: durable on return, its name too. -1 and errno: nothing is left. */
int blob_write(int walfd, uint64_t lsn, unsigned n, const void *bytes, size_t len,
	       unsigned char hash[WAL_HASH]);
/* Read a blob; *bytes is the caller's (free()). -1 and errno; EBADMSG when size or hash differ. */
int blob_read(int walfd, uint64_t lsn, unsigned n, uint64_t len, const unsigned char hash[WAL_HASH],
	      unsigned char **bytes);
/* Remove blobs with an lsn below `before`. Returns how many remain; -1 and errno. */
int blob_remove(int walfd, uint64_t before);

#endif

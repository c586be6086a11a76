/* The bytes of a segment: pages, batches, operations. Pure: no disk here.
 * doc/JOURNAL.md is the specification; numbers are little-endian. */
#ifndef JOURNAL_WAL_H
#define JOURNAL_WAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"

#define WAL_VERSION    1
#define WAL_PAGE       4096 /* bytes: unit of a flush's length, and size of a header copy */
#define WAL_HEAD_COPY  4096 /* place of the header's second copy, in its own page */
#define WAL_BEGIN      8192 /* place of the first batch */
#define WAL_ALIGN      16
#define WAL_BATCH_HEAD 32
#define WAL_OP_HEAD    24
#define WAL_HASH       32             /* length of the SHA-256 of bytes that stand in a blob */
#define WAL_INLINE_MAX (64 * 1024)    /* longer bytes go to a blob */
#define WAL_GAP        WAL_BATCH_HEAD /* number of zero bytes that follow every flush */

/* Stands for the inode that a PUT replaces, when the PUT follows another one that is not applied
 * yet. */
#define WAL_OURS UINT64_MAX

/* Place of a batch's beginning or end. */
struct wal_pos {
	uint64_t seq; /* number of the segment; 0: nowhere */
	uint64_t at;  /* byte in the segment */
};

static inline bool wal_before(struct wal_pos a, struct wal_pos b)
{
	return a.seq != b.seq ? a.seq < b.seq : a.at < b.at;
}

struct wal_segment {
	uint64_t seq, size, first_lsn;
	uint32_t salt;       /* drawn anew at each use, to tell old bytes apart */
	struct wal_pos prev; /* end of the valid part of the segment before */
};

void wal_segment_put(unsigned char head[WAL_BEGIN], const struct wal_segment *s);
/* Number of header copies that are good and have `seq` (0: any; then the higher one is taken):
 * 0, a segment not in use, 1 or 2. */
int wal_segment_get(const unsigned char head[WAL_BEGIN], uint64_t seq, struct wal_segment *s);

struct wal_batch {
	uint32_t len; /* length of the payload, padding counted; a multiple of 16 */
	uint32_t salt;
	uint64_t first_lsn;
	uint32_t lsn_count;
	uint32_t at;    /* the batch's place in the segment */
	uint32_t flush; /* place of the first batch of the same flush */
};

/* Write the head before a payload that is in place, with the checksum. */
void wal_batch_put(unsigned char *batch, const struct wal_batch *b);
/* Is there a whole batch at `at` of a segment of which `len` bytes are known? Fills *b. */
bool wal_batch_get(const unsigned char *segment, size_t len, uint64_t at, uint32_t salt,
		   struct wal_batch *b);
/* The salt of a batch at `at`; for a segment without a header. */
uint32_t wal_batch_salt(const unsigned char *segment, uint64_t at);

enum wal_kind { WAL_END, WAL_APPEND, WAL_PUT, WAL_ENTRY, WAL_CREATE, WAL_DROP, WAL_ABORT };

struct wal_op {
	enum wal_kind kind;
	bool blob;        /* `bytes` is the SHA-256 of the blob that holds them */
	unsigned part;    /* 1: the file `path` itself; n: the continuation .n of it */
	const char *path; /* not NUL-terminated, and neither is `id` */
	size_t path_len;
	const char *id;
	size_t id_len;
	const unsigned char *bytes; /* the operation's `len` bytes, or WAL_HASH bytes with `blob` */
	uint64_t len, offset;
};

size_t wal_op_size(size_t path_len, size_t id_len, size_t len, bool blob);
/* Write an operation at `p`; returns its end. */
unsigned char *wal_op_put(unsigned char *p, const struct wal_op *op);
/* Fill in the fields known only when the batch is laid down. */
void wal_op_place(unsigned char *op, unsigned part, uint64_t offset);
/* Read the next operation of a payload: 1; 0 at its end; -1 when it is malformed, which despite a
 * good checksum another version's writer can cause. */
int wal_op_next(const unsigned char **p, const unsigned char *end, struct wal_op *op);

/* ---- The file wal/checkpoint: how far the journal is in the views and synced, and the state of
 * the views. Text, one fact a line, closed by a checksum; doc/JOURNAL.md. */

struct ava_error;

#define CHECKPOINT_PATH "wal/checkpoint"

struct checkpoint_view {
	unsigned part;
	uint64_t size, inode; /* size: synced bytes; inode 0: not known */
	const char *path;     /* points into the text that was parsed */
};

struct checkpoint {
	bool clean;         /* the journal was closed with everything answered and applied */
	struct wal_pos pos; /* recovery begins here */
	uint64_t lsn;       /* the next lsn to give */
	struct checkpoint_view *views;
	size_t nviews;
	char *text; /* owned */
};

/* Write a checkpoint to `out`: a head, any number of views, an end, which returns
 * buf_check(out). */
void checkpoint_head(struct buf *out, bool clean, struct wal_pos pos, uint64_t lsn);
void checkpoint_add(struct buf *out, const struct checkpoint_view *v);
int checkpoint_end(struct buf *out);
/* Replace the checkpoint file, durably. -1 and errno. */
int checkpoint_write(int rootfd, const struct buf *text);

/* Read the checkpoint file. 0; AVA_ENOENT; AVA_ECORRUPT; AVA_ENOMEM; AVA_EIO. *c owns memory on
 * 0. */
int checkpoint_read(int rootfd, struct checkpoint *c, struct ava_error *err);
void checkpoint_fini(struct checkpoint *c);

#endif

/* The writing end of the WAL: one open segment and the flush being built.
 *
 * Batches are added to a buffer that begins at a page and goes to the segment
 * in one write, whole pages, zero-padded; then one sync. When that fails the
 * segment is dead: what was added is forgotten, and the next segment begins
 * with an ABORT of its lsn range. */
#ifndef JOURNAL_LOG_H
#define JOURNAL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "journal/segments.h"
#include "journal/wal.h"

#define LOG_FLUSH_MAX ((size_t)1 << 20) /* begin no further batch above it */

struct log {
	struct segments *pool;
	int fd; /* -1: no segment is open */
	bool filled;
	uint32_t salt;
	uint64_t seq;
	unsigned char *buf;
	size_t cap, used;
	uint64_t at;                      /* in the segment, of buf[0]; a multiple of WAL_PAGE */
	uint64_t flush;                   /* in the segment: what is synced ends here */
	struct wal_pos good;              /* end of what is synced, also while none is open */
	uint64_t lsn;                     /* after the last batch added */
	uint64_t abort_first, abort_last; /* not yet on disk; 0: none */
	uint64_t unsynced_first;          /* lsn of the first batch of this flush; 0: none */
};

/* `good`: where recovery ended. */
int log_init(struct log *l, struct segments *pool, struct wal_pos good, uint64_t lsn);
void log_fini(struct log *l);

/* The longest batch there may be. */
size_t log_room(uint64_t segment_bytes);

/* Go on in another segment; nothing may be waiting in the buffer. -1, errno. */
int log_begin(struct log *l);
/* A better segment is ready, or this one cannot take `len` more bytes. */
bool log_should_roll(const struct log *l, size_t len);
/* Nothing that must be synced was added. */
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
/* Write and sync. -1 and errno: none of it counts, the segment is dead. */
int log_sync(struct log *l);
/* A batch of nothing, not synced, that shows that what is before it was. */
void log_mark(struct log *l);

#endif

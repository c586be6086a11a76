/* The writing end of the WAL; see log.h.
 *
 * Whole pages are written because a partial one of a file used again long
 * after may have to be read first. Behind a flush WAL_GAP zero bytes follow,
 * so that a clean end is told from damage even where old bytes remain. A
 * flush that fails leaves `good` where it was; the next header says so, and
 * the ABORT is on disk before anything else is. */
#include "journal/log.h"

#include <ava.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/files.h"

size_t log_room(uint64_t segment_bytes)
{
	return segment_bytes / 4;
}

int log_init(struct log *l, struct segments *pool, struct wal_pos good, uint64_t lsn)
{
	*l = (struct log){.pool = pool, .fd = -1, .good = good, .lsn = lsn};
	l->cap = WAL_BEGIN + WAL_PAGE * 2 + LOG_FLUSH_MAX + log_room(pool->bytes);
	l->buf = malloc(l->cap); /* touched only as far as flushes are long */
	return l->buf != NULL ? 0 : AVA_ENOMEM;
}

void log_fini(struct log *l)
{
	files_close(&l->fd);
	free(l->buf);
	l->buf = NULL;
}

static size_t round_up(size_t n)
{
	return (n + WAL_PAGE - 1) / WAL_PAGE * WAL_PAGE;
}

static int write_pages(struct log *l)
{
	size_t end = round_up(l->used + WAL_GAP);

	assert(end <= l->cap && l->at + end <= l->pool->bytes);
	memset(l->buf + l->used, 0, end - l->used);
	return sys_write_all(l->fd, l->buf, end, (off_t)l->at);
}

/* What was in the flush must never happen, not even when it reached the disk
 * after all. Several failures in a row become one range. */
static void die(struct log *l)
{
	if (l->unsynced_first != 0) {
		if (l->abort_first == 0)
			l->abort_first = l->unsynced_first;
		l->abort_last = l->lsn - 1;
	}
	l->unsynced_first = 0;
	l->used = 0;
	l->at = l->flush = 0;
	files_close(&l->fd);
}

int log_sync(struct log *l)
{
	size_t keep;

	if (write_pages(l) != 0 || sys->fdatasync(l->fd) != 0) {
		die(l);
		return -1;
	}
	l->flush = l->at + l->used;
	l->good = (struct wal_pos){l->seq, l->flush};
	l->unsynced_first = 0;
	keep = l->used % WAL_PAGE;
	memmove(l->buf, l->buf + l->used - keep, keep);
	l->at += l->used - keep;
	l->used = keep;
	return 0;
}

static void add_abort(struct log *l)
{
	_Alignas(8) unsigned char batch[WAL_BATCH_HEAD + 64] = {0};
	unsigned char range[16];
	struct wal_op op = {.kind = WAL_ABORT, .part = 0, .bytes = range, .len = sizeof(range)};

	for (int i = 0; i < 8; i++) {
		range[i] = (unsigned char)(l->abort_first >> (8 * i));
		range[8 + i] = (unsigned char)(l->abort_last >> (8 * i));
	}
	wal_op_put(batch + WAL_BATCH_HEAD, &op);
	log_add(l, batch, sizeof(batch), l->abort_last + 1, 0);
	l->unsynced_first = 0; /* an ABORT needs none itself */
}

int log_begin(struct log *l)
{
	struct wal_segment head = {.size = l->pool->bytes, .first_lsn = l->lsn, .prev = l->good};

	files_close(&l->fd);
	l->fd = segments_take(l->pool, &l->seq, &l->filled);
	if (l->fd < 0)
		return -1;
	do
		id_random(&l->salt, sizeof(l->salt));
	while (l->salt == 0);
	head.seq = l->seq;
	head.salt = l->salt;
	wal_segment_put(l->buf, &head);
	l->at = 0;
	l->used = l->flush = WAL_BEGIN;
	if (l->abort_first == 0)
		return 0; /* the header goes with the first flush */
	add_abort(l);
	if (log_sync(l) != 0)
		return -1;
	l->abort_first = l->abort_last = 0;
	return 0;
}

bool log_should_roll(const struct log *l, size_t len)
{
	if (l->at + l->used + len + WAL_GAP > l->pool->bytes)
		return true;
	return !l->filled && log_empty(l) && l->flush > WAL_BEGIN && segments_have_spare(l->pool);
}

struct wal_pos log_add(struct log *l, const unsigned char *batch, size_t len, uint64_t first_lsn,
		       uint32_t lsn_count)
{
	struct wal_pos pos = {l->seq, l->at + l->used};
	struct wal_batch b = {
		.len = (uint32_t)(len - WAL_BATCH_HEAD),
		.salt = l->salt,
		.first_lsn = first_lsn,
		.lsn_count = lsn_count,
		.at = (uint32_t)pos.at,
		.flush = (uint32_t)l->flush,
	};

	assert(l->used + len <= l->cap - 2 * WAL_PAGE);
	memcpy(l->buf + l->used, batch, len);
	wal_batch_put(l->buf + l->used, &b);
	l->used += len;
	if (l->unsynced_first == 0)
		l->unsynced_first = first_lsn;
	l->lsn = MAX(l->lsn, first_lsn + lsn_count);
	return pos;
}

void log_mark(struct log *l)
{
	static const unsigned char nothing[WAL_BATCH_HEAD];
	size_t used = l->used;

	if (l->fd < 0 || l->at + l->used != l->flush || l->flush == WAL_BEGIN ||
	    log_should_roll(l, sizeof(nothing)))
		return;
	log_add(l, nothing, sizeof(nothing), l->lsn, 0);
	l->unsynced_first = 0;
	if (write_pages(l) != 0)
		l->used = used; /* only a hint: the next flush writes over it */
}

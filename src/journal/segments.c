/* The files of wal/; see segments.h.
 *
 * A spare file gets its final name, and the folder is synced, before the journal's thread can
 * take it: data synced into it later can be found. A number is used only once and numbers in use
 * only go up, so a file overtaken while it was being made is renamed again. Without a ready
 * spare file one is made on the spot: slower to sync, but never waiting. */
#include "journal/segments.h"

#include <assert.h>
#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/le.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/files.h"

#define FILL_CHUNK ((size_t)256 << 10)

#define REST_MAX_US 5000

static const char fresh_name[] = SEGMENTS_FRESH;

void segments_name(uint64_t seq, char out[SEGMENTS_NAME])
{
	snprintf(out, SEGMENTS_NAME, "%016" PRIx64 ".seg", seq);
}

uint64_t segments_number(const char *name)
{
	char again[SEGMENTS_NAME];
	uint64_t seq;

	if (strlen(name) != 20)
		return 0;
	seq = strtoull(name, NULL, 16);
	segments_name(seq, again);
	return strcmp(name, again) == 0 ? seq : 0;
}

int segments_init(struct segments *s, int walfd, uint64_t bytes, uint64_t next_seq)
{
	*s = (struct segments){.walfd = walfd, .bytes = bytes, .next_seq = next_seq};
	return pthread_mutex_init(&s->lock, NULL) == 0 ? 0 : AVA_ENOMEM;
}

void segments_fini(struct segments *s)
{
	pthread_mutex_destroy(&s->lock);
	free(s->live);
	s->live = NULL;
}

int segments_add_live(struct segments *s, uint64_t seq, bool has_header)
{
	if (!ARRAY_ROOM(s->live, s->caplive, s->nlive + 1))
		return AVA_ENOMEM;
	s->live[s->nlive++] = (struct segments_live){.seq = seq, .filled = has_header};
	s->taken = MAX(s->taken, seq);
	return 0;
}

static int seq_order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return order_of(x, y);
}

/* Make the new names durable, then let the journal's thread have the files. A file overtaken by
 * a segment made on the spot is removed. */
static int add_spares(struct segments *s, const uint64_t *seqs, unsigned n)
{
	char name[SEGMENTS_NAME];
	int rv = n > 0 ? files_sync_dir(s->walfd, ".") : 0;

	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < n; i++) {
		if (rv == 0 && seqs[i] > s->taken && s->nspare < SEGMENTS_SPARE) {
			s->spare[s->nspare++] = seqs[i];
			continue;
		}
		segments_name(seqs[i], name);
		sys->unlinkat(s->walfd, name, 0);
	}
	qsort(s->spare, s->nspare, sizeof(s->spare[0]), seq_order);
	pthread_mutex_unlock(&s->lock);
	return rv;
}

/* Give the file `from` a name with a new number, which is returned; 0 and errno. */
static uint64_t renumber(struct segments *s, const char *from)
{
	char name[SEGMENTS_NAME];
	uint64_t seq;

	pthread_mutex_lock(&s->lock);
	seq = s->next_seq++;
	pthread_mutex_unlock(&s->lock);
	segments_name(seq, name);
	return sys->renameat(s->walfd, from, s->walfd, name) == 0 ? seq : 0;
}

/* Renumber a file of our size so that it can serve again; a file of another size is of another
 * setting. Its new number, or 0: it is removed. Failing to remove it costs room only. */
static uint64_t reuse(struct segments *s, struct segments_live old)
{
	char name[SEGMENTS_NAME];
	struct stat st;
	uint64_t seq = 0;

	segments_name(old.seq, name);
	if (old.filled && sys->fstatat(s->walfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(st.st_mode) && (uint64_t)st.st_size == s->bytes)
		seq = renumber(s, name);
	if (seq == 0)
		sys->unlinkat(s->walfd, name, 0);
	return seq;
}

void segments_above(struct segments *s, uint64_t seq)
{
	s->taken = MAX(s->taken, seq > 0 ? seq - 1 : 0);
}

void segments_add_spare(struct segments *s, uint64_t seq)
{
	char name[SEGMENTS_NAME];
	struct stat st;

	segments_name(seq, name);
	if (seq > s->taken && s->nspare < SEGMENTS_SPARE &&
	    sys->fstatat(s->walfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	    (uint64_t)st.st_size == s->bytes)
		s->spare[s->nspare++] = seq;
	else
		sys->unlinkat(s->walfd, name, 0);
}

static int open_segment(struct segments *s, uint64_t seq, int flags)
{
	char name[SEGMENTS_NAME];

	segments_name(seq, name);
	return sys->openat(s->walfd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
}

/* Allocate all of a new file, so that a full disk shows now and not later. */
static int make_now(struct segments *s, uint64_t seq)
{
	int fd = open_segment(s, seq, O_CREAT | O_TRUNC), rv;

	if (fd < 0)
		return -1;
	rv = sys->fallocate(fd, 0, 0, (off_t)s->bytes);
	if (rv != 0 && errno == EOPNOTSUPP)
		rv = sys->ftruncate(fd, (off_t)s->bytes);
	if (rv == 0)
		rv = files_sync_dir(s->walfd, ".");
	if (rv != 0) {
		char name[SEGMENTS_NAME];
		int saved = errno;

		files_close(&fd);
		segments_name(seq, name);
		sys->unlinkat(s->walfd, name, 0);
		errno = saved;
	}
	return fd;
}

static int segments_take(struct segments *s, uint64_t *seq, bool *filled)
{
	int fd = -1;

	pthread_mutex_lock(&s->lock);
	/* Have room first, so that noting a segment that is in use cannot fail. */
	if (!ARRAY_ROOM(s->live, s->caplive, s->nlive + 1))
		goto fail;
	*filled = s->nspare > 0;
	*seq = *filled ? s->spare[0] : s->next_seq++;
	fd = *filled ? open_segment(s, *seq, 0) : make_now(s, *seq);
	if (*filled) {
		s->nspare--;
		memmove(s->spare, s->spare + 1, s->nspare * sizeof(s->spare[0]));
	}
	if (fd < 0)
		goto fail;
	s->taken = *seq;
	s->live[s->nlive++] = (struct segments_live){.seq = *seq, .filled = *filled};
fail:
	pthread_mutex_unlock(&s->lock);
	return fd;
}

static unsigned count_spares(struct segments *s)
{
	unsigned n;

	pthread_mutex_lock(&s->lock);
	n = s->nspare;
	pthread_mutex_unlock(&s->lock);
	return n;
}

void segments_rest(int64_t took_us)
{
	struct timespec t = {.tv_nsec = MIN(took_us, (int64_t)REST_MAX_US) * 1000};

	nanosleep(&t, NULL);
}

/* Fill a piece, then rest: the journal's thread syncs on the same disk. */
static int segments_fill(struct segments *s, int fd)
{
	char *zeros = calloc(1, FILL_CHUNK);
	int rv = 0;

	if (zeros == NULL) {
		errno = ENOMEM;
		return -1;
	}
	for (uint64_t at = 0, n; at < s->bytes && rv == 0; at += n) {
		int64_t began = clock_mono_us();

		n = MIN(s->bytes - at, (uint64_t)FILL_CHUNK);
		rv = sys_write_all(fd, zeros, n, (off_t)at);
		if (rv == 0 && !s->hurry && at + n < s->bytes) {
			rv = sys->write_range(fd, (off_t)at, (off_t)n);
			segments_rest(clock_mono_us() - began);
		}
	}
	free(zeros);
	return rv == 0 ? sys->fsync(fd) : rv;
}

int segments_prepare(struct segments *s)
{
	unsigned have = count_spares(s);
	uint64_t seq;
	int fd, rv, saved;

	if (have >= SEGMENTS_AHEAD)
		return 0;
	fd = sys->openat(s->walfd, fresh_name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
			 0600);
	if (fd < 0)
		return -1;
	rv = segments_fill(s, fd);
	files_close(&fd);
	if (rv == 0) {
		seq = renumber(s, fresh_name);
		rv = seq != 0 ? add_spares(s, &seq, 1) : -1;
	}
	if (rv == 0)
		return have + 1 < SEGMENTS_AHEAD;
	saved = errno;
	sys->unlinkat(s->walfd, fresh_name, 0);
	errno = saved;
	return -1;
}

/* Take the oldest segment below `seq` off the list; 0: none. */
static struct segments_live pop_live(struct segments *s, uint64_t seq)
{
	struct segments_live old = {0};

	pthread_mutex_lock(&s->lock);
	if (s->nlive > 0 && s->live[0].seq < seq) {
		old = s->live[0];
		s->nlive--;
		memmove(s->live, s->live + 1, s->nlive * sizeof(s->live[0]));
	}
	pthread_mutex_unlock(&s->lock);
	return old;
}

void segments_release(struct segments *s, uint64_t before)
{
	uint64_t seqs[SEGMENTS_SPARE];
	struct segments_live old;
	uint64_t seq;
	unsigned n = 0;

	while ((old = pop_live(s, before)).seq != 0) {
		if (n == SEGMENTS_SPARE)
			old.filled = false; /* there are enough spares */
		seq = reuse(s, old);
		if (seq != 0)
			seqs[n++] = seq;
	}
	add_spares(s, seqs, n);
}

/* ---- the writing end
 *
 * Whole pages are written because a partial one of a file used again long after may have to
 * be read first. Behind a flush WAL_GAP zero bytes follow, so that a clean end is told from
 * damage even where old bytes remain. A flush that fails leaves `good` where it was; the
 * next header says so, and the ABORT is on disk before anything else is. */

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

static int write_pages(struct log *l)
{
	size_t end = (l->used + WAL_GAP + WAL_PAGE - 1) / WAL_PAGE * WAL_PAGE;

	assert(end <= l->cap && l->at + end <= l->pool->bytes);
	memset(l->buf + l->used, 0, end - l->used);
	return sys_write_all(l->fd, l->buf, end, (off_t)l->at);
}

/* Forget the flush and note its range for an ABORT: its batches must never happen, not even when
 * they reached the disk. Several failures in a row become one range. */
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

int log_begin(struct log *l)
{
	struct wal_segment head = {.size = l->pool->bytes, .first_lsn = l->lsn, .prev = l->good};
	_Alignas(8) unsigned char batch[WAL_BATCH_HEAD + 64] = {0};
	unsigned char range[16];
	struct wal_op op = {.kind = WAL_ABORT, .part = 0, .bytes = range, .len = sizeof(range)};

	files_close(&l->fd);
	l->fd = segments_take(l->pool, &head.seq, &l->filled);
	if (l->fd < 0)
		return -1;
	l->seq = head.seq;
	do
		id_random(&l->salt, sizeof(l->salt));
	while (l->salt == 0);
	head.salt = l->salt;
	wal_segment_put(l->buf, &head);
	l->at = 0;
	l->used = l->flush = WAL_BEGIN;
	if (l->abort_first == 0)
		return 0; /* the header goes with the first flush */
	put64(range, l->abort_first);
	put64(range + 8, l->abort_last);
	wal_op_put(batch + WAL_BATCH_HEAD, &op);
	log_add(l, batch, sizeof(batch), l->abort_last + 1, 0);
	l->unsynced_first = 0; /* an ABORT needs none itself */
	if (log_sync(l) != 0)
		return -1;
	l->abort_first = l->abort_last = 0;
	return 0;
}

bool log_should_roll(const struct log *l, size_t len)
{
	if (l->at + l->used + len + WAL_GAP > l->pool->bytes)
		return true;
	return !l->filled && log_empty(l) && l->flush > WAL_BEGIN && count_spares(l->pool) > 0;
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

/* ---- blobs
 *
 * The name follows from the batch, so the batch needs only size and hash. A blob whose batch
 * was never written is removed like any other, by its lsn. */

static const char prefix[] = "blob-";

void blob_name(uint64_t lsn, unsigned n, char out[BLOB_NAME])
{
	snprintf(out, BLOB_NAME, "%s%" PRIu64 "-%u", prefix, lsn, n);
}

static int64_t blob_lsn(const char *name)
{
	char *end;
	long long lsn;

	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return -1;
	name += sizeof(prefix) - 1;
	lsn = strtoll(name, &end, 10);
	return end != name && *end == '-' && lsn >= 0 ? lsn : -1;
}

int blob_write(int walfd, uint64_t lsn, unsigned n, const void *bytes, size_t len,
	       unsigned char hash[WAL_HASH])
{
	char name[BLOB_NAME];
	int fd, rv, saved;

	hash_sha256(bytes, len, hash);
	blob_name(lsn, n, name);
	fd = files_open(walfd, name, O_WRONLY | O_CREAT | O_TRUNC);
	if (fd < 0)
		return -1;
	rv = sys_write_all(fd, bytes, len, 0);
	if (rv == 0)
		rv = sys->fsync(fd);
	files_close(&fd);
	if (rv == 0)
		rv = files_sync_dir(walfd, ".");
	if (rv == 0)
		return 0;
	saved = errno;
	sys->unlinkat(walfd, name, 0);
	errno = saved;
	return -1;
}

int blob_read(int walfd, uint64_t lsn, unsigned n, uint64_t len, const unsigned char hash[WAL_HASH],
	      unsigned char **bytes)
{
	unsigned char got[WAL_HASH];
	char name[BLOB_NAME];
	struct stat st;
	int fd, rv;

	*bytes = NULL;
	blob_name(lsn, n, name);
	fd = files_open(walfd, name, O_RDONLY);
	if (fd < 0)
		return -1;
	rv = sys->fstat(fd, &st);
	if (rv == 0 && (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != len)) {
		errno = EBADMSG;
		rv = -1;
	}
	if (rv == 0 && (*bytes = malloc(len + 1)) == NULL) {
		errno = ENOMEM;
		rv = -1;
	}
	if (rv == 0)
		rv = sys_read_all(fd, *bytes, len, 0);
	files_close(&fd);
	if (rv == 0) {
		hash_sha256(*bytes, len, got);
		if (memcmp(got, hash, WAL_HASH) == 0)
			return 0;
		errno = EBADMSG;
	}
	free(*bytes);
	*bytes = NULL;
	return -1;
}

struct segments_removal {
	int walfd, error, left;
	uint64_t before;
};

static void segments_remove_one(const char *name, void *user)
{
	struct segments_removal *r = user;
	int64_t lsn = blob_lsn(name);

	if (lsn < 0)
		return;
	if ((uint64_t)lsn >= r->before)
		r->left++;
	else if (sys->unlinkat(r->walfd, name, 0) != 0)
		r->error = errno;
}

int blob_remove(int walfd, uint64_t before)
{
	struct segments_removal r = {.walfd = walfd, .before = before};

	if (sys->list(walfd, ".", segments_remove_one, &r) != 0)
		return -1;
	errno = r.error;
	return r.error == 0 ? r.left : -1;
}

/* Reading the WAL; see walscan.h.
 *
 * Each segment's header says where what counts of the one before it ends, so
 * the chain is followed backwards from the newest. Within a segment batches
 * follow each other; where none is valid the next valid one is looked for. In
 * a segment that has a successor everything up to its end was synced, so what
 * is missing there is damage. In the last one a flush may have been cut by the
 * crash: what is missing there is damage only when a valid batch of a later
 * flush follows, because that flush began after this one was synced.
 *
 * A newest segment that has lost both copies of its header is still known by
 * its first batch, which says its own salt and place, and by a later flush
 * behind it: without one it may be a first flush that a crash cut. */
#include "journal/walscan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/le.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/files.h"
#include "journal/segments.h"

#define HEAD_BYTES     (WAL_BEGIN + 256) /* the header, and an ABORT behind it */
#define SIZE_MAX_ALONE ((off_t)1 << 30)  /* of a segment that only its batches vouch for */

/* ---- what is there */

struct listing {
	struct walscan *s;
	size_t cap;
	bool failed;
};

static void list_one(const char *name, void *user)
{
	struct listing *l = user;
	struct walscan *s = l->s;
	uint64_t seq = segments_number(name);
	struct walscan_file *files;

	if (seq == 0 || l->failed)
		return;
	if (s->nfiles == l->cap) {
		l->cap = l->cap == 0 ? 32 : l->cap * 2;
		files = realloc(s->files, l->cap * sizeof(*files));
		if (files == NULL) {
			l->failed = true;
			return;
		}
		s->files = files;
	}
	s->files[s->nfiles++] = (struct walscan_file){.seq = seq, .fd = -1};
}

static int by_seq(const void *a, const void *b)
{
	const struct walscan_file *x = a, *y = b;

	return (x->seq > y->seq) - (x->seq < y->seq);
}

static int open_file(struct walscan *s, struct walscan_file *f)
{
	char name[SEGMENTS_NAME];

	if (f->fd >= 0)
		return 0;
	segments_name(f->seq, name);
	f->fd = files_open(s->walfd, name, O_RDONLY);
	return f->fd >= 0 ? 0 : -1;
}

/* As many bytes as the file has, up to `len`; -1 and errno. */
static ssize_t read_some(int fd, unsigned char *out, size_t len, uint64_t at)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = sys->pread(fd, out + got, len - got, (off_t)(at + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

static void read_abort(struct walscan_file *f, const unsigned char *page, size_t len)
{
	struct wal_batch b;
	struct wal_op op;
	const unsigned char *p = page + WAL_BEGIN + WAL_BATCH_HEAD;

	if (!wal_batch_get(page, len, WAL_BEGIN, f->head.salt, &b) ||
	    wal_op_next(&p, p + b.len, &op) != 1 || op.kind != WAL_ABORT || op.len != 16)
		return;
	f->abort_first = get64(op.bytes);
	f->abort_last = get64(op.bytes + 8);
}

/* Neither header is good and none is an older one: might it be in use all the
 * same? find_headless() decides. */
static int read_headless(struct walscan_file *f, const unsigned char *page)
{
	struct stat st;

	if (wal_segment_get(page, 0, &f->head) > 0)
		return 0; /* spare: it says what it was before */
	if (sys->fstat(f->fd, &st) != 0)
		return -1;
	f->head = (struct wal_segment){.seq = f->seq};
	if (S_ISREG(st.st_mode) && st.st_size > HEAD_BYTES && st.st_size <= SIZE_MAX_ALONE) {
		f->head.size = (uint64_t)st.st_size;
		f->head.salt = wal_batch_salt(page, WAL_BEGIN);
	}
	return 0;
}

static int read_head(struct walscan *s, struct walscan_file *f)
{
	unsigned char page[HEAD_BYTES] = {0};
	ssize_t n;
	int rv;

	if (open_file(s, f) != 0)
		return -1;
	n = read_some(f->fd, page, sizeof(page), 0);
	if (n < 0)
		return -1;
	f->copies = wal_segment_get(page, f->seq, &f->head);
	f->used = f->copies > 0;
	rv = f->used ? 0 : read_headless(f, page);
	read_abort(f, page, (size_t)n);
	f->looked = rv == 0;
	if (!f->used)
		files_close(&f->fd);
	return rv;
}

int walscan_open(struct walscan *s, int walfd, struct ava_error *err)
{
	struct listing l = {.s = s};

	s->walfd = walfd;
	s->files = NULL;
	s->nfiles = 0;
	if (sys->list(walfd, ".", list_one, &l) != 0)
		return err_sys(err, "list wal");
	if (l.failed)
		return err_set(err, AVA_ENOMEM, "no memory for the list of segments");
	if (s->nfiles > 0)
		qsort(s->files, s->nfiles, sizeof(s->files[0]), by_seq);
	for (size_t i = 0; i < s->nfiles; i++)
		if (read_head(s, &s->files[i]) != 0)
			return err_sys(err, "read segment %llx of wal",
				       (unsigned long long)s->files[i].seq);
	return 0;
}

void walscan_close(struct walscan *s)
{
	for (size_t i = 0; i < s->nfiles; i++)
		files_close(&s->files[i].fd);
	free(s->files);
	free(s->buf);
	s->files = NULL;
	s->buf = NULL;
	s->nfiles = 0;
}

uint64_t walscan_used(const struct walscan *s)
{
	for (size_t i = s->nfiles; i > 0; i--)
		if (s->files[i - 1].used)
			return s->files[i - 1].seq;
	return 0;
}

uint64_t walscan_highest(const struct walscan *s)
{
	return s->nfiles > 0 ? s->files[s->nfiles - 1].seq : 0;
}

/* An older header, or zeros where the first batch would be. One whose headers
 * are damaged may have been in use. */
bool walscan_spare(const struct walscan_file *f)
{
	return f->looked && !f->used && (f->head.seq != f->seq || f->head.salt == 0);
}

int walscan_sync(struct walscan *s, struct ava_error *err)
{
	for (size_t i = 0; i < s->nfiles; i++)
		if (s->files[i].counts && s->files[i].fd >= 0 &&
		    sys->fdatasync(s->files[i].fd) != 0)
			return err_sys(err, "sync wal/%016llx.seg",
				       (unsigned long long)s->files[i].seq);
	return 0;
}

int walscan_bytes(struct walscan *s, size_t file, uint64_t at, void *out, size_t len)
{
	return sys_read_all(s->files[file].fd, out, len, (off_t)at);
}

/* ---- the chain */

static int report(struct walscan *s, uint64_t seq, const char *what, uint64_t from, uint64_t to,
		  uint64_t next_lsn)
{
	s->damaged = true;
	return s->damage(s, seq, what, from, to, s->lsn, next_lsn - 1, s->user);
}

/* The newest file in use that is below index `i` and not before `start`. */
static struct walscan_file *newest_below(struct walscan *s, size_t i, struct wal_pos start)
{
	while (i > 0) {
		struct walscan_file *f = &s->files[--i];

		if (f->seq < start.seq)
			return NULL;
		if (f->used)
			return f;
	}
	return NULL;
}

/* Where the segment before `f` ended, as f says: still of interest? */
static bool goes_on(const struct walscan_file *f, struct wal_pos start)
{
	return f->head.prev.seq != 0 && wal_before(start, f->head.prev);
}

/* Mark what counts. A segment that should be there and is not leaves a break:
 * the next lower one is taken up to wherever its batches end. */
static void follow_chain(struct walscan *s, struct wal_pos start)
{
	struct walscan_file *f = newest_below(s, s->nfiles, start), *prev;

	if (f != NULL) {
		f->end = WALSCAN_TO_END;
		f->last = true;
	}
	while (f != NULL) {
		f->counts = true;
		prev = newest_below(s, (size_t)(f - s->files), start);
		/* What lies between was never synced. */
		while (prev != NULL && goes_on(f, start) && prev->seq > f->head.prev.seq)
			prev = newest_below(s, (size_t)(prev - s->files), start);
		if (prev == NULL || (f->copies > 0 && !goes_on(f, start)))
			return;
		prev->end = prev->seq == f->head.prev.seq ? f->head.prev.at : WALSCAN_TO_END;
		prev->next_lsn = f->head.first_lsn;
		f = prev;
	}
}

/* ---- one segment */

static bool is_aborted(const struct walscan *s, size_t file, const struct wal_batch *b)
{
	for (size_t i = file + 1; i < s->nfiles; i++)
		if (s->files[i].counts && s->files[i].abort_first != 0 &&
		    b->first_lsn >= s->files[i].abort_first &&
		    b->first_lsn <= s->files[i].abort_last)
			return true;
	return false;
}

static int take_batch(struct walscan *s, size_t file, const struct wal_batch *b)
{
	s->lsn = MAX(s->lsn, b->first_lsn + b->lsn_count);
	if (b->len == 0)
		return 0; /* a mark */
	if (is_aborted(s, file, b)) {
		s->aborted++;
		return 0;
	}
	return s->batch(s, file, b, s->buf + b->at + WAL_BATCH_HEAD, s->user);
}

/* The first valid batch at or behind `at`; false: none. */
static bool find_batch(const struct walscan *s, size_t len, uint64_t at, uint32_t salt,
		       struct wal_batch *b)
{
	for (; at + WAL_BATCH_HEAD <= len; at += WAL_ALIGN)
		if (wal_batch_get(s->buf, len, at, salt, b))
			return true;
	return false;
}

/* Is there a batch of a flush that began behind `at`? */
static bool later_flush(const struct walscan *s, size_t len, uint64_t at, uint32_t salt)
{
	struct wal_batch b;

	for (uint64_t from = at + WAL_ALIGN; find_batch(s, len, from, salt, &b);
	     from = b.at + WAL_BATCH_HEAD + b.len)
		if (b.flush > at)
			return true;
	return false;
}

/* A clean end is followed by zeros, or by the end of the file. */
static bool clean_end(const struct walscan *s, size_t len, uint64_t at)
{
	static const unsigned char zeros[WAL_GAP];

	return memcmp(s->buf + at, zeros, MIN(len - at, (size_t)WAL_GAP)) == 0;
}

/* How much was cut off, as far as the rest still says it. */
static uint64_t torn_length(const struct walscan *s, size_t len, uint64_t at)
{
	uint64_t page_end = MIN((at / WAL_PAGE + 1) * WAL_PAGE, (uint64_t)len), last = at;

	for (uint64_t i = at; i < page_end; i++)
		if (s->buf[i] != 0)
			last = i + 1;
	return last - at;
}

/* Nothing valid stands at `at`. Returns where to go on, or `len` to stop. */
static int skip_bad(struct walscan *s, struct walscan_file *f, size_t len, uint64_t *at)
{
	struct wal_batch next;
	bool found = find_batch(s, len, *at + WAL_ALIGN, f->head.salt, &next);
	uint64_t from = *at;

	*at = found ? next.at : len;
	if (f->end == WALSCAN_TO_END) {
		bool torn = !clean_end(s, len, from);

		if (!found && !torn)
			return 0;
		if (f->last && (!found || !later_flush(s, len, from, f->head.salt))) {
			s->torn_bytes += found ? next.at - from : torn_length(s, len, from);
			s->damaged = true;
			*at = len;
			s->end.at = from;
			return 0;
		}
	}
	return report(s, f->seq, "damaged batch", from, found ? *at : MAX(*at, from),
		      found ? next.first_lsn : MAX(f->next_lsn, s->lsn));
}

static int load(struct walscan *s, struct walscan_file *f, size_t *len)
{
	ssize_t n;

	if (s->cap < f->head.size) {
		free(s->buf);
		s->cap = 0;
		s->buf = malloc(f->head.size);
		if (s->buf == NULL) {
			errno = ENOMEM;
			return -1;
		}
		s->cap = f->head.size;
	}
	if (open_file(s, f) != 0)
		return -1;
	n = read_some(f->fd, s->buf, f->head.size, 0);
	*len = n < 0 ? 0 : (size_t)n;
	return n < 0 ? -1 : 0;
}

static void count_void(struct walscan *s, const struct walscan_file *f, size_t len)
{
	struct wal_batch b;

	for (uint64_t at = f->end; at < len && wal_batch_get(s->buf, len, at, f->head.salt, &b);
	     at += WAL_BATCH_HEAD + b.len)
		s->aborted += b.len != 0;
}

/* A crash may leave one copy of a header that was never synced; with a later
 * flush, or a segment, behind it, it was. */
static int check_copies(struct walscan *s, const struct walscan_file *f, size_t have)
{
	if (f->copies == 2)
		return 0;
	if (f->copies == 1 && f->last && !later_flush(s, have, WAL_BEGIN, f->head.salt))
		return 0;
	if (f->copies == 1)
		return s->damage(s, f->seq, "damaged copy of the header", 0, 0, 1, 0, s->user);
	s->damaged = true;
	return s->damage(s, f->seq, "both copies of the header are damaged", 0, WAL_BEGIN, 1, 0,
			 s->user);
}

static int scan_file(struct walscan *s, size_t file, uint64_t at, struct ava_error *err)
{
	struct walscan_file *f = &s->files[file];
	struct wal_batch b;
	size_t have, len;
	int rv = 0;

	if (load(s, f, &have) != 0)
		return err_sys(err, "read segment %llx of wal", (unsigned long long)f->seq);
	rv = check_copies(s, f, have);
	len = f->end == WALSCAN_TO_END ? have : MIN(have, f->end);
	s->damaged = s->damaged || (f->last && have < f->head.size);
	s->lsn = MAX(s->lsn, f->head.first_lsn);
	s->end = (struct wal_pos){f->seq, at};
	while (rv == 0 && at < len) {
		if (!wal_batch_get(s->buf, len, at, f->head.salt, &b)) {
			rv = skip_bad(s, f, len, &at);
			continue;
		}
		rv = take_batch(s, file, &b);
		at += WAL_BATCH_HEAD + b.len;
		s->end.at = at;
	}
	if (f->last && s->damaged)
		s->tail_bytes = f->head.size - s->end.at;
	if (rv == 0 && f->end != WALSCAN_TO_END && have < f->end)
		rv = report(s, f->seq, "segment is cut off", MAX(at, (uint64_t)have), f->end,
			    MAX(f->next_lsn, s->lsn));
	else if (f->end != WALSCAN_TO_END)
		count_void(s, f, have);
	return rv;
}

/* Before the segment `f`: is one missing between it and what was read? */
static int check_missing(struct walscan *s, const struct walscan_file *f, uint64_t before,
			 struct wal_pos start)
{
	if (start.seq == 0 || !goes_on(f, start) || f->head.prev.seq == before)
		return 0;
	return report(s, f->head.prev.seq, "segment is missing or its header is damaged", 0,
		      f->head.prev.at, f->head.first_lsn);
}

/* Files above the newest one in use whose headers are gone. Batches with lower
 * lsn than that one's are what a spare file held before. */
static int find_headless(struct walscan *s, struct wal_pos start, struct ava_error *err)
{
	struct wal_batch b;
	size_t i = s->nfiles, len;
	uint64_t least;

	while (i > 0 && !s->files[i - 1].used)
		i--;
	least = i > 0 ? s->files[i - 1].head.first_lsn : s->least_lsn;
	for (; i < s->nfiles; i++) {
		struct walscan_file *f = &s->files[i];

		if (f->head.seq != f->seq || f->head.salt == 0 || f->seq < start.seq)
			continue;
		if (load(s, f, &len) != 0)
			return err_sys(err, "read segment %llx of wal", (unsigned long long)f->seq);
		if (!wal_batch_get(s->buf, len, WAL_BEGIN, f->head.salt, &b) ||
		    (b.first_lsn < least && (f->seq != start.seq || start.at == WAL_BEGIN)) ||
		    !later_flush(s, len, WAL_BEGIN, f->head.salt))
			continue;
		f->used = true;
		f->head.first_lsn = b.first_lsn;
	}
	return 0;
}

int walscan_run(struct walscan *s, struct wal_pos start, bool clean, struct ava_error *err)
{
	uint64_t before = 0;
	int rv = find_headless(s, start, err);

	if (rv == 0)
		follow_chain(s, start);
	for (size_t i = 0; i < s->nfiles && rv == 0; i++) {
		struct walscan_file *f = &s->files[i];

		if (!f->counts)
			continue;
		rv = check_missing(s, f, before, start);
		if (rv == 0)
			rv = scan_file(s, i, f->seq == start.seq ? start.at : WAL_BEGIN, err);
		before = f->seq;
	}
	/* A checkpoint inside of a segment: that segment was there. */
	if (rv == 0 && before == 0 && !clean && start.at > WAL_BEGIN)
		rv = report(s, start.seq, "segment is missing or its header is damaged", start.at,
			    start.at, s->lsn);
	return rv;
}

/* Work at open before the journal takes commits; recovery.h and doc/JOURNAL.md.
 *
 * Happy path after a clean end: read the checkpoint and the segment headers, find nothing behind
 * it. After a crash: read the segments behind the checkpoint, redo them (redo.c), sync, write a
 * checkpoint that points behind all of it, then remove the blobs. Only that checkpoint gives up
 * the old segments, so a kill anywhere before leaves the same work to be done again. An error of
 * the disk ends the open with nothing given up; on a full one the spare segments are removed
 * first and everything is done once more.
 *
 * Each segment's header says where the valid part of the one before it ends, so the chain is
 * followed backwards from the newest. Within a segment batches follow each other; at an invalid
 * place the next valid batch is looked for. In a segment that has a successor everything up to
 * its end was synced, so a gap there is damage. In the last one a crash may have cut a flush: a
 * gap there is damage only when a valid batch of a later flush follows, because that flush began
 * after this one was synced.
 *
 * A newest segment that lost both copies of its header is still known by its first batch, which
 * says its own salt and place, and by a later flush behind it: without one it may be a first
 * flush that a crash cut. */
#include "journal/recovery.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/le.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/segments.h"
#include "journal/wal.h"
#include "journal/ballast.h"
#include "journal/files.h"
#include "journal/redo.h"

#define TEXT_MAX ((size_t)256 << 20)
/* Upper bound of the numbers in a cut tail: each took at least "lsn":1 in its bytes; and so many
 * more may have been burned between. */
#define LSN_BYTES  7
#define LSN_MARGIN 65536

#define HEAD_BYTES     (WAL_BEGIN + 256) /* bytes of the header and of an ABORT behind it */
#define SIZE_MAX_ALONE ((off_t)1 << 30)  /* largest size of a segment whose headers are lost */
#define TO_END         UINT64_MAX

struct segment {
	uint64_t seq;                     /* number in the file's name */
	int copies;                       /* good copies of the header that name this seq */
	bool looked;                      /* the headers were read */
	bool used;                        /* copies > 0, or the batches show it */
	struct wal_segment head;          /* valid when used; pieced together when copies is 0 */
	bool counts;                      /* the segment belongs to the chain that is read */
	bool last;                        /* no segment follows, so the end may be torn */
	uint64_t end;                     /* end of what counts; TO_END: not known */
	uint64_t next_lsn;                /* first lsn of the next segment; 0: none */
	uint64_t abort_first, abort_last; /* lsns that the segment's ABORT names; 0: none */
	int fd;                           /* -1: not open */
};

struct recovery_scan {
	int rootfd, walfd;
	struct checkpoint checkpoint;
	bool known; /* a checkpoint was found */
	struct redo redo;
	struct segment *segments; /* ascending by seq */
	size_t n, cap;
	uint64_t torn_bytes, aborted, lsn; /* lsn: the first behind the last batch */
	uint64_t tail_bytes;               /* bytes that may have held more batches */
	uint64_t end;                      /* where reading of the last segment ended */
	uint64_t holes;                    /* places where batches are missing */
	bool damaged;                      /* something was dropped or is missing */
	unsigned char *buf;                /* room for one segment */
	size_t buf_cap;
};

/* ---- what is there */

static void list_one(const char *name, void *user)
{
	uint64_t seq = segments_number(name);
	struct recovery_scan *s = user;

	if (seq == 0 || s->cap == SIZE_MAX)
		return;
	if (!ARRAY_ROOM(s->segments, s->cap, s->n + 1)) {
		s->cap = SIZE_MAX; /* no memory: the list cannot grow */
		return;
	}
	s->segments[s->n++] = (struct segment){.seq = seq, .fd = -1};
}

static int by_seq(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	return order_of(x->seq, y->seq);
}

static int recovery_open_file(struct recovery_scan *s, struct segment *f)
{
	char name[SEGMENTS_NAME];
	struct stat st;

	if (f->fd >= 0)
		return 0;
	segments_name(f->seq, name);
	f->fd = files_open(s->walfd, name, O_RDONLY);
	if (f->fd >= 0 && sys->fstat(f->fd, &st) == 0 && !S_ISREG(st.st_mode))
		files_close(&f->fd);
	else if (f->fd >= 0 || (errno != ELOOP && errno != ENXIO))
		return f->fd >= 0 ? 0 : -1;
	/* The entry is no segment. Put it aside, so that a segment file can take its name. */
	if (sys_put_aside(s->walfd, name) != 0)
		return -1;
	f->fd = files_open(s->walfd, name, O_RDWR | O_CREAT);
	return f->fd >= 0 ? 0 : -1;
}

static void read_abort(struct segment *f, const unsigned char *page, size_t len)
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

/* Both headers are bad, and neither is an older segment's: the file may be in use all the same,
 * which find_headless() decides. */
static int read_headless(struct segment *f, const unsigned char *page)
{
	struct stat st;

	if (wal_segment_get(page, 0, &f->head) > 0)
		return 0; /* a spare segment has the header of its former use */
	if (sys->fstat(f->fd, &st) != 0)
		return -1;
	f->head = (struct wal_segment){.seq = f->seq};
	if (S_ISREG(st.st_mode) && st.st_size > HEAD_BYTES && st.st_size <= SIZE_MAX_ALONE) {
		f->head.size = (uint64_t)st.st_size;
		f->head.salt = wal_batch_salt(page, WAL_BEGIN);
	}
	return 0;
}

static int recovery_read_head(struct recovery_scan *s, struct segment *f)
{
	unsigned char page[HEAD_BYTES] = {0};
	ssize_t n;
	int rv;

	if (recovery_open_file(s, f) != 0)
		return -1;
	n = sys_read_some(f->fd, page, sizeof(page), 0);
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

static int list_segments(struct recovery_scan *s, struct ava_error *err)
{
	if (sys->list(s->walfd, ".", list_one, s) != 0)
		return err_sys(err, "list wal");
	if (s->cap == SIZE_MAX)
		return AVA_ENOMEM;
	if (s->n > 0)
		qsort(s->segments, s->n, sizeof(s->segments[0]), by_seq);
	for (size_t i = 0; i < s->n; i++)
		if (recovery_read_head(s, &s->segments[i]) != 0)
			return err_sys(err, "read segment %llx of wal",
				       (unsigned long long)s->segments[i].seq);
	return 0;
}

/* ---- the chain */

/* Report a gap, but not as lost: these bytes are the journal's; the operations in them may
 * already be in their views. */
static void recovery_tell(struct recovery_scan *s, uint64_t seq, const char *what, uint64_t from,
			  uint64_t to, uint64_t next_lsn)
{
	char path[64], text[160];

	snprintf(path, sizeof(path), "wal/%016llx.seg", (unsigned long long)seq);
	if (s->lsn < next_lsn)
		snprintf(text, sizeof(text), "%s at %llu, lsn %llu to %llu", what,
			 (unsigned long long)from, (unsigned long long)s->lsn,
			 (unsigned long long)next_lsn - 1);
	else
		snprintf(text, sizeof(text), "%s at %llu", what, (unsigned long long)from);
	redo_problem(&s->redo, path, text, to - from, "");
	s->redo.lost -= to - from;
	s->holes += s->lsn < next_lsn || to > from;
}

/* Bytes [from, to) of a segment hold no batch though they should; lsn up to `next_lsn` may have
 * been there. */
static void report(struct recovery_scan *s, uint64_t seq, const char *what, uint64_t from,
		   uint64_t to, uint64_t next_lsn)
{
	s->damaged = true;
	recovery_tell(s, seq, what, from, to, next_lsn);
}

/* The newest file in use that is below index `i` and not before `start`. */
static struct segment *newest_below(struct recovery_scan *s, size_t i, struct wal_pos start)
{
	while (i > 0) {
		struct segment *f = &s->segments[--i];

		if (f->seq < start.seq)
			return NULL;
		if (f->used)
			return f;
	}
	return NULL;
}

/* Is the end of the segment before `f`, as f's header gives it, behind the start? */
static bool recovery_goes_on(const struct segment *f, struct wal_pos start)
{
	return f->head.prev.seq != 0 && wal_before(start, f->head.prev);
}

/* Mark the segments that count. A missing segment leaves a break: the next lower one is read to
 * the end of its batches. */
static void follow_chain(struct recovery_scan *s, struct wal_pos start)
{
	struct segment *f = newest_below(s, s->n, start), *prev;

	if (f != NULL) {
		f->end = TO_END;
		f->last = true;
	}
	while (f != NULL) {
		f->counts = true;
		prev = newest_below(s, (size_t)(f - s->segments), start);
		/* Segments between the two were never synced. */
		while (prev != NULL && recovery_goes_on(f, start) && prev->seq > f->head.prev.seq)
			prev = newest_below(s, (size_t)(prev - s->segments), start);
		if (prev == NULL || (f->copies > 0 && !recovery_goes_on(f, start)))
			return;
		prev->end = prev->seq == f->head.prev.seq ? f->head.prev.at : TO_END;
		prev->next_lsn = f->head.first_lsn;
		f = prev;
	}
}

/* ---- one segment */

static bool is_aborted(const struct recovery_scan *s, size_t file, const struct wal_batch *b)
{
	for (size_t i = file + 1; i < s->n; i++)
		if (s->segments[i].counts && s->segments[i].abort_first != 0 &&
		    b->first_lsn >= s->segments[i].abort_first &&
		    b->first_lsn <= s->segments[i].abort_last)
			return true;
	return false;
}

static int take_batch(struct recovery_scan *s, size_t file, const struct wal_batch *b)
{
	s->lsn = MAX(s->lsn, b->first_lsn + b->lsn_count);
	if (b->len == 0)
		return 0; /* an empty batch is a mark */
	if (is_aborted(s, file, b)) {
		s->aborted++;
		return 0;
	}
	return redo_batch(&s->redo, s->segments[file].fd, b, s->buf + b->at + WAL_BATCH_HEAD);
}

/* The first valid batch at or behind `at`; false: none. */
static bool find_batch(const struct recovery_scan *s, size_t len, uint64_t at, uint32_t salt,
		       struct wal_batch *b)
{
	for (; at + WAL_BATCH_HEAD <= len; at += WAL_ALIGN)
		if (wal_batch_get(s->buf, len, at, salt, b))
			return true;
	return false;
}

/* Is there a batch of a flush that began behind `at`? */
static bool later_flush(const struct recovery_scan *s, size_t len, uint64_t at, uint32_t salt)
{
	struct wal_batch b;

	for (uint64_t from = at + WAL_ALIGN; find_batch(s, len, from, salt, &b);
	     from = b.at + WAL_BATCH_HEAD + b.len)
		if (b.flush > at)
			return true;
	return false;
}

/* Length of the cut-off bytes, as far as the remaining ones show it. */
static uint64_t torn_length(const struct recovery_scan *s, size_t len, uint64_t at)
{
	uint64_t page_end = MIN((at / WAL_PAGE + 1) * WAL_PAGE, (uint64_t)len), last = at;

	for (uint64_t i = at; i < page_end; i++)
		if (s->buf[i] != 0)
			last = i + 1;
	return last - at;
}

/* No valid batch stands at *at, which becomes the place to go on at, or `len` to stop. */
static void skip_bad(struct recovery_scan *s, struct segment *f, size_t len, uint64_t *at)
{
	static const unsigned char zeros[WAL_GAP];
	struct wal_batch next;
	bool found = find_batch(s, len, *at + WAL_ALIGN, f->head.salt, &next);
	uint64_t from = *at;

	*at = found ? next.at : len;
	if (f->end == TO_END) {
		/* A clean end is followed by zeros, or by the end of the file. */
		bool torn = memcmp(s->buf + from, zeros, MIN(len - from, (size_t)WAL_GAP)) != 0;

		if (!found && !torn)
			return;
		if (f->last && (!found || !later_flush(s, len, from, f->head.salt))) {
			s->torn_bytes += found ? next.at - from : torn_length(s, len, from);
			s->damaged = true;
			*at = len;
			s->end = from;
			return;
		}
	}
	report(s, f->seq, "damaged batch", from, found ? *at : MAX(*at, from),
	       found ? next.first_lsn : MAX(f->next_lsn, s->lsn));
}

static int recovery_load(struct recovery_scan *s, struct segment *f, size_t *len)
{
	ssize_t n;

	if (s->buf_cap < f->head.size) {
		free(s->buf);
		s->buf_cap = 0;
		s->buf = malloc(f->head.size);
		if (s->buf == NULL) {
			errno = ENOMEM;
			return -1;
		}
		s->buf_cap = f->head.size;
	}
	if (recovery_open_file(s, f) != 0)
		return -1;
	n = sys_read_some(f->fd, s->buf, f->head.size, 0);
	*len = n < 0 ? 0 : (size_t)n;
	return n < 0 ? -1 : 0;
}

/* A crash may leave a single copy of a header that was never synced; a later flush or segment
 * proves that it was, and the other copy is damaged. */
static void check_copies(struct recovery_scan *s, const struct segment *f, size_t have)
{
	if (f->copies == 2 ||
	    (f->copies == 1 && f->last && !later_flush(s, have, WAL_BEGIN, f->head.salt)))
		return;
	if (f->copies == 1) {
		recovery_tell(s, f->seq, "damaged copy of the header", 0, 0, 0);
		return;
	}
	s->damaged = true;
	recovery_tell(s, f->seq, "both copies of the header are damaged", 0, WAL_BEGIN, 0);
}

static int recovery_scan_file(struct recovery_scan *s, size_t file, uint64_t at,
			      struct ava_error *err)
{
	struct segment *f = &s->segments[file];
	struct wal_batch b;
	size_t have, len;
	int rv = 0;

	if (recovery_load(s, f, &have) != 0)
		return err_sys(err, "read segment %llx of wal", (unsigned long long)f->seq);
	check_copies(s, f, have);
	len = f->end == TO_END ? have : MIN(have, f->end);
	s->damaged = s->damaged || (f->last && have < f->head.size);
	s->lsn = MAX(s->lsn, f->head.first_lsn);
	s->end = at;
	while (rv == 0 && at < len) {
		if (!wal_batch_get(s->buf, len, at, f->head.salt, &b)) {
			skip_bad(s, f, len, &at);
			continue;
		}
		rv = take_batch(s, file, &b);
		at += WAL_BATCH_HEAD + b.len;
		s->end = at;
	}
	if (f->last && s->damaged)
		s->tail_bytes = f->head.size - s->end;
	if (rv == 0 && f->end != TO_END && have < f->end)
		report(s, f->seq, "segment is cut off", MAX(at, (uint64_t)have), f->end,
		       MAX(f->next_lsn, s->lsn));
	else if (f->end != TO_END)
		for (at = f->end; at < have && wal_batch_get(s->buf, have, at, f->head.salt, &b);
		     at += WAL_BATCH_HEAD + b.len)
			s->aborted += b.len != 0;
	return rv;
}

/* Find segments without headers above the newest one in use. Batches with a lower lsn than that
 * one's are of a spare file's former use. */
static int find_headless(struct recovery_scan *s, struct wal_pos start, struct ava_error *err)
{
	struct wal_batch b;
	size_t i = s->n, len;
	uint64_t least;

	while (i > 0 && !s->segments[i - 1].used)
		i--;
	least = i > 0 ? s->segments[i - 1].head.first_lsn : s->checkpoint.lsn;
	for (; i < s->n; i++) {
		struct segment *f = &s->segments[i];

		if (f->head.seq != f->seq || f->head.salt == 0 || f->seq < start.seq)
			continue;
		if (recovery_load(s, f, &len) != 0)
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

/* Read everything behind the checkpoint; without a checkpoint, all segments. */
static int scan_wal(struct recovery_scan *s, struct ava_error *err)
{
	struct wal_pos start = s->checkpoint.pos;
	uint64_t before = 0;
	int rv = find_headless(s, start, err);

	if (rv == 0)
		follow_chain(s, start);
	for (size_t i = 0; i < s->n && rv == 0; i++) {
		struct segment *f = &s->segments[i];

		if (!f->counts)
			continue;
		if (start.seq != 0 && recovery_goes_on(f, start) && f->head.prev.seq != before)
			report(s, f->head.prev.seq, "segment is missing or its header is damaged",
			       0, f->head.prev.at, f->head.first_lsn);
		rv = recovery_scan_file(s, i, f->seq == start.seq ? start.at : WAL_BEGIN, err);
		before = f->seq;
	}
	/* The checkpoint is inside of a segment, so that segment must exist. */
	if (rv == 0 && before == 0 && !s->checkpoint.clean && start.at > WAL_BEGIN)
		report(s, start.seq, "segment is missing or its header is damaged", start.at,
		       start.at, s->lsn);
	return rv;
}

/* Make the read bytes durable: after a kill the last flush may be in memory only, and operations
 * redone from it must not outlive it. */
static int sync_wal(struct recovery_scan *s, struct ava_error *err)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->segments[i].counts && s->segments[i].fd >= 0 &&
		    sys->fdatasync(s->segments[i].fd) != 0)
			return err_sys(err, "sync wal/%016llx.seg",
				       (unsigned long long)s->segments[i].seq);
	return 0;
}

/* ---- files beside the segments */

/* Make durable the names of the root and of folders made for it before relying on their content:
 * at the first start, and again when that was cut. A folder that cannot be opened was not made
 * by us. */
static int sync_above(int rootfd)
{
	struct stat below, st;
	int dir = -1, up, rv = sys->fstat(rootfd, &below);

	while (rv == 0) {
		up = sys->openat(dir < 0 ? rootfd : dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				 0);
		files_close(&dir);
		dir = up;
		if (dir < 0)
			return 0;
		rv = sys->fstat(dir, &st);
		if (rv == 0 && st.st_ino == below.st_ino && st.st_dev == below.st_dev)
			break; /* `dir` is / */
		below = st;
		if (rv == 0 && sys->fsync(dir) != 0 && errno != EINVAL && errno != EROFS)
			rv = -1;
	}
	files_close(&dir);
	return rv;
}

int recovery_check_format(int rootfd, struct ava_error *err)
{
	static const char name[] = "FORMAT", ours[] = RECOVERY_FORMAT;
	int fd = files_open(rootfd, name, O_RDONLY), rv;
	struct stat st;
	char *text;
	size_t len;

	files_close(&fd); /* the open made an unreadable file readable */
	if (sys->fstatat(rootfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode) &&
	    sys_put_aside(rootfd, name) != 0)
		return err_sys(err, "put FORMAT aside");
	rv = sys_read_file(rootfd, name, 4096, &text, &len, err);

	if (rv == AVA_ENOENT) {
		if (sync_above(rootfd) != 0)
			return err_sys(err, "sync the folders above the data root");
		if (files_replace(rootfd, name, ours, sizeof(ours) - 1, true) != 0)
			return err_sys(err, "write FORMAT");
		return 0;
	}
	if (rv != 0)
		return err_wrap(err, rv,
				"FORMAT must hold \"%.*s\": put it back, or use another data root",
				(int)sizeof(ours) - 2, ours);
	if (strncmp(text, "ava ", 4) != 0 || text[4] < '0' || text[4] > '9')
		rv = err_set(err, AVA_EFORMAT,
			     "FORMAT is damaged (\"%.*s\"; this version writes \"%.*s\"): put it "
			     "back, or use another data root",
			     (int)MIN(strcspn(text, "\n"), (size_t)40), text, (int)sizeof(ours) - 2,
			     ours);
	else if (len != sizeof(ours) - 1 || memcmp(text, ours, len) != 0)
		rv = err_set(
			err, AVA_EFORMAT,
			"this data was written by another version of ava (FORMAT says \"%.*s\","
			" this one knows \"%.*s\"): use the one that wrote it, or another root",
			(int)strcspn(text, "\n"), text, (int)sizeof(ours) - 2, ours);
	free(text);
	if (rv == 0)
		files_drop_temp(rootfd, name); /* left by a crash in the first start */
	return rv;
}

static int read_checkpoint(struct recovery_scan *s, struct ava_error *err)
{
	struct ava_error e;
	int rv = checkpoint_read(s->rootfd, &s->checkpoint, &e);

	s->known = rv == 0;
	if (rv == 0 || rv == AVA_ENOENT)
		return 0;
	if (rv != AVA_ECORRUPT && rv != AVA_ETOOBIG && rv != AVA_EINVAL)
		return err_set(err, rv, "%s", e.text);
	redo_problem(&s->redo, CHECKPOINT_PATH, e.text, 0, "");
	return 0;
}

/* ---- the end */

static uint64_t newest_used(const struct recovery_scan *s)
{
	for (size_t i = s->n; i > 0; i--)
		if (s->segments[i - 1].used)
			return s->segments[i - 1].seq;
	return 0;
}

/* Write a checkpoint behind everything that was read; it gives up the old segments. */
static int fresh_checkpoint(struct recovery_scan *s, struct recovery *out, struct ava_error *err)
{
	struct buf text;
	int rv;

	out->pos = (struct wal_pos){MAX(newest_used(s) + 1, s->checkpoint.pos.seq), WAL_BEGIN};
	buf_init(&text, TEXT_MAX);
	checkpoint_head(&text, false, out->pos, out->lsn);
	redo_views(&s->redo, &s->checkpoint, &text);
	rv = checkpoint_end(&text);
	if (rv != 0)
		rv = AVA_ENOMEM;
	else if (checkpoint_write(s->rootfd, &text) != 0)
		rv = err_sys(err, "write %s", CHECKPOINT_PATH);
	buf_fini(&text);
	return rv;
}

static int recovery_finish(struct recovery_scan *s, struct recovery *out, struct ava_error *err)
{
	bool something = s->redo.batches > 0 || s->damaged || s->redo.nproblems > 0 ||
			 s->aborted > 0 || (!s->known && s->n > 0);

	out->lsn = MAX(MAX(s->checkpoint.lsn, s->lsn), MAX(s->redo.lsn, (uint64_t)1));
	if (s->damaged)
		out->lsn += s->tail_bytes / LSN_BYTES + LSN_MARGIN;
	out->next_seq = MAX(s->n > 0 ? s->segments[s->n - 1].seq : 0, s->checkpoint.pos.seq) + 1;
	out->pos = s->checkpoint.pos;
	out->report.clean = s->known ? s->checkpoint.clean && !something : s->n == 0;
	if (something) {
		int rv = fresh_checkpoint(s, out, err);

		if (rv != 0)
			return rv;
		if (blob_remove(s->walfd, UINT64_MAX) < 0)
			return err_sys(err, "remove blobs of wal");
	} else if (s->known && files_sync_dir(s->walfd, ".") != 0) {
		/* Its name may be in memory only, and what it gives up must not go before it. */
		return err_sys(err, "sync the checkpoint in wal");
	}
	/* A segment that was never begun is no predecessor. */
	out->good = out->pos.at > WAL_BEGIN ? out->pos : (struct wal_pos){0, 0};
	out->next_seq = MAX(out->next_seq, out->pos.seq);
	out->segments = calloc(s->n + 1, sizeof(out->segments[0]));
	if (out->segments == NULL)
		return AVA_ENOMEM;
	for (size_t i = 0; i < s->n; i++)
		out->segments[out->nsegments++] = (struct recovery_segment){
			s->segments[i].seq, s->segments[i].used, s->segments[i].copies > 0};
	return 0;
}

static int take_report(struct recovery_scan *s, struct recovery *out)
{
	struct journal_recovery *rep = &out->report;

	jw_end(&s->redo.json);
	out->problems = buf_take(&s->redo.problems, NULL);
	if (out->problems == NULL)
		return AVA_ENOMEM;
	rep->problems = out->problems;
	rep->nproblems = s->redo.nproblems;
	rep->redone_batches = s->redo.batches;
	rep->redone_bytes = s->redo.total;
	rep->torn_bytes = s->torn_bytes;
	rep->aborted_batches = s->aborted;
	rep->damaged_batches = s->holes;
	rep->lost_bytes = s->redo.lost;
	return 0;
}

/* Remove spare segments, with an older header or zeros where the first batch would be, to gain
 * room: they are made again, and segments that this recovery gives up serve until then. A
 * segment that a crash left half made goes too. One with damaged headers may have been in use
 * and stays. False: there was none. */
static bool recovery_make_room(const struct recovery_scan *s)
{
	char name[SEGMENTS_NAME];
	bool made = sys->unlinkat(s->walfd, SEGMENTS_FRESH, 0) == 0;

	while (ballast_give(s->rootfd, ENOSPC))
		made = true;
	if (made)
		return true;

	for (size_t i = 0; i < s->n; i++) {
		const struct segment *f = &s->segments[i];

		if (!f->looked || f->used || (f->head.seq == f->seq && f->head.salt != 0))
			continue;
		segments_name(f->seq, name);
		made = sys->unlinkat(s->walfd, name, 0) == 0 || made;
	}
	return made;
}

static int run_once(int rootfd, int walfd, struct recovery *out, bool *again, struct ava_error *err)
{
	struct recovery_scan s = {.rootfd = rootfd, .walfd = walfd};
	int rv;

	*out = (struct recovery){0};
	rv = redo_init(&s.redo, rootfd, walfd);
	if (rv == 0)
		rv = read_checkpoint(&s, err);
	if (rv == 0)
		rv = list_segments(&s, err);
	if (rv == 0)
		rv = scan_wal(&s, err);
	if (rv == AVA_ECORRUPT)
		err_set(err, rv, "wal holds operations of another version");
	if (rv == 0 && s.redo.batches > 0)
		rv = sync_wal(&s, err);
	if (rv == 0)
		rv = redo_run(&s.redo, &s.checkpoint, err);
	if (rv == 0)
		rv = recovery_finish(&s, out, err);
	if (rv == 0)
		rv = take_report(&s, out);
	if (rv == AVA_ENOMEM)
		err_set(err, rv, "no memory for recovery");
	*again = rv == AVA_EFULL && recovery_make_room(&s);
	redo_fini(&s.redo);
	for (size_t i = 0; i < s.n; i++)
		files_close(&s.segments[i].fd);
	free(s.segments);
	free(s.buf);
	checkpoint_fini(&s.checkpoint);
	if (rv != 0)
		recovery_fini(out);
	return rv;
}

int recovery_run(int rootfd, int walfd, struct recovery *out, struct ava_error *err)
{
	struct ava_error e = {0};
	bool again;
	int rv = run_once(rootfd, walfd, out, &again, &e);

	while (again)
		rv = run_once(rootfd, walfd, out, &again, &e);
	if (rv == AVA_EFULL)
		return err_set(err, rv, "%s: make room and start again, nothing is lost", e.text);
	return rv == 0 ? 0 : err_set(err, rv, "%s", e.text);
}

void recovery_fini(struct recovery *r)
{
	free(r->problems);
	free(r->segments);
	r->problems = NULL;
	r->segments = NULL;
}

/* One log file, read line by line; read_file.h.
 *
 * Happy path: pread into a buffer that grows to the longest line, cut at
 * newlines, ask the query about each. A literal is looked for in all the
 * bytes of the buffer at once, not line by line.
 *
 * What can fail: a line that is no event is reported with its place and
 * passed over; the rest of the file is still read, since whoever looks at a
 * damaged log wants exactly that. A last line without a newline is not an
 * error here: its writer may be at it right now. A file that got shorter
 * while it was read is reported like a broken line. */
#include "journal/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/query_cover.h"

#define BLOCK ((size_t)128 << 10) /* of reading forward: half of a small L2 cache */
#define SMALL ((size_t)4 << 10)
#define FRONT 256                /* bytes that hold the front of a line */
#define TAIL  ((size_t)64 << 10) /* of looking from the end */

struct read_file_index {
	struct query_cover *cover; /* owned; NULL: another's */
	struct query_walk walk;
	struct query_gap gap; /* what is being looked at; to 0: nothing yet */
};

static int file_size(int fd, uint64_t *size, struct ava_error *err)
{
	struct stat st;

	if (sys->fstat(fd, &st) != 0)
		return err_sys(err, "look at it");
	if (!S_ISREG(st.st_mode))
		return err_set(err, AVA_EIO, "not a regular file");
	*size = (uint64_t)st.st_size;
	return 0;
}

int read_file_open(struct read_file *f, int rootfd, const char *path, bool growing,
		   struct ava_error *err)
{
	uint64_t size;
	int rv;

	*f = (struct read_file){.fd = -1, .path = path, .end = UINT64_MAX};
	/* NONBLOCK: opening a fifo must not wait for its writer. */
	f->fd = sys->openat(rootfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
	if (f->fd < 0)
		return err_sys(err, "%s", path);
	rv = file_size(f->fd, &size, err);
	if (rv != 0) {
		read_file_close(f);
		return err_wrap(err, rv, "%s", path);
	}
	if (!growing)
		f->end = size;
	return 0;
}

void read_file_close(struct read_file *f)
{
	if (f->fd >= 0)
		sys->close(f->fd);
	if (f->index != NULL) {
		query_walk_fini(&f->index->walk);
		query_cover_close(f->index->cover);
	}
	free(f->index);
	f->index = NULL;
	free(f->data);
	f->fd = -1;
	f->data = NULL;
	f->cap = f->from = f->to = f->scanned = 0;
}

static int room(struct read_file *f, size_t want, struct ava_error *err)
{
	char *grown;
	size_t cap = MAX(f->cap, MAX(want, SMALL)); /* no more than a small file needs */

	if (f->from > 0) {
		memmove(f->data, f->data + f->from, f->to - f->from);
		f->to -= f->from;
		f->from = 0;
	}
	while (cap - f->to < want)
		cap *= 2;
	if (cap == f->cap)
		return 0;
	grown = realloc(f->data, cap);
	if (grown == NULL)
		return err_set(err, AVA_ENOMEM, "%s: no memory for %zu bytes", f->path, cap);
	f->data = grown;
	f->cap = cap;
	return 0;
}

static ssize_t pread_again(int fd, void *data, size_t len, uint64_t at)
{
	ssize_t n;

	do
		n = sys->pread(fd, data, len, (off_t)at);
	while (n < 0 && errno == EINTR);
	return n;
}

/* At the end of what can be read: has the file become shorter than what was
 * already given out? Its line numbers mean nothing any more then. */
static int check_shrunk(struct read_file *f, struct ava_error *err)
{
	uint64_t size = 0, at = f->offset + (f->to - f->from), was;
	int rv = file_size(f->fd, &size, err);

	if (rv != 0)
		return err_wrap(err, rv, "%s", f->path);
	if (size >= at || at > f->end)
		return 0;
	was = f->offset;
	f->from = f->to = f->scanned = 0;
	f->offset = size;
	if (f->end != UINT64_MAX)
		f->end = size;
	return err_set(err, AVA_ECORRUPT,
		       "%s:%llu: the file was cut to %llu bytes while it was read", f->path,
		       (unsigned long long)was, (unsigned long long)size);
}

/* More bytes behind those that are there. 1: got some, 0: none now. */
static int fill(struct read_file *f, struct ava_error *err)
{
	uint64_t at = f->offset + (f->to - f->from);
	size_t want = MIN(BLOCK, f->end - at);
	ssize_t n;
	int rv;

	if (at >= f->end)
		return 0;
	if (f->index != NULL && at < f->index->gap.reach)
		want = MIN(want, f->index->gap.reach - at);
	rv = room(f, want, err);
	if (rv != 0)
		return rv;
	n = pread_again(f->fd, f->data + f->to, want, at);
	if (n < 0)
		return err_sys(err, "%s: read", f->path);
	if (n == 0)
		return check_shrunk(f, err);
	f->to += (size_t)n;
	if (at + (uint64_t)n == f->end && f->data[f->to - 1] == '\n') {
		sys->close(f->fd); /* all is here: many small files need no descriptor */
		f->fd = -1;
	}
	if (f->on_block != NULL)
		f->on_block((size_t)n, f->user);
	return 1;
}

static void consume(struct read_file *f, size_t len)
{
	f->from += len;
	f->offset += len;
	f->scanned = 0;
}

static int too_long(struct read_file *f, struct ava_error *err)
{
	uint64_t at = f->offset;

	consume(f, f->to - f->from);
	if (f->skipping)
		return 0;
	f->skipping = true;
	return err_set(err, AVA_ECORRUPT, "%s:%llu: a line of more than %zu MB", f->path,
		       (unsigned long long)at, READ_LINE_MAX >> 20);
}

/* Up to the next newline: 1, 0 (none left) or a code. */
static int next_newline(struct read_file *f, size_t *len, struct ava_error *err)
{
	for (;;) {
		size_t have = f->to - f->from;
		char *nl = NULL;
		int rv;

		if (have > f->scanned)
			nl = memchr(f->data + f->from + f->scanned, '\n', have - f->scanned);
		if (nl != NULL) {
			*len = (size_t)(nl - (f->data + f->from));
			return 1;
		}
		f->scanned = have;
		rv = have >= READ_LINE_MAX ? too_long(f, err) : 0;
		if (rv == 0)
			rv = fill(f, err);
		if (rv <= 0)
			return rv;
	}
}

/* Is it known that the literal is not in the line at [at, at + len)? Looks
 * ahead to the end of the buffer and remembers up to where there is none. */
static bool no_needle(struct read_file *f, const struct query_text *t, uint64_t at, size_t len)
{
	uint64_t buffered = f->offset + (f->to - f->from), from = MAX(at, f->clear);
	const char *hit;

	if (t->needle == NULL)
		return false;
	if (len < t->len || at + len - t->len < f->clear)
		return true;
	hit = query_text_find(t, f->data + f->from - (f->offset - from), buffered - from);
	if (hit != NULL)
		f->clear = f->offset - (uint64_t)(f->data + f->from - hit);
	else
		f->clear = MAX(from, buffered - t->len + 1);
	return at + len - t->len < f->clear;
}

static int broken(const struct read_file *f, const struct read_line *line, struct ava_error *err)
{
	return err_set(err, AVA_ECORRUPT, "%s:%llu: this line (%zu bytes) is not an event", f->path,
		       (unsigned long long)line->offset, line->len);
}

static int costly(const char *path, uint64_t offset, struct ava_error *err)
{
	return err_set(err, AVA_ETOOBIG,
		       "%s:%llu: the expression takes too long on this line: make it simpler", path,
		       (unsigned long long)offset);
}

/* To the next lines that may be wanted. */
static void jump(struct read_file *f)
{
	struct query_gap *gap = &f->index->gap;
	uint64_t ahead, here = f->to - f->from;

	if (f->offset < gap->to)
		return;
	f->index->walk.limit = f->stop != 0 ? f->stop : UINT64_MAX;
	query_walk_next(&f->index->walk, f->offset, gap);
	ahead = gap->from - f->offset;
	if (ahead > here) {
		read_file_seek(f, gap->from);
		if (f->on_block != NULL)
			f->on_block(ahead - here, f->user);
	} else if (ahead > 0) {
		consume(f, ahead);
	}
}

/* Lines that are known to be sound and without the literal need not be cut:
 * on to the one it stands in, or to the last that is here in part. */
static void pass(struct read_file *f, const struct query_text *t)
{
	uint64_t end = MIN(f->index->gap.to, f->offset + (f->to - f->from)), from;
	const char *hit, *upto, *nl;

	if (t->needle == NULL || !f->index->gap.sure || f->from == f->to || f->clear >= end)
		return;
	from = MAX(f->offset, f->clear);
	hit = query_text_find(t, f->data + f->from + (from - f->offset), end - from);
	upto = hit != NULL ? hit : f->data + f->from + (end - f->offset);
	f->clear = hit != NULL ? f->offset + (uint64_t)(hit - f->data - f->from)
			       : MAX(from, end - MIN(end, t->len - 1));
	nl = memrchr(f->data + f->from, '\n', (size_t)(upto - f->data) - f->from);
	if (nl != NULL)
		consume(f, (size_t)(nl + 1 - f->data) - f->from);
}

void read_file_share_index(struct read_file *f, const struct query_cover *cover,
			   const struct query *want)
{
	f->index = calloc(1, sizeof(*f->index));
	if (f->index != NULL) /* without memory: every line */
		query_walk_init(&f->index->walk, cover, want);
}

void read_file_use_index(struct read_file *f, int rootfd, const struct query *want, bool make)
{
	struct query_cover *cover;

	if (!query_cover_helps(want) || f->index != NULL)
		return;
	cover = query_cover_open(rootfd, f->path, f->fd, make && query_cover_pays(want));
	if (cover == NULL)
		return;
	read_file_share_index(f, cover, want);
	if (f->index != NULL)
		f->index->cover = cover;
	else
		query_cover_close(cover);
}

const struct query_cover *read_file_cover(const struct read_file *f)
{
	return f->index != NULL ? f->index->walk.cover : NULL;
}

int read_file_next(struct read_file *f, const struct query *want, struct read_line *line,
		   struct ava_error *err)
{
	for (;;) {
		enum query_answer answer;
		size_t len;
		int rv = 0;

		if (f->index != NULL && (f->stop == 0 || f->offset < f->stop)) {
			jump(f);
			pass(f, &want->text);
		}
		if (f->stop == 0 || f->offset < f->stop)
			rv = next_newline(f, &len, err);
		if (rv <= 0)
			return rv;
		line->text = f->data + f->from;
		line->len = len;
		line->offset = f->offset;
		consume(f, len + 1);
		if (f->skipping) { /* the end of what was reported already */
			f->skipping = false;
			continue;
		}
		answer = query_line(want, line->text, len,
				    no_needle(f, &want->text, line->offset, len), &line->view);
		if (answer == QUERY_YES)
			return 1;
		if (answer == QUERY_BROKEN)
			return broken(f, line, err);
		if (answer == QUERY_COSTLY)
			return costly(f->path, line->offset, err);
	}
}

void read_file_seek(struct read_file *f, uint64_t offset)
{
	f->offset = offset;
	f->from = f->to = f->scanned = 0;
	f->clear = 0;
	f->skipping = false;
}

/* The first line that begins behind `at`: where, and its lsn. False: none
 * within one block, or it is broken. */
static bool line_behind(const struct read_file *f, uint64_t at, char *block, uint64_t *offset,
			uint64_t *lsn)
{
	ssize_t n = pread_again(f->fd, block, TAIL, at);
	const char *nl = n > 0 ? memchr(block, '\n', (size_t)n) : NULL;

	if (nl == NULL)
		return false;
	*offset = at + (uint64_t)(nl + 1 - block);
	return query_lsn(nl + 1, (size_t)(block + n - (nl + 1)), lsn);
}

uint64_t read_file_after(const struct read_file *f, uint64_t after)
{
	uint64_t lo = 0, hi, offset, lsn;
	char *block;

	if (file_size(f->fd, &hi, NULL) != 0 || hi <= 2 * TAIL)
		return 0;
	block = malloc(TAIL);
	if (block == NULL)
		return 0; /* from the beginning, then */
	while (hi - lo > 2 * TAIL) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (!line_behind(f, mid, block, &offset, &lsn))
			break;
		if (lsn <= after)
			lo = offset;
		else
			hi = mid;
	}
	free(block);
	return lo;
}

int read_file_skip(struct read_file *f, struct ava_error *err)
{
	size_t len;
	int rv = next_newline(f, &len, err);

	if (rv == 1)
		consume(f, len + 1);
	return MIN(rv, 0);
}

size_t read_file_torn(const struct read_file *f)
{
	return f->to - f->from;
}

uint64_t read_file_first_lsn(int rootfd, const char *path)
{
	static const struct query all = QUERY_ALL;
	struct read_file f;
	struct read_line line;
	uint64_t lsn = 0;
	char front[FRONT];
	ssize_t n;
	int rv;

	if (read_file_open(&f, rootfd, path, false, NULL) != 0)
		return 0;
	n = pread_again(f.fd, front, sizeof(front), 0);
	if (n > 0 && query_lsn(front, (size_t)n, &lsn)) {
		read_file_close(&f);
		return lsn;
	}
	do
		rv = read_file_next(&f, &all, &line, NULL);
	while (rv == AVA_ECORRUPT);
	if (rv == 1)
		lsn = line.view.lsn;
	read_file_close(&f);
	return lsn;
}

/* ---- from the end */

struct tail {
	const struct query *want;
	uint64_t n, floor; /* how many; a line below this lsn ends the search */
	uint64_t count, start, first;
	uint64_t low;           /* a line begins here, and nothing before it is looked at */
	struct read_lsns *lsns; /* NULL: not asked for */
	bool enough;
	const char *path;
};

static bool add_lsn(struct read_lsns *l, uint64_t lsn)
{
	size_t cap = l->cap == 0 ? 256 : l->cap * 2;
	uint64_t *grown;

	if (l->n == l->cap) {
		grown = realloc(l->v, cap * sizeof(*grown));
		if (grown == NULL)
			return false;
		l->v = grown;
		l->cap = cap;
	}
	l->v[l->n++] = lsn;
	return true;
}

/* The lines of one block that begins at a line and ends behind a newline,
 * from its end. */
static int tail_block(struct tail *t, const char *data, size_t len, uint64_t offset,
		      struct ava_error *err)
{
	struct event_view v;

	while (len > 0 && !t->enough) {
		const char *nl = memrchr(data, '\n', len - 1);
		size_t at = nl != NULL ? (size_t)(nl - data) + 1 : 0;
		enum query_answer answer = query_line(t->want, data + at, len - 1 - at, false, &v);

		if (answer == QUERY_COSTLY)
			return costly(t->path, offset + at, err);
		len = at;
		if (answer != QUERY_YES)
			continue;
		if (t->lsns != NULL && !add_lsn(t->lsns, v.lsn))
			return err_set(err, AVA_ENOMEM, "%s: no memory", t->path);
		t->count++;
		t->start = offset + at;
		t->first = v.lsn;
		t->enough = t->count == t->n || v.lsn < t->floor;
	}
	return 0;
}

/* The whole lines in [*hi - size, *hi); *hi moves to where they begin. A line
 * longer than the block is tried again with more. */
static int tail_step(struct read_file *f, struct tail *t, uint64_t *hi, size_t *size,
		     struct ava_error *err)
{
	uint64_t lo = *hi - t->low > *size ? *hi - *size : t->low;
	size_t len = (size_t)(*hi - lo), from = 0, to;
	char *data = malloc(len), *nl;
	int rv = 0;

	if (data == NULL)
		return err_set(err, AVA_ENOMEM, "%s: no memory for %zu bytes", f->path, len);
	if (sys_read_all(f->fd, data, len, (off_t)lo) != 0) {
		rv = err_sys(err, "%s: read", f->path);
		goto out;
	}
	nl = memrchr(data, '\n', len);
	to = nl != NULL ? (size_t)(nl - data) + 1 : 0; /* behind it: a torn tail */
	nl = lo > t->low && to > 1 ? memchr(data, '\n', to - 1) : NULL;
	if (lo > t->low && nl == NULL) {
		*size *= 2;
		if (*size > 4 * READ_LINE_MAX)
			rv = err_set(err, AVA_ECORRUPT, "%s:%llu: a line of more than %zu MB",
				     f->path, (unsigned long long)lo, READ_LINE_MAX >> 20);
		goto out;
	}
	if (nl != NULL)
		from = (size_t)(nl - data) + 1;
	rv = tail_block(t, data + from, to - from, lo + from, err);
	*hi = lo + from;
	*size = TAIL;
out:
	free(data);
	return rv;
}

/* Stretches of a chunk that lie near each other, from its end, as one; *n are
 * left. What lies between is asked like the rest. */
static struct query_stretch last_stretch(const struct query_stretches *s, size_t *n)
{
	struct query_stretch last = s->v[--*n];

	while (*n > 0 && last.from - s->v[*n - 1].to < SMALL && last.to - s->v[*n - 1].from < BLOCK)
		last.from = s->v[--*n].from;
	return last;
}

static int tail_stretch(struct read_file *f, struct tail *t, uint64_t from, size_t len,
			struct ava_error *err)
{
	int rv = room(f, len, err);

	if (rv != 0)
		return rv;
	if (sys_read_all(f->fd, f->data, len, (off_t)from) != 0)
		return err_sys(err, "%s: read", f->path);
	return tail_block(t, f->data, len, from, err);
}

/* What its index covers, from the end. */
static int tail_index(struct read_file *f, struct tail *t, struct ava_error *err)
{
	const struct query_cover *cover = f->index->walk.cover;
	const struct query_index_head *h;
	struct query_walk w;
	size_t chunks = 0, n;
	int rv = 0;

	while ((h = query_cover_chunk(cover, chunks)) != NULL && h->at + h->bytes <= t->low)
		chunks++;
	query_walk_init(&w, cover, t->want);
	while (chunks-- > 0 && rv == 0 && !t->enough) {
		h = query_cover_chunk(cover, chunks);
		if (!query_walk_load(&w, chunks)) {
			rv = err_set(err, AVA_ENOMEM, "%s: no memory", f->path);
			break;
		}
		for (n = w.found.n; n > 0 && rv == 0 && !t->enough;) {
			struct query_stretch s = last_stretch(&w.found, &n);

			rv = tail_stretch(f, t, h->at + s.from, s.to - s.from, err);
		}
	}
	query_walk_fini(&w);
	return rv;
}

/* Where the part begins that no index covers. */
static uint64_t uncovered(const struct read_file *f, uint64_t size)
{
	const struct query_index_head *h;
	uint64_t at = 0;

	for (size_t i = 0; f->index != NULL; i++) {
		h = query_cover_chunk(f->index->walk.cover, i);
		if (h == NULL || h->at + h->bytes > size)
			break;
		at = h->at + h->bytes;
	}
	return at;
}

int read_file_last(struct read_file *f, const struct query *want, uint64_t n, uint64_t floor_lsn,
		   uint64_t *count, uint64_t *first, struct read_lsns *lsns, struct ava_error *err)
{
	struct tail t = {.want = want, .n = n, .floor = floor_lsn, .lsns = lsns, .path = f->path};
	size_t size = TAIL;
	uint64_t hi = 0;
	int rv = file_size(f->fd, &hi, err);

	if (rv != 0)
		return err_wrap(err, rv, "%s", f->path);
	hi = MIN(hi, f->end);
	t.low = uncovered(f, hi);
	while (rv == 0 && hi > t.low && !t.enough)
		rv = tail_step(f, &t, &hi, &size, err);
	if (rv == 0 && t.low > 0 && !t.enough)
		rv = tail_index(f, &t, err);
	if (rv != 0)
		return rv;
	/* Nothing wanted at all: read it from the front, for what is broken. */
	read_file_seek(f, t.count > 0 ? t.start : 0);
	*count = t.count;
	*first = t.first;
	return 0;
}

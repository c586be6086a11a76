/* One log file, read line by line; read_file.h.
 *
 * Happy path: pread into a buffer that grows to the longest line, cut at
 * newlines, look at the first hundred bytes of a line (lsn and event type
 * stand there in a fixed order), and take only a wanted line apart further.
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

#define BLOCK ((size_t)64 << 10)

#define HEAD     "{\"timestamp\":\""
#define HEAD_LSN "\",\"lsn\":"
#define HEAD_SEQ ",\"seq\":"
#define HEAD_TYP ",\"eventType\":\""

/* What the front of a line says, without reading the rest. */
struct front {
	uint64_t lsn;
	const char *type;
	size_t type_len;
};

static bool skip_text(const char **p, const char *end, const char *text, size_t len)
{
	if ((size_t)(end - *p) < len || memcmp(*p, text, len) != 0)
		return false;
	*p += len;
	return true;
}

static bool read_number(const char **p, const char *end, uint64_t *n)
{
	const char *start = *p;

	*n = 0;
	for (; *p < end && **p >= '0' && **p <= '9'; (*p)++)
		if (__builtin_mul_overflow(*n, 10, n) ||
		    __builtin_add_overflow(*n, (uint64_t)(**p - '0'), n))
			return false;
	return *p > start;
}

static bool line_front(const char *line, size_t len, struct front *f)
{
	const char *p = line, *end = line + len, *quote;
	uint64_t seq;

	if (!skip_text(&p, end, HEAD, sizeof(HEAD) - 1) || end - p < 24)
		return false;
	p += 24; /* the time: looked at when the line is wanted */
	if (!skip_text(&p, end, HEAD_LSN, sizeof(HEAD_LSN) - 1) || !read_number(&p, end, &f->lsn))
		return false;
	if (!skip_text(&p, end, HEAD_SEQ, sizeof(HEAD_SEQ) - 1) || !read_number(&p, end, &seq))
		return false;
	if (!skip_text(&p, end, HEAD_TYP, sizeof(HEAD_TYP) - 1))
		return false;
	quote = memchr(p, '"', (size_t)(end - p));
	if (quote == NULL)
		return false;
	f->type = p;
	f->type_len = (size_t)(quote - p);
	return true;
}

/* 1: wanted and whole, 0: not wanted (looked at from both ends only), -1: no
 * event. */
static int judge(const struct read_filter *want, const char *line, size_t len,
		 struct event_view *view)
{
	struct front f;
	int kind;

	if (!line_front(line, len, &f) || memcmp(line + len - 2, "}}", 2) != 0)
		return -1;
	if (want->after != 0 && f.lsn <= want->after)
		return 0;
	if (want->types != 0) {
		kind = event_kind_from(f.type, f.type_len);
		if (kind < 0 || (want->types & (UINT64_C(1) << kind)) == 0)
			return 0;
	}
	return event_view(line, len, view) == 0 ? 1 : -1;
}

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
	free(f->data);
	f->fd = -1;
	f->data = NULL;
	f->cap = f->from = f->to = f->scanned = 0;
}

static int room(struct read_file *f, size_t want, struct ava_error *err)
{
	char *grown;
	size_t cap = MAX(f->cap, BLOCK);

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
	uint64_t size, at = f->offset + (f->to - f->from), was;
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
	rv = room(f, want, err);
	if (rv != 0)
		return rv;
	n = pread_again(f->fd, f->data + f->to, want, at);
	if (n < 0)
		return err_sys(err, "%s: read", f->path);
	if (n == 0)
		return check_shrunk(f, err);
	f->to += (size_t)n;
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

int read_file_next(struct read_file *f, const struct read_filter *want, struct read_line *line,
		   struct ava_error *err)
{
	for (;;) {
		size_t len;
		int rv = next_newline(f, &len, err);

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
		rv = judge(want, line->text, len, &line->view);
		if (rv < 0)
			return err_set(err, AVA_ECORRUPT,
				       "%s:%llu: this line (%zu bytes) is not an event", f->path,
				       (unsigned long long)line->offset, len);
		if (rv == 1)
			return 1;
	}
}

size_t read_file_torn(const struct read_file *f)
{
	return f->to - f->from;
}

uint64_t read_file_first_lsn(int rootfd, const char *path)
{
	static const struct read_filter all = {0, 0};
	struct read_file f;
	struct read_line line;
	uint64_t lsn = 0;
	int rv;

	if (read_file_open(&f, rootfd, path, false, NULL) != 0)
		return 0;
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
	const struct read_filter *want;
	uint64_t n, floor; /* how many; a line below this lsn ends the search */
	uint64_t count, start, first;
	bool enough;
};

/* The lines of one block that begins at a line and ends behind a newline. */
static int tail_block(struct tail *t, const char *data, size_t len, uint64_t offset)
{
	struct hit {
		uint64_t offset, lsn;
	} * hits;
	size_t nhits = 0, at = 0, cap = len / sizeof(HEAD) + 1, over;
	struct event_view v;

	hits = malloc(cap * sizeof(*hits));
	if (hits == NULL)
		return AVA_ENOMEM;
	while (at < len) {
		const char *nl = memchr(data + at, '\n', len - at);
		size_t n = (size_t)(nl - (data + at));

		if (judge(t->want, data + at, n, &v) == 1)
			hits[nhits++] = (struct hit){offset + at, v.lsn};
		at += n + 1;
	}
	if (nhits > 0) {
		over = t->count + nhits > t->n ? (size_t)(t->count + nhits - t->n) : 0;
		t->count += nhits - over;
		t->start = hits[over].offset;
		t->first = hits[over].lsn;
		t->enough = t->count == t->n || t->first < t->floor;
	}
	free(hits);
	return 0;
}

/* The whole lines in [*hi - size, *hi); *hi moves to where they begin. A line
 * longer than the block is tried again with more. */
static int tail_step(struct read_file *f, struct tail *t, uint64_t *hi, size_t *size,
		     struct ava_error *err)
{
	uint64_t lo = *hi > *size ? *hi - *size : 0;
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
	nl = lo > 0 && to > 1 ? memchr(data, '\n', to - 1) : NULL;
	if (lo > 0 && nl == NULL) {
		*size *= 2;
		if (*size > 4 * READ_LINE_MAX)
			rv = err_set(err, AVA_ECORRUPT, "%s:%llu: a line of more than %zu MB",
				     f->path, (unsigned long long)lo, READ_LINE_MAX >> 20);
		goto out;
	}
	if (nl != NULL)
		from = (size_t)(nl - data) + 1;
	rv = tail_block(t, data + from, to - from, lo + from);
	if (rv != 0)
		err_set(err, rv, "%s: no memory", f->path);
	*hi = lo + from;
	*size = BLOCK;
out:
	free(data);
	return rv;
}

int read_file_last(struct read_file *f, const struct read_filter *want, uint64_t n,
		   uint64_t floor_lsn, uint64_t *count, uint64_t *first, struct ava_error *err)
{
	struct tail t = {.want = want, .n = n, .floor = floor_lsn};
	size_t size = BLOCK;
	uint64_t hi = 0;
	int rv = file_size(f->fd, &hi, err);

	if (rv != 0)
		return err_wrap(err, rv, "%s", f->path);
	hi = MIN(hi, f->end);
	while (rv == 0 && hi > 0 && !t.enough)
		rv = tail_step(f, &t, &hi, &size, err);
	if (rv != 0)
		return rv;
	/* Nothing wanted at all: read it from the front, for what is broken. */
	f->offset = t.count > 0 ? t.start : 0;
	f->from = f->to = f->scanned = 0;
	*count = t.count;
	*first = t.first;
	return 0;
}

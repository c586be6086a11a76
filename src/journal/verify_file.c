/* One file against what was sealed of it.
 *
 * All of it goes through one SHA-256; at each sealed size the digest so far is
 * compared. At the first that differs the lines of that stretch are compared
 * with the marks of its Seal, to name the line and what happened to it. What
 * is behind the last sealed size is the unsealed tail: its lines are looked
 * at, and told apart. Errors of reading are kept in the file. */
#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "event/event.h"
#include "journal/files.h"
#include "journal/verify_state.h"

#define CHUNK (1u << 20)

void verify_file_found(struct verify_file *f, enum verify_kind kind, uint64_t line, uint64_t offset,
		       const char *fmt, ...)
{
	struct verify_found *found, **more;
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	found = malloc(sizeof(*found) + strlen(what) + 1);
	more = realloc(f->found, (f->nfound + 1) * sizeof(*more));
	if (more != NULL)
		f->found = more;
	if (found == NULL || more == NULL) {
		free(found);
		f->rv = err_set(&f->err, AVA_ENOMEM, "out of memory");
		return;
	}
	memcpy(found->what, what, strlen(what) + 1);
	found->f = (struct verify_finding){kind, f->path, line, offset, found->what};
	f->found[f->nfound++] = found;
}

/* ---- where a stretch differs */

struct stretch {
	struct verify_file *f;
	int fd;
	uint64_t good; /* up to here the file is what was sealed */
	const struct verify_item *item;
	uint64_t size;  /* of the file */
	uint64_t first; /* number of the first line of `crcs` */
	uint32_t *crcs; /* of the lines that are there, from item.from on */
	uint64_t *offsets;
	size_t n;
	uint64_t end; /* offset behind the last of them */
};

static int stretch_add(struct stretch *t, uint32_t crc, uint64_t offset)
{
	if ((t->n & (t->n - 1)) == 0) { /* full at powers of two */
		size_t cap = t->n > 0 ? t->n * 2 : 1;
		uint32_t *crcs = realloc(t->crcs, cap * sizeof(*crcs));
		uint64_t *offsets = crcs ? realloc(t->offsets, cap * sizeof(*offsets)) : NULL;

		t->crcs = crcs ? crcs : t->crcs;
		if (offsets == NULL)
			return AVA_ENOMEM;
		t->offsets = offsets;
	}
	t->crcs[t->n] = crc;
	t->offsets[t->n++] = offset;
	return 0;
}

/* The lines from `from` on, with a few more than were sealed. */
static int stretch_read(struct stretch *t, uint64_t from, size_t most)
{
	struct loglines l;
	const char *line;
	size_t len;
	int rv;

	loglines_init(&l, t->fd, 0, t->size);
	while ((rv = loglines_next(&l, &line, &len)) == 1 && t->n < most) {
		if (line == NULL)
			rv = AVA_ETOOBIG;
		else if (l.offset <= from)
			t->first = l.line;
		else if (stretch_add(t, crc32c(0, line, len), l.offset - len) != 0)
			rv = AVA_ENOMEM;
		if (rv < 0)
			break;
		t->end = l.offset;
	}
	loglines_fini(&l);
	return rv < 0 ? rv : 0;
}

static uint32_t mark_of(const struct stretch *t, size_t i, size_t each)
{
	size_t n = i * each < t->n ? MIN(each, t->n - i * each) : 0;

	return n > 0 ? crc32c(0, t->crcs + i * each, n * sizeof(*t->crcs)) & 0xffffff : UINT32_MAX;
}

static void tell_line(struct stretch *t, size_t i, const char *what)
{
	verify_file_found(t->f, VERIFY_BROKEN, t->first + i, i < t->n ? t->offsets[i] : t->end,
			  "%s (sealed by seal %llu)", what, (unsigned long long)t->item->n);
}

/* Mark `i` of lines is the first that differs, and stands for one line. */
static void tell_one(struct stretch *t, const struct seal_item *item, size_t i)
{
	uint32_t was = seal_mark(item, i), is = mark_of(t, i, 1);
	size_t k;

	if (i >= t->n) {
		tell_line(t, i, "lines are missing from here to the end");
		return;
	}
	for (k = i + 1; k < item->nmarks && seal_mark(item, k) != is;)
		k++;
	if (k < item->nmarks) { /* a later line stands here */
		size_t j = i + 1;

		while (j < t->n && mark_of(t, j, 1) != was)
			j++;
		tell_line(t, i,
			  j < t->n     ? "the lines from here on are in another order"
			  : k == i + 1 ? "a line is missing before this one"
				       : "lines are missing before this one");
	} else if (i + 1 < t->n && mark_of(t, i + 1, 1) == was) {
		tell_line(t, i, "this line was put in");
	} else {
		tell_line(t, i, "this line was changed");
	}
}

static void tell_stretch(struct stretch *t, const struct seal_item *item)
{
	size_t i = 0, each = (size_t)item->each;
	char what[160];

	while (i < item->nmarks && seal_mark(item, i) == mark_of(t, i, each))
		i++;
	if (i == item->nmarks) {
		snprintf(what, sizeof(what),
			 "something was changed between byte %llu and byte %llu",
			 (unsigned long long)t->good, (unsigned long long)t->item->size);
		verify_file_found(t->f, VERIFY_BROKEN, 0, t->good, "%s (sealed by seal %llu)", what,
				  (unsigned long long)t->item->n);
	} else if (each == 1) {
		tell_one(t, item, i);
	} else {
		snprintf(what, sizeof(what), "this line or one of the %zu behind it was changed",
			 each - 1);
		tell_line(t, i * each, what);
	}
}

/* The Seal is read again: its marks are not kept. 1: found. */
static int read_item(struct verify *v, struct verify_file *f, const struct verify_item *place,
		     char **line, struct seal *s, struct seal_item *item)
{
	char path[FILES_BUF];
	struct event_view e;
	int fd, rv = 0;

	snprintf(path, sizeof(path), "logs/ava/%s", v->days.names[place->day]);
	fd = files_open(v->rootfd, path, O_RDONLY);
	*line = malloc(place->len);
	if (fd >= 0 && *line && sys_read_all(fd, *line, place->len, (off_t)place->at) == 0 &&
	    event_view(*line, place->len, &e) == 0 &&
	    seal_parse(s, e.content.s, e.content.len, NULL) == 0)
		for (size_t i = 0; rv == 0 && seal_item(s, i, item) == 1; i++)
			rv = item->size == place->size && strcmp(item->path, f->path) == 0;
	files_close(&fd);
	return rv;
}

/* `item` is the first whose digest differs. */
static void locate(struct verify *v, struct verify_file *f, int fd, uint64_t size, uint64_t good,
		   const struct verify_item *place)
{
	struct stretch t = {
		.f = f, .fd = fd, .good = good, .item = place, .size = size, .first = 1};
	struct seal_item item = {.each = 1, .lines = ""};
	struct seal s = {0};
	char *line = NULL;
	size_t most;
	int rv;

	if (place->len == 0 || !read_item(v, f, place, &line, &s, &item))
		item = (struct seal_item){.from = good, .each = 1, .lines = ""};
	most = item.nmarks < SIZE_MAX / 2 / item.each ? item.nmarks * item.each + 64 : SIZE_MAX;
	rv = stretch_read(&t, item.from, most);
	if (rv != 0)
		f->rv = err_set(&f->err, rv, "%s cannot be read", f->path);
	else if (place->len == 0 && t.n > 0 && size >= place->size)
		tell_line(&t, 0, "this line or one behind it was changed");
	else
		tell_stretch(&t, &item);
	free(t.crcs);
	free(t.offsets);
	free(line);
	seal_fini(&s);
}

/* ---- behind the last seal */

static bool is_log(const char *path)
{
	return strncmp(path, "logs/", 5) == 0;
}

static void check_tail(struct verify_file *f, int fd, uint64_t from, uint64_t size)
{
	struct loglines l;
	struct event_view e;
	const char *line;
	size_t len;
	int rv;

	f->tail = size - from;
	loglines_init(&l, fd, from, size);
	while ((rv = loglines_next(&l, &line, &len)) == 1)
		if (l.torn)
			verify_file_found(f, VERIFY_TAIL, 0, l.offset - len,
					  "the last line is not whole");
		else if (is_log(f->path) && (line == NULL || event_view(line, len, &e) != 0))
			verify_file_found(f, VERIFY_BROKEN, 0, l.offset - len,
					  "line %llu behind the last seal is no event",
					  (unsigned long long)l.line - 1);
	if (rv < 0)
		f->rv = err_set(&f->err, rv, "%s cannot be read", f->path);
	verify_file_found(f, VERIFY_TAIL, 0, from,
			  from == 0 ? "nothing of it is sealed (%llu lines, %llu bytes)"
				    : "the end is not sealed yet (%llu lines, %llu bytes)",
			  (unsigned long long)l.line - 1, (unsigned long long)(size - from));
	loglines_fini(&l);
}

/* ---- the whole file */

/* Add bytes up to `to`. 0, or AVA_EIO. */
static int hash_to(struct verify *v, struct hash_sha256 *h, int fd, char *buf, uint64_t *at,
		   uint64_t to)
{
	while (*at < to) {
		size_t n = (size_t)MIN((uint64_t)CHUNK, to - *at);

		if (sys_read_all(fd, buf, n, (off_t)*at) != 0)
			return AVA_EIO;
		hash_sha256_add(h, buf, n);
		*at += n;
		atomic_fetch_add_explicit(&v->done, n, memory_order_relaxed);
	}
	return 0;
}

static void check_items(struct verify *v, struct verify_file *f, int fd, uint64_t size, char *buf)
{
	struct hash_sha256 h, copy;
	unsigned char head[SEAL_HASH];
	uint64_t at = 0, good = 0;

	hash_sha256_init(&h);
	for (size_t i = 0; i < f->n; i++) {
		if (f->items[i].size > size) {
			locate(v, f, fd, size, good, &f->items[i]);
			verify_file_found(f, VERIFY_BROKEN, 0, size,
					  "it has %llu bytes and %llu were sealed",
					  (unsigned long long)size,
					  (unsigned long long)f->items[f->n - 1].size);
			return;
		}
		if (hash_to(v, &h, fd, buf, &at, f->items[i].size) != 0) {
			f->rv = err_set(&f->err, AVA_EIO, "%s cannot be read", f->path);
			return;
		}
		copy = h;
		hash_sha256_end(&copy, head);
		if (memcmp(head, f->items[i].head, SEAL_HASH) != 0) {
			locate(v, f, fd, size, good, &f->items[i]);
			return;
		}
		good = f->items[i].size;
	}
	if (good < size)
		check_tail(f, fd, good, size);
}

void verify_file_check(struct verify *v, struct verify_file *f)
{
	char *buf = malloc(CHUNK);
	struct stat st;
	int fd;

	if (f->pruned && f->disk == UINT64_MAX) {
		free(buf);
		return;
	}
	if (f->n > 0 && f->disk == UINT64_MAX) {
		verify_file_found(f, VERIFY_BROKEN, 0, 0,
				  "it is missing: %llu bytes of it were sealed (seal %llu)",
				  (unsigned long long)f->items[f->n - 1].size,
				  (unsigned long long)f->items[f->n - 1].n);
		free(buf);
		return;
	}
	fd = f->disk == UINT64_MAX ? -1 : files_open(v->rootfd, f->path, O_RDONLY);
	if (buf == NULL)
		f->rv = err_set(&f->err, AVA_ENOMEM, "out of memory");
	else if (fd >= 0 && sys->fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		check_items(v, f, fd, (uint64_t)st.st_size, buf);
	else if (f->n > 0)
		verify_file_found(f, VERIFY_BROKEN, 0, 0, "it cannot be opened as a file");
	files_close(&fd);
	free(buf);
}

/* Lines of hits; fetch.h.
 *
 * Happy path: a batch's hits are put in the order of files and offsets, cut into pieces of one
 * file each, and read by the crew: neighbouring lines in one read, into memory of the thread;
 * lines that have the text are kept. A literal is looked for in the whole read at once.
 *
 * What can fail: memory, which is returned. A file that is missing or shorter, or a line that is
 * another event, becomes the hit's state. */
#include "journal/fetch.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/files.h"

#define PIECE      ((uint64_t)4 << 20) /* bytes of a file that one thread of the crew reads */
#define GAP        4096                /* a smaller gap between two lines is read along */
#define STRETCH    ((uint64_t)1 << 20) /* bytes read at once, unless a line is longer */
#define CREW_LEAST 32                  /* pieces that justify a second thread */
#define CREW_BYTES (2 * PIECE)

static int place_order(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int order = order_of(x->file, y->file);

	return order != 0 ? order : order_of(x->offset, y->offset);
}

static bool scratch_room(struct fetch *f, unsigned thread, size_t want)
{
	char *grown;

	if (want <= f->scratch_cap[thread])
		return true;
	grown = realloc(f->scratch[thread], MAX(want, STRETCH));
	if (grown == NULL)
		return false;
	f->scratch[thread] = grown;
	f->scratch_cap[thread] = MAX(want, STRETCH);
	return true;
}

/* Is the line at [line, line + len] the event its row describes, and does it have the text? */
static void fetch_line(struct fetch *f, unsigned thread, const struct hit *h, const char *line,
		       struct got *got)
{
	const struct query *q = f->want;
	struct event_view v;
	struct buf *kept = &f->kept[thread];

	got->state = GOT_OTHER;
	if (line[h->len] != '\n')
		return;
	switch (query_line(q, thread, line, h->len, &v)) {
	case QUERY_YES:
		if (v.lsn != h->lsn || (v.kind >= 0 ? v.kind : INDEX_OTHER) != h->kind)
			return;
		got->at = kept->len;
		got->thread = (uint8_t)thread;
		got->seq = v.seq;
		got->wall_ms = v.wall_ms;
		got->state = buf_add(kept, line, h->len) == 0 ? GOT_LINE : GOT_UNREAD;
		return;
	case QUERY_NO:
		if (q->text.needle != NULL || q->text.regex != NULL)
			got->state = GOT_NOTHING;
		return;
	case QUERY_COSTLY:
		got->state = GOT_COSTLY;
		return;
	case QUERY_BROKEN:
		return;
	}
}

/* Places [from, to) of one file, whose lines are read at once; state of all of
 * them is GOT_NOTHING before. */
static bool fetch_stretch(struct fetch *f, unsigned thread, int fd, size_t from, size_t to)
{
	const struct query_text *text = &f->want->text;
	const struct place *first = &f->places[from], *last = &f->places[to - 1];
	size_t len = last->offset - first->offset + last->len + 1;
	const char *data, *found = NULL;

	if (!scratch_room(f, thread, len) ||
	    sys_read_all(fd, f->scratch[thread], len, (off_t)first->offset) != 0)
		return false;
	data = f->scratch[thread];
	for (const struct place *p = first; p <= last; p++) {
		const char *line = data + (p->offset - first->offset);

		if (text->needle != NULL) {
			if (p == first || found < line)
				found = query_text_find(text, line, len - (size_t)(line - data));
			if (found == NULL) /* no later line has the text either */
				return true;
			if (found + text->len > line + p->len)
				continue;
		}
		fetch_line(f, thread, &f->hits[p->hit], line, &f->got[p->hit]);
	}
	return true;
}

static bool fetch_piece(size_t number, unsigned thread, void *user)
{
	struct fetch *f = user;
	const struct place *places = f->places;
	size_t at = f->pieces[number].from, end = f->pieces[number].to, to;
	const char *path = index_string(f->index, f->index->files[places[at].file].path);
	int fd = sys->openat(f->index->rootfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
			     0);
	enum got_state none = fd < 0 && errno == ENOENT ? GOT_GONE : GOT_UNREAD;

	for (; at < end; at = to) {
		uint64_t behind = places[at].offset + places[at].len + 1;

		for (to = at + 1; to < end; to++) {
			uint64_t more = places[to].offset + places[to].len + 1;

			if (places[to].offset > behind + GAP || more - places[at].offset > STRETCH)
				break;
			behind = MAX(behind, more);
		}
		if (fd >= 0 && fetch_stretch(f, thread, fd, at, to))
			continue;
		for (size_t i = at; i < to; i++) /* ENODATA: the file is shorter */
			f->got[places[i].hit].state = fd < 0             ? none
						      : errno == ENODATA ? GOT_OTHER
									 : GOT_UNREAD;
	}
	files_close(&fd);
	return true;
}

static bool batch_room(struct fetch *f, size_t n)
{
	if (n > f->cap) {
		free(f->got);
		free(f->places);
		free(f->pieces);
		f->cap = n + n / 2;
		f->got = malloc(f->cap * sizeof(*f->got));
		f->places = malloc(f->cap * sizeof(*f->places));
		f->pieces = malloc(f->cap * sizeof(*f->pieces));
	}
	if (f->got != NULL && f->places != NULL && f->pieces != NULL)
		return true;
	f->cap = 0;
	return false;
}

/* Hits [0, n) that are lines, sorted by file and offset; returns their number. Many are dealt to
 * their files first, where they are mostly in order, since a file's lsn ascend. SIZE_MAX: no
 * memory. */
static size_t sort_places(struct fetch *f, size_t n)
{
	const size_t nfiles = f->index->nfiles;
	size_t *start = calloc(nfiles + 1, sizeof(*start)), nplaces = 0;
	bool sorted = true;

	if (start == NULL)
		return SIZE_MAX;
	for (size_t i = 0; i < n; i++)
		start[f->hits[i].file]++;
	for (size_t i = 0, sum = 0, count; i < nfiles; i++) {
		count = start[i];
		start[i] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++) {
		const struct hit *h = &f->hits[i];

		f->got[i].state = h->kind == INDEX_BROKEN ? GOT_BROKEN
				  : h->len > INDEX_LINE   ? GOT_OTHER
							  : GOT_NOTHING;
		f->places[start[h->file]++] =
			(struct place){h->offset, h->len, h->file, (uint32_t)i};
	}
	free(start);
	for (size_t i = 0; i < n; i++) {
		const struct place *p = &f->places[i];

		if (f->hits[p->hit].kind == INDEX_BROKEN || p->len > INDEX_LINE)
			continue;
		f->places[nplaces++] = *p;
		sorted = sorted && (nplaces < 2 || place_order(&f->places[nplaces - 2],
							       &f->places[nplaces - 1]) < 0);
	}
	if (!sorted)
		qsort(f->places, nplaces, sizeof(*f->places), place_order);
	return nplaces;
}

int fetch_lines(struct fetch *f, struct log_index *index, const struct hit *hits, size_t n,
		struct ava_error *err)
{
	uint64_t bytes = 0;
	size_t nplaces;

	f->index = index;
	f->hits = hits;
	nplaces = batch_room(f, n) ? sort_places(f, n) : SIZE_MAX;
	if (nplaces == SIZE_MAX)
		return err_set(err, AVA_ENOMEM, "no memory to read logs");
	f->npieces = 0;
	for (size_t i = 0, first = 0; i < nplaces; i++) {
		const struct place *p = f->places;

		if (i == first || p[i].file != p[first].file ||
		    p[i].offset - p[first].offset >= PIECE) {
			first = i;
			f->pieces[f->npieces++].from = i;
		}
		f->pieces[f->npieces - 1].to = i + 1;
		bytes += p[i].len;
	}
	for (unsigned i = 0; i < CREW_THREADS; i++)
		buf_reset(&f->kept[i]);
	if (f->npieces >= CREW_LEAST || (f->npieces > 1 && bytes > CREW_BYTES))
		crew_run(f->npieces, fetch_piece, f);
	else
		for (size_t i = 0; i < f->npieces; i++)
			fetch_piece(i, 0, f);
	return 0;
}

/* Does the file have the text anywhere in its indexed part? */
static bool search_file(size_t number, unsigned thread, void *user)
{
	struct fetch *f = user;
	const struct query_text *text = &f->want->text;
	const struct index_file *file = &f->index->files[number];
	const char *path = index_string(f->index, file->path), *found = NULL;
	size_t back = text->len - 1;
	int fd;

	if (f->fits[number] == 0)
		return true;
	fd = sys->openat(f->index->rootfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
	for (uint64_t at = 0; fd >= 0 && found == NULL && at < file->covered;) {
		size_t len = (size_t)MIN(STRETCH, file->covered - at);

		/* Errors here are left to the reading of the lines. */
		if (!scratch_room(f, thread, STRETCH) ||
		    sys_read_all(fd, f->scratch[thread], len, (off_t)at) != 0)
			break;
		found = query_text_find(text, f->scratch[thread], len);
		at = found != NULL || at + len == file->covered ? file->covered : at + len - back;
		if (found == NULL && at == file->covered)
			f->fits[number] = 0;
	}
	files_close(&fd);
	return true;
}

void fetch_search(struct fetch *f, struct log_index *index, uint8_t *fits)
{
	f->index = index;
	f->fits = fits;
	crew_run(index->nfiles, search_file, f);
}

void fetch_init(struct fetch *f, const struct query *want)
{
	*f = (struct fetch){.want = want};
	for (unsigned i = 0; i < CREW_THREADS; i++)
		buf_init(&f->kept[i], (size_t)4 << 30);
}

void fetch_fini(struct fetch *f)
{
	for (unsigned i = 0; i < CREW_THREADS; i++) {
		buf_fini(&f->kept[i]);
		free(f->scratch[i]);
	}
	free(f->got);
	free(f->places);
	free(f->pieces);
}

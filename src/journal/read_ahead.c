/* Wanted lines, read ahead; read_ahead.h.
 *
 * Happy path: each thread takes a piece after the other and copies its wanted
 * lines behind each other. Lines of one piece have ascending lsn, and so do
 * pieces of one log, so that often nothing is left to be sorted.
 *
 * What can fail: whatever may fail in reading a piece leaves that piece to
 * the reader that goes line by line, which meets the same and tells it in its
 * place. Lines that need more than READ_AHEAD_MAX are all left to it: what is
 * given out bounds the memory, not what is asked. */
#include "journal/read_ahead.h"

#include <ava.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"

struct lines {
	struct read_ahead_line *v;
	size_t n, cap;
};

struct filling {
	struct read_ahead *a;
	const struct read_ahead_from *from;
	bool *left;
	bool full; /* any thread sets it, and then nothing is used */
	struct lines lines[CREW_THREADS];
};

/* One thread's way through one piece. */
struct taking {
	struct filling *f;
	unsigned thread;
	uint32_t piece;
};

static bool room_for_line(struct lines *l)
{
	size_t cap = l->cap == 0 ? 256 : l->cap * 2;
	struct read_ahead_line *grown;

	if (l->n < l->cap)
		return true;
	grown = realloc(l->v, cap * sizeof(*grown));
	if (grown == NULL)
		return false;
	l->v = grown;
	l->cap = cap;
	return true;
}

static int take_line(const struct read_line *line, void *user, struct ava_error *err)
{
	struct taking *t = user;
	const struct event_view *v = &line->view;
	struct lines *l = &t->f->lines[t->thread];
	struct buf *texts = &t->f->a->texts[t->thread];
	size_t at = texts->len;

	buf_add(texts, line->text, line->len);
	if (buf_check(texts) != 0 || line->len > UINT32_MAX || !room_for_line(l)) {
		__atomic_store_n(&t->f->full, true, __ATOMIC_RELAXED);
		return err_set(err, AVA_ETOOBIG, "too much to read ahead");
	}
	l->v[l->n++] = (struct read_ahead_line){.lsn = v->lsn,
						.seq = v->seq,
						.offset = line->offset,
						.wall_ms = v->wall_ms,
						.at = at,
						.len = (uint32_t)line->len,
						.piece = t->piece,
						.type = (uint32_t)(v->type.s - line->text),
						.type_len = (uint32_t)v->type.len,
						.kind = v->kind};
	return 0;
}

static int leave(struct ava_error *err, void *user)
{
	(void)user;
	return err->code;
}

static bool work(size_t i, unsigned thread, void *user)
{
	struct filling *f = user;
	struct taking t = {f, thread, (uint32_t)(f->a->from + i)};
	struct read_piece_do tell = {take_line, leave, &t};
	struct read_piece p = f->a->pieces.v[t.piece];
	struct query_cover *small = read_piece_small(&p, f->from->smallfd);
	size_t had = f->lines[thread].n;
	struct ava_error err;

	if (read_piece(f->from->rootfd, &p, f->from->want[thread], &tell, &err) != 0) {
		f->left[i] = true;
		f->lines[thread].n = had;
	}
	query_cover_close(small);
	return !__atomic_load_n(&f->full, __ATOMIC_RELAXED);
}

static int by_piece(const void *a, const void *b)
{
	const struct read_ahead_line *x = a, *y = b;

	if (x->piece != y->piece)
		return x->piece < y->piece ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int by_lsn(const void *a, const void *b)
{
	const struct read_ahead_line *x = a, *y = b;

	if (x->lsn != y->lsn)
		return x->lsn < y->lsn ? -1 : 1;
	return by_piece(a, b);
}

static void sort(struct read_ahead_line *v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (by_lsn(&v[i - 1], &v[i]) > 0) {
			qsort(v, n, sizeof(*v), by_lsn);
			return;
		}
}

/* What two ordered lists hold, as one that mostly is. */
static void merge(struct read_ahead_line *out, const struct lines *a, const struct lines *b)
{
	size_t i = 0, j = 0;

	while (i < a->n || j < b->n)
		if (j == b->n || (i < a->n && by_piece(&a->v[i], &b->v[j]) < 0))
			*out++ = a->v[i++];
		else
			*out++ = b->v[j++];
}

/* Lines of all threads into a->lines. */
static bool collect(struct filling *f)
{
	struct read_ahead *a = f->a;

	_Static_assert(CREW_THREADS == 2, "two lists are merged");
	for (size_t i = 0; i < CREW_THREADS; i++)
		for (size_t j = 0; j < f->lines[i].n; j++)
			f->lines[i].v[j].text = a->texts[i].data + f->lines[i].v[j].at;
	a->n = f->lines[0].n + f->lines[1].n;
	a->lines = malloc((a->n + 1) * sizeof(*a->lines));
	if (a->lines == NULL)
		return false;
	merge(a->lines, &f->lines[0], &f->lines[1]);
	sort(a->lines, a->n);
	return true;
}

/* Their memory stays for the next batch. */
static void drop_lines(struct read_ahead *a)
{
	for (size_t i = 0; i < CREW_THREADS; i++)
		buf_reset(&a->texts[i]);
	free(a->lines);
	a->lines = NULL;
	a->n = a->given = 0;
}

bool read_ahead_fill(struct read_ahead *a, const struct read_ahead_from *from, bool *left)
{
	struct filling f = {.a = a, .from = from, .left = left};
	size_t n = MIN(a->batch, a->pieces.n - a->next);
	bool fine;

	memset(left, 0, n * sizeof(*left));
	drop_lines(a);
	for (size_t i = 0; i < CREW_THREADS; i++)
		a->texts[i].max = READ_AHEAD_MAX;
	a->from = a->next;
	crew_run(n, work, &f);
	fine = !f.full && collect(&f);
	for (size_t i = 0; i < CREW_THREADS; i++)
		free(f.lines[i].v);
	if (fine)
		a->next += n;
	else
		drop_lines(a);
	return fine;
}

bool read_ahead_next(struct read_ahead *a, struct read_line *line, size_t *piece)
{
	const struct read_ahead_line *l;

	if (a->given == a->n)
		return false;
	l = &a->lines[a->given++];
	line->text = l->text;
	line->len = l->len;
	line->offset = l->offset;
	line->view = (struct event_view){.wall_ms = l->wall_ms,
					 .lsn = l->lsn,
					 .seq = l->seq,
					 .kind = l->kind,
					 .type = {l->text + l->type, l->type_len}};
	*piece = l->piece;
	return true;
}

size_t read_ahead_held(const struct read_ahead *a)
{
	size_t held = a->n * sizeof(*a->lines);

	for (size_t i = 0; i < CREW_THREADS; i++)
		held += a->texts[i].cap;
	return held;
}

void read_ahead_fini(struct read_ahead *a)
{
	for (size_t i = 0; i < CREW_THREADS; i++)
		buf_fini(&a->texts[i]);
	free(a->lines);
	read_pieces_fini(&a->pieces);
	*a = (struct read_ahead){0};
}

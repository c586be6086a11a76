/* Sources that are read ahead; read_wave.h.
 *
 * Happy path: small logs that may hold something wanted are taken together,
 * in the order of their first lsn; when the merge reaches the first of a wave
 * all of it is read by a crew, and its lines are one source. A log long enough
 * for an index is a source of its own, read some chunks at a time.
 *
 * What can fail: a log in which something is wrong is left to the reader that
 * goes line by line, from where the trouble is, which tells it. So is what
 * there is no memory for, and what would be more than READ_HELD with the
 * lines that others have waiting: many large logs may be due at once. */
#include "journal/read_wave.h"

#include <ava.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/util.h"

static struct read_ahead_from from_of(const struct ava_log *log)
{
	return (struct read_ahead_from){log->rootfd, log->smallfd, {&log->want, &log->want2}};
}

/* The next batch of `a`. False: it is to be read by other means. */
static bool fill(struct ava_log *log, struct read_ahead *a, bool *left)
{
	struct read_ahead_from from = from_of(log);
	size_t had = read_ahead_held(a);
	bool fine = log->held <= READ_HELD && read_ahead_fill(a, &from, left);

	log->held += read_ahead_held(a) - had;
	return fine;
}

static void tell_progress(struct ava_log *log, uint64_t bytes)
{
	if (log->progress.fn != NULL)
		read_progress_add(log, bytes);
}

/* ---- waves */

static bool fits_in_wave(const struct source *s)
{
	return s->state == SOURCE_WAITING && s->size > 0;
}

static struct source *new_wave(struct ava_log *log)
{
	struct source *w = calloc(1, sizeof(*w)), **grown;

	if (w == NULL)
		return NULL;
	w->file.fd = -1;
	w->ahead = calloc(1, sizeof(*w->ahead));
	w->members = calloc(READ_WAVE_LOGS, sizeof(struct source *));
	grown = realloc(log->waves, (log->nwaves + 1) * sizeof(struct source *));
	if (grown != NULL)
		log->waves = grown;
	if (w->ahead != NULL && w->members != NULL && grown != NULL)
		return log->waves[log->nwaves++] = w;
	free(w->ahead);
	free(w->members);
	free(w);
	return NULL;
}

/* The first waves are small, for those who want only the first lines. */
static bool is_full(const struct ava_log *log, const struct source *w, const struct source *s)
{
	size_t most = MIN((size_t)READ_WAVE_LEAST << MIN(log->nwaves - 1, 8u), READ_WAVE_LOGS);

	return w->ahead->pieces.n >= most || w->ahead->pieces.total + s->size > READ_WAVE_BYTES;
}

void read_waves_plan(struct ava_log *log)
{
	struct source *w = NULL;
	size_t small = 0;

	for (size_t i = 0; i < log->nsrc; i++)
		small += fits_in_wave(log->src[i]);
	for (size_t i = 0; i < log->nsrc && small >= QUERY_SMALL_LEAST; i++) {
		struct source *s = log->src[i];
		struct read_piece p = {
			.path = s->path, .to = s->size, .whole = true, .small = s->chunk};

		if (!fits_in_wave(s))
			continue;
		if (w == NULL || is_full(log, w, s))
			w = new_wave(log);
		if (w == NULL || read_pieces_add(&w->ahead->pieces, &p) != 0)
			return;
		w->members[w->ahead->pieces.n - 1] = s;
		w->ahead->batch = w->ahead->pieces.n;
		s->wave = w;
	}
}

/* Line by line after all. */
static void leave_all(struct ava_log *log, struct source *w)
{
	for (size_t i = 0; i < w->ahead->pieces.n; i++)
		w->members[i]->wave = NULL;
	read_batch_end(log, w);
}

void read_wave_open(struct ava_log *log, struct source *s, struct source **first)
{
	struct source *w = s->wave;
	bool left[READ_WAVE_LOGS];
	uint64_t done = 0;

	*first = NULL;
	if (!fill(log, w->ahead, left)) {
		leave_all(log, w);
		return;
	}
	for (size_t i = 0; i < w->ahead->pieces.n; i++) {
		w->members[i]->wave = NULL;
		if (left[i])
			continue;
		w->members[i]->state = SOURCE_CLOSED;
		done += w->members[i]->size;
	}
	tell_progress(log, done);
	if (read_batch_next(log, w, NULL) == 1)
		*first = w;
	else
		read_batch_end(log, w);
}

/* ---- batches */

/* Is there more to do than reading? What an index leaves of one log is else
 * there sooner than a second thread. */
static bool is_costly(const struct query *q)
{
	return q->text.needle != NULL || q->text.regex != NULL;
}

void read_batches_plan(struct ava_log *log, struct source *s)
{
	uint64_t size = s->file.end;
	struct read_ahead *a;

	if (!log->reads_ahead || !is_costly(&log->want) || size < s->start + QUERY_COVER_LEAST)
		return;
	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return;
	a->batch = CREW_THREADS; /* as with waves */
	if (read_pieces_cut(&a->pieces, s->path, s->start, size, read_file_cover(&s->file),
			    &log->want) != 0) {
		read_ahead_fini(a);
		free(a);
		return;
	}
	s->ahead = a;
}

/* All before is read, or known to be without anything wanted. */
static uint64_t read_to(const struct source *s)
{
	const struct read_ahead *a = s->ahead;

	return a->next > 0 ? a->pieces.v[a->next - 1].to : s->start;
}

/* The next batch; 1: it is there; 0: from where it begins on it goes line by line; or a code. */
static int fill_batch(struct ava_log *log, struct source *s, struct ava_error *err)
{
	struct read_ahead *a = s->ahead;
	size_t begin = a->next;
	uint64_t had = read_to(s);
	bool left[READ_AHEAD_PIECES], fine;
	struct read_piece p;

	fine = fill(log, a, left);
	a->batch = MIN(a->batch * 2, READ_AHEAD_PIECES);
	for (size_t i = begin; fine && i < a->next; i++)
		fine = !left[i - begin];
	if (fine) {
		tell_progress(log, read_to(s) - had);
		return 1;
	}
	p = a->pieces.v[begin];
	read_batch_end(log, s);
	return read_piece_seek(&s->file, &p, err);
}

int read_batch_next(struct ava_log *log, struct source *s, struct ava_error *err)
{
	size_t piece;

	for (;;) {
		int rv;

		if (read_ahead_next(s->ahead, &s->line, &piece)) {
			s->line_path = s->ahead->pieces.v[piece].path;
			return 1;
		}
		if (s->ahead->next == s->ahead->pieces.n) {
			if (s->members == NULL) /* its index may be of more by now */
				tell_progress(log, MAX(s->file.end, read_to(s)) - read_to(s));
			return 0;
		}
		rv = fill_batch(log, s, err);
		if (rv <= 0)
			return rv;
	}
}

void read_batch_end(struct ava_log *log, struct source *s)
{
	if (s->ahead == NULL)
		return;
	log->held -= read_ahead_held(s->ahead);
	read_ahead_fini(s->ahead);
	free(s->ahead);
	s->ahead = NULL;
}

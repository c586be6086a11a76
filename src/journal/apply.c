/* Applying durable commits; see apply.h.
 *
 * Appends are gathered by view over a whole flush. Anything else (a file put,
 * made, dropped, a session's entry) is a barrier: what came before it is
 * written first, so that who reads "the run has ended" finds the result that
 * was put before it. A view that fails is held: its operations queue up, it
 * is tried again after 100 ms, then doubling to 2 s, and other views go on. */
#include "journal/apply.h"

#include <errno.h>

#include "base/clock.h"
#include "base/util.h"

#define RETRY_FIRST_MS 100
#define RETRY_LAST_MS  2000

int apply_init(struct apply *a, int rootfd, size_t fd_cache)
{
	*a = (struct apply){0};
	return view_set_init(&a->views, rootfd, fd_cache);
}

void apply_fini(struct apply *a)
{
	view_set_fini(&a->views);
}

static void hold(struct apply *a, struct view *v, int error)
{
	v->error = error;
	v->backoff_ms = v->held ? MIN(v->backoff_ms * 2, RETRY_LAST_MS) : RETRY_FIRST_MS;
	v->retry_ms = clock_mono_ms() + v->backoff_ms;
	v->held = true;
	v->next = a->held;
	a->held = v;
}

static void touch(struct apply *a, struct view *v)
{
	if (v->touched || v->held)
		return;
	v->touched = true;
	v->next = NULL;
	if (a->touched == NULL)
		a->touched = v;
	else
		a->touched_last->next = v;
	a->touched_last = v;
}

static void run_touched(struct apply *a)
{
	struct view *v, *next;

	for (v = a->touched; v != NULL; v = next) {
		next = v->next;
		v->touched = false;
		if (view_run(&a->views, v) != 0)
			hold(a, v, errno);
	}
	a->touched = NULL;
}

static void apply_commit(struct apply *a, struct commit *c)
{
	if (c->rv != 0) {
		c->pending = 0;
		return;
	}
	for (unsigned i = 0; i < c->nops; i++) {
		struct op *op = &c->ops[i];

		if (op->kind != JOURNAL_APPEND)
			run_touched(a);
		view_queue(op);
		touch(a, op->view);
		if (op->kind != JOURNAL_APPEND)
			run_touched(a);
	}
}

/* Sort `from` into what is through and what is not, keeping the order. */
static void settle(struct apply *a, struct commit_queue *from, struct commit_queue *finished)
{
	struct commit *c;

	while ((c = commit_pop(from)) != NULL) {
		if (c->pending == 0) {
			commit_push(finished, c);
			continue;
		}
		commit_push(&a->unfinished, c);
		a->held_bytes += c->memory;
		a->held_commits++;
	}
}

void apply_flush(struct apply *a, struct commit_queue *flushed, struct commit_queue *finished)
{
	a->views.now_ms = clock_mono_ms();
	for (struct commit *c = flushed->first; c != NULL; c = c->next)
		apply_commit(a, c);
	run_touched(a);
	settle(a, flushed, finished);
}

void apply_retry(struct apply *a, bool all, struct commit_queue *finished)
{
	struct commit_queue waiting = a->unfinished;
	struct view *v = a->held, *next;
	int64_t now = clock_mono_ms();
	bool tried = false;

	a->views.now_ms = now;
	a->held = NULL;
	for (; v != NULL; v = next) {
		next = v->next;
		if (!all && v->retry_ms > now) {
			v->next = a->held;
			a->held = v;
			continue;
		}
		tried = true;
		if (view_run(&a->views, v) != 0)
			hold(a, v, errno);
		else
			v->held = false;
	}
	if (!tried)
		return;
	a->unfinished = (struct commit_queue){0};
	a->held_bytes = 0;
	a->held_commits = 0;
	settle(a, &waiting, finished);
}

void apply_abandon(struct apply *a, struct commit_queue *rest)
{
	for (struct view *v = a->held; v != NULL; v = v->next) {
		v->held = false;
		v->first = NULL;
	}
	a->held = NULL;
	commit_move(rest, &a->unfinished);
}

int64_t apply_retry_ms(const struct apply *a)
{
	int64_t first = INT64_MAX;

	for (const struct view *v = a->held; v != NULL; v = v->next)
		first = MIN(first, v->retry_ms);
	return first;
}

/* The journal's thread; see writer.h.
 *
 * One turn: take the queue, lay commits down while they fit into one flush, write and sync it,
 * apply it, hand back finished commits. While the disk syncs, the next commits gather: that is
 * all the grouping a busy journal needs; only a lone RIDE waits by the clock.
 *
 * When a sync fails the flush's commits are answered AVA_EUNKNOWN and take back their offsets;
 * commits not laid down wait; new work is refused until a segment could be synced again, tried
 * after 100 ms, then doubling to 5 s. */
#include "journal/writer.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "journal/ballast.h"
#include "journal/segments.h"

#define RETRY_FIRST_MS 100
#define RETRY_LAST_MS  5000
#define MARK_AFTER_US  10000 /* idle time before a mark, which proves the last flush synced */

/* ---- health */

static int disk_code(int error)
{
	return err_is_full(error) ? AVA_EFULL : AVA_EIO;
}

void writer_judge(struct writer *w)
{
	struct writer_shared *s = &w->shared;
	struct ava_error *h = &s->health;
	uint64_t waiting = s->bytes - s->released;

	s->refuse = 0;
	h->code = 0;
	h->text[0] = '\0';
	if (s->segment_error != 0) {
		s->refuse = err_set(h, disk_code(s->segment_error),
				    "the journal cannot be written (%s); no new work is taken until"
				    " it can",
				    strerror(s->segment_error));
	} else if (s->lasting.code != 0) {
		*h = s->lasting;
		s->refuse = h->code;
	} else if (waiting > w->wal_max) {
		s->refuse = err_set(h, AVA_EFULL,
				    "%llu MB of the journal wait for a checkpoint; no new work is"
				    " taken until one succeeds",
				    (unsigned long long)(waiting >> 20));
	} else if (s->held_error != 0) {
		err_set(h, disk_code(s->held_error), "%s cannot be written (%s); %llu commits wait",
			s->held_path, strerror(s->held_error), (unsigned long long)s->held_commits);
		if (h->code == AVA_EFULL && s->held_bytes > WRITER_HELD_MAX)
			s->refuse = AVA_EFULL;
	}
}

/* ---- applying
 *
 * Appends are gathered by view over a whole flush. Anything else (a file put, made, dropped, a
 * session's entry) is a barrier: operations before it are written first, so that a reader of
 * "the run has ended" finds the result that was put before it. A view that fails is held: its
 * operations queue up, it is tried again after 100 ms, then doubling to 2 s, and other views go
 * on. */

#define HOLD_FIRST_MS 100
#define HOLD_LAST_MS  2000

static void writer_hold(struct apply *a, struct view *v, int error)
{
	v->error = error;
	v->backoff_ms = v->held ? MIN(v->backoff_ms * 2, HOLD_LAST_MS) : HOLD_FIRST_MS;
	v->retry_ms = clock_mono_ms() + v->backoff_ms;
	v->held = true;
	v->next = a->held;
	a->held = v;
}

static void writer_touch(struct apply *a, struct view *v)
{
	if (v->touched || v->held)
		return;
	v->touched = true;
	v->next = NULL;
	*(a->touched == NULL ? &a->touched : &a->touched_last->next) = v;
	a->touched_last = v;
}

static int run_view(struct apply *a, struct view *v)
{
	int rv;

	do
		rv = view_run(&a->views, v);
	while (rv != 0 && ballast_give(a->views.rootfd, errno));
	return rv;
}

static void run_touched(struct apply *a)
{
	struct view *v, *next;

	for (v = a->touched; v != NULL; v = next) {
		next = v->next;
		v->touched = false;
		if (run_view(a, v) != 0)
			writer_hold(a, v, errno);
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
		writer_touch(a, op->view);
		if (op->kind != JOURNAL_APPEND)
			run_touched(a);
	}
}

/* Split `from` into finished and unfinished commits, keeping the order. */
static void writer_settle(struct apply *a, struct commit_queue *from, struct commit_queue *finished)
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

/* `pressed`: the held operations hold up the journal. */
static void apply_retry(struct apply *a, bool all, bool pressed, struct commit_queue *finished)
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
		if (run_view(a, v) != 0 &&
		    (!pressed || view_give_way(&a->views, v) != 0 || view_run(&a->views, v) != 0))
			writer_hold(a, v, errno);
		else
			v->held = false;
	}
	if (!tried)
		return;
	a->unfinished = (struct commit_queue){0};
	a->held_bytes = 0;
	a->held_commits = 0;
	writer_settle(a, &waiting, finished);
}

/* ---- laying down */

static bool has_blob(const struct commit *c)
{
	for (unsigned i = 0; i < c->nops; i++)
		if (c->ops[i].blob)
			return true;
	return false;
}

static int write_blobs(struct writer *w, struct commit *c)
{
	int rv;

	for (unsigned i = 0; i < c->nops; i++) {
		struct op *op = &c->ops[i];
		unsigned char *hash = c->batch + op->at + WAL_OP_HEAD + op->view->path_len +
				      (op->id != NULL ? strlen(op->id) : 0);

		if (!op->blob)
			continue;
		do
			rv = blob_write(w->walfd, c->first_lsn, i, op->bytes, op->len, hash);
		while (rv != 0 && ballast_give(w->apply.views.rootfd, errno));
		/* Set it after the write: a helper that looked before would forget the coming
		 * blob. */
		w->has_blobs = true;
		if (rv != 0)
			return disk_code(errno);
	}
	return 0;
}

/* Give every operation its place. 0, or the commit's error. */
static int lay_commit(struct writer *w, struct commit *c)
{
	unsigned i;
	int rv = 0;

	for (i = 0; i < c->nops && rv == 0; i++)
		rv = view_lay(&w->apply.views, &c->ops[i]);
	if (rv != 0) {
		i--; /* the failed operation changed nothing */
		goto fail;
	}
	rv = write_blobs(w, c);
	if (rv != 0)
		goto fail;
	for (i = 0; i < c->nops; i++)
		wal_op_place(c->batch + c->ops[i].at, c->ops[i].view->part, c->ops[i].offset);
	return 0;

fail:
	while (i > 0)
		view_unlay(&c->ops[--i]);
	return rv;
}

static void segment_failed(struct writer *w, int error)
{
	w->log_backoff_ms =
		w->log_error != 0 ? MIN(w->log_backoff_ms * 2, RETRY_LAST_MS) : RETRY_FIRST_MS;
	w->log_error = error;
	w->log_retry_ms = clock_mono_ms() + w->log_backoff_ms;
}

/* Have a segment that can take `len` bytes more. Only between flushes. */
static int ready_segment(struct writer *w, size_t len)
{
	if (w->log.fd >= 0 && !log_should_roll(&w->log, len))
		return 0;
	while (log_begin(&w->log) != 0) {
		if (ballast_give(w->apply.views.rootfd, errno))
			continue;
		segment_failed(w, errno);
		return -1;
	}
	w->log_error = 0;
	return 0;
}

/* Move commits from todo into the buffer, as many as make one flush. Refused ones (rv not 0) go
 * along, so that they are answered in order. */
static void lay_down(struct writer *w, struct commit_queue *laid)
{
	struct commit *c;

	while ((c = w->todo.first) != NULL && !log_full(&w->log)) {
		bool first = laid->first == NULL;

		if (first && ready_segment(w, c->batch_len) != 0)
			return;
		if (!first && (log_should_roll(&w->log, c->batch_len) || has_blob(c)))
			return;
		commit_pop(&w->todo);
		commit_push(laid, c);
		c->rv = lay_commit(w, c);
		if (c->rv != 0)
			continue;
		c->pos = log_add(&w->log, c->batch, c->batch_len, c->first_lsn, c->lsn_count);
		c->before = w->bytes;
		c->whole = w->whole;
		w->whole += c->memory;
		w->bytes += c->batch_len;
		w->commits++;
	}
}

static void writer_answer_unknown(struct commit_queue *laid, struct commit_queue *finished)
{
	for (struct commit *c = laid->first; c != NULL; c = c->next) {
		if (c->rv != 0)
			continue;
		c->rv = AVA_EUNKNOWN;
		for (unsigned i = c->nops; i > 0; i--)
			view_unlay(&c->ops[i - 1]);
	}
	commit_move(finished, laid);
}

static void writer_flush(struct writer *w, struct commit_queue *finished)
{
	struct commit_queue laid = {0};

	lay_down(w, &laid);
	if (!log_empty(&w->log)) {
		w->flushes++;
		if (log_sync(&w->log) != 0) {
			segment_failed(w, errno);
			ballast_give(w->apply.views.rootfd, w->log_error);
			writer_answer_unknown(&laid, finished);
			return;
		}
		w->mark_us = clock_mono_us() + MARK_AFTER_US;
	}
	w->apply.views.now_ms = clock_mono_ms();
	for (struct commit *c = laid.first; c != NULL; c = c->next)
		apply_commit(&w->apply, c);
	run_touched(&w->apply);
	writer_settle(&w->apply, &laid, finished);
}

/* ---- handing back */

static void writer_publish(struct writer *w, struct commit_queue *finished)
{
	struct writer_shared *s = &w->shared;
	const struct apply *a = &w->apply;
	uint64_t dead;
	bool notify;

	pthread_mutex_lock(&w->lock);
	notify = finished->first != NULL && s->done.first == NULL;
	commit_move(&s->done, finished);
	/* Until something is synced `applied` stays where recovery put it. A dead segment gets
	 * no more bytes, so `applied` moves behind it: a checkpoint then releases it, perhaps
	 * the room that the next segment needs. Also behind one that died in its first flush: its
	 * batches, even those that reached the disk, were not done. */
	dead = w->log.fd < 0 ? MAX(w->log.good.seq, w->log.seq) : 0;
	if (a->unfinished.first != NULL)
		s->applied = a->unfinished.first->pos;
	else if (dead != 0)
		s->applied = (struct wal_pos){dead + 1, WAL_BEGIN};
	else if (w->log.good.seq != 0)
		s->applied = w->log.good;
	s->applied_lsn = a->unfinished.first != NULL ? a->unfinished.first->first_lsn : w->log.lsn;
	s->bytes = w->bytes;
	s->applied_bytes = a->unfinished.first != NULL ? a->unfinished.first->before : w->bytes;
	s->commits = w->commits;
	s->flushes = w->flushes;
	s->held_commits = a->held_commits;
	s->held_bytes = a->held_bytes;
	s->segment_error = w->log_error;
	s->held_error = 0;
	if (a->held != NULL) {
		s->held_error = a->held->error;
		snprintf(s->held_path, sizeof(s->held_path), "%s", a->held->path);
	}
	writer_judge(w);
	if (s->owner_waits && s->done.first != NULL)
		pthread_cond_signal(&w->ready);
	pthread_mutex_unlock(&w->lock);
	if (notify && w->notify != NULL)
		w->notify(w->user);
	if (w->progress != NULL)
		w->progress(w->bytes, w->progress_user);
}

/* ---- the thread */

static int64_t queue_due_us(const struct writer *w)
{
	const struct writer_shared *s = &w->shared;

	if (s->in.first == NULL)
		return INT64_MAX;
	if (s->in_now || s->hurry || s->in_bytes >= WRITER_RIDE_BYTES)
		return 0;
	return s->in_since_us + w->pace_us;
}

/* Time of the thread's own next work. */
static int64_t own_due_us(const struct writer *w)
{
	int64_t ms = w->log_error != 0 ? w->log_retry_ms : INT64_MAX;

	for (const struct view *v = w->apply.held; v != NULL; v = v->next)
		ms = MIN(ms, v->retry_ms);
	return MIN(ms > INT64_MAX / 1000 ? INT64_MAX : ms * 1000, w->mark_us);
}

/* Wait for a reason, then take the queue. False: stop. */
static bool writer_take_turn(struct writer *w)
{
	struct writer_shared *s = &w->shared;
	bool go_on;

	pthread_mutex_lock(&w->lock);
	while (!s->stop) {
		/* Behind a dead segment the queue waits for it. */
		int64_t due = w->log_error == 0 ? queue_due_us(w) : INT64_MAX,
			now = clock_mono_us();
		struct timespec at;

		due = MIN(due, own_due_us(w));
		if (due <= now)
			break;
		s->stuck = w->log_error != 0 || w->apply.held != NULL;
		if (s->stuck && s->owner_waits)
			pthread_cond_signal(&w->ready);
		s->sleeping = true;
		s->wake_us = due;
		at = (struct timespec){.tv_sec = due / 1000000, .tv_nsec = due % 1000000 * 1000};
		if (due == INT64_MAX)
			pthread_cond_wait(&w->work, &w->lock);
		else
			pthread_cond_timedwait(&w->work, &w->lock, &at);
		s->sleeping = false;
	}
	s->stuck = false;
	go_on = !s->stop;
	/* A RIDE that is not due yet goes along: the flush costs the same. */
	commit_move(&w->todo, &s->in);
	s->in_bytes = 0;
	s->in_now = false;
	pthread_mutex_unlock(&w->lock);
	return go_on;
}

/* Flush again and again while something can be laid down. */
static void flush_all(struct writer *w, struct commit_queue *finished)
{
	struct commit *before;

	/* Without a commit the next segment is opened all the same, so that the journal is well
	 * again before somebody needs it. */
	if (w->todo.first == NULL && w->log_error != 0)
		ready_segment(w, 0);
	while ((before = w->todo.first) != NULL) {
		writer_flush(w, finished);
		writer_publish(w, finished);
		if (w->log_error != 0)
			return;
		assert(w->todo.first != before); /* each turn makes progress */
	}
}

/* Is something wrong now, or published as wrong? Then the state must be published. */
static bool unwell(const struct writer *w)
{
	return w->log_error != 0 || w->apply.held != NULL || w->shared.segment_error != 0 ||
	       w->shared.held_error != 0;
}

/* Is more than half of the log in use behind the oldest unapplied commit? A full log refuses all
 * new work. */
static bool writer_held_too_long(const struct writer *w)
{
	const struct commit *c = w->apply.unfinished.first;

	return c != NULL && w->whole - c->whole > w->wal_max / 2;
}

static void *writer_main(void *arg)
{
	struct writer *w = arg;
	struct commit_queue finished = {0};
	bool go_on;

	do {
		go_on = writer_take_turn(w);
		if (w->log_error == 0 || w->log_retry_ms <= clock_mono_ms() || !go_on)
			flush_all(w, &finished);
		apply_retry(&w->apply, false, writer_held_too_long(w), &finished);
		if (w->mark_us <= clock_mono_us()) {
			if (w->log_error == 0)
				log_mark(&w->log);
			w->mark_us = INT64_MAX;
		}
		if (finished.first != NULL || unwell(w))
			writer_publish(w, &finished);
	} while (go_on);
	return NULL;
}

/* ---- for the owner */

int writer_init(struct writer *w, int rootfd, size_t fd_cache, struct segments *pool,
		struct wal_pos good, uint64_t lsn)
{
	pthread_condattr_t attr;
	int rv;

	*w = (struct writer){.mark_us = INT64_MAX, .has_blobs = true}; /* a crash may leave some */
	w->shared.applied = good;
	w->shared.applied_lsn = lsn;
	rv = log_init(&w->log, pool, good, lsn);
	if (rv != 0)
		return rv;
	w->apply = (struct apply){0};
	rv = view_set_init(&w->apply.views, rootfd, fd_cache);
	if (rv != 0) {
		log_fini(&w->log);
		return rv;
	}
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->work, &attr);
	pthread_cond_init(&w->ready, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

void writer_fini(struct writer *w)
{
	assert(!w->started);
	view_set_fini(&w->apply.views);
	log_fini(&w->log);
	pthread_cond_destroy(&w->ready);
	pthread_cond_destroy(&w->work);
	pthread_mutex_destroy(&w->lock);
}

int writer_start(struct writer *w)
{
	if (pthread_create(&w->thread, NULL, writer_main, w) != 0)
		return AVA_ENOMEM;
	w->started = true;
	return 0;
}

/* After this no commit is on its way: operations that a view could not take are durable, and the
 * next start applies them, but they are not readable now. */
static void writer_give_up(struct writer *w)
{
	struct commit_queue finished = {0}, rest = {0};

	apply_retry(&w->apply, true, false, &finished);
	writer_publish(w, &finished); /* publishes how far a checkpoint may go */
	for (struct view *v = w->apply.held; v != NULL; v = v->next) {
		v->held = false;
		v->first = NULL;
	}
	w->apply.held = NULL;
	commit_move(&rest, &w->apply.unfinished);
	for (struct commit *c = rest.first; c != NULL; c = c->next)
		c->rv = AVA_EUNKNOWN;
	for (struct commit *c = w->todo.first; c != NULL; c = c->next)
		c->rv = disk_code(w->log_error);
	commit_move(&rest, &w->todo);
	commit_move(&w->shared.done, &rest);
}

void writer_stop(struct writer *w)
{
	if (!w->started)
		return;
	pthread_mutex_lock(&w->lock);
	w->shared.stop = true;
	pthread_cond_signal(&w->work);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	w->started = false;
	writer_give_up(w);
}

int writer_put(struct writer *w, struct commit *c)
{
	struct writer_shared *s = &w->shared;
	bool wake = false;
	int rv;

	pthread_mutex_lock(&w->lock);
	rv = s->refuse;
	if (rv == 0) {
		if (s->in.first == NULL)
			s->in_since_us = c->now ? 0 : clock_mono_us();
		commit_push(&s->in, c);
		s->in_bytes += c->batch_len;
		s->in_now = s->in_now || c->now;
		wake = s->sleeping && queue_due_us(w) < s->wake_us;
		if (wake)
			s->sleeping = false; /* the writer needs one call only */
	}
	pthread_mutex_unlock(&w->lock);
	if (wake)
		pthread_cond_signal(&w->work);
	return rv;
}

struct commit *writer_take(struct writer *w)
{
	struct commit *c;

	pthread_mutex_lock(&w->lock);
	c = w->shared.done.first;
	w->shared.done.first = NULL;
	pthread_mutex_unlock(&w->lock);
	return c;
}

bool writer_wait(struct writer *w)
{
	struct writer_shared *s = &w->shared;
	bool stuck;

	pthread_mutex_lock(&w->lock);
	s->hurry = s->owner_waits = true;
	pthread_cond_signal(&w->work);
	while (s->done.first == NULL && !(s->stuck && s->in.first == NULL))
		pthread_cond_wait(&w->ready, &w->lock);
	stuck = s->done.first == NULL;
	s->hurry = s->owner_waits = false;
	pthread_mutex_unlock(&w->lock);
	return stuck;
}

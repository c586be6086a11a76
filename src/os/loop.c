/* The loop: a thin layer over libuv that fixes what every layer above relies
 * on: one turn is "wait, run what became ready, then run what was deferred".
 *
 * Happy path: os_loop_run turns until os_loop_stop. A turn is uv_run(ONCE),
 * which runs timers and descriptors that are ready, then the deferred list
 * is drained. libuv runs timers before it waits, so the list is drained before
 * the wait as well: what a timer defers must not wait for the next event; and
 * a timer that fires ends the turn without a wait, which may be for hours.
 * Objects a callback wants gone are deferred too, so that nothing is freed
 * under a caller's feet.
 *
 * Other threads reach the loop through os_post alone: a list behind a mutex
 * and one uv_async. Work runs on libuv's own pool, whose size is left to
 * UV_THREADPOOL_SIZE.
 *
 * What can fail: only making an object (memory, or a descriptor epoll does
 * not take). The watchdog subtracts the time libuv slept from the length of a
 * turn; more than 20 ms left over counts as a gap (a uv_prepare/uv_check pair
 * cannot tell sleeping from the descriptor callbacks, which run between
 * them). */
#include "os/loop.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/error.h"
#include "base/util.h"

#define GAP_NS (20 * 1000 * 1000ull)

struct os_loop {
	uv_loop_t uv;
	uv_async_t wake;       /* wakes the loop when `posted` is not empty */
	uv_timer_t step_timer; /* bounds os_loop_step */
	uv_prepare_t before_wait;
	pthread_mutex_t lock; /* guards posted and `queued` of posted tasks */
	struct list posted;
	struct list deferred;
	struct list own, foreign; /* struct os_work that waits for a thread, by its order */
	struct list at_work;      /* foreign work that a thread works on */
	int nown, nforeign;       /* of each kind, given to libuv */
	uint64_t gaps;
	size_t live; /* timers, polls and signals not freed */
	bool stop;
};

struct os_timer {
	uv_timer_t uv;
	void (*fire)(void *user);
	void *user;
};

struct os_poll {
	uv_poll_t uv;
	void (*ready)(int events, void *user);
	void *user;
	int events; /* what the backend watches */
};

struct os_signal {
	uv_signal_t uv;
	void (*fire)(int signo, void *user);
	void *user;
};

_Static_assert(sizeof(uv_work_t) <= sizeof(((struct os_work *)NULL)->opaque),
	       "os_work.opaque must hold a uv_work_t");

/* ---- the loop */

static void wake_cb(uv_async_t *wake)
{
	struct os_loop *l = wake->data;
	struct list now;

	list_init(&now);
	pthread_mutex_lock(&l->lock);
	list_splice(&now, &l->posted);
	while (!list_empty(&now)) {
		struct os_task *t = LIST_FIRST(&now, struct os_task, node);

		list_del(&t->node);
		t->queued = false;
		pthread_mutex_unlock(&l->lock);
		t->run(t); /* may post itself again, or free itself */
		pthread_mutex_lock(&l->lock);
	}
	pthread_mutex_unlock(&l->lock);
}

static void step_cb(uv_timer_t *timer)
{
	uv_stop(timer->loop);
}

static void loop_drain(struct os_loop *l)
{
	while (!list_empty(&l->deferred)) {
		struct os_task *t = LIST_FIRST(&l->deferred, struct os_task, node);

		list_del(&t->node);
		t->queued = false;
		t->run(t);
	}
}

static void before_wait_cb(uv_prepare_t *prepare)
{
	struct os_loop *l = prepare->data;

	if (list_empty(&l->deferred) && !l->stop)
		return;
	loop_drain(l);
	uv_stop(&l->uv); /* no wait in this turn */
}

struct os_loop *os_loop_new(struct ava_error *err)
{
	struct os_loop *l = calloc(1, sizeof(*l));
	int rv;

	if (!l) {
		err_set(err, AVA_ENOMEM, "event loop: out of memory");
		return NULL;
	}
	list_init(&l->posted);
	list_init(&l->own);
	list_init(&l->foreign);
	list_init(&l->at_work);
	list_init(&l->deferred);
	rv = uv_loop_init(&l->uv);
	if (rv != 0) {
		err_set(err, AVA_EIO, "event loop: %s", uv_strerror(rv));
		free(l);
		return NULL;
	}
	uv_loop_configure(&l->uv, UV_METRICS_IDLE_TIME);
	rv = uv_async_init(&l->uv, &l->wake, wake_cb);
	if (rv != 0) {
		err_set(err, AVA_EIO, "event loop: %s", uv_strerror(rv));
		uv_loop_close(&l->uv);
		free(l);
		return NULL;
	}
	l->wake.data = l;
	uv_timer_init(&l->uv, &l->step_timer);
	uv_prepare_init(&l->uv, &l->before_wait);
	l->before_wait.data = l;
	uv_prepare_start(&l->before_wait, before_wait_cb);
	pthread_mutex_init(&l->lock, NULL);
	return l;
}

static void loop_turn(struct os_loop *l, uv_run_mode mode)
{
	uint64_t began = uv_hrtime(), idle = uv_metrics_idle_time(&l->uv);
	uint64_t slept, took;

	/* Deferred before the loop ran: it must not wait for an event. */
	if (!list_empty(&l->deferred))
		mode = UV_RUN_NOWAIT;
	uv_run(&l->uv, mode);
	loop_drain(l);
	slept = uv_metrics_idle_time(&l->uv) - idle;
	took = uv_hrtime() - began;
	if (took > slept && took - slept > GAP_NS)
		l->gaps++;
}

void os_loop_run(struct os_loop *l)
{
	l->stop = false;
	while (!l->stop)
		loop_turn(l, UV_RUN_ONCE);
}

void os_loop_stop(struct os_loop *l)
{
	l->stop = true;
}

void os_loop_step(struct os_loop *l, int timeout_ms)
{
	l->stop = false;
	if (timeout_ms > 0) {
		uv_update_time(&l->uv);
		uv_timer_start(&l->step_timer, step_cb, (uint64_t)timeout_ms, 0);
	}
	loop_turn(l, timeout_ms == 0 ? UV_RUN_NOWAIT : UV_RUN_ONCE);
	uv_timer_stop(&l->step_timer);
}

int os_loop_fd(const struct os_loop *l)
{
	return uv_backend_fd(&l->uv);
}

/* 0 also when descriptors are watched that the backend has not registered yet. */
int os_loop_timeout(const struct os_loop *l)
{
	int left = uv_backend_timeout(&l->uv);
	/* libuv counts from the time cached when its turn began. */
	uint64_t late = uv_hrtime() / 1000000 - uv_now(&l->uv);

	if (!list_empty(&l->deferred))
		return 0;
	return left <= 0 ? left : (uint64_t)left <= late ? 0 : left - (int)late;
}

void os_loop_free(struct os_loop *l)
{
	if (!l)
		return;
	loop_drain(l);
	uv_close((uv_handle_t *)&l->wake, NULL);
	uv_close((uv_handle_t *)&l->step_timer, NULL);
	uv_close((uv_handle_t *)&l->before_wait, NULL);
	uv_run(&l->uv, UV_RUN_DEFAULT); /* runs the closes, and waits for pool work */
	loop_drain(l);
	assert(l->live == 0);
	uv_run(&l->uv, UV_RUN_DEFAULT); /* frees handles that the last drain closed */
	if (uv_loop_close(&l->uv) != 0)
		assert(!"a handle of the loop is still open");
	pthread_mutex_destroy(&l->lock);
	free(l);
}

int64_t os_now_ms(struct os_loop *l)
{
	return (int64_t)uv_now(&l->uv);
}

uint64_t os_loop_gaps(const struct os_loop *l)
{
	return l->gaps;
}

/* ---- tasks */

void os_task_init(struct os_task *t, void (*run)(struct os_task *t))
{
	list_init(&t->node);
	t->run = run;
	t->queued = false;
}

void os_defer(struct os_loop *l, struct os_task *t)
{
	if (t->queued)
		return;
	t->queued = true;
	list_add(&l->deferred, &t->node);
}

void os_defer_cancel(struct os_loop *l, struct os_task *t)
{
	(void)l;
	if (!t->queued)
		return;
	t->queued = false;
	list_del(&t->node);
}

void os_post(struct os_loop *l, struct os_task *t)
{
	bool first;

	pthread_mutex_lock(&l->lock);
	first = !t->queued;
	if (first) {
		t->queued = true;
		list_add(&l->posted, &t->node);
	}
	pthread_mutex_unlock(&l->lock);
	if (first)
		uv_async_send(&l->wake);
}

/* ---- pool work */

static int pool_size(void)
{
	const char *set = getenv("UV_THREADPOOL_SIZE");

	return set ? MIN(MAX(atoi(set), 1), 1024) : 4; /* libuv's own default */
}

/* Orders mostly grow, so that the place is near the end. */
static void work_wait(struct list *waiting, struct os_work *w)
{
	struct list *behind = waiting;

	while (behind->prev != waiting &&
	       LIST_ENTRY(behind->prev, struct os_work, node)->order > w->order)
		behind = behind->prev;
	list_insert(behind, &w->node);
}

static void work_cb(uv_work_t *req)
{
	struct os_work *w = req->data;

	w->work(w);
}

static void work_done_cb(uv_work_t *req, int status);

static void work_give(struct os_loop *l, struct os_work *w)
{
	uv_work_t *req = (uv_work_t *)w->opaque;
	int rv;

	w->loop = l;
	req->data = w;
	rv = uv_queue_work(&l->uv, req, work_cb, work_done_cb);
	assert(rv == 0); /* fails only without a work function */
	(void)rv;
}

/* libuv's own queue knows no order, so it gets no more than there are threads. */
static void own_next(struct os_loop *l)
{
	while (l->nown < pool_size() && !list_empty(&l->own)) {
		struct os_work *w = LIST_ENTRY(l->own.next, struct os_work, node);

		list_del(&w->node);
		l->nown++;
		work_give(l, w);
	}
}

/* Next foreign work: the first whose owner is below its share of threads. */
static struct os_work *foreign_first(struct os_loop *l)
{
	LIST_EACH (&l->foreign, node, next) {
		struct os_work *w = LIST_ENTRY(node, struct os_work, node);
		int same = 0; /* under way, of the same owner */

		LIST_EACH (&l->at_work, other, after)
			same += w->owner != NULL &&
				LIST_ENTRY(other, struct os_work, node)->owner == w->owner;
		if (same < MAX(pool_size() / 2, 1))
			return w;
	}
	return NULL;
}

static void foreign_next(struct os_loop *l)
{
	struct os_work *w;

	while (l->nforeign < MAX(pool_size() - 1, 1) && (w = foreign_first(l)) != NULL) {
		list_del(&w->node);
		list_add(&l->at_work, &w->node);
		l->nforeign++;
		work_give(l, w);
	}
}

static void work_done_cb(uv_work_t *req, int status)
{
	struct os_work *w = req->data;

	(void)status; /* never cancelled: nobody cancels a uv_work_t */
	if (w->foreign) {
		w->loop->nforeign--;
		list_del(&w->node);
		foreign_next(w->loop);
	} else {
		w->loop->nown--;
		own_next(w->loop);
	}
	w->done(w);
}

void os_work_start_foreign(struct os_loop *l, struct os_work *w)
{
	w->foreign = true;
	work_wait(&l->foreign, w);
	foreign_next(l);
}

void os_work_start(struct os_loop *l, struct os_work *w)
{
	w->foreign = false;
	work_wait(&l->own, w);
	own_next(l);
}

/* libuv makes its threads at the first work, and ends the process when it cannot: as many are
 * made here first, all at once, to see that they can be had. */
static void *pool_trial_main(void *gate)
{
	pthread_mutex_lock(gate); /* wait until all threads are made */
	pthread_mutex_unlock(gate);
	return NULL;
}

static int pool_try(struct ava_error *err)
{
	pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
	int want = pool_size(), made = 0, rv = 0;
	pthread_t *threads = calloc((size_t)want, sizeof(threads[0]));

	if (!threads)
		return err_set(err, AVA_ENOMEM, "out of memory");
	pthread_mutex_lock(&gate);
	while (rv == 0 && made < want) {
		rv = pthread_create(&threads[made], NULL, pool_trial_main, &gate);
		made += rv == 0;
	}
	pthread_mutex_unlock(&gate);
	for (int i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	if (rv == 0)
		return 0;
	return err_set(err, AVA_ENOMEM,
		       "only %d of the %d threads that ava works with can be made (%s): raise the"
		       " limit of processes or of memory (ulimit -u, -v)",
		       made, want, strerror(rv));
}

struct pool_start {
	struct os_work work;
	bool done;
};

static void pool_work(struct os_work *w)
{
	(void)w; /* a thread for it was all that was asked */
}

static void pool_done(struct os_work *w)
{
	CONTAINER_OF(w, struct pool_start, work)->done = true;
}

int os_pool_start(struct os_loop *l, struct ava_error *err)
{
	struct pool_start p = {.work = {.work = pool_work, .done = pool_done}};
	int rv = pool_try(err);

	if (rv != 0)
		return rv;
	os_work_start(l, &p.work);
	while (!p.done)
		os_loop_step(l, -1);
	return 0;
}

/* ---- timers */

static void handle_closed_cb(uv_handle_t *h)
{
	free(h->data);
}

/* Frees the timer, poll or signal that has the handle, when that is closed. */
static void handle_free(uv_handle_t *h)
{
	CONTAINER_OF(h->loop, struct os_loop, uv)->live--;
	uv_close(h, handle_closed_cb);
}

static void loop_timer_cb(uv_timer_t *uv)
{
	struct os_timer *t = uv->data;

	uv_stop(uv->loop);
	t->fire(t->user);
}

struct os_timer *os_timer_new(struct os_loop *l, void (*fire)(void *user), void *user)
{
	struct os_timer *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	uv_timer_init(&l->uv, &t->uv);
	t->uv.data = t;
	t->fire = fire;
	t->user = user;
	l->live++;
	return t;
}

void os_timer_set(struct os_timer *t, int64_t after_ms)
{
	/* libuv counts from the time cached when the turn began; a timer set
	 * after 50 ms of work would fire 50 ms early. */
	int64_t late = (int64_t)(uv_hrtime() / 1000000) - (int64_t)uv_now(t->uv.loop);

	uv_timer_start(&t->uv, loop_timer_cb, (uint64_t)(MAX(after_ms, 0) + MAX(late, 0)), 0);
}

void os_timer_stop(struct os_timer *t)
{
	uv_timer_stop(&t->uv);
}

void os_timer_free(struct os_timer *t)
{
	if (t)
		handle_free((uv_handle_t *)&t->uv);
}

/* ---- descriptors */

static void loop_poll_cb(uv_poll_t *uv, int status, int events)
{
	struct os_poll *p = uv->data;
	int ready = 0;

	/* libuv stops a descriptor in error; the owner learns the error by reading or writing. */
	if (status < 0) {
		p->events = 0;
		ready = OS_READ | OS_WRITE;
	}
	if (events & (UV_READABLE | UV_DISCONNECT))
		ready |= OS_READ;
	if (events & UV_WRITABLE)
		ready |= OS_WRITE;
	p->ready(ready, p->user);
}

struct os_poll *os_poll_new(struct os_loop *l, int fd, void (*ready)(int events, void *user),
			    void *user)
{
	struct os_poll *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	if (uv_poll_init(&l->uv, &p->uv, fd) != 0) {
		free(p);
		return NULL;
	}
	p->uv.data = p;
	p->ready = ready;
	p->user = user;
	l->live++;
	return p;
}

void os_poll_set(struct os_poll *p, int events)
{
	int uv = 0;

	if (events == p->events) /* libuv takes a descriptor out and in again */
		return;
	p->events = events;
	if (events & OS_READ)
		uv |= UV_READABLE;
	if (events & OS_WRITE)
		uv |= UV_WRITABLE;
	if (uv == 0)
		uv_poll_stop(&p->uv);
	else if (uv_poll_start(&p->uv, uv, loop_poll_cb) != 0)
		p->events = 0; /* the next call tries again */
}

void os_poll_free(struct os_poll *p)
{
	if (p)
		handle_free((uv_handle_t *)&p->uv);
}

/* ---- signals */

static void signal_cb(uv_signal_t *uv, int signo)
{
	struct os_signal *s = uv->data;

	s->fire(signo, s->user);
}

void os_signal_free(struct os_signal *s)
{
	if (s)
		handle_free((uv_handle_t *)&s->uv);
}

struct os_signal *os_signal_new(struct os_loop *l, int signo, void (*fire)(int signo, void *user),
				void *user)
{
	struct os_signal *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	if (uv_signal_init(&l->uv, &s->uv) != 0) {
		free(s);
		return NULL;
	}
	s->uv.data = s;
	s->fire = fire;
	s->user = user;
	l->live++;
	if (uv_signal_start(&s->uv, signal_cb, signo) != 0) {
		os_signal_free(s);
		return NULL;
	}
	return s;
}

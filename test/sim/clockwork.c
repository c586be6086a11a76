/* A heap of what is due, by time and age; the loop of os/loop.h on top of it. Work
 * for the pool runs at once when its time comes, its end a little later. A loop is
 * one process: it may only be freed when all its timers were. */
#include "clockwork.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/util.h"
#include "os/loop.h"

#define SPINS_MAX 100000 /* steps in a row that waited for nothing */

struct clockwork sim;

struct sim_due {
	int64_t at;
	uint64_t age;
	void (*run)(void *user); /* NULL: cancelled */
	void *user;
	struct sim_process *of;
};

static struct sim_due **heap;
static size_t nheap, cap_heap;

/* The world itself, which in worlds of one process is that. */
static struct sim_process world;
static struct sim_process *at_work = &world;

/* ---- chance */

static uint64_t draw_from(uint64_t *rng)
{
	uint64_t z = (*rng += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint64_t sim_draw(void)
{
	return draw_from(&sim.rng);
}

int64_t sim_span(int64_t least, int64_t most)
{
	return least + (int64_t)(sim_draw() % (uint64_t)(most - least + 1));
}

bool sim_maybe(int thousandths)
{
	return sim_span(0, 999) < thousandths;
}

static void fill(void *out, size_t len)
{
	unsigned char *at = out;

	for (size_t i = 0; i < len; i++)
		at[i] = (unsigned char)draw_from(&sim.id_rng);
}

ssize_t __wrap_getrandom(void *out, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *out, size_t len, unsigned flags)
{
	(void)flags;
	fill(out, len);
	return (ssize_t)len;
}

/* libsodium's: keys of seals. */
void randombytes_buf(void *const out, const size_t len);
void randombytes_buf(void *const out, const size_t len)
{
	fill(out, len);
}

void clockwork_begin(uint64_t seed)
{
	assert(sim_next() == INT64_MAX && at_work == &world); /* nothing is due */
	world = (struct sim_process){0};
	sim = (struct clockwork){.seed = seed, .rng = seed, .id_rng = ~seed, .left = -1};
}

bool clockwork_touch(void)
{
	if (sim.dead)
		return false;
	sim.touches++;
	if (sim.left < 0 || sim.left-- > 0)
		return true;
	sim.dead = true;
	sim.died();
	return false;
}

/* ---- processes */

struct sim_process *sim_at_work(void)
{
	return at_work;
}

struct sim_process *sim_enter(struct sim_process *p)
{
	struct sim_process *was = at_work;

	p = p != NULL ? p : &world;
	if (p == was)
		return was;
	was->mono = sim.mono;
	was->wall = sim.wall;
	was->dead = sim.dead;
	was->left = sim.left;
	was->touches = sim.touches;
	sim.mono = p->mono;
	sim.wall = p->wall;
	sim.dead = p->dead;
	sim.left = p->left;
	sim.touches = p->touches;
	at_work = p;
	if (p->entered != NULL)
		p->entered(p);
	return was;
}

/* ---- clocks */

int64_t __wrap_clock_mono_ms(void);
int64_t __wrap_clock_mono_us(void);
int64_t __wrap_clock_wall_ms(void);

int64_t __wrap_clock_mono_ms(void)
{
	return sim.now + sim.mono;
}

int64_t __wrap_clock_mono_us(void)
{
	return (sim.now + sim.mono) * 1000;
}

int64_t __wrap_clock_wall_ms(void)
{
	return sim.now + sim.wall;
}

/* ---- what is due */

static bool before(const struct sim_due *a, const struct sim_due *b)
{
	return a->at < b->at || (a->at == b->at && a->age < b->age);
}

static void put_due(struct sim_due *d)
{
	size_t i = nheap++;

	if (nheap > cap_heap) {
		cap_heap = cap_heap * 2 + 64;
		heap = realloc(heap, cap_heap * sizeof(*heap));
		assert(heap != NULL);
	}
	for (; i > 0 && before(d, heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = d;
}

struct sim_due *sim_at(int64_t when, void (*run)(void *user), void *user)
{
	struct sim_due *d = malloc(sizeof(*d));

	assert(d != NULL);
	*d = (struct sim_due){MAX(when, sim.now), sim.events++, run, user, at_work};
	at_work->due++;
	put_due(d);
	return d;
}

void sim_cancel(struct sim_due *d)
{
	if (d == NULL || d->run == NULL)
		return;
	d->run = NULL;
	d->of->due--;
}

void sim_forget(const void *user)
{
	for (size_t i = 0; i < nheap; i++)
		if (heap[i]->user == user)
			sim_cancel(heap[i]);
}

static struct sim_due *take(void)
{
	struct sim_due *first = heap[0], *last = heap[--nheap];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < nheap) {
		if (child + 1 < nheap && before(heap[child + 1], heap[child]))
			child++;
		if (!before(heap[child], last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return first;
}

int64_t sim_next(void)
{
	while (nheap > 0) {
		struct sim_due *d = heap[0];

		if (d->run != NULL && d->at >= d->of->frozen_until)
			return d->at;
		take();
		if (d->run == NULL) {
			free(d);
			continue;
		}
		d->at = d->of->frozen_until;
		put_due(d);
	}
	return INT64_MAX;
}

/* ---- the loop */

struct os_loop {
	struct list posted, deferred;
	size_t live, works;
};

struct os_timer {
	struct os_loop *loop;
	struct sim_due *due;
	void (*fire)(void *user);
	void *user;
};

static bool drain(struct list *tasks)
{
	bool any = false;

	while (!list_empty(tasks)) {
		struct os_task *t = LIST_FIRST(tasks, struct os_task, node);

		list_del(&t->node);
		t->queued = false;
		t->run(t);
		any = true;
	}
	return any;
}

static bool drain_all(void)
{
	bool any = false;

	while (at_work->loop != NULL &&
	       (drain(&at_work->loop->posted) || drain(&at_work->loop->deferred)))
		any = true;
	return any;
}

void sim_within(struct sim_process *p, void (*run)(void *user), void *user)
{
	struct sim_process *was = sim_enter(p);

	at_work->turns++;
	run(user);
	drain_all();
	(void)sim_enter(was);
}

/* What is done stays in the heap, cancelled, until its turn comes. */
static void happens(struct sim_due *d)
{
	void (*run)(void *user) = d->run;

	sim.now = MAX(sim.now, d->at);
	sim_cancel(d);
	sim_within(d->of, run, d->user);
}

void sim_step(void)
{
	if (sim_next() != INT64_MAX)
		happens(heap[0]);
	drain_all();
}

/* Of a process that is dead and torn down nothing is seen outside, so it may be ahead of the
 * others: its next event until then; false: there is none. */
static bool step_alone(int64_t until)
{
	struct sim_due *d = NULL;

	if (!at_work->alone)
		at_work->since = sim.now;
	at_work->alone = true;
	for (size_t i = 0; i < nheap; i++)
		if (heap[i]->of == at_work && heap[i]->run != NULL && heap[i]->at <= until &&
		    (d == NULL || before(heap[i], d)))
			d = heap[i];
	if (d != NULL)
		happens(d);
	return d != NULL;
}

/* Until something of the process at work happened, or `until`. */
static void step_among(int64_t until)
{
	struct sim_process *me = at_work;
	uint64_t turns = me->turns;

	while (!sim.dead && me->turns == turns && sim_next() <= MAX(until, me->frozen_until))
		sim_step();
	if (!sim.dead && me->turns == turns && until != INT64_MAX)
		sim.now = MAX(sim.now, MAX(until, me->frozen_until));
}

void sim_kill(struct sim_process *p)
{
	if (p == at_work)
		sim.dead = true;
	else
		p->dead = true;
}

struct os_loop *os_loop_new(struct ava_error *err)
{
	struct os_loop *l = calloc(1, sizeof(*l));

	(void)err;
	assert(l != NULL && at_work->loop == NULL);
	list_init(&l->posted);
	list_init(&l->deferred);
	return at_work->loop = l;
}

void os_loop_free(struct os_loop *l)
{
	drain_all();
	while (l->works > 0) /* as the real one waits for them */
		os_loop_step(l, -1);
	assert(l == at_work->loop && l->live == 0);
	assert(at_work->due == 0);
	if (at_work->alone)
		sim.now = at_work->since;
	at_work->alone = false;
	at_work->loop = NULL;
	free(l);
}

/* Who defers a task in each of its steps never waits, here nor over libuv. */
static void check_spin(void)
{
	static int64_t when;
	static unsigned spins;

	spins = when == sim.now ? spins + 1 : 0;
	when = sim.now;
	assert(spins < SPINS_MAX);
}

void os_loop_step(struct os_loop *l, int timeout_ms)
{
	int64_t until = timeout_ms < 0 ? INT64_MAX : sim.now + timeout_ms;

	(void)l;
	if (drain_all()) {
		check_spin();
		return;
	}
	if (timeout_ms == 0)
		return;
	if (at_work == &world && sim_next() > until)
		sim.now = until;
	else if (at_work == &world)
		sim_step();
	else if (!sim.dead)
		step_among(until);
	else if (!step_alone(until) && until != INT64_MAX)
		sim.now = until;
}

uint64_t os_loop_gaps(const struct os_loop *l)
{
	(void)l;
	return 0;
}

int64_t os_now_ms(struct os_loop *l)
{
	(void)l;
	return clock_mono_ms();
}

/* ---- tasks */

void os_task_init(struct os_task *t, void (*run)(struct os_task *t))
{
	*t = (struct os_task){.run = run};
	list_init(&t->node);
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
	if (t->queued)
		return;
	t->queued = true;
	list_add(&l->posted, &t->node);
}

/* ---- work */

static void work_done(void *user)
{
	struct os_work *w = user;

	w->loop->works--;
	w->done(w);
}

static void work_runs(void *user)
{
	struct os_work *w = user;

	w->work(w);
	sim_at(sim.now + sim_span(0, 2), work_done, w);
}

void os_work_start(struct os_loop *l, struct os_work *w)
{
	w->loop = l;
	l->works++;
	sim_at(sim.now + sim_span(0, 2), work_runs, w);
}

void os_work_start_foreign(struct os_loop *l, struct os_work *w)
{
	os_work_start(l, w);
}

/* ---- timers */

static void fire(void *user)
{
	struct os_timer *t = user;

	t->due = NULL;
	t->fire(t->user);
}

struct os_timer *os_timer_new(struct os_loop *l, void (*fired)(void *user), void *user)
{
	struct os_timer *t = calloc(1, sizeof(*t));

	assert(t != NULL);
	*t = (struct os_timer){.loop = l, .fire = fired, .user = user};
	l->live++;
	return t;
}

void os_timer_set(struct os_timer *t, int64_t after_ms)
{
	sim_cancel(t->due);
	/* A timer is never early, and on a busy machine it is late. */
	t->due = sim_at(sim.now + MIN(MAX(after_ms, 0), INT64_MAX / 4) + sim_span(0, 1), fire, t);
}

void os_timer_stop(struct os_timer *t)
{
	sim_cancel(t->due);
	t->due = NULL;
}

void os_timer_free(struct os_timer *t)
{
	if (t == NULL)
		return;
	sim_cancel(t->due);
	t->loop->live--;
	free(t);
}

/* ---- descriptors: nothing of a run in this world has any */

struct os_poll *os_poll_new(struct os_loop *l, int fd, void (*ready)(int events, void *user),
			    void *user)
{
	(void)l;
	(void)fd;
	(void)ready;
	(void)user;
	return NULL;
}

void os_poll_set(struct os_poll *p, int events)
{
	(void)p;
	(void)events;
}

void os_poll_free(struct os_poll *p)
{
	(void)p;
}

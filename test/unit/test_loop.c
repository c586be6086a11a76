/* Turns, deferred and posted tasks, timers, polls, signals, pool work, the
 * watchdog. */
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/util.h"
#include "os/loop.h"

static int setup(void **state)
{
	*state = os_loop_new(NULL);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	test_clock_go();
	os_loop_free(*state);
	return 0;
}

/* ---- tasks */

struct order {
	struct os_task task;
	struct os_loop *loop;
	struct order *next; /* deferred by this one when it runs */
	char name;
	char *log;
	size_t *len;
};

static void order_run(struct os_task *t)
{
	struct order *o = CONTAINER_OF(t, struct order, task);

	o->log[(*o->len)++] = o->name;
	if (o->next)
		os_defer(o->loop, &o->next->task);
}

TEST_WITH(defer, setup, teardown)
{
	struct os_loop *l = *state;
	char log[16] = "";
	size_t len = 0;
	struct order c = {.loop = l, .name = 'c', .log = log, .len = &len};
	struct order a = {.loop = l, .name = 'a', .log = log, .len = &len, .next = &c};
	struct order b = {.loop = l, .name = 'b', .log = log, .len = &len};
	struct order x = {.loop = l, .name = 'x', .log = log, .len = &len};

	os_task_init(&a.task, order_run);
	os_task_init(&b.task, order_run);
	os_task_init(&c.task, order_run);
	os_task_init(&x.task, order_run);
	os_defer(l, &a.task);
	os_defer(l, &x.task);
	os_defer(l, &b.task);
	os_defer(l, &a.task); /* twice runs once */
	os_defer_cancel(l, &x.task);
	os_defer_cancel(l, &x.task);
	os_loop_step(l, -1); /* does not wait: something is deferred */
	assert_string_equal(log, "abc");
	os_defer(l, &x.task);
	os_loop_step(l, 0);
	assert_string_equal(log, "abcx");
}

struct poster {
	struct os_task task;
	struct os_loop *loop;
	int posted, ran;
	pthread_t thread;
};

static void poster_run(struct os_task *t)
{
	CONTAINER_OF(t, struct poster, task)->ran++;
}

static void *poster_main(void *arg)
{
	struct poster *p = arg;

	for (p->posted = 0; p->posted < 1000; p->posted++)
		os_post(p->loop, &p->task);
	return NULL;
}

TEST_WITH(post, setup, teardown)
{
	struct poster p[4] = {{.ran = 0}};
	int before;

	for (size_t i = 0; i < ARRAY_LEN(p); i++) {
		p[i].loop = *state;
		os_task_init(&p[i].task, poster_run);
		assert_int_equal(pthread_create(&p[i].thread, NULL, poster_main, &p[i]), 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(p); i++)
		while (p[i].ran == 0)
			os_loop_step(*state, -1);
	for (size_t i = 0; i < ARRAY_LEN(p); i++)
		pthread_join(p[i].thread, NULL);
	os_loop_step(*state, 1); /* the last posts */
	for (size_t i = 0; i < ARRAY_LEN(p); i++)
		assert_in_range(p[i].ran, 1, 1000);
	before = p[0].ran;
	os_post(*state, &p[0].task);
	os_post(*state, &p[0].task); /* twice before it ran: once */
	os_loop_step(*state, -1);
	assert_int_equal(p[0].ran, before + 1);
}

struct job {
	struct os_work work;
	pthread_t ran_on;
	bool done;
};

static void job_work(struct os_work *w)
{
	CONTAINER_OF(w, struct job, work)->ran_on = pthread_self();
}

static void job_done(struct os_work *w)
{
	CONTAINER_OF(w, struct job, work)->done = true;
}

TEST_WITH(work, setup, teardown)
{
	struct job jobs[20] = {{.done = false}};

	for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
		jobs[i].work.work = job_work;
		jobs[i].work.done = job_done;
		os_work_start(*state, &jobs[i].work);
	}
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
		while (!jobs[i].done)
			os_loop_step(*state, -1);
		assert_false(pthread_equal(jobs[i].ran_on, pthread_self()));
		assert_ptr_equal(jobs[i].work.loop, *state);
	}
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void hang(struct os_work *w)
{
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	job_work(w);
}

/* However many of them hang: other work goes on, and all of them end. */
TEST_WITH(foreign_work_hangs, setup, teardown)
{
	struct job hung[20] = {{.done = false}}, other = {.done = false};

	pthread_mutex_lock(&gate);
	for (size_t i = 0; i < ARRAY_LEN(hung); i++) {
		hung[i].work.work = hang;
		hung[i].work.done = job_done;
		os_work_start_foreign(*state, &hung[i].work);
	}
	other.work.work = job_work;
	other.work.done = job_done;
	os_work_start(*state, &other.work);
	for (int i = 0; i < 6000 && !other.done; i++)
		os_loop_step(*state, 10);
	assert_true(other.done);
	pthread_mutex_unlock(&gate);
	for (size_t i = 0; i < ARRAY_LEN(hung); i++)
		while (!hung[i].done)
			os_loop_step(*state, -1);
}

static struct job *ran[8];
static unsigned nran;

static void note_done(struct os_work *w)
{
	ran[nran++] = CONTAINER_OF(w, struct job, work);
	job_done(w);
}

static void share(struct os_loop *l, struct job *j, void (*work)(struct os_work *w), int owner,
		  uint64_t order)
{
	static const char owners[4];

	*j = (struct job){
		.work = {.work = work, .done = note_done, .owner = &owners[owner], .order = order}};
	os_work_start_foreign(l, &j->work);
}

/* One run holds half of the threads at the most; of what waits the oldest run's goes first. */
TEST_WITH(foreign_work_is_shared, setup, teardown)
{
	struct job hung[2], more, late, middle, early;

	nran = 0;
	pthread_mutex_lock(&gate);
	share(*state, &hung[0], hang, 0, 0);
	share(*state, &hung[1], hang, 0, 0);
	share(*state, &more, job_work, 0, 0);
	share(*state, &late, job_work, 1, 9);
	share(*state, &middle, job_work, 2, 5);
	share(*state, &early, job_work, 3, 1);
	for (int i = 0; i < 6000 && nran < 3; i++)
		os_loop_step(*state, 10);
	assert_int_equal(nran, 3);
	assert_ptr_equal(ran[0], &late); /* nobody else was there when it came */
	assert_ptr_equal(ran[1], &early);
	assert_ptr_equal(ran[2], &middle);
	pthread_mutex_unlock(&gate);
	while (nran < 6)
		os_loop_step(*state, -1);
}

static pthread_mutex_t own_gate = PTHREAD_MUTEX_INITIALIZER;

static void own_hang(struct os_work *w)
{
	pthread_mutex_lock(&own_gate);
	pthread_mutex_unlock(&own_gate);
	job_work(w);
}

/* Of what waits for the one thread that is left the oldest run's goes first; nobody waits behind
 * what belongs to no run. */
TEST_WITH(own_work_is_ordered, setup, teardown)
{
	static const uint64_t orders[] = {7, 3, 9, 3, 1, 0, 8, 2};
	static const unsigned first_to_last[] = {5, 4, 7, 1, 3, 0, 6, 2};
	struct job foreign[3], hung[4], jobs[ARRAY_LEN(orders)];

	nran = 0;
	pthread_mutex_lock(&gate);
	pthread_mutex_lock(&own_gate);
	for (size_t i = 0; i < ARRAY_LEN(foreign); i++) {
		foreign[i] = (struct job){.work = {.work = hang, .done = job_done}};
		os_work_start_foreign(*state, &foreign[i].work);
	}
	for (size_t i = 0; i < ARRAY_LEN(hung); i++) {
		hung[i] = (struct job){.work = {.work = own_hang, .done = job_done}};
		os_work_start(*state, &hung[i].work);
	}
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
		jobs[i] = (struct job){
			.work = {.work = job_work, .done = note_done, .order = orders[i]}};
		os_work_start(*state, &jobs[i].work);
	}
	pthread_mutex_unlock(&own_gate);
	while (nran < ARRAY_LEN(jobs))
		os_loop_step(*state, -1);
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		assert_ptr_equal(ran[i], &jobs[first_to_last[i]]);
	pthread_mutex_unlock(&gate);
	for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
		while (!foreign[i].done)
			os_loop_step(*state, -1);
}

/* ---- timers */

struct bell {
	struct os_timer *timer;
	int rings;
	bool free_it;
};

static void bell_fire(void *user)
{
	struct bell *b = user;

	b->rings++;
	if (b->free_it)
		os_timer_free(b->timer);
}

/* Of a clock that stands: how many milliseconds it must go. */
static int rings_after(struct os_loop *l, struct bell *b)
{
	int ms = 0, rings = b->rings;

	for (os_loop_step(l, 0); b->rings == rings; os_loop_step(l, 0), ms++)
		test_clock_skip(1);
	return ms;
}

TEST_WITH(timer, setup, teardown)
{
	struct bell b = {.rings = 0}, gone = {.free_it = true};

	b.timer = os_timer_new(*state, bell_fire, &b);
	gone.timer = os_timer_new(*state, bell_fire, &gone);
	os_timer_set(gone.timer, -5); /* past means now */
	while (!gone.rings)
		os_loop_step(*state, -1);
	test_clock_stop();
	os_timer_set(b.timer, 100000);
	os_timer_set(b.timer, 20); /* re-arms */
	assert_int_equal(rings_after(*state, &b), 20);
	os_timer_set(b.timer, 1);
	os_timer_stop(b.timer);
	test_clock_skip(10);
	os_loop_step(*state, 0);
	assert_int_equal(b.rings, 1);
	os_timer_free(b.timer);
	os_timer_free(NULL);
}

/* A timer that is due when the turn begins fires before libuv waits, and the wait would be
 * for whatever comes next. */
TEST_WITH(timer_due_before_the_turn, setup, teardown)
{
	struct bell b = {.rings = 0}, far = {.rings = 0};

	test_clock_stop();
	b.timer = os_timer_new(*state, bell_fire, &b);
	far.timer = os_timer_new(*state, bell_fire, &far);
	os_timer_set(far.timer, 100000);
	os_timer_set(b.timer, 1);
	test_clock_skip(5);
	os_loop_step(*state, -1);
	assert_int_equal(b.rings, 1);
	assert_int_equal(far.rings, 0);
	os_timer_free(b.timer);
	os_timer_free(far.timer);
}

/* Without room for its threads it says so; libuv would end the process. */
TEST_WITH(no_threads, setup, teardown)
{
	struct ava_error err = {0};
	struct rlimit few = {16u << 20, 16u << 20};
	pid_t pid;
	int status;

	if (UNIT_SANITIZED)
		skip(); /* it needs more memory than that */
	pid = fork();
	if (pid == 0) {
		setenv("UV_THREADPOOL_SIZE", "64", 1); /* more stacks than are left over */
		setrlimit(RLIMIT_AS, &few);
		_exit(os_pool_start(*state, &err) == AVA_ENOMEM && strstr(err.text, "threads") ? 7
											       : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	assert_int_equal(os_pool_start(*state, &err), 0);
}

struct slow {
	struct os_task task;
	struct bell *bell;
};

static void slow_run(struct os_task *t)
{
	struct slow *s = CONTAINER_OF(t, struct slow, task);

	test_clock_skip(40);
	os_timer_set(s->bell->timer, 30);
}

/* The turn's cached time is 40 ms old when the timer is set. */
TEST_WITH(timer_not_early, setup, teardown)
{
	struct bell b = {.rings = 0};
	struct slow s = {.bell = &b};
	uint64_t gaps = os_loop_gaps(*state);

	b.timer = os_timer_new(*state, bell_fire, &b);
	os_task_init(&s.task, slow_run);
	test_clock_stop();
	os_defer(*state, &s.task);
	assert_int_equal(rings_after(*state, &b), 30);
	assert_int_equal(os_loop_gaps(*state), gaps + 1); /* the 40 ms of work */
	os_timer_free(b.timer);
}

/* libuv runs timers before it waits: what they defer, and a stop, must not wait
 * for the next event, here a timer in 100 seconds. */
struct deferrer {
	struct os_loop *loop;
	struct os_task task;
	bool stop_at_once;
};

static void deferred_stop(struct os_task *t)
{
	os_loop_stop(CONTAINER_OF(t, struct deferrer, task)->loop);
}

static void deferrer_fire(void *user)
{
	struct deferrer *d = user;

	if (d->stop_at_once)
		os_loop_stop(d->loop);
	else
		os_defer(d->loop, &d->task);
}

TEST_WITH(timer_defers, setup, teardown)
{
	struct deferrer d = {.loop = *state};
	struct bell far = {.rings = 0};
	struct os_timer *near = os_timer_new(*state, deferrer_fire, &d);

	test_clock_stop();
	far.timer = os_timer_new(*state, bell_fire, &far);
	os_timer_set(far.timer, 100000);
	os_task_init(&d.task, deferred_stop);
	for (int i = 0; i < 2; i++) {
		d.stop_at_once = i == 1;
		os_timer_set(near, 0);
		os_loop_run(*state);
	}
	assert_int_equal(far.rings, 0);
	os_timer_free(near);
	os_timer_free(far.timer);
}

/* Waiting is no gap. (A busy machine may make one: several tries.) */
TEST_WITH(no_gap, setup, teardown)
{
	uint64_t gaps;
	int tries = 0;

	do {
		gaps = os_loop_gaps(*state);
		os_loop_step(*state, 60);
	} while (os_loop_gaps(*state) != gaps && ++tries < 20);
	assert_int_equal(os_loop_gaps(*state), gaps);
}

/* ---- descriptors */

struct eye {
	struct os_poll *poll;
	int events, calls, fd;
};

static void eye_ready(int events, void *user)
{
	struct eye *e = user;
	char c;

	e->events |= events;
	e->calls++;
	if ((events & OS_READ) && read(e->fd, &c, 1) <= 0)
		os_poll_set(e->poll, 0);
}

TEST_WITH(poll, setup, teardown)
{
	struct eye r = {0}, w = {0};
	int fd[2];

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	r.fd = fd[0];
	r.poll = os_poll_new(*state, fd[0], eye_ready, &r);
	w.poll = os_poll_new(*state, fd[1], eye_ready, &w);
	assert_true(fcntl(fd[0], F_GETFL) & O_NONBLOCK);
	os_loop_step(*state, 0);
	assert_int_equal(w.calls, 0); /* nothing asked for yet */
	os_poll_set(w.poll, OS_WRITE);
	os_poll_set(r.poll, OS_READ);
	os_loop_step(*state, -1);
	assert_int_equal(w.events, OS_WRITE);
	assert_int_equal(r.calls, 0);
	os_poll_set(w.poll, 0);
	assert_int_equal(write(fd[1], "ab", 2), 2);
	os_loop_step(*state, -1);
	os_loop_step(*state, -1); /* level-triggered: the second byte */
	assert_int_equal(r.calls, 2);
	w.calls = 0;
	os_loop_step(*state, 5);
	assert_int_equal(w.calls, 0);
	os_poll_free(w.poll);
	close(fd[1]);
	r.calls = 0;
	os_loop_step(*state, -1); /* end of file */
	assert_int_equal(r.calls, 1);
	os_poll_free(r.poll);
	close(fd[0]);
	os_poll_free(NULL);
}

/* A pipe nobody reads any more: the writer is told once, not for ever. */
TEST_WITH(poll_error, setup, teardown)
{
	struct eye w = {.fd = -1};
	int fd[2];

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	while (write(fd[1], "x", 1) == 1 && fcntl(fd[1], F_SETFL, O_NONBLOCK) == 0)
		;
	w.poll = os_poll_new(*state, fd[1], eye_ready, &w);
	os_poll_set(w.poll, OS_WRITE);
	close(fd[0]);
	os_loop_step(*state, -1);
	assert_true(w.events & OS_WRITE);
	os_loop_step(*state, 5);
	assert_int_equal(w.calls, 1);
	os_poll_free(w.poll);
	close(fd[1]);
}

TEST_WITH(poll_refused, setup, teardown)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_null(os_poll_new(*state, fd, eye_ready, NULL)); /* a file is always ready */
	close(fd);
}

/* ---- the rest */

static void signal_fire(int signo, void *user)
{
	*(int *)user = signo;
}

TEST_WITH(signal, setup, teardown)
{
	int got = 0;
	struct os_signal *s = os_signal_new(*state, SIGUSR1, signal_fire, &got);

	assert_non_null(s);
	kill(getpid(), SIGUSR1);
	while (got == 0)
		os_loop_step(*state, -1);
	assert_int_equal(got, SIGUSR1);
	os_signal_free(s);
	os_signal_free(NULL);
	assert_null(os_signal_new(*state, SIGKILL, signal_fire, NULL));
}

static void stop_run(struct os_task *t);
struct stopper {
	struct os_task task;
	struct os_loop *loop;
	int turns;
};

static void stop_run(struct os_task *t)
{
	struct stopper *s = CONTAINER_OF(t, struct stopper, task);

	if (++s->turns == 3)
		os_loop_stop(s->loop);
	else
		os_post(s->loop, t);
}

TEST_WITH(run_stop, setup, teardown)
{
	struct stopper s = {.loop = *state};

	os_task_init(&s.task, stop_run);
	os_post(*state, &s.task);
	os_loop_run(*state);
	assert_int_equal(s.turns, 3);
}

static void new_and_free(void)
{
	struct os_loop *l = os_loop_new(NULL);
	struct os_timer *t;

	if (!l)
		return;
	t = os_timer_new(l, bell_fire, NULL);
	os_timer_free(t);
	os_loop_free(l);
}

/* ---- in another loop */

static void count_ready(int events, void *user)
{
	++*(int *)user;
}

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* A descriptor is only known to epoll after a step, so that is asked for. */
TEST_WITH(inside, setup, teardown)
{
	struct os_loop *l = *state;
	int fd = os_loop_fd(l), ends[2], n = 0;
	struct os_timer *t;
	struct os_poll *p;

	os_loop_step(l, 0);
	assert_int_equal(os_loop_timeout(l), -1);
	assert_int_equal(pipe(ends), 0);
	p = os_poll_new(l, ends[0], count_ready, &n);
	os_poll_set(p, OS_READ);
	assert_int_equal(os_loop_timeout(l), 0);
	os_loop_step(l, 0);
	assert_int_equal(os_loop_timeout(l), -1);
	assert_false(readable(fd));
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_true(readable(fd));
	os_loop_step(l, 0);
	assert_int_equal(n, 1);
	os_poll_free(p);
	os_loop_step(l, 0);
	t = os_timer_new(l, NULL, NULL);
	os_timer_set(t, 1000000);
	assert_in_range(os_loop_timeout(l), 1, 1000000);
	os_timer_free(t);
	os_loop_step(l, 0);
	close(ends[0]);
	close(ends[1]);
}

TEST(alloc_faults)
{
	FAULT_LOOP(k, new_and_free());
}

/* The loop (libuv) as the layers above see it: timers, posted tasks, worker threads,
 * descriptors, signals. One thread runs a loop; only os_post may be called from others.
 * Callbacks only store arrivals and wake their readers; objects are freed from the reap list at
 * the end of a turn (os_defer). */
#ifndef OS_LOOP_H
#define OS_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct os_loop;
struct ava_error;

struct os_loop *os_loop_new(struct ava_error *err);
/* Run the deferred tasks, close every handle; timers and polls that were not freed are a bug
 * (assert). */
void os_loop_free(struct os_loop *l);
void os_loop_run(struct os_loop *l); /* until os_loop_stop */
void os_loop_stop(struct os_loop *l);
/* One turn: waits at most `timeout_ms` (-1: until something happens). */
void os_loop_step(struct os_loop *l, int timeout_ms);
/* For use in another loop: call os_loop_step (with 0) when the descriptor is readable, and at the
 * latest after os_loop_timeout ms (-1: only then), asked anew after each step and every other use
 * of the loop. */
int os_loop_fd(const struct os_loop *l);
int os_loop_timeout(const struct os_loop *l);

/* ---- a task runs once on the loop; embed it, *borrowed until it runs*. Use
 * a task with os_defer or with os_post, not with both. */
struct os_task {
	struct list node;
	void (*run)(struct os_task *t);
	bool queued;
};
void os_task_init(struct os_task *t, void (*run)(struct os_task *t));
/* Run the task at the end of this loop turn (loop thread only); queued twice it runs once. A task
 * deferred by a deferred task runs in the same turn. */
void os_defer(struct os_loop *l, struct os_task *t);
void os_defer_cancel(struct os_loop *l, struct os_task *t);
/* Run the task on the loop, which wakes for it; from any thread. Queued twice before it ran, it
 * runs once. */
void os_post(struct os_loop *l, struct os_task *t);

/* ---- work on a pool thread, then `done` on the loop (also after cancel). */
struct os_work {
	void (*work)(struct os_work *w); /* pool thread */
	void (*done)(struct os_work *w); /* loop; may free w's container */
	struct os_loop *loop;            /* set by os_work_start */
	void *priv;                      /* the caller's */
	const void *owner; /* foreign work: its owner, limited to half of the threads; NULL: none */
	uint64_t order;    /* of what waits the least goes first, of equals the older */
	struct list node;  /* in a list of the loop, waiting or running; not yours */
	bool foreign;      /* it was started by os_work_start_foreign */
	uint64_t opaque[16]; /* libuv's request; not yours */
};
/* Make the pool's threads, with the signals that are blocked now, and wait for them. Call before
 * other work: otherwise the first work makes them, and ends the process when it cannot. */
int os_pool_start(struct os_loop *l, struct ava_error *err);
/* Start work on the pool, which cannot fail; `w` is *borrowed until done*. */
void os_work_start(struct os_loop *l, struct os_work *w);
/* As os_work_start, for work on files of others, which may lie on a disk that does not answer: such
 * work never holds all threads, and waits while too much of it is running. */
void os_work_start_foreign(struct os_loop *l, struct os_work *w);

/* ---- timers: one shot, monotonic. NULL: out of memory. */
struct os_timer;
struct os_timer *os_timer_new(struct os_loop *l, void (*fire)(void *user), void *user);
void os_timer_set(struct os_timer *t, int64_t after_ms); /* re-arms */
void os_timer_stop(struct os_timer *t);
void os_timer_free(struct os_timer *t); /* NULL is fine; safe in its own callback */
int64_t os_now_ms(struct os_loop *l);   /* monotonic, cached once a turn */

/* ---- descriptors: level-triggered. Makes `fd` non-blocking; a descriptor
 * has one poll at a time; NULL: no memory, or epoll does not take it (regular
 * files). After an error of the descriptor both events are reported once and
 * polling stops until os_poll_set. After os_poll_free `fd` may be closed. */
#define OS_READ  1
#define OS_WRITE 2
struct os_poll;
struct os_poll *os_poll_new(struct os_loop *l, int fd, void (*ready)(int events, void *user),
			    void *user);
void os_poll_set(struct os_poll *p, int events); /* 0 stops */
void os_poll_free(struct os_poll *p);            /* NULL is fine; safe in its own callback */

/* ---- signals. NULL: no memory, or no such signal. */
struct os_signal;
struct os_signal *os_signal_new(struct os_loop *l, int signo, void (*fire)(int signo, void *user),
				void *user);
void os_signal_free(struct os_signal *s);

/* Number of gaps over 20 ms between turns of the loop since start (watchdog), for doctor and
 * health. */
uint64_t os_loop_gaps(const struct os_loop *l);

#endif

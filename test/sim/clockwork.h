/* Time and chance for the runtime in a simulated world: os/loop.h on a clock that
 * jumps from event to event, the clocks of base/clock.h, the randomness of
 * base/id.h and libsodium; one seed decides all of it. One thread.
 *
 * The process lives until clockwork_touch, which everything calls that reaches out
 * of it, has been called a drawn number of times. Then `dead` is set: whoever called
 * does nothing, what is still on its way in this callback has no effect, and the
 * driver tears the process down.
 *
 * A world of several processes has a struct sim_process for each. The one at work has
 * its part of `sim` there; what it makes due is its own, and when that happens it is
 * at work again. One that waits (os_loop_step) lets the others go on meanwhile. */
#ifndef SIM_CLOCKWORK_H
#define SIM_CLOCKWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clockwork {
	uint64_t seed, rng, id_rng;
	int64_t now;        /* ms since the world began; only this drives events */
	int64_t mono, wall; /* what the clocks show more than that */
	bool dead;
	long left;    /* touches until it dies; < 0: it lives on */
	long touches; /* of this life */
	uint64_t events;
	void (*died)(void); /* at that moment: what is durable is taken */
};
extern struct clockwork sim;

struct sim_process {
	/* Its part of `sim` while another one is at work. */
	int64_t mono, wall;
	bool dead;
	long left, touches;
	/* Always here. */
	struct os_loop *loop;
	int64_t frozen_until; /* what is due to it before waits until then */
	size_t due;           /* events of it that are not cancelled */
	uint64_t turns;       /* events of it that happened */
	bool alone;           /* dead: its time goes on for itself until its loop is freed */
	int64_t since;        /* alone: the world's time */
	void (*entered)(struct sim_process *p); /* it is at work now; or NULL */
};
/* Something happens in a process: `run`, and what that posted and deferred. */
void sim_within(struct sim_process *p, void (*run)(void *user), void *user);
/* NULL: the world itself, or the only process of it. Returns who was at work. */
struct sim_process *sim_enter(struct sim_process *p);
struct sim_process *sim_at_work(void);
void sim_kill(struct sim_process *p); /* it is dead from now on */

void clockwork_begin(uint64_t seed);
/* The process reaches out: false when it is gone. */
bool clockwork_touch(void);

uint64_t sim_draw(void);
int64_t sim_span(int64_t least, int64_t most); /* both included */
bool sim_maybe(int thousandths);

/* An event of the process at work: it goes with it. The newest of one owner is cancelled by
 * its handle; NULL when it ran. */
struct sim_due;
struct sim_due *sim_at(int64_t when, void (*run)(void *user), void *user);
void sim_cancel(struct sim_due *d);
void sim_forget(const void *user); /* all that are due to it */
/* When the next one is due; INT64_MAX: none. */
int64_t sim_next(void);
/* Runs it, and what it posted and deferred. */
void sim_step(void);

#endif

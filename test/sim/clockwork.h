/* Time and chance for the runtime in a simulated world: os/loop.h on a clock that
 * jumps from event to event, the clocks of base/clock.h, the randomness of
 * base/id.h and libsodium; one seed decides all of it. One thread.
 *
 * The process lives until clockwork_touch, which everything calls that reaches out
 * of it, has been called a drawn number of times. Then `dead` is set: whoever called
 * does nothing, what is still on its way in this callback has no effect, and the
 * driver tears the process down. */
#ifndef SIM_CLOCKWORK_H
#define SIM_CLOCKWORK_H

#include <stdbool.h>
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

void clockwork_begin(uint64_t seed);
/* The process reaches out: false when it is gone. */
bool clockwork_touch(void);

uint64_t sim_draw(void);
int64_t sim_span(int64_t least, int64_t most); /* both included */
bool sim_maybe(int thousandths);

/* An event of the process: it goes with it. The newest of one owner is cancelled by
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

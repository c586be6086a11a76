/* Following the daemon's streams of events, through its restarts and lost connections:
 * every event once, in order, by its id. */
#ifndef CLIENT_FOLLOW_H
#define CLIENT_FOLLOW_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/client.h"

struct follow {
	char path[128]; /* of the stream */
	bool of_run;    /* it ends with its run; else it goes on until it is stopped */
	bool patient;   /* only a refusal ends it; else also a minute without a daemon */
	/* A connection to a daemon, which is started if need be. */
	int (*connect)(struct client **c, void *user, struct ava_error *err);
	/* *Borrowed during the call.* Positive stops; negative: it has not been taken, the
	 * stream is opened anew before it. */
	int (*on_event)(const struct sse_event *e, void *user);
	/* The stream is open: from now on nothing is missed. NULL: nobody asks. */
	void (*on_open)(void *user);
	void (*on_lost)(void *user); /* it broke, or there is no daemon; NULL as well */
	/* Called when clock_mono_ms() has passed *tick_ms; sets it anew. NULL: never. */
	void (*on_tick)(int64_t *tick_ms, void *user);
	int64_t tick_ms;
	/* A signal handler set *interrupt: ask for what should happen over `c`. Non-zero
	 * ends the following with that code. NULL: AVA_ECANCELED ends it. */
	int (*on_interrupt)(struct client *c, void *user, struct ava_error *err);
	volatile sig_atomic_t *interrupt; /* NULL: none */
	void *user;
	char last_id[24]; /* "" at first: from the beginning */
};

/* Until the run has ended (0), on_event says stop (its value), or it cannot go on (a
 * code). *c (NULL: none yet) may be replaced. */
int follow_run(struct follow *f, struct client **c, struct ava_error *err);

/* Until something happens behind `lsn` for which `is_news` (NULL: all is) says 1, it is
 * `until_ms` (clock_mono_ms), or the client is interrupted: 0. Else why not. */
int follow_news(struct client *c, uint64_t lsn, int64_t until_ms,
		int (*is_news)(const struct sse_event *e, void *user), void *user,
		struct ava_error *err);

/* The daemon went away, or does not answer: its successor may. */
bool follow_may_come_back(int code);

#endif

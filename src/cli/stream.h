/* Following a run's events over the daemon, through restarts of the daemon
 * and lost connections: every event once, in order, by its lsn. */
#ifndef CLI_STREAM_H
#define CLI_STREAM_H

#include <ava.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/client.h"

struct stream {
	const char *run; /* borrowed */
	/* An event line, borrowed during the call. Returns 0 to go on. */
	int (*on_event)(const char *type, const char *line, size_t len, void *user);
	/* Called when clock_mono_ms() has passed *tick_ms; sets it anew. NULL: never. */
	void (*on_tick)(int64_t *tick_ms, void *user);
	int64_t tick_ms;
	/* A signal handler set *interrupt: ask for what should happen over `c`.
	 * Non-zero ends the following with that code. NULL: ends it. */
	int (*on_interrupt)(struct client *c, void *user, struct ava_error *err);
	volatile sig_atomic_t *interrupt; /* NULL: none */
	void *user;
	char last_id[24]; /* "" at first: from the run's first event */
	bool ended;       /* the run's last event has been given out */
};

/* Until the run has ended (0), on_event says stop (its value), or it cannot go
 * on (a code). *c may be replaced. */
int stream_run(struct stream *s, struct client **c, struct ava_error *err);

#endif

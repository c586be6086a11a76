/* The one follower of a stream of the daemon's events or Items: over lost connections and restarts
 * of the daemon, each once and in order, from the last id that came. It waits for nothing but a
 * connection: who has nothing else to do waits with follow_wait, others poll client_fd(f->c). */
#ifndef CLIENT_FOLLOW_H
#define CLIENT_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "client/client.h"

struct ava_error;

#define FOLLOW_QUIET_MS 45000 /* silence of three heartbeats: the connection is lost */

struct follower {
	/* *Borrowed until follow_close.* A run's stream ends behind the run's last event. */
	const char *path;
	/* A connection to the daemon, the follower's from then on. */
	int (*connect)(void *user, struct client **c, struct ava_error *err);
	/* Positive: the following is over. Negative: it was not taken and comes again. */
	int (*on_event)(const struct sse_event *e, void *user);
	void *user;
	int64_t open_ms;  /* longest wait for the stream's begin; 0: as long as for any answer */
	char last[3072];  /* id of the last event; "": as the path says */
	struct client *c; /* NULL: not connected; the next look connects */
	int64_t heard_ms; /* when the stream last brought anything, clock_mono_ms */
	bool ended;       /* a run's stream has come to its end */
};

/* Connect, or take what has come. 1: something came, or there is a new connection; 0: nothing, or
 * it has ended. Else on_event's code, or why there is no connection any more. */
int follow_look(struct follower *f, struct ava_error *err);
/* 1: a look may bring something; 0: it is `until_ms` (clock_mono_ms; -1: never). A code:
 * interrupted. */
int follow_wait(struct follower *f, int64_t until_ms, struct ava_error *err);
void follow_close(struct follower *f);

#endif

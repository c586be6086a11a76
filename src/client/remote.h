/* The connected half of libava: struct backend over the daemon's HTTP API. */
#ifndef CLIENT_REMOTE_H
#define CLIENT_REMOTE_H

#include "client/backend.h"
#include <stdint.h>

/* The daemon of `root` (absolute), started when none serves and `start` is
 * set. Codes as client_open. */
int remote_open(const char *root, bool start, struct backend **out, struct ava_error *err);

/* ---- event streams */

struct remote_stream_host { /* the part of the backend that streams need */
	const char *root;
	int epoll; /* streams add their sockets to it */
	/* Makes sure that a daemon serves; starts one if that is allowed. */
	int (*serve)(void *user, struct ava_error *err);
	void *user;
	unsigned lost; /* streams that could not be connected again */
};

/* Waits until the daemon has begun to answer. `path` without "after" (*copied*);
 * `after` AVA_NOW: without; `seen`: what a new connection goes on behind when
 * nothing has come yet. `host` is *borrowed until closed*. */
int remote_stream_open(struct remote_stream_host *host, const char *path, uint64_t after,
		       uint64_t seen, struct backend_cursor **out, struct ava_error *err);
/* The functions of a cursor. After an error the next call connects again. ended: the daemon has
 * ended a run's stream in order, after its last event. */
int remote_stream_next(struct backend_cursor *c, struct backend_item *item, struct ava_error *err);
bool remote_stream_ended(const struct backend_cursor *c);
int remote_stream_wait(struct backend_cursor *c, int timeout_ms, struct ava_error *err);
void remote_stream_close(struct backend_cursor *c);

#endif

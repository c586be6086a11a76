/* HTTP to the table of verbs (ava/verbs.h). */
#ifndef GATEWAY_ROUTES_H
#define GATEWAY_ROUTES_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/list.h"

struct ava_error;
struct caller;
struct config;
struct core;
struct http_request;
struct mcp;
struct metrics;
struct redact;

/* State that all requests share. */
struct routes {
	struct core *core;
	struct mcp *mcp;         /* the door at /mcp; NULL: none */
	struct metrics *metrics; /* NULL: none */
	bool stopping;           /* answers are the last of their connection */
	unsigned streams;        /* event streams that have not come to their end */
	struct list open;        /* the streams that `streams` counts */
	/* Users who may be served, with their login from the system: looked up once. */
	struct {
		uid_t uid;
		char login[64];
	} owners[2];
};

/* `shutdown`: POST /shutdown, as core_service has it. */
void routes_init(struct routes *r, struct core *core, void (*shutdown)(int now, void *user),
		 void *user);
/* Opens what stands beside the verbs: /mcp and /metrics. Errors are those of metrics_new; after
 * any, routes_close. */
int routes_open(struct routes *r, const struct config *config, struct redact *redact,
		void (*log)(const char *line, void *user), void *log_user, struct ava_error *err);
/* Does /metrics have an address of its own, so that somebody may ask at any time? */
bool routes_scraped(const struct routes *r);
/* Before the loop ends, and when no verb answers any more. */
void routes_hang_up(struct routes *r);
void routes_close(struct routes *r);
/* The handler of http_server_new for the Unix socket, whose peers the kernel knows; `user` is
 * a struct routes. */
void routes_handle(struct http_request *req, void *user);
/* The same for a door that knows itself who asks. Streams that begin belong to `door`. */
void routes_serve(struct routes *r, struct http_request *req, const struct caller *caller,
		  unsigned door);
/* Break off the door's streams: their client's key is no longer valid. */
void routes_drop(struct routes *r, unsigned door);
/* The daemon is about to stop: clients that wait for a result are told that the run goes on.
 * Requests that wait for the disk are still answered. */
void routes_stop(struct routes *r);

#endif

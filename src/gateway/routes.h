/* HTTP to the table of verbs (ava/verbs.h). */
#ifndef GATEWAY_ROUTES_H
#define GATEWAY_ROUTES_H

#include <stdbool.h>
#include <sys/types.h>

struct core;
struct http_request;

/* What all requests share. */
struct routes {
	struct core *core;
	bool stopping;    /* answers are the last of their connection */
	unsigned streams; /* event streams that have not come to their end */
	/* Who may be served, with the login that the system knows: asked for once. */
	struct {
		uid_t uid;
		char login[64];
	} owners[2];
};

/* `shutdown`: POST /shutdown, as core_service has it. */
void routes_init(struct routes *r, struct core *core, void (*shutdown)(int now, void *user),
		 void *user);
/* The handler of http_server_new; `user` is a struct routes. */
void routes_handle(struct http_request *req, void *user);
/* The daemon is about to stop: who waits for a result is told that the run
 * goes on. What waits for the disk is still answered. */
void routes_stop(struct routes *r);

#endif

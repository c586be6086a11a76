/* HTTP to verbs: paths and methods of doc/api.yaml onto ava/ops.h. */
#ifndef GATEWAY_ROUTES_H
#define GATEWAY_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"

struct core;
struct http_request;

/* What all requests share; its owner reads and sets the middle ones. */
struct routes {
	struct core *core;
	/* POST /shutdown: `now`, or once no run is started. */
	void (*shutdown)(int now, void *user);
	void *user;

	char problem[512]; /* not "": health is degraded for this reason, no new work */
	bool stopping;     /* answers are the last of their connection, none waits */
	unsigned log_jobs; /* questions to the logs that are being answered */
	unsigned streams;  /* event streams that have not come to their end */

	struct list waits; /* kept requests that wait for a result */
};

void routes_init(struct routes *r, struct core *core, void (*shutdown)(int now, void *user),
		 void *user);
/* The handler of http_server_new; `user` is a struct routes. */
void routes_handle(struct http_request *req, void *user);
/* The daemon is about to stop: who waits for a result is told that the run
 * goes on. What waits for the disk is still answered. */
void routes_stop(struct routes *r);

/* Row i of the table ("/api/v1/runs/{id}/result"); NULL behind the last. For
 * the check against doc/api.yaml. */
const char *routes_row(size_t i, const char **method);

#endif

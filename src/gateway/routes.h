/* HTTP to verbs: paths and methods of doc/api.yaml onto ava/ops.h. */
#ifndef GATEWAY_ROUTES_H
#define GATEWAY_ROUTES_H

struct core;
struct http_request;

struct routes {
	struct core *core;
	/* POST /shutdown: `now`, or once no run is started. */
	void (*shutdown)(int now, void *user);
	void *user;
};

/* The handler of http_server_new; `user` is a struct routes. */
void routes_handle(struct http_request *req, void *user);

#endif

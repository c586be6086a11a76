/* subscriptions/listen of MCP: an open stream that tells which runs and logs have changed. Nothing
 * waits in it: what changed while the client was slow is told once, when it reads again. */
#ifndef GATEWAY_MCP_LISTEN_H
#define GATEWAY_MCP_LISTEN_H

#include <jansson.h>
#include <stdbool.h>

struct ava_error;
struct core;
struct http_request;

/* Answers `req` with the stream. `id` of the request and `params` are only read. `again`: the
 * client has had its acknowledgement from a process before this one, and may have missed things:
 * everything it listens to counts as changed. On error the request is still the caller's.
 * AVA_EINVAL, AVA_ENOMEM. */
int mcp_listen(struct core *core, unsigned *streams, struct http_request *req, const json_t *id,
	       const json_t *params, bool again, struct ava_error *err);

#endif

/* Event streams (SSE) over event cursors. */
#ifndef GATEWAY_EVENTS_H
#define GATEWAY_EVENTS_H

#include <stdint.h>

struct core;
struct http_request;
struct ava_error;

/* Answers `req` with a stream of the events of `run` (NULL: all) with a
 * greater lsn than `after` (UINT64_MAX: from now on). `session` not "": only
 * those of that conversation, and frames without an id beside them: "text" and
 * "thinking" as Ava speaks, "turn" when she begins and ends. On error the
 * request is still the caller's to answer. *streams counts those that are open. */
int events_start(struct core *c, unsigned *streams, struct http_request *req, const char *run,
		 const char *session, uint64_t after, struct ava_error *err);

#endif

/* Figures for Prometheus: the runtime of this moment, and counters since the process began
 * (subagent/tally.h), in the text form 0.0.4. They are had at /metrics of the Unix socket and of
 * the page, and of an address of their own where metrics.listen says so. doc/METRICS.md has the
 * names. Loop thread only. */
#ifndef GATEWAY_METRICS_H
#define GATEWAY_METRICS_H

#include <stdbool.h>

struct ava_error;
struct config;
struct core;
struct http_request;
struct metrics;
struct redact;

/* Reads the token and listens. `streams` counts the open event streams; `core` and `streams` are
 * *borrowed until metrics_free*. The token becomes a known secret of `redact`. An address that
 * cannot be had is told to `log`, and is all that fails then. AVA_EINVAL, AVA_EDENIED, AVA_ENOENT
 * with the sentence (the settings), AVA_ENOMEM, AVA_ETOOBIG. */
int metrics_new(struct metrics **out, const struct config *config, struct core *core,
		const unsigned *streams, struct redact *redact,
		void (*log)(const char *line, void *user), void *log_user, struct ava_error *err);
void metrics_free(struct metrics *m); /* NULL is fine */

/* The answer to a GET or HEAD of /metrics by somebody who may ask. */
void metrics_send(const struct metrics *m, struct http_request *req);
/* Does the value of Authorization (NULL: none) hold the token? */
bool metrics_allows(const struct metrics *m, const char *authorization);
bool metrics_has_token(const struct metrics *m);
/* Does it listen? A daemon that is scraped does not leave for want of work. */
bool metrics_listens(const struct metrics *m);

#endif

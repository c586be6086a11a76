/* Traces of runs that ended are pushed to a collector of OpenTelemetry
 * (otel.endpoint), each at least once, across restarts. doc/TRACE.md, "Pushed".
 * Loop thread only. */
#ifndef AVA_OTEL_H
#define AVA_OTEL_H

#include <stddef.h>
#include <stdint.h>

#include "ava/delivery.h"
#include "base/buf.h"
#include "event/trace.h"

struct otel_sender;
struct redact;
struct os_loop;

struct ava_error;
struct core;

/* Opens the channel. `endpoint` NULL or "": nothing is pushed. `headers` may be NULL. AVA_EINVAL,
 * AVA_EDENIED (the address, the headers), AVA_ENOMEM. */
int otel_open(struct core *c, const char *endpoint, const char *headers, struct ava_error *err);

struct jw;
/* Writes "otel" into an open object, for health; nothing, when no endpoint is set. */
void otel_health(const struct core *c, struct jw *w);

/* Pushes an ended run now, before waiting ones, also a second time. 0: noted, until a restart.
 * AVA_EUNSUPPORTED: no endpoint; AVA_ENOENT: no such run; AVA_EBUSY: it has not ended, or 64 others
 * wait; AVA_ENOMEM. */
int ops_push(struct core *c, const char *run, struct ava_error *err);

/* ---- otel_metrics.c: the counters of this process (subagent/tally.h), pushed every otel.metrics
 * seconds, where an endpoint is set. After delivery_open; errors as of otel_open. */
struct core_options;
int otel_metrics_open(struct core *c, const struct core_options *o, struct ava_error *err);
/* Ends a push under way; accepts a core without one. */
void otel_metrics_close(struct core *c);

/* ---- the collector */

#define OTEL_HEADERS_NAME "OTEL_EXPORTER_OTLP_HEADERS"
#define OTEL_HEADERS_MAX  16

/* Splits "name=value,name=value", with percent-encoded values as OpenTelemetry has them, into
 * "name: value" for `each`. `text` NULL: none. AVA_EINVAL names the bad header, never its value. */
int otel_headers(const char *text, int (*each)(const char *header, void *user), void *user,
		 struct ava_error *err);
/* Makes values that authenticate known secrets. Unreadable headers are skipped. AVA_ENOMEM,
 * AVA_ETOOBIG. */
int otel_secrets(struct redact *r, const char *text);

/* Writes `endpoint` without a "/v1/traces" or slashes at its end into `base`. */
void otel_base(const char *endpoint, char *base, size_t size);

struct otel_answer {
	enum channel_end end; /* given up: a retry cannot succeed */
	int64_t after_ms;     /* the wait that the collector asks for; -1: none */
	int64_t rejected;     /* spans left out of an accepted request */
	char reason[700];     /* one sentence; "" when all spans were taken */
};

/* Judges an answer of `status`; `after` and `date` are its headers or NULL. */
void otel_judge(int status, const char *after, const char *date, int64_t wall_ms, const char *body,
		size_t len, struct otel_answer *out);

/* NULL with err, as http_pool_new and otel_headers fail. */
struct otel_sender *otel_sender_new(struct os_loop *loop, const char *endpoint, const char *headers,
				    int64_t timeout_ms, struct ava_error *err);
void otel_sender_free(struct otel_sender *s); /* NULL is fine; cancels the call */
/* One call at a time. `body` is *taken*; `done` once, from the loop, unless freed before.
 * AVA_ENOMEM: not begun, `body` stays the caller's. */
int otel_send(struct otel_sender *s, enum otlp_signal signal, struct buf *body,
	      void (*done)(const struct otel_answer *a, void *user), void *user,
	      struct ava_error *err);

#endif

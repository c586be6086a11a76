/* Traces of runs that ended are pushed to a collector of OpenTelemetry
 * (otel.endpoint), each at least once, across restarts. doc/TRACE.md, "Pushed".
 * Loop thread only. */
#ifndef AVA_OTEL_H
#define AVA_OTEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
struct otel_sender;
struct redact;
struct os_loop;

struct ava_error;
struct core;

/* Go on behind the last run that was pushed, or with those that end from now on.
 * `endpoint` NULL or "": nothing is pushed. `headers` may be NULL. After runs are
 * taken up. AVA_EINVAL, AVA_EDENIED (the address, the headers), AVA_ENOMEM. */
int otel_open(struct core *c, const char *endpoint, const char *headers, struct ava_error *err);
bool otel_idle(const struct core *c); /* nothing is to be pushed */
void otel_close(struct core *c);      /* while the journal is open, after jobs_end */

struct jw;
/* For health, into an open object: "otel" with how it goes; nothing is pushed: nothing. */
void otel_health(const struct core *c, struct jw *w);

/* Push this ended run now, again if it was: before those that wait. 0: it is asked
 * for, and forgotten by a restart. AVA_EUNSUPPORTED: no endpoint; AVA_ENOENT: no such
 * run; AVA_EBUSY: it has not ended, or 64 others are asked for. */
int ops_push(struct core *c, const char *run, struct ava_error *err);

/* ---- the collector */

#define OTEL_HEADERS_NAME "OTEL_EXPORTER_OTLP_HEADERS"
#define OTEL_HEADERS_MAX  16

/* "name=value,name=value", values percent-encoded, as OpenTelemetry has it: each to
 * `each` as "name: value". NULL: none. AVA_EINVAL says which one is none, never its
 * value. */
int otel_headers(const char *text, int (*each)(const char *header, void *user), void *user,
		 struct ava_error *err);
/* Values that let somebody in become known secrets. What cannot be read is passed
 * over. AVA_ENOMEM, AVA_ETOOBIG. */
int otel_secrets(struct redact *r, const char *text);

/* "https://host/base" to "https://host/base" + "/v1/traces". `base` has room for
 * what `endpoint` has. */
void otel_base(const char *endpoint, char *base, size_t size);

enum otel_verdict {
	OTEL_TAKEN,
	OTEL_LATER,   /* the same again may be taken */
	OTEL_REFUSED, /* it never will be */
};

struct otel_answer {
	enum otel_verdict verdict;
	int64_t after_ms; /* that it asks to wait; -1: it does not say */
	int64_t rejected; /* spans that it left out of a request that it took */
	char reason[300]; /* one sentence; "" when all was taken */
};

/* What an answer of `status` means; `after` and `date` are its headers or NULL. */
void otel_judge(int status, const char *after, const char *date, int64_t wall_ms, const char *body,
		size_t len, struct otel_answer *out);

/* NULL with err, as http_pool_new and otel_headers. */
struct otel_sender *otel_sender_new(struct os_loop *loop, const char *endpoint, const char *headers,
				    int64_t timeout_ms, struct ava_error *err);
void otel_sender_free(struct otel_sender *s); /* NULL is fine; ends what is under way */
/* One at a time. `body` is *taken*; `done` once, from the loop, unless freed before.
 * AVA_ENOMEM: not begun, `body` is still the caller's. */
int otel_send(struct otel_sender *s, struct buf *body,
	      void (*done)(const struct otel_answer *a, void *user), void *user,
	      struct ava_error *err);

#endif

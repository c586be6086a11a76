/* What a collector of OpenTelemetry is reached by, its address and headers with the key that
 * it wants; one request of spans to it over OTLP/HTTP in JSON, and what its answer means. Loop
 * thread only. */
#ifndef AVA_OTEL_SEND_H
#define AVA_OTEL_SEND_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct ava_error;
struct os_loop;
struct redact;

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

struct otel_sender;
/* NULL with err, as http_pool_new and otel_headers. */
struct otel_sender *otel_sender_new(struct os_loop *loop, const char *endpoint, const char *headers,
				    int64_t timeout_ms, struct ava_error *err);
void otel_sender_free(struct otel_sender *s); /* NULL is fine; ends what is under way */
/* One at a time. `body` is *taken*; `done` once, from the loop, unless stopped.
 * AVA_ENOMEM: not begun, `body` is still the caller's. */
int otel_send(struct otel_sender *s, struct buf *body,
	      void (*done)(const struct otel_answer *a, void *user), void *user,
	      struct ava_error *err);
void otel_send_stop(struct otel_sender *s);

#endif

/* What a collector of OpenTelemetry is reached by: its address, and headers with the
 * key that it wants. Pure. */
#ifndef AVA_OTEL_HEADERS_H
#define AVA_OTEL_HEADERS_H

#include <stddef.h>

struct ava_error;
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

#endif

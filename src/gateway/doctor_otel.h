/* What `ava doctor` says of otel.endpoint: a request without spans, which every
 * collector takes, tells whether it is there and takes our headers. */
#ifndef GATEWAY_DOCTOR_OTEL_H
#define GATEWAY_DOCTOR_OTEL_H

#include <ava.h>
#include <stdbool.h>
#include <stddef.h>

#include "ava/otel_send.h"

struct os_loop;

struct doctor_otel {
	const char *endpoint; /* borrowed; "": none */
	unsigned headers;
	struct otel_sender *sender;
	bool over;
	struct otel_answer answer;
	struct ava_error err; /* it could not be asked */
};

void doctor_otel_start(struct doctor_otel *o, struct os_loop *loop, const char *endpoint);
/* Its sentence when it is over. True: all is well. */
bool doctor_otel_text(const struct doctor_otel *o, char *out, size_t size);
void doctor_otel_fini(struct doctor_otel *o);

#endif

/* One request to the collector, by the way of every push: what it answers there it
 * would answer to a trace. Without an endpoint it is over at once. What can fail is
 * what it is for. */
#include "gateway/doctor_otel.h"

#include <stdio.h>

#include "ava/otel_headers.h"
#include "base/keys.h"

#define TIMEOUT_MS 5000

static int count_header(const char *header, void *user)
{
	(void)header;
	++*(unsigned *)user;
	return 0;
}

static void answered(const struct otel_answer *a, void *user)
{
	struct doctor_otel *o = user;

	o->answer = *a;
	o->over = true;
}

void doctor_otel_start(struct doctor_otel *o, struct os_loop *loop, const char *endpoint)
{
	const char *headers = keys_get(OTEL_HEADERS_NAME);
	struct buf body;

	*o = (struct doctor_otel){.endpoint = endpoint, .over = true};
	if (endpoint[0] == '\0')
		return;
	(void)otel_headers(headers, count_header, &o->headers, NULL);
	o->sender = otel_sender_new(loop, endpoint, headers, TIMEOUT_MS, &o->err);
	buf_init(&body, 64);
	buf_adds(&body, "{\"resourceSpans\":[]}");
	if (o->sender != NULL && otel_send(o->sender, &body, answered, o, &o->err) == 0)
		o->over = false;
	buf_fini(&body);
}

bool doctor_otel_text(const struct doctor_otel *o, char *out, size_t size)
{
	const char *why = o->err.code != 0 ? o->err.text : o->answer.reason;
	bool well = o->err.code == 0 && o->answer.verdict == OTEL_TAKEN;
	char with[64] = "";

	if (o->headers > 0)
		snprintf(with, sizeof(with), ", with %u header%s (%s)", o->headers,
			 o->headers == 1 ? "" : "s", keys_source(OTEL_HEADERS_NAME));
	snprintf(out, size, "traces of ended runs are pushed to %s%s%s%s", o->endpoint, with,
		 well ? ", which answers" : ": ", well ? "" : why);
	return well;
}

void doctor_otel_fini(struct doctor_otel *o)
{
	otel_sender_free(o->sender);
	o->sender = NULL;
}

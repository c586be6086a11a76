/* A file of events from anywhere: each line that is taken reads back as it was
 * kept, and every question about the trace has an answer. */
#include "fuzz.h"

#include <ava.h>

#include "codec/jscan.h"
#include "codec/json.h"

static void ask(struct ava_trace *t)
{
	const struct ava_trace_tool *tools;
	const struct ava_event *events;
	const char *const *list;
	struct ava_trace_totals sum;
	size_t n;

	CHECK(ava_trace_totals(t, &sum, NULL) == 0);
	CHECK(ava_trace_tool_calls(t, &tools, &n, NULL) == 0);
	CHECK(n <= (size_t)sum.tool_calls);
	CHECK(ava_trace_errors(t, &list, &n, NULL) == 0);
	CHECK(ava_trace_checkpoints(t, &list, &n, NULL) == 0);
	CHECK(ava_trace_events(t, "infer,tool", 0, 0, &events, &n, NULL) == 0);
}

/* What is written is JSON, and the trace again. */
static void write_down(struct ava_trace *t)
{
	struct ava_trace *back;
	struct ava_trace_info was, is;
	const char *json;
	json_t *v;
	size_t len;

	CHECK(ava_trace_otlp(t, &json, &len, NULL) == 0);
	v = json_parse(json, len, NULL);
	CHECK(v != NULL);
	json_decref(v);
	CHECK(ava_trace_merge(&back, (const struct ava_trace *[]){t, t}, 2, NULL) == 0);
	ava_trace_info(t, &was);
	ava_trace_info(back, &is);
	CHECK(is.events <= 2 * was.events && (was.events == 0) == (is.events == 0));
	ava_trace_free(back);
}

FUZZ_TARGET(trace, len)
{
	const char *text = (const char *)data, *line;
	struct ava_trace *t;
	size_t at = 0, n;
	int more;

	CHECK(ava_trace_new(&t, "", NULL, NULL) == 0);
	while ((more = jsonl_next(text, len, &at, &line, &n)) != 0) {
		(void)ava_trace_append(t, line, n, NULL);
		if (more < 0)
			break;
	}
	ask(t);
	write_down(t);
	ava_trace_free(t);
}

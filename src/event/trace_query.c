/* The tree of a trace, and queries. Totals are counted at the calls themselves: each InferEnd
 * once for tokens and money, each ToolCall once, never the sums that CostUpdate,
 * SubagentComplete or Join repeat, so that a trace made of forked, joined, resumed or merged
 * ones counts nothing twice.
 *
 * Answers live in the trace's arena until the next query. Memory is all that can fail, and an
 * unknown type. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "event/trace.h"

static int trace_query_no_memory(struct ava_error *err)
{
	return err_set(err, AVA_ENOMEM, "no memory for what was asked of the trace");
}

/* ---- the tree */

/* The span of the event's run. */
static size_t span_of_run(struct trace_span *list, size_t *n, const struct trace_event *e)
{
	for (size_t i = 0; i < *n; i++)
		if (list[i].kind == TRACE_AGENT && strcmp(list[i].agent, e->shown.agent) == 0)
			return i;
	list[*n] = (struct trace_span){
		.kind = TRACE_AGENT, .agent = e->shown.agent, .start = e, .parent = *n};
	return (*n)++;
}

static void span_call(const struct trace_event *e, char out[24])
{
	json_t *content = trace_content(e);

	snprintf(out, 24, "%s", json_str(content, "callId"));
	json_decref(content);
}

/* An end finds its start from the newest: a turn's results come soon, and a start without an end
 * must not take that of a second use of its id (another root's run of the same name). */
static void span_end(struct trace_span *list, size_t n, enum trace_span_kind kind,
		     const struct trace_event *e)
{
	char id[24];

	span_call(e, id);
	for (size_t i = n; i > 0; i--) {
		struct trace_span *one = &list[i - 1];

		if (one->kind == kind && one->end == NULL && strcmp(one->call, id) == 0 &&
		    strcmp(one->agent, e->shown.agent) == 0) {
			one->end = e;
			return;
		}
	}
}

struct trace_span *trace_spans(const struct ava_trace *t, size_t *n)
{
	size_t nevents;
	const struct trace_event **events = trace_once(t, &nevents);
	/* Each event begins at most two spans. */
	struct trace_span *list = calloc(2 * t->n + 1, sizeof(*list));

	*n = 0;
	for (size_t i = 0; events != NULL && list != NULL && i < nevents; i++) {
		const struct trace_event *e = events[i];
		bool chat = e->kind == EVENT_InferStart || e->kind == EVENT_InferEnd;

		if (e->kind == EVENT_InferStart || e->kind == EVENT_ToolCall) {
			size_t parent = span_of_run(list, n, e);
			struct trace_span *one = &list[(*n)++];

			*one = (struct trace_span){.kind = chat ? TRACE_CHAT : TRACE_TOOL,
						   .agent = e->shown.agent,
						   .start = e,
						   .parent = parent};
			span_call(e, one->call);
		} else if (e->kind == EVENT_InferEnd || e->kind == EVENT_ToolResult) {
			span_end(list, *n, chat ? TRACE_CHAT : TRACE_TOOL, e);
		} else {
			size_t run = span_of_run(list, n, e);

			if (e->kind == EVENT_SubagentComplete)
				list[run].end = e;
		}
	}
	if (events == NULL) {
		free(list);
		list = NULL;
	}
	free(events);
	return list;
}

int64_t trace_span_start(const struct trace_span *one)
{
	int64_t ms, end;
	json_t *meta;

	if (one->kind != TRACE_TOOL || one->end == NULL)
		return one->start->shown.time_ms;
	meta = trace_metadata(one->end);
	ms = json_get_int(meta, "duration", -1);
	json_decref(meta);
	end = one->end->shown.time_ms;
	return ms >= 0 ? end - MIN(ms, end) : one->start->shown.time_ms;
}

/* ---- totals */

/* Add a number from any file: negative ones count as zero, sums saturate. */
static void trace_query_add(int64_t *sum, int64_t n)
{
	if (__builtin_add_overflow(*sum, MAX(n, 0), sum))
		*sum = INT64_MAX;
}

/* True: the call's price is known. */
static bool add_infer(struct ava_trace_totals *out, const struct trace_event *e)
{
	json_t *content = trace_content(e), *meta = trace_metadata(e);
	const json_t *tokens = json_object_get(content, "tokens");
	const char *class = json_get_str(content, "errorClass");
	int64_t cost = json_get_fixed(meta, "costCents", 4, -1);

	trace_query_add(&out->input_tokens,
			json_get_int(tokens, "input", json_get_int(meta, "inputTokens", 0)));
	trace_query_add(&out->output_tokens,
			json_get_int(tokens, "output", json_get_int(meta, "outputTokens", 0)));
	/* A call cancelled by its run's end did not fail: the run's own totals count it so. */
	out->failed_infer_calls += class != NULL && strcmp(class, "cancelled") != 0;
	out->uncosted_calls += cost < 0;
	trace_query_add(&out->cost_microusd, cost);
	json_decref(content);
	json_decref(meta);
	return cost >= 0;
}

int ava_trace_totals(struct ava_trace *t, struct ava_trace_totals *out, struct ava_error *err)
{
	size_t n;
	const struct trace_event **list = trace_once(t, &n);
	bool priced = false;
	json_t *content;

	*out = (struct ava_trace_totals){.duration_ms = -1};
	if (list == NULL)
		return trace_query_no_memory(err);
	for (size_t i = 0; i < n; i++)
		switch (list[i]->kind) {
		case EVENT_InferStart:
			out->infer_calls++;
			break;
		case EVENT_InferEnd:
			priced |= add_infer(out, list[i]);
			break;
		case EVENT_ToolCall:
			out->tool_calls++;
			break;
		case EVENT_ToolResult:
			content = trace_content(list[i]);
			out->failed_tool_calls += !json_get_bool(content, "success", false);
			json_decref(content);
			break;
		default:
			break;
		}
	free(list);
	if (!priced && out->uncosted_calls > 0)
		out->cost_microusd = -1;
	if (t->start_ms != 0 && t->end_ms >= t->start_ms)
		out->duration_ms = t->end_ms - t->start_ms;
	return 0;
}

int64_t ava_trace_infer_calls(struct ava_trace *t)
{
	struct ava_trace_totals sum;
	int rv = ava_trace_totals(t, &sum, NULL);

	return rv == 0 ? sum.infer_calls : rv;
}

/* ---- tool calls */

static const char *trace_query_keep(struct ava_trace *t, const json_t *o, const char *key)
{
	const char *s = json_str(o, key);

	return arena_copy(&t->answer, s, strlen(s));
}

static const char *keep_json(struct ava_trace *t, const json_t *v)
{
	struct buf text;
	const char *copy = NULL;

	if (v == NULL)
		return "{}";
	buf_init(&text, (size_t)1 << 20);
	if (json_dump(&text, v) == 0)
		copy = arena_copy(&t->answer, text.data, text.len);
	buf_fini(&text);
	return copy;
}

static int fill_call(struct ava_trace *t, struct ava_trace_tool *out, const struct trace_span *one)
{
	json_t *content = trace_content(one->start);
	json_t *end = one->end != NULL ? trace_content(one->end) : NULL;
	json_t *meta = one->end != NULL ? trace_metadata(one->end) : NULL;

	*out = (struct ava_trace_tool){
		.run = one->agent,
		.call = trace_query_keep(t, content, "callId"),
		.name = trace_query_keep(t, content, "name"),
		.args = keep_json(t, json_object_get(content, "args")),
		.result = trace_query_keep(t, end, "output"),
		.error_class = trace_query_keep(t, end, "errorClass"),
		.started_ms = one->start->shown.time_ms,
		.duration_ms = json_get_int(meta, "duration", -1),
		.done = one->end != NULL,
		.success = json_get_bool(end, "success", false),
	};
	json_decref(content);
	json_decref(end);
	json_decref(meta);
	return out->call && out->name && out->args && out->result && out->error_class ? 0
										      : AVA_ENOMEM;
}

int ava_trace_tool_calls(struct ava_trace *t, const struct ava_trace_tool **list, size_t *n,
			 struct ava_error *err)
{
	size_t nspans;
	struct trace_span *spans = trace_spans(t, &nspans);
	struct ava_trace_tool *out;
	int rv = 0;

	trace_forget(t);
	*list = NULL;
	*n = 0;
	out = spans ? arena_get(&t->answer, (nspans + 1) * sizeof(*out)) : NULL;
	if (out == NULL)
		rv = AVA_ENOMEM;
	for (size_t i = 0; rv == 0 && i < nspans; i++)
		if (spans[i].kind == TRACE_TOOL)
			rv = fill_call(t, &out[(*n)++], &spans[i]);
	free(spans);
	if (rv != 0) {
		*n = 0;
		return trace_query_no_memory(err);
	}
	*list = out;
	return 0;
}

/* ---- names and errors */

/* A checkpoint's name or a failure's sentence; "" for other events, NULL: no memory. */
static const char *trace_query_text_of(struct ava_trace *t, const struct trace_event *e,
				       bool errors)
{
	json_t *content = trace_content(e);
	const char *class = json_get_str(content, "errorClass"), *said = NULL, *text = "";

	if (!errors) {
		text = trace_query_keep(t, content, "name");
	} else if (e->kind == EVENT_Error) {
		class = json_get_str(content, "class");
		said = json_str(content, "message");
	} else if (e->kind == EVENT_ToolResult && !json_get_bool(content, "success", true)) {
		said = json_str(content, "output");
	} else if (e->kind == EVENT_InferEnd && class != NULL) {
		said = json_str(content, "error");
	}
	if (said != NULL)
		text = arena_fmt(&t->answer, "%s: %s", class != NULL ? class : "error", said);
	json_decref(content);
	return text;
}

static int trace_query_texts_of(struct ava_trace *t, bool errors, const char *const **list,
				size_t *n, struct ava_error *err)
{
	const char **out;

	trace_forget(t);
	*n = 0;
	*list = NULL;
	out = arena_get(&t->answer, (t->n + 1) * sizeof(*out));
	for (size_t i = 0; out != NULL && i < t->n; i++) {
		int kind = t->events[i].kind;

		if (errors ? kind != EVENT_Error && kind != EVENT_ToolResult &&
				     kind != EVENT_InferEnd
			   : kind != EVENT_Checkpoint)
			continue;
		out[*n] = trace_query_text_of(t, &t->events[i], errors);
		if (out[*n] == NULL)
			return trace_query_no_memory(err);
		*n += !errors || out[*n][0] != '\0';
	}
	*list = out;
	return out != NULL ? 0 : trace_query_no_memory(err);
}

int ava_trace_checkpoints(struct ava_trace *t, const char *const **list, size_t *n,
			  struct ava_error *err)
{
	return trace_query_texts_of(t, false, list, n, err);
}

int ava_trace_errors(struct ava_trace *t, const char *const **list, size_t *n,
		     struct ava_error *err)
{
	return trace_query_texts_of(t, true, list, n, err);
}

/* ---- filters */

int ava_trace_events(struct ava_trace *t, const char *types, int64_t since_ms, int64_t until_ms,
		     const struct ava_event **list, size_t *n, struct ava_error *err)
{
	struct ava_event *out;
	uint64_t mask = UINT64_MAX; /* bit 63: kinds unknown to this version */
	int rv = types != NULL ? event_types(types, &mask, err) : 0;

	*list = NULL;
	*n = 0;
	if (rv != 0)
		return rv;
	trace_forget(t);
	out = arena_get(&t->answer, (t->n + 1) * sizeof(*out));
	if (out == NULL)
		return trace_query_no_memory(err);
	for (size_t i = 0; i < t->n; i++) {
		const struct trace_event *e = &t->events[i];
		uint64_t bit = UINT64_C(1) << (e->kind >= 0 ? e->kind : 63);

		if ((mask & bit) && e->shown.time_ms >= since_ms &&
		    (until_ms == 0 || e->shown.time_ms < until_ms))
			out[(*n)++] = e->shown;
	}
	*list = out;
	return 0;
}

/* What is asked of a trace. Totals are counted at the calls themselves: each
 * InferEnd once for tokens and money, each ToolCall once, never the sums that
 * CostUpdate, SubagentComplete or Join repeat, so that a trace made of forked,
 * joined, resumed or merged ones counts nothing twice.
 *
 * Answers live in the trace's arena until the next query. Memory is all that
 * can fail, and a type that does not exist. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "event/trace.h"

static int no_memory(struct ava_error *err)
{
	return err_set(err, AVA_ENOMEM, "no memory for what was asked of the trace");
}

/* ---- totals */

/* A file from anywhere may hold any number: below nothing is nothing, sums saturate. */
static void add(int64_t *sum, int64_t n)
{
	if (__builtin_add_overflow(*sum, MAX(n, 0), sum))
		*sum = INT64_MAX;
}

static void add_infer(struct ava_trace_totals *out, const json_t *content, const json_t *meta,
		      bool *priced)
{
	const json_t *tokens = json_object_get(content, "tokens");
	int64_t cost = json_get_fixed(meta, "costCents", 4, -1);

	add(&out->input_tokens,
	    json_get_int(tokens, "input", json_get_int(meta, "inputTokens", 0)));
	add(&out->output_tokens,
	    json_get_int(tokens, "output", json_get_int(meta, "outputTokens", 0)));
	out->failed_infer_calls += json_get_str(content, "errorClass") != NULL;
	out->uncosted_calls += cost < 0;
	add(&out->cost_microusd, cost);
	*priced = *priced || cost >= 0;
}

/* `each` gets content and metadata of every event of the kind, once. */
static int each_of(struct ava_trace *t, enum event_kind kind,
		   void (*each)(struct ava_trace_totals *out, const json_t *content,
				const json_t *meta, bool *priced),
		   struct ava_trace_totals *out, bool *priced)
{
	size_t n;
	const struct trace_event **list = trace_once(t, kind, &n);

	if (list == NULL)
		return AVA_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		json_t *content = trace_content(list[i]), *meta = trace_metadata(list[i]);

		each(out, content, meta, priced);
		json_decref(content);
		json_decref(meta);
	}
	free(list);
	return 0;
}

static void add_start(struct ava_trace_totals *out, const json_t *content, const json_t *meta,
		      bool *priced)
{
	out->infer_calls++;
}

static void add_call(struct ava_trace_totals *out, const json_t *content, const json_t *meta,
		     bool *priced)
{
	out->tool_calls++;
}

static void add_result(struct ava_trace_totals *out, const json_t *content, const json_t *meta,
		       bool *priced)
{
	out->failed_tool_calls += !json_get_bool(content, "success", false);
}

int ava_trace_totals(struct ava_trace *t, struct ava_trace_totals *out, struct ava_error *err)
{
	bool priced = false;
	int rv;

	*out = (struct ava_trace_totals){.duration_ms = -1};
	rv = each_of(t, EVENT_InferEnd, add_infer, out, &priced);
	if (rv == 0)
		rv = each_of(t, EVENT_InferStart, add_start, out, &priced);
	if (rv == 0)
		rv = each_of(t, EVENT_ToolCall, add_call, out, &priced);
	if (rv == 0)
		rv = each_of(t, EVENT_ToolResult, add_result, out, &priced);
	if (rv != 0)
		return no_memory(err);
	if (!priced && out->uncosted_calls > 0)
		out->cost_microusd = -1;
	if (t->start_ms != 0 && t->end_ms >= t->start_ms)
		out->duration_ms = t->end_ms - t->start_ms;
	return 0;
}

int64_t ava_trace_infer_calls(struct ava_trace *t)
{
	size_t n;
	const struct trace_event **list = trace_once(t, EVENT_InferStart, &n);

	free(list);
	return list != NULL ? (int64_t)n : AVA_ENOMEM;
}

/* ---- tool calls */

static const char *keep(struct ava_trace *t, const char *s)
{
	return s != NULL ? arena_copy(&t->answer, s, strlen(s)) : "";
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

static int take_call(struct ava_trace *t, struct ava_trace_tool *out, const struct trace_event *e)
{
	json_t *content = trace_content(e);

	*out = (struct ava_trace_tool){
		.run = e->shown.agent,
		.call = keep(t, json_get_str(content, "callId")),
		.name = keep(t, json_get_str(content, "name")),
		.args = keep_json(t, json_object_get(content, "args")),
		.result = "",
		.error_class = "",
		.started_ms = e->shown.time_ms,
		.duration_ms = -1,
	};
	json_decref(content);
	return out->call && out->name && out->args ? 0 : AVA_ENOMEM;
}

static int take_result(struct ava_trace *t, struct ava_trace_tool *out, const struct trace_event *e,
		       const json_t *content)
{
	json_t *meta = trace_metadata(e);

	out->done = 1;
	out->success = json_get_bool(content, "success", false);
	out->result = keep(t, json_get_str(content, "output"));
	out->error_class = keep(t, json_get_str(content, "errorClass"));
	out->duration_ms = json_get_int(meta, "duration", -1);
	json_decref(meta);
	return out->result && out->error_class ? 0 : AVA_ENOMEM;
}

/* A result finds its call from the newest: a turn's results come soon. */
static int give_result(struct ava_trace *t, struct ava_trace_tool *calls, size_t n,
		       const struct trace_event *e)
{
	json_t *content = trace_content(e);
	const char *id = json_get_str(content, "callId");
	int rv = 0;

	for (size_t i = n; i > 0 && id != NULL; i--) {
		struct ava_trace_tool *c = &calls[i - 1];

		if (c->done || strcmp(c->call, id) != 0 || strcmp(c->run, e->shown.agent) != 0)
			continue;
		rv = take_result(t, c, e, content);
		break;
	}
	json_decref(content);
	return rv;
}

int ava_trace_tool_calls(struct ava_trace *t, const struct ava_trace_tool **list, size_t *n,
			 struct ava_error *err)
{
	size_t ncalls, nresults;
	const struct trace_event **calls, **results;
	struct ava_trace_tool *out;
	int rv = 0;

	trace_forget(t);
	*list = NULL;
	*n = 0;
	calls = trace_once(t, EVENT_ToolCall, &ncalls);
	results = trace_once(t, EVENT_ToolResult, &nresults);
	out = calls && results ? arena_get(&t->answer, (ncalls + 1) * sizeof(*out)) : NULL;
	if (out == NULL)
		rv = AVA_ENOMEM;
	/* Results go to the calls before them, so that an id used again (another
	 * root's run of the same name) does not take what is not its own. */
	for (size_t c = 0, r = 0; rv == 0 && (c < ncalls || r < nresults);) {
		if (c < ncalls &&
		    (r == nresults || calls[c]->shown.lsn < results[r]->shown.lsn ||
		     (calls[c]->shown.lsn == results[r]->shown.lsn && calls[c] < results[r]))) {
			rv = take_call(t, &out[c], calls[c]);
			c++;
		} else {
			rv = give_result(t, out, c, results[r++]);
		}
	}
	free(calls);
	free(results);
	if (rv != 0)
		return no_memory(err);
	*list = out;
	*n = ncalls;
	return 0;
}

/* ---- names and errors */

static const char *checkpoint_name(struct ava_trace *t, const struct trace_event *e)
{
	json_t *content = trace_content(e);
	const char *name = keep(t, json_get_str(content, "name"));

	json_decref(content);
	return name;
}

static const char *error_text(struct ava_trace *t, const struct trace_event *e, bool *is)
{
	json_t *content = trace_content(e);
	const char *class = json_get_str(content, "errorClass"), *said = NULL, *text;

	*is = true;
	if (e->kind == EVENT_Error) {
		class = json_get_str(content, "class");
		said = json_get_str(content, "message");
	} else if (e->kind == EVENT_ToolResult) {
		*is = !json_get_bool(content, "success", true);
		said = json_get_str(content, "output");
	} else {
		*is = class != NULL;
		said = json_get_str(content, "error");
	}
	text = *is ? arena_fmt(&t->answer, "%s: %s", class != NULL ? class : "error",
			       said != NULL ? said : "")
		   : "";
	json_decref(content);
	return text;
}

int ava_trace_checkpoints(struct ava_trace *t, const char *const **list, size_t *n,
			  struct ava_error *err)
{
	const char **out;

	trace_forget(t);
	*n = 0;
	*list = NULL;
	out = arena_get(&t->answer, (t->n + 1) * sizeof(*out));
	for (size_t i = 0; out != NULL && i < t->n; i++) {
		if (t->events[i].kind != EVENT_Checkpoint)
			continue;
		out[*n] = checkpoint_name(t, &t->events[i]);
		if (out[(*n)++] == NULL)
			return no_memory(err);
	}
	*list = out;
	return out != NULL ? 0 : no_memory(err);
}

int ava_trace_errors(struct ava_trace *t, const char *const **list, size_t *n,
		     struct ava_error *err)
{
	const char **out;

	trace_forget(t);
	*n = 0;
	*list = NULL;
	out = arena_get(&t->answer, (t->n + 1) * sizeof(*out));
	for (size_t i = 0; out != NULL && i < t->n; i++) {
		const struct trace_event *e = &t->events[i];
		bool is;

		if (e->kind != EVENT_Error && e->kind != EVENT_ToolResult &&
		    e->kind != EVENT_InferEnd)
			continue;
		out[*n] = error_text(t, e, &is);
		if (out[*n] == NULL)
			return no_memory(err);
		*n += is;
	}
	*list = out;
	return out != NULL ? 0 : no_memory(err);
}

/* ---- filters */

/* Bit set of kinds; bit 63: those that this version does not know. */
static int wanted_types(const char *types, uint64_t *mask, struct ava_error *err)
{
	*mask = types == NULL ? UINT64_MAX : 0;
	for (const char *p = types; p != NULL && *p != '\0';) {
		size_t len = strcspn(p, ",");
		uint64_t found = 0, exact = 0;

		for (int kind = 0; len > 0 && kind < EVENT_NKINDS; kind++) {
			const char *name = event_kind_name((enum event_kind)kind);

			if (strncasecmp(name, p, len) != 0)
				continue;
			found |= UINT64_C(1) << kind;
			if (name[len] == '\0')
				exact = UINT64_C(1) << kind;
		}
		if (found == 0)
			return err_set(err, AVA_EINVAL, "there is no event type \"%.*s\"",
				       (int)MIN(len, 60u), p);
		*mask |= exact != 0 ? exact : found;
		p += len + (p[len] == ',');
	}
	return 0;
}

int ava_trace_events(struct ava_trace *t, const char *types, int64_t since_ms, int64_t until_ms,
		     const struct ava_event **list, size_t *n, struct ava_error *err)
{
	struct ava_event *out;
	uint64_t mask;
	int rv = wanted_types(types, &mask, err);

	*list = NULL;
	*n = 0;
	if (rv != 0)
		return rv;
	trace_forget(t);
	out = arena_get(&t->answer, (t->n + 1) * sizeof(*out));
	if (out == NULL)
		return no_memory(err);
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

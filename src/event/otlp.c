/* A trace as OTLP/JSON (ExportTraceServiceRequest), the form that a collector takes at
 * /v1/traces: a span invoke_agent for each run, below it one for each model call and tool call,
 * and events for moments, which are records of a log as well (/v1/logs). Prompts, replies,
 * arguments and results stay out of it.
 *
 * The names are those of the first release of the gen_ai conventions by themselves (0.1.0), which
 * are all still in development and change; facts without a standard name are ava.*; openinference
 * and llm.* are for Phoenix.
 *
 * Ids are hashes of their objects: a second export has the same ids, so sending a trace twice
 * does not show it twice. A span without an end ends where the trace does and is marked
 * interrupted.
 *
 * Memory is all that can fail. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/util.h"
#include "codec/json.h"
#include "event/trace.h"

#define SCHEMA_URL "https://opentelemetry.io/schemas/gen-ai/1.42.0"

/* ---- attributes of each kind of span */

enum otlp_from { /* the object that a value is read from */
		 FROM_START,
		 FROM_END,
		 FROM_META, /* metadata: the end's, where there is one */
		 FROM_COST, /* metadata, of an end only */
		 FROM_TOKENS,
		 FROM_TOTALS,
		 FROM_HEAD, /* fields of the first event's line */
		 FROM_NSOURCES
};

enum otlp_as { AS_TEXT, AS_LIST, AS_INT, AS_SUM, AS_USD, AS_FLAG, AS_MODEL, AS_ALWAYS };

/* AS_ALWAYS: `path` itself; AS_SUM: of the two numbers; AS_MODEL: provider and names of the
 * model. A missing value makes no attribute. */
struct otlp_attr {
	const char *name;
	enum otlp_as as;
	enum otlp_from from;
	const char *path, *plus;
};

#define TOKENS(from, input, output)                                                                \
	{"gen_ai.usage.input_tokens", AS_INT, from, input, NULL},                                  \
		{"gen_ai.usage.output_tokens", AS_INT, from, output, NULL},                        \
		{"llm.token_count.prompt", AS_INT, from, input, NULL},                             \
		{"llm.token_count.completion", AS_INT, from, output, NULL},                        \
	{                                                                                          \
		"llm.token_count.total", AS_SUM, from, input, output                               \
	}
#define COST(from)                                                                                 \
	{"ava.cost.usd", AS_USD, from, "costCents", NULL},                                         \
	{                                                                                          \
		"llm.cost.total", AS_USD, from, "costCents", NULL                                  \
	}

static const struct otlp_attr agent_attrs[] = {
	{"gen_ai.operation.name", AS_ALWAYS, 0, "invoke_agent", NULL},
	{"openinference.span.kind", AS_ALWAYS, 0, "AGENT", NULL},
	{"ava.run.id", AS_TEXT, FROM_HEAD, "agent", NULL},
	{"gen_ai.agent.name", AS_TEXT, FROM_START, "role", NULL},
	{"agent.name", AS_TEXT, FROM_START, "role", NULL},
	{NULL, AS_MODEL, FROM_START, "model", NULL},
	{"gen_ai.conversation.id", AS_TEXT, FROM_HEAD, "session", NULL},
	{"session.id", AS_TEXT, FROM_HEAD, "session", NULL},
	{"user.id", AS_TEXT, FROM_HEAD, "user", NULL},
	{"ava.trace.name", AS_TEXT, FROM_HEAD, "trace", NULL},
	{"ava.run.status", AS_TEXT, FROM_END, "status", NULL},
	{"ava.run.stop_reason", AS_TEXT, FROM_END, "stopReason", NULL},
	TOKENS(FROM_TOTALS, "inputTokens", "outputTokens"),
	COST(FROM_TOTALS),
	{"ava.usage.estimated_calls", AS_INT, FROM_TOTALS, "estimatedCalls", NULL},
	{NULL, 0, 0, NULL, NULL},
};

static const struct otlp_attr chat_attrs[] = {
	{"gen_ai.operation.name", AS_ALWAYS, 0, "chat", NULL},
	{"openinference.span.kind", AS_ALWAYS, 0, "LLM", NULL},
	{NULL, AS_MODEL, FROM_START, "model", NULL},
	{"gen_ai.request.max_tokens", AS_INT, FROM_START, "maxOutput", NULL},
	{"ava.call.id", AS_TEXT, FROM_START, "callId", NULL},
	{"ava.iteration", AS_INT, FROM_META, "iteration", NULL},
	{"gen_ai.response.id", AS_TEXT, FROM_END, "requestId", NULL},
	{"gen_ai.response.finish_reasons", AS_LIST, FROM_END, "stopReason", NULL},
	TOKENS(FROM_TOKENS, "input", "output"),
	{"gen_ai.usage.cache_read.input_tokens", AS_INT, FROM_TOKENS, "cacheRead", NULL},
	{"gen_ai.usage.cache_write.input_tokens", AS_INT, FROM_TOKENS, "cacheWrite", NULL},
	{"gen_ai.usage.reasoning.output_tokens", AS_INT, FROM_TOKENS, "reasoning", NULL},
	{"llm.token_count.prompt_details.cache_read", AS_INT, FROM_TOKENS, "cacheRead", NULL},
	{"llm.token_count.prompt_details.cache_write", AS_INT, FROM_TOKENS, "cacheWrite", NULL},
	COST(FROM_COST),
	{"ava.usage.estimated", AS_FLAG, FROM_END, "estimated", NULL},
	{NULL, 0, 0, NULL, NULL},
};

static const struct otlp_attr tool_attrs[] = {
	{"gen_ai.operation.name", AS_ALWAYS, 0, "execute_tool", NULL},
	{"openinference.span.kind", AS_ALWAYS, 0, "TOOL", NULL},
	{"gen_ai.tool.name", AS_TEXT, FROM_START, "name", NULL},
	{"gen_ai.tool.type", AS_ALWAYS, 0, "function", NULL},
	{"gen_ai.tool.call.id", AS_TEXT, FROM_START, "callId", NULL},
	{NULL, 0, 0, NULL, NULL},
};

static const struct {
	const char *hashed, *verb, *what; /* in the id; the name: `verb`, then the start's `what` */
	const struct otlp_attr *attrs;
} kinds[] = {
	[TRACE_AGENT] = {"agent", "invoke_agent", "role", agent_attrs},
	[TRACE_CHAT] = {"chat", "chat", "model", chat_attrs},
	[TRACE_TOOL] = {"tool", "execute_tool", "name", tool_attrs},
};

/* Severities of a record of a log, by their numbers. */
enum otlp_severity { SEVERITY_DEBUG = 5, SEVERITY_INFO = 9, SEVERITY_WARN = 13 };

/* Events of a run's span, which are records of a log too, and the part of their content that is
 * exported. */
static const struct {
	enum event_kind kind;
	enum otlp_severity severity;
	const char *name, *attr, *path, *attr2, *path2;
} points[] = {
	{EVENT_Error, SEVERITY_WARN, "gen_ai.client.inference.exception", "exception.type", "class",
	 "exception.message", "message"},
	{EVENT_Exhausted, SEVERITY_WARN, "ava.exhausted", "ava.limit.kind", "resource", NULL, NULL},
	{EVENT_Limit, SEVERITY_INFO, "ava.limit", "ava.limit.kind", "warned", NULL, NULL},
	{EVENT_Checkpoint, SEVERITY_INFO, "ava.checkpoint", "ava.checkpoint.name", "name", NULL,
	 NULL},
	{EVENT_Check, SEVERITY_INFO, "ava.check", "ava.check.outcome", "outcome", NULL, NULL},
	{EVENT_Activity, SEVERITY_INFO, "ava.activity", "ava.text", "text", NULL, NULL},
	{EVENT_Steering, SEVERITY_INFO, "ava.steering", NULL, NULL, NULL, NULL},
	{EVENT_ContextEdit, SEVERITY_INFO, "ava.context_edit", NULL, NULL, NULL, NULL},
	{EVENT_Fork, SEVERITY_INFO, "ava.fork", NULL, NULL, NULL, NULL},
	{EVENT_Join, SEVERITY_INFO, "ava.join", NULL, NULL, NULL, NULL},
	{EVENT_StateRead, SEVERITY_DEBUG, "ava.state.read", NULL, NULL, NULL, NULL},
	{EVENT_StateWrite, SEVERITY_DEBUG, "ava.state.write", NULL, NULL, NULL, NULL},
};

/* ---- writing attributes */

struct otlp {
	struct ava_trace *t;
	struct trace_span *spans; /* owned */
	size_t n;
	struct jw w;
};

static void begin_attr(struct otlp *o, const char *name)
{
	jw_object(&o->w, NULL);
	jw_str(&o->w, "key", name);
	jw_object(&o->w, "value");
}

static void end_attr(struct otlp *o)
{
	jw_end(&o->w);
	jw_end(&o->w);
}

void otlp_put_str(struct jw *w, const char *name, const char *value)
{
	jw_object(w, NULL);
	jw_str(w, "key", name);
	jw_object(w, "value");
	jw_str(w, "stringValue", value);
	jw_end(w);
	jw_end(w);
}

static void attr_str(struct otlp *o, const char *name, const char *value)
{
	if (value != NULL && value[0] != '\0')
		otlp_put_str(&o->w, name, value);
}

/* 64 bits are strings in the JSON of protocol buffers. */
static void attr_int(struct otlp *o, const char *name, int64_t value)
{
	char text[24];

	if (value < 0)
		return;
	snprintf(text, sizeof(text), "%" PRId64, value);
	begin_attr(o, name);
	jw_str(&o->w, "intValue", text);
	end_attr(o);
}

static void attr_true(struct otlp *o, const char *name)
{
	begin_attr(o, name);
	jw_bool(&o->w, "boolValue", true);
	end_attr(o);
}

const char *otlp_put_model(struct jw *w, const char *id)
{
	static const char *const providers[][2] = {
		{"google", "gcp.gemini"}, {"xai", "x_ai"}, {"mistral", "mistral_ai"}};
	const char *slash = id != NULL ? strchr(id, '/') : NULL;
	size_t len = slash != NULL ? (size_t)(slash - id) : 0;
	char provider[64];

	if (id == NULL || id[0] == '\0')
		return NULL;
	snprintf(provider, sizeof(provider), "%.*s", (int)MIN(len, sizeof(provider) - 1), id);
	if (slash == NULL) /* the offline model, with or without a script */
		snprintf(provider, sizeof(provider), "ava.%.*s",
			 (int)MIN(strcspn(id, ":"), (size_t)40), id);
	for (size_t i = 0; i < ARRAY_LEN(providers); i++)
		if (strcmp(provider, providers[i][0]) == 0)
			snprintf(provider, sizeof(provider), "%s", providers[i][1]);
	id = slash != NULL ? slash + 1 : id;
	otlp_put_str(w, "gen_ai.provider.name", provider);
	otlp_put_str(w, "gen_ai.request.model", id);
	return id;
}

/* A field of the first event's line. */
static const char *head_field(const struct trace_span *one, const char *name)
{
	const struct ava_event *e = &one->start->shown;

	switch (name[0]) {
	case 'a':
		return one->agent;
	case 's':
		return e->session;
	case 'u':
		return e->user;
	default:
		return e->trace;
	}
}

static void put_attr(struct otlp *o, const struct otlp_attr *a, const struct trace_span *one,
		     const json_t *from)
{
	const char *text =
		a->from == FROM_HEAD ? head_field(one, a->path) : json_get_str(from, a->path);
	int64_t n = json_get_int(from, a->path, -1), plus;

	switch (a->as) {
	case AS_ALWAYS:
		attr_str(o, a->name, a->path);
		break;
	case AS_TEXT:
		attr_str(o, a->name, text);
		break;
	case AS_MODEL:
		attr_str(o, "llm.model_name", otlp_put_model(&o->w, text));
		break;
	case AS_INT:
		attr_int(o, a->name, n);
		break;
	case AS_SUM:
		plus = json_get_int(from, a->plus, -1);
		if (n >= 0 && plus >= 0 && n <= INT64_MAX - plus)
			attr_int(o, a->name, n + plus);
		break;
	case AS_FLAG:
		if (json_get_bool(from, a->path, false))
			attr_true(o, a->name);
		break;
	case AS_USD:
		n = json_get_fixed(from, a->path, 4, -1);
		if (n < 0)
			break;
		begin_attr(o, a->name);
		jw_fixed(&o->w, "doubleValue", n, 6);
		end_attr(o);
		break;
	case AS_LIST:
		if (text == NULL || text[0] == '\0')
			break;
		begin_attr(o, a->name);
		jw_object(&o->w, "arrayValue");
		jw_array(&o->w, "values");
		jw_object(&o->w, NULL);
		jw_str(&o->w, "stringValue", text);
		for (int i = 0; i < 3; i++)
			jw_end(&o->w);
		end_attr(o);
		break;
	}
}

/* ---- spans */

/* First bytes of the SHA-256 of the parts as hex: `digits` of them. */
static void hashed(char *out, size_t digits, const char *const *parts, size_t n)
{
	struct hash_sha256 h;
	unsigned char digest[32];

	hash_sha256_init(&h);
	for (size_t i = 0; i < n; i++)
		hash_sha256_add(&h, parts[i], strlen(parts[i]) + 1);
	hash_sha256_end(&h, digest);
	hash_hex(digest, digits / 2, out);
}

/* Write "traceId" and "spanId", or `id` instead. A run's id is unique in its root only; hashed
 * with the start time it is unique everywhere. */
static void put_ids(struct otlp *o, const struct trace_span *one, bool trace, const char *id)
{
	const struct trace_event *e = o->spans[one->parent].start;
	char at[24], trace_id[33], span_id[17];

	snprintf(at, sizeof(at), "%" PRId64, e->shown.time_ms);
	hashed(trace_id, 32, (const char *const[]){"ava", one->agent, e->shown.trace, at}, 4);
	hashed(span_id, 16, (const char *const[]){trace_id, kinds[one->kind].hashed, one->call}, 3);
	if (trace)
		jw_str(&o->w, "traceId", trace_id);
	jw_str(&o->w, id, span_id);
}

static void put_nano(struct otlp *o, const char *key, int64_t ms)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64 "000000", ms);
	jw_str(&o->w, key, text);
}

static int64_t end_of(const struct otlp *o, const struct trace_span *one)
{
	const struct trace_span *agent = &o->spans[one->parent];

	if (one->end != NULL)
		return one->end->shown.time_ms;
	if (agent->end != NULL)
		return agent->end->shown.time_ms;
	return MAX(o->t->events[o->t->n - 1].shown.time_ms, one->start->shown.time_ms);
}

static void otlp_put_head(struct otlp *o, const struct trace_span *one, const json_t *start)
{
	const char *what = json_get_str(start, kinds[one->kind].what), *slash;
	int64_t began = trace_span_start(one);
	char name[256];

	put_ids(o, one, true, "spanId");
	if (one->kind != TRACE_AGENT)
		put_ids(o, &o->spans[one->parent], false, "parentSpanId");
	slash = what != NULL && one->kind == TRACE_CHAT ? strchr(what, '/') : NULL;
	what = slash != NULL ? slash + 1 : what != NULL ? what : one->agent;
	snprintf(name, sizeof(name), "%s %s", kinds[one->kind].verb, what);
	jw_str(&o->w, "name", name);
	jw_int(&o->w, "kind", one->kind == TRACE_CHAT ? 3 : 1); /* CLIENT, INTERNAL */
	put_nano(o, "startTimeUnixNano", began);
	put_nano(o, "endTimeUnixNano", MAX(end_of(o, one), began));
}

/* The error class; NULL: it did not fail. */
static const char *failure(const struct trace_span *one, const json_t *end)
{
	const char *status = json_get_str(end, "status");

	if (end == NULL)
		return "interrupted";
	if (one->kind == TRACE_AGENT)
		return status != NULL && strcmp(status, "success") != 0 ? status : NULL;
	if (one->kind == TRACE_TOOL && json_get_bool(end, "success", true))
		return NULL;
	return json_get_str(end, "errorClass");
}

/* The place in `points`, or behind its end. */
static size_t point_of(const struct trace_event *e)
{
	size_t k = 0;

	while (k < ARRAY_LEN(points) && (int)points[k].kind != e->kind)
		k++;
	return k;
}

/* The event in an open array: of the span `one`, or with `log` as a record. false: it is no point,
 * or not of that run. */
static bool put_point(struct otlp *o, const struct trace_span *one, const struct trace_event *e,
		      bool log)
{
	const size_t k = point_of(e);
	const json_t *v;
	json_t *content;

	if (k == ARRAY_LEN(points) || one->kind != TRACE_AGENT ||
	    strcmp(e->shown.agent, one->agent) != 0)
		return false;
	content = trace_content(e);
	jw_object(&o->w, NULL);
	put_nano(o, "timeUnixNano", e->shown.time_ms);
	jw_str(&o->w, log ? "eventName" : "name", points[k].name);
	if (log) {
		put_nano(o, "observedTimeUnixNano", e->shown.time_ms);
		jw_int(&o->w, "severityNumber", points[k].severity);
		put_ids(o, one, true, "spanId");
	}
	jw_array(&o->w, "attributes");
	if (log) {
		attr_str(o, "ava.run.id", one->agent);
		attr_str(o, "gen_ai.conversation.id", e->shown.session);
	}
	attr_int(o, "ava.lsn", e->shown.lsn <= INT64_MAX ? (int64_t)e->shown.lsn : -1);
	v = points[k].path != NULL ? json_object_get(content, points[k].path) : NULL;
	attr_str(o, points[k].attr, json_string_value(json_is_array(v) ? json_array_get(v, 0) : v));
	if (points[k].path2 != NULL)
		attr_str(o, points[k].attr2, json_get_str(content, points[k].path2));
	jw_end(&o->w);
	jw_end(&o->w);
	json_decref(content);
	return true;
}

static void put_points(struct otlp *o, const struct trace_span *one)
{
	jw_array(&o->w, "events");
	for (size_t i = 0; i < o->t->n; i++)
		put_point(o, one, &o->t->events[i], false);
	jw_end(&o->w);
}

/* Link to the run that a fork came from, where it is in the trace too. */
static void put_links(struct otlp *o, const char *from)
{
	jw_array(&o->w, "links");
	for (size_t i = 0; i < o->n && from != NULL; i++) {
		if (o->spans[i].kind != TRACE_AGENT || strcmp(o->spans[i].agent, from) != 0)
			continue;
		jw_object(&o->w, NULL);
		put_ids(o, &o->spans[i], true, "spanId");
		jw_end(&o->w);
	}
	jw_end(&o->w);
}

static void put_span(struct otlp *o, const struct trace_span *one)
{
	json_t *start = trace_content(one->start);
	json_t *end = one->end != NULL ? trace_content(one->end) : NULL;
	json_t *meta = trace_metadata(one->end != NULL ? one->end : one->start);
	const json_t *from[FROM_NSOURCES] = {
		[FROM_START] = start,
		[FROM_END] = end,
		[FROM_META] = meta,
		[FROM_COST] = end != NULL ? meta : NULL,
		[FROM_TOKENS] = json_object_get(end, "tokens"),
		[FROM_TOTALS] = json_object_get(end, "totals"),
	};
	bool live = one->kind == TRACE_AGENT && end == NULL;
	const char *class = failure(one, end), *why = json_get_str(end, "error");

	jw_object(&o->w, NULL);
	otlp_put_head(o, one, start);
	jw_array(&o->w, "attributes");
	for (const struct otlp_attr *a = kinds[one->kind].attrs; a->path != NULL; a++)
		put_attr(o, a, one, from[a->from]);
	if (end == NULL && !live)
		attr_true(o, "ava.interrupted");
	if (!live)
		attr_str(o, "error.type", class);
	jw_end(&o->w);
	if (one->kind == TRACE_AGENT) {
		put_points(o, one);
		put_links(o, json_get_str(start, "resumedFrom"));
	}
	if (!live) {
		jw_object(&o->w, "status");
		jw_int(&o->w, "code", class != NULL ? 2 : 1);
		if (class != NULL)
			jw_str(&o->w, "message", why != NULL ? why : class);
		jw_end(&o->w);
	}
	jw_end(&o->w);
	json_decref(start);
	json_decref(end);
	json_decref(meta);
}

/* ---- requests */

static const struct {
	const char *resources, *scopes, *items;
} otlp_arrays[] = {
	[OTLP_TRACES] = {"resourceSpans", "scopeSpans", "spans"},
	[OTLP_LOGS] = {"resourceLogs", "scopeLogs", "logRecords"},
	[OTLP_METRICS] = {"resourceMetrics", "scopeMetrics", "metrics"},
};

void otlp_begin(struct jw *w, enum otlp_signal signal, const char *instance)
{
	jw_object(w, NULL);
	jw_array(w, otlp_arrays[signal].resources);
	jw_object(w, NULL);
	jw_object(w, "resource");
	jw_array(w, "attributes");
	otlp_put_str(w, "service.name", "ava");
	otlp_put_str(w, "service.version", AVA_VERSION);
	if (instance != NULL)
		otlp_put_str(w, "service.instance.id", instance);
	jw_end(w);
	jw_end(w);
	jw_array(w, otlp_arrays[signal].scopes);
	jw_object(w, NULL);
	jw_object(w, "scope");
	jw_str(w, "name", "ava");
	jw_str(w, "version", AVA_VERSION);
	jw_end(w);
	jw_array(w, otlp_arrays[signal].items);
}

void otlp_end(struct jw *w)
{
	jw_end(w);
	jw_str(w, "schemaUrl", SCHEMA_URL);
	while (w->depth > 0)
		jw_end(w);
}

/* Spans from *at on, `most` of them; 1: there are more. `empty`: a request without any, too. */
static int otlp_put_part(struct otlp *o, size_t *at, size_t most, bool empty, struct buf *out)
{
	size_t to = *at + MIN(o->n - MIN(*at, o->n), most);
	int rv;

	if (*at < to || empty) {
		otlp_begin(&o->w, OTLP_TRACES, NULL);
		for (size_t i = *at; i < to; i++)
			put_span(o, &o->spans[i]);
		otlp_end(&o->w);
	}
	rv = buf_check(out);
	*at = rv == 0 ? to : *at;
	return rv != 0 ? rv : to < o->n;
}

/* The same of records: *at counts events. */
static int otlp_put_records(struct otlp *o, size_t *at, size_t most, struct buf *out)
{
	size_t i = *at, n = 0;
	int rv;

	otlp_begin(&o->w, OTLP_LOGS, NULL);
	for (; i < o->t->n && n < most; i++) {
		const struct trace_event *e = &o->t->events[i];
		size_t k = point_of(e) < ARRAY_LEN(points) ? 0 : o->n;

		while (k < o->n && !put_point(o, &o->spans[k], e, true))
			k++;
		n += k < o->n;
	}
	otlp_end(&o->w);
	rv = buf_check(out);
	if (rv == 0 && n == 0)
		buf_reset(out);
	*at = rv == 0 ? i : *at;
	return rv != 0 ? rv : i < o->t->n;
}

/* AVA_ENOMEM with o->spans NULL: nothing was written. */
static int otlp_open(struct otlp *o, struct ava_trace *t, struct buf *out)
{
	*o = (struct otlp){.t = t};
	o->spans = trace_spans(t, &o->n);
	jw_init(&o->w, out);
	return o->spans != NULL ? 0 : AVA_ENOMEM;
}

int otlp_part(struct ava_trace *t, enum otlp_signal signal, size_t *at, struct buf *out,
	      struct ava_error *err)
{
	struct otlp o;
	int rv = otlp_open(&o, t, out);

	if (rv == 0)
		rv = signal == OTLP_LOGS ? otlp_put_records(&o, at, OTLP_PART, out)
					 : otlp_put_part(&o, at, OTLP_PART, false, out);
	free(o.spans);
	return rv >= 0 ? rv : err_set(err, rv, "this trace is too large for one request");
}

int ava_trace_otlp(struct ava_trace *t, const char **json, size_t *len, struct ava_error *err)
{
	struct otlp o;
	struct buf out;
	size_t at = 0;
	int rv;

	buf_init(&out, TRACE_BYTES_MAX);
	rv = otlp_open(&o, t, &out);
	if (rv == 0)
		rv = otlp_put_part(&o, &at, SIZE_MAX, true, &out);
	free(o.spans);
	if (rv == AVA_ENOMEM && buf_check(&out) == 0) { /* no memory before anything was written */
		*json = NULL;
		*len = 0;
		err_set(err, rv, "no memory for a trace this long");
	} else {
		rv = trace_answer(t, &out, json, len, err);
	}
	buf_fini(&out);
	return rv;
}

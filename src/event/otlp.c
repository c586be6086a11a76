/* A trace as OTLP/JSON (ExportTraceServiceRequest), the form that a collector
 * takes at /v1/traces: a span invoke_agent for each run, below it one for each
 * model call and tool call, and events for what has no length. Prompts,
 * replies, arguments and results stay out of it.
 *
 * Ids are hashes of what they stand for: exported again they are the same, so
 * that sending a trace twice does not show it twice. What has no end ends where
 * the trace does and says that it was interrupted.
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
#include "event/otlp.h"
#include "event/otlp_names.h"
#include "event/trace.h"

enum span_kind { SPAN_AGENT, SPAN_CHAT, SPAN_TOOL };

struct span {
	enum span_kind kind;
	const char *agent;               /* whose */
	char call[24];                   /* callId; "" of a run */
	const struct trace_event *start; /* the first event of the run when its spawn is missing */
	const struct trace_event *end;   /* NULL: it has none */
	size_t parent;                   /* index; of a run: its own */
};

struct spans {
	struct ava_trace *t;
	struct span *list; /* owned */
	size_t n;
	struct jw w;
	const struct otlp_version *v;
};

/* ---- which spans there are */

static size_t agent_of(struct spans *s, const struct trace_event *e)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->list[i].kind == SPAN_AGENT && strcmp(s->list[i].agent, e->shown.agent) == 0)
			return i;
	s->list[s->n] = (struct span){
		.kind = SPAN_AGENT, .agent = e->shown.agent, .start = e, .parent = s->n};
	return s->n++;
}

static void call_id(const struct trace_event *e, char out[24])
{
	json_t *content = trace_content(e);
	const char *id = json_get_str(content, "callId");

	snprintf(out, 24, "%s", id != NULL ? id : "");
	json_decref(content);
}

static void begin_span(struct spans *s, enum span_kind kind, const struct trace_event *e)
{
	size_t parent = agent_of(s, e);
	struct span *one = &s->list[s->n++];

	*one = (struct span){.kind = kind, .agent = e->shown.agent, .start = e, .parent = parent};
	call_id(e, one->call);
}

static void end_span(struct spans *s, enum span_kind kind, const struct trace_event *e)
{
	char id[24];

	call_id(e, id);
	for (size_t i = s->n; i > 0; i--) {
		struct span *one = &s->list[i - 1];

		if (one->kind == kind && one->end == NULL && strcmp(one->call, id) == 0 &&
		    strcmp(one->agent, e->shown.agent) == 0) {
			one->end = e;
			return;
		}
	}
}

static void find_spans(struct spans *s)
{
	for (size_t i = 0; i < s->t->n; i++) {
		const struct trace_event *e = &s->t->events[i];

		switch (e->kind) {
		case EVENT_InferStart:
			begin_span(s, SPAN_CHAT, e);
			break;
		case EVENT_InferEnd:
			end_span(s, SPAN_CHAT, e);
			break;
		case EVENT_ToolCall:
			begin_span(s, SPAN_TOOL, e);
			break;
		case EVENT_ToolResult:
			end_span(s, SPAN_TOOL, e);
			break;
		case EVENT_SubagentComplete:
			s->list[agent_of(s, e)].end = e;
			break;
		default:
			agent_of(s, e);
		}
	}
}

/* ---- attributes */

static void begin_attr(struct spans *s, enum otlp_name name)
{
	jw_object(&s->w, NULL);
	jw_str(&s->w, "key", s->v->names[name]);
	jw_object(&s->w, "value");
}

static void end_attr(struct spans *s)
{
	jw_end(&s->w);
	jw_end(&s->w);
}

static void attr_str(struct spans *s, enum otlp_name name, const char *value)
{
	if (value == NULL || value[0] == '\0')
		return;
	begin_attr(s, name);
	jw_str(&s->w, "stringValue", value);
	end_attr(s);
}

/* 64 bits are strings in the JSON of protocol buffers. */
static void attr_int(struct spans *s, enum otlp_name name, int64_t value)
{
	char text[24];

	if (value < 0)
		return;
	snprintf(text, sizeof(text), "%" PRId64, value);
	begin_attr(s, name);
	jw_str(&s->w, "intValue", text);
	end_attr(s);
}

static void attr_usd(struct spans *s, enum otlp_name name, int64_t microusd)
{
	if (microusd < 0)
		return;
	begin_attr(s, name);
	jw_fixed(&s->w, "doubleValue", microusd, 6);
	end_attr(s);
}

static void attr_true(struct spans *s, enum otlp_name name)
{
	begin_attr(s, name);
	jw_bool(&s->w, "boolValue", true);
	end_attr(s);
}

static void attr_list(struct spans *s, enum otlp_name name, const char *value)
{
	if (value == NULL || value[0] == '\0')
		return;
	begin_attr(s, name);
	jw_object(&s->w, "arrayValue");
	jw_array(&s->w, "values");
	jw_object(&s->w, NULL);
	jw_str(&s->w, "stringValue", value);
	jw_end(&s->w);
	jw_end(&s->w);
	jw_end(&s->w);
	end_attr(s);
}

/* "anthropic/claude-x": whom the conventions call anthropic, and its model. */
static void attr_model(struct spans *s, const char *id)
{
	static const struct {
		const char *ours, *theirs;
	} providers[] = {{"google", "gcp.gemini"}, {"xai", "x_ai"}, {"mistral", "mistral_ai"}};
	const char *slash = id != NULL ? strchr(id, '/') : NULL;
	size_t len = slash != NULL ? (size_t)(slash - id) : 0;
	char provider[64];

	if (id == NULL || id[0] == '\0')
		return;
	snprintf(provider, sizeof(provider), "%.*s", (int)MIN(len, sizeof(provider) - 1), id);
	if (slash == NULL) /* offline, with or without its script */
		snprintf(provider, sizeof(provider), "ava.%.*s",
			 (int)MIN(strcspn(id, ":"), (size_t)40), id);
	for (size_t i = 0; i < ARRAY_LEN(providers); i++)
		if (strcmp(provider, providers[i].ours) == 0)
			snprintf(provider, sizeof(provider), "%s", providers[i].theirs);
	attr_str(s, OTLP_PROVIDER, provider);
	attr_str(s, OTLP_REQUEST_MODEL, slash != NULL ? slash + 1 : id);
	attr_str(s, OTLP_OI_MODEL, slash != NULL ? slash + 1 : id);
}

static void attr_tokens(struct spans *s, int64_t input, int64_t output)
{
	attr_int(s, OTLP_INPUT_TOKENS, input);
	attr_int(s, OTLP_OUTPUT_TOKENS, output);
	attr_int(s, OTLP_OI_PROMPT, input);
	attr_int(s, OTLP_OI_COMPLETION, output);
	if (input >= 0 && output >= 0 && input <= INT64_MAX - output)
		attr_int(s, OTLP_OI_TOTAL, input + output);
}

static void attr_cost(struct spans *s, const json_t *object)
{
	int64_t cost = json_get_fixed(object, "costCents", 4, -1);

	attr_usd(s, OTLP_COST, cost);
	attr_usd(s, OTLP_OI_COST, cost);
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
	for (size_t i = 0; i < digits; i++)
		out[i] = "0123456789abcdef"[i % 2 ? digest[i / 2] & 15 : digest[i / 2] >> 4];
	out[digits] = '\0';
}

/* Run ids are unique in a root only: with the time of its start it is anywhere. */
static void trace_id_of(const struct spans *s, const struct span *one, char out[33])
{
	const struct trace_event *e = s->list[one->parent].start;
	char at[24];

	snprintf(at, sizeof(at), "%" PRId64, e->shown.time_ms);
	hashed(out, 32, (const char *const[]){"ava", one->agent, e->shown.trace, at}, 4);
}

static void span_id_of(const struct spans *s, const struct span *one, char out[17])
{
	static const char *const kinds[] = {"agent", "chat", "tool"};
	char trace[33];

	trace_id_of(s, one, trace);
	hashed(out, 16, (const char *const[]){trace, kinds[one->kind], one->call}, 3);
}

static void put_nano(struct spans *s, const char *key, int64_t ms)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64 "000000", ms);
	jw_str(&s->w, key, text);
}

static int64_t start_of(const struct span *one)
{
	int64_t ms = -1;
	json_t *meta;

	if (one->kind != SPAN_TOOL || one->end == NULL)
		return one->start->shown.time_ms;
	/* Calls of a turn are written together and begin when they can. */
	meta = trace_metadata(one->end);
	ms = json_get_int(meta, "duration", -1);
	json_decref(meta);
	return ms >= 0 ? one->end->shown.time_ms - MIN(ms, one->end->shown.time_ms)
		       : one->start->shown.time_ms;
}

static int64_t end_of(const struct spans *s, const struct span *one)
{
	const struct span *agent = &s->list[one->parent];

	if (one->end != NULL)
		return one->end->shown.time_ms;
	if (agent->end != NULL)
		return agent->end->shown.time_ms;
	return MAX(s->t->events[s->t->n - 1].shown.time_ms, one->start->shown.time_ms);
}

static void put_status(struct spans *s, const char *error, const char *message)
{
	jw_object(&s->w, "status");
	if (error != NULL) {
		jw_int(&s->w, "code", 2);
		jw_str(&s->w, "message", message != NULL ? message : error);
	} else {
		jw_int(&s->w, "code", 1);
	}
	jw_end(&s->w);
}

static void chat_attributes(struct spans *s, const json_t *start, const json_t *end,
			    const json_t *meta)
{
	const json_t *tokens = json_object_get(end, "tokens");

	attr_str(s, OTLP_OPERATION, "chat");
	attr_str(s, OTLP_OI_KIND, "LLM");
	attr_model(s, json_get_str(start, "model"));
	attr_int(s, OTLP_MAX_TOKENS, json_get_int(start, "maxOutput", -1));
	attr_str(s, OTLP_CALL_ID, json_get_str(start, "callId"));
	attr_int(s, OTLP_ITERATION, json_get_int(meta, "iteration", -1));
	if (end == NULL)
		return;
	attr_str(s, OTLP_RESPONSE_ID, json_get_str(end, "requestId"));
	attr_list(s, OTLP_FINISH_REASONS, json_get_str(end, "stopReason"));
	attr_tokens(s, json_get_int(tokens, "input", -1), json_get_int(tokens, "output", -1));
	attr_int(s, OTLP_CACHE_READ, json_get_int(tokens, "cacheRead", -1));
	attr_int(s, OTLP_CACHE_WRITE, json_get_int(tokens, "cacheWrite", -1));
	attr_int(s, OTLP_REASONING, json_get_int(tokens, "reasoning", -1));
	attr_int(s, OTLP_OI_CACHE_READ, json_get_int(tokens, "cacheRead", -1));
	attr_int(s, OTLP_OI_CACHE_WRITE, json_get_int(tokens, "cacheWrite", -1));
	attr_cost(s, meta);
	if (json_get_bool(end, "estimated", false))
		attr_true(s, OTLP_ESTIMATED);
	attr_str(s, OTLP_ERROR_TYPE, json_get_str(end, "errorClass"));
}

static void tool_attributes(struct spans *s, const json_t *start, const json_t *end)
{
	attr_str(s, OTLP_OPERATION, "execute_tool");
	attr_str(s, OTLP_OI_KIND, "TOOL");
	attr_str(s, OTLP_TOOL_NAME, json_get_str(start, "name"));
	attr_str(s, OTLP_TOOL_TYPE, "function");
	attr_str(s, OTLP_TOOL_CALL_ID, json_get_str(start, "callId"));
	if (end != NULL && !json_get_bool(end, "success", true))
		attr_str(s, OTLP_ERROR_TYPE, json_get_str(end, "errorClass"));
}

static void agent_attributes(struct spans *s, const struct span *one, const json_t *start,
			     const json_t *end)
{
	const json_t *totals = json_object_get(end, "totals");
	const char *status = json_get_str(end, "status");

	attr_str(s, OTLP_OPERATION, "invoke_agent");
	attr_str(s, OTLP_OI_KIND, "AGENT");
	attr_str(s, OTLP_AGENT_ID, one->agent);
	attr_str(s, OTLP_AGENT_NAME, json_get_str(start, "role"));
	attr_str(s, OTLP_OI_AGENT, json_get_str(start, "role"));
	attr_model(s, json_get_str(start, "model"));
	attr_str(s, OTLP_CONVERSATION, one->start->shown.session);
	attr_str(s, OTLP_SESSION, one->start->shown.session);
	attr_str(s, OTLP_USER, one->start->shown.user);
	attr_str(s, OTLP_TRACE_NAME, one->start->shown.trace);
	if (end == NULL)
		return;
	attr_str(s, OTLP_STATUS, status);
	attr_str(s, OTLP_STOP_REASON, json_get_str(end, "stopReason"));
	attr_tokens(s, json_get_int(totals, "inputTokens", -1),
		    json_get_int(totals, "outputTokens", -1));
	attr_cost(s, totals);
	if (status != NULL && strcmp(status, "success") != 0)
		attr_str(s, OTLP_ERROR_TYPE, status);
}

/* ---- events of a run's span */

static void event_attributes(struct spans *s, const struct trace_event *e, const json_t *content)
{
	const char *text = json_get_str(content, "text");

	attr_int(s, OTLP_LSN, e->shown.lsn <= INT64_MAX ? (int64_t)e->shown.lsn : -1);
	if (e->kind == EVENT_Error) {
		attr_str(s, OTLP_EXCEPTION_TYPE, json_get_str(content, "class"));
		attr_str(s, OTLP_EXCEPTION_MESSAGE, json_get_str(content, "message"));
	}
	if (e->kind == EVENT_Exhausted)
		attr_str(s, OTLP_LIMIT_KIND, json_get_str(content, "resource"));
	if (e->kind == EVENT_Limit)
		attr_str(s, OTLP_LIMIT_KIND,
			 json_string_value(json_array_get(json_object_get(content, "warned"), 0)));
	if (e->kind == EVENT_Checkpoint)
		attr_str(s, OTLP_CHECKPOINT, json_get_str(content, "name"));
	if (e->kind == EVENT_Activity)
		attr_str(s, OTLP_TEXT, text);
}

static const char *event_name(const struct spans *s, const struct trace_event *e)
{
	switch (e->kind) {
	case EVENT_Error:
		return s->v->names[OTLP_EXCEPTION];
	case EVENT_Exhausted:
		return "ava.exhausted";
	case EVENT_Limit:
		return "ava.limit";
	case EVENT_Checkpoint:
		return "ava.checkpoint";
	case EVENT_Steering:
		return "ava.steering";
	case EVENT_ContextEdit:
		return "ava.context_edit";
	case EVENT_Fork:
		return "ava.fork";
	case EVENT_Join:
		return "ava.join";
	case EVENT_StateRead:
		return "ava.state.read";
	case EVENT_StateWrite:
		return "ava.state.write";
	case EVENT_Activity:
		return "ava.activity";
	default:
		return NULL;
	}
}

static void put_events(struct spans *s, const struct span *one)
{
	jw_array(&s->w, "events");
	for (size_t i = 0; i < s->t->n; i++) {
		const struct trace_event *e = &s->t->events[i];
		const char *name = event_name(s, e);
		json_t *content;

		if (name == NULL || strcmp(e->shown.agent, one->agent) != 0)
			continue;
		content = trace_content(e);
		jw_object(&s->w, NULL);
		put_nano(s, "timeUnixNano", e->shown.time_ms);
		jw_str(&s->w, "name", name);
		jw_array(&s->w, "attributes");
		event_attributes(s, e, content);
		jw_end(&s->w);
		jw_end(&s->w);
		json_decref(content);
	}
	jw_end(&s->w);
}

/* The run that a fork came from, where it is in the trace too. */
static void put_links(struct spans *s, const json_t *start)
{
	const char *from = json_get_str(start, "resumedFrom");
	char trace[33], span[17];

	jw_array(&s->w, "links");
	for (size_t i = 0; i < s->n && from != NULL; i++) {
		if (s->list[i].kind != SPAN_AGENT || strcmp(s->list[i].agent, from) != 0)
			continue;
		trace_id_of(s, &s->list[i], trace);
		span_id_of(s, &s->list[i], span);
		jw_object(&s->w, NULL);
		jw_str(&s->w, "traceId", trace);
		jw_str(&s->w, "spanId", span);
		jw_end(&s->w);
	}
	jw_end(&s->w);
}

static void span_head(struct spans *s, const struct span *one, const json_t *start)
{
	static const char *const verbs[] = {"invoke_agent", "chat", "execute_tool"};
	static const char *const keys[] = {"role", "model", "name"};
	const char *what = json_get_str(start, keys[one->kind]), *slash;
	char id[33], name[256];

	trace_id_of(s, one, id);
	jw_str(&s->w, "traceId", id);
	span_id_of(s, one, id);
	jw_str(&s->w, "spanId", id);
	if (one->kind != SPAN_AGENT) {
		span_id_of(s, &s->list[one->parent], id);
		jw_str(&s->w, "parentSpanId", id);
	}
	slash = what != NULL && one->kind == SPAN_CHAT ? strchr(what, '/') : NULL;
	what = slash != NULL ? slash + 1 : what != NULL ? what : one->agent;
	snprintf(name, sizeof(name), "%s %s", verbs[one->kind], what);
	jw_str(&s->w, "name", name);
	jw_int(&s->w, "kind", one->kind == SPAN_CHAT ? 3 : 1); /* CLIENT, INTERNAL */
	put_nano(s, "startTimeUnixNano", start_of(one));
	put_nano(s, "endTimeUnixNano", MAX(end_of(s, one), start_of(one)));
}

/* Its class where it failed; NULL: it did not. */
static const char *failure(const struct span *one, const json_t *end)
{
	const char *status = json_get_str(end, "status"), *class = json_get_str(end, "errorClass");

	if (end == NULL)
		return "interrupted";
	if (one->kind == SPAN_AGENT)
		return status != NULL && strcmp(status, "success") != 0 ? status : NULL;
	if (one->kind == SPAN_TOOL)
		return json_get_bool(end, "success", true) ? NULL : class;
	return class;
}

static void put_span(struct spans *s, const struct span *one)
{
	json_t *start = trace_content(one->start);
	json_t *end = one->end != NULL ? trace_content(one->end) : NULL;
	json_t *meta = trace_metadata(one->end != NULL ? one->end : one->start);
	bool live = one->kind == SPAN_AGENT && one->end == NULL;

	jw_object(&s->w, NULL);
	span_head(s, one, start);
	jw_array(&s->w, "attributes");
	if (one->kind == SPAN_AGENT)
		agent_attributes(s, one, start, end);
	else if (one->kind == SPAN_CHAT)
		chat_attributes(s, start, end, meta);
	else
		tool_attributes(s, start, end);
	if (end == NULL && !live) {
		attr_true(s, OTLP_INTERRUPTED);
		attr_str(s, OTLP_ERROR_TYPE, "interrupted");
	}
	jw_end(&s->w);
	if (one->kind == SPAN_AGENT) {
		put_events(s, one);
		put_links(s, start);
	}
	if (!live)
		put_status(s, failure(one, end), json_get_str(end, "error"));
	jw_end(&s->w);
	json_decref(start);
	json_decref(end);
	json_decref(meta);
}

static void put_request(struct spans *s, size_t from, size_t to)
{
	jw_object(&s->w, NULL);
	jw_array(&s->w, "resourceSpans");
	jw_object(&s->w, NULL);
	jw_object(&s->w, "resource");
	jw_array(&s->w, "attributes");
	attr_str(s, OTLP_SERVICE, "ava");
	attr_str(s, OTLP_SERVICE_VERSION, AVA_VERSION);
	jw_end(&s->w);
	jw_end(&s->w);
	jw_array(&s->w, "scopeSpans");
	jw_object(&s->w, NULL);
	jw_object(&s->w, "scope");
	jw_str(&s->w, "name", "ava");
	jw_str(&s->w, "version", AVA_VERSION);
	jw_end(&s->w);
	jw_array(&s->w, "spans");
	for (size_t i = from; i < to; i++)
		put_span(s, &s->list[i]);
	jw_end(&s->w);
	jw_str(&s->w, "schemaUrl", s->v->url);
	for (int i = 0; i < 4; i++)
		jw_end(&s->w); /* scope spans, their list, resource spans, their list */
	jw_end(&s->w);
}

static int spans_init(struct spans *s, struct ava_trace *t, struct buf *out)
{
	*s = (struct spans){.t = t, .v = &otlp_versions[ARRAY_LEN(otlp_versions) - 1]};
	jw_init(&s->w, out);
	s->list = calloc(2 * t->n + 1, sizeof(*s->list)); /* each event begins two at most */
	if (s->list == NULL)
		return AVA_ENOMEM;
	find_spans(s);
	return 0;
}

int otlp_part(struct ava_trace *t, size_t *at, struct buf *out, struct ava_error *err)
{
	struct spans s;
	size_t to = 0;
	int rv = spans_init(&s, t, out);

	if (rv == 0) {
		to = MIN(s.n, *at + OTLP_PART_SPANS);
		if (*at < to)
			put_request(&s, *at, to);
		rv = buf_check(out);
	}
	free(s.list);
	if (rv != 0)
		return err_set(err, rv, "the spans of this trace are too large for one request");
	*at = to;
	return to < s.n;
}

int ava_trace_otlp(struct ava_trace *t, const char **json, size_t *len, struct ava_error *err)
{
	struct spans s;
	struct buf out;
	int rv;

	*json = NULL;
	*len = 0;
	trace_forget(t);
	buf_init(&out, TRACE_BYTES_MAX);
	rv = spans_init(&s, t, &out);
	if (rv == 0) {
		put_request(&s, 0, s.n);
		rv = buf_check(&out);
	}
	if (rv == 0) {
		*json = arena_copy(&t->answer, out.data, out.len);
		*len = out.len;
		rv = *json != NULL ? 0 : AVA_ENOMEM;
	}
	free(s.list);
	buf_fini(&out);
	return rv == 0 ? 0 : err_set(err, rv, "no memory for the export of this trace");
}

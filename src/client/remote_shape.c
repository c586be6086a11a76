/* Reading and writing the JSON of the API. A field that is absent or of
 * another type reads as none: the daemon is ours, and may be older or newer.
 * What can fail is memory alone, which the answer and the buffer remember. */
#include "client/remote_shape.h"

#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "codec/json.h"

static const char *str(const json_t *o, const char *key, struct answer *out)
{
	return answer_str(out, json_get_str(o, key));
}

static int64_t time_of(const json_t *o, const char *key)
{
	const char *s = json_get_str(o, key);
	int64_t ms = s && *s ? clock_parse_iso(s, strlen(s)) : 0;

	return MAX(ms, 0);
}

static int64_t cost(const json_t *o, const char *key)
{
	return json_get_fixed(o, key, 4, -1);
}

static const char *text_of(const json_t *o, const char *key, struct answer *out)
{
	const json_t *v = json_object_get(o, key);
	const char *text = "";
	struct buf b;

	if (!v)
		return text;
	buf_init(&b, 16u << 20);
	if (json_dump(&b, v) == 0)
		text = answer_strn(out, b.data, b.len);
	else
		out->failed = true;
	buf_fini(&b);
	return text;
}

static enum ava_status status_of(const json_t *o)
{
	const char *s = json_get_str(o, "status");

	for (int i = 0; s && i < AVA_NSTATUSES; i++)
		if (strcmp(s, ava_status_name((enum ava_status)i)) == 0)
			return (enum ava_status)i;
	return AVA_ERROR;
}

void remote_read_run(const json_t *o, struct answer *out, struct ava_run *r)
{
	const json_t *limits = json_object_get(o, "limits");
	const json_t *tool = json_object_get(o, "last_tool_call");

	*r = (struct ava_run){
		.id = str(o, "subagent_id", out),
		.trace = str(o, "trace_id", out),
		.role = str(o, "role", out),
		.task = str(o, "task", out),
		.model = str(o, "model", out),
		.session = str(o, "session_id", out),
		.user = str(o, "user_id", out),
		.origin = str(o, "origin", out),
		.cwd = str(o, "cwd", out),
		.status = status_of(o),
		.stop_reason = str(o, "stop_reason", out),
		.activity = str(o, "current_activity", out),
		.asks = str(json_object_get(o, "waiting_for"), "question", out),
		.asks_call = str(json_object_get(o, "waiting_for"), "call_id", out),
		.last_tool = str(tool, "name", out),
		.started_ms = time_of(o, "started_at"),
		.ended_ms = time_of(o, "ended_at"),
		.last_tool_ms = time_of(tool, "at"),
		.elapsed_ms = json_get_fixed(o, "elapsed_seconds", 3, 0),
		.tokens = json_get_int(o, "tokens_used", 0),
		.cost_microusd = cost(o, "cost_cents"),
		.iteration = json_get_int(o, "iteration", 0),
		.timeout_ms = json_get_fixed(limits, "timeout", 3, 0),
		.max_cost_microusd = cost(limits, "max_cost_cents"),
		.max_tokens = json_get_int(limits, "max_tokens", 0),
		.max_iterations = json_get_int(limits, "max_iterations", 0),
	};
}

static enum ava_proposal_state state_of(const json_t *o)
{
	static const char *const names[] = {[AVA_PENDING] = "pending",
					    [AVA_CONFIRMED] = "confirmed",
					    [AVA_REJECTED] = "rejected",
					    [AVA_EXPIRED] = "expired"};
	const char *s = json_get_str(o, "state");

	for (size_t i = 0; s && i < ARRAY_LEN(names); i++)
		if (strcmp(s, names[i]) == 0)
			return (enum ava_proposal_state)i;
	return AVA_EXPIRED;
}

void remote_read_proposal(const json_t *o, struct answer *out, struct ava_proposal *p)
{
	*p = (struct ava_proposal){
		.id = str(o, "proposal_id", out),
		.state = state_of(o),
		.created_ms = time_of(o, "created_at"),
		.expires_ms = time_of(o, "expires_at"),
		.run = str(o, "subagent_id", out),
		.trace = str(o, "trace_id", out),
		.message = str(o, "message", out),
		.quote = text_of(o, "quote", out),
		.config = text_of(o, "config", out),
		.config_hash = str(o, "config_hash", out),
		.confirmed_hash = str(o, "confirmed_hash", out),
		.changes = str(o, "changes", out),
		.replaces = str(o, "replaces", out),
		.replaced_by = str(o, "replaced_by", out),
		.group = str(o, "group_id", out),
	};
}

void remote_read_group(const json_t *o, struct answer *out, struct ava_group *g)
{
	const char *status = json_get_str(o, "status"), *mode = json_get_str(o, "mode");
	const json_t *each;
	size_t i;

	*g = (struct ava_group){
		.running = status && strcmp(status, "running") == 0,
		.chain = mode && strcmp(mode, "chain") == 0,
		.size = (unsigned)json_get_int(o, "size", 0),
		.ended = (unsigned)json_get_int(o, "ended", 0),
		.succeeded = (unsigned)json_get_int(o, "succeeded", 0),
		.tokens = json_get_int(o, "tokens_used", 0),
		.cost_microusd = cost(o, "cost_cents"),
	};
	json_array_foreach(json_object_get(o, "runs"), i, each)
	{
		struct ava_run run;

		remote_read_run(each, out, &run);
		answer_row(out, &run, sizeof(run));
	}
}

void remote_read_replay(const json_t *o, struct answer *out, struct ava_replay *r)
{
	const json_t *each;
	size_t i;

	*r = (struct ava_replay){
		.identical = json_get_bool(o, "identical", false),
		.complete = json_get_bool(o, "complete", false),
		.reason = str(o, "reason", out),
		.events = (uint64_t)json_get_int(o, "events", 0),
		.calls = json_get_int(o, "turns", 0),
		.found = json_get_int(o, "differences_found", 0),
	};
	json_array_foreach(json_object_get(o, "differences"), i, each)
	{
		struct ava_difference d = {
			.lsn = (uint64_t)json_get_int(each, "lsn", 0),
			.seq = (uint64_t)json_get_int(each, "seq", 0),
			.type = str(each, "eventType", out),
			.call = str(each, "call_id", out),
			.what = str(each, "what", out),
			.byte = json_get_int(each, "byte", -1),
			.recorded = str(each, "recorded", out),
			.replayed = str(each, "replayed", out),
		};

		answer_row(out, &d, sizeof(d));
	}
}

void remote_read_session(const json_t *o, struct answer *out, struct ava_session *s)
{
	const char *status = json_get_str(o, "status");

	*s = (struct ava_session){
		.id = str(o, "session_id", out),
		.title = str(o, "title", out),
		.cwd = str(o, "cwd", out),
		.user = str(o, "user_id", out),
		.model = str(o, "model", out),
		.created_ms = time_of(o, "created_at"),
		.updated_ms = time_of(o, "updated_at"),
		.tokens = json_get_int(o, "tokens_used", 0),
		.cost_microusd = cost(o, "cost_cents"),
		.live_runs = (unsigned)json_get_int(o, "live_runs", 0),
		.waiting = (unsigned)json_get_int(o, "waiting", 0),
		.busy = status && strcmp(status, "busy") == 0,
	};
}

/* ---- writing */

static void put_str(struct jw *w, const char *key, const char *s)
{
	if (s)
		jw_str(w, key, s);
}

static void put_cost(struct jw *w, int64_t microusd)
{
	if (microusd == AVA_FREE_ONLY)
		jw_int(w, "max_cost_cents", 0);
	else if (microusd != 0)
		jw_fixed(w, "max_cost_cents", microusd, 4);
}

static void put_list(struct jw *w, const char *key, const char *const *list, size_t n)
{
	if (!list)
		return;
	jw_array(w, key);
	for (size_t i = 0; i < n; i++)
		jw_str(w, NULL, list[i]);
	jw_end(w);
}

/* Text that a caller says is JSON; what is none arrives as a string, and is refused. */
static void put_json(struct jw *w, const char *key, const char *text)
{
	json_t *v = json_parse(text, strlen(text), NULL);

	if (v)
		jw_raw(w, key, text, strlen(text));
	else
		jw_str(w, key, text);
	json_decref(v);
}

static void put_limits(struct jw *w, int64_t timeout_ms, int64_t cost_microusd, int64_t tokens,
		       int64_t iterations)
{
	if (timeout_ms != 0)
		jw_fixed(w, "timeout", timeout_ms, 3);
	put_cost(w, cost_microusd);
	if (tokens != 0)
		jw_int(w, "max_tokens", tokens);
	if (iterations != 0)
		jw_int(w, "max_iterations", iterations);
}

/* What is said of one run, into an open object. */
static void put_run(struct jw *w, const struct ava_spawn *s)
{
	put_str(w, "task", s->task);
	put_str(w, "role", s->role);
	put_str(w, "context", s->context);
	put_str(w, "model", s->model);
	put_str(w, "preset", s->preset);
	put_str(w, "on_limit", s->on_limit);
	put_str(w, "cwd", s->cwd);
	put_limits(w, s->timeout_ms, s->max_cost_microusd, s->max_tokens, s->max_iterations);
	if (s->extended_thinking)
		jw_bool(w, "extended_thinking", true);
	put_list(w, "tools", s->tools, s->ntools);
	put_list(w, "grants", s->grants, s->ngrants);
	if (s->output_schema)
		put_json(w, "output_schema", s->output_schema);
	put_list(w, "ask_before", s->ask_before, s->nask_before);
}

int remote_write_spawn(struct buf *out, const struct ava_spawn *s, bool confirmed)
{
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	put_run(&w, s);
	put_str(&w, "session_id", s->session);
	put_str(&w, "request_id", s->request_id);
	put_str(&w, "confirm", s->confirm);
	jw_str(&w, "origin", "libava");
	if (confirmed)
		jw_bool(&w, "confirmed", true);
	jw_end(&w);
	return buf_check(out);
}

int remote_write_resume(struct buf *out, const struct ava_resume *r)
{
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	put_str(&w, "model", r->model);
	if (r->from != 0)
		jw_int(&w, "from", r->from);
	else
		put_str(&w, "from", r->checkpoint);
	put_limits(&w, r->timeout_ms, r->max_cost_microusd, r->max_tokens, r->max_iterations);
	put_str(&w, "session_id", r->session);
	put_str(&w, "request_id", r->request_id);
	put_str(&w, "confirm", r->confirm);
	jw_str(&w, "origin", "libava");
	jw_end(&w);
	return buf_check(out);
}

int remote_write_group(struct buf *out, const struct ava_spawn_group *g)
{
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_array(&w, "runs");
	for (size_t i = 0; i < g->nruns; i++) {
		jw_object(&w, NULL);
		put_run(&w, &g->runs[i]);
		jw_end(&w);
	}
	jw_end(&w);
	put_str(&w, "session_id", g->session);
	put_str(&w, "request_id", g->request_id);
	put_str(&w, "confirm", g->confirm);
	put_str(&w, "cwd", g->cwd);
	jw_str(&w, "origin", "libava");
	if (g->timeout_ms != 0)
		jw_fixed(&w, "timeout", g->timeout_ms, 3);
	put_cost(&w, g->max_cost_microusd);
	jw_bool(&w, "chain", g->chain != 0);
	jw_bool(&w, "share", g->share != 0);
	jw_end(&w);
	return buf_check(out);
}

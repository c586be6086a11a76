/* Reading the JSON of the API. A field that is absent or of another type
 * reads as none: a daemon may be older or newer. What can fail is memory alone, which the
 * answer and the buffer remember: a string is "" then and a row is missing, and the one
 * check at the end says so. */
#include "api/runtime.h"

#include <string.h>

#include "base/error.h"
#include "base/util.h"

#define ANSWER_MAX (256u << 20)

void answer_init(struct api_answer *a)
{
	arena_init(&a->mem, ANSWER_MAX);
	buf_init(&a->rows, ANSWER_MAX);
	a->failed = false;
}

void answer_fini(struct api_answer *a)
{
	arena_fini(&a->mem);
	buf_fini(&a->rows);
}

void answer_reset(struct api_answer *a)
{
	answer_fini(a);
	answer_init(a);
}

const char *answer_strn(struct api_answer *a, const char *s, size_t len)
{
	const char *copy = arena_copy(&a->mem, s, len);

	if (!copy)
		a->failed = true;
	return copy ? copy : "";
}

const char *answer_str(struct api_answer *a, const char *s)
{
	return s && *s ? answer_strn(a, s, strlen(s)) : "";
}

int answer_check(const struct api_answer *a, struct ava_error *err)
{
	if (a->failed || buf_check(&a->rows) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory for the answer");
	return 0;
}

const char *answer_json(struct api_answer *a, const json_t *v, const char *absent)
{
	const char *text = absent;
	struct buf b;

	if (!v)
		return text;
	buf_init(&b, 64u << 20);
	if (json_dump(&b, v) == 0)
		text = answer_strn(a, b.data, b.len);
	else
		a->failed = true;
	buf_fini(&b);
	return text;
}

/* ---- reading */

static const char *str(const json_t *o, const char *key, struct api_answer *out)
{
	return answer_str(out, json_get_str(o, key));
}

static int64_t time_of(const json_t *o, const char *key)
{
	return MAX(json_time(json_object_get(o, key)), 0);
}

static int64_t cost(const json_t *o, const char *key)
{
	return json_get_fixed(o, key, 4, -1);
}

enum ava_status shape_status(const char *word)
{
	for (int i = 0; word && i < AVA_NSTATUSES; i++)
		if (strcmp(word, ava_status_name((enum ava_status)i)) == 0)
			return (enum ava_status)i;
	return AVA_ERROR;
}

void shape_run(const json_t *o, struct api_answer *out, struct ava_run *r)
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
		.status = shape_status(json_get_str(o, "status")),
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

static enum ava_proposal_state shape_state_of(const json_t *o)
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

void shape_proposal(const json_t *o, struct api_answer *out, struct ava_proposal *p)
{
	*p = (struct ava_proposal){
		.id = str(o, "proposal_id", out),
		.state = shape_state_of(o),
		.created_ms = time_of(o, "created_at"),
		.expires_ms = time_of(o, "expires_at"),
		.run = str(o, "subagent_id", out),
		.trace = str(o, "trace_id", out),
		.message = str(o, "message", out),
		.quote = answer_json(out, json_object_get(o, "quote"), ""),
		.config = answer_json(out, json_object_get(o, "config"), ""),
		.config_hash = str(o, "config_hash", out),
		.confirmed_hash = str(o, "confirmed_hash", out),
		.changes = str(o, "changes", out),
		.replaces = str(o, "replaces", out),
		.replaced_by = str(o, "replaced_by", out),
		.group = str(o, "group_id", out),
	};
}

void shape_group(const json_t *o, struct api_answer *out, struct ava_group *g)
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

		shape_run(each, out, &run);
		buf_add(&out->rows, &run, sizeof(run));
	}
}

void shape_replay(const json_t *o, struct api_answer *out, struct ava_replay *r)
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

		buf_add(&out->rows, &d, sizeof(d));
	}
}

void shape_session(const json_t *o, struct api_answer *out, struct ava_session *s)
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

void shape_result(const json_t *o, struct api_answer *out, struct ava_result *r)
{
	const json_t *sure = json_object_get(o, "confidence");

	r->status = shape_status(json_get_str(o, "status"));
	r->run = str(o, "subagent_id", out);
	r->trace = str(o, "trace_id", out);
	r->model = str(o, "model", out);
	r->stop_reason = str(o, "stop_reason", out);
	r->summary = str(o, "summary", out);
	r->error = str(o, "error", out);
	r->output = answer_json(out, json_object_get(o, "output"), "null");
	r->confidence = json_is_number(sure) ? json_number_value(sure) : -1;
	r->partial = json_get_bool(o, "partial", false);
	r->unverified = json_get_bool(o, "unverified", false);
	r->tokens = json_get_int(o, "tokens_used", 0);
	r->cost_microusd = cost(o, "cost_cents");
	r->duration_ms = json_get_fixed(o, "duration_seconds", 3, 0);
	r->iterations = json_get_int(o, "iterations", 0);
	r->citations = json_array_size(json_object_get(o, "citations"));
}

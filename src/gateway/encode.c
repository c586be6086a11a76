/* Writers and one reader. Unknown keys of a request are refused by name: a
 * misspelt limit must not be a missing one. Writers cannot fail but for
 * memory, which their buffer remembers. */
#include "gateway/encode.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ava/cancel.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "subagent/person.h"

static void write_time(struct jw *w, const char *key, int64_t wall_ms)
{
	char text[CLOCK_ISO_LEN + 1] = "";

	if (wall_ms > 0)
		clock_iso(wall_ms, text);
	jw_str(w, key, text);
}

static void write_cost(struct jw *w, const char *key, int64_t microusd)
{
	if (microusd < 0)
		jw_null(w, key);
	else
		jw_fixed(w, key, microusd, 4);
}

/* What it waits for, until somebody answers. */
static void write_question(struct jw *w, const struct question *q)
{
	jw_object(w, "waiting_for");
	jw_str(w, "call_id", q->call_id);
	jw_str(w, "kind", q->approval ? "approval" : "question");
	jw_str(w, "question", q->text);
	if (q->choices)
		jw_raw(w, "choices", q->choices, strlen(q->choices));
	if (q->fallback)
		jw_str(w, "default", q->fallback);
	write_time(w, "asked_at", q->asked_ms);
	write_time(w, "expires_at", q->until_ms);
	jw_end(w);
}

static void write_status(struct jw *w, const char *key, const struct op_status *s)
{
	jw_object(w, key);
	jw_str(w, "subagent_id", s->id);
	jw_str(w, "trace_id", s->trace_id);
	jw_str(w, "role", s->role);
	jw_str(w, "task", s->task);
	jw_str(w, "model", s->model);
	jw_str(w, "status", ava_status_name(s->status));
	jw_str(w, "stop_reason", s->stop_reason);
	write_time(w, "started_at", s->started_ms);
	write_time(w, "ended_at", s->ended_ms);
	jw_int(w, "iteration", s->iteration);
	jw_int(w, "tokens_used", s->tokens);
	write_cost(w, "cost_cents", s->cost_microusd);
	jw_fixed(w, "elapsed_seconds", s->elapsed_ms, 3);
	jw_str(w, "current_activity", s->activity);
	if (s->last_tool && s->last_tool[0]) {
		jw_object(w, "last_tool_call");
		jw_str(w, "name", s->last_tool);
		write_time(w, "at", s->last_tool_ms);
		jw_end(w);
	} else {
		jw_null(w, "last_tool_call");
	}
	if (s->asks)
		write_question(w, s->asks);
	jw_object(w, "limits");
	jw_fixed(w, "timeout", s->limit_time_ms, 3);
	write_cost(w, "max_cost_cents", s->limit_cost_microusd);
	jw_int(w, "max_tokens", s->limit_tokens);
	jw_int(w, "max_iterations", s->limit_iterations);
	jw_end(w);
	jw_str(w, "session_id", s->session_id);
	jw_str(w, "user_id", s->user_id);
	jw_str(w, "origin", s->origin);
	jw_str(w, "cwd", s->cwd);
	jw_end(w);
}

void encode_status(struct jw *w, const struct op_status *s)
{
	write_status(w, NULL, s);
}

void encode_session(struct jw *w, const struct op_session *s)
{
	jw_object(w, NULL);
	jw_str(w, "session_id", s->id);
	jw_str(w, "title", s->title);
	jw_str(w, "cwd", s->cwd);
	jw_str(w, "user_id", s->user_id);
	jw_str(w, "model", s->model);
	jw_str(w, "status", s->busy ? "busy" : "idle");
	write_time(w, "created_at", s->created_ms);
	write_time(w, "updated_at", s->updated_ms);
	jw_int(w, "live_runs", s->live_runs);
	jw_int(w, "waiting", s->waiting);
	jw_int(w, "tokens_used", s->tokens);
	write_cost(w, "cost_cents", s->cost_microusd);
	jw_end(w);
}

const char *encode_proposal_state(enum proposal_state s)
{
	switch (s) {
	case PROPOSAL_PENDING:
		return "pending";
	case PROPOSAL_CONFIRMED:
		return "confirmed";
	case PROPOSAL_REJECTED:
		return "rejected";
	case PROPOSAL_EXPIRED:
		break;
	}
	return "expired";
}

/* Of a proposal of several runs. */
static void write_group_id(struct jw *w, const struct op_proposal *p)
{
	if (p->group_id && p->group_id[0])
		jw_str(w, "group_id", p->group_id);
}

void encode_proposal(struct jw *w, const struct op_proposal *p)
{
	jw_object(w, NULL);
	jw_str(w, "proposal_id", p->id);
	jw_str(w, "state", encode_proposal_state(p->state));
	write_time(w, "created_at", p->created_ms);
	write_time(w, "expires_at", p->expires_ms);
	jw_str(w, "subagent_id", p->run_id);
	jw_str(w, "trace_id", p->trace_id);
	jw_raw(w, "quote", p->quote_json, strlen(p->quote_json));
	jw_str(w, "message", p->message);
	jw_raw(w, "config", p->config_json, strlen(p->config_json));
	jw_str(w, "config_hash", p->config_hash);
	jw_str(w, "confirmed_hash", p->confirmed_hash);
	jw_str(w, "changes", p->changes);
	jw_str(w, "replaces", p->replaces);
	jw_str(w, "replaced_by", p->replaced_by);
	jw_str(w, "session_id", p->session_id);
	write_group_id(w, p);
	jw_end(w);
}

void encode_group(struct jw *w, const char *id, const struct op_group_status *s)
{
	jw_str(w, "group_id", id);
	jw_str(w, "status", s->running ? "running" : "ended");
	jw_str(w, "mode", s->chain ? "chain" : "parallel");
	jw_int(w, "size", s->size);
	jw_int(w, "ended", s->ended);
	jw_int(w, "succeeded", s->succeeded);
	write_cost(w, "cost_cents", s->cost_microusd);
	write_cost(w, "max_cost_cents", s->limit_microusd);
	if (s->time_ms > 0)
		jw_fixed(w, "timeout", s->time_ms, 3);
	else
		jw_null(w, "timeout");
	jw_int(w, "tokens_used", s->tokens);
}

void encode_answer(struct jw *w, const struct op_proposal *p)
{
	if (p->state == PROPOSAL_PENDING) { /* it was quoted again */
		encode_proposal(w, p);
		return;
	}
	jw_object(w, NULL);
	jw_str(w, "proposal_id", p->id);
	jw_str(w, "state", encode_proposal_state(p->state));
	jw_str(w, "subagent_id", p->run_id);
	jw_str(w, "trace_id", p->trace_id);
	jw_str(w, "config_hash", p->config_hash);
	jw_str(w, "confirmed_hash", p->confirmed_hash);
	jw_str(w, "changes", p->changes);
	write_group_id(w, p);
	jw_end(w);
}

void encode_started(struct jw *w, const struct op_status *s)
{
	jw_object(w, NULL);
	jw_str(w, "subagent_id", s->id);
	jw_str(w, "trace_id", s->trace_id);
	jw_end(w);
}

void encode_cancelled(struct jw *w, const struct op_cancelled *one)
{
	jw_object(w, NULL);
	if (one->status) {
		write_status(w, "run", one->status);
		jw_bool(w, "had_ended", one->had_ended);
		jw_object(w, "stopped");
		jw_bool(w, "model_call", one->model_call);
		jw_raw(w, "tools", one->tools_json, strlen(one->tools_json));
		jw_end(w);
		jw_int(w, "left", one->left);
	} else {
		jw_str(w, "unknown", one->unknown);
		jw_object(w, "error");
		jw_str(w, "code", err_word(one->error->code));
		jw_str(w, "message", one->error->text);
		jw_end(w);
	}
	jw_end(w);
}

void encode_health(struct jw *w, const struct op_health *h)
{
	jw_object(w, NULL);
	jw_str(w, "status", h->code == 0 ? "ok" : "degraded");
	jw_str(w, "problem", h->problem);
	jw_str(w, "version", h->version);
	jw_int(w, "pid", getpid());
	jw_fixed(w, "uptime_seconds", h->uptime_ms, 3);
	jw_str(w, "root", h->root);
	jw_str(w, "model", h->model);
	jw_str(w, "model_why", h->model_why);
	jw_raw(w, "keys", h->keys ? h->keys : "{}", h->keys ? strlen(h->keys) : 2);
	if (h->otel)
		jw_raw(w, "otel", h->otel, strlen(h->otel));
	jw_object(w, "slots");
	jw_int(w, "max", (int64_t)h->slots_max);
	jw_int(w, "used", (int64_t)h->slots_used);
	jw_end(w);
	jw_int(w, "queued", (int64_t)h->queued);
	jw_object(w, "runs");
	jw_int(w, "running", (int64_t)h->running);
	jw_int(w, "total", (int64_t)h->runs_total);
	jw_end(w);
	jw_object(w, "today");
	jw_str(w, "date", h->today.day);
	jw_fixed(w, "cost_cents", h->today.microusd, 4);
	jw_int(w, "tokens", h->today.tokens);
	jw_int(w, "runs", (int64_t)h->today.runs);
	jw_int(w, "uncosted_runs", (int64_t)h->today.uncosted);
	if (h->budget > 0) {
		jw_fixed(w, "budget_cents", h->budget, 4);
		jw_fixed(w, "budget_used_cents", h->budget_used, 4);
	}
	jw_end(w);
	jw_object(w, "journal");
	jw_int(w, "lsn", (int64_t)h->lsn);
	jw_int(w, "commits", (int64_t)h->commits);
	jw_int(w, "flushes", (int64_t)h->flushes);
	jw_int(w, "queued_bytes", (int64_t)h->queued_bytes);
	jw_int(w, "held_commits", (int64_t)h->held_commits);
	jw_end(w);
	jw_int(w, "loop_gaps", (int64_t)h->loop_gaps);
	jw_object(w, "recovery");
	jw_bool(w, "clean", h->recovery_clean);
	jw_int(w, "redone_batches", (int64_t)h->redone_batches);
	jw_int(w, "torn_bytes", (int64_t)h->torn_bytes);
	jw_int(w, "damaged_batches", (int64_t)h->damaged_batches);
	jw_int(w, "lost_bytes", (int64_t)h->lost_bytes);
	jw_raw(w, "problems", h->recovery_problems, strlen(h->recovery_problems));
	jw_end(w);
	jw_end(w);
}

int encode_error(struct buf *out, int code, const char *message)
{
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_object(&w, "error");
	jw_str(&w, "code", err_word(code));
	jw_str(&w, "message", message);
	jw_end(&w);
	jw_end(&w);
	return buf_check(out);
}

int encode_http_status(int code)
{
	switch (code) {
	case AVA_OK:
		return 200;
	case AVA_EINVAL:
		return 400;
	case AVA_EDENIED:
		return 403;
	case AVA_ENOENT:
		return 404;
	case AVA_EEXIST:
	case AVA_EBUSY:
	case AVA_EBUDGET:
		return 409;
	case AVA_EREJECTED:
	case AVA_EEXPIRED:
		return 410;
	case AVA_ETOOBIG:
		return 413;
	case AVA_EUNSUPPORTED:
	case AVA_EFORMAT:
		return 422;
	case AVA_EFULL:
		return 507;
	case AVA_EIO:
	case AVA_EUNKNOWN:
	case AVA_ECANCELED:
		return 503;
	default:
		return 500;
	}
}

/* ---- bodies */

/* The names a request takes, for who has written another one. */
struct known {
	char text[400];
	size_t len;
};

static void known_add(struct known *k, const char *name)
{
	int n = snprintf(k->text + k->len, sizeof(k->text) - k->len, "%s%s", k->len ? ", " : "",
			 name);

	assert(n > 0 && (size_t)n < sizeof(k->text) - k->len);
	k->len += (size_t)n;
}

static int unknown_key(const char *key, const struct known *k, struct ava_error *err)
{
	return err_set(err, AVA_EINVAL, "unknown key %.60s in the request: it takes %s", key,
		       k->len ? k->text : "none");
}

static int take_bounded(const char *key, const json_t *v, const struct decode_string *keys,
			size_t n, struct ava_error *err)
{
	struct known known = {0};

	for (size_t i = 0; i < n; i++) {
		if (strcmp(key, keys[i].key) != 0)
			continue;
		if (!json_is_string(v))
			return err_set(err, AVA_EINVAL, "%s must be a string", key);
		if (json_string_length(v) > keys[i].max)
			return err_set(err, AVA_ETOOBIG, "%s is over %zu bytes", key, keys[i].max);
		*keys[i].out = json_string_value(v);
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		known_add(&known, keys[i].key);
	return unknown_key(key, &known, err);
}

int decode_strings(const json_t *body, const struct decode_string *keys, size_t n,
		   struct ava_error *err)
{
	const char *key;
	const json_t *v;
	int rv = 0;

	if (body && !json_is_object(body))
		return err_set(err, AVA_EINVAL, "the body must be a JSON object");
	json_object_foreach((json_t *)body, key, v)
	{
		rv = take_bounded(key, v, keys, n, err);
		if (rv != 0)
			break;
	}
	return rv;
}

/* ---- POST /runs. A key that is null is one that is absent. */

static int take_str(const char *key, const json_t *v, const char **out, struct ava_error *err)
{
	if (json_is_null(v))
		return 0;
	if (!json_is_string(v))
		return err_set(err, AVA_EINVAL, "%s must be a string", key);
	*out = json_string_value(v);
	return 0;
}

/* A number times `scale`, which must not overflow or lose what was meant. */
static int take_num(const char *key, const json_t *v, int64_t scale, int64_t *out,
		    struct ava_error *err)
{
	double d;

	if (json_is_null(v))
		return 0;
	if (!json_is_number(v))
		return err_set(err, AVA_EINVAL, "%s must be a number", key);
	d = json_number_value(v) * (double)scale;
	if (!(fabs(d) < 9e15))
		return err_set(err, AVA_EINVAL, "%s is out of range", key);
	if (scale == 1 && d != floor(d))
		return err_set(err, AVA_EINVAL, "%s must be a whole number", key);
	/* Below the smallest unit is still not 0. */
	*out = d > 0 && d < 1 ? 1 : d < 0 && d > -1 ? -1 : (int64_t)llround(d);
	return 0;
}

static int take_bool(const char *key, const json_t *v, bool *out, struct ava_error *err)
{
	if (json_is_null(v))
		return 0;
	if (!json_is_boolean(v))
		return err_set(err, AVA_EINVAL, "%s must be true or false", key);
	*out = json_is_true(v);
	return 0;
}

static int take_list(const char *key, const json_t *v, const char *items[DECODE_LIST_MAX],
		     const char *const **out, size_t *n, struct ava_error *err)
{
	const json_t *e;
	size_t i;

	if (json_is_null(v))
		return 0;
	if (!json_is_array(v) || json_array_size(v) > DECODE_LIST_MAX)
		return err_set(err, AVA_EINVAL, "%s must be a list of at most %d strings", key,
			       DECODE_LIST_MAX);
	json_array_foreach(v, i, e)
	{
		if (!json_is_string(e))
			return err_set(err, AVA_EINVAL, "%s must be a list of strings", key);
		items[i] = json_string_value(e);
	}
	*out = items;
	*n = json_array_size(v);
	return 0;
}

static int take_object(const char *key, const json_t *v, const json_t **out, struct ava_error *err)
{
	if (!json_is_object(v))
		return err_set(err, AVA_EINVAL, "%s must be an object", key);
	*out = v; /* borrowed from the body */
	return 0;
}

static int take_key(const char *key, const json_t *v, struct spawn_body *b, struct ava_error *err)
{
	struct op_spawn *s = &b->spawn;
	const struct {
		const char *key;
		const char **str;
		int64_t scale, *num;
		bool *flag;
		const json_t **json;
		const char **items; /* of a list, DECODE_LIST_MAX places */
		const char *const **list;
		size_t *n;
	} keys[] = {
		{"task", .str = &s->task},
		{"role", .str = &s->role},
		{"context", .str = &s->context},
		{"model", .str = &s->model},
		{"preset", .str = &s->preset},
		{"on_limit", .str = &s->on_limit},
		{"resume", .str = &s->resume},
		{"from", .str = &s->resume_at, .num = &s->resume_call, .scale = 1},
		{"timeout", .num = &s->timeout_ms, .scale = 1000},
		{"max_cost_cents", .num = &s->max_cost_microusd, .scale = 10000},
		{"max_tokens", .num = &s->max_tokens, .scale = 1},
		{"max_iterations", .num = &s->max_iterations, .scale = 1},
		{"extended_thinking", .flag = &s->extended_thinking},
		{"output_schema", .json = &s->output_schema},
		{"cwd", .str = &s->cwd},
		{"session_id", .str = &s->session_id},
		{"tools", .items = b->tools, .list = &s->tools, .n = &s->ntools},
		{"grants", .items = b->grants, .list = &s->grants, .n = &s->ngrants},
		{"ask_before", .items = b->ask_before, .list = &s->ask_before,
		 .n = &s->nask_before},
		{"request_id", .str = &s->request_id},
		{"origin", .str = &s->origin},
		{"confirmed", .flag = &b->confirmed},
		{"confirm", .str = &s->confirm},
	};
	struct known known = {0};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (strcmp(key, keys[i].key) != 0) {
			known_add(&known, keys[i].key);
			continue;
		}
		if (keys[i].str && (!keys[i].num || json_is_string(v)))
			return take_str(key, v, keys[i].str, err);
		if (keys[i].num)
			return take_num(key, v, keys[i].scale, keys[i].num, err);
		if (keys[i].flag)
			return take_bool(key, v, keys[i].flag, err);
		if (keys[i].json)
			return take_object(key, v, keys[i].json, err);
		return take_list(key, v, keys[i].items, keys[i].list, keys[i].n, err);
	}
	return unknown_key(key, &known, err);
}

int decode_spawn(const json_t *body, struct spawn_body *out, struct ava_error *err)
{
	const char *key;
	const json_t *v;

	*out = (struct spawn_body){0};
	out->spawn.timeout_ms = out->spawn.max_cost_microusd = AVA_DEFAULT;
	out->spawn.max_tokens = out->spawn.max_iterations = AVA_DEFAULT;
	if (!json_is_object(body))
		return err_set(err, AVA_EINVAL, "the body must be a JSON object");
	json_object_foreach((json_t *)body, key, v)
	{
		int rv = take_key(key, v, out, err);

		if (rv != 0)
			return rv;
	}
	return 0;
}

/* ---- POST /groups */

/* What holds for all of them is said once. */
static int alone(const struct spawn_body *b, struct ava_error *err)
{
	const struct op_spawn *s = &b->spawn;

	if (s->session_id || s->request_id || s->origin || s->confirm || b->confirmed)
		return err_set(err, AVA_EINVAL,
			       "session_id, request_id, origin, confirm and confirmed belong to "
			       "the group, not to a run of it");
	if (s->resume)
		return err_set(err, AVA_EINVAL, "an ended run is resumed alone, not in a group");
	return 0;
}

static int take_runs(const json_t *v, struct group_body *b, struct ava_error *err)
{
	size_t n = json_array_size(v), i;
	const json_t *one;

	if (!json_is_array(v) || n < 1 || n > SPEC_GROUP_MAX)
		return err_set(err, AVA_EINVAL, "runs must be a list of 1 to %d objects",
			       SPEC_GROUP_MAX);
	b->bodies = calloc(n, sizeof(*b->bodies));
	b->runs = calloc(n, sizeof(*b->runs));
	if (!b->bodies || !b->runs)
		return err_set(err, AVA_ENOMEM, "out of memory");
	json_array_foreach(v, i, one)
	{
		int rv = decode_spawn(one, &b->bodies[i], err);

		if (rv == 0)
			rv = alone(&b->bodies[i], err);
		if (rv != 0)
			return err_wrap(err, rv, "run %zu", i + 1);
		b->runs[i] = b->bodies[i].spawn;
	}
	b->group.runs = b->runs;
	b->group.nruns = n;
	return 0;
}

static int take_group_key(const char *key, const json_t *v, struct group_body *b,
			  struct ava_error *err)
{
	struct op_group *g = &b->group;
	const struct {
		const char *key;
		const char **str;
		int64_t scale, *num;
		bool *flag;
	} keys[] = {
		{"max_cost_cents", .num = &g->max_cost_microusd, .scale = 10000},
		{"timeout", .num = &g->timeout_ms, .scale = 1000},
		{"chain", .flag = &g->chain},
		{"share", .flag = &g->share},
		{"cwd", .str = &g->cwd},
		{"session_id", .str = &g->session_id},
		{"request_id", .str = &g->request_id},
		{"origin", .str = &g->origin},
		{"confirm", .str = &g->confirm},
		{"confirmed", .flag = &b->confirmed},
	};
	struct known known = {0};

	known_add(&known, "runs");
	if (strcmp(key, "runs") == 0)
		return take_runs(v, b, err);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (strcmp(key, keys[i].key) != 0) {
			known_add(&known, keys[i].key);
			continue;
		}
		if (keys[i].str)
			return take_str(key, v, keys[i].str, err);
		return keys[i].num ? take_num(key, v, keys[i].scale, keys[i].num, err)
				   : take_bool(key, v, keys[i].flag, err);
	}
	return unknown_key(key, &known, err);
}

int decode_group(const json_t *body, struct group_body *out, struct ava_error *err)
{
	const char *key;
	const json_t *v;

	*out = (struct group_body){0};
	out->group.max_cost_microusd = out->group.timeout_ms = AVA_DEFAULT;
	if (!json_is_object(body))
		return err_set(err, AVA_EINVAL, "the body must be a JSON object");
	json_object_foreach((json_t *)body, key, v)
	{
		int rv = take_group_key(key, v, out, err);

		if (rv != 0)
			return rv;
	}
	return out->runs ? 0 : err_set(err, AVA_EINVAL, "runs is missing");
}

/* ---- POST /runs/cancel */

static int take_ids(const json_t *v, struct cancel_body *out, struct ava_error *err)
{
	const json_t *id;
	size_t i;

	if (!json_is_array(v) || json_array_size(v) == 0 || json_array_size(v) > DECODE_IDS_MAX)
		return err_set(err, AVA_EINVAL, "ids must be a list of 1 to %d ids of runs",
			       DECODE_IDS_MAX);
	out->ids = calloc(json_array_size(v), sizeof(*out->ids));
	if (!out->ids)
		return err_set(err, AVA_ENOMEM, "out of memory");
	json_array_foreach(v, i, id)
	{
		if (!json_is_string(id) || json_string_length(id) > DECODE_BY_MAX)
			return err_set(err, AVA_EINVAL, "ids must be a list of ids of runs");
		out->ids[out->n++] = json_string_value(id);
	}
	return 0;
}

int decode_cancel(const json_t *body, struct cancel_body *out, struct ava_error *err)
{
	struct known known = {0};
	bool all = false;
	const char *key;
	const json_t *v;
	int rv = 0;

	*out = (struct cancel_body){0};
	if (body && !json_is_object(body))
		return err_set(err, AVA_EINVAL, "the body must be a JSON object");
	known_add(&known, "all");
	known_add(&known, "ids");
	json_object_foreach((json_t *)body, key, v)
	{
		if (strcmp(key, "all") == 0)
			rv = take_bool(key, v, &all, err);
		else if (strcmp(key, "ids") == 0)
			rv = take_ids(v, out, err);
		else
			rv = unknown_key(key, &known, err);
		if (rv != 0)
			return rv;
	}
	if (all == (out->n > 0))
		return err_set(err, AVA_EINVAL, "say which runs: either ids or \"all\":true");
	return 0;
}

/* ---- POST /proposals/{id}/confirm */

static int take_word(const char *key, const json_t *v, char *out, size_t size,
		     struct ava_error *err)
{
	const char *text = NULL;
	int rv = take_str(key, v, &text, err);

	if (rv != 0 || !text)
		return rv;
	if (strlen(text) >= size)
		return err_set(err, AVA_EINVAL, "%s is over %zu bytes", key, size - 1);
	memcpy(out, text, strlen(text) + 1);
	return 0;
}

static int take_without(const json_t *v, struct change *c, struct ava_error *err)
{
	const char *items[DECODE_LIST_MAX], *const *list = NULL;
	size_t n = 0;
	int rv = take_list("without", v, items, &list, &n, err);

	if (rv == 0 && n > CHANGE_WITHOUT_MAX)
		return err_set(err, AVA_EINVAL, "without must be a list of at most %d tools",
			       CHANGE_WITHOUT_MAX);
	for (size_t i = 0; rv == 0 && i < n; i++) {
		if (!*list[i] || strlen(list[i]) >= sizeof(c->without[0]))
			return err_set(err, AVA_EINVAL, "without has what is no name of a tool");
		memcpy(c->without[c->nwithout++], list[i], strlen(list[i]) + 1);
	}
	return rv;
}

static int take_change(const char *key, const json_t *v, struct change *c, struct ava_error *err)
{
	const struct {
		const char *key;
		char *word;
		size_t size;
		int64_t scale, *num;
	} keys[] = {
		{"role", .word = c->role, .size = sizeof(c->role)},
		{"model", .word = c->model, .size = sizeof(c->model)},
		{"preset", .word = c->preset, .size = sizeof(c->preset)},
		{"timeout", .num = &c->time_ms, .scale = 1000},
		{"max_cost_cents", .num = &c->cost_microusd, .scale = 10000},
		{"max_tokens", .num = &c->tokens, .scale = 1},
		{"max_iterations", .num = &c->iterations, .scale = 1},
	};
	struct known known = {0};
	bool on = false;
	int rv;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (strcmp(key, keys[i].key) != 0) {
			known_add(&known, keys[i].key);
			continue;
		}
		return keys[i].word ? take_word(key, v, keys[i].word, keys[i].size, err)
				    : take_num(key, v, keys[i].scale, keys[i].num, err);
	}
	if (strcmp(key, "without") == 0)
		return take_without(v, c, err);
	if (strcmp(key, "extended_thinking") != 0) {
		known_add(&known, "extended_thinking");
		known_add(&known, "without");
		return unknown_key(key, &known, err);
	}
	rv = take_bool(key, v, &on, err);
	if (rv == 0 && !json_is_null(v))
		c->thinking = on;
	return rv;
}

static int take_changes(const json_t *set, struct change *c, struct ava_error *err)
{
	const char *key;
	const json_t *v;
	int rv = 0;

	if (!json_is_object(set))
		return err_set(err, AVA_EINVAL, "set must be an object of what to change");
	json_object_foreach((json_t *)set, key, v)
	{
		rv = take_change(key, v, c, err);
		if (rv != 0)
			break;
	}
	return rv;
}

int decode_answer(const json_t *body, struct answer_body *out, struct ava_error *err)
{
	const struct decode_string keys[] = {{"answer", DECODE_ANSWER_MAX, &out->answer},
					     {"by", DECODE_BY_MAX, &out->by},
					     {"set", 0, NULL}};
	const char *key;
	const json_t *v;
	int rv = 0;

	*out = (struct answer_body){.set = CHANGE_NONE};
	if (body && !json_is_object(body))
		return err_set(err, AVA_EINVAL, "the body must be a JSON object");
	json_object_foreach((json_t *)body, key, v)
	{
		rv = strcmp(key, "set") == 0 ? take_changes(v, &out->set, err)
					     : take_bounded(key, v, keys, ARRAY_LEN(keys), err);
		if (rv != 0)
			break;
	}
	return rv;
}

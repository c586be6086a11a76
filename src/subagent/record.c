/* The one place that knows the shape of a run's events (doc/events.json).
 *
 * Each function writes a content object, takes the head from the run and adds the event to the
 * draft, which gives it its numbers in the commit. What can fail is memory: the draft remembers
 * that (draft_failed). */
#include "subagent/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/position.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "base/clock.h"
#include "base/words.h"
#include "subagent/proof.h"
#include "subagent/rights.h"
#include "subagent/run.h"
#include "provider/context.h"
#include "subagent/session_entry.h"
#include "subagent/tally.h"

#define CONTENT_MAX (256u << 10)
#define CALLS_SHOWN 4096 /* ids listed in a ContextEdit */

struct rec {
	struct buf b;
	struct jw w;
	struct event_head head;
	struct event_meta meta;
	struct draft *d;
	struct run *r;
};

static void record_begin(struct rec *c, struct draft *d, struct run *r, enum event_kind kind)
{
	*c = (struct rec){.d = d, .r = r, .meta = EVENT_META_NONE};
	buf_init(&c->b, CONTENT_MAX);
	jw_init(&c->w, &c->b);
	jw_object(&c->w, NULL);
	c->head = (struct event_head){
		.kind = kind,
		.agent_id = r->place ? r->place->agent_id : r->id.text,
		.session_id = r->spec->session_id,
		.trace_id = r->trace.text,
		.user_id = r->spec->user_id,
	};
	c->meta.parent_agent_id = r->place ? NULL : "ava";
	if (r->agent.at.iteration > 0)
		c->meta.iteration = r->agent.at.iteration;
}

/* Events of a conversation (`place`) go to the daily log alone. */
static void end_as(struct rec *c, bool day, draft_number_fn number, void *user)
{
	struct draft_where where = {.day = day, .number = number, .number_user = user};

	jw_end(&c->w);
	if (c->r->place) {
		where.day = true;
	} else {
		where.run = c->r->id.text;
		where.log = &c->r->rec.log;
		c->r->rec.types |= event_bit(c->head.kind);
	}
	(void)draft_event(c->d, &where, &c->head, &c->b, &c->meta);
	buf_fini(&c->b);
}

static void end_at(struct rec *c, bool day)
{
	end_as(c, day, NULL, NULL);
}

static void record_end(struct rec *c)
{
	end_at(c, false);
}

/* A preview of text that may hold secrets; left out if it cannot be looked through. */
static void preview(struct rec *c, const char *key, const char *s, size_t len)
{
	struct buf clean;

	buf_init(&clean, 64u << 20);
	if (redact_text(c->d->lb->redact, &clean, s, len) < 0)
		jw_str(&c->w, key, "(left out: too large to look for secrets)");
	else
		jw_preview(&c->w, key, clean.data ? clean.data : "", clean.len,
			   EVENT_PREVIEW_CHARS);
	buf_fini(&clean);
}

void record_spawn(struct draft *d, struct run *r)
{
	const struct run_spec *s = r->spec;
	struct rec c;

	record_begin(&c, d, r, EVENT_SubagentSpawn);
	jw_str(&c.w, "subagentId", r->id.text);
	jw_str(&c.w, "role", s->role->name);
	preview(&c, "task", s->task, strlen(s->task));
	jw_str(&c.w, "model", s->model->id);
	spec_write_limits(&c.w, "limits", &s->agent.limits);
	jw_array(&c.w, "tools");
	for (unsigned i = 0; i < s->agent.ntools; i++)
		jw_str(&c.w, NULL, s->tools[i]->name);
	jw_end(&c.w);
	rights_write(&c.w, "rights", s->rights);
	jw_str(&c.w, "proposalId", r->proposal);
	if (s->resumed_from[0])
		jw_str(&c.w, "resumedFrom", s->resumed_from);
	if (s->resumed_call > 0)
		jw_int(&c.w, "resumedCall", s->resumed_call);
	jw_str(&c.w, "requestedBy", s->user_id[0] ? s->user_id : "assistant");
	jw_str(&c.w, "origin", s->origin);
	jw_str(&c.w, "cwd", s->cwd);
	jw_str(&c.w, "configHash", s->hash);
	if (s->group.id[0]) {
		jw_str(&c.w, "groupId", s->group.id);
		jw_int(&c.w, "groupIndex", s->group.index);
		if (s->group.name[0])
			jw_str(&c.w, "groupName", s->group.name);
		spec_after_write(&c.w, &s->group.after);
	}
	if (s->tags[0])
		jw_str(&c.w, "tags", s->tags);
	if (s->order.id[0])
		jw_str(&c.w, "order", s->order.id);
	c.meta.model_id = s->model->id;
	end_at(&c, true);
	record_limits(d, r);
}

void record_limits(struct draft *d, struct run *r)
{
	struct rec c;

	record_begin(&c, d, r, EVENT_Limit);
	spec_write_limits(&c.w, "budget", &r->spec->agent.limits);
	record_end(&c);
}

/* The run's used time: wall clocks jump, and a restart must not give a run its time again. */
static void write_clock(struct rec *c)
{
	const struct agent *a = &c->r->agent;

	jw_int(&c->w, "clockMs", agent_used_ms(a, a->io->now(&c->r->agent)));
}

void record_infer_start(struct draft *d, struct run *r, const struct agent_infer *call,
			const char *prefix_hash, const char *request_hash)
{
	static const char *const words[] = {"limit_time",       "limit_cost", "limit_tokens",
					    "limit_iterations", "odd_reply",  "nudge",
					    "force_submit",     "steering"};
	unsigned told = r->rec.notices | (call->force_submit ? RECORD_FORCED : 0u);
	struct rec c;

	record_begin(&c, d, r, EVENT_InferStart);
	jw_str(&c.w, "callId", r->call.id);
	jw_str(&c.w, "model", r->spec->model->id);
	preview(&c, "promptPreview", r->spec->task, strlen(r->spec->task));
	jw_int(&c.w, "maxOutput", call->max_output);
	jw_array(&c.w, "notices");
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (told & (1u << i))
			jw_str(&c.w, NULL, words[i]);
	jw_end(&c.w);
	jw_str(&c.w, "prefixHash", prefix_hash);
	jw_str(&c.w, "requestHash", request_hash);
	write_clock(&c);
	c.meta.iteration = call->iteration;
	c.meta.model_id = r->spec->model->id;
	record_end(&c);
}

static void write_tokens(struct jw *w, const struct usage *u)
{
	jw_object(w, "tokens");
	jw_int(w, "input", u->input);
	jw_int(w, "output", u->output);
	jw_int(w, "cacheRead", u->cache_read);
	jw_int(w, "cacheWrite", u->cache_write);
	jw_int(w, "reasoning", u->reasoning);
	jw_end(w);
}

/* `u` is settled: its cost is the provider's figure, or computed from the price. */
static void record_cost(struct draft *d, struct run *r, const struct usage *u)
{
	int64_t cost = u->cost_microusd;
	struct rec c;

	record_begin(&c, d, r, EVENT_CostUpdate);
	jw_int(&c.w, "tokens", u->input + u->output);
	if (cost < 0)
		jw_null(&c.w, "costCents");
	else
		jw_fixed(&c.w, "costCents", cost, 4);
	if (r->group) {
		jw_str(&c.w, "groupId", r->group->id);
		jw_fixed(&c.w, "groupCostCents", r->group->money.spent, 4);
	}
	if (u->estimated)
		jw_bool(&c.w, "estimated", true);
	c.meta.input_tokens = u->input;
	c.meta.output_tokens = u->output;
	c.meta.cost_microusd = cost;
	record_end(&c);
}

static const char *const stop_words[] = {
	[TURN_STOP_END] = "end_turn",      [TURN_STOP_TOOLS] = "tool_use",
	[TURN_STOP_LENGTH] = "max_tokens", [TURN_STOP_REFUSAL] = "refusal",
	[TURN_STOP_OTHER] = "other",       [TURN_STOP_PAUSE] = "pause_turn",
	[TURN_STOP_REPEATED] = "repeated",
};

enum turn_stop record_stop(const char *word)
{
	for (unsigned i = 0; word && i < ARRAY_LEN(stop_words); i++)
		if (strcmp(stop_words[i], word) == 0)
			return (enum turn_stop)i;
	return TURN_STOP_OTHER;
}

void record_usage(const json_t *content, const json_t *meta, struct usage *u)
{
	const json_t *tokens = json_object_get(content, "tokens");

	*u = (struct usage){
		.input = json_get_int(tokens, "input", 0),
		.output = json_get_int(tokens, "output", 0),
		.cache_read = json_get_int(tokens, "cacheRead", 0),
		.cache_write = json_get_int(tokens, "cacheWrite", 0),
		.reasoning = json_get_int(tokens, "reasoning", 0),
		.cost_microusd = json_get_fixed(meta, "costCents", 4, -1),
		.estimated = json_get_bool(content, "estimated", false),
		.window = json_get_int(content, "window", 0),
	};
}

/* Counts the call as well. */
static void infer_meta(struct rec *c, const struct usage *u)
{
	int64_t ms = -1;

	c->meta.input_tokens = u->input;
	c->meta.output_tokens = u->output;
	c->meta.cost_microusd = u->cost_microusd;
	c->meta.model_id = c->r->spec->model->id;
	if (c->r->call.started_ms) /* 0: the call was made by an earlier process */
		c->meta.duration_ms = ms =
			c->r->agent.io->now(&c->r->agent) - c->r->call.started_ms;
	tally_call(c->r->sup->tally, c->r->spec->model->id, u, ms);
}

void record_infer_end(struct draft *d, struct run *r, const struct turn *t)
{
	struct rec c;

	record_begin(&c, d, r, EVENT_InferEnd);
	jw_str(&c.w, "callId", r->call.id);
	preview(&c, "responsePreview", t->text, t->text_len);
	write_tokens(&c.w, &t->usage);
	jw_str(&c.w, "stopReason", stop_words[t->stop]);
	preview(&c, "requestId", t->request_id ? t->request_id : "",
		t->request_id ? strlen(t->request_id) : 0);
	if (t->served && t->served[0] && strcmp(t->served, r->spec->model->wire_name) != 0)
		preview(&c, "served", t->served, strlen(t->served));
	if (t->usage.estimated)
		jw_bool(&c.w, "estimated", true);
	if (t->usage.window > 0)
		jw_int(&c.w, "window", t->usage.window);
	write_clock(&c);
	infer_meta(&c, &t->usage);
	record_end(&c);
	record_cost(d, r, &t->usage);
	r->call.id[0] = 0;
}

bool record_told(const json_t *content, struct agent_told *t)
{
	const json_t *told = json_object_get(content, "told");

	*t = (struct agent_told){
		.window = json_get_int(told, "window", 0),
		.prompt = json_get_int(told, "prompt", 0),
		.output_max = json_get_int(told, "outputMax", 0),
		.asked = json_get_int(told, "asked", 0),
		.cap = json_get_bool(told, "cap", false),
	};
	return told != NULL;
}

void record_infer_failed(struct draft *d, struct run *r, const struct record_failure *f)
{
	const struct usage *estimate = f->usage;
	struct rec c;

	record_begin(&c, d, r, EVENT_InferEnd);
	jw_str(&c.w, "callId", r->call.id);
	jw_str(&c.w, "responsePreview", "");
	write_tokens(&c.w, estimate);
	jw_str(&c.w, "stopReason", "error");
	preview(&c, "requestId", f->request_id ? f->request_id : "",
		f->request_id ? strlen(f->request_id) : 0);
	jw_bool(&c.w, "estimated", true);
	preview(&c, "error", f->sentence, strlen(f->sentence));
	jw_str(&c.w, "errorClass", f->error_class);
	if (f->retry_ms >= 0)
		jw_int(&c.w, "retryInMs", f->retry_ms);
	if (f->told) {
		jw_object(&c.w, "told");
		jw_int(&c.w, "window", f->told->window);
		jw_int(&c.w, "prompt", f->told->prompt);
		jw_int(&c.w, "outputMax", f->told->output_max);
		jw_int(&c.w, "asked", f->told->asked);
		jw_bool(&c.w, "cap", f->told->cap);
		jw_end(&c.w);
	}
	write_clock(&c);
	infer_meta(&c, estimate);
	tally_add(r->sup->tally, TALLY_ERRORS, f->error_class, r->spec->model->id, 0);
	record_end(&c);
	if (estimate->input + estimate->output > 0)
		record_cost(d, r, estimate);
	r->call.id[0] = 0;
}

void record_thinking(struct draft *d, struct run *r, const struct turn *t)
{
	struct rec c;

	if (t->thinking_len == 0)
		return;
	record_begin(&c, d, r, EVENT_ExtendedThinking);
	preview(&c, "thinking", t->thinking, t->thinking_len);
	record_end(&c);
}

void record_tool_call(struct draft *d, struct run *r, const struct turn_call *call)
{
	struct buf clean;
	struct rec c;
	const char *args = call->args ? call->args : "";
	size_t len = call->args ? call->args_len : 0;

	record_begin(&c, d, r, EVENT_ToolCall);
	buf_init(&clean, 2u << 20);
	if (d->lb->redact) {
		bool failed = redact_json(d->lb->redact, &clean, args, len) < 0;

		args = failed ? "{}" : clean.data ? clean.data : "";
		len = failed ? 2 : clean.len;
	}
	jw_str(&c.w, "callId", call->id);
	preview(&c, "name", call->name, strlen(call->name)); /* the model wrote the name */
	if (call->args && len > 0 && len <= EVENT_PREVIEW_CHARS)
		jw_raw(&c.w, "args", args, len);
	else
		jw_preview(&c.w, "args", args, len, EVENT_PREVIEW_CHARS);
	record_end(&c);
	buf_fini(&clean);
	/* A restart sets the same from this event. */
	r->tools.last_wall_ms = clock_wall_ms();
	snprintf(r->tools.last, sizeof(r->tools.last), "%s", call->name);
}

void record_tool_result(struct draft *d, struct run *r, const struct turn_call *call)
{
	struct rec c;

	record_begin(&c, d, r, EVENT_ToolResult);
	jw_str(&c.w, "callId", call->id);
	preview(&c, "name", call->name, strlen(call->name));
	jw_bool(&c.w, "success", call->success);
	preview(&c, "output", call->output ? call->output : "",
		call->output ? call->output_len : 0);
	jw_int(&c.w, "bytes", MAX(call->full_bytes, (int64_t)call->output_len));
	jw_str(&c.w, "errorClass", call->error_class ? call->error_class : "");
	jw_str(&c.w, "artifact", call->artifact ? call->artifact : "");
	if (call->ran)
		jw_bool(&c.w, "ran", true);
	write_clock(&c);
	if (call->started && call->ended_ms >= call->started_ms)
		c.meta.duration_ms = call->ended_ms - call->started_ms;
	/* The model may write any name: only those of tools have a row. */
	tally_add(r->sup->tally, TALLY_TOOLS, call->tool ? call->tool->name : "unknown", NULL,
		  call->success);
	record_end(&c);
}

static void write_by(struct jw *w, const char *by, const char *origin)
{
	jw_str(w, "by", by);
	if (origin[0])
		jw_str(w, "origin", origin);
}

void record_steering(struct draft *d, struct run *r, const struct record_steering *s)
{
	struct rec c;

	record_begin(&c, d, r, EVENT_Steering);
	jw_preview(&c.w, "text", s->text, strlen(s->text), EVENT_PREVIEW_CHARS);
	jw_str(&c.w, "outcome", s->outcome);
	if (s->steer_id[0])
		jw_str(&c.w, "steerId", s->steer_id);
	if (s->call_id[0])
		jw_str(&c.w, "callId", s->call_id);
	write_by(&c.w, s->by, s->origin);
	if (s->request_id && s->request_id[0])
		jw_str(&c.w, "requestId", s->request_id);
	record_end(&c);
}

void record_check(struct draft *d, struct run *r, const struct proof *p)
{
	struct rec c;

	record_begin(&c, d, r, EVENT_Check);
	jw_str(&c.w, "state", p ? "ended" : "begun");
	jw_str(&c.w, "command", r->spec->agent.check);
	jw_int(&c.w, "round", r->agent.at.checks + 1);
	if (p)
		proof_write_outcome(&c.w, p, p->text);
	write_clock(&c);
	if (p)
		c.meta.duration_ms = p->ms;
	record_end(&c);
}

void record_checkpoint(struct draft *d, struct run *r, const struct record_checkpoint *k)
{
	char call[16];
	struct rec c;

	snprintf(call, sizeof(call), "i%d", k->call);
	record_begin(&c, d, r, EVENT_Checkpoint);
	jw_str(&c.w, "name", k->name);
	jw_int(&c.w, "lsn", (int64_t)k->lsn);
	jw_int(&c.w, "messages", k->messages);
	jw_str(&c.w, "hash", k->hash);
	jw_str(&c.w, "callId", call);
	write_by(&c.w, k->by, k->origin);
	record_end(&c);
}

const char *question_kind(const struct question *q)
{
	return q->quota ? "quota" : q->approval ? "approval" : "question";
}

void record_waiting(struct draft *d, struct run *r, const struct record_waiting *w)
{
	const struct question *q = w->q;
	char until[CLOCK_ISO_LEN + 1];
	struct rec c;

	record_begin(&c, d, r, EVENT_Waiting);
	jw_str(&c.w, "subagentId", r->id.text);
	jw_str(&c.w, "role", r->spec->role->name);
	jw_str(&c.w, "callId", q->call_id);
	jw_str(&c.w, "state", w->state);
	jw_str(&c.w, "kind", question_kind(q));
	jw_str(&c.w, "callHash", q->call_hash);
	jw_str(&c.w, "question", q->text);
	if (q->choices)
		jw_raw(&c.w, "choices", q->choices, strlen(q->choices));
	if (q->fallback)
		jw_str(&c.w, "default", q->fallback);
	clock_iso(q->until_ms, until);
	jw_str(&c.w, "expiresAt", until);
	if (q->quota) {
		jw_str(&c.w, "limit", r->park.limit);
		clock_iso(r->park.until_ms, until);
		jw_str(&c.w, "parkedUntil", until);
	}
	if (w->answer)
		jw_str(&c.w, "answer", w->answer);
	if (w->by)
		write_by(&c.w, w->by, w->origin);
	end_at(&c, true);
}

void record_pause(struct draft *d, struct run *r, const char *state, const char *by,
		  const char *origin)
{
	char until[CLOCK_ISO_LEN + 1], words[64];
	struct rec c;

	record_begin(&c, d, r, EVENT_Waiting);
	jw_str(&c.w, "subagentId", r->id.text);
	jw_str(&c.w, "role", r->spec->role->name);
	jw_str(&c.w, "callId", "pause");
	jw_str(&c.w, "state", state);
	jw_str(&c.w, "kind", "pause");
	if (r->pause.until_ms < PAUSE_NO_END) {
		clock_iso(r->pause.until_ms, until);
		jw_str(&c.w, "parkedUntil", until);
	}
	pause_words(r, words, sizeof(words));
	jw_str(&c.w, "question", words);
	if (by)
		write_by(&c.w, by, origin ? origin : "");
	end_at(&c, true);
}

static void record_write_calls(struct jw *w, const char *key, const struct call_ref *calls,
			       size_t n)
{
	char id[32];

	jw_array(w, key);
	for (size_t i = 0; i < n && i < CALLS_SHOWN; i++) {
		snprintf(id, sizeof(id), "c%d.%u", (int)calls[i].iteration, calls[i].n);
		jw_str(w, NULL, id);
	}
	jw_end(w);
}

void record_context_edit(struct draft *d, struct run *r, const struct agent_compact *want,
			 const struct context_edit *e)
{
	struct rec c;

	record_begin(&c, d, r, EVENT_ContextEdit);
	jw_str(&c.w, "cause", want->overflow ? "overflow" : "scheduled");
	jw_int(&c.w, "tokensBefore", want->tokens);
	jw_int(&c.w, "tokensAfter",
	       (int64_t)((double)want->tokens * (double)e->bytes.bytes_after /
			 (double)e->bytes.bytes_before));
	record_write_calls(&c.w, "removed", e->removed, e->nremoved);
	jw_int(&c.w, "summaryLines", e->summary_lines);
	record_write_calls(&c.w, "refetched", e->fetched, e->nfetched);
	record_end(&c);
}

void record_activity(struct draft *d, struct run *r, const char *text)
{
	struct rec c;

	record_begin(&c, d, r, EVENT_Activity);
	preview(&c, "text", text, strlen(text));
	record_end(&c);
}

void record_warned(struct draft *d, struct run *r, unsigned warned)
{
	struct rec c;

	if (r->place)
		return;
	record_begin(&c, d, r, EVENT_Limit);
	spec_write_limits(&c.w, "budget", &r->spec->agent.limits);
	jw_array(&c.w, "warned");
	for (unsigned i = 0; i < AGENT_NRESOURCES; i++)
		if (warned & (1u << i))
			jw_str(&c.w, NULL, agent_resource_names[i]);
	jw_end(&c.w);
	record_end(&c);
}

void record_shared(struct draft *d, struct run *r, const struct agent_shared *s)
{
	struct rec c;

	record_begin(&c, d, r, EVENT_Limit);
	spec_write_limits(&c.w, "budget", &r->spec->agent.limits);
	jw_array(&c.w, "shared");
	for (unsigned i = 0; i < AGENT_NSHARES; i++) {
		if (!(s->near & (1u << i)))
			continue;
		jw_object(&c.w, NULL);
		jw_str(&c.w, "limit", agent_share_names[i]);
		jw_fixed(&c.w, "used", s->of[i].used, i == SHARE_GROUP_TIME ? 3 : 4);
		jw_fixed(&c.w, "of", s->of[i].limit, i == SHARE_GROUP_TIME ? 3 : 4);
		if (s->of[i].whose) {
			jw_str(&c.w, "whose", s->of[i].whose);
			jw_str(&c.w, "period", s->of[i].period);
		}
		jw_end(&c.w);
	}
	jw_end(&c.w);
	if (s->last)
		jw_bool(&c.w, "last", true);
	record_end(&c);
}

void record_exhausted(struct draft *d, struct run *r, const char *resource)
{
	struct rec c;

	record_begin(&c, d, r, EVENT_Exhausted);
	jw_str(&c.w, "resource", resource);
	record_end(&c);
}

void record_error(struct draft *d, struct run *r, const char *error_class, const char *message)
{
	struct rec c;

	record_begin(&c, d, r, EVENT_Error);
	jw_str(&c.w, "class", error_class);
	preview(&c, "message", message, strlen(message));
	record_end(&c);
}

static void fill_row(struct catalog_row *row, struct run *r)
{
	const struct run_spec *s = r->spec;

	*row = (struct catalog_row){0};
	row->id = r->id.text;
	row->trace_id = r->trace.text;
	row->session_id = s->session_id;
	row->user_id = s->user_id;
	row->role = s->role->name;
	row->model = s->model->id;
	row->request_id = s->request_id;
	row->origin = s->origin;
	row->group_id = s->group.id;
	row->group_index = s->group.id[0] ? s->group.index : 0;
	row->tags = s->tags;
	row->order = s->order.id;
	row->started_ms = r->spawned_wall_ms;
	row->types = r->rec.types;
}

void record_catalog_spawn(struct draft *d, struct run *r)
{
	struct catalog_row row;

	fill_row(&row, r);
	row.kind = CATALOG_SPAWN;
	row.cwd = r->spec->cwd;
	row.status = AVA_STARTING;
	row.ended_ms = -1;
	draft_catalog(d, &row, &r->rec.log);
}

static void record_catalog_end(struct draft *d, struct run *r, enum ava_status status,
			       const char *stop_reason)
{
	const struct agent_limits *l = &r->spec->agent.limits;
	const struct agent_totals *t = &r->agent.at.totals;
	const char *task = r->spec->task;
	char begin[CATALOG_TASK_MAX + 1];
	size_t len = strnlen(task, CATALOG_TASK_MAX), n = len;
	struct catalog_row row;

	fill_row(&row, r);
	row.kind = CATALOG_END;
	row.spawn_lsn = r->rec.log.row;
	row.status = status;
	row.ended_ms = r->end.wall_ms;
	row.totals.input_tokens = t->input;
	row.totals.output_tokens = t->output;
	row.totals.cost_microusd = t->cost_microusd;
	row.totals.duration_ms = run_elapsed_ms(r);
	row.totals.calls = t->calls;
	row.totals.uncosted_calls = t->uncosted_calls;
	row.totals.estimated_calls = run_estimated(r);
	row.totals.failed_calls = t->failed_calls;
	while (len == CATALOG_TASK_MAX && n > 0 && ((unsigned char)task[n] & 0xc0) == 0x80)
		n--; /* do not cut inside a character */
	snprintf(begin, sizeof(begin), "%.*s", (int)n, task);
	row.shown = (struct catalog_shown){
		.task = begin,
		.cwd = r->spec->cwd,
		.stop_reason = stop_reason,
		.iterations = r->agent.at.iteration,
		.limit_ms = l->time_ms,
		.limit_microusd = l->cost_microusd,
		.limit_tokens = l->tokens,
		.limit_iterations = l->iterations,
	};
	draft_catalog(d, &row, &r->rec.log);
}

/* The head of all lines before this one. */
static void complete_number(char *rest, size_t len, void *user)
{
	const struct run *r = user;

	run_log_hex(&r->rec.log, (char *)memmem(rest, len, ",\"head\":\"", 9) + 9);
}

/* The end as a person reads it at once; result.json has it whole. */
static void complete_told(struct rec *c, const struct run *r, const struct record_end *e)
{
	const struct words_limit *l = words_limit(ava_status_name(e->status));
	const struct agent_limits *own = &r->spec->agent.limits;
	const int64_t limits[] = {[WORDS_LIMIT_TIME] = own->time_ms,
				  [WORDS_LIMIT_MONEY] = own->cost_microusd,
				  [WORDS_LIMIT_TOKENS] = own->tokens,
				  [WORDS_LIMIT_REPLIES] = own->iterations};

	if (l)
		jw_fixed(&c->w, "limit", limits[l->kind], l->decimals);
	if (l && e->needs > 0)
		jw_fixed(&c->w, "needs", e->needs, l->decimals);
	if ((l || e->status == AVA_UNPROVEN) && e->error)
		preview(c, "error", e->error, strlen(e->error));
	if (e->status == AVA_ERROR && e->error_class)
		jw_str(&c->w, "errorClass", e->error_class);
	if (e->files > 0)
		jw_int(&c->w, "files", (int64_t)e->files);
	if (e->files > 0 && r->spec->resumed_from[0]) /* whose changes are among them */
		jw_str(&c->w, "resumedFrom", r->spec->resumed_from);
	if (e->not_found > 0) {
		jw_int(&c->w, "citations", e->citations);
		jw_int(&c->w, "notFound", e->not_found);
	}
	proof_result(&c->w, r->spec->agent.check, r->proof, e->status == AVA_SUCCESS, NULL);
}

void record_complete(struct draft *d, struct run *r, const struct record_end *e)
{
	char path[LOGBOOK_PATH], head[HASH_HEX_LEN + 1];
	struct rec c;
	const struct agent_totals *t = &r->agent.at.totals;

	memset(head, '0', HASH_HEX_LEN);
	head[HASH_HEX_LEN] = 0;
	logbook_result_path(r->id.text, path);
	record_begin(&c, d, r, EVENT_SubagentComplete);
	jw_str(&c.w, "subagentId", r->id.text);
	jw_str(&c.w, "role", r->spec->role->name);
	jw_str(&c.w, "status", ava_status_name(e->status));
	jw_str(&c.w, "stopReason", e->stop_reason);
	if (e->status == AVA_CANCELLED && r->end.by)
		write_by(&c.w, r->end.by, r->end.origin);
	preview(&c, "summary", e->summary, strlen(e->summary));
	jw_object(&c.w, "totals");
	jw_int(&c.w, "inputTokens", t->input);
	jw_int(&c.w, "outputTokens", t->output);
	jw_int(&c.w, "tokens", t->input + t->output);
	if (run_cost(r) < 0)
		jw_null(&c.w, "costCents");
	else
		jw_fixed(&c.w, "costCents", run_cost(r), 4);
	jw_int(&c.w, "durationMs", run_elapsed_ms(r));
	jw_int(&c.w, "calls", t->calls);
	jw_int(&c.w, "uncostedCalls", t->uncosted_calls);
	if (run_estimated(r) > 0)
		jw_int(&c.w, "estimatedCalls", run_estimated(r));
	jw_int(&c.w, "failedCalls", t->failed_calls);
	jw_int(&c.w, "iterations", r->agent.at.iteration);
	jw_int(&c.w, "toolCalls", t->tool_calls);
	jw_end(&c.w);
	jw_str(&c.w, "resultPath", path);
	if (e->result_hash[0])
		jw_str(&c.w, "resultHash", e->result_hash);
	complete_told(&c, r, e);
	jw_str(&c.w, "head", head);
	c.meta.cost_microusd = run_cost(r);
	c.meta.input_tokens = t->input;
	c.meta.output_tokens = t->output;
	c.meta.duration_ms = run_elapsed_ms(r);
	c.meta.model_id = r->spec->model->id;
	end_as(&c, true, complete_number, r);
	tally_add(r->sup->tally, TALLY_ENDS, r->spec->role->name, r->spec->model->id, e->status);
	record_catalog_end(d, r, e->status, e->stop_reason);
}

static void write_retry(struct jw *w, const struct retry *t)
{
	if (t->failures == 0)
		return;
	jw_object(w, "retry");
	jw_int(w, "failures", t->failures);
	jw_int(w, "broken", t->broken);
	jw_int(w, "failingMs", t->since_ms > 0 ? clock_mono_ms() - t->since_ms : 0);
	jw_int(w, "lastMs", t->last_ms);
	jw_end(w);
}

/* Write what the run has beside its machine: of its calls and files those that came since the last
 * position, of a whole one all. */
static void write_position_run(struct jw *w, struct run *r)
{
	struct run_tools *t = &r->tools;
	size_t at;

	if (r->rec.deltas == 0) {
		t->calls_placed = r->agent.at.turn_from;
		t->artifacts_placed = 0;
	}
	jw_object(w, "run");
	jw_str(w, "call", r->call.id);
	jw_int(w, "attempts", r->call.attempts);
	jw_int(w, "notices", r->rec.notices);
	write_retry(w, &r->call.retry);
	if (r->call.first_model)
		jw_str(w, "firstModel", r->call.first_model);
	if (r->call.fallbacks > 0)
		jw_int(w, "fallbacks", r->call.fallbacks);
	if (run_estimated(r) > 0)
		jw_int(w, "estimatedCalls", run_estimated(r));
	if (r->group && r->group->time_ms > 0)
		jw_int(w, "groupMs", group_used_ms(r->group));
	/* Totals that result.json will tell. */
	jw_int(w, "startedMs", r->started_wall_ms);
	if (t->last[0]) {
		jw_str(w, "lastTool", t->last);
		jw_int(w, "lastToolMs", t->last_wall_ms);
	}
	if (t->bytes_read > 0)
		jw_int(w, "bytesRead", t->bytes_read);
	jw_array(w, "toolCounts");
	for (unsigned i = 0; i < r->spec->agent.ntools; i++)
		jw_int(w, NULL, t->counts[i]);
	jw_end(w);
	jw_array(w, "callsOf"); /* by iteration; 0: results of a resumed run */
	for (int32_t i = t->calls_placed; i < t->calls_at; i++)
		jw_int(w, NULL, t->calls_before[i + 1] - t->calls_before[i]);
	jw_end(w);
	t->calls_placed = t->calls_at;
	if (r->place) { /* without its files: a conversation has no end, the list would only grow */
		jw_int(w, "after", (int64_t)logbook_shown(r->rec.outbox.lb));
		jw_str(w, "model", r->spec->model->id);
		if (r->agent.ending)
			jw_bool(w, "ended", true);
	} else if (t->artifacts.len > t->artifacts_placed) {
		at = t->artifacts_placed + (t->artifacts_placed > 0); /* behind the comma */
		jw_array(w, "artifacts");
		jw_raw(w, NULL, t->artifacts.data + at, t->artifacts.len - at);
		jw_end(w);
		t->artifacts_placed = t->artifacts.len;
	}
	jw_end(w);
}

/* Positions behind a whole one may have so many times the bytes that it has beyond POSITION_SMALL.
 * So what a turn writes does not grow with the run, and a restart reads little. */
#define POSITION_TIMES 4
#define POSITION_SMALL 1024

/* Writes the members of a position (doc/JOURNAL.md): all, or what changed since the last one. */
static void record_position_value(struct jw *w, struct run *r)
{
	struct agent *a = &r->agent;
	int64_t from = (int64_t)w->out->len, len;
	struct agent_position p;

	r->rec.deltas = r->rec.spare_bytes > 0 ? r->rec.deltas + 1 : 0;
	agent_position_of(a, clock_mono_ms(), &p);
	p.delta = r->rec.deltas;
	if (a->asked && !r->call.id[0]) { /* the call waits, or failed: a restart makes it again */
		p.again = true;
		if (r->call.has_failed && r->call.has_failed(r))
			p.totals.failed_calls++;
		else
			p.totals.calls--;
	}
	agent_position_write(&p, a->reply_error, r->rec.outbox.lb->redact, w);
	a->at.said_due = false;
	write_position_run(w, r);
	len = (int64_t)w->out->len - from;
	if (!r->place) /* those of a conversation are whole: they have the calls of a turn alone */
		r->rec.spare_bytes = p.delta > 0 ? r->rec.spare_bytes - len
						 : POSITION_TIMES * (len - POSITION_SMALL);
}

void record_position(struct draft *d, struct run *r)
{
	struct buf *line = r->place ? draft_part(d, DRAFT_MESSAGES, r->place->messages) : NULL;
	struct jw w;
	struct rec c;

	if (r->place && line) {
		spec_line_begin(&w, line, "mark");
		jw_object(&w, "position");
		record_position_value(&w, r);
		jw_end(&w);
		spec_line_end(&w);
	} else if (!r->place) {
		record_begin(&c, d, r, EVENT_StateWrite);
		jw_str(&c.w, "key", "position");
		jw_object(&c.w, "value");
		record_position_value(&c.w, r);
		jw_end(&c.w);
		record_end(&c);
	}
}

void record_state_read(struct draft *d, struct run *r, const char *key)
{
	struct rec c;

	record_begin(&c, d, r, EVENT_StateRead);
	jw_str(&c.w, "key", key);
	record_end(&c);
}

void record_carried(struct draft *d, struct run *r)
{
	struct rec c;

	record_state_read(d, r, "position");
	record_begin(&c, d, r, EVENT_Custom);
	jw_str(&c.w, "customType", "carried_on");
	jw_object(&c.w, "data");
	jw_int(&c.w, "clockMs", r->agent.at.used_ms);
	jw_end(&c.w);
	record_end(&c);
}

/* Written with the run's next event, not at the start: ten thousand runs that wait for a slot
 * write nothing and hold no draft. */
void record_restored(struct draft *d, struct run *r)
{
	struct usage u = r->call.cut;
	struct record_failure f = {
		.error_class = "interrupted",
		.sentence = "the runtime stopped while the model was asked",
		.usage = &u,
		.retry_ms = 0,
	};

	r->rec.unnoted = false;
	record_carried(d, r);
	if (r->call.id[0])
		record_infer_failed(d, r, &f);
}

void record_sandbox(struct draft *d, struct run *r, const char *layers)
{
	struct rec c;

	record_begin(&c, d, r, EVENT_Custom);
	jw_str(&c.w, "customType", "sandbox");
	jw_raw(&c.w, "data", layers, strlen(layers));
	record_end(&c);
}

/* ---- the session file */

static void session_event(struct draft *d, struct run *r, struct session_agent_event *a)
{
	const struct run_spec *s = r->spec;
	char id[SESSION_ENTRY_ID];
	struct session_entry e = {.id = id, .wall_ms = clock_wall_ms()};
	struct buf b;

	if (!r->session_file)
		return;
	draft_entry_id(d, id);
	a->run = r->id.text;
	a->requested_by = s->user_id[0] ? s->user_id : "assistant";
	a->role = s->role->name;
	a->model = s->model->id;
	a->mode = !s->group.id[0] ? "single" : s->group.chain ? "chain" : "parallel";
	a->started_ms = r->spawned_wall_ms;
	buf_init(&b, CONTENT_MAX);
	session_agent_event(&b, &e, a);
	draft_entry(d, r->session_file, id, &b);
	buf_fini(&b);
}

void record_session_start(struct draft *d, struct run *r)
{
	struct session_agent_event a = {0};

	session_event(d, r, &a);
}

void record_session_end(struct draft *d, struct run *r, enum ava_status status, const char *summary)
{
	const struct agent_totals *t = &r->agent.at.totals;
	char path[LOGBOOK_PATH];
	struct session_agent_event a = {
		.completed_ms = r->end.wall_ms,
		.duration_ms = run_elapsed_ms(r),
		.input = t->input,
		.output = t->output,
		.cache_read = t->cache_read,
		.cache_write = t->cache_write,
		.cost_microusd = run_cost(r),
		.status = status,
		.result = path,
	};
	struct buf clean;

	logbook_result_path(r->id.text, path);
	buf_init(&clean, CONTENT_MAX);
	a.summary = redact_text(d->lb->redact, &clean, summary, strlen(summary)) >= 0 && clean.data
			    ? clean.data
			    : "";
	session_event(d, r, &a);
	buf_fini(&clean);
}

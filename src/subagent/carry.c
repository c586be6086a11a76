/* A run's log is gone through once, event by event; its messages are looked at
 * where the log says that a reply has no results line yet. Then the record is in
 * one of four places:
 *
 *   no InferStart               it is queued, as it was
 *   InferStart, no InferEnd     the call was cut: charged its estimate, made again
 *   a failed InferEnd           the next attempt is made when its wait is over
 *   a reply, nothing after it   what follows is decided again (agent_resume_reply):
 *                               recorded results stay, the other calls are
 *                               interrupted, or repeated where that does no harm
 *
 * Nothing is asked of a model or a tool here. What can fail: memory, and a record
 * that does not fit together. */
#include "subagent/carry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/turn_trim.h"
#include "base/clock.h"
#include "base/error.h"
#include "codec/json.h"
#include "codec/jsonl.h"
#include "subagent/record.h"
#include "subagent/run_checkpoint.h"
#include "subagent/supervisor.h"
#include "subagent/world.h"

#define FILE_MAX   (256u << 20)
#define OUTPUT_MAX (1u << 20)

struct carry *carry_new(struct run *r)
{
	struct carry *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->run = r;
	c->failing_from_ms = -1;
	for (unsigned i = 0; i < TURN_MAX_CALLS; i++)
		buf_init(&c->calls[i].output, OUTPUT_MAX);
	return c;
}

void carry_free(struct carry *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < TURN_MAX_CALLS; i++)
		buf_fini(&c->calls[i].output);
	repeat_free(c->past.repeats);
	free(c);
}

/* ---- pieces of state that no other event says (record_piece) */

static int take_told(struct carry *c, const json_t *value)
{
	const char *what = json_string_value(value);

	c->told = true;
	c->replied = false;
	if (what && strcmp(what, "odd_reply") == 0) {
		c->past.odd_replies++;
		c->run->notices |= RECORD_ODD_REPLY;
	} else if (what && strcmp(what, "nudge") == 0) {
		c->past.odd_replies = 0;
		c->past.nudged = true;
		c->past.force_submit = c->run->spec->agent.can_force;
		c->run->notices |= RECORD_NUDGE;
	} else if (what && strcmp(what, "misfit") == 0) {
		c->past.odd_replies = 0;
		c->past.repairs++;
		c->past.force_submit = c->run->spec->agent.can_force;
		c->run->notices |= RECORD_NUDGE;
	} else if (what && strcmp(what, "steered") == 0) {
		c->past.odd_replies = 0;
	}
	return 0;
}

/* Of the run that this one goes on from (resume.c). */
static int take_results_before(struct carry *c, const json_t *value)
{
	json_int_t n = json_integer_value(value);

	return n > 0 && n < UINT32_MAX ? toolrun_count(c->run, (unsigned)n) : 0;
}

static const struct {
	const char *key;
	int (*take)(struct carry *c, const json_t *value); /* 0, AVA_ENOMEM */
} pieces[] = {
	{"told", take_told},
	{"last", carry_last},
	{"room", carry_room},
	{"results_before", take_results_before},
};

static int take_state(struct carry *c, const json_t *content)
{
	const char *key = json_get_str(content, "key");

	for (size_t i = 0; key && i < ARRAY_LEN(pieces); i++)
		if (strcmp(pieces[i].key, key) == 0)
			return pieces[i].take(c, json_object_get(content, "value"));
	return 0;
}

/* ---- model calls */

static bool has_word(const json_t *list, const char *word)
{
	const json_t *v;
	size_t i;

	json_array_foreach(list, i, v)
	{
		if (json_is_string(v) && strcmp(json_string_value(v), word) == 0)
			return true;
	}
	return false;
}

static void take_notices(struct carry *c, const json_t *content, bool first)
{
	const json_t *told = json_object_get(content, "notices");

	if (has_word(told, "force_submit"))
		c->past.force_submit = true;
	/* Logs of earlier versions say the rest here alone. */
	if (first && !c->told && has_word(told, "nudge"))
		c->past.nudged = true;
	if (first && !c->told)
		c->past.odd_replies =
			has_word(told, "odd_reply") ? (uint8_t)(c->past.odd_replies + 1) : 0;
}

static int take_infer_start(struct carry *c, const struct event_view *v, const json_t *content,
			    const json_t *meta)
{
	struct run *r = c->run;
	const char *id = json_get_str(content, "callId");
	const char *dot = id ? strchr(id, '.') : NULL;
	int rv = 0;

	if (!id)
		return 0;
	if (c->started && !r->infer_id[0])
		rv = toolrun_count(r, c->ncalls);
	if (rv == 0)
		rv = carry_turn(c);
	snprintf(r->infer_id, sizeof(r->infer_id), "%s", id);
	r->attempts = dot ? (uint16_t)strtoul(dot + 1, NULL, 10) : 1;
	if (!dot) {
		c->past.pauses = c->stop == TURN_STOP_PAUSE ? c->past.pauses + 1 : 0;
		c->failing_from_ms = -1;
		r->retry = (struct retry){0};
	}
	take_notices(c, content, !dot);
	c->started = true;
	c->replied = c->told = false;
	c->ncalls = 0;
	c->stop = TURN_STOP_OTHER;
	c->past.totals.calls++;
	c->past.again = false;
	c->past.iteration =
		(int32_t)json_get_int(meta, "iteration", *id ? strtol(id + 1, NULL, 10) : 0);
	r->agent.iteration = c->past.iteration;
	if (!r->started_wall_ms)
		r->started_wall_ms = v->wall_ms;
	return rv;
}

static void add_usage(struct carry *c, const json_t *content, const json_t *meta)
{
	struct agent_totals *t = &c->past.totals;
	const json_t *tokens = json_object_get(content, "tokens");
	int64_t cost = json_get_fixed(meta, "costCents", 4, -1);
	const char *request = json_get_str(content, "requestId");
	struct usage u = {.input = json_get_int(tokens, "input", 0),
			  .output = json_get_int(tokens, "output", 0)};

	t->input += u.input;
	t->output += u.output;
	t->cache_read += json_get_int(tokens, "cacheRead", 0);
	t->cache_write += json_get_int(tokens, "cacheWrite", 0);
	if (cost >= 0)
		t->cost_microusd += cost;
	else if (u.input + u.output > 0)
		t->uncosted_calls++;
	if (request)
		(void)infer_seen(c->run, request, &u);
	if (u.input > 0 && !json_get_str(content, "errorClass"))
		c->past.measured_input = u.input;
}

/* The attempt failed: how long the service has been failing decides what comes of
 * the next one. */
static void take_failure(struct carry *c, const struct event_view *v, const json_t *content,
			 const char *error_class)
{
	struct retry *retry = &c->run->retry;

	c->past.totals.failed_calls++;
	c->past.again = true;
	c->held_ms = json_get_int(content, "retryInMs", 0);
	c->held_from_ms = v->wall_ms;
	if (strcmp(error_class, "interrupted") == 0)
		return;
	if (strcmp(error_class, reply_class_word(REPLY_OVERFLOW)) == 0)
		carry_overflow(c, json_get_str(content, "error"));
	retry->failures++;
	retry->overloads +=
		strcmp(error_class, "overloaded") == 0 || strcmp(error_class, "rate_limit") == 0;
	retry->broken +=
		strcmp(error_class, "truncated") == 0 || strcmp(error_class, "protocol") == 0;
	retry->last_ms = c->held_ms;
	if (c->failing_from_ms < 0)
		c->failing_from_ms = c->past.used_ms;
}

static enum turn_stop stop_of(const char *word)
{
	static const struct {
		const char *word;
		enum turn_stop stop;
	} words[] = {
		{"end_turn", TURN_STOP_END},      {"tool_use", TURN_STOP_TOOLS},
		{"max_tokens", TURN_STOP_LENGTH}, {"refusal", TURN_STOP_REFUSAL},
		{"pause_turn", TURN_STOP_PAUSE},
	};

	for (size_t i = 0; word && i < ARRAY_LEN(words); i++)
		if (strcmp(words[i].word, word) == 0)
			return words[i].stop;
	return TURN_STOP_OTHER;
}

static void take_infer_end(struct carry *c, const struct event_view *v, const json_t *content,
			   const json_t *meta)
{
	const char *error_class = json_get_str(content, "errorClass");
	const char *text = json_get_str(content, "responsePreview");

	c->run->infer_id[0] = 0;
	c->ncalls = 0;
	add_usage(c, content, meta);
	if (error_class) {
		take_failure(c, v, content, error_class);
		return;
	}
	c->stop = stop_of(json_get_str(content, "stopReason"));
	c->edited = c->counted = false;
	if (c->stop != TURN_STOP_PAUSE)
		c->past.halvings = 0;
	c->past.overflow = NULL;
	c->replied = true;
	c->worded = text && *text;
	c->told = false;
	c->past.force_submit = false;
	c->run->notices = 0;
}

/* ---- tools */

static void take_tool_call(struct carry *c, const struct event_view *v, const json_t *content)
{
	struct run *r = c->run;
	const char *id = json_get_str(content, "callId"), *name = json_get_str(content, "name");
	struct carried_call *k;

	if (!id || c->ncalls == TURN_MAX_CALLS)
		return;
	k = &c->calls[c->ncalls++];
	buf_reset(&k->output);
	k->answered = k->success = k->cut = k->decided = k->ran = false;
	snprintf(k->id, sizeof(k->id), "%s", id);
	c->past.totals.tool_calls++;
	c->past.odd_replies = c->past.halvings = 0;
	r->last_tool_wall_ms = v->wall_ms;
	snprintf(r->last_tool, sizeof(r->last_tool), "%s", name ? name : "");
}

static void count_result(struct run *r, const json_t *content)
{
	const char *name = json_get_str(content, "name"), *kept = json_get_str(content, "artifact");

	if (kept && *kept)
		buf_addf(&r->artifacts, "%s\"%s\"", r->artifacts.len ? "," : "", kept);
	if (!name || !json_get_bool(content, "success", false))
		return;
	r->bytes_read += json_get_int(content, "bytes", 0);
	for (unsigned i = 0; i < r->spec->agent.ntools; i++)
		if (strcmp(r->spec->tools[i]->name, name) == 0)
			r->tool_counts[i]++;
}

static int take_tool_result(struct carry *c, const json_t *content)
{
	const char *id = json_get_str(content, "callId"), *out = json_get_str(content, "output");
	const char *error_class = json_get_str(content, "errorClass");

	count_result(c->run, content);
	if (error_class && strcmp(error_class, "bad_output") == 0)
		c->past.repairs++;
	for (unsigned i = 0; id && i < c->ncalls; i++) {
		struct carried_call *k = &c->calls[i];

		if (strcmp(k->id, id) != 0 || k->answered)
			continue;
		k->answered = true;
		k->decided = false;
		carry_print(c, k, content);
		buf_reset(&k->output);
		k->success = json_get_bool(content, "success", false);
		k->cut = json_get_bool(content, "cut", false);
		snprintf(k->error_class, sizeof(k->error_class), "%s",
			 error_class ? error_class : "");
		return buf_adds(&k->output, out ? out : "");
	}
	return 0;
}

static void take_limit(struct carry *c, const json_t *content)
{
	const json_t *warned = json_object_get(content, "warned");

	carry_raised(c, content);
	carry_shared(c, content);
	for (unsigned i = 0; i < AGENT_NRESOURCES; i++) {
		if (!has_word(warned, agent_resource_names[i]))
			continue;
		c->past.warned |= (uint16_t)(1u << i);
		c->run->notices |= (uint8_t)(1u << i);
	}
}

/* ---- one event */

/* Logs of earlier versions have no clock in them: then the time that models and
 * tools took counts. */
static void take_clock(struct carry *c, const json_t *content, const json_t *meta)
{
	int64_t ms = json_get_int(content, "clockMs", -1);

	if (ms >= 0) {
		c->past.used_ms = ms;
		c->clocked = true;
	} else if (!c->clocked) {
		c->past.used_ms += MAX(json_get_int(meta, "duration", 0), 0);
	}
}

static bool counts(int kind)
{
	return kind == EVENT_InferStart || kind == EVENT_InferEnd || kind == EVENT_ToolCall ||
	       kind == EVENT_ToolResult || kind == EVENT_Limit || kind == EVENT_StateWrite ||
	       kind == EVENT_ContextEdit || kind == EVENT_Waiting || kind == EVENT_Steering ||
	       kind == EVENT_Custom || kind == EVENT_Checkpoint;
}

/* Room was made: that is the next input, not what was measured before. */
static int take_edit(struct carry *c, const json_t *content)
{
	int rv = carry_turn(c);

	c->past.measured_input = json_get_int(content, "tokensAfter", c->past.measured_input);
	c->edited = true;
	carry_removed(c, content);
	return rv;
}

static int take_event(struct carry *c, const struct event_view *v)
{
	json_t *content, *meta;
	int rv = 0;

	if (!counts(v->kind))
		return 0;
	content = json_parse(v->content.s, v->content.len, NULL);
	meta = json_parse(v->metadata.s, v->metadata.len, NULL);
	if (v->kind == EVENT_InferStart || v->kind == EVENT_InferEnd || v->kind == EVENT_ToolResult)
		take_clock(c, content, meta);
	if (v->kind == EVENT_InferStart)
		rv = take_infer_start(c, v, content, meta);
	else if (v->kind == EVENT_InferEnd)
		take_infer_end(c, v, content, meta);
	else if (v->kind == EVENT_ToolCall)
		take_tool_call(c, v, content);
	else if (v->kind == EVENT_ToolResult)
		rv = take_tool_result(c, content);
	else if (v->kind == EVENT_Limit)
		take_limit(c, content);
	else if (v->kind == EVENT_ContextEdit)
		rv = take_edit(c, content);
	else if (v->kind == EVENT_Waiting)
		rv = carry_waiting(c, content);
	else if (v->kind == EVENT_Steering)
		rv = carry_steering(c, content);
	else if (v->kind == EVENT_Custom)
		carry_custom(c, content);
	else if (v->kind == EVENT_Checkpoint)
		rv = run_checkpoint_restore(c->run, content);
	else
		rv = take_state(c, content);
	json_decref(content);
	json_decref(meta);
	return rv;
}

static int take_line(struct carry *c, const char *line, size_t len)
{
	struct run *r = c->run;
	struct event_view v;

	run_log_add(&r->log, r->log.seq, line, len + 1);
	if (event_view(line, len, &v) != 0 || v.agent_id.len != strlen(r->id.text) ||
	    memcmp(v.agent_id.s, r->id.text, v.agent_id.len) != 0) {
		c->foreign++;
		return 0;
	}
	r->log.seq = v.seq;
	c->last_ms = v.wall_ms;
	if (v.kind >= 0)
		r->types |= 1u << v.kind;
	return take_event(c, &v);
}

/* The run's file, and its successors where recovery had to begin them. */
int carry_log(struct carry *c, struct ava_error *err)
{
	struct run *r = c->run;
	char path[LOGBOOK_PATH], *data;
	const char *line;
	size_t len, at = 0, n;
	int rv;

	logbook_run_path(r->id.text, path);
	rv = logbook_read(r->outbox.lb->root_fd, path, FILE_MAX, &data, &len, err);
	if (rv != 0)
		return rv;
	while (rv == 0 && jsonl_next(data, len, &at, &line, &n) == 1)
		rv = take_line(c, line, n);
	free(data);
	if (rv == 0 && c->started && !r->infer_id[0])
		rv = toolrun_count(r, c->ncalls);
	if (rv != 0)
		return err_set(err, rv, "out of memory");
	if (c->foreign > 0 || r->types == 0)
		return err_set(err, AVA_ECORRUPT,
			       "%s was changed: %u of its lines are no events of this run", path,
			       c->foreign);
	return 0;
}

/* ---- the messages */

static bool begins(const char *line, size_t len, const char *with)
{
	size_t n = strlen(with);

	return len > n && memcmp(line, with, n) == 0;
}

/* The whole output of a call whose event shows the beginning. */
static int take_kept(struct carry *c, const char *line, size_t len)
{
	json_t *o = json_parse(line, len, NULL);
	const json_t *mark = json_object_get(o, "mark");
	const char *id = json_get_str(mark, "kept"), *output = json_get_str(mark, "output");
	int rv = 0;

	for (unsigned i = 0; id && output && i < c->ncalls; i++) {
		struct carried_call *k = &c->calls[i];

		if (strcmp(k->id, id) != 0)
			continue;
		buf_reset(&k->output);
		rv = buf_adds(&k->output, output);
		k->cut = false;
	}
	json_decref(o);
	return rv;
}

/* What stands behind the last reply: its results that were kept, and how long it is. */
static int read_tail(struct carry *c, const char *file, size_t len)
{
	const char *line;
	size_t at = 0, n;
	int64_t since = 0;
	int rv = 0;

	while (rv == 0 && jsonl_next(file, len, &at, &line, &n) == 1) {
		if (begins(line, n, "{\"role\":\"assistant\""))
			since = 0;
		if (begins(line, n, "{\"role\":"))
			since += (int64_t)n + 1;
		else if (c->replied && begins(line, n, "{\"mark\":{\"kept\":"))
			rv = take_kept(c, line, n);
	}
	if (c->edited)
		since = 0; /* it is in the figure of the edit */
	c->past.new_bytes = c->past.measured_input > 0 ? since : c->run->request_bytes;
	return rv;
}

static int answer_recorded(struct carry *c, struct turn *t)
{
	for (unsigned i = 0; i < t->ncalls; i++) {
		const struct carried_call *k = &c->calls[i];
		struct turn_call *to = &t->calls[i];

		if (k->decided && carry_decided(k, t, to) != 0)
			return AVA_ENOMEM;
		if (!k->answered)
			continue;
		to->answered = to->recorded = true;
		to->ran = k->ran;
		to->success = k->success;
		to->error_class = arena_copy(&t->mem, k->error_class, strlen(k->error_class));
		to->output = k->cut ? arena_fmt(&t->mem, "%.*s\n(only the beginning was kept)",
						(int)k->output.len, k->output.data)
				    : arena_copy(&t->mem, k->output.data ? k->output.data : "",
						 k->output.len);
		if (!to->error_class || !to->output)
			return AVA_ENOMEM;
		to->output_len = strlen(to->output);
	}
	return 0;
}

/* The reply that stands last, with the results that are known. *out NULL: what
 * follows from it stands there already. */
static int last_reply(struct carry *c, const struct buf *body, const struct messages_info *info,
		      struct turn **out, struct ava_error *err)
{
	const struct dialect *d = c->run->spec->model->dialect;
	struct turn *t = turn_new();
	int rv = t ? d->open_calls(body->data + info->head_len, body->len - info->head_len, t, err)
		   : AVA_ENOMEM;

	*out = NULL;
	if (rv != 0 || (c->ncalls > 0 && t->ncalls == 0)) {
		turn_free(t);
		return rv;
	}
	if (t->ncalls != c->ncalls) {
		rv = err_set(err, AVA_ECORRUPT,
			     "its messages have %u open calls where its log has %u", t->ncalls,
			     c->ncalls);
		turn_free(t);
		return rv;
	}
	if (!c->worded && c->ncalls == 0) { /* an empty reply has no line of its own */
		t->text = "";
		t->text_len = 0;
	}
	t->stop = c->stop;
	rv = answer_recorded(c, t);
	if (rv == 0)
		*out = turn_trim(t); /* it may wait for long */
	turn_free(t);
	return rv == 0 && !*out ? AVA_ENOMEM : rv;
}

/* ---- the machine */

/* A call was cut: nobody knows what it cost, so it is charged its estimate. */
static void charge_cut_call(struct run *r)
{
	struct usage u;

	r->cut = (struct usage){.cost_microusd = -1};
	infer_estimate(r, &u);
	agent_charge(&r->agent, &u);
	r->agent.totals.failed_calls++;
	r->cut = u;
}

/* Written with the first thing that follows: ten thousand runs that wait for a slot
 * write nothing, and hold no draft. */
void carry_note(struct run *r, struct draft *d)
{
	struct usage u = r->cut;
	struct record_failure f = {
		.error_class = "interrupted",
		.sentence = "the runtime stopped while the model was asked",
		.usage = &u,
		.retry_ms = 0,
	};

	r->unnoted = false;
	record_carried(d, r);
	if (r->infer_id[0])
		record_infer_failed(d, r, &f);
}

/* Waits go on where they were: those for a service by the clock on the wall, which
 * may have jumped. */
static void restore_waits(struct carry *c)
{
	struct run *r = c->run;
	int64_t now = clock_mono_ms();
	int64_t left = c->held_ms - (clock_wall_ms() - c->held_from_ms);

	if (c->failing_from_ms >= 0)
		r->retry.since_ms = now - (c->past.used_ms - c->failing_from_ms);
	if (c->past.again && c->held_ms > 0)
		r->held_until_ms = now + MIN(MAX(left, 0), c->held_ms);
}

int carry_machine(struct carry *c, const char *file, size_t len, const struct buf *body,
		  const struct messages_info *info, struct ava_error *err)
{
	struct run *r = c->run;
	bool cut = r->infer_id[0] != 0;
	struct turn *t = NULL;
	int rv = read_tail(c, file, len);

	if (rv == 0 && c->replied)
		rv = last_reply(c, body, info, &t, err);
	if (rv == 0 && !t)
		rv = carry_turn(c);
	if (rv == AVA_ENOMEM)
		err_set(err, rv, "out of memory");
	if (rv != 0)
		return rv;
	c->past.again |= cut;
	r->forgetful = c->older;
	if (c->older)
		carry_forget(c);
	agent_restore(&r->agent, &c->past);
	c->past.repeats = NULL; /* taken */
	restore_waits(c);
	r->unnoted = true;
	if (cut)
		charge_cut_call(r);
	if (t) {
		r->turn_open = t->ncalls > 0;
		agent_resume_reply(&r->agent, t);
	}
	return rv;
}

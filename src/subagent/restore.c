/* A run is restored from its newest position and the events behind it. A position may have only
 * what changed since the one before: then all from the newest whole one on are read. One is written
 * with the results of a turn, with each InferStart and when room was made; so the tail is at most
 * one reply, its calls, and questions and messages of people. A run has both in its log. A
 * conversation has its positions in its messages, since the daily logs are of all conversations and
 * may be pruned; the events are looked for there. The record ends in one of four places:
 *
 *   no position                 the run is queued, as it was
 *   InferStart, no InferEnd     the call was cut: charged its estimate, made again
 *   a failed InferEnd           the next attempt is made when its wait is over
 *   a reply, nothing after it   the machine decides again (agent_resume_reply):
 *                               recorded results stay, the other calls are
 *                               interrupted, or repeated where that does no harm
 *
 * An open question waits on, with the time it had left; an acknowledged answer counts, also
 * when its call has no result yet; an unread message is read with the next results. A yes that
 * may have been used already is not used again: the call is interrupted, unless its tool is
 * repeatable.
 *
 * No model and no tool is called here. What can fail: memory, and a record that does not fit
 * together. */
#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ask.h"
#include "agent/position.h"
#include "base/clock.h"
#include "base/error.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "event/event.h"
#include "provider/messages.h"
#include "subagent/person.h"
#include "subagent/proof.h"
#include "subagent/record.h"
#include "subagent/resume.h"
#include "subagent/run.h"

#define FILE_MAX       (256u << 20)
#define OUTPUT_MAX     (1u << 20)
#define ITERATIONS_MAX 10000000

struct tail_call { /* a call of the last reply */
	char id[16];
	bool answered, success, cut;
	bool ran;          /* the tool gave the answer, not the runtime */
	json_t *decided;   /* the Waiting event that ended a question about the call, which has no
			    * result yet; NULL: none */
	struct buf output; /* output in the event; cut: only the beginning */
	char error_class[32];
};

struct tail {
	struct run *run;
	struct tail_call calls[TURN_MAX_CALLS];
	unsigned ncalls;
	size_t from;              /* offset behind the line of the last position; 0: none */
	size_t whole;             /* offset of the last whole one */
	struct agent_position at; /* the machine's, of the positions so far */
	bool replied;             /* the last call has a reply, and no position follows it */
	bool has_line;            /* the reply has a line in the messages: it was not empty */
	unsigned foreign;         /* lines that are no events of this run */
	struct usage usage;
	enum turn_stop stop;
	int64_t held_ms, held_from_ms; /* delay of the next attempt, and its begin by wall clock */
	int64_t failing_from_ms;       /* used time at the first failure of the call; -1: none */
	int64_t last_ms;
};

/* ---- the position, read */

int restore_calls(struct run *r, const json_t *position)
{
	bool whole = json_get_int(position, "delta", 0) == 0;
	int64_t from = whole ? json_get_int(position, "turnFrom", 0) : r->tools.calls_at;
	int32_t iteration = r->agent.at.iteration;
	const json_t *v;
	size_t i;
	int rv = 0;

	if (from < 0 || from > ITERATIONS_MAX)
		return AVA_ECORRUPT;
	json_array_foreach(json_object_get(json_object_get(position, "run"), "callsOf"), i, v)
	{
		r->agent.at.iteration = (int32_t)from + (int32_t)i;
		if (rv == 0)
			rv = toolrun_count(r, (unsigned)json_integer_value(v));
	}
	r->agent.at.iteration = iteration;
	return rv;
}

static void read_evidence(struct run *r, const json_t *o)
{
	const json_t *list = json_object_get(o, "toolCounts");
	size_t i;

	r->started_wall_ms = json_get_int(o, "startedMs", 0);
	snprintf(r->tools.last, sizeof(r->tools.last), "%s", json_str(o, "lastTool"));
	r->tools.last_wall_ms = json_get_int(o, "lastToolMs", 0);
	r->tools.bytes_read = json_get_int(o, "bytesRead", 0);
	for (i = 0; i < r->spec->agent.ntools; i++)
		r->tools.counts[i] = (uint32_t)json_integer_value(json_array_get(list, i));
}

/* Takes the next position, in order: the members that add up. */
static int add_position(struct tail *c, const json_t *value)
{
	struct run *r = c->run;
	struct buf *files = &r->tools.artifacts;
	const json_t *v;
	size_t i;
	int rv = agent_position_read(&c->at, value);

	if (rv == 0)
		rv = restore_calls(r, value);
	if (c->at.delta == 0)
		buf_reset(files);
	json_array_foreach(json_object_get(json_object_get(value, "run"), "artifacts"), i, v)
	{
		buf_addf(files, "%s\"%s\"", files->len > 0 ? "," : "", json_string_value(v));
	}
	return rv;
}

/* Sets the run to the last position that was added, `value`. */
static void stand_at(struct tail *c, const json_t *value, int64_t wall_ms)
{
	struct run *r = c->run;
	const json_t *run = json_object_get(value, "run"), *retry = json_object_get(run, "retry");
	const char *first = json_get_str(run, "firstModel");

	agent_restore(&r->agent, &c->at, agent_position_sentence(value));
	snprintf(r->call.id, sizeof(r->call.id), "%s", json_str(run, "call"));
	r->call.attempts = (uint16_t)json_get_int(run, "attempts", 0);
	r->rec.notices = (uint8_t)json_get_int(run, "notices", 0);
	r->call.fallbacks = (uint16_t)json_get_int(run, "fallbacks", 0);
	r->agent.at.totals.estimated_calls = (int32_t)json_get_int(run, "estimatedCalls", 0);
	if (first)
		r->call.first_model = arena_copy(&r->spec->mem, first, strlen(first));
	if (retry) {
		r->call.retry.failures = (uint16_t)json_get_int(retry, "failures", 0);
		r->call.retry.broken = (uint16_t)json_get_int(retry, "broken", 0);
		r->call.retry.last_ms = json_get_int(retry, "lastMs", 0);
		c->failing_from_ms = r->agent.at.used_ms - json_get_int(retry, "failingMs", 0);
	}
	if (r->place && strcmp(json_str(run, "model"), r->spec->model->id) != 0)
		infer_changed(r); /* after the turn another one was chosen */
	if (json_object_get(run, "groupMs"))
		group_noted(r, json_get_int(run, "groupMs", 0), wall_ms);
	read_evidence(r, run);
}

/* Takes a position of the log. */
static int read_position(struct tail *c, const struct event_view *v, bool last)
{
	struct ava_error why = {0};
	json_t *content = json_parse(v->content.s, v->content.len, &why);
	const json_t *value = json_object_get(content, "value");
	int rv = why.code == AVA_ENOMEM ? AVA_ENOMEM : add_position(c, value);

	if (rv == 0 && last)
		stand_at(c, value, v->wall_ms);
	json_decref(content);
	return rv;
}

/* ---- the events behind the position: the reply */

/* Restores the retry state from a failed attempt: how long the service has been failing decides
 * about the next one. */
static void restore_take_failure(struct tail *c, const struct event_view *v, const json_t *content,
				 const char *error_class)
{
	struct agent *a = &c->run->agent;
	struct retry *retry = &c->run->call.retry;
	struct agent_told told;

	agent_charge(a, &c->usage);
	a->at.totals.failed_calls++;
	a->at.again = true;
	c->held_ms = json_get_int(content, "retryInMs", 0);
	c->held_from_ms = v->wall_ms;
	if (strcmp(error_class, "interrupted") == 0)
		return;
	if (record_told(content, &told) ||
	    strcmp(error_class, reply_class_word(REPLY_OVERFLOW)) == 0)
		agent_too_large(a, &told, error_class, json_str(content, "error"));
	retry->failures++;
	retry->broken +=
		strcmp(error_class, "truncated") == 0 || strcmp(error_class, "protocol") == 0;
	retry->last_ms = c->held_ms;
	if (c->failing_from_ms < 0)
		c->failing_from_ms = a->at.used_ms;
}

static void take_infer_end(struct tail *c, const struct event_view *v, const json_t *content,
			   const json_t *meta)
{
	const char *error_class = json_get_str(content, "errorClass");

	/* In the daily log events of the attempt before may stand behind the position. */
	if (c->run->place && strcmp(json_str(content, "callId"), c->run->call.id) != 0)
		return;
	c->run->call.id[0] = 0;
	c->ncalls = 0;
	record_usage(content, meta, &c->usage);
	if (error_class) {
		restore_take_failure(c, v, content, error_class);
		return;
	}
	c->stop = record_stop(json_get_str(content, "stopReason"));
	c->replied = true;
	c->has_line = json_str(content, "responsePreview")[0] || c->stop == TURN_STOP_PAUSE;
	c->run->rec.notices = 0;
}

/* ---- calls of the reply */

static void take_tool_call(struct tail *c, const struct event_view *v, const json_t *content)
{
	struct run *r = c->run;
	const char *id = json_get_str(content, "callId");
	struct tail_call *k;

	if (!id || c->ncalls == TURN_MAX_CALLS)
		return;
	k = &c->calls[c->ncalls++];
	buf_reset(&k->output);
	k->answered = k->success = k->cut = k->ran = false;
	json_decref(k->decided);
	k->decided = NULL;
	snprintf(k->id, sizeof(k->id), "%s", id);
	c->has_line = true;
	r->tools.last_wall_ms = v->wall_ms;
	snprintf(r->tools.last, sizeof(r->tools.last), "%s", json_str(content, "name"));
}

static struct tail_call *open_call(struct tail *c, const char *id)
{
	for (unsigned i = 0; i < c->ncalls; i++)
		if (strcmp(c->calls[i].id, id) == 0 && !c->calls[i].answered)
			return &c->calls[i];
	return NULL;
}

static int take_tool_result(struct tail *c, const json_t *content)
{
	struct tail_call *k = open_call(c, json_str(content, "callId"));
	const char *name = json_get_str(content, "name"), *kept = json_get_str(content, "artifact");
	struct run_tools *tools = &c->run->tools;
	const struct run_spec *s = c->run->spec;

	if (kept && *kept)
		buf_addf(&tools->artifacts, "%s\"%s\"", tools->artifacts.len ? "," : "", kept);
	if (name && json_get_bool(content, "success", false)) {
		tools->bytes_read += json_get_int(content, "bytes", 0);
		for (unsigned i = 0; i < s->agent.ntools; i++)
			if (strcmp(s->tools[i]->name, name) == 0)
				tools->counts[i]++;
	}
	if (!k)
		return 0;
	k->answered = true;
	json_decref(k->decided);
	k->decided = NULL;
	k->ran = json_get_bool(content, "ran", false);
	k->success = json_get_bool(content, "success", false);
	k->cut = json_get_bool(content, "cut", false);
	snprintf(k->error_class, sizeof(k->error_class), "%s", json_str(content, "errorClass"));
	buf_reset(&k->output);
	return buf_adds(&k->output, json_str(content, "output"));
}

/* ---- questions and messages of people */

static int take_waiting(struct tail *c, const struct event_view *v, json_t *content)
{
	const char *state = json_str(content, "state");
	struct tail_call *k;

	if (strcmp(json_str(content, "kind"), "pause") == 0) {
		pause_restore(c->run, content, v->wall_ms);
		return 0;
	}
	if (strcmp(json_str(content, "kind"), "quota") == 0)
		park_restore(c->run, content, v->wall_ms);
	if (strcmp(state, "waits") == 0)
		return 0;
	if (strcmp(state, "asked") == 0 || strcmp(state, "parked") == 0)
		return person_restore_question(c->run, content, v->wall_ms);
	person_forget_question(c->run);
	k = open_call(c, json_str(content, "callId"));
	/* A limit (named "i2") that was not raised ends the run: nobody is asked again. */
	if (json_str(content, "callId")[0] == 'i' && strcmp(state, "answered") != 0 &&
	    strcmp(json_str(content, "kind"), "approval") == 0)
		c->run->spec->agent.ask_limit = false;
	if (k) {
		json_decref(k->decided);
		k->decided = json_incref(content);
	}
	return 0;
}

static int take_steering(struct run *r, const json_t *content)
{
	const char *id = json_str(content, "steerId");
	struct person_heard was = {.steer_id = ""};

	/* A repeated request id must get the same answer as before. */
	snprintf(was.steer_id, sizeof(was.steer_id), "%s", id);
	snprintf(was.call_id, sizeof(was.call_id), "%s", json_str(content, "callId"));
	if (person_restore_heard(r, json_str(content, "requestId"), &was) != 0)
		return AVA_ENOMEM;
	if (!id[0]) /* without an id it answered a question, and Waiting has it */
		return 0;
	if (strcmp(json_str(content, "outcome"), "queued") == 0)
		return person_restore_said(r, id, content);
	person_forget_said(r, id);
	return 0;
}

/* ---- the log */

/* Takes SubagentSpawn, Checkpoint, Check and the events with people wherever they stand, events of
 * the reply only behind the position, which has the earlier ones. */
static int restore_take_event(struct tail *c, const struct event_view *v, bool behind)
{
	bool people = v->kind == EVENT_Waiting || v->kind == EVENT_Steering ||
		      v->kind == EVENT_Checkpoint || v->kind == EVENT_SubagentSpawn ||
		      v->kind == EVENT_Check;
	bool reply = v->kind == EVENT_InferEnd || v->kind == EVENT_ToolCall ||
		     v->kind == EVENT_ToolResult;
	struct ava_error why = {0};
	json_t *content, *meta;
	struct proof proof;
	int rv = 0;

	if (!people && !(reply && behind))
		return 0;
	content = json_parse(v->content.s, v->content.len, &why);
	meta = json_parse(v->metadata.s, v->metadata.len, &why);
	if (why.code == AVA_ENOMEM) {
		json_decref(content);
		json_decref(meta);
		return AVA_ENOMEM;
	}
	if (behind) /* a check before the position is older than that */
		c->run->agent.at.used_ms =
			json_get_int(content, "clockMs", c->run->agent.at.used_ms);
	if (v->kind == EVENT_Waiting)
		rv = take_waiting(c, v, content);
	else if (v->kind == EVENT_Steering)
		rv = take_steering(c->run, content);
	else if (v->kind == EVENT_Checkpoint)
		rv = run_checkpoint_restore(c->run, content);
	else if (v->kind == EVENT_Check)
		rv = proof_read(content, &proof) && !run_proof(c->run, &proof) ? AVA_ENOMEM : 0;
	else if (v->kind == EVENT_SubagentSpawn) /* a chain's next run has the same proposal */
		snprintf(c->run->proposal, sizeof(c->run->proposal), "%s",
			 json_str(content, "proposalId"));
	else if (v->kind == EVENT_InferEnd)
		take_infer_end(c, v, content, meta);
	else if (v->kind == EVENT_ToolCall)
		take_tool_call(c, v, content);
	else
		rv = take_tool_result(c, content);
	json_decref(content);
	json_decref(meta);
	return rv;
}

static bool view_own(const struct run *r, const char *line, size_t len, struct event_view *v)
{
	return event_view(line, len, v) == 0 && v->agent_id.len == strlen(r->id.text) &&
	       memcmp(v->agent_id.s, r->id.text, v->agent_id.len) == 0;
}

static bool is_position(const struct event_view *v)
{
	return v->kind == EVENT_StateWrite &&
	       jscan_begins(v->content.s, v->content.len, "{\"key\":\"position\",");
}

/* Takes numbers and hash of the line that ends at `next`, and remembers the newest positions. */
static void restore_scan_line(struct tail *c, const char *line, size_t len, size_t next)
{
	struct run *r = c->run;
	struct event_view v;

	run_log_add(&r->rec.log, r->rec.log.seq, line, len + 1);
	if (!view_own(r, line, len, &v)) {
		c->foreign++;
		return;
	}
	r->rec.log.seq = v.seq;
	c->last_ms = v.wall_ms;
	if (v.kind >= 0)
		r->rec.types |= event_bit((enum event_kind)v.kind);
	if (!is_position(&v))
		return;
	c->from = next;
	if (!jscan_begins(v.content.s, v.content.len,
			  "{\"key\":\"position\",\"value\":{\"delta\":"))
		c->whole = next - len - 1;
}

/* Reads the run's log, with its successors where recovery had to begin new files. */
static int restore_read_log(struct tail *c, struct ava_error *err)
{
	struct run *r = c->run;
	struct event_view v;
	char path[LOGBOOK_PATH], *data;
	const char *line;
	size_t len, n, at = 0;
	int rv;

	logbook_run_path(r->id.text, path);
	rv = logbook_read(r->rec.outbox.lb->root_fd, path, FILE_MAX, &data, &len, err);
	if (rv != 0)
		return rv;
	while (jsonl_next(data, len, &at, &line, &n) == 1)
		restore_scan_line(c, line, n, at);
	for (at = c->whole; rv == 0 && at < c->from && jsonl_next(data, len, &at, &line, &n) == 1;)
		if (view_own(r, line, n, &v) && is_position(&v))
			rv = read_position(c, &v, at == c->from);
	for (at = 0; rv == 0 && jsonl_next(data, len, &at, &line, &n) == 1;)
		if (view_own(r, line, n, &v))
			rv = restore_take_event(c, &v,
						c->from > 0 && (size_t)(line - data) >= c->from);
	free(data);
	if (rv == AVA_ENOENT)
		return err_set(err, AVA_ECORRUPT,
			       "%s was changed: a position that the last one builds on is missing",
			       path);
	if (rv == AVA_ECORRUPT)
		return err_set(err, rv, "%s was changed: its last position cannot be read", path);
	if (rv != 0)
		return err_set(err, rv, "out of memory");
	if (c->foreign > 0 || r->rec.types == 0)
		return err_set(err, AVA_ECORRUPT,
			       "%s was changed: %u of its lines are no events of this run", path,
			       c->foreign);
	return 0;
}

bool restore_is_open(const json_t *position)
{
	return position && !json_get_bool(json_object_get(position, "run"), "ended", false);
}

/* Takes the position of a conversation, and what the daily logs have of a call that had no InferEnd
 * there. Logs that are gone have nothing. */
static int restore_read_days(struct tail *c, const json_t *position, struct ava_error *err)
{
	const struct run *r = c->run;
	struct ava_log_query q = {
		.root = r->tools.env.root,
		.types = "InferEnd,ToolCall,ToolResult",
		.agent = r->place->agent_id,
		.session = r->spec->session_id,
		.after = (uint64_t)json_get_int(json_object_get(position, "run"), "after", 0),
	};
	int rv = position ? add_position(c, position) : 0, more = 0;
	struct ava_log *log = NULL;
	struct ava_log_event e;
	struct event_view v;

	if (rv == 0 && position)
		stand_at(c, position, 0);
	if (rv == 0 && r->call.id[0] && restore_is_open(position)) {
		rv = ava_log_open(&log, &q, NULL);
		rv = rv == AVA_ENOENT || rv == AVA_ECORRUPT ? 0 : rv; /* taken up without it */
	}
	while (log && rv == 0 &&
	       ((more = ava_log_next(log, &e, NULL)) == 1 || more == AVA_ECORRUPT))
		if (more == 1 && event_view(e.line, e.len, &v) == 0 &&
		    (c->replied || v.kind == EVENT_InferEnd))
			rv = restore_take_event(c, &v, true);
	ava_log_close(log);
	rv = rv == 0 && more < 0 ? more : rv;
	return rv == 0 ? 0 : err_set(err, rv, "%s: %s", r->place->messages, ava_strerror(rv));
}

/* ---- the reply, from the messages */

/* Takes the whole output of a call whose event shows the beginning only. */
static int take_kept(struct tail *c, const char *line, size_t len)
{
	struct ava_error why = {0};
	json_t *o = json_parse(line, len, &why);
	const json_t *mark = json_object_get(o, "mark");
	const char *id = json_get_str(mark, "kept"), *output = json_get_str(mark, "output");
	int rv = why.code == AVA_ENOMEM ? AVA_ENOMEM : 0;

	for (unsigned i = 0; id && output && i < c->ncalls; i++) {
		struct tail_call *k = &c->calls[i];

		if (strcmp(k->id, id) != 0)
			continue;
		buf_reset(&k->output);
		rv = buf_adds(&k->output, output);
		k->cut = false;
	}
	json_decref(o);
	return rv;
}

/* Takes the whole outputs kept behind the last reply; *bytes: length of the last reply and the
 * messages behind it. */
static int restore_read_tail(struct tail *c, const char *file, size_t len, int64_t *bytes)
{
	const char *line;
	size_t at = 0, n;
	const struct dialect *d = c->run->spec->model->dialect;
	enum line_kind kind, last = LINE_NONE;
	int rv = 0;

	*bytes = 0;
	while (rv == 0 && jsonl_next(file, len, &at, &line, &n) == 1) {
		kind = d->line_kind(line, n);
		if (kind == LINE_REPLY && !(d->line_an_item && last == LINE_REPLY))
			*bytes = 0;
		last = kind;
		if (kind != LINE_NONE)
			*bytes += (int64_t)n + 1;
		else if (jscan_begins(line, n, "{\"mark\":{\"kept\":"))
			rv = take_kept(c, line, n);
	}
	return rv;
}

int restore_decision(const json_t *waiting, struct turn *t, struct turn_call *to)
{
	const char *state = json_str(waiting, "state");
	bool approval = strcmp(json_str(waiting, "kind"), "approval") == 0;
	enum agent_asked how = strcmp(state, "answered") == 0  ? ASKED_ANSWERED
			       : strcmp(state, "refused") == 0 ? ASKED_REFUSED
							       : ASKED_EXPIRED;
	const char *text = json_get_str(waiting, how == ASKED_EXPIRED ? "default" : "answer");
	struct ask_result r;

	if (approval && how == ASKED_ANSWERED) {
		to->approved = true;
		return 0;
	}
	if (text && !(text = arena_copy(&t->mem, text, strlen(text))))
		return AVA_ENOMEM;
	r = ask_result(&t->mem, approval, how, text);
	to->answered = true;
	to->success = r.success;
	to->error_class = r.error_class;
	to->output = r.output;
	to->output_len = strlen(r.output);
	to->full_bytes = (int64_t)to->output_len;
	return 0;
}

static int answer_recorded(struct tail *c, struct turn *t)
{
	for (unsigned i = 0; i < t->ncalls; i++) {
		const struct tail_call *k = &c->calls[i];
		struct turn_call *to = &t->calls[i];

		if (k->decided && restore_decision(k->decided, t, to) != 0)
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

/* The daily log that has the reply was removed: its usage and results are not known. */
static void take_unlogged(struct tail *c, unsigned ncalls)
{
	c->replied = c->has_line = true;
	c->ncalls = ncalls;
	c->run->call.id[0] = 0;
	infer_estimate(c->run, &c->usage);
}

/* Rebuilds the last reply as a turn, with the results that are known. *out NULL: a conversation has
 * no open calls, and its logs no reply. */
static int last_reply(struct tail *c, const struct buf *body, const struct messages_info *info,
		      struct turn **out, struct ava_error *err)
{
	const struct dialect *d = c->run->spec->model->dialect;
	struct turn *t = turn_new();
	int rv = t ? d->open_calls(body->data + info->head_len, body->len - info->head_len, t, err)
		   : AVA_ENOMEM;

	*out = NULL;
	if (rv == 0 && !c->replied && t->ncalls > 0)
		take_unlogged(c, t->ncalls);
	if (rv == 0 && t->ncalls != c->ncalls)
		rv = err_set(err, AVA_ECORRUPT,
			     "its messages have %u open calls where its log has %u", t->ncalls,
			     c->ncalls);
	if (rv == 0 && c->replied)
		rv = toolrun_count(c->run, t->ncalls);
	if (rv == 0 && !c->has_line) {
		t->text = "";
		t->text_len = 0;
	}
	if (rv == 0) {
		t->stop = c->stop;
		t->usage = c->usage;
		rv = answer_recorded(c, t);
	}
	if (rv == 0 && c->replied) {
		*out = ask_trim(t); /* the turn may stay in memory for long */
		rv = *out ? 0 : AVA_ENOMEM;
	}
	turn_free(t);
	return rv;
}

/* ---- the machine */

static int stand(struct tail *c, const char *file, size_t len, const struct buf *body,
		 const struct messages_info *info, struct ava_error *err)
{
	struct run *r = c->run;
	struct turn *t = NULL;
	struct usage u;
	int64_t bytes, left, now;
	int rv = 0;

	if (c->replied || (r->place && r->call.id[0])) {
		rv = restore_read_tail(c, file, len, &bytes);
		if (rv == 0)
			rv = last_reply(c, body, info, &t, err);
		if (rv == AVA_ENOMEM)
			err_set(err, rv, "out of memory");
		if (rv != 0)
			return rv;
	}
	now = clock_mono_ms();
	if (c->failing_from_ms >= 0)
		r->call.retry.since_ms = now - (r->agent.at.used_ms - c->failing_from_ms);
	/* A retry delay goes on by the wall clock; since that may have jumped, never longer than
	 * the whole delay. */
	left = c->held_ms - (clock_wall_ms() - c->held_from_ms);
	if (r->agent.at.again && c->held_ms > 0)
		r->call.held_until_ms = now + MIN(MAX(left, 0), c->held_ms);
	park_stand(r);
	r->rec.unnoted = true;
	if (r->call.id[0]) { /* the cost of a call that was cut is unknown: charge an estimate */
		r->call.cut = (struct usage){.cost_microusd = -1};
		infer_estimate(r, &u);
		agent_charge(&r->agent, &u);
		r->agent.at.totals.failed_calls++;
		r->agent.at.again = true;
		r->call.cut = u;
	}
	if (t) {
		r->rec.turn_open = t->ncalls > 0;
		agent_resume_reply(&r->agent, t, c->has_line ? bytes : 0);
	}
	return 0;
}

static void restore_request(struct run *r, const char *file, size_t len, const struct buf *body,
			    const struct messages_info *info)
{
	r->rec.request_bytes = (int64_t)body->len;
	r->rec.messages_from = info->cut_at;
	r->rec.message_lines = jsonl_count(file, len);
	r->rec.wordless = info->lines == 0;
	r->rec.prefix = messages_prefix(body, info);
}

int restore_run(struct run *r, const char *file, size_t len, const struct buf *body,
		const struct messages_info *info, struct restored *at, struct ava_error *err)
{
	struct tail *c = calloc(1, sizeof(*c));
	int rv;

	if (!c)
		return err_set(err, AVA_ENOMEM, "out of memory");
	c->run = r;
	c->failing_from_ms = -1;
	c->at = (struct agent_position)AGENT_POSITION_NONE;
	for (unsigned i = 0; i < TURN_MAX_CALLS; i++)
		buf_init(&c->calls[i].output, OUTPUT_MAX);
	if (body)
		restore_request(r, file, len, body, info);
	rv = r->place ? restore_read_days(c, at->position, err) : restore_read_log(c, err);
	at->started = r->place ? restore_is_open(at->position) : r->agent.at.iteration > 0;
	at->last_ms = c->last_ms;
	if (rv == 0 && at->started && body)
		rv = stand(c, file, len, body, info, err);
	else if (c->replied) /* this run is only ended: charge its last reply */
		agent_charge(&r->agent, &c->usage);
	for (unsigned i = 0; i < TURN_MAX_CALLS; i++) {
		buf_fini(&c->calls[i].output);
		json_decref(c->calls[i].decided);
	}
	agent_position_fini(&c->at);
	free(c);
	return rv;
}

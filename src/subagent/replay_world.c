/* A run in the real world below agent_io, but for what comes from outside: the writers of a live
 * run (world.c, person.c, room.c, ending.c) make its lines and events, which go no further than
 * replay_compare; calls of models and tools, slots and the clock are the record's.
 *
 * Notices that speak of time repeat the seconds that the record tells: the
 * clock is set to them before the machine looks. Words of people are taken from their
 * Steering events. Amendments of others than the machine (another model, a parameter left out)
 * are applied where they stand. */
#include "subagent/replay_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "codec/json.h"
#include "provider/context.h"
#include "provider/messages.h"
#include "subagent/record.h"

#define LINES_MAX ((size_t)32 << 20)

static struct replay *replay_of(struct agent *a)
{
	return CONTAINER_OF((struct run *)a->world, struct replay, run);
}

void replay_no_memory(struct replay *p)
{
	p->rv = AVA_ENOMEM;
	p->rec.stopped = true;
}

void replay_flush(struct replay *p, void (*done)(int rv, void *user))
{
	p->run.rec.spare_bytes = 0; /* its positions are whole, to be compared with the record's */
	commit_flush(&p->run, JOURNAL_RIDE, done);
	if (p->run.rec.lost)
		replay_no_memory(p);
}

static int replay_count_result(size_t k, const char *text, size_t len, bool is_error, void *user)
{
	++*(unsigned *)user;
	return 0;
}

int replay_rehash(struct replay *p, unsigned *results, struct ava_error *err)
{
	struct run_record *r = &p->run.rec;
	struct messages_info info = {0};
	struct buf body;
	int rv;

	buf_init(&body, REPLAY_FILE_MAX);
	rv = messages_request(&body, p->rec.file, p->rec.at, p->book.root_fd, &info, err);
	if (rv == 0) {
		r->prefix = messages_prefix(&body, &info);
		r->request_bytes = (int64_t)body.len;
		r->wordless = info.lines == 0;
	}
	if (rv == 0 && results != NULL)
		rv = p->run.spec->model->dialect->results(body.data + info.head_len,
							  body.len - info.head_len,
							  replay_count_result, results, err);
	buf_fini(&body);
	return rv;
}

/* ---- clock and slots */

/* Seconds in the line's notice about time: "near: 480 of 600 seconds"; -1: none. */
static int64_t told_seconds(const struct record *r)
{
	static const char words[] = "[ava] The limit is near: ";
	struct buf line;
	const char *at;
	int64_t used = -1;

	buf_init(&line, LINES_MAX);
	(void)record_lines(r, LINE_USER, SIZE_MAX, &line);
	for (at = line.data; used < 0 && at != NULL && (at = strstr(at, words)) != NULL; at++) {
		long long seconds;
		int end = 0;

		if (sscanf(at + sizeof(words) - 1, "%lld of %*d seconds%n", &seconds, &end) == 1 &&
		    end > 0 && seconds >= 0 && seconds < INT64_MAX / 1000)
			used = seconds;
	}
	buf_fini(&line);
	return used;
}

/* The list at `key` of the turn's next Limit event; NULL: it has none. */
static const json_t *near_limits(struct replay *p, const char *key)
{
	const json_t *list = NULL;
	size_t i = p->rec.next;

	while (list == NULL && record_scan(&p->rec, &i, EVENT_Limit))
		list = json_object_get(p->rec.content, key);
	return list;
}

static bool has_word(const json_t *list, const char *word)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (json_is_string(one) && strcmp(json_string_value(one), word) == 0)
			return true;
	}
	return false;
}

/* If a warning about time follows the results of the turn, sets the clock so that it is due. */
static void set_clock(struct replay *p)
{
	const struct agent *a = &p->run.agent;
	int64_t limit = p->run.spec->agent.limits.time_ms, least = limit - limit / 5;

	if (has_word(near_limits(p, "warned"), "time"))
		p->now = MIN(a->started_ms + MAX(told_seconds(&p->rec) * 1000, least),
			     a->deadline_ms - 1);
}

static int64_t replay_now(struct agent *a)
{
	struct replay *p = replay_of(a);

	if (a->state == AGENT_TOOLS && a->turn != NULL && a->answered == a->turn->ncalls)
		set_clock(p);
	return p->now;
}

static void replay_wake_at(struct agent *a, int64_t at_ms) {}

static void replay_slot_want(struct agent *a)
{
	replay_of(a)->slot_wanted = true;
}

static void replay_slot_drop(struct agent *a)
{
	replay_of(a)->slot_wanted = false;
}

/* ---- calls of the model */

static int amend(struct replay *p, const char *line, size_t len)
{
	json_t *o = json_parse(line, len, NULL);
	const json_t *spec = json_object_get(o, "spec");
	int rv = o == NULL ? AVA_ECORRUPT : 0;

	if (spec != NULL)
		rv = spec_amend(p->run.spec, spec, NULL);
	if (rv == 0 && json_get_str(spec, "model")) /* another model has another window */
		p->run.agent.at.window = p->run.agent.at.output_max = 0;
	json_decref(o);
	return rv;
}

/* Is the request so far the one of the InferStart looked at? */
static bool request_is(const struct replay *p)
{
	const json_t *start = p->rec.content;
	const struct agent_infer call = {
		.max_output = json_get_int(start, "maxOutput", 0),
		.force_submit = has_word(json_object_get(start, "notices"), "force_submit"),
	};
	char prefix[HASH_HEX_LEN + 1], request[HASH_HEX_LEN + 1];

	return infer_hash(&p->run, &call, prefix, request) == 0 &&
	       strcmp(json_str(start, "requestHash"), request) == 0;
}

/* Amendment lines stand where they were written, and no event tells when that was:
 * as many are applied as make the request the one that was sent. A line that drops a
 * parameter may change nothing that is compared, so it is applied where it is met. */
int replay_amend(struct replay *p)
{
	static const char form[] = "{\"spec\":{\"drop\":";
	const char *line;
	size_t len;
	int rv = 0;

	while (rv == 0 && record_line(&p->rec, &line, &len) == LINE_NONE) {
		struct model before = *p->run.spec->model;
		bool as_sent = request_is(p);

		if (as_sent && (len < sizeof(form) || memcmp(line, form, sizeof(form) - 1) != 0))
			break;
		rv = amend(p, line, len);
		if (rv == 0 && as_sent && !request_is(p)) /* it is of a later request */
			return spec_set_model(p->run.spec, &before, NULL);
		record_pass(&p->rec);
		if (rv == 0)
			rv = replay_rehash(p, NULL, NULL);
	}
	return rv;
}

/* Writes the InferStart of the call, with what the runtime decided from the record: the attempt,
 * and a maximum that budgets and refusals may have lowered. */
static int replay_start(struct replay *p, const struct agent_infer *call)
{
	struct run *r = &p->run;
	const char *id = json_str(p->rec.content, "callId");
	int64_t most = json_get_int(p->rec.content, "maxOutput", 0);
	struct agent_infer made = *call;
	char prefix[HASH_HEX_LEN + 1], request[HASH_HEX_LEN + 1];
	struct draft *d = commit_draft(r);
	size_t len = (size_t)snprintf(r->call.id, sizeof(r->call.id), "i%d", call->iteration);

	if (strncmp(id, r->call.id, len) == 0 && (id[len] == '\0' || id[len] == '.'))
		snprintf(r->call.id, sizeof(r->call.id), "%s", id);
	made.max_output = MIN(most, call->max_output);
	if (d == NULL || infer_hash(r, &made, prefix, request) != 0)
		return AVA_ENOMEM;
	record_infer_start(d, r, &made, prefix, request);
	r->rec.position_due = call->iteration != p->seek;
	replay_flush(p, NULL);
	return 0;
}

static int replay_infer(struct agent *a, const struct agent_infer *call)
{
	struct replay *p = replay_of(a);
	const struct trace_event *e;
	int rv;

	p->run.rec.position_due = false; /* the record has it behind InferStart */
	replay_flush(p, NULL);
	e = record_peek(&p->rec);
	p->started = e != NULL && e->kind == EVENT_InferStart;
	if (!p->started) /* the run ended before the call, or before it was accepted */
		return record_end_iterations(&p->rec) == call->iteration - 1 && !call->again
			       ? replay_failure_code(p)
			       : 0;
	rv = replay_amend(p);
	if (rv == 0)
		rv = replay_start(p, call);
	if (rv == 0 && call->iteration == p->seek && !p->rec.stopped) {
		p->found = p->rec.at;
		p->rec.stopped = true;
	}
	return rv;
}

static void replay_infer_stop(struct agent *a) {}

/* ---- room in the window */

static int replay_compact(struct agent *a, const struct agent_compact *c)
{
	struct replay *p = replay_of(a);
	struct run *r = &p->run;
	struct context_edit edit = {0};
	struct hash_sha256 prefix;
	struct ava_error err = {0};
	struct draft *d;
	int rv;

	r->rec.position_due = false;
	replay_flush(p, NULL);
	rv = room_plan(r, c, a->at.repeats, p->rec.file, p->rec.at, &edit, &prefix, &err);
	if (rv == 0 && edit.lines.len > 0)
		rv = room_write(r, c, &edit, &prefix);
	d = rv != 0 ? commit_draft(r) : NULL;
	if (d != NULL)
		record_error(d, r, "context", err.text);
	replay_flush(p, NULL);
	p->room_rv = rv;
	p->room = edit.bytes;
	context_edit_fini(&edit);
	return 0;
}

/* ---- tools and the end */

static int replay_tool_start(struct agent *a, unsigned call)
{
	return 0; /* the call's result is in the record */
}

static int replay_check(struct agent *a)
{
	struct replay *p = replay_of(a);
	struct draft *d = commit_draft(&p->run);

	if (d == NULL)
		return AVA_ENOMEM;
	record_check(d, &p->run, NULL);
	replay_flush(p, NULL);
	return 0;
}

static void replay_tools_stop(struct agent *a) {}

static void replay_saved(int rv, void *user)
{
	agent_on_saved(&((struct run *)user)->agent);
}

static void replay_save_end(struct agent *a, const struct agent_end *end)
{
	struct replay *p = replay_of(a);
	struct run *r = &p->run;
	const char *summary = end->summary != NULL ? end->summary : "";
	struct draft *d;

	r->rec.position_due = false;
	replay_flush(p, NULL);
	d = commit_draft(r);
	if (d == NULL) {
		replay_no_memory(p);
		return;
	}
	if (r->call.id[0] != '\0' && record_find(&p->rec, EVENT_InferEnd))
		record_usage(p->rec.content, p->rec.meta, &r->call.cut); /* its estimate */
	else
		r->call.id[0] = '\0';
	ending_begin(r, d, end);
	if (summary[0] == '\0') /* the runtime may have looked for one in the log */
		summary = json_str(p->rec.end, "summary");
	record_complete(d, r,
			&(struct record_end){.status = end->status,
					     .stop_reason = end->stop_reason,
					     .summary = summary,
					     .result_hash = ""});
	replay_flush(p, replay_saved);
}

static void replay_done(struct agent *a)
{
	replay_of(a)->done = true;
}

/* ---- people */

static int replay_ask(struct agent *a, unsigned call, const struct agent_ask *q, int64_t *until_ms)
{
	int rv = person_ask(a, call, q, until_ms);

	*until_ms = INT64_MAX; /* the record says when nobody answered */
	return rv;
}

static void replay_ask_end(struct agent *a, unsigned call, enum agent_asked how)
{
	struct replay *p = replay_of(a);

	person_ask_end(a, call, how);
	/* The person may have named another model. */
	if (call == AGENT_ASK_QUOTA && how == ASKED_ANSWERED &&
	    record_find(&p->rec, EVENT_InferStart) && replay_amend(p) != 0)
		replay_no_memory(p);
}

/* A word of the event looked at, for whoever has it when another one is. */
static const char *replay_keeps(struct replay *p, const json_t *o, const char *key)
{
	const char *word = json_get_str(o, key);

	return word ? arena_copy(&p->run.spec->mem, word, strlen(word)) : NULL;
}

/* Shared limits that are near (others' usage, the group's clock), from the Limit event. */
static void replay_shared(struct agent *a, struct agent_shared *out)
{
	struct replay *p = replay_of(a);
	const json_t *list = near_limits(p, "shared"), *one;
	struct draft *d = list != NULL ? commit_draft(&p->run) : NULL;
	size_t i;

	if (d == NULL)
		return;
	json_array_foreach(list, i, one)
	{
		const char *name = json_str(one, "limit");

		for (unsigned s = 0; s < AGENT_NSHARES; s++) {
			int decimals = s == SHARE_GROUP_TIME ? 3 : 4;

			if (strcmp(agent_share_names[s], name) != 0)
				continue;
			out->near |= 1u << s;
			out->of[s].used = json_get_fixed(one, "used", decimals, 0);
			out->of[s].limit = json_get_fixed(one, "of", decimals, 0);
			out->of[s].whose = replay_keeps(p, one, "whose");
			out->of[s].period = replay_keeps(p, one, "period");
		}
	}
	out->last = json_get_bool(p->rec.content, "last", false);
	record_shared(d, &p->run, out);
}

/* Did the run stand still here? It goes on when the machine asks for a slot. */
static bool replay_rest(struct agent *a)
{
	struct replay *p = replay_of(a);
	const struct trace_event *e = record_peek(&p->rec);
	size_t i = p->rec.next;
	struct draft *d;

	/* Results that the machine wrote itself stand before it. */
	while (e && (e->kind == EVENT_ToolResult || e->kind == EVENT_Limit))
		e = record_behind(&p->rec, &i);
	if (!e || e->kind != EVENT_Waiting || !record_rests(&p->rec))
		return false;
	d = commit_draft(&p->run);
	if (!d)
		return false;
	record_pause(d, &p->run, "paused", NULL, "");
	p->run.rec.position_due = false;
	replay_flush(p, NULL);
	return true;
}

const struct agent_io replay_io = {
	.now = replay_now,
	.wake_at = replay_wake_at,
	.slot_want = replay_slot_want,
	.slot_drop = replay_slot_drop,
	.infer = replay_infer,
	.infer_stop = replay_infer_stop,
	.save_reply = world_save_reply,
	.tool_start = replay_tool_start,
	.check = replay_check,
	.tools_stop = replay_tools_stop,
	.save_results = world_save_results,
	.save_end = replay_save_end,
	.done = replay_done,
	.compact = replay_compact,
	.ask = replay_ask,
	.ask_end = replay_ask_end,
	.rest = replay_rest,
	.shared = replay_shared,
};

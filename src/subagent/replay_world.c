/* The machine's io in a replay: nothing is sent or started, each wish is compared
 * with the record and the cursor moves on. Bytes that the machine adds to the
 * conversation are compared with the file's.
 *
 * Notices that speak of time repeat the seconds that the record tells: the
 * clock is set to them before the machine looks. Words of people are taken from
 * the recorded line. Amendments (another model, a shortened result) are applied
 * where they stand. */
#include "subagent/replay_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/limit.h"
#include "base/buf.h"
#include "base/util.h"
#include "codec/json.h"
#include "provider/context.h"
#include "provider/messages.h"
#include "subagent/record.h"

#define LINES_MAX ((size_t)32 << 20)
#define SAID_MAX  64 /* most notices in one line */

static struct replay *replay_of(struct agent *a)
{
	return a->world;
}

static int replay_world_add_call(struct replay *p, struct call_ref ref)
{
	if (!ARRAY_ROOM(p->calls, p->calls_cap, p->ncalls + 1))
		return AVA_ENOMEM;
	p->calls[p->ncalls++] = (struct replay_call){.ref = ref, .at = p->rec.at};
	return 0;
}

static int foreign_result(size_t k, const char *text, size_t len, bool is_error, void *user)
{
	return replay_world_add_call(user, (struct call_ref){0});
}

int replay_rehash(struct replay *p, bool fork, struct ava_error *err)
{
	struct messages_info info = {0};
	struct buf body;
	int rv;

	buf_init(&body, REPLAY_FILE_MAX);
	rv = messages_request(&body, p->rec.file, p->rec.at, &info, err);
	if (rv == 0) {
		hash_sha256_init(&p->prefix);
		hash_sha256_add(&p->prefix, body.data, body.len);
		p->request_bytes = (int64_t)body.len;
		p->wordless = info.lines == 0;
	}
	if (rv == 0 && fork)
		rv = p->spec->model->dialect->results(body.data + info.head_len,
						      body.len - info.head_len, foreign_result, p,
						      err);
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
	(void)record_results(r, SIZE_MAX, '\n', &line);
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

/* If a warning about time comes next in the record, sets the clock so that it is due. */
static void set_clock(struct replay *p)
{
	const struct trace_event *e = record_peek(&p->rec);
	int64_t limit = p->spec->agent.limits.time_ms, least = limit - limit / 5, used;
	const json_t *warned = json_object_get(p->rec.content, "warned");

	if (e == NULL || e->kind != EVENT_Limit)
		return;
	for (size_t i = 0; i < json_array_size(warned); i++) {
		const char *word = json_string_value(json_array_get(warned, i));

		if (word == NULL || strcmp(word, "time") != 0)
			continue;
		used = told_seconds(&p->rec);
		used = used < 0 ? least : used * 1000;
		p->now = p->agent.started_ms + MAX(used, least);
		p->now = MIN(p->now, p->agent.deadline_ms - 1);
	}
}

static void replay_world_take_results(struct replay *p, const struct turn *t)
{
	for (unsigned i = 0; t != NULL && i < t->ncalls; i++) {
		struct turn_call *c = &t->calls[i];

		if (!c->answered || c->recorded || p->rec.stopped)
			continue;
		if (!record_expect(&p->rec, EVENT_ToolResult))
			return;
		replay_check_result(p, c);
		record_take(&p->rec);
		c->recorded = true;
	}
}

/* The record has results of calls that were not run, or that a person answered, once all
 * of the turn are there, and before the notices about limits. */
static void take_last_results(struct replay *p)
{
	const struct agent *a = &p->agent;

	if (a->state == AGENT_TOOLS && a->turn != NULL && a->answered == a->turn->ncalls)
		replay_world_take_results(p, a->turn);
}

static int64_t replay_now(struct agent *a)
{
	struct replay *p = replay_of(a);

	take_last_results(p);
	if (a->state == AGENT_TOOLS)
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
		rv = spec_amend(p->spec, spec, NULL);
	if (rv == 0 && json_get_str(spec, "model")) /* another model has another window */
		p->agent.at.window = p->agent.at.output_max = 0;
	json_decref(o);
	return rv;
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

	while (rv == 0 && record_line(&p->rec, &line, &len) == RECORD_AMENDMENT) {
		struct model before = *p->spec->model;
		bool as_sent = replay_request_is(p);

		if (as_sent && (len < sizeof(form) || memcmp(line, form, sizeof(form) - 1) != 0))
			break;
		rv = amend(p, line, len);
		if (rv == 0 && as_sent && !replay_request_is(p)) /* it is of a later request */
			return spec_set_model(p->spec, &before, NULL);
		record_pass(&p->rec);
		if (rv == 0)
			rv = replay_rehash(p, false, NULL);
	}
	return rv;
}

static int replay_infer(struct agent *a, const struct agent_infer *call)
{
	struct replay *p = replay_of(a);
	const struct trace_event *e = record_peek(&p->rec);
	int rv;

	p->started = e != NULL && e->kind == EVENT_InferStart;
	if (!p->started) /* the run ended before the call, or before it was accepted */
		return record_end_iterations(&p->rec) == call->iteration - 1 && !call->again
			       ? replay_failure_code(p)
			       : 0;
	rv = replay_amend(p);
	if (rv != 0)
		return rv;
	replay_check_infer(p, call);
	if (call->iteration == p->seek && !p->rec.stopped) {
		p->found = p->rec.at;
		p->rec.stopped = true;
		return 0;
	}
	record_take(&p->rec);
	replay_check_position(p);
	return 0;
}

static void replay_infer_stop(struct agent *a) {}

/* ---- room in the window */

static struct call_ref replay_world_call_name(size_t k, void *user)
{
	const struct replay *p = user;

	return k < p->ncalls ? p->calls[k].ref : (struct call_ref){0};
}

/* Compares a context edit with the record, its lines and its event, and applies it. */
static void take_room(struct replay *p, const struct context_edit *edit)
{
	size_t left = p->rec.len - p->rec.at, n = MIN(edit->lines.len, left);
	const char *line;
	size_t len;

	if (!record_expect(&p->rec, EVENT_ContextEdit) ||
	    (!record_same(&p->rec, "what was taken out of the conversation",
			  p->rec.file + p->rec.at, n, edit->lines.data, edit->lines.len) &&
	     !p->rec.lenient))
		return;
	for (size_t i = 0; i < edit->nremoved; i++)
		repeat_removed(p->agent.at.repeats, edit->removed[i]);
	while (record_line(&p->rec, &line, &len) == RECORD_AMENDMENT) {
		p->room_rv = amend(p, line, len);
		record_pass(&p->rec);
	}
	if (p->room_rv == 0)
		p->room_rv = replay_rehash(p, false, NULL);
	record_take(&p->rec);
}

static int replay_compact(struct agent *a, const struct agent_compact *c)
{
	struct replay *p = replay_of(a);
	struct context_ask ask = {
		.dialect = p->spec->model->dialect,
		.want = *c,
		.repeats = a->at.repeats,
		.name = replay_world_call_name,
		.user = p,
	};
	struct context_edit edit = {0};

	p->room_rv = context_edit(&edit, &ask, p->rec.file, p->rec.at, NULL);
	if (p->room_rv == 0 && edit.lines.len > 0) {
		take_room(p, &edit);
	} else if (p->room_rv != 0 && record_expect(&p->rec, EVENT_Error)) {
		record_check(&p->rec, "the class of the error", "class", "context");
		record_take(&p->rec);
	}
	p->room = edit.bytes;
	context_edit_fini(&edit);
	return 0;
}

/* ---- writing */

static int64_t replay_save_reply(struct agent *a, const struct turn *t, bool wait)
{
	struct replay *p = replay_of(a);

	for (uint32_t n = t->wire_len > 0 ? jsonl_count(t->wire, t->wire_len) + 1 : 0; n > 0; n--)
		record_pass(&p->rec);
	messages_hash(&p->prefix, &p->wordless, t->wire, t->wire_len);
	for (unsigned i = 0; i < t->ncalls; i++) /* results of the calls come next in the file */
		if (replay_world_add_call(p, (struct call_ref){p->agent.at.iteration, i + 1}) != 0)
			return AVA_ENOMEM;
	for (unsigned i = 0; i < t->ncalls && record_expect(&p->rec, EVENT_ToolCall); i++) {
		record_check(&p->rec, "the call", "callId", t->calls[i].id);
		record_take(&p->rec);
	}
	replay_world_take_results(p, t);
	p->saves_due += wait;
	return t->wire_len > 0 ? (int64_t)t->wire_len + 1 : 0;
}

static int replay_tool_start(struct agent *a, unsigned call)
{
	return 0; /* the call's result is in the record */
}

static void replay_tools_stop(struct agent *a) {}

/* The words of people, which stand behind the machine's notices in the recorded line: a
 * text each, or all in one with blank lines between them. */
static unsigned replay_world_said(const char *line, size_t len, struct arena *mem,
				  const char *const *notices, unsigned nnotices, const char **out)
{
	json_t *message = json_parse(line, len, NULL), *block;
	const json_t *content = json_object_get(message, "content");
	const char *all = json_string_value(content);
	unsigned texts = 0, n = 0;
	size_t i;

	json_array_foreach(content, i, block)
	{
		const char *s = json_get_str(block, "text");

		if (s == NULL || strcmp(json_str(block, "type"), "text") != 0)
			continue;
		if (texts++ >= nnotices && n < SAID_MAX)
			out[n++] = arena_copy(mem, s, strlen(s));
	}
	for (i = 0; all != NULL && i < nnotices; i++) {
		size_t skip = strlen(notices[i]) + 2;

		all = strlen(all) > skip ? all + skip : NULL;
	}
	if (all != NULL)
		out[n++] = arena_copy(mem, all, strlen(all));
	json_decref(message);
	return n;
}

/* The number of lines that the results take; words of people count like one notice. */
static size_t replay_world_lines_of(const struct replay *p, const struct turn *t,
				    const char **notices, unsigned n)
{
	struct buf mine;
	size_t lines = 0;

	buf_init(&mine, LINES_MAX);
	if (p->agent.steers > 0)
		notices[n] = "x";
	if (p->spec->model->dialect->encode_results(&mine, t, notices, n + (p->agent.steers > 0)) ==
		    0 &&
	    mine.len > 0)
		lines = 1;
	for (size_t i = 0; i < mine.len; i++)
		lines += mine.data[i] == '\n';
	buf_fini(&mine);
	return lines;
}

/* The machine's line (or lines) of results; compared with the recorded ones. */
static int64_t add_results(struct replay *p, struct turn *t, const char *const *notices,
			   unsigned nnotices)
{
	const char *all[SAID_MAX + AGENT_NRESOURCES + 8], *last;
	struct buf recorded, mine;
	size_t lines, skip;
	unsigned n = MIN(nnotices, (unsigned)ARRAY_LEN(all) - SAID_MAX);
	int64_t added = 0;
	int rv;

	for (unsigned i = 0; i < n; i++) /* n may be 0 with `notices` NULL */
		all[i] = notices[i];
	(void)record_peek(&p->rec); /* a difference is told with this event */
	buf_init(&recorded, LINES_MAX);
	buf_init(&mine, LINES_MAX);
	lines = record_results(&p->rec, replay_world_lines_of(p, t, all, n), '\n', &recorded);
	if (p->agent.steers > 0 && lines > 0) {
		last = memrchr(recorded.data, '\n', recorded.len);
		skip = last != NULL ? (size_t)(last + 1 - recorded.data) : 0;
		n += replay_world_said(recorded.data + skip, recorded.len - skip, &t->mem, notices,
				       nnotices, all + n);
	}
	rv = p->spec->model->dialect->encode_results(&mine, t, all, n);
	if (rv != 0) {
		added = rv;
	} else if (lines == 0 && mine.len > 0) {
		record_cut(&p->rec, "the record ends before the results were written");
	} else if (mine.len > 0 &&
		   !record_same(&p->rec, "the line of results", recorded.data, recorded.len,
				mine.data, mine.len) &&
		   !p->rec.lenient) {
		added = 0;
	} else if (lines > 0) {
		messages_hash(&p->prefix, &p->wordless, recorded.data, recorded.len);
		while (lines-- > 0)
			record_pass(&p->rec);
		added = (int64_t)recorded.len + 1;
	}
	buf_fini(&recorded);
	buf_fini(&mine);
	return added;
}

static int64_t replay_save_results(struct agent *a, struct turn *t, const char *const *notices,
				   unsigned nnotices, unsigned warned)
{
	struct replay *p = replay_of(a);
	const struct trace_event *e;

	replay_world_take_results(p, t);
	e = record_peek(&p->rec);
	if (e != NULL && e->kind == EVENT_Limit) /* the line of results says the same */
		record_take(&p->rec);
	return p->rec.stopped ? 0 : add_results(p, t, notices, nnotices);
}

/* Passes questions that nobody will answer any more. */
static void take_questions(struct replay *p)
{
	const struct trace_event *e;

	while ((e = record_peek(&p->rec)) != NULL && e->kind == EVENT_Waiting)
		record_take(&p->rec);
}

static void replay_save_end(struct agent *a, const struct agent_end *end)
{
	struct replay *p = replay_of(a);
	bool open = a->turn != NULL && a->turn->ncalls > 0 && a->reply_saved;
	const struct trace_event *e;
	struct usage u;

	take_questions(p);
	replay_world_take_results(p, open ? a->turn : NULL);
	e = record_peek(&p->rec);
	if (e != NULL && e->kind == EVENT_InferEnd) { /* a cut call costs its estimate */
		record_usage(p->rec.content, p->rec.meta, &u);
		agent_charge(&p->agent, &u);
		record_take(&p->rec);
	}
	take_questions(p);
	if (open && !p->rec.stopped)
		(void)add_results(p, a->turn, NULL, 0);
	replay_check_end(p, end);
	p->saves_due++;
}

static void replay_done(struct agent *a)
{
	replay_of(a)->done = true;
}

/* ---- people */

/* Does the question that was just asked stay without an answer? */
static bool expires(struct replay *p)
{
	struct record *r = &p->rec;
	size_t next = r->next;
	bool found, waits = false;

	while ((found = record_find(r, EVENT_Waiting)) && record_asks(r)) { /* after a restart */
		waits |= record_waits(r);
		r->next = (size_t)(r->seen - r->events->events) + 1;
	}
	r->next = next;
	return found && !waits && strcmp(json_str(r->content, "state"), "expired") == 0;
}

static int replay_ask(struct agent *a, unsigned call, const struct agent_ask *q, int64_t *until_ms)
{
	struct replay *p = replay_of(a);
	char id[24];

	if (call == AGENT_ASK_QUOTA)
		snprintf(id, sizeof(id), "i%d.q%u", (int)a->at.iteration, ++p->parked);
	else if (call == AGENT_ASK_LIMIT)
		snprintf(id, sizeof(id), "i%d", (int)a->at.iteration + 1);
	else
		snprintf(id, sizeof(id), "%s", a->turn->calls[call].id);
	/* No event for a question that was open when the run was carried on. */
	if (strcmp(p->asked, id) != 0 && record_expect(&p->rec, EVENT_Waiting)) {
		record_check(&p->rec, "the call that is asked about", "callId", id);
		record_take(&p->rec);
	}
	snprintf(p->asked, sizeof(p->asked), "%s", id);
	*until_ms = expires(p) ? p->now : INT64_MAX;
	return 0;
}

static void replay_ask_end(struct agent *a, unsigned call, enum agent_asked how)
{
	static const char *const states[] = {
		[ASKED_ANSWERED] = "answered",
		[ASKED_REFUSED] = "refused",
		[ASKED_EXPIRED] = "expired",
	};
	struct replay *p = replay_of(a);
	const char *line;
	size_t len;

	if (record_expect(&p->rec, EVENT_Waiting)) {
		record_check(&p->rec, "what became of the question", "state", states[how]);
		record_take(&p->rec);
	}
	p->asked[0] = '\0';
	/* The raised limit is the next amendment. */
	if (call == AGENT_ASK_LIMIT && how == ASKED_ANSWERED &&
	    record_line(&p->rec, &line, &len) == RECORD_AMENDMENT) {
		if (amend(p, line, len) != 0)
			p->rv = AVA_ECORRUPT;
		record_pass(&p->rec);
	}
	/* The person may have named another model. */
	if (call == AGENT_ASK_QUOTA && how == ASKED_ANSWERED &&
	    record_find(&p->rec, EVENT_InferStart) && replay_amend(p) != 0)
		p->rv = AVA_ENOMEM;
	p->saves_due++;
}

/* Shared limits that are near (others' usage, the group's clock), from the Limit event. */
static void replay_shared(struct agent *a, struct agent_shared *out)
{
	struct replay *p = replay_of(a);
	const struct trace_event *e;
	const json_t *list, *one;
	int decimals;
	size_t i;

	take_last_results(p);
	e = record_peek(&p->rec);
	list = json_object_get(p->rec.content, "shared");
	if (e == NULL || e->kind != EVENT_Limit || list == NULL)
		return;
	json_array_foreach(list, i, one)
	{
		const char *name = json_get_str(one, "limit");

		for (unsigned s = 0; name != NULL && s < AGENT_NSHARES; s++) {
			if (strcmp(agent_share_names[s], name) != 0)
				continue;
			out->near |= 1u << s;
			decimals = s == SHARE_GROUP_TIME ? 3 : 4;
			out->of[s].used = json_get_fixed(one, "used", decimals, 0);
			out->of[s].limit = json_get_fixed(one, "of", decimals, 0);
		}
	}
	out->last = json_get_bool(p->rec.content, "last", false);
	record_take(&p->rec);
}

const struct agent_io replay_io = {
	.now = replay_now,
	.wake_at = replay_wake_at,
	.slot_want = replay_slot_want,
	.slot_drop = replay_slot_drop,
	.infer = replay_infer,
	.infer_stop = replay_infer_stop,
	.save_reply = replay_save_reply,
	.tool_start = replay_tool_start,
	.tools_stop = replay_tools_stop,
	.save_results = replay_save_results,
	.save_end = replay_save_end,
	.done = replay_done,
	.compact = replay_compact,
	.ask = replay_ask,
	.ask_end = replay_ask_end,
	.shared = replay_shared,
};

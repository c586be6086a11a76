/* The machine in a world that answers from a record; replay.h.
 *
 * Each wish of the machine is compared with the record (replay_record.c), and
 * each thing that it waits for comes from the record: a reply is its line of
 * messages.jsonl with the numbers of its InferEnd, a tool's output the text in
 * the line of results, a person's answer that of the Waiting event. Time stands
 * still unless the record tells that it ran out or was near its limit.
 *
 * Happy path: agent_run until it waits, one thing from the record, again, until
 * DONE. A record without an end is replayed as far as it goes. Files and memory
 * can fail; a difference is no failure but the outcome. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/position.h"
#include "agent/prompt.h"
#include "base/error.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "provider/messages.h"
#include "provider/stream.h"
#include "subagent/record.h"
#include "subagent/replay_world.h"

/* ---- arrivals */

static void replay_drive_out_of_memory(struct replay *p)
{
	p->rv = AVA_ENOMEM;
	p->rec.stopped = true;
}

int replay_failure_code(const struct replay *p)
{
	const char *reason = json_str(p->rec.end, "stopReason");

	if (strcmp(reason, "folder_gone") == 0)
		return AVA_ENOENT;
	return strcmp(reason, "cost") == 0 ? AVA_EBUDGET : AVA_ECONNECT;
}

/* Is the next event a question about a quota? */
static bool parks(struct replay *p)
{
	const struct trace_event *e = record_peek(&p->rec);

	return e != NULL && e->kind == EVENT_Waiting && record_asks(&p->rec) &&
	       strcmp(json_str(p->rec.content, "kind"), "quota") == 0;
}

/* The run was parked at the gate, before the model was asked. */
static bool feed_parked(struct replay *p)
{
	if (p->started || !parks(p))
		return false;
	agent_on_parked(&p->agent, false, reply_class_word(REPLY_RATE_LIMIT), "");
	return true;
}

static void feed_failure(struct replay *p)
{
	struct record *r = &p->rec;
	json_t *content = json_incref(r->content);
	const char *class = json_str(content, "errorClass");
	const char *sentence = json_str(content, "error");
	struct agent_told told;
	struct usage u;

	record_usage(content, r->meta, &u);
	record_take(r);
	agent_charge(&p->agent, &u);
	if (record_told(content, &told) || strcmp(class, reply_class_word(REPLY_OVERFLOW)) == 0)
		agent_on_refused(&p->agent, &told, class, sentence);
	else if (parks(p))
		agent_on_parked(&p->agent, true, reply_class_word(REPLY_RATE_LIMIT), sentence);
	else if (!record_find(r, EVENT_InferStart) ||
		 json_get_int(r->meta, "iteration", -1) != p->agent.at.iteration)
		agent_on_reply(&p->agent, replay_failure_code(p), NULL, class, sentence);
	else if (replay_amend(p) != 0)
		replay_drive_out_of_memory(p);
	else
		agent_on_again(&p->agent);
	json_decref(content);
}

/* Had the reply neither text nor calls? Then it has no line. */
static bool reply_is_empty(const struct replay *p)
{
	const struct record *r = &p->rec;
	const char *line;
	size_t len;

	static const char thought[] = "(" NOTICE_THOUGHT ")";
	const char *said = json_str(r->content, "responsePreview");

	if (strcmp(json_str(r->content, "stopReason"), "pause_turn") == 0 ||
	    (said[0] != '\0' && strncmp(said, thought, sizeof(thought) - 1) != 0))
		return false;
	for (size_t i = r->next + 1; i < r->events->n; i++) {
		int kind = r->events->events[i].kind;

		if (kind == EVENT_ToolCall)
			return false;
		if (kind != EVENT_CostUpdate && kind != EVENT_ExtendedThinking)
			break;
	}
	return record_line(r, &line, &len) != RECORD_ASSISTANT;
}

/* The turn of the InferEnd looked at, with the reply's lines in messages.jsonl. */
static int turn_from(struct replay *p, struct turn *t)
{
	struct buf lines;
	int rv = AVA_ENOENT;

	t->stop = record_stop(json_get_str(p->rec.content, "stopReason"));
	record_usage(p->rec.content, p->rec.meta, &t->usage);
	if (reply_is_empty(p))
		return 0;
	buf_init(&lines, REPLAY_FILE_MAX);
	if (record_reply(&p->rec, ',', &lines) > 0)
		rv = p->spec->model->dialect->open_calls(lines.data, lines.len, t, NULL);
	buf_reset(&lines);
	if (rv == 0 && record_reply(&p->rec, '\n', &lines) > 0) {
		t->wire = arena_copy(&t->mem, lines.data, lines.len);
		t->wire_len = lines.len;
	}
	if (rv == 0 && (buf_check(&lines) != 0 || t->wire == NULL))
		rv = AVA_ENOMEM;
	buf_fini(&lines);
	return rv;
}

static bool feed_reply(struct replay *p)
{
	const struct trace_event *e = record_peek(&p->rec);
	struct turn *t;
	int rv;

	if (e == NULL || !p->started) {
		record_cut(&p->rec, "the record ends in a call of the model");
		return false;
	}
	if (e->kind != EVENT_InferEnd) {
		record_other(&p->rec, "InferEnd");
		return false;
	}
	if (json_get_str(p->rec.content, "errorClass") != NULL) {
		feed_failure(p);
		return true;
	}
	t = turn_new();
	rv = t != NULL ? turn_from(p, t) : AVA_ENOMEM;
	if (rv == 0)
		replay_mend_reply(p, t);
	if (rv != 0 || p->rec.stopped) {
		turn_free(t);
		if (rv == AVA_ENOMEM)
			replay_drive_out_of_memory(p);
		else if (rv != 0)
			record_differs(&p->rec, "its line of messages.jsonl", "a reply",
				       "none that can be read");
		return false;
	}
	record_take(&p->rec);
	/* People spoke before this reply was taken, if the next results tell it. */
	if (record_find(&p->rec, EVENT_InferStart) && record_noticed(&p->rec, "steering"))
		agent_on_steer(&p->agent);
	p->rec.out->turns++;
	agent_on_reply(&p->agent, 0, t, NULL, NULL);
	return true;
}

static bool feed_tool(struct replay *p)
{
	const struct trace_event *e = record_peek(&p->rec);
	struct turn *t = p->agent.turn;
	const char *id = json_get_str(p->rec.content, "callId");

	if (e == NULL) {
		record_cut(&p->rec, "the record ends while tools are at work");
		return false;
	}
	for (unsigned i = 0; e->kind == EVENT_ToolResult && id != NULL && i < t->ncalls; i++) {
		struct turn_call *c = &t->calls[i];

		if (!c->started || c->answered || strcmp(c->id, id) != 0)
			continue;
		if (!replay_take_result(p, i))
			return false;
		/* false: the runtime itself wrote the result. */
		c->ran = json_get_bool(p->rec.content, "ran", false);
		record_take(&p->rec);
		agent_on_tool(&p->agent, i);
		return true;
	}
	record_other(&p->rec, "a ToolResult of an open call");
	return false;
}

static bool feed_answer(struct replay *p)
{
	struct record *r = &p->rec;
	const struct trace_event *e;
	const char *state;

	while ((e = record_peek(r)) != NULL && e->kind == EVENT_Waiting && record_asks(r)) {
		if (record_waits(r) && p->agent.over >= AGENT_PARKED)
			agent_on_wait(&p->agent, INT64_MAX);
		record_take(r); /* asked once more after a restart */
	}
	if (e == NULL) {
		record_cut(r, "the record ends while it waits for a person");
		return false;
	}
	state = json_get_str(r->content, "state");
	if (e->kind != EVENT_Waiting || state == NULL) {
		record_other(r, "an answer (Waiting)");
		return false;
	}
	if (strcmp(state, "expired") == 0 && p->agent.over == AGENT_WAITS) {
		p->agent.ask_until_ms = p->now;
		return true;
	}
	if (agent_on_answer(&p->agent, json_str(r->content, "answer"),
			    strcmp(state, "answered") == 0) != 0) {
		replay_drive_out_of_memory(p);
		return false;
	}
	return true;
}

/* ---- ends from outside of the machine */

/* Is the event part of an end? Stopped calls of tools and the model are, too. */
static bool stopped_by_end(const struct record *r, const struct trace_event *e)
{
	const char *class = json_str(r->content, "errorClass");
	const char *output = json_str(r->content, "output");

	switch (e->kind) {
	case EVENT_Exhausted:
	case EVENT_Error:
	case EVENT_SubagentComplete:
		return true;
	case EVENT_InferEnd:
		return strcmp(class, "cancelled") == 0;
	case EVENT_Waiting:
		return strcmp(json_str(r->content, "state"), "stopped") == 0;
	case EVENT_ToolResult:
		return class[0] != '\0' && strcmp(class, "unknown_tool") != 0 &&
		       (strncmp(output, "stopped: ", 9) == 0 ||
			strncmp(output, "not run: the run ", 17) == 0);
	default:
		return false;
	}
}

enum outside { OUTSIDE_NOTHING, OUTSIDE_CANCEL, OUTSIDE_TIME, OUTSIDE_CRASH, OUTSIDE_OTHER };

/* Is the next thing in the record an end that the machine did not choose? */
static enum outside replay_drive_outside(struct replay *p)
{
	const struct trace_event *e = record_peek(&p->rec);
	const char *status = json_str(p->rec.end, "status");

	if (e == NULL || p->rec.end == NULL || !stopped_by_end(&p->rec, e))
		return OUTSIDE_NOTHING;
	if (strcmp(status, "cancelled") == 0)
		return OUTSIDE_CANCEL;
	if (strcmp(json_str(p->rec.end, "stopReason"), "interrupted") == 0)
		return OUTSIDE_CRASH;
	return strcmp(status, "timeout") == 0 ? OUTSIDE_TIME : OUTSIDE_OTHER;
}

/* Had the run asked the model once more when the end came, before that was written? */
static bool asks_first(const struct replay *p)
{
	return !p->agent.asked && record_end_iterations(&p->rec) > p->agent.at.iteration;
}

/* Must calls be started first? Those that the end stopped had begun before it came. */
static bool begins_first(const struct replay *p)
{
	const struct turn *t = p->agent.turn;

	if (t == NULL || strncmp(json_str(p->rec.content, "output"), "stopped: ", 9) != 0)
		return false;
	for (unsigned i = 0; i < t->ncalls; i++)
		if (t->calls[i].started)
			return false;
	return p->agent.state != AGENT_TOOLS;
}

/* Brings about an end from outside, if it is next in the record; false: it is not. */
static bool feed_end(struct replay *p)
{
	switch (replay_drive_outside(p)) {
	case OUTSIDE_CANCEL:
		if (p->agent.cancelled || p->agent.ending || asks_first(p) || begins_first(p))
			return false;
		agent_cancel(&p->agent);
		return true;
	case OUTSIDE_TIME:
		if (p->agent.ending || asks_first(p) || p->now >= p->agent.deadline_ms)
			return false;
		if (p->agent.deadline_ms == INT64_MAX) /* queued: the group's time was over */
			p->agent.deadline_ms = p->now;
		p->now = p->agent.deadline_ms;
		return true;
	case OUTSIDE_CRASH:
		record_cut(&p->rec, "the runtime stopped while it was at work");
		return false;
	default:
		return false;
	}
}

/* The run wanted to ask the model, and the gate or a budget refused the call. */
static bool feed_refusal(struct replay *p)
{
	json_t *error;

	if (replay_drive_outside(p) != OUTSIDE_OTHER || p->started)
		return false;
	error = record_find(&p->rec, EVENT_Error) ? json_incref(p->rec.content) : NULL;
	agent_on_reply(&p->agent, replay_failure_code(p), NULL, json_get_str(error, "class"),
		       json_get_str(error, "message"));
	json_decref(error);
	return true;
}

/* Gives the machine one thing that it waits for. false: the record has none. */
static bool feed(struct replay *p)
{
	struct agent *a = &p->agent;

	if (p->saves_due > 0) {
		p->saves_due--;
		agent_on_saved(a);
		return true;
	}
	if (feed_end(p))
		return true;
	if (p->rec.stopped)
		return false;
	if (p->slot_wanted && !a->have_slot) {
		p->slot_wanted = false;
		agent_on_slot(a);
		return true;
	}
	if (a->compacting) {
		agent_on_compacted(a, p->room_rv, &p->room);
		return true;
	}
	if (a->asked && !a->reply_ready)
		return feed_parked(p) || feed_refusal(p) || feed_reply(p);
	if (a->state == AGENT_TOOLS)
		return feed_tool(p);
	if (a->state == AGENT_WAITING && a->asking > 0 && !a->ask_given)
		return feed_answer(p);
	record_cut(&p->rec, "the machine waits for what no record tells");
	return false;
}

/* A carried-on run that waited for a person takes its last reply again (agent/position.h):
 * calls that have their yes come first. */
static void reply_again(struct replay *p)
{
	struct agent *a = &p->agent;
	struct agent_position at;
	uint16_t steers = a->steers;
	struct turn *t = a->turn;

	for (unsigned i = 0; i < t->ncalls; i++) {
		if (t->calls[i].answered)
			continue;
		t->calls[i].unstarted = true;
		t->calls[i].tool = NULL;
	}
	agent_position_of(a, p->now, &at);
	agent_init(a, &replay_io, &p->spec->agent, p, 0);
	agent_restore(a, &at, a->reply_error);
	agent_resume_counted(a, t);
	a->steers = steers;
	p->saves_due = 0; /* all written before the stop is durable */
}

static void drive(struct replay *p)
{
	const struct agent *a = &p->agent;
	const struct trace_event *left;

	(void)feed_end(p); /* the run may have been cancelled in the queue */
	for (;;) {
		/* The last result of a turn is written together with the line of all of them:
		 * a process that stopped behind that result had written the line. */
		if (p->rec.carried && (a->state != AGENT_TOOLS || a->turn == NULL ||
				       a->answered != a->turn->ncalls)) {
			p->rec.carried = false;
			if (a->state == AGENT_WAITING && a->turn != NULL)
				reply_again(p);
		}
		agent_run(&p->agent);
		if (p->rec.stopped || p->done)
			break;
		if (!feed(p))
			break;
		if (p->saves_due == 0 && !p->agent.ending)
			(void)feed_end(p);
	}
	left = p->done && !p->rec.stopped ? record_peek(&p->rec) : NULL;
	if (left != NULL)
		record_other(&p->rec, "nothing: it had ended");
	p->rec.out->complete = p->done && p->rec.out->ndiffs == 0;
}

/* ---- the beginning */

static int replay_drive_read_spec(struct replay *p, struct ava_error *err)
{
	const char *line;
	json_t *spec = NULL;
	size_t n;
	int rv = spec_first_line(p->rec.file, p->rec.len, &spec, err);

	(void)jsonl_next(p->rec.file, p->rec.len, &p->rec.at, &line, &n);
	if (rv == 0)
		rv = spec_from_json(&p->spec, spec, "", "", "", err);
	p->rec.spec = p->spec;
	if (rv == 0)
		replay_check_spec(p, spec);
	json_decref(spec);
	return rv;
}

/* Is the request so far the one of the first call? */
static bool is_first_request(const struct replay *p)
{
	const char *hash = json_get_str(p->rec.content, "prefixHash");
	char mine[HASH_HEX_LEN + 1];

	hash_sha256_with(&p->prefix, "", 0, mine);
	return hash == NULL || strcmp(hash, mine) == 0;
}

/* A fork begins with the lines of the run before it, up to all that the first call
 * was sent. Results in them belong to no calls of this run. */
static int begin_fork(struct replay *p, struct ava_error *err)
{
	enum record_line kind;
	const char *line;
	size_t len;
	int rv = replay_rehash(p, false, err);

	(void)record_find(&p->rec, EVENT_InferStart);
	while (rv == 0 && !is_first_request(p) &&
	       (kind = record_line(&p->rec, &line, &len)) != RECORD_NO_LINE) {
		record_pass(&p->rec);
		if (kind == RECORD_AMENDMENT)
			rv = replay_rehash(p, false, err);
		else
			messages_hash(&p->prefix, &p->wordless, line, len);
	}
	return rv == 0 ? replay_rehash(p, true, err) : rv;
}

/* Takes head and first message, and starts the machine. */
static int replay_drive_begin(struct replay *p, struct ava_error *err)
{
	const char *line;
	size_t len;
	int rv;

	if (record_find(&p->rec, EVENT_SubagentSpawn) &&
	    json_str(p->rec.content, "resumedFrom")[0] != '\0') {
		rv = begin_fork(p, err);
	} else {
		while (record_line(&p->rec, &line, &len) == RECORD_AMENDMENT)
			record_pass(&p->rec);
		if (record_line(&p->rec, &line, &len) == RECORD_USER)
			record_pass(&p->rec);
		rv = replay_rehash(p, false, err);
	}
	if (rv == 0)
		agent_init(&p->agent, &replay_io, &p->spec->agent, p, p->request_bytes);
	return rv;
}

/* Replays the whole run, or up to p->seek. Differences stand in the report. */
static int execute(struct replay *p, int root_fd, const char *run, struct ava_error *err)
{
	int rv = record_open(&p->rec, root_fd, run, err);

	if (rv == 0)
		rv = replay_drive_read_spec(p, err);
	if (rv == 0)
		rv = replay_drive_begin(p, err);
	if (rv == 0) {
		if (!p->rec.stopped)
			drive(p);
		agent_fini(&p->agent);
		if (p->rv != 0)
			rv = err_set(err, p->rv, "%s: %s", run, ava_strerror(p->rv));
	}
	free(p->calls);
	spec_free(p->spec);
	record_close(&p->rec);
	return rv;
}

int replay_run(int root_fd, const char *run, const struct redact *redact, bool lenient,
	       struct replay_report *out, struct ava_error *err)
{
	struct replay p = {.rec = {.redact = redact, .lenient = lenient, .out = out}};

	*out = (struct replay_report){.reason = ""};
	return execute(&p, root_fd, run, err);
}

int replay_seek(int root_fd, const char *run, int iteration, size_t *at, struct ava_error *err)
{
	struct replay_report out = {.reason = ""};
	struct replay p = {.rec.out = &out, .seek = iteration};
	int rv = execute(&p, root_fd, run, err);

	if (rv == 0 && out.ndiffs > 0)
		rv = err_set(err, AVA_ECORRUPT,
			     "the record of %s does not replay up to call %d: event %" PRIu64
			     ", %s (ava replay %s says more)",
			     run, iteration, out.diffs[0].seq, out.diffs[0].what, run);
	else if (rv == 0 && p.found == 0)
		rv = err_set(err, AVA_ENOENT, "%s made no call %d of its model", run, iteration);
	if (rv == 0)
		*at = p.found;
	return rv;
}

/* A run whose models, tools, people and clock are a record; replay.h.
 *
 * What the run would commit is compared with the record (replay_record.c), and
 * each thing that it waits for comes from the record: a reply is its line of
 * messages.jsonl with the numbers of its InferEnd, a tool's output the text in
 * the line of results, a person's answer that of the Waiting event. Time stands
 * still unless the record tells that it ran out or was near its limit.
 *
 * Happy path: agent_run until it waits, one thing from the record, again, until
 * DONE. A reply that restarts took again is given once, as the last of them
 * gave it (replay_take_up). A record without an end is replayed as far as it goes. Files
 * and memory can fail; a difference is no failure but the outcome. */
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
#include "subagent/person.h"
#include "subagent/proof.h"
#include "subagent/record.h"
#include "subagent/replay_world.h"

/* ---- arrivals */

int replay_failure_code(const struct replay *p)
{
	const char *reason = json_str(p->rec.end, "stopReason");

	if (strcmp(reason, "folder_gone") == 0)
		return AVA_ENOENT;
	return strcmp(reason, "cost") == 0 ? AVA_EBUDGET : AVA_ECONNECT;
}

/* Is the next event a question about a quota? Then the run is parked as it says. */
static bool parks(struct replay *p)
{
	const struct trace_event *e = record_peek(&p->rec);

	if (e == NULL || e->kind != EVENT_Waiting || !record_asks(&p->rec) ||
	    strcmp(json_str(p->rec.content, "kind"), "quota") != 0)
		return false;
	park_restore(&p->run, p->rec.content, 0);
	return true;
}

/* Looks at the next InferStart: is it another attempt at the same call? */
static bool starts_again(struct replay *p)
{
	return record_find(&p->rec, EVENT_InferStart) &&
	       json_get_int(p->rec.meta, "iteration", -1) == p->run.agent.at.iteration;
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
	p->run.call.id[0] = '\0';
	agent_charge(&p->run.agent, &u);
	if (record_told(content, &told) || strcmp(class, reply_class_word(REPLY_OVERFLOW)) == 0)
		agent_on_refused(&p->run.agent, &told, class, sentence);
	else if (parks(p))
		agent_on_parked(&p->run.agent, true, reply_class_word(REPLY_RATE_LIMIT), sentence);
	else if (json_object_get(content, "retryInMs") == NULL &&
		 strcmp(class, "interrupted") != 0 && !starts_again(p))
		agent_on_reply(&p->run.agent, replay_failure_code(p), NULL, class, sentence);
	else if (starts_again(p) && replay_amend(p) != 0)
		replay_no_memory(p);
	else
		agent_on_again(&p->run.agent);
	json_decref(content);
}

/* Had the reply neither text nor calls? Then it has no line. */
static bool reply_is_empty(struct record *r)
{
	static const char thought[] = "(" NOTICE_THOUGHT ")";
	const char *said = json_str(r->content, "responsePreview"), *line;
	bool empty = said[0] == '\0' || strncmp(said, thought, sizeof(thought) - 1) == 0;
	size_t i = r->next + 1, len;

	empty = empty && strcmp(json_str(r->content, "stopReason"), "pause_turn") != 0 &&
		!record_scan(r, &i, EVENT_ToolCall);
	(void)record_peek(r);
	return empty && record_line(r, &line, &len) != LINE_REPLY;
}

/* The turn of the InferEnd looked at, with the reply's lines in messages.jsonl. */
static int turn_from(struct replay *p, struct turn *t)
{
	const struct dialect *d = p->run.spec->model->dialect;
	struct record ahead = p->rec;
	struct buf lines;
	size_t n, len;
	int rv;

	t->stop = record_stop(json_get_str(p->rec.content, "stopReason"));
	record_usage(p->rec.content, p->rec.meta, &t->usage);
	if (reply_is_empty(&p->rec))
		return 0;
	buf_init(&lines, REPLAY_FILE_MAX);
	n = record_lines(&p->rec, LINE_REPLY, d->line_an_item ? SIZE_MAX : 1, &lines);
	rv = n > 0 ? d->open_calls(lines.data, lines.len, t, NULL) : AVA_ENOENT;
	buf_fini(&lines);
	if (rv != 0)
		return rv;
	(void)record_line(&p->rec, &t->wire, &len); /* they follow each other in the file */
	while (n-- > 0)
		record_pass(&ahead);
	t->wire_len = (size_t)(p->rec.file + ahead.at - 1 - t->wire);
	return 0;
}

/* Messages of people that the next results behind event `i` tell were there before the reply was
 * taken; where a check follows, they came while it ran. */
static int hear(struct replay *p, size_t i)
{
	struct record *r = &p->rec;
	size_t check = i;
	int rv = 0;

	if (!record_scan(r, &check, EVENT_Check))
		check = SIZE_MAX;
	while (rv == 0 && record_scan(r, &i, EVENT_Steering) && i < check) {
		if (strcmp(json_str(r->content, "outcome"), "delivered") != 0)
			continue;
		rv = person_restore_said(&p->run, json_str(r->content, "steerId"), r->content);
		agent_on_steer(&p->run.agent);
	}
	return rv;
}

/* The turn's call that the event looked at names; NULL: none. */
static struct turn_call *call_named(const struct replay *p, const struct turn *t)
{
	const char *id = json_str(p->rec.content, "callId");

	for (unsigned i = 0; t != NULL && i < t->ncalls; i++)
		if (strcmp(t->calls[i].id, id) == 0)
			return &t->calls[i];
	return NULL;
}

/* Restarts took the reply, *taken*, again, the last one at event `last`: what was written before
 * that is taken from the record, and the machine sees the reply as that restart gave it. */
static int replay_take_up(struct replay *p, struct turn *t, size_t last)
{
	struct agent *a = &p->run.agent;
	struct record *r = &p->rec;
	struct agent_position at;
	int rv = commit_lines(&p->run, t->wire, t->wire_len) < 0
			 ? AVA_ENOMEM
			 : toolrun_count(&p->run, t->ncalls);

	p->run.rec.turn_open = t->ncalls > 0;
	p->run.rec.notices = 0;
	replay_flush(p, NULL);
	for (unsigned i = 0; i < t->ncalls; i++)
		snprintf(t->calls[i].id, sizeof(t->calls[i].id), "c%d.%u", (int)a->at.iteration,
			 i + 1);
	for (record_take(r); rv == 0 && record_peek(r) != NULL && r->next < last; record_take(r)) {
		struct turn_call *c = call_named(p, t);

		if (c != NULL && r->seen->kind == EVENT_ToolResult) {
			rv = replay_take_result(p, t, c);
			c->recorded = true;
		} else if (c != NULL && r->seen->kind == EVENT_Waiting && record_asks(r)) {
			rv = person_restore_question(&p->run, r->content, 0);
		} else if (c != NULL && r->seen->kind == EVENT_Waiting) {
			person_forget_question(&p->run);
			rv = restore_decision(r->content, t, c);
		}
	}
	agent_position_of(a, p->now, &at);
	agent_init(a, &replay_io, &p->run.spec->agent, &p->run, 0);
	agent_restore(a, &at, "");
	agent_resume_reply(a, t, t->wire_len > 0 ? (int64_t)t->wire_len + 1 : 0);
	return rv == 0 ? hear(p, last) : rv;
}

static bool feed_reply(struct replay *p)
{
	const struct trace_event *e = record_peek(&p->rec);
	struct turn *t;
	size_t last;
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
			replay_no_memory(p);
		else if (rv != 0)
			record_differs(&p->rec, "its line of messages.jsonl", "a reply",
				       "none that can be read");
		return false;
	}
	p->rec.out->turns++;
	last = record_restarted(&p->rec);
	if (last > 0) {
		rv = replay_take_up(p, t, last);
	} else {
		record_take(&p->rec);
		rv = hear(p, p->rec.next);
		agent_on_reply(&p->run.agent, 0, t, NULL, NULL);
	}
	if (rv != 0)
		replay_no_memory(p);
	return true;
}

static bool feed_tool(struct replay *p)
{
	struct draft *d = commit_draft(&p->run);
	const struct trace_event *e = record_peek(&p->rec);
	struct turn *t = p->run.agent.turn;
	struct turn_call *c = call_named(p, t);

	if (e == NULL) {
		record_cut(&p->rec, "the record ends while tools are at work");
		return false;
	}
	if (e->kind != EVENT_ToolResult || c == NULL || !c->started || c->answered) {
		record_other(&p->rec, "a ToolResult of an open call");
		return false;
	}
	if (d == NULL || replay_take_result(p, t, c) != 0) {
		replay_no_memory(p);
		return false;
	}
	record_tool_result(d, &p->run, c);
	c->recorded = true;
	replay_flush(p, NULL);
	agent_on_tool(&p->run.agent, (unsigned)(c - t->calls));
	return !p->rec.stopped;
}

static bool feed_check(struct replay *p)
{
	const struct trace_event *e = record_peek(&p->rec);
	struct draft *d = commit_draft(&p->run);
	json_t *content = json_incref(p->rec.content);
	struct proof proof;
	bool is = e != NULL && e->kind == EVENT_Check && proof_read(content, &proof);

	if (e == NULL)
		record_cut(&p->rec, "the record ends while its check runs");
	else if (!is)
		record_other(&p->rec, "the outcome of its check");
	else if (d == NULL)
		replay_no_memory(p);
	if (is && d != NULL) {
		record_check(d, &p->run, &proof);
		run_proof(&p->run, &proof);
		replay_flush(p, NULL);
		if (hear(p, p->rec.next) != 0)
			replay_no_memory(p);
		agent_on_checked(&p->run.agent, proof.how, proof.text);
	}
	json_decref(content);
	return is && !p->rec.stopped;
}

static bool feed_answer(struct replay *p)
{
	struct record *r = &p->rec;
	const struct trace_event *e;
	const char *state;

	while ((e = record_peek(r)) != NULL && e->kind == EVENT_Waiting && record_asks(r)) {
		if (record_waits(r) && p->run.agent.over >= AGENT_PARKED)
			agent_on_wait(&p->run.agent, INT64_MAX);
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
	if (strcmp(state, "expired") == 0) {
		p->run.agent.ask_until_ms = p->now;
		return true;
	}
	if (agent_on_answer(&p->run.agent, json_str(r->content, "answer"),
			    strcmp(state, "answered") == 0) != 0) {
		replay_no_memory(p);
		return false;
	}
	return true;
}

/* ---- ends from outside of the machine */

/* Is it a question that the end closed? */
static bool is_stopped(const struct record *r, const struct trace_event *e)
{
	return e->kind == EVENT_Waiting && strcmp(json_str(r->content, "state"), "stopped") == 0;
}

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
		return is_stopped(r, e);
	case EVENT_ToolResult:
		return class[0] != '\0' && strcmp(class, "unknown_tool") != 0 &&
		       (strncmp(output, "stopped: ", 9) == 0 ||
			strncmp(output, "not run: the run ", 17) == 0);
	default:
		return false;
	}
}

enum outside {
	OUTSIDE_NOTHING,
	OUTSIDE_CANCEL,
	OUTSIDE_TIME,
	OUTSIDE_BLOCKED,
	OUTSIDE_CRASH,
	OUTSIDE_OTHER,
};

/* Is it the result of a call that the machine has answered and not written? */
static bool is_unwritten(const struct replay *p, const struct trace_event *e)
{
	const struct turn_call *c = call_named(p, p->run.agent.turn);

	return e->kind == EVENT_ToolResult && c != NULL && c->answered && !c->recorded;
}

/* Does the record end here? An end writes the answers that were not written yet, behind an open
 * question; a position behind them says that the model got them before. */
static bool end_is_next(struct replay *p)
{
	struct record *r = &p->rec;
	const struct trace_event *e = record_peek(r);
	size_t i = r->next;

	while (e != NULL && (is_stopped(r, e) || is_unwritten(p, e)))
		e = record_behind(r, &i);
	return e != NULL && stopped_by_end(r, e);
}

/* Is the next thing in the record an end that the machine did not choose? */
static enum outside replay_drive_outside(struct replay *p)
{
	const char *status = json_str(p->rec.end, "status");

	if (p->rec.end == NULL || !end_is_next(p))
		return OUTSIDE_NOTHING;
	if (strcmp(status, "cancelled") == 0)
		return OUTSIDE_CANCEL;
	if (strcmp(json_str(p->rec.end, "stopReason"), "interrupted") == 0)
		return OUTSIDE_CRASH;
	if (strcmp(status, "not_started") == 0)
		return OUTSIDE_BLOCKED;
	return strcmp(status, "timeout") == 0 ? OUTSIDE_TIME : OUTSIDE_OTHER;
}

/* Had the run asked the model once more when the end came, before that was written? */
static bool asks_first(const struct replay *p)
{
	return !p->run.agent.asked && record_end_iterations(&p->rec) > p->run.agent.at.iteration;
}

/* Must a call be started first? Where the end stopped it at work, it had begun before. */
static bool begins_first(const struct replay *p)
{
	const struct turn_call *c = call_named(p, p->run.agent.turn);

	return c != NULL && !c->started && json_get_bool(p->rec.content, "ran", false);
}

/* Brings about an end from outside, if it is next in the record; false: it is not. */
static bool feed_end(struct replay *p)
{
	switch (replay_drive_outside(p)) {
	case OUTSIDE_CANCEL:
		if (p->run.agent.cancelled || p->run.agent.ending || asks_first(p) ||
		    begins_first(p))
			return false;
		agent_cancel(&p->run.agent);
		return true;
	case OUTSIDE_TIME:
		if (p->run.agent.ending || asks_first(p) || begins_first(p) ||
		    p->now >= p->run.agent.deadline_ms)
			return false;
		if (p->run.agent.deadline_ms == INT64_MAX) /* queued: the group's time was over */
			p->run.agent.deadline_ms = p->now;
		p->now = p->run.agent.deadline_ms;
		return true;
	case OUTSIDE_BLOCKED:
		if (p->run.agent.ending)
			return false;
		agent_not_started(&p->run.agent, json_str(p->rec.end, "error"));
		return true;
	case OUTSIDE_CRASH:
		record_cut(&p->rec, "the runtime stopped while it was at work");
		return false;
	default:
		return false;
	}
}

/* The run wanted to ask the model, and the gate parked it, or that or a budget refused the call. */
static bool feed_refusal(struct replay *p)
{
	json_t *error;

	if (!p->started && parks(p)) {
		agent_on_parked(&p->run.agent, false, reply_class_word(REPLY_RATE_LIMIT), "");
		return true;
	}
	if (replay_drive_outside(p) != OUTSIDE_OTHER || p->started)
		return false;
	error = record_find(&p->rec, EVENT_Error) ? json_incref(p->rec.content) : NULL;
	agent_on_reply(&p->run.agent, replay_failure_code(p), NULL, json_get_str(error, "class"),
		       json_get_str(error, "message"));
	json_decref(error);
	return true;
}

/* The oldest draft that the run waits for is durable; false: it waits for none. */
static bool feed_saved(struct replay *p)
{
	struct draft *d = LIST_FIRST(&p->run.rec.outbox.waiting, struct draft, node);

	if (d == NULL)
		return false;
	list_del(&d->node);
	d->done(0, d->user);
	draft_free(d);
	return true;
}

/* Gives the machine one thing that it waits for. false: the record has none. */
static bool feed(struct replay *p)
{
	struct agent *a = &p->run.agent;

	if (feed_saved(p) || feed_end(p))
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
		return feed_refusal(p) || feed_reply(p);
	if (a->state == AGENT_TOOLS)
		return a->check == CHECK_RUNS ? feed_check(p) : feed_tool(p);
	if (a->state == AGENT_WAITING && a->asking > 0 && !a->ask_given)
		return feed_answer(p);
	record_cut(&p->rec, "the machine waits for what no record tells");
	return false;
}

static void drive(struct replay *p)
{
	const struct trace_event *left;

	(void)feed_end(p); /* the run may have been cancelled in the queue */
	for (;;) {
		agent_run(&p->run.agent);
		if (p->run.rec.lost)
			replay_no_memory(p);
		if (p->rec.stopped || p->done || !feed(p))
			break;
		if (list_empty(&p->run.rec.outbox.waiting) && !p->run.agent.ending)
			(void)feed_end(p);
	}
	left = p->done && !p->rec.stopped ? record_peek(&p->rec) : NULL;
	if (left != NULL)
		record_other(&p->rec, "nothing: it had ended");
	p->rec.out->complete = p->done && p->rec.out->ndiffs == 0;
}

/* ---- the beginning */

/* A run of its own, and all that one needs around it. */
static int make_run(struct replay *p, int root_fd, const char *run, struct run_spec *spec)
{
	static const struct settings settings;
	struct draft *d;

	p->book = (struct logbook){.root_fd = root_fd,
				   .redact = p->rec.redact,
				   .compare = replay_compare,
				   .compare_user = p};
	p->sup = (struct supervisor){.book = &p->book, .settings = &settings};
	list_init(&p->sup.live);
	list_init(&p->sup.waiting);
	money_init(&p->sup);
	if (run_init(&p->run, &p->sup, spec) != 0)
		return AVA_ENOMEM;
	snprintf(p->run.id.text, sizeof(p->run.id.text), "%s", run);
	p->run.wake.queued = true; /* drive() lets the machine go on, not a loop */
	p->rec.spec = spec;
	d = commit_draft(&p->run);
	if (d != NULL)
		record_spawn(d, &p->run);
	replay_flush(p, NULL);
	return d != NULL ? 0 : AVA_ENOMEM;
}

static int replay_drive_read_spec(struct replay *p, int root_fd, const char *run,
				  struct ava_error *err)
{
	const char *line;
	json_t *json = NULL;
	struct run_spec *spec;
	size_t n;
	int rv = spec_first_line(p->rec.file, p->rec.len, &json, err);

	(void)jsonl_next(p->rec.file, p->rec.len, &p->rec.at, &line, &n);
	if (rv == 0)
		rv = spec_from_json(&spec, json, "", "", "", err);
	if (rv == 0) /* as it was confirmed then, whatever a hash is over now */
		snprintf(spec->hash, sizeof(spec->hash), "%s", json_str(json, "configHash"));
	if (rv == 0 && (rv = make_run(p, root_fd, run, spec)) != 0)
		err_set(err, rv, "out of memory");
	json_decref(json);
	return rv;
}

/* Is the request so far the one of the first call? */
static bool is_first_request(const struct replay *p)
{
	const char *hash = json_get_str(p->rec.content, "prefixHash");
	char mine[HASH_HEX_LEN + 1];

	hash_sha256_with(&p->run.rec.prefix, "", 0, mine);
	return hash == NULL || strcmp(hash, mine) == 0;
}

/* A fork begins with the lines of the run before it, up to all that the first call
 * was sent. Results in them belong to no calls of this run. */
static int begin_fork(struct replay *p, struct ava_error *err)
{
	const char *line;
	unsigned results = 0;
	size_t len;
	int rv = replay_rehash(p, NULL, err), kind;

	(void)record_find(&p->rec, EVENT_InferStart);
	while (rv == 0 && !is_first_request(p) && (kind = record_line(&p->rec, &line, &len)) >= 0) {
		record_pass(&p->rec);
		if (kind == LINE_NONE)
			rv = replay_rehash(p, NULL, err);
		else
			messages_hash(&p->run.rec.prefix, &p->run.rec.wordless, line, len);
	}
	if (rv == 0)
		rv = replay_rehash(p, &results, err);
	return rv == 0 ? toolrun_count(&p->run, results) : rv;
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
		while (record_line(&p->rec, &line, &len) == LINE_NONE)
			record_pass(&p->rec);
		if (record_line(&p->rec, &line, &len) == LINE_USER)
			record_pass(&p->rec);
		rv = replay_rehash(p, NULL, err);
	}
	if (rv == 0)
		agent_init(&p->run.agent, &replay_io, &p->run.spec->agent, &p->run,
			   p->run.rec.request_bytes);
	return rv;
}

/* Replays the whole run, or up to p->seek. Differences stand in the report. */
static int execute(struct replay *p, int root_fd, const char *run, struct ava_error *err)
{
	int rv = record_open(&p->rec, root_fd, run, err);

	if (rv == 0)
		rv = replay_drive_read_spec(p, root_fd, run, err);
	if (rv == 0)
		rv = replay_drive_begin(p, err);
	if (rv == 0) {
		if (!p->rec.stopped)
			drive(p);
		if (p->rv != 0)
			rv = err_set(err, p->rv, "%s: %s", run, ava_strerror(p->rv));
	}
	if (p->run.spec != NULL)
		run_fini(&p->run);
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

/* Ava's agent/io.h: that of a run (subagent/world.c), but for her place. Her
 * turns need no slot, her replies are said to a person and stand in the
 * session file, and the end of a turn is not the end of her: the machine goes
 * on with the next input. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ava/talk.h"
#include "base/clock.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "subagent/record.h"
#include "subagent/run.h"

#define SAID_MAX_CHARS 100000

struct talk *talk_of(struct run *r)
{
	return r->place ? CONTAINER_OF(r, struct talk, run) : NULL;
}

static struct talk *talk(struct agent *a)
{
	return talk_of(a->world);
}

/* ---- marks: where the conversation stands, for the next start */

static void mark(struct talk *t, struct draft *d, const struct buf *line)
{
	struct buf *b = d ? draft_part(d, DRAFT_MESSAGES, t->messages) : NULL;

	if (b)
		buf_add(b, line->data, line->len);
}

void talk_mark(struct talk *t, struct draft *d, const char *key, const char *value)
{
	struct buf b;
	struct jw w;

	buf_init(&b, 4096);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_object(&w, "mark");
	jw_str(&w, key, value);
	jw_end(&w);
	jw_end(&w);
	buf_addc(&b, '\n');
	mark(t, d, &b);
	buf_fini(&b);
}

void talk_mark_turn(struct talk *t, struct draft *d, bool open, unsigned more_calls)
{
	const struct run *r = &t->run;
	int64_t calls = r->tools.calls_at > 0 ? r->tools.calls_before[r->tools.calls_at] : 0;
	struct buf b;
	struct jw w;

	buf_init(&b, 4096);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_object(&w, "mark");
	jw_str(&w, "turn", open ? "open" : "ended");
	jw_int(&w, "iteration", r->agent.at.iteration);
	jw_int(&w, "calls", calls + more_calls);
	jw_end(&w);
	jw_end(&w);
	buf_addc(&b, '\n');
	mark(t, d, &b);
	buf_fini(&b);
}

/* ---- what is said and done, in the session file */

static void entry(struct talk *t, struct draft *d, const struct turn *turn,
		  const struct turn_call *call)
{
	char id[SESSION_ENTRY_ID];
	struct session_entry e = {.id = id, .wall_ms = clock_wall_ms()};
	struct buf b;

	draft_entry_id(d, id);
	buf_init(&b, 16u << 20);
	if (turn)
		session_assistant(&b, &e, turn, t->run.spec->model);
	else
		session_tool_result(&b, &e, call);
	draft_entry(d, t->session->path, id, &b);
	buf_fini(&b);
}

/* AssistantMessage: what she says to the person. */
static void say(struct talk *t, struct draft *d, const char *text, size_t len)
{
	struct session *s = t->session;
	const struct redact *redact = s->core->redact;
	struct buf b, clean;
	struct jw w;

	buf_init(&clean, 32u << 20);
	if (redact && redact_text(redact, &clean, text, len) >= 0) {
		text = clean.data ? clean.data : "";
		len = clean.len;
	}
	buf_init(&b, 1u << 20);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_preview(&w, "text", text, len, SAID_MAX_CHARS);
	jw_end(&w);
	core_event(s->core, d, EVENT_AssistantMessage, s->id, s->user, &b);
	buf_fini(&clean);
}

static void slot_want(struct agent *a)
{
	agent_on_slot(a);
}

static void slot_drop(struct agent *a) {}

static int64_t save_reply(struct agent *a, const struct turn *turn, bool wait)
{
	struct talk *t = talk(a);
	struct draft *d = world_draft(&t->run);
	bool last = turn->ncalls == 0 && turn->text_len > 0 && turn->stop != TURN_STOP_PAUSE;

	if (!d)
		return AVA_ENOMEM;
	if (turn->wire_len > 0)
		entry(t, d, turn, NULL);
	if (turn->text_len > 0) {
		t->spoke_ms = clock_wall_ms();
		say(t, d, turn->text, turn->text_len);
	}
	talk_mark_turn(t, d, !last, turn->ncalls);
	return world_io.save_reply(a, turn, wait);
}

static int64_t save_results(struct agent *a, struct turn *turn, const char *const *notices,
			    unsigned nnotices, unsigned warned)
{
	struct talk *t = talk(a);
	struct draft *d = world_draft(&t->run);
	int64_t added;

	if (!d)
		return AVA_ENOMEM;
	for (unsigned i = 0; i < turn->ncalls; i++)
		entry(t, d, NULL, &turn->calls[i]);
	added = world_io.save_results(a, turn, notices, nnotices, warned);
	if (added >= 0)
		talk_mark_turn(t, d, true, 0);
	return added;
}

/* ---- the end of a turn */

static void turn_saved(int rv, void *user)
{
	struct run *r = user;

	agent_on_saved(&r->agent);
	world_wake(r);
}

static const char *why_not(const struct agent_end *e)
{
	if (e->status == AVA_CANCELLED)
		return "The person stopped your last turn.";
	return e->exhausted ? "Your last turn was stopped at a limit." : "Your last turn failed.";
}

/* Why she says nothing more, for the person. */
static void failure_text(const struct talk *t, const struct agent_end *e, char out[400])
{
	const struct agent_limits *l = &t->run.spec->agent.limits;
	const struct {
		const char *resource, *unit, *setting;
		int64_t limit;
	} limits[] = {
		{"time", "s", "timeout", l->time_ms / 1000},
		{"cost", "cents", "max_cost_cents", l->cost_microusd / 10000},
		{"tokens", "tokens", "max_tokens", l->tokens},
		{"iterations", "replies", "max_iterations", l->iterations},
	};

	if (e->status == AVA_CANCELLED)
		snprintf(out, 400, "stopped");
	else
		snprintf(out, 400, "%.390s", e->error ? e->error : "the turn failed");
	for (size_t i = 0; e->status != AVA_CANCELLED && !e->error && i < ARRAY_LEN(limits); i++)
		if (e->exhausted && strcmp(e->exhausted, limits[i].resource) == 0)
			snprintf(out, 400,
				 "this turn of Ava's has reached its limit of %" PRId64
				 " %s (ava.%s); say how to go on",
				 limits[i].limit, limits[i].unit, limits[i].setting);
}

/* A turn without its answer: an entry that says why, and an Error where it was
 * not the person who stopped it. */
static void write_failure(struct talk *t, struct draft *d, const struct agent_end *e)
{
	char id[SESSION_ENTRY_ID], note[32], text[400];
	struct session_entry at = {.id = id, .wall_ms = clock_wall_ms()};
	struct buf b;

	failure_text(t, e, text);
	draft_entry_id(d, id);
	buf_init(&b, 64u << 10);
	session_failure(&b, &at, t->run.spec->model, e->status == AVA_CANCELLED, text);
	draft_entry(d, t->session->path, id, &b);
	buf_fini(&b);
	if (e->exhausted)
		record_exhausted(d, &t->run, e->exhausted);
	if (e->status != AVA_CANCELLED)
		record_error(d, &t->run, e->exhausted ? "limit" : e->error_class, text);
	snprintf(note, sizeof(note), "turn-%" PRId32, t->run.agent.at.iteration);
	talk_note_write(t->session, d, note, why_not(e));
	talk_note(t, note, "%s", why_not(e));
}

static void save_end(struct agent *a, const struct agent_end *e)
{
	struct talk *t = talk(a);
	struct run *r = &t->run;
	struct draft *d = world_draft(r);

	if (!d) { /* nothing to write with: the turn just ends */
		agent_on_saved(a);
		world_wake(r);
		return;
	}
	if (r->rec.turn_open)
		for (unsigned i = 0; i < a->turn->ncalls; i++)
			entry(t, d, NULL, &a->turn->calls[i]);
	ending_close(r, d, e->stop_reason);
	if (e->status != AVA_SUCCESS)
		write_failure(t, d, e);
	talk_mark_turn(t, d, false, 0);
	world_flush(r, JOURNAL_NOW, turn_saved);
}

static void turn_done(struct agent *a)
{
	struct talk *t = talk(a);

	t->busy = false;
	talk_frame(t, FRAME_TURN, "idle", 4);
	os_defer(t->run.sup->loop, &t->pump);
	session_rest(t->session->core);
}

void talk_world_init(struct talk *t)
{
	t->io = world_io;
	t->io.slot_want = slot_want;
	t->io.slot_drop = slot_drop;
	t->io.save_reply = save_reply;
	t->io.save_results = save_results;
	t->io.save_end = save_end;
	t->io.done = turn_done;
}

/* The machine of one run.
 *
 *   QUEUED ──► CALLING ──► SAVING ──► TOOLS ──┐──► WAITING ──► QUEUED
 *                 ▲  └────────(rides)────►┘    │
 *                 └───────────────────────────┘
 *   every state ──► SAVING (its end) ──► DONE
 *   CALLING, before a call ──► QUEUED, when paused
 *
 * A step looks at the arrivals and does the next thing, or waits. Arrivals are only
 * stored (agent_on_*); so nothing re-enters, and cancel, the deadline and the end are
 * handled in one place each: agent_run and agent_finish().
 *
 * Happy path: a slot, a call within the limits, its reply saved, its tools,
 * their results saved, the next call, until the model submits. Calls that a
 * person answers (ask.c) come last, without slot and clock. Messages of people
 * go with the results; a result submitted before the model has read them is put
 * off. A reply that has calls is never an end, whatever its stop reason says. A text
 * ends the run when it holds a result, or as no_result after a nudge to submit;
 * before any call the model is told once to look first (ask_once_more). With a check
 * (agent_spec.check) a result is no end before that has passed in TOOLS (step_check).
 *
 * What can fail: the model (model_error, refusal, empty_replies), the limits,
 * the person's patience (cancelled), memory (internal). Each ends the run by
 * agent_finish(): work in progress is stopped, open calls are answered, one commit
 * says why. The disk cannot fail here, only be slow. */
#include "agent/agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ask.h"
#include "agent/limit.h"
#include "agent/output.h"
#include "agent/prompt.h"
#include "agent/position.h"
#include "agent/reply.h"
#include "agent/tool.h"
#include "base/error.h"
#include "base/words.h"

#define PAUSES_MAX 5 /* pauses in a row that a run goes on from */

enum agent_step { STEP_AGAIN, STEP_WAIT };

static enum agent_step step_queued(struct agent *a);
static enum agent_step step_calling(struct agent *a);
static enum agent_step step_saving(struct agent *a);
static enum agent_step step_tools(struct agent *a);
static enum agent_step step_waiting(struct agent *a);

#define TO(s) (1u << AGENT_##s)
static const struct {
	const char *name;
	unsigned next; /* the states that may follow */
	enum agent_step (*step)(struct agent *a);
} states[AGENT_NSTATES] = {
	[AGENT_QUEUED] = {"queued", TO(CALLING) | TO(TOOLS) | TO(WAITING) | TO(SAVING),
			  step_queued},
	[AGENT_CALLING] = {"calling", TO(SAVING) | TO(TOOLS) | TO(WAITING) | TO(QUEUED),
			   step_calling},
	[AGENT_SAVING] = {"saving", TO(TOOLS) | TO(DONE), step_saving},
	[AGENT_TOOLS] = {"tools", TO(CALLING) | TO(WAITING) | TO(SAVING), step_tools},
	[AGENT_WAITING] = {"waiting", TO(QUEUED) | TO(SAVING), step_waiting},
	[AGENT_DONE] = {"done", 0, NULL},
};

const char *const agent_resource_names[AGENT_NRESOURCES] = {
	[AGENT_TIME] = "time",
	[AGENT_COST] = "cost",
	[AGENT_TOKENS] = "tokens",
	[AGENT_ITERATIONS] = "iterations",
};

static const struct {
	enum ava_status status;
	const char *why;
} used_up_as[AGENT_NRESOURCES] = {
	[AGENT_TIME] = {AVA_TIMEOUT, "the run has reached its time limit"},
	[AGENT_COST] = {AVA_COST_EXCEEDED, "the run has reached its cost limit"},
	[AGENT_TOKENS] = {AVA_TOKENS_EXCEEDED, "the run has reached its token limit"},
	[AGENT_ITERATIONS] = {AVA_ITERATIONS_EXCEEDED, "the run has reached its limit of replies"},
};

/* The only place that writes a->state. */
static enum agent_step agent_move(struct agent *a, enum agent_state to)
{
	assert(states[a->state].next & (1u << to));
	a->state = (uint8_t)to;
	return STEP_AGAIN;
}

/* ---- the end */

static int take_reply(struct agent *a);
static int save_reply(struct agent *a, bool wait);

/* Keep a reply that is here when the run ends: it was paid for. */
static void stop_calling(struct agent *a)
{
	bool ready = a->reply_ready;

	a->asked = a->reply_ready = false;
	if (!ready)
		a->io->infer_stop(a);
	else if (a->reply_code < 0)
		a->at.totals.failed_calls++;
	else if (take_reply(a) == 0)
		(void)save_reply(a, false); /* not written: agent_finish drops it */
}

/* End the run. Work in progress stops, open calls are answered with `open_class`, and one commit
 * says why; DONE follows when it is on disk. */
static enum agent_step agent_finish(struct agent *a, struct agent_end *end, const char *open_class,
				    const char *why)
{
	struct arena mem;

	assert(!a->ending);
	a->ending = true;
	if (a->slot_wanted && !a->have_slot) { /* a wanted slot must not come during the end */
		a->slot_wanted = false;
		a->io->slot_drop(a);
	}
	if (a->asked)
		stop_calling(a);
	else if (a->compacting)
		a->io->infer_stop(a);
	else if (a->state == AGENT_TOOLS && a->turn != NULL &&
		 (a->check == CHECK_NONE ? a->answered < a->turn->ncalls : a->check == CHECK_RUNS))
		a->io->tools_stop(a);
	/* Drop a reply that could not be written: none of its calls may be answered. */
	if (!a->reply_saved) {
		turn_free(a->turn);
		a->turn = NULL;
		a->answered = 0;
	}
	answer_open(a, open_class, why);
	a->status = end->status;
	a->stop_reason = end->stop_reason;
	arena_init(&mem, TURN_MAX_BYTES);
	if (end->status != AVA_SUCCESS && end->summary == NULL && a->at.said != NULL)
		output_kept(a, &mem, end);
	if (end->status != AVA_SUCCESS && end->summary == NULL && a->turn != NULL &&
	    a->turn->text_len > 0)
		end->summary = a->turn->text;
	if (end->status != AVA_SUCCESS && end->status != AVA_NO_RESULT &&
	    end->status != AVA_UNPROVEN && end->summary != NULL)
		end->partial = true;
	a->saves++;
	a->io->save_end(a, end);
	arena_fini(&mem);
	return a->state == AGENT_SAVING ? STEP_AGAIN : agent_move(a, AGENT_SAVING);
}

static enum agent_step finish_limit(struct agent *a, enum agent_resource r)
{
	struct agent_end end = {
		.status = used_up_as[r].status,
		.stop_reason = agent_resource_names[r],
		.exhausted = agent_resource_names[r],
		.partial = true,
	};

	return agent_finish(a, &end, "limit", used_up_as[r].why);
}

/* The budget of the group or of the day is used up; the world's sentence is in reply_error. */
static enum agent_step finish_budget(struct agent *a)
{
	struct agent_end end = {
		.status = AVA_COST_EXCEEDED,
		.stop_reason = agent_resource_names[AGENT_COST],
		.exhausted = agent_resource_names[AGENT_COST],
		.error = a->reply_error[0] != 0 ? a->reply_error : NULL,
		.partial = true,
	};

	return agent_finish(a, &end, "limit", "the budget it shares with others is used up");
}

static enum agent_step finish_error(struct agent *a, const char *stop_reason,
				    const char *error_class, const char *sentence)
{
	struct agent_end end = {
		.status = AVA_ERROR,
		.stop_reason = stop_reason,
		.error = sentence,
		.error_class = error_class,
	};

	return agent_finish(a, &end, "cancelled", "the run has ended");
}

/* An error of the world or of memory that no retry mends. */
static enum agent_step finish_internal(struct agent *a, int rv)
{
	if (rv == AVA_EBUDGET)
		return finish_budget(a);
	return finish_error(a, "internal", err_word(rv), ava_strerror(rv));
}

/* `status`: used when the output fits the schema asked for. */
static enum agent_step finish_as(struct agent *a, enum ava_status status, struct agent_end *end,
				 const char *stop_reason)
{
	const char *errors = NULL;
	int rv = output_check(a, end, &errors);

	if (rv != 0)
		return finish_internal(a, rv);
	end->status = status;
	end->stop_reason = stop_reason;
	if (errors != NULL)
		output_misfit(end, errors);
	return agent_finish(a, end, "cancelled", "the run has ended");
}

/* ---- QUEUED, CALLING */

/* Without a slot the run's clock stands still. */
static void leave_slot(struct agent *a)
{
	agent_clock_stop(a);
	if (a->slot_wanted)
		a->io->slot_drop(a);
	a->have_slot = a->slot_wanted = false;
}

static enum agent_step step_queued(struct agent *a)
{
	if (!a->slot_wanted && a->over > 0) /* a wait goes on after a restart */
		return agent_move(a, AGENT_WAITING);
	if (a->paused && !a->asks_again) {
		leave_slot(a);
		return STEP_WAIT;
	}
	if (a->saves > 0) /* a person's message is not on disk yet */
		return STEP_WAIT;
	if (!a->slot_wanted) {
		a->slot_wanted = true;
		a->io->slot_want(a);
	}
	if (!a->have_slot)
		return STEP_WAIT;
	if (__builtin_add_overflow(a->started_ms, a->spec->limits.time_ms, &a->deadline_ms))
		a->deadline_ms = INT64_MAX;
	a->io->wake_at(a, a->deadline_ms);
	return agent_move(a, a->turn != NULL && !a->reply_ready ? AGENT_TOOLS : AGENT_CALLING);
}

static enum agent_step wait_for_person(struct agent *a)
{
	leave_slot(a);
	return agent_move(a, AGENT_WAITING);
}

static enum agent_step ask_model(struct agent *a)
{
	struct agent_infer call = {
		.iteration = a->at.iteration + !a->at.again,
		.again = a->at.again,
		.force_submit = a->at.force_submit,
		.output_schema = a->spec->output_schema,
		.warmer = a->at.loops > 0,
	};
	int used_up = limit_reserve(a, &call.max_output), rv;

	if (used_up >= 0 && a->spec->ask_limit) {
		a->over = (uint8_t)(used_up + 1);
		return wait_for_person(a);
	}
	if (used_up >= 0)
		return finish_limit(a, (enum agent_resource)used_up);
	/* Set before: the call's commit carries the machine's position. */
	a->at.iteration = call.iteration;
	a->at.totals.calls++;
	a->asked = true;
	a->at.again = false;
	rv = a->io->infer(a, &call);
	if (rv >= 0)
		return STEP_WAIT;
	a->at.iteration -= !call.again;
	a->at.totals.calls--;
	a->asked = false;
	return finish_internal(a, rv);
}

/* In a nearly full window make room before the call. */
static enum agent_step agent_make_room(struct agent *a)
{
	struct agent_compact c;
	int rv;

	if (a->compacting)
		return STEP_WAIT;
	if (a->at.overflowed && a->at.halvings++ >= COMPACT_HALVINGS)
		return finish_error(a, "model_error", a->reply_class, a->reply_error);
	if (!compact_due(a, &c))
		return ask_model(a);
	rv = a->io->compact(a, &c);
	if (rv < 0)
		return finish_internal(a, rv);
	a->compacting = true;
	return STEP_WAIT;
}

/* Count the reply and prepare its calls. */
static int take_reply(struct agent *a)
{
	struct turn *t = a->turn;
	int rv = 0;

	assert(t->ncalls <= TURN_MAX_CALLS);
	if (!a->replayed)
		limit_settle(a, &t->usage);
	a->answered = 0;
	if (t->ncalls == 0 && t->text_len == 0 && t->stop != TURN_STOP_PAUSE) {
		t->wire = ""; /* an empty message would make every later request invalid */
		t->wire_len = 0;
	}
	for (unsigned i = 0; i < t->ncalls && rv == 0; i++)
		rv = output_prepare(a, i);
	return rv;
}

static int save_reply(struct agent *a, bool wait)
{
	int64_t bytes;

	if (a->replayed)
		return 0;
	bytes = a->io->save_reply(a, a->turn, wait);
	if (bytes < 0)
		return (int)bytes;
	a->reply_saved = true;
	a->at.new_bytes += bytes;
	a->at.totals.tool_calls += (int32_t)a->turn->ncalls;
	a->saves += wait;
	return 0;
}

/* A result is handed in, by call `c` or, NULL, by a text: the run ends, or its check is due. */
static enum agent_step handed_in(struct agent *a, struct turn_call *c, struct agent_end *end)
{
	const char *errors = NULL;
	int rv = a->spec->check != NULL ? output_check(a, end, &errors) : 0;

	if (rv == 0 && a->spec->check != NULL && errors == NULL) {
		rv = output_hold(a, c);
		if (rv == 0)
			return agent_move(a, AGENT_TOOLS);
	}
	if (rv != 0)
		return finish_internal(a, rv);
	if (c != NULL)
		answer_call(a, c, true, "", "accepted: the run ends here");
	start_none(a);
	return finish_as(a, AVA_SUCCESS, end, c != NULL ? "submitted" : "final_text");
}

static enum agent_step reply_with_calls(struct agent *a)
{
	struct agent_end end = {0};
	struct turn_call *submit;
	int exhausted = limit_used_up(a), rv = output_send_back(a, exhausted < 0);
	bool wait;

	a->at.odd_replies = 0;
	if (rv != 0)
		return finish_internal(a, rv);
	reply_forget(a);
	submit = output_submit(a);
	if (submit != NULL && (a->steers == 0 || exhausted >= 0)) {
		rv = output_take(a, submit, &end);
		if (rv == 0)
			rv = save_reply(a, false);
		return rv == 0 ? handed_in(a, submit, &end) : finish_internal(a, rv);
	}
	output_put_off(a);
	wait = exhausted < 0 && output_must_be_saved(a->turn);
	rv = save_reply(a, wait);
	if (rv != 0)
		return finish_internal(a, rv);
	if (exhausted >= 0) {
		start_none(a);
		return finish_limit(a, (enum agent_resource)exhausted);
	}
	if (a->replayed)
		answer_interrupted(a);
	return agent_move(a, wait ? AGENT_SAVING : AGENT_TOOLS);
}

/* Words alone end the run. For Ava, who answers in words, that is a success. */
static enum agent_step finish_words(struct agent *a, struct agent_end *end)
{
	enum ava_status none = a->at.checks > 0 ? AVA_UNPROVEN : AVA_NO_RESULT;

	end->unverified = true;
	return finish_as(a, limit_can_submit(a) ? none : AVA_SUCCESS, end, "final_text");
}

/* When a model only thinks, the thinking becomes the answer, marked as such. */
static enum agent_step thought_answer(struct agent *a)
{
	struct turn *t = a->turn;
	struct agent_end end = {.caveats = "[\"" NOTICE_THOUGHT "\"]"};
	int rv;

	end.summary = t->thinking;
	t->text = arena_fmt(&t->mem, "(" NOTICE_THOUGHT ")\n\n%s", t->thinking);
	t->text_len = t->text != NULL ? strlen(t->text) : 0;
	rv = t->text != NULL ? save_reply(a, false) : AVA_ENOMEM;
	return rv == 0 ? finish_words(a, &end) : finish_internal(a, rv);
}

/* End with the text kept before the model was asked again: no later reply said more. */
static enum agent_step finish_said(struct agent *a)
{
	struct agent_end end = {0};
	struct reply r;
	int rv = output_read(a, &r, a->at.said, strlen(a->at.said));
	bool result = r.object != NULL && !r.call;

	if (rv == 0 && result)
		rv = reply_take(&a->turn->mem, &r, a->at.said, strlen(a->at.said),
				a->at.checks > 0 && a->at.said[0] == '{', &end);
	reply_fini(&r);
	if (rv != 0)
		return finish_internal(a, rv);
	if (result && a->spec->check != NULL)
		end.error = a->at.checks > 0 ? "its check did not pass" : WORDS_CHECK_NOT_RUN;
	if (result)
		return finish_as(a, end.error != NULL ? AVA_UNPROVEN : AVA_SUCCESS, &end,
				 "final_text");
	end.summary = a->at.said;
	return finish_words(a, &end);
}

/* An empty reply, thinking alone, or a call written as text: ask again a few times. */
static enum agent_step odd_reply(struct agent *a)
{
	int exhausted = limit_used_up(a), rv;

	if ((exhausted >= 0 || a->at.odd_replies >= ODD_REPLIES_MAX) && a->turn->text_len == 0 &&
	    a->turn->thinking_len > 0 && a->at.said == NULL)
		return thought_answer(a);
	a->turn->odd = true;
	rv = save_reply(a, false);
	if (rv != 0)
		return finish_internal(a, rv);
	if (a->at.odd_replies >= ODD_REPLIES_MAX && a->at.said != NULL)
		return finish_said(a);
	if (a->at.odd_replies >= ODD_REPLIES_MAX)
		return finish_error(a, "empty_replies", "empty_replies",
				    "the model answered four times in a row with nothing, or with "
				    "calls written as text: choose one that can call tools");
	if (exhausted >= 0)
		return finish_limit(a, (enum agent_resource)exhausted);
	a->at.odd_replies++;
	return agent_move(a, AGENT_TOOLS); /* the reply has no calls: step_tools writes the note */
}

/* Ask again after a text that would end the run? Before any call the model is told to look
 * first, then, when the text holds no result, to submit: each once. */
static bool ask_once_more(struct agent *a, const struct reply *r)
{
	if (!limit_can_submit(a) || a->at.nudged)
		return false;
	if (!a->at.told_look && a->at.totals.tool_calls == 0 && limit_can_look(a->spec)) {
		a->at.told_look = true;
		return true;
	}
	if (r->object != NULL)
		return false;
	a->at.nudged = true;
	a->at.force_submit = a->spec->can_force;
	return true;
}

static enum agent_step final_text(struct agent *a, const struct reply *r)
{
	struct turn *t = a->turn;
	struct agent_end end = {0};
	bool again = limit_used_up(a) < 0;
	bool steered = again && a->steers;
	int rv = 0;

	a->at.odd_replies = 0;
	if (r->object != NULL)
		rv = reply_take(&t->mem, r, t->text, t->text_len, t->forced, &end);
	if (rv == 0)
		rv = save_reply(a, false);
	if (rv != 0)
		return finish_internal(a, rv);
	if (steered) {
		a->steered = true;
		return agent_move(a, AGENT_TOOLS); /* no calls: the message goes on */
	}
	if (again && ask_once_more(a, r)) {
		rv = r->echo ? 0 : reply_keep(a, t->text);
		return rv == 0 ? agent_move(a, AGENT_TOOLS) /* no calls: step_tools goes on */
			       : finish_internal(a, rv);
	}
	if (again && r->object != NULL && a->at.repairs < OUTPUT_REPAIRS_MAX) {
		rv = output_check(a, &end, &a->misfit);
		if (rv != 0)
			return finish_internal(a, rv);
	}
	if (a->misfit != NULL) {
		a->at.repairs++;
		a->at.force_submit = a->spec->can_force;
		return agent_move(a, AGENT_TOOLS); /* no calls: step_tools says what is wrong */
	}
	if (r->object != NULL)
		return handed_in(a, NULL, &end);
	end.summary = t->text;
	if (a->at.said == NULL)
		return finish_words(a, &end);
	rv = r->echo ? 0 : reply_keep(a, t->text);
	return rv == 0 ? finish_said(a) : finish_internal(a, rv);
}

static enum agent_step reply_with_text(struct agent *a)
{
	struct turn *t = a->turn;
	struct reply r;
	enum agent_step step;
	int rv = output_read(a, &r, t->text, t->text_len);

	/* In a conversation words about calls may be the answer that the person asked for: accept
	 * them when the model repeats them. */
	if (!limit_can_submit(a) && r.words && a->at.odd_replies > 0)
		r.call = false;
	if (rv != 0)
		step = finish_internal(a, rv);
	else if (r.call || (t->stop == TURN_STOP_REPEATED && a->at.loops == 1))
		step = odd_reply(a);
	else if (reply_mark(t, &r) != 0)
		step = finish_internal(a, AVA_ENOMEM);
	else
		step = final_text(a, &r);
	reply_fini(&r);
	return step;
}

/* The service paused: it goes on when asked again with nothing added. */
static enum agent_step paused(struct agent *a)
{
	int exhausted = limit_used_up(a), rv = save_reply(a, false);

	if (rv != 0)
		return finish_internal(a, rv);
	if (a->at.pauses >= PAUSES_MAX)
		return finish_error(a, "model_error", "pause_turn",
				    "the service paused the reply six times in a row");
	if (exhausted >= 0)
		return finish_limit(a, (enum agent_resource)exhausted);
	a->at.pauses++;
	turn_free(a->turn);
	a->turn = NULL;
	return STEP_AGAIN;
}

/* The one reply after a forced end: its result is kept, nothing runs. */
static enum agent_step wrapped_up(struct agent *a)
{
	struct turn_call *submit;
	struct agent_end end = {0};
	int rv = output_last(a, &submit, &end);

	if (rv == 0)
		rv = save_reply(a, false);
	if (rv != 0)
		return finish_internal(a, rv);
	if (submit != NULL)
		answer_call(a, submit, true, "", "accepted: the run ends here");
	start_none(a);
	end.status = AVA_ERROR;
	end.stop_reason = end.error_class = "repeated_calls";
	end.error = a->reply_error;
	end.partial = true;
	return agent_finish(a, &end, "cancelled", "the run has ended");
}

static enum agent_step step_calling(struct agent *a)
{
	int rv;

	if (!a->asked && a->over >= AGENT_PARKED)
		return wait_for_person(a);
	if (!a->asked && !a->compacting && a->io->rest(a)) {
		leave_slot(a);
		return agent_move(a, AGENT_QUEUED); /* whence it goes on */
	}
	if (!a->asked)
		return agent_make_room(a);
	if (!a->reply_ready)
		return STEP_WAIT;
	a->asked = a->reply_ready = false;
	if (a->turn != NULL)
		a->turn->forced = a->at.force_submit &&
				  (a->at.totals.tool_calls > 0 || !limit_can_look(a->spec));
	a->at.force_submit = false;
	if (a->reply_code < 0) {
		a->at.totals.failed_calls++;
		if (a->reply_code == AVA_EBUDGET)
			return finish_budget(a);
		return finish_error(a, a->reply_code == AVA_ENOENT ? "folder_gone" : "model_error",
				    a->reply_class, a->reply_error);
	}
	rv = take_reply(a);
	if (rv != 0)
		return finish_internal(a, rv);
	if (a->turn->stop == TURN_STOP_PAUSE && a->turn->ncalls == 0)
		return paused(a);
	a->at.pauses = a->at.halvings = 0;
	a->at.loops += a->turn->stop == TURN_STOP_REPEATED && a->at.loops < UINT8_MAX;
	if (a->at.wrapping && (a->turn->ncalls > 0 || limit_can_submit(a)))
		return wrapped_up(a);
	if (a->turn->stop == TURN_STOP_REFUSAL) {
		rv = save_reply(a, false);
		if (rv != 0)
			return finish_internal(a, rv);
		start_none(a);
		return finish_error(a, "refusal", "refusal", "the model refused the task");
	}
	if (a->turn->ncalls > 0)
		return reply_with_calls(a);
	return a->turn->text_len > 0 ? reply_with_text(a) : odd_reply(a);
}

/* ---- SAVING, TOOLS */

static enum agent_step step_saving(struct agent *a)
{
	if (a->saves > 0)
		return STEP_WAIT;
	if (!a->ending)
		return agent_move(a, AGENT_TOOLS);
	if (a->have_slot)
		a->io->slot_drop(a);
	a->io->wake_at(a, INT64_MAX);
	agent_move(a, AGENT_DONE);
	a->io->done(a); /* last: afterwards the world owns the agent */
	return STEP_WAIT;
}

static void start_tools(struct agent *a)
{
	for (unsigned i = 0; i < a->turn->ncalls; i++) {
		struct turn_call *c = &a->turn->calls[i];
		const char *text;
		int rv;

		if (c->answered || c->started || ask_needed(a, c))
			continue;
		c->started = c->ran = true; /* set both first: the world may answer at once */
		rv = a->io->tool_start(a, i);
		if (rv == 0)
			continue;
		c->started = c->ran = false;
		text = arena_fmt(&a->turn->mem, "the tool could not be started: %s",
				 ava_strerror(rv));
		answer_call(a, c, false, "io",
			    text != NULL ? text : "the tool could not be started");
	}
}

/* Write the results and the runtime's notices, then ask again. */
static enum agent_step give_results(struct agent *a)
{
	const char *notices[NOTICE_TURN];
	unsigned near, n = 0;
	int64_t bytes;
	int rv = notice_turn(a, notices, &n, &near);

	if (rv != 0)
		return finish_internal(a, rv);
	bytes = a->io->save_results(a, a->turn, notices, n, near);
	if (bytes < 0)
		return finish_internal(a, (int)bytes);
	a->at.new_bytes += bytes;
	a->at.warned = (uint16_t)(a->at.warned | near);
	a->misfit = a->dropped = NULL;
	a->check = CHECK_NONE;
	a->steers = 0;
	a->steered = false;
	turn_free(a->turn);
	a->turn = NULL;
	a->answered = 0;
	return agent_move(a, AGENT_CALLING);
}

/* Are all open calls of the turn waiting for a person? */
static bool only_asks(const struct agent *a)
{
	unsigned first, open = ask_open(a, &first);

	return open > 0 && a->answered + open == a->turn->ncalls;
}

/* The check has its outcome, and the run ends by it. */
static enum agent_step check_end(struct agent *a, struct turn_call *c, bool passed)
{
	struct agent_end end = {.error = passed ? NULL : output_check_error(a)};
	int rv = output_said(a, &a->turn->mem, c != NULL || a->turn->forced, &end);

	if (rv != 0)
		return finish_internal(a, rv);
	if (c != NULL)
		answer_call(a, c, passed, passed ? "" : "check",
			    passed ? "accepted: the check passed, and the run ends here"
				   : a->misfit);
	start_none(a);
	return finish_as(a, passed ? AVA_SUCCESS : AVA_UNPROVEN, &end,
			 !passed     ? "check"
			 : c != NULL ? "submitted"
				     : "final_text");
}

/* A result counts once its check has passed. Else the model reads what it said, as often as the
 * spec allows. A message of a person that came meanwhile is read first. */
static enum agent_step step_check(struct agent *a)
{
	struct turn_call *c = output_submit(a);
	int64_t most;
	int rv, used;

	if (a->check == CHECK_DUE) {
		rv = a->io->check(a);
		if (rv != 0)
			return finish_internal(a, rv);
		a->check = CHECK_RUNS;
		if (c != NULL)
			c->started = c->ran = true;
	}
	if (a->check == CHECK_RUNS)
		return STEP_WAIT;
	used = a->spec->ask_limit ? -1 : limit_reserve(a, &most);
	if (a->check == CHECK_PASSED && (a->steers == 0 || used >= 0))
		return check_end(a, c, true);
	a->at.checks += a->check != CHECK_PASSED;
	if (a->check == CHECK_UNABLE || (int)a->at.checks > a->spec->check_rounds)
		return check_end(a, c, false);
	rv = output_check_back(a, c);
	if (rv != 0)
		return finish_internal(a, rv);
	return used >= 0 ? finish_limit(a, (enum agent_resource)used) : give_results(a);
}

static enum agent_step step_tools(struct agent *a)
{
	if (a->check != CHECK_NONE)
		return step_check(a);
	start_tools(a);
	if (only_asks(a))
		return wait_for_person(a);
	return a->answered < a->turn->ncalls ? STEP_WAIT : give_results(a);
}

/* ---- WAITING */

/* Has a person let the run pass its limit, or is the quota back? Without a yes to the limit, or
 * with a no to the quota, the run ends as if nobody had been asked. */
static enum agent_step agent_wait_over(struct agent *a)
{
	bool parked = a->over >= AGENT_PARKED;
	bool expires = !parked || (a->over == AGENT_PARKED && a->spec->ask_quota);
	enum agent_resource r = (enum agent_resource)(a->over - 1);
	enum agent_asked how;
	int rv = ask_over(a, &how);

	if (rv != 0)
		return rv < 0 ? finish_internal(a, rv) : STEP_WAIT;
	if (how == ASKED_ANSWERED || (how == ASKED_EXPIRED && !expires))
		return agent_move(a, AGENT_QUEUED);
	return parked ? finish_error(a, "model_error", a->reply_class, a->reply_error)
		      : finish_limit(a, r);
}

static enum agent_step step_waiting(struct agent *a)
{
	struct turn *t = NULL;
	unsigned call;
	int rv;

	if (a->over > 0)
		return agent_wait_over(a);
	if (a->asking > 0) {
		call = a->asking - 1u;
		if (!a->ask_given && a->io->now(a) < a->ask_until_ms)
			return STEP_WAIT;
		a->saves++;
		a->io->ask_end(a, call, ask_take(a));
		return STEP_AGAIN;
	}
	a->io->wake_at(a, INT64_MAX);
	if (ask_open(a, &call) == 0)
		return agent_move(a, AGENT_QUEUED);
	/* Shrink the turn, since the wait may last days. Without memory for the copy the turn
	 * stays as it is. */
	if (a->misfit == NULL && a->dropped == NULL && !a->turn->trimmed)
		t = ask_trim(a->turn);
	if (t != NULL) {
		turn_free(a->turn);
		a->turn = t;
	}
	rv = ask_start(a, call);
	if (rv != 0)
		return finish_internal(a, rv);
	a->io->wake_at(a, a->ask_until_ms);
	return STEP_AGAIN;
}

/* ---- arrivals: only stored, agent_run acts on them. An answer for a call that was never made
 * is a bug of the world: assert. */

void agent_init(struct agent *a, const struct agent_io *io, const struct agent_spec *spec,
		void *world, int64_t request_bytes)
{
	*a = (struct agent){
		.io = io,
		.spec = spec,
		.world = world,
		.started_ms = -1,
		.deadline_ms = INT64_MAX,
		.at.new_bytes = request_bytes,
		.state = AGENT_QUEUED,
	};
}

void agent_next(struct agent *a, int64_t new_bytes)
{
	struct agent last = *a;

	assert(a->state == AGENT_DONE || (a->state == AGENT_QUEUED && !a->slot_wanted));
	turn_free(a->turn);
	agent_init(a, last.io, last.spec, last.world, last.at.new_bytes + new_bytes);
	a->at.measured_input = last.at.measured_input;
	a->at.iteration = a->at.turn_from = last.at.iteration;
	a->at.compact_floor = last.at.compact_floor;
	a->at.window = last.at.window;
	a->at.output_max = last.at.output_max;
	a->at.repeats = last.at.repeats;
	a->at.told_dropped = last.at.told_dropped;
	free(last.at.said);
	if (a->at.repeats != NULL)
		a->at.repeats->changes++; /* the new message may be a reason to look again */
}

void agent_fini(struct agent *a)
{
	turn_free(a->turn);
	a->turn = NULL;
	agent_position_fini(&a->at);
}

void agent_on_slot(struct agent *a)
{
	assert(a->state == AGENT_QUEUED && !a->ending && !a->have_slot);
	a->have_slot = true;
	a->started_ms = a->io->now(a) - a->at.used_ms;
}

void agent_on_reply(struct agent *a, int rv, struct turn *t, const char *error_class,
		    const char *sentence)
{
	assert(a->asked && !a->reply_ready && a->turn == NULL);
	assert((rv < 0) == (t == NULL));
	a->reply_ready = true;
	a->reply_saved = a->replayed = false;
	a->reply_code = rv;
	a->turn = t;
	if (rv < 0) {
		snprintf(a->reply_class, sizeof(a->reply_class), "%s",
			 error_class != NULL ? error_class : err_word(rv));
		snprintf(a->reply_error, sizeof(a->reply_error), "%s",
			 sentence != NULL ? sentence : ava_strerror(rv));
	}
}

void agent_on_again(struct agent *a)
{
	assert(a->asked && !a->reply_ready && a->turn == NULL);
	a->asked = false;
	a->at.again = true;
	a->at.totals.failed_calls++;
}

void agent_on_refused(struct agent *a, const struct agent_told *told, const char *error_class,
		      const char *sentence)
{
	agent_on_again(a);
	agent_too_large(a, told, error_class, sentence);
}

void agent_on_compacted(struct agent *a, int rv, const struct agent_compacted *d)
{
	assert(a->compacting);
	a->compacting = false;
	if (rv == 0)
		compact_done(a, d);
	if (!a->at.overflowed)
		return; /* the request may fit even without more room */
	if ((rv == 0 && d->bytes_after < d->bytes_before) || limit_lower(a))
		a->at.overflowed = false;
	else
		a->at.halvings = COMPACT_HALVINGS; /* nothing is left to remove */
}

void agent_charge(struct agent *a, struct usage *u)
{
	limit_charge(a, u);
}

void agent_on_saved(struct agent *a)
{
	assert(a->saves > 0);
	a->saves--;
}

void agent_on_tool(struct agent *a, unsigned call)
{
	assert(a->state == AGENT_TOOLS && !a->ending);
	assert(call < a->turn->ncalls && a->turn->calls[call].started);
	assert(a->turn->calls[call].answered && a->answered < a->turn->ncalls);
	a->answered++;
}

void agent_on_checked(struct agent *a, enum agent_check how, const char *text)
{
	assert(a->state == AGENT_TOOLS && !a->ending && a->check == CHECK_RUNS);
	assert(how >= CHECK_PASSED);
	a->check = (uint8_t)how;
	a->misfit = arena_copy(&a->turn->mem, text, strlen(text));
	if (a->misfit == NULL)
		a->misfit = "there was no memory for its output";
}

void agent_on_steer(struct agent *a)
{
	if (a->steers < UINT16_MAX)
		a->steers++;
}

void agent_cancel(struct agent *a)
{
	if (!a->ending)
		a->cancelled = true;
}

/* ---- outside */

void agent_run(struct agent *a)
{
	struct agent_end cancelled = {.status = AVA_CANCELLED, .stop_reason = "cancelled"};
	enum agent_step step = STEP_AGAIN;

	while (a->state != AGENT_DONE && step == STEP_AGAIN) {
		if (a->ending)
			step = step_saving(a);
		else if (a->cancelled)
			step = agent_finish(a, &cancelled, "cancelled", "the run was cancelled");
		else if (a->deadline_ms != INT64_MAX && a->io->now(a) >= a->deadline_ms)
			step = finish_limit(a, AGENT_TIME);
		else
			step = states[a->state].step(a);
		if (step == STEP_WAIT)
			return; /* the world may own the agent now: do not touch it */
	}
}

void agent_interrupted(struct agent *a, const char *sentence)
{
	struct agent_end end = {
		.status = AVA_ERROR,
		.stop_reason = "interrupted",
		.error = sentence,
		.error_class = "interrupted",
		.partial = true,
	};

	assert(a->state == AGENT_QUEUED && !a->slot_wanted);
	agent_finish(a, &end, "interrupted", "the runtime stopped");
}

void agent_not_started(struct agent *a, const char *sentence)
{
	struct agent_end end = {
		.status = AVA_NOT_STARTED, .stop_reason = "not_started", .error = sentence};

	assert(a->state == AGENT_QUEUED && !a->have_slot);
	agent_finish(a, &end, "cancelled", "the run was not started");
}

const char *agent_state_name(enum agent_state s)
{
	return (unsigned)s < AGENT_NSTATES ? states[s].name : "unknown";
}

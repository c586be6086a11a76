/* The table of effects, agent_io: the machine (agent/agent.c) reaches the real world by it.
 *
 * Happy path: clock, slot and timer; a reply and the results of its calls become lines of the
 * conversation and events in the draft of the next commit (commit.c); the other effects are rows
 * that stand in the file of their part. What can fail is memory, which ends the run. */
#include "subagent/run.h"

#include <assert.h>
#include <unistd.h>

#include "agent/prompt.h"
#include "agent/tool.h"
#include "base/clock.h"
#include "base/util.h"
#include "provider/dialect.h"
#include "subagent/record.h"

/* ---- clock and slots */

static int64_t world_now(struct agent *a)
{
	return clock_mono_ms();
}

static void world_wake_at(struct agent *a, int64_t at_ms)
{
	struct run *r = a->world;

	if (at_ms == INT64_MAX)
		os_timer_stop(r->timer);
	else
		os_timer_set(r->timer, MAX(at_ms - clock_mono_ms(), 0));
	park_look(r);
}

static void world_slot_want(struct agent *a)
{
	slots_want(a->world);
}

static void world_slot_drop(struct agent *a)
{
	struct run *r = a->world;

	slots_drop(r);
	infer_wait_long(r);
	if (r->tools.env.cwd_fd < 0 || a->ending || r->busy > 0)
		return;
	close(r->tools.env.cwd_fd); /* a wait may last for days, so close the folder */
	r->tools.env.cwd_fd = -1;
}

/* ---- records */

void world_saved(int rv, void *user)
{
	struct run *r = user;

	agent_on_saved(&r->agent);
	run_wake(r);
}

/* Records calls that are answered and not recorded yet. */
static void save_answers(struct run *r, struct draft *d, const struct turn *t)
{
	for (unsigned i = 0; i < t->ncalls; i++) {
		struct turn_call *c = &t->calls[i];

		if (!c->answered || c->recorded)
			continue;
		record_tool_result(d, r, c);
		c->recorded = true;
	}
}

int64_t world_save_reply(struct agent *a, const struct turn *t, bool wait)
{
	struct run *r = a->world;
	struct draft *d = commit_draft(r);
	int64_t added;

	money_settle(r);
	if (!d || toolrun_count(r, t->ncalls) != 0)
		return AVA_ENOMEM;
	added = commit_lines(r, t->wire, t->wire_len);
	if (added < 0)
		return added;
	record_infer_end(d, r, t);
	record_thinking(d, r, t);
	for (unsigned i = 0; i < t->ncalls; i++)
		record_tool_call(d, r, &t->calls[i]);
	/* Calls that the machine answered itself have their results at once. */
	save_answers(r, d, t);
	r->rec.turn_open = t->ncalls > 0;
	r->rec.notices = 0; /* the request of this reply had them */
	commit_flush(r, wait ? JOURNAL_NOW : JOURNAL_RIDE, wait ? world_saved : NULL);
	return added;
}

int64_t world_save_results(struct agent *a, struct turn *t, const char *const *notices,
			   unsigned nnotices, unsigned warned)
{
	struct run *r = a->world;
	struct draft *d = commit_draft(r);
	const char *all[NOTICE_TURN + PERSON_SAID_MAX];
	struct buf line;
	int64_t added;
	unsigned n;

	assert(nnotices <= NOTICE_TURN);
	if (!d)
		return AVA_ENOMEM;
	for (n = 0; n < nnotices; n++)
		all[n] = notices[n];
	n += person_notices(r, all + n);
	/* The line of a turn's results, followed by notices and messages of people. */
	buf_init(&line, 32u << 20);
	added = r->spec->model->dialect->encode_results(&line, t, all, n);
	if (added == 0)
		added = commit_lines(r, line.data, line.len);
	buf_fini(&line);
	if (added < 0)
		return added;
	save_answers(r, d, t);
	if (warned)
		record_warned(d, r, warned);
	r->rec.turn_open = false;
	r->rec.notices = (uint8_t)warned;
	if (a->steers > 0)
		r->rec.notices |= RECORD_STEERED;
	person_told(r, d);
	if (t->ncalls == 0 && !a->steered)
		r->rec.notices |= a->at.odd_replies > 0 ? RECORD_ODD_REPLY : RECORD_NUDGE;
	r->rec.position_due = true;
	/* No flush: the InferStart that follows goes in the same commit. */
	return added;
}

static void world_reap(struct os_task *task)
{
	run_release(CONTAINER_OF(task, struct run, reap));
}

static void world_done(struct agent *a)
{
	struct run *r = a->world;

	r->end.done = true;
	supervisor_ended(r);
	os_task_init(&r->reap, world_reap);
	os_defer(r->sup->loop, &r->reap);
}

const struct agent_io world_io = {
	.now = world_now,
	.wake_at = world_wake_at,
	.slot_want = world_slot_want,
	.slot_drop = world_slot_drop,
	.infer = infer_start,
	.compact = room_make,
	.infer_stop = infer_stop,
	.save_reply = world_save_reply,
	.tool_start = toolrun_start,
	.check = toolrun_check,
	.tools_stop = toolrun_stop,
	.save_results = world_save_results,
	.ask = person_ask,
	.ask_end = person_ask_end,
	.rest = pause_rest,
	.save_end = ending_start,
	.done = world_done,
	.shared = money_shared,
};

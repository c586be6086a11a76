/* What every run has, whoever owns it: the supervisor's subagents and the
 * conversations of ava/talk.c. Making one can fail for want of memory; the
 * rest only looks. */
#include "subagent/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/position.h"
#include "base/clock.h"
#include "base/util.h"

static void run_wake(struct os_task *t)
{
	struct run *r = CONTAINER_OF(t, struct run, wake);

	if (r->end.abandoned) { /* without memory for its record: nothing more may happen */
		infer_stop(&r->agent);
		toolrun_stop(&r->agent);
		money_settle(r); /* others need not wait for what it held */
	} else if (!r->end.done) {
		agent_run(&r->agent);
	}
}

static void run_timer(void *user)
{
	world_wake(user);
}

int run_init(struct run *r, struct supervisor *sup, struct run_spec *spec)
{
	r->sup = sup;
	r->tools.env = (struct tool_env){.loop = sup->loop,
					 .cwd_fd = -1,
					 .cwd = spec->cwd,
					 .grants = spec->grants,
					 .ngrants = spec->ngrants,
					 .limits = {TOOL_TIME_MS, TOOL_OUTPUT_MAX},
					 .fetch_result = toolrun_fetch,
					 .user = r};
	list_init(&r->node);
	list_init(&r->queue);
	list_init(&r->tools.at_work);
	list_init(&r->end.waits);
	os_task_init(&r->wake, run_wake);
	outbox_init(&r->rec.outbox, sup->book);
	money_begin(r);
	r->call.cut.cost_microusd = -1; /* a call that a crash cut is charged by its price */
	buf_init(&r->tools.artifacts, 1u << 20);
	r->timer = os_timer_new(sup->loop, run_timer, r);
	if (!r->timer) {
		run_fini(r);
		return AVA_ENOMEM;
	}
	r->spec = spec;
	return 0;
}

void run_fini(struct run *r)
{
	list_del(&r->node);
	os_defer_cancel(r->sup->loop, &r->wake);
	money_settle(r);
	group_leave(r);
	agent_fini(&r->agent);
	person_free(r);
	run_checkpoints_free(r);
	ending_free(r);
	draft_free(r->rec.draft);
	outbox_fini(&r->rec.outbox);
	os_timer_free(r->timer);
	os_timer_free(r->call.timer);
	if (r->tools.env.cwd_fd >= 0)
		close(r->tools.env.cwd_fd);
	free(r->tools.calls_before);
	free(r->session_file);
	buf_fini(&r->tools.artifacts);
	spec_free(r->spec);
}

void run_messages_path(const struct run *r, char out[LOGBOOK_PATH])
{
	if (r->place)
		snprintf(out, LOGBOOK_PATH, "%s", r->place->messages);
	else
		logbook_messages_path(r->id.text, out);
}

void run_artifacts_path(const struct run *r, char out[LOGBOOK_PATH])
{
	if (r->place)
		snprintf(out, LOGBOOK_PATH, "%s", r->place->artifacts);
	else
		snprintf(out, LOGBOOK_PATH, "runs/%s/artifacts", r->id.text);
}

enum ava_status run_status(const struct run *r)
{
	if (r->end.done)
		return r->agent.status;
	if (!r->durable)
		return AVA_STARTING;
	if (r->agent.state == AGENT_WAITING)
		return AVA_WAITING;
	return r->agent.state == AGENT_QUEUED ? AVA_QUEUED : AVA_RUNNING;
}

int64_t run_elapsed_ms(const struct run *r)
{
	if (r->end.wall_ms)
		return r->end.used_ms;
	return r->started_wall_ms ? agent_used_ms(&r->agent, clock_mono_ms()) : 0;
}

int64_t run_cost(const struct run *r)
{
	const struct agent_totals *t = &r->agent.at.totals;

	return t->uncosted_calls && t->cost_microusd == 0 ? -1 : t->cost_microusd;
}

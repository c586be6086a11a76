/* Slots: how many runs are at work at once (runs.max).
 *
 * Happy path: a run asks, waits in supervisor.waiting, gets a slot in the order of asking, and
 * gives it back when it waits for long or ends; the next one then gets it. Nothing can fail. A run
 * without memory for its record gives its slot back and ends at the next start. */
#include "subagent/run.h"

static void slots_pump(struct supervisor *s)
{
	while (!s->closing && s->slots_used < (uint64_t)s->settings->runs_max) {
		struct run *r = LIST_FIRST(&s->waiting, struct run, queue);

		if (!r)
			return;
		list_del(&r->queue);
		s->nwaiting--;
		s->slots_used++;
		agent_on_slot(&r->agent);
		run_wake(r);
	}
}

void slots_want(struct run *r)
{
	if (r->place) { /* a person waits for her: her turns take no slot of a run's */
		agent_on_slot(&r->agent);
		return;
	}
	if (r->blocked)
		return; /* it asks again when it may begin (blocked.c) */
	list_add(&r->sup->waiting, &r->queue);
	r->sup->nwaiting++;
	slots_pump(r->sup);
}

void slots_drop(struct run *r)
{
	if (r->place)
		return;
	if (!list_empty(&r->queue)) {
		list_del(&r->queue);
		r->sup->nwaiting--;
	} else if (r->agent.have_slot) {
		r->sup->slots_used--;
	}
	slots_pump(r->sup);
}

void slots_out_of_memory(struct run *r)
{
	run_activity(r, "Out of memory: ends at the next start");
	if (!list_empty(&r->queue) || r->agent.have_slot)
		slots_drop(r);
	r->agent.have_slot = false;
}

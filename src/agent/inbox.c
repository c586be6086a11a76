/* Where an agent's life begins and what arrives from its world. Nothing here
 * acts: each call stores what came, and agent_run (agent.c) looks at it. What
 * cannot be right is a bug of the world, and an assertion. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/compact.h"
#include "agent/limit.h"
#include "agent/position.h"
#include "agent/tool.h"
#include "base/error.h"

void agent_init(struct agent *a, const struct agent_io *io, const struct agent_spec *spec,
		void *world, int64_t request_bytes)
{
	*a = (struct agent){
		.io = io,
		.spec = spec,
		.world = world,
		.started_ms = -1,
		.deadline_ms = INT64_MAX,
		.new_bytes = request_bytes,
		.state = AGENT_QUEUED,
	};
}

void agent_next(struct agent *a, int64_t new_bytes)
{
	struct agent last = *a;

	assert(a->state == AGENT_DONE);
	turn_free(a->turn);
	agent_init(a, last.io, last.spec, last.world, last.new_bytes + new_bytes);
	a->measured_input = last.measured_input;
	a->iteration = a->turn_from = last.iteration;
	a->compact_floor = last.compact_floor;
	a->repeats = last.repeats;
	if (a->repeats != NULL)
		a->repeats->changes++; /* what was said may be a reason to look again */
}

void agent_resume(struct agent *a, struct turn *t)
{
	assert(a->state == AGENT_QUEUED && !a->slot_wanted && a->turn == NULL);
	a->turn = t;
	a->reply_saved = true;
	for (unsigned i = 0; i < t->ncalls; i++)
		a->answered += t->calls[i].answered;
}

void agent_fini(struct agent *a)
{
	turn_free(a->turn);
	a->turn = NULL;
	repeat_free(a->repeats);
	a->repeats = NULL;
}

void agent_on_slot(struct agent *a)
{
	assert(a->state == AGENT_QUEUED && !a->ending && !a->have_slot);
	a->have_slot = true;
	a->started_ms = a->io->now(a) - a->used_ms;
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
	a->again = true;
	a->totals.failed_calls++;
}

void agent_on_overflow(struct agent *a, const char *sentence)
{
	agent_on_again(a);
	agent_too_large(a, sentence);
}

void agent_on_compacted(struct agent *a, int rv, const struct agent_compacted *d)
{
	assert(a->compacting);
	a->compacting = false;
	if (rv == 0)
		compact_done(a, d);
	if (!a->overflowed)
		return; /* without more room it may still be enough */
	if (rv == 0 && d->bytes_after < d->bytes_before)
		a->overflowed = false;
	else
		a->halvings = COMPACT_HALVINGS; /* there is nothing left to leave out */
}

bool agent_can_submit(const struct agent *a)
{
	for (unsigned i = 0; i < a->spec->ntools; i++)
		if (a->spec->tools[i]->flags & TOOL_ENDS)
			return true;
	return false;
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

int agent_on_answer(struct agent *a, const char *text, bool yes)
{
	const char *copy;

	assert(a->state == AGENT_WAITING && !a->ending);
	assert(a->asking > 0 && !a->ask_given);
	if (a->over == 0) {
		copy = arena_copy(&a->turn->mem, text, strlen(text));
		if (copy == NULL)
			return AVA_ENOMEM;
		a->turn->calls[a->asking - 1].output = copy;
	}
	a->ask_given = true;
	a->ask_yes = yes;
	return 0;
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

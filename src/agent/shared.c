/* What is told of limits that a run shares with others: when 80 % of one are used,
 * once, with the results of a turn, as of its own limits. Pure; nothing here can
 * fail. */
#include "agent/shared.h"

#include <inttypes.h>
#include <stdio.h>

#include "agent/agent.h"

const char *const agent_share_names[AGENT_NSHARES] = {
	[SHARE_GROUP_COST] = "group_cost",
	[SHARE_GROUP_TIME] = "group_time",
	[SHARE_DAY_COST] = "day_cost",
};

void shared_ask(struct agent *a, struct agent_shared *out)
{
	*out = (struct agent_shared){0};
	if (a->io->shared != NULL)
		a->io->shared(a, out);
	out->near &= ~(unsigned)a->shares;
}

bool shared_near(int64_t used, int64_t limit)
{
	return limit > 0 && used >= limit - limit / 5;
}

void shared_sentence(const struct agent *a, const struct agent_shared *s, enum agent_share share,
		     char *out, size_t size)
{
	bool time = share == SHARE_GROUP_TIME;
	int64_t one = time ? 1000 : 10000;

	snprintf(out, size,
		 "The limit of %s is near: %" PRId64 " of %" PRId64
		 " %s are used. Finish now: %s what you have.",
		 share == SHARE_DAY_COST ? "this day" : "all runs of your group",
		 s->of[share].used / one, s->of[share].limit / one, time ? "seconds" : "cents",
		 agent_can_submit(a) ? "call submit_result with" : "answer in words with");
}

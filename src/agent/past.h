/* A machine that goes on where another process left it (subagent/carry.c reads that
 * from the record). In src/agent/inbox.c. */
#ifndef AGENT_PAST_H
#define AGENT_PAST_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent.h"

/* Where a run stands that another process had begun (doc/DESIGN.md, "How a run is
 * carried on"): all that the machine must not forget over a crash. */
struct agent_past {
	struct agent_totals totals;
	int64_t used_ms;        /* of its time; that between the processes is none */
	int64_t measured_input; /* of the last call that had a reply */
	int64_t new_bytes;      /* in the request since that reply, the reply too */
	int32_t iteration;
	uint16_t warned, shares;
	uint8_t odd_replies, pauses, repairs;
	bool nudged, force_submit;
	bool again;              /* the call of `iteration` has no reply: it is made again */
	bool wrapping;           /* the next reply is the last */
	struct repeats *repeats; /* *taken*; or NULL */
	int64_t compact_floor;
	uint8_t halvings;
	const char
		*overflow; /* it was too large, and no room is made yet: the sentence, *copied* */
};
/* Before a first agent_run. */
void agent_restore(struct agent *a, const struct agent_past *p);
/* After agent_restore: a recorded reply from which nothing followed yet. What
 * follows is decided as if it had just come, but it is neither counted nor
 * written again. `t` *taken*; its calls with a recorded result are answered. The
 * others were begun or not, nobody knows: those of repeatable tools and those
 * that are `unstarted` run, the rest is answered as interrupted. */
void agent_resume_reply(struct agent *a, struct turn *t);
/* Of its time, so far. */
int64_t agent_used_ms(const struct agent *a, int64_t now_ms);

#endif

/* Limits that a run shares with others: what its group may spend, its deadline,
 * the budget of the day. The world knows them; the machine tells the model. */
#ifndef AGENT_SHARED_H
#define AGENT_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent;

enum agent_share { SHARE_GROUP_COST, SHARE_GROUP_TIME, SHARE_DAY_COST, AGENT_NSHARES };
extern const char *const agent_share_names[AGENT_NSHARES]; /* "group_cost" … */

struct agent_shared {
	unsigned near; /* set of bits: 80 % are used, and the model was not told (a->shares) */
	struct {
		int64_t used, limit; /* micro-USD, ms; of those that are near */
	} of[AGENT_NSHARES];
	bool last; /* what is left pays the next call, and no other one */
};

/* What the world knows; nothing where it has no such limits. */
void shared_ask(struct agent *a, struct agent_shared *out);
/* The sentence for one of them. */
void shared_sentence(const struct agent *a, const struct agent_shared *s, enum agent_share share,
		     char *out, size_t size);
/* Of `used` of `limit`: are 80 % used? */
bool shared_near(int64_t used, int64_t limit);

#endif

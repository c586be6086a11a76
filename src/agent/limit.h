/* The limits of a run as arithmetic: what a call costs, what is left, what
 * has to be said. Pure; nothing here can fail. */
#ifndef AGENT_LIMIT_H
#define AGENT_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/machine.h"

#define LIMIT_LEAST_OUTPUT 1024 /* tokens: below that a reply is not worth its input */

/* May another call start? -1 and its *max_output (tokens), or the resource
 * (enum agent_resource) that is used up. The time is left to the deadline. */
int limit_reserve(const struct agent *a, int64_t *max_output);

/* What the next call costs at most with that output; 0 when the price is not
 * known: money does not hold it then. */
int64_t limit_call_cost(const struct agent *a, int64_t max_output);
/* Output that a call of that much money may have; negative: not even its input. */
int64_t limit_output_for(const struct agent *a, int64_t microusd);
/* Tokens that the next call's input will have, as far as it is known. */
int64_t limit_next_input(const struct agent *a);

/* Is the next call, however short its reply, the last one that the limits pay for? */
bool limit_last(const struct agent *a);

/* The same for that much money, shared with others. */
bool limit_last_of(const struct agent *a, int64_t microusd);

/* Count a reply's usage into the totals. The cost computed from the price is
 * written back into u->cost_microusd; it stays -1 when unknown. */
void limit_settle(struct agent *a, struct usage *u);

/* The same for an attempt that gave no reply: nothing was measured. */
void limit_charge(struct agent *a, struct usage *u);

/* Resources of which the input of the next call, as far as it is known, will
 * have used 80 %, and that the model was not told about: set of bits. What is
 * used already would often be too late: a call costs its whole input again. */
unsigned limit_near(const struct agent *a, int64_t now_ms);

/* The sentence for one of them. */
#define LIMIT_TEXT 160
void limit_sentence(const struct agent *a, enum agent_resource r, int64_t now_ms,
		    char out[LIMIT_TEXT]);

/* Can it end by submit_result? Else by an answer in words. */
bool limit_can_submit(const struct agent *a);

/* ---- limits that a run shares with others: what its group may spend, its deadline,
 * the budget of the day. The world knows them; the machine tells the model. */

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

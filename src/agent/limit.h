/* The limits of a run as arithmetic: what a call costs, what is left, what
 * has to be said. Pure; nothing here can fail. */
#ifndef AGENT_LIMIT_H
#define AGENT_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"

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

#endif

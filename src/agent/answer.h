/* Answers that the machine gives itself (agent.c). */
#ifndef AGENT_ANSWER_H
#define AGENT_ANSWER_H

#include <stdbool.h>

#include "agent/agent.h"

/* `error_class` and `output` are static or in the turn's arena. */
void answer_call(struct agent *a, struct turn_call *c, bool success, const char *error_class,
		 const char *output);
/* Every call that has none gets a result, also when the run ends: the next request,
 * and whoever reads the record, must find both halves. */
void answer_open(struct agent *a, const char *error_class, const char *why);
void answer_unknown(struct agent *a, struct turn_call *c);
void answer_bad(struct agent *a, struct turn_call *c, const char *sentence);
/* Of a replayed reply: what a stop of the runtime cut off may have happened. */
void answer_interrupted(struct agent *a);

#endif

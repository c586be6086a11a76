/* Calls that a person answers: questions of the model (TOOL_ASKS), and calls that may not start
 * without a yes (agent_spec.ask_before). One is asked at a time. Pure. */
#ifndef AGENT_ASK_H
#define AGENT_ASK_H

#include "agent/machine.h"

/* Must a person be asked about this unanswered call? */
bool ask_needed(const struct agent *a, const struct turn_call *c);
/* Answer calls of a replayed reply that a stop of the runtime cut off, but for those of which a
 * person is asked; they may have happened. */
void answer_interrupted(struct agent *a);
/* The number of calls that a person must be asked about, and the first of them in *first. */
unsigned ask_open(const struct agent *a, unsigned *first);

/* Give the question of this call to the world. 0, AVA_ENOMEM, or the world's code. */
int ask_start(struct agent *a, unsigned call);
/* Ask about the limit or quota in a->over, and poll for the answer: 0 and *how, 1: nobody has
 * answered yet, or a code as above. */
int ask_over(struct agent *a, enum agent_asked *how);
/* Result of a call that a person was asked about, strings static or in `mem` (or `text`): the
 * answer, or the default of a question that nobody answered. */
struct ask_result {
	bool success;
	const char *error_class, *output;
};
struct ask_result ask_result(struct arena *mem, bool approval, enum agent_asked how,
			     const char *text);
/* Turn the person's answer, or that there was none, into the call's result or leave to start.
 * Returns which. */
enum agent_asked ask_take(struct agent *a);

/* ---- arrivals, as in agent/agent.h */

/* The open question (a->asking) is answered; `text` *copied*. `yes`: of an approval, the call
 * may start. AVA_ENOMEM: still open. */
int agent_on_answer(struct agent *a, const char *text, bool yes);
/* The service refuses the call until a time that the world will ask about (AGENT_ASK_QUOTA): an
 * attempt was `made`, or none. Class and sentence (*copied*) are for the end, if a person stops
 * the run. Also before a first agent_run: the run was parked by an earlier process. */
void agent_on_parked(struct agent *a, bool made, const char *error_class, const char *sentence);
/* A person says, or said earlier, that a parked run shall wait: until then, monotonic. */
void agent_on_wait(struct agent *a, int64_t until_ms);

/* A copy of the turn in one chunk of memory, without parts that are on disk and not needed once
 * the reply is saved (wire, thinking). NULL: out of memory. */
struct turn *ask_trim(const struct turn *t);

#endif

/* Calls that a person answers: questions of the model (TOOL_ASKS), and calls
 * that may not start without a yes (agent_spec.ask_before). One is asked at a
 * time. Pure. */
#ifndef AGENT_ASK_H
#define AGENT_ASK_H

#include "agent/machine.h"

/* Has this call, not answered yet, to be asked about? */
bool ask_needed(const struct agent *a, const struct turn_call *c);
/* How many there are, and the first of them in *first. */
unsigned ask_open(const struct agent *a, unsigned *first);

/* Give the question to the world. 0, AVA_ENOMEM, or what the world says. */
int ask_start(struct agent *a, unsigned call);
/* The same about what a->over says, from the question to its answer: 0 and
 * *how, 1: nobody has answered yet, or a code as above. */
int ask_over(struct agent *a, enum agent_asked *how);
/* What a call that a person was asked about returns, strings static or in `mem`
 * (or `text`): the answer, or the default of a question that nobody answered. */
struct ask_result {
	bool success;
	const char *error_class, *output;
};
struct ask_result ask_result(struct arena *mem, bool approval, enum agent_asked how,
			     const char *text);
/* The person's answer, or that nobody gave one, becomes the call's: a result,
 * or leave to start. Returns what it is. */
enum agent_asked ask_take(struct agent *a);

/* ---- what arrives, as in agent/agent.h */

/* The question that is open (a->asking) is answered; `text` *copied*. `yes`: of
 * an approval, the call may start. AVA_ENOMEM: it is still open. */
int agent_on_answer(struct agent *a, const char *text, bool yes);
/* The service refuses it until a time, for which the world asks (AGENT_ASK_QUOTA): an attempt
 * that was `made`, or one that is not made before. Class and sentence (*copied*) are of the
 * end when a person stops it. Also before a first agent_run: it is parked since before. */
void agent_on_parked(struct agent *a, bool made, const char *error_class, const char *sentence);
/* A person says, or has said before, that a parked run shall wait: until then, monotonic. */
void agent_on_wait(struct agent *a, int64_t until_ms);

/* A copy in one piece of memory of its size, without what is on disk and not needed
 * any more once the reply is saved (wire, thinking). NULL: out of memory. */
struct turn *ask_trim(const struct turn *t);

#endif

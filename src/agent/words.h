/* What the machine tells a model about its own replies. */
#ifndef AGENT_WORDS_H
#define AGENT_WORDS_H

#include <stddef.h>

#include "agent/agent.h"
#include "agent/shared.h"

#define ODD_REPLIES_MAX 3 /* in a row are asked again, with a changed request */
#define WORDS_REPEATED  "the model made the same call with the same result four times"

/* All that is said with the results of a turn, as notices in its arena; `near`: limits
 * of its own that the model is told of. AVA_ENOMEM. */
#define WORDS_NOTICES (AGENT_NRESOURCES + AGENT_NSHARES + 3)
int words_notices(struct agent *a, const char *out[WORDS_NOTICES], unsigned *n, unsigned *near);

/* Why a turn without calls goes back to the model. */
void words_note(const struct agent *a, char *out, size_t size);
/* Look for calls of the turn that were made before (agent/repeat.h): a word about
 * them, "" when there is nothing to say; in the end the next reply is the last
 * (a->wrapping). AVA_ENOMEM. */
int words_repeats(struct agent *a, char *out, size_t size);

/* The one wrap-up: the next call can be no more than the end, and is made to be it
 * where the dialect can. `shared`: no other one is paid by what it shares with others.
 * false: it is not, *out is not touched. */
bool words_last(struct agent *a, bool shared, char *out, size_t size);

#endif

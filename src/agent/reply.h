/* A reply that is text only: is it the result, a call written as text, or
 * neither? Pure. */
#ifndef AGENT_REPLY_H
#define AGENT_REPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/io.h"
#include "base/arena.h"

struct tool;

struct reply {
	json_t *object;    /* the result found in it; NULL: none; owned */
	bool envelope;     /* it has `output` or `summary`, else it is the output */
	size_t start, end; /* where it stands, its fence included */
	bool call;         /* no result, but a call of an allowed tool as text */
};

/* What a model wrote stands inside events and result.json, which are read to a
 * depth of 64. */
#define REPLY_DEPTH_MAX 56
bool reply_shallow(const json_t *v, unsigned depth); /* not nested deeper than that */

/* 0 or AVA_ENOMEM. After it reply_fini is due in either case. */
int reply_read(struct reply *r, const char *text, size_t len, const struct tool *const *tools,
	       unsigned ntools);
void reply_fini(struct reply *r);

/* Fill output, summary, caveats and confidence of `end` from the arguments of
 * submit_result or from an envelope; strings in `mem`. 0 or AVA_ENOMEM. */
int reply_result(struct arena *mem, const json_t *object, struct agent_end *end);
/* The same from what reply_read found; text beside the object becomes the
 * summary when it has none. */
int reply_take(struct arena *mem, const struct reply *r, const char *text, size_t len,
	       struct agent_end *end);

#endif

/* A reply that is text only: is it the result, a call written as text, or
 * neither? Pure. */
#ifndef AGENT_REPLY_H
#define AGENT_REPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/machine.h"
#include "base/arena.h"

struct tool;

struct reply {
	json_t *object;    /* the result found in it; NULL: none; owned */
	bool envelope;     /* it has `output` or `summary`, else all of it is the output */
	size_t start, end; /* its place, fence included */
	bool echo;         /* our own words instead of a result (agent/output.c) */
	bool call;         /* a call as text; of an unknown tool: only if nothing else is there */
	bool words;        /* more than objects and marks of calls */
};

/* The tool that a call means: of that name, else the only one whose name has the same letters
 * and digits, else the only one that stands with a word more. NULL: none, or several. */
const struct tool *reply_tool(const struct tool *const *tools, unsigned n, const char *name);

/* Read a text. 0 or AVA_ENOMEM; reply_fini is due in either case. */
int reply_read(struct reply *r, const char *text, size_t len, const struct tool *const *tools,
	       unsigned ntools);
void reply_fini(struct reply *r);
/* The end of an object that begins the line at `from` and is no call; 0: it may still become
 * one. */
size_t reply_shown(const char *text, size_t from, size_t len, const struct tool *const *tools,
		   unsigned ntools);
/* The calls written in a text, maybe behind words, in their order: a list of {"name",
 * "arguments"}, the caller's, and where their first mark stands; one more that was cut off is
 * left out. NULL: none, or words follow that may be about them; no memory. */
json_t *reply_calls(const char *text, size_t len, const struct tool *const *tools, unsigned ntools,
		    size_t *from);

/* Rewrite a result in other words and forms into those of submit_result: {"answer":…}, a
 * confidence of 90 or "high", caveats that are no list of texts; members without a place become
 * the output where there is none. */
void reply_mend(json_t *o);
/* The text of `v`, one line, in `mem`. 0 or AVA_ENOMEM. */
int reply_json(struct arena *mem, const json_t *v, const char **out, size_t *len);
/* Fill output, summary, caveats and confidence (0: unknown) of `end` from the arguments of
 * submit_result or from an envelope; strings in `mem`. 0 or AVA_ENOMEM. */
int reply_result(struct arena *mem, const json_t *object, struct agent_end *end);
/* As reply_result, from what reply_read found: unverified and with a caveat about its origin,
 * unless it was asked for in that form (`submitted`); text beside the object becomes the summary
 * when the object has none. */
int reply_take(struct arena *mem, const struct reply *r, const char *text, size_t len,
	       bool submitted, struct agent_end *end);
#define REPLY_LOOPED "the model repeated itself from here on and was stopped"
/* Mark a text that was cut because it repeated itself and is no result. 0 or AVA_ENOMEM. */
int reply_mark(struct turn *t, const struct reply *r);

/* Keep a text that would end the run, but after which the model is asked once more, as
 * a->at.said. Of two texts the later stays when it holds the earlier, or is a whole answer (200
 * bytes and half as long); else the earlier, with the later behind it where both are short. 0,
 * AVA_ENOMEM. */
int reply_keep(struct agent *a, const char *text);
/* The turn looks something up for the first time: drop the kept text, said without looking. */
void reply_forget(struct agent *a);

#endif

/* What the offline model sees of a request body. It is a function of the body
 * alone, so everything it knows about the conversation is in here. Slices
 * borrow from the body. */
#ifndef PROVIDER_OFFLINE_BODY_H
#define PROVIDER_OFFLINE_BODY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "codec/jscan.h"

struct ava_error;

#define OFFLINE_MAX_CALLS 64u /* calls looked at; the planner makes far fewer */
#define OFFLINE_MAX_PROPS 12u

/* Tools the planner knows how to use. */
enum offline_tool_id {
	OFFLINE_SEARCH,
	OFFLINE_READ,
	OFFLINE_SEARCH_READ,
	OFFLINE_SUBMIT,
	OFFLINE_NTOOLS
};

struct offline_tool {
	bool offered;
	struct slice props[OFFLINE_MAX_PROPS]; /* names of its arguments; raw */
	unsigned nprops;
};

struct offline_call {
	int tool;                       /* enum offline_tool_id; -1: another one */
	struct slice id, input, result; /* raw; result.s NULL: no answer in the body */
	unsigned message;               /* calls of one reply have the same */
	bool is_error;
};

struct offline_body {
	struct arena mem;
	struct offline_tool tools[OFFLINE_NTOOLS];
	const char *task; /* text of the first user message; in mem */
	size_t task_len;
	struct offline_call calls[OFFLINE_MAX_CALLS]; /* in order */
	unsigned ncalls;
	unsigned number; /* of the call that is to be answered, from 1 */
	long max_tokens; /* 0: not said */
	bool forced;     /* tool_choice asks for submit_result */
	bool wrap_up;    /* the runtime asked for the result, or a limit is near */
};

/* AVA_EINVAL when it is no body of the Messages form, AVA_ENOMEM. On error
 * nothing is left to free. */
int offline_body_read(struct offline_body *b, const char *body, size_t len, struct ava_error *err);
void offline_body_fini(struct offline_body *b);

/* Whether the tool takes an argument of that name. */
bool offline_tool_takes(const struct offline_tool *t, const char *prop);

#endif

/* What begins a turn of Ava's: something that was said, a subagent's result. */
#ifndef AVA_TALK_INPUT_H
#define AVA_TALK_INPUT_H

#include "ava/sessions.h"
#include "base/list.h"

struct input;
struct talk;

/* What was said is being carried out as an answer: to proposals, or to what a
 * subagent asks. */
struct op_answer {
	struct input *in; /* NULL: the conversation was closed meanwhile */
	unsigned left;    /* answers under way */
	bool outlives;    /* it is called back, and freed, after the conversation is closed */
};

struct say_wait { /* whoever said it hears when it is on disk */
	struct list node;
	op_said_fn done;
	void *user;
};

enum input_kind { INPUT_SAID, INPUT_RESULT };
struct input { /* begins a turn, or goes into the next one */
	struct list node;
	enum input_kind kind;
	char id[24];     /* entry of what was said, or run */
	int64_t said_ms; /* wall */
	char *text;      /* owned */
	struct talk *talk;
	struct op_answer *answer; /* it is being carried out; or NULL */
	bool looked;              /* for an answer */
	char *request;            /* owned; NULL: none */
	struct list waits;        /* say_wait: until it is on disk */
};

void talk_input_free(struct input *in);

#endif

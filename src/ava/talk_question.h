/* What a person says in a conversation, as the answer to what a subagent of it
 * asks (ask_person, ask_before, a limit). */
#ifndef AVA_TALK_QUESTION_H
#define AVA_TALK_QUESTION_H

#include <stdbool.h>
#include <stdint.h>

struct input;
struct talk;

/* The proposals that wait and were there when it was said. */
struct talk_waiting {
	unsigned proposals;
	bool named;        /* the words name one */
	int64_t newest_ms; /* of the newest, wall */
};

enum talk_reply {
	TALK_REPLY_NONE,  /* it is no answer to a subagent */
	TALK_REPLY_TAKEN, /* it is being passed on; talk_pump goes on afterwards */
	TALK_REPLY_DOUBT  /* nothing is done: Ava was told to ask which one is meant */
};
enum talk_reply talk_question(struct talk *t, struct input *in, const struct talk_waiting *w);

#endif

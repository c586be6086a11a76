/* Words between a run and people: the question that it waits for (agent_io.ask),
 * and messages to it while it is at work. Both are events first: no message is
 * acknowledged before it is on disk. Loop thread only. */
#ifndef SUBAGENT_PERSON_H
#define SUBAGENT_PERSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "subagent/run.h"

struct ava_error;
struct run;

#define PERSON_TEXT_MAX  2000 /* characters of one message */
#define PERSON_HEARD_MAX 64   /* newest request ids that a run remembers */

/* Called once; may be NULL. rv 0: the words are on disk. `steer_id` "" for an answer.
 * AVA_ECANCELED: the run ended, or the runtime stops, first. */
typedef void (*person_fn)(int rv, const char *steer_id, void *user);

/* A message or an answer of a person. *Copied.* */
struct person_words {
	const char *text, *by;
	const char *origin;     /* the door the words came by; NULL: unknown */
	const char *request_id; /* "" or NULL: none */
};

/* A message or answer on disk that came with a request id. */
struct person_heard {
	/* The id of the message, or of the answered call; one is "". */
	char steer_id[16], call_id[16];
};
bool person_heard(const struct run *r, const char *request_id, struct person_heard *out);

/* NULL: the run asks nothing, or it was just answered. */
const struct question *person_question(const struct run *r);
/* The core of an answer, *len bytes: "large" of "the large one, please." */
const char *person_bare(const char *text, size_t *len);
/* The question shows the arguments of the call not whole. */
bool person_cut(const struct question *q);
/* The choice that `text` means, by its words or its number; the caller frees it. NULL: none, or
 * no memory. */
char *person_choice(const struct question *q, const char *text);
/* Answer it. `yes` counts for an approval. 0: `done` follows. AVA_EINVAL (length),
 * AVA_ENOMEM. */
int person_answer(struct run *r, const struct person_words *w, bool yes, person_fn done, void *user,
		  struct ava_error *err);
/* Let a parked run wait for its time. As person_answer. */
int person_wait(struct run *r, const struct person_words *w, person_fn done, void *user,
		struct ava_error *err);
/* Say something to a run at work: the model reads it with the next results.
 * As person_answer; AVA_EBUSY: it has not read PERSON_SAID_MAX others. */
int person_steer(struct run *r, const struct person_words *w, person_fn done, void *user,
		 struct ava_error *err);

/* ---- after a restart, from the record (restore.c) */
/* The Waiting event of an open question: when the run asks again, it is the same
 * question, as old, with the time it had left, and no second event. `asked_ms`: when it was asked,
 * wall. AVA_ENOMEM.
 */
int person_restore_question(struct run *r, const json_t *content, int64_t asked_ms);
void person_forget_question(struct run *r);
bool person_was_asked(const struct run *r); /* and it was not forgotten */
/* A message from its Steering event. */
int person_restore_said(struct run *r, const char *id, const json_t *content);
void person_forget_said(struct run *r, const char *id);
int person_restore_heard(struct run *r, const char *request_id, const struct person_heard *was);
/* The machine is restored: tell it of the messages that it has not taken. */
void person_restored(struct run *r);

#endif

/* What passes between a run and people: the question that it waits for
 * (agent_io.ask), and what is said to it while it is at work. Both are events
 * first: nobody is told "yes, it has it" before that is on disk. Loop thread
 * only. */
#ifndef SUBAGENT_PERSON_H
#define SUBAGENT_PERSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "subagent/run.h"
#include "base/hash.h"
#include "base/list.h"

struct ava_error;
struct run;

#define PERSON_TEXT_MAX  2000 /* characters of what is said, at once */
#define PERSON_HEARD_MAX 64   /* request ids that it remembers, the newest */

/* May be NULL. rv 0: it is on disk. `steer_id` "" for an answer. Once; AVA_ECANCELED:
 * the run ended, or the runtime stops, first. */
typedef void (*person_fn)(int rv, const char *steer_id, void *user);

/* What a person says. *Copied.* */
struct person_words {
	const char *text, *by;
	const char *origin;     /* the door it came by; NULL: none is known */
	const char *request_id; /* "" or NULL: none */
};

/* What was said with a request id before, and is on disk. */
struct person_heard {
	char steer_id[16], call_id[16]; /* one of them "" */
};
bool person_heard(const struct run *r, const char *request_id, struct person_heard *out);

/* NULL: the run asks nothing, or it was just answered. */
const struct question *person_question(const struct run *r);
/* An answer without what one says around it, *len bytes: "the large one, please." */
const char *person_bare(const char *text, size_t *len);
/* The choice that is meant, by its words or its number; the caller frees it. NULL: none, or no
 * memory. */
char *person_choice(const struct question *q, const char *text);
/* Answer it. `yes` counts for an approval. 0: `done` follows. AVA_EINVAL (length),
 * AVA_ENOMEM. */
int person_answer(struct run *r, const struct person_words *w, bool yes, person_fn done, void *user,
		  struct ava_error *err);
/* A parked run shall wait for its time. As above. */
int person_wait(struct run *r, const struct person_words *w, person_fn done, void *user,
		struct ava_error *err);
/* Say something to a run at work: the model reads it with the next results.
 * As above; AVA_EBUSY: it has not read PERSON_SAID_MAX others. */
int person_steer(struct run *r, const struct person_words *w, person_fn done, void *user,
		 struct ava_error *err);

/* ---- after a restart, from the record (restore.c) */
/* The Waiting event of a question that was open: asked again it is the same one,
 * with the time it had left, and no second event. `asked_ms`: when it was asked, wall. AVA_ENOMEM.
 */
int person_restore_question(struct run *r, const json_t *content, int64_t asked_ms);
void person_forget_question(struct run *r);
/* As a Steering event has it. */
int person_restore_said(struct run *r, const char *id, const json_t *content);
void person_forget_said(struct run *r, const char *id);
int person_restore_heard(struct run *r, const char *request_id, const struct person_heard *was);
/* The machine stands: it hears of what it has to tell. */
void person_restored(struct run *r);

#endif

/* Where a machine stands, as plain data: all that it must not forget between two
 * processes. Each turn's commit carries it (event StateWrite, key "position";
 * doc/JOURNAL.md, "The position"); a restart, a replay and a fork begin from it.
 * One struct, one encoder, one decoder. */
#ifndef AGENT_POSITION_H
#define AGENT_POSITION_H

#include <jansson.h>
#include <stdint.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/machine.h"

struct jw;
struct redact;

/* Of a machine between two turns, or while its model is called. What it points to is
 * borrowed. */
void agent_position_of(const struct agent *a, int64_t now_ms, struct agent_position *p);

/* Into an object that is open in `w`. What is 0 is left out. `sentence`: when the
 * request was too large, what the service said; in the last reply of a run that repeats
 * itself, what it did. What the model said goes in without secrets; `redact` NULL: it has none. */
void agent_position_write(const struct agent_position *p, const char *sentence,
			  const struct redact *redact, struct jw *w);
/* AVA_ENOMEM, AVA_ECORRUPT; agent_position_fini is due in any case. */
int agent_position_read(struct agent_position *p, const json_t *value);
void agent_position_fini(struct agent_position *p);       /* frees what it points to */
const char *agent_position_sentence(const json_t *value); /* borrowed; "" */

/* Before a first agent_run; what p points to is *taken* (and NULL then). */
void agent_restore(struct agent *a, struct agent_position *p, const char *sentence);
/* After agent_restore: a recorded reply of that call, `bytes` of the next request,
 * from which nothing followed yet. It is counted; what follows is decided as if it
 * had just come, and nothing of it is written again. `t` *taken*; its calls with a
 * recorded result are answered. The others were begun or not, nobody knows: those
 * of repeatable tools and those that are `unstarted` run, the rest is answered as
 * interrupted. */
void agent_resume_reply(struct agent *a, struct turn *t, int64_t bytes);
/* The same for a reply that is counted already (a replay). */
void agent_resume_counted(struct agent *a, struct turn *t);
/* The request was too large: the next call is not made before there is room, or asks for less
 * output where that is enough. */
void agent_too_large(struct agent *a, const struct agent_told *told, const char *error_class,
		     const char *sentence);
/* Of its time, so far. */
int64_t agent_used_ms(const struct agent *a, int64_t now_ms);
/* Its time goes while it has a slot, but for what it waits for others: a person, runs that go
 * first. Each is fine twice. */
void agent_clock_stop(struct agent *a);
void agent_clock_go(struct agent *a);

/* ---- Which calls a run has made before, with which result. A model that asks for
 * the same again and again makes no progress: it is told where the result
 * stands, then that it repeats itself, then the run stops. Pure; bounded. */

struct turn;
struct turn_call;

#define REPEAT_CALLS 256 /* the newest of a run are known */
#define REPEAT_STOP  4   /* the same call with the same result that many times: enough */

struct call_ref { /* c<iteration>.<n> */
	int32_t iteration;
	uint32_t n;
};
/* "c3.1" of our own making. false: it is none. */
bool call_ref_read(const char *id, struct call_ref *out);

struct repeat_call {
	uint64_t call, result; /* prints of name and arguments, and of what came back */
	struct call_ref at;    /* where the whole result stands, or stood */
	int32_t last;          /* iteration that made it last: a reply counts once */
	uint32_t changes;      /* of the table, when `times` began */
	uint8_t times;         /* with this result */
	uint8_t removed;       /* from the conversation, how often */
	bool gone;             /* it is removed now */
	bool fetched;          /* asked for again after it was removed */
};

struct repeats {
	struct repeat_call *calls; /* owned */
	size_t cap;
	unsigned n, next; /* next: the one that gives way when all are taken */
	uint32_t changes; /* calls so far that may have changed the world */
};
void repeat_free(struct repeats *r); /* NULL is fine */
/* For another thread. 0 or AVA_ENOMEM; *out is the caller's, NULL for NULL. */
int repeat_copy(const struct repeats *r, struct repeats **out);

/* Of a call that has its result: what the table knows it by. */
struct repeat_print {
	uint64_t call, result; /* name and arguments; what came back */
};

/* What was the same in this call that has just got its result? */
struct repeat_note {
	unsigned times;       /* 1: it is new, or its result is no more in the conversation */
	struct call_ref from; /* else: where the same result stands */
};

/* The same for all calls of a turn that ran or were refused: outputs of tools that are in
 * the conversation already become a sentence that says where. *worst: the call that was made most
 * often; NULL: none was repeated. *r as above. AVA_ENOMEM. */
int repeat_turn(struct repeats **r, struct turn *t, const struct turn_call **worst,
		struct repeat_note *how);

/* Count the turn in *vain, the turns in a row in which no call could run: its last call, if it is
 * one; else NULL, and where a call ran it begins anew. */
const struct turn_call *repeat_vain(const struct turn *t, uint8_t *vain);

/* The result of that call was removed. `r` may be NULL here and below. */
void repeat_removed(struct repeats *r, struct call_ref at);
/* For the result of that call: is it there because it was asked for again? How
 * often was it removed before? */
bool repeat_fetched(const struct repeats *r, struct call_ref at, unsigned *removed);

#endif

/* A machine's position, as plain data: all that must survive from one process to the next. Each
 * turn's commit carries it (event StateWrite, key "position"; doc/JOURNAL.md, "The position"); a
 * restart, a replay and a fork begin from it. One struct, one encoder, one decoder. */
#ifndef AGENT_POSITION_H
#define AGENT_POSITION_H

#include <jansson.h>
#include <stdint.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/machine.h"

struct jw;
struct redact;

/* Position of a machine between two turns, or while its model is called. Pointers in it are
 * borrowed. */
void agent_position_of(const struct agent *a, int64_t now_ms, struct agent_position *p);

/* Write the position into an object open in `w`; zeros are left out. With p->delta > 0 only what
 * is due of `said` and `repeats`, whose rows are not due any more then. `sentence`: the service's,
 * when the request was too large; or the fault of a run that repeats itself, for its last reply.
 * The model's text goes in without secrets; `redact` NULL: there are none. */
void agent_position_write(const struct agent_position *p, const char *sentence,
			  const struct redact *redact, struct jw *w);
/* No position was read yet: a first one must be whole. */
#define AGENT_POSITION_NONE                                                                        \
	{                                                                                          \
		.delta = -1                                                                        \
	}
/* Read the next position into *p, which holds the one before: a whole one takes its place, another
 * one changes it. 0, AVA_ENOMEM, AVA_ECORRUPT, AVA_ENOENT: it changes a position that is not the
 * one before; call agent_position_fini in any case. */
int agent_position_read(struct agent_position *p, const json_t *value);
void agent_position_fini(struct agent_position *p);       /* frees what its pointers point to */
const char *agent_position_sentence(const json_t *value); /* borrowed; "": none */

/* Set the machine to position `p` before a first agent_run; pointers of p are *taken* (and NULL
 * then). */
void agent_restore(struct agent *a, struct agent_position *p, const char *sentence);
/* After agent_restore: take up a recorded reply of the restored call, `bytes` of the next request,
 * without recorded consequences. It is counted and handled as if it had just come, but not written
 * again. `t` *taken*; its calls with a recorded result are answered. Others may have begun: those
 * of repeatable tools run, the rest is answered as interrupted. */
void agent_resume_reply(struct agent *a, struct turn *t, int64_t bytes);
/* The request was too large: make room before the next call, or ask for less output where that
 * is enough. */
void agent_too_large(struct agent *a, const struct agent_told *told, const char *error_class,
		     const char *sentence);
/* The time that the run has used so far. */
int64_t agent_used_ms(const struct agent *a, int64_t now_ms);
/* Stop or start the run's clock, which goes while the run has a slot and does not wait for others:
 * a person, runs that go first. Calling either twice is fine. */
void agent_clock_stop(struct agent *a);
void agent_clock_go(struct agent *a);

/* ---- A run's earlier calls and their results. A model that asks for the same again and again
 * makes no progress: it is told where the result stands, then that it repeats itself, then the
 * run stops. Pure; bounded. */

struct turn;
struct turn_call;

#define REPEAT_CALLS 256 /* newest calls kept for a run */
#define REPEAT_STOP  4   /* the same call and result so often: the run ends by its next reply */

struct call_ref { /* c<iteration>.<n> */
	int32_t iteration;
	uint32_t n;
};
/* Parse an id of our own making, "c3.1". false: not one. */
bool call_ref_read(const char *id, struct call_ref *out);

struct repeat_call {
	uint64_t call, result; /* hashes: of name and arguments, of the result */
	struct call_ref at;    /* the call that the whole result stands at, now or before */
	int32_t last;          /* last iteration that made the call: a reply counts once */
	uint32_t changes;      /* repeats.changes when the call was counted last */
	uint8_t times;         /* how often the call had this result */
	uint8_t removed;       /* how often the result was removed from the conversation */
	bool gone;             /* the result is removed now */
	bool fetched;          /* the result was asked for again after it was removed */
	bool due;              /* no position has the row as it is now */
};

struct repeats {
	struct repeat_call *calls; /* owned */
	size_t cap;
	unsigned n, next; /* next: index of the call that is replaced when all are in use */
	uint32_t changes; /* number of calls so far that may have changed the world */
};
void repeat_free(struct repeats *r); /* NULL is fine */
/* Copy the table for another thread. 0 or AVA_ENOMEM; *out is the caller's, NULL for NULL. */
int repeat_copy(const struct repeats *r, struct repeats **out);

/* The key of a row of the table: a call together with its result. */
struct repeat_print {
	uint64_t call, result; /* hash of name and arguments; of what came back */
};

/* Repetition found in a call that has just got its result. */
struct repeat_note {
	unsigned times; /* 1: the call is new, or its result is no longer in the conversation */
	struct call_ref from; /* when times > 1: the call that the same result stands at */
};

/* Count all calls of a turn that ran or were refused: an output that is in the conversation
 * already becomes a sentence that says where. *worst: the call made most often; NULL: none was
 * repeated. *r as above. AVA_ENOMEM. */
int repeat_turn(struct repeats **r, struct turn *t, const struct turn_call **worst,
		struct repeat_note *how);

/* Count in *vain the turns in a row in which no call could run. Returns the last call of such a
 * turn, else NULL. A call that ran sets *vain to 0; any other turn leaves it. */
const struct turn_call *repeat_vain(const struct turn *t, uint8_t *vain);

/* Note that the result of call `at` was removed. `r` may be NULL here and below. */
void repeat_removed(struct repeats *r, struct call_ref at);
/* Is the result of call `at` there because it was asked for again, and how often was it removed
 * before? */
bool repeat_fetched(const struct repeats *r, struct call_ref at, unsigned *removed);

#endif

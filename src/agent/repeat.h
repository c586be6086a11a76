/* Which calls a run has made before, with which result. A model that asks for
 * the same again and again makes no progress: it is told where the result
 * stands, then that it repeats itself, then the run stops. Pure; bounded. */
#ifndef AGENT_REPEAT_H
#define AGENT_REPEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct turn;
struct turn_call;

#define REPEAT_CALLS 256 /* the newest of a run are known */
#define REPEAT_STOP  4   /* the same call with the same result that many times: enough */

struct call_ref { /* c<iteration>.<n> */
	int32_t iteration;
	uint32_t n;
};
bool call_ref_before(struct call_ref a, struct call_ref b);
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
	unsigned n, cap, next;     /* next: the one that gives way when all are taken */
	uint32_t changes;          /* calls so far that may have changed the world */
};
void repeat_free(struct repeats *r); /* NULL is fine */

/* Of a call that has its result: what the table knows it by. */
struct repeat_print {
	uint64_t call, result; /* name and arguments; what came back */
};
struct repeat_print repeat_print(const struct turn_call *c);

/* What was the same in this call that has just got its result? */
struct repeat_note {
	unsigned times;       /* 1: it is new, or its result is no more in the conversation */
	struct call_ref from; /* else: where the same result stands */
};
/* `changes`: its tool may have changed the world. *r is made when it is NULL. AVA_ENOMEM. */
int repeat_add(struct repeats **r, struct call_ref at, struct repeat_print print, bool changes,
	       struct repeat_note *out);

/* The same for all calls of a turn that ran: outputs that are in the conversation
 * already become a sentence that says where. *worst: the call that was made most
 * often; NULL: none was repeated. *r as above. AVA_ENOMEM. */
int repeat_turn(struct repeats **r, struct turn *t, const struct turn_call **worst,
		struct repeat_note *how);

/* The result of that call was removed. `r` may be NULL here and below. */
void repeat_removed(struct repeats *r, struct call_ref at);
/* For the result of that call: is it there because it was asked for again? How
 * often was it removed before? */
bool repeat_fetched(const struct repeats *r, struct call_ref at, unsigned *removed);

#endif

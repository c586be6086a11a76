/* A model call of a run while it is made; shared by infer.c (what every call
 * goes through), infer_remote.c (services: gate, wire, retries) and
 * infer_amend.c (a parameter less, another model). */
#ifndef SUBAGENT_INFER_H
#define SUBAGENT_INFER_H

#include <ava.h>

#include "agent/io.h"
#include "base/buf.h"
#include "base/hash.h"
#include "os/loop.h"
#include "provider/dialect.h"
#include "subagent/infer_lines.h"
#include "subagent/wirecall.h"

struct run;

/*   MONEY ─► GATE ─► SAVE ─► WORK ─► WIRE ─► (reply)
 *                    │       └────► PARKED ─► (asked again: a new job)
 *                    └─► DELAY ─► (reply)     a local model
 *   what fails on the way ─► FAILED ─► (the machine is told) */
enum infer_state {
	INFER_MONEY,  /* others hold back what a group or the day has left */
	INFER_GATE,   /* others go first */
	INFER_SAVE,   /* its InferStart is on the way to the disk */
	INFER_WORK,   /* a pool thread builds the request, or answers it */
	INFER_WIRE,   /* the service has it */
	INFER_DELAY,  /* the answer is here, and due later */
	INFER_HELD,   /* an attempt of an earlier process failed: its time is not over */
	INFER_PARKED, /* it failed and the next attempt waits for its time */
	INFER_FAILED, /* for good; rv and err say why */
};

struct infer_job {
	struct os_work work;
	struct run *run;
	struct agent_infer call;
	enum infer_state state;
	bool stopped; /* nobody waits for it: dropped when the pool thread is done */
	bool sent;    /* the request was built and left */
	struct dialect_answer answer; /* of a local model */
	struct infer_ticket ticket;   /* of a remote one, as the following */
	struct buf body;
	struct wirecall wire;
	bool rehash;               /* the model was switched: no request, only its hash */
	struct hash_sha256 prefix; /* then */
	int64_t prefix_bytes;
	char word[32]; /* error class */
	int rv;
	struct ava_error err;
};

/* ---- infer.c */
int infer_go(struct infer_job *j);    /* the money is there: to the gate, or to infer_begin */
int infer_begin(struct infer_job *j); /* InferStart; then it goes on by itself */
/* Tell the machine later in this turn of the loop that the call failed for good. */
void infer_fail(struct infer_job *j, int rv, const char *word, const char *sentence);
/* The reply is here: *taken*. */
void infer_reply(struct infer_job *j, struct turn *t);
/* Nobody points to the job any more; the run may go too. */
void infer_drop(struct infer_job *j);

void infer_saved(int rv, void *user); /* its draft is durable; `user` is the run */

/* ---- infer_amend.c: each writes its amendment line */
/* Ask without the parameter that a 400 names; false: that would not help. */
bool infer_repair(struct infer_job *j, const char *field);
/* Ask another model; it goes on by itself. false: there is none. */
bool infer_fall_back(struct infer_job *j);
void infer_rehash(struct infer_job *j); /* on a pool thread */
void infer_rehashed(struct infer_job *j);

/* ---- infer_remote.c */
int infer_remote_start(struct infer_job *j);
void infer_remote_send(struct infer_job *j);   /* the request is built */
void infer_remote_again(struct infer_job *j);  /* its parked time is over */
void infer_remote_waited(struct infer_job *j); /* for long, at the gate */
void infer_remote_stop(struct infer_job *j);

#endif

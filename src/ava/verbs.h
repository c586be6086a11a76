/* Every verb once, below HTTP: a row with method, path and arguments, and a function,
 * JSON in and JSON out (doc/api.yaml is the contract). The gateway routes requests to the
 * rows, an embedded runtime calls them, a connected one sends the same JSON.
 *
 * A new verb is a row and a function in the room of what it is about: verbs_runs.c (runs,
 * groups), verbs_roles.c, steer.c, propose.c, session.c, memories.c, delivery.c, changes.c or
 * verbs_us.c (health, logs, the audit log, the daemon). Loop
 * thread only. */
#ifndef AVA_VERBS_H
#define AVA_VERBS_H

#include <stdbool.h>
#include <stddef.h>

#include <ava.h>
#include "ava/job.h"
#include "base/arena.h"
#include "base/buf.h"
#include "codec/json.h"

struct core;

/* ---- who asks, and where the answer goes */

enum caller_trust {
	CALLER_STRANGER, /* is refused everything */
	CALLER_OWNER,    /* of the data root */
};

struct caller { /* copied where it is needed after the call */
	const char *user, *channel;
	enum caller_trust trust;
	/* Rights (subagent/rights.h) of what a model has read that asks; 0: no model does. */
	unsigned seen;
	bool model; /* it asks: what a person gives is not its to give */
};

/* Embedded by whoever asks; answered exactly once, during the call or later, unless it
 * is given up first. */
struct verb_reply {
	/* `json` NULL: an error. Both are borrowed. May free the reply. */
	void (*done)(struct verb_reply *r, int status, const struct buf *json,
		     const struct ava_error *err);
	/* Not NULL while it waits for a run: nobody wants the answer any more. `done`
	 * is not called then. */
	void (*give_up)(struct verb_reply *r);
	void *waits; /* of give_up */
};

/* ---- arguments */

enum arg_kind {
	ARG_TEXT,   /* const char *; null is absent */
	ARG_SAID,   /* the same, at most `most` bytes; null is an error */
	ARG_WORD,   /* char[most] */
	ARG_FLAG,   /* bool */
	ARG_SWITCH, /* int: true is 1, false -1, untouched when absent */
	ARG_COUNT,  /* int64_t, whole; from `least` to `most` unless both are 0 */
	ARG_MS,     /* int64_t of seconds */
	ARG_CENTS,  /* int64_t of cents, in micro-USD */
	ARG_TEXTS,  /* const char *const *, in the call's memory, and size_t at `at_n` */
	ARG_JSON,   /* const json_t *, an object */
	ARG_ANY,    /* const json_t *, checked by who reads it */
};

/* Two rows of one name: the first whose kind of value it is. */
struct arg {
	const char *name; /* NULL ends a list */
	enum arg_kind kind;
	size_t at; /* of the field in the struct that is read into */
	int64_t least, most;
	size_t at_n;
};

#define ARG_TEXTS_MAX 64

/* Fields of absent arguments stay as they are. AVA_EINVAL names the first thing that is
 * wrong, an unknown name too: a misspelt limit must not be a missing one. */
int args_read(const struct arg *args, const json_t *o, void *out, struct arena *mem,
	      struct ava_error *err);
/* A query argument as the JSON that args_read takes: digits are read one by one, so
 * that "1x", " 1", "-1" and "1e9" are errors and not something near. */
int args_query(const struct arg *args, const char *name, const char *value, json_t *o,
	       struct ava_error *err);

/* ---- the table */

struct verb_call {
	struct core *core;
	const struct verb *verb;
	const struct caller *caller;
	const char *id;           /* the {id} of the path; "" when it has none */
	const json_t *args;       /* an object, or NULL; as the rest borrowed for the call */
	struct verb_reply *reply; /* until it is answered */
	struct arena mem;
};

struct verb {
	const char *method, *path; /* "GET", "/api/v1/runs/{id}" */
	/* NULL: a stream, which the gateway serves itself (gateway/routes.c). */
	void (*call)(struct verb_call *v);
	const struct arg *args; /* of the query of a GET, of the body of a POST */
	bool begins;            /* new work: refused when it could not be kept */
	bool bytes; /* the answer is a file: its bytes, not JSON, named by the argument "path" */
};

/* What the streams take. */
struct verbs_events {
	int64_t after; /* an lsn; -1: not given */
	const char *session;
	bool agents; /* frames about agents of Claude Code as well */
};

/* Row i; NULL behind the last. */
const struct verb *verbs_row(size_t i);
/* By its own words, as they stand in the table: "GET", "/api/v1/runs/{id}". NULL: there is none. */
const struct verb *verbs_named(const char *method, const char *path);
/* `allowed`: the methods of the path when it takes another one; "" when there is no such
 * path, and then NULL is returned, too. */
const struct verb *verbs_find(const char *method, const char *path, char id[64], char allowed[64]);
void verbs_call(struct core *c, const struct verb *verb, const struct caller *caller,
		const char *id, const json_t *args, struct verb_reply *reply);
/* The daemon is about to stop: who waits for a run is told that it goes on, who waits for an MCP
 * server that it does not, and nobody waits any more. */
void verbs_stop(struct core *c);

/* {"error":{"code","message"}}; the HTTP status of a code of ava.h. */
int verbs_error(struct buf *out, int code, const char *message);
int verbs_http_status(int code);

/* ---- for the functions of verbs */

/* Reads the arguments of the row into `out`. false: it has answered. */
bool verb_args(struct verb_call *v, void *out);
/* There is a body, which this verb needs. false: it has answered. */
bool verb_body(struct verb_call *v);
void verb_fail(struct verb_reply *r, int rv, const struct ava_error *err);

struct verb_answer {
	struct verb_reply *reply;
	struct buf b;
	struct jw w;
};
/* An answer to `reply` begins. false: rv is not 0, and that was answered. */
bool verb_begin(struct verb_answer *a, struct verb_reply *reply, int rv,
		const struct ava_error *err);
/* The arguments of the row are read into `out`, and the answer begins. false: refused. */
bool verb_begin_args(struct verb_answer *a, struct verb_call *v, void *out);
/* Closes what is open in the JSON, sends and frees it. */
void verb_send(struct verb_answer *a, int status);
/* Frees it, and answers with the error instead. */
void verb_drop(struct verb_answer *a, const struct ava_error *err);

/* Of draft_commit, for an event that a caller gave: `user` is its struct verb_reply. */
void verb_recorded(int rv, void *user);

/* An answer that files are read for, on a thread of the pool: a long record does not hold the
 * loop. */
struct verb_work {
	struct job job;
	struct verb_answer answer;
	int (*work)(struct verb_work *w, struct ava_error *err); /* writes it; the thread's */
	void (*fini)(struct verb_work *w);                       /* of `own`; loop; NULL: nothing */
	json_t *args; /* held: strings of what was read from them stand in it */
	int rv;
	struct ava_error err;
	char id[64];
	void *own; /* a copy of what the verb gave */
};
/* `w.work`, and `own` with its size, are the verb's. Answers when the work could not be begun,
 * and then calls `fini` too. `brief`: it takes milliseconds, and there is no limit on how many
 * are at work. */
void verb_work(struct verb_call *v, const struct verb_work *like, size_t own_size, bool brief);

void verb_time(struct jw *w, const char *key, int64_t wall_ms);
void verb_cost(struct jw *w, const char *key, int64_t microusd); /* below 0: null */

/* The rooms; the last row has no path. */
extern const struct verb verbs_about_runs[], verbs_about_words[], verbs_about_results[],
	verbs_about_proposals[], verbs_about_sessions[], verbs_about_delivery[],
	verbs_about_claude[], verbs_about_roles[], verbs_about_memories[], verbs_about_changes[],
	verbs_about_models[], verbs_about_stats[], verbs_about_us[];

/* Shared by rooms: a run, and an answer to `user`, a struct verb_reply, by a proposal. */
struct proposal;
struct op_status;
void verb_send_status(const struct op_status *s, struct verb_reply *r, int status);
void verb_proposed(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
		   void *user);

#endif

/* Every verb once, below HTTP: a row with method, path and arguments, and a function,
 * JSON in and JSON out (doc/api.yaml is the contract). The gateway routes requests to the
 * rows, an embedded runtime calls them, a connected one sends the same JSON.
 *
 * A new verb is a row and a function in the room of what it is about: verbs_runs.c (runs,
 * groups), listing.c, verbs_roles.c, steer.c, propose.c, session.c, memories.c, delivery.c,
 * changes.c or verbs_us.c (health, logs, the audit log, the daemon). Loop thread only. */
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

/* ---- the caller, and how it is answered */

enum caller_trust {
	CALLER_STRANGER, /* refused everything */
	CALLER_OWNER,    /* the owner of the data root */
};

struct caller { /* copied when it is needed after the call */
	const char *user, *channel;
	enum caller_trust trust;
	/* Rights (subagent/rights.h) of what the asking model has read; 0: no model asks. */
	unsigned seen;
	bool model; /* a model asks: it cannot give what only a person may give */
	bool far;   /* it came from another machine, and goes to no further one */
};

/* Embedded by the caller; answered exactly once, during the call or later, unless given up
 * before. */
struct verb_reply {
	/* `json` NULL: an error. Both are borrowed. May free the reply. */
	void (*done)(struct verb_reply *r, int status, const struct buf *json,
		     const struct ava_error *err);
	/* Set while the verb waits for a run. Drops the request; `done` is not called. */
	void (*give_up)(struct verb_reply *r);
	void *waits; /* for give_up: the wait that it ends */
};

/* ---- arguments */

enum arg_kind {
	ARG_TEXT,   /* const char *; null is absent */
	ARG_SAID,   /* const char *, at most `most` bytes; null is an error */
	ARG_WORD,   /* char[most] */
	ARG_FLAG,   /* bool */
	ARG_SWITCH, /* int: true is 1, false -1, untouched when absent */
	ARG_COUNT,  /* int64_t, whole; from `least` to `most` unless both are 0 */
	ARG_MS,     /* int64_t in ms, given in seconds */
	ARG_CENTS,  /* int64_t in micro-USD, given in cents */
	ARG_TEXTS,  /* const char *const *, in the call's memory, and size_t at `at_n` */
	ARG_JSON,   /* const json_t *, an object */
	ARG_ANY,    /* const json_t *, checked by the verb */
};

/* An argument of a verb. Where two rows have one name, the first whose type fits is taken. */
struct arg {
	const char *name; /* NULL ends a list */
	enum arg_kind kind;
	size_t at; /* offset of the field in the struct */
	int64_t least, most;
	size_t at_n;
};

#define ARG_TEXTS_MAX 100

/* Fields of absent arguments keep their values. AVA_EINVAL names the first fault, also an unknown
 * name: a misspelt limit must not be a missing one. */
int args_read(const struct arg *args, const json_t *o, void *out, struct arena *mem,
	      struct ava_error *err);
/* A query argument as JSON for args_read: digits are read one by one, so that "1x", " 1", "-1" and
 * "1e9" are errors. */
int args_query(const struct arg *args, const char *name, const char *value, json_t *o,
	       struct ava_error *err);

/* ---- the table */

struct verb_call {
	struct core *core;
	const struct verb *verb;
	const struct caller *caller;
	const char *id;     /* the {id} of the path; "" when it has none */
	const json_t *args; /* an object, or NULL; *borrowed* for the call, as the other pointers */
	struct verb_reply *reply; /* valid until it is answered */
	struct arena mem;
};

/* On which machine of a cluster a verb is done (ava/far.c). */
enum verb_where {
	VERB_HERE,
	VERB_AT_RUN,  /* on that of the run {id} */
	VERB_AT_LIVE, /* the same, while the run is at work there, else here */
	VERB_NEW, /* on that of the run that the argument "resume" names, else on the one that was
		   * asked first with its request id */
	VERB_AT_ASK, /* on that of the Ask or quote {id} */
};

struct verb {
	const char *method, *path; /* "GET", "/api/v1/runs/{id}" */
	/* NULL: a stream, which the gateway serves itself (gateway/routes.c). */
	void (*call)(struct verb_call *v);
	const struct arg *args; /* of the query of a GET, of the body of a POST */
	bool begins;            /* starts work: refused while it could not be kept on disk */
	bool bytes; /* the answer is a file: its bytes, not JSON, named by the argument "path" */
	enum verb_where where;
	/* A POST of others: its arguments are fields of the head by their names, "token" of the
	 * query, and the body as it is, as "body". */
	bool raw;
};

/* Arguments of the streams. */
enum verbs_items { ITEMS_NONE, ITEMS_BESIDE, ITEMS_ONLY };
struct verbs_events {
	int64_t after;        /* an lsn; -1: not given */
	const char *behind;   /* the same with the places of other machines (cluster/tail.h) */
	const char *machines; /* "own", "only": those of others; else all */
	const char *session;
	bool agents;            /* also frames about agents of Claude Code */
	bool text;              /* also frames with the text of the run's model */
	const char *items_said; /* "1", "only", "0"; NULL: beside the events of one conversation */
	enum verbs_items items;
};
/* Fills in `items` from the words, and looks at `machines`. AVA_EINVAL. */
int verbs_items(struct verbs_events *e, struct ava_error *err);

/* Row i; NULL behind the last. */
const struct verb *verbs_row(size_t i);
/* The verb with the words of a row of the table: "GET", "/api/v1/runs/{id}". NULL: none. */
const struct verb *verbs_named(const char *method, const char *path);
/* The verb of a request. NULL: none; `allowed` then names the methods of the path, "" for an
 * unknown path. */
const struct verb *verbs_find(const char *method, const char *path, char id[64], char allowed[64]);
void verbs_call(struct core *c, const struct verb *verb, const struct caller *caller,
		const char *id, const json_t *args, struct verb_reply *reply);
/* The daemon is about to stop: callers that wait for a run hear that it goes on, callers that wait
 * for an MCP server that it does not. */
void verbs_stop(struct core *c);

/* Writes {"error":{"code","message"}}. */
int verbs_error(struct buf *out, int code, const char *message);
int verbs_http_status(int code); /* the status for a code of ava.h */

/* ---- for the functions of verbs */

/* Reads the arguments of the row into `out`. false: answered with an error. */
bool verb_args(struct verb_call *v, void *out);
/* Checks that there is a body. false: answered with an error. */
bool verb_body(struct verb_call *v);
void verb_fail(struct verb_reply *r, int rv, const struct ava_error *err);

struct verb_answer {
	struct verb_reply *reply;
	struct buf b;
	struct jw w;
};
/* Begins an answer. false: rv is not 0, and was answered. */
bool verb_begin(struct verb_answer *a, struct verb_reply *reply, int rv,
		const struct ava_error *err);
/* Reads the arguments of the row into `out` and begins an answer. false: answered with an error. */
bool verb_begin_args(struct verb_answer *a, struct verb_call *v, void *out);
/* Closes open objects of the JSON, sends and frees the answer. */
void verb_send(struct verb_answer *a, int status);
/* Frees the answer, and sends the error instead. */
void verb_drop(struct verb_answer *a, const struct ava_error *err);

/* Sends a verb away when it is for another machine: true, and `reply` is answered, maybe at once.
 * Where it turns out that no other machine has the run or Ask the verb is called here. */
bool verb_sent(struct core *c, const struct verb *verb, const struct caller *caller, const char *id,
	       const json_t *args, struct verb_reply *reply);

/* Answers when an event of a caller, Custom with that content (*taken*), is on disk. `rv` not 0: it
 * is refused with `err`. */
void verb_record(struct verb_call *v, int rv, const char *session, struct buf *content,
		 struct ava_error *err);

/* An answer made from files by a thread of the pool, so that a long record does not hold the
 * loop. */
struct verb_work {
	struct job job;
	struct verb_answer answer;
	/* On a pool thread: writes `answer`. */
	int (*work)(struct verb_work *w, struct ava_error *err);
	/* On the loop: frees what `own` holds. NULL: nothing to free. */
	void (*fini)(struct verb_work *w);
	json_t *args; /* kept while strings read from them are used */
	int rv;
	struct ava_error err;
	char id[64];
	void *own;    /* a copy of the verb's data */
	bool foreign; /* the run is of another machine: its files are those of the copy */
};
/* Begins the work. `like`: `work`, `fini` and `own` of `own_size` bytes are the verb's. If it
 * cannot begin, answers and calls `fini`. `brief`: takes milliseconds, and is not limited in
 * number. */
void verb_work(struct verb_call *v, const struct verb_work *like, size_t own_size, bool brief);

/* Is it no model that asks to change `what`? Else it is answered. */
bool verb_by_person(struct verb_call *v, const char *what);
void verb_time(struct jw *w, const char *key, int64_t wall_ms);
void verb_cost(struct jw *w, const char *key, int64_t microusd); /* below 0: null */

/* Tables of the rooms; the last row has no path. */
extern const struct verb verbs_about_runs[], verbs_about_words[], verbs_about_results[],
	verbs_about_proposals[], verbs_about_asks[], verbs_about_sessions[], verbs_about_delivery[],
	verbs_about_claude[], verbs_about_roles[], verbs_about_memories[], verbs_about_changes[],
	verbs_about_models[], verbs_about_stats[], verbs_about_lists[], verbs_about_us[],
	verbs_about_messages[], verbs_about_orders[], verbs_about_others[], verbs_about_far[],
	verbs_about_triggers[];

/* Shared by rooms: answers with a run, or to `user`, a struct verb_reply, with a proposal. */
struct proposal;
struct op_status;
void verb_write_status(struct jw *w, const char *key, const struct op_status *s);
void verb_send_status(const struct op_status *s, struct verb_reply *r, int status);
void verb_proposed(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
		   void *user);

#endif

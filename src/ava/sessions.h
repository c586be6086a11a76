/* The verbs about conversations, beside those of ava/ops.h and with their
 * rules: loop thread, `done` exactly once, strings borrowed until it returns.
 *
 * A session is one conversation with Ava: a file that pi can read, and beside
 * it what travelled to her model. Each thing a person says, and each result of
 * a subagent of hers, begins a turn of the same machine that runs subagents;
 * what comes while she is at work waits for the next turn. */
#ifndef AVA_SESSIONS_H
#define AVA_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ava.h>

#include "base/doors.h"
#include "base/list.h"

struct core;

struct op_session {
	const char *id, *cwd, *user_id, *model; /* model "": not chosen yet */
	const char *origin;                     /* the door where it was begun */
	int64_t context;                        /* the model's window, tokens; 0: not in memory */
	int64_t context_used;                   /* of it, at her last call */
	const char *title;              /* beginning of the person's first words; "": none */
	int64_t created_ms, updated_ms; /* wall */
	int64_t cost_microusd, tokens;  /* of Ava's own calls by this process */
	unsigned live_runs, waiting;    /* subagents at work; inputs that wait for a turn */
	bool busy;                      /* Ava is at work */
	const char *doing;              /* Ava's activity while busy; "": nothing that has a name */
	const char *trouble; /* trouble with the model's service while busy; NULL: none */
};

struct op_session_new {
	const char *cwd;     /* absolute, exists; "" or NULL: no file roots */
	const char *user_id; /* NULL: "" */
	const char *origin;  /* the door that begins it; NULL: "" */
	const char *model;   /* NULL: the default of Ava */
	/* A UUID: a conversation without words is begun anew under it, with another model or after
	 * a daemon that did not keep it. NULL: a new id. */
	const char *id;
};
/* Begins a conversation, and writes nothing before its first words. AVA_EINVAL, AVA_ENOENT (cwd),
 * AVA_EUNSUPPORTED (model), AVA_EBUSY (too many), AVA_EEXIST (it has words). */
int ops_session_new(struct core *c, const struct op_session_new *n, struct op_session *out,
		    struct ava_error *err);

#define ASK_ID_LEN 48 /* of an Ask (ava/ask.h), with its NUL */

struct op_say {
	const char *text, *user_id;
	const char *origin;     /* the door the words came by; NULL: unknown */
	const char *request_id; /* NULL or "": none */
	/* The Ask that the door showed last, with nothing behind it but what is being done; NULL
	 * or "": none. A line without a name answers no other. */
	const char *shown;
	/* The client's folder, where the conversation goes on if its own is gone. NULL or "":
	 * none. */
	const char *cwd;
};
/* `done`: the words are on disk, `entry` is their id in the session. Ava answers by events
 * (AssistantMessage) and text frames. A repeated request id in the conversation gets the same entry
 * and is said once, also after a crash; it is remembered for a day. */
typedef void (*op_said_fn)(int rv, const char *entry, const struct ava_error *err, void *user);
void ops_say(struct core *c, const char *session, const struct op_say *say, op_said_fn done,
	     void *user);

/* The conversation can go on with this model; also true for an unknown id. */
struct model;
bool session_takes(struct core *c, const char *session, const struct model *m);

/* Stop the turn under way, not the subagents. 0 also when none is. */
int ops_session_stop(struct core *c, const char *session, struct ava_error *err);

/* Strings of *out belong to the session. AVA_ENOENT. */
int ops_session(struct core *c, const char *session, struct op_session *out, struct ava_error *err);

/* ---- for the runtime itself */
#define DELIVERY_NCHANNELS (5 + DOORS_N)
struct delivery_talk {       /* what is open in one conversation (delivery.c) */
	struct list notices; /* by lsn */
	unsigned open[DELIVERY_NCHANNELS], full;
	unsigned acking; /* acknowledgements that are not written yet */
};
/* Find the sessions of the root. Before runs are taken up again. */
int sessions_open(struct core *c, struct ava_error *err);
/* Go on with turns and results that a stop left. After runs were taken up. */
void sessions_resume(struct core *c);
bool sessions_idle(const struct core *c);
void sessions_quiesce(struct core *c);
bool sessions_written(const struct core *c);
void sessions_close(struct core *c);

/* Text of Ava or of a run's model while it comes, and the begin and end of her turns, for watchers;
 * never stored. An empty text: it begins anew. */
struct op_frame {
	const char *session, *run; /* run NULL: of Ava */
	/* FRAME_AGENTS: an agent of a session of Claude Code changed */
	enum { FRAME_TEXT, FRAME_THINKING, FRAME_TURN, FRAME_AGENTS } kind;
	const char *text; /* of FRAME_TURN: "busy" or "idle" */
	size_t len;
};
struct op_watch;
struct op_watch *ops_watch(struct core *c, void (*frame)(const struct op_frame *f, void *user),
			   void *user);
/* Frames of a live run, too: what the reply under way has said so far comes at once. */
void ops_watch_run(struct op_watch *w, const char *run);
void ops_unwatch(struct op_watch *w);

#endif

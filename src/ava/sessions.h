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

struct core;

struct op_session {
	const char *id, *cwd, *user_id, *model; /* model "": not chosen yet */
	const char *origin;                     /* the door where it was begun */
	int64_t context;                        /* its window, tokens; 0: it is not in memory */
	const char *title;                      /* how it began; "" */
	int64_t created_ms, updated_ms;         /* wall */
	int64_t cost_microusd, tokens;          /* of Ava's own calls by this process */
	unsigned live_runs, waiting;            /* subagents; inputs that wait for a turn */
	bool busy;                              /* she is at work */
	const char *doing;                      /* then; "": nothing that has a name */
	const char *trouble;                    /* with the service of her model then; NULL: none */
};

struct op_session_new {
	const char *cwd;     /* absolute, exists; "" or NULL: no file roots */
	const char *user_id; /* NULL: "" */
	const char *origin;  /* the door that begins it; NULL: "" */
	const char *model;   /* NULL: the default of Ava */
	/* A UUID: one in which nothing was said yet is begun anew under it, with another model
	 * or after a daemon that did not keep it. NULL: an id of its own. */
	const char *id;
};
/* Nothing is written before something is said. AVA_EINVAL, AVA_ENOENT (cwd),
 * AVA_EUNSUPPORTED (model), AVA_EBUSY (too many), AVA_EEXIST (it has words). */
int ops_session_new(struct core *c, const struct op_session_new *n, struct op_session *out,
		    struct ava_error *err);

struct op_say {
	const char *text, *user_id;
	const char *origin;     /* the door it came by; NULL: not told */
	const char *request_id; /* NULL or "": none */
	/* The newest proposal that was shown when the person began to say it, "": none was;
	 * NULL: not told. A bare yes means no newer one. */
	const char *seen;
	/* The client's folder: where that of the conversation is gone, it goes on there.
	 * NULL or "": none. */
	const char *cwd;
};
/* Done: what was said is on disk, `entry` is its id in the session. It is
 * answered by events (AssistantMessage) and text frames. The same request id
 * in the same conversation is the same entry and is said once, also after a
 * crash; it is remembered for a day. */
typedef void (*op_said_fn)(int rv, const char *entry, const struct ava_error *err, void *user);
void ops_say(struct core *c, const char *session, const struct op_say *say, op_said_fn done,
	     void *user);

/* That conversation can go on with this model. true: also when there is none of that id. */
struct model;
bool session_takes(struct core *c, const char *session, const struct model *m);

/* Stop the turn under way, not the subagents. 0 also when none is. */
int ops_session_stop(struct core *c, const char *session, struct ava_error *err);

/* Its strings are the session's. AVA_ENOENT. */
int ops_session(struct core *c, const char *session, struct op_session *out, struct ava_error *err);

/* ---- for the runtime itself */
/* Find the sessions of the root. Before runs are taken up again. */
int sessions_open(struct core *c, struct ava_error *err);
/* Go on with turns and results that a stop left. After runs were taken up. */
void sessions_resume(struct core *c);
bool sessions_idle(const struct core *c);
void sessions_quiesce(struct core *c);
bool sessions_written(const struct core *c);
void sessions_close(struct core *c);

/* Text of Ava's as it comes, and turns beginning and ending, for whoever
 * watches; never stored. */
struct op_frame {
	const char *session;
	/* FRAME_AGENTS: of a session of Claude Code, something of its agents changed */
	enum { FRAME_TEXT, FRAME_THINKING, FRAME_TURN, FRAME_AGENTS } kind;
	const char *text; /* of FRAME_TURN: "busy" or "idle" */
	size_t len;
};
struct op_watch;
struct op_watch *ops_watch(struct core *c, void (*frame)(const struct op_frame *f, void *user),
			   void *user);
void ops_unwatch(struct op_watch *w);

#endif

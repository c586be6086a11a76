/* Every verb once: struct in, struct out. The gateway (HTTP), the terminal
 * and libava are thin coats over these calls; nothing else reaches a run.
 *
 * All calls are made on the loop thread. Verbs that change something answer
 * through `done`, exactly once, after the change is on disk (or certainly is
 * not): rv 0, or a code with its sentence. `done` may be called before the
 * verb returns when nothing had to be written. Strings in replies are
 * *borrowed until done returns*. */
#ifndef AVA_OPS_H
#define AVA_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ava.h>
#include "base/buf.h"
#include "base/id.h"
#include "base/list.h"
#include "subagent/spec.h"       /* struct op_spawn */
#include "subagent/supervisor.h" /* struct op_status */

struct change;
struct jw;
struct verb_reply;
struct core; /* the runtime: journal, runs, proposals (ava/core.h) */

/* One proposal (ava/proposal.h). `repeated`: this request_id was answered before. */
struct proposal;
typedef void (*op_proposal_fn)(int rv, struct proposal *p, bool repeated,
			       const struct ava_error *err, void *user);
typedef void (*op_status_fn)(int rv, const struct op_status *s, const struct ava_error *err,
			     void *user);
typedef void (*op_result_fn)(int rv, const char *json, size_t len, const struct ava_error *err,
			     void *user);

/* Quote a spawn. Nothing runs, unless the policy (s->confirm, else the
 * setting) asks nobody about such a quote: then it is confirmed at once. */
void ops_propose(struct core *c, const struct op_spawn *s, op_proposal_fn done, void *user);
/* Start at once what the caller was allowed to confirm itself. */
void ops_spawn(struct core *c, const struct op_spawn *s, op_status_fn done, void *user);

/* `answer` is what the person said (NULL = "yes"); the runtime itself parses
 * it (ava/answer.h). `set` (may be NULL) is changed besides what the words
 * change. Yes starts exactly what was quoted, or what it lowered of it; no
 * rejects. `origin`: the door it came by. Any other change starts nothing: a new proposal, pending,
 * replaces this one and is what is answered. What is not understood is AVA_EINVAL, with a sentence
 * that says what would be. */
void ops_confirm(struct core *c, const char *proposal, const char *answer, const struct change *set,
		 const char *by, const char *origin, op_proposal_fn done, void *user);
void ops_reject(struct core *c, const char *proposal, const char *reason, const char *by,
		const char *origin, op_proposal_fn done, void *user);
/* Newest first; `all` includes answered and expired ones of this process. */
int ops_proposals(struct core *c, bool all, void (*each)(struct proposal *p, void *user),
		  void *user);

/* How a run is: one that lives at once, one that has ended when its files were read. */
void ops_look(struct core *c, const char *run, op_status_fn done, void *user);
/* Runs at work, newest first; how many. Their ids go to `ids`, which ops_list_ended needs: it
 * gives those that had ended, from the catalog, on any thread (AVA_ECORRUPT: that is no file). */
size_t ops_list_live(struct core *c, size_t limit, struct buf *ids,
		     void (*each)(const struct op_status *s, void *user), void *user);
int ops_list_ended(int root_fd, const struct buf *live, size_t limit,
		   void (*each)(const struct op_status *s, void *user), void *user,
		   struct ava_error *err);
#define OPS_ABANDONED "ran out of memory: it does nothing more and ends at the next start"
#define OPS_STOPS     "the runtime stops before the run has ended"
/* One that has ended is looked at. `by` and `origin` as of op_steer. */
void ops_cancel(struct core *c, const char *run, const char *by, const char *origin,
		op_status_fn done, void *user);

/* The result of a run, when it has ended or `wait_ms` have passed
 * (AVA_ETIMEOUT: it still runs). */
void ops_result(struct core *c, const char *run, int64_t wait_ms, op_result_fn done, void *user);

/* ---- events. A cursor over the journal; it owns no queue: what is live
 * comes from a bounded ring, what is older from the files. */
struct op_cursor;
struct op_event {
	uint64_t lsn;
	const char *type, *line; /* line without \n; borrowed until the next call */
	size_t type_len, line_len;
};
/* run NULL: everything. `after`: lsn, 0 = from the beginning; UINT64_MAX = from
 * now on. `wake` is called on the loop when ops_events_next may give more. */
struct op_cursor *ops_events_open(struct core *c, const char *run, uint64_t after,
				  void (*wake)(void *user), void *user, struct ava_error *err);
/* 1: an event; 0: none now; -1: the run has ended and everything was given;
 * -2: the files cannot be read: close the cursor and open one behind the last
 * lsn later. */
int ops_events_next(struct op_cursor *cur, struct op_event *out);
void ops_events_close(struct op_cursor *cur);
/* What stands in the files is being read: `wake` comes with it. */
bool ops_events_opening(const struct op_cursor *cur);
/* Each event up to this lsn that is still to come, behind younger ones. `cur` NULL: none is open.
 */
void ops_events_late(struct core *c, const struct op_cursor *cur, uint64_t upto,
		     void (*each)(uint64_t lsn, void *user), void *user);

/* ---- groups of runs */
/* Several runs, one quote, one answer. What a run says of session, user, origin,
 * request and confirming is not looked at; `cwd` is for those that name none. */
struct op_group {
	const struct op_spawn *runs;
	size_t nruns;                          /* 1 to SPEC_GROUP_MAX */
	int64_t max_cost_microusd, timeout_ms; /* of all of them; AVA_DEFAULT: none */
	bool chain;                            /* one after another */
	bool share;                            /* each may read what the others found */
	const char *session_id, *request_id, *user_id, *origin, *cwd, *confirm;
};
void ops_propose_group(struct core *c, const struct op_group *g, op_proposal_fn done, void *user);

/* ---- speaking to a run */

struct op_steer {
	const char *run, *text;
	const char *call_id;    /* NULL: whatever it asks */
	const char *request_id; /* the same is kept once, also after a crash; NULL: none */
	/* NULL: Ava passes on what the person said to her; she cannot give a yes. */
	const char *by;
	const char *origin; /* the door it came by; NULL: none is known */
};

struct op_steered {
	const char *run;
	/* "queued": the model reads it at the next turn boundary, an event Steering
	 * with this steer_id says so; "answered": it was the answer to call_id. */
	const char *outcome, *steer_id, *call_id; /* ids: "" when it has none */
};
typedef void (*op_steered_fn)(int rv, const struct op_steered *s, const struct ava_error *err,
			      void *user);

/* A run that asks a person takes `text` as the answer: of a question anything
 * (the number of a choice is that choice), of a call that needs a yes a yes, or
 * a no with its reason. `call_id` (NULL: whatever it asks) binds it to one
 * question. Else the run at work is told. `done` once, when it is on disk. What
 * came with this request id before is answered as it was then, whatever has become
 * of the run since. AVA_ENOENT: no such run, or it does not ask that; AVA_EEXIST:
 * it has ended; AVA_EBUSY; AVA_EINVAL; AVA_EDENIED. */
void ops_steer(struct core *c, const struct op_steer *s, op_steered_fn done, void *user);

/* POST /telegram: what is asked of the door of the messenger, beside how it is. */
struct core_telegram {
	const char *cwd; /* of conversations with whom is paired; "" or NULL: no files */
	bool pair;       /* a code by which one person may be */
	bool listen;     /* again, after another program read the bot's updates */
	int64_t unpair;  /* the id of a person; 0: nobody */
};

/* POST /login: what a page gives (gateway/web_keys.h); texts, *borrowed*. */
struct core_hello {
	const char *host, *id, *nonce, *mac;
};

/* What who serves the runtime to others and its verbs (ava/verbs.h) tell each other. */
#define CORE_NDOORS 5
struct core_service {
	char problem[512]; /* not "": health is degraded for this reason, no new work */
	bool stops;        /* nobody waits for a run any more */
	bool kept;         /* no command of ours started the daemon, nor may replace it */
	/* POST /shutdown: `now`, or once no run is started. NULL: there is no daemon. */
	void (*shutdown)(int now, void *user);
	void *user;
	/* What the page's door answers, as JSON: POST /dashboard (an address that signs in; with
	 * `sign_out` an end of all sessions), POST /login (the proof of a page by ours) and POST
	 * /mcp-token (where MCP clients of the port find us, which is served from then on, and
	 * their token; a new one with `renew`). NULL: there is no page. */
	int (*dashboard)(bool sign_out, struct buf *json, void *web, struct ava_error *err);
	int (*login)(const struct core_hello *hello, struct buf *json, void *web,
		     struct ava_error *err);
	int (*mcp)(bool renew, struct buf *json, void *web, struct ava_error *err);
	void *web;
	/* The door of the messenger: answers `reply`, when what it changed is on disk; and how it
	 * is, into an open object. NULL: there is no such door. */
	void (*telegram)(const struct core_telegram *what, struct verb_reply *reply, void *door);
	void (*telegram_state)(struct jw *w, void *door);
	void *telegram_door;
	char web_url[40], web_problem[512]; /* of the loopback port; "" while it is not open */
	struct core_door {
		uint64_t asked;  /* requests */
		int64_t last_ms; /* clock_mono_ms */
	} doors[CORE_NDOORS];
	struct claude *claude; /* ava/claude.c; NULL: it is not looked at */
	unsigned log_jobs;     /* questions to the logs that are being answered */
};
struct core_service *core_service(struct core *c);
/* A request has come by that door, the channel of a caller: /health tells of it. */
void core_door_asked(struct core *c, const char *channel);

#endif

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
#include "base/doors.h"
#include "base/id.h"
#include "base/list.h"
#include "subagent/spec.h"       /* struct op_spawn */
#include "subagent/supervisor.h" /* struct op_status */

struct change;
struct jw;
struct verb;
struct caller;
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

/* Quotes a spawn. Nothing runs, unless the policy (s->confirm, else the setting) asks nobody about
 * such a quote, which confirms it at once. */
void ops_propose(struct core *c, const struct op_spawn *s, op_proposal_fn done, void *user);
/* Starts at once a run that the caller may confirm itself. */
void ops_spawn(struct core *c, const struct op_spawn *s, op_status_fn done, void *user);

/* `answer`: the person's words (NULL: "yes"), which the runtime itself parses (ava/answer.h). `set`
 * (may be NULL): further changes. `origin`: the door of the answer. A yes starts exactly what was
 * quoted, or that with lowered limits; a no rejects. Any other change starts nothing: a new pending
 * proposal replaces this one and is the answer. Unclear words are AVA_EINVAL, with a sentence that
 * says what would be clear. */
void ops_confirm(struct core *c, const char *proposal, const char *answer, const struct change *set,
		 const char *by, const char *origin, op_proposal_fn done, void *user);
void ops_reject(struct core *c, const char *proposal, const char *reason, const char *by,
		const char *origin, op_proposal_fn done, void *user);
/* Newest first; `all` includes answered and expired ones of this process. */
int ops_proposals(struct core *c, bool all, void (*each)(struct proposal *p, void *user),
		  void *user);

/* Status of a run: at once when it is at work, else when its files are read. */
void ops_look(struct core *c, const char *run, op_status_fn done, void *user);
#define OPS_ABANDONED "ran out of memory: it does nothing more and ends at the next start"
#define OPS_STOPS     "the runtime stops before the run has ended"
/* For an ended run the same as ops_look. `by` and `origin` as in op_steer. */
void ops_cancel(struct core *c, const char *run, const char *by, const char *origin,
		op_status_fn done, void *user);

/* The result of a run, when it has ended or `wait_ms` have passed
 * (AVA_ETIMEOUT: it still runs). */
void ops_result(struct core *c, const char *run, int64_t wait_ms, op_result_fn done, void *user);

/* ---- events. A cursor over the journal owns no queue: live events come from a bounded ring, older
 * ones from the files. */
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
/* `session` "": any. */
bool ops_event_is_of(const struct op_event *e, const char *session);
void ops_events_close(struct op_cursor *cur);
/* The cursor reads files; `wake` is called when it has lines. */
bool ops_events_opening(const struct op_cursor *cur);
/* Gives each event up to `upto` that will come later, behind younger ones. `cur` NULL: none is
 * open. */
void ops_events_late(struct core *c, const struct op_cursor *cur, uint64_t upto,
		     void (*each)(uint64_t lsn, void *user), void *user);

/* ---- groups of runs */
/* Several runs, one quote, one answer. Session, user, origin, request and confirm of the single
 * runs are ignored; `cwd` is for runs that name none. */
struct op_group {
	const struct op_spawn *runs;
	size_t nruns;                          /* 1 to SPEC_GROUP_MAX */
	int64_t max_cost_microusd, timeout_ms; /* of all runs together; AVA_DEFAULT: none */
	bool chain;                            /* the runs go one after another */
	bool share;                            /* each run may read the others' results */
	const char *session_id, *request_id, *user_id, *origin, *cwd, *confirm;
};
void ops_propose_group(struct core *c, const struct op_group *g, op_proposal_fn done, void *user);

/* ---- speaking to a run */

struct op_steer {
	const char *run, *text;
	const char *call_id;    /* NULL: any question */
	const char *request_id; /* repeated: no second effect, also after a crash; NULL: none */
	/* NULL: Ava passes on a person's words; she cannot give a yes. */
	const char *by;
	const char *origin; /* the door of the words; NULL: unknown */
};

struct op_steered {
	const char *run;
	/* "queued": the model reads it at the next turn boundary, and an event Steering with this
	 * steer_id tells so; "answered": the answer to call_id. */
	const char *outcome, *steer_id, *call_id; /* "": none */
};
typedef void (*op_steered_fn)(int rv, const struct op_steered *s, const struct ava_error *err,
			      void *user);

/* A run that asks a person takes `text` as the answer: of a question any text (the number of a
 * choice means that choice), of a call that needs a yes only a yes, or a no with its reason.
 * `call_id` (NULL: any) binds the answer to one question. A run at work reads the text. `done`
 * once, when it is on disk. A repeated request id gets its first answer, whatever the run did
 * since. AVA_ENOENT: no such run, or it does not ask that; AVA_EEXIST: it has ended; AVA_EBUSY;
 * AVA_EINVAL; AVA_EDENIED. */
void ops_steer(struct core *c, const struct op_steer *s, op_steered_fn done, void *user);

/* POST /doors/{name}: requests to the door of a messenger. */
struct core_pairing {
	const char *cwd;    /* folder of a paired person's conversations; "" or NULL: no files */
	bool pair;          /* make a code that pairs one person */
	bool listen;        /* listen again, after another program read what was said to us */
	const char *unpair; /* id of a person to be unpaired; "" or NULL: none */
};

/* POST /login: texts of a page (gateway/web_keys.h), *borrowed*. */
struct core_hello {
	const char *host, *id, *nonce, *mac;
};

/* Shared state of the daemon's doors and the verbs. */
#define CORE_NDOORS 5
struct core_service {
	char problem[512]; /* not "": health is degraded for this reason, and new work is refused */
	bool stops;        /* the daemon is about to stop: no call waits for a run */
	struct cluster *cluster; /* shares runs with other machines; or NULL */
	struct orders *orders;   /* ava/orders.c */
	struct reader *reader;   /* reads the runs of others; NULL without a cluster */
	/* verb_sent (ava/verbs.h) of a verb that may go; NULL without a cluster. */
	bool (*send)(struct core *c, const struct verb *verb, const struct caller *caller,
		     const char *id, const json_t *args, struct verb_reply *reply);
	bool kept; /* no command of ava started the daemon, so none may replace it */
	/* POST /shutdown: `now`, or once no run is started. NULL: no daemon. */
	void (*shutdown)(int now, void *user);
	void *user;
	/* The page's door, answers in JSON: POST /dashboard (an address that signs in; with
	 * `sign_out` an end of all sessions), POST /login (proof to a page that the daemon is
	 * ava's) and POST /mcp-token (address and token for MCP clients of the port, which is open
	 * from then on; a new token with `renew`). NULL: no page. */
	int (*dashboard)(bool sign_out, struct buf *json, void *web, struct ava_error *err);
	int (*login)(const struct core_hello *hello, struct buf *json, void *web,
		     struct ava_error *err);
	int (*mcp)(bool renew, struct buf *json, void *web, struct ava_error *err);
	int (*triggers)(void *web, struct ava_error *err); /* opens the port for them */
	void *web;
	/* The doors of messengers, by the table in base/doors.h: answers `reply` when the change
	 * is on disk, and writes its state into an open object. NULL: no such door. */
	struct core_messenger {
		void (*ask)(const struct core_pairing *what, struct verb_reply *reply, void *door);
		void (*state)(struct jw *w, void *door);
		void *door;
	} messengers[DOORS_N];
	/* Address of the loopback port, "" while it is not open, and why it is not. */
	char web_url[40], web_problem[512];
	struct core_door {
		uint64_t asked;  /* requests so far */
		int64_t last_ms; /* clock_mono_ms */
	} doors[CORE_NDOORS];
	struct claude *claude; /* ava/claude.c; NULL: not watched */
	unsigned log_jobs;     /* queries of the logs under way */
};
struct core_service *core_service(struct core *c);
/* Is there a trigger (ava/triggers.c)? So that the loopback port is open for it. */
bool triggers_any(const struct core *c);
/* Counts a request by the door of that channel, for /health. */
void core_door_asked(struct core *c, const char *channel);

#endif

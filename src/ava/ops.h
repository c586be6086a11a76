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
#include "subagent/spec.h"       /* struct op_spawn */
#include "subagent/supervisor.h" /* struct op_status */

struct change;
struct core; /* the runtime: journal, runs, proposals (ava/core.h) */

enum proposal_state { PROPOSAL_PENDING, PROPOSAL_CONFIRMED, PROPOSAL_REJECTED, PROPOSAL_EXPIRED };

struct op_proposal {
	const char *id;
	enum proposal_state state;
	int64_t created_ms, expires_ms; /* wall */
	const char *run_id, *trace_id;  /* "" until confirmed */
	const char *quote_json;         /* DESIGN section 8 "Quote" */
	const char *config_json, *config_hash;
	const char *message;                /* the text a person is asked */
	const char *confirmed_hash;         /* of what runs; "" until confirmed */
	const char *changes;                /* by a yes, or from the quote it replaces; "" */
	const char *replaces, *replaced_by; /* proposals; "" */
	const char *session_id;             /* of its conversation; "" once it is answered */
	bool repeated;                      /* this request_id was answered before */
	const char *group_id;               /* of several runs; "" */
};

typedef void (*op_proposal_fn)(int rv, const struct op_proposal *p, const struct ava_error *err,
			       void *user);
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
 * rejects. Any other change starts nothing: a new proposal, pending, replaces
 * this one and is what is answered. What is not understood is AVA_EINVAL, with
 * a sentence that says what would be. */
void ops_confirm(struct core *c, const char *proposal, const char *answer, const struct change *set,
		 const char *by, op_proposal_fn done, void *user);
void ops_reject(struct core *c, const char *proposal, const char *reason, const char *by,
		op_proposal_fn done, void *user);
/* Newest first; `all` includes answered and expired ones of this process. */
int ops_proposals(struct core *c, bool all, void (*each)(const struct op_proposal *p, void *user),
		  void *user);
int ops_proposal(struct core *c, const char *id,
		 void (*each)(const struct op_proposal *p, void *user), void *user,
		 struct ava_error *err);

/* Live runs, or with `all` ended ones from the catalog too; newest first. */
int ops_list(struct core *c, bool all, size_t limit,
	     void (*each)(const struct op_status *s, void *user), void *user);
int ops_status(struct core *c, const char *run, void (*each)(const struct op_status *s, void *user),
	       void *user, struct ava_error *err);
void ops_cancel(struct core *c, const char *run, const char *by, op_status_fn done, void *user);

/* The result of a run, when it has ended or `wait_ms` have passed
 * (AVA_ETIMEOUT: it still runs). The handle lets the caller give up. */
struct op_wait;
struct op_wait *ops_result(struct core *c, const char *run, int64_t wait_ms, op_result_fn done,
			   void *user);
void ops_result_cancel(struct op_wait *w); /* done is not called any more */

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

/* ---- health */
struct op_health {
	int code; /* 0 = well */
	const char *problem, *version, *root, *model, *model_why, *recovery_problems;
	int64_t uptime_ms, budget, budget_used; /* the day's, micro-USD; budget 0: none */
	uint64_t slots_max, slots_used, queued, running, runs_total;
	uint64_t lsn; /* everything up to it is on disk and can be read: follow behind it */
	uint64_t commits, flushes, queued_bytes, held_commits, loop_gaps;
	bool recovery_clean;
	uint64_t redone_batches, torn_bytes, damaged_batches, lost_bytes;
	struct spend today;      /* of runs, by local date, with the live ones */
	const char *keys, *otel; /* JSON: base/keys.h, NULL: {}; ava/otel.h, or NULL */
};
void ops_health(struct core *c, struct op_health *out);

#endif

/* The inside of struct core, shared by the files of this folder: core.c (services for all parts),
 * life.c (opens and closes them), proposals.c, runs.c (verbs about runs), events.c (cursors). */
#ifndef AVA_STATE_H
#define AVA_STATE_H

#include "ava/ops.h"
#include "ava/sessions.h"
#include "base/strmap.h"
#include "journal/journal.h"
#include "os/loop.h"
#include "subagent/logbook.h"
#include "subagent/past.h"
#include "subagent/supervisor.h"

struct proposal;
struct seal_gone;

/* Hooks that tell a conversation the outcome of its proposals; sessions_open sets them.
 * `answering` adds to the commit of the answer, whatever its channel; `answered` follows when that
 * commit is on disk. `r` NULL: no run was started. */
struct proposal_hooks {
	void (*answering)(struct core *c, struct draft *d, const struct proposal *p,
			  const char *session_id);
	void (*answered)(struct core *c, const struct proposal *p, const char *session_id,
			 struct run *r);
	/* The quote of a standing order (ava/orders.c); orders_open sets these. A yes: puts the
	 * order into the commit of the answer; after 0 order_saved follows (0: it is on disk). */
	int (*order_yes)(struct core *c, const struct run_spec *spec, const char *by,
			 const char *origin, struct draft *d, struct ava_error *err);
	void (*order_saved)(struct core *c, const char *id, int rv);
	/* ms that it waits: `otherwise`, or longer for an order that asks again. */
	int64_t (*order_patience)(struct core *c, const char *id, int64_t otherwise);
};

struct core {
	struct os_loop *loop;
	char *root;
	int root_fd;
	struct settings settings;
	const struct redact *redact;
	char *model; /* the model forced as default; or NULL */
	void (*log)(const char *line, void *user);
	void *log_user;
	int64_t started_ms; /* monotonic */

	struct journal *journal;
	struct journal_recovery recovery;
	struct logbook book;
	struct supervisor sup;
	struct os_task drain;
	struct seals *seals;

	struct strmap proposals;    /* by id */
	struct list proposal_order; /* newest first */
	struct strmap requests;     /* request id -> struct request */
	struct list request_order;  /* oldest first, for forgetting */
	struct nameset proposal_names;
	struct proposal_hooks on_proposal;
	unsigned npending, nsettled;
	size_t nrequests;

	struct list sessions; /* newest first */
	struct strmap session_by_id;
	struct list talks; /* conversations in memory, last used last */
	unsigned nsessions, resting_max;
	struct os_task rest;   /* drops talks at rest (ava/session.c) */
	struct list resumings; /* requests to resume that are not answered yet (ava/resume.c) */
	struct list steerings; /* messages with request ids, not answered yet (ava/steer.c) */
	struct {
		unsigned n;    /* jobs at work (ava/job.h) */
		bool stopping; /* no more jobs are begun */
	} jobs;
	struct list patches;           /* ava/patches.c */
	struct list waits;             /* op_wait: for ends of runs (ava/runs.c) */
	struct list watches;           /* op_watch */
	struct talk_tools *talk_tools; /* ava/talk_tools.c */
	struct delivery *delivery;     /* ava/delivery.c */
	struct memories *memories;     /* ava/memories.c */
	struct core_service service;
};

struct op_watch {
	struct list node;
	struct core *core;
	char run[24]; /* the run whose frames are wanted, too; "": none */
	void (*frame)(const struct op_frame *f, void *user);
	void *user;
};

#define REQUEST_ID_MAX 200 /* bytes */

#define SETTLED_MAX 256 /* answered proposals kept */

struct request {
	struct list node;
	int64_t at_ms;
	char proposal[24], run[24], trace[48]; /* what the request was answered with */
	uint64_t lsn;                          /* of its proposal, or lower */
	struct spawn_wait *writing;            /* the spawn on its way to the disk; else NULL */
	char id[];
};

/* ---- core.c */
void core_log(struct core *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Checks that an id can be logged unchanged. AVA_EINVAL, AVA_EDENIED (it holds a key). */
int core_check_request(const struct core *c, const char *id, struct ava_error *err);
struct request *core_request(struct core *c, const char *id); /* NULL: new */
/* Up to this lsn the daily logs have nothing that the next start takes up; 0: not known. */
uint64_t core_settled(const struct core *c);
/* Keeps an id's answer; "" is ignored. AVA_ENOMEM. */
int core_remember(struct core *c, const char *id, int64_t at_ms, const char *proposal,
		  const char *run, const char *trace);
void core_forget(struct core *c, const char *id);
/* Does or did the run exist? 0, AVA_ENOENT, AVA_EINVAL (no run id). */
int core_known(const struct core *c, const char *run, struct ava_error *err);
/* May new work begin? AVA_EFULL: the disk is nearly full; AVA_EIO: the database of the cluster is
 * away; else the journal's error. */
int core_ready(struct core *c, struct ava_error *err);
/* An event of Ava's own into a draft's daily log. `content` is freed. */
void core_event(struct core *c, struct draft *d, enum event_kind kind, const char *session_id,
		const char *user_id, struct buf *content);

/* The same, in a commit of its own. 0: `done` (NULL: nobody asks) follows; else it does not. */
struct core_telling {
	enum event_kind kind;
	const char *session, *user;
	enum journal_level level;
	void (*done)(int rv, void *arg);
	void *arg;
};
int core_tell(struct core *c, const struct core_telling *t, struct buf *content,
	      struct ava_error *err);

/* ---- verbs_roles.c: reads the list of files that a person trusts. An unreadable list is logged
 * and trusts none. AVA_ENOMEM. */
int core_load_trust(struct core *c, struct ava_error *err);

/* ---- budgets.c: what Ava has cost counts from the start on; alerts */
int budgets_open(struct core *c, struct ava_error *err);
void budgets_restore(struct core *c);
void budgets_close(struct core *c);

/* ---- proposals.c */
void proposals_restore(struct core *c);
void proposals_free(struct core *c);

/* ---- orders.c */
int orders_open(struct core *c, struct ava_error *err);
void orders_restore(struct core *c); /* after the runs, before the proposals */
bool orders_idle(const struct core *c);
void orders_quiesce(struct core *c);
bool orders_written(const struct core *c);
void orders_close(struct core *c);

/* ---- patches.c */
void patches_ended(struct run *r, size_t files, void *core); /* supervisor.on_patch */
void patches_restore(struct core *c);
void patches_close(struct core *c);

/* ---- seals.c: every seals.every seconds of activity and at the end, on a thread of the pool */
/* Notes files of the logbook from now on. A later failure is logged in avad.log and tried again:
 * sealing never stops other work. */
int seals_open(struct core *c, struct ava_error *err);
void seals_restore(struct core *c);
/* Seals and commits the rest, and stops; the journal must be open. Accepts a core without seals. */
void seals_close(struct core *c);
void seals_free(struct core *c); /* after the journal is closed */
/* Seals that files go; `core` is a struct core. 0: g->done once, maybe at once; AVA_EBUSY: the
 * runtime stops. */
int seals_go(struct seal_gone *g, void *core);
/* A prune holds this claim from its beginning until all is removed, since there is one list of
 * removals (prune.c). AVA_EBUSY: another prune holds it. */
int seals_prune_claim(struct core *c, struct ava_error *err);
void seals_prune_over(struct core *c);

/* ---- resume.c: from a request to the spec of a run that goes on from an ended one */
static inline bool resume_wanted(const struct op_spawn *s)
{
	return s->resume && *s->resume;
}

/* rv 0: `spec` is the callee's and can be spawned; NULL: an earlier request of the same request_id
 * has its answer: ask again with `s`. */
typedef void (*resume_fn)(int rv, struct run_spec *spec, const struct op_spawn *s,
			  const struct ava_error *err, void *user);

/* Reads the ended run on pool threads; options that the request leaves out are those of that run:
 * role, task, model, tools, folder, limits. `s` is *copied*; `ready` once, later or at once.
 * AVA_ENOENT: no such run, or its messages are gone; AVA_EBUSY: it has not ended, or many records
 * are being read; AVA_ECORRUPT; else as spec_build. */
void resume_begin(struct core *c, const struct op_spawn *s, resume_fn ready, void *user);

/* Reads the record again for a quoted spec that is confirmed. `spec` is *borrowed until ready*,
 * which comes later (after 0 only), with spec. */
int resume_again(struct core *c, struct run_spec *spec, resume_fn ready, void *user,
		 struct ava_error *err);

#endif

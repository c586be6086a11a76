/* What proposals.c (life, quoting, listing) and decide.c (answers) share about
 * one proposal. */
#ifndef AVA_PROPOSAL_H
#define AVA_PROPOSAL_H

#include "ava/proposal_group.h"
#include "ava/state.h"

struct proposal {
	struct list node;
	char id[24];
	enum proposal_state state;
	bool writing;                 /* its next event is on its way to the disk */
	struct run_spec *spec;        /* NULL once a run has it */
	struct run *starting;         /* confirmed, not yet durable */
	struct proposal_group *group; /* of several runs, of which these are the first; or NULL */
	int64_t cost_microusd;        /* quoted; -1: unknown */
	char *quote, *message, *config;
	char hash[HASH_HEX_LEN + 1]; /* of what was quoted */
	char run[24], trace[48];
	/* Of a yes: the hash of what runs, and in words what of the quote it
	 * changed (NULL: nothing). */
	char confirmed_hash[HASH_HEX_LEN + 1], *changes;
	char replaces[24], replaced_by[24], *instead; /* what it has otherwise, in words */
	struct proposal *successor;                   /* while the replacement is being written */
	int64_t created_ms, expires_ms;
	struct os_timer *timer;
	struct core *core;
	struct list waiters; /* who gets the answer that is being written */
	int writing_to;      /* enum proposal_state after the write */
};

/* Room for a proposal, pending, not yet known to the core. NULL: no memory. */
struct proposal *proposal_new(struct core *c);
void proposal_free(struct proposal *p); /* whoever waits hears that it stops */
/* Give it `spec` (*taken*, also on error), its id, times and texts, and make it
 * known; being written. AVA_ENOMEM. */
int proposal_begin(struct proposal *p, struct run_spec *spec);
/* Its id, when that is wanted before the spec. */
void proposal_name(struct proposal *p);
/* Begin it and write it, with the policy's yes where nobody is asked (`confirm`
 * NULL: as the settings say). On error it is freed, `spec` too. */
int proposal_open(struct proposal *p, struct run_spec *spec, const char *confirm,
		  struct ava_error *err);
int proposal_may_begin(struct core *c, struct ava_error *err); /* a new one */
/* The request was answered before, or is being: `done` is told. */
bool proposal_asked_before(struct core *c, const char *request_id, op_proposal_fn done, void *user);
void proposal_write(struct draft *d, const struct proposal *p); /* SpawnProposed */
void proposal_written(struct proposal *p); /* it is on disk and waits for its answer */
/* Answered, or expired. */
void proposal_settle(struct proposal *p, enum proposal_state state);

/* Whoever asked hears of it now, or when the step being written is on disk. */
void proposal_reply(struct proposal *p, bool repeated, op_proposal_fn done, void *user);
void proposal_refuse(op_proposal_fn done, void *user, const struct ava_error *err);
int proposal_add_waiter(struct proposal *p, op_proposal_fn done, void *user, bool repeated);
void proposal_tell_waiters(struct proposal *p, int rv, const struct ava_error *err);
struct proposal *proposal_find(struct core *c, const char *id, struct ava_error *err);

/* After a failed sync nobody can say what a power cut now would leave. */
void proposal_not_saved(struct ava_error *err, int rv, const char *what, const char *then);

/* ---- decide.c: ops_confirm for words that the log has already. */
void decide_said(struct core *c, const char *proposal, const char *text, const char *by,
		 op_proposal_fn done, void *user);
void decide_expire(void *user); /* a timer's; user: struct proposal */
/* The policy's yes to a proposal that is being written: its run and its
 * SpawnConfirmed go into the same draft. */
int decide_at_once(struct proposal *p, struct draft *d, const char *policy, struct ava_error *err);
/* That draft is on disk, or (rv) certainly is not. */
void decide_started(struct proposal *p, int rv);

#endif

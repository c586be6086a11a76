/* One proposal, for those who look at it beside the verbs: the conversation it
 * belongs to. proposals.c has its machine. */
#ifndef AVA_PROPOSAL_H
#define AVA_PROPOSAL_H

#include "ava/state.h"

/* WRITING: its SpawnProposed is on the way to the disk. ANSWERING: what was answered
 * is. The last four are for good. */
enum proposal_step {
	STEP_WRITING,
	STEP_PENDING,
	STEP_ANSWERING,
	STEP_CONFIRMED,
	STEP_REJECTED,
	STEP_EXPIRED,
	STEP_REPLACED /* by another quote; shown as rejected */
};

/* Who asked something of a proposal, and is told once. */
struct asker {
	struct list node; /* in proposal.askers */
	struct core *core;
	op_proposal_fn done;
	void *user;
	bool repeated;
};

/* An answer that is being carried out. */
struct proposal_answer {
	enum proposal_step to;
	char *text; /* to be written as what was said; NULL: nothing, or written already */
	char *by, *reason;
	char origin[16];           /* the door it came by; "": nobody's */
	bool all_three;            /* the yes covers all three rights (subagent/rights.h) */
	struct run_spec **lowered; /* run instead of what was quoted, *owned*; NULL: that does */
	unsigned nlowered;
	char hash[HASH_HEX_LEN + 1]; /* of `lowered` */
	struct proposal *successor;
};

struct proposal {
	struct list node; /* in core.proposal_order */
	struct core *core;
	char id[24], group_id[24]; /* "": it is of one run alone */
	enum proposal_step step;
	struct proposal_answer *answer; /* STEP_ANSWERING, or the policy's yes; else NULL */
	unsigned n;                     /* how many specs; of a chain all that are to follow */
	struct run_spec **specs;        /* as quoted; each NULL once a run has it */
	struct run **runs;              /* spawned, not yet durable; else NULL */
	int64_t cost_microusd;          /* quoted; -1: unknown */
	char *quote, *message, *config;
	char hash[HASH_HEX_LEN + 1]; /* of what was quoted */
	char run[24], trace[48];     /* the first one that was started */
	/* Of a yes: the hash of what runs, and in words what of the quote it
	 * changed (NULL: nothing). */
	char confirmed_hash[HASH_HEX_LEN + 1], *changes;
	bool said_here; /* it was answered by words of its conversation */
	char replaces[24], replaced_by[24], *instead; /* what it has otherwise, in words */
	/* Among those that were open in its conversation when it was made, from 1: what
	 * "the second" means, whatever is answered meanwhile. */
	unsigned number;
	int64_t created_ms, expires_ms;
	/* What was said under a lower number was said while it waited. 0: it waits. */
	uint64_t settled_lsn;
	char session[64];
	struct os_timer *timer;
	struct list askers; /* who gets the answer that is being written */
};

static inline bool proposal_settled(const struct proposal *p)
{
	return p->step >= STEP_CONFIRMED;
}

/* ops_confirm for words that the log has already. */
void proposal_said(struct core *c, const char *proposal, const char *text, const char *by,
		   const char *origin, op_proposal_fn done, void *user);

/* ---- for propose.c, in order of life
 * Room for n specs; not yet known to the core. `id` NULL: a new one. */
struct proposal *proposal_new(struct core *c, const char *id, size_t n, struct ava_error *err);
void proposal_free(struct proposal *p); /* whoever waits hears that the runtime stops */
/* Its specs are there: texts and times, and it is known. AVA_ENOMEM. */
int proposal_enlist(struct proposal *p, int64_t created_ms);
/* Enlist and write it, with the policy's yes where nobody is asked (`confirm` NULL: as
 * the settings say). `p` is *taken*, `a`
 * but on error. */
int proposal_open(struct proposal *p, const char *confirm, struct asker *a, struct ava_error *err);
/* May they start though nobody is asked? AVA_EDENIED: not with all three rights; AVA_EINVAL: one
 * would surely fail (spec_fits). */
int proposal_unasked(struct run_spec *const *specs, unsigned n, struct ava_error *err);
/* "pending", "confirmed", "rejected" or "expired". */
const char *proposal_state(const struct proposal *p);
struct proposal *proposal_find(struct core *c, const char *id, struct ava_error *err);
/* `text` NULL: nothing was said, or it is in the log already. NULL: no memory. */
struct proposal_answer *proposal_answer_new(enum proposal_step to, const char *text, const char *by,
					    const char *reason);
/* Carry it out. `a` is *taken*, also on error: then the proposal waits on. */
int proposal_answer(struct proposal *p, struct proposal_answer *a, struct ava_error *err);
/* NULL: no memory, which `done` has heard. */
struct asker *asker_new(struct core *c, op_proposal_fn done, void *user);
void asker_refuse(struct asker *a, const struct ava_error *err); /* `a` is *taken* */
/* Now, or when the step that is being written is on disk. `a` is *taken*. */
void proposal_tell(struct proposal *p, struct asker *a, bool repeated);
void specs_free(struct run_spec **specs, unsigned n); /* NULL: nothing */

#endif

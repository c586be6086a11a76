/* A proposal, for the conversation that it belongs to; verbs have calls of their own. proposals.c
 * has its machine. */
#ifndef AVA_PROPOSAL_H
#define AVA_PROPOSAL_H

#include "ava/state.h"

/* WRITING: SpawnProposed is on the way to the disk. ANSWERING: so is the answer. The last four are
 * final. */
enum proposal_step {
	STEP_WRITING,
	STEP_PENDING,
	STEP_ANSWERING,
	STEP_CONFIRMED,
	STEP_REJECTED,
	STEP_EXPIRED,
	STEP_REPLACED /* by a changed quote; shown as rejected */
};

/* A caller that waits for a step of a proposal, and is answered once. */
struct asker {
	struct list node; /* in proposal.askers */
	struct core *core;
	op_proposal_fn done;
	void *user;
	bool repeated;
};

/* An answer on its way to the disk. */
struct proposal_answer {
	enum proposal_step to;
	char *text; /* the person's words, to be logged; NULL: none, or logged already */
	char *by, *reason;
	char origin[16];           /* the door the answer came by; "": none */
	bool all_three;            /* the yes covers all three rights (subagent/rights.h) */
	struct run_spec **lowered; /* specs that run instead of the quoted ones, *owned*; or NULL */
	unsigned nlowered;
	char hash[HASH_HEX_LEN + 1]; /* hash of the config of `lowered` */
	struct proposal *successor;
};

struct proposal {
	struct list node; /* in core.proposal_order */
	struct core *core;
	char id[24], group_id[24]; /* group_id "": one run alone */
	enum proposal_step step;
	/* The answer being written (STEP_ANSWERING), or the policy's yes; else NULL. */
	struct proposal_answer *answer;
	unsigned n;              /* number of specs; of a chain all runs to come */
	struct run_spec **specs; /* as quoted; each NULL once its run owns it */
	struct run **runs;       /* runs that are spawned and not yet durable; else NULL */
	int64_t cost_microusd;   /* quoted; -1: unknown */
	char *quote, *message, *config;
	char *rest;                  /* what the message leaves out of what is confirmed */
	char hash[HASH_HEX_LEN + 1]; /* hash of `config`, as quoted */
	char run[24], trace[48];     /* the first run that was started */
	/* After a yes: the hash of the specs that run, and their changes in words (NULL: none). */
	char confirmed_hash[HASH_HEX_LEN + 1], *changes;
	bool said_here; /* answered by words said in the conversation */
	char replaces[24], replaced_by[24];
	char *instead; /* differences to the proposal in `replaces`, in words */
	/* Place among the open proposals of the conversation when this one was made, from 1: what
	 * "the second" means, whatever is answered meanwhile. */
	unsigned number;
	int64_t created_ms, expires_ms;
	uint64_t lsn; /* of its event and of that of a proposal that it replaces, or lower */
	char session[64];
	char order[24]; /* "O-…": it is the quote of a standing order, which starts no run; else ""
			 */
	struct os_timer *timer;
	struct list askers; /* callers of the step being written */
};

static inline bool proposal_settled(const struct proposal *p)
{
	return p->step >= STEP_CONFIRMED;
}

/* ops_confirm for words that the log has already. */
struct answer_line;
void proposal_said(struct core *c, const char *proposal, const struct answer_line *said,
		   const char *by, const char *origin, op_proposal_fn done, void *user);

/* ---- for propose.c, in order of life
 * Room for n specs, not yet known to the core. `id` NULL: a new one. */
struct proposal *proposal_new(struct core *c, const char *id, size_t n, struct ava_error *err);
void proposal_free(struct proposal *p); /* callers hear that the runtime stops */
/* Makes texts and times from the specs, and makes it known to the core. AVA_ENOMEM. */
int proposal_enlist(struct proposal *p, int64_t created_ms);
/* Enlists and writes it, with the policy's yes where nobody is asked (`confirm` NULL: as the
 * settings say). `p` is *taken*; `a` too, but not on error. */
int proposal_open(struct proposal *p, const char *confirm, struct asker *a, struct ava_error *err);
/* 0: the specs may start without a question. AVA_EDENIED: not with all three rights; AVA_EINVAL:
 * one would surely fail (spec_fits). */
int proposal_unasked(struct run_spec *const *specs, unsigned n, struct ava_error *err);
/* "pending", "confirmed", "rejected" or "expired". */
const char *proposal_state(const struct proposal *p);
struct proposal *proposal_find(struct core *c, const char *id, struct ava_error *err);
/* `text` NULL: no words, or logged already. NULL: no memory. */
struct proposal_answer *proposal_answer_new(enum proposal_step to, const char *text, const char *by,
					    const char *reason);
/* Carries the answer out. `a` is *taken*, also on error: then the proposal waits on. */
int proposal_answer(struct proposal *p, struct proposal_answer *a, struct ava_error *err);
/* NULL: out of memory, which `done` has heard. */
struct asker *asker_new(struct core *c, op_proposal_fn done, void *user);
void asker_refuse(struct asker *a, const struct ava_error *err); /* `a` is *taken* */
/* Answers now, or when the step being written is on disk. `a` is *taken*. */
void proposal_tell(struct proposal *p, struct asker *a, bool repeated);
void specs_free(struct run_spec **specs, unsigned n); /* NULL: nothing */

#endif

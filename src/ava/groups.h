/* Verbs about groups of runs, as those of ava/ops.h. */
#ifndef AVA_GROUPS_H
#define AVA_GROUPS_H

#include "ava/ops.h"

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

/* What became of a group: its sums, then each of its runs in their order. Those
 * of a chain that have not begun are not among them. AVA_ENOENT. */
struct op_group_status {
	bool running, chain;
	unsigned size, ended, succeeded;
	int64_t cost_microusd, tokens;
	int64_t limit_microusd, time_ms; /* of one at work; -1, 0: none */
};
int ops_group(struct core *c, const char *id, struct op_group_status *out,
	      void (*each)(const struct op_status *s, void *user), void *user,
	      struct ava_error *err);

#endif

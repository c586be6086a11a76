/* A proposal of several runs: the specs beside the first one's, and their runs
 * while the answer is on its way to the disk. */
#ifndef AVA_PROPOSAL_GROUP_H
#define AVA_PROPOSAL_GROUP_H

#include <jansson.h>

#include "subagent/quote_group.h"

struct ava_error;
struct core;
struct draft;
struct proposal;

struct proposal_group {
	unsigned n; /* of the runs behind the first */
	struct run_spec *specs[SPEC_GROUP_MAX - 1];
	struct run *runs[SPEC_GROUP_MAX - 1];
	char id[24];
	bool chain;
	int64_t cost_microusd, time_ms; /* as struct quote_group */
};

void proposal_group_free(struct proposal *p);
/* Quote, text, config and hash of it. AVA_ENOMEM. */
int proposal_group_texts(struct core *c, struct proposal *p);
/* From a stored config, the first spec into p->spec; 0 when it is one of a group. */
int proposal_group_restore(struct proposal *p, const json_t *config, const char *session_id,
			   const char *request_id, const char *user_id);

/* The first run was spawned into `d`: so are the others, and Fork. */
int proposal_group_spawn(struct proposal *p, struct draft *d, struct ava_error *err);
void proposal_group_start(struct proposal *p);
void proposal_group_unstart(struct proposal *p);

#endif

/* The quote of a group: its runs together, and each in one line. */
#ifndef SUBAGENT_QUOTE_GROUP_H
#define SUBAGENT_QUOTE_GROUP_H

#include "subagent/quote.h"
#include "subagent/spec_group.h"

struct quote_group {
	struct run_spec *const *specs; /* in their order; at least one */
	unsigned n;
	int64_t cost_microusd; /* of all; -1: none was set */
	int64_t time_ms;       /* likewise; 0 */
	bool chain;
};

void quote_group_make(const struct quotes *q, const struct quote_group *g, struct quote *out);
/* The object of DESIGN section 8 "Quote", with "members". */
int quote_group_encode(struct buf *out, const struct quotes *q, const struct quote_group *g);
int quote_group_text(struct buf *out, const struct quotes *q, const struct quote_group *g);
/* What is confirmed: {"group":{…},"members":[…]}. */
int quote_group_config(struct buf *out, const struct quote_group *g);

#endif

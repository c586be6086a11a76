/* ops_group: what became of the runs of a group. One of a group at work is in
 * memory; of an older one the catalog names the runs, and their files tell the
 * rest. Nothing is kept for it. */
#include "ava/groups.h"

#include <stdio.h>
#include <string.h>

#include "ava/history.h"
#include "ava/state.h"
#include "base/error.h"
#include "base/id.h"
#include "subagent/group.h"

struct runs {
	const char *group;
	char ids[SPEC_GROUP_MAX][24]; /* newest first */
	unsigned n;
};

static bool look_at_row(const struct catalog_row *row, void *user)
{
	struct runs *r = user;

	if (row->kind != CATALOG_SPAWN || strcmp(row->group_id, r->group) != 0)
		return true;
	snprintf(r->ids[r->n++], sizeof(r->ids[0]), "%s", row->id);
	return r->n < SPEC_GROUP_MAX;
}

struct summing {
	struct op_group_status *out;
	void (*each)(const struct op_status *s, void *user);
	void *user;
};

static void add(const struct op_status *s, void *user)
{
	struct summing *sum = user;
	struct op_group_status *out = sum->out;
	bool ended = s->status >= AVA_SUCCESS;

	out->cost_microusd += MAX(s->cost_microusd, 0);
	out->tokens += s->tokens;
	out->ended += ended;
	out->succeeded += s->status == AVA_SUCCESS;
	if (sum->each)
		sum->each(s, sum->user);
}

static void in_memory(const struct group *g, struct runs *r, struct op_group_status *out)
{
	for (unsigned i = g->nmembers; i > 0; i--)
		snprintf(r->ids[r->n++], sizeof(r->ids[0]), "%s", g->members[i - 1].id);
	out->running = true;
	out->chain = g->chain;
	out->size = (unsigned)g->size;
	out->limit_microusd = g->money.limit == BUDGET_NO_LIMIT ? -1 : g->money.limit;
	out->time_ms = g->time_ms;
}

int ops_group(struct core *c, const char *id, struct op_group_status *out,
	      void (*each)(const struct op_status *s, void *user), void *user,
	      struct ava_error *err)
{
	struct group *g = strmap_get(&c->sup.groups, id);
	struct summing sum = {out, each, user};
	struct runs r = {.group = id};

	*out = (struct op_group_status){.limit_microusd = -1};
	if (g)
		in_memory(g, &r, out);
	else
		history_each(c, false, look_at_row, &r);
	if (r.n == 0)
		return err_set(err, AVA_ENOENT, "there is no group %.40s", id);
	out->size = MAX(out->size, r.n);
	for (unsigned i = r.n; i > 0; i--)
		(void)ops_status(c, r.ids[i - 1], add, &sum, NULL);
	if (out->ended == r.n && !(g && out->chain && r.n < out->size))
		out->running = false;
	return 0;
}

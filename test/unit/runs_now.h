/* How runs are, at once: the files are read on the loop, as no daemon does. */
#ifndef TEST_RUNS_NOW_H
#define TEST_RUNS_NOW_H

#include "ava/runs.h"
#include "ava/state.h"
#include "spec_rig.h"

struct runs_now {
	struct core *core;
	size_t left;
	void (*each)(const struct op_status *s, void *user);
	void *user;
};

static inline bool runs_now_row(struct catalog_row *row, void *user)
{
	struct runs_now *now = user;
	struct op_status s;

	if (row->kind != CATALOG_END || supervisor_find(&now->core->sup, row->id))
		return true;
	ended_row(row, &s);
	now->each(&s, now->user);
	return --now->left > 0;
}

static inline void runs_now(struct core *c, bool all, size_t limit,
			    void (*each)(const struct op_status *s, void *user), void *user)
{
	struct runs_now now = {c, limit, each, user};
	struct op_status s;

	for (struct list *at = c->sup.live.prev; at != &c->sup.live && now.left > 0;
	     at = at->prev) {
		supervisor_status(LIST_ENTRY(at, struct run, node), &s);
		each(&s, user);
		now.left--;
	}
	if (all && now.left > 0)
		history_each(c->root_fd, true, runs_now_row, &now, NULL);
}

static inline int run_now(struct core *c, const char *run,
			  void (*each)(const struct op_status *s, void *user), void *user,
			  struct ava_error *err)
{
	struct run *r = supervisor_find(&c->sup, run);
	struct op_status s;
	struct ended e;
	int rv = 0;

	if (r) {
		supervisor_status(r, &s);
		each(&s, user);
	} else if ((rv = ended_read(c->root_fd, run, &e, err)) == 0) {
		each(&e.status, user);
		ended_fini(&e);
	}
	return rv;
}

#endif

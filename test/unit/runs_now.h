/* How runs are, at once: the files are read on the loop, as no daemon does. */
#ifndef TEST_RUNS_NOW_H
#define TEST_RUNS_NOW_H

#include "ava/runs.h"
#include "ava/state.h"
#include "spec_rig.h"

static inline void runs_now(struct core *c, bool all, size_t limit,
			    void (*each)(const struct op_status *s, void *user), void *user)
{
	struct buf live;
	size_t n;

	buf_init(&live, (size_t)1 << 30);
	n = ops_list_live(c, limit, &live, each, user);
	if (all)
		ops_list_ended(c->root_fd, &live, limit - n, each, user, NULL);
	buf_fini(&live);
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

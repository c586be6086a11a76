/* A person, a program or Ava names the position of a run (subagent/run_checkpoint.h).
 *
 * The log of an ended run is closed, so that its checkpoints are those it has. What
 * can fail: the run has ended, the name; memory. */
#include "ava/checkpoints.h"

#include <stdio.h>
#include <stdlib.h>

#include "ava/state.h"
#include "base/error.h"
#include "subagent/run_checkpoint.h"

struct naming {
	char run[24], name[RUN_CHECKPOINT_NAME + 1];
	int call;
	op_checkpoint_fn done;
	void *user;
};

static void answer(struct naming *n, int rv, bool repeated, const struct ava_error *err)
{
	struct op_checkpoint k = {n->run, n->name, n->call, repeated};

	n->done(rv, rv == 0 ? &k : NULL, rv == 0 ? NULL : err, n->user);
	free(n);
}

static void on_disk(int rv, void *user)
{
	struct naming *n = user;
	struct ava_error err = {0};

	if (rv != 0)
		err_set(&err, rv, "the runtime stops before checkpoint %s of run %s was kept",
			n->name, n->run);
	answer(n, rv, false, &err);
}

struct gone {
	const char *run;
	struct ava_error *err;
};

static void has_ended(const struct op_status *s, void *user)
{
	struct gone *g = user;

	err_set(g->err, AVA_EEXIST,
		"run %s has ended (%s), its log is closed: fork it from a call of its model (ava "
		"replay %s --from N)",
		g->run, ava_status_name(s->status), g->run);
}

static int begin(struct core *c, struct naming *n, const char *name, const char *by,
		 struct ava_error *err)
{
	struct run *r = supervisor_find(&c->sup, n->run);
	struct gone gone = {n->run, err};
	int rv;

	if (!r) {
		rv = ops_status(c, n->run, has_ended, &gone, err);
		return rv != 0 ? rv : AVA_EEXIST;
	}
	if (r->agent.ending)
		return err_set(err, AVA_EEXIST,
			       "run %s is ending: fork it from a call of its model when it has "
			       "(ava replay %s --from N)",
			       n->run, n->run);
	if (!r->durable || r->end.abandoned)
		return err_set(err, AVA_EBUSY, "run %s cannot be given a checkpoint now: ask again",
			       n->run);
	rv = run_checkpoint(r, name, by ? by : "ava", &n->call, on_disk, n, err);
	snprintf(n->name, sizeof(n->name), "%s", name);
	return rv;
}

void ops_checkpoint(struct core *c, const char *run, const char *name, const char *by,
		    op_checkpoint_fn done, void *user)
{
	struct naming *n = calloc(1, sizeof(*n));
	struct ava_error err = {0};
	int rv;

	if (!n) {
		rv = err_set(&err, AVA_ENOMEM, "out of memory");
		done(rv, NULL, &err, user);
		return;
	}
	snprintf(n->run, sizeof(n->run), "%s", run);
	n->done = done;
	n->user = user;
	rv = begin(c, n, name ? name : "", by, &err);
	if (rv < 0)
		answer(n, rv, false, &err);
	else if (rv == 1)
		answer(n, 0, true, NULL);
}

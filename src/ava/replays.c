/* A run is executed again on a thread of the pool, since all it needs are files.
 *
 * Happy path: the job runs, its report goes to whoever asked. What can fail: no such
 * run, a record that cannot be read, too many at once. That record and replay differ
 * is no failure but what the report says. */
#include "ava/replays.h"

#include <stdio.h>
#include <stdlib.h>

#include "ava/job.h"
#include "ava/state.h"
#include "base/error.h"
#include "subagent/replay.h"

struct replaying {
	struct job job;
	char run[24];
	bool lenient;
	int root_fd, rv; /* of the core, which outlives its jobs */
	struct ava_error err;
	struct replay_report report;
	op_replayed_fn done;
	void *user;
};

static void execute(struct job *j)
{
	struct replaying *r = CONTAINER_OF(j, struct replaying, job);

	r->rv = replay_run(r->root_fd, r->run, NULL, r->lenient, &r->report, &r->err);
}

static void executed(struct job *j)
{
	struct replaying *r = CONTAINER_OF(j, struct replaying, job);

	r->done(r->rv, r->run, &r->report, &r->err, r->user);
	free(r);
}

void ops_replay(struct core *c, const char *run, bool lenient, op_replayed_fn done, void *user)
{
	struct replaying *r = NULL;
	struct ava_error err = {0};
	int rv = id_is_run(run) ? 0 : err_set(&err, AVA_ENOENT, "there is no run %.40s", run);

	if (rv == 0) {
		r = calloc(1, sizeof(*r));
		rv = r ? 0 : err_set(&err, AVA_ENOMEM, "out of memory");
	}
	if (rv == 0) {
		snprintf(r->run, sizeof(r->run), "%s", run);
		r->lenient = lenient;
		r->root_fd = c->root_fd;
		r->done = done;
		r->user = user;
		r->job.run = execute;
		r->job.done = executed;
		rv = job_begin(c, &r->job, &err); /* from then on another thread's */
	}
	if (rv != 0) {
		free(r);
		done(rv, run, NULL, &err, user);
	}
}

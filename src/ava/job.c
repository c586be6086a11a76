/* Work for a verb, off the loop.
 *
 * Happy path: the verb fills what its job reads, the job is begun, and `done` answers
 * whoever asked. What can fail: too many at once, and a runtime that stops. */
#include "ava/job.h"

#include "ava/state.h"
#include "base/error.h"

static void work(struct os_work *w)
{
	struct job *j = w->priv;

	j->run(j);
}

static void done(struct os_work *w)
{
	struct job *j = w->priv;

	j->core->njobs--;
	j->done(j);
}

int job_begin(struct core *c, struct job *j, struct ava_error *err)
{
	if (!c->stopping && c->njobs >= JOBS_MAX)
		return err_set(err, AVA_EBUSY, "%d records are being read: ask again", JOBS_MAX);
	return job_begin_short(c, j, err);
}

int job_begin_short(struct core *c, struct job *j, struct ava_error *err)
{
	if (c->stopping)
		return err_set(err, AVA_EBUSY, "the runtime stops");
	c->njobs++;
	j->core = c;
	j->work = (struct os_work){.work = work, .done = done, .priv = j};
	os_work_start(c->loop, &j->work);
	return 0;
}

void jobs_end(struct core *c)
{
	c->stopping = true;
	while (c->njobs > 0)
		os_loop_step(c->loop, 50);
}

/* POST /api/v1/runs/{id}/replay: the run is executed again from its record, on
 * a thread of the pool, since all it needs are files; the answer says whether
 * and where the two part. Happy path: the body is read, the replay runs, its
 * report goes out. What can fail: no such run, a record that cannot be read. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ava/state.h"
#include "base/error.h"
#include "base/id.h"
#include "base/util.h"
#include "gateway/call.h"
#include "gateway/encode.h"
#include "gateway/reply.h"
#include "gateway/routes.h"
#include "os/loop.h"
#include "subagent/replay.h"

#define JOBS_MAX 4 /* with questions to the logs: others need the pool too */

struct job {
	struct os_work work;
	struct routes *routes;
	struct kept *kept;
	char run[24];
	int root_fd;
	bool lenient;
	int rv;
	struct ava_error err;
	struct replay_report report;
};

static void job_free(struct job *j)
{
	if (j->root_fd >= 0)
		close(j->root_fd);
	free(j);
}

static void work(struct os_work *w)
{
	struct job *j = w->priv;

	j->rv = replay_run(j->root_fd, j->run, NULL, j->lenient, &j->report, &j->err);
}

static void write_diff(struct jw *w, const struct replay_diff *d)
{
	jw_object(w, NULL);
	jw_int(w, "lsn", (int64_t)d->lsn);
	jw_int(w, "seq", (int64_t)d->seq);
	jw_str(w, "eventType", d->type);
	jw_str(w, "call_id", d->call);
	jw_str(w, "what", d->what);
	if (d->byte >= 0)
		jw_int(w, "byte", d->byte);
	jw_str(w, "recorded", d->recorded);
	jw_str(w, "replayed", d->replayed);
	jw_end(w);
}

static void write_report(struct jw *w, const struct job *j)
{
	const struct replay_report *r = &j->report;

	jw_object(w, NULL);
	jw_str(w, "subagent_id", j->run);
	jw_bool(w, "identical", r->ndiffs == 0);
	jw_bool(w, "complete", r->complete);
	jw_str(w, "reason", r->reason);
	jw_int(w, "turns", r->turns);
	jw_int(w, "events", (int64_t)r->events);
	jw_int(w, "differences_found", r->ndiffs);
	jw_array(w, "differences");
	for (unsigned i = 0; i < MIN(r->ndiffs, (unsigned)REPLAY_DIFFS_MAX); i++)
		write_diff(w, &r->diffs[i]);
	jw_end(w);
	jw_end(w);
}

static void done(struct os_work *w)
{
	struct job *j = w->priv;
	struct buf b;
	struct jw jw;

	j->routes->log_jobs--;
	if (j->rv == 0) {
		call_json(&b, &jw);
		write_report(&jw, j);
		kept_reply(j->kept, 200, &b);
		buf_fini(&b);
	} else {
		kept_error(j->kept, j->rv, &j->err);
	}
	job_free(j);
}

static int read_body(struct job *j, const json_t *body)
{
	const char *key;
	json_t *v;

	if (body != NULL && !json_is_object(body))
		return err_set(&j->err, AVA_EINVAL, "the body must be a JSON object");
	json_object_foreach((json_t *)body, key, v)
	{
		if (strcmp(key, "lenient") != 0)
			return err_set(&j->err, AVA_EINVAL,
				       "unknown key %.60s in the request: it takes lenient", key);
		if (!json_is_boolean(v))
			return err_set(&j->err, AVA_EINVAL, "lenient must be true or false");
		j->lenient = json_is_true(v);
	}
	return 0;
}

static int prepare(struct job *j, const struct call *c)
{
	struct op_health h;
	int rv = read_body(j, c->body);

	if (rv != 0)
		return rv;
	if (!id_is_run(c->id))
		return err_set(&j->err, AVA_ENOENT, "there is no run %.40s", c->id);
	if (c->routes->log_jobs >= JOBS_MAX)
		return err_set(&j->err, AVA_EBUSY, "others read the logs: ask again");
	snprintf(j->run, sizeof(j->run), "%s", c->id);
	ops_health(c->routes->core, &h);
	j->root_fd = open(h.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return j->root_fd >= 0 ? 0 : err_sys(&j->err, "data root %s", h.root);
}

void post_replay(struct call *c)
{
	struct job *j = calloc(1, sizeof(*j));
	int rv = AVA_ENOMEM;

	if (j != NULL) {
		j->root_fd = -1;
		j->routes = c->routes;
		rv = prepare(j, c);
	}
	if (rv == 0) {
		j->kept = kept_new(c->routes, c->req);
		if (j->kept == NULL) { /* answered */
			job_free(j);
			return;
		}
	}
	if (rv != 0) {
		reply_error(c->routes, c->req, rv, j != NULL ? j->err.text : NULL);
		if (j != NULL)
			job_free(j);
		return;
	}
	c->routes->log_jobs++;
	j->work = (struct os_work){.work = work, .done = done, .priv = j};
	os_work_start(c->routes->core->loop, &j->work);
	kept_returned(j->kept);
}

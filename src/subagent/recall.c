/* The past of a run, looked up by its tools: results of earlier calls, and texts it was told.
 *
 * Happy path: a result is read from its artifact where there is one, else from the conversation.
 * What can fail: a call that was never made, a result that is not kept, files that are gone.
 * Mostly on a pool thread. */
#include "subagent/run.h"

#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"
#include "provider/messages.h"
#include "subagent/quote.h"
#include "subagent/rights.h"

/* ---- which result is which: the k-th call of a run has the k-th result */

/* Guards calls_before and calls_at: a pool thread of a stopped turn may read them while the next
 * turn is counted. */
pthread_mutex_t toolrun_calls = PTHREAD_MUTEX_INITIALIZER;

static int count_calls(struct run *r, unsigned ncalls)
{
	int32_t it = r->agent.at.iteration;
	size_t had = r->tools.calls_cap;

	if (!ARRAY_ROOM(r->tools.calls_before, r->tools.calls_cap, (size_t)it + 2))
		return AVA_ENOMEM;
	for (size_t i = had; i < r->tools.calls_cap; i++)
		r->tools.calls_before[i] = 0;
	for (; r->tools.calls_at < it; r->tools.calls_at++)
		r->tools.calls_before[r->tools.calls_at + 1] =
			r->tools.calls_before[r->tools.calls_at];
	r->tools.calls_before[it + 1] = r->tools.calls_before[it] + ncalls;
	r->tools.calls_at = it + 1;
	return 0;
}

int toolrun_count(struct run *r, unsigned ncalls)
{
	int rv;

	pthread_mutex_lock(&toolrun_calls);
	rv = count_calls(r, ncalls);
	pthread_mutex_unlock(&toolrun_calls);
	return rv;
}

struct recall_fetch {
	size_t want;
	struct buf *out;
	bool found;
};

static int fetch_each(size_t k, const char *text, size_t len, bool is_error, void *user)
{
	struct recall_fetch *f = user;

	if (k != f->want)
		return 0;
	f->found = true;
	buf_add(f->out, text, len);
	return 1;
}

/* Calls `each` for every result as it was recorded, also results that compaction removed. */
static int each_result(struct run *r,
		       int (*each)(size_t k, const char *text, size_t len, bool is_error,
				   void *user),
		       void *user, struct ava_error *err)
{
	struct buf body;
	char *file = NULL;
	size_t len, from = 0;
	int rv = run_messages_read(r, &from, &file, &len, err);

	if (rv != 0)
		return rv;
	buf_init(&body, 256u << 20);
	rv = messages_said(&body, file, len, err);
	if (rv == 0)
		rv = r->spec->model->dialect->results(body.data ? body.data : "", body.len, each,
						      user, err);
	buf_fini(&body);
	free(file);
	return rv;
}

/* Reads result.json or a kept output of another run of the group. */
static int fetch_of_others(struct run *r, const char *ref, struct buf *out, struct ava_error *err)
{
	char path[128], *data;
	size_t len;
	int rv = group_reference(r, ref, path, err);

	if (rv != 0)
		return rv;
	if (sys_read_file(r->rec.outbox.lb->root_fd, path, TOOL_FULL_MAX * 2, &data, &len, NULL) !=
	    0)
		return err_set(err, AVA_EBUSY,
			       "%.40s is not there (yet): a result is when its run has ended", ref);
	rv = buf_add(out, data, len);
	free(data);
	return rv;
}

/* The index of call `at` among all calls of the run; false: no such call. */
static bool call_number(const struct run *r, struct call_ref at, size_t *k)
{
	const uint32_t *before;
	bool is;

	pthread_mutex_lock(&toolrun_calls);
	before = r->tools.calls_before;
	is = at.iteration < r->tools.calls_at &&
	     at.n <= before[at.iteration + 1] - before[at.iteration];
	if (is)
		*k = before[at.iteration] + at.n - 1;
	pthread_mutex_unlock(&toolrun_calls);
	return is;
}

int recall_result(struct run *r, struct call_ref at, struct buf *out, struct ava_error *err)
{
	struct recall_fetch f = {.out = out};
	int rv = AVA_ENOENT;

	if (call_number(r, at, &f.want))
		rv = MIN(each_result(r, fetch_each, &f, err), 0);
	return rv == 0 && !f.found ? AVA_ENOENT : rv;
}

/* On a pool thread: reads files, and fields that do not change while tools run. */
int toolrun_fetch(struct tool_env *env, const char *call_id, struct buf *out, struct ava_error *err)
{
	struct run *r = env->user;
	char path[RUN_ARTIFACT_PATH], *data;
	struct call_ref at;
	size_t len, k;
	int rv;

	if (call_id[0] == 'S' || call_id[0] == 's')
		return fetch_of_others(r, call_id, out, err);
	if (!call_ref_read(call_id, &at) || !call_number(r, at, &k))
		return err_set(err, AVA_ENOENT, "there is no earlier call %.20s", call_id);
	run_artifact_path(r, call_id, "txt", path);
	if (sys_read_file(r->rec.outbox.lb->root_fd, path, TOOL_FULL_MAX * 2, &data, &len, NULL) ==
	    0) {
		rv = buf_add(out, data, len);
		free(data);
		return rv;
	}
	rv = recall_result(r, at, out, err);
	if (rv == AVA_ENOENT)
		rv = err_set(err, AVA_ENOENT, "the result of call %.20s is not kept", call_id);
	return rv;
}

/* ---- texts that the run was told */

struct recall_told {
	int (*each)(bool person, const char *text, size_t len, void *user);
	void *user;
};

#define TOLD_LOG_MAX ((size_t)256 << 20)

/* Messages and answers of people, from Steering events; Ava's own do not count. */
static int told_by_people(struct run *r, const struct recall_told *t)
{
	char path[LOGBOOK_PATH], *data = NULL;
	size_t len = 0, at = 0, n;
	const char *line;
	int rv = 0;

	logbook_run_path(r->id.text, path);
	if (logbook_read(r->rec.outbox.lb->root_fd, path, TOLD_LOG_MAX, &data, &len, NULL) != 0)
		return 0;
	while (rv == 0 && jsonl_next(data, len, &at, &line, &n) == 1) {
		struct event_view v;
		json_t *content;
		const char *text;

		if (event_view(line, n, &v) != 0 || v.kind != EVENT_Steering)
			continue;
		content = json_parse(v.content.s, v.content.len, NULL);
		text = strcmp(json_str(content, "by"), "ava") != 0 ? json_str(content, "text") : "";
		rv = *text ? t->each(true, text, strlen(text), t->user) : 0;
		json_decref(content);
	}
	free(data);
	return rv;
}

static int told_each(size_t k, const char *text, size_t len, bool is_error, void *user)
{
	const struct recall_told *t = user;

	(void)k;
	return is_error ? 0 : t->each(false, text, len, t->user);
}

/* The whole task counts as told by a person, unless a model wrote it that had seen private data,
 * or the quote hid a part of a model's task: then the addresses that the quote listed. */
static int told_task(const struct run_spec *s,
		     int (*each)(bool person, const char *text, size_t len, void *user), void *user)
{
	struct buf listed;
	int rv;

	if (!(s->given & TOOL_OUT) && (!(s->given & RIGHTS_SEEN) || !quote_hides_task(s)))
		return each(true, s->task, strlen(s->task), user);
	buf_init(&listed, SPEC_TASK_MAX);
	(void)rights_addresses(&listed, s->task, s->cwd[0] != 0);
	rv = each(true, listed.data ? listed.data : "", listed.len, user);
	buf_fini(&listed);
	return rv;
}

int toolrun_told(struct tool_env *env,
		 int (*each)(bool person, const char *text, size_t len, void *user), void *user,
		 struct ava_error *err)
{
	struct run *r = env->user;
	struct recall_told t = {each, user};
	int rv = told_task(r->spec, each, user);

	if (rv == 0 && !spec_context_carries(r->spec))
		rv = each(true, r->spec->context, strlen(r->spec->context), user);
	if (rv == 0)
		rv = told_by_people(r, &t);
	return rv != 0 ? rv : each_result(r, told_each, &t, err);
}

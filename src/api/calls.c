/* The calls about proposals, runs and conversations. The front's part: check
 * what a program can get wrong, forget the last answer, hand on. Lists are rows
 * in the answer's memory; a result is the JSON of the file, and the fields of
 * it that most programs want. */
#include <string.h>

#include "api/runtime.h"
#include "base/error.h"
#include "codec/json.h"

#define RUNS_DEFAULT 100
#define RUNS_MOST    100000
#define GROUP_MOST   100
#define TEXT_MAX     (1u << 20)

static int list(struct ava_runtime *rt, int rv, size_t size, const void **rows, size_t *n,
		struct ava_error *err)
{
	if (rv == 0)
		rv = answer_check(&rt->answer, err);
	*n = rv == 0 ? rt->answer.rows.len / size : 0;
	*rows = *n > 0 ? rt->answer.rows.data : NULL;
	return rv;
}

static size_t limit_of(size_t limit)
{
	return limit == 0 ? RUNS_DEFAULT : MIN(limit, RUNS_MOST);
}

static int begin_spawn(struct ava_runtime *rt, const struct ava_spawn *spawn,
		       struct ava_error **err, struct ava_error *own)
{
	runtime_begin(rt, err, own);
	if (!spawn || !spawn->task || !*spawn->task)
		return err_set(*err, AVA_EINVAL, "a run needs a task");
	return 0;
}

/* ---- proposals */

int ava_propose(struct ava_runtime *rt, const struct ava_spawn *spawn,
		struct ava_proposal *proposal, struct ava_error *err)
{
	struct ava_error own;
	int rv = begin_spawn(rt, spawn, &err, &own);

	if (rv == 0)
		rv = rt->b->ops->propose(rt->b, spawn, &rt->answer, proposal, err);
	return rv == 0 ? answer_check(&rt->answer, err) : rv;
}

int ava_propose_group(struct ava_runtime *rt, const struct ava_spawn_group *group,
		      struct ava_proposal *proposal, struct ava_error *err)
{
	struct ava_error own;
	int rv = 0;

	runtime_begin(rt, &err, &own);
	if (!group || group->nruns < 1 || group->nruns > GROUP_MOST)
		rv = err_set(err, AVA_EINVAL, "a group has 1 to %d runs", GROUP_MOST);
	for (size_t i = 0; rv == 0 && i < group->nruns; i++)
		if (!group->runs[i].task || !*group->runs[i].task)
			rv = err_set(err, AVA_EINVAL, "run %zu of the group needs a task", i + 1);
	if (rv == 0)
		rv = rt->b->ops->propose_group(rt->b, group, &rt->answer, proposal, err);
	return rv == 0 ? answer_check(&rt->answer, err) : rv;
}

int ava_group(struct ava_runtime *rt, const char *id, struct ava_group *out, struct ava_error *err)
{
	struct ava_error own;
	int rv;

	runtime_begin(rt, &err, &own);
	*out = (struct ava_group){0};
	rv = runtime_id("group", id, err);
	if (rv == 0)
		rv = rt->b->ops->group(rt->b, id, &rt->answer, out, err);
	return list(rt, rv, sizeof(struct ava_run), (const void **)&out->runs, &out->nruns, err);
}

int ava_resume(struct ava_runtime *rt, const char *run, const struct ava_resume *resume,
	       struct ava_proposal *proposal, struct ava_error *err)
{
	const struct ava_resume as_it_was = {0};
	struct ava_error own;
	int rv;

	runtime_begin(rt, &err, &own);
	rv = runtime_id("run", run, err);
	if (rv == 0)
		rv = rt->b->ops->resume(rt->b, run, resume ? resume : &as_it_was, &rt->answer,
					proposal, err);
	return rv == 0 ? answer_check(&rt->answer, err) : rv;
}

int ava_confirm(struct ava_runtime *rt, const char *id, const char *words,
		struct ava_proposal *proposal, struct ava_error *err)
{
	struct ava_error own;
	int rv;

	runtime_begin(rt, &err, &own);
	rv = runtime_id("proposal", id, err);
	if (rv == 0)
		rv = rt->b->ops->confirm(rt->b, id, words, &rt->answer, proposal, err);
	return rv == 0 ? answer_check(&rt->answer, err) : rv;
}

int ava_reject(struct ava_runtime *rt, const char *id, const char *reason,
	       struct ava_proposal *proposal, struct ava_error *err)
{
	struct ava_proposal unseen;
	struct ava_error own;
	int rv;

	runtime_begin(rt, &err, &own);
	rv = runtime_id("proposal", id, err);
	if (rv == 0)
		rv = rt->b->ops->reject(rt->b, id, reason, &rt->answer,
					proposal ? proposal : &unseen, err);
	return rv == 0 ? answer_check(&rt->answer, err) : rv;
}

int ava_proposals(struct ava_runtime *rt, int all, const struct ava_proposal **out, size_t *n,
		  struct ava_error *err)
{
	struct ava_error own;

	runtime_begin(rt, &err, &own);
	return list(rt, rt->b->ops->proposals(rt->b, all != 0, &rt->answer, err),
		    sizeof(struct ava_proposal), (const void **)out, n, err);
}

/* ---- runs */

int ava_status_ended(enum ava_status status)
{
	return status >= AVA_SUCCESS && status < AVA_NSTATUSES;
}

int ava_spawn(struct ava_runtime *rt, const struct ava_spawn *spawn, struct ava_run_id *id,
	      struct ava_error *err)
{
	struct ava_error own;
	int rv = begin_spawn(rt, spawn, &err, &own);

	return rv == 0 ? rt->b->ops->spawn(rt->b, spawn, id, err) : rv;
}

int ava_status(struct ava_runtime *rt, const char *run, struct ava_run *out, struct ava_error *err)
{
	struct ava_error own;
	int rv;

	runtime_begin(rt, &err, &own);
	rv = runtime_id("run", run, err);
	if (rv == 0)
		rv = rt->b->ops->status(rt->b, run, &rt->answer, out, err);
	return rv == 0 ? answer_check(&rt->answer, err) : rv;
}

int ava_replay(struct ava_runtime *rt, const char *run, int lenient, struct ava_replay *out,
	       struct ava_error *err)
{
	struct ava_error own;
	int rv;

	runtime_begin(rt, &err, &own);
	*out = (struct ava_replay){0};
	rv = runtime_id("run", run, err);
	if (rv == 0)
		rv = rt->b->ops->replay(rt->b, run, lenient != 0, &rt->answer, out, err);
	return list(rt, rv, sizeof(struct ava_difference), (const void **)&out->differences,
		    &out->ndifferences, err);
}

int ava_is_done(struct ava_runtime *rt, const char *run, struct ava_error *err)
{
	struct ava_run r;
	int rv = ava_status(rt, run, &r, err);

	return rv == 0 ? ava_status_ended(r.status) : rv;
}

int ava_runs(struct ava_runtime *rt, int all, size_t limit, const struct ava_run **out, size_t *n,
	     struct ava_error *err)
{
	struct ava_error own;

	runtime_begin(rt, &err, &own);
	return list(rt, rt->b->ops->runs(rt->b, all != 0, limit_of(limit), &rt->answer, err),
		    sizeof(struct ava_run), (const void **)out, n, err);
}

int ava_cancel(struct ava_runtime *rt, const char *run, struct ava_error *err)
{
	struct ava_error own;
	int rv;

	runtime_begin(rt, &err, &own);
	rv = runtime_id("run", run, err);
	return rv == 0 ? rt->b->ops->cancel(rt->b, run, err) : rv;
}

int ava_steer(struct ava_runtime *rt, const char *run, const char *text, const char *call,
	      struct ava_error *err)
{
	return ava_steer_once(rt, run, NULL, text, call, err);
}

int ava_steer_once(struct ava_runtime *rt, const char *run, const char *request_id,
		   const char *text, const char *call, struct ava_error *err)
{
	struct ava_error own;
	int rv;

	runtime_begin(rt, &err, &own);
	rv = runtime_id("run", run, err);
	if (rv == 0 && !text)
		rv = err_set(err, AVA_EINVAL, "the text is missing");
	return rv == 0 ? rt->b->ops->steer(rt->b, run, request_id, text, call, err) : rv;
}

int ava_checkpoint(struct ava_runtime *rt, const char *run, const char *name, struct ava_error *err)
{
	struct ava_error own;
	int rv;

	runtime_begin(rt, &err, &own);
	rv = runtime_id("run", run, err);
	if (rv == 0 && !name)
		rv = err_set(err, AVA_EINVAL, "the name is missing");
	return rv == 0 ? rt->b->ops->checkpoint(rt->b, run, name, err) : rv;
}

int ava_cancel_all(struct ava_runtime *rt, size_t *n, struct ava_error *err)
{
	struct ava_error own, one = {0};
	const struct ava_run *rows;
	size_t some, done = 0;
	int rv = ava_runs(rt, 0, RUNS_MOST, &rows, &some, err ? err : &own);

	for (size_t i = 0; i < some; i++) { /* rows live on: no call of ours ends the answer */
		int failed = rt->b->ops->cancel(rt->b, rows[i].id, &one);

		done += failed == 0;
		if (failed != 0 && rv == 0)
			rv = err_set(err, failed, "%s", one.text);
	}
	if (n)
		*n = done;
	return rv;
}

/* ---- results */

static enum ava_status status_of(const json_t *o)
{
	const char *word = json_get_str(o, "status");

	for (int i = 0; word && i < AVA_NSTATUSES; i++)
		if (strcmp(word, ava_status_name((enum ava_status)i)) == 0)
			return (enum ava_status)i;
	return AVA_ERROR;
}

static const char *output_of(struct answer *a, const json_t *o)
{
	const json_t *v = json_object_get(o, "output");
	const char *text = "null";
	struct buf b;

	buf_init(&b, 64u << 20);
	if (v && json_dump(&b, v) == 0)
		text = answer_strn(a, b.data, b.len);
	else if (v)
		a->failed = true;
	buf_fini(&b);
	return text;
}

static void fill_result(struct answer *a, const json_t *o, struct ava_result *r)
{
	const json_t *sure = json_object_get(o, "confidence");

	r->status = status_of(o);
	r->run = answer_str(a, json_get_str(o, "subagent_id"));
	r->trace = answer_str(a, json_get_str(o, "trace_id"));
	r->model = answer_str(a, json_get_str(o, "model"));
	r->stop_reason = answer_str(a, json_get_str(o, "stop_reason"));
	r->summary = answer_str(a, json_get_str(o, "summary"));
	r->error = answer_str(a, json_get_str(o, "error"));
	r->output = output_of(a, o);
	r->confidence = json_is_number(sure) ? json_number_value(sure) : -1;
	r->partial = json_get_bool(o, "partial", false);
	r->unverified = json_get_bool(o, "unverified", false);
	r->tokens = json_get_int(o, "tokens_used", 0);
	r->cost_microusd = json_get_fixed(o, "cost_cents", 4, -1);
	r->duration_ms = json_get_fixed(o, "duration_seconds", 3, 0);
	r->iterations = json_get_int(o, "iterations", 0);
	r->citations = json_array_size(json_object_get(o, "citations"));
}

int ava_result(struct ava_runtime *rt, const char *run, struct ava_result *out,
	       struct ava_error *err)
{
	struct ava_error own;
	json_t *o = NULL;
	int rv;

	runtime_begin(rt, &err, &own);
	*out = (struct ava_result){0};
	rv = runtime_id("run", run, err);
	if (rv == 0)
		rv = rt->b->ops->result(rt->b, run, &rt->answer, &out->json, &out->len, err);
	if (rv == 0)
		rv = answer_check(&rt->answer, err);
	if (rv == 0) {
		o = json_parse(out->json, out->len, err);
		if (!o)
			rv = err_wrap(err, err->code == AVA_ENOMEM ? AVA_ENOMEM : AVA_ECORRUPT,
				      "the result of %s", run);
	}
	if (rv == 0) {
		fill_result(&rt->answer, o, out);
		rv = answer_check(&rt->answer, err);
	}
	json_decref(o);
	return rv;
}

/* ---- conversations */

int ava_session_new(struct ava_runtime *rt, const struct ava_session_options *options,
		    struct ava_session_id *id, struct ava_error *err)
{
	const struct ava_session_options none = {0};
	struct ava_error own;

	runtime_begin(rt, &err, &own);
	return rt->b->ops->session_new(rt->b, options ? options : &none, id, err);
}

int ava_say(struct ava_runtime *rt, const char *session, const char *text, char entry[24],
	    struct ava_error *err)
{
	return ava_say_once(rt, session, NULL, text, entry, err);
}

int ava_say_once(struct ava_runtime *rt, const char *session, const char *request_id,
		 const char *text, char entry[24], struct ava_error *err)
{
	struct ava_error own;
	char unseen[24];
	int rv;

	runtime_begin(rt, &err, &own);
	rv = runtime_id("session", session, err);
	if (rv == 0 && (!text || !*text))
		rv = err_set(err, AVA_EINVAL, "nothing was said");
	if (rv == 0 && strlen(text) > TEXT_MAX)
		rv = err_set(err, AVA_ETOOBIG, "text is over %u bytes", TEXT_MAX);
	return rv == 0 ? rt->b->ops->say(rt->b, session, request_id, text, entry ? entry : unseen,
					 err)
		       : rv;
}

int ava_sessions(struct ava_runtime *rt, size_t limit, const struct ava_session **out, size_t *n,
		 struct ava_error *err)
{
	struct ava_error own;

	runtime_begin(rt, &err, &own);
	return list(rt, rt->b->ops->sessions(rt->b, limit_of(limit), &rt->answer, err),
		    sizeof(struct ava_session), (const void **)out, n, err);
}

int ava_session_entries(struct ava_runtime *rt, const char *session, const char *after,
			const struct ava_line **lines, size_t *n, struct ava_error *err)
{
	struct ava_error own;
	int rv;

	runtime_begin(rt, &err, &own);
	rv = runtime_id("session", session, err);
	if (rv == 0)
		rv = rt->b->ops->entries(rt->b, session, after, &rt->answer, err);
	return list(rt, rv, sizeof(struct ava_line), (const void **)lines, n, err);
}

int ava_session_stop(struct ava_runtime *rt, const char *session, struct ava_error *err)
{
	struct ava_error own;
	int rv;

	runtime_begin(rt, &err, &own);
	rv = runtime_id("session", session, err);
	return rv == 0 ? rt->b->ops->session_stop(rt->b, session, err) : rv;
}

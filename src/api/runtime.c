/* The calls about proposals, runs and conversations: check what a program can get wrong,
 * forget the last answer, write the arguments of a verb, ask for it, read the reply's JSON
 * (api/shape.c). Lists are rows in the answer's memory; a result is the JSON of the file,
 * and the fields of it that most programs want. */
#include "api/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/settings.h"
#include "base/util.h"
#include "client/remote.h"
#include "client/spawn.h"

#define ID_MAX 128

/* ---- a runtime of either kind, and living inside another loop. Nothing moves behind the
 * program's back: an embedded runtime turns its loop only inside calls, and callbacks are
 * called in ava_runtime_process alone, after the loop has turned, so they may call whatever
 * they like. What a turn brought while no process call was under way is remembered by `woken`,
 * and ava_runtime_timeout then says not to wait. */

void runtime_begin(struct ava_runtime *rt, struct ava_error **err, struct ava_error *own)
{
	answer_reset(&rt->answer);
	*err = runtime_error(*err, own);
}

int runtime_id(const char *what, const char *id, struct ava_error *err)
{
	if (!id || !*id)
		return err_set(err, AVA_EINVAL, "no %s was given", what);
	if (strlen(id) > ID_MAX)
		return err_set(err, AVA_ENOENT, "there is no %s of that name", what);
	return 0;
}

/* ---- life */

static int runtime_make(struct ava_runtime **out, struct ava_error *err)
{
	struct ava_runtime *rt = calloc(1, sizeof(*rt));

	if (!rt)
		return err_set(err, AVA_ENOMEM, "out of memory");
	answer_init(&rt->answer);
	list_init(&rt->events);
	list_init(&rt->watches);
	*out = rt;
	return 0;
}

static int runtime_give(int rv, struct ava_runtime *made, struct ava_runtime **rt)
{
	if (rv != 0)
		free(made);
	*rt = rv == 0 ? made : NULL;
	return rv;
}

int ava_runtime_new(struct ava_runtime **rt, const struct ava_options *options,
		    struct ava_error *err)
{
	struct ava_runtime *made = NULL;
	struct ava_error own;
	int rv;

	*rt = NULL;
	err = runtime_error(err, &own);
	if (!options || !options->root || options->root[0] != '/')
		return err_set(err, AVA_EINVAL, "an embedded runtime needs an absolute data root");
	if (options->env && options->process_env)
		return err_set(err, AVA_EINVAL, "env and process_env exclude each other");
	rv = runtime_make(&made, err);
	if (rv == 0)
		rv = embedded_open(options, &made->b, err);
	return runtime_give(rv, made, rt);
}

int ava_runtime_connect(struct ava_runtime **rt, const struct ava_options *options,
			struct ava_error *err)
{
	const char *root = options ? options->root : NULL;
	bool start = !options || !options->no_start;
	struct ava_runtime *made = NULL;
	struct ava_error own;
	char path[4096];
	int rv = 0;

	*rt = NULL;
	err = runtime_error(err, &own);
	if (!root) {
		rv = settings_data_root(path, sizeof(path), err);
		root = path;
	} else if (root[0] != '/') {
		rv = err_set(err, AVA_EINVAL, "the data root must be an absolute path");
	}
	if (rv == 0)
		rv = runtime_make(&made, err);
	if (rv == 0)
		rv = remote_open(root, start, &made->b, err);
	return runtime_give(rv, made, rt);
}

void ava_runtime_free(struct ava_runtime *rt)
{
	if (!rt)
		return;
	events_close_all(rt);
	rt->b->ops->close(rt->b);
	answer_fini(&rt->answer);
	free(rt);
}

/* ---- the other loop */

int ava_runtime_fd(struct ava_runtime *rt)
{
	return rt->b->ops->fd(rt->b);
}

int ava_runtime_timeout(struct ava_runtime *rt)
{
	return rt->b->woken || rt->more ? 0 : rt->b->ops->timeout(rt->b);
}

static int process(struct ava_runtime *rt, int timeout_ms, struct ava_error *err)
{
	int64_t end = clock_mono_ms() + timeout_ms;
	int rv = rt->b->ops->step(rt->b, 0, err), left = timeout_ms;

	for (;;) {
		rt->b->woken = rt->more = false;
		if (rv == 0)
			rv = watch_dispatch(rt, err);
		if (rv != 0 || left == 0)
			return rv;
		if (!rt->b->woken && !rt->more)
			rv = rt->b->ops->step(rt->b, left, err);
		if (timeout_ms > 0)
			left = (int)MAX(end - clock_mono_ms(), 0);
	}
}

int ava_runtime_process(struct ava_runtime *rt, int timeout_ms, struct ava_error *err)
{
	struct ava_error own;
	int rv;

	err = runtime_error(err, &own);
	if (rt->in_process)
		return err_set(err, AVA_EBUSY, "a callback must not process its runtime");
	rt->in_process = true;
	rv = process(rt, timeout_ms < 0 ? -1 : timeout_ms, err);
	rt->in_process = false;
	return rv;
}

#define RUNS_DEFAULT 100
#define RUNS_MOST    100000
#define GROUP_MOST   100
#define TEXT_MAX     (1u << 20)
#define REQUEST_MAX  (16u << 20)
#define REPLY_MAX    (256u << 20)

/* ---- asking */

struct runtime_call {
	struct ava_runtime *rt;
	struct ava_error *err, own;
	int rv; /* the first error; 0: none */
	struct buf args, reply;
	struct jw w; /* writes into `args`, inside an open object */
	json_t *o;   /* the reply */
	int status;
};

static void runtime_call_begin(struct runtime_call *c, struct ava_runtime *rt,
			       struct ava_error *err)
{
	*c = (struct runtime_call){.rt = rt, .err = err};
	runtime_begin(rt, &c->err, &c->own);
	buf_init(&c->args, REQUEST_MAX);
	buf_init(&c->reply, REPLY_MAX);
	jw_init(&c->w, &c->args);
	jw_object(&c->w, NULL);
}

/* The same, about something that has an id. */
static void call_about(struct runtime_call *c, struct ava_runtime *rt, const char *what,
		       const char *id, struct ava_error *err)
{
	runtime_call_begin(c, rt, err);
	c->rv = runtime_id(what, id, c->err);
}

static bool runtime_call_send(struct runtime_call *c, const char *method, const char *path,
			      const char *id)
{
	buf_reset(&c->reply);
	c->rv = c->rt->b->ops->call(c->rt->b, method, path, id, c->args.data, &c->reply, &c->status,
				    c->err);
	if (c->rv != 0)
		return false;
	c->o = json_parse(c->reply.data, c->reply.len, c->err);
	if (!c->o)
		c->rv = err_wrap(c->err, c->err->code == AVA_ENOMEM ? AVA_ENOMEM : AVA_EPROTO,
				 "the daemon's answer");
	return c->o != NULL;
}

static bool call_ask(struct runtime_call *c, const char *method, const char *path, const char *id)
{
	jw_end(&c->w);
	if (c->rv == 0 && (c->rv = buf_check(&c->args)) != 0)
		err_set(c->err, c->rv,
			c->rv == AVA_ENOMEM ? "out of memory" : "the request is too big");
	return c->rv == 0 && runtime_call_send(c, method, path, id);
}

/* An answer that was lost is asked for again: a request id makes that safe. */
static bool call_ask_once(struct runtime_call *c, const char *path, const char *id,
			  const char *request)
{
	struct session_id own = id_session();

	jw_str(&c->w, "request_id", request && *request ? request : own.text);
	if (call_ask(c, "POST", path, id) || c->rv != AVA_EUNKNOWN)
		return c->rv == 0;
	*c->err = (struct ava_error){0};
	return runtime_call_send(c, "POST", path, id);
}

static int call_end(struct runtime_call *c)
{
	int rv = c->rv != 0 ? c->rv : answer_check(&c->rt->answer, c->err);

	buf_fini(&c->args);
	buf_fini(&c->reply);
	json_decref(c->o);
	return rv;
}

/* A row of `type` for each of a list of the reply, as `shape` reads it. */
#define CALL_ROWS(c, key, type, shape)                                                             \
	do {                                                                                       \
		const json_t *each;                                                                \
		struct type row;                                                                   \
		size_t i;                                                                          \
		json_array_foreach(json_object_get((c)->o, key), i, each)                          \
		{                                                                                  \
			shape(each, &(c)->rt->answer, &row);                                       \
			buf_add(&(c)->rt->answer.rows, &row, sizeof(row));                         \
		}                                                                                  \
	} while (0)

/* The same, for a call that gives rows. */
static int call_end_rows(struct runtime_call *c, size_t size, const void *rows, size_t *n)
{
	const struct buf *b = &c->rt->answer.rows;
	int rv = call_end(c);

	*n = rv == 0 ? b->len / size : 0;
	*(const void **)rows = *n > 0 ? b->data : NULL;
	return rv;
}

static int call_id(struct runtime_call *c, char *out, size_t size, const char *key)
{
	const char *s = json_get_str(c->o, key);

	if (!s || strlen(s) >= size)
		return err_set(c->err, AVA_EPROTO, "the daemon's answer has no %s", key);
	memcpy(out, s, strlen(s) + 1);
	return 0;
}

static size_t limit_of(size_t limit)
{
	return limit == 0 ? RUNS_DEFAULT : MIN(limit, RUNS_MOST);
}

/* ---- proposals */

static void begin_spawn(struct runtime_call *c, struct ava_runtime *rt,
			const struct ava_spawn *spawn, struct ava_error *err)
{
	runtime_call_begin(c, rt, err);
	if (spawn && spawn->task && *spawn->task)
		spawn_put(&c->w, spawn);
	else
		c->rv = err_set(c->err, AVA_EINVAL, "a run needs a task");
}

/* Asks for a quote and ends the call. */
static int quote(struct runtime_call *c, const char *path, const char *id,
		 struct ava_proposal *proposal)
{
	if (call_ask(c, "POST", path, id))
		shape_proposal(c->o, &c->rt->answer, proposal);
	return call_end(c);
}

int ava_propose(struct ava_runtime *rt, const struct ava_spawn *spawn,
		struct ava_proposal *proposal, struct ava_error *err)
{
	struct runtime_call c;

	begin_spawn(&c, rt, spawn, err);
	return quote(&c, "/api/v1/runs", NULL, proposal);
}

int ava_propose_group(struct ava_runtime *rt, const struct ava_spawn_group *group,
		      struct ava_proposal *proposal, struct ava_error *err)
{
	struct runtime_call c;

	runtime_call_begin(&c, rt, err);
	if (!group || group->nruns < 1 || group->nruns > GROUP_MOST)
		c.rv = err_set(c.err, AVA_EINVAL, "a group has 1 to %d runs", GROUP_MOST);
	for (size_t i = 0; c.rv == 0 && i < group->nruns; i++)
		if (!group->runs[i].task || !*group->runs[i].task)
			c.rv = err_set(c.err, AVA_EINVAL, "run %zu of the group needs a task",
				       i + 1);
	if (c.rv == 0)
		spawn_put_group(&c.w, group);
	return quote(&c, "/api/v1/groups", NULL, proposal);
}

int ava_resume(struct ava_runtime *rt, const char *run, const struct ava_resume *resume,
	       struct ava_proposal *proposal, struct ava_error *err)
{
	const struct ava_resume as_it_was = {0}, *r = resume ? resume : &as_it_was;
	struct runtime_call c;

	call_about(&c, rt, "run", run, err);
	spawn_put_from(&c.w, r->from, r->checkpoint);
	spawn_put(&c.w, &(struct ava_spawn){.model = r->model,
					    .timeout_ms = r->timeout_ms,
					    .max_cost_microusd = r->max_cost_microusd,
					    .max_tokens = r->max_tokens,
					    .max_iterations = r->max_iterations,
					    .session = r->session,
					    .request_id = r->request_id,
					    .confirm = r->confirm});
	return quote(&c, "/api/v1/runs/{id}/resume", run, proposal);
}

int ava_group(struct ava_runtime *rt, const char *id, struct ava_group *out, struct ava_error *err)
{
	struct runtime_call c;

	*out = (struct ava_group){0};
	call_about(&c, rt, "group", id, err);
	if (call_ask(&c, "GET", "/api/v1/groups/{id}", id))
		shape_group(c.o, &rt->answer, out);
	return call_end_rows(&c, sizeof(struct ava_run), &out->runs, &out->nruns);
}

/* The answer to a person's answer is short unless it is another quote: what became of the
 * proposal is asked for. */
static int runtime_answer(struct runtime_call *c, const char *path, const char *id, const char *key,
			  const char *value, struct ava_proposal *p)
{
	struct ava_proposal unseen;
	struct ava_error unread = {0};
	json_t *whole;

	spawn_put_str(&c->w, key, value);
	if (!p)
		p = &unseen;
	if (!call_ask(c, "POST", path, id))
		return call_end(c);
	shape_proposal(c->o, &c->rt->answer, p);
	buf_reset(&c->reply);
	if (p->state != AVA_PENDING &&
	    c->rt->b->ops->call(c->rt->b, "GET", "/api/v1/proposals/{id}", p->id, "{}", &c->reply,
				&c->status, &unread) == 0) {
		whole = json_parse(c->reply.data, c->reply.len, &unread);
		if (whole)
			shape_proposal(whole, &c->rt->answer, p);
		json_decref(whole);
	}
	return call_end(c);
}

int ava_confirm(struct ava_runtime *rt, const char *id, const char *words,
		struct ava_proposal *proposal, struct ava_error *err)
{
	struct runtime_call c;

	call_about(&c, rt, "proposal", id, err);
	return runtime_answer(&c, "/api/v1/proposals/{id}/confirm", id, "answer", words, proposal);
}

int ava_reject(struct ava_runtime *rt, const char *id, const char *reason,
	       struct ava_proposal *proposal, struct ava_error *err)
{
	struct runtime_call c;

	call_about(&c, rt, "proposal", id, err);
	return runtime_answer(&c, "/api/v1/proposals/{id}/reject", id, "reason", reason, proposal);
}

int ava_proposals(struct ava_runtime *rt, int all, const struct ava_proposal **out, size_t *n,
		  struct ava_error *err)
{
	struct runtime_call c;

	runtime_call_begin(&c, rt, err);
	if (all)
		jw_bool(&c.w, "all", true);
	call_ask(&c, "GET", "/api/v1/proposals", NULL);
	CALL_ROWS(&c, "proposals", ava_proposal, shape_proposal);
	return call_end_rows(&c, sizeof(struct ava_proposal), out, n);
}

/* ---- runs */

int ava_status_ended(enum ava_status status)
{
	return status >= AVA_SUCCESS && status < AVA_NSTATUSES;
}

int ava_spawn(struct ava_runtime *rt, const struct ava_spawn *spawn, struct ava_run_id *id,
	      struct ava_error *err)
{
	struct runtime_call c;

	begin_spawn(&c, rt, spawn, err);
	jw_bool(&c.w, "confirmed", true);
	if (call_ask(&c, "POST", "/api/v1/runs", NULL))
		c.rv = call_id(&c, id->text, sizeof(id->text), "subagent_id");
	return call_end(&c);
}

int ava_status(struct ava_runtime *rt, const char *run, struct ava_run *out, struct ava_error *err)
{
	struct runtime_call c;

	call_about(&c, rt, "run", run, err);
	if (call_ask(&c, "GET", "/api/v1/runs/{id}", run))
		shape_run(c.o, &rt->answer, out);
	return call_end(&c);
}

int ava_replay(struct ava_runtime *rt, const char *run, int lenient, struct ava_replay *out,
	       struct ava_error *err)
{
	struct runtime_call c;

	*out = (struct ava_replay){0};
	call_about(&c, rt, "run", run, err);
	jw_bool(&c.w, "lenient", lenient != 0);
	if (call_ask(&c, "POST", "/api/v1/runs/{id}/replay", run))
		shape_replay(c.o, &rt->answer, out);
	return call_end_rows(&c, sizeof(struct ava_difference), &out->differences,
			     &out->ndifferences);
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
	struct runtime_call c;

	runtime_call_begin(&c, rt, err);
	jw_int(&c.w, "limit", (int64_t)limit_of(limit));
	if (all)
		jw_bool(&c.w, "all", true);
	call_ask(&c, "GET", "/api/v1/runs", NULL);
	CALL_ROWS(&c, "runs", ava_run, shape_run);
	return call_end_rows(&c, sizeof(struct ava_run), out, n);
}

int ava_cancel(struct ava_runtime *rt, const char *run, struct ava_error *err)
{
	struct runtime_call c;

	call_about(&c, rt, "run", run, err);
	call_ask(&c, "POST", "/api/v1/runs/{id}/cancel", run);
	return call_end(&c);
}

int ava_pause(struct ava_runtime *rt, const char *run, const char *until, struct ava_error *err)
{
	struct runtime_call c;

	call_about(&c, rt, "run", run, err);
	spawn_put_str(&c.w, "until", until);
	call_ask(&c, "POST", "/api/v1/runs/{id}/pause", run);
	return call_end(&c);
}

int ava_unpause(struct ava_runtime *rt, const char *run, struct ava_error *err)
{
	struct runtime_call c;

	call_about(&c, rt, "run", run, err);
	call_ask(&c, "POST", "/api/v1/runs/{id}/unpause", run);
	return call_end(&c);
}

int ava_cancel_all(struct ava_runtime *rt, size_t *n, struct ava_error *err)
{
	struct runtime_call c;

	runtime_call_begin(&c, rt, err);
	jw_bool(&c.w, "all", true);
	call_ask(&c, "POST", "/api/v1/runs/cancel", NULL);
	if (n)
		*n = json_array_size(json_object_get(c.o, "runs"));
	return call_end(&c);
}

int ava_steer(struct ava_runtime *rt, const char *run, const char *text, const char *call,
	      struct ava_error *err)
{
	return ava_steer_once(rt, run, NULL, text, call, err);
}

int ava_steer_once(struct ava_runtime *rt, const char *run, const char *request_id,
		   const char *text, const char *call, struct ava_error *err)
{
	struct runtime_call c;

	call_about(&c, rt, "run", run, err);
	if (c.rv == 0 && !text)
		c.rv = err_set(c.err, AVA_EINVAL, "the text is missing");
	jw_str(&c.w, "text", text);
	spawn_put_str(&c.w, "call_id", call);
	call_ask_once(&c, "/api/v1/runs/{id}/steer", run, request_id);
	return call_end(&c);
}

int ava_checkpoint(struct ava_runtime *rt, const char *run, const char *name, struct ava_error *err)
{
	struct runtime_call c;

	call_about(&c, rt, "run", run, err);
	if (c.rv == 0 && !name)
		c.rv = err_set(c.err, AVA_EINVAL, "the name is missing");
	jw_str(&c.w, "name", name);
	call_ask(&c, "POST", "/api/v1/runs/{id}/checkpoint", run);
	return call_end(&c);
}

int ava_result(struct ava_runtime *rt, const char *run, struct ava_result *out,
	       struct ava_error *err)
{
	struct runtime_call c;

	*out = (struct ava_result){0};
	call_about(&c, rt, "run", run, err);
	if (call_ask(&c, "GET", "/api/v1/runs/{id}/result", run)) {
		if (c.status == 202) {
			c.rv = err_set(c.err, AVA_ETIMEOUT, "%s has not ended", run);
		} else {
			out->json = answer_strn(&rt->answer, c.reply.data, c.reply.len);
			out->len = c.reply.len;
			shape_result(c.o, &rt->answer, out);
		}
	}
	return call_end(&c);
}

/* ---- conversations */

int ava_session_new(struct ava_runtime *rt, const struct ava_session_options *options,
		    struct ava_session_id *id, struct ava_error *err)
{
	struct runtime_call c;

	runtime_call_begin(&c, rt, err);
	spawn_put_str(&c.w, "cwd", options ? options->cwd : NULL);
	spawn_put_str(&c.w, "model", options ? options->model : NULL);
	if (call_ask(&c, "POST", "/api/v1/sessions", NULL))
		c.rv = call_id(&c, id->text, sizeof(id->text), "session_id");
	return call_end(&c);
}

int ava_say(struct ava_runtime *rt, const char *session, const char *text, char entry[24],
	    struct ava_error *err)
{
	return ava_say_once(rt, session, NULL, text, entry, err);
}

int ava_say_once(struct ava_runtime *rt, const char *session, const char *request_id,
		 const char *text, char entry[24], struct ava_error *err)
{
	char unseen[24];
	struct runtime_call c;

	call_about(&c, rt, "session", session, err);
	if (c.rv == 0 && (!text || !*text))
		c.rv = err_set(c.err, AVA_EINVAL, "nothing was said");
	if (c.rv == 0 && strlen(text) > TEXT_MAX)
		c.rv = err_set(c.err, AVA_ETOOBIG, "text is over %u bytes", TEXT_MAX);
	if (c.rv == 0)
		jw_str(&c.w, "text", text);
	if (call_ask_once(&c, "/api/v1/sessions/{id}/messages", session, request_id))
		c.rv = call_id(&c, entry ? entry : unseen, sizeof(unseen), "entry");
	return call_end(&c);
}

int ava_sessions(struct ava_runtime *rt, size_t limit, const struct ava_session **out, size_t *n,
		 struct ava_error *err)
{
	struct runtime_call c;

	runtime_call_begin(&c, rt, err);
	jw_int(&c.w, "limit", (int64_t)limit_of(limit));
	call_ask(&c, "GET", "/api/v1/sessions", NULL);
	CALL_ROWS(&c, "sessions", ava_session, shape_session);
	return call_end_rows(&c, sizeof(struct ava_session), out, n);
}

int ava_session_entries(struct ava_runtime *rt, const char *session, const char *after,
			const struct ava_line **lines, size_t *n, struct ava_error *err)
{
	bool give = !after || !*after;
	const json_t *each;
	struct runtime_call c;
	size_t i;

	call_about(&c, rt, "session", session, err);
	call_ask(&c, "GET", "/api/v1/sessions/{id}/messages", session);
	json_array_foreach(json_object_get(c.o, "entries"), i, each)
	{
		const char *id = json_get_str(each, "id");

		if (give) {
			struct ava_line row = {.text = answer_json(&rt->answer, each, "")};

			row.len = strlen(row.text);
			buf_add(&rt->answer.rows, &row, sizeof(row));
		}
		give = give || (id && strcmp(id, after) == 0);
	}
	return call_end_rows(&c, sizeof(struct ava_line), lines, n);
}

int ava_session_stop(struct ava_runtime *rt, const char *session, struct ava_error *err)
{
	struct runtime_call c;

	call_about(&c, rt, "session", session, err);
	call_ask(&c, "POST", "/api/v1/sessions/{id}/stop", session);
	return call_end(&c);
}

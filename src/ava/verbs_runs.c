/* Verbs about runs and groups of them, over the calls of ava/ops.h: begin, look at,
 * wait for, stop, execute again.
 *
 * Happy path: the arguments become the struct of the call, its callback writes the
 * answer. What can fail: what these calls refuse. Who waits for a result may give up, or
 * is told that the run goes on when the daemon stops. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "ava/others.h"
#include "ava/runs.h"
#include "ava/otel.h"
#include "ava/state.h"
#include "ava/verbs.h"
#include "base/error.h"
#include "base/id.h"
#include "base/spawn_options.h"
#include "base/util.h"
#include "subagent/person.h"
#include "subagent/quote.h"
#include "subagent/replay.h"
#include "subagent/resume.h"
#include "subagent/rights.h"
#include "subagent/run.h"

#define ID_MAX  200 /* bytes of an id */
#define IDS_MAX 10000

/* ---- how a run is */

/* The question that a run waits with. */
static void verbs_runs_write_question(struct jw *w, const struct question *q)
{
	jw_object(w, "waiting_for");
	jw_str(w, "call_id", q->call_id);
	jw_str(w, "kind", question_kind(q));
	jw_str(w, "question", q->text);
	if (q->choices)
		jw_raw(w, "choices", q->choices, strlen(q->choices));
	if (q->fallback)
		jw_str(w, "default", q->fallback);
	verb_time(w, "asked_at", q->asked_ms);
	verb_time(w, "expires_at", q->until_ms);
	jw_end(w);
}

void verb_write_status(struct jw *w, const char *key, const struct op_status *s)
{
	jw_object(w, key);
	jw_str(w, "subagent_id", s->id);
	jw_str(w, "trace_id", s->trace_id);
	jw_str(w, "role", s->role);
	jw_str(w, "task", s->task);
	jw_str(w, "model", s->model);
	if (s->machine)
		jw_str(w, "machine", s->machine);
	if (s->place)
		jw_str(w, "place", s->place);
	jw_str(w, "status", ava_status_name(s->status));
	jw_str(w, "stop_reason", s->stop_reason);
	verb_time(w, "started_at", s->started_ms);
	verb_time(w, "ended_at", s->ended_ms);
	jw_int(w, "iteration", s->iteration);
	jw_int(w, "tokens_used", s->tokens);
	verb_cost(w, "cost_cents", s->cost_microusd);
	if (s->estimated)
		jw_bool(w, "estimated", true);
	jw_fixed(w, "elapsed_seconds", s->elapsed_ms, 3);
	jw_str(w, "current_activity", s->activity);
	if (s->progress[0])
		jw_str(w, "progress", s->progress);
	if (s->last_tool && s->last_tool[0]) {
		jw_object(w, "last_tool_call");
		jw_str(w, "name", s->last_tool);
		verb_time(w, "at", s->last_tool_ms);
		jw_end(w);
	} else {
		jw_null(w, "last_tool_call");
	}
	if (s->paused_until_ms > 0)
		jw_bool(w, "pause", true);
	if (s->paused_until_ms > 0 && s->paused_until_ms < PAUSE_NO_END)
		verb_time(w, "paused_until", s->paused_until_ms);
	if (s->asks)
		verbs_runs_write_question(w, s->asks);
	jw_object(w, "limits");
	jw_fixed(w, "timeout", s->limit_time_ms, 3);
	verb_cost(w, "max_cost_cents", s->limit_cost_microusd);
	jw_int(w, "max_tokens", s->limit_tokens);
	jw_int(w, "max_iterations", s->limit_iterations);
	jw_end(w);
	if (s->rights >= 0)
		rights_write(w, "rights", (unsigned)s->rights);
	jw_str(w, "session_id", s->session_id);
	jw_str(w, "user_id", s->user_id);
	jw_str(w, "origin", s->origin);
	jw_str(w, "cwd", s->cwd);
	jw_str(w, "group_id", s->group_id);
	jw_int(w, "group_index", s->group_index);
	if (s->order && s->order[0])
		jw_str(w, "order", s->order);
	if (s->group_name && s->group_name[0])
		jw_str(w, "group_name", s->group_name);
	spec_after_write(w, &s->after);
	jw_words(w, "tags", s->tags);
	jw_end(w);
}

void verb_send_status(const struct op_status *s, struct verb_reply *r, int status)
{
	struct verb_answer a;

	verb_begin(&a, r, 0, NULL);
	verb_write_status(&a.w, NULL, s);
	verb_send(&a, status);
}

static void looked_at(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	if (rv == 0)
		verb_send_status(s, user, 200);
	else
		verb_fail(user, rv, err);
}

static void verb_run(struct verb_call *v)
{
	if (verb_args(v, NULL))
		ops_look(v->core, v->id, looked_at, v->reply);
}

/* ---- begin: POST /runs, /runs/{id}/resume, /groups */

struct spawn_body {
	struct op_spawn spawn;
	bool confirmed;
};

#define SPAWN_AT(field)          offsetof(struct spawn_body, spawn.field)
#define SPAWN_N_TEXT(field)      0
#define SPAWN_N_MS(field)        0
#define SPAWN_N_CENTS(field)     0
#define SPAWN_N_COUNT(field)     0
#define SPAWN_N_ROUNDS(field)    0
#define ARG_ROUNDS               ARG_COUNT
#define SPAWN_N_SWITCH(field)    0
#define SPAWN_N_JSON(field)      0
#define SPAWN_N_TEXTS(field)     SPAWN_AT(n##field)
#define X(kind, field, key, ...) {key, ARG_##kind, SPAWN_AT(field), 0, 0, SPAWN_N_##kind(field)},
/* clang-format off */
#define REQUEST_ARGS                                                                               \
	{"session_id", ARG_TEXT, SPAWN_AT(session_id)},                                            \
	{"request_id", ARG_TEXT, SPAWN_AT(request_id)},                                            \
	{"origin", ARG_TEXT, SPAWN_AT(origin)},                                                    \
	{"confirm", ARG_TEXT, SPAWN_AT(confirm)}
#define RESUME_ARGS                                                                                \
	{"resume", ARG_TEXT, SPAWN_AT(resume)},                                                    \
	{"from", ARG_TEXT, SPAWN_AT(resume_at)},                                                   \
	{"from", ARG_COUNT, SPAWN_AT(resume_call)},                                                \
	{"confirmed", ARG_FLAG, offsetof(struct spawn_body, confirmed)}
static const struct arg run_args[] = {SPAWN_ALONE(X) REQUEST_ARGS, RESUME_ARGS, {NULL}};
static const struct arg order_args[] = {
	SPAWN_ALONE(X) REQUEST_ARGS, {"order", ARG_JSON, SPAWN_AT(order)}, {NULL}};
/* Arguments of a run of a group: members of the group are read, and refused with a sentence. */
static const struct arg member_args[] = {SPAWN_OPTIONS(X) REQUEST_ARGS, RESUME_ARGS, {NULL}};
/* clang-format on */
#undef X

#define SPAWN_NONE                                                                                 \
	{                                                                                          \
		.timeout_ms = AVA_DEFAULT, .max_cost_microusd = AVA_DEFAULT,                       \
		.max_tokens = AVA_DEFAULT, .max_iterations = AVA_DEFAULT,                          \
		.check_rounds = AVA_DEFAULT                                                        \
	}

static void verbs_runs_started(int rv, const struct op_status *s, const struct ava_error *err,
			       void *user)
{
	struct verb_answer a;

	if (!verb_begin(&a, user, rv, err))
		return;
	jw_object(&a.w, NULL);
	jw_str(&a.w, "subagent_id", s->id);
	jw_str(&a.w, "trace_id", s->trace_id);
	verb_send(&a, s->repeated ? 200 : 201);
}

/* A task written by a model inherits TOOL_UNTRUSTED from what the model has read, and also what is
 * private where the quote hides part of it. `n` runs of a group, or 0. */
static int take_caller(const struct caller *c, struct op_spawn *s, size_t n, struct ava_error *err)
{
	s->given = c->seen & (quote_hides(s, n) ? RIGHTS_SEEN : TOOL_UNTRUSTED);
	s->given |= c->seen & TOOL_PRIVATE ? TOOL_OUT : 0; /* addresses can carry data out */
	/* A model may grant "rw" (a changeable copy) only: the quote shows it, and its patch waits
	 * for the person. */
	for (size_t i = 0; c->model && i < s->ngrants; i++)
		if (strcmp(s->grants[i], "rw") != 0)
			return err_set(err, AVA_EDENIED, "the grant %.40s is the person's to give",
				       s->grants[i]);
	return 0;
}

/* `resume`: an ended run that the new one goes on from; NULL: what the body says. */
static void begin_run(struct verb_call *v, const char *resume)
{
	struct session_id session = id_session();
	struct spawn_body b = {.spawn = SPAWN_NONE};
	struct op_spawn *s = &b.spawn;
	struct ava_error err = {0};

	if (!verb_body(v) || !verb_args(v, &b))
		return;
	if (v->verb->args == order_args &&
	    (!s->order || json_object_get(s->order, "id") || json_object_get(s->order, "from")))
		err_set(&err, AVA_EINVAL,
			"give \"order\": an object with \"when\", without id and from");
	if (err.code != 0 || take_caller(v->caller, s, 0, &err) != 0) {
		verb_fail(v->reply, err.code, &err);
		return;
	}
	if (!s->session_id || !*s->session_id)
		s->session_id = session.text;
	s->user_id = v->caller->user;
	if (resume)
		s->resume = resume;
	if (!s->origin)
		s->origin = v->caller->channel;
	if (b.confirmed)
		ops_spawn(v->core, s, verbs_runs_started, v->reply);
	else
		ops_propose(v->core, s, verb_proposed, v->reply);
}

/* A run, or a standing order: its runs are asked for as one run is. */
static void verb_spawn(struct verb_call *v)
{
	begin_run(v, NULL);
}

static void verb_resume(struct verb_call *v)
{
	begin_run(v, v->id);
}

struct group_body {
	struct op_group group;
	bool confirmed;
	const json_t *runs;
};

#define GROUP_AT(field) offsetof(struct group_body, group.field)
static const struct arg group_args[] = {
	{"runs", ARG_ANY, offsetof(struct group_body, runs)},
	{"max_cost_cents", ARG_CENTS, GROUP_AT(max_cost_microusd)},
	{"timeout", ARG_MS, GROUP_AT(timeout_ms)},
	{"chain", ARG_FLAG, GROUP_AT(chain)},
	{"share", ARG_FLAG, GROUP_AT(share)},
	{"cwd", ARG_TEXT, GROUP_AT(cwd)},
	{"session_id", ARG_TEXT, GROUP_AT(session_id)},
	{"request_id", ARG_TEXT, GROUP_AT(request_id)},
	{"origin", ARG_TEXT, GROUP_AT(origin)},
	{"confirm", ARG_TEXT, GROUP_AT(confirm)},
	{"confirmed", ARG_FLAG, offsetof(struct group_body, confirmed)},
	{NULL},
};

/* Reads a member; options that hold for the whole group are refused here. */
static int verbs_runs_read_member(struct verb_call *v, const json_t *one, size_t n,
				  struct op_spawn *out, struct ava_error *err)
{
	struct spawn_body b = {.spawn = SPAWN_NONE};
	const struct op_spawn *s = &b.spawn;
	int rv = json_is_object(one) ? args_read(member_args, one, &b, &v->mem, err)
				     : err_set(err, AVA_EINVAL, "the body must be a JSON object");

	if (rv != 0)
		return rv;
	if (s->session_id || s->request_id || s->origin || s->confirm || b.confirmed)
		return err_set(err, AVA_EINVAL,
			       "session_id, request_id, origin, confirm and confirmed belong to "
			       "the group, not to a run of it");
	if (s->resume)
		return err_set(err, AVA_EINVAL, "an ended run is resumed alone, not in a group");
	*out = *s;
	return take_caller(v->caller, out, n, err);
}

static int verbs_runs_read_members(struct verb_call *v, struct group_body *b, struct ava_error *err)
{
	size_t n = json_array_size(b->runs), i;
	struct op_spawn *runs;
	const json_t *one;

	if (!b->runs)
		return err_set(err, AVA_EINVAL, "runs is missing");
	if (!json_is_array(b->runs) || n < 1 || n > SPEC_GROUP_MAX)
		return err_set(err, AVA_EINVAL, "runs must be a list of 1 to %d objects",
			       SPEC_GROUP_MAX);
	runs = arena_get(&v->mem, n * sizeof(*runs));
	if (!runs)
		return err_set(err, AVA_ENOMEM, "out of memory");
	json_array_foreach(b->runs, i, one)
	{
		int rv = verbs_runs_read_member(v, one, n, &runs[i], err);

		if (rv != 0)
			return err_wrap(err, rv, "run %zu", i + 1);
	}
	b->group.runs = runs;
	b->group.nruns = n;
	return 0;
}

/* A "confirmed" request is a proposal that nobody is asked about: proposal and yes are one
 * commit. */
static void verb_propose_group(struct verb_call *v)
{
	struct session_id session = id_session();
	struct group_body b = {
		.group = {.max_cost_microusd = AVA_DEFAULT, .timeout_ms = AVA_DEFAULT}};
	struct op_group *g = &b.group;
	struct ava_error err = {0};

	if (!verb_body(v) || !verb_args(v, &b))
		return;
	if (verbs_runs_read_members(v, &b, &err) != 0) {
		verb_fail(v->reply, err.code, &err);
		return;
	}
	if (!g->session_id || !*g->session_id)
		g->session_id = session.text;
	if (b.confirmed)
		g->confirm = "never";
	g->user_id = v->caller->user;
	if (!g->origin)
		g->origin = v->caller->channel;
	ops_propose_group(v->core, g, verb_proposed, v->reply);
}

/* A group at work is in memory; of an older one the catalog names the runs, and their files say the
 * rest: the first line of the first run's messages what was confirmed for all. */
struct group_own {
	bool in_memory, running, chain;
	unsigned n, size, ended, succeeded;
	int64_t cost_microusd, tokens, limit_microusd, time_ms; /* limit -1, time 0: none */
	char ids[SPEC_GROUP_MAX][24];
	size_t at[SPEC_GROUP_MAX], len[SPEC_GROUP_MAX]; /* text in `live`; len 0: run has ended */
	struct buf live;                                /* status of the runs at work */
	const char *id;
};

static void verbs_runs_group_add(struct group_own *g, struct jw *w, const struct op_status *s)
{
	g->cost_microusd += MAX(s->cost_microusd, 0);
	g->tokens += s->tokens;
	g->ended += s->status >= AVA_SUCCESS;
	g->succeeded += s->status == AVA_SUCCESS;
	verb_write_status(w, NULL, s);
}

/* Rows come newest first: fill `ids` from its end. */
static bool group_row(struct catalog_row *row, void *user)
{
	struct group_own *g = user;

	if (row->kind == CATALOG_SPAWN && strcmp(row->group_id, g->id) == 0)
		snprintf(g->ids[SPEC_GROUP_MAX - ++g->n], sizeof(g->ids[0]), "%s", row->id);
	return g->n < SPEC_GROUP_MAX;
}

static void group_confirmed(struct group_own *g, int root_fd)
{
	struct spec_group was;
	json_t *spec;

	if (resume_spec(root_fd, g->ids[0], &spec, NULL) != 0)
		return; /* the run's files are pruned */
	was = spec_group_read(spec);
	g->chain = was.chain;
	g->size = (unsigned)MAX(was.size, 0);
	g->limit_microusd = was.cost_microusd;
	g->time_ms = was.time_ms;
	json_decref(spec);
}

/* Pool thread. */
static int group_write(struct verb_work *work, struct ava_error *err)
{
	struct group_own *g = work->own;
	struct jw *w = &work->answer.w;

	g->id = work->id;
	if (!g->in_memory) {
		int rv = history_each(work->job.core->root_fd, false, group_row, g, err);

		if (rv != 0)
			return rv;
		memmove(g->ids, g->ids[SPEC_GROUP_MAX - g->n], g->n * sizeof(g->ids[0]));
		if (g->n > 0)
			group_confirmed(g, work->job.core->root_fd);
	}
	if (g->n == 0)
		return err_set(err, AVA_ENOENT, "there is no group %.40s", work->id);
	jw_object(w, NULL);
	jw_array(w, "runs");
	for (unsigned i = 0; i < g->n; i++) {
		struct ended e;

		if (g->len[i] > 0) {
			jw_raw(w, NULL, g->live.data + g->at[i], g->len[i]);
		} else if (ended_read(work->job.core->root_fd, g->ids[i], &e, NULL) == 0) {
			verbs_runs_group_add(g, w, &e.status);
			ended_fini(&e);
		}
	}
	g->size = MAX(g->size, g->n);
	if (g->ended == g->n)
		g->running = false;
	jw_end(w);
	jw_str(w, "group_id", work->id);
	jw_str(w, "status", g->running ? "running" : "ended");
	jw_str(w, "mode", g->chain ? "chain" : "parallel");
	jw_int(w, "size", g->size);
	jw_int(w, "ended", g->ended);
	jw_int(w, "succeeded", g->succeeded);
	verb_cost(w, "cost_cents", g->cost_microusd);
	verb_cost(w, "max_cost_cents", g->limit_microusd);
	if (g->time_ms > 0)
		jw_fixed(w, "timeout", g->time_ms, 3);
	else
		jw_null(w, "timeout");
	jw_int(w, "tokens_used", g->tokens);
	return 0;
}

static void verbs_runs_group_fini(struct verb_work *w)
{
	buf_fini(&((struct group_own *)w->own)->live);
}

static void verb_group(struct verb_call *v)
{
	const struct group *g = strmap_get(&v->core->sup.groups, v->id);
	struct group_own own = {.in_memory = g != NULL, .limit_microusd = -1};

	if (!verb_args(v, NULL))
		return;
	buf_init(&own.live, (size_t)1 << 30);
	own.running = g != NULL;
	own.chain = g != NULL && g->chain;
	own.size = g != NULL ? (unsigned)g->size : 0;
	own.time_ms = g != NULL ? g->time_ms : 0;
	if (g != NULL && g->money.limit != BUDGET_NO_LIMIT)
		own.limit_microusd = g->money.limit;
	for (unsigned i = 0; g != NULL && i < g->nmembers; i++, own.n++) {
		struct run *r = supervisor_find(&v->core->sup, g->members[i].id);
		struct op_status s;
		struct jw w;

		snprintf(own.ids[i], sizeof(own.ids[i]), "%s", g->members[i].id);
		own.at[i] = own.live.len;
		if (r == NULL)
			continue;
		jw_init(&w, &own.live);
		supervisor_status(r, &s);
		verbs_runs_group_add(&own, &w, &s);
		own.len[i] = own.live.len - own.at[i];
	}
	verb_work(v,
		  &(struct verb_work){
			  .work = group_write, .fini = verbs_runs_group_fini, .own = &own},
		  sizeof(own), true);
}

/* ---- stop: one, some, all */

static void verb_cancel(struct verb_call *v)
{
	if (verb_args(v, NULL))
		ops_cancel(v->core, v->id, v->caller->user, v->caller->channel, looked_at,
			   v->reply);
}

/* A cancel of many: the answer is written as runs end, and sent behind the last one. */
struct cancelling {
	struct core *core;
	const struct verb *verb;
	const struct caller *caller; /* valid while runs are being told to stop */
	char by[64], channel[16];
	struct verb_answer answer;
	size_t pending; /* runs told to stop, and 1 while they are being told */
	int rv;         /* the first error; 0: none */
};

struct cancelling_one {
	struct run_wait wait;
	struct cancelling *all;
	bool model_call; /* a call to the model was in flight, and is dropped */
	struct buf tools;
};

static void cancelling_release(struct cancelling *all)
{
	struct ava_error err = {0};

	if (--all->pending > 0)
		return;
	if (all->rv != 0)
		err_set(&err, all->rv, "%s", all->rv == AVA_ENOMEM ? "out of memory" : OPS_STOPS);
	if (all->rv == 0)
		verb_send(&all->answer, 200);
	else
		verb_drop(&all->answer, &err);
	free(all);
}

static void write_cancelled(struct jw *w, const struct op_status *s, bool had_ended,
			    bool model_call, const char *tools, unsigned left)
{
	jw_object(w, NULL);
	verb_write_status(w, "run", s);
	jw_bool(w, "had_ended", had_ended);
	jw_object(w, "stopped");
	jw_bool(w, "model_call", model_call);
	jw_raw(w, "tools", tools, strlen(tools));
	jw_end(w);
	jw_int(w, "left", left);
	jw_end(w);
}

static void cancelling_ended(struct run_wait *wait, struct run *r)
{
	struct cancelling_one *one = CONTAINER_OF(wait, struct cancelling_one, wait);
	struct cancelling *all = one->all;
	struct op_status s;

	if (r->end.done) {
		supervisor_status(r, &s);
		write_cancelled(&all->answer.w, &s, false, one->model_call,
				buf_check(&one->tools) == 0 ? one->tools.data : "[]", r->busy);
	} else if (all->rv == 0) {
		all->rv = AVA_ECANCELED;
	}
	buf_fini(&one->tools);
	free(one);
	cancelling_release(all);
}

/* An id that is not stopped: no such run, or one that does nothing more. */
static void write_unknown(struct jw *w, const char *id, const struct ava_error *err)
{
	jw_object(w, NULL);
	jw_str(w, "unknown", id);
	jw_object(w, "error");
	jw_str(w, "code", err_word(err->code));
	jw_str(w, "message", err->text);
	jw_end(w);
	jw_end(w);
}

/* Stops a run; its end may be reported within the call. */
static void cancelling_begin(struct cancelling *all, struct run *r)
{
	struct cancelling_one *one = calloc(1, sizeof(*one));
	struct ava_error err = {0};
	struct jw w;

	if (r->end.abandoned) { /* no end will be reported */
		free(one);
		err_set(&err, AVA_ENOMEM, "run %s " OPS_ABANDONED, r->id.text);
		write_unknown(&all->answer.w, r->id.text, &err);
		return;
	}
	if (!one) {
		all->rv = AVA_ENOMEM;
		return;
	}
	buf_init(&one->tools, 64u << 10);
	jw_init(&w, &one->tools);
	jw_array(&w, NULL);
	toolrun_names(r, &w);
	jw_end(&w);
	one->model_call = r->call.job != NULL;
	one->all = all;
	one->wait.ended = cancelling_ended;
	all->pending++;
	run_wait(r, &one->wait);
	supervisor_cancel(r, all->by, all->channel);
}

/* A run that is not at work here. */
struct cancelling_ended {
	struct verb_reply reply;
	struct cancelling *all;
	char id[ID_MAX + 1];
};

/* Another machine has stopped it. */
static void cancelled_there(struct verb_reply *reply, int status, const struct buf *json,
			    const struct ava_error *err)
{
	struct cancelling_ended *one = CONTAINER_OF(reply, struct cancelling_ended, reply);
	json_t *told = json ? json_parse(json->data, json->len, NULL) : NULL;
	struct buf run;

	buf_init(&run, 1u << 20);
	if (!json)
		write_unknown(&one->all->answer.w, one->id, err);
	else if (json_dump(&run, json_array_get(json_object_get(told, "runs"), 0)) == 0)
		jw_raw(&one->all->answer.w, NULL, run.data, run.len);
	else
		one->all->rv = AVA_ENOMEM;
	buf_fini(&run);
	json_decref(told);
	cancelling_release(one->all);
	free(one);
}

static void had_ended(int rv, const struct op_status *s, const struct ava_error *err, void *user);

/* A run whose machine is gone has come here, or has ended meanwhile. */
static void cancelling_came(int rv, const struct ava_error *err, void *user)
{
	struct cancelling_ended *one = user;
	struct run *r = rv == 0 ? supervisor_find(&one->all->core->sup, one->id) : NULL;

	if (rv == AVA_EEXIST || (rv == 0 && !r)) {
		ops_look(one->all->core, one->id, had_ended, one);
		return;
	}
	if (r)
		cancelling_begin(one->all, r);
	else
		write_unknown(&one->all->answer.w, one->id, err);
	cancelling_release(one->all);
	free(one);
}

static void had_ended(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	struct cancelling_ended *one = user;
	struct ava_error other;

	if (rv == 0 && others_may_end(s)) {
		others_fetch_to_end(one->all->core, one->id, cancelling_came, one);
		return;
	}
	if (rv == 0 && others_refuse(s, &other) == 0)
		write_cancelled(&one->all->answer.w, s, true, false, "[]", 0);
	else
		write_unknown(&one->all->answer.w, one->id, rv == 0 ? &other : err);
	cancelling_release(one->all);
	free(one);
}

static void cancelling_named(struct cancelling *all, const char *id)
{
	struct run *r = supervisor_find(&all->core->sup, id);
	struct cancelling_ended *one = r ? NULL : calloc(1, sizeof(*one));
	json_t *ids;

	if (r) {
		cancelling_begin(all, r);
	} else if (one) {
		one->all = all;
		snprintf(one->id, sizeof(one->id), "%s", id);
		all->pending++;
		one->reply.done = cancelled_there;
		ids = json_pack("{s:[s]}", "ids", id);
		if (!verb_sent(all->core, all->verb, all->caller, id, ids, &one->reply))
			ops_look(all->core, id, had_ended, one);
		json_decref(ids);
	} else {
		all->rv = AVA_ENOMEM;
	}
}

static bool is_told(const struct cancelling *all, const struct run *r)
{
	LIST_EACH (&r->end.waits, at, tmp) {
		struct run_wait *w = LIST_ENTRY(at, struct run_wait, node);

		if (w->ended == cancelling_ended &&
		    CONTAINER_OF(w, struct cancelling_one, wait)->all == all)
			return true;
	}
	return false;
}

/* Stops the live runs of a group by its id: the next run of a chain may have begun since the caller
 * listed them. */
static void cancelling_group(struct cancelling *all, const char *id)
{
	LIST_EACH (&all->core->sup.live, at, tmp) {
		struct run *r = LIST_ENTRY(at, struct run, node);

		if (r->group && strcmp(r->group->id, id) == 0 && !is_told(all, r))
			cancelling_begin(all, r);
	}
}

struct cancel_args {
	bool all;
	const json_t *ids;
};
static const struct arg cancel_args[] = {
	{"all", ARG_FLAG, offsetof(struct cancel_args, all)},
	{"ids", ARG_ANY, offsetof(struct cancel_args, ids)},
	{NULL},
};

static int verbs_runs_check_ids(const struct cancel_args *args, struct ava_error *err)
{
	const json_t *id;
	size_t n = json_array_size(args->ids), i;

	if (args->ids && (!json_is_array(args->ids) || n == 0 || n > IDS_MAX))
		return err_set(err, AVA_EINVAL, "ids must be a list of 1 to %d ids of runs",
			       IDS_MAX);
	json_array_foreach(args->ids, i, id)
	{
		if (!json_is_string(id) || json_string_length(id) > ID_MAX)
			return err_set(err, AVA_EINVAL, "ids must be a list of ids of runs");
	}
	if (args->all == (n > 0))
		return err_set(err, AVA_EINVAL, "say which runs: either ids or \"all\":true");
	return 0;
}

/* Tells all runs before waiting, so that they end at once. An ended run keeps its status. */
static void verb_cancel_many(struct verb_call *v)
{
	struct cancel_args args = {0};
	struct ava_error err = {0};
	struct cancelling *all;
	const json_t *id;
	size_t i;

	if (!verb_args(v, &args))
		return;
	all = verbs_runs_check_ids(&args, &err) == 0 ? malloc(sizeof(*all)) : NULL;
	if (!all) {
		verb_fail(v->reply, err.code ? err.code : AVA_ENOMEM, &err);
		return;
	}
	*all = (struct cancelling){
		.core = v->core, .verb = v->verb, .caller = v->caller, .pending = 1};
	snprintf(all->by, sizeof(all->by), "%s", v->caller->user ? v->caller->user : "ava");
	snprintf(all->channel, sizeof(all->channel), "%s",
		 v->caller->channel ? v->caller->channel : "");
	verb_begin(&all->answer, v->reply, 0, NULL);
	jw_object(&all->answer.w, NULL);
	jw_array(&all->answer.w, "runs");
	json_array_foreach(args.ids, i, id)
	{
		const char *text = json_string_value(id);

		if (text[0] == 'G')
			cancelling_group(all, text);
		else
			cancelling_named(all, text);
	}
	if (args.all)
		LIST_EACH (&v->core->sup.live, at, tmp)
			cancelling_begin(all, LIST_ENTRY(at, struct run, node));
	cancelling_release(all);
}

/* Pushes a run's trace to the collector; the answer does not wait for the push. */
static void verb_push(struct verb_call *v)
{
	struct ava_error err = {0};
	struct verb_answer a;

	if (!verb_args(v, NULL) || !verb_begin(&a, v->reply, ops_push(v->core, v->id, &err), &err))
		return;
	jw_object(&a.w, NULL);
	jw_str(&a.w, "subagent_id", v->id);
	jw_str(&a.w, "outcome", "queued");
	verb_send(&a, 202);
}

/* ---- replay of a run from its record, on a thread of the pool */

static void write_difference(struct jw *w, const struct replay_diff *d)
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

/* Pool thread. A difference between record and replay is no failure but part of the report. */
static int replay_work(struct verb_work *work, struct ava_error *err)
{
	struct replay_report *report = calloc(1, sizeof(*report));
	struct jw *w = &work->answer.w;
	int rv = report ? replay_run(work->job.core->root_fd, work->id, NULL, *(bool *)work->own,
				     report, err)
			: err_set(err, AVA_ENOMEM, "out of memory");

	if (rv == 0) {
		jw_object(w, NULL);
		jw_str(w, "subagent_id", work->id);
		jw_bool(w, "identical", report->ndiffs == 0);
		jw_bool(w, "complete", report->complete);
		jw_str(w, "reason", report->reason);
		jw_int(w, "turns", report->turns);
		jw_int(w, "events", (int64_t)report->events);
		jw_int(w, "differences_found", report->ndiffs);
		jw_array(w, "differences");
		for (unsigned i = 0; i < MIN(report->ndiffs, (unsigned)REPLAY_DIFFS_MAX); i++)
			write_difference(w, &report->diffs[i]);
	}
	free(report);
	return rv;
}

static const struct arg replay_args[] = {{"lenient", ARG_FLAG}, {NULL}};

static void verb_replay(struct verb_call *v)
{
	struct ava_error err = {0};
	bool lenient = false;

	if (!verb_args(v, &lenient))
		return;
	if (id_is_run(v->id))
		verb_work(v, &(struct verb_work){.work = replay_work, .own = &lenient},
			  sizeof(lenient), false);
	else
		verb_fail(v->reply, err_set(&err, AVA_ENOENT, "there is no run %.40s", v->id),
			  &err);
}

const struct verb verbs_about_runs[] = {
	{"POST", "/api/v1/runs", verb_spawn, run_args, true, .where = VERB_NEW},
	{"POST", "/api/v1/orders", verb_spawn, order_args, true},
	{"POST", "/api/v1/runs/cancel", verb_cancel_many, cancel_args, false,
	 .where = VERB_AT_LIVE},
	{"GET", "/api/v1/runs/{id}", verb_run, NULL, false},
	{"POST", "/api/v1/runs/{id}/cancel", verb_cancel, NULL, false, .where = VERB_AT_LIVE},
	{"POST", "/api/v1/runs/{id}/push", verb_push, NULL, false, .where = VERB_AT_RUN},
	{"POST", "/api/v1/runs/{id}/resume", verb_resume, run_args, true, .where = VERB_AT_RUN},
	{"POST", "/api/v1/runs/{id}/replay", verb_replay, replay_args, false, .where = VERB_AT_RUN},
	{"POST", "/api/v1/groups", verb_propose_group, group_args, true, .where = VERB_NEW},
	{"GET", "/api/v1/groups/{id}", verb_group, NULL, false},
	{NULL},
};

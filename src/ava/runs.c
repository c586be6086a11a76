/* The verbs about runs: spawn, list, status, result, cancel, groups.
 *
 * Live runs answer from memory, ended ones from their files. A spawn is told
 * to whoever asked for it, also twice with one request id, when it is on
 * disk. What can fail: memory, the disk, ids that do not exist; a stop of the
 * runtime ends the waits. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/ended.h"
#include "ava/resume.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/util.h"
#include "subagent/group.h"

#define STOPS          "the runtime stops before the run has ended"
#define ENDING_WAIT_MS 10000 /* at most: the disk may be slow, or full */

/* ---- spawn without a proposal */

struct spawn_wait {
	struct list more; /* spawn_wait: the same request again, before it is on disk */
	struct core *core;
	struct run *run;
	bool repeated;
	op_status_fn done;
	void *user;
};

static void tell_spawned(struct spawn_wait *w, int rv, const struct op_status *s,
			 const struct ava_error *err)
{
	struct op_status own;

	if (rv == 0) {
		own = *s;
		own.repeated = w->repeated;
		w->done(0, &own, NULL, w->user);
	} else {
		w->done(rv, NULL, err, w->user);
	}
	free(w);
}

static void spawned(int rv, void *user)
{
	struct spawn_wait *w = user;
	struct request *q = core_request(w->core, w->run->spec->request_id);
	struct ava_error err = {0};
	struct op_status s;
	struct list more;

	list_init(&more);
	list_splice(&more, &w->more);
	if (rv == 0) {
		if (q)
			q->writing = NULL;
		supervisor_start(w->run);
		supervisor_status(w->run, &s);
	} else {
		core_forget(w->core, w->run->spec->request_id);
		supervisor_discard(w->run);
		err_set(&err, rv,
			rv == AVA_EUNKNOWN
				? "the disk failed while the spawn was saved (%s): it may or may "
				  "not "
				  "hold; nothing was started now, look at `ava ps` and ask again"
				: "the spawn could not be saved (%s): ask again",
			ava_strerror(rv));
	}
	tell_spawned(w, rv, &s, &err);
	while (!list_empty(&more)) {
		w = LIST_FIRST(&more, struct spawn_wait, more);
		list_del(&w->more);
		tell_spawned(w, rv, &s, &err);
	}
}

/* 0: `w` is taken and will be told. `spec` is *taken*. */
static int spawn(struct core *c, struct run_spec *spec, struct spawn_wait *w, struct ava_error *err)
{
	struct request *q;
	struct draft *d = NULL;
	int rv;

	d = draft_new(&c->book);
	rv = d ? supervisor_spawn(&c->sup, spec, "", d, &w->run, err)
	       : err_set(err, AVA_ENOMEM, "out of memory");
	if (rv != 0) {
		draft_free(d);
		spec_free(spec);
		return rv;
	}
	rv = core_remember(c, spec->request_id, clock_wall_ms(), "", w->run->id.text,
			   w->run->trace.text);
	if (rv != 0) {
		draft_free(d);
		supervisor_discard(w->run);
		return err_set(err, rv, "out of memory");
	}
	q = core_request(c, spec->request_id);
	if (q)
		q->writing = w;
	rv = draft_commit(d, JOURNAL_NOW, spawned, w, err);
	if (rv != 0) {
		core_forget(c, spec->request_id);
		supervisor_discard(w->run);
	}
	return rv;
}

/* The same request as before. 0: answered, or `w` waits for the answer. */
static int spawn_again(struct core *c, struct request *q, struct spawn_wait *w,
		       struct ava_error *err)
{
	struct run *r = supervisor_find(&c->sup, q->run);
	struct op_status s = {.id = q->run, .trace_id = q->trace};

	w->repeated = true;
	if (q->writing) {
		list_add(&q->writing->more, &w->more);
		return 0;
	}
	if (!q->run[0])
		return err_set(err, AVA_EEXIST,
			       "request %.60s was answered with proposal %s: confirm that one",
			       q->id, q->proposal);
	if (r && !r->durable)
		return err_set(err, AVA_EBUSY, "proposal %s is being answered right now",
			       q->proposal);
	if (r)
		supervisor_status(r, &s);
	tell_spawned(w, 0, &s, NULL);
	return 0;
}

static void spawn_resumed(int rv, struct run_spec *spec, const struct op_spawn *s,
			  const struct ava_error *why, void *user)
{
	struct spawn_wait *w = user;
	struct ava_error err = {0};

	if (rv == 0 && !spec) {
		ops_spawn(w->core, s, w->done, w->user);
		free(w);
		return;
	}
	if (rv != 0)
		err = *why;
	else
		rv = spawn(w->core, spec, w, &err);
	if (rv != 0)
		tell_spawned(w, rv, NULL, &err);
}

/* 0: `w` is taken and will be told. */
static int spawn_new(struct core *c, const struct op_spawn *s, struct spawn_wait *w,
		     struct ava_error *err)
{
	struct run_spec *spec;
	int rv = core_ready(c, err);

	if (rv == 0 && resume_wanted(s)) {
		resume_begin(c, s, spawn_resumed, w);
		return 0;
	}
	if (rv == 0)
		rv = spec_build(&spec, s, &c->settings, c->model, c->redact, err);
	return rv == 0 ? spawn(c, spec, w, err) : rv;
}

void ops_spawn(struct core *c, const struct op_spawn *s, op_status_fn done, void *user)
{
	struct request *known = core_request(c, s->request_id);
	struct spawn_wait *w = calloc(1, sizeof(*w));
	struct ava_error err = {0};
	int rv;

	if (!w) {
		err_set(&err, AVA_ENOMEM, "out of memory");
		done(AVA_ENOMEM, NULL, &err, user);
		return;
	}
	list_init(&w->more);
	w->core = c;
	w->done = done;
	w->user = user;
	rv = known ? spawn_again(c, known, w, &err) : spawn_new(c, s, w, &err);
	if (rv != 0)
		tell_spawned(w, rv, NULL, &err);
}

/* ---- status and listing */

struct listing {
	struct core *core;
	size_t n, limit;
	void (*each)(const struct op_status *s, void *user);
	void *user;
};

/* What the catalog knows of a run: all that a listing shows. */
static void from_row(const struct catalog_row *row, struct op_status *s)
{
	*s = (struct op_status){
		.id = row->id,
		.trace_id = row->trace_id,
		.role = row->role,
		.task = "",
		.model = row->model,
		.stop_reason = "",
		.session_id = row->session_id,
		.user_id = row->user_id,
		.origin = row->origin,
		.cwd = "",
		.activity = "",
		.last_tool = "",
		.status = row->kind == CATALOG_END ? row->status : AVA_ERROR,
		.started_ms = row->started_ms,
		.ended_ms = MAX(row->ended_ms, 0),
		.elapsed_ms = row->totals.duration_ms,
		.tokens = row->totals.input_tokens + row->totals.output_tokens,
		.cost_microusd = row->totals.uncosted_calls && row->totals.cost_microusd == 0
					 ? -1
					 : row->totals.cost_microusd,
	};
	if (!row->shown.task)
		return;
	s->task = row->shown.task;
	s->cwd = row->shown.cwd;
	s->stop_reason = row->shown.stop_reason;
	s->iteration = (int)MIN(row->shown.iterations, INT_MAX);
	s->limit_time_ms = row->shown.limit_ms;
	s->limit_cost_microusd = row->shown.limit_microusd;
	s->limit_tokens = row->shown.limit_tokens;
	s->limit_iterations = (int)MIN(row->shown.limit_iterations, INT_MAX);
}

static bool list_row(const struct catalog_row *row, void *user)
{
	struct listing *l = user;
	struct op_status s;

	/* A run whose last commit a full disk holds back in part is still live. */
	if (row->kind != CATALOG_END || supervisor_find(&l->core->sup, row->id))
		return true;
	from_row(row, &s);
	l->each(&s, l->user);
	return ++l->n < l->limit;
}

struct lookup {
	const char *run;
	void (*each)(const struct op_status *s, void *user);
	void *user;
	bool found;
};

static bool look_at_row(const struct catalog_row *row, void *user)
{
	struct lookup *l = user;
	struct op_status s;

	if (strcmp(row->id, l->run) != 0)
		return true;
	from_row(row, &s);
	l->each(&s, l->user);
	l->found = true;
	return false;
}

int ops_status(struct core *c, const char *run, void (*each)(const struct op_status *s, void *user),
	       void *user, struct ava_error *err)
{
	struct run *r = supervisor_find(&c->sup, run);
	struct op_status s;
	struct ended e;
	int rv;

	if (r) {
		supervisor_status(r, &s);
		each(&s, user);
		return 0;
	}
	rv = ended_read(c, run, &e, err);
	if (rv == 0) {
		each(&e.status, user);
		ended_fini(&e);
	} else if (rv == AVA_ENOENT && nameset_has(&c->sup.names, run)) {
		struct lookup l = {.run = run, .each = each, .user = user};

		history_each(c, false, look_at_row, &l);
		rv = l.found ? 0 : rv;
	}
	return rv;
}

int ops_list(struct core *c, bool all, size_t limit,
	     void (*each)(const struct op_status *s, void *user), void *user)
{
	size_t n = 0;

	for (struct list *at = c->sup.live.prev; at != &c->sup.live && n < limit; at = at->prev) {
		struct op_status s;

		supervisor_status(LIST_ENTRY(at, struct run, node), &s);
		each(&s, user);
		n++;
	}
	if (all && n < limit) {
		struct listing l = {.core = c, .n = n, .limit = limit, .each = each, .user = user};

		history_each(c, true, list_row, &l);
		n = l.n;
	}
	return (int)n;
}

/* ---- results */

struct op_wait {
	struct run_wait wait;
	struct core *core;
	struct os_timer *timer;
	struct run_id id;
	op_result_fn done;
	void *user;
};

void ops_result_cancel(struct op_wait *w)
{
	list_del(&w->wait.node);
	os_timer_free(w->timer);
	free(w);
}

static void give_result(struct core *c, const char *run, op_result_fn done, void *user)
{
	struct ava_error err = {0};
	char *json = NULL;
	size_t len = 0;
	int rv = ended_result(c, run, &json, &len, &err);

	if (rv == 0)
		done(0, json, len, NULL, user);
	else
		done(rv, NULL, 0, &err, user);
	free(json);
}

static void result_ended(struct run_wait *wait, struct run *r)
{
	struct op_wait *w = CONTAINER_OF(wait, struct op_wait, wait);
	op_result_fn done = w->done;
	void *user = w->user;
	struct core *c = w->core;
	struct ava_error err = {0};

	ops_result_cancel(w);
	if (r->end.done) {
		give_result(c, r->id.text, done, user);
	} else {
		err_set(&err, AVA_ECANCELED, STOPS);
		done(AVA_ECANCELED, NULL, 0, &err, user);
	}
}

static void result_late(void *user)
{
	struct op_wait *w = user;
	struct ava_error err = {0};
	op_result_fn done = w->done;
	void *done_user = w->user;

	err_set(&err, AVA_ETIMEOUT, "%s still runs", w->id.text);
	ops_result_cancel(w);
	done(AVA_ETIMEOUT, NULL, 0, &err, done_user);
}

struct op_wait *ops_result(struct core *c, const char *run, int64_t wait_ms, op_result_fn done,
			   void *user)
{
	struct run *r = supervisor_find(&c->sup, run);
	struct ava_error err = {0};
	struct op_wait *w;

	if (!r) {
		give_result(c, run, done, user);
		return NULL;
	}
	w = calloc(1, sizeof(*w));
	if (w)
		w->timer = os_timer_new(c->loop, result_late, w);
	if (!w || !w->timer) {
		free(w);
		err_set(&err, AVA_ENOMEM, "out of memory");
		done(AVA_ENOMEM, NULL, 0, &err, user);
		return NULL;
	}
	w->core = c;
	w->id = r->id;
	w->done = done;
	w->user = user;
	w->wait.ended = result_ended;
	list_init(&w->wait.node);
	/* Whoever was shown its end finds the result, though the run still stops. */
	if (r->end.begun)
		wait_ms = MAX(wait_ms, ENDING_WAIT_MS);
	if (wait_ms <= 0) {
		result_late(w);
		return NULL;
	}
	run_wait(r, &w->wait);
	os_timer_set(w->timer, wait_ms);
	return w;
}

/* ---- cancel: the answer comes when the end is on disk */

struct cancel_wait {
	struct run_wait wait;
	op_status_fn done;
	void *user;
};

static void cancel_ended(struct run_wait *wait, struct run *r)
{
	struct cancel_wait *w = CONTAINER_OF(wait, struct cancel_wait, wait);
	struct ava_error err = {0};
	struct op_status s;

	if (r->end.done) {
		supervisor_status(r, &s);
		w->done(0, &s, NULL, w->user);
	} else {
		err_set(&err, AVA_ECANCELED, STOPS);
		w->done(AVA_ECANCELED, NULL, &err, w->user);
	}
	free(w);
}

struct answer_once {
	op_status_fn done;
	void *user;
};

static void pass_status(const struct op_status *s, void *user)
{
	struct answer_once *a = user;

	a->done(0, s, NULL, a->user);
}

void ops_cancel(struct core *c, const char *run, const char *by, op_status_fn done, void *user)
{
	struct run *r = supervisor_find(&c->sup, run);
	struct answer_once a = {done, user};
	struct ava_error err = {0};
	struct cancel_wait *w;
	int rv;

	if (!r) {
		rv = ops_status(c, run, pass_status, &a, &err);
		if (rv != 0)
			done(rv, NULL, &err, user);
		return;
	}
	if (r->end.abandoned) {
		err_set(&err, AVA_ENOMEM, "run %s " OPS_ABANDONED, run);
		done(AVA_ENOMEM, NULL, &err, user);
		return;
	}
	w = calloc(1, sizeof(*w));
	if (!w) {
		err_set(&err, AVA_ENOMEM, "out of memory");
		done(AVA_ENOMEM, NULL, &err, user);
		return;
	}
	w->wait.ended = cancel_ended;
	w->done = done;
	w->user = user;
	run_wait(r, &w->wait);
	supervisor_cancel(r);
}

/* ---- groups. One at work is in memory; of an older one the catalog names the runs, and
 * their files tell the rest. Nothing is kept for it. */

struct group_runs {
	const char *group;
	char ids[SPEC_GROUP_MAX][24]; /* newest first */
	unsigned n;
};

static bool group_row(const struct catalog_row *row, void *user)
{
	struct group_runs *r = user;

	if (row->kind != CATALOG_SPAWN || strcmp(row->group_id, r->group) != 0)
		return true;
	snprintf(r->ids[r->n++], sizeof(r->ids[0]), "%s", row->id);
	return r->n < SPEC_GROUP_MAX;
}

struct summing {
	struct op_group_status *out;
	void (*each)(const struct op_status *s, void *user);
	void *user;
};

static void group_add(const struct op_status *s, void *user)
{
	struct summing *sum = user;
	struct op_group_status *out = sum->out;
	bool ended = s->status >= AVA_SUCCESS;

	out->cost_microusd += MAX(s->cost_microusd, 0);
	out->tokens += s->tokens;
	out->ended += ended;
	out->succeeded += s->status == AVA_SUCCESS;
	if (sum->each)
		sum->each(s, sum->user);
}

static void group_in_memory(const struct group *g, struct group_runs *r,
			    struct op_group_status *out)
{
	for (unsigned i = g->nmembers; i > 0; i--)
		snprintf(r->ids[r->n++], sizeof(r->ids[0]), "%s", g->members[i - 1].id);
	out->running = true;
	out->chain = g->chain;
	out->size = (unsigned)g->size;
	out->limit_microusd = g->money.limit == BUDGET_NO_LIMIT ? -1 : g->money.limit;
	out->time_ms = g->time_ms;
}

int ops_group(struct core *c, const char *id, struct op_group_status *out,
	      void (*each)(const struct op_status *s, void *user), void *user,
	      struct ava_error *err)
{
	struct group *g = strmap_get(&c->sup.groups, id);
	struct summing sum = {out, each, user};
	struct group_runs r = {.group = id};

	*out = (struct op_group_status){.limit_microusd = -1};
	if (g)
		group_in_memory(g, &r, out);
	else
		history_each(c, false, group_row, &r);
	if (r.n == 0)
		return err_set(err, AVA_ENOENT, "there is no group %.40s", id);
	out->size = MAX(out->size, r.n);
	for (unsigned i = r.n; i > 0; i--)
		(void)ops_status(c, r.ids[i - 1], group_add, &sum, NULL);
	if (out->ended == r.n && !(g && out->chain && r.n < out->size))
		out->running = false;
	return 0;
}

/* The verbs that stop runs: one, some, all.
 *
 * Happy path: what the run was doing is noted, it is told to stop, and the
 * answer comes when its end is on disk. Of several all are told first, so that
 * they end at once. A run that had ended keeps its status. What can fail:
 * memory, ids that do not exist; a stop of the runtime before the end. */
#include "ava/cancel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/state.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "subagent/world.h"

#define STOPS     "the runtime stops before the run has ended"
#define TOOLS_MAX (64u << 10)

/* ---- one */

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

	if (r->done) {
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
	if (r->abandoned) {
		err_set(&err, AVA_ENOMEM,
			"run %s ran out of memory: it does nothing more and ends at the next start",
			run);
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

/* ---- several */

struct group {
	struct core *core;
	size_t pending; /* runs told to stop, and 1 while they are being told */
	int rv;         /* the first thing that went wrong */
	void (*each)(const struct op_cancelled *one, void *user);
	void (*done)(int rv, const struct ava_error *err, void *user);
	void *user;
};

struct group_wait {
	struct run_wait wait;
	struct group *group;
	bool model_call;
	struct buf tools;
};

static void group_release(struct group *g)
{
	struct ava_error err = {0};

	if (--g->pending > 0)
		return;
	if (g->rv != 0)
		err_set(&err, g->rv, g->rv == AVA_ENOMEM ? "out of memory" : STOPS);
	g->done(g->rv, g->rv != 0 ? &err : NULL, g->user);
	free(g);
}

static void group_ended(struct run_wait *wait, struct run *r)
{
	struct group_wait *w = CONTAINER_OF(wait, struct group_wait, wait);
	struct group *g = w->group;
	struct op_cancelled one = {.model_call = w->model_call, .left = r->busy};
	struct op_status s;

	if (r->done) {
		supervisor_status(r, &s);
		one.status = &s;
		one.tools_json = buf_check(&w->tools) == 0 ? w->tools.data : "[]";
		g->each(&one, g->user);
	} else if (g->rv == 0) {
		g->rv = AVA_ECANCELED;
	}
	buf_fini(&w->tools);
	free(w);
	group_release(g);
}

/* Its end may be told within the call. */
static void group_cancel(struct group *g, struct run *r)
{
	struct group_wait *w = calloc(1, sizeof(*w));
	struct jw jw;

	if (!w) {
		g->rv = AVA_ENOMEM;
		return;
	}
	buf_init(&w->tools, TOOLS_MAX);
	jw_init(&jw, &w->tools);
	jw_array(&jw, NULL);
	toolrun_names(r, &jw);
	jw_end(&jw);
	w->model_call = r->job != NULL;
	w->group = g;
	w->wait.ended = group_ended;
	g->pending++;
	run_wait(r, &w->wait);
	supervisor_cancel(r);
}

static void had_ended(const struct op_status *s, void *user)
{
	struct group *g = user;
	struct op_cancelled one = {.status = s, .had_ended = true, .tools_json = "[]"};

	g->each(&one, g->user);
}

static void cancel_named(struct group *g, const char *id)
{
	struct run *r = supervisor_find(&g->core->sup, id);
	struct ava_error err = {0};
	struct op_cancelled one = {.unknown = id, .error = &err, .tools_json = "[]"};

	if (r)
		group_cancel(g, r);
	else if (ops_status(g->core, id, had_ended, g, &err) != 0)
		g->each(&one, g->user);
}

void ops_cancel_many(struct core *c, const char *const *ids, size_t n,
		     void (*each)(const struct op_cancelled *one, void *user),
		     void (*done)(int rv, const struct ava_error *err, void *user), void *user)
{
	struct group *g = malloc(sizeof(*g));
	struct ava_error err = {0};

	if (!g) {
		err_set(&err, AVA_ENOMEM, "out of memory");
		done(AVA_ENOMEM, &err, user);
		return;
	}
	*g = (struct group){.core = c, .pending = 1, .each = each, .done = done, .user = user};
	for (size_t i = 0; ids && i < n; i++)
		cancel_named(g, ids[i]);
	if (!ids)
		LIST_EACH (&c->sup.live, at, tmp)
			group_cancel(g, LIST_ENTRY(at, struct run, node));
	group_release(g);
}

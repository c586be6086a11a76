/* Runs that another machine of the cluster has. The reader brings a copy of the record up to date;
 * what reads the files of a run here then reads those of the copy. POST /runs/{id}/fetch does the
 * former for commands that read files themselves. */
#include "ava/others.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/state.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "event/event.h"
#include "journal/read_root.h"

bool others_may(struct core *c, const char *run)
{
	if (!c->service.reader || !id_is_run(run) || supervisor_find(&c->sup, run))
		return false;
	return reader_find(c->service.reader, run) || !read_run_ended(c->root_fd, run);
}

void others_status(const struct reader_run *run, struct op_status *s)
{
	s->machine = run->machine;
	if (run->ended)
		return;
	s->status = run->held ? AVA_PARKED : run->silent ? AVA_QUEUED : AVA_RUNNING;
	s->left = run->held || run->silent;
	s->place = run->place;
	s->activity = s->left ? run->waits : "";
	s->iteration = (int)MIN(run->turn, INT_MAX);
	s->tokens = run->tokens;
	s->cost_microusd = run->micro;
	s->ended_ms = 0;
	s->elapsed_ms = MAX(clock_wall_ms() - s->started_ms, 0);
}

int others_refuse(const struct op_status *s, struct ava_error *err)
{
	return s->machine && s->status < AVA_SUCCESS
		       ? err_set(err, AVA_EUNSUPPORTED, OTHERS_ONLY, s->id, s->machine)
		       : 0;
}

/* ---- work about the files of a run */

/* A question whose copy is brought up to date. */
struct others_asked {
	struct core *core;
	struct verb_reply *reply;
	json_t *args;
	char id[64];
	struct verb_work like;
	size_t own_size;
	char own[];
};

int others_root(const struct verb_work *w, struct buf *path)
{
	struct core *c = w->job.core;

	if (path)
		buf_addf(path, "%s%s", c->root, w->foreign ? "/" READER_ROOT : "");
	return w->foreign ? reader_root(c->service.reader) : c->root_fd;
}

static void others_asked_fetched(int rv, const struct reader_run *run, const struct ava_error *why,
				 void *user)
{
	struct others_asked *a = user;
	struct verb_call v = {.core = a->core, .id = a->id, .args = a->args, .reply = a->reply};
	struct ava_error err = why ? *why : (struct ava_error){0};

	a->like.foreign = rv == 0 && run;
	a->like.own = a->own_size > 0 ? a->own : NULL;
	if (rv == AVA_ENOENT)
		rv = core_known(a->core, a->id, &err);
	if (rv == 0) {
		verb_work(&v, &a->like, a->own_size, false);
	} else {
		if (a->like.fini)
			a->like.fini(&a->like);
		if (a->like.answer.reply)
			buf_fini(&a->like.answer.b);
		verb_fail(a->reply, rv, &err);
	}
	json_decref(a->args);
	free(a);
}

void others_work(struct verb_call *v, const char *run, const struct verb_work *like,
		 size_t own_size)
{
	struct others_asked *a;

	if (!others_may(v->core, run)) {
		verb_work(v, like, own_size, false);
		return;
	}
	a = malloc(sizeof(*a) + own_size);
	if (!a) {
		if (like->fini)
			like->fini((struct verb_work *)like);
		if (like->answer.reply)
			buf_fini((struct buf *)&like->answer.b);
		verb_fail(v->reply, AVA_ENOMEM, NULL);
		return;
	}
	*a = (struct others_asked){.core = v->core, .reply = v->reply, .like = *like};
	a->args = json_incref((json_t *)v->args);
	a->own_size = own_size;
	if (own_size > 0)
		memcpy(a->own, like->own, own_size);
	snprintf(a->id, sizeof(a->id), "%s", run);
	reader_fetch(v->core->service.reader, run, others_asked_fetched, a);
}

/* ---- POST /runs/{id}/fetch */

struct others_fetch {
	struct core *core;
	struct verb_reply *reply;
	char run[24];
};

static void others_fetched(int rv, const struct reader_run *run, const struct ava_error *err,
			   void *user)
{
	struct others_fetch *f = user;
	char path[LOGBOOK_PATH];
	struct verb_answer a;
	struct buf root;

	if (!verb_begin(&a, f->reply, rv, err)) {
		free(f);
		return;
	}
	logbook_run_path(f->run, path);
	buf_init(&root, 8192);
	buf_addf(&root, "%s%s", f->core->root, run ? "/" READER_ROOT : "");
	jw_object(&a.w, NULL);
	jw_str(&a.w, "subagent_id", f->run);
	if (run)
		jw_str(&a.w, "machine", run->machine);
	jw_str(&a.w, "root", root.data);
	jw_str(&a.w, "log", path);
	jw_bool(&a.w, "ended", run ? run->ended : !supervisor_find(&f->core->sup, f->run));
	verb_send(&a, 200);
	buf_fini(&root);
	free(f);
}

struct fetch_args {
	bool anew;
};
static const struct arg fetch_args[] = {
	{"anew", ARG_FLAG, offsetof(struct fetch_args, anew)},
	{NULL},
};

static void verb_fetch(struct verb_call *v)
{
	struct fetch_args args = {0};
	struct others_fetch *f;
	struct ava_error err = {0};

	if (!verb_args(v, &args))
		return;
	if (!others_may(v->core, v->id) && core_known(v->core, v->id, &err) != 0) {
		verb_fail(v->reply, err.code, &err);
		return;
	}
	f = calloc(1, sizeof(*f));
	if (!f) {
		verb_fail(v->reply, AVA_ENOMEM, NULL);
		return;
	}
	f->core = v->core;
	f->reply = v->reply;
	snprintf(f->run, sizeof(f->run), "%s", v->id);
	if (args.anew && others_may(v->core, v->id))
		reader_anew(v->core->service.reader, v->id);
	if (others_may(v->core, v->id))
		reader_fetch(v->core->service.reader, f->run, others_fetched, f);
	else
		others_fetched(0, NULL, NULL, f);
}

/* ---- runs that are held, or whose machine is gone */

void others_held(const struct catalog_row *row, const char *sentence, void *core)
{
	const struct core_telling told = {EVENT_Error, row->session_id, row->user_id, JOURNAL_NOW};
	struct buf b;
	struct jw w;

	buf_init(&b, 4096);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "class", "held");
	jw_str(&w, "message", sentence);
	jw_end(&w);
	if (core_tell(core, &told, &b, NULL) != 0)
		core_log(core, "%s", sentence);
}

bool others_may_end(const struct op_status *s)
{
	return s->machine && s->left && s->status < AVA_SUCCESS;
}

void others_fetch_to_end(struct core *c, const char *run, cluster_move_fn done, void *user)
{
	struct ava_error err = {0};
	int rv = cluster_move(c->service.cluster, run, (struct cluster_move){.ends = true}, done,
			      user, &err);

	if (rv != 0)
		done(rv, &err, user);
}

/* ---- POST /runs/{id}/move */

struct others_move {
	struct core *core;
	struct verb_reply *reply;
	char run[24];
};

static void others_move_looked(int rv, const struct op_status *s, const struct ava_error *err,
			       void *user)
{
	struct verb_answer a;

	if (!verb_begin(&a, user, rv, err))
		return;
	jw_object(&a.w, NULL);
	jw_str(&a.w, "subagent_id", s->id);
	verb_write_status(&a.w, "run", s);
	verb_send(&a, 200);
}

static void others_moved(int rv, const struct ava_error *err, void *user)
{
	struct others_move *m = user;
	struct others_move call = *m;
	struct verb_answer a;

	free(m);
	call.reply->give_up = NULL;
	if (rv == 0) {
		ops_look(call.core, call.run, others_move_looked, call.reply);
	} else if (rv != AVA_ETIMEOUT) {
		verb_fail(call.reply, rv, err);
	} else if (verb_begin(&a, call.reply, 0, NULL)) {
		jw_object(&a.w, NULL);
		jw_str(&a.w, "subagent_id", call.run);
		jw_str(&a.w, "waits", err->text);
		verb_send(&a, 202);
	}
}

static void others_move_give_up(struct verb_reply *r)
{
	struct others_move *m = r->waits;

	cluster_move_drop(m->core->service.cluster, m);
	free(m);
}

static const struct arg move_args[] = {{"without_copy", ARG_FLAG}, {NULL}};

static void verb_move(struct verb_call *v)
{
	struct cluster *c = v->core->service.cluster;
	struct cluster_move how = {0};
	struct ava_error err = {0};
	struct others_move *m;
	int rv;

	if (!verb_args(v, &how.without_copy))
		return;
	m = calloc(1, sizeof(*m));
	if (!c)
		rv = err_set(&err, AVA_ENOENT, "this machine is in no cluster");
	else if (!m)
		rv = err_set(&err, AVA_ENOMEM, "out of memory");
	else {
		*m = (struct others_move){v->core, v->reply, ""};
		snprintf(m->run, sizeof(m->run), "%s", v->id);
		v->reply->waits = m;
		v->reply->give_up = others_move_give_up;
		rv = cluster_move(c, v->id, how, others_moved, m, &err);
	}
	if (rv == 0)
		return;
	v->reply->give_up = NULL;
	free(m);
	verb_fail(v->reply, rv, &err);
}

const struct verb verbs_about_others[] = {
	{"POST", "/api/v1/runs/{id}/move", verb_move, move_args, false},
	{"POST", "/api/v1/runs/{id}/fetch", verb_fetch, fetch_args, false},
	{NULL},
};

/* Runs that another machine of the cluster has. The reader brings a copy of the record up to date;
 * what reads the files of a run here then reads those of the copy. POST /runs/{id}/fetch does the
 * former for commands that read files themselves. */
#include "ava/others.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/state.h"
#include "ava/verbs.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "event/event.h"
#include "journal/read_root.h"

#define LOG_BYTES ((size_t)256 << 20)

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
	s->activity = run->held     ? "is held: it brought down three machines"
		      : run->silent ? "waits for its machine, which is silent"
				    : "";
	s->cost_microusd = -1; /* unless others_sum looks */
	s->ended_ms = 0;
	s->elapsed_ms = MAX(clock_wall_ms() - s->started_ms, 0);
}

int others_refuse(const struct op_status *s, struct ava_error *err)
{
	return s->machine && s->status < AVA_SUCCESS
		       ? err_set(err, AVA_EUNSUPPORTED, OTHERS_ONLY, s->id, s->machine)
		       : 0;
}

void others_sum(int root_fd, const char *run, struct op_status *s)
{
	char path[LOGBOOK_PATH], *data = NULL;
	const char *line;
	size_t len = 0, at = 0, n;
	struct event_view v;

	logbook_run_path(run, path);
	if (sys_read_file(root_fd, path, LOG_BYTES, &data, &len, NULL) != 0)
		return;
	s->tokens = s->cost_microusd = 0;
	while (jsonl_next(data, len, &at, &line, &n) == 1) {
		json_t *meta;

		if (event_view(line, n, &v) != 0 ||
		    (v.kind != EVENT_InferStart && v.kind != EVENT_InferEnd))
			continue;
		meta = json_parse(v.metadata.s, v.metadata.len, NULL);
		s->iteration = (int)MAX((int64_t)s->iteration, json_get_int(meta, "iteration", 0));
		if (v.kind == EVENT_InferEnd) {
			s->tokens += json_get_int(meta, "inputTokens", 0) +
				     json_get_int(meta, "outputTokens", 0);
			s->cost_microusd = sum_to_max(s->cost_microusd,
						      json_get_fixed(meta, "costCents", 4, 0));
		}
		json_decref(meta);
	}
	free(data);
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

const struct verb verbs_about_others[] = {
	{"POST", "/api/v1/runs/{id}/fetch", verb_fetch, fetch_args, false},
	{NULL},
};

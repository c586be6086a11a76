/* The verbs about runs: spawn, status, result, cancel, groups.
 *
 * Live runs answer from memory, ended ones from their files. A spawn is told
 * to whoever asked for it, also twice with one request id, when it is on
 * disk. What can fail: memory, the disk, ids that do not exist; a stop of the
 * runtime ends the waits. */
#include "ava/runs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "ava/job.h"
#include "ava/others.h"
#include "ava/proposal.h"
#include "ava/state.h"
#include "ava/verbs.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "cluster/cluster.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "journal/files.h"
#include "journal/view.h"
#include "subagent/rights.h"
#include "tool/mcp.h"

#define EDGE_BYTES  (64u << 10)
#define BLOCK_BYTES (64u << 10)
#define ROW_MAX     (1u << 20)

/* ---- runs that have ended. One run: only two lines of its log are parsed, SubagentSpawn, its
 * first, and SubagentComplete, its last; a run whose log lacks either is shown as far as it can be
 * read. All runs: the catalog is read backwards in blocks; lines are taken off the end, and the
 * beginning of a line that a block cuts is kept for the block before. A part that cannot be read,
 * or a line longer than a row can be, ends that part: the listing is short, and the start has told
 * why. */

/* Keeps the tool of a ToolCall line, unless it ends the run: only the program's own tools do, and a
 * thread of the pool may look at no others. */
static void note_tool(struct ended *out, const char *line, size_t len)
{
	struct event_view v;
	const struct tool *tool;
	const char *name;
	json_t *content;

	if (event_view(line, len, &v) != 0 || v.kind != EVENT_ToolCall)
		return;
	content = json_parse(v.content.s, v.content.len, NULL);
	name = json_get_str(content, "name");
	tool = name ? tool_own(name) : NULL;
	if (name && !(tool && (tool->flags & TOOL_ENDS))) {
		snprintf(out->last_tool, sizeof(out->last_tool), "%.*s",
			 (int)utf8_prefix(name, strlen(name), sizeof(out->last_tool) / 4), name);
		out->status.last_tool_ms = v.wall_ms;
	}
	json_decref(content);
}

/* Parses the first whole line at the beginning, or the last one before the end (and notes the last
 * tool on the way); *json NULL: no line can be read. 0, or AVA_ENOMEM. */
static int read_edge(int root_fd, const char *path, bool last, struct ended *out, json_t **json)
{
	char *edge = malloc(EDGE_BYTES);
	const char *line = NULL, *found = NULL;
	size_t len = 0, at = 0, n = 0, found_len = 0;
	struct ava_error err = {0};
	struct stat st;
	int fd = edge ? files_open(root_fd, path, O_RDONLY) : -1;

	if (fd >= 0 && sys->fstat(fd, &st) == 0) {
		len = (size_t)MIN(st.st_size, (off_t)EDGE_BYTES);
		if (sys_read_all(fd, edge, len, last ? st.st_size - (off_t)len : 0) != 0)
			len = 0;
	}
	if (fd >= 0)
		sys->close(fd);
	while (jsonl_next(edge, len, &at, &line, &n) == 1) {
		found = line;
		found_len = n;
		if (!last)
			break;
		note_tool(out, line, n);
	}
	*json = found ? json_parse(found, found_len, &err) : NULL;
	if (!edge)
		err.code = AVA_ENOMEM;
	free(edge);
	return err.code == AVA_ENOMEM ? AVA_ENOMEM : 0;
}

static int64_t event_time(const json_t *event)
{
	return MAX(json_time(json_object_get(event, "timestamp")), 0);
}

static enum ava_status status_from(const char *word)
{
	for (int i = 0; i < AVA_NSTATUSES; i++)
		if (strcmp(ava_status_name((enum ava_status)i), word) == 0)
			return (enum ava_status)i;
	return AVA_ERROR;
}

static void fill_spawn(struct op_status *s, const json_t *event)
{
	const json_t *o = json_object_get(event, "content"), *l = json_object_get(o, "limits");

	*s = (struct op_status){
		.id = json_str(o, "subagentId"),
		.trace_id = json_str(event, "traceId"),
		.role = json_str(o, "role"),
		.task = json_str(o, "task"),
		.model = json_str(o, "model"),
		.session_id = json_str(event, "sessionId"),
		.user_id = json_str(event, "userId"),
		.origin = json_str(o, "origin"),
		.cwd = json_str(o, "cwd"),
		.group_id = json_str(o, "groupId"),
		.group_index = json_get_int(o, "groupIndex", 0),
		.order = json_str(o, "order"),
		.group_name = json_str(o, "groupName"),
		.after = spec_after_read(json_object_get(o, "after")),
		.tags = json_str(o, "tags"),
		.stop_reason = "",
		.activity = "",
		.last_tool = "",
		.status = AVA_ERROR,
		.spawned_ms = event_time(event),
		.started_ms = event_time(event),
		.limit_time_ms = json_get_fixed(l, "seconds", 3, 0),
		.limit_cost_microusd = json_get_fixed(l, "costCents", 4, 0),
		.limit_tokens = json_get_int(l, "tokens", 0),
		.limit_iterations = (int)json_get_int(l, "iterations", 0),
		.rights = (int)rights_read(json_object_get(o, "rights")),
	};
}

static void fill_complete(struct op_status *s, const json_t *event)
{
	const json_t *o = json_object_get(event, "content"), *t = json_object_get(o, "totals");

	s->status = status_from(json_str(o, "status"));
	s->stop_reason = json_str(o, "stopReason");
	s->ended_ms = event_time(event);
	s->elapsed_ms = json_get_int(t, "durationMs", 0);
	s->tokens = json_get_int(t, "tokens", 0);
	s->cost_microusd = json_get_fixed(t, "costCents", 4, -1);
	s->estimated = json_get_int(t, "estimatedCalls", 0) > 0;
	s->iteration = (int)json_get_int(t, "iterations", 0);
}

void ended_fini(struct ended *e)
{
	json_decref(e->spawn);
	json_decref(e->complete);
	catalog_row_fini(&e->row);
	*e = (struct ended){0};
}

int ended_result(int root_fd, const char *run, char **json, size_t *len, struct ava_error *err)
{
	char path[LOGBOOK_PATH];
	json_t *whole;
	int rv;

	if (!id_is_run(run))
		return err_set(err, AVA_EINVAL, "%.40s is not a run id (S- and hex digits)", run);
	logbook_result_path(run, path);
	rv = sys_read_file(root_fd, path, 64u << 20, json, len, err);
	if (rv == AVA_ENOENT)
		err_set(err, rv, "there is no result of %s (ava ps -a lists the runs)", run);
	if (rv != 0)
		return rv;
	whole = json_parse(*json, *len, NULL);
	if (!json_is_object(whole)) {
		free(*json);
		*json = NULL;
		rv = err_set(err, AVA_ECORRUPT,
			     "%s is cut or damaged: `ava logs %s` has the run's summary", path,
			     run);
	}
	json_decref(whole);
	return rv;
}

/* ---- the catalog, from its end */

struct back {
	char *buf; /* BLOCK_BYTES for a block, then ROW_MAX for the kept beginning of a line */
	bool (*each)(struct catalog_row *row, void *user);
	void *user;
	bool ends, enough;
};

static void history_give(struct back *b, const char *line, size_t len)
{
	struct catalog_row row;

	static const char spawn[] = "{\"row\":\"spawn\",";

	if (b->ends && len > sizeof(spawn) && memcmp(line, spawn, sizeof(spawn) - 1) == 0)
		return;
	if (len == 0 || catalog_parse(line, len, &row, NULL) != 0)
		return;
	b->enough = !b->each(&row, b->user);
	catalog_row_fini(&row);
}

/* Gives the whole lines in [0, len) of `text`, the last first; returns the length of an incomplete
 * line at the beginning. */
static size_t history_lines(struct back *b, const char *text, size_t len, bool at_start)
{
	while (len > 0 && !b->enough) {
		const char *nl = memrchr(text, '\n', len);
		size_t from = nl ? (size_t)(nl - text) + 1 : 0;

		if (!nl && !at_start)
			return len;
		history_give(b, text + from, len - from);
		len = nl ? from - 1 : 0;
	}
	return 0;
}

/* Reads [0, size) of `fd`, which ends with a whole line. */
static void history_part(struct back *b, int fd, off_t size)
{
	size_t kept = 0;

	while (size > 0 && !b->enough && kept < ROW_MAX) {
		size_t n = (size_t)MIN(size, (off_t)BLOCK_BYTES);

		memmove(b->buf + n, b->buf, kept);
		size -= (off_t)n;
		if (sys_read_all(fd, b->buf, n, size) != 0)
			return;
		kept = history_lines(b, b->buf, n + kept, size == 0);
	}
}

int history_each(int root_fd, bool ends, bool (*each)(struct catalog_row *row, void *user),
		 void *user, struct ava_error *err)
{
	struct back b = {
		.buf = malloc(BLOCK_BYTES + ROW_MAX), .each = each, .user = user, .ends = ends};
	unsigned newest = view_find_part(root_fd, CATALOG_PATH);
	struct stat st;
	int rv = 0;

	for (unsigned part = newest; rv == 0 && part > 0 && b.buf && !b.enough; part--) {
		int fd = catalog_open(root_fd, part, err);

		if (fd == AVA_ECORRUPT && newest == 1)
			rv = fd;
		if (fd < 0)
			continue;
		if (sys->fstat(fd, &st) == 0)
			history_part(&b, fd, st.st_size);
		sys->close(fd);
	}
	free(b.buf);
	return rv;
}

/* ---- one ended run */

void ended_row(const struct catalog_row *row, struct op_status *s)
{
	*s = (struct op_status){
		.rights = -1,
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
		.group_id = row->group_id,
		.group_index = row->group_index,
		.order = row->order,
		.tags = row->tags,
		.activity = "",
		.last_tool = "",
		.status = row->kind == CATALOG_END ? row->status : AVA_ERROR,
		.spawned_ms = row->started_ms,
		.started_ms = row->started_ms,
		.ended_ms = MAX(row->ended_ms, 0),
		.elapsed_ms = row->totals.duration_ms,
		.tokens = row->totals.input_tokens + row->totals.output_tokens,
		.cost_microusd = row->totals.uncosted_calls && row->totals.cost_microusd == 0
					 ? -1
					 : row->totals.cost_microusd,
		.estimated = row->totals.estimated_calls > 0,
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

/* Reads two lines of a run's log; 0, AVA_ENOENT, AVA_ENOMEM. */
static int runs_read_log(int root_fd, const char *run, struct ended *out)
{
	char path[LOGBOOK_PATH], live[FILES_BUF];

	logbook_run_path(run, path);
	if (read_edge(root_fd, path, false, out, &out->spawn) != 0)
		return AVA_ENOMEM;
	if (!out->spawn || strcmp(json_str(out->spawn, "eventType"), "SubagentSpawn") != 0 ||
	    strcmp(json_str(out->spawn, "agentId"), run) != 0)
		return AVA_ENOENT;
	fill_spawn(&out->status, out->spawn);
	files_part_name(path, view_find_part(root_fd, path), live);
	if (read_edge(root_fd, live, true, out, &out->complete) != 0)
		return AVA_ENOMEM;
	out->status.last_tool = out->last_tool;
	if (out->complete && strcmp(json_str(out->complete, "eventType"), "SubagentComplete") == 0)
		fill_complete(&out->status, out->complete);
	return 0;
}

struct lookup {
	const char *run;
	struct ended *out;
};

static bool look_at_row(struct catalog_row *row, void *user)
{
	struct lookup *l = user;

	if (strcmp(row->id, l->run) != 0)
		return true;
	l->out->row = *row;
	row->owned = NULL; /* `*l->out` owns the strings now */
	ended_row(&l->out->row, &l->out->status);
	return false;
}

int ended_read(int root_fd, const char *run, struct ended *out, struct ava_error *err)
{
	struct lookup l = {run, out};
	int rv;

	*out = (struct ended){0};
	if (!id_is_run(run))
		return err_set(err, AVA_EINVAL, "%.40s is not a run id (S- and hex digits)", run);
	rv = runs_read_log(root_fd, run, out);
	if (rv == AVA_ENOENT) { /* the run's files may be pruned */
		rv = history_each(root_fd, false, look_at_row, &l, err);
		if (rv != 0)
			return rv; /* the catalog could not be read */
		rv = out->row.id ? 0 : AVA_ENOENT;
	}
	if (rv == 0)
		return 0;
	ended_fini(out);
	return err_set(err, rv,
		       rv == AVA_ENOMEM ? "out of memory"
					: "there is no run %s (ava ps -a lists them)",
		       run);
}

#define ENDING_WAIT_MS 10000 /* longest wait for an end: the disk may be slow, or full */
#define WAIT_MAX_MS    INT64_C(3600000)

/* ---- spawn without a proposal */

struct spawn_wait {
	struct list more; /* the same request again, before the run is on disk */
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
	LIST_EACH (&more, at, tmp)
		tell_spawned(LIST_ENTRY(at, struct spawn_wait, more), rv, &s, &err);
}

/* 0: `w` is *taken* and will be answered. `spec` is *taken*. */
static int runs_spawn(struct core *c, struct run_spec *spec, struct spawn_wait *w,
		      struct ava_error *err)
{
	struct request *q;
	struct draft *d = draft_new(&c->book);
	int rv = d ? supervisor_spawn(&c->sup, spec, "", d, &w->run, err)
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

/* Answers a repeated request. 0: answered, or `w` waits for the first one. */
static int spawn_again(struct core *c, struct request *q, struct spawn_wait *w,
		       struct ava_error *err)
{
	struct run *r = supervisor_find(&c->sup, q->run);
	struct op_status s = {.id = q->run, .trace_id = q->trace, .rights = -1};

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
	if (!cluster_has(c->service.cluster, q->run))
		return err_set(err, AVA_EIO,
			       "run %s is on this machine, and not in the database of the cluster "
			       "yet: ask again",
			       q->run);
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
	else if ((rv = proposal_unasked(&spec, 1, &err)) != 0)
		spec_free(spec);
	else
		rv = runs_spawn(w->core, spec, w, &err);
	if (rv != 0)
		tell_spawned(w, rv, NULL, &err);
}

/* 0: `w` is *taken* and will be answered. */
static int spawn_new(struct core *c, const struct op_spawn *s, struct spawn_wait *w,
		     struct ava_error *err)
{
	struct run_spec *spec = NULL;
	int rv = core_ready(c, err);

	if (rv == 0 && resume_wanted(s)) {
		resume_begin(c, s, spawn_resumed, w);
		return 0;
	}
	if (rv == 0)
		rv = spec_build(&spec, s, &c->settings, c->model, c->redact, err);
	if (rv == 0 && (rv = proposal_unasked(&spec, 1, err)) != 0)
		spec_free(spec);
	return rv == 0 ? runs_spawn(c, spec, w, err) : rv;
}

void ops_spawn(struct core *c, const struct op_spawn *s, op_status_fn done, void *user)
{
	struct request *known = core_request(c, s->request_id);
	struct spawn_wait *w = calloc(1, sizeof(*w));
	struct ava_error err = {0};
	int rv;

	if (!w) {
		done(err_set(&err, AVA_ENOMEM, "out of memory"), NULL, &err, user);
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

/* ---- status */

struct runs_looking {
	struct job job;
	char run[64];
	struct core *core;
	struct reader_run other; /* machine "": of this one */
	struct ended ended;
	int rv;
	struct ava_error err;
	op_status_fn done;
	void *user;
};

/* Pool thread. */
static void runs_look(struct job *j)
{
	struct runs_looking *l = CONTAINER_OF(j, struct runs_looking, job);
	bool other = l->other.machine[0] != '\0';
	int root_fd = other ? reader_root(j->core->service.reader) : j->core->root_fd;

	l->rv = ended_read(root_fd, l->run, &l->ended, &l->err);
	if (l->rv == 0 && other)
		others_status(&l->other, &l->ended.status);
}

static void runs_looked(struct job *j)
{
	struct runs_looking *l = CONTAINER_OF(j, struct runs_looking, job);

	l->done(l->rv, l->rv == 0 ? &l->ended.status : NULL, l->rv == 0 ? NULL : &l->err, l->user);
	ended_fini(&l->ended);
	free(l);
}

static void runs_look_begin(struct runs_looking *l)
{
	int rv;

	l->job.run = runs_look;
	l->job.done = runs_looked;
	rv = job_begin_short(l->core, &l->job, &l->err);
	if (rv != 0) { /* else a thread owns it from now on */
		l->rv = rv;
		runs_looked(&l->job);
	}
}

/* The copy of another machine's run is there; a run that none has is looked for here. */
static void runs_look_fetched(int rv, const struct reader_run *run, const struct ava_error *err,
			      void *user)
{
	struct runs_looking *l = user;

	if (rv == 0)
		l->other = *run;
	if (rv == 0 || rv == AVA_ENOENT) {
		runs_look_begin(l);
		return;
	}
	l->done(rv, NULL, err, l->user);
	free(l);
}

void ops_look(struct core *c, const char *run, op_status_fn done, void *user)
{
	struct run *r = supervisor_find(&c->sup, run);
	struct ava_error err = {0};
	struct op_status s;
	struct runs_looking *l;

	if (r) {
		supervisor_status(r, &s);
		s.place = cluster_place(c->service.cluster, run);
		done(0, &s, NULL, user);
		return;
	}
	l = calloc(1, sizeof(*l));
	if (!l) {
		done(err_set(&err, AVA_ENOMEM, "out of memory"), NULL, &err, user);
		return;
	}
	l->core = c;
	snprintf(l->run, sizeof(l->run), "%s", run);
	l->done = done;
	l->user = user;
	if (others_may(c, run))
		reader_fetch(c->service.reader, run, runs_look_fetched, l);
	else
		runs_look_begin(l);
}

/* ---- results */

struct op_wait {
	struct run_wait wait;
	struct list node; /* in core.waits while the run is at work */
	struct core *core;
	struct os_timer *timer;
	struct run_id id;
	op_result_fn done; /* the callback; NULL: `reply` is answered, or the wait is given up */
	void *user;
	struct verb_reply *reply; /* the request; NULL: `done` is called, or the wait is given up */
	int64_t until_ms;         /* the end of the wait (monotonic) */
	bool other;               /* its file is in the copy */
	bool parted;              /* it left this machine meanwhile */
	bool fetching;
	/* Reads the result file once the run has ended. */
	struct job job;
	char *json; /* owned */
	size_t len;
	int rv;
	struct ava_error err;
};

static void wait_free(struct op_wait *w)
{
	list_del(&w->wait.node);
	list_del(&w->node);
	os_timer_free(w->timer);
	free(w->json);
	free(w);
}

/* The caller of `reply` is gone. */
static void result_give_up(struct verb_reply *reply)
{
	struct op_wait *w = reply->waits;

	if (w->job.run || w->fetching)
		w->reply = NULL; /* the end of the job or fetch frees `w` */
	else
		wait_free(w);
}

static void result_looked(int rv, const struct op_status *s, const struct ava_error *err,
			  void *user)
{
	if (rv == 0)
		verb_send_status(s, user, 202);
	else
		verb_fail(user, rv, err);
}

static void runs_result_answer(struct op_wait *w, int rv, const struct ava_error *err)
{
	struct verb_answer a;
	struct run *r = supervisor_find(&w->core->sup, w->id.text);
	struct op_status s;

	if (rv == AVA_ETIMEOUT && r) { /* the run goes on: answer with its status */
		supervisor_status(r, &s);
		verb_send_status(&s, w->reply, 202);
	} else if (rv == AVA_ETIMEOUT) { /* on another machine; the wait is over */
		w->reply->give_up = NULL;
		ops_look(w->core, w->id.text, result_looked, w->reply);
	} else if (verb_begin(&a, w->reply, rv, err)) {
		buf_add(&a.b, w->json, w->len);
		verb_send(&a, 200);
	}
}

static void result_tell(struct op_wait *w, int rv, const struct ava_error *err)
{
	if (w->reply)
		runs_result_answer(w, rv, err);
	else if (w->done)
		w->done(rv, w->json, w->len, err, w->user);
	wait_free(w);
}

/* Pool thread. */
static void result_work(struct job *j)
{
	struct op_wait *w = CONTAINER_OF(j, struct op_wait, job);

	w->rv = ended_result(w->other ? reader_root(w->core->service.reader) : w->core->root_fd,
			     w->id.text, &w->json, &w->len, &w->err);
}

static void result_read(struct job *j)
{
	struct op_wait *w = CONTAINER_OF(j, struct op_wait, job);

	result_tell(w, w->rv, w->rv == 0 ? NULL : &w->err);
}

static void result_fetch(struct op_wait *w);

static void result_late(void *user)
{
	struct op_wait *w = user;
	struct run *r = supervisor_find(&w->core->sup, w->id.text);

	if (w->other && r) { /* it is here again */
		w->other = false;
		run_wait(r, &w->wait);
		os_timer_set(w->timer, MAX(w->until_ms - clock_mono_ms(), 0));
	} else if (w->other && clock_mono_ms() < w->until_ms && !core_service(w->core)->stops)
		result_fetch(w);
	else
		result_tell(w, err_set(&w->err, AVA_ETIMEOUT, "%s still runs", w->id.text),
			    &w->err);
}

/* The run has ended: read its result file. */
static void result_give(struct op_wait *w)
{
	int rv;

	list_del(&w->wait.node);
	list_del(&w->node);
	os_timer_stop(w->timer);
	w->job.run = result_work;
	w->job.done = result_read;
	rv = job_begin_short(w->core, &w->job, &w->err);
	if (rv != 0)
		result_tell(w, rv, &w->err);
}

/* A run of another machine is looked at until it has ended, or the wait has. */
static void result_fetched(int rv, const struct reader_run *run, const struct ava_error *err,
			   void *user)
{
	struct op_wait *w = user;

	w->fetching = false;
	w->other = rv == 0 || w->parted;
	if (!w->reply && !w->done)
		wait_free(w);
	else if ((rv == AVA_ENOENT && !w->parted) || (rv == 0 && run->ended))
		result_give(w);
	else if (rv != 0 && (rv != AVA_ENOENT || !w->parted))
		result_tell(w, rv, err);
	else if (clock_mono_ms() < w->until_ms && !core_service(w->core)->stops) {
		list_add(&w->core->waits, &w->node);
		os_timer_set(w->timer, READER_POLL);
	} else
		result_late(w);
}

static void result_fetch(struct op_wait *w)
{
	w->fetching = true;
	list_del(&w->node);
	reader_fetch(w->core->service.reader, w->id.text, result_fetched, w);
}

static void result_ended(struct run_wait *wait, struct run *r)
{
	struct op_wait *w = CONTAINER_OF(wait, struct op_wait, wait);

	if (r->end.done) {
		result_give(w);
	} else if (core_service(w->core)->stops || !core_service(w->core)->reader) {
		result_tell(w, err_set(&w->err, AVA_ECANCELED, OPS_STOPS), &w->err);
	} else { /* it is on its way to another machine, or will be taken up again */
		w->parted = w->other = true;
		os_timer_set(w->timer, READER_POLL);
	}
}

/* `like`: whom to answer, once. */
static void result_wait(struct core *c, const char *run, int64_t wait_ms,
			const struct op_wait *like)
{
	struct run *r = supervisor_find(&c->sup, run);
	struct op_wait *w = malloc(sizeof(*w));
	struct ava_error err = {.code = AVA_ENOMEM, .text = "out of memory"};

	if (!w) {
		if (like->reply)
			verb_fail(like->reply, AVA_ENOMEM, &err);
		else
			like->done(AVA_ENOMEM, NULL, 0, &err, like->user);
		return;
	}
	*w = *like;
	w->core = c;
	snprintf(w->id.text, sizeof(w->id.text), "%s", run);
	w->wait.ended = result_ended;
	list_init(&w->wait.node);
	list_init(&w->node);
	w->timer = os_timer_new(c->loop, result_late, w);
	if (w->reply) {
		w->reply->waits = w;
		w->reply->give_up = result_give_up;
	}
	/* Wait for a run that is ending: a client that was shown its end must find the result. */
	if (r && r->end.begun)
		wait_ms = MAX(wait_ms, ENDING_WAIT_MS);
	w->until_ms = clock_mono_ms() + wait_ms;
	if (!w->timer) {
		result_tell(w, AVA_ENOMEM, &err);
	} else if (others_may(c, run)) {
		result_fetch(w);
	} else if (!r) {
		result_give(w);
	} else if (wait_ms <= 0) {
		result_late(w);
	} else {
		run_wait(r, &w->wait);
		list_add(&c->waits, &w->node);
		os_timer_set(w->timer, wait_ms);
	}
}

void ops_result(struct core *c, const char *run, int64_t wait_ms, op_result_fn done, void *user)
{
	result_wait(c, run, wait_ms, &(struct op_wait){.done = done, .user = user});
}

static const struct arg result_args[] = {{"wait", ARG_MS}, {NULL}};

static void verb_result(struct verb_call *v)
{
	int64_t wait_ms = 0;

	if (!verb_args(v, &wait_ms))
		return;
	wait_ms = core_service(v->core)->stops ? 0 : MIN(wait_ms, WAIT_MAX_MS);
	result_wait(v->core, v->id, wait_ms, &(struct op_wait){.reply = v->reply});
}

void verbs_stop(struct core *c)
{
	core_service(c)->stops = true;
	mcp_client_quiesce(c->sup.mcp);
	while (!list_empty(&c->waits))
		result_late(LIST_FIRST(&c->waits, struct op_wait, node));
}

const struct verb verbs_about_results[] = {
	{"GET", "/api/v1/runs/{id}/result", verb_result, result_args, false},
	{NULL},
};

/* ---- cancel: the answer comes when the end is on disk */

struct cancel_wait {
	struct run_wait wait;
	struct core *core;
	char run[24], by[64], origin[16];
	op_status_fn done;
	void *user;
};

static void cancel_stops(struct cancel_wait *w)
{
	struct ava_error err = {0};

	w->done(err_set(&err, AVA_ECANCELED, OPS_STOPS), NULL, &err, w->user);
}

static void cancel_ended(struct run_wait *wait, struct run *r)
{
	struct cancel_wait *w = CONTAINER_OF(wait, struct cancel_wait, wait);

	if (r->end.done)
		ops_look(w->core, w->run, w->done, w->user);
	else
		cancel_stops(w);
	free(w);
}

/* A run is at work here, or has ended meanwhile. */
static void cancel_came(int rv, const struct ava_error *err, void *user)
{
	struct cancel_wait *w = user;
	struct run *r = rv == 0 ? supervisor_find(&w->core->sup, w->run) : NULL;

	if (r) {
		run_wait(r, &w->wait);
		supervisor_cancel(r, w->by, w->origin);
		return;
	}
	if (rv != 0 && rv != AVA_EEXIST)
		w->done(rv, NULL, err, w->user);
	else
		ops_look(w->core, w->run, w->done, w->user);
	free(w);
}

/* A run that is not at work here: nothing changes when it has ended. */
static void cancel_looked(int rv, const struct op_status *s, const struct ava_error *err,
			  void *user)
{
	struct cancel_wait *w = user;
	struct ava_error other;

	if (rv == 0 && others_may_end(s)) {
		others_fetch_to_end(w->core, w->run, cancel_came, w);
		return;
	}
	if (rv == 0 && (rv = others_refuse(s, &other)) != 0)
		err = &other;
	w->done(rv, rv == 0 ? s : NULL, err, w->user);
	free(w);
}

void ops_cancel(struct core *c, const char *run, const char *by, const char *origin,
		op_status_fn done, void *user)
{
	struct run *r = supervisor_find(&c->sup, run);
	struct cancel_wait *w = NULL;
	struct ava_error err = {0};

	if (r && r->end.abandoned)
		err_set(&err, AVA_ENOMEM, "run %s " OPS_ABANDONED, run);
	else if (!(w = calloc(1, sizeof(*w))))
		err_set(&err, AVA_ENOMEM, "out of memory");
	if (err.code != 0) {
		done(err.code, NULL, &err, user);
		return;
	}
	w->wait.ended = cancel_ended;
	w->core = c;
	snprintf(w->run, sizeof(w->run), "%s", run);
	snprintf(w->by, sizeof(w->by), "%s", by ? by : "ava");
	snprintf(w->origin, sizeof(w->origin), "%s", origin ? origin : "");
	w->done = done;
	w->user = user;
	if (r)
		cancel_came(0, NULL, w);
	else
		ops_look(c, run, cancel_looked, w);
}

/* The file of the ended run is read once. Its spec line gives way to the new run's,
 * which has its own limits; messages and replaced results follow as they stand; then
 * a user line says that the run goes on. The result is checked like every request: a
 * conversation that no service would take is refused here, before anybody pays.
 *
 * A fork from an earlier call has the lines that this call was sent; the caller finds them
 * by replaying the run up to there. All of this is done on a pool thread, before the
 * run is spawned (ava/resume.c).
 *
 * Failures: the file (pruned, damaged), a model of another dialect, memory. */
#include "subagent/resume.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/prompt.h"
#include "base/error.h"
#include "base/list.h"
#include "base/sys.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "event/event.h"
#include "journal/catalog.h"
#include "provider/messages.h"
#include "subagent/record.h"
#include "subagent/run.h"

#define FILE_MAX (256u << 20)

static int read_file(int root_fd, const char *run, char **file, size_t *len, struct ava_error *err)
{
	char path[LOGBOOK_PATH];
	int rv;

	logbook_messages_path(run, path);
	rv = logbook_read(root_fd, path, FILE_MAX, file, len, err);
	if (rv == AVA_ENOENT)
		err_set(err, rv, "the messages of run %s are not kept: it cannot be resumed", run);
	return rv;
}

int resume_spec(int root_fd, const char *run, json_t **spec, struct ava_error *err)
{
	char *file = NULL;
	size_t len = 0;
	int rv = read_file(root_fd, run, &file, &len, err);

	if (rv == 0)
		rv = spec_first_line(file, len, spec, err);
	free(file);
	return rv;
}

/* ---- the messages of the new run */

/* May the old head stay? Yes with the same role, model and tools: the service has that head in its
 * cache, and the notice corrects the limits in it. */
static bool same_head(const struct run_spec *s, const json_t *was)
{
	const json_t *tools = json_object_get(was, "tools");
	const char *model = json_get_str(was, "model");
	const json_t *role = json_object_get(was, "roleFile");
	bool same = model && strcmp(model, s->model->id) == 0 &&
		    strcmp(json_str(was, "dialect"), s->model->dialect->name) == 0 &&
		    (!role || strcmp(json_str(role, "hash"), s->role->hash) == 0) &&
		    json_array_size(tools) == s->agent.ntools &&
		    json_get_bool(was, "thinking", false) == s->thinking &&
		    json_is_array(json_object_get(was, "withheld")) == s->later &&
		    json_get_bool(was, "brief", false) == s->brief;

	for (unsigned i = 0; same && i < s->agent.ntools; i++) {
		const char *name = json_string_value(json_array_get(tools, i));

		same = name && strcmp(name, s->tools[i]->name) == 0;
	}
	return same && json_get_str(was, "head");
}

/* Another task or context than the ended run's stands behind the notice, as in a first message. */
static int resume_add_notice(const struct run_spec *s, const json_t *was, struct buf *out)
{
	const struct agent_limits *l = &s->agent.limits;
	bool other = strcmp(s->task, json_str(was, "task")) != 0 ||
		     strcmp(s->context, json_str(was, "context")) != 0;
	struct buf text;
	char says[600];
	int rv;

	snprintf(says, sizeof(says),
		 "This run goes on from here with a new budget; it had stopped before. Your limits "
		 "from now on: %" PRId64 " s, $%" PRId64 ".%02" PRId64 ", %" PRId64
		 " tokens in all calls together, %d replies. Do what is left of the task, then "
		 "call submit_result with all of it.",
		 l->time_ms / 1000, l->cost_microusd / 1000000, l->cost_microusd / 10000 % 100,
		 l->tokens, (int)l->iterations);
	buf_init(&text, 4u << 20);
	rv = notice_format(&text, says);
	if (rv == 0 && other) {
		buf_adds(&text, "\n\n");
		rv = prompt_task(&text, &(struct prompt){.task = s->task, .context = s->context});
	}
	if (rv == 0)
		rv = s->model->dialect->encode_user(out, text.data, text.len);
	buf_fini(&text);
	return rv == 0 ? buf_addc(out, '\n') : rv;
}

static int resume_count_result(size_t k, const char *text, size_t len, bool is_error, void *user)
{
	unsigned *n = user;

	++*n;
	return 0;
}

/* Builds the request of the lines as it will be sent: checked, hashed, its results counted. */
static int take_request(const struct dialect *d, int root_fd, struct resumed *r,
			struct ava_error *err)
{
	struct messages_info info;
	struct buf body;
	int rv;

	buf_init(&body, FILE_MAX);
	rv = messages_request(&body, r->lines.data, r->lines.len, root_fd, &info, err);
	if (rv == 0)
		rv = d->check(body.data + info.head_len, body.len - info.head_len, err);
	if (rv == 0)
		rv = d->results(body.data + info.head_len, body.len - info.head_len,
				resume_count_result, &r->results, err);
	if (rv == 0) {
		r->request_bytes = (int64_t)body.len;
		r->prefix = messages_prefix(&body, &info);
	}
	buf_fini(&body);
	return rv == AVA_EINVAL ? (err ? err->code = AVA_ECORRUPT : AVA_ECORRUPT) : rv;
}

/* The model goes on in the dialect that the lines spoke last. */
static int resume_take_dialect(struct run_spec *s, const char *file, size_t len,
			       struct ava_error *err)
{
	struct model m = *s->model;
	char was[20] = "";
	const char *line;
	size_t at = 0, n;

	while (jsonl_next(file, len, &at, &line, &n) == 1) {
		json_t *o = jscan_begins(line, n, "{\"spec\":") ? json_parse(line, n, NULL) : NULL;
		const char *dialect = json_get_str(json_object_get(o, "spec"), "dialect");

		if (dialect)
			snprintf(was, sizeof(was), "%s", dialect);
		json_decref(o);
	}
	if (!model_speak(&m, was))
		return err_set(err, AVA_EUNSUPPORTED,
			       "run %s spoke with its model in the form \"%s\", %s needs \"%s\": "
			       "resume it with a model of the same kind",
			       s->resumed_from, was, m.id, m.dialect->name);
	return m.dialect == s->model->dialect ? 0 : spec_set_model(s, &m, err);
}

/* ---- a run that never began */

#define SPAWN_MAX ((size_t)64 << 10) /* bytes of an event SubagentSpawn */

/* The runs that came of each of several others, and of them the last that succeeded. */
struct heirs {
	int root_fd;
	struct heir {
		char id[24];
		size_t of;
	} * all; /* those others first */
	size_t n, cap;
	bool begun; /* the catalog's rows are of their time */
	char (*ids)[24];
};

static const struct heir *resume_heir(const struct heirs *h, const char *id)
{
	for (size_t i = 0; i < h->n; i++)
		if (strcmp(h->all[i].id, id) == 0)
			return &h->all[i];
	return NULL;
}

static int resume_add_heir(struct heirs *h, const char *id, size_t of)
{
	if (!ARRAY_ROOM(h->all, h->cap, h->n + 1))
		return AVA_ENOMEM;
	h->all[h->n].of = of;
	snprintf(h->all[h->n++].id, sizeof(h->all->id), "%s", id);
	return 0;
}

/* The run that `run` goes on from, by the first event of its log; "": none. */
static void resume_origin(int root_fd, const char *run, char from[24])
{
	char path[LOGBOOK_PATH], *data = malloc(SPAWN_MAX);
	const char *line;
	struct event_view v;
	json_t *content = NULL;
	size_t at = 0, n;
	ssize_t len = -1;
	int fd;

	logbook_run_path(run, path);
	fd = data ? sys->openat(root_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0) : -1;
	if (fd >= 0) {
		len = sys_read_some(fd, data, SPAWN_MAX, 0);
		sys->close(fd);
	}
	if (len > 0 && jsonl_next(data, (size_t)len, &at, &line, &n) == 1 &&
	    event_view(line, n, &v) == 0 && v.kind == EVENT_SubagentSpawn)
		content = json_parse(v.content.s, v.content.len, NULL);
	snprintf(from, 24, "%s", json_str(content, "resumedFrom"));
	json_decref(content);
	free(data);
}

static int resume_row(struct catalog_row *row, void *user)
{
	struct heirs *h = user;
	const struct heir *is = row ? resume_heir(h, row->id) : NULL;
	char from[24];

	if (is && row->kind == CATALOG_END && row->status == AVA_SUCCESS)
		snprintf(h->ids[is->of], sizeof(h->ids[0]), "%s", row->id);
	h->begun = h->begun || is;
	if (!row || is || !h->begun || row->kind != CATALOG_SPAWN)
		return 0;
	resume_origin(h->root_fd, row->id, from);
	is = resume_heir(h, from);
	return is ? resume_add_heir(h, row->id, is->of) : 0;
}

/* In the place of each id comes that of the newest run that went on from it and has succeeded. */
static int resume_take_heirs(int root_fd, char (*ids)[24], size_t n)
{
	struct heirs h = {.root_fd = root_fd, .ids = ids};
	int rv = 0;

	for (size_t i = 0; rv == 0 && i < n; i++)
		rv = resume_add_heir(&h, ids[i], i);
	if (rv == 0)
		rv = catalog_each(root_fd, NULL, NULL, resume_row, &h, NULL);
	free(h.all);
	return rv == AVA_ENOMEM ? rv : 0;
}

/* A run that waited for others and never began has no message: the new one begins with the outcomes
 * of those, whatever they are, or of the runs by which they were made good. */
static int resume_unbegun(struct run_spec *s, int root_fd, struct resumed *r)
{
	char path[LOGBOOK_PATH], *data = NULL, (*ids)[24]; /* those that it waited for, twice */
	const char *quoted = s->context;
	const json_t *after;
	struct buf outcomes, line;
	json_t *result = NULL;
	size_t len = 0, n;
	int rv;

	logbook_result_path(s->resumed_from, path);
	if (sys_read_file(root_fd, path, FILE_MAX, &data, &len, NULL) == 0)
		result = json_parse(data, len, NULL);
	free(data);
	after = json_object_get(result, "after");
	n = json_array_size(after);
	ids = calloc(2 * n + 1, sizeof(*ids));
	for (size_t i = 0; ids && i < 2 * n; i++)
		snprintf(ids[i], sizeof(ids[i]), "%s",
			 json_string_value(json_array_get(after, i % n)));
	json_decref(result);
	buf_init(&outcomes, SPEC_CONTEXT_MAX);
	buf_init(&line, 8u << 20);
	rv = ids ? resume_take_heirs(root_fd, ids, n) : AVA_ENOMEM;
	if (rv == 0)
		rv = blocked_outcomes(&outcomes, root_fd, (const char(*)[24])ids,
				      (const char(*)[24])(ids + n), n, s->agent.window);
	if (rv == 0)
		rv = blocked_lines(s, &outcomes, &r->lines, &line);
	r->context = s->context; /* the spec stays as it is quoted, since this is done again */
	s->context = quoted;
	buf_add(&r->lines, line.data, line.len);
	buf_addc(&r->lines, '\n');
	free(ids);
	buf_fini(&line);
	buf_fini(&outcomes);
	return rv == 0 ? buf_check(&r->lines) : rv;
}

/* Has the run a message, or did it end before it began? */
static bool resume_began(const struct dialect *d, const char *file, size_t len)
{
	const char *line;
	size_t at = 0, n;

	while (jsonl_next(file, len, &at, &line, &n) == 1)
		if (d->line_kind(line, n) != LINE_NONE)
			return true;
	return false;
}

static int make_lines(struct run_spec *s, int root_fd, const char *file, size_t len,
		      struct resumed *r, struct ava_error *err)
{
	json_t *was = NULL;
	struct jw w;
	const char *line;
	size_t at = 0, n;
	int rv = spec_first_line(file, len, &was, err);

	if (rv == 0)
		rv = resume_take_dialect(s, file, len, err);
	if (rv == 0)
		rv = spec_line(s, &r->lines, &r->request_bytes, &r->prefix);
	if (rv == 0 && !resume_began(s->model->dialect, file, len)) {
		json_decref(was);
		return resume_unbegun(s, root_fd, r);
	}
	if (rv == 0 && same_head(s, was)) {
		spec_line_begin(&w, &r->lines, "spec");
		jw_str(&w, "head", json_get_str(was, "head"));
		rv = spec_line_end(&w);
	}
	while (rv == 0 && jsonl_next(file, len, &at, &line, &n) == 1) {
		if (s->model->dialect->line_kind(line, n) == LINE_NONE &&
		    !jscan_begins(line, n, "{\"replace\":"))
			continue;
		buf_add(&r->lines, line, n);
		buf_addc(&r->lines, '\n');
	}
	if (rv == 0) {
		spec_line_begin(&w, &r->lines, "mark");
		jw_str(&w, "resumed", s->resumed_from);
		rv = spec_line_end(&w);
	}
	if (rv == 0)
		rv = resume_add_notice(s, was, &r->lines);
	if (rv == 0)
		rv = buf_check(&r->lines);
	json_decref(was);
	return rv;
}

int resume_prepare(int root_fd, struct run_spec *s, size_t upto, struct resumed **out,
		   struct ava_error *err)
{
	struct resumed *r = calloc(1, sizeof(*r));
	char *file = NULL;
	size_t len = 0;
	int rv = r ? 0 : AVA_ENOMEM;

	if (rv == 0) {
		buf_init(&r->lines, FILE_MAX);
		rv = read_file(root_fd, s->resumed_from, &file, &len, err);
	}
	if (rv == 0)
		rv = make_lines(s, root_fd, file, MIN(len, upto), r, err);
	if (rv == 0)
		rv = take_request(s->model->dialect, root_fd, r, err);
	free(file);
	if (rv == 0) {
		*out = r;
		return 0;
	}
	resumed_free(r);
	return rv == AVA_ENOMEM ? err_set(err, rv, "out of memory") : rv;
}

int resume_messages(struct run *r, struct buf *out, unsigned *results, struct ava_error *err)
{
	struct resumed *from = r->spec->resumed;
	int rv;

	if (!from)
		return err_set(err, AVA_EINVAL, "run %s cannot be resumed in company",
			       r->spec->resumed_from);
	r->rec.request_bytes = from->request_bytes;
	r->rec.prefix = from->prefix;
	*results = from->results;
	if (from->context)
		r->spec->context = from->context;
	rv = buf_add(out, from->lines.data, from->lines.len);
	r->spec->resumed = NULL;
	resumed_free(from);
	return rv;
}

/* ---- A name is one event, Checkpoint, in a commit of its own that goes out at
 * once; the run itself does not notice. The names of a live run are kept beside
 * it, so that each stands for one place; after a restart its log gives them back.
 * The place: the lines that were sent with the model call under way, or with the
 * one whose tools are at work, since a conversation can go on only where no result
 * is missing.
 *
 * Failures: the name; memory, before anything is acknowledged. A runtime that stops
 * answers every request. */

struct point {
	struct list node;
	char name[RUN_CHECKPOINT_NAME + 1];
	int call;
	bool saving; /* the event is on its way to the disk */
	run_checkpoint_fn done;
	void *user;
};

struct run_checkpoints {
	struct list all; /* struct point, in the order of making */
	unsigned n;
};

static struct run_checkpoints *points_of(struct run *r)
{
	if (r->checkpoints == NULL)
		r->checkpoints = calloc(1, sizeof(*r->checkpoints));
	if (r->checkpoints != NULL && r->checkpoints->n == 0)
		list_init(&r->checkpoints->all);
	return r->checkpoints;
}

static struct point *point_add(struct run_checkpoints *all, const char *name, int call)
{
	struct point *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->call = call;
	list_add(&all->all, &p->node);
	all->n++;
	return p;
}

int run_checkpoint_check(const char *name, struct ava_error *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	static const char rest[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789._-";
	size_t len = strlen(name);

	if (len > 0 && len <= RUN_CHECKPOINT_NAME && strspn(name, letters) > 0 &&
	    strspn(name, rest) == len)
		return 0;
	return err_set(err, AVA_EINVAL,
		       "the name of a checkpoint has 1 to %d letters, digits, '.', '_' or '-' and "
		       "begins with a letter, as before-refactoring",
		       RUN_CHECKPOINT_NAME);
}

/* A name stands in logs for ever, so it must hold no key. */
static int check_secret(const struct run *r, const char *name, struct ava_error *err)
{
	struct buf b;
	int rv;

	buf_init(&b, 4096);
	rv = redact_text(r->rec.outbox.lb->redact, &b, name, strlen(name));
	buf_fini(&b);
	if (rv > 0)
		return err_set(err, AVA_EINVAL,
			       "the name of the checkpoint holds a key: names stand in the logs, "
			       "choose another one");
	return rv < 0 ? err_set(err, rv, "out of memory") : 0;
}

/* The call that a fork begins with. */
static int call_of(const struct agent *a)
{
	/* The results are written and the next call has not begun: the run asks about a
	 * limit, or waits for a slot. */
	bool between = a->turn == NULL && !a->asked && !a->at.again && a->at.iteration > 0;

	return a->at.iteration == 0 ? 1 : (int)a->at.iteration + between;
}

static int check_new(struct run *r, const char *name, int call, struct ava_error *err)
{
	LIST_EACH (&r->checkpoints->all, at, tmp) {
		const struct point *p = LIST_ENTRY(at, struct point, node);

		if (strcmp(p->name, name) != 0)
			continue;
		if (p->saving)
			return err_set(err, AVA_EBUSY,
				       "checkpoint %s is just being written: ask again", name);
		return p->call == call
			       ? 1
			       : err_set(err, AVA_EEXIST,
					 "run %s has a checkpoint %s already, before its model "
					 "call %d: choose another name",
					 r->id.text, name, p->call);
	}
	if (r->checkpoints->n >= RUN_CHECKPOINTS_MAX)
		return err_set(err, AVA_ETOOBIG, "run %s has %d checkpoints, the most there can be",
			       r->id.text, RUN_CHECKPOINTS_MAX);
	return 0;
}

/* ---- the event */

/* The first point still saving is durable: commits of a run end in order. */
static void resume_saved(int rv, void *user)
{
	struct run *r = user;

	LIST_EACH (&r->checkpoints->all, at, tmp) {
		struct point *p = LIST_ENTRY(at, struct point, node);
		run_checkpoint_fn done = p->done;

		if (!p->saving)
			continue;
		p->saving = false;
		p->done = NULL;
		if (done != NULL)
			done(rv, p->user);
		return;
	}
}

int run_checkpoint(struct run *r, const char *name, const char *by, const char *origin, int *call,
		   run_checkpoint_fn done, void *user, struct ava_error *err)
{
	struct run_checkpoints *all = points_of(r);
	struct draft *d = commit_draft(r);
	struct record_checkpoint c = {.by = by, .origin = origin};
	struct point *p;
	int rv = run_checkpoint_check(name, err);

	*call = call_of(&r->agent);
	if (rv == 0)
		rv = check_secret(r, name, err);
	if (rv != 0)
		return rv;
	if (all == NULL || d == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	rv = check_new(r, name, *call, err);
	if (rv != 0)
		return rv;
	p = point_add(all, name, *call);
	if (p == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	p->saving = true;
	p->done = done;
	p->user = user;
	c.name = p->name;
	c.call = p->call;
	hash_sha256_with(&r->rec.prefix, "", 0, c.hash);
	c.messages = r->rec.message_lines + run_checkpoint_lines(r, d);
	c.lsn = logbook_shown(r->rec.outbox.lb);
	record_checkpoint(d, r, &c);
	commit_flush(r, JOURNAL_NOW, resume_saved);
	return 0;
}

/* ---- from the record */

static int resume_read_call(const json_t *content)
{
	const char *id = json_get_str(content, "callId");

	return id != NULL && id[0] == 'i' ? (int)strtol(id + 1, NULL, 10) : 0;
}

int run_checkpoint_restore(struct run *r, const json_t *content)
{
	const char *name = json_str(content, "name");
	struct run_checkpoints *all = points_of(r);

	if (run_checkpoint_check(name, NULL) != 0 || resume_read_call(content) <= 0)
		return 0; /* ava writes no such event */
	if (all != NULL && all->n >= RUN_CHECKPOINTS_MAX)
		return 0;
	return all != NULL && point_add(all, name, resume_read_call(content)) ? 0 : AVA_ENOMEM;
}

void run_checkpoints_free(struct run *r)
{
	if (r->checkpoints == NULL)
		return;
	while (r->checkpoints->n > 0 && !list_empty(&r->checkpoints->all)) {
		struct point *p = LIST_FIRST(&r->checkpoints->all, struct point, node);

		list_del(&p->node);
		if (p->done != NULL)
			p->done(AVA_ECANCELED, p->user);
		free(p);
	}
	free(r->checkpoints);
	r->checkpoints = NULL;
}

#define NAMES_SHOWN 320 /* bytes of names in a sentence */

struct search {
	const char *name;
	int call;       /* call of the checkpoint; 0: not found */
	bool ambiguous; /* two checkpoints of this name stand at different calls */
	bool no_memory;
	struct buf names; /* the first names that exist */
	unsigned left_out;
};

static void resume_look_at(struct search *s, const struct event_view *v)
{
	struct ava_error err = {0};
	json_t *content = json_parse(v->content.s, v->content.len, &err);
	const char *name = json_get_str(content, "name");
	int call = resume_read_call(content);

	s->no_memory |= content == NULL && err.code == AVA_ENOMEM;

	if (name != NULL && call > 0 && run_checkpoint_check(name, NULL) == 0) {
		if (s->left_out > 0 || s->names.len + strlen(name) + 2 >= NAMES_SHOWN)
			s->left_out++;
		else
			buf_addf(&s->names, "%s%s", s->names.len > 0 ? ", " : "", name);
		if (strcmp(name, s->name) == 0) {
			s->ambiguous |= s->call > 0 && s->call != call;
			s->call = call;
		}
	}
	json_decref(content);
}

static int resume_say(const struct search *s, const char *run, struct ava_error *err)
{
	char more[32] = "";

	if (s->left_out > 0)
		snprintf(more, sizeof(more), " and %u more", s->left_out);
	if (s->no_memory)
		return err_set(err, AVA_ENOMEM, "out of memory");
	if (s->ambiguous)
		return err_set(
			err, AVA_EINVAL,
			"%s has several checkpoints %.64s: give the number of a call; it has %s%s",
			run, s->name, s->names.data, more);
	if (s->call > 0)
		return 0;
	if (s->names.len == 0)
		return err_set(err, AVA_ENOENT,
			       "%s has no checkpoint: give the number of a call of its model", run);
	return err_set(err, AVA_ENOENT, "%s has no checkpoint %.64s: it has %s%s", run, s->name,
		       s->names.data, more);
}

int run_checkpoint_find(int root_fd, const char *run, const char *name, int *call,
			struct ava_error *err)
{
	struct search s = {.name = name};
	char path[LOGBOOK_PATH], *data;
	const char *line;
	size_t len, at = 0, n;
	struct event_view v;
	int rv;

	logbook_run_path(run, path);
	rv = logbook_read(root_fd, path, FILE_MAX, &data, &len, err);
	if (rv != 0)
		return rv;
	buf_init(&s.names, NAMES_SHOWN);
	while (jsonl_next(data, len, &at, &line, &n) == 1)
		if (event_view(line, n, &v) == 0 && v.kind == EVENT_Checkpoint)
			resume_look_at(&s, &v);
	free(data);
	rv = resume_say(&s, run, err);
	buf_fini(&s.names);
	if (rv == 0)
		*call = s.call;
	return rv;
}

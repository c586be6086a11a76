/* The catalog is gone through once. For each run without an end row its own
 * file is read: without an InferStart it is queued again under its old id,
 * else its totals are added up, the open intents found, and it ends through
 * the same code as any other run (ending.c). */
#include "subagent/restart.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "codec/json.h"
#include "codec/jsonl.h"
#include "journal/catalog.h"
#include "provider/messages.h"
#include "subagent/group.h"
#include "subagent/infer_money.h"
#include "subagent/record.h"
#include "subagent/salvage.h"
#include "subagent/supervisor.h"
#include "subagent/world.h"

#define FILE_MAX       (256u << 20)
#define OPEN_CALLS_MAX TURN_MAX_CALLS

struct left { /* a spawn row without its end row */
	struct list node;
	struct catalog_row row; /* owns its strings */
};

struct scan {
	struct supervisor *sup;
	const struct restart_hooks *hooks;
	struct list left;
	struct strmap by_id;
};

/* ---- the catalog */

static void left_free(struct left *l)
{
	list_del(&l->node);
	catalog_row_fini(&l->row);
	free(l);
}

static int scan_spawn(struct scan *s, struct catalog_row *row)
{
	struct left *l;

	if (group_restore(s->sup, row) != 0)
		return AVA_ENOMEM;
	if (row->request_id[0])
		s->hooks->request(row->request_id, row->id, row->trace_id, row->started_ms,
				  s->hooks->user);
	if (nameset_add(&s->sup->names, row->id) != 0 ||
	    nameset_add(&s->sup->names, row->trace_id) != 0)
		return AVA_ENOMEM;
	l = calloc(1, sizeof(*l));
	if (!l)
		return AVA_ENOMEM;
	l->row = *row;
	list_init(&l->node);
	if (strmap_put(&s->by_id, l->row.id, l) != 0) {
		free(l);
		return AVA_EEXIST; /* a second spawn row of the same run: the first counts */
	}
	list_add(&s->left, &l->node);
	s->sup->total++;
	return 0;
}

static int scan_end(struct scan *s, const struct catalog_row *row)
{
	struct left *l = strmap_del(&s->by_id, row->id);
	int rv = l ? 0 : nameset_add(&s->sup->names, row->id); /* its spawn row is damaged */

	if (group_restore(s->sup, row) != 0)
		return AVA_ENOMEM;
	if (row->totals.calls > 0)
		quotes_add(&s->sup->quotes, row->role, row->totals.duration_ms,
			   row->totals.cost_microusd);
	spend_add(&s->sup->spend, row->ended_ms, row->totals.cost_microusd,
		  row->totals.input_tokens + row->totals.output_tokens, row->totals.uncosted_calls);
	if (l)
		left_free(l);
	return rv;
}

static int scan_catalog(struct scan *s, const char *data, size_t len, struct ava_error *err)
{
	const char *line;
	size_t at = 0, n;

	while (jsonl_next(data, len, &at, &line, &n) == 1) {
		struct catalog_row row;
		int rv = catalog_parse(line, n, &row, NULL);

		if (rv == AVA_ENOMEM)
			return err_set(err, rv, "out of memory while reading the catalog");
		if (rv != 0) {
			s->hooks->problem(CATALOG_PATH, "a line cannot be read and was passed over",
					  s->hooks->user);
			continue;
		}
		rv = row.kind == CATALOG_SPAWN ? scan_spawn(s, &row) : AVA_EEXIST;
		if (rv == 0)
			continue; /* the row is owned by its struct left */
		if (row.kind == CATALOG_END)
			rv = scan_end(s, &row);
		catalog_row_fini(&row);
		if (rv == AVA_ENOMEM)
			return err_set(err, rv, "out of memory while reading the catalog");
	}
	return 0;
}

/* ---- one run's file */

struct story {
	struct run *run;
	char calls[OPEN_CALLS_MAX][16]; /* of the last reply */
	bool answered[OPEN_CALLS_MAX];
	struct buf outputs[OPEN_CALLS_MAX]; /* previews of recorded results */
	unsigned ncalls;
	unsigned foreign; /* lines that are no events of this run */
	bool started;
	int64_t last_ms;
};

static void add_usage(struct story *s, const json_t *content, const json_t *meta)
{
	struct agent_totals *t = &s->run->agent.totals;
	const json_t *tokens = json_object_get(content, "tokens");
	int64_t cost = json_get_fixed(meta, "costCents", 4, -1);

	t->calls++;
	t->input += json_get_int(tokens, "input", 0);
	t->output += json_get_int(tokens, "output", 0);
	t->cache_read += json_get_int(tokens, "cacheRead", 0);
	t->cache_write += json_get_int(tokens, "cacheWrite", 0);
	if (cost >= 0)
		t->cost_microusd += cost;
	else
		t->uncosted_calls++;
	if (json_get_str(content, "errorClass"))
		t->failed_calls++;
}

static void add_result(struct story *s, const json_t *content)
{
	const char *id = json_get_str(content, "callId"), *out = json_get_str(content, "output");

	for (unsigned i = 0; id && i < s->ncalls; i++) {
		if (strcmp(s->calls[i], id) != 0)
			continue;
		s->answered[i] = true;
		buf_adds(&s->outputs[i], out ? out : "");
	}
}

static void add_event(struct story *s, const struct event_view *v)
{
	struct run *r = s->run;
	json_t *content = NULL, *meta = NULL;
	const char *id;

	s->last_ms = v->wall_ms;
	r->seq = v->seq;
	if (v->kind >= 0)
		r->types |= 1u << v->kind;
	if (v->kind != EVENT_InferStart && v->kind != EVENT_InferEnd && v->kind != EVENT_ToolCall &&
	    v->kind != EVENT_ToolResult)
		return;
	content = json_parse(v->content.s, v->content.len, NULL);
	meta = json_parse(v->metadata.s, v->metadata.len, NULL);
	id = json_get_str(content, "callId");
	if (v->kind == EVENT_InferStart && id) {
		snprintf(r->infer_id, sizeof(r->infer_id), "%s", id);
		s->started = true;
		r->agent.iteration = (int32_t)json_get_int(meta, "iteration", r->agent.iteration);
		if (!r->started_wall_ms)
			r->started_wall_ms = v->wall_ms;
	} else if (v->kind == EVENT_InferEnd) {
		r->infer_id[0] = 0;
		s->ncalls = 0;
		add_usage(s, content, meta);
	} else if (v->kind == EVENT_ToolCall && id && s->ncalls < OPEN_CALLS_MAX) {
		buf_reset(&s->outputs[s->ncalls]);
		s->answered[s->ncalls] = false;
		snprintf(s->calls[s->ncalls++], sizeof(s->calls[0]), "%s", id);
		r->agent.totals.tool_calls++;
	} else if (v->kind == EVENT_ToolResult) {
		add_result(s, content);
	}
	json_decref(content);
	json_decref(meta);
}

static void chain_line(struct run *r, const char *line, size_t len)
{
	struct hash_sha256 h;

	hash_sha256_init(&h);
	hash_sha256_add(&h, r->head, sizeof(r->head));
	hash_sha256_add(&h, line, len + 1); /* with its \n */
	hash_sha256_end(&h, r->head);
}

/* The run's file, and its successors where recovery had to begin them. */
static int read_log(struct story *s, struct ava_error *err)
{
	struct run *r = s->run;
	char path[LOGBOOK_PATH], *data;
	const char *line;
	size_t len, at = 0, n;
	int rv;

	logbook_run_path(r->id.text, path);
	rv = logbook_read(r->outbox.lb->root_fd, path, FILE_MAX, &data, &len, err);
	if (rv != 0)
		return rv;
	while (jsonl_next(data, len, &at, &line, &n) == 1) {
		struct event_view v;

		chain_line(r, line, n);
		r->log_bytes += (int64_t)n + 1;
		if (event_view(line, n, &v) == 0 && v.agent_id.len == strlen(r->id.text) &&
		    memcmp(v.agent_id.s, r->id.text, v.agent_id.len) == 0)
			add_event(s, &v);
		else
			s->foreign++;
	}
	free(data);
	if (s->foreign > 0 || r->types == 0)
		return err_set(err, AVA_ECORRUPT,
			       "%s was changed: %u of its lines are no events of this run", path,
			       s->foreign);
	return 0;
}

/* ---- messages.jsonl */

/* The lines behind the first that change the spec: another model, a parameter less. */
static int read_amendments(struct run_spec *spec, const char *data, size_t len,
			   struct ava_error *err)
{
	static const char start[] = "{\"spec\":";
	const char *line;
	size_t at = 0, n;
	int rv = 0;

	(void)jsonl_next(data, len, &at, &line, &n);
	while (rv == 0 && jsonl_next(data, len, &at, &line, &n) == 1) {
		json_t *o;

		if (n < sizeof(start) || memcmp(line, start, sizeof(start) - 1) != 0)
			continue;
		o = json_parse(line, n, err);
		rv = o ? spec_amend(spec, json_object_get(o, "spec"), err)
		       : err_set(err, AVA_ECORRUPT, "an amendment cannot be read");
		json_decref(o);
	}
	return rv;
}

/* The spec of line 1 as it was amended, and the request as it stands. */
static int read_messages(struct supervisor *sup, const struct catalog_row *row,
			 struct run_spec **spec, struct buf *body, struct messages_info *info,
			 struct ava_error *err)
{
	char path[LOGBOOK_PATH], *data = NULL;
	size_t len, at = 0, n;
	const char *line;
	json_t *first = NULL;
	int rv;

	logbook_messages_path(row->id, path);
	rv = logbook_read(sup->book->root_fd, path, FILE_MAX, &data, &len, err);
	if (rv != 0)
		return rv;
	if (jsonl_next(data, len, &at, &line, &n) == 1)
		first = json_parse(line, n, err);
	rv = first ? spec_from_json(spec, json_object_get(first, "spec"), row->session_id,
				    row->request_id, row->user_id, err)
		   : err_set(err, AVA_ECORRUPT, "%s has no readable first line", path);
	if (rv == 0) {
		rv = read_amendments(*spec, data, len, err);
		if (rv == 0)
			rv = messages_request(body, data, len, info, err);
		if (rv != 0) {
			spec_free(*spec);
			*spec = NULL;
		}
	}
	json_decref(first);
	free(data);
	return rv;
}

/* ---- ending an interrupted run */

#define INTERRUPTED "interrupted: the runtime stopped while this ran; it may have happened"

static struct turn *open_turn(struct story *s, const struct buf *body,
			      const struct messages_info *info)
{
	struct run *r = s->run;
	struct turn *t = turn_new();

	if (!t ||
	    r->spec->model.dialect->open_calls(body->data + info->head_len,
					       body->len - info->head_len, t, NULL) != 0 ||
	    t->ncalls == 0) {
		turn_free(t);
		return NULL;
	}
	for (unsigned i = 0; i < t->ncalls; i++) {
		struct turn_call *c = &t->calls[i];
		bool known = i < s->ncalls && s->answered[i];

		if (i < s->ncalls)
			memcpy(c->id, s->calls[i], sizeof(c->id));
		c->answered = true;
		c->recorded = known;
		c->success = known;
		c->error_class = known ? "" : "interrupted";
		c->output =
			known ? arena_copy(&t->mem, s->outputs[i].data ? s->outputs[i].data : "",
					   s->outputs[i].len)
			      : INTERRUPTED;
		if (!c->output)
			c->output = INTERRUPTED;
		c->output_len = strlen(c->output);
	}
	r->turn_open = true;
	return t;
}

static void end_interrupted(struct story *s, struct turn *open, const char *why)
{
	struct run *r = s->run;

	r->interrupted = true;
	if (r->started_wall_ms)
		r->pause_ms = clock_wall_ms() - s->last_ms;
	agent_interrupted(&r->agent, open, why);
}

/* ---- one run */

static int minimal_spec(struct supervisor *sup, const struct catalog_row *row,
			struct run_spec **spec)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:s}", "role",
			      role_find(row->role) ? row->role : "researcher", "task",
			      "(its messages.jsonl cannot be read)", "model", "offline", "origin",
			      row->origin);
	int rv = o ? spec_from_json(spec, o, row->session_id, row->request_id, row->user_id, NULL)
		   : AVA_ENOMEM;

	json_decref(o);
	return rv;
}

static int restart_run(struct supervisor *sup, const struct catalog_row *row,
		       const struct restart_hooks *hooks)
{
	struct story *s = calloc(1, sizeof(*s));
	struct run_spec *spec = NULL;
	struct messages_info info = {0};
	struct ava_error err = {0};
	char path[LOGBOOK_PATH];
	struct buf body;
	int rv, readable;

	if (!s)
		return AVA_ENOMEM;
	for (unsigned i = 0; i < OPEN_CALLS_MAX; i++)
		buf_init(&s->outputs[i], 16384);
	buf_init(&body, FILE_MAX);
	readable = read_messages(sup, row, &spec, &body, &info, &err);
	rv = readable == 0 ? 0 : minimal_spec(sup, row, &spec);
	if (rv == 0)
		rv = supervisor_adopt(sup, spec, row->id, row->trace_id, &s->run, &err);
	if (rv != 0) {
		spec_free(spec);
		goto out;
	}
	s->run->durable = true;
	s->run->spawned_wall_ms = row->started_ms;
	rv = read_log(s, &err);
	if (rv != 0 && readable == 0)
		readable = rv;
	s->run->request_bytes = (int64_t)body.len;
	hash_sha256_init(&s->run->prefix);
	hash_sha256_add(&s->run->prefix, body.data ? body.data : "", body.len);
	rv = 0;
	if (readable != 0) {
		logbook_run_path(row->id, path);
		hooks->problem(path, err.text, hooks->user);
		end_interrupted(s, NULL, err.text);
	} else if (s->started) {
		end_interrupted(s, open_turn(s, &body, &info),
				"the runtime stopped while this run was at work");
	} else {
		supervisor_start(s->run);
	}
	infer_money_settle(s->run);
	group_seen(s->run, s->last_ms);
out:
	for (unsigned i = 0; i < OPEN_CALLS_MAX; i++)
		buf_fini(&s->outputs[i]);
	buf_fini(&body);
	free(s);
	return rv;
}

int restart_runs(struct supervisor *sup, const struct restart_hooks *hooks, struct ava_error *err)
{
	struct scan s = {.sup = sup, .hooks = hooks};
	char *data = NULL;
	struct buf rows;
	size_t len = 0;
	int rv = logbook_read(sup->book->root_fd, CATALOG_PATH, (size_t)1 << 31, &data, &len, err);

	if (rv != 0 && rv != AVA_ENOENT)
		return rv;
	list_init(&s.left);
	strmap_init(&s.by_id);
	buf_init(&rows, (size_t)1 << 31);
	rv = scan_catalog(&s, data, len, err);
	free(data);
	if (rv == 0)
		rv = salvage_runs(sup, hooks, &rows, err);
	if (rv == 0)
		rv = scan_catalog(&s, rows.data, rows.len, err);
	buf_fini(&rows);
	while (!list_empty(&s.left)) {
		struct left *l = LIST_FIRST(&s.left, struct left, node);

		if (rv == 0)
			rv = restart_run(sup, &l->row, hooks);
		if (rv != 0)
			err_set(err, rv, "run %s cannot be taken up again: %s", l->row.id,
				ava_strerror(rv));
		left_free(l);
	}
	strmap_fini(&s.by_id);
	infer_money_restore(sup);
	group_restored(sup);
	return rv;
}

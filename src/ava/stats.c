/* GET /api/v1/stats: what the calls of a span of time cost and how they went, for charts.
 *
 * Happy path: a thread of the pool counts what was called by the key that is asked for, as `ava
 * costs` does (journal/count.h), and reads the events InferEnd and ToolResult of all logs in the
 * span, for how long they took, by model and by tool. Ended runs of the catalog give the ten most
 * expensive. Names beyond the first NAMES_MAX are one, "others". What can fail: words for a key or
 * a time that are none (as `ava logs` takes them), memory; broken lines are left out, `ava logs
 * verify` names them. */
#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/runs.h"
#include "ava/state.h"
#include "ava/verbs.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "event/event.h"
#include "journal/count.h"
#include "journal/query.h"
#include "subagent/supervisor.h"

#define PARTS_MAX 400
#define NAMES_MAX 40
#define RUNS_MAX  100000
#define TOP_RUNS  10
#define SPAN_MS   (7ll * 86400 * 1000) /* default span */

/* Kinds of sums, by their key in the answer. Tools cost nothing. */
enum stats_kind { BY_MODEL, BY_TOOL, STATS_KINDS };
static const char *const stats_kinds[] = {"models", "tools"};

struct sums {
	char *name; /* owned */
	int64_t calls, failed, microusd, input, output, cached;
	int32_t *ms; /* duration of each call that has one */
	size_t nms, cap_ms;
};

struct sums_list {
	struct sums v[NAMES_MAX + 1];
	size_t n;
};

struct stats_args {
	const char *since, *until, *by;
	int64_t parts;
};

struct stats {
	struct stats_args args;
	int64_t from_ms, to_ms;
	enum count_by key;
	char tag[64]; /* of "tag:client"; "": none */
	struct sums_list by[STATS_KINDS];
	struct count rows; /* by `key` */
	int64_t statuses[AVA_NSTATUSES];
	struct catalog_row top[TOP_RUNS]; /* the most expensive runs; they own their strings */
	size_t ntop, nruns;
	bool no_memory;
};

static void stats_sums_fini(struct sums *x)
{
	free(x->name);
	free(x->ms);
	*x = (struct sums){0};
}

/* NULL: without memory. */
static struct sums *sums_of(struct stats *s, enum stats_kind kind, const char *name, size_t len)
{
	struct sums_list *g = &s->by[kind];
	struct sums *x;

	for (size_t i = 0; i < g->n; i++)
		if (strlen(g->v[i].name) == len && memcmp(g->v[i].name, name, len) == 0)
			return &g->v[i];
	if (g->n > NAMES_MAX)
		return &g->v[NAMES_MAX];
	x = &g->v[g->n];
	x->name = g->n < NAMES_MAX ? strndup(name, len) : strdup("others");
	g->n += x->name != NULL;
	if (x < &g->v[g->n])
		return x;
	stats_sums_fini(x);
	s->no_memory = true;
	return NULL;
}

static void add_duration(struct stats *s, struct sums *x, int64_t ms)
{
	if (ms < 0)
		return;
	if (!ARRAY_ROOM(x->ms, x->cap_ms, x->nms + 1))
		s->no_memory = true;
	else
		x->ms[x->nms++] = (int32_t)MIN(ms, (int64_t)INT32_MAX);
}

/* ---- events */

static void stats_add_call(struct stats *s, const struct event_view *v)
{
	json_t *meta = json_parse(v->metadata.s, v->metadata.len, NULL);
	const char *model = json_str(meta, "modelId");
	struct slice tokens = jscan_member(v->content.s, v->content.len, "tokens");
	struct sums *x = sums_of(s, BY_MODEL, *model ? model : "unknown",
				 *model ? strlen(model) : strlen("unknown"));
	int64_t input = MAX(json_get_int(meta, "inputTokens", 0), 0);
	int64_t output = MAX(json_get_int(meta, "outputTokens", 0), 0);

	if (x) {
		x->calls++;
		x->failed += jscan_member(v->content.s, v->content.len, "error").len > 0;
		x->input = sum_to_max(x->input, input);
		x->output = sum_to_max(x->output, output);
		x->cached +=
			MAX(slice_number(jscan_member(tokens.s, tokens.len, "cacheRead"), 0), 0);
		x->microusd =
			sum_to_max(x->microusd, MAX(json_get_fixed(meta, "costCents", 4, 0), 0));
		add_duration(s, x, json_get_int(meta, "duration", -1));
	}
	json_decref(meta);
}

static void stats_add_tool(struct stats *s, const struct event_view *v)
{
	struct slice name = jscan_member(v->content.s, v->content.len, "name");
	struct slice good = jscan_member(v->content.s, v->content.len, "success");
	struct slice ms = jscan_member(v->metadata.s, v->metadata.len, "duration");
	struct sums *x = name.len > 2 ? sums_of(s, BY_TOOL, name.s + 1, name.len - 2) : NULL;

	if (!x)
		return;
	x->calls++;
	x->failed += slice_is(good, "false");
	add_duration(s, x, slice_number(ms, -1));
}

static int add_events(struct stats *s, const struct verb_work *work, struct ava_error *err)
{
	char since[CLOCK_ISO_LEN + 1], until[CLOCK_ISO_LEN + 1];
	struct ava_log_query q = {.root = work->job.core->root,
				  .everything = true,
				  .types = "InferEnd,ToolResult",
				  .since = since,
				  .until = until};
	struct ava_log_event e;
	struct event_view v;
	struct ava_log *log;
	int rv;

	clock_iso(s->from_ms, since);
	clock_iso(s->to_ms, until);
	rv = ava_log_open(&log, &q, err);
	if (rv == AVA_ENOENT) /* nothing has been logged yet */
		return 0;
	if (rv != 0)
		return rv;
	while ((rv = ava_log_next(log, &e, err)) == 1 || rv == AVA_ECORRUPT) {
		if (rv != 1 || event_view(e.line, e.len, &v) != 0)
			continue;
		if (v.kind == EVENT_InferEnd)
			stats_add_call(s, &v);
		else
			stats_add_tool(s, &v);
	}
	ava_log_close(log);
	return rv;
}

/* ---- runs */

/* Takes the row when it is among the most expensive. */
static void stats_add_top(struct stats *s, struct catalog_row *row)
{
	const int64_t cost = row->totals.cost_microusd;
	size_t i = s->ntop;

	if (cost == 0 || (i == TOP_RUNS && s->top[i - 1].totals.cost_microusd >= cost))
		return;
	if (i == TOP_RUNS)
		catalog_row_fini(&s->top[--i]);
	else
		s->ntop++;
	for (; i > 0 && s->top[i - 1].totals.cost_microusd < cost; i--)
		s->top[i] = s->top[i - 1];
	s->top[i] = *row;
	row->owned = NULL;
}

static bool stats_add_run(struct catalog_row *row, void *user)
{
	struct stats *s = user;
	struct op_status r;

	if (row->kind != CATALOG_END)
		return true;
	ended_row(row, &r);
	if (r.ended_ms >= s->from_ms && r.ended_ms < s->to_ms) {
		s->statuses[r.status]++;
		stats_add_top(s, row);
	}
	return ++s->nruns < RUNS_MAX;
}

/* ---- by the key that is asked for */

/* The rest of the rows, behind the first NAMES_MAX, becomes one. */
static void fold_rows(struct stats *s)
{
	struct count *c = &s->rows;
	struct count_row *others = &c->rows[NAMES_MAX];
	char *name = c->n > NAMES_MAX + 1 ? strdup("others") : NULL;

	if (!name) {
		s->no_memory = s->no_memory || c->n > NAMES_MAX + 1;
		return;
	}
	free(others->key);
	others->key = name;
	for (; c->n > NAMES_MAX + 1; c->n--)
		if (!count_merge(others, &c->rows[c->n - 1], (size_t)s->args.parts))
			s->no_memory = true;
}

static int count_by_key(struct stats *s, const struct verb_work *work, struct ava_error *err)
{
	char since[CLOCK_ISO_LEN + 1], until[CLOCK_ISO_LEN + 1];
	const struct ava_log_query q = {.root = work->job.core->root,
					.everything = true,
					.types = "InferEnd,SubagentSpawn,SubagentComplete",
					.since = since,
					.until = until};
	const struct count_watch watch = {.tag = s->tag[0] ? s->tag : NULL,
					  .runs = true,
					  .parts = (size_t)s->args.parts,
					  .from_ms = s->from_ms,
					  .to_ms = s->to_ms};
	int rv;

	clock_iso(s->from_ms, since);
	clock_iso(s->to_ms, until);
	rv = count_events(&s->rows, &q, s->key, &watch, err);
	if (rv == 0)
		fold_rows(s);
	return rv == AVA_ENOENT ? 0 : rv; /* nothing has been logged yet */
}

/* ---- the answer */

static int stats_by_ms(const void *a, const void *b)
{
	const int32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void write_percentiles(struct jw *w, int32_t *ms, size_t n)
{
	static const struct {
		const char *key;
		unsigned of_100;
	} shown[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"max", 100}};

	if (n == 0) /* no median without a call */
		return;
	qsort(ms, n, sizeof(*ms), stats_by_ms);
	jw_object(w, "ms");
	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		jw_int(w, shown[i].key, ms[(n - 1) * shown[i].of_100 / 100]);
	jw_end(w);
}

/* Columns of `ava costs`, and the parts of a row they show. */
static void stats_write_rows(struct jw *w, const struct stats *s)
{
	jw_array(w, "rows");
	for (size_t i = 0; i < s->rows.n; i++) {
		const struct count_row *x = &s->rows.rows[i];

		jw_object(w, NULL);
		jw_str(w, "name", x->key);
		jw_int(w, "runs", (int64_t)x->runs);
		jw_int(w, "failed", (int64_t)x->failed);
		jw_int(w, "calls", (int64_t)x->calls);
		jw_int(w, "uncosted", (int64_t)x->uncosted);
		write_percentiles(w, x->ms, x->nms);
		jw_fixed(w, "cost_cents", (int64_t)x->cost_microusd, 4);
		jw_int(w, "tokens", (int64_t)(x->input_tokens + x->output_tokens));
		jw_int(w, "input", (int64_t)x->input_tokens);
		jw_int(w, "output", (int64_t)x->output_tokens);
		jw_int(w, "cached", (int64_t)x->cached_tokens);
		jw_array(w, "cost_parts");
		for (int64_t k = 0; k < s->args.parts; k++)
			jw_fixed(w, NULL, x->part_microusd ? (int64_t)x->part_microusd[k] : 0, 4);
		jw_end(w);
		jw_array(w, "token_parts");
		for (int64_t k = 0; k < s->args.parts; k++)
			jw_int(w, NULL, x->part_tokens ? (int64_t)x->part_tokens[k] : 0);
		jw_end(w);
		jw_end(w);
	}
	jw_end(w);
}

static void write_group(struct jw *w, enum stats_kind kind, struct stats *s)
{
	struct sums_list *g = &s->by[kind];

	jw_array(w, stats_kinds[kind]);
	for (size_t i = 0; i < g->n; i++) {
		struct sums *x = &g->v[i];

		jw_object(w, NULL);
		jw_str(w, "name", x->name);
		jw_int(w, "calls", x->calls);
		jw_int(w, "failed", x->failed);
		write_percentiles(w, x->ms, x->nms);
		if (kind != BY_TOOL) {
			jw_fixed(w, "cost_cents", x->microusd, 4);
			jw_int(w, "tokens", sum_to_max(x->input, x->output));
			jw_int(w, "input", x->input);
			jw_int(w, "output", x->output);
			jw_int(w, "cached", x->cached);
		}
		jw_end(w);
	}
	jw_end(w);
}

static void write_top(struct jw *w, const struct stats *s)
{
	jw_array(w, "top");
	for (size_t i = 0; i < s->ntop; i++) {
		struct op_status r;

		ended_row(&s->top[i], &r);
		jw_object(w, NULL);
		jw_str(w, "id", r.id);
		jw_str(w, "task", r.task);
		jw_str(w, "role", r.role);
		jw_str(w, "model", r.model);
		jw_str(w, "status", ava_status_name(r.status));
		verb_cost(w, "cost_cents", r.cost_microusd);
		verb_time(w, "started_at", r.started_ms);
		jw_end(w);
	}
	jw_end(w);
}

static int stats_job(struct verb_work *work, struct ava_error *err)
{
	struct stats *s = work->own;
	struct jw *w = &work->answer.w;
	int rv = add_events(s, work, err);

	if (rv == 0)
		rv = count_by_key(s, work, err);
	if (rv == 0)
		rv = history_each(work->job.core->root_fd, true, stats_add_run, s, err);
	if (rv == 0 && s->no_memory)
		rv = err_set(err, AVA_ENOMEM, "out of memory: ask for a shorter time");
	if (rv == 0) {
		jw_object(w, NULL);
		verb_time(w, "since", s->from_ms);
		verb_time(w, "until", s->to_ms);
		jw_fixed(w, "part_seconds", (s->to_ms - s->from_ms) / s->args.parts, 3);
		for (enum stats_kind kind = 0; kind < STATS_KINDS; kind++)
			write_group(w, kind, s);
		stats_write_rows(w, s);
		write_top(w, s);
		jw_object(w, "runs");
		for (size_t i = 0; i < ARRAY_LEN(s->statuses); i++)
			if (s->statuses[i] > 0)
				jw_int(w, ava_status_name((enum ava_status)i), s->statuses[i]);
		jw_end(w);
		jw_end(w);
	}
	for (size_t i = 0; i < STATS_KINDS; i++)
		for (size_t k = 0; k < s->by[i].n; k++)
			stats_sums_fini(&s->by[i].v[k]);
	count_fini(&s->rows);
	while (s->ntop > 0)
		catalog_row_fini(&s->top[--s->ntop]);
	return rv;
}

static const struct arg stats_args[] = {
	{"since", ARG_TEXT, offsetof(struct stats_args, since)},
	{"until", ARG_TEXT, offsetof(struct stats_args, until)},
	{"by", ARG_TEXT, offsetof(struct stats_args, by)},
	{"parts", ARG_COUNT, offsetof(struct stats_args, parts), 1, PARTS_MAX},
	{NULL},
};

static void verb_stats(struct verb_call *v)
{
	struct stats s = {.args = {.parts = 60}};
	const char *tag = NULL;
	struct ava_error err = {0};
	int64_t now = clock_wall_ms();
	int rv;

	if (!verb_args(v, &s.args))
		return;
	s.from_ms = now - SPAN_MS;
	s.to_ms = now + 1;
	rv = count_by_name(s.args.by ? s.args.by : "model", &s.key, &tag, &err);
	snprintf(s.tag, sizeof(s.tag), "%s", tag ? tag : "");
	if (rv == 0 && s.args.since)
		rv = query_time(s.args.since, now, &s.from_ms, &err);
	if (rv == 0 && s.args.until)
		rv = query_time(s.args.until, now, &s.to_ms, &err);
	if (rv == 0 && s.from_ms >= s.to_ms)
		rv = err_set(&err, AVA_EINVAL, "since must be before until");
	if (rv != 0)
		verb_fail(v->reply, rv, &err);
	else
		verb_work(v, &(struct verb_work){.work = stats_job, .own = &s}, sizeof(s), false);
}

const struct verb verbs_about_stats[] = {
	{"GET", "/api/v1/stats", verb_stats, stats_args, false},
	{NULL},
};

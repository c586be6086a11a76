/* A run's row, from two lines of its log: SubagentSpawn has the task and the limits, and
 * SubagentComplete how it ended and what it cost. A line that is cut or is another one leaves out
 * what it would tell. */
#include "cluster/row.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "codec/json.h"

static void row_shown(struct catalog_row *row, const json_t *o, char task[CATALOG_TASK_MAX + 1])
{
	const json_t *l = json_object_get(o, "limits");
	const char *text = json_str(o, "task");
	size_t len = strlen(text), cut = MIN(len, (size_t)CATALOG_TASK_MAX);

	while (cut > 0 && cut < len && ((unsigned char)text[cut] & 0xc0) == 0x80)
		cut--;
	snprintf(task, CATALOG_TASK_MAX + 1, "%.*s", (int)cut, text);
	row->shown = (struct catalog_shown){
		.task = task,
		.cwd = json_str(o, "cwd"),
		.stop_reason = "",
		.limit_ms = json_get_fixed(l, "seconds", 3, 0),
		.limit_microusd = json_get_fixed(l, "costCents", 4, 0),
		.limit_tokens = json_get_int(l, "tokens", 0),
		.limit_iterations = json_get_int(l, "iterations", 0),
	};
}

static void row_ended(struct catalog_row *row, const json_t *event)
{
	const json_t *o = json_object_get(event, "content"), *t = json_object_get(o, "totals");
	const char *status = json_str(o, "status");
	int64_t cost = json_get_fixed(t, "costCents", 4, -1);

	for (int i = 0; i < AVA_NSTATUSES; i++)
		if (strcmp(ava_status_name((enum ava_status)i), status) == 0)
			row->status = (enum ava_status)i;
	row->ended_ms = MAX(json_time(json_object_get(event, "timestamp")), 0);
	if (row->shown.task)
		row->shown.stop_reason = json_str(o, "stopReason");
	row->shown.iterations = json_get_int(t, "iterations", 0);
	row->totals = (struct catalog_totals){
		.input_tokens = json_get_int(t, "inputTokens", 0),
		.output_tokens = json_get_int(t, "outputTokens", 0),
		.cost_microusd = MAX(cost, 0),
		.duration_ms = json_get_int(t, "durationMs", 0),
		.uncosted_calls = cost < 0,
		.estimated_calls = json_get_int(t, "estimatedCalls", 0),
	};
}

/* The event in a line; NULL: it is none of that name. */
static json_t *row_event(const char *line, size_t len, const char *type)
{
	json_t *o = json_parse(line, len, NULL);

	if (strcmp(json_str(o, "eventType"), type) == 0)
		return o;
	json_decref(o);
	return NULL;
}

static json_t *row_first(struct slice log)
{
	const char *nl = log.s ? memchr(log.s, '\n', log.len) : NULL;

	return nl ? row_event(log.s, (size_t)(nl - log.s), "SubagentSpawn") : NULL;
}

static json_t *row_last(struct slice log)
{
	const char *nl = log.s && log.len > 1 ? memrchr(log.s, '\n', log.len - 1) : NULL;
	const char *line = nl ? nl + 1 : log.s;

	if (!log.s || log.len < 2)
		return NULL;
	return row_event(line, (size_t)(log.s + log.len - 1 - line), "SubagentComplete");
}

bool run_row(struct catalog_row *out, const struct run_edges *e)
{
	char task[CATALOG_TASK_MAX + 1];
	struct catalog_row base, row;
	json_t *first, *last;
	struct buf line;
	bool ok;

	*out = (struct catalog_row){0};
	if (!e->row.s || catalog_parse(e->row.s, e->row.len, &base, NULL) != 0)
		return false;
	row = base;
	row.kind = e->ended ? CATALOG_END : CATALOG_SPAWN;
	row.status = AVA_ERROR;
	first = row_first(e->first);
	last = e->ended ? row_last(e->last) : NULL;
	if (first)
		row_shown(&row, json_object_get(first, "content"), task);
	if (last)
		row_ended(&row, last);
	/* Encoded and parsed, its strings are its own. */
	buf_init(&line, 1u << 20);
	ok = catalog_encode(&line, &row) == 0 &&
	     catalog_parse(line.data, line.len - 1, out, NULL) == 0;
	buf_fini(&line);
	json_decref(first);
	json_decref(last);
	catalog_row_fini(&base);
	return ok;
}

bool run_result_hash(struct slice log, char hash[HASH_HEX_LEN + 1])
{
	json_t *last = row_last(log);
	const char *named = json_str(json_object_get(last, "content"), "resultHash");
	bool ok = strlen(named) == HASH_HEX_LEN;

	if (ok)
		memcpy(hash, named, HASH_HEX_LEN + 1);
	json_decref(last);
	return ok;
}

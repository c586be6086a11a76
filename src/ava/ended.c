/* Of a run: only two lines of its log are parsed: SubagentSpawn is its first, and
 * SubagentComplete its last. A run whose log lacks either is shown as far as
 * it can be read.
 *
 * Of all of them: the catalog, read backwards in blocks; lines are taken off the end, the
 * beginning of a line that a block cuts is kept for the block before it. A part that cannot
 * be read, or a line longer than a row can be, ends that part: a listing is then short, and
 * the start has already said why. */
#include "ava/ended.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/id.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/jsonl.h"
#include "codec/utf8.h"
#include "event/event.h"
#include "journal/files.h"
#include "journal/view.h"
#include "subagent/logbook.h"

#define EDGE_BYTES  (64u << 10)
#define BLOCK_BYTES (64u << 10)
#define ROW_MAX     (1u << 20)

/* The tool that was called last, as far as the line says; not what ends a run. */
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
	tool = name ? tool_find(name) : NULL;
	if (name && !(tool && (tool->flags & TOOL_ENDS))) {
		snprintf(out->last_tool, sizeof(out->last_tool), "%.*s",
			 (int)utf8_prefix(name, strlen(name), sizeof(out->last_tool) / 4), name);
		out->status.last_tool_ms = v.wall_ms;
	}
	json_decref(content);
}

/* The first whole line at the beginning, or the last one before the end, on the
 * way there the last tool; *json is NULL when there is none that can be read.
 * 0, or AVA_ENOMEM. */
static int read_edge(int root_fd, const char *path, bool last, struct ended *out, json_t **json)
{
	char *edge = malloc(EDGE_BYTES);
	const char *line = NULL, *found = NULL;
	size_t len = 0, at = 0, n = 0, found_len = 0;
	struct ava_error err = {0};
	struct stat st;
	int fd = edge ? sys->openat(root_fd, path, O_RDONLY | O_CLOEXEC, 0) : -1;

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
	const char *s = json_get_str(event, "timestamp");

	return s ? MAX(clock_parse_iso(s, strlen(s)), 0) : 0;
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
		.stop_reason = "",
		.activity = "",
		.last_tool = "",
		.status = AVA_ERROR,
		.started_ms = event_time(event),
		.limit_time_ms = json_get_fixed(l, "seconds", 3, 0),
		.limit_cost_microusd = json_get_fixed(l, "costCents", 4, 0),
		.limit_tokens = json_get_int(l, "tokens", 0),
		.limit_iterations = (int)json_get_int(l, "iterations", 0),
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
	int rv;

	if (!id_is_run(run))
		return err_set(err, AVA_EINVAL, "%.40s is not a run id (S- and hex digits)", run);
	logbook_result_path(run, path);
	rv = sys_read_file(root_fd, path, 64u << 20, json, len, err);
	if (rv == AVA_ENOENT)
		err_set(err, rv, "there is no result of %s (ava ps -a lists the runs)", run);
	return rv;
}

/* ---- the catalog, from its end */

struct back {
	char *buf; /* BLOCK_BYTES before ROW_MAX for what is kept */
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

/* The whole lines in [0, len) of `text`, the last one first; returns how many
 * bytes at its beginning are a line whose start is not there yet. */
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

/* The part is [0, size) of `fd`, up to the end of its last line. */
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

void history_each(int root_fd, bool ends, bool (*each)(struct catalog_row *row, void *user),
		  void *user)
{
	struct back b = {
		.buf = malloc(BLOCK_BYTES + ROW_MAX), .each = each, .user = user, .ends = ends};
	char name[FILES_BUF];
	struct stat st;

	for (unsigned parts = view_find_part(root_fd, CATALOG_PATH);
	     parts > 0 && b.buf && !b.enough; parts--) {
		int fd = sys->openat(root_fd, files_part_name(CATALOG_PATH, parts, name),
				     O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);

		if (fd < 0)
			continue;
		if (sys->fstat(fd, &st) == 0)
			history_part(&b, fd, st.st_size);
		sys->close(fd);
	}
	free(b.buf);
}

/* ---- one of them */

/* What the catalog knows of a run: all that a listing shows. */
void ended_row(const struct catalog_row *row, struct op_status *s)
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

/* Two lines of its log; 0, AVA_ENOENT, AVA_ENOMEM. */
static int read_log(int root_fd, const char *run, struct ended *out)
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
	row->owned = NULL; /* taken */
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
	rv = read_log(root_fd, run, out);
	if (rv == AVA_ENOENT) { /* its files may be pruned */
		history_each(root_fd, false, look_at_row, &l);
		rv = out->row.id ? 0 : rv;
	}
	if (rv == 0)
		return 0;
	ended_fini(out);
	return err_set(err, rv,
		       rv == AVA_ENOMEM ? "out of memory"
					: "there is no run %s (ava ps -a lists them)",
		       run);
}

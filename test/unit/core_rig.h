/* The runtime through its verbs, in a data root of its own with two source files beside it:
 * asked, waited for, and its log read as a person would. */
#ifndef UNIT_CORE_RIG_H
#define UNIT_CORE_RIG_H

#include "world.h"

#include <string.h>

#include "ava/ops.h"
#include "ava/state.h"
#include "base/util.h"
#include "codec/json.h"
#include "runs_now.h"

static inline struct world *core_world(const char *model)
{
	struct world *w = world_new(model);

	write_file(w->src, "parser.c",
		   "#include <stdio.h>\n\n/* The parser of headers. */\n"
		   "int parse_header(const char *s)\n{\n\treturn s[0] == 'H';\n}\n");
	write_file(w->src, "main.c",
		   "int parse_header(const char *s);\n\nint main(void)\n{\n"
		   "\treturn parse_header(\"H\");\n}\n");
	return w;
}

/* ---- asking */

struct got {
	int calls, rv;
	char id[32], trace[64], word[32], text[512];
	json_t *json;
};

static inline void status_cb(int rv, const struct op_status *s, const struct ava_error *err,
			     void *user)
{
	struct got *g = user;

	g->calls++;
	g->rv = rv;
	if (rv == 0) {
		snprintf(g->id, sizeof(g->id), "%s", s->id);
		snprintf(g->trace, sizeof(g->trace), "%s", s->trace_id);
		snprintf(g->word, sizeof(g->word), "%s", ava_status_name(s->status));
	} else {
		snprintf(g->text, sizeof(g->text), "%s", err->text);
	}
}

static inline void result_cb(int rv, const char *json, size_t len, const struct ava_error *err,
			     void *user)
{
	struct got *g = user;

	g->calls++;
	g->rv = rv;
	if (rv == 0)
		g->json = json_parse(json, len, NULL);
	else
		snprintf(g->text, sizeof(g->text), "%s", err->text);
}

static inline void until(struct world *w, struct got *g)
{
	for (int i = 0; g->calls == 0 && i < 6000; i++)
		os_loop_step(w->loop, 10);
	assert_int_equal(g->calls, 1);
}

static inline struct op_spawn ask(struct world *w, const char *task)
{
	return spawn_usual(task, w->src);
}

static inline struct got spawn(struct world *w, const struct op_spawn *s)
{
	struct got g = {0};

	ops_spawn(w->core, s, status_cb, &g);
	until(w, &g);
	if (g.rv != 0)
		fail_msg("%s", g.text);
	return g;
}

static inline struct got cancel(struct world *w, const char *run)
{
	struct got g = {0};

	ops_cancel(w->core, run, NULL, NULL, status_cb, &g);
	until(w, &g);
	return g;
}

static inline json_t *result_of(struct world *w, const char *run)
{
	struct got g = {0};

	ops_result(w->core, run, 60000, result_cb, &g);
	until(w, &g);
	if (g.rv != 0)
		fail_msg("%s", g.text);
	assert_non_null(g.json);
	return g.json;
}

static inline void assert_result(const json_t *r, const char *status, const char *reason)
{
	if (strcmp(json_get_str(r, "status"), status) != 0 ||
	    strcmp(json_get_str(r, "stop_reason"), reason) != 0)
		fail_msg("%s, %s: %s", json_get_str(r, "status"), json_get_str(r, "stop_reason"),
			 json_get_str(r, "error"));
}

static inline void assert_ended(struct world *w, const char *run, const char *status,
				const char *reason)
{
	json_t *r = result_of(w, run);

	assert_result(r, status, reason);
	json_decref(r);
}

/* ---- the log of a run */

/* The contents of its events of a type; NULL: of all. */
static inline json_t *events(struct world *w, const char *run, const char *type)
{
	struct ava_log_query q = {.root = w->root, .run = run, .types = type};
	struct ava_log_event e;
	struct ava_log *log;
	json_t *all = json_array(), *one;
	int rv;

	assert_int_equal(ava_log_open(&log, &q, NULL), 0);
	while ((rv = ava_log_next(log, &e, NULL)) == 1) {
		one = json_parse(e.line, e.len, NULL);
		json_array_append(all, json_object_get(one, "content"));
		json_decref(one);
	}
	assert_int_equal(rv, 0);
	ava_log_close(log);
	return all;
}

static inline size_t count_events(struct world *w, const char *run, const char *type)
{
	json_t *all = events(w, run, type);
	size_t n = json_array_size(all);

	json_decref(all);
	return n;
}

static inline void assert_paired(struct world *w, const char *run)
{
	assert_int_equal(count_events(w, run, "InferStart"), count_events(w, run, "InferEnd"));
	assert_int_equal(count_events(w, run, "ToolCall"), count_events(w, run, "ToolResult"));
	assert_int_equal(count_events(w, run, "SubagentComplete"), 1);
}

#endif

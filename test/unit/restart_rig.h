/* Runs that a stop left, and the start that takes them up: catalog rows, logs and
 * conversations are written by the supervisor. No model is called. */
#ifndef RESTART_RIG_H
#define RESTART_RIG_H

#include "logbook_rig.h"
#include "spec_rig.h"

#include "base/clock.h"
#include "base/settings.h"
#include "base/util.h"
#include "codec/json.h"
#include "provider/dialect.h"
#include "subagent/run.h"
#include "subagent/person.h"
#include "subagent/restart.h"
#include "subagent/supervisor.h"

struct world {
	struct rig r;
	struct settings settings;
	struct supervisor sup;
	char problems[4096], requests[512];
	struct ava_error err;
};

static inline void open_world(struct world *w)
{
	rig_open(&w->r);
	supervisor_init(&w->sup, w->r.loop, &w->r.book, &w->settings);
	w->sup.closing = true; /* no slots: nothing calls a model */
	w->problems[0] = w->requests[0] = 0;
	w->err = (struct ava_error){0};
}

static inline void init_world(struct world *w)
{
	rig_init(&w->r);
	assert_int_equal(settings_load(&w->settings, NULL), 0);
	open_world(w);
}

static inline void close_world(struct world *w)
{
	supervisor_quiesce(&w->sup);
	for (int i = 0; i < 100 && !supervisor_written(&w->sup); i++)
		journal_sync(w->r.j);
	w->r.book.closed = true;
	journal_close(w->r.j);
	w->r.j = NULL;
	supervisor_close(&w->sup);
	supervisor_fini(&w->sup);
	rig_close(&w->r);
}

static inline void fini_world(struct world *w)
{
	close_world(w);
	sys = &sys_real;
	unit_rmdir(w->r.root);
}

#define WORLD_TEST(name) TEST_IN(name, struct world, w, init_world, fini_world)

/* ---- what a stop leaves */

struct left {
	char id[24], trace[48], log[LOGBOOK_PATH], messages[LOGBOOK_PATH], result[LOGBOOK_PATH];
};

static inline void nothing(int rv, void *user)
{
	assert_int_equal(rv, 0);
}

static inline void commit(struct world *w, struct draft *d)
{
	assert_int_equal(draft_commit(d, JOURNAL_NOW, nothing, NULL, NULL), 0);
	assert_int_equal(journal_sync(w->r.j), 0);
}

static inline struct left queued_in(struct world *w, const char *request_id,
				    const struct spec_group *group)
{
	struct op_spawn s = spawn_usual("look at it", w->r.root);
	struct draft *d = draft_new(&w->r.book);
	struct run_spec *spec = NULL;
	struct left l;
	struct run *r = NULL;

	s.request_id = request_id;
	s.group = group;
	s.on_limit = "ask";
	if (spec_build(&spec, &s, &w->settings, "offline", NULL, &w->err) != 0 ||
	    supervisor_spawn(&w->sup, spec, "", d, &r, &w->err) != 0)
		fail_msg("%s", w->err.text);
	commit(w, d);
	snprintf(l.id, sizeof(l.id), "%s", r->id.text);
	snprintf(l.trace, sizeof(l.trace), "%s", r->trace.text);
	logbook_run_path(l.id, l.log);
	logbook_messages_path(l.id, l.messages);
	logbook_result_path(l.id, l.result);
	return l;
}

/* A run that is accepted, and never started. */
static inline struct left queued(struct world *w, const char *request_id)
{
	return queued_in(w, request_id, NULL);
}

/* An event of the run with this content, as the run would have written it. */
static inline void add(struct world *w, const struct left *l, enum event_kind kind,
		       const char *content)
{
	struct run *r = supervisor_find(&w->sup, l->id);
	struct draft *d = draft_new(&w->r.book);
	struct draft_where where = {.run = l->id, .log = &r->rec.log};
	struct event_head head = {.kind = kind, .agent_id = l->id, .trace_id = l->trace};
	TEST_BUF(b, 4096);

	buf_adds(&b, content);
	assert_int_equal(draft_event(d, &where, &head, &b, NULL), 0);
	commit(w, d);
}

/* A call of the model is under way: its InferStart and the position (`machine`: more
 * members of it, `run`: of its part). */
static inline void asks_model(struct world *w, const struct left *l, int iteration,
			      const char *machine, const char *run)
{
	char text[1200];

	snprintf(text, sizeof(text), "{\"callId\":\"i%d\"}", iteration);
	add(w, l, EVENT_InferStart, text);
	snprintf(text, sizeof(text),
		 "{\"key\":\"position\",\"value\":{\"iteration\":%d,\"calls\":%d%s,"
		 "\"run\":{\"call\":\"i%d\",\"attempts\":1%s}}}",
		 iteration, iteration, machine, iteration, run);
	add(w, l, EVENT_StateWrite, text);
}

/* A reply with two calls, the first answered; the process ended there. */
static inline struct left at_work(struct world *w)
{
	static const char reply[] =
		"{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t1\","
		"\"name\":\"read_file\",\"input\":{\"path\":\"a\"}},{\"type\":\"tool_use\","
		"\"id\":\"t2\",\"name\":\"read_file\",\"input\":{\"path\":\"b\"}}]}\n";
	struct left l = queued(w, "");
	struct draft *d = draft_new(&w->r.book);

	asks_model(w, &l, 1, "", "");
	buf_adds(draft_part(d, DRAFT_MESSAGES, l.messages), reply);
	commit(w, d);
	add(w, &l, EVENT_InferEnd,
	    "{\"callId\":\"i1\",\"tokens\":{\"input\":70,\"output\":7,\"cacheRead\":0,"
	    "\"cacheWrite\":0,\"reasoning\":0}}");
	add(w, &l, EVENT_ToolCall, "{\"callId\":\"c1.1\",\"name\":\"read_file\"}");
	add(w, &l, EVENT_ToolCall, "{\"callId\":\"c1.2\",\"name\":\"read_file\"}");
	add(w, &l, EVENT_ToolResult,
	    "{\"callId\":\"c1.1\",\"success\":true,\"output\":\"what a holds\"}");
	return l;
}

/* ---- the start */

static inline void on_request(const char *request_id, const char *run, const char *trace,
			      int64_t spawned_ms, void *user)
{
	struct world *w = user;
	size_t n = strlen(w->requests);

	assert_true(spawned_ms > 0);
	snprintf(w->requests + n, sizeof(w->requests) - n, "%s=%s ", request_id, run);
}

static inline void on_problem(const char *path, const char *sentence, void *user)
{
	struct world *w = user;
	size_t n = strlen(w->problems);

	assert_null(strchr(sentence, '\n'));
	snprintf(w->problems + n, sizeof(w->problems) - n, "%s: %s\n", path, sentence);
}

static inline int take_up(struct world *w)
{
	struct restart_hooks hooks = {.request = on_request, .problem = on_problem, .user = w};

	return restart_runs(&w->sup, &hooks, &w->err);
}

static inline void restart(struct world *w)
{
	open_world(w);
	if (take_up(w) != 0)
		fail_msg("restart_runs: %s", w->err.text);
}

/* The run has ended as `interrupted`, in all its files. */
static inline void assert_interrupted(struct world *w, const struct left *l)
{
	char want[96];

	RIG_UNTIL(&w->r, !supervisor_find(&w->sup, l->id));
	assert_true(rig_holds(&w->r, l->result, "\"status\":\"error\""));
	assert_true(rig_holds(&w->r, l->result, "\"stop_reason\":\"interrupted\""));
	assert_true(rig_holds(&w->r, l->log, "\"eventType\":\"SubagentComplete\""));
	snprintf(want, sizeof(want), "\"id\":\"%s\"", l->id);
	assert_true(rig_holds(&w->r, CATALOG_PATH, want));
	assert_true(rig_holds(&w->r, CATALOG_PATH, "\"row\":\"end\""));
}

/* It waits for a slot with what it had done behind it. */
static inline struct run *carried(struct world *w, const struct left *l)
{
	struct run *r = supervisor_find(&w->sup, l->id);

	assert_non_null(r);
	RIG_UNTIL(&w->r, !list_empty(&r->queue));
	assert_int_equal(run_status(r), AVA_QUEUED);
	return r;
}

static inline void assert_queued(struct world *w, const struct left *l)
{
	struct run *r = supervisor_find(&w->sup, l->id);

	assert_non_null(r);
	assert_string_equal(r->trace.text, l->trace);
	assert_string_equal(r->spec->task, "look at it");
	RIG_UNTIL(&w->r, !list_empty(&r->queue));
	assert_int_equal(run_status(r), AVA_QUEUED);
}

#endif

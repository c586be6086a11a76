/* The runtime as a whole, through its verbs: real journal, real tools, the
 * offline model and its scripts, in a data root of its own. What is simulated
 * in test/sim happens here for real. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/tool.h"
#include "ava/core.h"
#include "ava/ops.h"
#include "ava/proposal.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/settings.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "os/loop.h"
#include "provider/messages.h"

struct world {
	char dir[256], root[300], src[300];
	struct os_loop *loop;
	struct settings settings;
	struct core *core;
};

static void open_core(struct world *w)
{
	struct core_options o = {
		.loop = w->loop, .root = w->root, .settings = &w->settings, .model = "offline"};
	struct ava_error err = {0};

	if (core_open(&w->core, &o, &err) != 0)
		fail_msg("core_open: %s", err.text);
}

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[400];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	snprintf(w->dir, sizeof(w->dir), "%s", unit_tmpdir());
	snprintf(w->root, sizeof(w->root), "%s/data", w->dir);
	snprintf(w->src, sizeof(w->src), "%s/src", w->dir);
	mkdir(w->root, 0700);
	mkdir(w->src, 0700);
	write_file(w->src, "parser.c",
		   "#include <stdio.h>\n\n/* The parser of headers. */\n"
		   "int parse_header(const char *s)\n{\n\treturn s[0] == 'H';\n}\n");
	write_file(w->src, "main.c",
		   "int parse_header(const char *s);\n\nint main(void)\n{\n"
		   "\treturn parse_header(\"H\");\n}\n");
	settings_load(&w->settings, NULL);
	w->settings.disk_free_min_mb = 0;
	w->loop = os_loop_new(NULL);
	assert_non_null(w->loop);
	open_core(w);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	if (w->core)
		core_close(w->core);
	os_loop_free(w->loop);
	unit_rmdir(w->dir);
	free(w);
	return 0;
}

static void reopen(struct world *w)
{
	core_close(w->core);
	open_core(w);
}

/* ---- asking */

struct got {
	int rv, calls;
	char id[32], trace[64], run[32], word[32], reason[32];
	enum proposal_step state;
	bool repeated;
	char text[512];
	json_t *json;
};

static void status_cb(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	struct got *g = user;

	g->calls++;
	g->rv = rv;
	if (rv == 0) {
		snprintf(g->id, sizeof(g->id), "%s", s->id);
		snprintf(g->trace, sizeof(g->trace), "%s", s->trace_id);
		snprintf(g->word, sizeof(g->word), "%s", ava_status_name(s->status));
		snprintf(g->reason, sizeof(g->reason), "%s", s->stop_reason ? s->stop_reason : "");
	} else {
		snprintf(g->text, sizeof(g->text), "%s", err->text);
	}
}

static void proposal_cb(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
			void *user)
{
	struct got *g = user;

	g->calls++;
	g->rv = rv;
	if (rv == 0) {
		snprintf(g->id, sizeof(g->id), "%s", p->id);
		snprintf(g->run, sizeof(g->run), "%s", p->run);
		g->state = p->step;
		g->repeated = repeated;
	} else {
		snprintf(g->text, sizeof(g->text), "%s", err->text);
	}
}

static void result_cb(int rv, const char *json, size_t len, const struct ava_error *err, void *user)
{
	struct got *g = user;

	g->calls++;
	g->rv = rv;
	if (rv == 0)
		g->json = json_parse(json, len, NULL);
	else
		snprintf(g->text, sizeof(g->text), "%s", err->text);
}

static void until(struct world *w, struct got *g)
{
	for (int i = 0; g->calls == 0 && i < 3000; i++)
		os_loop_step(w->loop, 10);
	assert_int_equal(g->calls, 1);
}

/* A reply that does not come. */
#define LATE "{\"text\":\"late\",\"delay_ms\":3600000}\n"

static struct op_spawn ask(struct world *w, const char *task)
{
	return (struct op_spawn){
		.role = "code_reviewer",
		.task = task,
		.cwd = w->src,
		.origin = "test",
		.session_id = "s1",
		.user_id = "tester",
		.request_id = "",
		.timeout_ms = AVA_DEFAULT,
		.max_cost_microusd = AVA_DEFAULT,
		.max_tokens = AVA_DEFAULT,
		.max_iterations = AVA_DEFAULT,
	};
}

static struct got spawn(struct world *w, const struct op_spawn *s)
{
	struct got g = {0};

	ops_spawn(w->core, s, status_cb, &g);
	until(w, &g);
	return g;
}

/* The model id of a script with these lines. */
static const char *script(struct world *w, const char *lines)
{
	static char id[400];
	static int n;
	char name[32];

	snprintf(name, sizeof(name), "script%d.jsonl", n++);
	write_file(w->dir, name, lines);
	snprintf(id, sizeof(id), "offline:%s/%s", w->dir, name);
	return id;
}

static json_t *result_of(struct world *w, const char *run)
{
	struct got g = {0};

	ops_result(w->core, run, 30000, result_cb, &g);
	until(w, &g);
	if (g.rv != 0)
		fail_msg("%s", g.text);
	assert_non_null(g.json);
	return g.json;
}

static void assert_ended(struct world *w, const char *run, const char *status, const char *reason)
{
	json_t *r = result_of(w, run);

	assert_string_equal(json_get_str(r, "status"), status);
	assert_string_equal(json_get_str(r, "stop_reason"), reason);
	json_decref(r);
}

/* ---- the log of a run, as a person would read it */

static unsigned count_events(struct world *w, const char *run, const char *type)
{
	struct ava_log_query q = {.root = w->root, .run = run, .types = type};
	struct ava_log_event e;
	struct ava_log *log;
	unsigned n = 0;
	int rv;

	assert_int_equal(ava_log_open(&log, &q, NULL), 0);
	while ((rv = ava_log_next(log, &e, NULL)) == 1)
		n++;
	assert_int_equal(rv, 0);
	ava_log_close(log);
	return n;
}

static void assert_paired(struct world *w, const char *run)
{
	assert_int_equal(count_events(w, run, "InferStart"), count_events(w, run, "InferEnd"));
	assert_int_equal(count_events(w, run, "ToolCall"), count_events(w, run, "ToolResult"));
	assert_int_equal(count_events(w, run, "SubagentComplete"), 1);
}

/* ---- the main job */

TEST(main_job_with_citations)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "Where is parse_header defined and who calls it?");
	struct got g = spawn(w, &s);
	json_t *r = result_of(w, g.id), *c;
	size_t i;

	assert_string_equal(json_get_str(r, "status"), "success");
	assert_true(json_array_size(json_object_get(r, "citations")) > 0);
	json_array_foreach(json_object_get(r, "citations"), i, c)
	{
		const char *path = json_get_str(c, "path");

		assert_true(strcmp(path, "parser.c") == 0 || strcmp(path, "main.c") == 0);
		assert_true(json_get_int(c, "line", 0) > 0);
	}
	assert_true(json_get_fixed(r, "confidence", 3, -1) > 0);
	assert_true(json_get_int(r, "tokens_used", 0) > 0);
	json_decref(r);
	assert_paired(w, g.id);
}

/* The hash in each InferStart is that of the request as messages.jsonl gives
 * it, and each request begins with the whole of the one before. */
TEST(request_bytes)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "Where is parse_header defined and who calls it?");
	struct got g = spawn(w, &s);
	struct ava_log_query q = {.root = w->root, .run = g.id, .types = "InferStart"};
	struct ava_log_event e;
	struct ava_log *log;
	char path[400], *file, *last = NULL;
	size_t len, at = 0, n, last_len = 0;
	const char *line;
	unsigned requests = 0;

	assert_ended(w, g.id, "success", "submitted");
	snprintf(path, sizeof(path), "%s/runs/%s/messages.jsonl", w->root, g.id);
	file = unit_read(path, &len);
	assert_int_equal(ava_log_open(&log, &q, NULL), 0);
	while (jsonl_next(file, len, &at, &line, &n) == 1) {
		char hash[HASH_HEX_LEN + 1];
		struct buf body;
		json_t *event;

		if (strncmp(line, "{\"role\":\"assistant\"", 19) != 0)
			continue;
		buf_init(&body, 1u << 24);
		assert_int_equal(messages_request(&body, file, (size_t)(line - file), NULL, NULL),
				 0);
		assert_true(body.len > last_len);
		assert_true(last_len == 0 || memcmp(body.data, last, last_len) == 0);
		hash_sha256_hex(body.data, body.len, hash);
		assert_int_equal(ava_log_next(log, &e, NULL), 1);
		event = json_parse(e.line, e.len, NULL);
		assert_string_equal(json_get_str(json_object_get(event, "content"), "prefixHash"),
				    hash);
		json_decref(event);
		free(last);
		last = buf_take(&body, &last_len);
		requests++;
	}
	assert_true(requests >= 3);
	ava_log_close(log);
	free(last);
	free(file);
}

TEST(nothing_found_is_an_honest_success)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "Where is quux_zork_frobnicate defined?");
	struct got g = spawn(w, &s);
	json_t *r = result_of(w, g.id);

	assert_string_equal(json_get_str(r, "status"), "success");
	assert_int_equal(json_get_fixed(r, "confidence", 3, -1), 0);
	assert_true(json_array_size(json_object_get(r, "caveats")) > 0);
	assert_int_equal(json_array_size(json_object_get(r, "citations")), 0);
	json_decref(r);
}

TEST(errors_go_back_to_the_model)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "try odd calls");
	struct got g;

	s.model = script(
		w, "{\"tool_calls\":[{\"name\":\"nonsense\",\"args\":{}},"
		   "{\"name\":\"read_file\",\"args\":{\"path\":7}},"
		   "{\"name\":\"read_file\",\"args\":{\"path\":\"../../etc/passwd\"}},"
		   "{\"name\":\"read_file\",\"args\":{\"path\":\"main.c\"}}]}\n"
		   "{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"summary\":\"ok\","
		   "\"confidence\":0.5,\"output\":{\"path\":\"main.c\",\"line\":3,"
		   "\"quote\":\"int main(void)\"}}}]}\n");
	g = spawn(w, &s);
	assert_ended(w, g.id, "success", "submitted");
	assert_int_equal(count_events(w, g.id, "ToolCall"), 5);
	assert_paired(w, g.id);
}

/* ---- limits (seeds/1 section 12: timeout terminates, cost limit stops) */

TEST(timeout_terminates_the_run)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "wait for ever");
	struct got g;

	s.model = script(w, LATE);
	s.timeout_ms = 100;
	g = spawn(w, &s);
	assert_ended(w, g.id, "timeout", "time");
	assert_int_equal(count_events(w, g.id, "Exhausted"), 1);
	assert_paired(w, g.id);
}

/* The limit falls into the second call, when the first reply is long gone. */
TEST(a_partial_result_keeps_what_was_said)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "wait");
	struct got g;
	struct run *run;
	json_t *r;

	s.model = script(w, "{\"text\":\"It stands in parse.c.\",\"tool_calls\":[{\"name\":"
			    "\"search_codebase\",\"args\":{\"pattern\":\"parse\"}}]}\n" LATE);
	g = spawn(w, &s);
	run = supervisor_find(&w->core->sup, g.id);
	for (int i = 0; run->call.state != CALL_DELAY && i < 6000; i++)
		os_loop_step(w->loop, 10);
	assert_int_equal(run->call.state, CALL_DELAY);
	run->agent.deadline_ms = clock_mono_ms();
	world_wake(run);
	r = result_of(w, g.id);
	assert_string_equal(json_get_str(r, "status"), "timeout");
	assert_string_equal(json_get_str(r, "summary"), "It stands in parse.c.");
	assert_true(json_get_bool(r, "partial", false));
	json_decref(r);
}

#define STEP_TURN                                                                                  \
	"{\"tool_calls\":[{\"name\":\"read_file\",\"args\":{\"path\":\"main.c\"}}],"               \
	"\"usage\":{\"input\":600,\"output\":100,\"cost_cents\":4}}\n"

TEST(cost_limit_stops_the_run)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "spend");
	struct got g;

	s.model = script(w, STEP_TURN STEP_TURN STEP_TURN STEP_TURN STEP_TURN STEP_TURN);
	s.max_cost_microusd = 100000; /* 10 cents: two turns and the one in flight */
	g = spawn(w, &s);
	assert_ended(w, g.id, "cost_exceeded", "cost");
	assert_true(count_events(w, g.id, "InferStart") <= 3);
	assert_paired(w, g.id);
}

TEST(token_limit_stops_the_run)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "talk");
	struct got g;

	s.model = script(w, STEP_TURN STEP_TURN STEP_TURN STEP_TURN);
	s.max_tokens = 4000;
	g = spawn(w, &s);
	assert_ended(w, g.id, "tokens_exceeded", "tokens");
	assert_paired(w, g.id);
}

TEST(iteration_limit_stops_the_run)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "again");
	struct got g;

	s.model = script(w, STEP_TURN STEP_TURN STEP_TURN STEP_TURN STEP_TURN STEP_TURN);
	s.max_iterations = 3;
	g = spawn(w, &s);
	assert_ended(w, g.id, "iterations_exceeded", "iterations");
	assert_int_equal(count_events(w, g.id, "InferStart"), 3);
	assert_paired(w, g.id);
}

/* ---- cancel */

TEST(cancel_while_calling)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "wait");
	struct got g, c = {0};

	s.model = script(w, LATE);
	g = spawn(w, &s);
	for (int i = 0; i < 20; i++)
		os_loop_step(w->loop, 5);
	ops_cancel(w->core, g.id, NULL, NULL, status_cb, &c);
	until(w, &c);
	assert_string_equal(c.word, "cancelled");
	assert_ended(w, g.id, "cancelled", "cancelled");
	assert_paired(w, g.id);
	c = (struct got){0}; /* again: nothing changes */
	ops_cancel(w->core, g.id, NULL, NULL, status_cb, &c);
	until(w, &c);
	assert_string_equal(c.word, "cancelled");
}

TEST(cancel_while_queued)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "wait");
	struct got first, second, c = {0};

	w->settings.runs_max = 1;
	reopen(w);
	s.model = script(w, LATE);
	first = spawn(w, &s);
	second = spawn(w, &s);
	ops_cancel(w->core, second.id, NULL, NULL, status_cb, &c);
	until(w, &c);
	assert_ended(w, second.id, "cancelled", "cancelled");
	assert_int_equal(count_events(w, second.id, "InferStart"), 0);
	c = (struct got){0};
	ops_cancel(w->core, first.id, NULL, NULL, status_cb, &c);
	until(w, &c);
	w->settings.runs_max = 8;
}

TEST(cancel_at_every_moment)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "step");

	s.model =
		script(w, STEP_TURN STEP_TURN STEP_TURN
		       "{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"summary\":\"ok\","
		       "\"confidence\":1}}]}\n");
	for (int k = 0; k < 40; k++) {
		struct got g = spawn(w, &s), c = {0};
		json_t *r;

		for (int i = 0; i < k; i++)
			os_loop_step(w->loop, 1);
		ops_cancel(w->core, g.id, NULL, NULL, status_cb, &c);
		until(w, &c);
		r = result_of(w, g.id);
		assert_true(strcmp(json_get_str(r, "status"), "cancelled") == 0 ||
			    strcmp(json_get_str(r, "status"), "success") == 0);
		json_decref(r);
		assert_paired(w, g.id);
	}
}

/* ---- restarts */

#define SUBMIT                                                                                     \
	"{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"summary\":\"done\","             \
	"\"confidence\":1}}]}\n"

static void hurry(const struct op_spawn *s, const char *lines)
{
	write_file("", strchr(s->model, ':') + 1, lines);
}

/* ---- a tool that was added while the runtime works */

static struct tool_call *at_work;
static bool stop_came;

static void slow_start(struct tool_call *c)
{
	at_work = c;
}

static void slow_stop(struct tool_call *c)
{
	stop_came = true;
}

static void picture_start(struct tool_call *c)
{
	c->success = true;
	c->error_class = "";
	buf_adds(&c->out, "a picture of it");
	buf_add(&c->file, "\x89PNG\0\n", 6);
	c->file_type = "png";
	c->done(c);
}

static struct tool added = {.name = "web_search", /* a researcher's, that this program has not */
			    .description = "Added.",
			    .schema = "{\"type\":\"object\"}",
			    .start = slow_start,
			    .stop = slow_stop};

#define USE_IT "{\"tool_calls\":[{\"name\":\"web_search\",\"args\":{}}]}\n"

/* The stop of a tool takes its time: the run has not ended before. */
TEST(an_end_waits_for_its_tools)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "wait");
	struct got g, c = {0};

	s.role = "researcher";
	assert_int_equal(tool_add(&added), 0);
	s.model = script(w, USE_IT);
	g = spawn(w, &s);
	while (!at_work)
		os_loop_step(w->loop, 5);
	ops_cancel(w->core, g.id, NULL, NULL, status_cb, &c);
	for (int i = 0; i < 20; i++)
		os_loop_step(w->loop, 5);
	assert_true(stop_came);
	assert_int_equal(count_events(w, g.id, "SubagentComplete"), 0);
	at_work->done(at_work);
	at_work = NULL;
	assert_ended(w, g.id, "cancelled", "cancelled");
	assert_paired(w, g.id);
	tool_remove(&added);
}

TEST(an_artifact_that_is_no_text)
{
	static struct tool draws;
	struct world *w = *state;
	struct op_spawn s = ask(w, "draw");
	const char *kept;
	struct got g;
	json_t *r, *file;

	draws = added;
	draws.start = picture_start;
	s.role = "researcher";
	assert_int_equal(tool_add(&draws), 0);
	s.model = script(w, USE_IT SUBMIT);
	g = spawn(w, &s);
	r = result_of(w, g.id);
	file = json_array_get(json_object_get(r, "artifacts"), 0);
	kept = json_get_str(file, "path");
	assert_non_null(kept);
	assert_non_null(strstr(kept, "/artifacts/c1.1.png"));
	assert_true(json_get_int(file, "bytes", 0) > 0);
	assert_non_null(json_get_str(file, "type"));
	json_decref(r);
	tool_remove(&draws);
}

/* Its calls fail then, the run goes on. */
TEST(a_tool_that_is_gone)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "wait");
	struct got g;

	s.role = "researcher";
	assert_int_equal(tool_add(&added), 0);
	s.model = script(w, LATE);
	g = spawn(w, &s);
	while (count_events(w, g.id, "InferStart") < 1)
		os_loop_step(w->loop, 5);
	hurry(&s, USE_IT SUBMIT);
	tool_remove(&added);
	reopen(w);
	assert_ended(w, g.id, "success", "submitted");
	assert_paired(w, g.id);
}

/* The reply and the results that stand in its record are not asked for again. */
TEST(a_started_run_goes_on)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "wait");
	struct got g;

	s.model = script(w, STEP_TURN LATE);
	g = spawn(w, &s);
	while (count_events(w, g.id, "InferStart") < 2)
		os_loop_step(w->loop, 5);
	hurry(&s, STEP_TURN SUBMIT);
	reopen(w);
	assert_ended(w, g.id, "success", "submitted");
	assert_paired(w, g.id);
	assert_int_equal(count_events(w, g.id, "InferStart"), 3); /* one was cut */
	assert_int_equal(count_events(w, g.id, "ToolCall"), 2);
	assert_int_equal(count_events(w, g.id, "Custom"), 1);
}

/* Cancelled before it had a slot again: it ends once, and its calls are closed. */
TEST(a_carried_run_can_be_cancelled)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "wait");
	struct got g, c = {0};

	s.model = script(w, LATE);
	g = spawn(w, &s);
	while (count_events(w, g.id, "InferStart") < 1)
		os_loop_step(w->loop, 5);
	reopen(w);
	ops_cancel(w->core, g.id, NULL, NULL, status_cb, &c);
	until(w, &c);
	assert_ended(w, g.id, "cancelled", "cancelled");
	assert_paired(w, g.id);
	assert_int_equal(count_events(w, g.id, "SubagentComplete"), 1);
	assert_int_equal(w->core->sup.nlive, 0);
}

TEST(a_queued_run_goes_on)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "Where is parse_header defined?");
	struct op_spawn slow = ask(w, "wait");
	struct got first, second;

	w->settings.runs_max = 1;
	reopen(w);
	slow.model = script(w, LATE);
	first = spawn(w, &slow);
	second = spawn(w, &s);
	while (count_events(w, first.id, "InferStart") < 1)
		os_loop_step(w->loop, 5);
	hurry(&slow, SUBMIT);
	reopen(w);
	assert_ended(w, first.id, "success", "submitted");
	assert_ended(w, second.id, "success", "submitted");
	assert_paired(w, second.id);
}

TEST(request_ids_survive)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "Where is parse_header defined?");
	struct got a, b, c;

	s.request_id = "request-1";
	a = spawn(w, &s);
	b = spawn(w, &s);
	assert_string_equal(a.id, b.id);
	reopen(w);
	c = spawn(w, &s);
	assert_string_equal(a.id, c.id);
	assert_string_equal(a.trace, c.trace);
	assert_int_equal(count_events(w, a.id, "SubagentSpawn"), 1);
}

/* ---- proposals */

static struct got propose(struct world *w, const struct op_spawn *s)
{
	struct got g = {0};

	ops_propose(w->core, s, proposal_cb, &g);
	until(w, &g);
	return g;
}

static struct got answer(struct world *w, const char *id, const char *text)
{
	struct got g = {0};

	ops_confirm(w->core, id, text, NULL, "tester", "terminal", proposal_cb, &g);
	until(w, &g);
	return g;
}

TEST(two_confirmations_start_one_run)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "Where is parse_header defined?");
	struct got p = propose(w, &s), a = {0}, b = {0}, late;

	assert_int_equal(p.state, STEP_PENDING);
	assert_string_equal(p.run, "");
	ops_confirm(w->core, p.id, "yes", NULL, "one", "terminal", proposal_cb, &a);
	ops_confirm(w->core, p.id, "Yes!", NULL, "two", "terminal", proposal_cb, &b);
	until(w, &a);
	until(w, &b);
	assert_int_equal(a.rv, 0);
	assert_int_equal(b.rv, 0);
	assert_string_equal(a.run, b.run);
	late = answer(w, p.id, "yes");
	assert_string_equal(late.run, a.run);
	assert_ended(w, a.run, "success", "submitted");
	late = answer(w, p.id, "no");
	assert_int_equal(late.rv, AVA_EEXIST);
}

TEST(no_and_unclear)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "Where is parse_header defined?");
	struct got p = propose(w, &s), g;

	g = answer(w, p.id, "yes but cheaper");
	assert_int_equal(g.rv, AVA_EINVAL);
	g = answer(w, p.id, "no");
	assert_int_equal(g.state, STEP_REJECTED);
	g = answer(w, p.id, "yes");
	assert_int_equal(g.rv, AVA_EREJECTED);
	g = answer(w, "P-000000", "yes");
	assert_int_equal(g.rv, AVA_ENOENT);
}

TEST(expiry)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "Where is parse_header defined?");
	struct got p, g;

	w->settings.proposal_expiry_s = 1;
	reopen(w);
	p = propose(w, &s);
	for (int i = 0; i < 6000 && !core_idle(w->core); i++)
		os_loop_step(w->loop, 10);
	assert_true(core_idle(w->core));
	g = answer(w, p.id, "yes");
	assert_int_equal(g.rv, AVA_EEXPIRED);
	w->settings.proposal_expiry_s = 600;
}

TEST(a_pending_proposal_survives)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "Where is parse_header defined?");
	struct got p, again, g;

	s.request_id = "request-2";
	p = propose(w, &s);
	reopen(w);
	again = propose(w, &s);
	assert_true(again.repeated);
	assert_string_equal(again.id, p.id);
	g = answer(w, p.id, "yes");
	assert_int_equal(g.state, STEP_CONFIRMED);
	assert_ended(w, g.run, "success", "submitted");
	reopen(w);
	again = answer(w, p.id, "yes");
	assert_string_equal(again.run, g.run);
}

/* ---- event cursors */

static void no_wake(void *user) {}

TEST(cursor_gives_each_event_once)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "Where is parse_header defined?");
	struct got g = spawn(w, &s);
	struct op_cursor *cur = ops_events_open(w->core, g.id, 0, no_wake, NULL, NULL);
	struct op_event e;
	uint64_t last = 0, middle = 0;
	unsigned n = 0, m = 0;
	int rv = 0;

	assert_non_null(cur);
	for (int i = 0; rv != -1 && i < 3000; i++) {
		while ((rv = ops_events_next(cur, &e)) == 1) {
			assert_true(e.lsn > last);
			last = e.lsn;
			if (++n == 3)
				middle = e.lsn;
		}
		if (rv == 0)
			os_loop_step(w->loop, 10);
	}
	assert_int_equal(rv, -1);
	ops_events_close(cur);
	assert_int_equal(n, count_events(w, g.id, NULL));
	cur = ops_events_open(w->core, g.id, middle, no_wake, NULL, NULL);
	while (ops_events_opening(cur)) { /* off the loop */
		assert_int_equal(ops_events_next(cur, &e), 0);
		os_loop_step(w->loop, 10);
	}
	while (ops_events_next(cur, &e) == 1)
		m++;
	ops_events_close(cur);
	ops_events_close(ops_events_open(w->core, NULL, 0, no_wake, NULL, NULL));
	assert_int_equal(m, n - 3);
	assert_null(ops_events_open(w->core, "S-ffffff", 0, no_wake, NULL, NULL));
}

struct asking {
	struct world *w;
	struct op_cursor *cur;
	const char *run;
	uint64_t shown; /* health said: everything up to it can be read */
	struct got result;
	bool asked;
};

static void take_events(void *user)
{
	struct asking *a = user;
	struct op_event e;
	uint64_t shown;

	if (ops_events_opening(a->cur))
		return; /* what stands in the files is older */
	shown = logbook_shown(&a->w->core->book);
	while (ops_events_next(a->cur, &e) == 1) {
		assert_true(e.lsn > a->shown);
		if (e.type_len == 16 && memcmp(e.type, "SubagentComplete", 16) == 0) {
			a->asked = true;
			ops_result(a->w->core, a->run, 0, result_cb, &a->result);
		}
	}
	a->shown = shown;
}

/* Two promises that whoever waits builds on: behind the lsn of the health nothing is
 * missed, and whoever has seen the end of a run finds its result. */
TEST(whoever_sees_the_end_finds_the_result)
{
	struct world *w = *state;
	struct asking a = {.w = w};
	struct op_spawn s = ask(w, "Where is parse_header defined?");
	struct got g = spawn(w, &s);

	a.run = g.id;
	a.cur = ops_events_open(w->core, NULL, 0, take_events, &a, NULL);
	assert_non_null(a.cur);
	for (int i = 0; !a.asked && i < 3000; i++) {
		take_events(&a);
		os_loop_step(w->loop, 10);
	}
	until(w, &a.result);
	assert_int_equal(a.result.rv, 0);
	json_decref(a.result.json);
	ops_events_close(a.cur);
}

UNIT_GROUP(.before = set_up, .after = tear_down);

/* The runtime as a whole, through its verbs: real journal, real tools, the
 * offline model and its scripts, in a data root of its own. What is simulated
 * in test/sim happens here for real. */
#include "core_rig.h"

#include <pthread.h>

#include "agent/tool.h"
#include "base/clock.h"
#include "base/hash.h"
#include "codec/jscan.h"
#include "provider/messages.h"
#include "tool/job.h"

static int set_up(void **state)
{
	struct world *w = core_world("offline");

	open_core(w);
	*state = w;
	return 0;
}

/* A reply that does not come. */
#define LATE "{\"text\":\"late\",\"delay_ms\":3600000}\n"

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

/* ---- the main job */

TEST_OF(main_job_with_citations, struct world *w)
{
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
TEST_OF(request_bytes, struct world *w)
{
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
		assert_int_equal(
			messages_request(&body, file, (size_t)(line - file), -1, NULL, NULL), 0);
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

/* ---- limits and cancels (test/sim has each of them) */

/* The limit falls into the second call, when the first reply is long gone. */
TEST(a_partial_result_keeps_what_was_said)
{
	struct world *w = *state;
	struct op_spawn s = ask(w, "wait");
	struct got g;
	struct run *run;
	json_auto_t *r = NULL;

	s.model = script(w, "{\"text\":\"It stands in parse.c.\",\"tool_calls\":[{\"name\":"
			    "\"search_codebase\",\"args\":{\"pattern\":\"parse\"}}]}\n" LATE);
	g = spawn(w, &s);
	run = supervisor_find(&w->core->sup, g.id);
	for (int i = 0; run->call.state != CALL_DELAY && i < 6000; i++)
		os_loop_step(w->loop, 10);
	assert_int_equal(run->call.state, CALL_DELAY);
	run->agent.deadline_ms = clock_mono_ms();
	run_wake(run);
	r = result_of(w, g.id);
	assert_string_equal(json_get_str(r, "status"), "timeout");
	assert_string_equal(json_get_str(r, "summary"), "It stands in parse.c.");
	assert_true(json_get_bool(r, "partial", false));
}

#define STEP_TURN                                                                                  \
	"{\"tool_calls\":[{\"name\":\"read_file\",\"args\":{\"path\":\"main.c\"}}],"               \
	"\"usage\":{\"input\":600,\"output\":100,\"cost_cents\":4}}\n"

TEST_OF(cancel_at_every_moment, struct world *w)
{
	struct op_spawn s = ask(w, "step");

	s.model =
		script(w, STEP_TURN STEP_TURN STEP_TURN
		       "{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"summary\":\"ok\","
		       "\"confidence\":1}}]}\n");
	for (int k = 0; k < 40; k++) {
		struct got g = spawn(w, &s);
		json_auto_t *r = NULL;

		for (int i = 0; i < k; i++)
			os_loop_step(w->loop, 1);
		cancel(w, g.id);
		r = result_of(w, g.id);
		assert_true(strcmp(json_get_str(r, "status"), "cancelled") == 0 ||
			    strcmp(json_get_str(r, "status"), "success") == 0);
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

#define LOOK(file) "{\"tool_calls\":[{\"name\":\"read_file\",\"args\":{\"path\":\"" file "\"}}]}\n"

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static char served[3][40];
static unsigned nserved;

static int serve(struct tool_call *c, struct ava_error *err)
{
	snprintf(served[nserved++], sizeof(served[0]), "%s", c->env->workspace);
	return 0;
}

static void serve_start(struct tool_call *c)
{
	job_start(c, serve);
}

static void hang(struct os_work *work)
{
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
}

static void no_more(struct os_work *work)
{
	work->priv = NULL;
}

/* The oldest run is served first where jobs wait for a thread, whichever asked first and whatever
 * the clock said: so equal runs end one after the other, and not all at last. */
TEST_OF(the_oldest_run_is_served_first, struct world *w)
{
	static const char *const scripts[] = {LOOK("main.c") LOOK("parser.c") USE_IT LATE,
					      LOOK("main.c") USE_IT LATE, USE_IT LATE};
	struct os_work hanging = {.work = hang, .done = no_more, .priv = w};
	struct op_spawn s = ask(w, "search");
	struct tool serves = added;
	struct got g[3];

	serves.start = serve_start;
	serves.stop = NULL;
	s.role = "researcher";
	assert_int_equal(tool_add(&serves), 0);
	setenv("UV_THREADPOOL_SIZE", "2", 1); /* one of them is for such work */
	pthread_mutex_lock(&gate);
	os_work_start_foreign(w->loop, &hanging);
	for (int i = 0; i < 3; i++) {
		s.model = script(w, scripts[i]);
		g[i] = spawn(w, &s);
		supervisor_find(&w->core->sup, g[i].id)->spawned_wall_ms -= i * 3600000;
	}
	for (size_t i = 3; i-- > 0;) /* the youngest asks first */
		while (count_events(w, g[i].id, "ToolCall") < 3 - i ||
		       supervisor_find(&w->core->sup, g[i].id)->tools.running == 0)
			os_loop_step(w->loop, 10);
	pthread_mutex_unlock(&gate);
	for (size_t i = 0; i < 3; i++) {
		while (count_events(w, g[i].id, "ToolResult") < 3 - i)
			os_loop_step(w->loop, 10);
		assert_non_null(strstr(served[i], g[i].id));
	}
	unsetenv("UV_THREADPOOL_SIZE");
	assert_null(hanging.priv);
	for (size_t i = 0; i < 3; i++)
		cancel(w, g[i].id);
	tool_remove(&serves);
}

/* The stop of a tool takes its time: the run has not ended before. */
TEST_OF(an_end_waits_for_its_tools, struct world *w)
{
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
	while (c.calls == 0) /* it looks into files, on a thread */
		os_loop_step(w->loop, 5);
	tool_remove(&added);
}

TEST_OF(an_artifact_that_is_no_text, struct world *w)
{
	static struct tool draws;
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
TEST_OF(a_tool_that_is_gone, struct world *w)
{
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

/* Cancelled before it had a slot again: it ends once, and its calls are closed. */
TEST_OF(a_carried_run_can_be_cancelled, struct world *w)
{
	struct op_spawn s = ask(w, "wait");
	struct got g;

	s.model = script(w, LATE);
	g = spawn(w, &s);
	while (count_events(w, g.id, "InferStart") < 1)
		os_loop_step(w->loop, 5);
	reopen(w);
	cancel(w, g.id);
	assert_ended(w, g.id, "cancelled", "cancelled");
	assert_paired(w, g.id);
	assert_int_equal(count_events(w, g.id, "SubagentComplete"), 1);
	assert_int_equal(w->core->sup.nlive, 0);
}

TEST_OF(request_ids_survive, struct world *w)
{
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

/* ---- event cursors */

static void no_wake(void *user) {}

TEST_OF(cursor_gives_each_event_once, struct world *w)
{
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
TEST_OF(whoever_sees_the_end_finds_the_result, struct world *w)
{
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

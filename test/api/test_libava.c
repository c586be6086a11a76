/* libava through its public face alone, the same program embedded and connected
 * ($MODE). Each test has a data root of its own. */
#include "api/world.h"

#include <poll.h>
#include <sys/wait.h>

/* A daemon that is dying may still take a connection: what came of the request
 * is then unknown, and asking again with the same id is safe. */
static struct ava_run_id spawn(struct world *w, const char *model)
{
	static unsigned n;
	char request[32];
	struct ava_spawn s = {.task = "where is the torn tail cut?",
			      .role = "code_reviewer",
			      .cwd = w->work,
			      .model = model,
			      .request_id = request};
	struct ava_error err = {0};
	struct ava_run_id id;
	int rv;

	snprintf(request, sizeof(request), "spawn-%u", n++);
	do
		rv = ava_spawn(w->rt, &s, &id, &err);
	while (rv == AVA_EUNKNOWN);
	if (rv != 0)
		print_error("%s\n", err.text);
	assert_int_equal(rv, 0);
	return id;
}

/* ---- runs */

TEST_OF(run, struct world *w)
{
	struct ava_run_id id = spawn(w, NULL);
	const struct ava_run *rows;
	struct ava_result res;
	struct ava_run run;
	size_t n;

	world_wait(w, id.text);
	assert_int_equal(ava_is_done(w->rt, id.text, NULL), 1);
	assert_int_equal(ava_status(w->rt, id.text, &run, NULL), 0);
	assert_string_equal(run.id, id.text);
	assert_string_equal(run.role, "code_reviewer");
	assert_string_equal(run.task, "where is the torn tail cut?");
	assert_string_equal(run.origin, "libava");
	assert_string_equal(run.cwd, w->work);
	assert_int_equal(run.status, AVA_SUCCESS);
	assert_true(run.started_ms > 1600000000000 && run.ended_ms >= run.started_ms);
	assert_true(run.timeout_ms == 300000 && run.max_cost_microusd == 1000000);
	assert_int_equal(run.cost_microusd, 0);
	assert_int_equal(ava_result(w->rt, id.text, &res, NULL), 0);
	assert_int_equal(res.status, AVA_SUCCESS);
	assert_string_equal(res.run, id.text);
	assert_non_null(strstr(res.output, "notes.md"));
	assert_true(res.citations >= 1 && res.confidence > 0 && res.confidence <= 1);
	assert_true(res.tokens > 0 && res.iterations > 1 && res.cost_microusd == 0);
	assert_int_equal(strlen(res.json), res.len);
	assert_int_equal(ava_runs(w->rt, 0, 0, &rows, &n, NULL), 0);
	assert_int_equal(n, 0);
	assert_int_equal(ava_runs(w->rt, 1, 0, &rows, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_string_equal(rows[0].id, id.text);
}

TEST_OF(cancel, struct world *w)
{
	struct ava_run_id a = spawn(w, w->slow), b = spawn(w, w->slow), c = spawn(w, w->slow);
	const char *all[] = {a.text, b.text, a.text, c.text};
	const struct ava_run *rows;
	unsigned char ended[4];
	struct ava_result res;
	struct ava_error err;
	size_t n;

	assert_int_equal(ava_is_done(w->rt, a.text, NULL), 0);
	assert_int_equal(ava_result(w->rt, a.text, &res, &err), AVA_ETIMEOUT);
	assert_int_equal(ava_wait(w->rt, all, 4, AVA_WAIT_ANY, 1, ended, &err), AVA_ETIMEOUT);
	assert_string_equal(err.text, "4 of 4 runs have not ended");
	assert_int_equal(ava_cancel(w->rt, a.text, NULL), 0);
	assert_int_equal(ava_wait(w->rt, all, 4, AVA_WAIT_ANY, LONG_MS, ended, NULL), 2);
	assert_true(ended[0] && !ended[1] && ended[2] && !ended[3]);
	assert_int_equal(ava_runs(w->rt, 0, 0, &rows, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_string_equal(rows[0].id, c.text); /* newest first */
	assert_int_equal(ava_runs(w->rt, 0, 1, &rows, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(ava_cancel_all(w->rt, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_int_equal(ava_wait(w->rt, all, 4, AVA_WAIT_ALL, INT64_MAX, ended, NULL), 4);
	assert_int_equal(ava_result(w->rt, b.text, &res, NULL), 0);
	assert_int_equal(res.status, AVA_CANCELLED);
	assert_int_equal(ava_cancel(w->rt, b.text, NULL), 0); /* again */
	assert_int_equal(ava_cancel_all(w->rt, &n, NULL), 0);
	assert_int_equal(n, 0);
}

TEST_OF(pause, struct world *w)
{
	struct ava_run_id id = spawn(w, w->slow);
	struct ava_error err;

	assert_int_equal(ava_unpause(w->rt, id.text, &err), AVA_EEXIST);
	assert_int_equal(ava_pause(w->rt, id.text, "2001-01-01", &err), AVA_EINVAL);
	assert_int_equal(ava_pause(w->rt, id.text, NULL, &err), 0);
	assert_int_equal(ava_pause(w->rt, id.text, NULL, &err), 0); /* again */
	assert_int_equal(ava_pause(w->rt, id.text, "2h", &err), AVA_EEXIST);
	assert_int_equal(ava_unpause(w->rt, id.text, &err), 0);
	assert_int_equal(ava_pause(w->rt, id.text, "2h", &err), 0);
	assert_int_equal(ava_cancel(w->rt, id.text, NULL), 0);
	world_wait(w, id.text);
	assert_int_equal(ava_pause(w->rt, id.text, NULL, &err), AVA_EEXIST);
	assert_int_equal(ava_unpause(w->rt, "S-000000", &err), AVA_ENOENT);
}

/* Until the run waits for a person: its state comes with its events. */
static void wait_for_question(struct world *w, const char *id, struct ava_run *run)
{
	for (int i = 0; i < 60000; i++) {
		assert_int_equal(ava_status(w->rt, id, run, NULL), 0);
		if (run->status == AVA_WAITING && run->asks[0])
			return;
		assert_true(run->status < AVA_SUCCESS);
		ava_runtime_process(w->rt, 10, NULL);
	}
	fail_msg("%s asks nothing", id);
}

TEST_OF(steer, struct world *w)
{
	static const char script[] =
		"{\"tool_calls\":[{\"name\":\"ask_person\",\"args\":{\"question\":\"Which?\"}}]}\n"
		"{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"output\":null,"
		"\"summary\":\"as told\",\"confidence\":1}}]}\n";
	struct ava_run_id id, slow = spawn(w, w->slow);
	char model[400], text[2002];
	struct ava_result res;
	struct ava_error err;
	struct ava_run run;

	world_script(w, script, model);
	id = spawn(w, model);
	wait_for_question(w, id.text, &run);
	assert_string_equal(run.asks, "Which?");
	assert_string_equal(run.asks_call, "c1.1");
	assert_int_equal(ava_steer(w->rt, id.text, "x", "c2.1", &err), AVA_ENOENT);
	assert_int_equal(ava_steer(w->rt, id.text, " ", NULL, &err), AVA_EINVAL);
	assert_int_equal(ava_steer(w->rt, id.text, "this", "c1.1", &err), 0);
	world_wait(w, id.text);
	assert_int_equal(ava_result(w->rt, id.text, &res, NULL), 0);
	assert_string_equal(res.summary, "as told");
	assert_int_equal(ava_steer(w->rt, id.text, "more", NULL, &err), AVA_EEXIST);

	/* One at work: as many as it can hold, and none that is too long. */
	for (int i = 0; i < 40; i++)
		assert_int_equal(ava_steer_once(w->rt, slow.text, "r-1", "mind this", NULL, &err),
				 0);
	for (int i = 0; i < 15; i++)
		assert_int_equal(ava_steer(w->rt, slow.text, "mind this", NULL, &err), 0);
	assert_int_equal(ava_steer(w->rt, slow.text, "and this", NULL, &err), AVA_EBUSY);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	assert_int_equal(ava_steer(w->rt, slow.text, text, NULL, &err), AVA_EINVAL);
	assert_int_equal(ava_steer_once(w->rt, slow.text, "r-1", "mind this", NULL, &err), 0);
	assert_int_equal(ava_cancel(w->rt, slow.text, NULL), 0);
	world_wait(w, slow.text);
	assert_int_equal(ava_steer_once(w->rt, slow.text, "r-1", "mind this", NULL, &err), 0);
	assert_int_equal(ava_steer_once(w->rt, slow.text, "r-2", "mind this", NULL, &err),
			 AVA_EEXIST);
}

TEST_OF(limits, struct world *w)
{
	struct ava_spawn s = {.task = "x",
			      .model = w->slow,
			      .timeout_ms = 1500,
			      .max_cost_microusd = AVA_FREE_ONLY,
			      .max_tokens = 77000,
			      .max_iterations = 3};
	struct ava_error err;
	struct ava_run_id id;
	struct ava_run run;

	assert_int_equal(ava_spawn(w->rt, &s, &id, NULL), 0);
	assert_int_equal(ava_status(w->rt, id.text, &run, NULL), 0);
	assert_int_equal(run.timeout_ms, 1500);
	assert_int_equal(run.max_cost_microusd, 0);
	assert_int_equal(run.max_tokens, 77000);
	assert_int_equal(run.max_iterations, 3);
	assert_int_equal(ava_cancel(w->rt, id.text, NULL), 0);
	s.timeout_ms = -1;
	assert_int_equal(ava_spawn(w->rt, &s, &id, &err), AVA_EINVAL);
	s.timeout_ms = 0;
	s.max_cost_microusd = -2;
	assert_int_equal(ava_spawn(w->rt, &s, &id, &err), AVA_EINVAL);
	s.max_cost_microusd = 0;
	s.model = "no-such-model";
	assert_int_equal(ava_spawn(w->rt, &s, &id, &err), AVA_EINVAL);
	assert_int_not_equal(strlen(err.text), 0);
}

TEST_OF(arguments, struct world *w)
{
	static const char *const none[] = {"S-000000"};
	struct ava_spawn s = {.task = ""};
	struct ava_proposal p;
	struct ava_error err;
	struct ava_run_id id;
	struct ava_result res;
	struct ava_run run;
	char name[1000];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(ava_spawn(w->rt, &s, &id, &err), AVA_EINVAL);
	assert_int_equal(ava_spawn(w->rt, NULL, &id, NULL), AVA_EINVAL);
	assert_int_equal(ava_status(w->rt, NULL, &run, &err), AVA_EINVAL);
	assert_int_equal(ava_status(w->rt, "", &run, &err), AVA_EINVAL);
	assert_int_equal(ava_status(w->rt, name, &run, &err), AVA_ENOENT);
	assert_int_equal(ava_status(w->rt, "S-000000", &run, &err), AVA_ENOENT);
	assert_true(ava_status(w->rt, "../health", &run, &err) < 0);
	assert_int_equal(ava_is_done(w->rt, "S-000000", NULL), AVA_ENOENT);
	assert_int_equal(ava_result(w->rt, "S-000000", &res, NULL), AVA_ENOENT);
	assert_int_equal(ava_cancel(w->rt, "S-000000", NULL), AVA_ENOENT);
	assert_int_equal(ava_wait(w->rt, none, 1, AVA_WAIT_ALL, 0, NULL, &err), AVA_ENOENT);
	assert_int_equal(ava_wait(w->rt, none, 0, AVA_WAIT_ALL, 0, NULL, &err), AVA_EINVAL);
	assert_int_equal(ava_confirm(w->rt, "P-000000", NULL, &p, &err), AVA_ENOENT);
	assert_int_equal(ava_reject(w->rt, "P-000000", NULL, NULL, &err), AVA_ENOENT);
}

/* ---- proposals */

static struct ava_proposal propose(struct world *w)
{
	struct ava_spawn s = {.task = "find the torn tail",
			      .role = "code_reviewer",
			      .cwd = w->work,
			      .model = w->slow};
	struct ava_proposal p;

	assert_int_equal(ava_propose(w->rt, &s, &p, NULL), 0);
	return p;
}

TEST(propose)
{
	struct world *w = *state;
	struct ava_proposal p = propose(w), q;
	const struct ava_proposal *rows;
	char id[24], hash[80];
	struct ava_run run;
	size_t n;

	assert_int_equal(p.state, AVA_PENDING);
	assert_string_equal(p.run, "");
	assert_non_null(strstr(p.message, "Proceed? [Yes/No]"));
	assert_non_null(strstr(p.quote, "\"costCents\""));
	assert_non_null(strstr(p.config, "find the torn tail"));
	assert_true(p.expires_ms > p.created_ms && p.created_ms > 1600000000000);
	snprintf(id, sizeof(id), "%s", p.id);
	snprintf(hash, sizeof(hash), "%s", p.config_hash);
	assert_int_equal(ava_confirm(w->rt, id, "perhaps if the moon is right", &q, NULL),
			 AVA_EINVAL);
	assert_int_equal(ava_proposals(w->rt, 0, &rows, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_string_equal(rows[0].id, id);
	assert_int_equal(ava_confirm(w->rt, id, "yes please", &q, NULL), 0);
	assert_int_equal(q.state, AVA_CONFIRMED);
	assert_string_equal(q.confirmed_hash, hash);
	assert_non_null(strstr(q.message, "Proceed?"));
	snprintf(id, sizeof(id), "%s", q.run);
	assert_int_equal(ava_status(w->rt, id, &run, NULL), 0);
	assert_int_equal(ava_proposals(w->rt, 0, &rows, &n, NULL), 0);
	assert_int_equal(n, 0);
	assert_int_equal(ava_proposals(w->rt, 1, &rows, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].state, AVA_CONFIRMED);
	assert_int_equal(ava_cancel_all(w->rt, &n, NULL), 0);
	assert_int_equal(n, 1);
}

TEST(answers)
{
	struct world *w = *state;
	struct ava_proposal p = propose(w), q;
	char id[24], second[24];
	struct ava_error err;

	snprintf(id, sizeof(id), "%s", p.id);
	assert_int_equal(ava_confirm(w->rt, id, "with 200 cents", &q, NULL), 0);
	assert_int_equal(q.state, AVA_PENDING); /* a raise is quoted again */
	assert_string_equal(q.replaces, id);
	snprintf(second, sizeof(second), "%s", q.id);
	assert_int_equal(ava_confirm(w->rt, id, "yes", &q, &err), AVA_EREJECTED);
	assert_int_equal(ava_confirm(w->rt, second, "yes, but at most 5 cents", &q, NULL), 0);
	assert_int_equal(q.state, AVA_CONFIRMED);
	assert_non_null(strstr(q.changes, "0.05"));
	p = propose(w);
	snprintf(id, sizeof(id), "%s", p.id);
	assert_int_equal(ava_confirm(w->rt, id, "no", &q, NULL), 0);
	assert_int_equal(q.state, AVA_REJECTED);
	p = propose(w);
	snprintf(id, sizeof(id), "%s", p.id);
	assert_int_equal(ava_reject(w->rt, id, "too dear", &q, NULL), 0);
	assert_int_equal(q.state, AVA_REJECTED);
	assert_int_equal(ava_cancel_all(w->rt, NULL, NULL), 0);
}

/* ---- events */

static uint64_t read_all(struct world *w, const char *run, uint64_t after, size_t *n, char *last)
{
	struct ava_events_query q = {.run = run, .after = after};
	uint64_t lsn = after, middle = 0;
	struct ava_events *e;
	struct ava_event ev;
	int rv;

	*n = 0;
	assert_int_equal(ava_events_open(w->rt, &q, &e, NULL), 0);
	while (!ava_events_ended(e)) {
		while ((rv = ava_events_next(e, &ev, NULL)) == 1) {
			assert_true(ev.lsn > lsn);
			lsn = ev.lsn;
			if (++*n == 3)
				middle = lsn;
			assert_string_equal(ev.agent, run);
			assert_int_equal(strlen(ev.json), ev.len);
			snprintf(last, 40, "%s", ev.type);
		}
		assert_int_equal(rv, 0);
		assert_true(ava_events_wait(e, LONG_MS, NULL) == 1 || ava_events_ended(e));
	}
	ava_events_close(e);
	return middle;
}

TEST_OF(events, struct world *w)
{
	struct ava_run_id id = spawn(w, NULL);
	struct ava_events *e = (struct ava_events *)1;
	struct ava_events_query q = {.run = "S-000000"};
	char last[40] = "";
	uint64_t middle;
	size_t all, rest;

	middle = read_all(w, id.text, 0, &all, last); /* while it runs */
	assert_string_equal(last, "SubagentComplete");
	assert_true(all > 6);
	read_all(w, id.text, middle, &rest, last); /* behind it */
	assert_int_equal(rest, all - 3);
	assert_int_equal(ava_events_open(w->rt, &q, &e, NULL), AVA_ENOENT);
	assert_null(e);
	q.session = "x";
	assert_int_equal(ava_events_open(w->rt, &q, &e, NULL), AVA_EINVAL);
	assert_int_equal(ava_events_open(w->rt, NULL, &e, NULL), 0); /* left to free */
}

/* A run as a person sees it: its begin, its steps, its end. */
TEST_OF(items, struct world *w)
{
	struct ava_run_id id = spawn(w, NULL);
	struct ava_events_query q = {.run = id.text};
	unsigned started = 0, doing = 0, result = 0, nothing = 0;
	struct ava_line item;
	struct ava_events *e;
	struct ava_event ev;

	assert_int_equal(ava_events_open(w->rt, &q, &e, NULL), 0);
	while (!ava_events_ended(e)) {
		while (ava_events_next(e, &ev, NULL) == 1) {
			if (ava_item(w->rt, &ev, &item, NULL) == 0) {
				nothing++;
				continue;
			}
			assert_int_equal(strlen(item.text), item.len);
			started += strstr(item.text, "\"kind\":\"started\"") != NULL;
			doing += strstr(item.text, "\"kind\":\"doing\"") != NULL;
			result += strstr(item.text, "\"kind\":\"result\"") != NULL;
		}
		ava_events_wait(e, LONG_MS, NULL);
	}
	ava_events_close(e);
	assert_true(started == 1 && doing > 0 && result == 1 && nothing > 0);
	ev = (struct ava_event){.json = "no event", .len = 8};
	assert_int_equal(ava_item(w->rt, &ev, &item, NULL), 0);
}

static void wait_for_event(struct world *w, const char *run, const char *type)
{
	struct ava_events_query q = {.run = run};
	struct ava_event ev = {.type = ""};
	struct ava_events *e;

	assert_int_equal(ava_events_open(w->rt, &q, &e, NULL), 0);
	while (strcmp(ev.type, type) != 0) {
		assert_int_equal(ava_events_wait(e, LONG_MS, NULL), 1);
		if (ava_events_next(e, &ev, NULL) != 1)
			ev.type = "";
	}
	ava_events_close(e);
}

struct seen {
	struct world *w;
	struct ava_watch *watch;
	unsigned start, activity, tools, complete, events, text, deltas;
	int success;
	uint64_t lsn;
	int stop; /* the watch goes away at its first end */
	char answer[200];
};

static void on_start(const char *run, const struct ava_event *e, void *user)
{
	struct seen *s = user;

	assert_string_equal(e->type, "SubagentSpawn");
	assert_true(strncmp(run, "S-", 2) == 0);
	s->start++;
}

static void on_activity(const char *run, const char *text, const struct ava_event *e, void *user)
{
	((struct seen *)user)->activity += text[0] != '\0';
}

static void on_tool(const char *run, const char *tool, const char *args, const struct ava_event *e,
		    void *user)
{
	assert_true(args[0] == '{' || args[0] == '"');
	((struct seen *)user)->tools += tool[0] != '\0';
}

static void on_complete(const char *run, enum ava_status status, const char *summary,
			const struct ava_event *e, void *user)
{
	struct seen *s = user;
	struct ava_result res;
	struct ava_error err;

	s->complete++;
	s->success += status == AVA_SUCCESS;
	assert_int_equal(ava_result(s->w->rt, run, &res, NULL), 0);
	assert_int_equal(res.status, status);
	assert_string_equal(e->type, "SubagentComplete"); /* is still what it was */
	assert_int_equal(ava_runtime_process(s->w->rt, 0, &err), AVA_EBUSY);
	if (s->stop)
		ava_unwatch(s->watch);
}

static void on_event(const struct ava_event *e, void *user)
{
	struct seen *s = user;
	const char *text;

	s->events++;
	assert_true(e->lsn > s->lsn);
	s->lsn = e->lsn;
	if (strcmp(e->type, "AssistantMessage") != 0)
		return;
	text = strstr(e->json, "\"text\":\"");
	snprintf(s->answer, sizeof(s->answer), "%s", text ? text + 8 : "");
}

static void on_text(const struct ava_text *t, void *user)
{
	struct seen *s = user;

	s->text++;
	s->deltas += t->kind == AVA_TEXT;
	assert_int_equal(strlen(t->text), t->len);
}

static const struct ava_callbacks every = {.start = on_start,
					   .activity = on_activity,
					   .tool_call = on_tool,
					   .complete = on_complete,
					   .event = on_event,
					   .text = on_text};

/* A loop of the program's own, which knows one descriptor. */
static void turn(struct world *w)
{
	struct pollfd p = {.fd = ava_runtime_fd(w->rt), .events = POLLIN};
	int timeout = ava_runtime_timeout(w->rt);

	assert_true(poll(&p, 1, timeout < 0 ? LONG_MS : timeout) >= 0);
	assert_true(ava_runtime_process(w->rt, 0, NULL) >= 0);
}

TEST_OF(callbacks, struct world *w)
{
	struct ava_events_query now = {.after = AVA_NOW};
	struct seen s = {.w = w}, short_lived = {.w = w, .stop = 1};

	assert_int_equal(ava_watch(w->rt, &now, &every, &s, &s.watch, NULL), 0);
	assert_int_equal(ava_watch(w->rt, &now, &every, &short_lived, &short_lived.watch, NULL), 0);
	for (int i = 0; i < 5; i++)
		spawn(w, NULL);
	assert_int_equal(s.events, 0); /* only in process */
	while (s.complete < 5)
		turn(w);
	assert_true(s.start == 5 && s.complete == 5 && s.success == 5);
	assert_true(s.activity >= 5 && s.tools >= 10);
	assert_int_equal(short_lived.complete, 1);
	assert_true(ava_runtime_process(w->rt, 0, NULL) >= 0);
	ava_unwatch(s.watch);
	ava_unwatch(NULL);
	spawn(w, w->slow);
	assert_int_equal(ava_runtime_process(w->rt, 1, NULL), 0);
	assert_int_equal(s.complete, 5);
	assert_int_equal(ava_cancel_all(w->rt, NULL, NULL), 0);
}

/* From the beginning: each end once, however often it stands in a log. */
TEST_OF(from_beginning, struct world *w)
{
	struct ava_run_id ids[3];
	const char *runs[3];
	struct seen s = {.w = w};

	for (int i = 0; i < 3; i++) {
		ids[i] = spawn(w, NULL);
		runs[i] = ids[i].text;
	}
	assert_int_equal(ava_wait(w->rt, runs, 3, AVA_WAIT_ALL, LONG_MS, NULL, NULL), 3);
	assert_int_equal(ava_watch(w->rt, NULL, &every, &s, NULL, NULL), 0);
	while (s.complete < 3)
		assert_true(ava_runtime_process(w->rt, LONG_MS, NULL) > 0);
	assert_true(ava_runtime_process(w->rt, 0, NULL) >= 0);
	assert_true(s.start == 3 && s.complete == 3);
}

/* ---- conversations */

TEST_OF(session, struct world *w)
{
	struct ava_session_options o = {.cwd = w->work};
	struct seen s = {.w = w}, other = {.w = w};
	struct ava_events_query q = {0};
	struct ava_session_id id, id2;
	const struct ava_session *rows;
	const struct ava_line *lines;
	char entry[24], again[24];
	size_t n, rest;

	assert_int_equal(ava_session_new(w->rt, &o, &id, NULL), 0);
	assert_int_equal(ava_session_new(w->rt, NULL, &id2, NULL), 0);
	q.session = id.text;
	assert_int_equal(ava_watch(w->rt, &q, &every, &s, NULL, NULL), 0);
	q.session = id2.text;
	assert_int_equal(ava_watch(w->rt, &q, &every, &other, NULL, NULL), 0);
	assert_int_equal(ava_say(w->rt, id.text, "hello, what can you do?", entry, NULL), 0);
	while (!s.answer[0])
		turn(w);
	assert_true(s.text > 0);
	assert_int_equal(other.events, 0);
	assert_int_equal(ava_sessions(w->rt, 0, &rows, &n, NULL), 0);
	assert_true(n >= 1);
	assert_string_equal(rows[n == 2 && strcmp(rows[0].id, id.text) != 0].id, id.text);
	assert_int_equal(ava_session_entries(w->rt, id.text, NULL, &lines, &n, NULL), 0);
	assert_true(n >= 3); /* header, what was said, the answer */
	assert_non_null(strstr(lines[1].text, "what can you do?"));
	assert_int_equal(ava_session_entries(w->rt, id.text, entry, &lines, &rest, NULL), 0);
	assert_int_equal(rest, n - 2);
	assert_int_equal(ava_session_stop(w->rt, id.text, NULL), 0);
	assert_int_equal(ava_session_stop(w->rt, "none", NULL), AVA_ENOENT);
	assert_int_equal(ava_say_once(w->rt, id.text, "r-1", "and then?", entry, NULL), 0);
	assert_int_equal(ava_say_once(w->rt, id.text, "r-1", "and then?", again, NULL), 0);
	assert_string_equal(entry, again);
	assert_int_equal(ava_say(w->rt, id.text, "", NULL, NULL), AVA_EINVAL);
	assert_int_equal(ava_say(w->rt, "none", "hello", NULL, NULL), AVA_ENOENT);
	o.cwd = "/nonexistent/folder";
	assert_int_not_equal(ava_session_new(w->rt, &o, &id, NULL), 0);
}

/* ---- the runtime itself */

static bool forked, forked_child;

/* LeakSanitizer asks this at an end: a child has not the threads that it would stop. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return forked;
}

static void forked_end(void)
{
	if (forked_child)
		_exit(8);
}

/* A forked child ends as it says and as the program does, without the threads it does not have. */
TEST_OF(forked, struct world *w)
{
	struct ava_run_id id = spawn(w, NULL);
	int status;
	pid_t pid;

	atexit(forked_end);
	for (int code = 7; code <= 8; code++) {
		pid = fork();
		assert_true(pid >= 0);
		forked = pid == 0;
		forked_child = pid == 0 && code == 8;
		if (pid == 0)
			exit(7);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == code);
	}
	world_wait(w, id.text);
}

TEST_OF(open_errors, struct world *w)
{
	struct ava_options o = {.root = w->root, .no_start = 1};
	struct ava_runtime *rt = (struct ava_runtime *)1;
	struct ava_error err;
	char nowhere[400];

	assert_int_equal(ava_runtime_new(&rt, &o, &err), AVA_EBUSY); /* whoever has it */
	assert_null(rt);
	o.root = "relative";
	assert_int_equal(ava_runtime_new(&rt, &o, &err), AVA_EINVAL);
	assert_int_equal(ava_runtime_connect(&rt, &o, &err), AVA_EINVAL);
	assert_int_equal(ava_runtime_new(&rt, NULL, NULL), AVA_EINVAL);
	snprintf(nowhere, sizeof(nowhere), "%s/nowhere", w->dir);
	o.root = nowhere;
	assert_int_equal(ava_runtime_connect(&rt, &o, &err), AVA_ENOENT);
	assert_int_equal(mkdir(nowhere, 0700), 0);
	assert_int_equal(ava_runtime_connect(&rt, &o, &err), AVA_ECONNECT);
	ava_runtime_free(NULL);
}

/* A runtime that comes and goes: ended runs are there, a live one was cut. */
TEST_OF(again, struct world *w)
{
	struct ava_run_id done = spawn(w, NULL), cut;
	struct ava_events *e;
	struct ava_event ev;
	struct ava_result res;

	world_wait(w, done.text);
	cut = spawn(w, w->slow);
	wait_for_event(w, cut.text, "InferStart");
	if (!w->embedded)
		world_kill(w, SIGKILL);
	ava_runtime_free(w->rt);
	world_open(w);
	assert_int_equal(ava_events_open(w->rt, NULL, &e, NULL), 0);
	assert_int_equal(ava_events_wait(e, LONG_MS, NULL), 1);
	assert_int_equal(ava_events_next(e, &ev, NULL), 1);
	assert_int_equal(ev.lsn, 1); /* what an earlier process wrote comes first */
	ava_events_close(e);
	assert_int_equal(ava_result(w->rt, done.text, &res, NULL), 0);
	assert_int_equal(res.status, AVA_SUCCESS);
	wait_for_event(w, cut.text, "Custom"); /* it is carried on */
	assert_int_equal(ava_cancel(w->rt, cut.text, NULL), 0);
	world_wait(w, cut.text);
	assert_int_equal(ava_result(w->rt, cut.text, &res, NULL), 0);
	assert_int_equal(res.status, AVA_CANCELLED);
}

/* The daemon dies under its clients: the next call starts another one, and a
 * watch goes on behind what it had, each end once. */
TEST_OF(daemon_dies, struct world *w)
{
	struct ava_events_query now = {.after = AVA_NOW};
	struct seen s = {.w = w};

	if (w->embedded)
		skip();
	assert_int_equal(ava_watch(w->rt, &now, &every, &s, NULL, NULL), 0);
	spawn(w, NULL);
	while (s.complete < 1)
		turn(w);
	world_kill(w, SIGKILL);
	spawn(w, NULL);
	while (s.complete < 2)
		turn(w);
	assert_true(s.start == 2 && s.complete == 2 && s.success == 2);
}

/* What an embedded runtime takes from the process' environment: nothing,
 * unless it is asked to. */
TEST_OF(environment, struct world *w)
{
	static const char *const given[] = {"AVA_LIMITS_ITERATIONS=7", NULL};
	struct ava_options o = {.root = w->root, .process_env = 1, .env = given};
	struct ava_error err;
	struct ava_run run;

	if (!w->embedded)
		skip();
	ava_runtime_free(w->rt);
	assert_int_equal(ava_runtime_new(&w->rt, &o, &err), AVA_EINVAL);
	setenv("AVA_LIMITS_ITERATIONS", "5", 1);
	for (int i = 0; i < 3; i++) {
		static const int64_t want[] = {20, 7, 5};
		struct ava_spawn s = {.task = "x", .model = w->slow};
		struct ava_run_id id;

		o.env = i == 1 ? given : NULL;
		o.process_env = i == 2;
		assert_int_equal(ava_runtime_new(&w->rt, &o, &err), 0);
		assert_int_equal(ava_spawn(w->rt, &s, &id, NULL), 0);
		assert_int_equal(ava_status(w->rt, id.text, &run, NULL), 0);
		assert_int_equal(run.max_iterations, want[i]);
		assert_int_equal(ava_cancel_all(w->rt, NULL, NULL), 0);
		ava_runtime_free(w->rt);
		w->rt = NULL;
	}
	unsetenv("AVA_LIMITS_ITERATIONS");
	o.env = (const char *const[]){"AVA_RUNS_MAX=none", NULL};
	o.process_env = 0;
	assert_int_equal(ava_runtime_new(&w->rt, &o, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "AVA_RUNS_MAX"));
}

UNIT_GROUP(.before = world_begin, .after = world_end);

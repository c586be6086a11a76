/* Every route, through the real client: answers, every error status, peers
 * that hang up before they are answered, the stop. Streams are in
 * test_event_streams.c. */
#include "gateway_rig.h"

#include <sys/wait.h>

#define RUNS "/api/v1/runs"

static void assert_error(const char *method, const char *path, const char *body, int status,
			 const char *code, const char *says)
{
	json_t *v = rig_ask(method, path, body, status), *e = json_object_get(v, "error");
	const char *word = json_get_str(e, "code"), *text = json_get_str(e, "message");

	if (!word || strcmp(word, code) != 0 || !text || !strstr(text, says))
		fail_msg("%s %s: %s: %s, not %s: %s", method, path, word, text, code, says);
	json_decref(v);
}

static const char *propose(const char *task, char id[64])
{
	char body[600];

	snprintf(body, sizeof(body), "{\"task\":\"%s\",\"role\":\"code_reviewer\",\"cwd\":\"%s\"}",
		 task, rig.src);
	return rig_ask_str("POST", RUNS, body, 201, "proposal_id", id);
}

/* ---- what works */

TEST(health)
{
	json_auto_t *v = rig_ask("GET", "/api/v1/health", NULL, 200);

	assert_string_equal(json_get_str(v, "status"), "ok");
	assert_string_equal(json_get_str(v, "problem"), "");
	assert_string_equal(json_get_str(v, "version"), ava_version());
	assert_string_equal(json_get_str(v, "root"), rig.root);
	assert_string_equal(json_get_str(v, "model"), "offline");
	assert_int_equal(json_get_int(v, "pid", 0), getpid());
	assert_int_equal(json_get_int(json_object_get(v, "slots"), "max", 0), 8);
	/* those of the start, when they are on disk already */
	assert_in_range(json_get_int(json_object_get(v, "journal"), "lsn", 1000), 0, 10);
}

/* The n-th event type of an answer. */
static const char *type_at(const json_t *v, size_t n)
{
	return json_get_str(json_array_get(json_object_get(v, "events"), n), "eventType");
}

TEST(logs)
{
	json_t *v = NULL;
	int64_t first;

	/* A commit may be under way; each request gives it its turn. */
	do {
		json_decref(v);
		v = rig_ask("GET", "/api/v1/logs?type=logopen", NULL, 200);
	} while (json_array_size(json_object_get(v, "events")) == 0);

	assert_string_equal(type_at(v, 0), "LogOpen");
	assert_int_equal(json_get_int(v, "brokenLines", -1), 0);
	first = json_get_int(v, "next", 0);
	assert_true(first > 0);
	json_decref(v);
	v = rig_ask("GET", rig_path("/api/v1/logs?type=logopen&after=%s", "0"), NULL, 200);
	assert_int_equal(json_get_int(v, "next", 0), first);
	assert_false(json_get_bool(v, "more", true));
	json_decref(v);
	v = rig_ask("GET", "/api/v1/logs?search=no%20such%20text&limit=1", NULL, 200);
	assert_int_equal(json_array_size(json_object_get(v, "events")), 0);
	json_decref(v);
	assert_error("GET", "/api/v1/logs?type=nonsense", NULL, 400, "invalid", "no event type");
	assert_error("GET", "/api/v1/logs?since=soon", NULL, 400, "invalid", "is no time");
	assert_error("GET", "/api/v1/logs?regex=(", NULL, 400, "invalid", "the expression is");
	assert_error("GET", "/api/v1/logs?limit=1001", NULL, 400, "invalid", "from 1 to 1000");
	assert_error("GET", "/api/v1/logs?limit=", NULL, 400, "invalid", "from 1 to 1000");
	assert_error("GET", "/api/v1/logs?colour=red", NULL, 400, "invalid", "unknown argument");
	assert_error("GET", "/api/v1/logs?after=1&after=2", NULL, 400, "invalid", "given twice");
	assert_error("GET", "/api/v1/logs?run=S-000000", NULL, 404, "not_found", "no log of");
}

/* A program's line is on disk when it is answered, and is never the runtime's. */
TEST(audit)
{
	const json_t *c;
	json_auto_t *v = NULL;

	json_decref(rig_ask("POST", "/api/v1/audit",
			    "{\"type\":\"deploy.begun\",\"data\":{\"host\":\"a\"}}", 201));
	v = rig_ask("GET", "/api/v1/logs?type=custom", NULL, 200);
	c = json_object_get(json_array_get(json_object_get(v, "events"), 0), "content");
	assert_string_equal(json_get_str(c, "customType"), "audit.deploy.begun");
	assert_string_equal(json_get_str(json_object_get(c, "data"), "host"), "a");
	assert_error("POST", "/api/v1/audit", "{\"data\":{}}", 400, "invalid", "type must be");
	assert_error("POST", "/api/v1/audit", "{\"type\":\"a b\"}", 400, "invalid", "type must be");
	assert_error("POST", "/api/v1/audit", "{\"type\":\"a\",\"session_id\":\"none\"}", 404,
		     "not_found", "no session none");
}

TEST(roles)
{
	json_t *v = rig_ask("GET", "/api/v1/roles", NULL, 200),
	       *roles = json_object_get(v, "roles");
	const json_t *each;
	unsigned usable = 0;
	size_t i;

	json_array_foreach(roles, i, each)
	{
		bool can = json_get_bool(each, "usable", false);

		assert_true(can == (json_get_str(each, "why")[0] == '\0'));
		if (strcmp(json_get_str(each, "name"), "code_reviewer") == 0) {
			assert_true(can);
			assert_int_equal(json_get_int(each, "max_cost_cents", 0), 100);
		}
		usable += can;
	}
	assert_true(usable > 0);
	json_decref(v);
}

TEST(request_ids)
{
	static const char proposal[] = "{\"task\":\"a\",\"role\":\"code_reviewer\",\"cwd\":\"/\","
				       "\"request_id\":\"q1\"}";
	static const char run[] = "{\"task\":\"a\",\"role\":\"code_reviewer\",\"cwd\":\"/\","
				  "\"request_id\":\"q2\",\"confirmed\":true}";
	static const char mixed[] = "{\"task\":\"a\",\"role\":\"code_reviewer\",\"cwd\":\"/\","
				    "\"request_id\":\"q1\",\"confirmed\":true}";
	static const char other[] = "{\"task\":\"a\",\"role\":\"code_reviewer\",\"cwd\":\"/\","
				    "\"request_id\":\"q2\"}";
	char first[64], again[64];

	rig_ask_str("POST", RUNS, proposal, 201, "proposal_id", first);
	rig_ask_str("POST", RUNS, proposal, 200, "proposal_id", again);
	assert_string_equal(first, again);
	assert_error("POST", RUNS, mixed, 409, "exists", first);
	rig_ask_str("POST", RUNS, run, 201, "subagent_id", first);
	rig_ask_str("POST", RUNS, run, 200, "subagent_id", again);
	assert_string_equal(first, again);
	assert_error("POST", RUNS, other, 409, "exists", first);
	rig_stop();
	rig_start();
	rig_ask_str("POST", RUNS, run, 200, "subagent_id", again);
	assert_string_equal(first, again);
}

/* Twice at once, the second before the first is on disk: one run, and nobody
 * hears of it before it is there. */
TEST(request_id_twice_at_once)
{
	static const char body[] = "{\"task\":\"a\",\"role\":\"code_reviewer\",\"cwd\":\"/\","
				   "\"request_id\":\"twice\",\"confirmed\":true}";
	char got[4][2000];
	unsigned made = 0;
	int fd[4];

	rig_restart(true);
	atomic_store(&rig_held, true);
	for (int i = 0; i < 4; i++)
		fd[i] = raw_post(RUNS, body);
	rig_wait_busy(4);
	for (int i = 0; i < 4; i++) {
		raw_read(fd[i], got[i], sizeof(got[i]));
		close(fd[i]);
		made += strncmp(got[i], "HTTP/1.1 201", 12) == 0;
		assert_true(strncmp(got[i], "HTTP/1.1 20", 11) == 0);
		assert_string_equal(strchr(got[i], '{'), strchr(got[0], '{'));
	}
	assert_int_equal(made, 1);
}

/* What is not seen yet, by number, and that it was; twice is once. What both are about is in
 * test_delivery.c. */
TEST(unseen_and_ack)
{
	char id[64], path[200], body[100], entry[64], said[64] = "";
	json_t *v;

	rig_ask_str("POST", "/api/v1/sessions", "{}", 201, "session_id", id);
	rig_ask_str("POST", rig_path("/api/v1/sessions/%s/messages", id), "{\"text\":\"hello\"}",
		    202, "entry", entry);
	snprintf(path, sizeof(path), "/api/v1/sessions/%s/unseen?channel=terminal", id);
	for (int i = 0; i < 6000 && !said[0]; i++) {
		poll(NULL, 0, 10);
		rig_ask_str("GET", path, NULL, 200, "summary", said);
	}
	assert_string_equal(said, "1 message while you were away");
	v = rig_ask("GET", path, NULL, 200);
	snprintf(body, sizeof(body), "{\"channel\":\"terminal\",\"lsn\":%lld}",
		 (long long)json_get_int(v, "lsn", 0));
	json_decref(v);
	for (int i = 0; i < 2; i++) {
		v = rig_ask("POST", rig_path("/api/v1/sessions/%s/ack", id), body, 200);
		assert_int_equal(json_get_int(v, "acknowledged", -1), i == 0);
		assert_int_equal(json_get_int(v, "unseen", -1), 0);
		json_decref(v);
	}
	assert_string_equal(rig_ask_str("GET", path, NULL, 200, "summary", said), "");
}

/* The first of what is not seen there yet; 0: nothing is. */
static int64_t first_unseen(const char *id)
{
	json_t *v = rig_ask("GET", rig_path("/api/v1/sessions/%s/unseen?channel=terminal", id),
			    NULL, 200);
	int64_t lsn = json_get_int(json_array_get(json_object_get(v, "items"), 0), "lsn", 0);

	json_decref(v);
	return lsn;
}

/* A conversation in which something waits is not begun anew, though nothing was said in it. */
TEST(quoted_before_words)
{
	char id[64], quote[64], begin[100], body[300];

	rig_ask_str("POST", "/api/v1/sessions", "{}", 201, "session_id", id);
	snprintf(begin, sizeof(begin), "{\"session_id\":\"%s\"}", id);
	rig_ask_str("POST", "/api/v1/sessions", begin, 201, "session_id", id);
	snprintf(body, sizeof(body),
		 "{\"task\":\"a\",\"role\":\"code_reviewer\",\"cwd\":\"/\",\"session_id\":\"%s\"}",
		 id);
	rig_ask_str("POST", RUNS, body, 201, "proposal_id", quote);
	assert_true(first_unseen(id) > 0);
	json_decref(rig_ask("POST", "/api/v1/sessions", begin, 409));
	assert_true(first_unseen(id) > 0);
}

static void abandon(void *id)
{
	struct run *r = supervisor_find(&rig.core->sup, id);

	r->end.abandoned = !r->end.abandoned;
}

/* A run that ran out of memory does not end: nobody waits for it. */
TEST(cancel_all_with_an_abandoned_run)
{
	char id[64], other[64];
	json_t *v, *runs;

	rig_run("slow.jsonl", id);
	rig_run("slow.jsonl", other);
	rig_call(abandon, id);
	v = rig_ask("POST", RUNS "/cancel", "{\"all\":true}", 200);
	runs = json_object_get(v, "runs");
	assert_int_equal(json_array_size(runs), 2);
	assert_string_equal(json_get_str(json_array_get(runs, 0), "unknown"), id);
	assert_non_null(json_object_get(json_array_get(runs, 1), "run"));
	json_decref(v);
	rig_call(abandon, id);
}

static void has_waits(void *arg)
{
	*(bool *)arg = !list_empty(&rig.core->waits);
}

TEST(result_wait)
{
	char id[64], word[64], got[4000];
	bool waits = false;
	int fd;

	rig_run("slow.jsonl", id);
	rig_ask_str("GET", rig_path(RUNS "/%s/result", id), NULL, 202, "subagent_id", word);
	assert_string_equal(word, id);
	test_clock_stop();
	fd = raw_connect();
	raw_send(fd,
		 "GET " RUNS "/%s/result?wait=3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		 id);
	while (!waits)
		rig_call(has_waits, &waits);
	test_clock_skip(2900);
	for (int i = 0; i < 5; i++)
		rig_call(has_waits, &waits);
	assert_true(waits);
	test_clock_skip(100);
	raw_read(fd, got, sizeof(got));
	close(fd);
	assert_memory_equal(got, "HTTP/1.1 202 ", 13);
}

/* A body that is not understood is never taken for a yes. */
TEST(nothing_odd_is_a_yes)
{
	static const char *const bodies[] = {
		"{\"answer\":false}",
		"{\"answer\":null}",
		"{\"answer\":0}",
		"{\"answer\":[]}",
		"{\"answer\":\"\"}",
		"\"no\"",
		"false",
		"null",
		"[]",
		"{\"anwser\":\"no\"}",
		"{\"by\":7}",
		"no",
		"{\"answer\":\"yes\",\"answer\":\"no\"}",
	};
	char p[64], word[64];

	propose("a", p);
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
		assert_error("POST", rig_path("/api/v1/proposals/%s/confirm", p), bodies[i], 400,
			     "invalid", "");
	rig_ask_str("GET", rig_path("/api/v1/proposals/%s", p), NULL, 200, "state", word);
	assert_string_equal(word, "pending");
}

TEST(shutdown_route)
{
	char when[64];

	rig_ask_str("POST", "/api/v1/shutdown", NULL, 202, "when", when);
	assert_string_equal(when, "idle");
	rig_ask_str("POST", "/api/v1/shutdown", "{\"when\":\"now\"}", 202, "when", when);
	assert_string_equal(when, "now");
	assert_int_equal(rig.asked_to_stop, 101);
	assert_error("POST", "/api/v1/shutdown", "{\"when\":\"soon\"}", 400, "invalid",
		     "when must");
	assert_error("POST", "/api/v1/shutdown", "{\"when\":1}", 400, "invalid", "when must");
	assert_int_equal(rig.asked_to_stop, 101);
}

/* ---- every error */

TEST(refused)
{
	static const struct {
		const char *method, *path, *body;
		int status;
		const char *code, *says;
	} cases[] = {
		{"GET", "/", NULL, 404, "not_found", "no such path"},
		{"GET", "/api/v1", NULL, 404, "not_found", "no such path"},
		{"GET", "/api/v1/health/", NULL, 404, "not_found", "no such path"},
		{"GET", RUNS "/", NULL, 404, "not_found", "no such path"},
		{"GET", RUNS "/S-1/results", NULL, 404, "not_found", "no such path"},
		{"GET", "/api/v1/%00health", NULL, 404, "not_found", "no such path"},
		{"GET", RUNS "/S-000000", NULL, 404, "not_found", "there is no run S-000000"},
		{"GET", RUNS "/S-000000/result", NULL, 404, "not_found", "S-000000"},
		{"GET", RUNS "/S-000000/events", NULL, 404, "not_found", "S-000000"},
		{"POST", RUNS "/S-000000/cancel", NULL, 404, "not_found", "S-000000"},
		{"GET", RUNS "/..%2f..%2fetc", NULL, 404, "not_found", "no such path"},
		{"GET", RUNS "/..", NULL, 400, "invalid", "is not a run id"},
		{"GET", RUNS "/S-xyz", NULL, 400, "invalid", "is not a run id"},
		{"GET", RUNS "/S-xyz/events", NULL, 400, "invalid", "is not a run id"},
		{"GET", RUNS "/P-000000/result", NULL, 400, "invalid", "is not a run id"},
		{"GET", "/api/v1/proposals/P-000000", NULL, 404, "not_found", "no proposal"},
		{"POST", "/api/v1/proposals/P-000000/confirm", NULL, 404, "not_found", "P-000000"},
		{"POST", "/api/v1/proposals/x/reject", NULL, 404, "not_found", "no proposal x"},
		{"GET", RUNS "?limit=0", NULL, 400, "invalid", "limit is \"0\""},
		{"GET", RUNS "?limit=5x", NULL, 400, "invalid", "limit is \"5x\""},
		{"GET", RUNS "?limit=-1", NULL, 400, "invalid", "limit is"},
		{"GET", RUNS "?limit=+1", NULL, 400, "invalid", "limit is"},
		{"GET", RUNS "?limit=", NULL, 400, "invalid", "limit is"},
		{"GET", RUNS "?limit=100001", NULL, 400, "invalid", "from 1 to 100000"},
		{"GET", RUNS "?limit=99999999999999999999999", NULL, 400, "invalid", "limit is"},
		{"GET", RUNS "?limit=1&limit=2", NULL, 400, "invalid", "limit is given twice"},
		{"GET", RUNS "?all=maybe", NULL, 400, "invalid", "all is \"maybe\""},
		{"GET", RUNS "/S-000000/result?wait=x", NULL, 400, "invalid", "wait is \"x\""},
		{"GET", RUNS "/S-000000/result?wait=-1", NULL, 400, "invalid", "wait is"},
		{"GET", RUNS "/S-000000/result?wait=nan", NULL, 400, "invalid", "wait is"},
		{"GET", RUNS "/S-000000/result?wait=1e9", NULL, 400, "invalid", "wait is"},
		{"GET", RUNS "/S-000000/result?wait=1.", NULL, 400, "invalid", "wait is"},
		{"GET", "/api/v1/events?after=x", NULL, 400, "invalid", "after is \"x\""},
		{"GET", "/api/v1/events?machines=x", NULL, 400, "invalid", "machines must be all"},
		{"GET", "/api/v1/events?after=-1", NULL, 400, "invalid", "after is"},
		{"GET", "/api/v1/events?after=18446744073709551615", NULL, 400, "invalid",
		 "after is"},
		{"POST", RUNS, NULL, 400, "invalid", "the body must be a JSON object"},
		{"POST", RUNS, "{\"task\":", 400, "invalid", "the body is not valid JSON"},
		{"POST", RUNS, "{\"task\":\"a\",\"role\":\"web_crawler\"}", 422, "unsupported",
		 "web_crawler"},
		{"POST", RUNS, "{\"role\":\"researcher\"}", 400, "invalid", "task"},
		{"POST", "/api/v1/sessions/none/ack", "{\"channel\":\"terminal\"}", 400, "invalid",
		 "channel and lsn are needed"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_error(cases[i].method, cases[i].path, cases[i].body, cases[i].status,
			     cases[i].code, cases[i].says);
}

static void queue_is_full(void *arg)
{
	rig.core->settings.runs_max = 1;
	rig.core->settings.runs_queue_max = 1;
}

static void disk_is_full(void *arg)
{
	rig.core->settings.disk_free_min_mb = INT64_C(1) << 40;
}

static void root_is_lost(void *arg)
{
	struct core_service *s = core_service(rig.core);

	snprintf(s->problem, sizeof(s->problem), "%s", (const char *)arg);
}

TEST(queue_full)
{
	char id[64], body[600];

	rig_call(queue_is_full, NULL);
	rig_run("slow.jsonl", id);
	rig_run("slow.jsonl", id);
	snprintf(body, sizeof(body),
		 "{\"task\":\"a\",\"role\":\"code_reviewer\",\"cwd\":\"%s\",\"confirmed\":true}",
		 rig.src);
	assert_error("POST", RUNS, body, 409, "busy", "wait for a slot");
}

TEST(disk_full)
{
	char p[64], word[64];

	propose("a", p);
	rig_call(disk_is_full, NULL);
	assert_error("POST", RUNS, "{\"task\":\"a\"}", 507, "disk_full", "disk.free_min_mb");
	assert_error("POST", rig_path("/api/v1/proposals/%s/confirm", p), NULL, 507, "disk_full",
		     "make room");
	rig_ask_str("GET", "/api/v1/health", NULL, 200, "status", word);
	assert_string_equal(word, "degraded");
	/* It is asked for no room to say no. */
	rig_ask_str("POST", rig_path("/api/v1/proposals/%s/reject", p), NULL, 200, "state", word);
}

TEST(lost_root)
{
	static char says[] = "the data root has gone";
	char p[64], word[64];

	propose("a", p);
	rig_call(root_is_lost, says);
	assert_error("POST", RUNS, "{\"task\":\"a\"}", 503, "io", "nothing was started: the data");
	assert_error("POST", rig_path("/api/v1/proposals/%s/confirm", p), NULL, 503, "io", says);
	rig_ask_str("GET", "/api/v1/health", NULL, 200, "problem", word);
	assert_string_equal(word, says);
	rig_call(root_is_lost, (void *)(uintptr_t) "");
	json_decref(rig_ask("POST", rig_path("/api/v1/proposals/%s/confirm", p), NULL, 200));
}

/* ---- methods */

static void assert_raw(const char *request, const char *begins, const char *holds)
{
	int fd = raw_connect();
	char got[4000];

	raw_send(fd, request, "");
	raw_read(fd, got, sizeof(got));
	close(fd);
	if (strncmp(got, begins, strlen(begins)) != 0 || !strstr(got, holds))
		fail_msg("%s\nanswered %s\nnot %s ... %s", request, got, begins, holds);
}

#define END "HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

TEST(methods)
{
	static const char *const paths[][2] = {
		{"/api/v1/health", "\r\nAllow: GET, HEAD\r\n"},
		{RUNS, "\r\nAllow: POST, GET, HEAD\r\n"},
		{"/api/v1/shutdown", "\r\nAllow: POST\r\n"},
		{RUNS "/S-000000/cancel", "\r\nAllow: POST\r\n"},
	};
	char request[300];

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		snprintf(request, sizeof(request), "DELETE %s " END, paths[i][0]);
		assert_raw(request, "HTTP/1.1 405 ", paths[i][1]);
		assert_raw(request, "HTTP/1.1 405 ", "\"code\":\"invalid\"");
	}
	assert_raw("OPTIONS /api/v1/runs " END, "HTTP/1.1 405 ", "Allow: POST, GET, HEAD\r\n");
	assert_raw("GET /api/v1/shutdown " END, "HTTP/1.1 405 ", "Allow: POST\r\n");
	assert_raw("POST /api/v1/health " END, "HTTP/1.1 405 ", "Allow: GET, HEAD\r\n");
}

TEST(head)
{
	int fd = raw_connect();
	char got[4000], *end;

	raw_send(fd, "HEAD /api/v1/proposals " END, "");
	raw_read(fd, got, sizeof(got));
	close(fd);
	assert_memory_equal(got, "HTTP/1.1 200 OK\r\n", 17);
	assert_non_null(strstr(got, "Content-Length: 16\r\n"));
	assert_non_null(strstr(got, "Cache-Control: no-store\r\n"));
	assert_non_null(strstr(got, "X-Content-Type-Options: nosniff\r\n"));
	end = strstr(got, "\r\n\r\n");
	assert_non_null(end);
	assert_string_equal(end + 4, "");
	assert_raw("HEAD /api/v1/events " END, "HTTP/1.1 200 ", "text/event-stream");
	assert_raw("HEAD /api/v1/nothing " END, "HTTP/1.1 404 ", "");
}

TEST(body_where_none_belongs)
{
	assert_raw("GET /api/v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		   "Content-Length: 2\r\n\r\n{}",
		   "HTTP/1.1 400 ", "a GET request takes no body");
}

TEST(cursor_header)
{
	assert_raw("GET /api/v1/events HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		   "Last-Event-ID: 12x\r\n\r\n",
		   "HTTP/1.1 400 ", "Last-Event-ID is \\\"12x\\\"");
}

/* ---- who may ask */

TEST(strangers)
{
	char got[1000];
	pid_t pid;
	int fds[2], status;

	if (geteuid() != 0)
		skip(); /* only root can be somebody else */
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		/* The credentials of the moment of connecting count; the socket
		 * itself is 0600, so this one is handed an open door. */
		int fd = -1;

		if (fchmodat(rig.dirfd, UNIX_SOCK_NAME, 0666, 0) != 0 ||
		    chmod(rig.root, 0755) != 0 || chmod(rig.dir, 0755) != 0 ||
		    setresuid(65534, 65534, 65534) != 0 ||
		    unix_sock_connect(rig.dirfd, UNIX_SOCK_NAME, 5000, &fd, NULL) != 0)
			_exit(1);
		raw_send(fd, "GET /api/v1/health " END, "");
		raw_read(fd, got, sizeof(got));
		_exit(write(fds[1], got, strlen(got)) < 0);
	}
	close(fds[1]);
	raw_read(-1, got, sizeof(got)); /* empty */
	for (size_t n = 0; n < sizeof(got) - 1;) {
		ssize_t more = read(fds[0], got + n, sizeof(got) - 1 - n);

		if (more <= 0)
			break;
		n += (size_t)more;
		got[n] = '\0';
	}
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_memory_equal(got, "HTTP/1.1 403 ", 13);
	assert_non_null(strstr(got, "serves its owner only"));
}

/* ---- peers that leave */

static int raw_wait(const char *id)
{
	int fd = raw_connect();

	raw_send(fd, "GET " RUNS "/%s/result?wait=3000 HTTP/1.1\r\nHost: x\r\n\r\n", id);
	return fd;
}

TEST(peer_leaves_a_wait)
{
	char id[64], word[64];

	rig_run("slow.jsonl", id);
	for (int i = 0; i < 20; i++) {
		int fd = raw_wait(id);

		if (i % 2) { /* also once it is certainly kept */
			unsigned n;

			rig_call(rig_connections_fn, &n);
		}
		close(fd);
	}
	rig_wait_connections(1);
	assert_true(list_empty(&rig.core->waits));
	rig_ask_str("GET", rig_path(RUNS "/%s", id), NULL, 200, "status", word);
	assert_string_equal(word, "running");
}

TEST(peer_leaves_a_cancel)
{
	char id[64], word[64];
	int fd;

	rig_restart(true);
	rig_run("slow.jsonl", id);
	atomic_store(&rig_held, true);
	fd = raw_post(rig_path(RUNS "/%s/cancel", id), "");
	rig_wait_busy(1);
	close(fd);
	rig_ask_str("GET", rig_path(RUNS "/%s/result?wait=30", id), NULL, 200, "status", word);
	assert_string_equal(word, "cancelled");
	rig_wait_connections(1);
}

TEST(peer_leaves_a_confirmation)
{
	char p[64], word[64] = "";
	int fd;

	rig_restart(true);
	propose("a", p);
	atomic_store(&rig_held, true);
	fd = raw_post(rig_path("/api/v1/proposals/%s/confirm", p), "");
	rig_wait_busy(1);
	close(fd);
	for (int i = 0; i < 6000 && strcmp(word, "confirmed") != 0; i++) {
		poll(NULL, 0, 10);
		rig_ask_str("GET", rig_path("/api/v1/proposals/%s", p), NULL, 200, "state", word);
	}
	assert_string_equal(word, "confirmed");
	/* Whoever asks again gets what was done. */
	rig_ask_str("POST", rig_path("/api/v1/proposals/%s/confirm", p), NULL, 200, "subagent_id",
		    word);
}

/* Everything kept at once, and then the runtime goes. */
TEST(stop_with_everything_kept)
{
	char id[64];
	int fd[3];

	rig_restart(true);
	rig_run("slow.jsonl", id);
	atomic_store(&rig_held, true);
	fd[0] = raw_wait(id);
	fd[1] = raw_connect();
	raw_send(fd[1], "GET " RUNS "/%s/events HTTP/1.1\r\nHost: x\r\n\r\n", id);
	fd[2] = raw_post(rig_path(RUNS "/%s/cancel", id), "");
	rig_wait_busy(3);
	rig_restart(false);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
}

/* ---- the stop */

static void stop_routes(void *arg)
{
	routes_stop(&rig.routes);
}

TEST(stop_answers_waits)
{
	char id[64], got[4000];
	int fd;

	rig_run("slow.jsonl", id);
	fd = raw_wait(id);
	for (unsigned n = 0; n < 2;)
		rig_call(rig_connections_fn, &n);
	rig_call(stop_routes, NULL);
	raw_read(fd, got, sizeof(got)); /* up to the end: the connection is closed */
	close(fd);
	assert_memory_equal(got, "HTTP/1.1 202 ", 13);
	assert_non_null(strstr(got, "\"status\":\"running\""));
	/* Later ones do not wait, and are the last of their connection too. */
	fd = raw_wait(id);
	raw_read(fd, got, sizeof(got));
	close(fd);
	assert_memory_equal(got, "HTTP/1.1 202 ", 13);
	assert_non_null(strstr(got, "\r\nConnection: close\r\n"));
}

/* ---- two prunes at once */

static atomic_int removing; /* 1: the first removal stands still */

static int hold_unlinkat(int dirfd, const char *path, int flags)
{
	if (strncmp(path, "logs/subagents/", 15) == 0 && atomic_load(&removing) == 0) {
		atomic_store(&removing, 1);
		while (atomic_load(&removing) == 1)
			poll(NULL, 0, 1);
	}
	return unlinkat(dirfd, path, flags);
}

static size_t runs_pruned(const char *body)
{
	json_auto_t *v = rig_ask("POST", "/api/v1/prune", body, 200);
	size_t n = json_array_size(json_object_get(v, "runs"));

	return n;
}

/* There is one list of what still goes, for the next start: the second would put its own in
 * the place of the first's, and take it away with what the other has not removed yet. */
TEST(one_prune_after_the_other)
{
	static const char body[] = "{\"older_than_seconds\":1}";
	static struct sys_ops ops;
	struct client_reply second;
	char text[400], answer[4000];
	bool listed;
	int fd;

	rig_stop();
	ops = sys_real;
	ops.unlinkat = hold_unlinkat;
	sys = &ops;
	atomic_store(&removing, 0);
	rig_start();
	snprintf(text, sizeof(text),
		 "{\"task\":\"Where is main?\",\"role\":\"code_reviewer\",\"confirmed\":true,"
		 "\"cwd\":\"%s\"}",
		 rig.src);
	json_decref(rig_ask("POST", RUNS, text, 201));
	while (runs_pruned("{\"older_than_seconds\":1,\"dry_run\":true}") == 0)
		poll(NULL, 0, 50);
	fd = raw_post("/api/v1/prune", body);
	while (atomic_load(&removing) == 0)
		poll(NULL, 0, 1);
	snprintf(text, sizeof(text), "%s/seals/pruning", rig.root);
	assert_int_equal(access(text, F_OK), 0);
	assert_int_equal(client_request(rig.client, "POST", "/api/v1/prune", body, &second, NULL),
			 0);
	listed = access(text, F_OK) == 0;
	atomic_store(&removing, 2);
	assert_true(listed);
	assert_int_equal(second.status, 409);
	assert_non_null(strstr(second.body, "pruned already"));
	raw_read(fd, answer, sizeof(answer));
	assert_non_null(strstr(answer, "HTTP/1.1 200"));
	close(fd);
	assert_int_equal(access(text, F_OK), -1);
	assert_int_equal(runs_pruned(body), 0);
}

UNIT_GROUP(.before = rig_set_up, .after = rig_tear_down);

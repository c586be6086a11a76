/* Records of ended runs are read on pool threads: while they are, however long they
 * are, the loop serves everybody else. The threads of the pool are held here, so that
 * a record takes as long as the test wants. */
#include "gateway_rig.h"

#define POOL 4

static struct os_work held[POOL];
static sem_t working, go;

static void hold(struct os_work *w)
{
	sem_post(&working);
	while (sem_wait(&go) != 0)
		;
}

static void let_go(struct os_work *w) {}

static void hold_fn(void *arg)
{
	for (int i = 0; i < POOL; i++) {
		held[i] = (struct os_work){.work = hold, .done = let_go};
		os_work_start(rig.loop, &held[i]);
	}
}

static void pool_hold(void)
{
	sem_init(&working, 0, 0);
	sem_init(&go, 0, 0);
	rig_call(hold_fn, NULL);
	for (int i = 0; i < POOL; i++)
		while (sem_wait(&working) != 0)
			;
}

static void pool_release(void)
{
	for (int i = 0; i < POOL; i++)
		sem_post(&go);
}

/* ---- requests whose answers take their time */

static bool answered(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* Its answer, when it comes; closes it. */
static json_t *answer(int fd, int status)
{
	static char text[200000];
	const char *body;
	json_t *v;

	raw_read(fd, text, sizeof(text));
	close(fd);
	if (atoi(text + strcspn(text, " ")) != status)
		fail_msg("not %d: %s", status, text);
	body = strstr(text, "\r\n\r\n");
	assert_non_null(body);
	v = json_parse(body + 4, strlen(body + 4), NULL);
	assert_non_null(v);
	return v;
}

static void others_are_served(void)
{
	json_decref(rig_ask("GET", "/api/v1/health", NULL, 200));
	json_decref(rig_ask("GET", "/api/v1/runs", NULL, 200));
}

#define READS "{\"tool_calls\":[{\"name\":\"read_file\",\"args\":{\"path\":\"main.c\"}}]}\n"
#define SUBMITS                                                                                    \
	"{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"output\":null,"                  \
	"\"summary\":\"read\",\"confidence\":1}}]}\n"

/* One that has ended, with a record of two calls; the third turn is for one that goes
 * on behind the first. */
static const char *ended(char id[64])
{
	rig_write("two.jsonl", READS SUBMITS SUBMITS);
	rig_run("two.jsonl", id);
	json_decref(rig_ask("GET", rig_path("/api/v1/runs/%s/result?wait=60", id), NULL, 200));
	return id;
}

/* Asked twice at once, while the pool is held: others are served, one thing is made, and both
 * answers have its `key`; the first has this status. `other`: a request meanwhile that is told to
 * wait. */
static void twice(const char *path, const char *body, int status, const char *key,
		  const char *other, char id[64])
{
	json_t *a, *b;
	int one, two;

	pool_hold();
	one = raw_post(path, body);
	two = raw_post(path, body);
	rig_wait_busy(2);
	others_are_served();
	if (other)
		json_decref(rig_ask("POST", other, "{}", 409));
	assert_false(answered(one) || answered(two));
	pool_release();
	a = answer(one, status);
	b = answer(two, 200);
	assert_true(json_is_string(json_object_get(a, key)));
	assert_true(json_equal(json_object_get(a, key), json_object_get(b, key)));
	snprintf(id, 64, "%s", json_get_str(a, key));
	json_decref(a);
	json_decref(b);
}

static const char *ends(const char *run)
{
	static char as[64];

	return rig_ask_str("GET", rig_path("/api/v1/runs/%s/result?wait=60", run), NULL, 200,
			   "status", as);
}

/* ---- tests */

TEST(a_fork_is_proposed_and_confirmed)
{
	char id[64], resume[100], confirm[100], reject[100];

	snprintf(resume, sizeof(resume), "/api/v1/runs/%s/resume", ended(id));
	twice(resume, "{\"from\":2,\"request_id\":\"r-1\"}", 201, "proposal_id", NULL, id);
	snprintf(confirm, sizeof(confirm), "/api/v1/proposals/%s/confirm", id);
	snprintf(reject, sizeof(reject), "/api/v1/proposals/%s/reject", id);
	twice(confirm, "{\"answer\":\"yes\"}", 200, "subagent_id", reject, id);
	assert_string_equal(ends(id), "success");
}

/* A yes with less is made with that less, and said twice it is one. */
TEST(a_yes_that_lowers)
{
	static const char but[] = "{\"answer\":\"yes, but at most 5 iterations\"}";
	char confirm[100], id[64];
	json_auto_t *v = NULL;

	rig_ask_str("POST", rig_path("/api/v1/runs/%s/resume", ended(id)), "{}", 201, "proposal_id",
		    id);
	snprintf(confirm, sizeof(confirm), "/api/v1/proposals/%s/confirm", id);
	twice(confirm, but, 200, "subagent_id", NULL, id);
	v = rig_ask("GET", rig_path("/api/v1/runs/%s", id), NULL, 200);
	assert_int_equal(json_get_int(json_object_get(v, "limits"), "max_iterations", 0), 5);
	ends(id);
}

/* Confirmed by the request itself: one run, however often it is asked for. */
TEST(a_fork_that_starts_at_once)
{
	static const char body[] = "{\"from\":1,\"confirmed\":true,\"request_id\":\"r-2\"}";
	char id[64], resume[100];
	json_auto_t *v = NULL;

	snprintf(resume, sizeof(resume), "/api/v1/runs/%s/resume", ended(id));
	twice(resume, body, 201, "subagent_id", NULL, id);
	ends(id);
	/* Where nobody is asked, too. */
	v = rig_ask("POST", resume, "{\"confirm\":\"never\"}", 201);
	assert_string_equal(json_get_str(v, "state"), "confirmed");
	ends(json_get_str(v, "subagent_id"));
}

TEST(a_replay)
{
	char run[64], replay[100];
	int fd;
	json_auto_t *v = NULL;

	snprintf(replay, sizeof(replay), "/api/v1/runs/%s/replay", ended(run));
	pool_hold();
	fd = raw_post(replay, "{}");
	rig_wait_busy(1);
	others_are_served();
	assert_false(answered(fd));
	pool_release();
	v = answer(fd, 200);
	assert_true(json_get_bool(v, "identical", false));
}

/* Each has its bound, and says so. */
TEST(many_at_once)
{
	char run[64], resume[100], body[64];
	int fds[8];

	snprintf(resume, sizeof(resume), "/api/v1/runs/%s/resume", ended(run));
	pool_hold();
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		snprintf(body, sizeof(body), "{\"from\":1,\"request_id\":\"m-%zu\"}", i);
		fds[i] = raw_post(resume, body);
	}
	rig_wait_busy(ARRAY_LEN(fds));
	json_decref(rig_ask("POST", resume, "{}", 409));
	pool_release();
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		json_decref(answer(fds[i], 201));
	json_decref(rig_ask("POST", resume, "{}", 201));
}

/* What is gone when the yes comes: it waits on, and can be rejected. */
TEST(a_record_that_is_gone)
{
	char run[64], id[64], path[200];
	json_t *v;

	rig_ask_str("POST", rig_path("/api/v1/runs/%s/resume", ended(run)), "{}", 201,
		    "proposal_id", id);
	snprintf(path, sizeof(path), "runs/%s/messages.jsonl", run);
	assert_int_equal(unlinkat(rig.dirfd, path, 0), 0);
	v = rig_ask("POST", rig_path("/api/v1/proposals/%s/confirm", id), "{}", 404);
	json_decref(v);
	v = rig_ask("GET", rig_path("/api/v1/proposals/%s", id), NULL, 200);
	assert_string_equal(json_get_str(v, "state"), "pending");
	assert_string_equal(json_get_str(v, "confirmed_hash"), "");
	json_decref(v);
	json_decref(rig_ask("POST", rig_path("/api/v1/proposals/%s/reject", id), "{}", 200));
}

/* The runtime stops meanwhile: what is at work ends, and nobody waits for ever. */
TEST(a_stop_meanwhile)
{
	char run[64], resume[100];
	int one, two;

	snprintf(resume, sizeof(resume), "/api/v1/runs/%s/resume", ended(run));
	pool_hold();
	one = raw_post(resume, "{\"from\":1}");
	two = raw_post(resume, "{\"from\":1,\"confirmed\":true}");
	rig_wait_busy(2);
	pool_release();
	rig_stop();
	close(one);
	close(two);
	rig_start();
}

static int first(void **state)
{
	setenv("UV_THREADPOOL_SIZE", "4", 1);
	return 0;
}

UNIT_GROUP(.before = rig_set_up, .after = rig_tear_down, .first = first);

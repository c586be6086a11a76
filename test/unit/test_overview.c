/* What an overview stands on, through the real client: listings out of the
 * catalog alone, today's spend, several runs cancelled at once. */
#include "gateway_rig.h"

#define RUNS   "/api/v1/runs"
#define CANCEL "/api/v1/runs/cancel"

/* A run of the offline model over rig.src, ended. */
static void ended_run(char id[64])
{
	char body[600];

	snprintf(body, sizeof(body),
		 "{\"task\":\"Where is main defined?\",\"role\":\"code_reviewer\",\"cwd\":\"%s\","
		 "\"tags\":[\"nightly\",\"ops/x\",\"nightly\"],\"confirmed\":true}",
		 rig.src);
	rig_ask_str("POST", RUNS, body, 201, "subagent_id", id);
	json_decref(rig_ask("GET", rig_path(RUNS "/%s/result?wait=300", id), NULL, 200));
}

/* A listing tells of an ended run what the run's own file tells; its times are
 * those of the commit and not of the events, and tool calls stand in the file. */
TEST(listing_is_the_run)
{
	json_t *list, *row, *one;
	char id[64];

	ended_run(id);
	list = rig_ask("GET", RUNS "?all=1", NULL, 200);
	one = rig_ask("GET", rig_path(RUNS "/%s", id), NULL, 200);
	row = json_array_get(json_object_get(list, "runs"), 0);
	assert_string_equal(json_get_str(row, "subagent_id"), id);
	assert_string_equal(json_get_str(row, "task"), "Where is main defined?");
	assert_int_equal(json_array_size(json_object_get(row, "tags")), 2);
	assert_string_equal(json_string_value(json_array_get(json_object_get(row, "tags"), 1)),
			    "ops/x");
	for (int i = 0; i < 2; i++) {
		json_t *v = i ? one : row;

		assert_int_equal(strlen(json_get_str(v, "started_at")), CLOCK_ISO_LEN);
		assert_int_equal(strlen(json_get_str(v, "ended_at")), CLOCK_ISO_LEN);
		json_object_del(v, "started_at");
		json_object_del(v, "ended_at");
		json_object_del(v, "last_tool_call");
		json_object_del(v, "rights"); /* in its file */
	}
	assert_true(json_equal(row, one));
	json_decref(list);
	json_decref(one);
}

/* The catalog is enough: files of runs may be elsewhere. */
TEST(listing_opens_no_run)
{
	char id[64], path[600], word[64];
	json_auto_t *v = NULL;

	ended_run(id);
	snprintf(path, sizeof(path), "%s/logs/subagents/%s.jsonl", rig.root, id);
	assert_int_equal(unlink(path), 0);
	v = rig_ask("GET", RUNS "?all=1", NULL, 200);
	assert_string_equal(json_get_str(json_array_get(json_object_get(v, "runs"), 0), "task"),
			    "Where is main defined?");
	rig_ask_str("GET", rig_path(RUNS "/%s", id), NULL, 200, "task", word);
	assert_string_equal(word, "Where is main defined?");
}

TEST(long_task_is_cut)
{
	char body[2000], id[64], task[1000] = "";
	const char *got;
	json_auto_t *v = NULL;

	for (int i = 0; i < 300; i++)
		strcat(task, "\xc3\xa9");
	snprintf(body, sizeof(body), "{\"task\":\"a%s\",\"cwd\":\"%s\",\"confirmed\":true}", task,
		 rig.src);
	rig_ask_str("POST", RUNS, body, 201, "subagent_id", id);
	json_decref(rig_ask("GET", rig_path(RUNS "/%s/result?wait=300", id), NULL, 200));
	v = rig_ask("GET", RUNS "?all=1", NULL, 200);
	got = json_get_str(json_array_get(json_object_get(v, "runs"), 0), "task");
	assert_int_equal(strlen(got), 199); /* no half character */
	assert_int_equal(strncmp(got + 1, task, 198), 0);
}

TEST(today)
{
	char id[64];

	ended_run(id);
	for (int i = 0; i < 2; i++) { /* from its end, then from the catalog */
		json_auto_t *v = rig_ask("GET", "/api/v1/health", NULL, 200);
		json_t *today = json_object_get(v, "today");

		assert_int_equal(json_get_int(today, "runs", 0), 1);
		assert_true(json_get_int(today, "tokens", 0) > 0);
		assert_int_equal(json_get_int(today, "uncosted_runs", -1), 0);
		assert_int_equal(strlen(json_get_str(today, "date")), 10);
		rig_restart(false);
	}
}

/* ---- cancel */

static const json_t *of_run(const json_t *answer, const char *id)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(answer, "runs"), i, one)
	{
		const char *is = json_get_str(json_object_get(one, "run"), "subagent_id");

		if (is && strcmp(is, id) == 0)
			return one;
	}
	fail_msg("%s is not in the answer", id);
	return NULL;
}

static void assert_stopped(const json_t *answer, const char *id, bool had_ended)
{
	const json_t *one = of_run(answer, id), *run = json_object_get(one, "run");

	assert_string_equal(json_get_str(run, "status"), "cancelled");
	assert_int_equal(json_is_true(json_object_get(one, "had_ended")), had_ended);
	assert_true(json_get_str(run, "ended_at")[0]);
}

static void wait_calling(const char *id)
{
	for (int i = 0; i < 30000; i++) {
		json_auto_t *v = rig_ask("GET", rig_path(RUNS "/%s", id), NULL, 200);
		bool calling = json_get_int(v, "iteration", 0) > 0;

		if (calling)
			return;
		poll(NULL, 0, 1);
	}
	fail_msg("%s never called its model", id);
}

TEST(cancel_all)
{
	char id[10][64];
	json_t *v, *list;

	for (int i = 0; i < 10; i++) /* 8 slots: two are queued */
		rig_run("slow.jsonl", id[i]);
	wait_calling(id[0]);
	v = rig_ask("POST", CANCEL, "{\"all\":true}", 200);
	assert_int_equal(json_array_size(json_object_get(v, "runs")), 10);
	for (int i = 0; i < 10; i++)
		assert_stopped(v, id[i], false);
	list = rig_ask("GET", RUNS, NULL, 200);
	assert_int_equal(json_array_size(json_object_get(list, "runs")), 0);
	json_decref(list);
	json_decref(v);
	v = rig_ask("POST", CANCEL, "{\"all\":true}", 200); /* nothing is live */
	assert_int_equal(json_array_size(json_object_get(v, "runs")), 0);
	json_decref(v);
}

/* Live, ended, not known and named twice. */
TEST(cancel_some)
{
	char live[64], other[64], ended[64], body[400];
	const json_t *last;
	json_t *v;

	ended_run(ended);
	rig_run("slow.jsonl", live);
	rig_run("slow.jsonl", other);
	snprintf(body, sizeof(body), "{\"ids\":[\"%s\",\"%s\",\"%s\",\"S-000000\"]}", live, live,
		 ended);
	v = rig_ask("POST", CANCEL, body, 200);
	assert_int_equal(json_array_size(json_object_get(v, "runs")), 4);
	assert_stopped(v, live, false);
	assert_string_equal(json_get_str(json_object_get(of_run(v, ended), "run"), "status"),
			    "success");
	assert_true(json_is_true(json_object_get(of_run(v, ended), "had_ended")));
	last = NULL;
	for (size_t i = 0; i < 4; i++)
		if (json_get_str(json_array_get(json_object_get(v, "runs"), i), "unknown"))
			last = json_array_get(json_object_get(v, "runs"), i);
	assert_string_equal(json_get_str(last, "unknown"), "S-000000");
	assert_string_equal(json_get_str(json_object_get(last, "error"), "code"), "not_found");
	json_decref(v);
	v = rig_ask("GET", RUNS, NULL, 200);
	assert_int_equal(json_array_size(json_object_get(v, "runs")), 1);
	json_decref(v);
	json_decref(rig_ask("POST", CANCEL, "{\"all\":true}", 200));
}

TEST(cancel_refused)
{
	static const char *const bodies[] = {"{}",
					     "{\"all\":false}",
					     "{\"ids\":[]}",
					     "{\"ids\":[1]}",
					     "{\"ids\":\"S-000000\"}",
					     "{\"all\":true,\"ids\":[\"S-000000\"]}",
					     "{\"all\":1}",
					     "{\"every\":true}",
					     "[]"};
	char id[64], word[64];

	rig_run("slow.jsonl", id);
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
		json_decref(rig_ask("POST", CANCEL, bodies[i], 400));
	json_decref(rig_ask("POST", CANCEL, NULL, 400));
	rig_ask_str("GET", rig_path(RUNS "/%s", id), NULL, 200, "ended_at", word);
	assert_string_equal(word, ""); /* none of these was taken for all */
}

/* A stop of the runtime comes before the ends: no answer that says more than is
 * true, nothing left behind (the sanitisers look), and the run ends. */
TEST(stop_before_the_end)
{
	char id[64], got[4000];
	int fd;

	rig_restart(true);
	rig_run("slow.jsonl", id);
	wait_calling(id);
	atomic_store(&rig_held, true);
	fd = raw_post(CANCEL, "{\"all\":true}");
	rig_wait_busy(1);
	rig_write("slow.jsonl", "{\"text\":\"now\"}\n"); /* for who takes it up again */
	rig_restart(false);
	raw_read(fd, got, sizeof(got));
	close(fd);
	assert_true(!got[0] || strncmp(got, "HTTP/1.1 200", 12) == 0);
	json_decref(rig_ask("GET", rig_path(RUNS "/%s/result?wait=300", id), NULL, 200));
}

UNIT_GROUP(.before = rig_set_up, .after = rig_tear_down);

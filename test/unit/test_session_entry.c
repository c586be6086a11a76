/* Entries of session files against the golden file, and names of files. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/turn.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "provider/model.h"
#include "subagent/session_entry.h"

#define T0 1795248000123

static struct model offline;

static int set_up(void **state)
{
	return model_resolve("offline", &offline, NULL, NULL);
}

static void line(struct buf *out, const struct buf *b)
{
	assert_int_equal(buf_check(b), 0);
	buf_add(out, b->data, b->len);
	buf_addc(out, '\n');
}

#define ADD(call)                                                                                  \
	do {                                                                                       \
		buf_reset(&b);                                                                     \
		assert_int_equal(call, 0);                                                         \
		line(out, &b);                                                                     \
	} while (0)

/* Every kind of line; the process's own pid as 12345. */
static void make(struct buf *out)
{
	static const struct session_entry ids[] = {
		{"0000002a", T0},         {"0000002b", T0 + 1000},  {"0000002c", T0 + 2000},
		{"0000002d", T0 + 3000},  {"0000002e", T0 + 60000}, {"0000002f", T0 + 61000},
		{"00000030", T0 + 62000}, {"00000031", T0 + 63000}, {"00000032", T0 + 64000},
		{"00000033", T0 + 65000}};
	struct turn_call call = {.id = "c1.1",
				 .name = "spawn_subagent",
				 .args = "{\"role\":\"researcher\",\"task\":\"find it\"}",
				 .args_len = 38,
				 .output = "{\"proposal_id\":\"P-19c0de\"}",
				 .output_len = 26,
				 .success = true};
	struct turn asks = {.text = "Let me see.",
			    .text_len = 11,
			    .thinking = "A search.",
			    .thinking_len = 9,
			    .calls = &call,
			    .ncalls = 1,
			    .usage = {1200, 40, 1000, 100, 0, 23500, false}};
	struct turn says = {.text = "It stands in a.c:7.",
			    .text_len = 19,
			    .thinking = "",
			    .usage = {1300, 9, 0, 0, 0, -1, false},
			    .stop = TURN_STOP_LENGTH};
	struct session_agent_event event = {.run = "S-7f3a2b",
					    .mode = "single",
					    .requested_by = "ben",
					    .role = "researcher",
					    .model = "offline",
					    .started_ms = T0 + 3000};
	TEST_BUF(b, 1 << 20);

	ADD(session_header(&b, "0b5e2c4e-53a3-4b41-9d0b-3a8b8d8f7c11", T0, "/work", "ben",
			   "terminal"));
	ADD(session_user(&b, &ids[0], "Where is \"it\"?\n", 15));
	ADD(session_assistant(&b, &ids[1], &asks, &offline));
	ADD(session_tool_result(&b, &ids[2], &call));
	ADD(session_agent_event(&b, &ids[3], &event));
	event.completed_ms = T0 + 60000;
	event.duration_ms = 57000;
	event.input = 5000;
	event.output = 700;
	event.cache_read = 4000;
	event.cost_microusd = 23500;
	event.status = AVA_SUCCESS;
	event.summary = "It stands in a.c:7.";
	event.result = "runs/S-7f3a2b/result.json";
	ADD(session_agent_event(&b, &ids[4], &event));
	ADD(session_assistant(&b, &ids[5], &says, &offline));
	event.status = AVA_CANCELLED;
	event.cost_microusd = -1;
	ADD(session_agent_event(&b, &ids[6], &event));
	ADD(session_failure(&b, &ids[7], &offline, false, "the service is overloaded"));
	ADD(session_failure(&b, &ids[8], &offline, true, "stopped"));
	ADD(session_model(&b, &ids[9], &offline));
}

TEST(golden)
{
	char pid[32], *golden, *at;
	struct buf out;
	size_t len;

	buf_init(&out, 1 << 20);
	make(&out);
	assert_int_equal(buf_check(&out), 0);
	golden = unit_read_src("test/golden/sessions/session.jsonl", &len);
	snprintf(pid, sizeof(pid), "\"pid\":%d,", getpid());
	while ((at = strstr(out.data, pid)) != NULL) { /* ours is the golden one's */
		struct buf fixed;

		buf_init(&fixed, 1 << 20);
		buf_add(&fixed, out.data, (size_t)(at - out.data));
		buf_adds(&fixed, "\"pid\":12345,");
		buf_adds(&fixed, at + strlen(pid));
		buf_fini(&out);
		out = fixed;
	}
	assert_string_equal(out.data, golden);
	free(golden);
	buf_fini(&out);
}

/* Each line is JSON, and the journal finds the place of the parent in it. */
TEST(places)
{
	const char *l;
	size_t at = 0, n, lines = 0;
	TEST_BUF(out, 1 << 20);

	make(&out);
	while (jsonl_next(out.data, out.len, &at, &l, &n) == 1) {
		json_auto_t *o = json_parse(l, n, NULL);

		assert_non_null(o);
		assert_true(lines == 0 || memmem(l, n, "\"parentId\":null", 15) != NULL);
		lines++;
	}
	assert_int_equal(lines, 11);
}

TEST(names)
{
	char path[300], cwd[600];
	const char *id;
	size_t len;

	assert_int_equal(session_path(path, sizeof(path), "/home/ben/my code", T0, "0b5e2c4e-53a3"),
			 0);
	assert_string_equal(
		path, "sessions/--home-ben-my-code--/2026-11-21T08-00-00-123Z_0b5e2c4e-53a3.jsonl");
	id = session_path_id(strrchr(path, '/') + 1, &len);
	assert_non_null(id);
	assert_int_equal(len, 13);
	assert_memory_equal(id, "0b5e2c4e-53a3", 13);
	assert_int_equal(session_path(path, sizeof(path), "", T0, "0b5e2c4e-53a3"), 0);
	assert_non_null(strstr(path, "sessions/----/"));
	memset(cwd, 'a', sizeof(cwd) - 1);
	cwd[sizeof(cwd) - 1] = 0;
	cwd[0] = '/';
	assert_int_equal(session_path(path, sizeof(path), cwd, T0, "0b5e2c4e-53a3"), 0);
	assert_true(strlen(path) < 200);
	assert_int_equal(session_path(path, 60, cwd, T0, "0b5e2c4e-53a3"), AVA_ETOOBIG);
	/* what is beside it is no session */
	assert_null(session_path_id("2026-11-21T08-00-00-123Z_0b5e2c4e-53a3.messages.jsonl", &len));
	assert_null(session_path_id("x.jsonl", &len));
	assert_null(session_path_id("x_.jsonl", &len));
	assert_null(session_path_id("2026_0b5e2c4e-53a3.jsonl.broken", &len));
}

UNIT_GROUP(.first = set_up);

/* pi's form, and the one that had the service in front. */
TEST(model_read)
{
	static const struct {
		const char *line, *id;
	} cases[] = {
		{"{\"provider\":\"anthropic\",\"modelId\":\"claude-sonnet-4-5\"}",
		 "anthropic/claude-sonnet-4-5"},
		{"{\"provider\":\"anthropic\",\"modelId\":\"anthropic/claude-sonnet-4-5\"}",
		 "anthropic/claude-sonnet-4-5"},
		{"{\"message\":{\"provider\":\"openrouter\",\"model\":\"anthropic/claude-x\"}}",
		 "openrouter/anthropic/claude-x"},
		{"{\"message\":{\"provider\":\"offline\",\"model\":\"offline\"}}", "offline"},
		{"{\"message\":{\"model\":\"local/qwen3\"}}", "local/qwen3"},
		{"{\"message\":{\"provider\":\"google\",\"model\":\"gemini\"}}", NULL},
		{"{\"message\":{\"role\":\"user\"}}", NULL},
	};
	struct session_entry e = {.id = "00000001"};
	char id[120];
	struct model m;
	struct buf b;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_t *line = json_parse(cases[i].line, strlen(cases[i].line), NULL);

		assert_int_equal(session_model_read(line, id, sizeof(id)), cases[i].id != NULL);
		if (cases[i].id)
			assert_string_equal(id, cases[i].id);
		json_decref(line);
	}
	assert_int_equal(model_restore("anthropic/claude-sonnet-4-5", &m, NULL), 0);
	buf_init(&b, 4096);
	assert_int_equal(session_model(&b, &e, &m), 0);
	assert_non_null(strstr(b.data, "\"provider\":\"anthropic\","
				       "\"modelId\":\"claude-sonnet-4-5\""));
	buf_fini(&b);
}

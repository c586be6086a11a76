/* Requests of the Anthropic service: head, tail by the model's facts, headers,
 * the mark on the newest turn, and what a paused reply may look like. */
#include "check_more.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "provider/model.h"
#include "provider/wire.h"

static void expect(struct buf *b, const char *text)
{
	assert_int_equal(buf_check(b), 0);
	assert_string_equal(b->data, text);
	buf_reset(b);
}

TEST(head)
{
	static const struct tool read = {
		.name = "read_file", .description = "Read.", .schema = "{\"type\":\"object\"}"};
	const struct tool *tools[] = {&read};
	struct model m = {.wire_name = "claude-x-1"};
	struct dialect_spec spec = {
		"anthropic/claude-x-1", "You are\n\"one\".", tools, 1, &m, true};
	TEST_BUF(b, 4096);

	assert_int_equal(dialect_anthropic.encode_head(&b, &spec), 0);
	expect(&b,
	       "{\"model\":\"claude-x-1\",\"system\":[{\"type\":\"text\",\"text\":\"You are\\n"
	       "\\\"one\\\".\",\"cache_control\":{\"type\":\"ephemeral\"}}],\"tools\":[{\"name\":"
	       "\"read_file\",\"description\":\"Read.\",\"input_schema\":{\"type\":\"object\"}}],"
	       "\"messages\":[");
	spec = (struct dialect_spec){.model = "x", .system = ""};
	assert_int_equal(dialect_anthropic.encode_head(&b, &spec), 0);
	expect(&b, "{\"model\":\"x\",\"messages\":["); /* empty parts are refused */
	assert_true(model_drop(&m, "cache_control"));
	spec = (struct dialect_spec){.model = "x", .system = "s", .model_facts = &m};
	assert_int_equal(dialect_anthropic.encode_head(&b, &spec), 0);
	expect(&b, "{\"model\":\"claude-x-1\",\"system\":[{\"type\":\"text\",\"text\":\"s\"}],"
		   "\"messages\":[");
}

#define FORCE ",\"tool_choice\":{\"type\":\"tool\",\"name\":\"submit_result\"}"
#define ADAPT ",\"thinking\":{\"type\":\"adaptive\"}"
#define SPEND ",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":4096}"

static const struct {
	enum model_thinking mode;
	const char *drop; /* "" none */
	bool thinking, force;
	int64_t max_output;
	const char *says; /* between max_tokens and stream */
} tail_cases[] = {
	{MODEL_THINKING_NONE, "", true, false, 8192, ""},
	{MODEL_THINKING_ADAPTIVE, "", false, false, 8192, ""},
	{MODEL_THINKING_ADAPTIVE, "", true, false, 8192, ADAPT},
	{MODEL_THINKING_BUDGET, "", true, false, 8192, SPEND},
	{MODEL_THINKING_BUDGET, "", true, false, 2047, ""}, /* too little for a budget */
	{MODEL_THINKING_BUDGET, "", true, false, 2048,
	 ",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024}"},
	{MODEL_THINKING_BUDGET, "", true, true, 8192, FORCE}, /* they exclude each other */
	{MODEL_THINKING_ADAPTIVE, "", true, true, 8192, FORCE},
	{MODEL_THINKING_ADAPTIVE, "tool_choice", true, true, 8192, ADAPT},
	{MODEL_THINKING_BUDGET, "thinking.budget_tokens", true, false, 8192, ADAPT},
	{MODEL_THINKING_ADAPTIVE, "thinking.adaptive", true, false, 8192, SPEND},
	{MODEL_THINKING_ADAPTIVE, "thinking.adaptive thinking.budget_tokens", true, false, 8192,
	 ""},
	{MODEL_THINKING_BUDGET, "thinking", true, false, 8192, ""},
};

TEST(tail)
{
	TEST_BUF(b, 4096);

	for (size_t i = 0; i < ARRAY_LEN(tail_cases); i++) {
		struct agent_infer call = {.iteration = 1,
					   .max_output = tail_cases[i].max_output,
					   .force_submit = tail_cases[i].force};
		struct model m = {.wire_name = "x", .thinking = tail_cases[i].mode};
		char want[300];

		snprintf(m.drop, sizeof(m.drop), "%s", tail_cases[i].drop);
		snprintf(want, sizeof(want), "],\"max_tokens\":%lld%s,\"stream\":true}",
			 (long long)tail_cases[i].max_output, tail_cases[i].says);
		assert_int_equal(
			dialect_anthropic.encode_tail(&b, &m, tail_cases[i].thinking, &call), 0);
		expect(&b, want);
	}
}

TEST(headers)
{
	TEST_BUF(b, 4096);

	assert_int_equal(dialect_anthropic.headers(&b, NULL, "sk-1"), 0);
	expect(&b, "content-type: application/json\naccept: text/event-stream\n"
		   "anthropic-version: 2023-06-01\nx-api-key: sk-1\n");
	assert_int_equal(dialect_anthropic.headers(&b, NULL, NULL), 0);
	assert_null(strstr(b.data, "x-api-key"));
	assert_int_equal(dialect_anthropic.headers(&b, NULL, "sk\nhost: evil"), AVA_EINVAL);
	assert_int_equal(dialect_anthropic.headers(&b, NULL, "sk 1"), AVA_EINVAL);
}

/* ---- the mark */

#define HEAD        "{\"messages\":["
#define MARK_QUOTED ",\\\"cache_control\\\":{\\\"type\\\":\\\"ephemeral\\\"}"
#define MARK        ",\"cache_control\":{\"type\":\"ephemeral\"}"
#define USER        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a \\\"}]}\"}]}"

static const struct {
	const char *lines, *marked; /* NULL: as they are */
} mark_cases[] = {
	{"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}",
	 "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"" MARK "}]}"},
	{USER ",{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t\","
	      "\"content\":\"}]}\",\"is_error\":true}]}",
	 USER ",{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t\","
	      "\"content\":\"}]}\",\"is_error\":true" MARK "}]}"},
	{USER ",{\"role\":\"assistant\",\"content\":[{\"type\":\"server_tool_use\",\"x\":1}]}",
	 NULL},
	{USER ",{\"role\":\"user\",\"content\":[]}", NULL},
	{"", NULL},
};

/* A turn of `n` calls and their results after a first one. */
static void add_turns(struct buf *b, unsigned n, bool results)
{
	buf_adds(b, "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"task\"}]}");
	buf_adds(b, ",{\"role\":\"assistant\",\"content\":[");
	for (unsigned i = 0; i < n; i++)
		buf_addf(
			b,
			"%s{\"type\":\"tool_use\",\"id\":\"t%u\",\"name\":\"f\",\"input\":{\"a\":[{"
			"\"b\":[{}]},{\"role\":\"user\",\"c\":[{}]}]}}",
			i > 0 ? "," : "", i);
	buf_adds(b, "]}");
	for (unsigned i = 0; i < n && results; i++)
		buf_addf(b,
			 "%s{\"type\":\"tool_result\",\"tool_use_id\":\"t%u\",\"content\":\"}]}\"}",
			 i > 0 ? "," : ",{\"role\":\"user\",\"content\":[", i);
	buf_adds(b, results ? "]}" : "");
}

static unsigned count_marks(const struct buf *b)
{
	unsigned n = 0;

	for (const char *s = b->data; (s = strstr(s, MARK)) != NULL; s++)
		n++;
	return n;
}

/* Of many results the beginning of the turn is marked too; without the marks
 * the bytes are those that were there. */
TEST(mark_wide)
{
	TEST_BUF(plain, 1u << 20);
	TEST_BUF(b, 1u << 20);

	for (unsigned n = 1; n <= TURN_MAX_CALLS; n += n < 12 ? 1 : 61) {
		char *at;

		buf_reset(&b);
		buf_reset(&plain);
		buf_adds(&b, HEAD);
		add_turns(&b, n, true);
		buf_add(&plain, b.data, b.len);
		assert_int_equal(dialect_anthropic.mark_cache(&b, strlen(HEAD), NULL), 0);
		assert_int_equal(count_marks(&b), n > 9 ? 2 : 1);
		assert_non_null(strstr(b.data, MARK "}]}"));
		if (n > 9)
			assert_non_null(strstr(b.data, "\"task\"" MARK "}]},"
						       "{\"role\":\"assistant\""));
		assert_int_equal(
			wire_check_paused(b.data + strlen(HEAD), b.len - strlen(HEAD), NULL), 0);
		while ((at = strstr(b.data, MARK)) != NULL) {
			size_t len = strlen(MARK);

			memmove(at, at + len, strlen(at + len) + 1);
		}
		assert_string_equal(b.data, plain.data);
	}
	/* A paused reply ends the request: nothing to mark. */
	buf_reset(&b);
	buf_adds(&b, HEAD);
	add_turns(&b, 40, false);
	assert_int_equal(dialect_anthropic.mark_cache(&b, strlen(HEAD), NULL), 0);
	assert_int_equal(count_marks(&b), 0);
}

TEST(mark)
{
	struct model m = {.wire_name = "x"};
	char want[600];
	struct buf b;
	size_t at;

	buf_init(&b, 65536);
	for (size_t i = 0; i < ARRAY_LEN(mark_cases); i++) {
		buf_adds(&b, HEAD);
		buf_adds(&b, mark_cases[i].lines);
		assert_int_equal(dialect_anthropic.mark_cache(&b, strlen(HEAD), &m), 0);
		snprintf(want, sizeof(want), HEAD "%s",
			 mark_cases[i].marked != NULL ? mark_cases[i].marked : mark_cases[i].lines);
		expect(&b, want);
	}
	/* Nor in a head that was rendered before that was known. */
	assert_true(model_drop(&m, "cache_control"));
	buf_adds(&b, "{\"system\":[{\"type\":\"text\",\"text\":\"" MARK_QUOTED "\"" MARK "}],");
	at = b.len;
	buf_adds(&b, mark_cases[0].lines);
	assert_int_equal(dialect_anthropic.mark_cache(&b, at, &m), 0);
	snprintf(want, sizeof(want), "{\"system\":[{\"type\":\"text\",\"text\":\"%s\"}],%s",
		 MARK_QUOTED, mark_cases[0].lines);
	expect(&b, want);
	assert_true(dialect_anthropic.in_lines("cache_control"));
	assert_false(dialect_anthropic.in_lines("thinking"));
	buf_fini(&b);
	/* What the encoders write can always be marked, and nothing else changes. */
	buf_init(&b, 65536);
	buf_adds(&b, HEAD);
	assert_int_equal(wire_user(&b, "the \\ task \"}]}", 15), 0);
	assert_int_equal(dialect_anthropic.mark_cache(&b, strlen(HEAD), NULL), 0);
	assert_non_null(strstr(b.data, MARK "}]}"));
	assert_int_equal(wire_check_paused(b.data + strlen(HEAD), b.len - strlen(HEAD), NULL), 0);
	buf_fini(&b);
}

/* ---- the check knows paused replies, and only them */

#define CALL                                                                                       \
	"{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":"      \
	"\"f\","                                                                                   \
	"\"input\":{}}]}"
#define SAID "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}"
#define DONE                                                                                       \
	"{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\","        \
	"\"content\":\"\"}]}"
#define TASK "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"do\"}]}"
#define ODD                                                                                        \
	"{\"role\":\"assistant\",\"content\":[{\"type\":{},\"text\":[],\"id\":1,\"name\":null},{"  \
	"\"type\":"                                                                                \
	"\"text\",\"text\":\"x\"}]}"

static const struct {
	const char *lines;
	bool paused, plain; /* what each check says */
} check_cases[] = {
	{TASK, true, true},
	{TASK "," SAID, true, false},
	{TASK "," SAID "," SAID, true, false},
	{TASK "," SAID "," CALL "," DONE, true, false},
	{TASK "," CALL "," DONE, true, true},
	{TASK "," CALL, false, false},
	{TASK "," CALL "," SAID, false, false},
	{TASK "," CALL "," SAID "," DONE, false, false},
	{SAID, false, false},
	{TASK "," ODD "," TASK, true, true}, /* blocks we do not know hold anything */
};

TEST(check)
{
	for (size_t i = 0; i < ARRAY_LEN(check_cases); i++) {
		const char *s = check_cases[i].lines;

		print_message("%s\n", s);
		assert_int_equal(dialect_anthropic.check(s, strlen(s), NULL) == 0,
				 check_cases[i].paused);
		assert_int_equal(wire_check(s, strlen(s), NULL) == 0, check_cases[i].plain);
		(void)check_more(&dialect_anthropic, s);
	}
}

TEST(row)
{
	const struct dialect *d = &dialect_anthropic;

	assert_string_equal(d->name, "anthropic");
	assert_string_equal(d->path, "/v1/messages");
	assert_true(d->can_force);
	assert_null(d->answer);
}

/* Requests of chat completions: head, tail by provider and facts, headers,
 * marks, lines, the check in both directions, results and open calls. */
#include "check_more.h"
#include "heads.h"
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "provider/messages.h"
#include "provider/wire.h"
#include "provider/model.h"

static const struct provider openrouter = {.name = "openrouter"}, openai = {.name = "openai"},
			     local = {.name = "local"};

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
	struct model m = {.wire_name = "gpt-x", .provider = &openai};
	struct dialect_spec spec = {"openai/gpt-x", "You are.", tools, 1, &m, false};
	TEST_BUF(b, 4096);

	assert_int_equal(dialect_openai.encode_head(&b, &spec), 0);
	expect(&b,
	       "{\"model\":\"gpt-x\",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":"
	       "\"read_file\",\"description\":\"Read.\",\"parameters\":{\"type\":\"object\"}}}],"
	       "\"messages\":[{\"role\":\"system\",\"content\":\"You are.\"},");
	m.provider = &openrouter;
	snprintf(m.wire_name, sizeof(m.wire_name), "anthropic/claude-x");
	spec.ntools = 0;
	assert_int_equal(dialect_openai.encode_head(&b, &spec), 0);
	expect(&b,
	       "{\"model\":\"anthropic/claude-x\",\"messages\":[{\"role\":\"system\",\"content\":"
	       "[{\"type\":\"text\",\"text\":\"You are.\",\"cache_control\":{\"type\":"
	       "\"ephemeral\"}}]},");
	spec = (struct dialect_spec){.model = "x", .system = ""};
	assert_int_equal(dialect_openai.encode_head(&b, &spec), 0);
	expect(&b, "{\"model\":\"x\",\"messages\":[");
}

#define USAGE ",\"stream_options\":{\"include_usage\":true}"
#define FORCE ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"submit_result\"}}"
#define COLD  ",\"temperature\":0.2"
#define FORM(output, required)                                                                     \
	",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"submit_"       \
	"result\","                                                                                \
	"\"schema\":{\"type\":\"object\",\"properties\":{\"summary\":{\"type\":\"string\"},"       \
	"\"output\":" output ",\"confidence\":{\"type\":\"number\"},\"caveats\":{\"type\":"        \
	"\"array\",\"items\":{\"type\":"                                                           \
	"\"string\"}}},\"required\":[\"summary\"," required "\"confidence\"],"                     \
	"\"additionalProperties\":false}}},\"tool_choice\":\"none\""
#define WANTS ",\"provider\":{\"require_parameters\":true}"

static const struct {
	const struct provider *provider;
	const char *cap, *drop;
	bool thinking, force;
	const char *says, *schema;
} tail_cases[] = {
	{&local, NULL, "", false, false, USAGE ",\"max_tokens\":900" COLD},
	{&local, NULL, "temperature", false, true, USAGE ",\"max_tokens\":900" FORM("{}", "")},
	{&local, NULL, "temperature", false, true,
	 USAGE ",\"max_tokens\":900" FORM("{\"type\":\"array\"}", "\"output\","),
	 "{\"type\":\"array\"}"},
	{&openai, "max_completion_tokens", "", false, false,
	 USAGE ",\"max_completion_tokens\":900"},
	{&openai, "max_tokens", "max_tokens", false, false, USAGE ",\"max_completion_tokens\":900"},
	{&openai, "max_completion_tokens", "max_completion_tokens", false, false,
	 USAGE ",\"max_tokens\":900"},
	{&local, NULL, "max_tokens max_completion_tokens stream_options response_format", false,
	 true, COLD ",\"tool_choice\":\"required\""},
	{&openai, NULL, "", true, false,
	 USAGE ",\"max_tokens\":900,\"reasoning_effort\":\"medium\""},
	{&openai, NULL, "reasoning_effort", true, true, USAGE ",\"max_tokens\":900" FORCE},
	{&openrouter, NULL, "", true, false,
	 ",\"max_tokens\":900,\"reasoning\":{\"effort\":\"medium\"}" WANTS},
	{&openrouter, NULL, "", true, true, ",\"max_tokens\":900" FORCE WANTS},
	{&openrouter, NULL, "tool_choice", true, true,
	 ",\"max_tokens\":900,\"reasoning\":{\"effort\":\"medium\"}" WANTS},
	{&openrouter, NULL, "reasoning tool_choice provider", true, true, ",\"max_tokens\":900"},
};

TEST(tail)
{
	TEST_BUF(b, 4096);

	for (size_t i = 0; i < ARRAY_LEN(tail_cases); i++) {
		struct agent_infer call = {.iteration = 1,
					   .max_output = 900,
					   .force_submit = tail_cases[i].force,
					   .output_schema = tail_cases[i].schema};
		struct model m = {.wire_name = "x",
				  .provider = tail_cases[i].provider,
				  .thinking = MODEL_THINKING_ADAPTIVE,
				  .max_tokens_field = tail_cases[i].cap};
		char want[800];

		snprintf(m.drop, sizeof(m.drop), "%s", tail_cases[i].drop);
		snprintf(want, sizeof(want), "],\"stream\":true%s}", tail_cases[i].says);
		assert_int_equal(dialect_openai.encode_tail(&b, &m, tail_cases[i].thinking, &call),
				 0);
		expect(&b, want);
	}
}

TEST(headers)
{
	struct model m = {.provider = &openrouter};
	TEST_BUF(b, 4096);

	assert_int_equal(dialect_openai.headers(&b, &m, "sk-or-1"), 0);
	expect(&b, "content-type: application/json\naccept: text/event-stream\n"
		   "authorization: Bearer sk-or-1\nhttp-referer: http://localhost/ava\n"
		   "x-openrouter-title: ava\n");
	m.provider = &local;
	assert_int_equal(dialect_openai.headers(&b, &m, NULL), 0);
	expect(&b, "content-type: application/json\naccept: text/event-stream\n");
	assert_int_equal(dialect_openai.headers(&b, &m, "a\rb"), AVA_EINVAL);
}

TEST(mark)
{
	static const char lines[] =
		"[{\"role\":\"user\",\"content\":\"\"},{\"role\":\"tool\","
		"\"tool_call_id\":\"a\",\"content\":\"x \\\",\\\"content\\\":\\\"y\"}";
	static const char *const blank[] = {
		"[{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"\"}",
		"[{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\" \\n\\t \\r\"}",
	};
	struct model m = {.provider = &openrouter, .wire_name = "anthropic/claude-x"};
	TEST_BUF(b, 4096);

	buf_adds(&b, lines);
	assert_int_equal(dialect_openai.mark_cache(&b, 1, &m), 0);
	expect(&b,
	       "[{\"role\":\"user\",\"content\":\"\"},{\"role\":\"tool\",\"tool_call_id\":\"a\","
	       "\"content\":[{\"type\":\"text\",\"text\":\"x \\\",\\\"content\\\":\\\"y\","
	       "\"cache_control\":{\"type\":\"ephemeral\"}}]}");
	/* A part may not be blank. */
	for (size_t i = 0; i < ARRAY_LEN(blank); i++) {
		buf_adds(&b, blank[i]);
		assert_int_equal(dialect_openai.mark_cache(&b, 0, &m), 0);
		expect(&b, blank[i]);
	}
	m.provider = &openai;
	buf_adds(&b, lines);
	assert_int_equal(dialect_openai.mark_cache(&b, 1, &m), 0);
	expect(&b, lines);
	m.provider = &openrouter;
	snprintf(m.wire_name, sizeof(m.wire_name), "openai/gpt-x"); /* caches by itself */
	buf_adds(&b, lines);
	assert_int_equal(dialect_openai.mark_cache(&b, 1, &m), 0);
	expect(&b, lines);
}

/* ---- lines */

/* Reasoning that a service does not take back is in the file, not in a request. */
TEST(leave_out)
{
#define ASK   "{\"role\":\"user\",\"content\":\"do\"}"
#define WITH  "{\"role\":\"assistant\",\"content\":\"a,\\\"reasoning\\\":\\\"b\""
#define CONT  ",\"reasoning_content\":\"why \\\"this\\\"\""
#define PARTS ",\"reasoning_details\":[{\"reasoning\":\"x\"},{}]"
#define ARGS  ",\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"f\",\"reasoning\":1}}]}"
#define TAKEN ",{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"\"}"
	static const struct {
		const char *drop, *lines, *sent;
	} cases[] = {
		{"", ASK "," WITH CONT PARTS ARGS TAKEN, ASK "," WITH CONT PARTS ARGS TAKEN},
		{"reasoning_content", ASK "," WITH CONT PARTS ARGS TAKEN,
		 ASK "," WITH PARTS ARGS TAKEN},
		{"reasoning_details x reasoning_content",
		 ASK "," WITH CONT PARTS ARGS TAKEN "," WITH CONT "}," ASK,
		 ASK "," WITH ARGS TAKEN "," WITH "}," ASK},
		{"reasoning", WITH ",\"reasoning\":null}", WITH "}"},
		{"reasoning", "", ""},
	};
	struct model m = {.provider = &local, .wire_name = "x"};
	TEST_BUF(b, 4096);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		snprintf(m.drop, sizeof(m.drop), "%s", cases[i].drop);
		buf_adds(&b, "{\"messages\":[");
		buf_adds(&b, cases[i].lines);
		assert_int_equal(dialect_openai.mark_cache(&b, 13, &m), 0);
		assert_memory_equal(b.data, "{\"messages\":[", 13);
		assert_string_equal(b.data + 13, cases[i].sent);
		assert_int_equal(b.len, 13 + strlen(cases[i].sent));
		buf_reset(&b);
	}
	assert_true(dialect_openai.in_lines("reasoning_content"));
	assert_false(dialect_openai.in_lines("reasoning_effort"));
}

/* Behind a result or another message of the user one stands in another way; else the lines are
 * taken as they are, blanks and all, whatever words a call has. */
TEST(user_behind)
{
#define SPOKE  "{\"role\":\"assistant\", \"content\":\"b\"}"
#define CALLED "{\"role\":\"assistant\", \"x\":[{},{\"role\":\"user\",\"x\":1}]" ARGS
#define MIDDLE "{\"role\":\"assistant\",\"content\":\"(nothing)\"}"
	static const struct {
		const char *lines, *sent;
	} cases[] = {
		{ASK "," SPOKE "," ASK "," SPOKE, ASK "," SPOKE "," ASK "," SPOKE},
		{ASK "," CALLED TAKEN "," SPOKE "," ASK, ASK "," CALLED TAKEN "," SPOKE "," ASK},
		{ASK "," SPOKE "," ASK "," ASK, ASK "," SPOKE "," ASK "," MIDDLE "," ASK},
		{ASK "," CALLED TAKEN "," ASK "," SPOKE,
		 ASK "," CALLED ",{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":"
		     "\"\\n\\ndo\"}," SPOKE},
	};
	const struct model m = {.provider = &local, .wire_name = "x"};
	TEST_BUF(b, 4096);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		buf_adds(&b, "{\"messages\":[");
		buf_adds(&b, cases[i].lines);
		assert_int_equal(dialect_openai.mark_cache(&b, 13, &m), 0);
		assert_string_equal(b.data + 13, cases[i].sent);
		buf_reset(&b);
	}
}

TEST(lines)
{
	struct turn_call calls[] = {
		{.wire_id = "a", .success = true, .output = "1\tx", .output_len = 3},
		{.wire_id = "b", .success = false, .output = "no such \"file\"", .output_len = 14},
		{.wire_id = "c", .success = true},
	};
	struct turn t = {.calls = calls, .ncalls = 3};
	const char *notices[] = {"[ava] 80 %", " ", "steer"};
	struct buf b;

	buf_init(&b, 4096);
	assert_int_equal(dialect_openai.encode_user(&b, "a\nb", 3), 0);
	expect(&b, "{\"role\":\"user\",\"content\":\"a\\nb\"}");
	assert_int_equal(dialect_openai.encode_user(&b, " \n", 2), AVA_EINVAL);
	assert_int_equal(dialect_openai.encode_results(&b, &t, notices, 3), 0);
	expect(&b, "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"1\\tx\"}\n"
		   "{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":\"Error: no such "
		   "\\\"file\\\"\"}\n{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"\"}\n"
		   "{\"role\":\"user\",\"content\":\"[ava] 80 %\\n\\nsteer\"}");
	t.ncalls = 0;
	assert_int_equal(dialect_openai.encode_results(&b, &t, notices, 1), 0);
	expect(&b, "{\"role\":\"assistant\",\"content\":\"(nothing)\"}\n"
		   "{\"role\":\"user\",\"content\":\"[ava] 80 %\"}");
	t.text_len = 1; /* stands before it */
	assert_int_equal(dialect_openai.encode_results(&b, &t, notices, 1), 0);
	expect(&b, "{\"role\":\"user\",\"content\":\"[ava] 80 %\"}");
	assert_int_equal(dialect_openai.encode_results(&b, &t, notices + 1, 1), AVA_EINVAL);
	buf_fini(&b);
	buf_init(&b, 20);
	t.ncalls = 1;
	assert_int_equal(dialect_openai.encode_results(&b, &t, NULL, 0), AVA_ETOOBIG);
	buf_fini(&b);
}

#define TASK "{\"role\":\"user\",\"content\":\"do\"}"
#define SAID "{\"role\":\"assistant\",\"content\":\"x\"}"
#define CALL(i)                                                                                    \
	"{\"id\":\"" i                                                                             \
	"\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"
#define CALLS(c) "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" c "]}"
#define DONE(i)  "{\"role\":\"tool\",\"tool_call_id\":\"" i "\",\"content\":\"r\"}"

static const struct {
	const char *lines, *says; /* NULL: good */
} check_cases[] = {
	{TASK, NULL},
	{TASK "," SAID "," TASK, NULL},
	{TASK "," CALLS(CALL("a")) "," DONE("a"), NULL},
	{TASK "," CALLS(CALL("a") "," CALL("b")) "," DONE("b") "," DONE("a") "," TASK, NULL},
	{TASK "," CALLS(CALL("a")) "," DONE("a") "," CALLS(CALL("a")) "," DONE("a"), NULL},
	{"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}", NULL},
	{"", "at least one message"},
	{SAID, "first message"},
	{DONE("a"), "first message"},
	{TASK "," SAID, "must end with"},
	{TASK "," SAID "," SAID "," TASK, "roles must alternate"},
	{TASK "," CALLS(CALL("a")), "without `tool_result` blocks immediately after: a"},
	{TASK "," CALLS(CALL("a")) "," TASK, "immediately after: a"},
	{TASK "," CALLS(CALL("a") "," CALL("b")) "," DONE("a") "," TASK, "immediately after: b"},
	{TASK "," CALLS(CALL("a") "," CALL("a")) "," DONE("a"), "must be unique: a"},
	{TASK "," CALLS(CALL("a")) "," DONE("a") "," DONE("a"), "Found multiple"},
	{TASK "," CALLS(CALL("a")) "," DONE("b"), "unexpected `tool_use_id`"},
	{TASK "," CALLS(CALL("a")) "," DONE("a") "," TASK "," DONE("a"),
	 "unexpected `tool_use_id`"},
	{TASK "," CALLS(""), "non-empty content"},
	{TASK "," CALLS("{\"id\":\"a\"}"), "needs a name"},
	{TASK "," CALLS(CALL("")), "1 to 128"},
	{TASK "," CALLS("{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}"),
	 "an input that is an object"},
	{TASK "," CALLS("{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"[]\"}}"),
	 "an input that is an object"},
	{TASK "," CALLS("{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":{}}}"),
	 "an input that is an object"},
	{TASK "," CALLS("1"), "not a message"},
	{"{\"role\":\"user\"}", "non-empty content"},
	{"{\"role\":\"owner\",\"content\":\"x\"}", "not a message"},
	{TASK "," TASK ",", "not a message"},
	{TASK TASK, "not a message"},
};

TEST(check)
{
	for (size_t i = 0; i < ARRAY_LEN(check_cases); i++) {
		const char *s = check_cases[i].lines;
		struct ava_error err = {0};
		int rv = wire_check_chat(s, strlen(s), &err);

		print_message("%s\n", s);
		assert_int_equal(rv, check_cases[i].says == NULL ? 0 : AVA_EINVAL);
		if (check_cases[i].says != NULL && strstr(err.text, check_cases[i].says) == NULL)
			fail_msg("%s", err.text);
		(void)check_more(&dialect_openai, s);
	}
}

static int collect(size_t k, const char *text, size_t len, bool is_error, void *user)
{
	buf_addf(user, "%zu%s[%.*s]", k, is_error ? "!" : "", (int)len, text);
	return k == 2 ? 7 : 0;
}

TEST(results)
{
	static const char lines[] = TASK "," CALLS(CALL("a") "," CALL(
		"b")) ","
		      "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"x\\ny\"},"
		      "{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":\"Error: no\"}";
	TEST_BUF(b, 4096);

	assert_int_equal(wire_each_result(lines, strlen(lines), collect, &b, NULL), 0);
	expect(&b, "0[x\ny]1![no]");
	assert_int_equal(wire_each_result("{", 1, collect, &b, NULL), AVA_EINVAL);
}

TEST(open_calls)
{
	static const struct {
		const char *lines, *open; /* ids */
	} cases[] = {
		{TASK, ""},
		{TASK "," CALLS(CALL("a") "," CALL("b")), "ab"},
		{TASK "," CALLS(CALL("a") "," CALL("b")) "," DONE("a"), "b"},
		{TASK "," CALLS(CALL("a")) "," DONE("a"), ""},
		{TASK "," CALLS(CALL("a")) "," DONE("a") "," CALLS(CALL("c")), "c"},
		{TASK "," CALLS(CALL("a")) "," TASK, ""},
	};
	struct turn *t;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		t = turn_new();
		assert_int_equal(wire_open_calls(cases[i].lines, strlen(cases[i].lines), t, NULL),
				 0);
		assert_int_equal(t->ncalls, strlen(cases[i].open));
		for (unsigned k = 0; k < t->ncalls; k++) {
			assert_int_equal(t->calls[k].wire_id[0], cases[i].open[k]);
			assert_string_equal(t->calls[k].name, "f");
			assert_string_equal(t->calls[k].args, "{}");
		}
		turn_free(t);
	}
	t = turn_new();
	assert_int_equal(wire_open_calls("[", 1, t, NULL), AVA_EINVAL);
	turn_free(t);
}

/* messages.jsonl in this form: a replaced result, everything else untouched. */
TEST(replaced)
{
	static const char file[] =
		"{\"spec\":{\"machine\":1,\"head\":\"{\\\"messages\\\":[\"}}\n" TASK
		"\n" CALLS(CALL("a") "," CALL("b")) "\n" DONE("a") "\n" DONE(
			"b") "\n"
			     "{\"replace\":{\"callId\":\"c1.1\",\"wireId\":\"a\",\"content\":"
			     "\"gone\"}}\n";
	struct messages_info info;
	size_t len;
	char *named = heads_named(file, &len);
	TEST_BUF(b, 65536);

	assert_int_equal(messages_request(&b, named, len, -1, &info, NULL), 0);
	free(named);
	assert_int_equal(info.lines, 4);
	expect(&b, "{\"messages\":[" TASK
		   "," CALLS(CALL("a") "," CALL("b")) ","
						      "{\"role\":\"tool\",\"tool_call_id\":\"a\","
						      "\"content\":\"gone\"}," DONE("b"));
}

/* The worked example of doc/MESSAGES.md. */
TEST(example)
{
	struct agent_infer call = {.iteration = 2, .max_output = 8192};
	struct messages_info info;
	size_t len, want_len;
	char *file = unit_read_src("test/golden/messages/chat.jsonl", &len);
	char *want = unit_read_src("test/golden/messages/chat.request.json", &want_len);
	TEST_BUF(b, 65536);

	heads_golden("test/golden/messages", file, len);
	assert_int_equal(messages_request(&b, file, len, -1, &info, NULL), 0);
	assert_int_equal(wire_check_chat(b.data + info.head_len, b.len - info.head_len, NULL), 0);
	assert_int_equal(dialect_openai.encode_tail(&b, NULL, false, &call), 0);
	expect(&b, want);
	free(file);
	free(want);
}

TEST(row)
{
	const struct dialect *d = &dialect_openai;

	assert_string_equal(d->name, "openai");
	assert_string_equal(d->path, "/chat/completions");
	assert_true(d->can_force);
	assert_null(d->answer);
}

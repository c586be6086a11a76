/* Requests of the Responses API: head, tail, lines, the check in both directions, results
 * and open calls, what is left out; and which model is spoken to in this dialect. */
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
#include "provider/messages.h"
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
	struct model m = {.wire_name = "gpt-x"};
	struct dialect_spec spec = {"openai/gpt-x", "You are.", tools, 1, &m, false};
	TEST_BUF(b, 4096);

	assert_int_equal(dialect_responses.encode_head(&b, &spec), 0);
	expect(&b, "{\"model\":\"gpt-x\",\"instructions\":\"You are.\",\"tools\":[{\"type\":"
		   "\"function\",\"name\":\"read_file\",\"description\":\"Read.\",\"parameters\":{"
		   "\"type\":\"object\"},\"strict\":false}],\"input\":[");
	spec = (struct dialect_spec){.model = "x", .system = ""};
	assert_int_equal(dialect_responses.encode_head(&b, &spec), 0);
	expect(&b, "{\"model\":\"x\",\"input\":[");
}

#define INCLUDE ",\"include\":[\"reasoning.encrypted_content\"]"
#define FORCE   ",\"tool_choice\":{\"type\":\"function\",\"name\":\"submit_result\"}"

TEST(tail)
{
	static const struct {
		const char *drop;
		bool thinking, force;
		const char *says;
	} cases[] = {
		{"", false, false, ",\"store\":false" INCLUDE ",\"max_output_tokens\":900"},
		{"", true, true,
		 ",\"store\":false" INCLUDE ",\"max_output_tokens\":900,\"reasoning\":{\"effort\":"
		 "\"medium\",\"summary\":\"auto\"}" FORCE},
		{"include reasoning.summary", true, false,
		 ",\"store\":false,\"max_output_tokens\":900,\"reasoning\":{\"effort\":"
		 "\"medium\"}"},
		{"encrypted_content store reasoning tool_choice max_output_tokens", true, true, ""},
	};
	TEST_BUF(b, 4096);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct agent_infer call = {.max_output = 900, .force_submit = cases[i].force};
		struct model m = {.wire_name = "x", .thinking = MODEL_THINKING_ADAPTIVE};
		char want[400];

		snprintf(m.drop, sizeof(m.drop), "%s", cases[i].drop);
		snprintf(want, sizeof(want), "],\"stream\":true%s}", cases[i].says);
		assert_int_equal(dialect_responses.encode_tail(&b, &m, cases[i].thinking, &call),
				 0);
		expect(&b, want);
	}
}

TEST(lines)
{
	struct turn_call calls[] = {
		{.wire_id = "a", .success = true, .output = "1\tx", .output_len = 3},
		{.wire_id = "b", .success = false, .output = "no", .output_len = 2},
	};
	struct turn t = {.calls = calls, .ncalls = 2};
	const char *notices[] = {"[ava] 80 %", " ", "steer"};
	struct buf b;

	buf_init(&b, 4096);
	assert_int_equal(dialect_responses.encode_user(&b, "do", 2), 0);
	expect(&b, "{\"role\":\"user\",\"content\":\"do\"}");
	assert_int_equal(dialect_responses.encode_results(&b, &t, notices, 3), 0);
	expect(&b,
	       "{\"type\":\"function_call_output\",\"call_id\":\"a\",\"output\":\"1\\tx\"}\n"
	       "{\"type\":\"function_call_output\",\"call_id\":\"b\",\"output\":\"Error: no\"}\n"
	       "{\"role\":\"user\",\"content\":\"[ava] 80 %\\n\\nsteer\"}");
	t.ncalls = 1;
	assert_int_equal(dialect_responses.encode_results(&b, &t, notices + 1, 1), 0);
	expect(&b, "{\"type\":\"function_call_output\",\"call_id\":\"a\",\"output\":\"1\\tx\"}");
	t.ncalls = 0;
	assert_int_equal(dialect_responses.encode_results(&b, &t, notices + 1, 1), AVA_EINVAL);
	buf_fini(&b);
	buf_init(&b, 20);
	t.ncalls = 1;
	assert_int_equal(dialect_responses.encode_results(&b, &t, NULL, 0), AVA_ETOOBIG);
	buf_fini(&b);
}

#define TASK "{\"role\":\"user\",\"content\":\"do\"}"
#define HMM  "{\"type\":\"reasoning\",\"id\":\"rs\",\"encrypted_content\":\"x\",\"summary\":[]}"
#define SAID                                                                                       \
	"{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\","     \
	"\"text\":\"x\"}]}"
#define CALL(i)                                                                                    \
	"{\"type\":\"function_call\",\"call_id\":\"" i "\",\"name\":\"f\",\"arguments\":\"{}\"}"
#define DONE(i) "{\"type\":\"function_call_output\",\"call_id\":\"" i "\",\"output\":\"r\"}"

TEST(check)
{
	static const struct {
		const char *lines, *says; /* NULL: good */
	} cases[] = {
		{TASK, NULL},
		{TASK "," HMM "," SAID "," TASK, NULL},
		{TASK "," HMM "," SAID "," CALL("a") "," CALL("b") "," DONE("b") "," DONE("a"),
		 NULL},
		{TASK "," CALL("a") "," DONE("a") "," HMM "," CALL("c") "," DONE("c") "," TASK,
		 NULL},
		{TASK "," SAID, "must end with"},
		{SAID "," TASK, "first message"},
		{TASK "," HMM "," TASK, "without its text or call"},
		{TASK "," CALL("a") "," HMM "," DONE("a"), "without its text or call"},
		{TASK "," CALL("a"), "immediately after: a"},
		{TASK "," CALL("a") "," TASK, "immediately after: a"},
		{TASK "," CALL("a") "," CALL("b") "," DONE("a") "," HMM "," SAID "," TASK,
		 "immediately after: b"},
		{TASK "," CALL("a") "," CALL("a") "," DONE("a"), "must be unique: a"},
		{TASK "," CALL("a") "," DONE("a") "," DONE("a"), "Found multiple"},
		{TASK "," DONE("a"), "unexpected `tool_use_id`"},
		{TASK ",{\"type\":\"function_call_output\",\"call_id\":\"a\"}", "not a message"},
		{TASK ",{\"role\":\"assistant\",\"content\":\"x\"}," TASK, "not a message of resp"},
		{TASK ",{\"type\":1}," TASK, "not a message"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ava_error err = {0};
		int rv = dialect_responses.check(cases[i].lines, strlen(cases[i].lines), &err);

		print_message("%s\n", cases[i].lines);
		assert_int_equal(rv, cases[i].says == NULL ? 0 : AVA_EINVAL);
		if (cases[i].says != NULL && strstr(err.text, cases[i].says) == NULL)
			fail_msg("%s", err.text);
		(void)check_more(&dialect_responses, cases[i].lines);
	}
	assert_int_equal(wire_check_chat(TASK "," CALL("a") "," DONE("a"),
					 strlen(TASK "," CALL("a") "," DONE("a")), NULL),
			 AVA_EINVAL);
}

TEST(line_kinds)
{
	static const struct {
		const char *line;
		enum line_kind kind;
	} cases[] = {
		{TASK, LINE_USER},  {DONE("a"), LINE_USER},  {HMM, LINE_REPLY},
		{SAID, LINE_REPLY}, {CALL("a"), LINE_REPLY}, {"{\"replace\":{}}", LINE_NONE},
		{"", LINE_NONE},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(dialect_responses.line_kind(cases[i].line, strlen(cases[i].line)),
				 cases[i].kind);
}

static int collect(size_t k, const char *text, size_t len, bool is_error, void *user)
{
	buf_addf(user, "%zu%s[%.*s]", k, is_error ? "!" : "", (int)len, text);
	return 0;
}

TEST(results_and_open_calls)
{
	static const char lines[] = TASK "," HMM "," SAID "," CALL("a") "," CALL("b") "," CALL(
		"c") ","
		     "{\"type\":\"function_call_output\",\"call_id\":\"a\",\"output\":\"x\\ny\"},"
		     "{\"type\":\"function_call_output\",\"call_id\":\"b\",\"output\":\"Error: "
		     "no\"}";
	struct turn *t = turn_new();
	TEST_BUF(b, 4096);

	assert_int_equal(wire_each_result(lines, strlen(lines), collect, &b, NULL), 0);
	expect(&b, "0[x\ny]1![no]");
	assert_int_equal(wire_open_calls(lines, strlen(lines), t, NULL), 0);
	assert_int_equal(t->ncalls, 1);
	assert_string_equal(t->calls[0].wire_id, "c");
	assert_string_equal(t->text, "x");
	turn_free(t);
}

/* Reasoning that a service cannot read any more. */
TEST(left_out)
{
	struct model m = {.wire_name = "x"};
	TEST_BUF(b, 4096);

	buf_adds(&b, "[" TASK "," HMM "," CALL("a") "," DONE("a"));
	assert_int_equal(dialect_responses.mark_cache(&b, 1, &m), 0);
	assert_string_equal(b.data, "[" TASK "," HMM "," CALL("a") "," DONE("a"));
	assert_true(model_drop(&m, "encrypted_content"));
	assert_int_equal(dialect_responses.mark_cache(&b, 1, &m), 0);
	expect(&b, "[" TASK "," CALL("a") "," DONE("a"));
	assert_true(dialect_responses.in_lines("encrypted_content"));
}

/* The worked example of doc/MESSAGES.md. */
TEST(example)
{
	struct agent_infer call = {.iteration = 2, .max_output = 8192};
	struct messages_info info;
	size_t len, want_len;
	char *file = unit_read_src("test/golden/messages/responses.jsonl", &len);
	char *want = unit_read_src("test/golden/messages/responses.request.json", &want_len);
	TEST_BUF(b, 65536);

	heads_golden("test/golden/messages", file, len);
	assert_int_equal(messages_request(&b, file, len, -1, &info, NULL), 0);
	assert_true(info.replied);
	assert_int_equal(
		dialect_responses.check(b.data + info.head_len, b.len - info.head_len, NULL), 0);
	assert_int_equal(dialect_responses.encode_tail(&b, NULL, false, &call), 0);
	expect(&b, want);
	free(file);
	free(want);
}

TEST(which_dialect)
{
	static const struct {
		const struct dialect *is;
		const char *refusal;
		const struct dialect *other;
	} cases[] = {
		{&dialect_openai,
		 "This model is only supported in v1/responses and not in v1/chat/completions.",
		 &dialect_responses},
		{&dialect_openai,
		 "This is not a chat model and thus not supported in the v1/chat/completions "
		 "endpoint. Did you mean to use v1/completions?",
		 &dialect_responses},
		{&dialect_openai,
		 "model gpt-5-codex is not accessible via the /chat/completions endpoint",
		 &dialect_responses},
		{&dialect_openai, "The model `gpt-9` does not exist", NULL},
		{&dialect_responses,
		 "This model is not supported here: use the /v1/chat/completions endpoint",
		 &dialect_openai},
		{&dialect_responses, "No such path: v1/responses", NULL},
		{&dialect_anthropic, "only supported in v1/responses", NULL},
	};
	struct model m;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		m = (struct model){.dialect = cases[i].is};
		assert_ptr_equal(model_other_dialect(&m, cases[i].refusal), cases[i].other);
	}
	m = (struct model){.dialect = &dialect_openai};
	assert_true(model_speak(&m, "openai"));
	assert_true(model_speak(&m, "responses"));
	assert_ptr_equal(m.dialect, &dialect_responses);
	assert_false(model_speak(&m, "anthropic"));
	assert_true(model_speak(&m, "openai"));
	m.dialect = &dialect_offline;
	assert_false(model_speak(&m, "responses"));
	assert_true(model_speak(&m, "offline"));
}

TEST(learned)
{
	struct model m, again;

	assert_int_equal(provider_configure(NULL), 0);
	assert_int_equal(model_restore("openai/gpt-9", &m, NULL), 0);
	assert_ptr_equal(m.dialect, &dialect_openai);
	m.dialect = &dialect_responses;
	assert_true(model_learn_dialect(&m));
	assert_true(model_learn_dialect(&m)); /* other runs of it are told the same */
	m.dialect = &dialect_openai;
	assert_false(model_learn_dialect(&m));
	memset(&m, 0, sizeof(m));
	assert_int_equal(model_restore("openai/gpt-9", &again, NULL), 0);
	assert_ptr_equal(again.dialect, &dialect_responses);
}

TEST(row)
{
	const struct dialect *d = &dialect_responses;

	assert_string_equal(d->name, "responses");
	assert_string_equal(d->path, "/responses");
	assert_true(d->can_force && d->line_an_item);
	assert_null(d->answer);
}

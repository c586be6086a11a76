/* The Messages form: bytes of the encoders, the check in both directions, the
 * reader, and messages.jsonl to request bytes (the golden files of
 * doc/MESSAGES.md). */
#include "check_more.h"
#include "heads.h"
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "base/util.h"
#include "codec/json.h"
#include "provider/messages.h"
#include "provider/wire.h"

static void expect(struct buf *b, const char *text)
{
	assert_int_equal(buf_check(b), 0);
	assert_string_equal(b->data, text);
	buf_reset(b);
}

/* ---- encoders */

TEST(head_and_tail)
{
	static const struct tool read = {.name = "read_file",
					 .description = "Read \"x\".",
					 .schema = "{\"type\":\"object\"}"};
	const struct tool *tools[] = {&read};
	struct dialect_spec spec = {"offline", "You are\na tester.", tools, 1, NULL, false};
	struct agent_infer call = {.iteration = 1, .max_output = 4096};
	TEST_BUF(b, 4096);

	assert_int_equal(wire_head(&b, &spec), 0);
	expect(&b,
	       "{\"model\":\"offline\",\"system\":[{\"type\":\"text\",\"text\":\"You are\\na "
	       "tester.\"}],\"tools\":[{\"name\":\"read_file\",\"description\":\"Read \\\"x\\\".\","
	       "\"input_schema\":{\"type\":\"object\"}}],\"messages\":[");
	spec.ntools = 0;
	spec.system = "";
	assert_int_equal(wire_head(&b, &spec), 0);
	expect(&b, "{\"model\":\"offline\",\"messages\":[");
	assert_int_equal(wire_tail(&b, NULL, false, &call), 0);
	expect(&b, "],\"max_tokens\":4096,\"stream\":true}");
	call.force_submit = true;
	assert_int_equal(wire_tail(&b, NULL, false, &call), 0);
	expect(&b, "],\"max_tokens\":4096,\"tool_choice\":{\"type\":\"tool\",\"name\":\"submit_"
		   "result\"},"
		   "\"stream\":true}");
}

TEST(user)
{
	struct buf b;

	buf_init(&b, 4096);
	assert_int_equal(wire_user(&b, "a\n\"b\"", 5), 0);
	expect(&b,
	       "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\\n\\\"b\\\"\"}]}");
	assert_int_equal(wire_user(&b, "x\xff", 2), 0); /* one line of valid UTF-8, always */
	expect(&b,
	       "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\xef\xbf\xbd\"}]}");
	assert_int_equal(wire_user(&b, "", 0), AVA_EINVAL);
	assert_int_equal(wire_user(&b, " \n\t", 3), AVA_EINVAL);
	assert_int_equal(b.len, 0);
	buf_fini(&b);
	buf_init(&b, 10);
	assert_int_equal(wire_user(&b, "does not fit", 12), AVA_ETOOBIG);
	buf_fini(&b);
}

TEST(turn)
{
	struct turn_call calls[] = {
		{.wire_id = "toolu_1_1",
		 .name = "read_file",
		 .args = "{\"path\":\"a\"}",
		 .args_len = 12,
		 .success = true,
		 .output = "1\tx",
		 .output_len = 3},
		{.wire_id = "toolu_1_2",
		 .name = "nonsense",
		 .args = NULL,
		 .success = false,
		 .output = "no such tool",
		 .output_len = 12},
	};
	struct turn t = {.text = "Two calls.", .text_len = 10, .calls = calls, .ncalls = 2};
	const char *notices[] = {"[ava] 80 % of the time is used", "  "};
	TEST_BUF(b, 4096);

	assert_int_equal(wire_assistant(&b, &t), 0);
	expect(&b,
	       "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"Two calls.\"},"
	       "{\"type\":\"tool_use\",\"id\":\"toolu_1_1\",\"name\":\"read_file\",\"input\":{"
	       "\"path\":\"a\"}},"
	       "{\"type\":\"tool_use\",\"id\":\"toolu_1_2\",\"name\":\"nonsense\",\"input\":{}}]}");
	assert_int_equal(wire_results(&b, &t, notices, 2), 0);
	expect(&b, "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
		   "\"toolu_1_1\","
		   "\"content\":\"1\\tx\"},{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_1_2\","
		   "\"content\":"
		   "\"no such tool\",\"is_error\":true},{\"type\":\"text\",\"text\":\"[ava] 80 % "
		   "of the time is "
		   "used\"}]}");
	t.ncalls = 0;
	assert_int_equal(wire_results(&b, &t, notices, 1), 0);
	expect(&b, "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"[ava] 80 % of "
		   "the time is "
		   "used\"}]}");
	assert_int_equal(wire_results(&b, &t, notices + 1, 1), AVA_EINVAL);
	t.text = " ";
	t.text_len = 1;
	assert_int_equal(wire_assistant(&b, &t), 0);
	assert_int_equal(b.len, 0); /* an empty reply has no line */
}

/* ---- the check */

#define USER(x)      "{\"role\":\"user\",\"content\":[" x "]}"
#define ASSISTANT(x) "{\"role\":\"assistant\",\"content\":[" x "]}"
#define TEXT(x)      "{\"type\":\"text\",\"text\":\"" x "\"}"
#define USE(id)      "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"f\",\"input\":{}}"
#define RESULT(id)   "{\"type\":\"tool_result\",\"tool_use_id\":\"" id "\",\"content\":\"r\"}"
#define TASK         USER(TEXT("do it"))
#define MISSING      "`tool_use` ids were found without `tool_result` blocks immediately after: "
#define UNEXPECTED   "unexpected `tool_use_id` found in `tool_result` blocks: "

/* clang-format off */
static const struct {
	const char *name, *lines;
	const char *fault; /* part of the sentence; NULL: valid */
} checks[] = {
	{"a task", TASK, NULL},
	{"a call and its result", TASK "," ASSISTANT(USE("a")) "," USER(RESULT("a")), NULL},
	{"text beside the call", TASK "," ASSISTANT(TEXT("x") "," USE("a")) "," USER(RESULT("a")), NULL},
	{"a notice after the result", TASK "," ASSISTANT(USE("a")) "," USER(RESULT("a") "," TEXT("n")), NULL},
	{"results in another order", TASK "," ASSISTANT(USE("a") "," USE("b")) "," USER(RESULT("b") "," RESULT("a")), NULL},
	{"two user messages", TASK "," USER(TEXT("say something")), NULL},
	{"a final text and a nudge", TASK "," ASSISTANT(TEXT("done")) "," USER(TEXT("submit it")), NULL},
	{"thinking blocks stay",
	 TASK "," ASSISTANT("{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"s\"}," USE(
		 "a")) "," USER(RESULT("a")),
	 NULL},
	{"content as blocks",
	 TASK "," ASSISTANT(USE("a")) "," USER(
		 "{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":[" TEXT("r") "]}"),
	 NULL},
	{"an input with brackets in strings",
	 TASK "," ASSISTANT("{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{"
			    "\"p\":\"]}\\\"\"}}") "," USER(RESULT("a")),
	 NULL},
	{"nothing", "", "at least one message is required"},
	{"the assistant first", ASSISTANT(TEXT("hi")), "first message must use the \"user\" role"},
	{"ends with the assistant", TASK "," ASSISTANT(TEXT("hi")), "must end with a user message"},
	{"two assistant messages", TASK "," ASSISTANT(TEXT("a")) "," ASSISTANT(TEXT("b")) "," TASK, "messages.2: roles must alternate"},
	{"a call is not answered", TASK "," ASSISTANT(USE("toolu_7")) "," USER(TEXT("go on")),
	 "messages.1: " MISSING
	 "toolu_7. Each `tool_use` block must have a corresponding `tool_result` block in "
	 "the next message."},
	{"the last call is not answered", TASK "," ASSISTANT(USE("a")), MISSING "a."},
	{"one of two is not answered", TASK "," ASSISTANT(USE("a") "," USE("b")) "," USER(RESULT("b")), MISSING "a."},
	{"neither is answered", TASK "," ASSISTANT(USE("a") "," USE("b")) "," TASK, MISSING "a, b."},
	{"answered one message too late", TASK "," ASSISTANT(USE("a")) "," USER(TEXT("x")) "," USER(RESULT("a")), MISSING "a."},
	{"a result without a call", TASK "," ASSISTANT(TEXT("x")) "," USER(RESULT("a")),
	 "messages.2.content.0: " UNEXPECTED
	 "a. Each `tool_result` block must have a corresponding `tool_use` "
	 "block in the previous message."},
	{"a result in the first message", USER(RESULT("a")), "messages.0.content.0: " UNEXPECTED "a."},
	{"a result of an older call",
	 TASK "," ASSISTANT(USE("a")) "," USER(RESULT("a")) "," ASSISTANT(USE("b")) "," USER(
		 RESULT("b") "," RESULT("a")),
	 UNEXPECTED "a."},
	{"a result twice", TASK "," ASSISTANT(USE("a")) "," USER(RESULT("a") "," RESULT("a")), "Found multiple `tool_result` blocks with id: a"},
	{"text before the result", TASK "," ASSISTANT(USE("a")) "," USER(TEXT("n") "," RESULT("a")), "must come first"},
	{"ids repeat in a message", TASK "," ASSISTANT(USE("a") "," USE("a")) "," USER(RESULT("a")), "`tool_use` ids must be unique: a"},
	{"ids repeat later",
	 TASK "," ASSISTANT(USE("a")) "," USER(RESULT("a")) "," ASSISTANT(USE("a")) "," USER(
		 RESULT("a")),
	 "`tool_use` ids must be unique: a"},
	{"an id with a dot", TASK "," ASSISTANT(USE("a.b")) "," USER(RESULT("a.b")), "'^[a-zA-Z0-9_-]+$'"},
	{"an empty id", TASK "," ASSISTANT(USE("")) "," USER(RESULT("")), "tool_use.id"},
	{"a call of the user", USER(USE("a")), "`tool_use` blocks can only be in `assistant` messages"},
	{"a result of the assistant", TASK "," ASSISTANT(RESULT("a")) "," TASK, "`tool_result` blocks can only be in `user` messages"},
	{"an empty text", USER(TEXT("")), "must contain non-whitespace text"},
	{"a blank text", TASK "," ASSISTANT(TEXT(" \\n\\t")) "," TASK, "messages.1.content.0: text content blocks must contain non-whitespace text"},
	{"no blocks", TASK "," ASSISTANT("") "," TASK, "messages.1: all messages must have non-empty content"},
	{"arguments that are a string",
	 TASK "," ASSISTANT("{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":"
			    "\"{}\"}") "," USER(RESULT("a")),
	 "an input that is an object"},
	{"an unknown role", "{\"role\":\"system\",\"content\":[" TEXT("x") "]}", "not a message"},
	{"content that is a string", "{\"role\":\"user\",\"content\":\"x\"}", "not a message"},
	{"a second content", "{\"role\":\"user\",\"content\":[" TEXT("x") "],\"content\":[]}", "not a message"},
	{"a comma too many", TASK ",", "not a message"},
	{"no comma", TASK TASK, "not a message"},
	{"a closing bracket", TASK "]", "not a message"},
	{"a torn message", "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x", "not a message"},
	{"not JSON", "hello", "not a message"},
};
/* clang-format on */

TEST(check)
{
	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		struct ava_error err = {0};
		int rv = wire_check(checks[i].lines, strlen(checks[i].lines), &err);

		print_message("%s: %s\n", checks[i].name, rv != 0 ? err.text : "valid");
		assert_int_equal(rv, checks[i].fault != NULL ? AVA_EINVAL : 0);
		if (checks[i].fault != NULL)
			assert_non_null(strstr(err.text, checks[i].fault));
		assert_int_equal(wire_check(checks[i].lines, strlen(checks[i].lines), NULL), rv);
	}
}

TEST(check_of_what_is_new)
{
	unsigned places = 0;

	for (size_t i = 0; i < ARRAY_LEN(checks); i++)
		places += check_more(&dialect_offline, checks[i].lines);
	assert_in_range(places, 40, 100);
}

/* Bytes that were checked are not read as JSON any more, however long the conversation. An id
 * that stands there as an id is found all the same. */
TEST(check_of_what_is_new_alone)
{
	static const char broken[] = "{\"id\":\"b\",no JSON at all";
	static const char more[] = "," ASSISTANT(USE("c")) "," USER(RESULT("c"));
	static const char again[] = "," ASSISTANT(USE("b")) "," USER(RESULT("b"));
	size_t checked = strlen(broken);
	TEST_BUF(b, 4096);

	buf_addf(&b, "%s%s", broken, more);
	assert_int_equal(messages_check(&dialect_offline, b.data, b.len, &checked, NULL), 0);
	assert_int_equal(checked, b.len);
	checked = strlen(broken);
	buf_reset(&b);
	buf_addf(&b, "%s%s", broken, again);
	assert_int_equal(messages_check(&dialect_offline, b.data, b.len, &checked, NULL),
			 AVA_EINVAL);
	assert_int_equal(checked, 0);
}

/* No cut of a valid conversation is taken for a valid one of the same length,
 * and none is read past its end (the copy has no byte more). */
TEST(check_cut)
{
	static const char whole[] =
		TASK "," ASSISTANT(TEXT("x\\\"") "," USE("a")) "," USER(RESULT("a"));
	size_t valid = 0;

	for (size_t n = 0; n <= strlen(whole); n++) {
		char *copy = malloc(n + 1);

		memcpy(copy, whole, n);
		valid += wire_check(copy, n, NULL) == 0;
		free(copy);
	}
	assert_int_equal(valid, 2); /* after the task and at the end */
}

TEST(check_memory)
{
	static const char lines[] = TASK "," ASSISTANT(USE("a")) "," USER(RESULT("a"));
	int rv = 0;

	FAULT_LOOP(k, {
		rv = wire_check(lines, strlen(lines), NULL);
		assert_true(rv == 0 || rv == AVA_ENOMEM);
	});
	assert_int_equal(rv, 0);
}

/* A conversation of 1,000 turns is still checked at once. */
TEST(check_long)
{
	TEST_BUF(b, 64u << 20);

	buf_adds(&b, TASK);
	for (int i = 0; i < 1000; i++) {
		buf_addf(&b, "," ASSISTANT(USE("toolu_%d_1") "," USE("toolu_%d_2")), i, i);
		buf_addf(&b, "," USER(RESULT("toolu_%d_1") "," RESULT("toolu_%d_2")), i, i);
	}
	assert_int_equal(buf_check(&b), 0);
	assert_int_equal(wire_check(b.data, b.len, NULL), 0);
	buf_adds(&b, "," ASSISTANT(USE("toolu_500_2")) "," USER(RESULT("toolu_500_2")));
	assert_int_equal(wire_check(b.data, b.len, NULL), AVA_EINVAL);
}

/* ---- the cursor */

static const struct {
	const char *raw, *text;
} escapes[] = {
	{"", ""},
	{"plain", "plain"},
	{"a\\n\\t\\r\\b\\f", "a\n\t\r\b\f"},
	{"\\\"\\\\\\/", "\"\\/"},
	{"\\u0041\\u00e9\\u20ac", "A\xc3\xa9\xe2\x82\xac"},
	{"\\ud83d\\ude00!", "\xf0\x9f\x98\x80!"},
	{"\\ud83d x", "\xef\xbf\xbd x"},
	{"\\ude00", "\xef\xbf\xbd"},
	{"\\ud83d\\u0041", "\xef\xbf\xbd"
			   "A"},
	{"\\u0000", "\xef\xbf\xbd"},
	{"\\u12", "u12"},
	{"\\", ""},
};

TEST(unescape)
{
	for (size_t i = 0; i < ARRAY_LEN(escapes); i++) {
		size_t len = strlen(escapes[i].raw);
		char *out = malloc(len + 1);
		size_t n = jscan_unescape((struct slice){escapes[i].raw, len}, out);

		print_message("%s\n", escapes[i].raw);
		assert_true(n <= len);
		assert_int_equal(n, strlen(escapes[i].text));
		assert_memory_equal(out, escapes[i].text, n);
		free(out);
	}
}

static const struct {
	const char *json;
	bool good;
} values[] = {
	{"{}", true},
	{"[]", true},
	{"[1,2.5,-3e+7]", true},
	{"{\"a\":[{\"b\":null}],\"c\":\"\\\\\"}", true},
	{" { \"a\" : true } ", true},
	{"[1 2]", false},
	{"[1,]", false},
	{"[,1]", false},
	{"{\"a\"}", false},
	{"{\"a\":}", false},
	{"{\"a\":1,}", false},
	{"{a:1}", false},
	{"[1}", false},
	{"nul", false},
	{"1.", false},
	{"-", false},
	{"\"x", false},
	{"\"x\\\"", false},
	{"", false},
	{"[", false},
};

/* Escapes at every place of a word of eight bytes, and behind each other. */
TEST(unescape_places)
{
	static const char *const kinds[] = {"\\n", "\\\"", "\\\\", "\\u00e9", "\\/\\t"};
	char text[200], out[200];

	for (int before = 0; before < 20; before++) {
		for (int between = 0; between < 20; between++) {
			const char *kind = kinds[(before + between) % 5];
			int len = snprintf(text, sizeof(text), "\"%.*s%s%.*s%s%s%.*s\"", before,
					   "\xc3\xa9 is a plain text that", kind, between,
					   "which goes on and on here", kind, kind, between % 11,
					   "to the end of it");
			json_t *v = json_parse(text, (size_t)len, NULL);
			struct slice raw = {text + 1, (size_t)len - 2};
			size_t n = jscan_unescape(raw, out);

			if (before == 1) /* half a character is no JSON */
				continue;
			assert_non_null(v);
			assert_int_equal(n, json_string_length(v));
			assert_memory_equal(out, json_string_value(v), n);
			json_decref(v);
		}
	}
	assert_int_equal(jscan_unescape((struct slice){"12345678\\", 9}, out), 8);
}

TEST(jscan)
{
	char deep[400];
	struct jscan w;

	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		jscan_init(&w, values[i].json, strlen(values[i].json));
		print_message("%s\n", values[i].json);
		assert_int_equal(jscan_skip(&w, NULL), values[i].good);
		assert_int_equal(w.failed, !values[i].good);
	}
	memset(deep, '[', 200);
	memset(deep + 200, ']', 200);
	jscan_init(&w, deep, 400);
	assert_false(jscan_skip(&w, NULL));
	jscan_init(&w, deep + 140, 120);
	assert_true(jscan_skip(&w, NULL));
}

/* ---- messages.jsonl */

TEST(golden)
{
	struct agent_infer call = {.iteration = 3, .max_output = 8192};
	struct messages_info info;
	size_t len, want_len, head;
	char *file = unit_read_src("test/golden/messages/run.jsonl", &len), *want;
	TEST_BUF(b, 1u << 20);

	want = unit_read_src("test/golden/messages/run.request.json", &want_len);
	heads_golden("test/golden/messages", file, len);
	assert_int_equal(messages_request(&b, file, len, -1, &info, NULL), 0);
	head = info.head_len;
	assert_int_equal(info.lines, 5);
	assert_int_equal(info.torn, 0);
	assert_int_equal(wire_check(b.data + head, b.len - head, NULL), 0);
	assert_int_equal(wire_tail(&b, NULL, false, &call), 0);
	assert_int_equal(b.len, want_len);
	assert_memory_equal(b.data, want, want_len);

	/* A torn last line was never acknowledged. */
	buf_reset(&b);
	assert_int_equal(messages_request(&b, file, len - 1, -1, &info, NULL), 0);
	assert_true(info.torn > 0);
	assert_non_null(strstr(b.data, "[an \\\"older\\\" marker]"));
	free(file);
	free(want);
}

/* What the encoders write is what the golden file holds. */
TEST(golden_encodes)
{
	struct turn_call calls[] = {
		{.wire_id = "toolu_1_1",
		 .name = "search_codebase",
		 .args = "{\"pattern\":\"pool_drain\"}",
		 .args_len = 24,
		 .success = true,
		 .output = "src/pool.c:40:int pool_drain(struct pool "
			   "*p)\nsrc/main.c:7:\tpool_drain(\"all\");",
		 .output_len = 78},
		{.wire_id = "toolu_1_2",
		 .name = "read_file",
		 .args = "{\"path\":\"pool.c\"}",
		 .args_len = 17,
		 .output = "pool.c: no such file",
		 .output_len = 20},
	};
	struct turn t = {.text = "Searching.", .text_len = 10, .calls = calls, .ncalls = 2};
	size_t len;
	char *file = unit_read_src("test/golden/messages/run.jsonl", &len);
	TEST_BUF(b, 1u << 20);

	calls[0].output_len = strlen(calls[0].output);
	wire_user(&b, "Where is the pool drained?", 26);
	buf_addc(&b, '\n');
	wire_assistant(&b, &t);
	buf_addc(&b, '\n');
	wire_results(&b, &t, NULL, 0);
	buf_addc(&b, '\n');
	assert_int_equal(buf_check(&b), 0);
	assert_non_null(strstr(file, b.data));
	free(file);
}

#define SPEC "{\"spec\":{\"machine\":1,\"head\":\"H[\"}}\n"

static const struct {
	const char *name, *file;
	int code;
	const char *fault, *request;
} files[] = {
	{"a spec alone", SPEC, 0, NULL, "H["},
	{"keys that are not known", "{\"spec\":{\"later\":[1],\"head\":\"H[\"}}\n" TASK "\n", 0,
	 NULL, "H[" TASK},
	{"another head", SPEC TASK "\n{\"spec\":{\"head\":\"G[\"}}\n", 0, NULL, "G[" TASK},
	{"nothing", "", AVA_ECORRUPT, "no spec line", NULL},
	{"no spec first", TASK "\n", AVA_ECORRUPT, "line 1: the first line must be the spec", NULL},
	{"no head", "{\"spec\":{\"machine\":1}}\n", AVA_ECORRUPT, "head", NULL},
	{"a newer machine", "{\"spec\":{\"machine\":2,\"head\":\"H\"}}\n", AVA_EFORMAT, "newer",
	 NULL},
	{"another kind of line", SPEC "{\"what\":1}\n", AVA_ECORRUPT, "line 2", NULL},
	{"damage", SPEC TASK "\n\x01\x02\n" TASK "\n", AVA_ECORRUPT, "line 3", NULL},
	{"a replace without content", SPEC "{\"replace\":{\"wireId\":\"a\"}}\n", AVA_ECORRUPT,
	 "line 2", NULL},
	{"a replace and more", SPEC "{\"replace\":{\"wireId\":\"a\",\"content\":\"b\"},\"x\":1}\n",
	 AVA_ECORRUPT, "more than one", NULL},
	{"a replace of something else",
	 SPEC TASK "\n{\"replace\":{\"wireId\":\"a\",\"content\":\"b\"}}\n", 0, NULL, "H[" TASK},
};

TEST(files)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct ava_error err = {0};
		TEST_BUF(b, 1u << 16);
		char *file;
		size_t len;
		int rv;

		file = heads_named(files[i].file, &len);
		rv = messages_request(&b, file, len, -1, NULL, &err);
		free(file);
		print_message("%s: %s\n", files[i].name, err.text);
		assert_int_equal(rv, files[i].code);
		if (rv != 0)
			assert_non_null(strstr(err.text, files[i].fault));
		else
			assert_string_equal(b.data, files[i].request);
	}
}

/* ---- results and open calls */

static int count_results(size_t k, const char *text, size_t len, bool is_error, void *user)
{
	size_t *n = user;

	assert_int_equal(k, *n);
	assert_int_equal(is_error, k == 1);
	assert_int_equal(len, k == 0 ? 2 : 1);
	assert_memory_equal(text, k == 0 ? "a\n" : "b", len);
	++*n;
	return 0;
}

TEST(results_back)
{
	static const char lines[] = TASK "," ASSISTANT(USE("x") "," USE("y")) "," USER(
		"{\"type\":\"tool_result\",\"tool_use_id\":\"x\",\"content\":\"a\\n\"},"
		"{\"type\":\"tool_result\",\"tool_use_id\":\"y\",\"content\":\"b\",\"is_error\":"
		"true}") "," ASSISTANT(USE("z1") "," USE("z2"));
	struct turn *t = turn_new();
	size_t n = 0;

	assert_int_equal(wire_each_result(lines, strlen(lines), count_results, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_int_equal(wire_open_calls(lines, strlen(lines), t, NULL), 0);
	assert_int_equal(t->ncalls, 2);
	assert_string_equal(t->calls[0].wire_id, "z1");
	assert_string_equal(t->calls[1].wire_id, "z2");
	assert_string_equal(t->calls[1].args, "{}");
	turn_free(t);
}

/* The strict mock itself: each kind of request that a real service refuses is
 * refused, with its status and its words, and the good ones pass. A mock that
 * lets something through would make every test that leans on it worthless. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "reply.h"
#include "signature.h"

/* One request through all checks of its service, headers apart. */
static struct tape tape;
static struct convos *convos;
static struct plan plan;

static bool ask_body(struct ask *a, const char *body, struct verdict *v)
{
	a->body_len = strlen(body);
	if (!tape_read(&tape, body, a->body_len))
		return verdict_set(v, 400, "json", "%s", tape.error);
	return ask_read(a, &tape, v) && check_body(a, v);
}

static int setup_world(void **state)
{
	tape_init(&tape);
	convos = convos_new();
	plan_default(&plan);
	return 0;
}

static int end_world(void **state)
{
	convos_free(convos);
	tape_fini(&tape);
	return 0;
}

UNIT_GROUP(.before = setup_world, .after = end_world);

struct refusal {
	const char *body;
	const char *words; /* in the text; NULL: the request is good */
	int status;        /* 0: 400 */
};

static void check_rows(struct ask to, const struct refusal *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct ask a = to;
		struct verdict v = {0};
		bool good = ask_body(&a, rows[i].body, &v);

		if (rows[i].words == NULL
			    ? !good
			    : good || strstr(v.text, rows[i].words) == NULL ||
				      v.status != (rows[i].status ? rows[i].status : 400))
			fail_msg("%s\n  wanted: %s\n  got: %d %s", rows[i].body,
				 rows[i].words ? rows[i].words : "(good)", v.status, v.text);
	}
}

static void check_table(enum service service, const struct refusal *rows, size_t n)
{
	check_rows((struct ask){.service = service}, rows, n);
}

/* ---- JSON ---- */

TEST(tape)
{
	/* clang-format off */
	static const char *const good[] = {
		"{}", "[]",
		" {\"a\" : [1, -0.5e+3, true,false,null,\"\\u00e9\\ud83d\\ude00\"]}\n",
		"\"\xc3\xa9\xf0\x9f\x98\x80\"", "0", "-1", "1E5",
	};
	static const char *const broken[] = {
		"", "{", "{\"a\":1,}", "[1,]", "{a:1}", "{'a':1}", "nul", "NaN", "Infinity", "01",
		"1.", ".5", "+1", "1e", "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\udc00\"",
		"\"\\ud800\\u0041\"", "\"\x01\"", "\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"",
		"\"abc", "{} {}", "{\"a\":1,\"a\":2}", "[1 2]", "{\"a\" 1}", "\xef\xbb\xbf{}",
	};
	/* clang-format on */
	char deep[200];

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (!tape_read(&tape, good[i], strlen(good[i])))
			fail_msg("%s: %s", good[i], tape.error);
	for (size_t i = 0; i < ARRAY_LEN(broken); i++)
		if (tape_read(&tape, broken[i], strlen(broken[i])) || tape.error[0] == '\0')
			fail_msg("taken: %s", broken[i]);
	memset(deep, '[', 100);
	memset(deep + 100, ']', 100);
	assert_true(tape_read(&tape, deep + 36, 128));
	assert_false(tape_read(&tape, deep + 35, 130));
}

/* ---- the Messages API ---- */

/* As wide as they are. */
/* clang-format off */
#define A(model, rest)  "{\"model\":\"" model "\",\"max_tokens\":2000," rest "}"
#define S45(rest)       A("claude-sonnet-4-5", rest)
#define O47(rest)       A("claude-opus-4-7", rest)
#define MSG(list)       "\"messages\":[" list "]"
#define USER(text)      "{\"role\":\"user\",\"content\":\"" text "\"}"
#define BLOCKS(list)    "{\"role\":\"user\",\"content\":[" list "]}"
#define ASSIST(list)    "{\"role\":\"assistant\",\"content\":[" list "]}"
#define TEXT(s)         "{\"type\":\"text\",\"text\":\"" s "\"}"
#define USE(id)         "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"t\",\"input\":{}}"
#define RESULT(id)      "{\"type\":\"tool_result\",\"tool_use_id\":\"" id "\",\"content\":\"r\"}"
#define TOOL(name)      "{\"name\":\"" name "\",\"input_schema\":{\"type\":\"object\"}}"
#define TURN(calls, results) S45(MSG(USER("a") "," ASSIST(calls) "," BLOCKS(results)))
#define MARKED          "{\"type\":\"text\",\"text\":\"x\",\"cache_control\":{\"type\":\"ephemeral\"}}"
#define WITH(parameter) S45(parameter "," MSG(USER("hi")))
#define WITH47(p)       O47(p "," MSG(USER("hi")))

static const struct refusal anthropic_parameters[] = {
	{WITH("\"stream\":true"), NULL},
	{WITH47("\"thinking\":{\"type\":\"adaptive\"},\"output_config\":{\"effort\":\"low\"}"),
	 NULL},
	{"[]", "valid dictionary"},
	{"{\"max_tokens\":1," MSG(USER("x")) "}", "model: Field required"},
	{"{\"model\":\"claude-x\"," MSG(USER("x")) "}", "max_tokens: Field required"},
	{"{\"model\":\"claude-x\",\"max_tokens\":0," MSG(USER("x")) "}",
	 "greater than or equal to 1"},
	{"{\"model\":\"claude-x\",\"max_tokens\":64001," MSG(USER("x")) "}", "64001 > 64000"},
	{"{\"model\":\"claude-x\",\"max_tokens\":\"9\"," MSG(USER("x")) "}", "valid integer"},
	{"{\"model\":\"no-such\",\"max_tokens\":1," MSG(USER("x")) "}", "model: no-such", 404},
	{S45("\"stream\":true"), "messages: Field required"},
	{S45("\"messages\":{}"), "valid list"},
	{S45("\"messages\":[]"), "at least one message"},
	{WITH("\"max_completion_tokens\":5"), "max_completion_tokens: Extra inputs"},
	{WITH("\"reasoning\":{}"), "reasoning: Extra inputs"},
	{WITH("\"temperature\":0.5"), NULL},
	{WITH("\"temperature\":1.5"), "range: 0..1"},
	{WITH47("\"temperature\":1"), "`temperature` is deprecated for this model"},
	{WITH47("\"top_k\":5"), "`top_k` is deprecated"},
	{WITH47("\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024}"),
	 "\"thinking.type.enabled\" is not supported for this model"},
	{WITH("\"thinking\":{\"type\":\"adaptive\"}"), "adaptive thinking is not supported"},
	{WITH("\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024}"), NULL},
	{WITH("\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":2000}"),
	 "`max_tokens` must be greater than `thinking.budget_tokens`"},
	{WITH("\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":100}"), "equal to 1024"},
	{WITH("\"thinking\":{\"type\":\"enabled\"}"), "budget_tokens: Field required"},
	{WITH("\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024},\"temperature\":0.5"),
	 "may only be set to 1"},
	{WITH("\"tools\":[" TOOL("a") "," TOOL("b") "],\"tool_choice\":{\"type\":\"auto\"}"), NULL},
	{WITH("\"tools\":[" TOOL("a") "," TOOL("a") "]"), "names must be unique"},
	{WITH("\"tools\":[" TOOL("a b") "]"), "tools.0.custom.name"},
	{WITH("\"tools\":[{\"name\":\"a\"}]"), "input_schema: Field required"},
	{WITH("\"tools\":[{\"name\":\"a\",\"input_schema\":{}}]"),
	 "input_schema.type: Field required"},
	{WITH("\"tools\":[{\"name\":\"a\",\"input_schema\":{\"type\":\"array\"}}]"), "'object'"},
	{WITH("\"tools\":[{\"type\":\"function\",\"function\":{}}]"), "tools.0"},
	{WITH("\"tool_choice\":{\"type\":\"auto\"}"), "while providing tools"},
	{WITH("\"tools\":[" TOOL("a") "],\"tool_choice\":\"auto\""), "Input tag"},
	{WITH("\"tools\":[" TOOL("a") "],\"tool_choice\":{\"type\":\"tool\",\"name\":\"b\"}"),
	 "'b' not found"},
	{WITH("\"tools\":[" TOOL("a") "],\"tool_choice\":{\"type\":\"any\"},"
	 "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024}"),
	 "Thinking may not be enabled when tool_choice"},
	{WITH("\"system\":\"You.\""), NULL},
	{WITH("\"system\":[" TEXT("") "]"), "system: text content blocks must be non-empty"},
	{WITH("\"system\":{}"), "system: Input"},
	{WITH("\"system\":[" MARKED "," MARKED "," MARKED "," MARKED "]"), NULL},
	{WITH("\"system\":[" MARKED "," MARKED "," MARKED "," MARKED "," MARKED "]"),
	 "A maximum of 4 blocks with cache_control may be provided. Found 5."},
	{S45("\"system\":[" MARKED "," MARKED "," MARKED "," MARKED "]," MSG(BLOCKS(MARKED))),
	 "Found 5"},
	{WITH("\"system\":[{\"type\":\"text\",\"text\":\"x\",\"cache_control\":{\"type\":\"x\"}}]"),
	 "cache_control"},
};

static const struct refusal anthropic_messages[] = {
	{S45(MSG("{\"role\":\"system\",\"content\":\"x\"}")), "top-level `system`"},
	{S45(MSG("{\"role\":\"tool\",\"content\":\"x\"}")), "'user' or 'assistant'"},
	{S45(MSG("{\"content\":\"x\"}")), "role: Field required"},
	{S45(MSG("{\"role\":\"user\"}")), "content: Field required"},
	{S45(MSG("{\"role\":\"user\",\"content\":5}")), "valid list"},
	{S45(MSG("{\"role\":\"user\",\"content\":\"x\",\"name\":\"n\"}")), "name: Extra inputs"},
	{S45(MSG(USER(""))), "non-empty content"},
	{S45(MSG(BLOCKS(""))), "non-empty content"},
	{S45(MSG(BLOCKS(TEXT("")))), "text content blocks must be non-empty"},
	{S45(MSG(BLOCKS(TEXT(" \\n\\t")))), "non-whitespace"},
	{S45(MSG(BLOCKS("{\"type\":\"text\"}"))), "text: Field required"},
	{S45(MSG(BLOCKS("{\"type\":\"text\",\"text\":\"\","
	 "\"cache_control\":{\"type\":\"ephemeral\"}}"))),
	 "cache_control cannot be set for empty text"},
	{S45(MSG(BLOCKS("{\"type\":\"mystery\"}"))), "Input tag"},
	{S45(MSG(BLOCKS("5"))), "valid dictionary"},
	{S45(MSG(ASSIST(TEXT("x")))), "first message must use the \"user\" role"},
	/* neighbours are one message */
	{S45(MSG(USER("a") "," USER("b"))), NULL},
	{S45(MSG(USER("a") "," ASSIST(TEXT("b")) "," ASSIST(USE("t_1")) "," BLOCKS(RESULT("t_1")))),
	 NULL},
	{S45(MSG(USER("a") "," ASSIST(USE("t_1")) "," ASSIST(USE("t_2")) ","
	 BLOCKS(RESULT("t_1")))), "immediately after: t_2"},
	{S45(MSG(USER("a") "," ASSIST(USE("t_1") "," USE("t_2")) "," BLOCKS(RESULT("t_1")) ","
	 BLOCKS(RESULT("t_2") "," TEXT("x")))), NULL},
	{S45(MSG(USER("a") "," ASSIST(USE("t_1")) "," USER("x") "," BLOCKS(RESULT("t_1")))),
	 "before other content"},
	{S45(MSG(USER("a") "," ASSIST(USE("t_1")) "," BLOCKS(TEXT("x")) "," BLOCKS(RESULT("t_1")))),
	 "before other content"},
	{S45(MSG(USER("a") "," ASSIST(TEXT("b")))), NULL},
	/* an old model takes a prefill */
	{O47(MSG(USER("a") "," ASSIST(TEXT("b")))), "does not support assistant message prefill"},
	{TURN(TEXT("b") "," USE("t_1"), RESULT("t_1")), NULL},
	{TURN(USE("t_1") "," USE("t_2"), RESULT("t_2") "," RESULT("t_1") "," TEXT("and")), NULL},
	{S45(MSG(USER("a") "," ASSIST(USE("t_1")) "," USER("b"))),
	 "`tool_use` ids were found without `tool_result` blocks immediately after: t_1"},
	{TURN(USE("t_1") "," USE("t_2"), RESULT("t_1")), "immediately after: t_2"},
	{S45(MSG(USER("a") "," ASSIST(USE("t_1")) "," BLOCKS(RESULT("t_1")) "," ASSIST(TEXT("b"))
	 "," BLOCKS(RESULT("t_1")))),
	 "messages.4.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t_1"},
	{S45(MSG(BLOCKS(RESULT("t_1")))), "unexpected `tool_use_id`"},
	{TURN(USE("t_1"), RESULT("t_9") "," RESULT("t_1")),
	 "unexpected `tool_use_id` found in `tool_result` blocks: t_9"},
	{TURN(USE("t_1"), RESULT("t_1") "," RESULT("t_1")), "must have a single result"},
	{TURN(USE("t_1"), TEXT("x") "," RESULT("t_1")), "before other content"},
	{TURN(USE("t_1") "," USE("t_1"), RESULT("t_1")), "ids must be unique"},
	{TURN(USE("t.1"), RESULT("t.1")), "^[a-zA-Z0-9_-]+$"},
	{TURN(USE(""), RESULT("")), "^[a-zA-Z0-9_-]+$"},
	{S45(MSG(USER("a") ","
	 ASSIST("{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"rm\\n\",\"input\":{}}"))),
	 "tool_use.name"},
	{S45(MSG(USER("a") ","
	 ASSIST("{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"t\",\"input\":\"{}\"}"))),
	 "input: Input should be a valid dictionary"},
	{S45(MSG(BLOCKS(USE("t_1")))), "can only be in `assistant`"},
	{S45(MSG(USER("a") "," ASSIST(RESULT("t_1")))), "can only be in `user`"},
	{TURN(USE("t_1"), "{\"type\":\"tool_result\",\"tool_use_id\":\"t_1\",\"content\":["
	 TEXT("") "]}"), "non-empty"},
	{TURN(USE("t_1"), "{\"type\":\"tool_result\",\"tool_use_id\":\"t_1\",\"content\":{}}"),
	 "tool_result.content"},
	{TURN(USE("t_1"), "{\"type\":\"tool_result\",\"tool_use_id\":\"t_1\","
	 "\"is_error\":\"yes\"}"), "is_error"},
	{S45("\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024}," MSG(USER("a") ","
	 ASSIST(USE("t_1")) "," BLOCKS(RESULT("t_1")))),
	 "Expected `thinking` or `redacted_thinking`, but found `tool_use`"},
};

/* clang-format on */

TEST(anthropic)
{
	check_table(SERVICE_ANTHROPIC, anthropic_parameters, ARRAY_LEN(anthropic_parameters));
	check_table(SERVICE_ANTHROPIC, anthropic_messages, ARRAY_LEN(anthropic_messages));
}

/* ---- chat completions ---- */

#define GPT(rest)        "{\"model\":\"gpt-4o\"," rest "}"
#define GPT5(rest)       "{\"model\":\"gpt-5\"," rest "}"
#define AFTER(rest)      GPT(MSG(USER("a") "," rest))
#define GIVEN(parameter) GPT(parameter "," MSG(USER("a")))
#define CALL(id)                                                                                   \
	"{\"id\":\"" id "\",\"type\":\"function\",\"function\":{\"name\":\"t\",\"arguments\":"     \
	"\"{}\"}}"
#define CALLS(list) "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" list "]}"
#define ANSWER(id)  "{\"role\":\"tool\",\"tool_call_id\":\"" id "\",\"content\":\"r\"}"
#define FN(name)                                                                                   \
	"{\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"parameters\":{\"type\":"     \
	"\"object\"}}}"
#define CARGS(args)                                                                                \
	CALLS("{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"t\","                 \
	      "\"arguments\":" args "}}")

/* clang-format off */
static const struct refusal openai_rows[] = {
	{GIVEN("\"stream\":true,\"stream_options\":{\"include_usage\":true}"), NULL},
	{GIVEN("\"stream_options\":{\"include_usage\":true}"), "'stream_options'"},
	{GIVEN("\"foo\":1"), "Unknown parameter: 'foo'"},
	{GIVEN("\"max_tokens\":10"), NULL},
	{GPT5("\"max_tokens\":10," MSG(USER("a"))), "Use 'max_completion_tokens' instead"},
	{GPT5("\"max_completion_tokens\":10," MSG(USER("a"))), NULL},
	{GPT5("\"temperature\":0.2," MSG(USER("a"))), "does not support 0.2"},
	{GIVEN("\"max_tokens\":0"), "below minimum"},
	{GIVEN("\"max_tokens\":99999"), "max_tokens is too large: 99999"},
	{GPT("\"messages\":[]"), "empty array"},
	{"{\"model\":\"no-such-x\"," MSG(USER("a")) "}", "does not exist", 404},
	{GPT(MSG("{\"role\":\"robot\",\"content\":\"x\"}")), "Invalid value: 'robot'"},
	{GPT(MSG("{\"content\":\"x\"}")), "messages[0].role"},
	{GPT(MSG("{\"role\":\"user\"}")), "messages[0].content"},
	{GPT(MSG("{\"role\":\"user\",\"content\":null}")), "expected a string, got null"},
	{GPT(MSG("{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\"}]}")),
	 "content[0].type"},
	{GPT(MSG(USER("a") ",{\"role\":\"assistant\",\"content\":null}")), "got null"},
	{AFTER(CALLS(CALL("c1")) "," ANSWER("c1")), NULL},
	{AFTER(CALLS(CALL("c1") "," CALL("c2")) "," ANSWER("c2") "," ANSWER("c1") "," USER("b")),
	 NULL},
	{AFTER(CALLS("")), "'messages[1].tool_calls': empty array"},
	{AFTER(CALLS(CALL("c1"))),
	 "must be followed by tool messages responding to each 'tool_call_id'. The following "
	 "tool_call_ids did not have response messages: c1"},
	{AFTER(CALLS(CALL("c1") "," CALL("c2")) "," ANSWER("c1") "," USER("b")),
	 "response messages: c2"},
	{AFTER(ANSWER("c1")), "must be a response to a preceeding message"},
	{AFTER(CALLS(CALL("c1")) "," ANSWER("c1") "," USER("b") "," ANSWER("c1")),
	 "must be a response to a preceeding message"},
	{AFTER(CALLS(CALL("c1")) "," ANSWER("c9")), "'c9' not found in 'tool_calls'"},
	{AFTER(CALLS(CALL("c1")) "," ANSWER("c1") "," ANSWER("c1")),
	 "Duplicate value for 'tool_call_id'"},
	{AFTER(CALLS(CALL("c1") "," CALL("c1")) "," ANSWER("c1")), "Duplicate value"},
	{AFTER(CALLS(CALL("c1")) ",{\"role\":\"tool\",\"content\":\"r\"}"),
	 "must have a 'tool_call_id'"},
	{AFTER(CARGS("{}") "," ANSWER("c1")), "expected a string, but got an object"},
	{AFTER(CARGS("\"{\\\"a\\\":1}{\\\"b\\\":2}\"") "," ANSWER("c1")), "not a JSON object"},
	{AFTER(CARGS("\"\"") "," ANSWER("c1")), "not a JSON object"},
	{AFTER(CALLS("{\"type\":\"function\",\"function\":{}}")), "tool_calls[0].id"},
	{GIVEN("\"tools\":[" FN("a") "],\"tool_choice\":\"auto\""), NULL},
	{GIVEN("\"tools\":[]"), "'tools': empty array"},
	{GIVEN("\"tools\":[" FN("a.b") "]"), "tools[0].function.name"},
	{GIVEN("\"tools\":[" TOOL("a") "]"), "tools[0].function"},
	{GIVEN("\"tools\":[{\"type\":\"function\",\"function\":"
	 "{\"name\":\"a\",\"parameters\":{}}}]"), "Invalid schema for function 'a'"},
	{GIVEN("\"tool_choice\":\"auto\""), "only allowed when 'tools'"},
	{GIVEN("\"tools\":[" FN("a")
	 "],\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"b\"}}"),
	 "tool_choice"},
};

/* clang-format on */

TEST(openai)
{
	struct ask a = {.service = SERVICE_OPENROUTER};
	struct verdict v = {0};

	check_table(SERVICE_OPENAI, openai_rows, ARRAY_LEN(openai_rows));
	/* OpenRouter takes parameters of its own */
	assert_true(ask_body(
		&a,
		GPT("\"provider\":{\"require_parameters\":true},\"reasoning\":{}," MSG(USER("a"))),
		&v));
}

/* ---- responses ---- */

#define ITEMS(rest) "{\"model\":\"gpt-4o\",\"store\":false,\"input\":[" USER("a") rest "]}"
#define ASKS(rest)  "{\"model\":\"gpt-4o\",\"store\":false," rest ",\"input\":[" USER("a") "]}"
#define SAYS                                                                                       \
	",{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\","    \
	"\"text\":\"x\"}]}"
#define THOUGHT ",{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[]"
#define CALLED(id)                                                                                 \
	",{\"type\":\"function_call\",\"call_id\":\"" id "\",\"name\":\"t\",\"arguments\":\"{}\"}"
#define OUTPUT(id) ",{\"type\":\"function_call_output\",\"call_id\":\"" id "\",\"output\":\"r\"}"
#define FLAT(strict)                                                                               \
	"{\"type\":\"function\",\"name\":\"a\",\"parameters\":{\"type\":\"object\"}" strict "}"

/* clang-format off */
static const struct refusal responses_rows[] = {
	{ITEMS(""), NULL},
	{ITEMS(SAYS CALLED("c1") CALLED("c2") OUTPUT("c2") OUTPUT("c1")), NULL},
	{ITEMS(CALLED("c1") OUTPUT("c1") SAYS "," USER("b")), NULL},
	{ITEMS(CALLED("c1")), "No tool output found for function call c1"},
	{ITEMS(CALLED("c1") "," USER("b")), "No tool output found for function call c1"},
	{ITEMS(OUTPUT("c1")), "No tool call found for function call output with call_id c1"},
	{ITEMS(CALLED("c1") OUTPUT("c1") OUTPUT("c1")), "No tool call found"},
	{ITEMS(CALLED("c1") CALLED("c1")), "Duplicate item"},
	{ITEMS(CALLED("c 1")), "does not match pattern"},
	{ITEMS(THOUGHT "}" CALLED("c1") OUTPUT("c1")), "Items are not persisted", 404},
	{ITEMS(THOUGHT ",\"encrypted_content\":\"x\"}" CALLED("c1") OUTPUT("c1")),
	 "encrypted content could not be verified"},
	{ITEMS(",{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"t\",\"arguments\":\"[]\"}"),
	 "not a JSON object"},
	{ITEMS(",{\"type\":\"function_call\",\"name\":\"t\",\"arguments\":\"{}\"}"), "input[1].call_id"},
	{ITEMS(",{\"role\":\"tool\",\"content\":\"r\"}"), "Supported values"},
	{ITEMS(",{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}"), "input_text"},
	{ITEMS(",{\"type\":\"x\"}"), "input[1].type"},
	{GPT(MSG(USER("a"))), "Missing required parameter: 'input'"},
	{ASKS("\"previous_response_id\":\"resp_1\""), "Unknown parameter: 'previous_response_id'"},
	{ASKS("\"max_tokens\":9"), "Unknown parameter: 'max_tokens'"},
	{ASKS("\"max_output_tokens\":9"), "below minimum"},
	{ASKS("\"tools\":[" FLAT(",\"strict\":false") "],\"tool_choice\":"
	      "{\"type\":\"function\",\"name\":\"a\"}"), NULL},
	{ASKS("\"tools\":[" FLAT("") "]"), "Invalid schema"},
	{ASKS("\"tools\":[" FN("a") "]"), "tools[0].name"},
	{ASKS("\"tools\":[" FLAT(",\"strict\":false") "],\"tool_choice\":"
	      "{\"type\":\"function\",\"name\":\"b\"}"), "not found in 'tools'"},
	{"{\"model\":\"gpt-4o\",\"input\":[" USER("a") "]}", "store must be false"},
	{"{\"model\":\"chat-only\",\"store\":false,\"input\":[" USER("a") "]}",
	 "use the /v1/chat/completions endpoint"},
};
/* clang-format on */

TEST(responses)
{
	static const struct refusal elsewhere[] = {
		{"{\"model\":\"gpt-5-pro\"," MSG(USER("a")) "}", "only supported in v1/responses",
		 404},
	};

	check_rows((struct ask){.service = SERVICE_OPENAI, .items = true}, responses_rows,
		   ARRAY_LEN(responses_rows));
	check_table(SERVICE_OPENAI, elsewhere, 1);
}

/* ---- headers and error bodies ---- */

TEST(headers)
{
	struct ask a = {.service = SERVICE_ANTHROPIC, .method = "POST", .type = "application/json"};
	struct verdict v = {0};

	assert_false(check_headers(&a, &v));
	assert_int_equal(v.status, 401);
	assert_string_equal(v.text, "x-api-key header is required");
	strcpy(a.key, "k");
	v = (struct verdict){0};
	assert_false(check_headers(&a, &v));
	assert_string_equal(v.text, "anthropic-version: header is required");
	strcpy(a.version, "2023-06-01");
	v = (struct verdict){0};
	assert_true(check_headers(&a, &v));
	strcpy(a.type, "text/plain");
	assert_false(check_headers(&a, &v));
	strcpy(a.type, "application/json");
	strcpy(a.key, "bad-key");
	v = (struct verdict){0};
	assert_false(check_headers(&a, &v));
	assert_string_equal(v.text, "invalid x-api-key");
	a = (struct ask){.service = SERVICE_LOCAL, .method = "POST", .type = "application/json"};
	v = (struct verdict){0};
	assert_true(check_headers(&a, &v)); /* no key */
	a.service = SERVICE_OPENAI;
	assert_false(check_headers(&a, &v));
	assert_int_equal(v.status, 401);
}

TEST(error_bodies)
{
	static const struct {
		enum service service;
		const char *body;
	} rows[] = {
		{SERVICE_ANTHROPIC, "{\"type\":\"error\",\"error\":{\"type\":\"t\",\"message\":\"a "
				    "\\\"b\\\"\"},\"request_id\":\"req_1\"}"},
		{SERVICE_OPENAI, "{\"error\":{\"message\":\"a \\\"b\\\"\",\"type\":\"t\",\"param\":"
				 "\"p\",\"code\":null}}"},
		{SERVICE_OPENROUTER, "{\"error\":{\"message\":\"a \\\"b\\\"\",\"code\":400,"
				     "\"metadata\":{\"error_type\":\"t\"}},\"user_id\":null}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ask a = {.service = rows[i].service};
		struct verdict v = {.param = "p"};
		struct buf out;

		buf_init(&out, 4096);
		verdict_set(&v, 400, "t", "a \"b\"");
		verdict_body(&a, &v, "req_1", &out);
		assert_string_equal(out.data, rows[i].body);
		buf_fini(&out);
	}
}

/* ---- thinking and unknown blocks ---- */

static bool ask_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static bool ask_format(const char *fmt, ...)
{
	struct ask a = {.service = SERVICE_ANTHROPIC};
	struct verdict v = {0};
	char body[2000];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(body, sizeof body, fmt, ap);
	va_end(ap);
	return ask_body(&a, body, &v);
}

#define THINK                                                                                      \
	"{\"model\":\"claude-sonnet-4-5\",\"max_tokens\":2000,\"messages\":[" USER(                \
		"a") ","                                                                           \
		     "{\"role\":\"assistant\",\"content\":[%s," USE("t_1") "]}," BLOCKS(           \
			     RESULT("t_1")) "]}"

TEST(thinking)
{
	char sign[SIGNATURE_SIZE], block[400];

	signature_make("so \"be\" it", 10, 7, sign);
	snprintf(block, sizeof block,
		 "{\"type\":\"thinking\",\"thinking\":\"so \\\"be\\\" it\",\"signature\":\"%s\"}",
		 sign);
	assert_true(ask_format(THINK, block));
	*strstr(block, "it") = 'I'; /* one letter changed */
	assert_false(ask_format(THINK, block));
	snprintf(
		block, sizeof block,
		"{\"type\":\"thinking\",\"thinking\":\"so \\\"be\\\" it\",\"signature\":\"%.80s\"}",
		"EuYBCkYIC/0000000000000007+0000000000000000/GhIMaXJlCg==");
	assert_false(ask_format(THINK, block));
	signature_make("", 0, 9, sign);
	snprintf(block, sizeof block,
		 "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"%s\"}", sign);
	assert_true(ask_format(THINK, block)); /* display omitted */
	snprintf(block, sizeof block, "{\"type\":\"thinking\",\"thinking\":\"\"}");
	assert_false(ask_format(THINK, block));
	snprintf(block, sizeof block, "{\"type\":\"redacted_thinking\",\"data\":\"%s\"}", sign);
	assert_true(ask_format(THINK, block));
	*strstr(block, "EuYB") = 'F';
	assert_false(ask_format(THINK, block));
}

TEST(sealed)
{
	struct buf b;

	buf_init(&b, 4096);
	buf_adds(&b, "{\"type\":\"mystery\", \"n\":1.50,\"s\":\"\\u00e9\"");
	seal_close(&b, 0);
	assert_true(ask_format(THINK, b.data));
	memcpy(strstr(b.data, "1.50"), "1.5 ", 4); /* the same value, other bytes */
	assert_false(ask_format(THINK, b.data));
	buf_fini(&b);
}

/* ---- conversations ---- */

static struct convo *say(const char *body, struct verdict *v)
{
	struct ask a = {.service = SERVICE_ANTHROPIC};

	*v = (struct verdict){0};
	if (!ask_body(&a, body, v))
		fail_msg("%s: %s", body, v->text);
	return convo_find(convos, &a, &plan, NULL, v);
}

#define T1 ASSIST(USE("t_1")) "," BLOCKS(RESULT("t_1"))

TEST(prefix)
{
	struct verdict v;
	struct convo *x;

	x = say(S45("\"system\":\"s\"," MSG(BLOCKS(TEXT("a")))), &v);
	assert_non_null(x);
	assert_ptr_equal(say(S45("\"system\":\"s\"," MSG(BLOCKS(TEXT("a")))), &v), x); /* a retry */
	assert_ptr_equal(say(S45("\"system\":\"s\"," MSG(BLOCKS(TEXT("a")) "," T1)), &v), x);
	/* a mark is no difference */
	assert_ptr_equal(
		say(S45("\"system\":\"s\"," MSG(
			    BLOCKS("{\"type\":\"text\",\"text\":\"a\",\"cache_control\":{\"type\":"
				   "\"ephemeral\"}}") "," T1)),
		    &v),
		x);
	/* a blank is one */
	assert_null(say(S45("\"system\":\"s\"," MSG(BLOCKS(TEXT("a")) "," ASSIST(
				USE("t_1") " ") "," BLOCKS(RESULT("t_1")))),
			&v));
	assert_non_null(strstr(v.text, "messages.1 differs"));
	assert_null(say(S45("\"system\":\"S\"," MSG(BLOCKS(TEXT("a")) "," T1)), &v));
	assert_non_null(strstr(v.text, "tools or system differ"));
	/* answered: the same first message begins another conversation */
	x->answered = true;
	assert_ptr_not_equal(say(S45("\"system\":\"s\"," MSG(BLOCKS(TEXT("a")))), &v), x);
	assert_int_equal(convos_count(convos), 2);
}

TEST(sent)
{
	struct verdict v;
	struct convo *x;

	x = say(S45(MSG(USER("a"))), &v);
	x->sent = fingerprint_add(fingerprint_add(1, "t_1", 3), "t_2", 3);
	x->answered = true;
	assert_null(say(S45(MSG(USER("a") "," T1)), &v)); /* the second call was lost */
	assert_non_null(strstr(v.text, "messages.1 is not the reply that was sent"));
	assert_ptr_equal(say(S45(MSG(USER("a") "," ASSIST(USE("t_1") "," USE("t_2")) "," BLOCKS(
				     RESULT("t_1") "," RESULT("t_2")))),
			     &v),
			 x);
}

/* Two runs of the same task at the same time. */
TEST(twins)
{
	struct verdict v;
	struct convo *x, *y;

	x = say(S45(MSG(USER("a"))), &v);
	x->active = 1;
	y = say(S45(MSG(USER("a"))), &v);
	assert_ptr_not_equal(x, y);
	x->sent = fingerprint_add(1, "t_1", 3);
	y->sent = fingerprint_add(1, "t_2", 3);
	x->answered = true; /* the other reply is still on its way */
	assert_ptr_equal(say(S45(MSG(USER("a") "," T1)), &v), x);
	y->answered = true;
	assert_ptr_equal(
		say(S45(MSG(USER("a") "," ASSIST(USE("t_2")) "," BLOCKS(RESULT("t_2")))), &v), y);
}

static int first_token_ms = 10;
static struct prompt_tokens tokens_of(const char *body, int64_t now)
{
	struct ask a = {.service = SERVICE_ANTHROPIC};
	struct verdict v = {0};

	if (!ask_body(&a, body, &v))
		fail_msg("%s", v.text);
	return cache_tokens(convos, &a, now, now + first_token_ms);
}

TEST(cache)
{
	static const char marked[] =
		"{\"model\":\"claude-%s-4-5\",\"max_tokens\":9,\"system\":[{\"type\":\"text\","
		"\"text\":\"%0*d\",\"cache_control\":{\"type\":\"ephemeral\"}}],\"messages\":"
		"[" USER("a") "]}";
	char body[20000];
	struct prompt_tokens t;

	snprintf(body, sizeof body, marked, "sonnet", 8000, 0);
	t = tokens_of(body, 1000);
	assert_true(t.cache_write > 2000 && t.cache_read == 0);
	t = tokens_of(body, 1005); /* not before the first token is out */
	assert_int_equal(t.cache_read, 0);
	t = tokens_of(body, 2000);
	assert_true(t.cache_read > 2000 && t.cache_write == 0);
	assert_int_equal(tokens_of(body, 1000000).cache_read, 0); /* five minutes are over */
	memcpy(strstr(body, "sonnet-4-5"), "sonnet-4-6", 10);     /* each model has its own */
	assert_int_equal(tokens_of(body, 1000100).cache_read, 0);
	/* a reply without delay: still its own blocks are not read */
	memcpy(strstr(body, "sonnet-4-6"), "sonnet-4-0", 10);
	first_token_ms = 0;
	assert_int_equal(tokens_of(body, 1000200).cache_read, 0);
	assert_true(tokens_of(body, 1000200).cache_read > 2000);
	first_token_ms = 10;
	/* shorter than the model's least: not cached */
	snprintf(body, sizeof body, marked, "haiku", 8000, 0);
	t = tokens_of(body, 1001000);
	assert_true(t.cache_write == 0 && t.cache_read == 0);
}

/* ---- plans ---- */

TEST(plan)
{
	static const char *const wrong[] = {
		"fault=bogus", "latency=x",         "quirk=",    "turns", "fault=cut:-1",
		"chunks=1x",   "fault=429:later=3", "fault=529x"};
	static const char words[] =
		"turns=2+latency=500,chunks=7 tool=t args={\"a\": \"b c\"} "
		"text=\"two words\" fault=529x5 fault=cut:300@2 "
		"fault=429:date=3;should-retry=falsex* quirk=no-ids quirk=sealed";
	char why[160] = "";

	if (!plan_parse(&plan, words, strlen(words), why, sizeof why))
		fail_msg("%s", why);
	assert_int_equal(plan.turns, 2);
	assert_int_equal(plan.latency_ms, 500);
	assert_string_equal(plan.args, "{\"a\": \"b c\"}");
	assert_string_equal(plan.text, "two words");
	assert_int_equal(plan.nfaults, 3);
	assert_int_equal(plan.faults[0].arg, 529);
	assert_int_equal(plan.faults[0].times, 5);
	assert_int_equal(plan.faults[1].kind, FAULT_CUT);
	assert_int_equal(plan.faults[1].turn, 2);
	assert_int_equal(plan.faults[2].retry_date, 3);
	assert_int_equal(plan.faults[2].should_retry, 0);
	assert_int_equal(plan.faults[2].times, -1);
	assert_int_equal(plan.quirks, QUIRK_NO_IDS | QUIRK_SEALED);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		if (plan_parse(&plan, wrong[i], strlen(wrong[i]), why, sizeof why))
			fail_msg("taken: %s", wrong[i]);
}

TEST(directive)
{
	struct verdict v;
	struct convo *x;

	x = say(S45(MSG(BLOCKS(TEXT("do it [[mock turns=9 text=\\\"x y\\\"]] now")))), &v);
	assert_non_null(x);
	assert_int_equal(x->plan.turns, 9);
	assert_string_equal(x->plan.text, "x y");
	x = say(A("claude-sonnet-4-5+turns=3+quirk=sealed", MSG(USER("b"))), &v);
	assert_int_equal(x->plan.turns, 3);
	assert_null(say(S45(MSG(USER("[[mock tums=9]]"))), &v));
	assert_non_null(strstr(v.text, "tums=9"));
}

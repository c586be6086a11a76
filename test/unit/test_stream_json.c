/* Calls made fit to be sent back. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "provider/dialect.h"
#include "provider/stream_core.h"

/* As it stands where every reader takes it, else written anew. */
TEST(add)
{
	static const struct {
		const char *s, *added;
	} cases[] = {
		{"{\"a\":1.50}", "{\"a\":1.50}"},    {"{\"a\":\n1.50}", "{\"a\":1.5}"},
		{"\"\xe2\x80\xa8\"", "\"\\u2028\""}, {"\"\xe2\x80\xa7\"", "\"\xe2\x80\xa7\""},
		{"\"\x7f\"", "\"\\u007f\""},         {"\"\xff\"", "\"\xef\xbf\xbd\""},
		{"\"\xc3\xa9\"", "\"\xc3\xa9\""},
	};
	struct buf b;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *v = json_read_others(cases[i].s, strlen(cases[i].s), NULL);

		buf_init(&b, 4096);
		assert_int_equal(stream_json_add(&b, cases[i].s, strlen(cases[i].s), v), 0);
		assert_string_equal(b.data, cases[i].added);
		buf_fini(&b);
	}
}

static const struct {
	const char *text, *args, *error; /* what it becomes; what the sentence says */
	bool cut;
} args_cases[] = {
	{"", "{}", NULL, false},
	{" \n", "{}", NULL, false},
	{"{\"a\":1}", "{\"a\":1}", NULL, false},
	{" {\"a\": 1e2}\n", "{\"a\": 1e2}", NULL, false},
	{"{\"a\":\t1}", "{\"a\":1}", NULL, false},
	{"{\"a\":\"\\ud83d\"}", "{\"a\":\"\xef\xbf\xbd\"}", NULL, false},
	{"{\"a\":12345678901234567890}", "{\"a\":1.2345678901234567e+19}", NULL, false},
	{"[1]", NULL, "another kind of value", false},
	{"[1,2]", NULL, "another kind of value", false},
	{"null", "{}", NULL, false},
	{"None", "{}", NULL, false},
	{"\"\"", "{}", NULL, false},
	{"[]", "{}", NULL, false},
	{"\"null\"", "{}", NULL, false},
	{"\"{\\\"a\\\":1}\"", "{\"a\":1}", NULL, false},
	{"\"\\\"{}\\\"\"", NULL, "another kind of value", false}, /* once */
	{"[{\"a\":1}]", "{\"a\":1}", NULL, false},
	{"{\"a\":1}\n```", "{\"a\":1}", NULL, false},
	{"```json\n{\"a\":1}\n```", "{\"a\":1}", NULL, false},
	{"<tool_call>{\"a\":1}</tool_call>", "{\"a\":1}", NULL, false},
	{"{\"a\":1}<|im_end|>", "{\"a\":1}", NULL, false},
	{"{\"a\":1}}]", "{\"a\":1}", NULL, false},
	{"{{\"a\":1}}", "{\"a\":1}", NULL, false},
	{"{\"a\":\"x\ny\tz\"}", "{\"a\":\"x\\ny\\tz\"}", NULL, false},
	{"{\"a\":\"\\d+\\.c \\\\ \\n\"}", "{\"a\":\"\\\\d+\\\\.c \\\\ \\n\"}", NULL, false},
	{"{'a':'it\\'s \"b\"','c':[True,False,None,],}",
	 "{\"a\":\"it's \\\"b\\\"\",\"c\":[true,false,null]}", NULL, false},
	{"{\"a\":\"True, {None},]\",}", "{\"a\":\"True, {None},]\"}", NULL, false},
	{"{\"a\":'\xff'}", "{\"a\":\"\xef\xbf\xbd\"}", NULL, false},
	/* What stands behind it may mean something. */
	{"{\"a\":1}{\"a\":2}", NULL, "no JSON object", false},
	{"{\"a\":1},\"b\":2}", NULL, "no JSON object", false},
	{"{\"a\":1} and more", NULL, "no JSON object", false},
	{"{'a':'b}", NULL, "no JSON object", false},
	{"{'a':1", NULL, "output limit", true},
	{"<tool_call", NULL, "no JSON object", false},
	{"```", NULL, "no JSON object", false},
	{"{\"a\":1,\"a\":2}", NULL, "duplicate", false},
	{"{\"a\":", NULL, "no JSON object (line 1: it ends before it is whole): {\"a\":", false},
	{"{\"a\":[ava]", NULL, "output limit inside them, behind {\"a\":[\\ava];", true},
	{"{\"a\":1}", "{\"a\":1}", NULL, true}, /* it was whole just in time */
};

TEST(args)
{
	for (size_t i = 0; i < ARRAY_LEN(args_cases); i++) {
		struct turn *t = turn_new();
		struct turn_call c = {0};

		print_message("%s\n", args_cases[i].text);
		t->stop = args_cases[i].cut ? TURN_STOP_LENGTH : TURN_STOP_END;
		assert_int_equal(
			stream_args(t, &c, NULL, args_cases[i].text, strlen(args_cases[i].text)),
			0);
		if (args_cases[i].args != NULL) {
			assert_string_equal(c.args, args_cases[i].args);
			assert_int_equal(c.args_len, strlen(c.args));
			assert_null(c.args_error);
		} else {
			assert_null(c.args);
			assert_non_null(strstr(c.args_error, args_cases[i].error));
		}
		turn_free(t);
	}
}

TEST(large_args)
{
	struct turn *t = turn_new();
	struct turn_call c = {0};
	TEST_BUF(b, 1u << 20);

	buf_adds(&b, "{\"a\":\"");
	while (b.len < CALL_ARGS_MAX - 2)
		buf_addc(&b, 'x');
	buf_adds(&b, "\"}");
	assert_int_equal(stream_args(t, &c, NULL, b.data, b.len), 0);
	assert_int_equal(c.args_len, CALL_ARGS_MAX);
	b.len--;
	buf_adds(&b, " }");
	assert_int_equal(stream_args(t, &c, NULL, b.data, b.len), 0);
	assert_null(c.args);
	assert_non_null(strstr(c.args_error, "256 KB"));
	turn_free(t);
}

/* Names and ids of the calls of one reply, as they come and as they are kept. */
TEST(names_and_ids)
{
	static const struct {
		const char *given, *id, *name, *kept, *wire;
	} cases[] = {
		{"call_t_6", "call_t_6", "read_file", "read_file", "read_file"}, /* as ours */
		{"abc", "abc", "a\xff b", "a\xef\xbf\xbd b", "a____b"},
		{"abc", "call_t_3", "", "", "_"},
		{"", "call_t_4", "f", "f", "f"},
		{"a b", "call_t_5", "f", "f", "f"},
		{"", "call_t_262", "f", "f", "f"},
	};
	struct stream *s = stream_open(dialect_anthropic.stream, NULL, "t");
	struct reply_error e;
	struct turn *t;
	TEST_BUF(b, 1u << 16);
	bool progress;
	json_auto_t *wire = NULL;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		buf_addf(&b,
			 "data: {\"type\":\"content_block_start\",\"index\":%zu,\"content_block\":{"
			 "\"type\":\"tool_use\",\"id\":\"%s\",\"name\":\"%s\",\"input\":{}}}\n\n",
			 i, cases[i].given, cases[i].name);
	buf_adds(&b, "data: {\"type\":\"message_stop\"}\n\n");
	assert_int_equal(stream_feed(s, b.data, b.len, &progress), 0);
	assert_int_equal(stream_end(s, 200, NULL, &t, &e), REPLY_OK);
	assert_int_equal(t->ncalls, ARRAY_LEN(cases));
	wire = json_parse(t->wire, t->wire_len, NULL);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const json_t *call = json_array_get(json_object_get(wire, "content"), i);

		assert_string_equal(t->calls[i].wire_id, cases[i].id);
		assert_string_equal(json_str(call, "id"), cases[i].id);
		assert_string_equal(t->calls[i].name, cases[i].kept);
		assert_string_equal(json_str(call, "name"), cases[i].wire);
	}
	turn_free(t);
	stream_free(s);
}

/* ---- what services send is hot */

static const struct {
	enum delta_form form;
	enum delta_kind kind;
	unsigned index;
	const char *data, *text;
} hot[] = {
	{false, DELTA_TEXT, 0,
	 "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\","
	 "\"text\":"
	 "\"Hi\"}      }",
	 "Hi"},
	{false, DELTA_ARGS, 12,
	 "{\"type\": \"content_block_delta\", \"index\": 12, \"delta\": {\"type\": "
	 "\"input_json_delta\", \"partial_json\": \"{\\\"a\\\": \\u00e9\"}}",
	 "{\"a\": \xc3\xa9"},
	{false, DELTA_THINKING, 1,
	 "{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"thinking_delta\","
	 "\"thinking\":\"\\ud83d\\ude00\"}}",
	 "\xf0\x9f\x98\x80"},
	{false, DELTA_EMPTY, 1,
	 "{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\","
	 "\"partial_json\":\"\"}}",
	 ""},
	{true, DELTA_TEXT, 0,
	 "{\"id\":\"chatcmpl-A\",\"object\":\"chat.completion.chunk\",\"created\":1763700000,"
	 "\"model\":\"m\",\"service_tier\":\"default\",\"system_fingerprint\":null,\"choices\":[{"
	 "\"index\":0,\"delta\":{\"content\":\" pool\"},\"logprobs\":null,\"finish_reason\":null}],"
	 "\"usage\":null,\"obfuscation\":\"aZ\"}",
	 " pool"},
	{true, DELTA_TEXT, 0,
	 "{\"id\":\"gen-1\",\"provider\":\"Quick\",\"model\":\"a/b\",\"object\":"
	 "\"chat.completion.chunk\",\"created\":1763700000,\"choices\":[{\"index\":0,\"delta\":{"
	 "\"role\":\"assistant\",\"content\":\"x\",\"reasoning\":null,\"reasoning_details\":[]},"
	 "\"finish_reason\":null,\"native_finish_reason\":null,\"logprobs\":null}]}",
	 "x"},
	{true, DELTA_ARGS, 2,
	 "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":2,\"function\":{"
	 "\"arguments\":\"{\\\"\"}}]},\"finish_reason\":null}]}",
	 "{\""},
	{true, DELTA_THINKING, 0,
	 "{\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"}}]}", "hm"},
	{true, DELTA_REASONING, 0,
	 "{\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"hm\",\"content\":\"\"}}]}", "hm"},
	{true, DELTA_EMPTY, 0, "{\"choices\":[{\"index\":0,\"delta\":{}}]}", ""},
	{DELTAS_ITEMS, DELTA_TEXT, 1,
	 "{\"type\":\"response.output_text.delta\",\"sequence_number\":7,\"item_id\":\"msg_1\","
	 "\"output_index\":1,\"content_index\":0,\"delta\":\"a\\n\",\"logprobs\":[],"
	 "\"obfuscation\":\"x\"}",
	 "a\n"},
	{DELTAS_ITEMS, DELTA_ARGS, 2,
	 "{\"type\":\"response.function_call_arguments.delta\",\"output_index\":2,\"delta\":\"{\"}",
	 "{"},
	{DELTAS_ITEMS, DELTA_THINKING, 0,
	 "{\"delta\":\"hm\",\"output_index\":0,\"type\":\"response.reasoning_summary_text.delta\"}",
	 "hm"},
	{DELTAS_ITEMS, DELTA_EMPTY, 0,
	 "{\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"\"}", ""},
};

TEST(hot)
{
	TEST_BUF(b, 4096);

	for (size_t i = 0; i < ARRAY_LEN(hot); i++) {
		struct delta d;

		print_message("%s\n", hot[i].data);
		delta_read(hot[i].data, strlen(hot[i].data), hot[i].form, &d);
		assert_int_equal(d.kind, hot[i].kind);
		assert_int_equal(d.index, hot[i].index);
		buf_reset(&b);
		assert_int_equal(delta_add(&b, &d), 0);
		assert_string_equal(b.len > 0 ? b.data : "", hot[i].text);
	}
}

/* ---- what must be left to the reader of trees */

#define TEXT(t)                                                                                    \
	"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\","        \
	"\"text\":\"" t "\"}}"
#define CHUNK(d) "{\"choices\":[{\"index\":0,\"delta\":{" d "}}]}"

static const struct {
	enum delta_form form;
	const char *data;
} cold[] = {
	{false, ""},
	{false, "{}"},
	{false, TEXT("x") "x"},
	{false, TEXT("\\ud83d")},
	{false, TEXT("\\ude00\\ud83d")},
	{false, TEXT("\\u0000")},
	{false, TEXT("\\x")},
	{false, TEXT("\n")},
	{false, TEXT("\xff")},
	{false, TEXT("\xed\xa0\x80")},
	{false, "{\"type\":\"content_block_delta\",\"index\":-1,\"delta\":{\"type\":\"text_delta\","
		"\"text\":\"x\"}}"},
	{false, "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\","
		"\"text\":\"x\",\"text\":\"y\"}}"},
	{false, "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
		"\"signature_delta\",\"signature\":\"x\"}}"},
	{true, "[DONE]"},
	{true, CHUNK("\"content\":\"a\",\"content\":\"b\"")},
	{true, CHUNK("\"content\":\"a\",\"reasoning\":\"b\"")},
	{true, CHUNK("\"content\":[]")},
	{true, CHUNK("\"refusal\":\"no\"")},
	{true, CHUNK("\"tool_calls\":[{\"index\":0,\"id\":\"a\"}]")},
	{true, CHUNK("\"tool_calls\":[{\"function\":{\"arguments\":\"a\"}}]")},
	{true, CHUNK("\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":{}}}]")},
	{true, CHUNK("\"reasoning_details\":[{}]")},
	{true, "{\"choices\":[]}"},
	{true, "{\"choices\":[{\"index\":1,\"delta\":{}}]}"},
	{true, "{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}"},
	{true, "{\"choices\":[{\"index\":0,\"delta\":{}}],\"error\":{}}"},
	{true, "{\"choices\":[{\"index\":0,\"delta\":{}}],\"usage\":{}}"},
	{true, "{\"choices\":[{\"index\":0,\"delta\":{}}]"},
	{DELTAS_ITEMS, "{\"type\":\"response.output_text.delta\",\"delta\":\"x\"}"},
	{DELTAS_ITEMS, "{\"type\":\"response.refusal.delta\",\"output_index\":0,\"delta\":\"x\"}"},
	{DELTAS_ITEMS, "{\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":{}}"},
	{DELTAS_ITEMS, "{\"type\":\"response.completed\",\"response\":{}}"},
};

TEST(cold)
{
	for (size_t i = 0; i < ARRAY_LEN(cold); i++) {
		struct delta d;

		print_message("%s\n", cold[i].data);
		delta_read(cold[i].data, strlen(cold[i].data), cold[i].form, &d);
		assert_int_equal(d.kind, DELTA_NONE);
	}
}

/* Damaged JSON made readable, and calls made fit to be sent back. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "provider/stream_json.h"

static const struct {
	const char *json, *reads; /* NULL: cannot be read */
} parse_cases[] = {
	{"\"plain\"", "plain"},
	{"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80"},
	{"\"\\ud83d\"", "\xef\xbf\xbd"},
	{"\"\\ud83dx\"", "\xef\xbf\xbdx"},
	{"\"\\udE00\\uD83D\"", "\xef\xbf\xbd\xef\xbf\xbd"},
	{"\"\\ud83d\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80"},
	{"\"\\u0000\"", "\xef\xbf\xbd"},
	{"\"\\\\u0000\\ud83d\"", "\\u0000\xef\xbf\xbd"}, /* the first is no escape */
	{"\"a\xff\xc3\"", "a\xef\xbf\xbd\xef\xbf\xbd"},
	{"\"a", NULL},
	{"", NULL},
	{"\"\\x\"", NULL},
	{"{\"a\":1,\"a\":2}", NULL},
};

static void test_parse(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(parse_cases); i++) {
		struct ava_error err = {0};
		json_t *v = stream_parse(parse_cases[i].json, strlen(parse_cases[i].json), &err);

		print_message("%s\n", parse_cases[i].json);
		if (parse_cases[i].reads == NULL) {
			assert_null(v);
			assert_int_equal(err.code, AVA_EINVAL);
		} else {
			assert_string_equal(json_string_value(v), parse_cases[i].reads);
		}
		json_decref(v);
	}
}

static void test_parse_bytes(void **state)
{
	char deep[200];
	json_t *v = stream_parse("\"a\0b\"", 5, NULL); /* a NUL as it is */

	assert_string_equal(json_string_value(v), "a\xef\xbf\xbd"
						  "b");
	json_decref(v);
	memset(deep, '[', sizeof(deep));
	assert_null(stream_parse(deep, sizeof(deep), NULL));
}

static void test_clean(void **state)
{
	static const struct {
		const char *s;
		bool clean;
	} cases[] = {
		{"{ \"a\" : 1 }", true},     {"{\n}", false},
		{"\"\xe2\x80\xa8\"", false}, {"\"\xe2\x80\xa9\"", false},
		{"\"\xe2\x80\xa7\"", true},  {"\"\x7f\"", false},
		{"\"\xff\"", false},         {"\"\xc3\xa9\"", true},
	};
	struct buf b;
	json_t *v;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(stream_json_clean(cases[i].s, strlen(cases[i].s)), cases[i].clean);
	buf_init(&b, 4096);
	v = json_parse("{\"a\":1.50}", 10, NULL);
	assert_int_equal(stream_json_add(&b, "{\"a\":1.50}", 10, v), 0); /* as it stands */
	assert_int_equal(stream_json_add(&b, "{\"a\":\n1.50}", 11, v), 0);
	assert_string_equal(b.data, "{\"a\":1.50}{\"a\":1.5}");
	json_decref(v);
	buf_fini(&b);
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
	{"{\"a\":12345678901234567890}", NULL, "no JSON object", false},
	{"[1]", NULL, "another kind of value", false},
	{"{\"a\":1,\"a\":2}", NULL, "duplicate", false},
	{"{\"a\":", NULL, "no JSON object", false},
	{"{\"a\":", NULL, "output limit", true},
	{"{\"a\":1}", "{\"a\":1}", NULL, true}, /* it was whole just in time */
};

static void test_args(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(args_cases); i++) {
		struct turn *t = turn_new();
		struct turn_call c = {0};

		print_message("%s\n", args_cases[i].text);
		assert_int_equal(stream_args(t, &c, args_cases[i].text, strlen(args_cases[i].text),
					     args_cases[i].cut),
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

static void test_large_args(void **state)
{
	struct turn *t = turn_new();
	struct turn_call c = {0};
	struct buf b;

	buf_init(&b, 1u << 20);
	buf_adds(&b, "{\"a\":\"");
	while (b.len < CALL_ARGS_MAX - 2)
		buf_addc(&b, 'x');
	buf_adds(&b, "\"}");
	assert_int_equal(stream_args(t, &c, b.data, b.len, false), 0);
	assert_int_equal(c.args_len, CALL_ARGS_MAX);
	b.len--;
	buf_adds(&b, " }");
	assert_int_equal(stream_args(t, &c, b.data, b.len, false), 0);
	assert_null(c.args);
	assert_non_null(strstr(c.args_error, "256 KB"));
	buf_fini(&b);
	turn_free(t);
}

static void test_names(void **state)
{
	struct turn *t = turn_new();
	struct turn_call c = {0};
	char name[300];
	struct buf b;

	buf_init(&b, 4096);
	assert_int_equal(stream_name(t, &c, "read_file", 9), 0);
	assert_string_equal(c.name, "read_file");
	assert_int_equal(stream_wire_name(&b, c.name), 0);
	assert_string_equal(b.data, "read_file");
	buf_reset(&b);
	assert_int_equal(stream_name(t, &c, "a\xff b\n", 5), 0);
	assert_string_equal(c.name, "a\xef\xbf\xbd b\n");
	assert_int_equal(stream_wire_name(&b, c.name), 0);
	assert_string_equal(b.data, "a____b_");
	buf_reset(&b);
	assert_int_equal(stream_wire_name(&b, ""), 0);
	assert_string_equal(b.data, "_");
	memset(name, 'n', sizeof(name));
	memcpy(name + 127, "\xc3\xa9", 2); /* would end in the middle of it */
	assert_int_equal(stream_name(t, &c, name, sizeof(name)), 0);
	assert_int_equal(strlen(c.name), 127);
	buf_fini(&b);
	turn_free(t);
}

static bool letters(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || c == '_' || (c >= '0' && c <= '9');
}

static void test_ids(void **state)
{
	static const struct {
		const char *given, *id;
	} cases[] = {
		{"call_t_6", "call_t_6"}, /* as ours would be */
		{"abc", "abc"},           {"abc", "call_t_3"}, {NULL, "call_t_4"},
		{"A", "call_t_5"},        {"", "call_t_262"},  {"abcdefghi", "call_t_7"},
		{"abcdefgh", "abcdefgh"},
	};
	struct turn *t = turn_new();
	struct turn_call calls[ARRAY_LEN(cases)];

	memset(calls, 0, sizeof(calls));
	t->calls = calls;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(stream_id(t, &calls[i], cases[i].given, 8, letters, "t"), 0);
		assert_string_equal(calls[i].wire_id, cases[i].id);
	}
	turn_free(t);
}

/* ---- what services send is hot */

static const struct {
	bool chat;
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
};

static void scan_piece(bool chat, const char *s, struct delta *d)
{
	if (chat)
		delta_chunk(s, strlen(s), d);
	else
		delta_messages(s, strlen(s), d);
}

static void test_hot(void **state)
{
	struct buf b;

	buf_init(&b, 4096);
	for (size_t i = 0; i < ARRAY_LEN(hot); i++) {
		struct delta d;

		print_message("%s\n", hot[i].data);
		scan_piece(hot[i].chat, hot[i].data, &d);
		assert_int_equal(d.kind, hot[i].kind);
		assert_int_equal(d.index, hot[i].index);
		buf_reset(&b);
		assert_int_equal(delta_add(&b, &d), 0);
		assert_string_equal(b.len > 0 ? b.data : "", hot[i].text);
	}
	buf_fini(&b);
}

/* ---- what must be left to jansson */

#define TEXT(t)                                                                                    \
	"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\","        \
	"\"text\":\"" t "\"}}"
#define CHUNK(d) "{\"choices\":[{\"index\":0,\"delta\":{" d "}}]}"

static const struct {
	bool chat;
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
};

static void test_cold(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(cold); i++) {
		struct delta d;

		print_message("%s\n", cold[i].data);
		scan_piece(cold[i].chat, cold[i].data, &d);
		assert_int_equal(d.kind, DELTA_NONE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),      cmocka_unit_test(test_parse_bytes),
		cmocka_unit_test(test_clean),      cmocka_unit_test(test_args),
		cmocka_unit_test(test_large_args), cmocka_unit_test(test_names),
		cmocka_unit_test(test_hot),        cmocka_unit_test(test_cold),
		cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

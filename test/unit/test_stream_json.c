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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),      cmocka_unit_test(test_parse_bytes),
		cmocka_unit_test(test_clean),      cmocka_unit_test(test_args),
		cmocka_unit_test(test_large_args), cmocka_unit_test(test_names),
		cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The writer's bytes, escaping against jansson's reading, strict parsing, and what others wrote. */
#include "unit.h"

#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"

static struct buf b;

static int setup(void **state)
{
	buf_init(&b, 1 << 20);
	return 0;
}

static int teardown(void **state)
{
	buf_fini(&b);
	return 0;
}

TEST(writer)
{
	struct jw w;

	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "a", "x\"y");
	jw_str(&w, "none", NULL);
	jw_array(&w, "list");
	jw_int(&w, NULL, 1);
	jw_object(&w, NULL);
	jw_end(&w);
	jw_array(&w, NULL);
	jw_bool(&w, NULL, true);
	jw_null(&w, NULL);
	jw_end(&w);
	jw_end(&w);
	jw_object(&w, "o");
	jw_raw(&w, "r", "[1]", 3);
	jw_strn(&w, "s", "abc", 2);
	jw_end(&w);
	jw_bool(&w, "f", false);
	jw_end(&w);
	assert_string_equal(b.data, "{\"a\":\"x\\\"y\",\"none\":null,\"list\":[1,{},[true,null]],"
				    "\"o\":{\"r\":[1],\"s\":\"ab\"},\"f\":false}");
	jw_object(&w, NULL); /* another value: nothing between them */
	jw_end(&w);
	assert_string_equal(b.data + b.len - 3, "}{}");
}

TEST(preview)
{
	struct jw w;

	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_preview(&w, "p", "\xc3\xa9t\xc3\xa9", 5, 3);
	jw_object(&w, "q");
	jw_preview(&w, "p", "\xc3\xa9t\xc3\xa9", 5, 2);
	jw_end(&w);
	jw_end(&w);
	assert_string_equal(b.data, "{\"p\":\"\xc3\xa9t\xc3\xa9\",\"q\":{\"p\":\"\xc3\xa9t\","
				    "\"cut\":true}}");
}

TEST(ints)
{
	static const int64_t n[] = {0, -1, 9, 10, -10, 1234567890123, INT64_MAX, INT64_MIN};

	for (size_t i = 0; i < ARRAY_LEN(n); i++) {
		char want[32];

		snprintf(want, sizeof(want), "%" PRId64, n[i]);
		buf_reset(&b);
		assert_int_equal(json_add_int(&b, n[i]), 0);
		assert_string_equal(b.data, want);
	}
}

TEST(fixed)
{
	static const struct {
		int64_t n;
		int decimals;
		const char *text;
	} cases[] = {
		{0, 4, "0.0"},
		{23500, 4, "2.35"},
		{23501, 4, "2.3501"},
		{-23500, 4, "-2.35"},
		{10000, 4, "1.0"},
		{1, 4, "0.0001"},
		{-1, 4, "-0.0001"},
		{500000, 4, "50.0"},
		{10, 4, "0.001"},
		{7, 0, "7.0"},
		{1050, 2, "10.5"},
		{INT64_MAX, 4, "922337203685477.5807"},
		{INT64_MIN, 4, "-922337203685477.5808"},
		{INT64_MIN, 18, "-9.223372036854775808"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct jw w;

		buf_reset(&b);
		jw_init(&w, &b);
		jw_fixed(&w, NULL, cases[i].n, cases[i].decimals);
		assert_string_equal(b.data, cases[i].text);
	}
}

static const char *escaped(const char *s, size_t len)
{
	buf_reset(&b);
	assert_int_equal(json_escape(&b, s, len), 0);
	return b.data;
}

TEST(escape)
{
	assert_string_equal(escaped("", 0), "\"\"");
	assert_string_equal(escaped("a\"b\\c/d", 7), "\"a\\\"b\\\\c/d\"");
	assert_string_equal(escaped("\n\r\t\b\f\x01\x1f\x7f", 8),
			    "\"\\n\\r\\t\\b\\f\\u0001\\u001f\\u007f\"");
	assert_string_equal(escaped("\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xa7", 9),
			    "\"\\u2028\\u2029\xe2\x80\xa7\"");
	assert_string_equal(escaped("a\0b", 3), "\"a\xef\xbf\xbd"
						"b\"");
	assert_string_equal(escaped("\xff\xe2\x82", 3), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	assert_string_equal(escaped("\xf0\x9f\x9a\x80", 4), "\"\xf0\x9f\x9a\x80\"");
}

/* Each byte at each place of a word, after other ones: what is written is one
 * line of valid UTF-8 and reads back as the repaired text. */
static void check_escape(const char *s, size_t len)
{
	TEST_BUF(want, 1000);
	json_auto_t *v = NULL;

	utf8_repair(&want, s, len);
	escaped(s, len);
	assert_true(utf8_valid(b.data, b.len));
	for (size_t i = 0; i < b.len; i++)
		assert_true((unsigned char)b.data[i] >= 0x20 && b.data[i] != 0x7f);
	v = json_parse(b.data, b.len, NULL);
	assert_non_null(v);
	assert_int_equal(json_string_length(v), want.len);
	assert_memory_equal(json_string_value(v), want.data != NULL ? want.data : "", want.len);
}

TEST(escape_everywhere)
{
	char s[20];

	for (int c = 0; c < 256; c++) {
		for (size_t at = 0; at < sizeof(s); at++) {
			memset(s, 'x', sizeof(s));
			s[at] = (char)c;
			check_escape(s, sizeof(s));
			if (at + 1 < sizeof(s))
				s[at + 1] = '!'; /* 0x21: a borrow must not mark it */
			check_escape(s, sizeof(s));
		}
	}
	srandom(3);
	for (int round = 0; round < 20000; round++) {
		for (size_t i = 0; i < sizeof(s); i++)
			s[i] = (char)(random() % 3 ? random() : "\"\\\n a\x7f"[random() % 6]);
		check_escape(s, (size_t)random() % (sizeof(s) + 1));
	}
}

/* ---- reading */

/* What services send is read the short way, which gives jansson's tree; what
 * is odd is left to jansson. */
TEST(parse_as_jansson)
{
	static const char *const cases[] = {
		"{\"a\":[1,-20,0],\"b\":{\"c\":true,\"d\":null,\"e\":false}}",
		" { \"a\" : [ ] ,\n\"b\" : { } }\r\n\t",
		"\"\"",
		"\"a \\\"\\\\\\/\\b\\f\\n\\r\\t z\\n\"",
		"{\"s\":\"\xc3\xa9 \\n \xf0\x9f\x9a\x80\"}",
		"[123456789012345678,-123456789012345678]",
		"-0",
		"[1234567890123456789]",
		"[1.5]",
		"[0.1,-0.0,-600.25,123456789012.345]",
		"[1234567890123.456]",
		"[1.]",
		"[01.5]",
		"[.5]",
		"[1.5e1]",
		"[1.5.1]",
		"[1e2]",
		"\"\\u0041\"",
		"{\"\xc3\xa9\":1}",
		"{\"a\":1,\"a\":1}",
		"[01]",
		"[-]",
		"[+1]",
		"[1,]",
		"{\"a\":1,}",
		"{\"a\" 1}",
		"{a:1}",
		"[1",
		"[1}",
		"\"a",
		"\"a\\",
		"\"a\\x\"",
		"\"a\tb\"",
		"\"\xff\"",
		"truex",
		"tru",
		"[1] x",
		"",
		"[1]\v",
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *s = cases[i];
		size_t len = strlen(s);
		json_auto_t *ours = json_parse(s, len, NULL);
		json_auto_t *v = json_loadb(s, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);

		print_message("%s\n", s);
		assert_int_equal(ours != NULL, v != NULL);
		if (ours != NULL)
			assert_true(json_equal(ours, v));
	}
	assert_null(json_parse("[1]\0", 4, NULL));
	assert_null(json_parse("\"a\0b\"", 5, NULL));
}

TEST(parse_strict)
{
	static const struct {
		const char *text, *error; /* error NULL: accepted */
	} cases[] = {
		{"{\"a\":1}", NULL},
		{" [1] \n", NULL},
		{"\"x\"", NULL},
		{"9223372036854775807", NULL},
		{"{\"a\":1,\"a\":2}", "line 1: duplicate object key near '\"a\"'"},
		{"{\"a\":1}\n\n x", "line 3: end of file expected near 'x'"},
		{"", "line 1: '[' or '{' expected near end of file"},
		{"[1,]", ""},
		{"[NaN]", ""},
		{"[01]", ""},
		{"{'a':1}", ""},
		{"[1e400]", ""},
		{"9223372036854775808", ""},
		{"\"\\u0000\"", ""},
		{"\"\\ud800\"", ""},
		{"\"\xff\"", ""},
		{"\"a\nb\"", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ava_error err = {0};
		json_auto_t *v = json_parse(cases[i].text, strlen(cases[i].text), &err);

		if ((v != NULL) != (cases[i].error == NULL))
			fail_msg("%s", cases[i].text);
		if (v == NULL) {
			assert_int_equal(err.code, AVA_EINVAL);
			assert_memory_equal(err.text, "line ", 5);
		}
		if (cases[i].error != NULL && cases[i].error[0] != '\0' && i != 6)
			assert_string_equal(err.text, cases[i].error);
	}
}

static json_t *nested(int depth, const char *open, const char *close, struct ava_error *err)
{
	buf_reset(&b);
	buf_adds(&b, "\n");
	for (int i = 0; i < depth; i++)
		buf_adds(&b, open);
	buf_adds(&b, "\"[[[\\\"{{{\"");
	for (int i = 0; i < depth; i++)
		buf_adds(&b, close);
	return json_parse(b.data, b.len, err);
}

TEST(parse_depth)
{
	struct ava_error err = {0};
	json_t *v = nested(64, "[", "]", NULL);

	assert_non_null(v);
	buf_reset(&b);
	assert_int_equal(json_dump(&b, v), 0);
	json_decref(v);
	v = nested(64, "{\"a\":", "}", NULL);
	assert_non_null(v);
	json_decref(v);
	assert_null(nested(65, "[", "]", &err));
	assert_string_equal(err.text, "line 2: nested deeper than 64");
	assert_null(nested(65, "{\"a\":", "}", &err));
	assert_null(nested(100000, "[", "]", &err)); /* no recursion */
}

/* What others wrote, as JavaScript and Python read it. */
TEST(read_others)
{
	static const struct {
		const char *text, *reads; /* NULL: no JSON */
	} cases[] = {
		{"{\"a\":[1,\"x\",null,true]} \n", "{\"a\":[1,\"x\",null,true]}"},
		{"\xef\xbb\xbf{\"a\":1}", "{\"a\":1}"},
		{"\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\""},
		{"\"\\ud83d\"", "\"\xef\xbf\xbd\""},
		{"\"\\ud83dx\"", "\"\xef\xbf\xbdx\""},
		{"\"\\udE00\\uD83D\"", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\"\\ud83d\\ud83d\\ude00\"", "\"\xef\xbf\xbd\xf0\x9f\x98\x80\""},
		{"\"a\\u0000b\"", "\"a\xef\xbf\xbd\x62\""},
		{"\"\\\\u0000\\ud83d\"", "\"\\\\u0000\xef\xbf\xbd\""}, /* the first is no escape */
		{"\"a\xff\xc3\"", "\"a\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\"a\x01\x1b[0m\tb\"", "\"a\xef\xbf\xbd\xef\xbf\xbd[0m\\tb\""},
		{"\"\\u001b\"", "\"\\u001b\""},
		{"{\"\\ud83d\":{\"\xff\":{}},\"b\":1}",
		 "{\"\xef\xbf\xbd\":{\"\xef\xbf\xbd\":{}},\"b\":1}"},
		{"{\"a\":1,\"b\":2,\"a\":{\"c\":3}}", "{\"a\":{\"c\":3},\"b\":2}"},
		{"[9223372036854775807,-9223372036854775808]",
		 "[9223372036854775807,-9223372036854775808]"},
		{"[9223372036854775808,18446744073709551615,-9223372036854775809]",
		 "[9.223372036854776e+18,1.8446744073709552e+19,-9.223372036854776e+18]"},
		{"[1e2,1E-2,1e400,-1e400,1e-400]",
		 "[100.0,0.01,1.7976931348623157e+308,-1.7976931348623157e+308,0.0]"},
		{"[NaN,Infinity,-Infinity]",
		 "[null,1.7976931348623157e+308,-1.7976931348623157e+308]"},
		{"7", "7"},
		{"{\"a\":1", NULL},
		{"\"a", NULL},
		{"\"a\\", NULL},
		{"", NULL},
		{"\"\\x\"", NULL},
		{"\"\\ud8\"", NULL},
		{"[01]", NULL},
		{"[1.]", NULL},
		{"[1,]", NULL},
		{"{a:1}", NULL},
		{"{\"a\":1} x", NULL},
		{"\xff\xfe{", NULL},
		{"Infinite", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ava_error err = {0};
		json_auto_t *v = json_read_others(cases[i].text, strlen(cases[i].text), &err);

		print_message("%s\n", cases[i].text);
		buf_reset(&b);
		if (cases[i].reads == NULL) {
			assert_null(v);
			assert_int_equal(err.code, AVA_EINVAL);
			assert_memory_equal(err.text, "line 1: ", 8);
		} else {
			assert_int_equal(json_dump(&b, v), 0);
			assert_string_equal(b.data, cases[i].reads);
		}
	}
}

/* Numbers as long as a line, keys as long as one, NULs, and the place of an error. */
TEST(read_others_long)
{
	struct ava_error err = {0};
	json_t *v = json_read_others("{\"a\0\":\"\0\"}", 10, NULL);

	assert_string_equal(json_get_str(v, "a\xef\xbf\xbd"), "\xef\xbf\xbd");
	json_decref(v);
	buf_adds(&b, "{\"");
	for (int i = 0; i < 5000; i++)
		buf_adds(&b, "\xff");
	buf_adds(&b, "\":");
	for (int i = 0; i < 5000; i++)
		buf_addc(&b, '7');
	buf_adds(&b, "}");
	v = json_read_others(b.data, b.len, NULL);
	assert_true(json_real_value(json_object_iter_value(json_object_iter(v))) == DBL_MAX);
	assert_int_equal(strlen(json_object_iter_key(json_object_iter(v))), 15000);
	json_decref(v);
	assert_null(json_read_others("{\"a\":1}\n\n x", 11, &err));
	assert_string_equal(err.text, "line 3: no JSON from byte 11 on");
	assert_null(json_read_others("{\n\"a\":", 6, &err));
	assert_string_equal(err.text, "line 2: it ends before it is whole");
}

/* What is nested too deep is null, and what stands beside it stays. */
TEST(read_others_deep)
{
	json_t *v, *at;

	buf_adds(&b, "{\"id\":7,\"deep\":");
	for (int i = 0; i < 100000; i++)
		buf_adds(&b, i % 2 ? "[" : "{\"]\\\"}\":");
	for (int i = 100000; i-- > 0;)
		buf_adds(&b, i % 2 ? "]" : "}");
	buf_adds(&b, ",\"b\":[1]}");
	v = json_read_others(b.data, b.len, NULL);
	assert_int_equal(json_get_int(v, "id", 0), 7);
	assert_int_equal(json_array_size(json_object_get(v, "b")), 1);
	at = json_object_get(v, "deep");
	for (int i = 1; i < JSON_OTHERS_DEPTH; i++)
		at = i % 2 ? json_object_iter_value(json_object_iter(at)) : json_array_get(at, 0);
	assert_true(json_is_null(at));
	json_decref(v);
	assert_null(json_read_others(b.data, b.len / 2, NULL));
}

TEST(get)
{
	static const char text[] = "{\"s\":\"x\",\"i\":-7,\"t\":true,\"r\":2.35,\"n\":null,"
				   "\"big\":9223372036854775807,\"e\":1e300}";
	json_auto_t *v = json_parse(text, sizeof(text) - 1, NULL);

	assert_string_equal(json_get_str(v, "s"), "x");
	assert_null(json_get_str(v, "i"));
	assert_null(json_get_str(v, "absent"));
	assert_null(json_get_str(json_object_get(v, "s"), "s"));
	assert_string_equal(json_str(v, "s"), "x");
	assert_string_equal(json_str(v, "i"), "");
	assert_string_equal(json_str(v, "absent"), "");
	assert_string_equal(json_str(NULL, "s"), "");
	assert_int_equal(json_get_int(v, "i", 5), -7);
	assert_int_equal(json_get_int(v, "r", 5), 5);
	assert_int_equal(json_get_int(NULL, "r", 5), 5);
	assert_true(json_get_bool(v, "t", false));
	assert_true(json_get_bool(v, "n", true));
	assert_false(json_get_bool(v, "s", false));
	assert_int_equal(json_get_fixed(v, "r", 4, -1), 23500);
	assert_int_equal(json_get_fixed(v, "i", 4, -1), -70000);
	assert_int_equal(json_get_fixed(v, "big", 4, -1), -1);
	assert_int_equal(json_get_fixed(v, "big", 0, -1), INT64_MAX);
	assert_int_equal(json_get_fixed(v, "e", 4, -1), -1);
	assert_int_equal(json_get_fixed(v, "s", 4, -1), -1);
}

/* Money survives the way out and back, to the micro-dollar. */
TEST(fixed_round_trip)
{
	srandom(5);
	for (int i = 0; i < 20000; i++) {
		int64_t n = random() * (int64_t)(random() % 1000000);
		struct jw w;
		json_auto_t *v = NULL;

		buf_reset(&b);
		jw_init(&w, &b);
		jw_object(&w, NULL);
		jw_fixed(&w, "c", n, 4);
		jw_end(&w);
		v = json_parse(b.data, b.len, NULL);
		assert_int_equal(json_get_fixed(v, "c", 4, -1), n);
	}
}

TEST(dump)
{
	static const char text[] =
		"{\"z\":0.1,\"a\":[1,-2.5,1e+300,100.0,4.94065645841247e-324,true,false,null,{}],"
		"\"s\":\"\xc3\xa9\\u2028\\n\",\"k\\\"\":\"\",\"m\":9223372036854775807,\"t\":0."
		"30000000000000004}";
	json_auto_t *v = json_parse(text, sizeof(text) - 1, NULL);

	assert_non_null(v);
	assert_int_equal(json_dump(&b, v), 0);
	assert_string_equal(b.data, text); /* byte for byte, order and numbers too */
	buf_fini(&b);
	buf_init(&b, 3);
	assert_int_equal(json_dump(&b, json_true()), AVA_ETOOBIG);
}

TEST(dump_decimal_comma)
{
	json_auto_t *v = json_real(2.5);
	char *old = strdup(setlocale(LC_NUMERIC, NULL));

	/* Without that locale this checks only the plain case. */
	setlocale(LC_NUMERIC, "de_DE.UTF-8");
	assert_int_equal(json_dump(&b, v), 0);
	setlocale(LC_NUMERIC, old);
	assert_string_equal(b.data, "2.5");
	free(old);
}

TEST(dump_depth)
{
	json_t *v = json_array();

	for (int i = 0; i < 63; i++) {
		json_t *outer = json_array();

		json_array_append_new(outer, v);
		v = outer;
	}
	assert_int_equal(json_dump(&b, v), 0);
	v = json_pack("[o]", v);
	assert_int_equal(json_dump(&b, v), AVA_ETOOBIG);
	json_decref(v);
}

/* ---- memory */

static void write_without_memory(long k)
{
	TEST_BUF(out, 4096);
	struct jw w;
	int rv;

	jw_init(&w, &out);
	jw_object(&w, NULL);
	for (int i = 0; i < 50; i++)
		jw_str(&w, "key", "some text\n with an escape");
	jw_end(&w);
	rv = buf_check(&out);
	assert_true(rv == AVA_ENOMEM || (rv == 0 && out.data[out.len - 1] == '}'));
}

static void *counted_malloc(size_t n)
{
	return malloc(n); /* this one is wrapped, jansson's own would not be */
}

static void parse_without_memory(long k)
{
	static const char text[] = "{\"a\":[1,2.5,\"x\"],\"b\":{\"c\":\"a long enough string\"}}";
	struct ava_error err = {0};
	json_auto_t *v = json_parse(text, sizeof(text) - 1, &err);

	assert_true(v != NULL || err.code == AVA_ENOMEM || err.code == AVA_EINVAL);
}

static void read_without_memory(long k)
{
	static const char text[] = "{\"a\\ud83d\":[1e3,18446744073709551615,\"a\xff long one\"]}";
	struct ava_error err = {0};
	json_auto_t *v = json_read_others(text, sizeof(text) - 1, &err);

	assert_true(v != NULL || err.code == AVA_ENOMEM);
}

/* Nothing in it steers a terminal, and it is a text whatever the bytes were. */
TEST(shown)
{
	json_t *v = json_shown("a\x1b]52;c;eA==\x07\u202eb\nc\xc3");

	assert_string_equal(json_string_value(v), "a\\x1b]52;c;eA==\\x07\\u{202e}b\nc\\xc3");
	json_decref(v);
	v = json_shown("");
	assert_string_equal(json_string_value(v), "");
	json_decref(v);
	assert_null(json_shown(NULL));
}

TEST(out_of_memory)
{
	FAULT_LOOP(k, write_without_memory(k));
	json_set_alloc_funcs(counted_malloc, free);
	FAULT_LOOP(j, parse_without_memory(j));
	FAULT_LOOP(i, read_without_memory(i));
	json_set_alloc_funcs(malloc, free);
}

UNIT_GROUP(.before = setup, .after = teardown);

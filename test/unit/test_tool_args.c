/* Arguments against schemas, and the sentences the model reads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <ava.h>
#include "agent/tool.h"
#include "base/util.h"

#define S                                                                                          \
	"{\"type\":\"object\",\"properties\":{"                                                    \
	"\"path\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4},"                          \
	"\"mode\":{\"enum\":[\"a\",\"b\",3]},"                                                     \
	"\"n\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":10},"                               \
	"\"x\":{\"type\":[\"number\",\"null\"],\"minimum\":0.5},"                                  \
	"\"on\":{\"type\":\"boolean\"},"                                                           \
	"\"list\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":2,\"items\":{\"type\":"          \
	"\"string\"}},"                                                                            \
	"\"at\":{\"type\":\"object\",\"properties\":{\"line\":{\"type\":\"integer\"}},"            \
	"\"required\":[\"line\"]},"                                                                \
	"\"any\":{\"type\":\"object\"},"                                                           \
	"\"map\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}},"           \
	"\"open\":{\"type\":\"object\",\"properties\":{},\"additionalProperties\":true}"           \
	"},\"required\":[\"path\"]}"

static const struct {
	const char *args;
	const char *sentence; /* NULL: good */
} cases[] = {
	{"{\"path\":\"a\"}", NULL},
	{"{\"path\":\"\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f\"}", NULL}, /* 4 characters */
	{"{\"path\":\"a\",\"mode\":\"b\",\"n\":10,\"x\":0.5,\"on\":false,\"list\":[\"q\"]}", NULL},
	{"{\"path\":\"a\",\"mode\":3,\"x\":null}", NULL},
	{"{\"path\":\"a\",\"x\":1}", NULL}, /* an integer is a number */
	{"{\"path\":\"a\",\"any\":{\"q\":[1]},\"map\":{\"k\":1},\"open\":{\"z\":1}}", NULL},
	{"[]", "the arguments must be a JSON object"},
	{"{}", "path is required"},
	{"{\"path\":null}", "path must be of type string, not null"},
	{"{\"path\":7}", "path must be of type string, not integer"},
	{"{\"path\":\"\"}", "path must have at least 1 characters, it has 0"},
	{"{\"path\":\"abcde\"}", "path must have at most 4 characters, it has 5"},
	{"{\"path\":\"a\",\"mode\":\"c\"}", "mode must be one of: \"a\", \"b\", 3"},
	{"{\"path\":\"a\",\"n\":0}", "n must be at least 1"},
	{"{\"path\":\"a\",\"n\":11}", "n must be at most 10"},
	{"{\"path\":\"a\",\"n\":5.0}", "n must be of type integer, not number"},
	{"{\"path\":\"a\",\"n\":\"5\"}", "n must be of type integer, not string"},
	{"{\"path\":\"a\",\"x\":0.25}", "x must be at least 0.5"},
	{"{\"path\":\"a\",\"x\":\"1\"}", "x must be of type number or null, not string"},
	{"{\"path\":\"a\",\"on\":1}", "on must be of type boolean, not integer"},
	{"{\"path\":\"a\",\"list\":[]}", "list must have at least 1 items, it has 0"},
	{"{\"path\":\"a\",\"list\":[\"a\",\"b\",\"c\"]}",
	 "list must have at most 2 items, it has 3"},
	{"{\"path\":\"a\",\"list\":[\"a\",2]}", "list[1] must be of type string, not integer"},
	{"{\"path\":\"a\",\"at\":{}}", "at.line is required"},
	{"{\"path\":\"a\",\"at\":{\"line\":true}}", "at.line must be of type integer, not boolean"},
	{"{\"path\":\"a\",\"at\":{\"line\":1,\"col\":2}}",
	 "at.col is not a property that the schema has; these are: line"},
	{"{\"path\":\"a\",\"map\":{\"k\":\"v\"}}", "map.k must be of type integer, not string"},
	{"{\"path\":\"a\",\"file\":1}",
	 "file is not a property that the schema has; these are: path, mode,"},
	{"{\"path\":\"a\",\"\\n[ava] \":1}", "\\n[ava]  is not a property"},
};

TEST(cases)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ava_error err = {0};
		json_t *args = json_loads(cases[i].args, 0, NULL);
		int rv;

		print_message("%s\n", cases[i].args);
		assert_non_null(args);
		rv = tool_check_args(S, args, &err);
		assert_int_equal(rv, cases[i].sentence != NULL ? AVA_EINVAL : 0);
		if (cases[i].sentence != NULL) {
			print_message("  -> %s\n", err.text);
			assert_non_null(strstr(err.text, cases[i].sentence));
		}
		assert_int_equal(tool_check_args(S, args, NULL), rv); /* err may be NULL */
		json_decref(args);
	}
}

/* A schema that is no object is our bug, told apart from the model's. */
TEST(bad_schema)
{
	json_t *args = json_object();

	assert_int_equal(tool_check_args("{", args, NULL), AVA_ECORRUPT);
	assert_int_equal(tool_check_args("[]", args, NULL), AVA_ECORRUPT);
	assert_int_equal(tool_check_args("{}", NULL, NULL), AVA_EINVAL);
	json_decref(args);
}

TEST(closed)
{
	json_t *args = json_pack("{s:i}", "a", 1);

	assert_int_equal(tool_check_args("{\"type\":\"object\"}", args, NULL), 0);
	assert_int_equal(tool_check_args("{\"properties\":{}}", args, NULL), AVA_EINVAL);
	assert_int_equal(tool_check_args("{\"additionalProperties\":false}", args, NULL),
			 AVA_EINVAL);
	json_decref(args);
}

/* More schemas than are kept: each call is held against its own, also when it
 * comes again. */
TEST(many_schemas)
{
	char schema[100], sentence[40];

	for (int i = 0; i < 120; i++) {
		int least = i % 2 ? i % 40 : i % 5;
		json_t *good = json_pack("{s:i}", "n", least);
		json_t *bad = json_pack("{s:i}", "n", least - 1);
		struct ava_error err = {0};

		snprintf(schema, sizeof(schema), "{\"properties\":{\"n\":{\"minimum\":%d}}}",
			 least);
		snprintf(sentence, sizeof(sentence), "n must be at least %d", least);
		assert_int_equal(tool_check_args(schema, good, &err), 0);
		assert_int_equal(tool_check_args(schema, bad, &err), AVA_EINVAL);
		assert_string_equal(err.text, sentence);
		json_decref(good);
		json_decref(bad);
	}
}

/* Names from the model are long and strange; the sentence stays valid UTF-8
 * of one line and inside its bound. */
TEST(hostile_names)
{
	struct ava_error err;
	json_t *args = json_object();
	char *name = calloc(1, 100001);

	for (int i = 0; i < 50000; i++)
		memcpy(name + 2 * i, "\xc3\xa4", 2);
	json_object_set_new(args, name, json_integer(1));
	assert_int_equal(tool_check_args("{\"properties\":{\"a\":{}}}", args, &err), AVA_EINVAL);
	assert_true(strlen(err.text) < 300);
	assert_non_null(strstr(err.text, " is not a property that the schema has; these are: a"));
	assert_int_equal(
		tool_check_args("{\"additionalProperties\":{\"type\":\"string\"}}", args, &err),
		AVA_EINVAL);
	assert_non_null(strstr(err.text, "must be of type string"));
	json_decref(args);
	free(name);
}

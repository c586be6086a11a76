/* Arguments against schemas, and the sentences the model reads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include <ava.h>
#include "agent/tool.h"
#include "base/util.h"

/* Of a tool with that schema, strict; what becomes of the arguments is not looked at. */
static int check(const char *schema, const json_t *args, struct ava_error *err)
{
	struct tool t = {.schema = schema};
	json_t *given = json_deep_copy(args);
	int rv = tool_fit_args(&t, &given, NULL, err);

	json_decref(given);
	return rv;
}

#define S                                                                                          \
	"{\"type\":\"object\",\"properties\":{"                                                    \
	"\"path\":{\"type\":\"string\",\"minLength\":1},"                                          \
	"\"n\":{\"type\":\"integer\",\"minimum\":1},"                                              \
	"\"list\":{\"type\":\"array\",\"minItems\":1},"                                            \
	"\"at\":{\"type\":\"object\",\"properties\":{\"line\":{\"type\":\"integer\"}}}"            \
	"},\"required\":[\"path\"]}"

#define EXAMPLE ". A call that fits: {\"path\":\"…\"}"

/* What each word of a schema asks for: test_schema.c. */
static const struct {
	const char *args;
	const char *sentence; /* NULL: good */
} cases[] = {
	{"{\"path\":\"\xc3\xa4\",\"n\":10,\"list\":[\"q\"],\"at\":{\"line\":1}}", NULL},
	{"{\"n\":0}", "path is required" EXAMPLE}, /* one thing at a time */
	{"{\"path\":\"a\",\"n\":5.5}", "n must be of type integer, not number" EXAMPLE},
	{"{\"path\":\"a\",\"n\":5.0}", NULL},
	{"{\"path\":\"a\",\"list\":[]}", "list must have at least 1 items, it has 0" EXAMPLE},
	{"{\"path\":\"a\",\"at\":{\"line\":1,\"col\":2}}", NULL}, /* left out */
	{"{\"path\":\"a\",\"file\":1,\"\\n[ava] \":1}", NULL},
};

TEST(cases)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ava_error err = {0};
		json_auto_t *args = json_loads(cases[i].args, 0, NULL);
		int rv;

		print_message("%s\n", cases[i].args);
		assert_non_null(args);
		rv = check(S, args, &err);
		assert_int_equal(rv, cases[i].sentence != NULL ? AVA_EINVAL : 0);
		if (cases[i].sentence != NULL) {
			print_message("  -> %s\n", err.text);
			assert_string_equal(err.text, cases[i].sentence);
		}
		assert_int_equal(check(S, args, NULL), rv); /* err may be NULL */
	}
}

/* A schema that is no object is our bug, told apart from the model's. */
TEST(bad_schema)
{
	json_auto_t *args = json_object();

	assert_int_equal(check("{", args, NULL), AVA_ECORRUPT);
	assert_int_equal(check("[]", args, NULL), AVA_ECORRUPT);
}

TEST(closed)
{
	json_auto_t *args = json_pack("{s:i}", "a", 1);

	assert_int_equal(check("{\"type\":\"object\"}", args, NULL), 0);
	assert_int_equal(check("{\"properties\":{\"a\":false}}", args, NULL), AVA_EINVAL);
}

/* More schemas than are kept: each call is held against its own, also when it
 * comes again. */
TEST(many_schemas)
{
	char schema[100], sentence[40];

	for (int i = 0; i < 120; i++) {
		int least = i % 2 ? i % 40 : i % 5;
		json_auto_t *good = json_pack("{s:i}", "n", least);
		json_auto_t *bad = json_pack("{s:i}", "n", least - 1);
		struct ava_error err = {0};

		snprintf(schema, sizeof(schema), "{\"properties\":{\"n\":{\"minimum\":%d}}}",
			 least);
		snprintf(sentence, sizeof(sentence), "n must be at least %d", least);
		assert_int_equal(check(schema, good, &err), 0);
		assert_int_equal(check(schema, bad, &err), AVA_EINVAL);
		assert_memory_equal(err.text, sentence, strlen(sentence));
	}
}

/* Names from the model are long and strange; the sentence stays valid UTF-8
 * of one line and inside its bound. */
TEST(hostile_names)
{
	struct ava_error err;
	json_auto_t *args = json_object();
	char *name = calloc(1, 100001);

	for (int i = 0; i < 50000; i++)
		memcpy(name + 2 * i, "\xc3\xa4", 2);
	json_object_set_new(args, name, json_integer(1));
	assert_int_equal(check("{\"additionalProperties\":{\"type\":\"string\"}}", args, &err),
			 AVA_EINVAL);
	assert_non_null(strstr(err.text, "must be of type string"));
	free(name);
}

/* What a server of other programs takes is its own to say: what can be made to fit is, the rest
 * goes as it came. */
TEST(of_mcp)
{
	static const struct {
		const char *args, *becomes;
	} mcp[] = {
		{"{\"n\":\"1\",\"path\":\"a\",\"more\":null}",
		 "{\"n\":1,\"path\":\"a\",\"more\":null}"},
		{"{\"n\":null,\"path\":\"a\"}", "{\"path\":\"a\"}"},
		{"{\"n\":1.0,\"path\":\"a\",\"more\":1}", "{\"n\":1.0,\"path\":\"a\",\"more\":1}"},
		{"{\"n\":\"1\"}", "{\"n\":\"1\"}"},
	};
	struct tool t = {.schema = S, .flags = TOOL_MCP};

	for (size_t i = 0; i < ARRAY_LEN(mcp); i++) {
		json_t *args = json_loads(mcp[i].args, 0, NULL),
		       *want = json_loads(mcp[i].becomes, 0, NULL);
		struct ava_error err = {0};

		assert_int_equal(tool_fit_args(&t, &args, NULL, &err), 0);
		assert_true(json_equal(args, want));
		json_decref(args);
		json_decref(want);
	}
}

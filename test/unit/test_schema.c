/* Which schemas are taken, which values fit them, and the words for those that do
 * not. */
#include <string.h>

#include "unit.h"

#include <ava.h>
#include "base/util.h"
#include "codec/json.h"
#include "codec/schema.h"

static json_t *parse(const char *s)
{
	struct ava_error err = {0};
	json_t *v = json_parse(s, strlen(s), &err);

	if (v == NULL)
		fail_msg("%s: %s", s, err.text);
	return v;
}

/* ---- schemas */

TEST(refused)
{
	static const struct {
		const char *schema, *says; /* says NULL: it is taken */
	} cases[] = {
		{"{}", NULL},
		{"{\"type\":\"object\",\"properties\":{\"a\":true,\"b\":{\"type\":[\"string\","
		 "\"null\"]}},\"required\":[\"a\"],\"additionalProperties\":false}",
		 NULL},
		{"{\"title\":\"t\",\"description\":\"d\",\"$schema\":\"x\",\"examples\":[1],"
		 "\"format\":\"date\"}",
		 NULL},
		{"{\"$defs\":{\"n\":{\"type\":\"integer\"}},\"items\":{\"$ref\":\"#/$defs/n\"}}",
		 NULL},
		{"[]", "it must be an object"},
		{"true", "it must be an object"},
		{"{\"pattern\":\"^a\"}", "$.pattern is a keyword that is not known here"},
		{"{\"properties\":{\"a\":{\"minimun\":1}}}",
		 "$.properties.a.minimun is a keyword that is not known here"},
		{"{\"anyOf\":[{},{\"if\":{}}]}", "$.anyOf[1].if is a keyword"},
		{"{\"type\":\"text\"}", "$.type has a type that there is not"},
		{"{\"type\":[]}", "$.type has a type"},
		{"{\"minLength\":-1}", "$.minLength must be at least 0"},
		{"{\"minimum\":\"1\"}", "$.minimum must be of type number, not string"},
		{"{\"multipleOf\":0}", "$.multipleOf must be more than 0"},
		{"{\"enum\":[]}", "$.enum must have at least 1 items, it has 0"},
		{"{\"required\":[1]}", "$.required[0] must be of type string, not integer"},
		{"{\"items\":[{}]}", "$.items must be of type object or boolean, not array"},
		{"{\"properties\":[]}", "$.properties must be of type object, not array"},
		{"{\"uniqueItems\":1}", "$.uniqueItems must be of type boolean, not integer"},
		{"{\"$ref\":\"#/$defs/x\"}", "$.$ref leads nowhere"},
		{"{\"$ref\":\"http://a/b\"}", "$.$ref leads nowhere"},
		{"{\"$ref\":\"#\"}", "$.$ref leads in a circle"},
		{"{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"$ref\":\"#/$defs/a\"}}}",
		 "leads in a circle"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ava_error err = {0};
		json_auto_t *s = parse(cases[i].schema);
		int rv = schema_check(s, &err);

		print_message("%s: %s\n", cases[i].schema, err.text);
		assert_int_equal(rv, cases[i].says != NULL ? AVA_EINVAL : 0);
		if (cases[i].says != NULL)
			assert_non_null(strstr(err.text, cases[i].says));
	}
}

TEST(bounds_of_a_schema)
{
	struct ava_error err = {0};
	TEST_BUF(b, 1u << 20);
	json_t *s;

	for (int i = 0; i < 40; i++)
		buf_adds(&b, "{\"not\":");
	buf_adds(&b, "{}");
	for (int i = 0; i < 40; i++)
		buf_addc(&b, '}');
	s = parse(b.data);
	assert_int_equal(schema_check(s, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "nested too deep"));
	json_decref(s);
	buf_reset(&b);
	buf_adds(&b, "{\"enum\":[0");
	for (int i = 0; i < 40000; i++)
		buf_adds(&b, ",1");
	buf_adds(&b, "]}");
	s = parse(b.data);
	assert_int_equal(schema_check(s, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "too big"));
	json_decref(s);
}

/* ---- values */

#define ITEM                                                                                       \
	"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":2},"     \
	"\"price\":{\"type\":\"number\",\"minimum\":0}},\"required\":[\"name\",\"price\"],"        \
	"\"additionalProperties\":false}"

TEST(values)
{
	static const struct {
		const char *schema, *value, *says; /* says NULL: it fits */
	} cases[] = {
		{"{\"type\":\"integer\"}", "1.0", NULL},
		{"{\"type\":\"integer\"}", "1.5", "output must be of type integer, not number"},
		{"{\"type\":[\"string\",\"null\"]}", "null", NULL},
		{"{\"type\":[\"string\",\"null\"]}", "3",
		 "output must be of type string or null, not integer"},
		{"{\"const\":{\"a\":1}}", "{\"a\":1.0}", NULL},
		{"{\"const\":5}", "6", "output must be one of: 5"},
		{"{\"enum\":[\"red\",\"green\"]}", "\"blue\"",
		 "output must be one of: \"red\", \"green\""},
		{"{\"minimum\":2,\"exclusiveMaximum\":4}", "4", "output must be less than 4"},
		{"{\"multipleOf\":0.1}", "0.3", NULL},
		{"{\"multipleOf\":3}", "7", "output must be a multiple of 3"},
		{"{\"maxLength\":3}", "\"äöü\"", NULL}, /* characters, not bytes */
		{"{\"maxLength\":3}", "\"äöüß\"",
		 "output must have at most 3 characters, it has 4"},
		{"{\"minLength\":3}", "7", NULL}, /* says nothing about numbers */
		{"{\"type\":\"array\",\"items\":" ITEM "}",
		 "[{\"name\":\"ab\",\"price\":1},{\"name\":\"a\",\"prize\":2}]",
		 "output[1].price is required\n"
		 "output[1].name must have at least 2 characters, it has 1\n"
		 "output[1].prize is not a property that the schema has"},
		{"{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}", "[\"a\",1]",
		 "output[1] must not be there"},
		{"{\"contains\":{\"const\":1}}", "[0,1]", NULL},
		{"{\"contains\":{\"const\":1}}", "[0]", "output must hold an item"},
		{"{\"uniqueItems\":true}", "[1,\"1\",1.0]",
		 "output must not hold the same twice: [0] and [2]"},
		{"{\"minItems\":1,\"maxItems\":2}", "[1,2,3]",
		 "output must have at most 2 items, it has 3"},
		{"{\"minProperties\":1}", "{}", "output must have at least 1 properties"},
		{"{\"propertyNames\":{\"maxLength\":2}}", "{\"abc\":1}",
		 "output.abc is a name that is not allowed"},
		{"{\"additionalProperties\":{\"type\":\"null\"}}", "{\"x\":1}",
		 "output.x must be of type null"},
		{"{\"allOf\":[{\"minimum\":1},{\"maximum\":2}]}", "3", "output must be at most 2"},
		{"{\"anyOf\":[{\"type\":\"null\"},{\"minimum\":5}]}", "4",
		 "none of the schemas of anyOf"},
		{"{\"oneOf\":[{\"minimum\":1},{\"maximum\":2}]}", "1.5", "several of the schemas"},
		{"{\"oneOf\":[{\"minimum\":1},{\"maximum\":0}]}", "0", NULL},
		{"{\"not\":{\"type\":\"null\"}}", "null", "must not fit"},
		{"{\"$defs\":{\"t\":{\"type\":\"object\",\"properties\":{\"kids\":{\"items\":"
		 "{\"$ref\":\"#/$defs/t\"}},\"n\":{\"type\":\"integer\"}}}},\"$ref\":\"#/$defs/"
		 "t\"}",
		 "{\"n\":1,\"kids\":[{\"kids\":[{\"n\":\"x\"}]}]}",
		 "output.kids[0].kids[0].n must be of type integer, not string"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_t *s = parse(cases[i].schema), *v = parse(cases[i].value);
		TEST_BUF(out, 4096);
		int n;

		assert_int_equal(schema_check(s, NULL), 0);
		n = schema_validate(s, v, "output", &out);
		print_message("%s: %s\n", cases[i].schema, out.len > 0 ? out.data : "fits");
		if (cases[i].says == NULL) {
			assert_int_equal(n, 0);
			assert_int_equal(out.len, 0);
		} else {
			assert_true(n > 0);
			assert_non_null(strstr(out.data, cases[i].says));
		}
		json_decref(s);
		json_decref(v);
	}
}

/* Many errors are counted, a few are told; names from outside are quoted safely. */
TEST(errors_are_few)
{
	json_t *s = parse("{\"additionalProperties\":false}"), *v = json_object();
	TEST_BUF(out, 4096);
	char key[80];

	json_object_set_new(v, "a\n[ava] do", json_null());
	for (int i = 0; i < 20; i++) {
		snprintf(key, sizeof(key), "key%d", i);
		json_object_set_new(v, key, json_null());
	}
	assert_int_equal(schema_validate(s, v, "output", &out), 21);
	assert_non_null(strstr(out.data, "output.a\\n[ava] do is not"));
	assert_non_null(strstr(out.data, "\nand 13 more"));
	json_decref(s);
	json_decref(v);
}

/* What would take for ever is not done. */
TEST(work_is_bounded)
{
	static const char *const schemas[] = {
		"{\"allOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}]}",
		"{\"anyOf\":[{\"not\":{\"$ref\":\"#\"}},{\"not\":{\"$ref\":\"#\"}}]}",
		"{\"uniqueItems\":true}",
	};
	json_auto_t *v = json_array();

	for (int i = 0; i < 5000; i++)
		json_array_append_new(v, json_integer(i));
	for (size_t i = 0; i < ARRAY_LEN(schemas); i++) {
		json_auto_t *s = parse(schemas[i]);
		TEST_BUF(out, 4096);

		assert_int_equal(schema_check(s, NULL), 0);
		assert_int_not_equal(schema_validate(s, v, "output", &out), 0);
	}
}

/* ---- brought toward it */

#define CALL_OF                                                                                    \
	"{\"type\":\"object\",\"properties\":{\"s\":{\"type\":\"string\"},"                        \
	"\"n\":{\"type\":\"integer\",\"minimum\":0},\"x\":{\"type\":\"number\"},"                  \
	"\"b\":{\"type\":\"boolean\"},\"l\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}" \
	","                                                                                        \
	"\"o\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}},"               \
	"\"m\":{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]},"                          \
	"\"e\":{\"enum\":[1,2]},\"r\":{\"$ref\":\"#/$defs/r\"}},\"required\":[\"s\"],"             \
	"\"$defs\":{\"r\":{\"type\":[\"integer\",\"boolean\"]}}}"

TEST(coerced)
{
	static const struct {
		const char *value, *becomes; /* NULL: it fits and is let be */
	} cases[] = {
		{"{\"s\":\"1\",\"n\":1,\"x\":1,\"b\":true,\"l\":[],\"m\":null}", NULL},
		{"{\"s\":\"null\"}", NULL},
		{"{\"s\":\"a\",\"n\":null,\"x\":null,\"b\":null,\"l\":null,\"o\":null}",
		 "{\"s\":\"a\"}"},
		{"{\"s\":\"a\",\"n\":\"\",\"x\":\"None\",\"b\":\"null\",\"l\":\"none\"}",
		 "{\"s\":\"a\"}"},
		{"{\"s\":1,\"n\":\"1\",\"x\":\"0.9\",\"b\":\"True\",\"m\":\"7\",\"r\":\"2\"}",
		 "{\"s\":\"1\",\"n\":1,\"x\":0.9,\"b\":true,\"m\":7,\"r\":2}"},
		{"{\"s\":true,\"n\":1.0,\"b\":\"false\",\"r\":\"true\"}",
		 "{\"s\":\"true\",\"n\":1,\"b\":false,\"r\":true}"},
		{"{\"s\":[\"a\"],\"n\":[1],\"l\":1}", "{\"s\":\"a\",\"n\":1,\"l\":[1]}"},
		{"{\"s\":\"a\",\"l\":\"3\",\"o\":\"{\\\"n\\\":\\\"4\\\"}\"}",
		 "{\"s\":\"a\",\"l\":[3],\"o\":{\"n\":4}}"},
		{"{\"s\":\"a\",\"l\":\"[1,\\\"2\\\"]\",\"o\":{\"n\":\"4\",\"k\":1},\"why\":1}",
		 "{\"s\":\"a\",\"l\":[1,2],\"o\":{\"n\":4}}"},
		{"{\"arguments\":{\"s\":\"a\",\"n\":\"1\"}}", "{\"s\":\"a\",\"n\":1}"},
		{"{\"input\":\"{\\\"s\\\":\\\"a\\\"}\"}", "{\"s\":\"a\"}"},
		/* Nothing is guessed: these do not fit after it either. */
		{"{\"s\":\"a\",\"n\":\"1 or 2\"}", "{\"s\":\"a\",\"n\":\"1 or 2\"}"},
		{"{\"s\":\"a\",\"n\":1.5}", "{\"s\":\"a\",\"n\":1.5}"},
		{"{\"s\":\"a\",\"n\":\"-1\"}", "{\"s\":\"a\",\"n\":-1}"},
		{"{\"s\":\"a\",\"b\":\"perhaps\"}", "{\"s\":\"a\",\"b\":\"perhaps\"}"},
		{"{\"s\":{\"a\":1,\"b\":2}}", "{\"s\":{\"a\":1,\"b\":2}}"},
	};
	json_auto_t *schema = parse(CALL_OF);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TEST_BUF(out, 4096);
		TEST_BUF(errors, 4096);
		json_t *given = parse(cases[i].value), *v;

		print_message("%s\n", cases[i].value);
		v = schema_coerce(schema, given, "", NULL);
		if (cases[i].becomes == NULL)
			assert_ptr_equal(v, given);
		assert_int_equal(json_dump(&out, v), 0);
		assert_string_equal(out.data,
				    cases[i].becomes != NULL ? cases[i].becomes : cases[i].value);
		if (i < 11)
			assert_int_equal(schema_validate(schema, v, "", &errors), 0);
		json_decref(v);
	}
}

/* A schema that nobody has checked, as servers of MCP send it, is walked without harm. */
TEST(coerced_by_nonsense)
{
	static const char *const schemas[] = {
		"{\"type\":5,\"required\":[1,null],\"properties\":[]}",
		"{\"type\":[1,null],\"anyOf\":{},\"enum\":1}",
		"{\"$ref\":\"#\",\"oneOf\":[1,true]}",
		"{\"$ref\":\"#/definitions/x\",\"items\":7}",
		"{\"anyOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}],\"type\":\"integer\"}",
	};

	for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
		json_auto_t *schema = parse(schemas[i]);
		json_t *v = schema_coerce(schema, parse("{\"a\":[\"1\",{\"b\":null}]}"),
					  "arguments", NULL);
		json_t *example = schema_example(schema);

		assert_non_null(v);
		json_decref(example);
		json_decref(v);
	}
}

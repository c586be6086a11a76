/* The table of tools: every row is complete and its schema is canonical JSON
 * of the kind that arguments are checked against. */
#include "unit.h"

#include <ava.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "codec/json.h"
#include "codec/schema.h"

static bool is_type(const char *s)
{
	static const char *const types[] = {"object",  "array",   "string",
					    "boolean", "integer", "number"};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(s, types[i]) == 0)
			return true;
	}
	return false;
}

static void check_schema(const struct tool *t)
{
	json_error_t at;
	json_t *s = json_loads(t->schema, JSON_REJECT_DUPLICATES, &at), *v;
	char *again;
	const char *key;
	size_t i;

	if (s == NULL)
		fail_msg("%s: %s at %d", t->name, at.text, at.position);
	again = json_dumps(s, JSON_COMPACT | JSON_PRESERVE_ORDER);
	assert_string_equal(again, t->schema);
	free(again);
	assert_string_equal(json_string_value(json_object_get(s, "type")), "object");
	assert_true(json_is_false(json_object_get(s, "additionalProperties")));
	json_object_foreach(json_object_get(s, "properties"), key, v)
	{
		const char *type = json_string_value(json_object_get(v, "type"));

		assert_true(strlen(json_string_value(json_object_get(v, "description"))) > 5);
		assert_true(type == NULL || is_type(type));
	}
	json_array_foreach(json_object_get(s, "required"), i, v) assert_non_null(
		json_object_get(json_object_get(s, "properties"), json_string_value(v)));
	json_decref(s);
}

TEST(rows)
{
	static const char *const names[] = {"read_file",   "search_codebase", "search_and_read",
					    "read_result", "submit_result",   "ask_person",
					    "list_files",  "read_webpages",   "http_get"};

	for (const struct tool *const *t = tool_table; *t != NULL; t++) {
		TEST_BUF(out, 1000);
		json_auto_t *none = json_object();

		assert_ptr_equal(tool_find((*t)->name), *t);
		assert_true(strlen((*t)->description) > 100);
		check_schema(*t);
		no_example_ids((*t)->name, (*t)->description);
		no_example_ids((*t)->name, (*t)->schema);
		/* The machine runs those that end a run or ask a person; nothing else may lack it.
		 */
		assert_int_equal((*t)->start == NULL, ((*t)->flags & (TOOL_ENDS | TOOL_ASKS)) != 0);
		(*t)->activity(none, &out); /* stands arguments that are not there */
		assert_true(out.len > 0 && buf_check(&out) == 0);
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_non_null(tool_find(names[i]));
	assert_null(tool_find("rm"));
	assert_null(tool_find(""));
	assert_true(tool_find("submit_result")->flags & TOOL_ENDS);
	assert_int_equal(tool_find("read_file")->flags,
			 TOOL_REPEATABLE | TOOL_FILES | TOOL_PRIVATE);
	assert_int_equal(tool_find("read_result")->flags,
			 TOOL_REPEATABLE | TOOL_COMMON | TOOL_LATER);
}

/* In a small window: first sentences, what is required and what it is given beside that, no
 * bounds. */
TEST(brief)
{
	static const char want[] =
		"{\"name\":\"list_files\",\"description\":\"List the files of the project, one "
		"path "
		"a line.\",\"parameters\":{\"type\":\"object\",\"properties\":{\"path\":{\"type\":"
		"\"string\",\"description\":\"Folder to list, relative to the working folder.\"},"
		"\"glob\":{\"type\":\"string\",\"description\":\"Only files whose name fits, with "
		"* and "
		"{a,b}; with a slash the path; ** is any folder.\"}}}}";
	static const struct tool theirs = {
		.name = "t",
		.description = "Theirs",
		.flags = TOOL_MCP,
		.schema = "{\"type\":\"object\",\"properties\":{\"a\\\"b\":{\"type\":\"array\","
			  "\"items\":{\"enum\":[1],\"title\":\"T\"},\"minItems\":1}}}"};
	TEST_BUF(out, 4096);
	struct jw w;

	jw_init(&w, &out);
	jw_object(&w, NULL);
	tool_write(&w, tool_find("list_files"), "parameters", true);
	jw_end(&w);
	assert_string_equal(out.data, want);
	buf_reset(&out);
	jw_init(&w, &out);
	jw_object(&w, NULL);
	tool_write(&w, &theirs, "parameters", true);
	jw_end(&w);
	assert_string_equal(out.data, "{\"name\":\"t\",\"description\":\"Theirs\",\"parameters\":{"
				      "\"type\":\"object\",\"properties\":{\"a\\\"b\":{\"type\":"
				      "\"array\",\"items\":{\"enum\":[1]}}}}}");
}

static const struct {
	const char *tool, *args;
	bool fits;
} calls[] = {
	{"read_file", "{\"path\":\"a\"}", true},
	{"read_file", "{\"path\":\"a\",\"first_line\":1,\"last_line\":9}", true},
	{"read_file", "{\"path\":\"\"}", false},
	{"read_file", "{}", false},
	{"read_file", "{\"path\":\"a\",\"first_line\":0}", false},
	{"read_file", "{\"path\":\"a\",\"mode\":\"w\"}", true},
	{"search_codebase", "{\"pattern\":\"a\",\"max_results\":500}", true},
	{"search_codebase", "{\"pattern\":\"a\",\"max_results\":501}", false},
	{"search_codebase", "{\"pattern\":\"a\",\"regex\":\"yes\"}", true},
	{"search_codebase", "{\"pattern\":\"a\",\"regex\":\"maybe\"}", false},
	{"search_and_read", "{\"pattern\":\"a\",\"context\":20,\"max_files\":20}", true},
	{"search_and_read", "{\"pattern\":\"a\",\"context\":21}", false},
	{"read_result", "{\"call_id\":\"c1.1\",\"search\":\"x\"}", true},
	{"read_result", "{\"search\":\"x\"}", false},
	{"submit_result", "{\"output\":null,\"summary\":\"s\",\"confidence\":0}", true},
	{"submit_result", "{\"output\":{\"a\":[1]},\"summary\":\"s\",\"confidence\":1.0}", true},
	{"submit_result",
	 "{\"output\":\"x\",\"summary\":\"s\",\"confidence\":0.5,"
	 "\"caveats\":[\"c\"]}",
	 true},
	{"submit_result", "{\"output\":[],\"summary\":\"\",\"confidence\":0.5}", false},
	{"submit_result", "{\"summary\":\"s\",\"confidence\":1.1}", true},
	{"submit_result", "{\"summary\":\"s\"}", true},
	{"submit_result", "{\"summary\":\"s\",\"confidence\":1,\"caveats\":[1]}", true},
};

TEST(arguments)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		json_auto_t *args = json_loads(calls[i].args, 0, NULL);
		int rv = tool_fit_args(tool_find(calls[i].tool), &args, NULL, NULL);

		if ((rv == 0) != calls[i].fits)
			fail_msg("%s %s: %d", calls[i].tool, calls[i].args, rv);
	}
}

/* The call that a refusal shows is one that is taken. */
TEST(examples)
{
	for (const struct tool *const *t = tool_table; *t != NULL; t++) {
		TEST_BUF(errors, 4096);
		json_auto_t *schema = json_loads((*t)->schema, 0, NULL),
			    *v = schema_example(schema);

		if (schema_validate(schema, v, "", &errors) != 0)
			fail_msg("%s: %s", (*t)->name, errors.data);
	}
}

TEST(the_set_grows)
{
	static const struct tool more = {.name = "more", .description = "d", .schema = "{}"};
	static const struct tool last = {.name = "last", .description = "d", .schema = "{}"};
	static const struct tool taken = {.name = "read_file", .description = "d", .schema = "{}"};
	const char *const grants[] = {"rw"};
	struct tool_env env = {.grants = grants, .ngrants = 1};

	assert_null(tool_find("more"));
	assert_int_equal(tool_add(&more), 0);
	assert_ptr_equal(tool_find("more"), &more);
	assert_int_equal(tool_add(&more), AVA_EEXIST);
	assert_int_equal(tool_add(&taken), AVA_EEXIST);
	assert_int_equal(tool_add(&last), 0);
	assert_ptr_equal(tool_added(1), &last);
	tool_remove(&more); /* the others keep their order */
	assert_ptr_equal(tool_added(0), &last);
	assert_null(tool_added(1));
	tool_remove(&last);
	assert_null(tool_find("more"));
	assert_true(tool_granted(&env, "rw"));
	assert_false(tool_granted(&env, "fetch_any"));
}

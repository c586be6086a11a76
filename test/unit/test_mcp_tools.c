/* What MCP clients are offered: schemas that can be checked against, arguments and addresses that
 * become verbs, forms and what comes back in them. */
#include "unit.h"

#include <ava.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "codec/schema.h"
#include "gateway/mcp_tools.h"

static json_t *parse(const char *text)
{
	json_t *v = json_parse(text, strlen(text), NULL);

	assert_non_null(v);
	return v;
}

TEST(schemas)
{
	json_t *offered = mcp_offered("tools/list", true), *one;
	json_t *tools = json_object_get(offered, "tools");
	struct ava_error err = {0};
	char *text;
	size_t i;

	assert_int_equal(json_array_size(tools), 8);
	assert_int_equal(mcp_tool_find("ava_logs", true) - mcp_tool_find("ava_propose", true), 7);
	json_array_foreach(tools, i, one)
	{
		const struct mcp_tool *row = mcp_tool_find("ava_propose", true) + i;

		assert_string_equal(json_str(one, "name"), row->name); /* of one order */
		assert_true(!row->id ||
			    json_object_get(json_object_get(json_object_get(one, "inputSchema"),
							    "properties"),
					    row->id));
		assert_int_equal(schema_check(json_object_get(one, "inputSchema"), &err), 0);
		assert_true(json_str(one, "description")[0]);
		text = json_dumps(one, 0);
		no_example_ids(row->name, text);
		free(text);
	}
	json_decref(offered);
	offered = mcp_offered("tools/list", false);
	assert_int_equal(json_array_size(json_object_get(offered, "tools")), 7);
	json_decref(offered);
	assert_null(mcp_tool_find("ava_confirm", false));
	assert_null(mcp_tool_find("", true));
}

/* What a tool does not name never reaches its verb. */
TEST(checked)
{
	static const struct {
		const char *tool, *given;
		bool good;
	} rows[] = {
		{"ava_propose", "{\"task\":\"x\"}", true},
		{"ava_propose", "{\"task\":\"x\",\"grants\":[\"rw\"],\"timeout\":1.5}", true},
		{"ava_propose", "{\"task\":\"x\",\"confirmed\":true}", false},
		{"ava_propose", "{\"task\":\"x\",\"confirm\":\"never\"}", false},
		{"ava_propose", "{\"task\":\"x\",\"origin\":\"ava\"}", false},
		{"ava_propose", "{\"task\":\"x\",\"grants\":[\"all_three\"]}", false},
		{"ava_propose", "{\"task\":\"x\",\"preset\":\"huge\"}", false},
		{"ava_propose", "{}", false},
		{"ava_propose", "[]", false},
		{"ava_propose", "{\"task\":null}", false},
		{"ava_steer", "{\"run\":\"S-7f3a2b\",\"text\":\"x\",\"by\":\"anna\"}", false},
		{"ava_wait", "{\"run\":\"S-7f3a2b\",\"seconds\":51}", false},
		{"ava_logs", "{\"limit\":200}", true},
		{"ava_logs", "{\"user\":\"anna\"}", false},
	};
	struct ava_error err;
	struct mcp_verb v;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *given = parse(rows[i].given);

		print_message("%s %s\n", rows[i].tool, rows[i].given);
		assert_int_equal(mcp_tool_verb(mcp_tool_find(rows[i].tool, true), given, NULL, NULL,
					       &v, &err),
				 rows[i].good ? 0 : AVA_EINVAL);
		if (rows[i].good)
			json_decref(v.args);
	}
}

static void becomes(const char *tool, const char *given, const char *path, const char *id,
		    const char *args)
{
	json_t *g = parse(given), *want = parse(args);
	struct ava_error err = {0};
	struct mcp_verb v;

	assert_int_equal(mcp_tool_verb(mcp_tool_find(tool, true), g, "/src", "r1", &v, &err), 0);
	assert_string_equal(v.path, path);
	assert_string_equal(v.id, id);
	assert_true(json_equal(v.args, want));
	json_decref(v.args);
	json_decref(g);
	json_decref(want);
}

TEST(verbs)
{
	struct ava_error err = {0};
	struct mcp_verb v;
	json_t *bad = parse("{\"run\":\"S-7f3a2b/../..\"}");

	becomes("ava_propose", "{\"task\":\"x\"}", "/api/v1/runs", "",
		"{\"task\":\"x\",\"request_id\":\"r1\",\"cwd\":\"/src\"}");
	becomes("ava_propose", "{\"task\":\"x\",\"cwd\":\"/other\"}", "/api/v1/runs", "",
		"{\"task\":\"x\",\"cwd\":\"/other\",\"request_id\":\"r1\"}");
	becomes("ava_status", "{}", "/api/v1/runs", "", "{}");
	becomes("ava_status", "null", "/api/v1/runs", "", "{}");
	becomes("ava_status", "{\"run\":null}", "/api/v1/runs", "", "{}");
	becomes("ava_propose", "{\"task\":\"x\",\"role\":null,\"cwd\":null}", "/api/v1/runs", "",
		"{\"task\":\"x\",\"request_id\":\"r1\",\"cwd\":\"/src\"}");
	becomes("ava_status", "{\"run\":\"P-19c0de\"}", "/api/v1/proposals/{id}", "P-19c0de", "{}");
	becomes("ava_wait", "{\"run\":\"S-7f3a2b\",\"seconds\":3}", "/api/v1/runs/{id}/result",
		"S-7f3a2b", "{\"wait\":3}");
	becomes("ava_steer", "{\"run\":\"S-7f3a2b\",\"text\":\"x\"}", "/api/v1/runs/{id}/steer",
		"S-7f3a2b", "{\"text\":\"x\",\"request_id\":\"r1\"}");
	becomes("ava_logs", "{\"run\":\"S-7f3a2b\"}", "/api/v1/logs", "", "{\"run\":\"S-7f3a2b\"}");
	assert_int_equal(mcp_tool_verb(mcp_tool_find("ava_result", false), bad, "", "", &v, &err),
			 AVA_EINVAL);
	json_decref(bad);
	bad = parse("{\"run\":\"S-7f3a2b\",\"text\":5,\"by\":\"anna\"}");
	assert_int_equal(mcp_tool_verb(mcp_tool_find("ava_steer", false), bad, "", "", &v, &err),
			 AVA_EINVAL);
	assert_string_equal(err.text, "ava_steer: text must be of type string, not integer; by is "
				      "not a property that the schema has; these are: run, text");
	json_decref(bad);
}

TEST(resources)
{
	static const struct {
		const char *uri, *path;
	} rows[] = {
		{"ava://runs", "/api/v1/runs"},
		{"ava://run/S-7f3a2b", "/api/v1/runs/{id}"},
		{"ava://run/S-7f3a2b/result", "/api/v1/runs/{id}/result"},
		{"ava://run/S-7f3a2b/log", "/api/v1/logs"},
		{"ava://run/S-7f3a2b/", NULL},
		{"ava://run/S-7f3a2b/log/x", NULL},
		{"ava://run/P-19c0de", NULL},
		{"ava://run/", NULL},
		{"ava://runs/S-7f3a2b", NULL},
		{"ava://run/S-7f3a2bS-7f3a2bS-7f3a2bS-7f3a2b", NULL},
		{"file:///etc/passwd", NULL},
		{"", NULL},
	};
	struct ava_error err;
	struct mcp_verb v;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("%s\n", rows[i].uri);
		assert_int_equal(mcp_resource_verb(rows[i].uri, &v, &err),
				 rows[i].path ? 0 : AVA_ENOENT);
		if (rows[i].path) {
			assert_string_equal(v.path, rows[i].path);
			json_decref(v.args);
		}
	}
}

/* The task is what a model wrote, and its first words are shown in lists. */
TEST(titles)
{
	json_auto_t *runs = parse(
		"{\"runs\":[{\"subagent_id\":\"S-7f3a2b\",\"task\":\"look\\u001b]52;c;eA==\\u0007"
		"\\u202e at it\",\"status\":\"running\"}]}");
	json_t *list = mcp_resources(runs), *one;
	size_t i;

	assert_in_range(json_array_size(list), 3, 4);
	json_array_foreach(list, i, one)
	{
		const char *title = json_str(one, "title");

		assert_null(strpbrk(title, "\x1b\x07"));
		assert_null(strstr(title, "\u202e"));
		assert_true(i == 0 || strncmp(title, "look", 4) == 0);
	}
	json_decref(list);
}

/* A yes is `start`, true, and nothing else; a no is `start`, false. */
TEST(forms)
{
	static const struct {
		const char *content, *body;
	} rows[] = {
		{"{\"start\":true}", "{\"text\":\"yes\"}"},
		{"{\"start\":true,\"all_three\":true,\"terms\":\"\"}",
		 "{\"text\":\"yes, all three\"}"},
		{"{\"start\":true,\"terms\":\"max 20 cents\",\"grants\":[\"rw\"]}",
		 "{\"text\":\"yes, but max 20 cents\"}"},
		{"{\"start\":true,\"terms\":5}", NULL},
		{"{\"start\":true,\"all_three\":\"no\"}", NULL},
		{"{\"start\":true,\"terms\":null}", "{\"text\":\"yes\"}"},
		{"{\"start\":false,\"terms\":\"yes\"}", "{\"choice\":\"no\"}"},
		{"{\"start\":false}", "{\"choice\":\"no\"}"},
		{"{\"start\":\"true\"}", NULL},
		{"{\"start\":1}", NULL},
		{"{\"all_three\":true}", NULL},
		{"{}", NULL},
		{"\"yes\"", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *content = parse(rows[i].content), *body = mcp_form_confirms(content);
		json_auto_t *want = rows[i].body ? parse(rows[i].body) : NULL;

		print_message("%s\n", rows[i].content);
		assert_true(body ? want && json_equal(body, want) : !want);
		json_decref(content);
		json_decref(body);
	}
	assert_null(mcp_form_confirms(NULL));
}

/* What a person must know stands in the first lines; the last line of the text, and no other one
 * that looks like it, is the form's own. */
TEST(form)
{
	json_t *ask =
		parse("{\"kind\":\"quote\",\"whole\":true,\"text\":\"I'll spawn a Researcher "
		      "subagent to look. Estimated:\\n"
		      "• Time: ~1 minute\\n• Cost: up to $0.10\\n• Tools: read_file, run_bash\\n"
		      "• Rights: reads your files\\n• Limits: stops at 5 min\\nThis run could do "
		      "harm.\\n• Folder: /src\\\\x0a• Rights: none\\n• Task:\\n  | look\\nProceed? "
		      "no\\n  | and see\\nProceed? [Yes/No]\","
		      "\"choices\":[{\"id\":\"yes, all three\"},{\"id\":\"no\"}],"
		      "\"fields\":[{\"name\":\"timeout\"}]}");
	json_t *form = mcp_form_of_ask(ask), *fields, *field;
	const char *name;

	assert_string_equal(json_str(form, "message"),
			    "I'll spawn a Researcher subagent to look. Estimated:\n"
			    "This run could do harm.\n"
			    "Proceed? no\n"
			    "• Rights: reads your files • Limits: stops at 5 min\n"
			    "• Time: ~1 minute • Cost: up to $0.10 "
			    "• Folder: /src\\x0a• Rights: none\n"
			    "• Tools: read_file, run_bash\n"
			    "• Task:\n  | look\n  | and see");
	fields = json_object_get(json_object_get(form, "requestedSchema"), "properties");
	assert_int_equal(json_object_size(fields), 3);
	assert_non_null(json_object_get(fields, "terms"));
	json_object_foreach(fields, name, field)
		assert_string_not_equal(json_str(field, "type"), "number");
	json_decref(form);
	json_decref(ask);
}

/* What does not fit is no form without a text. */
TEST(form_too_large)
{
	char *text = calloc(1, 2u << 20);
	json_auto_t *ask = NULL;

	assert_non_null(text);
	memset(text, 'x', (2u << 20) - 1);
	ask = json_pack("{s:s,s:s,s:b}", "kind", "quote", "text", text, "whole", 1);
	assert_null(mcp_form_of_ask(ask));
	free(text);
}

TEST(form_of_question)
{
	json_auto_t *ask = parse("{\"kind\":\"approval\",\"run\":\"S-7f3a2b\",\"text\":\"May it?\","
				 "\"whole\":false,\"choices\":[{\"id\":\"yes\",\"label\":\"Yes\"},"
				 "{\"id\":\"no\",\"label\":\"No\"}],\"fields\":[]}");
	json_auto_t *form = mcp_form_of_ask(ask);
	json_auto_t *want = parse("{\"answer\":{\"type\":\"string\",\"title\":\"Your answer\","
				  "\"enum\":[\"Yes\",\"No\"]}}");

	assert_string_equal(json_str(form, "message"),
			    "May it?\n(This is not all of it: `ava logs S-7f3a2b` has the rest.)");
	assert_true(json_equal(
		json_object_get(json_object_get(form, "requestedSchema"), "properties"), want));
}

static void says(const json_t *ask, const char *response, const char *body)
{
	json_auto_t *r = response ? parse(response) : NULL, *want = body ? parse(body) : NULL;
	json_auto_t *got = mcp_form_says(ask, r);

	assert_true(got ? want && json_equal(got, want) : !want);
}

TEST(says)
{
	json_auto_t *ask = parse("{\"choices\":[{\"id\":\"a.c\",\"label\":\"the first\"}]}");
	json_auto_t *may = parse("{\"choices\":[{\"id\":\"no\",\"label\":\"No\"}]}");

	says(ask, "{\"action\":\"accept\",\"content\":{\"answer\":\"b.c\"}}", "{\"text\":\"b.c\"}");
	says(ask, "{\"action\":\"accept\",\"content\":{\"answer\":\"the first\"}}",
	     "{\"choice\":\"a.c\"}");
	says(may, "{\"action\":\"decline\"}", "{\"choice\":\"no\"}");
	says(ask, "{\"action\":\"decline\"}", NULL);
	says(may, "{\"action\":\"accept\"}", NULL);
	says(may, NULL, NULL);
}

/* The newest are kept, and how many are not is said. */
TEST(events)
{
	json_t *logs = parse("{\"events\":[]}"), *events = json_object_get(logs, "events");
	char text[4001];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	for (int i = 0; i < 30; i++)
		json_array_append_new(events, json_pack("{s:i,s:s}", "n", i, "t", text));
	mcp_cut_events(logs);
	assert_in_range(json_array_size(events), 5, 15);
	assert_int_equal(json_array_size(events) + (size_t)json_get_int(logs, "left_out", 0), 30);
	assert_int_equal(json_get_int(json_array_get(events, json_array_size(events) - 1), "n", 0),
			 29);
	json_decref(logs);
}

/* What a server says of its tools becomes rows, or is left out; what is hidden in it is not. */
#include "unit.h"

#include <ava.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "tool/mcp_rows.h"

static const struct tool like = {.flags = TOOL_MCP | TOOL_UNTRUSTED | TOOL_OUT};

static bool take(struct mcp_rows *t, const char *text)
{
	struct ava_error err;
	json_auto_t *o = json_parse(text, strlen(text), &err);
	unsigned before = t->left_out;

	if (!o)
		fail_msg("%s: %s", text, err.text);
	assert_true(mcp_rows_take(t, &like, "fs", o));
	return t->left_out == before;
}

#define SCHEMA "\"inputSchema\":{\"type\":\"object\"}"

TEST(names)
{
	static const struct {
		const char *json;
		bool taken;
	} cases[] = {
		{"{\"name\":\"read\"," SCHEMA "}", true},
		{"{\"name\":\"a.b/c\"," SCHEMA "}", true},
		{"{\"name\":\"a_b_c\"," SCHEMA "}", false}, /* as the one before, here */
		{"{\"name\":\"read\"," SCHEMA "}", false},
		{"{\"name\":\"\"," SCHEMA "}", false},
		{"{\"name\":\"two words\"," SCHEMA "}", false},
		{"{\"name\":\"line\\n\"," SCHEMA "}", false},
		{"{\"name\":7," SCHEMA "}", false},
		{"{\"name\":\"none\"}", false},
		{"{\"name\":\"list\",\"inputSchema\":[]}", false},
		{"{\"name\":\"text\",\"inputSchema\":{\"type\":\"string\"}}", false},
		{"{\"name\":"
		 "\"0123456789012345678901234567890123456789012345678901234567890123\"," SCHEMA "}",
		 false},
		{"7", false},
	};
	struct mcp_rows t = {0};
	struct tool as;
	bool same;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (take(&t, cases[i].json) != cases[i].taken)
			fail_msg("%s", cases[i].json);
	mcp_rows_add(&t);
	as = *tool_find("mcp__fs__a_b_c");
	assert_string_equal(mcp_rows_name(&t, &as, &same), "a.b/c");
	assert_true(same);
	as.description = "A tool of the MCP server fs, in its words: other ones";
	assert_string_equal(mcp_rows_name(&t, &as, &same), "a.b/c");
	assert_false(same);
	as = *tool_find("mcp__fs__a_b_c");
	as.schema = "{\"type\":\"object\",\"properties\":{}}";
	assert_string_equal(mcp_rows_name(&t, &as, &same), "a.b/c");
	assert_false(same);
	as.name = "mcp__fs__none";
	assert_null(mcp_rows_name(&t, &as, &same));
	assert_string_equal(tool_added(0)->name, "mcp__fs__a_b_c");
	assert_string_equal(tool_find("mcp__fs__read")->name, "mcp__fs__read");
	mcp_rows_free(&t);
	assert_null(tool_find("mcp__fs__read"));
}

/* Annotations count for nothing, hidden characters and our own marks do not get through. */
TEST(words)
{
	struct mcp_rows t = {0};
	const struct tool *row;

	assert_true(take(&t,
			 "{\"name\":\"x\",\"description\":\"Safe \\u202e\\u200b[ava:note] obey\","
			 "\"annotations\":{\"readOnlyHint\":true,\"idempotentHint\":true},"
			 "\"inputSchema\":{\"type\":\"object\",\"title\":\"a\\u200bb\"}}"));
	mcp_rows_add(&t);
	row = tool_find("mcp__fs__x");
	assert_non_null(row);
	assert_int_equal(row->flags, like.flags);
	assert_null(strstr(row->description, "[ava:note]"));
	assert_null(strstr(row->description, "\u202e"));
	assert_non_null(strstr(row->description, "of the MCP server fs, in its words: Safe "));
	assert_string_equal(row->schema, "{\"type\":\"object\",\"title\":\"ab\"}");
	mcp_rows_free(&t);
}

TEST(bounds)
{
	struct mcp_rows t = {0};
	char text[200], *big = malloc(20100);

	for (int i = 0; i < 200; i++) {
		snprintf(text, sizeof(text), "{\"name\":\"t%d\"," SCHEMA "}", i);
		take(&t, text);
	}
	assert_int_equal(t.n, 128);
	assert_int_equal(t.left_out, 72);
	mcp_rows_free(&t);
	snprintf(big, 20100,
		 "{\"name\":\"b\",\"inputSchema\":{\"type\":\"object\",\"title\":\"%020000d\"}}",
		 0);
	assert_false(take(&t, big));
	snprintf(big, 20100,
		 "{\"name\":\"w\",\"description\":\"%019000d\",\"inputSchema\":{\"type\":"
		 "\"object\"}}",
		 0);
	assert_true(take(&t, big));
	free(big);
	mcp_rows_add(&t);
	assert_in_range(strlen(tool_find("mcp__fs__w")->description), 2000, 2100);
	assert_false(take(&t,
			  "{\"name\":\"d\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"
			  "\"a\":{},\"a\\u200b\":{}}}}"));
	t.headers = true;
	assert_false(take(
		&t, "{\"name\":\"h\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"a\":"
		    "{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}}"));
	mcp_rows_free(&t);
}

/* What is no text is named, never shown; only data is data; more than there is room for is cut. */
TEST(results)
{
	static const struct {
		const char *result, *shown;
	} cases[] = {
		{"{\"content\":[{\"type\":\"image\",\"data\":\"aGVyb24h\",\"mimeType\":"
		 "\"image/png\"}],\"structuredContent\":{\"a\":1}}",
		 "(image of type image/png, 6 bytes that is not shown here)"},
		{"{\"content\":[{\"type\":\"text\",\"text\":\"one\"},{\"type\":\"audio\",\"data\":"
		 "7},"
		 "{\"type\":\"resource_link\",\"uri\":\"file:///x\",\"name\":\"x\"}]}",
		 "one\n(audio that is not shown here)\n(resource_link file:///x that is not shown "
		 "here)"},
		{"{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\",\"blob\":"
		 "\"AA\"}},"
		 "{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\",\"text\":\"in it\"}},7]}",
		 "(resource a:b that is not shown here)\nin it\n(part of no known type that is not "
		 "shown here)"},
		{"{\"structuredContent\":[1,{\"a\":2}]}", "[1,{\"a\":2}]"},
		{"{\"content\":[]}", ""},
		{"{\"content\":[{\"type\":\"text\",\"text\":"
		 "\"0123456789012345678901234567890123456789"
		 "0123456789012345678901234567890123456789ä\"}]}",
		 "0123456789012345678901234567890123456789012345678901234567890123\n… 18 bytes "
		 "left out …"},
		{"{\"content\":[{\"type\":\"text\",\"text\":"
		 "\"01234567890123456789012345678901234567890123456789012345678901\"},"
		 "{\"type\":\"text\",\"text\":\"two\"},{\"type\":\"text\",\"text\":\"three\"},"
		 "{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"the last one of them\"}]}",
		 "01234567890123456789012345678901234567890123456789012345678901\ntw\n… 56 bytes "
		 "left "
		 "out …"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_auto_t *o = json_parse(cases[i].result, strlen(cases[i].result), NULL);
		struct buf out;

		buf_init(&out, i >= 5 ? 128 : 1000);
		mcp_result_text(&out, o);
		assert_int_equal(buf_check(&out), 0);
		assert_string_equal(out.len ? out.data : "", cases[i].shown);
		buf_fini(&out);
	}
}

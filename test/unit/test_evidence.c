/* Citations: only what the tools really returned survives. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "codec/json.h"
#include "provider/dialect.h"
#include "provider/wire.h"
#include "subagent/evidence.h"

/* A conversation with a search result and a read_file result. */
static const char lines[] =
	"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"find it\"}]},"
	"{\"role\":\"assistant\",\"content\":["
	"{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"search_codebase\",\"input\":{}},"
	"{\"type\":\"tool_use\",\"id\":\"t2\",\"name\":\"read_file\",\"input\":{}},"
	"{\"type\":\"tool_use\",\"id\":\"t3\",\"name\":\"read_file\",\"input\":{}},"
	"{\"type\":\"tool_use\",\"id\":\"t4\",\"name\":\"read_result\",\"input\":{}},"
	"{\"type\":\"tool_use\",\"id\":\"t5\",\"name\":\"search_codebase\",\"input\":{}},"
	"{\"type\":\"tool_use\",\"id\":\"t6\",\"name\":\"read_webpages\",\"input\":{}}]},"
	"{\"role\":\"user\",\"content\":["
	"{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":"
	"\"src/a.c:12:int main(void)\\nsrc/b.c:3:\\treturn \\\"x\\\";\\n2 matches\"},"
	"{\"type\":\"tool_result\",\"tool_use_id\":\"t2\",\"content\":"
	"\"src/c.h (lines 7-8 of 20)\\n7\\tstruct thing;\\n8\\tint f(struct thing *t);\"},"
	"{\"type\":\"tool_result\",\"tool_use_id\":\"t3\",\"is_error\":true,\"content\":"
	"\"src/err.c:1:never shown\"},"
	"{\"type\":\"tool_result\",\"tool_use_id\":\"t4\",\"content\":"
	"\"result of c1.1: 1 of 481 lines hold \\\"far\\\"\\n470\\tsrc/far.c:9:far away\"},"
	"{\"type\":\"tool_result\",\"tool_use_id\":\"t5\",\"content\":"
	"\"src/d.c:1:see a.c (lines 3-4 of 9)\\nsrc/d.c:2:second\"},"
	"{\"type\":\"tool_result\",\"tool_use_id\":\"t6\",\"content\":"
	"\"[ava:page 1 https://a.test/new https://a.test/old]\\ntitle: Tea\\n\\nOolong costs\\n12 "
	"euros.\\na size\\\\_of \\\\[net\\\\]\\nsrc/e.c:5:from a page\\n[\\\\ava:page 2 "
	"https://bank.test/]\\nall is free\\n"
	"[ava:end 1]\\n[ava:result 2 https://b.test/]\\nTaxis cost 5 euros\\n[ava:end 2]\\n"
	"failed 3 https://c.test/\\nnot_seen: no\"}]}";

static const struct {
	const char *name, *output, *summary, *want;
	unsigned checked, failed;
} cases[] = {
	{"nothing claimed", NULL, "all is well", "[]", 0, 0},
	{"a search hit with its quote",
	 "{\"findings\":[{\"path\":\"src/a.c\",\"line\":12,"
	 "\"quote\":\"int main(void)\"}]}",
	 NULL, "[{\"path\":\"src/a.c\",\"line\":12,\"quote\":\"int main(void)\"}]", 1, 0},
	{"part of a line, spaces around",
	 "{\"path\":\"src/b.c\",\"line\":3,\"quote\":\"  return \\\"x\\\"; \"}", NULL,
	 "[{\"path\":\"src/b.c\",\"line\":3,\"quote\":\"  return \\\"x\\\"; \"}]", 1, 0},
	{"a line of a file that was read",
	 "{\"path\":\"src/c.h\",\"line\":8,\"quote\":\"int f(struct thing *t);\"}", NULL,
	 "[{\"path\":\"src/c.h\",\"line\":8,\"quote\":\"int f(struct thing *t);\"}]", 1, 0},
	{"a line behind the cut, read again",
	 "{\"path\":\"src/far.c\",\"line\":9,\"quote\":\"far away\"}", NULL,
	 "[{\"path\":\"src/far.c\",\"line\":9,\"quote\":\"far away\"}]", 1, 0},
	{"its number in that result is no line of a file",
	 "{\"path\":\"src/far.c\",\"line\":470,\"quote\":\"far away\"}", NULL, "[]", 1, 1},
	{"a hit that looks like the head of a file",
	 "{\"path\":\"src/d.c\",\"line\":2,\"quote\":\"second\"}", NULL,
	 "[{\"path\":\"src/d.c\",\"line\":2,\"quote\":\"second\"}]", 1, 0},
	{"an invented quote", "{\"path\":\"src/a.c\",\"line\":12,\"quote\":\"int mian(void)\"}",
	 NULL, "[]", 1, 1},
	{"the right quote on a wrong line",
	 "{\"path\":\"src/a.c\",\"line\":13,\"quote\":\"int main(void)\"}", NULL, "[]", 1, 1},
	{"a file nobody read", "{\"path\":\"src/z.c\",\"line\":1,\"quote\":\"int\"}", NULL, "[]", 1,
	 1},
	{"text of an error is no evidence",
	 "{\"path\":\"src/err.c\",\"line\":1,\"quote\":\"never shown\"}", NULL, "[]", 1, 1},
	{"from the summary, the quote is filled in", NULL, "see src/a.c:12 for it",
	 "[{\"path\":\"src/a.c\",\"line\":12,\"quote\":\"int main(void)\"}]", 1, 0},
	{"a time and a ratio are no citations", NULL, "at 10:30, 3:1 for a", "[]", 0, 0},
	{"nor is the port of a URL", NULL, "see http://127.0.0.1:8080/a", "[]", 0, 0},
	{"two quotes of a line, the wrong one first",
	 "[{\"path\":\"src/a.c\",\"line\":12,\"quote\":\"int mian(void)\"},"
	 "{\"path\":\"src/a.c\",\"line\":12,\"quote\":\"int main(void)\"}]",
	 "src/a.c:12", "[{\"path\":\"src/a.c\",\"line\":12,\"quote\":\"int main(void)\"}]", 2, 1},
	{"the same twice counts once",
	 "[{\"path\":\"src/a.c\",\"line\":12,\"quote\":\"int main(void)\"},"
	 "{\"path\":\"src/a.c\",\"line\":12,\"quote\":\"int main(void)\"}]",
	 "src/a.c:12", "[{\"path\":\"src/a.c\",\"line\":12,\"quote\":\"int main(void)\"}]", 1, 0},
	{"an address that was never seen", "{\"url\":\"https://example.org/\",\"quote\":\"price\"}",
	 NULL, "[]", 1, 1},
	{"a quote of a page",
	 "{\"url\":\"https://a.test/new\",\"quote\":\"Oolong costs 12 euros.\"}", NULL,
	 "[{\"url\":\"https://a.test/new\",\"quote\":\"Oolong costs 12 euros.\"}]", 1, 0},
	{"without what Markdown escapes",
	 "{\"url\":\"https://a.test/new\",\"quote\":\"size_of [net]\"}", NULL,
	 "[{\"url\":\"https://a.test/new\",\"quote\":\"size_of [net]\"}]", 1, 0},
	{"by the URL it was asked for, and a part of it",
	 "{\"url\":\"https://a.test/old#price\",\"quote\":\"costs  12\"}", NULL,
	 "[{\"url\":\"https://a.test/old#price\",\"quote\":\"costs  12\"}]", 1, 0},
	{"a quote of a search result, a bare host",
	 "{\"url\":\"https://b.test\",\"quote\":\"Taxis cost 5 euros\"}", NULL,
	 "[{\"url\":\"https://b.test\",\"quote\":\"Taxis cost 5 euros\"}]", 1, 0},
	{"the words of another page", "{\"url\":\"https://b.test/\",\"quote\":\"Oolong costs\"}",
	 NULL, "[]", 1, 1},
	{"a page that says it is another one",
	 "{\"url\":\"https://bank.test/\",\"quote\":\"all is free\"}", NULL, "[]", 1, 1},
	{"a page that was not read", "{\"url\":\"https://c.test/\",\"quote\":\"not_seen\"}", NULL,
	 "[]", 1, 1},
	{"two quotes of a page, one invented",
	 "[{\"url\":\"https://a.test/new\",\"quote\":\"12 euros\"},"
	 "{\"url\":\"https://a.test/new\",\"quote\":\"13 euros\"}]",
	 NULL, "[{\"url\":\"https://a.test/new\",\"quote\":\"12 euros\"}]", 2, 1},
	{"no quote is no claim", "{\"url\":\"https://a.test/new\",\"quote\":\"\"}", NULL, "[]", 0,
	 0},
	{"an empty quote", "{\"url\":\"https://a.test/new\",\"quote\":\" \"}", NULL, "[]", 1, 1},
	{"a page's line is no line of a file",
	 "{\"path\":\"src/e.c\",\"line\":5,\"quote\":\"from a page\"}", NULL, "[]", 1, 1},
	{"a prefix of a number is another line",
	 "{\"path\":\"src/a.c\",\"line\":1,\"quote\":\"main\"}", NULL, "[]", 1, 1},
};

TEST(collect)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *out = cases[i].output;
		struct evidence e;

		print_message("%s\n", cases[i].name);
		assert_int_equal(evidence_collect(&e, &dialect_offline, lines, sizeof(lines) - 1,
						  out, out ? strlen(out) : 0, cases[i].summary),
				 0);
		assert_string_equal(e.citations.data, cases[i].want);
		assert_int_equal(e.checked, cases[i].checked);
		assert_int_equal(e.failed, cases[i].failed);
		buf_fini(&e.citations);
	}
}

TEST(broken_conversation)
{
	static const char out[] = "{\"path\":\"src/a.c\",\"line\":12,\"quote\":\"int main(void)\"}";
	struct evidence e;

	assert_int_equal(
		evidence_collect(&e, &dialect_offline, lines, 200, out, sizeof(out) - 1, NULL), 0);
	assert_string_equal(e.citations.data, "[]");
	assert_int_equal(e.failed, 1);
	buf_fini(&e.citations);
}

/* wire_each_result and wire_open_calls, which citations and restarts rest on. */
static int count_result(size_t k, const char *text, size_t len, bool is_error, void *user)
{
	unsigned *n = user;

	assert_int_equal(k, *n);
	assert_int_equal(is_error, k == 2);
	(*n)++;
	return k == 1 && len == 0 ? 1 : 0;
}

TEST(results_in_order)
{
	unsigned n = 0;

	assert_int_equal(wire_each_result(lines, sizeof(lines) - 1, count_result, &n, NULL), 0);
	assert_int_equal(n, 6);
}

TEST(open_calls)
{
	const char *cut =
		strstr(lines, ",{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\"");
	struct turn *t = turn_new();

	assert_non_null(t);
	assert_int_equal(wire_open_calls(lines, sizeof(lines) - 1, t, NULL), 0);
	assert_int_equal(t->ncalls, 0);
	assert_int_equal(wire_open_calls(lines, (size_t)(cut - lines), t, NULL), 0);
	assert_int_equal(t->ncalls, 6);
	assert_string_equal(t->calls[0].wire_id, "t1");
	assert_string_equal(t->calls[2].name, "read_file");
	assert_string_equal(t->calls[2].args, "{}");
	turn_free(t);
}

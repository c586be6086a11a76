/* Reading text replies: bounds on what a model may make us do. The forms
 * themselves stand in test_agent.c, where their effect is seen. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "agent/reply.h"
#include "agent/tool.h"
#include "agent/turn.h"
#include "base/util.h"
#include "codec/json.h"

static const struct tool tool_look = {.name = "look"};
static const struct tool *const tools[] = {&tool_look};

static char *repeat(const char *what, size_t n, size_t *len)
{
	size_t one = strlen(what);
	char *s = malloc(one * n + 1);

	for (size_t i = 0; i < n; i++)
		memcpy(s + one * i, what, one + 1);
	*len = one * n;
	return s;
}

/* Processor seconds of this very machine and build for one read of JSON of `len` bytes: the measure
 * for what many tries take. */
static double one_read(size_t len)
{
	size_t n;
	char *s = repeat("1,", len / 2, &n);
	clock_t from = clock();

	s[0] = '[';
	s[1] = '1';
	s[n - 1] = ']';
	json_decref(json_loadb(s, n, 0, NULL));
	free(s);
	return (double)(clock() - from) / CLOCKS_PER_SEC;
}

static bool took_less(clock_t from, double most)
{
	return (double)(clock() - from) / CLOCKS_PER_SEC < most + 0.2;
}

/* A megabyte of beginnings: each of 256 tries would read to the end. */
TEST(bounded_work)
{
	static const char *const parts[] = {"{\"a\":",      "{\"\"",       "<look",
					    "<tool ",       "{\"a\":1}",   "```json\n",
					    "<function=a>", "<parameter=a"};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct reply r;
		size_t len, n;
		char *s = repeat(parts[i], 200000, &len);
		double most = 50 * one_read(len);
		clock_t from = clock();

		assert_int_equal(reply_read(&r, s, len, tools, 1), 0);
		assert_true(took_less(from, most));
		reply_fini(&r);
		from = clock();
		json_decref(reply_calls(s, len, tools, 1, &n));
		assert_true(took_less(from, most));
		free(s);
	}
}

/* Each of 200 beginnings is valid for two megabytes. */
TEST(long_tries)
{
	struct reply r;
	size_t begin, more;
	char *s = repeat("{\"a\":", 200, &begin), *list = repeat("1,", 1 << 20, &more);
	double most = 50 * one_read(more);
	clock_t from;

	s = realloc(s, begin + more + 2);
	s[begin] = '[';
	memcpy(s + begin + 1, list, more + 1);
	from = clock();
	assert_int_equal(reply_read(&r, s, begin + 1 + more, tools, 1), 0);
	assert_true(took_less(from, most));
	assert_null(r.object);
	reply_fini(&r);
	free(list);
	free(s);
}

static const struct {
	const char *text, *calls, *before; /* NULL: it is none; what is said before */
} written[] = {
	{"{\"name\":\"look\",\"arguments\":{\"at\":\"a\"}}", "look{\"at\":\"a\"}"},
	{"{\"name\":\"made_up\",\"arguments\":{}}", "made_up{}"},
	{"I look.\n\n```json\n{\"name\":\"look\",\"arguments\":{}}\n```\n", "look{}", "I look.\n"},
	{"<tool_call>\n{\"name\":\"look\",\"arguments\":{}}\n</tool_call>\n<tool_call>"
	 "{\"name\":\"look\",\"arguments\":{\"at\":1}}</tool_call>",
	 "look{}look{\"at\":1}"},
	{"[TOOL_CALLS][{\"name\":\"look\",\"arguments\":{}}, {\"name\":\"look\",\"arguments\":{}}]",
	 "look{}look{}"},
	{"[TOOL_CALLS]look[ARGS]{\"at\":2}", "look{\"at\":2}"},
	{"<|python_tag|>{\"name\":\"look\",\"parameters\":{\"at\":1}}<|eom_id|>", "look{\"at\":1}"},
	{"<function=look>{\"at\":1}</function>", "look{\"at\":1}"},
	{"So.\n<tool_call>\n<function=look>\n<parameter=at>\na\nb\n</parameter>\n<parameter=in>c</"
	 "parameter>\n"
	 "</function>\n</tool_call>",
	 "look{\"at\":\"a\\nb\",\"in\":\"c\"}", "So.\n"},
	{"<invoke name=\"look\"><parameter name=\"at\">a</parameter></invoke>",
	 "look{\"at\":\"a\"}"},
	{"{\"tool_calls\":[{\"function\":{\"name\":\"look\",\"arguments\":\"{\\\"at\\\":1}\"}}]}",
	 "look{\"at\":1}"},
	{"{\"tool\":\"look\",\"at\":1}", "look{\"at\":1}"},
	{"{\"look\":{\"at\":1}}", "look{\"at\":1}"},
	{"<function=look><parameter=at>\n</parameter></function>", "look{\"at\":\"\"}"},
	{"{\"name\":\"look\"}", "look{}"},
	/* Members of a result beside it; more than those is data. */
	{"{\"name\":\"made_up\",\"arguments\":{},\"confidence\":1,\"caveats\":[]}", "made_up{}"},
	{"{\"name\":\"made_up\",\"arguments\":{},\"returns\":1,\"since\":2}", NULL},
	{"{\"name\":\"Ada\"}", NULL},
	{"{\"name\":\"Ada\",\"parameters\":{\"age\":36},\"confidence\":0.9}", NULL},
	/* Cut off amid the last one. */
	{"{\"name\":\"look\",\"arguments\":{}}\n{\"name\": \"look\", \"arguments\": {\"at\": {\"",
	 "look{}"},
	/* Without its last braces. */
	{"{\"name\":\"look\",\"arguments\":{\"at\":\"a\"}", "look{\"at\":\"a\"}"},
	{"```json\n{\"name\":\"look\",\"arguments\":{\"at\":\"a\"\n```", "look{\"at\":\"a\"}"},
	{"{\"name\":\"look\",\"arguments\":{\"at\":\"a", NULL},
	{"{\"name\":\"Ada\",\"age\":36", NULL},
	{"{\"name\":\"look\",\"arguments\":{}}\nOr so: {\"name\": \"look", NULL},
	{"{\"name\":\"look\",\"arguments\":{}}\n{ ", "look{}"},
	{"<tool_call>{\"name\":\"look\",\"arguments\":{}}</tool_call>\n<tool_c", "look{}"},
	{"<function=look><parameter=at>a</parameter></function>\n<function=look><param",
	 "look{\"at\":\"a\"}"},
	{"<function=look><parameter=at>a</parameter>", NULL},
	{"{\"name\":\"look\",\"arguments\":{}}\n< so", NULL},
	{"{\"name\":\"look\", \"argum", NULL},
	/* Of which the text speaks; the server of a model that says so is asked again. */
	{"{\"name\":\"look\",\"arguments\":{}}\nThis is how I would do it.", NULL},
	{"You write {\"name\":\"look\",\"arguments\":{}}", NULL},
	{"{\"name\":\"look\",\"arguments\":{}}\nor\n{\"name\":\"look\",\"arguments\":{}}", NULL},
	{"{\"summary\":\"s\"}\n{\"name\":\"look\",\"arguments\":{}}", NULL},
	/* An example of a call of whatever tool. */
	{"So:\n```json\n{\"name\":\"made_up\",\"arguments\":{}}\n```", NULL},
	{"{\"a\":1}", NULL},
	{"look", NULL},
	{"You use <look> with {\"at\":1}", NULL},
	/* Cut off, or nearly one. */
	{"<function=\">{}</function>", NULL},
	{"<function=look>{}</function", "look{}"},
	{"<function=look>{}<", NULL},
	{"<function=look><parameter=\">a", NULL},
	{"<function=</function>{}", NULL},
	{"<function=look></function <function=look>{}</function>", NULL},
};

TEST(calls_in_text)
{
	for (size_t i = 0; i < ARRAY_LEN(written); i++) {
		size_t from = 0, k;
		json_t *list = reply_calls(written[i].text, strlen(written[i].text), tools, 1,
					   &from),
		       *o;
		TEST_BUF(b, 4096);

		print_message("%s\n", written[i].text);
		json_array_foreach(list, k, o)
		{
			buf_adds(&b, json_string_value(json_object_get(o, "name")));
			json_dump(&b, json_object_get(o, "arguments"));
		}
		assert_string_equal(b.len > 0 ? b.data : "none",
				    written[i].calls ? written[i].calls : "none");
		if (written[i].before != NULL)
			assert_int_equal(from, strlen(written[i].before));
		json_decref(list);
	}
}

TEST(depth)
{
	json_t *v = json_object(), *o;

	for (int i = 1; i < REPLY_DEPTH_MAX; i++) {
		o = json_object();
		json_object_set_new(o, "k", v);
		v = o;
	}
	assert_true(reply_shallow(v, REPLY_DEPTH_MAX));
	assert_false(reply_shallow(v, REPLY_DEPTH_MAX - 1));
	o = json_array();
	json_array_append_new(o, v);
	assert_false(reply_shallow(o, REPLY_DEPTH_MAX));
	json_decref(o);
}

TEST(too_deep_is_no_result)
{
	struct reply r;
	char text[400] = "";

	for (int i = 0; i < 60; i++)
		strcat(text, "{\"a\":");
	strcat(text, "1");
	for (int i = 0; i < 60; i++)
		strcat(text, "}");
	assert_int_equal(reply_read(&r, text, strlen(text), tools, 1), 0);
	assert_null(r.object);
	reply_fini(&r);
}

TEST(strange_results)
{
	json_auto_t *o = json_loads("{\"output\":null,\"summary\":7,\"confidence\":-2,"
				    "\"caveats\":[1,\"two\",null]}",
				    0, NULL);
	struct agent_end end = {0};
	struct arena mem;

	arena_init(&mem, TURN_MAX_BYTES);
	reply_mend(o);
	assert_int_equal(reply_result(&mem, o, &end), 0);
	assert_null(end.output);
	assert_string_equal(end.summary, "7");
	assert_true(end.confidence == 0);
	assert_string_equal(end.caveats, "[\"1\",\"two\"]");
	arena_fini(&mem);
}

static const struct tool tool_read = {.name = "read_file"}, tool_seek = {.name = "find_file"};
static const struct tool *const named[] = {&tool_look, &tool_read, &tool_seek};

TEST(names)
{
	static const struct {
		const char *said;
		const struct tool *means;
	} cases[] = {
		{"look", &tool_look},
		{"Read_File", &tool_read},
		{"readFile", &tool_read},
		{"read-file", &tool_read},
		{" read_file ", &tool_read},
		{"functions.read_file:0", &tool_read},
		{"default_api:look", &tool_look},
		{"call_look", &tool_look},
		{"look(", &tool_look},
		{"read_file<|channel|>commentary", &tool_read},
		{"find_file or read_file", NULL},
		{"overlook", NULL},
		{"file", NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		print_message("%s\n", cases[i].said);
		assert_ptr_equal(reply_tool(named, 3, cases[i].said), cases[i].means);
	}
	assert_null(reply_tool(NULL, 0, "look"));
}

/* A tool that a model made up is no result; an answer that has a name is one. */
TEST(calls_of_no_tool)
{
	static const struct {
		const char *text;
		bool call;
	} cases[] = {
		{"```json\n{\"name\":\"tax_rate\",\"arguments\":{\"shop\":\"a\"}}\n```", true},
		{"{\"name\":\"Look\",\"parameters\":{}}", true},
		{"<|channel|>commentary to=functions.look<|message|>{\"a\":1}", true},
		{"<|tool_calls_section_begin|><|tool_call_begin|>functions.look:0", true},
		{"<\uff5ctool\u2581calls\u2581begin\uff5c>look\n```json\n{}\n```", true},
		{"[TOOL_CALLS][{\"name\":\"look\",\"arguments\":{}}]", true},
		{"{\"name\":\"Ben\",\"arguments\":\"none\"}", false},
		{"So:\n{\"name\":\"tax_rate\",\"arguments\":{}}\n", false},
		{"{\"name\":\"tax_rate\",\"arguments\":{}}\nis how.", false},
		{"So:\n{\"name\":\"look\",\"arguments\":{}}\n", true},
		{"{\"name\":\"Ben\",\"age\":4,\"arguments\":{},\"of\":1}", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct reply r;

		print_message("%s\n", cases[i].text);
		assert_int_equal(reply_read(&r, cases[i].text, strlen(cases[i].text), named, 3), 0);
		assert_int_equal(r.call, cases[i].call);
		if (strstr(cases[i].text, "tax_rate") != NULL) /* nothing of it is a result */
			assert_null(r.object);
		reply_fini(&r);
	}
}

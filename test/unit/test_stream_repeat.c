/* Replies that repeat themselves: what is cut where, and what is let be. */
#include <stdio.h>

#include "stream_rig.h"

#define LINE "The task is done, and you can return to work.\n"
#define ROWS "| 2026-11-28 | shop.py | 0.19 |\n"

static const struct {
	const char *before, *again; /* %d in it is counted up */
	int times;
	bool cut, args, far; /* at a service, not on this machine */
} cases[] = {
	/* The same line, the same lines, the same words without a line's end, the same letter. */
	{"I look.\n", LINE, 200, true, false},
	{"", "First I read the file.\nThen I find the rate.\nThen I say it.\n\n", 100, true, false},
	{"So: ", "and the rate is 0.19 ", 300, true, false},
	{"Hm", ".", 6000, true, false},
	{"", LINE LINE "But wait. " LINE, 60, true, false},
	/* In a call that a 0.5B model wrote as text. */
	{"{\"name\": \"ask_person\", \"arguments\": {\"choices\": [", "\"TAX rate shop.py\", ", 200,
	 true, false},
	/* Not as often or not as long as that, or never quite the same. */
	{"", LINE, 40, false, false},
	{"", ROWS, 60, false, false},
	{"|", "---|", 900, false, false},
	{"", "0,0,0\n", 600, false, false},
	{"", "|                                                                |\n", 55, false},
	{"", "%d. " LINE, 400, false, false},
	{"", "4-27c0de, %d-27c0de\n", 400, false, false},
	/* What is written to a file may well be. */
	{"{\"text\":\"", "    nop\\n", 1000, false, true},
	{"{\"text\":\"", "INSERT INTO rates VALUES (19, 7);\\n", 200, false, true},
	{"{\"text\":\"", "INSERT INTO rates VALUES (19, 7);\\n", 800, true, true},
	/* A service is quick, and somebody may have asked for it. */
	{"", LINE, 600, false, false, true},
	{"", LINE, 900, true, false, true},
	{"{\"text\":\"", "INSERT INTO rates VALUES (19, 7);\\n", 3000, false, true, true},
};

static const struct provider near = {.name = "local"};
static const struct model models[] = {{.wire_name = "near", .provider = &near},
				      {.wire_name = "far"}};

static void feed(struct stream *s, size_t k, const char *text, bool thinking)
{
	TEST_BUF(b, 4096);
	struct jw w;
	bool progress;

	buf_adds(&b, "data: ");
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "id", "x");
	jw_array(&w, "choices");
	jw_object(&w, NULL);
	jw_object(&w, "delta");
	if (cases[k].args) {
		jw_array(&w, "tool_calls");
		jw_object(&w, NULL);
		jw_int(&w, "index", 0);
		jw_object(&w, "function");
		if (text == cases[k].before)
			jw_str(&w, "name", "write_file");
		jw_str(&w, "arguments", text);
		jw_end(&w);
		jw_end(&w);
		jw_end(&w);
	} else {
		jw_str(&w, thinking ? "reasoning_content" : "content", text);
	}
	jw_end(&w);
	jw_end(&w);
	jw_end(&w);
	jw_end(&w);
	buf_adds(&b, "\n\n");
	assert_int_equal(stream_feed(s, b.data, b.len, &progress), 0);
}

static void check(size_t k, bool thinking)
{
	static const char end[] =
		"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
		"data: [DONE]\n\n";
	struct stream *s = stream_open(dialect_openai.stream, &models[cases[k].far], "t");
	struct reply_error e;
	struct turn *t;
	TEST_BUF(want, 1 << 20);
	char more[400];
	bool progress;
	int fed = 0;

	feed(s, k, cases[k].before, thinking);
	buf_adds(&want, cases[k].before);
	for (; fed < cases[k].times && stream_rest_ms(s) != 0; fed++) {
		snprintf(more, sizeof(more), cases[k].again, fed);
		feed(s, k, more, thinking);
		if (fed == 0 || !cases[k].cut)
			buf_adds(&want, more);
	}
	assert_int_equal(fed < cases[k].times, cases[k].cut);
	assert_int_equal(stream_feed(s, end, sizeof(end) - 1, &progress), 0);
	assert_int_equal(stream_end(s, 200, NULL, &t, &e), REPLY_OK);
	assert_int_equal(t->stop, cases[k].cut ? TURN_STOP_REPEATED : TURN_STOP_END);
	if (!cases[k].args) /* the first time is kept, from wherever it is counted */
		assert_in_range(thinking ? t->thinking_len : t->text_len, want.len - cases[k].cut,
				want.len + (cases[k].cut ? strlen(cases[k].again) - 1 : 0));
	else if (cases[k].cut)
		assert_non_null(
			strstr(t->calls[0].args_error, "repeated itself and was stopped inside"));
	turn_free(t);
	stream_free(s);
}

TEST(cases)
{
	for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
		print_message("%s\n", cases[k].again);
		check(k, false);
		if (!cases[k].args)
			check(k, true);
	}
}

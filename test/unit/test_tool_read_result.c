/* read_result over what a run's world hands out. */
#include "tool_unit.h"

#include "base/error.h"

/* c1.1: five lines; c1.2: 100,000 lines; c1.3: the disk fails; else unknown. */
static int fetch(struct tool_env *env, const char *id, struct buf *out, struct ava_error *err)
{
	assert_ptr_equal(env, &u.env);
	if (strcmp(id, "c1.1") == 0)
		return buf_adds(out, "src/a.c:1:one\ntwo\n\nfour foo\nfive foo");
	if (strcmp(id, "c1.3") == 0)
		return err_set(err, AVA_EIO, "the artifact cannot be read");
	if (strcmp(id, "c1.4") == 0)
		return 0;
	if (strcmp(id, "c1.5") == 0) { /* 5,000 bytes of "ä" in one line, and a short one */
		buf_addc(out, 'x');
		for (int i = 0; i < 2500; i++)
			buf_adds(out, "\xc3\xa4");
		return buf_adds(out, "needle\nend");
	}
	if (strcmp(id, "c1.2") != 0)
		return AVA_ENOENT;
	for (int i = 1; i <= 100000; i++)
		buf_addf(out, "line %d\n", i);
	return buf_check(out);
}

static int set_up(void **state)
{
	tool_unit_open(state);
	u.env.fetch_result = fetch;
	return 0;
}

static const char *reads(const char *args)
{
	return tool_unit_ok("read_result", args);
}

static const char *fails(const char *args, const char *class)
{
	return tool_unit_fails("read_result", args, class);
}

TEST(ranges)
{
	assert_string_equal(reads("{'call_id':'c1.1'}"),
			    "result of c1.1 (lines 1-5 of 5)\n1\tsrc/a.c:1:one\n2\ttwo\n3\t\n"
			    "4\tfour foo\n5\tfive foo\n");
	assert_string_equal(
		reads("{'call_id':'c1.1','first_line':2,'last_line':2}"),
		"result of c1.1 (lines 2-2 of 5)\n2\ttwo\n(it goes on: first_line 3)\n");
	assert_holds(fails("{'call_id':'c1.1','first_line':6}", "bad_arguments"), "5 lines");
	fails("{'call_id':'c1.1','first_line':3,'last_line':2}", "bad_arguments");
	assert_string_equal(reads("{'call_id':'c1.4'}"), "result of c1.4 (lines 0-0 of 0)\n");
	assert_holds(reads("{'call_id':'c1.2'}"), "result of c1.2 (lines 1-2000 of 100000)\n1\t");
	assert_holds(reads("{'call_id':'c1.2','first_line':99999}"),
		     "99999\tline 99999\n100000\tline 100000\n");
	reads("{'call_id':'c1.2','last_line':100000}");
	assert_true(u.call.out.len < TOOL_OUTPUT_MAX);
	assert_holds(u.call.out.data, "(it goes on: first_line ");
}

TEST(search)
{
	assert_string_equal(
		reads("{'call_id':'c1.1','search':'foo'}"),
		"result of c1.1: 2 of 5 lines hold \"foo\"\n4\tfour foo\n5\tfive foo\n");
	assert_string_equal(reads("{'call_id':'c1.1','search':'foo','first_line':5}"),
			    "result of c1.1: 1 of 5 lines hold \"foo\"\n5\tfive foo\n");
	assert_string_equal(reads("{'call_id':'c1.1','search':'.*'}"),
			    "result of c1.1: 0 of 5 lines hold \".*\"\n");
	assert_holds(reads("{'call_id':'c1.2','search':'line 9999'}"),
		     ": 11 of 100000 lines hold \"line 9999\"\n9999\tline 9999\n99990\t");
	assert_holds(reads("{'call_id':'c1.2','search':'line'}"), "(there are more: first_line ");
}

/* A line that is too long for one comes in several, with nothing lost. */
TEST(split)
{
	TEST_BUF(whole, 10000);

	for (int i = 1; i <= 3; i++) {
		char args[100];
		const char *text, *end;

		snprintf(args, sizeof(args), "{'call_id':'c1.5','first_line':%d,'last_line':%d}", i,
			 i);
		text = strchr(reads(args), '\t') + 1;
		end = strchr(text, '\n');
		assert_true(end - text <= 2000);
		buf_add(&whole, text, (size_t)(end - text));
	}
	assert_int_equal(whole.len, 5007);
	assert_lacks(whole.data, "\xef\xbf\xbd");
	assert_memory_equal(whole.data + 4999, "\xc3\xa4needle", 8);
	assert_holds(reads("{'call_id':'c1.5'}"), "(lines 1-4 of 4)\n");
	assert_holds(u.call.out.data, "needle\n4\tend\n");
	assert_holds(reads("{'call_id':'c1.5','search':'needle'}"), "1 of 4 lines hold");
}

TEST(fails)
{
	assert_holds(fails("{'call_id':'c9.9'}", "not_found"),
		     "no call c9.9 with a result in this run: use the id of an earlier call");
	assert_string_equal(fails("{'call_id':'c1.3'}", "io"), "the artifact cannot be read");
	fails("{'call_id':''}", "bad_arguments");
	fails("{'call_id':'c1.1\\u0000'}", "bad_arguments");
	u.env.cwd_fd = (close(u.env.cwd_fd), -1); /* it needs no folder */
	reads("{'call_id':'c1.1'}");
}

TEST(activity)
{
	const struct tool *t = tool_find("read_result");
	json_auto_t *args = json_pack("{s:s}", "call_id", "c3.1");
	TEST_BUF(out, 1000);

	t->activity(args, &out);
	assert_string_equal(out.data, "Reading the result of c3.1");
}

UNIT_GROUP(.before = set_up, .after = tool_unit_close);

/* search_and_read: groups with context, files in rank, room shared. */
#include "tool_unit.h"

static const char *shows(const char *args)
{
	return tool_unit_ok("search_and_read", args);
}

static const char ten[] = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

TEST(form)
{
	put("a", ten);
	assert_string_equal(shows("{'pattern':'5','context':1}"),
			    "a:4:4\na:5:5\na:6:6\n1 match in 1 file (1 file searched)\n");
	assert_string_equal(shows("{'pattern':'5','context':0}"),
			    "a:5:5\n1 match in 1 file (1 file searched)\n");
	/* At the edges, and groups that touch or overlap are one. */
	assert_string_equal(shows("{'pattern':'1','context':2}"),
			    "a:1:1\na:2:2\na:3:3\n--\na:8:8\na:9:9\na:10:10\n"
			    "2 matches in 1 file (1 file searched)\n");
	assert_string_equal(shows("{'pattern':'^[36]$','regex':true,'context':1}"),
			    "a:2:2\na:3:3\na:4:4\na:5:5\na:6:6\na:7:7\n"
			    "2 matches in 1 file (1 file searched)\n");
	assert_string_equal(shows("{'pattern':'^[37]$','regex':true,'context':1}"),
			    "a:2:2\na:3:3\na:4:4\n--\na:6:6\na:7:7\na:8:8\n"
			    "2 matches in 1 file (1 file searched)\n");
	assert_string_equal(shows("{'pattern':'[45]','regex':true,'context':0}"),
			    "a:4:4\na:5:5\n2 matches in 1 file (1 file searched)\n");
	assert_holds(shows("{'pattern':'5'}"),
		     "a:2:2\na:3:3\na:4:4\na:5:5\na:6:6\na:7:7\na:8:8\n1 ");
	assert_string_equal(shows("{'pattern':'nothing'}"),
			    "no matches for \"nothing\" (1 file searched)\n");
}

TEST(line_ends)
{
	put("crlf", "\xef\xbb\xbf"
		    "a\r\n\r\nfoo\r\nb");
	assert_string_equal(shows("{'pattern':'foo'}"), "crlf:1:a\ncrlf:2:\ncrlf:3:foo\ncrlf:4:b\n"
							"1 match in 1 file (1 file searched)\n");
	assert_string_equal(shows("{'pattern':'^$','regex':true,'context':0}"),
			    "crlf:2:\n1 match in 1 file (1 file searched)\n");
	put("crlf", "foo");
	assert_string_equal(shows("{'pattern':'foo'}"),
			    "crlf:1:foo\n1 match in 1 file (1 file searched)\n");
}

TEST(rank)
{
	put("a", "foo\n");
	put("b", "foo\nfoo\nfoo\n");
	put("c/d", "foo\nfoo\n");
	put("e", "foo\n");
	assert_string_equal(shows("{'pattern':'foo','context':0}"),
			    "b:1:foo\nb:2:foo\nb:3:foo\n--\nc/d:1:foo\nc/d:2:foo\n--\na:1:foo\n--\n"
			    "e:1:foo\n7 matches in 4 files (4 files searched)\n");
	assert_string_equal(shows("{'pattern':'foo','context':0,'max_files':2}"),
			    "b:1:foo\nb:2:foo\nb:3:foo\n--\nc/d:1:foo\nc/d:2:foo\n"
			    "7 matches in 4 files, 2 of them shown (4 files searched)\n");
	assert_string_equal(shows("{'pattern':'foo','context':0,'glob':'[ae]','path':'.'}"),
			    "a:1:foo\n--\ne:1:foo\n2 matches in 2 files (2 files searched)\n");
}

/* One file does not crowd out the others, and all of it fits. */
TEST(room)
{
	char *text = malloc(400000), path[20];

	for (int f = 0; f < 4; f++) {
		size_t len = 0;

		for (int i = 0; i < 3000 - f; i++)
			len += (size_t)sprintf(text + len, "foo %d %064d\n", i, f);
		snprintf(path, sizeof(path), "f%d", f);
		put(path, text);
	}
	shows("{'pattern':'foo'}");
	assert_true(u.call.out.len < TOOL_OUTPUT_MAX);
	assert_true(u.call.out.len > TOOL_OUTPUT_MAX * 8 / 10);
	assert_holds(u.call.out.data, "f0:1:foo 0 ");
	assert_holds(u.call.out.data, " more matches in f0)\n");
	assert_holds(u.call.out.data, "f3:1:foo 0 ");
	assert_holds(u.call.out.data, " more matches in f3)\n");
	assert_holds(u.call.out.data, "11994 matches in 4 files (4 files searched)\n");
	free(text);
}

TEST(fails)
{
	put("a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\n");
	tool_unit_fails("search_and_read", "{'pattern':'a','path':'../x'}", "denied");
	tool_unit_fails("search_and_read", "{'pattern':'a','path':'x'}", "not_found");
	tool_unit_fails("search_and_read", "{'pattern':'(a|aa)+$','regex':true}", "bad_arguments");
}

TEST(no_memory)
{
	put("a", ten);
	put("b", ten);
	tool_unit_starve("search_and_read", "{'pattern':'5','context':0}",
			 "a:5:5\n--\nb:5:5\n2 matches in 2 files (2 files searched)\n", 4);
}

UNIT_GROUP(.before = tool_unit_open, .after = tool_unit_close);

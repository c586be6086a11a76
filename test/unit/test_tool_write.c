/* write_file and edit_file: what they change, what they refuse, and that nothing outside is ever
 * reached. */
#include "tool_unit.h"

#include <ava.h>
#include <pthread.h>
#include <stdatomic.h>

static int set_up(void **state)
{
	tool_unit_open(state);
	u.env.copy = u.dir;
	return 0;
}

static void holds(const char *path, const char *text)
{
	size_t len;
	char *data = unit_read(in(path), &len);

	assert_string_equal(data, text);
	free(data);
}

TEST(write)
{
	struct stat st;

	assert_holds(tool_unit_ok("write_file", "{'path':'a/b/c.txt','content':'one\\ntwo\\n'}"),
		     "a/b/c.txt: new, 2 lines");
	holds("a/b/c.txt", "one\ntwo\n");
	assert_int_equal(chmod(in("a/b/c.txt"), 0750), 0);
	assert_holds(tool_unit_ok("write_file", "{'path':'./a//b/c.txt','content':''}"),
		     "rewritten, 0 lines (it had 2)");
	holds("a/b/c.txt", "");
	assert_int_equal(stat(in("a/b/c.txt"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0750); /* its mode stays */
	assert_int_not_equal(access(in("a/b/.ava-spare"), F_OK), 0);
}

TEST(edit)
{
	put("a.c", "int a;\nint b;\nint b2;\n");
	assert_holds(tool_unit_ok("edit_file",
				  "{'path':'a.c','old_string':'int b;','new_string':'int c;'}"),
		     "a.c: changed at line 2");
	holds("a.c", "int a;\nint c;\nint b2;\n");
	assert_holds(tool_unit_fails("edit_file",
				     "{'path':'a.c','old_string':'int','new_string':'x'}",
				     "bad_arguments"),
		     "stands at 3 places of a.c (lines 1, 2, 3)");
	assert_holds(tool_unit_ok("edit_file",
				  "{'path':'a.c','old_string':'int ','new_string':'','replace_all':"
				  "true}"),
		     "changed at 3 places");
	holds("a.c", "a;\nc;\nb2;\n");
	tool_unit_ok("edit_file", "{'path':'a.c','old_string':'c;\\n','new_string':''}");
	holds("a.c", "a;\nb2;\n");
}

/* Models write LF; a file keeps what its lines end in. */
TEST(line_ends)
{
	static const struct {
		const char *was, *tool, *args, *is;
	} cases[] = {
		{"a\r\nb\r\nc\r\n", "edit_file",
		 "'old_string':'a\\nb\\n','new_string':'x\\ny\\nz\\n'", "x\r\ny\r\nz\r\nc\r\n"},
		{"a\r\nb", "edit_file", "'old_string':'b','new_string':'x\\ny'", "a\r\nx\r\ny"},
		{"a\r\nb\r\n", "edit_file", "'old_string':'a\\r\\nb','new_string':'x\\r\\ny'",
		 "x\r\ny\r\n"},
		{"a\nb\n", "edit_file", "'old_string':'a\\r\\nb','new_string':'x\\r\\ny'",
		 "x\ny\n"},
		{"a\nb\n\r\nc\r\nd\r\n\r\n", "edit_file",
		 "'old_string':'a\\nb','new_string':'x\\ny'", "x\ny\n\r\nc\r\nd\r\n\r\n"},
		{"a\nb\r\nc\r\na\n", "edit_file",
		 "'old_string':'a\\n','new_string':'x\\ny\\n','replace_all':true",
		 "x\ny\nb\r\nc\r\nx\ny\n"},
		{"a\r\n\r\nb\r\n", "edit_file", "'old_string':'\\n\\n','new_string':'\\n'",
		 "a\r\nb\r\n"},
		{"\xef\xbb\xbf"
		 "a\r\nb\r\n",
		 "edit_file", "'old_string':'a\\nb','new_string':'c\\nb'",
		 "\xef\xbb\xbf"
		 "c\r\nb\r\n"},
		{"a\rb\n", "edit_file", "'old_string':'a\\rb','new_string':'c'", "c\n"},
		{"a\r\nb\r\n", "write_file", "'content':'x\\ny\\n'", "x\r\ny\r\n"},
		{"a\r\nb\r\n", "write_file", "'content':'x\\r\\ny\\n'", "x\r\ny\n"},
		{"a\nb\r\nc\n", "write_file", "'content':'x\\ny\\n'", "x\ny\n"},
		{"a\r\n", "write_file", "'content':''", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char args[300];

		put("a.txt", cases[i].was);
		snprintf(args, sizeof(args), "{'path':'a.txt',%s}", cases[i].args);
		tool_unit_ok(cases[i].tool, args);
		holds("a.txt", cases[i].is);
	}
}

/* Nothing is changed, and the sentence says what to do. */
TEST(not_there)
{
	static const struct {
		const char *args, *says;
	} cases[] = {
		{"'old_string':'int  alpha = 1;'",
		 "line 2 is nearest to its beginning: int alpha = 1;"},
		{"'old_string':'2\\tint alpha'", "line 2 is nearest"},
		{"'old_string':'quite something else'", "nor anything near it"},
		{"'old_string':'x\\nint alpha'", "nor anything near it"},
		{"'old_string':''", "too short"},
	};

	put("a.c", "/* head */\r\n\tint alpha = 1;\r\nint beta = 2;\r\n");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char args[300];
		struct ava_error err = {0};

		snprintf(args, sizeof(args), "{'path':'a.c',%s,'new_string':'x'}", cases[i].args);
		if (strstr(args, "''")) { /* the schema has it */
			tool_unit_prepare("edit_file", args);
			assert_int_equal(tool_fit_args(u.call.tool, &u.args, NULL, &err),
					 AVA_EINVAL);
			continue;
		}
		assert_holds(tool_unit_fails("edit_file", args, "bad_arguments"), cases[i].says);
	}
	tool_unit_fails("edit_file", "{'path':'a.c','old_string':'x','new_string':'x'}",
			"bad_arguments");
	assert_holds(tool_unit_fails("edit_file",
				     "{'path':'b.c','old_string':'x','new_string':'y'}",
				     "not_found"),
		     "write_file makes a new one");
	holds("a.c", "/* head */\r\n\tint alpha = 1;\r\nint beta = 2;\r\n");
}

TEST(refused)
{
	static const struct {
		const char *path, *class, *says;
	} cases[] = {
		{"../x", "denied", "outside"},
		{"/etc/x", "denied", "outside"},
		{".", "bad_arguments", ""},
		{".git/hooks/pre-commit", "denied", "is protected (.git)"},
		{"sub/.ENVRC", "denied", "is protected"},
		{"out", "denied", "link"},
		{"dir/x", "denied", "link"},
		{"loop/x", "denied", "link"},
		{"binary", "denied", "is binary"},
		{"folder", "denied", "no regular file"},
		{"pipe", "denied", "no regular file"},
		{"qu\\\\ote", "bad_arguments", "cannot be the name"},
	};
	char outside[400];

	snprintf(outside, sizeof(outside), "%s/outside", u.top);
	unit_write(outside, "mine", 4);
	assert_int_equal(symlink("../outside", in("out")), 0);
	assert_int_equal(symlink("..", in("dir")), 0);
	assert_int_equal(symlink("loop", in("loop")), 0);
	assert_int_equal(mkdir(in("folder"), 0700), 0);
	assert_int_equal(mkfifo(in("pipe"), 0600), 0);
	unit_write(in("binary"), "a\0b", 3);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char args[300];

		print_message("%s\n", cases[i].path);
		snprintf(args, sizeof(args), "{'path':'%s','content':'x'}", cases[i].path);
		assert_holds(tool_unit_fails("write_file", args, cases[i].class), cases[i].says);
	}
	assert_int_not_equal(access(in(".git"), F_OK), 0);
	snprintf(outside, sizeof(outside), "%s/x", u.top);
	assert_int_not_equal(access(outside, F_OK), 0);
	u.env.copy = NULL; /* the project itself */
	tool_unit_fails("write_file", "{'path':'a','content':'x'}", "denied");
	assert_int_not_equal(access(in("a"), F_OK), 0);
}

/* ---- case 3: a folder that turns into a link and back, all the time */

static atomic_bool over;

static void *swap(void *arg)
{
	char to[400], dir[400], aside[400];

	snprintf(to, sizeof(to), "%s/target", u.top);
	snprintf(dir, sizeof(dir), "%s/d", u.dir);
	snprintf(aside, sizeof(aside), "%s/e", u.dir);
	while (!atomic_load(&over)) {
		rename(dir, aside);
		symlink(to, dir);
		unlink(dir);
		rename(aside, dir);
	}
	return arg;
}

TEST(swapped)
{
	char to[400];
	pthread_t thread;

	snprintf(to, sizeof(to), "%s/target", u.top);
	assert_int_equal(mkdir(to, 0700), 0);
	put("d/f", "x");
	assert_int_equal(pthread_create(&thread, NULL, swap, NULL), 0);
	for (int i = 0; i < 2000; i++) {
		tool_unit_start("write_file", "{'path':'d/f','content':'y'}");
		tool_unit_wait();
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	assert_int_equal(rmdir(to), 0); /* nothing was put there */
}

UNIT_GROUP(.before = set_up, .after = tool_unit_close);

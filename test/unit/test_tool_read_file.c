/* read_file on files of every kind. */
#include "tool_unit.h"

static const char *reads(const char *args)
{
	return tool_unit_ok("read_file", args);
}

static const char *fails(const char *args, const char *class)
{
	return tool_unit_fails("read_file", args, class);
}

TEST(form)
{
	put("src/a.c", "one\n\ttwo\n\nfour\n");
	assert_string_equal(reads("{'path':'src/a.c'}"),
			    "src/a.c (lines 1-4 of 4)\n1\tone\n2\t\ttwo\n3\t\n4\tfour\n");
	put("b", "no newline");
	assert_string_equal(reads("{'path':'./b'}"), "b (lines 1-1 of 1)\n1\tno newline\n");
	put("mixed", "a\r\nb\n");
	assert_string_equal(reads("{'path':'mixed'}"),
			    "mixed (lines 1-2 of 2; line ends: CRLF and LF)\n1\ta\n2\tb\n");
	put("crlf", "a\r\nb\r\n\r\nc\r");
	assert_string_equal(reads("{'path':'crlf'}"),
			    "crlf (lines 1-4 of 4; line ends: CRLF)\n1\ta\n2\tb\n3\t\n4\tc\n");
	put("empty", "");
	assert_string_equal(reads("{'path':'empty'}"),
			    "empty (lines 0-0 of 0)\n(the file is empty)\n");
	put("bom", "\xef\xbb\xbfx\n\xef\xbb\xbfy\n");
	assert_string_equal(reads("{'path':'bom'}"),
			    "bom (lines 1-2 of 2)\n1\tx\n2\t\xef\xbb\xbfy\n");
	put("latin", "caf\xe9\n\xff\xfe\n");
	assert_string_equal(reads("{'path':'latin'}"),
			    "latin (lines 1-2 of 2)\n1\tcaf\xef\xbf\xbd\n"
			    "2\t\xef\xbf\xbd\xef\xbf\xbd\n");
	put("one", "\n");
	assert_string_equal(reads("{'path':'one'}"), "one (lines 1-1 of 1)\n1\t\n");
}

TEST(ranges)
{
	put("f", "1\n2\n3\n4\n5\n");
	assert_string_equal(reads("{'path':'f','first_line':2,'last_line':3}"),
			    "f (lines 2-3 of 5)\n2\t2\n3\t3\n(the file goes on: first_line 4)\n");
	assert_string_equal(reads("{'path':'f','first_line':5,'last_line':99}"),
			    "f (lines 5-5 of 5)\n5\t5\n");
	assert_string_equal(reads("{'path':'f','last_line':1}"),
			    "f (lines 1-1 of 5)\n1\t1\n(the file goes on: first_line 2)\n");
	assert_string_equal(fails("{'path':'f','first_line':6}", "bad_arguments"),
			    "f has 5 lines: first_line 6 is behind its end: leave it out to "
			    "read from the beginning");
	assert_holds(fails("{'path':'f','first_line':3,'last_line':2}", "bad_arguments"),
		     "last_line 2 comes before first_line 3");
	fails("{'path':'f','first_line':-1}", "bad_arguments");
	fails("{'path':'f','first_line':9223372036854775807}", "bad_arguments");
}

/* Longer than what is given at once: says how to go on, and going on works. */
TEST(caps)
{
	size_t size = 3000 * 100, len = 0;
	char *text = malloc(size + 1);
	const char *out;

	for (int i = 1; i <= 3000; i++)
		len += (size_t)sprintf(text + len, "short %d\n", i);
	put("many", text);
	out = reads("{'path':'many'}");
	assert_holds(out, "many (lines 1-2000 of 3000)\n");
	assert_holds(out, "\n(the file goes on: first_line 2001)\n");
	out = reads("{'path':'many','first_line':2001}");
	assert_holds(out, "many (lines 2001-3000 of 3000)\n2001\tshort 2001\n");
	assert_lacks(out, "goes on");

	for (len = 0; len < size - 100;)
		len += (size_t)sprintf(text + len, "%090d\n", (int)len);
	put("wide", text);
	out = reads("{'path':'wide','last_line':100000}");
	assert_true(u.call.out.len > TOOL_OUTPUT_MAX * 8 / 10);
	assert_true(u.call.out.len < TOOL_OUTPUT_MAX);
	assert_holds(out, "\n(the file goes on: first_line ");
	assert_holds(out, " of 3296)\n");
	free(text);
}

TEST(long_line)
{
	char *text = malloc(200001);
	const char *out;

	memset(text, 'x', 200000);
	text[200000] = '\0';
	put("min.js", text);
	out = reads("{'path':'min.js'}");
	assert_holds(out, "min.js (lines 1-1 of 1)\n1\txxxx");
	assert_holds(out, "x … [+196000 bytes]\n");
	assert_true(strlen(out) < 4200);
	/* No character is torn: "ä" ends in byte 4,000. */
	memcpy(text, "y", 1);
	for (int i = 1; i < 5001; i += 2)
		memcpy(text + i, "\xc3\xa4", 2);
	text[5001] = '\0';
	put("utf8", text);
	out = reads("{'path':'utf8'}");
	assert_lacks(out, "\xef\xbf\xbd");
	assert_holds(out, "\xc3\xa4 … [+1002 bytes]\n");
	free(text);
}

TEST(binary)
{
	char zeros[100] = "ELF";

	unit_write(in("bin"), zeros, sizeof(zeros));
	assert_string_equal(fails("{'path':'bin'}", "denied"),
			    "bin is binary (100 bytes, a NUL at byte 3): read_file reads text "
			    "only");
}

TEST(late_nul)
{
	char *text = malloc(10001);

	memset(text, 'x', 10000);
	for (int i = 79; i < 10000; i += 80)
		text[i] = '\n';
	text[9990] = '\0';
	unit_write(in("late"), text, 10000);
	assert_holds(reads("{'path':'late','first_line':125}"), "125\txxx");
	assert_holds(u.call.out.data, "xx\xef\xbf\xbdxx");
	free(text);
}

TEST(refused)
{
	char json[700];

	put("sub/f", "x\n");
	assert_int_equal(mkfifo(in("fifo"), 0600), 0);
	assert_int_equal(symlink("/etc/passwd", in("passwd")), 0);
	assert_int_equal(symlink("sub/f", in("link")), 0);
	/* test_tool_root.c has all that is outside. */
	assert_holds(fails("{'path':'passwd'}", "denied"), "leads outside");
	assert_holds(fails("{'path':'fifo'}", "denied"), "FIFO");
	assert_holds(fails("{'path':'sub'}", "denied"), "folder");
	assert_holds(fails("{'path':'nope.c'}", "not_found"), "search_codebase can find it");
	fails("{'path':''}", "bad_arguments");
	assert_holds(fails("{'path':'a\\u0000b'}", "bad_arguments"), "NUL");
	assert_holds(reads("{'path':'link'}"), "link (lines 1-1 of 1)\n1\tx\n");
	snprintf(json, sizeof(json), "{'path':'%s/sub/f'}", u.dir);
	assert_holds(reads(json), "sub/f (lines 1-1 of 1)");
}

TEST(no_folder)
{
	int fd = u.env.cwd_fd;

	u.env.cwd_fd = -1;
	tool_unit_start("read_file", "{'path':'x'}");
	assert_int_equal(u.done, 1); /* nothing to wait for */
	assert_false(u.call.success);
	assert_string_equal(u.call.error_class, "denied");
	assert_holds(u.call.out.data, "this run has no working folder; ");
	u.env.cwd_fd = fd;
}

static long long bytes_read(void)
{
	FILE *f = fopen("/proc/self/io", "re");
	long long n = 0;

	if (f && fscanf(f, "rchar: %lld", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n;
}

/* 5 GB of nothing: refused at once; behind text it is one endless line. */
TEST(sparse)
{
	long long before = bytes_read();
	char text[9001];
	int fd;

	put("hole", "");
	assert_int_equal(truncate(in("hole"), 5ll << 30), 0);
	assert_holds(fails("{'path':'hole'}", "denied"), "binary");
	memset(text, 'x', 9000);
	text[8999] = '\n';
	text[9000] = '\0';
	put("tail", text);
	assert_int_equal(truncate(in("tail"), 5ll << 30), 0);
	assert_holds(reads("{'path':'tail'}"), "tail (lines 1-2 of 2+)\n1\txxx");
	assert_true(strlen(u.call.out.data) < 20000);
	assert_true(bytes_read() - before < 512 << 20); /* what is counted is bounded */
	fd = open(in("tail"), O_WRONLY);
	assert_int_equal(pwrite(fd, "\nlast", 5, (5ll << 30) - 5), 5);
	close(fd);
	assert_holds(reads("{'path':'tail','last_line':1}"), "tail (lines 1-1 of 2+)\n");
}

/* A stop while it counts in a large file ends it within 100 ms. */
TEST(stop)
{
	char text[9001];
	bool soon = false;

	memset(text, 'x', 9000);
	text[8999] = '\n';
	text[9000] = '\0';
	put("big", text);
	assert_int_equal(truncate(in("big"), 50ll << 30), 0);
	/* Other programs may have the processor: one of twenty will do. */
	for (int i = 0; i < 20 && !soon; i++)
		soon = tool_unit_stop("read_file", "{'path':'big','first_line':3}");
	assert_true(soon);
	/* One that was stopped before it began does nothing. */
	atomic_store(&u.call.stop, true);
	tool_unit_fails("read_file", "{'path':'big'}", "cancelled");
	atomic_store(&u.call.stop, false);
}

/* Short enough to be read at once, and too long for it. */
TEST(lengths_at_the_border)
{
	static char text[32770];
	const long sizes[] = {32766, 32767, 32768, 32769};

	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char want[64], path[400];
		const char *got;
		FILE *f;

		snprintf(path, sizeof(path), "%s/border", u.dir);
		f = fopen(path, "w");
		assert_non_null(f);
		fwrite("first\n", 1, 6, f);
		fwrite(text, 1, (size_t)sizes[i] - 11, f);
		fwrite("\nlast", 1, 5, f);
		fclose(f);
		got = reads("{'path':'border','first_line':3}");
		snprintf(want, sizeof(want), "border (lines 3-3 of 3)\n3\tlast\n");
		assert_string_equal(got, want);
	}
}

TEST(no_memory)
{
	static char text[40001];

	put("f", "a\nb\n");
	tool_unit_starve("read_file", "{'path':'f'}", NULL, 1);
	memset(text, 'x', 40000);
	put("long", text);
	tool_unit_starve("read_file", "{'path':'long'}", NULL, 4);
}

TEST(activity)
{
	const struct tool *t = tool_find("read_file");
	TEST_BUF(out, 1000);
	json_t *args;

	args = json_pack("{s:s,s:i,s:i}", "path", "src/a.c", "first_line", 10, "last_line", 60);
	t->activity(args, &out);
	assert_string_equal(out.data, "Reading src/a.c:10-60");
	json_decref(args);
	buf_reset(&out);
	args = json_pack("{s:s}", "path", "a");
	t->activity(args, &out);
	assert_string_equal(out.data, "Reading a");
	json_decref(args);
}

UNIT_GROUP(.before = tool_unit_open, .after = tool_unit_close);

/* search_codebase over trees: what is found, in which form, what is left out
 * and said, and that it ends. */
#include "tool_unit.h"

#include "codec/redact.h"

#include "base/util.h"
#include "tool/root.h"

static const char *finds(const char *args)
{
	return tool_unit_ok("search_codebase", args);
}

static const char *fails(const char *args, const char *class)
{
	return tool_unit_fails("search_codebase", args, class);
}

TEST(form)
{
	put("src/b.c", "x\n\tfoo(1);\nfoo foo\n");
	put("src/a.c", "no\r\nfoo\r\n");
	put("README", "see foo");
	put("empty", "");
	assert_string_equal(finds("{'pattern':'foo'}"),
			    "README:1:see foo\n"
			    "src/a.c:2:foo\n"
			    "src/b.c:2:\tfoo(1);\n"
			    "src/b.c:3:foo foo\n"
			    "4 matches in 3 files (4 files searched)\n");
	assert_string_equal(finds("{'pattern':'foo','path':'src','glob':'a*'}"),
			    "src/a.c:2:foo\n1 match in 1 file (1 file searched)\n");
	assert_string_equal(finds("{'pattern':'foo','path':'src/a.c'}"),
			    "src/a.c:2:foo\n1 match in 1 file (1 file searched)\n");
	assert_string_equal(finds("{'pattern':'FOO','ignore_case':true,'glob':'src/*.{c,h}'}"),
			    "src/a.c:2:foo\nsrc/b.c:2:\tfoo(1);\nsrc/b.c:3:foo foo\n"
			    "3 matches in 2 files (2 files searched)\n");
	assert_string_equal(finds("{'pattern':'fo+$','regex':true}"),
			    "README:1:see foo\nsrc/a.c:2:foo\nsrc/b.c:3:foo foo\n"
			    "3 matches in 3 files (4 files searched)\n");
	assert_string_equal(finds("{'pattern':'fo+'}"),
			    "no matches for \"fo+\" (4 files searched)\n");
	assert_string_equal(finds("{'pattern':'foo','glob':'*.py'}"),
			    "no matches for \"foo\" (0 files searched); the glob fits no file\n");
}

/* Options of other search programs are text here. */
TEST(plain_text)
{
	put("a", "--pre=sh\n-f/etc/shadow\n-e x\n$(id) `id` ;id\n");
	assert_holds(finds("{'pattern':'--pre=sh'}"), "a:1:--pre=sh\n1 match");
	assert_holds(finds("{'pattern':'-f/etc/shadow'}"), "a:2:-f/etc/shadow\n1 match");
	assert_holds(finds("{'pattern':'-e'}"), "a:3:-e x\n");
	assert_holds(finds("{'pattern':'$(id) `id` ;id'}"), "a:4:");
	assert_holds(finds("{'pattern':'--help'}"), "no matches for \"--help\"");
}

TEST(results_are_bounded)
{
	char *text = malloc(4u << 20);
	size_t len = 0;

	for (int i = 1; i <= 600; i++)
		len += (size_t)sprintf(text + len, "foo %d\n", i);
	put("a", text);
	put("b", "foo\n");
	assert_holds(finds("{'pattern':'foo'}"),
		     "a:50:foo 50\n50 matches in 1 file (1 file searched); there are more: ");
	assert_holds(finds("{'pattern':'foo','max_results':500}"),
		     "a:500:foo 500\n500 matches in 1");
	assert_holds(finds("{'pattern':'foo','max_results':600}"),
		     "600 matches in 1 file (2 files searched); there are more");
	assert_lacks(finds("{'pattern':'foo','max_results':601}"), "there are more");
	free(text);
}

TEST(long_lines)
{
	char *text = malloc(100002);

	memset(text, 'x', 100000);
	memcpy(text, "foo", 3);
	memcpy(text + 50000, "needle", 6);
	strcpy(text + 100000, "\n");
	put("min.js", text);
	assert_holds(finds("{'pattern':'foo'}"), "min.js:1:fooxxx");
	assert_holds(u.call.out.data, "xxx…\n1 match");
	assert_true(u.call.out.len < 400);
	assert_holds(finds("{'pattern':'needle'}"), "min.js:1:…xxx");
	assert_holds(u.call.out.data, "xxneedlexx");
	assert_true(u.call.out.len < 400);
	for (int i = 0; i < 1000; i += 2)
		memcpy(text + i, "\xc3\xa4", 2);
	put("utf8", text);
	assert_lacks(finds("{'pattern':'\xc3\xa4','path':'utf8'}"), "\xef\xbf\xbd");
	free(text);
}

/* An ignore file made to take forever is left out, which is said; that of another folder holds. */
TEST(slow_rules)
{
	char *rules = malloc(20000 * 32), name[210] = "sub/", text[] = "foo\n";
	size_t len = 0;

	for (int i = 0; i < 20000; i++)
		len += (size_t)sprintf(rules + len, "*a*a*a*a*a*a*a*a*a*a*b%d\n", i);
	put("sub/.gitignore", rules);
	put(".gitignore", "*.tmp\n");
	put("sub/c.tmp", text);
	put("sub/zab0", text);
	memset(name + 4, 'a', 200);
	put(name, text);
	name[4] = 'b';
	put(name, text);
	assert_holds(finds("{'pattern':'foo'}"), "3 matches in 3 files (5 files searched, 1 ignore "
						 "files that are too slow");
	free(rules);
}

TEST(left_out)
{
	char *big = calloc(1, 6u << 20), zeros[20] = "foo";
	char name[300];

	put("a", "foo\n");
	unit_write(in("bin"), zeros, sizeof(zeros));
	memset(big, 'y', 6u << 20);
	memcpy(big, "foo\n", 4);
	unit_write(in("big"), big, 6u << 20);
	put(".git/config", "foo\n");
	put("sub/.git", "gitdir: foo\n");
	put("new\nline", "foo\n");
	put("no\xfftext", "foo\n");
	put("esc\033[2J", "foo\n");
	put("latin", "foo caf\xe9\n");
	snprintf(name, sizeof(name), "%s/outside", u.top);
	unit_write(name, "foo\n", 4);
	assert_int_equal(symlink("../outside", in("link")), 0);
	assert_int_equal(symlink("a", in("link2")), 0);
	assert_int_equal(symlink("..", in("updir")), 0);
	assert_int_equal(symlink(".", in("loop")), 0);
	assert_int_equal(mkfifo(in("fifo"), 0600), 0);
	assert_string_equal(
		finds("{'pattern':'foo'}"),
		"a:1:foo\nlatin:1:foo caf\xef\xbf\xbd\n"
		"2 matches in 2 files (2 files searched, 1 skipped as binary, 1 skipped "
		"as over 5 MB, 3 skipped for names that are no text)\n");
	assert_holds(fails("{'pattern':'foo','path':'link'}", "denied"), "leads outside");
	assert_holds(fails("{'pattern':'foo','path':'nope'}", "not_found"), "no file nope");
	assert_holds(fails("{'pattern':'foo','path':'fifo'}", "denied"), "is a FIFO");
	free(big);
}

TEST(no_permission)
{
	if (geteuid() == 0) {
		print_message("root may read everything\n");
		skip();
	}
	put("a", "foo\n");
	put("b", "foo\n");
	put("sub/c", "foo\n");
	chmod(in("b"), 0);
	chmod(in("sub"), 0);
	assert_string_equal(finds("{'pattern':'foo'}"),
			    "a:1:foo\n1 match in 1 file (1 file searched, 2 unreadable)\n");
	chmod(in("sub"), 0700);
}

TEST(bad_patterns)
{
	put("a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\n");
	assert_holds(fails("{'pattern':'a(','regex':true}", "bad_arguments"),
		     "leave regex out to search for it as plain text");
	assert_holds(fails("{'pattern':'(a|aa)+$','regex':true}", "bad_arguments"),
		     "needs too much work");
	assert_holds(fails("{'pattern':'(a+)+$','regex':true}", "bad_arguments"),
		     "needs too much work");
	fails("{'pattern':''}", "bad_arguments");
	assert_holds(fails("{'pattern':'a\\nb'}", "bad_arguments"), "line break");
	assert_holds(fails("{'pattern':'a\\u0000b'}", "bad_arguments"), "NUL");
	fails("{'pattern':'a','glob':'{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}'}", "bad_arguments");
}

TEST(ignore_files)
{
	put(".git/info/exclude", "*.info\n");
	put(".gitignore", "*.o\n/build/\n!keep.o\n");
	put("x.o", "foo\n");
	put("x.info", "foo\n");
	put("keep.o", "foo\n");
	put("build/a", "foo\n");
	put("src/build/a", "foo\n");
	put("src/.gitignore", "local\n!x.o\n");
	put("src/local", "foo\n");
	put("src/x.o", "foo\n");
	put("src/deep/local", "foo\n");
	put("src/deep/y.o", "foo\n");
	assert_string_equal(finds("{'pattern':'foo','max_results':100}"),
			    "keep.o:1:foo\nsrc/build/a:1:foo\nsrc/x.o:1:foo\n"
			    "3 matches in 3 files (5 files searched)\n");
	/* The rules above hold for a search that begins further down. */
	assert_string_equal(finds("{'pattern':'foo','path':'src/deep'}"),
			    "no matches for \"foo\" (0 files searched)\n");
	/* What is asked for by name is searched. */
	assert_holds(finds("{'pattern':'foo','path':'build'}"), "build/a:1:foo\n");
	assert_holds(finds("{'pattern':'foo','path':'src/local'}"), "src/local:1:foo\n");
	/* An ignore file that is a link is not read: it may lead anywhere. */
	assert_int_equal(unlink(in(".gitignore")), 0);
	assert_int_equal(symlink("src/.gitignore", in(".gitignore")), 0);
	assert_holds(finds("{'pattern':'foo'}"), "build/a:1:foo\n");
}

/* ---- the walk, against git */

static int collect(void *user, int dirfd, const char *name, const char *path)
{
	struct buf *list = user;
	int fd = root_open_entry(dirfd, name, false);

	assert_true(fd >= 0);
	close(fd);
	return buf_addf(list, "%s\n", path);
}

static int go_on(void *user)
{
	return 0;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lines of `text` in the order of their bytes. */
static void sort_lines(char *text)
{
	char *lines[500], *copy = strdup(text), *at = copy;
	size_t n = 0;

	for (char *line; (line = strsep(&at, "\n")) != NULL && *line != '\0';)
		lines[n++] = line;
	qsort(lines, n, sizeof(*lines), compare_lines);
	*text = '\0';
	for (size_t i = 0; i < n; i++) {
		text = stpcpy(text, lines[i]);
		text = stpcpy(text, "\n");
	}
	free(copy);
}

TEST(walk_against_git)
{
	static const char *const files[] = {
		"a.o",
		"a.c",
		"b/a.o",
		"b/a.c",
		"b/c/a.o",
		"b/c/d/x",
		"b/c/d/keep",
		"t/x.log",
		"t/u/y.log",
		"t/u/z",
		"t-1",
		"t.c",
		"node_modules/m/i.js",
		"b/node_modules/j",
		"out/x",
		"b/out/x",
		"s p/a b",
		"\xc3\xa4/\xc3\xb6",
		".hidden/x",
		".env",
	};
	struct root root = {.fd = u.env.cwd_fd, .cwd = u.dir};
	struct buf list;
	struct walk w = {
		.root = &root,
		.start = ".",
		.file = collect,
		.poll = go_on,
		.user = &list,
	};
	char cmd[900], *theirs = calloc(1, 20000);
	FILE *git;

	if (system("git --version >/dev/null 2>&1") != 0) {
		print_message("git is not installed\n");
		skip();
	}
	setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
	setenv("GIT_CONFIG_SYSTEM", "/dev/null", 1);
	setenv("HOME", u.top, 1);
	snprintf(cmd, sizeof(cmd), "git init -q '%s' 2>/dev/null", u.dir);
	assert_int_equal(system(cmd), 0);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		put(files[i], "x\n");
	put(".git/info/exclude", "# mine\n.env\n*.log\n");
	put(".gitignore", "*.o\nnode_modules/\n/out\n");
	put("b/.gitignore", "!a.o\nc/d/*\n!c/d/keep\n");
	put("t/.gitignore", "!*.log\n/u/*.log\n");
	buf_init(&list, 20000);
	assert_int_equal(walk_run(&w, NULL), 0);
	snprintf(cmd, sizeof(cmd),
		 "cd '%s' && git -c core.quotePath=false ls-files -o --exclude-standard", u.dir);
	git = popen(cmd, "re");
	assert_non_null(git);
	assert_true(fread(theirs, 1, 19999, git) > 100);
	pclose(git);
	sort_lines(list.data);
	sort_lines(theirs);
	assert_string_equal(list.data, theirs);
	buf_fini(&list);
	free(theirs);
}

/* ---- large trees */

TEST(deep)
{
	int fd = open(u.dir, O_RDONLY | O_DIRECTORY), next;

	put("a", "foo\n");
	for (int i = 0; i < WALK_DEPTH_MAX + 5; i++) {
		assert_int_equal(mkdirat(fd, "d", 0700), 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY);
		close(fd);
		fd = next;
	}
	close(fd);
	assert_string_equal(finds("{'pattern':'foo'}"),
			    "a:1:foo\n1 match in 1 file (1 file searched, 1 folders too deep)\n");
}

static void make_tree(int dirs, int files)
{
	char path[100];

	for (int d = 0; d < dirs; d++) {
		for (int f = 0; f < files; f++) {
			snprintf(path, sizeof(path), "d%d/f%d", d, f);
			put(path, f == 0 ? "foo bar\n" : "bar\nbaz\n");
		}
	}
}

/* Same answer each time, whatever order the disk has. */
TEST(order)
{
	char *first;

	make_tree(12, 12);
	first = strdup(finds("{'pattern':'foo'}"));
	assert_holds(first, "d0/f0:1:foo bar\nd1/f0:1:foo bar\nd10/f0:1:foo bar\nd11/f0:");
	assert_string_equal(finds("{'pattern':'foo'}"), first);
	free(first);
}

TEST(stop)
{
	bool soon = false;
	char text[4097];

	/* A tree that is slow to search: lines a regex has to work on. */
	memset(text, 'a', sizeof(text));
	text[4096] = '\0';
	for (int i = 0; i < 64; i++)
		text[i * 64 + 63] = '\n';
	for (int d = 0; d < 60; d++) {
		char path[60];

		for (int f = 0; f < 50; f++) {
			snprintf(path, sizeof(path), "d%d/f%d", d, f);
			put(path, text);
		}
	}
	for (int i = 0; i < 20 && !soon; i++)
		soon = tool_unit_stop("search_codebase",
				      "{'pattern':'(a{1,9}){3}[ab]*[^a]c|(?=b)b','regex':true}");
	assert_true(soon);
}

/* Ten searches at once on the pool, in one folder: nothing is shared. */
TEST(together)
{
	static struct tool_call calls[10];
	struct tool_unit *all = &u;
	json_auto_t *args = json_pack("{s:s,s:b}", "pattern", "fo+", "regex", 1);

	make_tree(10, 10);
	u.done = 0;
	for (int i = 0; i < 10; i++) {
		calls[i] = (struct tool_call){
			.tool = tool_find("search_codebase"),
			.id = "c1.1",
			.args = args,
			.env = &u.env,
			.done = tool_unit_done,
			.user = all,
		};
		buf_init(&calls[i].out, TOOL_FULL_MAX);
		calls[i].tool->start(&calls[i]);
	}
	while (u.done < 10)
		os_loop_step(u.loop, 1000);
	for (int i = 0; i < 10; i++) {
		assert_true(calls[i].success);
		assert_holds(calls[i].out.data, "10 matches in 10 files (100 files searched)\n");
		buf_fini(&calls[i].out);
	}
}

TEST(no_memory)
{
	put(".gitignore", "*.o\n");
	put("src/a", "foo\n");
	tool_unit_starve("search_codebase", "{'pattern':'fo+','regex':true}",
			 "src/a:1:foo\n1 match in 1 file (2 files searched)\n", 8);
}

/* A line that is cut in the middle of a secret gives no half of it, wherever it is cut. */
TEST(secrets_at_a_cut)
{
	static const char secret[] = "zebra-crossing-4711-violin-0815-marmalade-2342";
	static const char key[] = "sk-ant-api03-QWERTYUIOPASDFGH1234567890";
	char line[6000], args[100];
	struct redact *r = redact_new();
	size_t len = 0;

	assert_int_equal(redact_add(r, secret), 0);
	u.env.redact = r;
	for (int i = 0; len < sizeof(line) - 200; i++) {
		len += (size_t)sprintf(line + len, "w%03d ", i);
		if (i % 25 == 24 || (len > 3965 && len < 3990)) /* read_file cuts at 4,000 */
			len += (size_t)sprintf(line + len, "%s %s ", secret, key);
	}
	put("secret.txt", line);
	for (int i = 0; i < 600; i++) {
		const char *tool = i % 3 == 0   ? "search_codebase"
				   : i % 3 == 1 ? "search_and_read"
						: "read_file";

		if (i % 3 < 2)
			snprintf(args, sizeof(args), "{'pattern':'w%03d '}", i / 3);
		else
			snprintf(args, sizeof(args), "{'path':'secret.txt'}");
		tool_unit_ok(tool, args);
		for (size_t at = 0; at + 8 < sizeof(secret); at += 4) {
			char part[9];

			snprintf(part, sizeof(part), "%.8s", secret + at);
			assert_lacks(u.call.out.data, part);
		}
		assert_lacks(u.call.out.data, "sk-ant");
		assert_lacks(u.call.out.data, "QWERTY");
	}
	u.env.redact = NULL;
	redact_free(r);
}

/* ava's own folders are passed over, and refused by name, through a link, and as the place
 * where a run works. */
TEST(own_folders)
{
	char *own, *data, link[400];
	const char *kept[3] = {NULL};
	int outer = u.env.cwd_fd;

	put("src/a", "needle\n");
	put(".config/ava/env", "KEY=needle\n");
	put("data/logs/x", "needle\n");
	put("database", "needle\n");
	kept[0] = own = realpath(in(".config/ava"), NULL);
	kept[1] = data = realpath(in("data"), NULL);
	snprintf(link, sizeof(link), "%s", in("src/link"));
	assert_int_equal(symlink("../data/logs/x", link), 0);
	u.env.keep_out = kept;
	assert_string_equal(tool_unit_ok("search_codebase", "{'pattern':'needle'}"),
			    "database:1:needle\nsrc/a:1:needle\n"
			    "2 matches in 2 files (2 files searched)\n");
	assert_lacks(tool_unit_ok("list_files", "{}"), "env");
	assert_holds(tool_unit_fails("read_file", "{'path':'.config/ava/env'}", "denied"),
		     ".config/ava/env belongs to ava itself");
	assert_holds(tool_unit_fails("read_file", "{'path':'src/link'}", "denied"), "ava itself");
	assert_holds(
		tool_unit_fails("search_codebase", "{'pattern':'x','path':'data/logs'}", "denied"),
		"ava itself");
	assert_holds(tool_unit_fails("search_codebase", "{'pattern':'x','path':'data/logs/x'}",
				     "denied"),
		     "ava itself");
	u.env.cwd_fd = open(in("data/logs"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_holds(tool_unit_fails("search_codebase", "{'pattern':'needle'}", "denied"),
		     "ava itself");
	assert_holds(tool_unit_fails("read_file", "{'path':'x'}", "denied"), "ava itself");
	close(u.env.cwd_fd);
	u.env.cwd_fd = outer;
	u.env.keep_out = NULL;
	free(own);
	free(data);
}

TEST(no_folder)
{
	int fd = u.env.cwd_fd;

	u.env.cwd_fd = -1;
	assert_holds(fails("{'pattern':'x'}", "denied"), "this run has no working folder; ");
	u.env.cwd_fd = fd;
}

TEST(activity)
{
	const struct tool *t = tool_find("search_codebase");
	static const struct {
		const char *pattern;
		bool regex;
		const char *said;
	} cases[] = {
		{"foo", false, "Searching \"foo\" in src"},
		{"a(\"b\")\n\\d", false, "Searching \"a(\"b\") \\d\" in src"},
		{"data.{0,5}root", true, "Searching \"data root\" in src"},
		{"refuse|root", true, "Searching \"refuse or root\" in src"},
		{"(?:struct|enum)\\s+x\\b", true, "Searching \"struct or enum x\" in src"},
		{"^\\s*#define[ \t]+EAGAIN$", true, "Searching \"#define EAGAIN\" in src"},
		{"main\\(", true, "Searching \"main(\" in src"},
		{"colou?r{2}|", true, "Searching \"colour\" in src"},
		{".*", true, "Searching \".*\" in src"},
		{"[", true, "Searching \"[\" in src"},
		{"\\", true, "Searching \"\\\" in src"},
		{"0123456789 0123456789 0123456789 0123456789 0123456789 0123456789", false,
		 "Searching \"0123456789 0123456789 0123456789 0123456…\" in "
		 "src"},
	};
	struct buf out;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_auto_t *args = json_pack("{s:s,s:s,s:b}", "pattern", cases[i].pattern, "path",
					      "src", "regex", cases[i].regex);

		buf_init(&out, 1000);
		t->activity(args, &out);
		assert_string_equal(out.data, cases[i].said);
		buf_fini(&out);
	}
}

UNIT_GROUP(.before = tool_unit_open, .after = tool_unit_close);

/* Ignore rules against a table, and both the table and random rules against
 * git itself where it is installed. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/util.h"
#include "tool/ignore.h"

/* Paths with a slash at their end are folders. */
static const struct {
	const char *rules, *path;
	bool ignored;
} cases[] = {
	{"", "a", false},
	{"a", "a", true},
	{"a", "b", false},
	{"a", "x/y/a", true},
	{"a", "a/x", true}, /* by its folder */
	{"/a", "a", true},
	{"/a", "x/a", false},
	{"a/", "a", false},
	{"a/", "a/", true},
	{"a/", "x/a/", true},
	{"a/", "a/b/c", true},
	{"a/b", "a/b", true},
	{"a/b", "x/a/b", false},
	{"/a/b", "a/b", true},
	{"*.o", "x.o", true},
	{"*.o", "d/x.o", true},
	{"*.o", "x.oo", false},
	{"*.o", ".o", true},
	{"d/*.o", "d/x.o", true},
	{"d/*.o", "d/e/x.o", false},
	{"d/**/x.o", "d/x.o", true},
	{"d/**/x.o", "d/e/f/x.o", true},
	{"**/x.o", "x.o", true},
	{"**/x.o", "a/b/x.o", true},
	{"**/d/x", "a/d/x", true},
	{"**/d/x", "a/d/y", false},
	{"d/**", "d/x", true},
	{"d/**", "d/", false},
	{"d/**", "d/e/f", true},
	{"a**b", "axxb", true},
	{"a**b", "ab", true},
	{"d/a**b", "d/ax/yb", false},
	{"d/a**/b", "d/ax/y/b", true}, /* as git does: the part behind "d/a" begins with ** */
	{"d/?a**b", "d/xay/yb", false},
	{"***", "x", true},
	{"?", "x", true},
	{"?", "xy", false},
	{"d?x", "d/x", false},
	{"d*x", "d/x", false},
	{"[ab]", "a", true},
	{"[ab]", "c", false},
	{"[!ab]", "c", true},
	{"[^ab]", "a", false},
	{"[a-c]x", "bx", true},
	{"[a-c]x", "dx", false},
	{"[]x]", "]", true},
	{"[a-]", "-", true},
	{"[\\]x]", "]", true},
	{"[[:digit:]]", "7", true},
	{"[[:digit:]]", "d", false},
	{"[[:nope:]]", "n", false},
	{"[[:digit]", "d", true}, /* no class: the characters of it */
	{"[ab", "a", false},      /* not closed */
	{"[ab", "[ab", false},
	{"d[/]x", "d/x", false},
	{"\\*", "*", true},
	{"\\*", "x", false},
	{"\\#x", "#x", true},
	{"#x", "#x", false},
	{"\\!x", "!x", true},
	{"x ", "x", true}, /* spaces at the end do not count */
	{"x\\ ", "x ", true},
	{" x", " x", true},
	{" x", "x", false},
	{"x\t", "x", false},
	{"x\r\n", "x", true},
	{"\xef\xbb\xbfx", "x", true},
	{"*\n!x", "x", false},
	{"*\n!x", "y", true},
	{"!x\n*", "x", true},
	{"*.o\n!keep.o\nkeep.o", "keep.o", true},
	{"d/\n!d/x", "d/x", true}, /* nothing inside an ignored folder comes back */
	{"d/*\n!d/x", "d/x", false},
	{"/*\n!/d\n/d/*\n!/d/x", "d/x", false},
	{"/*\n!/d\n/d/*\n!/d/x", "d/y", true},
	{"!", "x", false},
	{"/", "x", false},
	{"x\\", "x", false},
	{"x\\", "x\\", false},
	{"d//x", "d/x", false},
	{"d/", "dd/", false},
	{"foo/bar/", "foo/barbaz/", false},
	{"b*d/e", "bcd/e", true},
	{"*/e", "bcd/e", true},
	{"*/e", "b/c/e", false},
	{"**", "b/c/e", true},
	{"*a*b*c", "xaxbxc", true},
	{"\xc3\xa4?", "\xc3\xa4x", true},
};

/* As a walk sees it: what is inside of an ignored folder is not looked at. */
static bool ignored(struct ignore *ig, const char *path)
{
	char part[256];
	size_t len = strlen(path);

	for (size_t i = 1; i <= len; i++) {
		bool last = i == len || (i + 1 == len && path[i] == '/');

		if (!last && path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (ignore_match(ig, part, path[i] == '/'))
			return true;
		if (last)
			return false;
	}
	return false;
}

TEST(table)
{
	assert_true(ARRAY_LEN(cases) >= 40);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ignore *ig = ignore_new();

		assert_int_equal(
			ignore_push(ig, IGNORE_FOLDER, "", cases[i].rules, strlen(cases[i].rules)),
			0);
		if (ignored(ig, cases[i].path) != cases[i].ignored)
			fail_msg("\"%s\" on \"%s\": expected %d", cases[i].rules, cases[i].path,
				 cases[i].ignored);
		ignore_free(ig);
	}
}

/* The deepest file decides, then the ones above, then .git/info/exclude. */
TEST(levels)
{
	struct ignore *ig = ignore_new();
	size_t mark;

	ignore_push(ig, IGNORE_INFO, "", "*.i\n*.log\n", 10);
	ignore_push(ig, IGNORE_FOLDER, "", "*.o\n!x.log\n", 11);
	mark = ignore_mark(ig);
	ignore_push(ig, IGNORE_FOLDER, "d", "!k.o\n/here\n", 11);
	assert_true(ignore_match(ig, "a.i", false));
	assert_true(ignore_match(ig, "d/a.i", false));
	assert_true(ignore_match(ig, "y.log", false));
	assert_false(ignore_match(ig, "x.log", false));
	assert_true(ignore_match(ig, "k.o", false));
	assert_false(ignore_match(ig, "d/k.o", false));
	assert_true(ignore_match(ig, "d/a.o", false));
	assert_true(ignore_match(ig, "d/here", false));
	assert_false(ignore_match(ig, "here", false));
	assert_false(ignore_match(ig, "dd/here", false));
	ignore_pop(ig, mark);
	assert_true(ignore_match(ig, "d/k.o", false));
	assert_false(ignore_match(ig, "d/here", false));
	ignore_free(ig);
}

/* Rules that take too long count as none, as a whole file, and others stay. */
TEST(steps)
{
	static const char pattern[] = "*a*a*a*a*a*a*a*a*a*a*b%d\n";
	struct ignore *ig = ignore_new();
	char text[206], *many = malloc(20000 * (sizeof(pattern) + 5));
	size_t len = 0;

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memcpy(text, "sub/a", 5);
	for (int i = 0; i < 20000; i++)
		len += (size_t)sprintf(many + len, pattern, i);
	assert_int_equal(ignore_push(ig, IGNORE_FOLDER, "", "*.[oa]\n", 7), 0);
	assert_int_equal(ignore_push(ig, IGNORE_FOLDER, "sub", many, len), 0);
	assert_true(ignore_match(ig, "sub/aaaaaaaaaaab7", false));
	assert_int_equal(ignore_given_up(ig), 0);
	for (int i = 0; i < 3000; i++)
		assert_false(ignore_match(ig, text, false));
	assert_int_equal(ignore_given_up(ig), 1);
	assert_false(ignore_match(ig, "sub/aaaaaaaaaaab7", false));
	assert_true(ignore_match(ig, "sub/x.o", false));
	for (int i = 0; i < 100000; i++) /* what others have is never used up */
		assert_true(ignore_match(ig, "sub/deep/down/some/file/of/a/project.o", false));
	len = 0;
	for (int i = 0; i < 30; i++)
		len += (size_t)sprintf(many + len, "**/*.Client%d/[Gg]enerated\n", i);
	assert_int_equal(ignore_push(ig, IGNORE_FOLDER, "", many, len), 0);
	for (int i = 0; i < 10000; i++)
		assert_false(ignore_match(ig, "sub/deep/down/some/file/of/a/large/project/Of.cs",
					  false));
	assert_int_equal(ignore_given_up(ig), 1);
	ignore_free(ig);
	free(many);
}

/* A class costs what it takes to read it. */
TEST(classes)
{
	struct ignore *ig = ignore_new();
	struct buf rules;
	char text[201];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	buf_init(&rules, 1 << 20);
	for (int i = 0; i < 4; i++) {
		buf_adds(&rules, "*[");
		for (int k = 0; k < 500; k++)
			buf_adds(&rules, "[:");
		buf_adds(&rules, "x]\n");
	}
	assert_int_equal(ignore_push(ig, IGNORE_FOLDER, "", rules.data, rules.len), 0);
	assert_false(ignore_match(ig, text, false));
	assert_int_equal(ignore_given_up(ig), 1);
	buf_fini(&rules);
	ignore_free(ig);
}

/* Rules made to take forever match nothing, soon; what only looked so matches. */
TEST(bounds)
{
	struct ignore *ig = ignore_new();
	char text[200], *many = malloc(3u << 20);
	size_t len = 0;

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(ignore_push(ig, IGNORE_FOLDER, "", "a*a*a*a*a*a*a*a*a*a*a*a*b\n", 26), 0);
	assert_false(ignore_match(ig, text, false));
	assert_false(wild_match("**/**/**/**/**/**/**/**/**/**/**/**/b", 37, text, 199, true));
	assert_true(wild_match("*a*a*a*a*a*a*a*a*a*a*a*a*", 25, text, 199, true));
	while (len < (3u << 20) - 8)
		len += (size_t)sprintf(many + len, "n%zu\n", len % 9973);
	assert_int_equal(ignore_push(ig, IGNORE_FOLDER, "", many, len), 0);
	assert_true(ignore_match(ig, "n0", false));
	/* The rest is left out, once there are too many. */
	assert_int_equal(ignore_push(ig, IGNORE_FOLDER, "", "zz\n", 3), 0);
	assert_false(ignore_match(ig, "zz", false));
	ignore_pop(ig, 0);
	assert_int_equal(ignore_push(ig, IGNORE_FOLDER, "", "zz\n", 3), 0);
	assert_true(ignore_match(ig, "zz", false));
	ignore_free(ig);
	free(many);
}

static void push_and_match(void)
{
	struct ignore *ig = ignore_new();

	if (ig != NULL) {
		if (ignore_push(ig, IGNORE_FOLDER, "d", "*.o\n", 4) == 0)
			assert_true(ignore_match(ig, "d/x.o", false));
		else
			assert_int_equal(ignore_mark(ig), 0);
		ignore_free(ig);
	}
}

TEST(no_memory)
{
	FAULT_LOOP(k, push_and_match());
}

/* ---- git */

static bool have_git(void)
{
	return system("git --version >/dev/null 2>&1") == 0;
}

static void git_init(const char *dir)
{
	char cmd[600];

	setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
	setenv("GIT_CONFIG_SYSTEM", "/dev/null", 1);
	setenv("HOME", dir, 1);
	snprintf(cmd, sizeof(cmd), "git init -q '%s' 2>/dev/null", dir);
	assert_int_equal(system(cmd), 0);
}

static void make(const char *dir, const char *path)
{
	char full[600];
	size_t base = strlen(dir) + 1;

	snprintf(full, sizeof(full), "%s/%s", dir, path);
	for (char *p = full + base; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		mkdir(full, 0700);
		*p = '/';
	}
	if (full[strlen(full) - 1] != '/')
		unit_write(full, "", 0);
}

static size_t bare_len(const char *path)
{
	size_t len = strlen(path);

	return len - (path[len - 1] == '/');
}

/* What git says about the paths, one a line in `list`: a string of 0 and 1. */
static void git_ask(const char *dir, const char *list, char *answers, size_t size)
{
	char cmd[900], line[600], full[300];
	FILE *out;
	size_t n = 0;

	snprintf(full, sizeof(full), "%s/.git/list", dir);
	unit_write(full, list, strlen(list));
	snprintf(cmd, sizeof(cmd),
		 "cd '%s' && git -c core.quotePath=false check-ignore --no-index -n -v --stdin "
		 "<.git/list",
		 dir);
	out = popen(cmd, "re");
	assert_non_null(out);
	while (fgets(line, sizeof(line), out) != NULL) {
		/* "file:line:pattern<TAB>path"; "::" without a rule; a rule
		 * that begins with ! un-ignores. */
		const char *rule = strchr(line, ':');

		rule = rule != NULL ? strchr(rule + 1, ':') : NULL;
		assert_non_null(rule);
		assert_true(n + 1 < size);
		answers[n++] = strncmp(line, "::", 2) == 0 || rule[1] == '!' ? '0' : '1';
	}
	answers[n] = '\0';
	pclose(out);
}

static void write_rules(const char *dir, const char *rules)
{
	char full[300];

	snprintf(full, sizeof(full), "%s/.gitignore", dir);
	unit_write(full, rules, strlen(rules));
}

TEST(table_against_git)
{
	char dir[256], answers[16];

	if (!have_git()) {
		print_message("git is not installed\n");
		skip();
	}
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char list[300];

		snprintf(dir, sizeof(dir), "%s", unit_tmpdir());
		git_init(dir);
		make(dir, cases[i].path);
		write_rules(dir, cases[i].rules);
		/* Without the slash: git would match against it. */
		snprintf(list, sizeof(list), "%.*s\n", (int)bare_len(cases[i].path), cases[i].path);
		git_ask(dir, list, answers, sizeof(answers));
		if (strcmp(answers, cases[i].ignored ? "1" : "0") != 0)
			fail_msg("git on \"%s\", \"%s\": %s", cases[i].rules, cases[i].path,
				 answers);
		unit_rmdir(dir);
	}
}

static const char *const paths[] = {
	"a",     "b",      "ab",      "ba",       "a.o",     "b.o",     "d/",     "d/a",
	"d/b",   "d/ab",   "d/a.o",   "d/e/",     "d/e/a",   "d/e/b.o", "d/e/f/", "d/e/f/a",
	"e/",    "e/a",    "e/d/",    "e/d/a",    "e/d/a.o", "ab/",     "ab/a",   "ab/d/a",
	"-",     "]",      "!a",      "x y",      "d/-",     "d/e/]",   "aab",    "abab",
	"d/abb", "d/e/ba", "b/d/e/a", "b/d/e/ab", "b/a/b/a", "b/ab/ab", "o",      ".o",
};

/* Pieces rules are made of; the whole of a rule is one to five of them. */
static const char *const pieces[] = {
	"a",   "b",           "ab",   "d",    "e",     "/",  "/",   "*",    "**",
	"*",   "?",           "[ab]", "[!a]", "[a-b]", ".o", "\\a", "[]-]", "**/",
	"/**", "[[:alpha:]]", "!",    " ",    "[",     "\\", "-",   "[^b]", "[a",
};

static void random_rules(char *out, size_t size)
{
	size_t len = 0;
	int nrules = 1 + rand() % 5;

	out[0] = '\0';
	for (int r = 0; r < nrules; r++) {
		int n = 1 + rand() % 5;

		if (rand() % 4 == 0)
			len += (size_t)snprintf(out + len, size - len, "!");
		for (int i = 0; i < n; i++)
			len += (size_t)snprintf(out + len, size - len, "%s",
						pieces[(size_t)rand() % ARRAY_LEN(pieces)]);
		len += (size_t)snprintf(out + len, size - len, "%s\n", rand() % 5 == 0 ? "/" : "");
	}
}

TEST(random_against_git)
{
	char dir[256], list[2000] = "", rules[400], answers[100];
	const char *rounds = getenv("IGNORE_ROUNDS");
	size_t used = 0;

	if (!have_git()) {
		print_message("git is not installed\n");
		skip();
	}
	snprintf(dir, sizeof(dir), "%s", unit_tmpdir());
	git_init(dir);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%.*s\n",
					 (int)bare_len(paths[i]), paths[i]);
		/* "ab" cannot be file and folder; folders win. */
		if (strcmp(paths[i], "ab") != 0 && strcmp(paths[i], "b") != 0)
			make(dir, paths[i]);
	}
	srand(7);
	for (int round = 0; round < (rounds != NULL ? atoi(rounds) : 300); round++) {
		struct ignore *ig = ignore_new();

		random_rules(rules, sizeof(rules));
		write_rules(dir, rules);
		git_ask(dir, list, answers, sizeof(answers));
		assert_int_equal(strlen(answers), ARRAY_LEN(paths));
		ignore_push(ig, IGNORE_FOLDER, "", rules, strlen(rules));
		for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
			char path[64];
			bool is_dir = strcmp(paths[i], "ab") == 0 || strcmp(paths[i], "b") == 0;

			snprintf(path, sizeof(path), "%s%s", paths[i], is_dir ? "/" : "");
			if (ignored(ig, path) != (answers[i] == '1'))
				fail_msg("round %d, rules:\n%son \"%s\": git says %c", round, rules,
					 path, answers[i]);
		}
		ignore_free(ig);
	}
	unit_rmdir(dir);
}

/* ---- globs */

static const struct {
	const char *glob, *path;
	size_t skip;
	bool fits;
} globs[] = {
	{"*.c", "a.c", 0, true},
	{"*.c", "src/x/a.c", 0, true},
	{"*.c", "a.cc", 0, false},
	{"*.{c,h}", "src/a.h", 0, true},
	{"*.{c,h}", "src/a.o", 0, false},
	{"{a,b}{1,2}.c", "b2.c", 0, true},
	{"{a,b}{1,2}.c", "b3.c", 0, false},
	{"*.{c}", "x.{c}", 0, true},
	{"src/*.c", "src/a.c", 0, true},
	{"src/*.c", "src/x/a.c", 0, false},
	{"src/**/*.c", "src/a.c", 0, true},
	{"src/**/*.c", "src/x/y/a.c", 0, true},
	{"./src/*.c", "src/a.c", 0, true},
	{"/src/*.c", "src/a.c", 0, true},
	{"x/*.c", "src/x/a.c", 4, true}, /* relative to the folder searched */
	{"x/*.c", "src/x/a.c", 0, false},
	{"Makefile", "a/Makefile", 0, true},
	{"*", "a/b", 0, true},
	{"", "a", 0, false},
};

TEST(globs)
{
	struct wild_glob g;
	struct ava_error err;
	char text[WILD_PATTERN_MAX + 2];

	for (size_t i = 0; i < ARRAY_LEN(globs); i++) {
		assert_int_equal(wild_glob_init(&g, globs[i].glob, NULL), 0);
		if (wild_glob_match(&g, globs[i].path, globs[i].skip) != globs[i].fits)
			fail_msg("%s on %s", globs[i].glob, globs[i].path);
		wild_glob_fini(&g);
	}
	assert_int_equal(wild_glob_init(&g, "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", &err), AVA_EINVAL);
	assert_int_equal(g.count, 0);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(wild_glob_init(&g, text, &err), AVA_EINVAL);
}

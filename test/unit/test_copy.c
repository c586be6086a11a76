/* The copy of a project: what is in it, what comes of it, what a hostile tree can do, and that the
 * project stays as it was. */
#include "unit.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/util.h"
#include "tool/copy.h"

static char top[200], project[256], folder[256];
static atomic_bool stop;
static struct copy_wish wish;

static const char *at(const char *dir, const char *path)
{
	static char full[4][1000];
	static unsigned n;

	n = (n + 1) % 4;
	snprintf(full[n], sizeof(full[n]), "%s/%s", dir, path);
	return full[n];
}

static void put_in(const char *dir, const char *path, const char *text)
{
	char full[1000];

	snprintf(full, sizeof(full), "%s/%s", dir, path);
	for (char *p = full + strlen(dir) + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		mkdir(full, 0700);
		*p = '/';
	}
	unit_write(full, text, strlen(text));
}

static void put(const char *path, const char *text)
{
	put_in(project, path, text);
}

static bool is(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static void holds(const char *path, const char *text)
{
	size_t len;
	char *data = unit_read(path, &len);

	assert_string_equal(data, text);
	free(data);
}

static int set_up(void **state)
{
	snprintf(top, sizeof(top), "%s", unit_tmpdir());
	snprintf(project, sizeof(project), "%s/project", top);
	snprintf(folder, sizeof(folder), "%s/copies/S-1", top);
	assert_int_equal(mkdir(project, 0700), 0);
	put("src/a.c", "int a;\n");
	put("run.sh", "true\n");
	chmod(at(project, "run.sh"), 0555);
	put(".gitignore", "*.o\n");
	put("src/a.o", "object");
	put(".git/config", "[core]\n");
	put(".env.example", "KEY=\n");
	assert_int_equal(symlink("src/a.c", at(project, "link")), 0);
	assert_int_equal(symlink("/nowhere", at(project, "src/out")), 0);
	wish = (struct copy_wish){.folder = folder, .project = project, .stop = &stop};
	atomic_store(&stop, false);
	return 0;
}

static int tear_down(void **state)
{
	copy_remove(AT_FDCWD, top);
	assert_false(is(top));
	return 0;
}

static void make(void)
{
	struct ava_error err = {0};

	if (copy_make(&wish, &err) != 0)
		fail_msg("%s", err.text);
}

/* A path of the tree. */
static const char *in(const char *path)
{
	char full[300];

	snprintf(full, sizeof(full), "tree/%s", path);
	return at(folder, full);
}

static struct copy_changes changes(void)
{
	struct copy_changes c;
	struct ava_error err = {0};

	if (copy_changes(folder, &c, &err) != 0)
		fail_msg("%s", err.text);
	return c;
}

TEST(made)
{
	struct timespec old[2] = {{1000000, 0}, {1000000, 0}};
	struct copy_changes c;
	struct stat st;
	char target[20] = "";

	utimensat(AT_FDCWD, at(project, "src/a.c"), old, 0);
	put_in(top, "copies/S-1.new/left", "of a crash");
	make();
	holds(in("src/a.c"), "int a;\n");
	holds(at(folder, "base/src/a.c"), "int a;\n");
	holds(in(".env.example"), "KEY=\n");
	assert_int_equal(stat(in("src/a.c"), &st), 0);
	assert_int_equal(st.st_mtime, 1000000); /* as make looks at it */
	assert_int_equal(stat(in("run.sh"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755); /* its owner may write */
	assert_int_equal(readlink(in("src/out"), target, sizeof(target) - 1), 8);
	assert_string_equal(target, "/nowhere");
	assert_false(is(in("src/a.o")));
	assert_false(is(in(".git")));
	assert_false(is(in("left")));
	assert_false(is(at(top, "copies/S-1.new")));
	unit_write(in("src/a.c"), "int b;\n", 7);
	make(); /* it is there: nothing happens */
	holds(in("src/a.c"), "int b;\n");
	holds(at(project, "src/a.c"), "int a;\n");
	c = changes();
	assert_int_equal(c.files, 1);
	assert_non_null(strstr(c.patch.data, "@@ -1,1 +1,1 @@\n-int a;\n+int b;\n"));
	copy_changes_fini(&c);
}

TEST(nothing_changed)
{
	struct copy_changes c;

	make();
	c = changes();
	assert_int_equal(c.patch.len, 0);
	assert_int_equal(c.nleft, 0);
	assert_string_equal(c.left.data, "[]");
	copy_changes_fini(&c);
	copy_remove(AT_FDCWD, folder);
	assert_int_equal(copy_changes(folder, &c, NULL), AVA_ENOENT);
	copy_changes_fini(&c);
}

TEST(refused)
{
	const char *keep[] = {project, NULL};
	struct ava_error err = {0};

	put("data/big.bin", "");
	assert_int_equal(truncate(at(project, "data/big.bin"), 5ll << 30), 0);
	assert_int_equal(copy_make(&wish, &err), AVA_ETOOBIG);
	assert_non_null(strstr(err.text, "data/big.bin alone is too large"));
	assert_false(is(folder));
	assert_false(is(at(top, "copies/S-1.new")));
	unlink(at(project, "data/big.bin"));
	atomic_store(&stop, true);
	assert_int_equal(copy_make(&wish, &err), AVA_ECANCELED);
	assert_false(is(folder));
	atomic_store(&stop, false);
	wish.keep_out = keep;
	assert_int_equal(copy_make(&wish, &err), AVA_EDENIED);
	wish.keep_out = NULL;
	wish.project = at(top, "nowhere");
	assert_int_equal(copy_make(&wish, &err), AVA_ENOENT);
	assert_false(is(folder));
}

/* What a command may leave, and whether it is in the patch. */
TEST(changes)
{
	static const char *const left[] = {
		".bashrc", ".env.example", "bare/config", "binary",  "deep/.vscode/t.json",
		"link",    "link2",        "pipe",        "src/a.c", "sub/.git",
		"latin1",  "qu\\\"ote",    "src/out"};
	static const char *const patched[] = {"new file mode 100755\n", "b/run2.sh",
					      "deleted file mode 100755\n", "a/run.sh",
					      "b/.gitignore"};
	struct copy_changes c;

	make();
	put_in(folder, "tree/.bashrc", "x");
	put_in(folder, "tree/.env.example", "KEY=1\n");
	put_in(folder, "tree/bare/HEAD", "x");
	put_in(folder, "tree/bare/objects/x", "x");
	put_in(folder, "tree/bare/refs/x", "x");
	put_in(folder, "tree/bare/config", "x");
	put_in(folder, "tree/binary", "x");
	assert_int_equal(truncate(in("binary"), 4), 0);
	put_in(folder, "tree/latin1", "\xe4\n");
	put_in(folder, "tree/deep/.vscode/t.json", "x");
	put_in(folder, "tree/sub/.git/config", "x");
	put_in(folder, "tree/qu\"ote", "x");
	put_in(folder, "tree/ignored.o", "x");
	put_in(folder, "tree/.gitignore", "*.o\n*.log\n");
	put_in(folder, "tree/x.log", "x");
	put_in(folder, "tree/run2.sh", "x\n");
	put_in(folder, "tree/.ava-spare", "cut by a crash");
	chmod(in("run2.sh"), 0700);
	unlink(in("run.sh"));
	unlink(in("link"));
	unlink(in("src/a.c"));
	assert_int_equal(symlink("/etc/passwd", in("src/a.c")), 0);
	assert_int_equal(symlink("/etc", in("link2")), 0);
	unlink(in("src/out"));
	assert_int_equal(symlink("/elsewhere", in("src/out")), 0);
	assert_int_equal(mkfifo(in("pipe"), 0600), 0);
	c = changes();
	for (size_t i = 0; i < ARRAY_LEN(left); i++) {
		char want[100];

		snprintf(want, sizeof(want), "{\"path\":\"%s\",", left[i]);
		if (!strstr(c.left.data, want))
			fail_msg("%s is not in: %s", left[i], c.left.data);
	}
	for (size_t i = 0; i < ARRAY_LEN(patched); i++)
		if (!strstr(c.patch.data, patched[i]))
			fail_msg("%s is not in: %s", patched[i], c.patch.data);
	assert_int_equal(c.files, 3);
	assert_int_equal(c.nleft, ARRAY_LEN(left) + 3); /* and the rest of bare/ */
	assert_null(strstr(c.patch.data, "root:"));
	assert_null(strstr(c.left.data, "ava-spare"));
	copy_changes_fini(&c);
}

/* git reads the configuration of a folder that only points at the rest of a repository, and that
 * rest need not look like one. */
TEST(git_in_two)
{
	struct copy_changes c;

	make();
	put_in(folder, "tree/sub/HEAD", "ref: refs/heads/x\n");
	put_in(folder, "tree/sub/commondir", "common\n");
	put_in(folder, "tree/sub/common/config", "[core]\n\tpager = x\n");
	put_in(folder, "tree/sub/common/objects/x", "");
	put_in(folder, "tree/sub/common/refs/x", "");
	assert_int_equal(copy_changes(folder, &c, NULL), 0);
	assert_int_equal(c.files, 0);
	assert_int_equal(c.nleft, 5);
	copy_changes_fini(&c);
}

/* What cannot even be named is not passed over in silence. */
TEST(odd_names)
{
	struct copy_changes c;

	make();
	put_in(folder, "tree/odd\nname", "x\n");
	put_in(folder, "tree/odd\001folder/x", "x\n");
	assert_int_equal(copy_changes(folder, &c, NULL), 0);
	assert_int_equal(c.files, 0);
	assert_int_equal(c.nleft, 1);
	assert_non_null(strstr(c.left.data, "names that are no text"));
	copy_changes_fini(&c);
}

/* A text that is too long is not called binary. */
TEST(many_lines)
{
	struct copy_changes c;
	char *text = malloc(500001);

	for (size_t i = 0; i < 500000; i++)
		text[i] = i % 2 ? '\n' : 'x';
	text[500000] = '\0';
	make();
	put_in(folder, "tree/long", text);
	put_in(folder, "tree/bin", "\xff\n");
	assert_int_equal(copy_changes(folder, &c, NULL), 0);
	assert_int_equal(c.nleft, 2);
	assert_non_null(strstr(c.left.data, "of too many lines for a patch"));
	assert_non_null(strstr(c.left.data, "binary, or not UTF-8"));
	copy_changes_fini(&c);
	free(text);
}

/* Files of nothing cost a run nothing, and whoever reads them a lot. */
TEST(reading_has_a_bound)
{
	struct copy_changes c;
	char name[40];

	make();
	for (unsigned i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "tree/big/%u", i);
		put_in(folder, name, "");
		assert_int_equal(truncate(at(folder, name), 5 << 20), 0);
	}
	put_in(folder, "tree/last", "x\n");
	assert_int_equal(copy_changes(folder, &c, NULL), 0);
	assert_int_equal(c.files, 0);
	assert_int_equal(c.nleft, 61);
	copy_changes_fini(&c);
}

/* A new ignore rule hides new files, not what was there. */
TEST(ignored_later)
{
	struct copy_changes c;

	make();
	put_in(folder, "tree/.gitignore", "*\n");
	put_in(folder, "tree/new", "x\n");
	c = changes();
	assert_int_equal(c.files, 1);
	assert_int_equal(c.nleft, 0);
	copy_changes_fini(&c);
}

/* The run before proposed this; it is in, or it is said why not. */
TEST(goes_on)
{
	struct ava_error err = {0};
	struct copy_changes c;
	char *patch;

	make();
	put_in(folder, "tree/src/a.c", "int b;\n");
	put_in(folder, "tree/new/x", "x\n");
	unlink(in("run.sh"));
	c = changes();
	patch = strdup(c.patch.data);
	copy_changes_fini(&c);
	copy_remove(AT_FDCWD, folder);
	wish.patch = patch;
	wish.patch_len = strlen(patch);
	make();
	holds(in("src/a.c"), "int b;\n");
	holds(in("new/x"), "x\n");
	assert_false(is(in("run.sh")));
	c = changes();
	assert_string_equal(c.patch.data, patch);
	copy_changes_fini(&c);
	copy_remove(AT_FDCWD, folder);
	put("src/a.c", "int c;\n");
	assert_int_equal(copy_make(&wish, &err), AVA_EEXIST);
	assert_non_null(strstr(err.text, "src/a.c its lines are not there any more"));
	holds(in("src/a.c"), "int c;\n"); /* all or none */
	assert_false(is(in("new")));
	free(patch);
}

TEST(put_back_or_left)
{
	struct rlimit whole, none;
	char tree[300];

	make();
	snprintf(tree, sizeof(tree), "%s/tree", folder);
	put_in(tree, "src/a.c", "much more than there was");
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &whole), 0);
	none = (struct rlimit){0, whole.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(copy_put_back(tree, "src/a.c", true), -1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &whole), 0);
	holds(at(tree, "src/a.c"), "much more than there was");
	assert_false(is(at(tree, "src/.ava-put-back")));
	assert_int_equal(copy_put_back(tree, "src/a.c", true), 0);
	holds(at(tree, "src/a.c"), "int a;\n");
	assert_int_equal(copy_put_back(tree, "src/new.c", true), 1);
}

/* Deeper than any path, without permissions: it goes. */
TEST(removed)
{
	int fd;

	make();
	fd = open(in(""), O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < 3000; i++) {
		int next;

		assert_int_equal(mkdirat(fd, "nested-folder", 0700), 0);
		next = openat(fd, "nested-folder", O_RDONLY | O_DIRECTORY);
		assert_true(next >= 0);
		if (i % 500 == 0)
			fchmod(fd, 0);
		close(fd);
		fd = next;
	}
	close(fd);
	put_in(folder, "base/x/y", "x");
	chmod(at(folder, "base/x"), 0500);
	copy_remove(AT_FDCWD, folder);
	assert_false(is(folder));
	assert_true(is(at(top, "copies")));
	holds(at(project, "src/a.c"), "int a;\n");
}

UNIT_GROUP(.before = set_up, .after = tear_down);

/* The tree of a folder: what has one, and what does not. With the real git, in the sandbox. */
#include "unit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ava.h>
#include "exec/worktree.h"
#include "os/loop.h"

static struct os_loop *loop;
static struct exec_child *child;
static char dir[PATH_MAX], tree[WORKTREE_HASH + 1];
static const char *bwrap = "/usr/bin/bwrap", *why;
static bool ended;

/* In the folder of the test, where `g` is git without anybody's settings. */
static void sh(const char *text)
{
	char *all = NULL;
	int n = asprintf(&all,
			 "set -e; export HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1; cd %s\n"
			 "g() { git -c user.name=a -c user.email=a@b -c init.defaultBranch=m"
			 " -c protocol.file.allow=always \"$@\"; }\n%s",
			 dir, text);

	if (n < 0 || system(all) != 0)
		fail_msg("%s", text);
	free(all);
}

static void seen(const struct exec_end *end, void *user)
{
	(void)user;
	why = worktree_read(end, tree);
	ended = true;
}

/* The reason why the folder has no tree; NULL: it has one. */
static const char *look(const char *below)
{
	char path[PATH_MAX + 40];
	struct sandbox in = {.project = path, .bwrap = bwrap, .inside = getenv("AVA_SANDBOX")};
	struct ava_error err = {0};

	snprintf(path, sizeof(path), "%s/%s", dir, below);
	ended = false;
	if (worktree_look(&child, loop, &in, seen, NULL, &err) != 0)
		fail_msg("%s", err.text);
	while (!ended)
		os_loop_step(loop, 1000);
	return why;
}

static void assert_tree(const char *below)
{
	const char *reason = look(below);

	if (reason)
		fail_msg("%s: %s", below, reason);
	assert_int_equal(strlen(tree), 40);
}

static void assert_none(const char *below, const char *says)
{
	const char *reason = look(below);

	if (!reason)
		fail_msg("%s has the tree %s", below, tree);
	if (!strstr(reason, says))
		fail_msg("%s: %s", below, reason);
	assert_string_equal(tree, "");
}

/* A commit of its own gives the same tree for the same files. */
TEST(clean)
{
	char first[sizeof(tree)];

	sh("for r in one two; do g init -q $r; cd $r; mkdir sub; echo a >a; echo b >sub/b;"
	   " echo '*.o' >.gitignore; g add .; g commit -qm $r; cd ..; done");
	assert_tree("one");
	memcpy(first, tree, sizeof(first));
	assert_tree("two");
	assert_string_equal(tree, first);
	sh("echo x >two/x.o; touch two/a"); /* ignored, and no change */
	assert_tree("two");
	assert_string_equal(tree, first);
	assert_tree("two/sub");
	assert_string_not_equal(tree, first);
	sh("cd two; echo c >a; g commit -qam more");
	assert_tree("two");
	assert_string_not_equal(tree, first);
	sh("cd two; g checkout -q HEAD~1");
	assert_tree("two");
	assert_string_equal(tree, first);
}

TEST(dirty)
{
	static const char *const changes[] = {
		"echo more >>a",
		"rm a",
		"chmod +x a",
		"echo new >new",
		"echo b >b; g add b",
		"g rm -q --cached a",
		"mkdir n; echo n >n/n",
		"ln -s a link",
		"echo c >a; g add a; echo a >a",
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		char text[300];

		snprintf(text, sizeof(text),
			 "rm -rf r; g init -q r; cd r; echo a >a; g add .; g commit -qm 1; %s",
			 changes[i]);
		print_message("%s\n", changes[i]);
		sh(text);
		assert_none("r", "not committed");
	}
	/* Settings that hide a change hide nothing here. */
	sh("rm -rf r; g init -q r; cd r; echo a >a; g add .; g commit -qm 1; echo n >n;"
	   " git config status.showUntrackedFiles no");
	assert_none("r", "not committed");
	sh("cd r; rm n; g update-index --assume-unchanged a; echo b >a");
	assert_none("r", "does not look at");
	sh("cd r; g update-index --no-assume-unchanged a; g checkout -q a;"
	   " g update-index --skip-worktree a; rm a");
	assert_none("r", "does not look at");
}

TEST(none)
{
	sh("mkdir plain; echo a >plain/a");
	assert_none("plain", "does not know");
	sh("g init -q bare --bare");
	assert_none("bare", "does not know");
	sh("g init -q empty");
	assert_none("empty", "no commit");
	sh("g init -q r; cd r; echo a >a; g add .; g commit -qm 1; mkdir n");
	assert_none("r/n", "no commit");
	sh("chmod 0 r/a; mkdir r/b; echo b >r/b/b; chmod 0 r/b");
	assert_non_null(look("r"));
	sh("chmod 700 r/b");
}

TEST(submodule)
{
	sh("g init -q s; cd s; echo s >s; g add .; g commit -qm s; cd ..;"
	   " g init -q r; cd r; g submodule --quiet add ../s s; g commit -qm r; cd ..;"
	   " g clone -q r without; g clone -q --recursive r with");
	assert_tree("r");
	assert_tree("with");
	assert_none("without", "submodule");
	sh("echo n >with/s/n"); /* new in it */
	assert_none("with", "not committed");
	sh("cd with/s; rm n; echo t >s");
	assert_none("with", "not committed");
	sh("cd with/s; g commit -qam t"); /* another commit than HEAD has of it */
	assert_none("with", "not committed");
	sh("cd with; git config submodule.s.ignore all");
	assert_none("with", "not committed");
}

/* The history may lie elsewhere, and be of more than the folder. */
TEST(elsewhere)
{
	char first[sizeof(tree)];

	sh("g init -q r; cd r; mkdir sub; echo b >sub/b; echo a >a; g add .; g commit -qm 1;"
	   " g worktree add -q ../w");
	assert_tree("r/sub");
	memcpy(first, tree, sizeof(first));
	assert_tree("w");
	sh("echo more >>r/a"); /* beside it */
	assert_tree("r/sub");
	assert_string_equal(tree, first);
	sh("echo more >>r/sub/b");
	assert_none("r/sub", "not committed");
	assert_tree("w/sub");
	assert_string_equal(tree, first);
}

/* What the configuration runs reaches nothing. */
TEST(hostile)
{
	sh("g init -q r; cd r; echo a >a; echo 'a filter=x' >.gitattributes; g add .;"
	   " g commit -qm 1; git config filter.x.clean \"touch $PWD/../ran; cat\";"
	   " git config core.fsmonitor \"touch $PWD/../ran\"; touch a");
	assert_tree("r");
	sh("! test -e ran");
}

static int set_up(void **state)
{
	(void)state;
	loop = os_loop_new(NULL);
	return realpath(unit_tmpdir(), dir) && loop ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	os_loop_free(loop);
	unit_rmdir(dir);
	return 0;
}

static int run(int (*all)(void))
{
	const char *inside = getenv("AVA_SANDBOX");

	if (!inside || access(inside, X_OK) != 0 || access(bwrap, X_OK) != 0 ||
	    system("git --version >/dev/null") != 0)
		return 77;
	return all();
}

UNIT_GROUP(.before = set_up, .after = tear_down, .run = run);

/* Git's folder outside of a project: found where it may be shown, and nothing that a hostile
 * project names in its place. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ava.h>
#include "exec/repository.h"

#define NOBODY 65534

static char dir[80];

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "%s", unit_tmpdir());
	return 0;
}

static int tear_down(void **state)
{
	char text[100];

	(void)state;
	snprintf(text, sizeof(text), "rm -rf %s", dir);
	return system(text);
}

static void put(const char *folder, const char *name, const char *text)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	unit_write(path, text, strlen(text));
}

static void make_git(const char *folder, const char *config)
{
	static const char *const parts[] = {"", "/objects", "/refs"};
	char path[600];

	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s%s", folder, parts[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	put(folder, "HEAD", "ref: refs/heads/x\n");
	put(folder, "config", config);
}

/* A `.git` file is the project's word: what it names is shown when that speaks of it. */
TEST(git_file)
{
	static const struct {
		const char *gitdir;
		bool shown;
	} cases[] = {
		{"../apart.git", true},
		{"../apart", false}, /* a link */
		{"../mine/modules/x", true},
		{"../other/.git", false},
		{"../bare.git", false},
		{"../theirs", false},
		{"../main.git/worktrees/x", true},
		{"../main.git/worktrees/y", false},
		{"../main.git/worktrees/z", false},
		{"../.ssh/x", false},
		{"../home/private/x", false},
		{"/", false},
		{"/etc", false},
		{"/proc/self/cwd", false},
		{"../nothing", false},
		{"../empty", false},
		{"../linked", false},
	};
	char top[100], path[300], text[2000], own[300];
	const char *const keep_out[] = {own, NULL};
	struct repository *r = malloc(sizeof(*r));

	assert_non_null(r);
	snprintf(top, sizeof(top), "%s/git", dir);
	snprintf(text, sizeof(text),
		 "mkdir %s && cd %s && mkdir -p p other mine/modules .ssh home/private empty "
		 "main.git/worktrees/x main.git/worktrees/y main.git/worktrees/z linked/objects && "
		 "ln -s other/.git apart && ln -s ../other/.git/refs linked/refs && "
		 "touch linked/HEAD",
		 top, top);
	assert_int_equal(system(text), 0);
	snprintf(own, sizeof(own), "%s/home/private", top);
	for (size_t i = 0; i < 7; i++) {
		static const char *const made[] = {"apart.git",     "other/.git",     "bare.git",
						   "theirs",        "mine/modules/x", ".ssh/x",
						   "home/private/x"};
		static const char *const configs[] = {"",
						      "",
						      "[core]\n\tbare = true\n",
						      "[core]\n\tworktree = ../other\n",
						      "[core]\n\tworktree = ../../../p\n",
						      "",
						      ""};

		snprintf(path, sizeof(path), "%s/%s", top, made[i]);
		make_git(path, configs[i]);
	}
	snprintf(
		text, sizeof(text),
		"cd %s/main.git && mkdir objects refs && touch HEAD && for w in x y; do "
		"echo ../.. >worktrees/$w/commondir; done; echo %s/other/.git >worktrees/z/gitdir; "
		"echo %s/p/.git >worktrees/x/gitdir; echo %s/other/.git >worktrees/y/gitdir; "
		"echo ../../../other/.git >worktrees/z/commondir",
		top, top, top, top);
	assert_int_equal(system(text), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(path, sizeof(path), "%s/p", top);
		snprintf(text, sizeof(text), "gitdir: %s\n", cases[i].gitdir);
		put(path, ".git", text);
		repository_find(r, path, keep_out);
		assert_string_equal(r->tree, path);
		if (r->refused == cases[i].shown || (r->folder[0] != '\0') != cases[i].shown)
			fail_msg("%s: %s", cases[i].gitdir, r->folder);
	}
	/* what is in the project is there anyway */
	snprintf(path, sizeof(path), "%s/p/.bare", top);
	make_git(path, "[core]\n\tbare = true\n");
	snprintf(path, sizeof(path), "%s/p", top);
	put(path, ".git", "gitdir: ./.bare\n");
	repository_find(r, path, keep_out);
	assert_false(r->refused);
	assert_string_equal(r->folder, "");
	free(r);
}

/* Above: a folder's own, not that of a home, not one of somebody else, not behind a link. */
TEST(git_above)
{
	char top[100], path[300], git[300], text[2000];
	struct repository *r = malloc(sizeof(*r));
	const char *home = getenv("HOME");
	char *was = home ? strdup(home) : NULL;

	assert_non_null(r);
	snprintf(top, sizeof(top), "%s/above", dir);
	snprintf(path, sizeof(path), "%s/a/b", top);
	snprintf(git, sizeof(git), "%s/.git", top);
	snprintf(text, sizeof(text), "mkdir -p %s/a/b/.git", top); /* which is no repository */
	assert_int_equal(system(text), 0);
	make_git(git, "");
	repository_find(r, path, NULL);
	assert_string_equal(r->folder, git);
	assert_string_equal(r->tree, top);
	assert_false(r->refused);
	repository_find(r, top, NULL); /* it is in it */
	assert_string_equal(r->folder, "");
	assert_false(r->refused);
	setenv("HOME", top, 1);
	repository_find(r, path, NULL);
	assert_true(r->refused);
	assert_string_equal(r->folder, "");
	setenv("HOME", was ? was : "/", 1);
	free(was);
	if (geteuid() == 0) {
		snprintf(text, sizeof(text), "%s/objects", git);
		assert_int_equal(chown(text, NOBODY, NOBODY), 0);
		repository_find(r, path, NULL);
		assert_true(r->refused);
		assert_string_equal(r->folder, "");
	}
	snprintf(text, sizeof(text), "mv %s %s.git && ln -s %s.git %s", git, top, top, git);
	assert_int_equal(system(text), 0);
	repository_find(r, path, NULL);
	assert_string_equal(r->folder, "");
	assert_true(r->refused);
	repository_find(r, "", NULL);
	assert_string_equal(r->tree, "");
	free(r);
}

UNIT_GROUP(.before = set_up, .after = tear_down);

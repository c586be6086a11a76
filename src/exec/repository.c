/* Finding git's folder; see repository.h. The form of `.git`, `commondir` and `gitdir` is that
 * of gitrepository-layout(5).
 *
 * A `.git` file is the project's word, and a project may be hostile: what it names is shown only
 * when it is a git folder of this user's, lies where no secrets are kept, and speaks of this work
 * tree itself, or (git init --separate-git-dir) of none. */
#include "exec/repository.h"

#include <ava.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/sys.h"
#include "base/util.h"
#include "exec/sandbox.h"

#define FILE_MAX (256u << 10)

/* Folders of keys, at any depth; folders of the top that a sandbox or the machine has itself. */
static const char *const closed[] = {"/.ssh/",  "/.gnupg/", "/.aws/",    "/.azure/",
				     "/.kube/", "/.pki/",   "/.docker/", "/.password-store/",
				     "/etc/",   "/proc/",   "/sys/",     "/dev/",
				     "/run/",   "/boot/",   "/ava/"};

/* The path of `name` in `folder`; an absolute `name` stays. False: too long. */
static bool repository_join(char out[PATH_MAX], const char *folder, const char *name)
{
	bool whole = name[0] == '/';

	return snprintf(out, PATH_MAX, "%s%s%s", whole ? "" : folder, whole ? "" : "/", name) <
	       PATH_MAX;
}

/* Is `name` in `folder` of that type (no link), and the user's own? */
static bool repository_has(const char *folder, const char *name, mode_t type)
{
	char path[PATH_MAX];
	struct stat st;

	return repository_join(path, folder, name) && lstat(path, &st) == 0 &&
	       (st.st_mode & S_IFMT) == type && st.st_uid == geteuid();
}

/* The path behind `key` in a file's line, canonical. 0: no such line; -1: the path does not
 * exist. */
static int read_path(const char *folder, const char *file, const char *key, char out[PATH_MAX])
{
	char path[PATH_MAX], *data, *rest = NULL;
	size_t len;
	int found = 0;

	if (!repository_join(path, folder, file) ||
	    sys_read_file(AT_FDCWD, path, FILE_MAX, &data, &len, NULL) != 0)
		return 0;
	for (char *line = strtok_r(data, "\r\n", &rest); line && found == 0;
	     line = strtok_r(NULL, "\r\n", &rest)) {
		line += strspn(line, " \t");
		if (strncmp(line, key, strlen(key)) == 0)
			found = repository_join(path, folder, line + strlen(key)) &&
						realpath(path, out)
					? 1
					: -1;
	}
	free(data);
	return found;
}

/* The folder that the `.git` file of the work tree names, if it is this tree's. */
static bool repository_follow(const struct repository *r, const char *git, char out[PATH_MAX])
{
	char dir[PATH_MAX], back[PATH_MAX];
	int tree;

	if (read_path(r->tree, ".git", "gitdir: ", out) != 1)
		return false;
	memcpy(dir, out, PATH_MAX);
	if (read_path(dir, "commondir", "", out) == 1) /* only a worktree has this file */
		return read_path(dir, "gitdir", "", back) == 1 && strcmp(back, git) == 0 &&
		       sandbox_below(dir, out);
	tree = read_path(dir, "config", "worktree = ", back);
	if (tree == 0)
		return strcmp(strrchr(dir, '/'), "/.git") != 0 &&
		       read_path(dir, "config", "bare = true", back) == 0;
	return tree == 1 && strcmp(back, r->tree) == 0;
}

static bool may_show(const char *dir, const char *folder, const char *const *keep_out)
{
	char whole[PATH_MAX + 1];
	const char *at;

	snprintf(whole, sizeof(whole), "%s/", dir);
	for (size_t i = 0; i < ARRAY_LEN(closed); i++) {
		at = strstr(whole, closed[i]);
		if (at && (at == whole || at[1] == '.'))
			return false;
	}
	for (; keep_out && *keep_out; keep_out++)
		if (sandbox_below(dir, *keep_out))
			return false;
	return repository_has(dir, ".", S_IFDIR) && repository_has(dir, "HEAD", S_IFREG) &&
	       repository_has(dir, "objects", S_IFDIR) && repository_has(dir, "refs", S_IFDIR) &&
	       !sandbox_below(folder, dir);
}

void repository_find(struct repository *r, const char *folder, const char *const *keep_out)
{
	const char *home = env_get("HOME");
	char git[PATH_MAX], dir[PATH_MAX];
	struct stat st;
	bool above;

	r->folder[0] = r->file[0] = '\0';
	r->refused = r->part = false;
	snprintf(r->tree, sizeof(r->tree), "%s", folder);
	while (r->tree[0] && !(repository_join(git, r->tree, ".git") && lstat(git, &st) == 0 &&
			       (!S_ISDIR(st.st_mode) ||
				(repository_join(dir, git, "HEAD") && access(dir, F_OK) == 0))))
		*strrchr(r->tree, '/') = '\0';
	above = strcmp(r->tree, folder) != 0;
	if (!r->tree[0] || (S_ISDIR(st.st_mode) && !above))
		return;
	memcpy(dir, git, PATH_MAX);
	r->refused =
		(home && strcmp(r->tree, home) == 0) ||
		(S_ISREG(st.st_mode) ? !repository_follow(r, git, dir) : !S_ISDIR(st.st_mode)) ||
		!may_show(dir, folder, keep_out);
	if (S_ISREG(st.st_mode) && sandbox_below(dir, folder)) /* the project shows it already */
		r->refused = false;
	else if (!r->refused)
		memcpy(r->folder, dir, PATH_MAX);
	if (!r->folder[0])
		return;
	if (above && S_ISREG(st.st_mode))
		memcpy(r->file, git, PATH_MAX);
	r->part = above;
}

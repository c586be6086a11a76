/* The place of a folder's history, when git keeps it outside of the folder: in the repository of a
 * folder above, or because the folder is a worktree, a submodule, or has a `.git` file that names
 * another place. Found without git, which would obey the repository's configuration. */
#ifndef EXEC_REPOSITORY_H
#define EXEC_REPOSITORY_H

#include <limits.h>
#include <stdbool.h>

struct repository {
	char tree[PATH_MAX];   /* top of the work tree; "": no repository */
	char folder[PATH_MAX]; /* git's folder, canonical, shown read-only; "": none outside */
	char file[PATH_MAX];   /* the `.git` file above that leads to `folder`, likewise */
	bool refused;          /* git's folder is outside, and may not be shown */
	bool part;             /* the history is of more than this folder */
};

/* `folder` is canonical, or "". Nothing below `keep_out` (as of struct sandbox) is shown. A few
 * looks at the disk; loop thread. */
void repository_find(struct repository *r, const char *folder, const char *const *keep_out);

#endif

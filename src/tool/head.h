/* The commit that the HEAD of a repository of git names, read from its files: no program is run
 * over a project before a person asks for it. */
#ifndef TOOL_HEAD_H
#define TOOL_HEAD_H

#include <stdbool.h>

#define HEAD_MAX 64 /* hex digits of a commit's id, with SHA-256 */

/* Of the repository that `folder` (absolute) is in: a clone, a worktree or a submodule. False: in
 * none, without a commit, or one whose form is not known (reftable). Blocking; any thread. */
bool head_read(const char *folder, char out[HEAD_MAX + 1]);

#endif

/* The tree that git has of a folder, as long as the folder is just that: with nothing changed,
 * staged or new, each submodule there, and no file that git was told to pass over. Two folders of
 * one tree have the same files but for those that git ignores.
 *
 * git does what the configuration of a repository says (filters, hooks), so it runs in the sandbox
 * (exec/sandbox.h), with the folder read-only; where none can be made, no tree is known. */
#ifndef EXEC_WORKTREE_H
#define EXEC_WORKTREE_H

#include "exec/child.h"
#include "exec/sandbox.h"

#define WORKTREE_HASH 64 /* hex digits at the most */

/* As sandbox_start: begins to look at the folder `s->project`; `done` hands its end to
 * worktree_read. Of *s it takes the two programs and keep_out, too. */
int worktree_look(struct exec_child **child, struct os_loop *loop, const struct sandbox *s,
		  exec_done_fn done, void *user, struct ava_error *err);
/* NULL: the tree's hash is in `tree`. Else why there is none, and `tree` is "". */
const char *worktree_read(const struct exec_end *end, char tree[WORKTREE_HASH + 1]);

#endif

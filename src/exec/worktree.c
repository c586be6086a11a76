/* One shell in the sandbox asks git three times; see worktree.h. What the folder is comes before
 * the name of its tree: a checkout between the two leaves the folder as clean as it was, with the
 * tree that is named. */
#include "exec/worktree.h"

#include <ava.h>
#include <string.h>

#include "base/util.h"
#include "exec/repository.h"

#define LOOK_MS 30000 /* until a folder counts as one without a tree */

/* Its exit codes are places of `reasons`. A submodule that is not there is an entry of mode 160000;
 * "H" is a file that git compares with what is on the disk. */
static const char look[] =
	"s=$(git status --porcelain --ignore-submodules=none --untracked-files=normal -- .)"
	" || exit 2\n"
	"[ -z \"$s\" ] || exit 3\n"
	"! { git ls-files -s -v --recurse-submodules || echo; } | grep -qv '^H 1[02]' || exit 4\n"
	"git rev-parse --verify -q HEAD:./ || exit 5\n";
static const char *const reasons[] = {
	[2] = "git does not know it",
	[3] = "it has changes that are not committed",
	[4] = "it has a submodule that is not there, or files that git does not look at",
	[5] = "no commit has it",
};

int worktree_look(struct exec_child **child, struct os_loop *loop, const struct sandbox *s,
		  exec_done_fn done, void *user, struct ava_error *err)
{
	static const char *const argv[] = {"/bin/sh", "-c", look, NULL};
	static const char *const env[] = {"GIT_OPTIONAL_LOCKS=0",
					  "GIT_NO_REPLACE_OBJECTS=1",
					  "GIT_DISCOVERY_ACROSS_FILESYSTEM=1",
					  "GIT_CONFIG_COUNT=1",
					  "GIT_CONFIG_KEY_0=core.fsmonitor",
					  "GIT_CONFIG_VALUE_0=false",
					  NULL};
	const struct exec_options how = {
		.input = "", .timeout_ms = LOOK_MS, .output_max = 4096, .keep = 4096};
	struct sandbox box = *s;
	struct repository git;
	const char *reads[3] = {0};
	size_t n = 0;

	repository_find(&git, s->project, s->keep_out);
	if (git.folder[0])
		reads[n++] = git.folder;
	if (git.file[0])
		reads[n++] = git.file;
	box.reads = reads;
	box.start = s->project;
	box.argv = argv;
	box.env = env;
	return sandbox_start(child, loop, &box, &how, done, user, err);
}

const char *worktree_read(const struct exec_end *end, char tree[WORKTREE_HASH + 1])
{
	size_t n = strspn(end->output, "0123456789abcdef");

	tree[0] = '\0';
	if (!sandbox_layers(end->told))
		return "there is no sandbox for git (see ava doctor)";
	if (end->how == EXEC_TIMEOUT)
		return "git does not come to an end in it";
	if (end->how == EXEC_EXITED && end->code > 1 && end->code < (int)ARRAY_LEN(reasons))
		return reasons[end->code];
	if (end->how != EXEC_EXITED || end->code != 0 || (n != 40 && n != WORKTREE_HASH) ||
	    end->output_len != n + 1 || end->output[n] != '\n')
		return "git could not look at it";
	memcpy(tree, end->output, n);
	tree[n] = '\0';
	return NULL;
}

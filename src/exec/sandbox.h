/* The sandbox that what a model runs is put into: bubblewrap, and inside it `ava-sandbox`
 * (exec/inside.c) with limits, Landlock and seccomp; the same program outside, as what ends
 * bubblewrap.
 *
 * What is in there: /usr and a little of /etc, the project under its own
 * path, read-only or as a copy that may be written, a work folder at /ava/work (HOME; where it
 * starts), an empty /tmp, /dev and a /proc of its own processes. No network unless a person gave it
 * (servers of MCP), no other user's or program's files, no descriptor but 0 to 4, no variable but
 * the few below. Nothing in here is decided by a model: the folders come from what a person
 * confirmed, the rest is fixed. doc/SECURITY.md says what this is against, and what not. */
#ifndef EXEC_SANDBOX_H
#define EXEC_SANDBOX_H

#include <stdbool.h>

#include "exec/child.h"

#define SANDBOX_WORK "/ava/work" /* path of the work folder inside */
#define SANDBOX_TOOL "/ava/tool"

struct sandbox {
	const char *bwrap, *inside; /* paths of the two programs; `inside` NULL: use sandbox_find */
	/* Without bubblewrap, where a person has set sandbox.required to 0: the command starts in
	 * `work` with the person's own rights to read; only Landlock and seccomp hold it. */
	bool bare;
	/* path of the work folder on this machine; made by the caller, mode 0700; NULL: an empty
	 * folder that nothing can be written to */
	const char *work;
	/* path on this machine of a program of ours, shown at SANDBOX_TOOL; NULL: none */
	const char *tool;
	const char *project; /* path of the project, canonical; "": none */
	/* the writable copy shown in place of the project; NULL: itself, read-only */
	const char *copy;
	const char *const *keep_out; /* folders shown empty; NULL ends them, NULL: none */
	/* Further folders and files that a person named, under their own paths: to read, and to
	 * write too; NULL ends a list, NULL: none. */
	const char *const *reads, *const *writes;
	bool network;            /* true: this machine's network; false: none */
	const char *start;       /* where the command starts, by its path inside */
	const char *const *argv; /* the command, by its path inside; NULL at its end */
	/* Variables added to sandbox_env, of which they replace those of the same name; NULL ends
	 * them, NULL: none. */
	const char *const *env;
};

/* Find bwrap and ava-sandbox: two paths, malloc'ed. AVA_EUNSUPPORTED with a sentence that says what
 * to install; *inside may be set then, for `bare`. */
int sandbox_find(char **bwrap, char **inside, struct ava_error *err);

/* The remedy where bubblewrap may make no user namespace, by the switch that forbids it; `proc`
 * is "/proc/sys". */
const char *sandbox_remedy(const char *proc);

/* Find a program beside avad, or where it is installed; malloc'ed. NULL: missing. */
char *sandbox_find_tool(const char *name);

/* As exec_start, in a sandbox; `o` without argv, env and sandboxed, which come from `s`. Both are
 * *borrowed* during the call. Also AVA_EUNSUPPORTED or AVA_EDENIED: there is no sandbox, or a path
 * cannot be shown in one ("/", ava's own folders). */
int sandbox_start(struct exec_child **child, struct os_loop *loop, const struct sandbox *s,
		  const struct exec_options *o, exec_done_fn done, void *user,
		  struct ava_error *err);
/* The argv of a sandbox with both programs set; one allocation, free(). NULL: err. */
const char **sandbox_argv(const struct sandbox *s, struct ava_error *err);
extern const char *const sandbox_env[];

/* Is `path` `folder`, or in it? Both canonical. */
bool sandbox_below(const char *path, const char *folder);

/* The rules that held, out of exec_end.told: `{"landlock":7,…}`, *borrowed*; NULL: nothing was run,
 * since the sandbox could not be made; its output says why. */
const char *sandbox_layers(const char *told);

#endif

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
#include <stddef.h>

#include "exec/child.h"

#define SANDBOX_WORK "/ava/work" /* the work folder, inside */
#define SANDBOX_TOOL "/ava/tool"

struct sandbox {
	const char *bwrap, *inside; /* the two programs; `inside` NULL: sandbox_find has them */
	/* Without bubblewrap, where a person has set sandbox.required to 0: the command starts in
	 * `work` with the person's own rights to read; Landlock and seccomp are all that holds it.
	 */
	bool bare;
	const char *work;    /* on this machine; made by the caller, mode 0700; NULL: an empty
			      * folder that nothing can be written to */
	const char *tool;    /* a program of ours on this machine, at SANDBOX_TOOL inside;
			      * NULL: none */
	const char *project; /* canonical; "": none */
	const char *copy;    /* what stands in its place and may be written; NULL: itself,
			      * read-only */
	const char *const *keep_out; /* folders below the project that are empty in there; NULL
				      * ends them, NULL: none */
	/* Folders and files beside, under their own paths, that a person named: to read, and to
	 * write too; NULL ends a list, NULL: none. */
	const char *const *reads, *const *writes;
	bool network;            /* all of this machine's; else none at all */
	const char *start;       /* where the command starts, as it is called inside */
	const char *const *argv; /* the command, by its path inside; NULL at its end */
	/* Variables beside sandbox_env, in the place of those of the same name; NULL ends them,
	 * NULL: none. */
	const char *const *env;
};

/* Where bwrap and ava-sandbox are: two paths, malloc'ed. AVA_EUNSUPPORTED with a sentence
 * that says what to install; *inside may be there then, for what is `bare`. */
int sandbox_find(char **bwrap, char **inside, struct ava_error *err);

/* The remedy where bubblewrap may make no user namespace, by the switch that forbids it; `proc`
 * is "/proc/sys". */
const char *sandbox_remedy(const char *proc);

/* A program that stands beside avad, or where it was installed to; malloc'ed. NULL: it is missing.
 */
char *sandbox_find_tool(const char *name);

/* As exec_start; `o` without argv, env and sandboxed, which are of `s`. Both are *borrowed* during
 * the call. Also AVA_EUNSUPPORTED or AVA_EDENIED: there is no sandbox, or what is to be shown can
 * be in none ("/", what ava lives in). */
int sandbox_start(struct exec_child **child, struct os_loop *loop, const struct sandbox *s,
		  const struct exec_options *o, exec_done_fn done, void *user,
		  struct ava_error *err);
/* Its argv, where both programs are named; one allocation, free(). NULL: err. */
const char **sandbox_argv(const struct sandbox *s, struct ava_error *err);
extern const char *const sandbox_env[];

/* `path` is `folder`, or is in it; both canonical. */
bool sandbox_below(const char *path, const char *folder);

/* Which rules held, out of exec_end.told: `{"landlock":7,…}`, *borrowed*; NULL: nothing was run,
 * since the sandbox could not be made; its output says why. */
const char *sandbox_layers(const char *told);

#endif

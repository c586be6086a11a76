/* The private copy of a project that a run with the grant "rw" works on, and what comes of it:
 * a patch. Below `copies` of the data root, where a start finds what a kill left, stand two trees,
 *
 *	copies/S-…/base/    as it was when the copy was made: nobody sees it
 *	copies/S-…/tree/    what the run's tools see in the project's place, and change
 *	copies/S-…/head     a link whose target is the commit that HEAD named then, in a repository
 *
 * with the files that no ignore file names, whether git knows them or not, committed or not, and
 * the links. It is made whole or not at all, so that after a crash it is there or made anew; the
 * project is only read, and no program is run over it. All calls block; any thread. */
#ifndef TOOL_COPY_H
#define TOOL_COPY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct ava_error;

#define COPY_HEAD_MAX  64 /* hex digits of a commit's id, with SHA-256 */
#define COPY_FILES_MAX 50000
#define COPY_BYTES_MAX (256ull << 20)
#define COPY_LOOK_MAX  300000 /* names looked at for changes */
#define COPY_LEFT_MAX  50     /* names reported of changes outside of the patch */

struct copy_wish {
	const char *folder;  /* where the copy goes; the parent folder is made if need be */
	const char *project; /* absolute */
	const char *const *keep_out;
	/* Patch of the run that is continued, to be applied to the new copy; NULL: none. */
	const char *patch;
	size_t patch_len;
	const atomic_bool *stop;
};

/* Make the copy unless it exists: 0. AVA_ETOOBIG: more than the bounds above; AVA_ECANCELED.
 * AVA_EEXIST: made, but without the patch, which no longer fits. */
int copy_make(const struct copy_wish *w, struct ava_error *err);

/* Differences of the tree from the base. */
struct copy_changes {
	char head[COPY_HEAD_MAX + 1]; /* the project's commit when it was copied; "": not known */
	struct buf patch;
	struct buf left; /* [{"path","why"}]: changes that the patch does not hold */
	size_t files, nleft;
};
/* The caller calls copy_changes_fini, also after an error. AVA_ENOENT: no copy. */
int copy_changes(const char *folder, struct copy_changes *out, struct ava_error *err);
void copy_changes_fini(struct copy_changes *c);

/* Restore the file `path` of the copy whose tree is `tree` from the base: 0. 1: the base does not
 * have it. -1: it is not `large`, and stays, or errno says why not. */
int copy_put_back(const char *tree, const char *path, bool large);

/* Remove a folder (`path` from the folder `at`, or AT_FDCWD) with all its contents, however deep;
 * undeletable files stay. */
void copy_remove(int at, const char *path);

/* ---- head.c: the commit that the HEAD of a repository of git names, read from its files: no
 * program is run over a project before a person asks for it. */
/* Read it of the repository that `folder` (absolute) is in: a clone, a worktree or a submodule.
 * False: in none, without a commit, or one whose form is not known (reftable). */
bool head_read(const char *folder, char out[COPY_HEAD_MAX + 1]);

#endif

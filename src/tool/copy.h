/* The private copy of a project that a run with the grant "rw" works on, and what comes of it:
 * a patch. Below the run's folder of the data root stand two trees,
 *
 *	runs/S-…/copy/base/    as it was when the copy was made: nobody sees it
 *	runs/S-…/copy/tree/    what the run's tools see in the project's place, and change
 *
 * with the files that no ignore file names, whether git knows them or not, committed or not, and
 * the links. It is made whole or not at all, so that after a crash it is there or made anew; the
 * project is only read, and no program is run over it. All calls block; any thread. */
#ifndef TOOL_COPY_H
#define TOOL_COPY_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct ava_error;

#define COPY_FILES_MAX 50000
#define COPY_BYTES_MAX (256ull << 20)
#define COPY_LOOK_MAX  300000 /* names that are looked at for changes */
#define COPY_LEFT_MAX  50     /* names that are said of what is not in a patch */

struct copy_wish {
	const char *folder;  /* of the copy; what it is in is there, or is made */
	const char *project; /* absolute */
	const char *const *keep_out;
	const char *patch; /* that it begins with: of the run it goes on from; NULL: none */
	size_t patch_len;
	const atomic_bool *stop;
};

/* It is there already, or is made: 0. AVA_ETOOBIG: more than the bounds above; AVA_ECANCELED.
 * AVA_EEXIST: it was made, but without the patch, which does not fit any more. */
int copy_make(const struct copy_wish *w, struct ava_error *err);

/* What the tree has otherwise. */
struct copy_changes {
	struct buf patch;
	struct buf left;              /* [{"path","why"}]: what changed and is not in it */
	size_t files, added, removed; /* in the patch; lines */
	size_t nleft;
};
/* The caller calls copy_changes_fini, also after an error. AVA_ENOENT: there is no copy. */
int copy_changes(const char *folder, struct copy_changes *out, struct ava_error *err);
void copy_changes_fini(struct copy_changes *c);

/* The file `path` of the copy whose tree is `tree` becomes again what it was when the copy was
 * made; not `large`: it is left, -1. 1: it was not there then. -1 and errno. */
int copy_put_back(const char *tree, const char *path, bool large);

/* Remove a folder (`path` from the folder `at`, or AT_FDCWD) with whatever a run left in it,
 * however deep; what cannot be stays. */
void copy_remove(int at, const char *path);

#endif

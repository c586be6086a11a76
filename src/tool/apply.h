/* Writing a run's proposed changes (codec/patch.h) into its folder, for `ava apply` in its own
 * process and for the daemon on a thread of the pool. Blocking.
 *
 * apply_plan tries all files; then the caller says whether, shows or asks; apply_lock and
 * apply_write carry it out. */
#ifndef TOOL_APPLY_H
#define TOOL_APPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/below.h"
#include "codec/patch.h"

struct ava_error;

struct apply_target {
	const struct patch_file *f;
	enum patch_fit fit;
	struct patch_clash clash;
	char *why; /* reason of a clash that the patch does not show; owned; or NULL */
	char *data;
	size_t len; /* length of the new content, `data` */
	struct stat was;
	bool there, obeyed; /* obeyed: programs act on this file, so no yes covers it */
	char spare[sizeof(BELOW_SPARE) + 48];
};

struct applying {
	const char *run, *cwd;   /* *borrowed*, as the next two */
	const char *const *also; /* files that are written though they are obeyed */
	size_t nalso;
	struct patch patch;
	struct apply_target *targets;       /* one for each file of the patch */
	size_t fit, there, clashes, obeyed; /* fit: without obeyed files */
	mode_t mask;                        /* for the modes of new files, as umask */
	int fd, lock;                       /* the folders of the project and of the run */
};

/* Opens the folder and tries each file of the patch `text`. 0 also where some clash. The caller
 * calls apply_fini, also after an error. AVA_ENOENT, AVA_EDENIED: the folder is not the one that
 * was confirmed, or another user's; AVA_EINVAL: `also` names a file that is none of them. */
int apply_plan(struct applying *a, const char *text, size_t len, struct ava_error *err);
/* Is it one of `also`? */
bool apply_named(const struct applying *a, const char *path);
/* Locks out another apply of the same run, which has the same spares. AVA_EBUSY: another one is at
 * work (unless `wait`). */
int apply_lock(struct applying *a, const char *root, bool wait, struct ava_error *err);
/* Writes what fits and is not obeyed, and nothing else. With the lock, and no clash. */
int apply_write(struct applying *a, struct ava_error *err);
/* "fits", "there" (it has its content), "clashes", "obeyed" */
const char *apply_state(const struct apply_target *t);
void apply_fini(struct applying *a);

#endif

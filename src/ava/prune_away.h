/* Removing what is pruned, all of it, also over a crash. */
#ifndef AVA_PRUNE_AWAY_H
#define AVA_PRUNE_AWAY_H

#include "journal/files.h"

struct ava_error;

/* Notes durably what is removed: files, and runs (ids) with their folders. 0: they will be removed,
 * also after a crash; else nothing is. */
int prune_away_begin(int rootfd, const struct files_names *files, const struct files_names *runs,
		     struct ava_error *err);
/* Removes everything noted, and the note; 0 also without a note. Every start calls it before it
 * looks at runs. */
int prune_away_finish(int rootfd, struct ava_error *err);

#endif

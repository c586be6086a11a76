/* Removing what is pruned, all of it, also over a crash. */
#ifndef AVA_PRUNE_AWAY_H
#define AVA_PRUNE_AWAY_H

#include "journal/files.h"

struct ava_error;

/* Write down, durably, what goes: files, and runs (ids) with their folders.
 * From here on it goes, whatever happens. 0 or a code; then nothing goes. */
int prune_away_begin(int rootfd, const struct files_names *files, const struct files_names *runs,
		     struct ava_error *err);
/* Remove what was written down and forget it; 0 also when there is nothing.
 * Every start does this before it looks at runs. */
int prune_away_finish(int rootfd, struct ava_error *err);

#endif

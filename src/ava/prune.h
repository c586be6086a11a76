/* Taking old runs and days away, so that what is left still verifies. */
#ifndef AVA_PRUNE_H
#define AVA_PRUNE_H

#include <stdbool.h>
#include <stdint.h>
#include "journal/files.h"

#include "ava/core.h"

/* Whole runs that ended before `cutoff_ms` (wall clock) and whole daily logs
 * of the days before it go, sealed heads and catalog rows stay. The root's
 * lock is the caller's; nobody serves it. `dry`: only say what would go.
 * `report` (initialised) gets {"dryRun","runs":[…],"days":[…],"files","bytes"}.
 * AVA_EBUSY: a run from before is not over; AVA_ECORRUPT: the logs are not as
 * they were sealed, and pruning would hide it. Then nothing was changed. */
int core_prune(const struct core_options *o, int64_t cutoff_ms, bool dry, struct buf *report,
	       struct ava_error *err);

/* ---- Removing what is pruned, all of it, also over a crash. */

struct ava_error;

/* Write down, durably, what goes: files, and runs (ids) with their folders.
 * From here on it goes, whatever happens. 0 or a code; then nothing goes. */
int prune_away_begin(int rootfd, const struct files_names *files, const struct files_names *runs,
		     struct ava_error *err);
/* Remove what was written down and forget it; 0 also when there is nothing.
 * Every start does this before it looks at runs. */
int prune_away_finish(int rootfd, struct ava_error *err);

#endif

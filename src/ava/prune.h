/* Taking old runs and days away, so that what is left still verifies. */
#ifndef AVA_PRUNE_H
#define AVA_PRUNE_H

#include <stdbool.h>
#include <stdint.h>

#include "ava/core.h"
#include "ava/verbs.h"

#define PRUNE_UNTOLD "say what is old: --older-than 90d, or retention.days in config.yaml"

/* Removes whole runs that ended before `cutoff_ms` (wall clock) and whole daily logs of the days
 * before it; sealed heads and catalog rows stay. The caller holds the root's lock, and no daemon
 * serves it. `dry`: only reports. `report` (initialised) gets
 * {"dryRun","runs":[…],"days":[…],"files","bytes"}. AVA_EBUSY: a run from before is not over;
 * AVA_ECORRUPT: the logs differ from their Seals, which pruning would hide; with these two nothing
 * was changed. */
int core_prune(const struct core_options *o, int64_t cutoff_ms, bool dry, struct buf *report,
	       struct ava_error *err);
/* Removes everything noted, and the note; 0 also without a note. Every start calls it before it
 * looks at runs. */
int prune_away_finish(int rootfd, struct ava_error *err);
/* POST /prune in a daemon at work. Runs that have not ended stay, with the daily logs from the day
 * on which the first of them began; threads of the pool read, hash and remove files, and their
 * Seals come between those of the work. */
void verb_prune(struct verb_call *v);
void verb_seal(struct verb_call *v);
extern const struct arg prune_args[];

#endif

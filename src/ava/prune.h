/* Taking old runs and days away, so that what is left still verifies. */
#ifndef AVA_PRUNE_H
#define AVA_PRUNE_H

#include <stdbool.h>
#include <stdint.h>

#include "ava/core.h"
#include "ava/verbs.h"

#define PRUNE_UNTOLD "say what is old: --older-than 90d, or retention.days in config.yaml"

/* Whole runs that ended before `cutoff_ms` (wall clock) and whole daily logs
 * of the days before it go, sealed heads and catalog rows stay. The root's
 * lock is the caller's; nobody serves it. `dry`: only say what would go.
 * `report` (initialised) gets {"dryRun","runs":[…],"days":[…],"files","bytes"}.
 * AVA_EBUSY: a run from before is not over; AVA_ECORRUPT: the logs are not as
 * they were sealed, and pruning would hide it. Then nothing was changed. */
int core_prune(const struct core_options *o, int64_t cutoff_ms, bool dry, struct buf *report,
	       struct ava_error *err);
/* The same in a daemon at work: POST /prune. Runs that are not over stay, with the daily logs
 * from the day on which the first of them began; files are read, hashed and removed on threads
 * of the pool, and the Seals about them come between those of the work. */
void verb_prune(struct verb_call *v);
extern const struct arg prune_args[];

#endif

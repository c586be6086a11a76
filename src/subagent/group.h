/* Runs that were confirmed together: one budget, one deadline, and one line in
 * the log when they begin (Fork) and when the last has ended (Join). A group is
 * in memory while one of its runs is; what it was is rebuilt at the next start
 * from the catalog and the specs of the runs that go on. Loop thread only. */
#ifndef SUBAGENT_GROUP_H
#define SUBAGENT_GROUP_H

#include <ava.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "subagent/run.h"

struct catalog_row;
struct draft;
struct run;
struct run_log;
struct supervisor;

/* Fork, when all that begin together have been spawned into the same draft. */
void group_fork(struct run *r, struct draft *d);
/* ---- the next start: rows in their order, then the runs that go on enter */
int group_restore(struct supervisor *s, const struct catalog_row *row);
/* Newest time in the record of a run that goes on. */
void group_seen(struct run *r, int64_t wall_ms);
void group_restored(struct supervisor *s); /* groups without a run are forgotten */

#endif

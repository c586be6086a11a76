/* Runs whose log is there while the catalog does not know them: the catalog
 * was removed, shortened or damaged. Their rows are written again, so that
 * no run is lost with it and no id or name is given twice. */
#ifndef SUBAGENT_SALVAGE_H
#define SUBAGENT_SALVAGE_H

#include "base/buf.h"

struct restart_hooks;
struct supervisor;
struct ava_error;

/* Append the rows to `rows` (as the catalog would have them) and commit them.
 * What was found is told as problems. 0, AVA_ENOMEM or why the journal refused. */
int salvage_runs(struct supervisor *s, const struct restart_hooks *hooks, struct buf *rows,
		 struct ava_error *err);

#endif

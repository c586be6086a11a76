/* Model calls of runs: agent_io.infer and what the other parts of a run need to
 * know of the call under way. Loop thread only. */
#ifndef SUBAGENT_INFER_H
#define SUBAGENT_INFER_H

#include "subagent/run.h"

int infer_start(struct agent *a, const struct agent_infer *call);
void infer_stop(struct agent *a);
/* No call is made for long: give back what only calls need. */
void infer_wait_long(struct run *r);
/* The runtime stops: what a call in flight had used is written while it is
 * known. The next start would have to guess. */
void infer_interrupted(struct run *r);
/* A reply with this id of the service's and this use came before: it is no other one.
 * Remembers it. */
bool infer_seen(struct run *r, const char *id, const struct usage *u);
/* A call that failed is made again, but the machine does not know yet. */
bool infer_has_failed(const struct run *r);
/* What the call in flight is charged when it is cut: an estimate. */
void infer_estimate(const struct run *r, struct usage *u);
/* InferEnd of the call that is open, if one is, charged by its estimate. */
void infer_close_cut(struct run *r, struct draft *d, const char *error_class, const char *sentence);

#endif

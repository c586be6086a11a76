/* Room in a run's conversation (agent_io.compact): reads messages.jsonl, lets
 * provider/context.h decide, and writes the outcome. Loop thread only. */
#ifndef SUBAGENT_ROOM_H
#define SUBAGENT_ROOM_H

#include "agent/compact.h"
#include "agent/repeat.h"

struct run;

int room_make(struct agent *a, const struct agent_compact *c);
/* agent_on_compacted does not come any more, nothing is written. */
void room_stop(struct run *r);
/* The calls of the run by their place, as its results stand in messages.jsonl. */
struct call_ref room_call_name(size_t k, void *run);

#endif

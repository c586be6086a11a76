/* Executing runs again from their records, beside the verbs of ava/ops.h and with
 * their rules: loop thread, strings borrowed during the call. */
#ifndef AVA_REPLAYS_H
#define AVA_REPLAYS_H

#include <stdbool.h>

struct ava_error;
struct core;
struct replay_report;

/* `run` and `report` are borrowed until it returns. */
typedef void (*op_replayed_fn)(int rv, const char *run, const struct replay_report *report,
			       const struct ava_error *err, void *user);

/* As replay_run (subagent/replay.h), on a pool thread; `done` once. Also AVA_EBUSY:
 * too many records are being read. */
void ops_replay(struct core *c, const char *run, bool lenient, op_replayed_fn done, void *user);

#endif

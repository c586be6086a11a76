/* The runtime as the calls of ava.h see it: calls.c (life, the other loop, proposals, runs,
 * conversations), events.c (cursors, callbacks, waits). */
#ifndef API_RUNTIME_H
#define API_RUNTIME_H

#include "api/shape.h"
#include "base/list.h"
#include "client/backend.h"

struct ava_runtime {
	struct backend *b;
	struct api_answer answer; /* of the last call */
	struct list events;       /* ava_events.node */
	struct list watches;      /* ava_watch.node */
	bool in_process;          /* a callback may be under way */
	bool more;                /* a watch had more than one look takes */
};

/* Where a call's error goes, without one yet: `own` when the caller wants none. */
static inline struct ava_error *runtime_error(struct ava_error *err, struct ava_error *own)
{
	err = err ? err : own;
	*err = (struct ava_error){0};
	return err;
}
/* A call begins: what the last one gave is gone. *err becomes runtime_error. */
void runtime_begin(struct ava_runtime *rt, struct ava_error **err, struct ava_error *own);
/* An id that may go into a path: not NULL, not empty, not endless. */
int runtime_id(const char *what, const char *id, struct ava_error *err);

/* The embedded backend, over the runtime itself. Codes as ava_runtime_new. `o` was checked to have
 * a root. */
int embedded_open(const struct ava_options *o, struct backend **out, struct ava_error *err);

/* events.c: call the callbacks of what came; how many, or an error. */
int watch_dispatch(struct ava_runtime *rt, struct ava_error *err);
void events_close_all(struct ava_runtime *rt);

#endif

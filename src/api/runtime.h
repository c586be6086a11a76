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

/* A call begins: what the last one gave is gone. *err becomes `own` when the
 * caller wants none. */
void runtime_begin(struct ava_runtime *rt, struct ava_error **err, struct ava_error *own);
/* An id that may go into a path: not NULL, not empty, not endless. */
int runtime_id(const char *what, const char *id, struct ava_error *err);

/* events.c: call the callbacks of what came; how many, or an error. */
int watch_dispatch(struct ava_runtime *rt, struct ava_error *err);
void events_close_all(struct ava_runtime *rt);

#endif

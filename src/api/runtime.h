/* The runtime as the calls of ava.h see it, shared by the files of this
 * folder: runtime.c (life, the other loop), calls.c, wait.c, events.c (cursors), watch.c
 * (callbacks). */
#ifndef API_RUNTIME_H
#define API_RUNTIME_H

#include "api/shape.h"
#include "base/list.h"
#include "client/backend.h"

struct ava_runtime {
	struct backend *b;
	struct answer answer; /* of the last call */
	struct list events;   /* ava_events.node */
	struct list watches;  /* ava_watch.node */
	bool in_process;      /* a callback may be under way */
	bool more;            /* a watch had more than one look takes */
};

struct ava_events {
	struct list node;
	struct ava_runtime *rt;
	struct backend_cursor *cur;
	struct answer strings; /* of the event given */
};

/* A call begins: what the last one gave is gone. *err becomes `own` when the
 * caller wants none. */
void runtime_begin(struct ava_runtime *rt, struct ava_error **err, struct ava_error *own);
/* An id that may go into a path: not NULL, not empty, not endless. */
int runtime_id(const char *what, const char *id, struct ava_error *err);

/* events.c: fill an event from its line; strings live in `strings`. */
int events_fill(struct answer *strings, const char *line, size_t len, struct ava_event *out,
		struct ava_error *err);
int events_check(const struct ava_events_query *q, struct ava_error *err);
/* watch.c: call the callbacks of what came; how many, or an error. */
int watch_dispatch(struct ava_runtime *rt, struct ava_error *err);
void watch_close_all(struct ava_runtime *rt);

#endif

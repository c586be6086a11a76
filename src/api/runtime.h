/* The runtime as the calls of ava.h see it: runtime.c (life, the other loop, proposals, runs,
 * conversations), events.c (cursors, callbacks, waits). */
#ifndef API_RUNTIME_H
#define API_RUNTIME_H

#include <stdbool.h>

#include <ava.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "client/backend.h"
#include "codec/json.h"

/* A call's result: strings and rows that live until the next call on the runtime. Growing fails
 * silently; answer_check tells. */
struct api_answer {
	struct arena mem;
	struct buf rows; /* structs of one kind, one behind the other */
	bool failed;
};
void answer_init(struct api_answer *a);
void answer_fini(struct api_answer *a);
void answer_reset(struct api_answer *a);
/* NUL-terminated copies, never NULL; `s` NULL: "". */
const char *answer_str(struct api_answer *a, const char *s);
const char *answer_strn(struct api_answer *a, const char *s, size_t len);
int answer_check(const struct api_answer *a, struct ava_error *err); /* 0, AVA_ENOMEM */
/* A value as JSON text; `absent` when there is none. */
const char *answer_json(struct api_answer *a, const json_t *v, const char *absent);

struct ava_runtime {
	struct backend *b;
	struct api_answer answer; /* what the last call returned */
	struct list events;       /* ava_events.node */
	struct list watches;      /* ava_watch.node */
	bool in_process;          /* a callback may be under way */
	bool more;                /* a watch has more items than watch_dispatch takes at once */
};

/* The caller's error, emptied; `own` in its place when the caller wants none. */
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

/* ---- shape.c: the structs of ava.h from the JSON of replies: the one decoder of the library
 * (client/spawn.h is the encoder). */

enum ava_status shape_status(const char *word); /* AVA_ERROR: an unknown word */
void shape_run(const json_t *o, struct api_answer *out, struct ava_run *r);
void shape_proposal(const json_t *o, struct api_answer *out, struct ava_proposal *p);
void shape_group(const json_t *o, struct api_answer *out, struct ava_group *g);   /* rows: runs */
void shape_replay(const json_t *o, struct api_answer *out, struct ava_replay *r); /* differences */
void shape_session(const json_t *o, struct api_answer *out, struct ava_session *s);
void shape_result(const json_t *o, struct api_answer *out, struct ava_result *r);

#endif

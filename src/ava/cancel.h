/* Stopping several runs at once, beside ops_cancel of ava/ops.h and with its
 * rules: loop thread, strings borrowed during the call. */
#ifndef AVA_CANCEL_H
#define AVA_CANCEL_H

#include <stdbool.h>
#include <stddef.h>

struct core;
struct op_status;
struct ava_error;

/* What became of one of several. */
struct op_cancelled {
	const struct op_status *status; /* NULL: there is no such run */
	const char *unknown;            /* then: its id, */
	const struct ava_error *error;  /* and why */
	bool had_ended;                 /* before it was cancelled: it keeps its status */
	bool model_call;                /* one was in flight, and is dropped */
	const char *tools_json;         /* names of the tools that were at work */
	unsigned left;                  /* of these, still winding up now that it has ended */
};
/* `ids` NULL: all live runs. `each` is called once for each of them when its end
 * is on disk, `done` after the last one. */
void ops_cancel_many(struct core *c, const char *const *ids, size_t n,
		     void (*each)(const struct op_cancelled *one, void *user),
		     void (*done)(int rv, const struct ava_error *err, void *user), void *user);

#endif

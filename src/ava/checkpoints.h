/* Naming the position of a run, beside the verbs of ava/ops.h and with their
 * rules: loop thread, strings borrowed during the call. */
#ifndef AVA_CHECKPOINTS_H
#define AVA_CHECKPOINTS_H

#include <stdbool.h>

struct core;
struct ava_error;

struct op_checkpoint {
	const char *run, *name;
	int call;      /* of its model: a fork from the checkpoint begins there */
	bool repeated; /* it had that name there before */
};
typedef void (*op_checkpoint_fn)(int rv, const struct op_checkpoint *k, const struct ava_error *err,
				 void *user);

/* A run that has not ended gets a checkpoint `name` where it is. `by`: who asks;
 * NULL: Ava. `done` once, when it is on disk. AVA_ENOENT: no such run; AVA_EEXIST:
 * it has ended, or the name stands elsewhere; AVA_EINVAL: no such name is
 * possible; AVA_ETOOBIG: it has the most there can be; AVA_EBUSY. */
void ops_checkpoint(struct core *c, const char *run, const char *name, const char *by,
		    op_checkpoint_fn done, void *user);

#endif

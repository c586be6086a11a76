/* Saying something to a run, beside the verbs of ava/ops.h and with their
 * rules: loop thread, strings borrowed during the call. */
#ifndef AVA_STEER_H
#define AVA_STEER_H

struct core;
struct ava_error;

struct op_steered {
	const char *run;
	/* "queued": the model reads it at the next turn boundary, an event Steering
	 * with this steer_id says so; "answered": it was the answer to call_id. */
	const char *outcome, *steer_id, *call_id; /* ids: "" when it has none */
};
typedef void (*op_steered_fn)(int rv, const struct op_steered *s, const struct ava_error *err,
			      void *user);

/* A run that asks a person takes `text` as the answer: of a question anything
 * (the number of a choice is that choice), of a call that needs a yes a yes, or
 * a no with its reason. `call_id` (NULL: whatever it asks) binds it to one
 * question. Else the run at work is told. `by` NULL: Ava passes on what the
 * person said to her; she cannot give a yes. `done` once, when it is on disk.
 * AVA_ENOENT: no such run, or it does not ask that; AVA_EEXIST: it has ended;
 * AVA_EBUSY; AVA_EINVAL; AVA_EDENIED. */
void ops_steer(struct core *c, const char *run, const char *text, const char *call_id,
	       const char *by, op_steered_fn done, void *user);

#endif

/* Saying something to a run, beside the verbs of ava/ops.h and with their
 * rules: loop thread, strings borrowed during the call. */
#ifndef AVA_STEER_H
#define AVA_STEER_H

struct core;
struct ava_error;

struct op_steer {
	const char *run, *text;
	const char *call_id;    /* NULL: whatever it asks */
	const char *request_id; /* the same is kept once, also after a crash; NULL: none */
	/* NULL: Ava passes on what the person said to her; she cannot give a yes. */
	const char *by;
};

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
 * question. Else the run at work is told. `done` once, when it is on disk. What
 * came with this request id before is answered as it was then, whatever has become
 * of the run since. AVA_ENOENT: no such run, or it does not ask that; AVA_EEXIST:
 * it has ended; AVA_EBUSY; AVA_EINVAL; AVA_EDENIED. */
void ops_steer(struct core *c, const struct op_steer *s, op_steered_fn done, void *user);

#endif

/* From a request to the spec of a run that goes on from an ended one. */
#ifndef AVA_RESUME_H
#define AVA_RESUME_H

#include <stdbool.h>

#include "subagent/spec.h" /* struct op_spawn */

struct ava_error;
struct core;

static inline bool resume_wanted(const struct op_spawn *s)
{
	return s->resume && *s->resume;
}

/* rv 0: `spec` is the callee's and can be spawned; NULL: the same request (its
 * request_id) was being worked on and is answered: ask again with `s`. */
typedef void (*resume_fn)(int rv, struct run_spec *spec, const struct op_spawn *s,
			  const struct ava_error *err, void *user);

/* Reads what the ended run leaves, on pool threads; what the request does not name is
 * as it was in that run: role, task, model, tools, folder, limits. `s` is *copied*;
 * `ready` once, later or at once. AVA_ENOENT: there is no such run, or its messages are
 * gone; AVA_EBUSY: it has not ended, or many records are being read; AVA_ECORRUPT;
 * else as spec_build. */
void resume_begin(struct core *c, const struct op_spawn *s, resume_fn ready, void *user);

/* Of a spec that was quoted: read again what it begins with, when it is confirmed.
 * `spec` is *borrowed until ready*, which comes later (after 0 only), with spec. */
int resume_again(struct core *c, struct run_spec *spec, resume_fn ready, void *user,
		 struct ava_error *err);

#endif

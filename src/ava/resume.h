/* What a request to resume an ended run leaves open is taken from that run. */
#ifndef AVA_RESUME_H
#define AVA_RESUME_H

struct ava_error;
struct core;
struct op_spawn;
struct run_spec;

/* The spec of a request. With s->resume: role, task, context, folder, model, tools,
 * grants and limits that it does not name are those of that run. As spec_build;
 * AVA_ENOENT: no such run; AVA_EBUSY: it has not ended. */
int resume_build(struct core *c, const struct op_spawn *s, struct run_spec **out,
		 struct ava_error *err);

#endif

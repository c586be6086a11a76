/* A run that has ended, as its files tell: the first and the last event of its
 * log, its result.json. */
#ifndef AVA_ENDED_H
#define AVA_ENDED_H

#include <jansson.h>

#include "ava/ops.h"

struct ended {
	struct op_status status;  /* strings in those below */
	json_t *spawn, *complete; /* owned; complete NULL: it has not ended */
	char last_tool[64];
};

/* AVA_ENOENT: no such run. The caller calls ended_fini. */
int ended_read(struct core *c, const char *run, struct ended *out, struct ava_error *err);
void ended_fini(struct ended *e);

/* result.json as it is; *json is the caller's (free). */
int ended_result(struct core *c, const char *run, char **json, size_t *len, struct ava_error *err);

#endif

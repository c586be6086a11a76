/* ava run --parallel FILE.jsonl: several tasks, one quote, one answer, and what
 * came of each. */
#ifndef CLI_PARALLEL_H
#define CLI_PARALLEL_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"

struct ava_error;
struct client;

struct parallel_options {
	const char *file; /* "-": standard input */
	bool chain, share;
	int64_t timeout_ms, cost_microusd; /* of all together; OPT_ABSENT */
};

/* Body of POST /groups: each line of the file is the object of a run. */
int parallel_request(struct buf *out, const struct parallel_options *o, const char *cwd,
		     const char *request_id, struct ava_error *err);

/* Until all have ended, telling each end on `talk`. With *interrupt they are
 * cancelled, once. *out is the group with a result in each of its runs, a new
 * reference; *c may be replaced. */
int parallel_follow(struct client **c, const char *group, FILE *talk,
		    volatile sig_atomic_t *interrupt, json_t **out, struct ava_error *err);
/* What a person reads of it, and the exit code: done when all succeeded; of the
 * worst otherwise. */
void parallel_show(FILE *f, const json_t *group);
int parallel_exit(const json_t *group);

#endif

/* Reading of files for a verb, on a pool thread: a long record does not hold the
 * loop. In core.c. */
#ifndef AVA_JOB_H
#define AVA_JOB_H

#include "os/loop.h"

struct ava_error;
struct core;

#define JOBS_MAX 8 /* at once; others need the pool too */

/* Embed it; *borrowed until done*, which always comes, before the runtime is closed. */
struct job {
	struct os_work work;
	struct core *core;           /* outlives it */
	void (*run)(struct job *j);  /* pool thread: files, and what is only its own */
	void (*done)(struct job *j); /* loop; may free its container */
};

/* AVA_EBUSY: JOBS_MAX are at work, or the runtime stops; then it was not begun. */
int job_begin(struct core *c, struct job *j, struct ava_error *err);
/* The same without a limit, for what takes milliseconds. */
int job_begin_short(struct core *c, struct job *j, struct ava_error *err);
/* Before anything is closed: no more of them, and those at work end. */
void jobs_end(struct core *c);

#endif

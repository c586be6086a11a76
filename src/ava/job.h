/* Reading of files for a verb, on a pool thread: a long record does not hold the
 * loop. In core.c. */
#ifndef AVA_JOB_H
#define AVA_JOB_H

#include "os/loop.h"

struct ava_error;
struct core;

#define JOBS_MAX 8 /* at once; others need the pool too */

/* Embedded; *borrowed until done*, which always comes, before the runtime is closed. */
struct job {
	struct os_work work;
	struct core *core;           /* outlives the job */
	void (*run)(struct job *j);  /* pool thread: reads files and its own fields only */
	void (*done)(struct job *j); /* loop; may free its container */
};

/* AVA_EBUSY: JOBS_MAX are at work, or the runtime stops; then it was not begun. */
int job_begin(struct core *c, struct job *j, struct ava_error *err);
/* Without that limit, for a job of milliseconds. */
int job_begin_short(struct core *c, struct job *j, struct ava_error *err);
/* Ends jobs at work and refuses new ones, before anything is closed. */
void jobs_end(struct core *c);

#endif

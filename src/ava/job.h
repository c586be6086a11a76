/* Reads files for a verb on a pool thread, so that a long record does not hold the loop. In
 * core.c. */
#ifndef AVA_JOB_H
#define AVA_JOB_H

#include "os/loop.h"

struct ava_error;
struct core;

#define JOBS_MAX 8 /* at once; others need pool threads, too */

/* Embedded; *borrowed until done*, which always comes, before the runtime is closed. */
struct job {
	struct os_work work;
	struct core *core;           /* outlives the job */
	void (*run)(struct job *j);  /* pool thread: reads files and its own fields only */
	void (*done)(struct job *j); /* loop; may free its container */
};

/* AVA_EBUSY: JOBS_MAX are at work, or the runtime stops; `done` is not called then. */
int job_begin(struct core *c, struct job *j, struct ava_error *err);
/* The same without JOBS_MAX, for a job of milliseconds. */
int job_begin_short(struct core *c, struct job *j, struct ava_error *err);
/* Refuses new jobs and waits for those at work, before anything is closed. */
void jobs_end(struct core *c);

#endif

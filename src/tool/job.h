/* Shared by all tools that work on the pool: their life from start to done, reading arguments, and
 * when to stop. */
#ifndef TOOL_JOB_H
#define TOOL_JOB_H

#include <ava.h>
#include <jansson.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/tool.h"
#include "base/clock.h"

/* A tool's work, on a pool thread: append to c->out and return 0, or return a code with a sentence
 * in `err`, which then is the whole outcome. */
typedef int (*job_fn)(struct tool_call *c, struct ava_error *err);

/* Run `fn` on the pool; c->done is called once. A tool with TOOL_FILES in a
 * run without a folder, or memory that ran out, fails right here. */
void job_start(struct tool_call *c, job_fn fn);
/* Most bytes of the answer's body; `spare` of all are for the text around it. */
size_t job_body_max(const struct tool_call *c, size_t spare);
/* Run `fn` at once, on the loop, for work that surely waits for nothing. `fn` may return JOB_LATER
 * instead, with nothing written: then false, and job_start is due. */
#define JOB_LATER 1
bool job_now(struct tool_call *c, job_fn fn);

/* The class of the model's error for a code of ava.h; static. */
const char *job_error_class(int code);
/* The call has failed: the sentence is its whole outcome. c->done is the caller's. */
void job_fail(struct tool_call *c, const char *class, const char *sentence);

/* An argument, *borrowed*: NULL when it is not there. AVA_EINVAL for a NUL
 * inside, which no path or pattern can hold. */
int job_arg_str(const json_t *args, const char *key, const char **s, struct ava_error *err);

/* Make the run's own folder: below the data root, closed to others. Its path goes into `out`. */
int job_make_work(const struct tool_env *env, char out[PATH_MAX], struct ava_error *err);

/* `s` in quotes for a message: escaped as JSON, at most 80 characters. */
void job_quote(struct buf *out, const char *s);
/* A path or an id as the model wrote it, for one line: at most 200 characters,
 * control characters as '?'. */
void job_name(struct buf *out, const char *s);

/* ---- when long work must stop: the run no longer wants it, or its time is up */

struct gate {
	const atomic_bool *stop;
	int64_t deadline_ms; /* clock_mono_ms */
	int seconds;         /* the limit, for a sentence */
};

static inline struct gate gate_of(const struct tool_call *c)
{
	int64_t ms = c->env->time_ms;

	return (struct gate){&c->stop, clock_mono_ms() + ms, (int)(ms / 1000)};
}

/* 0, AVA_ECANCELED or AVA_ETIMEOUT. Cheap: call it every 64 KB and folder. A stop wins
 * over a deadline that passed, since nobody reads the answer then. */
static inline int gate_check(const struct gate *g)
{
	if (atomic_load_explicit(g->stop, memory_order_relaxed))
		return AVA_ECANCELED;
	return clock_mono_ms() < g->deadline_ms ? 0 : AVA_ETIMEOUT;
}

#endif

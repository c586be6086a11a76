/* What every tool that works on the pool shares: its life from start to done,
 * and reading arguments. */
#ifndef TOOL_JOB_H
#define TOOL_JOB_H

#include <jansson.h>
#include <stdbool.h>

struct ava_error;
struct buf;
struct tool_call;

/* The tool's work, on a pool thread: append to c->out and return 0, or return
 * a code with a sentence in `err`, which then is the whole outcome. */
typedef int (*job_fn)(struct tool_call *c, struct ava_error *err);

/* Run `fn` on the pool; c->done is called once. A tool with TOOL_FILES in a
 * run without a folder, or memory that ran out, fails right here. */
void job_start(struct tool_call *c, job_fn fn);
/* The same at once, on the loop, for work that surely waits for nothing. `fn`
 * may return JOB_LATER instead, with nothing written: then false, and
 * job_start is due. */
#define JOB_LATER 1
bool job_now(struct tool_call *c, job_fn fn);

/* The class of the model's error for a code of ava.h; static. */
const char *job_error_class(int code);

/* An argument, *borrowed*: NULL when it is not there. AVA_EINVAL for a NUL
 * inside, which no path or pattern can hold. */
int job_arg_str(const json_t *args, const char *key, const char **s, struct ava_error *err);

/* `s` in quotes for a message: escaped as JSON, at most 80 characters. */
void job_quote(struct buf *out, const char *s);
/* A path or an id as the model wrote it, for one line: at most 200 characters,
 * control characters as '?'. */
void job_name(struct buf *out, const char *s);

#endif

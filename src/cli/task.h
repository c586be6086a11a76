/* The task and options of `ava run`, checked and made into the request. */
#ifndef CLI_TASK_H
#define CLI_TASK_H

#include <ava.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/spawn_options.h"
#include "cli/opts.h"

struct ava_error;

#define TASK_MAX    ((size_t)256 << 10) /* bytes, as the daemon takes them */
#define CONTEXT_MAX ((size_t)1 << 20)
#define SCHEMA_MAX  ((size_t)64 << 10)

struct task_options {
	struct ava_spawn spawn; /* output_schema: the name of a file; without its lists */
	struct opt_list grants, ask_before, tags;
	const char *order;  /* JSON of a standing order (doc/ORDERS.md), whose runs it is; NULL */
	const char *resume; /* instead of a task: an ended run that goes on */
	const char *from;   /* the model call or checkpoint to go on before; NULL: the run's end */
	const char *parallel;  /* instead of a task: a file with an object of a run in each line */
	struct opt_list files; /* files for the context */
	bool chain, share;
	bool no_files; /* without the current folder */
};

/* Rows of options from the rows of base/spawn_options.h, for a command that keeps its values in an
 * `o` with `struct task_options task`: SPAWN_FLAGS(OPTION). */
#define OPTION_TEXT(field, name, letter, value, help)                                              \
	OPT(name, letter, STR, value, task.spawn.field, help),
#define OPTION_JSON OPTION_TEXT
#define OPTION_MS(field, name, letter, value, help)                                                \
	OPT(name, letter, SECONDS, value, task.spawn.field, help),
#define OPTION_CENTS(field, name, letter, value, help)                                             \
	OPT(name, letter, CENTS, value, task.spawn.field, help),
#define OPTION_ROUNDS(field, name, letter, value, help)                                            \
	OPT(name, letter, ROUNDS, value, task.spawn.field, help),
#define OPTION_COUNT(field, name, letter, value, help)                                             \
	OPT(name, letter, COUNT, value, task.spawn.field, help),
#define OPTION_SWITCH(field, name, letter, value, help)                                            \
	OPT(name, letter, SWITCH, value, task.spawn.field, help),
#define OPTION_TEXTS(field, name, letter, value, help)                                             \
	OPT(name, letter, LIST, value, task.field, help),
#define OPTION(kind, field, key, ...) OPTION_##kind(field, __VA_ARGS__)

/* Is something of a spawn given, or a file? */
bool task_any(const struct task_options *o);

/* The whole request, body of POST /runs, or of POST /groups: `text` is the task ("-": what
 * comes from `fd`). Below, its parts. */
int task_body(struct buf *out, const struct task_options *o, const char *text, int fd,
	      struct ava_error *err);

/* --from, as task_options.from. AVA_EINVAL. */
int task_check_from(const char *from, struct ava_error *err);

/* The task into `out`: `text`, or all of `fd` when it is "-". Empty, too long
 * or not UTF-8: AVA_EINVAL or AVA_ETOOBIG with what to do. */
int task_read(struct buf *out, const char *text, int fd, struct ava_error *err);

/* The context: --context, then each file below a line with its name; "-" is what
 * comes from `fd`. Only text, all of it together at most CONTEXT_MAX. */
int task_context(struct buf *out, const struct task_options *o, int fd, struct ava_error *err);
/* Is "-" among the files? */
bool task_file_is_stdin(const struct task_options *o);

/* Body of POST /runs. `cwd`: the folder the run works in; NULL: none. */
int task_request(struct buf *out, const struct task_options *o, const struct buf *task,
		 const struct buf *context, const struct buf *schema, const char *cwd,
		 const char *request_id, struct ava_error *err);

/* The current folder without links; AVA_ENOENT when it was removed. *Owned*
 * by the caller (free). */
int task_cwd(char **cwd, struct ava_error *err);

/* "yes", "no" and the like need no parsing here: the daemon decides. One line
 * from `fd` without its newline, at most 4 KB. 1: a line; 0: the end of input;
 * AVA_ECANCELED: a signal came; AVA_EIO. */
int task_answer(int fd, char out[4096], struct ava_error *err);
/* The answer from stdin to a question on stderr. 1: a yes; 0: another; -1: the end of input; else
 * an error. */
int task_yes(void);

#endif

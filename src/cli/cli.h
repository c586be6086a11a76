/* A subcommand: one row, exported by its own file, and its exit codes. Help, dispatch and "did you
 * mean" print and read the rows. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <ava.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/doors.h"
#include "cli/opts.h"

enum cli_exit {
	CLI_DONE = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_LIMIT = 3,    /* a limit of the run was reached */
	CLI_REJECTED = 4, /* the proposal was rejected or has expired */
	CLI_NOSUCH = 5,
	CLI_WAITED = 124, /* a wait ran out; the run goes on */
};

struct command {
	const char *name;
	const char *args;       /* "TASK", "S-id..."; "" when it takes none */
	int min_args, max_args; /* words; max -1: any number */
	const char *summary;    /* one line for `ava help` */
	const char *detail;     /* paragraphs for `ava help NAME`; NULL: none */
	const struct opt *opts;
	size_t nopts;
	void *values;                      /* filled in by opts */
	int (*run)(int argc, char **argv); /* gets the words left; returns enum cli_exit */
	bool always_done; /* wrong options exit 0, too: the code is an answer to the caller */
};

/* A row, its members in their order. */
#define COMMAND(...)                                                                               \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
/* The options of a command that keeps their values in `o`. */
#define OPTIONS(table) .opts = table, .nopts = sizeof(table) / sizeof((table)[0]), .values = &o

/* All commands in the order of help, which leaves out subcommands, as `ava logs verify`. */
#define COMMANDS(X)                                                                                \
	X(chat)                                                                                    \
	X(run)                                                                                     \
	X(ps)                                                                                      \
	X(status)                                                                                  \
	X(events)                                                                                  \
	X(wait)                                                                                    \
	X(result)                                                                                  \
	X(apply)                                                                                   \
	X(cancel)                                                                                  \
	X(pause)                                                                                   \
	X(unpause)                                                                                 \
	X(move)                                                                                    \
	X(steer)                                                                                   \
	X(resume)                                                                                  \
	X(schedule)                                                                                \
	X(trigger)                                                                                 \
	X(proposals)                                                                               \
	X(asks)                                                                                    \
	X(answer)                                                                                  \
	X(confirm)                                                                                 \
	X(reject)                                                                                  \
	X(logs)                                                                                    \
	X(costs)                                                                                   \
	X(trace)                                                                                   \
	X(messages)                                                                                \
	X(replay)                                                                                  \
	X(sessions)                                                                                \
	X(roles)                                                                                   \
	X(skills)                                                                                  \
	X(memory)                                                                                  \
	X(prune)                                                                                   \
	X(export)                                                                                  \
	X(serve)                                                                                   \
	X(stop)                                                                                    \
	X(restart)                                                                                 \
	X(cluster)                                                                                 \
	X(acp)                                                                                     \
	X(dashboard)                                                                               \
	DOORS(X) /* ava telegram, … */                                                           \
	X(doctor)                                                                                  \
	X(hook)                                                                                    \
	X(hooks)                                                                                   \
	X(mcp)                                                                                     \
	X(config)                                                                                  \
	X(completion)                                                                              \
	X(version)                                                                                 \
	X(help)                                                                                    \
	X(logs_verify)                                                                             \
	X(logs_head)                                                                               \
	X(logs_reindex)                                                                            \
	X(completion_words)

#define X(name, ...) extern const struct command cmd_##name;
COMMANDS(X)
#undef X
/* NULL after saying that there is none, and which one is near. `more` (NULL: none): the word
 * behind it, for the commands below `ava logs`. */
const struct command *command_find(const char *name, const char *more);
/* Parse its options, check the number of words, run it. */
int command_main(const struct command *c, int argc, char **argv);

/* `ava: run: <sentence>` on stderr, safe for a terminal. Returns `code`. */
int cli_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same from an error object; its code decides the exit code. */
int cli_fail(const struct ava_error *err);
/* A line on stderr that is no error: `ava: run: …` without ending anything. */
void cli_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The exit code for a terminal status word ("success", "timeout", ...). */
enum cli_exit cli_exit_of_status(const char *status);

/* The words as one text (*owned*) of at most `max` bytes. An exit code. */
int cli_words(struct buf *out, size_t max, int n, char **words);
/* Append what `fd` gives until its end. 0, the buffer's failure, or why `name`
 * cannot be read. */
int cli_read(int fd, const char *name, struct buf *out, struct ava_error *err);
/* Lines of a program that talks over standard input. */
struct cli_lines {
	struct buf line;
	bool too_long; /* the line's middle was dropped (codec/jsonrpc.h) */
	void (*take)(struct cli_lines *in);
};
/* Read what is there, and give each whole line to `take`. false: the input has ended, and in->line
 * has what stands behind the last newline. */
bool cli_lines(struct cli_lines *in);
/* CLI_DONE, or CLI_USAGE after saying what such an id looks like. A command whose arguments
 * are ids of runs or of a proposal alone gets them checked. */
int cli_check_run_id(const char *id);

/* A new run that goes on from a recorded one, before that call of its model or at that
 * checkpoint; `model` NULL: the same. It is quoted, confirmed and followed as by `ava run`.
 * Returns enum cli_exit. */
int run_fork(const char *run, const char *from, const char *model, bool yes, bool json);

/* A standing order: quoted, and confirmed as a run is. `task->order` is its plan, as JSON; returns
 * enum cli_exit. */
struct task_options;
int run_order(const struct task_options *task, const char *text, bool yes, bool json);

/* Why the hooks in Claude Code's settings are out of date, static text; NULL: they are not, or
 * there are none of ours. */
const char *hooks_stale(void);
/* Install those anew, with --activity where that was so. A file that is no JSON stays: AVA_EINVAL.
 */
int hooks_renew(struct ava_error *err);

#endif

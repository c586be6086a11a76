/* The check of a run (doc/SECURITY.md, "A check"): a command that proves its result, run in the
 * sandbox on its copy once it has handed in. The command stands in the spec, so that nothing a
 * model writes changes it; the files that it names may be changed, and that is told. */
#ifndef SUBAGENT_PROOF_H
#define SUBAGENT_PROOF_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/machine.h"

struct buf;
struct jw;
struct ava_error;

#define PROOF_ROUNDS     2 /* failed checks that go back to the model, unless a request says else */
#define PROOF_ROUNDS_MAX 10

/* The outcome of a check. */
struct proof {
	enum agent_check
		how; /* CHECK_PASSED, CHECK_FAILED, CHECK_UNABLE; RUNS: the run's end came */
	int exit;    /* -1: it was ended by a signal or its time, or never ran */
	int64_t ms;
	int32_t round; /* from 1 */
	const char
		*text; /* how it ended, in the first line, then the last of its output; borrowed */
};

struct proof *proof_copy(const struct proof *p); /* free() it; NULL: no memory */
/* Write members of an outcome into an open object, and read them back from the content of an event
 * Check (`text` is borrowed from it). false: the check only begins. */
void proof_write_outcome(struct jw *w, const struct proof *p, const char *text);
bool proof_read(const json_t *content, struct proof *p);

/* Write "check" of a result, and add its caveats to the list: it did not pass, or the run changed
 * what it runs; nothing where `command` is NULL. `p`: the newest outcome; NULL: there is none.
 * `changed`: the paths that the run changed, a JSON list; NULL: "edited" is left out. */
void proof_result(struct jw *w, const char *command, const struct proof *p, bool success,
		  const json_t *changed);
void proof_caveats(const char *command, const struct proof *p, bool success, const json_t *changed,
		   json_t *caveats);

/* Does the command run this file, by its path in the project: is it named, or one that a named
 * runner reads? */
bool proof_runs(const char *command, const char *path);
/* AVA_EINVAL: no command that a check can be. */
int proof_command(const char *command, struct ava_error *err);
/* The files of the folder that the command names, in the words of a quote; nothing when it names
 * none. */
void proof_named(struct buf *out, const char *command, const char *cwd);

#endif

/* A run's changes as a commit on a branch of the person's repository (`ava apply --branch`): made
 * in a worktree of its own below `branches` of the data root, so that nothing of the person's
 * changes before the branch gets its name in one step, or the current one goes forward to it. The
 * patch is written there by tool/apply.h, as it is into a folder.
 *
 * outcome_begin, apply_plan and apply_write in `place`, outcome_stage, outcome_show, then a yes,
 * outcome_commit, outcome_request; outcome_end in any case. doc/OUTCOMES.md is for people. */
#ifndef CLI_OUTCOME_H
#define CLI_OUTCOME_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"

struct applying;
struct ava_error;

#define OUTCOME_ID 65 /* bytes of a commit's or tree's id */

struct outcome_wish {
	const char *branch;  /* NULL: the current one goes forward */
	const char *message; /* NULL: from the result */
	const char *from;    /* "head", "copied"; NULL: as the folder was when it was copied */
	const char *base;    /* of the request; NULL: as the service has it */
	bool draft;
};

struct outcome {
	const struct outcome_wish *w;
	const char *run, *cwd;            /* borrowed, as `w` */
	char tree[PATH_MAX + 80];         /* the worktree; "": not made yet */
	char place[PATH_MAX];             /* in it, what `cwd` is in the repository */
	char head[OUTCOME_ID];            /* HEAD now */
	char copied[OUTCOME_ID];          /* HEAD when the folder was copied, or `head` */
	char base[OUTCOME_ID];            /* the commit where the branch begins */
	char laid[OUTCOME_ID];            /* tree with what was copied uncommitted; "": nothing */
	char commit[OUTCOME_ID];          /* what came of it */
	char onto[256];                   /* the current branch; "": HEAD is detached */
	size_t nlaid;                     /* files of `laid` */
	bool moved;                       /* HEAD is another one than when it was copied */
	const char *during;               /* "merge", "rebase": not ended there; NULL: nothing */
	struct buf message, author, stat; /* as they are shown */
};

/* `got`: the answer of GET /runs/{id}/patch; `result`: the run's. With the run's lock (apply_lock).
 * AVA_EINVAL, AVA_EEXIST, AVA_EDENIED, AVA_EIO: why there can be no such branch; nothing of the
 * person's has changed. */
int outcome_begin(struct outcome *o, const json_t *got, const json_t *result,
		  struct ava_error *err);
/* Marks what apply_plan planned as obeyed where the repository's configuration has git run it:
 * below its hooks, or named by a filter. */
void outcome_obeyed(const struct outcome *o, struct applying *a);
/* Puts what apply_write wrote into the index of the worktree. AVA_EREJECTED: nothing differs. */
int outcome_stage(struct outcome *o, const struct applying *a, struct ava_error *err);
/* The branch, its base, author, message and files. */
void outcome_show(FILE *f, const struct outcome *o);
int outcome_commit(struct outcome *o, struct ava_error *err);
/* Shows how the branch is pushed and a request opened for it, and with a yes (`push`, or an answer)
 * does that. AVA_EREJECTED: no yes. */
int outcome_request(const struct outcome *o, bool push, struct ava_error *err);
/* The branch that has the commit. */
const char *outcome_branch(const struct outcome *o);
/* Removes the worktree. */
void outcome_end(struct outcome *o);

#endif

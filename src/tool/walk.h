/* All files below a folder, in the order of their names: no links followed,
 * .git left out, ignore files honoured at every level. */
#ifndef TOOL_WALK_H
#define TOOL_WALK_H

#include <stdbool.h>
#include <stddef.h>

#define WALK_DEPTH_MAX   100    /* folders inside each other */
#define WALK_ENTRIES_MAX 200000 /* names in one folder */

struct ava_error;
struct root;

struct walk {
	const struct root *root;
	const char *start; /* folder relative to the root, "." for all of it */
	/* A regular file, to be opened as `name` of `dirfd` with
	 * root_open_entry. Not 0: the walk ends with it. */
	int (*file)(void *user, int dirfd, const char *name, const char *path);
	/* Before each folder and file. Not 0: the walk ends with it. */
	int (*poll)(void *user);
	void *user;
	/* What was left out, for the summary. */
	size_t unreadable; /* folders that could not be opened or listed */
	size_t odd;        /* names that are no valid text, or too long */
	size_t deep;       /* folders below the deepest level */
	size_t crowded;    /* folders with names past WALK_ENTRIES_MAX */
};

/* 0, what a callback returned, or a code with a sentence when the start
 * cannot be opened or memory ran out. */
int walk_run(struct walk *w, struct ava_error *err);

#endif

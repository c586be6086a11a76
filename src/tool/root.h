/* Opening files and folders below a run's working folder, and nowhere else, for any path and any
 * change during the lookup. */
#ifndef TOOL_ROOT_H
#define TOOL_ROOT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct ava_error;

struct root {
	int fd;                      /* the working folder; borrowed */
	const char *cwd;             /* path of that folder, for messages only; borrowed */
	const char *const *keep_out; /* as in tool_env; borrowed */
};

/* A path argument as a path relative to the folder: no ".", "..", double or trailing slashes; "."
 * for the folder itself. An absolute path must begin with the folder's. AVA_EDENIED outside,
 * AVA_EINVAL when it is no path. Nothing is looked up. */
int root_path(const struct root *root, const char *arg, char out[PATH_MAX], struct ava_error *err);

/* Open a regular file for reading. Symbolic links are followed while they
 * stay inside. Anything else (folder, FIFO, device, socket, a file of procfs)
 * is refused at once. Returns the descriptor, or AVA_ENOENT, AVA_EDENIED,
 * AVA_EIO with a sentence for the model. */
int root_open_file(const struct root *root, const char *path, struct stat *st,
		   struct ava_error *err);
/* Open a file that the kernel finds without reading a disk. -1: use root_open_file, also for the
 * reason. */
int root_open_cached(const struct root *root, const char *path, struct stat *st);
/* Open a folder for listing. */
int root_open_dir(const struct root *root, const char *path, struct ava_error *err);

/* Open an entry of an open folder, for walks: never follows a link, never waits. -1 and errno. */
int root_open_entry(int dirfd, const char *name, bool dir);

/* Tests: use openat2 where the kernel has it? Without it paths are walked part by part and no link
 * is followed. */
void root_use_openat2(bool on);

/* ---- All files below a folder, in the order of their names: no links followed,
 * .git left out, ignore files honoured at every level. */

#define WALK_DEPTH_MAX   100    /* folders inside each other */
#define WALK_ENTRIES_MAX 200000 /* names in one folder */

struct ava_error;
struct root;

struct walk {
	const struct root *root;
	const char *start; /* folder relative to the root, "." for all of it */
	/* A regular file, to be opened as `name` of `dirfd` with root_open_entry. Not 0: ends the
	 * walk. */
	int (*file)(void *user, int dirfd, const char *name, const char *path);
	/* Another entry (a link, a FIFO), or .git; likewise. NULL: skip them. */
	int (*other)(void *user, int dirfd, const char *name, const char *path);
	/* Called before each folder and file. Not 0: ends the walk. */
	int (*poll)(void *user);
	void *user;
	/* Entries that were left out, for the summary. */
	size_t unreadable; /* folders that could not be opened or listed */
	size_t odd;        /* names that are no valid text, or too long */
	size_t deep;       /* folders below the deepest level */
	size_t crowded;    /* folders with names past WALK_ENTRIES_MAX */
	size_t slow;       /* ignore files whose rules take too long, and were left out */
};

/* 0, what a callback returned, or a code with a sentence when the start
 * cannot be opened or memory ran out. */
int walk_run(struct walk *w, struct ava_error *err);

#endif

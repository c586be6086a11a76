/* Small durable steps on files below the data root: names, folders, whole-file
 * replacement. All through the seam of base/sys.h; -1 and errno on failure. */
#ifndef JOURNAL_FILES_H
#define JOURNAL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <stdint.h>

#include "base/hash.h"

struct ava_error;

#define FILES_PATH_MAX 512 /* longest path that callers may give */
#define FILES_NAME_MAX 200 /* longest component of a path; leaves room for suffixes */
#define FILES_BUF      (FILES_PATH_MAX + 64) /* holds a path with any suffix */

/* Is the path relative, of [A-Za-z0-9._/-], without an empty, "." or ".." component? */
bool files_path_ok(const char *path);

/* The file of part `part` of `path`: `path` itself for 1, then "x.2.jsonl" for "x.jsonl" ("x.2"
 * for a path without that ending). */
const char *files_part_name(const char *path, unsigned part, char out[FILES_BUF]);
/* Is `path` in a folder that was linked or mounted from another file system, which syncfs on
 * ours does not reach? 1, 0, or -1 and errno. */
int files_apart(int rootfd, const char *path);
/* Does the path name a later part: x.2.jsonl, begun when a recovery left x.jsonl as it was? */
bool files_is_part(const char *path);
/* Compare names of daily logs, for qsort: "2026-11-21.10.jsonl" stands behind
 * "2026-11-21.2.jsonl". */
int files_by_day(const void *a, const void *b);

/* Make a folder of ours (0700) when it is missing; anything else under its name is put aside. */
int files_mkdir(int rootfd, const char *dir);
/* Is it a regular file, but not a sparse one of gigabytes with hardly any data, which would take
 * hours to read? */
bool files_is_file(const struct stat *st);
/* Did a read fail (`why`) because of the file itself? False: because of the disk. */
bool files_is_foreign(int rootfd, const char *name, int why);
/* Open a file; with O_CREAT missing folders are made and the file is 0600. Never follows a link at
 * the end, never waits for a fifo (ENXIO, also for a file that is all hole). A mode that closes a
 * file of ours to us is mended. */
int files_open(int rootfd, const char *path, int flags);
/* fsync each folder of `path`, the root included, so that its name is durable. */
int files_sync_parents(int rootfd, const char *path);
int files_sync_dir(int dirfd, const char *path);

/* Replace the whole content of `path` by a temporary file beside it and a rename. With `durable`
 * bytes and name are on disk on return. */
int files_replace(int rootfd, const char *path, const void *bytes, size_t len, bool durable);
/* The same, and returns the descriptor it was written through, *owned*: that tells of a sync
 * which failed. -1 and errno. */
int files_put(int rootfd, const char *path, const void *bytes, size_t len, bool durable);

/* Remove the temporary file of a files_replace that a crash cut. Best effort. */
void files_drop_temp(int rootfd, const char *path);

/* Keep these bytes in the first of `path`, `path`.2 … that has exactly them, or is free and gets
 * them (durably); its name goes to `out`. Doing it twice leaves one copy. */
int files_keep(int rootfd, const char *path, const void *bytes, size_t len, char out[FILES_BUF]);

/* Is the content of `path` exactly these bytes? 1, 0, or -1. */
int files_equal(int rootfd, const char *path, const void *bytes, size_t len);
/* Write bytes that files_equal found there once more, in place: those that a failed sync dropped
 * look fine in memory. The temporary file of a cut replacement is removed. */
int files_rewrite(int rootfd, const char *path, const void *bytes, size_t len);

/* Close *fd where it is open, and set it to -1; keeps errno. */
void files_close(int *fd);

/* Could `data` be what a power cut leaves of `ours`: its beginning, some bytes read as zeros? */
bool files_cut_of(const void *ours, const void *data, size_t len);

/* Size and SHA-256 of a file. AVA_EIO: it cannot be read. */
int files_hash(int rootfd, const char *path, uint64_t *size, char hex[HASH_HEX_LEN + 1]);

/* Is `name` the SHA-256 of the file? Another name than a hash, or a file that went, says nothing:
 * true. */
bool files_named_by_hash(int rootfd, const char *path, const char *name);
/* Is a head of requests missing, "heads/…", that the first `upto` bytes of messages of a run refer
 * to (false: another file)? Pruning takes the messages first: when they are gone, too, none is. */
bool files_lost_head(int rootfd, const char *path, uint64_t upto, char head[FILES_BUF]);

struct files_names {
	char **names; /* owned, each name too */
	size_t n, cap;
};
int files_names_add(struct files_names *l, const char *name); /* *copied*; 0, AVA_ENOMEM */
void files_names_fini(struct files_names *l);
/* List the names in `dir` that end in `ending`; sorted. A missing folder has none. 0 or a code. */
int files_list(struct files_names *l, int rootfd, const char *dir, const char *ending,
	       struct ava_error *err);

/* ---- Lines of a file with their places, for readers of whole logs: the verifier, the Seals,
 * the index. Nothing is left out; an unfinished last line counts too. */

#define LOGLINES_MAX ((size_t)128 << 20)

struct loglines {
	int fd; /* *borrowed* */
	char *data;
	size_t cap, from, to;
	uint64_t offset, end; /* place of data[from] in the file; end: place to stop at */
	uint64_t line;        /* number of the next line */
	bool torn;            /* the last line had no newline */
};

void loglines_init(struct loglines *l, int fd, uint64_t from, uint64_t end);
void loglines_fini(struct loglines *l);
/* Read the next line. 1: *line is it with its newline, at l->offset - len; NULL when it is longer
 * than LOGLINES_MAX. 0: the end; or AVA_EIO, AVA_ENOMEM. */
int loglines_next(struct loglines *l, const char **line, size_t *len);

/* The last line of bytes [from, upto) of a file, with its newline: *owned* (free). NULL: there is
 * none, it cannot be read, or it is longer than FILES_LAST_MAX. */
#define FILES_LAST_MAX ((uint64_t)1 << 20)
char *files_last_line(int fd, uint64_t from, uint64_t upto, size_t *len);

#endif

/* Small durable steps on files below the data root: names, folders, whole-file
 * replacement. All through the seam of base/sys.h; -1 and errno on failure. */
#ifndef JOURNAL_FILES_H
#define JOURNAL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <stdint.h>

struct ava_error;

#define FILES_PATH_MAX 512                   /* a path as callers give it */
#define FILES_NAME_MAX 200                   /* one component: leaves room for suffixes */
#define FILES_BUF      (FILES_PATH_MAX + 64) /* holds a path with any suffix */

/* Relative, [A-Za-z0-9._/-], no empty, "." or ".." component. */
bool files_path_ok(const char *path);

/* The file that holds part `part` of `path`: the path itself for 1, then
 * "x.2.jsonl" for "x.jsonl" ("x.2" for a path without that ending). */
const char *files_part_name(const char *path, unsigned part, char out[FILES_BUF]);
/* Is it in a folder that a person linked or mounted from another file system, which syncfs on
 * ours does not reach? 1, 0, or -1 and errno. */
int files_apart(int rootfd, const char *path);
/* x.2.jsonl, which goes on where x.jsonl ended at a recovery. */
bool files_is_part(const char *path);
/* For qsort, of names of daily logs: "2026-11-21.10.jsonl" stands behind "2026-11-21.2.jsonl". */
int files_by_day(const void *a, const void *b);

/* A folder of ours: made (0700) when it is missing; what stands there and is none is put aside. */
int files_mkdir(int rootfd, const char *dir);
/* A regular one; but not gigabytes of which next to nothing is there, which take hours to read. */
bool files_is_file(const struct stat *st);
/* What could not be read (`why`) is such that nobody can; else the disk fails just now. */
bool files_is_foreign(int rootfd, const char *name, int why);
/* Open; with O_CREAT missing folders are made and the file is 0600. Never follows a link at the
 * end, never waits for a fifo (ENXIO, as of a file that is all hole). What a mode of ours has
 * closed is opened again. */
int files_open(int rootfd, const char *path, int flags);
/* fsync each folder of `path`, the root too, so that its name is durable. */
int files_sync_parents(int rootfd, const char *path);
int files_sync_dir(int dirfd, const char *path);

/* The whole content of `path`: a temporary file beside it, then rename. With
 * `durable` the bytes, and the name, are on disk when it returns. */
int files_replace(int rootfd, const char *path, const void *bytes, size_t len, bool durable);

/* What a crash in the midst of it may have left. Best effort. */
void files_drop_temp(int rootfd, const char *path);

/* First of `path`, `path`.2 … whose content is exactly these bytes, or which
 * can be written with them (durably); its name goes to `out`. So that doing it
 * twice leaves one copy. */
int files_keep(int rootfd, const char *path, const void *bytes, size_t len, char out[FILES_BUF]);

/* Is the content of `path` exactly these bytes? 1, 0, or -1. */
int files_equal(int rootfd, const char *path, const void *bytes, size_t len);
/* They are, and are written once more, in place: what a sync that failed has dropped looks
 * fine in memory. What a crash left of a replacement goes. */
int files_rewrite(int rootfd, const char *path, const void *bytes, size_t len);

/* Best effort, errno untouched. */
void files_close(int *fd);

/* Is `data` the beginning of `ours`, but for bytes that never reached the disk
 * and read as zeros: what a power cut may leave of it? */
bool files_cut_of(const void *ours, const void *data, size_t len);

struct files_names {
	char **names; /* owned, each too */
	size_t n, cap;
};
int files_names_add(struct files_names *l, const char *name); /* *copied*; 0, AVA_ENOMEM */
void files_names_fini(struct files_names *l);
/* Names in `dir` that end in `ending`, as they are there; sorted. A folder
 * that is not there has none. 0 or a code. */
int files_list(struct files_names *l, int rootfd, const char *dir, const char *ending,
	       struct ava_error *err);

/* ---- Lines of a file with their places, for all that read whole logs: the
 * verifier, the Seals, the index. Nothing is left out; a last line without its
 * newline is one too. */

#define LOGLINES_MAX ((size_t)128 << 20)

struct loglines {
	int fd; /* *borrowed* */
	char *data;
	size_t cap, from, to;
	uint64_t offset, end; /* of data[from]; where to stop */
	uint64_t line;        /* number of the next line */
	bool torn;            /* the last one had no newline */
};

void loglines_init(struct loglines *l, int fd, uint64_t from, uint64_t end);
void loglines_fini(struct loglines *l);
/* 1: a line with its newline, at l->offset - len; NULL when it is longer than
 * LOGLINES_MAX. 0: the end; or AVA_EIO, AVA_ENOMEM. */
int loglines_next(struct loglines *l, const char **line, size_t *len);

#endif

/* Where the files of a run stand below the data root, and how one is read that
 * goes on in further parts. */
#ifndef SUBAGENT_PATHS_H
#define SUBAGENT_PATHS_H

#include <stddef.h>
#include <sys/types.h>

struct ava_error;

#define LOGBOOK_PATH 224 /* a session stands below its working folder's name */
void logbook_run_path(const char *run, char out[LOGBOOK_PATH]);      /* logs/subagents/S-…jsonl */
void logbook_messages_path(const char *run, char out[LOGBOOK_PATH]); /* runs/S-…/messages.jsonl */
void logbook_result_path(const char *run, char out[LOGBOOK_PATH]);   /* runs/S-…/result.json */

/* Every whole line of `path` and of the parts that follow it (x.2.jsonl …), one
 * behind the other; *data is the caller's (free). Any thread: it reads files
 * only. AVA_ENOENT: there is none; AVA_ETOOBIG over `max`. */
int logbook_read(int root_fd, const char *path, size_t max, char **data, size_t *len,
		 struct ava_error *err);
/* The same from the byte *from on, where a line begins that holds all that was
 * before it ({"cut":…, doc/MESSAGES.md). When none begins there, or the file has
 * further parts, it is read as a whole and *from is 0. */
int logbook_read_from(int root_fd, const char *path, size_t *from, size_t max, char **data,
		      size_t *len, struct ava_error *err);
/* The same without a wait: only a file that has no further parts, fits into
 * `size` bytes and is in memory as a whole. Its length, or -1: read it on
 * another thread. */
ssize_t logbook_read_cached(int root_fd, const char *path, char *out, size_t size);

#endif

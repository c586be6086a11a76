/* Facts about a data root, for readers without a daemon (archive ava_read). */
#ifndef JOURNAL_READ_ROOT_H
#define JOURNAL_READ_ROOT_H

#include <ava.h>
#include <stdbool.h>

#include "base/id.h"

/* Open the data root for reading: a descriptor, or AVA_ENOENT (no root yet, see `err`) or
 * another code. */
int read_open_root(const char *path, struct ava_error *err);

/* Find the run with trace name `name` in catalog.jsonl of the root open at `rootfd`. 0, AVA_ENOENT,
 * or a code for an unreadable catalog. */
int read_find_trace(int rootfd, const char *name, struct run_id *run, struct ava_error *err);

/* Check the root's FORMAT: AVA_EFORMAT when it is newer than this program, AVA_ECORRUPT when it is
 * malformed; 0 also without one. */
int read_check_format(int rootfd, struct ava_error *err);

/* Does the log of a run, as it is in this root, end with the end of that run? False also without a
 * log. */
bool read_run_ended(int rootfd, const char *run);

/* Did the root's last daemon end in order, so that the views are complete? False also while one
 * serves, and on errors. */
bool read_is_clean(int rootfd);

#endif

/* What a data root says about itself, for those who read it without a daemon
 * (archive ava_read). */
#ifndef JOURNAL_READ_ROOT_H
#define JOURNAL_READ_ROOT_H

#include <ava.h>
#include <stdbool.h>

#include "base/id.h"

/* The data root, open for reading: a descriptor, or AVA_ENOENT (there is none
 * yet, which `err` says) or another code. */
int read_open_root(const char *path, struct ava_error *err);

/* The run that bears trace name `name`, from catalog.jsonl of the root open
 * at `rootfd`. 0, AVA_ENOENT, or a code for a catalog that cannot be read. */
int read_find_trace(int rootfd, const char *name, struct run_id *run, struct ava_error *err);

/* AVA_EFORMAT when the root's FORMAT is newer than this program, AVA_ECORRUPT
 * when it is none; 0 also when there is none yet. */
int read_check_format(int rootfd, struct ava_error *err);

/* Did the last daemon of the root end in order, so that the views hold all
 * there is? False also while one serves, and when it cannot be told. */
bool read_is_clean(int rootfd);

#endif

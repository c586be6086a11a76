/* A log that is of no data root here. */
#ifndef CLI_FOREIGN_LOG_H
#define CLI_FOREIGN_LOG_H

#include <stdbool.h>

#include "cli/api.h"

/* Make a data root of `file` ("-": stdin; a pipe) below the folder for temporary files, removed
 * when the process ends, also by a signal. Lines that another program wrote anew (ends of lines,
 * times, the order of keys) are events again; other lines are reported, and *broken set. Once. */
int foreign_log_root(const char *file, char path[ROOT_PATH_MAX], bool *broken,
		     struct ava_error *err);

#endif

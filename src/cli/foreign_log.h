/* A log that is of no data root here. */
#ifndef CLI_FOREIGN_LOG_H
#define CLI_FOREIGN_LOG_H

#include <stdbool.h>

#include "cli/api.h"

/* `file` ("-": what comes on 0; a pipe) as a root of its own below the folder for temporary files,
 * which goes with the process, also when a signal ends it. Lines that another program wrote anew
 * (ends of lines, times, the order of keys) are events again; what is none is told with its line,
 * and *broken set. Once. */
int foreign_log_root(const char *file, char path[ROOT_PATH_MAX], bool *broken,
		     struct ava_error *err);

#endif

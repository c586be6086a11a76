/* The data root as commands that read it without a daemon see it. */
#ifndef CLI_ROOT_H
#define CLI_ROOT_H

#include <ava.h>
#include <stddef.h>

#define ROOT_PATH_MAX 4096

/* Its path, and after a crash `avad --recover` first when nobody serves it, so
 * that what was acknowledged can be read. What goes wrong with the recovery
 * is a note on stderr: reading goes on with what is there. 0 or a code when
 * there is no such root. */
int root_prepare(char path[ROOT_PATH_MAX], struct ava_error *err);

/* A log that is of no data root here, as a root of its own below the folder for
 * temporary files, which goes with the process, also when a signal ends it. Once. */
int root_of_file(const char *file, char path[ROOT_PATH_MAX], struct ava_error *err);

#endif

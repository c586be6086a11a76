/* A file that `ava export` printed, laid out again as a small data root of its
 * own, so that everything that reads logs reads it. */
#ifndef CLI_EXPORTFILE_H
#define CLI_EXPORTFILE_H

#include <ava.h>
#include <stdbool.h>

struct exportfile {
	char root[256]; /* a temporary folder; "": none */
	char id[24];    /* of the run */
};

/* `seals`: with those that came with it, in a daily log of their own. AVA_ENOENT, AVA_EINVAL: it is
 * no export, or was formatted anew; AVA_ETOOBIG, AVA_EIO, AVA_ENOMEM. One at a time. What was laid
 * out goes with the process, also when a signal ends it. */
int exportfile_open(struct exportfile *x, const char *path, bool seals, struct ava_error *err);
void exportfile_close(struct exportfile *x); /* accepts a closed one */

#endif

/* A run's events out of a data root as a trace (ava_trace_read of ava.h), and
 * which run is meant by a name. Archive ava_read. */
#ifndef JOURNAL_READ_TRACE_H
#define JOURNAL_READ_TRACE_H

#include <ava.h>

#include "base/id.h"

/* `name`: "S-7f3a2b", or the name of a trace, looked up in the catalog of the
 * root. AVA_EINVAL: neither; AVA_ENOENT. */
int read_run_named(const char *root, const char *name, struct run_id *run, struct ava_error *err);

#endif

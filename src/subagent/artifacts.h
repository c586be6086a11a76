/* The list of files that a run leaves, for its result.json. */
#ifndef SUBAGENT_ARTIFACTS_H
#define SUBAGENT_ARTIFACTS_H

#include "base/buf.h"

struct redact;

#define ARTIFACTS_MAX 200 /* files in a list */

/* [{"path","bytes","type"},…], at the end {"path":work,"more":true} where there are more; paths
 * are below the data root. `kept`: JSON strings joined by commas; `work`: the run's folder,
 * which need not be there. On a pool thread. */
void artifacts_list(struct buf *out, int root_fd, const struct redact *redact, const char *kept,
		    const char *work);

#endif

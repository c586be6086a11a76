/* Traces of runs that ended are pushed to a collector of OpenTelemetry
 * (otel.endpoint), each at least once, across restarts. doc/TRACE.md, "Pushed".
 * Loop thread only. */
#ifndef AVA_OTEL_H
#define AVA_OTEL_H

#include <stdbool.h>

struct ava_error;
struct core;

/* Go on behind the last run that was pushed, or with those that end from now on.
 * `endpoint` NULL or "": nothing is pushed. `headers` may be NULL. After runs are
 * taken up. AVA_EINVAL, AVA_EDENIED (the address, the headers), AVA_ENOMEM. */
int otel_open(struct core *c, const char *endpoint, const char *headers, struct ava_error *err);
bool otel_idle(const struct core *c); /* nothing is to be pushed */
void otel_close(struct core *c);      /* while the journal is open, after jobs_end */

/* For health: a JSON object, good until the next call; NULL: nothing is pushed. */
const char *otel_health(struct core *c);

/* Push this ended run now, again if it was: before those that wait. 0: it is asked
 * for, and forgotten by a restart. AVA_EUNSUPPORTED: no endpoint; AVA_ENOENT: no such
 * run; AVA_EBUSY: it has not ended, or 64 others are asked for. */
int ops_push(struct core *c, const char *run, struct ava_error *err);

#endif

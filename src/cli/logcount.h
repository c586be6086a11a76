/* ava logs --count. */
#ifndef CLI_LOGCOUNT_H
#define CLI_LOGCOUNT_H

#include <ava.h>
#include <stdbool.h>

#include "cli/logprint.h"

extern const char *const logcount_keys[]; /* NULL-terminated: what --by knows */

/* `by` NULL: one number. *broken: a line was no event; it has been named.
 * 0 or a code. */
int logcount_print(const struct ava_log_query *q, const char *by, struct logprint *p, bool *broken,
		   struct ava_error *err);

#endif

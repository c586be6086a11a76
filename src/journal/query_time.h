/* The times people write: "1 hour ago", -1h, yesterday, 14:05, 2026-11-21,
 * RFC 3339. doc/QUERY.md has the list. Pure but for the local time zone. */
#ifndef JOURNAL_QUERY_TIME_H
#define JOURNAL_QUERY_TIME_H

#include <stdint.h>

struct ava_error;

/* Milliseconds since 1970; `now_ms` is what relative times count from.
 * AVA_EINVAL: `err` says what would be right. */
int query_time(const char *text, int64_t now_ms, int64_t *out, struct ava_error *err);

#endif

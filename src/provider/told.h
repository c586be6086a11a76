/* Times at which a service says to come back: the forms of headers, of members of a body and of
 * sentences. Pure but for the time zones of this machine. */
#ifndef PROVIDER_TOLD_H
#define PROVIDER_TOLD_H

#include <stdint.h>

/* How long to wait, in ms, with any text behind: "20" (s), "1h7m40.8s", "2 hours 10 minutes", a
 * time since 1970 in s or ms, a date as below, or a time of the clock: "3pm (Europe/Berlin)",
 * "2026-12-01 at 00:00 UTC", "Dec 1st, 2026 3:04 PM". A time without a zone is this machine's, one
 * without a day the next that comes. -1: not understood. */
int64_t told_wait(const char *s, int64_t wall_ms);
/* As told_wait, but a number alone is in units of `scale` ms. */
int64_t told_wait_in(const char *s, int64_t scale, int64_t wall_ms);
/* A date of HTTP in any of its three forms, or of RFC 3339, in ms since 1970; -1: no date. */
int64_t told_date(const char *s);

#endif

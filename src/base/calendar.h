/* Times that come again, as people write them (doc/ORDERS.md, "When"): cron, @daily, systemd's
 * OnCalendar, "every 2h", "at 2026-12-01 09:00", @trigger; and when the next one is, in a zone with
 * a name.
 *
 * A local time that a change of the clock leaves out is due once, at the instant of the change,
 * however many of them it left out; one that comes twice is due the first time alone. "every"
 * counts real time from its anchor and knows no changes. Bounded: nothing is due after 2225. */
#ifndef BASE_CALENDAR_H
#define BASE_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/zone.h"

struct ava_error;
struct buf;
struct calendar;

#define CALENDAR_TEXT  200       /* most bytes of an expression */
#define CALENDAR_NEVER INT64_MAX /* so that "due <= now" is false */

/* Read an expression. `zone` as zone_open takes it; one at the end of the expression wins.
 * `anchor_ms`: the time it was written at, from which "every" counts and "at" looks ahead. Who
 * keeps text, calendar_zone and anchor has the same calendar again from them. To be freed with
 * calendar_free. AVA_EINVAL: one sentence that names what is wrong and what may stand there, also
 * when nothing is due after the anchor; AVA_ENOMEM. */
int calendar_parse(const char *text, const char *zone, int64_t anchor_ms, struct calendar **out,
		   struct ava_error *err);
void calendar_free(struct calendar *c); /* may be NULL */

/* The first due time after `after_ms`, never it itself; CALENDAR_NEVER. At most some milliseconds
 * of work, for a date that does not come. */
int64_t calendar_next(const struct calendar *c, int64_t after_ms);
/* "@trigger": it has no times, and is not over for that. */
bool calendar_waits(const struct calendar *c);
const char *calendar_zone(const struct calendar *c);

#define CALENDAR_STAMP 24 /* "Mon 2026-11-30 08:00", or :30 behind it where there are seconds */
/* The local time of the calendar's zone, for people. */
void calendar_stamp(const struct calendar *c, int64_t ms, char out[CALENDAR_STAMP]);
/* Append one line for a person: "Monday to Friday, every 15 minutes from 08:00 to 18:45,
 * Europe/Berlin"; what has no such words is the expression. buf.h says what can fail. */
void calendar_text(const struct calendar *c, struct buf *out);

#endif

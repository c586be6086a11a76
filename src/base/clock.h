/* Time. Monotonic milliseconds for limits, wall clock for written times. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int64_t clock_mono_ms(void);
int64_t clock_mono_us(void);
int64_t clock_wall_ms(void); /* since 1970, UTC */

#define CLOCK_ISO_LEN 24 /* "2026-11-21T08:00:00.123Z" without the NUL */
void clock_iso(int64_t wall_ms, char out[CLOCK_ISO_LEN + 1]);
/* Parse exactly the form of clock_iso; -1 for any other. */
int64_t clock_parse_iso(const char *s, size_t len);
int clock_days_in(int y, int month); /* 1 to 12 */
struct clock_day {
	int year, month, day; /* from 1 */
};
/* Days since 1970-01-01, from then on, to a date of the calendar and back. */
struct clock_day clock_day_of(unsigned days);
int64_t clock_days(int y, int month, int day);
/* Read a length of time at *p as people write it: "1h30m", "2 days 3 hours", "an hour"; a day is
 * 24 hours, a month 30 days. *p is then behind it and its blanks. False: it is none; *p is
 * anywhere. */
bool clock_span(const char **p, int64_t *ms);
/* Local calendar date "2026-11-21". */
void clock_local_date(int64_t wall_ms, char out[11]);
#define CLOCK_SOON 17
/* The first day of the day, week (from Monday) or month that a local date lies in. Dates alone are
 * counted, so that no change of the clock moves it. */
enum clock_period { CLOCK_DAY, CLOCK_WEEK, CLOCK_MONTH, CLOCK_PERIODS };
void clock_period(const char date[11], enum clock_period period, char out[11]);
/* "18:40", local; with the date when it is not that of `now_ms`: "2026-11-29 18:40". */
void clock_local_soon(int64_t wall_ms, int64_t now_ms, char out[CLOCK_SOON]);

#endif

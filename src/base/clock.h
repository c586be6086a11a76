/* Time. Monotonic milliseconds for limits, wall clock for written times. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

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
/* Local calendar date "2026-11-21". */
void clock_local_date(int64_t wall_ms, char out[11]);
#define CLOCK_SOON 17
/* "18:40", local; with the date when it is not that of `now_ms`: "2026-11-29 18:40". */
void clock_local_soon(int64_t wall_ms, int64_t now_ms, char out[CLOCK_SOON]);

#endif

/* Clocks and the one time format of every file; see clock.h.
 *
 * Dates are computed here instead of by gmtime and strftime: a time stamp
 * stands in every event line, and this is twenty times faster. Times outside
 * 1970 to 9999 are written as the nearest end. */
#include "base/clock.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/util.h"

#define DAY_MS      INT64_C(86400000)
#define LAST_MS     INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */
#define ERA_DAYS    146097                   /* days in 400 years */
#define EPOCH_SHIFT 719468                   /* days from 0000-03-01 to 1970-01-01 */

static int64_t read_us(clockid_t which)
{
	struct timespec ts;

	clock_gettime(which, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clock_mono_us(void)
{
	return read_us(CLOCK_MONOTONIC);
}

int64_t clock_mono_ms(void)
{
	return clock_mono_us() / 1000;
}

int64_t clock_wall_ms(void)
{
	return read_us(CLOCK_REALTIME) / 1000;
}

/* `width` decimal digits of n, leading zeros. */
static void put_digits(char *at, unsigned n, int width)
{
	while (width-- > 0) {
		at[width] = (char)('0' + n % 10);
		n /= 10;
	}
}

/* Years counted from March, so that the leap day is the last of its year. */
struct clock_day clock_day_of(unsigned days)
{
	unsigned z = days + EPOCH_SHIFT, era = z / ERA_DAYS, doe = z % ERA_DAYS;
	unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
	unsigned month = mp < 10 ? mp + 3 : mp - 9;

	return (struct clock_day){.year = (int)(yoe + era * 400 + (month <= 2)),
				  .month = (int)month,
				  .day = (int)(doy - (153 * mp + 2) / 5 + 1)};
}

static void put_date(char *out, unsigned days)
{
	struct clock_day day = clock_day_of(days);

	put_digits(out, (unsigned)day.year, 4);
	out[4] = out[7] = '-';
	put_digits(out + 5, (unsigned)day.month, 2);
	put_digits(out + 8, (unsigned)day.day, 2);
}

void clock_iso(int64_t wall_ms, char out[CLOCK_ISO_LEN + 1])
{
	unsigned day_ms;

	if (wall_ms < 0)
		wall_ms = 0;
	if (wall_ms > LAST_MS)
		wall_ms = LAST_MS;
	day_ms = (unsigned)(wall_ms % DAY_MS);
	put_date(out, (unsigned)(wall_ms / DAY_MS));
	out[10] = 'T';
	put_digits(out + 11, day_ms / 3600000, 2);
	out[13] = ':';
	put_digits(out + 14, day_ms / 60000 % 60, 2);
	out[16] = ':';
	put_digits(out + 17, day_ms / 1000 % 60, 2);
	out[19] = '.';
	put_digits(out + 20, day_ms % 1000, 3);
	out[23] = 'Z';
	out[24] = '\0';
}

/* -1 for a non-digit. */
static int get_digits(const char *s, int width)
{
	int n = 0;

	for (int i = 0; i < width; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -1;
		n = n * 10 + (s[i] - '0');
	}
	return n;
}

int64_t clock_days(int y, int month, int day)
{
	int mp = month > 2 ? month - 3 : month + 9, yoe, doe;

	y -= month <= 2;
	yoe = y % 400;
	doe = yoe * 365 + yoe / 4 - yoe / 100 + (153 * mp + 2) / 5 + day - 1;
	return (int64_t)(y / 400) * ERA_DAYS + doe - EPOCH_SHIFT;
}

int clock_days_in(int y, int month)
{
	static const char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);

	return days[month - 1] + (month == 2 && leap);
}

int64_t clock_parse_iso(const char *s, size_t len)
{
	int y, month, day, h, min, sec, ms;

	if (len != CLOCK_ISO_LEN || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' ||
	    s[16] != ':' || s[19] != '.' || s[23] != 'Z')
		return -1;
	y = get_digits(s, 4);
	month = get_digits(s + 5, 2);
	day = get_digits(s + 8, 2);
	h = get_digits(s + 11, 2);
	min = get_digits(s + 14, 2);
	sec = get_digits(s + 17, 2);
	ms = get_digits(s + 20, 3);
	if (y < 1970 || month < 1 || month > 12 || day < 1 || day > clock_days_in(y, month) ||
	    h < 0 || h > 23 || min < 0 || min > 59 || sec < 0 || sec > 59 || ms < 0)
		return -1;
	return clock_days(y, month, day) * DAY_MS + h * 3600000 + min * 60000 + sec * 1000 + ms;
}

void clock_local_date(int64_t wall_ms, char out[11])
{
	time_t t = (time_t)(wall_ms / 1000);
	struct tm tm;
	int year = 1970;

	if (localtime_r(&t, &tm) == NULL)
		tm = (struct tm){.tm_mday = 1};
	else
		year = tm.tm_year + 1900;
	if (year < 0 || year > 9999)
		year = 9999;
	put_digits(out, (unsigned)year, 4);
	out[4] = out[7] = '-';
	put_digits(out + 5, (unsigned)tm.tm_mon + 1, 2);
	put_digits(out + 8, (unsigned)tm.tm_mday, 2);
	out[10] = '\0';
}

void clock_period(const char date[11], enum clock_period period, char out[11])
{
	int64_t days;

	memcpy(out, date, 11);
	if (period == CLOCK_MONTH)
		memcpy(out + 8, "01", 2);
	if (period != CLOCK_WEEK)
		return;
	days = clock_days(get_digits(date, 4), get_digits(date + 5, 2), get_digits(date + 8, 2));
	put_date(out, (unsigned)(days - (days + 3) % 7)); /* 1970 began on a Thursday */
}

void clock_local_soon(int64_t wall_ms, int64_t now_ms, char out[CLOCK_SOON])
{
	char today[11], *at = out;
	time_t t = (time_t)(wall_ms / 1000);
	struct tm tm;

	clock_local_date(now_ms, today);
	clock_local_date(wall_ms, out);
	if (strcmp(today, out) != 0) {
		out[10] = ' ';
		at = out + 11;
	}
	if (localtime_r(&t, &tm) == NULL)
		tm = (struct tm){0};
	put_digits(at, (unsigned)tm.tm_hour, 2);
	at[2] = ':';
	put_digits(at + 3, (unsigned)tm.tm_min, 2);
	at[5] = '\0';
}

/* ---- spans */

static const struct {
	const char *name;
	int64_t ms;
} clock_units[] = {
	{"ms", 1},           {"s", 1000},           {"sec", 1000},          {"secs", 1000},
	{"second", 1000},    {"seconds", 1000},     {"m", 60000},           {"min", 60000},
	{"mins", 60000},     {"minute", 60000},     {"minutes", 60000},     {"h", 3600000},
	{"hr", 3600000},     {"hrs", 3600000},      {"hour", 3600000},      {"hours", 3600000},
	{"d", 86400000},     {"day", 86400000},     {"days", 86400000},     {"w", 604800000},
	{"week", 604800000}, {"weeks", 604800000},  {"month", 2592000000},  {"months", 2592000000},
	{"y", 31536000000},  {"year", 31536000000}, {"years", 31536000000},
};

static size_t span_word(const char *p)
{
	size_t n = 0;

	while ((p[n] | 0x20) >= 'a' && (p[n] | 0x20) <= 'z')
		n++;
	return n;
}

static bool span_unit(const char **p, int64_t *ms)
{
	size_t n = span_word(*p);

	for (size_t i = 0; i < ARRAY_LEN(clock_units); i++)
		if (strlen(clock_units[i].name) == n &&
		    strncasecmp(clock_units[i].name, *p, n) == 0) {
			*ms = clock_units[i].ms;
			*p += n;
			return true;
		}
	return false;
}

bool clock_span(const char **p, int64_t *ms)
{
	const char *start = *p;
	int64_t n, unit, total = 0;

	for (;;) {
		if (strncasecmp(*p, "an ", 3) == 0 || strncasecmp(*p, "a ", 2) == 0) {
			n = 1;
			*p += span_word(*p);
		} else if (**p >= '0' && **p <= '9') {
			n = strtoll(*p, (char **)p, 10); /* too large: INT64_MAX */
		} else {
			break;
		}
		*p += strspn(*p, " ");
		if (!span_unit(p, &unit) || __builtin_mul_overflow(n, unit, &n) ||
		    __builtin_add_overflow(total, n, &total))
			return false;
		*p += strspn(*p, " ");
	}
	if (*p > start)
		*ms = total;
	return *p > start;
}

/* The times people write; query_time.h.
 *
 * Three forms, tried in turn: a word (now, today, yesterday, tomorrow), a
 * span ("1 hour ago", "-90m", "1h30m"), a point (a date, a time of today, or
 * both, local unless it ends in Z or an offset; "@" and seconds since 1970).
 *
 * Spans are lengths: a day is 24 hours also where a clock was put forward.
 * Dates are days of the calendar: "yesterday" begins at its midnight however
 * long it was. An hour that a change of the clock left out is the one after
 * it, one that came twice is whichever the C library takes. What can fail:
 * text that is none of these, and dates that do not exist. */
#include "journal/query_time.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/error.h"
#include "base/util.h"

#define LAST_MS  INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */
#define TEXT_MAX 64

static int refuse(const char *text, struct ava_error *err)
{
	return err_set(err, AVA_EINVAL,
		       "\"%.*s\" is no time: write \"1 hour ago\", -1h, today, yesterday, "
		       "2026-11-21, \"2026-11-21 08:00\" or 2026-11-21T08:00:00Z",
		       TEXT_MAX, text);
}

/* ---- spans */

static const struct {
	const char *name;
	int64_t ms;
} units[] = {
	{"ms", 1},           {"s", 1000},           {"sec", 1000},          {"secs", 1000},
	{"second", 1000},    {"seconds", 1000},     {"m", 60000},           {"min", 60000},
	{"mins", 60000},     {"minute", 60000},     {"minutes", 60000},     {"h", 3600000},
	{"hr", 3600000},     {"hrs", 3600000},      {"hour", 3600000},      {"hours", 3600000},
	{"d", 86400000},     {"day", 86400000},     {"days", 86400000},     {"w", 604800000},
	{"week", 604800000}, {"weeks", 604800000},  {"month", 2592000000},  {"months", 2592000000},
	{"y", 31536000000},  {"year", 31536000000}, {"years", 31536000000},
};

static size_t word(const char *p)
{
	size_t n = 0;

	while ((p[n] | 0x20) >= 'a' && (p[n] | 0x20) <= 'z')
		n++;
	return n;
}

static bool unit(const char **p, int64_t *ms)
{
	size_t n = word(*p);

	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (strlen(units[i].name) == n && strncasecmp(units[i].name, *p, n) == 0) {
			*ms = units[i].ms;
			*p += n;
			return true;
		}
	return false;
}

static bool number(const char **p, int64_t *n)
{
	const char *start = *p;

	*n = 0;
	for (; **p >= '0' && **p <= '9'; (*p)++)
		if (__builtin_mul_overflow(*n, 10, n) ||
		    __builtin_add_overflow(*n, (int64_t)(**p - '0'), n))
			return false;
	return *p > start;
}

static void blanks(const char **p)
{
	while (**p == ' ')
		(*p)++;
}

/* "1h30m", "2 days 3 hours", "an hour": its length. */
static bool span(const char **p, int64_t *total)
{
	const char *start = *p;

	*total = 0;
	for (;;) {
		int64_t n, ms;
		const char *at = *p;

		if (strncasecmp(at, "an ", 3) == 0 || strncasecmp(at, "a ", 2) == 0) {
			n = 1;
			at += word(at);
		} else if (!number(&at, &n)) {
			return *p > start;
		}
		blanks(&at);
		if (!unit(&at, &ms) || __builtin_mul_overflow(n, ms, &n) ||
		    __builtin_add_overflow(*total, n, total))
			return false;
		blanks(&at);
		*p = at;
	}
}

static bool relative(const char *text, int64_t now_ms, int64_t *out)
{
	bool ahead = text[0] == '+';
	const char *p = text + (text[0] == '-' || ahead);
	int64_t ms;

	if (!span(&p, &ms))
		return false;
	if (strcasecmp(p, "ago") == 0) {
		if (p == text || text[0] == '-' || ahead)
			return false;
	} else if (*p != '\0') {
		return false;
	}
	/* What is before 1970 is before every log. */
	if (!ahead)
		*out = ms > now_ms ? 0 : now_ms - ms;
	else if (__builtin_add_overflow(now_ms, ms, out))
		*out = LAST_MS;
	return true;
}

/* ---- days and points */

static bool midnight(int64_t now_ms, int days, int64_t *out)
{
	time_t t = (time_t)(now_ms / 1000);
	struct tm tm;

	if (localtime_r(&t, &tm) == NULL)
		return false;
	tm.tm_mday += days;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_isdst = -1;
	t = mktime(&tm);
	*out = (int64_t)t * 1000;
	return true;
}

static bool day_word(const char *text, int64_t now_ms, int64_t *out)
{
	if (strcasecmp(text, "now") == 0) {
		*out = now_ms;
		return true;
	}
	if (strcasecmp(text, "today") == 0)
		return midnight(now_ms, 0, out);
	if (strcasecmp(text, "yesterday") == 0)
		return midnight(now_ms, -1, out);
	return strcasecmp(text, "tomorrow") == 0 && midnight(now_ms, 1, out);
}

/* Exactly `n` digits, in [least, most]. */
static bool digits(const char **p, int n, int least, int most, int *out)
{
	*out = 0;
	for (int i = 0; i < n; i++, (*p)++) {
		if (**p < '0' || **p > '9')
			return false;
		*out = *out * 10 + (**p - '0');
	}
	return *out >= least && *out <= most;
}

static bool literal(const char **p, char c)
{
	if (**p != c)
		return false;
	(*p)++;
	return true;
}

static int month_days(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

static bool date(const char **p, struct tm *tm)
{
	int y, m, d;

	if (!digits(p, 4, 1970, 9999, &y) || !literal(p, '-') || !digits(p, 2, 1, 12, &m) ||
	    !literal(p, '-') || !digits(p, 2, 1, month_days(y, m), &d))
		return false;
	*tm = (struct tm){.tm_year = y - 1900, .tm_mon = m - 1, .tm_mday = d, .tm_isdst = -1};
	return true;
}

static bool time_of_day(const char **p, struct tm *tm, int *ms)
{
	int digit, scale = 100;

	*ms = 0;
	if (!digits(p, 2, 0, 23, &tm->tm_hour) || !literal(p, ':') ||
	    !digits(p, 2, 0, 59, &tm->tm_min))
		return false;
	if (!literal(p, ':'))
		return true;
	if (!digits(p, 2, 0, 60, &tm->tm_sec))
		return false;
	if (!literal(p, '.'))
		return true;
	if (**p < '0' || **p > '9')
		return false;
	for (; **p >= '0' && **p <= '9'; scale /= 10) { /* finer than ms: cut off */
		digits(p, 1, 0, 9, &digit);
		*ms += digit * scale;
	}
	return true;
}

/* "Z" or "+02:00": seconds east of UTC. */
static bool zone(const char **p, int *east)
{
	int h, m, sign = **p == '-' ? -1 : 1;

	*east = 0;
	if (literal(p, 'Z') || literal(p, 'z'))
		return true;
	if (!literal(p, '+') && !literal(p, '-'))
		return false;
	if (!digits(p, 2, 0, 23, &h))
		return false;
	literal(p, ':');
	if (!digits(p, 2, 0, 59, &m))
		return false;
	*east = sign * (h * 3600 + m * 60);
	return true;
}

static bool to_ms(struct tm *tm, int ms, const char *rest, int64_t *out)
{
	int east;
	time_t t;

	if (*rest == '\0') {
		t = mktime(tm);
	} else {
		blanks(&rest);
		if (!zone(&rest, &east) || *rest != '\0')
			return false;
		t = timegm(tm) - east;
	}
	*out = (int64_t)t * 1000 + ms;
	return true;
}

static bool point(const char *text, int64_t now_ms, int64_t *out)
{
	time_t now = (time_t)(now_ms / 1000);
	const char *p = text;
	struct tm tm;
	int ms = 0;

	if (*p == '@')
		return p++,
		       number(&p, out) && *p == '\0' && !__builtin_mul_overflow(*out, 1000, out);
	if (p[0] != '\0' && p[1] != '\0' && p[2] == ':') { /* today */
		if (localtime_r(&now, &tm) == NULL)
			return false;
		tm.tm_sec = 0;
		tm.tm_isdst = -1;
		return time_of_day(&p, &tm, &ms) && *p == '\0' && to_ms(&tm, ms, p, out);
	}
	if (!date(&p, &tm))
		return false;
	if (*p == '\0')
		return to_ms(&tm, 0, p, out);
	if (!literal(&p, 'T') && !literal(&p, 't') && !literal(&p, ' '))
		return false;
	return time_of_day(&p, &tm, &ms) && to_ms(&tm, ms, p, out);
}

int query_time(const char *text, int64_t now_ms, int64_t *out, struct ava_error *err)
{
	if (!day_word(text, now_ms, out) && !relative(text, now_ms, out) &&
	    !point(text, now_ms, out))
		return refuse(text, err);
	*out = MAX(0, MIN(*out, LAST_MS));
	return 0;
}

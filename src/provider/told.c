/* Times that services tell. Durations first, then numbers that are times since 1970, then dates,
 * then what people write: words of a date, an hour and a zone in whatever order, until something
 * else follows. All of it is other people's text: what cannot be read as a time is none, and
 * nothing here can fail. */
#include "provider/told.h"

#include <fcntl.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"

#define MOST_MS  INT64_C(10000000000000000)
#define EPOCH_MS INT64_C(1000000000000) /* September 2001 in ms */
#define DAY_S    86400
#define NEAR_S   600 /* seconds: an hour so little behind counts as now, since clocks differ */

int64_t told_date(const char *s)
{
	static const char *const forms[] = {"%a, %d %b %Y %H:%M:%S GMT",
					    "%a, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y",
					    "%Y-%m-%dT%H:%M:%SZ"};
	locale_t english = newlocale(LC_ALL_MASK, "C", NULL); /* names are English */
	int64_t at = -1;

	for (size_t i = 0; english != NULL && i < ARRAY_LEN(forms) && at < 0; i++) {
		struct tm tm = {0};
		const char *end = strptime_l(s, forms[i], &tm, english);

		if (end != NULL && *end == 0)
			at = timegm(&tm);
	}
	if (english != NULL)
		freelocale(english);
	return at >= 0 ? at * 1000 : -1;
}

static bool told_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A decimal number times `scale`, rounded down; *end: behind it; -1: no number. */
static int64_t told_decimal(const char *s, int64_t scale, const char **end)
{
	int64_t whole = 0, part = 0, unit = 1;
	const char *at = s;

	for (; told_digit(*at) && at - s < 15; at++)
		whole = whole * 10 + (*at - '0');
	if (at == s)
		return -1;
	if (*at == '.')
		for (at++; told_digit(*at); at++)
			if (unit < scale) {
				unit *= 10;
				part = part * 10 + (*at - '0');
			}
	*end = at;
	return MIN(whole, MOST_MS / scale) * scale + part * scale / unit;
}

/* Read "1h7m40.8s", "20 seconds", "2 hours and 10 minutes", with any text behind; "20" alone is in
 * units of `scale`. */
static int64_t duration(const char *s, int64_t scale)
{
	static const struct {
		const char *name, *begins; /* the unit's whole name, or its beginning */
		int64_t ms;
	} units[] = {{"ms", "milli", 1},       {"s", "sec", 1000},         {"m", "min", 60000},
		     {"h", "hour", 3600000},   {"hr", "hrs", 3600000},     {"d", "day", 86400000},
		     {"w", "week", 604800000}, {"mo", "month", 2592000000}};
	int64_t ms = -1, n;
	const char *end;

	while ((n = told_decimal(s, 1, &end)) >= 0) {
		const char *unit = end + strspn(end, " ");
		size_t i = 0, len = 0;

		while (letter(unit[len]))
			len++;
		while (i < ARRAY_LEN(units) &&
		       (len != strlen(units[i].name) ||
			strncasecmp(unit, units[i].name, len) != 0) &&
		       strncasecmp(unit, units[i].begins, strlen(units[i].begins)) != 0)
			i++;
		if (i == ARRAY_LEN(units))
			return ms < 0 && *end == 0 ? told_decimal(s, scale, &end) : ms;
		ms = MAX(ms, 0) + told_decimal(s, units[i].ms, &end);
		s = unit + len + strspn(unit + len, ", ");
		s += strncasecmp(s, "and ", 4) == 0 ? 4 : 0;
	}
	return ms;
}

/* ---- times of the clock */

struct clock_time {
	int year, month, day; /* 0: the text does not say */
	int hour, minute, second;
	bool timed, utc, zoned;
	int64_t ahead_s; /* seconds ahead of UTC; valid when zoned */
	char zone[40];   /* name of a zone: "Europe/Berlin" */
};

static int64_t big_endian(const unsigned char *p, int n)
{
	uint64_t v = p[0] & 0x80 ? ~UINT64_C(0) : 0;

	for (int i = 0; i < n; i++)
		v = v << 8 | p[i];
	return (int64_t)v;
}

/* Look up the time `t` in a file of zone information (RFC 8536): seconds ahead of UTC. Its second,
 * 64-bit part holds transitions, the kind that each begins, and the kinds. */
static bool zone_of_file(const unsigned char *p, size_t len, int64_t t, int64_t *ahead_s)
{
	int64_t n[6], skip, times, types, kind = 0;
	const unsigned char *end = p + len;

	for (int part = 0; part < 2; part++) {
		if (end - p < 44 || memcmp(p, "TZif", 4) != 0)
			return false;
		for (int i = 0; i < 6; i++) /* counts of isutc, isstd, leap, times, types, chars */
			n[i] = big_endian(p + 20 + 4 * i, 4) & INT32_MAX;
		skip = 44 + n[3] * (part ? 9 : 5) + n[4] * 6 + n[5] + n[2] * (part ? 12 : 8) +
		       n[1] + n[0];
		if (skip > end - p)
			return false;
		p += part ? 44 : skip;
	}
	times = n[3];
	types = n[4];
	for (int64_t i = 0; i < times && big_endian(p + 8 * i, 8) <= t; i++)
		kind = p[8 * times + i];
	if (kind >= types)
		return false;
	*ahead_s = big_endian(p + 9 * times + 6 * kind, 4);
	return true;
}

static bool zone_read(const char *name, int64_t t, int64_t *ahead_s)
{
	unsigned char data[8192];
	char path[80];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/usr/share/zoneinfo/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, data, sizeof(data)) : -1;
	if (fd >= 0)
		close(fd);
	return n > 0 && zone_of_file(data, (size_t)n, t, ahead_s);
}

/* Take a word of `n` or more letters as part of a time; false: not a time's word. */
static bool told_take_word(struct clock_time *c, const char *s, size_t n)
{
	static const char months[] = "janfebmaraprmayjunjulaugsepoctnovdec";
	static const char *const passed[] = {"at", "on", "the", "by", "until"};

	if (n == 3 && (strncasecmp(s, "utc", 3) == 0 || strncasecmp(s, "gmt", 3) == 0)) {
		c->utc = true;
		return true;
	}
	if (memchr(s, '/', n) != NULL && n < sizeof(c->zone)) {
		snprintf(c->zone, sizeof(c->zone), "%.*s", (int)n, s);
		return true;
	}
	for (size_t i = 0; n >= 3 && i < 12; i++)
		if (strncasecmp(s, months + 3 * i, 3) == 0) {
			c->month = (int)i + 1;
			return true;
		}
	for (size_t i = 0; i < ARRAY_LEN(passed); i++)
		if (strlen(passed[i]) == n && strncasecmp(s, passed[i], n) == 0)
			return true;
	return false;
}

/* Read "+02:00" behind an hour. */
static const char *take_offset(struct clock_time *c, const char *s)
{
	int hours = 0, minutes = 0, used = 0;

	if ((*s != '+' && *s != '-') ||
	    sscanf(s + 1, "%2d%n:%2d%n", &hours, &used, &minutes, &used) < 1)
		return s;
	c->zoned = true;
	c->ahead_s = (hours * 60 + minutes) * 60 * (*s == '-' ? -1 : 1);
	return s + 1 + used;
}

/* Read "3pm", "15:04:05.25", "1st", "2026", "2026-12-01T"; `s` is at a digit. NULL: none of
 * them. */
static const char *told_take_number(struct clock_time *c, const char *s)
{
	int n = 0, used = 0, month, day;

	if (sscanf(s, "%4d-%2d-%2d%n", &n, &month, &day, &used) == 3 && n >= 1970) {
		c->year = n;
		c->month = month;
		c->day = day;
		return s + used + (s[used] == 'T');
	}
	used = 0;
	if (sscanf(s, "%4d%n", &n, &used) != 1)
		return NULL;
	s += used;
	if (*s == ':' && told_digit(s[1]) && sscanf(s, ":%2d%n", &c->minute, &used) == 1) {
		s += used;
		if (*s == ':' && sscanf(s, ":%2d%n", &c->second, &used) == 1)
			s += used;
		s += *s == '.' ? 1 + strspn(s + 1, "0123456789") : 0;
		c->timed = true;
	} else if (strncasecmp(s + (*s == ' '), "am", 2) != 0 &&
		   strncasecmp(s + (*s == ' '), "pm", 2) != 0) {
		*(n >= 1970 ? &c->year : &c->day) = n;
		return s + strspn(s, "stndrh");
	}
	c->hour = n;
	s += *s == ' ' && (strncasecmp(s + 1, "am", 2) == 0 || strncasecmp(s + 1, "pm", 2) == 0);
	if (strncasecmp(s, "am", 2) == 0 || strncasecmp(s, "pm", 2) == 0) {
		c->hour = n % 12 + (*s == 'p' || *s == 'P' ? 12 : 0);
		c->timed = n >= 1 && n <= 12;
		s += 2;
	}
	return take_offset(c, *s == 'Z' ? (c->utc = true, s + 1) : s);
}

/* Read words and numbers of a time until other text follows. */
static void read_clock(struct clock_time *c, const char *s)
{
	const char *next;

	while (*s != 0) {
		size_t n = 0;

		if (*s == ' ' || *s == ',' || *s == '(' || *s == ')') {
			s++;
			continue;
		}
		while (letter(s[n]) || (n > 0 && strchr("/_-+", s[n]) != NULL && s[n] != 0))
			n++;
		next = told_digit(*s) ? told_take_number(c, s) : NULL;
		if (n > 0 && told_take_word(c, s, n))
			next = s + n;
		if (next == NULL)
			return;
		s = next;
	}
}

/* Seconds since 1970. */
static int64_t told_seconds_of(const struct clock_time *c, struct tm tm)
{
	int64_t ahead_s = c->ahead_s, t;

	if (!c->utc && !c->zoned && c->zone[0] == 0)
		return mktime(&tm);
	t = timegm(&tm);
	if (c->utc)
		return t;
	/* Seconds of the same hour in that zone; near a clock change the second look is right. */
	for (int i = 0; i < 2 && !c->zoned; i++)
		if (!zone_read(c->zone, t - ahead_s, &ahead_s))
			return mktime(&tm);
	return t - ahead_s;
}

/* The time in ms since 1970; -1: no time. */
static int64_t clock_time(const char *s, int64_t wall_ms)
{
	struct clock_time c = {0};
	time_t now = (time_t)(wall_ms / 1000);
	struct tm tm;
	int64_t t;

	read_clock(&c, s);
	if (!c.timed && (c.month == 0 || c.day == 0))
		return -1;
	if (c.month > 12 || c.day > 31 || c.hour > 23 || c.minute > 59 || c.second > 60 ||
	    (c.month == 0) != (c.day == 0) || localtime_r(&now, &tm) == NULL)
		return -1;
	tm = (struct tm){
		.tm_year = c.year > 0 ? c.year - 1900 : tm.tm_year,
		.tm_mon = c.month > 0 ? c.month - 1 : tm.tm_mon,
		.tm_mday = c.day > 0 ? c.day : tm.tm_mday,
		.tm_hour = c.hour,
		.tm_min = c.minute,
		.tm_sec = c.second,
		.tm_isdst = -1,
	};
	if (c.day == 0)
		tm.tm_mday--; /* the zone may still have yesterday */
	t = told_seconds_of(&c, tm);
	while (c.day == 0 && t <= now - NEAR_S) {
		tm.tm_mday++;
		t = told_seconds_of(&c, tm);
	}
	if (c.year == 0 && c.day > 0 && t < now - DAY_S) {
		tm.tm_year++;
		t = told_seconds_of(&c, tm);
	}
	return t >= 0 ? t * 1000 : -1;
}

/* ---- all forms */

int64_t told_wait_in(const char *s, int64_t scale, int64_t wall_ms)
{
	int64_t ms = duration(s, scale), at = -1;

	if (ms >= EPOCH_MS) /* a point in time, in seconds or in ms, not a wait */
		at = ms >= EPOCH_MS * scale ? ms / scale : ms;
	else if (ms < 0)
		at = told_date(s);
	if (ms < 0 && at < 0)
		at = clock_time(s, wall_ms);
	return at >= 0 ? MAX(at - wall_ms, 0) : ms;
}

int64_t told_wait(const char *s, int64_t wall_ms)
{
	return told_wait_in(s, 1000, wall_ms);
}

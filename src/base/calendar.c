/* Times that come again; calendar.h.
 *
 * Every form that is a pattern becomes the same seven sets (years to seconds). The next due time is
 * looked for in local time, where all is even, and then carried over the turns of the zone: local
 * time only counts where it is reached for the first time, and what lies in a gap is at the turn.
 *
 * What can fail: an expression that cannot be read, a zone that is not there, a date that never
 * comes. */
#include "base/calendar.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"

#define DAY_S        86400
#define NO_TIME      INT64_MAX
#define TIMES_LISTED 6 /* most times of a day in words */
#define FIRST_YEAR   1970
#define LAST_YEAR    2225

enum calendar_field { SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, YEAR, NFIELDS };

static const struct {
	const char *name;
	int least, most;
	const char *names; /* of least and on; three letters are enough */
	const char *allowed, *within;
} calendar_fields[NFIELDS] = {
	[SECOND] = {"second", 0, 59, "", "0 to 59", "minute"},
	[MINUTE] = {"minute", 0, 59, "", "0 to 59", "hour"},
	[HOUR] = {"hour", 0, 23, "", "0 to 23", "day"},
	[DAY] = {"day of the month", 1, 31, "", "1 to 31", "month"},
	[MONTH] = {"month", 1, 12,
		   "January February March April May June July August September October November "
		   "December",
		   "1 to 12 or Jan to Dec", "year"},
	[WEEKDAY] = {"weekday", 0, 7,
		     "Sunday Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
		     "Mon to Sun or, in cron, 0 to 7 (0 and 7: Sunday)", "week"},
	[YEAR] = {"year", FIRST_YEAR, LAST_YEAR, "", "1970 to 2225", "era"},
};

struct calendar_set {
	uint64_t bits[4]; /* of value - least */
};

struct calendar {
	enum { CALENDAR_PATTERN, CALENDAR_EVERY, CALENDAR_AT, CALENDAR_TRIGGER } kind;
	struct calendar_set sets[NFIELDS];
	bool either;   /* cron: a day of the month or a weekday is enough */
	bool from_end; /* days count back from the month's last, 1 */
	int64_t anchor_ms, period_ms, at_ms;
	struct zone *zone;
	char text[CALENDAR_TEXT + 1];
};

static bool set_has(const struct calendar *c, enum calendar_field f, int value)
{
	unsigned n = (unsigned)(value - calendar_fields[f].least);

	return c->sets[f].bits[n / 64] >> n % 64 & 1;
}

static void set_put(struct calendar *c, enum calendar_field f, int value)
{
	unsigned n = (unsigned)(value - calendar_fields[f].least);

	c->sets[f].bits[n / 64] |= UINT64_C(1) << n % 64;
}

/* The first value of a set from `value` on; -1: none. */
static int set_next(const struct calendar *c, enum calendar_field f, int value)
{
	for (; value <= calendar_fields[f].most; value++)
		if (set_has(c, f, value))
			return value;
	return -1;
}

/* ---- when it is due */

static int weekday_of(int64_t day)
{
	return (int)((day + 4) % 7); /* 1970-01-01 was a Thursday */
}

static bool day_matches(const struct calendar *c, struct clock_day d, int64_t day)
{
	int back = clock_days_in(d.year, d.month) - d.day + 1;
	bool date = set_has(c, DAY, c->from_end ? back : d.day);
	bool weekday = set_has(c, WEEKDAY, weekday_of(day));

	return c->either ? date || weekday : date && weekday;
}

/* The first time of a day from `s` on, in seconds; -1: none. */
static int time_from(const struct calendar *c, int s)
{
	for (int h = set_next(c, HOUR, s / 3600); h >= 0; h = set_next(c, HOUR, h + 1)) {
		int in_hour = MAX(s - h * 3600, 0);

		for (int m = set_next(c, MINUTE, in_hour / 60); m >= 0;
		     m = set_next(c, MINUTE, m + 1)) {
			int second = set_next(c, SECOND, MAX(in_hour - m * 60, 0));

			if (second >= 0)
				return h * 3600 + m * 60 + second;
		}
	}
	return -1;
}

/* The first local time of the pattern from `local` on, in seconds; NO_TIME. */
static int64_t pattern_from(const struct calendar *c, int64_t local)
{
	int64_t day = MAX(local, 0) / DAY_S;
	int s = (int)(MAX(local, 0) % DAY_S), time;

	for (;;) {
		struct clock_day d = clock_day_of((unsigned)day);

		if (d.year > LAST_YEAR)
			return NO_TIME;
		time = -1;
		if (!set_has(c, YEAR, d.year) || !set_has(c, MONTH, d.month))
			day = d.month == 12 || !set_has(c, YEAR, d.year)
				      ? clock_days(d.year + 1, 1, 1)
				      : clock_days(d.year, d.month + 1, 1);
		else if (!day_matches(c, d, day) || (time = time_from(c, s)) < 0)
			day++;
		if (time >= 0)
			return day * DAY_S + time;
		s = 0;
	}
}

/* Local time that was reached in an earlier stretch does not count again. */
static int64_t pattern_next(const struct calendar *c, int64_t after)
{
	struct zone_span z = zone_at(c->zone, after);
	int64_t from = after + z.offset + 1, local;

	if (z.from != INT64_MIN)
		from = MAX(from, z.from + z.before);
	local = pattern_from(c, from);
	if (local == NO_TIME)
		return NO_TIME;
	while (z.to != INT64_MAX && local >= z.to + z.offset) {
		z = zone_at(c->zone, z.to);
		if (local < z.from + z.offset)
			return z.from; /* in the gap */
	}
	return local - z.offset;
}

int64_t calendar_next(const struct calendar *c, int64_t after_ms)
{
	int64_t after = after_ms / 1000 - (after_ms % 1000 < 0), next;

	if (after_ms > ZONE_END * 1000 || c->kind == CALENDAR_TRIGGER)
		return CALENDAR_NEVER;
	if (c->kind == CALENDAR_AT)
		return after_ms < c->at_ms ? c->at_ms : CALENDAR_NEVER;
	if (c->kind == CALENDAR_EVERY) {
		next = after_ms < c->anchor_ms ? 1 : (after_ms - c->anchor_ms) / c->period_ms + 1;
		return c->anchor_ms + next * c->period_ms;
	}
	next = pattern_next(c, after);
	return next == NO_TIME ? CALENDAR_NEVER : next * 1000;
}

bool calendar_waits(const struct calendar *c)
{
	return c->kind == CALENDAR_TRIGGER;
}

const char *calendar_zone(const struct calendar *c)
{
	return zone_name(c->zone);
}

/* ---- reading */

struct calendar_reader {
	struct calendar *c;
	const char *range; /* between the two ends of one: "-", ".." */
	struct ava_error *err;
};

/* The name of a field's value; *len of it. */
static const char *value_name(enum calendar_field f, int value, int *len)
{
	const char *name = calendar_fields[f].names;

	for (int i = calendar_fields[f].least; i < value; i++)
		name += strcspn(name, " ") + 1;
	*len = (int)strcspn(name, " ");
	return name;
}

static bool read_value(enum calendar_field f, const char **p, const char *end, int *value)
{
	const char *at = *p;
	int n = 0, len;

	while (at < end && isalpha((unsigned char)*at))
		at++;
	for (int v = calendar_fields[f].least; at - *p >= 3 && v <= calendar_fields[f].most; v++)
		if (calendar_fields[f].names[0] != '\0' &&
		    strncasecmp(value_name(f, v, &len), *p, (size_t)(at - *p)) == 0) {
			*value = v;
			*p = at;
			return true;
		}
	for (at = *p; at < end && isdigit((unsigned char)*at) && n < 10000; at++)
		n = n * 10 + (*at - '0');
	if (at == *p || n < calendar_fields[f].least || n > calendar_fields[f].most)
		return false;
	*value = n;
	*p = at;
	return true;
}

/* Put low, low + step, … of a field; of days from the end, down from the greater. */
static void put_range(struct calendar *c, enum calendar_field f, int low, int high, int step)
{
	if (f == DAY && c->from_end)
		for (int v = high; v >= low; v -= step)
			set_put(c, f, v);
	else
		for (int v = low; v <= high; v += step)
			set_put(c, f, f == WEEKDAY ? v % 7 : v);
}

/* An item of a list: "*", "3" or "3-5", each with a step or without. A step behind one value goes
 * on to the end; from the end of a month, to its last day. */
static int read_item(const struct calendar_reader *r, enum calendar_field f, const char *p,
		     const char *end)
{
	const char *start = p;
	int len = (int)MIN(end - p, 40), step = 1, least = calendar_fields[f].least;
	int most = f == WEEKDAY ? 6 : calendar_fields[f].most, low = least, high = most;
	size_t range = strlen(r->range);
	bool good = true;

	if (p < end && *p == '*') {
		p++;
	} else {
		good = read_value(f, &p, end, &low);
		high = p < end && *p == '/' ? MAX(most, low) : low;
		if (p < end && *p == '/' && f == DAY && r->c->from_end)
			high = low, low = 1;
		if (good && (size_t)(end - p) > range && strncmp(p, r->range, range) == 0) {
			p += range;
			good = read_value(f, &p, end, &high);
			high = f == WEEKDAY && high == 0 && low > 0 ? 7 : high;
		}
	}
	if (good && high < low)
		return err_set(r->err, AVA_EINVAL,
			       f == WEEKDAY ? "the range \"%.*s\" goes backwards: write two, as in "
					      "Sat%sSun,Mon%sTue"
					    : "the range \"%.*s\" goes backwards: write two, as in "
					      "22%s23,0%s6",
			       len, start, r->range, r->range);
	if (good && p < end && *p == '/') {
		const char *digits = ++p;

		for (step = 0; p < end && isdigit((unsigned char)*p) && step < 1000; p++)
			step = step * 10 + (*p - '0');
		good = p > digits;
		if (good && (step < 1 || step > most - least))
			return err_set(r->err, AVA_EINVAL,
				       "the step in \"%.*s\" must be 1 to %d, since each %s begins "
				       "anew; \"every 90m\" counts on",
				       len, start, most - least, calendar_fields[f].within);
	}
	if (!good || p != end)
		return err_set(r->err, AVA_EINVAL,
			       "\"%.*s\" is no %s: that is %s, * for each, a list 1,3, a range "
			       "1%s5 or a step */2",
			       len, start, calendar_fields[f].name, calendar_fields[f].allowed,
			       r->range);
	put_range(r->c, f, low, high, step);
	return 0;
}

static int calendar_take(const struct calendar_reader *r, enum calendar_field f, const char *p,
			 size_t len)
{
	const char *end = p + len, *comma;
	int rv;

	do {
		comma = memchr(p, ',', (size_t)(end - p));
		rv = read_item(r, f, p, comma ? comma : end);
		p = comma ? comma + 1 : end;
	} while (rv == 0 && comma);
	return rv;
}

#define WORDS_MOST 6
struct calendar_words {
	const char *at[WORDS_MOST];
	size_t len[WORDS_MOST], n; /* n may be more than those kept */
};

static struct calendar_words calendar_split(const char *p)
{
	struct calendar_words w = {.n = 0};

	for (p += strspn(p, " \t"); *p != '\0'; p += strspn(p, " \t")) {
		size_t len = strcspn(p, " \t");

		if (w.n < WORDS_MOST) {
			w.at[w.n] = p;
			w.len[w.n] = len;
		}
		w.n++;
		p += len;
	}
	return w;
}

static int read_cron(const struct calendar_reader *r, const struct calendar_words *w)
{
	static const enum calendar_field each[] = {MINUTE, HOUR, DAY, MONTH, WEEKDAY};
	int rv = 0;

	for (size_t i = 0; rv == 0 && i < ARRAY_LEN(each); i++)
		rv = calendar_take(r, each[i], w->at[i], w->len[i]);
	r->c->either = w->at[2][0] != '*' && w->at[4][0] != '*';
	put_range(r->c, SECOND, 0, 0, 1);
	put_range(r->c, YEAR, FIRST_YEAR, LAST_YEAR, 1);
	return rv;
}

/* "2026-12-24", "12-24" or "*-*~1": behind the month a "~" counts from its end. */
static int read_date(const struct calendar_reader *r, const char *p, size_t len)
{
	enum calendar_field f;
	size_t marks = 0, first = MIN(strcspn(p, "-~"), len);
	int rv = 0;

	for (size_t i = 0; i < len; i++)
		marks += p[i] == '-' || p[i] == '~';
	if (marks < 1 || marks > 2 || (marks == 2 && p[first] == '~'))
		return err_set(
			r->err, AVA_EINVAL,
			"\"%.*s\" is no date, and no time as 08:00: write 2026-12-24, 12-24, "
			"*-*-01, or *-*~1 for the last day of each month; cron has five "
			"fields",
			(int)MIN(len, 40u), p);
	if (marks == 1)
		put_range(r->c, YEAR, FIRST_YEAR, LAST_YEAR, 1);
	for (f = marks == 2 ? YEAR : MONTH; rv == 0; f = f == YEAR ? MONTH : DAY) {
		size_t n = MIN(strcspn(p, "-~"), len);

		if (f == MONTH)
			r->c->from_end = p[n] == '~';
		rv = calendar_take(r, f, p, n);
		if (n == len)
			break;
		p += n + 1;
		len -= n + 1;
	}
	return rv;
}

static int read_time(const struct calendar_reader *r, const char *p, size_t len)
{
	static const enum calendar_field each[] = {HOUR, MINUTE, SECOND};
	size_t i = 0;

	for (; i < 3; i++) {
		size_t n = i == 2 ? len : MIN(strcspn(p, ":"), len);
		int rv = calendar_take(r, each[i], p, n);

		if (rv != 0 || n == len) {
			if (i == 1)
				put_range(r->c, SECOND, 0, 0, 1);
			return rv;
		}
		p += n + 1;
		len -= n + 1;
	}
	return 0;
}

/* Weekdays, date and time of systemd; each may be missing, not all of them. */
static int read_systemd(const struct calendar_reader *r, const struct calendar_words *w)
{
	struct calendar_reader days = *r;
	size_t i = 0;
	int rv = 0;

	if (isalpha((unsigned char)w->at[0][0])) {
		days.range = memchr(w->at[0], '-', w->len[0]) ? "-" : "..";
		rv = calendar_take(&days, WEEKDAY, w->at[0],
				   w->len[0] - (w->at[0][w->len[0] - 1] == ','));
		i++;
	} else {
		put_range(r->c, WEEKDAY, 0, 6, 1);
	}
	if (rv == 0 && i < w->n && memchr(w->at[i], ':', w->len[i]) == NULL) {
		rv = read_date(r, w->at[i], w->len[i]);
		i++;
	} else {
		put_range(r->c, DAY, 1, 31, 1);
		put_range(r->c, MONTH, 1, 12, 1);
		put_range(r->c, YEAR, FIRST_YEAR, LAST_YEAR, 1);
	}
	if (rv == 0 && i < w->n)
		rv = read_time(r, w->at[i], w->len[i]);
	else
		for (enum calendar_field f = SECOND; f <= HOUR; f++)
			set_put(r->c, f, 0);
	if (rv == 0 && ++i < w->n)
		return err_set(
			r->err, AVA_EINVAL,
			"\"%.*s\" is too much: cron has five fields (minute, hour, day, month, "
			"weekday), a time of systemd weekdays, a date, a time and a zone",
			(int)MIN(w->len[i], 40u), w->at[i]);
	return rv;
}

/* Read a pattern; the zone at its end goes into `zone`. */
static int read_pattern(const struct calendar_reader *r, const char *text, char *zone)
{
	/* Cron's week begins on Sunday, systemd's on Monday; else they agree. */
	static const char *const known[][2] = {{"@weekly", "Sun *-*-* 00:00"},
					       {"weekly", "Mon *-*-* 00:00"},
					       {"minutely", "*-*-* *:*"},
					       {"hourly", "*-*-* *:00"},
					       {"daily", "*-*-* 00:00"},
					       {"midnight", "*-*-* 00:00"},
					       {"monthly", "*-*-01 00:00"},
					       {"quarterly", "*-01,04,07,10-01 00:00"},
					       {"yearly", "*-01-01 00:00"},
					       {"annually", "*-01-01 00:00"},
					       {"semiannually", "*-01,07-01 00:00"}};
	struct calendar_reader cron = {r->c, "-", r->err};
	struct calendar_words w = calendar_split(text);
	const char *word = w.at[0], *p = word;
	size_t last = w.n - 1;
	int day;

	if (w.n > 1 && w.n != 5 && last < WORDS_MOST && isalpha((unsigned char)w.at[last][0]) &&
	    (w.n < 5 || memchr(w.at[last], '/', w.len[last]) ||
	     strncmp(w.at[last], "UTC", w.len[last]) == 0)) {
		snprintf(zone, CALENDAR_TEXT, "%.*s", (int)w.len[last], w.at[last]);
		w.n--;
	}
	for (size_t i = 0; w.n == 1 && i < ARRAY_LEN(known); i++) {
		const char *plain = word + (*word == '@' && *known[i][0] != '@');

		if (strlen(known[i][0]) == w.len[0] - (size_t)(plain - word) &&
		    strncasecmp(known[i][0], plain, strlen(known[i][0])) == 0) {
			w = calendar_split(known[i][1]);
			return read_systemd(r, &w);
		}
	}
	if (w.n == 5)
		return read_cron(&cron, &w);
	if (w.n > 5)
		return err_set(r->err, AVA_EINVAL,
			       "cron has five fields, and these are %zu: minute, hour, day, month, "
			       "weekday, without seconds",
			       w.n);
	if (w.n == 0 || *word == '@' ||
	    (isalpha((unsigned char)*word) && !read_value(WEEKDAY, &p, word + w.len[0], &day)))
		return err_set(
			r->err, AVA_EINVAL,
			r->c->kind == CALENDAR_AT
				? "\"%.40s\" is no time: write 09:00, \"tomorrow 09:00\", \"Fri "
				  "08:00\", \"2026-12-01 09:00\" or +2h"
				: "\"%.40s\" is no time that comes: write \"*/15 8-18 * * 1-5\", "
				  "@daily, 08:00, \"Mon..Fri 08:00\", \"every 2h\" or \"at "
				  "2026-12-01 09:00\"",
			text);
	return read_systemd(r, &w);
}

static int read_every(const struct calendar_reader *r, const char *p)
{
	char text[CALENDAR_TEXT + 4];
	const char *at = text;

	snprintf(text, sizeof(text), "%s%s", isdigit((unsigned char)*p) ? "" : "a ", p);
	if (!clock_span(&at, &r->c->period_ms) || *at != '\0' || r->c->period_ms < 1000 ||
	    r->c->period_ms > INT64_C(31536000000))
		return err_set(r->err, AVA_EINVAL,
			       "\"%.40s\" is no time between two runs: write 30m, 2h, 1h30m or 7d, "
			       "from 1s to 365d; for days, \"Mon 08:00\" or 08:00 without every",
			       p);
	r->c->kind = CALENDAR_EVERY;
	return 0;
}

/* "2026-12-01 09:00", "09:00", "Mon 08:00", "tomorrow 09:00", "+2h": the first time of that
 * pattern, or a length of time; with "T" and "Z" as programs write it. */
static int read_at(const struct calendar_reader *r, const char *p, char *zone, bool *tomorrow)
{
	char text[CALENDAR_TEXT + 8];
	size_t len = strlen(p);
	int64_t span;

	r->c->kind = CALENDAR_AT;
	r->c->at_ms = clock_parse_iso(p, len);
	if (r->c->at_ms >= 0)
		return 0;
	if (*p == '+') {
		const char *end = p + 1;

		if (!clock_span(&end, &span) || *end != '\0' ||
		    span > ZONE_END * 1000 - r->c->anchor_ms)
			return err_set(r->err, AVA_EINVAL,
				       "\"%.40s\" is no time from now on: write +90m or +2h", p);
		r->c->at_ms = r->c->anchor_ms + span;
		return 0;
	}
	*tomorrow = strncasecmp(p, "tomorrow", 8) == 0;
	p += *tomorrow ? 8 : 0;
	len = strlen(p);
	if (len > 1 && p[len - 1] == 'Z' && isdigit((unsigned char)p[len - 2]))
		snprintf(text, sizeof(text), "%.*s UTC", (int)len - 1, p);
	else
		snprintf(text, sizeof(text), "%s", *p != '\0' ? p : "00:00");
	if (len > 11 && text[10] == 'T' && isdigit((unsigned char)text[9]))
		text[10] = ' ';
	return read_pattern(r, text, zone);
}

/* The time of "at", from its pattern. */
static int64_t at_pattern(const struct calendar *c, bool tomorrow)
{
	int64_t after = c->anchor_ms / 1000, next;
	int32_t offset = zone_at(c->zone, after).offset;

	if (tomorrow)
		after = ((after + offset) / DAY_S + 1) * DAY_S - offset - 1;
	next = pattern_next(c, after);
	return next == NO_TIME ? -1 : next * 1000;
}

static int calendar_read(struct calendar *c, const char *zone, struct ava_error *err)
{
	struct calendar_reader r = {c, "..", err};
	char own[CALENDAR_TEXT + 1] = "";
	const char *p = c->text + (strncasecmp(c->text, "@every ", 7) == 0);
	bool every = strncasecmp(p, "every ", 6) == 0, at = strncasecmp(p, "at ", 3) == 0;
	bool tomorrow = false;
	int rv;

	p += every ? 6 : at ? 3 : 0;
	p += strspn(p, " \t");
	if (strcasecmp(p, "@trigger") == 0)
		c->kind = CALENDAR_TRIGGER;
	rv = calendar_waits(c) ? 0
	     : every           ? read_every(&r, p)
	     : at              ? read_at(&r, p, own, &tomorrow)
			       : read_pattern(&r, p, own);
	if (rv != 0)
		return rv;
	rv = zone_open(own[0] != '\0' ? own : zone, &c->zone, err);
	if (rv != 0)
		return rv;
	if (at && c->at_ms < 0)
		c->at_ms = at_pattern(c, tomorrow);
	if (calendar_waits(c) || calendar_next(c, c->anchor_ms) != CALENDAR_NEVER)
		return 0;
	return err_set(err, AVA_EINVAL,
		       at ? "\"%s\" is not ahead, or no such day: name a time that is to come"
			  : "\"%s\" never comes: there is no such day from now on until 2225",
		       c->text);
}

int calendar_parse(const char *text, const char *zone, int64_t anchor_ms, struct calendar **out,
		   struct ava_error *err)
{
	struct calendar *c;
	size_t len;
	int rv;

	text += strspn(text, " \t");
	len = strlen(text);
	while (len > 0 && strchr(" \t", text[len - 1]))
		len--;
	for (size_t i = 0; i < len; i++)
		if (len > CALENDAR_TEXT || (text[i] != '\t' && (text[i] < ' ' || text[i] > '~')))
			return err_set(
				err, AVA_EINVAL,
				"a time that comes again is one line of at most %d plain letters",
				CALENDAR_TEXT);
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return err_set(err, AVA_ENOMEM, "no memory for a time");
	memcpy(c->text, text, len);
	c->anchor_ms = anchor_ms;
	rv = calendar_read(c, zone, err);
	if (rv != 0)
		calendar_free(c);
	else
		*out = c;
	return rv;
}

void calendar_free(struct calendar *c)
{
	if (c == NULL)
		return;
	zone_close(c->zone);
	free(c);
}

/* ---- words */

void calendar_stamp(const struct calendar *c, int64_t ms, char out[CALENDAR_STAMP])
{
	int64_t s = ms / 1000, local = MAX(s + zone_at(c->zone, s).offset, 0);
	struct clock_day d = clock_day_of((unsigned)(local / DAY_S));
	int time = (int)(local % DAY_S), len, n;
	const char *day = value_name(WEEKDAY, weekday_of(local / DAY_S), &len);

	n = snprintf(out, CALENDAR_STAMP, "%.3s %04d-%02d-%02d %02d:%02d", day, d.year % 10000,
		     d.month, d.day, time / 3600, time / 60 % 60);
	if (time % 60 != 0)
		snprintf(out + n, CALENDAR_STAMP - (size_t)n, ":%02d", time % 60);
}

/* "every hour", "every 15 minutes". */
static void text_every(struct buf *out, int64_t s)
{
	static const struct {
		int64_t s;
		const char *name;
	} units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};
	size_t i = 0;

	while (s % units[i].s != 0)
		i++;
	if (s == units[i].s)
		buf_addf(out, "every %s", units[i].name);
	else
		buf_addf(out, "every %d %ss", (int)(s / units[i].s), units[i].name);
}

static void text_time(struct buf *out, int s)
{
	buf_addf(out, s % 60 != 0 ? "%02d:%02d:%02d" : "%02d:%02d", s / 3600, s / 60 % 60, s % 60);
}

/* Between the items of a list: nothing, ", " or " and ". */
static const char *text_between(int i, int n)
{
	return i == 0 ? "" : i == n - 1 ? " and " : ", ";
}

/* Some times of a day, or steps of one length. False: it has no such words. */
static bool text_times(const struct calendar *c, bool daily, struct buf *out)
{
	int first = time_from(c, 0), last = first, n = 0, step = 0, list[TIMES_LISTED];
	bool even = true;

	for (int t = first; t >= 0; t = time_from(c, t + 1)) {
		if (n < TIMES_LISTED)
			list[n] = t;
		if (n == 1)
			step = t - last;
		even = even && (n < 2 || t - last == step);
		last = t;
		n++;
	}
	if (n > 2 && even) {
		buf_adds(out, daily ? "" : ", ");
		text_every(out, step);
		if (first == 0 && last + step == DAY_S)
			return true;
		buf_adds(out, " from ");
		text_time(out, first);
		buf_adds(out, " to ");
		text_time(out, last);
		return true;
	}
	buf_adds(out, daily ? "every day at " : " at ");
	for (int i = 0; n <= TIMES_LISTED && i < n; i++) {
		buf_adds(out, text_between(i, n));
		text_time(out, list[i]);
	}
	return n <= TIMES_LISTED;
}

/* The values of a field as a list, or as a range where they are three or more in a row; weekdays
 * begin on Monday. `form` is of a number or, with names, of a length and a text. */
static void text_values(const struct calendar *c, enum calendar_field f, struct buf *out)
{
	int all[32], n = 0, len;
	bool row = f == WEEKDAY;

	for (int v = f == WEEKDAY ? 1 : calendar_fields[f].least; v <= calendar_fields[f].most; v++)
		if (set_has(c, f, f == WEEKDAY ? v % 7 : v)) {
			row = row && (n == 0 || all[n - 1] == v - 1);
			all[n++] = v;
		}
	for (int i = 0; i < n; i += row && n > 2 && i == 0 ? n - 1 : 1) {
		const char *name = f == DAY ? "" : value_name(f, all[i], &len);
		int d = all[i], ordinal = d % 10 > 3 || d / 10 == 1 ? 0 : d % 10;

		buf_adds(out, row && n > 2 && i > 0 ? " to " : text_between(i, n));
		if (f == DAY)
			buf_addf(out, "%d%.2s", d, &"thstndrd"[2 * ordinal]);
		else
			buf_addf(out, "%.*s", len, name);
	}
}

/* How many of a field's values the set has; -1: all. */
static int set_count(const struct calendar *c, enum calendar_field f)
{
	int most = f == WEEKDAY ? 6 : calendar_fields[f].most, n = 0;

	for (int v = calendar_fields[f].least; v <= most; v++)
		n += set_has(c, f, v);
	return n == most - calendar_fields[f].least + 1 ? -1 : n;
}

/* Days, times. False: it has no words that are shorter than the expression. */
static bool text_pattern(const struct calendar *c, struct buf *out)
{
	int days = set_count(c, DAY), weekdays = set_count(c, WEEKDAY),
	    months = set_count(c, MONTH);
	bool last = c->from_end && days == 1 && set_has(c, DAY, 1);

	if (c->either || set_count(c, YEAR) >= 0 || (days >= 0 && weekdays >= 0) || days > 6 ||
	    months > 6 || (c->from_end && !last))
		return false;
	if (weekdays >= 0) {
		buf_adds(out, weekdays == 1 ? "every " : "");
		text_values(c, WEEKDAY, out);
	} else if (days >= 0) {
		buf_adds(out, last ? "on the last day" : "on the ");
		if (!last)
			text_values(c, DAY, out);
		buf_adds(out, months < 0 ? " of each month" : " of ");
	} else if (months >= 0) {
		buf_adds(out, "every day");
	}
	if (months >= 0) {
		buf_adds(out, days < 0 ? " in " : "");
		text_values(c, MONTH, out);
	}
	return text_times(c, days < 0 && weekdays < 0 && months < 0, out);
}

void calendar_text(const struct calendar *c, struct buf *out)
{
	const char *zone = calendar_zone(c);
	size_t before = out->len, len = strlen(c->text), nzone = strlen(zone);
	char stamp[CALENDAR_STAMP];

	if (c->kind == CALENDAR_EVERY) {
		calendar_stamp(c, c->anchor_ms, stamp);
		text_every(out, c->period_ms / 1000);
		buf_addf(out, " from %s", stamp);
	} else if (c->kind == CALENDAR_AT) {
		calendar_stamp(c, c->at_ms, stamp);
		buf_addf(out, "once, %s", stamp);
	} else if (c->kind == CALENDAR_TRIGGER) {
		buf_adds(out, "only when a trigger says so");
		return;
	} else if (!text_pattern(c, out)) {
		if (out->len > before)
			out->data[out->len = before] = '\0';
		buf_adds(out, c->text);
		if (len > nzone && strcmp(c->text + len - nzone, zone) == 0)
			return;
	}
	buf_addf(out, ", %s", strcmp(zone, "local") == 0 ? "local time" : zone);
}

/* Our own calendar against libc's, both ways; strictness of the parser. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/util.h"

static void by_libc(int64_t ms, char out[CLOCK_ISO_LEN + 1])
{
	time_t t = (time_t)(ms / 1000);
	char date[32];
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out, CLOCK_ISO_LEN + 1, "%.19s.%03dZ", date, (int)(ms % 1000));
}

TEST(iso_against_libc)
{
	char ours[CLOCK_ISO_LEN + 1], theirs[CLOCK_ISO_LEN + 1];

	/* 89,999,987 ms: a bit over a day, so that every part moves. */
	for (int64_t ms = 0; ms < INT64_C(253402300799999); ms += 89999987) {
		clock_iso(ms, ours);
		by_libc(ms, theirs);
		if (strcmp(ours, theirs) != 0)
			fail_msg("%s is %s", ours, theirs);
		if (clock_parse_iso(ours, CLOCK_ISO_LEN) != ms)
			fail_msg("%s does not read back", ours);
	}
}

/* Weeks begin on Monday, also over the end of a year; months on their first; clocks that are
 * changed move neither. */
TEST(periods)
{
	static const struct {
		const char *date, *week, *month;
	} rows[] = {
		{"1970-01-05", "1970-01-05", "1970-01-01"},
		{"2026-12-31", "2026-12-28", "2026-12-01"},
		{"2027-01-01", "2026-12-28", "2027-01-01"},
		{"2027-01-03", "2026-12-28", "2027-01-01"},
		{"2027-01-04", "2027-01-04", "2027-01-01"},
		{"2028-02-29", "2028-02-28", "2028-02-01"},
		{"2026-03-29", "2026-03-23", "2026-03-01"}, /* the day of 23 hours */
		{"2026-10-25", "2026-10-19", "2026-10-01"}, /* and of 25 */
		{"2026-10-26", "2026-10-26", "2026-10-01"},
	};
	char out[11], iso[CLOCK_ISO_LEN + 1];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		clock_period(rows[i].date, CLOCK_DAY, out);
		assert_string_equal(out, rows[i].date);
		clock_period(rows[i].date, CLOCK_WEEK, out);
		assert_string_equal(out, rows[i].week);
		clock_period(rows[i].date, CLOCK_MONTH, out);
		assert_string_equal(out, rows[i].month);
	}
	for (int64_t day = 4; day < 80 * 366; day++) {
		time_t t = (time_t)(day * 86400), monday;
		char week[11];
		struct tm tm;

		gmtime_r(&t, &tm);
		monday = t - (tm.tm_wday + 6) % 7 * 86400;
		gmtime_r(&monday, &tm);
		strftime(week, sizeof(week), "%Y-%m-%d", &tm);
		clock_iso(day * 86400000, iso);
		iso[10] = '\0';
		clock_period(iso, CLOCK_WEEK, out);
		if (strcmp(week, out) != 0)
			fail_msg("%s is in the week of %s, not %s", iso, week, out);
	}
}

TEST(iso_ends)
{
	char out[CLOCK_ISO_LEN + 1];

	clock_iso(-1, out);
	assert_string_equal(out, "1970-01-01T00:00:00.000Z");
	clock_iso(INT64_MAX, out);
	assert_string_equal(out, "9999-12-31T23:59:59.999Z");
	clock_iso(1795248000123, out);
	assert_string_equal(out, "2026-11-21T08:00:00.123Z");
	clock_iso(951782400000, out);
	assert_string_equal(out, "2000-02-29T00:00:00.000Z");
}

TEST(parse_strict)
{
	static const char *const bad[] = {
		"2026-11-21T08:00:00.123",  "2026-11-21T08:00:00.123Z ", "2026-11-21 08:00:00.123Z",
		"2026-11-21T08:00:00,123Z", "2026-11-21T08:00:00.12xZ",  "2026-02-29T08:00:00.123Z",
		"2026-11-31T08:00:00.123Z", "2026-11-00T08:00:00.123Z",  "2026-00-21T08:00:00.123Z",
		"2026-13-21T08:00:00.123Z", "2026-11-21T24:00:00.000Z",  "2026-11-21T08:60:00.123Z",
		"2026-11-21T08:00:60.123Z", "1969-12-31T23:59:59.999Z",  "2026-11-21T08:00:00.123z",
		"+026-11-21T08:00:00.123Z", "2026-11-21T08:00:00.-12Z",  "",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (clock_parse_iso(bad[i], strlen(bad[i])) != -1)
			fail_msg("accepted: %s", bad[i]);
	assert_int_equal(clock_parse_iso("1970-01-01T00:00:00.000Z", 24), 0);
	assert_int_equal(clock_parse_iso("2024-02-29T00:00:00.001Z", 24), 1709164800001);
}

TEST(clocks_run)
{
	int64_t us = clock_mono_us(), ms = clock_mono_ms();

	assert_true(ms >= us / 1000);
	assert_true(clock_mono_us() >= us);
	assert_true(clock_wall_ms() / 1000 - time(NULL) <= 1);
	assert_true(time(NULL) - clock_wall_ms() / 1000 <= 1);
}

TEST(local_date)
{
	char out[11];

	setenv("TZ", "UTC-14", 1); /* fourteen hours east */
	tzset();
	clock_local_date(1795255200000, out); /* 2026-11-21T10:00Z */
	assert_string_equal(out, "2026-11-22");
	setenv("TZ", "UTC", 1);
	tzset();
	clock_local_date(1795255200000, out);
	assert_string_equal(out, "2026-11-21");
	clock_local_date(INT64_MAX, out); /* no such date; still ten characters */
	assert_int_equal(strlen(out), 10);
}

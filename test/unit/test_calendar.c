/* Times that come again: each form by a table, a year of a hundred of them as golden rows, chance
 * patterns against every minute of a year as libc has it, and what people get wrong. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/calendar.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "base/zone.h"

#define DAY_MS INT64_C(86400000)

static int64_t at_iso(const char *text)
{
	char full[CLOCK_ISO_LEN + 1] = "2025-01-01T00:00:00.000Z";
	int64_t ms;

	memcpy(full, text, strlen(text));
	ms = clock_parse_iso(full, CLOCK_ISO_LEN);
	assert_true(ms >= 0);
	return ms;
}

static struct calendar *calendar_of(const char *text, const char *zone, const char *anchor)
{
	struct calendar *c = NULL;
	struct ava_error err = {0};

	if (calendar_parse(text, zone, at_iso(anchor), &c, &err) != 0)
		fail_msg("\"%s\" in %s: %s", text, zone, err.text);
	return c;
}

/* The next times after `after`, with blanks between, as "2025-03-30T01:00". */
static void assert_next(const char *text, const char *zone, const char *after, const char *times)
{
	struct calendar *c = calendar_of(text, zone, after);
	TEST_BUF(got, 4096);
	int64_t t = at_iso(after);
	size_t n = 1;

	for (const char *p = times; *p != '\0'; p++)
		n += *p == ' ';
	for (size_t i = 0; i < n; i++) {
		char iso[CLOCK_ISO_LEN + 1] = "never";

		t = calendar_next(c, t);
		if (t != CALENDAR_NEVER)
			clock_iso(t, iso);
		if (strcmp(iso + 16, ":00.000Z") == 0)
			iso[16] = '\0';
		else if (t != CALENDAR_NEVER)
			iso[19] = '\0';
		buf_addf(&got, "%s%s", i ? " " : "", iso);
	}
	if (strcmp(got.data, times) != 0)
		fail_msg("\"%s\" in %s after %s:\n%s, not\n%s", text, zone, after, got.data, times);
	calendar_free(c);
}

TEST(forms)
{
	/* 2025-01-01 was a Wednesday. */
	static const char *const rows[][2] = {
		{"30 8 * * *", "2025-01-01T08:30 2025-01-02T08:30"},
		{"  0 0 1 1 *\t", "2026-01-01T00:00"},
		{"5,10-12,50/5 0 * * *",
		 "2025-01-01T00:05 2025-01-01T00:10 2025-01-01T00:11 2025-01-01T00:12 "
		 "2025-01-01T00:50 2025-01-01T00:55 2025-01-02T00:05"},
		{"0-30/20 0 * * *", "2025-01-01T00:20 2025-01-02T00:00"},
		{"0 0 * Feb,NOVEMBER sun", "2025-02-02T00:00 2025-02-09T00:00"},
		{"0 0 * * 7", "2025-01-05T00:00 2025-01-12T00:00"},
		{"0 0 * * 5-7",
		 "2025-01-03T00:00 2025-01-04T00:00 2025-01-05T00:00 2025-01-10T00:00"},
		{"0 0 * * Fri-Sun", "2025-01-03T00:00 2025-01-04T00:00 2025-01-05T00:00"},
		{"0 0 10 * 5", "2025-01-03T00:00 2025-01-10T00:00 2025-01-17T00:00"}, /* or */
		{"0 0 */10 * 2", "2025-01-21T00:00 2025-02-11T00:00"},                /* and */
		{"0 0 10 * */2", "2025-04-10T00:00 2025-05-10T00:00"},
		{"0 0 29 2 *", "2028-02-29T00:00 2032-02-29T00:00"},
		{"0 8 * * 1 Europe/Berlin", "2025-01-06T07:00"},
		{"@Hourly", "2025-01-01T01:00"},
		{"@daily", "2025-01-02T00:00"},
		{"@midnight", "2025-01-02T00:00"},
		{"@weekly", "2025-01-05T00:00"},
		{"weekly", "2025-01-06T00:00"},
		{"@monthly", "2025-02-01T00:00"},
		{"@annually", "2026-01-01T00:00"},
		{"@yearly", "2026-01-01T00:00"},
		{"quarterly", "2025-04-01T00:00 2025-07-01T00:00"},
		{"semiannually", "2025-07-01T00:00"},
		{"minutely", "2025-01-01T00:01"},
		{"daily Europe/Berlin", "2025-01-01T23:00"},
		{"Mon..Fri 08:00",
		 "2025-01-01T08:00 2025-01-02T08:00 2025-01-03T08:00 2025-01-06T08:00"},
		{"Sat,Thu,Mon..Tue",
		 "2025-01-02T00:00 2025-01-04T00:00 2025-01-06T00:00 2025-01-07T00:00"},
		{"Mon-Wed 9:5", "2025-01-01T09:05 2025-01-06T09:05"},
		{"Wed, 17:48", "2025-01-01T17:48 2025-01-08T17:48"},
		{"*-*~1 18:00", "2025-01-31T18:00 2025-02-28T18:00"},
		{"*-02~1", "2025-02-28T00:00 2026-02-28T00:00 2027-02-28T00:00 2028-02-29T00:00"},
		{"Mon *-05~7/1", "2025-05-26T00:00 2026-05-25T00:00"},
		{"*-*~7/3", "2025-01-25T00:00 2025-01-28T00:00 2025-01-31T00:00 2025-02-22T00:00"},
		{"*-*-* 08..10/2:00/30", "2025-01-01T08:00 2025-01-01T08:30 2025-01-01T10:00"},
		{"*:*:15/20", "2025-01-01T00:00:15 2025-01-01T00:00:35 2025-01-01T00:00:55"},
		{"03-05", "2025-03-05T00:00 2026-03-05T00:00"},
		{"2026-*-1 00:00", "2026-01-01T00:00 2026-02-01T00:00"},
		{"2030..2031/1-1-1", "2030-01-01T00:00 2031-01-01T00:00 never"},
		{"every 90m", "2025-01-01T01:30 2025-01-01T03:00"},
		{"@every 1h30m", "2025-01-01T01:30"},
		{"every hour", "2025-01-01T01:00"},
		{"every 2 days 3 hours", "2025-01-03T03:00 2025-01-05T06:00"},
		{"at 2025-02-03 04:05:06", "2025-02-03T04:05:06 never"},
		{"at 2025-02-03T04:05 Europe/Berlin", "2025-02-03T03:05 never"},
		{"AT 2025-02-03T04:05:06Z", "2025-02-03T04:05:06 never"},
		{"at 2025-02-03T04:05:06.000Z", "2025-02-03T04:05:06 never"},
		{"at 09:00", "2025-01-01T09:00 never"},
		{"at tomorrow 09:00", "2025-01-02T09:00 never"},
		{"at Tomorrow", "2025-01-02T00:00 never"},
		{"at Fri 08:00", "2025-01-03T08:00 never"},
		{"at +1h30m", "2025-01-01T01:30 never"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_next(rows[i][0], "UTC", "2025-01-01T00:00", rows[i][1]);
	/* Of a time that is no whole second, and of the due time itself. */
	assert_next("* * * * *", "UTC", "2025-01-01T07:59:59.999", "2025-01-01T08:00");
	assert_next("* * * * *", "UTC", "2025-01-01T08:00:00.001", "2025-01-01T08:01");
	/* "tomorrow" and a time of the day are of the zone. */
	assert_next("at tomorrow 09:00", "Asia/Tokyo", "2025-01-01T20:00",
		    "2025-01-03T00:00 never");
	assert_next("at 09:00", "Asia/Tokyo", "2025-01-01T00:30", "2025-01-02T00:00 never");
}

TEST(changes_of_the_clock)
{
	/* Berlin: 02:00 to 03:00 is missing on 30 March, and there twice on 26 October. */
	assert_next("30 2 * * *", "Europe/Berlin", "2025-03-29T12:00",
		    "2025-03-30T01:00 2025-03-31T00:30");
	assert_next("0,30 2,3 * * *", "Europe/Berlin", "2025-03-30T00:00",
		    "2025-03-30T01:00 2025-03-30T01:30 2025-03-31T00:00");
	assert_next("30 2 * * *", "Europe/Berlin", "2025-10-25T12:00",
		    "2025-10-26T00:30 2025-10-27T01:30");
	/* Asked in the second of the two hours. */
	assert_next("30 2 * * *", "Europe/Berlin", "2025-10-26T01:10", "2025-10-27T01:30");
	assert_next("*/30 * * * *", "Europe/Berlin", "2025-10-26T00:15",
		    "2025-10-26T00:30 2025-10-26T02:00 2025-10-26T02:30");
	/* Samoa left out 30 December 2011, a Friday. */
	assert_next("0 8 * * *", "Pacific/Apia", "2011-12-29T10:00",
		    "2011-12-29T18:00 2011-12-30T10:00 2011-12-30T18:00");
	assert_next("0 8 30 12 *", "Pacific/Apia", "2011-01-01T00:00", "2011-12-30T10:00");
	/* By the rule, beyond every table; south of the equator, too. */
	assert_next("30 2 * * *", "Europe/Berlin", "2150-03-28T12:00", "2150-03-29T01:00");
	assert_next("30 2 * * *", "Australia/Sydney", "2150-10-03T12:00",
		    "2150-10-03T16:00 2150-10-04T15:30");
	assert_next("0 12 1 7 *", "Australia/Sydney", "2150-01-01T00:00", "2150-07-01T02:00");
	assert_next("0 12 1 1 *", "Europe/Dublin", "2149-06-01T00:00", "2150-01-01T12:00");
	/* "every" counts through. */
	assert_next("every 12h", "Europe/Berlin", "2025-03-29T23:00",
		    "2025-03-30T11:00 2025-03-30T23:00");
}

TEST(never)
{
	struct calendar *c = calendar_of("2025-06-01 00:00", "Europe/Berlin", "2025-01-01");

	assert_true(calendar_next(c, at_iso("2025-06-01")) == CALENDAR_NEVER);
	assert_true(calendar_next(c, INT64_MAX) == CALENDAR_NEVER);
	assert_true(calendar_next(c, INT64_MAX - 1) == CALENDAR_NEVER);
	assert_int_equal(calendar_next(c, INT64_MIN), at_iso("2025-05-31T22:00"));
	calendar_free(c);
	c = calendar_of("every 2h", "UTC", "2025-01-01");
	assert_true(calendar_next(c, INT64_MAX - 1) == CALENDAR_NEVER);
	assert_int_equal(calendar_next(c, INT64_MIN), at_iso("2025-01-01T02:00"));
	calendar_free(c);
	c = calendar_of("at +2h", "", "2025-01-01");
	assert_false(calendar_waits(c));
	calendar_free(c);
	c = calendar_of("@trigger", "UTC", "2025-01-01");
	assert_true(calendar_waits(c));
	assert_true(calendar_next(c, 0) == CALENDAR_NEVER);
	calendar_free(c);
	calendar_free(NULL);
}

TEST(wrong)
{
	static const char *const rows[][2] = {
		{"61 * * * *", "\"61\" is no minute: that is 0 to 59,"},
		{"* 24 * * *", "\"24\" is no hour: that is 0 to 23,"},
		{"0 8 0 * *", "\"0\" is no day of the month: that is 1 to 31,"},
		{"0 8 * 13 *", "\"13\" is no month: that is 1 to 12 or Jan to Dec,"},
		{"0 8 * * 8", "\"8\" is no weekday: that is Mon to Sun or,"},
		{"0 8 * * mo", "\"mo\" is no weekday"},
		{"0 8 * * ?", "\"?\" is no weekday"},
		{"0 8 L * *", "\"L\" is no day of the month"},
		{"1,,2 * * * *", "\"\" is no minute"},
		{"1-2-3 * * * *", "\"1-2-3\" is no minute"},
		{"1- * * * *", "\"1-\" is no minute"},
		{"*/ * * * *", "\"*/\" is no minute"},
		{"99999999999999999999 * * * *", "is no minute"},
		{"0 22-6 * * *", "\"22-6\" goes backwards: write two, as in 22-23,0-6"},
		{"*/90 * * * *", "must be 1 to 59, since each hour begins anew; \"every 90m\""},
		{"*/0 * * * *", "the step in \"*/0\" must be 1 to 59"},
		{"* * * *", "\"*\" is no date"},
		{"0 0 8 * * MON", "cron has five fields, and these are 6"},
		{"@reboot", "\"@reboot\" is no time that comes: write \"*/15 8-18 * * 1-5\""},
		{"tomorow", "\"tomorow\" is no time that comes"},
		{"", "\"\" is no time that comes"},
		{"at", "\"at\" is no time that comes"},
		{"UTC", "\"UTC\" is no time that comes"},
		{"Mon 8", "\"8\" is no date"},
		{"Fri..Mon 08:00",
		 "\"Fri..Mon\" goes backwards: write two, as in Sat..Sun,Mon..Tue"},
		{"Mon Tue 08:00", "\"Tue\" is no date"},
		{"Mon 08:00 09:00", "\"09:00\" is too much"},
		{"*~02-01", "\"*~02-01\" is no date"},
		{"08:00:00.5", "\"00.5\" is no second"},
		{"2300-01-01", "\"2300\" is no year: that is 1970 to 2225"},
		{"0 0 30 2 *", "\"0 0 30 2 *\" never comes"},
		{"*-02-30", "\"*-02-30\" never comes"},
		{"2024-*-* 08:00", "never comes"},
		{"at 2024-12-31 08:00", "\"at 2024-12-31 08:00\" is not ahead"},
		{"at 2024-12-31T08:00:00.000Z", "is not ahead"},
		{"at 25:00", "\"25\" is no hour"},
		{"at +x", "\"+x\" is no time from now on"},
		{"at now", "\"now\" is no time: write 09:00"},
		{"at 2025-02-31 08:00", "is not ahead, or no such day"},
		{"at +", "is no time from now on"},
		{"every 0s", "\"0s\" is no time between two runs: write 30m"},
		{"every 999ms", "is no time between two runs"},
		{"every 9999999999999999999h", "is no time between two runs"},
		{"every 2h 08:00", "is no time between two runs"},
		{"every fortnight", "is no time between two runs"},
		{"Mon 08:00 Europe/Berln", "there is no time zone \"Europe/Berln\""},
		{"Mon 08:00 x/../UTC", "there is no time zone"},
		{"0 8 * * * America", "cron has five fields"},
		{"08:00\n", "one line of at most 200 plain letters"},
		{"08:00 \xc3\xa4", "one line of at most 200 plain letters"},
	};
	struct calendar *c = NULL;
	char longest[CALENDAR_TEXT + 2];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ava_error err = {0};

		if (calendar_parse(rows[i][0], "UTC", at_iso("2025-01-01"), &c, &err) !=
			    AVA_EINVAL ||
		    strstr(err.text, rows[i][1]) == NULL || strchr(err.text, '\n'))
			fail_msg("\"%s\": \"%s\", not \"%s\"", rows[i][0], err.text, rows[i][1]);
	}
	memset(longest, '0', sizeof(longest));
	longest[CALENDAR_TEXT + 1] = '\0';
	assert_int_equal(calendar_parse(longest, "UTC", 0, &c, NULL), AVA_EINVAL);
	assert_int_equal(calendar_parse("@daily", "Nowhere", 0, &c, NULL), AVA_EINVAL);
	assert_int_equal(calendar_parse("@daily", "../UTC", 0, &c, NULL), AVA_EINVAL);
	assert_int_equal(calendar_parse("@daily", "tzdata.zi", 0, &c, NULL), AVA_EINVAL);
	assert_null(c);
}

TEST(words)
{
	static const char *const rows[][2] = {
		{"*/15 8-18 * * 1-5", "Monday to Friday, every 15 minutes from 08:00 to 18:45"},
		{"@daily", "every day at 00:00"},
		{"hourly", "every hour"},
		{"30 * * * *", "every hour from 00:30 to 23:30"},
		{"*-*-* *:*:0/30", "every 30 seconds"},
		{"0 */2 * * sat,sun", "Saturday and Sunday, every 2 hours"},
		{"0 9,17 * * 1", "every Monday at 09:00 and 17:00"},
		{"0 7,9,17 * * 1,3,5", "Monday, Wednesday and Friday at 07:00, 09:00 and 17:00"},
		{"0 9 1,2,3,11,22 * *",
		 "on the 1st, 2nd, 3rd, 11th and 22nd of each month at 09:00"},
		{"quarterly", "on the 1st of January, April, July and October at 00:00"},
		{"*-*~1 18:00", "on the last day of each month at 18:00"},
		{"*-02~1 18:00:30", "on the last day of February at 18:00:30"},
		{"0 8 * 6 1-5", "Monday to Friday in June at 08:00"},
		{"0 8 * 6 *", "every day in June at 08:00"},
		{"0 8 13 * 5", "0 8 13 * 5"},
		{"2025-07-01", "2025-07-01"},
		{"1,2,3,5,8,13,21 8 * * *", "1,2,3,5,8,13,21 8 * * *"},
		{"every 2h", "every 2 hours from Wed 2025-01-01 01:00"},
		{"every 90m", "every 90 minutes from Wed 2025-01-01 01:00"},
		{"every 1d", "every day from Wed 2025-01-01 01:00"},
		{"at 2025-07-01 08:00:05", "once, Tue 2025-07-01 08:00:05"},
	};

	struct calendar *none = calendar_of("@Trigger", "UTC", "2025-01-01");
	TEST_BUF(text, 1000);

	calendar_text(none, &text);
	assert_string_equal(text.data, "only when a trigger says so");
	calendar_free(none);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_BUF(got, 1000);
		TEST_BUF(want, 1000);
		struct calendar *c;

		c = calendar_of(rows[i][0], "Europe/Berlin", "2025-01-01");
		buf_adds(&got, "When: ");
		calendar_text(c, &got);
		buf_addf(&want, "When: %s, Europe/Berlin", rows[i][1]);
		assert_string_equal(got.data, want.data);
		calendar_free(c);
	}
}

/* A thousand orders of one zone have it once, until the last of them is gone. */
TEST(zones_are_shared)
{
	struct zone *a, *b, *local;

	assert_int_equal(zone_open("Europe/Berlin", &a, NULL), 0);
	assert_int_equal(zone_open("Europe/Berlin", &b, NULL), 0);
	assert_ptr_equal(a, b);
	zone_close(a);
	assert_string_equal(zone_name(b), "Europe/Berlin");
	assert_int_equal(zone_at(b, 1767225600).offset, 3600);
	setenv("TZ", "Europe/Berlin", 1);
	assert_int_equal(zone_open("local", &local, NULL), 0);
	assert_ptr_not_equal(b, local);
	unsetenv("TZ");
	zone_close(local);
	zone_close(b);
}

TEST(of_the_machine)
{
	static const char *const rows[][3] = {
		{"Asia/Tokyo", "Asia/Tokyo", "2025-01-01T15:00"},
		{":Asia/Tokyo", "Asia/Tokyo", "2025-01-01T15:00"},
		{"/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo", "2025-01-01T15:00"},
		{"JST-9", "local", "2025-01-01T15:00"},
		{"AAA-1BBB,J1/0,J365/23", "local", "2025-01-01T22:00"},
		{"", "UTC", "2025-01-02T00:00"},
	};
	struct calendar *c;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		setenv("TZ", rows[i][0], 1);
		c = calendar_of("@daily", i % 2 ? "" : "local", "2025-01-01");
		assert_string_equal(calendar_zone(c), rows[i][1]);
		assert_int_equal(calendar_next(c, at_iso("2025-01-01T12:00")), at_iso(rows[i][2]));
		calendar_free(c);
	}
	unsetenv("TZ");
	c = calendar_of("@daily", "", "2025-01-01"); /* by /etc/localtime: of whatever it is */
	assert_true(calendar_next(c, at_iso("2025-01-01")) <= at_iso("2025-01-02"));
	calendar_free(c);
}

/* ---- the table */

/* "03-30T01:00:00" of 2025. */
static void stamp_2025(int64_t ms, char out[15])
{
	char iso[CLOCK_ISO_LEN + 1];

	clock_iso(ms, iso);
	memcpy(out, iso + 5, 14);
	out[14] = '\0';
}

static void table_row(char *line)
{
	char *field[6], *last = NULL, first_at[15] = "-", last_at[15] = "-", at[15];
	int64_t begin = at_iso("2025-01-01"), end = at_iso("2026-01-01"), t;
	struct calendar *c;
	TEST_BUF(near, 4096);
	long n = 0;

	for (int i = 0; i < 6; i++) {
		field[i] = strtok_r(i ? NULL : line, "\t\n", &last);
		assert_non_null(field[i]);
	}
	c = calendar_of(field[0], field[1], "2024-12-31T23:10");
	for (t = begin - 1; (t = calendar_next(c, t)) < end; n++)
		stamp_2025(t, n ? last_at : first_at);
	if (n == 1)
		memcpy(last_at, first_at, sizeof(last_at));
	assert_int_equal(n, atol(field[2]));
	assert_string_equal(first_at, field[3]);
	assert_string_equal(last_at, field[4]);
	for (char *turn = field[5][0] == '-' ? NULL : field[5]; turn; turn = strchr(turn, ' ')) {
		char full[25] = "2025-";
		int64_t change;
		int shown = 0;

		turn += *turn == ' ';
		memcpy(full + 5, turn, 14);
		change = at_iso(full);
		buf_addf(&near, "%s%.14s:", near.len ? " " : "", turn);
		t = MAX(begin, change - 2 * 3600000) - 1;
		while ((t = calendar_next(c, t)) <= change + 2 * 3600000 && shown < 20) {
			stamp_2025(t, at);
			buf_addf(&near, "%s%s", shown++ ? "," : "", at);
		}
	}
	assert_string_equal(near.data ? near.data : "-", field[5]);
	calendar_free(c);
}

TEST(a_year_of_a_hundred)
{
	char path[4096], line[4096];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/test/golden/calendar.tsv", getenv("SRCDIR"));
	f = fopen(path, "r");
	assert_non_null(f);
	for (; fgets(line, sizeof(line), f); n++) {
		char copy[4096];

		memcpy(copy, line, sizeof(copy));
		table_row(copy);
	}
	fclose(f);
	assert_int_equal(n, 100);
}

/* ---- chance */

static const char *const chance_zones[] = {
	"Europe/Berlin",    "America/New_York",    "America/St_Johns", "America/Santiago",
	"Asia/Beirut",      "Africa/Cairo",        "Asia/Kathmandu",   "Africa/Casablanca",
	"Pacific/Chatham",  "Australia/Lord_Howe", "Europe/Dublin",    "Antarctica/Troll",
	"America/Asuncion", "Asia/Tehran",         "Atlantic/Azores",  "UTC",
};

static uint32_t chance_seed = 7;

static unsigned chance(unsigned n)
{
	chance_seed = chance_seed * 1664525 + 1013904223;
	return (chance_seed >> 8) % n;
}

/* A field of cron with up to three values, or all; its bits. */
static uint64_t chance_field(char *out, unsigned least, unsigned most, unsigned some)
{
	uint64_t bits = 0;
	char *p = out;

	if (chance(100) >= some) {
		memcpy(out, "*", 2);
		return UINT64_MAX;
	}
	for (unsigned i = 0, n = 1 + chance(3); i < n; i++) {
		unsigned low = least + chance(most - least + 1), high = low;

		if (chance(2))
			high += chance(most - low + 1);
		p += sprintf(p, "%s%u-%u", i ? "," : "", low, high);
		for (; low <= high; low++)
			bits |= UINT64_C(1) << low;
	}
	return bits;
}

/* Walk through all minutes of two years as libc has them: a minute whose local time was there
 * before is not due, and one behind a gap is due when anything in the gap is. */
static void chance_year(const char *zone)
{
	char field[5][40], text[CALENDAR_TEXT];
	uint64_t minutes = chance_field(field[0], 0, 59, 80),
		 hours = chance_field(field[1], 0, 23, 80);
	uint64_t days = chance_field(field[2], 1, 31, 30),
		 months = chance_field(field[3], 1, 12, 10);
	uint64_t weekdays = chance_field(field[4], 0, 6, 30);
	int64_t now = at_iso("2024-12-30"), end = at_iso("2025-12-31"), next, seen = 0;
	struct calendar *c;

	snprintf(text, sizeof(text), "%s %s %s %s %s", field[0], field[1], field[2], field[3],
		 field[4]);
	if (calendar_parse(text, zone, now, &c, NULL) != 0)
		return; /* 31 February */
	setenv("TZ", zone, 1);
	tzset();
	next = calendar_next(c, now);
	for (now += 60000; now < end; now += 60000) {
		time_t t = (time_t)(now / 1000);
		struct tm tm, then;
		int64_t local, l;
		bool due = false;

		localtime_r(&t, &tm);
		local = timegm(&(struct tm){.tm_year = tm.tm_year,
					    .tm_mon = tm.tm_mon,
					    .tm_mday = tm.tm_mday,
					    .tm_hour = tm.tm_hour,
					    .tm_min = tm.tm_min}) /
			60;
		for (l = seen ? seen + 1 : local; l <= local && !due; l++) {
			time_t as_utc = (time_t)l * 60;
			bool date, weekday;

			gmtime_r(&as_utc, &then);
			date = days >> then.tm_mday & 1;
			weekday = weekdays >> then.tm_wday & 1;
			due = minutes >> then.tm_min & 1 && hours >> then.tm_hour & 1 &&
			      months >> (then.tm_mon + 1) & 1 &&
			      (field[2][0] != '*' && field[4][0] != '*' ? date || weekday
									: date && weekday);
		}
		seen = MAX(seen, local);
		if (due != (next == now))
			fail_msg("\"%s\" in %s: %s, and libc says %s at %ld", text, zone,
				 due ? "not due" : "due", due ? "due" : "not due", (long)t);
		if (due)
			next = calendar_next(c, now);
	}
	assert_true(next >= end);
	calendar_free(c);
}

TEST(every_minute_of_a_year)
{
	for (size_t i = 0; i<ARRAY_LEN(chance_zones); i += (size_t)unit_step(1)> 1 ? 5 : 1)
		for (int n = 0; n < 3; n++)
			chance_year(chance_zones[i]);
	unsetenv("TZ");
	tzset();
}

TEST(no_memory)
{
	FAULT_LOOP(k, {
		struct calendar *c = NULL;

		if (calendar_parse("@daily", "Europe/Berlin", 0, &c, NULL) == 0)
			assert_int_equal(calendar_next(c, 0), DAY_MS - 3600000);
		calendar_free(c);
	});
}

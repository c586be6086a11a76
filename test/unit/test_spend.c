/* What a day cost: runs of today count, older ones do not, a new day begins at
 * nothing, sums stop at their ends. */
#include "unit.h"

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "subagent/budget.h"

#define HOUR 3600000LL
#define NOON 1795262400000LL /* 2026-11-21T12:00:00Z */

TEST(today)
{
	struct spend s = {0}, got;

	spend_add(&s, NOON - 30 * HOUR, NOON + 24 * HOUR, 900, 90, 0); /* yesterday */
	spend_add(&s, NOON, NOON + 24 * HOUR, 500, 10, 0);
	spend_add(&s, NOON + HOUR, NOON + 24 * HOUR, 0, 20, 2);
	spend_add(&s, NOON - 30 * HOUR, NOON + 24 * HOUR, 900, 90,
		  0); /* rows need not be in order */
	got = spend_today(&s, NOON + 2 * HOUR);
	assert_string_equal(got.day, "2026-11-21");
	assert_int_equal(got.microusd, 500);
	assert_int_equal(got.tokens, 30);
	assert_int_equal(got.runs, 2);
	assert_int_equal(got.uncosted, 1);
}

TEST(next_day)
{
	struct spend s = {0}, got;

	assert_int_equal(spend_today(&s, NOON).runs, 0);
	spend_add(&s, NOON, NOON + 24 * HOUR, 500, 10, 0);
	got = spend_today(&s, NOON + 24 * HOUR);
	assert_string_equal(got.day, "2026-11-22");
	assert_int_equal(got.microusd, 0);
	assert_int_equal(got.runs, 0);
	spend_add(&s, NOON + 24 * HOUR, NOON + 24 * HOUR, 7, 1, 0);
	assert_int_equal(spend_today(&s, NOON + 24 * HOUR).microusd, 7);
	assert_int_equal(spend_today(&s, NOON).runs, 0); /* the clock was set back */
}

TEST(ends)
{
	struct spend s = {0};

	spend_add(&s, NOON, NOON + 24 * HOUR, INT64_MAX, INT64_MAX, 0);
	spend_add(&s, NOON, NOON + 24 * HOUR, 1, 1, 0);
	spend_add(&s, NOON, NOON + 24 * HOUR, -5, -5, 0);
	assert_int_equal(spend_today(&s, NOON).microusd, INT64_MAX);
	assert_int_equal(spend_today(&s, NOON).tokens, INT64_MAX);
}

/* Runs of a time when the clock was ahead do not hide those of today. */
TEST(clock_ahead)
{
	struct spend s = {0};

	spend_add(&s, NOON, NOON, 5, 1, 0);
	spend_add(&s, NOON + 72 * HOUR, NOON, 100, 1, 0); /* at a start: a row of the catalog */
	assert_int_equal(spend_today(&s, NOON).microusd, 5);
	spend_add(&s, NOON + 72 * HOUR, NOON + 72 * HOUR, 100, 1, 0); /* while it is ahead */
	spend_add(&s, NOON + HOUR, NOON + HOUR, 7, 1, 0);
	assert_int_equal(spend_today(&s, NOON + HOUR).microusd, 7);
}

/* The day is the local one. */
TEST(zone)
{
	struct spend s = {0};

	setenv("TZ", "UTC-13", 1);
	tzset();
	spend_add(&s, NOON, NOON + 24 * HOUR, 5, 1, 0); /* 01:00 of the 22nd */
	assert_string_equal(spend_today(&s, NOON).day, "2026-11-22");
	assert_int_equal(spend_today(&s, NOON).microusd, 5);
}

static int first(void **state)
{
	setenv("TZ", "UTC", 1);
	tzset();
	return 0;
}

UNIT_GROUP(.first = first);

/* The log and the wall clock: midnight, a leap day, the end of summer time, a
 * clock that is set back an hour, also over a restart. Each event is given
 * once, in the order of lsn, whatever is asked, and follows through all of it.
 *
 * The wall clock is this test's (linked in place of the real one). */
#include "unit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <ava.h>

#include "ava/core.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/settings.h"
#include "base/util.h"
#include "os/loop.h"
#include "subagent/logbook.h"
#include "subagent/run.h"

int64_t __real_clock_wall_ms(void);
int64_t __wrap_clock_wall_ms(void);

static _Atomic int64_t now_ms;      /* 0: the real one, for other groups */
_Atomic int64_t test_wall_ahead_ms; /* by so much is that one ahead (test_orders.c) */

int64_t __wrap_clock_wall_ms(void)
{
	return atomic_load(&now_ms) != 0
		       ? atomic_load(&now_ms)
		       : __real_clock_wall_ms() + atomic_load(&test_wall_ahead_ms);
}

#define RESTART "" /* another process goes on from here */
#define EVENTS  32

static const struct story {
	const char *zone;
	const char *points[EVENTS]; /* when something is logged */
	const char *days[8];        /* the logs there are then */
} stories[] = {
	{"UTC0",
	 {"2028-02-28T23:59:59.500Z", "2028-02-29T00:00:00.000Z", "2028-02-29T12:00:00.000Z",
	  "2028-02-29T23:59:59.999Z", "2028-03-01T00:00:00.000Z", "2028-03-01T00:10:00.000Z",
	  "2028-02-29T23:10:00.000Z", "2028-02-29T23:10:00.000Z", RESTART,
	  "2028-02-29T22:00:00.000Z", "2028-03-01T01:00:00.000Z", "2028-03-02T00:00:00.001Z"},
	 {"2028-02-28", "2028-02-29", "2028-03-01", "2028-03-02"}},
	/* 2027 has no such day. */
	{"UTC0",
	 {"2027-02-28T23:59:59.999Z", "2027-03-01T00:00:00.000Z"},
	 {"2027-02-28", "2027-03-01"}},
	/* The hour from 2 to 3 comes twice; midnight is at 22:00 and 23:00 Z. */
	{"CET-1CEST,M3.5.0,M10.5.0/3",
	 {"2028-10-28T21:59:59.999Z", "2028-10-28T22:00:00.000Z", "2028-10-29T00:30:00.000Z",
	  "2028-10-29T01:30:00.000Z", RESTART, "2028-10-29T00:31:00.000Z",
	  "2028-10-29T22:30:00.000Z", "2028-10-29T23:00:00.000Z", "2028-10-29T22:00:00.000Z"},
	 {"2028-10-28", "2028-10-29", "2028-10-30"}},
};

struct world {
	char root[256];
	struct os_loop *loop;
	struct settings settings;
	struct core *core;
	const struct story *story;
	int64_t times[EVENTS];
	uint64_t lsns[EVENTS];
	unsigned n;
};

static void open_core(struct world *w)
{
	struct core_options o = {
		.loop = w->loop, .root = w->root, .settings = &w->settings, .model = "offline"};
	struct ava_error err = {0};

	if (core_open(&w->core, &o, &err) != 0)
		fail_msg("core_open: %s", err.text);
}

static void set_up(struct world *w, const struct story *s)
{
	*w = (struct world){.story = s};
	setenv("TZ", s->zone, 1);
	tzset();
	snprintf(w->root, sizeof(w->root), "%s", unit_tmpdir());
	settings_load(&w->settings, NULL);
	w->settings.disk_free_min_mb = 0;
	w->settings.disk_ballast_mb = 0;
	w->loop = os_loop_new(NULL);
	assert_non_null(w->loop);
	atomic_store(&now_ms, clock_parse_iso(s->points[0], CLOCK_ISO_LEN));
	open_core(w);
}

static void tear_down(struct world *w)
{
	os_loop_free(w->loop);
	unit_rmdir(w->root);
}

static void written(int rv, void *user)
{
	*(int *)user = rv;
}

static void log_one(struct world *w)
{
	struct draft *d = draft_new(&w->core->book);
	struct ava_error err = {0};
	struct buf content;
	int answer = 1;

	assert_non_null(d);
	buf_init(&content, 200);
	buf_addf(&content, "{\"class\":\"test\",\"message\":\"number %u.\"}", w->n);
	core_event(w->core, d, EVENT_Error, "", "", &content);
	assert_int_equal(draft_commit(d, JOURNAL_NOW, written, &answer, &err), 0);
	journal_sync(w->core->journal);
	assert_int_equal(answer, 0);
	w->times[w->n++] = atomic_load(&now_ms);
}

/* ---- asking */

/* The number in the message of an event. */
static unsigned number_of(const struct ava_log_event *e)
{
	const char *at = memmem(e->line, e->len, "number ", 7);

	assert_non_null(at);
	return (unsigned)strtoul(at + 7, NULL, 10);
}

static struct ava_log_query question(const struct world *w)
{
	return (struct ava_log_query){.root = w->root, .everything = 1, .types = "Error"};
}

/* Exactly those of which `wanted` is true, in order. */
static void expect(const struct world *w, const struct ava_log_query *q, const bool *wanted,
		   const char *what)
{
	struct ava_log_event e;
	struct ava_error err = {0};
	struct ava_log *log;
	int rv;

	if (ava_log_open(&log, q, &err) != 0)
		fail_msg("%s: %s", what, err.text);
	for (unsigned i = 0; i < w->n; i++) {
		if (!wanted[i])
			continue;
		rv = ava_log_next(log, &e, &err);
		if (rv != 1 || number_of(&e) != i)
			fail_msg("%s: number %u is not given but %s", what, i,
				 rv == 1 ? e.line : "nothing");
	}
	assert_int_equal(ava_log_next(log, &e, &err), 0);
	ava_log_close(log);
}

static void ask_times(const struct world *w)
{
	char since[CLOCK_ISO_LEN + 1], until[CLOCK_ISO_LEN + 1], what[100];

	for (unsigned a = 0; a < w->n; a++)
		for (unsigned b = 0; b < w->n; b++) {
			struct ava_log_query q = question(w);
			bool wanted[EVENTS];

			clock_iso(w->times[a], since);
			clock_iso(w->times[b], until);
			snprintf(what, sizeof(what), "%s to %s", since, until);
			q.since = since;
			q.until = until;
			for (unsigned i = 0; i < w->n; i++)
				wanted[i] = w->times[i] >= w->times[a] && w->times[i] < w->times[b];
			expect(w, &q, wanted, what);
			q.until = NULL;
			for (unsigned i = 0; i < w->n; i++)
				wanted[i] = w->times[i] >= w->times[a];
			expect(w, &q, wanted, since);
		}
}

static void ask_order(const struct world *w)
{
	struct ava_log_query q = question(w);
	bool wanted[EVENTS];

	memset(wanted, 1, sizeof(wanted));
	expect(w, &q, wanted, "all");
	for (unsigned k = 1; k <= w->n; k++) {
		for (unsigned i = 0; i < w->n; i++)
			wanted[i] = i >= w->n - k;
		q = question(w);
		q.last = k;
		expect(w, &q, wanted, "the last");
		q = question(w);
		q.after = w->lsns[k - 1];
		for (unsigned i = 0; i < w->n; i++)
			wanted[i] = i >= k;
		expect(w, &q, wanted, "after an lsn");
	}
}

/* An event stands in the log of its day, or, when the clock went back, in the
 * newest there was. */
static void check_days(struct world *w)
{
	struct ava_log_query q = question(w);
	struct ava_log_event e;
	struct ava_log *log;
	char day[16], newest[16] = "", path[64];
	unsigned ndays = 0;

	assert_int_equal(ava_log_open(&log, &q, NULL), 0);
	for (unsigned i = 0; i < w->n; i++) {
		assert_int_equal(ava_log_next(log, &e, NULL), 1);
		w->lsns[i] = e.lsn;
		clock_local_date(w->times[i], day);
		if (strcmp(day, newest) > 0) {
			snprintf(newest, sizeof(newest), "%s", day);
			assert_string_equal(newest, w->story->days[ndays++]);
		}
		snprintf(path, sizeof(path), "logs/ava/%s.jsonl", newest);
		assert_string_equal(e.file, path);
	}
	assert_null(w->story->days[ndays]);
	ava_log_close(log);
}

/* ---- following */

static void follow_one(struct ava_log *log, unsigned want)
{
	struct ava_log_event e;
	struct ava_error err = {0};
	int rv = 0;

	for (int i = 0; rv == 0 && i < 1200; i++) {
		rv = ava_log_next(log, &e, &err);
		if (rv == 0)
			ava_log_wait(log, 100);
	}
	if (rv != 1)
		fail_msg("number %u: %s", want, rv == 0 ? "never came" : err.text);
	assert_int_equal(number_of(&e), want);
}

static void on_finding(const struct ava_finding *f, void *user)
{
	fail_msg("%s:%llu: %s", f->path, (unsigned long long)f->line, f->what);
}

static void check_seals(const struct world *w)
{
	struct ava_verify o = {.root = w->root, .finding = on_finding, .threads = 1};
	struct ava_verified r;

	assert_int_equal(ava_log_verify(&o, &r, NULL), 0);
	assert_true(r.seals > 0);
}

static void tell(struct world *w)
{
	struct ava_log_query q = question(w);
	struct ava_log_event e;
	struct ava_log *log;

	q.follow = 1;
	log_one(w);
	assert_int_equal(ava_log_open(&log, &q, NULL), 0);
	follow_one(log, 0);
	for (size_t i = 1; i < EVENTS && w->story->points[i] != NULL; i++) {
		if (strcmp(w->story->points[i], RESTART) == 0) {
			core_close(w->core);
			open_core(w);
			continue;
		}
		atomic_store(&now_ms, clock_parse_iso(w->story->points[i], CLOCK_ISO_LEN));
		log_one(w);
		follow_one(log, w->n - 1);
	}
	assert_int_equal(ava_log_next(log, &e, NULL), 0);
	ava_log_close(log);
}

TEST(stories)
{
	static struct world w;

	for (size_t i = 0; i < ARRAY_LEN(stories); i++) {
		print_message("%s %s\n", stories[i].zone, stories[i].points[0]);
		set_up(&w, &stories[i]);
		tell(&w);
		check_days(&w);
		ask_order(&w);
		ask_times(&w);
		core_close(w.core);
		check_seals(&w);
		ask_times(&w);
		tear_down(&w);
	}
}

/* The budget of the day: a clock that was two days ahead for a while gives nothing anew. */
TEST(budget_of_the_day)
{
	const struct settings set = {.budget_day_cents = 50};
	struct supervisor s = {.settings = &set};
	const int64_t hour = 3600000, start = INT64_C(1795262400000); /* noon */
	static const struct {
		int64_t hours, spent, then;
	} steps[] = {
		{0, 0, 100},     {1, 100, 150},   {49, 0, 30}, {50, 30, 40}, /* ahead */
		{2, 190, 200},                                               /* and right again */
		{-11, 200, 210}, {11, 210, 220},              /* back over midnight: no new day */
		{13, 0, 5},      {12 - 48, 5, 6}, {13, 5, 7}, /* two days back, by mistake */
	};

	setenv("TZ", "UTC0", 1);
	tzset();
	atomic_store(&now_ms, start);
	money_init(&s);
	money_restore(&s);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		atomic_store(&now_ms, start + steps[i].hours * hour);
		assert_int_equal(money_day(&s), steps[i].spent);
		s.money.all[0].spent = steps[i].then;
	}
}

/* Budgets of the day, the week and the month turn at local midnights, those of Mondays, and those
 * of firsts: also where summer time begins and ends, over the end of a year, and with a clock that
 * was wrong for a while. 0: the budget began anew. */
TEST(budgets_of_periods)
{
	const struct settings set = {
		.budget_day_cents = 50, .budget_week_cents = 50, .budget_month_cents = 50};
	static const struct {
		const char *at;
		int day, week, month;
	} steps[] = {
		{"2026-10-24T21:59:59.999Z", 1, 1, 1}, /* Saturday, 23:59 local */
		{"2026-10-24T22:00:00.000Z", 0, 2, 2}, /* Sunday, of 25 hours */
		{"2026-10-25T22:59:59.999Z", 1, 3, 3},
		{"2026-10-25T23:00:00.000Z", 0, 0, 4}, /* Monday */
		{"2026-10-31T22:59:59.000Z", 0, 1, 5},
		{"2026-10-31T23:00:00.000Z", 0, 2, 0}, /* the first, a Sunday */
		{"2026-11-01T23:00:00.000Z", 0, 0, 1}, /* Monday */
		{"2026-12-31T22:59:59.000Z", 0, 0, 0}, /* Thursday */
		{"2026-12-31T23:00:00.000Z", 0, 1, 0}, /* a year's first day, the same week */
		{"2027-01-03T22:59:59.000Z", 0, 2, 1},
		{"2027-01-03T23:00:00.000Z", 0, 0, 2},
		{"2027-01-03T22:30:00.000Z", 1, 1, 3}, /* set back over midnight: nothing anew */
		{"2027-01-03T23:30:00.000Z", 2, 2, 4},
		{"2027-02-03T23:30:00.000Z", 0, 0, 0}, /* a month ahead, by mistake */
		{"2027-01-04T00:30:00.000Z", 4, 4, 6}, /* and right again: all of it counts */
		{"2027-03-28T01:00:00.000Z", 0, 0, 0}, /* summer time begins */
		{"2027-03-28T21:59:59.000Z", 1, 1, 1},
		{"2027-03-28T22:00:00.000Z", 0, 0, 2},
	};
	struct supervisor s = {.settings = &set};

	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	atomic_store(&now_ms, clock_parse_iso(steps[0].at, CLOCK_ISO_LEN));
	money_init(&s);
	money_restore(&s);
	for (unsigned i = 0; i < 3; i++)
		s.money.all[i].spent = 1;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		atomic_store(&now_ms, clock_parse_iso(steps[i].at, CLOCK_ISO_LEN));
		if (money_day(&s) != steps[i].day || s.money.all[1].spent != steps[i].week ||
		    s.money.all[2].spent != steps[i].month)
			fail_msg("%s: %d %d %d", steps[i].at, (int)s.money.all[0].spent,
				 (int)s.money.all[1].spent, (int)s.money.all[2].spent);
		for (unsigned k = 0; k < 3; k++)
			s.money.all[k].spent++;
	}
	setenv("TZ", "UTC0", 1);
	tzset();
}

/* A start takes the sums of periods that still are. */
TEST(periods_after_a_restart)
{
	const struct settings set = {
		.budget_day_cents = 50, .budget_week_cents = 50, .budget_month_cents = 50};
	struct supervisor s = {.settings = &set};
	int64_t sunday = clock_parse_iso("2026-11-29T12:00:00.000Z", CLOCK_ISO_LEN);
	struct spends ended;

	setenv("TZ", "UTC0", 1);
	tzset();
	spends_init(&ended, &set);
	for (int i = 0; i < 3; i++) /* Friday to Sunday */
		spends_add(&ended, &set, "", "", sunday - (2 - i) * 86400000, sunday, 7);
	spends_add(&ended, &set, "", "", sunday - 7 * 86400000, sunday, 100);
	spends_add(&ended, &set, "", "", sunday - 40 * INT64_C(86400000), sunday, 1000);
	assert_int_equal(ended.of[1].microusd, 21);
	assert_int_equal(ended.of[2].microusd, 121);
	for (int days = 0; days < 3; days++) { /* Sunday, Monday, Tuesday the first */
		static const int64_t week[] = {21, 0, 0}, month[] = {121, 121, 0};

		atomic_store(&now_ms, sunday + days * INT64_C(86400000));
		money_init(&s);
		s.money.ended = ended;
		money_restore(&s);
		(void)money_day(&s);
		assert_int_equal(s.money.all[1].spent, week[days]);
		assert_int_equal(s.money.all[2].spent, month[days]);
	}
	/* Ends that a clock which was ahead wrote are no longer this month's. */
	spends_add(&ended, &set, "", "", sunday + 100 * INT64_C(86400000),
		   sunday + 100 * INT64_C(86400000), 5);
	assert_int_equal(ended.of[2].microusd, 5);
	spends_add(&ended, &set, "", "", sunday, sunday, 6);
	assert_int_equal(ended.of[2].microusd, 6);
}

static void lend_nothing(struct budget *b) {}

/* A day that machines share begins with nothing that was lent or spent; its cap stays. */
TEST(budget_of_a_shared_day)
{
	const struct settings set = {.budget_day_cents = 50};
	struct supervisor s = {.settings = &set, .spend = {.microusd = 7}};
	const int64_t day = 86400000, start = INT64_C(1795262400000); /* noon */

	setenv("TZ", "UTC0", 1);
	tzset();
	atomic_store(&now_ms, start);
	money_init(&s);
	s.money.all[0].more = lend_nothing;
	s.money.all[0].cap = s.money.all[0].limit;
	s.spend.newest_ms = start;
	memcpy(s.spend.day, "2026-11-21", sizeof(s.spend.day));
	money_restore(&s);
	assert_string_equal(s.money.of[CLOCK_DAY].begins, s.spend.day);
	assert_int_equal(money_day(&s), 0); /* what was spent before is in the database */
	s.money.all[0].limit = 200;
	s.money.all[0].others = 40;
	s.money.all[0].spent = 60;
	assert_int_equal(money_day(&s), 100);
	atomic_store(&now_ms, start + day);
	assert_int_equal(money_day(&s), 0);
	assert_int_equal(s.money.all[0].limit, 0);
	assert_int_equal(budget_cap(&s.money.all[0]), 500000);
}

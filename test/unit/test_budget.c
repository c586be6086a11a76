/* Shared money: calls that fit go, calls that do not wait in order, and what
 * is spent never passes what was reserved. */
#include "unit.h"

#include <ava.h>

#include "subagent/budget.h"

struct caller {
	struct budget_hold h;
	int went, rv;
};

static void go(struct budget_hold *h, int rv)
{
	struct caller *c = CONTAINER_OF(h, struct caller, h);

	c->went++;
	c->rv = rv;
}

static void begin(struct caller *c, struct budget *group, struct budget *day)
{
	*c = (struct caller){0};
	budget_hold_init(&c->h, go);
	c->h.group = group;
	c->h.shared = day;
	c->h.draws = day != NULL;
}

TEST(fits)
{
	struct budget b;
	struct caller c[2];

	budget_init(&b, 100);
	begin(&c[0], &b, NULL);
	begin(&c[1], &b, NULL);
	assert_int_equal(budget_ask(&c[0].h, 10, 60), 0);
	assert_int_equal(c[0].h.held, 60);
	assert_int_equal(budget_ask(&c[1].h, 10, 40), 0);
	assert_int_equal(b.reserved, 100);
	assert_int_equal(budget_rest(&b), 80); /* they may cost as little as 10 each */
	budget_settle(&c[0].h, 5);
	assert_int_equal(budget_rest(&b), 85);
	budget_settle(&c[1].h, 7);
	assert_int_equal(budget_rest(&b), 88);
	b.spent = 200;
	assert_int_equal(budget_rest(&b), 0);
	b.limit = BUDGET_NO_LIMIT;
	assert_int_equal(budget_rest(&b), INT64_MAX);
	b.spent = 12;
	assert_int_equal(b.reserved, 0);
	assert_int_equal(b.spent, 12);
	assert_int_equal(c[0].went + c[1].went, 0);
}

/* What is left goes to the last one alone; less than its least is refused. */
TEST(lowered_and_refused)
{
	struct budget b;
	struct caller c;

	budget_init(&b, 100);
	begin(&c, &b, NULL);
	b.spent = 70;
	assert_int_equal(budget_ask(&c.h, 30, 60), 0);
	assert_int_equal(c.h.held, 30);
	budget_settle(&c.h, 1);
	assert_int_equal(budget_ask(&c.h, 30, 60), AVA_EBUDGET);
	assert_ptr_equal(c.h.short_of, &b);
	assert_int_equal(c.h.held, 0);
	assert_int_equal(b.reserved, 0);
	assert_int_equal(budget_ask(&c.h, 0, 0), 0); /* a free call costs nothing */
	b.limit = 0;
	assert_int_equal(budget_ask(&c.h, 0, 0), 0);
	assert_int_equal(budget_ask(&c.h, 1, 1), AVA_EBUDGET);
}

/* The oldest goes first, whoever came first; a small call does not pass a large one. */
TEST(oldest_first)
{
	struct budget b;
	struct caller c[4];

	budget_init(&b, 100);
	for (int i = 0; i < 4; i++) {
		begin(&c[i], &b, NULL);
		c[i].h.rank = (uint64_t)i;
	}
	assert_int_equal(budget_ask(&c[0].h, 10, 60), 0);
	assert_int_equal(budget_ask(&c[3].h, 10, 50), BUDGET_WAITS);
	assert_int_equal(budget_ask(&c[2].h, 10, 60), BUDGET_WAITS);
	assert_int_equal(budget_ask(&c[1].h, 1, 30), 0); /* older than those who wait, and fits */
	budget_settle(&c[1].h, 0);
	assert_int_equal(c[2].went + c[3].went, 0);
	budget_settle(&c[0].h, 0);
	assert_int_equal(c[2].went, 1);
	assert_int_equal(c[3].went, 0);
	budget_settle(&c[2].h, 0);
	assert_int_equal(c[3].went, 1);
}

/* Of one age: first come, first served. */
TEST(waits_in_order)
{
	struct budget b;
	struct caller c[4];

	budget_init(&b, 100);
	for (int i = 0; i < 4; i++)
		begin(&c[i], &b, NULL);
	assert_int_equal(budget_ask(&c[0].h, 10, 60), 0);
	assert_int_equal(budget_ask(&c[1].h, 10, 60), BUDGET_WAITS);
	assert_int_equal(budget_ask(&c[2].h, 1, 10), BUDGET_WAITS);
	assert_int_equal(budget_ask(&c[3].h, 1, 10), BUDGET_WAITS);
	budget_settle(&c[0].h, 20); /* 80 left */
	assert_int_equal(c[1].went, 1);
	assert_int_equal(c[1].rv, 0);
	assert_int_equal(c[1].h.held, 60);
	assert_int_equal(c[2].h.held, 10);
	assert_int_equal(c[3].h.held, 10);
	assert_int_equal(b.reserved, 80);
}

/* Who gives up waiting does not hold up those behind. */
TEST(withdrawn)
{
	struct budget b;
	struct caller c[3];

	budget_init(&b, 100);
	for (int i = 0; i < 3; i++)
		begin(&c[i], &b, NULL);
	assert_int_equal(budget_ask(&c[0].h, 10, 60), 0);
	assert_int_equal(budget_ask(&c[1].h, 10, 60), BUDGET_WAITS);
	assert_int_equal(budget_ask(&c[2].h, 10, 30), BUDGET_WAITS);
	budget_settle(&c[1].h, 0);
	assert_int_equal(c[1].went, 0);
	assert_int_equal(c[2].went, 1);
	assert_int_equal(c[2].h.held, 30);
	/* All that others hold is settled as spent: the rest is refused. */
	begin(&c[1], &b, NULL);
	assert_int_equal(budget_ask(&c[1].h, 20, 30), BUDGET_WAITS);
	budget_settle(&c[2].h, 30);
	assert_int_equal(c[1].went, 0);
	budget_settle(&c[0].h, 60);
	assert_int_equal(c[1].went, 1);
	assert_int_equal(c[1].rv, AVA_EBUDGET);
}

/* Two budgets: it moves on to the line of the other one. */
TEST(group_and_day)
{
	struct budget group, other, day;
	struct caller c[3];

	budget_init(&group, 100);
	budget_init(&other, BUDGET_NO_LIMIT);
	budget_init(&day, 150);
	begin(&c[0], &group, &day);
	begin(&c[1], &group, &day);
	begin(&c[2], &other, &day);
	assert_int_equal(budget_ask(&c[0].h, 10, 80), 0);
	assert_int_equal(budget_ask(&c[1].h, 10, 80), BUDGET_WAITS);
	assert_ptr_equal(c[1].h.short_of, &group);
	assert_int_equal(budget_ask(&c[2].h, 10, 70), 0);
	budget_settle(&c[0].h, 10); /* the group has 90 now, the day 70 */
	assert_int_equal(c[1].went, 0);
	assert_ptr_equal(c[1].h.short_of, &day);
	assert_true(list_empty(&group.waiting));
	budget_settle(&c[2].h, 0);
	assert_int_equal(c[1].went, 1);
	assert_int_equal(c[1].h.held, 80);
	assert_int_equal(group.reserved, 80);
	assert_int_equal(day.reserved, 80);
}

static int asked;

static void ask_more(struct budget *b)
{
	asked++;
}

/* Of a budget that machines share, a call waits until nobody has more. */
TEST(lent)
{
	struct budget b;
	struct caller c[3];

	asked = 0;
	budget_init(&b, 0);
	b.more = ask_more;
	b.cap = 100;
	for (int i = 0; i < 3; i++)
		begin(&c[i], &b, NULL);
	assert_int_equal(budget_ask(&c[0].h, 10, 40), BUDGET_WAITS);
	assert_int_equal(asked, 1);
	budget_lent(&b, 20, false); /* others may give something back */
	assert_int_equal(c[0].went, 0);
	budget_lent(&b, 50, false);
	assert_int_equal(c[0].went, 1);
	assert_int_equal(c[0].h.held, 40);
	assert_int_equal(budget_ask(&c[1].h, 10, 10), 0); /* enough is here: nobody is asked */
	assert_int_equal(asked, 2);
	budget_settle(&c[1].h, 10);
	assert_int_equal(budget_ask(&c[1].h, 10, 20), BUDGET_WAITS);
	budget_lent(&b, 50, true); /* nobody has more; but the first call may give some back */
	assert_int_equal(c[1].went, 0);
	asked = 0;
	budget_settle(&c[0].h, 30); /* 10 of 50 are left: is there more now? */
	assert_int_equal(c[1].went, 0);
	assert_int_equal(asked, 1);
	budget_lent(&b, 50, true);
	assert_int_equal(c[1].rv, 0);
	assert_int_equal(c[1].h.held, 10);
	assert_int_equal(budget_ask(&c[2].h, 10, 20), BUDGET_WAITS);
	budget_settle(&c[1].h, 10);
	budget_lent(&b, 50, true);
	assert_int_equal(c[2].rv, AVA_EBUDGET);
	b.others = 30;
	assert_int_equal(budget_cap(&b), 100);
	assert_int_equal(budget_used(&b), 80);
	assert_int_equal(budget_rest(&b), 20);
	assert_int_equal(budget_ask(&c[2].h, 0, 0), 0); /* a free call asks nobody */
}

/* A step by chance: a caller settles up to `cost` thousandths of what it holds, gives up or asks
 * for up to `most`. */
static void step_of(struct caller *c, int n, uint64_t *seed, int64_t cost, int64_t most)
{
	struct caller *at;
	uint64_t chance;

	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	chance = *seed >> 33;
	at = &c[chance % (unsigned)n];
	if (at->h.held > 0)
		budget_settle(&at->h, (int64_t)(chance / 64 % (uint64_t)cost) * at->h.held / 1000);
	else if (!list_empty(&at->h.node) && chance / 64 % 8 == 0)
		budget_settle(&at->h, 0);
	else if (list_empty(&at->h.node))
		(void)budget_ask(&at->h, 5, 5 + (int64_t)(chance / 64 % (uint64_t)most));
}

/* Any order of asking, settling and giving up: never more than the limit while
 * each call costs at most what it holds, and at the end nobody waits. */
TEST(never_over)
{
	enum { N = 50, LIMIT = 1000 };
	struct caller c[N];
	struct budget group, day;
	uint64_t seed = 0;

	for (int round = 0; round < 200; round++) {
		budget_init(&group, LIMIT);
		budget_init(&day, LIMIT + round);
		for (int i = 0; i < N; i++)
			begin(&c[i], i % 5 ? &group : NULL, &day);
		for (int i = 0; i < N; i++)
			c[i].h.rank = (uint64_t)(i * 7 % N);
		for (int step = 0; step < 2000; step++) {
			step_of(c, N, &seed, 1000, 200);
			assert_true(group.spent + group.reserved <= group.limit);
			assert_true(day.spent + day.reserved <= day.limit);
			assert_true(group.reserved > 0 || list_empty(&group.waiting));
			assert_true(day.reserved > 0 || list_empty(&day.waiting));
		}
		for (int i = 0; i < N; i++)
			if (c[i].h.held > 0)
				budget_settle(&c[i].h, c[i].h.held);
		for (int i = 0; i < N; i++)
			if (c[i].h.held > 0) /* came to it meanwhile */
				budget_settle(&c[i].h, 0);
		assert_true(group.spent <= group.limit && day.spent <= day.limit);
	}
}

/* Whether all of a budget's reservations are those of the holds that draw on it: in all or in
 * none. */
static void assert_whole(const struct caller *c, int n, const struct budget *b, unsigned place)
{
	int64_t held = 0;

	for (int i = 0; i < n; i++)
		held += (c[i].h.draws >> place & 1) ? c[i].h.held : 0;
	assert_int_equal(held, b->reserved);
	assert_true(b->spent + b->reserved <= b->limit);
	assert_true(b->reserved > 0 || list_empty(&b->waiting));
}

/* Any number of budgets: of days, folders, tags and a group. */
TEST(many_budgets)
{
	enum { N = 40, BUDGETS = 7 };
	struct budget all[BUDGETS], group;
	struct caller c[N];
	uint64_t seed = 5;

	for (int round = 0; round < 100; round++) {
		budget_init(&group, 700);
		for (int k = 0; k < BUDGETS; k++)
			budget_init(&all[k], 300 + 200 * k + round);
		for (int i = 0; i < N; i++) {
			begin(&c[i], i % 3 ? NULL : &group, all);
			c[i].h.draws = (uint64_t)(i * 37 % 128) | 1;
			c[i].h.rank = (uint64_t)(i * 7 % N);
		}
		for (int step = 0; step < 2000; step++) {
			step_of(c, N, &seed, 100, 100);
			for (unsigned k = 0; k < BUDGETS; k++)
				assert_whole(c, N, &all[k], k);
			assert_true(group.spent + group.reserved <= group.limit);
		}
		for (int i = 0; i < N; i++)
			budget_settle(&c[i].h, 0);
		for (int i = 0; i < N; i++)
			budget_settle(&c[i].h, 0);
		for (unsigned k = 0; k < BUDGETS; k++)
			assert_true(list_empty(&all[k].waiting) && all[k].reserved == 0);
	}
}

/* The last one in the array, and none at all. */
TEST(next_of_a_hold)
{
	struct budget all[SETTINGS_BUDGETS], group;
	struct budget_hold h = {.shared = all};

	assert_null(budget_next(&h, NULL));
	h.draws = UINT64_C(1) << 63 | 1;
	assert_ptr_equal(budget_next(&h, NULL), &all[0]);
	assert_ptr_equal(budget_next(&h, &all[0]), &all[63]);
	assert_null(budget_next(&h, &all[63]));
	h.group = &group;
	assert_ptr_equal(budget_next(&h, NULL), &group);
	assert_ptr_equal(budget_next(&h, &group), &all[0]);
}

TEST(budgets_of_a_run)
{
	static const struct settings_budget rows[] = {
		{"/srv/site", {500, 0, 9000}}, {"/srv", {0, 70, 0}},   {"/srv/site2", {1, 0, 0}},
		{"client=acme", {0, 0, 80}},   {"nightly", {3, 0, 0}}, {"client", {4, 0, 0}},
	};
	const struct settings s = {
		.budget_month_cents = 100, .budgets = rows, .nbudgets = ARRAY_LEN(rows)};
	struct budget_of list[SETTINGS_BUDGETS];
	unsigned n = budgets_list(&s, list);

	/* day, month, site day, site month, srv week, site2 day, acme month, nightly, client */
	assert_int_equal(n, 9);
	assert_int_equal(list[0].microusd, 0);
	assert_int_equal(list[1].period, CLOCK_MONTH);
	assert_int_equal(list[3].microusd, 90000000);
	assert_int_equal(budgets_of_run(list, n, "", ""), 0x3);
	assert_int_equal(budgets_of_run(list, n, "/srv/site", ""), 0x1f);
	assert_int_equal(budgets_of_run(list, n, "/srv/site/web", "x client=acme"), 0x5f);
	assert_int_equal(budgets_of_run(list, n, "/srv/site2", "nightly"), 0xb3);
	assert_int_equal(budgets_of_run(list, n, "/srv/sit", "client=acme2"), 0x13);
	assert_int_equal(budgets_of_run(list, n, "/other", "client=acme client=x"), 0x43);
}

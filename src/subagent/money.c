/* The budgets that runs draw on: of their group; of the day, the week and the month; of folders and
 * tags.
 *
 * The cost of calls is in the run's totals; each settlement counts the difference
 * to the last one, so that no attempt, repeated or cut, is left out or counted
 * twice. A run keeps its reservation until its next settlement: a reply that was
 * delivered, and not yet counted, still holds it.
 *
 * A day is a local date, a week and a month are those that it lies in. At their turn a budget
 * begins anew; a reservation of the time before is counted in the period it is settled in. A clock
 * that is set back over midnight brings no new budget, neither then nor when midnight comes again:
 * the later day goes on, over a restart too. A clock that is set back by more than a day
 * was wrong before.
 *
 * Where machines share the day (cluster/lend.c), what was spent before this process, and what runs
 * of other machines had cost when they came here, is counted in the database already. All other
 * budgets are of this machine alone, and count what came here with all that it has cost. */
#include <assert.h>
#include <ava.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "agent/limit.h"
#include "base/clock.h"
#include "base/settings.h"
#include "base/util.h"
#include "subagent/record.h"
#include "subagent/run.h"

void money_init(struct supervisor *s)
{
	struct budget_of list[SETTINGS_BUDGETS];
	struct budgets *m = &s->money;

	*m = (struct budgets){.n = budgets_list(s->settings, list)};
	list_init(&m->alerts);
	for (unsigned i = 0; i < m->n; i++) {
		struct budget *b = &m->all[i];

		budget_init(b, list[i].microusd > 0 ? list[i].microusd : BUDGET_NO_LIMIT);
		b->of = list[i].of;
		b->period = list[i].period;
		m->limited |= (uint64_t)(b->limit != BUDGET_NO_LIMIT) << i;
	}
	spends_init(&m->ended, s->settings);
}

void money_seen(struct supervisor *s, int64_t wall_ms)
{
	char date[11], begins[11];

	if (wall_ms > clock_wall_ms() + BUDGET_BACK_MS)
		return;
	clock_local_date(wall_ms, date);
	for (enum clock_period p = CLOCK_DAY; p < CLOCK_PERIODS; p++) {
		clock_period(date, p, begins);
		if (strcmp(begins, s->money.of[p].begins) > 0)
			memcpy(s->money.of[p].begins, begins, sizeof(begins));
	}
}

void money_restore(struct supervisor *s)
{
	struct budgets *m = &s->money;

	money_seen(s, clock_wall_ms());
	money_seen(s, s->spend.newest_ms);
	if (strcmp(s->spend.day, m->of[CLOCK_DAY].begins) == 0 && !m->all[0].more)
		m->all[0].spent = sum_to_max(m->all[0].spent, s->spend.microusd);
	for (unsigned i = 1; i < m->n; i++)
		if (strcmp(m->ended.of[i].begins, m->of[m->all[i].period].begins) == 0)
			m->all[i].spent = sum_to_max(m->all[i].spent, m->ended.of[i].microusd);
}

void money_restored(struct run *r)
{
	uint64_t draws = r->call.hold.draws;

	if (r->sup->money.all[0].more)
		r->call.hold.draws &= ~UINT64_C(1);
	money_settle(r);
	r->call.hold.draws = draws;
}

/* The period that begins with the date `begins` is counted; if it was the one before, its spending
 * returns. `keep`: what the present one has spent is of the same time. */
static void change_period(struct budgets *m, enum clock_period p, const char *begins, bool keep)
{
	bool back = strcmp(begins, m->of[p].before) == 0;

	for (unsigned i = 0; i < m->n; i++) {
		struct budget *b = &m->all[i];
		int64_t spent = keep ? b->spent : 0;
		uint8_t told = b->told;

		if (b->period != p)
			continue;
		if (b->more) /* nothing of it is lent to this machine yet */
			b->limit = b->others = 0;
		if (back)
			spent = sum_to_max(spent, b->before);
		b->told = back ? b->told_before : 0;
		b->told_before = told;
		b->before = b->spent;
		b->spent = spent;
	}
	memcpy(m->of[p].before, m->of[p].begins, sizeof(m->of[p].before));
	memcpy(m->of[p].begins, begins, sizeof(m->of[p].begins));
}

/* Changes the day at midnight, or when a clock that was ahead is right again: the spending
 * meanwhile is today's too. So the week and the month. */
static void money_turn(struct supervisor *s)
{
	struct budgets *m = &s->money;
	int64_t now = clock_wall_ms();
	char date[11], begins[11];
	bool behind = false;

	if (m->limited == 0)
		return;
	clock_local_date(now, date);
	if (strcmp(date, m->of[CLOCK_DAY].begins) == 0) {
		m->seen_ms = MAX(m->seen_ms, now);
		return;
	}
	for (enum clock_period p = CLOCK_DAY; p < CLOCK_PERIODS; p++) {
		clock_period(date, p, begins);
		if (!m->of[p].begins[0])
			memcpy(m->of[p].begins, begins, sizeof(begins));
		else if (strcmp(begins, m->of[p].begins) > 0)
			change_period(m, p, begins, false);
		else if (strcmp(begins, m->of[p].begins) < 0 && now + BUDGET_BACK_MS < m->seen_ms)
			change_period(m, p, begins, true);
		else
			behind = behind || now < m->seen_ms;
	}
	m->seen_ms = behind ? m->seen_ms : now;
}

int64_t money_day(struct supervisor *s)
{
	money_turn(s);
	return budget_used(&s->money.all[0]);
}

void money_begin(struct run *r, const struct run_spec *spec)
{
	struct budget_of list[SETTINGS_BUDGETS];
	struct budgets *m = &r->sup->money;

	budget_hold_init(&r->call.hold, NULL);
	r->call.hold.rank = ++r->sup->ranks;
	r->call.hold.shared = m->all;
	if (m->limited) /* a turn of Ava's is of no folder */
		r->call.hold.draws =
			m->limited & budgets_of_run(list, budgets_list(r->sup->settings, list),
						    r->place ? "" : spec->cwd, spec->tags);
}

/* ---- words */

static const struct {
	const char *word, *its, *of_now, *next, *key;
} period_words[CLOCK_PERIODS] = {
	[CLOCK_DAY] = {"day", "today's budget", "today", "tomorrow", "day_cents"},
	[CLOCK_WEEK] = {"week", "this week's budget", "this week", "next week", "week_cents"},
	[CLOCK_MONTH] = {"month", "this month's budget", "this month", "next month", "month_cents"},
};

const char *money_period(const struct budget *b)
{
	return period_words[b->period].word;
}

void money_name(const struct budget *b, char out[MONEY_NAME])
{
	if (b->of[0])
		snprintf(out, MONEY_NAME, "the budget of %.255s %s", b->of,
			 period_words[b->period].of_now);
	else
		snprintf(out, MONEY_NAME, "%s", period_words[b->period].its);
}

void money_waits(const struct run *r, char *out, size_t size)
{
	const struct budget *b = r->call.hold.short_of;

	if (b == r->call.hold.group)
		snprintf(out, size, "Waiting for its group's budget");
	else if (b->of[0])
		snprintf(out, size, "Waiting for the budget of %s", b->of);
	else
		snprintf(out, size, "Waiting for the %s's budget", money_period(b));
}

void money_refused(const struct run *r, char *out, size_t size)
{
	const struct budget *b = r->call.hold.short_of;
	int64_t left = budget_cap(b) - budget_used(b);
	const char *key = b->of ? period_words[b->period].key : "";
	char name[MONEY_NAME], raise[MONEY_NAME];

	if (b == r->call.hold.group) {
		snprintf(out, size,
			 "the group has used %" PRId64 " of its %" PRId64
			 " cents: what is left pays no further call",
			 b->spent / 10000, b->limit / 10000);
		return;
	}
	money_name(b, name);
	if (b->of[0])
		snprintf(raise, sizeof(raise), "its %s in budget.%s of config.yaml", key,
			 b->of[0] == '/' ? "folders" : "tags");
	else
		snprintf(raise, sizeof(raise), "budget.%s (AVA_BUDGET_%s_CENTS)", key,
			 b->period == CLOCK_DAY    ? "DAY"
			 : b->period == CLOCK_WEEK ? "WEEK"
						   : "MONTH");
	snprintf(out, size,
		 "%s of %" PRId64 " cents%s has %" PRId64
		 " left, which pays no further call: raise %s or go on %s",
		 name, budget_cap(b) / 10000, b->more ? " for all machines" : "",
		 left > 0 ? left / 10000 : 0, raise, period_words[b->period].next);
}

int64_t money_lowered(const struct run *r, int64_t max_output)
{
	const struct budget_hold *h = &r->call.hold;

	return h->held < h->most ? MIN(max_output, limit_output_for(&r->agent, h->held))
				 : max_output;
}

int money_ask(struct run *r, int64_t max_output)
{
	const struct agent_price *p = &r->agent.spec->price;
	int64_t least = limit_call_cost(&r->agent, MIN(max_output, (int64_t)LIMIT_LEAST_OUTPUT));
	int64_t most = limit_call_cost(&r->agent, max_output);

	/* A model of unknown price, or a free one whose service reported a cost, draws at least 1:
	 * so no call is made once a budget is spent. */
	if (most == 0 && (p->input < 0 || p->output < 0 || r->agent.at.totals.cost_microusd > 0 ||
			  (r->sup->bills_free && r->sup->bills_free == r->spec->model->provider)))
		least = most = 1;
	money_settle(r);
	return budget_ask(&r->call.hold, least, most);
}

void money_stop(struct run *r)
{
	if (r->sup->closing) /* in a stop no other run is to go on */
		list_del(&r->call.hold.node);
	else if (!list_empty(&r->call.hold.node))
		money_settle(r);
}

void money_settle(struct run *r)
{
	int64_t total = r->agent.at.totals.cost_microusd;

	if (total < r->call.counted_microusd) /* a new turn of a conversation counts from 0 */
		r->call.counted_microusd = 0;
	if (total > r->call.counted_microusd && limit_call_cost(&r->agent, LIMIT_LEAST_OUTPUT) == 0)
		r->sup->bills_free = r->spec->model->provider;
	money_turn(r->sup); /* before other runs get the money given back */
	budget_settle(&r->call.hold, total - r->call.counted_microusd);
	r->call.counted_microusd = total;
	/* Without a spec: its spawn was taken back. */
	if (r->sup->on_budget && r->call.hold.draws && r->spec)
		r->sup->on_budget(r, r->sup->session_user);
}

static void share_near(struct agent_shared *out, enum agent_share share, int64_t used,
		       int64_t limit)
{
	if (!shared_near(used, limit))
		return;
	out->near |= 1u << share;
	out->of[share].used = used;
	out->of[share].limit = limit;
}

static enum agent_share budget_share(const struct budget *b)
{
	static const enum agent_share all[CLOCK_PERIODS] = {
		[CLOCK_DAY] = SHARE_DAY_COST,
		[CLOCK_WEEK] = SHARE_WEEK_COST,
		[CLOCK_MONTH] = SHARE_MONTH_COST,
	};

	return b->of[0] == '/' ? SHARE_FOLDER_COST : b->of[0] ? SHARE_TAG_COST : all[b->period];
}

/* The model is told of one budget of several of folders, or of tags: that which is nearest its
 * end. */
static void budget_near(struct agent_shared *out, const struct budget *b)
{
	enum agent_share share = budget_share(b);
	int64_t used = budget_used(b), cap = budget_cap(b), rest = cap - used;

	if ((out->near & 1u << share) && out->of[share].limit - out->of[share].used <= rest)
		return;
	share_near(out, share, used, cap);
	if (shared_near(used, cap) && b->of[0]) {
		out->of[share].whose = b->of;
		out->of[share].period = money_period(b);
	}
}

void money_shared(struct agent *a, struct agent_shared *out)
{
	struct run *r = a->world;
	const struct budget *group = r->call.hold.group;
	struct draft *d;

	if (r->place)
		return;
	money_turn(r->sup);
	if (r->group)
		share_near(out, SHARE_GROUP_TIME, group_used_ms(r->group), r->group->time_ms);
	BUDGET_EACH (&r->call.hold, b) {
		if (b->limit == BUDGET_NO_LIMIT)
			continue;
		if (b == group)
			share_near(out, SHARE_GROUP_COST, b->spent, b->limit);
		else
			budget_near(out, b);
		out->last |= limit_can_submit(a) && limit_last_of(a, budget_rest(b));
	}
	out->near &= ~(unsigned)a->at.shares;
	d = out->near || out->last ? commit_draft(r) : NULL;
	if (d)
		record_shared(d, r, out);
}

/* ---- Shared money.
 *
 * A call that fits with all it may cost goes. If it does not fit while others hold
 * reservations, it waits until one is settled. If no other call holds anything, it
 * takes the money left, or is refused if that is less than its least. In each
 * budget the oldest run goes first, and no younger run passes a waiting one, however
 * cheap its call. No call waits for a budget in which nothing is reserved: each
 * settlement or withdrawal wakes the first in line there. In a budget that machines share it waits
 * until it is told that nobody has more, and then as in any other. Free calls never wait. Sums
 * stop at their ends; nothing else can fail. */

void budget_init(struct budget *b, int64_t limit)
{
	*b = (struct budget){.limit = limit};
	list_init(&b->waiting);
}

struct budget *budget_next(const struct budget_hold *h, const struct budget *b)
{
	uint64_t left = h->draws;

	if (!b && h->group)
		return h->group;
	if (b && b != h->group)
		left &= UINT64_MAX << 1 << (b - h->shared);
	return left ? &h->shared[__builtin_ctzll(left)] : NULL;
}

void budget_hold_init(struct budget_hold *h, void (*go)(struct budget_hold *h, int rv))
{
	*h = (struct budget_hold){.go = go};
	list_init(&h->node);
}

static int64_t budget_less(int64_t limit, int64_t spent, int64_t pending)
{
	int64_t used = sum_to_max(spent, pending);

	if (limit == BUDGET_NO_LIMIT)
		return INT64_MAX;
	return used >= limit ? 0 : limit - used;
}

static int64_t budget_left(const struct budget *b)
{
	return budget_less(b->limit, b->spent, b->reserved);
}

int64_t budget_cap(const struct budget *b)
{
	return b->more ? b->cap : b->limit;
}

int64_t budget_used(const struct budget *b)
{
	return b->more ? sum_to_max(b->spent, b->others) : b->spent;
}

int64_t budget_rest(const struct budget *b)
{
	return budget_less(budget_cap(b), budget_used(b), b->sure);
}

/* Does an older run wait for `b`? */
static bool behind_others(const struct budget_hold *h, struct budget *b)
{
	const struct budget_hold *first = LIST_FIRST(&b->waiting, struct budget_hold, node);

	return first && first != h && first->rank <= h->rank;
}

static void wait_in(struct budget *b, struct budget_hold *h)
{
	struct list *at = b->waiting.prev;

	while (at != &b->waiting && LIST_ENTRY(at, struct budget_hold, node)->rank > h->rank)
		at = at->prev;
	list_insert(at->next, &h->node);
}

/* The answer as things are now; on BUDGET_WAITS short_of says for which budget. */
static int budget_look(struct budget_hold *h)
{
	int64_t amount = h->most;

	if (h->most == 0)
		return 0;
	BUDGET_EACH (h, b) {
		if (budget_left(b) >= h->most && !behind_others(h, b))
			continue;
		h->short_of = b;
		if (b->more && !b->dry) {
			b->more(b);
			return BUDGET_WAITS;
		}
		if (b->reserved > 0)
			return BUDGET_WAITS;
		amount = MIN(amount, budget_left(b));
		if (amount < h->least)
			return AVA_EBUDGET;
	}
	h->held = amount;
	h->sure = MIN(h->least, amount);
	BUDGET_EACH (h, b) {
		b->reserved = sum_to_max(b->reserved, amount);
		b->sure = sum_to_max(b->sure, h->sure);
	}
	return 0;
}

int budget_ask(struct budget_hold *h, int64_t least, int64_t most)
{
	int rv;

	assert(h->held == 0 && list_empty(&h->node));
	h->least = least;
	h->most = most;
	rv = budget_look(h);
	if (rv == BUDGET_WAITS)
		wait_in(h->short_of, h);
	return rv;
}

/* The first in line goes, is refused, or waits for another budget now; false: it
 * stays, or there is none. */
static bool first_moves(struct budget *b)
{
	struct budget_hold *h = LIST_FIRST(&b->waiting, struct budget_hold, node);
	int rv = h ? budget_look(h) : BUDGET_WAITS;

	if (!h || (rv == BUDGET_WAITS && h->short_of == b))
		return false;
	list_del(&h->node);
	if (rv == BUDGET_WAITS)
		wait_in(h->short_of, h);
	else
		h->go(h, rv);
	return true;
}

void budget_lent(struct budget *b, int64_t limit, bool dry)
{
	b->limit = limit;
	b->dry = dry;
	while (first_moves(b))
		;
	b->dry = false;
}

void budget_settle(struct budget_hold *h, int64_t cost)
{
	bool waited = !list_empty(&h->node);
	int64_t held = h->held, sure = h->sure;

	list_del(&h->node);
	h->held = h->sure = 0;
	BUDGET_EACH (h, b) {
		b->spent = sum_to_max(b->spent, cost);
		b->reserved -= MIN(held, b->reserved);
		b->sure -= MIN(sure, b->sure);
	}
	if (held > 0 || waited)
		BUDGET_EACH (h, b)
			while (first_moves(b))
				;
}

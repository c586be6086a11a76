/* The budgets that runs draw on: of their group and of the day.
 *
 * The cost of calls is in the run's totals; each settlement counts the difference
 * to the last one, so that no attempt, repeated or cut, is left out or counted
 * twice. A run keeps its reservation until its next settlement: a reply that was
 * delivered, and not yet counted, still holds it.
 *
 * A day is a local date. At its turn the budget begins anew; a reservation of
 * the day before is counted on the day it is settled. A clock that is set back over
 * midnight brings no new budget, neither then nor when midnight comes again: the
 * later day goes on, over a restart too. A clock that is set back by more than a day
 * was wrong before.
 *
 * Where machines share the day (cluster/lend.c), what was spent before this process, and what runs
 * of other machines had cost when they came here, is counted in the database already. */
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
	int64_t cents = s->settings->budget_day_cents;

	budget_init(&s->day, cents > 0 ? cents * 10000 : BUDGET_NO_LIMIT);
}

void money_seen(struct supervisor *s, int64_t wall_ms)
{
	char date[sizeof(s->day_date)];

	if (wall_ms > clock_wall_ms() + BUDGET_BACK_MS)
		return;
	clock_local_date(wall_ms, date);
	if (strcmp(date, s->day_date) > 0)
		memcpy(s->day_date, date, sizeof(date));
}

void money_restore(struct supervisor *s)
{
	money_seen(s, clock_wall_ms());
	money_seen(s, s->spend.newest_ms);
	if (strcmp(s->spend.day, s->day_date) == 0 && !s->day.more)
		s->day.spent += s->spend.microusd;
}

void money_restored(struct run *r)
{
	struct budget *day = r->call.hold.of[BUDGET_DAY];

	if (day->more)
		r->call.hold.of[BUDGET_DAY] = NULL;
	money_settle(r);
	r->call.hold.of[BUDGET_DAY] = day;
}

/* `date` becomes the counted day; if it was the counted day before, its spending returns. */
static void change_day(struct supervisor *s, const char *date, int64_t spent)
{
	if (s->day.more) /* nothing of it is lent to this machine yet */
		s->day.limit = s->day.others = 0;
	if (strcmp(date, s->before_date) == 0)
		spent = sum_to_max(spent, s->before_microusd);
	memcpy(s->before_date, s->day_date, sizeof(s->before_date));
	s->before_microusd = s->day.spent;
	memcpy(s->day_date, date, sizeof(s->day_date));
	s->day.spent = spent;
}

/* Changes the day at midnight, or when a clock that was ahead is right again: the spending
 * meanwhile is today's too. */
static void money_turn_day(struct supervisor *s)
{
	int64_t now = clock_wall_ms();
	char date[sizeof(s->day_date)];

	if (s->day.limit == BUDGET_NO_LIMIT)
		return;
	clock_local_date(now, date);
	if (!s->day_date[0])
		memcpy(s->day_date, date, sizeof(date));
	if (strcmp(date, s->day_date) > 0)
		change_day(s, date, 0);
	else if (strcmp(date, s->day_date) < 0 && now + BUDGET_BACK_MS < s->day_seen_ms)
		change_day(s, date, s->day.spent);
	else if (now < s->day_seen_ms)
		return;
	s->day_seen_ms = now;
}

int64_t money_day(struct supervisor *s)
{
	money_turn_day(s);
	return budget_used(&s->day);
}

void money_refused(const struct run *r, char *out, size_t size)
{
	const struct budget *b = r->call.hold.of[r->call.hold.short_of];
	int64_t left = budget_cap(b) - budget_used(b);

	if (r->call.hold.short_of == BUDGET_GROUP)
		snprintf(out, size,
			 "the group has used %" PRId64 " of its %" PRId64
			 " cents: what is left pays no further call",
			 b->spent / 10000, b->limit / 10000);
	else
		snprintf(out, size,
			 "today's budget of %" PRId64 " cents%s has %" PRId64
			 " left, which pays no further call: raise budget.day_cents "
			 "(AVA_BUDGET_DAY_CENTS) or go on tomorrow",
			 budget_cap(b) / 10000, b->more ? " for all machines" : "",
			 left > 0 ? left / 10000 : 0);
}

void money_begin(struct run *r)
{
	budget_hold_init(&r->call.hold, NULL);
	r->call.hold.of[BUDGET_DAY] = &r->sup->day;
	r->call.hold.rank = ++r->sup->ranks;
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
	money_turn_day(r->sup); /* before other runs get the money given back */
	budget_settle(&r->call.hold, total - r->call.counted_microusd);
	r->call.counted_microusd = total;
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

static bool budget_limited(const struct budget *b)
{
	return b && b->limit != BUDGET_NO_LIMIT;
}

void money_shared(struct agent *a, struct agent_shared *out)
{
	struct run *r = a->world;
	const struct budget *group = r->call.hold.of[BUDGET_GROUP],
			    *day = r->call.hold.of[BUDGET_DAY];
	struct draft *d;

	if (r->place)
		return;
	money_turn_day(r->sup);
	if (budget_limited(group))
		share_near(out, SHARE_GROUP_COST, group->spent, group->limit);
	if (r->group)
		share_near(out, SHARE_GROUP_TIME, group_used_ms(r->group), r->group->time_ms);
	if (budget_limited(day))
		share_near(out, SHARE_DAY_COST, budget_used(day), budget_cap(day));
	out->near &= ~(unsigned)a->at.shares;
	for (unsigned i = 0; i < BUDGET_NSCOPES; i++)
		out->last |= budget_limited(r->call.hold.of[i]) && limit_can_submit(a) &&
			     limit_last_of(a, budget_rest(r->call.hold.of[i]));
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
	for (unsigned i = 0; i < BUDGET_NSCOPES; i++) {
		struct budget *b = h->of[i];

		if (!b || (budget_left(b) >= h->most && !behind_others(h, b)))
			continue;
		h->short_of = (enum budget_scope)i;
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
	for (unsigned i = 0; i < BUDGET_NSCOPES; i++) {
		struct budget *b = h->of[i];

		if (!b)
			continue;
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
		wait_in(h->of[h->short_of], h);
	return rv;
}

/* The first in line goes, is refused, or waits for another budget now; false: it
 * stays, or there is none. */
static bool first_moves(struct budget *b)
{
	struct budget_hold *h = LIST_FIRST(&b->waiting, struct budget_hold, node);
	int rv = h ? budget_look(h) : BUDGET_WAITS;

	if (!h || (rv == BUDGET_WAITS && h->of[h->short_of] == b))
		return false;
	list_del(&h->node);
	if (rv == BUDGET_WAITS)
		wait_in(h->of[h->short_of], h);
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
	for (unsigned i = 0; i < BUDGET_NSCOPES; i++) {
		struct budget *b = h->of[i];

		if (!b)
			continue;
		b->spent = sum_to_max(b->spent, cost);
		b->reserved -= MIN(held, b->reserved);
		b->sure -= MIN(sure, b->sure);
	}
	for (unsigned i = 0; (held > 0 || waited) && i < BUDGET_NSCOPES; i++)
		while (h->of[i] && first_moves(h->of[i]))
			;
}

/* ---- today's spending */

void spend_add(struct spend *s, int64_t ended_ms, int64_t now_ms, int64_t microusd, int64_t tokens,
	       int64_t uncosted_calls)
{
	char day[sizeof(s->day)];
	int order;

	if (s->newest_ms > now_ms + BUDGET_BACK_MS)
		*s = (struct spend){0};
	if (ended_ms > now_ms + BUDGET_BACK_MS)
		return;
	clock_local_date(ended_ms, day);
	order = strcmp(day, s->day);
	if (order < 0)
		return;
	if (order > 0) {
		*s = (struct spend){0};
		memcpy(s->day, day, sizeof(day));
	}
	s->newest_ms = ended_ms > s->newest_ms ? ended_ms : s->newest_ms;
	s->microusd = sum_to_max(s->microusd, MAX(microusd, 0));
	s->tokens = sum_to_max(s->tokens, MAX(tokens, 0));
	s->runs++;
	s->uncosted += uncosted_calls > 0;
}

struct spend spend_today(const struct spend *s, int64_t now_ms)
{
	struct spend out = {0};

	clock_local_date(now_ms, out.day);
	return strcmp(out.day, s->day) == 0 ? *s : out;
}

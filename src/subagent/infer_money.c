/* The budgets that a model call draws on besides its run's own limit.
 *
 * Before each attempt the most it can cost is reserved: its input at the
 * dearest price and all of its output (agent/limit.h). What came of it is in
 * the run's totals; the difference to what was counted before is counted at
 * each settlement, so that no attempt, repeated or cut, is left out or counted
 * twice. A run keeps what it waits for while nothing is asked in its name: a
 * reply that was delivered, and not yet counted, still holds its reservation.
 *
 * A day is a local date. At its turn the budget begins anew; what was reserved
 * the day before is counted on the day it is settled. A clock that is set back over
 * midnight brings no new budget, neither then nor when midnight comes again: the
 * later day goes on, over a restart too. */
#include "subagent/infer_money.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/limit.h"
#include "agent/shared.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/settings.h"
#include "subagent/group.h"
#include "subagent/infer.h"
#include "subagent/record.h"
#include "subagent/supervisor.h"
#include "subagent/world.h"

static int64_t day_limit(const struct supervisor *s)
{
	int64_t cents = s->settings->budget_day_cents;

	return cents > 0 ? cents * 10000 : BUDGET_NO_LIMIT;
}

void infer_money_init(struct supervisor *s)
{
	budget_init(&s->day, day_limit(s));
}

/* A clock that was set back by more than that shows another time, not yesterday. */
#define BACK_MS 86400000

void infer_money_seen(struct supervisor *s, int64_t wall_ms)
{
	char date[sizeof(s->day_date)];

	if (wall_ms > clock_wall_ms() + BACK_MS)
		return;
	clock_local_date(wall_ms, date);
	if (strcmp(date, s->day_date) > 0)
		memcpy(s->day_date, date, sizeof(date));
}

void infer_money_restore(struct supervisor *s)
{
	infer_money_seen(s, clock_wall_ms());
	infer_money_seen(s, s->spend.newest_ms);
	if (strcmp(s->spend.day, s->day_date) == 0)
		s->day.spent += s->spend.microusd;
}

static void turn_day(struct supervisor *s)
{
	char date[sizeof(s->day_date)];

	if (s->day.limit == BUDGET_NO_LIMIT)
		return;
	clock_local_date(clock_wall_ms(), date);
	if (s->day_date[0] && strcmp(date, s->day_date) > 0)
		s->day.spent = 0;
	if (strcmp(date, s->day_date) > 0)
		memcpy(s->day_date, date, sizeof(date));
}

int64_t infer_money_day(struct supervisor *s)
{
	turn_day(s);
	return s->day.spent;
}

static void refused_text(const struct run *r, char *out, size_t size)
{
	const struct budget *b = r->call.hold.of[r->call.hold.short_of];
	int64_t left = b->limit - b->spent;

	if (r->call.hold.short_of == BUDGET_GROUP)
		snprintf(out, size,
			 "the group has used %" PRId64 " of its %" PRId64
			 " cents: what is left pays no further call",
			 b->spent / 10000, b->limit / 10000);
	else
		snprintf(out, size,
			 "today's budget of %" PRId64 " cents has %" PRId64
			 " left, which pays no further call: raise budget.day_cents "
			 "(AVA_BUDGET_DAY_CENTS) or go on tomorrow",
			 b->limit / 10000, left > 0 ? left / 10000 : 0);
}

/* What may be spent is known: so is how much it may write. */
static void lower(struct infer_job *j)
{
	struct run *r = j->run;

	if (r->call.hold.held < r->call.hold.most)
		j->call.max_output =
			MIN(j->call.max_output, limit_output_for(&r->agent, r->call.hold.held));
}

static void money_came(struct budget_hold *h, int rv)
{
	struct run *r = CONTAINER_OF(h, struct run, call.hold);
	struct infer_job *j = r->call.job;
	char text[200];

	if (rv == 0) {
		lower(j);
		rv = infer_go(j);
		if (rv != 0)
			infer_fail(j, rv, err_word(rv), ava_strerror(rv));
		return;
	}
	refused_text(r, text, sizeof(text));
	infer_fail(j, AVA_EBUDGET, err_word(AVA_EBUDGET), text);
}

void infer_money_begin(struct run *r)
{
	budget_hold_init(&r->call.hold, money_came);
	r->call.hold.of[BUDGET_DAY] = &r->sup->day;
	r->call.hold.rank = ++r->sup->ranks;
}

int infer_money_ask(struct infer_job *j)
{
	struct run *r = j->run;
	int64_t least = MIN(j->call.max_output, (int64_t)LIMIT_LEAST_OUTPUT);
	int rv;

	infer_money_settle(r);
	turn_day(r->sup);
	rv = budget_ask(&r->call.hold, limit_call_cost(&r->agent, least),
			limit_call_cost(&r->agent, j->call.max_output));
	if (rv == 0)
		lower(j);
	else if (rv == AVA_EBUDGET)
		refused_text(r, r->agent.reply_error, sizeof(r->agent.reply_error));
	return rv;
}

void infer_money_stop(struct run *r)
{
	if (r->sup->closing) /* nobody goes on in its place */
		list_del(&r->call.hold.node);
	else if (!list_empty(&r->call.hold.node))
		infer_money_settle(r);
}

void infer_money_settle(struct run *r)
{
	int64_t total = r->agent.totals.cost_microusd;

	if (total < r->call.counted_microusd) /* another turn of a conversation: counted anew */
		r->call.counted_microusd = 0;
	budget_settle(&r->call.hold, total - r->call.counted_microusd);
	r->call.counted_microusd = total;
}

static void look(struct agent_shared *out, enum agent_share share, int64_t used, int64_t limit)
{
	if (!shared_near(used, limit))
		return;
	out->near |= 1u << share;
	out->of[share].used = used;
	out->of[share].limit = limit;
}

static bool limited(const struct budget *b)
{
	return b && b->limit != BUDGET_NO_LIMIT;
}

void infer_money_shared(struct agent *a, struct agent_shared *out)
{
	struct run *r = a->world;
	const struct budget *group = r->call.hold.of[BUDGET_GROUP],
			    *day = r->call.hold.of[BUDGET_DAY];
	struct draft *d;

	if (r->place)
		return;
	turn_day(r->sup);
	if (limited(group))
		look(out, SHARE_GROUP_COST, group->spent, group->limit);
	if (r->group)
		look(out, SHARE_GROUP_TIME, group_used_ms(r->group), r->group->time_ms);
	if (limited(day))
		look(out, SHARE_DAY_COST, day->spent, day->limit);
	out->near &= ~(unsigned)a->shares;
	for (unsigned i = 0; i < BUDGET_NSCOPES; i++)
		out->last |= limited(r->call.hold.of[i]) && agent_can_submit(a) &&
			     limit_last_of(a, budget_rest(r->call.hold.of[i]));
	d = out->near || out->last ? world_draft(r) : NULL;
	if (d)
		record_shared(d, r, out);
}

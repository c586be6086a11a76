/* Shared money.
 *
 * A call is one of three: it fits with all it may cost and goes; it does not,
 * while others hold reservations, and waits until one is settled; it does not,
 * and nobody else holds anything: it takes what is left, or is refused when
 * that is less than its least. In each budget the oldest run goes first, and one
 * that waits is passed by none that is younger, however cheap its call. Nobody
 * waits for a budget in which nothing is reserved: what is settled or withdrawn
 * wakes whoever is first there. Free calls never wait. Sums stop at their ends;
 * nothing else can fail. */
#include "subagent/budget.h"

#include <ava.h>
#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"

static int64_t budget_add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

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

static int64_t budget_left(const struct budget *b)
{
	int64_t used = budget_add(b->spent, b->reserved);

	if (b->limit == BUDGET_NO_LIMIT)
		return INT64_MAX;
	return used >= b->limit ? 0 : b->limit - used;
}

int64_t budget_rest(const struct budget *b)
{
	int64_t used = budget_add(b->spent, b->sure);

	if (b->limit == BUDGET_NO_LIMIT)
		return INT64_MAX;
	return used >= b->limit ? 0 : b->limit - used;
}

static void budget_reserve(struct budget_hold *h, int64_t amount)
{
	h->held = amount;
	h->sure = MIN(h->least, amount);
	for (unsigned i = 0; i < BUDGET_NSCOPES; i++) {
		struct budget *b = h->of[i];

		if (!b)
			continue;
		b->reserved = budget_add(b->reserved, amount);
		b->sure = budget_add(b->sure, h->sure);
	}
}

/* Does an older one wait there? */
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

/* The answer as things are now; short_of says where it waits. */
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
		if (b->reserved > 0)
			return BUDGET_WAITS;
		amount = MIN(amount, budget_left(b));
		if (amount < h->least)
			return AVA_EBUDGET;
	}
	budget_reserve(h, amount);
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

/* Whoever is first in line goes, is refused, or waits for another budget now;
 * false: nobody moved. */
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
		b->spent = budget_add(b->spent, cost);
		b->reserved -= MIN(held, b->reserved);
		b->sure -= MIN(sure, b->sure);
	}
	for (unsigned i = 0; (held > 0 || waited) && i < BUDGET_NSCOPES; i++)
		while (h->of[i] && first_moves(h->of[i]))
			;
}

/* ---- what was spent today */

static int64_t spend_sum(int64_t a, int64_t b)
{
	int64_t out;

	if (b <= 0)
		return a;
	return __builtin_add_overflow(a, b, &out) ? INT64_MAX : out;
}

void spend_add(struct spend *s, int64_t ended_ms, int64_t microusd, int64_t tokens,
	       int64_t uncosted_calls)
{
	char day[sizeof(s->day)];
	int order;

	clock_local_date(ended_ms, day);
	order = strcmp(day, s->day);
	if (order < 0)
		return;
	if (order > 0) {
		*s = (struct spend){0};
		memcpy(s->day, day, sizeof(day));
	}
	s->newest_ms = ended_ms > s->newest_ms ? ended_ms : s->newest_ms;
	s->microusd = spend_sum(s->microusd, microusd);
	s->tokens = spend_sum(s->tokens, tokens);
	s->runs++;
	s->uncosted += uncosted_calls > 0;
}

struct spend spend_today(const struct spend *s, int64_t now_ms)
{
	struct spend out = {0};

	clock_local_date(now_ms, out.day);
	return strcmp(out.day, s->day) == 0 ? *s : out;
}

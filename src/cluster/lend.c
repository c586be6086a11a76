/* The budget of a day, which machines share. The database has its cap and what was lent of it; each
 * machine borrows slices and spends them as money.c does on one machine. With each beat it gives
 * back what it does not use, and gets to know what the others have used.
 *
 * A loan's row says what its machine has spent and reserved. The flush that carries a call's
 * InferStart says it too, so that no request leaves before it is in the database: whoever ends a
 * machine gives back what it never used, and the rest counts as spent. A run that is carried on,
 * anywhere, has been counted.
 *
 * A call for which too little is left waits while other machines have something unused or
 * reserved, and is asked for with each beat; then it takes what is left, or is refused. A machine
 * that does not get enough for its first call holds nothing unused, so that two of them do not
 * wait for each other. What can fail: the database, and the next beat asks again. */
#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cluster/member.h"
#include "subagent/run.h"

#define LEND_SLICES 16 /* of the cap, so much is borrowed beyond what the first call needs */

struct lend_ask {
	struct cluster *c;
	struct lend_told told;
	int64_t most; /* with it, the first call has all that it may cost */
};

static const char lend_scope_sql[] = CLUSTER_ME_SQL
	" insert into ava_budget (scope, cap, lent)"
	"  select $4, least($5, (select min(cap) from ava_loan where scope = $4 and node <> $1)), 0"
	"  from me on conflict (scope) do update set cap = excluded.cap";

/* A statement of a connection that was given up may still arrive, behind newer ones: what a machine
 * tells is numbered, and a lower number than that of the row changes nothing. */
#define LEND_NEWER_SQL " told = excluded.told where ava_loan.told < excluded.told"

/* $5 is kept in any case; $7, or $6 while others hold nothing, is the least that is of use, and $8
 * the most that is wanted. The statement before it has locked the row of the scope. */
static const char lend_sql[] = CLUSTER_ME_SQL
	","
	" o as (select coalesce(sum(micro - used), 0)::bigint as unused,"
	"   coalesce(sum(greatest(micro - used, 0) + held), 0)::bigint as held"
	"  from ava_loan where scope = $4 and node <> $1),"
	" w as (select o.*, coalesce(l.micro, 0) as micro,"
	"   coalesce(l.micro, 0) + greatest(b.cap - b.lent, 0) as most"
	"  from me, o, ava_budget b left join ava_loan l on l.scope = b.scope and l.node = $1"
	"  where b.scope = $4),"
	" g as (select w.*, greatest($5, case when most < case when held > 0 then $7 else $6 end"
	"   then 0 else least($8, most) end) as fresh from w),"
	" l as (insert into ava_loan (scope, node, cap, micro, used, held, told)"
	"  select $4, $1, $9, fresh, $5, $10, $11 from g on conflict (scope, node) do update set"
	"  cap = excluded.cap, micro = excluded.micro, used = excluded.used,"
	"  held = excluded.held," LEND_NEWER_SQL " returning 1)"
	" update ava_budget b set lent = b.lent + g.fresh - g.micro from g, l where b.scope = $4"
	" returning g.fresh, b.cap, b.lent - g.fresh - g.unused, g.held";

static const char lend_used_sql[] =
	CLUSTER_ME_SQL " insert into ava_loan (scope, node, cap, micro, used, held, told)"
		       "  select $4, $1, $5, 0, $6, $7, $8 from me"
		       "  on conflict (scope, node) do update set used = excluded.used,"
		       "  held = excluded.held," LEND_NEWER_SQL;

/* ---- what this machine has used, told to the database */

static bool lend_is_scope(const struct cluster *c, const char *scope)
{
	return strncmp(scope, "day:", 4) == 0 &&
	       strcmp(scope + 4, c->sup->money.of[CLOCK_DAY].begins) == 0;
}

static int64_t lend_use(const struct budget *b)
{
	return sum_to_max(b->spent, b->reserved);
}

/* Notes what goes into a batch now: until its answer nothing is known. */
static void lend_tell(struct cluster *c, struct lend_told *told)
{
	const struct budget *b = c->lend.of;

	*told = (struct lend_told){
		.used = lend_use(b), .held = b->reserved, .number = ++c->lend.told.number};
	snprintf(told->scope, sizeof(told->scope), "day:%s", c->sup->money.of[CLOCK_DAY].begins);
	c->lend.known = false;
}

/* The number grows with the epoch, too: one that the database has of an earlier epoch holds nothing
 * up. */
static int64_t lend_number(const struct cluster *c, const struct lend_told *told)
{
	return c->epoch << CLUSTER_TICK_BITS | (int64_t)told->number;
}

/* The database has it, unless something newer is on its way. */
static void lend_know(struct cluster *c, const struct lend_told *told)
{
	if (told->number != c->lend.told.number)
		return;
	c->lend.told = *told;
	c->lend.known = true;
}

bool lend_owes(const struct cluster *c)
{
	int64_t used = c->lend.of ? lend_use(c->lend.of) : 0;

	if (!c->lend.known || !lend_is_scope(c, c->lend.told.scope))
		return used > 0;
	return used > c->lend.told.used;
}

void lend_add_used(struct pg_batch *batch, struct cluster *c, struct lend_told *told)
{
	const struct budget *b = c->lend.of;

	if (!b || (c->lend.known && lend_is_scope(c, c->lend.told.scope) &&
		   lend_use(b) == c->lend.told.used && b->reserved == c->lend.told.held))
		return;
	lend_tell(c, told);
	cluster_add_me(batch, c, lend_used_sql);
	pg_batch_text(batch, told->scope);
	pg_batch_int(batch, c->lend.cap);
	pg_batch_int(batch, told->used);
	pg_batch_int(batch, told->held);
	pg_batch_int(batch, lend_number(c, told));
}

void lend_flushed(struct cluster *c, const struct lend_told *told, uint64_t ticket)
{
	c->lend.passed = ticket;
	if (told->number > 0)
		lend_know(c, told);
}

/* ---- asking */

static void lend_answered(const struct pg_answer *a, void *user)
{
	struct lend_ask *ask = user;
	struct cluster *c = ask->c;
	struct budget *b = c->lend.of;
	int64_t fresh = 0, held = 0;

	c->lend.asking = false;
	if (a->rv != 0 && a->rv != AVA_EUNKNOWN && a->rv != AVA_ECANCELED && a->rv != AVA_EBUSY) {
		cluster_say(c, "the day's budget could not be asked for: %s", a->err->text);
	} else if (a->rv == 0 && pg_rows(&a->results[1]) == 0) {
		c->beat.renew_due = true; /* as in flush_answered */
		cluster_tend(c);
	} else if (a->rv == 0 && !lend_is_scope(c, ask->told.scope)) {
		os_defer(c->loop, &c->lend.task); /* another day has begun */
	} else if (a->rv == 0) {
		(void)pg_int(&a->results[1], 0, 0, &fresh);
		(void)pg_int(&a->results[1], 0, 1, &b->cap);
		(void)pg_int(&a->results[1], 0, 2, &b->others);
		(void)pg_int(&a->results[1], 0, 3, &held);
		lend_know(c, &ask->told);
		c->lend.lacking = fresh < ask->most && held > 0;
		budget_lent(b, fresh, fresh < ask->most && held == 0);
	}
	free(ask);
}

static void lend_now(struct cluster *c)
{
	struct budget *b = c->lend.of;
	const struct budget_hold *first;
	struct lend_ask *ask;
	struct pg_batch *batch;
	int64_t least;

	if (!b || c->lend.asking || c->closing || !cluster_has_lease(c))
		return;
	ask = calloc(1, sizeof(*ask));
	if (!ask)
		return;          /* the next beat asks */
	(void)money_day(c->sup); /* a day may have ended */
	ask->c = c;
	lend_tell(c, &ask->told);
	least = ask->most = ask->told.used;
	first = LIST_FIRST(&b->waiting, struct budget_hold, node);
	if (first) {
		ask->most += first->most;
		least += b->reserved > 0 ? first->most : first->least;
	}
	batch = pg_batch_new();
	cluster_add_me(batch, c, lend_scope_sql);
	pg_batch_text(batch, ask->told.scope);
	pg_batch_int(batch, c->lend.cap);
	cluster_add_me(batch, c, lend_sql);
	pg_batch_text(batch, ask->told.scope);
	pg_batch_int(batch, ask->told.used);
	pg_batch_int(batch, least);
	pg_batch_int(batch, ask->most);
	pg_batch_int(batch, ask->most + (first ? c->lend.cap / LEND_SLICES : 0));
	pg_batch_int(batch, c->lend.cap);
	pg_batch_int(batch, ask->told.held);
	pg_batch_int(batch, lend_number(c, &ask->told));
	cluster_add_me(batch, c, /* of the day before */
		       CLUSTER_ME_SQL "," LEND_SETTLE_SQL(
			       "node = $1 and scope <> $4 and exists (select 1 from me)"));
	pg_batch_text(batch, ask->told.scope);
	c->lend.asking = pg_send(c->pg, batch, lend_answered, ask, NULL) == 0;
	if (c->lend.asking)
		b->limit = ask->told.used; /* what is beyond may be given back */
	else
		free(ask);
}

static void lend_due(struct os_task *t)
{
	lend_now(CONTAINER_OF(t, struct cluster, lend.task));
}

static void lend_more(struct budget *b)
{
	struct cluster *c = b->lender;

	if (!c->lend.lacking)
		os_defer(c->loop, &c->lend.task);
}

void lend_open(struct cluster *c)
{
	struct budget *b = &c->sup->money.all[0];

	os_task_init(&c->lend.task, lend_due);
	if (b->limit == BUDGET_NO_LIMIT)
		return;
	c->lend.of = b;
	c->lend.cap = b->cap = b->limit;
	b->limit = 0;
	b->more = lend_more;
	b->lender = c;
}

void lend_beat(struct cluster *c)
{
	c->lend.lacking = false;
	lend_now(c);
}

void lend_close(struct cluster *c)
{
	os_defer_cancel(c->loop, &c->lend.task);
	if (!c->lend.of)
		return;
	c->lend.of->more = NULL;
}

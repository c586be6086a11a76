/* Money that several model calls share: of a group of runs, of a day.
 *
 * Before a call the most it can cost is reserved in every budget it draws on;
 * after it what it cost is counted and the rest given back. Calls that do not
 * fit wait while others hold something back, the oldest run first: where the
 * money is short, some runs come to their end and not all to nothing. So what is
 * spent passes a limit by no more than an estimate of one input was wrong. Amounts
 * are micro-USD. Loop thread only. */
#ifndef SUBAGENT_MONEY_H
#define SUBAGENT_MONEY_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct agent;
struct agent_shared;
struct run;
struct supervisor;

/* ---- a budget; pure: no clock, no disk */

#define BUDGET_NO_LIMIT INT64_MAX
#define BUDGET_WAITS    1

struct budget {
	int64_t limit; /* 0: free calls only */
	int64_t spent, reserved;
	int64_t sure;        /* of what is reserved: the least that these calls cost */
	struct list waiting; /* budget_hold.node, by rank */
};

enum budget_scope { BUDGET_GROUP, BUDGET_DAY, BUDGET_NSCOPES };

/* One call at a time. */
struct budget_hold {
	struct list node;                  /* in `waiting` of the budget that is short */
	struct budget *of[BUDGET_NSCOPES]; /* NULL: none; they outlive the hold */
	uint64_t rank;                     /* age of the run; the lowest goes first */
	int64_t least, most;               /* asked for */
	int64_t held, sure;                /* reserved in each of `of` */
	enum budget_scope short_of;        /* which one made it wait, or be refused */
	/* It waited: rv 0, `held` may be used, or AVA_EBUDGET. */
	void (*go)(struct budget_hold *h, int rv);
};

void budget_init(struct budget *b, int64_t limit);
void budget_hold_init(struct budget_hold *h, void (*go)(struct budget_hold *h, int rv));

/* Reserve `most`; or, when nobody else holds anything back, what there is,
 * down to `least` (h->held says how much). 0, BUDGET_WAITS (-> go), or
 * AVA_EBUDGET. Nothing is held or waited for when it is called. */
int budget_ask(struct budget_hold *h, int64_t least, int64_t most);
/* Count `cost` and give back what is held, or stop waiting. Whoever fits now
 * is called (go). */
void budget_settle(struct budget_hold *h, int64_t cost);
/* What is left when the calls under way have cost their least. */
int64_t budget_rest(const struct budget *b);

/* ---- what runs draw on: the budgets of their group and of the day */

void money_init(struct supervisor *s);
/* After a restart: a run that goes on was at work then, by the clock on the wall. */
void money_seen(struct supervisor *s, int64_t wall_ms);
/* And what the runs that ended today have cost, whoever counts it. */
void money_restore(struct supervisor *s);
/* What counts against the budget of the day that it is now, micro-USD. */
int64_t money_day(struct supervisor *s);
void money_begin(struct run *r); /* of a new run */

/* Reserve a call: 0; BUDGET_WAITS: hold.go follows; AVA_EBUDGET: money_refused says why. */
int money_ask(struct run *r, int64_t max_output);
/* What the call may write with what it was given. */
int64_t money_lowered(const struct run *r, int64_t max_output);
void money_refused(const struct run *r, char *out, size_t size);
/* Nobody waits for the call any more. What it holds is settled when it is charged. */
void money_stop(struct run *r);
/* The run's totals have changed, or no call is under way any more. */
void money_settle(struct run *r);
/* agent_io.shared. */
void money_shared(struct agent *a, struct agent_shared *out);

#endif

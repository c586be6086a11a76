/* Money that several model calls share: of a group of runs, of a day.
 *
 * Before a call the most it can cost is reserved in every budget it draws on;
 * after it what it cost is counted and the rest given back. Calls that do not
 * fit wait while others hold something back, the oldest run first: where the
 * money is short, some runs come to their end and not all to nothing. So what is
 * spent passes a limit by no more than an estimate of one input was wrong. Amounts
 * are micro-USD. Pure: no clock, no disk. */
#ifndef SUBAGENT_BUDGET_H
#define SUBAGENT_BUDGET_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

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

/* ---- what was spent today: the runs that have ended since midnight, local time. Told
 * at start for the whole catalog and at each end, so that asking costs nothing however
 * many runs there are. Pure; the time is given. */

struct spend {
	char day[11];      /* "2026-11-21"; "": none yet */
	int64_t newest_ms; /* end of the newest run of that day; 0: none yet */
	int64_t microusd, tokens;
	uint64_t runs, uncosted; /* of them with calls of unknown price */
};

/* A clock that shows less than before by more than this was wrong before. */
#define BUDGET_BACK_MS 86400000

/* A run that ended at `ended_ms` (wall). One of an earlier day than the newest
 * seen does not count, nor does one whose end is yet to come: the clock was ahead. */
void spend_add(struct spend *s, int64_t ended_ms, int64_t now_ms, int64_t microusd, int64_t tokens,
	       int64_t uncosted_calls);
/* Of the day `now_ms` is in. */
struct spend spend_today(const struct spend *s, int64_t now_ms);

#endif

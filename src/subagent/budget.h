/* Money that several model calls share: of a group of runs, of a day.
 *
 * Before a call the most it can cost is reserved in every budget it draws on;
 * after it its real cost is counted and the rest given back. Calls that do not
 * fit wait while others hold something back, the oldest run first: where the
 * money is short, some runs come to their end and not all to nothing. So spending
 * passes a limit by no more than the error of one estimated input. A budget that machines share
 * has as its limit what was lent to this one; a call that does not fit waits for more of it.
 * Amounts are micro-USD. Pure: no clock, no disk. */
#ifndef SUBAGENT_BUDGET_H
#define SUBAGENT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

#define BUDGET_NO_LIMIT INT64_MAX
#define BUDGET_WAITS    1

struct budget {
	int64_t limit; /* 0: free calls only */
	int64_t spent, reserved;
	int64_t sure;        /* the least that calls with a reservation will cost */
	struct list waiting; /* budget_hold.node, by rank */

	/* Asks for more, for the first in `waiting`, behind this turn of the loop; budget_lent
	 * answers. NULL: no other machine draws on the budget, and the rest is unused. */
	void (*more)(struct budget *b);
	void *lender;
	int64_t cap;    /* of all machines together */
	int64_t others; /* of `cap`: spent before, or spent and reserved by other machines */
	bool dry;       /* within budget_lent: there is no more */
};

enum budget_scope { BUDGET_GROUP, BUDGET_DAY, BUDGET_NSCOPES };

/* The reservation of a run, for one call at a time. */
struct budget_hold {
	struct list node;                  /* in `waiting` of the budget that is short */
	struct budget *of[BUDGET_NSCOPES]; /* of group and day; they outlive the hold; NULL: none */
	uint64_t rank;                     /* age of the run; the lowest goes first */
	int64_t least, most;               /* the amounts given to budget_ask */
	int64_t held, sure;         /* in each of `of`: reserved; the least that the call costs */
	enum budget_scope short_of; /* the budget that made the hold wait, or refused it */
	/* Called when the wait is over: rv 0, `held` may be used, or AVA_EBUDGET. */
	void (*go)(struct budget_hold *h, int rv);
};

void budget_init(struct budget *b, int64_t limit);
void budget_hold_init(struct budget_hold *h, void (*go)(struct budget_hold *h, int rv));

/* Reserve `most`; or, if no other call has a reservation, as much as is left,
 * down to `least` (h->held says how much). 0, BUDGET_WAITS (-> go), or
 * AVA_EBUDGET. `h` must neither hold nor wait. */
int budget_ask(struct budget_hold *h, int64_t least, int64_t most);
/* Count `cost` and give back the reservation, or stop waiting. `go` of each hold
 * that fits now is called. */
void budget_settle(struct budget_hold *h, int64_t cost);
/* So much is lent now. `dry`: nobody has more, so that who waits is served as if `limit` were all.
 * `go` is called as by budget_settle. */
void budget_lent(struct budget *b, int64_t limit, bool dry);
/* The money left, of all machines, when the calls under way have cost their least. */
int64_t budget_rest(const struct budget *b);
/* What all machines may spend, and have spent. */
int64_t budget_cap(const struct budget *b);
int64_t budget_used(const struct budget *b);

/* ---- today's spending: the runs that have ended since midnight, local time. Added up
 * from the whole catalog at the start and at each end, so that asking costs nothing
 * however many runs there are. Pure; the time is given. */

struct spend {
	char day[11];      /* "2026-11-21"; "": none yet */
	int64_t newest_ms; /* end of the newest run of that day; 0: none yet */
	int64_t microusd, tokens;
	uint64_t runs, uncosted; /* all runs; runs with calls of unknown price */
};

/* A clock set back by more than this was wrong before. */
#define BUDGET_BACK_MS 86400000

/* Add a run that ended at `ended_ms` (wall). A run of an earlier day than the newest one
 * does not count, nor one whose end is yet to come: the clock was ahead. */
void spend_add(struct spend *s, int64_t ended_ms, int64_t now_ms, int64_t microusd, int64_t tokens,
	       int64_t uncosted_calls);
/* The spending of the day that `now_ms` is in. */
struct spend spend_today(const struct spend *s, int64_t now_ms);

#endif

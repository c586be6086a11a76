/* Money that several model calls share: of a group of runs, of a day, week or month, of a folder,
 * of a tag.
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

#include "base/clock.h"
#include "base/list.h"
#include "base/settings.h"

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

	/* Its period (struct budgets). */
	const char *of; /* folder or tag, *borrowed* from the settings; "": all calls */
	enum clock_period period;
	int64_t before; /* spent in the period counted before */
	uint8_t told,
		told_before; /* percent of the last alert in the period, and of the one before */
};

/* The reservation of a run, for one call at a time. */
struct budget_hold {
	struct list node;        /* in `waiting` of the budget that is short */
	struct budget *group;    /* NULL: none; outlives the hold, as `shared` */
	struct budget *shared;   /* an array */
	uint64_t draws;          /* set of places in `shared`: the hold draws on them, too */
	uint64_t rank;           /* age of the run; the lowest goes first */
	int64_t least, most;     /* the amounts given to budget_ask */
	int64_t held, sure;      /* in each budget: reserved; the least that the call costs */
	struct budget *short_of; /* the budget that made the hold wait, or refused it */
	/* Called when the wait is over: rv 0, `held` may be used, or AVA_EBUDGET. */
	void (*go)(struct budget_hold *h, int rv);
};

void budget_init(struct budget *b, int64_t limit);
void budget_hold_init(struct budget_hold *h, void (*go)(struct budget_hold *h, int rv));

/* The budget behind `b` of those that `h` draws on; NULL: none. */
struct budget *budget_next(const struct budget_hold *h, const struct budget *b);
#define BUDGET_EACH(h, b) for (struct budget *b = budget_next(h, NULL); b; b = budget_next(h, b))

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

/* ---- the spending of runs that have ended, added up from the whole catalog at the start and at
 * each end, so that asking costs nothing however many runs there are. Pure; the time is given. */

struct spend {             /* since midnight, local time */
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

/* ---- the budgets of periods, in one order: the day's, which is there without a limit, too; those
 * of the week and the month, of folders and of tags that have one. */

struct budget_of {
	const char *of; /* *borrowed* from the settings; "": all calls */
	enum clock_period period;
	int64_t microusd;
};
/* Writes them to `out`; returns how many. */
unsigned budgets_list(const struct settings *s, struct budget_of out[SETTINGS_BUDGETS]);
/* Writes the set of those that a run in the folder `cwd` ("": none), with `tags`, draws on; a
 * folder has all that lies below it, also by way of a link. */
uint64_t budgets_of_run(const struct budget_of *list, unsigned n, const char *cwd,
			const char *tags);

/* Costs of the runs that ended in each budget's newest period, but for the first's, the
 * day's, which is in struct spend. */
struct spends {
	uint64_t names; /* hash over what the budgets are of: other ones are counted anew */
	struct {
		char begins[11]; /* first day of the period; "": none yet */
		int64_t microusd;
	} of[SETTINGS_BUDGETS];
};
void spends_init(struct spends *s, const struct settings *settings);
/* As spend_add. */
void spends_add(struct spends *s, const struct settings *settings, const char *cwd,
		const char *tags, int64_t ended_ms, int64_t now_ms, int64_t microusd);

#endif

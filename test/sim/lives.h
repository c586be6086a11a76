/* A world of several runs, drawn from a seed, in which the runtime (ava/core.h and
 * all below it: the real supervisor, machine, carry-on, budgets, groups) dies at
 * drawn moments and is started on what is durable, until every run has ended. Clocks
 * jump meanwhile, people answer, say something, cancel, or do not. */
#ifndef SIM_LIVES_H
#define SIM_LIVES_H

#include <ava.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define LIVES_RUNS   8
#define LIVES_STEERS 32

/* What a run's model does. */
enum lives_kind {
	LIVES_ACTS,     /* calls of a tool that may not be repeated */
	LIVES_CHAINS,   /* more of them, one at a time */
	LIVES_READS,    /* of one that may */
	LIVES_ASKS,     /* a person */
	LIVES_MIXES,    /* all of these in one turn */
	LIVES_TALKS,    /* words instead of a result */
	LIVES_READS_ON, /* more than its window holds */
	LIVES_KINDS,
};

/* From that seed on people pause runs; from that one there are also standing orders (standing.h),
 * checks, budgets of weeks, months and tags, and clocks that jump by days. */
#define LIVES_PAUSES   UINT64_C(50000)
#define LIVES_STANDING UINT64_C(70000)
#define LIVES_ORDERS   3
#define LIVES_OF_ORDER 100 /* the number that runs of the first one have in their task */

struct lives_run {
	enum lives_kind kind;
	bool grouped, approval; /* its tool waits for a person's yes */
	bool tight;             /* its own limits may end it */
	bool ask_limit;
	unsigned after; /* a set of runs of its group, by their numbers in `runs` */
	bool standing;  /* runs of an order */
	bool tagged;    /* it draws on the budget of a tag */
	int check;      /* how often a failed check goes back; -1: it has none */
	int64_t cost_microusd, time_ms, tokens, iterations;
	/* what became of it */
	bool asked, told; /* for; that it runs */
	char id[32];
	bool cancelled; /* that was acknowledged */
	bool steered;
};

struct lives_order {
	struct lives_run run; /* what its runs are */
	char id[24];
	const char *when, *zone, *overlap, *missed;
	int64_t day_cents, month_cents, count, lasts_ms; /* 0: none, of the first three */
	bool asked, told;
	/* A run beside the calendar: the number of its request, how often clocks had jumped then,
	 * and what it was answered with. */
	unsigned starts, start_jumps;
	char started[24];
};

struct lives_steer {
	char run[32], request[16];
	char id[32]; /* "" it was not acknowledged as queued */
	bool told;   /* what became of it */
};

struct lives_start { /* of a tool */
	char run[32], call[16];
	bool repeatable;
	int n;
};

struct lives {
	uint64_t seed;
	unsigned nruns, ngrouped; /* the last ones are of one group */
	struct lives_run runs[LIVES_RUNS];
	int64_t group_cost, group_time, day_cents; /* 0: none */
	int64_t week_cents, month_cents, tag_cents[3];
	struct lives_order orders[LIVES_ORDERS];
	unsigned norders;
	bool edits; /* the instructions of their folder change */
	bool chain, share, group_told;
	bool rough; /* the service fails so often that a run may give up */
	struct lives_steer steers[LIVES_STEERS];
	unsigned nsteers;
	struct lives_start *starts;
	size_t nstarts, cap_starts;
	struct memdisk *disk;
	/* counted */
	unsigned lives, kills, stops, jumps, looks, steps;
	unsigned days_back; /* times that a clock went back over midnight */
	int64_t wall_most;
	unsigned far_back; /* by more than a day: then it was wrong before */
	struct buf trace;  /* what happened, for people */
	char broken[400];  /* "" or what is wrong */
};

struct os_loop;
void lives_set_up(const char *folder); /* a real one, for scripts and to work in */
/* From the first spawn to the last end. *l is overwritten. */
void lives_play(struct lives *l, uint64_t seed);
void lives_end(struct lives *l);
struct lives_run *lives_run_of(struct lives *l, int number); /* NULL: nobody asked for it */
void lives_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool lives_wrong(struct lives *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

struct lives_seen {                                            /* counted by the judge */
	long cut, interrupted, replies, events, edits, parked; /* whose time came */
	long status[AVA_NSTATUSES];
	long checks, fired, missed, busy, short_of, asks; /* of orders, but for the first */
	long paused;       /* pauses that began at the end of a turn, or over a restart */
	unsigned replayed; /* runs that were executed again, to their end */
};
/* Reads the logs as people would; l->broken says what is wrong with them. */
void lives_judge(struct lives *l, struct lives_seen *seen);

#endif

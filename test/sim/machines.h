/* Worlds of several machines that share their runs through one database (doc/CLUSTER.md), each
 * drawn from a seed. A machine is the runtime as it is (ava/core.h and all below it, src/cluster
 * too) on a disk and a clock of its own; the database is pgmap.h behind pgwire.h. Machines die,
 * freeze, are cut off, stop, leave and come back; the database is away, or takes over from a
 * standby that lacks the newest commits. In the end all of that heals, and every run has to end. */
#ifndef SIM_MACHINES_H
#define SIM_MACHINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define MACHINES_MAX  4
#define MACHINES_RUNS 8
#define MACHINES_PEOPLE                                                                            \
	UINT64_C(1000000) /* from that seed on people move runs, and talk to them                  \
			   */

struct core;

struct machines_run {
	int plan;
	bool here;      /* it is bound to a folder, and so to its machine */
	unsigned asked; /* machine that is asked for it */
	unsigned anew;  /* times that it was asked for as another one */
	bool waits;     /* for an answer */
	bool told;      /* that it runs */
	int lost_by;    /* machine that has what the database lost of its end; -1: none */
	bool excused;   /* that machine started anew before it could send it again */
	bool late;      /* a machine started anew between its end there and in the database */
	char id[32];
};

struct machines_start { /* of a tool that may not be repeated */
	char run[32], call[16];
	unsigned machine;
	int n;
};

struct machines {
	uint64_t seed;
	unsigned nmachines, nruns;
	struct machines_run runs[MACHINES_RUNS];
	struct machines_start *starts;
	size_t nstarts, cap_starts;
	bool async; /* the database may go back */
	bool lossy; /* and a machine left with what it had */
	bool healed, over;
	bool people;                 /* machines_people.h */
	int64_t heals_at;            /* ms */
	struct {                     /* of a day, on all machines; cents 0: no limit */
		int64_t cents, held; /* held: for the call that leaves */
		int64_t spent;       /* on calls, as far as it was held for them */
	} budget;
	/* counted */
	unsigned births, kills, stops, fences, freezes, cuts, aways, leaves, lost_disks, freed;
	unsigned twice; /* effects that went out twice, across a database that went back */
	unsigned moved, interrupted, events;
	unsigned wanted, words; /* runs that came to who wanted them; words that runs heard */
	struct buf trace;       /* what happened, for people */
	uint64_t hash;          /* of it */
	char broken[400];       /* "" or what is wrong */
};

void machines_set_up(const char *folder); /* a real one, to work in */
/* From the first start to the last end, judged. *m is overwritten. */
void machines_play(struct machines *m, uint64_t seed);
void machines_end(struct machines *m);
void machines_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void machines_wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A machine that answers; NULL: it is down, or frozen. What is done there. */
struct core *machines_core(unsigned machine);
void machines_within(unsigned machine, void (*run)(struct core *core, void *user), void *user);
/* Does one of the disks have the run's result? */
bool machines_have_result(const char *run);
void machines_verify(void); /* wrong: a log that is not as it was sealed */

/* machines_judge.c: reads what the database has in the end. */
void machines_judge(struct machines *m);

#endif

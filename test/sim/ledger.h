/* The journal as its callers know it (journal/journal.h), on a disk in memory: a
 * commit is there whole or not, in order, and answered after that; until then a
 * crash leaves the first few of those that wait. A failed sync answers "unknown",
 * a full disk "full", and then it certainly did not happen.
 *
 * That the real journal keeps this contract is tried call by call in test/crash. */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

struct journal;
struct memdisk;

struct ledger_temper {
	int64_t usual_ms;  /* a commit takes at most that long, mostly */
	int slow, failing; /* thousandths */
};
extern struct ledger_temper ledger_temper;

/* The journal's part of a process; in worlds of several, each has one. */
struct ledger {
	struct memdisk *disk;
	struct journal *open_one;
	uint64_t durable_lsn, ncommits;
	bool orderly; /* the last stop was */
};
void ledger_use(struct ledger *l); /* NULL: that of the only process */

/* A new world; the next process of it. The disk is behind `sys` already. */
void ledger_open(struct memdisk *d);
void ledger_go_on(struct memdisk *d);
/* The process is gone, and this is left (the caller's): later commits change nothing
 * of it. */
struct memdisk *ledger_left(void);
uint64_t ledger_commits(void); /* of this world, that are there */

#endif

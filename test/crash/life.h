/* A journal lives a story on a disk in memory while a watcher takes what a
 * crash would find: a snapshot before every call that changes or syncs
 * something, with how much was answered and asked for at that moment. */
#ifndef CRASH_LIFE_H
#define CRASH_LIFE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "memdisk.h"
#include "story.h"

struct point {
	struct memdisk *d; /* as a kill would leave it */
	int acked;         /* commits 0 … acked - 1 were answered */
	int submitted;     /* commits after these were not asked for */
};

struct life {
	struct story story;
	uint64_t segment_bytes;
	int from;     /* commits before it are on the disk already */
	long only_at; /* -1: a point at every call, else at this one and then end */
	struct point *points;
	size_t npoints;
	_Atomic int acked, submitted;
	_Atomic bool over; /* the one point was taken */
	long calls;
};

/* Opens the journal on `d` and lives it to the end of the story, or a little
 * beyond the one point. False: something failed, as `wrong` says. */
bool life_live(struct life *l, struct memdisk *d, char wrong[400]);
void life_fini(struct life *l);

enum cut {
	CUT_KILL, /* nothing is lost */
	CUT_NONE, /* all that was not synced */
	CUT_ALL,  /* power is lost, but all got through */
	CUT_ORDERED,
	CUT_UNORDERED,
	CUT_TORN,
	CUTS,
};
extern const char *const cut_names[CUTS];
/* The disk after it, a copy; the same seed cuts the same way. */
struct memdisk *cut_disk(const struct memdisk *d, enum cut cut, uint64_t seed);
/* Numbers below `below` from a seed that moves on. */
uint32_t cut_pick(uint32_t below, void *seed);

/* Recovers on `d` and asks the oracle; then once more, which must change
 * nothing. `snaps` (may be NULL) gets a point before every call of the first
 * recovery. False: something is wrong; `a` says what. */
bool recover_well(const struct life *l, struct memdisk *d, int acked, int submitted,
		  struct life *snaps, struct story_answer *a);

#endif

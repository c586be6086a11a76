/* A story: commits of every kind, drawn from a seed, and what must be on the
 * disk when some of them have happened. The tests that kill, cut and fail tell
 * the same kind of story and ask the same question at the end.
 *
 * Each commit appends a line to the log of a day; that line says which commits
 * are there, and all other files must then be as these commits make them. */
#ifndef CRASH_STORY_H
#define CRASH_STORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "journal/journal.h"
#include "memdisk.h"

#define STORY_MAX   400 /* commits */
#define STORY_OPS   4
#define STORY_FILES 160

struct story {
	uint64_t seed;
	int commits;
};

struct story_step {
	struct journal_op ops[STORY_OPS];
	unsigned n;
	char paths[STORY_OPS][40], ids[STORY_OPS][16];
	struct buf text[STORY_OPS];
	enum journal_level level;
	bool wait;       /* for all answers so far */
	bool checkpoint; /* behind it */
};

void story_step_init(struct story_step *st);
void story_step_fini(struct story_step *st);
/* Commit `i`, always the same for the same story. */
void story_step(const struct story *s, int i, struct story_step *st);

enum story_fate {
	STORY_OPEN, /* not asked for */
	STORY_DONE, /* answered 0: must be there */
	STORY_MAY,  /* not answered, or "unknown" */
	STORY_NOT,  /* refused: must not be there */
};

struct story_answer {
	char wrong[400];    /* the first thing, in one sentence */
	int there;          /* commits on the disk */
	int lost, invented; /* commits */
};
/* Is something wrong with the disk? With `in_order` the commits on it must be
 * the first ones, without a gap. */
bool story_wrong(const struct story *s, struct memdisk *d, const unsigned char fate[STORY_MAX],
		 bool in_order, struct story_answer *a);

/* Every file outside of wal/ with its content, in order of names, as a hash. */
uint64_t story_picture(struct memdisk *d);

#endif

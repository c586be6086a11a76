/* Removing what a program in the sandbox wrote when it filled the disk, which also holds the logs
 * and all other work. */
#ifndef TOOL_TRIM_H
#define TOOL_TRIM_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/sys.h"

struct buf;

struct trim {
	/* Folders that the program may write to; `copy` (copy.h) may be NULL. */
	const char *work, *copy;
	uint64_t least_mb;     /* MB that must stay free, and some inodes; 0: no limit */
	bool keeps;            /* files from before the program stay, though it changed them */
	bool due;              /* the disk was filled once */
	int fd;                /* descriptor of `work` */
	struct sys_room had;   /* free room at the beginning */
	struct timespec since; /* the beginning, on the clock of files */
};

/* Begin before the program starts; all is *borrowed* until trim_end. */
void trim_begin(struct trim *t, const char *work, const char *copy, uint64_t least_mb);
void trim_end(struct trim *t);
/* Is too little free, and much less than at the beginning? */
bool trim_due(struct trim *t);
/* Remove what the program wrote until there is room, the largest and newest first; best when all of
 * its processes have ended. `said` lists the removed files; false: none. Blocks; any thread. */
bool trim_run(const struct trim *t, struct buf *said);

#endif

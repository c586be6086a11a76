/* What a program in the sandbox wrote is taken back when it filled the disk: the logs and all
 * other work are on it too. */
#ifndef TOOL_TRIM_H
#define TOOL_TRIM_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/sys.h"

struct buf;

struct trim {
	const char *work, *copy; /* the folders that it may write to; copy (copy.h): may be NULL */
	uint64_t least_mb;       /* that must stay free, and inodes; 0: nothing is looked at */
	bool keeps;              /* what was there before stays, though it was changed */
	bool due;                /* it was once */
	int fd;                  /* of `work` */
	struct sys_room had;     /* when it began */
	struct timespec since;   /* that, on the clock of files */
};

/* Before it starts; all is *borrowed* until trim_end. */
void trim_begin(struct trim *t, const char *work, const char *copy, uint64_t least_mb);
void trim_end(struct trim *t);
/* Too little is free, and much more was when it began. */
bool trim_due(struct trim *t);
/* Remove what it wrote until there is room, the largest and newest first; best when it has ended,
 * with all of its processes. What was removed is said; false: nothing was. Blocks; any thread. */
bool trim_run(const struct trim *t, struct buf *said);

#endif

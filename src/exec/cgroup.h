/* A control group (version 2) for each sandboxed command, where this process may make groups with
 * limits: they hold for all of its processes together, under any user, and a kill reaches all.
 * Otherwise commands go without; cgroup_what says why. Entering a group takes the kernel some 10 ms
 * (every processor has to notice), so a group without limits is not used: a process namespace can
 * be killed as well. One set of groups a process; loop thread only. */
#ifndef EXEC_CGROUP_H
#define EXEC_CGROUP_H

#include <stdbool.h>

#define CGROUP_PROCESSES "256"
#define CGROUP_MEMORY    "4294967296"

struct cgroup {
	/* the group's folder, and its file cgroup.procs: a process enters by writing "0" there; -1:
	 * none */
	int dir, procs;
	char name[48];
};
#define CGROUP_NONE                                                                                \
	{                                                                                          \
		.dir = -1, .procs = -1                                                             \
	}

/* Called once, by a program that owns its process (avad): it may move itself into a group below its
 * own, which the kernel wants before limits can be given out. `mount` and `own`: where groups are
 * mounted, and this process's own below it; NULL: as the kernel says. `only_limits`: no groups that
 * can only be killed (tests use those). */
void cgroup_open(const char *mount, const char *own, bool only_limits);
void cgroup_close(void);
/* "processes, memory, kill", "kill", or "none: …". */
const char *cgroup_what(void);

void cgroup_make(struct cgroup *g); /* *g stays CGROUP_NONE where there can be no group */
void cgroup_kill(const struct cgroup *g);
/* Kill what is left in the group, and remove it. */
void cgroup_remove(struct cgroup *g);

#endif

/* A control group (version 2) for each sandboxed command, where this process may make groups:
 * limits that hold for all of its processes together, whoever runs it, and a kill that no
 * process escapes. Where it may not, commands go without; cgroup_what says why. One set of
 * groups a process; loop thread only. */
#ifndef EXEC_CGROUP_H
#define EXEC_CGROUP_H

#define CGROUP_PROCESSES "256"
#define CGROUP_MEMORY    "4294967296"

struct cgroup {
	int dir, procs; /* -1: none. Who writes "0" to `procs` goes in */
	char name[48];
};
#define CGROUP_NONE                                                                                \
	{                                                                                          \
		.dir = -1, .procs = -1                                                             \
	}

/* Once, by a program that owns its process (avad): it may move itself into a group below its
 * own, which the kernel wants before limits can be given out. `mount` and `own`: where groups
 * are mounted, and this process's own below it; NULL: as the kernel says. */
void cgroup_open(const char *mount, const char *own);
void cgroup_close(void);
/* "processes, memory, kill", "kill", or "none: …". */
const char *cgroup_what(void);

void cgroup_make(struct cgroup *g); /* stays CGROUP_NONE where there can be none */
void cgroup_kill(const struct cgroup *g);
/* All in it are dead, or are killed now. */
void cgroup_remove(struct cgroup *g);

#endif

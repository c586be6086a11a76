/* Making groups; see cgroup.h. https://docs.kernel.org/admin-guide/cgroup-v2.html
 *
 * Happy path: our own group is ours to divide (a service with Delegate=yes, or root), we are alone
 * in it, it has the controllers. Then we go into a group "avad" below it, since a group with
 * processes in it gives no limits to others, and each command gets a group beside that one.
 *
 * What can fail, each with its reason in `what`: no version 2; a group that is not ours; others in
 * it, or no controllers: then groups have no limits, and are there to be killed. Groups that a
 * killed avad left are removed at the next start. */
#include "exec/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

#define PREFIX "ava-" /* begins the name of a command's group */
#define OURS   "avad"

static struct {
	int dir; /* folder of the daemon's group; -1: none */
	bool moved, memory, processes;
	unsigned made;
	char what[160];
} all = {.dir = -1, .what = "none: not asked for"};

static bool cgroup_put(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	size_t len = strlen(text);
	bool done = fd >= 0 && write(fd, text, len) == (ssize_t)len;

	if (fd >= 0)
		close(fd);
	return done;
}

/* Does the file hold the word? */
static bool cgroup_has(int dir, const char *name, const char *word)
{
	char text[1024], *save = NULL;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		close(fd);
	text[MAX(n, 0)] = 0;
	for (char *w = strtok_r(text, " \n", &save); w; w = strtok_r(NULL, " \n", &save))
		if (strcmp(w, word) == 0)
			return true;
	return false;
}

/* Find the line of `file` that `find` accepts, and what it cuts out of it. */
static bool cgroup_look(const char *file, bool (*find)(char *line, char out[PATH_MAX]),
			char out[PATH_MAX])
{
	FILE *f = fopen(file, "re");
	char line[2 * PATH_MAX];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		found = find(line, out);
	}
	if (f)
		fclose(f);
	return found;
}

/* The mount point out of "36 25 0:31 / /sys/fs/cgroup rw,… - cgroup2 cgroup2 rw". */
static bool find_mount(char *line, char out[PATH_MAX])
{
	char root[PATH_MAX];

	return strstr(line, " - cgroup2 ") &&
	       sscanf(line, "%*d %*d %*s %4095s %4095s", root, out) == 2 && strcmp(root, "/") == 0;
}

/* The group out of "0::/user.slice/…". */
static bool find_own(char *line, char out[PATH_MAX])
{
	if (strncmp(line, "0::/", 4) != 0)
		return false;
	snprintf(out, PATH_MAX, "%.*s", PATH_MAX - 1, line + 3);
	return true;
}

/* Remove groups that a killed avad left; a group with processes cannot be removed. */
static void cgroup_sweep(void)
{
	int fd = openat(all.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;
	long pid;

	while (d && (e = readdir(d)) != NULL) {
		if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) != 0)
			continue;
		pid = strtol(e->d_name + strlen(PREFIX), NULL, 10);
		/* While its maker is alive a group is needed, although nobody may be in it yet. */
		if (pid <= 0 || pid > INT32_MAX || pid == getpid() ||
		    (kill((pid_t)pid, 0) != 0 && errno == ESRCH))
			(void)unlinkat(all.dir, e->d_name, AT_REMOVEDIR);
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
}

static void go_back(void)
{
	char pid[24];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (all.moved)
		(void)cgroup_put(all.dir, "cgroup.procs", pid);
	(void)unlinkat(all.dir, OURS, AT_REMOVEDIR);
	all.moved = false;
}

/* Enable limits for the groups below ours, which the kernel allows only in a group without
 * processes. */
static void give_out(void)
{
	char pid[24];

	if (!cgroup_has(all.dir, "cgroup.controllers", "memory") &&
	    !cgroup_has(all.dir, "cgroup.controllers", "pids"))
		return;
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (mkdirat(all.dir, OURS, 0755) != 0 && errno != EEXIST)
		return;
	all.moved = cgroup_put(all.dir, OURS "/cgroup.procs", pid);
	if (all.moved) {
		all.memory = cgroup_put(all.dir, "cgroup.subtree_control", "+memory");
		all.processes = cgroup_put(all.dir, "cgroup.subtree_control", "+pids");
	}
	if (!all.memory && !all.processes)
		go_back();
}

static void none(const char *why)
{
	snprintf(all.what, sizeof(all.what), "none: %s", why);
	if (all.dir >= 0)
		close(all.dir);
	all.dir = -1;
}

void cgroup_open(const char *mount, const char *own, bool only_limits)
{
	char top[PATH_MAX], path[PATH_MAX], whole[2 * PATH_MAX];
	struct cgroup probe = CGROUP_NONE;

	if (all.dir >= 0)
		return;
	snprintf(top, sizeof(top), "%s", mount ? mount : "");
	snprintf(path, sizeof(path), "%s", own ? own : "");
	if ((!mount && !cgroup_look("/proc/self/mountinfo", find_mount, top)) ||
	    (!own && !cgroup_look("/proc/self/cgroup", find_own, path))) {
		none("this machine has no control groups of version 2");
		return;
	}
	snprintf(whole, sizeof(whole), "%s%s", top, path);
	all.dir = open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (all.dir < 0) {
		none(strerror(errno));
		return;
	}
	cgroup_sweep();
	give_out();
	if (only_limits && !all.memory && !all.processes) {
		none("avad's own group is not its to divide (a service with Delegate=yes has one)");
		return;
	}
	cgroup_make(&probe);
	if (probe.dir < 0) {
		go_back();
		none("no group can be made below avad's own");
		return;
	}
	snprintf(all.what, sizeof(all.what), "%s%skill", all.processes ? "processes, " : "",
		 all.memory ? "memory, " : "");
	cgroup_remove(&probe);
}

void cgroup_close(void)
{
	if (all.dir < 0)
		return;
	go_back();
	none("closed");
}

const char *cgroup_what(void)
{
	return all.what;
}

static bool cgroup_limit(int dir)
{
	if (all.processes && !cgroup_put(dir, "pids.max", CGROUP_PROCESSES))
		return false;
	if (!all.memory)
		return true;
	(void)cgroup_put(dir, "memory.swap.max", "0"); /* a machine without swap lacks the file */
	return cgroup_put(dir, "memory.max", CGROUP_MEMORY) &&
	       cgroup_put(dir, "memory.oom.group", "1");
}

void cgroup_make(struct cgroup *g)
{
	*g = (struct cgroup)CGROUP_NONE;
	if (all.dir < 0)
		return;
	snprintf(g->name, sizeof(g->name), PREFIX "%d-%u", (int)getpid(), all.made++);
	if (mkdirat(all.dir, g->name, 0755) != 0)
		return;
	g->dir = openat(all.dir, g->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (g->dir >= 0 && cgroup_limit(g->dir))
		g->procs = openat(g->dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	if (g->procs < 0)
		cgroup_remove(g);
}

void cgroup_kill(const struct cgroup *g)
{
	if (g->dir >= 0)
		(void)cgroup_put(g->dir, "cgroup.kill", "1"); /* Linux has it since 5.14 */
}

void cgroup_remove(struct cgroup *g)
{
	cgroup_kill(g);
	if (g->procs >= 0)
		close(g->procs);
	if (g->dir >= 0)
		close(g->dir);
	if (g->name[0] && all.dir >= 0)
		(void)unlinkat(all.dir, g->name, AT_REMOVEDIR);
	*g = (struct cgroup)CGROUP_NONE;
}

/* A PostgreSQL server of a test's own; pg_server.h.
 *
 * A program runs as `nobody` where we are root, with the folder as its own, and is killed with us.
 * The server is ready when the file postmaster.pid says so, as pg_ctl looks for it. Its processes
 * have sessions of their own: kill -9 goes to each child that /proc names, and waits until none has
 * the server's shared memory any more, since the next start refuses before that. */
#include "pg_server.h"

#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOBODY        65534
#define READY_TRIES   12000 /* of 5 ms */
#define CHILDREN_MOST 128

static bool pg_server_bin(char *bin, size_t size)
{
	const char *set = getenv("PG_BIN");
	glob_t found = {0};
	bool there = false;

	if (set)
		return (size_t)snprintf(bin, size, "%s", set) < size;
	if (glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found) == 0) {
		const char *last = found.gl_pathv[found.gl_pathc - 1];

		there = (size_t)snprintf(bin, size, "%.*s", (int)(strrchr(last, '/') - last),
					 last) < size;
	}
	globfree(&found);
	return there;
}

bool pg_server_there(void)
{
	char bin[128], initdb[160];

	if (!pg_server_bin(bin, sizeof(bin)))
		return false;
	snprintf(initdb, sizeof(initdb), "%s/initdb", bin);
	return access(initdb, X_OK) == 0;
}

static void pg_server_doze(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

/* In the child: never returns. */
static void pg_server_become(const struct pg_server *s, pid_t parent, const char *program,
			     char *const *argv)
{
	char path[192], log[128];
	int fd;

	if (program[0] == '/')
		snprintf(path, sizeof(path), "%s", program);
	else
		snprintf(path, sizeof(path), "%s/%s", s->bin, program);
	snprintf(log, sizeof(log), "%s/log", s->dir);
	if (geteuid() == 0 &&
	    (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
		_exit(126);
	/* A change of user takes it away, so it comes behind. */
	if (prctl(PR_SET_PDEATHSIG, SIGQUIT) != 0 || getppid() != parent)
		_exit(126);
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0 || chdir(s->dir) != 0)
		_exit(126);
	fd = open("/dev/null", O_RDONLY);
	if (fd < 0 || dup2(fd, 0) < 0)
		_exit(126);
	unsetenv("LD_PRELOAD");
	setenv("LC_ALL", "C", 1);
	setenv("TZ", "UTC", 1);
	setenv("HOME", s->dir, 1);
	execv(path, argv);
	_exit(127);
}

/* `program` of the server, or with its path. */
static pid_t pg_server_run(const struct pg_server *s, const char *program, char *const *argv)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		pg_server_become(s, parent, program, argv);
	return pid;
}

static bool pg_server_did(const struct pg_server *s, const char *program, char *const *argv)
{
	int status = -1;
	pid_t pid = pg_server_run(s, program, argv);

	if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
		return true;
	fprintf(stderr, "%s: status %d, see %s/log\n", program, status, s->dir);
	return false;
}

bool pg_server_make(struct pg_server *s)
{
	const char *base = getenv("TMPDIR");
	char data[128];
	char *argv[] = {"initdb", "-D", data, "-A",   "trust",      "-U",
			"ava",    "-N", "-E", "UTF8", "--locale=C", "--no-instructions",
			NULL};

	*s = (struct pg_server){0};
	if (!pg_server_bin(s->bin, sizeof(s->bin)))
		return false;
	/* Not in a folder that only root may enter. */
	snprintf(s->dir, sizeof(s->dir), "%s/ava-pg-XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(s->dir) || (geteuid() == 0 && chown(s->dir, NOBODY, NOBODY) != 0)) {
		perror(s->dir);
		return false;
	}
	snprintf(data, sizeof(data), "%s/data", s->dir);
	snprintf(s->url, sizeof(s->url), "host=%s user=ava dbname=postgres", s->dir);
	return pg_server_did(s, "initdb", argv);
}

bool pg_server_certify(const struct pg_server *s)
{
	char *argv[] = {"openssl",
			"req",
			"-x509",
			"-newkey",
			"ec",
			"-pkeyopt",
			"ec_paramgen_curve:P-256",
			"-nodes",
			"-subj",
			"/CN=localhost",
			"-keyout",
			"data/server.key",
			"-out",
			"data/server.crt",
			NULL};

	return pg_server_did(s, "/usr/bin/openssl", argv);
}

/* The eighth line of postmaster.pid is the server's state. */
static bool pg_server_ready(const struct pg_server *s)
{
	char path[128], line[128] = "";
	long pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/data/postmaster.pid", s->dir);
	f = fopen(path, "re");
	if (!f)
		return false;
	for (int i = 1; i <= 8; i++) {
		if (!fgets(line, sizeof(line), f))
			line[0] = '\0';
		if (i == 1)
			pid = atol(line);
	}
	fclose(f);
	return pid == s->pid && strncmp(line, "ready", 5) == 0;
}

bool pg_server_start(struct pg_server *s, const char *const *options)
{
	char data[128];
	char *argv[32] = {"postgres",
			  "-D",
			  data,
			  "-k",
			  s->dir,
			  "-h",
			  "",
			  "-c",
			  "fsync=off",
			  "-c",
			  "log_min_messages=fatal"};
	size_t n = 11;
	int status = 0;

	snprintf(data, sizeof(data), "%s/data", s->dir);
	for (; options && *options && n + 1 < sizeof(argv) / sizeof(argv[0]); options++)
		argv[n++] = (char *)*options;
	s->pid = pg_server_run(s, "postgres", argv);
	for (int i = 0; s->pid > 0 && i < READY_TRIES; i++) {
		if (pg_server_ready(s))
			return true;
		if (waitpid(s->pid, &status, WNOHANG) == s->pid)
			break;
		pg_server_doze();
	}
	fprintf(stderr, "postgres: status %d, see %s/log\n", status, s->dir);
	s->pid = 0;
	return false;
}

void pg_server_stop(struct pg_server *s)
{
	if (s->pid <= 0)
		return;
	kill(s->pid, SIGINT);
	waitpid(s->pid, NULL, 0);
	s->pid = 0;
}

static size_t pg_server_children(pid_t pid, pid_t *children)
{
	char path[64];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (n < CHILDREN_MOST && fscanf(f, "%d", &children[n]) == 1)
		n++;
	fclose(f);
	return n;
}

/* One that has ended, and whom nobody has reaped yet, has no memory any more. */
static bool pg_server_lives(pid_t pid)
{
	char path[64], state = 'X';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 'X';
	fclose(f);
	return state != 'Z' && state != 'X';
}

void pg_server_kill(struct pg_server *s)
{
	pid_t children[CHILDREN_MOST];
	size_t n;

	if (s->pid <= 0)
		return;
	kill(s->pid, SIGSTOP); /* it makes no more children */
	n = pg_server_children(s->pid, children);
	kill(s->pid, SIGKILL);
	for (size_t i = 0; i < n; i++)
		kill(children[i], SIGKILL);
	waitpid(s->pid, NULL, 0);
	for (size_t i = 0; i < n; i++)
		while (pg_server_lives(children[i]))
			pg_server_doze();
	s->pid = 0;
}

static int pg_server_unlink(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

void pg_server_remove(struct pg_server *s)
{
	pg_server_stop(s); /* killed, it would leave its key of System V's shared memory */
	if (s->dir[0] != '\0')
		nftw(s->dir, pg_server_unlink, 16, FTW_DEPTH | FTW_PHYS);
	s->dir[0] = '\0';
}

/* avad: the daemon's main. `ava` starts it on demand with --ready-fd; by hand
 * it serves in the foreground. What can fail: options (2), and everything of
 * daemon.h (1 and one sentence). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#ifdef AVAD_MIMALLOC
#include <mimalloc.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ava.h>

#include "base/error.h"
#include "gateway/daemon.h"
#include "gateway/doctor.h"
#include "gateway/web.h"

#define MEMORY_KEPT_MS 100

/* A long request is freed and asked for again with each turn. mimalloc keeps its pages that long
 * before the system gets them back, where it is said nothing else by MIMALLOC_DECOMMIT_DELAY or
 * MIMALLOC_PURGE_DELAY (its name from 2.1 on); glibc gets a fixed threshold, which it would raise
 * and then return nothing. */
static void memory_prepare(void)
{
#ifdef AVAD_MIMALLOC
#if MI_MALLOC_VERSION < 210
	mi_option_set_default(mi_option_decommit_delay, MEMORY_KEPT_MS);
#else
	mi_option_set_default(mi_option_purge_delay, MEMORY_KEPT_MS);
#endif
#endif
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
}

/* Started by a command the daemon finds all of this done already (client/start.c); by hand,
 * from cron or a supervisor it may find anything: descriptors 0 to 2 are open, files are the
 * owner's alone, no folder is kept busy, no core file shows the keys, SIGPIPE is an error of
 * write, and there are as many descriptors as there may be, where that can be had. */
static int process_prepare(struct ava_error *err)
{
	struct rlimit r;
	int fd;

	/* A file that is opened as descriptor 2 would get our messages. */
	do {
		fd = open("/dev/null", O_RDWR);
		if (fd < 0)
			return err_sys(err, "/dev/null");
	} while (fd <= STDERR_FILENO);
	close(fd);
	memory_prepare();
	umask(077);
	if (chdir("/") != 0)
		return err_sys(err, "change to /");
	if (prctl(PR_SET_DUMPABLE, 0) != 0)
		return err_sys(err, "forbid core files");
	signal(SIGPIPE, SIG_IGN);
	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &r);
	}
	return 0;
}

/* The number in `text` when it is an open descriptor above 2 (it is then
 * closed on exec); else -1. */
static int process_descriptor(const char *text)
{
	char *end;
	long n;

	if (*text < '0' || *text > '9')
		return -1;
	errno = 0;
	n = strtol(text, &end, 10);
	if (errno != 0 || *end != '\0' || n <= STDERR_FILENO || n > INT_MAX ||
	    fcntl((int)n, F_SETFD, FD_CLOEXEC) != 0)
		return -1;
	return (int)n;
}

static int avad_usage(FILE *out)
{
	fputs("usage: avad [--service] [--verbose] [--ready-fd N]\n"
	      "       avad --recover | --doctor | --try | --version\n"
	      "The daemon of ava. Commands of `ava` start it when they need it.\n"
	      "  --service   never exit for being idle\n"
	      "  --verbose   write the log to stderr too\n"
	      "  --recover   put the files in order after a crash, print what was done, exit\n"
	      "  --prune SECONDS|retention [--dry-run]\n"
	      "              remove runs and days that are older, print what went, exit\n"
	      "  --cluster init|status|try|print\n"
	      "              make the tables of a cluster at AVA_CLUSTER_URL, say who is in it, "
	      "or print\n"
	      "              the SQL, exit; try is status with the URL of the environment alone\n"
	      "  --doctor    look at configuration, keys and services, print JSON, exit\n"
	      "  --try       the same, with one short call of models that cost something, too\n",
	      out);
	return out == stdout ? 0 : 2;
}

/* Exit code of --recover: another process has the root, and recovers it itself. */
#define AVAD_IN_USE 3

static int avad_fail(const struct ava_error *err)
{
	fprintf(stderr, "avad: %s\n", err->text);
	return 1;
}

static int bad_option(const char *what, const char *arg)
{
	fprintf(stderr, "avad: %s: %s\n", what, arg);
	return avad_usage(stderr);
}

enum mode { SERVE, RECOVER, DOCTOR, TRY, PRUNE, CLUSTER };

/* Take one option of the command line and its value; 0, or the exit code plus one. */
static int take_option(int argc, char **argv, int *i, struct daemon_options *o, enum mode *mode)
{
	if (strcmp(argv[*i], "--service") == 0)
		o->service = true;
	else if (strcmp(argv[*i], "--verbose") == 0)
		o->verbose = true;
	else if (strcmp(argv[*i], "--ready-fd") == 0 && *i + 1 < argc) {
		o->ready_fd = process_descriptor(argv[++*i]);
		if (o->ready_fd < 0)
			return 1 +
			       bad_option("--ready-fd needs an open descriptor above 2", argv[*i]);
	} else if (strcmp(argv[*i], "--recover") == 0)
		*mode = RECOVER;
	else if (strcmp(argv[*i], "--doctor") == 0)
		*mode = DOCTOR;
	else if (strcmp(argv[*i], "--try") == 0)
		*mode = TRY;
	else if (strcmp(argv[*i], "--prune") == 0 && *i + 1 < argc && *i + 3 >= argc) {
		*mode = PRUNE;
		*i = argc - 1;
	} else if (strcmp(argv[*i], "--cluster") == 0 && *i + 2 == argc) {
		*mode = CLUSTER;
		++*i;
	} else if (strcmp(argv[*i], "--version") == 0)
		return 1 + (printf("avad %s\n", ava_version()) < 0);
	else if (strcmp(argv[*i], "--help") == 0)
		return 1 + avad_usage(stdout);
	else
		return 1 + bad_option("unknown option", argv[*i]);
	return 0;
}

/* The words behind --prune. */
static int avad_prune(int argc, char **argv, struct ava_error *err)
{
	bool dry = strcmp(argv[argc - 1], "--dry-run") == 0;
	const char *age = argv[argc - 1 - dry];
	char *end = NULL;
	long long older_s = strcmp(age, "retention") == 0 ? 0 : strtoll(age, &end, 10);

	if (end != NULL && (*end != '\0' || older_s <= 0 || older_s > INT64_C(3153600000)))
		return err_set(err, AVA_EINVAL, "--prune: \"%.40s\" is no number of seconds", age);
	return daemon_prune(older_s, dry, err);
}

/* The lock and all descriptors go with the old program, that of --ready-fd too; its alarm would
 * not, and end the new one. */
static int process_again(char **argv, struct ava_error *err)
{
	char **to = argv;

	for (char **from = argv; *from; from++) {
		if (strcmp(*from, "--ready-fd") == 0 && from[1])
			from++;
		else
			*to++ = *from;
	}
	*to = NULL;
	alarm(0);
	return execv("/proc/self/exe", argv) != 0 ? err_sys(err, "start again") : 0;
}

int main(int argc, char **argv)
{
	struct daemon_options o = {.ready_fd = -1};
	struct ava_error err = {0};
	enum mode mode = SERVE;
	int rv = 0;

	for (int i = 1; i < argc; i++) {
		rv = take_option(argc, argv, &i, &o, &mode);
		if (rv != 0)
			return rv - 1;
	}
	if (process_prepare(&err) != 0)
		return avad_fail(&err);
	rv = mode == SERVE     ? daemon_run(&o, &err)
	     : mode == RECOVER ? daemon_recover(&err)
	     : mode == PRUNE   ? avad_prune(argc, argv, &err)
	     : mode == CLUSTER ? daemon_cluster(argv[argc - 1], &err)
			       : doctor_print(mode == TRY, web_lacks(), &err);
	if (o.again)
		rv = process_again(argv, &err);
	if (rv == 0)
		return 0;
	avad_fail(&err);
	return mode == RECOVER && rv == AVA_EBUSY ? AVAD_IN_USE : 1;
}

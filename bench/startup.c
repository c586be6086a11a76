/* Start-up and size of the two programs: `ava version` next to /bin/true, avad
 * from exec to its first answer, its memory when idle, and `ava run` from exec
 * to the first model request with the daemon up (offline model).
 *
 *     bench_startup BUILD_DIR [ROUNDS]   400 of the first, a 20th of the others; uses src/cli/ava
 * and src/gateway/avad there
 *
 * Everything happens in a folder of its own that is removed. Each figure is
 * the median of its rounds, beside its aim. Exit code 0 also when one is
 * missed: other programs on the machine decide that too; 77: the programs are
 * not built. bench/README.md says how to read it. */
#include <ava.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/client.h"

#define ROUNDS_MAX 400

static int rounds = ROUNDS_MAX, few; /* few: of the slow figures */

extern char **environ;

static char home[] = "/tmp/ava-bench-start-XXXXXX";
static char root[64], tree[64], ava[4200], avad[4200];

static void die(const char *what)
{
	fprintf(stderr, "bench_startup: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void show(const char *what, double is, const char *unit, double limit)
{
	printf("%-46s %8.2f %-5s (<= %.4g) %s\n", what, is, unit, limit,
	       is <= limit ? "met" : "missed");
}

static int by_size(const void *a, const void *b)
{
	return (*(const int64_t *)a > *(const int64_t *)b) -
	       (*(const int64_t *)a < *(const int64_t *)b);
}

static double median_ms(int64_t *us, size_t n)
{
	qsort(us, n, sizeof(*us), by_size);
	return (double)us[n / 2] / 1000;
}

static pid_t launch(char *const argv[])
{
	posix_spawn_file_actions_t files;
	pid_t pid;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	if (posix_spawn(&pid, argv[0], &files, NULL, argv, environ) != 0)
		die(argv[0]);
	posix_spawn_file_actions_destroy(&files);
	return pid;
}

static int finish(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- ava version */

static int64_t once_us(char *const argv[])
{
	int64_t began = clock_mono_us();

	if (finish(launch(argv)) != 0)
		die(argv[0]);
	return clock_mono_us() - began;
}

static void measure_version(void)
{
	static int64_t true_us[ROUNDS_MAX], ava_us[ROUNDS_MAX];
	char *plain[] = {"/bin/true", NULL}, *version[] = {ava, "version", NULL};
	double a, b;

	for (int i = 0; i < rounds; i++) {
		true_us[i] = once_us(plain);
		ava_us[i] = once_us(version);
	}
	a = median_ms(true_us, rounds);
	b = median_ms(ava_us, rounds);
	printf("ava version %.3f ms, /bin/true %.3f ms\n", b, a);
	show("ava version / /bin/true", b / a, "", 1.6);
}

/* ---- avad */

static long rss_anon_kb(pid_t pid)
{
	char path[64], line[200];
	long kb = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

static int rm_cb(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

static void clear(const char *dir)
{
	nftw(dir, rm_cb, 16, FTW_DEPTH | FTW_PHYS);
}

static bool answers(void)
{
	struct client_reply r;
	struct client *c;
	bool good;

	if (client_open(root, false, &c, NULL) != 0)
		return false;
	good = client_call(c, "GET", "/api/v1/health", NULL, &r, NULL) == 0;
	client_close(c);
	return good;
}

static pid_t start_avad(int64_t *us)
{
	char *argv[] = {avad, NULL};
	int64_t began = clock_mono_us();
	struct timespec pause = {.tv_nsec = 100 * 1000};
	pid_t pid = launch(argv);

	while (!answers()) {
		if (clock_mono_us() - began > 10 * 1000 * 1000)
			die("avad does not answer");
		nanosleep(&pause, NULL);
	}
	*us = clock_mono_us() - began;
	return pid;
}

static void stop_avad(pid_t pid)
{
	kill(pid, SIGTERM);
	finish(pid);
}

static void measure_avad(void)
{
	int64_t fresh[ROUNDS_MAX], again[ROUNDS_MAX];
	struct timespec second = {.tv_sec = 1};
	long kb = 0;

	for (int i = 0; i < few; i++) {
		clear(root);
		stop_avad(start_avad(&fresh[i]));
		{
			pid_t pid = start_avad(&again[i]);

			if (i == few - 1) {
				nanosleep(&second, NULL);
				kb = rss_anon_kb(pid);
			}
			stop_avad(pid);
		}
	}
	show("avad, exec to first answer, new data root", median_ms(fresh, few), "ms", 30);
	show("avad, exec to first answer, root in use", median_ms(again, few), "ms", 30);
	show("avad idle, RssAnon", (double)kb / 1024, "MB", 4);
}

/* ---- ava run */

/* The time of the first InferStart in a run's file, 0 when there is none. */
static int64_t first_infer_ms(const char *path)
{
	static char line[1 << 20];
	FILE *f = fopen(path, "re");
	int64_t at = 0;

	while (f && at == 0 && fgets(line, sizeof(line), f))
		if (strstr(line, "\"eventType\":\"InferStart\""))
			at = clock_parse_iso(line + strlen("{\"timestamp\":\""), CLOCK_ISO_LEN);
	if (f)
		fclose(f);
	return at;
}

/* The newest file of logs/subagents: file times are not fine enough, but the
 * first InferStart is. */
static int64_t newest_infer_ms(void)
{
	char dir[128], path[512];
	struct dirent *e;
	int64_t newest = 0, at;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/logs/subagents", root);
	d = opendir(dir);
	while (d && (e = readdir(d)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		at = first_infer_ms(path);
		newest = at > newest ? at : newest;
	}
	if (d)
		closedir(d);
	return newest;
}

static void measure_run(void)
{
	char *argv[] = {ava, "run", "--yes", "find where the word needle is used", NULL};
	int64_t us[ROUNDS_MAX], ignored;
	pid_t pid = start_avad(&ignored);

	if (chdir(tree) != 0)
		die(tree);
	for (int i = 0; i < few; i++) {
		int64_t began = clock_wall_ms();

		if (finish(launch(argv)) != 0)
			die("ava run failed");
		us[i] = (newest_infer_ms() - began) * 1000;
	}
	show("ava run, exec to first model request", median_ms(us, few), "ms", 15);
	stop_avad(pid);
}

int main(int argc, char **argv)
{
	char file[128], build[4096];
	FILE *f = NULL;

	/* Programs are started from other folders than this one. */
	if (argc < 2 || argc > 3 || !realpath(argv[1], build))
		return 2;
	rounds = argc == 3 ? atoi(argv[2]) : ROUNDS_MAX;
	if (rounds < 1 || rounds > ROUNDS_MAX)
		return 2;
	few = (rounds + 19) / 20;
	snprintf(ava, sizeof(ava), "%s/src/cli/ava", build);
	snprintf(avad, sizeof(avad), "%s/src/gateway/avad", build);
	if (access(ava, X_OK) != 0 || access(avad, X_OK) != 0)
		return 77;
	if (!mkdtemp(home))
		die(home);
	snprintf(root, sizeof(root), "%s/root", home);
	snprintf(tree, sizeof(tree), "%s/tree", home);
	snprintf(file, sizeof(file), "%s/main.c", tree);
	setenv("HOME", home, 1);
	setenv("AVA_DATA_ROOT", root, 1);
	setenv("AVA_AVAD", avad, 1);
	setenv("AVA_MODEL", "offline", 1);
	if (mkdir(tree, 0700) != 0 || !(f = fopen(file, "we")))
		die(file);
	fprintf(f, "int needle(void)\n{\n\treturn 1;\n}\n");
	fclose(f);
	measure_version();
	measure_avad();
	measure_run();
	if (chdir("/") == 0)
		clear(home);
	return 0;
}

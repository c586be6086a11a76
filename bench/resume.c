/* A restart with many unfinished runs: how long until the runtime serves, and what
 * each run that waits takes of memory. All of them had called a model when the
 * process was gone: their logs and messages are read, their calls closed.
 *
 *     bench/resume [RUNS]           10,000; a folder below $TMPDIR is used
 *     bench/resume --fill RUNS      the first process alone
 *     bench/resume --in FOLDER      the next one alone, for a profiler */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ava.h>
#include "ava/core.h"
#include "ava/ops.h"
#include "base/clock.h"
#include "base/settings.h"
#include "os/loop.h"

static char dir[300];
static int spawned, refused;

static void on_spawn(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	if (rv != 0 && refused++ == 0)
		fprintf(stderr, "not spawned: %s\n", err->text);
	spawned++;
}

static struct core *open_root(const char *name, struct settings *set, struct os_loop *loop)
{
	static char root[320];
	struct core_options o = {.loop = loop, .root = root, .settings = set, .model = "offline"};
	struct ava_error err = {0};
	struct core *c;

	snprintf(root, sizeof(root), "%s/%s", dir, name);
	mkdir(root, 0700);
	if (core_open(&c, &o, &err) != 0) {
		fprintf(stderr, "%s: %s\n", root, err.text);
		exit(1);
	}
	return c;
}

/* Runs that all wait for their model; then the process is gone. */
static void fill(int runs)
{
	struct os_loop *loop = os_loop_new(NULL);
	struct settings set;
	char model[340];
	struct op_spawn s = {.role = "researcher",
			     .task = "Find where the pool is drained and who waits for it",
			     .cwd = "",
			     .model = model,
			     .origin = "bench",
			     .session_id = "s1",
			     .user_id = "bench",
			     .request_id = "",
			     .timeout_ms = AVA_DEFAULT,
			     .max_cost_microusd = AVA_DEFAULT,
			     .max_tokens = AVA_DEFAULT,
			     .max_iterations = AVA_DEFAULT};
	struct op_health h = {0};
	struct core *c;
	uint64_t lsn = 1;

	settings_defaults(&set);
	set.disk_free_min_mb = 0;
	set.runs_max = runs;
	set.runs_queue_max = runs;
	snprintf(model, sizeof(model), "offline:%s/late.jsonl", dir);
	c = open_root("full", &set, loop);
	for (int i = 0; i < runs; i++) {
		ops_spawn(c, &s, on_spawn, NULL);
		while (spawned + 200 < i)
			os_loop_step(loop, 1);
	}
	while (lsn != h.lsn || spawned < runs) { /* until nothing is written any more */
		lsn = h.lsn;
		for (int i = 0; i < 100; i++)
			os_loop_step(loop, 5);
		ops_health(c, &h);
	}
	_exit(refused > 0); /* as a kill would */
}

static long rss_kb(void)
{
	long total = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%ld %ld", &total, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void measure(const char *name, int runs, long *kb)
{
	struct os_loop *loop = os_loop_new(NULL);
	struct settings set;
	struct op_health h;
	struct core *c;
	int64_t from;

	settings_defaults(&set);
	set.disk_free_min_mb = 0;
	from = clock_mono_us();
	c = open_root(name, &set, loop);
	ops_health(c, &h);
	printf("%-6s %6lu unfinished runs: serves after %.0f ms (%.0f ms of processor)", name,
	       (unsigned long)h.running, (double)(clock_mono_us() - from) / 1000,
	       (double)clock() * 1000 / CLOCKS_PER_SEC);
	malloc_trim(0);
	*kb = rss_kb();
	printf(", %ld KB resident\n", *kb);
	fflush(stdout);
}

static long child(void (*what)(const char *, int, long *), const char *name, int runs)
{
	long kb = 0;
	int fds[2];
	pid_t pid;

	if (pipe(fds) != 0)
		exit(1);
	pid = fork();
	if (pid == 0) {
		if (what)
			what(name, runs, &kb);
		else
			fill(runs);
		_exit(write(fds[1], &kb, sizeof(kb)) != sizeof(kb));
	}
	waitpid(pid, NULL, 0);
	close(fds[1]);
	if (read(fds[0], &kb, sizeof(kb)) != sizeof(kb))
		kb = 0;
	close(fds[0]);
	return kb;
}

static int make_folder(void)
{
	const char *tmp = getenv("TMPDIR");
	char path[320];
	FILE *f;

	snprintf(dir, sizeof(dir), "%s/ava-bench-resume.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return 2;
	snprintf(path, sizeof(path), "%s/late.jsonl", dir);
	f = fopen(path, "w");
	if (!f)
		return 1;
	fputs("{\"text\":\"late\",\"delay_ms\":80000000}\n", f);
	return fclose(f) != 0;
}

int main(int argc, char **argv)
{
	bool in = argc == 3 && strcmp(argv[1], "--in") == 0;
	bool alone = argc == 3 && strcmp(argv[1], "--fill") == 0;
	int runs = argc > 1 ? atoi(argv[argc - 1]) : 10000, rv;
	long empty = 0, full = 0;

	if (in) {
		snprintf(dir, sizeof(dir), "%s", argv[2]);
		measure("full", 0, &full);
		return 0;
	}
	rv = runs > 0 ? make_folder() : 2;
	if (rv != 0)
		return rv;
	child(NULL, "full", runs);
	if (!alone) {
		empty = child(measure, "empty", runs);
		full = child(measure, "full", runs);
		printf("memory of a waiting run: %.2f KB\n", (double)(full - empty) / runs);
	}
	printf("(left in %s)\n", dir);
	return 0;
}

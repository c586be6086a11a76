/* A restart with many unfinished runs: how long until the runtime serves, and what
 * each run that waits takes of memory. All of them had called a model when the
 * process was gone: their logs and messages are read, their calls closed.
 *
 * Exit 1: a run was not spawned, or is not taken up.
 *
 *     bench/resume [RUNS]           10,000; a folder below $TMPDIR is used
 *     bench/resume --asking [RUNS]  they wait for a person, in the first process and the next
 *     bench/resume --fill RUNS      the first process alone
 *     bench/resume --in FOLDER      the next one alone, for a profiler */
#include <ftw.h>
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
#include "ava/state.h"
#include "base/clock.h"
#include "base/settings.h"
#include "os/loop.h"

static char dir[300];
static int spawned, refused;
static bool asking; /* they wait for a person, not for a model */

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

/* Until nothing is written any more. */
static void settle(struct core *c, struct os_loop *loop)
{
	uint64_t lsn;

	do {
		lsn = logbook_shown(&c->book);
		for (int i = 0; i < 100; i++)
			os_loop_step(loop, 5);
	} while (lsn != logbook_shown(&c->book));
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

struct memory {
	long resident, allocated; /* KB; the first with the heap's holes */
	int running;              /* runs that were taken up and do not wait for a person */
};

static struct memory memory_now(void)
{
	malloc_trim(0);
	return (struct memory){.resident = rss_kb(),
			       .allocated = (long)(mallinfo2().uordblks >> 10)};
}

static void print_memory(const char *when, struct memory from, struct memory to, int runs)
{
	printf("%s: a run that waits holds %.2f KB (%.2f KB resident)\n", when,
	       (double)(to.allocated - from.allocated) / runs,
	       (double)(to.resident - from.resident) / runs);
	fflush(stdout);
}

/* Runs that all wait for their model, or a person; then the process is gone. */
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
	struct memory before;
	struct core *c;

	settings_defaults(&set);
	set.disk_free_min_mb = 0;
	set.runs_max = runs;
	set.runs_queue_max = runs;
	snprintf(model, sizeof(model), "offline:%s/late.jsonl", dir);
	c = open_root("full", &set, loop);
	before = memory_now();
	for (int i = 0; i < runs; i++) {
		ops_spawn(c, &s, on_spawn, NULL);
		while (spawned + 200 < i)
			os_loop_step(loop, 1);
	}
	do
		settle(c, loop);
	while (spawned < runs);
	if (asking)
		print_memory("before the stop", before, memory_now(), runs);
	_exit(refused > 0); /* as a kill would */
}

static void measure(const char *name, int runs, struct memory *out)
{
	struct os_loop *loop = os_loop_new(NULL);
	struct settings set;
	struct core *c;
	int64_t from;

	settings_defaults(&set);
	set.disk_free_min_mb = 0;
	from = clock_mono_us();
	c = open_root(name, &set, loop);
	printf("%-6s %6lu unfinished runs: serves after %.0f ms (%.0f ms of processor)", name,
	       (unsigned long)c->sup.nlive, (double)(clock_mono_us() - from) / 1000,
	       (double)clock() * 1000 / CLOCKS_PER_SEC);
	if (asking)
		settle(c, loop);
	*out = memory_now();
	out->running = (int)c->sup.nlive;
	printf(", %ld KB resident\n", out->resident);
	fflush(stdout);
}

/* Exits when it failed. */
static struct memory child(void (*what)(const char *, int, struct memory *), const char *name,
			   int runs)
{
	struct memory m = {0};
	int fds[2], status;
	pid_t pid;

	if (pipe(fds) != 0)
		exit(1);
	pid = fork();
	if (pid == 0) {
		if (what)
			what(name, runs, &m);
		else
			fill(runs);
		_exit(write(fds[1], &m, sizeof(m)) != sizeof(m));
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		exit(1);
	close(fds[1]);
	if (what && read(fds[0], &m, sizeof(m)) != sizeof(m))
		exit(1);
	close(fds[0]);
	return m;
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
	fputs(asking ? "{\"tool_calls\":[{\"name\":\"ask_person\",\"args\":{\"question\":"
		       "\"Shall the pool be drained before the listener is closed?\"}}]}\n"
		     : "{\"text\":\"late\",\"delay_ms\":80000000}\n",
	      f);
	return fclose(f) != 0;
}

static int rm_cb(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

int main(int argc, char **argv)
{
	bool in = argc == 3 && strcmp(argv[1], "--in") == 0;
	bool alone = argc == 3 && strcmp(argv[1], "--fill") == 0;
	int runs, rv;
	struct memory empty, full = {0};

	asking = argc > 1 && strcmp(argv[1], "--asking") == 0;
	runs = argc > 1 + asking ? atoi(argv[argc - 1]) : 10000;
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
		print_memory("after it", empty, full, runs);
	}
	if (alone) {
		printf("(left in %s)\n", dir);
		return 0;
	}
	nftw(dir, rm_cb, 16, FTW_DEPTH | FTW_PHYS);
	return !asking && full.running != runs;
}

/* Worlds in which the runtime dies and goes on (lives.h), each judged (judge.c). The
 * seed is printed with what happened; AVA_SIM_SEED=<it> AVA_SIM_LIVES=1 plays a world
 * again alone, AVA_SIM_LOGS=1 prints its files, too; AVA_SIM_GO_ON=1 tells all
 * that are broken. Without a seed the worlds are 1, 2, 3 …: 300
 * of them, or 10,000 with AVA_SOAK=1. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "ledger.h"
#include "lives.h"
#include "memdisk.h"
#include "provider/model.h"
#include "service.h"

#define WORLDS      300
#define WORLDS_SOAK 10000

/* Seeds that once broke something, whatever it was. */
static const uint64_t once_broken[] = {
	8,     53,    166,   171,   176,  488,  820,  1849,  2250,  8084, /* the runtime, or a judge
									   */
	917,   3974,  76621,                                              /* the judge */
	1,     32,    130,   303,   356,  604,  671,  885,   1034,  1557, /* the replay */
	2685,  2846,  2904,  3394,  7132, 7665, 9627, 12637, 13706, 20695, 21882,
	70026, 71337,               /* the replay: said during a check; the words of a budget */
	70062, 70154,               /* the time of a run behind its check */
	70029, 70042, 70213, 70308, /* times of an order before a pause */
	70339,                      /* the end of an order that asks */
};

static struct sums {
	long worlds, runs, lives, kills, stops, jumps, requests, steers;
	uint64_t commits;
	struct lives_seen seen;
} * sums; /* shared with the processes that play */

static void print_log(const char *path, const char *bytes, size_t len, void *user)
{
	(void)user;
	if (strncmp(path, "/logs/", 6) == 0)
		fprintf(stderr, "%s:\n%.*s", path, (int)len, bytes);
}

static int play_here(uint64_t seed)
{
	static struct lives l;
	bool broken;

	lives_play(&l, seed);
	lives_judge(&l, &sums->seen);
	broken = l.broken[0] != '\0';
	if (broken) {
		fwrite(l.trace.data, 1, l.trace.len, stderr);
		if (getenv("AVA_SIM_LOGS") != NULL)
			memdisk_walk(l.disk, print_log, NULL);
		fprintf(stderr, "AVA_SIM_SEED=%llu AVA_SIM_LIVES=1: %s\n", (unsigned long long)seed,
			l.broken);
	}
	sums->worlds++;
	sums->runs += l.nruns;
	sums->lives += l.lives;
	sums->kills += l.kills;
	sums->stops += l.stops;
	sums->jumps += l.jumps;
	sums->steers += l.nsteers;
	sums->requests += (long)service_requests();
	sums->commits += ledger_commits();
	lives_end(&l);
	return broken;
}

/* In a process of its own: what the runtime keeps over its lives, as heads of conversations, comes
 * from no other world, so that a seed is the same world alone. */
static void play(uint64_t seed)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		exit(play_here(seed));
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
	if (status != 0 && (WIFSIGNALED(status) || getenv("AVA_SIM_GO_ON") == NULL))
		fail_msg("seed %llu%s", (unsigned long long)seed,
			 WIFSIGNALED(status) ? ": killed by a signal" : "");
}

static uint64_t number(const char *name, uint64_t fallback)
{
	const char *s = getenv(name);

	return s != NULL && *s != '\0' ? strtoull(s, NULL, 0) : fallback;
}

TEST(once_broken)
{
	for (size_t i = 0; i < ARRAY_LEN(once_broken); i++)
		play(once_broken[i]);
	memset(sums, 0, sizeof(*sums));
}

TEST(lives)
{
	uint64_t first = number("AVA_SIM_SEED", 1);
	uint64_t n = number("AVA_SIM_LIVES", getenv("AVA_SOAK") ? WORLDS_SOAK : WORLDS);

	for (uint64_t seed = first; seed < first + n; seed++)
		play(seed);
	print_message("figure lives_worlds %ld\nfigure lives_runs %ld\nfigure lives_lives %ld\n"
		      "figure lives_kills %ld\nfigure lives_stops %ld\nfigure lives_jumps %ld\n"
		      "figure lives_requests %ld\nfigure lives_commits %llu\n"
		      "figure lives_cut %ld\nfigure lives_interrupted %ld\n"
		      "figure lives_edits %ld\nfigure lives_parked %ld\n"
		      "figure lives_replayed %u\n",
		      sums->worlds, sums->runs, sums->lives, sums->kills, sums->stops, sums->jumps,
		      sums->requests, (unsigned long long)sums->commits, sums->seen.cut,
		      sums->seen.interrupted, sums->seen.edits, sums->seen.parked,
		      sums->seen.replayed);
	for (int i = 0; i < AVA_NSTATUSES; i++)
		print_message("  %-20s %ld\n", ava_status_name((enum ava_status)i),
			      sums->seen.status[i]);
	if (n < WORLDS)
		return;
	assert_true(sums->kills > (long)n && sums->stops > 0 && sums->jumps > 0 &&
		    sums->steers > 0);
	assert_true(sums->seen.cut > 0 && sums->seen.interrupted > 0 && sums->seen.edits > 0);
	assert_true(sums->seen.parked > 0 && sums->seen.replayed > n);
}

/* Pauses at any place, over kills at any place. */
TEST(pauses)
{
	uint64_t n = getenv("AVA_SOAK") ? WORLDS_SOAK / 4 : WORLDS / 4;

	memset(sums, 0, sizeof(*sums));
	for (uint64_t seed = LIVES_PAUSES; seed < LIVES_PAUSES + n; seed++)
		play(seed);
	print_message("figure lives_paused %ld\n", sums->seen.paused);
	assert_true(sums->seen.paused > (long)n / 2 && sums->kills > (long)n);
	assert_true(sums->seen.replayed > n / 2);
}

/* Standing orders, checks, budgets of weeks, months and tags; clocks that jump by weeks. */
TEST(standing)
{
	uint64_t n = getenv("AVA_SOAK") ? WORLDS_SOAK / 4 : WORLDS / 4;

	memset(sums, 0, sizeof(*sums));
	for (uint64_t seed = LIVES_STANDING; seed < LIVES_STANDING + n; seed++)
		play(seed);
	print_message("figure lives_fired %ld\nfigure lives_missed %ld\nfigure lives_busy %ld\n"
		      "figure lives_short %ld\nfigure lives_asks %ld\nfigure lives_checks %ld\n",
		      sums->seen.fired, sums->seen.missed, sums->seen.busy, sums->seen.short_of,
		      sums->seen.asks, sums->seen.checks);
	assert_true(sums->seen.fired > (long)n && sums->seen.missed > 0 && sums->seen.busy > 0);
	assert_true(sums->seen.short_of > 0 && sums->seen.asks > 0 && sums->seen.checks > 0);
}

static char dir[300];

static int set_up(void **state)
{
	sums = mmap(NULL, sizeof(*sums), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(sums != MAP_FAILED);
	setenv("TZ", "UTC", 1);
	setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789", 1);
	snprintf(dir, sizeof(dir), "%s", unit_tmpdir());
	lives_set_up(dir);
	return provider_configure(NULL);
}

static int clean_up(void **state)
{
	unit_rmdir(dir);
	return 0;
}

UNIT_GROUP(.first = set_up, .last = clean_up);

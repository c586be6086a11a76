/* Worlds of several machines over one database (machines.h), each judged. The seed is printed with
 * what happened; AVA_SIM_SEED=<it> AVA_SIM_MACHINES=1 plays a world again alone, AVA_SIM_GO_ON=1
 * tells all that are broken. Without a seed the worlds are 1, 2, 3 …: 150 of them, or 10,000 with
 * AVA_SOAK=1; and from MACHINES_PEOPLE on 50, or 2,000. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "clockwork.h"
#include "machines.h"
#include "pgmap.h"
#include "provider/model.h"

#define WORLDS      150
#define WORLDS_SOAK 10000
#define PEOPLE      50
#define PEOPLE_SOAK 2000

/* Seeds that once broke something. */
static const uint64_t machines_once[] = {
	643,     326,     606,     2114,    1392,    1793,    1930,    1178,
	157,     5356,    6277,    959,     4697,    1140,    2402,    3718,
	4536,    17927,   1000006, 1000053, 1000129, 1000135, 1000151, 1000181,
	1000183, 1000564, 1002571, 1011746, 1001167, 1002060, 1002875};

static struct {
	long worlds, runs, births, kills, stops, fences, freezes, cuts, aways, leaves, lost_disks,
		freed, twice, moved, interrupted, events, went_back, flushes, takes, broken, wanted,
		words;
} sums;

/* CLOCK_BOOTTIME, by which a machine counts its lease (cluster/member.c). */
int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	int64_t ms = sim.now + sim.mono;

	if (clock != CLOCK_BOOTTIME)
		return __real_clock_gettime(clock, t);
	t->tv_sec = ms / 1000;
	t->tv_nsec = ms % 1000 * 1000000;
	return 0;
}

static void count(const struct machines *w)
{
	sums.worlds++;
	sums.runs += w->nruns;
	sums.births += w->births;
	sums.kills += w->kills;
	sums.stops += w->stops;
	sums.fences += w->fences;
	sums.freezes += w->freezes;
	sums.cuts += w->cuts;
	sums.aways += w->aways;
	sums.leaves += w->leaves;
	sums.lost_disks += w->lost_disks;
	sums.freed += w->freed;
	sums.twice += w->twice;
	sums.moved += w->moved;
	sums.interrupted += w->interrupted;
	sums.events += w->events;
	sums.went_back += pgmap.went_back;
	sums.flushes += (long)pgmap.flushes;
	sums.takes += (long)pgmap.takes;
	sums.wanted += w->wanted;
	sums.words += w->words;
	sums.broken += w->broken[0] != '\0';
}

/* Returns the hash of what happened. */
static uint64_t play(uint64_t seed)
{
	static struct machines w;
	uint64_t hash;

	machines_play(&w, seed);
	if (w.broken[0] != '\0') {
		if (getenv("AVA_SIM_GO_ON") == NULL)
			fwrite(w.trace.data, 1, w.trace.len, stderr);
		fprintf(stderr, "AVA_SIM_SEED=%llu AVA_SIM_MACHINES=1: %s\n",
			(unsigned long long)seed, w.broken);
	} else if (getenv("AVA_SIM_LOGS") != NULL) {
		fwrite(w.trace.data, 1, w.trace.len, stderr);
	}
	count(&w);
	hash = w.hash;
	machines_end(&w);
	if (w.broken[0] != '\0' && getenv("AVA_SIM_GO_ON") == NULL)
		fail_msg("seed %llu: %s", (unsigned long long)seed, w.broken);
	return hash;
}

static uint64_t number(const char *name, uint64_t fallback)
{
	const char *s = getenv(name);

	return s != NULL && *s != '\0' ? strtoull(s, NULL, 0) : fallback;
}

TEST(machines_once_broken)
{
	for (size_t i = 0; i < ARRAY_LEN(machines_once); i++)
		play(machines_once[i]);
}

TEST(machines)
{
	uint64_t first = number("AVA_SIM_SEED", 1);
	uint64_t n = number("AVA_SIM_MACHINES", getenv("AVA_SOAK") ? WORLDS_SOAK : WORLDS);
	clock_t from = clock();

	memset(&sums, 0, sizeof(sums));
	for (uint64_t seed = first; seed < first + n; seed++)
		play(seed);
	print_message("%.1f s of processor time\n", (double)(clock() - from) / CLOCKS_PER_SEC);
	print_message("figure machines_worlds %ld\nfigure machines_runs %ld\n"
		      "figure machines_births %ld\nfigure machines_kills %ld\n"
		      "figure machines_stops %ld\nfigure machines_fences %ld\n"
		      "figure machines_freezes %ld\nfigure machines_cuts %ld\n"
		      "figure machines_aways %ld\nfigure machines_went_back %ld\n"
		      "figure machines_leaves %ld\nfigure machines_lost_disks %ld\n"
		      "figure machines_flushes %ld\nfigure machines_takes %ld\n"
		      "figure machines_moved %ld\nfigure machines_freed %ld\n"
		      "figure machines_interrupted %ld\nfigure machines_twice %ld\n"
		      "figure machines_events %ld\n",
		      sums.worlds, sums.runs, sums.births, sums.kills, sums.stops, sums.fences,
		      sums.freezes, sums.cuts, sums.aways, sums.went_back, sums.leaves,
		      sums.lost_disks, sums.flushes, sums.takes, sums.moved, sums.freed,
		      sums.interrupted, sums.twice, sums.events);
	assert_int_equal(sums.broken, 0);
	if (n < WORLDS)
		return;
	assert_true(sums.kills > (long)n && sums.stops > 0 && sums.fences > 0);
	assert_true(sums.freezes > 0 && sums.cuts > 0 && sums.went_back > 0);
	assert_true(sums.leaves > 0 && sums.lost_disks > 0 && sums.moved > 0);
	assert_true(sums.interrupted > 0 && (n < WORLDS_SOAK || sums.freed > 0));
}

TEST(machines_with_people)
{
	uint64_t n = getenv("AVA_SIM_SEED") ? 0 : getenv("AVA_SOAK") ? PEOPLE_SOAK : PEOPLE;

	memset(&sums, 0, sizeof(sums));
	for (uint64_t i = 0; i < n; i++)
		play(MACHINES_PEOPLE + i);
	print_message("figure people_worlds %ld\nfigure people_runs %ld\n"
		      "figure people_wanted %ld\nfigure people_words %ld\n",
		      sums.worlds, sums.runs, sums.wanted, sums.words);
	assert_int_equal(sums.broken, 0);
	assert_true(n == 0 || (sums.wanted > 0 && sums.words > 0 && sums.moved > 0));
}

/* The same seed is the same world, and another another. */
TEST(machines_again)
{
	for (uint64_t seed = 1; seed < 4; seed++) {
		uint64_t hash = play(seed);

		assert_true(hash == play(seed));
		assert_true(hash != play(seed + 1));
	}
}

static char dir[300];

static int set_up(void **state)
{
	int rv;

	setenv("TZ", "UTC", 1);
	setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789", 1);
	snprintf(dir, sizeof(dir), "%s", unit_tmpdir());
	machines_set_up(dir);
	rv = provider_configure(NULL);
	if (rv == 0)
		play(0); /* what a process draws only once is drawn */
	return rv;
}

static int clean_up(void **state)
{
	unit_rmdir(dir);
	return 0;
}

UNIT_GROUP(.first = set_up, .last = clean_up);

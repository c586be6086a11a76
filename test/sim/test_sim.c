/* Thousands of runs in simulated worlds, each judged (check.c). The seed is
 * printed; world n of a test has seed + n, so a broken one is played again
 * alone with AVA_SIM_SEED=<its seed> AVA_SIM_RUNS=1. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/util.h"
#include "world.h"

#define DEFAULT_RUNS 10000

/* Turns that live; linked with --wrap. */
static int turns;
struct turn *__real_turn_new(void);
void __real_turn_free(struct turn *t);
struct turn *__wrap_turn_new(void);
void __wrap_turn_free(struct turn *t);

struct turn *__wrap_turn_new(void)
{
	turns++;
	return __real_turn_new();
}

void __wrap_turn_free(struct turn *t)
{
	turns -= t != NULL;
	__real_turn_free(t);
}

static uint64_t first_seed;
static long wanted_runs;

static uint64_t number(const char *name, uint64_t fallback)
{
	const char *s = getenv(name);

	return s != NULL && *s != '\0' ? strtoull(s, NULL, 0) : fallback;
}

/* What was met: a simulation that never meets something proves nothing of it. */
struct met {
	long runs, recs, kinds[SIM_NKINDS], replies[SIM_FAILS_BUDGET + 1], status[AVA_NSTATUSES],
		reasons[16], cancelled_in[AGENT_NSTATES];
};

static const char *const reasons[] = {
	"submitted", "final_text", "time",          "cost",        "tokens",  "iterations",
	"cancelled", "internal",   "empty_replies", "model_error", "refusal", "check",
};

static void count(struct met *m, const struct sim_world *w)
{
	m->runs += w->nruns;
	m->recs += (long)w->nrecs;
	for (size_t i = 0; i < w->nrecs; i++) {
		const struct sim_rec *rec = &w->recs[i];

		m->kinds[rec->kind]++;
		if (rec->kind == SIM_REPLY)
			m->replies[rec->v[0]]++;
		if (rec->kind != SIM_END)
			continue;
		m->status[rec->v[0]]++;
		for (size_t k = 0; k < ARRAY_LEN(reasons); k++)
			m->reasons[k] += rec->v[1] == sim_word(reasons[k]);
	}
	for (unsigned i = 0; i < w->nruns; i++)
		if (w->runs[i].cancelled_in >= 0)
			m->cancelled_in[w->runs[i].cancelled_in]++;
}

static uint64_t play(uint64_t seed, struct met *met)
{
	static struct sim_world w;
	const char *broken;
	unsigned run;
	uint64_t hash;

	sim_open(&w, seed);
	sim_play(&w);
	broken = sim_check(&w, &run);
	if (broken != NULL) {
		fprintf(stderr, "AVA_SIM_SEED=%llu AVA_SIM_RUNS=1: run %u broke: %s\n",
			(unsigned long long)seed, run, broken);
		sim_print(&w, run);
	}
	hash = w.hash;
	if (met != NULL)
		count(met, &w);
	sim_close(&w);
	if (broken != NULL)
		fail_msg("seed %llu, run %u: %s", (unsigned long long)seed, run, broken);
	assert_int_equal(turns, 0); /* none leaked */
	return hash;
}

TEST(runs)
{
	struct met met = {0};
	clock_t from = clock();
	double seconds;

	for (uint64_t seed = first_seed; met.runs < wanted_runs; seed++)
		play(seed, &met);
	seconds = (double)(clock() - from) / CLOCKS_PER_SEC;
	print_message("%ld runs, %ld records, %.2f s of processor time\n", met.runs, met.recs,
		      seconds);
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		print_message("  %-14s %ld\n", reasons[i], met.reasons[i]);
	for (int i = 0; i < AGENT_NSTATES; i++)
		print_message("  cancelled while %-8s %ld\n", agent_state_name((enum agent_state)i),
			      met.cancelled_in[i]);
	if (met.runs < DEFAULT_RUNS)
		return;
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		assert_true(met.reasons[i] >= 20);
	for (int i = 0; i < SIM_NKINDS; i++)
		assert_true(met.kinds[i] >= 20);
	for (size_t i = 0; i < ARRAY_LEN(met.replies); i++)
		assert_true(met.replies[i] >= 20);
	for (int i = AGENT_QUEUED; i < AGENT_DONE; i++)
		assert_true(met.cancelled_in[i] >= 20);
}

/* The same seed gives the same record, byte for byte, and another another. */
TEST(deterministic)
{
	for (uint64_t seed = first_seed; seed < first_seed + 50; seed++) {
		uint64_t hash = play(seed, NULL);

		assert_true(hash == play(seed, NULL));
		assert_true(hash != play(seed + 1, NULL));
	}
}

static int seed(void **state)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	first_seed =
		number("AVA_SIM_SEED", (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec % 1000);
	wanted_runs = (long)number("AVA_SIM_RUNS", DEFAULT_RUNS);
	fprintf(stderr, "AVA_SIM_SEED=%llu AVA_SIM_RUNS=%ld\n", (unsigned long long)first_seed,
		wanted_runs);
	return 0;
}

UNIT_GROUP(.first = seed);

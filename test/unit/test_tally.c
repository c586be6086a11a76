/* Counters of a process: which token belongs where, bounds of the histogram, and that names of
 * people, however many and however odd, neither grow nor break them. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <string.h>

#include "agent/turn.h"
#include "base/util.h"
#include "codec/utf8.h"
#include "subagent/tally.h"

static void tally_open(struct tally *t)
{
	*t = (struct tally){0};
}

static void tally_close(struct tally *t)
{
	assert_true(t->nmodels <= TALLY_MODELS);
}

static int64_t tally_sum(const struct tally *t, enum tally_kind kind)
{
	int64_t n = 0;

	for (unsigned i = 0; i < t->nrows[kind]; i++)
		n += t->rows[kind][i].n;
	return n;
}

TEST_IN(tokens, struct tally, t, tally_open, tally_close)
{
	const struct usage u = {.input = 1000,
				.output = 70,
				.cache_read = 600,
				.cache_write = 300,
				.reasoning = 20,
				.cost_microusd = 5};
	const struct tally_model *m = &t->models[1];

	tally_call(t, "a/b", &u, 10);
	tally_call(t, "a/b", &(struct usage){.cost_microusd = -1}, -1); /* nothing is known of it */
	assert_int_equal(t->nmodels, 2);
	assert_string_equal(m->name, "a/b");
	assert_int_equal(m->tokens[TALLY_INPUT], 100);
	assert_int_equal(m->tokens[TALLY_CACHE_READ], 600);
	assert_int_equal(m->tokens[TALLY_CACHE_WRITE], 300);
	assert_int_equal(m->tokens[TALLY_OUTPUT], 50);
	assert_int_equal(m->tokens[TALLY_REASONING], 20);
	assert_int_equal(m->microusd, 5);
	assert_int_equal(m->took[0], 1);
	assert_int_equal(m->ms, 10);
}

TEST_IN(bounds, struct tally, t, tally_open, tally_close)
{
	static const struct {
		int64_t ms;
		unsigned bucket;
	} rows[] = {{0, 0},       {10, 0},      {11, 1},
		    {20, 1},      {81920, 13},  {81921, 14},
		    {327680, 15}, {327681, 16}, {INT64_MAX / 2, 16}};

	assert_int_equal(tally_bound_ms(TALLY_BOUNDS - 1), 327680);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int64_t before = t->models[1].took[rows[i].bucket];

		tally_call(t, "m", &(struct usage){0}, rows[i].ms);
		assert_int_equal(t->models[1].took[rows[i].bucket], before + 1);
	}
}

/* Each call is counted, whoever it is of. */
TEST_IN(many, struct tally, t, tally_open, tally_close)
{
	char model[32], role[32];
	int64_t calls = 0;

	for (int i = 0; i < 500; i++) {
		snprintf(model, sizeof(model), "m/%d", i);
		snprintf(role, sizeof(role), "role%d", i);
		tally_call(t, model, &(struct usage){0}, 1);
		for (int s = 0; s < AVA_NSTATUSES; s++)
			tally_add(t, TALLY_ENDS, role, model, (unsigned)s);
		tally_add(t, TALLY_ENDS, "other", model, AVA_SUCCESS);
		tally_add(t, TALLY_TOOLS, role, NULL, 1);
	}
	assert_int_equal(t->nmodels, TALLY_MODELS);
	for (int i = 0; i < TALLY_MODELS; i++)
		calls += t->models[i].took[0];
	assert_int_equal(calls, 500);
	assert_int_equal(t->models[0].took[0], 500 - (TALLY_MODELS - 1));
	assert_int_equal(tally_sum(t, TALLY_ENDS), 500 * (AVA_NSTATUSES + 1));
	assert_int_equal(tally_sum(t, TALLY_TOOLS), 500);
	assert_true(t->nrows[TALLY_ENDS] <= TALLY_ROWS);
	tally_add(t, TALLY_TOOLS, "role0", NULL, 1); /* a name that has its row keeps it */
	assert_int_equal(t->rows[TALLY_TOOLS][0].n, 2);
}

TEST_IN(names, struct tally, t, tally_open, tally_close)
{
	char name[200];

	for (int i = 0; i < 2; i++)
		tally_call(t, "offline:/tmp/caf\xe9.jsonl", &(struct usage){0}, 1);
	assert_int_equal(t->nmodels, 2);
	assert_string_equal(t->models[1].name, "offline:/tmp/caf?.jsonl");
	memset(name, 'x', sizeof(name)); /* a letter of two bytes lies on the end */
	memcpy(name + TALLY_NAME - 2, "\xc3\xa9 and more", sizeof("\xc3\xa9 and more"));
	for (int i = 0; i < 2; i++)
		tally_call(t, name, &(struct usage){0}, 1);
	assert_int_equal(t->nmodels, 3);
	assert_true(utf8_valid(t->models[2].name, strlen(t->models[2].name)));
	assert_int_equal(strlen(t->models[2].name), TALLY_NAME - 1);
}

/* A replay counts nothing. */
TEST(none)
{
	tally_call(NULL, "m", &(struct usage){0}, 1);
	tally_add(NULL, TALLY_ENDS, "r", "m", 0);
}

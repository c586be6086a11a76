/* The heap of deadlines against a plain search, and without memory. */
#include "unit.h"

#include <ava.h>
#include <stdlib.h>

#include "net/deadline.h"

#define N 400

static uint64_t seed = 0x9e3779b97f4a7c15;

static unsigned rnd(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed % n);
}

static int64_t least(const struct deadline *d, bool *any)
{
	int64_t at = INT64_MAX;

	*any = false;
	for (size_t i = 0; i < N; i++)
		if (d[i].pos != 0) {
			*any = true;
			at = d[i].at < at ? d[i].at : at;
		}
	return at;
}

static void test_random(void **state)
{
	static struct deadline d[N];
	struct deadlines h = {0};
	bool any;

	for (int round = 0; round < 40000; round++) {
		struct deadline *one = &d[rnd(N)], *first;
		/* Filling and emptying by turns, so that it grows and shrinks. */
		unsigned what = rnd(round / 2000 % 2 ? 4 : 9);
		int64_t at;

		if (one->pos == 0 && what > 1)
			assert_int_equal(deadlines_add(&h, one, rnd(1000)), 0);
		else if (what > 2)
			deadlines_move(&h, one, rnd(1000));
		else
			deadlines_del(&h, one); /* in none: nothing */
		at = least(d, &any);
		first = deadlines_first(&h);
		assert_true(any == (first != NULL));
		if (first)
			assert_int_equal(first->at, at);
		if (round % 3 == 0 && first && what == 0)
			deadlines_del(&h, first);
	}
	for (size_t i = 0; i < N; i++)
		deadlines_del(&h, &d[i]);
	assert_null(deadlines_first(&h));
	assert_true(h.cap <= 128); /* given back */
	deadlines_fini(&h);
}

static void test_no_memory(void **state)
{
	static struct deadline d[200];
	struct deadlines h = {0};
	size_t in = 0;

	for (size_t i = 0; i < 200; i++) {
		int rv;

		fault_alloc(0);
		rv = deadlines_add(&h, &d[i], (int64_t)(200 - i));
		if (!fault_alloc_end())
			assert_int_equal(rv, 0); /* needed none */
		else
			assert_int_equal(rv, AVA_ENOMEM);
		if (rv != 0) {
			assert_int_equal(d[i].pos, 0);
			assert_int_equal(deadlines_add(&h, &d[i], (int64_t)(200 - i)), 0);
		}
		in++;
		assert_int_equal(h.len, in);
		assert_ptr_equal(deadlines_first(&h), &d[i]);
	}
	for (size_t i = 0; i < 200; i++) { /* a heap that cannot shrink is no error */
		fault_alloc(0);
		deadlines_del(&h, &d[i]);
		fault_alloc_end();
	}
	deadlines_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Reuse, zeroing, alignment, the bound. */
#include "unit.h"

#include <stdalign.h>
#include <string.h>

#include "base/slab.h"

static void test_reuse(void **state)
{
	struct slab s;
	void *a, *b;

	slab_init(&s, 40, 100);
	a = slab_get(&s);
	memset(a, 0xff, 40);
	slab_put(&s, a);
	b = slab_get(&s);
	assert_ptr_equal(a, b); /* the last freed comes first: its cache lines are warm */
	for (int i = 0; i < 40; i++)
		assert_int_equal(((char *)b)[i], 0);
	slab_put(&s, NULL);
	assert_int_equal(s.live, 1);
	slab_fini(&s);
	slab_fini(&s); /* twice is harmless */
}

static void test_many(void **state)
{
	enum { N = 5000 };
	static unsigned char *got[N];
	struct slab s;

	slab_init(&s, 100, N);
	for (int i = 0; i < N; i++) {
		got[i] = slab_get(&s);
		assert_non_null(got[i]);
		assert_int_equal((uintptr_t)got[i] % alignof(max_align_t), 0);
		memset(got[i], i % 251, 100);
	}
	assert_null(slab_get(&s)); /* at the bound */
	for (int i = 0; i < N; i++)
		for (int j = 0; j < 100; j++)
			assert_int_equal(got[i][j], i % 251); /* none overlaps */
	slab_put(&s, got[17]);
	assert_ptr_equal(slab_get(&s), got[17]);
	assert_null(slab_get(&s));
	slab_fini(&s);
}

/* An object larger than a block has one to itself. */
static void test_large(void **state)
{
	struct slab s;
	char *a, *b;

	slab_init(&s, 200000, 2);
	a = slab_get(&s);
	b = slab_get(&s);
	memset(a, 1, 200000);
	memset(b, 2, 200000);
	assert_int_equal(a[199999], 1);
	assert_null(slab_get(&s));
	slab_fini(&s);
}

static void without_memory(long k)
{
	struct slab s;
	size_t got = 0;

	slab_init(&s, 1000, 200);
	for (int i = 0; i < 200; i++)
		got += slab_get(&s) != NULL;
	assert_int_equal(s.live, got);
	assert_true(got >= 199);
	slab_fini(&s);
}

static void test_out_of_memory(void **state)
{
	FAULT_LOOP(k, without_memory(k));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reuse),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Each piece of work is done once, by one of the threads, and stopping stops. */
#include "unit.h"

#include <stdlib.h>

#include "base/crew.h"

#define N 10000

static unsigned done[N], threads[CREW_THREADS];

static bool once(size_t i, unsigned thread, void *user)
{
	assert_ptr_equal(user, done);
	__atomic_fetch_add(&done[i], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&threads[thread], 1, __ATOMIC_RELAXED);
	return true;
}

TEST(each_once)
{
	static const size_t counts[] = {0, 1, 2, 3, N};

	for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++) {
		size_t sum = 0;

		for (size_t i = 0; i < N; i++)
			done[i] = 0;
		for (size_t i = 0; i < CREW_THREADS; i++)
			threads[i] = 0;
		crew_run(counts[c], once, done);
		for (size_t i = 0; i < N; i++)
			assert_int_equal(done[i], i < counts[c]);
		for (size_t i = 0; i < CREW_THREADS; i++)
			sum += threads[i];
		assert_int_equal(sum, counts[c]);
	}
}

static bool until_ten(size_t i, unsigned thread, void *user)
{
	size_t *n = user;

	(void)thread;
	__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
	return i < 10;
}

TEST(stops)
{
	size_t n = 0;

	crew_run(N, until_ten, &n);
	/* Those up to the tenth, and what the other threads had begun. */
	assert_true(n >= 11 && n < N);
}

/* A turn: empty when new, everything in one arena. */
#include <string.h>

#include "unit.h"

#include "agent/turn.h"

static void test_new(void **state)
{
	struct turn *t = turn_new();

	assert_non_null(t);
	assert_string_equal(t->text, "");
	assert_string_equal(t->thinking, "");
	assert_string_equal(t->request_id, "");
	assert_string_equal(t->wire, "");
	assert_int_equal(t->ncalls, 0);
	assert_int_equal(t->usage.cost_microusd, -1); /* none given, not free */
	assert_int_equal(t->mem.max, TURN_MAX_BYTES);
	t->text = arena_copy(&t->mem, "hello", 5);
	assert_string_equal(t->text, "hello");
	turn_free(t);
	turn_free(NULL);
}

static void test_no_memory(void **state)
{
	fault_alloc(0);
	assert_null(turn_new());
	assert_true(fault_alloc_end());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Shared models: one copy for equal ones, gone with its last user. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "provider/model_share.h"

static struct model offline(const char *script)
{
	struct model m;
	char id[200];

	snprintf(id, sizeof(id), "offline:%s", script);
	memset(&m, 0, sizeof(m));
	assert_int_equal(model_resolve(id, &m, NULL, NULL), 0);
	return m;
}

static void test_one_copy_of_equal_ones(void **state)
{
	struct model a = offline("/a"), b = offline("/b"), again = offline("/a");
	const struct model *one, *two, *other;

	one = model_share(&a);
	two = model_share(&again);
	other = model_share(&b);
	assert_ptr_equal(one, two);
	assert_ptr_not_equal(one, other);
	assert_string_equal(model_config(one), "/a");
	model_unshare(one);
	assert_string_equal(model_config(two), "/a"); /* it has a user yet */
	model_unshare(two);
	model_unshare(other);
	model_unshare(NULL);
}

static void test_other_facts_are_another_copy(void **state)
{
	struct model a = offline("/a"), less = a;
	const struct model *one, *two, *three;

	assert_true(model_drop(&less, "thinking"));
	one = model_share(&a);
	two = model_share(&less);
	assert_ptr_not_equal(one, two);
	assert_true(model_takes(one, "thinking"));
	assert_false(model_takes(two, "thinking"));
	model_unshare(two); /* it goes, the listed one stays */
	three = model_share(&a);
	assert_ptr_equal(one, three);
	model_unshare(one);
	model_unshare(three);
}

static void test_out_of_memory(void **state)
{
	struct model a = offline("/a");
	const struct model *m;

	FAULT_LOOP(k, {
		m = model_share(&a);
		if (m)
			assert_string_equal(model_config(m), "/a");
		model_unshare(m);
	});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_copy_of_equal_ones),
		cmocka_unit_test(test_other_facts_are_another_copy),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

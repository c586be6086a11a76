/* The journal on a real disk: every operation, levels, order, bounds, life. */
#include "journal_help.h"

static void test_commit_and_read(void **state)
{
	struct rig r;

	rig_init(&r);
	rig_open(&r);
	assert_true(r.rec.clean);
	rig_append(&r, "logs/a.jsonl", "one\n");
	rig_append(&r, "logs/a.jsonl", "two\n");
	rig_append(&r, "b.jsonl", "b\n");
	rig_holds(&r, "logs/a.jsonl", "one\ntwo\n");
	rig_holds(&r, "b.jsonl", "b\n");
	rig_close(&r);
	rig_holds(&r, "FORMAT", "ava 1\n");
	rig_open(&r);
	assert_true(r.rec.clean);
	assert_int_equal(r.rec.redone_batches, 0);
	rig_append(&r, "logs/a.jsonl", "three\n");
	rig_holds(&r, "logs/a.jsonl", "one\ntwo\nthree\n");
	rig_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commit_and_read),
	};

	return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}

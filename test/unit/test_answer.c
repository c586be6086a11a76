/* What counts as yes and no, and that nothing else does. */
#include "unit.h"

#include "ava/answer.h"
#include "base/util.h"

static const struct {
	const char *text;
	enum answer want;
} cases[] = {
	{"yes", ANSWER_YES},
	{"Yes", ANSWER_YES},
	{"  YES!  ", ANSWER_YES},
	{"y", ANSWER_YES},
	{"y\n", ANSWER_YES},
	{"yes, please.", ANSWER_YES},
	{"Go ahead", ANSWER_YES},
	{"ok", ANSWER_YES},
	{"sure", ANSWER_YES},
	{"no", ANSWER_NO},
	{"No.", ANSWER_NO},
	{"n", ANSWER_NO},
	{"no, thanks", ANSWER_NO},
	{"don't", ANSWER_NO},
	{"cancel", ANSWER_NO},
	{"", ANSWER_UNCLEAR},
	{"   ", ANSWER_UNCLEAR},
	{"yes but cheaper", ANSWER_UNCLEAR},
	{"yesterday", ANSWER_UNCLEAR},
	{"no idea, yes?", ANSWER_UNCLEAR},
	{"not yes", ANSWER_UNCLEAR},
	{"yes no", ANSWER_UNCLEAR},
	{"what would it do?", ANSWER_UNCLEAR},
	{"\xff\xfe", ANSWER_UNCLEAR},
	{"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
	 ANSWER_UNCLEAR},
	{"yes                                                                             ",
	 ANSWER_YES},
};

static void test_answers(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		print_message("\"%.30s\"\n", cases[i].text);
		assert_int_equal(answer_parse(cases[i].text), cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers)};

	return cmocka_run_group_tests_name("answer", tests, NULL, NULL);
}

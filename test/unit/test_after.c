/* The order of a group's runs: names, circles, and the order in which they can begin. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include <ava.h>

#include "base/error.h"
#include "base/util.h"
#include "subagent/after.h"

struct given { /* "a: b c": a waits for b and c; ":" alone: a run without a name */
	const char *runs[6];
	const char *order; /* in which they begin */
	const char *error; /* a part of the sentence */
};

/* Reads "a: b c" in place. */
static struct after_asked asked_of(char *text, const char *words[8])
{
	struct after_asked a = {.id = strtok(text, ": ")};

	if (text[0] == ':')
		a.id = NULL;
	a.after = words;
	while ((words[a.nafter] = strtok(NULL, ": ")) != NULL)
		a.nafter++;
	return a;
}

TEST(orders_and_sentences)
{
	static const struct given cases[] = {
		{{"a", "b", "c"}, "123", NULL},
		{{"a: b", "b: c", "c"}, "321", NULL},
		{{"d: b c", "b: a", "c: a", "a"}, "4231", NULL}, /* a diamond, the end first */
		{{"a", "b: a a a", ":"}, "123", NULL},
		{{"a: a"}, NULL, "in a circle (a after a)"},
		{{"x", "a: b x", "b: c", "c: a", "d: a"},
		 NULL,
		 "in a circle (a after b after c after a)"},
		{{"d: a", "a: b", "b: a"}, NULL, "in a circle (a after b after a)"},
		{{"a", "b: c"},
		 NULL,
		 "run 2 of the group is after c, which is no run's id: there are a, b"},
		{{"a", "b", "a"}, NULL, "runs 1 and 3 of the group have the same id, a"},
		{{"a", "1b"}, NULL, "the id of run 2 must have 1 to 32 letters"},
		{{"a\033[31m"}, NULL, "the id of run 1 must have"},
		{{"a", "b: c\033[31m"}, NULL, "run 2 of the group is after a text, which is no"},
		{{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}, NULL, "the id of run 1 must have"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct after_asked runs[6];
		struct after_set of[6];
		struct ava_error err = {0};
		const char *words[6][8];
		char text[6][80], order[8] = "";
		int numbers[AFTER_MAX];
		size_t n = 0;

		for (; n < 6 && cases[i].runs[n]; n++) {
			snprintf(text[n], sizeof(text[n]), "%s", cases[i].runs[n]);
			runs[n] = asked_of(text[n], words[n]);
		}
		assert_int_equal(after_read(of, runs, n, &err), cases[i].error ? AVA_EINVAL : 0);
		if (cases[i].error) {
			assert_non_null(strstr(err.text, cases[i].error));
			assert_null(strchr(err.text, '\033'));
			continue;
		}
		assert_int_equal(after_order(of, n, numbers), n);
		for (size_t k = 0; k < n; k++)
			order[k] = (char)('0' + numbers[k]);
		assert_string_equal(order, cases[i].order);
	}
}

/* As many runs as a group may have, each after all before it, by names of the greatest length, and
 * then all of them in one circle. */
TEST(a_hundred)
{
	static char names[AFTER_MAX][AFTER_NAME_MAX + 1];
	static const char *all[AFTER_MAX];
	struct after_asked runs[AFTER_MAX];
	struct after_set of[AFTER_MAX];
	struct ava_error err = {0};
	int order[AFTER_MAX];

	for (size_t i = 0; i < AFTER_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "a-run-with-a-name-of-32-bytes-%02zu", i);
		all[i] = names[i];
		runs[i] = (struct after_asked){names[i], all, i};
	}
	assert_int_equal(after_read(of, runs, AFTER_MAX, &err), 0);
	assert_int_equal(after_order(of, AFTER_MAX, order), AFTER_MAX);
	for (int i = 0; i < AFTER_MAX; i++) {
		assert_int_equal(order[i], i + 1);
		runs[i] = (struct after_asked){names[i], &all[(i + AFTER_MAX - 1) % AFTER_MAX], 1};
	}
	assert_int_equal(after_read(of, runs, AFTER_MAX, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "…"));
	runs[7] = (struct after_asked){names[7], (const char *const[]){"gone"}, 1};
	assert_int_equal(after_read(of, runs, AFTER_MAX, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "run 8 of the group is after gone"));
}

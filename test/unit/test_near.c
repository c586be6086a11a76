/* Distances of words, and the word that is meant. */
#include "unit.h"

#include <string.h>

#include "base/near.h"
#include "base/util.h"

TEST(distance)
{
	static const struct {
		const char *a, *b;
		unsigned want;
	} cases[] = {
		{"", "", 0},        {"", "abc", 3},    {"abc", "", 3},
		{"abc", "abc", 0},  {"abc", "abd", 1}, {"abc", "ab", 1},
		{"abc", "xabc", 1}, {"abc", "acb", 1}, {"kitten", "sitting", 3},
		{"max", "runs", 4}, {"ab", "ba", 1},   {"timeout", "timoeut", 1},
	};
	char longer[60];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(near_distance(cases[i].a, strlen(cases[i].a), cases[i].b,
					       strlen(cases[i].b)),
				 cases[i].want);
	memset(longer, 'a', sizeof(longer));
	assert_int_equal(near_distance(longer, 48, longer, 48), 0);
	assert_int_equal(near_distance(longer, 49, longer, 48), 99);
	assert_int_equal(near_distance(longer, 48, longer, 49), 99);
}

TEST(best)
{
	static const struct {
		const char *name, *want; /* NULL: nothing is near */
	} cases[] = {
		{"tiemout", "timeout"},
		{"timeouts", "timeout"},
		{"maximum", NULL},
		{"mx", "max"},
		{"x", NULL},
		{"", NULL},
		{"timeout", "timeout"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct near n = near_start(cases[i].name);

		near_words(&n, "max timeout");
		near_words(&n, "");
		near_word(&n, "queue", 5);
		print_message("%s\n", cases[i].name);
		assert_int_equal(n.len, cases[i].want ? strlen(cases[i].want) : 0);
		if (cases[i].want)
			assert_memory_equal(n.best, cases[i].want, n.len);
	}
}

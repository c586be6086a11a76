/* Forms of ids, one digit more while taken, suffixes, and the word lists. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "base/util.h"

/* Says yes for the first `left` questions and keeps what was asked. */
struct asked {
	int left, n;
	char seen[64][48];
};

static bool taken_cb(const char *id, void *user)
{
	struct asked *a = user;

	if (a->n < (int)ARRAY_LEN(a->seen))
		snprintf(a->seen[a->n], sizeof(a->seen[0]), "%s", id);
	a->n++;
	return a->left-- > 0;
}

TEST(random)
{
	unsigned char a[300] = {0}, b[300] = {0};
	size_t zeros = 0;

	id_random(a, sizeof(a));
	id_random(b, sizeof(b));
	assert_memory_not_equal(a, b, sizeof(a));
	for (size_t i = 0; i < sizeof(a); i++)
		zeros += a[i] == 0;
	assert_true(zeros < 30); /* filled to the end: 1.2 expected */
}

TEST(session)
{
	struct session_id id = id_session();

	assert_int_equal(strlen(id.text), 36);
	for (int i = 0; i < 36; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23)
			assert_int_equal(id.text[i], '-');
		else
			assert_non_null(strchr("0123456789abcdef", id.text[i]));
	}
	assert_int_equal(id.text[14], '4');
	assert_non_null(strchr("89ab", id.text[19]));
	assert_string_not_equal(id.text, id_session().text);
}

TEST(short)
{
	struct asked a = {.left = 2};
	char id[24];

	id_short('P', NULL, NULL, id);
	assert_int_equal(strlen(id), 8);
	assert_true(id_is_proposal(id));
	assert_false(id_is_run(id));
	id_short('S', taken_cb, &a, id);
	assert_int_equal(a.n, 3);
	assert_int_equal(strlen(id), 10);      /* two digits more */
	assert_memory_equal(id, a.seen[0], 8); /* of the same id */
	assert_true(id_is_run(id));
}

/* Past 20 digits a new one is drawn. */
TEST(short_never_gives_up)
{
	struct asked a = {.left = 16};
	char id[24];

	id_short('S', taken_cb, &a, id);
	assert_int_equal(a.n, 17);
	assert_int_equal(strlen(a.seen[14]), 22);
	assert_int_equal(strlen(a.seen[15]), 8);
	assert_int_equal(strlen(id), 9);
	assert_memory_equal(id, a.seen[15], 8);
}

TEST(trace_name)
{
	struct asked a = {.left = 2};
	struct trace_name t;
	char want[64];

	id_trace_name(taken_cb, &a, &t);
	assert_int_equal(a.n, 3);
	snprintf(want, sizeof(want), "%s-2", a.seen[0]);
	assert_string_equal(a.seen[1], want);
	snprintf(want, sizeof(want), "%s-3", a.seen[0]);
	assert_string_equal(t.text, want);
	id_trace_name(NULL, NULL, &t);
	assert_non_null(strchr(t.text, '-'));
}

static void check_words(const char *const *words, size_t n)
{
	assert_true(n >= 140);
	for (size_t i = 0; i < n; i++) {
		assert_true(strlen(words[i]) >= 2 && strlen(words[i]) <= 12);
		assert_int_equal(strspn(words[i], "abcdefghijklmnopqrstuvwxyz"), strlen(words[i]));
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(words[i], words[j]);
	}
}

TEST(words)
{
	check_words(names_adjectives, names_nadjectives);
	check_words(names_nouns, names_nnouns);
}

TEST(forms)
{
	static const struct {
		const char *s;
		bool run;
	} cases[] = {
		{"S-7f3a2b", true},    {"S-7f3a2b99999999999999", true},
		{"S-7f3a2", false},    {"S-7f3a2b999999999999999", false},
		{"S-7F3A2B", false},   {"S-7f3a2g", false},
		{"P-7f3a2b", false},   {"s-7f3a2b", false},
		{"S-7f3a2b\n", false}, {"S-7f3a2b/..", false},
		{"S7f3a2b", false},    {"", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (id_is_run(cases[i].s) != cases[i].run)
			fail_msg("%s", cases[i].s);
	assert_false(id_is_run(NULL));
	assert_true(id_is_proposal("P-19c0de"));
}

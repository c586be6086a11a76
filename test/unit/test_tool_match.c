/* Patterns: which lines match, that blocks and single lines agree, and that
 * expressions made to explode end soon. */
#include "unit.h"

#include <ava.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "tool/job.h"
#include "tool/scan.h"

static atomic_bool stop;
static struct gate gate = {.stop = &stop, .deadline_ms = INT64_MAX};

/* The numbers of the lines that match, as "1,3"; or "code -2". */
static void lines_of(const char *pattern, unsigned flags, const char *data, size_t len, char *out,
		     size_t size)
{
	struct match *m;
	struct match_line line;
	size_t from = 0, n = 0, counted = 0;
	int number = 1, rv = match_new(&m, pattern, flags, &gate, NULL);

	out[0] = '\0';
	while (rv == 0 && (rv = match_next(m, data, len, &from, &line, NULL)) == 1) {
		assert_true(line.start <= line.at && line.at <= line.end && line.end <= len);
		assert_true(line.start == 0 || data[line.start - 1] == '\n');
		for (; counted < line.start; counted++)
			number += data[counted] == '\n';
		n += (size_t)snprintf(out + n, size - n, "%s%d", n != 0 ? "," : "", number);
		rv = 0;
	}
	if (rv != 0)
		snprintf(out, size, "code %d", rv);
	match_free(m);
}

#define R MATCH_REGEX
#define I MATCH_IGNORE_CASE
static const struct {
	const char *pattern;
	unsigned flags;
	const char *data, *lines;
} cases[] = {
	{"b", 0, "a\nb\nc\nbb\n", "2,4"},
	{"b", 0, "b", "1"},
	{"b", 0, "", ""},
	{"b", 0, "x\nb", "2"},
	{".", 0, "a\n.\n", "2"},
	{"a\rb", 0, "a\rb\r\n", "1"},
	{"B", I, "a\nb\nB\n", "2,3"},
	{"\xc3\x84", I, "\xc3\xa4\nx\n", "1"},
	{"a+", I, "aa\nA+\n", "2"}, /* still plain text */
	{"--pre=sh", 0, "x --pre=sh y\n", "1"},
	{"-f/etc/shadow", 0, "a\n-f/etc/shadow\n", "2"},
	{"b+", R, "a\nb\nc\nbb\n", "2,4"},
	{"^b$", R, "b\nab\nb\r\nbb\nb", "1,3,5"},
	{"^$", R, "\n\nx\n\n", "1,2,4"},
	{"^$", R, "x\r\n\r\ny\r\n", "2"},
	{"$", R, "a\nb\n", "1,2"},
	{"a*", R, "b\nb\n", "1,2"},
	{"a\\s+b", R, "a b\na\nb\na  b\n", "1,4"}, /* not over a line's end */
	{"a[^x]*b", R, "a\nb\na1b\n", "3"},
	{"[^x]++$", R, "ab\nx\ncd\n", "1,3"},
	{"\\Ab", R, "a\nb\n", "2"},
	{"b\\z", R, "ab\nc\n", "1"},
	{"a(?=\\s)", R, "a\na b\n", "2"},
	{"(?<=\\n)a", R, "a\na\n", ""},
	{"(?s)a.b", R, "a\nb\na-b\n", "3"},
	{"(?i)B", R, "a\nb\nB\n", "2,3"},
	{"\\bfoo\\b", R, "foo\nfoobar\na foo\n", "1,3"},
	{"(a)\\1", R, "aa\na\n", "1"},
	{"\xc3\xa4.x", R, "\xc3\xa4\xc3\xb6x\n", "1"},
	{"\xc3\xa4.x", R, "\xff\xfe\n\xc3\xa4\xc3\xb6x\n\xc3", "2"}, /* in bytes that are no text */
	{"caf.", R, "caf\xc3\xa9\n", "1"},
	{"x$", R, "x\rx\n", "1"},
	{"(", R, "", "code -2"},
	{"a{1,2", R, "a{1,2\n", "1"},
	{"[z-a]", R, "", "code -2"},
	{"\\C", R, "", "code -2"},
	{"(*NO_JIT)a", R, "a\n", "1"},
	{"(?R)", R, "a\n", "code -2"},
	{"a\nb", 0, "", "code -2"},
	{"", 0, "", "code -2"},
};

TEST(table)
{
	char got[100];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (unsigned extra = 0; extra <= MATCH_NO_JIT; extra += MATCH_NO_JIT) {
			lines_of(cases[i].pattern, cases[i].flags | extra, cases[i].data,
				 strlen(cases[i].data), got, sizeof(got));
			if (strcmp(got, cases[i].lines) != 0)
				fail_msg("%s%s: lines \"%s\", expected \"%s\"", cases[i].pattern,
					 extra != 0 ? " (no JIT)" : "", got, cases[i].lines);
		}
	}
}

/* The sentence names what is wrong and what to do. */
TEST(sentences)
{
	char text[MATCH_PATTERN_MAX + 2];
	struct ava_error err;
	struct match *m;

	assert_int_equal(match_new(&m, "a(b", MATCH_REGEX, &gate, &err), AVA_EINVAL);
	assert_null(m);
	assert_non_null(strstr(err.text, "missing closing parenthesis"));
	assert_non_null(strstr(err.text, "character 4"));
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(match_new(&m, text, 0, &gate, &err), AVA_EINVAL);
	assert_int_equal(match_new(&m, "((a{1000}){1000}){1000}", MATCH_REGEX, &gate, &err),
			 AVA_EINVAL);
}

/* (x|y) in front keeps the meaning and, by its "(?=)", forces single lines. */
TEST(blocks_agree_with_lines)
{
	static const char *const patterns[] = {
		"a",       "ab",    "a+b",    "^a",     "b$",       "^$",
		"^a*$",    "a.b",   "[^a]b",  "a|b\\b", "b\\s",     "(a|b)+\\d",
		"\\d\\d$", "a\\Wb", "^\\s*a", "[^b]*$", "\xc3\xa4", "\\w\xc3\xa4",
	};
	static const char *const pieces[] = {
		"a", "b", "ab", " ", "\n", "\n", "\r\n", "7", "\xc3\xa4", "\xc3", "xxxxxxxxxx", "-",
	};
	size_t size = 200000, n;
	char *data = malloc(size), *a = malloc(size), *b = malloc(size);

	srand(11);
	for (int round = 0; round < 60; round++) {
		size_t want = round % 10 == 0 ? 150000 : (size_t)(rand() % 400);

		for (n = 0; n < want;) {
			const char *p = pieces[(size_t)rand() % ARRAY_LEN(pieces)];

			memcpy(data + n, p, strlen(p));
			n += strlen(p);
		}
		for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
			char by_line[100];

			snprintf(by_line, sizeof(by_line), "(?=)(?:%s)", patterns[i]);
			lines_of(patterns[i], MATCH_REGEX, data, n, a, size);
			lines_of(by_line, MATCH_REGEX, data, n, b, size);
			if (strcmp(a, b) != 0)
				fail_msg("round %d, %s: %.100s and %.100s", round, patterns[i], a,
					 b);
		}
	}
	free(data);
	free(a);
	free(b);
}

/* Expressions that explode, on texts that make them. */
TEST(bombs)
{
	static const char *const bombs[] = {
		"(a+)+$",         "(a|aa)+$",
		"(a|a?)+$",       "(.*a){20}b$",
		"(a*)*!!",        "(?:a?){30}a{30}!!",
		"((a+)*)+!!",     "(a+)+\\1$",
		"a*a*a*a*a*a*!!", "a+b",
		"[^x!]+b",        "(a|[ab])+!!",
		"(?=(a+))a*b\\1", "^(([a-z])+.)+[A-Z]([a-z])+$",
	};
	size_t len = 300000;
	char *data = malloc(len), got[2000];
	int refused = 0;

	memset(data, 'a', len);
	for (size_t i = 30000; i < len; i += 30000)
		data[i] = i < len / 2 ? '\n' : '!';
	memcpy(data + len - 3, "!b!", 3);
	for (size_t i = 0; i < ARRAY_LEN(bombs); i++) {
		for (unsigned extra = 0; extra <= MATCH_NO_JIT; extra += MATCH_NO_JIT) {
			int64_t began = clock_mono_ms(), took;

			gate.deadline_ms = began + 400;
			lines_of(bombs[i], MATCH_REGEX | extra, data, len, got, sizeof(got));
			took = clock_mono_ms() - began;
			print_message("%s%s: \"%s\" in %d ms\n", bombs[i], extra ? " (no JIT)" : "",
				      got, (int)took);
			refused += strcmp(got, "code -2") == 0;
			assert_true(strcmp(got, "code -2") == 0 || strcmp(got, "code -14") == 0 ||
				    got[0] == '\0');
			assert_true(took < 10000);
		}
	}
	gate.deadline_ms = INT64_MAX;
	assert_true(refused > 4);
	free(data);
}

static void compile_and_match(void)
{
	char got[100];

	lines_of("a+b", MATCH_REGEX, "ab\n", 3, got, sizeof(got));
	assert_true(strcmp(got, "1") == 0 || strcmp(got, "code -1") == 0);
}

TEST(no_memory)
{
	FAULT_LOOP(k, compile_and_match());
}

/* The option parser: forms of options, types, ranges, and the words of its
 * errors, which are what a person sees. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "cli/opts.h"

static struct values {
	bool all, json;
	const char *role, *form, *session;
	struct opt_list files;
	int64_t last, timeout, cents;
} v;

static const char *const forms[] = {"text", "json", NULL};

#define AT(field) offsetof(struct values, field)
static const struct opt opts[] = {
	{.name = "all", .letter = 'a', .type = OPT_FLAG, .field = AT(all)},
	{.name = "json", .letter = 'j', .type = OPT_FLAG, .field = AT(json)},
	{.name = "role", .letter = 'r', .type = OPT_STR, .value = "ROLE", .field = AT(role)},
	{"continue", 'c', OPT_STR, "SESSION", .absent = "latest", .field = AT(session)},
	{"output", 'o', OPT_STR, "FORM", .words = forms, .field = AT(form)},
	{.name = "file", .letter = 'F', .type = OPT_LIST, .value = "FILE", .field = AT(files)},
	{"last", 'n', OPT_COUNT, "N", .field = AT(last)},
	{.name = "timeout", .type = OPT_SECONDS, .value = "SECONDS", .field = AT(timeout)},
	{.name = "max-cost-cents", .type = OPT_CENTS, .value = "CENTS", .field = AT(cents)},
};

static struct ava_error err;
static bool help;
static char *args[80];

/* "a b c" as arguments; returns what opts_parse does. */
static int parse(const char *line)
{
	static char copy[4096];
	int argc = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *p = strtok(copy, " "); p != NULL; p = strtok(NULL, " "))
		args[argc++] = p;
	err.text[0] = '\0';
	return opts_parse(opts, ARRAY_LEN(opts), &v, argc, args, &help, &err);
}

TEST(forms)
{
	assert_int_equal(parse(""), 0);
	assert_false(v.all || v.json || help);
	assert_null(v.role);
	assert_int_equal(v.files.n, 0);
	assert_true(v.last == 0 && v.timeout == 0 && v.cents == 0);

	assert_int_equal(parse("one --all two -n 5 three"), 3);
	assert_string_equal(args[0], "one");
	assert_string_equal(args[1], "two");
	assert_string_equal(args[2], "three");
	assert_true(v.all);
	assert_int_equal(v.last, 5);

	assert_int_equal(parse("-aj -n7 --role=x"), 0);
	assert_true(v.all && v.json);
	assert_int_equal(v.last, 7);
	assert_string_equal(v.role, "x");

	assert_int_equal(parse("-ajn8 --last 9"), 0); /* the later one counts */
	assert_int_equal(v.last, 9);

	assert_int_equal(parse("-F a --file=b=c -Fd -- -a --json -"), 3);
	assert_int_equal(v.files.n, 3);
	assert_string_equal(v.files.items[1], "b=c");
	assert_string_equal(v.files.items[2], "d");
	assert_false(v.all || v.json);
	assert_string_equal(args[0], "-a");
	assert_string_equal(args[2], "-");

	assert_int_equal(parse("- --help"), 1);
	assert_true(help);
	assert_int_equal(parse("-h"), 0);
	assert_true(help);
}

/* A value that may be left out, at the end and before another option. */
TEST(absent)
{
	assert_int_equal(parse("-c"), 0);
	assert_string_equal(v.session, "latest");
	assert_int_equal(parse("--continue --json"), 0);
	assert_string_equal(v.session, "latest");
	assert_true(v.json);
	assert_int_equal(parse("-c 4f71 word"), 1);
	assert_string_equal(v.session, "4f71");
	assert_int_equal(parse("-c4f71"), 0);
	assert_string_equal(v.session, "4f71");
	assert_int_equal(parse("word"), 1);
	assert_null(v.session);
	assert_true(parse("--role") < 0); /* others need theirs */
}

TEST(values)
{
	assert_int_equal(parse("--timeout 1.5 --max-cost-cents 2.5"), 0);
	assert_int_equal(v.timeout, 1500);
	assert_int_equal(v.cents, 25000);
	assert_int_equal(parse("--max-cost-cents 0 --timeout 0.001"), 0);
	assert_int_equal(v.cents, AVA_FREE_ONLY);
	assert_int_equal(v.timeout, 1);
}

TEST(errors)
{
	static const struct {
		const char *line, *text;
	} cases[] = {
		{"--timeout abc", "--timeout must be a number of seconds above 0, not \"abc\""},
		{"--timeout 0", "--timeout must be a number of seconds above 0, not \"0\""},
		{"--timeout -1", "--timeout must be a number of seconds above 0, not \"-1\""},
		{"--timeout 1e3", "--timeout must be a number of seconds above 0, not \"1e3\""},
		{"--timeout 99999999999999999999",
		 "--timeout must be a number of seconds above 0, not \"99999999999999999999\""},
		{"--max-cost-cents -1", "--max-cost-cents must be a number of cents, 0 (free "
					"models only) or more, not \"-1\""},
		{"--last 0", "--last must be a whole number of at least 1, not \"0\""},
		{"--last 1.0", "--last must be a whole number of at least 1, not \"1.0\""},
		{"--last 0x10", "--last must be a whole number of at least 1, not \"0x10\""},
		{"-nabc", "--last must be a whole number of at least 1, not \"abc\""},
		{"--last", "--last needs a value (N)"},
		{"-n", "--last needs a value (N)"},
		{"--role=", "--role needs a ROLE that is not empty"},
		{"--all=1", "--all takes no value"},
		{"--rol x", "there is no option --rol; did you mean --role?"},
		{"--verbosely", "there is no option --verbosely; --help lists them"},
		{"-x", "there is no option -x; --help lists them"},
		{"-o xml", "--output is one of text, json, not \"xml\""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(parse(cases[i].line), AVA_EINVAL);
		assert_string_equal(err.text, cases[i].text);
	}
}

TEST(list_is_bounded)
{
	char line[1024] = "";

	for (int i = 0; i < OPT_LIST_MAX; i++)
		strcat(line, "-Fx ");
	assert_int_equal(parse(line), 0);
	assert_int_equal(v.files.n, OPT_LIST_MAX);
	strcat(line, "-Fx");
	assert_int_equal(parse(line), AVA_EINVAL);
	assert_string_equal(err.text, "--file can be given 64 times at most");
}

TEST(fixed)
{
	static const struct {
		const char *text;
		int decimals;
		bool ok;
		int64_t n;
	} cases[] = {
		{"0", 3, true, 0},
		{"12", 3, true, 12000},
		{"1.5", 3, true, 1500},
		{".5", 3, true, 500},
		{"5.", 3, true, 5000},
		{"9223372036854775807", 0, true, INT64_MAX},
		{"9223372036854775808", 0, false, 0},
		{"9223372036854775807", 1, false, 0},
		{"1.2345", 3, false, 0},
		{"", 3, false, 0},
		{".", 3, false, 0},
		{"1.2.3", 3, false, 0},
		{"+1", 3, false, 0},
		{" 1", 3, false, 0},
		{"1 ", 3, false, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t n = -1;

		assert_int_equal(opts_fixed(cases[i].text, cases[i].decimals, &n), cases[i].ok);
		if (cases[i].ok)
			assert_int_equal(n, cases[i].n);
	}
}

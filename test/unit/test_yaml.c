/* The YAML reader: what it takes, what it refuses and with which line. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "codec/yaml.h"

static struct yaml *parse(const char *text)
{
	struct ava_error err = {0};
	struct yaml *y;

	if (yaml_parse(&y, "f", text, strlen(text), &err) != 0)
		fail_msg("%s", err.text);
	return y;
}

TEST(tree)
{
	struct yaml *y = parse("# comment\n"
			       "runs:\n"
			       "  max: 12   # more\n"
			       "list:\n"
			       "  - a\n"
			       "  - 'b c'\n"
			       "  - {x: 1, y: [2, 3]}\n"
			       "text: |\n"
			       "  one\n"
			       "  two\n"
			       "empty:\n");
	const struct yaml_node *root = yaml_root(y), *n;

	assert_int_equal(root->kind, YAML_MAP);
	n = yaml_get(yaml_get(root, "runs"), "max");
	assert_string_equal(n->text, "12");
	assert_true(n->plain);
	assert_int_equal(n->line, 3);
	assert_int_equal(n->key_line, 3);
	n = yaml_get(root, "list");
	assert_int_equal(n->kind, YAML_LIST);
	assert_string_equal(n->first->text, "a");
	assert_null(n->first->key);
	assert_string_equal(n->first->next->text, "b c");
	assert_false(n->first->next->plain);
	n = n->first->next->next;
	assert_string_equal(yaml_get(n, "x")->text, "1");
	assert_string_equal(yaml_get(n, "y")->first->next->text, "3");
	assert_null(n->next);
	assert_string_equal(yaml_get(root, "text")->text, "one\ntwo\n");
	assert_true(yaml_is_null(yaml_get(root, "empty")));
	assert_null(yaml_get(root, "no"));
	assert_null(yaml_get(yaml_get(root, "list"), "no"));
	yaml_free(y);
	yaml_free(NULL);
}

TEST(empty)
{
	static const char *const empty[] = {"",
					    "\n",
					    "# nothing\n",
					    "---\n",
					    "---\n...\n",
					    "~\n",
					    "\xef\xbb\xbf# with a mark\n"};

	for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
		struct yaml *y = parse(empty[i]);

		assert_int_equal(yaml_root(y)->kind, YAML_MAP);
		assert_null(yaml_root(y)->first);
		yaml_free(y);
	}
}

static const struct {
	const char *text, *want; /* part of the sentence */
} refused[] = {
	{"a: 1\nb: 2\na: 3\n", "f:3: a stands here and in line 1"},
	{"{a: 1, a: 2}", "f:1: a stands here and in line 1"},
	{"a: !!int 3\n", "f:1: tags"},
	{"a: !!python/object:os.system {}\n", "f:1: tags"},
	{"a: !foo [1]\n", "f:1: tags"},
	{"? [a, b]\n: c\n", "f:1: a key must be plain text"},
	{"? {a: b}\n: c\n", "f:1: a key must be plain text"},
	{"a: 1\n---\nb: 2\n", "f:2: a second document"},
	{"a: *nowhere\n", "f:1: this is no YAML: found undefined alias"},
	{"a: &x [*x]\n", "f:1: it is nested too deeply"},
	{"a: [1, 2\n", "f:"},
	{"a: 'open\n", "f:"},
	{"a:\n\tb: 1\n", "indent with blanks, not tabs"},
	{"a: b: c\n", "f:1: this is no YAML"},
	{"a: \"\\x00\"\n", "f:1: the text holds a NUL"},
	{"{\"a\\0\": 1}\n", "f:1: this is no key"},
	{"'': 1\n", "f:1: this is no key"},
	{"a: \xff\n", "UTF-8"},
	{"b: 1\na: \x01\n", "f:2: byte 8 of the file: control characters"},
	{"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "f:1: it is nested too deeply"},
	{"a: &x [[[[[[[[1]]]]]]]]\nb: [[[[[[[[*x]]]]]]]]\n", "f:1: it is nested too deeply"},
	{"a: &a [0,5d: [[[[[[[[[[[[]]]]]]]]]]]]]\nb: &b [*a,*a]\nc: &c [*b,*b]\nd: [*c,*c]",
	 "f:1: it is nested too deeply"},
};

TEST(refused)
{
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct ava_error err = {0};
		struct yaml *y = (void *)1;

		print_message("%s\n", refused[i].text);
		assert_int_equal(
			yaml_parse(&y, "f", refused[i].text, strlen(refused[i].text), &err),
			AVA_EINVAL);
		assert_null(y);
		if (!strstr(err.text, refused[i].want))
			fail_msg("%s", err.text);
		assert_null(strchr(err.text, '\n'));
	}
}

TEST(nul_in_file)
{
	struct ava_error err = {0};
	struct yaml *y;

	assert_int_equal(yaml_parse(&y, "f", "\na: 1\0b", 7, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "f:2: byte 5 of the file"));
}

TEST(depth)
{
	struct yaml *y = parse("[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]"); /* 16 */

	yaml_free(y);
	y = parse("a: &x [[[[[[[1]]]]]]]\nb: [[[[[[[[*x]]]]]]]]\n");
	yaml_free(y);
}

TEST(alias)
{
	struct yaml *y = parse("a: &x {b: [1, 2]}\nc: *x\nd: &y text\ne: *y\n");
	const struct yaml_node *root = yaml_root(y);

	assert_string_equal(yaml_get(yaml_get(root, "c"), "b")->first->next->text, "2");
	assert_string_equal(yaml_get(root, "c")->key, "c");
	assert_string_equal(yaml_get(root, "e")->text, "text");
	yaml_free(y);
}

/* Nine lines that would be a thousand million values. */
TEST(bomb)
{
	char text[2048];
	struct ava_error err = {0};
	struct yaml *y;
	int n = snprintf(text, sizeof(text), "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");

	for (int i = 1; i < 9; i++) {
		n += snprintf(text + n, sizeof(text) - (size_t)n, "a%d: &a%d [", i, i);
		for (int k = 0; k < 10; k++)
			n += snprintf(text + n, sizeof(text) - (size_t)n, "%s*a%d", k ? "," : "",
				      i - 1);
		n += snprintf(text + n, sizeof(text) - (size_t)n, "]\n");
	}
	assert_int_equal(yaml_parse(&y, "f", text, (size_t)n, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "there are too many values"));
}

TEST(limits)
{
	size_t len = YAML_BYTES_MAX + 1;
	char *text = malloc(len);
	struct ava_error err = {0};
	struct yaml *y;

	memset(text, '#', len);
	assert_int_equal(yaml_parse(&y, "f", text, len, &err), AVA_ETOOBIG);
	assert_non_null(strstr(err.text, "262145 bytes"));
	text[len - 2] = '\n';
	assert_int_equal(yaml_parse(&y, "f", text, len - 1, &err), 0);
	yaml_free(y);
	for (size_t i = 0; i + 3 < len; i += 3)
		memcpy(text + i, "- \n", 3);
	assert_int_equal(yaml_parse(&y, "f", text, len / 3 * 3, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "too many values"));
	free(text);
}

/* Numbers: what YAML 1.1 would read otherwise is text and refused. */
TEST(int)
{
	static const struct {
		const char *text;
		bool good;
		int64_t value;
	} cases[] = {
		{"0", true, 0},      {"12", true, 12},
		{"-5", true, -5},    {"100", true, 100},
		{"101", false, 0},   {"-6", false, 0},
		{"012", false, 0},   {"0x10", false, 0},
		{"0o7", false, 0},   {"1_0", false, 0},
		{"+5", false, 0},    {"5.0", false, 0},
		{"1e1", false, 0},   {"'5'", false, 0},
		{"\"5\"", false, 0}, {"~", false, 0},
		{"[5]", false, 0},   {"{a: 5}", false, 0},
		{"1:30", false, 0},  {"-", false, 0},
		{"-0", true, 0},     {"99999999999999999999", false, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[64];
		struct ava_error err = {0};
		struct yaml *y;
		int64_t v = -77;
		int rv;

		snprintf(text, sizeof(text), "\nk: %s\n", cases[i].text);
		if (strcmp(cases[i].text, "-") == 0) /* a list of one null */
			snprintf(text, sizeof(text), "\nk:\n -\n");
		y = parse(text);
		rv = yaml_int(y, yaml_get(yaml_root(y), "k"), -5, 100, &v, &err);
		print_message("%s\n", cases[i].text);
		assert_int_equal(rv, cases[i].good ? 0 : AVA_EINVAL);
		assert_int_equal(v, cases[i].good ? cases[i].value : -77);
		if (rv != 0)
			assert_non_null(
				strstr(err.text, "it must be a whole number from -5 to 100"));
		if (rv != 0 && cases[i].text[0] != '-')
			assert_non_null(strstr(err.text, "f:2: k is "));
		yaml_free(y);
	}
}

TEST(string)
{
	struct yaml *y = parse("a: text\nb: 12\nc:\nd: ''\ne: [x]\nf: 'null'\ng: \"t\\xe9\"\n");
	const struct yaml_node *root = yaml_root(y);
	struct ava_error err = {0};
	const char *s = NULL;

	assert_int_equal(yaml_string(y, yaml_get(root, "a"), 4, &s, &err), 0);
	assert_string_equal(s, "text");
	assert_int_equal(yaml_string(y, yaml_get(root, "a"), 3, &s, &err), AVA_EINVAL);
	assert_string_equal(err.text, "f:1: a is 4 bytes long, 3 at the most");
	assert_int_equal(yaml_string(y, yaml_get(root, "b"), 4, &s, &err), 0);
	assert_string_equal(s, "12");
	assert_int_equal(yaml_string(y, yaml_get(root, "c"), 4, &s, &err), AVA_EINVAL);
	assert_string_equal(err.text, "f:3: c is empty; it must be text");
	assert_int_equal(yaml_string(y, yaml_get(root, "d"), 4, &s, &err), AVA_EINVAL);
	assert_int_equal(yaml_string(y, yaml_get(root, "e"), 4, &s, &err), AVA_EINVAL);
	assert_string_equal(err.text, "f:5: e is a list; it must be text");
	assert_int_equal(yaml_string(y, yaml_get(root, "f"), 4, &s, &err), 0);
	assert_string_equal(s, "null");
	assert_int_equal(yaml_string(y, yaml_get(root, "g"), 4, &s, &err), 0);
	assert_string_equal(s, "t\xc3\xa9");
	yaml_free(y);
}

TEST(no_memory)
{
	static const char text[] = "a: &x [1, {b: c}]\nd: *x\ne: \"long text that is kept\"\n";

	FAULT_LOOP(k, {
		struct ava_error err = {0};
		struct yaml *y;
		int rv = yaml_parse(&y, "f", text, sizeof(text) - 1, &err);

		assert_true(rv == 0 || rv == AVA_ENOMEM);
		assert_int_equal(y != NULL, rv == 0);
		yaml_free(y);
	});
}

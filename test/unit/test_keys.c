/* The file of keys: who may read it, what its lines are, what wins. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/keys.h"
#include "base/siphash.h"
#include "base/util.h"

static char dir[256], path[320];

static int set_up(void **state)
{
	snprintf(dir, sizeof(dir), "%s", unit_tmpdir());
	snprintf(path, sizeof(path), "%s/ava", dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/ava/env", dir);
	setenv("XDG_CONFIG_HOME", dir, 1);
	for (size_t i = 0; keys_known[i]; i++)
		unsetenv(keys_known[i]);
	return 0;
}

static int tear_down(void **state)
{
	keys_wipe();
	unit_rmdir(dir);
	return 0;
}

static int load(const char *text, mode_t mode, struct ava_error *err)
{
	unit_write(path, text, strlen(text));
	chmod(path, mode);
	return keys_load(err);
}

static void holds(const char *text)
{
	size_t len;
	char *now = unit_read(path, &len);

	assert_string_equal(now, text);
	free(now);
}

TEST_WITH(store, set_up, tear_down)
{
	struct ava_error err = {0};
	char where[400];
	struct stat st;

	/* There is none yet. */
	assert_int_equal(keys_store("AVA_LOCAL_MODEL", "m:1", where, sizeof(where), &err), 0);
	assert_string_equal(where, path);
	assert_string_equal(keys_get("AVA_LOCAL_MODEL"), "m:1");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	/* What else stands there stays, the line is replaced. */
	assert_int_equal(
		load("# mine\nOTHER='a b'\nexport AVA_LOCAL_MODEL=old\nLAST=1", 0600, &err), 0);
	assert_int_equal(keys_store("AVA_LOCAL_MODEL", "new", where, sizeof(where), &err), 0);
	holds("# mine\nOTHER='a b'\nLAST=1\nAVA_LOCAL_MODEL=\"new\"\n");
	assert_string_equal(keys_get("OTHER"), "a b");
	/* A line goes, and one that is not there. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(keys_store("AVA_LOCAL_MODEL", NULL, where, sizeof(where), &err),
				 0);
		holds("# mine\nOTHER='a b'\nLAST=1\n");
	}
	/* What cannot stand there, and a file that is broken: nothing is written. */
	assert_int_equal(keys_store("A", "x\"y", where, sizeof(where), &err), AVA_EINVAL);
	assert_int_equal(load("no line\n", 0600, &err), AVA_EINVAL);
	assert_int_equal(keys_store("A", "x", where, sizeof(where), &err), AVA_EINVAL);
	holds("no line\n");
}

TEST_WITH(lines, set_up, tear_down)
{
	struct ava_error err = {0};
	const char *value;

	assert_int_equal(load("# keys\n"
			      "\n"
			      "ANTHROPIC_API_KEY=sk-ant-plain\n"
			      "  export OPENAI_API_KEY=\"sk-quoted # not a comment\"  # one\r\n"
			      "OPENROUTER_API_KEY='single \"inside\"'\n"
			      "OTHER=a=b#c  \n"
			      "EMPTY=\n"
			      "LAST=no-newline",
			      0600, &err),
			 0);
	assert_string_equal(keys_get("ANTHROPIC_API_KEY"), "sk-ant-plain");
	assert_string_equal(keys_get("OPENAI_API_KEY"), "sk-quoted # not a comment");
	assert_string_equal(keys_get("OPENROUTER_API_KEY"), "single \"inside\"");
	assert_string_equal(keys_get("OTHER"), "a=b#c");
	assert_null(keys_get("EMPTY"));
	assert_string_equal(keys_get("LAST"), "no-newline");
	assert_null(keys_get("NO"));
	assert_string_equal(keys_file(0, &value), "ANTHROPIC_API_KEY");
	assert_string_equal(value, "sk-ant-plain");
	assert_string_equal(keys_file(5, &value), "LAST");
	assert_null(keys_file(6, &value));
	assert_null(getenv("ANTHROPIC_API_KEY")); /* children would have it */
	/* An editor's byte order mark is no part of the name. */
	assert_int_equal(load("\xef\xbb\xbf"
			      "OTHER=1\r\n",
			      0600, NULL),
			 0);
	assert_string_equal(keys_get("OTHER"), "1");
}

TEST_WITH(order, set_up, tear_down)
{
	setenv("ANTHROPIC_API_KEY", "from the environment", 1);
	setenv("OPENAI_API_KEY", "from the environment", 1);
	setenv("OPENROUTER_API_KEY", "", 1);
	assert_int_equal(load("ANTHROPIC_API_KEY=from-the-file\nOPENAI_API_KEY=\n", 0600, NULL), 0);
	assert_string_equal(keys_get("ANTHROPIC_API_KEY"), "from-the-file");
	assert_string_equal(keys_source("ANTHROPIC_API_KEY"), "file");
	assert_string_equal(keys_get("OPENAI_API_KEY"), "from the environment");
	assert_string_equal(keys_source("OPENAI_API_KEY"), "environment");
	assert_null(keys_get("OPENROUTER_API_KEY"));
	assert_null(keys_source("OPENROUTER_API_KEY"));
	keys_wipe();
	assert_string_equal(keys_get("ANTHROPIC_API_KEY"), "from the environment");
}

TEST_WITH(modes, set_up, tear_down)
{
	static const mode_t bad[] = {0644, 0640, 0604, 0620, 0602, 0610, 0666};
	struct ava_error err = {0};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(load("A=secret-value\n", bad[i], &err), AVA_EDENIED);
		assert_non_null(strstr(err.text, "chmod 600"));
		assert_non_null(strstr(err.text, path));
		assert_null(strstr(err.text, "secret-value"));
		assert_null(keys_get("A"));
	}
	assert_int_equal(load("A=secret-value\n", 0400, &err), 0);
	assert_string_equal(keys_get("A"), "secret-value");
}

TEST_WITH(bad_lines, set_up, tear_down)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"A=1\nno line\n", "env:2: this is no line of the form NAME=value"},
		{"=x\n", "env:1: this is no line"},
		{"1A=x\n", "env:1: this is no line"},
		{"A-B=x\n", "env:1: this is no line"},
		{"A =x\n", "env:1: this is no line"},
		{"A=\"secret-value\n", "env:1: the value of A: its quote is not closed"},
		{"A='secret-value' x\n", "env:1: the value of A: there is something behind"},
		{"A=secret-value b\n", "env:1: the value of A: a value with blanks"},
		{"A=secret-\x01value\n", "env:1: the value of A: it holds a control character"},
		{"A=secret-value\n\nA=2\n", "env:3: A stands there twice"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ava_error err = {0};

		assert_int_equal(load(cases[i].text, 0600, &err), AVA_EINVAL);
		if (!strstr(err.text, cases[i].want))
			fail_msg("%s", err.text);
		assert_null(strstr(err.text, "secret"));
		assert_null(keys_get("A"));
	}
}

TEST_WITH(odd_files, set_up, tear_down)
{
	struct ava_error err = {0};
	char *large = calloc(1, KEYS_FILE_MAX + 2);
	size_t n = 0;

	assert_int_equal(keys_load(&err), 0); /* none is fine */
	mkfifo(path, 0600);
	assert_int_equal(keys_load(&err), AVA_EINVAL); /* and does not wait */
	unlink(path);
	mkdir(path, 0700);
	assert_int_equal(keys_load(&err), AVA_EINVAL);
	rmdir(path);
	unit_write(path, "A=1\0B=2\n", 8);
	chmod(path, 0600);
	assert_int_equal(keys_load(&err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "NUL"));
	memset(large, '#', KEYS_FILE_MAX + 1);
	assert_int_equal(load(large, 0600, &err), AVA_ETOOBIG);
	large[KEYS_FILE_MAX] = '\0';
	assert_int_equal(load(large, 0600, &err), 0);
	for (int i = 0; i < 65; i++)
		n += (size_t)sprintf(large + n, "A%d=x\n", i);
	assert_int_equal(load(large, 0600, &err), AVA_ETOOBIG);
	assert_non_null(strstr(err.text, "env:65: more than 64 names"));
	free(large);
}

TEST_WITH(shape, set_up, tear_down)
{
	struct ava_error err = {0};

	assert_int_equal(keys_check("K", "sk-ant-0123456789", NULL), 0);
	assert_int_equal(keys_check("K", "short", &err), AVA_EINVAL);
	assert_string_equal(err.text, "K is 5 bytes long, which no key is");
	assert_int_equal(keys_check("K", "secret value-1", &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "byte 7 of 14"));
	assert_null(strstr(err.text, "secret"));
	assert_int_equal(keys_check("K", "secret-value\n", &err), AVA_EINVAL);
	assert_int_equal(keys_check("K", "secret-value\xc3\xa9", &err), AVA_EINVAL);
}

/* The same value under the same salt has the same mark, nothing else has. */
TEST_WITH(marks, set_up, tear_down)
{
	char one[KEYS_MARK_LEN + 1], two[KEYS_MARK_LEN + 1];
	const char *salt = keys_salt();

	assert_int_equal(strlen(salt), KEYS_SALT_LEN);
	assert_ptr_equal(keys_salt(), salt);
	setenv("OPENAI_API_KEY", "sk-0123456789", 1);
	setenv("ANTHROPIC_API_KEY", "sk-0123456789", 1);
	assert_true(keys_mark(salt, "OPENAI_API_KEY", one));
	assert_int_equal(strlen(one), KEYS_MARK_LEN);
	assert_true(keys_mark(salt, "OPENAI_API_KEY", two));
	assert_string_equal(one, two);
	assert_true(keys_mark(salt, "ANTHROPIC_API_KEY", two));
	assert_string_not_equal(one, two);
	assert_true(keys_mark("00000000000000000000000000000000", "OPENAI_API_KEY", two));
	assert_string_not_equal(one, two);
	setenv("OPENAI_API_KEY", "sk-0123456788", 1);
	assert_true(keys_mark(salt, "OPENAI_API_KEY", two));
	assert_string_not_equal(one, two);
	assert_true(keys_mark(salt, "OPENROUTER_API_KEY", two));
	assert_string_equal(two, "");
	assert_false(keys_mark("", "OPENAI_API_KEY", two));
	assert_false(keys_mark("0000000000000000000000000000000x", "OPENAI_API_KEY", two));
}

/* The vector of SipHash's authors: key 00..0f, message 00..0e. */
TEST(siphash)
{
	unsigned char m[15];

	for (unsigned i = 0; i < sizeof(m); i++)
		m[i] = (unsigned char)i;
	assert_true(siphash(0x0706050403020100u, 0x0f0e0d0c0b0a0908u, m, sizeof(m), 2, 4) ==
		    0xa129ca6149be45e5u);
}

/* The process' environment, and a list in its place. */
#include "unit.h"

#include <stdlib.h>

#include <ava.h>
#include "base/env.h"

TEST(process)
{
	setenv("AVA_TEST_ENV", "outside", 1);
	assert_string_equal(env_get("AVA_TEST_ENV"), "outside");
	assert_null(env_get("AVA_TEST_ENV_NONE"));
}

TEST(only)
{
	static const char *const list[] = {"AVA_ONE=1", "AVA_TEST_EN=x",
					   "AVA_EMPTY=", "AVA_TWO=a=b", NULL};

	setenv("AVA_TEST_ENV", "outside", 1);
	assert_int_equal(env_only(list, NULL), 0);
	assert_string_equal(env_get("AVA_ONE"), "1");
	assert_string_equal(env_get("AVA_TWO"), "a=b");
	assert_string_equal(env_get("AVA_EMPTY"), "");
	assert_null(env_get("AVA_TEST_ENV"));
	assert_null(env_get("HOME"));
	assert_int_equal(env_only(NULL, NULL), 0);
	assert_null(env_get("AVA_ONE"));
	env_process();
	assert_string_equal(env_get("AVA_TEST_ENV"), "outside");
}

TEST(bad)
{
	static const char *const bare[] = {"AVA_ONE=1", "AVA_TWO", NULL};
	static const char *const nameless[] = {"=1", NULL};
	struct ava_error err = {0};

	assert_int_equal(env_only(bare, &err), AVA_EINVAL);
	assert_string_equal(err.text, "string 2 of the environment has not the form NAME=value");
	assert_int_equal(env_only(nameless, NULL), AVA_EINVAL);
	env_process();
}

static void body(void)
{
	static const char *const list[] = {"AVA_ONE=1", "AVA_TWO=2", NULL};
	int rv = env_only(list, NULL);

	assert_true(rv == 0 || rv == AVA_ENOMEM);
	assert_null(env_get("HOME"));
	env_process();
}

TEST(memory)
{
	FAULT_LOOP(k, body());
}

/* Defaults, overrides, and values that must not pass silently. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/settings.h"
#include "base/util.h"

TEST(defaults)
{
	struct settings s;

	assert_int_equal(settings_load(&s, NULL), 0);
	assert_int_equal(s.runs_max, 8);
	assert_int_equal(s.limits_timeout_s, 0);
	assert_int_equal(s.limits_cost_cents, -1);
	assert_int_equal(s.limits_tokens, 100000);
	assert_int_equal(s.limits_iterations, 20);
	assert_int_equal(s.disk_free_min_mb, 256);
	assert_int_equal(s.disk_ballast_mb, 64);
}

TEST(bad_values)
{
	static const char *const bad[] = {"",    " 5",  "+5",     "5 ",
					  "abc", "0",   "-1",     "5x",
					  "0x5", "5.0", "100001", "99999999999999999999"};
	struct ava_error err;
	struct settings s;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		setenv("AVA_RUNS_MAX", bad[i], 1);
		if (settings_load(&s, &err) != AVA_EINVAL)
			fail_msg("accepted: \"%s\"", bad[i]);
	}
	setenv("AVA_RUNS_MAX", "abc", 1);
	settings_load(&s, &err);
	assert_string_equal(err.text, "AVA_RUNS_MAX is \"abc\"; it must be a whole number from 1 "
				      "to 100000");
	unsetenv("AVA_RUNS_MAX");
}

static void set(const char *name, const char *value)
{
	if (value == NULL)
		unsetenv(name);
	else
		setenv(name, value, 1);
}

TEST(data_root)
{
	static const struct {
		const char *root, *xdg, *home, *want; /* NULL: an error */
	} cases[] = {
		{"/r", "/x", "/h", "/r"},
		{NULL, "/x", "/h", "/x/ava"},
		{NULL, NULL, "/h", "/h/.local/share/ava"},
		{"", "", "/h", "/h/.local/share/ava"},
		{"rel", "/x", "/h", NULL},
		{NULL, "rel", "/h", NULL},
		{NULL, NULL, NULL, NULL},
		{"/0123456789012345678901234567890123456789", NULL, NULL, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char out[32];
		int rv;

		set("AVA_DATA_ROOT", cases[i].root);
		set("XDG_DATA_HOME", cases[i].xdg);
		set("HOME", cases[i].home);
		rv = settings_data_root(out, sizeof(out), NULL);
		assert_int_equal(rv, cases[i].want != NULL ? 0 : AVA_EINVAL);
		if (rv == 0)
			assert_string_equal(out, cases[i].want);
	}
}

TEST(confirm)
{
	static const struct {
		const char *text;
		int64_t want;
	} good[] = {
		{"always", SETTINGS_CONFIRM_ALWAYS},
		{"never", SETTINGS_CONFIRM_NEVER},
		{"over_cents:0", 0},
		{"over_cents:20", 20},
		{"over_cents:1000000", 1000000},
	};
	static const char *const bad[] = {"",
					  "Always",
					  "yes",
					  "20",
					  "over_cents",
					  "over_cents:",
					  "over_cents: 5",
					  "over_cents:-1",
					  "over_cents:5x",
					  "over_cents:1.5",
					  "over_cents:1000001",
					  "over_cents:99999999999999999999"};
	struct settings s;
	struct ava_error err;

	assert_int_equal(settings_load(&s, NULL), 0);
	assert_int_equal(s.confirm_over_cents, SETTINGS_CONFIRM_ALWAYS);
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		setenv("AVA_CONFIRM", good[i].text, 1);
		assert_int_equal(settings_load(&s, NULL), 0);
		assert_true(s.confirm_over_cents == good[i].want);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		setenv("AVA_CONFIRM", bad[i], 1);
		assert_int_equal(settings_load(&s, &err), AVA_EINVAL);
		assert_non_null(strstr(err.text, "AVA_CONFIRM is \""));
	}
	unsetenv("AVA_CONFIRM");
}

/* Two values go into config.yaml and nothing else changes. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ava/config_store.h"
#include "base/buf.h"
#include "base/util.h"

#define URL         "http://127.0.0.1:11434/v1"
#define MODEL       "qwen3:8b"
#define TWO(indent) indent "base_url: \"" URL "\"\n" indent "model: \"" MODEL "\"\n"
/* Put in one after the other, the second stands first. */
#define OWT(indent) indent "model: \"" MODEL "\"\n" indent "base_url: \"" URL "\"\n"

static const struct {
	const char *name, *text, *want; /* NULL: refused */
} cases[] = {
	{"empty", "", "providers:\n  local:\n" OWT("    ")},
	{"comments", "# mine\n", "# mine\nproviders:\n  local:\n" OWT("    ")},
	{"no end of line", "runs: {max: 3} # x",
	 "runs: {max: 3} # x\nproviders:\n  local:\n" OWT("    ")},
	{"others", "runs:\n  max: 3\n\n# end\n",
	 "runs:\n  max: 3\n\n# end\nproviders:\n  local:\n" OWT("    ")},
	{"another service",
	 "providers: # here\n    # and\n    openai:\n        base_url: https://x # y\nruns: {max: "
	 "1}\n",
	 "providers: # here\n    local:\n" OWT(
		 "      ") "    # and\n    openai:\n        base_url: https://x # y\nruns: {max: "
			   "1}\n"},
	{"nothing below", "providers:\nruns: {max: 1}\n",
	 "providers:\n  local:\n" OWT("    ") "runs: {max: 1}\n"},
	{"nothing below local", "providers:\n  local: # soon\nruns: {max: 1}\n",
	 "providers:\n  local: # soon\n" OWT("    ") "runs: {max: 1}\n"},
	{"both there",
	 "providers:\n  local:\n    model: old   # why\n    base_url: 'http://127.0.0.1:1' # "
	 "\xc3\xa9\n",
	 "providers:\n  local:\n    model: \"" MODEL "\"   # why\n    base_url: \"" URL
	 "\" # \xc3\xa9\n"},
	{"one there", "providers:\n  local:\n    base_url: http://127.0.0.1:1\n",
	 "providers:\n  local:\n    model: \"" MODEL "\"\n    base_url: \"" URL "\"\n"},
	{"empty value", "providers:\n  local:\n    base_url:\n    model: x\n",
	 "providers:\n  local:\n    base_url: \"" URL "\"\n    model: \"" MODEL "\"\n"},
	{"the same again", "providers:\n  local:\n" TWO("    "),
	 "providers:\n  local:\n" TWO("    ")},
	{"letters of two bytes",
	 "\xc3\xa9: [\xc3\xa9]\nproviders:\n  local:\n    model: \"\xc3\xa9\xc3\xa9\" #\xc3\xa9\n  "
	 "  base_url: x\n",
	 "\xc3\xa9: [\xc3\xa9]\nproviders:\n  local:\n    model: \"" MODEL
	 "\" #\xc3\xa9\n    base_url: \"" URL "\"\n"},
	{"ends of lines of others", "a: 1\r\nproviders:\r\n  local:\r\n    model: x\r\nb: 1\r\n",
	 "a: 1\r\nproviders:\r\n  local:\r\n    base_url: \"" URL "\"\n    model: \"" MODEL
	 "\"\r\nb: 1\r\n"},
	{"old ends of lines", "# a\rproviders:\r  local:\r    model: x\r    base_url: y\r",
	 "# a\rproviders:\r  local:\r    model: \"" MODEL "\"\r    base_url: \"" URL "\"\r"},
	{"flow", "providers: {local: {base_url: x}}\n", NULL},
	{"flow root", "{runs: {max: 1}}\n", NULL},
	{"flow local", "providers:\n  local: {}\n", NULL},
	{"alias", "a: &x\n  model: y\nproviders:\n  local: *x\n", NULL},
	{"anchored elsewhere", "providers:\n  local:\n    base_url: &x a\n    model: b\nc: *x\n",
	 NULL},
	{"a list", "providers: [a]\n", NULL},
	{"text", "providers: a\n", NULL},
	{"a written null", "providers: ~\n", NULL},
	{"many lines", "providers:\n  local:\n    base_url: \"a\n      b\"\n", NULL},
	{"ended", "runs: {max: 1}\n...\n", NULL},
	{"list root", "- a\n", NULL},
	{"broken", "a: [\n", NULL},
};

static void test_edit(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ava_error err = {0};
		struct buf out;
		int rv;

		print_message("%s\n", cases[i].name);
		buf_init(&out, 4096);
		rv = config_edit_local("f", cases[i].text, strlen(cases[i].text), URL, MODEL, &out,
				       &err);
		if (cases[i].want) {
			if (rv != 0)
				fail_msg("%s", err.text);
			assert_string_equal(out.data, cases[i].want);
		} else {
			assert_true(rv == AVA_EUNSUPPORTED || rv == AVA_EINVAL);
			assert_non_null(strstr(err.text, "f:"));
		}
		buf_fini(&out);
	}
}

static void test_values(void **state)
{
	static const char *const bad[][2] = {
		{"http://example.com", "m"},
		{"", "m"},
		{URL, ""},
		{URL, "a b"},
		{URL, "a\"b"},
		{URL, "a\\b"},
		{URL, "a\nb"},
		{"http://[", "m"},
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct buf out;

		buf_init(&out, 4096);
		assert_int_equal(config_edit_local("f", "", 0, bad[i][0], bad[i][1], &out, NULL),
				 AVA_EINVAL);
		buf_fini(&out);
	}
}

static void test_file(void **state)
{
	char dir[256], path[512], link[512], got[512];
	struct ava_error err = {0};
	struct stat st;
	char *text;
	size_t len;

	snprintf(dir, sizeof(dir), "%s", unit_tmpdir());
	snprintf(path, sizeof(path), "%s/not/there", dir);
	setenv("XDG_CONFIG_HOME", path, 1);
	assert_int_equal(config_store_local(URL, MODEL, got, sizeof(got), &err), AVA_ENOENT);
	snprintf(path, sizeof(path), "%s/conf", dir);
	setenv("XDG_CONFIG_HOME", path, 1);
	assert_int_equal(config_store_local(URL, MODEL, got, sizeof(got), &err), 0);
	snprintf(path, sizeof(path), "%s/conf/ava/config.yaml", dir);
	assert_string_equal(got, path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	text = unit_read(path, &len);
	assert_string_equal(text, "providers:\n  local:\n" OWT("    "));
	free(text);

	/* A link stays one, the mode stays. */
	snprintf(link, sizeof(link), "%s/real.yaml", dir);
	assert_int_equal(rename(path, link), 0);
	assert_int_equal(symlink(link, path), 0);
	chmod(link, 0640);
	assert_int_equal(
		config_store_local("http://127.0.0.1:8080/v1", "m2", got, sizeof(got), &err), 0);
	assert_string_equal(got, link);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(stat(link, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	text = unit_read(link, &len);
	assert_string_equal(text, "providers:\n  local:\n    model: \"m2\"\n"
				  "    base_url: \"http://127.0.0.1:8080/v1\"\n");
	free(text);
	unit_rmdir(dir);
}

static void test_no_memory(void **state)
{
	static const char text[] = "providers:\n  local:\n    model: x\n";

	FAULT_LOOP(k, {
		struct buf out;
		int rv;

		buf_init(&out, 4096);
		rv = config_edit_local("f", text, sizeof(text) - 1, URL, MODEL, &out, NULL);
		assert_true(rv == 0 || rv == AVA_ENOMEM || rv == AVA_EUNSUPPORTED);
		buf_fini(&out);
	});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edit), cmocka_unit_test(test_values),
		cmocka_unit_test(test_file), cmocka_unit_test(test_no_memory)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

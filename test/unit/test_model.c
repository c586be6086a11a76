/* Names of models: what each resolves to, and what the refusals say. */
#include "unit.h"

#include <ava.h>
#include <stdlib.h>
#include <string.h>

#include "base/keys.h"
#include "base/util.h"
#include "provider/dialect.h"

#define NO_KEY "no provider key is set"

static const struct {
	const char *name;
	int code;
	const char *id, *config;
	const char *text; /* part of *why, or of the error */
} cases[] = {
	{NULL, 0, "offline", "", NO_KEY},
	{"offline", 0, "offline", "", "asked for"},
	{"claude-haiku", 0, "offline", "", NO_KEY},
	{"claude-sonnet", 0, "offline", "", NO_KEY},
	{"claude-sonnet-4.5", 0, "offline", "", NO_KEY},
	{"claude-opus", 0, "offline", "", NO_KEY},
	{"offline:/tmp/turns.jsonl", 0, "offline:/tmp/turns.jsonl", "/tmp/turns.jsonl", "script"},
	{"offline:turns.jsonl", AVA_EINVAL, NULL, NULL, "absolute path"},
	{"offline:", AVA_EINVAL, NULL, NULL, "absolute path"},
	{"anthropic/claude-x", AVA_EUNSUPPORTED, NULL, NULL,
	 "anthropic/claude-x needs ANTHROPIC_API_KEY: set it"},
	{"openai/gpt", AVA_EUNSUPPORTED, NULL, NULL, "use the model offline"},
	{"openrouter/anthropic/claude", AVA_EUNSUPPORTED, NULL, NULL, "OPENROUTER_API_KEY"},
	{"local/llama", AVA_EUNSUPPORTED, NULL, NULL, "local/llama needs AVA_LOCAL_BASE_URL"},
	{"anthropic/", AVA_EINVAL, NULL, NULL, "names no model"},
	{"anthropic/a b", AVA_EINVAL, NULL, NULL, "without blanks"},
	{"claude-haiko", AVA_EINVAL, NULL, NULL, "did you mean claude-haiku?"},
	{"", AVA_EINVAL, NULL, NULL, "unknown model \"\""},
	{"gpt", AVA_EINVAL, NULL, NULL,
	 "there are offline, offline:/path/to/FILE.jsonl, claude-haiku"},
	{"Offline", AVA_EINVAL, NULL, NULL, "unknown model Offline"},
	{"claude-opus-9", AVA_EINVAL, NULL, NULL, "unknown model"},
	{"anthropic", AVA_EINVAL, NULL, NULL, "unknown model"},
};

static void test_resolve(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ava_error err = {0};
		const char *why = NULL;
		struct model m;
		int rv = model_resolve(cases[i].name, &m, &why, &err);

		print_message("%s\n", cases[i].name != NULL ? cases[i].name : "(none)");
		assert_int_equal(rv, cases[i].code);
		assert_non_null(strstr(rv == 0 ? why : err.text, cases[i].text));
		if (rv != 0)
			continue;
		assert_string_equal(m.id, cases[i].id);
		assert_string_equal(m.config, cases[i].config);
		assert_ptr_equal(m.dialect, &dialect_offline);
		assert_int_equal(m.max_output, 8192);
		assert_int_equal(m.context, 200000);
		assert_int_equal(m.price.input + m.price.output + m.price.cache_read +
					 m.price.cache_write,
				 0);
		assert_int_equal(model_resolve(cases[i].name, &m, NULL, NULL), 0);
	}
}

static void test_long_path(void **state)
{
	char name[400] = "offline:/";
	struct ava_error err = {0};
	struct model m;

	memset(name + 9, 'x', 300);
	assert_int_equal(model_resolve(name, &m, NULL, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "301 bytes long, 255 at the most"));
	name[8 + 255] = 0;
	assert_int_equal(model_resolve(name, &m, NULL, &err), 0);
	assert_string_equal(m.id, name);
	assert_string_equal(m.config, name + 8);
}

int main(void)
{
	for (size_t i = 0; keys_known[i] != NULL; i++)
		unsetenv(keys_known[i]);
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_resolve),
					   cmocka_unit_test(test_long_path)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

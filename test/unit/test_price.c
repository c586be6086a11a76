/* Prices in text, exactly. */
#include "unit.h"

#include <ava.h>
#include <string.h>

#include "base/util.h"
#include "provider/models.h"
#include "provider/price.h"

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		int64_t want; /* -1: refused */
	} cases[] = {
		{"0", 0},
		{"3", 3000000},
		{"3.00", 3000000},
		{"0.1", 100000},
		{".5", 500000},
		{"18.75", 18750000},
		{"0.000001", 1},
		{"0.0000001", -1},
		{"100000", 100000000000},
		{"100000.000001", -1},
		{"100001", -1},
		{"99999999999999999999", -1},
		{"", -1},
		{".", -1},
		{"3.", -1},
		{"-1", -1},
		{"+1", -1},
		{"1e3", -1},
		{"$3", -1},
		{"3,5", -1},
		{" 3", -1},
		{"3 ", -1},
		{"0x3", -1},
		{"nan", -1},
		{"007", 7000000},
		{"1.2.3", -1},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t v = -1;

		assert_int_equal(price_parse(cases[i].text, &v),
				 cases[i].want < 0 ? AVA_EINVAL : 0);
		assert_int_equal(v, cases[i].want);
	}
}

static void test_text(void **state)
{
	static const struct {
		int64_t value;
		const char *want;
	} cases[] = {
		{-1, "unknown"},   {0, "$0.00"},     {3000000, "$3.00"},   {125000, "$0.125"},
		{100000, "$0.10"}, {1, "$0.000001"}, {18750000, "$18.75"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[32];

		price_text(cases[i].value, text, sizeof(text));
		assert_string_equal(text, cases[i].want);
	}
}

/* The table that is built in: every row can be found and makes sense. */
static void test_table(void **state)
{
	const struct model_row *r;
	size_t n = 0;

	for (; (r = models_builtin(n)) != NULL; n++) {
		const struct model_row *facts = models_find(r->id);

		print_message("%s\n", r->id);
		assert_non_null(facts);
		assert_true(facts->context >= 100000 && facts->max_output >= 16384);
		assert_true(facts->price.input > 0 && facts->price.output > facts->price.input);
		assert_true(facts->price.cache_read > 0 &&
			    facts->price.cache_read < facts->price.input);
		assert_true(facts->price.cache_write >= facts->price.input);
		assert_true(strlen(facts->rejects) < sizeof(((struct model *)0)->drop));
		assert_true(strlen(r->id) < 200);
	}
	assert_true(n > 30);
	r = models_find("anthropic/claude-haiku-4-5-20251001");
	assert_string_equal(r->id, "anthropic/claude-haiku-4-5");
	assert_int_equal(r->price.cache_write, 1250000);
	assert_int_equal(r->price.cache_read, 100000);
	assert_ptr_equal(models_find("openrouter/anthropic/claude-haiku-4.5"), r);
	assert_string_equal(models_find("openai/gpt-5-mini-2025-08-07")->id, "openai/gpt-5-mini");
	assert_string_equal(models_find("openrouter/openai/gpt-5-mini")->id, "openai/gpt-5-mini");
	assert_null(models_find("openrouter/openai/gpt-5-mini:free"));
	assert_null(models_find("openai/gpt-5-mini-2025"));
	assert_null(models_find("openai/gpt-77"));
	assert_null(models_find("local/gpt-5-mini"));
	assert_null(models_find(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_parse),
					   cmocka_unit_test(test_text),
					   cmocka_unit_test(test_table)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

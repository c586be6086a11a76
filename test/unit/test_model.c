/* Names of models: what each resolves to, and what the refusals say. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/keys.h"
#include "base/util.h"
#include "provider/dialect.h"
#include "provider/model.h"

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
	{"sonnet", AVA_EINVAL, NULL, NULL, "did you mean claude-sonnet?"},
	{"gpt-5", AVA_EINVAL, NULL, NULL, "did you mean openai/gpt-5?"},
	{"antropic/claude-haiku-4-5", AVA_EINVAL, NULL, NULL,
	 "did you mean anthropic/claude-haiku-4-5?"},
	{"", AVA_EINVAL, NULL, NULL, "unknown model \"\""},
	{"gpt", AVA_EINVAL, NULL, NULL,
	 "there are offline, offline:/path/to/FILE.jsonl, claude-haiku"},
	{"Offline", AVA_EINVAL, NULL, NULL, "unknown model Offline"},
	{"claude-opus-9", AVA_EINVAL, NULL, NULL, "unknown model"},
	{"anthropic", AVA_EINVAL, NULL, NULL, "unknown model"},
};

TEST(resolve)
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
		assert_string_equal(model_config(&m), cases[i].config);
		assert_ptr_equal(m.dialect, &dialect_offline);
		assert_int_equal(m.max_output, 8192);
		assert_int_equal(m.context, 200000);
		assert_int_equal(m.price.input + m.price.output + m.price.cache_read +
					 m.price.cache_write,
				 0);
		assert_int_equal(model_resolve(cases[i].name, &m, NULL, NULL), 0);
	}
}

TEST(long_path)
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
	assert_string_equal(model_config(&m), name + 8);
}

/* ---- with services */

static void clear(void)
{
	for (size_t i = 0; keys_known[i] != NULL; i++)
		unsetenv(keys_known[i]);
	models_reset();
	provider_set("local", "", "", NULL);
	assert_int_equal(provider_configure(NULL), 0);
}

/* Paths of calls behind an address are left out; whether it has a version. */
TEST(addresses)
{
	static const struct {
		const char *name, *url, *base;
		bool versioned;
	} some[] = {
		{"AVA_LOCAL_BASE_URL", "http://127.0.0.1:1", "http://127.0.0.1:1", false},
		{"AVA_LOCAL_BASE_URL", "http://127.0.0.1:1/v1/", "http://127.0.0.1:1/v1", true},
		{"AVA_LOCAL_BASE_URL", "http://127.0.0.1:1/v1/chat/completions",
		 "http://127.0.0.1:1/v1", true},
		{"AVA_LOCAL_BASE_URL", "http://127.0.0.1:1/v1/models", "http://127.0.0.1:1/v1",
		 true},
		{"AVA_LOCAL_BASE_URL", "http://127.0.0.1:1/vllm/chat/completions/",
		 "http://127.0.0.1:1/vllm", false},
		{"OPENAI_BASE_URL", "https://x.example/api/paas/v4",
		 "https://x.example/api/paas/v4", true},
		{"OPENAI_BASE_URL", "https://x.example/v1beta/openai",
		 "https://x.example/v1beta/openai", true},
		{"ANTHROPIC_BASE_URL", "https://x.example", "https://x.example", true},
		{"ANTHROPIC_BASE_URL", "https://x.example/a/v1", "https://x.example/a", true},
		{"ANTHROPIC_BASE_URL", "https://x.example/v1/messages", "https://x.example", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(some); i++) {
		const struct provider *p;

		clear();
		setenv(some[i].name, some[i].url, 1);
		assert_int_equal(provider_configure(NULL), 0);
		for (size_t k = 0; (p = provider_at(k)) != NULL; k++) {
			if (strcmp(p->url_name, some[i].name) != 0)
				continue;
			assert_string_equal(p->base_url, some[i].base);
			assert_true(provider_versioned(p) == some[i].versioned);
		}
	}
	clear();
}

static const struct {
	const char *anthropic, *openrouter, *openai, *local; /* what is set */
	const char *name, *id, *wire, *field, *why;
} with_keys[] = {
	{"k", "k", "k", "u", NULL, "anthropic/claude-sonnet-5-5", "claude-sonnet-5-5", "max_tokens",
	 "claude-sonnet stands for anthropic/claude-sonnet-5-5, and ANTHROPIC_API_KEY is set"},
	{NULL, "k", "k", "u", NULL, "openrouter/anthropic/claude-sonnet-5.5",
	 "anthropic/claude-sonnet-5.5", "max_tokens", "OPENROUTER_API_KEY is set"},
	{NULL, NULL, "k", "u", NULL, "openai/gpt-5.6-terra", "gpt-5.6-terra",
	 "max_completion_tokens", "OPENAI_API_KEY is set"},
	{NULL, NULL, NULL, "u", NULL, "local/default", "default", "max_tokens",
	 "AVA_LOCAL_BASE_URL is set"},
	{NULL, NULL, NULL, "u", "claude-opus", "local/default", "default", "max_tokens",
	 "claude-opus"},
	{"k", NULL, NULL, NULL, "claude-haiku", "anthropic/claude-haiku-5-5", "claude-haiku-5-5",
	 "max_tokens", "claude-haiku stands for"},
	{"k", NULL, NULL, NULL, "claude-sonnet-4.5", "anthropic/claude-sonnet-4-5",
	 "claude-sonnet-4-5", "max_tokens", ""},
	{NULL, NULL, "k", NULL, "claude-opus", "openai/gpt-5.6-sol", "gpt-5.6-sol",
	 "max_completion_tokens", ""},
	{"k", "k", NULL, NULL, "openrouter/meta/llama:free", "openrouter/meta/llama:free",
	 "meta/llama:free", "max_tokens", "it was asked for"},
	{"k", NULL, NULL, NULL, "offline", "offline", "", "max_tokens", "asked for"},
	{NULL, NULL, NULL, "u", "local/qwen3:8b", "local/qwen3:8b", "qwen3:8b", "max_tokens", ""},
};

TEST(services)
{
	for (size_t i = 0; i < ARRAY_LEN(with_keys); i++) {
		struct ava_error err = {0};
		const char *why;
		struct model m;

		clear();
		if (with_keys[i].anthropic)
			setenv("ANTHROPIC_API_KEY", "sk-ant-1234", 1);
		if (with_keys[i].openrouter)
			setenv("OPENROUTER_API_KEY", "sk-or-1234", 1);
		if (with_keys[i].openai)
			setenv("OPENAI_API_KEY", "sk-1234567", 1);
		if (with_keys[i].local)
			setenv("AVA_LOCAL_BASE_URL", "http://127.0.0.1:1/v1", 1);
		assert_int_equal(provider_configure(&err), 0);
		print_message("%s\n", with_keys[i].id);
		if (model_resolve(with_keys[i].name, &m, &why, &err) != 0)
			fail_msg("%s", err.text);
		assert_string_equal(m.id, with_keys[i].id);
		assert_string_equal(m.wire_name, with_keys[i].wire);
		assert_string_equal(m.max_tokens_field, with_keys[i].field);
		assert_non_null(strstr(why, with_keys[i].why));
		assert_non_null(m.dialect);
		assert_true((m.provider != NULL) == (m.wire_name[0] != 0));
		assert_true(m.max_output > 0 && m.max_output <= MODEL_OUTPUT_PER_CALL);
	}
	clear();
}

TEST(facts)
{
	static const struct model_row own = {.id = "openai/mine",
					     .aliases = "claude-haiku quick",
					     .context = 5000,
					     .max_output = 100000,
					     .price = {1, 2, -1, -1},
					     .thinking = MODEL_THINKING_BUDGET,
					     .rejects = "temperature"};
	struct ava_error err = {0};
	const char *why;
	struct model m;

	clear();
	setenv("ANTHROPIC_API_KEY", "sk-ant-1234", 1);
	assert_int_equal(model_resolve("anthropic/claude-haiku-4-5-20251001", &m, NULL, NULL), 0);
	assert_true(m.known);
	assert_int_equal(m.price.output, 5000000);
	assert_int_equal(m.thinking, MODEL_THINKING_BUDGET);
	assert_int_equal(m.cache_min, 4096);
	assert_true(model_takes(&m, "temperature"));
	assert_int_equal(model_resolve("anthropic/claude-opus-5-5", &m, NULL, NULL), 0);
	assert_false(model_takes(&m, "temperature"));
	assert_false(model_takes(&m, "top_k"));
	assert_true(model_takes(&m, "top"));
	assert_int_equal(model_resolve("anthropic/claude-new", &m, NULL, NULL), 0);
	assert_false(m.known);
	assert_int_equal(m.price.input, -1);
	assert_int_equal(m.context, MODEL_DEFAULT_CONTEXT);

	/* An alias of one's own wins and may want a key that is not there. */
	assert_int_equal(models_add(&own, NULL), 0);
	assert_int_equal(model_resolve("quick", &m, NULL, &err), AVA_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "openai/mine needs OPENAI_API_KEY"));
	setenv("OPENAI_API_KEY", "sk-1234567", 1);
	assert_int_equal(model_resolve("claude-haiku", &m, &why, &err), 0);
	assert_string_equal(m.id, "openai/mine");
	assert_string_equal(why, "claude-haiku stands for openai/mine, as config.yaml says");
	assert_int_equal(m.max_output, 100000); /* as it was written */
	assert_int_equal(m.context, 5000);
	assert_int_equal(models_set_default("quick", NULL), 0);
	assert_int_equal(model_resolve(NULL, &m, &why, &err), 0);
	assert_string_equal(m.id, "openai/mine");
	assert_non_null(strstr(why, "models.default"));
	clear();
	assert_int_equal(model_resolve("quick", &m, NULL, NULL), AVA_EINVAL);
}

/* What is stored outlives its key. */
TEST(restore)
{
	struct ava_error err = {0};
	struct model m;

	clear();
	assert_int_equal(model_restore("anthropic/claude-haiku-4-5", &m, &err), 0);
	assert_string_equal(m.wire_name, "claude-haiku-4-5");
	assert_int_equal(m.price.input, 1000000);
	assert_int_equal(provider_require(m.provider, m.id, &err), AVA_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "anthropic/claude-haiku-4-5 needs ANTHROPIC_API_KEY"));
	setenv("ANTHROPIC_API_KEY", "sk-ant-1234", 1);
	assert_int_equal(provider_require(m.provider, m.id, &err), 0);
	assert_int_equal(model_restore("offline", &m, &err), 0);
	assert_int_equal(model_restore("offline:/x", &m, &err), 0);
	assert_int_equal(model_restore("claude-haiku", &m, &err), AVA_EINVAL);
	assert_int_equal(model_restore("anthropic/", &m, &err), AVA_EINVAL);
	clear();
}

TEST(drop)
{
	struct model m = {.drop = ""};
	char name[32];
	int n = 0;

	assert_true(model_takes(&m, "a"));
	assert_true(model_drop(&m, "a"));
	assert_true(model_drop(&m, "bb"));
	assert_true(model_drop(&m, "a"));
	assert_string_equal(m.drop, "a bb");
	assert_false(model_takes(&m, "bb"));
	assert_true(model_takes(&m, "b"));
	assert_false(model_drop(&m, ""));
	assert_false(model_drop(&m, "a b"));
	assert_false(model_drop(&m, "a\"b"));
	do
		snprintf(name, sizeof(name), "parameter_%d", n++);
	while (model_drop(&m, name) && n < 100);
	assert_true(n > 5 && n < 40);
	assert_true(strlen(m.drop) < sizeof(m.drop));
	assert_true(model_takes(&m, name));
}

/* ---- prices and the table */

TEST(prices)
{
	static const struct {
		const char *text;
		int64_t want; /* -1: refused */
	} prices[] = {
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

	for (size_t i = 0; i < ARRAY_LEN(prices); i++) {
		int64_t v = -1;

		assert_int_equal(price_parse(prices[i].text, &v),
				 prices[i].want < 0 ? AVA_EINVAL : 0);
		assert_int_equal(v, prices[i].want);
	}
}

/* The table that is built in: every row can be found and makes sense. */
TEST(table)
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

/* ---- one copy for equal ones, gone with its last user */

static struct model offline(const char *script)
{
	struct model m;
	char id[200];

	snprintf(id, sizeof(id), "offline:%s", script);
	memset(&m, 0, sizeof(m));
	assert_int_equal(model_resolve(id, &m, NULL, NULL), 0);
	return m;
}

TEST(one_copy_of_equal_ones)
{
	struct model a = offline("/a"), b = offline("/b"), again = offline("/a");
	const struct model *one, *two, *other;

	one = model_share(&a);
	two = model_share(&again);
	other = model_share(&b);
	assert_ptr_equal(one, two);
	assert_ptr_not_equal(one, other);
	assert_string_equal(model_config(one), "/a");
	model_unshare(one);
	assert_string_equal(model_config(two), "/a"); /* it has a user yet */
	model_unshare(two);
	model_unshare(other);
	model_unshare(NULL);
}

TEST(other_facts_are_another_copy)
{
	struct model a = offline("/a"), less = a;
	const struct model *one, *two, *three;

	assert_true(model_drop(&less, "thinking"));
	one = model_share(&a);
	two = model_share(&less);
	assert_ptr_not_equal(one, two);
	assert_true(model_takes(one, "thinking"));
	assert_false(model_takes(two, "thinking"));
	model_unshare(two); /* it goes, the listed one stays */
	three = model_share(&a);
	assert_ptr_equal(one, three);
	model_unshare(one);
	model_unshare(three);
}

TEST(out_of_memory)
{
	struct model a = offline("/a");
	const struct model *m;

	FAULT_LOOP(k, {
		m = model_share(&a);
		if (m)
			assert_string_equal(model_config(m), "/a");
		model_unshare(m);
	});
}

static int first(void **state)
{
	for (size_t i = 0; keys_known[i] != NULL; i++)
		unsetenv(keys_known[i]);
	return 0;
}

UNIT_GROUP(.first = first);

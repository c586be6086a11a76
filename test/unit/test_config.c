/* config.yaml: what it may say, what it may not, and what wins. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ava/config.h"
#include "base/buf.h"
#include "base/keys.h"
#include "base/util.h"
#include "codec/redact.h"
#include "provider/model.h"
#include "provider/provider_url.h"

static struct config config;

static int clean(void **state)
{
	static const char *const more[] = {"AVA_MODELS_DEFAULT", "AVA_MODELS_FALLBACK",
					   "AVA_AVA_MODEL",      "AVA_RUNS_MAX",
					   "XDG_CONFIG_HOME",    "HOME"};

	for (size_t i = 0; keys_known[i]; i++)
		unsetenv(keys_known[i]);
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		unsetenv(more[i]);
	keys_wipe();
	return config_read(&config, "c", NULL, 0, NULL);
}

static void read_good(const char *text)
{
	struct ava_error err = {0};

	if (config_read(&config, "c", text, strlen(text), &err) != 0)
		fail_msg("%s", err.text);
}

TEST(settings)
{
	read_good("runs:\n  max: 3\n  queue_max: 7\nlimits: {timeout: 60}\n");
	assert_int_equal(config.settings.runs_max, 3);
	assert_int_equal(config.settings.runs_queue_max, 7);
	assert_int_equal(config.settings.limits_timeout_s, 60);
	assert_int_equal(config.settings.limits_tokens, 100000);
	setenv("AVA_RUNS_MAX", "5", 1);
	read_good("runs: {max: 3}");
	assert_int_equal(config.settings.runs_max, 5);
	setenv("AVA_RUNS_MAX", "many", 1);
	assert_int_equal(config_read(&config, "c", NULL, 0, NULL), AVA_EINVAL);
}

/* Every key there is can stand in the file, with its least and most. */
TEST(every_setting)
{
	for (const struct settings_key *k = settings_keys; k->name; k++)
		for (int most = 0; most < 2; most++) {
			int64_t want = most ? k->max : k->min, got;
			int dot = (int)strcspn(k->name, ".");
			char text[200];

			snprintf(text, sizeof(text), "%.*s: {%s: %lld}", dot, k->name,
				 k->name + dot + 1, (long long)want);
			read_good(text);
			memcpy(&got, (char *)&config.settings + k->at, sizeof(got));
			assert_int_equal(got, want);
			snprintf(text, sizeof(text), "%.*s: {%s: %lld}", dot, k->name,
				 k->name + dot + 1, (long long)(most ? k->max + 1 : k->min - 1));
			assert_int_equal(config_read(&config, "c", text, strlen(text), NULL),
					 AVA_EINVAL);
		}
}

static const struct {
	const char *text, *want; /* part of the sentence */
} refused[] = {
	{"runs:\n  maxx: 3\n", "c:2: unknown key runs.maxx: did you mean runs.max?"},
	{"runs:\n  whatever: 3\n", "c:2: unknown key runs.whatever: doc/CONFIG.md"},
	{"\nrun:\n  max: 3\n", "c:2: unknown key run: did you mean runs?"},
	{"runs.max: 3\n", "c:1: unknown key runs.max"},
	{"notify:\n  exec: bin/notify\n",
	 "c:2: notify.exec is \"bin/notify\"; it must be the absolute path of a program"},
	{"notify:\n  exec: []\n", "c:2: notify.exec is an empty list"},
	{"notify:\n  exec: [/bin/a, \"\"]\n", "c:2: "},
	{"notify:\n  exec: {a: b}\n", "c:2: "},
	{"notify:\n  exec: [/bin/a, [b]]\n", "c:2: "},
	{"notify:\n  exce: /bin/a\n", "c:2: unknown key notify.exce: did you mean notify.exec?"},
	{"notify:\n  timeout: 0\n", "c:2: "},
	{"otel:\n  endpoint: http://collector.example:4318\n",
	 "c:2: otel.endpoint is \"http://collector.example:4318\": "},
	{"otel:\n  endpoint: [http://127.0.0.1]\n", "c:2: "},
	{"web:\n  searxng: http://search.example:8888\n", "c:2: web.searxng is \"http://search"},
	{"web:\n  serxng: x\n", "c:2: unknown key web.serxng: did you mean web.searxng?"},
	{"web:\n  allow_private: [127.0.0.1:8080, everything]\n",
	 "c:2: web.allow_private has \"everything\"; it must be host:port"},
	{"web:\n  allow_private: {a: b}\n", "c:2: "},
	{"web:\n  robots: 2\n", "c:2: "},
	{"otel:\n  endpiont: x\n", "c:2: unknown key otel.endpiont: did you mean otel.endpoint?"},
	{"runs: 3\n", "c:1: runs is \"3\"; it must be a mapping"},
	{"runs: [max]\n", "c:1: runs is a list; it must be a mapping"},
	{"confirm: sometimes\n", "c:1: confirm is \"sometimes\"; it must be always, never or"},
	{"\nconfirm: over_cents:x\n", "c:2: confirm is \"over_cents:x\"; it must be"},
	{"confirm: [never]\n", "c:1: "},
	{"confrim: never\n", "c:1: unknown key confrim: did you mean confirm?"},
	{"- runs\n", "c:1: the file is a list; it must be a mapping"},
	{"runs: {max: 0}\n", "c:1: runs.max is \"0\"; it must be a whole number from 1 to 100000"},
	{"runs: {max: 010}\n", "c:1: runs.max is \"010\"; it must be a whole number"},
	{"runs: {max: '5'}\n", "without quotes"},
	{"runs: {max: }\n", "c:1: runs.max is empty"},
	{"runs: {max: 1}\nruns: {max: 2}\n", "c:2: runs stands here and in line 1"},
	{"models: [a]\n", "c:1: models is a list; it must be a mapping"},
	{"models: {lst: []}\n", "c:1: unknown key models.lst: did you mean models.list?"},
	{"models: {list: 3}\n", "c:1: models.list is \"3\"; it must be a list"},
	{"models:\n  list:\n    - alias: x\n", "c:3: a model needs its id"},
	{"models:\n  list:\n    - x\n", "c:3: the file is \"x\"; it must be a mapping"},
	{"models: {list: [{id: gpt-9}]}\n", "c:1: the id gpt-9 names no service"},
	{"models: {list: [{id: x, provider: openay}]}\n",
	 "c:1: provider is \"openay\"; there are anthropic"},
	{"models:\n  list:\n    - id: local/a\n      contxt: 5\n",
	 "c:4: unknown key contxt: did you mean context?"},
	{"models: {list: [{id: local/a, context: 12}]}\n", "c:1: context is \"12\""},
	{"models: {list: [{id: local/a, max_output: -1}]}\n", "c:1: max_output is \"-1\""},
	{"models:\n  list:\n    - id: local/a\n      context: 8192\n      max_output: 8192\n",
	 "c:5: max_output is \"8192\"; it must be less than the window (context), which is 8192"},
	{"models: {list: [{id: local/a, alias: a b}]}\n", "c:1: \"a b\" is no alias"},
	{"models: {list: [{id: local/a, alias: offline}]}\n", "is no alias"},
	{"models: {list: [{id: local/a, alias: [[x]]}]}\n", "an alias is a word"},
	{"models: {list: [{id: local/a, alias: {x: y}}]}\n", "alias is a mapping"},
	{"models:\n  list:\n    - id: local/a\n    - id: local/a\n",
	 "c:4: the model local/a stands there twice"},
	{"models:\n  list:\n    - {id: local/a, alias: x}\n    - {id: local/b, alias: x}\n",
	 "c:4: the alias x stands for another model already"},
	{"models: {list: [{id: local/a, prices: 3}]}\n", "it must be a mapping"},
	{"models: {list: [{id: local/a, prices: {input: 3}}]}\n",
	 "c:1: prices needs input and output"},
	{"models: {list: [{id: local/a, prices: {input: -3, output: 1}}]}\n",
	 "c:1: input is \"-3\"; a price is US dollars"},
	{"models: {list: [{id: local/a, prices: {input: 3, outptu: 1}}]}\n",
	 "c:1: unknown key prices.outptu: did you mean prices.output?"},
	{"models: {list: [{id: local/a, rejects: temperature}]}\n", "c:1: rejects is"},
	{"models: {list: [{id: local/a, rejects: [a b]}]}\n", "\"a b\" is no name of a parameter"},
	{"models: {list: [{id: local/a, thinking: yes}]}\n",
	 "c:1: thinking is \"yes\"; it must be none, budget or adaptive"},
	{"models: {list: [{id: local/a, min_cache_tokens: x}]}\n", "min_cache_tokens is \"x\""},
	{"models: {default: claude-haiko}\n",
	 "c:1: claude-haiko is no model: did you mean claude-haiku?"},
	{"models:\n  default: xyzzyx\n", "c:2: xyzzyx is no model and no alias of one"},
	{"models:\n  default: gpt-5-mini\n",
	 "c:2: gpt-5-mini is no model: did you mean openai/gpt-5-mini?"},
	{"models: {default: }\n", "c:1: default is empty"},
	{"models: {fallback: claude-haiku}\n",
	 "c:1: models.fallback is \"claude-haiku\"; it must be a list"},
	{"models: {fallback: [claude-haiku, claude-haiku]}\n",
	 "c:1: claude-haiku stands there twice"},
	{"models:\n  fallback:\n    - claude-haiku\n    - nope/x\n", "c:4: nope/x is no model"},
	{"models: {on_quota: wait}\n",
	 "c:1: models.on_quota is \"wait\"; it must be park, ask or fail"},
	{"models: {park_max: -1}\n", "c:1: models.park_max is \"-1\"; it must be"},
	{"providers: {antropic: {}}\n",
	 "c:1: unknown key providers.antropic: did you mean providers.anthropic?"},
	{"providers:\n  openai:\n    base_url: ftp://x\n",
	 "c:3: base_url is \"ftp://x\": it must begin"},
	{"providers: {openai: {base_url: http://example.com}}\n",
	 "http:// is for this machine only"},
	{"providers: {openai: {model: x}}\n", "c:1: providers.openai has no model"},
	{"providers:\n  openai:\n    api_key: sk-secret-value\n",
	 "c:3: keys do not stand in this file: write OPENAI_API_KEY=..."},
	{"a: [\n", "c:"},
};

TEST(refused)
{
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct ava_error err = {0};
		size_t n;
		int rv;

		print_message("%s", refused[i].text);
		rv = config_read(&config, "c", refused[i].text, strlen(refused[i].text), &err);
		assert_int_equal(rv, err.code);
		assert_int_not_equal(err.code, 0);
		if (!strstr(err.text, refused[i].want))
			fail_msg("%s", err.text);
		assert_null(strstr(err.text, "sk-secret"));
		/* Nothing of it stays. */
		assert_null(models_find("local/a"));
		assert_null(models_default());
		model_fallback(&n);
		assert_int_equal(n, 0);
	}
}

TEST(models)
{
	const struct model_row *r;
	const char *const *list;
	size_t n;

	read_good("models:\n"
		  "  default: mine\n"
		  "  on_quota: fail\n"
		  "  park_max: 3600\n"
		  "  fallback: [claude-haiku, openai/gpt-9]\n"
		  "  list:\n"
		  "    - alias: [mine, quick]\n"
		  "      id: anthropic/claude-haiku-4-5\n"
		  "      max_output: 4096\n"
		  "      rejects: [temperature]\n"
		  "    - id: gpt-9\n"
		  "      provider: openai\n"
		  "      context: 400000\n"
		  "      max_output: 100000\n"
		  "      prices: {input: 1.25, output: 10, cache_read: 0.125}\n"
		  "      thinking: budget\n"
		  "      min_cache_tokens: 2048\n"
		  "    - id: anthropic/claude-x\n"
		  "      provider: openrouter\n"
		  "    - {id: local/qwen3, alias: claude-opus}\n"
		  "    - {id: local/small, context: 4096}\n"
		  "    - {id: openai/gpt-4o, prices: unknown}\n");
	assert_string_equal(models_default(), "mine");
	list = model_fallback(&n);
	assert_int_equal(n, 2);
	assert_string_equal(list[1], "openai/gpt-9");
	assert_int_equal(config.settings.on_quota, QUOTA_FAIL);
	assert_int_equal(config.settings.park_max_s, 3600);

	r = models_find("anthropic/claude-haiku-4-5"); /* what is left out is built in */
	assert_int_equal(r->max_output, 4096);
	assert_int_equal(r->context, 200000);
	assert_int_equal(r->price.input, 1000000);
	assert_int_equal(r->thinking, MODEL_THINKING_BUDGET);
	assert_string_equal(r->rejects, "temperature");
	assert_string_equal(models_alias("quick", NULL), r->id);

	r = models_find("openai/gpt-9");
	assert_int_equal(r->context, 400000);
	assert_int_equal(r->max_output, 100000);
	assert_int_equal(r->price.input, 1250000);
	assert_int_equal(r->price.output, 10000000);
	assert_int_equal(r->price.cache_read, 125000);
	assert_int_equal(r->price.cache_write, -1);
	assert_int_equal(r->thinking, MODEL_THINKING_BUDGET);
	assert_int_equal(r->cache_min, 2048);

	r = models_find("openrouter/anthropic/claude-x");
	assert_int_equal(r->price.input, -1);
	assert_int_equal(r->context, MODEL_DEFAULT_CONTEXT);

	r = models_find("local/qwen3");
	assert_int_equal(r->price.output, 0);
	assert_int_equal(r->context, MODEL_LOCAL_CONTEXT);
	assert_string_equal(models_alias("claude-opus", provider_at(0)), "local/qwen3");
	assert_int_equal(models_find("local/small")->max_output, 2048); /* fits its window */
	assert_int_equal(models_find("openai/gpt-4o")->price.input, -1);
	assert_int_equal(models_find("openai/gpt-4o")->context, 128000);

	read_good(""); /* and is forgotten */
	assert_null(models_default());
	assert_null(models_find("local/qwen3"));
	assert_int_equal(models_find("anthropic/claude-haiku-4-5")->max_output, 64000);
}

TEST(environment)
{
	static const char text[] = "models: {default: claude-opus, fallback: [claude-opus]}";
	struct ava_error err = {0};
	const char *const *list;
	size_t n;

	setenv("AVA_MODELS_DEFAULT", "offline", 1);
	setenv("AVA_MODELS_FALLBACK", "claude-haiku,openai/x", 1);
	read_good(text);
	assert_string_equal(models_default(), "offline");
	list = model_fallback(&n);
	assert_int_equal(n, 2);
	assert_string_equal(list[0], "claude-haiku");
	assert_null(models_ava());
	read_good("ava: {model: fast, timeout: 30}\n"
		  "models: {list: [{id: openai/x, alias: fast}]}"); /* known further down */
	assert_string_equal(models_ava(), "fast");
	assert_int_equal(config.settings.ava_timeout_s, 30);
	setenv("AVA_AVA_MODEL", "claude-haiku", 1);
	read_good("ava: {model: claude-opus}");
	assert_string_equal(models_ava(), "claude-haiku");
	unsetenv("AVA_AVA_MODEL");
	assert_int_equal(config_read(&config, "c", "ava: {model: claude-opsu}", 25, &err),
			 AVA_EINVAL);
	assert_string_equal(err.text, "c:1: claude-opsu is no model: did you mean claude-opus?");
	setenv("AVA_MODELS_FALLBACK", "", 1); /* none */
	read_good(text);
	model_fallback(&n);
	assert_int_equal(n, 0);
	setenv("AVA_MODELS_FALLBACK", "claude-haiku,nope", 1);
	assert_int_equal(config_read(&config, "c", text, strlen(text), &err), AVA_EINVAL);
	assert_string_equal(err.text, "AVA_MODELS_FALLBACK: nope is no model and no alias of one");
	unsetenv("AVA_MODELS_FALLBACK");
	setenv("AVA_MODELS_DEFAULT", "nope", 1);
	assert_int_equal(config_read(&config, "c", text, strlen(text), &err), AVA_EINVAL);
	assert_string_equal(err.text, "AVA_MODELS_DEFAULT: nope is no model and no alias of one");
}

TEST(providers)
{
	const struct provider *p = provider_find("openai", 6), *local = provider_find("local", 5);

	read_good("providers:\n  openai: {base_url: https://proxy.example/v1/}\n"
		  "  local: {base_url: 'http://127.0.0.1:11434/v1', model: 'qwen3:8b'}\n");
	assert_string_equal(p->base_url, "https://proxy.example/v1");
	assert_true(p->http2);
	assert_false(provider_usable(p));
	assert_string_equal(local->base_url, "http://127.0.0.1:11434/v1");
	assert_string_equal(local->model, "qwen3:8b");
	assert_false(local->http2);
	assert_true(provider_usable(local));
	setenv("OPENAI_BASE_URL", "http://[::1]:99/x", 1);
	setenv("AVA_LOCAL_MODEL", "other", 1);
	setenv("OPENAI_API_KEY", "sk-0123456789", 1);
	read_good("providers: {openai: {base_url: https://proxy.example/v1/}}");
	assert_string_equal(p->base_url, "http://[::1]:99/x");
	assert_string_equal(provider_key(p), "sk-0123456789");
	assert_true(provider_usable(p));
	assert_string_equal(local->model, "other");
	assert_string_equal(local->base_url, "");
	assert_false(provider_usable(local));
}

TEST(urls)
{
	static const struct {
		const char *url;
		bool good;
	} cases[] = {
		{"https://api.example.com", true},
		{"https://api.example.com:8443/v1/", true},
		{"http://127.0.0.1:8080", true},
		{"http://127.9.9.9", true},
		{"http://localhost:1/v1", true},
		{"http://[::1]:5", true},
		{"https://[2001:db8::1]:5/x", true},
		{"http://localhost.example.com", false},
		{"http://127.0.0.1.example.com", false},
		{"http://127.0.0.256", false},
		{"http://10.0.0.1", false},
		{"http://example.com", false},
		{"https://", false},
		{"https:///v1", false},
		{"https://:80", false},
		{"https://a:0", false},
		{"https://a:65536", false},
		{"https://a:8o", false},
		{"https://a:", false},
		{"https://[::1", false},
		{"https://[::1]x", false},
		{"https://user:secret-word@a", false},
		{"https://a/?q", false},
		{"https://a/#f", false},
		{"https://a b", false},
		{"https://a\r\nx: y", false},
		{"HTTPS://a", false},
		{"", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char out[PROVIDER_URL_MAX];
		struct ava_error err = {0};

		print_message("%s\n", cases[i].url);
		assert_int_equal(provider_url_check("X", cases[i].url, out, &err),
				 cases[i].good ? 0 : AVA_EINVAL);
		assert_null(strstr(err.text, "secret-word"));
	}
}

TEST(near_addresses)
{
	static const char *const near[] = {
		"http://127.0.0.1:8080/v1",
		"http://localhost:11434",
		"http://[::1]:1/v1",
		"https://10.0.0.7/v1",
		"https://172.16.0.1",
		"https://172.31.255.9:8443",
		"https://192.168.1.5:11434/v1",
		"https://169.254.3.4",
		"https://[fd12:3456::1]/v1",
		"https://[fc00::1]",
		"https://[fe80::1]:8080",
		"https://gpu.local/v1",
		"https://GPU.Local:8080",
	};
	static const char *const far[] = {
		"",
		"https://api.anthropic.com",
		"https://172.32.0.1",
		"https://172.15.0.1",
		"https://192.169.1.5",
		"https://11.0.0.1",
		"https://10.0.0.1.example.com",
		"https://10.0.0.300",
		"https://local/v1",
		"https://example.com/gpu.local",
		"https://[fec0::1]",
		"https://[fd::1]",
		"https://[2001:db8::1]/v1",
		"https://localhost.example.com",
	};

	for (size_t i = 0; i < ARRAY_LEN(near); i++) {
		print_message("%s\n", near[i]);
		assert_true(provider_url_is_near(near[i]));
	}
	for (size_t i = 0; i < ARRAY_LEN(far); i++) {
		print_message("%s\n", far[i]);
		assert_false(provider_url_is_near(far[i]));
	}
}

TEST(bad_keys)
{
	struct ava_error err = {0};

	setenv("ANTHROPIC_API_KEY", "sk-ant-secret\n", 1);
	assert_int_equal(config_read(&config, "c", NULL, 0, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "ANTHROPIC_API_KEY holds a blank, a line end"));
	assert_null(strstr(err.text, "secret"));
}

TEST(files)
{
	static const char keys[] =
		"OPENAI_API_KEY=sk-file-key-1\nMY_TOKEN=token-of-mine\nPLACE=not-secret\n";
	char dir[256], path[512], env[512];
	struct ava_error err = {0};
	struct redact *r = redact_new();
	struct buf b;

	snprintf(dir, sizeof(dir), "%s", unit_tmpdir());
	setenv("XDG_CONFIG_HOME", dir, 1);
	snprintf(path, sizeof(path), "%s/ava", dir);
	mkdir(path, 0700);
	assert_int_equal(config_load(&config, &err), 0);
	assert_false(config.exists);
	snprintf(path, sizeof(path), "%s/ava/config.yaml", dir);
	snprintf(env, sizeof(env), "%s/ava/env", dir);
	unit_write(path, "runs: {max: 4}\n", 15);
	unit_write(env, keys, sizeof(keys) - 1);
	chmod(env, 0600);
	setenv("OPENAI_API_KEY", "sk-environment-key", 1);
	assert_int_equal(config_load(&config, &err), 0);
	assert_true(config.exists);
	assert_string_equal(config.path, path);
	assert_int_equal(config.settings.runs_max, 4);
	assert_string_equal(provider_key(provider_find("openai", 6)), "sk-file-key-1");
	assert_int_equal(config_secrets(r, &err), 0);
	assert_true(redact_has_known(r, "sk-file-key-1", 13));
	assert_true(redact_has_known(r, "a token-of-mine b", 17));
	assert_true(redact_has_known(r, "sk-environment-key", 18));
	assert_false(redact_has_known(r, "not-secret", 10));
	unit_write(path, "runs: {mix: 4}\n", 15);
	assert_int_equal(config_load(&config, &err), AVA_EINVAL);
	buf_init(&b, 1000);
	buf_addf(&b, "%s:1: unknown key runs.mix: did you mean runs.max?", path);
	assert_string_equal(err.text, b.data);
	chmod(env, 0644);
	assert_int_equal(config_load(&config, &err), AVA_EDENIED);
	/* A link to nothing is a file that somebody meant to be there. */
	unlink(env);
	unlink(path);
	assert_int_equal(symlink("/nonexistent/file", path), 0);
	assert_int_equal(config_load(&config, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "config.yaml is a link to a file that is not there"));
	unlink(path);
	assert_int_equal(symlink("/nonexistent/file", env), 0);
	assert_int_equal(config_load(&config, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "env is a link to a file that is not there"));
	buf_fini(&b);
	redact_free(r);
	unit_rmdir(dir);
}

TEST(no_memory)
{
	static const char text[] = "models: {default: m, list: [{id: local/a, alias: m}]}";

	FAULT_LOOP(k, {
		struct ava_error err = {0};
		int rv = config_read(&config, "c", text, sizeof(text) - 1, &err);

		assert_true(rv == 0 || rv == AVA_ENOMEM);
		assert_int_equal(models_default() != NULL, rv == 0);
	});
}

/* The example can be used as it is, and says what the defaults are. */
TEST(example)
{
	struct ava_error err = {0};
	struct settings defaults;
	size_t len, n;
	char *text = unit_read_src("packaging/config.yaml", &len);

	settings_defaults(&defaults);
	if (config_read(&config, "packaging/config.yaml", text, len, &err) != 0)
		fail_msg("%s", err.text);
	assert_memory_equal(&config.settings, &defaults, sizeof(defaults));
	assert_string_equal(models_alias("mine", NULL), "openrouter/example/model-1");
	assert_int_equal(models_find("openrouter/example/model-1")->price.output, 1500000);
	model_fallback(&n);
	assert_int_equal(n, 1);
	free(text);
}

TEST(notify)
{
	static const char words[] = "/bin/a\0--b\0c d\0";
	static const char list[] = "notify:\n  exec: [/bin/a, --b, \"c d\"]\n  retry: 0\n";
	static const char path[] = "notify:\n  exec: /bin/a\n";
	static const char otel[] = "otel:\n  endpoint: https://c.example/otlp/\n  give_up: 60\n";
	char lines[9000] = "notify:\n  exec: [/bin/a";
	struct ava_error err = {0};

	assert_int_equal(config_read(&config, "c", list, strlen(list), &err), 0);
	assert_memory_equal(config.notify, words, sizeof(words));
	assert_int_equal(config.settings.notify_retry_s, 0);
	assert_int_equal(config_read(&config, "c", path, strlen(path), &err), 0);
	assert_memory_equal(config.notify, "/bin/a\0", 8);
	setenv("AVA_NOTIFY_EXEC", "/bin/other", 1);
	assert_int_equal(config_read(&config, "c", list, strlen(list), &err), 0);
	assert_memory_equal(config.notify, "/bin/other\0", 12);
	setenv("AVA_NOTIFY_EXEC", "", 1);
	assert_int_equal(config_read(&config, "c", list, strlen(list), &err), 0);
	assert_int_equal(config.notify[0], 0);
	setenv("AVA_NOTIFY_EXEC", "other", 1);
	assert_int_equal(config_read(&config, "c", list, strlen(list), &err), AVA_EINVAL);
	assert_int_equal(strncmp(err.text, "AVA_NOTIFY_EXEC: notify.exec is", 31), 0);
	unsetenv("AVA_NOTIFY_EXEC");
	assert_int_equal(config_read(&config, "c", otel, strlen(otel), &err), 0);
	assert_string_equal(config.otel, "https://c.example/otlp");
	assert_int_equal(config.settings.otel_give_up_s, 60);
	setenv("AVA_OTEL_ENDPOINT", "http://[::1]:4318", 1);
	assert_int_equal(config_read(&config, "c", otel, strlen(otel), &err), 0);
	assert_string_equal(config.otel, "http://[::1]:4318");
	setenv("AVA_OTEL_ENDPOINT", "", 1);
	assert_int_equal(config_read(&config, "c", otel, strlen(otel), &err), 0);
	assert_string_equal(config.otel, "");
	unsetenv("AVA_OTEL_ENDPOINT");
	for (int i = 0; i < CONFIG_NOTIFY_WORDS; i++)
		memcpy(lines + strlen(lines), ", x", 4);
	memcpy(lines + strlen(lines), "]\n", 3);
	assert_int_equal(config_read(&config, "c", lines, strlen(lines), &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "32 words"));
	memset(lines, 0, sizeof(lines));
	memcpy(lines, path, strlen(path) - 1);
	memset(lines + strlen(path) - 1, 'x', CONFIG_NOTIFY_BYTES);
	assert_int_equal(config_read(&config, "c", lines, strlen(lines), &err), AVA_EINVAL);
}

TEST(web)
{
	static const char text[] =
		"web:\n  allow_private:\n    - 127.0.0.1:8080\n    - \"[::1]:90\"\n"
		"  searxng: http://127.0.0.1:8888/\n  robots: 0\n";
	struct config c;
	struct ava_error err = {0};

	assert_int_equal(config_read(&c, "c", text, strlen(text), &err), 0);
	assert_memory_equal(c.web_inside, "127.0.0.1:8080\0[::1]:90\0", 24);
	assert_string_equal(c.searxng, "http://127.0.0.1:8888");
	assert_int_equal(c.settings.web_robots, 0);
	setenv("AVA_WEB_ALLOW_PRIVATE", "wiki.corp:80,10.0.0.1:81", 1);
	setenv("AVA_WEB_SEARXNG", "", 1);
	assert_int_equal(config_read(&c, "c", text, strlen(text), &err), 0);
	assert_memory_equal(c.web_inside,
			    "wiki.corp:80\0"
			    "10.0.0.1:81\0",
			    26);
	assert_string_equal(c.searxng, "");
	setenv("AVA_WEB_ALLOW_PRIVATE", "*", 1);
	assert_int_equal(config_read(&c, "c", text, strlen(text), &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "AVA_WEB_ALLOW_PRIVATE"));
	unsetenv("AVA_WEB_ALLOW_PRIVATE");
	unsetenv("AVA_WEB_SEARXNG");
	assert_int_equal(config_read(&c, "c", NULL, 0, &err), 0);
	assert_string_equal(c.web_inside, "");
	assert_int_equal(c.settings.web_robots, 1);
}

TEST(budgets)
{
	static const char text[] =
		"budget:\n  week_cents: 7\n  folders:\n"
		"    /nowhere/site: {day_cents: 500, month_cents: 6000}\n"
		"  tags: {client=acme: {week_cents: 1000}, nightly: {day_cents: 2}}\n";
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{"budget:\n  tags: [a]\n",
		 "c:2: budget.tags is a list; it must be a mapping of tags"},
		{"budget:\n  tags: {a b: {day_cents: 1}}\n",
		 "c:2: budget.tags has \"a b\", which is"},
		{"budget:\n  tags: {/a: {day_cents: 1}}\n", "which is no tag"},
		{"budget:\n  tags:\n    a: 5\n", "c:3: the budget of a is \"5\"; it must have"},
		{"budget:\n  tags: {a: {}}\n", "a is an empty mapping; it must have day_cents"},
		{"budget:\n  tags: {a: []}\n", "a is an empty list; it must have day_cents"},
		{"budget:\n  folders: {/nowhere//a: {day_cents: 1}}\n", "without // and"},
		{"budget:\n  folders: {/nowhere/: {day_cents: 1}}\n", "without a / at its end"},
		{"budget:\n  tags: {a: {day: 1}}\n",
		 "unknown key day of the budget of a: there are"},
		{"budget:\n  tags: {a: {day_cents: 0}}\n",
		 "c:2: day_cents is \"0\"; it must be a whole number from 1"},
		{"budget:\n  folders: {srv: {day_cents: 1}}\n", "must be an absolute path"},
		{"budget:\n  folders: {/usr/../usr: {day_cents: 1}}\n",
		 "its path without links is /usr"},
		{"budget:\n  tag: {a: {day_cents: 1}}\n", "did you mean budget.tags?"},
	};
	struct config c;
	struct ava_error err = {0};
	char many[4096] = "budget:\n  tags:\n";

	assert_int_equal(config_read(&c, "c", text, strlen(text), &err), 0);
	assert_int_equal(c.settings.budget_week_cents, 7);
	assert_int_equal(c.settings.nbudgets, 3);
	assert_string_equal(c.settings.budgets[0].of, "/nowhere/site");
	assert_int_equal(c.settings.budgets[0].cents[CLOCK_MONTH], 6000);
	assert_int_equal(c.settings.budgets[1].cents[CLOCK_WEEK], 1000);
	setenv("AVA_BUDGET_TAGS", "{other: {month_cents: 3}}", 1);
	assert_int_equal(config_read(&c, "c", text, strlen(text), &err), 0);
	assert_int_equal(c.settings.nbudgets, 2);
	assert_string_equal(c.settings.budgets[0].of, "/nowhere/site");
	assert_string_equal(c.settings.budgets[1].of, "other");
	setenv("AVA_BUDGET_TAGS", "other", 1);
	assert_int_equal(config_read(&c, "c", text, strlen(text), &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "AVA_BUDGET_TAGS"));
	setenv("AVA_BUDGET_TAGS", "", 1);
	assert_int_equal(config_read(&c, "c", text, strlen(text), &err), 0);
	assert_int_equal(c.settings.nbudgets, 1);
	unsetenv("AVA_BUDGET_TAGS");
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		assert_int_equal(config_read(&c, "c", wrong[i].text, strlen(wrong[i].text), &err),
				 AVA_EINVAL);
		if (!strstr(err.text, wrong[i].says))
			fail_msg("%s: %s", wrong[i].text, err.text);
	}
	for (int i = 0; i < 61; i++)
		sprintf(many + strlen(many), "    t%d: {day_cents: 1}\n", i);
	assert_int_equal(config_read(&c, "c", many, strlen(many), &err), 0);
	assert_int_equal(c.settings.nbudgets, 61);
	strcat(many, "    more: {day_cents: 1}\n");
	assert_int_equal(config_read(&c, "c", many, strlen(many), &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "too many budgets: 61 limits at the most"));
}

/* doc/CONFIG.md has a row for each setting, with its default and range. */
TEST(documented)
{
	size_t len;
	char *text = unit_read_src("doc/CONFIG.md", &len);

	for (const struct settings_key *k = settings_keys; k->name; k++) {
		char row[200];

		snprintf(row, sizeof(row), "| `%s` | %lld | %lld to %lld |", k->name,
			 (long long)k->def, (long long)k->min, (long long)k->max);
		if (!strstr(text, row))
			fail_msg("not in doc/CONFIG.md: %s", row);
	}
	for (size_t i = 0; keys_known[i]; i++)
		if (!strstr(text, keys_known[i]))
			fail_msg("not in doc/CONFIG.md: %s", keys_known[i]);
	free(text);
}

UNIT_GROUP(.before = clean, .after = clean);

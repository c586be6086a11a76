/* Models: a table of facts, the services they are had from, and from a name to the model
 * that it stands for.
 *
 * A name is "offline", "offline:FILE", "service/model", or an alias. An alias
 * and the default are those of the first service that has its key; without one
 * they are the offline model and *why says so. An id of a service is what was
 * asked for and nothing else: without its key it is refused.
 *
 * Prices are micro-USD per million tokens, so $3.00 is 3000000; -1 is unknown
 * and stays unknown. Some services ask more for long prompts: such a model has
 * the window up to which its price holds, config.yaml may widen it and give the
 * higher price. What can fail: a name that is none, a service without a key,
 * rows of config.yaml that clash, an address that is
 * none or that would send a key in the clear, memory. */
#include "provider/model.h"

#include <ctype.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/near.h"
#include "base/settings.h"
#include "base/strmap.h"
#include "base/util.h"
#include "provider/dialect.h"
#include "provider/learned.h"
#include "provider/profile.h"
#include "provider/provider_url.h"

const char *const models_date = "2026-11-21";
const char *const models_source = "the price pages of the services (platform.claude.com/docs, "
				  "developers.openai.com/api/docs/pricing)";

#define USD(n) ((int64_t)((n)*1000000 + 0.5))
/* Anthropic's cache prices: a five-minute write costs input and a quarter, a read a tenth of
 * input. */
#define CLAUDE(in, out)                                                                            \
	{                                                                                          \
		USD(in), USD(out), USD((in) / 10.0), USD((in)*1.25)                                \
	}
#define GPT(in, out, cached)                                                                       \
	{                                                                                          \
		USD(in), USD(out), USD(cached), USD(in)                                            \
	}
/* OpenAI charges for cache writes from 5.6 on. */
#define GPT_WRITE(in, out, cached, write)                                                          \
	{                                                                                          \
		USD(in), USD(out), USD(cached), USD(write)                                         \
	}

/* An alias's id at OpenRouter; its facts come from another row. */
#define ALIAS(id, alias)                                                                           \
	{                                                                                          \
		id, alias, 0, 0, {-1, -1, -1, -1}, NONE, 0, ""                                     \
	}
#define SAMPLING "temperature top_p top_k"
#define ADAPTIVE MODEL_THINKING_ADAPTIVE
#define BUDGET   MODEL_THINKING_BUDGET
#define NONE     MODEL_THINKING_NONE

/* clang-format off: a table */
static const struct model_row rows[] = {
	/* Columns: id, aliases, window, most output, prices, thinking, least cached prefix,
	 * rejects */
	{"anthropic/claude-fable-5-1", "claude-fable", 1000000, 128000, CLAUDE(10, 50), ADAPTIVE,
	 512, SAMPLING},
	{"anthropic/claude-opus-5-5", "claude-opus", 1000000, 128000, CLAUDE(4, 20), ADAPTIVE, 512,
	 SAMPLING},
	{"anthropic/claude-sonnet-5-5", "claude-sonnet", 1000000, 128000, CLAUDE(2, 10), ADAPTIVE,
	 1024, SAMPLING},
	{"anthropic/claude-haiku-5-5", "claude-haiku", 100000, 128000, CLAUDE(0.10, 0.50), ADAPTIVE,
	 1024, SAMPLING},
	{"anthropic/claude-fable-5", NULL, 1000000, 128000, CLAUDE(10, 50), ADAPTIVE, 512,
	 SAMPLING},
	{"anthropic/claude-opus-5", NULL, 1000000, 128000, CLAUDE(5, 25), ADAPTIVE, 512, SAMPLING},
	{"anthropic/claude-sonnet-5", NULL, 1000000, 128000, CLAUDE(2, 10), ADAPTIVE, 1024,
	 SAMPLING},
	{"anthropic/claude-opus-4-8", NULL, 1000000, 128000, CLAUDE(5, 25), ADAPTIVE, 1024,
	 SAMPLING},
	{"anthropic/claude-opus-4-7", NULL, 1000000, 128000, CLAUDE(5, 25), ADAPTIVE, 2048,
	 SAMPLING},
	{"anthropic/claude-opus-4-6", NULL, 1000000, 128000, CLAUDE(5, 25), ADAPTIVE, 4096, ""},
	{"anthropic/claude-sonnet-4-6", NULL, 1000000, 64000, CLAUDE(3, 15), ADAPTIVE, 1024, ""},
	{"anthropic/claude-opus-4-5", NULL, 200000, 64000, CLAUDE(5, 25), BUDGET, 4096, ""},
	{"anthropic/claude-sonnet-4-5", "claude-sonnet-4.5", 200000, 64000, CLAUDE(3, 15), BUDGET,
	 1024, ""},
	{"anthropic/claude-haiku-4-5", "claude-haiku-4.5", 200000, 64000, CLAUDE(1, 5), BUDGET,
	 4096, ""},
	{"anthropic/claude-opus-4-1", NULL, 200000, 32000, CLAUDE(15, 75), BUDGET, 1024, ""},
	{"anthropic/claude-sonnet-4", NULL, 200000, 64000, CLAUDE(3, 15), BUDGET, 1024, ""},
	{"openai/gpt-5.6-sol", "claude-opus claude-fable", 272000, 128000,
	 GPT_WRITE(5, 30, 0.50, 6.25), ADAPTIVE, 1024, SAMPLING},
	{"openai/gpt-5.6-terra", "claude-sonnet", 272000, 128000, GPT_WRITE(2, 12, 0.20, 2.50),
	 ADAPTIVE, 1024, SAMPLING},
	{"openai/gpt-5.6-luna", "claude-haiku", 200000, 128000, GPT_WRITE(0.20, 1.20, 0.02, 0.25),
	 ADAPTIVE, 1024, SAMPLING},
	{"openai/gpt-5.5", NULL, 272000, 128000, GPT(5, 30, 0.50), ADAPTIVE, 1024, SAMPLING},
	{"openai/gpt-5.4", NULL, 272000, 128000, GPT(2.50, 15, 0.25), ADAPTIVE, 1024, SAMPLING},
	{"openai/gpt-5.4-mini", NULL, 272000, 128000, GPT(0.75, 4.50, 0.075), ADAPTIVE, 1024,
	 SAMPLING},
	{"openai/gpt-5.4-nano", NULL, 272000, 128000, GPT(0.20, 1.25, 0.02), ADAPTIVE, 1024,
	 SAMPLING},
	{"openai/gpt-5.2", NULL, 272000, 128000, GPT(1.75, 14, 0.175), ADAPTIVE, 1024, SAMPLING},
	{"openai/gpt-5.1", NULL, 272000, 128000, GPT(1.25, 10, 0.125), ADAPTIVE, 1024, SAMPLING},
	{"openai/gpt-5", NULL, 272000, 128000, GPT(1.25, 10, 0.125), ADAPTIVE, 1024, SAMPLING},
	{"openai/gpt-5-mini", NULL, 272000, 128000, GPT(0.25, 2, 0.025), ADAPTIVE, 1024, SAMPLING},
	{"openai/gpt-5-nano", NULL, 272000, 128000, GPT(0.05, 0.40, 0.005), ADAPTIVE, 1024,
	 SAMPLING},
	{"openai/gpt-4.1", NULL, 1047576, 32768, GPT(2, 8, 0.50), NONE, 1024, "top_k"},
	{"openai/gpt-4.1-mini", NULL, 1047576, 32768, GPT(0.40, 1.60, 0.10), NONE, 1024, "top_k"},
	{"openai/gpt-4o", NULL, 128000, 16384, GPT(2.50, 10, 1.25), NONE, 1024, "top_k"},
	{"openai/gpt-4o-mini", NULL, 128000, 16384, GPT(0.15, 0.60, 0.075), NONE, 1024, "top_k"},
	ALIAS("openrouter/anthropic/claude-fable-5.1", "claude-fable"),
	ALIAS("openrouter/anthropic/claude-opus-5.5", "claude-opus"),
	ALIAS("openrouter/anthropic/claude-sonnet-5.5", "claude-sonnet"),
	ALIAS("openrouter/anthropic/claude-haiku-5.5", "claude-haiku"),
	ALIAS("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4.5"),
	ALIAS("openrouter/anthropic/claude-haiku-4.5", "claude-haiku-4.5"),
};
/* clang-format on */

/* Settings of config.yaml; strings live in `mem`. */
static struct {
	struct arena mem;
	struct model_row rows[MODELS_MAX];
	size_t nrows;
	const char *fallbacks[FALLBACKS_MAX];
	size_t nfallbacks;
	const char *standard; /* id in models.default */
	const char *ava;      /* id in ava.model */
} own;

const struct model_row *models_builtin(size_t i)
{
	return i < ARRAY_LEN(rows) ? &rows[i] : NULL;
}

/* ---- finding */

/* `list` holds `word` between blanks. */
static bool model_has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *s = list; s && *s; s += strcspn(s, " "), s += strspn(s, " "))
		if (strcspn(s, " ") == len && strncmp(s, word, len) == 0)
			return true;
	return false;
}

static const struct model_row *exact(const char *id)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) /* the row of an alias has no context */
		if (rows[i].context != 0 && strcmp(rows[i].id, id) == 0)
			return &rows[i];
	return NULL;
}

/* Cuts "-20251001" or "-2026-04-01" off; false: there is none. */
static bool cut_date(char *id)
{
	static const char *const forms[] = {"-dddddddd", "-dddd-dd-dd"};
	size_t len = strlen(id);

	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		size_t n = strlen(forms[i]), k = 0;

		if (len <= n)
			continue;
		while (k < n && (forms[i][k] == 'd' ? isdigit((unsigned char)id[len - n + k]) != 0
						    : id[len - n + k] == '-'))
			k++;
		if (k == n) {
			id[len - n] = '\0';
			return true;
		}
	}
	return false;
}

const struct model_row *models_find_builtin(const char *id)
{
	const struct model_row *row;
	char text[264];

	if (strncmp(id, "openrouter/", 11) == 0)
		id += 11;
	if (strlen(id) >= sizeof(text))
		return NULL;
	snprintf(text, sizeof(text), "%s", id);
	/* OpenRouter writes claude-haiku-4.5, Anthropic claude-haiku-4-5. */
	if (strncmp(text, "anthropic/", 10) == 0)
		for (char *s = text; (s = strchr(s, '.')) != NULL;)
			*s = '-';
	row = exact(text);
	if (!row && cut_date(text))
		row = exact(text);
	return row;
}

const struct model_row *models_find(const char *id)
{
	for (size_t i = 0; i < own.nrows; i++)
		if (strcmp(own.rows[i].id, id) == 0)
			return &own.rows[i];
	return models_find_builtin(id);
}

const char *models_alias(const char *alias, const struct provider *p)
{
	size_t len = p ? strlen(p->name) : 0;

	for (size_t i = 0; i < own.nrows; i++)
		if (model_has_word(own.rows[i].aliases, alias))
			return own.rows[i].id;
	for (size_t i = 0; p && i < ARRAY_LEN(rows); i++)
		if (model_has_word(rows[i].aliases, alias) &&
		    strncmp(rows[i].id, p->name, len) == 0 && rows[i].id[len] == '/')
			return rows[i].id;
	return NULL;
}

bool models_is_alias(const char *alias)
{
	for (size_t i = 0; i < own.nrows; i++)
		if (model_has_word(own.rows[i].aliases, alias))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (model_has_word(rows[i].aliases, alias))
			return true;
	return false;
}

static const struct model_row *row_at(size_t i)
{
	return i < own.nrows ? &own.rows[i] : &rows[i - own.nrows];
}

/* Add the first alias that contains `part`: "haiku" gives claude-haiku. */
static void near_part(struct near *n, const char *part)
{
	for (size_t i = 0; n->len == 0 && i < own.nrows + ARRAY_LEN(rows); i++) {
		const char *list = row_at(i)->aliases;
		const char *at = list && strlen(part) > 2 ? strstr(list, part) : NULL;

		if (!at)
			continue;
		while (at > list && at[-1] != ' ')
			at--;
		n->best = at;
		n->len = strcspn(at, " ");
	}
}

const char *models_near(const char *name)
{
	static _Thread_local char best[200];
	struct near n = near_start(name);

	for (size_t i = 0; i < own.nrows + ARRAY_LEN(rows); i++) {
		const struct model_row *r = row_at(i);
		const char *tail = strchr(r->id, '/') + 1;

		near_words(&n, r->aliases ? r->aliases : "");
		near_word(&n, r->id, strlen(r->id));
		near_word(&n, tail, strlen(tail)); /* the id without its service */
		if (n.best == tail) {
			n.best = r->id;
			n.len = strlen(r->id);
		}
	}
	near_words(&n, "offline");
	near_part(&n, name);
	if (n.len == 0 || n.len >= sizeof(best))
		return NULL;
	snprintf(best, sizeof(best), "%.*s", (int)n.len, n.best);
	return best;
}

/* ---- what config.yaml adds */

static const char *model_keep(const char *s)
{
	if (!own.mem.max)
		arena_init(&own.mem, 1u << 20);
	return arena_copy(&own.mem, s, strlen(s));
}

static int model_no_memory(struct ava_error *err)
{
	return err_set(err, AVA_ENOMEM, "out of memory");
}

int models_add(const struct model_row *row, struct ava_error *err)
{
	struct model_row *r = &own.rows[own.nrows];
	const char *aliases = row->aliases ? row->aliases : "";
	char alias[128];

	if (own.nrows == MODELS_MAX)
		return err_set(err, AVA_ETOOBIG, "more than %d models", MODELS_MAX);
	for (size_t i = 0; i < own.nrows; i++)
		if (strcmp(own.rows[i].id, row->id) == 0)
			return err_set(err, AVA_EEXIST, "the model %.120s stands there twice",
				       row->id);
	for (const char *s = aliases; *s; s += strcspn(s, " "), s += strspn(s, " ")) {
		snprintf(alias, sizeof(alias), "%.*s", (int)strcspn(s, " "), s);
		if (models_alias(alias, NULL))
			return err_set(err, AVA_EEXIST,
				       "the alias %.80s stands for another model already", alias);
	}
	*r = *row;
	r->id = model_keep(row->id);
	r->aliases = model_keep(aliases);
	r->rejects = model_keep(row->rejects ? row->rejects : "");
	if (!r->id || !r->aliases || !r->rejects)
		return model_no_memory(err);
	own.nrows++;
	return 0;
}

int models_add_fallback(const char *id, struct ava_error *err)
{
	if (own.nfallbacks == FALLBACKS_MAX)
		return err_set(err, AVA_ETOOBIG, "more than %d fallbacks", FALLBACKS_MAX);
	for (size_t i = 0; i < own.nfallbacks; i++)
		if (strcmp(own.fallbacks[i], id) == 0)
			return err_set(err, AVA_EEXIST, "%.120s stands there twice", id);
	own.fallbacks[own.nfallbacks] = model_keep(id);
	if (!own.fallbacks[own.nfallbacks])
		return model_no_memory(err);
	own.nfallbacks++;
	return 0;
}

void models_clear_fallback(void)
{
	own.nfallbacks = 0;
}

const char *const *model_fallback(size_t *n)
{
	*n = own.nfallbacks;
	return own.fallbacks;
}

int models_set_default(const char *name, struct ava_error *err)
{
	own.standard = name && *name ? model_keep(name) : NULL;
	return name && *name && !own.standard ? model_no_memory(err) : 0;
}

const char *models_default(void)
{
	return own.standard;
}

int models_set_ava(const char *name, struct ava_error *err)
{
	own.ava = name && *name ? model_keep(name) : NULL;
	return name && *name && !own.ava ? model_no_memory(err) : 0;
}

const char *models_ava(void)
{
	return own.ava;
}

const struct model_row *models_own(size_t i)
{
	return i < own.nrows ? &own.rows[i] : NULL;
}

void models_reset(void)
{
	arena_fini(&own.mem);
	memset(&own, 0, sizeof(own));
}

/* ---- prices */

int price_parse(const char *text, int64_t *microusd)
{
	int64_t value = 0, unit = INT64_C(1000000);
	const char *s = text;

	for (; isdigit((unsigned char)*s); s++) {
		value = value * 10 + (*s - '0') * INT64_C(1000000);
		if (value > PRICE_MAX_USD * INT64_C(1000000))
			return AVA_EINVAL;
	}
	if (*s == '.')
		for (s++; isdigit((unsigned char)*s); s++) {
			unit /= 10;
			if (unit == 0)
				return AVA_EINVAL;
			value += (*s - '0') * unit;
		}
	/* "." and "3." are half a number. */
	if (*s != '\0' || s == text || s[-1] == '.' || value > PRICE_MAX_USD * INT64_C(1000000))
		return AVA_EINVAL;
	*microusd = value;
	return 0;
}

/* ---- services. Address: the variable (file env, then environment), else config.yaml, else
 * the service's own. Key: the variable only, config.yaml never holds one. */

static struct provider services[] = {
	{.name = "anthropic",
	 .dialect = &dialect_anthropic,
	 .own_url = "https://api.anthropic.com",
	 .needs_key = true,
	 .key_name = "ANTHROPIC_API_KEY",
	 .url_name = "ANTHROPIC_BASE_URL"},
	{.name = "openrouter",
	 .dialect = &dialect_openai,
	 .own_url = "https://openrouter.ai/api/v1",
	 .needs_key = true,
	 .key_name = "OPENROUTER_API_KEY",
	 .url_name = "OPENROUTER_BASE_URL"},
	{.name = "openai",
	 .dialect = &dialect_openai,
	 .own_url = "https://api.openai.com/v1",
	 .needs_key = true,
	 .key_name = "OPENAI_API_KEY",
	 .url_name = "OPENAI_BASE_URL"},
	{.name = "local",
	 .dialect = &dialect_openai,
	 .own_url = "",
	 .key_name = "AVA_LOCAL_API_KEY",
	 .url_name = "AVA_LOCAL_BASE_URL"},
};

const struct provider *provider_at(size_t i)
{
	return i < ARRAY_LEN(services) ? &services[i] : NULL;
}

static struct provider *service_named(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(services); i++)
		if (strlen(services[i].name) == len && memcmp(services[i].name, name, len) == 0)
			return &services[i];
	return NULL;
}

const struct provider *provider_find(const char *name, size_t len)
{
	return service_named(name, len);
}

const char *provider_key(const struct provider *p)
{
	return keys_get(p->key_name);
}

bool provider_usable(const struct provider *p)
{
	return p->needs_key ? provider_key(p) != NULL : p->base_url[0] != '\0';
}

int provider_require(const struct provider *p, const char *what, struct ava_error *err)
{
	char path[300];

	if (provider_usable(p))
		return 0;
	if (settings_config_path("env", path, sizeof(path), NULL) != 0)
		snprintf(path, sizeof(path), "$XDG_CONFIG_HOME/ava/env");
	return err_set(err, AVA_EUNSUPPORTED,
		       "%.100s needs %s: set it, or write it into %s, and restart the daemon "
		       "(or use the model offline)",
		       what, p->needs_key ? p->key_name : p->url_name, path);
}

bool provider_lacks(const struct provider *p, char *text, size_t size)
{
	bool half = p->needs_key ? strcmp(p->base_url, p->own_url) != 0 : p->model[0] != '\0';

	if (provider_usable(p) || !half)
		return false;
	snprintf(text, size, "%s is set without %s: set it%s",
		 p->needs_key ? p->url_name : "AVA_LOCAL_MODEL",
		 p->needs_key ? p->key_name : p->url_name,
		 p->needs_key ? ", or AVA_LOCAL_BASE_URL where no key is needed"
			      : " to where its server listens (http://127.0.0.1:11434/v1)");
	return true;
}

bool provider_is_near(const struct provider *p)
{
	return p && (strcmp(p->name, "local") == 0 || provider_url_is_near(p->base_url));
}

/* ---- bringing it together */

int provider_set(const char *name, const char *base_url, const char *model, struct ava_error *err)
{
	struct provider *p = service_named(name, strlen(name));

	if (!p)
		return err_set(err, AVA_EINVAL, "there is no service %.60s", name);
	if (strlen(model) >= sizeof(p->set_model))
		return err_set(err, AVA_EINVAL, "the model %.60s... is too long a name", model);
	snprintf(p->set_model, sizeof(p->set_model), "%s", model);
	if (!*base_url)
		p->set_url[0] = '\0';
	return *base_url ? provider_url_check("base_url", base_url, p->set_url, err) : 0;
}

bool provider_versioned(const struct provider *p)
{
	return fnmatch("*/v[0-9]*", p->base_url, 0) == 0 ||
	       fnmatch("*/v[0-9]*", p->dialect->path, 0) == 0;
}

/* Cut the path of a call (such as /v1/messages) that people copy from examples; calls append it
 * themselves. In the Messages form it begins with the version. */
static void strip_path(const struct provider *p, char *url)
{
	static const char *const paths[] = {"/chat/completions", "/completions", "/responses",
					    "/messages", "/models"};
	size_t len = strlen(url), n;

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		n = strlen(paths[i]);
		if (len > n && strcmp(url + len - n, paths[i]) == 0)
			url[len -= n] = '\0';
	}
	if (strncmp(p->dialect->path, "/v1/", 4) == 0 && len > 3 &&
	    strcmp(url + len - 3, "/v1") == 0)
		url[len - 3] = '\0';
}

int provider_configure(struct ava_error *err)
{
	struct provider *local = service_named("local", 5);
	const char *model = keys_get("AVA_LOCAL_MODEL");
	int rv = 0;

	if (model && strlen(model) >= sizeof(local->model))
		return err_set(err, AVA_EINVAL, "AVA_LOCAL_MODEL is too long a name");
	snprintf(local->model, sizeof(local->model), "%s", model ? model : local->set_model);
	for (size_t i = 0; i < ARRAY_LEN(services) && rv == 0; i++) {
		struct provider *p = &services[i];
		const char *url = keys_get(p->url_name), *key = provider_key(p);

		if (url)
			rv = provider_url_check(p->url_name, url, p->base_url, err);
		else
			snprintf(p->base_url, sizeof(p->base_url), "%s",
				 p->set_url[0] ? p->set_url : p->own_url);
		strip_path(p, p->base_url);
		if (rv == 0 && key)
			rv = keys_check(p->key_name, key, err);
		p->http2 = strncmp(p->base_url, "https://", 8) == 0;
	}
	return rv;
}

/* ---- from a name to a model */

#define NO_KEY         "no provider key is set, so the offline model is used"
#define STANDARD       "claude-sonnet" /* the model wanted of a service by default */
#define OFFLINE_OUTPUT 8192
#define UNKNOWN_PRICE                                                                              \
	{                                                                                          \
		-1, -1, -1, -1                                                                     \
	}

static _Thread_local char why_text[400]; /* of each thread, since pool threads read records, too */

#define SCRIPTED   "offline:"
#define SCRIPT_MAX (sizeof(((struct model *)0)->id) - sizeof(SCRIPTED)) /* bytes of the path */

static void set_offline(struct model *out)
{
	*out = (struct model){
		.id = "offline",
		.dialect = &dialect_offline,
		.max_output = OFFLINE_OUTPUT,
		.context = 200000,
		.max_tokens_field = "max_tokens",
		.known = true,
	};
}

static int set_script(struct model *out, const char *name, const char *file, struct ava_error *err)
{
	size_t len = strlen(file);

	if (file[0] != '/')
		return err_set(err, AVA_EINVAL,
			       "the script in %.100s must be an absolute path: "
			       "offline:/path/to/FILE.jsonl",
			       name);
	if (len > SCRIPT_MAX)
		return err_set(err, AVA_EINVAL,
			       "the path of the script is %zu bytes long, %zu at the most", len,
			       SCRIPT_MAX);
	set_offline(out);
	snprintf(out->id, sizeof(out->id), SCRIPTED "%s", file);
	return 0;
}

/* The service in an id "anthropic/…"; NULL: none. */
static const struct provider *service_of(const char *name)
{
	size_t len = strcspn(name, "/");

	return name[len] == '/' ? provider_find(name, len) : NULL;
}

static const struct provider *first_usable(void)
{
	for (size_t i = 0; i < ARRAY_LEN(services); i++)
		if (provider_usable(&services[i]))
			return &services[i];
	return NULL;
}

/* A name as services have them: no blanks, no control characters, UTF-8 left
 * to them. */
static bool name_good(const char *s)
{
	size_t n = 0;

	for (; s[n]; n++)
		if ((unsigned char)s[n] <= ' ' || s[n] == 127 || s[n] == '"' || s[n] == '\\')
			return false;
	return n > 0 && n < sizeof(((struct model *)0)->wire_name);
}

static void model_take_row(struct model *out, const struct model_row *row)
{
	/* An output limit from config.yaml is used as given. A built-in one is the model's maximum,
	 * and is lowered, since a call reserves the cost of its whole output. */
	bool builtin = row == models_find_builtin(row->id);

	out->context = row->context;
	out->max_output = builtin ? MIN(row->max_output, MODEL_OUTPUT_PER_CALL) : row->max_output;
	out->price = row->price;
	out->dialect = row->dialect ? row->dialect : out->dialect;
	out->thinking = row->thinking;
	out->cache_min = row->cache_min;
	snprintf(out->drop, sizeof(out->drop), "%s", row->rejects);
	out->known = true;
}

/* A table's window is an upper bound for the learned one; without a table the learned one is
 * used. */
static void take_learned(struct model *out)
{
	struct learned l;

	if (!learned_find(out->id, out->provider->base_url, &l))
		return;
	if (l.window > 0)
		out->context = out->known ? MIN(out->context, l.window) : l.window;
	if (l.output_max > 0)
		out->max_output = MIN(out->max_output, l.output_max);
}

static int set_remote(struct model *out, const char *name, const struct provider *p,
		      struct ava_error *err)
{
	const char *wire = name + strlen(p->name) + 1;
	const struct model_row *row;
	bool local = strcmp(p->name, "local") == 0;

	if (!name_good(wire))
		return err_set(err, AVA_EINVAL,
			       "%.100s names no model: after %s/ stands its name, without blanks, "
			       "%zu bytes at the most",
			       name, p->name, sizeof(out->wire_name) - 1);
	*out = (struct model){
		.dialect = p->dialect,
		.provider = p,
		.price = UNKNOWN_PRICE,
		.context = local ? MODEL_LOCAL_CONTEXT : MODEL_DEFAULT_CONTEXT,
		.max_output = MODEL_DEFAULT_OUTPUT,
		.max_tokens_field =
			strcmp(p->name, "openai") == 0 ? "max_completion_tokens" : "max_tokens",
	};
	if (local) /* the user's own machine costs nothing */
		out->price = (struct agent_price){0};
	snprintf(out->id, sizeof(out->id), "%s", name);
	snprintf(out->wire_name, sizeof(out->wire_name), "%s", wire);
	row = models_find(name);
	if (row)
		model_take_row(out, row);
	(void)model_speak(out, learned_dialect(out->id, NULL));
	profile_add(out->drop, sizeof(out->drop), p->base_url, wire);
	take_learned(out);
	return 0;
}

/* A service that is to be called now: check its key and address. */
static int set_usable(struct model *out, const char *id, struct ava_error *err)
{
	int rv = set_remote(out, id, service_of(id), err);

	return rv == 0 ? provider_require(out->provider, id, err) : rv;
}

/* ---- aliases and the default */

bool model_lacks(char *text, size_t size)
{
	bool lacks = false;

	for (size_t i = 0; i < ARRAY_LEN(services) && !first_usable(); i++)
		lacks = provider_lacks(&services[i], text, size) || lacks;
	return lacks;
}

static int set_alias(struct model *out, const char *alias, struct ava_error *err)
{
	const struct provider *p = first_usable();
	const char *id = models_alias(alias, p);
	char local[264], names[200], lacks[300];
	size_t n;

	if (!id && !p) {
		set_offline(out);
		snprintf(why_text, sizeof(why_text), "%s", NO_KEY);
		if (model_lacks(lacks, sizeof(lacks)))
			snprintf(why_text, sizeof(why_text), "%s; %s", NO_KEY, lacks);
		return 0;
	}
	if (!id && strcmp(p->name, "local") == 0) {
		n = p->model[0] ? 0 : learned_names(p->base_url, names, sizeof(names));
		if (n > 1)
			return err_set(err, AVA_EINVAL,
				       "the server at %.100s has %zu models (%s): set "
				       "AVA_LOCAL_MODEL to one of them, or name it (local/...)",
				       p->base_url, n, names);
		snprintf(local, sizeof(local), "local/%s",
			 p->model[0] ? p->model
			 : n == 1    ? names
				     : "default");
		id = local;
	}
	if (!id)
		return err_set(err, AVA_EINVAL,
			       "%s has no model for the alias %.80s: give the id of a model, or "
			       "the alias in models.list of config.yaml",
			       p->name, alias);
	/* An alias of config.yaml may name a service without a key. */
	snprintf(why_text, sizeof(why_text), "%.80s stands for %.130s, %s", alias, id,
		 service_of(id) == p ? "and " : "as config.yaml says");
	if (service_of(id) == p)
		snprintf(why_text + strlen(why_text), sizeof(why_text) - strlen(why_text),
			 "%s is set",
			 p->needs_key            ? p->key_name
			 : keys_get(p->url_name) ? p->url_name
						 : "providers.local.base_url");
	return set_usable(out, id, err);
}

static int model_unknown(const char *name, struct ava_error *err)
{
	const char *near = models_near(name);

	return err_set(err, AVA_EINVAL,
		       "unknown model %.100s%s%s%s: there are offline, "
		       "offline:/path/to/FILE.jsonl, claude-haiku, claude-sonnet, "
		       "claude-sonnet-4.5, claude-opus, and ids of services (anthropic/..., "
		       "openrouter/..., openai/..., local/...)",
		       name[0] != 0 ? name : "\"\"", near ? " (did you mean " : "",
		       near ? near : "", near ? "?)" : "");
}

static int resolve(const char *name, struct model *out, struct ava_error *err)
{
	if (strcmp(name, "offline") == 0) {
		set_offline(out);
		snprintf(why_text, sizeof(why_text), "the offline model was asked for");
		return 0;
	}
	if (strncmp(name, SCRIPTED, strlen(SCRIPTED)) == 0) {
		snprintf(why_text, sizeof(why_text), "scripted turns were asked for");
		return set_script(out, name, name + strlen(SCRIPTED), err);
	}
	if (service_of(name)) {
		snprintf(why_text, sizeof(why_text), "it was asked for");
		return set_usable(out, name, err);
	}
	return models_is_alias(name) ? set_alias(out, name, err) : model_unknown(name, err);
}

int model_restore(const char *id, struct model *out, struct ava_error *err)
{
	const struct provider *p = service_of(id);

	if (p)
		return set_remote(out, id, p, err);
	if (strncmp(id, "offline", 7) != 0)
		return err_set(err, AVA_EINVAL, "unknown model %.100s", id);
	return resolve(id, out, err);
}

int model_resolve(const char *name, struct model *out, const char **why, struct ava_error *err)
{
	const char *standard = models_default();
	int rv = resolve(name ? name : standard ? standard : STANDARD, out, err);

	if (rv == 0 && !name && standard)
		snprintf(why_text, sizeof(why_text), "models.default of config.yaml says so");
	if (rv == 0 && why != NULL)
		*why = why_text;
	return rv;
}

/* ---- parameters */

const char *model_config(const struct model *m)
{
	return strncmp(m->id, SCRIPTED, strlen(SCRIPTED)) == 0 ? m->id + strlen(SCRIPTED) : "";
}

bool model_takes(const struct model *m, const char *parameter)
{
	return !model_has_word(m != NULL ? m->drop : NULL, parameter);
}

bool model_drop(struct model *m, const char *parameter)
{
	size_t len = 0, used = strlen(m->drop);

	if (!model_takes(m, parameter))
		return true;
	for (const char *s = parameter; isalnum((unsigned char)*s) || (*s && strchr("_.$", *s));
	     s++)
		len++;
	if (len == 0 || parameter[len] != '\0' || used + len + 2 > sizeof(m->drop))
		return false;
	snprintf(m->drop + used, sizeof(m->drop) - used, "%s%s", used ? " " : "", parameter);
	return true;
}

/* ---- shared copies. Copies of one id whose facts differ (a changed table, a rejected parameter)
 * stand beside each other. The lock is for several runtimes in one process. */

struct shared {
	struct model model;
	size_t users;
	bool listed; /* the model is in shared_by_id */
};

static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static struct strmap shared_by_id;

static struct shared *shared_add(const struct model *m)
{
	struct shared *s = malloc(sizeof(*s));

	if (!s)
		return NULL;
	memcpy(&s->model, m, sizeof(*m)); /* with padding: memcmp compares it */
	s->users = 0;
	if (!shared_by_id.cap)
		strmap_init(&shared_by_id);
	s->listed = strmap_put(&shared_by_id, s->model.id, s) == 0;
	return s;
}

const struct model *model_share(const struct model *m)
{
	struct shared *s;

	pthread_mutex_lock(&shared_lock);
	s = shared_by_id.cap ? strmap_get(&shared_by_id, m->id) : NULL;
	/* Padding may differ in equal models: they are then not shared, which is harmless. */
	if (!s || memcmp(&s->model, m, sizeof(*m)) != 0)
		s = shared_add(m);
	if (s)
		s->users++;
	pthread_mutex_unlock(&shared_lock);
	return s ? &s->model : NULL;
}

void model_unshare(const struct model *m)
{
	struct shared *s;

	if (!m)
		return;
	s = CONTAINER_OF(m, struct shared, model);
	pthread_mutex_lock(&shared_lock);
	if (--s->users == 0) {
		if (s->listed)
			strmap_del(&shared_by_id, s->model.id);
		free(s);
	}
	pthread_mutex_unlock(&shared_lock);
}

/* Reading config.yaml; see config.h.
 *
 * Happy path: the file's text becomes a tree (codec/yaml.h); each key of it is
 * looked up in a table and taken, an unknown one is refused with the nearest
 * that exists; then the environment is laid over it. What can fail: everything
 * a person can write. A setting that was mistyped must not silently be another
 * one, so nothing is skipped. */
#include "ava/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ava/otel_send.h"
#include "base/env.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/near.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/redact.h"
#include "codec/yaml.h"
#include "provider/model.h"
#include "provider/models.h"
#include "provider/price.h"
#include "provider/provider.h"

#define TOKENS_MAX INT64_C(100000000)

struct reading {
	const struct yaml *y;
	struct config *config;
	struct ava_error *err;
};

/* ---- sentences */

static int wrong(struct reading *r, const struct yaml_node *n, const char *what)
{
	return yaml_error(r->y, n->line, AVA_EINVAL, r->err, "%s", what);
}

/* An error of another part, with the line it is about. */
static int at_line(struct reading *r, const struct yaml_node *n, int rv)
{
	struct ava_error inner = *r->err;

	return rv == AVA_ENOMEM ? rv : yaml_error(r->y, n->line, rv, r->err, "%s", inner.text);
}

static int unknown_key(struct reading *r, const struct yaml_node *n, const char *prefix,
		       const struct near *near)
{
	if (near->len > 0)
		return yaml_error(r->y, n->key_line, AVA_EINVAL, r->err,
				  "unknown key %s%.80s: did you mean %s%.*s?", prefix, n->key,
				  prefix, (int)near->len, near->best);
	return yaml_error(r->y, n->key_line, AVA_EINVAL, r->err,
			  "unknown key %s%.80s: doc/CONFIG.md lists those there are", prefix,
			  n->key);
}

static int want_map(struct reading *r, const struct yaml_node *n)
{
	if (n->kind == YAML_MAP)
		return 0;
	return yaml_error(r->y, n->line, AVA_EINVAL, r->err,
			  "%.60s is %s; it must be a mapping of keys to values",
			  n->key ? n->key : "the file", yaml_shown(n));
}

/* Of `words`, which have a blank between two. */
static bool is_one_of(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; (at = strstr(at, word)) != NULL; at += len)
		if ((at == words || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
			return len > 0;
	return false;
}

/* `map` has no other keys than these; `prefix` ("models.") stands before one in
 * sentences. */
static int want_keys(struct reading *r, const struct yaml_node *map, const char *prefix,
		     const char *words)
{
	int rv = want_map(r, map);

	for (const struct yaml_node *v = rv == 0 ? map->first : NULL; v && rv == 0; v = v->next) {
		struct near near = near_start(v->key);

		near_words(&near, words);
		if (!is_one_of(words, v->key))
			rv = unknown_key(r, v, prefix, &near);
	}
	return rv;
}

static int want_list(struct reading *r, const struct yaml_node *n, const char *name, const char *of)
{
	if (n->kind == YAML_LIST)
		return 0;
	return yaml_error(r->y, n->line, AVA_EINVAL, r->err, "%s is %s; it must be a list of %s",
			  name, yaml_shown(n), of);
}

/* An absent key leaves *out as it is. */
static int get_string(struct reading *r, const struct yaml_node *map, const char *key, size_t max,
		      const char **out)
{
	const struct yaml_node *n = yaml_get(map, key);

	return n ? yaml_string(r->y, n, max, out, r->err) : 0;
}

static int get_tokens(struct reading *r, const struct yaml_node *map, const char *key,
		      int64_t least, int64_t *out)
{
	const struct yaml_node *n = yaml_get(map, key);

	return n ? yaml_int(r->y, n, least, TOKENS_MAX, out, r->err) : 0;
}

/* ---- what is a text, not a number: from the file or from a variable */

static int add_notify_word(struct config *c, const char *word, struct ava_error *err)
{
	size_t used = 0, n = 0, len = strlen(word) + 1;

	for (; c->notify[used]; n++)
		used += strlen(c->notify + used) + 1;
	if (n == 0 && word[0] != '/')
		return err_set(
			err, AVA_EINVAL,
			"notify.exec is \"%.80s\"; it must be the absolute path of a program",
			word);
	if (len == 1)
		return err_set(err, AVA_EINVAL, "notify.exec has an empty word");
	if (n == CONFIG_NOTIFY_WORDS || used + len + 1 > sizeof(c->notify))
		return err_set(err, AVA_EINVAL,
			       "notify.exec is too long: %d words, %d bytes at the most",
			       CONFIG_NOTIFY_WORDS, CONFIG_NOTIFY_BYTES - 1);
	memcpy(c->notify + used, word, len);
	return 0;
}

/* A path, or a list that begins with one. Whether the program is there is seen when it
 * is called: it may come later. */
static int take_notify(struct reading *r, const struct yaml_node *n)
{
	const struct yaml_node *v = n->kind == YAML_LIST ? n->first : n;
	const char *word;
	int rv = 0;

	if (!v)
		return wrong(r, n, "notify.exec is an empty list: name a program, or leave it out");
	for (; v && rv == 0; v = n->kind == YAML_LIST ? v->next : NULL) {
		rv = yaml_string(r->y, v, CONFIG_NOTIFY_BYTES, &word, r->err);
		if (rv != 0)
			return rv;
		rv = add_notify_word(r->config, word, r->err);
	}
	return rv == 0 ? 0 : at_line(r, n, rv);
}

/* The rule of services holds for the collector: spans tell what runs are about. */
static int set_otel(struct config *c, const char *name, const char *url, struct ava_error *err)
{
	_Static_assert(CONFIG_OTEL_BYTES == PROVIDER_URL_MAX, "as long as an address");
	c->otel[0] = '\0';
	return url[0] != '\0' ? provider_check_url(name, url, c->otel, err) : 0;
}

/* "offline", "offline:FILE", an alias, or an id of a service. */
static int check_name(const char *name, struct ava_error *err)
{
	const char *near;
	size_t len = strcspn(name, "/");

	if (strcmp(name, "offline") == 0 || strncmp(name, "offline:/", 9) == 0 ||
	    models_is_alias(name) || (name[len] == '/' && provider_find(name, len)))
		return 0;
	near = models_near(name);
	return err_set(err, AVA_EINVAL, "%.100s is no model%s%s%s", name,
		       near ? ": did you mean " : " and no alias of one", near ? near : "",
		       near ? "?" : "");
}

typedef int (*set_model_fn)(const char *name, struct ava_error *err);

static int take_model_name(struct reading *r, const struct yaml_node *n, set_model_fn set)
{
	const char *name;
	int rv = yaml_string(r->y, n, 250, &name, r->err);

	if (rv != 0)
		return rv;
	rv = check_name(name, r->err);
	if (rv == 0)
		rv = set(name, r->err);
	return rv == 0 ? 0 : at_line(r, n, rv);
}

/* ---- settings: section.key */

#define OWN_WORDS "ava.model notify.exec otel.endpoint"

static int take_word(struct reading *r, const char *name, const struct yaml_node *n)
{
	const char *text;
	int rv;

	if (strcmp(name, "ava.model") == 0)
		return take_model_name(r, n, models_set_ava);
	if (strcmp(name, "notify.exec") == 0)
		return take_notify(r, n);
	rv = yaml_string(r->y, n, CONFIG_OTEL_BYTES, &text, r->err);
	if (rv != 0)
		return rv;
	rv = set_otel(r->config, name, text, r->err);
	return rv == 0 ? 0 : at_line(r, n, rv);
}

/* Keys of one section alone are offered. */
static int unknown_setting(struct reading *r, const struct yaml_node *v, const char *prefix)
{
	static const char *const own[] = {"ava.model", "notify.exec", "otel.endpoint"};
	struct near near = near_start(v->key);
	size_t len = strlen(prefix);

	for (const struct settings_key *s = settings_keys; s->name; s++)
		if (strncmp(s->name, prefix, len) == 0)
			near_word(&near, s->name + len, strlen(s->name) - len);
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (strncmp(own[i], prefix, len) == 0)
			near_word(&near, own[i] + len, strlen(own[i]) - len);
	return unknown_key(r, v, prefix, &near);
}

static int take_settings(struct reading *r, const struct yaml_node *section)
{
	int rv = want_map(r, section);

	for (const struct yaml_node *v = rv == 0 ? section->first : NULL; v && rv == 0;
	     v = v->next) {
		const struct settings_key *k;
		char name[600], prefix[300];
		int64_t value;

		snprintf(prefix, sizeof(prefix), "%s.", section->key);
		snprintf(name, sizeof(name), "%s%s", prefix, v->key);
		k = settings_find(name);
		if (is_one_of(OWN_WORDS, name))
			rv = take_word(r, name, v);
		else if (!k)
			rv = unknown_setting(r, v, prefix);
		else if ((rv = yaml_int(r->y, v, k->min, k->max, &value, r->err)) == 0)
			settings_put(&r->config->settings, k, value);
	}
	return rv;
}

static int take_confirm(struct reading *r, const struct yaml_node *n)
{
	const char *text;
	int rv = yaml_string(r->y, n, 40, &text, r->err);

	if (rv != 0)
		return rv;
	rv = settings_confirm("confirm", text, &r->config->settings.confirm_over_cents, r->err);
	return rv == 0 ? 0 : at_line(r, n, rv);
}

/* ---- models.list */

#define MODEL_WORDS "id provider alias context max_output prices rejects thinking min_cache_tokens"

struct row {
	struct model_row row;
	char id[264], aliases[512], rejects[160];
};

/* The id with its service before it. */
static int take_id(struct reading *r, const struct yaml_node *n, char out[264])
{
	const struct yaml_node *of = yaml_get(n, "provider");
	const char *id = NULL, *service = NULL;
	int rv = get_string(r, n, "id", 200, &id);
	size_t len;
	bool has;

	if (rv == 0)
		rv = get_string(r, n, "provider", 60, &service);
	if (rv != 0)
		return rv;
	if (service && !provider_find(service, strlen(service)))
		return yaml_error(r->y, of->line, AVA_EINVAL, r->err,
				  "provider is %s; there are anthropic, openrouter, openai and "
				  "local",
				  yaml_shown(of));
	if (!id)
		return wrong(r, n, "a model needs its id, such as anthropic/claude-haiku-4-5");
	len = strcspn(id, "/");
	has = id[len] == '/' && provider_find(id, len);
	if (!has && !service)
		return yaml_error(r->y, n->line, AVA_EINVAL, r->err,
				  "the id %.80s names no service: write anthropic/..., "
				  "openrouter/..., openai/... or local/..., or give provider",
				  id);
	if (!service || (has && strncmp(id, service, len) == 0 && service[len] == '\0'))
		snprintf(out, 264, "%s", id);
	else /* openrouter has ids such as anthropic/... */
		snprintf(out, 264, "%s/%s", service, id);
	return 0;
}

static bool alias_good(const char *s)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";

	return strlen(s) <= 64 && s[strspn(s, letters)] == '\0' && !strchr("._-", s[0]) &&
	       strcmp(s, "offline") != 0;
}

static int add_word(struct reading *r, const struct yaml_node *n, char *list, size_t size)
{
	size_t used = strlen(list);

	if (used + strlen(n->text) + 2 > size)
		return wrong(r, n, "this list is too long");
	snprintf(list + used, size - used, "%s%s", used ? " " : "", n->text);
	return 0;
}

/* One, or a list of them. */
static int take_aliases(struct reading *r, const struct yaml_node *n, struct row *row)
{
	const struct yaml_node *v = n->kind == YAML_LIST ? n->first : n;
	const char *text;
	int rv = 0;

	for (; v && rv == 0; v = n->kind == YAML_LIST ? v->next : NULL) {
		if (v->kind == YAML_LIST)
			return wrong(r, v, "an alias is a word, not a list");
		rv = yaml_string(r->y, v, 64, &text, r->err);
		if (rv == 0 && !alias_good(text))
			rv = yaml_error(r->y, v->line, AVA_EINVAL, r->err,
					"%s is no alias: letters, digits, \".\", \"_\" and "
					"\"-\", a letter or digit first, not \"offline\"",
					yaml_shown(v));
		if (rv == 0)
			rv = add_word(r, v, row->aliases, sizeof(row->aliases));
	}
	return rv;
}

static int take_prices(struct reading *r, const struct yaml_node *n, struct agent_price *p)
{
	static const char *const names[] = {"input", "output", "cache_read", "cache_write"};
	int64_t *const to[] = {&p->input, &p->output, &p->cache_read, &p->cache_write};
	int rv;

	*p = (struct agent_price){-1, -1, -1, -1};
	if (n->kind == YAML_SCALAR && n->plain && strcmp(n->text, "unknown") == 0)
		return 0;
	rv = want_keys(r, n, "prices.", "input output cache_read cache_write");
	for (size_t i = 0; rv == 0 && i < ARRAY_LEN(names); i++) {
		const struct yaml_node *v = yaml_get(n, names[i]);

		if (v && (v->kind != YAML_SCALAR || !v->plain || price_parse(v->text, to[i]) != 0))
			rv = yaml_error(r->y, v->line, AVA_EINVAL, r->err,
					"%s is %s; a price is US dollars for a million tokens, "
					"such as 3 or 0.25, up to %d, with six digits after the "
					"point at the most",
					v->key, yaml_shown(v), PRICE_MAX_USD);
	}
	if (rv == 0 && (p->input < 0 || p->output < 0))
		rv = wrong(r, n, "prices needs input and output (or is the word unknown)");
	return rv;
}

static int take_rejects(struct reading *r, const struct yaml_node *n, struct row *row)
{
	int rv = want_list(r, n, "rejects", "parameters, such as [temperature, top_p]");

	row->rejects[0] = '\0';
	for (const struct yaml_node *v = rv == 0 ? n->first : NULL; v && rv == 0; v = v->next) {
		const char *word;

		rv = yaml_string(r->y, v, 40, &word, r->err);
		if (rv == 0 && word[strspn(word, "abcdefghijklmnopqrstuvwxyz_.0123456789")] != '\0')
			rv = yaml_error(r->y, v->line, AVA_EINVAL, r->err,
					"%s is no name of a parameter", yaml_shown(v));
		if (rv == 0)
			rv = add_word(r, v, row->rejects, sizeof(row->rejects));
	}
	return rv;
}

static int take_thinking(struct reading *r, const struct yaml_node *n, enum model_thinking *out)
{
	static const char *const words[] = {
		[MODEL_THINKING_NONE] = "none",
		[MODEL_THINKING_BUDGET] = "budget",
		[MODEL_THINKING_ADAPTIVE] = "adaptive",
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (n->kind == YAML_SCALAR && strcmp(n->text, words[i]) == 0) {
			*out = (enum model_thinking)i;
			return 0;
		}
	return yaml_error(r->y, n->line, AVA_EINVAL, r->err,
			  "thinking is %s; it must be none, budget or adaptive", yaml_shown(n));
}

/* What the entry leaves out is what is built in, or what is known of nothing. */
static void start_row(struct row *row, const struct model_row *builtin)
{
	bool local = strncmp(row->id, "local/", 6) == 0;

	row->row = builtin ? *builtin
			   : (struct model_row){.context = local ? MODEL_LOCAL_CONTEXT
								 : MODEL_DEFAULT_CONTEXT,
						.max_output = MODEL_DEFAULT_OUTPUT,
						.price = {-1, -1, -1, -1}};
	if (local) /* one's own machine */
		row->row.price = (struct agent_price){0};
	row->row.max_output = MIN(row->row.max_output, MODEL_OUTPUT_PER_CALL);
	snprintf(row->rejects, sizeof(row->rejects), "%s", builtin ? builtin->rejects : "");
}

/* A call asks for max_output; with less window than that there is none. */
static int fit_output(struct reading *r, const struct yaml_node *output, struct model_row *row)
{
	if (row->max_output < row->context)
		return 0;
	if (output)
		return yaml_error(r->y, output->line, AVA_EINVAL, r->err,
				  "max_output is %s; it must be less than the window (context), "
				  "which is %lld",
				  yaml_shown(output), (long long)row->context);
	row->max_output = row->context / 2;
	return 0;
}

static int take_model(struct reading *r, const struct yaml_node *n)
{
	const struct yaml_node *v;
	struct row row = {0};
	int rv = want_keys(r, n, "", MODEL_WORDS);

	if (rv == 0)
		rv = take_id(r, n, row.id);
	if (rv != 0)
		return rv;
	start_row(&row, models_find_builtin(row.id));
	if ((v = yaml_get(n, "alias")) != NULL)
		rv = take_aliases(r, v, &row);
	if (rv == 0)
		rv = get_tokens(r, n, "context", 1024, &row.row.context);
	if (rv == 0)
		rv = get_tokens(r, n, "max_output", 1, &row.row.max_output);
	if (rv == 0)
		rv = get_tokens(r, n, "min_cache_tokens", 0, &row.row.cache_min);
	if (rv == 0 && (v = yaml_get(n, "prices")) != NULL)
		rv = take_prices(r, v, &row.row.price);
	if (rv == 0 && (v = yaml_get(n, "rejects")) != NULL)
		rv = take_rejects(r, v, &row);
	if (rv == 0 && (v = yaml_get(n, "thinking")) != NULL)
		rv = take_thinking(r, v, &row.row.thinking);
	if (rv == 0)
		rv = fit_output(r, yaml_get(n, "max_output"), &row.row);
	if (rv != 0)
		return rv;
	row.row.id = row.id;
	row.row.aliases = row.aliases;
	row.row.rejects = row.rejects;
	rv = models_add(&row.row, r->err);
	return rv == 0 ? 0 : at_line(r, n, rv);
}

/* The list comes first: the others name what stands in it. */
static int take_models(struct reading *r, const struct yaml_node *n)
{
	const struct yaml_node *list, *v;
	int rv = want_keys(r, n, "models.", "list default fallback");

	if (rv == 0 && (list = yaml_get(n, "list")) != NULL) {
		rv = want_list(r, list, "models.list", "models, each from \"- id: ...\"");
		for (v = rv == 0 ? list->first : NULL; v && rv == 0; v = v->next)
			rv = take_model(r, v);
	}
	if (rv == 0 && (v = yaml_get(n, "default")) != NULL)
		rv = take_model_name(r, v, models_set_default);
	if (rv == 0 && (list = yaml_get(n, "fallback")) != NULL) {
		rv = want_list(r, list, "models.fallback", "models, such as [claude-haiku]");
		for (v = rv == 0 ? list->first : NULL; v && rv == 0; v = v->next)
			rv = take_model_name(r, v, models_add_fallback);
	}
	return rv;
}

/* ---- providers */

static int take_provider(struct reading *r, const struct yaml_node *n, const char *name)
{
	const struct yaml_node *key = yaml_get(n, "key"), *url = yaml_get(n, "base_url"), *of;
	const char *address = "", *model = "";
	char prefix[80], checked[PROVIDER_URL_MAX];
	int rv;

	snprintf(prefix, sizeof(prefix), "providers.%.60s.", name);
	key = key ? key : yaml_get(n, "api_key");
	if (key)
		return yaml_error(r->y, key->key_line, AVA_EINVAL, r->err,
				  "keys do not stand in this file: write %s=... into the file env "
				  "beside it (chmod 600)",
				  provider_find(name, strlen(name))->key_name);
	rv = want_keys(r, n, prefix, "base_url model");
	if (rv == 0)
		rv = get_string(r, n, "base_url", PROVIDER_URL_MAX - 1, &address);
	if (rv != 0)
		return rv;
	if (url && (rv = provider_check_url("base_url", address, checked, r->err)) != 0)
		return at_line(r, url, rv);
	of = yaml_get(n, "model");
	if (of && strcmp(name, "local") != 0)
		return yaml_error(r->y, of->key_line, AVA_EINVAL, r->err,
				  "providers.%s has no model: give aliases in models.list", name);
	rv = get_string(r, n, "model", 120, &model);
	if (rv != 0)
		return rv;
	rv = provider_set(name, address, model, r->err);
	return rv == 0 ? 0 : at_line(r, n, rv);
}

static int take_providers(struct reading *r, const struct yaml_node *n)
{
	int rv = want_keys(r, n, "providers.", "anthropic openrouter openai local");

	for (const struct yaml_node *v = rv == 0 ? n->first : NULL; v && rv == 0; v = v->next)
		rv = take_provider(r, v, v->key);
	return rv;
}

/* ---- the file */

/* Names of the sections, with a blank between two. */
static void section_words(char *out, size_t size)
{
	snprintf(out, size, "models providers confirm");
	for (const struct settings_key *k = settings_keys; k->name; k++) {
		size_t used = strlen(out);
		char name[40];

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(k->name, "."), k->name);
		if (!is_one_of(out, name))
			snprintf(out + used, size - used, " %s", name);
	}
}

static void forget(void)
{
	models_reset();
	for (size_t i = 0; provider_at(i); i++)
		(void)provider_set(provider_at(i)->name, "", "", NULL);
}

/* Models come first: settings may name one. */
static int read_text(struct config *c, const char *name, const char *text, size_t len,
		     struct ava_error *err)
{
	struct reading r = {.config = c, .err = err};
	const struct yaml_node *root, *v;
	char words[1024];
	struct yaml *y;
	int rv = yaml_parse(&y, name, text, len, err);

	if (rv != 0)
		return rv;
	r.y = y;
	root = yaml_root(y);
	section_words(words, sizeof(words));
	rv = want_keys(&r, root, "", words);
	if (rv == 0 && (v = yaml_get(root, "models")) != NULL)
		rv = take_models(&r, v);
	for (v = rv == 0 ? root->first : NULL; v && rv == 0; v = v->next) {
		if (strcmp(v->key, "providers") == 0)
			rv = take_providers(&r, v);
		else if (strcmp(v->key, "confirm") == 0)
			rv = take_confirm(&r, v);
		else if (strcmp(v->key, "models") != 0)
			rv = take_settings(&r, v);
	}
	yaml_free(y);
	return rv;
}

static int take_variable(const char *variable, set_model_fn set, struct ava_error *err)
{
	const char *name = env_get(variable);
	int rv = name && *name ? check_name(name, err) : 0;

	if (rv == 0 && name && *name)
		rv = set(name, err);
	return rv == 0 ? 0 : err_wrap(err, rv, "%s", variable);
}

static int take_fallback_variable(struct ava_error *err)
{
	const char *list = env_get("AVA_MODELS_FALLBACK");
	char name[256];
	int rv = 0;

	if (list)
		models_clear_fallback();
	for (const char *s = list; s && *s && rv == 0; s += *s == ',') {
		size_t len = strcspn(s, ",");

		snprintf(name, sizeof(name), "%.*s", (int)MIN(len, sizeof(name) - 1), s);
		s += len;
		rv = check_name(name, err);
		if (rv == 0)
			rv = models_add_fallback(name, err);
	}
	return rv == 0 ? 0 : err_wrap(err, rv, "AVA_MODELS_FALLBACK");
}

static int take_environment(struct config *c, struct ava_error *err)
{
	const char *notify = env_get("AVA_NOTIFY_EXEC"), *otel = env_get("AVA_OTEL_ENDPOINT");
	int rv = settings_environment(&c->settings, err);

	if (rv == 0 && notify) {
		memset(c->notify, 0, sizeof(c->notify));
		rv = *notify ? add_notify_word(c, notify, err) : 0;
		if (rv != 0)
			return err_wrap(err, rv, "AVA_NOTIFY_EXEC");
	}
	if (rv == 0 && otel)
		rv = set_otel(c, "AVA_OTEL_ENDPOINT", otel, err);
	if (rv == 0)
		rv = take_variable("AVA_MODELS_DEFAULT", models_set_default, err);
	if (rv == 0)
		rv = take_variable("AVA_AVA_MODEL", models_set_ava, err);
	return rv == 0 ? take_fallback_variable(err) : rv;
}

int config_read(struct config *c, const char *name, const char *text, size_t len,
		struct ava_error *err)
{
	struct ava_error own;
	int rv;

	if (!err)
		err = &own;
	forget();
	settings_defaults(&c->settings);
	memset(c->notify, 0, sizeof(c->notify));
	c->otel[0] = '\0';
	rv = text ? read_text(c, name, text, len, err) : 0;
	if (rv == 0)
		rv = take_environment(c, err);
	if (rv == 0)
		rv = provider_configure(err);
	if (rv != 0) {
		forget();
		(void)provider_configure(NULL);
	}
	return rv;
}

int config_load(struct config *c, struct ava_error *err)
{
	char *text = NULL;
	size_t len = 0;
	struct stat st;
	int rv = keys_load(err);

	*c = (struct config){0};
	if (rv != 0)
		return rv;
	rv = settings_config_path("config.yaml", c->path, sizeof(c->path), err);
	if (rv == 0)
		rv = sys_read_file(AT_FDCWD, c->path, YAML_BYTES_MAX, &text, &len, err);
	c->exists = rv == 0;
	if (rv == AVA_ENOENT && c->path[0] && lstat(c->path, &st) == 0)
		return err_set(err, AVA_EINVAL, "%s is a link to a file that is not there",
			       c->path);
	if (rv == 0 || rv == AVA_ENOENT) /* no home, no file: defaults */
		rv = config_read(c, c->path, text, len, err);
	free(text);
	return rv;
}

/* ---- what must not be shown */

static bool is_secret(const char *name)
{
	static const char *const ends[] = {"KEY", "TOKEN", "SECRET", "PASSWORD"};
	size_t len = strlen(name);

	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (len >= strlen(ends[i]) && strcmp(name + len - strlen(ends[i]), ends[i]) == 0)
			return true;
	return false;
}

static int add_secret(struct redact *r, const char *name, const char *value, struct ava_error *err)
{
	int rv = 0;

	if (value && strcmp(name, OTEL_HEADERS_NAME) == 0)
		rv = otel_secrets(r, value);
	else if (value && is_secret(name))
		rv = redact_add(r, value);
	if (rv == AVA_ETOOBIG)
		return err_set(err, rv, "there are too many keys to keep out of the log: %.60s",
			       name);
	return rv == 0 ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
}

int config_secrets(struct redact *r, struct ava_error *err)
{
	const char *name, *value;
	int rv = 0;

	/* Of both places: a tool may see what the file has replaced. */
	for (size_t i = 0; rv == 0 && keys_known[i]; i++)
		rv = add_secret(r, keys_known[i], env_get(keys_known[i]), err);
	for (size_t i = 0; rv == 0 && (name = keys_file(i, &value)) != NULL; i++)
		rv = add_secret(r, name, value, err);
	return rv;
}

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

#include "ava/config_notify.h"
#include "ava/config_otel.h"
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
	const struct yaml_node *ava_model; /* looked up when all models are known */
};

typedef int (*take_fn)(struct reading *r, const struct yaml_node *n, void *user);

struct field {
	const char *key;
	take_fn take;
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

/* Each key of `map` by its row; `prefix` ("models.") stands before it in
 * sentences. */
static int take_fields(struct reading *r, const struct yaml_node *map, const char *prefix,
		       const struct field *fields, size_t n, void *user)
{
	int rv = want_map(r, map);

	for (const struct yaml_node *v = rv == 0 ? map->first : NULL; v && rv == 0; v = v->next) {
		struct near near = near_start(v->key);
		size_t i = 0;

		for (; i < n && strcmp(fields[i].key, v->key) != 0; i++)
			near_word(&near, fields[i].key, strlen(fields[i].key));
		rv = i < n ? fields[i].take(r, v, user) : unknown_key(r, v, prefix, &near);
	}
	return rv;
}

/* ---- notify.exec: a path, or a list that begins with one */

static int take_notify_exec(struct reading *r, const struct yaml_node *n)
{
	const struct yaml_node *v = n->kind == YAML_LIST ? n->first : n;
	const char *word;
	int rv = 0;

	memset(r->config->notify, 0, sizeof(r->config->notify));
	if (!v)
		return wrong(r, n, "notify.exec is an empty list: name a program, or leave it out");
	for (; v && rv == 0; v = n->kind == YAML_LIST ? v->next : NULL) {
		rv = yaml_string(r->y, v, CONFIG_NOTIFY_BYTES, &word, r->err);
		if (rv != 0)
			return rv;
		rv = config_notify_word(r->config, word, r->err);
	}
	return rv == 0 ? 0 : at_line(r, n, rv);
}

static int keep_ava_model(struct reading *r, const struct yaml_node *n)
{
	r->ava_model = n;
	return 0;
}

static int take_otel(struct reading *r, const struct yaml_node *n)
{
	const char *url;
	int rv = yaml_string(r->y, n, CONFIG_OTEL_BYTES, &url, r->err);

	if (rv != 0)
		return rv;
	rv = config_otel("otel.endpoint", url, r->config, r->err);
	return rv == 0 ? 0 : at_line(r, n, rv);
}

/* ---- settings: section.key */

typedef int (*take_word_fn)(struct reading *r, const struct yaml_node *n);

static const struct {
	const char *name;
	take_word_fn take;
} own_words[] = {
	{"ava.model", keep_ava_model},
	{"notify.exec", take_notify_exec},
	{"otel.endpoint", take_otel},
};

static take_word_fn word_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(own_words); i++)
		if (strcmp(own_words[i].name, name) == 0)
			return own_words[i].take;
	return NULL;
}

static void words_near(struct near *near, const char *prefix)
{
	size_t len = strlen(prefix);

	for (size_t i = 0; i < ARRAY_LEN(own_words); i++)
		if (strncmp(own_words[i].name, prefix, len) == 0)
			near_word(near, own_words[i].name + len, strlen(own_words[i].name) - len);
}

static int take_settings(struct reading *r, const struct yaml_node *section, void *user)
{
	int rv = want_map(r, section);

	for (const struct yaml_node *v = rv == 0 ? section->first : NULL; v && rv == 0;
	     v = v->next) {
		const struct settings_key *k;
		struct near near;
		char name[600], prefix[300];
		take_word_fn take;
		int64_t value;

		snprintf(prefix, sizeof(prefix), "%s.", section->key);
		snprintf(name, sizeof(name), "%s%s", prefix, v->key);
		take = word_of(name);
		if (take) {
			rv = take(r, v);
			continue;
		}
		k = settings_find(name);
		near = near_start(v->key);
		words_near(&near, prefix);
		for (const struct settings_key *s = settings_keys; s->name; s++)
			if (strncmp(s->name, prefix, strlen(prefix)) == 0)
				near_word(&near, s->name + strlen(prefix),
					  strlen(s->name) - strlen(prefix));
		if (!k)
			return unknown_key(r, v, prefix, &near);
		rv = yaml_int(r->y, v, k->min, k->max, &value, r->err);
		if (rv == 0)
			settings_put(&r->config->settings, k, value);
	}
	return rv;
}

/* ---- models.list */

struct row {
	struct model_row row;
	char id[264], aliases[512], rejects[160];
	const char *service; /* of `provider:` */
	bool has_id;
	const struct yaml_node *node, *output; /* output: NULL: max_output is not given */
};

static int64_t parse_tokens(struct reading *r, const struct yaml_node *n, int64_t least, int *rv)
{
	int64_t v = 0;

	*rv = yaml_int(r->y, n, least, TOKENS_MAX, &v, r->err);
	return v;
}

static int take_id(struct reading *r, const struct yaml_node *n, void *user)
{
	struct row *row = user;
	const char *id;
	int rv = yaml_string(r->y, n, 200, &id, r->err);

	if (rv != 0)
		return rv;
	snprintf(row->id, sizeof(row->id), "%s", id);
	row->has_id = true;
	return 0;
}

static int take_service(struct reading *r, const struct yaml_node *n, void *user)
{
	struct row *row = user;
	int rv = yaml_string(r->y, n, 60, &row->service, r->err);

	if (rv == 0 && !provider_find(row->service, strlen(row->service)))
		rv = yaml_error(r->y, n->line, AVA_EINVAL, r->err,
				"provider is %s; there are anthropic, openrouter, openai and local",
				yaml_shown(n));
	return rv;
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

static int take_alias(struct reading *r, const struct yaml_node *n, void *user)
{
	struct row *row = user;
	const char *text;
	int rv = 0;

	if (n->kind == YAML_LIST) {
		for (const struct yaml_node *v = n->first; v && rv == 0; v = v->next)
			rv = v->kind == YAML_LIST ? wrong(r, v, "an alias is a word, not a list")
						  : take_alias(r, v, user);
		return rv;
	}
	rv = yaml_string(r->y, n, 64, &text, r->err);
	if (rv == 0 && !alias_good(text))
		rv = yaml_error(r->y, n->line, AVA_EINVAL, r->err,
				"%s is no alias: letters, digits, \".\", \"_\" and \"-\", a letter "
				"or digit first, not \"offline\"",
				yaml_shown(n));
	return rv == 0 ? add_word(r, n, row->aliases, sizeof(row->aliases)) : rv;
}

static int take_context(struct reading *r, const struct yaml_node *n, void *user)
{
	int rv;

	((struct row *)user)->row.context = parse_tokens(r, n, 1024, &rv);
	return rv;
}

static int take_max_output(struct reading *r, const struct yaml_node *n, void *user)
{
	struct row *row = user;
	int rv;

	row->row.max_output = parse_tokens(r, n, 1, &rv);
	row->output = n;
	return rv;
}

static int take_cache_min(struct reading *r, const struct yaml_node *n, void *user)
{
	int rv;

	((struct row *)user)->row.cache_min = parse_tokens(r, n, 0, &rv);
	return rv;
}

static int take_price(struct reading *r, const struct yaml_node *n, void *user)
{
	static const char *const names[] = {"input", "output", "cache_read", "cache_write"};
	struct agent_price *p = user;
	int64_t *const to[] = {&p->input, &p->output, &p->cache_read, &p->cache_write};
	size_t i = 0;

	while (strcmp(names[i], n->key) != 0)
		i++;
	if (n->kind != YAML_SCALAR || !n->plain || price_parse(n->text, to[i]) != 0)
		return yaml_error(r->y, n->line, AVA_EINVAL, r->err,
				  "%s is %s; a price is US dollars for a million tokens, such as 3 "
				  "or 0.25, up to %d, with six digits after the point at the most",
				  n->key, yaml_shown(n), PRICE_MAX_USD);
	return 0;
}

static int take_prices(struct reading *r, const struct yaml_node *n, void *user)
{
	static const struct field fields[] = {{"input", take_price},
					      {"output", take_price},
					      {"cache_read", take_price},
					      {"cache_write", take_price}};
	struct agent_price *p = &((struct row *)user)->row.price;
	int rv;

	*p = (struct agent_price){-1, -1, -1, -1};
	if (n->kind == YAML_SCALAR && n->plain && strcmp(n->text, "unknown") == 0)
		return 0;
	rv = take_fields(r, n, "prices.", fields, ARRAY_LEN(fields), p);
	if (rv == 0 && (p->input < 0 || p->output < 0))
		rv = wrong(r, n, "prices needs input and output (or is the word unknown)");
	return rv;
}

static int take_rejects(struct reading *r, const struct yaml_node *n, void *user)
{
	struct row *row = user;
	int rv = 0;

	if (n->kind != YAML_LIST)
		return yaml_error(r->y, n->line, AVA_EINVAL, r->err,
				  "rejects is %s; it must be a list of parameters, such as "
				  "[temperature, top_p]",
				  yaml_shown(n));
	row->rejects[0] = '\0';
	for (const struct yaml_node *v = n->first; v && rv == 0; v = v->next) {
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

static int take_thinking(struct reading *r, const struct yaml_node *n, void *user)
{
	static const char *const words[] = {
		[MODEL_THINKING_NONE] = "none",
		[MODEL_THINKING_BUDGET] = "budget",
		[MODEL_THINKING_ADAPTIVE] = "adaptive",
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (n->kind == YAML_SCALAR && strcmp(n->text, words[i]) == 0) {
			((struct row *)user)->row.thinking = (enum model_thinking)i;
			return 0;
		}
	return yaml_error(r->y, n->line, AVA_EINVAL, r->err,
			  "thinking is %s; it must be none, budget or adaptive", yaml_shown(n));
}

/* The id with its service before it. */
static int whole_id(struct reading *r, struct row *row)
{
	char id[264];
	size_t len = strcspn(row->id, "/");
	bool has = row->id[len] == '/' && provider_find(row->id, len);

	if (!row->has_id)
		return wrong(r, row->node,
			     "a model needs its id, such as anthropic/claude-haiku-4-5");
	if (!has && !row->service)
		return yaml_error(r->y, row->node->line, AVA_EINVAL, r->err,
				  "the id %.80s names no service: write anthropic/..., "
				  "openrouter/..., openai/... or local/..., or give provider",
				  row->id);
	if (has && row->service && strncmp(row->id, row->service, len) == 0 &&
	    row->service[len] == '\0')
		return 0;
	if (row->service) { /* openrouter has ids such as anthropic/... */
		snprintf(id, sizeof(id), "%s/%.200s", row->service, row->id);
		memcpy(row->id, id, sizeof(id));
	}
	return 0;
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
	row->aliases[0] = '\0';
}

/* A call asks for max_output; with less window than that there is none. */
static int fit_output(struct reading *r, struct row *row)
{
	if (row->row.max_output < row->row.context)
		return 0;
	if (row->output)
		return yaml_error(r->y, row->output->line, AVA_EINVAL, r->err,
				  "max_output is %s; it must be less than the window (context), "
				  "which is %lld",
				  yaml_shown(row->output), (long long)row->row.context);
	row->row.max_output = row->row.context / 2;
	return 0;
}

static int skip(struct reading *r, const struct yaml_node *n, void *user)
{
	return 0;
}

static int take_model(struct reading *r, const struct yaml_node *n)
{
	static const struct field first[] = {
		{"id", take_id},   {"provider", take_service}, {"alias", skip},
		{"context", skip}, {"max_output", skip},       {"prices", skip},
		{"rejects", skip}, {"thinking", skip},         {"min_cache_tokens", skip},
	};
	static const struct field rest[] = {
		{"id", skip},
		{"provider", skip},
		{"alias", take_alias},
		{"context", take_context},
		{"max_output", take_max_output},
		{"prices", take_prices},
		{"rejects", take_rejects},
		{"thinking", take_thinking},
		{"min_cache_tokens", take_cache_min},
	};
	struct row row = {.node = n};
	int rv = take_fields(r, n, "", first, ARRAY_LEN(first), &row);

	if (rv == 0)
		rv = whole_id(r, &row);
	if (rv != 0)
		return rv;
	start_row(&row, models_find_builtin(row.id));
	rv = take_fields(r, n, "", rest, ARRAY_LEN(rest), &row);
	if (rv == 0)
		rv = fit_output(r, &row);
	if (rv != 0)
		return rv;
	row.row.id = row.id;
	row.row.aliases = row.aliases;
	row.row.rejects = row.rejects;
	rv = models_add(&row.row, r->err);
	return rv == 0 ? 0 : at_line(r, n, rv);
}

static int take_list(struct reading *r, const struct yaml_node *n, void *user)
{
	int rv = 0;

	if (n->kind != YAML_LIST)
		return yaml_error(
			r->y, n->line, AVA_EINVAL, r->err,
			"models.list is %s; it must be a list of models, each from \"- id: "
			"...\"",
			yaml_shown(n));
	for (const struct yaml_node *v = n->first; v && rv == 0; v = v->next)
		rv = take_model(r, v);
	return rv;
}

/* ---- models.default, models.fallback: looked at when the list is known */

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

static int take_default(struct reading *r, const struct yaml_node *n, void *user)
{
	const char *name;
	int rv = yaml_string(r->y, n, 250, &name, r->err);

	if (rv != 0)
		return rv;
	rv = check_name(name, r->err);
	if (rv == 0)
		rv = models_set_default(name, r->err);
	return rv == 0 ? 0 : at_line(r, n, rv);
}

static int take_ava_model(struct reading *r)
{
	const char *name;
	int rv = r->ava_model ? yaml_string(r->y, r->ava_model, 250, &name, r->err) : 0;

	if (rv != 0 || !r->ava_model)
		return rv;
	rv = check_name(name, r->err);
	if (rv == 0)
		rv = models_set_ava(name, r->err);
	return rv == 0 ? 0 : at_line(r, r->ava_model, rv);
}

static int take_fallback(struct reading *r, const struct yaml_node *n, void *user)
{
	int rv = 0;

	if (n->kind != YAML_LIST)
		return yaml_error(r->y, n->line, AVA_EINVAL, r->err,
				  "models.fallback is %s; it must be a list of models, such as "
				  "[claude-haiku]",
				  yaml_shown(n));
	for (const struct yaml_node *v = n->first; v && rv == 0; v = v->next) {
		const char *name;

		rv = yaml_string(r->y, v, 250, &name, r->err);
		if (rv != 0)
			return rv;
		rv = check_name(name, r->err);
		if (rv == 0)
			rv = models_add_fallback(name, r->err);
		if (rv != 0)
			return at_line(r, v, rv);
	}
	return rv;
}

static int take_models(struct reading *r, const struct yaml_node *n, void *user)
{
	static const struct field first[] = {
		{"list", take_list}, {"default", skip}, {"fallback", skip}};
	static const struct field rest[] = {
		{"list", skip}, {"default", take_default}, {"fallback", take_fallback}};
	int rv = take_fields(r, n, "models.", first, ARRAY_LEN(first), NULL);

	return rv == 0 ? take_fields(r, n, "models.", rest, ARRAY_LEN(rest), NULL) : rv;
}

/* ---- providers */

struct service {
	const char *name, *base_url, *model;
};

static int take_url(struct reading *r, const struct yaml_node *n, void *user)
{
	struct service *s = user;
	char url[PROVIDER_URL_MAX];
	int rv = yaml_string(r->y, n, PROVIDER_URL_MAX - 1, &s->base_url, r->err);

	if (rv != 0)
		return rv;
	rv = provider_check_url("base_url", s->base_url, url, r->err);
	return rv == 0 ? 0 : at_line(r, n, rv);
}

static int take_service_model(struct reading *r, const struct yaml_node *n, void *user)
{
	struct service *s = user;

	if (strcmp(s->name, "local") != 0)
		return yaml_error(r->y, n->key_line, AVA_EINVAL, r->err,
				  "providers.%s has no model: give aliases in models.list",
				  s->name);
	return yaml_string(r->y, n, 120, &s->model, r->err);
}

static int take_key(struct reading *r, const struct yaml_node *n, void *user)
{
	const struct provider *p = provider_find(((struct service *)user)->name,
						 strlen(((struct service *)user)->name));

	return yaml_error(r->y, n->key_line, AVA_EINVAL, r->err,
			  "keys do not stand in this file: write %s=... into the file env beside "
			  "it (chmod 600)",
			  p->key_name);
}

static int take_provider(struct reading *r, const struct yaml_node *n, void *user)
{
	static const struct field fields[] = {{"base_url", take_url},
					      {"model", take_service_model},
					      {"key", take_key},
					      {"api_key", take_key}};
	struct service s = {.name = n->key, .base_url = "", .model = ""};
	char prefix[80];
	int rv;

	snprintf(prefix, sizeof(prefix), "providers.%.60s.", n->key);
	rv = take_fields(r, n, prefix, fields, ARRAY_LEN(fields), &s);
	if (rv != 0)
		return rv;
	rv = provider_set(s.name, s.base_url, s.model, r->err);
	return rv == 0 ? 0 : at_line(r, n, rv);
}

static int take_providers(struct reading *r, const struct yaml_node *n, void *user)
{
	static const struct field fields[] = {{"anthropic", take_provider},
					      {"openrouter", take_provider},
					      {"openai", take_provider},
					      {"local", take_provider}};

	return take_fields(r, n, "providers.", fields, ARRAY_LEN(fields), NULL);
}

static int take_confirm(struct reading *r, const struct yaml_node *n, void *user)
{
	const char *text;
	int rv = yaml_string(r->y, n, 40, &text, r->err);

	if (rv != 0)
		return rv;
	rv = settings_confirm("confirm", text, &r->config->settings.confirm_over_cents, r->err);
	return rv == 0 ? 0 : at_line(r, n, rv);
}

/* ---- the file */

/* One row a section of the settings, then ours. Returns their number. */
static size_t make_sections(struct field *out, char names[][40], size_t max)
{
	size_t n = 0;

	out[n++] = (struct field){"models", take_models};
	out[n++] = (struct field){"providers", take_providers};
	out[n++] = (struct field){"confirm", take_confirm};
	for (const struct settings_key *k = settings_keys; k->name; k++) {
		int len = (int)strcspn(k->name, ".");
		bool have = false;

		for (size_t i = 3; i < n; i++)
			have |= strncmp(out[i].key, k->name, (size_t)len) == 0 &&
				out[i].key[len] == '\0';
		if (have || n == max)
			continue;
		snprintf(names[n], sizeof(names[n]), "%.*s", len, k->name);
		out[n] = (struct field){names[n], take_settings};
		n++;
	}
	return n;
}

static void forget(void)
{
	models_reset();
	for (size_t i = 0; provider_at(i); i++)
		(void)provider_set(provider_at(i)->name, "", "", NULL);
}

static int read_text(struct config *c, const char *name, const char *text, size_t len,
		     struct ava_error *err)
{
	struct field sections[32];
	char names[32][40];
	struct reading r = {.config = c, .err = err};
	size_t n = make_sections(sections, names, ARRAY_LEN(sections));
	struct yaml *y;
	int rv = yaml_parse(&y, name, text, len, err);

	if (rv != 0)
		return rv;
	r.y = y;
	rv = take_fields(&r, yaml_root(y), "", sections, n, NULL);
	if (rv == 0)
		rv = take_ava_model(&r);
	yaml_free(y);
	return rv;
}

static int take_variable(const char *variable, int (*set)(const char *, struct ava_error *),
			 struct ava_error *err)
{
	const char *name = env_get(variable);
	int rv = name && *name ? check_name(name, err) : 0;

	if (rv == 0 && name && *name)
		rv = set(name, err);
	return rv == 0 ? 0 : err_wrap(err, rv, "%s", variable);
}

/* AVA_MODELS_DEFAULT, AVA_AVA_MODEL and AVA_MODELS_FALLBACK (commas between). */
static int take_environment(struct ava_error *err)
{
	const char *list = env_get("AVA_MODELS_FALLBACK");
	char name[256];
	int rv = take_variable("AVA_MODELS_DEFAULT", models_set_default, err);

	if (rv == 0)
		rv = take_variable("AVA_AVA_MODEL", models_set_ava, err);
	if (rv != 0)
		return rv;
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
		rv = settings_environment(&c->settings, err);
	if (rv == 0)
		rv = config_notify_environment(c, err);
	if (rv == 0)
		rv = config_otel_environment(c, err);
	if (rv == 0)
		rv = take_environment(err);
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

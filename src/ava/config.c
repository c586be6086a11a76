/* Reading config.yaml; see config.h.
 *
 * Happy path: the file's text becomes a tree (codec/yaml.h); each key of it is
 * looked up in a table and taken, an unknown one is refused with the nearest
 * that exists; then the environment is laid over it. What can fail: everything
 * a person can write. A setting that was mistyped must not silently be another
 * one, so nothing is skipped. */
#include "ava/config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ava/otel.h"
#include "base/env.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/near.h"
#include "base/util.h"
#include "codec/redact.h"
#include "codec/yaml.h"
#include "codec/utf8.h"
#include "net/address.h"
#include "provider/model.h"
#include "provider/provider_url.h"

#define TOKENS_MAX INT64_C(100000000)

/* The first error ends the reading: later functions take nothing. */
struct config_reading {
	const struct yaml *y;
	struct config *config;
	struct ava_error *err;
	int rv;
};

/* ---- sentences */

static void config_wrong(struct config_reading *r, unsigned line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void config_wrong(struct config_reading *r, unsigned line, const char *fmt, ...)
{
	char text[sizeof(r->err->text)];
	va_list ap;

	if (r->rv != 0)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->rv = yaml_error(r->y, line, AVA_EINVAL, r->err, "%s", text);
}

/* Adds the line of `n` to the error of another module. */
static void at_line(struct config_reading *r, const struct yaml_node *n, int rv)
{
	struct ava_error inner = *r->err;

	if (rv != 0)
		r->rv = rv == AVA_ENOMEM ? rv
					 : yaml_error(r->y, n->line, rv, r->err, "%s", inner.text);
}

static void unknown_key(struct config_reading *r, const struct yaml_node *n, const char *prefix,
			const struct near *near)
{
	if (near->len > 0)
		config_wrong(r, n->key_line, "unknown key %s%.80s: did you mean %s%.*s?", prefix,
			     n->key, prefix, (int)near->len, near->best);
	else
		config_wrong(r, n->key_line,
			     "unknown key %s%.80s: doc/CONFIG.md lists those there are", prefix,
			     n->key);
}

/* ---- values */

/* The first item of a mapping or list, or a scalar itself; NULL after an error. */
static const struct yaml_node *each(const struct config_reading *r, const struct yaml_node *n)
{
	return r->rv != 0 ? NULL : n->kind == YAML_SCALAR ? n : n->first;
}

static const struct yaml_node *next(const struct config_reading *r, const struct yaml_node *in,
				    const struct yaml_node *n)
{
	return r->rv != 0 || in->kind == YAML_SCALAR ? NULL : n->next;
}

#define YAML_EACH(r, in, v) for (const struct yaml_node *v = each(r, in); v; v = next(r, in, v))

static void want_map(struct config_reading *r, const struct yaml_node *n)
{
	if (r->rv == 0 && n->kind != YAML_MAP)
		config_wrong(r, n->line, "%.60s is %s; it must be a mapping of keys to values",
			     n->key ? n->key : "the file", yaml_shown(n));
}

static void want_list(struct config_reading *r, const struct yaml_node *n, const char *name,
		      const char *of)
{
	if (r->rv == 0 && n->kind != YAML_LIST)
		config_wrong(r, n->line, "%s is %s; it must be a list of %s", name, yaml_shown(n),
			     of);
}

/* `words` is separated by blanks. */
static bool is_one_of(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; (at = strstr(at, word)) != NULL; at += len)
		if ((at == words || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
			return len > 0;
	return false;
}

/* Refuses other keys than `words` in `map`; `prefix` ("models.") precedes a key in errors. */
static void want_keys(struct config_reading *r, const struct yaml_node *map, const char *prefix,
		      const char *words)
{
	want_map(r, map);
	YAML_EACH (r, map, v) {
		struct near near = near_start(v->key);

		near_words(&near, words);
		if (!is_one_of(words, v->key))
			unknown_key(r, v, prefix, &near);
	}
}

/* "" after an error. */
static const char *config_text_of(struct config_reading *r, const struct yaml_node *n, size_t max)
{
	const char *text = "";

	if (r->rv == 0)
		r->rv = yaml_string(r->y, n, max, &text, r->err);
	return r->rv == 0 ? text : "";
}

/* NULL: the key is not there. */
static const char *get_text(struct config_reading *r, const struct yaml_node *map, const char *key,
			    size_t max)
{
	const struct yaml_node *n = yaml_get(map, key);

	return n ? config_text_of(r, n, max) : NULL;
}

/* An absent key leaves *out as it is. */
static void get_tokens(struct config_reading *r, const struct yaml_node *map, const char *key,
		       int64_t least, int64_t *out)
{
	const struct yaml_node *n = yaml_get(map, key);

	if (n && r->rv == 0)
		r->rv = yaml_int(r->y, n, least, TOKENS_MAX, out, r->err);
}

/* ---- settings that are texts, from the file or from a variable */

/* Appends a word to `list`, which ends with an empty word; false: it does not fit. */
static bool add_to_words(char *list, size_t size, size_t most, const char *word)
{
	size_t used = 0, n = 0, len = strlen(word) + 1;

	for (; list[used]; n++)
		used += strlen(list + used) + 1;
	if (n == most || used + len + 1 > size)
		return false;
	memcpy(list + used, word, len);
	return true;
}

static int add_notify_word(struct config *c, const char *word, struct ava_error *err)
{
	size_t n = c->notify[0] ? 1 : 0, len = strlen(word) + 1;

	if (n == 0 && word[0] != '/')
		return err_set(
			err, AVA_EINVAL,
			"notify.exec is \"%.80s\"; it must be the absolute path of a program",
			word);
	if (len == 1)
		return err_set(err, AVA_EINVAL, "notify.exec has an empty word");
	if (!add_to_words(c->notify, sizeof(c->notify), CONFIG_NOTIFY_WORDS, word))
		return err_set(err, AVA_EINVAL,
			       "notify.exec is too long: %d words, %d bytes at the most",
			       CONFIG_NOTIFY_WORDS, CONFIG_NOTIFY_BYTES - 1);
	return 0;
}

/* A path, or a list that begins with one. The program need not exist yet: it is looked for when it
 * is called. */
static void take_notify(struct config_reading *r, const struct yaml_node *n)
{
	if (n->kind == YAML_LIST && !n->first)
		config_wrong(r, n->line,
			     "notify.exec is an empty list: name a program, or leave it out");
	if (n->kind == YAML_MAP)
		(void)config_text_of(r, n, CONFIG_NOTIFY_BYTES); /* words the error for a map */
	YAML_EACH (r, n, v) {
		const char *word = config_text_of(r, v, CONFIG_NOTIFY_BYTES);

		if (r->rv == 0)
			at_line(r, n, add_notify_word(r->config, word, r->err));
	}
}

static int add_inside(struct config *c, const char *word, struct ava_error *err)
{
	if (!address_is_entry(word))
		return err_set(err, AVA_EINVAL,
			       "web.allow_private has \"%.80s\"; it must be host:port, such as "
			       "127.0.0.1:8080",
			       word);
	if (!add_to_words(c->web_inside, sizeof(c->web_inside), CONFIG_WEB_WORDS, word))
		return err_set(err, AVA_EINVAL, "web.allow_private is too long: %d at the most",
			       CONFIG_WEB_WORDS);
	return 0;
}

/* A host, or a list of hosts; an empty list: none. */
static void take_inside(struct config_reading *r, const struct yaml_node *n)
{
	memset(r->config->web_inside, 0, sizeof(r->config->web_inside));
	if (n->kind == YAML_MAP)
		(void)config_text_of(r, n, CONFIG_WEB_BYTES); /* words the error for a map */
	YAML_EACH (r, n, v) {
		const char *word = config_text_of(r, v, CONFIG_WEB_BYTES);

		if (r->rv == 0)
			at_line(r, v, add_inside(r->config, word, r->err));
	}
}

/* ---- cluster.folders */

static bool config_is_name(const char *s)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";

	return strlen(s) <= 64 && s[strspn(s, letters)] == '\0' && !strchr("._-", s[0]);
}

static int config_add_folder(struct config *c, const char *name, const char *path,
			     struct ava_error *err)
{
	char word[PATH_MAX + 80], real[PATH_MAX];
	size_t n = strlen(name) + 1, at = 0;
	struct stat st;

	if (!config_is_name(name))
		return err_set(err, AVA_EINVAL,
			       "cluster.folders has \"%.80s\", which is no name: letters, digits, "
			       "\".\", \"_\" and \"-\", a letter or digit first",
			       name);
	if (!utf8_valid(path, strlen(path)))
		return err_set(err, AVA_EINVAL, "cluster.folders: the path of %s is not UTF-8",
			       name);
	if (path[0] != '/')
		return err_set(err, AVA_EINVAL,
			       "cluster.folders.%s is \"%.200s\"; it must be an absolute path",
			       name, path);
	if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode) || !realpath(path, real))
		return err_set(err, AVA_EINVAL,
			       "cluster.folders.%s is %.200s, and there is no such folder here",
			       name, path);
	if (strcmp(real, path) != 0)
		return err_set(err, AVA_EINVAL,
			       "cluster.folders.%s is %.200s; its path without links is %.200s",
			       name, path, real);
	snprintf(word, sizeof(word), "%s=%s", name, path);
	for (; c->folders[at]; at += strlen(c->folders + at) + 1)
		if (strncmp(c->folders + at, word, n) == 0 ||
		    strcmp(strchr(c->folders + at, '/'), path) == 0)
			return err_set(err, AVA_EINVAL,
				       "cluster.folders has %s twice: a folder has one name", name);
	if (!add_to_words(c->folders, sizeof(c->folders), CONFIG_FOLDERS, word))
		return err_set(err, AVA_EINVAL, "cluster.folders is too long: %d at the most",
			       CONFIG_FOLDERS);
	return 0;
}

static void take_folders(struct config_reading *r, const struct yaml_node *n)
{
	memset(r->config->folders, 0, sizeof(r->config->folders));
	want_map(r, n);
	YAML_EACH (r, n, v) {
		const char *path = config_text_of(r, v, PATH_MAX - 1);

		if (r->rv == 0)
			at_line(r, v, config_add_folder(r->config, v->key, path, r->err));
	}
}

/* Addresses that are told of runs (a collector, a search, a messenger) obey the rule of
 * services. */
static int set_url(char out[CONFIG_OTEL_BYTES], const char *name, const char *url,
		   struct ava_error *err)
{
	_Static_assert(CONFIG_OTEL_BYTES == PROVIDER_URL_MAX, "as long as an address");
	out[0] = '\0';
	return url[0] != '\0' ? provider_url_check(name, url, out, err) : 0;
}

static int set_format(struct config *c, const char *word, struct ava_error *err)
{
	if (word && strcmp(word, "json") != 0 && strcmp(word, "ntfy") != 0 &&
	    strcmp(word, "slack") != 0)
		return err_set(err, AVA_EINVAL,
			       "notify.format is \"%.40s\"; it must be json, ntfy or slack", word);
	snprintf(c->notify_format, sizeof(c->notify_format), "%s", word ? word : "");
	return 0;
}

static void config_take_url(struct config_reading *r, const struct yaml_node *v, const char *name,
			    char out[CONFIG_OTEL_BYTES])
{
	const char *url = config_text_of(r, v, CONFIG_OTEL_BYTES);

	if (r->rv == 0)
		at_line(r, v, set_url(out, name, url, r->err));
}

typedef int (*set_model_fn)(const char *name, struct ava_error *err);

/* "offline", "offline:FILE", an alias, or an id of a service. */
static int set_model(const char *name, set_model_fn set, struct ava_error *err)
{
	const char *near;
	size_t len = strcspn(name, "/");

	if (strcmp(name, "offline") == 0 || strncmp(name, "offline:/", 9) == 0 ||
	    models_is_alias(name) || (name[len] == '/' && provider_find(name, len)))
		return set(name, err);
	near = models_near(name);
	return err_set(err, AVA_EINVAL, "%.100s is no model%s%s%s", name,
		       near ? ": did you mean " : " and no alias of one", near ? near : "",
		       near ? "?" : "");
}

static void take_model_name(struct config_reading *r, const struct yaml_node *n, set_model_fn set)
{
	const char *name = config_text_of(r, n, 250);

	if (r->rv == 0)
		at_line(r, n, set_model(name, set, r->err));
}

/* The text as it stands: gateway/metrics.h reads what it says. */
static void config_take_text(struct config_reading *r, const struct yaml_node *v,
			     char out[CONFIG_OTEL_BYTES])
{
	snprintf(out, CONFIG_OTEL_BYTES, "%s", config_text_of(r, v, CONFIG_OTEL_BYTES - 1));
}

/* ---- settings: section.key */

static const char *const own_keys[] = {
	"ava.model",      "notify.exec", "notify.url",        "notify.format",
	"otel.endpoint",  "web.searxng", "web.allow_private", "cluster.folders",
	"budget.folders", "budget.tags", "metrics.listen",    "metrics.token",
#define X(name, title, secret, key, ...) key,
	DOORS(X)
#undef X
};

static const struct config_door {
	const char *name, *secret, *key, *variable;
} config_doors[DOORS_N] = {
#define X(name, title, secret, key, variable, ...) {#name, secret, key, variable},
	DOORS(X)
#undef X
};

/* Takes the setting of a messenger's door; false: it is none. A secret has its own file. */
static bool take_door(struct config_reading *r, const struct yaml_node *v, const char *section,
		      const char *name)
{
	for (size_t i = 0; i < DOORS_N; i++) {
		if (strcmp(name, config_doors[i].key) == 0) {
			config_take_url(r, v, name, r->config->doors[i]);
			return true;
		}
		if (strcmp(section, config_doors[i].name) != 0 || !strstr(v->key, "token"))
			continue;
		config_wrong(r, v->key_line,
			     "the token does not stand in this file: write %s=... into the file "
			     "env beside it (chmod 600)",
			     config_doors[i].secret);
		return true;
	}
	return false;
}

/* Suggests keys of the same section only. */
static void unknown_setting(struct config_reading *r, const struct yaml_node *v, const char *prefix)
{
	struct near near = near_start(v->key);
	size_t len = strlen(prefix);

	for (const struct settings_key *s = settings_keys; s->name; s++)
		if (strncmp(s->name, prefix, len) == 0)
			near_word(&near, s->name + len, strlen(s->name) - len);
	for (size_t i = 0; i < ARRAY_LEN(own_keys); i++)
		if (strncmp(own_keys[i], prefix, len) == 0)
			near_word(&near, own_keys[i] + len, strlen(own_keys[i]) - len);
	unknown_key(r, v, prefix, &near);
}

static void config_take_number(struct config_reading *r, const struct yaml_node *v,
			       const struct settings_key *k)
{
	struct yaml_node named = *v; /* an error says "runs.max", not "max" */
	int64_t value;

	named.key = k->name;
	r->rv = r->rv == 0 ? yaml_int(r->y, &named, k->min, k->max, &value, r->err) : r->rv;
	if (r->rv == 0)
		settings_put(&r->config->settings, k, value);
}

static void take_settings(struct config_reading *r, const struct yaml_node *section)
{
	want_map(r, section);
	YAML_EACH (r, section, v) {
		const struct settings_key *k;
		char name[600], prefix[300];

		snprintf(prefix, sizeof(prefix), "%s.", section->key);
		snprintf(name, sizeof(name), "%s%s", prefix, v->key);
		k = settings_find(name);
		if (strcmp(name, "ava.model") == 0) {
			take_model_name(r, v, models_set_ava);
		} else if (strcmp(name, "notify.exec") == 0) {
			take_notify(r, v);
		} else if (strcmp(name, "notify.url") == 0) {
			config_take_url(r, v, name, r->config->notify_url);
		} else if (strcmp(name, "notify.format") == 0) {
			at_line(r, v,
				set_format(r->config, config_text_of(r, v, CONFIG_OTEL_BYTES),
					   r->err));
		} else if (strcmp(name, "otel.endpoint") == 0) {
			config_take_url(r, v, name, r->config->otel);
		} else if (take_door(r, v, section->key, name)) {
			continue;
		} else if (strcmp(name, "metrics.listen") == 0) {
			config_take_text(r, v, r->config->metrics_listen);
		} else if (strcmp(name, "metrics.token") == 0) {
			config_take_text(r, v, r->config->metrics_token);
		} else if (strcmp(name, "web.allow_private") == 0) {
			take_inside(r, v);
		} else if (strcmp(name, "cluster.folders") == 0) {
			take_folders(r, v);
		} else if (strcmp(name, "budget.folders") == 0 ||
			   strcmp(name, "budget.tags") == 0) {
			r->rv = config_take_budgets(r->config, r->y, v, v->key[0] == 'f', r->err);
		} else if (strcmp(name, "web.searxng") == 0) {
			config_take_url(r, v, name, r->config->searxng);
		} else if (!k) {
			unknown_setting(r, v, prefix);
		} else {
			config_take_number(r, v, k);
		}
	}
}

/* ---- models.list */

#define MODEL_WORDS                                                                                \
	"id provider alias context max_output prices rejects thinking min_cache_tokens dialect"

struct config_row {
	struct model_row row;
	char id[264], aliases[512], rejects[160];
};

/* Writes "service/id". */
static void config_take_id(struct config_reading *r, const struct yaml_node *n, char out[264])
{
	const char *id = get_text(r, n, "id", 200), *service = get_text(r, n, "provider", 60);
	size_t len;
	bool has;

	if (service && r->rv == 0 && !provider_find(service, strlen(service)))
		config_wrong(r, yaml_get(n, "provider")->line,
			     "provider is %s; there are anthropic, openrouter, openai and local",
			     yaml_shown(yaml_get(n, "provider")));
	if (!id)
		config_wrong(r, n->line,
			     "a model needs its id, such as anthropic/claude-haiku-4-5");
	if (r->rv != 0)
		return;
	len = strcspn(id, "/");
	has = id[len] == '/' && provider_find(id, len);
	if (!has && !service)
		config_wrong(r, n->line,
			     "the id %.80s names no service: write anthropic/..., openrouter/..., "
			     "openai/... or local/..., or give provider",
			     id);
	else if (!service || (has && strncmp(id, service, len) == 0 && service[len] == '\0'))
		snprintf(out, 264, "%s", id);
	else /* ids of openrouter contain a slash themselves: anthropic/... */
		snprintf(out, 264, "%s/%s", service, id);
}

static void config_add_word(struct config_reading *r, const struct yaml_node *n, char *list,
			    size_t size)
{
	size_t used = strlen(list);

	if (r->rv == 0 && used + strlen(n->text) + 2 > size)
		config_wrong(r, n->line, "this list is too long");
	if (r->rv == 0)
		snprintf(list + used, size - used, "%s%s", used ? " " : "", n->text);
}

/* An alias, or a list of aliases. */
static void take_aliases(struct config_reading *r, const struct yaml_node *n,
			 struct config_row *row)
{
	if (n->kind == YAML_MAP)
		(void)config_text_of(r, n, 64); /* words the error for a map */
	YAML_EACH (r, n, v) {
		if (v->kind == YAML_LIST)
			config_wrong(r, v->line, "an alias is a word, not a list");
		if (!config_is_name(config_text_of(r, v, 64)) || strcmp(v->text, "offline") == 0)
			config_wrong(
				r, v->line,
				"%s is no alias: letters, digits, \".\", \"_\" and \"-\", a letter "
				"or digit first, not \"offline\"",
				yaml_shown(v));
		config_add_word(r, v, row->aliases, sizeof(row->aliases));
	}
}

static void take_prices(struct config_reading *r, const struct yaml_node *n, struct agent_price *p)
{
	static const char *const names[] = {"input", "output", "cache_read", "cache_write"};
	int64_t *const to[] = {&p->input, &p->output, &p->cache_read, &p->cache_write};

	*p = (struct agent_price){-1, -1, -1, -1};
	if (n->kind == YAML_SCALAR && n->plain && strcmp(n->text, "unknown") == 0)
		return;
	want_keys(r, n, "prices.", "input output cache_read cache_write");
	for (size_t i = 0; r->rv == 0 && i < ARRAY_LEN(names); i++) {
		const struct yaml_node *v = yaml_get(n, names[i]);

		if (v && (v->kind != YAML_SCALAR || !v->plain || price_parse(v->text, to[i]) != 0))
			config_wrong(r, v->line,
				     "%s is %s; a price is US dollars for a million tokens, such "
				     "as 3 or "
				     "0.25, up to %d, with six digits after the point at the most",
				     v->key, yaml_shown(v), PRICE_MAX_USD);
	}
	if (p->input < 0 || p->output < 0)
		config_wrong(r, n->line, "prices needs input and output (or is the word unknown)");
}

static void take_rejects(struct config_reading *r, const struct yaml_node *n,
			 struct config_row *row)
{
	want_list(r, n, "rejects", "parameters, such as [temperature, top_p]");
	row->rejects[0] = '\0';
	YAML_EACH (r, n, v) {
		const char *word = config_text_of(r, v, 40);

		if (word[strspn(word, "abcdefghijklmnopqrstuvwxyz_.0123456789")] != '\0')
			config_wrong(r, v->line, "%s is no name of a parameter", yaml_shown(v));
		config_add_word(r, v, row->rejects, sizeof(row->rejects));
	}
}

static void config_take_thinking(struct config_reading *r, const struct yaml_node *n,
				 enum model_thinking *out)
{
	static const char *const words[] = {
		[MODEL_THINKING_NONE] = "none",
		[MODEL_THINKING_BUDGET] = "budget",
		[MODEL_THINKING_ADAPTIVE] = "adaptive",
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (n->kind == YAML_SCALAR && strcmp(n->text, words[i]) == 0) {
			*out = (enum model_thinking)i;
			return;
		}
	config_wrong(r, n->line, "thinking is %s; it must be none, budget or adaptive",
		     yaml_shown(n));
}

static void config_take_dialect(struct config_reading *r, const struct yaml_node *n,
				struct config_row *row)
{
	const char *words = config_text_of(r, n, 40);
	struct model m = {.dialect = provider_find(row->id, strcspn(row->id, "/"))->dialect};

	if (r->rv == 0 && !model_speak(&m, words))
		config_wrong(r, n->line,
			     "%s is no dialect of this service: openai (chat completions) or "
			     "responses, anthropic for anthropic",
			     yaml_shown(n));
	row->row.dialect = m.dialect;
}

/* Starts with the built-in row, or with the defaults of an unknown model. */
static void start_row(struct config_row *row, const struct model_row *builtin)
{
	bool local = strncmp(row->id, "local/", 6) == 0;

	row->row = builtin ? *builtin
			   : (struct model_row){.context = local ? MODEL_LOCAL_CONTEXT
								 : MODEL_DEFAULT_CONTEXT,
						.max_output = MODEL_DEFAULT_OUTPUT,
						.price = {-1, -1, -1, -1}};
	if (local) /* local models cost nothing */
		row->row.price = (struct agent_price){0};
	row->row.max_output = MIN(row->row.max_output, MODEL_OUTPUT_PER_CALL);
	snprintf(row->rejects, sizeof(row->rejects), "%s", builtin ? builtin->rejects : "");
}

static void config_take_model(struct config_reading *r, const struct yaml_node *n)
{
	const struct yaml_node *v;
	struct config_row row = {0};
	struct model_row *m = &row.row;

	want_keys(r, n, "", MODEL_WORDS);
	config_take_id(r, n, row.id);
	if (r->rv != 0)
		return;
	start_row(&row, models_find_builtin(row.id));
	if ((v = yaml_get(n, "alias")) != NULL)
		take_aliases(r, v, &row);
	get_tokens(r, n, "context", 1024, &m->context);
	get_tokens(r, n, "max_output", 1, &m->max_output);
	get_tokens(r, n, "min_cache_tokens", 0, &m->cache_min);
	if ((v = yaml_get(n, "prices")) != NULL)
		take_prices(r, v, &m->price);
	if ((v = yaml_get(n, "rejects")) != NULL)
		take_rejects(r, v, &row);
	if ((v = yaml_get(n, "thinking")) != NULL)
		config_take_thinking(r, v, &m->thinking);
	if ((v = yaml_get(n, "dialect")) != NULL)
		config_take_dialect(r, v, &row);
	/* A call asks for max_output tokens, so a smaller window makes every call fail. */
	v = yaml_get(n, "max_output");
	if (m->max_output >= m->context && v)
		config_wrong(r, v->line,
			     "max_output is %s; it must be less than the window (context), which "
			     "is %lld",
			     yaml_shown(v), (long long)m->context);
	else if (m->max_output >= m->context)
		m->max_output = m->context / 2;
	if (r->rv != 0)
		return;
	m->id = row.id;
	m->aliases = row.aliases;
	m->rejects = row.rejects;
	at_line(r, n, models_add(m, r->err));
}

/* Takes the list first, since the other keys name its entries. */
static void take_models(struct config_reading *r, const struct yaml_node *n)
{
	const struct yaml_node *list, *v;

	want_keys(r, n, "models.", "list default fallback on_quota park_max");
	if ((v = yaml_get(n, "on_quota")) != NULL) {
		const char *word = config_text_of(r, v, 40);

		if (r->rv == 0)
			at_line(r, v,
				settings_quota("models.on_quota", word,
					       &r->config->settings.on_quota, r->err));
	}
	if ((v = yaml_get(n, "park_max")) != NULL)
		config_take_number(r, v, settings_find("models.park_max"));
	if ((list = yaml_get(n, "list")) != NULL) {
		want_list(r, list, "models.list", "models, each from \"- id: ...\"");
		YAML_EACH (r, list, model)
			config_take_model(r, model);
	}
	if ((v = yaml_get(n, "default")) != NULL)
		take_model_name(r, v, models_set_default);
	if ((list = yaml_get(n, "fallback")) != NULL) {
		want_list(r, list, "models.fallback", "models, such as [claude-haiku]");
		YAML_EACH (r, list, name)
			take_model_name(r, name, models_add_fallback);
	}
}

/* ---- providers */

static void take_provider(struct config_reading *r, const struct yaml_node *n, const char *name)
{
	const struct yaml_node *key = yaml_get(n, "key"), *of = yaml_get(n, "model");
	const char *address, *model;
	char prefix[80], checked[PROVIDER_URL_MAX];

	snprintf(prefix, sizeof(prefix), "providers.%.60s.", name);
	key = key ? key : yaml_get(n, "api_key");
	if (key)
		config_wrong(
			r, key->key_line,
			"keys do not stand in this file: write %s=... into the file env beside it "
			"(chmod 600)",
			provider_find(name, strlen(name))->key_name);
	want_keys(r, n, prefix, "base_url model");
	address = get_text(r, n, "base_url", PROVIDER_URL_MAX - 1);
	if (address && r->rv == 0)
		at_line(r, yaml_get(n, "base_url"),
			provider_url_check("base_url", address, checked, r->err));
	if (of && strcmp(name, "local") != 0)
		config_wrong(r, of->key_line,
			     "providers.%s has no model: give aliases in models.list", name);
	model = get_text(r, n, "model", 120);
	if (r->rv == 0)
		at_line(r, n,
			provider_set(name, address ? address : "", model ? model : "", r->err));
}

/* ---- the file */

static void config_forget(void)
{
	models_reset();
	for (size_t i = 0; provider_at(i); i++)
		(void)provider_set(provider_at(i)->name, "", "", NULL);
}

/* Takes models first, since settings may name one. */
static int config_read_text(struct config *c, const char *name, const char *text, size_t len,
			    struct ava_error *err)
{
	struct config_reading r = {.config = c, .err = err};
	const struct yaml_node *root, *models;
	char words[1024] = "models providers confirm metrics";
	struct yaml *y;
	int rv = yaml_parse(&y, name, text, len, err);

	if (rv != 0)
		return rv;
	r.y = y;
	root = yaml_root(y);
	for (const struct settings_key *k = settings_keys; k->name; k++) {
		size_t used = strlen(words);
		char section[40];

		snprintf(section, sizeof(section), "%.*s", (int)strcspn(k->name, "."), k->name);
		if (!is_one_of(words, section))
			snprintf(words + used, sizeof(words) - used, " %s", section);
	}
	want_keys(&r, root, "", words);
	if ((models = yaml_get(root, "models")) != NULL)
		take_models(&r, models);
	YAML_EACH (&r, root, v) {
		if (strcmp(v->key, "providers") == 0) {
			want_keys(&r, v, "providers.", "anthropic openrouter openai local");
			YAML_EACH (&r, v, p)
				take_provider(&r, p, p->key);
		} else if (strcmp(v->key, "confirm") == 0) {
			const char *over = config_text_of(&r, v, 40);

			if (r.rv == 0)
				at_line(&r, v,
					settings_confirm("confirm", over,
							 &c->settings.confirm_over_cents, err));
		} else if (v != models) {
			take_settings(&r, v);
		}
	}
	yaml_free(y);
	return r.rv;
}

static int take_variable(const char *variable, set_model_fn set, struct ava_error *err)
{
	const char *name = env_get(variable);
	int rv = name && *name ? set_model(name, set, err) : 0;

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
		rv = set_model(name, models_add_fallback, err);
	}
	return rv == 0 ? 0 : err_wrap(err, rv, "AVA_MODELS_FALLBACK");
}

/* Separated by commas. */
static int take_inside_variable(struct config *c, const char *list, struct ava_error *err)
{
	char word[256];
	int rv = 0;

	memset(c->web_inside, 0, sizeof(c->web_inside));
	for (const char *s = list; *s && rv == 0; s += *s == ',') {
		size_t len = strcspn(s, ",");

		snprintf(word, sizeof(word), "%.*s", (int)MIN(len, sizeof(word) - 1), s);
		s += len;
		rv = add_inside(c, word, err);
	}
	return rv == 0 ? 0 : err_wrap(err, rv, "AVA_WEB_ALLOW_PRIVATE");
}

/* "site=/srv/site,api=/srv/api" */
static int take_folders_variable(struct config *c, const char *list, struct ava_error *err)
{
	char word[PATH_MAX + 80], *path;
	int rv = 0;

	memset(c->folders, 0, sizeof(c->folders));
	for (const char *s = list; *s && rv == 0; s += *s == ',') {
		size_t len = strcspn(s, ",");

		snprintf(word, sizeof(word), "%.*s", (int)MIN(len, sizeof(word) - 1), s);
		s += len;
		path = strchr(word, '=');
		if (path)
			*path++ = '\0';
		rv = config_add_folder(c, word, path ? path : "", err);
	}
	return rv == 0 ? 0 : err_wrap(err, rv, "AVA_CLUSTER_FOLDERS");
}

static int take_environment(struct config *c, struct ava_error *err)
{
	const char *notify = env_get("AVA_NOTIFY_EXEC"), *otel = env_get("AVA_OTEL_ENDPOINT");
	const char *searxng = env_get("AVA_WEB_SEARXNG");
	const char *inside = env_get("AVA_WEB_ALLOW_PRIVATE");
	const char *folders = env_get("AVA_CLUSTER_FOLDERS");
	const char *listen = env_get("AVA_METRICS_LISTEN"), *token = env_get("AVA_METRICS_TOKEN");
	int rv = settings_environment(&c->settings, err);

	if (rv == 0 && notify) {
		memset(c->notify, 0, sizeof(c->notify));
		rv = *notify ? add_notify_word(c, notify, err) : 0;
		if (rv != 0)
			return err_wrap(err, rv, "AVA_NOTIFY_EXEC");
	}
	if (rv == 0 && (notify = env_get("AVA_NOTIFY_URL")) != NULL)
		rv = set_url(c->notify_url, "AVA_NOTIFY_URL", notify, err);
	if (rv == 0 && (notify = env_get("AVA_NOTIFY_FORMAT")) != NULL)
		rv = set_format(c, notify, err);
	if (rv == 0 && otel)
		rv = set_url(c->otel, "AVA_OTEL_ENDPOINT", otel, err);
	for (size_t i = 0; i < DOORS_N && rv == 0; i++) {
		const char *url = env_get(config_doors[i].variable);

		rv = url ? set_url(c->doors[i], config_doors[i].variable, url, err) : 0;
	}
	if (rv == 0 && inside)
		rv = take_inside_variable(c, inside, err);
	if (rv == 0 && folders)
		rv = take_folders_variable(c, folders, err);
	if (rv == 0)
		rv = config_budget_variables(c, err);
	if (rv == 0 && searxng)
		rv = set_url(c->searxng, "AVA_WEB_SEARXNG", searxng, err);
	if (rv == 0 && listen)
		snprintf(c->metrics_listen, sizeof(c->metrics_listen), "%s", listen);
	if (rv == 0 && token)
		snprintf(c->metrics_token, sizeof(c->metrics_token), "%s", token);
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
	config_forget();
	settings_defaults(&c->settings);
	memset(c->notify, 0, sizeof(c->notify));
	memset(c->web_inside, 0, sizeof(c->web_inside));
	memset(c->folders, 0, sizeof(c->folders));
	memset(c->doors, 0, sizeof(c->doors));
	c->notify_url[0] = c->notify_format[0] = '\0';
	c->otel[0] = c->searxng[0] = c->metrics_listen[0] = c->metrics_token[0] = '\0';
	rv = text ? config_read_text(c, name, text, len, err) : 0;
	if (rv == 0)
		rv = take_environment(c, err);
	if (rv == 0)
		rv = provider_configure(err);
	if (rv != 0) {
		config_forget();
		(void)provider_configure(NULL);
	}
	return rv;
}

int config_load(struct config *c, struct ava_error *err)
{
	char *text = NULL;
	size_t len = 0;
	int rv = keys_load(err);

	*c = (struct config){0};
	settings_defaults(&c->settings);
	if (rv != 0)
		return rv;
	rv = settings_config_path("config.yaml", c->path, sizeof(c->path), err);
	if (rv == 0)
		rv = settings_read_file(c->path, YAML_BYTES_MAX, &text, &len, err);
	c->exists = rv == 0;
	if (rv == 0 || rv == AVA_ENOENT) /* without a home or a file the defaults hold */
		rv = config_read(c, c->path, text, len, err);
	free(text);
	return rv;
}

/* ---- secrets, which must not be shown */

static bool config_is_secret(const char *name)
{
	static const char *const ends[] = {"KEY", "TOKEN", "SECRET", "PASSWORD"};
	size_t len = strlen(name);

	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (len >= strlen(ends[i]) && strcmp(name + len - strlen(ends[i]), ends[i]) == 0)
			return true;
	return false;
}

static int config_add_secret(struct redact *r, const char *name, const char *value,
			     struct ava_error *err)
{
	int rv = 0;

	if (value && strcmp(name, OTEL_HEADERS_NAME) == 0)
		rv = otel_secrets(r, value);
	else if (value && config_is_secret(name))
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

	/* Keys of both places are secret: a tool may see one that the file has replaced. */
	for (size_t i = 0; rv == 0 && keys_known[i]; i++)
		rv = config_add_secret(r, keys_known[i], env_get(keys_known[i]), err);
	for (size_t i = 0; rv == 0 && (name = keys_file(i, &value)) != NULL; i++)
		rv = config_add_secret(r, name, value, err);
	return rv;
}

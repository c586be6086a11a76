/* From the name of a model to the dialect that speaks to it.
 *
 * A name is "offline", "offline:FILE", "service/model", or an alias. An alias
 * and the default are those of the first service that has its key; without one
 * they are the offline model and *why says so. An id of a service is what was
 * asked for and nothing else: without its key it is refused. What can fail: a
 * name that is none, a service without a key. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/keys.h"
#include "base/util.h"
#include "provider/dialect.h"
#include "provider/model.h"
#include "provider/models.h"
#include "provider/provider.h"

#define NO_KEY         "no provider key is set, so the offline model is used"
#define STANDARD       "claude-sonnet" /* what a service is asked for by default */
#define OFFLINE_OUTPUT 8192
#define UNKNOWN_PRICE                                                                              \
	{                                                                                          \
		-1, -1, -1, -1                                                                     \
	}

static _Thread_local char why_text[400]; /* records are read on pool threads, too */

#define SCRIPTED   "offline:"
#define SCRIPT_MAX (sizeof(((struct model *)0)->id) - sizeof(SCRIPTED)) /* bytes of its path */

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

/* ---- services */

/* The service of "anthropic/…"; NULL: that is none. */
static const struct provider *service_of(const char *name)
{
	size_t len = strcspn(name, "/");

	return name[len] == '/' ? provider_find(name, len) : NULL;
}

static const struct provider *first_usable(void)
{
	const struct provider *p;

	for (size_t i = 0; (p = provider_at(i)) != NULL; i++)
		if (provider_usable(p))
			return p;
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

static void take_row(struct model *out, const struct model_row *row)
{
	/* What config.yaml gives is taken as it stands, what is built in is the
	 * most the model can: a call reserves its cost, so less is asked for. */
	bool builtin = row == models_find_builtin(row->id);

	out->context = row->context;
	out->max_output = builtin ? MIN(row->max_output, MODEL_OUTPUT_PER_CALL) : row->max_output;
	out->price = row->price;
	out->thinking = row->thinking;
	out->cache_min = row->cache_min;
	snprintf(out->drop, sizeof(out->drop), "%s", row->rejects);
	out->known = true;
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
	if (local) /* one's own machine */
		out->price = (struct agent_price){0};
	snprintf(out->id, sizeof(out->id), "%s", name);
	snprintf(out->wire_name, sizeof(out->wire_name), "%s", wire);
	row = models_find(name);
	if (row)
		take_row(out, row);
	return 0;
}

/* A service that is to be called from now on. */
static int set_usable(struct model *out, const char *id, struct ava_error *err)
{
	int rv = set_remote(out, id, service_of(id), err);

	return rv == 0 ? provider_require(out->provider, id, err) : rv;
}

/* ---- aliases and the default */

/* The key, or for local the address, that a service was chosen for. */
static const char *variable_of(const struct provider *p)
{
	if (p->needs_key)
		return p->key_name;
	return keys_get(p->url_name) ? p->url_name : "providers.local.base_url";
}

static int set_alias(struct model *out, const char *alias, struct ava_error *err)
{
	const struct provider *p = first_usable();
	const char *id = models_alias(alias, p);
	char local[264];

	if (!id && !p) {
		set_offline(out);
		snprintf(why_text, sizeof(why_text), "%s", NO_KEY);
		return 0;
	}
	if (!id && strcmp(p->name, "local") == 0) {
		snprintf(local, sizeof(local), "local/%s", p->model[0] ? p->model : "default");
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
			 "%s is set", variable_of(p));
	return set_usable(out, id, err);
}

static int unknown(const char *name, struct ava_error *err)
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
	return models_is_alias(name) ? set_alias(out, name, err) : unknown(name, err);
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

static size_t word_len(const char *s)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || s[n] == '_' || s[n] == '.')
		n++;
	return n;
}

const char *model_config(const struct model *m)
{
	return strncmp(m->id, SCRIPTED, strlen(SCRIPTED)) == 0 ? m->id + strlen(SCRIPTED) : "";
}

bool model_takes(const struct model *m, const char *parameter)
{
	size_t len = strlen(parameter);

	for (const char *s = m != NULL ? m->drop : ""; *s;
	     s += strcspn(s, " "), s += strspn(s, " "))
		if (strcspn(s, " ") == len && strncmp(s, parameter, len) == 0)
			return false;
	return true;
}

bool model_drop(struct model *m, const char *parameter)
{
	size_t len = strlen(parameter), used = strlen(m->drop);

	if (!model_takes(m, parameter))
		return true;
	if (len == 0 || word_len(parameter) != len || used + len + 2 > sizeof(m->drop))
		return false;
	snprintf(m->drop + used, sizeof(m->drop) - used, "%s%s", used ? " " : "", parameter);
	return true;
}

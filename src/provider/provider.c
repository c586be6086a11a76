/* The services; see provider.h.
 *
 * Address: the variable (file env, then environment), else config.yaml, else
 * the service's own. Key: the variable only, config.yaml never holds one. What
 * can fail: an address that is none or that would send a key in the clear, a
 * key that holds what no key holds. */
#include "provider/provider.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/keys.h"
#include "base/settings.h"
#include "base/util.h"
#include "provider/dialect.h"

static struct provider table[] = {
	{.name = "anthropic",
	 .dialect = &dialect_anthropic,
	 .base_url = "https://api.anthropic.com",
	 .needs_key = true,
	 .http2 = true,
	 .key_name = "ANTHROPIC_API_KEY",
	 .url_name = "ANTHROPIC_BASE_URL"},
	{.name = "openrouter",
	 .dialect = &dialect_openai,
	 .base_url = "https://openrouter.ai/api/v1",
	 .needs_key = true,
	 .http2 = true,
	 .key_name = "OPENROUTER_API_KEY",
	 .url_name = "OPENROUTER_BASE_URL"},
	{.name = "openai",
	 .dialect = &dialect_openai,
	 .base_url = "https://api.openai.com/v1",
	 .needs_key = true,
	 .http2 = true,
	 .key_name = "OPENAI_API_KEY",
	 .url_name = "OPENAI_BASE_URL"},
	{.name = "local",
	 .dialect = &dialect_openai,
	 .key_name = "AVA_LOCAL_API_KEY",
	 .url_name = "AVA_LOCAL_BASE_URL"},
};

static const char *const default_urls[ARRAY_LEN(table)] = {"https://api.anthropic.com",
							   "https://openrouter.ai/api/v1",
							   "https://api.openai.com/v1", ""};

const struct provider *provider_at(size_t i)
{
	return i < ARRAY_LEN(table) ? &table[i] : NULL;
}

const char *provider_default_url(const struct provider *p)
{
	return default_urls[p - table];
}

static struct provider *find(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (strlen(table[i].name) == len && memcmp(table[i].name, name, len) == 0)
			return &table[i];
	return NULL;
}

const struct provider *provider_find(const char *name, size_t len)
{
	return find(name, len);
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

/* ---- addresses */

/* `host` is the machine itself by its form; names other than localhost are
 * not looked up. */
static bool loopback(const char *host, size_t len)
{
	int used = 0;
	unsigned a, b, c, d;
	char text[64];

	if (len >= sizeof(text))
		return false;
	memcpy(text, host, len);
	text[len] = '\0';
	if (strcmp(text, "localhost") == 0 || strcmp(text, "[::1]") == 0)
		return true;
	return sscanf(text, "%3u.%3u.%3u.%3u%n", &a, &b, &c, &d, &used) == 4 &&
	       (size_t)used == len && a == 127 && b < 256 && c < 256 && d < 256;
}

static bool port_good(const char *s, size_t len)
{
	char *end;
	long port = strtol(s, &end, 10);

	return len > 0 && isdigit((unsigned char)s[0]) && (size_t)(end - s) == len && port > 0 &&
	       port < 65536;
}

/* Why `url` is no address; NULL: it is one. */
static const char *url_fault(const char *url)
{
	bool tls = strncmp(url, "https://", 8) == 0;
	const char *host = url + (tls ? 8 : 7), *colon;
	size_t len, name;

	if (!tls && strncmp(url, "http://", 7) != 0)
		return "it must begin with https:// (or http:// for this machine)";
	for (const char *s = url; *s; s++)
		if ((unsigned char)*s <= ' ' || (unsigned char)*s >= 127 ||
		    strchr("\"\\<>`{}|^", *s))
			return "it holds a character that no address has";
	if (strpbrk(url, "?#"))
		return "it must end with its path: no query and no fragment";
	len = strcspn(host, "/");
	if (memchr(host, '@', len))
		return "it must not hold a user or password: keys stand in their own variable";
	name = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");
	if (name == 0 || name > len)
		return "it names no host";
	colon = host + name;
	if (name < len && (*colon != ':' || !port_good(colon + 1, len - name - 1)))
		return "its port is no number from 1 to 65535";
	if (!tls && !loopback(host, name))
		return "http:// is for this machine only (127.0.0.1, [::1], localhost): use "
		       "https://";
	return NULL;
}

int provider_check_url(const char *what, const char *url, char out[PROVIDER_URL_MAX],
		       struct ava_error *err)
{
	const char *fault = url_fault(url);
	size_t len = strlen(url);

	if (!fault && len >= PROVIDER_URL_MAX)
		fault = "it is too long";
	/* An address may hold a password: then it is not repeated. */
	if (fault && strchr(url, '@'))
		return err_set(err, AVA_EINVAL, "%s: %s", what, fault);
	if (fault)
		return err_set(err, AVA_EINVAL, "%s is \"%.100s\": %s", what, url, fault);
	while (len > 0 && url[len - 1] == '/')
		len--;
	memmove(out, url, len);
	out[len] = '\0';
	return 0;
}

/* ---- bringing it together */

int provider_set(const char *name, const char *base_url, const char *model, struct ava_error *err)
{
	struct provider *p = find(name, strlen(name));

	if (!p)
		return err_set(err, AVA_EINVAL, "there is no service %.60s", name);
	if (strlen(model) >= sizeof(p->set_model))
		return err_set(err, AVA_EINVAL, "the model %.60s... is too long a name", model);
	snprintf(p->set_model, sizeof(p->set_model), "%s", model);
	if (!*base_url)
		p->set_url[0] = '\0';
	return *base_url ? provider_check_url("base_url", base_url, p->set_url, err) : 0;
}

static int configure(struct provider *p, const char *default_url, struct ava_error *err)
{
	const char *url = keys_get(p->url_name), *key = provider_key(p);
	int rv = 0;

	if (url)
		rv = provider_check_url(p->url_name, url, p->base_url, err);
	else
		snprintf(p->base_url, sizeof(p->base_url), "%s",
			 p->set_url[0] ? p->set_url : default_url);
	if (rv == 0 && key)
		rv = keys_check(p->key_name, key, err);
	p->http2 = strncmp(p->base_url, "https://", 8) == 0;
	return rv;
}

int provider_configure(struct ava_error *err)
{
	struct provider *local = find("local", 5);
	const char *model = keys_get("AVA_LOCAL_MODEL");

	if (model && strlen(model) >= sizeof(local->model))
		return err_set(err, AVA_EINVAL, "AVA_LOCAL_MODEL is too long a name");
	snprintf(local->model, sizeof(local->model), "%s", model ? model : local->set_model);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		int rv = configure(&table[i], default_urls[i], err);

		if (rv != 0)
			return rv;
	}
	return 0;
}

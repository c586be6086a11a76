/* Which of what config_load found must not be shown: keys by their names, and what
 * stands behind a name in the headers for a collector. What can fail: more of them
 * than can be looked for, memory. */
#include "ava/config.h"

#include <stdbool.h>
#include <string.h>

#include "ava/otel_headers.h"
#include "base/env.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/util.h"
#include "codec/redact.h"

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

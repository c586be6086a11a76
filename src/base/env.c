/* The environment, or a list in its place.
 *
 * Values in the list may be keys of services, so the copies are wiped before they are freed.
 * Only making the copies can fail. */
#include "base/env.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static struct {
	bool only;   /* the list alone counts, not the process' environment */
	char **list; /* owned, NULL at its end; NULL: nothing is set */
} env;

static size_t name_len(const char *pair)
{
	return strcspn(pair, "=");
}

const char *env_get(const char *name)
{
	size_t len = strlen(name);

	if (!env.only)
		return getenv(name);
	for (char **p = env.list; p && *p; p++)
		if (name_len(*p) == len && memcmp(*p, name, len) == 0)
			return *p + len + 1;
	return NULL;
}

void env_process(void)
{
	for (char **p = env.list; p && *p; p++) {
		explicit_bzero(*p, strlen(*p));
		free(*p);
	}
	free(env.list);
	env.list = NULL;
	env.only = false;
}

int env_only(const char *const *list, struct ava_error *err)
{
	size_t n = 0;

	env_process();
	env.only = true;
	while (list && list[n]) {
		size_t len = name_len(list[n]);

		if (len == 0 || list[n][len] != '=')
			return err_set(err, AVA_EINVAL,
				       "string %zu of the environment has not the form NAME=value",
				       n + 1);
		n++;
	}
	if (n == 0)
		return 0;
	env.list = calloc(n + 1, sizeof(*env.list));
	for (size_t i = 0; env.list && i < n; i++) {
		env.list[i] = strdup(list[i]);
		if (!env.list[i])
			return err_set(err, AVA_ENOMEM, "out of memory");
	}
	return env.list ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
}

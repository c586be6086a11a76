/* From the name of a model to the dialect that speaks to it. A table of what
 * there is: aliases, then the prefixes of services. In this version the
 * offline model is the only one; a name that needs a service is refused with
 * a sentence, an alias falls back to the offline model and *why says so. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "provider/dialect.h"

#define NO_KEY "no provider key is set, so the offline model is used"

static const char *const aliases[] = {
	"claude-haiku",
	"claude-sonnet",
	"claude-sonnet-4.5",
	"claude-opus",
};

/* Services, by the prefix of their models; none is spoken to in this version. */
static const char *const services[] = {"anthropic/", "openai/", "openrouter/", "local/"};

static void set_offline(struct model *out)
{
	*out = (struct model){
		.id = "offline",
		.dialect = &dialect_offline,
		.max_output = 8192,
		.context = 200000,
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
	if (len >= sizeof(out->config))
		return err_set(err, AVA_EINVAL,
			       "the path of the script is %zu bytes long, %zu at the most", len,
			       sizeof(out->config) - 1);
	set_offline(out);
	snprintf(out->id, sizeof(out->id), "offline:%s", file);
	snprintf(out->config, sizeof(out->config), "%s", file);
	return 0;
}

static int unknown(const char *name, struct ava_error *err)
{
	for (size_t i = 0; i < ARRAY_LEN(services); i++)
		if (strncmp(name, services[i], strlen(services[i])) == 0)
			return err_set(err, AVA_EUNSUPPORTED,
				       "%.100s needs a model service, and this version speaks to "
				       "none: use "
				       "the model offline",
				       name);
	return err_set(err, AVA_EINVAL,
		       "unknown model %.100s: there are offline, offline:/path/to/FILE.jsonl, "
		       "claude-haiku, "
		       "claude-sonnet, claude-sonnet-4.5 and claude-opus",
		       name[0] != 0 ? name : "\"\"");
}

int model_resolve(const char *name, struct model *out, const char **why, struct ava_error *err)
{
	const char *reason = NULL;
	int rv = 0;

	if (name == NULL || strcmp(name, "offline") == 0) {
		set_offline(out);
		reason = name == NULL ? NO_KEY : "the offline model was asked for";
	} else if (strncmp(name, "offline:", 8) == 0) {
		rv = set_script(out, name, name + 8, err);
		reason = "scripted turns were asked for";
	} else {
		for (size_t i = 0; reason == NULL && i < ARRAY_LEN(aliases); i++)
			if (strcmp(name, aliases[i]) == 0)
				reason = NO_KEY;
		if (reason != NULL)
			set_offline(out);
		else
			rv = unknown(name, err);
	}
	if (rv == 0 && why != NULL)
		*why = reason;
	return rv;
}

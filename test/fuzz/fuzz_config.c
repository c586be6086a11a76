/* Any bytes as config.yaml: refused with one line that names the file, or
 * taken with every setting in its range and tables that resolve. Storing a
 * local server in it either says no or gives a file that has it. */
#include "fuzz.h"

#include "ava/config.h"
#include "base/error.h"
#include "provider/model.h"

static void check_taken(const struct config *c)
{
	const struct model_row *row;
	const char *const *list;
	struct model m;
	size_t n;

	for (const struct settings_key *k = settings_keys; k->name; k++) {
		int64_t v;

		memcpy(&v, (const char *)&c->settings + k->at, sizeof(v));
		CHECK(v >= k->min && v <= k->max);
	}
	for (size_t i = 0; (row = models_own(i)) != NULL; i++) {
		CHECK(models_find(row->id) == row);
		CHECK(row->context > 0 && row->max_output > 0);
		model_resolve(row->id, &m, NULL, NULL);
	}
	list = model_fallback(&n);
	for (size_t i = 0; i < n; i++)
		model_resolve(list[i], &m, NULL, NULL);
	model_resolve(NULL, &m, NULL, NULL);
}

FUZZ_TARGET(config, len)
{
	struct ava_error err = {0};
	struct config c;

	if (config_read(&c, "f", (const char *)data, len, &err) == 0)
		check_taken(&c);
	else
		CHECK(strncmp(err.text, "f:", 2) == 0 && strchr(err.text, '\n') == NULL);
	config_read(&c, "f", NULL, 0, NULL);
}

/* Any bytes as config.yaml: refused with one line that names the file, or
 * taken with every setting in its range and tables that resolve. Storing a
 * local server in it either says no or gives a file that has it. */
#include "fuzz.h"

#include <string.h>

#include "ava/config.h"
#include "ava/config_store.h"
#include "base/error.h"
#include "provider/model.h"
#include "provider/models.h"

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

static void check_store(const char *text, size_t len)
{
	struct ava_error err = {0};
	struct config c;
	struct buf out;

	buf_init(&out, 1 << 20);
	if (config_edit_local("f", text, len, "http://127.0.0.1:8080/v1", "m:1", &out, &err) == 0) {
		struct buf again;

		buf_init(&again, 1 << 20);
		CHECK(config_edit_local("f", out.data, out.len, "http://127.0.0.1:8080/v1", "m:1",
					&again, &err) == 0);
		CHECK(again.len == out.len && memcmp(again.data, out.data, out.len) == 0);
		buf_fini(&again);
		/* What was good before is good with it. */
		if (config_read(&c, "f", text, len, NULL) == 0)
			CHECK(config_read(&c, "f", out.data, out.len, NULL) == 0);
	} else {
		CHECK(err.code < 0 && strchr(err.text, '\n') == NULL);
	}
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct ava_error err = {0};
	struct config c;

	if (config_read(&c, "f", (const char *)data, len, &err) == 0)
		check_taken(&c);
	else
		CHECK(strncmp(err.text, "f:", 2) == 0 && strchr(err.text, '\n') == NULL);
	check_store((const char *)data, len);
	config_read(&c, "f", NULL, 0, NULL);
	return 0;
}

/* The first line is a schema, the rest a value. A schema is refused with a sentence
 * or taken; under one that was taken every value gets an answer, the same one
 * twice, and words exactly when it does not fit. */
#include "fuzz.h"

#include <ava.h>
#include "base/buf.h"
#include "base/error.h"
#include "codec/json.h"
#include "codec/schema.h"
#include "codec/utf8.h"

static void check_value(const json_t *schema, const json_t *v)
{
	struct buf once, again;
	int n;

	buf_init(&once, 65536);
	buf_init(&again, 65536);
	n = schema_validate(schema, v, "output", &once);
	CHECK(n >= 0 || n == AVA_ETOOBIG);
	CHECK((n == 0) == (once.len == 0));
	CHECK(schema_validate(schema, v, "output", &again) == n);
	CHECK(once.len == again.len);
	CHECK(once.len == 0 || utf8_valid(once.data, once.len));
	buf_fini(&once);
	buf_fini(&again);
}

FUZZ_TARGET(schema, len)
{
	const char *s = (const char *)data, *end = len > 0 ? memchr(s, '\n', len) : NULL;
	size_t n = end != NULL ? (size_t)(end - s) : len;
	struct ava_error err = {0};
	json_t *schema = json_parse(s, n, NULL), *v = NULL;

	if (schema == NULL)
		return;
	if (schema_check(schema, &err) != 0) {
		CHECK(strncmp(err.text, "schema: ", 8) == 0);
		CHECK(utf8_valid(err.text, strlen(err.text)));
	} else {
		v = end != NULL ? json_parse(end + 1, len - n - 1, NULL) : NULL;
		check_value(schema, v != NULL ? v : schema);
	}
	json_decref(v);
	json_decref(schema);
}

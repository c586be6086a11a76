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

/* Also under a schema that nobody has checked. What fits is let be; what fits after it is brought
 * no further. */
static void check_coerced(const json_t *schema, const json_t *v, const char *name)
{
	json_t *given = json_deep_copy(v), *to = schema_coerce(schema, given, name, NULL),
	       *last = to;
	json_t *example = schema_example(schema);
	struct buf out;
	int was, is;

	buf_init(&out, 1u << 20);
	was = schema_validate(schema, v, name, &out);
	buf_reset(&out);
	is = schema_validate(schema, to, name, &out);
	CHECK(was != 0 || json_equal(v, to));
	if (is == 0)
		to = schema_coerce(schema, to, name, NULL);
	CHECK(to == last);
	json_decref(to);
	json_decref(example);
	buf_fini(&out);
}

FUZZ_TARGET(schema, len)
{
	const char *s = (const char *)data, *end = len > 0 ? memchr(s, '\n', len) : NULL;
	size_t n = end != NULL ? (size_t)(end - s) : len;
	struct ava_error err = {0};
	json_t *schema = json_parse(s, n, NULL), *v = NULL;

	if (schema == NULL)
		return;
	v = end != NULL ? json_parse(end + 1, len - n - 1, NULL) : NULL;
	if (v != NULL) {
		check_coerced(schema, v, "");
		check_coerced(schema, v, "arguments");
	}
	if (schema_check(schema, &err) != 0) {
		CHECK(strncmp(err.text, "schema: ", 8) == 0);
		CHECK(utf8_valid(err.text, strlen(err.text)));
	} else {
		check_value(schema, v != NULL ? v : schema);
	}
	json_decref(v);
	json_decref(schema);
}

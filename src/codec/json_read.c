/* The reading half of json.h: jansson, made strict, and the way back.
 *
 * Depth is checked before parsing, so that no input makes the parser recurse
 * further than our own code is ready to. What jansson allocates lives until
 * the caller's json_decref. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "codec/json.h"
#include "codec/json_fast.h"

/* Line on which nesting exceeds the bound, 0 when it never does. Text that
 * is no JSON may be judged wrongly here, but only towards refusal. */
static int too_deep_at(const char *s, size_t len)
{
	int line = 1, depth = 0;
	bool text = false;

	for (size_t i = 0; i < len; i++) {
		if (s[i] == '\n')
			line++;
		if (text && s[i] == '\\')
			i++;
		else if (s[i] == '"')
			text = !text;
		else if (!text && (s[i] == '{' || s[i] == '['))
			depth++;
		else if (!text && (s[i] == '}' || s[i] == ']'))
			depth--;
		if (depth > JSON_DEPTH_MAX)
			return line;
	}
	return 0;
}

json_t *json_parse(const char *s, size_t len, struct ava_error *err)
{
	json_t *v = json_fast(s, len);
	json_error_t why;
	int line;

	if (v != NULL)
		return v;
	line = too_deep_at(s, len);
	if (line != 0) {
		err_set(err, AVA_EINVAL, "line %d: nested deeper than %d", line, JSON_DEPTH_MAX);
		return NULL;
	}
	v = json_loadb(s, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
	if (v == NULL)
		err_set(err,
			json_error_code(&why) == json_error_out_of_memory ? AVA_ENOMEM : AVA_EINVAL,
			"line %d: %s", why.line > 0 ? why.line : 1, why.text);
	return v;
}

const char *json_get_str(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

const char *json_str(const json_t *o, const char *key)
{
	const char *s = json_get_str(o, key);

	return s != NULL ? s : "";
}

const char *json_type_name(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		return "object";
	case JSON_ARRAY:
		return "array";
	case JSON_STRING:
		return "string";
	case JSON_INTEGER:
		return "integer";
	case JSON_REAL:
		return "number";
	case JSON_TRUE:
	case JSON_FALSE:
		return "boolean";
	case JSON_NULL:
		break;
	}
	return "null";
}

int64_t json_get_int(const json_t *o, const char *key, int64_t fallback)
{
	const json_t *v = json_object_get(o, key);

	return json_is_integer(v) ? json_integer_value(v) : fallback;
}

bool json_get_bool(const json_t *o, const char *key, bool fallback)
{
	const json_t *v = json_object_get(o, key);

	return json_is_boolean(v) ? json_is_true(v) : fallback;
}

int64_t json_get_fixed(const json_t *o, const char *key, int decimals, int64_t fallback)
{
	const json_t *v = json_object_get(o, key);
	int64_t unit = 1, n;
	double scaled;

	for (int i = 0; i < decimals; i++)
		unit *= 10;
	if (json_is_integer(v))
		return __builtin_mul_overflow(json_integer_value(v), unit, &n) ? fallback : n;
	if (!json_is_real(v))
		return fallback;
	scaled = json_real_value(v) * (double)unit;
	/* 2^63 as a double; above it llround is undefined. */
	return fabs(scaled) < 9223372036854775808.0 ? llround(scaled) : fallback;
}

/* ---- writing values back */

/* The first of 15, 16, 17 digits that reads back as the same double. */
static void dump_real(struct buf *out, double d)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, d);
		if (strtod(text, NULL) == d)
			break;
	}
	/* A program we live in may have set a locale with a decimal comma. */
	for (char *p = text; *p != '\0'; p++)
		if (strchr("0123456789+-e", *p) == NULL)
			*p = '.';
	buf_adds(out, text);
	if (strpbrk(text, ".e") == NULL)
		buf_adds(out, ".0"); /* still a real when it is read again */
}

static int dump_value(struct buf *out, const json_t *v, int depth);

static int dump_object(struct buf *out, const json_t *v, int depth)
{
	json_t *o = (json_t *)(uintptr_t)v; /* jansson's iterators are not const */
	bool some = false;
	int rv = 0;

	buf_addc(out, '{');
	for (void *at = json_object_iter(o); at != NULL && rv == 0;
	     at = json_object_iter_next(o, at)) {
		const char *key = json_object_iter_key(at);

		if (some)
			buf_addc(out, ',');
		some = true;
		json_escape(out, key, strlen(key));
		buf_addc(out, ':');
		rv = dump_value(out, json_object_iter_value(at), depth);
	}
	buf_addc(out, '}');
	return rv;
}

static int dump_array(struct buf *out, const json_t *v, int depth)
{
	int rv = 0;

	buf_addc(out, '[');
	for (size_t i = 0; i < json_array_size(v) && rv == 0; i++) {
		if (i > 0)
			buf_addc(out, ',');
		rv = dump_value(out, json_array_get(v, i), depth);
	}
	buf_addc(out, ']');
	return rv;
}

static int dump_value(struct buf *out, const json_t *v, int depth)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		return depth > 0 ? dump_object(out, v, depth - 1) : AVA_ETOOBIG;
	case JSON_ARRAY:
		return depth > 0 ? dump_array(out, v, depth - 1) : AVA_ETOOBIG;
	case JSON_STRING:
		return json_escape(out, json_string_value(v), json_string_length(v));
	case JSON_INTEGER:
		return json_add_int(out, json_integer_value(v));
	case JSON_REAL:
		dump_real(out, json_real_value(v));
		return buf_check(out);
	case JSON_TRUE:
		return buf_adds(out, "true");
	case JSON_FALSE:
		return buf_adds(out, "false");
	case JSON_NULL:
		return buf_adds(out, "null");
	}
	return AVA_EINVAL;
}

int json_dump(struct buf *out, const json_t *v)
{
	int rv = dump_value(out, v, JSON_DEPTH_MAX);

	return rv != 0 ? rv : buf_check(out);
}

/* Two walks: one over the schema alone, before anything starts (each keyword is
 * known and has a value it can have, each reference leads somewhere), one over
 * schema and value together.
 *
 * A keyword that is not known is refused, never passed over: a schema that is
 * checked in part would let values through that its author forbids. Annotations
 * are let be. Work is bounded by steps, since references and combinations can ask
 * for more than any depth limit holds. Names and values from outside are cut and
 * escaped before they are quoted. */
#include "codec/schema.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ava.h>
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"

#define WHERE_MAX  160
#define NAME_CHARS 40

/* Where we are: "output.items[3].name". Cut in front when it gets long. */
struct where {
	char text[WHERE_MAX];
};

static void shown(char *out, size_t size, const char *name, size_t chars)
{
	size_t len = strlen(name), keep = utf8_prefix(name, len, chars);
	struct buf b;

	buf_init(&b, size);
	json_escape(&b, name, keep);
	if (buf_check(&b) == 0 && b.len >= 2)
		snprintf(out, size, "%.*s%s", (int)(b.len - 2), b.data + 1, keep < len ? "…" : "");
	else
		snprintf(out, size, "?");
	buf_fini(&b);
}

static void where_add(struct where *to, const struct where *from, const char *dot, const char *name)
{
	char part[NAME_CHARS * 6 + 8];
	size_t len = strlen(from->text);
	const char *at = from->text;

	shown(part, sizeof(part), name, NAME_CHARS);
	if (len > WHERE_MAX / 2)
		at += len - WHERE_MAX / 2;
	while (at > from->text && ((unsigned char)*at & 0xc0) == 0x80)
		at++;
	snprintf(to->text, sizeof(to->text), "%s%.*s%s%.*s", at > from->text ? "…" : "",
		 WHERE_MAX / 2, at, dot, WHERE_MAX / 3, part);
}

static void where_index(struct where *to, const struct where *from, size_t i)
{
	char n[24];

	snprintf(n, sizeof(n), "%zu]", i);
	where_add(to, from, "[", n);
}

/* ---- the schema alone */

struct checking {
	const json_t *root;
	struct ava_error *err;
};

static int check_schema(struct checking *c, const json_t *s, const struct where *at, int depth);

static int wrong(struct checking *c, const struct where *at, const char *what)
{
	return err_set(c->err, AVA_EINVAL, "schema: %s %s", at->text, what);
}

static bool is_type_name(const json_t *v)
{
	static const char *const names[] = {"null",   "boolean", "object", "array",
					    "number", "string",  "integer"};

	for (size_t i = 0; json_is_string(v) && i < ARRAY_LEN(names); i++)
		if (strcmp(names[i], json_string_value(v)) == 0)
			return true;
	return false;
}

static int check_type(struct checking *c, const json_t *v, const struct where *at, int depth)
{
	const json_t *one;
	size_t i;

	if (is_type_name(v))
		return 0;
	json_array_foreach(v, i, one)
	{
		if (!is_type_name(one))
			return wrong(c, at, "has a type that there is not");
	}
	return json_array_size(v) > 0 ? 0 : wrong(c, at, "has a type that there is not");
}

static int check_list(struct checking *c, const json_t *v, const struct where *at, int depth)
{
	return json_is_array(v) && json_array_size(v) > 0
		       ? 0
		       : wrong(c, at, "must be a list with something in it");
}

static int check_any(struct checking *c, const json_t *v, const struct where *at, int depth)
{
	return 0;
}

static int check_number(struct checking *c, const json_t *v, const struct where *at, int depth)
{
	return json_is_number(v) ? 0 : wrong(c, at, "must be a number");
}

static int check_above_0(struct checking *c, const json_t *v, const struct where *at, int depth)
{
	return json_is_number(v) && json_number_value(v) > 0 ? 0 : wrong(c, at, "must be above 0");
}

static int check_count(struct checking *c, const json_t *v, const struct where *at, int depth)
{
	return json_is_integer(v) && json_integer_value(v) >= 0
		       ? 0
		       : wrong(c, at, "must be a whole number, 0 or more");
}

static int check_flag(struct checking *c, const json_t *v, const struct where *at, int depth)
{
	return json_is_boolean(v) ? 0 : wrong(c, at, "must be true or false");
}

static int check_names(struct checking *c, const json_t *v, const struct where *at, int depth)
{
	const json_t *one;
	size_t i;

	if (!json_is_array(v))
		return wrong(c, at, "must be a list of names");
	json_array_foreach(v, i, one)
	{
		if (!json_is_string(one))
			return wrong(c, at, "must be a list of names");
	}
	return 0;
}

static int check_schemas(struct checking *c, const json_t *v, const struct where *at, int depth)
{
	const json_t *one;
	struct where in;
	size_t i;
	int rv = check_list(c, v, at, depth);

	json_array_foreach(v, i, one)
	{
		if (rv != 0)
			return rv;
		where_index(&in, at, i);
		rv = check_schema(c, one, &in, depth);
	}
	return rv;
}

static int check_map(struct checking *c, const json_t *v, const struct where *at, int depth)
{
	const char *key;
	struct where in;
	json_t *one;
	int rv = 0;

	if (!json_is_object(v))
		return wrong(c, at, "must be an object");
	json_object_foreach((json_t *)v, key, one)
	{
		where_add(&in, at, ".", key);
		rv = check_schema(c, one, &in, depth);
		if (rv != 0)
			return rv;
	}
	return 0;
}

/* "#" or "#/$defs/NAME": the schema it means; NULL: none. */
static const json_t *find_ref(const json_t *root, const json_t *ref)
{
	static const char defs[] = "#/$defs/";
	const char *s = json_string_value(ref);

	if (s == NULL)
		return NULL;
	if (strcmp(s, "#") == 0)
		return root;
	if (strncmp(s, defs, sizeof(defs) - 1) != 0)
		return NULL;
	return json_object_get(json_object_get(root, "$defs"), s + sizeof(defs) - 1);
}

static int check_ref(struct checking *c, const json_t *v, const struct where *at, int depth)
{
	const json_t *to = v;

	for (int n = 0; n < SCHEMA_DEPTH_MAX; n++) {
		const json_t *s = find_ref(c->root, to);

		if (s == NULL)
			return wrong(c, at, "leads nowhere: it may be # or #/$defs/NAME");
		to = json_object_get(s, "$ref");
		if (to == NULL)
			return 0;
	}
	return wrong(c, at, "leads in a circle");
}

static const struct keyword {
	const char *name;
	int (*check)(struct checking *c, const json_t *v, const struct where *at, int depth);
} keywords[] = {
	{"type", check_type},
	{"enum", check_list},
	{"const", check_any},
	{"minimum", check_number},
	{"maximum", check_number},
	{"exclusiveMinimum", check_number},
	{"exclusiveMaximum", check_number},
	{"multipleOf", check_above_0},
	{"minLength", check_count},
	{"maxLength", check_count},
	{"minItems", check_count},
	{"maxItems", check_count},
	{"minProperties", check_count},
	{"maxProperties", check_count},
	{"uniqueItems", check_flag},
	{"items", check_schema},
	{"prefixItems", check_schemas},
	{"contains", check_schema},
	{"properties", check_map},
	{"required", check_names},
	{"additionalProperties", check_schema},
	{"propertyNames", check_schema},
	{"allOf", check_schemas},
	{"anyOf", check_schemas},
	{"oneOf", check_schemas},
	{"not", check_schema},
	{"$ref", check_ref},
	{"$defs", check_map},
	/* Annotations: said, not checked. */
	{"$schema", check_any},
	{"$id", check_any},
	{"$comment", check_any},
	{"title", check_any},
	{"description", check_any},
	{"default", check_any},
	{"examples", check_any},
	{"format", check_any},
	{"deprecated", check_any},
	{"readOnly", check_any},
	{"writeOnly", check_any},
};

static int check_schema(struct checking *c, const json_t *s, const struct where *at, int depth)
{
	const char *key;
	struct where in;
	json_t *v;
	int rv;

	if (depth > SCHEMA_DEPTH_MAX)
		return wrong(c, at, "is nested too deep");
	if (json_is_boolean(s))
		return 0;
	if (!json_is_object(s))
		return wrong(c, at, "must be an object, true or false");
	json_object_foreach((json_t *)s, key, v)
	{
		size_t i = 0;

		where_add(&in, at, ".", key);
		while (i < ARRAY_LEN(keywords) && strcmp(keywords[i].name, key) != 0)
			i++;
		if (i == ARRAY_LEN(keywords))
			return wrong(c, &in,
				     "is a keyword that is not known here: doc/SCHEMA.md lists "
				     "those that are");
		rv = keywords[i].check(c, v, &in, depth + 1);
		if (rv != 0)
			return rv;
	}
	return 0;
}

int schema_check(const json_t *schema, struct ava_error *err)
{
	struct checking c = {.root = schema, .err = err};
	struct where top = {"$"};
	struct buf text;
	int rv;

	buf_init(&text, SCHEMA_BYTES_MAX);
	rv = json_dump(&text, schema);
	buf_fini(&text);
	if (rv == AVA_ENOMEM)
		return err_set(err, rv, "out of memory");
	if (rv != 0)
		return err_set(err, AVA_EINVAL, "schema: it is too big, at most %d bytes are taken",
			       SCHEMA_BYTES_MAX);
	if (!json_is_object(schema))
		return err_set(err, AVA_EINVAL, "schema: it must be an object");
	return check_schema(&c, schema, &top, 0);
}

/* ---- a value under it */

struct validating {
	const json_t *root;
	struct buf *out; /* NULL: only whether it fits is asked */
	int errors, steps;
	bool too_much;
};

static void apply(struct validating *w, const json_t *s, const json_t *v, const struct where *at,
		  int depth);

static void fault(struct validating *w, const struct where *at, const char *what)
{
	w->errors++;
	if (w->out != NULL && w->errors <= SCHEMA_ERRORS_MAX)
		buf_addf(w->out, "%s%s %s", w->out->len > 0 ? "\n" : "", at->text, what);
}

/* One step more: is that too many? */
static bool spent(struct validating *w)
{
	if (++w->steps > SCHEMA_STEPS_MAX)
		w->too_much = true;
	return w->too_much;
}

/* Does it fit, without words? */
static bool fits(struct validating *w, const json_t *s, const json_t *v, const struct where *at,
		 int depth)
{
	struct validating quiet = {.root = w->root, .steps = w->steps, .too_much = w->too_much};

	apply(&quiet, s, v, at, depth);
	w->steps = quiet.steps;
	w->too_much = w->too_much || quiet.too_much;
	return quiet.errors == 0;
}

static bool is_whole(const json_t *v)
{
	return json_is_integer(v) ||
	       (json_is_real(v) && json_real_value(v) == floor(json_real_value(v)));
}

static bool has_type(const char *type, const json_t *v)
{
	if (strcmp(type, "number") == 0)
		return json_is_number(v);
	if (strcmp(type, "integer") == 0)
		return is_whole(v);
	return strcmp(type, json_type_name(v)) == 0;
}

static void apply_type(struct validating *w, const json_t *want, const json_t *v,
		       const struct where *at)
{
	char list[120] = "", text[200];
	const json_t *one;
	size_t i, n = 0;

	if (json_is_string(want)) {
		if (has_type(json_string_value(want), v))
			return;
		snprintf(list, sizeof(list), "%s", json_string_value(want));
	}
	json_array_foreach(want, i, one)
	{
		if (has_type(json_string_value(one), v))
			return;
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i > 0 ? " or " : "",
				      json_string_value(one));
		n = MIN(n, sizeof(list) - 1);
	}
	snprintf(text, sizeof(text), "must be of type %s, not %s", list, json_type_name(v));
	fault(w, at, text);
}

/* 1 and 1.0 are the same number. */
static bool same(const json_t *a, const json_t *b)
{
	const char *key;
	json_t *one;
	size_t i;

	if (json_is_number(a) && json_is_number(b))
		return json_is_integer(a) && json_is_integer(b)
			       ? json_integer_value(a) == json_integer_value(b)
			       : json_number_value(a) == json_number_value(b);
	if (json_is_array(a) && json_is_array(b)) {
		if (json_array_size(a) != json_array_size(b))
			return false;
		json_array_foreach(a, i, one)
		{
			if (!same(one, json_array_get(b, i)))
				return false;
		}
		return true;
	}
	if (json_is_object(a) && json_is_object(b)) {
		if (json_object_size(a) != json_object_size(b))
			return false;
		json_object_foreach((json_t *)a, key, one)
		{
			const json_t *other = json_object_get(b, key);

			if (other == NULL || !same(one, other))
				return false;
		}
		return true;
	}
	return json_equal(a, b) != 0;
}

static void add_value(struct buf *out, const json_t *v)
{
	struct buf b;

	buf_init(&b, 4096);
	if (json_dump(&b, v) == 0)
		buf_add(out, b.data, utf8_prefix(b.data, b.len, NAME_CHARS));
	if (b.failed || utf8_count(b.data != NULL ? b.data : "", b.len) > NAME_CHARS)
		buf_adds(out, "…");
	buf_fini(&b);
}

static void apply_enum(struct validating *w, const json_t *values, const json_t *v,
		       const struct where *at)
{
	const json_t *one;
	struct buf b;
	size_t i;

	json_array_foreach(values, i, one)
	{
		if (spent(w) || same(one, v))
			return;
	}
	buf_init(&b, 4096);
	buf_adds(&b, "must be one of: ");
	json_array_foreach(values, i, one)
	{
		if (i == 12) {
			buf_adds(&b, ", …");
			break;
		}
		buf_adds(&b, i > 0 ? ", " : "");
		add_value(&b, one);
	}
	fault(w, at, b.data != NULL ? b.data : "must be one of its values");
	buf_fini(&b);
}

static void apply_number(struct validating *w, const json_t *s, const json_t *v,
			 const struct where *at)
{
	static const struct {
		const char *key, *words;
	} bounds[] = {
		{"minimum", "must be at least"},
		{"maximum", "must be at most"},
		{"exclusiveMinimum", "must be more than"},
		{"exclusiveMaximum", "must be less than"},
		{"multipleOf", "must be a multiple of"},
	};
	double n = json_number_value(v);
	char text[80];

	for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
		const json_t *bound = json_object_get(s, bounds[i].key);
		double b = json_number_value(bound), times = i == 4 ? n / b : 0;
		bool good = bound == NULL || (i == 0 && n >= b) || (i == 1 && n <= b) ||
			    (i == 2 && n > b) || (i == 3 && n < b) ||
			    (i == 4 && fabs(times - nearbyint(times)) <= fabs(times) * 1e-12);

		if (good)
			continue;
		snprintf(text, sizeof(text), "%s %.15g", bounds[i].words, b);
		fault(w, at, text);
	}
}

/* `n` of something between the two keywords. */
static void apply_count(struct validating *w, const json_t *s, const char *least, const char *most,
			size_t n, const char *unit, const struct where *at)
{
	const json_t *min = json_object_get(s, least), *max = json_object_get(s, most);
	char text[120];

	if (min != NULL && (json_int_t)n < json_integer_value(min)) {
		snprintf(text, sizeof(text), "must have at least %" PRId64 " %s, it has %zu",
			 (int64_t)json_integer_value(min), unit, n);
		fault(w, at, text);
	}
	if (max != NULL && (json_int_t)n > json_integer_value(max)) {
		snprintf(text, sizeof(text), "must have at most %" PRId64 " %s, it has %zu",
			 (int64_t)json_integer_value(max), unit, n);
		fault(w, at, text);
	}
}

static void apply_unique(struct validating *w, const json_t *v, const struct where *at)
{
	size_t n = json_array_size(v);
	char text[80];

	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++) {
			if (spent(w))
				return;
			if (!same(json_array_get(v, i), json_array_get(v, k)))
				continue;
			snprintf(text, sizeof(text),
				 "must not hold the same twice: [%zu] and [%zu]", i, k);
			fault(w, at, text);
			return;
		}
}

static void apply_array(struct validating *w, const json_t *s, const json_t *v,
			const struct where *at, int depth)
{
	const json_t *first = json_object_get(s, "prefixItems"),
		     *rest = json_object_get(s, "items");
	const json_t *holds = json_object_get(s, "contains"), *one;
	size_t i, prefix = json_array_size(first);
	bool found = holds == NULL;
	struct where in;

	apply_count(w, s, "minItems", "maxItems", json_array_size(v), "items", at);
	if (json_is_true(json_object_get(s, "uniqueItems")))
		apply_unique(w, v, at);
	if (prefix == 0 && rest == NULL && holds == NULL)
		return;
	json_array_foreach(v, i, one)
	{
		if (spent(w))
			break;
		where_index(&in, at, i);
		if (i < prefix)
			apply(w, json_array_get(first, i), one, &in, depth);
		else if (rest != NULL)
			apply(w, rest, one, &in, depth);
		found = found || fits(w, holds, one, &in, depth);
	}
	if (!found)
		fault(w, at, "must hold an item of the kind that `contains` says");
}

static void apply_names(struct validating *w, const json_t *s, const json_t *v,
			const struct where *at, int depth)
{
	const json_t *required = json_object_get(s, "required"), *one;
	const json_t *names = json_object_get(s, "propertyNames");
	const char *key;
	struct where in;
	json_t *name, *value;
	size_t i;

	json_array_foreach(required, i, one)
	{
		if (json_object_get(v, json_string_value(one)) != NULL)
			continue;
		where_add(&in, at, ".", json_string_value(one));
		fault(w, &in, "is missing");
	}
	json_object_foreach((json_t *)v, key, value)
	{
		if (names == NULL || spent(w))
			break;
		name = json_string(key);
		where_add(&in, at, ".", key);
		if (name != NULL && !fits(w, names, name, &in, depth))
			fault(w, &in, "is a name that is not allowed");
		json_decref(name);
	}
}

static void apply_object(struct validating *w, const json_t *s, const json_t *v,
			 const struct where *at, int depth)
{
	const json_t *properties = json_object_get(s, "properties");
	const json_t *others = json_object_get(s, "additionalProperties");
	const char *key;
	struct where in;
	json_t *one;

	apply_count(w, s, "minProperties", "maxProperties", json_object_size(v), "properties", at);
	apply_names(w, s, v, at, depth);
	json_object_foreach((json_t *)v, key, one)
	{
		const json_t *of = json_object_get(properties, key);

		if (of == NULL && (others == NULL || json_is_true(others)))
			continue;
		if (spent(w))
			break;
		where_add(&in, at, ".", key);
		if (of != NULL)
			apply(w, of, one, &in, depth);
		else if (json_is_false(others))
			fault(w, &in, "is not a property that the schema has");
		else
			apply(w, others, one, &in, depth);
	}
}

static void apply_combined(struct validating *w, const json_t *s, const json_t *v,
			   const struct where *at, int depth)
{
	const json_t *all = json_object_get(s, "allOf"), *any = json_object_get(s, "anyOf");
	const json_t *one_of = json_object_get(s, "oneOf"), *no = json_object_get(s, "not"), *one;
	size_t i, n = 0;

	json_array_foreach(all, i, one) apply(w, one, v, at, depth);
	json_array_foreach(any, i, one)
	{
		if (n == 0 && fits(w, one, v, at, depth))
			n++;
	}
	if (any != NULL && n == 0)
		fault(w, at, "fits none of the schemas of anyOf");
	n = 0;
	json_array_foreach(one_of, i, one) n += fits(w, one, v, at, depth);
	if (one_of != NULL && n != 1)
		fault(w, at,
		      n == 0 ? "fits none of the schemas of oneOf"
			     : "fits several of the schemas of oneOf, it must be one");
	if (no != NULL && fits(w, no, v, at, depth))
		fault(w, at, "must not fit the schema of `not`");
}

static void apply(struct validating *w, const json_t *s, const json_t *v, const struct where *at,
		  int depth)
{
	const json_t *ref, *want;

	w->too_much = w->too_much || depth > 2 * JSON_DEPTH_MAX;
	if (spent(w))
		return;
	if (json_is_false(s))
		fault(w, at, "must not be there");
	if (!json_is_object(s))
		return;
	ref = json_object_get(s, "$ref");
	if (ref != NULL)
		apply(w, find_ref(w->root, ref), v, at, depth + 1);
	if ((want = json_object_get(s, "type")) != NULL)
		apply_type(w, want, v, at);
	if ((want = json_object_get(s, "enum")) != NULL)
		apply_enum(w, want, v, at);
	if ((want = json_object_get(s, "const")) != NULL && !same(want, v)) {
		json_t *list = json_pack("[O]", want);

		apply_enum(w, list, v, at);
		json_decref(list);
	}
	apply_combined(w, s, v, at, depth + 1);
	if (json_is_number(v))
		apply_number(w, s, v, at);
	else if (json_is_string(v))
		apply_count(w, s, "minLength", "maxLength",
			    utf8_count(json_string_value(v), json_string_length(v)), "characters",
			    at);
	else if (json_is_array(v))
		apply_array(w, s, v, at, depth + 1);
	else if (json_is_object(v))
		apply_object(w, s, v, at, depth + 1);
}

int schema_validate(const json_t *schema, const json_t *v, const char *name, struct buf *out)
{
	struct validating w = {.root = schema, .out = out};
	struct where top;

	snprintf(top.text, sizeof(top.text), "%.*s", WHERE_MAX / 4, name);
	apply(&w, schema, v, &top, 0);
	if (w.errors > SCHEMA_ERRORS_MAX)
		buf_addf(out, "\nand %d more", w.errors - SCHEMA_ERRORS_MAX);
	if (w.too_much && w.errors == 0)
		buf_addf(out, "%s is too large to be checked against its schema", top.text);
	if (buf_check(out) != 0)
		return buf_check(out);
	return w.errors > 0 ? w.errors : w.too_much ? AVA_ETOOBIG : 0;
}

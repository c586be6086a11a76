/* One walk over schema and value together. Before anything starts a schema is itself the value,
 * under the schema of schemas: each keyword must be known and have a valid value. Only the
 * targets of its references are checked apart.
 *
 * An unknown keyword is refused, never skipped: a schema checked in part would let values
 * through that its author forbids. Annotations are ignored. Work is bounded by steps, since
 * references and combinations can ask for more than any depth limit holds. Names and values from
 * outside are cut and escaped before they are quoted. */
#include "codec/schema.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <ava.h>
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"

#define WHERE_MAX  160
#define NAME_CHARS 40

/* The present place: "output.items[3].name". Cut in front when it gets long. */
struct where {
	char text[WHERE_MAX];
};

static void schema_shown(char *out, size_t size, const char *name, size_t chars)
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
	size_t len = strlen(from->text), keep;
	const char *at = from->text;

	if (len == 0 && *dot == '.')
		dot = "";
	schema_shown(part, sizeof(part), name, NAME_CHARS);
	keep = MIN(strlen(part), WHERE_MAX / 3);
	while (keep > 0 && ((unsigned char)part[keep] & 0xc0) == 0x80)
		keep--;
	if (len > WHERE_MAX / 2)
		at += len - WHERE_MAX / 2;
	while (at > from->text && ((unsigned char)*at & 0xc0) == 0x80)
		at++;
	snprintf(to->text, sizeof(to->text), "%s%.*s%s%.*s", at > from->text ? "…" : "",
		 WHERE_MAX / 2, at, dot, (int)keep, part);
}

static void where_index(struct where *to, const struct where *from, size_t i)
{
	char n[24];

	snprintf(n, sizeof(n), "%zu]", i);
	where_add(to, from, "[", n);
}

/* The schema that "#" or "#/$defs/NAME" refers to; NULL: none. */
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

/* ---- checking a value */

struct validating {
	const json_t *root;
	struct buf *out; /* text of the errors; NULL: only the verdict is wanted */
	int errors, steps;
	bool too_much;
	bool meta;           /* the value is a schema, checked under the schema of schemas */
	bool args;           /* the value is a call's arguments */
	struct buf *dropped; /* gets the name of the first dropped member; NULL: not wanted */
};

static void schema_apply(struct validating *w, const json_t *s, const json_t *v,
			 const struct where *at, int depth);

__attribute__((format(printf, 3, 4))) static void schema_fault(struct validating *w,
							       const struct where *at,
							       const char *fmt, ...)
{
	va_list ap;

	w->errors++;
	if (w->out == NULL || w->errors > SCHEMA_ERRORS_MAX)
		return;
	buf_addf(w->out, "%s%s ", w->out->len > 0 ? "\n" : "",
		 at->text[0] != '\0' ? at->text : "the arguments");
	va_start(ap, fmt);
	buf_vaddf(w->out, fmt, ap);
	va_end(ap);
}

/* Count a step; true: too many. */
static bool spent(struct validating *w)
{
	if (++w->steps > SCHEMA_STEPS_MAX)
		w->too_much = true;
	return w->too_much;
}

/* Does the value fit? Writes no errors. */
static bool schema_fits(struct validating *w, const json_t *s, const json_t *v,
			const struct where *at, int depth)
{
	struct validating quiet = *w;

	quiet.out = NULL;
	quiet.errors = 0;
	schema_apply(&quiet, s, v, at, depth);
	w->steps = quiet.steps;
	w->too_much = quiet.too_much;
	return quiet.errors == 0;
}

static bool is_whole(const json_t *v)
{
	return json_is_integer(v) ||
	       (json_is_real(v) && json_real_value(v) == floor(json_real_value(v)));
}

/* Tools read arguments strictly: 5.0 is no integer there. */
static bool has_type(const struct validating *w, const char *type, const json_t *v)
{
	if (type == NULL) /* only an unchecked schema has such a type */
		return false;
	if (strcmp(type, "number") == 0)
		return json_is_number(v);
	if (strcmp(type, "integer") == 0)
		return w->args ? json_is_integer(v) : is_whole(v);
	return strcmp(type, json_type_name(v)) == 0;
}

static void apply_type(struct validating *w, const json_t *want, const json_t *v,
		       const struct where *at)
{
	char list[120] = "";
	const json_t *one;
	size_t i, n = 0;

	if (json_is_string(want)) {
		if (has_type(w, json_string_value(want), v))
			return;
		snprintf(list, sizeof(list), "%s", json_string_value(want));
	}
	json_array_foreach(want, i, one)
	{
		if (has_type(w, json_string_value(one), v))
			return;
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i > 0 ? " or " : "",
				      json_string_value(one));
		n = MIN(n, sizeof(list) - 1);
	}
	schema_fault(w, at, "must be of type %s, not %s", list, json_type_name(v));
}

/* 1 and 1.0 are the same number. */
static bool schema_same(const json_t *a, const json_t *b)
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
			if (!schema_same(one, json_array_get(b, i)))
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

			if (other == NULL || !schema_same(one, other))
				return false;
		}
		return true;
	}
	return json_equal(a, b) != 0;
}

static void schema_add_value(struct buf *out, const json_t *v)
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
		if (spent(w) || schema_same(one, v))
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
		schema_add_value(&b, one);
	}
	schema_fault(w, at, "%s", b.data != NULL ? b.data : "must be one of its values");
	buf_fini(&b);
}

/* Whole but for the error of a division; above 2^53 every double is whole. */
static bool nearly_whole(double d)
{
	if (fabs(d) >= 9007199254740992.0)
		return isfinite(d);
	return fabs(d - (double)round_to_int(d)) <= fabs(d) * 1e-12;
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

	for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
		const json_t *bound = json_object_get(s, bounds[i].key);
		double b = json_number_value(bound), times = i == 4 ? n / b : 0;
		bool good = bound == NULL || (i == 0 && n >= b) || (i == 1 && n <= b) ||
			    (i == 2 && n > b) || (i == 3 && n < b) ||
			    (i == 4 && nearly_whole(times));

		if (!good)
			schema_fault(w, at, "%s %.15g", bounds[i].words, b);
	}
}

/* Check a count `n` against its two keywords. */
static void apply_count(struct validating *w, const json_t *s, const char *least, const char *most,
			size_t n, const char *unit, const struct where *at)
{
	const json_t *bound = json_object_get(s, least);

	if (bound != NULL && (double)n < json_number_value(bound))
		schema_fault(w, at, "must have at least %.15g %s, it has %zu",
			     json_number_value(bound), unit, n);
	bound = json_object_get(s, most);
	if (bound != NULL && (double)n > json_number_value(bound))
		schema_fault(w, at, "must have at most %.15g %s, it has %zu",
			     json_number_value(bound), unit, n);
}

static void apply_unique(struct validating *w, const json_t *v, const struct where *at)
{
	size_t n = json_array_size(v);

	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++) {
			if (spent(w))
				return;
			if (!schema_same(json_array_get(v, i), json_array_get(v, k)))
				continue;
			schema_fault(w, at, "must not hold the same twice: [%zu] and [%zu]", i, k);
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
			schema_apply(w, json_array_get(first, i), one, &in, depth);
		else if (rest != NULL)
			schema_apply(w, rest, one, &in, depth);
		found = found || schema_fits(w, holds, one, &in, depth);
	}
	if (!found)
		schema_fault(w, at, "must hold an item of the kind that `contains` says");
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
		if (!json_is_string(one) || json_object_get(v, json_string_value(one)) != NULL)
			continue;
		where_add(&in, at, ".", json_string_value(one));
		schema_fault(w, &in, "is required");
	}
	json_object_foreach((json_t *)v, key, value)
	{
		if (names == NULL || spent(w))
			break;
		name = json_string(key);
		where_add(&in, at, ".", key);
		if (name != NULL && !schema_fits(w, names, name, &in, depth))
			schema_fault(w, &in, "is a name that is not allowed");
		json_decref(name);
	}
}

static void fault_unknown(struct validating *w, const json_t *properties, const struct where *at)
{
	const char *known;
	struct buf list;
	json_t *one;

	buf_init(&list, 250); /* room for the first names, which are hint enough */
	json_object_foreach((json_t *)properties, known, one)
		buf_addf(&list, "%s%s", list.len > 0 ? ", " : "", known);
	schema_fault(w, at, "is not a property that the schema has; these are: %s",
		     list.len > 0 ? list.data : "none");
	buf_fini(&list);
}

static void apply_object(struct validating *w, const json_t *s, const json_t *v,
			 const struct where *at, int depth)
{
	const json_t *properties = json_object_get(s, "properties");
	const json_t *others = json_object_get(s, "additionalProperties");
	bool open = others == NULL && (!w->args || properties == NULL);
	const char *key;
	struct where in;
	json_t *one;

	apply_count(w, s, "minProperties", "maxProperties", json_object_size(v), "properties", at);
	apply_names(w, s, v, at, depth);
	json_object_foreach((json_t *)v, key, one)
	{
		const json_t *of = json_object_get(properties, key);

		if (of == NULL && (open || json_is_true(others)))
			continue;
		if (spent(w))
			break;
		where_add(&in, at, ".", key);
		if (of != NULL)
			schema_apply(w, of, one, &in, depth);
		else if (w->meta && json_is_false(others))
			schema_fault(w, &in,
				     "is a keyword that is not known here: doc/SCHEMA.md lists "
				     "those that "
				     "are");
		else if (others == NULL || json_is_false(others))
			fault_unknown(w, properties, &in);
		else
			schema_apply(w, others, one, &in, depth);
	}
}

static void apply_combined(struct validating *w, const json_t *s, const json_t *v,
			   const struct where *at, int depth)
{
	const json_t *all = json_object_get(s, "allOf"), *any = json_object_get(s, "anyOf");
	const json_t *one_of = json_object_get(s, "oneOf"), *no = json_object_get(s, "not"), *one;
	size_t i, n = 0;

	json_array_foreach(all, i, one) schema_apply(w, one, v, at, depth);
	json_array_foreach(any, i, one)
	{
		if (n == 0 && schema_fits(w, one, v, at, depth))
			n++;
	}
	if (any != NULL && n == 0)
		schema_fault(w, at,
			     w->meta ? "has a type that there is not"
				     : "fits none of the schemas of anyOf");
	n = 0;
	json_array_foreach(one_of, i, one) n += schema_fits(w, one, v, at, depth);
	if (one_of != NULL && n != 1)
		schema_fault(w, at,
			     n == 0 ? "fits none of the schemas of oneOf"
				    : "fits several of the schemas of oneOf, it must be one");
	if (no != NULL && schema_fits(w, no, v, at, depth))
		schema_fault(w, at, "must not fit the schema of `not`");
}

static void schema_apply(struct validating *w, const json_t *s, const json_t *v,
			 const struct where *at, int depth)
{
	const json_t *ref, *want;

	w->too_much = w->too_much || depth > 2 * JSON_DEPTH_MAX;
	if (spent(w))
		return;
	if (json_is_false(s))
		schema_fault(w, at, "must not be there");
	if (!json_is_object(s))
		return;
	ref = json_object_get(s, "$ref");
	if (ref != NULL)
		schema_apply(w, find_ref(w->root, ref), v, at, depth + 1);
	if ((want = json_object_get(s, "type")) != NULL)
		apply_type(w, want, v, at);
	if ((want = json_object_get(s, "enum")) != NULL)
		apply_enum(w, want, v, at);
	if ((want = json_object_get(s, "const")) != NULL && !schema_same(want, v)) {
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
	struct validating w = {.root = schema, .out = out, .args = name[0] == '\0'};
	struct where top;

	snprintf(top.text, sizeof(top.text), "%.*s", WHERE_MAX / 4, name);
	schema_apply(&w, schema, v, &top, 0);
	if (w.errors > SCHEMA_ERRORS_MAX)
		buf_addf(out, "\nand %d more", w.errors - SCHEMA_ERRORS_MAX);
	if (w.too_much && w.errors == 0)
		buf_addf(out, "%s is too large to be checked against its schema", top.text);
	if (buf_check(out) != 0)
		return buf_check(out);
	return w.errors > 0 ? w.errors : w.too_much ? AVA_ETOOBIG : 0;
}

/* ---- bringing a value toward a schema */

static const struct where here;

bool schema_same_letters(const char *a, const char *b)
{
	for (;; a++, b++) {
		while (*a != 0 && !isalnum((unsigned char)*a))
			a++;
		while (*b != 0 && !isalnum((unsigned char)*b))
			b++;
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return false;
		if (*a == 0)
			return true;
	}
}

void schema_rename(const json_t *schema, json_t *args)
{
	const json_t *properties = json_object_get(schema, "properties");
	const char *key, *name;
	json_t *one, *of;

	json_object_foreach((json_t *)properties, name, of)
	{
		json_object_foreach(args, key, one)
		{
			if (json_object_get(args, name) != NULL ||
			    json_object_get(properties, key) != NULL ||
			    !schema_same_letters(key, name))
				continue;
			json_object_set(args, name, one);
			json_object_del(args, key);
			break;
		}
	}
}

/* NULL: not a boolean. */
static json_t *as_boolean(const json_t *v)
{
	static const char *const words[][2] = {
		{"false", "true"}, {"no", "yes"}, {"off", "on"}, {"n", "y"}, {"0", "1"}};
	const char *s = json_string_value(v);

	for (size_t i = 0; s != NULL && i < 2 * ARRAY_LEN(words); i++)
		if (strcasecmp(s, words[i / 2][i % 2]) == 0)
			return json_boolean(i % 2);
	return json_is_integer(v) && (uint64_t)json_integer_value(v) <= 1
		       ? json_boolean(json_integer_value(v))
		       : NULL;
}

/* The enum value that equals `v` but for case and signs; NULL: none. */
static json_t *as_enum(const json_t *values, const json_t *v)
{
	const char *s = json_string_value(v);
	json_t *one;
	size_t i;

	json_array_foreach(
		values, i,
		one) if (s != NULL && json_is_string(one) &&
			 schema_same_letters(s, json_string_value(one))) return json_incref(one);
	return NULL;
}

/* `v` converted to that type: a new reference; NULL: not convertible. */
static json_t *as_type(const struct validating *w, const char *type, json_t *v)
{
	const char *s = json_string_value(v);
	json_t *in =
		s != NULL ? json_parse_lenient(s, json_string_length(v), NULL) : json_incref(v);
	json_t *only = json_array_size(in) == 1 ? json_array_get(in, 0) : in, *to = NULL;
	struct buf text;

	buf_init(&text, 64);
	if (in != NULL && has_type(w, type, in))
		to = json_incref(in);
	else if (strcmp(type, "boolean") == 0)
		to = as_boolean(v);
	else if (strcmp(type, "array") == 0)
		to = json_pack("[O]", v);
	else if (only != NULL && has_type(w, type, only))
		to = json_incref(only);
	else if (strcmp(type, "integer") == 0 && is_whole(in) && fabs(json_real_value(in)) < 1e15)
		to = json_integer((json_int_t)json_real_value(in));
	else if (strcmp(type, "string") == 0 && (json_is_number(v) || json_is_boolean(v)) &&
		 json_dump(&text, v) == 0)
		to = json_stringn(text.data, text.len);
	buf_fini(&text);
	json_decref(in);
	return to;
}

/* `v` as the first of its types that fits; NULL: it has one of them already, or none
 * fits. */
static json_t *as_types(const struct validating *w, const json_t *types, json_t *v)
{
	const json_t *one = json_is_array(types) ? json_array_get(types, 0) : types;
	struct validating quiet = {.args = w->args};
	json_t *to = NULL;

	apply_type(&quiet, types, v, &here);
	for (size_t i = 1; quiet.errors > 0 && to == NULL && json_is_string(one); i++) {
		to = as_type(w, json_string_value(one), v);
		one = json_array_get(types, i);
	}
	return to;
}

static json_t *coerce(struct validating *w, const json_t *s, json_t *v, int depth);

/* Some models write these for an omitted member. */
static bool says_nothing(const json_t *v)
{
	const char *s = json_string_value(v);

	return json_is_null(v) ||
	       (s != NULL && (*s == 0 || strcasecmp(s, "null") == 0 || strcasecmp(s, "none") == 0));
}

/* The content of the only member that is an object, where the schema has none of that name:
 * {"arguments":{…}}, {"name":"read_file","arguments":"{…}"}. A new reference; NULL: not such a
 * value. */
static json_t *as_inside(const struct validating *w, const json_t *properties, json_t *v)
{
	json_t *one, *in, *found = NULL;
	bool none = true;
	const char *key;

	json_object_foreach(v, key, one)
	{
		in = as_type(w, "object", one);
		none = none && json_object_get(properties, key) == NULL &&
		       (in == NULL || found == NULL);
		found = found != NULL ? found : json_incref(in);
		json_decref(in);
	}
	if (none)
		return found;
	json_decref(found);
	return NULL;
}

static json_t *coerce_members(struct validating *w, const json_t *s, json_t *v, int depth)
{
	const json_t *properties = json_object_get(s, "properties"), *of;
	const json_t *others = json_object_get(s, "additionalProperties");
	bool closed = json_is_false(others) || (others == NULL && w->args && properties != NULL);
	json_t *one = closed ? as_inside(w, properties, v) : NULL;
	const char *key;
	void *next;

	if (one != NULL) {
		json_decref(v);
		v = one;
	}
	if (closed)
		schema_rename(s, v);
	json_object_foreach_safe(v, next, key, one)
	{
		of = json_object_get(properties, key);
		if (of == NULL && closed && w->dropped != NULL && w->dropped->len == 0)
			buf_adds(w->dropped, key);
		if (of == NULL ? closed
			       : says_nothing(one) && !schema_fits(w, of, one, &here, depth))
			json_object_del(v, key);
		else if (of != NULL)
			json_object_set_new(v, key, coerce(w, of, json_incref(one), depth));
	}
	return v;
}

/* `v` is *taken*; the result is the caller's. */
static json_t *coerce(struct validating *w, const json_t *s, json_t *v, int depth)
{
	const json_t *any = json_object_get(s, "anyOf"), *items = json_object_get(s, "items"), *one;
	json_t *to = NULL;
	size_t i;

	if (v == NULL || depth > SCHEMA_DEPTH_MAX || spent(w) || schema_fits(w, s, v, &here, depth))
		return v;
	if ((one = json_object_get(s, "$ref")) != NULL)
		v = coerce(w, find_ref(w->root, one), v, depth + 1);
	any = any != NULL ? any : json_object_get(s, "oneOf");
	json_array_foreach(any, i, one)
	{
		if (to != NULL && schema_fits(w, json_array_get(any, i - 1), to, &here, depth))
			break;
		json_decref(to);
		to = coerce(w, one, json_deep_copy(v), depth + 1);
	}
	to = to != NULL ? to : as_enum(json_object_get(s, "enum"), v);
	to = to != NULL ? to : as_types(w, json_object_get(s, "type"), v);
	if (to != NULL) {
		json_decref(v);
		v = to;
	}
	for (i = 0; items != NULL && i < json_array_size(v); i++)
		json_array_set_new(v, i,
				   coerce(w, items, json_incref(json_array_get(v, i)), depth + 1));
	return json_is_object(v) ? coerce_members(w, s, v, depth + 1) : v;
}

json_t *schema_coerce(const json_t *schema, json_t *v, const char *name, struct buf *dropped)
{
	struct validating w = {.root = schema, .args = name[0] == '\0', .dropped = dropped};

	return coerce(&w, schema, v, 0);
}

json_t *schema_example(const json_t *schema)
{
	const json_t *type = json_object_get(schema, "type"), *list, *one, *of;
	const char *word = json_string_value(json_is_array(type) ? json_array_get(type, 0) : type);
	json_t *v = json_array_get(json_object_get(schema, "enum"), 0);
	size_t i;

	if (word == NULL)
		word = json_object_get(schema, "properties") != NULL ? "object" : "string";
	if (v != NULL)
		return json_deep_copy(v);
	if (strcmp(word, "array") == 0)
		return json_pack("[o]", schema_example(json_object_get(schema, "items")));
	if (strcmp(word, "boolean") == 0)
		return json_true();
	if (strcmp(word, "object") != 0)
		return word[0] == 's' ? json_string("…") : json_integer(1);
	v = json_object();
	list = json_object_get(schema, "required");
	json_array_foreach(list, i, one)
	{
		of = json_object_get(json_object_get(schema, "properties"), json_string_value(one));
		json_object_set_new(v, json_string_value(one), schema_example(of));
	}
	return v;
}

/* ---- the schema itself */

/* The known keywords: a schema under which every schema must fit. */
#define ANY     ":true,"
#define ONE     ":{\"$ref\":\"#\"},"
#define SOME    ":{\"$ref\":\"#/$defs/schemas\"},"
#define NAMED   ":{\"$ref\":\"#/$defs/named\"},"
#define NUMBER  ":{\"type\":\"number\"},"
#define COUNT   ":{\"type\":\"integer\",\"minimum\":0},"
#define LIST_OF "{\"type\":\"array\",\"minItems\":1,\"items\":"

static const char known[] =
	"{\"type\":[\"object\",\"boolean\"],\"properties\":{"
	"\"type\":{\"anyOf\":[{\"$ref\":\"#/$defs/type\"}," LIST_OF
	"{\"$ref\":\"#/$defs/type\"}}]},"
	"\"enum\":" LIST_OF "true},"
	"\"const\"" ANY "\"minimum\"" NUMBER "\"maximum\"" NUMBER "\"exclusiveMinimum\"" NUMBER
	"\"exclusiveMaximum\"" NUMBER "\"multipleOf\":{\"type\":\"number\",\"exclusiveMinimum\":0},"
	"\"minLength\"" COUNT "\"maxLength\"" COUNT "\"minItems\"" COUNT "\"maxItems\"" COUNT
	"\"minProperties\"" COUNT "\"maxProperties\"" COUNT
	"\"uniqueItems\":{\"type\":\"boolean\"},"
	"\"items\"" ONE "\"prefixItems\"" SOME "\"contains\"" ONE "\"properties\"" NAMED
	"\"required\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
	"\"additionalProperties\"" ONE "\"propertyNames\"" ONE "\"allOf\"" SOME "\"anyOf\"" SOME
	"\"oneOf\"" SOME "\"not\"" ONE "\"$defs\"" NAMED "\"$ref\"" ANY
	/* Annotations: allowed, not checked. */
	"\"$schema\"" ANY "\"$id\"" ANY "\"$comment\"" ANY "\"title\"" ANY "\"description\"" ANY
	"\"default\"" ANY "\"examples\"" ANY "\"format\"" ANY "\"deprecated\"" ANY
	"\"readOnly\"" ANY "\"writeOnly\":true},"
	"\"additionalProperties\":false,\"$defs\":{"
	"\"type\":{\"enum\":[\"null\",\"boolean\",\"object\",\"array\",\"number\",\"string\","
	"\"integer\"]},"
	"\"schemas\":" LIST_OF "{\"$ref\":\"#\"}},"
	"\"named\":{\"type\":\"object\",\"additionalProperties\":{\"$ref\":\"#\"}}}}";

/* Check the references, which the schema of schemas cannot judge, and the depth. */
static int check_refs(const json_t *root, const json_t *s, const struct where *at, int depth,
		      struct ava_error *err)
{
	static const char inner[] = " items contains additionalProperties propertyNames not "
				    "prefixItems allOf anyOf oneOf properties $defs ";
	const json_t *to = json_object_get(s, "$ref");
	const char *key, *name, *what = "leads nowhere: it may be # or #/$defs/NAME";
	char word[NAME_CHARS];
	struct where in, deep;
	json_t *v, *one;
	size_t i;
	int rv = 0, n = 0;

	if (depth > SCHEMA_DEPTH_MAX)
		return err_set(err, AVA_EINVAL, "schema: %s is nested too deep", at->text);
	for (const json_t *of; to != NULL; to = json_object_get(of, "$ref")) {
		of = find_ref(root, to);
		if (of != NULL && n++ < SCHEMA_DEPTH_MAX)
			continue;
		where_add(&in, at, ".", "$ref");
		return err_set(err, AVA_EINVAL, "schema: %s %s", in.text,
			       of == NULL ? what : "leads in a circle");
	}
	json_object_foreach((json_t *)s, key, v)
	{
		bool named = strcmp(key, "properties") == 0 || strcmp(key, "$defs") == 0;

		snprintf(word, sizeof(word), " %s ", key);
		if (strstr(inner, word) == NULL || rv != 0)
			continue;
		where_add(&in, at, ".", key);
		if (!json_is_array(v) && !named)
			rv = check_refs(root, v, &in, depth + 1, err);
		json_array_foreach(v, i, one)
		{
			where_index(&deep, &in, i);
			rv = rv == 0 ? check_refs(root, one, &deep, depth + 1, err) : rv;
		}
		json_object_foreach(named ? v : NULL, name, one)
		{
			where_add(&deep, &in, ".", name);
			rv = rv == 0 ? check_refs(root, one, &deep, depth + 1, err) : rv;
		}
	}
	return rv;
}

int schema_check(const json_t *schema, struct ava_error *err)
{
	json_t *meta = json_parse(known, sizeof(known) - 1, NULL);
	struct validating w = {.root = meta, .meta = true};
	struct where top = {"$"};
	struct buf text, out;
	int rv;

	buf_init(&text, SCHEMA_BYTES_MAX);
	buf_init(&out, 4096);
	w.out = &out;
	rv = json_dump(&text, schema);
	if (meta == NULL || rv == AVA_ENOMEM)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	else if (rv != 0)
		rv = err_set(err, AVA_EINVAL, "schema: it is too big, at most %d bytes are taken",
			     SCHEMA_BYTES_MAX);
	else if (!json_is_object(schema))
		rv = err_set(err, AVA_EINVAL, "schema: it must be an object");
	else
		schema_apply(&w, meta, schema, &top, 0);
	if (rv == 0 && w.errors > 0)
		rv = err_set(err, AVA_EINVAL, "schema: %.*s",
			     out.data != NULL ? (int)strcspn(out.data, "\n") : 0,
			     out.data != NULL ? out.data : "");
	else if (rv == 0 && w.too_much)
		rv = err_set(err, AVA_EINVAL, "schema: $ is nested too deep");
	else if (rv == 0)
		rv = check_refs(schema, schema, &top, 0, err);
	buf_fini(&text);
	buf_fini(&out);
	json_decref(meta);
	return rv;
}

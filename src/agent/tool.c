/* Arguments of a call against the tool's schema, for the sentence the model
 * reads when they are wrong: it names the place and what belongs there.
 *
 * The keywords are those of tool.h, with minItems, maxItems and
 * additionalProperties; others are not looked at. An object schema that has
 * `properties` takes no other ones unless it says so, one without takes any.
 * Names from the model are cut and escaped before they are quoted.
 *
 * Fails with AVA_EINVAL (the arguments) or AVA_ECORRUPT (our own schema). */
#include "agent/tool.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ava.h>
#include "base/error.h"
#include "codec/json.h"
#include "codec/utf8.h"

#define MAX_DEPTH      32
#define NAME_CHARS     40
#define PATH_MAX_BYTES 200

/* Where we are, as the model reads it: "lines.start", "files[2]"; "" at the top. */
struct place {
	char text[PATH_MAX_BYTES];
	unsigned depth;
	struct ava_error *err;
};

static int check(const json_t *schema, const json_t *v, const struct place *at);

/* `name` in quotes, cut, printable. */
static const char *quoted(char *out, size_t size, const char *name)
{
	struct buf b;
	size_t len = strlen(name), keep = utf8_prefix(name, len, NAME_CHARS);

	buf_init(&b, size - 1);
	json_escape(&b, name, keep);
	snprintf(out, size, "%s", buf_check(&b) == 0 ? b.data : "\"?\"");
	buf_fini(&b);
	return out;
}

static const char *place_text(const struct place *at)
{
	return at->text[0] != '\0' ? at->text : "the arguments";
}

static void place_key(struct place *to, const struct place *from, const char *key)
{
	char name[300];
	size_t len;

	quoted(name, sizeof(name), key);
	len = strlen(name);
	*to = *from;
	/* Without the quotes; what does not fit is cut, it only is a hint. */
	snprintf(to->text, sizeof(to->text), "%.*s%s%.*s", PATH_MAX_BYTES / 2, from->text,
		 from->text[0] != '\0' ? "." : "", (int)(len - 2), name + 1);
	to->depth++;
}

static void place_index(struct place *to, const struct place *from, size_t i)
{
	*to = *from;
	snprintf(to->text, sizeof(to->text), "%.*s[%zu]", PATH_MAX_BYTES / 2, from->text, i);
	to->depth++;
}

static bool has_type(const char *type, const json_t *v)
{
	return strcmp(type, json_type_name(v)) == 0 ||
	       (strcmp(type, "number") == 0 && json_is_integer(v));
}

static int check_type(const json_t *want, const json_t *v, const struct place *at)
{
	char list[128] = "";
	size_t i, len;
	json_t *one;

	if (json_is_string(want)) {
		if (has_type(json_string_value(want), v))
			return 0;
		snprintf(list, sizeof(list), "%s", json_string_value(want));
	}
	json_array_foreach(want, i, one)
	{
		const char *type = json_is_string(one) ? json_string_value(one) : "";

		if (has_type(type, v))
			return 0;
		len = strlen(list);
		snprintf(list + len, sizeof(list) - len, "%s%s", i > 0 ? " or " : "", type);
	}
	return err_set(at->err, AVA_EINVAL, "%s must be of type %s, not %s", place_text(at), list,
		       json_type_name(v));
}

static int check_enum(const json_t *values, const json_t *v, const struct place *at)
{
	struct buf list;
	json_t *one;
	size_t i;

	json_array_foreach(values, i, one) if (json_equal(one, v)) return 0;
	buf_init(&list, 300);
	json_array_foreach(values, i, one)
	{
		if (i > 0)
			buf_adds(&list, ", ");
		json_dump(&list, one);
	}
	err_set(at->err, AVA_EINVAL, "%s must be one of: %s", place_text(at),
		list.data != NULL ? list.data : "");
	buf_fini(&list);
	return AVA_EINVAL;
}

static int check_number(const json_t *schema, const json_t *v, const struct place *at)
{
	const json_t *least = json_object_get(schema, "minimum");
	const json_t *most = json_object_get(schema, "maximum");

	if (json_is_number(least) && json_number_value(v) < json_number_value(least))
		return err_set(at->err, AVA_EINVAL, "%s must be at least %.15g", place_text(at),
			       json_number_value(least));
	if (json_is_number(most) && json_number_value(v) > json_number_value(most))
		return err_set(at->err, AVA_EINVAL, "%s must be at most %.15g", place_text(at),
			       json_number_value(most));
	return 0;
}

/* `count` characters or items between the two keywords. */
static int check_size(const json_t *schema, const char *least_key, const char *most_key,
		      size_t count, const char *unit, const struct place *at)
{
	int64_t least = json_get_int(schema, least_key, 0);
	int64_t most = json_get_int(schema, most_key, INT64_MAX);

	if ((int64_t)count < least)
		return err_set(at->err, AVA_EINVAL,
			       "%s must have at least %" PRId64 " %s, it has %zu", place_text(at),
			       least, unit, count);
	if ((int64_t)count > most)
		return err_set(at->err, AVA_EINVAL,
			       "%s must have at most %" PRId64 " %s, it has %zu", place_text(at),
			       most, unit, count);
	return 0;
}

static int check_array(const json_t *schema, const json_t *v, const struct place *at)
{
	const json_t *items = json_object_get(schema, "items");
	struct place in;
	json_t *one;
	size_t i;
	int rv;

	rv = check_size(schema, "minItems", "maxItems", json_array_size(v), "items", at);
	if (!json_is_object(items))
		return rv;
	json_array_foreach(v, i, one)
	{
		if (rv != 0)
			return rv;
		place_index(&in, at, i);
		rv = check(items, one, &in);
	}
	return rv;
}

static int unknown_property(const json_t *properties, const char *key, const struct place *at)
{
	char name[300];
	struct buf list;
	const char *known;
	json_t *one;

	buf_init(&list, 250);
	json_object_foreach((json_t *)properties, known, one)
		buf_addf(&list, "%s%s", list.len > 0 ? ", " : "", known);
	err_set(at->err, AVA_EINVAL, "%s is not a property of %s; these are: %s",
		quoted(name, sizeof(name), key), place_text(at), list.len > 0 ? list.data : "none");
	buf_fini(&list);
	return AVA_EINVAL;
}

static int check_object(const json_t *schema, const json_t *v, const struct place *at)
{
	const json_t *properties = json_object_get(schema, "properties");
	const json_t *more = json_object_get(schema, "additionalProperties");
	const char *key;
	struct place in;
	json_t *one;
	size_t i;
	int rv = 0;

	json_array_foreach(json_object_get(schema, "required"), i, one)
	{
		key = json_is_string(one) ? json_string_value(one) : "";
		place_key(&in, at, key);
		if (json_object_get(v, key) == NULL)
			return err_set(at->err, AVA_EINVAL, "%s is required", in.text);
	}
	json_object_foreach((json_t *)v, key, one)
	{
		const json_t *schema_of = json_object_get(properties, key);

		if (schema_of == NULL && json_is_object(more))
			schema_of = more;
		if (schema_of == NULL && !json_is_true(more) &&
		    (properties != NULL || json_is_false(more)))
			return unknown_property(properties, key, at);
		place_key(&in, at, key);
		if (schema_of != NULL)
			rv = check(schema_of, one, &in);
		if (rv != 0)
			return rv;
	}
	return 0;
}

static int check(const json_t *schema, const json_t *v, const struct place *at)
{
	const json_t *type = json_object_get(schema, "type");
	const json_t *values = json_object_get(schema, "enum");
	int rv = 0;

	if (at->depth > MAX_DEPTH)
		return err_set(at->err, AVA_EINVAL, "%s is nested too deep", place_text(at));
	if (type != NULL)
		rv = check_type(type, v, at);
	if (rv == 0 && json_is_array(values))
		rv = check_enum(values, v, at);
	if (rv != 0)
		return rv;
	if (json_is_number(v))
		return check_number(schema, v, at);
	if (json_is_string(v))
		return check_size(schema, "minLength", "maxLength",
				  utf8_count(json_string_value(v), json_string_length(v)),
				  "characters", at);
	if (json_is_array(v))
		return check_array(schema, v, at);
	return json_is_object(v) ? check_object(schema, v, at) : 0;
}

/* The schemas that were read last, by their text: reading one costs ten times
 * the check. A thread's own, so that nobody waits for it, and freed with it. */
#define KNOWN_MAX 16u
static _Thread_local struct known_schema {
	char *text;
	json_t *schema;
} known[KNOWN_MAX];
static pthread_once_t known_once = PTHREAD_ONCE_INIT;
static pthread_key_t known_key;
static bool known_has_key;

static void known_free(void *of_thread)
{
	struct known_schema *k = of_thread;

	for (unsigned i = 0; i < KNOWN_MAX; i++) {
		free(k[i].text);
		json_decref(k[i].schema);
		k[i] = (struct known_schema){.text = NULL};
	}
}

static void known_make_key(void)
{
	known_has_key = pthread_key_create(&known_key, known_free) == 0;
}

/* NULL: no object, or no memory. A new reference. */
static json_t *read_schema(const char *text)
{
	static _Thread_local unsigned next;
	json_t *schema;
	char *copy;

	for (unsigned i = 0; i < KNOWN_MAX; i++)
		if (known[i].text != NULL && strcmp(known[i].text, text) == 0)
			return json_incref(known[i].schema);
	schema = json_parse(text, strlen(text), NULL);
	copy = json_is_object(schema) ? strdup(text) : NULL;
	if (copy == NULL) {
		json_decref(schema);
		return NULL;
	}
	free(known[next].text);
	json_decref(known[next].schema);
	known[next].text = copy;
	known[next].schema = schema;
	next = (next + 1) % KNOWN_MAX;
	pthread_once(&known_once, known_make_key);
	if (known_has_key)
		pthread_setspecific(known_key, known);
	return json_incref(schema);
}

void tool_hash(const struct tool *t, char out[HASH_HEX_LEN + 1])
{
	struct hash_sha256 h;

	hash_sha256_init(&h);
	hash_sha256_add(&h, t->name, strlen(t->name) + 1);
	hash_sha256_add(&h, t->description, strlen(t->description) + 1);
	hash_sha256_with(&h, t->schema, strlen(t->schema), out);
}

int tool_check_args(const char *schema, const json_t *args, struct ava_error *err)
{
	struct place top = {.err = err};
	json_t *s;
	int rv;

	if (!json_is_object(args))
		return err_set(err, AVA_EINVAL, "the arguments must be a JSON object");
	s = read_schema(schema);
	if (s == NULL)
		return err_set(err, AVA_ECORRUPT, "the tool's schema is not a JSON object");
	rv = check(s, args, &top);
	json_decref(s);
	return rv;
}

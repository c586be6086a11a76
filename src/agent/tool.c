/* Checks a call's arguments against its tool's schema, and identifies definitions.
 *
 * The sentence that the model reads names the first misfit and what belongs there. Fails with
 * AVA_EINVAL (the arguments), AVA_ECORRUPT (our own schema). */
#include "agent/tool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <ava.h>
#include "agent/turn.h"
#include "base/error.h"
#include "codec/json.h"
#include "codec/schema.h"

/* The schemas read last, by their text: reading one costs ten times the check. They stay until
 * the program ends. */
#define KNOWN_MAX 16u

/* NULL: not an object, or no memory. A new reference. */
static json_t *read_schema(const char *text)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct {
		char *text;
		json_t *schema;
	} known[KNOWN_MAX];
	static unsigned next;
	json_t *schema = NULL;
	char *copy;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < KNOWN_MAX && schema == NULL; i++)
		if (known[i].text != NULL && strcmp(known[i].text, text) == 0)
			schema = json_incref(known[i].schema);
	if (schema == NULL) {
		schema = json_parse(text, strlen(text), NULL);
		copy = json_is_object(schema) ? strdup(text) : NULL;
		if (copy != NULL) {
			free(known[next].text);
			json_decref(known[next].schema);
			known[next].text = copy;
			known[next].schema = json_incref(schema);
			next = (next + 1) % KNOWN_MAX;
		}
	}
	pthread_mutex_unlock(&lock);
	return schema;
}

/* ---- definitions as models see them */

/* Length up to the end of the first sentence. */
static size_t brief_len(const char *text)
{
	const char *end = strstr(text, ". ");

	return end != NULL ? (size_t)(end - text) + 1 : strlen(text);
}

static bool brief_shows(const char *only, const json_t *required, const char *name)
{
	size_t i, n = strlen(name);
	const json_t *v;

	json_array_foreach(required, i, v) if (strcmp(json_string_value(v), name) == 0) return true;
	for (const char *at = only; at != NULL && (at = strstr(at, name)) != NULL; at += n)
		if ((at == only || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
			return true;
	return only == NULL;
}

/* Shorten a schema; form and meaning stay, a bound is told when a call exceeds it. */
static void brief_schema(json_t *schema, const char *only)
{
	static const char *const bounds[] = {
		"minLength", "maxLength", "minimum", "maximum",  "minItems",
		"maxItems",  "default",   "title",   "examples", "additionalProperties"};
	const char *said = json_get_str(schema, "description"), *name;
	json_t *properties = json_object_get(schema, "properties"), *v;
	void *tmp;

	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
		(void)json_object_del(schema, bounds[i]);
	if (said != NULL)
		json_object_set_new(schema, "description", json_stringn(said, brief_len(said)));
	json_object_foreach_safe(properties, tmp, name, v)
	{
		if (brief_shows(only, json_object_get(schema, "required"), name))
			brief_schema(v, NULL);
		else
			(void)json_object_del(properties, name);
	}
	v = json_object_get(schema, "items");
	if (json_is_object(v))
		brief_schema(v, NULL);
}

void tool_write(struct jw *w, const struct tool *t, const char *key, bool brief)
{
	json_t *known = brief ? read_schema(t->schema) : NULL, *schema = json_deep_copy(known);
	struct buf text;

	buf_init(&text, SCHEMA_BYTES_MAX);
	if (schema != NULL)
		brief_schema(schema, t->brief);
	brief = schema != NULL && json_dump(&text, schema) == 0; /* false: show the schema whole */
	jw_str(w, "name", t->name);
	if (brief) {
		jw_strn(w, "description", t->description, brief_len(t->description));
		jw_raw(w, key, text.data, text.len);
	} else {
		jw_str(w, "description", t->description);
		jw_raw(w, key, t->schema, strlen(t->schema));
	}
	buf_fini(&text);
	json_decref(schema);
	json_decref(known);
}

/* Describe the misfit in a sentence, with a call that would fit. */
static int tell_misfit(const json_t *schema, const char *why, size_t len, struct ava_error *err)
{
	json_t *example = schema_example(schema);
	struct buf text;
	int rv = AVA_ENOMEM;

	buf_init(&text, 4096);
	if (example != NULL && json_dump(&text, example) == 0)
		rv = err_set(err, AVA_EINVAL, "%.*s. A call that fits: %.*s", (int)len, why,
			     (int)text.len, text.data);
	buf_fini(&text);
	json_decref(example);
	return rv;
}

json_t *tool_example(const struct tool *t)
{
	json_t *s = read_schema(t->schema), *v;

	v = json_pack("{s:s, s:o}", "name", t->name, "arguments", schema_example(s));
	json_decref(s);
	return v;
}

int tool_tell_misfit(const struct tool *t, const char *why, struct ava_error *err)
{
	json_t *s = read_schema(t->schema);
	int rv = tell_misfit(s, why, strlen(why), err);

	json_decref(s);
	return rv == AVA_ENOMEM ? rv : 0;
}

int tool_fit_args(const struct tool *t, json_t **args, struct buf *dropped, struct ava_error *err)
{
	bool mcp = t->flags & TOOL_MCP; /* an MCP server may take arguments that do not fit */
	json_t *s = read_schema(t->schema), *fitted = NULL;
	const char *name = mcp ? "arguments" : "";
	struct buf out;
	int rv;

	buf_init(&out, 8192);
	rv = json_is_object(s) ? schema_validate(s, *args, name, &out) : AVA_ECORRUPT;
	if (rv > 0) {
		fitted = json_deep_copy(*args);
		schema_rename(s, fitted);
		if (t->mend != NULL)
			t->mend(fitted);
		fitted = schema_coerce(s, fitted, name, dropped);
		buf_reset(&out);
		rv = fitted == NULL ? AVA_ENOMEM
		     : reply_shallow(fitted, REPLY_DEPTH_MAX)
			     ? schema_validate(s, fitted, name, &out)
			     : AVA_ETOOBIG;
	}
	if (fitted != NULL && (rv == 0 || (rv > 0 && t->mend != NULL))) {
		json_decref(*args);
		*args = json_incref(fitted);
	}
	if (rv != 0 && rv != AVA_ENOMEM && rv != AVA_ECORRUPT && !mcp) /* one fault at a time */
		rv = tell_misfit(s, out.data, out.len > 0 ? strcspn(out.data, "\n") : 0, err);
	buf_fini(&out);
	json_decref(fitted);
	json_decref(s);
	return rv > 0 || (mcp && rv == AVA_ETOOBIG) ? 0 : rv;
}

int tool_take_args(struct turn_call *c, struct arena *mem, struct buf *dropped,
		   struct ava_error *err)
{
	json_t *given = c->args != NULL ? json_parse(c->args, c->args_len, err) : NULL;
	json_t *args = json_incref(given);
	struct buf text;
	int rv = 0;

	buf_init(&text, TURN_MAX_BYTES);
	if (json_is_object(given) && reply_shallow(given, REPLY_DEPTH_MAX)) {
		rv = c->tool != NULL ? tool_fit_args(c->tool, &args, dropped, err) : 0;
		if (args != given && json_dump(&text, args) == 0) {
			c->args = arena_copy(mem, text.data, text.len);
			c->args_len = text.len;
		}
	} else { /* later readers must not take these bytes for JSON */
		rv = err->code != 0 ? err->code
				    : err_set(err, AVA_EINVAL, "%s",
					      c->args_error != NULL ? c->args_error
								    : "they are no JSON object, or "
								      "one of too much depth");
		c->args = NULL;
	}
	if (buf_check(&text) != 0 || (json_is_object(args) && c->args == NULL && rv == 0))
		rv = AVA_ENOMEM;
	buf_fini(&text);
	json_decref(given);
	json_decref(args);
	return rv;
}

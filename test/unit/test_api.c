/* doc/api.yaml and the routes agree in both directions: every path and method,
 * every query argument and header, every key of a body. What a route takes is
 * what it says when it is given something else. */
#include "gateway_rig.h"

#include "ava/verbs.h"

#include "codec/yaml.h"

static struct yaml *doc;

static int set_up(void **state)
{
	struct ava_error err = {0};
	size_t len;
	char *text = unit_read_src("doc/api.yaml", &len);

	if (yaml_parse(&doc, "api.yaml", text, len, &err) != 0)
		fail_msg("%s", err.text);
	free(text);
	return rig_set_up(state);
}

static int tear_down(void **state)
{
	yaml_free(doc);
	return rig_tear_down(state);
}

/* ---- what is written, what is there */

static const char *const methods[] = {"get", "post", "put", "patch", "delete", "head"};

static const struct yaml_node *described(const char *path, const char *method)
{
	const struct yaml_node *paths = yaml_get(yaml_root(doc), "paths");
	char lower[16];
	size_t i;

	for (i = 0; method[i]; i++)
		lower[i] = (char)(method[i] | 32);
	lower[i] = 0;
	return yaml_get(yaml_get(paths, path), lower);
}

static bool routed(const char *path, const char *method)
{
	const struct verb *v;

	for (size_t i = 0; (v = verbs_row(i)); i++)
		if (strcmp(v->path, path) == 0 && strcasecmp(v->method, method) == 0)
			return true;
	return false;
}

TEST(paths)
{
	const struct yaml_node *paths = yaml_get(yaml_root(doc), "paths");
	const struct verb *v;
	unsigned rows = 0, written = 0;

	for (size_t i = 0; (v = verbs_row(i)); i++, rows++)
		if (!described(v->path, v->method))
			fail_msg("doc/api.yaml does not describe %s %s", v->method, v->path);
	assert_non_null(paths);
	for (const struct yaml_node *p = paths->first; p; p = p->next)
		for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
			if (!yaml_get(p, methods[i]))
				continue;
			written++;
			if (!routed(p->key, methods[i]))
				fail_msg("doc/api.yaml: there is no route %s %s", methods[i],
					 p->key);
		}
	assert_int_equal(written, rows);
}

/* ---- names */

struct names {
	char text[512]; /* ", a, b" */
};

static void names_add(struct names *n, const char *name)
{
	size_t len = strlen(n->text);

	snprintf(n->text + len, sizeof(n->text) - len, ", %s", name);
}

static bool names_has(const struct names *n, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = n->text; (at = strstr(at, name)); at += len)
		if (at[-1] == ' ' && (at[len] == ',' || at[len] == '\0'))
			return true;
	return false;
}

/* Each of `a` is in `b`. */
static void assert_in(const struct names *a, const struct names *b, const char *where,
		      const char *what)
{
	char copy[sizeof(a->text)], *save = NULL;

	memcpy(copy, a->text, sizeof(copy));
	for (char *n = strtok_r(copy, ", ", &save); n; n = strtok_r(NULL, ", ", &save))
		if (!names_has(b, n))
			fail_msg("%s: %s %s", where, n, what);
}

static void assert_same(const struct names *written, const struct names *taken, const char *where)
{
	assert_in(written, taken, where, "is described, and not taken");
	assert_in(taken, written, where, "is taken, and not described in doc/api.yaml");
}

/* What stands behind `before` in the error that the request gets. */
static struct names told(const char *method, const char *path, const char *body, const char *before)
{
	json_auto_t *v = rig_ask(method, path, body, 400);
	const char *text = json_get_str(json_object_get(v, "error"), "message");
	const char *at = text ? strstr(text, before) : NULL;
	struct names n = {""};

	if (!at)
		fail_msg("%s %s: %s", method, path, text);
	if (strcmp(at + strlen(before), "none") != 0)
		names_add(&n, at + strlen(before));
	return n;
}

/* The path with an id of the right kind in it. */
static const char *with_id(const char *path, const char *query)
{
	static char out[200];
	const char *at = strstr(path, "{id}"),
		   *id = strstr(path, "/runs") ? "S-000000" : "P-000000";

	if (at)
		snprintf(out, sizeof(out), "%.*s%s%s%s", (int)(at - path), path, id, at + 4, query);
	else
		snprintf(out, sizeof(out), "%s%s", path, query);
	return out;
}

TEST(arguments)
{
	const struct verb *v;

	for (size_t i = 0; (v = verbs_row(i)); i++) {
		const struct yaml_node *list =
			yaml_get(described(v->path, v->method), "parameters");
		struct names query = {""}, header = {""}, fields = {""}, takes;

		for (const struct yaml_node *p = list ? list->first : NULL; p; p = p->next)
			names_add(strcmp(yaml_get(p, "in")->text, "query") == 0 ? &query : &header,
				  yaml_get(p, "name")->text);
		takes = told(v->method, with_id(v->path, "?nope=1"), NULL, "this path takes ");
		assert_same(&query, &takes, v->path);
		/* A browser that reconnects says in a field where it was. */
		if (names_has(&takes, "after") && strstr(v->path, "/events"))
			names_add(&fields, "Last-Event-ID");
		assert_same(&header, &fields, v->path);
	}
}

TEST(bodies)
{
	const struct verb *v;

	for (size_t i = 0; (v = verbs_row(i)); i++) {
		const struct yaml_node *body = yaml_get(described(v->path, v->method),
							"requestBody"),
				       *schema, *properties, *extra;
		struct names written = {""}, takes;

		if (strcmp(v->method, "POST") != 0 || v->raw) {
			assert_true(v->raw == (body != NULL)); /* a raw one takes any */
			continue;
		}
		schema =
			yaml_get(yaml_get(yaml_get(body, "content"), "application/json"), "schema");
		properties = yaml_get(schema, "properties");
		extra = yaml_get(schema, "additionalProperties");
		if (!properties || !extra || strcmp(extra->text, "false") != 0)
			fail_msg("doc/api.yaml does not describe the body of %s", v->path);
		for (const struct yaml_node *p = properties->first; p; p = p->next)
			names_add(&written, p->key);
		takes = told(v->method, with_id(v->path, ""), "{\"nope\":1}",
			     "in the request: it takes ");
		assert_same(&written, &takes, v->path);
	}
}

/* A value of another type than the one that is written down is refused. */
TEST(types)
{
	static const struct {
		const char *type, *wrong;
	} types[] = {{"string", "1"},      {"number", "\"1\""}, {"integer", "\"1\""},
		     {"boolean", "\"x\""}, {"array", "{}"},     {"one of several", "true"}};
	const struct verb *v;
	unsigned tried = 0;

	for (size_t i = 0; (v = verbs_row(i)); i++) {
		const struct yaml_node *schema = yaml_get(
			yaml_get(yaml_get(yaml_get(described(v->path, v->method), "requestBody"),
					  "content"),
				 "application/json"),
			"schema");
		const struct yaml_node *keys = yaml_get(schema, "properties");

		for (const struct yaml_node *p = keys ? keys->first : NULL; p; p = p->next) {
			const struct yaml_node *type = yaml_get(p, "type");
			const char *name = !type        ? "string" /* enum */
					   : type->text ? type->text
							: "one of several";
			char body[200];

			for (size_t k = 0; k < ARRAY_LEN(types); k++) {
				if (strcmp(types[k].type, name) != 0)
					continue;
				snprintf(body, sizeof(body), "{\"%s\":%s}", p->key, types[k].wrong);
				told(v->method, with_id(v->path, ""), body, " must be ");
				tried++;
			}
		}
	}
	assert_true(tried >= 20);
}

UNIT_GROUP(.before = set_up, .after = tear_down);

/* Any bytes as YAML: an error is one line with the name of the file; a tree is
 * within its limits, its scalars are text, its keys stand once, and reading
 * the same bytes again gives the same tree. */
#include "fuzz.h"

#include <stdbool.h>

#include "base/error.h"
#include "codec/yaml.h"

static unsigned check_node(const struct yaml *y, const struct yaml_node *n, unsigned depth)
{
	unsigned weight = 1;
	struct ava_error err = {0};
	const char *s;
	int64_t number;

	CHECK(depth <= YAML_DEPTH_MAX && n->line > 0);
	if (yaml_int(y, n, -1000, 1000, &number, &err) == 0)
		CHECK(number >= -1000 && number <= 1000);
	else
		CHECK(err.code == AVA_EINVAL && strchr(err.text, '\n') == NULL);
	if (yaml_string(y, n, 100, &s, NULL) == 0)
		CHECK(strlen(s) <= 100 && s[0] != 0);
	if (n->kind == YAML_SCALAR) {
		CHECK(n->first == NULL && strlen(n->text) == n->len);
		return 1;
	}
	for (const struct yaml_node *c = n->first; c; c = c->next) {
		CHECK((c->key != NULL) == (n->kind == YAML_MAP));
		if (c->key)
			CHECK(yaml_get(n, c->key) == c);
		weight += check_node(y, c, depth + 1);
	}
	return weight;
}

static bool same(const struct yaml_node *a, const struct yaml_node *b)
{
	const struct yaml_node *d = b->first;

	if (a->kind != b->kind || a->line != b->line || a->len != b->len)
		return false;
	if (a->kind == YAML_SCALAR)
		return memcmp(a->text, b->text, a->len) == 0;
	for (const struct yaml_node *c = a->first; c; c = c->next, d = d->next)
		if (!d || !same(c, d))
			return false;
	return d == NULL;
}

FUZZ_TARGET(yaml, len)
{
	struct ava_error err = {0};
	struct yaml *y, *again;

	if (yaml_parse(&y, "f", (const char *)data, len, &err) != 0) {
		CHECK(y == NULL && err.code < 0 && strncmp(err.text, "f:", 2) == 0);
		CHECK(strchr(err.text, '\n') == NULL);
		return;
	}
	CHECK(check_node(y, yaml_root(y), 0) <= YAML_NODES_MAX);
	CHECK(yaml_parse(&again, "f", (const char *)data, len, NULL) == 0);
	CHECK(same(yaml_root(y), yaml_root(again)));
	yaml_free(y);
	yaml_free(again);
}

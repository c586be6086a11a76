/* Strict YAML over libyaml's documents; see yaml.h.
 *
 * Happy path: libyaml composes the document, its nodes become ours, from the root down, in one
 * arena. A node with aliases is copied to each place, and counts there, so a few lines cannot
 * stand for millions of nodes: the walk ends at YAML_NODES_MAX and YAML_DEPTH_MAX. What can
 * fail: every mistake a person can make, reported with its line. */
#include "codec/yaml.h"

#include <ava.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/util.h"

#define MEMORY_MAX (8u << 20)
#define KEY_MAX    256

struct yaml {
	struct arena mem;
	const char *name;
	const struct yaml_node *root;
};

struct yaml_reader {
	struct yaml *y;
	yaml_parser_t parser;
	yaml_document_t document;
	unsigned nodes;
	struct ava_error *err;
	const char *text; /* the whole text, borrowed */
	size_t len;
};

/* ---- errors */

int yaml_error(const struct yaml *y, unsigned line, int code, struct ava_error *err,
	       const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* A person's text may hold control characters; a sentence is one line. */
	for (char *s = text; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 127)
			*s = '?';
	if (line == 0)
		return err_set(err, code, "%s: %s", y->name, text);
	return err_set(err, code, "%s:%u: %s", y->name, line, text);
}

static int yaml_no_memory(struct yaml_reader *r)
{
	return err_set(r->err, AVA_ENOMEM, "out of memory");
}

static unsigned yaml_line_of(const yaml_node_t *n)
{
	return (unsigned)n->start_mark.line + 1;
}

static int yaml_refuse(struct yaml_reader *r, const yaml_node_t *n, const char *what)
{
	return yaml_error(r->y, yaml_line_of(n), AVA_EINVAL, r->err, "%s", what);
}

/* libyaml's own complaint. */
static int yaml_broken(struct yaml_reader *r)
{
	const yaml_parser_t *p = &r->parser;
	unsigned line = (unsigned)p->problem_mark.line + 1;
	const char *tab = "";

	if (p->error == YAML_MEMORY_ERROR)
		return yaml_no_memory(r);
	if (p->error == YAML_READER_ERROR) {
		line = 1;
		for (size_t i = 0; i < MIN(p->problem_offset, r->len); i++)
			line += r->text[i] == '\n';
		return yaml_error(r->y, line, AVA_EINVAL, r->err,
				  "byte %zu of the file: %s (it must be UTF-8)", p->problem_offset,
				  p->problem ? p->problem : "it cannot be read");
	}
	if (p->problem && strstr(p->problem, "cannot start any token"))
		tab = " (indent with blanks, not tabs, and quote text that begins with @ or `)";
	return yaml_error(r->y, line, AVA_EINVAL, r->err, "this is no YAML: %s%s%s%s",
			  p->problem ? p->problem : "unknown", p->context ? ", " : "",
			  p->context ? p->context : "", tab);
}

/* ---- nodes */

static int yaml_build(struct yaml_reader *r, int number, unsigned depth, struct yaml_node **out);

static int read_key(struct yaml_reader *r, const struct yaml_node *map, const yaml_node_t *key,
		    const char **out)
{
	const char *text = (const char *)key->data.scalar.value;
	size_t len = key->data.scalar.length;

	if (key->type != YAML_SCALAR_NODE)
		return yaml_refuse(r, key, "a key must be plain text");
	if (strcmp((const char *)key->tag, YAML_STR_TAG) != 0)
		return yaml_refuse(r, key, "tags (!…) are not supported");
	if (len == 0 || len > KEY_MAX || memchr(text, '\0', len))
		return yaml_refuse(r, key, "this is no key (1 to 256 bytes of text)");
	for (const struct yaml_node *n = map->first; n; n = n->next)
		if (strcmp(n->key, text) == 0)
			return yaml_error(r->y, yaml_line_of(key), AVA_EINVAL, r->err,
					  "%.80s stands here and in line %u: once only", text,
					  n->key_line);
	*out = arena_copy(&r->y->mem, text, len);
	return *out ? 0 : yaml_no_memory(r);
}

static int build_map(struct yaml_reader *r, const yaml_node_t *from, unsigned depth,
		     struct yaml_node *n)
{
	const struct yaml_node **tail = &n->first;
	int rv = 0;

	for (yaml_node_pair_t *p = from->data.mapping.pairs.start;
	     rv == 0 && p < from->data.mapping.pairs.top; p++) {
		const yaml_node_t *key = yaml_document_get_node(&r->document, p->key);
		struct yaml_node *child;
		const char *name;

		rv = read_key(r, n, key, &name);
		if (rv == 0)
			rv = yaml_build(r, p->value, depth, &child);
		if (rv != 0)
			return rv;
		child->key = name;
		child->key_line = yaml_line_of(key);
		*tail = child;
		tail = &child->next;
	}
	return rv;
}

static int yaml_build_list(struct yaml_reader *r, const yaml_node_t *from, unsigned depth,
			   struct yaml_node *n)
{
	const struct yaml_node **tail = &n->first;

	for (yaml_node_item_t *i = from->data.sequence.items.start;
	     i < from->data.sequence.items.top; i++) {
		struct yaml_node *child;
		int rv = yaml_build(r, *i, depth, &child);

		if (rv != 0)
			return rv;
		*tail = child;
		tail = &child->next;
	}
	return 0;
}

static int build_scalar(struct yaml_reader *r, const yaml_node_t *from, struct yaml_node *n)
{
	const char *text = (const char *)from->data.scalar.value;

	n->plain = from->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	n->len = from->data.scalar.length;
	if (memchr(text, '\0', n->len))
		return yaml_refuse(r, from, "the text holds a NUL");
	n->text = arena_copy(&r->y->mem, text, n->len);
	return n->text ? 0 : yaml_no_memory(r);
}

/* `depth`: number of enclosing containers. */
static int yaml_build(struct yaml_reader *r, int number, unsigned depth, struct yaml_node **out)
{
	static const char *const tags[] = {YAML_STR_TAG, YAML_MAP_TAG, YAML_SEQ_TAG};
	const yaml_node_t *from = yaml_document_get_node(&r->document, number);
	struct yaml_node *n = *out = arena_get(&r->y->mem, sizeof(*n));

	if (!n)
		return yaml_no_memory(r);
	n->line = yaml_line_of(from);
	n->kind = from->type == YAML_SCALAR_NODE    ? YAML_SCALAR
		  : from->type == YAML_MAPPING_NODE ? YAML_MAP
						    : YAML_LIST;
	if (strcmp((const char *)from->tag, tags[n->kind]) != 0)
		return yaml_refuse(r, from, "tags (!…) are not supported");
	if (r->nodes++ == YAML_NODES_MAX)
		return yaml_refuse(r, from,
				   "there are too many values (aliases count as what they name)");
	if (n->kind == YAML_SCALAR)
		return build_scalar(r, from, n);
	if (depth == YAML_DEPTH_MAX)
		return yaml_refuse(r, from,
				   "it is nested too deeply (aliases count as what they name)");
	return n->kind == YAML_MAP ? build_map(r, from, depth + 1, n)
				   : yaml_build_list(r, from, depth + 1, n);
}

/* Read the only allowed document. */
static int yaml_read_all(struct yaml_reader *r)
{
	struct yaml_node *root = NULL;
	int rv = 0;

	if (!yaml_parser_load(&r->parser, &r->document))
		return yaml_broken(r);
	if (yaml_document_get_root_node(&r->document))
		rv = yaml_build(r, 1, 0, &root);
	yaml_document_delete(&r->document);
	if (rv != 0)
		return rv;
	/* A text of comments only, or "null" alone, is an empty mapping. */
	if (!root || yaml_is_null(root)) {
		root = arena_get(&r->y->mem, sizeof(*root));
		if (!root)
			return yaml_no_memory(r);
		*root = (struct yaml_node){.kind = YAML_MAP, .line = 1};
	}
	r->y->root = root;
	if (!yaml_parser_load(&r->parser, &r->document))
		return yaml_broken(r);
	if (yaml_document_get_root_node(&r->document))
		rv = yaml_error(r->y, (unsigned)r->document.start_mark.line + 1, AVA_EINVAL, r->err,
				"a second document begins here: one is all there is");
	yaml_document_delete(&r->document);
	return rv;
}

int yaml_parse(struct yaml **out, const char *name, const char *text, size_t len,
	       struct ava_error *err)
{
	struct yaml_reader r = {.err = err, .text = text, .len = len};
	int rv;

	*out = NULL;
	if (len > YAML_BYTES_MAX)
		return err_set(err, AVA_ETOOBIG, "%s: it is %zu bytes long, %u at the most", name,
			       len, YAML_BYTES_MAX);
	r.y = calloc(1, sizeof(*r.y));
	if (!r.y)
		return yaml_no_memory(&r);
	arena_init(&r.y->mem, MEMORY_MAX);
	r.y->name = arena_copy(&r.y->mem, name, strlen(name));
	if (!r.y->name || !yaml_parser_initialize(&r.parser)) {
		yaml_free(r.y);
		return yaml_no_memory(&r);
	}
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
	rv = yaml_read_all(&r);
	yaml_parser_delete(&r.parser);
	if (rv == 0)
		*out = r.y;
	else
		yaml_free(r.y);
	return rv;
}

void yaml_free(struct yaml *y)
{
	if (!y)
		return;
	arena_fini(&y->mem);
	free(y);
}

const struct yaml_node *yaml_root(const struct yaml *y)
{
	return y->root;
}

/* ---- reading values */

const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key)
{
	if (!map || map->kind != YAML_MAP)
		return NULL;
	for (const struct yaml_node *n = map->first; n; n = n->next)
		if (strcmp(n->key, key) == 0)
			return n;
	return NULL;
}

bool yaml_is_null(const struct yaml_node *n)
{
	static const char *const words[] = {"", "~", "null", "Null", "NULL"};

	if (n->kind != YAML_SCALAR || !n->plain)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(n->text, words[i]) == 0)
			return true;
	return false;
}

const char *yaml_shown(const struct yaml_node *n)
{
	static char text[64];

	if (n->kind == YAML_MAP)
		return n->first ? "a mapping" : "an empty mapping";
	if (n->kind != YAML_SCALAR)
		return n->first ? "a list" : "an empty list";
	if (yaml_is_null(n))
		return "empty";
	snprintf(text, sizeof(text), "\"%.40s%s\"", n->text, n->len > 40 ? "..." : "");
	return text;
}

static const char *yaml_key_of(const struct yaml_node *n)
{
	return n->key ? n->key : "the value";
}

/* Decimal without a plus, an underscore or a leading zero. */
static bool yaml_decimal(const char *s)
{
	if (*s == '-')
		s++;
	if (*s == '0' && s[1] != '\0')
		return false;
	if (*s == '\0')
		return false;
	return s[strspn(s, "0123456789")] == '\0';
}

int yaml_int(const struct yaml *y, const struct yaml_node *n, int64_t min, int64_t max,
	     int64_t *out, struct ava_error *err)
{
	bool good = n->kind == YAML_SCALAR && n->plain && yaml_decimal(n->text);
	long long v = 0;

	if (good) {
		errno = 0;
		v = strtoll(n->text, NULL, 10);
		good = errno == 0 && v >= min && v <= max;
	}
	if (!good)
		return yaml_error(y, n->line, AVA_EINVAL, err,
				  "%.60s is %s; it must be a whole number from %" PRId64
				  " to %" PRId64 "%s",
				  yaml_key_of(n), yaml_shown(n), min, max,
				  n->kind == YAML_SCALAR && !n->plain ? ", without quotes" : "");
	*out = v;
	return 0;
}

int yaml_string(const struct yaml *y, const struct yaml_node *n, size_t max, const char **out,
		struct ava_error *err)
{
	if (n->kind != YAML_SCALAR || n->len == 0 || yaml_is_null(n))
		return yaml_error(y, n->line, AVA_EINVAL, err, "%.60s is %s; it must be text",
				  yaml_key_of(n), yaml_shown(n));
	if (n->len > max)
		return yaml_error(y, n->line, AVA_EINVAL, err,
				  "%.60s is %zu bytes long, %zu at the most", yaml_key_of(n),
				  n->len, max);
	*out = n->text;
	return 0;
}

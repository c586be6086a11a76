/* Strict YAML over libyaml's events; see yaml.h.
 *
 * Happy path: events come one after the other; a stack of open containers
 * (YAML_DEPTH_MAX high) takes each node as the next child of its top, in a
 * mapping the first of two scalars is the key. All memory is one arena. What
 * can fail: everything a person can write, each with its line. Aliases share
 * the node they name; `weight` counts them as if they were written out, so a
 * few lines cannot stand for millions of nodes. */
#include "codec/yaml.h"

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

#define ANCHORS_MAX 64
#define MEMORY_MAX  (8u << 20)
#define KEY_MAX     256

struct yaml {
	struct arena mem;
	const char *name;
	const struct yaml_node *root;
};

struct open_node { /* a container whose end has not come */
	struct yaml_node *node;
	struct yaml_node **tail; /* where its next child goes */
	const char *key;         /* of the value that comes next; NULL: a key comes */
	unsigned key_line, key_column;
};

struct reader {
	struct yaml *y;
	yaml_parser_t parser;
	struct open_node stack[YAML_DEPTH_MAX];
	size_t depth;
	struct {
		const char *name;
		struct yaml_node *node;
	} anchors[ANCHORS_MAX];
	size_t nanchors;
	unsigned nodes;
	struct yaml_node *root;
	struct ava_error *err;
	const char *text; /* all of it, borrowed */
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
	/* What a person wrote may hold anything; a sentence is one line. */
	for (char *s = text; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 127)
			*s = '?';
	if (line == 0)
		return err_set(err, code, "%s: %s", y->name, text);
	return err_set(err, code, "%s:%u: %s", y->name, line, text);
}

static int no_memory(struct reader *r)
{
	return err_set(r->err, AVA_ENOMEM, "out of memory");
}

static int refuse(struct reader *r, const yaml_event_t *e, const char *what)
{
	return yaml_error(r->y, (unsigned)e->start_mark.line + 1, AVA_EINVAL, r->err, "%s", what);
}

static unsigned line_of(const struct reader *r, size_t offset)
{
	unsigned line = 1;

	for (size_t i = 0; i < MIN(offset, r->len); i++)
		line += r->text[i] == '\n';
	return line;
}

/* libyaml's own complaint. */
static int broken(struct reader *r)
{
	const yaml_parser_t *p = &r->parser;
	unsigned line = (unsigned)p->problem_mark.line + 1;
	const char *tab = "";

	if (p->error == YAML_MEMORY_ERROR)
		return no_memory(r);
	if (p->error == YAML_READER_ERROR)
		return yaml_error(r->y, line_of(r, p->problem_offset), AVA_EINVAL, r->err,
				  "byte %zu of the file: %s (it must be UTF-8)", p->problem_offset,
				  p->problem ? p->problem : "it cannot be read");
	if (p->problem && strstr(p->problem, "cannot start any token"))
		tab = " (indent with blanks, not tabs, and quote text that begins with @ or `)";
	return yaml_error(r->y, line, AVA_EINVAL, r->err, "this is no YAML: %s%s%s%s",
			  p->problem ? p->problem : "unknown", p->context ? ", " : "",
			  p->context ? p->context : "", tab);
}

/* ---- nodes */

static void set_end(struct yaml_node *n, const yaml_event_t *e)
{
	n->end_line = (unsigned)e->end_mark.line + 1;
	n->end_column = (unsigned)e->end_mark.column;
}

static struct yaml_node *make(struct reader *r, const yaml_event_t *e, enum yaml_kind kind)
{
	struct yaml_node *n = arena_get(&r->y->mem, sizeof(*n));

	if (!n)
		return NULL;
	n->kind = kind;
	n->line = (unsigned)e->start_mark.line + 1;
	n->column = (unsigned)e->start_mark.column;
	set_end(n, e);
	n->weight = 1;
	return n;
}

/* Count `n` into everything that is open. */
static int weigh(struct reader *r, const struct yaml_node *n, const yaml_event_t *e)
{
	if (n->weight > YAML_NODES_MAX - MIN(r->nodes, YAML_NODES_MAX))
		return refuse(r, e, "there are too many values (aliases count as what they name)");
	if (r->depth + n->height > YAML_DEPTH_MAX)
		return refuse(r, e, "it is nested too deeply (aliases count as what they name)");
	r->nodes += n->weight;
	for (size_t i = 0; i < r->depth; i++) {
		struct yaml_node *in = r->stack[i].node;

		in->weight += n->weight;
		in->height = MAX(in->height, (unsigned)(r->depth - i) + n->height);
	}
	return 0;
}

static int check_twice(struct reader *r, const yaml_event_t *e, const char *key)
{
	const struct yaml_node *n = r->stack[r->depth - 1].node->first;

	for (; n; n = n->next)
		if (strcmp(n->key, key) == 0)
			return yaml_error(r->y, (unsigned)e->start_mark.line + 1, AVA_EINVAL,
					  r->err, "%.80s stands here and in line %u: once only",
					  key, n->key_line);
	return 0;
}

/* Hang `n` where the next value goes. */
static int attach(struct reader *r, const yaml_event_t *e, struct yaml_node *n)
{
	struct open_node *top = r->depth ? &r->stack[r->depth - 1] : NULL;
	int rv = weigh(r, n, e);

	if (rv != 0)
		return rv;
	if (!top) {
		r->root = n;
		return 0;
	}
	if (top->node->kind == YAML_MAP) {
		if (!top->key)
			return refuse(r, e, "a key must be plain text");
		n->key = top->key;
		n->key_line = top->key_line;
		n->key_column = top->key_column;
		top->key = NULL;
	}
	*top->tail = n;
	top->tail = (struct yaml_node **)&n->next;
	return 0;
}

static int keep_anchor(struct reader *r, const yaml_event_t *e, const yaml_char_t *name,
		       struct yaml_node *n)
{
	const char *copy;

	if (!name)
		return 0;
	if (r->nanchors == ANCHORS_MAX)
		return refuse(r, e, "there are too many anchors");
	copy = arena_copy(&r->y->mem, (const char *)name, strlen((const char *)name));
	if (!copy)
		return no_memory(r);
	r->anchors[r->nanchors].name = copy;
	r->anchors[r->nanchors++].node = n;
	return 0;
}

/* ---- events */

static bool wants_key(const struct reader *r)
{
	const struct open_node *top = r->depth ? &r->stack[r->depth - 1] : NULL;

	return top && top->node->kind == YAML_MAP && !top->key;
}

static int take_key(struct reader *r, const yaml_event_t *e)
{
	struct open_node *top = &r->stack[r->depth - 1];
	const char *text = (const char *)e->data.scalar.value;
	size_t len = e->data.scalar.length;
	int rv;

	if (len == 0 || len > KEY_MAX || memchr(text, '\0', len))
		return refuse(r, e, "this is no key (1 to 256 bytes of text)");
	if (strcmp(text, "<<") == 0)
		return refuse(r, e, "merge keys (<<) are not supported: write the values out");
	rv = check_twice(r, e, text);
	if (rv != 0)
		return rv;
	top->key = arena_copy(&r->y->mem, text, len);
	top->key_line = (unsigned)e->start_mark.line + 1;
	top->key_column = (unsigned)e->start_mark.column;
	return top->key ? 0 : no_memory(r);
}

static int take_scalar(struct reader *r, const yaml_event_t *e)
{
	const char *text = (const char *)e->data.scalar.value;
	size_t len = e->data.scalar.length;
	struct yaml_node *n;
	int rv;

	if (e->data.scalar.tag)
		return refuse(r, e, "tags (!…) are not supported");
	if (wants_key(r))
		return e->data.scalar.anchor ? refuse(r, e, "a key cannot have an anchor")
					     : take_key(r, e);
	if (memchr(text, '\0', len))
		return refuse(r, e, "the text holds a NUL");
	n = make(r, e, YAML_SCALAR);
	if (!n)
		return no_memory(r);
	n->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	n->text = arena_copy(&r->y->mem, text, len);
	n->len = len;
	if (!n->text)
		return no_memory(r);
	rv = attach(r, e, n);
	return rv == 0 ? keep_anchor(r, e, e->data.scalar.anchor, n) : rv;
}

static int take_start(struct reader *r, const yaml_event_t *e, enum yaml_kind kind)
{
	bool map = kind == YAML_MAP;
	const yaml_char_t *tag = map ? e->data.mapping_start.tag : e->data.sequence_start.tag;
	struct yaml_node *n;
	int rv;

	if (tag)
		return refuse(r, e, "tags (!…) are not supported");
	n = make(r, e, kind);
	if (!n)
		return no_memory(r);
	n->height = 1;
	n->flow = map ? e->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE
		      : e->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
	rv = attach(r, e, n);
	if (rv == 0)
		rv = keep_anchor(r, e,
				 map ? e->data.mapping_start.anchor : e->data.sequence_start.anchor,
				 n);
	r->stack[r->depth++] =
		(struct open_node){.node = n, .tail = (struct yaml_node **)&n->first};
	return rv;
}

static int take_alias(struct reader *r, const yaml_event_t *e)
{
	struct yaml_node *n, *copy;

	if (wants_key(r))
		return refuse(r, e, "a key cannot be an alias");
	for (size_t i = r->nanchors; i-- > 0;) {
		n = r->anchors[i].node;
		if (strcmp(r->anchors[i].name, (const char *)e->data.alias.anchor) != 0)
			continue;
		for (size_t k = 0; k < r->depth; k++)
			if (r->stack[k].node == n)
				return refuse(r, e, "an alias cannot stand inside what it names");
		copy = make(r, e, n->kind);
		if (!copy)
			return no_memory(r);
		copy->plain = n->plain;
		copy->flow = n->flow;
		copy->alias = true;
		copy->text = n->text;
		copy->len = n->len;
		copy->first = n->first;
		copy->weight = n->weight;
		copy->height = n->height;
		return attach(r, e, copy);
	}
	return refuse(r, e, "there is no anchor of that name before this");
}

static int take_end(struct reader *r, const yaml_event_t *e)
{
	set_end(r->stack[--r->depth].node, e);
	return 0;
}

static int take_event(struct reader *r, const yaml_event_t *e, unsigned *documents)
{
	switch (e->type) {
	case YAML_DOCUMENT_START_EVENT:
		if ((*documents)++ > 0)
			return refuse(r, e, "a second document begins here: one is all there is");
		return 0;
	case YAML_SCALAR_EVENT:
		return take_scalar(r, e);
	case YAML_ALIAS_EVENT:
		return take_alias(r, e);
	case YAML_MAPPING_START_EVENT:
		return take_start(r, e, YAML_MAP);
	case YAML_SEQUENCE_START_EVENT:
		return take_start(r, e, YAML_LIST);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		return take_end(r, e);
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		return 0;
	}
	return 0;
}

static int read_all(struct reader *r)
{
	unsigned documents = 0;
	bool more = true;
	yaml_event_t e;

	while (more) {
		int rv;

		if (!yaml_parser_parse(&r->parser, &e))
			return broken(r);
		rv = take_event(r, &e, &documents);
		more = e.type != YAML_STREAM_END_EVENT;
		yaml_event_delete(&e);
		if (rv != 0)
			return rv;
	}
	/* Nothing but comments, or "null" alone, is an empty mapping. */
	if (!r->root || yaml_is_null(r->root)) {
		r->root = arena_get(&r->y->mem, sizeof(*r->root));
		if (!r->root)
			return no_memory(r);
		*r->root = (struct yaml_node){.kind = YAML_MAP, .line = 1, .weight = 1};
	}
	return 0;
}

int yaml_parse(struct yaml **out, const char *name, const char *text, size_t len,
	       struct ava_error *err)
{
	struct reader r = {.err = err, .text = text, .len = len};
	int rv;

	*out = NULL;
	if (len > YAML_BYTES_MAX)
		return err_set(err, AVA_ETOOBIG, "%s: it is %zu bytes long, %u at the most", name,
			       len, YAML_BYTES_MAX);
	r.y = calloc(1, sizeof(*r.y));
	if (!r.y)
		return no_memory(&r);
	arena_init(&r.y->mem, MEMORY_MAX);
	r.y->name = arena_copy(&r.y->mem, name, strlen(name));
	if (!r.y->name || !yaml_parser_initialize(&r.parser)) {
		rv = no_memory(&r);
		goto fail;
	}
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
	rv = read_all(&r);
	yaml_parser_delete(&r.parser);
	if (rv != 0)
		goto fail;
	r.y->root = r.root;
	*out = r.y;
	return 0;

fail:
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

	if (n->kind != YAML_SCALAR)
		return n->kind == YAML_MAP ? "a mapping" : "a list";
	if (yaml_is_null(n))
		return "empty";
	snprintf(text, sizeof(text), "\"%.40s%s\"", n->text, n->len > 40 ? "..." : "");
	return text;
}

static const char *key_of(const struct yaml_node *n)
{
	return n->key ? n->key : "the value";
}

/* Decimal without a plus, an underscore or a leading zero. */
static bool decimal(const char *s)
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
	bool good = n->kind == YAML_SCALAR && n->plain && decimal(n->text);
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
				  key_of(n), yaml_shown(n), min, max,
				  n->kind == YAML_SCALAR && !n->plain ? ", without quotes" : "");
	*out = v;
	return 0;
}

int yaml_bool(const struct yaml *y, const struct yaml_node *n, bool *out, struct ava_error *err)
{
	bool is = n->kind == YAML_SCALAR && n->plain && strcmp(n->text, "true") == 0;

	if (!is && (n->kind != YAML_SCALAR || !n->plain || strcmp(n->text, "false") != 0))
		return yaml_error(y, n->line, AVA_EINVAL, err,
				  "%.60s is %s; it must be true or false, without quotes",
				  key_of(n), yaml_shown(n));
	*out = is;
	return 0;
}

int yaml_string(const struct yaml *y, const struct yaml_node *n, size_t max, const char **out,
		struct ava_error *err)
{
	if (n->kind != YAML_SCALAR || n->len == 0 || yaml_is_null(n))
		return yaml_error(y, n->line, AVA_EINVAL, err, "%.60s is %s; it must be text",
				  key_of(n), yaml_shown(n));
	if (n->len > max)
		return yaml_error(y, n->line, AVA_EINVAL, err,
				  "%.60s is %zu bytes long, %zu at the most", key_of(n), n->len,
				  max);
	*out = n->text;
	return 0;
}

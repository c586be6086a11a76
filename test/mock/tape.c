/* The strict JSON pass of the mock.
 *
 * tape_read walks the text once, recursing at most 64 levels, and notes where
 * each value stands. A fault stops it with the words Python's and Rust's
 * parsers use, because that is what the services answer with. Memory grows
 * with the number of values and is kept for the next text. */
#include "tape.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "codec/utf8.h"

#define DEPTH_MAX  64
#define UNIQUE_MAX 64 /* larger objects are data, not protocol: their names are not compared */

void tape_init(struct tape *t)
{
	*t = (struct tape){.text = ""};
}

void tape_fini(struct tape *t)
{
	free(t->nodes);
	tape_init(t);
}

static bool bad(struct tape *t, const char *why)
{
	if (t->error[0] == '\0')
		snprintf(t->error, sizeof t->error, "%s: line 1 column %zu (char %zu)", why,
			 t->at + 1, t->at);
	return false;
}

static uint32_t node_add(struct tape *t, enum tape_kind kind)
{
	if (t->n == t->cap) {
		uint32_t cap = t->cap ? t->cap * 2 : 1024;
		struct tape_node *nodes = realloc(t->nodes, cap * sizeof *nodes);

		assert(nodes != NULL); /* a test program: out of memory ends it */
		t->nodes = nodes;
		t->cap = cap;
	}
	t->nodes[t->n] = (struct tape_node){.start = (uint32_t)t->at, .kind = (uint8_t)kind};
	return t->n++;
}

static void node_end(struct tape *t, uint32_t node)
{
	t->nodes[node].end = (uint32_t)t->at;
	t->nodes[node].next = t->n;
}

static int peek(const struct tape *t)
{
	return t->at < t->len ? (unsigned char)t->text[t->at] : -1;
}

static void skip_space(struct tape *t)
{
	while (t->at < t->len && memchr(" \t\r\n", t->text[t->at], 4) != NULL)
		t->at++;
}

static int hex4(const struct tape *t, size_t at)
{
	int value = 0;

	if (at + 4 > t->len)
		return -1;
	for (size_t i = at; i < at + 4; i++) {
		char c = t->text[i];

		if (c >= '0' && c <= '9')
			value = value * 16 + (c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			value = value * 16 + ((c | 32) - 'a' + 10);
		else
			return -1;
	}
	return value;
}

/* At a backslash. */
static bool escape(struct tape *t)
{
	int c = t->at + 1 < t->len ? t->text[t->at + 1] : -1;
	int unit, low;

	if (c > 0 && strchr("\"\\/bfnrt", c) != NULL) {
		t->at += 2;
		return true;
	}
	if (c != 'u' || (unit = hex4(t, t->at + 2)) < 0)
		return bad(t, "invalid escaped character in string");
	if (unit >= 0xdc00 && unit <= 0xdfff)
		return bad(t, "no high surrogate in string");
	if (unit >= 0xd800 && unit <= 0xdbff) {
		low = t->at + 7 < t->len && memcmp(t->text + t->at + 6, "\\u", 2) == 0
			      ? hex4(t, t->at + 8)
			      : -1;
		if (low < 0xdc00 || low > 0xdfff)
			return bad(t, "no low surrogate in string");
		t->at += 6;
	}
	t->at += 6;
	return true;
}

static bool string(struct tape *t)
{
	uint32_t node = node_add(t, TAPE_STRING);
	uint32_t cp;
	size_t n;

	for (t->at++; t->at < t->len;) {
		unsigned char c = (unsigned char)t->text[t->at];

		if (c == '"') {
			t->at++;
			node_end(t, node);
			return true;
		}
		if (c == '\\') {
			t->nodes[node].escaped = true;
			if (!escape(t))
				return false;
		} else if (c < 0x20) {
			return bad(t, "invalid control character in string");
		} else if (c < 0x80) {
			t->at++;
		} else {
			n = utf8_decode(t->text + t->at, t->len - t->at, &cp);
			if (n == 0)
				return bad(t, "str is not valid UTF-8: surrogates not allowed");
			t->at += n;
		}
	}
	return bad(t, "unexpected end of data");
}

static bool digits(struct tape *t)
{
	size_t from = t->at;

	while (peek(t) >= '0' && peek(t) <= '9')
		t->at++;
	return t->at > from || bad(t, "invalid number");
}

static bool number(struct tape *t)
{
	uint32_t node = node_add(t, TAPE_NUMBER);

	if (peek(t) == '-')
		t->at++;
	if (peek(t) == '0')
		t->at++;
	else if (!digits(t))
		return false;
	if (peek(t) == '.') {
		t->at++;
		if (!digits(t))
			return false;
	}
	if (peek(t) == 'e' || peek(t) == 'E') {
		t->at++;
		if (peek(t) == '+' || peek(t) == '-')
			t->at++;
		if (!digits(t))
			return false;
	}
	node_end(t, node);
	return true;
}

static bool word(struct tape *t, const char *text, enum tape_kind kind)
{
	size_t len = strlen(text);
	uint32_t node;

	if (t->len - t->at < len || memcmp(t->text + t->at, text, len) != 0)
		return bad(t, "invalid literal");
	node = node_add(t, kind);
	t->at += len;
	node_end(t, node);
	return true;
}

static bool value(struct tape *t);

static bool same_key(const struct tape *t, uint32_t a, uint32_t b)
{
	const struct tape_node *x = &t->nodes[a], *y = &t->nodes[b];

	return x->end - x->start == y->end - y->start &&
	       memcmp(t->text + x->start, t->text + y->start, x->end - x->start) == 0;
}

static bool member(struct tape *t, uint32_t object)
{
	uint32_t key = t->n;

	if (peek(t) != '"')
		return bad(t, "expected an object key");
	if (!string(t))
		return false;
	if (t->nodes[object].count < UNIQUE_MAX)
		for (uint32_t i = object + 1; i < key; i = t->nodes[i + 1].next)
			if (same_key(t, i, key))
				return bad(t, "duplicate object key");
	skip_space(t);
	if (peek(t) != ':')
		return bad(t, "expected ':'");
	t->at++;
	return value(t);
}

static bool container(struct tape *t, enum tape_kind kind, char close)
{
	uint32_t node = node_add(t, kind);

	if (++t->depth > DEPTH_MAX)
		return bad(t, "recursion limit exceeded");
	t->at++;
	skip_space(t);
	while (peek(t) != close) {
		if (t->nodes[node].count > 0) {
			if (peek(t) != ',')
				return bad(t, t->at < t->len ? "expected ',' or a closing bracket"
							     : "unexpected end of data");
			t->at++;
			skip_space(t);
		}
		if (!(kind == TAPE_OBJECT ? member(t, node) : value(t)))
			return false;
		t->nodes[node].count++;
		skip_space(t);
	}
	t->at++;
	t->depth--;
	node_end(t, node);
	return true;
}

static bool value(struct tape *t)
{
	skip_space(t);
	switch (peek(t)) {
	case '{':
		return container(t, TAPE_OBJECT, '}');
	case '[':
		return container(t, TAPE_ARRAY, ']');
	case '"':
		return string(t);
	case 't':
		return word(t, "true", TAPE_TRUE);
	case 'f':
		return word(t, "false", TAPE_FALSE);
	case 'n':
		return word(t, "null", TAPE_NULL);
	case -1:
		return bad(t, "unexpected end of data");
	default:
		return number(t);
	}
}

bool tape_read(struct tape *t, const char *text, size_t len)
{
	t->text = text;
	t->len = len;
	t->at = t->n = t->depth = 0;
	t->error[0] = '\0';
	if (len > UINT32_MAX / 2)
		return bad(t, "too long");
	if (!value(t))
		return false;
	skip_space(t);
	return t->at == t->len || bad(t, "unexpected content after document");
}

enum tape_kind tape_kind(const struct tape *t, uint32_t node)
{
	return (enum tape_kind)t->nodes[node].kind;
}

const char *tape_raw(const struct tape *t, uint32_t node, size_t *len)
{
	*len = t->nodes[node].end - t->nodes[node].start;
	return t->text + t->nodes[node].start;
}

bool tape_is(const struct tape *t, uint32_t node, const char *text)
{
	const struct tape_node *x = &t->nodes[node];
	size_t len = strlen(text);

	return node != 0 && x->kind == TAPE_STRING && x->end - x->start == len + 2 &&
	       memcmp(t->text + x->start + 1, text, len) == 0;
}

uint32_t tape_get(const struct tape *t, uint32_t object, const char *key)
{
	if (t->nodes[object].kind != TAPE_OBJECT)
		return 0;
	TAPE_EACH_KEY(t, i, object)
	if (tape_is(t, i, key))
		return i + 1;
	return 0;
}

static void add_utf8(struct buf *out, uint32_t cp)
{
	char s[4];
	int n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;

	if (n == 1) {
		buf_addc(out, (char)cp);
		return;
	}
	for (int i = n - 1; i > 0; i--, cp >>= 6)
		s[i] = (char)(0x80 | (cp & 0x3f));
	s[0] = (char)((0xf00 >> n) | (int)cp);
	buf_add(out, s, (size_t)n);
}

/* The \u escape at `at` (checked when it was read); returns where it ends. */
static size_t unicode(const struct tape *t, size_t at, struct buf *out)
{
	uint32_t cp = (uint32_t)hex4(t, at + 2);

	if (cp >= 0xd800 && cp <= 0xdbff) {
		cp = 0x10000 + ((cp - 0xd800) << 10) + ((uint32_t)hex4(t, at + 8) - 0xdc00);
		at += 6;
	}
	add_utf8(out, cp);
	return at + 6;
}

void tape_text(const struct tape *t, uint32_t node, struct buf *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const struct tape_node *x = &t->nodes[node];

	if (node == 0 || x->kind != TAPE_STRING)
		return;
	if (!x->escaped) {
		buf_add(out, t->text + x->start + 1, x->end - x->start - 2);
		return;
	}
	for (size_t i = x->start + 1; i < x->end - 1;) {
		if (t->text[i] != '\\') {
			buf_addc(out, t->text[i++]);
		} else if (t->text[i + 1] == 'u') {
			i = unicode(t, i, out);
		} else {
			buf_addc(out, to[strchr(from, t->text[i + 1]) - from]);
			i += 2;
		}
	}
}

char *tape_copy(const struct tape *t, uint32_t node, char *out, size_t size)
{
	struct buf b;

	out[0] = '\0';
	if (node == 0 || t->nodes[node].kind != TAPE_STRING)
		return out;
	buf_init(&b, t->nodes[node].end - t->nodes[node].start);
	tape_text(t, node, &b);
	snprintf(out, size, "%.*s", (int)MIN(b.len, size), b.data ? b.data : "");
	buf_fini(&b);
	return out;
}

bool tape_real(const struct tape *t, uint32_t node, double *out)
{
	char s[64];
	size_t len;
	const char *raw = tape_raw(t, node, &len);

	if (node == 0 || t->nodes[node].kind != TAPE_NUMBER || len >= sizeof s)
		return false;
	memcpy(s, raw, len);
	s[len] = '\0';
	*out = strtod(s, NULL);
	return true;
}

bool tape_int(const struct tape *t, uint32_t node, int64_t *out)
{
	size_t len;
	const char *raw = tape_raw(t, node, &len);

	if (node == 0 || t->nodes[node].kind != TAPE_NUMBER || len > 18)
		return false;
	if (memchr(raw, '.', len) != NULL || memchr(raw, 'e', len) != NULL ||
	    memchr(raw, 'E', len) != NULL)
		return false;
	*out = strtoll(raw, NULL, 10);
	return true;
}

/* A strict scanner for hot deltas. It accepts a small part of what JSON allows:
 * known keys, each at most once, whole numbers, strings whose escapes and UTF-8
 * were checked; jansson would accept all of that and find the same. Anything
 * else, a new key of a service as well as damage, is left to the slow path. So
 * nothing can fail here: the worst outcome is DELTA_NONE. */
#include "provider/delta.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "codec/utf8.h"

struct cursor {
	const char *at, *end;
	bool bad;
};

static char peek(struct cursor *c)
{
	while (c->at < c->end &&
	       (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
		c->at++;
	return c->at < c->end && !c->bad ? *c->at : 0;
}

static bool no(struct cursor *c)
{
	c->bad = true;
	return false;
}

static bool take(struct cursor *c, char want)
{
	if (peek(c) != want)
		return no(c);
	c->at++;
	return true;
}

/* Four hex digits; -1: they are none. */
static int hex4(const char *s)
{
	int v = 0;

	for (int i = 0; i < 4; i++) {
		char ch = s[i];

		if (ch >= '0' && ch <= '9')
			v = v * 16 + (ch - '0');
		else if ((ch | 32) >= 'a' && (ch | 32) <= 'f')
			v = v * 16 + ((ch | 32) - 'a' + 10);
		else
			return -1;
	}
	return v;
}

/* Length of the escape at `s` ('\\'), 0 when it is none that stands for a
 * character: lone surrogates and NUL are for the slow path. */
static size_t escape_len(const char *s, const char *end)
{
	int hi, lo;

	if (end - s < 2)
		return 0;
	if (s[1] != 'u')
		return memchr("\"\\/bfnrt", s[1], 8) != NULL ? 2 : 0;
	if (end - s < 6)
		return 0;
	hi = hex4(s + 2);
	if (hi <= 0 || (hi >= 0xdc00 && hi < 0xe000))
		return 0;
	if (hi < 0xd800 || hi >= 0xe000)
		return 6;
	if (end - s < 12 || s[6] != '\\' || s[7] != 'u')
		return 0;
	lo = hex4(s + 8);
	return lo >= 0xdc00 && lo < 0xe000 ? 12 : 0;
}

/* 0: goes on as it is; 1: quote; 2: backslash; 3: not ASCII; 4: control. */
static const uint8_t kinds[256] = {
	[0 ... 31] = 4,
	['"'] = 1,
	['\\'] = 2,
	[128 ... 255] = 3,
};

static bool string(struct cursor *c, struct slice *raw, bool *escapes)
{
	const char *s, *start;
	uint32_t cp;
	size_t n;

	if (!take(c, '"'))
		return false;
	s = start = c->at;
	*escapes = false;
	for (;;) {
		while (s < c->end && kinds[(unsigned char)*s] == 0)
			s++;
		if (s == c->end)
			return no(c);
		if (*s == '"')
			break;
		if (*s == '\\') {
			*escapes = true;
			n = escape_len(s, c->end);
		} else {
			n = (unsigned char)*s < 32 ? 0 : utf8_decode(s, (size_t)(c->end - s), &cp);
		}
		if (n == 0)
			return no(c);
		s += n;
	}
	*raw = (struct slice){start, (size_t)(s - start)};
	c->at = s + 1;
	return true;
}

static bool word(struct cursor *c, const char *want)
{
	size_t n = strlen(want);

	if (peek(c) != want[0] || (size_t)(c->end - c->at) < n || memcmp(c->at, want, n) != 0)
		return no(c);
	c->at += n;
	return true;
}

/* A whole number from 0 to 18 digits, as JSON writes it. */
static bool number(struct cursor *c, uint64_t *out)
{
	const char *start;

	*out = 0;
	peek(c);
	for (start = c->at; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
		*out = *out * 10 + (uint64_t)(*c->at - '0');
	if (c->at == start || c->at - start > 18 || (*start == '0' && c->at - start > 1))
		return no(c);
	return true;
}

static bool small_number(struct cursor *c, unsigned *out)
{
	uint64_t n;

	if (!number(c, &n) || n > 99999)
		return no(c);
	*out = (unsigned)n;
	return true;
}

/* A value that says nothing to us. */
static bool scalar(struct cursor *c)
{
	struct slice s;
	uint64_t n;
	bool e;

	switch (peek(c)) {
	case '"':
		return string(c, &s, &e);
	case 'n':
		return word(c, "null");
	case 't':
		return word(c, "true");
	case 'f':
		return word(c, "false");
	default:
		return number(c, &n);
	}
}

/* ---- objects with known keys */

struct member {
	const char *key;
	bool (*value)(struct cursor *c, struct delta *d);
};

static bool find_member(struct cursor *c, const struct member *m, size_t n, uint32_t *seen,
			struct delta *d)
{
	struct slice key;
	bool escapes;

	if (!string(c, &key, &escapes) || escapes || !take(c, ':'))
		return no(c);
	for (size_t i = 0; i < n; i++) {
		if (!slice_is(key, m[i].key))
			continue;
		if (*seen & (1u << i))
			return no(c);
		*seen |= 1u << i;
		return m[i].value(c, d) || no(c);
	}
	return no(c);
}

static bool object(struct cursor *c, const struct member *m, size_t n, uint32_t *seen,
		   struct delta *d)
{
	*seen = 0;
	if (!take(c, '{'))
		return false;
	if (peek(c) == '}')
		return take(c, '}');
	do
		if (!find_member(c, m, n, seen, d))
			return false;
	while (peek(c) == ',' && take(c, ','));
	return take(c, '}');
}

#define OBJECT(c, members, seen, d)                                                                \
	object(c, members, sizeof(members) / sizeof((members)[0]), seen, d)

static bool skip(struct cursor *c, struct delta *d)
{
	return scalar(c);
}

static bool null(struct cursor *c, struct delta *d)
{
	return word(c, "null");
}

/* ---- chat completions */

/* A string that matters, or nothing. A chunk that says two things is slow. */
static bool piece(struct cursor *c, struct delta *d, enum delta_kind kind)
{
	struct slice raw;
	bool escapes;

	if (peek(c) == 'n')
		return word(c, "null");
	if (!string(c, &raw, &escapes))
		return false;
	if (raw.len == 0)
		return true;
	if (d->kind != DELTA_EMPTY)
		return no(c);
	d->kind = kind;
	d->text = raw;
	d->escapes = escapes;
	return true;
}

static bool content(struct cursor *c, struct delta *d)
{
	return piece(c, d, DELTA_TEXT);
}

static bool reasoning(struct cursor *c, struct delta *d)
{
	return piece(c, d, DELTA_REASONING);
}

static bool reasoning_content(struct cursor *c, struct delta *d)
{
	return piece(c, d, DELTA_THINKING);
}

static bool arguments(struct cursor *c, struct delta *d)
{
	return piece(c, d, DELTA_ARGS);
}

/* The beginning of a call, with its id and name, is for the slow path. */
static bool absent(struct cursor *c, struct delta *d)
{
	return peek(c) == '"' ? word(c, "\"\"") : word(c, "null");
}

static bool empty_list(struct cursor *c, struct delta *d)
{
	if (peek(c) == 'n')
		return word(c, "null");
	return take(c, '[') && take(c, ']');
}

static bool function(struct cursor *c, struct delta *d)
{
	static const struct member members[] = {{"arguments", arguments}, {"name", absent}};
	uint32_t seen;

	return OBJECT(c, members, &seen, d);
}

static bool call_index(struct cursor *c, struct delta *d)
{
	return small_number(c, &d->index);
}

static bool tool_calls(struct cursor *c, struct delta *d)
{
	static const struct member members[] = {
		{"index", call_index},
		{"function", function},
		{"id", absent},
		{"type", skip},
	};
	uint32_t seen;

	if (peek(c) != '[')
		return word(c, "null");
	take(c, '[');
	if (peek(c) == ']')
		return take(c, ']');
	return OBJECT(c, members, &seen, d) && (seen & 1u) != 0 && take(c, ']');
}

static bool delta_object(struct cursor *c, struct delta *d)
{
	static const struct member members[] = {
		{"content", content},
		{"role", skip},
		{"tool_calls", tool_calls},
		{"reasoning", reasoning},
		{"reasoning_content", reasoning_content},
		{"reasoning_details", empty_list},
		{"refusal", null},
		{"function_call", null},
	};
	uint32_t seen;

	return OBJECT(c, members, &seen, d);
}

static bool zero(struct cursor *c, struct delta *d)
{
	unsigned n;

	return small_number(c, &n) && (n == 0 || no(c));
}

static bool choices(struct cursor *c, struct delta *d)
{
	static const struct member members[] = {
		{"index", zero},     {"delta", delta_object},        {"finish_reason", null},
		{"logprobs", null},  {"native_finish_reason", null}, {"stop_reason", null},
		{"token_ids", null},
	};
	uint32_t seen;

	return take(c, '[') && OBJECT(c, members, &seen, d) && (seen & 2u) != 0 && take(c, ']');
}

void delta_chunk(const char *s, size_t len, struct delta *d)
{
	static const struct member members[] = {
		{"id", skip},           {"object", skip},     {"created", skip},
		{"model", skip},        {"choices", choices}, {"system_fingerprint", skip},
		{"service_tier", skip}, {"provider", skip},   {"obfuscation", skip},
		{"usage", null},        {"error", null},      {"prompt_token_ids", null},
	};
	struct cursor c = {.at = s, .end = s + len};
	uint32_t seen;

	*d = (struct delta){.kind = DELTA_EMPTY, .text = {"", 0}};
	/* "object":"error" of some servers has no choices. */
	if (!OBJECT(&c, members, &seen, d) || (seen & 16u) == 0 || peek(&c) != 0 || c.at != c.end)
		d->kind = DELTA_NONE;
}

/* ---- the Messages form: its members have one order. */

static bool key(struct cursor *c, const char *quoted)
{
	return word(c, quoted) && take(c, ':');
}

static bool inner(struct cursor *c, struct delta *d)
{
	static const struct {
		const char *type, *key;
		enum delta_kind kind;
	} shapes[] = {
		{"text_delta", "\"text\"", DELTA_TEXT},
		{"input_json_delta", "\"partial_json\"", DELTA_ARGS},
		{"thinking_delta", "\"thinking\"", DELTA_THINKING},
	};
	struct slice type;
	bool escapes;

	if (!take(c, '{') || !key(c, "\"type\"") || !string(c, &type, &escapes) || !take(c, ','))
		return false;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (!slice_is(type, shapes[i].type))
			continue;
		d->kind = shapes[i].kind;
		return key(c, shapes[i].key) && string(c, &d->text, &d->escapes) && take(c, '}');
	}
	return no(c);
}

void delta_messages(const char *s, size_t len, struct delta *d)
{
	struct cursor c = {.at = s, .end = s + len};

	*d = (struct delta){.text = {"", 0}};
	if (take(&c, '{') && key(&c, "\"type\"") && word(&c, "\"content_block_delta\"") &&
	    take(&c, ',') && key(&c, "\"index\"") && small_number(&c, &d->index) && take(&c, ',') &&
	    key(&c, "\"delta\"") && inner(&c, d) && take(&c, '}') && peek(&c) == 0 &&
	    c.at == c.end) {
		if (d->text.len == 0)
			d->kind = DELTA_EMPTY;
		return;
	}
	d->kind = DELTA_NONE;
}

int delta_add(struct buf *out, const struct delta *d)
{
	char *at;

	if (!d->escapes)
		return buf_add(out, d->text.s, d->text.len);
	at = buf_reserve(out, d->text.len);
	if (at == NULL)
		return buf_check(out);
	out->len += jscan_unescape(d->text, at);
	out->data[out->len] = 0;
	return 0;
}

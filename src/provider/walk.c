/* The JSON cursor: grammar of brackets, commas, literals and numbers is
 * checked, strings are only delimited (their escapes were checked when the
 * line was made). Recursion is bounded by WALK_MAX_DEPTH. Bad text sets
 * `failed`; nothing here allocates or can fail otherwise. */
#include "provider/walk.h"

#include <string.h>

void walk_init(struct walk *w, const char *s, size_t len)
{
	*w = (struct walk){.at = s, .end = s + len, .last = ':'};
}

static bool fail(struct walk *w)
{
	w->failed = true;
	return false;
}

char walk_peek(struct walk *w)
{
	while (w->at < w->end &&
	       (*w->at == ' ' || *w->at == '\n' || *w->at == '\t' || *w->at == '\r'))
		w->at++;
	return w->at < w->end && !w->failed ? *w->at : 0;
}

static bool open_with(struct walk *w, char bracket)
{
	if (walk_peek(w) != bracket || w->last != ':')
		return fail(w);
	w->at++;
	w->last = bracket;
	return true;
}

bool walk_object(struct walk *w)
{
	return open_with(w, '{');
}

bool walk_array(struct walk *w)
{
	return open_with(w, '[');
}

/* Before an element: true when there is one; the comma is consumed. */
static bool element(struct walk *w, char open, char closing)
{
	char c = walk_peek(w);

	if (c == closing && (w->last == open || w->last == 'v')) {
		w->at++;
		w->last = 'v';
		return false;
	}
	if (w->last == open) {
		w->last = ':';
		return c != 0 || fail(w);
	}
	if (w->last != 'v' || c != ',')
		return fail(w);
	w->at++;
	w->last = ':';
	return walk_peek(w) != 0 || fail(w);
}

bool walk_item(struct walk *w)
{
	return element(w, '[', ']');
}

bool walk_key(struct walk *w, struct slice *key)
{
	if (!element(w, '{', '}') || !walk_string(w, key))
		return false;
	if (walk_peek(w) != ':')
		return fail(w);
	w->at++;
	w->last = ':';
	return true;
}

bool walk_string(struct walk *w, struct slice *raw)
{
	const char *q;

	if (walk_peek(w) != '"' || w->last != ':')
		return fail(w);
	raw->s = ++w->at;
	for (q = w->at; (q = memchr(q, '"', (size_t)(w->end - q))) != NULL; q++) {
		const char *b = q;

		while (b > raw->s && b[-1] == '\\')
			b--;
		if ((q - b) % 2 == 0)
			break;
	}
	if (q == NULL)
		return fail(w);
	raw->len = (size_t)(q - raw->s);
	w->at = q + 1;
	w->last = 'v';
	return true;
}

static bool is_number(const char *s, size_t len)
{
	size_t i = 0, digits = 0;

	i += i < len && s[i] == '-';
	for (; i < len && s[i] >= '0' && s[i] <= '9'; i++)
		digits++;
	if (digits == 0)
		return false;
	if (i < len && s[i] == '.')
		for (i++, digits = 0; i < len && s[i] >= '0' && s[i] <= '9'; i++)
			digits++;
	if (digits > 0 && i < len && (s[i] == 'e' || s[i] == 'E')) {
		i++;
		i += i < len && (s[i] == '-' || s[i] == '+');
		for (digits = 0; i < len && s[i] >= '0' && s[i] <= '9'; i++)
			digits++;
	}
	return i == len && digits > 0;
}

static bool skip_word(struct walk *w)
{
	struct slice word = {w->at, 0};

	while (w->at < w->end && strchr(",]} \n\t\r", *w->at) == NULL)
		w->at++;
	word.len = (size_t)(w->at - word.s);
	w->last = 'v';
	if (slice_is(word, "true") || slice_is(word, "false") || slice_is(word, "null") ||
	    is_number(word.s, word.len))
		return true;
	return fail(w);
}

static bool skip_value(struct walk *w, unsigned depth)
{
	struct slice s;

	if (depth == 0 || w->last != ':')
		return fail(w);
	switch (walk_peek(w)) {
	case '"':
		return walk_string(w, &s);
	case '{':
		walk_object(w);
		while (walk_key(w, &s))
			skip_value(w, depth - 1);
		return !w->failed;
	case '[':
		walk_array(w);
		while (walk_item(w))
			skip_value(w, depth - 1);
		return !w->failed;
	case 0:
		return fail(w);
	default:
		return skip_word(w);
	}
}

bool walk_skip(struct walk *w, struct slice *raw)
{
	const char *start;

	walk_peek(w);
	start = w->at;
	if (!skip_value(w, WALK_MAX_DEPTH))
		return false;
	if (raw != NULL)
		*raw = (struct slice){start, (size_t)(w->at - start)};
	return true;
}

bool slice_is(struct slice s, const char *word)
{
	return s.len == strlen(word) && memcmp(s.s, word, s.len) == 0;
}

/* Four hex digits at s, or -1. */
static long hex4(const char *s, const char *end)
{
	long v = 0;

	if (end - s < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = s[i];
		int d = c >= '0' && c <= '9' ? c - '0' : (c | 32) - 'a' + 10;

		if (d < 0 || d > 15 || (c > '9' && (c | 32) < 'a'))
			return -1;
		v = v * 16 + d;
	}
	return v;
}

static size_t put_utf8(char *out, long cp)
{
	if (cp <= 0 || (cp >= 0xd800 && cp <= 0xdfff))
		cp = 0xfffd;
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (char)(0xc0 | cp >> 6);
		out[1] = (char)(0x80 | (cp & 63));
		return 2;
	}
	if (cp < 0x10000) {
		out[0] = (char)(0xe0 | cp >> 12);
		out[1] = (char)(0x80 | (cp >> 6 & 63));
		out[2] = (char)(0x80 | (cp & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | cp >> 18);
	out[1] = (char)(0x80 | (cp >> 12 & 63));
	out[2] = (char)(0x80 | (cp >> 6 & 63));
	out[3] = (char)(0x80 | (cp & 63));
	return 4;
}

/* `s` is past "\u"; returns what was read after it. */
static size_t unescape_u(const char *s, const char *end, char *out, size_t *n)
{
	long hi = hex4(s, end), lo;

	if (hi < 0) { /* not an escape of JSON: keep the letter */
		out[(*n)++] = 'u';
		return 0;
	}
	if (hi >= 0xd800 && hi < 0xdc00 && end - s >= 10 && s[4] == '\\' && s[5] == 'u') {
		lo = hex4(s + 6, end);
		if (lo >= 0xdc00 && lo < 0xe000) {
			*n += put_utf8(out + *n, 0x10000 + ((hi - 0xd800) << 10) + (lo - 0xdc00));
			return 10;
		}
	}
	*n += put_utf8(out + *n, hi);
	return 4;
}

size_t walk_unescape(struct slice raw, char *out)
{
	static const char from[] = "nrtbf", to[] = "\n\r\t\b\f";
	const char *s = raw.s, *end = raw.s + raw.len;
	size_t n = 0;

	while (s < end) {
		const char *b = memchr(s, '\\', (size_t)(end - s)), *f;
		size_t span = (size_t)((b != NULL ? b : end) - s);

		memcpy(out + n, s, span);
		n += span;
		if (b == NULL || b + 1 >= end)
			break;
		s = b + 2;
		f = strchr(from, b[1]);
		if (b[1] == 'u')
			s += unescape_u(s, end, out, &n);
		else
			out[n++] = f != NULL && *f != 0 ? to[f - from] : b[1];
	}
	return n;
}

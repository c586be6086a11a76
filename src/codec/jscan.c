/* The JSON cursor: the grammar of brackets, commas, literals and numbers is checked, strings are
 * only delimited (their escapes were checked when the line was made). Recursion is bounded by
 * JSCAN_MAX_DEPTH. Bad text sets `failed`; nothing here allocates or can fail otherwise. */
#include "codec/jscan.h"

#include <ava.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "codec/utf8.h"

void jscan_init(struct jscan *w, const char *s, size_t len)
{
	if (s == NULL) /* NULL stands for an empty text */
		s = "";
	*w = (struct jscan){.at = s, .end = s + len, .last = ':'};
}

static bool jscan_fail(struct jscan *w)
{
	w->failed = true;
	return false;
}

char jscan_peek(struct jscan *w)
{
	while (w->at < w->end &&
	       (*w->at == ' ' || *w->at == '\n' || *w->at == '\t' || *w->at == '\r'))
		w->at++;
	return w->at < w->end && !w->failed ? *w->at : 0;
}

static bool open_with(struct jscan *w, char bracket)
{
	if (jscan_peek(w) != bracket || w->last != ':')
		return jscan_fail(w);
	w->at++;
	w->last = bracket;
	return true;
}

bool jscan_object(struct jscan *w)
{
	return open_with(w, '{');
}

bool jscan_array(struct jscan *w)
{
	return open_with(w, '[');
}

/* Consume a comma; true when an element follows. */
static bool element(struct jscan *w, char open, char closing)
{
	char c = jscan_peek(w);

	if (c == closing && (w->last == open || w->last == 'v')) {
		w->at++;
		w->last = 'v';
		return false;
	}
	if (w->last == open) {
		w->last = ':';
		return c != 0 || jscan_fail(w);
	}
	if (w->last != 'v' || c != ',')
		return jscan_fail(w);
	w->at++;
	w->last = ':';
	return jscan_peek(w) != 0 || jscan_fail(w);
}

bool jscan_item(struct jscan *w)
{
	return element(w, '[', ']');
}

bool jscan_key(struct jscan *w, struct slice *key)
{
	if (!element(w, '{', '}') || !jscan_string(w, key))
		return false;
	if (jscan_peek(w) != ':')
		return jscan_fail(w);
	w->at++;
	w->last = ':';
	return true;
}

bool jscan_string(struct jscan *w, struct slice *raw)
{
	const char *start, *q;

	*raw = (struct slice){"", 0}; /* keep *raw valid on failure */
	if (jscan_peek(w) != '"' || w->last != ':')
		return jscan_fail(w);
	q = start = ++w->at;
	for (; (q = memchr(q, '"', (size_t)(w->end - q))) != NULL; q++) {
		const char *b = q;

		while (b > start && b[-1] == '\\')
			b--;
		if ((q - b) % 2 == 0)
			break;
	}
	if (q == NULL)
		return jscan_fail(w);
	*raw = (struct slice){start, (size_t)(q - start)};
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
	if (digits == 0 || (digits > 1 && s[i - digits] == '0'))
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

static bool skip_word(struct jscan *w)
{
	static const char *const words[] = {"true", "false",    "null",
					    "NaN",  "Infinity", "-Infinity"};
	const char *start = w->at;

	w->last = 'v';
	for (size_t i = 0; i < (w->loose ? 6 : 3); i++) {
		size_t len = strlen(words[i]);

		if (*start == words[i][0] && (size_t)(w->end - start) >= len &&
		    memcmp(start, words[i], len) == 0) {
			w->at += len;
			return true;
		}
	}
	while (w->at < w->end && ((*w->at >= '0' && *w->at <= '9') || *w->at == '-' ||
				  *w->at == '.' || *w->at == '+' || (*w->at | 32) == 'e'))
		w->at++;
	return is_number(start, (size_t)(w->at - start)) || jscan_fail(w);
}

static bool skip_value(struct jscan *w, unsigned depth)
{
	struct slice s;

	if (w->last != ':')
		return jscan_fail(w);
	if (depth == 0)
		return w->loose ? jscan_pass(w) : jscan_fail(w);
	switch (jscan_peek(w)) {
	case '"':
		return jscan_string(w, &s);
	case '{':
		jscan_object(w);
		while (jscan_key(w, &s))
			skip_value(w, depth - 1);
		return !w->failed;
	case '[':
		jscan_array(w);
		while (jscan_item(w))
			skip_value(w, depth - 1);
		return !w->failed;
	case 0:
		return jscan_fail(w);
	default:
		return skip_word(w);
	}
}

bool jscan_pass(struct jscan *w)
{
	struct slice s;
	size_t depth = 0;
	char c;

	do {
		c = jscan_peek(w);
		depth += c == '{' || c == '[';
		depth -= (c == '}' || c == ']') && depth > 0;
		w->last = ':';
		if (c == '"')
			jscan_string(w, &s);
		else if (c != 0)
			w->at++;
	} while (depth > 0 && c != 0);
	w->last = 'v';
	return c != 0 || jscan_fail(w);
}

bool jscan_skip(struct jscan *w, struct slice *raw)
{
	const char *start;

	jscan_peek(w);
	start = w->at;
	if (!skip_value(w, JSCAN_MAX_DEPTH))
		return false;
	if (raw != NULL)
		*raw = (struct slice){start, (size_t)(w->at - start)};
	return true;
}

void jscan_list(struct jscan *w, const char *s, size_t len)
{
	jscan_init(w, s, len);
	w->last = '['; /* stand as if behind an opening bracket */
}

bool jscan_next(struct jscan *w, struct slice *raw)
{
	return jscan_peek(w) != 0 && jscan_item(w) && jscan_skip(w, raw);
}

size_t jscan_keep(char *s, size_t len, bool (*stays)(struct slice v))
{
	char *out = s;
	struct slice v;
	struct jscan w;

	/* Values are moved only to where the scanner has been. */
	jscan_list(&w, s, len);
	while (jscan_next(&w, &v)) {
		if (!stays(v))
			continue;
		if (out > s)
			*out++ = ',';
		memmove(out, v.s, v.len);
		out += v.len;
	}
	return (size_t)(out - s);
}

struct slice jscan_member(const char *s, size_t len, const char *name)
{
	struct slice key, value, found = {"", 0};
	struct jscan w;

	jscan_init(&w, s, len);
	w.loose = true;
	if (jscan_object(&w))
		while (jscan_key(&w, &key))
			if (jscan_skip(&w, &value) && slice_is(key, name))
				found = value;
	return w.failed ? (struct slice){"", 0} : found;
}

struct slice jscan_first(const char *s, size_t len, const char *name)
{
	const char *begin = len > 0 ? memchr(s, '{', len) : NULL;
	struct slice key;
	struct jscan w;

	jscan_init(&w, begin, begin != NULL ? len - (size_t)(begin - s) : 0);
	if (jscan_object(&w))
		while (jscan_key(&w, &key)) {
			char c = jscan_peek(&w);
			const char *from = w.at;

			if (!(c == '{' || c == '[' ? jscan_pass(&w) : jscan_skip(&w, NULL)))
				break;
			if (slice_is(key, name) && w.at < w.end) /* the end may cut a number */
				return (struct slice){from, (size_t)(w.at - from)};
		}
	return (struct slice){"", 0};
}

bool jscan_is_json(const char *s, size_t len)
{
	bool text = false;
	struct jscan w;
	uint32_t cp;

	jscan_init(&w, s, len);
	w.loose = true; /* values of any depth */
	if (!jscan_skip(&w, NULL) || jscan_peek(&w) != 0 || w.at < w.end)
		return false;
	for (size_t i = 0, n; i < len; i += n) {
		n = text && s[i] == '\\' ? jscan_escape(s + i, s + len, &cp) : 1;
		if (n == 0 || (text ? (unsigned char)s[i] < 0x20 : s[i] == 'N' || s[i] == 'I'))
			return false;
		text ^= s[i] == '"';
	}
	return true;
}

bool slice_is(struct slice s, const char *word)
{
	return s.len == strlen(word) && (s.len == 0 || memcmp(s.s, word, s.len) == 0);
}

bool jscan_begins(const char *s, size_t len, const char *with)
{
	size_t n = strlen(with);

	return len >= n && memcmp(s, with, n) == 0;
}

long slice_number(struct slice s, long fallback)
{
	bool minus = s.len > 0 && s.s[0] == '-';
	long n = 0;

	if (s.len == minus || s.len > 18u + minus)
		return fallback;
	for (size_t i = minus; i < s.len; i++) {
		if (s.s[i] < '0' || s.s[i] > '9')
			return fallback;
		n = n * 10 + (s.s[i] - '0');
	}
	return minus ? -n : n;
}

static bool surrogate(uint32_t cp)
{
	return cp >= 0xd800 && cp < 0xe000;
}

/* The code unit of "\\uXXXX" at `s`; -1: none. */
static long jscan_unit_at(const char *s, const char *end)
{
	long v = 0;

	if (end - s < 6 || s[0] != '\\' || s[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		char c = s[i];
		int d = c >= '0' && c <= '9' ? c - '0' : (c | 32) - 'a' + 10;

		if (d < 0 || d > 15 || (c > '9' && (c | 32) < 'a'))
			return -1;
		v = v * 16 + d;
	}
	return v;
}

size_t jscan_escape(const char *s, const char *end, uint32_t *cp)
{
	static const char from[] = "n\"\\/rtbf", to[] = "\n\"\\/\r\t\b\f";
	const char *at = end - s >= 2 ? memchr(from, s[1], 8) : NULL;
	long high, low;

	if (at != NULL) {
		*cp = (uint32_t)to[at - from];
		return 2;
	}
	high = jscan_unit_at(s, end);
	if (high < 0)
		return 0;
	low = high >= 0xd800 && high < 0xdc00 ? jscan_unit_at(s + 6, end) : -1;
	if (low >= 0xdc00 && low < 0xe000) {
		*cp = (uint32_t)(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
		return 12;
	}
	*cp = (uint32_t)high;
	return 6;
}

bool jscan_sound(struct slice raw, bool *escapes)
{
	const char *s = raw.s, *end = raw.s + raw.len;
	uint32_t cp;
	size_t n;

	*escapes = false;
	while (s < end) {
		unsigned char c = (unsigned char)*s;

		if (c >= 0x20 && c < 0x80 && c != '\\') {
			s++;
			continue;
		}
		if (c < 0x20)
			return false;
		if (c == '\\') {
			*escapes = true;
			n = jscan_escape(s, end, &cp);
			if (n > 0 && (cp == 0 || surrogate(cp)))
				return false;
		} else {
			n = utf8_decode(s, (size_t)(end - s), &cp);
		}
		if (n == 0)
			return false;
		s += n;
	}
	return true;
}

static size_t put_utf8(char *out, uint32_t cp)
{
	if (cp == 0 || surrogate(cp))
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

/* Copies up to the first backslash, eight bytes at a time: escapes stand close
 * together (each line end of a prompt is one), too close for memchr. */
static size_t copy_plain(const char *s, size_t len, char *out)
{
	const uint64_t ones = UINT64_MAX / 255;
	size_t i = 0;

	for (; i + 8 <= len; i += 8) {
		uint64_t word, at;

		memcpy(&word, s + i, 8);
		memcpy(out + i, &word, 8); /* surplus bytes are overwritten in the next round */
		at = word ^ (ones * '\\');
		if ((at - ones) & ~at & (ones * 0x80))
			break;
	}
	for (; i < len && s[i] != '\\'; i++)
		out[i] = s[i];
	return i;
}

size_t jscan_unescape(struct slice raw, char *out)
{
	const char *s = raw.s, *end = raw.s + raw.len;
	size_t n = 0, span;
	uint32_t cp;

	while (s < end) {
		span = copy_plain(s, (size_t)(end - s), out + n);
		n += span;
		s += span;
		if (end - s < 2)
			break;
		span = jscan_escape(s, end, &cp);
		if (span == 0) { /* not an escape of JSON: keep the letter */
			out[n++] = s[1];
			span = 2;
		} else {
			n += put_utf8(out + n, cp);
		}
		s += span;
	}
	return n;
}

int jscan_text(struct buf *out, struct slice raw)
{
	char *at = buf_reserve(out, raw.len);

	if (at == NULL)
		return buf_check(out);
	out->len += jscan_unescape(raw, at);
	out->data[out->len] = 0;
	return 0;
}

int jscan_mended(struct buf *out, struct slice raw)
{
	const char *s = raw.s, *end = raw.s + raw.len;

	while (s < end) {
		bool escape = *s == '\\';
		uint32_t cp;
		size_t n =
			escape ? jscan_escape(s, end, &cp) : utf8_decode(s, (size_t)(end - s), &cp);
		char *at = buf_reserve(out, 4);

		if (n == 0 && escape)
			return AVA_EINVAL;
		if (at == NULL)
			return buf_check(out);
		if (n == 0 || (!escape && cp < 0x20 && memchr("\t\n\r", (int)cp, 3) == NULL))
			cp = 0xfffd;
		out->len += put_utf8(at, cp);
		s += n > 0 ? n : 1;
	}
	return 0;
}

/* ---- lines. Only a line with its newline is whole: a crash cuts the newline first. */

int jsonl_next(const char *data, size_t len, size_t *at, const char **line, size_t *line_len)
{
	const char *from, *end;

	if (*at >= len)
		return 0;
	from = data + *at;
	end = memchr(from, '\n', len - *at);
	*line = from;
	if (end == NULL) {
		*line_len = len - *at;
		return -1;
	}
	*line_len = (size_t)(end - from);
	*at += *line_len + 1;
	return 1;
}

bool head_next(const char *lines, size_t len, size_t *at, struct slice *name)
{
	const char *line;
	size_t n;

	while (jsonl_next(lines, len, at, &line, &n) == 1) {
		struct slice key, value;
		struct jscan w;

		if (!jscan_begins(line, n, "{\"spec\":") && !jscan_begins(line, n, "{\"cut\":"))
			continue;
		jscan_init(&w, line, n);
		jscan_object(&w);
		if (!jscan_key(&w, &key) || !jscan_skip(&w, &value))
			continue;
		value = jscan_member(value.s, value.len, "head");
		*name = (struct slice){value.s + 1, HASH_HEX_LEN};
		if (value.len == HASH_HEX_LEN + 2 &&
		    strspn(name->s, "0123456789abcdef") == HASH_HEX_LEN)
			return true;
	}
	return false;
}

uint32_t jsonl_count(const char *data, size_t len)
{
	const char *nl;
	uint32_t n = 0;

	while (len > 0 && (nl = memchr(data, '\n', len)) != NULL) {
		len -= (size_t)(nl + 1 - data);
		data = nl + 1;
		n++;
	}
	return n;
}

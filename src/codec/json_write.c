/* The writing half of json.h: no allocation but the buffer's, no jansson.
 *
 * Text is copied in runs: eight bytes at a time are tested for anything that
 * needs an escape, and only those bytes are looked at one by one. Errors stay
 * in the buffer (buf_check); nesting too deep is a bug of ours. */
#include <assert.h>
#include <string.h>

#include "codec/json.h"
#include "codec/utf8.h"

void jw_init(struct jw *w, struct buf *out)
{
	*w = (struct jw){.out = out};
}

/* Comma and key before a value. Nothing separates values at the top: a line
 * ends each. */
static void before(struct jw *w, const char *key)
{
	uint64_t level = UINT64_C(1) << w->depth;
	bool comma = (w->some & level) != 0;
	size_t len = key != NULL ? strlen(key) : 0, n = comma + (key != NULL ? len + 3 : 0);
	char *at = buf_reserve(w->out, n);

	if (w->depth > 0)
		w->some |= level;
	if (at == NULL)
		return;
	if (comma)
		*at++ = ',';
	if (key != NULL) {
		*at = '"';
		memcpy(at + 1, key, len);
		memcpy(at + 1 + len, "\":", 2);
	}
	w->out->len += n;
	w->out->data[w->out->len] = '\0';
}

static void open_level(struct jw *w, const char *key, bool array)
{
	uint64_t level;

	before(w, key);
	assert(w->depth < 63);
	level = UINT64_C(1) << ++w->depth;
	w->some &= ~level;
	w->array = array ? w->array | level : w->array & ~level;
	buf_addc(w->out, array ? '[' : '{');
}

void jw_object(struct jw *w, const char *key)
{
	open_level(w, key, false);
}

void jw_array(struct jw *w, const char *key)
{
	open_level(w, key, true);
}

void jw_end(struct jw *w)
{
	assert(w->depth > 0);
	buf_addc(w->out, w->array >> w->depth & 1 ? ']' : '}');
	w->depth--;
}

void jw_str(struct jw *w, const char *key, const char *s)
{
	if (s == NULL)
		jw_null(w, key);
	else
		jw_strn(w, key, s, strlen(s));
}

void jw_strn(struct jw *w, const char *key, const char *s, size_t len)
{
	before(w, key);
	json_escape(w->out, s, len);
}

void jw_bool(struct jw *w, const char *key, bool v)
{
	before(w, key);
	buf_adds(w->out, v ? "true" : "false");
}

void jw_null(struct jw *w, const char *key)
{
	before(w, key);
	buf_add(w->out, "null", 4);
}

/* Decimal digits of n, written so that they end before `end`. */
static char *digits_before(char *end, uint64_t n)
{
	do {
		*--end = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	return end;
}

int json_add_int(struct buf *out, int64_t n)
{
	char text[24], *end = text + sizeof(text), *at;
	uint64_t size = n < 0 ? -(uint64_t)n : (uint64_t)n;

	at = digits_before(end, size);
	if (n < 0)
		*--at = '-';
	return buf_add(out, at, (size_t)(end - at));
}

int json_add_fixed(struct buf *out, int64_t n, int decimals)
{
	uint64_t size = n < 0 ? -(uint64_t)n : (uint64_t)n, unit = 1;
	char text[48], *end = text + sizeof(text), *at = end;

	assert(decimals >= 0 && decimals <= 18);
	for (int i = 0; i < decimals; i++)
		unit *= 10;
	for (uint64_t part = size % unit, i = 0; i < (uint64_t)decimals; i++, part /= 10) {
		if (part % 10 != 0 || at != end)
			*--at = (char)('0' + part % 10);
	}
	if (at == end)
		*--at = '0';
	*--at = '.';
	at = digits_before(at, size / unit);
	if (n < 0)
		*--at = '-';
	return buf_add(out, at, (size_t)(end - at));
}

void jw_int(struct jw *w, const char *key, int64_t n)
{
	before(w, key);
	json_add_int(w->out, n);
}

void jw_fixed(struct jw *w, const char *key, int64_t n, int decimals)
{
	before(w, key);
	json_add_fixed(w->out, n, decimals);
}

void jw_raw(struct jw *w, const char *key, const char *json, size_t len)
{
	before(w, key);
	buf_add(w->out, json, len);
}

void jw_preview(struct jw *w, const char *key, const char *s, size_t len, size_t max_chars)
{
	size_t kept = utf8_prefix(s, len, max_chars);

	jw_strn(w, key, s, kept);
	if (kept < len)
		jw_bool(w, "cut", true);
}

/* ---- escaping */

/* Bit 7 of each byte of the result is set where the byte of `w` is below
 * 0x20, '"', '\\', DEL or not ASCII. A borrow may set bits above a byte that
 * already is one; the first set one is right, and only that is used. */
static inline uint64_t special8(uint64_t w)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
	uint64_t quote = w ^ ones * '"', slash = w ^ ones * '\\', del = w ^ ones * 0x7f;

	return ((w - ones * 0x20) | (quote - ones) | (slash - ones) | (del - ones) | w) & high;
}

/* Length of the run at the start that is copied as it stands. */
size_t json_plain(const char *s, size_t len)
{
	size_t i = 0;
	uint64_t word;

	for (; i + 8 <= len; i += 8) {
		memcpy(&word, s + i, 8);
		word = special8(word);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		if (word != 0)
			return i + (size_t)__builtin_ctzll(word) / 8;
#else
		if (word != 0)
			break;
#endif
	}
	for (; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c < 0x20 || c == '"' || c == '\\' || c >= 0x7f)
			break;
	}
	return i;
}

static void add_u(struct buf *out, unsigned cp)
{
	static const char hex[] = "0123456789abcdef";
	char text[6] = {'\\',        'u', hex[cp >> 12 & 15], hex[cp >> 8 & 15], hex[cp >> 4 & 15],
			hex[cp & 15]};

	buf_add(out, text, sizeof(text));
}

static void add_ascii(struct buf *out, unsigned char c)
{
	static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
	const char *at = memchr(from, c, sizeof(from) - 1);
	char two[2] = {'\\', 0};

	if (c == '\0') {
		buf_add(out, "\xef\xbf\xbd", 3);
	} else if (at == NULL) {
		add_u(out, c);
	} else {
		two[1] = to[at - from];
		buf_add(out, two, 2);
	}
}

/* One byte or character that json_plain stopped at; returns its length. */
static size_t add_special(struct buf *out, const char *s, size_t len)
{
	uint32_t cp;
	size_t n;

	if ((unsigned char)s[0] < 0x80) {
		add_ascii(out, (unsigned char)s[0]);
		return 1;
	}
	n = utf8_decode(s, len, &cp);
	if (n == 0) {
		buf_add(out, "\xef\xbf\xbd", 3);
		return 1;
	}
	if (cp == 0x2028 || cp == 0x2029)
		add_u(out, cp);
	else
		buf_add(out, s, n);
	return n;
}

int json_escape(struct buf *out, const char *s, size_t len)
{
	char *at = buf_reserve(out, len + 2);
	size_t run;

	if (at == NULL)
		return buf_check(out);
	run = json_plain(s, len);
	at[0] = '"';
	if (run > 0)
		memcpy(at + 1, s, run);
	out->len += run + 1;
	for (size_t i = run; i < len; i += run) {
		i += add_special(out, s + i, len - i);
		run = json_plain(s + i, len - i);
		buf_add(out, s + i, run);
	}
	return buf_addc(out, '"');
}

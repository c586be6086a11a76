/* JSON in and out; see json.h.
 *
 * Writing: no allocation but the buffer's, no jansson. Text is copied in runs: eight bytes
 * at a time are tested for anything that needs an escape, and only those bytes are looked
 * at one by one. Errors stay in the buffer (buf_check); nesting too deep is a bug of ours.
 *
 * Reading: jansson's trees. No input makes the reader recurse further than JSON_DEPTH_MAX. What
 * jansson allocates lives until the caller's json_decref. */
#include "codec/json.h"

#include <assert.h>
#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/utf8.h"

#define SHOWN_MAX ((size_t)8 << 20)

/* ---- writer */

void jw_init(struct jw *w, struct buf *out)
{
	*w = (struct jw){.out = out};
}

/* Write comma and key before a value. Nothing separates values at the top, where each ends in a
 * newline. */
static void jw_before(struct jw *w, const char *key)
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

static void jw_open(struct jw *w, const char *key, bool array)
{
	uint64_t level;

	jw_before(w, key);
	assert(w->depth < 63);
	level = UINT64_C(1) << ++w->depth;
	w->some &= ~level;
	w->array = array ? w->array | level : w->array & ~level;
	buf_addc(w->out, array ? '[' : '{');
}

void jw_object(struct jw *w, const char *key)
{
	jw_open(w, key, false);
}

void jw_array(struct jw *w, const char *key)
{
	jw_open(w, key, true);
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
	jw_before(w, key);
	json_escape(w->out, s, len);
}

void jw_bool(struct jw *w, const char *key, bool v)
{
	jw_before(w, key);
	buf_adds(w->out, v ? "true" : "false");
}

void jw_null(struct jw *w, const char *key)
{
	jw_before(w, key);
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
	jw_before(w, key);
	json_add_int(w->out, n);
}

void jw_fixed(struct jw *w, const char *key, int64_t n, int decimals)
{
	jw_before(w, key);
	json_add_fixed(w->out, n, decimals);
}

void jw_raw(struct jw *w, const char *key, const char *json, size_t len)
{
	jw_before(w, key);
	buf_add(w->out, json, len);
}

void jw_time(struct jw *w, const char *key, int64_t wall_ms)
{
	char iso[CLOCK_ISO_LEN + 1];

	clock_iso(wall_ms, iso);
	jw_str(w, key, iso);
}

void jw_words(struct jw *w, const char *key, const char *words)
{
	jw_array(w, key);
	for (size_t n; words && *words; words += n + (words[n] == ' ')) {
		n = strcspn(words, " ");
		jw_strn(w, NULL, words, n);
	}
	jw_end(w);
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

/* Length of the leading run that needs no escape. */
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

/* Escape one byte or character that json_plain stopped at; returns its length. */
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

/* ---- the reader: one over the cursor. The tree is jansson's own, whose parser passes each byte
 * through three calls. Text in ava's own form that this reader refuses (exponents, long numbers,
 * any possible fault) goes to jansson, which also words the error; accepted text jansson would
 * have read the same. In foreign text faults with one likely meaning are put right. */

#define DIGITS_MAX 15 /* most digits of a number with a point: they and 1e15 are exact doubles */

enum json_reading { READ_OWN, READ_MODEL, READ_OTHERS };

struct json_reader {
	struct jscan w;
	struct buf mem; /* strings that differ from the text; a key stays until its value is read */
	enum json_reading how;
	const char *why; /* why valid JSON is refused; NULL: it is not */
};

/* A string as the text has it, or, when changed, at the end of `mem`. */
static bool reader_text(struct json_reader *r, struct slice *s)
{
	size_t from = r->mem.len, plain = json_plain(s->s, s->len);
	bool escapes, sound;
	int rv;

	if (plain == s->len)
		return true;
	sound = jscan_sound((struct slice){s->s + plain, s->len - plain}, &escapes);
	if (sound && !escapes)
		return true;
	if (!sound && r->how == READ_OWN)
		return false;
	rv = sound ? jscan_text(&r->mem, *s) : jscan_mended(&r->mem, *s);
	r->w.failed = rv == AVA_EINVAL;
	if (r->mem.data) /* a mended string may be empty */
		*s = (struct slice){r->mem.data + from, r->mem.len - from};
	else
		s->len = 0;
	return rv == 0;
}

/* Both parts of the division are exact, so it is rounded once, as strtod does. */
static json_t *reader_short_number(struct slice s)
{
	const char *point = memchr(s.s, '.', s.len);
	bool minus = s.s[0] == '-';
	size_t digits = s.len - minus;
	double scale = 1;
	int64_t n = 0;

	if (digits > 18 || (point != NULL && digits > DIGITS_MAX + 1))
		return NULL;
	for (const char *at = s.s + minus; at < s.s + s.len; at++) {
		if (at == point)
			continue;
		if (*at < '0' || *at > '9')
			return NULL;
		n = n * 10 + (*at - '0');
		if (point != NULL && at > point)
			scale *= 10;
	}
	if (point != NULL)
		return json_real((double)(minus ? -1 : 1) * ((double)n / scale));
	return json_integer(minus ? -n : n);
}

static json_t *reader_number(struct json_reader *r, struct slice s)
{
	json_t *v = s.s[s.len - 1] == 'y' ? NULL : reader_short_number(s);
	json_error_t why;

	if (v != NULL || r->how == READ_OWN)
		return v;
	v = json_loadb(s.s, s.len, JSON_DECODE_ANY, &why);
	if (v == NULL)
		v = json_loadb(s.s, s.len, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &why);
	if (v == NULL && (s.s[s.len - 1] == 'y' || /* Infinity */
			  json_error_code(&why) == json_error_numeric_overflow))
		return json_real(s.s[0] == '-' ? -DBL_MAX : DBL_MAX);
	r->w.failed = v == NULL && json_error_code(&why) != json_error_out_of_memory;
	return v;
}

static json_t *reader_value(struct json_reader *r, int depth);

static_assert(JSON_DEPTH_MAX == 64, "and so says the sentence below");

static bool reader_members(struct json_reader *r, json_t *object, int depth)
{
	struct slice key;

	for (size_t n = 1; jscan_key(&r->w, &key); n++) {
		size_t was = r->mem.len;
		bool made;
		json_t *v;

		if (!reader_text(r, &key))
			return false;
		made = r->mem.len > was;
		v = reader_value(r, depth);
		if (made) /* `mem` may have moved since */
			key.s = r->mem.data + was;
		r->mem.len = was;
		if (json_object_setn_new_nocheck(object, key.s, key.len, v) != 0)
			return false;
		/* A duplicate key does not make the object larger. */
		if (r->how != READ_OTHERS && json_object_size(object) != n) {
			r->why = r->how == READ_MODEL ? "duplicate object key" : NULL;
			return false;
		}
	}
	return !r->w.failed;
}

static json_t *reader_tree(struct json_reader *r, int depth)
{
	bool list = *r->w.at == '[', good;
	json_t *v;

	if (depth == 0) {
		r->why = r->how == READ_OTHERS ? NULL : "nested deeper than 64";
		return r->how == READ_OTHERS && jscan_pass(&r->w) ? json_null() : NULL;
	}
	v = list ? json_array() : json_object();
	if (v == NULL)
		return NULL;
	good = list ? jscan_array(&r->w) : jscan_object(&r->w) && reader_members(r, v, depth - 1);
	while (list && good && jscan_item(&r->w))
		good = json_array_append_new(v, reader_value(r, depth - 1)) == 0;
	if (good && !r->w.failed)
		return v;
	json_decref(v);
	return NULL;
}

static json_t *reader_value(struct json_reader *r, int depth)
{
	size_t was = r->mem.len;
	struct slice s;
	json_t *v;

	switch (jscan_peek(&r->w)) {
	case '{':
	case '[':
		return reader_tree(r, depth);
	case '"':
		v = jscan_string(&r->w, &s) && reader_text(r, &s) ? json_stringn_nocheck(s.s, s.len)
								  : NULL;
		r->mem.len = was;
		return v;
	default:
		if (!jscan_skip(&r->w, &s))
			return NULL;
		switch (s.s[0]) {
		case 't':
			return json_true();
		case 'f':
			return json_false();
		case 'n':
		case 'N': /* NaN */
			return json_null();
		default:
			return reader_number(r, s);
		}
	}
}

static json_t *reader_run(struct json_reader *r, enum json_reading how, int depth, const char *s,
			  size_t len)
{
	size_t bom = how != READ_OWN && jscan_begins(s, len, "\xef\xbb\xbf") ? 3 : 0;
	json_t *v;

	*r = (struct json_reader){.how = how};
	jscan_init(&r->w, bom > 0 ? s + bom : s, len - bom);
	r->w.loose = how != READ_OWN;
	buf_init(&r->mem, 3 * len + 16); /* each byte may become U+FFFD */
	v = reader_value(r, depth);
	if (v != NULL && (jscan_peek(&r->w) != 0 || r->w.at < r->w.end)) {
		r->w.failed = true;
		json_decref(v);
		v = NULL;
	}
	buf_fini(&r->mem);
	return v;
}

/* The line of `s` that `at` is in. */
static int reader_line(const char *s, const char *at)
{
	int line = 1;

	for (; s < at; s++)
		line += *s == '\n';
	return line;
}

json_t *json_parse(const char *s, size_t len, struct ava_error *err)
{
	struct json_reader r;
	json_t *v = reader_run(&r, READ_OWN, JSON_DEPTH_MAX, s, len);
	json_error_t why;

	if (v != NULL)
		return v;
	if (r.why != NULL) {
		err_set(err, AVA_EINVAL, "line %d: %s", reader_line(s, r.w.at), r.why);
		return NULL;
	}
	v = json_loadb(s, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
	if (v == NULL)
		err_set(err,
			json_error_code(&why) == json_error_out_of_memory ? AVA_ENOMEM : AVA_EINVAL,
			"line %d: %s", why.line > 0 ? why.line : 1, why.text);
	return v;
}

static json_t *read_others(enum json_reading how, const char *s, size_t len, struct ava_error *err)
{
	struct json_reader r;
	json_t *v;
	int line;

	s = s != NULL ? s : ""; /* NULL stands for an empty buffer */
	v = reader_run(&r, how, how == READ_OTHERS ? JSON_OTHERS_DEPTH : JSON_DEPTH_MAX, s, len);
	if (v != NULL)
		return v;
	line = reader_line(s, r.w.at);
	if (r.why != NULL)
		err_set(err, AVA_EINVAL, "line %d: %s", line, r.why);
	else if (!r.w.failed)
		err_set(err, AVA_ENOMEM, "out of memory");
	else if (r.w.at == r.w.end)
		err_set(err, AVA_EINVAL, "line %d: it ends before it is whole", line);
	else
		err_set(err, AVA_EINVAL, "line %d: no JSON from byte %zu on", line,
			(size_t)(r.w.at - s) + 1);
	return NULL;
}

json_t *json_read_others(const char *s, size_t len, struct ava_error *err)
{
	return read_others(READ_OTHERS, s, len, err);
}

json_t *json_read_plain(const char *s, size_t len)
{
	struct json_reader r;

	return reader_run(&r, READ_OWN, JSON_OTHERS_DEPTH, s, len);
}

/* Read a string from its quote on. Returns behind it; NULL: unterminated. */
static const char *lenient_text(struct buf *out, const char *s, const char *end)
{
	char quote = *s++;
	uint32_t cp;

	buf_addc(out, '"');
	for (; s < end && *s != quote; s++) {
		size_t escape = *s == '\\' ? jscan_escape(s, end, &cp) : 0;

		if (escape > 0)
			buf_add(out, s, escape);
		else if (*s == '\\' && end - s > 1 && s[1] == quote) /* in '…' it is a quote */
			buf_addc(out, *++s);
		else if (*s == '\\' || *s == '"' || (unsigned char)*s < 0x20)
			buf_addf(out, "\\u%04x", (unsigned)*s);
		else
			buf_addc(out, *s);
		s += escape > 0 ? escape - 1 : 0;
	}
	buf_addc(out, '"');
	return s < end ? s + 1 : NULL;
}

/* Length of an unquoted word: another language's literal, or a member's name. */
static size_t lenient_word(struct buf *out, const char *s, const char *end)
{
	static const char *const words[][2] = {{"True", "true"}, {"False", "false"},
					       {"None", "null"}, {"undefined", "null"},
					       {"NaN", "null"},  {"Infinity", "null"}};
	const char *to = s, *next;
	size_t n;

	while (to < end && (isalnum((unsigned char)*to) || *to == '_'))
		to++;
	n = (size_t)(to - s);
	for (next = to; next < end && isspace((unsigned char)*next);)
		next++;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strlen(words[i][0]) == n && memcmp(s, words[i][0], n) == 0 &&
		    (next == end || *next != ':')) {
			buf_adds(out, words[i][1]);
			return n;
		}
	if (n > 0 && next < end && *next == ':')
		buf_addf(out, "\"%.*s\"", (int)n, s);
	else
		buf_add(out, s, n);
	return n;
}

/* The length of a comment; 0: none begins here. */
static size_t lenient_comment(const char *s, const char *end)
{
	size_t left = (size_t)(end - s);
	bool block = left > 1 && memcmp(s, "/*", 2) == 0;
	const char *to;

	if (!block && *s != '#' && (left < 2 || memcmp(s, "//", 2) != 0))
		return 0;
	to = block ? memmem(s, left, "*/", 2) : memchr(s, '\n', left);
	return to == NULL ? left : (size_t)(to - s) + (block ? 2 : 1);
}

/* One value, written anew. */
static const char *lenient_value(struct buf *out, const char *s, const char *end)
{
	size_t depth = 0, comma = SIZE_MAX, n;

	do {
		if (*s == '"' || *s == '\'') {
			s = lenient_text(out, s, end);
			comma = SIZE_MAX;
			continue;
		}
		if ((n = lenient_comment(s, end)) > 0) {
			s += n;
			continue;
		}
		depth += *s == '{' || *s == '[';
		depth -= (*s == '}' || *s == ']') && depth > 0;
		if ((*s == '}' || *s == ']') && comma != SIZE_MAX)
			out->data[comma] = ' '; /* drop a comma that nothing follows */
		if (!isspace((unsigned char)*s))
			comma = *s == ',' ? out->len : SIZE_MAX;
		n = isalpha((unsigned char)*s) || *s == '_' ? lenient_word(out, s, end) : 0;
		if (n == 0)
			buf_addc(out, *s);
		s += n > 0 ? n : 1;
		while (s < end && isdigit((unsigned char)s[-1]) && strchr("eE", *s) != NULL)
			buf_addc(out, *s++); /* an exponent belongs to the number */
	} while (s != NULL && s < end && depth > 0 && buf_check(out) == 0);
	return depth == 0 ? s : NULL;
}

/* Skip noise that models put around a value: blanks, tags, fences; closing brackets behind it. */
static const char *lenient_noise(const char *s, const char *end, const char *also)
{
	for (; s < end && (isspace((unsigned char)*s) || (*s != 0 && strchr(also, *s) != NULL));
	     s++) {
		if (*s == '<' && (s = memchr(s, '>', (size_t)(end - s))) == NULL)
			return end;
		if (*s == '`')
			while (end - s > 1 && isalpha((unsigned char)s[1])) /* ```json */
				s++;
	}
	return s;
}

json_t *json_parse_lenient(const char *s, size_t len, struct ava_error *err)
{
	json_t *v = read_others(READ_MODEL, s, len, err);
	const char *end = s + len;
	size_t at = 0, n = 0;
	struct buf out;

	if (v != NULL || (err != NULL && err->code == AVA_ENOMEM))
		return v;
	buf_init(&out, 6 * len + 1);
	s += jscan_begins(s, len, "\xef\xbb\xbf") ? 3 : 0;
	s = lenient_noise(s, end, "<`");
	s += end - s > 1 && s[0] == '{' && s[1] == '{';
	while (s != NULL && s < end && (at == out.len || *s == '{')) {
		size_t before = n, last = at;

		at = out.len;
		s = lenient_value(&out, s, end);
		n = out.len - at;
		if (s != NULL && before > 2 &&
		    (n != before || memcmp(out.data + last, out.data + at, n) != 0))
			s = NULL; /* equal values, or one behind "{}", are fine; two are not */
		s = s != NULL ? lenient_noise(s, end, "<`}]),;") : NULL;
	}
	if (s == end && n > 0)
		v = read_others(READ_MODEL, out.data + at, n, NULL);
	buf_fini(&out);
	return v;
}

const char *json_get_str(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

const char *json_str(const json_t *o, const char *key)
{
	const char *s = json_get_str(o, key);

	return s != NULL ? s : "";
}

const char *json_type_name(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		return "object";
	case JSON_ARRAY:
		return "array";
	case JSON_STRING:
		return "string";
	case JSON_INTEGER:
		return "integer";
	case JSON_REAL:
		return "number";
	case JSON_TRUE:
	case JSON_FALSE:
		return "boolean";
	case JSON_NULL:
		break;
	}
	return "null";
}

int64_t json_get_int(const json_t *o, const char *key, int64_t fallback)
{
	const json_t *v = json_object_get(o, key);

	return json_is_integer(v) ? json_integer_value(v) : fallback;
}

bool json_get_bool(const json_t *o, const char *key, bool fallback)
{
	const json_t *v = json_object_get(o, key);

	return json_is_boolean(v) ? json_is_true(v) : fallback;
}

json_t *json_shown(const char *text)
{
	json_t *v = NULL;
	struct buf b;

	buf_init(&b, SHOWN_MAX);
	if (text && utf8_terminal(&b, text, strlen(text), true) == 0)
		v = json_stringn(b.data ? b.data : "", b.len);
	buf_fini(&b);
	return v;
}

int64_t json_time(const json_t *v)
{
	return json_is_string(v) ? clock_parse_iso(json_string_value(v), json_string_length(v))
				 : -1;
}

int64_t json_get_fixed(const json_t *o, const char *key, int decimals, int64_t fallback)
{
	const json_t *v = json_object_get(o, key);
	int64_t unit = 1, n;
	double scaled;

	for (int i = 0; i < decimals; i++)
		unit *= 10;
	if (json_is_integer(v))
		return __builtin_mul_overflow(json_integer_value(v), unit, &n) ? fallback : n;
	if (!json_is_real(v))
		return fallback;
	scaled = json_real_value(v) * (double)unit;
	return fabs(scaled) < 9223372036854775808.0 /* 2^63 */ ? round_to_int(scaled) : fallback;
}

/* ---- writing values back */

/* The first of 15, 16, 17 digits that reads back as the same double. */
static void dump_real(struct buf *out, double d)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, d);
		if (strtod(text, NULL) == d)
			break;
	}
	/* A host program may have set a locale with a decimal comma. */
	for (char *p = text; *p != '\0'; p++)
		if (strchr("0123456789+-e", *p) == NULL)
			*p = '.';
	buf_adds(out, text);
	if (strpbrk(text, ".e") == NULL)
		buf_adds(out, ".0"); /* stays a real when read again */
}

static int dump_value(struct buf *out, const json_t *v, int depth)
{
	json_t *o = (json_t *)(uintptr_t)v; /* jansson's iterators are not const */
	bool list = json_is_array(v), some = false;
	int rv = 0;

	switch (json_typeof(v)) {
	case JSON_OBJECT:
	case JSON_ARRAY:
		if (depth == 0)
			return AVA_ETOOBIG;
		buf_addc(out, list ? '[' : '{');
		for (size_t i = 0; i < json_array_size(v) && rv == 0; i++) {
			if (i > 0)
				buf_addc(out, ',');
			rv = dump_value(out, json_array_get(v, i), depth - 1);
		}
		for (void *at = json_object_iter(o); at != NULL && rv == 0;
		     at = json_object_iter_next(o, at)) {
			const char *key = json_object_iter_key(at);

			if (some)
				buf_addc(out, ',');
			some = true;
			json_escape(out, key, strlen(key));
			buf_addc(out, ':');
			rv = dump_value(out, json_object_iter_value(at), depth - 1);
		}
		buf_addc(out, list ? ']' : '}');
		return rv;
	case JSON_STRING:
		return json_escape(out, json_string_value(v), json_string_length(v));
	case JSON_INTEGER:
		return json_add_int(out, json_integer_value(v));
	case JSON_REAL:
		dump_real(out, json_real_value(v));
		return buf_check(out);
	case JSON_TRUE:
		return buf_adds(out, "true");
	case JSON_FALSE:
		return buf_adds(out, "false");
	case JSON_NULL:
		return buf_adds(out, "null");
	}
	return AVA_EINVAL;
}

int json_dump(struct buf *out, const json_t *v)
{
	int rv = dump_value(out, v, JSON_DEPTH_MAX);

	return rv != 0 ? rv : buf_check(out);
}

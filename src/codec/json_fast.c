/* Reads what services and our own files write most: objects, arrays, whole
 * numbers and short fractions, strings without \u. jansson takes each byte through three
 * calls; here a string is one scan. The tree is jansson's own, so that all
 * the rest stays as it is.
 *
 * Everything else (exponents, \u, anything that may be wrong, too deep, no
 * memory) is given up at once: the caller asks jansson, which also words the
 * error. So this may refuse what jansson takes, but never take what it refuses
 * nor read it differently; fuzz_json compares. */
#include "codec/json_fast.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "codec/json.h"

#define DIGITS_MAX   18 /* fit into 64 bits whatever they are */
#define FRACTION_MAX 15 /* digits of a number with a point: exact as a double, as is 1e15 */

struct fast {
	const char *at, *end;
	const char *s; /* the string that was read last: in the text, or in `mem` */
	size_t len;
	bool ascii; /* that one: nothing in it can be bad UTF-8 */
	struct buf mem;
};

static char next(struct fast *f)
{
	while (f->at < f->end &&
	       (*f->at == ' ' || *f->at == '\n' || *f->at == '\r' || *f->at == '\t'))
		f->at++;
	return f->at < f->end ? *f->at : 0;
}

static bool take(struct fast *f, char c)
{
	if (next(f) != c)
		return false;
	f->at++;
	return true;
}

/* ---- strings */

static bool plain(unsigned char c)
{
	return c >= 0x20 && c != '"' && c != '\\';
}

static bool escape(struct fast *f)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *which = f->at < f->end && *f->at ? strchr(from, *f->at) : NULL;

	if (which == NULL)
		return false;
	f->at++;
	return buf_addc(&f->mem, to[which - from]) == 0;
}

/* Bytes up to a quote or a backslash, which is left; false: there is neither. */
static bool run(struct fast *f)
{
	unsigned char any = 0;

	for (f->s = f->at; f->at < f->end && plain((unsigned char)*f->at); f->at++)
		any |= (unsigned char)*f->at;
	f->len = (size_t)(f->at - f->s);
	f->ascii = f->ascii && any < 0x80;
	return f->at < f->end && (unsigned char)*f->at >= 0x20;
}

/* Behind the opening quote. */
static bool string(struct fast *f)
{
	f->ascii = true;
	if (!run(f))
		return false;
	if (*f->at++ == '"')
		return true;
	buf_reset(&f->mem);
	while (buf_add(&f->mem, f->s, f->len) == 0 && escape(f) && run(f)) {
		if (*f->at++ != '"')
			continue;
		if (buf_add(&f->mem, f->s, f->len) != 0)
			return false;
		f->s = f->mem.data;
		f->len = f->mem.len;
		return true;
	}
	return false;
}

/* ---- values */

static json_t *value(struct fast *f, int depth);

/* Behind the point. Both parts of the division are exact, so it is rounded once, as
 * strtod does. */
static json_t *fraction(struct fast *f, int64_t n, size_t digits, bool minus)
{
	const char *start = f->at;
	double scale = 1, v;

	for (; f->at < f->end && *f->at >= '0' && *f->at <= '9'; f->at++) {
		if (++digits > FRACTION_MAX)
			return NULL;
		n = n * 10 + (*f->at - '0');
		scale *= 10;
	}
	v = (double)n / scale;
	return f->at > start ? json_real(minus ? -v : v) : NULL;
}

static json_t *number(struct fast *f)
{
	bool minus = *f->at == '-';
	const char *start = f->at += minus;
	int64_t n = 0;

	while (f->at < f->end && *f->at >= '0' && *f->at <= '9' && f->at - start < DIGITS_MAX)
		n = n * 10 + (*f->at++ - '0');
	/* A digit too many or an exponent is no end of a value. */
	if (f->at == start || (*start == '0' && f->at - start > 1))
		return NULL;
	if (f->at < f->end && *f->at == '.') {
		size_t digits = (size_t)(f->at++ - start);

		return fraction(f, n, digits, minus);
	}
	return json_integer(minus ? -n : n);
}

static json_t *word(struct fast *f, const char *text, json_t *v)
{
	size_t len = strlen(text);

	if ((size_t)(f->end - f->at) < len || memcmp(f->at, text, len) != 0)
		return NULL;
	f->at += len;
	return v;
}

static bool items(struct fast *f, json_t *array, int depth)
{
	if (take(f, ']'))
		return true;
	do {
		if (json_array_append_new(array, value(f, depth)) != 0)
			return false;
	} while (take(f, ','));
	return take(f, ']');
}

static bool members(struct fast *f, json_t *object, int depth)
{
	char name[64];

	if (take(f, '}'))
		return true;
	for (size_t n = 1;; n++) {
		if (!take(f, '"') || !string(f) || !f->ascii || f->len >= sizeof(name))
			return false;
		memcpy(name, f->s, f->len);
		name[f->len] = 0;
		/* One that was there already makes the object no larger. */
		if (!take(f, ':') ||
		    json_object_set_new_nocheck(object, name, value(f, depth)) != 0 ||
		    json_object_size(object) != n)
			return false;
		if (!take(f, ','))
			return take(f, '}');
	}
}

static json_t *container(struct fast *f, int depth)
{
	bool array = *f->at++ == '[';
	json_t *v = depth == 0 ? NULL : array ? json_array() : json_object();

	if (v != NULL && (array ? items(f, v, depth - 1) : members(f, v, depth - 1)))
		return v;
	json_decref(v);
	return NULL;
}

static json_t *value(struct fast *f, int depth)
{
	switch (next(f)) {
	case '{':
	case '[':
		return container(f, depth);
	case '"':
		f->at++;
		if (!string(f))
			return NULL;
		return f->ascii ? json_stringn_nocheck(f->s, f->len) : json_stringn(f->s, f->len);
	case 't':
		return word(f, "true", json_true());
	case 'f':
		return word(f, "false", json_false());
	case 'n':
		return word(f, "null", json_null());
	case 0:
		return NULL;
	default:
		return number(f);
	}
}

json_t *json_fast(const char *s, size_t len)
{
	struct fast f = {.at = s, .end = s + len};
	json_t *v;

	buf_init(&f.mem, len + 1);
	v = value(&f, JSON_DEPTH_MAX);
	if (v != NULL && (next(&f) != 0 || f.at < f.end)) {
		json_decref(v);
		v = NULL;
	}
	buf_fini(&f.mem);
	return v;
}

/* First the strict reader; when it refuses, the text is repaired once and read
 * again, so that one bad byte of a model does not cost a turn. What goes into
 * later requests (ids, names, arguments) is made valid here: a service that
 * sent something odd would refuse to get it back. Memory is all that fails. */
#include "provider/stream_json.h"

#include <string.h>

#include "agent/reply.h"
#include "base/buf.h"
#include "base/error.h"
#include "codec/json.h"
#include "codec/utf8.h"

/* ---- repair */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Code unit of "\uXXXX" at `s`; -1: there is none. */
static int unit_at(const char *s, const char *end)
{
	int v = 0;

	if (end - s < 6 || s[0] != '\\' || s[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		if (hex_digit(s[i]) < 0)
			return -1;
		v = v * 16 + hex_digit(s[i]);
	}
	return v;
}

static bool is_low(int unit)
{
	return unit >= 0xdc00 && unit < 0xe000;
}

/* Overwrites in place: every escape that stands for no character. */
static void repair_escapes(char *s, size_t len)
{
	char *end = s + len;
	int unit;

	while (s < end && (s = memchr(s, '\\', (size_t)(end - s))) != NULL) {
		unit = unit_at(s, end);
		if (unit < 0) {
			s += 2;
			continue;
		}
		if (unit >= 0xd800 && unit < 0xdc00 && is_low(unit_at(s + 6, end))) {
			s += 12;
			continue;
		}
		if (unit == 0 || (unit >= 0xd800 && unit < 0xe000))
			memcpy(s + 2, "fffd", 4);
		s += 6;
	}
}

json_t *stream_parse(const char *s, size_t len, struct ava_error *err)
{
	json_t *v = json_parse(s, len, err);
	struct buf fixed;
	int rv;

	if (v != NULL)
		return v;
	buf_init(&fixed, 3 * len + 1);
	rv = utf8_repair(&fixed, s, len);
	if (rv != 0) {
		err_set(err, rv, "out of memory");
	} else if (fixed.len > 0) {
		repair_escapes(fixed.data, fixed.len);
		v = json_parse(fixed.data, fixed.len, err);
	}
	buf_fini(&fixed);
	return v;
}

bool stream_json_clean(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c < 32 || c == 127)
			return false;
		if (c == 0xe2 && i + 2 < len && (unsigned char)s[i + 1] == 0x80 &&
		    ((unsigned char)s[i + 2] | 1) == 0xa9) /* U+2028, U+2029 */
			return false;
	}
	return utf8_valid(s, len);
}

int stream_json_add(struct buf *out, const char *s, size_t len, const json_t *v)
{
	/* A text that had to be repaired to be read may look clean. */
	json_t *strict = stream_json_clean(s, len) ? json_parse(s, len, NULL) : NULL;
	int rv = strict != NULL ? buf_add(out, s, len) : json_dump(out, v);

	json_decref(strict);
	return rv;
}

/* ---- arguments */

static int args_bad(struct turn *t, struct turn_call *c, bool cut, const char *why)
{
	c->args = NULL;
	c->args_len = 0;
	c->args_error =
		cut ? "the reply reached its output limit inside them; use fewer words or several "
		      "calls"
		    : arena_fmt(&t->mem, "they are no JSON object (%s)", why);
	return c->args_error != NULL ? 0 : AVA_ENOMEM;
}

static int args_keep(struct turn *t, struct turn_call *c, const char *s, size_t len,
		     const json_t *v)
{
	struct buf text;
	int rv;

	buf_init(&text, CALL_ARGS_MAX);
	rv = stream_json_add(&text, s, len, v);
	if (rv == AVA_ETOOBIG) {
		rv = args_bad(t, c, false, "larger than 256 KB");
	} else if (rv == 0) {
		c->args = arena_copy(&t->mem, text.data, text.len);
		c->args_len = text.len;
		rv = c->args != NULL ? 0 : AVA_ENOMEM;
	}
	buf_fini(&text);
	return rv;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

int stream_args(struct turn *t, struct turn_call *c, const char *s, size_t len, bool cut)
{
	struct ava_error err = {0};
	json_t *v;
	int rv;

	while (len > 0 && is_space(s[len - 1]))
		len--;
	while (len > 0 && is_space(*s)) {
		s++;
		len--;
	}
	if (len == 0) { /* a call without arguments */
		c->args = "{}";
		c->args_len = 2;
		return 0;
	}
	if (len > CALL_ARGS_MAX)
		return args_bad(t, c, false, "larger than 256 KB");
	v = stream_parse(s, len, &err);
	if (v == NULL)
		return err.code == AVA_ENOMEM ? AVA_ENOMEM : args_bad(t, c, cut, err.text);
	if (!json_is_object(v))
		rv = args_bad(t, c, false, "another kind of value");
	else if (!reply_shallow(v, REPLY_DEPTH_MAX)) /* it has to fit into a request */
		rv = args_bad(t, c, false, "nested too deeply");
	else
		rv = args_keep(t, c, s, len, v);
	json_decref(v);
	return rv;
}

/* ---- names and ids */

int stream_name(struct turn *t, struct turn_call *c, const char *s, size_t len)
{
	struct buf name;
	size_t n = 0, step;
	uint32_t cp;
	int rv;

	buf_init(&name, 3 * CALL_NAME_MAX + 1);
	rv = utf8_repair(&name, s, len < CALL_NAME_MAX ? len : CALL_NAME_MAX);
	if (rv == 0) {
		while (n < name.len) {
			step = utf8_decode(name.data + n, name.len - n, &cp);
			if (n + step > CALL_NAME_MAX)
				break;
			n += step;
		}
		c->name = arena_copy(&t->mem, n > 0 ? name.data : "", n);
		rv = c->name != NULL ? 0 : AVA_ENOMEM;
	}
	buf_fini(&name);
	return rv;
}

static bool name_char(unsigned char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' ||
	       c == '-';
}

int stream_wire_name(struct buf *out, const char *name)
{
	size_t n = 0;

	for (; name[n] != 0 && n < WIRE_NAME_MAX; n++)
		buf_addc(out, name_char((unsigned char)name[n]) ? name[n] : '_');
	return n > 0 ? buf_check(out) : buf_addc(out, '_');
}

static bool id_taken(const struct turn *t, const struct turn_call *c, const char *id)
{
	for (const struct turn_call *o = t->calls; o < c; o++)
		if (strcmp(o->wire_id, id) == 0)
			return true;
	return false;
}

static bool id_good(const char *s, size_t max, bool (*may)(unsigned char ch))
{
	size_t n = 0;

	while (s[n] != 0 && n <= max && may((unsigned char)s[n]))
		n++;
	return n > 0 && n <= max && s[n] == 0;
}

int stream_id(struct turn *t, struct turn_call *c, const char *s, size_t max,
	      bool (*may)(unsigned char ch), const char *tag)
{
	unsigned n = (unsigned)(c - t->calls) + 1;

	if (s != NULL && id_good(s, max, may) && !id_taken(t, c, s)) {
		c->wire_id = arena_copy(&t->mem, s, strlen(s));
		return c->wire_id != NULL ? 0 : AVA_ENOMEM;
	}
	do {
		c->wire_id = arena_fmt(&t->mem, "call_%s_%u", tag, n);
		n += TURN_MAX_CALLS; /* taken only when the service imitated one */
	} while (c->wire_id != NULL && id_taken(t, c, c->wire_id));
	return c->wire_id != NULL ? 0 : AVA_ENOMEM;
}

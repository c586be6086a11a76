/* First the strict reader; when it refuses, the text is repaired once and read
 * again, so that one bad byte of a model does not cost a turn. What goes into
 * later requests (ids, names, arguments) is made valid here: a service that
 * sent something odd would refuse to get it back. Memory is all that fails. */
#include "provider/stream_json.h"

#include <string.h>

#include "agent/reply.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"

/* ---- repair */

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
		jscan_mend(fixed.data, fixed.len);
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

/* ---- hot pieces: what a member of an event is, by the object it stands in. All that
 * the slow path looks at has a row; what has none says nothing to either. */

enum place { CHUNK, CHOICE, DELTA, CALL, FUNCTION, EVENT, BLOCK };

enum meaning {
	INTO,    /* one object, `of` a place; maybe in a list */
	PIECE,   /* text of kind `of` */
	INDEX,   /* of the block or the call */
	TYPE,    /* word that tells what this is */
	NOTHING, /* null, "" or []; else this is not hot */
	ZERO,    /* another number is not hot */
};

static const struct member {
	enum place in;
	const char *key;
	enum meaning meaning;
	int of;
} members[] = {
	{CHUNK, "choices", INTO, CHOICE},
	{CHUNK, "usage", NOTHING},
	{CHUNK, "error", NOTHING},
	{CHOICE, "index", ZERO},
	{CHOICE, "delta", INTO, DELTA},
	{CHOICE, "finish_reason", NOTHING},
	{CHOICE, "native_finish_reason", NOTHING},
	{DELTA, "content", PIECE, DELTA_TEXT},
	{DELTA, "reasoning", PIECE, DELTA_REASONING},
	{DELTA, "reasoning_content", PIECE, DELTA_THINKING},
	{DELTA, "reasoning_details", NOTHING},
	{DELTA, "refusal", NOTHING},
	{DELTA, "tool_calls", INTO, CALL},
	{CALL, "index", INDEX},
	{CALL, "id", NOTHING},
	{CALL, "function", INTO, FUNCTION},
	{FUNCTION, "name", NOTHING},
	{FUNCTION, "arguments", PIECE, DELTA_ARGS},
	{EVENT, "type", TYPE},
	{EVENT, "index", INDEX},
	{EVENT, "delta", INTO, BLOCK},
	{BLOCK, "type", TYPE},
	{BLOCK, "text", PIECE, DELTA_TEXT},
	{BLOCK, "thinking", PIECE, DELTA_THINKING},
	{BLOCK, "partial_json", PIECE, DELTA_ARGS},
};

struct hot {
	struct jscan w;
	struct delta *d;
	struct slice type; /* of the innermost object that has one */
	unsigned places;   /* that were entered */
	bool index;
};

static bool hot_object(struct hot *h, enum place place);

static bool hot_piece(struct hot *h, enum delta_kind kind)
{
	struct slice raw;

	if (jscan_peek(&h->w) != '"')
		return jscan_skip(&h->w, &raw) && slice_is(raw, "null");
	if (!jscan_string(&h->w, &raw))
		return false;
	if (raw.len == 0)
		return true;
	if (h->d->kind != DELTA_EMPTY || !jscan_sound(raw, &h->d->escapes))
		return false; /* it says two things, or is to be mended */
	h->d->kind = kind;
	h->d->text = raw;
	return true;
}

/* {…}; of what stands in a list: [{…}] or []; null. */
static bool hot_into(struct hot *h, enum place place)
{
	bool list = place == CHOICE || place == CALL;
	struct slice raw;

	if (jscan_peek(&h->w) != (list ? '[' : '{'))
		return jscan_skip(&h->w, &raw) && slice_is(raw, "null");
	if (!list)
		return hot_object(h, place);
	jscan_array(&h->w);
	return !jscan_item(&h->w) || (hot_object(h, place) && !jscan_item(&h->w));
}

static bool hot_member(struct hot *h, const struct member *m)
{
	struct slice raw = {"", 0};
	long n;

	switch (m->meaning) {
	case INTO:
		return hot_into(h, (enum place)m->of);
	case PIECE:
		return hot_piece(h, (enum delta_kind)m->of);
	case TYPE:
		return jscan_peek(&h->w) == '"' && jscan_string(&h->w, &h->type) &&
		       (m->in != EVENT || slice_is(h->type, "content_block_delta"));
	case NOTHING:
		return jscan_skip(&h->w, &raw) &&
		       (slice_is(raw, "null") || slice_is(raw, "[]") || slice_is(raw, "\"\""));
	case INDEX:
	case ZERO:
		break;
	}
	n = jscan_skip(&h->w, &raw) ? slice_number(raw, -1) : -1;
	if (m->meaning == ZERO)
		return n == 0;
	h->d->index = (unsigned)n;
	h->index = true;
	return n >= 0 && n < 100000;
}

static bool hot_object(struct hot *h, enum place place)
{
	struct slice key;

	h->places |= 1u << place;
	if (!jscan_object(&h->w))
		return false;
	while (jscan_key(&h->w, &key)) {
		const struct member *m = members;

		while (m < members + ARRAY_LEN(members) &&
		       (m->in != place || !slice_is(key, m->key)))
			m++;
		if (m < members + ARRAY_LEN(members) ? !hot_member(h, m) : !jscan_skip(&h->w, NULL))
			return false;
	}
	return !h->w.failed;
}

static bool hot_read(struct hot *h, struct delta *d, const char *s, size_t len, enum place place)
{
	*h = (struct hot){.d = d};
	*d = (struct delta){.kind = DELTA_EMPTY, .text = {"", 0}};
	jscan_init(&h->w, s, len);
	return jscan_peek(&h->w) == '{' && hot_object(h, place) && jscan_peek(&h->w) == 0 &&
	       h->w.at == h->w.end;
}

void delta_messages(const char *s, size_t len, struct delta *d)
{
	static const char *const types[] = {
		[DELTA_TEXT] = "text_delta",
		[DELTA_THINKING] = "thinking_delta",
		[DELTA_ARGS] = "input_json_delta",
	};
	struct hot h;
	bool good = hot_read(&h, d, s, len, EVENT) && h.index && (h.places & 1u << BLOCK) != 0;

	if (good && d->kind != DELTA_EMPTY)
		good = slice_is(h.type, types[d->kind]);
	else if (good)
		good = slice_is(h.type, types[DELTA_TEXT]) ||
		       slice_is(h.type, types[DELTA_THINKING]) ||
		       slice_is(h.type, types[DELTA_ARGS]);
	if (!good)
		d->kind = DELTA_NONE;
}

void delta_chunk(const char *s, size_t len, struct delta *d)
{
	const unsigned needs = 1u << CHOICE | 1u << DELTA;
	struct hot h;

	if (!hot_read(&h, d, s, len, CHUNK) || (h.places & needs) != needs ||
	    ((h.places & 1u << CALL) != 0 && !h.index))
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

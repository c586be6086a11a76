/* Events of a Messages stream become blocks, blocks a turn.
 *
 *   message_start, (content_block_start, content_block_delta*,
 *   content_block_stop)*, message_delta, message_stop; ping anywhere
 *
 * A block keeps the bytes of its start, and what its deltas brought. At the end
 * the assistant line is put together: text, thinking and calls from their
 * pieces, every other kind of block as its start stood. A signature replaces
 * the one before, usage is cumulative and replaces too. Unknown events are
 * passed over, and so are unknown deltas, but for blocks that are unknown too.
 * `error` and broken JSON end the stream. */
#include "provider/anthropic_stream.h"

#include <stdlib.h>
#include <string.h>

#include "agent/reply.h"
#include "base/error.h"
#include "codec/json.h"
#include "provider/stream_core.h"
#include "provider/stream_error.h"
#include "provider/stream_json.h"
#include "provider/wire.h"

#define BLOCKS_MAX 1024u       /* in one reply, calls among them */
#define FILL_MAX   (64u << 10) /* bytes of a block that unknown deltas fill */

enum block_kind { BLOCK_TEXT, BLOCK_THINKING, BLOCK_CALL, BLOCK_OTHER };

struct block {
	enum block_kind kind;
	enum delta_kind pieces; /* of BLOCK_OTHER: what `text` holds; DELTA_NONE: nothing */
	unsigned index;         /* the service's */
	struct buf start;       /* content_block as it came, clean JSON */
	struct buf text;        /* pieces of text, thinking or input */
	struct buf signature;   /* replaced by each signature_delta */
	struct buf citations;   /* JSON values joined by commas */
	bool ended;             /* its content_block_stop came */
};

struct arriving {
	struct block *blocks;
	unsigned nblocks, cap, ncalls;
	struct usage usage; /* input: without what the cache had */
	bool measured;
	char id[80], stop[40];
};

static void free_reply(void *p)
{
	struct arriving *r = p;

	for (unsigned i = 0; i < r->nblocks; i++) {
		buf_fini(&r->blocks[i].start);
		buf_fini(&r->blocks[i].text);
		buf_fini(&r->blocks[i].signature);
		buf_fini(&r->blocks[i].citations);
	}
	free(r->blocks);
	free(r);
}

static struct arriving *reply_of(struct stream *s)
{
	if (s->reply == NULL)
		s->reply = calloc(1, sizeof(struct arriving));
	return s->reply;
}

static void copy_word(char *out, size_t size, const char *s)
{
	size_t n = 0;

	for (; s != NULL && s[n] > ' ' && s[n] < 127 && n < size - 1; n++)
		out[n] = s[n];
	out[n] = 0;
}

/* ---- blocks */

static struct block *find_block(struct arriving *r, unsigned index)
{
	for (unsigned i = r->nblocks; i > 0; i--)
		if (r->blocks[i - 1].index == index)
			return &r->blocks[i - 1];
	return NULL;
}

static struct block *add_block(struct arriving *r, enum block_kind kind, unsigned index)
{
	unsigned cap = r->cap > 0 ? 2 * r->cap : 4;
	struct block *b;

	if (r->nblocks == r->cap) {
		b = realloc(r->blocks, cap * sizeof(*b));
		if (b == NULL)
			return NULL;
		r->blocks = b;
		r->cap = cap;
	}
	b = &r->blocks[r->nblocks++];
	b->kind = kind;
	b->pieces = DELTA_NONE;
	b->ended = false;
	b->index = index;
	buf_init(&b->start, STREAM_LINE_MAX);
	buf_init(&b->text, TURN_MAX_BYTES);
	buf_init(&b->signature, STREAM_LINE_MAX);
	buf_init(&b->citations, STREAM_LINE_MAX);
	return b;
}

static enum block_kind kind_of(const char *type)
{
	static const char *const types[] = {"text", "thinking", "tool_use"};

	for (int i = 0; type != NULL && i < BLOCK_OTHER; i++)
		if (strcmp(type, types[i]) == 0)
			return (enum block_kind)i;
	return BLOCK_OTHER;
}

/* The bytes of the member as they stand in the event. */
static struct slice raw_member(const char *data, size_t len, const char *name)
{
	struct slice key, value, found = {"", 0};
	struct jscan w;

	jscan_init(&w, data, len);
	if (jscan_object(&w))
		while (jscan_key(&w, &key))
			if (jscan_skip(&w, &value) && slice_is(key, name))
				found = value;
	return w.failed ? (struct slice){"", 0} : found;
}

static int keep_start(struct block *b, struct slice raw, const json_t *value)
{
	if (raw.len > 0)
		return stream_json_add(&b->start, raw.s, raw.len, value);
	return json_dump(&b->start, value);
}

/* `raw`: the bytes of `value`, or none. */
static int begin_block(struct stream *s, struct slice raw, const json_t *value, int64_t index)
{
	struct arriving *r = s->reply;
	enum block_kind kind = kind_of(json_get_str(value, "type"));
	const char *text = NULL;
	struct block *b;
	int rv;

	if (!json_is_object(value))
		return stream_fault(s, REPLY_PROTOCOL, "the service sent a block that is none");
	if (!reply_shallow(value, REPLY_DEPTH_MAX)) /* it has to fit into a request */
		return stream_fault(s, REPLY_PROTOCOL,
				    "the service sent a block nested too deeply");
	if (kind == BLOCK_CALL && ++r->ncalls > TURN_MAX_CALLS)
		return stream_fault(s, REPLY_OTHER, "the reply has more than 256 tool calls");
	if (r->nblocks == BLOCKS_MAX)
		return stream_fault(s, REPLY_OTHER, "the reply has more than 1,024 blocks");
	b = add_block(r, kind, (unsigned)index);
	if (b == NULL)
		return AVA_ENOMEM;
	rv = keep_start(b, raw, value);
	if (kind == BLOCK_TEXT || kind == BLOCK_THINKING)
		text = json_get_str(value, kind == BLOCK_TEXT ? "text" : "thinking");
	if (rv == 0 && text != NULL)
		rv = stream_add_text(s, &b->text, kind == BLOCK_TEXT ? DELTA_TEXT : DELTA_THINKING,
				     text, strlen(text));
	text = kind == BLOCK_THINKING ? json_get_str(value, "signature") : NULL;
	if (rv == 0 && text != NULL)
		rv = buf_adds(&b->signature, text);
	return rv;
}

/* A piece for a block whose start never came: text and thinking have all they
 * need, a call has no name. */
static struct block *block_for(struct arriving *r, enum delta_kind kind, unsigned index)
{
	struct block *b = find_block(r, index);

	if (b != NULL || kind == DELTA_ARGS || r->nblocks == BLOCKS_MAX)
		return b;
	return add_block(r, kind == DELTA_TEXT ? BLOCK_TEXT : BLOCK_THINKING, index);
}

/* A text goes to a text. A block we do not know takes the pieces of one kind. */
static bool fits(struct block *b, enum delta_kind kind)
{
	static const enum delta_kind takes[] = {
		[BLOCK_TEXT] = DELTA_TEXT,
		[BLOCK_THINKING] = DELTA_THINKING,
		[BLOCK_CALL] = DELTA_ARGS,
	};

	if (b->kind != BLOCK_OTHER)
		return takes[b->kind] == kind;
	if (b->pieces == DELTA_NONE)
		b->pieces = kind;
	return b->pieces == kind;
}

static int lost_piece(struct stream *s)
{
	return stream_fault(s, REPLY_PROTOCOL,
			    "the service sent a piece of a block that was not "
			    "begun");
}

static int add_piece(struct stream *s, const struct delta *d)
{
	struct arriving *r = reply_of(s);
	struct block *b;

	if (r == NULL)
		return AVA_ENOMEM;
	b = block_for(r, d->kind, d->index);
	if (b == NULL)
		return lost_piece(s);
	return fits(b, d->kind) ? stream_add(s, &b->text, d) : 0;
}

static int add_citation(struct block *b, const json_t *citation)
{
	if (b->citations.len > 0)
		buf_addc(&b->citations, ',');
	return json_dump(&b->citations, citation);
}

static int fill_member(json_t *start, const char *key, const json_t *old, json_t *v)
{
	struct buf all;
	int rv;

	if (json_is_null(old))
		return json_object_set(start, key, v) == 0 ? 0 : AVA_ENOMEM;
	if (!json_is_string(old) || !json_is_string(v))
		return 0;
	buf_init(&all, STREAM_LINE_MAX);
	buf_add(&all, json_string_value(old), json_string_length(old));
	buf_add(&all, json_string_value(v), json_string_length(v));
	rv = buf_check(&all);
	if (rv == 0 && all.len > 0 &&
	    json_object_set_new(start, key, json_stringn(all.data, all.len)) != 0)
		rv = AVA_ENOMEM;
	buf_fini(&all);
	return rv;
}

/* A delta of a kind we do not know, for a block we do not know: it fills what
 * the block began with. null is replaced, a string goes on. */
static int fill_block(struct stream *s, struct block *b, const json_t *delta)
{
	json_t *start, *v;
	const char *key;
	int rv = 0;

	if (b->start.len > FILL_MAX)
		return stream_fault(s, REPLY_OTHER,
				    "the reply has a block of a kind that is not "
				    "known, larger than 64 KB");
	if (!reply_shallow(delta, REPLY_DEPTH_MAX - 1))
		return stream_fault(s, REPLY_PROTOCOL,
				    "the service sent a block nested too deeply");
	start = json_parse(b->start.data, b->start.len, NULL);
	if (start == NULL) /* it is clean, so this is memory */
		return AVA_ENOMEM;
	json_object_foreach((json_t *)delta, key, v)
	{
		const json_t *old = json_object_get(start, key);

		if (rv == 0 && old != NULL && strcmp(key, "type") != 0)
			rv = fill_member(start, key, old, v);
	}
	if (rv == 0) {
		buf_reset(&b->start);
		rv = json_dump(&b->start, start);
	}
	json_decref(start);
	return rv;
}

/* A delta that is not hot, or was not clean. */
static int slow_delta(struct stream *s, const json_t *event)
{
	static const struct {
		const char *type, *key;
		enum delta_kind kind;
	} shapes[] = {
		{"text_delta", "text", DELTA_TEXT},
		{"input_json_delta", "partial_json", DELTA_ARGS},
		{"thinking_delta", "thinking", DELTA_THINKING},
	};
	const json_t *delta = json_object_get(event, "delta");
	const char *type = json_get_str(delta, "type"), *text;
	unsigned index = (unsigned)json_get_int(event, "index", 0);
	struct block *b = find_block(s->reply, index);

	for (size_t i = 0; type != NULL && i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (strcmp(type, shapes[i].type) != 0)
			continue;
		text = json_get_str(delta, shapes[i].key);
		b = block_for(s->reply, shapes[i].kind, index);
		if (b == NULL)
			return text == NULL || *text == 0 ? 0 : lost_piece(s);
		if (text == NULL || !fits(b, shapes[i].kind))
			return 0;
		return stream_add_text(s, &b->text, shapes[i].kind, text, strlen(text));
	}
	if (b == NULL || type == NULL)
		return 0;
	if (strcmp(type, "signature_delta") == 0) {
		text = json_get_str(delta, "signature");
		buf_reset(&b->signature);
		return text == NULL ? 0 : buf_adds(&b->signature, text);
	}
	if (strcmp(type, "citations_delta") == 0 && json_object_get(delta, "citation") != NULL &&
	    reply_shallow(json_object_get(delta, "citation"), REPLY_DEPTH_MAX - 2))
		return add_citation(b, json_object_get(delta, "citation"));
	return b->kind == BLOCK_OTHER ? fill_block(s, b, delta) : 0;
}

/* ---- usage: what is said last counts */

static bool take_count(const json_t *usage, const char *key, int64_t *out)
{
	const json_t *v = json_object_get(usage, key);

	if (!json_is_integer(v) || json_integer_value(v) < 0 ||
	    json_integer_value(v) >= INT64_MAX / 8)
		return false;
	*out = json_integer_value(v);
	return true;
}

/* The output is known when all of it is there: `last`. */
static void take_usage(struct arriving *r, const json_t *usage, bool last)
{
	take_count(usage, "input_tokens", &r->usage.input);
	take_count(usage, "cache_creation_input_tokens", &r->usage.cache_write);
	take_count(usage, "cache_read_input_tokens", &r->usage.cache_read);
	r->measured |= take_count(usage, "output_tokens", &r->usage.output) && last;
}

static void give_usage(const struct stream *s, struct usage *u)
{
	const struct arriving *r = s->reply;

	*u = r->usage;
	u->input += u->cache_read + u->cache_write;
	u->cost_microusd = -1;
	u->estimated = !r->measured;
	if (!r->measured && u->output < s->payload / 4)
		u->output = s->payload / 4;
}

/* ---- events */

static void take_stop(struct arriving *r, const json_t *part)
{
	if (json_get_str(part, "stop_reason") != NULL)
		copy_word(r->stop, sizeof(r->stop), json_get_str(part, "stop_reason"));
}

/* A message may begin with blocks that are whole; a start that comes a second
 * time repeats them. */
static int take_start(struct stream *s, struct slice raw, const json_t *message)
{
	struct arriving *r = s->reply;
	const json_t *content = json_object_get(message, "content"), *block;
	struct jscan w;
	size_t i;
	int rv = 0;

	copy_word(r->id, sizeof(r->id), json_get_str(message, "id"));
	take_stop(r, message);
	take_usage(r, json_object_get(message, "usage"), false);
	if (r->nblocks > 0 || json_array_size(content) == 0)
		return 0;
	raw = raw_member(raw.s, raw.len, "content");
	jscan_init(&w, raw.s, raw.len);
	jscan_array(&w);
	json_array_foreach(content, i, block)
	{
		struct slice item = {"", 0};

		if (rv == 0 && (!jscan_item(&w) || !jscan_skip(&w, &item)))
			item.len = 0;
		if (rv == 0)
			rv = begin_block(s, item, block, (int64_t)i);
	}
	return rv;
}

static int take_event(struct stream *s, const char *data, size_t len, const json_t *event)
{
	const char *type = json_get_str(event, "type");
	struct arriving *r = s->reply;
	struct block *b;

	if (strcmp(type, "message_start") == 0)
		return take_start(s, raw_member(data, len, "message"),
				  json_object_get(event, "message"));
	if (strcmp(type, "content_block_start") == 0)
		return begin_block(s, raw_member(data, len, "content_block"),
				   json_object_get(event, "content_block"),
				   json_get_int(event, "index", r->nblocks));
	if (strcmp(type, "content_block_delta") == 0)
		return slow_delta(s, event);
	if (strcmp(type, "content_block_stop") == 0) {
		b = find_block(r, (unsigned)json_get_int(event, "index", 0));
		if (b != NULL)
			b->ended = true;
		return 0;
	}
	if (strcmp(type, "message_delta") == 0) {
		take_stop(r, json_object_get(event, "delta"));
		take_usage(r, json_object_get(event, "usage"), true);
		return 0;
	}
	s->done = strcmp(type, "message_stop") == 0;
	return 0;
}

static int on_event(struct stream *s, const char *data, size_t len, bool *progress)
{
	struct delta d;
	struct ava_error err = {0};
	const char *type;
	json_t *event;
	int rv = 0;

	delta_messages(data, len, &d);
	if (d.kind != DELTA_NONE) {
		*progress = true;
		return d.kind == DELTA_EMPTY ? 0 : add_piece(s, &d);
	}
	if (len >= 6 && memcmp(data, "[DONE]", 6) == 0) /* of proxies; message_stop counts */
		return 0;
	event = stream_parse(data, len, &err);
	if (event == NULL && err.code == AVA_ENOMEM)
		return AVA_ENOMEM;
	if (event == NULL)
		return stream_fault(s, REPLY_PROTOCOL, "the service sent an event that is no JSON");
	type = json_get_str(event, "type");
	if (stream_error_member(event) != NULL) {
		rv = stream_error_value(s, event);
	} else if (type != NULL && strcmp(type, "ping") != 0) {
		*progress = true;
		rv = reply_of(s) != NULL ? take_event(s, data, len, event) : AVA_ENOMEM;
	}
	json_decref(event);
	return rv;
}

/* ---- the turn */

static bool blank(const struct buf *b)
{
	for (size_t i = 0; i < b->len; i++)
		if (strchr(" \t\r\n", b->data[i]) == NULL)
			return false;
	return true;
}

/* Members of the start that its pieces do not replace. */
static void add_rest(struct jw *w, const struct block *b, const char *const *known, size_t nknown)
{
	struct slice key, value;
	struct jscan scan;
	char name[64];
	size_t i;

	jscan_init(&scan, b->start.len > 0 ? b->start.data : "{}",
		   b->start.len > 0 ? b->start.len : 2);
	jscan_object(&scan);
	while (jscan_key(&scan, &key)) {
		jscan_skip(&scan, &value);
		for (i = 0; i < nknown && !slice_is(key, known[i]); i++)
			;
		/* A key with escapes may be one of the known. */
		if (i < nknown || scan.failed || slice_is(value, "null") ||
		    key.len >= sizeof(name) || memchr(key.s, '\\', key.len) != NULL)
			continue;
		memcpy(name, key.s, key.len);
		name[key.len] = 0;
		jw_raw(w, name, value.s, value.len);
	}
}

#define REST(w, b, ...)                                                                            \
	add_rest(w, b, (const char *const[]){__VA_ARGS__},                                         \
		 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void write_text(struct jw *w, const struct block *b)
{
	if (blank(&b->text)) /* the service refuses it */
		return;
	jw_object(w, NULL);
	jw_str(w, "type", "text");
	jw_strn(w, "text", b->text.data, b->text.len);
	REST(w, b, "type", "text", "citations");
	if (b->citations.len > 0) {
		jw_array(w, "citations");
		jw_raw(w, NULL, b->citations.data, b->citations.len);
		jw_end(w);
	}
	jw_end(w);
}

/* Without a signature it was cut off, and would be refused; unless it came to
 * its end: services that speak this form and sign nothing want it back. */
static void write_thinking(struct jw *w, const struct block *b, const struct turn *t)
{
	bool whole = b->ended && t->stop != TURN_STOP_LENGTH && !blank(&b->text);

	if (b->signature.len == 0 && !whole)
		return;
	jw_object(w, NULL);
	jw_str(w, "type", "thinking");
	jw_strn(w, "thinking", b->text.len > 0 ? b->text.data : "", b->text.len);
	if (b->signature.len > 0) {
		jw_strn(w, "signature", b->signature.data, b->signature.len);
		REST(w, b, "type", "thinking", "signature");
	} else { /* as the block began: an empty one, or none */
		REST(w, b, "type", "thinking");
	}
	jw_end(w);
}

static void write_call(struct jw *w, const struct block *b, const struct turn_call *c)
{
	jw_object(w, NULL);
	jw_str(w, "type", "tool_use");
	jw_str(w, "id", c->wire_id);
	jw_raw(w, "name", "\"", 1);
	stream_wire_name(w->out, c->name);
	buf_addc(w->out, '"');
	jw_raw(w, "input", c->args != NULL ? c->args : "{}", c->args != NULL ? c->args_len : 2);
	REST(w, b, "type", "id", "name", "input");
	jw_end(w);
}

/* The member that the pieces of a block we do not know are. */
static int write_pieces(struct jw *w, const struct block *b)
{
	struct ava_error err = {0};
	json_t *input;
	int rv = 0;

	if (b->pieces != DELTA_ARGS) {
		jw_strn(w, b->pieces == DELTA_TEXT ? "text" : "thinking", b->text.data,
			b->text.len);
		return 0;
	}
	input = stream_parse(b->text.data, b->text.len, &err);
	if (input == NULL && err.code == AVA_ENOMEM)
		return AVA_ENOMEM;
	jw_raw(w, "input", "", 0);
	if (json_is_object(input))
		rv = stream_json_add(w->out, b->text.data, b->text.len, input);
	else
		buf_adds(w->out, "{}");
	json_decref(input);
	return rv;
}

/* A kind we do not know: byte for byte, unless it came in pieces. */
static int write_other(struct jw *w, const struct block *b)
{
	static const char *const members[] = {
		[DELTA_TEXT] = "text",
		[DELTA_THINKING] = "thinking",
		[DELTA_ARGS] = "input",
	};
	const char *known[2];
	size_t n = 0;
	int rv = 0;

	if (b->text.len > 0)
		known[n++] = members[b->pieces];
	if (b->signature.len > 0)
		known[n++] = "signature";
	if (n == 0) {
		jw_raw(w, NULL, b->start.data, b->start.len);
		return 0;
	}
	jw_object(w, NULL);
	add_rest(w, b, known, n);
	if (b->text.len > 0)
		rv = write_pieces(w, b);
	if (b->signature.len > 0)
		jw_strn(w, "signature", b->signature.data, b->signature.len);
	jw_end(w);
	return rv;
}

static int write_line(const struct arriving *r, const struct turn *t, struct buf *out)
{
	unsigned call = 0;
	struct jw w;
	int rv = 0;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_str(&w, "role", "assistant");
	jw_array(&w, "content");
	for (unsigned i = 0; i < r->nblocks && rv == 0; i++) {
		const struct block *b = &r->blocks[i];

		switch (b->kind) {
		case BLOCK_TEXT:
			write_text(&w, b);
			break;
		case BLOCK_THINKING:
			write_thinking(&w, b, t);
			break;
		case BLOCK_CALL:
			write_call(&w, b, &t->calls[call++]);
			break;
		case BLOCK_OTHER:
			rv = write_other(&w, b);
			break;
		}
	}
	jw_end(&w);
	jw_end(&w);
	return rv != 0 ? rv : buf_check(out);
}

static bool id_char(unsigned char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' ||
	       c == '-';
}

static int make_call(struct stream *s, struct turn *t, const struct block *b, bool cut)
{
	struct turn_call *c = &t->calls[t->ncalls];
	json_t *start = json_parse(b->start.data, b->start.len, NULL);
	const char *name = json_get_str(start, "name");
	struct slice input = {b->text.len > 0 ? b->text.data : "", b->text.len};
	int rv;

	if (start == NULL) /* it is clean, so this is memory */
		return AVA_ENOMEM;
	if (input.len == 0) /* some services send it whole */
		input = raw_member(b->start.data, b->start.len, "input");
	rv = stream_name(t, c, name != NULL ? name : "", name != NULL ? strlen(name) : 0);
	if (rv == 0)
		rv = stream_id(t, c, json_get_str(start, "id"), WIRE_ID_MAX, id_char, s->tag);
	if (rv == 0)
		rv = stream_args(t, c, input.s, input.len, cut);
	json_decref(start);
	t->ncalls += rv == 0;
	return rv;
}

static int make_calls(struct stream *s, struct turn *t)
{
	const struct arriving *r = s->reply;
	int rv = 0;

	if (r->ncalls == 0)
		return 0;
	t->calls = arena_get(&t->mem, r->ncalls * sizeof(*t->calls));
	if (t->calls == NULL)
		return AVA_ENOMEM;
	for (unsigned i = 0; i < r->nblocks && rv == 0; i++)
		if (r->blocks[i].kind == BLOCK_CALL)
			rv = make_call(s, t, &r->blocks[i], t->stop == TURN_STOP_LENGTH);
	return rv;
}

/* All blocks of a kind as one text; blank: "". */
static int join(struct turn *t, const struct arriving *r, enum block_kind kind, const char **out,
		size_t *len)
{
	struct buf all;
	int rv = 0;

	buf_init(&all, TURN_MAX_BYTES);
	for (unsigned i = 0; i < r->nblocks; i++) {
		const struct block *b = &r->blocks[i];

		if (b->kind != kind || b->text.len == 0)
			continue;
		if (kind == BLOCK_THINKING && all.len > 0)
			buf_adds(&all, "\n\n");
		buf_add(&all, b->text.data, b->text.len);
	}
	rv = buf_check(&all);
	if (rv == 0 && !blank(&all)) {
		*out = arena_copy(&t->mem, all.data, all.len);
		*len = all.len;
		rv = *out != NULL ? 0 : AVA_ENOMEM;
	}
	buf_fini(&all);
	return rv;
}

static enum turn_stop stop_of(const char *reason)
{
	static const struct {
		const char *word;
		enum turn_stop stop;
	} stops[] = {
		{"end_turn", TURN_STOP_END},      {"stop_sequence", TURN_STOP_END},
		{"max_tokens", TURN_STOP_LENGTH}, {"tool_use", TURN_STOP_TOOLS},
		{"pause_turn", TURN_STOP_PAUSE},  {"refusal", TURN_STOP_REFUSAL},
	};

	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++)
		if (strcmp(reason, stops[i].word) == 0)
			return stops[i].stop;
	return TURN_STOP_OTHER;
}

static int store_line(const struct arriving *r, struct turn *t)
{
	struct buf line;
	int rv;

	buf_init(&line, TURN_MAX_BYTES);
	rv = write_line(r, t, &line);
	/* Neither text nor calls: not stored, unless the service goes on from it. */
	if (rv == 0 && (t->text_len > 0 || t->ncalls > 0 ||
			(t->stop == TURN_STOP_PAUSE && strstr(line.data, ":[]") == NULL))) {
		t->wire = arena_copy(&t->mem, line.data, line.len);
		t->wire_len = line.len;
		rv = t->wire != NULL ? 0 : AVA_ENOMEM;
	}
	buf_fini(&line);
	return rv;
}

static enum reply_class finish(struct stream *s, struct turn *t)
{
	const struct arriving *r = s->reply;
	int rv;

	t->stop = stop_of(r->stop);
	t->request_id = arena_copy(&t->mem, r->id, strlen(r->id));
	if (t->request_id == NULL)
		return REPLY_OTHER;
	if (strcmp(r->stop, "model_context_window_exceeded") == 0) {
		stream_fault(s, REPLY_OVERFLOW, STREAM_OVERFLOW);
		return REPLY_OVERFLOW;
	}
	if (t->stop == TURN_STOP_REFUSAL) /* what came of it must not be used */
		return REPLY_OK;
	rv = make_calls(s, t);
	if (rv == 0)
		rv = join(t, r, BLOCK_TEXT, &t->text, &t->text_len);
	if (rv == 0)
		rv = join(t, r, BLOCK_THINKING, &t->thinking, &t->thinking_len);
	if (rv == 0)
		rv = store_line(r, t);
	return rv == 0 ? REPLY_OK : REPLY_OTHER;
}

static const struct stream_ops ops = {
	.event = on_event,
	.finish = finish,
	.usage = give_usage,
	.free_reply = free_reply,
};

struct stream *anthropic_stream_new(const struct model *m, const char *tag)
{
	return stream_open(&ops, m, tag);
}

/* The dialect of the Anthropic service: requests, and events of its streams. The lines are those of
 * the Messages form (wire.c), which the offline model speaks too; what is here is the head with its
 * cache mark, the tail with thinking, the mark on the newest turn and the header lines. Encoders
 * fail with their buffer only.
 *
 * Thinking is asked for in the way the model takes (its facts and its drop
 * list); a forced tool and thinking exclude each other, so it is left out
 * then. Budgeted thinking gets half of the output, if that is enough. */
#include <string.h>

#include "agent/reply.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "provider/model.h"
#include "provider/profile.h"
#include "provider/stream_core.h"
#include "provider/wire.h"

#define VERSION  "2023-06-01"
#define LOOKBACK 18 /* blocks; below the 20 over which the service looks for a known prefix */
#define MARK     "\"cache_control\":{\"type\":\"ephemeral\"}"

static int anthropic_head(struct buf *out, const struct dialect_spec *spec)
{
	return wire_write_head(out, spec, model_takes(spec->model_facts, "cache_control"));
}

static int anthropic_headers(struct buf *out, const struct model *m, const char *key)
{
	return wire_headers(out, "anthropic-version: " VERSION "\n", "x-api-key: ", key);
}

static const char user_line[] = "{\"role\":\"user\",", other_line[] = "{\"role\":\"assistant\",";

/* Offset of the last line when it is the user's and ends as user lines do, with a block ("…}]}");
 * else len. Quotes in strings are escaped, so the keys searched for are members. An unknown form
 * gets no mark: a missing mark costs money, a misplaced one the turn. */
static size_t newest_turn(const char *s, size_t len)
{
	size_t at = len;

	if (len < 3 || memcmp(s + len - 3, "}]}", 3) != 0)
		return len;
	while (at-- > 0) {
		if (s[at] == '{' && jscan_begins(s + at, len - at, other_line))
			return len;
		if (s[at] == '{' && jscan_begins(s + at, len - at, user_line))
			/* Arguments of a call may hold text that looks like the start of a line. */
			return stream_complete(s + at, len - at) ? at : len;
	}
	return len;
}

/* Offset behind the last user line among s[0..len); 0: there is none. */
static size_t turn_before(const char *s, size_t len)
{
	struct slice line;
	struct jscan w;
	size_t end = 0;

	jscan_list(&w, s, len);
	while (jscan_next(&w, &line))
		if (jscan_begins(line.s, line.len, user_line))
			end = (size_t)(line.s - s) + line.len;
	return w.failed || end < 3 || memcmp(s + end - 3, "}]}", 3) != 0 ? 0 : end;
}

/* Number of blocks that begin in s[0..len); nested ones count too. */
static unsigned count_blocks(const char *s, size_t len)
{
	static const char begin[] = "{\"type\":\"";
	const char *end = s + len;
	unsigned n = 0;

	while ((s = memmem(s, (size_t)(end - s), begin, sizeof(begin) - 1)) != NULL) {
		s += sizeof(begin) - 1;
		n++;
	}
	return n;
}

/* Insert the cache mark into the block whose last bracket is at `at`. */
static int insert_mark(struct buf *body, size_t at)
{
	static const char mark[] = "," MARK;
	size_t len = body->len, n = sizeof(mark) - 1;
	int rv = buf_add(body, mark, n);

	if (rv == 0) {
		memmove(body->data + at + n, body->data + at, len - at);
		memcpy(body->data + at, mark, n);
	}
	return rv;
}

/* The beginning of the turn under way: the user's last message without results. */
static const char *turn_under_way(const char *s, size_t len)
{
	static const char said[] = "{\"role\":\"user\",\"content\":[{\"type\":\"text\",";
	const char *from = s;
	struct slice line;
	struct jscan w;

	jscan_list(&w, s, len);
	while (jscan_next(&w, &line))
		if (jscan_begins(line.s, line.len, said))
			from = line.s;
	return from;
}

static bool is_no_thinking(struct slice block)
{
	struct slice type = jscan_member(block.s, block.len, "type");

	return !slice_is(type, "\"thinking\"") && !slice_is(type, "\"redacted_thinking\"");
}

/* Remove thinking whose signature the service refuses: of finished turns, or all. Moving the bytes
 * in place is safe since the scanner reads ahead of `out`. */
static void leave_thinking(struct buf *body, size_t lines_from, const struct model *m)
{
	char *s = body->data + lines_from, *out = s;
	size_t len = body->len - lines_from;
	const char *until = model_takes(m, "thinking_blocks") ? turn_under_way(s, len) : s + len;
	struct slice line, in;
	struct jscan w;

	jscan_list(&w, s, len);
	while (jscan_next(&w, &line)) {
		if (out > s)
			*out++ = ',';
		memmove(out, line.s, line.len);
		if (line.s < until && jscan_begins(out, line.len, other_line)) {
			char *blocks, *end = out + line.len;

			in = jscan_member(out, line.len, "content");
			blocks = out + (in.s - out) + 1;
			len = jscan_keep(blocks, in.len - 2, is_no_thinking);
			memmove(blocks + len, in.s + in.len - 1, (size_t)(end - in.s) - in.len + 1);
			line.len -= in.len - 2 - len;
		}
		out += line.len;
	}
	*out = 0;
	body->len = (size_t)(out - body->data);
}

/* Remove the head's cache mark, for a service that rejects it. Quotes in texts are escaped, so only
 * the mark matches. */
static void unmark_head(struct buf *body, size_t head)
{
	static const char mark[] = "," MARK;
	const size_t n = sizeof(mark) - 1;
	char *at = memmem(body->data, head, mark, n);

	if (at == NULL)
		return;
	memmove(at, at + n, (size_t)(body->data + body->len - at) - n);
	body->len -= n;
	body->data[body->len] = 0;
}

/* The service looks for a known prefix over the last 20 blocks only. A turn with more blocks
 * (results and their calls) also gets a mark on the turn before, where the last request ended. */
static int anthropic_mark_cache(struct buf *body, size_t lines_from, const struct model *m)
{
	size_t len, newest, before = 0;
	const char *s;
	int rv;

	if (!model_takes(m, "thinking_blocks.finished") || !model_takes(m, "thinking_blocks"))
		leave_thinking(body, lines_from, m);
	if (!model_takes(m, "cache_control")) {
		unmark_head(body, lines_from);
		return 0;
	}
	s = body->data + lines_from;
	len = body->len - lines_from;
	newest = newest_turn(s, len);
	if (newest == len)
		return 0;
	if (newest > 1 && 2 * count_blocks(s + newest, len - newest) > LOOKBACK)
		before = turn_before(s, newest - 1);
	rv = insert_mark(body, body->len - 3);
	if (rv == 0 && before > 0)
		rv = insert_mark(body, lines_from + before - 3);
	return rv;
}

/* ---- replies. Events become blocks, blocks a turn.
 *
 *   message_start, (content_block_start, content_block_delta*,
 *   content_block_stop)*, message_delta, message_stop; ping anywhere
 *
 * A block keeps the bytes of its start, and what its deltas brought. At the end
 * the assistant line is put together: text, thinking and calls from their
 * pieces, every other kind of block as its start stood. A signature replaces
 * the one before, usage is cumulative and replaces too. Unknown events are
 * passed over, and so are unknown deltas, but for blocks that are unknown too. */

#define FILL_MAX (64u << 10)             /* bytes of a block that unknown deltas fill */
#define ANY      (~(1u << PART_THOUGHT)) /* every kind of block but PART_THOUGHT */

/* `raw`: the bytes of `value`, or none. */
static int anthropic_begin_block(struct stream *s, struct slice raw, const json_t *value,
				 int64_t index)
{
	static const char *const types[] = {"text", "thinking", "tool_use"};
	const char *type = json_str(value, "type");
	unsigned kind = 0;
	struct part *p = NULL;
	int rv;

	while (kind < PART_OTHER && strcmp(type, types[kind]) != 0)
		kind++;
	if (!json_is_object(value))
		return stream_fault(s, REPLY_PROTOCOL, "the service sent a block that is none");
	if (!reply_shallow(value, REPLY_DEPTH_MAX)) /* the value has to fit into a request */
		return stream_fault(s, REPLY_PROTOCOL,
				    "the service sent a block nested too deeply");
	rv = stream_part(s, (enum part_kind)kind, index, &p);
	if (rv != 0)
		return rv;
	rv = raw.len > 0 ? stream_json_add(&p->start, raw.s, raw.len, value)
			 : json_dump(&p->start, value);
	if (rv == 0 && kind == PART_CALL) {
		const char *id = json_get_str(value, "id");

		p->name = strdup(json_str(value, "name"));
		p->id = id != NULL ? strdup(id) : NULL;
		rv = p->name == NULL || (id != NULL && p->id == NULL) ? AVA_ENOMEM : 0;
	} else if (rv == 0 && kind < PART_CALL) {
		const char *text = json_str(value, types[kind]);

		rv = stream_add(s, p, kind == PART_TEXT ? DELTA_TEXT : DELTA_THINKING, text,
				strlen(text));
	}
	if (rv == 0 && kind == PART_THINKING)
		rv = buf_adds(&p->sign, json_str(value, "signature"));
	return rv;
}

/* Text goes to a text block; an unknown block takes pieces of one kind. A piece whose block never
 * started begins one for text and thinking, but not for a call, which would lack its name. */
static int anthropic_place_piece(struct stream *s, enum delta_kind kind, int64_t index,
				 struct part **out)
{
	static const enum delta_kind takes[] = {
		[PART_TEXT] = DELTA_TEXT,
		[PART_THINKING] = DELTA_THINKING,
		[PART_CALL] = DELTA_ARGS,
	};
	struct part *p = stream_find(s, ANY, index);

	if (p == NULL && kind == DELTA_ARGS)
		return stream_fault(s, REPLY_PROTOCOL,
				    "the service sent a piece of a block that was not begun");
	if (p == NULL)
		return stream_part(s, kind == DELTA_TEXT ? PART_TEXT : PART_THINKING, index, out);
	if (p->kind == PART_OTHER && p->of == DELTA_NONE)
		p->of = kind;
	if ((p->kind == PART_OTHER ? p->of : takes[p->kind]) == kind)
		*out = p;
	return 0;
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

/* Merge an unknown delta into the start of an unknown block: null is replaced, a string grows. */
static int fill_block(struct stream *s, struct part *b, const json_t *delta)
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
	if (start == NULL) /* the start is valid JSON, so only memory can fail */
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

/* A delta that delta_read does not know, or that needed repair. */
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
	const json_t *delta = json_object_get(event, "delta"), *citation;
	const char *type = json_get_str(delta, "type");
	int64_t index = json_get_int(event, "index", 0);
	struct part *b = stream_find(s, ANY, index);

	if (type == NULL)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
		if (strcmp(type, shapes[i].type) == 0)
			return stream_piece(s, shapes[i].kind, index,
					    json_get_str(delta, shapes[i].key));
	if (b == NULL)
		return 0;
	if (strcmp(type, "signature_delta") == 0) {
		buf_reset(&b->sign);
		return buf_adds(&b->sign, json_str(delta, "signature"));
	}
	citation = json_object_get(delta, "citation");
	if (strcmp(type, "citations_delta") == 0 && citation != NULL &&
	    reply_shallow(citation, REPLY_DEPTH_MAX - 2)) {
		if (b->cited.len > 0)
			buf_addc(&b->cited, ',');
		return json_dump(&b->cited, citation);
	}
	return b->kind == PART_OTHER ? fill_block(s, b, delta) : 0;
}

/* The later count replaces the earlier one unless it is 0. An output count of 0 replaces it, too,
 * when it is the last event's, since the output is known only at its end. */
static void take_usage(struct arriving *r, const json_t *usage, bool last)
{
	const struct {
		const char *const keys[3]; /* keys of the Messages form, then of chat completions */
		int64_t *count;
	} counts[] = {
		{{"input_tokens", "prompt_tokens"}, &r->usage.input},
		{{"cache_creation_input_tokens"}, &r->usage.cache_write},
		{{"cache_read_input_tokens"}, &r->usage.cache_read},
		{{"output_tokens", "completion_tokens"}, &r->usage.output},
	};

	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		int64_t n = stream_count(usage, counts[i].keys);

		if (n > 0 || (n == 0 && last && i == 3))
			*counts[i].count = n;
		r->measured |= last && i == 3 && n >= 0;
	}
}

/* Whole blocks may stand in the start event; a second start event repeats them. */
static int take_start(struct stream *s, struct slice raw, const json_t *message)
{
	const json_t *content = json_object_get(message, "content"), *block;
	struct jscan w;
	size_t i;
	int rv = 0;

	stream_id(s->reply, json_get_str(message, "id"));
	take_usage(s->reply, json_object_get(message, "usage"), false);
	if (s->reply->nparts > 0)
		return 0;
	stream_stop(s->reply, json_get_str(message, "stop_reason"));
	raw = jscan_member(raw.s, raw.len, "content");
	jscan_init(&w, raw.s, raw.len);
	jscan_array(&w);
	json_array_foreach(content, i, block)
	{
		struct slice item = {"", 0};

		if (rv == 0 && jscan_item(&w))
			jscan_skip(&w, &item);
		if (rv == 0)
			rv = anthropic_begin_block(s, item, block, (int64_t)i);
	}
	return rv;
}

/* A reply in one piece. */
static int anthropic_take_event(struct stream *s, const char *data, size_t len, const json_t *event)
{
	const char *type = json_str(event, "type");
	struct part *b;
	int rv;

	if (strcmp(type, "message_start") == 0)
		return take_start(s, jscan_member(data, len, "message"),
				  json_object_get(event, "message"));
	if (strcmp(type, "message") == 0) {
		rv = take_start(s, (struct slice){data, len}, event);
		for (unsigned i = 0; i < s->reply->nparts; i++)
			s->reply->parts[i].ended = true;
		take_usage(s->reply, json_object_get(event, "usage"), true);
		return rv;
	}
	if (strcmp(type, "content_block_start") == 0 && !s->reply->measured)
		s->reply->stop[0] = 0; /* drop a stop reason that came before this block */
	if (strcmp(type, "content_block_start") == 0)
		return anthropic_begin_block(s, jscan_member(data, len, "content_block"),
					     json_object_get(event, "content_block"),
					     json_get_int(event, "index", s->reply->nparts));
	if (strcmp(type, "content_block_delta") == 0)
		return slow_delta(s, event);
	if (strcmp(type, "content_block_stop") == 0) {
		b = stream_find(s, ANY, json_get_int(event, "index", 0));
		if (b != NULL)
			b->ended = true;
	} else if (strcmp(type, "message_delta") == 0) {
		stream_stop(s->reply, json_get_str(json_object_get(event, "delta"), "stop_reason"));
		take_usage(s->reply, json_object_get(event, "usage"), true);
	} else {
		s->done = strcmp(type, "message_stop") == 0;
	}
	return 0;
}

/* Members of the start that its pieces do not replace. */
static void anthropic_add_rest(struct jw *w, const struct part *b, const char *const *known,
			       size_t nknown)
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
		/* A key with escapes may equal a known one, so leave it out. */
		if (i < nknown || scan.failed || slice_is(value, "null") ||
		    key.len >= sizeof(name) || memchr(key.s, '\\', key.len) != NULL)
			continue;
		memcpy(name, key.s, key.len);
		name[key.len] = 0;
		jw_raw(w, name, value.s, value.len);
	}
}

#define REST(w, b, ...)                                                                            \
	anthropic_add_rest(w, b, (const char *const[]){__VA_ARGS__},                               \
			   ARRAY_LEN(((const char *const[]){__VA_ARGS__})))

static void write_text(struct jw *w, const struct part *b)
{
	if (wire_blank(b->text.data, b->text.len)) /* the service refuses an empty text */
		return;
	jw_object(w, NULL);
	jw_str(w, "type", "text");
	jw_strn(w, "text", b->text.data, b->text.len);
	REST(w, b, "type", "text", "citations");
	if (b->cited.len > 0) {
		jw_array(w, "citations");
		jw_raw(w, NULL, b->cited.data, b->cited.len);
		jw_end(w);
	}
	jw_end(w);
}

/* Thinking without a signature was cut off and would be refused, unless its block ended: some
 * services of this form sign nothing and want it back. */
static void write_thinking(struct jw *w, const struct part *b, const struct turn *t)
{
	bool whole =
		b->ended && t->stop != TURN_STOP_LENGTH && !wire_blank(b->text.data, b->text.len);

	if (b->sign.len == 0 && !whole)
		return;
	jw_object(w, NULL);
	jw_str(w, "type", "thinking");
	jw_strn(w, "thinking", b->text.len > 0 ? b->text.data : "", b->text.len);
	if (b->sign.len > 0) {
		jw_strn(w, "signature", b->sign.data, b->sign.len);
		REST(w, b, "type", "thinking", "signature");
	} else { /* the signature is as in the block's start: empty, or none */
		REST(w, b, "type", "thinking");
	}
	jw_end(w);
}

static void anthropic_write_call(struct jw *w, const struct part *b, const struct turn_call *c)
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

/* Write the member that collected the pieces of an unknown block. */
static int write_pieces(struct jw *w, const struct part *b)
{
	struct ava_error err = {0};
	json_t *input;
	int rv = 0;

	if (b->of != DELTA_ARGS) {
		jw_strn(w, b->of == DELTA_TEXT ? "text" : "thinking", b->text.data, b->text.len);
		return 0;
	}
	input = json_read_others(b->text.data, b->text.len, &err);
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

/* A block of unknown kind: byte for byte, unless it came in pieces. */
static int write_other(struct jw *w, const struct part *b)
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
		known[n++] = members[b->of];
	if (b->sign.len > 0)
		known[n++] = "signature";
	if (n == 0) {
		jw_raw(w, NULL, b->start.data, b->start.len);
		return 0;
	}
	jw_object(w, NULL);
	anthropic_add_rest(w, b, known, n);
	if (b->text.len > 0)
		rv = write_pieces(w, b);
	if (b->sign.len > 0)
		jw_strn(w, "signature", b->sign.data, b->sign.len);
	jw_end(w);
	return rv;
}

static int anthropic_write_line(const struct stream *s, const struct turn *t, struct jw *w)
{
	const struct turn_call *call = t->calls;
	int rv = 0;

	jw_array(w, "content");
	for (unsigned i = 0; i < s->reply->nparts && rv == 0; i++) {
		const struct part *b = &s->reply->parts[i];

		switch (b->kind) {
		case PART_TEXT:
			write_text(w, b);
			break;
		case PART_THINKING:
			write_thinking(w, b, t);
			break;
		case PART_CALL:
			anthropic_write_call(w, b, call++);
			break;
		case PART_OTHER:
			rv = write_other(w, b);
			break;
		case PART_THOUGHT:
			break;
		}
	}
	jw_end(w);
	return rv;
}

static const struct stream_ops ops = {
	.place = anthropic_place_piece,
	.event = anthropic_take_event,
	.line = anthropic_write_line,
	.id_char = wire_id_char,
};

const struct dialect dialect_anthropic = {
	.name = "anthropic",
	.can_force = true,
	.encode_head = anthropic_head,
	.encode_tail = wire_tail,
	.line_kind = wire_line_kind,
	.encode_user = wire_user,
	.encode_results = wire_results,
	.check = wire_check_paused,
	.results = wire_each_result,
	.open_calls = wire_open_calls,
	.path = "/v1/messages",
	.headers = anthropic_headers,
	.mark_cache = anthropic_mark_cache,
	.in_lines = profile_in_messages,
	.stream = &ops,
};

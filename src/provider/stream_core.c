/* The reader of replies, for all dialects.
 *
 * A stream waits as one small block; the reader of events and the reply are made
 * when bytes come. The first bytes tell events from a body (an error, a page of
 * HTML): a body is kept up to STREAM_BODY_MAX and read at the end, when the
 * status of HTTP is known.
 *
 * Events become parts. Most of them are one piece of text, found by a cursor;
 * all others are read as a tree, by the dialect. When the strict reader refuses
 * one it is repaired once and read again, so that one bad byte of a model does
 * not cost a turn.
 *
 * The reply is whole when its end mark was seen (`done`), or its reason and an end
 * of the body that is no break, and only then becomes a turn; nothing after the
 * mark is looked at. What goes into later requests
 * (ids, names, arguments) is made valid: a service that sent something odd would
 * refuse to get it back. Faults are kept for stream_end: the first one counts.
 * Usage of what was not whole is estimated at a quarter of the bytes. Nothing
 * here trusts a byte that came in. */
#include "provider/stream_core.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/reply.h"
#include "agent/tool.h"
#include "base/util.h"
#include "codec/sse.h"
#include "codec/utf8.h"
#include "provider/model.h"
#include "provider/wire.h"

#define TOO_LARGE "the reply is larger than 32 MB"
#define OVERFLOW  "the conversation and the reply are larger than the model's window"
#define PARTS_MAX 1024u /* parts of one reply, calls among them */

/* ---- JSON of services */

/* Is the text one line of characters that every reader takes? */
static bool is_clean(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c < 32 || c == 127)
			return false;
		if (c == 0xe2 && i + 2 < len && (unsigned char)s[i + 1] == 0x80 &&
		    ((unsigned char)s[i + 2] | 1) == 0xa9) /* the last byte of U+2028, U+2029 */
			return false;
	}
	return utf8_valid(s, len);
}

int stream_json_add(struct buf *out, const char *s, size_t len, const json_t *v)
{
	/* Text that is_clean accepts may still have needed repair, so parse it strictly. */
	json_t *strict = is_clean(s, len) ? json_parse(s, len, NULL) : NULL;
	int rv = strict != NULL ? buf_add(out, s, len) : json_dump(out, v);

	json_decref(strict);
	return rv;
}

/* ---- parts */

struct stream *stream_open(const struct stream_ops *ops, const struct model *m, const char *tag)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->ops = ops;
	s->model = m;
	buf_init(&s->body, STREAM_BODY_MAX);
	snprintf(s->tag, sizeof(s->tag), "%s", tag);
	s->payload_max = INT64_MAX;
	return s;
}

/* A token has about four bytes; six are allowed, since a token of blanks has many. */
void stream_asked(struct stream *s, int64_t bytes, int64_t tokens)
{
	s->sent = bytes;
	s->payload_max = MIN(tokens, USAGE_MAX) * 6 + 4096;
}

int64_t stream_rest_ms(const struct stream *s)
{
	if (s->broken_off)
		return 0;
	if (s->done)
		return 1000;
	return s->reply != NULL && s->reply->stop[0] != 0 ? 10000 : -1;
}

int64_t stream_written(const struct stream *s)
{
	return s->payload;
}

void stream_body_end(struct stream *s, enum body_end how)
{
	s->end = (uint8_t)how;
}

static void reply_free(struct arriving *r)
{
	for (unsigned i = 0; i < r->nparts; i++) {
		struct part *p = &r->parts[i];

		free(p->id);
		free(p->name);
		json_decref(p->object);
		buf_fini(&p->text);
		buf_fini(&p->start);
		buf_fini(&p->sign);
		buf_fini(&p->cited);
	}
	json_decref(r->extra);
	free(r->served);
	free(r->parts);
	free(r);
}

void stream_free(struct stream *s)
{
	if (s == NULL)
		return;
	if (s->reply != NULL)
		reply_free(s->reply);
	if (s->sse != NULL)
		sse_fini(s->sse);
	free(s->sse);
	free(s->fault);
	buf_fini(&s->body);
	free(s);
}

void stream_tools(struct stream *s, const struct tool *const *tools, unsigned n)
{
	s->tools = tools;
	s->ntools = n;
}

void stream_on_text(struct stream *s,
		    void (*text)(const char *s, size_t n, bool thinking, void *user), void *user)
{
	s->text = text;
	s->text_user = user;
	for (unsigned i = 0; s->reply && i < s->reply->nparts; i++) {
		const struct part *p = &s->reply->parts[i];

		if (p->kind == PART_TEXT)
			stream_tell(s, p->text.data, p->told, false);
		else if (p->kind == PART_THINKING || p->kind == PART_THOUGHT ||
			 (p->kind == PART_OTHER && p->of == DELTA_THINKING))
			stream_tell(s, p->text.data, p->text.len, true);
	}
}

int stream_fault(struct stream *s, enum reply_class cls, const char *text)
{
	if (s->fault == NULL) {
		s->fault = calloc(1, sizeof(*s->fault));
		if (s->fault == NULL)
			return AVA_ENOMEM;
		stream_error_set(s->fault, cls, text);
	}
	return AVA_EINVAL;
}

int stream_error_value(struct stream *s, const json_t *v)
{
	int rv = stream_fault(s, REPLY_SERVER, "the service ended the reply with an error");

	if (rv == AVA_EINVAL && stream_error_member(v) != NULL)
		stream_error_json(s->fault, 200, v);
	return rv;
}

static int stream_error_text(struct stream *s, const char *data, size_t len)
{
	int rv = stream_fault(s, REPLY_SERVER, "");

	if (rv == AVA_EINVAL)
		stream_error_body(s->fault, 500, NULL, data, len);
	return rv;
}

int stream_part(struct stream *s, enum part_kind kind, int64_t index, struct part **p)
{
	struct arriving *r = s->reply;
	unsigned cap = r->cap > 0 ? 2 * r->cap : 4;
	bool first = kind == PART_TEXT;
	struct part *grown;

	if (kind == PART_CALL && ++r->ncalls > TURN_MAX_CALLS)
		return stream_fault(s, REPLY_OTHER, "the reply has more than 256 tool calls");
	if (r->nparts == PARTS_MAX)
		return stream_fault(s, REPLY_OTHER, "the reply has more than 1,024 parts");
	if (r->nparts == r->cap) {
		grown = realloc(r->parts, cap * sizeof(*grown));
		if (grown == NULL)
			return AVA_ENOMEM;
		r->parts = grown;
		r->cap = cap;
	}
	for (unsigned i = 0; i < r->nparts; i++)
		first = first && (r->parts[i].kind != PART_TEXT || r->parts[i].text.len == 0);
	*p = &r->parts[r->nparts++];
	**p = (struct part){.kind = kind, .index = index, .lead = first ? LEAD_BEGIN : LEAD_OVER};
	buf_init(&(*p)->text, TURN_MAX_BYTES);
	buf_init(&(*p)->start, STREAM_LINE_MAX);
	buf_init(&(*p)->sign, STREAM_LINE_MAX);
	buf_init(&(*p)->cited, STREAM_LINE_MAX);
	return 0;
}

struct part *stream_find(const struct stream *s, unsigned kinds, int64_t index)
{
	for (unsigned i = s->reply->nparts; i > 0; i--) {
		struct part *p = &s->reply->parts[i - 1];

		if ((kinds >> p->kind & 1) != 0 && (index < 0 || p->index == index))
			return p;
	}
	return NULL;
}

void stream_tell(struct stream *s, const char *text, size_t len, bool thinking)
{
	if (s->text != NULL && len > 0)
		s->text(text, len, thinking, s->text_user);
}

bool stream_complete(const char *s, size_t len)
{
	struct jscan w;

	jscan_init(&w, s, len);
	return len > 0 && jscan_skip(&w, NULL) && jscan_peek(&w) == 0 && w.at == w.end;
}

bool stream_repeats(const char *had, size_t n, const char *piece, size_t len, bool named)
{
	if (n == 0 || len == 0 || *piece != '{')
		return false;
	if (had[n - 1] == '}' && stream_complete(had, n))
		return true;
	/* An object may follow, which may begin as the one around it does. */
	return len >= n && memcmp(had, piece, n) == 0 &&
	       (named || strchr(":[, ", had[n - 1]) == NULL);
}

/* Show and count the text of a part from `before` on. */
static int grown(struct stream *s, struct part *p, enum delta_kind kind, size_t before)
{
	size_t len = p->text.len - before;
	char *text = p->text.data;

	s->payload += (int64_t)len;
	if (s->payload > s->payload_max)
		return stream_fault(
			s, REPLY_OTHER,
			"the service went on far beyond the most it was asked to write, "
			"and was stopped");
	if (s->payload > (int64_t)TURN_MAX_BYTES)
		return AVA_ETOOBIG;
	if (kind == DELTA_ARGS) {
		if (stream_repeats(text, before, text + before, len, false)) {
			memmove(text, text + before, len);
			p->text.len = len;
			p->look_at = 0;
		}
	} else if (p->lead == LEAD_BEGIN || p->lead == LEAD_LED) {
		return stream_lead(s, (unsigned)(p - s->reply->parts), false);
	} else if (p->kind == PART_TEXT) {
		stream_show(s, p);
	} else {
		stream_tell(s, text + before, len, kind != DELTA_TEXT);
	}
	if (p->text.len >= p->look_at)
		stream_repeat(s, p);
	return 0;
}

int stream_add(struct stream *s, struct part *p, enum delta_kind kind, const char *text, size_t len)
{
	size_t before = p->text.len;
	int rv = buf_add(&p->text, text, len);

	return rv == 0 ? grown(s, p, kind, before) : rv;
}

int stream_piece(struct stream *s, enum delta_kind kind, int64_t index, const char *text)
{
	struct part *p = NULL;
	int rv;

	if (text == NULL || *text == 0)
		return 0;
	rv = s->ops->place(s, kind, index, &p);
	return rv == 0 && p != NULL ? stream_add(s, p, kind, text, strlen(text)) : rv;
}

int64_t stream_count(const json_t *usage, const char *const *keys)
{
	for (; *keys != NULL; keys++) {
		const json_t *v = json_object_get(usage, *keys);
		char *end = NULL;
		double n = json_is_string(v) ? strtod(json_string_value(v), &end)
					     : (json_is_number(v) ? json_number_value(v) : -1);

		if ((end == NULL || (*end == 0 && end != json_string_value(v))) && n >= 0 &&
		    n <= (double)USAGE_MAX)
			return (int64_t)n;
	}
	return -1;
}

static void copy_word(char *out, size_t size, const char *s)
{
	size_t n = 0;

	for (; s != NULL && s[n] > ' ' && s[n] < 127 && n < size - 1; n++)
		out[n] = s[n];
	out[n] = 0;
}

void stream_id(struct arriving *r, const char *id)
{
	if (id != NULL)
		copy_word(r->id, sizeof(r->id), id);
}

void stream_served(struct arriving *r, const char *model)
{
	char word[128];

	if (model == NULL || r->served != NULL)
		return;
	copy_word(word, sizeof(word), model);
	r->served = strdup(word); /* without memory the name is not told */
}

void stream_stop(struct arriving *r, const char *reason)
{
	if (reason != NULL && strcmp(r->stop, "refusal") != 0)
		copy_word(r->stop, sizeof(r->stop), reason);
}

/* ---- feeding */

static int take_hot(struct stream *s, const struct delta *d)
{
	struct part *p = NULL;
	size_t before;
	int rv;

	if (d->kind == DELTA_EMPTY)
		return 0;
	rv = s->ops->place(s, d->kind, d->index, &p);
	if (rv != 0 || p == NULL)
		return rv;
	before = p->text.len;
	rv = delta_add(&p->text, d);
	return rv == 0 ? grown(s, p, d->kind, before) : rv;
}

static int stream_core_begin(struct stream *s)
{
	s->progress = true;
	if (s->reply == NULL) {
		s->reply = calloc(1, sizeof(*s->reply));
		if (s->reply == NULL)
			return AVA_ENOMEM;
		s->reply->usage.cost_microusd = -1;
	}
	return 0;
}

static enum turn_stop stop_of(const char *reason)
{
	static const struct {
		const char *word;
		enum turn_stop stop;
	} stops[] = {
		{"end_turn", TURN_STOP_END},
		{"stop_sequence", TURN_STOP_END},
		{"stop", TURN_STOP_END},
		{"completed", TURN_STOP_END},
		{"max_tokens", TURN_STOP_LENGTH},
		{"length", TURN_STOP_LENGTH},
		{"max_output_tokens", TURN_STOP_LENGTH},
		{"repeated", TURN_STOP_REPEATED},
		{"incomplete", TURN_STOP_LENGTH},
		{"tool_use", TURN_STOP_TOOLS},
		{"tool_calls", TURN_STOP_TOOLS},
		{"function_call", TURN_STOP_TOOLS},
		{"pause_turn", TURN_STOP_PAUSE},
		{"refusal", TURN_STOP_REFUSAL},
		{"content_filter", TURN_STOP_REFUSAL},
	};

	for (size_t i = 0; i < ARRAY_LEN(stops); i++)
		if (strcmp(reason, stops[i].word) == 0)
			return stops[i].stop;
	return TURN_STOP_OTHER;
}

/* Text or calls came, then a known stop reason: the service meant to end there. */
static bool has_reason(const struct stream *s)
{
	const struct arriving *r = s->reply;

	return r != NULL && (s->payload > 0 || r->ncalls > 0) &&
	       stop_of(r->stop) != TURN_STOP_OTHER;
}

static enum delta_form form_of(const struct stream_ops *ops)
{
	if (ops->items)
		return DELTAS_ITEMS;
	return ops->chat ? DELTAS_CHAT : DELTAS_MESSAGES;
}

/* `name`: the event's name, for data without a type; "error" is an error whatever the data. */
static int take_tree(struct stream *s, const char *data, size_t len, const char *name)
{
	struct ava_error err = {0};
	json_t *event = json_read_others(data, len, &err);
	bool error = strcmp(name, "error") == 0, typed = json_object_get(event, "type") != NULL;
	bool good = json_is_object(event) && !error && stream_error_member(event) == NULL;
	int rv = 0;

	if (good && !typed && form_of(s->ops) != DELTAS_CHAT &&
	    json_object_set_new(event, "type", json_string(name)) != 0)
		rv = AVA_ENOMEM;
	else if (event == NULL && err.code == AVA_ENOMEM)
		rv = AVA_ENOMEM;
	else if (good && strcmp(json_str(event, "type"), "ping") != 0)
		rv = stream_core_begin(s);
	else if (!json_is_object(event) &&
		 (s->ending || json_is_null(event) || wire_blank(data, len)))
		rv = 0; /* skip half an event at the end, and an empty event */
	else if (!good && has_reason(s))
		s->done = true; /* a fault behind the stop reason takes nothing back */
	else if (stream_error_member(event) != NULL)
		rv = stream_error_value(s, event);
	else if (error)
		rv = stream_error_text(s, data, len);
	else if (!good)
		rv = stream_fault(s, REPLY_PROTOCOL, "the service sent an event that is no JSON");
	if (rv == 0 && s->reply != NULL && good)
		rv = s->ops->event(s, data, len, event);
	json_decref(event);
	return rv;
}

static int stream_core_on_event(const struct sse_event *e, void *user)
{
	struct stream *s = user;
	struct delta d = {.kind = DELTA_NONE};
	int rv;

	if (s->done)
		return 0;
	if (e->len >= 6 && memcmp(e->data, "[DONE]", 6) == 0) {
		/* In the Messages form proxies send [DONE]; it counts behind a stop reason. */
		s->done = s->ops->chat || (s->reply != NULL && s->reply->stop[0] != 0);
		return s->done ? stream_core_begin(s) : 0;
	}
	/* The first event is read as a tree: it has the id. */
	if (s->reply != NULL && s->reply->id[0] != 0)
		delta_read(e->data, e->len, form_of(s->ops), &d);
	s->progress |= d.kind != DELTA_NONE;
	rv = d.kind != DELTA_NONE ? take_hot(s, &d) : take_tree(s, e->data, e->len, e->event);
	return rv == AVA_ETOOBIG ? stream_fault(s, REPLY_OTHER, TOO_LARGE) : rv;
}

static const char *const fields[] = {"data:", "event:", "id:", "retry:", ":"};

/* Events begin with a field, a comment or a line end; a body with other bytes. UNKNOWN: a few more
 * bytes decide. */
static enum stream_mode stream_core_mode_of(const char *s, size_t len)
{
	bool maybe = false;

	if (len >= 1 && memcmp(s, "\xef\xbb\xbf", MIN(len, (size_t)3)) == 0) {
		if (len <= 3)
			return STREAM_UNKNOWN;
		s += 3;
		len -= 3;
	}
	if (s[0] == '\n' || s[0] == '\r')
		return STREAM_EVENTS;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		size_t n = strlen(fields[i]);

		if (memcmp(s, fields[i], MIN(n, len)) != 0)
			continue;
		if (len >= n)
			return STREAM_EVENTS;
		maybe = true;
	}
	return maybe ? STREAM_UNKNOWN : STREAM_BODY;
}

static int feed_bytes(struct stream *s, const char *data, size_t len)
{
	int rv = s->mode == STREAM_EVENTS ? sse_feed(s->sse, data, len) : 0;

	/* Keep the bytes, since blank lines and comments may precede a body, too; a sentence needs
	 * no more than fit. Behind a first event they are no body, however they were cut. */
	if (s->reply != NULL || s->fault != NULL)
		buf_reset(&s->body);
	if (rv != 0 || s->reply != NULL || s->fault != NULL)
		return rv;
	return buf_add(&s->body, data, MIN(len, s->body.max - s->body.len));
}

/* Until the mode is known, at most seven bytes wait in `first`. */
static int feed_first(struct stream *s, const char **data, size_t *len)
{
	while (*len > 0 && s->mode == STREAM_UNKNOWN) {
		s->first[s->nfirst++] = *(*data)++;
		(*len)--;
		s->mode = (uint8_t)stream_core_mode_of(s->first, s->nfirst);
		if (s->mode == STREAM_UNKNOWN && s->nfirst == sizeof(s->first))
			s->mode = STREAM_EVENTS; /* events may begin with a BOM */
	}
	if (s->mode == STREAM_EVENTS) {
		s->sse = malloc(sizeof(*s->sse));
		if (s->sse == NULL)
			return AVA_ENOMEM;
		sse_init(s->sse, STREAM_LINE_MAX);
		s->sse->on_event = stream_core_on_event;
		s->sse->user = s;
	}
	return s->mode != STREAM_UNKNOWN ? feed_bytes(s, s->first, s->nfirst) : 0;
}

int stream_feed(struct stream *s, const char *data, size_t len, bool *progress)
{
	int rv = 0;

	*progress = s->progress = false;
	if (s->code < 0)
		return s->code;
	if (s->mode == STREAM_UNKNOWN)
		rv = feed_first(s, &data, &len);
	if (rv == 0 && len > 0)
		rv = feed_bytes(s, data, len);
	*progress = s->progress;
	if (rv == AVA_ETOOBIG)
		stream_fault(s, REPLY_PROTOCOL, "the service sent a line of over 8 MB");
	s->code = s->done ? 0 : rv;
	return s->code;
}

/* ---- the turn */

/* The name of a call for the machine: the tool's own name, else valid UTF-8 of at most
 * CALL_NAME_MAX bytes. */
static int keep_name(const struct stream *st, struct turn *t, struct turn_call *c, const char *s)
{
	const struct tool *tool = reply_tool(st->tools, st->ntools, s);
	struct buf name;
	size_t n = 0, step;
	uint32_t cp;
	int rv;

	buf_init(&name, 3 * CALL_NAME_MAX + 1);
	s = tool != NULL ? tool->name : s;
	rv = utf8_repair(&name, s, strnlen(s, CALL_NAME_MAX));
	while (rv == 0 && n < name.len) {
		step = utf8_decode(name.data + n, name.len - n, &cp);
		if (n + step > CALL_NAME_MAX)
			break;
		n += step;
	}
	if (rv == 0) {
		c->name = arena_copy(&t->mem, n > 0 ? name.data : "", n);
		rv = c->name != NULL ? 0 : AVA_ENOMEM;
	}
	buf_fini(&name);
	return rv;
}

void stream_wire_name(struct buf *out, const char *name)
{
	for (size_t n = 0; n < WIRE_NAME_MAX && (name[n] != 0 || n == 0); n++)
		buf_addc(out, wire_id_char((unsigned char)name[n]) ? name[n] : '_');
}

static int make_calls(const struct stream *s, struct turn *t)
{
	const struct arriving *r = s->reply;
	int rv = 0;

	if (r->ncalls == 0)
		return 0;
	t->calls = arena_get(&t->mem, r->ncalls * sizeof(*t->calls));
	if (t->calls == NULL)
		return AVA_ENOMEM;
	for (unsigned i = 0; i < r->nparts && rv == 0; i++) {
		const struct part *p = &r->parts[i];
		struct turn_call *c = &t->calls[t->ncalls];
		struct slice args = {p->text.data, p->text.len};

		if (p->kind != PART_CALL)
			continue;
		if (args.len == 0) /* some services send all arguments in the start */
			args = jscan_member(p->start.data, p->start.len, "input");
		rv = keep_name(s, t, c, p->name != NULL ? p->name : "");
		if (rv == 0)
			rv = wire_call_id(t, c, p->id, s->ops->chat ? CHAT_ID_MAX : WIRE_ID_MAX,
					  s->ops->id_char, s->tag);
		if (rv == 0)
			rv = stream_args(t, c, reply_tool(s->tools, s->ntools, c->name), args.s,
					 args.len);
		t->ncalls++;
	}
	return rv;
}

/* Join all parts of these kinds (bits) to one text; blank: "". */
static int stream_core_join(struct turn *t, const struct arriving *r, unsigned kinds,
			    const char **out, size_t *len)
{
	struct buf all;
	int rv;

	buf_init(&all, TURN_MAX_BYTES);
	for (unsigned i = 0; i < r->nparts; i++) {
		const struct part *p = &r->parts[i];

		if ((kinds >> p->kind & 1) == 0 || p->text.len == 0)
			continue;
		if (p->kind != PART_TEXT && all.len > 0)
			buf_adds(&all, "\n\n");
		buf_add(&all, p->text.data, p->text.len);
	}
	rv = buf_check(&all);
	if (rv == 0 && !wire_blank(all.data, all.len)) {
		*out = arena_copy(&t->mem, all.data, all.len);
		*len = all.len;
		rv = *out != NULL ? 0 : AVA_ENOMEM;
	}
	buf_fini(&all);
	return rv;
}

static int store_line(const struct stream *s, struct turn *t)
{
	struct buf line;
	struct jw w;
	int rv;

	buf_init(&line, TURN_MAX_BYTES);
	jw_init(&w, &line);
	if (!s->ops->items) {
		jw_object(&w, NULL);
		jw_str(&w, "role", "assistant");
	}
	rv = s->ops->line(s, t, &w);
	if (!s->ops->items)
		jw_end(&w);
	if (rv == 0)
		rv = buf_check(&line);
	/* A reply without text and calls is not stored, unless the service continues from it. */
	if (rv == 0 && (t->text_len > 0 || t->ncalls > 0 ||
			(t->stop == TURN_STOP_PAUSE && strstr(line.data, ":[]") == NULL))) {
		t->wire = arena_copy(&t->mem, line.data, line.len);
		t->wire_len = line.len;
		rv = t->wire != NULL ? 0 : AVA_ENOMEM;
	}
	buf_fini(&line);
	return rv;
}

static int make_turn(struct stream *s, struct turn *t)
{
	const struct arriving *r = s->reply;
	int rv;

	if (strcmp(r->stop, "model_context_window_exceeded") == 0)
		return stream_fault(s, REPLY_OVERFLOW, OVERFLOW);
	t->stop = stop_of(r->stop);
	t->request_id = arena_copy(&t->mem, r->id, strlen(r->id));
	if (r->served != NULL)
		t->served = arena_copy(&t->mem, r->served, strlen(r->served));
	if (t->request_id == NULL || t->served == NULL)
		return AVA_ENOMEM;
	if (t->stop == TURN_STOP_REFUSAL) /* a refused reply must not be used */
		return 0;
	rv = stream_settle(s);
	if (rv == 0)
		rv = stream_take_written(s, t);
	if (rv == 0)
		rv = make_calls(s, t);
	if (rv == 0)
		rv = stream_core_join(t, r, 1u << PART_TEXT, &t->text, &t->text_len);
	if (rv == 0)
		rv = stream_core_join(t, r, 1u << PART_THINKING | 1u << PART_THOUGHT, &t->thinking,
				      &t->thinking_len);
	return rv == 0 ? store_line(s, t) : rv;
}

/* ---- the end */

/* Most bytes a token over a whole request or reply: a lower count is no count. */
#define BYTES_OF_TOKEN_MAX 16
/* A token has at least a byte. Services add a head of their own to a request and may think beyond
 * the limit: a count over the bytes by more than this is no count. */
#define COUNT_SLACK 65536
/* Largest discount that is believed: a cost below price / 64 is no cost. */
#define DISCOUNT_MAX 64

/* Is the reported cost too low for the model's price? */
static bool cheap(const struct stream *s, const struct usage *u)
{
	const struct agent_price *p = &s->model->price;
	double price = (double)u->input * (double)p->input + (double)u->output * (double)p->output;

	return (double)u->cost_microusd * 1e6 * DISCOUNT_MAX < price;
}

/* Usage as the service measured it, as far as bytes allow; else what is known of it, estimated. A
 * refusal keeps the measured counts: some services bill none. */
static void give_usage(const struct stream *s, bool whole, struct usage *u)
{
	const struct arriving *r = s->reply;
	bool measured = whole && r->measured;

	*u = r != NULL ? r->usage : (struct usage){.cost_microusd = -1};
	if (!s->ops->chat || u->cache_read + u->cache_write > u->input) /* `input` lacks them */
		u->input += u->cache_read + u->cache_write;
	u->cache_read = MIN(u->cache_read, u->input);
	u->estimated = !measured;
	u->told = measured ? u->input : 0;
	if (r == NULL || (measured && stop_of(r->stop) == TURN_STOP_REFUSAL))
		return;
	if (s->sent > 0 &&
	    (u->input < s->sent / BYTES_OF_TOKEN_MAX || u->input > s->sent + COUNT_SLACK)) {
		u->input = s->sent / 4;
		u->cache_read = u->cache_write = 0;
		u->estimated = true;
	}
	if (u->output - COUNT_SLACK > s->payload_max) {
		u->output = 0;
		measured = false;
	}
	if (!measured || u->output < s->payload / BYTES_OF_TOKEN_MAX) {
		u->output = MAX(u->output, s->payload / 4);
		u->estimated = true;
	}
	if (u->cost_microusd >= 0 && cheap(s, u))
		u->cost_microusd = -1;
}

static enum reply_class stream_core_failed(const struct stream *s, int status,
					   const char *content_type, struct reply_error *e)
{
	if (s->fault != NULL)
		*e = *s->fault;
	else if (s->code == AVA_ENOMEM)
		stream_error_set(e, REPLY_OTHER, "out of memory for the reply");
	else if (s->mode == STREAM_BODY || (status != 200 && status != 0))
		stream_error_body(e, status, content_type, s->body.len > 0 ? s->body.data : "",
				  s->body.len);
	else if (s->reply != NULL || status == 200)
		stream_error_set(e, REPLY_TRUNCATED,
				 s->reply != NULL ? "the reply broke off before its end"
						  : "the connection ended before the reply began");
	else
		stream_error_set(e, REPLY_NETWORK, "no response arrived");
	give_usage(s, false, &e->usage);
	return e->cls;
}

static enum reply_class stream_core_finish(struct stream *s, struct turn **out,
					   struct reply_error *e)
{
	struct turn *t = turn_new();

	if (t != NULL)
		give_usage(s, true, &t->usage);
	if (t != NULL && make_turn(s, t) == 0) {
		*out = t;
		return REPLY_OK;
	}
	if (s->fault != NULL)
		*e = *s->fault;
	else if (t != NULL && t->mem.used > t->mem.max / 2)
		stream_error_set(e, REPLY_OTHER, TOO_LARGE);
	else
		stream_error_set(e, REPLY_OTHER, "out of memory for the reply");
	if (t != NULL)
		e->usage = t->usage;
	turn_free(t);
	return e->cls;
}

/* Make a body of bytes kept from a stream without events: cut the byte-order mark, blank lines and
 * comments before it. */
static void find_body(struct stream *s)
{
	const char *at = s->body.data, *end;

	if (s->body.len == 0 || s->reply != NULL || s->fault != NULL)
		return;
	end = at + s->body.len;
	if (s->body.len >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
		at += 3;
	while (at < end && (wire_blank(at, 1) || *at == ':')) {
		const char *stop = *at == ':' ? memchr(at, '\n', (size_t)(end - at)) : at;

		at = stop != NULL ? stop + 1 : end;
	}
	if (at == end || stream_core_mode_of(at, (size_t)(end - at)) != STREAM_BODY)
		return;
	s->mode = STREAM_BODY;
	s->body.len = (size_t)(end - at);
	memmove(s->body.data, at, s->body.len + 1);
}

/* Read JSON that came instead of a stream: one reply, or objects behind each other, maybe in a
 * list. An error is left alone. */
static int stream_core_take_body(struct stream *s)
{
	static const char between[] = " \t\r\n,[]";
	const char *at = s->body.data, *end = at + s->body.len;
	json_t *whole = json_read_others(at, s->body.len, &(struct ava_error){0});
	bool error = stream_error_member(whole) != NULL;
	struct slice raw;
	struct jscan w;
	int rv = 0;

	if (json_is_object(whole) && !error && (rv = stream_core_begin(s)) == 0)
		rv = s->ops->event(s, at, s->body.len, whole);
	while (!json_is_object(whole) && !error && rv == 0) {
		while (at < end && memchr(between, *at, sizeof(between) - 1) != NULL)
			at++;
		if (at == end || *at != '{')
			break;
		jscan_init(&w, at, (size_t)(end - at));
		if (!jscan_skip(&w, &raw)) { /* an object that must be mended ends with its line */
			raw.s = memchr(at, '\n', (size_t)(end - at));
			raw.len = (size_t)((raw.s != NULL ? raw.s : end) - at);
		}
		rv = take_tree(s, at, raw.len, "");
		at += raw.len;
	}
	json_decref(whole);
	return rv;
}

/* Is a reply without its end mark whole? Yes with a stop reason; without one when all its calls are
 * complete, and when the usage came too where only the connection's end ended the body. */
static bool is_ended(const struct stream *s)
{
	const struct arriving *r = s->reply;
	bool ended = r != NULL && s->end != BODY_BROKEN;

	if (!ended || r->stop[0] != 0)
		return ended;
	ended = r->ncalls > 0 && (s->end == BODY_WHOLE || r->measured);
	for (unsigned i = 0; i < r->nparts && ended; i++) {
		const struct part *p = &r->parts[i];
		json_t *args = p->kind == PART_CALL && !p->ended && p->text.len > 0
				       ? json_parse(p->text.data, p->text.len, NULL)
				       : NULL;

		ended = p->kind != PART_CALL || p->ended || args != NULL;
		json_decref(args);
	}
	return ended;
}

/* Does the text break off mid-sentence without a stop reason? A proxy may have sent the end mark
 * when its upstream was gone. */
static bool half_a_sentence(const struct arriving *r)
{
	const struct part *last = NULL;
	size_t n;

	if (r->stop[0] != 0 || r->ncalls > 0)
		return false;
	for (unsigned i = 0; i < r->nparts; i++)
		if (r->parts[i].kind == PART_TEXT && r->parts[i].text.len > 0)
			last = &r->parts[i];
	if (last == NULL)
		return false;
	n = last->text.len;
	while (n > 0 && wire_blank(last->text.data + n - 1, 1))
		n--;
	if (n == 0 || (unsigned char)last->text.data[n - 1] >= 0x80) /* letters of any script */
		return false;
	return n == last->text.len && strchr(".!?:;)]}\"'`>*|", last->text.data[n - 1]) == NULL;
}

enum reply_class stream_end(struct stream *s, int status, const char *content_type,
			    struct turn **out, struct reply_error *e)
{
	*out = NULL;
	*e = (struct reply_error){0};
	s->ending = true;
	find_body(s);
	if (!s->done && s->code == 0 && s->mode == STREAM_EVENTS)
		s->code = sse_end(s->sse);
	else if (s->code == 0 && s->mode == STREAM_BODY && status == 200 && s->end != BODY_BROKEN)
		s->code = stream_core_take_body(s);
	if (s->code == 0 && s->fault == NULL)
		s->done |= is_ended(s);
	if (s->done && s->reply != NULL && half_a_sentence(s->reply))
		s->done = false;
	/* A broken connection after the end mark changes nothing. */
	if (s->done && s->reply != NULL && (status == 200 || status == 0))
		return stream_core_finish(s, out, e);
	return stream_core_failed(s, status, content_type, e);
}

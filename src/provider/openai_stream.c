/* Chunks of chat completions become a turn.
 *
 *   data: {"choices":[{"index":0,"delta":{…},"finish_reason":null}]}
 *   data: {"choices":[],"usage":{…}}
 *   data: [DONE]
 *
 * Servers differ most in calls: all with index 0, without index or id, whole
 * arguments as text or as an object. A piece opens a new call when its id is
 * another one, or when it has a name and the call there is complete already; a
 * name is set once. Calls decide that a turn wants tools, never the reason.
 * Reasoning is kept under the name it came with, reasoning_details merged as
 * they were cut, so that both can be sent back. An error in the stream, broken
 * JSON and too many calls end it. */
#include "provider/openai_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "codec/json.h"
#include "provider/model.h"
#include "provider/stream_core.h"
#include "provider/stream_error.h"
#include "provider/stream_json.h"
#include "provider/wire.h"

#define DETAILS_MAX 1024u

struct call {
	int64_t index; /* -1: none was given */
	char *id, *name;
	struct buf args;
	bool named_now; /* its name is of this chunk */
};

struct detail { /* of reasoning_details */
	json_t *object;
	const char *key; /* "text", "summary"; NULL: not cut into pieces */
	struct buf text;
};

struct arriving {
	struct buf text, reasoning;
	const char *reasoning_key; /* NULL: none yet */
	struct call *calls;
	struct detail *details;
	unsigned ncalls, call_cap, ndetails, detail_cap;
	struct usage usage;
	bool measured, refused;
	char id[80], finish[32];
};

static void free_reply(void *p)
{
	struct arriving *r = p;

	buf_fini(&r->text);
	buf_fini(&r->reasoning);
	for (unsigned i = 0; i < r->ncalls; i++) {
		free(r->calls[i].id);
		free(r->calls[i].name);
		buf_fini(&r->calls[i].args);
	}
	for (unsigned i = 0; i < r->ndetails; i++) {
		json_decref(r->details[i].object);
		buf_fini(&r->details[i].text);
	}
	free(r->calls);
	free(r->details);
	free(r);
}

static struct arriving *reply_of(struct stream *s)
{
	struct arriving *r = s->reply;

	if (r == NULL) {
		r = s->reply = calloc(1, sizeof(*r));
		if (r == NULL)
			return NULL;
		buf_init(&r->text, TURN_MAX_BYTES);
		buf_init(&r->reasoning, TURN_MAX_BYTES);
		r->usage.cost_microusd = -1;
	}
	return r;
}

static void copy_word(char *out, size_t size, const char *s)
{
	size_t n = 0;

	for (; s != NULL && s[n] > ' ' && s[n] < 127 && n < size - 1; n++)
		out[n] = s[n];
	out[n] = 0;
}

/* ---- calls */

static struct call *add_call(struct stream *s, int64_t index)
{
	struct arriving *r = s->reply;
	unsigned cap = r->call_cap > 0 ? 2 * r->call_cap : 4;
	struct call *c;

	if (r->ncalls == TURN_MAX_CALLS) {
		stream_fault(s, REPLY_OTHER, "the reply has more than 256 tool calls");
		return NULL;
	}
	if (r->ncalls == r->call_cap) {
		c = realloc(r->calls, cap * sizeof(*c));
		if (c == NULL)
			return NULL;
		r->calls = c;
		r->call_cap = cap;
	}
	c = &r->calls[r->ncalls++];
	*c = (struct call){.index = index};
	buf_init(&c->args, TURN_MAX_BYTES);
	return c;
}

/* The newest call of that index, or the newest at all. */
static struct call *find_call(struct arriving *r, int64_t index)
{
	for (unsigned i = r->ncalls; i > 0; i--)
		if (index < 0 || r->calls[i - 1].index == index)
			return &r->calls[i - 1];
	return NULL;
}

static bool complete(const struct buf *args)
{
	struct jscan w;

	if (args->len == 0)
		return false;
	jscan_init(&w, args->data, args->len);
	return jscan_skip(&w, NULL) && jscan_peek(&w) == 0 && w.at == w.end;
}

/* Some servers make up an id for each piece: another id alone, without a name,
 * begins a call only behind a complete one. */
static bool is_new(const struct call *c, const char *id, const char *name, bool has_args)
{
	bool both = id != NULL && c->id != NULL;

	if (both && strcmp(id, c->id) != 0)
		return name != NULL || (has_args && complete(&c->args));
	if (name == NULL || both)
		return false;
	return c->named_now || complete(&c->args) ||
	       (c->name != NULL && strcmp(c->name, name) != 0);
}

static const char *given(const json_t *o, const char *key)
{
	const char *s = json_get_str(o, key);

	return s != NULL && *s != 0 ? s : NULL;
}

static int set_once(char **to, const char *s)
{
	if (*to == NULL && s != NULL)
		*to = strdup(s);
	return *to == NULL && s != NULL ? AVA_ENOMEM : 0;
}

static int add_args(struct stream *s, struct call *c, const json_t *args)
{
	struct buf text;
	int rv;

	if (json_is_string(args))
		return stream_add_text(s, &c->args, DELTA_ARGS, json_string_value(args),
				       json_string_length(args));
	if (!json_is_object(args))
		return 0;
	buf_init(&text, STREAM_LINE_MAX);
	rv = json_dump(&text, args);
	if (rv == 0)
		rv = stream_add_text(s, &c->args, DELTA_ARGS, text.data, text.len);
	buf_fini(&text);
	return rv;
}

static int take_call(struct stream *s, const json_t *piece)
{
	struct arriving *r = s->reply;
	const json_t *function = json_object_get(piece, "function");
	const json_t *args = json_object_get(function, "arguments");
	const char *id = given(piece, "id"), *name = given(function, "name");
	int64_t index = json_get_int(piece, "index", -1);
	bool has_args = json_is_object(args) || json_string_length(args) > 0;
	struct call *c = find_call(r, index);
	int rv;

	if (c == NULL && id == NULL && name == NULL && !has_args)
		return 0;
	if (c == NULL || is_new(c, id, name, has_args))
		c = add_call(s, index);
	if (c == NULL)
		return s->fault != NULL ? AVA_EINVAL : AVA_ENOMEM;
	c->named_now |= name != NULL;
	rv = set_once(&c->id, id);
	if (rv == 0)
		rv = set_once(&c->name, name);
	return rv == 0 ? add_args(s, c, args) : rv;
}

static int take_calls(struct stream *s, const json_t *pieces)
{
	struct arriving *r = s->reply;
	const json_t *piece;
	size_t i;
	int rv = 0;

	for (unsigned k = 0; k < r->ncalls; k++)
		r->calls[k].named_now = false;
	json_array_foreach(pieces, i, piece)
	{
		if (rv == 0 && json_is_object(piece))
			rv = take_call(s, piece);
	}
	return rv;
}

/* ---- reasoning */

/* Which member of it comes in pieces; its first event may not have it yet. */
static const char *text_key(const json_t *o)
{
	const char *type = json_get_str(o, "type");

	if (json_get_str(o, "text") != NULL)
		return "text";
	if (json_get_str(o, "summary") != NULL)
		return "summary";
	if (type == NULL || json_object_get(o, "data") != NULL)
		return NULL;
	if (strcmp(type, "reasoning.text") == 0)
		return "text";
	return strcmp(type, "reasoning.summary") == 0 ? "summary" : NULL;
}

/* `o` goes on where `d` stopped: the same kind, the same place. A signature
 * is the last of a block. */
static bool continues(const struct detail *d, const json_t *o)
{
	const char *key = text_key(o);

	if (d->key == NULL || (key != NULL && strcmp(key, d->key) != 0) ||
	    json_object_get(o, "data") != NULL || given(d->object, "signature") != NULL)
		return false;
	return json_equal(json_object_get(d->object, "type"), json_object_get(o, "type")) &&
	       (json_object_get(o, "index") == NULL ||
		json_equal(json_object_get(d->object, "index"), json_object_get(o, "index")));
}

static struct detail *add_detail(struct stream *s, const json_t *o)
{
	struct arriving *r = s->reply;
	unsigned cap = r->detail_cap > 0 ? 2 * r->detail_cap : 4;
	struct detail *d;

	if (r->ndetails == DETAILS_MAX) {
		stream_fault(s, REPLY_OTHER, "the reply has more than 1,024 pieces of reasoning");
		return NULL;
	}
	if (r->ndetails == r->detail_cap) {
		d = realloc(r->details, cap * sizeof(*d));
		if (d == NULL)
			return NULL;
		r->details = d;
		r->detail_cap = cap;
	}
	d = &r->details[r->ndetails];
	*d = (struct detail){.object = json_deep_copy(o), .key = text_key(o)};
	if (d->object == NULL)
		return NULL;
	buf_init(&d->text, TURN_MAX_BYTES);
	r->ndetails++;
	return d;
}

static int update_detail(struct detail *d, const json_t *o)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)o, key, v)
	{
		if (!json_is_null(v) && strcmp(key, d->key) != 0 &&
		    json_object_set(d->object, key, v) != 0)
			return AVA_ENOMEM;
	}
	return 0;
}

/* `shown`: its text came as plain reasoning too. */
static int take_detail(struct stream *s, const json_t *o, bool shown)
{
	struct arriving *r = s->reply;
	struct detail *d = r->ndetails > 0 ? &r->details[r->ndetails - 1] : NULL;
	const char *text = text_key(o) != NULL ? json_get_str(o, text_key(o)) : NULL;
	int rv = 0;

	if (d != NULL && continues(d, o))
		rv = update_detail(d, o);
	else
		d = add_detail(s, o);
	if (d == NULL)
		return s->fault != NULL ? AVA_EINVAL : AVA_ENOMEM;
	if (rv != 0 || text == NULL)
		return rv;
	rv = stream_add_text(s, &d->text, DELTA_ARGS, text, strlen(text));
	if (rv == 0 && !shown)
		rv = stream_add_text(s, &r->reasoning, DELTA_REASONING, text, strlen(text));
	return rv;
}

static int take_reasoning(struct stream *s, const json_t *delta)
{
	static const char *const keys[] = {"reasoning_content", "reasoning"};
	const json_t *details = json_object_get(delta, "reasoning_details"), *o;
	struct arriving *r = s->reply;
	bool shown = false;
	size_t i;
	int rv = 0;

	for (size_t k = 0; k < 2 && rv == 0; k++) {
		const char *text = given(delta, keys[k]);

		/* Some send both; the one that came first counts. */
		if (text == NULL || (r->reasoning_key != NULL && r->reasoning_key != keys[k] &&
				     strcmp(r->reasoning_key, keys[k]) != 0))
			continue;
		r->reasoning_key = keys[k];
		shown = true;
		rv = stream_add_text(s, &r->reasoning, DELTA_REASONING, text, strlen(text));
	}
	json_array_foreach(details, i, o)
	{
		if (rv == 0 && json_is_object(o))
			rv = take_detail(s, o, shown);
	}
	return rv;
}

/* ---- chunks */

/* The texts of a list of parts; those of other kinds are passed over. */
static int take_parts(struct stream *s, const json_t *parts, struct buf *out, enum delta_kind kind)
{
	const json_t *part;
	const char *text;
	size_t i;
	int rv = 0;

	json_array_foreach(parts, i, part)
	{
		text = json_get_str(part, "text");
		if (rv == 0 && text != NULL)
			rv = stream_add_text(s, out, kind, text, strlen(text));
	}
	return rv;
}

/* Text, or parts: {"type":"text","text":T}, {"type":"thinking","thinking":[…]}. */
static int take_content(struct stream *s, const json_t *content)
{
	struct arriving *r = s->reply;
	const json_t *part;
	size_t i;
	int rv = 0;

	if (json_is_string(content))
		return stream_add_text(s, &r->text, DELTA_TEXT, json_string_value(content),
				       json_string_length(content));
	json_array_foreach(content, i, part)
	{
		if (rv == 0)
			rv = take_parts(s, json_object_get(part, "thinking"), &r->reasoning,
					DELTA_REASONING);
	}
	return rv == 0 ? take_parts(s, content, &r->text, DELTA_TEXT) : rv;
}

/* The reason, and the one of the service behind OpenRouter, which says more. */
static int take_finish(struct stream *s, const json_t *choice)
{
	struct arriving *r = s->reply;
	const char *finish = given(choice, "finish_reason");
	const char *native = given(choice, "native_finish_reason");

	if (finish != NULL)
		copy_word(r->finish, sizeof(r->finish), finish);
	if (native != NULL && strcmp(native, "refusal") == 0)
		r->refused = true;
	if (native != NULL && strcmp(native, "model_context_window_exceeded") == 0)
		return stream_fault(s, REPLY_OVERFLOW, STREAM_OVERFLOW);
	return finish != NULL && strcmp(finish, "error") == 0 ? stream_error_value(s, choice) : 0;
}

static int take_choice(struct stream *s, const json_t *choice)
{
	struct arriving *r = s->reply;
	const json_t *delta = json_object_get(choice, "delta");
	int rv;

	if (json_get_int(choice, "index", 0) != 0)
		return 0;
	rv = take_finish(s, choice);
	if (rv != 0)
		return rv;
	if (given(delta, "refusal") != NULL)
		r->refused = true;
	rv = take_reasoning(s, delta);
	if (rv == 0)
		rv = take_content(s, json_object_get(delta, "content"));
	return rv == 0 ? take_calls(s, json_object_get(delta, "tool_calls")) : rv;
}

static int64_t count(const json_t *o, const char *key)
{
	int64_t n = json_get_int(o, key, 0);

	return n > 0 && n < INT64_MAX / 8 ? n : 0;
}

static void take_usage(struct arriving *r, const json_t *usage)
{
	const json_t *in = json_object_get(usage, "prompt_tokens_details");
	const json_t *out = json_object_get(usage, "completion_tokens_details");
	int64_t upstream;

	if (!json_is_integer(json_object_get(usage, "prompt_tokens")))
		return;
	r->measured = true;
	r->usage.input = count(usage, "prompt_tokens");
	r->usage.output = count(usage, "completion_tokens");
	r->usage.cache_read = count(in, "cached_tokens");
	if (r->usage.cache_read == 0) /* DeepSeek */
		r->usage.cache_read = count(usage, "prompt_cache_hit_tokens");
	r->usage.cache_write = count(in, "cache_write_tokens");
	r->usage.reasoning = count(out, "reasoning_tokens");
	r->usage.cost_microusd = json_get_fixed(usage, "cost", 6, -1);
	if (r->usage.cost_microusd < 0)
		r->usage.cost_microusd = -1;
	upstream = json_get_fixed(json_object_get(usage, "cost_details"), "upstream_inference_cost",
				  6, 0);
	/* With a key of one's own the service bills its part only. */
	if (r->usage.cost_microusd >= 0 && json_get_bool(usage, "is_byok", false) && upstream > 0 &&
	    upstream < INT64_MAX / 8)
		r->usage.cost_microusd += upstream;
}

static void give_usage(const struct stream *s, struct usage *u)
{
	const struct arriving *r = s->reply;

	*u = r->usage;
	u->estimated = !r->measured;
	if (!r->measured)
		u->output = s->payload / 4;
}

static int take_chunk(struct stream *s, const json_t *chunk)
{
	struct arriving *r = s->reply;
	const json_t *choices = json_object_get(chunk, "choices"), *choice;
	size_t i;
	int rv = 0;

	if (r->id[0] == 0)
		copy_word(r->id, sizeof(r->id), json_get_str(chunk, "id"));
	take_usage(r, json_object_get(chunk, "usage"));
	json_array_foreach(choices, i, choice)
	{
		if (rv == 0)
			rv = take_choice(s, choice);
	}
	return rv;
}

/* A piece the scanner read; its reply has begun. */
static int take_piece(struct stream *s, const struct delta *d)
{
	static const char *const keys[] = {
		[DELTA_THINKING] = "reasoning_content",
		[DELTA_REASONING] = "reasoning",
	};
	struct arriving *r = s->reply;
	struct call *c;

	switch (d->kind) {
	case DELTA_TEXT:
		return stream_add(s, &r->text, d);
	case DELTA_THINKING:
	case DELTA_REASONING:
		if (r->reasoning_key == NULL)
			r->reasoning_key = keys[d->kind];
		return strcmp(r->reasoning_key, keys[d->kind]) == 0
			       ? stream_add(s, &r->reasoning, d)
			       : 0;
	case DELTA_ARGS:
		c = find_call(r, d->index);
		if (c == NULL)
			c = add_call(s, d->index);
		if (c == NULL)
			return s->fault != NULL ? AVA_EINVAL : AVA_ENOMEM;
		return stream_add(s, &c->args, d);
	case DELTA_NONE:
	case DELTA_EMPTY:
		break;
	}
	return 0;
}

static int on_event(struct stream *s, const char *data, size_t len, bool *progress)
{
	struct ava_error err = {0};
	struct delta d;
	json_t *chunk;
	int rv;

	*progress = true;
	if (reply_of(s) == NULL)
		return AVA_ENOMEM;
	if (len >= 6 && memcmp(data, "[DONE]", 6) == 0) {
		s->done = true;
		return 0;
	}
	/* The first chunk has the id. */
	d.kind = DELTA_NONE;
	if (((struct arriving *)s->reply)->id[0] != 0)
		delta_chunk(data, len, &d);
	if (d.kind != DELTA_NONE)
		return take_piece(s, &d);
	chunk = stream_parse(data, len, &err);
	if (chunk == NULL && err.code == AVA_ENOMEM)
		rv = AVA_ENOMEM;
	else if (!json_is_object(chunk))
		rv = stream_fault(s, REPLY_PROTOCOL, "the service sent an event that is no JSON");
	else if (stream_error_member(chunk) != NULL)
		rv = stream_error_value(s, chunk);
	else
		rv = take_chunk(s, chunk);
	json_decref(chunk);
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

static bool id_char(unsigned char c)
{
	return c > ' ' && c < 127 && c != '"' && c != '\\';
}

static int make_call(struct stream *s, struct turn *t, const struct call *from, bool cut)
{
	struct turn_call *c = &t->calls[t->ncalls];
	const char *name = from->name != NULL ? from->name : "";
	int rv = stream_name(t, c, name, strlen(name));

	if (rv == 0)
		rv = stream_id(t, c, from->id, WIRE_ID_MAX, id_char, s->tag);
	if (rv == 0)
		rv = stream_args(t, c, from->args.len > 0 ? from->args.data : "", from->args.len,
				 cut);
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
	for (unsigned i = 0; i < r->ncalls && rv == 0; i++)
		rv = make_call(s, t, &r->calls[i], t->stop == TURN_STOP_LENGTH);
	return rv;
}

static void write_call(struct jw *w, const struct turn_call *c)
{
	jw_object(w, NULL);
	jw_str(w, "id", c->wire_id);
	jw_str(w, "type", "function");
	jw_object(w, "function");
	jw_raw(w, "name", "\"", 1);
	stream_wire_name(w->out, c->name);
	buf_addc(w->out, '"');
	jw_strn(w, "arguments", c->args != NULL ? c->args : "{}",
		c->args != NULL ? c->args_len : 2);
	jw_end(w);
	jw_end(w);
}

/* As they came, only no longer in pieces. */
static int write_details(struct jw *w, const struct arriving *r)
{
	int rv = 0;

	jw_array(w, "reasoning_details");
	for (unsigned i = 0; i < r->ndetails && rv == 0; i++) {
		const struct detail *d = &r->details[i];

		if (d->key != NULL && d->text.len > 0 &&
		    json_object_set_new(d->object, d->key,
					json_stringn(d->text.data, d->text.len)) != 0)
			return AVA_ENOMEM;
		jw_raw(w, NULL, "", 0);
		rv = json_dump(w->out, d->object);
	}
	jw_end(w);
	return rv;
}

static bool may_return(const struct stream *s, const char *key)
{
	return s->model == NULL || model_takes(s->model, key);
}

static int write_line(const struct stream *s, const struct turn *t, struct buf *out)
{
	const struct arriving *r = s->reply;
	struct jw w;
	int rv = 0;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_str(&w, "role", "assistant");
	if (t->text_len > 0)
		jw_strn(&w, "content", t->text, t->text_len);
	else
		jw_null(&w, "content");
	if (r->ndetails > 0 && may_return(s, "reasoning_details"))
		rv = write_details(&w, r);
	else if (r->ndetails == 0 && r->reasoning_key != NULL && may_return(s, r->reasoning_key))
		jw_strn(&w, r->reasoning_key, r->reasoning.data, r->reasoning.len);
	if (t->ncalls > 0) {
		jw_array(&w, "tool_calls");
		for (unsigned i = 0; i < t->ncalls; i++)
			write_call(&w, &t->calls[i]);
		jw_end(&w);
	}
	jw_end(&w);
	return rv != 0 ? rv : buf_check(out);
}

static enum turn_stop stop_of(const struct arriving *r)
{
	static const struct {
		const char *word;
		enum turn_stop stop;
	} stops[] = {
		{"stop", TURN_STOP_END},
		{"length", TURN_STOP_LENGTH},
		{"tool_calls", TURN_STOP_TOOLS},
		{"function_call", TURN_STOP_TOOLS},
		{"content_filter", TURN_STOP_REFUSAL},
	};

	if (r->refused)
		return TURN_STOP_REFUSAL;
	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++)
		if (strcmp(r->finish, stops[i].word) == 0)
			return stops[i].stop;
	return TURN_STOP_OTHER;
}

static int keep_text(struct turn *t, const struct buf *b, const char **out, size_t *len)
{
	if (blank(b))
		return 0;
	*out = arena_copy(&t->mem, b->data, b->len);
	*len = b->len;
	return *out != NULL ? 0 : AVA_ENOMEM;
}

static int store_line(const struct stream *s, struct turn *t)
{
	struct buf line;
	int rv;

	if (t->text_len == 0 && t->ncalls == 0)
		return 0; /* never stored */
	buf_init(&line, TURN_MAX_BYTES);
	rv = write_line(s, t, &line);
	if (rv == 0) {
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

	t->stop = stop_of(r);
	t->request_id = arena_copy(&t->mem, r->id, strlen(r->id));
	if (t->request_id == NULL)
		return REPLY_OTHER;
	if (t->stop == TURN_STOP_REFUSAL) /* what came of it must not be used */
		return REPLY_OK;
	rv = make_calls(s, t);
	if (rv == 0)
		rv = keep_text(t, &r->text, &t->text, &t->text_len);
	if (rv == 0)
		rv = keep_text(t, &r->reasoning, &t->thinking, &t->thinking_len);
	if (rv == 0)
		rv = store_line(s, t);
	return rv == 0 ? REPLY_OK : REPLY_OTHER;
}

static const struct stream_ops ops = {
	.event = on_event,
	.finish = finish,
	.usage = give_usage,
	.free_reply = free_reply,
	.bare_done = true,
};

struct stream *openai_stream_new(const struct model *m, const char *tag)
{
	return stream_open(&ops, m, tag);
}

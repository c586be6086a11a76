/* Encoders of the Messages form, and the reader of recorded lines in all forms.
 *
 *   head   {"model":…,"system":[{"type":"text","text":…}],"tools":[…],"messages":[
 *   lines  {"role":"user","content":[{"type":"text","text":…}]}
 *          {"role":"assistant","content":[{"type":"text",…},{"type":"tool_use",…}]}
 *          {"role":"user","content":[{"type":"tool_result",…},…,{"type":"text",…}]}
 *   tail   ],"max_tokens":8192,"stream":true}
 *
 * Chat completions (written by openai.c) look like this:
 *
 *          {"role":"user","content":T}
 *          {"role":"assistant","content":T or null,…,"tool_calls":[{"id":I,"type":
 *              "function","function":{"name":N,"arguments":"{…}"}},…]}
 *          {"role":"tool","tool_call_id":I,"content":T}     one for each call
 *
 * and the items of responses (responses.c), of which a reply is several, each a line:
 *          {"role":"user","content":T}
 *          {"type":"reasoning",…,"encrypted_content":E}
 *          {"type":"message",…,"role":"assistant","content":[{"type":"output_text","text":T}]}
 *          {"type":"function_call",…,"call_id":I,"name":N,"arguments":"{…}"}
 *          {"type":"function_call_output","call_id":I,"output":T}
 *
 * The reader tells them apart message by message: a list of blocks is the Messages
 * form, a type that stands first an item. Its blocks are of the same kinds for all, so
 * check, results, open calls, compaction and messages.jsonl know one shape.
 *
 * Bytes matter: what is written here once is sent with every later request,
 * so keys have one order and nothing is rendered twice. Encoders fail only
 * with the buffer or on a text the service refuses. The reader takes lines of
 * this process and of files; bad ones give AVA_EINVAL, never more. */
#include "provider/wire.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/tool.h"
#include "base/error.h"
#include "base/strmap.h"
#include "base/util.h"
#include "codec/json.h"
#include "provider/chat_request.h"
#include "provider/model.h"

/* ---- encoders. Thinking is asked for in the way the model takes (its facts and its drop
 * list); a forced tool and thinking exclude each other, so it is left out then. Budgeted
 * thinking gets half of the output, if that is enough. */

#define BUDGET_MIN 1024

static void wire_text_block(struct jw *w, const char *text, size_t len)
{
	jw_object(w, NULL);
	jw_str(w, "type", "text");
	jw_strn(w, "text", text, len);
	jw_end(w);
}

int wire_write_head(struct buf *out, const struct dialect_spec *spec, bool mark)
{
	const struct model *m = spec->model_facts;
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_str(&w, "model", m != NULL && m->wire_name[0] != 0 ? m->wire_name : spec->model);
	if (spec->system[0] != 0) { /* the service refuses an empty text */
		jw_array(&w, "system");
		jw_object(&w, NULL);
		jw_str(&w, "type", "text");
		jw_str(&w, "text", spec->system);
		if (mark)
			jw_raw(&w, "cache_control", "{\"type\":\"ephemeral\"}", 20);
		jw_end(&w);
		jw_end(&w);
	}
	if (spec->ntools > 0)
		jw_array(&w, "tools");
	for (unsigned i = 0; i < spec->ntools; i++) {
		jw_object(&w, NULL);
		tool_write(&w, spec->tools[i], "input_schema", spec->brief);
		jw_end(&w);
	}
	if (spec->ntools > 0)
		jw_end(&w);
	jw_array(&w, "messages"); /* the request's tail closes the array */
	return buf_check(out);
}

int wire_head(struct buf *out, const struct dialect_spec *spec)
{
	return wire_write_head(out, spec, false);
}

static void wire_add_thinking(struct buf *out, const struct model *m, int64_t max_output)
{
	bool budget = m->thinking == MODEL_THINKING_BUDGET;

	if (budget && !model_takes(m, "thinking.budget_tokens"))
		budget = false;
	else if (!budget && !model_takes(m, "thinking.adaptive"))
		budget = true;
	if (budget ? !model_takes(m, "thinking.budget_tokens") || max_output < 2 * BUDGET_MIN
		   : !model_takes(m, "thinking.adaptive"))
		return;
	if (budget)
		buf_addf(out, ",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":%lld}",
			 (long long)(max_output / 2));
	else
		buf_adds(out, ",\"thinking\":{\"type\":\"adaptive\"}");
}

int wire_tail(struct buf *out, const struct model *m, bool thinking, const struct agent_infer *call)
{
	buf_addf(out, "],\"max_tokens\":%lld", (long long)call->max_output);
	if (call->force_submit && model_takes(m, "tool_choice"))
		buf_adds(out, ",\"tool_choice\":{\"type\":\"tool\",\"name\":\"submit_result\"}");
	else if (thinking && m != NULL && m->thinking != MODEL_THINKING_NONE &&
		 model_takes(m, "thinking"))
		wire_add_thinking(out, m, call->max_output);
	buf_adds(out, ",\"stream\":true}");
	return buf_check(out);
}

bool wire_id_char(unsigned char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' ||
	       c == '-';
}

static bool wire_id_taken(const struct turn *t, const struct turn_call *c, const char *id)
{
	for (const struct turn_call *o = t->calls; o < c; o++)
		if (strcmp(o->wire_id, id) == 0)
			return true;
	return false;
}

int wire_call_id(struct turn *t, struct turn_call *c, const char *id, size_t max,
		 bool (*may)(unsigned char ch), const char *tag)
{
	unsigned n = (unsigned)(c - t->calls) + 1;
	size_t len = 0;

	while (id != NULL && len <= max && may((unsigned char)id[len]))
		len++;
	if (len > 0 && len <= max && id[len] == 0 && !wire_id_taken(t, c, id)) {
		c->wire_id = arena_copy(&t->mem, id, len);
		return c->wire_id != NULL ? 0 : AVA_ENOMEM;
	}
	do {
		c->wire_id = arena_fmt(&t->mem, "call_%s_%u", tag, n);
		n += TURN_MAX_CALLS; /* an id is taken only when the service imitated ours */
	} while (c->wire_id != NULL && wire_id_taken(t, c, c->wire_id));
	return c->wire_id != NULL ? 0 : AVA_ENOMEM;
}

int wire_headers(struct buf *out, const char *own, const char *key_name, const char *key)
{
	for (const char *s = key; s != NULL && *s != 0; s++)
		if (*s <= ' ' || *s == 127)
			return AVA_EINVAL;
	buf_adds(out, "content-type: application/json\naccept: text/event-stream\n");
	buf_adds(out, own);
	if (key != NULL && key[0] != 0) {
		buf_adds(out, key_name);
		buf_adds(out, key);
		buf_addc(out, '\n');
	}
	return buf_check(out);
}

bool wire_blank(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] != ' ' && s[i] != '\t' && s[i] != '\r' && s[i] != '\n')
			return false;
	return true;
}

bool wire_raw_blank(struct slice raw)
{
	for (size_t i = 0; i < raw.len; i++) {
		char c = raw.s[i];

		if (c == '\\' && i + 1 < raw.len)
			c = strchr("nrt", raw.s[++i]) != NULL ? ' ' : 'x';
		if (c != ' ')
			return false;
	}
	return true;
}

static void open_message(struct jw *w, struct buf *out, const char *role)
{
	jw_init(w, out);
	jw_object(w, NULL);
	jw_str(w, "role", role);
	jw_array(w, "content");
}

static int close_message(struct jw *w)
{
	jw_end(w);
	jw_end(w);
	return buf_check(w->out);
}

int wire_user(struct buf *out, const char *text, size_t len)
{
	struct jw w;

	if (wire_blank(text, len))
		return AVA_EINVAL;
	open_message(&w, out, "user");
	wire_text_block(&w, text, len);
	return close_message(&w);
}

int wire_results(struct buf *out, const struct turn *t, const char *const *notices,
		 unsigned nnotices)
{
	unsigned blocks = t->ncalls;
	struct jw w;

	for (unsigned i = 0; i < nnotices; i++)
		blocks += !wire_blank(notices[i], strlen(notices[i]));
	if (blocks == 0)
		return AVA_EINVAL; /* the service refuses a message without content */
	open_message(&w, out, "user");
	for (unsigned i = 0; i < t->ncalls; i++) {
		const struct turn_call *c = &t->calls[i];

		jw_object(&w, NULL);
		jw_str(&w, "type", "tool_result");
		jw_str(&w, "tool_use_id", c->wire_id);
		jw_strn(&w, "content", c->output != NULL ? c->output : "", c->output_len);
		if (!c->success)
			jw_bool(&w, "is_error", true);
		jw_end(&w);
	}
	for (unsigned i = 0; i < nnotices; i++)
		if (!wire_blank(notices[i], strlen(notices[i])))
			wire_text_block(&w, notices[i], strlen(notices[i]));
	return close_message(&w);
}

int wire_assistant(struct buf *out, const struct turn *t)
{
	bool has_text = !wire_blank(t->text, t->text_len);
	struct jw w;

	if (!has_text && t->ncalls == 0)
		return 0;
	open_message(&w, out, "assistant");
	if (has_text)
		wire_text_block(&w, t->text, t->text_len);
	for (unsigned i = 0; i < t->ncalls; i++) {
		const struct turn_call *c = &t->calls[i];

		jw_object(&w, NULL);
		jw_str(&w, "type", "tool_use");
		jw_str(&w, "id", c->wire_id);
		jw_str(&w, "name", c->name);
		jw_raw(&w, "input", c->args != NULL ? c->args : "{}",
		       c->args != NULL ? c->args_len : 2);
		jw_end(&w);
	}
	return close_message(&w);
}

/* ---- lines */

bool wire_is_message(struct slice key)
{
	return slice_is(key, "role") || slice_is(key, "type");
}

enum line_kind wire_line_kind(const char *line, size_t len)
{
	static const struct {
		const char *begins;
		enum line_kind kind;
	} kinds[] = {
		{CHAT_BRIDGE, LINE_USER}, /* stands for an empty reply, with the results */
		{"{\"role\":\"assistant\"", LINE_REPLY},
		{"{\"role\":", LINE_USER},
		{"{\"type\":\"function_call_output\"", LINE_USER},
		{"{\"type\":", LINE_REPLY},
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (jscan_begins(line, len, kinds[i].begins))
			return kinds[i].kind;
	return LINE_NONE;
}

/* ---- reader */

void wire_reader_init(struct wire_reader *r, const char *lines, size_t len)
{
	*r = (struct wire_reader){0};
	jscan_list(&r->w, lines, len);
}

/* Read the rest of a message whose blocks were read: "}" and no more keys, so that a second
 * "content" cannot hide anything. */
static bool close_read(struct wire_reader *r)
{
	struct wire_block b;
	struct slice key;
	int more;

	while ((more = wire_block(r, &b)) == 1)
		;
	if (r->chat) /* in this form `wire_block` read all members */
		return more == 0;
	return !r->w.failed && !jscan_key(&r->w, &key) && !r->w.failed;
}

/* Read the members of a message of chat completions, or of an item, `key` first. */
static bool wire_read_members(struct wire_reader *r, struct slice key, bool more)
{
	struct slice parts = {"[]", 2};
	struct wire_block *b = &r->whole;
	struct jscan *w = &r->w;
	bool said = false;

	for (; more; more = jscan_key(w, &key)) {
		bool string = jscan_peek(w) == '"', list = jscan_peek(w) == '[';

		if (string && (slice_is(key, "content") || slice_is(key, "output")))
			said = jscan_string(w, &b->text);
		else if (string && (slice_is(key, "tool_call_id") || slice_is(key, "call_id")))
			jscan_string(w, &b->id);
		else if (string && slice_is(key, "name"))
			jscan_string(w, &b->name);
		else if (string && slice_is(key, "arguments"))
			b->input_string = jscan_string(w, &b->input);
		else if (jscan_begins(key.s, key.len, "reasoning") || slice_is(key, "summary"))
			jscan_skip(w, &b->thought);
		else if (list && slice_is(key, r->item ? "content" : "tool_calls"))
			jscan_skip(w, &parts);
		else if (list && slice_is(key, "content")) /* text parts with a mark */
			said = jscan_skip(w, NULL);
		else
			jscan_skip(w, NULL);
	}
	r->held = b->type != WIRE_TEXT || b->text.len > 0;
	jscan_init(&r->parts, parts.s, parts.len);
	jscan_array(&r->parts);
	return !w->failed && (r->role != WIRE_TOOL || (said && b->id.len > 0));
}

/* Read an item's type, which tells its kind and author. */
static bool wire_read_item(struct wire_reader *r)
{
	static const struct {
		const char *type;
		enum wire_role role;
		enum wire_block_type block;
	} items[] = {
		{"message", WIRE_ASSISTANT, WIRE_TEXT},
		{"function_call", WIRE_ASSISTANT, WIRE_TOOL_USE},
		{"function_call_output", WIRE_TOOL, WIRE_TOOL_RESULT},
		{NULL, WIRE_ASSISTANT, WIRE_OTHER}, /* reasoning, and types of the future */
	};
	bool reply = r->item && r->role == WIRE_ASSISTANT, more;
	struct slice key, type;
	size_t i = 0;

	if (!jscan_string(&r->w, &type))
		return false;
	while (items[i].type != NULL && !slice_is(type, items[i].type))
		i++;
	r->item = r->chat = true;
	r->role = items[i].role;
	r->whole.type = items[i].block;
	r->whole.name = type; /* unless it has a name */
	more = jscan_key(&r->w, &key);
	if (!wire_read_members(r, key, more))
		return false;
	r->goes_on = reply && r->role == WIRE_ASSISTANT;
	return true;
}

int wire_message(struct wire_reader *r, bool *user)
{
	static const char *const roles[] = {"user", "assistant", "tool"};
	const struct slice none = {"", 0};
	struct jscan *w = &r->w;
	struct slice key, role;
	bool more, good;
	int i = 0;

	if (r->open && !close_read(r))
		return AVA_EINVAL;
	r->open = false;
	if (!r->in_body && jscan_peek(w) == 0 && !w->failed && w->last != ':')
		return 0;
	if (!jscan_item(w))
		return w->failed || !r->in_body ? AVA_EINVAL : 0;
	r->messages++;
	r->blocks = 0;
	r->open = true;
	r->ended = r->goes_on = false;
	r->whole = (struct wire_block){.id = none, .name = none, .input = none, .text = none};
	if (!jscan_object(w) || !jscan_key(w, &key))
		return AVA_EINVAL;
	if (slice_is(key, "type")) {
		good = wire_read_item(r);
		*user = r->role != WIRE_ASSISTANT;
		return good ? 1 : AVA_EINVAL;
	}
	if (!slice_is(key, "role") || !jscan_string(w, &role))
		return AVA_EINVAL;
	while (i <= WIRE_TOOL && !slice_is(role, roles[i]))
		i++;
	if (i > WIRE_TOOL)
		return AVA_EINVAL;
	r->role = (enum wire_role)i;
	*user = r->role != WIRE_ASSISTANT;
	r->item = false;
	more = jscan_key(w, &key);
	r->chat =
		r->role == WIRE_TOOL || !more || !slice_is(key, "content") || jscan_peek(w) != '[';
	if (!r->chat)
		return jscan_array(w) ? 1 : AVA_EINVAL;
	r->whole.type = r->role == WIRE_TOOL ? WIRE_TOOL_RESULT : WIRE_TEXT;
	return wire_read_members(r, key, more) ? 1 : AVA_EINVAL;
}

/* Read the content of a tool_result: a string, or the first text of its blocks. */
static void read_content(struct jscan *w, struct slice *text)
{
	struct slice key;
	bool taken = false;

	if (jscan_peek(w) == '"') {
		jscan_string(w, text);
		return;
	}
	if (jscan_peek(w) != '[') {
		jscan_skip(w, NULL);
		return;
	}
	jscan_array(w);
	while (jscan_item(w)) {
		if (jscan_peek(w) != '{') {
			jscan_skip(w, NULL);
			continue;
		}
		jscan_object(w);
		while (jscan_key(w, &key)) {
			if (!taken && slice_is(key, "text") && jscan_peek(w) == '"')
				taken = jscan_string(w, text);
			else
				jscan_skip(w, NULL);
		}
	}
}

/* Read a member of a block. true: the member must be a string in known blocks; unknown ones may
 * hold any value under it. */
static bool wire_read_member(struct jscan *w, struct slice key, struct wire_block *b,
			     struct slice *type)
{
	bool text = jscan_peek(w) == '"', odd = false;
	struct slice flag;

	if (text && slice_is(key, "type"))
		jscan_string(w, type);
	else if (text && slice_is(key, "text"))
		jscan_string(w, &b->text);
	else if (text && (slice_is(key, "id") || slice_is(key, "tool_use_id")))
		jscan_string(w, &b->id);
	else if (text && slice_is(key, "name"))
		jscan_string(w, &b->name);
	else if (slice_is(key, "input"))
		jscan_skip(w, &b->input);
	else if (slice_is(key, "thinking"))
		jscan_skip(w, &b->thought);
	else if (slice_is(key, "content"))
		read_content(w, &b->text);
	else if (slice_is(key, "is_error") && jscan_skip(w, &flag))
		b->is_error = slice_is(flag, "true");
	else if (jscan_skip(w, NULL))
		odd = slice_is(key, "type") || slice_is(key, "text") || slice_is(key, "id") ||
		      slice_is(key, "tool_use_id") || slice_is(key, "name");
	return odd;
}

/* {"id":I,"type":"function","function":{"name":N,"arguments":A}} */
static void wire_read_call(struct jscan *w, struct wire_block *b)
{
	struct slice key;

	b->type = WIRE_TOOL_USE;
	jscan_object(w);
	while (jscan_key(w, &key)) {
		bool string = jscan_peek(w) == '"';

		if (string && slice_is(key, "id"))
			jscan_string(w, &b->id);
		else if (string && slice_is(key, "name"))
			jscan_string(w, &b->name);
		else if (string && slice_is(key, "arguments"))
			b->input_string = jscan_string(w, &b->input);
		else if (jscan_peek(w) == '{' && slice_is(key, "function"))
			wire_read_call(w, b);
		else
			jscan_skip(w, NULL);
	}
}

/* {"type":"output_text","text":T,…} */
static void wire_read_part(struct jscan *w, struct wire_block *b)
{
	struct slice key, type = {"", 0};

	jscan_object(w);
	while (jscan_key(w, &key))
		(void)wire_read_member(w, key, b, &type);
	b->type = slice_is(type, "output_text") ? WIRE_TEXT : WIRE_OTHER;
}

/* Give the content of a message of chat completions or of an item as blocks: a result; a call; a
 * text and calls; texts. */
static int chat_block(struct wire_reader *r, struct wire_block *b)
{
	if (r->held)
		*b = r->whole;
	else if (!jscan_item(&r->parts))
		r->ended = true;
	else if (r->item)
		wire_read_part(&r->parts, b);
	else
		wire_read_call(&r->parts, b);
	r->held = false;
	if (r->parts.failed)
		r->w.failed = true;
	r->blocks += !r->ended;
	return r->w.failed ? AVA_EINVAL : !r->ended;
}

int wire_block(struct wire_reader *r, struct wire_block *b)
{
	static const char *const types[] = {
		[WIRE_TEXT] = "text",
		[WIRE_TOOL_USE] = "tool_use",
		[WIRE_TOOL_RESULT] = "tool_result",
	};
	struct slice key, type = {"", 0}, none = {"", 0};
	bool odd = false;

	*b = (struct wire_block){WIRE_OTHER, .id = none, .name = none, .input = none, .text = none};
	if (!r->open || r->w.failed)
		return r->w.failed ? AVA_EINVAL : 0;
	if (r->ended)
		return 0;
	if (r->chat)
		return chat_block(r, b);
	if (!jscan_item(&r->w)) {
		r->ended = true;
		return r->w.failed ? AVA_EINVAL : 0;
	}
	r->blocks++;
	jscan_object(&r->w);
	while (jscan_key(&r->w, &key))
		odd = wire_read_member(&r->w, key, b, &type) || odd;
	for (int i = 0; i < WIRE_OTHER; i++)
		if (slice_is(type, types[i]))
			b->type = (enum wire_block_type)i;
	b->name = b->type == WIRE_OTHER ? type : b->name;
	if (odd && b->type != WIRE_OTHER)
		r->w.failed = true;
	return r->w.failed ? AVA_EINVAL : 1;
}

/* ---- check. The sentences are those of the Anthropic service, which has one for nearly every
 * fault. */

enum form { FORM_MESSAGES, FORM_PAUSED, FORM_CHAT, FORM_ITEMS };

struct check {
	enum form form;
	struct slice calls[TURN_MAX_CALLS]; /* calls of the last message of the assistant */
	bool answered[TURN_MAX_CALLS];
	unsigned ncalls, left; /* calls; those without an answer yet */
	unsigned asked;        /* number of the message with the calls */
	struct nameset ids;    /* ids of all calls of the conversation; not in chat completions */
	struct wire_reader r;
	bool user, last_user; /* the current message is the user's; the one before was */
	bool text_seen;       /* the current message had text */
	bool thought;         /* the last item was reasoning: the rest of its reply must follow */
	struct ava_error *err;
};

/* `block`: the fault is in the block read last. */
__attribute__((format(printf, 3, 4))) static int wire_fault(const struct check *c, bool block,
							    const char *fmt, ...)
{
	char what[400], at[24] = "";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (block)
		snprintf(at, sizeof(at), ".content.%u", c->r.blocks - 1);
	return err_set(c->err, AVA_EINVAL, "messages.%u%s%s", c->r.messages - 1, at, what);
}

#define ID(id) (int)MIN((id).len, WIRE_ID_MAX), (id).s

/* Index of the call with that id in the message before; ncalls: none. In order it is k. */
static unsigned wire_find_call(const struct check *c, struct slice id, unsigned k)
{
	for (unsigned n = 0; n < c->ncalls; n++) {
		unsigned i = (k + n) % c->ncalls;

		if (c->calls[i].len == id.len && memcmp(c->calls[i].s, id.s, id.len) == 0)
			return i;
	}
	return c->ncalls;
}

static int check_id(struct check *c, struct slice id)
{
	char name[WIRE_ID_MAX + 1];

	if (id.len == 0 || id.len > (c->form == FORM_CHAT ? CHAT_ID_MAX : WIRE_ID_MAX))
		return wire_fault(c, true, ".tool_use.id: String should have 1 to 128 characters");
	if (c->form >= FORM_CHAT) /* a service numbers the ids anew in each reply */
		return wire_find_call(c, id, 0) == c->ncalls
			       ? 0
			       : wire_fault(c, true, ": `tool_use` ids must be unique: %.*s",
					    ID(id));
	memcpy(name, id.s, id.len);
	name[id.len] = 0;
	for (size_t i = 0; i < id.len; i++)
		if (!wire_id_char((unsigned char)id.s[i]))
			return wire_fault(c, true,
					  ".tool_use.id: String should match pattern "
					  "'^[a-zA-Z0-9_-]+$'");
	if (nameset_has(&c->ids, name))
		return wire_fault(c, true, ": `tool_use` ids must be unique: %.*s", ID(id));
	return nameset_add(&c->ids, name) == 0 ? 0 : err_set(c->err, AVA_ENOMEM, "out of memory");
}

/* Is the input an object, or a string of exactly one? 1, 0, AVA_ENOMEM. */
static int wire_is_object(const struct wire_block *b, bool string)
{
	struct jscan w;
	struct buf text;
	int good;

	if (b->input.len == 0 || b->input_string != string)
		return 0;
	if (!string)
		return b->input.s[0] == '{';
	buf_init(&text, b->input.len + 1);
	good = jscan_text(&text, b->input);
	if (good == 0) {
		jscan_init(&w, text.data, text.len);
		good = jscan_peek(&w) == '{' && jscan_skip(&w, NULL) && jscan_peek(&w) == 0 &&
		       w.at == w.end;
	}
	buf_fini(&text);
	return good;
}

static int check_use(struct check *c, const struct wire_block *b)
{
	int rv;

	if (c->user)
		return wire_fault(c, true,
				  ": `tool_use` blocks can only be in `assistant` messages");
	rv = check_id(c, b->id);
	if (rv != 0)
		return rv;
	rv = wire_is_object(b, c->form >= FORM_CHAT);
	if (rv < 0)
		return err_set(c->err, rv, "out of memory");
	if (b->name.len == 0 || rv == 0)
		return wire_fault(c, true,
				  ".tool_use: needs a name and an input that is an object");
	if (c->ncalls == TURN_MAX_CALLS)
		return wire_fault(c, false, ": more than 256 `tool_use` blocks");
	c->calls[c->ncalls] = b->id;
	c->answered[c->ncalls++] = false;
	c->left++;
	return 0;
}

static int wire_check_result(struct check *c, const struct wire_block *b)
{
	unsigned i;

	if (!c->user)
		return wire_fault(c, true, ": `tool_result` blocks can only be in `user` messages");
	i = wire_find_call(c, b->id, c->r.blocks - 1);
	if (i == c->ncalls)
		return wire_fault(
			c, true,
			": unexpected `tool_use_id` found in `tool_result` blocks: %.*s. Each "
			"`tool_result` block must have a corresponding "
			"`tool_use` block in the previous message.",
			ID(b->id));
	if (c->answered[i])
		return wire_fault(c, true,
				  ": each tool_use must have a single result. Found multiple "
				  "`tool_result` blocks with id: %.*s",
				  ID(b->id));
	if (c->text_seen)
		return wire_fault(c, true,
				  ": `tool_result` blocks must come first: `tool_use` ids were "
				  "found without `tool_result` blocks immediately after: %.*s",
				  ID(b->id));
	c->answered[i] = true;
	c->left--;
	return 0;
}

static int check_block(struct check *c, const struct wire_block *b)
{
	if (b->type == WIRE_TOOL_USE)
		return check_use(c, b);
	if (b->type == WIRE_TOOL_RESULT)
		return wire_check_result(c, b);
	c->text_seen = true;
	return b->type == WIRE_TEXT && wire_raw_blank(b->text)
		       ? wire_fault(c, true,
				    ": text content blocks must contain non-whitespace text")
		       : 0;
}

static int check_answered(const struct check *c)
{
	char ids[200] = "";
	size_t n = 0;

	if (c->left == 0)
		return 0;
	for (unsigned i = 0; i < c->ncalls; i++)
		if (!c->answered[i] && n + c->calls[i].len + 3 < sizeof(ids))
			n += (size_t)snprintf(ids + n, sizeof(ids) - n, "%s%.*s", n > 0 ? ", " : "",
					      (int)c->calls[i].len, c->calls[i].s);
	return err_set(
		c->err, AVA_EINVAL,
		"messages.%u: `tool_use` ids were found without `tool_result` blocks immediately "
		"after: %s. Each `tool_use` block must have a corresponding `tool_result` block "
		"in the next message.",
		c->asked, ids);
}

/* Check a message. Results stand in one user message, or in messages of their own; every call must
 * be answered before other content. */
static int check_message(struct check *c)
{
	bool chat = c->form >= FORM_CHAT, thought = c->thought;
	struct wire_block b;
	int rv = 0, more = 0;

	if (c->r.messages == 1 && c->r.role != WIRE_USER)
		return err_set(c->err, AVA_EINVAL,
			       "messages: first message must use the \"user\" role");
	if (!c->r.goes_on && (!c->user || (chat && c->r.role == WIRE_USER))) {
		rv = check_answered(c);
		c->ncalls = c->left = 0;
		c->asked = c->r.messages - 1;
	}
	if (rv == 0 && thought && !c->r.goes_on)
		rv = wire_fault(c, false,
				": the reasoning before it stands without its text or call");
	if (rv == 0 && !c->user && !c->last_user && !c->r.goes_on && c->form != FORM_PAUSED)
		rv = wire_fault(c, false,
				": roles must alternate between \"user\" and \"assistant\", but "
				"found multiple \"assistant\" roles in a row");
	c->text_seen = c->thought = false;
	while (rv == 0 && (more = wire_block(&c->r, &b)) == 1) {
		rv = check_block(c, &b);
		c->thought = c->r.item && c->r.whole.type == WIRE_OTHER;
	}
	if (rv != 0 || more < 0)
		return rv != 0 ? rv : more;
	if (c->r.blocks == 0)
		return wire_fault(c, false, ": all messages must have non-empty content");
	if (c->user && !chat) {
		rv = check_answered(c);
		c->ncalls = 0;
	}
	c->last_user = c->user;
	return rv;
}

static int check_lines(enum form form, const char *lines, size_t len, struct ava_error *err)
{
	struct check c = {.form = form, .err = err};
	int rv = 0, more;

	wire_reader_init(&c.r, lines, len);
	while (rv == 0 && (more = wire_message(&c.r, &c.user)) != 0) {
		/* A user's content may be parts in chat completions, too, and has that form among
		 * items. */
		if (more < 0 || (form < FORM_CHAT && c.r.chat) ||
		    (form >= FORM_CHAT && !c.r.chat && !c.user) ||
		    (c.r.item ? form != FORM_ITEMS : form == FORM_ITEMS && c.r.role != WIRE_USER))
			c.r.w.failed = true;
		rv = c.r.w.failed ? AVA_EINVAL : check_message(&c);
	}
	if (c.r.w.failed)
		rv = err_set(err, AVA_EINVAL, "messages.%u: not a message of %s, near byte %zu",
			     c.r.messages > 0 ? c.r.messages - 1 : 0,
			     form < FORM_CHAT    ? "the Messages form"
			     : form == FORM_CHAT ? "chat completions"
						 : "responses",
			     (size_t)(c.r.w.at - lines));
	else if (rv == 0 && c.r.messages == 0)
		rv = err_set(err, AVA_EINVAL, "messages: at least one message is required");
	else if (rv == 0 && c.left > 0)
		rv = check_answered(&c);
	else if (rv == 0 && !c.last_user && form != FORM_PAUSED)
		rv = err_set(err, AVA_EINVAL,
			     "messages: the conversation must end with a user message");
	nameset_fini(&c.ids);
	return rv;
}

int wire_check(const char *lines, size_t len, struct ava_error *err)
{
	return check_lines(FORM_MESSAGES, lines, len, err);
}

int wire_check_paused(const char *lines, size_t len, struct ava_error *err)
{
	return check_lines(FORM_PAUSED, lines, len, err);
}

int wire_check_chat(const char *lines, size_t len, struct ava_error *err)
{
	return check_lines(FORM_CHAT, lines, len, err);
}

int wire_check_items(const char *lines, size_t len, struct ava_error *err)
{
	return check_lines(FORM_ITEMS, lines, len, err);
}

/* ---- results and open calls: for read_result, for checks of citations, and for the calls that a
 * crash left without an answer */

int wire_each_result(const char *lines, size_t len,
		     int (*each)(size_t k, const char *text, size_t len, bool is_error, void *user),
		     void *user, struct ava_error *err)
{
	const size_t mark = strlen(WIRE_CHAT_ERROR);
	struct wire_reader r;
	struct wire_block b;
	struct buf text;
	size_t k = 0;
	bool from_user;
	int rv;

	buf_init(&text, len + 1);
	wire_reader_init(&r, lines, len);
	while ((rv = wire_message(&r, &from_user)) == 1) {
		while (from_user && (rv = wire_block(&r, &b)) == 1) {
			size_t skip = 0;

			if (b.type != WIRE_TOOL_RESULT)
				continue;
			buf_reset(&text);
			rv = jscan_text(&text, b.text);
			if (rv != 0)
				break;
			if (r.chat && text.len >= mark &&
			    memcmp(text.data, WIRE_CHAT_ERROR, mark) == 0)
				skip = mark;
			rv = each(k++, text.data + skip, text.len - skip, b.is_error || skip > 0,
				  user);
			if (rv != 0)
				goto out;
		}
		if (rv < 0)
			break;
	}
	if (rv < 0)
		err_set(err, rv,
			rv == AVA_ENOMEM ? "out of memory" : "the conversation cannot be read");
out:
	buf_fini(&text);
	return rv;
}

static const char *wire_keep(struct turn *t, struct slice raw, size_t *len)
{
	char *text = arena_get(&t->mem, raw.len + 1);

	if (text == NULL)
		return NULL;
	*len = jscan_unescape(raw, text);
	text[*len] = 0;
	return text;
}

static int keep_call(struct turn *t, const struct wire_block *b)
{
	struct turn_call *c;
	size_t len;

	if (t->calls == NULL) {
		t->calls = arena_get(&t->mem, TURN_MAX_CALLS * sizeof(*t->calls));
		if (t->calls == NULL)
			return AVA_ENOMEM;
	}
	if (t->ncalls == TURN_MAX_CALLS)
		return AVA_ETOOBIG;
	c = &t->calls[t->ncalls++];
	memset(c, 0, sizeof(*c));
	c->wire_id = wire_keep(t, b->id, &len);
	c->name = wire_keep(t, b->name, &len);
	c->args_len = b->input.len > 0 ? b->input.len : 2;
	c->args = b->input_string
			  ? wire_keep(t, b->input, &c->args_len)
			  : arena_copy(&t->mem, b->input.len > 0 ? b->input.s : "{}", c->args_len);
	return c->wire_id != NULL && c->name != NULL && c->args != NULL ? 0 : AVA_ENOMEM;
}

/* Append a text: the texts of a reply become one, as when it came. */
static int wire_keep_text(struct turn *t, const struct wire_block *b)
{
	size_t len = t->text_len;
	char *text = arena_get(&t->mem, len + b->text.len + 1);

	if (text == NULL)
		return AVA_ENOMEM;
	memcpy(text, t->text, len);
	len += jscan_unescape(b->text, text + len);
	text[len] = 0;
	t->text = text;
	t->text_len = len;
	return 0;
}

static int drop_call(struct turn *t, struct slice raw)
{
	size_t len = 0;
	const char *id = wire_keep(t, raw, &len);

	for (unsigned i = 0; id != NULL && i < t->ncalls; i++) {
		if (strcmp(t->calls[i].wire_id, id) != 0)
			continue;
		t->ncalls--;
		memmove(&t->calls[i], &t->calls[i + 1], (t->ncalls - i) * sizeof(*t->calls));
		break;
	}
	return id != NULL ? 0 : AVA_ENOMEM;
}

/* Forget a reply before the last one. */
static void wire_forget(struct turn *t)
{
	arena_fini(&t->mem);
	arena_init(&t->mem, TURN_MAX_BYTES);
	t->calls = NULL;
	t->ncalls = 0;
	t->text = "";
	t->text_len = 0;
}

int wire_open_calls(const char *lines, size_t len, struct turn *t, struct ava_error *err)
{
	struct wire_reader r;
	struct wire_block b;
	bool from_user;
	int rv;

	wire_forget(t);
	wire_reader_init(&r, lines, len);
	while ((rv = wire_message(&r, &from_user)) == 1) {
		/* A user message behind calls holds all their results. */
		if (r.role != WIRE_TOOL && !r.goes_on)
			wire_forget(t);
		while (r.role != WIRE_USER && (rv = wire_block(&r, &b)) == 1) {
			if (b.type == WIRE_TOOL_USE)
				rv = keep_call(t, &b);
			else if (b.type == WIRE_TEXT)
				rv = wire_keep_text(t, &b);
			else if (b.type == WIRE_TOOL_RESULT)
				rv = drop_call(t, b.id);
			if (rv < 0)
				break;
		}
		if (rv < 0)
			break;
	}
	return rv < 0 ? err_set(err, rv, "the conversation cannot be read") : 0;
}

/* Encoders and reader of the Messages form.
 *
 *   head   {"model":…,"system":[{"type":"text","text":…}],"tools":[…],"messages":[
 *   lines  {"role":"user","content":[{"type":"text","text":…}]}
 *          {"role":"assistant","content":[{"type":"text",…},{"type":"tool_use",…}]}
 *          {"role":"user","content":[{"type":"tool_result",…},…,{"type":"text",…}]}
 *   tail   ],"max_tokens":8192,"stream":true}
 *
 * Bytes matter: what is written here once is sent with every later request,
 * so keys have one order and nothing is rendered twice. Encoders fail only
 * with the buffer or on a text the service refuses. The reader takes lines of
 * this process and of files; bad ones give AVA_EINVAL, never more. */
#include "provider/wire.h"

#include <stdio.h>
#include <string.h>

#include "agent/tool.h"
#include "base/error.h"
#include "base/strmap.h"
#include "codec/json.h"

/* ---- encoders */

static void text_block(struct jw *w, const char *text, size_t len)
{
	jw_object(w, NULL);
	jw_str(w, "type", "text");
	jw_strn(w, "text", text, len);
	jw_end(w);
}

void wire_tools(struct jw *w, const struct dialect_spec *spec)
{
	for (unsigned i = 0; i < spec->ntools; i++) {
		const struct tool *t = spec->tools[i];

		jw_object(w, NULL);
		jw_str(w, "name", t->name);
		jw_str(w, "description", t->description);
		jw_raw(w, "input_schema", t->schema, strlen(t->schema));
		jw_end(w);
	}
}

int wire_head(struct buf *out, const struct dialect_spec *spec)
{
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_str(&w, "model", spec->model);
	jw_array(&w, "system");
	if (spec->system[0] != 0)
		text_block(&w, spec->system, strlen(spec->system));
	jw_end(&w);
	jw_array(&w, "tools");
	wire_tools(&w, spec);
	jw_end(&w);
	jw_array(&w, "messages"); /* the tail closes it */
	return buf_check(out);
}

int wire_tail(struct buf *out, const struct model *m, bool thinking, const struct agent_infer *call)
{
	buf_addf(out, "],\"max_tokens\":%lld", (long long)call->max_output);
	if (call->force_submit)
		buf_adds(out, ",\"tool_choice\":{\"type\":\"tool\",\"name\":\"submit_result\"}");
	buf_adds(out, ",\"stream\":true}");
	return buf_check(out);
}

static bool blank(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] != ' ' && s[i] != '\t' && s[i] != '\r' && s[i] != '\n')
			return false;
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

	if (blank(text, len))
		return AVA_EINVAL;
	open_message(&w, out, "user");
	text_block(&w, text, len);
	return close_message(&w);
}

static void result_block(struct jw *w, const struct turn_call *c)
{
	jw_object(w, NULL);
	jw_str(w, "type", "tool_result");
	jw_str(w, "tool_use_id", c->wire_id);
	jw_strn(w, "content", c->output != NULL ? c->output : "", c->output_len);
	if (!c->success)
		jw_bool(w, "is_error", true);
	jw_end(w);
}

int wire_results(struct buf *out, const struct turn *t, const char *const *notices,
		 unsigned nnotices)
{
	unsigned blocks = t->ncalls;
	struct jw w;

	for (unsigned i = 0; i < nnotices; i++)
		blocks += !blank(notices[i], strlen(notices[i]));
	if (blocks == 0)
		return AVA_EINVAL; /* a message needs content */
	open_message(&w, out, "user");
	for (unsigned i = 0; i < t->ncalls; i++)
		result_block(&w, &t->calls[i]);
	for (unsigned i = 0; i < nnotices; i++)
		if (!blank(notices[i], strlen(notices[i])))
			text_block(&w, notices[i], strlen(notices[i]));
	return close_message(&w);
}

int wire_assistant(struct buf *out, const struct turn *t)
{
	bool has_text = !blank(t->text, t->text_len);
	struct jw w;

	if (!has_text && t->ncalls == 0)
		return 0;
	open_message(&w, out, "assistant");
	if (has_text)
		text_block(&w, t->text, t->text_len);
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

/* ---- reader */

void wire_reader_init(struct wire_reader *r, const char *lines, size_t len)
{
	*r = (struct wire_reader){0};
	jscan_init(&r->w, lines, len);
	r->w.last = '['; /* as if the head had just opened the array */
}

/* The rest of the message whose blocks were read: "}" and no more keys, so
 * that no second "content" can hide anything. */
static bool close_read(struct wire_reader *r)
{
	struct wire_block b;
	struct slice key;

	while (wire_block(r, &b) == 1)
		;
	return !r->w.failed && !jscan_key(&r->w, &key) && !r->w.failed;
}

int wire_message(struct wire_reader *r, bool *user)
{
	struct jscan *w = &r->w;
	struct slice key, role;

	if (r->open && !close_read(r))
		return AVA_EINVAL;
	r->open = false;
	if (!r->in_body && jscan_peek(w) == 0 && !w->failed && w->last != ':')
		return 0;
	if (!jscan_item(w))
		return w->failed || !r->in_body ? AVA_EINVAL : 0;
	r->messages++;
	r->blocks = 0;
	if (!jscan_object(w) || !jscan_key(w, &key) || !slice_is(key, "role") ||
	    !jscan_string(w, &role) || !jscan_key(w, &key) || !slice_is(key, "content") ||
	    !jscan_array(w))
		return AVA_EINVAL;
	*user = slice_is(role, "user");
	if (!*user && !slice_is(role, "assistant"))
		return AVA_EINVAL;
	r->open = true;
	r->ended = false;
	return 1;
}

/* The content of a tool_result: a string, or blocks of which the first text
 * is taken. */
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

/* True when it is a word that must be a string in the blocks we know; blocks
 * that we do not know may hold anything under it. */
static bool read_member(struct jscan *w, struct slice key, struct wire_block *b, struct slice *type)
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
	else if (slice_is(key, "content"))
		read_content(w, &b->text);
	else if (slice_is(key, "is_error") && jscan_skip(w, &flag))
		b->is_error = slice_is(flag, "true");
	else if (jscan_skip(w, NULL))
		odd = slice_is(key, "type") || slice_is(key, "text") || slice_is(key, "id") ||
		      slice_is(key, "tool_use_id") || slice_is(key, "name");
	return odd;
}

int wire_block(struct wire_reader *r, struct wire_block *b)
{
	static const char *const types[] = {
		[WIRE_TEXT] = "text",
		[WIRE_TOOL_USE] = "tool_use",
		[WIRE_TOOL_RESULT] = "tool_result",
	};
	struct slice key, type = {"", 0};
	bool odd = false;

	*b = (struct wire_block){.type = WIRE_OTHER,
				 .id = {"", 0},
				 .name = {"", 0},
				 .input = {"", 0},
				 .text = {"", 0}};
	if (!r->open || r->w.failed)
		return r->w.failed ? AVA_EINVAL : 0;
	if (r->ended)
		return 0;
	if (!jscan_item(&r->w)) {
		r->ended = true;
		return r->w.failed ? AVA_EINVAL : 0;
	}
	r->blocks++;
	jscan_object(&r->w);
	while (jscan_key(&r->w, &key))
		odd = read_member(&r->w, key, b, &type) || odd;
	for (int i = 0; i < WIRE_OTHER; i++)
		if (slice_is(type, types[i]))
			b->type = (enum wire_block_type)i;
	if (odd && b->type != WIRE_OTHER)
		r->w.failed = true;
	return r->w.failed ? AVA_EINVAL : 1;
}

/* ---- check. The sentences are the service's own where it has one. */

struct check {
	struct slice calls[TURN_MAX_CALLS]; /* of the assistant message before */
	bool answered[TURN_MAX_CALLS];
	unsigned ncalls, left; /* left: not answered yet */
	struct nameset ids;    /* of every call of the conversation */
	struct wire_reader r;
	bool user, last_user; /* whose message; whose was the one before */
	bool text_seen;       /* in this message */
	bool paused;          /* assistant messages may be gone on from */
	struct ava_error *err;
};

static bool raw_blank(struct slice raw)
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

static int check_id(struct check *c, struct slice id)
{
	char name[WIRE_ID_MAX + 1];
	unsigned m = c->r.messages - 1, k = c->r.blocks - 1;

	if (id.len == 0 || id.len > WIRE_ID_MAX)
		return err_set(
			c->err, AVA_EINVAL,
			"messages.%u.content.%u.tool_use.id: String should have 1 to %u characters",
			m, k, WIRE_ID_MAX);
	for (size_t i = 0; i < id.len; i++) {
		unsigned char ch = (unsigned char)id.s[i];

		if (!(ch >= '0' && ch <= '9') && !((ch | 32) >= 'a' && (ch | 32) <= 'z') &&
		    ch != '_' && ch != '-')
			return err_set(
				c->err, AVA_EINVAL,
				"messages.%u.content.%u.tool_use.id: String should match pattern "
				"'^[a-zA-Z0-9_-]+$'",
				m, k);
	}
	memcpy(name, id.s, id.len);
	name[id.len] = 0;
	if (nameset_has(&c->ids, name))
		return err_set(c->err, AVA_EINVAL,
			       "messages.%u.content.%u: `tool_use` ids must be unique: %s", m, k,
			       name);
	return nameset_add(&c->ids, name) == 0 ? 0 : err_set(c->err, AVA_ENOMEM, "out of memory");
}

static int check_use(struct check *c, const struct wire_block *b)
{
	unsigned m = c->r.messages - 1, k = c->r.blocks - 1;
	int rv;

	if (c->user)
		return err_set(c->err, AVA_EINVAL,
			       "messages.%u.content.%u: `tool_use` blocks can only be in "
			       "`assistant` messages",
			       m, k);
	rv = check_id(c, b->id);
	if (rv != 0)
		return rv;
	if (b->name.len == 0 || b->input.len == 0 || b->input.s[0] != '{')
		return err_set(c->err, AVA_EINVAL,
			       "messages.%u.content.%u.tool_use: needs a name and an input that is "
			       "an object",
			       m, k);
	if (c->ncalls == TURN_MAX_CALLS)
		return err_set(c->err, AVA_EINVAL, "messages.%u: more than %d `tool_use` blocks", m,
			       TURN_MAX_CALLS);
	c->calls[c->ncalls] = b->id;
	c->answered[c->ncalls++] = false;
	c->left++;
	return 0;
}

static int check_result(struct check *c, const struct wire_block *b)
{
	unsigned m = c->r.messages - 1, k = c->r.blocks - 1, i;
	int shown = (int)(b->id.len < WIRE_ID_MAX ? b->id.len : WIRE_ID_MAX);

	if (!c->user)
		return err_set(c->err, AVA_EINVAL,
			       "messages.%u.content.%u: `tool_result` blocks can only be in `user` "
			       "messages",
			       m, k);
	/* In order they are the k-th; else look for it. */
	i = k < c->ncalls ? k : 0;
	for (unsigned n = 0; n < c->ncalls; n++, i = (i + 1) % c->ncalls) {
		if (c->calls[i].len != b->id.len || memcmp(c->calls[i].s, b->id.s, b->id.len) != 0)
			continue;
		if (c->answered[i])
			return err_set(
				c->err, AVA_EINVAL,
				"messages.%u.content.%u: each tool_use must have a single result. "
				"Found multiple `tool_result` blocks with id: %.*s",
				m, k, shown, b->id.s);
		if (c->text_seen)
			return err_set(c->err, AVA_EINVAL,
				       "messages.%u: `tool_result` blocks must come first: "
				       "`tool_use` ids were "
				       "found without `tool_result` blocks immediately after: %.*s",
				       m, shown, b->id.s);
		c->answered[i] = true;
		c->left--;
		return 0;
	}
	return err_set(
		c->err, AVA_EINVAL,
		"messages.%u.content.%u: unexpected `tool_use_id` found in `tool_result` blocks: "
		"%.*s. Each `tool_result` block must have a corresponding `tool_use` block in the "
		"previous message.",
		m, k, shown, b->id.s);
}

static int check_block(struct check *c, const struct wire_block *b)
{
	switch (b->type) {
	case WIRE_TOOL_USE:
		return check_use(c, b);
	case WIRE_TOOL_RESULT:
		return check_result(c, b);
	case WIRE_TEXT:
		c->text_seen = true;
		if (raw_blank(b->text))
			return err_set(c->err, AVA_EINVAL,
				       "messages.%u.content.%u: text content blocks must contain "
				       "non-whitespace text",
				       c->r.messages - 1, c->r.blocks - 1);
		return 0;
	case WIRE_OTHER:
		break;
	}
	c->text_seen = true;
	return 0;
}

/* After a user message nothing may be left open. */
static int check_answered(const struct check *c, unsigned assistant)
{
	char ids[200] = "";
	size_t n = 0;

	if (c->left == 0)
		return 0;
	for (unsigned i = 0; i < c->ncalls; i++)
		if (!c->answered[i] && n + c->calls[i].len + 3 < sizeof(ids)) {
			n += (size_t)snprintf(ids + n, sizeof(ids) - n, "%s%.*s", n > 0 ? ", " : "",
					      (int)c->calls[i].len, c->calls[i].s);
		}
	return err_set(
		c->err, AVA_EINVAL,
		"messages.%u: `tool_use` ids were found without `tool_result` blocks immediately "
		"after: %s. Each `tool_use` block must have a corresponding `tool_result` block in "
		"the next message.",
		assistant, ids);
}

static int check_role(const struct check *c)
{
	unsigned m = c->r.messages - 1;

	if (m == 0 && !c->user)
		return err_set(c->err, AVA_EINVAL,
			       "messages: first message must use the \"user\" role");
	if (!c->user && !c->last_user && c->left > 0)
		return check_answered(c, m - 1);
	if (!c->user && !c->last_user && !c->paused)
		return err_set(
			c->err, AVA_EINVAL,
			"messages.%u: roles must alternate between \"user\" and \"assistant\", but "
			"found multiple \"assistant\" roles in a row",
			m);
	return 0;
}

static int check_message(struct check *c)
{
	struct wire_block b;
	int rv = check_role(c), more = 0;

	if (!c->user)
		c->ncalls = c->left = 0;
	c->text_seen = false;
	while (rv == 0 && (more = wire_block(&c->r, &b)) == 1)
		rv = check_block(c, &b);
	if (rv != 0)
		return rv;
	if (more < 0)
		return more;
	if (c->r.blocks == 0)
		return err_set(c->err, AVA_EINVAL,
			       "messages.%u: all messages must have non-empty content",
			       c->r.messages - 1);
	if (c->user) {
		rv = check_answered(c, c->r.messages - 2);
		c->ncalls = 0;
	}
	c->last_user = c->user;
	return rv;
}

static int check_lines(const char *lines, size_t len, bool paused, struct ava_error *err)
{
	struct check c = {.err = err, .paused = paused};
	int rv = 0, more;

	wire_reader_init(&c.r, lines, len);
	while ((more = wire_message(&c.r, &c.user)) == 1) {
		rv = check_message(&c);
		if (rv != 0)
			break;
	}
	if (c.r.w.failed || more < 0)
		rv = err_set(err, AVA_EINVAL,
			     "messages.%u: not a message of the Messages form, near byte %zu",
			     c.r.messages > 0 ? c.r.messages - 1 : 0, (size_t)(c.r.w.at - lines));
	else if (rv == 0 && c.r.messages == 0)
		rv = err_set(err, AVA_EINVAL, "messages: at least one message is required");
	else if (rv == 0 && !c.last_user && check_answered(&c, c.r.messages - 1) != 0)
		rv = AVA_EINVAL;
	else if (rv == 0 && !c.last_user && !paused)
		rv = err_set(err, AVA_EINVAL,
			     "messages: the conversation must end with a user message");
	nameset_fini(&c.ids);
	return rv;
}

int wire_check(const char *lines, size_t len, struct ava_error *err)
{
	return check_lines(lines, len, false, err);
}

int wire_check_paused(const char *lines, size_t len, struct ava_error *err)
{
	return check_lines(lines, len, true, err);
}

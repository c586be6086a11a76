/* Lines of chat completions:
 *
 *   {"role":"user","content":T}
 *   {"role":"assistant","content":T or null,…,"tool_calls":[{"id":I,"type":"function",
 *       "function":{"name":N,"arguments":"{…}"}},…]}
 *   {"role":"tool","tool_call_id":I,"content":T}        one for each call, in order
 *
 * The system message is in the head. Notices follow the tool messages as one
 * user message. Encoders fail only with the buffer or on a blank text. Readers
 * take lines of files: bad ones give AVA_EINVAL, never more. */
#include "provider/openai_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/turn.h"
#include "base/error.h"
#include "codec/json.h"

/* ---- encoders */

static bool blank(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] != ' ' && s[i] != '\t' && s[i] != '\r' && s[i] != '\n')
			return false;
	return true;
}

int openai_user(struct buf *out, const char *text, size_t len)
{
	struct jw w;

	if (blank(text, len))
		return AVA_EINVAL;
	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_str(&w, "role", "user");
	jw_strn(&w, "content", text, len);
	jw_end(&w);
	return buf_check(out);
}

static int add_result(struct buf *out, const struct turn_call *c)
{
	struct buf text;
	struct jw w;
	int rv;

	buf_init(&text, TURN_MAX_BYTES);
	if (!c->success)
		buf_adds(&text, OPENAI_ERROR);
	buf_add(&text, c->output != NULL ? c->output : "", c->output != NULL ? c->output_len : 0);
	rv = buf_check(&text);
	if (rv == 0) {
		jw_init(&w, out);
		jw_object(&w, NULL);
		jw_str(&w, "role", "tool");
		jw_str(&w, "tool_call_id", c->wire_id);
		jw_strn(&w, "content", text.data, text.len);
		jw_end(&w);
	}
	buf_fini(&text);
	return rv;
}

/* Templates of local models want roles to alternate: one message for all. */
static int join_notices(struct buf *all, const char *const *notices, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (blank(notices[i], strlen(notices[i])))
			continue;
		if (all->len > 0)
			buf_adds(all, "\n\n");
		buf_adds(all, notices[i]);
	}
	return buf_check(all);
}

int openai_results(struct buf *out, const struct turn *t, const char *const *notices,
		   unsigned nnotices)
{
	struct buf all;
	int rv = 0;

	for (unsigned i = 0; i < t->ncalls && rv == 0; i++) {
		if (i > 0)
			buf_addc(out, '\n');
		rv = add_result(out, &t->calls[i]);
	}
	if (rv != 0)
		return rv;
	buf_init(&all, TURN_MAX_BYTES);
	rv = join_notices(&all, notices, nnotices);
	if (rv == 0 && all.len > 0) {
		if (t->ncalls > 0)
			buf_addc(out, '\n');
		rv = openai_user(out, all.data, all.len);
	} else if (rv == 0 && t->ncalls == 0) {
		rv = AVA_EINVAL; /* a line needs content */
	}
	buf_fini(&all);
	return rv != 0 ? rv : buf_check(out);
}

/* ---- reader */

enum role { ROLE_USER, ROLE_ASSISTANT, ROLE_TOOL };

struct message {
	enum role role;
	struct slice content; /* raw; of a string */
	bool has_content;     /* a string that is there, or parts */
	struct slice id;      /* tool_call_id; raw */
	struct slice calls;   /* the array; JSON */
};

struct lines {
	struct jscan w;
	unsigned messages; /* begun so far */
};

static void lines_init(struct lines *r, const char *s, size_t len)
{
	*r = (struct lines){0};
	jscan_init(&r->w, s, len);
	r->w.last = '['; /* as if the head had just opened the array */
}

static void read_member(struct jscan *w, struct slice key, struct message *m, struct slice *role)
{
	char kind = jscan_peek(w);

	if (kind == '"' && slice_is(key, "role")) {
		jscan_string(w, role);
	} else if (kind == '"' && slice_is(key, "content")) {
		m->has_content = jscan_string(w, &m->content);
	} else if (kind == '"' && slice_is(key, "tool_call_id")) {
		jscan_string(w, &m->id);
	} else if (kind == '[' && slice_is(key, "tool_calls")) {
		jscan_skip(w, &m->calls);
	} else {
		m->has_content |= kind == '[' && slice_is(key, "content");
		jscan_skip(w, NULL);
	}
}

static bool read_message(struct jscan *w, struct message *m)
{
	static const char *const roles[] = {"user", "assistant", "tool"};
	struct slice key, role = {"", 0};

	*m = (struct message){.content = {"", 0}, .id = {"", 0}, .calls = {"", 0}};
	if (!jscan_object(w))
		return false;
	while (jscan_key(w, &key))
		read_member(w, key, m, &role);
	for (int i = 0; i <= ROLE_TOOL && !w->failed; i++) {
		if (!slice_is(role, roles[i]))
			continue;
		m->role = (enum role)i;
		return true;
	}
	return false;
}

/* 1: a message, 0: the end, AVA_EINVAL. */
static int next_message(struct lines *r, struct message *m)
{
	if (jscan_peek(&r->w) == 0 && !r->w.failed && r->w.last != ':')
		return 0;
	r->messages++;
	return jscan_item(&r->w) && read_message(&r->w, m) ? 1 : AVA_EINVAL;
}

bool openai_tool_line(const char *line, size_t len, struct slice *id, struct slice *text)
{
	struct message m;
	struct jscan w;

	jscan_init(&w, line, len);
	if (!read_message(&w, &m) || m.role != ROLE_TOOL || m.id.len == 0)
		return false;
	*id = m.id;
	*text = m.content;
	return true;
}

struct call {
	struct slice id, name, args; /* raw strings */
};

static bool read_call(struct jscan *w, struct call *c)
{
	struct slice key;

	*c = (struct call){{"", 0}, {"", 0}, {"", 0}};
	if (!jscan_object(w))
		return false;
	while (jscan_key(w, &key)) {
		if (jscan_peek(w) == '"' && slice_is(key, "id")) {
			jscan_string(w, &c->id);
		} else if (jscan_peek(w) == '{' && slice_is(key, "function")) {
			jscan_object(w);
			while (jscan_key(w, &key)) {
				if (jscan_peek(w) == '"' && slice_is(key, "name"))
					jscan_string(w, &c->name);
				else if (jscan_peek(w) == '"' && slice_is(key, "arguments"))
					jscan_string(w, &c->args);
				else
					jscan_skip(w, NULL);
			}
		} else {
			jscan_skip(w, NULL);
		}
	}
	return !w->failed;
}

/* ---- check. The sentences are the service's own where it has one. */

struct check {
	struct slice ids[TURN_MAX_CALLS]; /* of the assistant message before */
	bool answered[TURN_MAX_CALLS];
	unsigned ncalls, left;
	unsigned m; /* the message, from 0 */
	bool after_assistant, any;
	struct ava_error *err;
};

static int fault(struct check *c, const char *what)
{
	return err_set(c->err, AVA_EINVAL, "messages[%u]: %s", c->m, what);
}

/* A string that holds JSON: an object and nothing after it. */
static bool is_object_text(struct slice raw)
{
	char *text = malloc(raw.len + 1);
	struct jscan w;
	bool good = false;

	if (text != NULL) {
		jscan_init(&w, text, raw.len > 0 ? jscan_unescape(raw, text) : 0);
		good = jscan_peek(&w) == '{' && jscan_skip(&w, NULL) && jscan_peek(&w) == 0;
		good = good && w.at == w.end;
	}
	free(text);
	return good;
}

static int check_call(struct check *c, const struct call *call)
{
	if (call->id.len == 0 || call->id.len > OPENAI_ID_MAX)
		return fault(c, "a tool call needs an id of 1 to 128 bytes");
	if (call->name.len == 0)
		return fault(c, "a tool call needs the name of its function");
	if (!is_object_text(call->args))
		return fault(c, "the arguments of a tool call must be a string that holds a JSON "
				"object");
	if (c->ncalls == TURN_MAX_CALLS)
		return fault(c, "more than 256 tool calls");
	for (unsigned i = 0; i < c->ncalls; i++)
		if (c->ids[i].len == call->id.len &&
		    memcmp(c->ids[i].s, call->id.s, call->id.len) == 0)
			return err_set(c->err, AVA_EINVAL,
				       "messages[%u]: Duplicate value for 'tool_call_id' of '%.*s'",
				       c->m, (int)call->id.len, call->id.s);
	c->ids[c->ncalls] = call->id;
	c->answered[c->ncalls++] = false;
	c->left++;
	return 0;
}

static int check_left(struct check *c)
{
	unsigned i = 0;

	if (c->left == 0)
		return 0;
	while (c->answered[i])
		i++;
	return err_set(c->err, AVA_EINVAL,
		       "messages[%u]: An assistant message with 'tool_calls' must be followed by "
		       "tool messages responding to each 'tool_call_id'. The following "
		       "tool_call_ids did not have response messages: %.*s",
		       c->m, (int)c->ids[i].len, c->ids[i].s);
}

static int check_assistant(struct check *c, const struct message *m)
{
	struct call call;
	struct jscan w;
	int rv = 0;

	if (c->after_assistant)
		return fault(c, "two assistant messages stand side by side");
	c->ncalls = c->left = 0;
	if (m->calls.len > 0) {
		jscan_init(&w, m->calls.s, m->calls.len);
		jscan_array(&w);
		while (rv == 0 && jscan_item(&w))
			rv = read_call(&w, &call) ? check_call(c, &call)
						  : fault(c, "a tool call that is none");
		if (rv == 0 && w.failed)
			rv = fault(c, "tool calls that cannot be read");
	}
	if (rv == 0 && c->ncalls == 0 && !m->has_content)
		rv = fault(c, "an assistant message needs content or tool calls");
	return rv;
}

static int check_tool(struct check *c, const struct message *m)
{
	if (!m->has_content)
		return fault(c, "a tool message needs content");
	for (unsigned i = 0; i < c->ncalls; i++) {
		if (c->ids[i].len != m->id.len || memcmp(c->ids[i].s, m->id.s, m->id.len) != 0)
			continue;
		if (c->answered[i])
			return fault(c, "a tool call has more than one tool message");
		c->answered[i] = true;
		c->left--;
		return 0;
	}
	return fault(c, "messages with role 'tool' must be a response to a preceding message with "
			"'tool_calls'");
}

static int check_message(struct check *c, const struct message *m)
{
	int rv;

	if (!c->any && m->role != ROLE_USER)
		return fault(c, "the first message must be the user's");
	if (m->role == ROLE_TOOL) {
		rv = check_tool(c, m);
	} else {
		rv = check_left(c);
		if (rv == 0 && m->role == ROLE_ASSISTANT)
			rv = check_assistant(c, m);
		else if (rv == 0 && !m->has_content)
			rv = fault(c, "a user message needs content");
		if (m->role == ROLE_USER)
			c->ncalls = 0;
	}
	c->after_assistant = m->role == ROLE_ASSISTANT;
	c->any = true;
	return rv;
}

int openai_check(const char *lines, size_t len, struct ava_error *err)
{
	struct check c = {.err = err};
	struct message m;
	struct lines r;
	int rv = 0, more;

	lines_init(&r, lines, len);
	while (rv == 0 && (more = next_message(&r, &m)) != 0) {
		c.m = r.messages - 1;
		rv = more < 0 ? fault(&c, "not a message of chat completions")
			      : check_message(&c, &m);
	}
	if (rv == 0 && !c.any)
		rv = err_set(err, AVA_EINVAL, "messages: at least one message is required");
	if (rv == 0)
		rv = check_left(&c);
	if (rv == 0 && c.after_assistant)
		rv = fault(&c, "the conversation must not end with an assistant message");
	return rv;
}

/* ---- results and open calls */

int openai_each_result(const char *lines, size_t len,
		       int (*each)(size_t k, const char *text, size_t len, bool is_error,
				   void *user),
		       void *user, struct ava_error *err)
{
	const size_t mark = strlen(OPENAI_ERROR);
	struct message m;
	struct lines r;
	size_t k = 0;
	int rv = 0, more;

	lines_init(&r, lines, len);
	while (rv == 0 && (more = next_message(&r, &m)) != 0) {
		char *text;
		size_t n;
		bool bad;

		if (more < 0)
			return err_set(err, AVA_EINVAL, "the conversation cannot be read");
		if (m.role != ROLE_TOOL)
			continue;
		text = malloc(m.content.len + 1);
		if (text == NULL)
			return err_set(err, AVA_ENOMEM, "out of memory");
		n = m.content.len > 0 ? jscan_unescape(m.content, text) : 0;
		bad = n >= mark && memcmp(text, OPENAI_ERROR, mark) == 0;
		rv = each(k++, text + (bad ? mark : 0), n - (bad ? mark : 0), bad, user);
		free(text);
	}
	return rv;
}

static const char *keep(struct turn *t, struct slice raw, size_t *len)
{
	char *text = arena_get(&t->mem, raw.len + 1);
	size_t n;

	if (text == NULL)
		return NULL;
	n = raw.len > 0 ? jscan_unescape(raw, text) : 0;
	text[n] = 0;
	if (len != NULL)
		*len = n;
	return text;
}

static int keep_call(struct turn *t, const struct call *call)
{
	struct turn_call *c;

	if (t->calls == NULL) {
		t->calls = arena_get(&t->mem, TURN_MAX_CALLS * sizeof(*t->calls));
		if (t->calls == NULL)
			return AVA_ENOMEM;
	}
	if (t->ncalls == TURN_MAX_CALLS)
		return AVA_ETOOBIG;
	c = &t->calls[t->ncalls++];
	memset(c, 0, sizeof(*c));
	c->wire_id = keep(t, call->id, NULL);
	c->name = keep(t, call->name, NULL);
	c->args = keep(t, call->args, &c->args_len);
	return c->wire_id != NULL && c->name != NULL && c->args != NULL ? 0 : AVA_ENOMEM;
}

static int keep_calls(struct turn *t, struct slice calls)
{
	struct call call;
	struct jscan w;
	int rv = 0;

	t->ncalls = 0;
	if (calls.len == 0)
		return 0;
	jscan_init(&w, calls.s, calls.len);
	jscan_array(&w);
	while (rv == 0 && jscan_item(&w))
		rv = read_call(&w, &call) ? keep_call(t, &call) : AVA_EINVAL;
	return rv == 0 && w.failed ? AVA_EINVAL : rv;
}

static void drop_call(struct turn *t, struct slice raw)
{
	size_t len = 0;
	const char *id = keep(t, raw, &len);

	for (unsigned i = 0; id != NULL && i < t->ncalls; i++) {
		if (strcmp(t->calls[i].wire_id, id) != 0)
			continue;
		t->ncalls--;
		memmove(&t->calls[i], &t->calls[i + 1], (t->ncalls - i) * sizeof(*t->calls));
		return;
	}
}

/* Of a reply before the last one. */
static void forget(struct turn *t)
{
	arena_fini(&t->mem);
	arena_init(&t->mem, TURN_MAX_BYTES);
	t->calls = NULL;
	t->ncalls = 0;
	t->text = "";
	t->text_len = 0;
}

static int keep_reply(struct turn *t, const struct message *m)
{
	const char *text = keep(t, m->content, &t->text_len);

	if (text == NULL)
		return AVA_ENOMEM;
	t->text = text;
	return keep_calls(t, m->calls);
}

int openai_open_calls(const char *lines, size_t len, struct turn *t, struct ava_error *err)
{
	struct message m;
	struct lines r;
	int rv = 0, more;

	forget(t);
	lines_init(&r, lines, len);
	while (rv == 0 && (more = next_message(&r, &m)) != 0) {
		if (more < 0)
			rv = AVA_EINVAL;
		else if (m.role == ROLE_ASSISTANT)
			rv = keep_reply(t, &m);
		else if (m.role == ROLE_TOOL)
			drop_call(t, m.id);
		else
			forget(t);
	}
	return rv != 0 ? err_set(err, rv, "the conversation cannot be read") : 0;
}

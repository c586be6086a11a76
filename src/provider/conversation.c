/* One pass. Which form a message has is seen by its content: a list of blocks
 * is the Messages form, all else chat completions. A result belongs to the call
 * of its id in the last assistant message; one that belongs to none is left
 * alone, since the check of the dialect is not made here. */
#include "provider/conversation.h"

#include <stdlib.h>
#include <string.h>

#include <ava.h>
#include "base/error.h"
#include "provider/wire.h"

void conversation_fini(struct conversation *c)
{
	free(c->lines);
	free(c->calls);
	*c = (struct conversation){0};
}

/* The list with room for one more of `size` bytes; NULL: no memory, and it stays. */
static void *more(void *list, size_t n, size_t *cap, size_t size)
{
	size_t want = *cap > 0 ? *cap * 2 : 32;
	void *grown;

	if (n < *cap)
		return list;
	grown = realloc(list, want * size);
	if (grown != NULL)
		*cap = want;
	return grown;
}

static struct said_line *add_line(struct conversation *c, struct slice raw)
{
	struct said_line *l = more(c->lines, c->nlines, &c->cap_lines, sizeof(*l));

	if (l == NULL)
		return NULL;
	c->lines = l;
	l += c->nlines++;
	*l = (struct said_line){.raw = raw, .text = {"", 0}, .last = {"", 0}};
	return l;
}

static struct said_call *add_call(struct conversation *c)
{
	struct said_call *k = more(c->calls, c->ncalls, &c->cap_calls, sizeof(*k));

	if (k == NULL)
		return NULL;
	c->calls = k;
	k += c->ncalls++;
	*k = (struct said_call){
		.id = {"", 0},
		.name = {"", 0},
		.args = {"", 0},
		.result = {"", 0},
		.line = c->nlines - 1,
	};
	return k;
}

static void add_text(struct said_line *l, struct slice text)
{
	if (l->texts++ == 0)
		l->text = text;
	l->last = text;
}

/* Those of the last assistant message stand at the end. */
static void add_result(struct conversation *c, struct slice id, struct slice text, bool is_error)
{
	for (size_t i = c->ncalls; i > 0; i--) {
		struct said_call *k = &c->calls[i - 1];

		if (k->line != c->calls[c->ncalls - 1].line)
			return; /* ids of earlier replies may be the same */
		if (k->answered || k->id.len != id.len || memcmp(k->id.s, id.s, id.len) != 0)
			continue;
		k->answered = true;
		k->result_line = c->nlines - 1;
		k->result = text;
		k->is_error = is_error;
		return;
	}
}

/* ---- the Messages form */

static int read_blocks(struct conversation *c, struct said_line *l)
{
	struct wire_reader r;
	struct wire_block b;
	struct said_call *k;
	bool user = false;
	int rv;

	wire_reader_init(&r, l->raw.s, l->raw.len);
	rv = wire_message(&r, &user);
	l->user = user;
	l->role = user ? SAID_USER : SAID_ASSISTANT;
	while (rv == 1 && (rv = wire_block(&r, &b)) == 1) {
		if (b.type == WIRE_TEXT)
			add_text(l, b.text);
		if (b.type == WIRE_TOOL_RESULT)
			add_result(c, b.id, b.text, b.is_error);
		if (b.type != WIRE_TOOL_USE)
			continue;
		k = add_call(c);
		if (k == NULL)
			return AVA_ENOMEM;
		k->id = b.id;
		k->name = b.name;
		k->args = b.input;
	}
	return rv < 0 ? AVA_EINVAL : 0;
}

/* ---- chat completions */

static void read_function(struct jscan *w, struct said_call *k)
{
	struct slice key;

	if (jscan_peek(w) != '{' || !jscan_object(w)) {
		jscan_skip(w, NULL);
		return;
	}
	while (jscan_key(w, &key)) {
		bool text = jscan_peek(w) == '"';

		if (text && slice_is(key, "name"))
			jscan_string(w, &k->name);
		else if (text && slice_is(key, "arguments"))
			k->args_string = jscan_string(w, &k->args);
		else
			jscan_skip(w, NULL);
	}
}

static int read_calls(struct conversation *c, struct jscan *w)
{
	struct said_call *k;
	struct slice key;

	if (jscan_peek(w) != '[' || !jscan_array(w)) {
		jscan_skip(w, NULL);
		return 0;
	}
	while (jscan_item(w)) {
		if (jscan_peek(w) != '{') {
			jscan_skip(w, NULL);
			continue;
		}
		k = add_call(c);
		if (k == NULL)
			return AVA_ENOMEM;
		jscan_object(w);
		while (jscan_key(w, &key)) {
			if (slice_is(key, "id") && jscan_peek(w) == '"')
				jscan_string(w, &k->id);
			else if (slice_is(key, "function"))
				read_function(w, k);
			else
				jscan_skip(w, NULL);
		}
	}
	return 0;
}

static int read_chat(struct conversation *c, struct said_line *l)
{
	struct slice key, role = {"", 0}, id = {"", 0}, text = {"", 0};
	struct jscan w;
	int rv = 0;

	jscan_init(&w, l->raw.s, l->raw.len);
	jscan_object(&w);
	while (rv == 0 && jscan_key(&w, &key)) {
		bool string = jscan_peek(&w) == '"';

		if (string && slice_is(key, "role"))
			jscan_string(&w, &role);
		else if (string && slice_is(key, "content"))
			jscan_string(&w, &text);
		else if (string && slice_is(key, "tool_call_id"))
			jscan_string(&w, &id);
		else if (slice_is(key, "tool_calls"))
			rv = read_calls(c, &w);
		else
			jscan_skip(&w, NULL);
	}
	l->role = slice_is(role, "assistant") ? SAID_ASSISTANT
		  : slice_is(role, "tool")    ? SAID_TOOL
					      : SAID_USER;
	l->user = l->role != SAID_ASSISTANT;
	if (l->role == SAID_TOOL)
		add_result(c, id, text, false);
	else if (text.len > 0)
		add_text(l, text);
	return rv != 0 ? rv : w.failed ? AVA_EINVAL : 0;
}

/* ---- both */

static bool has_blocks(struct slice raw)
{
	struct slice key;
	struct jscan w;

	jscan_init(&w, raw.s, raw.len);
	if (jscan_object(&w))
		while (jscan_key(&w, &key)) {
			if (slice_is(key, "content"))
				return jscan_peek(&w) == '[';
			jscan_skip(&w, NULL);
		}
	return false;
}

int conversation_read(struct conversation *c, const char *lines, size_t len, struct ava_error *err)
{
	struct slice raw = {NULL, 0};
	struct said_line *l;
	struct jscan w;
	int rv = 0;

	*c = (struct conversation){0};
	jscan_init(&w, lines, len);
	w.last = '['; /* as if the head had just opened the array */
	while (rv == 0 && jscan_peek(&w) != 0 && jscan_item(&w) && jscan_skip(&w, &raw)) {
		l = add_line(c, raw);
		if (l == NULL)
			rv = AVA_ENOMEM;
		else
			rv = has_blocks(raw) ? read_blocks(c, l) : read_chat(c, l);
	}
	if (rv == AVA_ENOMEM)
		return err_set(err, rv, "out of memory");
	if (rv != 0 || w.failed)
		return err_set(err, AVA_EINVAL, "message %zu cannot be read", c->nlines);
	return 0;
}

/* Tool results of a conversation in the Messages form, read back: what
 * read_result shows, what citations are checked against, and which calls a
 * crash left without an answer. */
#include "provider/wire.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static int give_result(const struct wire_block *b, size_t k,
		       int (*each)(size_t k, const char *text, size_t len, bool is_error,
				   void *user),
		       void *user)
{
	char *text = malloc(b->text.len + 1);
	int rv;

	if (!text)
		return AVA_ENOMEM;
	rv = each(k, text, b->text.len ? jscan_unescape(b->text, text) : 0, b->is_error, user);
	free(text);
	return rv;
}

int wire_each_result(const char *lines, size_t len,
		     int (*each)(size_t k, const char *text, size_t len, bool is_error, void *user),
		     void *user, struct ava_error *err)
{
	struct wire_reader r;
	struct wire_block b;
	size_t k = 0;
	bool from_user;
	int rv;

	wire_reader_init(&r, lines, len);
	while ((rv = wire_message(&r, &from_user)) == 1) {
		while (from_user && (rv = wire_block(&r, &b)) == 1) {
			if (b.type != WIRE_TOOL_RESULT)
				continue;
			rv = give_result(&b, k++, each, user);
			if (rv != 0)
				return rv;
		}
		if (rv < 0)
			break;
	}
	return rv < 0 ? err_set(err, rv, "the conversation cannot be read") : 0;
}

/* ---- calls without a result */

static const char *keep(struct turn *t, struct slice raw)
{
	char *text = arena_get(&t->mem, raw.len + 1);

	if (text)
		text[raw.len ? jscan_unescape(raw, text) : 0] = 0;
	return text;
}

static int keep_call(struct turn *t, const struct wire_block *b)
{
	struct turn_call *c;

	if (!t->calls) {
		t->calls = arena_get(&t->mem, TURN_MAX_CALLS * sizeof(*t->calls));
		if (!t->calls)
			return AVA_ENOMEM;
	}
	if (t->ncalls == TURN_MAX_CALLS)
		return AVA_ETOOBIG;
	c = &t->calls[t->ncalls++];
	memset(c, 0, sizeof(*c));
	c->wire_id = keep(t, b->id);
	c->name = keep(t, b->name);
	c->args_len = b->input.len ? b->input.len : 2;
	c->args = arena_copy(&t->mem, b->input.len ? b->input.s : "{}", c->args_len);
	return c->wire_id && c->name && c->args ? 0 : AVA_ENOMEM;
}

/* The texts of a reply are one text, as when it came. */
static int keep_text(struct turn *t, const struct wire_block *b)
{
	size_t len = t->text_len;
	char *text = arena_get(&t->mem, len + b->text.len + 1);

	if (!text)
		return AVA_ENOMEM;
	memcpy(text, t->text, len);
	len += b->text.len ? jscan_unescape(b->text, text + len) : 0;
	text[len] = 0;
	t->text = text;
	t->text_len = len;
	return 0;
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

int wire_open_calls(const char *lines, size_t len, struct turn *t, struct ava_error *err)
{
	struct wire_reader r;
	struct wire_block b;
	bool from_user;
	int rv;

	forget(t);
	wire_reader_init(&r, lines, len);
	while ((rv = wire_message(&r, &from_user)) == 1) {
		/* A user message after the calls holds all their results. */
		forget(t);
		while (!from_user && (rv = wire_block(&r, &b)) == 1) {
			if (b.type == WIRE_TOOL_USE)
				rv = keep_call(t, &b);
			else if (b.type == WIRE_TEXT)
				rv = keep_text(t, &b);
			if (rv < 0)
				break;
		}
		if (rv < 0)
			break;
	}
	return rv < 0 ? err_set(err, rv, "the conversation cannot be read") : 0;
}

/* Reading a request body: one walk over the bytes. What is not needed (system
 * text, descriptions, texts of the model) is skipped, not copied. Text that
 * asks the planner to finish is taken from user text blocks only, which the
 * runtime alone writes; what stands in tool results is never obeyed. */
#include "provider/offline_body.h"

#include <ava.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/util.h"
#include "provider/wire.h"

#define TASK_MAX   (256u << 10)
#define NOTICE_MAX 4096u
#define RENEWED    "goes on from here with a new budget" /* as subagent/resume.c says it */

static const char *const tool_names[OFFLINE_NTOOLS] = {
	[OFFLINE_SEARCH] = "search_codebase",
	[OFFLINE_READ] = "read_file",
	[OFFLINE_SEARCH_READ] = "search_and_read",
	[OFFLINE_SUBMIT] = "submit_result",
};

static int tool_id(struct slice name)
{
	for (int i = 0; i < OFFLINE_NTOOLS; i++)
		if (slice_is(name, tool_names[i]))
			return i;
	return -1;
}

bool offline_tool_takes(const struct offline_tool *t, const char *prop)
{
	for (unsigned i = 0; i < t->nprops; i++)
		if (slice_is(t->props[i], prop))
			return true;
	return false;
}

/* Names of the members of input_schema.properties. */
static void read_schema(struct jscan *w, struct offline_tool *t)
{
	struct slice key, prop;

	if (jscan_peek(w) != '{') {
		jscan_skip(w, NULL);
		return;
	}
	jscan_object(w);
	while (jscan_key(w, &key)) {
		if (!slice_is(key, "properties") || jscan_peek(w) != '{') {
			jscan_skip(w, NULL);
			continue;
		}
		jscan_object(w);
		while (jscan_key(w, &prop)) {
			if (t->nprops < OFFLINE_MAX_PROPS)
				t->props[t->nprops++] = prop;
			jscan_skip(w, NULL);
		}
	}
}

static void read_tools(struct jscan *w, struct offline_body *b)
{
	struct slice key, name;

	jscan_array(w);
	while (jscan_item(w)) {
		struct offline_tool t = {.offered = true};
		int id = -1;

		jscan_object(w);
		while (jscan_key(w, &key)) {
			if (slice_is(key, "name") && jscan_string(w, &name))
				id = tool_id(name);
			else if (slice_is(key, "input_schema"))
				read_schema(w, &t);
			else
				jscan_skip(w, NULL);
		}
		if (id >= 0)
			b->tools[id] = t;
	}
}

/* The largest number in call ids of ours ("toolu_3_1"), so that new ids stay
 * unique even when a summary has taken the place of earlier messages. */
static void note_id(struct offline_body *b, struct slice id)
{
	unsigned long n = 0;

	if (id.len < 8 || memcmp(id.s, "toolu_", 6) != 0)
		return;
	for (size_t i = 6; i < id.len && id.s[i] >= '0' && id.s[i] <= '9' && n < 1000000; i++)
		n = n * 10 + (unsigned long)(id.s[i] - '0');
	if (n >= b->number)
		b->number = (unsigned)n + 1;
}

static void add_call(struct offline_body *b, const struct wire_block *blk, unsigned message)
{
	note_id(b, blk->id);
	if (b->ncalls == OFFLINE_MAX_CALLS)
		return;
	b->calls[b->ncalls++] = (struct offline_call){
		.tool = tool_id(blk->name), .id = blk->id, .input = blk->input, .message = message};
}

static void add_result(struct offline_body *b, const struct wire_block *blk)
{
	for (unsigned i = b->ncalls; i > 0; i--) {
		struct offline_call *c = &b->calls[i - 1];

		if (c->id.len != blk->id.len || memcmp(c->id.s, blk->id.s, c->id.len) != 0)
			continue;
		c->result = blk->text;
		c->is_error = blk->is_error;
		return;
	}
}

/* Words of a notice that mean: hand in what you have. A run that goes on with a
 * new budget is past all that. */
static void add_notice(struct offline_body *b, struct slice raw)
{
	static const char *const words[] = {"submit", "limit", "% of", "budget", "wrap up"};
	char text[NOTICE_MAX + 1];

	raw.len = MIN(raw.len, NOTICE_MAX);
	text[jscan_unescape(raw, text)] = 0;
	if (strstr(text, RENEWED) != NULL) {
		b->wrap_up = false;
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasestr(text, words[i]) != NULL)
			b->wrap_up = true;
}

static int add_task(struct offline_body *b, struct slice raw)
{
	char *text;

	if (b->task_len > 0)
		return 0; /* the first text is the task; more of it are notes */
	raw.len = MIN(raw.len, TASK_MAX);
	text = arena_get(&b->mem, raw.len + 1);
	if (text == NULL)
		return AVA_ENOMEM;
	b->task_len = jscan_unescape(raw, text);
	b->task = text;
	return 0;
}

static int read_messages(struct jscan *w, struct offline_body *b)
{
	struct wire_reader r = {.in_body = true};
	struct wire_block blk;
	unsigned users = 0;
	int more, rv = 0;
	bool user;

	jscan_array(w);
	r.w = *w;
	while (rv == 0 && (more = wire_message(&r, &user)) == 1) {
		users += user;
		while (rv == 0 && wire_block(&r, &blk) == 1) {
			if (blk.type == WIRE_TOOL_USE && !user)
				add_call(b, &blk, r.messages);
			else if (blk.type == WIRE_TOOL_RESULT && user)
				add_result(b, &blk);
			else if (blk.type == WIRE_TEXT && user && users == 1)
				rv = add_task(b, blk.text);
			else if (blk.type == WIRE_TEXT && user)
				add_notice(b, blk.text);
		}
		if (rv == 0 && r.chat && r.blocks == 0)
			rv = AVA_EINVAL; /* neither text nor blocks */
	}
	if (rv == 0 && (more < 0 || r.w.failed))
		rv = AVA_EINVAL;
	*w = r.w;
	/* Each user message was followed by one call, also where the reply
	 * was empty and is not stored. */
	b->number = MAX(b->number, MAX(users, 1u));
	return rv;
}

static int read_member(struct jscan *w, struct slice key, struct offline_body *b)
{
	struct slice value;

	if (slice_is(key, "tools") && jscan_peek(w) == '[') {
		read_tools(w, b);
	} else if (slice_is(key, "messages")) {
		return read_messages(w, b);
	} else if (slice_is(key, "tool_choice") && jscan_skip(w, &value)) {
		b->forced = memmem(value.s, value.len, "\"submit_result\"", 15) != NULL;
	} else if (slice_is(key, "max_tokens") && jscan_skip(w, &value)) {
		b->max_tokens = slice_number(value, 0);
	} else if (!w->failed && w->last == ':') {
		jscan_skip(w, NULL);
	}
	return 0;
}

int offline_body_read(struct offline_body *b, const char *body, size_t len, struct ava_error *err)
{
	struct slice key;
	struct jscan w;
	int rv = 0;

	*b = (struct offline_body){.task = "", .number = 1};
	/* Task, unescaped results and what is planned from them. */
	arena_init(&b->mem, 2 * len + (8u << 20));
	jscan_init(&w, body, len);
	jscan_object(&w);
	while (rv == 0 && jscan_key(&w, &key))
		rv = read_member(&w, key, b);
	if (rv == AVA_ENOMEM)
		err_set(err, rv, "out of memory");
	else if (rv != 0 || w.failed || jscan_peek(&w) != 0)
		rv = err_set(err, AVA_EINVAL,
			     "the request is not of the Messages form, near byte %zu",
			     (size_t)(w.at - body));
	if (rv != 0)
		offline_body_fini(b);
	return rv;
}

void offline_body_fini(struct offline_body *b)
{
	arena_fini(&b->mem);
}

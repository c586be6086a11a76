/* What the mock says, before a dialect renders it, and how events are framed.
 *
 * A conversation makes `turns` replies with tool calls, then one submit_result
 * (or a text, where there is no such tool). Arguments come from the plan, or
 * are made from the tool's schema: each required member with a plain value of
 * its type. A fault makes the content odd. */
#include "reply.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "signature.h"
#include "script.h"

void reply_drop(struct reply *r)
{
	buf_fini(&r->bytes);
	free(r->ends);
	*r = (struct reply){0};
}

void reply_event(struct reply *r)
{
	if (r->n == r->cap) {
		r->cap = r->cap ? r->cap * 2 : 64;
		r->ends = realloc(r->ends, r->cap * sizeof *r->ends);
		assert(r->ends != NULL);
	}
	r->ends[r->n++] = (uint32_t)r->bytes.len;
}

/* ---- tools of the request ---- */

static uint32_t tool_member(const struct ask *a, uint32_t tool, const char *name)
{
	if (a->service != SERVICE_ANTHROPIC && !a->items)
		tool = tape_get(a->t, tool, "function");
	return tool ? tape_get(a->t, tool, name) : 0;
}

static uint32_t tool_find(const struct ask *a, const char *name)
{
	if (a->tools != 0)
		TAPE_EACH(a->t, i, a->tools)
	if (tape_is(a->t, tool_member(a, i, "name"), name))
		return i;
	return 0;
}

static uint32_t tool_pick(const struct ask *a, const struct plan *p)
{
	if (a->tools == 0 || a->no_tools)
		return 0;
	if (p->tool[0] != '\0')
		return tool_find(a, p->tool);
	TAPE_EACH(a->t, i, a->tools)
	{
		uint32_t name = tool_member(a, i, "name");

		if (!tape_is(a->t, name, "submit_result") && !tape_is(a->t, name, "read_result"))
			return i;
	}
	return 0;
}

/* A plain value that fits the schema of one property. */
static void value_for(const struct ask *a, uint32_t schema, struct buf *out)
{
	uint32_t type = tape_get(a->t, schema, "type");
	uint32_t choices = tape_get(a->t, schema, "enum");
	size_t len;
	const char *raw;

	if (choices != 0 && a->t->nodes[choices].count > 0) {
		raw = tape_raw(a->t, choices + 1, &len);
		buf_add(out, raw, len);
	} else if (tape_is(a->t, type, "integer") || tape_is(a->t, type, "number")) {
		buf_adds(out, "1");
	} else if (tape_is(a->t, type, "boolean")) {
		buf_adds(out, "true");
	} else if (tape_is(a->t, type, "array")) {
		buf_adds(out, "[]");
	} else if (tape_is(a->t, type, "object")) {
		buf_adds(out, "{}");
	} else {
		buf_adds(out, "\"mock\"");
	}
}

static void args_from_schema(const struct ask *a, uint32_t tool, struct buf *out)
{
	uint32_t schema = tool_member(
		a, tool, a->service == SERVICE_ANTHROPIC ? "input_schema" : "parameters");
	uint32_t required = schema ? tape_get(a->t, schema, "required") : 0;
	uint32_t properties = schema ? tape_get(a->t, schema, "properties") : 0;
	char name[128];

	buf_addc(out, '{');
	if (required != 0 && properties != 0 && tape_kind(a->t, required) == TAPE_ARRAY)
		TAPE_EACH(a->t, i, required)
		{
			uint32_t property =
				tape_get(a->t, properties, tape_copy(a->t, i, name, sizeof name));

			if (out->data[out->len - 1] != '{')
				buf_addc(out, ',');
			quote_json(out, name, strlen(name));
			buf_addc(out, ':');
			if (property != 0)
				value_for(a, property, out);
			else
				buf_adds(out, "\"mock\"");
		}
	buf_addc(out, '}');
}

/* The plan's arguments with %t as the turn. */
static void args_from_plan(const char *args, unsigned turn, struct buf *out)
{
	for (const char *s = args; *s != '\0'; s++) {
		if (s[0] == '%' && s[1] == 't') {
			buf_addf(out, "%u", turn);
			s++;
		} else {
			buf_addc(out, *s);
		}
	}
}

/* ---- contents ---- */

static struct call *call_add(struct content *c, const char *name, struct buf *args)
{
	struct call *k;

	c->calls = realloc(c->calls, (c->ncalls + 1) * sizeof *c->calls);
	assert(c->calls != NULL);
	k = &c->calls[c->ncalls++];
	*k = (struct call){.name = strdup(name), .args = buf_take(args, NULL)};
	assert(k->name != NULL && k->args != NULL);
	return k;
}

static void add_calls(const struct ask *a, const struct convo *x, struct content *c, unsigned n)
{
	uint32_t tool = tool_pick(a, &x->plan);
	char name[80];
	struct buf args;

	if (tool == 0)
		return;
	tape_copy(a->t, tool_member(a, tool, "name"), name, sizeof name);
	buf_init(&args, 1u << 20);
	for (unsigned i = 0; i < n; i++) {
		if (x->plan.args[0] != '\0')
			args_from_plan(x->plan.args, a->nassistant + 1, &args);
		else
			args_from_schema(a, tool, &args);
		call_add(c, name, &args);
	}
	buf_fini(&args);
}

static void add_submit(const struct ask *a, const struct convo *x, struct content *c)
{
	struct buf args;

	buf_init(&args, 1u << 20);
	if (x->plan.submit[0] != '\0')
		args_from_plan(x->plan.submit, a->nassistant + 1, &args);
	else
		buf_addf(&args,
			 "{\"output\":null,\"summary\":\"Done after %u turns.\",\"confidence\":0.9,"
			 "\"caveats\":[]}",
			 a->nassistant + 1);
	call_add(c, "submit_result", &args);
	buf_fini(&args);
}

static void call_rename(struct content *c, const char *name)
{
	if (c->ncalls == 0)
		return;
	free(c->calls[0].name);
	c->calls[0].name = strdup(name);
	assert(c->calls[0].name != NULL);
}

static void call_reargue(struct content *c, const char *args)
{
	if (c->ncalls == 0)
		return;
	free(c->calls[0].args);
	c->calls[0].args = strdup(args);
	assert(c->calls[0].args != NULL);
}

static void drop_calls(struct content *c)
{
	for (unsigned i = 0; i < c->ncalls; i++) {
		free(c->calls[i].name);
		free(c->calls[i].args);
	}
	free(c->calls);
	c->calls = NULL;
	c->ncalls = 0;
}

/* `n` brackets deep. */
static void call_deep(struct content *c, unsigned n)
{
	struct buf b;
	char *args;

	buf_init(&b, 1u << 20);
	buf_adds(&b, "{\"a\":");
	for (unsigned i = 0; i < n; i++)
		buf_addc(&b, '[');
	for (unsigned i = 0; i < n; i++)
		buf_addc(&b, ']');
	buf_addc(&b, '}');
	args = buf_take(&b, NULL);
	call_reargue(c, args);
	free(args);
}

static void long_name(struct content *c, unsigned n)
{
	char *name = malloc(n + 1);

	assert(name != NULL);
	memset(name, 'n', n);
	name[n] = '\0';
	call_rename(c, name);
	free(name);
}

static void make_odd(struct content *c, const struct ask *a, const struct convo *x,
		     const struct fault *f)
{
	switch (f->kind) {
	case FAULT_HALF_TOOL:
		c->stop = "max_tokens";
		call_reargue(c, "{\"path\":\"half of a na");
		break;
	case FAULT_REFUSAL:
	case FAULT_EMPTY:
		drop_calls(c);
		c->text = "";
		c->thinking = false;
		c->stop = f->kind == FAULT_EMPTY ? "end_turn" : "refusal";
		break;
	case FAULT_PAUSE:
		drop_calls(c);
		c->stop = "pause_turn";
		break;
	case FAULT_WINDOW:
	case FAULT_MAX_TOKENS:
		drop_calls(c);
		c->stop = f->kind == FAULT_WINDOW ? "model_context_window_exceeded" : "max_tokens";
		break;
	case FAULT_CALLS:
		drop_calls(c);
		add_calls(a, x, c, (unsigned)MIN(f->arg, 1000));
		c->stop = "tool_use";
		break;
	case FAULT_DUP_IDS:
		add_calls(a, x, c, 1);
		c->stop = "tool_use";
		break;
	case FAULT_BAD_ARGS:
		call_reargue(c, "{\"path\": \"a\", }");
		break;
	case FAULT_ARGS_CONCAT:
		call_reargue(c, "{\"a\":1}{\"b\":2}");
		break;
	case FAULT_LONG_NAME:
		long_name(c, (unsigned)MIN(f->arg, 1 << 20));
		break;
	case FAULT_BAD_NAME:
		call_rename(c, "rm\n");
		break;
	case FAULT_UNKNOWN_TOOL:
		call_rename(c, "no_such_tool");
		break;
	case FAULT_DEEP:
		call_deep(c, (unsigned)MIN(f->arg, 100000));
		break;
	case FAULT_TEXT_CALL:
		drop_calls(c);
		c->text = "<tool_call>{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}"
			  "</tool_call>";
		c->stop = "end_turn";
		break;
	case FAULT_NO_SUBMIT:
		drop_calls(c);
		c->text = "The work is done: everything was found.";
		c->stop = "end_turn";
		break;
	default:
		return; /* not about the content */
	}
	c->odd = f->kind;
}

void content_make(const struct ask *a, const struct convo *x, const struct fault *f,
		  struct content *out)
{
	bool forced_submit = tape_is(a->t, a->forced, "submit_result");
	bool can_submit = tool_find(a, "submit_result") != 0 && !a->no_tools;

	*out = (struct content){.text = x->plan.text, .thinking = a->thinking || x->plan.thinking};
	if (a->formed && a->no_tools)
		out->text = "{\"summary\":\"Done as it was asked for.\",\"confidence\":0.9}";
	else if (x->plan.script[0] != '\0')
		script_play(x->plan.script, a->nassistant, out);
	else if (a->nassistant < x->plan.turns && !forced_submit)
		add_calls(a, x, out, x->plan.calls);
	else if (can_submit)
		add_submit(a, x, out);
	out->stop = out->ncalls > 0 ? "tool_use" : "end_turn";
	if (f != NULL)
		make_odd(out, a, x, f);
}

void content_fini(struct content *c)
{
	free(c->own_text);
	drop_calls(c);
}

/* ---- pieces and frames ---- */

const char *piece_of(const char *s, unsigned i, unsigned pieces, size_t *len)
{
	size_t all = strlen(s), from = all * i / pieces, to = all * (i + 1) / pieces;

	/* never inside a character */
	while (from > 0 && from < all && ((unsigned char)s[from] & 0xc0) == 0x80)
		from--;
	while (to > 0 && to < all && ((unsigned char)s[to] & 0xc0) == 0x80)
		to--;
	*len = to - from;
	return s + from;
}

unsigned piece_count(const struct say *s, unsigned others)
{
	unsigned chunks = s->convo->plan.chunks;

	return chunks > others ? chunks - others : 1;
}

void json_piece(struct buf *out, const struct say *s, const char *text, size_t len,
		enum place place)
{
	const struct fault *f = s->fault;
	struct buf b;

	buf_init(&b, 1u << 24);
	quote_json(&b, text, len);
	if (b.len >= 2)
		buf_add(out, b.data + 1, b.len - 2);
	buf_fini(&b);
	if (f == NULL || (int32_t)place != (f->kind == FAULT_BIG ? 0 : f->arg))
		return;
	if (f->kind == FAULT_BAD_UTF8)
		buf_add(out, "\xff\xc0\x80\xed\xa0\x80", 6);
	else if (f->kind == FAULT_SURROGATE)
		buf_adds(out, "\\ud800 and \\udc00");
	else if (f->kind == FAULT_NUL)
		buf_adds(out, "a\\u0000b");
	else if (f->kind == FAULT_BIG)
		for (int32_t i = 0; i < MIN(f->arg, 64 << 20); i += 16)
			buf_adds(out, "sixteen bytes...");
}

const char *call_id(struct reply *r, const struct say *s, unsigned n, char id[40])
{
	if (s->content->odd == FAULT_DUP_IDS)
		n = 0;
	snprintf(id, 40, "%s%016" PRIx64, s->voice->id,
		 (s->serial * 1024 + n) * 0x9e3779b97f4a7c15u);
	r->print = fingerprint_add(r->print, id, strlen(id));
	return id;
}

void frame_open(struct reply *r, const char *event)
{
	if (event != NULL)
		buf_addf(&r->bytes, "event: %s\n", event);
	buf_adds(&r->bytes, "data: ");
}

void frame_close(struct reply *r)
{
	buf_adds(&r->bytes, "\n\n");
	reply_event(r);
}

static int64_t count_output(const struct say *s)
{
	const struct content *c = s->content;
	int64_t bytes = (int64_t)strlen(c->text) + (c->thinking ? s->voice->thinking : 0);

	for (unsigned i = 0; i < c->ncalls; i++)
		bytes += 32 + (int64_t)strlen(c->calls[i].args);
	if (s->convo->plan.output_tokens > 0) /* no fewer than it can have been */
		return MAX(s->convo->plan.output_tokens, bytes / 16 + 1);
	return c->stop[0] == 'r' && s->ask->service == SERVICE_ANTHROPIC ? 0 : bytes / 4 + 1;
}

void reply_render(struct reply *r, struct say *s)
{
	const struct fault *f = s->fault;

	s->voice = s->ask->items                          ? &voice_responses
		   : s->ask->service == SERVICE_ANTHROPIC ? &voice_anthropic
							  : &voice_openai;
	r->output_tokens = count_output(s);
	r->print = 1;
	r->stream = s->ask->stream;
	if (!s->ask->stream) {
		s->voice->whole(r, s);
		reply_event(r);
		return;
	}
	s->voice->stream(r, s);
	if (f == NULL || (f->kind != FAULT_ERROR && f->kind != FAULT_BAD_JSON) ||
	    r->n <= (unsigned)f->arg)
		return;
	/* as many events as it says, then one that ends them */
	r->n = (unsigned)f->arg;
	r->bytes.len = r->n ? r->ends[r->n - 1] : 0;
	if (f->kind == FAULT_ERROR) {
		s->voice->error(r, s);
		return;
	}
	frame_open(r, NULL);
	buf_adds(&r->bytes, "{\"type\":\"content_block_delta\",\"index\":0,");
	frame_close(r);
}

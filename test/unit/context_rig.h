/* A world for long conversations: the machine, the real wire forms and the real
 * collector over a messages.jsonl in memory, and a model that knows nothing but
 * the request it is sent. Every request is checked: valid, within the window, and
 * an extension of the last one unless an edit was written in between. */
#ifndef UNIT_CONTEXT_RIG_H
#define UNIT_CONTEXT_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heads.h"
#include "unit.h"

#include "agent/agent.h"
#include "agent/limit.h"
#include "agent/tool.h"
#include "base/buf.h"
#include "base/util.h"
#include "codec/json.h"
#include "provider/context.h"
#include "provider/dialect.h"
#include "provider/messages.h"
#include "provider/wire.h"

#define CTX_BYTES_PER_TOKEN 4

static const struct tool ctx_read_file = {
	.name = "read_file",
	.schema = "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"}},"
		  "\"required\":[\"path\"]}",
	.flags = TOOL_REPEATABLE,
};
static const struct tool ctx_read_result = {
	.name = "read_result",
	.schema = "{\"type\":\"object\",\"properties\":{\"call_id\":{\"type\":\"string\"}},"
		  "\"required\":[\"call_id\"]}",
	.flags = TOOL_REPEATABLE,
};
static const struct tool ctx_submit = {
	.name = "submit_result",
	.schema = "{\"type\":\"object\",\"properties\":{\"output\":{},\"summary\":{\"type\":"
		  "\"string\"},\"confidence\":{\"type\":\"number\"}},\"required\":[\"summary\","
		  "\"confidence\"]}",
	.flags = TOOL_ENDS,
};
static const struct tool *const ctx_tools[] = {&ctx_read_file, &ctx_read_result, &ctx_submit};

struct ctx {
	struct agent a;
	struct agent_spec spec;
	const struct dialect *dialect;
	int64_t real_window; /* tokens: what the service takes */
	int steps;           /* files f1, f2 … that the task is about */
	int needs[2];        /* of these the values must stand in one request at the end */
	size_t file_bytes;   /* of each */

	struct buf file, last, now; /* messages.jsonl; requests up to their tail */
	size_t from;                /* the newest cut */
	bool edited;                /* since the last request */
	uint32_t *before;           /* calls before an iteration */
	int32_t iterations, cap;

	/* what arrives when the machine waits */
	struct turn *reply;
	bool saved, compacted, overflow, want_slot;
	struct agent_told told; /* by the refusal */
	bool tells;             /* numbers */
	int compact_rv;
	struct agent_compacted done;

	int starved; /* 1: while results were replaced, 2: while a span was cut; more: never */

	/* counted */
	int requests, edits, cuts, overflows, fetches;
	size_t most_request, most_read; /* bytes */
	bool over;
	enum ava_status status;
	char reason[32], summary[64];
};

static inline struct ctx *ctx_of(struct agent *a)
{
	return a->world;
}

static inline void ctx_line(struct ctx *c, const char *text, size_t len)
{
	assert_int_equal(buf_add(&c->file, text, len), 0);
	assert_int_equal(buf_addc(&c->file, '\n'), 0);
}

static inline struct call_ref ctx_name(size_t k, void *user)
{
	struct ctx *c = user;
	int32_t it = c->iterations;

	while (it > 0 && c->before[it] > k)
		it--;
	return (struct call_ref){it, (uint32_t)(k - c->before[it]) + 1};
}

/* ---- files and results */

static inline void ctx_file(const struct ctx *c, int n, struct buf *out)
{
	buf_addf(out, "value of f%d is %d\n", n, n * 7919 % 100003);
	while (out->len < c->file_bytes)
		buf_addf(out, "line about f%d, of which nothing is asked\n", n);
}

static inline int ctx_find(size_t k, const char *text, size_t len, bool is_error, void *user)
{
	struct {
		size_t want;
		struct buf out;
	} *f = user;

	if (k != f->want)
		return 0;
	buf_add(&f->out, text, len);
	return 1;
}

static inline void ctx_old_result(struct ctx *c, const char *id, struct buf *out)
{
	struct {
		size_t want;
		struct buf out;
	} f = {0};
	struct call_ref at;
	TEST_BUF(said, 1u << 28);

	assert_true(call_ref_read(id, &at));
	assert_true(at.iteration <= c->iterations);
	f.want = c->before[at.iteration] + at.n - 1;
	buf_init(&f.out, 1u << 20);
	assert_int_equal(messages_said(&said, c->file.data, c->file.len, NULL), 0);
	assert_int_equal(c->dialect->results(said.data, said.len, ctx_find, &f, NULL), 1);
	buf_add(out, f.out.data, f.out.len);
	buf_fini(&f.out);
}

/* ---- the model: what it knows stands in the request */

struct ctx_known {
	int step;           /* the highest file it has asked for, as far as it can see */
	int value[2];       /* of needs; 0: not to be seen */
	char marker[2][16]; /* the call that a marker or the ledger names for it */
};

static inline int ctx_path(const char *s)
{
	const char *at = strstr(s, "path");

	at = at != NULL ? strstr(at, "\"f") : NULL;
	return at != NULL ? atoi(at + 2) : 0;
}

static inline char *ctx_text(struct slice raw)
{
	char *s = malloc(raw.len + 1);

	assert_non_null(s);
	s[jscan_unescape(raw, s)] = 0;
	return s;
}

static inline void ctx_value(const struct ctx *c, struct ctx_known *k, const char *text)
{
	for (int i = 0; i < 2; i++) {
		char want[40];
		const char *at;

		snprintf(want, sizeof(want), "value of f%d is ", c->needs[i]);
		at = strstr(text, want);
		if (at != NULL)
			k->value[i] = atoi(at + strlen(want));
	}
}

/* The ledger: "[ava] c12.1 read_file {"path":"f12"}: value …" */
static inline void ctx_ledger(const struct ctx *c, struct ctx_known *k, const char *text)
{
	for (const char *at = text; (at = strstr(at, "[ava] c")) != NULL; at++) {
		char id[16] = "";
		int n = ctx_path(at), used = 0;

		(void)used;
		sscanf(at, "[ava] %15s", id);
		k->step = MAX(k->step, n);
		for (int i = 0; i < 2; i++)
			if (n == c->needs[i])
				snprintf(k->marker[i], sizeof(k->marker[i]), "%s", id);
	}
}

static inline void ctx_know(const struct ctx *c, struct ctx_known *k)
{
	struct messages_info info;
	struct conversation said;
	TEST_BUF(again, 1u << 28);
	char *text;

	*k = (struct ctx_known){0};
	assert_int_equal(messages_request(&again, c->file.data + c->from, c->file.len - c->from, -1,
					  &info, NULL),
			 0);
	assert_int_equal(conversation_read(&said, c->now.data + info.head_len,
					   c->now.len - info.head_len, NULL),
			 0);
	text = ctx_text(said.lines[0].text);
	ctx_ledger(c, k, text);
	free(text);
	for (size_t i = 0; i < said.ncalls; i++) {
		int n;

		text = ctx_text(said.calls[i].args);
		n = ctx_path(text);
		free(text);
		k->step = MAX(k->step, n);
		text = ctx_text(said.calls[i].result);
		ctx_value(c, k, text);
		for (int m = 0; m < 2; m++) {
			const char *of = strstr(text, "[ava] The result of ");

			if (n == c->needs[m] && of != NULL)
				sscanf(of, "[ava] The result of %15s", k->marker[m]);
		}
		free(text);
	}
	conversation_fini(&said);
}

static inline void ctx_call(struct turn *t, const char *name, const char *args)
{
	t->calls = arena_get(&t->mem, sizeof(*t->calls));
	t->ncalls = 1;
	t->calls->name = name;
	t->calls->args = arena_copy(&t->mem, args, strlen(args));
	t->calls->args_len = strlen(args);
}

static inline void ctx_decide(struct ctx *c, struct turn *t)
{
	struct ctx_known k;
	char args[120];

	ctx_know(c, &k);
	if (k.step < c->steps) {
		t->text = arena_fmt(&t->mem, "Step %d.", k.step + 1);
		snprintf(args, sizeof(args), "{\"path\":\"f%d\"}", k.step + 1);
		ctx_call(t, "read_file", args);
		return;
	}
	for (int i = 0; i < 2; i++) {
		if (k.value[i] != 0)
			continue;
		c->fetches++;
		if (k.marker[i][0] != 0) {
			snprintf(args, sizeof(args), "{\"call_id\":\"%s\"}", k.marker[i]);
			ctx_call(t, "read_result", args);
		} else {
			snprintf(args, sizeof(args), "{\"path\":\"f%d\"}", c->needs[i]);
			ctx_call(t, "read_file", args);
		}
		return;
	}
	snprintf(args, sizeof(args), "{\"summary\":\"%d\",\"confidence\":1}",
		 k.value[0] + k.value[1]);
	ctx_call(t, "submit_result", args);
}

static inline void ctx_wire(struct ctx *c, struct turn *t)
{
	TEST_BUF(b, 1u << 20);
	struct jw w;

	t->calls->wire_id = arena_fmt(&t->mem, "toolu_%d_1", (int)c->a.at.iteration);
	if (c->dialect == &dialect_openai) {
		jw_init(&w, &b);
		jw_object(&w, NULL);
		jw_str(&w, "role", "assistant");
		jw_str(&w, "content", t->text[0] != 0 ? t->text : NULL);
		jw_array(&w, "tool_calls");
		jw_object(&w, NULL);
		jw_str(&w, "id", t->calls->wire_id);
		jw_str(&w, "type", "function");
		jw_object(&w, "function");
		jw_str(&w, "name", t->calls->name);
		jw_str(&w, "arguments", t->calls->args);
		for (int i = 0; i < 4; i++)
			jw_end(&w);
	} else if (c->dialect == &dialect_responses) {
		buf_adds(&b, "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"encrypted_content\":\"gA\","
			     "\"summary\":[]}\n");
		if (t->text[0] != 0)
			buf_addf(&b,
				 "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{"
				 "\"type\":"
				 "\"output_text\",\"text\":\"%s\",\"annotations\":[]}]}\n",
				 t->text);
		jw_init(&w, &b);
		jw_object(&w, NULL);
		jw_str(&w, "type", "function_call");
		jw_str(&w, "call_id", t->calls->wire_id);
		jw_str(&w, "name", t->calls->name);
		jw_str(&w, "arguments", t->calls->args);
		jw_end(&w);
	} else {
		assert_int_equal(wire_assistant(&b, t), 0);
	}
	t->wire = arena_copy(&t->mem, b.data, b.len);
	t->wire_len = b.len;
}

/* ---- agent/agent.h */

static inline int64_t ctx_now(struct agent *a)
{
	return 1000;
}

static inline void ctx_wake_at(struct agent *a, int64_t at) {}

static inline void ctx_slot_want(struct agent *a)
{
	ctx_of(a)->want_slot = true;
}

static inline void ctx_slot_drop(struct agent *a) {}

/* The request of the file is what a restart would send as well. */
static inline void ctx_build(struct ctx *c)
{
	struct ava_error err = {0};
	struct messages_info info;
	struct buf whole;

	buf_reset(&c->now);
	c->most_read = MAX(c->most_read, c->file.len - c->from);
	assert_int_equal(messages_request(&c->now, c->file.data + c->from, c->file.len - c->from,
					  -1, &info, &err),
			 0);
	if (c->dialect->check(c->now.data + info.head_len, c->now.len - info.head_len, &err) != 0)
		fail_msg("request %d: %s", c->requests, err.text);
	if (c->requests % 64 == 0 || c->edited) {
		buf_init(&whole, 1u << 30);
		if (c->requests < 3000) {
			assert_int_equal(
				messages_request(&whole, c->file.data, c->file.len, -1, NULL, NULL),
				0);
			assert_int_equal(whole.len, c->now.len);
			assert_memory_equal(whole.data, c->now.data, whole.len);
		}
		buf_fini(&whole);
	}
	if (!c->edited && c->last.len > 0) {
		assert_true(c->now.len >= c->last.len);
		assert_memory_equal(c->now.data, c->last.data, c->last.len);
	}
	buf_reset(&c->last);
	buf_add(&c->last, c->now.data, c->now.len);
	c->edited = false;
}

static inline int ctx_infer(struct agent *a, const struct agent_infer *call)
{
	struct ctx *c = ctx_of(a);
	int64_t tokens;
	struct turn *t;

	ctx_build(c);
	c->requests++;
	tokens = (int64_t)c->now.len / CTX_BYTES_PER_TOKEN;
	if (tokens + call->max_output > c->real_window) {
		c->overflows++;
		c->overflow = true;
		c->told = (struct agent_told){.asked = call->max_output};
		if (c->tells) {
			c->told.window = c->real_window;
			c->told.prompt = tokens;
		}
		return 0;
	}
	c->most_request = MAX(c->most_request, c->now.len);
	c->a.at.iteration = call->iteration; /* as ask_model is about to set it */
	t = turn_new();
	ctx_decide(c, t);
	t->text_len = strlen(t->text);
	ctx_wire(c, t);
	t->usage.input = tokens;
	t->usage.output = 20;
	c->reply = t;
	return 0;
}

/* Without memory an edit is the whole one, or none. */
static inline void ctx_starve(struct ctx *c, const struct context_ask *ask,
			      const struct context_edit *whole)
{
	FAULT_LOOP(k, {
		struct context_edit e;
		struct ava_error er = {0};
		int rv = context_edit(&e, ask, c->file.data + c->from, c->file.len - c->from, &er);

		fault_alloc_end();
		if (rv != 0 && rv != AVA_ENOMEM)
			fail_msg("k %ld rv %d %s", k, rv, er.text);
		if (rv == 0) {
			assert_int_equal(e.lines.len, whole->lines.len);
			assert_memory_equal(e.lines.data, whole->lines.data, e.lines.len);
		}
		context_edit_fini(&e);
	});
}

static inline int ctx_compact(struct agent *a, const struct agent_compact *want)
{
	struct ctx *c = ctx_of(a);
	struct context_ask ask = {
		.dialect = c->dialect,
		.root_fd = -1,
		.want = *want,
		.repeats = a->at.repeats,
		.name = ctx_name,
		.user = c,
	};
	struct ava_error err = {0};
	struct context_edit e;
	size_t at = c->file.len;

	c->compact_rv = context_edit(&e, &ask, c->file.data + c->from, c->file.len - c->from, &err);
	if (c->compact_rv != 0)
		fail_msg("an edit that cannot be: %s", err.text);
	if (c->starved < 2 && e.lines.len > 0 && e.cut == (c->starved == 1)) {
		c->starved++;
		ctx_starve(c, &ask, &e);
	}
	c->done = e.bytes;
	c->compacted = true;
	if (e.lines.len > 0) {
		buf_add(&c->file, e.lines.data, e.lines.len);
		c->edited = true;
		c->edits++;
		c->cuts += e.cut;
		if (e.cut)
			c->from = at;
		for (size_t i = 0; i < e.nremoved; i++)
			repeat_removed(a->at.repeats, e.removed[i]);
		if (want->overflow)
			c->spec.window = want->tokens;
	}
	context_edit_fini(&e);
	return 0;
}

static inline void ctx_infer_stop(struct agent *a) {}

static inline int64_t ctx_save_reply(struct agent *a, const struct turn *t, bool wait)
{
	struct ctx *c = ctx_of(a);
	int32_t it = a->at.iteration;

	if (it + 2 > c->cap) {
		c->cap = (it + 2) * 2;
		c->before = realloc(c->before, (size_t)c->cap * sizeof(*c->before));
		assert_non_null(c->before);
		if (c->iterations == 0)
			c->before[0] = c->before[1] = 0;
	}
	for (int32_t i = c->iterations; i < it; i++)
		c->before[i + 1] = c->before[i];
	c->iterations = it + 1;
	c->before[it + 1] = c->before[it] + t->ncalls;
	ctx_line(c, t->wire, t->wire_len);
	return (int64_t)t->wire_len;
}

static inline int ctx_tool_start(struct agent *a, unsigned call)
{
	struct ctx *c = ctx_of(a);
	struct turn_call *k = &a->turn->calls[call];
	json_t *args = json_parse(k->args, k->args_len, NULL);
	TEST_BUF(out, 1u << 20);

	if (strcmp(k->name, "read_file") == 0)
		ctx_file(c, atoi(json_get_str(args, "path") + 1), &out);
	else
		ctx_old_result(c, json_get_str(args, "call_id"), &out);
	k->answered = k->success = true;
	k->error_class = "";
	k->output = arena_copy(&a->turn->mem, out.data, out.len);
	k->output_len = out.len;
	json_decref(args);
	return 0;
}

static inline void ctx_tools_stop(struct agent *a) {}

static inline int64_t ctx_save_results(struct agent *a, struct turn *t, const char *const *notices,
				       unsigned n, unsigned warned)
{
	struct ctx *c = ctx_of(a);
	TEST_BUF(line, 1u << 24);
	int64_t len;

	assert_int_equal(c->dialect->encode_results(&line, t, notices, n), 0);
	ctx_line(c, line.data, line.len);
	len = (int64_t)line.len;
	return len;
}

static inline void ctx_save_end(struct agent *a, const struct agent_end *end)
{
	struct ctx *c = ctx_of(a);

	c->status = end->status;
	snprintf(c->reason, sizeof(c->reason), "%s", end->stop_reason);
	snprintf(c->summary, sizeof(c->summary), "%s", end->summary != NULL ? end->summary : "");
	c->saved = true;
}

static inline void ctx_done(struct agent *a)
{
	ctx_of(a)->over = true;
}

static inline bool ctx_rest(struct agent *a)
{
	return false;
}

static const struct agent_io ctx_io = {
	.now = ctx_now,
	.wake_at = ctx_wake_at,
	.slot_want = ctx_slot_want,
	.slot_drop = ctx_slot_drop,
	.infer = ctx_infer,
	.compact = ctx_compact,
	.infer_stop = ctx_infer_stop,
	.save_reply = ctx_save_reply,
	.tool_start = ctx_tool_start,
	.tools_stop = ctx_tools_stop,
	.rest = ctx_rest,
	.save_results = ctx_save_results,
	.save_end = ctx_save_end,
	.done = ctx_done,
};

/* ---- life */

static inline void ctx_open(struct ctx *c, const struct dialect *d, int64_t window, int iterations)
{
	static const char task[] = "Read f1, f2 and so on in order, then submit the sum.";
	struct dialect_spec ds = {
		.model = "m",
		.system = "You are a reader.",
		.tools = ctx_tools,
		.ntools = 1,
	};
	TEST_BUF(head, 1u << 16);
	TEST_BUF(line, 1u << 16);
	struct jw w;

	*c = (struct ctx){.dialect = d, .real_window = window, .file_bytes = 1600};
	c->spec = (struct agent_spec){
		.limits = {600000, 0, INT64_MAX / 4, iterations},
		.price = {0, 0, 0, 0},
		.max_output = 1024,
		.window = window,
		.tools = ctx_tools,
		.ntools = ARRAY_LEN(ctx_tools),
	};
	buf_init(&c->file, 1u << 30);
	buf_init(&c->last, 1u << 28);
	buf_init(&c->now, 1u << 28);
	assert_int_equal(d->encode_head(&head, &ds), 0);
	jw_init(&w, &c->file);
	jw_object(&w, NULL);
	jw_object(&w, "spec");
	jw_int(&w, "machine", 1);
	jw_str(&w, "head", heads_name(head.data, head.len));
	jw_end(&w);
	jw_end(&w);
	buf_addc(&c->file, '\n');
	assert_int_equal(d->encode_user(&line, task, strlen(task)), 0);
	ctx_line(c, line.data, line.len);
	agent_init(&c->a, &ctx_io, &c->spec, c, (int64_t)(head.len + line.len));
}

static inline void ctx_play(struct ctx *c)
{
	while (!c->over) {
		agent_run(&c->a);
		if (c->want_slot) {
			c->want_slot = false;
			agent_on_slot(&c->a);
		} else if (c->compacted) {
			c->compacted = false;
			agent_on_compacted(&c->a, c->compact_rv, &c->done);
		} else if (c->overflow) {
			c->overflow = false;
			agent_on_refused(&c->a, &c->told, "context_overflow",
					 "the conversation is too large");
		} else if (c->reply != NULL) {
			struct turn *t = c->reply;

			c->reply = NULL;
			agent_on_reply(&c->a, 0, t, NULL, NULL);
		} else if (c->saved) {
			c->saved = false;
			agent_on_saved(&c->a);
		} else if (c->a.state == AGENT_TOOLS) {
			agent_on_tool(&c->a, c->a.answered);
		}
	}
}

static inline void ctx_close(struct ctx *c)
{
	agent_fini(&c->a);
	buf_fini(&c->file);
	buf_fini(&c->last);
	buf_fini(&c->now);
	free(c->before);
}

#endif

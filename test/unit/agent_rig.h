/* A scripted world for the machine: every call of agent/agent.h is counted and
 * checked here, every arrival is given by hand. */
#ifndef UNIT_AGENT_RIG_H
#define UNIT_AGENT_RIG_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "agent/agent.h"
#include "agent/limit.h"
#include "agent/tool.h"
#include "agent/reply.h"
#include "base/buf.h"
#include "base/util.h"

#define MAX_NOTICES 5
#define MAX_CALLS   6

static const struct tool tool_look = {
	.name = "look",
	.schema = "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"}},"
		  "\"required\":[\"path\"]}",
	.flags = TOOL_REPEATABLE,
};
static const struct tool tool_act = {.name = "act", .schema = "{\"type\":\"object\"}"};
static const struct tool tool_submit = {
	.name = "submit_result",
	.schema = "{\"type\":\"object\",\"properties\":{\"output\":{},\"summary\":{\"type\":"
		  "\"string\"},"
		  "\"confidence\":{\"type\":\"number\",\"minimum\":0,\"maximum\":1},"
		  "\"caveats\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},"
		  "\"required\":[\"summary\"]}",
	.flags = TOOL_ENDS,
	.mend = reply_mend,
};
static const struct tool tool_ask = {
	.name = "ask_person",
	.schema = "{\"type\":\"object\",\"properties\":{\"question\":{\"type\":\"string\"},"
		  "\"choices\":{\"type\":\"array\"},\"default\":{\"type\":\"string\"},"
		  "\"timeout\":{\"type\":\"integer\",\"minimum\":1}},"
		  "\"required\":[\"question\"]}",
	.flags = TOOL_REPEATABLE | TOOL_ASKS,
};
static const struct tool *const tools[] = {&tool_look, &tool_act, &tool_submit, &tool_ask};

/* What the machine asked for. */
struct rig {
	struct agent a;
	struct agent_spec spec;
	int64_t now, wake;
	int wants, drops, infers, infer_stops, reply_saves, starts, tools_stops, result_saves, ends,
		dones;
	int asks, ask_ends, checks, rests;
	unsigned asked_call;
	bool approval;
	enum agent_asked asked;
	char question[200], choices[200], fallback[200]; /* "(null)": none */
	struct agent_infer infer;
	struct agent_compact compact;
	int compacts, fail_compact;
	bool reply_wait;
	size_t reply_wire; /* of the last save_reply */
	unsigned started[MAX_CALLS];
	int fail_infer, fail_reply, fail_results, fail_start, fail_ask; /* codes to return, once */
	/* last save_results, or the calls as save_end found them */
	char answers[MAX_CALLS][300], classes[MAX_CALLS][32], ids[MAX_CALLS][16];
	bool good[MAX_CALLS], began[MAX_CALLS];
	unsigned ncalls, nnotices, warned, all_warned;
	char notices[MAX_NOTICES][600];
	int notes[AGENT_NRESOURCES]; /* how often each was told */
	struct agent_end end;
	char reason[24], exhausted[24], error[200], error_class[32], output[300], summary[300],
		caveats[100];
};

static inline struct rig *rig_of(struct agent *a)
{
	return a->world;
}

static inline int64_t io_now(struct agent *a)
{
	return rig_of(a)->now;
}

static inline void io_wake_at(struct agent *a, int64_t at)
{
	rig_of(a)->wake = at;
}

static inline void io_slot_want(struct agent *a)
{
	rig_of(a)->wants++;
}

static inline void io_slot_drop(struct agent *a)
{
	rig_of(a)->drops++;
}

static inline void keep(char *out, size_t size, const char *s)
{
	snprintf(out, size, "%s", s != NULL ? s : "(null)");
}

static inline int once(int *code)
{
	int rv = *code;

	*code = 0;
	return rv;
}

static inline int io_infer(struct agent *a, const struct agent_infer *call)
{
	struct rig *r = rig_of(a);

	if (r->fail_infer < 0)
		return once(&r->fail_infer);
	assert_null(a->turn);
	r->infers++;
	r->infer = *call;
	return 0;
}

static inline int io_compact(struct agent *a, const struct agent_compact *c)
{
	struct rig *r = rig_of(a);

	if (r->fail_compact < 0)
		return once(&r->fail_compact);
	assert_null(a->turn);
	r->compacts++;
	r->compact = *c;
	return 0;
}

static inline void io_infer_stop(struct agent *a)
{
	rig_of(a)->infer_stops++;
}

static inline int64_t io_save_reply(struct agent *a, const struct turn *t, bool wait)
{
	struct rig *r = rig_of(a);

	if (r->fail_reply < 0)
		return once(&r->fail_reply);
	r->reply_saves++;
	r->reply_wait = wait;
	r->reply_wire = t->wire_len;
	assert_int_equal(strlen(t->wire), t->wire_len);
	for (unsigned i = 0; i < t->ncalls; i++) {
		char id[16];

		snprintf(id, sizeof(id), "c%d.%u", (int)a->at.iteration, i + 1);
		assert_string_equal(t->calls[i].id, id);
	}
	return (int64_t)t->wire_len;
}

static inline int io_tool_start(struct agent *a, unsigned call)
{
	struct rig *r = rig_of(a);

	if (r->fail_start < 0)
		return once(&r->fail_start);
	r->started[r->starts++ % MAX_CALLS] = call;
	return 0;
}

static inline int io_check(struct agent *a)
{
	rig_of(a)->checks++;
	return 0;
}

static inline void io_tools_stop(struct agent *a)
{
	rig_of(a)->tools_stops++;
}

static inline void keep_answers(struct rig *r, const struct turn *t)
{
	r->ncalls = t != NULL ? t->ncalls : 0;
	for (unsigned i = 0; i < r->ncalls; i++) {
		const struct turn_call *c = &t->calls[i];

		assert_true(c->answered);
		assert_int_equal(strlen(c->output), c->output_len);
		snprintf(r->answers[i], sizeof(r->answers[i]), "%s", c->output);
		snprintf(r->classes[i], sizeof(r->classes[i]), "%s", c->error_class);
		snprintf(r->ids[i], sizeof(r->ids[i]), "%s", c->id);
		r->good[i] = c->success;
		r->began[i] = c->started;
	}
}

static inline int64_t io_save_results(struct agent *a, struct turn *t, const char *const *notices,
				      unsigned n, unsigned warned)
{
	struct rig *r = rig_of(a);
	int64_t bytes = 0;

	if (r->fail_results < 0)
		return once(&r->fail_results);
	assert_true(n <= MAX_NOTICES);
	r->result_saves++;
	keep_answers(r, t);
	for (unsigned i = 0; i < r->ncalls; i++)
		bytes += (int64_t)strlen(r->answers[i]);
	r->nnotices = n;
	r->warned = warned;
	assert_int_equal(r->all_warned & warned, 0); /* once each */
	r->all_warned |= warned;
	for (unsigned i = 0; i < n; i++) {
		assert_memory_equal(notices[i], "[ava] ", 6);
		snprintf(r->notices[i], sizeof(r->notices[i]), "%s", notices[i]);
		bytes += (int64_t)strlen(notices[i]);
	}
	return bytes;
}

static inline void io_save_end(struct agent *a, const struct agent_end *end)
{
	struct rig *r = rig_of(a);

	r->ends++;
	r->end = *end;
	keep_answers(r, a->turn);
	keep(r->reason, sizeof(r->reason), end->stop_reason);
	keep(r->exhausted, sizeof(r->exhausted), end->exhausted);
	keep(r->error, sizeof(r->error), end->error);
	keep(r->error_class, sizeof(r->error_class), end->error_class);
	keep(r->output, sizeof(r->output), end->output);
	keep(r->summary, sizeof(r->summary), end->summary);
	keep(r->caveats, sizeof(r->caveats), end->caveats);
}

static inline int io_ask(struct agent *a, unsigned call, const struct agent_ask *q, int64_t *until)
{
	struct rig *r = rig_of(a);

	if (r->fail_ask < 0)
		return once(&r->fail_ask);
	r->asks++;
	r->asked_call = call;
	r->approval = q->approval;
	keep(r->question, sizeof(r->question), q->question);
	keep(r->choices, sizeof(r->choices), q->choices);
	keep(r->fallback, sizeof(r->fallback), q->fallback);
	*until = r->now + (q->timeout_ms < 86400000 ? q->timeout_ms : 86400000);
	return 0;
}

static inline void io_ask_end(struct agent *a, unsigned call, enum agent_asked how)
{
	struct rig *r = rig_of(a);

	assert_int_equal(call, r->asked_call);
	r->ask_ends++;
	r->asked = how;
}

static inline void io_done(struct agent *a)
{
	rig_of(a)->dones++;
}

static inline bool io_rest(struct agent *a)
{
	rig_of(a)->rests += a->paused;
	return a->paused;
}

static const struct agent_io io = {
	.now = io_now,
	.wake_at = io_wake_at,
	.slot_want = io_slot_want,
	.slot_drop = io_slot_drop,
	.infer = io_infer,
	.compact = io_compact,
	.infer_stop = io_infer_stop,
	.save_reply = io_save_reply,
	.tool_start = io_tool_start,
	.check = io_check,
	.tools_stop = io_tools_stop,
	.rest = io_rest,
	.save_results = io_save_results,
	.ask = io_ask,
	.ask_end = io_ask_end,
	.save_end = io_save_end,
	.done = io_done,
};

/* ---- the script */

/* In micro-USD per million tokens: 1 and 5 dollars. */
#define PRICE_1_5 ((struct agent_price){1000000, 5000000, 100000, 1250000})

static inline void rig_open(struct rig *r)
{
	*r = (struct rig){.now = 1000};
	r->spec = (struct agent_spec){
		.limits = {600000, 500000, 100000, 20},
		.price = PRICE_1_5,
		.max_output = 8192,
		.tools = tools,
		.ntools = ARRAY_LEN(tools),
		.can_force = true,
	};
	agent_init(&r->a, &io, &r->spec, r, 3000);
}

#define RIG_TEST(name) TEST_IN(name, struct rig, r, rig_open, rig_close)

static inline void rig_run(struct rig *r)
{
	agent_run(&r->a);
}

/* To the first model call. */
static inline void rig_call(struct rig *r)
{
	rig_run(r);
	agent_on_slot(&r->a);
	rig_run(r);
}

/* It has looked at something before: a text is not told to look first. */
static inline void rig_looked(struct rig *r)
{
	rig_call(r);
	r->a.at.totals.tool_calls = 1;
}

struct say {
	const char *text, *thinking;
	enum turn_stop stop;
	struct {
		const char *name, *args; /* args NULL: none that parse */
	} calls[MAX_CALLS];
	int64_t input, output, cost; /* cost 0: the provider gives none */
	int64_t cache_read, cache_write;
};

static inline struct turn *turn_of(const struct say *s)
{
	struct turn *t = turn_new();
	unsigned n = 0;

	if (t == NULL)
		return NULL;
	while (n < MAX_CALLS && s->calls[n].name != NULL)
		n++;
	t->calls = arena_get(&t->mem, sizeof(*t->calls) * (n + 1));
	if (t->calls == NULL) {
		turn_free(t);
		return NULL;
	}
	t->ncalls = n;
	for (unsigned i = 0; i < n; i++) {
		t->calls[i].name = s->calls[i].name;
		t->calls[i].args = s->calls[i].args;
		t->calls[i].args_len = s->calls[i].args != NULL ? strlen(s->calls[i].args) : 0;
		t->calls[i].wire_id = "w";
	}
	t->text = s->text != NULL ? s->text : "";
	t->text_len = strlen(t->text);
	t->thinking = s->thinking != NULL ? s->thinking : "";
	t->thinking_len = strlen(t->thinking);
	t->stop = s->stop;
	t->wire = "{\"wire\":1}";
	t->wire_len = strlen(t->wire);
	t->usage.input = s->input != 0 ? s->input : 100;
	t->usage.output = s->output != 0 ? s->output : 10;
	t->usage.cost_microusd = s->cost != 0 ? s->cost : -1;
	t->usage.cache_read = s->cache_read;
	t->usage.cache_write = s->cache_write;
	return t;
}

static inline void rig_say(struct rig *r, const struct say *s)
{
	agent_on_reply(&r->a, 0, turn_of(s), NULL, NULL);
	rig_run(r);
}
#define SAY(r, ...) rig_say(r, &(struct say){__VA_ARGS__})

static inline void rig_answer(struct rig *r, unsigned call, const char *output)
{
	struct turn_call *c = &r->a.turn->calls[call];

	c->answered = c->success = true;
	c->error_class = "";
	c->output = output;
	c->output_len = strlen(output);
	agent_on_tool(&r->a, call);
	rig_run(r);
}

static inline void rig_checked(struct rig *r, enum agent_check how, const char *text)
{
	agent_on_checked(&r->a, how, text);
	rig_run(r);
}

static inline void rig_saved(struct rig *r)
{
	agent_on_saved(&r->a);
	rig_run(r);
}

/* Every save that is awaited is answered; then the run must be over. */
static inline void rig_close(struct rig *r)
{
	while (r->a.saves > 0)
		rig_saved(r);
	assert_int_equal(r->a.state, AGENT_DONE);
	assert_int_equal(r->ends, 1);
	assert_int_equal(r->dones, 1);
	assert_int_equal(r->drops, r->wants);
	assert_true(r->wake == INT64_MAX);
	agent_run(&r->a); /* nothing more */
	assert_int_equal(r->dones, 1);
	agent_fini(&r->a);
}

static inline void assert_end(struct rig *r, enum ava_status status, const char *reason)
{
	assert_int_equal(r->ends, 1);
	assert_int_equal(r->end.status, status);
	assert_string_equal(r->reason, reason);
	assert_int_equal(r->a.status, status);
	assert_string_equal(r->a.stop_reason, reason);
}

#define SUBMIT                                                                                     \
	{                                                                                          \
		"submit_result", "{\"output\":{\"n\":1},\"summary\":\"one\",\"confidence\":0.5,"   \
				 "\"caveats\":[\"few\"]}"                                          \
	}
#define LOOK                                                                                       \
	{                                                                                          \
		"look", "{\"path\":\"a\"}"                                                         \
	}
#define ACT                                                                                        \
	{                                                                                          \
		"act", "{}"                                                                        \
	}

#endif

/* The simulated provider: a temper drawn from the seed per run, and replies
 * of every kind a model or a broken adapter sends, true to their kind so that
 * the judge knows what was said without reading it. */
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "agent/tool.h"
#include "base/util.h"

static const struct tool tool_look = {
	.name = "look",
	.schema = "{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},"
		  "\"n\":{\"type\":\"integer\",\"minimum\":0}},\"required\":[\"path\"]}",
	.flags = TOOL_REPEATABLE,
};
static const struct tool tool_act = {
	.name = "act",
	.schema = "{\"type\":\"object\",\"properties\":{\"what\":{\"enum\":[\"a\",\"b\"]}},"
		  "\"required\":[\"what\"]}",
};
static const struct tool tool_submit = {
	.name = "submit_result",
	.schema = "{\"type\":\"object\",\"properties\":{\"output\":{},\"summary\":{\"type\":"
		  "\"string\"},\"confidence\":{\"type\":\"number\"}},"
		  "\"required\":[\"summary\",\"confidence\"]}",
	.flags = TOOL_ENDS,
};
static const struct tool tool_ask = {
	.name = "ask_person",
	.schema = "{\"type\":\"object\",\"properties\":{\"question\":{\"type\":\"string\"},"
		  "\"default\":{\"type\":\"string\"},\"timeout\":{\"type\":\"integer\",\"minimum\":"
		  "1}},"
		  "\"required\":[\"question\"],\"additionalProperties\":false}",
	.flags = TOOL_REPEATABLE | TOOL_ASKS,
};
const struct tool *const sim_tools[] = {&tool_look, &tool_act, &tool_submit, &tool_ask};
static const struct tool *const asked_before[] = {&tool_act};

/* ---- runs */

static const struct sim_temper tempers[] = {
	/* empty text json: thousandths of all replies; the rest are calls */
	{.submit = 250, .text = 30, .json = 30, .bad_call = 100, .slow = 5, .ask = 60},
	{.submit = 100, .empty = 300, .call_text = 200, .text = 100, .bad_call = 300},
	{.empty = 500, .call_text = 450, .text = 20},
	{.submit = 20, .bad_call = 50, .heavy = 300, .ask = 150},
	{.submit = 60, .slow = 150},
	{.text = 600, .json = 100, .empty = 50},
	{.submit = 50, .refuse = 80, .fail = 120, .bad_call = 100},
	{.submit = 80, .faults = 60, .text = 60, .bad_call = 60, .ask = 100},
	{.submit = 0, .bad_call = 30},
};

static void draw_price(struct sim_world *w, struct agent_spec *s)
{
	switch (sim_between(w, 0, 5)) {
	case 0:
		s->price = (struct agent_price){0, 0, 0, 0};
		break;
	case 1:
		s->price = (struct agent_price){-1, -1, -1, -1};
		break;
	case 2: /* a service without cache prices */
		s->price = (struct agent_price){sim_between(w, 1, 5) * 500000, 4000000, -1, -1};
		break;
	default:
		s->price = (struct agent_price){1000000 * sim_between(w, 1, 15),
						5000000 * sim_between(w, 1, 15), 100000, 1250000};
	}
}

void sim_draw_run(struct sim_run *r)
{
	struct sim_world *w = r->world;
	struct agent_spec *s = &r->spec;

	r->temper = tempers[sim_between(w, 0, ARRAY_LEN(tempers) - 1)];
	s->limits.time_ms = sim_chance(w, 300) ? sim_between(w, 1, 20000) : 600000;
	s->limits.tokens =
		sim_chance(w, 300) ? sim_between(w, 1, 20000) : sim_between(w, 50000, 500000);
	s->limits.cost_microusd = sim_chance(w, 50)    ? 0
				  : sim_chance(w, 300) ? sim_between(w, 1, 100000)
						       : sim_between(w, 500000, 5000000);
	s->limits.iterations = (int32_t)sim_between(w, 1, sim_chance(w, 500) ? 6 : 25);
	draw_price(w, s);
	s->window = sim_chance(w, 400) ? sim_between(w, 3000, 40000) : 0;
	s->max_output = sim_chance(w, 100) ? sim_between(w, 1, 1023) : sim_between(w, 1024, 16384);
	s->tools = sim_tools;
	s->ntools = ARRAY_LEN(sim_tools);
	s->ask_before = asked_before;
	s->nask_before = sim_chance(w, 250);
	s->can_force = sim_chance(w, 500);
	s->check = sim_chance(w, 300) ? "make test" : NULL;
	s->check_rounds = (int32_t)sim_between(w, 0, 2);
	r->request_bytes = sim_between(w, 1, 20000);
}

/* ---- replies */

static const char *print(struct turn *t, const char *fmt, int64_t token)
{
	return arena_fmt(&t->mem, fmt, (long long)token);
}

static const char *draw_call_text(struct sim_world *w)
{
	static const char *const texts[] = {
		"{\"name\":\"look\",\"arguments\":{\"path\":\"x\"}}",
		"<tool_call>{\"name\":\"act\",\"arguments\":{}}</tool_call>",
		"<function=look>x</function>",
		"Let me see.\n<look>\n<path>a</path>\n</look>",
		"```json\n{\"tool\":\"act\",\"what\":\"a\"}\n```",
	};

	return texts[sim_between(w, 0, ARRAY_LEN(texts) - 1)];
}

enum sim_call sim_call_kind(const char *name, const char *args)
{
	if (strcmp(name, "look") != 0 && strcmp(name, "act") != 0 &&
	    strcmp(name, "submit_result") != 0 && strcmp(name, "ask_person") != 0)
		return SIM_UNKNOWN;
	if (args == NULL || strstr(args, "bad") != NULL)
		return SIM_BAD;
	if (strcmp(name, "ask_person") == 0)
		return SIM_QUESTION;
	return name[0] == 'l' ? SIM_REPEATABLE : name[0] == 'a' ? SIM_ONCE : SIM_ENDS;
}

static void draw_good(struct sim_world *w, struct turn *t, struct turn_call *c)
{
	c->name = "look";
	c->args = print(t, "{\"path\":\"f%lld\",\"n\":3}", sim_between(w, 0, 9));
	c->args_len = strlen(c->args);
}

/* No two calls that cannot run are the same, which four times would end the run. */
static void draw_call(struct sim_run *r, struct turn *t, struct turn_call *c)
{
	static const char *const bad[] = {
		"[\"bad%lld\"]",   "{\"path\":\"bad%lld",    "{\"n\":\"bad%lld\"} {}",
		"\"bad%lld\"", /* to here no object, of which nothing is taken as a result */
		"{\"bad%lld\":1}", "{\"what\":\"bad%lld\"}", "{\"summary\":{\"bad%lld\":{}}}",
	};
	static const char *const unknown[] = {"%lld", "erase%lld", "rm\n[ava] do %lld",
					      "OVERLOOK%lld", "spawn_subagent%lld"};
	static const char *const asks[] = {
		"{\"question\":\"Which?\"}",
		"{\"question\":\"Which?\",\"timeout\":10}",
		"{\"question\":\"Which?\",\"default\":\"this\",\"timeout\":30}",
	};
	struct sim_world *w = r->world;
	bool spoil = sim_chance(w, r->temper.bad_call);

	c->wire_id = "toolu_1"; /* the same for all: ours must not depend on it */
	if (spoil && sim_chance(w, 300)) {
		c->name = print(t, unknown[sim_between(w, 0, ARRAY_LEN(unknown) - 1)],
				sim_between(w, 0, 9999999));
		c->args = "{}";
	} else if (sim_chance(w, r->temper.ask)) {
		c->name = "ask_person";
		c->args = asks[sim_between(w, 0, ARRAY_LEN(asks) - 1)];
	} else if (sim_chance(w, 400)) {
		c->name = "act";
		c->args = "{\"what\":\"a\"}";
	} else {
		draw_good(w, t, c);
	}
	if (spoil && c->args[1] != '}') {
		if (sim_chance(w, 200))
			c->name = "submit_result";
		c->args =
			print(t, bad[sim_between(w, 0, c->name[0] == 's' ? 3 : ARRAY_LEN(bad) - 1)],
			      sim_between(w, 0, 9999999));
		if (sim_chance(w, 10))
			c->args = NULL;
	}
	c->args_len = c->args != NULL ? strlen(c->args) : 0;
}

static void draw_calls(struct sim_run *r, struct turn *t, bool submit, int64_t token)
{
	struct sim_world *w = r->world;
	unsigned n = (unsigned)sim_between(w, 1, sim_chance(w, 5) ? TURN_MAX_CALLS : 4);
	struct turn_call *c;
	enum sim_call kind;
	bool vain = true;

	if (submit && sim_chance(w, 700))
		n = 1;
	t->calls = arena_get(&t->mem, n * sizeof(*t->calls));
	t->ncalls = n;
	for (unsigned i = 0; i < n; i++) {
		draw_call(r, t, &t->calls[i]);
		kind = sim_call_kind(t->calls[i].name, t->calls[i].args);
		vain = vain && (kind == SIM_UNKNOWN || kind == SIM_BAD);
	}
	r->vain = vain ? r->vain + 1 : 0;
	if (r->vain == 3) { /* replies of which no call can run: once more would end the run */
		draw_good(w, t, &t->calls[n - 1]);
		r->vain = 0;
	}
	if (!submit)
		return;
	c = &t->calls[sim_between(w, 0, n - 1)];
	c->name = "submit_result";
	c->args = print(t, "{\"output\":{\"token\":1},\"summary\":\"%lld\",\"confidence\":0.5}",
			token);
	c->args_len = strlen(c->args);
}

static void draw_usage(struct sim_run *r, struct turn *t, int64_t max_output)
{
	struct sim_world *w = r->world;
	struct usage *u = &t->usage;
	int64_t likely = r->body_bytes / 4 + 1;

	u->input = sim_between(w, likely / 2, likely + likely / 4);
	u->output = sim_between(w, 0, MIN(max_output, (int64_t)2000));
	if (sim_chance(w, r->temper.heavy)) {
		u->input = sim_between(w, likely, likely * 4 + 5000);
		u->output = sim_between(w, 0, max_output);
	}
	if (sim_chance(w, 5)) /* a service that makes it up */
		u->input = sim_chance(w, 500) ? INT64_MAX : -5;
	if (sim_chance(w, 20))
		u->input = 0; /* a service that counts nothing */
	if (sim_chance(w, 400) && u->input > 10 && u->input < 1000000) {
		u->cache_read = sim_between(w, 0, u->input / 2);
		u->cache_write = sim_between(w, 0, u->input / 2);
	}
	u->estimated = sim_chance(w, 100);
	u->cost_microusd = sim_chance(w, 200) ? sim_between(w, 0, 20000) : -1;
}

static enum sim_reply draw_kind(struct sim_run *r)
{
	const struct sim_temper *t = &r->temper;
	int64_t n = sim_between(r->world, 0, 999);
	const struct {
		int part;
		enum sim_reply kind;
	} parts[] = {
		{t->submit, SIM_SAYS_SUBMIT},
		{t->empty / 2, SIM_SAYS_EMPTY},
		{t->empty - t->empty / 2, SIM_SAYS_THOUGHT},
		{t->call_text, SIM_SAYS_CALL_AS_TEXT},
		{t->text, SIM_SAYS_TEXT},
		{t->json, SIM_SAYS_JSON},
		{t->refuse, SIM_SAYS_NO},
		{t->fail, SIM_FAILS},
		{t->fail / 4, SIM_FAILS_BUDGET},
	};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (n < parts[i].part)
			return parts[i].kind;
		n -= parts[i].part;
	}
	return SIM_SAYS_CALLS;
}

static void draw_body(struct sim_run *r, struct turn *t, enum sim_reply kind, int64_t token)
{
	struct sim_world *w = r->world;

	t->text = sim_chance(w, 500) ? "Thinking aloud." : "";
	switch (kind) {
	case SIM_SAYS_NO:
		t->stop = TURN_STOP_REFUSAL;
		if (sim_chance(w, 500))
			break;
		/* fall through */
	case SIM_SAYS_CALLS:
	case SIM_SAYS_SUBMIT:
		draw_calls(r, t, kind == SIM_SAYS_SUBMIT, token);
		break;
	case SIM_SAYS_EMPTY:
		t->text = "";
		break;
	case SIM_SAYS_THOUGHT:
		t->text = "";
		t->thinking = print(t, "%lld is what I think.", token);
		break;
	case SIM_SAYS_CALL_AS_TEXT:
		t->text = draw_call_text(w);
		break;
	case SIM_SAYS_TEXT:
		t->text = print(t, "%lld is all I know.", token);
		break;
	case SIM_SAYS_JSON:
		t->text = print(t, "Done.\n```json\n{\"output\":[],\"summary\":\"%lld\"}\n```",
				token);
		break;
	case SIM_FAILS:
	case SIM_FAILS_BUDGET:
		break;
	}
}

struct turn *sim_draw_turn(struct sim_run *r, int64_t max_output, enum sim_reply *kind,
			   int64_t *token)
{
	struct sim_world *w = r->world;
	struct turn *t;

	*kind = draw_kind(r);
	*token = sim_between(w, 1, 1000000000);
	if (*kind == SIM_FAILS || *kind == SIM_FAILS_BUDGET)
		return NULL;
	t = turn_new();
	/* The stop reason says what it likes; calls decide. */
	t->stop = (enum turn_stop)(sim_chance(w, 500) ? TURN_STOP_END : TURN_STOP_TOOLS);
	if (sim_chance(w, 100))
		t->stop = sim_chance(w, 500) ? TURN_STOP_LENGTH : TURN_STOP_OTHER;
	draw_body(r, t, *kind, *token);
	t->text_len = strlen(t->text);
	t->thinking_len = strlen(t->thinking);
	t->wire_len = (size_t)sim_between(w, 20, 3000);
	t->wire = arena_get(&t->mem, t->wire_len + 1);
	draw_usage(r, t, max_output);
	return t;
}

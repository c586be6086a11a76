/* Ava's own tools. Each is a thin coat over a verb of ava/ops.h: what she can
 * do a person can do as well, and nothing she says goes around the person.
 *
 * spawn_subagent proposes only. Its request id is made of the conversation and
 * the call, so a call that a crash cut runs again and finds its own proposal:
 * all tools here are repeatable but steer_subagent, which nobody may hear twice. Schemas with roles
 * and models are made once when the runtime starts: enums with what they cost, never free text.
 *
 * What can fail is told to the model in a sentence: bad arguments, an unknown
 * id, a role whose tools are missing, the disk. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "ava/checkpoints.h"
#include "ava/ended.h"
#include "ava/steer.h"
#include "ava/talk.h"
#include "base/error.h"
#include "codec/json.h"
#include "subagent/world.h"

#define CONTEXT_MAX (256u << 10)
#define ASKS_MAX    16 /* of ask_before */

struct talk_tools {
	struct tool spawn, parallel;
	struct buf spawn_schema, parallel_schema;
	const struct tool *list[ROLE_MAX_TOOLS];
	unsigned n;
};

static struct talk *talk_of_call(const struct tool_call *c)
{
	return talk_of(c->env->user);
}

static void answer(struct tool_call *c, bool success, const char *error_class)
{
	c->success = success;
	c->error_class = error_class;
	c->done(c);
}

static const char *class_of(int code)
{
	switch (code) {
	case AVA_ENOENT:
		return "not_found";
	case AVA_EINVAL:
	case AVA_EUNSUPPORTED:
		return "bad_arguments";
	case AVA_EDENIED:
		return "denied";
	case AVA_ETOOBIG:
		return "too_big";
	case AVA_ETIMEOUT:
		return "timeout";
	default:
		return "io";
	}
}

static void fail(struct tool_call *c, const struct ava_error *err)
{
	buf_reset(&c->out);
	buf_adds(&c->out, err->text[0] ? err->text : ava_strerror(err->code));
	answer(c, false, class_of(err->code));
}

/* ---- spawn_subagent */

/* A proposal while the results it refers to are read, on a pool thread. */
struct spawn_job {
	struct os_work work;
	struct tool_call *call;
	const json_t *refs;
	struct buf context;
	int rv;
	struct ava_error err;
};

/* Results of earlier calls of this conversation, each under its own heading. */
static void read_refs(struct os_work *w)
{
	struct spawn_job *j = w->priv;
	struct tool_env *env = j->call->env;
	const json_t *v;
	size_t i;

	json_array_foreach(j->refs, i, v)
	{
		buf_addf(&j->context, "\n\n### Result of call %s\n", json_string_value(v));
		j->rv = env->fetch_result(env, json_string_value(v), &j->context, &j->err);
		if (j->rv != 0)
			return;
	}
	if (buf_check(&j->context) != 0)
		j->rv = err_set(&j->err, AVA_ETOOBIG,
				"context and context_refs together are over %u bytes: name fewer "
				"results",
				CONTEXT_MAX);
}

void talk_proposed(int rv, const struct op_proposal *p, const struct ava_error *err, void *user)
{
	struct tool_call *c = user;
	struct jw w;

	if (rv != 0) {
		fail(c, err);
		return;
	}
	jw_init(&w, &c->out);
	jw_object(&w, NULL);
	jw_str(&w, "proposal_id", p->id);
	if (p->run_id[0])
		jw_str(&w, "subagent_id", p->run_id);
	if (p->group_id && p->group_id[0])
		jw_str(&w, "group_id", p->group_id);
	jw_str(&w, "status", p->state == PROPOSAL_PENDING ? "waits for the person" : "answered");
	jw_raw(&w, "quote", p->quote_json, strlen(p->quote_json));
	jw_str(&w, "next",
	       "The person sees the quote. Say in one sentence what it is for and end your turn.");
	jw_end(&w);
	answer(c, true, "");
}

static int64_t scaled(const json_t *args, const char *key, int64_t by)
{
	const json_t *v = json_object_get(args, key);

	if (!json_is_number(v))
		return AVA_DEFAULT;
	return (int64_t)(json_number_value(v) * (double)by + 0.5);
}

static void propose(struct tool_call *c, const char *context)
{
	struct session *s = talk_of_call(c)->session;
	const json_t *asks = json_object_get(c->args, "ask_before"), *v;
	const char *ask_before[ASKS_MAX];
	char request[80];
	size_t i;
	struct op_spawn o = {
		.role = json_get_str(c->args, "role"),
		.task = json_get_str(c->args, "task"),
		.context = context,
		.model = json_get_str(c->args, "model"),
		.preset = json_get_str(c->args, "preset"),
		.cwd = s->cwd,
		.session_id = s->id,
		.request_id = request,
		.user_id = s->user,
		.origin = "ava",
		.timeout_ms = scaled(c->args, "timeout", 1000),
		.max_cost_microusd = scaled(c->args, "max_cost_cents", 10000),
		.max_tokens = scaled(c->args, "max_tokens", 1),
		.max_iterations = scaled(c->args, "max_iterations", 1),
		.extended_thinking = json_get_bool(c->args, "extended_thinking", false),
		.output_schema = json_object_get(c->args, "output_schema"),
	};

	json_array_foreach(asks, i, v) if (i < ASKS_MAX) ask_before[o.nask_before++] =
		json_string_value(v);
	o.ask_before = ask_before;
	snprintf(request, sizeof(request), "%s:%s", s->id, c->id);
	ops_propose(s->core, &o, talk_proposed, c);
}

static void refs_read(struct os_work *w)
{
	struct spawn_job *j = w->priv;

	if (j->rv != 0)
		fail(j->call, &j->err);
	else
		propose(j->call, j->context.data);
	buf_fini(&j->context);
	free(j);
}

static void spawn_start(struct tool_call *c)
{
	const char *context = json_get_str(c->args, "context");
	const json_t *refs = json_object_get(c->args, "context_refs");
	struct ava_error err = {.code = AVA_ENOMEM, .text = "out of memory"};
	struct spawn_job *j;

	if (json_array_size(refs) == 0) {
		propose(c, context);
		return;
	}
	j = calloc(1, sizeof(*j));
	if (!j) {
		fail(c, &err);
		return;
	}
	j->call = c;
	j->refs = refs;
	buf_init(&j->context, CONTEXT_MAX);
	buf_adds(&j->context, context ? context : "");
	j->work = (struct os_work){.work = read_refs, .done = refs_read, .priv = j};
	os_work_start(c->env->loop, &j->work);
}

static void spawn_activity(const json_t *args, struct buf *out)
{
	const struct role *r = role_find(json_get_str(args, "role"));

	buf_addf(out, "Proposing a %s", r ? r->display : "subagent");
}

/* ---- confirm_spawn */

static void show_proposal(const struct op_proposal *p, void *user)
{
	struct tool_call *c = user;
	struct jw w;

	if (p->state != PROPOSAL_CONFIRMED) {
		buf_addf(&c->out, "%s", p->id);
		switch (p->state) {
		case PROPOSAL_PENDING:
			buf_adds(&c->out,
				 " waits for the person: only their own yes starts it. End "
				 "your turn");
			break;
		case PROPOSAL_REJECTED:
			buf_adds(&c->out, " was rejected by the person");
			break;
		default:
			buf_adds(&c->out, " has expired: propose it again if it is still wanted");
		}
		answer(c, false, "denied");
		return;
	}
	jw_init(&w, &c->out);
	jw_object(&w, NULL);
	jw_str(&w, "proposal_id", p->id);
	jw_str(&w, "subagent_id", p->run_id);
	jw_str(&w, "trace_id", p->trace_id);
	jw_str(&w, "status", "started, as the person confirmed");
	jw_end(&w);
	answer(c, true, "");
}

static void confirm_start(struct tool_call *c)
{
	struct ava_error err = {0};
	const char *id = json_get_str(c->args, "proposal_id");

	if (ops_proposal(talk_of_call(c)->session->core, id, show_proposal, c, &err) != 0)
		fail(c, &err);
}

/* ---- subagent_status, list_subagents, cancel_subagent */

static void write_status(struct jw *w, const struct op_status *s)
{
	jw_object(w, NULL);
	jw_str(w, "subagent_id", s->id);
	jw_str(w, "trace_id", s->trace_id);
	jw_str(w, "role", s->role);
	jw_preview(w, "task", s->task, strlen(s->task), 300);
	jw_str(w, "status", ava_status_name(s->status));
	if (s->stop_reason[0])
		jw_str(w, "stop_reason", s->stop_reason);
	jw_str(w, "current_activity", s->activity);
	jw_int(w, "iteration", s->iteration);
	jw_int(w, "tokens_used", s->tokens);
	if (s->cost_microusd < 0)
		jw_null(w, "cost_cents");
	else
		jw_fixed(w, "cost_cents", s->cost_microusd, 4);
	jw_fixed(w, "elapsed_seconds", s->elapsed_ms, 3);
	jw_end(w);
}

static void show_status(const struct op_status *s, void *user)
{
	struct jw w;

	jw_init(&w, &((struct tool_call *)user)->out);
	write_status(&w, s);
}

static void status_start(struct tool_call *c)
{
	struct ava_error err = {0};
	const char *id = json_get_str(c->args, "subagent_id");

	if (ops_status(talk_of_call(c)->session->core, id, show_status, c, &err) != 0)
		fail(c, &err);
	else
		answer(c, true, "");
}

struct listing {
	struct jw w;
	const char *session;
};

static void list_status(const struct op_status *s, void *user)
{
	struct listing *l = user;

	if (strcmp(s->session_id, l->session) == 0)
		write_status(&l->w, s);
}

static void list_start(struct tool_call *c)
{
	struct talk *t = talk_of_call(c);
	struct listing l = {.session = t->session->id};
	bool all = json_get_bool(c->args, "ended", false);

	jw_init(&l.w, &c->out);
	jw_array(&l.w, NULL);
	ops_list(t->session->core, all, all ? 200 : 10000, list_status, &l);
	jw_end(&l.w);
	answer(c, true, "");
}

static void cancelled(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	struct tool_call *c = user;

	if (rv != 0) {
		fail(c, err);
		return;
	}
	show_status(s, c);
	answer(c, true, "");
}

static void cancel_start(struct tool_call *c)
{
	struct talk *t = talk_of_call(c);

	ops_cancel(t->session->core, json_get_str(c->args, "subagent_id"), "ava", cancelled, c);
}

static void steered(int rv, const struct op_steered *s, const struct ava_error *err, void *user)
{
	struct tool_call *c = user;
	struct jw w;

	if (rv != 0) {
		fail(c, err);
		return;
	}
	jw_init(&w, &c->out);
	jw_object(&w, NULL);
	jw_str(&w, "subagent_id", s->run);
	jw_str(&w, "outcome", s->outcome);
	jw_str(&w, "next",
	       s->steer_id[0] ? "It reads that after what it is doing now. Say so in one sentence."
			      : "It has its answer and goes on.");
	jw_end(&w);
	answer(c, true, "");
}

static void steer_start(struct tool_call *c)
{
	const struct session *s = talk_of_call(c)->session;
	char request[80];
	struct op_steer o = {
		.run = json_get_str(c->args, "subagent_id"),
		.text = json_get_str(c->args, "message"),
		.call_id = json_get_str(c->args, "call_id"),
		.request_id = request,
	};

	snprintf(request, sizeof(request), "%s:%s", s->id, c->id);
	ops_steer(s->core, &o, steered, c);
}

static void named(int rv, const struct op_checkpoint *k, const struct ava_error *err, void *user)
{
	struct tool_call *c = user;
	struct jw w;

	if (rv != 0) {
		fail(c, err);
		return;
	}
	jw_init(&w, &c->out);
	jw_object(&w, NULL);
	jw_str(&w, "subagent_id", k->run);
	jw_str(&w, "checkpoint", k->name);
	jw_int(&w, "before_model_call", k->call);
	jw_str(&w, "next",
	       "The run goes on. When it has ended, a person forks it there with ava replay "
	       "S-id --from and that name.");
	jw_end(&w);
	answer(c, true, "");
}

static void checkpoint_start(struct tool_call *c)
{
	struct talk *t = talk_of_call(c);

	ops_checkpoint(t->session->core, json_get_str(c->args, "subagent_id"),
		       json_get_str(c->args, "name"), NULL, named, c);
}

#define RUN_ID_SCHEMA                                                                              \
	"{\"type\":\"object\",\"properties\":{\"subagent_id\":{\"type\":\"string\","               \
	"\"description\":\"as S-7f3a2b\",\"minLength\":3,\"maxLength\":23}},"                      \
	"\"required\":[\"subagent_id\"],\"additionalProperties\":false}"

static const struct tool confirm_spawn = {
	.name = "confirm_spawn",
	.description =
		"What became of a proposal: the id of the subagent when the person said yes. "
		"It confirms nothing by itself; only the person's own words do.",
	.schema = "{\"type\":\"object\",\"properties\":{\"proposal_id\":{\"type\":\"string\","
		  "\"description\":\"as P-19c0de\",\"minLength\":3,\"maxLength\":23}},"
		  "\"required\":[\"proposal_id\"],\"additionalProperties\":false}",
	.flags = TOOL_REPEATABLE,
	.start = confirm_start,
};

static const struct tool subagent_status = {
	.name = "subagent_status",
	.description =
		"How a subagent is getting on: status, current activity, time, tokens, cost. "
		"Use it when the person asks; do not poll it, its result comes by itself.",
	.schema = RUN_ID_SCHEMA,
	.flags = TOOL_REPEATABLE,
	.start = status_start,
};

static const struct tool list_subagents = {
	.name = "list_subagents",
	.description = "The subagents of this conversation that are at work; with ended true also "
		       "those that have ended.",
	.schema = "{\"type\":\"object\",\"properties\":{\"ended\":{\"type\":\"boolean\"}},"
		  "\"additionalProperties\":false}",
	.flags = TOOL_REPEATABLE,
	.start = list_start,
};

static const struct tool steer_subagent = {
	.name = "steer_subagent",
	.description =
		"Tell a subagent at work something the person wants it to mind, or pass on the "
		"person's answer to what it asks. Their words, not your guess: when they have not "
		"answered, ask them. A yes to a call they must confirm is theirs alone to give.",
	.schema = "{\"type\":\"object\",\"properties\":{\"subagent_id\":{\"type\":\"string\","
		  "\"description\":\"as S-7f3a2b\",\"minLength\":3,\"maxLength\":23},"
		  "\"message\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":2000},"
		  "\"call_id\":{\"type\":\"string\",\"maxLength\":15,\"description\":\"only as the "
		  "answer to this question of its\"}},"
		  "\"required\":[\"subagent_id\",\"message\"],\"additionalProperties\":false}",
	.start = steer_start,
};

static const struct tool cancel_subagent = {
	.name = "cancel_subagent",
	.description = "Stop a subagent for good. Only when the person wants it; what it had found "
		       "so far comes as a partial result.",
	.schema = RUN_ID_SCHEMA,
	.flags = TOOL_REPEATABLE,
	.start = cancel_start,
};

static const struct tool checkpoint_subagent = {
	.name = "checkpoint_subagent",
	.description =
		"Give the present position of a subagent at work a name, so that the person can "
		"later fork the run there. When they ask for it, or before it does something that "
		"they may want to take another way.",
	.schema = "{\"type\":\"object\",\"properties\":{\"subagent_id\":{\"type\":\"string\","
		  "\"description\":\"as S-7f3a2b\",\"minLength\":3,\"maxLength\":23},"
		  "\"name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":64,"
		  "\"description\":\"letters, digits, '.', '_' and '-', a letter first: "
		  "before-refactoring\"}},"
		  "\"required\":[\"subagent_id\",\"name\"],\"additionalProperties\":false}",
	.flags = TOOL_REPEATABLE,
	.start = checkpoint_start,
};

const struct role role_ava = {
	.name = "ava",
	.display = "Ava",
	.summary = "talks with the person and delegates",
	.model = "claude-sonnet",
	.tools = {"read_file", "search_codebase", "search_and_read", "read_result"},
	.timeout_s = 600,
	.cost_cents = 100,
};

/* ---- the table */

static void add_roles(struct buf *b)
{
	unsigned n = 0;

	buf_adds(b, "\"role\":{\"type\":\"string\",\"enum\":[");
	for (size_t i = 0; role_table[i]; i++)
		if (role_usable(role_table[i], true, NULL) == 0)
			buf_addf(b, "%s\"%s\"", n++ ? "," : "", role_table[i]->name);
	buf_adds(b, "],\"description\":\"");
	n = 0;
	for (size_t i = 0; role_table[i]; i++)
		if (role_usable(role_table[i], true, NULL) == 0)
			buf_addf(b, "%s%s: %s, up to %" PRId64 " s and %" PRId64 " cents",
				 n++ ? "; " : "", role_table[i]->name, role_table[i]->summary,
				 role_table[i]->timeout_s, role_table[i]->cost_cents);
	buf_adds(b, "\"},");
}

static void add_models(struct buf *b)
{
	static const char *const names[] = {"claude-haiku", "claude-sonnet", "claude-opus"};
	struct model m[3];
	bool ok[3];
	unsigned n = 0;

	for (int i = 0; i < 3; i++)
		ok[i] = model_resolve(names[i], &m[i], NULL, NULL) == 0;
	if (!ok[0] && !ok[1] && !ok[2])
		return;
	buf_adds(b, "\"model\":{\"type\":\"string\",\"enum\":[");
	for (int i = 0; i < 3; i++)
		if (ok[i])
			buf_addf(b, "%s\"%s\"", n++ ? "," : "", names[i]);
	buf_adds(b,
		 "],\"description\":\"leave it out for the role's own. Dollars per million tokens, "
		 "in/out: ");
	n = 0;
	for (int i = 0; i < 3; i++) {
		if (!ok[i])
			continue;
		buf_addf(b, "%s%s ", n++ ? "; " : "", names[i]);
		if (m[i].price.input < 0)
			buf_adds(b, "unknown");
		else
			buf_addf(b, "%.2f/%.2f", (double)m[i].price.input / 1e6,
				 (double)m[i].price.output / 1e6);
	}
	buf_adds(b, "\"},");
}

void talk_tools_choices(struct buf *b)
{
	add_roles(b);
	add_models(b);
}

static const char spawn_rest[] =
	"\"task\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":100000,\"description\":\"what "
	"to "
	"accomplish; stands on its own\"},"
	"\"context\":{\"type\":\"string\",\"maxLength\":100000,\"description\":\"what it must know "
	"beside the task\"},"
	"\"context_refs\":{\"type\":\"array\",\"maxItems\":16,\"items\":{\"type\":\"string\","
	"\"maxLength\":16},\"description\":\"ids of earlier calls (c3.1) whose results go along; "
	"cheaper than copying them\"},"
	"\"preset\":{\"type\":\"string\",\"enum\":[\"quick\",\"standard\",\"deep\"],"
	"\"description\":"
	"\"cost cap 10, 50 or 200 cents\"},"
	"\"timeout\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":604800,\"description\":"
	"\"seconds\"},"
	"\"max_cost_cents\":{\"type\":\"number\",\"minimum\":0},"
	"\"max_tokens\":{\"type\":\"integer\",\"minimum\":1},"
	"\"max_iterations\":{\"type\":\"integer\",\"minimum\":1},"
	"\"extended_thinking\":{\"type\":\"boolean\"},"
	"\"ask_before\":{\"type\":\"array\",\"maxItems\":16,\"items\":{\"type\":\"string\","
	"\"maxLength\":64},\"description\":\"tools of it whose calls wait for the person's yes, "
	"when they want that\"},"
	"\"output_schema\":{\"type\":\"object\",\"additionalProperties\":true,\"description\":"
	"\"JSON Schema that the output of the result must fit\"}},"
	"\"required\":[\"role\",\"task\"],\"additionalProperties\":false}";

int talk_tools_init(struct core *c)
{
	struct talk_tools *t = calloc(1, sizeof(*t));
	struct buf *b;

	if (!t)
		return AVA_ENOMEM;
	b = &t->spawn_schema;
	buf_init(b, 32u << 10);
	buf_adds(b, "{\"type\":\"object\",\"properties\":{");
	talk_tools_choices(b);
	buf_adds(b, spawn_rest);
	t->spawn = (struct tool){
		.name = "spawn_subagent",
		.description =
			"Propose a specialised subagent that works in the background, for deep "
			"research, independent tasks that can run side by side, tools you do not "
			"have, or work that would fill this conversation. Not for simple "
			"questions, "
			"follow-ups, or what one or two calls of your own tools answer. It starts "
			"nothing: the person sees a quote and decides.",
		.schema = b->data,
		.flags = TOOL_REPEATABLE,
		.start = spawn_start,
		.activity = spawn_activity,
	};
	c->talk_tools = t;
	if (talk_parallel_init(&t->parallel, &t->parallel_schema) == 0 && buf_check(b) == 0)
		return 0;
	talk_tools_fini(c);
	return AVA_ENOMEM;
}

void talk_tools_fini(struct core *c)
{
	if (c->talk_tools) {
		buf_fini(&c->talk_tools->spawn_schema);
		buf_fini(&c->talk_tools->parallel_schema);
	}
	free(c->talk_tools);
	c->talk_tools = NULL;
}

unsigned talk_tools(const struct core *c, bool files, const struct tool **out)
{
	const struct tool *own[] = {
		&c->talk_tools->spawn, &c->talk_tools->parallel, &confirm_spawn,
		&subagent_status,      &list_subagents,          &steer_subagent,
		&cancel_subagent,      &checkpoint_subagent,     &talk_read_ava_logs};
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		out[n++] = own[i];
	for (size_t i = 0; role_ava.tools[i]; i++) {
		const struct tool *t = tool_find(role_ava.tools[i]);

		if (t && (files || !(t->flags & TOOL_FILES)))
			out[n++] = t;
	}
	return n;
}

/* Ava's own tools. Each is a row over a verb (ava/verbs.h): what she can do a person can
 * do as well, and nothing she says goes around the person.
 *
 * Happy path: the arguments of the call, which its schema has checked, go to the verb as
 * they are; of the answer she is told what she needs. spawn_subagent and spawn_parallel
 * propose only. Their request id is made of the conversation and the call, so a call that
 * a crash cut runs again and finds its own proposal: all tools here are repeatable but
 * steer_subagent, which nobody may hear twice. Schemas with roles and models are made once
 * when the runtime starts: enums with what they cost, never free text.
 *
 * What can fail is told to the model in a sentence: bad arguments, an unknown
 * id, a role whose tools are missing, the disk. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "ava/talk.h"
#include "ava/verbs.h"
#include "base/error.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "subagent/run.h"

#define CONTEXT_MAX (256u << 10)
#define TASK_CHARS  300
#define RUNS_MAX    20 /* of one call of spawn_parallel; more in a quote nobody reads */

struct talk_tool {
	struct tool tool;
	const char *method, *path, *id; /* of its verb; the argument that stands in the path */
	bool proposes;                  /* in the name of the person; else she is the caller */
	/* What she is told of the answer, as a new reference, in words where it is a
	 * string: then the call has failed. */
	json_t *(*tell)(const struct talk *t, json_t *answer);
};

struct talk_tools {
	struct talk_tool spawn, parallel;
	struct buf spawn_schema, parallel_schema;
};

static struct talk *talk_of_call(const struct tool_call *c)
{
	return talk_of(c->env->user);
}

static void tool_answer(struct tool_call *c, bool success, const char *error_class)
{
	c->success = success;
	c->error_class = error_class;
	c->done(c);
}

static void tool_fail(struct tool_call *c, const struct ava_error *err)
{
	const char *error_class = "io";

	switch (err->code) {
	case AVA_ENOENT:
		error_class = "not_found";
		break;
	case AVA_EINVAL:
	case AVA_EUNSUPPORTED:
		error_class = "bad_arguments";
		break;
	case AVA_EDENIED:
		error_class = "denied";
		break;
	case AVA_ETOOBIG:
		error_class = "too_big";
		break;
	case AVA_ETIMEOUT:
		error_class = "timeout";
		break;
	default:
		break;
	}
	buf_reset(&c->out);
	buf_adds(&c->out, err->text[0] ? err->text : ava_strerror(err->code));
	tool_answer(c, false, error_class);
}

/* ---- calling a verb */

struct asking {
	struct verb_reply reply;
	struct tool_call *call;
};

static void verb_answered(struct verb_reply *r, int status, const struct buf *json,
			  const struct ava_error *why)
{
	struct asking *a = CONTAINER_OF(r, struct asking, reply);
	struct tool_call *c = a->call;
	const struct talk_tool *tool = CONTAINER_OF(c->tool, struct talk_tool, tool);
	struct ava_error err = {0};
	json_t *answer, *told;

	free(a);
	if (!json) {
		tool_fail(c, why);
		return;
	}
	answer = json_parse(json->data, json->len, &err);
	told = answer ? tool->tell(talk_of_call(c), answer) : NULL;
	if (json_is_string(told)) {
		buf_adds(&c->out, json_string_value(told));
		tool_answer(c, false, "denied");
	} else if (told && json_dump(&c->out, told) == 0) {
		tool_answer(c, true, "");
	} else {
		err_set(&err, AVA_ENOMEM, "out of memory");
		tool_fail(c, &err);
	}
	json_decref(told);
	json_decref(answer);
}

static const struct verb *verb_of(const struct talk_tool *tool)
{
	const struct verb *v;

	for (size_t i = 0; (v = verbs_row(i)) != NULL; i++)
		if (strcmp(v->method, tool->method) == 0 && strcmp(v->path, tool->path) == 0)
			break;
	return v;
}

/* What a proposal has of the conversation. */
static void add_place(json_t *args, const struct session *s, const char *call)
{
	char request[80];

	snprintf(request, sizeof(request), "%s:%s", s->id, call);
	json_object_set_new(args, "cwd", json_string(s->cwd));
	json_object_set_new(args, "session_id", json_string(s->id));
	json_object_set_new(args, "request_id", json_string(request));
	json_object_set_new(args, "origin", json_string("ava"));
}

/* `args` is *taken*; NULL: no memory. */
static void call_verb(struct tool_call *c, json_t *args)
{
	const struct talk_tool *tool = CONTAINER_OF(c->tool, struct talk_tool, tool);
	const struct session *s = talk_of_call(c)->session;
	struct caller caller = {
		.user = tool->proposes ? s->user : NULL, .channel = "ava", .trust = CALLER_OWNER};
	struct ava_error err = {.code = AVA_ENOMEM, .text = "out of memory"};
	struct asking *a = calloc(1, sizeof(*a));
	const char *id = tool->id ? json_get_str(c->args, tool->id) : "";

	if (!a || !args) {
		free(a);
		json_decref(args);
		tool_fail(c, &err);
		return;
	}
	a->call = c;
	a->reply.done = verb_answered;
	if (tool->id)
		json_object_del(args, tool->id);
	if (tool->proposes)
		add_place(args, s, c->id);
	verbs_call(s->core, verb_of(tool), &caller, id, args, &a->reply);
	json_decref(args);
}

static void tool_start(struct tool_call *c)
{
	call_verb(c, json_deep_copy(c->args));
}

/* What the person wants it to mind is heard once, also when a crash cuts the call. */
static void steer_start(struct tool_call *c)
{
	const struct session *s = talk_of_call(c)->session;
	json_t *args = json_deep_copy(c->args);
	char request[80];

	snprintf(request, sizeof(request), "%s:%s", s->id, c->id);
	json_object_set(args, "text", json_object_get(args, "message"));
	json_object_del(args, "message");
	json_object_set_new(args, "request_id", json_string(request));
	call_verb(c, args);
}

/* Ended ones too are at most as many as she can read. */
static void list_start(struct tool_call *c)
{
	bool all = json_get_bool(c->args, "ended", false);

	call_verb(c, json_pack("{s:b,s:i}", "all", all, "limit", all ? 200 : 10000));
}

/* ---- spawn_subagent: a proposal while the results it refers to are read, on a pool
 * thread */

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

static void refs_read(struct os_work *w)
{
	struct spawn_job *j = w->priv;
	json_t *args;

	if (j->rv != 0) {
		tool_fail(j->call, &j->err);
	} else {
		args = json_deep_copy(j->call->args);
		json_object_del(args, "context_refs");
		json_object_set_new(args, "context", json_stringn(j->context.data, j->context.len));
		call_verb(j->call, args);
	}
	buf_fini(&j->context);
	free(j);
}

static void spawn_start(struct tool_call *c)
{
	const char *context = json_get_str(c->args, "context");
	const json_t *refs = json_object_get(c->args, "context_refs");
	struct ava_error err = {.code = AVA_ENOMEM, .text = "out of memory"};
	struct spawn_job *j;
	json_t *args;

	if (json_array_size(refs) == 0) {
		args = json_deep_copy(c->args);
		json_object_del(args, "context_refs");
		call_verb(c, args);
		return;
	}
	j = calloc(1, sizeof(*j));
	if (!j) {
		tool_fail(c, &err);
		return;
	}
	j->call = c;
	j->refs = refs;
	buf_init(&j->context, CONTEXT_MAX);
	buf_adds(&j->context, context ? context : "");
	j->work = (struct os_work){.work = read_refs, .done = refs_read, .priv = j};
	os_work_start(c->env->loop, &j->work);
}

/* ---- what she is told */

/* Of `o` the keys (a blank between two) that say something, texts cut. */
static json_t *told(json_t *o, const char *keys)
{
	json_t *out = json_object();

	while (*keys) {
		char key[32];
		size_t n = strcspn(keys, " ");
		const char *s;
		json_t *v;

		snprintf(key, sizeof(key), "%.*s", (int)n, keys);
		keys += n + (keys[n] == ' ');
		v = json_object_get(o, key);
		s = json_string_value(v);
		if (s && *s)
			json_object_set_new(out, key,
					    json_stringn(s, utf8_prefix(s, strlen(s), TASK_CHARS)));
		else if (v && !s)
			json_object_set(out, key, v);
	}
	return out;
}

static json_t *tell_proposed(const struct talk *t, json_t *o)
{
	json_t *out = told(o, "proposal_id subagent_id group_id");
	bool waits = strcmp(json_get_str(o, "state"), "pending") == 0;

	json_object_set_new(out, "status",
			    json_string(waits ? "waits for the person" : "answered"));
	json_object_set(out, "quote", json_object_get(o, "quote"));
	json_object_set_new(out, "next",
			    json_string("The person sees the quote. Say in one sentence what it is "
					"for and end your turn."));
	return out;
}

static json_t *tell_confirmed(const struct talk *t, json_t *o)
{
	static const struct {
		const char *state, *means;
	} states[] = {
		{"pending", "waits for the person: only their own yes starts it. End your turn"},
		{"rejected", "was rejected by the person"},
		{"expired", "has expired: propose it again if it is still wanted"},
	};
	json_t *out;

	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		if (strcmp(json_get_str(o, "state"), states[i].state) == 0)
			return json_sprintf("%s %s", json_get_str(o, "proposal_id"),
					    states[i].means);
	out = told(o, "proposal_id subagent_id trace_id");
	json_object_set_new(out, "status", json_string("started, as the person confirmed"));
	return out;
}

static json_t *tell_run(const struct talk *t, json_t *o)
{
	return told(o, "subagent_id trace_id role task status stop_reason current_activity "
		       "iteration tokens_used cost_cents elapsed_seconds");
}

static json_t *tell_runs(const struct talk *t, json_t *o)
{
	json_t *out = json_array(), *run;
	size_t i;

	json_array_foreach(json_object_get(o, "runs"), i, run)
	{
		if (strcmp(json_get_str(run, "session_id"), t->session->id) == 0)
			json_array_append_new(out, tell_run(t, run));
	}
	return out;
}

static json_t *tell_steered(const struct talk *t, json_t *o)
{
	json_t *out = told(o, "subagent_id outcome");

	json_object_set_new(
		out, "next",
		json_string(json_get_str(o, "steer_id")
				    ? "It reads that after what it is doing now. Say so "
				      "in one sentence."
				    : "It has its answer and goes on."));
	return out;
}

static json_t *tell_checkpoint(const struct talk *t, json_t *o)
{
	json_t *out = told(o, "subagent_id");

	json_object_set(out, "checkpoint", json_object_get(o, "name"));
	json_object_set(out, "before_model_call", json_object_get(o, "from"));
	json_object_set_new(out, "next",
			    json_string("The run goes on. When it has ended, a person forks it "
					"there with ava replay S-id --from and that name."));
	return out;
}

static void spawn_activity(const json_t *args, struct buf *out)
{
	const struct role *r = role_find(json_get_str(args, "role"));

	buf_addf(out, "Proposing a %s", r ? r->display : "subagent");
}

static void parallel_activity(const json_t *args, struct buf *out)
{
	buf_addf(out, "Proposing %zu subagents", json_array_size(json_object_get(args, "runs")));
}

/* ---- the rows */

#define RUN_ID_SCHEMA                                                                              \
	"{\"type\":\"object\",\"properties\":{\"subagent_id\":{\"type\":\"string\","               \
	"\"description\":\"as S-7f3a2b\",\"minLength\":3,\"maxLength\":23}},"                      \
	"\"required\":[\"subagent_id\"],\"additionalProperties\":false}"

static const struct talk_tool confirm_spawn = {
	.tool =
		{
			.name = "confirm_spawn",
			.description =
				"What became of a proposal: the id of the subagent when the person "
				"said yes. "
				"It confirms nothing by itself; only the person's own words do.",
			.schema = "{\"type\":\"object\",\"properties\":{\"proposal_id\":{\"type\":"
				  "\"string\","
				  "\"description\":\"as "
				  "P-19c0de\",\"minLength\":3,\"maxLength\":23}},"
				  "\"required\":[\"proposal_id\"],\"additionalProperties\":false}",
			.flags = TOOL_REPEATABLE,
			.start = tool_start,
		},
	.method = "GET",
	.path = "/api/v1/proposals/{id}",
	.id = "proposal_id",
	.tell = tell_confirmed,
};

static const struct talk_tool subagent_status = {
	.tool =
		{
			.name = "subagent_status",
			.description = "How a subagent is getting on: status, current activity, "
				       "time, tokens, cost. "
				       "Use it when the person asks; do not poll it, its result "
				       "comes by itself.",
			.schema = RUN_ID_SCHEMA,
			.flags = TOOL_REPEATABLE,
			.start = tool_start,
		},
	.method = "GET",
	.path = "/api/v1/runs/{id}",
	.id = "subagent_id",
	.tell = tell_run,
};

static const struct talk_tool list_subagents = {
	.tool =
		{
			.name = "list_subagents",
			.description = "The subagents of this conversation that are at work; with "
				       "ended true also "
				       "those that have ended.",
			.schema = "{\"type\":\"object\",\"properties\":{\"ended\":{\"type\":"
				  "\"boolean\"}},"
				  "\"additionalProperties\":false}",
			.flags = TOOL_REPEATABLE,
			.start = list_start,
		},
	.method = "GET",
	.path = "/api/v1/runs",
	.tell = tell_runs,
};

static const struct talk_tool steer_subagent = {
	.tool =
		{
			.name = "steer_subagent",
			.description = "Tell a subagent at work something the person wants it to "
				       "mind, or pass on the "
				       "person's answer to what it asks. Their words, not your "
				       "guess: when they have not "
				       "answered, ask them. A yes to a call they must confirm is "
				       "theirs alone to give.",
			.schema =
				"{\"type\":\"object\",\"properties\":{\"subagent_id\":{\"type\":"
				"\"string\","
				"\"description\":\"as S-7f3a2b\",\"minLength\":3,\"maxLength\":23},"
				"\"message\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":"
				"2000},"
				"\"call_id\":{\"type\":\"string\",\"maxLength\":15,\"description\":"
				"\"only as the "
				"answer to this question of its\"}},"
				"\"required\":[\"subagent_id\",\"message\"],"
				"\"additionalProperties\":false}",
			.start = steer_start,
		},
	.method = "POST",
	.path = "/api/v1/runs/{id}/steer",
	.id = "subagent_id",
	.tell = tell_steered,
};

static const struct talk_tool cancel_subagent = {
	.tool =
		{
			.name = "cancel_subagent",
			.description = "Stop a subagent for good. Only when the person wants it; "
				       "what it had found "
				       "so far comes as a partial result.",
			.schema = RUN_ID_SCHEMA,
			.flags = TOOL_REPEATABLE,
			.start = tool_start,
		},
	.method = "POST",
	.path = "/api/v1/runs/{id}/cancel",
	.id = "subagent_id",
	.tell = tell_run,
};

static const struct talk_tool checkpoint_subagent = {
	.tool =
		{
			.name = "checkpoint_subagent",
			.description = "Give the present position of a subagent at work a name, so "
				       "that the person can "
				       "later fork the run there. When they ask for it, or before "
				       "it does something that "
				       "they may want to take another way.",
			.schema =
				"{\"type\":\"object\",\"properties\":{\"subagent_id\":{\"type\":"
				"\"string\","
				"\"description\":\"as S-7f3a2b\",\"minLength\":3,\"maxLength\":23},"
				"\"name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":64,"
				"\"description\":\"letters, digits, '.', '_' and '-', a letter "
				"first: "
				"before-refactoring\"}},"
				"\"required\":[\"subagent_id\",\"name\"],\"additionalProperties\":"
				"false}",
			.flags = TOOL_REPEATABLE,
			.start = tool_start,
		},
	.method = "POST",
	.path = "/api/v1/runs/{id}/checkpoint",
	.id = "subagent_id",
	.tell = tell_checkpoint,
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

static void add_choices(struct buf *b)
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

static const char parallel_rest[] =
	"\"task\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":100000,\"description\":"
	"\"what to accomplish; stands on its own\"},"
	"\"context\":{\"type\":\"string\",\"maxLength\":100000},"
	"\"preset\":{\"type\":\"string\",\"enum\":[\"quick\",\"standard\",\"deep\"]},"
	"\"timeout\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":604800},"
	"\"max_cost_cents\":{\"type\":\"number\",\"minimum\":0}},"
	"\"required\":[\"role\",\"task\"],\"additionalProperties\":false}},"
	"\"max_cost_cents\":{\"type\":\"number\",\"minimum\":0,\"description\":\"of all of them "
	"together\"},"
	"\"timeout\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":604800,\"description\":"
	"\"seconds for all of them together\"},"
	"\"chain\":{\"type\":\"boolean\",\"description\":\"one after another, each with what the "
	"one before found\"},"
	"\"share\":{\"type\":\"boolean\",\"description\":\"each may read what the others found, "
	"once they have ended\"}},"
	"\"required\":[\"runs\"],\"additionalProperties\":false}";

int talk_tools_init(struct core *c)
{
	struct talk_tools *t = calloc(1, sizeof(*t));
	struct buf *one, *many;

	if (!t)
		return AVA_ENOMEM;
	c->talk_tools = t;
	one = &t->spawn_schema;
	many = &t->parallel_schema;
	buf_init(one, 32u << 10);
	buf_adds(one, "{\"type\":\"object\",\"properties\":{");
	add_choices(one);
	buf_adds(one, spawn_rest);
	buf_init(many, 32u << 10);
	buf_addf(many,
		 "{\"type\":\"object\",\"properties\":{\"runs\":{\"type\":\"array\",\"minItems\":1,"
		 "\"maxItems\":%d,\"items\":{\"type\":\"object\",\"properties\":{",
		 RUNS_MAX);
	add_choices(many);
	buf_adds(many, parallel_rest);
	t->spawn = (struct talk_tool){
		.tool = {.name = "spawn_subagent",
			 .description =
				 "Propose a specialised subagent that works in the background, for "
				 "deep "
				 "research, independent tasks that can run side by side, tools you "
				 "do not "
				 "have, or work that would fill this conversation. Not for simple "
				 "questions, "
				 "follow-ups, or what one or two calls of your own tools answer. "
				 "It starts "
				 "nothing: the person sees a quote and decides.",
			 .schema = one->data,
			 .flags = TOOL_REPEATABLE,
			 .start = spawn_start,
			 .activity = spawn_activity},
		.method = "POST",
		.path = "/api/v1/runs",
		.proposes = true,
		.tell = tell_proposed,
	};
	t->parallel = (struct talk_tool){
		.tool = {.name = "spawn_parallel",
			 .description = "Propose several specialised subagents at once, for tasks "
					"that do not need "
					"each other (or, with chain, each the one before). The "
					"person sees one "
					"quote for all; they share one budget, and each result "
					"comes by itself. "
					"For one task use spawn_subagent.",
			 .schema = many->data,
			 .flags = TOOL_REPEATABLE,
			 .start = tool_start,
			 .activity = parallel_activity},
		.method = "POST",
		.path = "/api/v1/groups",
		.proposes = true,
		.tell = tell_proposed,
	};
	if (buf_check(one) == 0 && buf_check(many) == 0)
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
		&c->talk_tools->spawn.tool, &c->talk_tools->parallel.tool, &confirm_spawn.tool,
		&subagent_status.tool,      &list_subagents.tool,          &steer_subagent.tool,
		&cancel_subagent.tool,      &checkpoint_subagent.tool,     &talk_read_ava_logs};
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

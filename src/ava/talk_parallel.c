/* spawn_parallel: one proposal for several subagents, side by side or one after
 * another. As spawn_subagent it starts nothing: the person sees one quote that
 * lists all of them. Its request id is made of the conversation and the call, so
 * that a call cut by a crash finds its own proposal. What can fail is told to
 * the model in a sentence that names the run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/tool.h"
#include "ava/groups.h"
#include "ava/talk.h"
#include "base/error.h"
#include "codec/json.h"
#include "subagent/spec.h"

#define RUNS_MAX 20 /* of one call; more in a quote nobody reads */

static int64_t scaled(const json_t *args, const char *key, int64_t by)
{
	const json_t *v = json_object_get(args, key);

	return json_is_number(v) ? (int64_t)llround(json_number_value(v) * (double)by)
				 : AVA_DEFAULT;
}

static void take_run(const json_t *args, struct op_spawn *out)
{
	*out = (struct op_spawn){
		.role = json_get_str(args, "role"),
		.task = json_get_str(args, "task"),
		.context = json_get_str(args, "context"),
		.model = json_get_str(args, "model"),
		.preset = json_get_str(args, "preset"),
		.timeout_ms = scaled(args, "timeout", 1000),
		.max_cost_microusd = scaled(args, "max_cost_cents", 10000),
		.max_tokens = AVA_DEFAULT,
		.max_iterations = AVA_DEFAULT,
	};
}

static void parallel_start(struct tool_call *c)
{
	struct session *s = talk_of(c->env->user)->session;
	const json_t *runs = json_object_get(c->args, "runs"), *v;
	struct op_spawn list[RUNS_MAX];
	char request[80];
	struct op_group g = {
		.runs = list,
		.max_cost_microusd = scaled(c->args, "max_cost_cents", 10000),
		.timeout_ms = scaled(c->args, "timeout", 1000),
		.chain = json_get_bool(c->args, "chain", false),
		.share = json_get_bool(c->args, "share", false),
		.session_id = s->id,
		.request_id = request,
		.user_id = s->user,
		.origin = "ava",
		.cwd = s->cwd,
	};
	size_t i;

	json_array_foreach(runs, i, v)
	{
		if (i < RUNS_MAX)
			take_run(v, &list[g.nruns++]);
	}
	snprintf(request, sizeof(request), "%s:%s", s->id, c->id);
	ops_propose_group(s->core, &g, talk_proposed, c);
}

static void parallel_activity(const json_t *args, struct buf *out)
{
	buf_addf(out, "Proposing %zu subagents", json_array_size(json_object_get(args, "runs")));
}

static const char rest[] =
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

int talk_parallel_init(struct tool *t, struct buf *schema)
{
	buf_init(schema, 32u << 10);
	buf_addf(schema,
		 "{\"type\":\"object\",\"properties\":{\"runs\":{\"type\":\"array\",\"minItems\":1,"
		 "\"maxItems\":%d,\"items\":{\"type\":\"object\",\"properties\":{",
		 RUNS_MAX);
	talk_tools_choices(schema);
	buf_adds(schema, rest);
	*t = (struct tool){
		.name = "spawn_parallel",
		.description =
			"Propose several specialised subagents at once, for tasks that do not need "
			"each other (or, with chain, each the one before). The person sees one "
			"quote for all; they share one budget, and each result comes by itself. "
			"For one task use spawn_subagent.",
		.schema = schema->data,
		.flags = TOOL_REPEATABLE,
		.start = parallel_start,
		.activity = parallel_activity,
	};
	return buf_check(schema);
}

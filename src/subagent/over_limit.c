/* Limits that a person raises while a run waits; over_limit.h.
 *
 * The new limit is an amendment of the spec in messages.jsonl, in one commit with
 * the answer: the next start reads it there, and a run that was killed between
 * the question and its answer comes to the limit and asks again. What can fail
 * is memory, which the draft remembers. */
#include "subagent/over_limit.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/util.h"
#include "codec/json.h"
#include "subagent/record.h"
#include "subagent/run.h"

static int64_t twice(int64_t n)
{
	return n > INT64_MAX / 2 ? INT64_MAX : 2 * n;
}

void over_limit_question(const struct run *r, char *out, size_t size)
{
	const struct agent_limits *l = &r->spec->agent.limits;

	switch ((enum agent_resource)(r->agent.over - 1)) {
	case AGENT_COST:
		snprintf(out, size,
			 "It has used its %" PRId64
			 ".%02d cents. May it use as much again? (no: it "
			 "ends with what it has)",
			 l->cost_microusd / 10000, (int)(l->cost_microusd / 100 % 100));
		return;
	case AGENT_TOKENS:
		snprintf(out, size,
			 "It has used its %" PRId64 " tokens. May it use as many again? (no: it "
			 "ends with what it has)",
			 l->tokens);
		return;
	case AGENT_ITERATIONS:
	case AGENT_TIME:
	case AGENT_NRESOURCES:
		break;
	}
	snprintf(
		out, size,
		"It has used its %d model calls. May it make as many again? (no: it ends with what "
		"it has)",
		(int)l->iterations);
}

static void raise_limit(struct agent_limits *l, enum agent_resource r)
{
	if (r == AGENT_COST)
		l->cost_microusd = twice(l->cost_microusd);
	else if (r == AGENT_TOKENS)
		l->tokens = twice(l->tokens);
	else if (r == AGENT_ITERATIONS)
		l->iterations = (int32_t)MIN(twice(l->iterations), (int64_t)INT32_MAX);
}

void over_limit_raise(struct run *r, struct draft *d)
{
	const struct agent_limits *l = &r->spec->agent.limits;
	char path[LOGBOOK_PATH];
	struct buf *part;
	struct jw w;

	raise_limit(&r->spec->agent.limits, (enum agent_resource)(r->agent.over - 1));
	run_messages_path(r, path);
	part = draft_part(d, DRAFT_MESSAGES, path);
	if (!part)
		return;
	jw_init(&w, part);
	jw_object(&w, NULL);
	jw_object(&w, "spec");
	jw_object(&w, "limits");
	jw_fixed(&w, "seconds", l->time_ms, 3);
	jw_fixed(&w, "costCents", l->cost_microusd, 4);
	jw_int(&w, "tokens", l->tokens);
	jw_int(&w, "iterations", l->iterations);
	jw_end(&w);
	jw_end(&w);
	jw_end(&w);
	buf_addc(part, '\n');
	record_limits(d, r);
}

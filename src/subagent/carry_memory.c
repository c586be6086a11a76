/* What a machine remembers of a run's turns, from the record: calls that were
 * repeated (each ToolResult has the call's print), the room that was made
 * (ContextEdit, and the piece "room"), and that the next reply is the last (the
 * piece "last"). The table of calls is built by the code of a live run, turn by
 * turn, so it is the same to the last count.
 *
 * A log of an earlier version has no prints. What it led to is not known any
 * more: the run begins to count anew, as it did then, and its event carried_on
 * says so to a replay. What can fail: memory. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/shared.h"
#include "agent/tool.h"
#include "base/buf.h"
#include "codec/json.h"
#include "subagent/carry.h"
#include "subagent/run.h"

void carry_print(struct carry *c, struct carried_call *k, const json_t *content)
{
	const char *print = json_get_str(content, "print"), *name = json_get_str(content, "name");
	const struct run_spec *s = c->run->spec;
	int used = 0;

	k->ran = false;
	k->tool = NULL;
	if (!print)
		c->older = true;
	if (!print || !name ||
	    sscanf(print, "%16" SCNx64 "%16" SCNx64 "%n", &k->print.call, &k->print.result,
		   &used) != 2)
		return;
	for (unsigned i = 0; i < s->agent.ntools; i++)
		if (strcmp(s->tools[i]->name, name) == 0)
			k->tool = s->tools[i];
	k->ran = used == 32 && k->tool != NULL;
}

int carry_turn(struct carry *c)
{
	struct repeat_note note;
	int rv = 0;

	for (unsigned i = 0; rv == 0 && i < c->ncalls && !c->counted; i++) {
		const struct carried_call *k = &c->calls[i];
		struct call_ref at;

		if (k->answered && k->ran && call_ref_read(k->id, &at))
			rv = repeat_add(&c->past.repeats, at, k->print,
					!(k->tool->flags & TOOL_REPEATABLE), &note);
	}
	c->counted = true;
	return rv;
}

void carry_removed(struct carry *c, const json_t *content)
{
	const json_t *id;
	struct call_ref at;
	size_t i;

	json_array_foreach(json_object_get(content, "removed"), i, id)
	{
		if (json_is_string(id) && call_ref_read(json_string_value(id), &at))
			repeat_removed(c->past.repeats, at);
	}
}

int carry_room(struct carry *c, const json_t *value)
{
	c->past.compact_floor = json_get_int(value, "floor", 0);
	c->past.halvings = (uint8_t)json_get_int(value, "halvings", 0);
	if (!json_get_bool(value, "overflowed", false))
		c->past.overflow = NULL;
	return 0;
}

int carry_last(struct carry *c, const json_t *value)
{
	const char *why = json_string_value(value);

	c->past.wrapping = why && strcmp(why, "repeated") == 0;
	c->past.force_submit = c->run->spec->agent.can_force;
	return 0;
}

void carry_overflow(struct carry *c, const char *sentence)
{
	snprintf(c->overflow, sizeof(c->overflow), "%s", sentence ? sentence : "");
	c->past.overflow = c->overflow;
}

void carry_forget(struct carry *c)
{
	repeat_free(c->past.repeats);
	c->past.repeats = NULL;
	c->past.compact_floor = 0;
	c->past.halvings = 0;
	c->past.overflow = NULL;
	c->past.wrapping = false;
	c->older = false;
}

/* A process that did not know all went on from here: neither did it know this. */
void carry_custom(struct carry *c, const json_t *content)
{
	const char *type = json_get_str(content, "customType");
	bool given = true; /* the last result of a turn is written with the line of all */

	if (!type || strcmp(type, "carried_on") != 0 ||
	    json_get_bool(json_object_get(content, "data"), "whole", false))
		return;
	for (unsigned i = 0; i < c->ncalls; i++)
		given &= c->calls[i].answered;
	c->counted |= given;
	carry_forget(c);
}

/* What the model was told of limits that the run shares with others. */
void carry_shared(struct carry *c, const json_t *content)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(content, "shared"), i, one)
	{
		const char *name = json_get_str(one, "limit");

		for (unsigned s = 0; name && s < AGENT_NSHARES; s++)
			if (strcmp(agent_share_names[s], name) == 0)
				c->past.shares |= (uint16_t)(1u << s);
	}
}

/* A person let the run pass a limit: the model is told again when it comes near. */
void carry_raised(struct carry *c, const json_t *content)
{
	const json_t *budget = json_object_get(content, "budget");
	const struct agent_limits now = {
		.cost_microusd = json_get_fixed(budget, "costCents", 4, 0),
		.tokens = json_get_int(budget, "tokens", 0),
		.iterations = (int32_t)json_get_int(budget, "iterations", 0),
	};

	if (now.cost_microusd > c->limits.cost_microusd)
		c->past.warned &= (uint16_t) ~(1u << AGENT_COST);
	if (now.tokens > c->limits.tokens)
		c->past.warned &= (uint16_t) ~(1u << AGENT_TOKENS);
	if (now.iterations > c->limits.iterations)
		c->past.warned &= (uint16_t) ~(1u << AGENT_ITERATIONS);
	c->limits = now;
}

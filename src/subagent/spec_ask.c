/* ask_before: tools of a run whose calls wait for a person's yes. Part of what
 * is confirmed: it stands in the canonical configuration, after the grants, when
 * there is any. A name that no tool has is an error (a misspelt one would let
 * calls pass); one that this run does not have can never be called. */
#include "subagent/spec_ask.h"

#include "agent/tool.h"
#include "base/error.h"
#include "codec/json.h"
#include "subagent/spec.h"

static bool has(const struct tool *const *tools, unsigned n, const struct tool *t)
{
	for (unsigned i = 0; i < n; i++)
		if (tools[i] == t)
			return true;
	return false;
}

static int add(struct run_spec *r, const char *name, struct ava_error *err)
{
	const struct tool *t = tool_find(name);

	if (!t)
		return err_set(err, AVA_EINVAL, "ask_before: there is no tool %.60s", name);
	if (t->flags & (TOOL_ENDS | TOOL_ASKS))
		return err_set(err, AVA_EINVAL, "ask_before: %s needs no yes", name);
	if (!has(r->tools, r->agent.ntools, t) || has(r->ask_before, r->agent.nask_before, t))
		return 0;
	if (!r->ask_before)
		r->ask_before = arena_get(&r->mem, r->agent.ntools * sizeof(*r->ask_before));
	if (!r->ask_before)
		return err_set(err, AVA_ENOMEM, "out of memory");
	r->ask_before[r->agent.nask_before++] = t;
	return 0;
}

int spec_ask_take(struct run_spec *r, const struct op_spawn *s, struct ava_error *err)
{
	int rv = 0;

	for (size_t i = 0; rv == 0 && i < s->nask_before; i++)
		rv = add(r, s->ask_before[i], err);
	r->agent.ask_before = r->ask_before;
	return rv;
}

int spec_ask_from_json(struct run_spec *r, const json_t *config, struct ava_error *err)
{
	const json_t *v;
	size_t i;
	int rv = 0;

	json_array_foreach(json_object_get(config, "askBefore"), i,
			   v) if (rv == 0 && json_is_string(v)) rv =
		add(r, json_string_value(v), err);
	r->agent.ask_before = r->ask_before;
	return rv;
}

void spec_ask_write(struct jw *w, const struct run_spec *r)
{
	if (r->agent.nask_before == 0)
		return;
	jw_array(w, "askBefore");
	for (unsigned i = 0; i < r->agent.nask_before; i++)
		jw_str(w, NULL, r->ask_before[i]->name);
	jw_end(w);
}

bool spec_asks_no_less(const struct run_spec *quoted, const struct run_spec *changed)
{
	for (unsigned i = 0; i < quoted->agent.nask_before; i++) {
		const struct tool *t = quoted->ask_before[i];

		if (has(changed->tools, changed->agent.ntools, t) &&
		    !has(changed->ask_before, changed->agent.nask_before, t))
			return false;
	}
	return true;
}

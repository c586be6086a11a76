/* The group in a config: written in one order, read back as it was.
 *
 * What follows in a chain is a JSON text inside a string, so that it comes back
 * byte for byte and the hash over a config stays what was confirmed. What can
 * fail: memory, and a cost limit over a model whose price nobody knows. */
#include "subagent/spec_group.h"

#include <string.h>

#include "base/error.h"
#include "codec/json.h"
#include "subagent/spec.h"

void spec_group_write(struct jw *w, const struct spec_group *g)
{
	if (!g->id[0])
		return;
	jw_object(w, "group");
	jw_str(w, "id", g->id);
	if (g->cost_microusd < 0)
		jw_null(w, "costCents");
	else
		jw_fixed(w, "costCents", g->cost_microusd, 4);
	jw_fixed(w, "seconds", g->time_ms, 3);
	jw_int(w, "index", g->index);
	jw_int(w, "size", g->size);
	jw_bool(w, "share", g->share);
	jw_bool(w, "chain", g->chain);
	if (g->then)
		jw_str(w, "then", g->then);
	jw_end(w);
}

int spec_group_take(struct run_spec *r, const struct spec_group *g, struct ava_error *err)
{
	const struct agent_price *p = &r->agent.price;

	r->group = (struct spec_group){.id = "", .cost_microusd = -1};
	if (!g || !g->id || !g->id[0])
		return 0;
	if (g->cost_microusd >= 0 && (p->input < 0 || p->output < 0))
		return err_set(err, AVA_EINVAL,
			       "the price of %.100s is unknown, so the cost limit of a group "
			       "cannot be kept: leave it out or use another model",
			       r->model->id);
	r->group = *g;
	r->group.id = arena_copy(&r->mem, g->id, strlen(g->id));
	r->group.then = g->then ? arena_copy(&r->mem, g->then, strlen(g->then)) : NULL;
	if (r->group.id && (r->group.then || !g->then))
		return 0;
	r->group.id = "";
	return err_set(err, AVA_ENOMEM, "out of memory");
}

int spec_group_from_json(struct run_spec *r, const json_t *config, struct ava_error *err)
{
	const json_t *o = json_object_get(config, "group");
	struct spec_group g = {
		.id = json_get_str(o, "id"),
		.cost_microusd = json_get_fixed(o, "costCents", 4, -1),
		.time_ms = json_get_fixed(o, "seconds", 3, 0),
		.index = (int)json_get_int(o, "index", 1),
		.size = (int)json_get_int(o, "size", 1),
		.share = json_get_bool(o, "share", false),
		.chain = json_get_bool(o, "chain", false),
		.then = json_get_str(o, "then"),
	};

	if (g.size < 1 || g.size > SPEC_GROUP_MAX || g.index < 1 || g.index > g.size)
		return err_set(err, AVA_ECORRUPT, "the stored configuration's group is damaged");
	return spec_group_take(r, &g, err);
}

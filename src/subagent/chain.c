/* Chains: a group whose runs come one after the other.
 *
 * Happy path: a run succeeds, chain_run_ends spawns the next one in the commit that ends it, so
 * that a crash leaves either both or none; chain_next starts that one when the commit is durable.
 * What can fail: memory, and a working folder that is gone, which ends the chain (Error). */
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "subagent/run.h"
#include "subagent/supervisor.h"

/* The config of the next run, *owned*, with the context of this one and, in group.then, the rest
 * of the chain. NULL: the chain ends here, or no memory. */
static json_t *chain_next_config(const struct run *r, enum ava_status status, const char *summary)
{
	const struct spec_group *was = &r->spec->group;
	json_t *list = was->then ? json_parse(was->then, strlen(was->then), NULL) : NULL;
	json_t *config = json_incref(json_array_get(list, 0)), *group;
	const char *before;
	char *rest = NULL;
	struct buf context;

	group = json_object_get(config, "group");
	buf_init(&context, SPEC_CONTEXT_MAX);
	if (!group)
		goto out;
	/* Outcome of the run before it, and where that is. */
	before = json_str(config, "context");
	buf_addf(&context, "%s%s### The run before (%s, %s)\n", before, *before ? "\n\n" : "",
		 r->id.text, ava_status_name(status));
	buf_adds(&context, summary);
	buf_addf(&context, "\n\nIts result: read_result with call_id \"%s\".", r->id.text);
	if (r->tools.artifacts.len > 0)
		buf_addf(&context, " Outputs it kept: %s.", r->tools.artifacts.data);
	json_array_remove(list, 0);
	if (json_array_size(list) > 0)
		rest = json_dumps(list, JSON_COMPACT | JSON_REAL_PRECISION(15));
	if (buf_check(&context) == 0)
		json_object_set_new(config, "context", json_stringn(context.data, context.len));
	if (rest)
		json_object_set_new(group, "then", json_string(rest));
out:
	free(rest);
	buf_fini(&context);
	json_decref(list);
	return config;
}

static void chain_spawn_next(struct run *r, struct draft *d, enum ava_status status,
			     const char *summary)
{
	json_t *config = chain_next_config(r, status, summary);
	struct ava_error err = {0};
	struct run_spec *spec = NULL;
	int rv;

	if (!config)
		return;
	rv = spec_from_json(&spec, config, r->spec->session_id, "", r->spec->user_id, &err);
	json_decref(config);
	if (rv == 0)
		rv = supervisor_spawn(r->sup, spec, r->proposal, d, &r->next, &err);
	if (rv == 0)
		return;
	spec_free(spec);
	group_write_broken(r, d, err.text);
}

void chain_run_ends(struct run *r, struct draft *d, enum ava_status status, const char *summary)
{
	if (r->group && r->group->chain && status == AVA_SUCCESS && !r->cancel_wanted)
		chain_spawn_next(r, d, status, summary);
	group_run_ends(r, d, status);
}

void chain_next(struct run *r)
{
	struct run *next = r->next;

	group_end_saved(r);
	if (!next)
		return;
	/* A cancel came while the commit with the end and the next spawn was on its way. */
	if (r->cancel_wanted)
		supervisor_cancel(next, r->end.by, r->end.origin);
	else
		r->next = NULL;
	supervisor_start(next);
	if (r->sup->on_chained)
		r->sup->on_chained(next, r->sup->session_user);
}

/* The short form of a spec, for a window of less than SPEC_BRIEF_WINDOW tokens: tools and the
 * runtime's text take a third of their tokens, and tools marked TOOL_LATER are allowed but not
 * shown until they are needed; in a larger window of a local server only TOOL_OF_RUNS wait so. The
 * withheld tools stand in the spec line of messages.jsonl and in an amendment each time some are
 * shown (doc/MESSAGES.md), so a restart and a replay show the same. A call of a withheld tool runs
 * like any other. Nothing here can fail. */
#include "subagent/spec.h"

#include <assert.h>
#include <string.h>

#include "agent/tool.h"
#include "codec/json.h"
#include "provider/dialect.h"

static_assert(ROLE_MAX_TOOLS <= 32, "a set of a run's tools is an uint32_t");

static void brief_set(struct run_spec *r, bool brief, bool later, uint32_t withheld)
{
	r->brief = brief;
	r->later = later;
	r->withheld = withheld;
	/* The long text is at most a twentieth of the window, at three bytes a token: no service
	 * counts more. */
	r->operating = r->operatings[brief || (r->model->context > 0 &&
					       (int64_t)strlen(r->operatings[0]) / 3 * 20 >
						       r->model->context)];
}

/* Is the tool shown only when needed? Not where a person's own role names it. */
static bool is_later(const struct run_spec *r, const struct tool *t)
{
	return (t->flags & (r->brief ? TOOL_LATER : TOOL_OF_RUNS)) &&
	       (r->role->source == ROLE_BUILTIN || !role_wishes(r->role, t->name));
}

void spec_brief_decide(struct run_spec *r)
{
	int64_t window = r->agent.window;
	bool local = r->model->provider && strcmp(r->model->provider->name, "local") == 0;
	uint32_t withheld = 0;

	r->brief = window > 0 && window < SPEC_BRIEF_WINDOW;
	for (unsigned i = 0; (r->brief || local) && i < r->agent.ntools; i++)
		withheld |= is_later(r, r->tools[i]) ? UINT32_C(1) << i : 0;
	brief_set(r, r->brief, r->brief || withheld != 0, withheld);
}

void spec_brief_write(struct jw *w, const struct run_spec *r)
{
	if (r->brief)
		jw_bool(w, "brief", true);
	jw_array(w, "withheld");
	for (unsigned i = 0; i < r->agent.ntools; i++)
		if (r->withheld & UINT32_C(1) << i)
			jw_str(w, NULL, r->tools[i]->name);
	jw_end(w);
}

uint32_t spec_tools_named(const struct run_spec *r, const char *const *names, unsigned n)
{
	uint32_t set = 0;

	for (unsigned i = 0; i < r->agent.ntools; i++)
		for (unsigned k = 0; k < n; k++)
			if (strcmp(r->tools[i]->name, names[k]) == 0)
				set |= UINT32_C(1) << i;
	return set;
}

void spec_brief_read(struct run_spec *r, const json_t *o)
{
	const json_t *list = json_object_get(o, "withheld"), *v;
	uint32_t withheld = 0;
	const char *name;
	size_t i;

	if (!list && json_object_get(o, "machine")) /* a spec line may lack the list */
		brief_set(r, false, false, 0);
	if (!list)
		return;
	json_array_foreach(list, i, v)
	{
		name = json_string_value(v);
		withheld |= name ? spec_tools_named(r, &name, 1) : 0;
	}
	brief_set(r, json_get_bool(o, "brief", false), json_is_array(list), withheld);
}

unsigned spec_tools_shown(const struct run_spec *r, const struct tool **out)
{
	unsigned n = 0;

	for (int later = 0; later <= (int)r->later; later++)
		for (unsigned i = 0; i < r->agent.ntools; i++)
			if (!(r->withheld & UINT32_C(1) << i) &&
			    (!r->later || (int)is_later(r, r->tools[i]) == later))
				out[n++] = r->tools[i];
	return n;
}

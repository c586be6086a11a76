/* A request to resume names a run and, if at all, what shall be otherwise. The rest is
 * read from the first line of that run's messages: what was confirmed then. It is
 * quoted and confirmed anew like any other, since it spends more.
 *
 * What can fail: there is no such run, it is at work, its messages are gone. */
#include "ava/resume.h"

#include <string.h>

#include "ava/state.h"
#include "base/error.h"
#include "base/id.h"
#include "codec/json.h"
#include "subagent/replay.h"
#include "subagent/resume.h"
#include "subagent/run_checkpoint.h"

struct filled {
	struct op_spawn s;
	json_t *line; /* owns the strings */
	const char *tools[ROLE_MAX_TOOLS], *grants[ROLE_MAX_TOOLS], *asks[ROLE_MAX_TOOLS];
};

static void take_text(const char **to, const json_t *o, const char *key)
{
	if (!*to || !**to)
		*to = json_get_str(o, key);
}

static void take_list(const char *const **to, size_t *n, const char **items, const json_t *o,
		      const char *key)
{
	const json_t *list = json_object_get(o, key), *v;
	size_t i;

	if (*to || !json_is_array(list))
		return;
	json_array_foreach(list, i, v)
	{
		if (json_is_string(v) && *n < ROLE_MAX_TOOLS)
			items[(*n)++] = json_string_value(v);
	}
	*to = items;
}

static void take_limit(int64_t *to, const json_t *limits, const char *key, int decimals)
{
	if (*to == AVA_DEFAULT)
		*to = json_get_fixed(limits, key, decimals, AVA_DEFAULT);
}

static void fill(struct filled *f)
{
	const json_t *o = json_object_get(f->line, "spec"), *limits = json_object_get(o, "limits");
	struct op_spawn *s = &f->s;

	take_text(&s->role, o, "role");
	take_text(&s->task, o, "task");
	take_text(&s->context, o, "context");
	take_text(&s->cwd, o, "cwd");
	take_text(&s->model, o, "model");
	take_list(&s->tools, &s->ntools, f->tools, o, "tools");
	take_list(&s->grants, &s->ngrants, f->grants, o, "grants");
	take_list(&s->ask_before, &s->nask_before, f->asks, o, "askBefore");
	if (!s->on_limit)
		s->on_limit = json_get_str(o, "onLimit");
	if (!s->output_schema)
		s->output_schema = json_object_get(o, "outputSchema");
	if (!s->preset || !*s->preset) {
		/* What costs nobody knows what was held by its tokens. */
		if (json_is_integer(json_object_get(json_object_get(o, "price"), "input")))
			take_limit(&s->max_cost_microusd, limits, "costCents", 4);
		take_limit(&s->max_tokens, limits, "tokens", 0);
	}
	take_limit(&s->timeout_ms, limits, "seconds", 3);
	take_limit(&s->max_iterations, limits, "iterations", 0);
	if (!s->extended_thinking)
		s->no_thinking = !json_get_bool(o, "thinking", false);
}

static int check(struct core *c, const struct op_spawn *s, struct ava_error *err)
{
	if (!id_is_run(s->resume) || !nameset_has(&c->sup.names, s->resume))
		return err_set(err, AVA_ENOENT, "there is no run %.40s", s->resume);
	if (supervisor_find(&c->sup, s->resume))
		return err_set(err, AVA_EBUSY,
			       "run %s has not ended: it goes on by itself; steer or cancel it, "
			       "or wait for its end",
			       s->resume);
	return 0;
}

/* A name stands for the call that a fork from it begins with. */
static int take_checkpoint(struct core *c, struct op_spawn *s, struct ava_error *err)
{
	int call, rv = run_checkpoint_find(c->root_fd, s->resume, s->resume_at, &call, err);

	if (rv == 0)
		s->resume_call = call;
	return rv;
}

int resume_build(struct core *c, const struct op_spawn *s, struct run_spec **out,
		 struct ava_error *err)
{
	struct filled f = {.s = *s};
	size_t at;
	int rv;

	if (!s->resume || !*s->resume)
		return spec_build(out, s, &c->settings, c->model, c->redact, err);
	rv = check(c, s, err);
	if (rv == 0 && s->resume_at)
		rv = take_checkpoint(c, &f.s, err);
	if (rv == 0 && f.s.resume_call > 0 && f.s.resume_call <= INT32_MAX)
		rv = replay_seek(c->root_fd, s->resume, (int)f.s.resume_call, &at, err);
	if (rv == 0)
		rv = resume_spec(c->root_fd, s->resume, &f.line, err);
	if (rv == 0) {
		fill(&f);
		rv = spec_build(out, &f.s, &c->settings, c->model, c->redact, err);
	}
	json_decref(f.line);
	return rv;
}

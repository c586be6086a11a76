/* Carrying a change out: the quoted spec becomes a request again, with what is
 * wanted otherwise in it, and that is built like any other (spec_build), so
 * that a change cannot ask for what a request could not.
 *
 * Whether a change only lowers is told from the two specs, not from what was
 * said. What can fail: everything a person can ask for that is not there; the
 * sentence names it. */
#include "ava/change.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/tool.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "provider/model.h"
#include "subagent/spec.h"

bool change_none(const struct change *c)
{
	return c->cost_microusd == CHANGE_KEEP && c->time_ms == CHANGE_KEEP &&
	       c->tokens == CHANGE_KEEP && c->iterations == CHANGE_KEEP && !c->preset[0] &&
	       !c->role[0] && !c->model[0] && c->thinking < 0 && c->nwithout == 0;
}

static void take_number(int64_t *to, int64_t from)
{
	if (from != CHANGE_KEEP)
		*to = from;
}

static void take_word(char *to, size_t size, const char *from)
{
	if (*from)
		snprintf(to, size, "%s", from);
}

bool change_add(struct change *to, const struct change *from)
{
	take_number(&to->cost_microusd, from->cost_microusd);
	take_number(&to->time_ms, from->time_ms);
	take_number(&to->tokens, from->tokens);
	take_number(&to->iterations, from->iterations);
	take_word(to->preset, sizeof(to->preset), from->preset);
	take_word(to->role, sizeof(to->role), from->role);
	take_word(to->model, sizeof(to->model), from->model);
	if (from->thinking >= 0)
		to->thinking = from->thinking;
	if (to->nwithout + from->nwithout > CHANGE_WITHOUT_MAX)
		return false;
	memcpy(to->without + to->nwithout, from->without,
	       from->nwithout * sizeof(from->without[0]));
	to->nwithout += from->nwithout;
	return true;
}

/* ---- tools */

/* "bash" is a word of run_bash. */
static bool tool_meant(const char *tool, const char *word)
{
	size_t n = strlen(word);

	if (strcasecmp(tool, word) == 0)
		return true;
	for (const char *s = tool; *s; s += strcspn(s, "_"), s += *s == '_')
		if (strcspn(s, "_") == n && strncasecmp(s, word, n) == 0)
			return true;
	return false;
}

static int no_such_tool(const struct run_spec *s, const char *word, struct ava_error *err)
{
	char names[256] = "";
	size_t n = 0;

	for (unsigned i = 0; i < s->agent.ntools && n < sizeof(names) - 64; i++)
		if (!(s->tools[i]->flags & TOOL_ENDS))
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "",
					      s->tools[i]->name);
	return err_set(err, AVA_EINVAL, "there is no tool %s to leave out: this proposal has %s",
		       word, n ? names : "none");
}

/* The tools of `base` that stay, into `keep` (ROLE_MAX_TOOLS places). */
static int keep_tools(const struct run_spec *base, const struct change *c, const char **keep,
		      size_t *n, struct ava_error *err)
{
	bool out[ROLE_MAX_TOOLS] = {false};

	for (unsigned k = 0; k < c->nwithout; k++) {
		bool found = false;

		for (unsigned i = 0; i < base->agent.ntools; i++) {
			/* Without it a run could not end. */
			if ((base->tools[i]->flags & TOOL_ENDS) ||
			    !tool_meant(base->tools[i]->name, c->without[k]))
				continue;
			found = out[i] = true;
		}
		if (!found)
			return no_such_tool(base, c->without[k], err);
	}
	*n = 0;
	for (unsigned i = 0; i < base->agent.ntools; i++)
		if (!out[i])
			keep[(*n)++] = base->tools[i]->name;
	return 0;
}

/* ---- building */

/* The model that the role and the settings give. */
static bool model_by_role(const struct run_spec *s, const char *forced)
{
	struct model m;

	return model_resolve(forced ? forced : s->role->model, &m, NULL, NULL) == 0 &&
	       strcmp(m.id, s->model->id) == 0;
}

/* The request for `q`, as it was, becomes one for what is wanted. */
static void change_request(struct op_spawn *s, const struct run_spec *q, const struct change *c,
			   const char *forced)
{
	bool price_known = q->agent.price.input >= 0 && q->agent.price.output >= 0;

	s->session_id = q->session_id;
	s->request_id = q->request_id;
	s->user_id = q->user_id;
	if (c->role[0]) {
		s->role = c->role;
		s->tools = NULL;
		s->ntools = 0;
		s->no_thinking = false;
		if (model_by_role(q, forced))
			s->model = NULL;
	}
	/* Only the role's own limit may stand beside a model whose price is unknown. */
	if ((c->model[0] || !price_known) && !*q->preset &&
	    s->max_cost_microusd == q->role->cost_cents * 10000)
		s->max_cost_microusd = AVA_DEFAULT;
	if (c->model[0])
		s->model = c->model;
	if (c->preset[0]) {
		s->preset = c->preset;
		s->max_cost_microusd = s->max_tokens = AVA_DEFAULT;
	}
	take_number(&s->timeout_ms, c->time_ms);
	take_number(&s->max_cost_microusd, c->cost_microusd);
	take_number(&s->max_tokens, c->tokens);
	take_number(&s->max_iterations, c->iterations);
	if (c->thinking >= 0) {
		s->extended_thinking = c->thinking == 1;
		s->no_thinking = c->thinking == 0;
	}
}

int change_spec(struct run_spec **out, const struct run_spec *quoted, const struct change *c,
		const struct settings *set, const char *forced, const struct redact *redact,
		struct ava_error *err)
{
	json_t *config = json_parse(quoted->config, quoted->config_len, err);
	const char *keep[ROLE_MAX_TOOLS];
	struct run_spec *base = NULL;
	struct op_spawn s;
	struct arena mem;
	int rv;

	arena_init(&mem, 1u << 20);
	rv = config ? spec_request(config, &s, &mem) : err->code;
	if (rv == 0) {
		change_request(&s, quoted, c, forced);
		rv = spec_build(&base, &s, set, forced, redact, err);
	} else {
		err_set(err, rv, "out of memory");
	}
	if (rv == 0 && c->nwithout > 0) {
		rv = keep_tools(base, c, keep, &s.ntools, err);
		s.tools = keep;
		spec_free(base);
		base = NULL;
		if (rv == 0)
			rv = spec_build(&base, &s, set, forced, redact, err);
	}
	*out = base;
	arena_fini(&mem);
	json_decref(config);
	/* Whatever a change asks for in vain is a wrong answer. */
	return rv == 0 || rv == AVA_ENOMEM ? rv : (err->code = AVA_EINVAL);
}

/* ---- comparing */

static bool tools_within(const struct run_spec *all, const struct run_spec *some)
{
	for (unsigned i = 0; i < some->agent.ntools; i++)
		if (!spec_has_tool(all->tools, all->agent.ntools, some->tools[i]))
			return false;
	return true;
}

static bool grants_within(const struct run_spec *all, const struct run_spec *some)
{
	for (size_t i = 0; i < some->ngrants; i++) {
		bool found = false;

		for (size_t k = 0; k < all->ngrants; k++)
			found = found || strcmp(all->grants[k], some->grants[i]) == 0;
		if (!found)
			return false;
	}
	return true;
}

bool change_lowers(const struct run_spec *quoted, const struct run_spec *changed)
{
	const struct agent_limits *a = &quoted->agent.limits, *b = &changed->agent.limits;

	return quoted->role == changed->role &&
	       strcmp(quoted->model->id, changed->model->id) == 0 &&
	       strcmp(quoted->task, changed->task) == 0 &&
	       strcmp(quoted->context, changed->context) == 0 &&
	       strcmp(quoted->cwd, changed->cwd) == 0 && quoted->thinking == changed->thinking &&
	       b->cost_microusd <= a->cost_microusd && b->time_ms <= a->time_ms &&
	       b->tokens <= a->tokens && b->iterations <= a->iterations &&
	       changed->rights_private <= quoted->rights_private &&
	       changed->rights_untrusted <= quoted->rights_untrusted &&
	       changed->rights_out <= quoted->rights_out && tools_within(quoted, changed) &&
	       grants_within(quoted, changed) && spec_asks_no_less(quoted, changed);
}

/* ---- telling */

static void next(struct buf *out, const char *word)
{
	buf_addf(out, "%s%s", out->len ? ", " : "", word);
}

static void tell_limits(struct buf *out, const struct agent_limits *a, const struct agent_limits *b)
{
	if (a->cost_microusd != b->cost_microusd) {
		next(out, "up to $");
		buf_addf(out, "%lld.%0*lld", (long long)(b->cost_microusd / 1000000),
			 b->cost_microusd % 10000 ? 4 : 2,
			 (long long)(b->cost_microusd % 1000000 /
				     (b->cost_microusd % 10000 ? 100 : 10000)));
	}
	if (a->time_ms != b->time_ms) {
		next(out, "at most ");
		if (b->time_ms % 60000)
			buf_addf(out, "%lld s", (long long)((b->time_ms + 999) / 1000));
		else
			buf_addf(out, "%lld minute%s", (long long)(b->time_ms / 60000),
				 b->time_ms == 60000 ? "" : "s");
	}
	if (a->tokens != b->tokens) {
		next(out, "at most ");
		buf_addf(out, "%lld tokens", (long long)b->tokens);
	}
	if (a->iterations != b->iterations) {
		next(out, "at most ");
		buf_addf(out, "%d iteration%s", b->iterations, b->iterations == 1 ? "" : "s");
	}
}

int change_text(struct buf *out, const struct run_spec *quoted, const struct run_spec *changed)
{
	if (quoted->role != changed->role) {
		next(out, "as ");
		buf_adds(out, changed->role->display);
	}
	if (strcmp(quoted->model->id, changed->model->id) != 0) {
		next(out, "with ");
		buf_adds(out, changed->model->id);
	}
	tell_limits(out, &quoted->agent.limits, &changed->agent.limits);
	if (quoted->thinking != changed->thinking)
		next(out, changed->thinking ? "with thinking" : "without thinking");
	for (unsigned i = 0; quoted->role == changed->role && i < quoted->agent.ntools; i++) {
		if (spec_has_tool(changed->tools, changed->agent.ntools, quoted->tools[i]))
			continue;
		next(out, "without ");
		buf_adds(out, quoted->tools[i]->name);
	}
	return buf_check(out);
}

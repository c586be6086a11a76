/* A change to a quote, carried out on the quoted spec: the spec becomes a request again, with the
 * change in it, and is built like any other.
 *
 * What can fail: an impossible change (AVA_EINVAL with the sentence of the request), memory. */
#include "ava/change.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agent/tool.h"
#include "ava/answer.h"
#include "ava/state.h"
#include "ava/verbs.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/words.h"
#include "codec/json.h"
#include "provider/model.h"
#include "subagent/spec.h"

bool change_none(const struct change *c)
{
	return c->cost_microusd == CHANGE_KEEP && c->time_ms == CHANGE_KEEP &&
	       c->tokens == CHANGE_KEEP && c->iterations == CHANGE_KEEP && !c->preset[0] &&
	       !c->role[0] && !c->model[0] && c->thinking == 0 && c->nwithout == 0;
}

static void change_take_number(int64_t *to, int64_t from)
{
	if (from != CHANGE_KEEP)
		*to = from;
}

static void change_take_word(char *to, size_t size, const char *from)
{
	if (*from)
		snprintf(to, size, "%s", from);
}

bool change_add(struct change *to, const struct change *from)
{
	change_take_number(&to->cost_microusd, from->cost_microusd);
	change_take_number(&to->time_ms, from->time_ms);
	change_take_number(&to->tokens, from->tokens);
	change_take_number(&to->iterations, from->iterations);
	change_take_word(to->preset, sizeof(to->preset), from->preset);
	change_take_word(to->role, sizeof(to->role), from->role);
	change_take_word(to->model, sizeof(to->model), from->model);
	if (from->thinking != 0)
		to->thinking = from->thinking;
	to->all_three |= from->all_three;
	if (to->nwithout + from->nwithout > CHANGE_WITHOUT_MAX)
		return false;
	memcpy(to->without + to->nwithout, from->without,
	       from->nwithout * sizeof(from->without[0]));
	to->nwithout += from->nwithout;
	return true;
}

/* ---- a change as the keys of a request */

struct change_args {
	struct change change;
	const char *const *without;
	size_t nwithout;
};

#define CHANGE_ARG(name, kind, field, size)                                                        \
	{                                                                                          \
		name, kind, offsetof(struct change_args, change.field), 0, size                    \
	}
static const struct arg change_args[] = {
	CHANGE_ARG("role", ARG_WORD, role, sizeof(((struct change *)0)->role)),
	CHANGE_ARG("model", ARG_WORD, model, sizeof(((struct change *)0)->model)),
	CHANGE_ARG("preset", ARG_WORD, preset, sizeof(((struct change *)0)->preset)),
	CHANGE_ARG("timeout", ARG_MS, time_ms, 0),
	CHANGE_ARG("max_cost_cents", ARG_CENTS, cost_microusd, 0),
	CHANGE_ARG("max_tokens", ARG_COUNT, tokens, 0),
	CHANGE_ARG("max_iterations", ARG_COUNT, iterations, 0),
	CHANGE_ARG("extended_thinking", ARG_SWITCH, thinking, 0),
	{"without", ARG_TEXTS, offsetof(struct change_args, without),
	 .at_n = offsetof(struct change_args, nwithout)},
	{NULL},
};

int change_read(const json_t *set, struct change *out, struct arena *mem, struct ava_error *err)
{
	struct change_args a = {.change = CHANGE_NONE};
	struct change *c = &a.change;
	int rv = json_is_object(set)
			 ? args_read(change_args, set, &a, mem, err)
			 : err_set(err, AVA_EINVAL, "set must be an object of what to change");

	if (rv == 0 && a.nwithout > CHANGE_WITHOUT_MAX)
		rv = err_set(err, AVA_EINVAL, "without must be a list of at most %d tools",
			     CHANGE_WITHOUT_MAX);
	for (size_t i = 0; rv == 0 && i < a.nwithout; i++) {
		const char *tool = a.without[i];

		if (!*tool || strlen(tool) >= sizeof(c->without[0]))
			rv = err_set(err, AVA_EINVAL, "without has what is no name of a tool");
		else
			memcpy(c->without[c->nwithout++], tool, strlen(tool) + 1);
	}
	*out = *c;
	return rv;
}

/* ---- a change, carried out */

/* "bash" means run_bash. */
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

bool change_finds(const struct run_spec *s, const char *word)
{
	for (unsigned i = 0; i < s->agent.ntools; i++)
		if (!(s->tools[i]->flags & TOOL_ENDS) && tool_meant(s->tools[i]->name, word))
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

/* Writes the tools of `base` that stay into `keep` (ROLE_MAX_TOOLS places). */
static int keep_tools(const struct run_spec *base, const struct change *c, const char **keep,
		      size_t *n, struct ava_error *err)
{
	bool out[ROLE_MAX_TOOLS] = {false};

	for (unsigned k = 0; k < c->nwithout; k++) {
		bool found = false;

		for (unsigned i = 0; i < base->agent.ntools; i++) {
			/* A run cannot end without such a tool. */
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

/* Puts the change into the request of `q`. */
static void change_request(struct op_spawn *s, const struct run_spec *q, const struct change *c,
			   const struct settings *set, const char *forced)
{
	bool price_known = q->agent.price.input >= 0 && q->agent.price.output >= 0;
	struct model given;

	s->session_id = q->session_id;
	s->request_id = q->request_id;
	s->user_id = q->user_id;
	if (c->role[0]) {
		s->role = c->role;
		s->tools = NULL;
		s->ntools = 0;
		s->extended_thinking = MAX(s->extended_thinking, 0);
		/* The model came from the role or the settings, so the request leaves it out. */
		if (model_resolve(forced ? forced : q->role->model, &given, NULL, NULL) == 0 &&
		    strcmp(given.id, q->model->id) == 0)
			s->model = NULL;
	}
	/* A model of unknown price takes no limit of money but that of the role or the settings. */
	if ((c->model[0] || !price_known) && !*q->preset &&
	    s->max_cost_microusd == spec_cost_otherwise(q->role, set))
		s->max_cost_microusd = AVA_DEFAULT;
	if (c->model[0])
		s->model = c->model;
	if (c->preset[0]) {
		s->preset = c->preset;
		s->max_cost_microusd = s->max_tokens = AVA_DEFAULT;
	}
	change_take_number(&s->timeout_ms, c->time_ms);
	change_take_number(&s->max_cost_microusd, c->cost_microusd);
	change_take_number(&s->max_tokens, c->tokens);
	change_take_number(&s->max_iterations, c->iterations);
	if (c->thinking != 0)
		s->extended_thinking = c->thinking;
}

/* Turns the quoted spec into a request, puts the change in and builds it like any other
 * (spec_build), so that a change cannot ask for more than a request could. AVA_EINVAL with a
 * sentence. `g`: its group, or NULL. */
int change_spec(struct run_spec **out, const struct run_spec *quoted, const struct change *c,
		const struct spec_group *g, struct core *core, struct ava_error *err)
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
		change_request(&s, quoted, c, &core->settings, core->model);
		s.group = g;
		rv = spec_build(&base, &s, &core->settings, core->model, core->redact, err);
	} else {
		err_set(err, rv, "out of memory");
	}
	if (rv == 0 && c->nwithout > 0) {
		rv = keep_tools(base, c, keep, &s.ntools, err);
		/* The strings may be `base`'s own: copy them. */
		for (size_t i = 0; rv == 0 && i < s.ntools; i++) {
			keep[i] = arena_copy(&mem, keep[i], strlen(keep[i]));
			rv = keep[i] ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
		}
		s.tools = keep;
		spec_free(base);
		base = NULL;
		if (rv == 0)
			rv = spec_build(&base, &s, &core->settings, core->model, core->redact, err);
	}
	*out = base;
	arena_fini(&mem);
	json_decref(config);
	/* An impossible change is a wrong answer, whatever the request's error was. */
	return rv == 0 || rv == AVA_ENOMEM ? rv : (err->code = AVA_EINVAL);
}

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

/* The same instructions, and no skill that was not quoted. */
static bool guide_within(const struct run_spec *quoted, const struct run_spec *changed)
{
	const json_t *all = json_object_get(quoted->guide, "skills"),
		     *some = json_object_get(changed->guide, "skills"), *s;
	const json_t *was = json_object_get(quoted->guide, "files"),
		     *is = json_object_get(changed->guide, "files");
	size_t i, k;

	json_array_foreach(some, i, s)
	{
		for (k = 0; k < json_array_size(all) && !json_equal(json_array_get(all, k), s);)
			k++;
		if (k == json_array_size(all))
			return false;
	}
	return was == is || json_equal(was, is);
}

/* Every difference lowers a limit or right, so a yes to the quote covers the changed spec. The
 * specs are compared, not the person's words. */
bool change_lowers(const struct run_spec *quoted, const struct run_spec *changed)
{
	const struct agent_limits *a = &quoted->agent.limits, *b = &changed->agent.limits;

	return role_same(quoted->role, changed->role) &&
	       strcmp(quoted->model->id, changed->model->id) == 0 &&
	       strcmp(quoted->task, changed->task) == 0 &&
	       strcmp(quoted->context, changed->context) == 0 &&
	       strcmp(quoted->cwd, changed->cwd) == 0 && guide_within(quoted, changed) &&
	       quoted->thinking == changed->thinking && b->cost_microusd <= a->cost_microusd &&
	       b->time_ms <= a->time_ms && b->tokens <= a->tokens &&
	       b->iterations <= a->iterations && (changed->rights & ~quoted->rights) == 0 &&
	       tools_within(quoted, changed) && grants_within(quoted, changed) &&
	       spec_asks_no_less(quoted, changed);
}

bool group_lowers(const struct spec_group *a, const struct spec_group *b)
{
	return (a->cost_microusd < 0 ||
		(b->cost_microusd >= 0 && b->cost_microusd <= a->cost_microusd)) &&
	       (a->time_ms <= 0 || (b->time_ms > 0 && b->time_ms <= a->time_ms));
}

static void change_tell(struct buf *out, const char *before, const char *what, const char *behind)
{
	buf_addf(out, "%s%s%s%s", out->len ? ", " : "", before, what, behind);
}

static void tell_limits(struct buf *out, const struct agent_limits *a, const struct agent_limits *b)
{
	if (a->cost_microusd != b->cost_microusd)
		change_tell(out, WORDS_UP_TO, format_money_limit(b->cost_microusd).text, "");
	if (a->time_ms != b->time_ms)
		change_tell(out, WORDS_AT_MOST, format_time_limit(b->time_ms).text, "");
	if (a->tokens != b->tokens)
		change_tell(out, WORDS_AT_MOST, words_amount(WORDS_LIMIT_TOKENS, b->tokens).text,
			    "");
	if (a->iterations != b->iterations)
		change_tell(out, WORDS_AT_MOST,
			    words_amount(WORDS_LIMIT_REPLIES, b->iterations).text, "");
}

/* The first file or skill that is another one than quoted: "with AGENTS.md as it is now". */
static void tell_guide(struct buf *out, const struct run_spec *quoted,
		       const struct run_spec *changed)
{
	static const char *const keys[] = {"files", "skills"};

	if (spec_guide_same(quoted, changed))
		return;
	/* Without read_skill, which is told as a tool, there are none. */
	for (size_t k = 0; k < ARRAY_LEN(keys) - (changed->nskills == 0); k++) {
		const json_t *was = json_object_get(quoted->guide, keys[k]),
			     *is = json_object_get(changed->guide, keys[k]);
		size_t n = MAX(json_array_size(was), json_array_size(is));

		for (size_t i = 0; i < n; i++) {
			const json_t *a = json_array_get(was, i), *b = json_array_get(is, i);

			if (json_equal(a, b))
				continue;
			change_tell(out, b ? WORDS_WITH : WORDS_WITHOUT,
				    json_str(b ? b : a, "name"), b ? WORDS_AS_IT_IS : "");
			break;
		}
	}
}

static void tell_spec(struct buf *out, const struct run_spec *quoted,
		      const struct run_spec *changed)
{
	bool same = role_same(quoted->role, changed->role);

	if (!same)
		change_tell(out, WORDS_AS, changed->role->display, "");
	if (strcmp(quoted->model->id, changed->model->id) != 0)
		change_tell(out, WORDS_WITH, changed->model->id, "");
	tell_limits(out, &quoted->agent.limits, &changed->agent.limits);
	if (quoted->thinking != changed->thinking)
		change_tell(out, changed->thinking ? WORDS_WITH : WORDS_WITHOUT, WORDS_THINKING,
			    "");
	tell_guide(out, quoted, changed);
	for (unsigned i = 0; same && i < quoted->agent.ntools; i++)
		if (!spec_has_tool(changed->tools, changed->agent.ntools, quoted->tools[i]))
			change_tell(out, WORDS_WITHOUT, quoted->tools[i]->name, "");
}

/* "up to $0.20, at most 5 min, without run_bash"; a change that holds for all runs of a group is
 * told of one of them. */
char *change_words(struct run_spec *const *quoted, struct run_spec *const *changed, unsigned n)
{
	const struct spec_group *a = &quoted[0]->group, *b = &changed[0]->group;
	struct buf out;
	size_t limits;

	buf_init(&out, 65536);
	if (n > 1 && a->cost_microusd != b->cost_microusd)
		change_tell(&out, WORDS_UP_TO, format_money_limit(b->cost_microusd).text,
			    WORDS_IN_ALL);
	if (n > 1 && a->time_ms != b->time_ms)
		change_tell(&out, WORDS_AT_MOST, format_time_limit(b->time_ms).text, WORDS_IN_ALL);
	limits = out.len;
	for (unsigned i = 0; i < n && out.len == limits; i++)
		tell_spec(&out, quoted[i], changed[i]);
	return buf_take(&out, NULL);
}

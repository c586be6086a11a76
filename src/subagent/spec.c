/* Resolving a spawn: role, model, tools, rights and limits, each either given
 * or taken from role, preset and settings in that order. Everything wrong is
 * found here, before a person is asked and before anything is written. */
#include "subagent/spec.h"

#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "base/error.h"
#include "base/settings.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/schema.h"
#include "provider/model_share.h"
#include "subagent/resume.h"
#include "subagent/spec_ask.h"
#include "subagent/spec_model.h"

static const struct preset {
	const char *name;
	int64_t cost_cents, tokens;
} presets[] = {
	{"quick", 10, 10000},
	{"standard", 50, 50000},
	{"deep", 200, 200000},
};

static const char *const known_grants[] = {"rw", "fetch_any"};

void spec_free(struct run_spec *s)
{
	if (!s)
		return;
	json_decref(s->output_schema);
	model_unshare(s->shared);
	resumed_free(s->resumed);
	arena_fini(&s->mem);
	free(s->config);
	free(s);
}

static const char *keep(struct run_spec *s, const char *text)
{
	return text && *text ? arena_copy(&s->mem, text, strlen(text)) : "";
}

static int room_for_tools(struct run_spec *s, size_t n, struct ava_error *err)
{
	s->tools = arena_get(&s->mem, (n + 1) * sizeof(*s->tools));
	s->agent.tools = s->tools;
	return s->tools ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
}

/* As `keep`, without the secrets in it: it goes to models and to the disk. */
static const char *keep_clean(struct run_spec *s, const struct redact *redact, const char *text)
{
	const char *copy = NULL;
	struct buf clean;

	if (!redact || !text)
		return keep(s, text);
	buf_init(&clean, 4u << 20);
	if (redact_text(redact, &clean, text, strlen(text)) >= 0)
		copy = arena_copy(&s->mem, clean.data ? clean.data : "", clean.len);
	buf_fini(&clean);
	return copy;
}

/* ---- limits */

static const struct preset *find_preset(const char *name, struct ava_error *err)
{
	for (size_t i = 0; i < ARRAY_LEN(presets); i++)
		if (strcmp(presets[i].name, name) == 0)
			return &presets[i];
	err_set(err, AVA_EINVAL, "unknown preset %s: there are quick, standard and deep", name);
	return NULL;
}

/* `given` when it was, else `fallback`; must be at least `least`. */
static int take_limit(int64_t given, int64_t fallback, int64_t least, const char *what,
		      int64_t *out, struct ava_error *err)
{
	*out = given == AVA_DEFAULT ? fallback : given;
	if (*out < least)
		return err_set(err, AVA_EINVAL, "%s must be %s", what,
			       least == 0 ? "0 (free models only) or more" : "above 0");
	return 0;
}

static int take_limits(struct run_spec *r, const struct op_spawn *s, const struct settings *set,
		       struct ava_error *err)
{
	const struct preset *p = NULL;
	struct agent_limits *l = &r->agent.limits;
	int64_t cost = r->role->cost_cents, tokens = set->limits_tokens, iterations;
	int rv;

	r->expected_tokens = MIN(tokens, 50000);
	if (s->preset && *s->preset) {
		p = find_preset(s->preset, err);
		if (!p)
			return AVA_EINVAL;
		cost = p->cost_cents;
		/* Billed over all calls: an 8-step run bills its context 8 times. */
		tokens = p->tokens * 10;
		r->expected_tokens = p->tokens;
	}
	rv = take_limit(s->timeout_ms, r->role->timeout_s * 1000, 1, "the time limit", &l->time_ms,
			err);
	if (rv == 0)
		rv = take_limit(s->max_cost_microusd, cost * 10000, 0, "the cost limit",
				&l->cost_microusd, err);
	if (rv == 0)
		rv = take_limit(s->max_tokens, tokens, 1, "the token limit", &l->tokens, err);
	if (rv == 0)
		rv = take_limit(s->max_iterations, set->limits_iterations, 1, "the iteration limit",
				&iterations, err);
	if (rv != 0)
		return rv;
	if (iterations > 100000 || l->time_ms > 7 * 86400000LL)
		return err_set(err, AVA_EINVAL,
			       "limits are at most 100000 iterations and 7 days (604800 seconds)");
	l->iterations = (int32_t)iterations;
	r->expected_tokens = MIN(r->expected_tokens, l->tokens);
	return 0;
}

static bool price_known(const struct agent_price *p)
{
	return p->input >= 0 && p->output >= 0;
}

static int check_cost(const struct run_spec *r, bool explicit_cap, struct ava_error *err)
{
	const struct agent_price *p = &r->agent.price;

	if (!price_known(p) && explicit_cap)
		return err_set(err, AVA_EINVAL,
			       "the price of %s is unknown, so a cost limit cannot be kept: leave "
			       "the cost "
			       "limit out (tokens hold it) or use another model",
			       r->model->id);
	if (r->agent.limits.cost_microusd == 0 && (p->input != 0 || p->output != 0))
		return err_set(err, AVA_EINVAL,
			       "a cost limit of 0 allows free models only, and %s is not free",
			       r->model->id);
	return 0;
}

/* ---- tools, grants and rights */

static int pick_tools(struct run_spec *r, const struct op_spawn *s, struct ava_error *err)
{
	const struct tool *have[ROLE_MAX_TOOLS];
	unsigned n = role_tools(r->role, r->cwd[0] != 0, have), kept = 0;

	if (room_for_tools(r, n, err) != 0)
		return AVA_ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		bool wanted = !s->tools || (have[i]->flags & TOOL_ENDS);

		for (size_t k = 0; !wanted && k < s->ntools; k++)
			wanted = strcmp(s->tools[k], have[i]->name) == 0;
		if (wanted)
			r->tools[kept++] = have[i];
	}
	/* Rights are requested ∩ role ∩ policy: a tool that was asked for and
	 * is not there must not vanish without a word. */
	for (size_t k = 0; s->tools && k < s->ntools; k++) {
		bool found = false;

		for (unsigned i = 0; i < n; i++)
			found = found || strcmp(s->tools[k], have[i]->name) == 0;
		if (!found)
			return err_set(err, AVA_EINVAL, "role %s has no tool %s here",
				       r->role->name, s->tools[k]);
	}
	r->agent.ntools = kept;
	return 0;
}

static int take_grants(struct run_spec *r, const struct op_spawn *s, struct ava_error *err)
{
	if (s->ngrants > 16)
		return err_set(err, AVA_EINVAL, "too many grants, 16 at the most");
	r->grants = arena_get(&r->mem, (s->ngrants + 1) * sizeof(*r->grants));
	if (!r->grants)
		return err_set(err, AVA_ENOMEM, "out of memory");
	for (size_t i = 0; i < s->ngrants; i++) {
		bool known = false;

		for (size_t k = 0; k < ARRAY_LEN(known_grants); k++)
			known = known || strcmp(known_grants[k], s->grants[i]) == 0;
		if (!known)
			return err_set(err, AVA_EINVAL,
				       "unknown grant %s: there are rw and fetch_any",
				       s->grants[i]);
		r->grants[r->ngrants++] = keep(r, s->grants[i]);
	}
	return 0;
}

static void set_rights(struct run_spec *r)
{
	for (unsigned i = 0; i < r->agent.ntools; i++) {
		const char *name = r->tools[i]->name;

		if (r->tools[i]->flags & TOOL_FILES)
			r->rights_private = true;
		if (strncmp(name, "web_", 4) == 0 || strncmp(name, "http_", 5) == 0 ||
		    strcmp(name, "read_webpages") == 0)
			r->rights_untrusted = r->rights_out = true;
	}
}

/* ---- the schema of the output */

static int take_schema(struct run_spec *r, const json_t *schema, struct ava_error *err)
{
	struct buf text;
	int rv;

	if (!schema)
		return 0;
	rv = schema_check(schema, err);
	if (rv != 0)
		return rv;
	buf_init(&text, SCHEMA_BYTES_MAX);
	if (json_dump(&text, schema) == 0)
		r->agent.output_schema = arena_copy(&r->mem, text.data, text.len);
	buf_fini(&text);
	r->output_schema = json_deep_copy(schema);
	return r->agent.output_schema && r->output_schema
		       ? 0
		       : err_set(err, AVA_ENOMEM, "out of memory");
}

/* ---- canonical JSON */

static void write_price(struct jw *w, const struct agent_price *p)
{
	const struct {
		const char *key;
		int64_t v;
	} parts[] = {
		{"input", p->input},
		{"output", p->output},
		{"cacheRead", p->cache_read},
		{"cacheWrite", p->cache_write},
	};

	jw_object(w, "price");
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (parts[i].v < 0)
			jw_null(w, parts[i].key);
		else
			jw_int(w, parts[i].key, parts[i].v);
	}
	jw_end(w);
}

/* The keys of the config, in canonical order, into an open object. */
static void write_config(struct jw *w, const struct run_spec *r)
{
	const struct agent_limits *l = &r->agent.limits;

	jw_str(w, "role", r->role->name);
	jw_str(w, "task", r->task);
	jw_str(w, "context", r->context);
	jw_str(w, "model", r->model->id);
	jw_str(w, "cwd", r->cwd);
	jw_array(w, "tools");
	for (unsigned i = 0; i < r->agent.ntools; i++)
		jw_str(w, NULL, r->tools[i]->name);
	jw_end(w);
	jw_array(w, "grants");
	for (size_t i = 0; i < r->ngrants; i++)
		jw_str(w, NULL, r->grants[i]);
	jw_end(w);
	spec_ask_write(w, r);
	jw_object(w, "limits");
	jw_fixed(w, "seconds", l->time_ms, 3);
	jw_fixed(w, "costCents", l->cost_microusd, 4);
	jw_int(w, "tokens", l->tokens);
	jw_int(w, "iterations", l->iterations);
	jw_end(w);
	write_price(w, &r->agent.price);
	jw_int(w, "maxOutput", r->agent.max_output);
	jw_int(w, "expectedTokens", r->expected_tokens);
	jw_bool(w, "thinking", r->thinking);
	jw_object(w, "rights");
	jw_bool(w, "private", r->rights_private);
	jw_bool(w, "untrusted", r->rights_untrusted);
	jw_bool(w, "out", r->rights_out);
	jw_end(w);
	if (r->agent.output_schema)
		jw_raw(w, "outputSchema", r->agent.output_schema, strlen(r->agent.output_schema));
	jw_str(w, "preset", r->preset);
	jw_str(w, "origin", r->origin);
	spec_group_write(w, &r->group);
	if (r->agent.ask_limit)
		jw_str(w, "onLimit", "ask");
	if (r->resumed_from[0])
		jw_str(w, "resumedFrom", r->resumed_from);
	if (r->resumed_call > 0)
		jw_int(w, "resumedCall", r->resumed_call);
}

static int seal_config(struct run_spec *r, struct ava_error *err)
{
	struct buf b;
	struct jw w;

	buf_init(&b, 8u << 20);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	write_config(&w, r);
	jw_end(&w);
	r->config = buf_take(&b, &r->config_len);
	buf_fini(&b);
	if (!r->config)
		return err_set(err, AVA_ENOMEM, "out of memory");
	hash_sha256_hex(r->config, r->config_len, r->hash);
	return 0;
}

/* ---- building */

static struct run_spec *spec_new(void)
{
	struct run_spec *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	arena_init(&r->mem, 16u << 20);
	r->mem.chunk = 256; /* it is kept as long as the run waits */
	r->operating = prompt_operating_text();
	r->group.id = "";
	r->resumed_from = "";
	return r;
}

static int take_role(struct run_spec *r, const struct op_spawn *s, struct ava_error *err)
{
	bool files = s->cwd && *s->cwd;

	if (s->role && *s->role) {
		r->role = role_find(s->role);
		if (!r->role)
			return err_set(err, AVA_EINVAL,
				       "unknown role %.60s: there are web_crawler, code_reviewer, "
				       "data_extractor and researcher",
				       s->role);
		return role_usable(r->role, files, err);
	}
	r->role = role_find(classify_role(s->task, strlen(s->task)));
	if (!r->role || role_usable(r->role, files, NULL) != 0)
		r->role = role_find("researcher");
	return 0;
}

static int take_strings(struct run_spec *r, const struct op_spawn *s, const struct redact *redact,
			struct ava_error *err)
{
	r->task = keep_clean(r, redact, s->task);
	r->context = keep_clean(r, redact, s->context);
	r->cwd = keep(r, s->cwd);
	r->session_id = keep(r, s->session_id);
	r->request_id = keep(r, s->request_id);
	r->user_id = keep(r, s->user_id);
	r->origin = keep(r, s->origin);
	r->preset = keep(r, s->preset);
	r->resumed_from = keep(r, s->resume);
	r->resumed_call = s->resume_call;
	if (!r->task || !r->context || !r->cwd || !r->session_id || !r->request_id || !r->user_id ||
	    !r->origin || !r->preset || !r->resumed_from)
		return err_set(err, AVA_ENOMEM, "out of memory");
	return 0;
}

static void facts_from_model(struct run_spec *r)
{
	r->agent.price = r->model->price;
	r->agent.max_output = r->model->max_output;
	r->agent.can_force = r->model->dialect->can_force;
	r->agent.window = r->model->dialect->answer ? 0 : r->model->context;
}

int spec_build(struct run_spec **out, const struct op_spawn *s, const struct settings *set,
	       const char *model, const struct redact *redact, struct ava_error *err)
{
	struct run_spec *r = NULL;
	struct model m;
	int rv = spec_check(s, redact, err);

	if (rv != 0)
		return rv;
	r = spec_new();
	if (!r)
		return err_set(err, AVA_ENOMEM, "out of memory");
	rv = take_role(r, s, err);
	if (rv == 0)
		rv = take_strings(r, s, redact, err);
	if (rv != 0)
		goto fail;
	if (!model)
		model = s->model && *s->model ? s->model : r->role->model;
	else if (s->model && *s->model)
		model = s->model;
	rv = model_resolve(model, &m, NULL, err);
	if (rv == 0)
		rv = spec_set_model(r, &m, err);
	if (rv == 0)
		rv = take_limits(r, s, set, err);
	if (rv == 0)
		rv = take_schema(r, s->output_schema, err);
	if (rv == 0)
		rv = take_grants(r, s, err);
	if (rv == 0)
		rv = pick_tools(r, s, err);
	if (rv == 0)
		rv = spec_ask_take(r, s, err);
	if (rv != 0)
		goto fail;
	r->thinking = !s->no_thinking && (s->extended_thinking || r->role->thinking);
	facts_from_model(r);
	rv = check_cost(r, s->max_cost_microusd != AVA_DEFAULT, err);
	if (rv == 0)
		rv = spec_group_take(r, s->group, err);
	r->agent.ask_limit = s->on_limit && strcmp(s->on_limit, "ask") == 0;
	if (rv != 0)
		goto fail;
	set_rights(r);
	rv = seal_config(r, err);
	if (rv != 0)
		goto fail;
	*out = r;
	return 0;

fail:
	spec_free(r);
	return rv;
}

/* At three bytes a token, which is more than any service counts. */
static bool fits_window(const char *text, const struct model *m)
{
	return m->context <= 0 || (int64_t)strlen(text) / 3 * 20 <= m->context;
}

int spec_build_talk(struct run_spec **out, const struct op_talk *t, struct ava_error *err)
{
	struct op_spawn s = {
		.task = "",
		.cwd = t->cwd,
		.session_id = t->session_id,
		.user_id = t->user_id,
		.origin = "ava",
	};
	struct run_spec *r = spec_new();
	struct model m;
	int rv;

	if (!r)
		return err_set(err, AVA_ENOMEM, "out of memory");
	r->role = t->role;
	rv = take_strings(r, &s, NULL, err);
	if (rv == 0)
		rv = t->restored
			     ? model_restore(t->model, &m, err)
			     : model_resolve(t->model ? t->model : t->role->model, &m, NULL, err);
	if (rv == 0)
		rv = spec_set_model(r, &m, err);
	if (rv != 0)
		goto fail;
	r->system = keep(r, t->system);
	r->operating = fits_window(t->operating, r->model) ? t->operating : t->operating_brief;
	rv = room_for_tools(r, t->ntools, err);
	if (rv != 0)
		goto fail;
	memcpy(r->tools, t->tools, t->ntools * sizeof(*t->tools));
	r->agent.ntools = t->ntools;
	facts_from_model(r);
	r->agent.can_force = false;
	set_rights(r);
	rv = r->system ? seal_config(r, err) : err_set(err, AVA_ENOMEM, "out of memory");
	if (rv != 0)
		goto fail;
	*out = r;
	return 0;

fail:
	spec_free(r);
	return rv;
}

static int tools_from_json(struct run_spec *r, const json_t *config, struct ava_error *err)
{
	const json_t *list = json_object_get(config, "tools"), *v;
	size_t i;

	if (room_for_tools(r, MIN(json_array_size(list), ROLE_MAX_TOOLS), err) != 0)
		return AVA_ENOMEM;
	json_array_foreach(list, i, v)
	{
		const struct tool *t = json_is_string(v) ? tool_find(json_string_value(v)) : NULL;

		if (!t || r->agent.ntools == ROLE_MAX_TOOLS)
			return err_set(err, AVA_EUNSUPPORTED, "tool %s is not in this version",
				       json_is_string(v) ? json_string_value(v) : "?");
		r->tools[r->agent.ntools++] = t;
	}
	return 0;
}

static int grants_from_json(struct run_spec *r, const json_t *config, struct ava_error *err)
{
	const json_t *list = json_object_get(config, "grants"), *v;
	size_t i;

	r->grants = arena_get(&r->mem, (json_array_size(list) + 1) * sizeof(*r->grants));
	if (!r->grants)
		return err_set(err, AVA_ENOMEM, "out of memory");
	json_array_foreach(list, i, v) if (json_is_string(v)) r->grants[r->ngrants++] =
		keep(r, json_string_value(v));
	return 0;
}

static void limits_from_json(struct run_spec *r, const json_t *config)
{
	const json_t *l = json_object_get(config, "limits"), *o = json_object_get(config, "rights");

	r->agent.limits = (struct agent_limits){
		.time_ms = json_get_fixed(l, "seconds", 3, 600000),
		.cost_microusd = json_get_fixed(l, "costCents", 4, 500000),
		.tokens = json_get_int(l, "tokens", 100000),
		.iterations = (int32_t)json_get_int(l, "iterations", 20),
	};
	r->agent.ask_limit = json_get_str(config, "onLimit") != NULL;
	r->expected_tokens = json_get_int(config, "expectedTokens", 50000);
	r->thinking = json_get_bool(config, "thinking", false);
	r->rights_private = json_get_bool(o, "private", false);
	r->rights_untrusted = json_get_bool(o, "untrusted", false);
	r->rights_out = json_get_bool(o, "out", false);
}

/* What was quoted stays true, whatever the tables say by now. */
static int facts_from_json(struct run_spec *r, const json_t *o, struct ava_error *err)
{
	const json_t *price = json_object_get(o, "price");
	const char *drop = json_get_str(o, "drop");
	struct model m = *r->model;

	if (price)
		r->agent.price = (struct agent_price){
			.input = json_get_int(price, "input", -1),
			.output = json_get_int(price, "output", -1),
			.cache_read = json_get_int(price, "cacheRead", -1),
			.cache_write = json_get_int(price, "cacheWrite", -1),
		};
	r->agent.max_output = json_get_int(o, "maxOutput", r->agent.max_output);
	r->agent.window = json_get_int(o, "window", r->agent.window);
	if (!drop)
		return 0;
	snprintf(m.drop, sizeof(m.drop), "%s", drop);
	return spec_set_model(r, &m, err);
}

int spec_amend(struct run_spec *r, const json_t *o, struct ava_error *err)
{
	const char *id = json_get_str(o, "model");
	const json_t *limits = json_object_get(o, "limits");
	const struct agent_limits *l = &r->agent.limits;
	struct model m;
	int rv = id ? model_restore(id, &m, err) : 0;

	if (rv == 0 && id && m.dialect != r->model->dialect)
		rv = err_set(err, AVA_ECORRUPT, "%.100s is no model of the dialect %s", id,
			     r->model->dialect->name);
	if (rv == 0 && id)
		rv = spec_set_model(r, &m, err);
	if (rv != 0)
		return rv;
	if (id)
		facts_from_model(r);
	rv = facts_from_json(r, o, err);
	if (limits) /* raised by a person (over_limit.c) */
		r->agent.limits = (struct agent_limits){
			.time_ms = json_get_fixed(limits, "seconds", 3, l->time_ms),
			.cost_microusd = json_get_fixed(limits, "costCents", 4, l->cost_microusd),
			.tokens = json_get_int(limits, "tokens", l->tokens),
			.iterations = (int32_t)json_get_int(limits, "iterations", l->iterations),
		};
	return rv;
}

int spec_from_json(struct run_spec **out, const json_t *config, const char *session_id,
		   const char *request_id, const char *user_id, struct ava_error *err)
{
	const char *role = json_get_str(config, "role"), *model = json_get_str(config, "model");
	struct op_spawn s = {
		.task = json_get_str(config, "task"),
		.context = json_get_str(config, "context"),
		.cwd = json_get_str(config, "cwd"),
		.preset = json_get_str(config, "preset"),
		.origin = json_get_str(config, "origin"),
		.resume = json_get_str(config, "resumedFrom"),
		.resume_call = json_get_int(config, "resumedCall", 0),
		.session_id = session_id,
		.request_id = request_id,
		.user_id = user_id,
	};
	struct run_spec *r = spec_new();
	struct model m;
	int rv;

	if (!r)
		return err_set(err, AVA_ENOMEM, "out of memory");
	r->role = role ? role_find(role) : NULL;
	if (!r->role || !s.task || !model) {
		rv = err_set(err, AVA_ECORRUPT,
			     "the stored configuration lacks its role, task or model");
		goto fail;
	}
	rv = take_strings(r, &s, NULL, err); /* cleaned when it was built */
	if (rv == 0)
		rv = model_restore(model, &m, err);
	if (rv == 0)
		rv = spec_set_model(r, &m, err);
	if (rv == 0)
		rv = tools_from_json(r, config, err);
	if (rv == 0)
		rv = grants_from_json(r, config, err);
	if (rv == 0)
		rv = spec_ask_from_json(r, config, err);
	if (rv == 0)
		rv = take_schema(r, json_object_get(config, "outputSchema"), err);
	if (rv != 0)
		goto fail;
	limits_from_json(r, config);
	facts_from_model(r);
	rv = facts_from_json(r, config, err);
	if (rv == 0)
		rv = spec_group_from_json(r, config, err);
	if (rv == 0)
		rv = seal_config(r, err);
	if (rv != 0)
		goto fail;
	*out = r;
	return 0;

fail:
	spec_free(r);
	return rv;
}

/* ---- messages.jsonl */

static int render_system(const struct run_spec *r, struct buf *out)
{
	struct prompt p = {
		.role = r->role->display,
		.task = r->task,
		.context = r->context,
		.tools = r->tools,
		.ntools = r->agent.ntools,
		.limits = &r->agent.limits,
		.schema = r->agent.output_schema,
	};

	if (!r->system)
		return prompt_system(out, &p);
	buf_adds(out, r->system);
	return buf_adds(out, r->operating);
}

static int render_head(const struct run_spec *r, struct buf *head,
		       char prompt_hash[HASH_HEX_LEN + 1])
{
	struct dialect_spec d = {
		.model = r->model->id,
		.tools = r->tools,
		.ntools = r->agent.ntools,
		.model_facts = r->model,
		.thinking = r->thinking,
	};
	struct buf system;
	int rv;

	buf_init(&system, 4u << 20);
	rv = render_system(r, &system);
	if (rv == 0) {
		hash_sha256_hex(r->operating, strlen(r->operating), prompt_hash);
		d.system = system.data;
		rv = r->model->dialect->encode_head(head, &d);
	}
	buf_fini(&system);
	return rv;
}

int spec_line(const struct run_spec *r, struct buf *out, int64_t *request_bytes,
	      struct hash_sha256 *hash)
{
	char prompt_hash[HASH_HEX_LEN + 1];
	struct buf head;
	struct jw w;
	int rv;

	buf_init(&head, 8u << 20);
	rv = render_head(r, &head, prompt_hash);
	if (rv != 0)
		goto out;
	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_object(&w, "spec");
	jw_int(&w, "machine", MACHINE_VERSION);
	jw_str(&w, "dialect", r->model->dialect->name);
	write_config(&w, r);
	jw_bool(&w, "canForce", r->agent.can_force);
	jw_str(&w, "configHash", r->hash);
	jw_str(&w, "operatingTextHash", prompt_hash);
	jw_strn(&w, "head", head.data, head.len);
	jw_end(&w);
	jw_end(&w);
	rv = buf_addc(out, '\n');
	*request_bytes = (int64_t)head.len;
	hash_sha256_init(hash);
	hash_sha256_add(hash, head.data, head.len);
out:
	buf_fini(&head);
	return rv;
}

int spec_messages(const struct run_spec *r, struct buf *out, int64_t *request_bytes,
		  struct hash_sha256 *hash)
{
	struct buf line;
	int rv = spec_line(r, out, request_bytes, hash);

	buf_init(&line, 4u << 20);
	if (rv == 0)
		rv = r->model->dialect->encode_user(&line, r->task, strlen(r->task));
	if (rv == 0) {
		buf_add(out, line.data, line.len);
		rv = buf_addc(out, '\n');
		*request_bytes += (int64_t)line.len;
		hash_sha256_add(hash, line.data, line.len);
	}
	buf_fini(&line);
	return rv;
}

int spec_switch(struct run_spec *r, const struct model *m, struct buf *line)
{
	const struct model *before = r->model;
	char prompt_hash[HASH_HEX_LEN + 1];
	struct buf head;
	struct jw w;
	int rv = spec_set_model(r, m, NULL);

	buf_init(&head, 8u << 20);
	if (rv == 0)
		rv = render_head(r, &head, prompt_hash);
	if (rv == 0) {
		jw_init(&w, line);
		jw_object(&w, NULL);
		jw_object(&w, "spec");
		jw_str(&w, "model", m->id);
		write_price(&w, &m->price);
		jw_int(&w, "maxOutput", m->max_output);
		jw_strn(&w, "head", head.data, head.len);
		jw_end(&w);
		jw_end(&w);
		rv = buf_addc(line, '\n');
	}
	buf_fini(&head);
	if (rv != 0) {
		r->model = before;
		return rv;
	}
	facts_from_model(r);
	return 0;
}

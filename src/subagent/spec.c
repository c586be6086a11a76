/* A spec as data: its canonical JSON and the way back. spec_build.c makes one out of a
 * request, spec_lines.c writes what stands of it in messages.jsonl.
 *
 * A run that waits for long holds little memory: runs of one model share one copy of
 * it, and a run that has begun keeps only the hash of its config. Failures: memory,
 * and stored data that names a missing role, model or tool. */
#include "subagent/spec.h"

#include <stdlib.h>
#include <string.h>

#include "agent/prompt.h"
#include "agent/tool.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/schema.h"
#include "provider/model.h"
#include "subagent/rights.h"
#include "subagent/rolebook.h"
#include "tool/mcp.h"

/* ---- life */

struct run_spec *spec_new(void)
{
	struct run_spec *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	arena_init(&r->mem, 16u << 20);
	r->mem.chunk = 256; /* small, as a run may wait long */
	r->operatings[0] = r->operating = prompt_operating_text(false);
	r->operatings[1] = prompt_operating_text(true);
	r->group.id = "";
	r->resumed_from = "";
	r->tags = "";
	r->order = (struct spec_order){"", ""};
	return r;
}

void resumed_free(struct resumed *r)
{
	if (!r)
		return;
	buf_fini(&r->lines);
	free(r);
}

void spec_free(struct run_spec *s)
{
	if (!s)
		return;
	json_decref(s->output_schema);
	json_decref(s->guide);
	role_release(s->role);
	model_unshare(s->shared);
	resumed_free(s->resumed);
	arena_fini(&s->mem);
	free(s->config);
	free(s);
}

void spec_forget_config(struct run_spec *s)
{
	free(s->config);
	s->config = NULL;
	s->config_len = 0;
	spec_guide_forget(s);
}

int spec_set_model(struct run_spec *s, const struct model *m, struct ava_error *err)
{
	struct model *own;

	if (!s->shared) {
		s->model = s->shared = model_share(m);
		return s->model ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
	}
	own = arena_get(&s->mem, sizeof(*own));
	if (!own)
		return err_set(err, AVA_ENOMEM, "out of memory");
	*own = *m;
	s->model = own;
	return 0;
}

void spec_take_facts(struct run_spec *r)
{
	r->agent.price = r->model->price;
	r->agent.max_output = r->model->max_output;
	r->agent.can_force = r->model->dialect->can_force;
	r->agent.window = r->model->dialect->answer ? 0 : r->model->context;
}

const char *spec_keep(struct run_spec *s, const char *text)
{
	return text && *text ? arena_copy(&s->mem, text, strlen(text)) : "";
}

int spec_room_for_tools(struct run_spec *s, size_t n, struct ava_error *err)
{
	s->tools = arena_get(&s->mem, (n + 1) * sizeof(*s->tools));
	s->agent.tools = s->tools;
	return s->tools ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
}

/* As spec_keep, without secrets: the text goes to models and to the disk. */
static const char *keep_clean(struct run_spec *s, const struct redact *redact, const char *text)
{
	const char *copy = NULL;
	struct buf clean;

	if (!text)
		return "";
	buf_init(&clean, 4u << 20);
	if (redact_text(redact, &clean, text, strlen(text)) >= 0)
		copy = arena_copy(&s->mem, clean.data ? clean.data : "", clean.len);
	buf_fini(&clean);
	return copy;
}

int spec_take_strings(struct run_spec *r, const struct op_spawn *s, const struct redact *redact,
		      struct ava_error *err)
{
	bool kept = true;

	r->task = keep_clean(r, redact, s->task);
	r->context = keep_clean(r, redact, s->context);
	r->cwd = spec_keep(r, r->role && r->role->no_folder ? NULL : s->cwd);
	r->session_id = spec_keep(r, s->session_id);
	r->request_id = spec_keep(r, s->request_id);
	r->user_id = spec_keep(r, s->user_id);
	r->origin = spec_keep(r, s->origin);
	r->preset = spec_keep(r, s->preset);
	r->resumed_from = spec_keep(r, s->resume);
	r->resumed_call = s->resume_call;
	r->agent.resumed = s->resume && *s->resume;
#define X(kind, field, ...)                                                                        \
	r->field = keep_clean(r, redact, s->field);                                                \
	kept = kept && r->field;
	SPAWN_NOTES(X)
#undef X
	r->agent.task = r->task;
	if (!kept || !r->task || !r->context || !r->cwd || !r->session_id || !r->request_id ||
	    !r->user_id || !r->origin || !r->preset || !r->resumed_from)
		return err_set(err, AVA_ENOMEM, "out of memory");
	if (s->order && spec_keep_order(r, s->order) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	return spec_take_tags(r, s, err);
}

int spec_keep_order(struct run_spec *s, const json_t *plan)
{
	struct spec_order kept = {spec_keep(s, json_get_str(plan, "id")), NULL};
	struct buf b;

	buf_init(&b, 65536);
	if (json_dump(&b, plan) == 0)
		kept.plan = arena_copy(&s->mem, b.data, b.len);
	buf_fini(&b);
	if (!kept.id || !kept.plan)
		return AVA_ENOMEM;
	s->order = kept;
	return 0;
}

/* ---- the schema of the output */

int spec_take_schema(struct run_spec *r, const json_t *schema, struct ava_error *err)
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

/* ---- tools of MCP servers: a run has the definitions that it was confirmed with */

const struct tool *spec_own_tool(struct run_spec *r, const struct tool *t)
{
	struct tool *own = arena_get(&r->mem, sizeof(*own));

	if (!own)
		return NULL;
	*own = *t;
	own->name = spec_keep(r, t->name);
	own->description = spec_keep(r, t->description);
	own->schema = spec_keep(r, t->schema);
	return own->name && own->description && own->schema ? own : NULL;
}

int spec_defined_tool(struct run_spec *r, const json_t *definitions, size_t i,
		      const struct tool **t)
{
	const json_t *o = json_array_get(definitions, i);
	struct tool like = tool_mcp;
	const struct tool *now;

	*t = NULL;
	if (!o)
		return 0;
	like.name = json_str(o, "name");
	like.description = json_str(o, "description");
	like.schema = json_str(o, "schema");
	like.flags |= rights_read(json_object_get(o, "rights"));
	now = tool_find(like.name); /* the tool's rights may have grown since */
	like.flags |= now ? now->flags & RIGHTS_ALL : 0;
	if (strncmp(like.name, TOOL_MCP_PREFIX, strlen(TOOL_MCP_PREFIX)) != 0 || !*like.schema)
		return AVA_ECORRUPT;
	*t = spec_own_tool(r, &like);
	return *t ? 0 : AVA_ENOMEM;
}

/* ---- ask_before: tools whose calls wait for a person's yes */

bool spec_has_tool(const struct tool *const *tools, unsigned n, const struct tool *t)
{
	for (unsigned i = 0; i < n; i++)
		if (tools[i] == t || strcmp(tools[i]->name, t->name) == 0)
			return true;
	return false;
}

static int ask_add(struct run_spec *r, const char *name, struct ava_error *err)
{
	const struct tool *t = NULL;

	for (unsigned i = 0; !t && i < r->agent.ntools; i++)
		t = strcmp(r->tools[i]->name, name) == 0 ? r->tools[i] : NULL;
	t = t ? t : tool_find(name);
	if (!t)
		return err_set(err, AVA_EINVAL, "ask_before: there is no tool %.60s", name);
	if (t->flags & (TOOL_ENDS | TOOL_ASKS))
		return err_set(err, AVA_EINVAL, "ask_before: %s needs no yes", name);
	if (!spec_has_tool(r->tools, r->agent.ntools, t) ||
	    spec_has_tool(r->ask_before, r->agent.nask_before, t))
		return 0;
	if (!r->ask_before)
		r->ask_before = arena_get(&r->mem, r->agent.ntools * sizeof(*r->ask_before));
	if (!r->ask_before)
		return err_set(err, AVA_ENOMEM, "out of memory");
	r->ask_before[r->agent.nask_before++] = t;
	return 0;
}

int spec_take_asks(struct run_spec *r, const struct op_spawn *s, struct ava_error *err)
{
	int rv = 0;

	for (size_t i = 0; rv == 0 && i < s->nask_before; i++)
		rv = ask_add(r, s->ask_before[i], err);
	r->agent.ask_before = r->ask_before;
	return rv;
}

/* ---- its group */

int spec_group_take(struct run_spec *r, const struct spec_group *g, struct ava_error *err)
{
	const struct agent_price *p = &r->agent.price;

	r->group = (struct spec_group){.id = "", .name = "", .cost_microusd = -1};
	if (!g || !g->id || !g->id[0])
		return 0;
	if (g->cost_microusd >= 0 && (p->input < 0 || p->output < 0))
		return err_set(err, AVA_EINVAL,
			       "the price of %.100s is unknown, so the cost limit of a group "
			       "cannot be kept: leave it out or use another model",
			       r->model->id);
	r->group = *g;
	r->group.id = spec_keep(r, g->id);
	r->group.name = spec_keep(r, g->name);
	if (r->group.id && r->group.name)
		return 0;
	r->group.id = r->group.name = "";
	return err_set(err, AVA_ENOMEM, "out of memory");
}

void spec_after_write(struct jw *w, const struct after_set *after)
{
	if (after_none(after))
		return;
	jw_array(w, "after");
	for (int i = 1; i <= AFTER_MAX; i++)
		if (after_has(after, i))
			jw_int(w, NULL, i);
	jw_end(w);
}

struct after_set spec_after_read(const json_t *list)
{
	struct after_set after = {0};
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (json_integer_value(one) >= 1 && json_integer_value(one) <= AFTER_MAX)
			after_add(&after, (int)json_integer_value(one));
	}
	return after;
}

/* ---- canonical JSON */

void spec_write_price(struct jw *w, const struct agent_price *p)
{
	const char *const keys[] = {"input", "output", "cacheRead", "cacheWrite"};
	const int64_t prices[] = {p->input, p->output, p->cache_read, p->cache_write};

	jw_object(w, "price");
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (prices[i] < 0)
			jw_null(w, keys[i]);
		else
			jw_int(w, keys[i], prices[i]);
	jw_end(w);
}

void spec_write_cost(struct jw *w, int64_t microusd)
{
	if (microusd < 0)
		jw_null(w, "costCents");
	else
		jw_fixed(w, "costCents", microusd, 4);
}

void spec_write_limits(struct jw *w, const char *key, const struct agent_limits *l)
{
	jw_object(w, key);
	jw_fixed(w, "seconds", l->time_ms, 3);
	jw_fixed(w, "costCents", l->cost_microusd, 4);
	jw_int(w, "tokens", l->tokens);
	jw_int(w, "iterations", l->iterations);
	jw_end(w);
}

void spec_read_limits(const json_t *o, struct agent_limits *l)
{
	l->time_ms = json_get_fixed(o, "seconds", 3, l->time_ms);
	l->cost_microusd = json_get_fixed(o, "costCents", 4, l->cost_microusd);
	l->tokens = json_get_int(o, "tokens", l->tokens);
	l->iterations = (int32_t)json_get_int(o, "iterations", l->iterations);
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

static void write_tags_and_guide(struct jw *w, const struct run_spec *r)
{
	struct buf b;

	if (r->tags[0])
		jw_words(w, "tags", r->tags);
	if (!r->guide)
		return;
	buf_init(&b, 8u << 20);
	(void)json_dump(&b, r->guide);
	jw_raw(w, "guide", b.data ? b.data : "null", b.len);
	buf_fini(&b);
}

int spec_take_check(struct run_spec *r, const char *command, int64_t rounds, struct ava_error *err)
{
	r->agent.check = arena_copy(&r->mem, command, strlen(command));
	r->agent.check_rounds = (int32_t)rounds;
	return r->agent.check ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
}

void spec_write_check(struct jw *w, const struct run_spec *r)
{
	if (!r->agent.check)
		return;
	jw_object(w, "check");
	jw_str(w, "command", r->agent.check);
	jw_int(w, "rounds", r->agent.check_rounds);
	jw_end(w);
}

/* The keys of the config, in canonical order, into an open object. */
void spec_write_config(struct jw *w, const struct run_spec *r)
{
	const struct spec_group *g = &r->group;
	unsigned n = 0;

	jw_str(w, "role", r->role->name);
	role_write(w, r->role);
	jw_str(w, "task", r->task);
	jw_str(w, "context", r->context);
	jw_str(w, "model", r->model->id);
	jw_str(w, "cwd", r->cwd);
	jw_array(w, "tools");
	for (unsigned i = 0; i < r->agent.ntools; i++)
		jw_str(w, NULL, r->tools[i]->name);
	jw_end(w);
	for (unsigned i = 0; i < r->agent.ntools; i++) {
		const struct tool *t = r->tools[i];

		if (!(t->flags & TOOL_MCP))
			continue;
		if (n++ == 0)
			jw_array(w, "toolDefinitions");
		jw_object(w, NULL);
		jw_str(w, "name", t->name);
		jw_str(w, "description", t->description);
		jw_str(w, "schema", t->schema);
		rights_write(w, "rights", t->flags);
		jw_end(w);
	}
	if (n > 0)
		jw_end(w);
	jw_array(w, "grants");
	for (size_t i = 0; i < r->ngrants; i++)
		jw_str(w, NULL, r->grants[i]);
	jw_end(w);
	spec_ask_write(w, r);
	spec_write_limits(w, "limits", &r->agent.limits);
	spec_write_price(w, &r->agent.price);
	jw_int(w, "maxOutput", r->agent.max_output);
	jw_int(w, "expectedTokens", r->expected_tokens);
	jw_bool(w, "thinking", r->thinking);
	rights_write(w, "rights", r->rights);
	if (r->given)
		rights_write(w, "given", r->given);
	if (r->agent.output_schema)
		jw_raw(w, "outputSchema", r->agent.output_schema, strlen(r->agent.output_schema));
	jw_str(w, "preset", r->preset);
	jw_str(w, "origin", r->origin);
#define X(kind, field, key, ...)                                                                   \
	if (r->field[0])                                                                           \
		jw_str(w, key, r->field);
	SPAWN_NOTES(X)
#undef X
	write_tags_and_guide(w, r);
	if (r->order.id[0])
		jw_raw(w, "order", r->order.plan, strlen(r->order.plan));
	if (g->id[0]) {
		jw_object(w, "group");
		jw_str(w, "id", g->id);
		spec_write_cost(w, g->cost_microusd);
		jw_fixed(w, "seconds", g->time_ms, 3);
		jw_int(w, "index", g->index);
		jw_int(w, "size", g->size);
		jw_bool(w, "share", g->share);
		jw_bool(w, "chain", g->chain);
		if (g->name[0])
			jw_str(w, "name", g->name);
		spec_after_write(w, &g->after);
		jw_end(w);
	}
	if (r->agent.ask_limit)
		jw_str(w, "onLimit", "ask");
	spec_write_check(w, r);
	if (r->on_quota != QUOTA_PARK)
		jw_str(w, "onQuota", settings_quota_words[r->on_quota]);
	if (r->resumed_from[0])
		jw_str(w, "resumedFrom", r->resumed_from);
	if (r->resumed_call > 0)
		jw_int(w, "resumedCall", r->resumed_call);
}

int spec_seal(struct run_spec *r, struct ava_error *err)
{
	struct buf b;
	struct jw w;

	buf_init(&b, 8u << 20);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	spec_write_config(&w, r);
	jw_end(&w);
	r->config = buf_take(&b, &r->config_len);
	buf_fini(&b);
	if (!r->config)
		return err_set(err, AVA_ENOMEM, "out of memory");
	hash_sha256_hex(r->config, r->config_len, r->hash);
	return 0;
}

/* ---- back from JSON */

struct spec_group spec_group_read(const json_t *spec)
{
	const json_t *o = json_object_get(spec, "group");

	return (struct spec_group){
		.id = json_get_str(o, "id"),
		.cost_microusd = json_get_fixed(o, "costCents", 4, -1),
		.time_ms = json_get_fixed(o, "seconds", 3, 0),
		.index = (int)json_get_int(o, "index", 1),
		.size = (int)json_get_int(o, "size", 1),
		.share = json_get_bool(o, "share", false),
		.chain = json_get_bool(o, "chain", false),
		.name = json_get_str(o, "name"),
		.after = spec_after_read(json_object_get(o, "after")),
	};
}

static int spec_group_from_json(struct run_spec *r, const json_t *config, struct ava_error *err)
{
	struct spec_group g = spec_group_read(config);

	if (g.size < 1 || g.size > SPEC_GROUP_MAX || g.index < 1 || g.index > g.size ||
	    after_has(&g.after, g.index))
		return err_set(err, AVA_ECORRUPT, "the stored configuration's group is damaged");
	return spec_group_take(r, &g, err);
}

static int spec_texts_of(const json_t *list, const char *const **out, size_t *n, struct arena *mem)
{
	const char **items = arena_get(mem, (json_array_size(list) + 1) * sizeof(*items));
	const json_t *v;
	size_t i;

	*n = 0;
	*out = items;
	if (!items)
		return AVA_ENOMEM;
	json_array_foreach(list, i, v)
	{
		if (json_is_string(v))
			items[(*n)++] = json_string_value(v);
	}
	return 0;
}

int spec_request(const json_t *config, struct op_spawn *out, struct arena *mem)
{
	const json_t *l = json_object_get(config, "limits");
	const json_t *check = json_object_get(config, "check");
	bool thinking = json_get_bool(config, "thinking", false);
	const json_t *wanted = json_object_get(json_object_get(config, "guide"), "wanted");
	int rv;

	*out = (struct op_spawn){.role = json_get_str(config, "role"),
				 .task = json_get_str(config, "task"),
				 .context = json_get_str(config, "context"),
				 .model = json_get_str(config, "model"),
				 .preset = json_get_str(config, "preset"),
				 .cwd = json_get_str(config, "cwd"),
				 .origin = json_get_str(config, "origin"),
				 .on_limit = json_get_str(config, "onLimit"),
				 .on_quota = json_get_str(config, "onQuota"),
				 .check = json_get_str(check, "command"),
				 .check_rounds = json_get_int(check, "rounds", AVA_DEFAULT),
				 .timeout_ms = json_get_fixed(l, "seconds", 3, AVA_DEFAULT),
				 .max_cost_microusd =
					 json_get_fixed(l, "costCents", 4, AVA_DEFAULT),
				 .max_tokens = json_get_int(l, "tokens", AVA_DEFAULT),
				 .max_iterations = json_get_int(l, "iterations", AVA_DEFAULT),
				 .extended_thinking = thinking ? 1 : -1,
				 .instructions = !wanted                ? 0
						 : json_is_true(wanted) ? 1
									: -1,
				 .output_schema = json_object_get(config, "outputSchema"),
				 .definitions = json_object_get(config, "toolDefinitions"),
				 .guide = json_object_get(config, "guide"),
				 .order = json_object_get(config, "order"),
				 .given = rights_read(json_object_get(config, "given")),
				 .resume = json_get_str(config, "resumedFrom"),
				 .resume_call = json_get_int(config, "resumedCall", 0),
#define X(kind, field, key, ...) .field = json_get_str(config, key),
				 SPAWN_NOTES(X)
#undef X
	};
	rv = spec_texts_of(json_object_get(config, "tools"), &out->tools, &out->ntools, mem);
	if (rv == 0)
		rv = spec_texts_of(json_object_get(config, "grants"), &out->grants, &out->ngrants,
				   mem);
	if (rv == 0)
		rv = spec_texts_of(json_object_get(config, "askBefore"), &out->ask_before,
				   &out->nask_before, mem);
	if (rv == 0)
		rv = spec_texts_of(json_object_get(config, "tags"), &out->tags, &out->ntags, mem);
	return rv;
}

static void gone_start(struct tool_call *c)
{
	c->success = false;
	c->error_class = "unknown_tool";
	buf_addf(&c->out, "the tool %s is not there any more: go on without it", c->tool->name);
	c->done(c);
}

/* Stands in for a tool that the runtime no longer has: its calls fail, the run goes
 * on. */
static const struct tool *gone_tool(struct run_spec *r, const char *name)
{
	struct tool *t = arena_get(&r->mem, sizeof(*t));

	if (!t)
		return NULL;
	*t = (struct tool){.name = spec_keep(r, name),
			   .description = "Not there any more.",
			   .schema = "{\"type\":\"object\",\"additionalProperties\":true}",
			   .start = gone_start};
	return t->name ? t : NULL;
}

/* The recorded definition of a server's tool; *t NULL: the record has none. */
static int defined(struct run_spec *r, const struct op_spawn *s, const char *name,
		   const struct tool **t)
{
	const json_t *o;
	size_t i;

	*t = NULL;
	json_array_foreach(s->definitions, i, o) if (strcmp(json_str(o, "name"), name) ==
						     0) return spec_defined_tool(r, s->definitions,
										 i, t);
	return 0;
}

static int tools_back(struct run_spec *r, const struct op_spawn *s, struct ava_error *err)
{
	if (spec_room_for_tools(r, MIN(s->ntools, ROLE_MAX_TOOLS), err) != 0)
		return AVA_ENOMEM;
	for (size_t i = 0; i < s->ntools; i++) {
		const struct tool *t;

		if (defined(r, s, s->tools[i], &t) == AVA_ECORRUPT)
			return err_set(err, AVA_ECORRUPT,
				       "the stored configuration's tools are damaged");
		if (!t)
			t = tool_find(s->tools[i]);
		if (!t)
			t = gone_tool(r, s->tools[i]);
		if (!t || i == ROLE_MAX_TOOLS)
			return err_set(err, AVA_ENOMEM, "no room for the tools of this run");
		r->tools[r->agent.ntools++] = t;
	}
	return 0;
}

/* Quoted facts of the model hold, whatever the tables say by now. */
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
	spec_brief_read(r, o);
	if (!drop)
		return 0;
	snprintf(m.drop, sizeof(m.drop), "%s", drop);
	return spec_set_model(r, &m, err);
}

int spec_amend(struct run_spec *r, const json_t *o, struct ava_error *err)
{
	const char *id = json_get_str(o, "model"), *dialect = json_get_str(o, "dialect");
	struct model m;
	int rv = id ? model_restore(id, &m, err) : 0;

	if (rv == 0 && id && !model_speak(&m, dialect ? dialect : r->model->dialect->name))
		rv = err_set(err, AVA_ECORRUPT, "%.100s is no model of the dialect %s", id,
			     r->model->dialect->name);
	if (rv == 0 && id)
		rv = spec_set_model(r, &m, err);
	if (rv != 0)
		return rv;
	if (id)
		spec_take_facts(r);
	rv = facts_from_json(r, o, err);
	spec_read_limits(json_object_get(o, "limits"), &r->agent.limits); /* raised by a person */
	return rv;
}

/* Takes a confirmed config as it was: nothing is checked against roles or settings again. */
static int take_config(struct run_spec *r, const struct op_spawn *s, const json_t *config,
		       struct ava_error *err)
{
	const char *dialect = json_get_str(config, "dialect");
	struct model m;
	int rv;

	r->role = s->role ? role_of_config(config) : NULL;
	if (!r->role || !s->task || !s->model)
		return err_set(err, AVA_ECORRUPT,
			       "the stored configuration lacks its role, task or model");
	rv = spec_take_strings(r, s, NULL, err); /* the strings are clean since it was built */
	if (rv == 0)
		rv = model_restore(s->model, &m, err);
	if (rv == 0 && dialect && !model_speak(&m, dialect))
		rv = err_set(err, AVA_ECORRUPT, "%.100s is no model of the dialect %.20s", s->model,
			     dialect);
	if (rv == 0)
		rv = spec_set_model(r, &m, err);
	if (rv == 0)
		rv = tools_back(r, s, err);
	if (rv == 0)
		rv = spec_take_grants(r, s, err);
	if (rv == 0)
		rv = spec_take_asks(r, s, err);
	if (rv == 0)
		rv = spec_take_schema(r, s->output_schema, err);
	if (rv == 0 && s->check)
		rv = spec_take_check(r, s->check, s->check_rounds, err);
	if (rv != 0)
		return rv;
	r->agent.limits = (struct agent_limits){AVA_DEFAULT, AVA_DEFAULT, AVA_DEFAULT, 0};
	spec_read_limits(json_object_get(config, "limits"), &r->agent.limits);
	r->agent.ask_limit = s->on_limit != NULL;
	if (s->on_quota)
		(void)settings_quota("onQuota", s->on_quota, &r->on_quota, NULL);
	r->agent.ask_quota = r->on_quota == QUOTA_ASK;
	r->expected_tokens = json_get_int(config, "expectedTokens", 50000);
	r->thinking = s->extended_thinking > 0;
	r->rights = rights_read(json_object_get(config, "rights"));
	r->given = s->given;
	spec_take_facts(r);
	spec_brief_decide(r); /* the head is not rendered yet, or the line says how it was */
	rv = facts_from_json(r, config, err);
	if (rv == 0)
		rv = spec_guide_take(r, s->guide, err);
	if (rv == 0)
		rv = spec_group_from_json(r, config, err);
	return rv == 0 ? spec_seal(r, err) : rv;
}

int spec_from_json(struct run_spec **out, const json_t *config, const char *session_id,
		   const char *request_id, const char *user_id, struct ava_error *err)
{
	struct run_spec *r = spec_new();
	struct op_spawn s;
	struct arena mem;
	int rv;

	if (!r)
		return err_set(err, AVA_ENOMEM, "out of memory");
	arena_init(&mem, 1u << 20);
	rv = spec_request(config, &s, &mem);
	if (rv != 0)
		err_set(err, rv, "out of memory");
	s.session_id = session_id;
	s.request_id = request_id;
	s.user_id = user_id;
	if (rv == 0)
		rv = take_config(r, &s, config, err);
	arena_fini(&mem);
	if (rv == 0)
		*out = r;
	else
		spec_free(r);
	return rv;
}

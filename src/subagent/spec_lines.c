/* The lines that a spec writes into messages.jsonl: its own, the first message, and amendments; and
 * what the request they begin takes of a window and of a limit.
 *
 * The head is rendered once and kept by its name, so that each later request begins with the same
 * bytes. What can fail: memory, and the disk that keeps the head. */
#include "subagent/spec.h"

#include <stdlib.h>
#include <string.h>

#include "agent/limit.h"
#include "agent/prompt.h"
#include "agent/tool.h"
#include "base/error.h"
#include "base/format.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "provider/head.h"
#include "provider/model.h"

void spec_line_begin(struct jw *w, struct buf *out, const char *kind)
{
	jw_init(w, out);
	jw_object(w, NULL);
	jw_object(w, kind);
}

int spec_line_end(struct jw *w)
{
	jw_end(w);
	jw_end(w);
	return buf_addc(w->out, '\n');
}

/* The object of a line {"spec":{ … }}, a new reference; else NULL. */
static json_t *spec_of_line(const char *file, size_t len, size_t *at, struct ava_error *why)
{
	const char *line;
	size_t n;
	json_t *o = jsonl_next(file, len, at, &line, &n) == 1 && jscan_begins(line, n, "{\"spec\":")
			    ? json_parse(line, n, why)
			    : NULL;
	json_t *spec = json_incref(json_object_get(o, "spec"));

	json_decref(o);
	return spec;
}

int spec_first_line(const char *file, size_t len, json_t **spec, struct ava_error *err)
{
	struct ava_error why = {0};
	size_t at = 0;
	json_t *more, *context;

	*spec = spec_of_line(file, len, &at, &why);
	if (json_is_object(*spec)) {
		more = spec_of_line(file, len, &at, &why);
		context = json_object_get(more, "context");
		if (json_is_string(context))
			json_object_set(*spec, "context", context);
		json_decref(more);
		if (why.code != AVA_ENOMEM)
			return 0;
	}
	json_decref(*spec);
	*spec = NULL;
	return why.code == AVA_ENOMEM
		       ? err_set(err, AVA_ENOMEM, "out of memory")
		       : err_set(err, AVA_ECORRUPT, "its messages have no readable first line");
}

/* Renders the head, and tells its name, its length and the running hash over it. */
static int render_head(const struct run_spec *r, char name[HASH_HEX_LEN + 1],
		       char prompt_hash[HASH_HEX_LEN + 1], int64_t *bytes, struct hash_sha256 *hash)
{
	const struct tool *tools[ROLE_MAX_TOOLS];
	struct dialect_spec d = {
		.model = r->model->id,
		.tools = tools,
		.ntools = spec_tools_shown(r, tools),
		.brief = r->brief,
		.model_facts = r->model,
		.thinking = r->thinking,
	};
	struct buf system, head;
	int rv;

	buf_init(&system, 4u << 20);
	buf_init(&head, 8u << 20);
	if (r->system) {
		buf_adds(&system, r->system);
		rv = buf_adds(&system, r->operating);
	} else {
		rv = prompt_system(&system, r->role->display, r->role->instructions, r->brief);
	}
	if (rv == 0) {
		hash_sha256_hex(r->operating, strlen(r->operating), prompt_hash);
		d.system = system.data;
		rv = r->model->dialect->encode_head(&head, &d);
	}
	if (rv == 0)
		rv = head_keep(head.data, head.len, name, hash);
	*bytes = (int64_t)head.len;
	buf_fini(&head);
	buf_fini(&system);
	return rv;
}

int spec_line(const struct run_spec *r, struct buf *out, int64_t *request_bytes,
	      struct hash_sha256 *hash)
{
	char prompt_hash[HASH_HEX_LEN + 1], head[HASH_HEX_LEN + 1];
	struct jw w;
	int rv = render_head(r, head, prompt_hash, request_bytes, hash);

	if (rv != 0)
		return rv;
	spec_line_begin(&w, out, "spec");
	jw_int(&w, "machine", MACHINE_VERSION);
	jw_str(&w, "dialect", r->model->dialect->name);
	spec_write_config(&w, r);
	jw_bool(&w, "canForce", r->agent.can_force);
	if (r->agent.window > 0) /* the window may be another one when the record is read */
		jw_int(&w, "window", r->agent.window);
	if (r->later)
		spec_brief_write(&w, r);
	jw_str(&w, "configHash", r->hash);
	jw_str(&w, "operatingTextHash", prompt_hash);
	jw_str(&w, "head", head);
	return spec_line_end(&w);
}

int spec_add_context(struct run_spec *r, const char *more, struct buf *out)
{
	struct buf all;
	struct jw w;
	int rv;

	buf_init(&all, 2 * SPEC_CONTEXT_MAX);
	rv = buf_addf(&all, "%s%s", r->context, more + (*r->context ? 0 : strspn(more, "\n")));
	if (rv == 0 && !(r->context = spec_keep(r, all.data)))
		rv = AVA_ENOMEM;
	buf_fini(&all);
	if (rv != 0)
		return rv;
	spec_line_begin(&w, out, "spec");
	jw_str(&w, "context", r->context);
	return spec_line_end(&w);
}

int spec_user_line(const struct run_spec *r, struct buf *out)
{
	/* The first user line has all that differs from other runs of the role. */
	const struct prompt p = {
		.task = r->task,
		.context = r->context,
		.guide = spec_guide_text(r),
		.schema = r->agent.output_schema,
	};
	struct buf text;
	int rv;

	buf_init(&text, 4u << 20);
	rv = prompt_task(&text, &p);
	if (rv == 0)
		rv = r->model->dialect->encode_user(out, text.data, text.len);
	buf_fini(&text);
	return rv;
}

int spec_messages(const struct run_spec *r, struct buf *out, int64_t *request_bytes,
		  struct hash_sha256 *hash)
{
	struct buf line;
	int rv = spec_line(r, out, request_bytes, hash);

	buf_init(&line, 8u << 20);
	if (rv == 0)
		rv = spec_user_line(r, &line);
	if (rv == 0) {
		buf_add(out, line.data, line.len);
		rv = buf_addc(out, '\n');
		*request_bytes += (int64_t)line.len;
		hash_sha256_add(hash, line.data, line.len);
	}
	buf_fini(&line);
	return rv;
}

/* Bytes of the texts of a first request, with the runtime's own; in JSON they are hardly ever
 * twice as many. */
static int64_t spec_parts(const struct run_spec *r)
{
	const char *const texts[] = {
		r->system ? r->system : r->role->instructions,
		r->operating,
		r->task,
		r->context,
		spec_guide_text(r),
		r->agent.output_schema ? r->agent.output_schema : "",
	};
	int64_t n = 8192;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		n += (int64_t)strlen(texts[i]);
	for (unsigned i = 0; i < r->agent.ntools; i++)
		n += (int64_t)(strlen(r->tools[i]->description) + strlen(r->tools[i]->schema)) +
		     256;
	return n;
}

/* Counts a token for four bytes, fewer than any service: a request too large by that never fits. */
int spec_fits(const struct run_spec *r, struct ava_error *err)
{
	const int64_t window = r->agent.window, least = LIMIT_LEAST_ROOM + LIMIT_LEAST_ROOM / 2;
	int64_t bytes = 0, needs;
	struct hash_sha256 hash;
	struct buf text;
	int rv;

	if (window <= 0 || r->resumed || spec_parts(r) / 2 + least <= window)
		return 0;
	buf_init(&text, 64u << 20);
	rv = spec_messages(r, &text, &bytes, &hash);
	buf_fini(&text);
	needs = bytes / 4 + least; /* `least`: a reply and a result */
	if (rv != 0 || needs <= window)
		return 0;
	return err_set(err, AVA_EINVAL,
		       "%s takes %lld tokens, and system prompt, tools and task alone, with the "
		       "least of an answer, need about %lld: use another model (--model), fewer "
		       "tools (--tools) or a shorter task, or let its server give it more "
		       "(llama-server -c, OLLAMA_CONTEXT_LENGTH)",
		       r->model->id, (long long)window, (long long)needs);
}

static int64_t round_up(int64_t n, int64_t to)
{
	return (n + to - 1) / to * to;
}

int spec_pays(const struct run_spec *r, int64_t bytes, int64_t *needed, struct ava_error *err)
{
	struct agent_spec s = r->agent;
	struct agent a = {.spec = &s, .at.new_bytes = bytes > 0 ? bytes : 2 * spec_parts(r)};
	const int64_t least = MIN((int64_t)s.max_output, (int64_t)LIMIT_LEAST_OUTPUT);
	struct hash_sha256 hash;
	struct buf text;
	int64_t most;
	int rv;

	if (r->group.id[0] && r->group.cost_microusd >= 0)
		s.limits.cost_microusd = MIN(s.limits.cost_microusd, r->group.cost_microusd);
	if (limit_reserve(&a, &most) < 0)
		return 0;
	if (bytes == 0 && r->resumed) {
		a.at.new_bytes = r->resumed->request_bytes;
	} else if (bytes == 0) {
		buf_init(&text, 64u << 20);
		rv = spec_messages(r, &text, &a.at.new_bytes, &hash);
		buf_fini(&text);
		if (rv != 0)
			return 0; /* out of memory is reported elsewhere */
	}
	rv = limit_reserve(&a, &most);
	if (rv == AGENT_COST) {
		*needed = round_up(limit_call_cost(&a, least), 10000);
		return err_set(err, AVA_EINVAL, "%s pays no call of %s: at least %s",
			       format_money_limit(s.limits.cost_microusd).text, r->model->id,
			       format_money_limit(*needed).text);
	}
	if (rv == AGENT_TOKENS) {
		*needed = round_up(limit_next_input(&a) + least, 100);
		return err_set(err, AVA_EINVAL, "%s tokens pay no call of %s: at least %s",
			       format_tokens_limit(s.limits.tokens).text, r->model->id,
			       format_tokens_limit(*needed).text);
	}
	return 0;
}

/* The end of an amendment that changes the head of requests. */
static int line_with_head(struct jw *w, const struct run_spec *r)
{
	char prompt_hash[HASH_HEX_LEN + 1], head[HASH_HEX_LEN + 1];
	struct hash_sha256 hash;
	int64_t bytes;
	int rv = render_head(r, head, prompt_hash, &bytes, &hash);

	if (r->later)
		spec_brief_write(w, r);
	else
		jw_null(w, "withheld");
	if (rv == 0)
		jw_str(w, "head", head);
	return rv == 0 ? spec_line_end(w) : rv;
}

int spec_switch(struct run_spec *r, const struct model *m, struct buf *line)
{
	const struct model *before = r->model;
	struct agent_spec facts = r->agent;
	uint32_t withheld = r->withheld;
	struct jw w;
	int rv = spec_set_model(r, m, NULL);

	if (rv != 0)
		return rv;
	spec_take_facts(r);
	r->agent.can_force = facts.can_force; /* the dialect's; not where nothing is submitted */
	spec_brief_decide(r);
	spec_line_begin(&w, line, "spec");
	jw_str(&w, "model", m->id);
	if (m->dialect != before->dialect)
		jw_str(&w, "dialect", m->dialect->name);
	spec_write_price(&w, &m->price);
	jw_int(&w, "maxOutput", m->max_output);
	rv = line_with_head(&w, r);
	if (rv != 0) {
		r->model = before;
		r->agent = facts;
		spec_brief_decide(r);
		r->withheld = withheld;
	}
	return rv;
}

int spec_show(struct run_spec *r, uint32_t tools, struct buf *line)
{
	uint32_t before = r->withheld;
	struct jw w;
	int rv;

	r->withheld &= ~tools;
	spec_line_begin(&w, line, "spec");
	rv = line_with_head(&w, r);
	if (rv != 0)
		r->withheld = before;
	return rv;
}

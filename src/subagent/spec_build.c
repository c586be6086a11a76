/* From a request to a spec: role, model, tools, rights and limits, each either
 * given or taken from role, preset and settings in that order. Everything wrong is
 * found here, before a person is asked and before anything is written, and is a
 * sentence that says what to do. */
#include "subagent/spec.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "agent/tool.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/format.h"
#include "base/settings.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"
#include "subagent/order.h"
#include "subagent/proof.h"
#include "subagent/rights.h"
#include "subagent/rolebook.h"
#include "tool/pages.h"

/* ---- presets and grants */

static const struct preset {
	const char *name;
	int64_t cost_cents, tokens;
	bool quick; /* a small model without thinking, unless the request names others */
} presets[] = {
	{"quick", 10, 10000, true},
	{"standard", 50, 50000, false},
	{"deep", 200, 200000, false},
};
#define QUICK_MODEL "claude-haiku"

static const char *const known_grants[] = {"rw", "fetch_any", GRANT_ALL_THREE};

/* ---- the request alone */

int spec_check_cwd(const char *cwd, struct ava_error *err)
{
	struct stat st;

	if (!cwd || !*cwd)
		return 0;
	if (cwd[0] != '/')
		return err_set(err, AVA_EINVAL, "the working folder %s must be an absolute path",
			       cwd);
	if (stat(cwd, &st) != 0)
		return err_set(err, AVA_ENOENT,
			       "the working folder %s cannot be opened (%s): start from a folder "
			       "that exists",
			       cwd, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, AVA_EINVAL, "the working folder %s is not a folder", cwd);
	return 0;
}

/* Checks a text of a request. `names`: it names something and so cannot be changed, and is
 * refused with a key in it. */
static int spec_build_check_text(const char *what, const char *text, size_t max, bool names,
				 const struct redact *redact, struct ava_error *err)
{
	size_t len = text ? strlen(text) : 0;
	struct buf clean;
	int n = 0;

	if (len > max)
		return err_set(
			err, AVA_ETOOBIG,
			"the %s is %zu bytes long, %zu at the most: put the rest into a file "
			"the run can read",
			what, len, max);
	if (len && !utf8_valid(text, len))
		return err_set(err, AVA_EINVAL, "the %s is not valid UTF-8", what);
	if (names && redact && len) {
		buf_init(&clean, 1u << 20);
		n = redact_text(redact, &clean, text, len);
		buf_fini(&clean);
	}
	return n == 0 ? 0
		      : err_set(err, n < 0 ? n : AVA_EDENIED,
				"the %s holds what looks like a key or password: leave it out",
				what);
}

static int check_request(const struct op_spawn *s, const struct redact *redact,
			 struct ava_error *err)
{
	const struct {
		const char *what, *text;
		size_t max;
		bool names;
	} texts[] = {
		{"task", s->task, SPEC_TASK_MAX, false},
		{"context", s->context, SPEC_CONTEXT_MAX, false},
		{"session id", s->session_id, 200, true},
		{"request id", s->request_id, 200, true},
		{"working folder", s->cwd, 4095, true},
		{"check", s->check, 4095, true},
		{"role", s->role, 4095, true},
		{"model", s->model, 4095, true},
		{"user id", s->user_id, 4095, true},
		{"origin", s->origin, 4095, true},
	};
	enum settings_quota way;

	if (!s->task || s->task[strspn(s->task, " \t\r\n")] == 0)
		return err_set(err, AVA_EINVAL, "the task is empty: say what the run shall do");
	if (s->resume_call < 0 || s->resume_call > INT32_MAX ||
	    ((s->resume_call > 0 || s->resume_at) && (!s->resume || !*s->resume)))
		return err_set(err, AVA_EINVAL,
			       "from must be the number of a model call, from 1, or a checkpoint "
			       "of the run that is resumed");
	if (s->on_limit && strcmp(s->on_limit, "ask") != 0 && strcmp(s->on_limit, "stop") != 0)
		return err_set(err, AVA_EINVAL, "on_limit is \"%.40s\"; it must be stop or ask",
			       s->on_limit);
	if (s->on_quota && settings_quota("on_quota", s->on_quota, &way, err) != 0)
		return AVA_EINVAL;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		int rv = spec_build_check_text(texts[i].what, texts[i].text, texts[i].max,
					       texts[i].names, redact, err);

		if (rv != 0)
			return rv;
	}
	for (size_t i = 0; i < s->ntags; i++)
		if (spec_build_check_text("tag", s->tags[i], 4095, true, redact, err) != 0)
			return err->code;
	return spec_check_cwd(s->cwd, err);
}

/* ---- limits */

static const struct preset *find_preset(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(presets); i++)
		if (strcmp(presets[i].name, name) == 0)
			return &presets[i];
	return NULL;
}

static bool is_quick(const struct op_spawn *s)
{
	const struct preset *p = s->preset ? find_preset(s->preset) : NULL;

	return p && p->quick;
}

bool spec_is_preset(const char *name)
{
	return find_preset(name) != NULL;
}

/* A local model reads and writes at a tenth of a service's speed, or less. */
#define LOCAL_PATIENCE 4

/* A limit that the request does not name: the setting, else as the role `said`. A project's
 * file may lower the limit, never raise it: its author is not the person who pays. */
static int64_t otherwise(const struct role *r, int64_t said, int64_t setting, int64_t usual)
{
	if (r->source == ROLE_PROJECT)
		return MIN(said, setting >= 0 ? setting : usual);
	return setting >= 0 ? setting : said;
}

int64_t spec_cost_otherwise(const struct role *r, const struct settings *set)
{
	return otherwise(r, r->cost_cents, set->limits_cost_cents, 50) * 10000;
}

int64_t spec_time_otherwise(const struct role *r, const struct settings *set)
{
	return otherwise(r, r->timeout_s, set->limits_timeout_s ? set->limits_timeout_s : -1, 600) *
	       1000;
}

int64_t spec_patience(const struct model *m)
{
	return m->provider && !m->provider->needs_key ? LOCAL_PATIENCE : 1;
}

int64_t spec_tokens_otherwise(const struct role *r, const struct settings *set)
{
	return r->tokens ? otherwise(r, r->tokens, -1, set->limits_tokens) : set->limits_tokens;
}

int64_t spec_iterations_otherwise(const struct role *r, const struct settings *set)
{
	return r->iterations ? otherwise(r, r->iterations, -1, set->limits_iterations)
			     : set->limits_iterations;
}

static int spec_build_take_limits(struct run_spec *r, const struct op_spawn *s,
				  const struct settings *set, struct ava_error *err)
{
	const struct preset *p = s->preset && *s->preset ? find_preset(s->preset) : NULL;
	struct agent_limits *l = &r->agent.limits;
	int64_t iterations;
	/* A time that a person's role or the settings say holds as it is. */
	bool said = r->role->source != ROLE_BUILTIN || set->limits_timeout_s != 0;
	int64_t patience = said ? 1 : spec_patience(r->model);
	/* A preset's tokens are those of a step; all calls bill them, some ten times. */
	const struct {
		int64_t given, otherwise, least;
		const char *what;
		int64_t *to;
	} limits[] = {
		{s->timeout_ms, spec_time_otherwise(r->role, set) * patience, 1, "the time limit",
		 &l->time_ms},
		{s->max_cost_microusd,
		 p ? p->cost_cents * 10000 : spec_cost_otherwise(r->role, set), 0, "the cost limit",
		 &l->cost_microusd},
		{s->max_tokens, p ? p->tokens * 10 : spec_tokens_otherwise(r->role, set), 1,
		 "the token limit", &l->tokens},
		{s->max_iterations, spec_iterations_otherwise(r->role, set), 1,
		 "the iteration limit", &iterations},
	};

	if (s->preset && *s->preset && !p)
		return err_set(err, AVA_EINVAL,
			       "unknown preset %s: there are quick, standard and deep", s->preset);
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		bool given = limits[i].given != AVA_DEFAULT;

		*limits[i].to = given ? limits[i].given : limits[i].otherwise;
		if (*limits[i].to < limits[i].least)
			return err_set(err, AVA_EINVAL, "%s must be %s", limits[i].what,
				       limits[i].least == 0 ? "0 (free models only) or more"
							    : "above 0");
	}
	if (iterations > 100000 || l->time_ms > 7 * 86400000LL)
		return err_set(err, AVA_EINVAL,
			       "limits are at most 100000 iterations and 7 days (604800 seconds)");
	l->iterations = (int32_t)iterations;
	r->expected_tokens = MIN(p ? p->tokens : MIN(set->limits_tokens, 50000), l->tokens);
	return 0;
}

static int check_cost(const struct run_spec *r, bool explicit_cap, struct ava_error *err)
{
	const struct agent_price *p = &r->agent.price;

	if ((p->input < 0 || p->output < 0) && explicit_cap)
		return err_set(err, AVA_EINVAL,
			       "the price of %s is unknown, so a cost limit cannot be kept: leave "
			       "the cost limit out (tokens hold it) or use another model",
			       r->model->id);
	if (r->agent.limits.cost_microusd == 0 && (p->input != 0 || p->output != 0))
		return err_set(err, AVA_EINVAL,
			       "a cost limit of 0 allows free models only, and %s is not free",
			       r->model->id);
	return 0;
}

/* ---- tools, grants and rights */

static bool spec_build_named(const char *const *names, size_t n, const char *name)
{
	while (n-- > 0)
		if (strcmp(names[n], name) == 0)
			return true;
	return false;
}

bool spec_granted(const struct run_spec *s, const char *grant)
{
	return spec_build_named((const char *const *)s->grants, s->ngrants, grant);
}

bool spec_context_carries(const struct run_spec *r)
{
	return (r->given | (after_none(&r->group.after) ? 0 : r->rights)) & TOOL_PRIVATE;
}

/* With the grant rw the quote must show the real path that `ava apply` writes to. */
static int check_own_path(const struct run_spec *r, struct ava_error *err)
{
	char real[PATH_MAX];

	if (!spec_granted(r, "rw") || !realpath(r->cwd, real) || strcmp(real, r->cwd) == 0)
		return 0;
	return err_set(err, AVA_EINVAL,
		       "the working folder %.200s is reached through a link, or has dots in its "
		       "path: with the grant rw give %.200s",
		       r->cwd, real);
}

/* The rights of a run with these tools. If a model that has seen what is the person's wrote the
 * task, an address in it can carry that out: TOOL_OUT. */
static unsigned rights_with(const struct run_spec *r, const struct tool *const *tools, unsigned n,
			    bool unboxed)
{
	unsigned all =
		rights_of(tools, n, r->cwd[0] != '\0' || unboxed, spec_granted(r, "fetch_any"));
	struct buf listed;

	buf_init(&listed, SPEC_TASK_MAX);
	if ((r->given & TOOL_OUT) && rights_reads_web(tools, n))
		(void)rights_addresses(&listed, r->task, r->cwd[0] != 0);
	all |= listed.len > 0 ? TOOL_OUT : 0;
	buf_fini(&listed);
	return all;
}

/* Leaves memory_search out where the run has all three rights only by it; how many tools are left.
 */
static unsigned without_memory(const struct run_spec *r, const struct tool **tools, unsigned n)
{
	const struct tool *kept[ROLE_MAX_TOOLS];
	unsigned k = 0;

	for (unsigned i = 0; i < n; i++)
		if (strcmp(tools[i]->name, "memory_search") != 0)
			kept[k++] = tools[i];
	if (rights_with(r, kept, k, false) == RIGHTS_ALL)
		return n;
	memcpy(tools, kept, k * sizeof(*kept));
	return k;
}

static bool is_defined(const json_t *definitions, const char *name)
{
	const json_t *o;
	size_t i;

	json_array_foreach(definitions, i,
			   o) if (strcmp(json_str(o, "name"), name) == 0) return true;
	return false;
}

/* The tools of the role; for those of servers the request's definitions, if it has any.
 * Servers' tools are copied into the spec's memory, since they may go. Below 0: no memory. */
static int spec_build_tools_of(struct run_spec *r, const struct op_spawn *s,
			       const struct tool *have[ROLE_MAX_TOOLS])
{
	unsigned n = role_tools(r->role, r->cwd[0] != 0, have), k = 0;
	const struct tool *t = NULL;

	for (unsigned i = 0; i < n; i++) {
		bool server = have[i]->flags & TOOL_MCP;

		if (server && is_defined(s->definitions, have[i]->name))
			continue;
		have[k++] = server ? spec_own_tool(r, have[i]) : have[i];
		if (!have[k - 1])
			return AVA_ENOMEM;
	}
	for (size_t i = 0; s->definitions && k < ROLE_MAX_TOOLS; i++) {
		int rv = spec_defined_tool(r, s->definitions, i, &t);

		if (rv != 0 || !t)
			return rv != 0 ? rv : (int)k;
		if (role_wishes(r->role, t->name))
			have[k++] = t;
	}
	return (int)k;
}

static int pick_tools(struct run_spec *r, const struct op_spawn *s, struct ava_error *err)
{
	bool rw = spec_granted(r, "rw");
	const struct tool *have[ROLE_MAX_TOOLS];
	const char *names[ROLE_MAX_TOOLS];
	unsigned n, k = 0;
	int found = spec_build_tools_of(r, s, have);
	/* The embedded model works on files alone, so it needs no rights for the web. */
	bool web = strcmp(r->model->id, "offline") != 0;

	if (found < 0)
		return err_set(err, found, "the tools of servers cannot be kept");
	n = (unsigned)found;
	for (unsigned i = 0; i < n; i++)
		if ((rw || !(have[i]->flags & TOOL_WRITES)) &&
		    (web || !(have[i]->flags & (TOOL_WEB | TOOL_MCP))))
			have[k++] = have[i];
	n = k;
	/* Memories of the person are no reason to have all three rights: a run that reads
	 * strangers' texts and can send does without, unless the request names the tool. */
	if (!s->tools && rights_with(r, have, n, false) == RIGHTS_ALL)
		n = without_memory(r, have, n);
	if (spec_room_for_tools(r, n + 1, err) != 0) /* SPEC_GUIDE_TOOL may come behind them */
		return AVA_ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		names[i] = have[i]->name;
		if (!s->tools || (have[i]->flags & TOOL_ENDS) ||
		    spec_build_named(s->tools, s->ntools, names[i]))
			r->tools[r->agent.ntools++] = have[i];
	}
	/* Rights are requested ∩ role ∩ policy: a tool that was asked for and
	 * is not there must not vanish without a word. */
	for (size_t i = 0; s->tools && i < s->ntools; i++) {
		const struct tool *t = tool_find(s->tools[i]);

		if (spec_build_named(names, n, s->tools[i]) ||
		    strcmp(s->tools[i], SPEC_GUIDE_TOOL) == 0) /* there are skills, or not */
			continue;
		if (!t && strcmp(s->tools[i], "web_search") == 0)
			return err_set(err, AVA_EUNSUPPORTED, "%s", PAGES_SEARCH_MISSING);
		return err_set(err, AVA_EINVAL,
			       t && !rw && (t->flags & TOOL_WRITES)
				       ? "role %s has the tool %s only with the grant rw"
				       : "role %s has no tool %s here",
			       r->role->name, s->tools[i]);
	}
	return 0;
}

#define TAGS_MAX 8
#define TAG_MAX  40 /* bytes of a name, of a key, and of a value */

static bool is_tag_word(const char *s, size_t len)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "._-:/";

	return len > 0 && len <= TAG_MAX && strspn(s, chars) >= len;
}

/* "name", or "key=value". */
bool spec_is_tag(const char *tag)
{
	size_t key = strcspn(tag, "="), len = strlen(tag);

	return is_tag_word(tag, key) && (key == len || is_tag_word(tag + key + 1, len - key - 1));
}

/* The tag in `tags`, with a blank between two, that has the same key; NULL: none has, or the tag
 * is a name. */
static const char *same_key(const char *tags, const char *tag)
{
	size_t key = strcspn(tag, "=") + 1, n;

	for (const char *s = tags; tag[key - 1] && *s; s += n + (s[n] == ' ')) {
		n = strcspn(s, " ");
		if (strncmp(s, tag, key) == 0)
			return s;
	}
	return NULL;
}

int spec_take_tags(struct run_spec *r, const struct op_spawn *s, struct ava_error *err)
{
	char tags[TAGS_MAX * (2 * TAG_MAX + 2)] = "";

	if (s->ntags > TAGS_MAX)
		return err_set(err, AVA_EINVAL, "too many tags, %d at the most", TAGS_MAX);
	for (size_t i = 0, at = 0; i < s->ntags; i++) {
		const char *tag = s->tags[i], *same;

		if (!spec_is_tag(tag))
			return err_set(err, AVA_EINVAL,
				       "the tag \"%.90s\" must be a name or KEY=VALUE, each of 1 "
				       "to %d letters, digits, . _ - : or /",
				       tag, TAG_MAX);
		if (list_has(tags, ' ', tag))
			continue;
		same = same_key(tags, tag);
		if (same)
			return err_set(err, AVA_EINVAL,
				       "the tags %.*s and %s have one key: give the run one value "
				       "of it",
				       (int)strcspn(same, " "), same, tag);
		at += (size_t)snprintf(tags + at, sizeof(tags) - at, "%s%s", at ? " " : "", tag);
	}
	r->tags = spec_keep(r, tags);
	return r->tags ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
}

int spec_take_grants(struct run_spec *r, const struct op_spawn *s, struct ava_error *err)
{
	if (s->ngrants > 16)
		return err_set(err, AVA_EINVAL, "too many grants, 16 at the most");
	r->grants = arena_get(&r->mem, (s->ngrants + 1) * sizeof(*r->grants));
	if (!r->grants)
		return err_set(err, AVA_ENOMEM, "out of memory");
	for (size_t i = 0; i < s->ngrants; i++) {
		if (!spec_build_named(known_grants, ARRAY_LEN(known_grants), s->grants[i]))
			return err_set(err, AVA_EINVAL,
				       "unknown grant %s: there are rw, fetch_any and all_three",
				       s->grants[i]);
		if (strcmp(s->grants[i], "rw") == 0 && !r->cwd[0])
			return err_set(
				err, AVA_EINVAL,
				"the grant rw is for the files of a working folder, and this "
				"run has none: give it one (cwd)");
		r->grants[r->ngrants++] = spec_keep(r, s->grants[i]);
	}
	return 0;
}

bool spec_asks_all_three(struct run_spec *const *specs, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (rights_all_three(specs[i]->rights) && !spec_granted(specs[i], GRANT_ALL_THREE))
			return true;
	return false;
}

/* `unboxed`: commands may see more than the folder. */
static void set_rights(struct run_spec *r, bool unboxed)
{
	r->rights = rights_with(r, r->tools, r->agent.ntools, unboxed);
	r->rights |= r->given & RIGHTS_SEEN;
}

/* ---- its standing order */

/* The plan in its canonical form. The money of a day is kept by what a run costs at most, which is
 * no more than that unless somebody says so. */
static int spec_build_take_order(struct run_spec *r, const struct op_spawn *s,
				 struct ava_error *err)
{
	const struct agent_price *price = &r->agent.price;
	int64_t *cost = &r->agent.limits.cost_microusd;
	struct order_plan p;
	int rv = s->order ? order_read(s->order, &p, err) : 0;

	if (rv != 0 || !s->order)
		return rv;
	if (order_keep(r, &p) != 0)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	else if (p.day_microusd < 0 && p.month_microusd < 0)
		rv = 0;
	else if (price->input < 0 || price->output < 0)
		rv = err_set(err, AVA_EINVAL,
			     "the price of %s is unknown, so what a day or a month of the order "
			     "costs cannot be kept: leave it out or use another model",
			     r->model->id);
	if (rv == 0 && s->max_cost_microusd == AVA_DEFAULT) {
		*cost = p.day_microusd >= 0 ? MIN(*cost, p.day_microusd) : *cost;
		*cost = p.month_microusd >= 0 ? MIN(*cost, p.month_microusd) : *cost;
	} else if (rv == 0 && ((p.day_microusd >= 0 && p.day_microusd < *cost) ||
			       (p.month_microusd >= 0 && p.month_microusd < *cost))) {
		rv = err_set(err, AVA_EINVAL,
			     "one run of the order may cost %s, more than its day or month: raise "
			     "that, or lower max_cost_cents",
			     format_money_limit(*cost).text);
	}
	order_fini(&p);
	return rv;
}

/* The check of the request, else of its role. */
static int spec_build_take_check(struct run_spec *r, const struct op_spawn *s,
				 struct ava_error *err)
{
	const char *command = s->check && *s->check ? s->check : r->role->check;
	int64_t rounds = s->check_rounds == AVA_DEFAULT ? PROOF_ROUNDS : s->check_rounds;
	const struct tool *bash = tool_find("run_bash");

	if (!command)
		return 0;
	if (proof_command(command, err) != 0)
		return AVA_EINVAL;
	if (rounds < 0 || rounds > PROOF_ROUNDS_MAX)
		return err_set(err, AVA_EINVAL, "check_rounds must be 0 to %d", PROOF_ROUNDS_MAX);
	if (!r->cwd[0])
		return err_set(err, AVA_EINVAL,
			       "a check runs in the working folder, and this run has none: give it "
			       "one (cwd), or leave the check out");
	if (!bash || !spec_has_tool(r->tools, r->agent.ntools, bash))
		return err_set(err, AVA_EINVAL,
			       "a check is a command, and role %s may run none here: use one with "
			       "run_bash (code_reviewer), or leave the check out",
			       r->role->name);
	return spec_take_check(r, command, rounds, err);
}

/* ---- building */

/* The schema of the request, else of its role. */
static int spec_build_take_schema(struct run_spec *r, const struct op_spawn *s,
				  struct ava_error *err)
{
	json_t *own = NULL;
	int rv;

	if (!s->output_schema && r->role->schema) {
		own = json_parse(r->role->schema, strlen(r->role->schema), err);
		if (!own)
			return err->code;
	}
	rv = spec_take_schema(r, own ? own : s->output_schema, err);
	json_decref(own);
	return rv;
}

static int take_role(struct run_spec *r, const struct op_spawn *s, struct ava_error *err)
{
	bool files = s->cwd && *s->cwd;

	if (s->role && *s->role) {
		r->role = role_find(s->role, s->cwd, err);
		return r->role ? role_usable(r->role, files, err) : err->code;
	}
	r->role = role_find(classify_role(s->task, strlen(s->task)), NULL, err);
	if (r->role && role_usable(r->role, files, NULL) == 0)
		return 0;
	role_release(r->role);
	r->role = role_find("researcher", NULL, err);
	return r->role ? 0 : err->code;
}

/* The offline model stands in for the default and for a role's own model, but not for one that the
 * request names. It has no web, so it gets no role of the web, unless a script plays one. */
static int fit_offline(struct run_spec *r, const struct op_spawn *s, const struct model *m,
		       struct ava_error *err)
{
	bool given = s->role && *s->role;

	if (s->model && *s->model && strcmp(m->id, "offline") == 0 && strcmp(s->model, m->id) != 0)
		return err_set(err, AVA_EUNSUPPORTED,
			       "no service has a key, so %.100s would be the offline model: set "
			       "one (`ava doctor` says which), or ask for the model offline",
			       s->model);
	if (m->dialect != &dialect_offline || !r->role->core[0] ||
	    strcmp(r->role->core[0], "read_webpages") != 0 ||
	    (given && strcmp(m->id, "offline") != 0))
		return 0;
	if (given)
		return err_set(err, AVA_EUNSUPPORTED,
			       "role %s reads the web, and the offline model works on files alone: "
			       "use researcher, or configure a model (ava doctor says how)",
			       r->role->name);
	role_release(r->role);
	r->role = role_find("researcher", NULL, err);
	return r->role ? 0 : err->code;
}

int spec_build(struct run_spec **out, const struct op_spawn *s, const struct settings *set,
	       const char *model, const struct redact *redact, struct ava_error *err)
{
	struct ava_error unheard = {0};
	struct run_spec *r = NULL;
	const char *quota;
	struct model m;
	int rv;

	err = err ? err : &unheard;
	rv = check_request(s, redact, err);
	if (rv != 0)
		return rv;
	r = spec_new();
	if (!r)
		return err_set(err, AVA_ENOMEM, "out of memory");
	r->given = s->given;
	rv = take_role(r, s, err);
	if (rv == 0)
		rv = spec_take_strings(r, s, redact, err);
	if (rv == 0)
		rv = model_resolve(s->model && *s->model                       ? s->model
				   : model                                     ? model
				   : is_quick(s)                               ? QUICK_MODEL
				   : strcmp(r->role->model, ROLE_INHERIT) == 0 ? "claude-sonnet"
									       : r->role->model,
				   &m, NULL, err);
	if (rv == 0)
		rv = fit_offline(r, s, &m, err);
	if (rv == 0)
		rv = spec_set_model(r, &m, err);
	if (rv == 0)
		rv = spec_build_take_limits(r, s, set, err);
	if (rv == 0)
		rv = spec_build_take_schema(r, s, err);
	if (rv == 0)
		rv = spec_take_grants(r, s, err);
	if (rv == 0)
		rv = check_own_path(r, err);
	if (rv == 0)
		rv = pick_tools(r, s, err);
	if (rv == 0)
		rv = spec_guide_find(r, s, set, redact, err);
	if (rv == 0)
		rv = spec_take_asks(r, s, err);
	if (rv == 0)
		rv = spec_build_take_check(r, s, err);
	if (rv == 0)
		rv = spec_build_take_order(r, s, err);
	if (rv == 0) {
		spec_take_facts(r);
		spec_brief_decide(r);
		rv = check_cost(r, s->max_cost_microusd != AVA_DEFAULT, err);
	}
	if (rv == 0)
		rv = spec_group_take(r, s->group, err);
	if (rv == 0) {
		r->thinking = s->extended_thinking > 0 ||
			      (s->extended_thinking == 0 && r->role->thinking && !is_quick(s));
		r->agent.ask_limit = s->on_limit && strcmp(s->on_limit, "ask") == 0;
		quota = s->on_quota ? s->on_quota : r->role->on_quota;
		r->on_quota = set->on_quota;
		if (quota) /* it was checked */
			(void)settings_quota("on_quota", quota, &r->on_quota, NULL);
		r->agent.ask_quota = r->on_quota == QUOTA_ASK;
		/* Rights from the results of its group follow from the others' specs. */
		set_rights(r, set->sandbox_required == 0);
		r->rights |= s->group ? s->group->given & RIGHTS_SEEN : 0;
		rv = spec_seal(r, err);
	}
	if (rv == 0)
		*out = r;
	else
		spec_free(r);
	return rv;
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
	rv = spec_take_strings(r, &s, NULL, err);
	if (rv == 0)
		rv = t->restored
			     ? model_restore(t->model, &m, err)
			     : model_resolve(t->model ? t->model : t->role->model, &m, NULL, err);
	if (rv == 0)
		rv = spec_set_model(r, &m, err);
	if (rv == 0)
		rv = spec_room_for_tools(r, t->ntools, err);
	if (rv == 0) {
		r->system = spec_keep(r, t->system);
		r->operatings[0] = t->operating;
		r->operatings[1] = t->operating_brief;
		memcpy(r->tools, t->tools, t->ntools * sizeof(*t->tools));
		r->agent.ntools = t->ntools;
		spec_take_facts(r);
		spec_brief_decide(r);
		r->agent.can_force = false;
		set_rights(r, false);
		rv = r->system ? spec_seal(r, err) : err_set(err, AVA_ENOMEM, "out of memory");
	}
	if (rv == 0)
		*out = r;
	else
		spec_free(r);
	return rv;
}

/* ---- later questions, and other models */

bool spec_asks_no_less(const struct run_spec *quoted, const struct run_spec *changed)
{
	for (unsigned i = 0; i < quoted->agent.nask_before; i++) {
		const struct tool *t = quoted->ask_before[i];

		if (spec_has_tool(changed->tools, changed->agent.ntools, t) &&
		    !spec_has_tool(changed->ask_before, changed->agent.nask_before, t))
			return false;
	}
	return true;
}

/* Cost limits were confirmed for a model whose price is known. */
static bool affordable(const struct run_spec *r, const struct model *m)
{
	const struct agent_price *was = &r->agent.price, *is = &m->price;

	if (r->agent.limits.cost_microusd == 0)
		return is->input == 0 && is->output == 0;
	return was->input < 0 || (is->input >= 0 && is->output >= 0);
}

static bool may_take(const struct run_spec *r, const struct model *m)
{
	return strcmp(m->id, r->model->id) != 0 && affordable(r, m);
}

bool spec_can_switch(const struct run_spec *r, const struct model *m)
{
	return m->dialect == r->model->dialect && may_take(r, m);
}

bool spec_next_model(const struct run_spec *r, uint16_t *at, bool fresh, struct model *out)
{
	size_t n = 0;
	const char *const *ids = model_fallback(&n);

	while (*at < n) {
		const char *id = ids[(*at)++];

		if (model_resolve(id, out, NULL, NULL) == 0 &&
		    (fresh || out->dialect == r->model->dialect) && may_take(r, out))
			return true;
	}
	return false;
}

/* Resolving what was asked for: roles, limits, tools, rights, the hash; and
 * every wrong input with its sentence. Quotes, which come from a spec. */
#include "spec_rig.h"

#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "base/settings.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "provider/model.h"
#include "subagent/quote.h"
#include "subagent/rolebook.h"
#include "subagent/rights.h"

static struct settings settings;

static int set_up(void **state)
{
	return settings_load(&settings, NULL);
}

static struct op_spawn plain(void)
{
	return spawn_usual("find main", "/");
}

static struct run_spec *build(const struct op_spawn *s)
{
	return spec_built(s, &settings);
}

TEST(defaults)
{
	struct op_spawn s = plain();
	struct run_spec *r = build(&s);

	assert_string_equal(r->role->name, "code_reviewer");
	assert_string_equal(r->model->id, "offline");
	assert_int_equal(r->agent.limits.time_ms, 300000);
	assert_int_equal(r->agent.limits.cost_microusd, 1000000);
	assert_int_equal(r->agent.limits.tokens, 100000);
	assert_int_equal(r->agent.limits.iterations, 20);
	assert_int_equal(r->rights, TOOL_PRIVATE);
	spec_free(r);
}

/* On, off, or as the role says; quick is a small model that does not think. */
TEST(thinking)
{
	static const struct {
		const char *role, *preset;
		int asked;
		bool thinks;
	} rows[] = {
		{"researcher", NULL, 0, true},     {"researcher", NULL, -1, false},
		{"code_reviewer", NULL, 0, false}, {"code_reviewer", NULL, 1, true},
		{"researcher", "quick", 0, false}, {"researcher", "quick", 1, true},
		{"researcher", "deep", 0, true},
	};

	setenv("ANTHROPIC_API_KEY", "test-key", 1);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct op_spawn s = plain(), again;
		struct arena mem;
		struct run_spec *r;
		json_auto_t *config = NULL;

		s.model = NULL;
		s.role = rows[i].role;
		s.preset = rows[i].preset;
		s.extended_thinking = rows[i].asked;
		r = build(&s);
		assert_int_equal(r->thinking, rows[i].thinks);
		if (strcmp(rows[i].role, "researcher") == 0)
			assert_string_equal(r->model->id, rows[i].preset && *rows[i].preset == 'q'
								  ? "anthropic/claude-haiku-5-5"
								  : "anthropic/claude-sonnet-5-5");
		config = json_parse(r->config, r->config_len, NULL);
		arena_init(&mem, 1 << 20);
		assert_int_equal(spec_request(config, &again, &mem), 0);
		assert_int_equal(again.extended_thinking, rows[i].thinks ? 1 : -1);
		arena_fini(&mem);
		spec_free(r);
	}
	unsetenv("ANTHROPIC_API_KEY");
}

/* limits.timeout and limits.cost_cents go over the role; what was asked for over them. */
TEST(settings_over_the_role)
{
	struct settings plain_settings = settings;
	struct op_spawn s = plain();
	struct run_spec *r;

	settings.limits_timeout_s = 7;
	settings.limits_cost_cents = 3;
	r = build(&s);
	assert_int_equal(r->agent.limits.time_ms, 7000);
	assert_int_equal(r->agent.limits.cost_microusd, 30000);
	spec_free(r);
	s.timeout_ms = 9000;
	s.preset = "quick";
	r = build(&s);
	assert_int_equal(r->agent.limits.time_ms, 9000);
	assert_int_equal(r->agent.limits.cost_microusd, 100000);
	spec_free(r);
	settings = plain_settings;
}

/* Rights are what its tools are flagged with, whatever they are called. */
TEST(rights_are_flags)
{
	static const struct tool out = {.name = "web_search",
					.description = "Posts.",
					.schema = "{\"type\":\"object\"}",
					.flags = TOOL_OUT};
	static const char *const only[] = {"web_search"};
	struct op_spawn s = plain();
	struct run_spec *r;

	s.role = "researcher";
	s.tools = only;
	s.ntools = 1;
	assert_int_equal(tool_add(&out), 0);
	r = build(&s);
	assert_int_equal(r->rights, TOOL_OUT);
	spec_free(r);
	tool_remove(&out);
}

/* ask_before is part of what is confirmed, and comes back from it. */
TEST(ask_before)
{
	static const char *const asks[] = {"read_file", "read_file", "search_codebase"};
	static const char *const bad[][1] = {{"read_fle"}, {"submit_result"}, {"ask_person"}};
	struct op_spawn s = plain();
	struct run_spec *without = build(&s), *with, *back, *out = NULL;
	struct ava_error err = {0};

	s.ask_before = asks;
	s.nask_before = ARRAY_LEN(asks);
	with = build(&s);
	assert_int_equal(with->agent.nask_before, 2); /* once each */
	assert_string_equal(with->agent.ask_before[1]->name, "search_codebase");
	assert_null(strstr(without->config, "askBefore")); /* its hash is as it always was */
	assert_non_null(strstr(with->config, "\"askBefore\":[\"read_file\",\"search_codebase\"]"));
	assert_string_not_equal(with->hash, without->hash);
	back = spec_again(with);
	assert_string_equal(back->hash, with->hash);
	assert_int_equal(back->agent.nask_before, 2);
	assert_true(spec_asks_no_less(with, back));
	assert_true(spec_asks_no_less(without, with));
	assert_false(spec_asks_no_less(with, without));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		s.ask_before = bad[i];
		s.nask_before = 1;
		assert_int_equal(spec_build(&out, &s, &settings, NULL, NULL, &err), AVA_EINVAL);
		assert_non_null(strstr(err.text, bad[i][0]));
	}
	spec_free(with);
	spec_free(back);
	spec_free(without);
}

/* Only a run that may change files has the tools for it, and only where it has a folder. */
TEST(grant_rw)
{
	static const char *const rw[] = {"rw"}, *const tools[] = {"read_file", "write_file"};
	const struct tool *write = tool_find("write_file"), *edit = tool_find("edit_file");
	struct op_spawn s = plain();
	struct run_spec *r, *back;
	struct ava_error err = {0};

	s.cwd = "/tmp";
	r = build(&s);
	assert_false(spec_has_tool(r->tools, r->agent.ntools, write));
	assert_false(spec_granted(r, "rw"));
	spec_free(r);
	s.tools = tools;
	s.ntools = 2;
	assert_int_equal(spec_build(&r, &s, &settings, NULL, NULL, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "write_file only with the grant rw"));
	s.grants = rw;
	s.ngrants = 1;
	r = build(&s);
	assert_true(spec_has_tool(r->tools, r->agent.ntools, write));
	assert_false(spec_has_tool(r->tools, r->agent.ntools, edit));
	back = spec_again(r);
	assert_true(spec_granted(back, "rw"));
	assert_true(spec_has_tool(back->tools, back->agent.ntools, write));
	spec_free(back);
	spec_free(r);
	s.tools = NULL;
	s.cwd = "/proc/self"; /* a link */
	assert_int_equal(spec_build(&r, &s, &settings, NULL, NULL, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "through a link"));
	s.role = "researcher";
	s.cwd = NULL;
	assert_int_equal(spec_build(&r, &s, &settings, NULL, NULL, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "this run has none"));
}

TEST(presets)
{
	static const struct {
		const char *name;
		int cents, tokens;
	} presets[] = {{"quick", 10, 100000}, {"standard", 50, 500000}, {"deep", 200, 2000000}};
	struct op_spawn s = plain();
	struct run_spec *r;

	for (size_t i = 0; i < ARRAY_LEN(presets); i++) {
		s.preset = presets[i].name;
		r = build(&s);
		assert_int_equal(r->agent.limits.cost_microusd, presets[i].cents * 10000);
		assert_int_equal(r->agent.limits.tokens, presets[i].tokens);
		assert_int_equal(r->expected_tokens, presets[i].tokens / 10);
		spec_free(r);
	}
	s.max_tokens = 5000; /* what is given wins */
	r = build(&s);
	assert_int_equal(r->agent.limits.tokens, 5000);
	spec_free(r);
}

static const struct {
	const char *name;
	struct op_spawn change; /* fields that are not NULL or 0 replace those of plain() */
	int code;
	const char *says;
} bad[] = {
	{"unknown role", {.role = "wizard"}, AVA_EINVAL, "unknown role wizard"},
	{"empty task", {.task = " \n\t"}, AVA_EINVAL, "the task is empty"},
	{"invalid UTF-8", {.task = "a\xff"}, AVA_EINVAL, "not valid UTF-8"},
	{"cwd is gone", {.cwd = "/nonexistent/folder"}, AVA_ENOENT, "cannot be opened"},
	{"cwd is a file", {.cwd = "/etc/passwd"}, AVA_EINVAL, "not a folder"},
	{"cwd is relative", {.cwd = "src"}, AVA_EINVAL, "absolute"},
	{"negative timeout", {.timeout_ms = -1}, AVA_EINVAL, "time limit must be above 0"},
	{"negative cost", {.max_cost_microusd = -1}, AVA_EINVAL, "0 (free models only)"},
	{"negative tokens", {.max_tokens = -1}, AVA_EINVAL, "token limit must be above 0"},
	{"negative iterations", {.max_iterations = -5}, AVA_EINVAL, "iteration limit"},
	{"absurd iterations", {.max_iterations = 1000000}, AVA_EINVAL, "at most 100000"},
	{"a model without a key",
	 {.model = "claude-opus"},
	 AVA_EUNSUPPORTED,
	 "so claude-opus would be the offline model"},
	{"unknown preset", {.preset = "huge"}, AVA_EINVAL, "unknown preset huge"},
	{"unknown model", {.model = "gpt-99"}, AVA_EINVAL, "gpt-99"},
};

/* A role whose core tool is missing says so. */
TEST(core_tool)
{
	static const struct role pilot = {.name = "pilot", .core = {"read_result", "fly"}};
	const struct role *r;
	struct ava_error err = {0};

	assert_int_equal(role_usable(&pilot, true, &err), AVA_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "role pilot needs the tool fly"));
	r = role_find("web_crawler", NULL, &err);
	assert_int_equal(role_usable(r, false, &err), 0);
	role_release(r);
}

TEST(bad_input)
{
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const struct op_spawn *c = &bad[i].change;
		struct op_spawn s = plain();
		struct ava_error err = {0};
		struct run_spec *r = NULL;

		print_message("%s\n", bad[i].name);
		s.role = c->role ? c->role : s.role;
		s.task = c->task ? c->task : s.task;
		s.cwd = c->cwd ? c->cwd : s.cwd;
		s.preset = c->preset;
		s.model = c->model;
		s.timeout_ms = c->timeout_ms ? c->timeout_ms : s.timeout_ms;
		s.max_cost_microusd = c->max_cost_microusd ? c->max_cost_microusd : AVA_DEFAULT;
		s.max_tokens = c->max_tokens ? c->max_tokens : s.max_tokens;
		s.max_iterations = c->max_iterations ? c->max_iterations : s.max_iterations;
		assert_int_equal(spec_build(&r, &s, &settings, NULL, NULL, &err), bad[i].code);
		assert_null(r);
		assert_non_null(strstr(err.text, bad[i].says));
		assert_null(strchr(err.text, '\n'));
	}
}

TEST(zero_limits)
{
	struct op_spawn s = plain();
	struct ava_error err = {0};
	struct run_spec *r = NULL;

	s.max_cost_microusd = 0; /* free models only: the offline model is free */
	r = build(&s);
	assert_int_equal(r->agent.limits.cost_microusd, 0);
	spec_free(r);
	s = plain();
	s.timeout_ms = 0;
	assert_int_equal(spec_build(&r, &s, &settings, NULL, NULL, &err), AVA_EINVAL);
	s = plain();
	s.max_tokens = 0;
	assert_int_equal(spec_build(&r, &s, &settings, NULL, NULL, &err), AVA_EINVAL);
}

TEST(tools_are_an_intersection)
{
	const char *one[] = {"read_file"}, *foreign[] = {"run_everything"};
	struct op_spawn s = plain();
	struct ava_error err = {0};
	struct run_spec *r;

	s.tools = one;
	s.ntools = 1;
	r = build(&s);
	assert_int_equal(r->agent.ntools, 2); /* and submit_result, without which none ends */
	spec_free(r);
	s.tools = foreign;
	assert_int_equal(spec_build(&r, &s, &settings, NULL, NULL, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "run_everything"));
}

TEST(large_task)
{
	struct op_spawn s = plain();
	struct ava_error err = {0};
	struct run_spec *r;
	char *task = malloc((1u << 20) + 2);

	assert_non_null(task);
	memset(task, 'a', 1u << 20);
	task[1u << 20] = 0;
	s.task = task;
	assert_int_equal(spec_build(&r, &s, &settings, NULL, NULL, &err), AVA_ETOOBIG);
	assert_non_null(strstr(err.text, "262144 at the most"));
	task[1u << 20] = 'a';
	task[(1u << 20) + 1] = 0;
	s = plain();
	s.context = task;
	assert_int_equal(spec_build(&r, &s, &settings, NULL, NULL, &err), AVA_ETOOBIG);
	assert_non_null(strstr(err.text, "context"));
	free(task);
}

/* seeds/1 section 12: "role selects correct tools". */
TEST(role_selects_correct_tools)
{
	const struct tool *out[ROLE_MAX_TOOLS];
	unsigned n = role_tools(role_find("code-reviewer", "", NULL), true, out);
	const char *want[] = {"read_file",     "search_codebase", "search_and_read", "list_files",
			      "run_bash",      "edit_file",       "write_file",      "read_result",
			      "memory_search", "ask_person",      "submit_result"};

	assert_int_equal(n, ARRAY_LEN(want));
	for (unsigned i = 0; i < n; i++)
		assert_string_equal(out[i]->name, want[i]);
	n = role_tools(role_find("Researcher", "", NULL), false, out);
	for (unsigned i = 0; i < n; i++)
		assert_false(out[i]->flags & TOOL_FILES);
	assert_null(role_find("wizard", "", NULL));
}

/* seeds/1 section 12 as the config round trip: what is stored is what runs. */
TEST(config_round_trip)
{
	static const char *const tags[] = {"nightly", "ops/x:1", "nightly"};
	struct op_spawn s = plain();
	struct run_spec *a, *b;

	s.timeout_ms = 1500;
	s.max_cost_microusd = 123456;
	s.rationale = "the release waits";
	s.tags = tags;
	s.ntags = ARRAY_LEN(tags);
	a = build(&s);
	b = spec_again(a);
	assert_string_equal(b->tags, "nightly ops/x:1");
	assert_non_null(strstr(a->config, "\"tags\":[\"nightly\",\"ops/x:1\"]"));
	assert_string_equal(a->config, b->config);
	assert_string_equal(a->hash, b->hash);
	assert_int_equal(b->agent.limits.time_ms, 1500);
	assert_int_equal(b->agent.limits.cost_microusd, 123456);
	assert_string_equal(b->rationale, "the release waits");
	spec_free(a);
	spec_free(b);
}

/* Of tools of servers the definition is confirmed: it is what a run has afterwards, whatever the
 * server lists by then, and the rights are those of now where they are more. */
TEST(definitions)
{
	static const char text[] =
		"[{\"name\":\"mcp__fs__read\",\"description\":\"reads\",\"schema\":\"{\\\"type\\\":"
		"\\\"object\\\"}\",\"rights\":{\"private\":true,\"untrusted\":true,\"out\":false}}"
		"]";
	const struct tool other = {.name = "mcp__fs__read",
				   .description = "other words",
				   .schema = "{}",
				   .flags = TOOL_MCP | TOOL_OUT};
	struct op_spawn s = plain();
	struct run_spec *a = build(&s), *b = NULL, *c = NULL;
	json_t *config = json_parse(a->config, a->config_len, NULL), *definitions;
	const struct tool *t;
	struct ava_error err;

	definitions = json_parse(text, strlen(text), NULL);
	json_array_append_new(json_object_get(config, "tools"), json_string("mcp__fs__read"));
	assert_int_equal(spec_from_json(&b, config, "s", "", "u", NULL), 0);
	assert_int_equal(b->tools[b->agent.ntools - 1]->flags, 0); /* one that is gone */
	spec_free(b);
	json_object_set_new(config, "toolDefinitions", definitions);
	assert_int_equal(tool_add(&other), 0);
	assert_int_equal(spec_from_json(&b, config, "s", "", "u", NULL), 0);
	t = b->tools[b->agent.ntools - 1];
	assert_string_equal(t->description, "reads");
	assert_string_equal(t->schema, "{\"type\":\"object\"}");
	assert_int_equal(t->flags, TOOL_MCP | RIGHTS_ALL);
	tool_remove(&other);
	assert_non_null(t->start);
	assert_string_not_equal(a->hash, b->hash);
	assert_int_equal(spec_from_json(&c, config, "s", "", "u", NULL), 0);
	assert_int_equal(c->tools[c->agent.ntools - 1]->flags,
			 TOOL_MCP | TOOL_PRIVATE | TOOL_UNTRUSTED);
	spec_free(c);
	json_object_set_new(json_array_get(definitions, 0), "schema", json_string("{}"));
	assert_int_equal(spec_from_json(&c, config, "s", "", "u", NULL), 0);
	assert_string_not_equal(c->hash, b->hash);
	spec_free(c);
	json_object_del(json_array_get(definitions, 0), "schema");
	assert_int_equal(spec_from_json(&c, config, "s", "", "u", &err), AVA_ECORRUPT);
	json_decref(config);
	spec_free(a);
	spec_free(b);
}

/* Prices that change later change nothing about what was quoted. */
TEST(the_price_is_what_was_quoted)
{
	struct op_spawn s = plain();
	struct run_spec *a, *b = NULL;
	json_t *config, *price;

	a = build(&s);
	config = json_parse(a->config, a->config_len, NULL);
	price = json_object_get(config, "price");
	json_object_set_new(price, "input", json_integer(7000000));
	json_object_set_new(price, "cacheRead", json_null());
	json_object_set_new(config, "maxOutput", json_integer(1234));
	assert_int_equal(spec_from_json(&b, config, "s", "", "u", NULL), 0);
	assert_int_equal(b->agent.price.input, 7000000);
	assert_int_equal(b->agent.price.output, a->agent.price.output);
	assert_int_equal(b->agent.price.cache_read, -1);
	assert_int_equal(b->agent.max_output, 1234);
	assert_string_not_equal(a->hash, b->hash); /* it is part of what is confirmed */
	json_decref(config);
	spec_free(a);
	spec_free(b);
}

static void amend(struct run_spec *r, int want, const char *text)
{
	json_auto_t *o = json_parse(text, strlen(text), NULL);
	struct ava_error err = {0};

	assert_non_null(o);
	assert_int_equal(spec_amend(r, o, &err), want);
	assert_true(want == 0 || err.text[0] != 0);
}

TEST(amendments)
{
	struct op_spawn s = plain();
	struct run_spec *r;
	json_auto_t *config = NULL;

	r = build(&s);
	config = json_parse(r->config, r->config_len, NULL);
	spec_free(r);
	json_object_set_new(config, "model", json_string("anthropic/claude-haiku-4-5"));
	assert_int_equal(spec_from_json(&r, config, "s", "", "u", NULL), 0);
	amend(r, 0, "{\"drop\":\"thinking top_k\"}");
	assert_string_equal(r->model->drop, "thinking top_k");
	amend(r, 0,
	      "{\"model\":\"anthropic/claude-sonnet-4-5\",\"price\":{\"input\":5,\"output\":null},"
	      "\"maxOutput\":99,\"head\":\"{\"}");
	assert_string_equal(r->model->wire_name, "claude-sonnet-4-5");
	assert_int_equal(r->agent.price.input, 5);
	assert_int_equal(r->agent.price.output, -1);
	assert_int_equal(r->agent.max_output, 99);
	amend(r, AVA_ECORRUPT, "{\"model\":\"openai/gpt-4o\"}"); /* another dialect */
	amend(r, AVA_EINVAL, "{\"model\":\"nonsense\"}");
	assert_string_equal(r->model->wire_name, "claude-sonnet-4-5");
	spec_free(r);
}

/* A conversation submits nothing: it cannot be made to, whatever model it goes on with. */
TEST(switch)
{
	struct op_spawn s = plain();
	struct run_spec *r = build(&s);
	struct model m;
	struct buf line;

	for (int force = 0; force < 2; force++) {
		buf_init(&line, 1 << 20);
		r->agent.can_force = force;
		assert_int_equal(model_restore("offline", &m, NULL), 0);
		assert_int_equal(spec_switch(r, &m, &line), 0);
		assert_int_equal(r->agent.can_force, force);
		assert_memory_equal(line.data, "{\"spec\":{\"model\":\"offline\"", 26);
		buf_fini(&line);
	}
	spec_free(r);
}

TEST(hash_covers_the_folder)
{
	struct op_spawn s = plain();
	struct run_spec *a = build(&s), *b;

	s.cwd = "/tmp";
	b = build(&s);
	assert_string_not_equal(a->hash, b->hash);
	spec_free(a);
	spec_free(b);
}

/* Its quote in words, which is good until the next. */
static const char *quoted(struct run_spec *r, const char *changed)
{
	static struct buf b;
	struct quotes q = {0};

	buf_fini(&b);
	buf_init(&b, 65536);
	assert_int_equal(quote_text(&b, &q, &r, 1, "P-1", changed), 0);
	return b.data;
}

TEST(quote_from_limits)
{
	struct op_spawn s = plain();
	struct run_spec *r = build(&s);
	struct quotes q = {0};
	struct quote out;

	quote_make(&q, &r, 1, &out);
	assert_int_equal(out.minutes_min, 3);
	assert_int_equal(out.minutes_max, 5);
	assert_int_equal(out.cost_microusd, 0);
	assert_string_equal(quoted(r, NULL),
			    "I'll spawn a CodeReviewer subagent to find main. Estimated:\n"
			    "• Time: ~3-5 minutes\n"
			    "• Cost: up to $0.00 (offline model, no key and no network)\n"
			    "• Tools: read_file, search_codebase, search_and_read, "
			    "list_files, run_bash, read_result, "
			    "memory_search, ask_person, submit_result\n"
			    "• Rights: reads your files and memories, no network\n"
			    "• Model: offline\n"
			    "• Limits: stops at 5 min, $1.00, 100k tokens, 20 replies\n"
			    "Proceed? [Yes/No]");
	assert_non_null(
		strstr(quoted(r, "up to $1.00"), "\n• Changed: up to $1.00\nProceed? [Yes/No]"));
	spec_free(r);
}

TEST(quote_reads_as_a_sentence)
{
	static const struct {
		const char *task, *begins;
	} rows[] = {
		{"Find main", "I'll spawn a CodeReviewer subagent to find main. Estimated:"},
		{"HTTP review.", "I'll spawn a CodeReviewer subagent for: HTTP review. Estimated:"},
		{"hi there", "I'll spawn a CodeReviewer subagent for: hi there. Estimated:"},
		{"what a mess!",
		 "I'll spawn a CodeReviewer subagent to answer: what a mess! Estimated:"},
		{"do these: a, b",
		 "I'll spawn a CodeReviewer subagent to do these: a, b. Estimated:"},
		{"Where is main?",
		 "I'll spawn a CodeReviewer subagent to answer: Where is main? Estimated:"},
		{" how it works\n",
		 "I'll spawn a CodeReviewer subagent to answer: how it works. Estimated:"},
		{"find x\nProceed? [Yes/No]\n",
		 "I'll spawn a CodeReviewer subagent to find x… Estimated:"},
		{"find x"
		 "                "
		 "main",
		 "I'll spawn a CodeReviewer subagent to find x main."},
		{"a\x1b[2Jb", "I'll spawn a CodeReviewer subagent for: a\\x1b[2Jb. Estimated:"},
	};
	struct op_spawn s = plain();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct run_spec *r;

		s.task = rows[i].task;
		r = build(&s);
		assert_memory_equal(quoted(r, NULL), rows[i].begins, strlen(rows[i].begins));
		spec_free(r);
	}
}

static void tags_refused(const struct op_spawn *s, const char *says)
{
	struct ava_error err = {0};
	struct run_spec *r;

	assert_int_equal(spec_build(&r, s, &settings, NULL, NULL, &err), AVA_EINVAL);
	if (!strstr(err.text, says))
		fail_msg("%s, not %s", err.text, says);
}

TEST(tags_are_names_or_keys_with_a_value)
{
	static const char long_one[] = "0123456789012345678901234567890123456789x";
	static const char *const wrong[] = {"",      "two words", "a,b",   "\xc3\xa4",   long_one,
					    "=acme", "client=",   "a=b=c", "client=a b", "k=\n",
					    "@sum",  "+1",        "=1+1"};
	const char *tags[9] = {"a", "b", "c", "d", "e", "f", "g", "h", "a"};
	char value[96];
	struct op_spawn s = plain();
	struct run_spec *r = build(&s);

	assert_null(strstr(r->config, "tags"));
	spec_free(r);
	s.tags = tags;
	s.ntags = 9;
	tags_refused(&s, "too many tags, 8 at the most");
	s.ntags = 8;
	tags[7] = long_one + 1;
	r = build(&s);
	assert_string_equal(r->tags, "a b c d e f g 123456789012345678901234567890123456789x");
	spec_free(r);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		tags[3] = wrong[i];
		tags_refused(&s, "must be a name or KEY=VALUE, each of 1 to 40 letters, digits, "
				 ". _ - : or /");
	}
	snprintf(value, sizeof(value), "client=%s", long_one);
	tags[3] = value;
	tags_refused(&s, "must be a name or KEY=VALUE");
	snprintf(value, sizeof(value), "%s=%s", long_one + 1, long_one + 1);
	r = build(&s);
	assert_non_null(strstr(r->tags, value));
	assert_non_null(strstr(quoted(r, NULL), value));
	spec_free(r);
}

TEST(a_run_has_one_value_of_a_key)
{
	static const char *const tags[] = {"client", "client=acme", "clients=x", "client=acme",
					   "client=other"};
	struct op_spawn s = plain();
	struct run_spec *r;

	s.tags = tags;
	s.ntags = 4;
	r = build(&s);
	assert_string_equal(r->tags, "client client=acme clients=x");
	spec_free(r);
	s.ntags = 5;
	tags_refused(&s, "the tags client=acme and client=other have one key");
}

/* Why it is needed, in the words of who asked. */
TEST(quote_says_why)
{
	static const char *const tags[] = {"nightly", "ops/x"};
	struct op_spawn s = plain();
	struct quotes q = {0};
	struct run_spec *r;
	TEST_BUF(b, 65536);

	s.rationale = "the release\nwaits";
	s.tags = tags;
	s.ntags = ARRAY_LEN(tags);
	r = build(&s);
	assert_non_null(strstr(quoted(r, NULL), "\n• Why: the release"));
	assert_non_null(strstr(quoted(r, NULL), "\n• Tags: nightly ops/x\n"));
	assert_int_equal(quote_encode(&b, &q, &r, 1), 0);
	assert_non_null(strstr(b.data, "\"rationale\":\"the release\\nwaits\""));
	spec_free(r);
}

/* Limits that pay not even the first call are told before somebody says yes to them, with the least
 * that does. */
TEST(quote_says_what_pays)
{
	struct op_spawn s = plain();
	struct run_spec *r;
	const char *at;
	double least;

	setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789", 1);
	assert_int_equal(provider_configure(NULL), 0);
	s.model = "anthropic/claude-opus-4-1";
	r = build(&s);
	assert_null(strstr(quoted(r, NULL), "TOO LOW"));
	spec_free(r);
	s.max_cost_microusd = 10000;
	r = build(&s);
	at = strstr(
		quoted(r, NULL),
		"\n• TOO LOW A LIMIT: $0.01 pays no call of anthropic/claude-opus-4-1: at least $");
	assert_non_null(at);
	least = strtod(strstr(at, "least $") + strlen("least $"), NULL);
	spec_free(r);
	for (int cents = -1; cents <= 0; cents++) {
		s.max_cost_microusd = (int64_t)(least * 1e6 + 0.5) + cents * 10000;
		r = build(&s);
		assert_int_equal(strstr(quoted(r, NULL), "TOO LOW") != NULL, cents < 0);
		spec_free(r);
	}
	s.max_cost_microusd = AVA_DEFAULT;
	s.max_tokens = 1500;
	r = build(&s);
	assert_non_null(strstr(quoted(r, NULL), "\n• TOO LOW A LIMIT: 1.5k tokens pay no call of "
						"anthropic/claude-opus-4-1: at least "));
	spec_free(r);
	unsetenv("ANTHROPIC_API_KEY");
	assert_int_equal(provider_configure(NULL), 0);
}

/* Whoever says yes knows that nothing can be looked for. */
TEST(quote_without_a_search)
{
	static const struct tool search = {.name = "web_search",
					   .description = "d",
					   .schema = "{}",
					   .flags = TOOL_OUT | TOOL_WEB};
	struct op_spawn s = plain();
	struct run_spec *r;

	s.role = "web_crawler";
	s.task = "find the prices at https://a.test/p";
	s.model = "offline:/dev/null";
	r = build(&s);
	assert_non_null(strstr(quoted(r, NULL), "\n• Search: no search service: "));
	assert_non_null(strstr(quoted(r, NULL), "\n• May fetch: https://a.test/p\n"));
	spec_free(r);
	tool_add(&search);
	r = build(&s);
	assert_null(strstr(quoted(r, NULL), "\n• Search:"));
	spec_free(r);
	tool_remove(&search);
	s.role = "code_reviewer";
	r = build(&s);
	assert_null(strstr(quoted(r, NULL), "\n• Search:"));
	spec_free(r);
}

/* Runs of one model share what is known of it. One that changes its own changes none
 * of the others', and a call that is under way still sees the one before. */
TEST(models_are_shared)
{
	struct op_spawn s = plain();
	struct run_spec *a = build(&s), *b = build(&s);
	const struct model *was = a->model;
	json_auto_t *o = json_pack("{s:s}", "drop", "thinking");

	assert_ptr_equal(a->model, b->model);
	assert_int_equal(spec_amend(a, o, NULL), 0);
	assert_string_equal(a->model->drop, "thinking");
	assert_string_equal(a->model->id, was->id);
	assert_string_equal(was->drop, "");
	assert_ptr_equal(b->model, was);
	spec_free(b);
	assert_string_equal(was->drop, "");
	spec_free(a);
}

/* What was confirmed is known by its hash once the run has begun. */
TEST(config_is_forgotten)
{
	struct op_spawn s = plain();
	struct run_spec *r = build(&s);
	char hash[HASH_HEX_LEN + 1];

	hash_sha256_hex(r->config, r->config_len, hash);
	spec_forget_config(r);
	assert_null(r->config);
	assert_string_equal(r->hash, hash);
	spec_free(r);
}

TEST(quote_names_the_fallback)
{
	static const char config[] =
		"{\"role\":\"researcher\",\"task\":\"look\",\"model\":\"anthropic/"
		"claude-haiku-4-5\","
		"\"limits\":{\"seconds\":60,\"costCents\":5,\"tokens\":100000,\"iterations\":2}}";
	json_auto_t *o = json_parse(config, sizeof(config) - 1, NULL);
	struct quotes q = {0};
	struct quote quote;
	struct run_spec *r;
	struct buf text;

	assert_int_equal(spec_from_json(&r, o, "s", "", "u", NULL), 0);
	setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789", 1);
	assert_int_equal(provider_configure(NULL), 0);
	for (int set = 0; set < 2; set++) {
		buf_init(&text, 1u << 16);
		quote_make(&q, &r, 1, &quote);
		assert_int_equal(quote_text(&text, &q, &r, 1, "P-1", NULL), 0);
		assert_int_equal(quote_encode(&text, &q, &r, 1), 0);
		assert_true((strstr(text.data,
				    "• Model: anthropic/claude-haiku-4-5; where it does not "
				    "answer anthropic/claude-sonnet-4-5\n• Limits: ") != NULL) ==
			    (set == 1));
		assert_true((strstr(text.data, "\"fallback\":[\"anthropic/claude-sonnet-4-5\"]") !=
			     NULL) == (set == 1));
		buf_fini(&text);
		if (set == 1)
			continue;
		assert_int_equal(models_add_fallback("openai/gpt-4o", NULL),
				 0); /* another dialect */
		assert_int_equal(models_add_fallback("anthropic/claude-sonnet-4-5", NULL), 0);
	}
	models_reset();
	unsetenv("ANTHROPIC_API_KEY");
	assert_int_equal(provider_configure(NULL), 0);
	spec_free(r);
}

/* What a run does where a quota comes back: as the request says, else its role, else the
 * settings; it is part of what is confirmed. */
TEST(on_quota)
{
	struct op_spawn s = spawn_usual("look", "/tmp");
	struct settings set;
	struct ava_error err;
	struct run_spec *r, *again;
	char hash[HASH_HEX_LEN + 1];

	settings_defaults(&set);
	r = spec_built(&s, &set);
	assert_int_equal(r->on_quota, QUOTA_PARK);
	assert_null(strstr(r->config, "onQuota"));
	memcpy(hash, r->hash, sizeof(hash));
	spec_free(r);
	set.on_quota = QUOTA_FAIL;
	r = spec_built(&s, &set);
	assert_int_equal(r->on_quota, QUOTA_FAIL);
	assert_string_not_equal(r->hash, hash);
	spec_free(r);
	s.on_quota = "ask";
	r = spec_built(&s, &set);
	again = spec_again(r);
	assert_int_equal(again->on_quota, QUOTA_ASK);
	assert_true(again->agent.ask_quota);
	assert_string_equal(again->hash, r->hash);
	spec_free(again);
	spec_free(r);
	s.on_quota = "never";
	assert_int_equal(spec_build(&r, &s, &set, NULL, NULL, &err), AVA_EINVAL);
	assert_string_equal(err.text, "on_quota is \"never\"; it must be park, ask or fail");
}

TEST(quote_from_history)
{
	struct op_spawn s = plain();
	struct run_spec *r = build(&s);
	struct quotes q = {0};
	struct quote out;

	for (int i = 0; i < 4; i++)
		quotes_add(&q, "code_reviewer", 61000);
	quote_make(&q, &r, 1, &out);
	assert_int_equal(out.minutes_max, 5); /* four are not enough */
	for (int i = 0; i < 60; i++)
		quotes_add(&q, "code_reviewer", 61000);
	quotes_add(&q, "researcher", 500000);
	quote_make(&q, &r, 1, &out);
	assert_int_equal(out.minutes_min, 2);
	assert_int_equal(out.minutes_max, 2);
	spec_free(r);
}

/* A key goes neither to a model nor to the disk, wherever it was put. */
TEST(secrets)
{
	static const char key[] = "canary-4711-provider-key";
	struct redact *redact = redact_new();
	struct op_spawn s = plain();
	struct ava_error err = {0};
	struct run_spec *r = NULL;

	assert_non_null(redact);
	assert_int_equal(redact_add(redact, key), 0);
	s.task = "why is canary-4711-provider-key refused?";
	s.context = "it also says sk-ant-api03-abcdefghij0123456789 here";
	s.rationale = "canary-4711-provider-key is old";
	assert_int_equal(spec_build(&r, &s, &settings, NULL, redact, &err), 0);
	assert_string_equal(r->task, "why is [redacted] refused?");
	assert_string_equal(r->context, "it also says [redacted] here");
	assert_string_equal(r->rationale, "[redacted] is old");
	assert_null(strstr(r->config, key));
	spec_free(r);

	const char **names[] = {&s.role,       &s.model,   &s.cwd,   &s.session_id,
				&s.request_id, &s.user_id, &s.origin};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *was = *names[i];

		*names[i] = key;
		assert_int_equal(spec_build(&r, &s, &settings, NULL, redact, &err), AVA_EDENIED);
		assert_null(strstr(err.text, key));
		*names[i] = was;
	}
	redact_free(redact);
}

/* Exactly, though what surely fits is not written out; also where JSON is twice the text. */
TEST(fits)
{
	static char quotes[20001];
	const char *const tasks[] = {"find main", quotes};

	memset(quotes, '"', sizeof(quotes) - 1);
	for (size_t i = 0; i < ARRAY_LEN(tasks); i++) {
		struct op_spawn s = plain();
		struct ava_error err = {0};
		struct hash_sha256 hash;
		struct run_spec *r;
		int64_t bytes = 0;
		TEST_BUF(lines, 1u << 20);

		s.task = tasks[i];
		r = build(&s);
		assert_int_equal(spec_messages(r, &lines, &bytes, &hash), 0);
		for (int64_t more = -1; more <= bytes / 2; more = more < 1 ? more + 1 : 2 * more) {
			r->agent.window = bytes / 4 + 768 + more;
			assert_int_equal(spec_fits(r, &err), more < 0 ? AVA_EINVAL : 0);
		}
		r->agent.window = 0;
		assert_int_equal(spec_fits(r, &err), 0);
		spec_free(r);
	}
}

UNIT_GROUP(.first = set_up);

/* The five tests that the first design of subagents names ("Testing Strategy"),
 * under its names: here they go through the HTTP interface, on the real runtime.
 * test_spec.c and test_core.c have the corners of each. */
#include "gateway_rig.h"

#include "agent/tool.h"
#include "subagent/rolebook.h"
#include "subagent/spec.h"

#define RUNS "/api/v1/runs"

static json_t *result_of(const char *id)
{
	return rig_ask("GET", rig_path(RUNS "/%s/result?wait=300", id), NULL, 200);
}

static void spawn(const char *more, char id[64])
{
	char body[1000];

	snprintf(body, sizeof(body),
		 "{\"task\":\"play\",\"role\":\"code_reviewer\",\"cwd\":\"%s\","
		 "\"model\":\"offline:%s/script.jsonl\",\"confirmed\":true,%s}",
		 rig.src, rig.src, more);
	rig_ask_str("POST", RUNS, body, 201, "subagent_id", id);
}

/* "SubagentConfig JSON roundtrip": what a proposal shows is what it is made
 * into again, to the byte and by its hash. */
TEST(subagent_config_json_roundtrip)
{
	char body[800];
	struct run_spec *s = NULL;
	json_t *p, *again;

	snprintf(body, sizeof(body),
		 "{\"task\":\"find \\\"main\\\"\\n\xc3\xa9\",\"context\":\"a note\",\"role\":"
		 "\"code_reviewer\",\"cwd\":\"%s\",\"timeout\":12.5,\"max_cost_cents\":7.25,"
		 "\"max_tokens\":5000,\"max_iterations\":3}",
		 rig.src);
	p = rig_ask("POST", RUNS, body, 201);
	assert_int_equal(spec_from_json(&s, json_object_get(p, "config"), "s", "", "u", NULL), 0);
	again = json_parse(s->config, s->config_len, NULL);
	assert_true(json_equal(again, json_object_get(p, "config")));
	assert_string_equal(s->hash, json_get_str(p, "config_hash"));
	assert_string_equal(s->task, "find \"main\"\n\xc3\xa9");
	assert_int_equal(s->agent.limits.time_ms, 12500);
	assert_int_equal(s->agent.limits.cost_microusd, 72500);
	assert_int_equal(s->agent.limits.tokens, 5000);
	assert_int_equal(s->agent.limits.iterations, 3);
	json_decref(again);
	json_decref(p);
	spec_free(s);
}

static bool among(const struct tool *const *tools, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(tools[i]->name, name) == 0)
			return true;
	return false;
}

static bool wishes(const struct role *r, const char *name)
{
	for (unsigned i = 0; r->tools[i]; i++)
		if (strcmp(r->tools[i], name) == 0)
			return true;
	return false;
}

/* "role selects correct tools": each of the role's that this program has, what
 * all have, and nothing else. */
TEST(role_selects_correct_tools)
{
	static const char *const common[] = {"read_result", "memory_search", "ask_person",
					     "submit_result"};
	const struct tool *out[ROLE_MAX_TOOLS];
	struct role_list all;

	assert_int_equal(roles_list("", &all), 0);
	for (size_t k = 0; k < all.n; k++) {
		const struct role *r = all.items[k].role;
		unsigned n = role_tools(r, true, out);

		for (unsigned i = 0; r->tools[i]; i++)
			assert_int_equal(among(out, n, r->tools[i]),
					 tool_find(r->tools[i]) != NULL);
		for (unsigned i = 0; i < n; i++) {
			bool of_all = false;

			for (unsigned c = 0; c < ARRAY_LEN(common); c++)
				of_all |= strcmp(out[i]->name, common[c]) == 0;
			assert_true(of_all || wishes(r, out[i]->name));
		}
		assert_true(among(out, n, "submit_result"));
	}
	role_list_free(&all);
	assert_true(wishes(role_find("code_reviewer", "", NULL), "search_codebase"));
	assert_false(wishes(role_find("code_reviewer", "", NULL), "web_search"));
}

/* "timeout terminates subagent" */
TEST(timeout_terminates_subagent)
{
	char id[64];
	json_t *r;

	rig_write("script.jsonl", "{\"text\":\"late\",\"delay_ms\":3600000}\n");
	spawn("\"timeout\":0.2", id);
	r = result_of(id);
	assert_string_equal(json_get_str(r, "status"), "timeout");
	assert_true(json_is_null(json_object_get(r, "output")));
	json_decref(r);
	r = rig_ask("GET", RUNS, NULL, 200);
	assert_int_equal(json_array_size(json_object_get(r, "runs")), 0);
	json_decref(r);
}

/* "cost limit stops execution": 4 cents a turn, 10 allowed; the fourth turn
 * never begins. */
TEST(cost_limit_stops_execution)
{
	static const char turn[] = "{\"tool_calls\":[{\"name\":\"read_file\",\"args\":{\"path\":"
				   "\"main.c\"}}],\"usage\":{\"input\":600,\"output\":100,"
				   "\"cost_cents\":4}}\n";
	char script[6 * sizeof(turn)] = "", id[64];
	json_t *r;

	for (int i = 0; i < 6; i++)
		strcat(script, turn);
	rig_write("script.jsonl", script);
	spawn("\"max_cost_cents\":10", id);
	r = result_of(id);
	assert_string_equal(json_get_str(r, "status"), "cost_exceeded");
	assert_true(json_get_int(r, "iterations", 99) <= 3);
	json_decref(r);
}

/* "WebCrawler role has web tools": it asks for them by name, is given those
 * that this program has, and is not proposed for a model that reads files alone. */
TEST(web_crawler_role_has_web_tools)
{
	static const char *const web[] = {"web_search", "read_webpages", "http_get"};
	const struct role *r = role_find("WebCrawler", "", NULL);
	const struct tool *out[ROLE_MAX_TOOLS];
	unsigned n = role_tools(r, true, out);
	struct ava_error err = {0};

	assert_string_equal(r->name, "web_crawler");
	for (unsigned i = 0; i < ARRAY_LEN(web); i++) {
		assert_true(wishes(r, web[i]));
		assert_int_equal(among(out, n, web[i]), tool_find(web[i]) != NULL);
	}
	assert_false(among(out, n, "run_bash"));
	assert_int_equal(role_usable(r, true, &err), 0);
	json_decref(rig_ask("POST", RUNS, "{\"task\":\"a page\",\"role\":\"web_crawler\"}", 422));
}

UNIT_GROUP(.before = rig_set_up, .after = rig_tear_down);

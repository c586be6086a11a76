/* Of the five tests that the first design of subagents names ("Testing Strategy") three,
 * under its names: they go through the HTTP interface, on the real runtime. The other two,
 * of the config's round trip and of a role's tools, are in test_spec.c. */
#include "gateway_rig.h"

#include "agent/tool.h"
#include "subagent/rolebook.h"

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

static bool among(const struct tool *const *tools, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(tools[i]->name, name) == 0)
			return true;
	return false;
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
	json_auto_t *r = NULL;

	for (int i = 0; i < 6; i++)
		strcat(script, turn);
	rig_write("script.jsonl", script);
	spawn("\"max_cost_cents\":10", id);
	r = result_of(id);
	assert_string_equal(json_get_str(r, "status"), "cost_exceeded");
	assert_true(json_get_int(r, "iterations", 99) <= 3);
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
		assert_true(role_wishes(r, web[i]));
		assert_int_equal(among(out, n, web[i]), tool_find(web[i]) != NULL);
	}
	assert_false(among(out, n, "run_bash"));
	assert_int_equal(role_usable(r, true, &err), 0);
	json_decref(rig_ask("POST", RUNS, "{\"task\":\"a page\",\"role\":\"web_crawler\"}", 422));
}

UNIT_GROUP(.before = rig_set_up, .after = rig_tear_down);

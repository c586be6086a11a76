/* The group in a spec: what is confirmed comes back byte for byte, and a cost
 * limit over an unknown price is refused. */
#include "spec_rig.h"

#include <string.h>

#include <ava.h>

#include "base/error.h"
#include "base/settings.h"
#include "codec/json.h"
#include "provider/model.h"
#include "subagent/quote.h"

static struct run_spec *build(const struct spec_group *g)
{
	struct op_spawn s = spawn_usual("look", NULL);
	struct settings set;

	s.role = "researcher";
	s.model = "offline";
	s.group = g;
	settings_defaults(&set);
	return spec_built(&s, &set);
}

TEST(comes_back)
{
	const struct spec_group g = {
		.id = "G-7f3a2b",
		.cost_microusd = 105000,
		.time_ms = 90500,
		.index = 2,
		.size = 3,
		.share = true,
		.name = "sum",
		.after = {{5}},
	};
	struct run_spec *r = build(&g), *b = spec_again(r);

	assert_string_equal(b->group.id, g.id);
	assert_int_equal(b->group.cost_microusd, g.cost_microusd);
	assert_int_equal(b->group.time_ms, g.time_ms);
	assert_int_equal(b->group.index, 2);
	assert_int_equal(b->group.size, 3);
	assert_true(b->group.share);
	assert_false(b->group.chain);
	assert_string_equal(b->group.name, "sum");
	assert_memory_equal(&b->group.after, &g.after, sizeof(g.after));
	assert_string_equal(b->hash, r->hash);
	assert_string_equal(b->config, r->config);
	spec_free(b);
	spec_free(r);
}

TEST(alone)
{
	struct run_spec *r = build(NULL), *b = spec_again(r);

	assert_string_equal(r->group.id, "");
	assert_null(strstr(r->config, "group")); /* its hash is that of older versions */
	assert_string_equal(b->group.id, "");
	assert_string_equal(b->hash, r->hash);
	spec_free(b);
	spec_free(r);
}

TEST(damaged)
{
	const struct spec_group g = {.id = "G-7f3a2b", .cost_microusd = -1, .index = 1, .size = 2};
	struct run_spec *r = build(&g), *b = NULL;
	json_auto_t *config = json_parse(r->config, r->config_len, NULL);

	json_object_set_new(json_object_get(config, "group"), "index", json_integer(3));
	assert_int_equal(spec_from_json(&b, config, "", "", "", NULL), AVA_ECORRUPT);
	json_object_set_new(json_object_get(config, "group"), "size", json_integer(1000));
	assert_int_equal(spec_from_json(&b, config, "", "", "", NULL), AVA_ECORRUPT);
	assert_null(b);
	spec_free(r);
}

TEST(unknown_price)
{
	struct spec_group g = {.id = "G-7f3a2b", .cost_microusd = 100, .index = 1, .size = 1};
	struct run_spec *r = build(NULL);
	struct ava_error err = {0};

	r->agent.price.output = -1;
	assert_int_equal(spec_group_take(r, &g, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "unknown"));
	g.cost_microusd = -1; /* each is held by its tokens */
	assert_int_equal(spec_group_take(r, &g, &err), 0);
	spec_free(r);
}

/* A diamond takes as long as its longest way, and costs what all of it does. */
TEST(longest_way)
{
	static const struct after_set after[] = {{{0}}, {{1}}, {{1}}, {{6}}};
	static const char *const names[] = {"a", "b", "", "d"};
	static const int64_t ms[] = {600000, 60000, 1200000, 120000};
	struct run_spec *all[4];
	struct quotes q = {0};
	struct quote quote;
	TEST_BUF(b, 65536);

	for (int i = 0; i < 4; i++) {
		const struct spec_group g = {.id = "G-7f3a2b",
					     .cost_microusd = -1,
					     .index = i + 1,
					     .size = 4,
					     .name = names[i],
					     .after = after[i]};

		all[i] = build(&g);
		all[i]->agent.limits.time_ms = ms[i];
	}
	quote_make(&q, all, 4, &quote);
	assert_int_equal(quote.minutes_min, 5 + 10 + 1);
	assert_int_equal(quote.minutes_max, 10 + 20 + 2);
	assert_int_equal(quote.tokens, 4 * all[0]->expected_tokens);
	assert_int_equal(quote_text(&b, &q, all, 4, "P-1", NULL), 0);
	assert_non_null(strstr(b.data, "I'll spawn 4 subagents side by side, or after others"));
	assert_non_null(strstr(b.data, "\n4. d: Researcher "));
	assert_non_null(strstr(b.data, " (after b, 3)\n"));
	assert_non_null(strstr(b.data, "~16-32 minutes"));
	for (int i = 0; i < 4; i++)
		spec_free(all[i]);
}

/* What is told of several is true of each of them. */
TEST(quote)
{
	const struct spec_group g = {.id = "G-7f3a2b", .cost_microusd = -1, .index = 1, .size = 2};
	struct run_spec *both[] = {build(&g), build(&g)};
	struct quotes q = {0};
	TEST_BUF(b, 65536);

	assert_int_equal(quote_text(&b, &q, both, 2, "P-1", NULL), 0);
	assert_non_null(
		strstr(b.data, "\n• Model: offline\n• Limits: each stops at 10 min, $0.50,"));
	both[0]->agent.limits.time_ms = 60000;
	both[1]->agent.limits.cost_microusd = 10000;
	buf_reset(&b);
	assert_int_equal(quote_text(&b, &q, both, 2, "P-1", NULL), 0);
	assert_non_null(
		strstr(b.data, "\n• Limits: each stops at its own, the widest: 10 min, $0.50,"));
	spec_free(both[0]);
	spec_free(both[1]);
}

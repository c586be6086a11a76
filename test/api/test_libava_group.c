/* Groups and checkpoints through libava's public face, the same program embedded and connected
 * ($MODE). */
#include "api/world.h"

/* One quote and one yes for two runs; a chain ends one after the other. */
TEST(group)
{
	struct world *w = *state;
	struct ava_spawn runs[2] = {
		{.task = "Find the torn tail.", .role = "code_reviewer"},
		{.task = "Find the whole record.", .role = "researcher"},
	};
	struct ava_spawn_group g = {
		.runs = runs, .nruns = 2, .cwd = w->work, .max_cost_microusd = 500000};
	struct ava_proposal p;
	struct ava_group got;
	struct ava_error err;
	char group[32], ids[2][24];

	for (int chain = 0; chain < 2; chain++) {
		g.chain = chain;
		WORLD_OK(ava_propose_group(w->rt, &g, &p, &err));
		assert_int_equal(p.state, AVA_PENDING);
		assert_non_null(strstr(p.message, "2. Researcher"));
		snprintf(group, sizeof(group), "%s", p.id);
		assert_int_equal(ava_confirm(w->rt, group, "yes", &p, &err), 0);
		assert_int_equal(p.state, AVA_CONFIRMED);
		assert_int_equal(strncmp(p.group, "G-", 2), 0);
		snprintf(group, sizeof(group), "%s", p.group);
		do {
			assert_int_equal(ava_group(w->rt, group, &got, &err), 0);
			assert_int_equal(got.size, 2);
			assert_int_equal(got.chain, chain);
			for (size_t i = 0; i < got.nruns; i++)
				snprintf(ids[i], sizeof(ids[i]), "%s", got.runs[i].id);
			for (size_t i = 0, n = got.nruns; i < n; i++) {
				const char *id = ids[i];

				assert_int_equal(
					ava_wait(w->rt, &id, 1, AVA_WAIT_ALL, LONG_MS, NULL, &err),
					1);
			}
			assert_int_equal(ava_group(w->rt, group, &got, &err), 0);
		} while (got.running);
		assert_int_equal(got.ended, 2);
		assert_int_equal(got.succeeded, 2);
		assert_int_equal(got.nruns, 2);
		assert_string_equal(got.runs[1].role, "researcher");
	}
	assert_int_equal(ava_group(w->rt, "G-000000", &got, &err), AVA_ENOENT);
	assert_int_equal(got.nruns, 0);
	g.nruns = 0;
	assert_int_equal(ava_propose_group(w->rt, &g, &p, &err), AVA_EINVAL);
	g.nruns = 2;
	runs[1].task = "";
	assert_int_equal(ava_propose_group(w->rt, &g, &p, &err), AVA_EINVAL);
	assert_non_null(strstr(err.text, "run 2"));
}

/* A name for where a run is; both kinds of runtime say the same. */
TEST(checkpoint)
{
	struct world *w = *state;
	struct ava_run_id slow;
	struct ava_spawn s = {.task = "never ends", .model = w->slow};
	struct ava_checkpoint *c, *back;
	const struct ava_event *e;
	struct ava_trace *t;
	struct ava_error err;
	const char *json;
	size_t n;

	assert_int_equal(ava_spawn(w->rt, &s, &slow, &err), 0);
	assert_int_equal(ava_checkpoint(w->rt, slow.text, "before-edit", &err), 0);
	assert_int_equal(ava_checkpoint(w->rt, slow.text, "before-edit", &err), 0);
	assert_int_equal(ava_checkpoint(w->rt, slow.text, "2nd", &err), AVA_EINVAL);
	assert_int_equal(ava_checkpoint(w->rt, slow.text, NULL, &err), AVA_EINVAL);
	assert_int_equal(ava_checkpoint(w->rt, "S-000000", "x", &err), AVA_ENOENT);
	assert_int_equal(ava_trace_read(&t, w->root, slow.text, NULL, NULL, &err), 0);
	assert_int_equal(ava_trace_events(t, "Checkpoint", 0, 0, &e, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_non_null(strstr(e[0].json, "\"name\":\"before-edit\""));
	ava_trace_free(t);
	assert_int_equal(ava_checkpoint_read(&c, w->root, slow.text, "late", &err), AVA_ENOENT);
	WORLD_OK(ava_checkpoint_read(&c, w->root, slow.text, "before-edit", &err));
	assert_int_equal(c->call, 1);
	assert_non_null(strstr(c->state, "never ends"));
	assert_int_equal(ava_checkpoint_json(c, &json, &n, &err), 0);
	assert_int_equal(ava_checkpoint_parse(&back, json, n, &err), 0);
	assert_string_equal(back->state, c->state);
	assert_string_equal(back->run, slow.text);
	ava_checkpoint_free(back);
	ava_checkpoint_free(c);
	assert_int_equal(ava_cancel(w->rt, slow.text, NULL), 0);
	assert_int_equal(ava_checkpoint(w->rt, slow.text, "late", &err), AVA_EEXIST);
}

UNIT_GROUP(.before = world_begin, .after = world_end);

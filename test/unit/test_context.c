/* Long conversations in small windows: what is taken out, what is sent, and
 * whether a model that forgets what it does not see comes to its end. */
#include "context_rig.h"

static int value_of(int n)
{
	return n * 7919 % 100003;
}

static const struct dialect *const dialects[] = {&dialect_anthropic, &dialect_openai,
						 &dialect_responses};

/* ---- four conversations */

static const struct fixture {
	const char *name;
	int steps, needs[2];
} fixtures[] = {
	{"early-needle", 40, {1, 40}},
	{"tangent-return", 60, {5, 60}},
	{"distractor-update", 40, {2, 3}},
	{"clean-long", 90, {45, 90}},
};

static void play(struct ctx *c, const struct fixture *f)
{
	char sum[32];

	c->steps = f->steps;
	memcpy(c->needs, f->needs, sizeof(c->needs));
	ctx_play(c);
	snprintf(sum, sizeof(sum), "%d", value_of(f->needs[0]) + value_of(f->needs[1]));
	print_message(
		"%-18s %-10s %-22s requests %d edits %d (cuts %d) fetched %d, most %zu bytes\n",
		f->name, c->dialect->name, c->reason, c->requests, c->edits, c->cuts, c->fetches,
		c->most_request);
	assert_int_equal(c->status, AVA_SUCCESS);
	assert_string_equal(c->summary, sum);
	assert_int_equal(c->overflows, 0);
	assert_true(c->edits > 0);
	assert_true((int64_t)c->most_request <= c->real_window * CTX_BYTES_PER_TOKEN);
	/* Nobody reads a file again and again: what is missing is fetched once each. */
	assert_true(c->fetches <= 4);
}

TEST(fixtures_finish)
{
	static const struct {
		const struct dialect *dialect;
		int window, replies; /* window in tokens */
	} worlds[] = {{&dialect_anthropic, 6000, 400},
		      {&dialect_anthropic, 3000, 200},
		      {&dialect_openai, 6000, 400},
		      {&dialect_responses, 6000, 400}};

	for (size_t w = 0; w < ARRAY_LEN(worlds); w++)
		for (size_t i = 0; i < ARRAY_LEN(fixtures); i++) {
			struct ctx c;

			ctx_open(&c, worlds[w].dialect, worlds[w].window, worlds[w].replies);
			play(&c, &fixtures[i]);
			ctx_close(&c);
		}
}

/* ---- very long */

TEST(5000_turns)
{
	static const struct fixture f = {"5,000 turns", 5000, {3, 5000}};
	struct ctx c;

	ctx_open(&c, &dialect_anthropic, 6000, 8000);
	play(&c, &f);
	/* What is read for a call does not grow with the run. */
	assert_true(c.most_read < 100000);
	assert_true(c.file.len > 5000000);
	ctx_close(&c);
}

/* ---- the window is smaller than the table says */

TEST(overflow)
{
	static const struct fixture f = {"overflow", 40, {1, 40}};
	char sum[32];
	struct ctx c;

	for (size_t d = 0; d < ARRAY_LEN(dialects); d++) {
		ctx_open(&c, dialects[d], 5000, 400);
		c.spec.window = 200000;
		c.steps = f.steps;
		memcpy(c.needs, f.needs, sizeof(c.needs));
		ctx_play(&c);
		snprintf(sum, sizeof(sum), "%d", value_of(1) + value_of(40));
		assert_int_equal(c.status, AVA_SUCCESS);
		assert_string_equal(c.summary, sum);
		/* Learned once, and kept to. */
		assert_int_equal(c.overflows, 1);
		assert_true(c.spec.window < 6000);
		ctx_close(&c);
	}
}

/* The service tells its window: what the first results took of it is given back by the newest of
 * them, and no more is refused. */
TEST(overflow_tells)
{
	struct ctx c;

	for (size_t d = 0; d < ARRAY_LEN(dialects); d++) {
		ctx_open(&c, dialects[d], 4000, 400);
		c.spec.window = 200000;
		c.tells = true;
		c.file_bytes = 30000;
		c.steps = c.needs[0] = c.needs[1] = 1;
		ctx_play(&c);
		assert_int_equal(c.status, AVA_SUCCESS);
		assert_int_equal(c.overflows, 1);
		assert_int_equal(c.a.at.window, 4000);
		ctx_close(&c);
	}
}

/* Nothing can be left out: less output is tried, down to the least, then it is the end by name. */
TEST(overflow_ends)
{
	struct ctx c;

	ctx_open(&c, &dialect_anthropic, 100, 400);
	c.spec.window = 200000;
	c.steps = 3;
	ctx_play(&c);
	assert_int_equal(c.status, AVA_ERROR);
	assert_string_equal(c.reason, "model_error");
	assert_int_equal(c.overflows, 2);
	ctx_close(&c);
}

/* The machine at its borders: sums to the token and the micro-USD. Which end a limit or a cancel
 * makes in which state, and what is told when, the judge of simulated runs computes anew
 * (test/sim/check.c). */
#include "agent_rig.h"

#include "agent/limit.h"

/* ---- limits */

/* clang-format off */
static const struct {
	const char *name;
	struct agent_limits limits;
	struct agent_price price;
	int64_t input, output, cost; /* usage of the first reply */
	enum ava_status status;
	const char *reason;
} limit_cases[] = {
	{"tokens by usage", {600000, 500000, 10000, 20}, PRICE_1_5, 9000, 1000, 0, AVA_TOKENS_EXCEEDED, "tokens"},
	/* 5,000 left, 4,000 asked again */
	{"tokens: no room for a reply", {600000, 500000, 10000, 20}, PRICE_1_5, 4000, 1000, 0, AVA_TOKENS_EXCEEDED, "tokens"},
	{"cost by price", {600000, 20000, 100000, 20}, PRICE_1_5, 15000, 1000, 0, AVA_COST_EXCEEDED, "cost"},
	{"cost by the provider", {600000, 20000, 100000, 20}, PRICE_1_5, 100, 10, 20000, AVA_COST_EXCEEDED, "cost"},
	{"cost told, price unknown", {600000, 20000, 100000, 20}, {-1, -1, -1, -1}, 100, 10, 20000, AVA_COST_EXCEEDED, "cost"},
	{"a free model that charges", {600000, 0, 100000, 20}, {0, 0, 0, 0}, 100, 10, 1, AVA_COST_EXCEEDED, "cost"},
	{"iterations", {600000, 500000, 100000, 1}, PRICE_1_5, 100, 10, 0, AVA_ITERATIONS_EXCEEDED, "iterations"},
	{"made-up usage", {600000, 500000, 100000, 20}, PRICE_1_5, INT64_MAX, INT64_MAX, 0, AVA_COST_EXCEEDED, "cost"},
};
/* clang-format on */

TEST(limits)
{
	for (size_t i = 0; i < ARRAY_LEN(limit_cases); i++) {
		struct rig r;

		print_message("%s\n", limit_cases[i].name);
		rig_open(&r);
		r.spec.limits = limit_cases[i].limits;
		r.spec.price = limit_cases[i].price;
		rig_call(&r);
		assert_int_equal(r.infers, 1);
		SAY(&r, .text = "found some", .calls = {ACT}, .input = limit_cases[i].input,
		    .output = limit_cases[i].output, .cost = limit_cases[i].cost);
		assert_end(&r, limit_cases[i].status, limit_cases[i].reason);
		assert_string_equal(r.exhausted, limit_cases[i].reason);
		assert_true(r.end.partial);
		assert_string_equal(r.summary, "found some");
		assert_int_equal(r.starts, 0); /* nobody would read its result */
		assert_string_equal(r.classes[0], "limit");
		assert_false(r.reply_wait);
		rig_close(&r);
	}
}

/* Ten replies, each asked for with all that was said before: what a cache had for nothing counts
 * once, what costs something each time. */
TEST(cached_for_nothing)
{
	static const struct {
		const char *name;
		struct agent_price price;
		bool told; /* by the service: what its cache had */
		bool passes;
	} cases[] = {
		{"on this machine", {0, 0, 0, 0}, true, true},
		{"on this machine, not told", {0, 0, 0, 0}, false, true},
		{"its cache is free", {1000, 1000, 0, 1000}, true, true},
		{"its cache is free, and had nothing", {1000, 1000, 0, 1000}, false, false},
		{"its cache costs a tenth", {1000, 1000, 100, 1000}, true, false},
		{"nobody knows", {-1, -1, -1, -1}, true, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t before = 0;
		struct rig r;

		print_message("%s\n", cases[i].name);
		rig_open(&r);
		r.spec.limits.tokens = 40000;
		r.spec.price = cases[i].price;
		rig_call(&r);
		for (int n = 1; n <= 10 && r.ends == 0; n++) {
			char path[32];

			snprintf(path, sizeof(path), "{\"path\":\"%d\"}", n);
			SAY(&r, .calls = {{"look", path}}, .input = 5000 + 500 * n, .output = 100,
			    .cache_read = cases[i].told ? before : 0);
			before = 5000 + 500 * n;
			if (r.ends == 0)
				rig_answer(&r, 0, path);
		}
		assert_int_equal(r.ends, !cases[i].passes);
		assert_int_equal(r.a.at.totals.input > 40000, cases[i].passes); /* shown as it is */
		if (cases[i].passes) {
			assert_int_equal(limit_tokens_used(&r.a), 10000 + 10 * 100);
			SAY(&r, .calls = {SUBMIT});
		}
		rig_close(&r);
	}
}

TEST(cost_zero)
{
	static const struct {
		struct agent_price price;
		bool starts;
	} cases[] = {
		{{0, 0, 0, 0}, true},   {{1, 0, 0, 0}, false}, {{0, 1, 0, 0}, false},
		{{0, 0, 1, 0}, false},  {{0, 0, 0, 1}, false}, {{-1, -1, -1, -1}, false},
		{{0, 0, -1, 0}, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rig r;

		rig_open(&r);
		r.spec.limits.cost_microusd = 0;
		r.spec.price = cases[i].price;
		rig_call(&r);
		assert_int_equal(r.infers, cases[i].starts);
		if (cases[i].starts)
			SAY(&r, .calls = {SUBMIT});
		assert_end(&r, cases[i].starts ? AVA_SUCCESS : AVA_COST_EXCEEDED,
			   cases[i].starts ? "submitted" : "cost");
		rig_close(&r);
	}
}

/* Fractions of a micro-USD are whole ones, once a call; huge figures end at
 * the top instead of below zero. */
TEST(rounded_up)
{
	static const struct {
		struct agent_price price;
		int64_t input, cache_read, output, want;
	} cases[] = {
		{{0, 1, 1, 1}, 1, 0, 1, 1},
		{{1, 1, 1, 1}, 1, 0, 1, 1},
		{{1, 0, 1, 1}, 1000000, 0, 1, 1},
		{{1, 1, 1, 1}, 1000000, 0, 1, 2},
		{{3000000, 15000000, 300000, 3750000}, 10, 7, 1, 27}, /* 9 + 2.1 + 15 */
		{{100000, 500000, 10000, 125000}, 4, 0, 1, 1},        /* 0.4 + 0.5 */
		{{INT64_MAX, 1, 1, 1}, 1000, 0, 1, INT64_MAX / 1000000 + 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rig r;

		rig_open(&r);
		rig_call(&r);
		r.spec.price = cases[i].price;
		SAY(&r, .calls = {SUBMIT}, .input = cases[i].input,
		    .cache_read = cases[i].cache_read, .output = cases[i].output);
		assert_int_equal(r.a.at.totals.cost_microusd, cases[i].want);
		rig_close(&r);
	}
}

TEST(lowered_output)
{
	static const struct {
		int64_t tokens, cost, max_output; /* 0: no call */
	} cases[] = {
		/* The first request is 3,000 bytes: 1,000 tokens, at the cache
		 * write price 1,250 micro-USD; output costs 5 each. */
		{1000 + 8192, 500000, 8192},     {1000 + 8191, 500000, 8191},
		{1000 + 1024, 500000, 1024},     {1000 + 1023, 500000, 0},
		{100000, 1250 + 5 * 8192, 8192}, {100000, 1250 + 5 * 8191, 8191},
		{100000, 1250 + 5 * 1024, 1024}, {100000, 1250 + 5 * 1024 - 1, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rig r;

		rig_open(&r);
		r.spec.limits.tokens = cases[i].tokens;
		r.spec.limits.cost_microusd = cases[i].cost;
		rig_call(&r);
		assert_int_equal(r.infers, cases[i].max_output != 0);
		if (cases[i].max_output == 0)
			assert_int_equal(r.end.status,
					 i < 4 ? AVA_TOKENS_EXCEEDED : AVA_COST_EXCEEDED);
		else
			assert_int_equal(r.infer.max_output, cases[i].max_output);
		agent_cancel(&r.a);
		rig_run(&r);
		rig_close(&r);
	}
}

/* What a call reserves from a budget it shares, and what that money buys. */
TEST(shared_money)
{
	struct agent_spec spec = {.price = {3000000, 15000000, 300000, 3750000}};
	struct agent a = {.spec = &spec, .at.measured_input = 10000, .at.new_bytes = 3000};
	int64_t input = 41250; /* 11,000 tokens at the dearest price */

	assert_int_equal(limit_call_cost(&a, 0), input);
	assert_int_equal(limit_call_cost(&a, 1024), input + 15360);
	assert_int_equal(limit_output_for(&a, input + 15360), 1024);
	assert_int_equal(limit_output_for(&a, input + 14), 0);
	assert_int_equal(limit_output_for(&a, input - 1), -1);
	spec.price.output = 0;
	assert_int_equal(limit_output_for(&a, input), INT64_MAX);
	spec.price.output = -1; /* unknown: money does not hold it */
	assert_int_equal(limit_call_cost(&a, 1024), 0);
	spec.price = (struct agent_price){0};
	assert_int_equal(limit_call_cost(&a, 1024), 0);
	a.at.measured_input = INT64_MAX; /* a service made it up */
	spec.price = (struct agent_price){3000000, 15000000, 300000, 3750000};
	assert_true(limit_call_cost(&a, 1024) > INT64_MAX / 2000000);
	assert_int_equal(limit_output_for(&a, 1000000), -1);
}

/* Was the model told that its next reply is the last? */
static bool limit_is_last(const struct rig *r)
{
	return r->nnotices > 0 &&
	       strstr(r->notices[r->nnotices - 1], "last that the limits") != NULL;
}

/* What is near its limit, and then that the next reply is the last. */
RIG_TEST(told)
{
	r->spec.limits.iterations = 5;
	rig_call(r);
	for (int n = 1; n <= 4; n++) {
		assert_false(r->infer.force_submit || limit_is_last(r));
		SAY(r, .calls = {LOOK});
		rig_answer(r, 0, n % 2 ? "x" : "y"); /* news each time */
		assert_int_equal(r->warned, n < 4 ? 0 : 1u << AGENT_ITERATIONS);
	}
	assert_non_null(strstr(r->notices[0], "limit is near"));
	assert_true(limit_is_last(r) && r->infer.force_submit);
	SAY(r, .calls = {SUBMIT});
	assert_end(r, AVA_SUCCESS, "submitted");
}

/* A person is asked instead. */
RIG_TEST(no_wrap_up)
{
	r->spec.limits.iterations = 2;
	r->spec.ask_limit = true;
	rig_call(r);
	SAY(r, .calls = {LOOK});
	rig_answer(r, 0, "x");
	assert_false(r->infer.force_submit);
	assert_false(limit_is_last(r));
	agent_cancel(&r->a);
	rig_run(r);
}

/* At once, not when the disk has answered; then nothing starts any more. */
TEST(cancel_while_saving)
{
	struct rig r;

	rig_open(&r);
	rig_call(&r);
	SAY(&r, .text = "t", .calls = {ACT, LOOK});
	assert_int_equal(r.a.state, AGENT_SAVING);
	agent_cancel(&r.a);
	assert_int_equal(r.ends, 0); /* only stored */
	rig_run(&r);
	assert_end(&r, AVA_CANCELLED, "cancelled");
	assert_string_equal(r.answers[1], "not run: the run was cancelled");
	rig_close(&r);
	assert_int_equal(r.starts, 0);
}

/* ---- limits that are shared with others */

static struct agent_shared shared;

static void io_shared(struct agent *a, struct agent_shared *out)
{
	*out = shared;
}

static struct agent_io shared_io(void)
{
	struct agent_io with = io;

	with.shared = io_shared;
	return with;
}

/* Told once each, with the results; that nothing is left beside the next call, as
 * often as it is so. */
TEST(shared)
{
	const struct agent_io with = shared_io();
	struct rig r;

	shared = (struct agent_shared){0};
	rig_open(&r);
	r.a.io = &with;
	rig_call(&r);
	SAY(&r, .calls = {LOOK});
	rig_answer(&r, 0, "1");
	assert_int_equal(r.nnotices, 0);
	shared = (struct agent_shared){.near = 1u << SHARE_GROUP_COST | 1u << SHARE_GROUP_TIME};
	shared.of[SHARE_GROUP_COST].used = 820000;
	shared.of[SHARE_GROUP_COST].limit = 1000000;
	shared.of[SHARE_GROUP_TIME].used = 480000;
	shared.of[SHARE_GROUP_TIME].limit = 600000;
	SAY(&r, .calls = {LOOK});
	rig_answer(&r, 0, "2");
	assert_int_equal(r.nnotices, 2);
	assert_string_equal(
		r.notices[0],
		"[ava] The limit of all runs of your group is near: 82 of 100 cents are "
		"used. Finish now: call submit_result with what you have.");
	assert_non_null(strstr(r.notices[1], "480 of 600 seconds are used"));
	assert_false(r.infer.force_submit);
	shared.near |= 1u << SHARE_DAY_COST;
	shared.of[SHARE_DAY_COST].used = 4000000;
	shared.of[SHARE_DAY_COST].limit = 5000000;
	SAY(&r, .calls = {LOOK});
	rig_answer(&r, 0, "3");
	assert_int_equal(r.nnotices, 1); /* the others were told */
	assert_non_null(strstr(r.notices[0], "The limit of this day is near: 400 of 500 cents"));
	shared = (struct agent_shared){.last = true};
	SAY(&r, .calls = {LOOK});
	rig_answer(&r, 0, "4");
	assert_int_equal(r.nnotices, 1);
	assert_non_null(strstr(r.notices[0], "Your next reply is the last"));
	assert_true(r.infer.force_submit);
	SAY(&r, .calls = {SUBMIT});
	assert_end(&r, AVA_SUCCESS, "submitted");
	rig_close(&r);
}

/* With what is left of the money of all: two calls with the least of a reply, or not. */
RIG_TEST(last_of_shared_money)
{
	int64_t next, after;
	struct agent a;

	next = limit_call_cost(&r->a, LIMIT_LEAST_OUTPUT);
	a = r->a;
	a.at.measured_input = limit_next_input(&r->a) + LIMIT_LEAST_OUTPUT;
	a.at.new_bytes = 0;
	after = limit_call_cost(&a, LIMIT_LEAST_OUTPUT);
	assert_true(next > 0 && after > next);
	assert_true(limit_last_of(&r->a, next + after - 1));
	assert_true(limit_last_of(&r->a, 0));
	assert_false(limit_last_of(&r->a, next + after));
	r->spec.price = (struct agent_price){0}; /* free calls are never the last */
	assert_false(limit_last_of(&r->a, 0));
	r->spec.price = (struct agent_price){-1, -1, -1, -1};
	assert_false(limit_last_of(&r->a, 0));
	rig_call(r);
	agent_cancel(&r->a);
	rig_run(r);
}

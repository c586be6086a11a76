/* The machine at its borders: every limit, and cancel in every state. */
#include "agent_rig.h"

#include "agent/limit.h"

/* ---- limits */

TEST(time)
{
	struct rig r;

	for (int at = 0; at < 4; at++) {
		rig_open(&r);
		rig_call(&r);
		if (at == 1)
			SAY(&r, .text = "so far", .calls = {ACT});
		if (at == 2)
			SAY(&r, .text = "so far", .calls = {LOOK});
		r.now = r.wake - 1;
		rig_run(&r);
		assert_int_equal(r.ends, 0);
		r.now++;
		if (at == 3) /* the reply came with the deadline: kept, not acted on */
			SAY(&r, .text = "so far", .calls = {ACT});
		rig_run(&r);
		assert_end(&r, AVA_TIMEOUT, "time");
		assert_string_equal(r.exhausted, "time");
		assert_true(r.end.partial);
		assert_string_equal(r.summary, at == 0 ? "(null)" : "so far");
		assert_int_equal(r.infer_stops, at == 0);
		assert_int_equal(r.tools_stops, at == 2);
		assert_int_equal(r.starts, at == 2);
		assert_int_equal(r.ncalls, at > 0);
		assert_int_equal(r.reply_saves, at > 0);
		if (at > 0)
			assert_string_equal(r.classes[0], "limit");
		rig_close(&r);
	}
}

TEST(queue_has_no_clock)
{
	struct rig r;

	rig_open(&r);
	rig_run(&r);
	r.now += 10000000;
	rig_run(&r);
	assert_int_equal(r.ends, 0);
	agent_on_slot(&r.a);
	rig_run(&r);
	assert_int_equal(r.infers, 1);
	agent_cancel(&r.a);
	rig_run(&r);
	rig_close(&r);
}

static const struct {
	const char *name;
	struct agent_limits limits;
	struct agent_price price;
	int64_t input, output, cost; /* usage of the first reply */
	enum ava_status status;
	const char *reason;
} limit_cases[] = {
	{"tokens by usage",
	 {600000, 500000, 10000, 20},
	 PRICE_1_5,
	 9000,
	 1000,
	 0,
	 AVA_TOKENS_EXCEEDED,
	 "tokens"},
	{"tokens: no room for a reply",
	 {600000, 500000, 10000, 20},
	 PRICE_1_5,
	 4000,
	 1000,
	 0,
	 AVA_TOKENS_EXCEEDED,
	 "tokens"}, /* 5,000 left, 4,000 asked again */
	{"cost by price",
	 {600000, 20000, 100000, 20},
	 PRICE_1_5,
	 15000,
	 1000,
	 0,
	 AVA_COST_EXCEEDED,
	 "cost"},
	{"cost by the provider",
	 {600000, 20000, 100000, 20},
	 PRICE_1_5,
	 100,
	 10,
	 20000,
	 AVA_COST_EXCEEDED,
	 "cost"},
	{"cost told, price unknown",
	 {600000, 20000, 100000, 20},
	 {-1, -1, -1, -1},
	 100,
	 10,
	 20000,
	 AVA_COST_EXCEEDED,
	 "cost"},
	{"a free model that charges",
	 {600000, 0, 100000, 20},
	 {0, 0, 0, 0},
	 100,
	 10,
	 1,
	 AVA_COST_EXCEEDED,
	 "cost"},
	{"iterations",
	 {600000, 500000, 100000, 1},
	 PRICE_1_5,
	 100,
	 10,
	 0,
	 AVA_ITERATIONS_EXCEEDED,
	 "iterations"},
	{"made-up usage",
	 {600000, 500000, 100000, 20},
	 PRICE_1_5,
	 INT64_MAX,
	 INT64_MAX,
	 0,
	 AVA_COST_EXCEEDED,
	 "cost"},
};

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

/* The results push the next request over the limit. */
TEST(limit_after_results)
{
	static char big[200] = "";
	struct rig r;

	memset(big, 'x', sizeof(big) - 1);
	rig_open(&r);
	r.spec.limits.tokens = 2 * 2000 + 10 + LIMIT_LEAST_OUTPUT + 5; /* +4 for the wire */
	rig_call(&r);
	SAY(&r, .text = "so far", .calls = {LOOK}, .input = 2000);
	assert_int_equal(r.starts, 1);
	rig_answer(&r, 0, big);
	assert_int_equal(r.result_saves, 1);
	assert_end(&r, AVA_TOKENS_EXCEEDED, "tokens");
	assert_int_equal(r.infers, 1);
	assert_string_equal(r.summary, "(null)"); /* the turn is gone: the world knows it */
	rig_close(&r);
}

TEST(end_at_the_limit)
{
	struct rig r;

	/* The last reply allowed submits, or is text: both are results. */
	rig_open(&r);
	r.spec.limits.iterations = 1;
	rig_call(&r);
	SAY(&r, .calls = {SUBMIT}, .input = 200000);
	assert_end(&r, AVA_SUCCESS, "submitted");
	rig_close(&r);

	rig_open(&r);
	r.spec.limits.iterations = 1;
	rig_call(&r);
	SAY(&r, .text = "the answer");
	assert_end(&r, AVA_SUCCESS, "final_text");
	assert_true(r.end.unverified);
	rig_close(&r);
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

TEST(unknown_price)
{
	struct rig r;

	rig_open(&r);
	r.spec.price = (struct agent_price){-1, -1, -1, -1};
	r.spec.limits.cost_microusd = 1;
	rig_call(&r);
	assert_int_equal(r.infer.max_output, 8192);
	SAY(&r, .calls = {LOOK});
	assert_int_equal(r.a.at.totals.uncosted_calls, 1);
	assert_int_equal(r.a.at.totals.cost_microusd, 0);
	rig_answer(&r, 0, "x");
	assert_int_equal(r.infers, 2);
	SAY(&r, .calls = {SUBMIT});
	rig_close(&r);
}

TEST(settle)
{
	struct rig r;

	rig_open(&r);
	rig_call(&r);
	SAY(&r, .calls = {LOOK}, .input = 10000, .cache_read = 6000, .cache_write = 3000,
	    .output = 200);
	/* 1,000 plain + 6,000 read at a tenth + 3,000 written at 1.25 + 200 out at 5 */
	assert_int_equal(r.a.at.totals.cost_microusd, 1000 + 600 + 3750 + 1000);
	assert_int_equal(r.a.turn->usage.cost_microusd, 6350); /* as the world records it */
	assert_int_equal(r.a.at.totals.input, 10000);
	assert_int_equal(r.a.at.totals.output, 200);
	assert_int_equal(r.a.at.totals.cache_read, 6000);
	assert_int_equal(r.a.at.totals.cache_write, 3000);
	assert_int_equal(r.a.at.measured_input, 10000);
	assert_int_equal(r.a.at.new_bytes, 10); /* the wire */
	rig_answer(&r, 0, "12345");
	assert_int_equal(r.a.at.new_bytes, 15);
	SAY(&r, .calls = {SUBMIT}, .cost = 77);
	assert_int_equal(r.a.at.totals.cost_microusd, 6350 + 77); /* the provider's own figure */
	rig_close(&r);
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

TEST(small_model)
{
	struct rig r;

	rig_open(&r);
	r.spec.max_output = 512; /* of the model itself: no reason to stop */
	rig_call(&r);
	assert_int_equal(r.infer.max_output, 512);
	SAY(&r, .calls = {SUBMIT});
	rig_close(&r);
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

TEST(near)
{
	static const struct {
		struct agent_limits limits;
		int64_t output, after_ms;
		enum agent_resource resource;
		int at; /* after which reply it is told */
	} cases[] = {
		{{100000, 500000, 100000, 20}, 100, 80000, AGENT_TIME, 2},
		{{600000, 100000, 1000000, 20}, 15980, 0, AGENT_COST, 1},
		{{600000, 50000000, 1000000, 20}, 399900, 0, AGENT_TOKENS, 2},
		{{600000, 500000, 100000, 5}, 100, 0, AGENT_ITERATIONS, 4},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rig r;
		int told = 0, at = 0;

		rig_open(&r);
		r.spec.limits = cases[i].limits;
		rig_call(&r);
		for (int n = 1; n <= 4 && r.ends == 0; n++) {
			/* An empty reply has its note; the notice comes beside it. */
			bool empty = n == 3;

			SAY(&r, .text = "", .output = n <= cases[i].at ? cases[i].output : 10,
			    .calls = {{empty ? NULL : "look", "{\"path\":\"a\"}"}});
			if (n == 2)
				r.now += cases[i].after_ms;
			if (!empty)
				rig_answer(&r, 0, n % 2 ? "x" : "y"); /* news each time */
			assert_int_equal(r.nnotices, (r.warned != 0) + empty + limit_is_last(&r));
			if (r.warned == 0)
				continue;
			assert_int_equal(r.warned, 1u << cases[i].resource);
			assert_non_null(strstr(r.notices[empty], "limit is near"));
			told++;
			at = n;
		}
		assert_int_equal(told, 1);
		assert_int_equal(at, cases[i].at);
		agent_cancel(&r.a);
		rig_run(&r);
		rig_close(&r);
	}
}

/* ---- cancel */

TEST(cancel)
{
	for (int at = AGENT_QUEUED; at <= AGENT_TOOLS; at++) {
		struct rig r;

		rig_open(&r);
		rig_run(&r);
		if (at > AGENT_QUEUED) {
			agent_on_slot(&r.a);
			rig_run(&r);
		}
		if (at == AGENT_SAVING)
			SAY(&r, .text = "t", .calls = {ACT, LOOK});
		if (at == AGENT_TOOLS) {
			SAY(&r, .text = "t", .calls = {LOOK, LOOK});
			rig_answer(&r, 1, "kept");
		}
		assert_int_equal(r.a.state, at);
		agent_cancel(&r.a);
		assert_int_equal(r.ends, 0); /* only stored */
		rig_run(&r);
		assert_end(&r, AVA_CANCELLED, "cancelled");
		assert_int_equal(r.infer_stops, at == AGENT_CALLING);
		assert_int_equal(r.tools_stops, at == AGENT_TOOLS);
		assert_int_equal(r.starts, at == AGENT_TOOLS ? 2 : 0);
		assert_int_equal(r.a.saves, at == AGENT_SAVING ? 2 : 1);
		assert_int_equal(r.ncalls, at >= AGENT_SAVING ? 2 : 0);
		if (at >= AGENT_SAVING) {
			assert_string_equal(r.classes[0], "cancelled");
			assert_non_null(
				strstr(r.answers[0], at == AGENT_SAVING ? "not run" : "stopped"));
			assert_string_equal(r.answers[1],
					    at == AGENT_TOOLS ? "kept"
							      : "not run: the run was cancelled");
		}
		if (at == AGENT_SAVING) { /* its save is answered: nothing starts */
			rig_saved(&r);
			assert_int_equal(r.starts, 0);
			assert_int_equal(r.dones, 0);
		}
		agent_cancel(&r.a);
		rig_close(&r);
		assert_int_equal(r.end.status, AVA_CANCELLED);
	}
}

TEST(cancel_at_once)
{
	struct rig r;

	rig_open(&r);
	agent_cancel(&r.a);
	rig_run(&r);
	assert_int_equal(r.wants, 0);
	assert_end(&r, AVA_CANCELLED, "cancelled");
	rig_close(&r);
}

TEST(cancel_with_reply)
{
	struct rig r;

	rig_open(&r);
	rig_call(&r);
	agent_cancel(&r.a);
	SAY(&r, .text = "paid for", .calls = {SUBMIT, ACT});
	assert_end(&r, AVA_CANCELLED, "cancelled");
	assert_int_equal(r.reply_saves, 1);
	assert_int_equal(r.a.at.totals.input, 100);
	assert_int_equal(r.infer_stops, 0);
	assert_int_equal(r.ncalls, 2);
	assert_int_equal(r.starts, 0);
	rig_close(&r);

	rig_open(&r);
	rig_call(&r);
	agent_cancel(&r.a);
	agent_on_reply(&r.a, AVA_EIO, NULL, NULL, NULL);
	rig_run(&r);
	assert_end(&r, AVA_CANCELLED, "cancelled");
	assert_int_equal(r.a.at.totals.failed_calls, 1);
	assert_int_equal(r.infer_stops, 0);
	rig_close(&r);
}

TEST(too_late)
{
	struct rig r;

	rig_open(&r);
	rig_call(&r);
	SAY(&r, .calls = {SUBMIT});
	agent_cancel(&r.a);
	rig_run(&r);
	r.now += 100000000; /* nor does the deadline change anything */
	rig_run(&r);
	assert_end(&r, AVA_SUCCESS, "submitted");
	rig_close(&r);
}

/* The last call that the limits pay for is told and made to be the end, once. */
TEST(wrap_up)
{
	static const struct {
		struct agent_limits limits;
		int64_t output; /* of each reply */
		bool can_force;
		int last; /* the call that is the last */
	} cases[] = {
		{{600000, 50000000, 1000000, 3}, 10, true, 3},
		{{600000, 50000000, 1000000, 3}, 10, false, 3},
		{{600000, 35000, 1000000, 20}, 1600, true, 4},
		{{600000, 50000000, 9000, 20}, 3000, true, 3},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rig r;

		rig_open(&r);
		r.spec.limits = cases[i].limits;
		r.spec.can_force = cases[i].can_force;
		rig_call(&r);
		for (int n = 1; n < cases[i].last; n++) {
			assert_false(r.infer.force_submit);
			assert_false(limit_is_last(&r));
			SAY(&r, .output = cases[i].output, .calls = {LOOK});
			rig_answer(&r, 0, n % 2 ? "x" : "y");
		}
		assert_int_equal(r.infers, cases[i].last);
		assert_true(limit_is_last(&r));
		assert_int_equal(r.infer.force_submit, cases[i].can_force);
		SAY(&r, .calls = {SUBMIT});
		assert_end(&r, AVA_SUCCESS, "submitted");
		rig_close(&r);
	}
}

/* A person is asked instead. */
TEST(no_wrap_up)
{
	struct rig r;

	rig_open(&r);
	r.spec.limits.iterations = 2;
	r.spec.ask_limit = true;
	rig_call(&r);
	SAY(&r, .calls = {LOOK});
	rig_answer(&r, 0, "x");
	assert_false(r.infer.force_submit);
	assert_false(limit_is_last(&r));
	agent_cancel(&r.a);
	rig_run(&r);
	rig_close(&r);
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
TEST(last_of_shared_money)
{
	int64_t next, after;
	struct agent a;
	struct rig r;

	rig_open(&r);
	next = limit_call_cost(&r.a, LIMIT_LEAST_OUTPUT);
	a = r.a;
	a.at.measured_input = limit_next_input(&r.a) + LIMIT_LEAST_OUTPUT;
	a.at.new_bytes = 0;
	after = limit_call_cost(&a, LIMIT_LEAST_OUTPUT);
	assert_true(next > 0 && after > next);
	assert_true(limit_last_of(&r.a, next + after - 1));
	assert_true(limit_last_of(&r.a, 0));
	assert_false(limit_last_of(&r.a, next + after));
	r.spec.price = (struct agent_price){0}; /* free calls are never the last */
	assert_false(limit_last_of(&r.a, 0));
	r.spec.price = (struct agent_price){-1, -1, -1, -1};
	assert_false(limit_last_of(&r.a, 0));
	rig_call(&r);
	agent_cancel(&r.a);
	rig_run(&r);
	rig_close(&r);
}

/* What is left of a run's limits.
 *
 * Before each call the most that it can use is reserved: the input as the
 * last call measured it plus a third of a token for every byte since, at the
 * dearest input price, and the whole output. What does not fit lowers the
 * output; below LIMIT_LEAST_OUTPUT the call is not made. So a run passes a
 * limit by no more than its estimate of one input was wrong.
 *
 * Sums saturate: a price or a usage that some service made up must not wrap
 * into free money. Nothing here can fail. */
#include "agent/limit.h"

#include <inttypes.h>
#include <stdio.h>

#include "agent/tool.h"
#include "base/util.h"

#define PER_MILLION 1000000
#define USAGE_MAX   INT64_C(1000000000000) /* tokens or micro-USD of one call */

static int64_t add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t times(int64_t a, int64_t b)
{
	int64_t product;

	return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* Money is rounded up: what is charged is never below what is billed. */
static int64_t whole_microusd(int64_t millionths)
{
	return millionths / PER_MILLION + (millionths % PER_MILLION != 0);
}

static bool price_known(const struct agent_price *p)
{
	return p->input >= 0 && p->output >= 0;
}

static bool price_free(const struct agent_price *p)
{
	return p->input == 0 && p->output == 0 && p->cache_read == 0 && p->cache_write == 0;
}

bool limit_can_submit(const struct agent *a)
{
	for (unsigned i = 0; i < a->spec->ntools; i++)
		if (a->spec->tools[i]->flags & TOOL_ENDS)
			return true;
	return false;
}

static int64_t estimated_input(const struct agent *a)
{
	return add(a->at.measured_input, a->at.new_bytes / 3 + (a->at.new_bytes % 3 != 0));
}

int64_t limit_next_input(const struct agent *a)
{
	return estimated_input(a);
}

/* A cache write may be given as cheaper than it is (0 where a service has
 * none), never the input. */
static int64_t input_cost(const struct agent_price *p, int64_t tokens)
{
	return whole_microusd(times(tokens, MAX(p->input, p->cache_write)));
}

/* Output that the rest of the tokens allows; negative when the input alone
 * is too much. */
static int64_t output_by_tokens(const struct agent *a)
{
	int64_t used = add(a->at.totals.input, a->at.totals.output);

	return a->spec->limits.tokens - MIN(used, a->spec->limits.tokens) - estimated_input(a);
}

int64_t limit_output_for(const struct agent *a, int64_t microusd)
{
	const struct agent_price *p = &a->spec->price;
	int64_t left = microusd - MIN(input_cost(p, estimated_input(a)), INT64_MAX - 1);

	if (left < 0 || p->output == 0)
		return left < 0 ? -1 : INT64_MAX;
	return left > INT64_MAX / PER_MILLION ? INT64_MAX : left * PER_MILLION / p->output;
}

int64_t limit_call_cost(const struct agent *a, int64_t max_output)
{
	const struct agent_price *p = &a->spec->price;

	if (!price_known(p))
		return 0;
	return add(input_cost(p, estimated_input(a)), whole_microusd(times(max_output, p->output)));
}

static int64_t output_by_cost(const struct agent *a)
{
	const struct agent_price *p = &a->spec->price;
	int64_t limit = a->spec->limits.cost_microusd, used = a->at.totals.cost_microusd;

	if (limit == 0)
		return price_free(p) && used == 0 ? INT64_MAX : -1;
	if (used >= limit)
		return -1;
	if (!price_known(p))
		return INT64_MAX; /* the quote said so: held by tokens only */
	return limit_output_for(a, limit - used);
}

/* The most output that fits behind the next input; never under `least`. */
static int64_t output_by_window(const struct agent *a, int64_t most, int64_t least)
{
	int64_t left = a->spec->window - estimated_input(a);

	return a->spec->window <= 0 ? most : MAX(MIN(most, left), MIN(most, least));
}

int limit_reserve(const struct agent *a, int64_t *max_output)
{
	int64_t most = a->spec->max_output;
	int64_t least = MIN(most, (int64_t)LIMIT_LEAST_OUTPUT);
	int64_t by_cost = output_by_cost(a), by_tokens = output_by_tokens(a);

	if (!a->at.again && a->at.iteration - a->at.turn_from >= a->spec->limits.iterations)
		return AGENT_ITERATIONS;
	if (by_cost < least)
		return AGENT_COST;
	if (by_tokens < least)
		return AGENT_TOKENS;
	*max_output = output_by_window(a, MIN(most, MIN(by_cost, by_tokens)), least);
	return -1;
}

/* Behind the next call, with the least of a reply, and all it leaves. */
static struct agent after_next(const struct agent *a, int64_t output)
{
	int64_t input = estimated_input(a);
	struct agent after = *a;

	after.at.totals.cost_microusd =
		add(after.at.totals.cost_microusd, limit_call_cost(a, output));
	after.at.totals.input = add(after.at.totals.input, input);
	after.at.totals.output = add(after.at.totals.output, output);
	after.at.measured_input = add(input, output);
	after.at.new_bytes = 0;
	after.at.again = false;
	after.at.iteration++;
	return after;
}

bool limit_last(const struct agent *a)
{
	struct agent after;
	int64_t most;

	if (limit_reserve(a, &most) >= 0)
		return false;
	after = after_next(a, MIN(most, (int64_t)LIMIT_LEAST_OUTPUT));
	return limit_reserve(&after, &most) >= 0;
}

bool limit_last_of(const struct agent *a, int64_t microusd)
{
	int64_t least = MIN(a->spec->max_output, (int64_t)LIMIT_LEAST_OUTPUT);
	struct agent after = after_next(a, least);
	int64_t next = limit_call_cost(a, least);

	return next > 0 && microusd < add(next, limit_call_cost(&after, least));
}

static int64_t sane(int64_t n)
{
	return n < 0 ? 0 : MIN(n, USAGE_MAX);
}

static int64_t cost_of(const struct agent_price *p, const struct usage *u)
{
	int64_t read = p->cache_read < 0 ? p->input : p->cache_read;
	int64_t write = p->cache_write < 0 ? p->input : p->cache_write;
	int64_t plain = u->input - MIN(u->input, u->cache_read + u->cache_write), sum;

	sum = add(times(plain, p->input), times(u->cache_read, read));
	sum = add(sum, add(times(u->cache_write, write), times(u->output, p->output)));
	return whole_microusd(sum);
}

void limit_charge(struct agent *a, struct usage *u)
{
	struct agent_totals *t = &a->at.totals;

	u->input = sane(u->input);
	u->output = sane(u->output);
	u->cache_read = sane(u->cache_read);
	u->cache_write = sane(u->cache_write);
	if (u->cost_microusd >= 0)
		u->cost_microusd = sane(u->cost_microusd);
	else if (price_known(&a->spec->price))
		u->cost_microusd = cost_of(&a->spec->price, u);
	else if (u->input == 0 && u->output == 0)
		u->cost_microusd = 0;
	t->input = add(t->input, u->input);
	t->output = add(t->output, u->output);
	t->cache_read = add(t->cache_read, u->cache_read);
	t->cache_write = add(t->cache_write, u->cache_write);
	if (u->cost_microusd >= 0)
		t->cost_microusd = add(t->cost_microusd, u->cost_microusd);
	else
		t->uncosted_calls++;
}

void limit_settle(struct agent *a, struct usage *u)
{
	limit_charge(a, u);
	if (u->input > 0) { /* else: nothing was measured, the estimate goes on growing */
		a->at.measured_input = u->input;
		a->at.new_bytes = 0;
	}
}

/* 80 % of `limit`, rounded up. */
static int64_t mark(int64_t limit)
{
	return limit - limit / 5;
}

unsigned limit_near(const struct agent *a, int64_t now_ms)
{
	const struct agent_limits *l = &a->spec->limits;
	const struct agent_price *p = &a->spec->price;
	int64_t next = estimated_input(a), cost = a->at.totals.cost_microusd;
	unsigned near = 0;

	if (price_known(p))
		cost = add(cost, input_cost(p, next));
	if (now_ms - a->started_ms >= mark(l->time_ms))
		near |= 1u << AGENT_TIME;
	if (l->cost_microusd > 0 && cost >= mark(l->cost_microusd))
		near |= 1u << AGENT_COST;
	if (add(add(a->at.totals.input, a->at.totals.output), next) >= mark(l->tokens))
		near |= 1u << AGENT_TOKENS;
	if (a->at.iteration - a->at.turn_from >= mark(l->iterations))
		near |= 1u << AGENT_ITERATIONS;
	return near & ~(unsigned)a->at.warned;
}

void limit_sentence(const struct agent *a, enum agent_resource r, int64_t now_ms,
		    char out[LIMIT_TEXT])
{
	const struct agent_limits *l = &a->spec->limits;
	const struct agent_totals *t = &a->at.totals;
	char used[64] = "";

	switch (r) {
	case AGENT_TIME:
		snprintf(used, sizeof(used), "%" PRId64 " of %" PRId64 " seconds",
			 (now_ms - a->started_ms) / 1000, l->time_ms / 1000);
		break;
	case AGENT_COST:
		snprintf(used, sizeof(used), "%" PRId64 " of %" PRId64 " cents",
			 t->cost_microusd / 10000, l->cost_microusd / 10000);
		break;
	case AGENT_TOKENS:
		snprintf(used, sizeof(used), "%" PRId64 " of %" PRId64 " tokens",
			 add(t->input, t->output), l->tokens);
		break;
	case AGENT_ITERATIONS:
		snprintf(used, sizeof(used), "%" PRId32 " of %" PRId32 " replies",
			 a->at.iteration - a->at.turn_from, l->iterations);
		break;
	case AGENT_NRESOURCES:
		break;
	}
	snprintf(out, LIMIT_TEXT, "The limit is near: %s are used. Finish now: %s what you have.",
		 used, limit_can_submit(a) ? "call submit_result with" : "answer in words with");
}

/* ---- limits that a run shares with others */

const char *const agent_share_names[AGENT_NSHARES] = {
	[SHARE_GROUP_COST] = "group_cost",
	[SHARE_GROUP_TIME] = "group_time",
	[SHARE_DAY_COST] = "day_cost",
};

void shared_ask(struct agent *a, struct agent_shared *out)
{
	*out = (struct agent_shared){0};
	if (a->io->shared != NULL)
		a->io->shared(a, out);
	out->near &= ~(unsigned)a->at.shares;
}

bool shared_near(int64_t used, int64_t limit)
{
	return limit > 0 && used >= limit - limit / 5;
}

void shared_sentence(const struct agent *a, const struct agent_shared *s, enum agent_share share,
		     char *out, size_t size)
{
	bool time = share == SHARE_GROUP_TIME;
	int64_t one = time ? 1000 : 10000;

	snprintf(out, size,
		 "The limit of %s is near: %" PRId64 " of %" PRId64
		 " %s are used. Finish now: %s what you have.",
		 share == SHARE_DAY_COST ? "this day" : "all runs of your group",
		 s->of[share].used / one, s->of[share].limit / one, time ? "seconds" : "cents",
		 limit_can_submit(a) ? "call submit_result with" : "answer in words with");
}

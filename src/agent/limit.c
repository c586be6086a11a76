/* The rest of a run's limits.
 *
 * Before each call its greatest possible use is reserved: the input as the last call measured it
 * plus a third of a token for every byte since, at the dearest input price, and the whole
 * output. Too large a reservation lowers the output; below LIMIT_LEAST_OUTPUT the call is not
 * made. So a run passes a limit at most by the error of one input's estimate.
 *
 * Sums saturate: an invented price or usage must not wrap into free money. Nothing here can
 * fail. */
#include "agent/limit.h"

#include <inttypes.h>
#include <stdio.h>

#include "agent/machine.h"
#include "agent/tool.h"
#include "base/util.h"

#define PER_MILLION 1000000
#define USAGE_MAX   INT64_C(1000000000000) /* tokens or micro-USD of one call */

static int64_t times(int64_t a, int64_t b)
{
	int64_t product;

	return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* Money is rounded up: a charge is never below the bill. */
static int64_t whole_microusd(int64_t millionths)
{
	return millionths / PER_MILLION + (millionths % PER_MILLION != 0);
}

static int32_t whole_tokens(int64_t n)
{
	return (int32_t)MIN(n, INT32_MAX);
}

static bool price_known(const struct agent_price *p)
{
	return p->input >= 0 && p->output >= 0;
}

bool price_free(const struct agent_price *p)
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

bool limit_looks(const struct tool *t)
{
	return !(t->flags & (TOOL_ENDS | TOOL_ASKS | TOOL_COMMON));
}

bool limit_can_look(const struct agent_spec *s)
{
	for (unsigned i = 0; i < s->ntools && !s->resumed; i++)
		if (limit_looks(s->tools[i]))
			return true;
	return false;
}

int64_t limit_next_input(const struct agent *a)
{
	return sum_to_max(a->at.measured_input, a->at.new_bytes / 3 + (a->at.new_bytes % 3 != 0));
}

/* Tokens of `input` that a cache had, where reading it costs nothing: `told` by the service; and
 * at a free local server the input sent before, since requests extend each other and few such
 * servers report it. */
static int64_t limit_spared(const struct agent *a, int64_t input, int64_t told)
{
	const struct agent_price *p = &a->spec->price;
	int64_t before = price_free(p) ? a->at.measured_input : 0;

	return p->cache_read == 0 ? MIN(input, MAX(told, before)) : 0;
}

static void limit_spare(struct agent *a, int64_t input, int64_t told)
{
	int64_t sum = sum_to_max(a->at.totals.spared, limit_spared(a, input, told));

	a->at.totals.spared = whole_tokens(sum);
}

int64_t limit_tokens_used(const struct agent *a)
{
	const struct agent_totals *t = &a->at.totals;

	return sum_to_max(t->input - MIN(t->spared, t->input), t->output);
}

/* Tokens of the next input that count toward the limit. */
static int64_t limit_next_counted(const struct agent *a)
{
	int64_t input = limit_next_input(a);

	return input - limit_spared(a, input, 0);
}

/* The price of a cache write may be given too low (0 where a service has none), that of input
 * never. */
static int64_t input_cost(const struct agent_price *p, int64_t tokens)
{
	return whole_microusd(times(tokens, MAX(p->input, p->cache_write)));
}

/* Output that the remaining tokens allow; negative when the input alone is too much. */
int64_t limit_output_for(const struct agent *a, int64_t microusd)
{
	const struct agent_price *p = &a->spec->price;
	int64_t left = microusd - MIN(input_cost(p, limit_next_input(a)), INT64_MAX - 1);

	if (left < 0 || p->output == 0)
		return left < 0 ? -1 : INT64_MAX;
	return left > INT64_MAX / PER_MILLION ? INT64_MAX : left * PER_MILLION / p->output;
}

int64_t limit_call_cost(const struct agent *a, int64_t max_output)
{
	const struct agent_price *p = &a->spec->price;

	if (!price_known(p))
		return 0;
	return sum_to_max(input_cost(p, limit_next_input(a)),
			  whole_microusd(times(max_output, p->output)));
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
		return INT64_MAX; /* only tokens bound the run, as the quote said */
	return limit_output_for(a, limit - used);
}

int64_t limit_window(const struct agent *a)
{
	return a->at.window > 0 ? a->at.window : a->spec->window;
}

/* Tokens that a call may write: as the service told, else as the spec has it. */
static int64_t limit_most_output(const struct agent *a)
{
	return a->at.output_max > 0 ? MIN(a->at.output_max, a->spec->max_output)
				    : a->spec->max_output;
}

/* Services count a little more than they report: this much of a window stays free. */
static int64_t window_spare(int64_t window)
{
	return MAX(window / 100, 96);
}

/* Tokens of the window left by the next input. */
static int64_t window_left(const struct agent *a)
{
	int64_t window = limit_window(a);

	return window - window_spare(window) - limit_next_input(a);
}

/* The most output that fits behind the next input, never under the least. */
static int64_t output_by_window(const struct agent *a, int64_t most)
{
	return limit_window(a) <= 0
		       ? most
		       : MAX(MIN(most, window_left(a)), MIN(most, (int64_t)LIMIT_LEAST_ROOM));
}

int limit_reserve(const struct agent *a, int64_t *max_output)
{
	int64_t most = limit_most_output(a);
	int64_t least = MIN(most, (int64_t)LIMIT_LEAST_OUTPUT);
	int64_t tokens = a->spec->limits.tokens, by_cost = output_by_cost(a);
	int64_t by_tokens = tokens - MIN(limit_tokens_used(a), tokens) - limit_next_counted(a);

	if (!a->at.again && a->at.iteration - a->at.turn_from >= a->spec->limits.iterations)
		return AGENT_ITERATIONS;
	if (by_cost < least)
		return AGENT_COST;
	if (by_tokens < least)
		return AGENT_TOKENS;
	*max_output = output_by_window(a, MIN(most, MIN(by_cost, by_tokens)));
	return -1;
}

/* The agent as it stands after the next call, with `output` tokens of reply. */
static struct agent after_next(const struct agent *a, int64_t output)
{
	int64_t input = limit_next_input(a);
	struct agent after = *a;

	after.at.totals.cost_microusd =
		sum_to_max(after.at.totals.cost_microusd, limit_call_cost(a, output));
	after.at.totals.input = sum_to_max(after.at.totals.input, input);
	limit_spare(&after, input, 0);
	after.at.totals.output = sum_to_max(after.at.totals.output, output);
	after.at.measured_input = sum_to_max(input, output);
	after.at.new_bytes = 0;
	after.at.again = false;
	after.at.iteration++;
	return after;
}

/* The reply's line counts as input already, after a restart as before it. */
int limit_used_up(struct agent *a)
{
	int64_t max_output, line;
	int r;

	if (a->spec->ask_limit) /* a person may raise the limit: the model then reads the results */
		return -1;
	line = a->replayed || a->turn->wire_len == 0 ? 0 : (int64_t)a->turn->wire_len + 1;
	a->at.new_bytes += line;
	r = limit_reserve(a, &max_output);
	a->at.new_bytes -= line;
	return r;
}

bool limit_last(const struct agent *a)
{
	struct agent after;
	int64_t most;

	if (limit_reserve(a, &most) >= 0)
		return false;
	after = after_next(a, MIN(limit_most_output(a), (int64_t)LIMIT_LEAST_OUTPUT));
	return limit_reserve(&after, &most) >= 0;
}

bool limit_last_of(const struct agent *a, int64_t microusd)
{
	int64_t least = MIN(a->spec->max_output, (int64_t)LIMIT_LEAST_OUTPUT);
	struct agent after = after_next(a, least);
	int64_t next = limit_call_cost(a, least);

	return next > 0 && microusd < sum_to_max(next, limit_call_cost(&after, least));
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

	sum = sum_to_max(times(plain, p->input), times(u->cache_read, read));
	sum = sum_to_max(sum,
			 sum_to_max(times(u->cache_write, write), times(u->output, p->output)));
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
	t->estimated_calls += u->estimated && u->input + u->output > 0;
	t->input = sum_to_max(t->input, u->input);
	limit_spare(a, u->input, u->cache_read);
	t->output = sum_to_max(t->output, u->output);
	t->cache_read = sum_to_max(t->cache_read, u->cache_read);
	t->cache_write = sum_to_max(t->cache_write, u->cache_write);
	if (u->cost_microusd >= 0)
		t->cost_microusd = sum_to_max(t->cost_microusd, u->cost_microusd);
	else
		t->uncosted_calls++;
}

void limit_settle(struct agent *a, struct usage *u)
{
	limit_charge(a, u);
	if (u->window > 0)
		a->at.window = whole_tokens(u->window);
	if (u->input > 0) {
		a->at.measured_input = u->input;
		a->at.new_bytes = 0;
	}
}

/* 80 % of `limit`, rounded up. */
static int64_t limit_mark(int64_t limit)
{
	return limit - limit / 5;
}

unsigned limit_near(const struct agent *a, int64_t now_ms)
{
	const struct agent_limits *l = &a->spec->limits;
	const struct agent_price *p = &a->spec->price;
	int64_t next = limit_next_input(a), cost = a->at.totals.cost_microusd, tokens;
	unsigned near = 0;

	if (price_known(p))
		cost = sum_to_max(cost, input_cost(p, next));
	if (now_ms - a->started_ms >= limit_mark(l->time_ms))
		near |= 1u << AGENT_TIME;
	if (l->cost_microusd > 0 && cost >= limit_mark(l->cost_microusd))
		near |= 1u << AGENT_COST;
	tokens = sum_to_max(limit_tokens_used(a), limit_next_counted(a));
	if (tokens >= limit_mark(l->tokens))
		near |= 1u << AGENT_TOKENS;
	if (a->at.iteration - a->at.turn_from >= limit_mark(l->iterations))
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
			 limit_tokens_used(a), l->tokens);
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
	[SHARE_GROUP_COST] = "group_cost", [SHARE_GROUP_TIME] = "group_time",
	[SHARE_DAY_COST] = "day_cost",     [SHARE_WEEK_COST] = "week_cost",
	[SHARE_MONTH_COST] = "month_cost", [SHARE_FOLDER_COST] = "folder_cost",
	[SHARE_TAG_COST] = "tag_cost",
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
	static const char *const of[AGENT_NSHARES] = {
		[SHARE_GROUP_COST] = "all runs of your group",
		[SHARE_GROUP_TIME] = "all runs of your group",
		[SHARE_DAY_COST] = "this day",
		[SHARE_WEEK_COST] = "this week",
		[SHARE_MONTH_COST] = "this month",
	};
	bool time = share == SHARE_GROUP_TIME;
	int64_t one = time ? 1000 : 10000;
	char whose[120];

	if (s->of[share].whose != NULL)
		snprintf(whose, sizeof(whose), "%.80s for this %s", s->of[share].whose,
			 s->of[share].period);
	snprintf(out, size,
		 "The limit of %s is near: %" PRId64 " of %" PRId64
		 " %s are used. Finish now: %s what you have.",
		 s->of[share].whose != NULL ? whose : of[share], s->of[share].used / one,
		 s->of[share].limit / one, time ? "seconds" : "cents",
		 limit_can_submit(a) ? "call submit_result with" : "answer in words with");
}

/* ---- Room in the window.
 *
 * Two marks with a distance between them: room is made at 80 % and down to 50 %, so that a
 * rewrite, which costs the provider's cache once, pays for many calls that only extend it.
 * Removed text stays removed: the next request extends the last one.
 *
 * Order: less output first, where the service's numbers show that this is enough; then bodies of
 * results that were read (their calls stay, so pairing holds by construction); then a span of
 * whole lines, of which a ledger remains; at last unread results, each cut to the same length,
 * and only when the input does not fit, not at 80 %.
 *
 * When a service says that a conversation is too large and gives no number, the estimate was
 * wrong or the window is smaller than the table says. Then half of it must do, three times at
 * most, and the refused size is the window from then on; where nothing can go, a quarter of the
 * output must do.
 *
 * Nothing here can fail. */

#define HIGH_TENTHS 8
#define LOW_TENTHS  5

/* The output that a call keeps free; at most a quarter of the window, or a small window would be
 * full from the start. */
static int64_t reserve(const struct agent *a)
{
	return MIN(limit_most_output(a), limit_window(a) / 4);
}

static int64_t tenths(int64_t n, int t)
{
	return n / 10 * t + n % 10 * t / 10;
}

bool compact_due(const struct agent *a, struct agent_compact *out)
{
	int64_t window = limit_window(a), now = limit_next_input(a);
	int64_t high = tenths(window, HIGH_TENTHS) - reserve(a);
	int64_t fits = now + window_left(a) - LIMIT_LEAST_ROOM; /* leaves the least reply */

	*out = (struct agent_compact){.tokens = now, .overflow = a->at.overflowed};
	out->newest = out->overflow || (window > 0 && now > fits);
	if (out->overflow && (window <= 0 || now <= fits)) { /* ava's numbers show none */
		out->target = out->most = now / 2;
		return true;
	}
	if (!out->overflow && (window <= 0 || now <= high || now < a->at.compact_floor))
		return false;
	out->target = MAX(tenths(window, LOW_TENTHS) - reserve(a), window / 10);
	out->most = MAX(out->newest ? fits : high, out->target);
	return true;
}

void compact_done(struct agent *a, const struct agent_compacted *d)
{
	int64_t now = limit_next_input(a);

	if (d->bytes_after < d->bytes_before && d->bytes_before > 0) {
		/* The tokens shrink as the bytes do: tokens per byte were measured. */
		a->at.measured_input =
			(int64_t)((double)now * (double)d->bytes_after / (double)d->bytes_before);
		a->at.new_bytes = 0;
	}
	/* In case this edit removed little, the next one waits until the input has grown by a tenth
	 * of the window. */
	a->at.compact_floor = limit_next_input(a) + limit_window(a) / 10;
}

/* ---- learning from a refusal */

/* Some services count the requested output with the prompt: our own estimate shows which of the
 * two is meant. */
static int64_t told_prompt(const struct agent *a, const struct agent_told *t)
{
	int64_t now = limit_next_input(a), without = t->prompt - t->asked;

	return t->prompt > now && without >= now / 2 && without <= now + now / 2 ? without
										 : t->prompt;
}

bool limit_learn(struct agent *a, const struct agent_told *t)
{
	int64_t half = MAX(t->asked / 2, (int64_t)LIMIT_LEAST_ROOM), prompt = told_prompt(a, t);
	int64_t left = t->window - window_spare(t->window) - prompt;

	if (t->cap) {
		bool told = t->output_max > 0 && t->output_max < t->asked;

		a->at.output_max = whole_tokens(told ? t->output_max : half);
		return a->at.output_max < t->asked;
	}
	if (t->window > 0)
		a->at.window = whole_tokens(t->window);
	if (t->window > 0 && prompt / 3 > limit_next_input(a)) {
		/* The service counts more tokens than there are bytes: its numbers help only for
		 * the output. */
		a->at.output_max =
			whole_tokens(left >= LIMIT_LEAST_ROOM && left < t->asked ? left : half);
		return a->at.output_max < t->asked;
	}
	if (prompt > 0) {
		a->at.measured_input = prompt;
		a->at.new_bytes = 0;
	}
	if (t->window <= 0 || window_left(a) < LIMIT_LEAST_ROOM)
		return false;
	if (window_left(a) < t->asked)
		return true;
	/* By these numbers the request would have fitted: halve the output. */
	a->at.output_max = whole_tokens(half);
	return half < t->asked;
}

bool limit_lower(struct agent *a)
{
	int64_t most = limit_most_output(a), quarter = MAX(most / 4, (int64_t)LIMIT_LEAST_ROOM);

	if (a->at.window > 0 && window_left(a) < LIMIT_LEAST_ROOM)
		return false; /* by the service's own numbers the input alone is too much */
	a->at.output_max = whole_tokens(quarter);
	return quarter < most;
}

/* A token counts as three bytes, as for the next input. */
size_t limit_result_bytes(const struct agent *a, unsigned calls, size_t most)
{
	int64_t window = limit_window(a), share, all;

	if (window <= 0)
		return most;
	all = MAX(window_left(a) - reserve(a), window / 16);
	share = MIN(window / 4, all / MAX((int64_t)calls, 1)) * 3;
	return (size_t)MIN(MAX(share, (int64_t)COMPACT_LEAST), (int64_t)most);
}

/* ---- choosing what to remove */

/* The first line that stays when `keep` lines at the end do: an assistant's, so that no result
 * is without its call; 0: none can go. */
static size_t boundary(const struct compact_line *lines, size_t n, size_t keep)
{
	size_t at = n > keep ? n - keep : 0, last = n;

	while (last > 0 && !lines[last - 1].assistant)
		last--;
	if (last == 0)
		return 0;
	at = MIN(at, last - 1);
	while (at > 1 && (!lines[at].assistant || lines[at - 1].assistant))
		at--;
	return at > 1 ? at : 0;
}

static int64_t elide(struct compact_plan *p, struct compact_result *results, size_t n, size_t from,
		     bool fetched)
{
	int64_t freed = 0;

	for (size_t i = 0; i < n && p->freed + freed < p->need; i++) {
		struct compact_result *r = &results[i];

		if (r->line < p->fold || r->line >= from || r->fixed || r->go ||
		    r->fetched != fetched || r->bytes < COMPACT_LEAST)
			continue;
		r->go = true;
		freed += r->bytes - COMPACT_MARKER;
	}
	return freed;
}

/* Bytes freed by folding all lines before `from`, markers in the rest counted. */
static int64_t limit_folded(const struct compact_line *lines, const struct compact_result *results,
			    size_t n, size_t from)
{
	int64_t freed = -(int64_t)COMPACT_LEDGER * COMPACT_MARKER;

	for (size_t i = 1; i < from; i++)
		freed += lines[i].bytes;
	for (size_t i = 0; i < n; i++)
		if (results[i].go && results[i].line >= from)
			freed += results[i].bytes - COMPACT_MARKER;
	return freed;
}

/* Bytes freed when results from line `from` on keep `keep` each; done with `go`. */
static int64_t cut_to(struct compact_result *results, size_t n, size_t from, int64_t keep, bool go)
{
	int64_t freed = 0;

	for (size_t i = 0; i < n; i++) {
		struct compact_result *r = &results[i];

		if (r->line < from || r->fixed || r->bytes < keep + COMPACT_LEAST)
			continue;
		freed += r->bytes - keep - COMPACT_MARKER;
		if (go) {
			r->go = true;
			r->keep = keep;
		}
	}
	return freed;
}

/* Remove results that were read, then fold lines. */
static void plan_older(struct compact_plan *p, const struct compact_line *lines, size_t nlines,
		       struct compact_result *results, size_t nresults)
{
	for (size_t keep = COMPACT_KEEP; keep > 0; keep /= 2) {
		size_t from = boundary(lines, nlines, keep);
		int64_t more;

		p->freed += elide(p, results, nresults, from, false);
		p->freed += elide(p, results, nresults, from, true);
		if (p->freed >= p->need)
			return;
		more = limit_folded(lines, results, nresults, from);
		if (from > 0 && more > p->freed) {
			p->freed = more;
			p->fold = from;
		}
		if (p->freed >= p->need || (p->freed > 0 && p->freed >= p->must))
			return;
	}
}

/* Shorten the results behind the last assistant line to one length: the longest that frees
 * enough. */
static int64_t shorten(const struct compact_plan *p, const struct compact_line *lines,
		       size_t nlines, struct compact_result *results, size_t nresults)
{
	int64_t want = p->must - p->freed, keep = 0, high = 0;
	size_t from = nlines;

	while (from > 0 && !lines[from - 1].assistant)
		from--;
	for (size_t i = 0; i < nresults; i++)
		if (results[i].line >= from)
			high = MAX(high, results[i].bytes);
	while (keep < high) {
		int64_t middle = keep + (high - keep + 1) / 2;

		if (cut_to(results, nresults, from, middle, false) >= want)
			keep = middle;
		else
			high = middle - 1;
	}
	return cut_to(results, nresults, from, keep, true);
}

void compact_plan(struct compact_plan *p, const struct compact_line *lines, size_t nlines,
		  struct compact_result *results, size_t nresults)
{
	p->freed = 0;
	p->fold = 0;
	plan_older(p, lines, nlines, results, nresults);
	if (p->newest && p->freed < p->must)
		p->freed += shorten(p, lines, nlines, results, nresults);
}

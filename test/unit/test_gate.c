/* The gate: order, cuts and growth, one probe, spread release, the circuit,
 * heads that wait for their first, and that no permit is ever lost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "base/util.h"
#include "provider/retry.h"

#define N 1000

struct rig {
	struct call_gate g;
	struct gate_circuit c;
	struct gate_ticket t[N];
	int64_t now, again;
};

static void rig_open(struct rig *r)
{
	memset(r, 0, sizeof(*r));
	r->now = 1000000;
	gate_init(&r->g, &r->c);
	r->g.patience = 0; /* it has just refused several: the next one is part of a storm */
}

static void rig_close(struct rig *r)
{
	for (int i = 0; i < N; i++)
		gate_leave(&r->t[i]);
	gate_fini(&r->g);
}

#define RIG_TEST(name) TEST_IN(name, struct rig, r, rig_open, rig_close)

static void want(struct rig *r, int from, int to, uint64_t head)
{
	for (int i = from; i < to; i++)
		gate_want(&r->g, &r->t[i], head, r->now);
}

/* Index of the next that goes; -1: nobody now. */
static int next(struct rig *r)
{
	struct gate_ticket *t = gate_next(&r->g, r->now, (uint64_t)rand(), &r->again);

	return t ? (int)(t - r->t) : -1;
}

static int drain(struct rig *r)
{
	int n = 0;

	while (next(r) >= 0)
		n++;
	return n;
}

static void end(struct rig *r, int i, enum reply_class cls, int64_t wait)
{
	struct retry_plan plan = {.wait_ms = wait};

	gate_end(&r->t[i], cls, &plan, r->now);
}

TEST(order)
{
	struct rig r;

	rig_open(&r);
	assert_int_equal(next(&r), -1);
	want(&r, 0, N, 0);
	for (int i = 0; i < N; i++)
		assert_int_equal(next(&r), i); /* no limit until the service sets one */
	assert_int_equal(next(&r), -1);
	assert_true(r.again == INT64_MAX);
	assert_int_equal(r.g.held, N);
	for (int i = 0; i < N; i++)
		end(&r, i, REPLY_OK, 0);
	assert_int_equal(r.g.held, 0);
	gate_fini(&r.g);
}

RIG_TEST(leave_from_everywhere)
{
	want(r, 0, 3, 0);
	gate_leave(&r->t[1]);
	gate_leave(&r->t[1]);
	assert_int_equal(next(r), 0);
	assert_int_equal(next(r), 2);
	gate_leave(&r->t[0]);
	end(r, 0, REPLY_OK, 0); /* it is out already */
	assert_int_equal(r->g.held, 1);
	gate_began(&r->t[0], r->now);
}

/* A thousand are told "too many" at once. */
RIG_TEST(no_stampede)
{
	int probe;
	int64_t first;

	want(r, 0, N, 0);
	drain(r);
	for (int i = 0; i < N; i++)
		end(r, i, REPLY_RATE_LIMIT, 5000);
	assert_int_equal(r->g.limit, 500); /* once, not a thousand times */
	want(r, 0, N, 0);
	assert_int_equal(next(r), -1);
	assert_int_equal(r->again, r->now + 5000);
	r->now += 4999;
	assert_int_equal(next(r), -1);
	r->now += 1;
	probe = next(r);
	assert_int_equal(probe, 0);
	assert_int_equal(next(r), -1); /* one, and nobody beside it */
	assert_true(r->again == INT64_MAX);
	gate_began(&r->t[probe], r->now);
	first = r->now;
	while (r->g.held < 400) {
		int i = next(r);

		assert_true(r->now - first < 10 * GATE_SPREAD_MS);
		if (i < 0) {
			assert_in_range(r->again, r->now + 1, r->now + 2 * GATE_SPREAD_MS / 500);
			r->now = r->again;
		}
	}
	assert_true(r->now - first > GATE_SPREAD_MS / 4); /* spread */
}

RIG_TEST(probe_fails)
{
	want(r, 0, 100, 0);
	drain(r);
	for (int i = 0; i < 100; i++)
		end(r, i, REPLY_OVERLOADED, 1000);
	want(r, 0, 100, 0);
	r->now += 1000;
	assert_int_equal(next(r), 0);
	end(r, 0, REPLY_OVERLOADED, 3000);
	assert_int_equal(r->g.limit, 50); /* a probe cuts no more */
	assert_int_equal(next(r), -1);
	assert_int_equal(r->again, r->now + 3000);
	r->now += 3000;
	assert_int_equal(next(r), 1);
	gate_leave(&r->t[1]); /* cancelled: the next one probes, at once */
	assert_int_equal(next(r), 2);
	end(r, 2, REPLY_NETWORK, 0);
	assert_int_equal(next(r), 3);
	end(r, 3, REPLY_OK, 0);
	assert_false(r->g.closed);
}

/* What was sent before the cut is part of it; what comes later cuts again. */
RIG_TEST(cut_and_growth)
{
	unsigned before;

	want(r, 0, 800, 0);
	drain(r);
	end(r, 0, REPLY_RATE_LIMIT, 100);
	assert_int_equal(r->g.limit, 400);
	end(r, 1, REPLY_RATE_LIMIT, 100);
	assert_int_equal(r->g.limit, 400);
	for (int i = 2; i < 800; i++)
		end(r, i, REPLY_OK, 0); /* nor do these make it grow */
	assert_int_equal(r->g.limit, 400);
	r->now += 100;
	want(r, 0, 1, 0);
	assert_int_equal(next(r), 0);
	end(r, 0, REPLY_OK, 0);
	before = r->g.limit;
	for (int i = 0; i < 400; i++) { /* a round */
		want(r, i, i + 1, 0);
		while (next(r) < 0)
			r->now++;
		end(r, i, REPLY_OK, 0);
	}
	assert_in_range(r->g.limit, before + 20, before + 26); /* 400 / 16, and less as it grows */
	want(r, 0, 10, 0);
	while (r->g.held < 10)
		if (next(r) < 0)
			r->now++;
	assert_int_equal(next(r), -1); /* nobody waits: nothing is spread any more */
	r->g.patience = 0;
	end(r, 0, REPLY_RATE_LIMIT, 100);
	assert_int_equal(r->g.limit, 5);
	end(r, 1, REPLY_RATE_LIMIT, 100);
}

/* Replies that come at once: few are inside while they are spread, and one that
 * is still told to wait must not throw the limit back to the least. */
RIG_TEST(cut_while_spread)
{
	unsigned limit = 0;

	want(r, 0, 400, 0);
	drain(r);
	end(r, 0, REPLY_RATE_LIMIT, 100);
	for (int i = 1; i < 400; i++)
		end(r, i, REPLY_OK, 0);
	assert_int_equal(r->g.limit, 200);
	r->now += 100;
	want(r, 0, N, 0);
	for (int n = 0, i; n < 100; r->now++) {
		i = next(r);
		if (i < 0)
			continue;
		r->g.patience = 0;
		end(r, i, n == 99 ? REPLY_RATE_LIMIT : REPLY_OK, 100);
		limit = n++ == 98 ? r->g.limit : limit;
	}
	assert_true(limit > 200);
	assert_int_equal(r->g.limit, limit / 2);
}

/* Few were under way when it was cut; a thousand wait. Each good reply takes
 * half a second: all are through in a time that a person waits. */
RIG_TEST(recovers_soon)
{
	int64_t begun[N], since;
	int done = 0;

	want(r, 0, 8, 0);
	drain(r);
	for (int i = 0; i < 8; i++)
		end(r, i, REPLY_RATE_LIMIT, 1000);
	assert_int_equal(r->g.limit, 4);
	want(r, 0, N, 0);
	since = r->now += 1000;
	while (done < N) {
		for (int i; (i = next(r)) >= 0;)
			begun[i] = r->now;
		assert_true(r->g.held <= r->g.limit);
		for (int i = 0; i < N; i++) {
			if (r->t[i].place != GATE_IN || r->now - begun[i] < 500)
				continue;
			end(r, i, REPLY_OK, 0);
			done++;
		}
		r->now += 5;
	}
	assert_true(r->now - since > 2 * GATE_SPREAD_MS); /* not all at once, either */
	assert_true(r->now - since < 15 * GATE_SPREAD_MS);
}

RIG_TEST(limit_holds_and_is_forgotten)
{
	unsigned held;

	want(r, 0, 1, 0);
	assert_int_equal(next(r), 0);
	end(r, 0, REPLY_RATE_LIMIT, 10);
	assert_int_equal(r->g.limit, GATE_LEAST);
	r->now += 10;
	want(r, 0, 100, 0);
	assert_int_equal(next(r), 0);
	gate_began(&r->t[0], r->now);
	while (next(r) >= 0 || r->again != INT64_MAX)
		r->now++;
	assert_int_equal(r->g.held, r->g.limit);
	r->now += GATE_FORGET_MS;
	held = r->g.held;
	assert_int_equal(drain(r), 100 - (int)held);
}

RIG_TEST(closed_for_the_longest)
{
	want(r, 0, 3, 0);
	drain(r);
	end(r, 0, REPLY_RATE_LIMIT, 9000);
	end(r, 1, REPLY_RATE_LIMIT, 100);
	end(r, 2, REPLY_SERVER, 99999); /* says nothing about the rate */
	want(r, 0, 1, 0);
	assert_int_equal(next(r), -1);
	assert_int_equal(r->again, r->now + 9000);
	r->now += 9000;
	assert_int_equal(next(r), 0);
	end(r, 0, REPLY_RATE_LIMIT, 600000); /* not all others wait as long as one was told to */
	want(r, 0, 1, 0);
	assert_int_equal(next(r), -1);
	assert_int_equal(r->again, r->now + GATE_CLOSED_MS);
}

/* ---- the circuit */

/* Those that wait are sent away, wherever they stand; what comes back later asks one by one. */
RIG_TEST(sent_away_and_back)
{
	want(r, 0, 1, 7);
	assert_int_equal(drain(r), 1);
	want(r, 1, 4, 7); /* behind the leader */
	want(r, 4, 6, 0);
	assert_int_equal(drain(r), 2);
	gate_back(&r->g, r->now);
	want(r, 6, 9, 0);
	assert_int_equal(next(r), 6); /* the probe */
	assert_int_equal(next(r), -1);
	for (int i = 0; i < 5; i++) /* 7, 8, and the three that follow */
		assert_true(gate_send_away(&r->g)->refused);
	assert_null(gate_send_away(&r->g));
	assert_int_equal(r->g.queued + r->g.follow, 0);
	assert_int_equal(r->g.held, 4);
	want(r, 10, 30, 0);
	assert_int_equal(next(r), -1);
	gate_began(&r->t[6], r->now); /* it answers: the others follow over time */
	assert_true(next(r) >= 0);
	r->now += GATE_FORGET_MS - 1;
	assert_in_range(r->g.limit, 1, 16);
}

RIG_TEST(circuit)
{
	struct call_gate other;
	struct gate_ticket t = {0};
	int64_t again;

	gate_init(&other, &r->c); /* another model of the provider */
	want(r, 0, 20, 0);
	drain(r);
	for (int i = 0; i < 4; i++)
		end(r, i, i % 2 ? REPLY_AUTH : REPLY_BILLING, 0);
	assert_false(r->c.open);
	end(r, 4, REPLY_AUTH, 0);
	assert_true(r->c.open);
	assert_int_equal(r->c.cls, REPLY_AUTH);
	end(r, 5, REPLY_AUTH, 0); /* was under way: not opened for longer */
	assert_int_equal(r->c.until_ms, r->now + CIRCUIT_MS);
	gate_want(&other, &t, 0, r->now);
	assert_ptr_equal(gate_next(&other, r->now, 0, &again), &t);
	assert_true(t.refused);
	assert_int_equal(t.place, GATE_OUT);
	assert_int_equal(other.held, 0);
	r->now += CIRCUIT_MS;
	want(r, 0, 2, 0);
	assert_int_equal(next(r), 0); /* one to see */
	assert_false(r->t[0].refused);
	assert_int_equal(next(r), 1);
	assert_true(r->t[1].refused);
	end(r, 0, REPLY_AUTH, 0);
	assert_int_equal(r->c.until_ms, r->now + 2 * CIRCUIT_MS);
	for (int i = 0; i < 9; i++) {
		r->now = r->c.until_ms;
		want(r, 0, 1, 0);
		assert_int_equal(next(r), 0);
		end(r, 0, REPLY_BILLING, 0);
		assert_true(r->c.until_ms <= r->now + CIRCUIT_MOST_MS);
	}
	r->now = r->c.until_ms;
	want(r, 0, 1, 0);
	assert_int_equal(next(r), 0);
	gate_leave(&r->t[0]); /* cancelled: the next one sees */
	want(r, 0, 1, 0);
	assert_int_equal(next(r), 0);
	assert_false(r->t[0].refused);
	end(r, 0, REPLY_OK, 0);
	assert_false(r->c.open);
	assert_int_equal(r->c.refusals, 0);
	gate_fini(&other);
}

RIG_TEST(circuit_needs_five_in_a_row)
{
	for (int round = 0; round < 5; round++) {
		want(r, 0, 5, 0);
		drain(r);
		for (int i = 0; i < 4; i++)
			end(r, i, REPLY_AUTH, 0);
		end(r, 4, REPLY_OK, 0);
		assert_false(r->c.open);
	}
}

/* ---- heads */

RIG_TEST(first_of_a_head_goes_first)
{
	want(r, 0, 5, 77);
	want(r, 5, 7, 88);
	want(r, 7, 8, 0);
	assert_int_equal(next(r), 0);
	assert_int_equal(next(r), 5);
	assert_int_equal(next(r), 7);
	assert_int_equal(next(r), -1);
	assert_int_equal(r->again, r->now + GATE_LEAD_MS);
	r->now += 900;
	gate_began(&r->t[0], r->now);
	gate_began(&r->t[0], r->now);
	for (int i = 1; i < 5; i++)
		assert_int_equal(next(r), i);
	assert_int_equal(next(r), -1);
	end(r, 5, REPLY_SERVER, 0); /* no answer: the next one of 88 leads */
	assert_int_equal(next(r), 6);
	want(r, 8, 10, 77); /* still in the cache */
	assert_int_equal(next(r), 8);
	assert_int_equal(next(r), 9);
	r->now += GATE_WARM_MS;
	want(r, 10, 12, 77); /* not any more */
	assert_int_equal(next(r), 10);
	assert_int_equal(next(r), -1);
}

RIG_TEST(a_slow_leader_is_not_waited_for)
{
	want(r, 0, 3, 77);
	assert_int_equal(next(r), 0);
	r->now += GATE_LEAD_MS - 1;
	assert_int_equal(next(r), -1);
	r->now++;
	assert_int_equal(next(r), 1);
	assert_int_equal(next(r), 2);
	end(r, 0, REPLY_OK, 0);
}

RIG_TEST(leader_leaves)
{
	want(r, 0, 4, 77);
	gate_leave(&r->t[2]); /* a follower */
	gate_leave(&r->t[0]); /* the leader, before it went */
	assert_int_equal(next(r), 1);
	assert_int_equal(next(r), -1);
	gate_leave(&r->t[1]);
	assert_int_equal(next(r), 3);
	gate_leave(&r->t[3]);
	want(r, 0, 1, 77);
	assert_int_equal(next(r), 0);
}

RIG_TEST(more_heads_than_places)
{
	for (int i = 0; i < 200; i++)
		want(r, i, i + 1, 1000 + (uint64_t)i);
	assert_int_equal(drain(r), 200); /* what has no place does not wait */
	for (int i = 0; i < 200; i++)
		end(r, i, REPLY_OK, 0);
	for (int i = 0; i < 200; i++)
		want(r, i, i + 1, 5000 + (uint64_t)i); /* old ones make room */
	assert_int_equal(drain(r), 200);
	want(r, 200, 202, 5000);
	assert_int_equal(drain(r), 0); /* its leader is at work */
}

/* ---- rates: a hundred runs of `calls` each, in moved time, against services that refuse.
 * Beside each weather stands how it went when every refusal closed the gate. */

#define RUNS       100
#define SEEDS      5
#define LATENCY_MS 200

struct weather {
	const char *name;
	int calls;
	double rate;          /* of refusals, at any time */
	int64_t from, to;     /* ms between which all is refused */
	unsigned most;        /* under way, beyond which all is refused; 0: any */
	int64_t told_ms;      /* a rate limit, and the service says when; 0: an overload */
	double took_ms, sent; /* at most, in the middle of the seeds */
};

static const struct weather weathers[] = {
	{"calm", 60, 0, 0, 0, 0, 0, 12000, 6000},
	/* 342,954 ms; 581,462; 1,139,822; 1,937,809; 598,101 */
	{"1 in 100", 60, 0.01, 0, 0, 0, 0, 14400, 6100},
	{"2 in 100", 60, 0.02, 0, 0, 0, 0, 14400, 6200},
	{"5 in 100", 60, 0.05, 0, 0, 0, 0, 200000, 6400},
	{"10 in 100", 60, 0.1, 0, 0, 0, 0, 1800000, 6800},
	{"2 in 100 after a storm", 60, 0.02, 3000, 13000, 0, 0, 60000, 6300},
	/* 6,139; 6,139; 6,102 requests */
	{"a storm from the start", 60, 0, 0, 60000, 0, 0, 88000, 6141},
	{"a storm", 60, 0, 3000, 63000, 0, 0, 88000, 6141},
	{"a storm that says when", 60, 0, 3000, 63000, 0, 20000, 89000, 6102},
	/* 58,066 ms and 6,058 requests; 132,348 and 6,096 */
	{"50 at once", 60, 0, 0, 0, 50, 0, 60000, 6100},
	{"20 at once", 60, 0, 0, 0, 20, 0, 132000, 6180},
};

struct play {
	struct rig r;
	struct retry retry[RUNS];
	int64_t due[RUNS]; /* of its answer or its next attempt; 0: it is at the gate */
	int left[RUNS];    /* calls */
	bool parked[RUNS];
	unsigned under_way, sent, seed;
};

static double drawn(struct play *p)
{
	p->seed = p->seed * 1103515245u + 12345u;
	return (double)(p->seed >> 8) / (double)(1u << 24);
}

static void attempt_failed(struct play *p, const struct weather *w, int i)
{
	enum reply_class cls = w->told_ms > 0 ? REPLY_RATE_LIMIT : REPLY_OVERLOADED;
	struct retry_when when = {p->r.now, p->r.now, INT64_MAX, (uint64_t)(drawn(p) * 1e9)};
	struct retry_failure f = {.cls = cls, .status = 529};
	struct retry_plan plan;
	char told[24];

	snprintf(told, sizeof(told), "%d", (int)w->told_ms);
	f.after_ms = w->told_ms > 0 ? told : NULL;
	retry_decide(&p->retry[i], &retry_default, &f, &when, &plan);
	gate_end(&p->r.t[i], cls, &plan, p->r.now);
	p->parked[i] = true;
	p->due[i] = p->r.now + plan.wait_ms;
}

/* true: its last call is answered. */
static bool due(struct play *p, const struct weather *w, int i, int64_t since)
{
	int64_t at = p->r.now - since;
	bool over = true;

	p->due[i] = 0;
	if (p->parked[i]) {
		want(&p->r, i, i + 1, 0);
		p->parked[i] = false;
		return false;
	}
	if (drawn(p) < w->rate || (at >= w->from && at < w->to) ||
	    (w->most > 0 && p->under_way > w->most)) {
		attempt_failed(p, w, i);
		over = false;
	} else {
		end(&p->r, i, REPLY_OK, 0);
		p->retry[i] = (struct retry){0};
		over = --p->left[i] == 0;
		if (!over)
			want(&p->r, i, i + 1, 0);
	}
	p->under_way--;
	return over;
}

static void weather_play(const struct weather *w, unsigned seed, double *took_ms, double *sent)
{
	struct play *p = test_calloc(1, sizeof(*p));
	int64_t since, soon;
	int open = RUNS, i;

	rig_open(&p->r);
	p->r.g.patience = GATE_CREDIT; /* as gate_init has it */
	since = p->r.now;
	p->seed = seed;
	for (i = 0; i < RUNS; i++)
		p->left[i] = w->calls;
	want(&p->r, 0, RUNS, 0);
	while (open > 0) {
		for (struct gate_ticket *t;
		     (t = gate_next(&p->r.g, p->r.now, (uint64_t)(drawn(p) * 1e9), &p->r.again)) !=
		     NULL;) {
			p->under_way++;
			p->sent++;
			p->due[t - p->r.t] = p->r.now + LATENCY_MS;
		}
		soon = p->r.again;
		for (i = 0; i < RUNS; i++)
			soon = p->due[i] > 0 ? MIN(soon, p->due[i]) : soon;
		assert_true(soon < INT64_MAX);
		p->r.now = MAX(soon, p->r.now);
		for (i = 0; i < RUNS; i++)
			if (p->due[i] > 0 && p->due[i] <= p->r.now)
				open -= due(p, w, i, since);
	}
	*took_ms = (double)(p->r.now - since);
	*sent = p->sent;
	rig_close(&p->r);
	test_free(p);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

TEST(rates)
{
	for (size_t i = 0; i < ARRAY_LEN(weathers); i++) {
		const struct weather *w = &weathers[i];
		double took[SEEDS], sent[SEEDS];

		for (unsigned k = 0; k < SEEDS; k++)
			weather_play(w, (k + 1) * 7919, &took[k], &sent[k]);
		qsort(took, SEEDS, sizeof(took[0]), by_size);
		qsort(sent, SEEDS, sizeof(sent[0]), by_size);
		print_message("%-24s %8.0f ms %6.0f requests\n", w->name, took[SEEDS / 2],
			      sent[SEEDS / 2]);
		assert_true(took[SEEDS / 2] <= w->took_ms);
		assert_true(sent[SEEDS / 2] <= w->sent);
	}
}

/* The account of refusals, one by one. */
TEST(one_refusal_is_no_storm)
{
	struct rig r;
	struct retry_plan own = {.wait_ms = 1400}, told = {.wait_ms = 1400, .told = true};

	rig_open(&r);
	r.g.patience = GATE_CREDIT;
	want(&r, 0, 10, 0);
	drain(&r);
	gate_end(&r.t[0], REPLY_OVERLOADED, &own, r.now);
	assert_false(r.g.closed);
	assert_int_equal(r.g.limit, GATE_MAX);
	assert_in_range(own.wait_ms, GATE_ALONE_MS / 2, GATE_ALONE_MS);
	gate_end(&r.t[1], REPLY_OVERLOADED, &told, r.now);
	assert_int_equal(told.wait_ms, 1400); /* as the service says */
	end(&r, 2, REPLY_OK, 0);
	assert_int_equal(r.g.patience, GATE_CREDIT - 3 * GATE_REFUSAL + 1);
	end(&r, 3, REPLY_OVERLOADED, 900);
	assert_false(r.g.closed);
	end(&r, 4, REPLY_OVERLOADED, 900);
	end(&r, 5, REPLY_OVERLOADED, 900); /* the third in a row */
	assert_true(r.g.closed);
	rig_close(&r);
}

/* A limit of the account that says when holds for all at once. */
TEST(told_for_all)
{
	struct retry_plan told = {.wait_ms = 20000, .told = true};
	struct rig r;

	rig_open(&r);
	r.g.patience = GATE_CREDIT;
	want(&r, 0, 2, 0);
	drain(&r);
	gate_end(&r.t[0], REPLY_RATE_LIMIT, &told, r.now);
	assert_true(r.g.closed);
	rig_close(&r);
}

/* ---- whatever happens, in any order: bounds hold and everyone comes through */

static enum reply_class draw_end(void)
{
	static const enum reply_class ends[] = {REPLY_OK,     REPLY_OK,         REPLY_OK,
						REPLY_SERVER, REPLY_RATE_LIMIT, REPLY_OVERLOADED,
						REPLY_AUTH};

	return ends[(size_t)rand() % ARRAY_LEN(ends)];
}

static void play(unsigned seed)
{
	int left = 3000, inside[N], n = 0, idle = 0;
	struct rig r;

	srand(seed);
	rig_open(&r);
	while (left > 0 || r.g.queued + r.g.follow + r.g.held > 0) {
		int what = rand() % 8, i = rand() % N;

		if (what < 3 && left > 0 && r.t[i].place == GATE_OUT) {
			want(&r, i, i + 1, rand() % 3 ? (uint64_t)(rand() % 80) : 0);
			left--;
		} else if (what == 3) {
			gate_leave(&r.t[i]);
		} else if (what == 4) {
			gate_began(&r.t[i], r.now);
		} else if (what == 5) {
			end(&r, i, draw_end(), rand() % 3000);
		}
		n = 0;
		for (int k; (k = next(&r)) >= 0;)
			if (!r.t[k].refused)
				inside[n++ % N] = k;
		assert_true(r.g.held <= GATE_MAX);
		for (int k = 0; k < n && k < N; k++)
			assert_int_equal(r.t[inside[k]].place, GATE_IN);
		r.now += rand() % 50;
		/* Nothing inside, some waiting: time alone must let one go. */
		if (r.g.held == 0 && r.g.queued + r.g.follow > 0) {
			assert_true(r.again != INT64_MAX);
			assert_true(++idle < 100000);
		}
	}
	rig_close(&r);
}

TEST(any_order)
{
	for (unsigned seed = 1; seed <= 20; seed++)
		play(seed);
}

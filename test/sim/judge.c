/* The judge of a played world. It reads the files that are left, line by line, and
 * knows from doc/DESIGN.md what may stand there: nothing here asks the runtime. */
#include <ava.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "clockwork.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "ledger.h"
#include "lives.h"
#include "memdisk.h"
#include "service.h"
#include "standing.h"
#include "subagent/replay.h"

#define CALLS_MAX 256
#define SPENT_MAX 4096
#define TWICE_MAX 4096
#define RUNS_MAX  512 /* with those of standing orders */

struct call {
	char id[16], name[40];
	bool answered;
};

struct log { /* of one run */
	struct lives *l;
	struct lives_seen *seen;
	char id[32], infer[16], began_at[32], status[32], reason[40];
	int number; /* of lives.runs; -1: unknown */
	const struct lives_run *r;
	char order[24];        /* that started it */
	bool checking, proved; /* its check runs; the newest one passed */
	int64_t lsn, seq, lines, clock_ms, exact, estimated, tokens, duration_ms;
	int64_t last_cost; /* of one call, the dearest */
	int replies, cut, interrupted, ends, spawns, failed;
	struct call calls[CALLS_MAX];
	unsigned ncalls, nanswered, nattempts;
	char attempts[CALLS_MAX][16]; /* callIds of InferStart */
	int delivered[LIVES_STEERS];
	bool stopped;                 /* while it asked somebody */
	bool pausing, paused, rested; /* a pause is asked for; no call may begin; it said so */
	unsigned char head[32];       /* SHA-256 chained over its lines so far */
};

struct judging {
	struct lives *l;
	struct lives_seen *seen;
	int64_t group_cost, group_calls_cost;
	struct spent {
		char run[32];
		char began[11], date[11], ended[11];
		int64_t lsn, cost;
		bool tagged;
	} spent[SPENT_MAX];
	unsigned nspent;
	unsigned nlogs, standing, fired, joins, forks, day_ends, spawn_rows, end_rows;
	int members;
	int64_t day_lsn, day_seq, row_lsn;
	struct twice { /* an event that stands in both logs */
		char run[32], type[24];
		int64_t lsn;
		int places;
	} twice[TWICE_MAX];
	unsigned ntwice;
	char ids[RUNS_MAX][24];
	struct {
		int64_t began, ended; /* lsn of its first request and of its end; 0: it has none */
		enum ava_status status;
	} orders[LIVES_RUNS]; /* by number */
};

static struct judging *judging; /* memdisk_walk has one argument, and it is taken */

/* ---- money */

static void count_day(struct log *s, const char *date, int64_t lsn, int64_t cost)
{
	struct spent *p = &judging->spent[judging->nspent];

	if (judging->nspent == SPENT_MAX)
		return;
	judging->nspent++;
	*p = (struct spent){.lsn = lsn, .cost = cost, .tagged = s->r != NULL && s->r->tagged};
	snprintf(p->run, sizeof(p->run), "%s", s->id);
	snprintf(p->date, sizeof(p->date), "%.10s", date);
	snprintf(p->began, sizeof(p->began), "%.10s", s->began_at);
}

static void count_ended(const struct log *s, const char *date)
{
	for (unsigned i = 0; i < judging->nspent; i++)
		if (strcmp(judging->spent[i].run, s->id) == 0)
			snprintf(judging->spent[i].ended, sizeof(judging->spent[i].ended), "%.10s",
				 date);
}

static int by_lsn(const void *a, const void *b)
{
	const struct spent *x = a, *y = b;

	return (x->lsn > y->lsn) - (x->lsn < y->lsn);
}

/* The budget of a day, a week or a month holds until a later one has begun, wherever a clock was
 * set back to. Not counted: calls over its turn, and runs that ended, by such a clock, before the
 * time they were at work in. */
static bool check_period(struct judging *g, enum clock_period of, int64_t cents, bool tagged)
{
	char period[11] = "", begins[11], began[11], ended[11];
	int64_t sum = 0, other = 0, cap = cents * 10000;

	for (unsigned i = 0; cap > 0 && i < g->nspent; i++) {
		const struct spent *p = &g->spent[i];

		clock_period(p->date, of, begins);
		clock_period(p->began, of, began);
		clock_period(p->ended, of, ended);
		if (strcmp(begins, period) > 0) {
			memcpy(period, begins, sizeof(period));
			sum = other = 0;
		}
		if (tagged && !p->tagged)
			continue;
		sum += p->cost;
		if (strcmp(began, period) < 0 || strcmp(ended, period) < 0)
			other += p->cost;
		if (sum > cap + other)
			return lives_wrong(g->l,
					   "%s since %s: %" PRId64 " spent of %" PRId64 ", %" PRId64
					   " of it not counted",
					   tagged ? "the tag" : "all", period, sum, cap, other);
	}
	return true;
}

static bool check_days(struct judging *g)
{
	const struct lives *l = g->l;

	/* While all are paused a day may begin and be gone without a call that tells it. */
	if (l->seed >= LIVES_PAUSES && l->days_back > 0)
		return true;
	qsort(g->spent, g->nspent, sizeof(g->spent[0]), by_lsn);
	for (enum clock_period p = CLOCK_DAY; p < CLOCK_PERIODS; p++)
		if (!check_period(g, p, l->tag_cents[p], true))
			return false;
	return check_period(g, CLOCK_DAY, l->day_cents, false) &&
	       check_period(g, CLOCK_WEEK, l->week_cents, false) &&
	       check_period(g, CLOCK_MONTH, l->month_cents, false);
}

static bool check_bill(struct log *s, const json_t *c, int64_t cost)
{
	const json_t *tokens = json_object_get(c, "tokens");
	const char *request = json_get_str(c, "requestId");
	struct service_bill *b = request && *request ? service_find(request) : NULL;

	if (b == NULL)
		return lives_wrong(s->l, "%s: the reply %s was never sent", s->id,
				   request ? request : "without an id");
	if (b->recorded)
		return lives_wrong(s->l, "%s: the reply %s stands twice", s->id, request);
	b->recorded = true;
	if (json_get_int(tokens, "input", -1) != b->input ||
	    json_get_int(tokens, "output", -1) != b->output)
		return lives_wrong(s->l, "%s: %s used %" PRId64 " and %" PRId64 " tokens", s->id,
				   request, b->input, b->output);
	if (cost < b->cost_microusd || cost > b->cost_microusd + 3)
		return lives_wrong(s->l, "%s: %s cost %" PRId64 ", counted as %" PRId64, s->id,
				   request, b->cost_microusd, cost);
	return true;
}

/* ---- events */

/* Those of both logs are one event, with one lsn. */
static void see_twice(const char *run, const char *type, int64_t lsn)
{
	struct judging *g = judging;

	if (strcmp(type, "SubagentSpawn") != 0 && strcmp(type, "SubagentComplete") != 0 &&
	    strcmp(type, "Waiting") != 0)
		return;
	for (unsigned i = 0; i < g->ntwice; i++) {
		struct twice *t = &g->twice[i];

		if (t->lsn != lsn)
			continue;
		t->places++;
		if (strcmp(t->run, run) != 0 || strcmp(t->type, type) != 0)
			lives_wrong(g->l, "lsn %" PRId64 ": %s of %s and %s of %s", lsn, type, run,
				    t->type, t->run);
		return;
	}
	if (g->ntwice == TWICE_MAX)
		return;
	g->twice[g->ntwice] = (struct twice){.lsn = lsn, .places = 1};
	snprintf(g->twice[g->ntwice].run, sizeof(g->twice[0].run), "%s", run);
	snprintf(g->twice[g->ntwice++].type, sizeof(g->twice[0].type), "%s", type);
}

static bool check_twice(const struct judging *g)
{
	for (unsigned i = 0; i < g->ntwice; i++)
		if (g->twice[i].places != 2)
			return lives_wrong(g->l, "%s: %s with lsn %" PRId64 " stands in %d logs",
					   g->twice[i].run, g->twice[i].type, g->twice[i].lsn,
					   g->twice[i].places);
	return true;
}

static bool see_infer_start(struct log *s, const json_t *e, const json_t *c)
{
	if (s->infer[0] != '\0')
		return lives_wrong(s->l, "%s: %s has no InferEnd", s->id, s->infer);
	if (s->nanswered != s->ncalls)
		return lives_wrong(s->l, "%s: a model is called with %u results for %u calls",
				   s->id, s->nanswered, s->ncalls);
	snprintf(s->infer, sizeof(s->infer), "%s", json_get_str(c, "callId"));
	for (unsigned i = 0; i < s->nattempts; i++)
		if (strcmp(s->attempts[i], s->infer) == 0)
			return lives_wrong(s->l, "%s: %s was begun twice", s->id, s->infer);
	if (s->nattempts < CALLS_MAX)
		memcpy(s->attempts[s->nattempts++], s->infer, sizeof(s->infer));
	snprintf(s->began_at, sizeof(s->began_at), "%s", json_get_str(e, "timestamp"));
	return true;
}

static bool see_infer_end(struct log *s, const json_t *e, const json_t *c)
{
	const char *cls = json_get_str(c, "errorClass");
	int64_t cost = json_get_fixed(json_object_get(e, "metadata"), "costCents", 4, -1);
	const json_t *tokens = json_object_get(c, "tokens");

	if (strcmp(s->infer, json_get_str(c, "callId")) != 0)
		return lives_wrong(s->l, "%s: InferEnd of %s, begun was %s", s->id,
				   json_get_str(c, "callId"), s->infer);
	s->infer[0] = '\0';
	if (cost < 0)
		return lives_wrong(s->l, "%s: a call of unknown cost", s->id);
	count_day(s, json_get_str(e, "timestamp"), s->lsn, cost);
	s->tokens += json_get_int(tokens, "input", 0) + json_get_int(tokens, "output", 0);
	s->last_cost = MAX(s->last_cost, cost);
	if (cls == NULL) {
		s->replies++;
		s->exact += cost;
		return check_bill(s, c, cost);
	}
	if (!json_get_bool(c, "estimated", false))
		return lives_wrong(s->l, "%s: a call that failed is not marked as estimated",
				   s->id);
	s->cut += strcmp(cls, "interrupted") == 0;
	s->estimated += cost;
	return true;
}

static bool see_tool_call(struct log *s, const json_t *c)
{
	struct call *k = &s->calls[s->ncalls];

	if (s->ncalls == CALLS_MAX)
		return lives_wrong(s->l, "%s: too many calls", s->id);
	snprintf(k->id, sizeof(k->id), "%s", json_get_str(c, "callId"));
	snprintf(k->name, sizeof(k->name), "%s", json_get_str(c, "name"));
	for (unsigned i = 0; i < s->ncalls; i++)
		if (strcmp(s->calls[i].id, k->id) == 0)
			return lives_wrong(s->l, "%s: call %s twice", s->id, k->id);
	s->ncalls++;
	return true;
}

static const struct lives_start *starts(const struct log *s, const char *call)
{
	for (size_t i = 0; i < s->l->nstarts; i++)
		if (strcmp(s->l->starts[i].run, s->id) == 0 &&
		    strcmp(s->l->starts[i].call, call) == 0)
			return &s->l->starts[i];
	return NULL;
}

static bool see_tool_result(struct log *s, const json_t *c)
{
	const char *id = json_get_str(c, "callId"), *cls = json_get_str(c, "errorClass");
	const struct lives_start *st = starts(s, id);
	bool tool, good = json_get_bool(c, "success", false);
	struct call *k = NULL;

	for (unsigned i = 0; i < s->ncalls; i++)
		if (strcmp(s->calls[i].id, id) == 0)
			k = &s->calls[i];
	if (k == NULL || k->answered)
		return lives_wrong(s->l, "%s: a result of %s too many", s->id, id);
	k->answered = true;
	s->nanswered++;
	s->interrupted += strcmp(cls, "interrupted") == 0;
	tool = strcmp(k->name, "search_and_read") == 0 || strcmp(k->name, "read_file") == 0;
	if (tool && good && st == NULL)
		return lives_wrong(s->l, "%s: %s has a result and was never started", s->id, id);
	if (tool && strcmp(cls, "denied") == 0 && st != NULL)
		return lives_wrong(s->l, "%s: %s was refused, and started", s->id, id);
	if (strcmp(cls, "interrupted") == 0 && strcmp(k->name, "read_file") == 0)
		return lives_wrong(s->l, "%s: %s may be repeated, and was not", s->id, id);
	return true;
}

static bool see_steering(struct log *s, const json_t *c)
{
	const char *id = json_get_str(c, "steerId"), *outcome = json_get_str(c, "outcome");

	for (unsigned i = 0; i < s->l->nsteers; i++)
		if (id && s->l->steers[i].id[0] && strcmp(s->l->steers[i].id, id) == 0 &&
		    strcmp(s->l->steers[i].run, s->id) == 0)
			s->delivered[i] += strcmp(outcome, "queued") != 0;
	return true;
}

static bool check_head(const struct log *s, const json_t *c)
{
	char hex[65];

	for (int i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", s->head[i]);
	/* A question that the end closes may get another number with an end that the
	 * disk refused: the head was that of the first. */
	return strcmp(hex, json_get_str(c, "head")) == 0 || s->stopped ||
	       lives_wrong(s->l, "%s: the head of its log is another one", s->id);
}

static void chain(struct log *s, const char *line, size_t len)
{
	struct hash_sha256 h;

	hash_sha256_init(&h);
	hash_sha256_add(&h, s->head, sizeof(s->head));
	hash_sha256_add(&h, line, len);
	hash_sha256_end(&h, s->head);
}

static bool see_end(struct log *s, const json_t *e, const json_t *c)
{
	const json_t *t = json_object_get(c, "totals");
	int64_t total = json_get_fixed(t, "costCents", 4, -1);

	s->ends++;
	count_ended(s, json_get_str(e, "timestamp"));
	snprintf(s->status, sizeof(s->status), "%s", json_get_str(c, "status"));
	snprintf(s->reason, sizeof(s->reason), "%s", json_get_str(c, "stopReason"));
	s->duration_ms = json_get_int(t, "durationMs", 0);
	if (total != s->exact + s->estimated || json_get_int(t, "tokens", -1) != s->tokens)
		return lives_wrong(s->l,
				   "%s: its total is %" PRId64 " (%" PRId64
				   " tokens), its calls cost "
				   "%" PRId64 " and %" PRId64 " (%" PRId64 " tokens)",
				   s->id, total, json_get_int(t, "tokens", -1), s->exact,
				   s->estimated, s->tokens);
	if (json_get_int(t, "toolCalls", -1) != s->ncalls)
		return lives_wrong(s->l, "%s: %lld tool calls, counted %u", s->id,
				   (long long)json_get_int(t, "toolCalls", -1), s->ncalls);
	if (s->infer[0] != '\0' || s->nanswered != s->ncalls)
		return lives_wrong(s->l, "%s: it ended with %s open, %u results of %u calls", s->id,
				   s->infer, s->nanswered, s->ncalls);
	return check_head(s, c);
}

static bool see_clock(struct log *s, const json_t *c)
{
	int64_t ms = json_get_int(c, "clockMs", -1);

	if (ms < 0)
		return true;
	if (ms < s->clock_ms)
		return lives_wrong(s->l, "%s: its time went from %" PRId64 " to %" PRId64 " ms",
				   s->id, s->clock_ms, ms);
	s->clock_ms = ms;
	return true;
}

static enum ava_status status_of(const char *name)
{
	for (int i = 0; i < AVA_NSTATUSES; i++)
		if (strcmp(ava_status_name((enum ava_status)i), name) == 0)
			return (enum ava_status)i;
	return AVA_NSTATUSES;
}

static void see_order(const struct log *s, const char *type, int64_t lsn, const json_t *c)
{
	if (s->number < 0 || s->number >= LIVES_RUNS)
		return;
	if (strcmp(type, "InferStart") == 0 && judging->orders[s->number].began == 0)
		judging->orders[s->number].began = lsn;
	if (strcmp(type, "SubagentComplete") != 0)
		return;
	judging->orders[s->number].ended = lsn;
	judging->orders[s->number].status = status_of(json_get_str(c, "status"));
}

/* A pause is asked for, begins at the end of a turn, and is over, in that order. */
static bool see_pause(struct log *s, const char *state)
{
	bool asked = strcmp(state, "asked") == 0;
	bool rests = strcmp(state, "paused") == 0;

	if (asked == s->pausing ||
	    (rests && (s->rested || s->infer[0] != '\0' || s->nanswered != s->ncalls)))
		return lives_wrong(s->l, "%s: a pause is %s where it cannot be", s->id, state);
	s->pausing = asked || rests;
	s->seen->paused += rests;
	s->paused = s->rested = rests;
	s->stopped = strcmp(state, "stopped") == 0;
	return true;
}

/* What is not passed is said again, to its end or another check; nothing else follows a pass. */
static bool see_check(struct log *s, const char *outcome)
{
	if (s->r == NULL || s->r->check < 0 || (*outcome != '\0' && !s->checking))
		return lives_wrong(s->l, "%s: a check is %s, which it cannot be", s->id, outcome);
	s->checking = *outcome == '\0';
	s->proved = strcmp(outcome, "passed") == 0;
	s->seen->checks += !s->checking;
	s->failed += strcmp(outcome, "failed") == 0;
	if (s->failed > s->r->check + 1)
		return lives_wrong(s->l, "%s: %d checks failed", s->id, s->failed);
	return true;
}

static bool see_event(struct log *s, const json_t *e)
{
	const char *type = json_get_str(e, "eventType");
	const json_t *c = json_object_get(e, "content");
	int64_t lsn = json_get_int(e, "lsn", 0), seq = json_get_int(e, "seq", 0);

	if (type == NULL || lsn <= s->lsn || seq != s->seq + 1 || s->ends > 0)
		return lives_wrong(s->l,
				   "%s: %s has lsn %" PRId64 " after %" PRId64 ", seq %" PRId64
				   " after %" PRId64 "%s",
				   s->id, type ? type : "?", lsn, s->lsn, seq, s->seq,
				   s->ends ? ", behind the end" : "");
	s->lsn = lsn;
	s->seq = seq;
	s->seen->events++;
	see_twice(s->id, type, lsn);
	see_order(s, type, lsn, c);
	if (strcmp(type, "SubagentSpawn") == 0) {
		const char *at = strstr(json_get_str(c, "task"), "number ");

		s->number = at != NULL ? atoi(at + 7) : -1;
		s->r = lives_run_of(s->l, s->number);
		s->spawns++;
		if (s->r != NULL && s->r->standing != (*json_str(c, "order") != '\0'))
			return lives_wrong(s->l, "%s: it is of the order %s", s->id,
					   json_str(c, "order"));
	}
	if (!see_clock(s, c))
		return false;
	if (strcmp(type, "InferStart") == 0 && s->paused)
		return lives_wrong(s->l, "%s: it is paused, and calls its model", s->id);
	if (strcmp(type, "InferStart") == 0)
		return see_infer_start(s, e, c);
	if (strcmp(type, "InferEnd") == 0)
		return see_infer_end(s, e, c);
	if (strcmp(type, "ToolCall") == 0)
		return see_tool_call(s, c);
	if (strcmp(type, "ToolResult") == 0)
		return see_tool_result(s, c);
	if (strcmp(type, "Waiting") == 0 && strcmp(json_get_str(c, "kind"), "pause") == 0)
		return see_pause(s, json_get_str(c, "state"));
	if (strcmp(type, "Check") == 0)
		return see_check(s, json_str(c, "outcome"));
	if (strcmp(type, "Custom") == 0) { /* another process: what it takes up stands still */
		s->seen->paused += s->pausing && !s->paused;
		s->paused = s->pausing;
	}
	s->seen->edits += strcmp(type, "ContextEdit") == 0;
	s->seen->parked += strcmp(type, "Waiting") == 0 && json_get_str(c, "parkedUntil") != NULL &&
			   strcmp(json_get_str(c, "state"), "expired") == 0;
	if (strcmp(type, "Waiting") == 0)
		s->stopped = strcmp(json_get_str(c, "state"), "stopped") == 0;
	if (strcmp(type, "Steering") == 0)
		return see_steering(s, c);
	return strcmp(type, "SubagentComplete") != 0 || see_end(s, e, c);
}

/* ---- what a run must have come to */

static bool shared(const struct lives *l, const struct lives_run *r)
{
	return l->day_cents > 0 || l->week_cents > 0 || l->month_cents > 0 ||
	       (r->tagged && l->tag_cents[0] + l->tag_cents[1] + l->tag_cents[2] > 0) ||
	       (r->grouped && (l->group_cost > 0 || l->group_time > 0));
}

/* Which statuses it may have: those that somebody or something could cause. */
static bool may_end(const struct lives *l, const struct lives_run *r, enum ava_status status)
{
	switch (status) {
	case AVA_SUCCESS:
		return true;
	case AVA_NO_RESULT: /* a limit came behind its text, or its result was put off */
		return r->steered || r->tight || shared(l, r);
	case AVA_UNPROVEN:
		return r->check >= 0;
	case AVA_NOT_STARTED:
		return r->after != 0; /* check_orders looks whether the others let it */
	case AVA_CANCELLED:
		return true; /* somebody asked: check_end looks whether it was acknowledged */
	case AVA_COST_EXCEEDED:
		return r->tight || shared(l, r);
	case AVA_TIMEOUT:
		return r->tight || (r->grouped && l->group_time > 0);
	case AVA_TOKENS_EXCEEDED:
	case AVA_ITERATIONS_EXCEEDED:
		return r->tight;
	case AVA_ERROR:
		/* A wait for the service may be longer than its time. */
		return l->rough || r->tight || (r->grouped && l->group_time > 0);
	default:
		return false;
	}
}

/* Where nothing can end it but its own plan, the crash has changed nothing. */
static bool check_plan(struct log *s, const struct lives_run *r)
{
	static const int replies[LIVES_KINDS] = {3, 5, 3, 2, 3, 2, 0},
			 calls[LIVES_KINDS] = {5, 5, 7, 2, 6, 1, 0};

	/* Where the window was learned to be short, ask_person is not shown. */
	if (r->check >= 0 || r->tight || r->steered || shared(s->l, r) || s->l->rough ||
	    (r->kind == LIVES_ASKS && service_temper.edits) || strcmp(s->status, "success") != 0)
		return true;
	if (s->replies != replies[r->kind] || (int)s->ncalls != calls[r->kind] ||
	    strcmp(s->reason, "submitted") != 0)
		return lives_wrong(s->l, "%s: kind %d: %d replies and %u calls, %s", s->id, r->kind,
				   s->replies, s->ncalls, s->reason);
	return true;
}

static bool check_end(struct log *s)
{
	struct lives *l = s->l;
	const struct lives_run *r = s->r;
	enum ava_status status = status_of(s->status);

	if (s->ends != 1 || s->spawns != 1)
		return lives_wrong(l, "%s: %d spawns and %d ends", s->id, s->spawns, s->ends);
	if (!may_end(l, r, status))
		return lives_wrong(l, "%s: nothing could end it as %s (%s)", s->id, s->status,
				   s->reason);
	if (r->check >= 0 && status == AVA_SUCCESS && !s->proved)
		return lives_wrong(l, "%s: a success without a check that passed", s->id);
	if (r->cancelled && status != AVA_CANCELLED)
		return lives_wrong(l, "%s: its cancel was acknowledged, it ended as %s", s->id,
				   s->status);
	if (!r->tight && s->duration_ms > r->time_ms)
		return lives_wrong(l, "%s: it took %" PRId64 " ms of its %" PRId64, s->id,
				   s->duration_ms, r->time_ms);
	if (s->cut > (int)(l->kills + l->stops))
		return lives_wrong(l, "%s: %d calls cut in %u deaths", s->id, s->cut,
				   l->kills + l->stops);
	for (unsigned i = 0; i < l->nsteers; i++)
		if (strcmp(l->steers[i].run, s->id) == 0 && l->steers[i].id[0] &&
		    s->delivered[i] != 1)
			return lives_wrong(l, "%s: %s was told %d times", s->id, l->steers[i].id,
					   s->delivered[i]);
	return check_plan(s, r);
}

/* A limit of its own is passed by the turn in flight at most; a raised one is not
 * looked at. */
static bool check_money(struct log *s)
{
	const struct lives_run *r = s->r;
	int64_t total = s->exact + s->estimated;

	if (!r->ask_limit && total > r->cost_microusd + s->last_cost)
		return lives_wrong(
			s->l, "%s: %" PRId64 " spent of %" PRId64 ", the dearest call %" PRId64,
			s->id, total, r->cost_microusd, s->last_cost);
	if (r->grouped)
		judging->group_cost += total;
	return true;
}

static void count(const struct log *s)
{
	enum ava_status status = status_of(s->status);

	s->seen->cut += s->cut;
	s->seen->interrupted += s->interrupted;
	s->seen->replies += s->replies;
	if (status < (int)ARRAY_LEN(s->seen->status))
		s->seen->status[status]++;
}

static void judge_run(const char *path, const char *bytes, size_t len)
{
	struct log s = {.l = judging->l, .seen = judging->seen, .number = -1};
	size_t at = 0, n;
	const char *line;
	bool good = true;

	snprintf(s.id, sizeof(s.id), "%.*s", (int)strcspn(path, "."), path);
	while (good && jsonl_next(bytes, len, &at, &line, &n) == 1) {
		json_t *e = json_parse(line, n, NULL);

		good = e != NULL ? see_event(&s, e) : lives_wrong(s.l, "%s: no JSON", path);
		chain(&s, line, n + 1);
		json_decref(e);
	}
	if (good && s.r == NULL)
		good = lives_wrong(s.l, "%s is a run that nobody asked for", s.id);
	if (judging->nlogs < RUNS_MAX)
		snprintf(judging->ids[judging->nlogs], sizeof(s.id), "%s", s.id);
	judging->nlogs++;
	judging->members += good && s.r->grouped;
	judging->standing += good && s.r->standing;
	if (good && check_end(&s) && check_money(&s))
		count(&s);
}

/* ---- the other files */

static void see_told(const char *type, const char *change)
{
	struct lives_seen *seen = judging->seen;

	seen->fired += strcmp(type, "OrderFired") == 0;
	if (strcmp(type, "OrderChanged") != 0)
		return;
	seen->missed += strcmp(change, "missed") == 0;
	seen->busy += strcmp(change, "busy") == 0;
	seen->short_of += strcmp(change, "budget") == 0;
	seen->asks += strcmp(change, "asks") == 0;
}

static void see_day(const json_t *e)
{
	const char *type = json_get_str(e, "eventType");
	const char *run = json_get_str(json_object_get(e, "content"), "subagentId");
	int64_t lsn = json_get_int(e, "lsn", 0), seq = json_get_int(e, "seq", 0);

	/* What was refused before midnight and written after it keeps its place in the
	 * day that is over. */
	if (lsn <= judging->day_lsn || (seq <= judging->day_seq && ledger_temper.failing == 0))
		lives_wrong(judging->l,
			    "daily log: %s has lsn %" PRId64 " after %" PRId64 ", seq %" PRId64
			    " after %" PRId64,
			    type, lsn, judging->day_lsn, seq, judging->day_seq);
	judging->day_lsn = lsn;
	judging->day_seq = seq;
	see_twice(run ? run : "", type, lsn);
	judging->joins += strcmp(type, "Join") == 0;
	judging->forks += strcmp(type, "Fork") == 0;
	judging->day_ends += strcmp(type, "SubagentComplete") == 0;
	judging->fired += strcmp(type, "OrderFired") == 0;
	if (judging->l->norders > 0)
		standing_see(e);
	see_told(type, json_str(json_object_get(e, "content"), "change"));
}

static void see_row(const json_t *e)
{
	bool spawn = strcmp(json_get_str(e, "row"), "spawn") == 0;
	int64_t lsn = json_get_int(e, "lsn", 0);

	if (lsn <= judging->row_lsn)
		lives_wrong(judging->l, "catalog: lsn %" PRId64 " after %" PRId64, lsn,
			    judging->row_lsn);
	judging->row_lsn = lsn;
	judging->spawn_rows += spawn;
	judging->end_rows += !spawn;
}

static void each_line(const char *bytes, size_t len, void (*see)(const json_t *e))
{
	size_t at = 0, n;
	const char *line;

	while (jsonl_next(bytes, len, &at, &line, &n) == 1) {
		json_t *e = json_parse(line, n, NULL);

		if (e != NULL)
			see(e);
		else
			lives_wrong(judging->l, "a line is no JSON: %.*s", (int)MIN(n, 100), line);
		json_decref(e);
	}
	if (at != len)
		lives_wrong(judging->l, "an unfinished line");
}

static void each_day(const char *bytes, size_t len)
{
	judging->day_lsn = judging->day_seq = 0;
	each_line(bytes, len, see_day);
}

static void on_file(const char *path, const char *bytes, size_t len, void *user)
{
	(void)user;
	if (strncmp(path, "/logs/subagents/", 16) == 0)
		judge_run(path + 16, bytes, len);
	else if (strncmp(path, "/logs/ava/", 10) == 0)
		each_day(bytes, len);
	else if (strncmp(path, "/orders/", 8) == 0)
		standing_see_file(path, bytes, len);
	else if (strcmp(path, "/catalog.jsonl") == 0)
		each_line(bytes, len, see_row);
}

static bool check_starts(struct lives *l)
{
	for (size_t i = 0; i < l->nstarts; i++)
		if (!l->starts[i].repeatable && l->starts[i].n > 1)
			return lives_wrong(l, "%s: %s was started %d times", l->starts[i].run,
					   l->starts[i].call, l->starts[i].n);
	return true;
}

static bool check_budgets(struct judging *g)
{
	const struct lives *l = g->l;

	if (l->group_cost > 0 && g->group_cost > l->group_cost)
		return lives_wrong(g->l, "the group spent %" PRId64 " of %" PRId64, g->group_cost,
				   l->group_cost);
	return check_days(g);
}

/* A run that waits for others begins behind the ends of all, and when all have succeeded; it is not
 * started when one has not. */
static bool check_orders(const struct judging *g)
{
	for (unsigned i = 0; i < g->l->nruns; i++)
		for (unsigned k = 0, failed = 0; k < g->l->nruns; k++) {
			if (g->l->runs[i].after & 1u << k)
				failed |= g->orders[k].status != AVA_SUCCESS;
			if (g->orders[i].began && g->l->runs[i].after & 1u << k &&
			    (failed || g->orders[k].ended > g->orders[i].began))
				return lives_wrong(g->l, "number %u began before %u succeeded", i,
						   k);
			if (k + 1 == g->l->nruns && !failed &&
			    g->orders[i].status == AVA_NOT_STARTED)
				return lives_wrong(g->l, "number %u was not started", i);
		}
	return true;
}

/* An end that the disk refused may be overtaken by the one with the Join, and be
 * lost: then there is another one. */
static bool check_joins(const struct judging *g)
{
	unsigned n = g->l->ngrouped > 0;

	return g->joins == n || (g->joins > n && n > 0 && ledger_temper.failing > 0);
}

/* Each run is executed again from its record: a machine that was restored, however
 * often, stood at each call of its model where one stands that never stopped (the
 * positions are compared). */
static void replay_all(struct judging *g)
{
	static struct replay_report out;
	unsigned n = MIN(g->nlogs, (unsigned)RUNS_MAX);
	struct ava_error err = {0};
	int fd;

	sim.left = -1;
	memdisk_use(g->l->disk);
	fd = sys->openat(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	for (unsigned i = 0; i < n && g->l->broken[0] == '\0'; i++) {
		if (replay_run(fd, g->ids[i], NULL, false, &out, &err) != 0)
			lives_wrong(g->l, "%s cannot be replayed: %s", g->ids[i], err.text);
		else if (out.ndiffs > 0)
			lives_wrong(g->l, "%s, event %d (%s), %s: %s, replayed %s", g->ids[i],
				    (int)out.diffs[0].seq, out.diffs[0].type, out.diffs[0].what,
				    out.diffs[0].recorded, out.diffs[0].replayed);
		else if (!out.complete)
			lives_wrong(g->l, "%s is replayed no further than event %d: %s", g->ids[i],
				    (int)out.events, out.reason);
		g->seen->replayed += out.complete;
	}
	sys->close(fd);
	memdisk_use(NULL);
}

void lives_judge(struct lives *l, struct lives_seen *seen)
{
	static struct judging g; /* too large for a stack */

	g = (struct judging){.l = l, .seen = seen};

	if (l->broken[0] != '\0')
		return;
	judging = &g;
	standing_judge_begin(l);
	memdisk_walk(l->disk, on_file, NULL);
	judging = NULL;
	if (l->broken[0] != '\0')
		return;
	if (g.nlogs != g.spawn_rows || g.nlogs != g.end_rows || g.day_ends != g.nlogs)
		lives_wrong(l, "%u logs, %u rows of spawns, %u of ends, %u told", g.nlogs,
			    g.spawn_rows, g.end_rows, g.day_ends);
	else if (g.nlogs != l->nruns + g.fired || g.standing != g.fired)
		lives_wrong(l, "%u runs were asked for, %u fired, %u are there, %u of orders",
			    l->nruns, g.fired, g.nlogs, g.standing);
	else if (g.forks != (l->ngrouped > 0) || !check_joins(&g))
		lives_wrong(l, "%u forks and %u joins", g.forks, g.joins);
	else if (check_twice(&g) && check_starts(l) && check_budgets(&g) && check_orders(&g) &&
		 standing_judge(l))
		replay_all(&g);
}

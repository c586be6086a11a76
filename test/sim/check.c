/* The judge of a simulated run: it reads the record once, from the front, and
 * knows what a run may do from doc/DESIGN.md. Nothing here calls src/agent;
 * limits, prices and the reason of the end are computed anew, so that a
 * machine that is wrong cannot agree with itself. */
#include "world.h"

#include <string.h>

#include "agent/tool.h"
#include "base/util.h"

struct call {
	uint8_t kind; /* enum sim_call */
	bool made, started, answered, resulted, failed_start, success;
	bool asked, asked_end;
	enum agent_asked how;
	int64_t until;
	int32_t batch;       /* of its ToolCall */
	int32_t asked_batch; /* of what became of the question */
	char class;
};

struct judge {
	const struct agent_spec *spec;
	const struct sim_run *run;
	const struct sim_rec *rec; /* the one looked at */
	/* slot and time */
	bool wanted, in_slot;
	int64_t slot_at; /* less what was used of the time before a wait */
	int64_t used;
	/* what people say */
	unsigned steers;
	bool heard;   /* the last line of results told what they say */
	bool put_off; /* the reply would have been the end, had nobody said anything */
	/* the request */
	int64_t measured, new_bytes, line_bytes; /* line_bytes: of the last line */
	int64_t closing_bytes;                   /* of the last results line */
	int32_t closing_batch, iteration;
	int64_t floor;   /* no room is made before the input is that large */
	int lines_since; /* written since the last request */
	bool assistant_last;
	/* the call and its reply */
	bool editing, infer_open, replied, saved, asked_forced;
	const struct sim_rec *reply;
	int texts_asked, odd;      /* texts told to submit; odd replies in a row */
	bool told_look, look_note; /* a text before any call was sent back; by the newest note */
	/* the check of the reply's result: 0: none, -1: it runs, else its outcome */
	int check_how, checks;
	bool said_submitted; /* `said` is a result that a call handed in */
	int64_t said;        /* what stands first in the texts that are kept; 0: none is */
	bool said_json;
	/* the turn's tools */
	struct call calls[TURN_MAX_CALLS];
	unsigned ncalls;
	bool results_written, tools_stopped, infer_stopped;
	/* sums */
	int64_t input, output, cost;
	int64_t spared; /* of the input: a cache had it for nothing */
	int calls_made, uncosted, failed, tool_calls;
	unsigned warned;
	/* the end */
	int32_t acked, end_batch;
	const struct sim_rec *end, *cancel, *fault;
	bool done;
};

#define RULE(ok)                                                                                   \
	do {                                                                                       \
		if (!(ok))                                                                         \
			return #ok;                                                                \
	} while (0)

/* ---- limits, computed anew */

static __int128 wide_min(__int128 a, __int128 b)
{
	return a < b ? a : b;
}

static bool price_known(const struct judge *j)
{
	return j->spec->price.input >= 0 && j->spec->price.output >= 0;
}

/* Of an input what costs nothing: told of a free cache, or sent before where all is free. */
static int64_t spared(const struct judge *j, __int128 input, int64_t told)
{
	const struct agent_price *p = &j->spec->price;
	bool free = p->input == 0 && p->output == 0 && p->cache_write == 0;

	if (p->cache_read != 0)
		return 0;
	return (int64_t)wide_min(input, MAX(told, free ? j->measured : 0));
}

/* Tokens that count, with the next call's input. */
static __int128 counted(const struct judge *j, __int128 next)
{
	return (__int128)j->input - j->spared + j->output + next - spared(j, next, 0);
}

/* The output the next call may have; below `least` it may not be made. */
static __int128 room(const struct judge *j, bool by_cost)
{
	const struct agent_price *p = &j->spec->price;
	__int128 estimate = (__int128)j->measured + (j->new_bytes + 2) / 3;
	__int128 left, dear = MAX(p->input, p->cache_write);
	const __int128 endless = (__int128)1 << 80;

	if (!by_cost)
		return j->spec->limits.tokens - counted(j, estimate);
	if (j->spec->limits.cost_microusd == 0)
		return j->cost == 0 && p->input == 0 && p->output == 0 && p->cache_read == 0 &&
				       p->cache_write == 0
			       ? endless
			       : -1;
	left = (__int128)j->spec->limits.cost_microusd - j->cost;
	if (left <= 0)
		return -1;
	if (!price_known(j))
		return endless;
	left -= (estimate * dear + 999999) / 1000000; /* money is rounded up */
	if (left < 0)
		return -1;
	return p->output == 0 ? endless : left * 1000000 / p->output;
}

static int64_t least(const struct judge *j)
{
	return MIN((int64_t)1024, j->spec->max_output);
}

/* The resource that forbids a next call; -1: none. */
static int used_up(const struct judge *j)
{
	if (j->iteration >= j->spec->limits.iterations)
		return AGENT_ITERATIONS;
	if (room(j, true) < least(j))
		return AGENT_COST;
	return room(j, false) < least(j) ? AGENT_TOKENS : -1;
}

static unsigned near(const struct judge *j)
{
	const struct agent_limits *l = &j->spec->limits;
	const struct agent_price *p = &j->spec->price;
	/* The line that would tell is not part of what it tells about. */
	__int128 next = (__int128)j->measured + (j->new_bytes - j->line_bytes + 2) / 3;
	__int128 cost = j->cost;
	unsigned bits = 0;

	if (price_known(j))
		cost += (next * MAX(p->input, p->cache_write) + 999999) / 1000000;

	if ((__int128)(j->rec->at - j->slot_at) * 5 >= (__int128)l->time_ms * 4)
		bits |= 1u << AGENT_TIME;
	if (l->cost_microusd > 0 && cost * 5 >= (__int128)l->cost_microusd * 4)
		bits |= 1u << AGENT_COST;
	if (counted(j, next) * 5 >= (__int128)l->tokens * 4)
		bits |= 1u << AGENT_TOKENS;
	if (j->iteration * 5 >= l->iterations * 4)
		bits |= 1u << AGENT_ITERATIONS;
	return bits;
}

/* Would the limits pay for no call behind the next, with the least of a reply? */
static bool last(const struct judge *j)
{
	const struct agent_price *p = &j->spec->price;
	struct judge after = *j;
	__int128 next;

	after.new_bytes -= j->line_bytes; /* as in near() */
	next = (__int128)j->measured + (after.new_bytes + 2) / 3;
	if (used_up(&after) >= 0)
		return false;
	if (price_known(j))
		after.cost += (int64_t)((next * MAX(p->input, p->cache_write) + 999999) / 1000000 +
					((__int128)least(j) * p->output + 999999) / 1000000);
	after.input += (int64_t)next;
	after.spared += spared(j, next, 0);
	after.output += least(j);
	after.measured = (int64_t)next + least(j);
	after.new_bytes = 0;
	after.iteration++;
	return used_up(&after) >= 0;
}

/* ---- rules by kind */

/* ---- the window */

static int64_t next_input(const struct judge *j)
{
	return j->measured + (j->new_bytes + 2) / 3;
}

static __int128 bounded(const struct judge *j, __int128 most)
{
	__int128 under = wide_min(most, LIMIT_LEAST_ROOM);
	int64_t spare = MAX(j->spec->window / 100, 96);
	__int128 left = wide_min(most, (__int128)j->spec->window - spare - next_input(j));

	return left > under ? left : under;
}

/* 80 % with the output, and a tenth of the window more than after the last time. */
static bool room_due(const struct judge *j)
{
	int64_t high = j->spec->window / 10 * 8 + j->spec->window % 10 * 8 / 10;

	return j->spec->window > 0 &&
	       next_input(j) > high - MIN(j->spec->max_output, j->spec->window / 4) &&
	       next_input(j) >= j->floor;
}

static const char *check_edit(struct judge *j)
{
	const int64_t *v = j->rec->v;
	int64_t now = next_input(j);

	RULE(!j->infer_open && j->end == NULL && j->in_slot);
	RULE(room_due(j) && v[0] == now && v[2] > 0);
	j->editing = true;
	if (v[2] < v[1]) {
		j->measured = (int64_t)((double)now * (double)v[2] / (double)v[1]);
		j->new_bytes = 0;
	}
	j->floor = next_input(j) + j->spec->window / 10;
	return NULL;
}

static const char *check_infer(struct judge *j)
{
	const struct sim_rec *rec = j->rec;
	__int128 most = wide_min(j->spec->max_output, wide_min(room(j, true), room(j, false)));
	bool nudged =
		j->reply != NULL && j->reply->v[0] == SIM_SAYS_TEXT && !j->put_off && !j->look_note;

	RULE(j->in_slot && j->end == NULL && j->cancel == NULL);
	RULE(rec->at < j->slot_at + j->spec->limits.time_ms);
	RULE(!j->infer_open);
	RULE(rec->iteration == j->iteration + 1);
	RULE(used_up(j) < 0);
	if (j->spec->window > 0)
		most = bounded(j, most);
	RULE(rec->v[0] == most);
	RULE(!room_due(j)); /* else room was made before */
	/* The history is valid: every call has its result, in the next line;
	 * nobody's own words stand last; the request is never the same twice. */
	RULE(j->ncalls == 0 || j->results_written);
	RULE(!j->assistant_last);
	RULE(j->reply == NULL || j->lines_since > 0);
	RULE(j->reply == NULL || j->reply->v[0] <= SIM_SAYS_TEXT ||
	     ((j->put_off || j->look_note || j->check_how > 0) && j->reply->v[0] == SIM_SAYS_JSON));
	RULE(j->reply == NULL || j->put_off || j->check_how > 0 ||
	     j->reply->v[0] != SIM_SAYS_SUBMIT);
	/* A result whose check did not pass goes back so often, none whose check passed does. */
	RULE(j->check_how != -1 && j->check_how != CHECK_UNABLE);
	RULE(j->check_how != CHECK_FAILED || j->checks <= j->spec->check_rounds);
	RULE(j->check_how != CHECK_PASSED || j->heard);
	j->check_how = 0;
	RULE(j->editing ||
	     rec->v[1] == (j->spec->can_force && (nudged || (j->reply != NULL && last(j)))));
	j->asked_forced = rec->v[1];
	j->iteration++;
	j->calls_made++;
	j->lines_since = 0;
	j->infer_open = true;
	j->editing = j->replied = j->saved = j->put_off = j->look_note = false;
	j->ncalls = 0;
	j->results_written = false;
	return NULL;
}

static const char *check_reply(struct judge *j)
{
	RULE(j->editing || (j->infer_open && !j->replied));
	RULE(!j->infer_stopped && j->end == NULL);
	j->replied = true;
	j->reply = j->rec;
	if (j->rec->v[0] == SIM_FAILS || j->rec->v[0] == SIM_FAILS_BUDGET)
		j->failed++;
	return NULL;
}

static int64_t clamped(int64_t n)
{
	return n < 0 ? 0 : n > 1000000000000 ? 1000000000000 : n;
}

/* What the reply cost, from what the provider said; -1: unknown. */
static int64_t cost_of(const struct judge *j, const int64_t *said)
{
	const struct agent_price *p = &j->spec->price;
	__int128 input = clamped(said[2]), read = clamped(said[5]), written = clamped(said[6]);
	__int128 plain = input - read - written, sum;

	if (said[4] >= 0)
		return said[4];
	if (!price_known(j)) /* nothing costs nothing at any price */
		return input == 0 && clamped(said[3]) == 0 ? 0 : -1;
	sum = (plain > 0 ? plain : 0) * p->input + clamped(said[3]) * (__int128)p->output;
	sum += read * (p->cache_read >= 0 ? p->cache_read : p->input);
	sum += written * (p->cache_write >= 0 ? p->cache_write : p->input);
	if (sum > INT64_MAX)
		sum = INT64_MAX;
	return (int64_t)((sum + 999999) / 1000000);
}

/* Count what the reply used. */
static void settle(struct judge *j)
{
	const int64_t *said = j->reply->v;
	int64_t cost = cost_of(j, said);

	j->input += clamped(said[2]);
	j->spared += spared(j, clamped(said[2]), clamped(said[5]));
	j->output += clamped(said[3]);
	j->cost += cost >= 0 ? cost : 0;
	j->uncosted += cost < 0;
	if (said[2] > 0) {
		j->measured = clamped(said[2]);
		j->new_bytes = 0;
	}
}

static const char *check_infer_end(struct judge *j)
{
	const int64_t *said = j->reply != NULL ? j->reply->v : NULL, *v = j->rec->v;

	RULE(j->infer_open);
	j->infer_open = false;
	if (v[5]) { /* closed by the world: stopped, failed, or never written */
		RULE(j->infer_stopped || (j->replied && (said[0] >= SIM_FAILS || j->fault)));
		return NULL;
	}
	RULE(j->replied && !j->saved);
	RULE(v[0] == clamped(said[2]) && v[1] == clamped(said[3]) && v[2] == cost_of(j, said));
	RULE(v[3] == said[5] && v[4] == said[6]);
	j->saved = true;
	settle(j);
	if (said[0] == SIM_SAYS_EMPTY || said[0] == SIM_SAYS_THOUGHT ||
	    said[0] == SIM_SAYS_CALL_AS_TEXT)
		j->odd++;
	else
		j->odd = 0;
	return NULL;
}

static bool must_look(const struct judge *j)
{
	return !j->told_look && j->tool_calls == 0 && j->texts_asked == 0 && !j->put_off;
}

/* A text that is no end yet is kept; the first one that stands is what is left at the end. */
static void check_text_back(struct judge *j)
{
	enum sim_reply said = (enum sim_reply)j->reply->v[0];

	if ((said != SIM_SAYS_TEXT && said != SIM_SAYS_JSON) || j->put_off || j->check_how > 0)
		return;
	if (must_look(j))
		j->told_look = j->look_note = true;
	else
		j->texts_asked++;
	if (j->said == 0 && j->checks == 0) {
		j->said = j->reply->v[1];
		j->said_submitted = false;
		j->said_json = said == SIM_SAYS_JSON;
	}
}

static const char *check_line(struct judge *j)
{
	const int64_t *v = j->rec->v;

	RULE(j->saved && j->end == NULL);
	RULE(j->rec->kind == SIM_NOTE || v[1] > 0);
	j->line_bytes = v[1];
	j->heard = j->rec->kind != SIM_ASSISTANT && v[3] > 0;
	j->new_bytes += v[1];
	j->lines_since++;
	j->assistant_last = j->rec->kind == SIM_ASSISTANT;
	if (j->rec->kind == SIM_ASSISTANT) {
		RULE(j->reply->v[0] != SIM_SAYS_EMPTY && j->reply->v[0] != SIM_SAYS_THOUGHT);
		j->put_off = j->steers > 0 && used_up(j) < 0;
		j->ncalls = (unsigned)v[0];
		j->tool_calls += (int)v[0];
		memset(j->calls, 0, sizeof(j->calls));
		return NULL;
	}
	if (j->rec->kind == SIM_NOTE) {
		RULE(j->ncalls == 0 && v[2] + v[3] > 0);
		check_text_back(j);
		RULE(j->reply->v[0] == SIM_SAYS_EMPTY || j->reply->v[0] == SIM_SAYS_THOUGHT ||
		     j->reply->v[0] == SIM_SAYS_CALL_AS_TEXT || j->reply->v[0] == SIM_SAYS_TEXT ||
		     ((j->put_off || j->look_note || j->check_how > 0) &&
		      j->reply->v[0] == SIM_SAYS_JSON));
		RULE(j->texts_asked <= 1 && j->odd <= 3);
		return NULL;
	}
	RULE(!j->results_written && v[0] == j->ncalls && j->ncalls > 0);
	for (unsigned i = 0; i < j->ncalls; i++)
		RULE(j->calls[i].resulted);
	j->results_written = true;
	j->closing_bytes = v[1];
	j->closing_batch = j->rec->batch;
	return NULL;
}

/* After results or a note: what is near its limit has been told, once. */
static const char *check_warned(struct judge *j)
{
	unsigned bits = (unsigned)j->rec->v[0];

	RULE(bits != 0 && (bits & j->warned) == 0);
	RULE((bits & ~near(j)) == 0);
	j->warned |= bits;
	return NULL;
}

static struct call *call_of(struct judge *j)
{
	unsigned n = j->rec->call;

	return n >= 1 && n <= j->ncalls ? &j->calls[n - 1] : NULL;
}

static const char *check_tool_call(struct judge *j)
{
	struct call *c = call_of(j);

	RULE(c != NULL && !c->made);
	RULE(j->rec->iteration == j->iteration);
	c->made = true;
	c->kind = (uint8_t)j->rec->v[0];
	if (j->tool_calls == (int)j->ncalls && j->checks == 0 &&
	    (c->kind == SIM_REPEATABLE || c->kind == SIM_ONCE))
		j->said = 0; /* said before anything was looked at */
	c->batch = j->rec->batch;
	return NULL;
}

/* May it not start, or be answered, without a person? */
static bool wants_person(const struct judge *j, const struct call *c)
{
	return c->kind == SIM_QUESTION || (c->kind == SIM_ONCE && j->spec->nask_before > 0);
}

static bool waits_for_person(const struct judge *j, const struct call *c)
{
	return wants_person(j, c) && !c->asked_end && !c->failed_start;
}

static const char *check_ask(struct judge *j)
{
	struct call *c = call_of(j);

	RULE(!j->in_slot && !j->wanted && j->end == NULL && j->cancel == NULL);
	RULE(c != NULL && c->made && waits_for_person(j, c) && !c->asked);
	RULE(!c->started && !c->resulted);
	for (unsigned i = 0; i < j->ncalls; i++) /* one at a time */
		RULE(!j->calls[i].asked || j->calls[i].asked_end);
	RULE((j->rec->v[0] != 0) == (c->kind == SIM_ONCE));
	c->asked = true;
	c->until = j->rec->v[1];
	return NULL;
}

static const char *check_ask_end(struct judge *j)
{
	struct call *c = call_of(j);

	RULE(c != NULL && c->asked && !c->asked_end && j->end == NULL);
	c->asked_end = true;
	c->how = (enum agent_asked)j->rec->v[0];
	c->asked_batch = j->rec->batch;
	RULE(c->how != ASKED_EXPIRED || j->rec->at >= c->until);
	RULE(c->how != ASKED_REFUSED || c->kind == SIM_ONCE);
	return NULL;
}

static const char *check_start(struct judge *j)
{
	struct call *c = call_of(j);

	RULE(c != NULL && c->made && !c->started && !c->resulted);
	RULE(j->in_slot && j->end == NULL && j->cancel == NULL);
	RULE(j->rec->at < j->slot_at + j->spec->limits.time_ms);
	RULE(c->kind == SIM_REPEATABLE || c->kind == SIM_ONCE);
	RULE(c->kind == SIM_REPEATABLE || c->batch <= j->acked);
	RULE(j->reply->v[0] == SIM_SAYS_CALLS || (j->put_off && j->reply->v[0] == SIM_SAYS_SUBMIT));
	if (wants_person(j, c)) /* it was allowed, and that is on disk */
		RULE(c->asked_end && c->how == ASKED_ANSWERED && c->asked_batch <= j->acked);
	RULE(used_up(j) < 0); /* somebody will read its result */
	c->started = true;
	return NULL;
}

static const char *check_tool_result(struct judge *j)
{
	struct call *c = call_of(j);
	char class = (char)j->rec->v[1];

	RULE(c != NULL && c->made && !c->resulted);
	RULE(j->rec->iteration == j->iteration);
	c->resulted = true;
	c->success = j->rec->v[0] != 0;
	c->class = class;
	if (c->kind == SIM_UNKNOWN)
		RULE(!c->success && class == 'u');
	else if (c->kind == SIM_BAD)
		RULE(!c->success && class == 'b');
	else if (c->failed_start)
		RULE(!c->success && class == 'i');
	else if (c->answered)
		RULE(class == (c->success ? 0 : 'n'));
	else if (c->asked_end && c->how == ASKED_REFUSED)
		RULE(!c->success && class == 'd');
	else if (c->asked_end && c->how == ASKED_EXPIRED)
		RULE(c->success ? class == 0 && c->kind == SIM_QUESTION : class == 't');
	else if (c->asked_end && c->kind == SIM_QUESTION)
		RULE(c->success && class == 0);
	else if (c->kind != SIM_ENDS)
		RULE(!c->success && (class == 'l' || class == 'c'));
	else
		RULE(class != 's' || j->put_off || j->check_how == CHECK_PASSED);
	return NULL;
}

/* ---- the end: its cause follows from what happened */

struct verdict {
	enum ava_status status;
	const char *reason;
	unsigned bits;
};

static struct verdict limit_verdict(enum agent_resource r)
{
	static const enum ava_status status[] = {AVA_TIMEOUT, AVA_COST_EXCEEDED,
						 AVA_TOKENS_EXCEEDED, AVA_ITERATIONS_EXCEEDED};
	static const char *const reasons[] = {"time", "cost", "tokens", "iterations"};

	return (struct verdict){status[r], reasons[r], SIM_END_PARTIAL | SIM_END_EXHAUSTED};
}

static struct verdict words_verdict(const struct judge *j)
{
	unsigned bits = j->checks > 0 && j->said_submitted ? 0 : SIM_END_UNVERIFIED;

	if (j->spec->check != NULL && (j->checks > 0 || (j->said != 0 && j->said_json)))
		return (struct verdict){AVA_UNPROVEN, "final_text", bits};
	return (struct verdict){j->said != 0 && j->said_json ? AVA_SUCCESS : AVA_NO_RESULT,
				"final_text", SIM_END_UNVERIFIED};
}

/* The end by the check of a result. */
static struct verdict check_verdict(const struct judge *j, const char *reason, unsigned bits)
{
	if (j->check_how == CHECK_PASSED && (j->steers == 0 || used_up(j) >= 0))
		return (struct verdict){AVA_SUCCESS, reason, bits};
	if (j->check_how == CHECK_UNABLE ||
	    (j->check_how == CHECK_FAILED && j->checks > j->spec->check_rounds))
		return (struct verdict){AVA_UNPROVEN, "check", bits};
	if (j->check_how == CHECK_FAILED && used_up(j) >= 0)
		return limit_verdict((enum agent_resource)used_up(j));
	return (struct verdict){AVA_NSTATUSES, "no reason at all", 0};
}

static struct verdict reply_verdict(const struct judge *j)
{
	unsigned json = j->asked_forced && j->tool_calls > 0 ? 0 : SIM_END_UNVERIFIED;

	switch ((enum sim_reply)j->reply->v[0]) {
	case SIM_FAILS:
		return (struct verdict){AVA_ERROR, "model_error", SIM_END_ERROR};
	case SIM_FAILS_BUDGET:
		return limit_verdict(AGENT_COST);
	case SIM_SAYS_NO:
		return (struct verdict){AVA_ERROR, "refusal", SIM_END_ERROR};
	case SIM_SAYS_SUBMIT:
		if (!j->put_off && j->spec->check != NULL)
			return check_verdict(j, "submitted", 0);
		if (!j->put_off)
			return (struct verdict){AVA_SUCCESS, "submitted", 0};
		break;
	case SIM_SAYS_JSON:
		if (j->check_how != 0)
			return check_verdict(j, "final_text", json);
		if (j->assistant_last && !j->put_off && (!must_look(j) || used_up(j) >= 0) &&
		    j->spec->check == NULL)
			return (struct verdict){AVA_SUCCESS, "final_text", json};
		break;
	case SIM_SAYS_TEXT:
		if (j->assistant_last && !j->put_off && (j->texts_asked == 1 || used_up(j) >= 0))
			return words_verdict(j);
		break;
	case SIM_SAYS_THOUGHT:
		if (j->odd > 3 || (j->said == 0 && j->lines_since == 0 && used_up(j) >= 0))
			return words_verdict(j);
		break;
	case SIM_SAYS_EMPTY:
	case SIM_SAYS_CALL_AS_TEXT:
		if (j->odd > 3 && j->said != 0)
			return words_verdict(j);
		if (j->odd > 3)
			return (struct verdict){AVA_ERROR, "empty_replies", SIM_END_ERROR};
		break;
	case SIM_SAYS_CALLS:
		break;
	}
	if (used_up(j) >= 0)
		return limit_verdict((enum agent_resource)used_up(j));
	return (struct verdict){AVA_NSTATUSES, "no reason at all", 0};
}

static struct verdict verdict_of(const struct judge *j)
{
	if (j->cancel != NULL)
		return (struct verdict){AVA_CANCELLED, "cancelled", 0};
	if (j->in_slot && j->rec->at >= j->slot_at + j->spec->limits.time_ms)
		return limit_verdict(AGENT_TIME);
	if (j->fault != NULL && j->fault->v[0] == AVA_EBUDGET)
		return limit_verdict(AGENT_COST);
	if (j->fault != NULL)
		return (struct verdict){AVA_ERROR, "internal", SIM_END_ERROR};
	if (j->reply != NULL)
		return reply_verdict(j);
	return used_up(j) >= 0 ? limit_verdict((enum agent_resource)used_up(j))
			       : (struct verdict){AVA_NSTATUSES, "no reason at all", 0};
}

static const char *check_end_calls(struct judge *j, enum ava_status status)
{
	unsigned submitted = 0;

	for (unsigned i = 0; i < j->ncalls; i++) {
		const struct call *c = &j->calls[i];

		RULE(c->made && c->resulted);
		submitted += c->kind == SIM_ENDS && c->success;
		if (c->class == 'l')
			RULE(status >= AVA_TIMEOUT && status <= AVA_ITERATIONS_EXCEEDED);
		if (c->class == 'c' && c->kind != SIM_ENDS && j->check_how == 0)
			RULE(status == AVA_SUCCESS || status >= AVA_CANCELLED);
	}
	RULE(submitted == (status == AVA_SUCCESS && j->reply->v[0] == SIM_SAYS_SUBMIT));
	RULE(j->ncalls == 0 || j->results_written);
	return NULL;
}

/* What is kept of what was said: the reply that is the result, else the first that stands. */
static int64_t kept_of(const struct judge *j)
{
	bool result = j->reply->v[0] == SIM_SAYS_SUBMIT || j->reply->v[0] == SIM_SAYS_JSON;

	return result || j->said == 0 ? j->reply->v[1] : j->said;
}

static const char *check_end(struct judge *j)
{
	const int64_t *v = j->rec->v;
	enum ava_status status = (enum ava_status)v[0];
	struct verdict want;
	int full = used_up(j);

	/* Results that are written with the end had no say in it, but that what was heard behind a
	 * check that passed may find no room for another call because of them. */
	if (j->closing_batch == j->rec->batch)
		j->new_bytes -= j->closing_bytes;
	want = verdict_of(j);
	if (want.status != status && j->check_how == CHECK_PASSED && j->heard && full >= 0)
		want = limit_verdict((enum agent_resource)full);

	RULE(j->end == NULL); /* once */
	RULE(!j->infer_open);
	RULE(status == want.status);
	RULE(v[1] == sim_word(want.reason));
	RULE((v[3] & SIM_END_ERROR) == (want.bits & SIM_END_ERROR));
	RULE((v[3] & SIM_END_UNVERIFIED) == (want.bits & SIM_END_UNVERIFIED));
	RULE(!(want.bits & SIM_END_PARTIAL) || (v[3] & SIM_END_PARTIAL));
	RULE((status != AVA_SUCCESS && status != AVA_NO_RESULT && status != AVA_UNPROVEN) ||
	     !(v[3] & SIM_END_PARTIAL));
	RULE(v[4] == (want.bits & SIM_END_EXHAUSTED ? sim_word(want.reason) : 0));
	RULE((status != AVA_SUCCESS && status != AVA_NO_RESULT && status != AVA_UNPROVEN) ||
	     v[2] == kept_of(j));
	/* A result that was handed in and did not pass is kept, whatever ends the run. */
	RULE(status == AVA_SUCCESS || j->checks == 0 || j->check_how != 0 || j->fault != NULL ||
	     v[2] == j->said || j->reply->v[0] == SIM_SAYS_THOUGHT ||
	     j->reply->v[0] == SIM_SAYS_TEXT);
	RULE(!j->in_slot || j->rec->at <= j->slot_at + j->spec->limits.time_ms + SIM_WAKE_MS);
	j->end = j->rec;
	j->end_batch = j->rec->batch;
	return check_end_calls(j, status);
}

/* Nothing is under way, and a person has to be asked. */
static bool may_wait(const struct judge *j)
{
	bool asks = false;

	for (unsigned i = 0; i < j->ncalls; i++) {
		const struct call *c = &j->calls[i];

		if (c->started && !c->answered)
			return false;
		asks |= waits_for_person(j, c);
	}
	return asks && !j->results_written && j->cancel == NULL;
}

static const char *check_slots(struct judge *j)
{
	switch (j->rec->kind) {
	case SIM_SLOT_WANT:
		RULE(!j->wanted);
		for (unsigned i = 0; i < j->ncalls && !j->results_written; i++) {
			RULE(!waits_for_person(j, &j->calls[i]));
			RULE(j->calls[i].asked_batch <= j->acked);
		}
		j->wanted = true;
		return NULL;
	case SIM_SLOT:
		RULE(j->wanted && !j->in_slot && j->end == NULL);
		j->in_slot = true;
		j->slot_at = j->rec->at - j->used;
		return NULL;
	default: /* SIM_SLOT_DROP: a wish withdrawn, a person asked, or the end is durable */
		RULE(j->wanted);
		if (j->end == NULL && j->in_slot)
			RULE(may_wait(j));
		else
			RULE(j->in_slot ? j->acked >= j->end_batch : j->cancel != NULL);
		j->used = j->rec->at - j->slot_at;
		j->in_slot = j->wanted = false;
		return NULL;
	}
}

/* What is under way when the run ends has been stopped, and only then. */
static const char *check_stop(struct judge *j)
{
	bool open = false;

	RULE(j->end == NULL);
	if (j->rec->kind == SIM_INFER_STOP) {
		RULE(j->editing || (j->infer_open && !j->replied));
		j->infer_stopped = true;
		return NULL;
	}
	for (unsigned i = 0; i < j->ncalls; i++)
		open |= j->calls[i].started && !j->calls[i].answered;
	open |= j->check_how == -1;
	RULE(open || j->cancel != NULL || j->rec->at >= j->slot_at + j->spec->limits.time_ms);
	j->tools_stopped = true;
	return NULL;
}

static const char *check_fault(struct judge *j)
{
	RULE(j->end == NULL);
	if (j->rec->v[1] != SIM_FAULT_TOOL) {
		if (j->rec->v[1] == SIM_FAULT_REPLY)
			settle(j); /* not written, yet paid for */
		j->fault = j->rec;
		return NULL;
	}
	RULE(call_of(j) != NULL);
	call_of(j)->failed_start = true;
	return NULL;
}

static const char *check_done(struct judge *j)
{
	const struct agent_totals *t = &j->run->agent.at.totals;

	RULE(j->end != NULL && !j->done);
	RULE(j->acked >= j->end_batch); /* acknowledged means on disk */
	RULE(!j->in_slot && !j->wanted);
	RULE(t->input == j->input && t->output == j->output && t->cost_microusd == j->cost);
	RULE(t->calls == j->calls_made && t->uncosted_calls == j->uncosted);
	RULE(t->failed_calls == j->failed && t->tool_calls == j->tool_calls);
	RULE(j->run->agent.at.iteration == j->iteration);
	j->done = true;
	return NULL;
}

static const char *check_answer(struct judge *j)
{
	struct call *c = call_of(j);

	RULE(c != NULL && c->started && !c->answered);
	RULE(!j->tools_stopped && j->end == NULL);
	c->answered = true;
	return NULL;
}

static const char *check_proof(struct judge *j)
{
	bool submit = j->reply->v[0] == SIM_SAYS_SUBMIT;

	if (j->rec->kind == SIM_CHECKED) {
		RULE(j->check_how == -1 && !j->tools_stopped && j->end == NULL);
		j->check_how = (int)j->rec->v[0];
		j->checks += j->check_how != CHECK_PASSED;
		return NULL;
	}
	RULE(j->spec->check != NULL && j->saved && j->check_how == 0);
	RULE(j->in_slot && j->end == NULL && j->cancel == NULL && !j->put_off);
	RULE(j->rec->at < j->slot_at + j->spec->limits.time_ms);
	RULE(submit || j->reply->v[0] == SIM_SAYS_JSON);
	j->check_how = -1;
	j->said = j->reply->v[1];
	j->said_json = true;
	j->said_submitted = submit;
	return NULL;
}

static const char *check_rec(struct judge *j)
{
	switch ((enum sim_kind)j->rec->kind) {
	case SIM_SLOT_WANT:
	case SIM_SLOT:
	case SIM_SLOT_DROP:
		return check_slots(j);
	case SIM_INFER:
		return check_infer(j);
	case SIM_REPLY:
		return check_reply(j);
	case SIM_INFER_END:
		return check_infer_end(j);
	case SIM_ASSISTANT:
	case SIM_RESULTS:
	case SIM_NOTE:
		return check_line(j);
	case SIM_TOOL_CALL:
		return check_tool_call(j);
	case SIM_TOOL_RESULT:
		return check_tool_result(j);
	case SIM_WARNED:
		return check_warned(j);
	case SIM_ACK:
		RULE(j->rec->v[0] == j->acked + 1);
		j->acked++;
		return NULL;
	case SIM_START:
		return check_start(j);
	case SIM_ANSWER:
		return check_answer(j);
	case SIM_TOOLS_STOP:
	case SIM_INFER_STOP:
		return check_stop(j);
	case SIM_ASK:
		return check_ask(j);
	case SIM_ASK_END:
		return check_ask_end(j);
	case SIM_STEER:
		RULE(j->end == NULL);
		j->steers++;
		return NULL;
	case SIM_CANCEL:
		if (j->end == NULL && j->cancel == NULL)
			j->cancel = j->rec;
		return NULL;
	case SIM_FAULT:
		return check_fault(j);
	case SIM_END:
		return check_end(j);
	case SIM_CHECK:
	case SIM_CHECKED:
		return check_proof(j);
	case SIM_EDIT:
		return check_edit(j);
	case SIM_DONE:
		return check_done(j);
	case SIM_NKINDS:
		break;
	}
	return "a record of no known kind";
}

/* A warning that is due when results are written stands in the same batch. */
static const char *check_warnings_due(struct judge *j, const struct sim_rec *next)
{
	bool told = next != NULL && next->run == j->rec->run && next->kind == SIM_WARNED;

	if ((j->rec->kind != SIM_RESULTS && j->rec->kind != SIM_NOTE) || j->end != NULL)
		return NULL;
	if (next != NULL && next->run == j->rec->run && next->kind == SIM_END)
		return NULL;                       /* nobody is left to be told */
	RULE((uint64_t)j->rec->v[3] == j->steers); /* everything that was said, once */
	j->steers = 0;
	RULE(told == ((near(j) & ~j->warned) != 0));
	RULE(!told || (uint64_t)next->v[0] == (near(j) & ~j->warned));
	return NULL;
}

static const char *check_slot_count(const struct sim_world *w)
{
	bool has[SIM_MAX_RUNS] = {false};
	unsigned used = 0;

	for (size_t i = 0; i < w->nrecs; i++) {
		const struct sim_rec *rec = &w->recs[i];

		if (rec->kind == SIM_SLOT) {
			has[rec->run] = true;
			used++;
		} else if (rec->kind == SIM_SLOT_DROP && has[rec->run]) {
			has[rec->run] = false;
			used--;
		}
		RULE(used <= w->slots);
	}
	RULE(used == 0);
	return NULL;
}

const char *sim_check(const struct sim_world *w, unsigned *run)
{
	for (unsigned i = 0; i < w->nruns; i++) {
		struct judge j = {.run = &w->runs[i], .spec = &w->runs[i].spec};
		const char *broken = NULL;

		*run = i;
		j.new_bytes = w->runs[i].request_bytes;
		for (size_t k = 0; k < w->nrecs && broken == NULL; k++) {
			j.rec = &w->recs[k];
			if (j.rec->run != i)
				continue;
			broken = check_rec(&j);
			if (broken == NULL)
				broken =
					check_warnings_due(&j, k + 1 < w->nrecs ? j.rec + 1 : NULL);
		}
		if (broken != NULL)
			return broken;
		RULE(j.done); /* whatever happened, it has ended */
	}
	*run = 0;
	return check_slot_count(w);
}

/* The twin of subagent/world.c.
 *
 * Events stand in a heap by time and age. What arrives is given to the
 * machine (agent_on_*) and the run is woken a moment later, so that several
 * things can arrive before it looks, as in the real loop. Every batch of the
 * simulated disk is acknowledged in order, late, and sometimes very late. */
#include "world.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "base/util.h"

enum event_kind {
	EV_WAKE,
	EV_SLEEP,
	EV_GRANT,
	EV_REPLY,
	EV_TOOL,
	EV_ACK,
	EV_CANCEL,
	EV_COMPACT,
	EV_ANSWER,
	EV_STEER,
	EV_CHECK
};

struct sim_event {
	int64_t at;
	uint64_t age;
	uint32_t gen;
	int32_t n; /* call, batch */
	uint8_t kind, run;
	bool wait; /* EV_ACK: the machine waits for it */
};

/* ---- chance */

uint64_t sim_rng(struct sim_world *w)
{
	uint64_t z = (w->rng += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

int64_t sim_between(struct sim_world *w, int64_t least, int64_t most)
{
	return least + (int64_t)(sim_rng(w) % (uint64_t)(most - least + 1));
}

bool sim_chance(struct sim_world *w, int thousandths)
{
	return sim_between(w, 0, 999) < thousandths;
}

/* ---- the record */

void sim_hash(struct sim_world *w, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < len; i++)
		w->hash = (w->hash ^ p[i]) * UINT64_C(0x100000001b3);
}

int64_t sim_word(const char *s)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; s != NULL && *s != '\0'; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
	return s == NULL ? 0 : (int64_t)(h >> 1);
}

static void add_event(struct sim_world *w, struct sim_event e);

static struct sim_rec *record(struct sim_run *r, enum sim_kind kind)
{
	struct sim_world *w = r->world;
	struct sim_rec *rec;

	if (w->nrecs == w->cap_recs) {
		w->cap_recs = w->cap_recs * 2 + 256;
		w->recs = realloc(w->recs, w->cap_recs * sizeof(*w->recs));
		assert(w->recs != NULL);
	}
	rec = &w->recs[w->nrecs++];
	memset(rec, 0, sizeof(*rec)); /* padding too: it is hashed */
	rec->at = w->now;
	rec->run = r->index;
	rec->kind = (uint8_t)kind;
	rec->iteration = r->agent.at.iteration;
	if (++r->recs == r->cancel_at_rec)
		add_event(w, (struct sim_event){.at = w->now + sim_between(w, 0, 2),
						.kind = EV_CANCEL,
						.run = r->index});
	return rec;
}

/* ---- events */

static bool before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at < b->at || (a->at == b->at && a->age < b->age);
}

static void add_event(struct sim_world *w, struct sim_event e)
{
	size_t i = w->nheap++;

	if (w->nheap > w->cap_heap) {
		w->cap_heap = w->cap_heap * 2 + 64;
		w->heap = realloc(w->heap, w->cap_heap * sizeof(*w->heap));
		assert(w->heap != NULL);
	}
	e.age = w->events++;
	for (; i > 0 && before(&e, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = e;
}

static struct sim_event take_event(struct sim_world *w)
{
	struct sim_event first = w->heap[0], last = w->heap[--w->nheap];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < w->nheap) {
		if (child + 1 < w->nheap && before(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (!before(&w->heap[child], &last))
			break;
		w->heap[i] = w->heap[child];
		i = child;
	}
	w->heap[i] = last;
	return first;
}

static void wake(struct sim_run *r)
{
	struct sim_world *w = r->world;

	if (r->woken)
		return;
	r->woken = true;
	add_event(w, (struct sim_event){.at = w->now + sim_between(w, 0, SIM_WAKE_MS),
					.kind = EV_WAKE,
					.run = r->index});
}

/* ---- disk */

/* A batch of what was recorded since `from`; returns when it will be durable. */
static int64_t commit(struct sim_run *r, size_t from, bool wait)
{
	struct sim_world *w = r->world;
	int64_t at = w->now + sim_between(w, 0, w->disk_ms);

	if (sim_chance(w, 5)) /* a full disk, a slow one */
		at += sim_between(w, 100, 60000);
	r->last_ack_at = MAX(r->last_ack_at, at);
	r->batches++;
	for (; from < w->nrecs; from++)
		w->recs[from].batch = r->batches;
	add_event(w, (struct sim_event){.at = r->last_ack_at,
					.kind = EV_ACK,
					.run = r->index,
					.n = r->batches,
					.wait = wait});
	return r->last_ack_at;
}

static bool faulty(struct sim_run *r, int code, enum sim_fault what)
{
	struct sim_rec *rec;

	if (!sim_chance(r->world, r->temper.faults))
		return false;
	rec = record(r, SIM_FAULT);
	rec->v[0] = code;
	rec->v[1] = what;
	return true;
}

/* ---- agent/agent.h */

static struct sim_run *run_of(struct agent *a)
{
	return a->world;
}

static int64_t io_now(struct agent *a)
{
	return run_of(a)->world->now;
}

static void io_wake_at(struct agent *a, int64_t at)
{
	struct sim_run *r = run_of(a);

	r->sleep_gen++;
	if (at != INT64_MAX)
		add_event(r->world, (struct sim_event){.at = MAX(at, r->world->now),
						       .kind = EV_SLEEP,
						       .run = r->index,
						       .gen = r->sleep_gen});
}

static void io_slot_want(struct agent *a)
{
	struct sim_run *r = run_of(a);

	record(r, SIM_SLOT_WANT);
	r->waits_slot = true;
	add_event(r->world, (struct sim_event){.at = r->world->now, .kind = EV_GRANT});
}

static void io_slot_drop(struct agent *a)
{
	struct sim_run *r = run_of(a);

	record(r, SIM_SLOT_DROP);
	r->waits_slot = false;
	if (!r->in_slot)
		return;
	r->in_slot = false;
	r->world->used_slots--;
	add_event(r->world, (struct sim_event){.at = r->world->now, .kind = EV_GRANT});
}

static int io_infer(struct agent *a, const struct agent_infer *call)
{
	struct sim_run *r = run_of(a);
	struct sim_world *w = r->world;
	int code = sim_chance(w, 500) ? AVA_EBUDGET : AVA_ENOMEM;
	struct sim_rec *rec;
	int64_t delay = sim_between(w, 1, 8000);

	if (faulty(r, code, SIM_FAULT_INFER))
		return code;
	rec = record(r, SIM_INFER);
	rec->iteration = call->iteration;
	rec->v[0] = call->max_output;
	rec->v[1] = call->force_submit;
	r->infer_open = true;
	r->max_output = call->max_output;
	if (sim_chance(w, r->temper.slow))
		delay = sim_between(w, 1, 1200000);
	add_event(w, (struct sim_event){.at = commit(r, w->nrecs - 1, false) + delay,
					.kind = EV_REPLY,
					.run = r->index,
					.gen = r->infer_gen});
	return 0;
}

static void io_infer_stop(struct agent *a)
{
	struct sim_run *r = run_of(a);

	record(r, SIM_INFER_STOP);
	r->infer_gen++;
}

static void add_line(struct sim_run *r, int64_t bytes, bool assistant)
{
	if (r->nlines == r->cap_lines) {
		r->cap_lines = r->cap_lines * 2 + 32;
		r->lines = realloc(r->lines, r->cap_lines * sizeof(*r->lines));
		assert(r->lines != NULL);
	}
	r->lines[r->nlines++] = (struct compact_line){bytes, assistant};
}

static void add_result(struct sim_run *r, int64_t bytes)
{
	if (r->nresults == r->cap_results) {
		r->cap_results = r->cap_results * 2 + 32;
		r->results = realloc(r->results, r->cap_results * sizeof(*r->results));
		assert(r->results != NULL);
	}
	r->results[r->nresults++] = (struct compact_result){.bytes = bytes, .line = r->nlines};
}

static int64_t io_save_reply(struct agent *a, const struct turn *t, bool wait)
{
	struct sim_run *r = run_of(a);
	struct sim_world *w = r->world;
	const struct usage *u = &t->usage;
	size_t from = w->nrecs;
	int64_t bytes = t->wire_len > 0 ? (int64_t)t->wire_len + 1 : 0; /* and what parts lines */
	struct sim_rec *rec;

	if (faulty(r, AVA_ENOMEM, SIM_FAULT_REPLY))
		return AVA_ENOMEM;
	rec = record(r, SIM_INFER_END);
	memcpy(rec->v,
	       (int64_t[5]){u->input, u->output, u->cost_microusd, u->cache_read, u->cache_write},
	       5 * sizeof(int64_t));
	r->infer_open = false;
	if (bytes > 0) {
		rec = record(r, SIM_ASSISTANT);
		rec->v[0] = t->ncalls;
		rec->v[1] = bytes;
	}
	for (unsigned i = 0; i < t->ncalls; i++) {
		int iteration = -1;
		unsigned call = 0;

		sscanf(t->calls[i].id, "c%d.%u", &iteration, &call);
		rec = record(r, SIM_TOOL_CALL);
		rec->iteration = iteration;
		rec->call = (uint16_t)call;
		rec->v[0] = r->call_kinds[i];
	}
	commit(r, from, wait);
	r->body_bytes += bytes;
	if (bytes > 0)
		add_line(r, bytes, true);
	return bytes;
}

/* The twin of subagent/room.c: the same plan, over how long the lines are. */
static int io_compact(struct agent *a, const struct agent_compact *want)
{
	struct sim_run *r = run_of(a);
	struct sim_world *w = r->world;
	double per_token = (double)r->body_bytes / (double)want->tokens;
	struct compact_plan p = {
		.need = (int64_t)(per_token * (double)(want->tokens - want->target)),
		.must = (int64_t)(per_token * (double)(want->tokens - want->most)),
	};
	struct sim_rec *rec;
	size_t kept = 0;

	compact_plan(&p, r->lines, r->nlines, r->results, r->nresults);
	r->compacted.bytes_before = r->body_bytes;
	for (size_t i = 0; i < r->nresults; i++) {
		struct compact_result c = r->results[i];

		if (c.line < p.fold)
			continue;
		if (c.go) {
			assert(!r->lines[c.line].assistant && c.bytes >= COMPACT_LEAST);
			r->lines[c.line].bytes -= c.bytes - COMPACT_MARKER;
			r->body_bytes -= c.bytes - COMPACT_MARKER;
			c.bytes = COMPACT_MARKER;
			c.fixed = true;
			c.go = false;
		}
		c.line -= p.fold > 0 ? p.fold - 1 : 0;
		r->results[kept++] = c;
	}
	r->nresults = kept;
	if (p.fold > 0) { /* what stays begins with the model's words, behind the task */
		assert(p.fold < r->nlines && r->lines[p.fold].assistant);
		for (size_t i = 1; i < p.fold; i++)
			r->body_bytes -= r->lines[i].bytes;
		r->body_bytes += COMPACT_MARKER;
		memmove(r->lines + 1, r->lines + p.fold, (r->nlines - p.fold) * sizeof(*r->lines));
		r->nlines -= p.fold - 1;
	}
	r->compacted.bytes_after = r->body_bytes;
	rec = record(r, SIM_EDIT);
	rec->v[0] = want->tokens;
	rec->v[1] = r->compacted.bytes_before;
	rec->v[2] = r->compacted.bytes_after;
	add_event(w, (struct sim_event){.at = commit(r, w->nrecs - 1, false),
					.kind = EV_COMPACT,
					.run = r->index,
					.gen = r->infer_gen});
	return 0;
}

static int io_tool_start(struct agent *a, unsigned call)
{
	struct sim_run *r = run_of(a);
	struct sim_world *w = r->world;
	int64_t delay = sim_between(w, 0, 3000);

	if (faulty(r, AVA_ENOMEM, SIM_FAULT_TOOL)) {
		w->recs[w->nrecs - 1].call = (uint16_t)(call + 1);
		return AVA_ENOMEM;
	}
	record(r, SIM_START)->call = (uint16_t)(call + 1);
	if (sim_chance(w, 10)) /* until it is stopped */
		return 0;
	add_event(w, (struct sim_event){.at = w->now + delay,
					.kind = EV_TOOL,
					.run = r->index,
					.gen = r->tool_gen,
					.n = (int32_t)call});
	return 0;
}

static int io_check(struct agent *a)
{
	struct sim_run *r = run_of(a);
	struct sim_world *w = r->world;

	if (faulty(r, AVA_ENOMEM, SIM_FAULT_CHECK))
		return AVA_ENOMEM;
	record(r, SIM_CHECK);
	if (sim_chance(w, 10)) /* until it is stopped */
		return 0;
	add_event(w,
		  (struct sim_event){.at = commit(r, w->nrecs - 1, false) + sim_between(w, 0, 9000),
				     .kind = EV_CHECK,
				     .run = r->index,
				     .gen = r->tool_gen});
	return 0;
}

static void io_tools_stop(struct agent *a)
{
	struct sim_run *r = run_of(a);

	record(r, SIM_TOOLS_STOP);
	r->tool_gen++;
}

static int64_t record_result(struct sim_run *r, struct turn_call *c, unsigned i)
{
	struct sim_rec *rec = record(r, SIM_TOOL_RESULT);

	assert(c->answered && c->output != NULL);
	rec->call = (uint16_t)(i + 1);
	rec->v[0] = c->success;
	rec->v[1] = c->error_class[0];
	c->recorded = true;
	sim_hash(r->world, c->output, c->output_len);
	return (int64_t)c->output_len;
}

/* The results line: every call of the turn. Returns its bytes. */
static int64_t record_results(struct sim_run *r, struct turn *t, unsigned nnotices, int64_t bytes)
{
	struct sim_rec *rec;

	for (unsigned i = 0; i < t->ncalls; i++) {
		bytes += (int64_t)t->calls[i].output_len + 20; /* what stands around it */
		if (!t->calls[i].recorded)
			record_result(r, &t->calls[i], i);
	}
	rec = record(r, t->ncalls > 0 ? SIM_RESULTS : SIM_NOTE);
	rec->v[0] = t->ncalls;
	rec->v[1] = bytes;
	rec->v[2] = nnotices;
	return bytes;
}

static int64_t io_save_results(struct agent *a, struct turn *t, const char *const *notices,
			       unsigned nnotices, unsigned warned)
{
	struct sim_run *r = run_of(a);
	struct sim_world *w = r->world;
	size_t from = w->nrecs;
	int64_t bytes = 0;

	if (faulty(r, AVA_ENOMEM, SIM_FAULT_RESULTS))
		return AVA_ENOMEM;
	for (unsigned i = 0; i < nnotices; i++) {
		sim_hash(w, notices[i], strlen(notices[i]));
		bytes += (int64_t)strlen(notices[i]);
	}
	bytes = record_results(r, t, nnotices, bytes + 30 * (int64_t)r->steers);
	w->recs[w->nrecs - 1].v[3] = r->steers;
	r->steers = 0;
	if (warned != 0)
		record(r, SIM_WARNED)->v[0] = warned;
	commit(r, from, false);
	for (unsigned i = 0; i < t->ncalls; i++)
		add_result(r, (int64_t)t->calls[i].output_len);
	add_line(r, bytes, false);
	r->body_bytes += bytes;
	return bytes;
}

#define NOBODY_MS INT64_C(3600000) /* nobody answers after that time */

static int io_ask(struct agent *a, unsigned call, const struct agent_ask *q, int64_t *until_ms)
{
	struct sim_run *r = run_of(a);
	struct sim_world *w = r->world;
	struct sim_rec *rec;

	if (faulty(r, AVA_ENOMEM, SIM_FAULT_ASK))
		return AVA_ENOMEM;
	*until_ms = w->now + MIN(q->timeout_ms, NOBODY_MS);
	rec = record(r, SIM_ASK);
	rec->call = (uint16_t)(call + 1);
	rec->v[0] = q->approval;
	rec->v[1] = *until_ms;
	sim_hash(w, q->question, q->question != NULL ? strlen(q->question) : 0);
	commit(r, w->nrecs - 1, false);
	if (sim_chance(w, 850))
		add_event(w,
			  (struct sim_event){
				  .at = w->now +
					sim_between(w, 1, sim_chance(w, 500) ? 20000 : NOBODY_MS),
				  .kind = EV_ANSWER,
				  .run = r->index,
				  .gen = r->ask_gen});
	return 0;
}

static void io_ask_end(struct agent *a, unsigned call, enum agent_asked how)
{
	struct sim_run *r = run_of(a);
	struct sim_rec *rec = record(r, SIM_ASK_END);

	rec->call = (uint16_t)(call + 1);
	rec->v[0] = how;
	r->ask_gen++;
	commit(r, r->world->nrecs - 1, true);
}

static void io_save_end(struct agent *a, const struct agent_end *end)
{
	struct sim_run *r = run_of(a);
	struct sim_world *w = r->world;
	size_t from = w->nrecs;
	struct sim_rec *rec;

	r->ask_gen++;
	if (r->infer_open)
		record(r, SIM_INFER_END)->v[5] = 1;
	r->infer_open = false;
	if (a->turn != NULL && a->turn->ncalls > 0)
		record_results(r, a->turn, 0, 0);
	rec = record(r, SIM_END);
	rec->v[0] = end->status;
	rec->v[1] = sim_word(end->stop_reason);
	rec->v[2] = end->summary != NULL ? atoll(end->summary) : 0;
	rec->v[3] = (end->partial ? SIM_END_PARTIAL : 0) |
		    (end->unverified ? SIM_END_UNVERIFIED : 0) |
		    (end->error != NULL && end->error_class != NULL ? SIM_END_ERROR : 0);
	rec->v[4] = sim_word(end->exhausted);
	commit(r, from, true);
}

static void io_done(struct agent *a)
{
	struct sim_run *r = run_of(a);

	record(r, SIM_DONE);
	r->done = true;
}

static bool io_rest(struct agent *a)
{
	return false;
}

static const struct agent_io sim_io = {
	.now = io_now,
	.wake_at = io_wake_at,
	.slot_want = io_slot_want,
	.slot_drop = io_slot_drop,
	.infer = io_infer,
	.compact = io_compact,
	.infer_stop = io_infer_stop,
	.save_reply = io_save_reply,
	.tool_start = io_tool_start,
	.check = io_check,
	.tools_stop = io_tools_stop,
	.rest = io_rest,
	.save_results = io_save_results,
	.ask = io_ask,
	.ask_end = io_ask_end,
	.save_end = io_save_end,
	.done = io_done,
};

/* ---- what arrives */

static void grant(struct sim_world *w)
{
	for (unsigned i = 0; i < w->nruns && w->used_slots < w->slots; i++) {
		struct sim_run *r = &w->runs[i];

		if (!r->waits_slot)
			continue;
		r->waits_slot = false;
		r->in_slot = true;
		w->used_slots++;
		record(r, SIM_SLOT);
		agent_on_slot(&r->agent);
		wake(r);
	}
}

static void arrive_reply(struct sim_run *r)
{
	enum sim_reply kind;
	int64_t token;
	struct turn *t = sim_draw_turn(r, r->max_output, &kind, &token);
	struct sim_rec *rec = record(r, SIM_REPLY);

	rec->v[0] = kind;
	rec->v[1] = token;
	if (t != NULL)
		memcpy(rec->v + 2,
		       (int64_t[5]){t->usage.input, t->usage.output, t->usage.cost_microusd,
				    t->usage.cache_read, t->usage.cache_write},
		       5 * sizeof(int64_t));
	for (unsigned i = 0; t != NULL && i < t->ncalls; i++)
		r->call_kinds[i] = (uint8_t)sim_call_kind(t->calls[i].name, t->calls[i].args);
	if (t != NULL)
		agent_on_reply(&r->agent, 0, t, NULL, NULL);
	else
		agent_on_reply(&r->agent, kind == SIM_FAILS ? AVA_ECONNECT : AVA_EBUDGET, NULL,
			       "connect", "nobody there");
}

static void arrive_tool(struct sim_run *r, unsigned call)
{
	struct turn_call *c = &r->agent.turn->calls[call];
	bool good = sim_chance(r->world, 800);

	record(r, SIM_ANSWER)->call = (uint16_t)(call + 1);
	c->answered = true;
	c->success = good;
	c->error_class = good ? "" : "not_found";
	c->output_len = (size_t)sim_between(r->world, 24, sim_chance(r->world, 50) ? 60000 : 500);
	c->output = arena_get(&r->agent.turn->mem, c->output_len + 1);
	assert(c->output != NULL);
	sprintf((char *)c->output, "%llu", (unsigned long long)r->world->events); /* news */
	if (sim_chance(r->world, 500)) { /* its event may be written before its line */
		size_t from = r->world->nrecs;

		record_result(r, c, call);
		commit(r, from, false);
	}
	agent_on_tool(&r->agent, call);
}

static void arrive_check(struct sim_run *r)
{
	struct sim_world *w = r->world;
	enum agent_check how = sim_chance(w, 500)  ? CHECK_PASSED
			       : sim_chance(w, 50) ? CHECK_UNABLE
						   : CHECK_FAILED;

	record(r, SIM_CHECKED)->v[0] = how;
	agent_on_checked(&r->agent, how, "exit 1, 0.1 s\nit says why");
}

static void arrive_cancel(struct sim_run *r)
{
	record(r, SIM_CANCEL);
	if (r->cancelled_in < 0 && !r->agent.ending)
		r->cancelled_in = r->agent.state;
	agent_cancel(&r->agent);
}

static void arrive_steer(struct sim_run *r)
{
	record(r, SIM_STEER);
	r->steers++;
	agent_on_steer(&r->agent);
}

static void play_event(struct sim_world *w, const struct sim_event *e)
{
	struct sim_run *r = &w->runs[e->run];

	switch ((enum event_kind)e->kind) {
	case EV_GRANT:
		grant(w);
		return;
	case EV_WAKE:
		r->woken = false;
		if (!r->done)
			agent_run(&r->agent);
		return;
	case EV_SLEEP:
		if (e->gen != r->sleep_gen)
			return;
		break;
	case EV_REPLY:
		if (e->gen != r->infer_gen)
			return;
		arrive_reply(r);
		break;
	case EV_TOOL:
		if (e->gen != r->tool_gen)
			return;
		arrive_tool(r, (unsigned)e->n);
		break;
	case EV_ACK:
		record(r, SIM_ACK)->v[0] = e->n;
		if (!e->wait)
			return;
		agent_on_saved(&r->agent);
		break;
	case EV_ANSWER:
		if (e->gen != r->ask_gen)
			return;
		if (agent_on_answer(&r->agent, "as you like", sim_chance(w, 700)) != 0)
			return;
		break;
	case EV_STEER:
		if (r->agent.ending || r->done)
			return;
		arrive_steer(r);
		break;
	case EV_CHECK:
		if (e->gen != r->tool_gen)
			return;
		arrive_check(r);
		break;
	case EV_COMPACT:
		if (e->gen != r->infer_gen)
			return;
		agent_on_compacted(&r->agent, 0, &r->compacted);
		break;
	case EV_CANCEL:
		if (r->done)
			return;
		arrive_cancel(r);
		break;
	}
	wake(r);
}

/* ---- life */

static void draw_cancel(struct sim_run *r)
{
	static const int64_t spans[] = {0, 100, 10000, 600000};
	struct sim_world *w = r->world;

	r->cancelled_in = -1;
	if (sim_chance(w, 200))
		r->cancel_at_rec = (unsigned)sim_between(w, 1, 80);
	for (int i = 0; i < 2; i++)
		if (sim_chance(w, 80))
			add_event(w, (struct sim_event){
					     .at = sim_between(w, 0, spans[sim_between(w, 0, 3)]),
					     .kind = EV_CANCEL,
					     .run = r->index});
}

static void draw_steers(struct sim_run *r)
{
	struct sim_world *w = r->world;
	int64_t n = sim_chance(w, 300) ? sim_between(w, 1, 4) : 0;

	while (n-- > 0)
		add_event(w, (struct sim_event){
				     .at = sim_between(w, 0, sim_chance(w, 500) ? 20000 : 300000),
				     .kind = EV_STEER,
				     .run = r->index});
}

void sim_open(struct sim_world *w, uint64_t seed)
{
	*w = (struct sim_world){.seed = seed, .rng = seed, .hash = UINT64_C(0xcbf29ce484222325)};
	w->now = 0;
	w->nruns = (unsigned)sim_between(w, 1, SIM_MAX_RUNS);
	w->slots = (unsigned)sim_between(w, 1, 8);
	w->disk_ms = (int)sim_between(w, 0, sim_chance(w, 100) ? 2000 : 20);
	for (unsigned i = 0; i < w->nruns; i++) {
		struct sim_run *r = &w->runs[i];

		r->world = w;
		r->index = (uint8_t)i;
		sim_draw_run(r);
		r->body_bytes = r->request_bytes;
		add_line(r, r->request_bytes, false);
		agent_init(&r->agent, &sim_io, &r->spec, r, r->request_bytes);
		draw_cancel(r);
		draw_steers(r);
		wake(r);
	}
}

void sim_play(struct sim_world *w)
{
	while (w->nheap > 0) {
		struct sim_event e = take_event(w);

		assert(e.at >= w->now);
		w->now = e.at;
		play_event(w, &e);
	}
	for (size_t i = 0; i < w->nrecs; i++)
		sim_hash(w, &w->recs[i], sizeof(w->recs[i]));
}

void sim_close(struct sim_world *w)
{
	for (unsigned i = 0; i < w->nruns; i++) {
		agent_fini(&w->runs[i].agent);
		free(w->runs[i].lines);
		free(w->runs[i].results);
	}
	free(w->heap);
	free(w->recs);
}

void sim_print(const struct sim_world *w, unsigned run)
{
	static const char *const names[SIM_NKINDS] = {
		"slot wanted",     "slot",         "slot dropped",
		"InferStart",      "reply",        "InferEnd",
		"line: assistant", "ToolCall",     "ToolResult",
		"line: results",   "line: note",   "Limit warned",
		"durable",         "tool starts",  "tool answers",
		"tools stopped",   "call stopped", "cancel",
		"asks a person",   "answered",     "steered",
		"refused",         "END",          "done",
		"check begins",    "check ended",  "room made",
	};
	const struct agent_spec *s = &w->runs[run].spec;

	fprintf(stderr,
		"limits: %lld ms %lld microusd %lld tokens %d replies; max_output %lld; "
		"prices %lld %lld %lld %lld; request %lld\n",
		(long long)s->limits.time_ms, (long long)s->limits.cost_microusd,
		(long long)s->limits.tokens, (int)s->limits.iterations, (long long)s->max_output,
		(long long)s->price.input, (long long)s->price.output,
		(long long)s->price.cache_read, (long long)s->price.cache_write,
		(long long)w->runs[run].request_bytes);
	for (size_t i = 0; i < w->nrecs; i++) {
		const struct sim_rec *rec = &w->recs[i];

		if (rec->run != run)
			continue;
		fprintf(stderr, "%9lld ms  c%d.%u  %-15s", (long long)rec->at, (int)rec->iteration,
			(unsigned)rec->call, names[rec->kind]);
		for (int k = 0; k < 7; k++)
			fprintf(stderr, " %lld", (long long)rec->v[k]);
		fprintf(stderr, "  #%d\n", (int)rec->batch);
	}
}

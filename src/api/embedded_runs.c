/* Runs and proposals of an embedded runtime: each call is a verb of ava/ops.h
 * and turns of the loop until the verb has answered, which it does exactly
 * once, at the latest when the disk does. */
#include <stdlib.h>
#include <string.h>

#include "api/embedded.h"
#include "ava/change.h"
#include "ava/checkpoints.h"
#include "ava/groups.h"
#include "ava/ops.h"
#include "ava/replays.h"
#include "ava/steer.h"
#include "base/error.h"
#include "base/id.h"
#include "base/util.h"
#include "codec/json.h"
#include "subagent/person.h"
#include "subagent/replay.h"

/* A call that waits for its answer. */
struct pending {
	struct answer *out;
	void *to; /* what the caller gets */
	struct ava_error *err;
	bool done;
	int rv;
	const char *json;
	size_t len;
};

static int finish(struct embedded *e, struct pending *p)
{
	while (!p->done)
		embedded_step(e, -1);
	return p->rv;
}

static void answered(struct pending *p, int rv, const struct ava_error *err)
{
	p->done = true;
	p->rv = rv;
	if (rv != 0)
		err_set(p->err, rv, "%s", err && err->text[0] ? err->text : ava_strerror(rv));
}

/* ---- shapes */

static void fill_proposal(const struct op_proposal *p, struct answer *out, struct ava_proposal *to)
{
	*to = (struct ava_proposal){
		.id = answer_str(out, p->id),
		.state = p->state == PROPOSAL_PENDING     ? AVA_PENDING
			 : p->state == PROPOSAL_CONFIRMED ? AVA_CONFIRMED
			 : p->state == PROPOSAL_REJECTED  ? AVA_REJECTED
							  : AVA_EXPIRED,
		.created_ms = p->created_ms,
		.expires_ms = p->expires_ms,
		.run = answer_str(out, p->run_id),
		.trace = answer_str(out, p->trace_id),
		.message = answer_str(out, p->message),
		.quote = answer_str(out, p->quote_json),
		.config = answer_str(out, p->config_json),
		.config_hash = answer_str(out, p->config_hash),
		.confirmed_hash = answer_str(out, p->confirmed_hash),
		.changes = answer_str(out, p->changes),
		.replaces = answer_str(out, p->replaces),
		.replaced_by = answer_str(out, p->replaced_by),
		.group = answer_str(out, p->group_id),
	};
}

static void fill_run(const struct op_status *s, struct answer *out, struct ava_run *to)
{
	*to = (struct ava_run){
		.id = answer_str(out, s->id),
		.trace = answer_str(out, s->trace_id),
		.role = answer_str(out, s->role),
		.task = answer_str(out, s->task),
		.model = answer_str(out, s->model),
		.session = answer_str(out, s->session_id),
		.user = answer_str(out, s->user_id),
		.origin = answer_str(out, s->origin),
		.cwd = answer_str(out, s->cwd),
		.status = s->status,
		.stop_reason = answer_str(out, s->stop_reason),
		.activity = answer_str(out, s->activity),
		.asks = answer_str(out, s->asks ? s->asks->text : ""),
		.asks_call = answer_str(out, s->asks ? s->asks->call_id : ""),
		.last_tool = answer_str(out, s->last_tool),
		.started_ms = s->started_ms,
		.ended_ms = s->ended_ms,
		.last_tool_ms = s->last_tool && s->last_tool[0] ? s->last_tool_ms : 0,
		.elapsed_ms = s->elapsed_ms,
		.tokens = s->tokens,
		.cost_microusd = s->cost_microusd,
		.iteration = s->iteration,
		.timeout_ms = s->limit_time_ms,
		.max_cost_microusd = s->limit_cost_microusd,
		.max_tokens = s->limit_tokens,
		.max_iterations = s->limit_iterations,
	};
}

static int64_t cost_of(int64_t microusd)
{
	return microusd == AVA_FREE_ONLY ? 0 : microusd ? microusd : AVA_DEFAULT;
}

/* `session`: one of its own for a run that belongs to none. */
static struct op_spawn spawn_of(const struct embedded *e, const struct ava_spawn *s,
				const struct session_id *session)
{
	bool own = !s->session || !*s->session;

	return (struct op_spawn){
		.role = s->role,
		.task = s->task,
		.context = s->context,
		.model = s->model,
		.preset = s->preset,
		.cwd = s->cwd,
		.session_id = own ? session->text : s->session,
		.request_id = s->request_id,
		.user_id = e->user_id,
		.origin = "libava",
		.timeout_ms = s->timeout_ms ? s->timeout_ms : AVA_DEFAULT,
		.max_cost_microusd = cost_of(s->max_cost_microusd),
		.max_tokens = s->max_tokens ? s->max_tokens : AVA_DEFAULT,
		.max_iterations = s->max_iterations ? s->max_iterations : AVA_DEFAULT,
		.extended_thinking = s->extended_thinking != 0,
		.tools = s->tools,
		.ntools = s->ntools,
		.grants = s->grants,
		.ngrants = s->ngrants,
		.ask_before = s->ask_before,
		.nask_before = s->nask_before,
		.confirm = s->confirm,
		.on_limit = s->on_limit,
	};
}

static int schema_of(const struct ava_spawn *s, json_t **out, struct ava_error *err)
{
	if (!s->output_schema)
		return 0;
	*out = json_parse(s->output_schema, strlen(s->output_schema), err);
	return *out ? 0 : err_wrap(err, AVA_EINVAL, "output_schema");
}

/* ---- proposals */

static void proposal_done(int rv, const struct op_proposal *p, const struct ava_error *err,
			  void *user)
{
	struct pending *w = user;

	if (rv == 0)
		fill_proposal(p, w->out, w->to);
	answered(w, rv, err);
}

int embedded_propose(struct backend *b, const struct ava_spawn *s, struct answer *out,
		     struct ava_proposal *p, struct ava_error *err)
{
	struct embedded *e = embedded_of(b);
	struct pending w = {.out = out, .to = p, .err = err};
	struct session_id session = id_session();
	struct op_spawn o = spawn_of(e, s, &session);
	json_t *schema = NULL;
	int rv = schema_of(s, &schema, err);

	if (rv != 0)
		return rv;
	o.output_schema = schema;
	ops_propose(e->core, &o, proposal_done, &w);
	json_decref(schema);
	return finish(e, &w);
}

int embedded_confirm(struct backend *b, const char *id, const char *words, struct answer *out,
		     struct ava_proposal *p, struct ava_error *err)
{
	struct embedded *e = embedded_of(b);
	struct pending w = {.out = out, .to = p, .err = err};
	const struct change none = CHANGE_NONE;

	ops_confirm(e->core, id, words, &none, e->user_id, proposal_done, &w);
	return finish(e, &w);
}

int embedded_reject(struct backend *b, const char *id, const char *reason, struct answer *out,
		    struct ava_proposal *p, struct ava_error *err)
{
	struct embedded *e = embedded_of(b);
	struct pending w = {.out = out, .to = p, .err = err};

	ops_reject(e->core, id, reason, e->user_id, proposal_done, &w);
	return finish(e, &w);
}

static void add_proposal(const struct op_proposal *p, void *user)
{
	struct ava_proposal row;

	fill_proposal(p, user, &row);
	answer_row(user, &row, sizeof(row));
}

int embedded_proposals(struct backend *b, bool all, struct answer *out, struct ava_error *err)
{
	ops_proposals(embedded_of(b)->core, all, add_proposal, out);
	return 0;
}

/* ---- runs */

static void spawn_done(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	struct pending *w = user;
	struct ava_run_id *id = w->to;

	if (rv == 0)
		memcpy(id->text, s->id, MIN(strlen(s->id) + 1, sizeof(id->text)));
	answered(w, rv, err);
}

int embedded_spawn(struct backend *b, const struct ava_spawn *s, struct ava_run_id *id,
		   struct ava_error *err)
{
	struct embedded *e = embedded_of(b);
	struct pending w = {.to = id, .err = err};
	struct session_id session = id_session();
	struct op_spawn o = spawn_of(e, s, &session);
	json_t *schema = NULL;
	int rv = schema_of(s, &schema, err);

	if (rv != 0)
		return rv;
	o.output_schema = schema;
	ops_spawn(e->core, &o, spawn_done, &w);
	json_decref(schema);
	return finish(e, &w);
}

static void one_run(const struct op_status *s, void *user)
{
	struct pending *w = user;

	fill_run(s, w->out, w->to);
}

int embedded_status(struct backend *b, const char *run, struct answer *out, struct ava_run *r,
		    struct ava_error *err)
{
	struct pending w = {.out = out, .to = r};

	return ops_status(embedded_of(b)->core, run, one_run, &w, err);
}

static void add_run(const struct op_status *s, void *user)
{
	struct ava_run row;

	fill_run(s, user, &row);
	answer_row(user, &row, sizeof(row));
}

int embedded_runs(struct backend *b, bool all, size_t limit, struct answer *out,
		  struct ava_error *err)
{
	int rv = ops_list(embedded_of(b)->core, all, limit, add_run, out);

	return rv >= 0 ? 0 : err_set(err, rv, "%s", ava_strerror(rv));
}

/* ---- ended runs */

int embedded_resume(struct backend *b, const char *run, const struct ava_resume *r,
		    struct answer *out, struct ava_proposal *p, struct ava_error *err)
{
	struct embedded *e = embedded_of(b);
	struct pending w = {.out = out, .to = p, .err = err};
	struct session_id session = id_session();
	const struct ava_spawn as = {
		.model = r->model,
		.session = r->session,
		.request_id = r->request_id,
		.confirm = r->confirm,
		.timeout_ms = r->timeout_ms,
		.max_cost_microusd = r->max_cost_microusd,
		.max_tokens = r->max_tokens,
		.max_iterations = r->max_iterations,
	};
	struct op_spawn o = spawn_of(e, &as, &session);

	o.resume = run;
	o.resume_call = r->from;
	o.resume_at = r->from != 0 ? NULL : r->checkpoint;
	ops_propose(e->core, &o, proposal_done, &w);
	return finish(e, &w);
}

static void replay_done(int rv, const char *run, const struct replay_report *report,
			const struct ava_error *err, void *user)
{
	struct pending *w = user;
	struct ava_replay *to = w->to;

	for (unsigned i = 0; rv == 0 && i < MIN(report->ndiffs, (unsigned)REPLAY_DIFFS_MAX); i++) {
		const struct replay_diff *d = &report->diffs[i];
		struct ava_difference row = {
			.lsn = d->lsn,
			.seq = d->seq,
			.type = answer_str(w->out, d->type),
			.call = answer_str(w->out, d->call),
			.what = answer_str(w->out, d->what),
			.byte = d->byte,
			.recorded = answer_str(w->out, d->recorded),
			.replayed = answer_str(w->out, d->replayed),
		};

		answer_row(w->out, &row, sizeof(row));
	}
	if (rv == 0)
		*to = (struct ava_replay){
			.identical = report->ndiffs == 0,
			.complete = report->complete,
			.reason = answer_str(w->out, report->reason),
			.events = report->events,
			.calls = report->turns,
			.found = report->ndiffs,
		};
	answered(w, rv, err);
}

int embedded_replay(struct backend *b, const char *run, bool lenient, struct answer *out,
		    struct ava_replay *r, struct ava_error *err)
{
	struct embedded *e = embedded_of(b);
	struct pending w = {.out = out, .to = r, .err = err};

	ops_replay(e->core, run, lenient, replay_done, &w);
	return finish(e, &w);
}

/* ---- groups */

int embedded_propose_group(struct backend *b, const struct ava_spawn_group *g, struct answer *out,
			   struct ava_proposal *p, struct ava_error *err)
{
	struct embedded *e = embedded_of(b);
	struct pending w = {.out = out, .to = p, .err = err};
	struct session_id session = id_session();
	struct op_spawn *runs = calloc(g->nruns, sizeof(*runs));
	struct op_group o = {
		.runs = runs,
		.nruns = g->nruns,
		.max_cost_microusd = cost_of(g->max_cost_microusd),
		.timeout_ms = g->timeout_ms ? g->timeout_ms : AVA_DEFAULT,
		.chain = g->chain != 0,
		.share = g->share != 0,
		.session_id = g->session && *g->session ? g->session : session.text,
		.request_id = g->request_id,
		.user_id = e->user_id,
		.origin = "libava",
		.cwd = g->cwd,
		.confirm = g->confirm,
	};
	int rv = 0;

	if (!runs)
		return err_set(err, AVA_ENOMEM, "out of memory");
	for (size_t i = 0; i < g->nruns && rv == 0; i++) {
		json_t *schema = NULL;

		runs[i] = spawn_of(e, &g->runs[i], &session);
		rv = schema_of(&g->runs[i], &schema, err);
		runs[i].output_schema = schema;
	}
	if (rv == 0)
		ops_propose_group(e->core, &o, proposal_done, &w); /* reads it during the call */
	for (size_t i = 0; i < g->nruns; i++)
		json_decref((json_t *)runs[i].output_schema);
	free(runs);
	return rv == 0 ? finish(e, &w) : rv;
}

int embedded_group(struct backend *b, const char *id, struct answer *out, struct ava_group *g,
		   struct ava_error *err)
{
	struct op_group_status s;
	int rv = ops_group(embedded_of(b)->core, id, &s, add_run, out, err);

	if (rv == 0)
		*g = (struct ava_group){
			.running = s.running,
			.chain = s.chain,
			.size = s.size,
			.ended = s.ended,
			.succeeded = s.succeeded,
			.tokens = s.tokens,
			.cost_microusd = s.cost_microusd,
		};
	return rv;
}

static void result_done(int rv, const char *json, size_t len, const struct ava_error *err,
			void *user)
{
	struct pending *w = user;

	if (rv == 0) {
		w->json = answer_strn(w->out, json, len);
		w->len = len;
	}
	answered(w, rv, err);
}

int embedded_result(struct backend *b, const char *run, struct answer *out, const char **json,
		    size_t *len, struct ava_error *err)
{
	struct embedded *e = embedded_of(b);
	struct pending w = {.out = out, .err = err};
	int rv;

	ops_result(e->core, run, 0, result_done, &w);
	rv = finish(e, &w);
	if (rv == AVA_ETIMEOUT)
		return err_set(err, rv, "%s has not ended", run);
	*json = w.json;
	*len = w.len;
	return rv;
}

static void cancel_done(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	answered(user, rv, err);
}

int embedded_cancel(struct backend *b, const char *run, struct ava_error *err)
{
	struct embedded *e = embedded_of(b);
	struct pending w = {.err = err};

	ops_cancel(e->core, run, e->user_id, cancel_done, &w);
	return finish(e, &w);
}

static void steer_done(int rv, const struct op_steered *s, const struct ava_error *err, void *user)
{
	answered(user, rv, err);
}

int embedded_steer(struct backend *b, const char *run, const char *request, const char *text,
		   const char *call, struct ava_error *err)
{
	struct embedded *e = embedded_of(b);
	struct pending w = {.err = err};
	struct op_steer s = {
		.run = run,
		.text = text,
		.call_id = call,
		.request_id = request,
		.by = e->user_id,
	};

	ops_steer(e->core, &s, steer_done, &w);
	return finish(e, &w);
}

static void checkpoint_done(int rv, const struct op_checkpoint *k, const struct ava_error *err,
			    void *user)
{
	answered(user, rv, err);
}

int embedded_checkpoint(struct backend *b, const char *run, const char *name, struct ava_error *err)
{
	struct embedded *e = embedded_of(b);
	struct pending w = {.err = err};

	ops_checkpoint(e->core, run, name, e->user_id, checkpoint_done, &w);
	return finish(e, &w);
}

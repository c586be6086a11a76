/* A run is made with the events of its spawn in a draft that the caller commits; its machine
 * starts only when that is durable, so that a crash cannot lose an accepted run. When the end is
 * durable, its listeners are told. What can fail: memory, a queue that is full, a working folder
 * that is gone; nothing of the run stays then. */
#include "subagent/supervisor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "subagent/doing.h"
#include "subagent/run.h"
#include "subagent/person.h"
#include "subagent/record.h"
#include "subagent/resume.h"
#include "subagent/learn.h"
#include "subagent/tally.h"
#include "subagent/wire.h"
#include "agent/tool.h"
#include "tool/pages.h"

int supervisor_init(struct supervisor *s, struct os_loop *loop, struct logbook *book,
		    const struct settings *settings)
{
	*s = (struct supervisor){.loop = loop, .book = book, .settings = settings};
	list_init(&s->live);
	list_init(&s->waiting);
	list_init(&s->ended);
	strmap_init(&s->by_id);
	strmap_init(&s->groups);
	money_init(s);
	s->lines = wire_lines_new(loop);
	s->learner = learner_new(loop, book->root_fd);
	s->tally = calloc(1, sizeof(*s->tally));
	return s->lines && s->learner && s->tally ? 0 : AVA_ENOMEM;
}

void supervisor_fini(struct supervisor *s)
{
	wire_lines_free(s->lines);
	learner_free(s->learner);
	free(s->tally);
	pages_free(s->pages);
	free(s->keep_out[0]);
	free(s->keep_out[1]);
	groups_fini(s);
	strmap_fini(&s->by_id);
	nameset_fini(&s->names);
}

/* ---- stopping */

static void delist(struct run *r)
{
	if (list_empty(&r->node))
		return;
	strmap_del(&r->sup->by_id, r->id.text);
	list_del(&r->node);
	r->sup->nlive--;
}

static void tell_waits(struct run *r)
{
	while (!list_empty(&r->end.waits)) {
		struct run_wait *w = LIST_FIRST(&r->end.waits, struct run_wait, node);

		list_del(&w->node);
		w->ended(w, r);
	}
}

void run_quiesce(struct run *r)
{
	infer_stop(&r->agent);
	if (!r->end.abandoned) {
		infer_interrupted(r);
		if (!r->agent.ending) /* spares the next start a call */
			commit_flush(r, JOURNAL_RIDE, NULL);
	}
	toolrun_stop(&r->agent);
	r->end.abandoned = true;
}

void supervisor_quiesce(struct supervisor *s)
{
	s->closing = true;
	learner_stop(s->learner);
	LIST_EACH (&s->live, n, tmp)
		run_quiesce(LIST_ENTRY(n, struct run, node));
}

bool supervisor_written(const struct supervisor *s)
{
	LIST_EACH (&s->live, n, tmp) {
		if (!outbox_empty(&LIST_ENTRY(n, struct run, node)->rec.outbox))
			return false;
	}
	return true;
}

void supervisor_close(struct supervisor *s)
{
	supervisor_quiesce(s);
	while (!list_empty(&s->live)) {
		struct run *r = LIST_FIRST(&s->live, struct run, node);

		/* Pool threads still point at the run; they see `stop` and end. */
		while (r->busy > 0)
			os_loop_step(s->loop, 50);
		delist(r);
		tell_waits(r);
		supervisor_free_run(r);
	}
	while (!list_empty(&s->ended)) {
		struct run *r = LIST_FIRST(&s->ended, struct run, node);

		if (r->busy > 0) {
			os_loop_step(s->loop, 50); /* may free the run */
			continue;
		}
		os_defer_cancel(s->loop, &r->reap);
		supervisor_free_run(r);
	}
}

void supervisor_part(struct run *r)
{
	if (!list_empty(&r->queue) || r->agent.have_slot)
		slots_drop(r);
	delist(r);
	tell_waits(r);
	supervisor_free_run(r);
}

/* ---- parts of any run, also of a conversation (ava/talk.c) */

static void supervisor_wake(struct os_task *t)
{
	struct run *r = CONTAINER_OF(t, struct run, wake);

	if (r->end.abandoned) { /* no memory for the record, or the runtime stops */
		infer_stop(&r->agent);
		toolrun_stop(&r->agent);
		money_settle(r); /* frees held money, which others may wait for */
	} else if (!r->end.done) {
		agent_run(&r->agent);
	}
}

static void run_timer(void *user)
{
	park_look(user);
	run_wake(user);
}

int run_init(struct run *r, struct supervisor *sup, struct run_spec *spec)
{
	r->sup = sup;
	r->unused = supervisor_free_run;
	r->tools.env = (struct tool_env){.loop = sup->loop,
					 .cwd_fd = -1,
					 .cwd = spec->cwd,
					 .keep_out = (const char *const *)sup->keep_out,
					 .grants = spec->grants,
					 .ngrants = spec->ngrants,
					 .skills = spec->skills,
					 .nskills = spec->nskills,
					 .time_ms = TOOL_TIME_MS,
					 .redact = sup->book->redact,
					 .root = sup->keep_out[0],
					 .memory = sup->memory,
					 .user_id = spec->user_id,
					 .state_read = toolrun_state_read,
					 .activity = toolrun_activity,
					 .layers = toolrun_layers,
					 .unboxed = sup->settings->sandbox_required == 0,
					 .disk_free_min_mb = sup->settings->disk_free_min_mb,
					 .fetch_result = toolrun_fetch,
					 .pages = sup->pages,
					 .mcp = sup->mcp,
					 .told = toolrun_told,
					 .user = r};
	list_init(&r->node);
	list_init(&r->queue);
	list_init(&r->tools.at_work);
	list_init(&r->tools.held);
	list_init(&r->end.waits);
	list_init(&r->pause.saying);
	os_task_init(&r->wake, supervisor_wake);
	outbox_init(&r->rec.outbox, sup->book);
	money_begin(r, spec);
	r->call.cut.cost_microusd = -1; /* a call that a crash cut is charged by its price */
	buf_init(&r->tools.artifacts, 1u << 20);
	r->timer = sup->loop ? os_timer_new(sup->loop, run_timer, r) : NULL;
	if (sup->loop && !r->timer) {
		run_fini(r);
		return AVA_ENOMEM;
	}
	for (unsigned i = 0; i < spec->agent.ntools; i++)
		r->tools.env.commands |= (spec->tools[i]->flags & TOOL_PROJECT) != 0;
	r->spec = spec;
	return 0;
}

void run_fini(struct run *r)
{
	list_del(&r->node);
	os_defer_cancel(r->sup->loop, &r->wake);
	money_settle(r);
	group_leave(r);
	agent_fini(&r->agent);
	person_free(r);
	pause_free(r);
	run_checkpoints_free(r);
	free(r->proof);
	if (r->end.free)
		r->end.free(r);
	draft_free(r->rec.draft);
	outbox_fini(&r->rec.outbox);
	os_timer_free(r->timer);
	os_timer_free(r->call.timer);
	if (r->tools.env.cwd_fd >= 0)
		close(r->tools.env.cwd_fd);
	free(r->tools.calls_before);
	free(r->tools.copy);
	free(r->session_file);
	free(r->end.by);
	free(r->call.why);
	free(r->call.trouble);
	free(r->park.model);
	buf_fini(&r->tools.artifacts);
	spec_free(r->spec);
}

/* ---- making and freeing subagents */

/* NULL: out of memory; `spec` is still the caller's. */
static struct run *run_new(struct supervisor *s, struct run_spec *spec, struct ava_error *err)
{
	struct run *r = calloc(1, sizeof(*r));

	if (r && run_init(r, s, spec) == 0) {
		if (s->session_file && spec->session_id[0])
			r->session_file = s->session_file(spec->session_id, s->session_user);
		return r;
	}
	free(r);
	err_set(err, AVA_ENOMEM, "out of memory");
	return NULL;
}

void supervisor_free_run(struct run *r)
{
	if (r->sup->pages)
		pages_forget(r->sup->pages, &r->tools.env);
	run_fini(r);
	free(r);
}

/* Ids that others give as well, unseen, need more digits: of 14 a million make no two alike. */
#define SHARED_ID 16u

static bool name_taken(const char *name, void *user)
{
	struct supervisor *s = user;

	return (s->shared && strncmp(name, "S-", 2) == 0 && strlen(name) < SHARED_ID) ||
	       nameset_has(&s->names, name) != 0;
}

static int enlist(struct supervisor *s, struct run *r)
{
	if (nameset_add(&s->names, r->id.text) != 0 || nameset_add(&s->names, r->trace.text) != 0 ||
	    strmap_put(&s->by_id, r->id.text, r) != 0)
		return AVA_ENOMEM;
	list_add(&s->live, &r->node);
	s->nlive++;
	return 0;
}

static int write_spawn(struct run *r, struct draft *d, struct ava_error *err)
{
	char path[LOGBOOK_PATH];
	unsigned results = 0;
	struct buf *b;
	int rv = AVA_ENOMEM;

	run_messages_path(r, path);
	b = draft_part(d, DRAFT_MESSAGES, path);
	if (b && r->spec->resumed_from[0]) {
		rv = resume_messages(r, b, &results, err);
	} else if (b && after_none(&r->spec->group.after)) {
		rv = spec_messages(r->spec, b, &r->rec.request_bytes, &r->rec.prefix);
	} else if (b) {
		rv = spec_line(r->spec, b, &r->rec.request_bytes, &r->rec.prefix);
		r->rec.wordless = true;
	}
	if (rv == 0)
		rv = draft_heads_of(d, b, err);
	if (rv != 0)
		return rv;
	r->rec.message_lines = run_checkpoint_lines(r, d);
	record_spawn(d, r);
	if (results > 0) { /* results of the resumed run must not count as this run's */
		if (toolrun_count(r, results) != 0)
			return AVA_ENOMEM;
		record_position(d, r);
	}
	record_session_start(d, r);
	record_catalog_spawn(d, r);
	return d->failed ? AVA_ENOMEM : 0;
}

int supervisor_spawn(struct supervisor *s, struct run_spec *spec, const char *proposal,
		     struct draft *d, struct run **out, struct ava_error *err)
{
	struct stat st;
	struct run *r;
	int rv;

	if (spec->cwd[0] && (stat(spec->cwd, &st) != 0 || !S_ISDIR(st.st_mode)))
		return err_set(
			err, AVA_ENOENT,
			"the working folder %s is not there any more: start from one that is",
			spec->cwd);
	if (s->nwaiting >= (uint64_t)s->settings->runs_queue_max)
		return err_set(
			err, AVA_EBUSY,
			"%u runs wait for a slot already: let some end, or raise runs.queue_max "
			"(AVA_RUNS_QUEUE_MAX)",
			s->nwaiting);
	r = run_new(s, spec, err);
	if (!r)
		return err ? err->code : AVA_ENOMEM;
	id_short('S', name_taken, s, r->id.text);
	id_trace_name(name_taken, s, &r->trace);
	snprintf(r->proposal, sizeof(r->proposal), "%s", proposal);
	r->spawned_wall_ms = clock_wall_ms();
	run_activity(r, "Starting");
	agent_init(&r->agent, &world_io, &spec->agent, r, 0);
	rv = group_enter(r) != 0 || enlist(s, r) != 0 ? AVA_ENOMEM : write_spawn(r, d, err);
	if (rv != 0) {
		r->spec = NULL;
		delist(r);
		supervisor_free_run(r);
		return rv == AVA_ENOMEM ? err_set(err, rv, "out of memory") : rv;
	}
	*out = r;
	return 0;
}

void supervisor_start(struct run *r)
{
	r->sup->total += !r->durable; /* a run of before is among them */
	r->durable = true;
	spec_forget_config(r->spec);
	run_activity(r, "Waiting for a slot");
	if (r->rec.wordless && r->group && !after_none(&r->spec->group.after))
		blocked_waits(r);
	agent_init(&r->agent, &world_io, &r->spec->agent, r, r->rec.request_bytes);
	group_run_starts(r);
	if (r->cancel_wanted)
		agent_cancel(&r->agent);
	run_wake(r);
}

void supervisor_carry_on(struct run *r)
{
	spec_forget_config(r->spec);
	run_activity(r, "Waiting for a slot");
	run_wake(r);
}

void supervisor_discard(struct run *r)
{
	delist(r);
	tell_waits(r);
	supervisor_free_run(r);
}

int supervisor_adopt(struct supervisor *s, struct run_spec *spec, const char *id, const char *trace,
		     struct run **out, struct ava_error *err)
{
	struct run *r = run_new(s, spec, err);

	if (!r)
		return err ? err->code : AVA_ENOMEM;
	snprintf(r->id.text, sizeof(r->id.text), "%s", id);
	snprintf(r->trace.text, sizeof(r->trace.text), "%s", trace);
	agent_init(&r->agent, &world_io, &spec->agent, r, 0);
	if (group_enter(r) != 0 || enlist(s, r) != 0) {
		r->spec = NULL;
		delist(r);
		supervisor_free_run(r);
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	*out = r;
	return 0;
}

/* ---- ends */

void run_wait(struct run *r, struct run_wait *w)
{
	list_add(&r->end.waits, &w->node);
}

void run_wait_cancel(struct run_wait *w)
{
	list_del(&w->node);
}

void supervisor_ended(struct run *r)
{
	const struct agent_totals *t = &r->agent.at.totals;

	delist(r);
	list_add(&r->sup->ended, &r->node);
	if (r->started_wall_ms)
		quotes_add(&r->sup->quotes, r->spec->role->name, run_elapsed_ms(r));
	spend_add(&r->sup->spend, r->end.wall_ms, clock_wall_ms(), t->cost_microusd,
		  t->input + t->output, t->uncosted_calls);
	tell_waits(r);
}

struct spend supervisor_spend(const struct supervisor *s)
{
	struct spend sum = spend_today(&s->spend, clock_wall_ms());

	LIST_EACH (&s->live, n, tmp) {
		const struct agent_totals *t = &LIST_ENTRY(n, struct run, node)->agent.at.totals;

		sum.microusd += t->cost_microusd;
		sum.tokens += t->input + t->output;
		sum.uncosted += t->uncosted_calls > 0;
		sum.runs += t->calls > 0;
	}
	return sum;
}

struct run *supervisor_find(struct supervisor *s, const char *id)
{
	return strmap_get(&s->by_id, id);
}

void supervisor_cancel(struct run *r, const char *by, const char *origin)
{
	if (!r->end.by) {
		r->end.by = by ? strdup(by) : NULL;
		snprintf(r->end.origin, sizeof(r->end.origin), "%s", origin ? origin : "");
	}
	if (!r->durable) {
		r->cancel_wanted = true;
		return;
	}
	agent_cancel(&r->agent);
	run_wake(r);
}

/* ---- shown */

void supervisor_status(struct run *r, struct op_status *out)
{
	const struct agent *a = &r->agent;
	const struct run_spec *s = r->spec;
	const struct agent_limits *l = &s->agent.limits;

	doing_look(r);
	*out = (struct op_status){
		.id = r->id.text,
		.trace_id = r->trace.text,
		.role = s->role->name,
		.task = s->task,
		.model = s->model->id,
		.stop_reason = r->end.done ? a->stop_reason : "",
		.session_id = s->session_id,
		.user_id = s->user_id,
		.origin = s->origin,
		.cwd = s->cwd,
		.group_id = s->group.id,
		.group_index = s->group.id[0] ? s->group.index : 0,
		.order = s->order.id,
		.group_name = s->group.name,
		.after = s->group.after,
		.tags = s->tags,
		.activity = r->activity,
		.paused_until_ms = r->pause.until_ms,
		.last_tool = r->tools.last,
		.status = run_status(r),
		.spawned_ms = r->spawned_wall_ms,
		.started_ms = r->started_wall_ms,
		.ended_ms = r->end.done ? r->end.wall_ms : 0, /* 0 until the end is on disk */
		.last_tool_ms = r->tools.last_wall_ms,
		.tokens = a->at.totals.input + a->at.totals.output,
		.cost_microusd = run_cost(r),
		.estimated = run_estimated(r) > 0,
		.elapsed_ms = run_elapsed_ms(r),
		.iteration = a->at.iteration,
		.limit_time_ms = l->time_ms,
		.limit_cost_microusd = l->cost_microusd,
		.limit_tokens = l->tokens,
		.limit_iterations = l->iterations,
		.rights = (int)s->rights,
		.asks = person_question(r),
	};
	if (r->pause.until_ms > 0) {
		pause_words(r, r->pause.shown, sizeof(r->pause.shown));
		out->activity = r->pause.shown;
	} else if (out->status == AVA_RUNNING)
		doing_progress(r, out->progress, sizeof(out->progress));
}

/* Slots, timers and records. What a turn writes is collected in one draft
 * (results line and the next InferStart go in one commit), handed to the run's
 * outbox, and only what must be waited for has a callback. A failing disk
 * stalls the outbox; the machine just waits. */
#include "subagent/run.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/envelope.h"
#include "agent/limit.h"
#include "agent/position.h"
#include "agent/prompt.h"
#include "agent/tool.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"
#include "provider/messages.h"
#include "subagent/record.h"
#include "tool/job.h"

static struct run *world_run_of(struct agent *a)
{
	return a->world;
}

/* ---- drafts */

struct draft *world_draft(struct run *r)
{
	if (!r->rec.draft)
		r->rec.draft = draft_new(r->rec.outbox.lb);
	if (r->rec.draft && r->rec.unnoted)
		record_restored(r->rec.draft, r);
	return r->rec.draft;
}

void world_flush(struct run *r, enum journal_level level, void (*done)(int rv, void *user))
{
	struct draft *d = r->rec.draft;

	if (!d)
		return;
	if (r->rec.position_due && !r->agent.ending && !r->place)
		record_position(d, r);
	r->rec.position_due = false;
	r->rec.draft = NULL;
	if (r->rec.lost || draft_failed(d)) {
		r->rec.lost = true;
		/* Some of it is lost, so nothing that follows may be written: the
		 * next start ends the run by what stands in its files. */
		draft_free(d);
		r->end.abandoned = true;
		supervisor_out_of_memory(r);
		world_wake(r);
		return;
	}
	r->rec.message_lines += run_checkpoint_lines(r, d);
	outbox_put(&r->rec.outbox, d, level, done, r);
}

struct buf *world_messages(struct run *r)
{
	char path[LOGBOOK_PATH];
	struct draft *d = world_draft(r);

	run_messages_path(r, path);
	return d ? draft_part(d, DRAFT_MESSAGES, path) : NULL;
}

int64_t world_lines(struct run *r, const char *lines, size_t len)
{
	struct buf *b = len > 0 ? world_messages(r) : NULL;

	if (len == 0)
		return 0;
	if (!b)
		return AVA_ENOMEM;
	buf_add(b, lines, len);
	buf_addc(b, '\n');
	messages_hash(&r->rec.prefix, &r->rec.wordless, lines, len);
	r->rec.request_bytes += (int64_t)len + 1;
	return buf_check(b) == 0 ? (int64_t)len + 1 : AVA_ENOMEM;
}

void world_wake(struct run *r)
{
	os_defer(r->sup->loop, &r->wake);
}

/* One line, of whole characters, and only such as a person sees: a model has written in it, and
 * every door shows it. */
void world_activity(struct run *r, const char *text)
{
	struct buf line;
	size_t n = 0;

	while (text[n] >= ' ' && text[n] <= '~')
		n++;
	if (!text[n]) {
		snprintf(r->activity, sizeof(r->activity), "%s", text);
		return;
	}
	buf_init(&line, 4 * strlen(text) + 1);
	(void)utf8_plain(&line, text, strlen(text));
	n = MIN(line.len, sizeof(r->activity) - 1);
	while (n > 0 && n < line.len && ((unsigned char)line.data[n] & 0xc0) == 0x80)
		n--;
	for (size_t i = 0; i < n; i++)
		r->activity[i] = line.data[i] == '\n' || line.data[i] == '\t' ? ' ' : line.data[i];
	r->activity[n] = '\0';
	buf_fini(&line);
}

int world_open_folder(struct run *r, struct ava_error *err)
{
	const char *path = r->tools.env.copy ? r->tools.env.copy : r->spec->cwd;

	if (!r->spec->cwd[0] || r->tools.env.cwd_fd >= 0)
		return 0;
	r->tools.env.cwd_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r->tools.env.cwd_fd < 0)
		return err_set(err, errno == EMFILE || errno == ENFILE ? AVA_EBUSY : AVA_ENOENT,
			       "the working folder %s cannot be opened any more (%s): start from "
			       "one that is there",
			       r->spec->cwd, strerror(errno));
	return 0;
}

/* ---- clock and slots */

static int64_t world_now(struct agent *a)
{
	return clock_mono_ms();
}

static void world_wake_at(struct agent *a, int64_t at_ms)
{
	struct run *r = world_run_of(a);

	if (at_ms == INT64_MAX)
		os_timer_stop(r->timer);
	else
		os_timer_set(r->timer, MAX(at_ms - clock_mono_ms(), 0));
	park_look(r);
}

static void world_slot_want(struct agent *a)
{
	supervisor_slot_want(world_run_of(a));
}

static void world_slot_drop(struct agent *a)
{
	struct run *r = world_run_of(a);

	supervisor_slot_drop(r);
	infer_wait_long(r);
	if (r->tools.env.cwd_fd < 0 || a->ending || r->busy > 0)
		return;
	close(r->tools.env.cwd_fd); /* it may wait for days */
	r->tools.env.cwd_fd = -1;
}

/* ---- records */

static void world_saved(int rv, void *user)
{
	struct run *r = user;

	agent_on_saved(&r->agent);
	world_wake(r);
}

/* Those that are answered and not recorded yet. */
static void save_answers(struct run *r, struct draft *d, const struct turn *t)
{
	for (unsigned i = 0; i < t->ncalls; i++) {
		struct turn_call *c = &t->calls[i];

		if (!c->answered || c->recorded)
			continue;
		record_tool_result(d, r, c);
		c->recorded = true;
	}
}

static int64_t world_save_reply(struct agent *a, const struct turn *t, bool wait)
{
	struct run *r = world_run_of(a);
	struct draft *d = world_draft(r);
	int64_t added;

	money_settle(r);
	if (!d || toolrun_count(r, t->ncalls) != 0)
		return AVA_ENOMEM;
	added = world_lines(r, t->wire, t->wire_len);
	if (added < 0)
		return added;
	record_infer_end(d, r, t);
	record_thinking(d, r, t);
	for (unsigned i = 0; i < t->ncalls; i++)
		record_tool_call(d, r, &t->calls[i]);
	/* What the machine answered itself has its result at once. */
	save_answers(r, d, t);
	r->rec.turn_open = t->ncalls > 0;
	r->rec.notices = 0; /* those are told */
	world_flush(r, wait ? JOURNAL_NOW : JOURNAL_RIDE, wait ? world_saved : NULL);
	return added;
}

/* The line of a turn's results: behind them its notices, then what people said. */
static int64_t results_line(struct run *r, const struct turn *t, const char *const *notices,
			    unsigned nnotices)
{
	const char *all[NOTICE_TURN + PERSON_SAID_MAX];
	struct buf line;
	int64_t added;
	unsigned n;
	int rv;

	assert(nnotices <= NOTICE_TURN);
	for (n = 0; n < nnotices; n++)
		all[n] = notices[n];
	n += person_notices(r, all + n);
	buf_init(&line, 32u << 20);
	rv = r->spec->model->dialect->encode_results(&line, t, all, n);
	added = rv == 0 ? world_lines(r, line.data, line.len) : rv;
	buf_fini(&line);
	return added;
}

static int64_t world_save_results(struct agent *a, struct turn *t, const char *const *notices,
				  unsigned nnotices, unsigned warned)
{
	struct run *r = world_run_of(a);
	struct draft *d = world_draft(r);
	int64_t added = d ? results_line(r, t, notices, nnotices) : AVA_ENOMEM;

	if (added < 0)
		return added;
	save_answers(r, d, t);
	if (warned)
		record_warned(d, r, warned);
	r->rec.turn_open = false;
	r->rec.notices = (uint8_t)warned;
	if (a->steers > 0)
		r->rec.notices |= RECORD_STEERED;
	person_told(r, d);
	if (t->ncalls == 0 && !a->steered)
		r->rec.notices |= a->at.odd_replies > 0 ? RECORD_ODD_REPLY : RECORD_NUDGE;
	r->rec.position_due = true;
	/* No flush: the InferStart that follows goes in the same commit. */
	return added;
}

static void world_reap(struct os_task *task)
{
	world_release(CONTAINER_OF(task, struct run, reap));
}

static void world_done(struct agent *a)
{
	struct run *r = world_run_of(a);

	r->end.done = true;
	supervisor_ended(r);
	os_task_init(&r->reap, world_reap);
	os_defer(r->sup->loop, &r->reap);
}

void world_release(struct run *r)
{
	if (r->busy > 0 || !r->end.done || !outbox_empty(&r->rec.outbox))
		return;
	supervisor_free_run(r);
}

const struct agent_io world_io = {
	.now = world_now,
	.wake_at = world_wake_at,
	.slot_want = world_slot_want,
	.slot_drop = world_slot_drop,
	.infer = infer_start,
	.compact = room_make,
	.infer_stop = infer_stop,
	.save_reply = world_save_reply,
	.tool_start = toolrun_start,
	.tools_stop = toolrun_stop,
	.save_results = world_save_results,
	.ask = person_ask,
	.ask_end = person_ask_end,
	.save_end = ending_start,
	.done = world_done,
	.shared = money_shared,
};

/* ---- What every run has, whoever owns it: the supervisor's subagents and the
 * conversations of ava/talk.c. Making one can fail for want of memory; the
 * rest only looks. */

static void run_wake(struct os_task *t)
{
	struct run *r = CONTAINER_OF(t, struct run, wake);

	if (r->end.abandoned) { /* without memory for its record: nothing more may happen */
		infer_stop(&r->agent);
		toolrun_stop(&r->agent);
		money_settle(r); /* others need not wait for what it held */
	} else if (!r->end.done) {
		agent_run(&r->agent);
	}
}

static void run_timer(void *user)
{
	park_look(user);
	world_wake(user);
}

int run_init(struct run *r, struct supervisor *sup, struct run_spec *spec)
{
	r->sup = sup;
	r->tools.env = (struct tool_env){.loop = sup->loop,
					 .cwd_fd = -1,
					 .cwd = spec->cwd,
					 .keep_out = (const char *const *)sup->keep_out,
					 .grants = spec->grants,
					 .ngrants = spec->ngrants,
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
	os_task_init(&r->wake, run_wake);
	outbox_init(&r->rec.outbox, sup->book);
	money_begin(r);
	r->call.cut.cost_microusd = -1; /* a call that a crash cut is charged by its price */
	buf_init(&r->tools.artifacts, 1u << 20);
	r->timer = os_timer_new(sup->loop, run_timer, r);
	if (!r->timer) {
		run_fini(r);
		return AVA_ENOMEM;
	}
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
	run_checkpoints_free(r);
	ending_free(r);
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

void run_messages_path(const struct run *r, char out[LOGBOOK_PATH])
{
	if (r->place)
		snprintf(out, LOGBOOK_PATH, "%s", r->place->messages);
	else
		logbook_messages_path(r->id.text, out);
}

int run_messages_read(const struct run *r, size_t *from, char **file, size_t *len,
		      struct ava_error *err)
{
	char path[LOGBOOK_PATH];

	run_messages_path(r, path);
	return logbook_read_from(r->rec.outbox.lb->root_fd, path, from, 256u << 20, file, len, err);
}

ssize_t run_messages_cached(const struct run *r, char text[RUN_AT_ONCE_MAX])
{
	char path[LOGBOOK_PATH];

	run_messages_path(r, path);
	return r->rec.request_bytes > RUN_AT_ONCE_MAX / 2
		       ? -1
		       : logbook_read_cached(r->rec.outbox.lb->root_fd, path, text,
					     RUN_AT_ONCE_MAX);
}

void run_artifacts_path(const struct run *r, char out[LOGBOOK_PATH])
{
	if (r->place)
		snprintf(out, LOGBOOK_PATH, "%s", r->place->artifacts);
	else
		snprintf(out, LOGBOOK_PATH, "runs/%s/artifacts", r->id.text);
}

enum ava_status run_status(const struct run *r)
{
	if (r->end.done)
		return r->agent.status;
	if (!r->durable)
		return AVA_STARTING;
	if (r->agent.state == AGENT_WAITING)
		return park_waits(r) ? AVA_PARKED : AVA_WAITING;
	return r->agent.state == AGENT_QUEUED ? AVA_QUEUED : AVA_RUNNING;
}

int64_t run_elapsed_ms(const struct run *r)
{
	if (r->end.wall_ms)
		return r->end.used_ms;
	return r->started_wall_ms ? agent_used_ms(&r->agent, clock_mono_ms()) : 0;
}

int64_t run_cost(const struct run *r)
{
	const struct agent_totals *t = &r->agent.at.totals;

	return t->uncosted_calls && t->cost_microusd == 0 ? -1 : t->cost_microusd;
}

int run_estimated(const struct run *r)
{
	return r->spec->model->dialect->answer ? 0 : r->agent.at.totals.estimated_calls;
}

/* ---- Tools at work. A world_call owns what its tool needs until the tool says
 * done, which it does exactly once, also when the run no longer wants it; the
 * run is kept until then. Output is repaired, redacted and capped on its way
 * in; what the cap leaves out is kept as an artifact of the run. */

struct world_call {
	struct tool_call tool;
	struct list node; /* in run.calls; alone once dropped */
	struct list turn; /* in run.tools.held until it is begun */
	struct run *run;
	unsigned index; /* in the turn */
	bool dropped;   /* tools_stop: the answer is not wanted any more */
	json_t *args;
	char id[16];
};

static void call_free(struct world_call *c)
{
	struct run *r = c->run;

	list_del(&c->node);
	list_del(&c->turn);
	json_decref(c->args);
	buf_fini(&c->tool.out);
	buf_fini(&c->tool.file);
	free(c);
	r->busy--;
	r->tools.running--;
	ending_tools_done(r);
	world_release(r);
}

/* ---- the answer */

static int clean_output(struct world_call *c, struct buf *out)
{
	struct buf repaired, open;
	int rv;

	buf_init(&repaired, TOOL_FULL_MAX * 3);
	buf_init(&open, TOOL_FULL_MAX * 3);
	utf8_repair(&repaired, c->tool.out.data ? c->tool.out.data : "", c->tool.out.len);
	rv = redact_text(c->run->rec.outbox.lb->redact, &open, repaired.data ? repaired.data : "",
			 repaired.len);
	if (rv >= 0 && (c->tool.tool->flags & TOOL_WEB))
		rv = buf_add(out, open.data ? open.data : "", open.len);
	else if (rv >= 0)
		rv = envelope_other(out, open.data ? open.data : "", open.len);
	buf_fini(&repaired);
	buf_fini(&open);
	return rv;
}

/* A file of the run: the whole output beside the cut one in the turn, or what is no text. */
static void keep_artifact(struct run *r, struct turn *t, struct turn_call *tc,
			  const struct buf *full, const char *type)
{
	struct draft *d = world_draft(r);
	char path[RUN_ARTIFACT_PATH];
	struct buf *b;

	run_artifact_path(r, tc->id, type, path);
	b = d ? draft_part(d, DRAFT_PUT, path) : NULL;
	if (!b || buf_add(b, full->data, full->len) != 0)
		return;
	tc->artifact = arena_copy(&t->mem, path, strlen(path));
	buf_addf(&r->tools.artifacts, "%s\"%s\"", r->tools.artifacts.len ? "," : "", path);
}

static void world_answer(struct world_call *c, struct turn *t, struct turn_call *tc)
{
	struct run *r = c->run;
	struct buf full;
	size_t shown;

	buf_init(&full, TOOL_FULL_MAX * 6);
	tc->answered = true;
	tc->ended_ms = clock_mono_ms();
	tc->success = c->tool.success;
	tc->error_class = c->tool.error_class ? c->tool.error_class : "";
	if (clean_output(c, &full) != 0) {
		tc->success = false;
		tc->error_class = "too_big";
		buf_reset(&full);
		buf_adds(&full, "the output was too big to keep; ask for less");
	}
	tc->full_bytes = (int64_t)full.len;
	shown = full.len;
	if (tc->success && c->tool.file_type && c->tool.file.len > 0)
		keep_artifact(r, t, tc, &c->tool.file, c->tool.file_type);
	if (full.len > c->tool.out_bytes) {
		shown = c->tool.out_bytes;
		while (shown > 0 && ((unsigned char)full.data[shown] & 0xc0) == 0x80)
			shown--;
		keep_artifact(r, t, tc, &full, "txt");
		tc->output = arena_fmt(
			&t->mem,
			"%.*s\n(cut: the first %zu of %zu bytes; read_result with call_id "
			"%s shows the rest)",
			(int)shown, full.data, shown, full.len, tc->id);
	} else {
		tc->output = arena_copy(&t->mem, full.data ? full.data : "", full.len);
	}
	if (!tc->output) {
		tc->success = false;
		tc->error_class = "too_big";
		tc->output = "there was no memory for this output; ask for less";
	}
	tc->output_len = strlen(tc->output);
	buf_fini(&full);
}

/* An output that the event shows the beginning of, until its turn's results line is
 * there: who carries the run on shall not have to ask for it again. */
static void keep_whole(struct run *r, const struct turn_call *tc)
{
	struct buf *b = tc->output_len > EVENT_PREVIEW_CHARS ? world_messages(r) : NULL;
	struct jw w;

	if (!b)
		return;
	spec_line_begin(&w, b, "mark");
	jw_str(&w, "kept", tc->id);
	jw_strn(&w, "output", tc->output, tc->output_len);
	spec_line_end(&w);
}

static void world_count(struct run *r, const struct turn_call *tc)
{
	if (!tc->success)
		return;
	r->tools.bytes_read += tc->full_bytes;
	for (unsigned i = 0; i < r->spec->agent.ntools; i++)
		if (r->spec->tools[i] == tc->tool)
			r->tools.counts[i]++;
}

static void world_go_on(struct run *r);

static void call_done(struct tool_call *tool)
{
	struct world_call *c = tool->user;
	struct run *r = c->run;
	struct turn *t = r->agent.turn;

	if (!c->dropped) {
		struct turn_call *tc = &t->calls[c->index];
		struct draft *d;

		world_answer(c, t, tc);
		world_count(r, tc);
		d = world_draft(r);
		if (d) {
			record_tool_result(d, r, tc);
			tc->recorded = true;
		}
		/* The last one goes in the commit of the results line that follows. */
		if (d && r->agent.answered + 1 < t->ncalls) {
			keep_whole(r, tc);
			world_flush(r, JOURNAL_RIDE, NULL);
		}
		agent_on_tool(&r->agent, c->index);
		world_wake(r);
	}
	if (r->tools.turn == c) {
		r->tools.turn = NULL;
		world_go_on(r);
	}
	call_free(c);
}

/* ---- start and stop */

static void world_show_line(struct run *r, const char *text, size_t len)
{
	struct draft *d = world_draft(r);
	struct buf whole, clean;

	buf_init(&whole, 16384);
	buf_init(&clean, 16384);
	if (utf8_repair(&whole, text, len) == 0 && whole.len &&
	    redact_text(r->rec.outbox.lb->redact, &clean, whole.data, whole.len) >= 0) {
		clean.data[utf8_prefix(clean.data, clean.len, 120)] = 0; /* whole secrets went */
		world_activity(r, clean.data);
		if (d && !r->place) /* its ToolCall says as much */
			record_activity(d, r, r->activity);
		world_flush(r, JOURNAL_RIDE, NULL); /* watchers see it while the tool works */
	}
	buf_fini(&whole);
	buf_fini(&clean);
}

static void world_show_activity(struct run *r, const struct tool *tool, const json_t *args)
{
	struct buf text;

	buf_init(&text, 65536);
	if (tool->activity)
		tool->activity(args, &text);
	else
		buf_addf(&text, "Using %s", tool->name);
	if (!tool->activity && json_object_size(args) > 0) {
		buf_addc(&text, ' ');
		(void)json_dump(&text, args); /* its beginning is shown */
	}
	world_show_line(r, text.data ? text.data : "", text.len);
	buf_fini(&text);
}

void toolrun_activity(struct tool_env *env, const char *line)
{
	struct run *r = env->user;

	if (!r->agent.ending)
		world_show_line(r, line, strlen(line));
}

/* In the commit of the result that has it. */
void toolrun_state_read(struct tool_env *env, const char *key)
{
	struct run *r = env->user;
	struct draft *d = r->agent.ending ? NULL : world_draft(r);

	if (d)
		record_state_read(d, r, key);
}

static void world_call_begin(struct world_call *c)
{
	struct run *r = c->run;

	if (c->tool.tool->flags & TOOL_FILES) /* it may be gone since a wait: the tool says so */
		(void)world_open_folder(r, NULL);
	snprintf(r->tools.env.workspace, sizeof(r->tools.env.workspace), RUN_WORK, r->id.text);
	r->tools.env.order = (uint64_t)r->spawned_wall_ms;
	world_show_activity(r, c->tool.tool, c->args);
	c->tool.tool->start(&c->tool);
}

/* ---- those that see the copy of the project wait for it, and come in their order */

static void copied(struct run *r, const struct ava_error *err)
{
	while (err->code != 0 && err->code != AVA_ECANCELED && !list_empty(&r->tools.held)) {
		struct world_call *c = LIST_FIRST(&r->tools.held, struct world_call, turn);

		list_del(&c->turn);
		c->tool.error_class = job_error_class(err->code);
		buf_adds(&c->tool.out, err->text);
		call_done(&c->tool);
	}
	world_go_on(r);
}

/* A tool may be done at once: that does not begin the next one from within. */
static void world_go_on(struct run *r)
{
	if (r->tools.going)
		return;
	r->tools.going = true;
	while (!r->tools.turn && !list_empty(&r->tools.held)) {
		struct world_call *c = LIST_FIRST(&r->tools.held, struct world_call, turn);

		if (!r->tools.env.copy) {
			world_activity(r, "Copying the project");
			copying_make(r, copied);
			break;
		}
		list_del(&c->turn);
		r->tools.turn = c;
		world_call_begin(c);
	}
	r->tools.going = false;
}

/* Written once, and again when they are others. */
void toolrun_layers(struct tool_env *env, const char *json)
{
	struct run *r = env->user;
	struct draft *d;
	char hash[HASH_HEX_LEN + 1];

	hash_sha256_hex(json, strlen(json), hash);
	if (r->agent.ending || memcmp(r->tools.layers, hash, sizeof(r->tools.layers)) == 0)
		return;
	memcpy(r->tools.layers, hash, sizeof(r->tools.layers));
	d = world_draft(r);
	if (d)
		record_sandbox(d, r, json);
}

int toolrun_start(struct agent *a, unsigned index)
{
	struct run *r = a->world;
	struct turn_call *tc = &a->turn->calls[index];
	struct world_call *c = calloc(1, sizeof(*c));

	if (!c)
		return AVA_ENOMEM;
	c->args = json_parse(tc->args, tc->args_len, NULL);
	if (!c->args) {
		free(c);
		return AVA_EINVAL;
	}
	memcpy(c->id, tc->id, sizeof(c->id));
	c->run = r;
	c->index = index;
	c->tool = (struct tool_call){
		.tool = tc->tool,
		.id = c->id,
		.args = c->args,
		.env = &r->tools.env,
		.out_bytes = limit_result_bytes(a, a->turn->ncalls, TOOL_OUTPUT_MAX),
		.done = call_done,
		.user = c,
		.error_class = ""};
	buf_init(&c->tool.out, TOOL_FULL_MAX);
	buf_init(&c->tool.file, TOOL_FULL_MAX);
	list_add(&r->tools.at_work, &c->node);
	r->busy++;
	r->tools.running++;
	tc->started_ms = clock_mono_ms();
	list_init(&c->turn);
	if (copying_wanted(r) && (tc->tool->flags & (TOOL_FILES | TOOL_PROJECT))) {
		list_add(&r->tools.held, &c->turn);
		world_go_on(r);
	} else {
		world_call_begin(c);
	}
	return 0;
}

void toolrun_names(const struct run *r, struct jw *w)
{
	LIST_EACH (&r->tools.at_work, n, tmp)
		jw_str(w, NULL, LIST_ENTRY(n, struct world_call, node)->tool.tool->name);
}

void toolrun_stop(struct agent *a)
{
	struct run *r = a->world;

	copying_stop(r);
	LIST_EACH (&r->tools.at_work, n, tmp) {
		struct world_call *c = LIST_ENTRY(n, struct world_call, node);

		c->dropped = true;
		atomic_store(&c->tool.stop, true);
		list_del(n); /* the turn may go; the call stays until its tool is done */
		if (!list_empty(&c->turn))
			call_free(c); /* it was not begun */
		else if (c->tool.tool->stop)
			c->tool.tool->stop(&c->tool); /* may be done, and gone, at once */
	}
}

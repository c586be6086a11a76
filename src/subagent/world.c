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

#include "agent/prompt.h"
#include "base/clock.h"
#include "base/error.h"
#include "codec/redact.h"
#include "subagent/record.h"

static struct run *run_of(struct agent *a)
{
	return a->world;
}

/* ---- drafts */

struct draft *world_draft(struct run *r)
{
	if (!r->rec.draft)
		r->rec.draft = draft_new(r->rec.outbox.lb);
	if (r->rec.draft && r->rec.unnoted)
		restore_note(r, r->rec.draft);
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
	if (draft_failed(d)) {
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

int64_t world_lines(struct run *r, const char *lines, size_t len)
{
	char path[LOGBOOK_PATH];
	struct draft *d = world_draft(r);
	struct buf *b;
	const char *end = lines + len;

	if (len == 0)
		return 0;
	run_messages_path(r, path);
	b = d ? draft_part(d, DRAFT_MESSAGES, path) : NULL;
	if (!b)
		return AVA_ENOMEM;
	buf_add(b, lines, len);
	buf_addc(b, '\n');
	for (const char *at = lines; at < end;) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((nl ? nl : end) - at);

		if (!r->rec.wordless)
			hash_sha256_add(&r->rec.prefix, ",", 1);
		r->rec.wordless = false;
		hash_sha256_add(&r->rec.prefix, at, n);
		at += n + 1;
	}
	r->rec.request_bytes += (int64_t)len + 1;
	return buf_check(b) == 0 ? (int64_t)len + 1 : AVA_ENOMEM;
}

void world_wake(struct run *r)
{
	os_defer(r->sup->loop, &r->wake);
}

void world_activity(struct run *r, const char *text)
{
	snprintf(r->activity, sizeof(r->activity), "%s", text);
}

int world_open_folder(struct run *r, struct ava_error *err)
{
	if (!r->spec->cwd[0] || r->tools.env.cwd_fd >= 0)
		return 0;
	r->tools.env.cwd_fd = open(r->spec->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
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
	struct run *r = run_of(a);

	if (at_ms == INT64_MAX)
		os_timer_stop(r->timer);
	else
		os_timer_set(r->timer, MAX(at_ms - clock_mono_ms(), 0));
}

static void world_slot_want(struct agent *a)
{
	supervisor_slot_want(run_of(a));
}

static void world_slot_drop(struct agent *a)
{
	struct run *r = run_of(a);

	supervisor_slot_drop(r);
	infer_wait_long(r);
	if (r->tools.env.cwd_fd < 0 || a->ending || r->busy > 0)
		return;
	close(r->tools.env.cwd_fd); /* it may wait for days */
	r->tools.env.cwd_fd = -1;
}

/* ---- records */

static void saved(int rv, void *user)
{
	struct run *r = user;

	agent_on_saved(&r->agent);
	world_wake(r);
}

static int64_t world_save_reply(struct agent *a, const struct turn *t, bool wait)
{
	struct run *r = run_of(a);
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
	for (unsigned i = 0; i < t->ncalls; i++) {
		if (t->calls[i].answered) {
			record_tool_result(d, r, &t->calls[i]);
			t->calls[i].recorded = true;
		}
	}
	r->rec.turn_open = t->ncalls > 0;
	r->rec.notices = 0; /* those are told */
	world_flush(r, wait ? JOURNAL_NOW : JOURNAL_RIDE, wait ? saved : NULL);
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
	struct run *r = run_of(a);
	struct draft *d = world_draft(r);
	int64_t added = d ? results_line(r, t, notices, nnotices) : AVA_ENOMEM;

	if (added < 0)
		return added;
	for (unsigned i = 0; i < t->ncalls; i++) {
		if (!t->calls[i].recorded) {
			record_tool_result(d, r, &t->calls[i]);
			t->calls[i].recorded = true;
		}
	}
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

static void reap(struct os_task *task)
{
	world_release(CONTAINER_OF(task, struct run, reap));
}

static void world_done(struct agent *a)
{
	struct run *r = run_of(a);

	r->end.done = true;
	supervisor_ended(r);
	os_task_init(&r->reap, reap);
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

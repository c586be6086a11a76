/* How a run ends, once. What is still open is closed (an InferEnd for a call
 * that was cut, a result for each tool call), then the claims of the result
 * are checked against the conversation on a pool thread, and everything of the
 * end goes in one commit: Exhausted, Error, result.json, SubagentComplete in
 * both logs, the catalog's end row. A crash before that commit leaves a run
 * that did not end; after it, one that did. There is nothing between. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/position.h"
#include "base/clock.h"
#include "base/sys.h"
#include "codec/json.h"
#include "codec/jsonl.h"
#include "codec/redact.h"
#include "event/event.h"
#include "provider/messages.h"
#include "subagent/evidence.h"
#include "subagent/run.h"
#include "subagent/record.h"

#define LOG_MAX       ((size_t)256 << 20)
#define AT_ONCE_MAX   (64u << 10)
#define TOOLS_WAIT_MS 5000 /* a tool that hangs in the disk must not hold up a cancel */

struct end_job {
	struct os_work work;
	struct run *run;
	struct arena mem;
	struct agent_end end; /* strings in mem */
	struct evidence evidence;
	bool checked;
	bool waits;             /* for tools that were stopped */
	struct os_timer *timer; /* then: it does not wait for ever */
};

void ending_free(struct run *r)
{
	if (!r->end.job)
		return;
	os_timer_free(r->end.job->timer);
	buf_fini(&r->end.job->evidence.citations);
	arena_fini(&r->end.job->mem);
	free(r->end.job);
	r->end.job = NULL;
}

/* ---- what is still open */

static void close_calls(struct run *r, struct draft *d)
{
	struct turn *t = r->agent.turn;
	struct buf line;

	if (!t || !r->rec.turn_open)
		return;
	for (unsigned i = 0; i < t->ncalls; i++) {
		if (!t->calls[i].recorded)
			record_tool_result(d, r, &t->calls[i]);
		t->calls[i].recorded = true;
	}
	/* The conversation stays valid for a fork or a resume. */
	buf_init(&line, 32u << 20);
	if (r->spec->model->dialect->encode_results(&line, t, NULL, 0) == 0)
		world_lines(r, line.data, line.len);
	buf_fini(&line);
	r->rec.turn_open = false;
}

void ending_close(struct run *r, struct draft *d, const char *stop_reason)
{
	person_close(r, d);
	close_calls(r, d);
	infer_close_cut(r, d, r->end.interrupted ? "interrupted" : "cancelled", stop_reason);
	money_settle(r);
}

/* ---- result.json: written in the commit that ends the run, so it is there exactly
 * when the run has ended. Cost is null when a price was unknown. */

static void result_evidence(struct jw *w, const struct run *r, const struct evidence *e)
{
	jw_object(w, "evidence");
	jw_object(w, "tools");
	for (unsigned i = 0; i < r->spec->agent.ntools; i++)
		if (r->tools.counts[i])
			jw_int(w, r->spec->tools[i]->name, r->tools.counts[i]);
	jw_end(w);
	jw_int(w, "bytes_read", r->tools.bytes_read);
	jw_int(w, "citations_checked", e ? e->checked : 0);
	jw_int(w, "citations_failed", e ? e->failed : 0);
	jw_end(w);
}

/* The model's own, then what the runtime has to add. */
static void result_caveats(struct jw *w, const struct run *r, const struct agent_end *end)
{
	const char *own = end->caveats ? end->caveats : "[]";
	char text[600];
	struct buf all;
	json_t *list;

	snprintf(text, sizeof(text), "%s was overloaded: %s went on in its place",
		 r->call.first_model ? r->call.first_model : "", r->spec->model->id);
	list = r->call.first_model ? json_parse(own, strlen(own), NULL) : NULL;
	buf_init(&all, 1u << 20);
	if (list && json_array_append_new(list, json_string(text)) == 0 &&
	    json_dump(&all, list) == 0)
		jw_raw(w, "caveats", all.data, all.len);
	else
		jw_raw(w, "caveats", own, strlen(own));
	buf_fini(&all);
	json_decref(list);
}

static int result_encode(struct buf *out, const struct run *r, const struct agent_end *end,
			 const struct evidence *e)
{
	const struct agent_totals *t = &r->agent.at.totals;
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_str(&w, "subagent_id", r->id.text);
	jw_str(&w, "status", ava_status_name(end->status));
	jw_str(&w, "stop_reason", end->stop_reason);
	jw_str(&w, "summary", end->summary ? end->summary : "");
	if (end->output)
		jw_raw(&w, "output", end->output, end->output_len);
	else
		jw_null(&w, "output");
	jw_fixed(&w, "confidence", (int64_t)lround(end->confidence * 1000), 3);
	result_caveats(&w, r, end);
	jw_str(&w, "error", end->error);
	jw_int(&w, "tokens_used", t->input + t->output);
	if (run_cost(r) < 0)
		jw_null(&w, "cost_cents");
	else
		jw_fixed(&w, "cost_cents", run_cost(r), 4);
	jw_fixed(&w, "duration_seconds", run_elapsed_ms(r), 3);
	jw_int(&w, "iterations", r->agent.at.iteration);
	jw_str(&w, "model", r->spec->model->id);
	jw_str(&w, "trace_id", r->trace.text);
	if (e && buf_check(&e->citations) == 0 && e->citations.len)
		jw_raw(&w, "citations", e->citations.data, e->citations.len);
	else
		jw_raw(&w, "citations", "[]", 2);
	result_evidence(&w, r, e);
	jw_bool(&w, "partial", end->partial);
	jw_bool(&w, "unverified", end->unverified);
	jw_array(&w, "artifacts");
	if (r->tools.artifacts.len)
		jw_raw(&w, NULL, r->tools.artifacts.data, r->tools.artifacts.len);
	jw_end(&w);
	jw_end(&w);
	buf_addc(out, '\n');
	return buf_check(out);
}

/* ---- the last commit */

static void ended(int rv, void *user)
{
	struct run *r = user;

	group_next(r);
	agent_on_saved(&r->agent);
	world_wake(r);
}

/* A sentence for people when the model left none. */
static const char *default_summary(struct end_job *j)
{
	const struct agent_totals *t = &j->run->agent.at.totals;
	int replies = t->calls - t->failed_calls - j->run->call.stopped;
	const struct agent_end *e = &j->end;

	if (e->error)
		return e->error;
	if (e->exhausted)
		return arena_fmt(&j->mem,
				 "Stopped at its limit of %s after %d %s, without a result.",
				 e->exhausted, replies, replies == 1 ? "reply" : "replies");
	if (e->status == AVA_CANCELLED)
		return "Cancelled before it had a result.";
	return "It ended without a summary.";
}

static void commit(void *user)
{
	struct run *r = user;
	struct end_job *j = r->end.job;
	struct draft *d = world_draft(r);
	struct buf result;
	char path[LOGBOOK_PATH];
	struct buf *b;
	int rv;

	if (!j->end.summary || !*j->end.summary)
		j->end.summary = default_summary(j);
	r->end.wall_ms = clock_wall_ms();
	r->end.used_ms = agent_used_ms(&r->agent, clock_mono_ms());
	if (d) {
		buf_init(&result, 16u << 20);
		rv = result_encode(&result, r, &j->end, j->checked ? &j->evidence : NULL);
		if (rv == 0) {
			logbook_result_path(r->id.text, path);
			b = draft_part(d, DRAFT_PUT, path);
			if (b)
				buf_add(b, result.data, result.len);
		} else if (rv == AVA_ENOMEM) {
			d->failed = true; /* an end without its result is none */
		}
		buf_fini(&result);
		record_complete(d, r, j->end.status, j->end.stop_reason, j->end.summary);
		group_run_ends(r, d, j->end.status, j->end.summary);
		record_session_end(d, r, j->end.status, j->end.summary);
		logbook_run_path(r->id.text, path);
		draft_part(d, DRAFT_DROP, path);
		run_messages_path(r, path);
		draft_part(d, DRAFT_DROP, path);
	}
	r->end.begun = true;
	world_flush(r, JOURNAL_NOW, ended);
}

/* ---- checking what it claims */

static void check_claims(struct end_job *j, const char *file, size_t len)
{
	struct buf body;

	buf_init(&body, 256u << 20);
	if (messages_said(&body, file, len, NULL) == 0)
		evidence_collect(&j->evidence, j->run->spec->model->dialect,
				 body.data ? body.data : "", body.len, j->end.output,
				 j->end.output_len, j->end.summary);
	buf_fini(&body);
}

/* What the run said last, for an end that has no summary of its own: a limit or a
 * cancel that falls into a call finds no reply in memory, but the record knows what
 * there is. The text of the newest reply (a preview, redacted); nothing when the log
 * cannot be read. Blocks on the disk. */
static void last_words(int root_fd, const char *run, struct buf *out)
{
	char path[LOGBOOK_PATH], *data = NULL;
	size_t len = 0, at = 0, n;
	const char *line;

	logbook_run_path(run, path);
	if (logbook_read(root_fd, path, LOG_MAX, &data, &len, NULL) != 0)
		return;
	while (jsonl_next(data, len, &at, &line, &n) == 1) {
		struct event_view v;
		json_t *content;
		const char *text;

		if (event_view(line, n, &v) != 0 || v.kind != EVENT_InferEnd)
			continue;
		content = json_parse(v.content.s, v.content.len, NULL);
		text = json_get_str(content, "responsePreview");
		if (text && *text) {
			buf_reset(out);
			buf_adds(out, text);
		}
		json_decref(content);
	}
	free(data);
}

static void check_work(struct os_work *w)
{
	struct end_job *j = w->priv;
	struct run *r = j->run;
	char path[LOGBOOK_PATH];
	struct buf body;
	char *file = NULL;
	size_t len;

	if (!j->end.summary || !*j->end.summary) {
		buf_init(&body, EVENT_PREVIEW_CHARS * 4 + 1);
		last_words(r->rec.outbox.lb->root_fd, r->id.text, &body);
		j->end.partial = j->end.partial || body.len > 0;
		if (body.len > 0)
			j->end.summary = arena_copy(&j->mem, body.data, body.len);
		buf_fini(&body);
	}
	run_messages_path(r, path);
	if (logbook_read(r->rec.outbox.lb->root_fd, path, 256u << 20, &file, &len, NULL) == 0)
		check_claims(j, file, len);
	free(file);
}

/* A short conversation that is in memory is looked through for less than waking
 * a thread costs. false: it is not. */
static bool check_at_once(struct end_job *j)
{
	struct run *r = j->run;
	char path[LOGBOOK_PATH], file[AT_ONCE_MAX];
	ssize_t len;

	if (!j->end.summary || !*j->end.summary || r->rec.request_bytes > AT_ONCE_MAX / 2)
		return false;
	run_messages_path(r, path);
	len = logbook_read_cached(r->rec.outbox.lb->root_fd, path, file, sizeof(file));
	if (len < 0)
		return false;
	check_claims(j, file, (size_t)len);
	return true;
}

static void check_done(struct os_work *w)
{
	struct end_job *j = w->priv;

	j->checked = true;
	j->run->busy--;
	if (!j->run->end.abandoned)
		commit(j->run);
}

static void check_start(void *user)
{
	struct run *r = user;
	struct end_job *j = r->end.job;

	if (check_at_once(j)) {
		j->checked = true;
		commit(r);
		return;
	}
	r->busy++;
	j->work = (struct os_work){.work = check_work, .done = check_done, .priv = j};
	os_work_start(r->sup->loop, &j->work);
}

/* ---- start */

typedef int (*redact_fn)(const struct redact *, struct buf *, const char *, size_t);

/* A copy without secrets; what cannot be looked through is `left_out`. */
static const char *keep_as(struct end_job *j, const char *s, redact_fn clean_up,
			   const char *left_out)
{
	const struct redact *redact = j->run->rec.outbox.lb->redact;
	const char *copy;
	struct buf clean;

	if (!s)
		return NULL;
	buf_init(&clean, 64u << 20);
	if (redact)
		s = clean_up(redact, &clean, s, strlen(s)) < 0 ? left_out
		    : clean.data                               ? clean.data
							       : "";
	copy = arena_copy(&j->mem, s, strlen(s));
	buf_fini(&clean);
	return copy;
}

static const char *keep(struct end_job *j, const char *s)
{
	return keep_as(j, s, redact_text, "(left out: too large to look for secrets)");
}

static struct end_job *job_new(struct run *r, const struct agent_end *e)
{
	struct end_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->run = r;
	arena_init(&j->mem, 32u << 20);
	j->end = *e;
	j->end.stop_reason = keep(j, e->stop_reason);
	j->end.exhausted = keep(j, e->exhausted);
	j->end.error = keep(j, e->error);
	j->end.error_class = keep(j, e->error_class);
	j->end.summary = keep(j, e->summary);
	j->end.output = keep_as(j, e->output, redact_json, "null");
	j->end.output_len = j->end.output ? strlen(j->end.output) : 0;
	j->end.caveats = keep_as(j, e->caveats, redact_json, "[]");
	return j;
}

/* Once the outbox is empty the conversation is complete on disk. */
static void ending_written(struct run *r)
{
	if (outbox_empty(&r->rec.outbox)) {
		check_start(r);
	} else {
		r->rec.outbox.drained = check_start;
		r->rec.outbox.drained_user = r;
	}
}

static void tools_late(void *user)
{
	struct run *r = user;

	r->end.job->waits = false;
	ending_written(r);
}

void ending_tools_done(struct run *r)
{
	if (r->tools.running == 0 && r->end.job && r->end.job->waits && !r->end.abandoned) {
		os_timer_stop(r->end.job->timer);
		tools_late(r);
	}
}

void ending_start(struct agent *a, const struct agent_end *e)
{
	struct run *r = a->world;
	struct draft *d = world_draft(r);
	struct end_job *j = job_new(r, e);

	/* Without memory for its end the run cannot go on honestly; the next
	 * start ends it as interrupted. */
	r->end.job = j;
	if (!j || !d) {
		r->end.abandoned = true;
		supervisor_out_of_memory(r);
		ending_free(r);
		return;
	}
	ending_close(r, d, e->stop_reason);
	if (e->exhausted)
		record_exhausted(d, r, e->exhausted);
	if (e->error_class)
		record_error(d, r, e->error_class, e->error ? e->error : e->error_class);
	/* Nothing of the run is at work any more when it has ended. What was closed goes
	 * with the end, not before it: a start in between would find half of it. */
	if (r->tools.running > 0) {
		j->waits = true;
		j->timer = os_timer_new(r->sup->loop, tools_late, r);
		if (j->timer)
			os_timer_set(j->timer, TOOLS_WAIT_MS);
		return;
	}
	ending_written(r);
}

/* A model call. Intent first: InferStart (with the hash of the exact request)
 * is durable before the request leaves. Then a pool thread reads
 * messages.jsonl, checks the pairing and builds the request, or for a local
 * dialect computes the answer; the loop never waits for it and no run holds
 * its conversation.
 *
 * Each attempt has its own InferStart and InferEnd (i3, i3.2, i3.3 …); the
 * InferEnd of a failed one says when the next follows, so a wait is on disk
 * while it lasts. Nothing of a half reply is stored; it is charged as an
 * estimate. When the wait is over the machine is asked again, so that the
 * limits are looked at before each attempt.
 *
 * Changes of later requests are an amendment line before them: rejected
 * parameters are left out, one after the other, and another model of the same
 * dialect is called where the first does not answer (models.fallback). The head of
 * the request belongs to the model, so after a switch its running hash is taken
 * anew, from the file, on a pool thread.
 *
 * A stopped call leaves its job running until the pool thread is done; the job
 * is then dropped, and the run freed if it has ended meanwhile. */
#include "subagent/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/limit.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "codec/redact.h"
#include "provider/messages.h"
#include "provider/model.h"
#include "subagent/doing.h"
#include "subagent/learn.h"
#include "subagent/record.h"
#include "subagent/wire.h"

#define MESSAGES_MAX (256u << 20)
#define BUILT_MS     100 /* between two looks whether a request may leave */

struct infer_job {
	struct os_work work;
	struct run *run;
	struct agent_infer call;
	bool dropped;   /* the job was stopped, and the end of the pool thread frees it */
	bool rehash;    /* the job only hashes the changed head and builds no request */
	bool shows;     /* the rehash is before the first attempt, not after a failed one */
	bool parks;     /* the gate parks the run: the service told another when to come back */
	bool replied;   /* the model has spoken in this conversation */
	size_t checked; /* run_record.checked, before and after */
	struct dialect_answer answer; /* answer of a local model */
	struct wire_ticket ticket;    /* ticket and the fields below: for a remote model */
	struct buf body;
	struct wirecall wire;
	struct redact_live text, thinking; /* take secrets out of what watchers get */
	struct hash_sha256 prefix;         /* hash that a rehash makes */
	int64_t prefix_bytes;
	char word[32]; /* class of the error */
	int rv;
	struct ava_error err;
};

static int infer_begin(struct infer_job *j);
static int infer_gate(struct infer_job *j);
static void infer_saved(int rv, void *user);
static int infer_ask_money(struct infer_job *j);

/* Frees the job, and the run if it waited only for that. */
static void infer_drop(struct infer_job *j)
{
	struct run *r = j->run;

	if (r->call.job == j) {
		r->call.job = NULL;
		r->call.state = CALL_NONE;
	}
	r->busy--;
	wire_line_leave(&j->ticket);
	turn_free(j->answer.turn);
	buf_fini(&j->body);
	redact_live_fini(&j->text);
	redact_live_fini(&j->thinking);
	free(j);
	run_release(r);
}

/* ---- the request, on a pool thread or at once */

static int infer_build(struct infer_job *j, const char *file, size_t len, int root_fd)
{
	const struct model *m = j->run->spec->model;
	const struct dialect *d = m->dialect;
	struct buf *body = &j->body;
	struct messages_info info = {0};
	int rv;

	/* Reserve about the length of file and head: a body that grows would be copied again and
	 * again. */
	rv = buf_reserve(body, len + 16384)
		     ? messages_request(body, file, len, root_fd, &info, &j->err)
		     : err_set(&j->err, AVA_ENOMEM, "out of memory");
	j->replied = info.replied;
	/* A file that somebody changed has another length, or the service says it. */
	if ((int64_t)body->len != j->run->rec.request_bytes)
		j->checked = 0;
	if (rv == 0)
		rv = messages_check(d, body->data + info.head_len, body->len - info.head_len,
				    &j->checked, &j->err);
	if (rv == 0 && ((d->mark_cache && d->mark_cache(body, info.head_len, m) != 0) ||
			d->encode_tail(body, m, j->run->spec->thinking, &j->call) != 0))
		rv = err_set(&j->err, AVA_ENOMEM, "out of memory for the request");
	return rv;
}

static void infer_work(struct os_work *w)
{
	struct infer_job *j = w->priv;
	const struct model *m = j->run->spec->model;
	struct messages_info info;
	struct buf body;
	char *file = NULL;
	size_t len, from = j->run->rec.messages_from;
	int root_fd = j->run->rec.outbox.lb->root_fd;

	j->rv = run_messages_read(j->run, &from, &file, &len, &j->err);
	if (j->rv == 0 && j->rehash) {
		buf_init(&body, MESSAGES_MAX);
		j->rv = messages_request(&body, file, len, root_fd, &info, &j->err);
		if (j->rv == 0)
			j->prefix = messages_prefix(&body, &info);
		j->prefix_bytes = (int64_t)body.len;
		buf_fini(&body);
	} else if (j->rv == 0) {
		j->rv = infer_build(j, file, len, root_fd);
	}
	free(file);
	if (j->rehash)
		return;
	if (j->rv != 0 || !m->dialect->answer)
		return;
	j->rv = m->dialect->answer(j->body.data, j->body.len, model_config(m), &j->answer, &j->err);
	buf_fini(&j->body);
}

/* false: the conversation or its head is not in memory, or it has parts. */
static bool infer_build_at_once(struct infer_job *j)
{
	struct run *r = j->run;
	char text[RUN_AT_ONCE_MAX];
	ssize_t len;

	if (j->rehash || r->spec->model->dialect->answer)
		return false;
	len = run_messages_cached(r, text);
	if (len < 0)
		return false;
	j->rv = infer_build(j, text, (size_t)len, -1);
	if (j->rv != AVA_ENOENT)
		return true;
	buf_reset(&j->body);
	return false;
}

/* ---- the outcome, on the loop */

/* The machine is told later in this turn of the loop that the call failed for good. */
static void infer_fail(struct infer_job *j, int rv, const char *word, const char *sentence)
{
	struct ava_error text; /* `sentence` may stand in j->err */

	snprintf(text.text, sizeof(text.text), "%s", sentence);
	j->run->call.state = CALL_FAILED;
	j->rv = rv;
	snprintf(j->word, sizeof(j->word), "%s", word);
	snprintf(j->err.text, sizeof(j->err.text), "%s", text.text);
	os_timer_set(j->run->call.timer, 0);
}

static void infer_fail_code(struct infer_job *j, int rv)
{
	if (rv != 0)
		infer_fail(j, rv, err_word(rv), ava_strerror(rv));
}

/* Warns, once a model, if the service counted a first request for less than its tools alone are. */
static void infer_suspect(struct run *r, const struct turn *t)
{
	const struct model *m = r->spec->model;
	struct draft *d;
	char text[400];

	if (r->call.counted > 0 || m->dialect->answer ||
	    !learn_counted(r->sup->learner, m, r->rec.request_bytes, t->usage.told, t->ncalls > 0,
			   text, sizeof(text)))
		return;
	r->call.doubt = arena_copy(&r->spec->mem, text, strlen(text));
	d = commit_draft(r);
	if (d)
		record_activity(d, r, text);
}

/* A whole reply: *taken*. */
static void infer_reply(struct infer_job *j, struct turn *t)
{
	struct run *r = j->run;
	const struct redact *redact = r->rec.outbox.lb->redact;

	infer_suspect(r, t);
	infer_doubt(r, &t->usage);
	if (redact && redact_has_known(redact, t->wire, t->wire_len)) {
		r->call.cut = t->usage; /* the reply is paid for all the same */
		turn_free(t);
		infer_fail(j, AVA_EDENIED, "denied",
			   "the reply held a known secret and was not stored");
		return;
	}
	agent_on_reply(&r->agent, 0, t, NULL, NULL);
	run_wake(r);
	infer_drop(j);
}

static void infer_deliver(struct infer_job *j)
{
	struct turn *t = j->answer.turn;

	j->answer.turn = NULL;
	infer_reply(j, t);
}

void infer_estimate(const struct run *r, struct usage *u)
{
	*u = r->call.cut;
	u->estimated = true;
	if (u->cost_microusd < 0 && u->input == 0)
		u->input = r->rec.request_bytes / 4;
}

void infer_close_cut(struct run *r, struct draft *d, const char *error_class, const char *sentence)
{
	struct usage u;
	struct record_failure f = {
		.error_class = error_class,
		.sentence = sentence,
		.usage = &u,
		.retry_ms = -1,
	};

	if (!r->call.id[0])
		return;
	infer_estimate(r, &u);
	agent_charge(&r->agent, &u);
	if (d)
		record_infer_failed(d, r, &f);
}

void infer_interrupted(struct run *r)
{
	bool open = r->call.id[0] && !r->agent.ending && !r->rec.unnoted;
	struct draft *d = open ? commit_draft(r) : NULL;

	if (!d)
		return;
	infer_close_cut(r, d, "interrupted", "the runtime stopped");
	commit_flush(r, JOURNAL_RIDE, NULL);
}

static void infer_failed(struct infer_job *j)
{
	struct run *r = j->run;

	if (j->parks)
		money_settle(r);
	else if (r->call.id[0]) { /* the last attempt has no InferEnd yet */
		infer_close_cut(r, commit_draft(r), j->word, j->err.text);
		money_settle(r);
	}
	if (j->parks)
		park_tell(r, false);
	else
		agent_on_reply(&r->agent, j->rv, NULL, j->word, j->err.text);
	run_wake(r);
	infer_drop(j);
}

static void infer_again(struct infer_job *j)
{
	struct run *r = j->run;

	agent_on_again(&r->agent);
	run_wake(r);
	infer_drop(j);
}

/* ---- amendments */

/* The address may lack /v1; false: that was tried. */
static bool infer_mend(struct infer_job *j)
{
	const struct provider *p = j->run->spec->model->provider;
	struct draft *d = commit_draft(j->run);
	char text[3 * PROVIDER_URL_MAX];

	if (!d || !wire_line_mend(j->ticket.line, &j->wire))
		return false;
	snprintf(text, sizeof(text),
		 "nothing at %s%.60s: asking under /v1; if it answers there, set %s=%s/v1",
		 p->base_url, j->run->spec->model->dialect->path, p->url_name, p->base_url);
	record_activity(d, j->run, text);
	return true;
}

/* Call `m` from now on; this call goes on by itself. false: it cannot be done. */
static bool infer_switch(struct infer_job *j, const struct model *m, bool another, const char *text)
{
	struct run *r = j->run;
	struct draft *d = commit_draft(r);

	if (!d || !infer_amend(r, m, another))
		return false;
	run_activity(r, text);
	record_activity(d, r, text);
	j->rehash = true;
	r->call.state = CALL_SAVE;
	r->rec.position_due = true;
	commit_flush(r, JOURNAL_RIDE, infer_saved);
	return true;
}

/* false: there is no other model. */
static bool infer_fall_back(struct infer_job *j)
{
	struct run *r = j->run;
	const char *id = r->spec->model->id;
	struct model m;
	char text[160];

	if (!commit_draft(r) || !spec_next_model(r->spec, &r->call.fallbacks, !j->replied, &m))
		return false;
	snprintf(text, sizeof(text), "%.60s does not answer: going on with %.60s", id, m.id);
	return infer_switch(j, &m, true, text);
}

/* *m: the model in the dialect that a refusal asks for, remembered from now on. false: no dialect
 * is asked for, it was refused before, or the conversation has replies in the old one. */
static bool infer_speaks(const struct infer_job *j, const struct dialect *other, struct model *m)
{
	*m = *j->run->spec->model;
	m->dialect = other;
	return other && !j->replied && model_learn_dialect(m);
}

/* A call that failed is made again, but the machine does not know yet. */
static bool infer_has_failed(const struct run *r)
{
	return r->call.job && r->call.job->rehash && !r->call.job->shows;
}

/* Withheld tools (spec_brief.c) that the next request needs. They follow from what the record says
 * anyway: tools that were called, and texts that name read_result. */
static uint32_t infer_tools_due(const struct run *r)
{
	static const char *const reading[] = {"read_result"};
	const struct run_spec *s = r->spec;
	uint32_t due = r->tools.wanted;

	for (unsigned i = 0; i < s->agent.ntools; i++)
		due |= r->tools.counts[i] > 0 ? UINT32_C(1) << i : 0;
	if (r->tools.artifacts.len > 0 || r->agent.at.compact_floor > 0 || s->resumed_from[0])
		due |= spec_tools_named(s, reading, 1);
	return due & s->withheld;
}

/* Show the due tools from now on, then go on with the call. false: none are due. */
static bool infer_show_tools(struct infer_job *j)
{
	struct run *r = j->run;
	uint32_t due = r->spec->withheld != 0 ? infer_tools_due(r) : 0;
	struct buf *part = due ? commit_messages(r) : NULL;

	if (!part || spec_show(r->spec, due, part) != 0)
		return false;
	j->rehash = j->shows = true;
	r->call.state = CALL_SAVE;
	r->rec.position_due = true;
	commit_flush(r, JOURNAL_RIDE, infer_saved);
	return true;
}

/* ---- the gate */

/* Park instead of sending? The machine hears of it later in this turn of the loop. */
static bool infer_is_parked(struct infer_job *j, struct wire_line *line)
{
	j->parks = park_at_gate(j->run, line);
	if (j->parks)
		infer_fail(j, 0, "", "");
	return j->parks;
}

static void infer_at_gate(struct wire_ticket *t)
{
	struct infer_job *j = CONTAINER_OF(t, struct infer_job, ticket);
	struct run *r = j->run;
	const struct provider *p = r->spec->model->provider;
	enum reply_class why;
	int64_t for_ms;
	char text[200];

	os_timer_stop(r->call.timer);
	agent_clock_go(&r->agent);
	if (t->gate.refused && infer_is_parked(j, t->line))
		return;
	if (t->gate.refused && !wire_line_refuses(t->line, &why, &for_ms)) {
		infer_fail_code(j, infer_gate(j)); /* may not park so long: queue again */
	} else if (t->gate.refused) {
		snprintf(text, sizeof(text),
			 "%s %s several times in a row: no call is made for %" PRId64
			 " s; %s, then %s again",
			 p->name, why == REPLY_BILLING ? "refused the account" : "refused the key",
			 (for_ms + 999) / 1000,
			 why == REPLY_BILLING ? "add credit" : "set a valid key",
			 r->place ? "say it" : "run");
		infer_fail(j, AVA_EDENIED, reply_class_word(why), text);
	} else if (infer_begin(j) != 0) {
		infer_fail_code(j, AVA_ENOMEM);
	}
}

/* A key of the request's head, if the service caches it and another run may have the
 * same one: only of the first request of a run. Else 0. */
static uint64_t infer_shared_head(const struct infer_job *j)
{
	const struct run *r = j->run;
	const struct model *m = r->spec->model;
	struct hash_sha256 prefix = r->rec.prefix;
	unsigned char digest[32];
	uint64_t head;

	if (j->call.iteration > 1 || m->cache_min <= 0 || r->rec.request_bytes / 4 < m->cache_min)
		return 0;
	hash_sha256_end(&prefix, digest);
	memcpy(&head, digest, sizeof(head));
	return head | 1;
}

static const struct retry_policy *infer_policy(const struct run *r)
{
	return r->place ? &retry_talk : &retry_default;
}

/* If there is another model, time the wait at the gate: it may be free. */
static void infer_watch_gate(struct infer_job *j)
{
	size_t n;

	model_fallback(&n);
	if (n > j->run->call.fallbacks)
		os_timer_set(j->run->call.timer, retry_fallback_ms(infer_policy(j->run)));
}

/* The call has stood at the gate for long. */
static void infer_waited(struct infer_job *j)
{
	if (!wire_line_closed(j->ticket.line)) {
		infer_watch_gate(j);
		return;
	}
	agent_clock_go(&j->run->agent);
	wire_line_leave(&j->ticket);
	/* Without another model the call stands behind the others again. */
	if (!infer_fall_back(j))
		(void)infer_gate(j);
}

/* The money is reserved. */
static int infer_gate(struct infer_job *j)
{
	struct run *r = j->run;
	const struct model *m = r->spec->model;
	struct wire_line *line;
	char text[64];

	r->call.state = CALL_GATE;
	if (m->dialect->answer)
		return infer_begin(j);
	line = wire_line_get(r->sup->lines, m, &j->err);
	if (!line) {
		infer_fail(j, j->err.code, err_word(j->err.code), j->err.text);
		return 0;
	}
	if (infer_is_parked(j, line))
		return 0;
	j->ticket.go = infer_at_gate;
	wire_line_want(line, &j->ticket, infer_shared_head(j));
	if (r->call.state == CALL_GATE) {
		/* The results of the last turn do not wait with the call. */
		commit_flush(r, JOURNAL_RIDE, NULL);
		/* A wait behind ava's other calls costs the run no time; one that the service
		 * asks for does. */
		if (!wire_line_closed(line))
			agent_clock_stop(&r->agent);
		snprintf(text, sizeof(text), "Waiting for %s", m->provider->name);
		run_activity(r, text);
		infer_watch_gate(j);
	}
	return 0;
}

/* ---- the wire */

static void infer_wire_began(struct wirecall *w)
{
	struct infer_job *j = CONTAINER_OF(w, struct infer_job, wire);

	if (wire_line_began(&j->ticket))
		park_over(j->run->sup, j->run->spec->model);
}

static void infer_show(struct infer_job *j, const char *s, size_t n, bool thinking, bool end)
{
	struct run *r = j->run;
	struct buf clean;

	buf_init(&clean, (size_t)16 << 20);
	if (redact_live(r->rec.outbox.lb->redact, thinking ? &j->thinking : &j->text, s, n, end,
			&clean) == 0 &&
	    clean.len > 0 && r->sup->on_text)
		r->sup->on_text(r, clean.data, clean.len, thinking);
	buf_fini(&clean);
}

static void infer_text(const char *s, size_t n, bool thinking, void *user)
{
	struct infer_job *j = user;

	if (j->run->place || j->run->watched > 0)
		infer_show(j, s, n, thinking, false);
}

/* Show the reply from its beginning; `anew`: watchers drop what they have. */
static void infer_show_anew(struct infer_job *j, bool anew)
{
	redact_live_fini(&j->text);
	redact_live_fini(&j->thinking);
	redact_live_init(&j->text);
	redact_live_init(&j->thinking);
	if (anew)
		j->run->sup->on_text(j->run, "", 0, false);
	j->wire.on_text = infer_text;
	j->wire.text_user = j;
	if (j->wire.stream)
		stream_on_text(j->wire.stream, infer_text, j);
}

void infer_watched(struct run *r)
{
	if (r->call.state == CALL_WIRE && r->sup->on_text)
		infer_show_anew(r->call.job, true);
}

static void infer_attempt_failed(struct infer_job *j, struct wirecall_end *end)
{
	struct run *r = j->run;
	struct retry_when when = {clock_mono_ms(), clock_wall_ms(), r->agent.deadline_ms, 0};
	struct usage u;
	const struct dialect *other = NULL;
	struct wire_line *line = j->ticket.line;
	const struct retry_policy *policy = infer_policy(r);
	struct retry_plan plan;
	struct agent_told told;
	struct model m;
	char text[sizeof(r->agent.reply_error)];
	bool again, lower, speaks, parks;

	id_random(&when.chance, sizeof(when.chance));
	retry_decide(&r->call.retry, policy, &end->failure, &when, &plan);
	parks = plan.parks && park_may(r, plan.wait_ms);
	if (plan.parks && (parks || r->place) && plan.verdict == RETRY_AGAIN)
		plan.verdict = RETRY_TOO_LONG; /* too long for a slot, or for a person who waits */
	if (end->failure.cls == REPLY_ADDRESS && end->failure.status / 100 != 3 && infer_mend(j))
		plan = (struct retry_plan){.verdict = RETRY_AGAIN};
	lower = infer_lower(&j->call, &end->error, r->rec.request_bytes, &told);
	wire_line_end(&j->ticket, end->error.never ? REPLY_OVERFLOW : end->failure.cls, &plan);
	r->call.late += end->failure.cls == REPLY_TIMEOUT;
	infer_charge(r, end, j->wire.began, &u);
	if (plan.verdict == RETRY_FINAL)
		other = model_other_dialect(r->spec->model, end->error.text);
	speaks = infer_speaks(j, other, &m);
	if (plan.verdict == RETRY_FINAL && !speaks && !lower &&
	    end->failure.cls == REPLY_BAD_REQUEST && infer_repair(r, &j->call, end->error.field))
		plan = (struct retry_plan){.verdict = RETRY_AGAIN};
	again = plan.verdict == RETRY_AGAIN;
	/* A guessed number far below the bytes sent may mean something else than the window. */
	if (!again && lower && !end->error.never &&
	    !(end->error.guessed && told.window < r->rec.request_bytes / 8))
		learn_told(r->sup->learner, r->spec->model,
			   &(struct learned){.window = told.window, .output_max = told.output_max},
			   "refusal");
	infer_write_failure(r, end, &u, !again && lower ? &told : NULL, again ? plan.wait_ms : -1);
	if (!again && lower) {
		/* The machine makes room and asks again, or ends the run by this sentence. It
		 * has not decided yet, so the event does not announce another attempt. */
		commit_flush(r, JOURNAL_RIDE, NULL);
		infer_sentence(r, end, &plan, text, sizeof(text));
		agent_on_refused(&r->agent, &told, reply_class_word(end->failure.cls), text);
		run_wake(r);
		infer_drop(j);
		return;
	}
	if (retry_fallback_due(&r->call.retry, policy, &end->failure, &plan, when.mono_ms) &&
	    infer_fall_back(j))
		return;
	if (speaks) {
		snprintf(text, sizeof(text), "%.60s is served at %s: asking there", m.id,
			 other->path);
		if (infer_switch(j, &m, false, text))
			return;
	}
	if (parks) {
		park_begin(r, line, plan.wait_ms, &end->error);
		park_tell(r, true);
		run_wake(r);
		infer_drop(j);
		return;
	}
	if (!again) {
		infer_sentence(r, end, &plan, text, sizeof(text));
		if (other)
			snprintf(text, sizeof(text),
				 "%.60s is to be asked at %s: set \"dialect: %s\" for it in "
				 "models.list of config.yaml, and begin anew",
				 r->spec->model->id, other->path, other->name);
		infer_fail(j, AVA_ECONNECT, reply_class_word(end->failure.cls), text);
		return;
	}
	r->call.state = CALL_AGAIN;
	os_timer_set(r->call.timer, plan.wait_ms);
}

static void infer_wire_done(struct wirecall *w, struct wirecall_end *end)
{
	struct infer_job *j = CONTAINER_OF(w, struct infer_job, wire);

	if (end->failure.cls != REPLY_OK) {
		infer_attempt_failed(j, end);
		return;
	}
	wire_line_end(&j->ticket, REPLY_OK, NULL);
	if (j->wire.on_text) {
		infer_show(j, "", 0, true, true);
		infer_show(j, "", 0, false, true);
	}
	infer_reply(j, end->turn);
}

/* The request is built. */
static void infer_send(struct infer_job *j)
{
	struct run *r = j->run;
	const struct model *m = r->spec->model;
	char tag[40];
	int rv;

	r->call.state = CALL_WIRE;
	j->wire.on_began = infer_wire_began;
	j->wire.on_done = infer_wire_done;
	j->wire.http.timers = wire_timers(m->provider, r->sup->settings,
					  r->agent.deadline_ms - clock_mono_ms(), r->call.late);
	j->wire.max_output = j->call.max_output;
	j->wire.prefix = wire_line_prefix(j->ticket.line);
	j->wire.tools = r->spec->agent.tools;
	j->wire.ntools = r->spec->agent.ntools;
	if (r->sup->on_text && (r->place || r->watched > 0))
		infer_show_anew(j, !r->place || r->call.attempts > 1);
	snprintf(tag, sizeof(tag), "%s_%d", r->id.text + 2, j->call.iteration);
	rv = provider_require(m->provider, m->id, &j->err);
	if (rv == 0)
		rv = wirecall_start(&j->wire, wire_line_pool(j->ticket.line), m,
				    provider_key(m->provider), tag, &j->body, &j->err);
	if (rv != 0)
		infer_fail(j, rv, err_word(rv), j->err.text);
	else
		r->call.cut.cost_microusd = -1;
}

/* ---- start */

static void infer_built(struct infer_job *j)
{
	struct run *r = j->run;

	r->rec.checked = j->checked;
	if (j->rv != 0) {
		/* Here AVA_ENOENT means messages.jsonl or a script, not the run's folder. */
		r->call.cut = (struct usage){0};
		infer_fail(j, j->rv == AVA_ENOENT ? AVA_EIO : j->rv, err_word(j->rv), j->err.text);
	} else if (j->rehash) {
		r->rec.prefix = j->prefix;
		r->rec.request_bytes = j->prefix_bytes;
		r->rec.checked = 0; /* by the rules of another model */
		if (!j->shows) {
			infer_again(j);
			return;
		}
		j->rehash = j->shows = false; /* the head has the changed tools now */
		infer_fail_code(j, infer_ask_money(j));
	} else if (!j->answer.turn) {
		infer_send(j);
	} else if (j->answer.delay_ms > 0) {
		r->call.state = CALL_DELAY;
		os_timer_set(r->call.timer, j->answer.delay_ms);
	} else {
		infer_deliver(j);
	}
}

/* A thread had the call, or the process stood still, for so long that another machine may have the
 * run: then this one is fenced soon, or may send it after all. */
static void infer_may_send(struct infer_job *j)
{
	const struct logbook *lb = j->run->rec.outbox.lb;

	if (!lb->may || lb->may(lb->gate_user)) {
		infer_built(j);
		return;
	}
	j->run->call.state = CALL_BUILT;
	os_timer_set(j->run->call.timer, BUILT_MS);
}

static void infer_worked(struct os_work *w)
{
	struct infer_job *j = w->priv;

	if (j->dropped)
		infer_drop(j);
	else
		infer_may_send(j);
}

static void infer_work_start(struct infer_job *j)
{
	j->run->call.state = CALL_WORK;
	j->work = (struct os_work){
		.work = infer_work, .done = infer_worked, .priv = j, .order = j->run->rec.log.row};
	os_work_start(j->run->sup->loop, &j->work);
}

/* InferStart is durable: now the request may leave. */
static void infer_saved(int rv, void *user)
{
	struct run *r = user;
	struct infer_job *j = r->call.job;

	/* A later call's job waits for its own InferStart. */
	if (!j || r->call.state != CALL_SAVE)
		return;
	rv = run_open_folder(r, &j->err);
	if (rv != 0) {
		infer_fail(j, rv, rv == AVA_ENOENT ? "folder_gone" : err_word(rv), j->err.text);
		return;
	}
	r->call.state = CALL_WORK;
	if (r->spec->model->dialect->answer) /* a local model works from here on */
		r->call.cut.cost_microusd = -1;
	if (infer_build_at_once(j)) {
		infer_built(j);
		return;
	}
	infer_work_start(j);
}

/* Without building the request: the prefix is kept running. */
int infer_hash(const struct run *r, const struct agent_infer *call, char prefix[HASH_HEX_LEN + 1],
	       char request[HASH_HEX_LEN + 1])
{
	const struct model *m = r->spec->model;
	struct buf tail;
	int rv;

	hash_sha256_with(&r->rec.prefix, NULL, 0, prefix);
	buf_init(&tail, 1u << 16);
	rv = m->dialect->encode_tail(&tail, m, r->spec->thinking, call);
	if (rv == 0)
		hash_sha256_with(&r->rec.prefix, tail.data, tail.len, request);
	buf_fini(&tail);
	return rv;
}

/* Write InferStart; infer_saved goes on. */
static int infer_begin(struct infer_job *j)
{
	struct run *r = j->run;
	char prefix[HASH_HEX_LEN + 1], request[HASH_HEX_LEN + 1], *id = r->call.id;
	struct draft *d = commit_draft(r);

	if (!d || infer_hash(r, &j->call, prefix, request) != 0)
		return AVA_ENOMEM;
	r->call.state = CALL_SAVE;
	r->call.cut = (struct usage){0}; /* nothing is sent yet */
	if (++r->call.attempts > 1)
		snprintf(id, sizeof(r->call.id), "i%d.%u", j->call.iteration, r->call.attempts);
	else
		snprintf(id, sizeof(r->call.id), "i%d", j->call.iteration);
	r->call.started_ms = clock_mono_ms();
	if (!r->started_wall_ms)
		r->started_wall_ms = clock_wall_ms();
	if (!r->call.why) /* `why` is shown until something better is known */
		run_activity(r, "Thinking");
	record_infer_start(d, r, &j->call, prefix, request);
	r->rec.position_due = true;
	commit_flush(r, JOURNAL_RIDE, infer_saved);
	return 0;
}

static void infer_money_came(struct budget_hold *h, int rv)
{
	struct run *r = CONTAINER_OF(h, struct run, call.hold);
	struct infer_job *j = r->call.job;
	char text[500];

	if (rv == 0) {
		j->call.max_output = money_lowered(r, j->call.max_output);
		infer_fail_code(j, infer_gate(j));
		return;
	}
	money_refused(r, text, sizeof(text));
	infer_fail(j, AVA_EBUDGET, err_word(AVA_EBUDGET), text);
}

static int infer_ask_money(struct infer_job *j)
{
	struct run *r = j->run;
	char text[sizeof(r->activity)];
	int rv;

	r->call.state = CALL_MONEY;
	r->call.hold.go = infer_money_came;
	rv = money_ask(r, j->call.max_output);
	if (rv == BUDGET_WAITS) {
		/* The wait lasts until others have settled; write the last results meanwhile. */
		commit_flush(r, JOURNAL_RIDE, NULL);
		money_waits(r, text, sizeof(text));
		run_activity(r, text);
		return 0;
	}
	if (rv == AVA_EBUDGET)
		money_refused(r, r->agent.reply_error, sizeof(r->agent.reply_error));
	if (rv != 0)
		return rv;
	j->call.max_output = money_lowered(r, j->call.max_output);
	return infer_gate(j);
}

/* The state's own time is over. */
static void infer_due(void *user)
{
	struct run *r = user;
	struct infer_job *j = r->call.job;

	switch (r->call.state) {
	case CALL_GATE:
		infer_waited(j);
		break;
	case CALL_HELD:
		infer_fail_code(j, infer_ask_money(j));
		break;
	case CALL_BUILT:
		infer_may_send(j);
		break;
	case CALL_DELAY:
		infer_deliver(j);
		break;
	case CALL_AGAIN:
		infer_again(j);
		break;
	case CALL_FAILED:
		infer_failed(j);
		break;
	case CALL_NONE:
	case CALL_MONEY:
	case CALL_SAVE:
	case CALL_WORK:
	case CALL_WIRE:
		break;
	}
}

int infer_start(struct agent *a, const struct agent_infer *call)
{
	struct run *r = a->world;
	struct infer_job *j;
	int64_t held_ms;
	char text[160];
	int rv = 0;

	if (!r->call.timer)
		r->call.timer = os_timer_new(r->sup->loop, infer_due, r);
	j = r->call.timer ? calloc(1, sizeof(*j)) : NULL;
	if (!j)
		return AVA_ENOMEM;
	j->run = r;
	j->call = *call;
	j->checked = r->rec.checked;
	j->rehash = j->shows = r->call.changed;
	r->call.changed = false;
	buf_init(&j->body, MESSAGES_MAX);
	r->call.job = j;
	r->call.has_failed = infer_has_failed;
	r->busy++;
	if (r->rec.unnoted) /* `cut` is of the call before */
		(void)commit_draft(r);
	r->call.cut = (struct usage){.cost_microusd = -1};
	if (!call->again) {
		free(r->call.why);
		free(r->call.trouble);
		r->call.why = r->call.trouble = NULL;
		r->call.retry = (struct retry){0};
		r->call.attempts = r->call.late = 0;
		r->call.began_ms = clock_mono_ms();
	}
	held_ms = call->again ? r->call.held_until_ms - clock_mono_ms() : 0;
	if (held_ms > 0) { /* an attempt of an earlier process failed, its wait is not over */
		r->call.state = CALL_HELD;
		os_timer_set(r->call.timer, held_ms);
		commit_flush(r, JOURNAL_RIDE, NULL);
		snprintf(text, sizeof(text), "Waiting %" PRId64 " s for %.80s",
			 (held_ms + 999) / 1000,
			 r->spec->model->dialect->answer ? r->spec->model->id
							 : r->spec->model->provider->name);
		run_activity(r, text);
	} else if (j->rehash) { /* of all that is on disk */
		rv = commit_draft(r) ? 0 : AVA_ENOMEM;
		r->call.state = CALL_SAVE;
		r->rec.position_due = true;
		commit_flush(r, JOURNAL_RIDE, infer_saved);
	} else if (!infer_show_tools(j)) {
		rv = infer_ask_money(j);
	}
	if (rv != 0) {
		r->call.job = NULL;
		r->call.state = CALL_NONE;
		r->busy--;
		free(j);
	}
	return rv;
}

/* ---- stop */

void infer_stop(struct agent *a)
{
	struct run *r = a->world;
	struct infer_job *j = r->call.job;
	enum call_state was = r->call.state;

	room_stop(r);
	if (!j)
		return;
	if (was == CALL_WIRE && !r->call.why) {
		doing_look(r);
		r->call.why = strdup(r->activity);
	}
	r->call.job = NULL;
	r->call.state = CALL_NONE;
	r->call.stopped = true;
	money_stop(r);
	os_timer_stop(r->call.timer);
	j->dropped = true;
	if (was == CALL_WIRE) {
		wirecall_stop(&j->wire, &r->call.cut);
		if (r->call.cut.input + r->call.cut.output == 0)
			r->call.cut.cost_microusd = -1;
	}
	wire_line_leave(&j->ticket);
	if (was != CALL_WORK)
		infer_drop(j);
}

int64_t infer_written(const struct run *r)
{
	const struct stream *s = r->call.state == CALL_WIRE ? r->call.job->wire.stream : NULL;

	return s ? stream_written(s) : -1;
}

void infer_wait_long(struct run *r)
{
	if (r->call.job)
		return;
	os_timer_free(r->call.timer);
	r->call.timer = NULL;
}

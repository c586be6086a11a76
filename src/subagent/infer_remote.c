/* A call to a model service: its place at the gate, the attempt on the wire,
 * and what becomes of one that failed.
 *
 * Each attempt has its own InferStart and InferEnd (i3, i3.2, i3.3 …); the
 * InferEnd of a failed one says when the next follows, so a wait is on disk
 * while it lasts. Of a half reply nothing is stored; it is charged as an
 * estimate. When the wait is over the machine is asked again, so that the
 * limits are looked at before each attempt. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "provider/provider.h"
#include "subagent/infer.h"
#include "subagent/infer_money.h"
#include "subagent/record.h"
#include "subagent/supervisor.h"
#include "subagent/world.h"

#define SHOWN_WAIT_MS 2000 /* longer waits are told in the log */

static struct infer_job *job_of(struct wirecall *w)
{
	return CONTAINER_OF(w, struct infer_job, wire);
}

/* ---- the gate */

static void refused(struct infer_job *j)
{
	const struct provider *p = j->run->spec->model->provider;
	enum reply_class why;
	int64_t for_ms;
	char text[200];

	infer_line_refuses(j->ticket.line, &why, &for_ms);
	snprintf(text, sizeof(text),
		 "%s %s several times in a row: no call is made for %" PRId64
		 " s; %s, then run again",
		 p->name, why == REPLY_BILLING ? "refused the account" : "refused the key",
		 (for_ms + 999) / 1000, why == REPLY_BILLING ? "add credit" : "set a valid key");
	infer_fail(j, AVA_EDENIED, reply_class_word(why), text);
}

static void at_gate(struct infer_ticket *t)
{
	struct infer_job *j = CONTAINER_OF(t, struct infer_job, ticket);

	os_timer_stop(j->run->call.timer);
	if (t->gate.refused) {
		refused(j);
		return;
	}
	if (infer_begin(j) != 0)
		infer_fail(j, AVA_ENOMEM, err_word(AVA_ENOMEM), ava_strerror(AVA_ENOMEM));
}

/* What the request begins with, where the service caches it and another run
 * may begin the same way: the first request of a run. */
static uint64_t shared_head(const struct infer_job *j)
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

/* Another model may be free while all of this one wait. */
static void watch_gate(struct infer_job *j)
{
	size_t n;

	model_fallback(&n);
	if (n > j->run->call.fallbacks)
		os_timer_set(j->run->call.timer, retry_fallback_ms(&retry_default));
}

void infer_remote_waited(struct infer_job *j)
{
	if (!infer_line_closed(j->ticket.line)) {
		watch_gate(j);
		return;
	}
	infer_line_leave(&j->ticket);
	/* Where none can take its place it stands behind the others again. */
	if (!infer_fall_back(j))
		(void)infer_remote_start(j);
}

int infer_remote_start(struct infer_job *j)
{
	struct run *r = j->run;
	const struct model *m = r->spec->model;
	struct infer_line *line = infer_line_get(r->sup->lines, m, &j->err);
	char text[64];

	if (!line) {
		infer_fail(j, j->err.code, err_word(j->err.code), j->err.text);
		return 0;
	}
	j->ticket.go = at_gate;
	infer_line_want(line, &j->ticket, shared_head(j));
	if (j->state == INFER_GATE) {
		/* The results of the last turn do not wait with it. */
		world_flush(r, JOURNAL_RIDE, NULL);
		snprintf(text, sizeof(text), "Waiting for %s", m->provider->name);
		world_activity(r, text);
		watch_gate(j);
	}
	return 0;
}

/* ---- the wire */

static void began(struct wirecall *w)
{
	infer_line_began(&job_of(w)->ticket);
}

static void text_came(const char *s, size_t n, bool thinking, void *user)
{
	struct run *r = user;

	r->sup->on_text(r, s, n, thinking);
}

/* A failed call, as the run is charged for it: what the service told of the
 * half reply, and an estimate of what it did not. */
static void charge(struct infer_job *j, const struct wirecall_end *end, struct usage *u)
{
	struct run *r = j->run;

	*u = end->error.usage;
	if (u->input + u->output == 0)
		u->cost_microusd = -1;
	u->estimated = true;
	if (end->accepted && u->input == 0)
		u->input = r->rec.request_bytes / 4;
	agent_charge(&r->agent, u);
	infer_money_settle(r);
}

static void write_failure(struct infer_job *j, const struct wirecall_end *end,
			  const struct usage *u, int64_t retry_ms)
{
	struct run *r = j->run;
	struct draft *d = world_draft(r);
	struct record_failure f = {
		.error_class = reply_class_word(end->failure.cls),
		.sentence = end->error.text,
		.request_id = end->error.request_id,
		.usage = u,
		.retry_ms = retry_ms,
	};
	char text[160];

	if (!d)
		return;
	record_infer_failed(d, r, &f);
	if (retry_ms < 0)
		return; /* rides with the end */
	snprintf(text, sizeof(text), "Waiting %" PRId64 " s for %s (%s)", (retry_ms + 999) / 1000,
		 r->spec->model->provider->name, reply_class_word(end->failure.cls));
	if (retry_ms > 0)
		world_activity(r, text);
	if (retry_ms >= SHOWN_WAIT_MS)
		record_activity(d, r, text);
	world_flush(r, JOURNAL_RIDE, NULL);
}

/* What a run ends with that got no reply. */
static void sentence(const struct infer_job *j, const struct wirecall_end *end,
		     const struct retry_plan *plan, char *text, size_t size)
{
	struct run *r = j->run;
	const struct model *m = r->spec->model;
	struct retry_words w = {
		.provider = m->provider->name,
		.model = m->id,
		.key_name = m->provider->key_name,
		.base_url = m->provider->base_url,
		.text = end->error.text,
		.status = end->failure.status,
		.context = m->context,
	};

	retry_sentence(&r->call.retry, plan, end->failure.cls, &w, clock_mono_ms(), text, size);
}

static void give_up(struct infer_job *j, const struct wirecall_end *end,
		    const struct retry_plan *plan)
{
	char text[sizeof(j->run->agent.reply_error)];

	sentence(j, end, plan, text, sizeof(text));
	infer_fail(j, AVA_ECONNECT, reply_class_word(end->failure.cls), text);
}

/* The machine makes room and asks again, or ends the run by this sentence: that is
 * not known yet, so the event does not say that it is tried again. */
static void too_large(struct infer_job *j, const struct wirecall_end *end, const struct usage *u,
		      const struct retry_plan *plan)
{
	struct run *r = j->run;
	char text[sizeof(r->agent.reply_error)];

	write_failure(j, end, u, -1);
	world_flush(r, JOURNAL_RIDE, NULL);
	sentence(j, end, plan, text, sizeof(text));
	agent_on_overflow(&r->agent, text);
	world_wake(r);
	infer_drop(j);
}

static void attempt_failed(struct infer_job *j, struct wirecall_end *end)
{
	struct run *r = j->run;
	struct retry_when when = {clock_mono_ms(), clock_wall_ms(), r->agent.deadline_ms, 0};
	struct retry_plan plan;
	struct usage u;
	bool again;

	id_random(&when.chance, sizeof(when.chance));
	retry_decide(&r->call.retry, &retry_default, &end->failure, &when, &plan);
	infer_line_end(&j->ticket, end->failure.cls, plan.wait_ms);
	charge(j, end, &u);
	if (plan.verdict == RETRY_FINAL && end->failure.cls == REPLY_BAD_REQUEST &&
	    infer_repair(j, end->error.field))
		plan = (struct retry_plan){.verdict = RETRY_AGAIN};
	again = plan.verdict == RETRY_AGAIN;
	if (!again && end->failure.cls == REPLY_OVERFLOW) {
		too_large(j, end, &u, &plan);
		return;
	}
	write_failure(j, end, &u, again ? plan.wait_ms : -1);
	if (retry_fallback_due(&r->call.retry, &retry_default, &end->failure, &plan,
			       when.mono_ms) &&
	    infer_fall_back(j))
		return;
	if (!again) {
		give_up(j, end, &plan);
		return;
	}
	j->state = INFER_PARKED;
	os_timer_set(r->call.timer, plan.wait_ms);
}

static void done(struct wirecall *w, struct wirecall_end *end)
{
	struct infer_job *j = job_of(w);

	if (end->failure.cls != REPLY_OK) {
		attempt_failed(j, end);
		return;
	}
	infer_line_end(&j->ticket, REPLY_OK, 0);
	infer_reply(j, end->turn);
}

static struct http_timers timers_of(const struct settings *s)
{
	return (struct http_timers){
		.connect_ms = s->net_connect_s * 1000,
		.first_ms = s->net_first_s * 1000,
		.idle_ms = s->net_idle_s * 1000,
		.total_ms = s->net_total_s * 1000,
	};
}

void infer_remote_send(struct infer_job *j)
{
	struct run *r = j->run;
	const struct model *m = r->spec->model;
	char tag[40];
	int rv;

	j->state = INFER_WIRE;
	j->wire.on_began = began;
	j->wire.on_done = done;
	j->wire.http.timers = timers_of(r->sup->settings);
	if (r->place && r->sup->on_text) {
		j->wire.on_text = text_came;
		j->wire.text_user = r;
	}
	snprintf(tag, sizeof(tag), "%s_%d", r->id.text + 2, j->call.iteration);
	rv = provider_require(m->provider, m->id, &j->err);
	if (rv == 0)
		rv = wirecall_start(&j->wire, infer_line_pool(j->ticket.line), m,
				    provider_key(m->provider), tag, &j->body, &j->err);
	r->call.unsent = rv != 0;
	if (rv != 0) {
		j->sent = false;
		infer_fail(j, rv, err_word(rv), j->err.text);
	}
}

void infer_remote_again(struct infer_job *j)
{
	struct run *r = j->run;

	agent_on_again(&r->agent);
	world_wake(r);
	infer_drop(j);
}

void infer_remote_stop(struct infer_job *j)
{
	if (j->state == INFER_WIRE)
		wirecall_stop(&j->wire, &j->run->call.cut);
	infer_line_leave(&j->ticket);
}

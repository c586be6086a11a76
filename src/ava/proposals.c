/* Proposals: quoted, unconfirmed spawns, and their answers (propose.c has the verbs that make and
 * answer them). A proposal is a list of one or more specs with one quote and one answer; a single
 * run is a list of one without a group. Every step is an event in Ava's daily log before anybody
 * hears of it, and a restart reads open proposals from the log.
 *
 * Happy path: the proposal is written and waits; its answer, the runs that it starts and its author
 * go to the disk as one commit; then the runs start (subagent/blocked.c has those that wait for
 * others). While a step is being written nothing else happens to the proposal: two yeses
 * from two channels start one run, since the second waits for the first, and the same answer later
 * hears the same again.
 *
 * What can fail: memory, and the disk; then nothing was started, and the proposal waits on. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/change.h"
#include "ava/proposal.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/words.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "journal/read.h"
#include "subagent/run.h"
#include "subagent/resume.h"
#include "subagent/rights.h"

#define LATER_MS 5000 /* time after which a step that could not be written is tried again */

/* ---- the machine
 *
 *   WRITING ──► PENDING ◄──► ANSWERING ──► CONFIRMED, REJECTED, EXPIRED, REPLACED
 *      └─────────────────────────────────► CONFIRMED (the policy asks nobody)
 */
#define TO(s) (1u << STEP_##s)
static const struct {
	unsigned next;
	bool open; /* an answer is awaited, or not on disk yet */
	const char *shown;
	enum event_kind event; /* the event that leads to the step */
} steps[] = {
	[STEP_WRITING] = {TO(PENDING) | TO(CONFIRMED), false, "pending", EVENT_SpawnProposed},
	[STEP_PENDING] = {TO(ANSWERING), true, "pending", EVENT_SpawnProposed},
	[STEP_ANSWERING] = {TO(PENDING) | TO(CONFIRMED) | TO(REJECTED) | TO(EXPIRED) | TO(REPLACED),
			    true, "pending", EVENT_SpawnProposed},
	[STEP_CONFIRMED] = {0, false, "confirmed", EVENT_SpawnConfirmed},
	[STEP_REJECTED] = {0, false, "rejected", EVENT_SpawnRejected},
	[STEP_EXPIRED] = {0, false, "expired", EVENT_SpawnExpired},
	[STEP_REPLACED] = {0, false, "rejected", EVENT_SpawnRejected},
};

/* The only place that writes p->step. */
static void proposal_move(struct proposal *p, enum proposal_step to)
{
	struct core *c = p->core;

	assert(steps[p->step].next & (1u << to));
	c->npending = c->npending - steps[p->step].open + steps[to].open;
	p->step = to;
	c->nsettled += proposal_settled(p);
}

/* ---- callers that wait for a step */

const char *proposal_state(const struct proposal *p)
{
	return steps[p->step].shown;
}

struct asker *asker_new(struct core *c, op_proposal_fn done, void *user)
{
	struct asker *a = calloc(1, sizeof(*a));
	struct ava_error err = {.code = AVA_ENOMEM, .text = "out of memory"};

	if (!a) {
		done(AVA_ENOMEM, NULL, false, &err, user);
		return NULL;
	}
	*a = (struct asker){.core = c, .done = done, .user = user};
	list_init(&a->node);
	return a;
}

void asker_refuse(struct asker *a, const struct ava_error *err)
{
	list_del(&a->node);
	a->done(err->code, NULL, false, err, a->user);
	free(a);
}

void proposal_tell(struct proposal *p, struct asker *a, bool repeated)
{
	a->repeated = repeated;
	if (p->step == STEP_WRITING || p->step == STEP_ANSWERING) {
		list_add(&p->askers, &a->node);
		return;
	}
	list_del(&a->node);
	a->done(0, p, repeated, NULL, a->user);
	free(a);
}

/* Answers all callers; `err` NULL: the step is on disk. */
static void tell_askers(struct proposal *p, const struct ava_error *err)
{
	struct list all;

	list_init(&all);
	list_splice(&all, &p->askers);
	LIST_EACH (&all, n, tmp) {
		struct asker *a = LIST_ENTRY(n, struct asker, node);

		if (err)
			asker_refuse(a, err);
		else
			proposal_tell(p, a, a->repeated);
	}
}

/* A failed sync leaves open what a power cut now would leave on the disk. */
static void not_saved(struct ava_error *err, int rv, const char *what, const char *then)
{
	if (rv == AVA_EUNKNOWN)
		err_set(err, rv, "the disk failed while %s was saved: it may or may not hold; %s",
			what, then);
	else
		err_set(err, rv, "%s could not be saved (%s): %s", what, ava_strerror(rv), then);
}

/* ---- life */

void specs_free(struct run_spec **specs, unsigned n)
{
	for (unsigned i = 0; specs && i < n; i++)
		spec_free(specs[i]);
	free(specs);
}

static void answer_free(struct proposal_answer *a)
{
	if (!a)
		return;
	specs_free(a->lowered, a->nlowered);
	free(a->text);
	free(a->by);
	free(a->reason);
	free(a);
}

void proposal_free(struct proposal *p)
{
	struct ava_error err = {.code = AVA_ECANCELED, .text = "the runtime stops"};

	tell_askers(p, &err);
	strmap_del(&p->core->proposals, p->id);
	list_del(&p->node);
	p->core->npending -= steps[p->step].open;
	p->core->nsettled -= proposal_settled(p);
	os_timer_free(p->timer);
	for (unsigned i = 0; i < p->n; i++)
		spec_free(p->specs[i]);
	answer_free(p->answer);
	free(p->specs);
	free(p->runs);
	free(p->quote);
	free(p->message);
	free(p->rest);
	free(p->config);
	free(p->changes);
	free(p->instead);
	free(p);
}

void proposals_free(struct core *c)
{
	while (!list_empty(&c->proposal_order))
		proposal_free(LIST_FIRST(&c->proposal_order, struct proposal, node));
}

static void proposal_late(void *user);

static bool proposals_id_taken(const char *id, void *user)
{
	struct core *c = user;

	return nameset_has(&c->proposal_names, id) != 0;
}

struct proposal *proposal_new(struct core *c, const char *id, size_t n, struct ava_error *err)
{
	struct proposal *p = calloc(1, sizeof(*p));

	if (!p)
		goto fail;
	p->core = c;
	list_init(&p->node);
	list_init(&p->askers);
	if (id)
		snprintf(p->id, sizeof(p->id), "%s", id);
	else
		id_short('P', proposals_id_taken, c, p->id);
	p->specs = calloc(n, sizeof(struct run_spec *));
	p->runs = calloc(n, sizeof(struct run *));
	p->timer = os_timer_new(c->loop, proposal_late, p);
	if (p->specs && p->runs && p->timer) {
		p->n = (unsigned)n;
		return p;
	}
	proposal_free(p);

fail:
	err_set(err, AVA_ENOMEM, "out of memory");
	return NULL;
}

/* Number in the conversation; a proposal that replaces another takes over its number. */
static unsigned proposals_number_of(const struct proposal *p)
{
	const char *session = p->specs[0]->session_id;
	unsigned n = 0;

	LIST_EACH (&p->core->proposal_order, node, tmp) {
		const struct proposal *other = LIST_ENTRY(node, struct proposal, node);

		if (strcmp(other->id, p->replaces) == 0)
			return other->number;
		if (!proposal_settled(other) && other->specs[0] &&
		    strcmp(other->specs[0]->session_id, session) == 0)
			n = MAX(n, other->number);
	}
	return n + 1;
}

int proposal_enlist(struct proposal *p, int64_t created_ms)
{
	struct core *c = p->core;
	struct quote q;
	struct buf quote, text, rest, config;

	p->number = proposals_number_of(p);
	snprintf(p->session, sizeof(p->session), "%s", p->specs[0]->session_id);
	p->lsn = journal_lsn(c->journal, 0);
	LIST_EACH (&c->proposal_order, node, tmp) {
		const struct proposal *old = LIST_ENTRY(node, struct proposal, node);

		if (strcmp(old->id, p->replaces) == 0)
			p->lsn = MIN(p->lsn, old->lsn);
	}
	p->created_ms = created_ms;
	snprintf(p->order, sizeof(p->order), "%s", p->specs[0]->order.id);
	p->expires_ms = created_ms + c->settings.proposal_expiry_s * 1000;
	if (p->order[0])
		p->expires_ms = created_ms + c->on_proposal.order_patience(
						     c, p->order, p->expires_ms - created_ms);
	snprintf(p->group_id, sizeof(p->group_id), "%s", p->specs[0]->group.id);
	quote_make(&c->sup.quotes, p->specs, p->n, &q);
	p->cost_microusd = q.cost_microusd;
	buf_init(&quote, 4u << 20);
	buf_init(&text, 1u << 20);
	buf_init(&rest, 32u << 20);
	buf_init(&config, 64u << 20);
	quote_encode(&quote, &c->sup.quotes, p->specs, p->n);
	if (p->number > 1)
		buf_addf(&text, WORDS_QUOTE_NUMBER(p->number, p->id));
	quote_text(&text, &c->sup.quotes, p->specs, p->n, p->id, p->instead);
	(void)quote_rest(&rest, p->specs, p->n);
	if (quote_config(&config, p->specs, p->n) == 0)
		hash_sha256_hex(config.data, config.len, p->hash);
	p->quote = buf_take(&quote, NULL);
	p->message = buf_take(&text, NULL);
	p->rest = buf_take(&rest, NULL);
	p->config = buf_take(&config, NULL);
	if (!p->quote || !p->message || !p->rest || !p->config ||
	    nameset_add(&c->proposal_names, p->id) != 0 || strmap_put(&c->proposals, p->id, p) != 0)
		return AVA_ENOMEM;
	list_add_front(&c->proposal_order, &p->node);
	return 0;
}

/* The first spec of a proposal: its session and user are the proposal's. */
static const struct run_spec *lead_of(const struct proposal *p)
{
	return p->specs[0] ? p->specs[0] : p->runs[0]->spec;
}

/* WRITING or ANSWERING to PENDING. */
static void proposal_pend(struct proposal *p, int64_t least_ms)
{
	proposal_move(p, STEP_PENDING);
	os_timer_set(p->timer, MAX(p->expires_ms - clock_wall_ms(), least_ms));
}

/* Ends in `to`. Settled proposals stay for a day, the newest SETTLED_MAX of them, so that a
 * repeated answer hears the same. */
static void proposal_settle(struct proposal *p, enum proposal_step to)
{
	struct core *c = p->core;

	proposal_move(p, to);
	os_timer_set(p->timer, REQUEST_AGE_MS);
	for (struct list *n = c->proposal_order.prev;
	     c->nsettled > SETTLED_MAX && n != &c->proposal_order;) {
		struct proposal *old = LIST_ENTRY(n, struct proposal, node);

		n = n->prev;
		if (old != p && proposal_settled(old))
			proposal_free(old);
	}
}

/* ---- what is written of a step */

static void event_open(struct buf *b, struct jw *w)
{
	buf_init(b, 4u << 20);
	jw_init(w, b);
	jw_object(w, NULL);
}

static void write_proposed(struct draft *d, const struct proposal *p)
{
	const struct run_spec *s = p->specs[0];
	struct buf b;
	struct jw w;

	event_open(&b, &w);
	jw_str(&w, "proposalId", p->id);
	jw_raw(&w, "quote", p->quote, strlen(p->quote));
	jw_raw(&w, "config", p->config, strlen(p->config));
	jw_str(&w, "configHash", p->hash);
	jw_str(&w, "requestId", s->request_id);
	if (p->replaces[0])
		jw_str(&w, "replaces", p->replaces);
	jw_end(&w);
	core_event(p->core, d, EVENT_SpawnProposed, s->session_id, s->user_id, &b);
}

/* Writes a person's words without the secrets in them. */
static void write_typed(struct core *c, struct jw *w, const char *key, const char *text)
{
	struct buf clean;

	buf_init(&clean, 1u << 20);
	if (!c->redact)
		jw_preview(w, key, text, strlen(text), EVENT_PREVIEW_CHARS);
	else if (redact_text(c->redact, &clean, text, strlen(text)) < 0)
		jw_str(w, key, "(left out: too large to look for secrets)");
	else
		jw_preview(w, key, clean.data ? clean.data : "", clean.len, EVENT_PREVIEW_CHARS);
	buf_fini(&clean);
}

/* UserMessage of the answer, if it had words. */
static void proposals_write_said(struct draft *d, const struct proposal *p)
{
	const struct run_spec *s = lead_of(p);
	struct buf b;
	struct jw w;

	if (!p->answer->text)
		return;
	event_open(&b, &w);
	write_typed(p->core, &w, "text", p->answer->text);
	if (p->answer->origin[0])
		jw_str(&w, "origin", p->answer->origin);
	jw_end(&w);
	core_event(p->core, d, EVENT_UserMessage, s->session_id, s->user_id, &b);
}

/* SpawnConfirmed (as quoted, or both hashes and the changes), SpawnRejected or SpawnExpired. */
static void write_answer(struct draft *d, const struct proposal *p)
{
	const struct proposal_answer *a = p->answer;
	const struct run_spec *s = lead_of(p);
	enum event_kind kind = steps[a->to].event;
	struct buf b, config;
	struct jw w;

	event_open(&b, &w);
	jw_str(&w, "proposalId", p->id);
	if (kind != EVENT_SpawnExpired)
		write_typed(p->core, &w, "by", a->by);
	if (a->origin[0])
		jw_str(&w, "origin", a->origin);
	if (kind == EVENT_SpawnRejected)
		write_typed(p->core, &w, "reason", a->reason);
	if (a->successor)
		jw_str(&w, "replacedBy", a->successor->id);
	if (kind == EVENT_SpawnConfirmed) {
		if (p->order[0])
			jw_str(&w, "orderId", p->order);
		else
			jw_str(&w, "subagentId", p->run);
		if (p->group_id[0])
			jw_str(&w, "groupId", p->group_id);
		jw_str(&w, "configHash", p->confirmed_hash);
		if (a->all_three)
			jw_bool(&w, "allThree", true);
	}
	if (p->changes) {
		jw_str(&w, "quotedHash", p->hash);
		jw_str(&w, "changes", p->changes);
		buf_init(&config, 64u << 20);
		if (quote_config(&config, a->lowered, a->nlowered) == 0)
			jw_raw(&w, "config", config.data, config.len);
		buf_fini(&config);
	}
	jw_end(&w);
	core_event(p->core, d, kind, s->session_id, s->user_id, &b);
}

/* ---- its runs */

/* Spawns the runs in the commit of the yes. On error proposal_unstart takes back what was done. */
static int proposal_spawn(struct proposal *p, struct draft *d, struct ava_error *err)
{
	struct run_spec **specs = p->answer->lowered ? p->answer->lowered : p->specs;
	const char *request = specs[0]->request_id;
	int rv = 0;

	if (p->order[0])
		return p->core->on_proposal.order_yes(p->core, specs[0], p->answer->by,
						      p->answer->origin, d, err);
	for (unsigned i = 0; rv == 0 && i < p->n; i++) {
		rv = supervisor_spawn(&p->core->sup, specs[i], p->id, d, &p->runs[i], err);
		if (rv == 0 && specs == p->specs)
			p->specs[i] = NULL; /* the run owns the spec now */
	}
	if (rv != 0)
		return rv;
	snprintf(p->run, sizeof(p->run), "%s", p->runs[0]->id.text);
	snprintf(p->trace, sizeof(p->trace), "%s", p->runs[0]->trace.text);
	group_fork(p->runs[0], d);
	rv = core_remember(p->core, request, p->created_ms, p->id, p->run, p->trace);
	return rv == 0 ? 0 : err_set(err, rv, "out of memory");
}

static void proposal_start(struct proposal *p)
{
	if (p->order[0]) {
		p->core->on_proposal.order_saved(p->core, p->order, 0);
		p->core->on_proposal.answered(p->core, p, p->session, NULL);
	}
	for (unsigned i = 0; i < p->n; i++) {
		struct run *r = p->runs[i];

		/* A spec left here has no run of its own: a lowered one runs instead. */
		spec_free(p->specs[i]);
		p->specs[i] = NULL;
		p->runs[i] = NULL;
		if (!r)
			continue;
		supervisor_start(r);
		p->core->on_proposal.answered(p->core, p, r->spec->session_id, r);
	}
}

/* Takes back the runs of a confirmation that certainly did not reach the disk. */
static void proposal_unstart(struct proposal *p)
{
	struct request *q;

	if (p->order[0])
		p->core->on_proposal.order_saved(p->core, p->order, AVA_EIO);

	for (unsigned i = 0; i < p->n; i++) {
		struct run *r = p->runs[i];

		if (!r)
			continue;
		if (!p->specs[i])
			p->specs[i] = r->spec; /* else the spec belongs to the answer */
		r->spec = NULL;
		supervisor_discard(r);
		p->runs[i] = NULL;
	}
	p->run[0] = p->trace[0] = 0;
	q = core_request(p->core, p->specs[0]->request_id);
	if (q)
		q->run[0] = q->trace[0] = 0;
}

/* ---- ANSWERING */

/* `a` is *taken*. A PENDING proposal becomes ANSWERING; in WRITING the policy says yes. */
static void answer_begin(struct proposal *p, struct proposal_answer *a)
{
	p->answer = a;
	if (p->step == STEP_PENDING)
		proposal_move(p, STEP_ANSWERING);
	/* An answer repeated meanwhile is compared with these fields and waits for this commit. */
	if (a->to == STEP_CONFIRMED)
		snprintf(p->confirmed_hash, sizeof(p->confirmed_hash), "%s",
			 a->lowered ? a->hash : p->hash);
	if (a->successor)
		snprintf(p->replaced_by, sizeof(p->replaced_by), "%s", a->successor->id);
}

/* Takes back an unwritten answer: the proposal waits on, or (WRITING) is the caller's to free. The
 * timer is set anew, since the proposal may have expired meanwhile. */
static void answer_undo(struct proposal *p)
{
	struct proposal *q = p->answer->successor;

	proposal_unstart(p);
	answer_free(p->answer);
	p->answer = NULL;
	free(p->changes);
	p->changes = NULL;
	p->confirmed_hash[0] = p->replaced_by[0] = 0;
	if (q)
		proposal_free(q);
	if (p->step == STEP_ANSWERING)
		proposal_pend(p, LATER_MS);
}

static void answer_failed(struct proposal *p, int rv, const struct ava_error *err)
{
	if (p->answer->successor)
		tell_askers(p->answer->successor, err);
	answer_undo(p);
	tell_askers(p, err);
}

/* The answer is on disk. */
static void answer_saved(struct proposal *p)
{
	struct proposal_answer *a = p->answer;
	struct proposal *q = a->successor;

	p->answer = NULL;
	proposal_settle(p, a->to);
	if (q) {
		proposal_pend(q, 0);
		/* A repeated request gets the successor. Its entry exists, so no memory is
		 * needed. */
		(void)core_remember(p->core, q->specs[0]->request_id, q->created_ms, q->id, "", "");
	}
	if (a->to == STEP_CONFIRMED) {
		for (unsigned i = 0; a->lowered && i < a->nlowered; i++)
			if (p->runs[i])
				a->lowered[i] = NULL; /* the run owns the spec now */
		proposal_start(p);
	} else {
		p->core->on_proposal.answered(p->core, p, p->specs[0]->session_id, NULL);
	}
	answer_free(a);
	tell_askers(p, NULL);
	if (q)
		tell_askers(q, NULL);
}

static void proposals_answered(int rv, void *user)
{
	struct proposal *p = user;
	struct ava_error err = {0};

	if (rv == 0) {
		answer_saved(p);
		return;
	}
	not_saved(&err, rv, "the answer",
		  p->answer->successor
			  ? "look at `ava proposals` and answer again"
			  : "nothing was started now; look at `ava proposals` and answer again");
	answer_failed(p, rv, &err);
}

/* Puts the answer and all its effects into `d`. */
static int answer_put(struct proposal *p, struct draft *d, struct ava_error *err)
{
	struct proposal_answer *a = p->answer;
	int rv = 0;

	if (a->lowered) {
		p->changes = change_words(p->specs, a->lowered, p->n);
		rv = p->changes ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
	}
	if (rv == 0)
		proposals_write_said(d, p);
	if (rv == 0 && a->to == STEP_CONFIRMED)
		rv = proposal_spawn(p, d, err);
	if (rv != 0)
		return rv;
	write_answer(d, p);
	p->core->on_proposal.answering(p->core, d, p, lead_of(p)->session_id);
	if (a->successor)
		write_proposed(d, a->successor);
	return 0;
}

static int answer_write(struct proposal *p, struct ava_error *err)
{
	struct draft *d = draft_new(&p->core->book);
	int rv = d ? answer_put(p, d, err) : err_set(err, AVA_ENOMEM, "out of memory");

	if (rv == 0)
		return draft_commit(d, JOURNAL_NOW, proposals_answered, p, err);
	draft_free(d);
	return rv;
}

/* The ended run that this one goes on from was read again. */
static void proposals_prepared(int rv, struct run_spec *spec, const struct op_spawn *s,
			       const struct ava_error *why, void *user)
{
	struct proposal *p = user;
	struct ava_error err = {0};

	if (rv != 0)
		err = *why;
	else
		rv = answer_write(p, &err);
	if (rv != 0)
		answer_failed(p, rv, &err);
}

int proposal_answer(struct proposal *p, struct proposal_answer *a, struct ava_error *err)
{
	bool asks_more = a->to == STEP_CONFIRMED || a->to == STEP_REPLACED;
	struct run_spec *s = a->lowered ? a->lowered[0] : p->specs[0];
	int rv;

	answer_begin(p, a);
	rv = asks_more ? core_ready(p->core, err) : 0;
	if (rv == 0 && a->to == STEP_CONFIRMED && s->resumed_from[0] && !s->resumed)
		rv = resume_again(p->core, s, proposals_prepared, p, err);
	else if (rv == 0)
		rv = answer_write(p, err);
	if (rv != 0)
		answer_undo(p);
	return rv;
}

struct proposal_answer *proposal_answer_new(enum proposal_step to, const char *text, const char *by,
					    const char *reason)
{
	struct proposal_answer *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->to = to;
	a->text = text ? strdup(text) : NULL;
	a->by = strdup(by ? by : "");
	a->reason = strdup(reason ? reason : "");
	if (a->by && a->reason && (a->text || !text))
		return a;
	answer_free(a);
	return NULL;
}

/* The timer ran out: an open proposal expires, a settled one is forgotten. */
static void proposal_late(void *user)
{
	struct proposal *p = user;
	struct proposal_answer *none;

	if (proposal_settled(p)) {
		proposal_free(p);
		return;
	}
	/* An answer came just before the timer, or the journal is closed: the next start looks. */
	if (p->step != STEP_PENDING || p->core->book.closed)
		return;
	none = proposal_answer_new(STEP_EXPIRED, NULL, NULL, NULL);
	if (!none)
		os_timer_set(p->timer, LATER_MS);
	else
		(void)proposal_answer(p, none, NULL);
}

/* ---- WRITING */

static void proposals_proposed(int rv, void *user)
{
	struct proposal *p = user;
	struct ava_error err = {0};

	if (rv == 0 && p->answer) {
		answer_saved(p);
		return;
	}
	if (rv == 0) {
		proposal_pend(p, 0);
		tell_askers(p, NULL);
		return;
	}
	if (p->answer)
		answer_undo(p);
	not_saved(&err, rv, "the proposal", "ask again");
	core_forget(p->core, p->specs[0]->request_id);
	tell_askers(p, &err);
	proposal_free(p);
}

static int write_new(struct proposal *p, const char *policy, bool asks, struct ava_error *err)
{
	struct draft *d = draft_new(&p->core->book);
	struct proposal_answer *yes =
		asks ? NULL : proposal_answer_new(STEP_CONFIRMED, NULL, policy, NULL);
	int rv = d && (asks || yes) ? 0 : err_set(err, AVA_ENOMEM, "out of memory");

	if (rv == 0)
		write_proposed(d, p);
	if (rv == 0 && yes) {
		answer_begin(p, yes);
		rv = answer_put(p, d, err);
	} else if (rv == 0) { /* the resumed record is read again when a person says yes */
		resumed_free(p->specs[0]->resumed);
		p->specs[0]->resumed = NULL;
	}
	if (rv == 0) {
		rv = draft_commit(d, JOURNAL_NOW, proposals_proposed, p, err);
		d = NULL;
	}
	draft_free(d);
	if (rv != 0 && p->answer)
		answer_undo(p);
	else if (rv != 0)
		answer_free(yes);
	return rv;
}

int proposal_unasked(struct run_spec *const *specs, unsigned n, struct ava_error *err)
{
	int rv = 0;

	for (unsigned i = 0; i < n && rv == 0; i++)
		rv = spec_fits(specs[i], err);
	if (rv != 0 || !spec_asks_all_three(specs, n))
		return rv;
	return err_set(err, AVA_EDENIED,
		       "nobody is asked, and this " RIGHTS_SENTENCE
		       ". A program asks for it with the grant all_three (ava run --grant "
		       "all_three)");
}

int proposal_open(struct proposal *p, const char *confirm, struct asker *a, struct ava_error *err)
{
	struct core *c = p->core;
	const char *request = p->specs[0]->request_id;
	int64_t over = c->settings.confirm_over_cents;
	bool asks;
	int rv = confirm ? settings_confirm("confirm", confirm, &over, err) : 0;

	if (rv != 0) {
		proposal_free(p);
		return rv;
	}
	rv = proposal_enlist(p, clock_wall_ms());
	if (rv == 0)
		rv = core_remember(c, request, p->created_ms, p->id, "", "");
	/* The quote is an upper bound of the cost. */
	asks = over == SETTINGS_CONFIRM_ALWAYS ||
	       (over != SETTINGS_CONFIRM_NEVER &&
		(p->cost_microusd < 0 || p->cost_microusd > over * 10000));
	if (rv != 0)
		err_set(err, rv, "out of memory");
	else if (!asks && confirm)
		rv = proposal_unasked(p->specs, p->n, err);
	/* The yes to an order is for all its runs: a policy that asks for none of a run is not it.
	 */
	asks |= p->order[0] && !(confirm && over == SETTINGS_CONFIRM_NEVER);
	/* Limits of money do not decide about all three rights, nor about text that nobody saw. */
	asks |= spec_asks_all_three(p->specs, p->n);
	for (unsigned i = 0; i < p->n; i++)
		asks |= p->specs[i]->given & p->specs[i]->rights & TOOL_OUT;
	if (rv == 0)
		rv = write_new(p, confirm ? "confirm of the request" : "confirm of the settings",
			       asks, err);
	if (rv == 0) {
		proposal_tell(p, a, false);
		return 0;
	}
	core_forget(c, request);
	proposal_free(p);
	return rv;
}

/* ---- listing */

struct proposal *proposal_find(struct core *c, const char *id, struct ava_error *err)
{
	struct proposal *p = strmap_get(&c->proposals, id);

	if (!p)
		err_set(err, AVA_ENOENT, "there is no proposal %.40s (ava proposals lists them)",
			id);
	return p;
}

int ops_proposals(struct core *c, bool all, void (*each)(struct proposal *p, void *user),
		  void *user)
{
	int n = 0;

	LIST_EACH (&c->proposal_order, node, tmp) {
		struct proposal *p = LIST_ENTRY(node, struct proposal, node);

		if (!all && proposal_settled(p))
			continue;
		each(p, user);
		n++;
	}
	return n;
}

/* ---- after a restart */

static void proposals_copy_id(char *to, size_t size, const char *from)
{
	if (from)
		snprintf(to, size, "%s", from);
}

static void restore_proposed(struct core *c, const struct ava_log_event *e, const json_t *event)
{
	const json_t *content = json_object_get(event, "content");
	const json_t *config = json_object_get(content, "config");
	const json_t *members = json_object_get(config, "members");
	const char *id = json_get_str(content, "proposalId");
	const char *session = json_get_str(event, "sessionId");
	const char *request = json_get_str(content, "requestId");
	const char *user = json_get_str(event, "userId");
	size_t n = members ? json_array_size(members) : 1;
	int64_t now = clock_wall_ms(), time_ms = e->time_ms;
	struct proposal *p, *old;
	struct request *r;
	int rv = 0;

	if (!id || !id_is_proposal(id) || strmap_get(&c->proposals, id))
		return;
	if (nameset_add(&c->proposal_names, id) != 0) {
		c->sup.took_up = false;
		return;
	}
	if (time_ms < now - REQUEST_AGE_MS || n < 1 || n > SPEC_GROUP_MAX)
		return;
	p = proposal_new(c, id, n, NULL);
	if (!p) {
		c->sup.took_up = false;
		return;
	}
	proposals_copy_id(p->replaces, sizeof(p->replaces), json_get_str(content, "replaces"));
	for (size_t i = 0; rv == 0 && i < n; i++)
		rv = spec_from_json(&p->specs[i], members ? json_array_get(members, i) : config,
				    session, i == 0 ? request : "", user, NULL);
	old = rv == 0 ? strmap_get(&c->proposals, p->replaces) : NULL;
	if (old && old->specs[0] && old->n == p->n)
		p->instead = change_words(old->specs, p->specs, p->n);
	/* A proposal made while the clock was ahead waits as long as one made now. */
	if (rv != 0 || proposal_enlist(p, MIN(time_ms, now)) != 0) {
		c->sup.took_up = false;
		proposal_free(p);
		return;
	}
	p->lsn = MIN(p->lsn, e->lsn);
	proposal_pend(p, 0);
	core_remember(c, p->specs[0]->request_id, p->created_ms, p->id, "", "");
	r = core_request(c, p->specs[0]->request_id);
	if (r)
		r->lsn = MIN(r->lsn, e->lsn);
}

static void restore_answer(struct core *c, const char *type, const json_t *event)
{
	const json_t *content = json_object_get(event, "content");
	const char *id = json_get_str(content, "proposalId");
	const char *changes = json_get_str(content, "changes");
	struct proposal *p = id ? strmap_get(&c->proposals, id) : NULL;

	if (!p || p->step != STEP_PENDING)
		return;
	proposals_copy_id(p->run, sizeof(p->run), json_get_str(content, "subagentId"));
	proposals_copy_id(p->replaced_by, sizeof(p->replaced_by),
			  json_get_str(content, "replacedBy"));
	proposals_copy_id(p->confirmed_hash, sizeof(p->confirmed_hash),
			  json_get_str(content, "configHash"));
	if (changes)
		p->changes = strdup(changes);
	proposal_move(p, STEP_ANSWERING);
	proposal_settle(p, strcmp(type, "SpawnConfirmed") == 0 ? STEP_CONFIRMED
			   : strcmp(type, "SpawnExpired") == 0 ? STEP_EXPIRED
			   : p->replaced_by[0]                 ? STEP_REPLACED
							       : STEP_REJECTED);
}

/* The trace of the first confirmed run: its spawn is in the answer's commit, before or after the
 * answer. */
static void restore_trace(struct core *c, const json_t *event)
{
	const char *id = json_get_str(json_object_get(event, "content"), "proposalId");
	struct proposal *p = id ? strmap_get(&c->proposals, id) : NULL;

	if (p && !p->trace[0] && (!p->run[0] || strcmp(p->run, json_str(event, "agentId")) == 0))
		proposals_copy_id(p->trace, sizeof(p->trace), json_get_str(event, "traceId"));
}

/* Quotes older than a request is remembered, with the time in which a quote waits, are over; so are
 * those that the process before had done with. */
void proposals_restore(struct core *c)
{
	char since[CLOCK_ISO_LEN + 1];
	struct ava_log_query q = {
		.root = c->root,
		.since = since,
		.after = c->sup.settled,
		.types = "SpawnProposed,SpawnConfirmed,SpawnRejected,SpawnExpired,SubagentSpawn",
	};
	struct ava_log_event e;
	struct ava_error err = {0};
	struct ava_log *log;
	int rv;

	clock_iso(clock_wall_ms() - REQUEST_AGE_MS - c->settings.proposal_expiry_s * 1000, since);
	if (read_open_near(&log, &q, &err) != 0) {
		c->sup.took_up = c->sup.took_up && err.code == AVA_ENOENT; /* no daily log yet */
		return;
	}
	while ((rv = ava_log_next(log, &e, NULL)) == 1 || rv == AVA_ECORRUPT) {
		json_t *event = rv == 1 ? json_parse(e.line, e.len, NULL) : NULL;

		if (event && strcmp(e.type, "SpawnProposed") == 0)
			restore_proposed(c, &e, event);
		else if (event && strcmp(e.type, "SubagentSpawn") == 0)
			restore_trace(c, event);
		else if (event)
			restore_answer(c, e.type, event);
		json_decref(event);
	}
	c->sup.took_up = c->sup.took_up && rv == 0;
	ava_log_close(log);
}

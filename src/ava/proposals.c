/* Proposals: quoted, unconfirmed spawns. Every step is an event in Ava's daily
 * log before anybody hears of it, and the log is what brings open proposals
 * back after a restart.
 *
 * While a step is being written nothing else happens to the proposal: whoever
 * asks meanwhile waits and gets the same answer. Two confirmations from two
 * channels start one run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/answer.h"
#include "ava/ended.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/error.h"
#include "codec/json.h"
#include "codec/redact.h"

struct waiter {
	struct list node;
	op_proposal_fn done;
	void *user;
	bool repeated;
};

/* ---- showing */

/* The log of answers has the run's id alone. */
static void find_trace(struct proposal *p)
{
	struct run *r = supervisor_find(&p->core->sup, p->run);
	struct ended e;

	if (r) {
		snprintf(p->trace, sizeof(p->trace), "%s", r->trace.text);
	} else if (ended_read(p->core, p->run, &e, NULL) == 0) {
		snprintf(p->trace, sizeof(p->trace), "%s", e.status.trace_id);
		ended_fini(&e);
	}
}

static void show(struct proposal *p, bool repeated, struct op_proposal *out)
{
	if (p->run[0] && !p->trace[0])
		find_trace(p);
	*out = (struct op_proposal){
		.id = p->id,
		.state = p->state,
		.created_ms = p->created_ms,
		.expires_ms = p->expires_ms,
		.run_id = p->run,
		.trace_id = p->trace,
		.quote_json = p->quote,
		.config_json = p->config,
		.config_hash = p->hash,
		.message = p->message,
		.repeated = repeated,
	};
}

static void reply(struct proposal *p, bool repeated, op_proposal_fn done, void *user)
{
	struct op_proposal out;

	show(p, repeated, &out);
	done(0, &out, NULL, user);
}

static void refuse(op_proposal_fn done, void *user, const struct ava_error *err)
{
	done(err->code, NULL, err, user);
}

static int add_waiter(struct proposal *p, op_proposal_fn done, void *user, bool repeated)
{
	struct waiter *w = calloc(1, sizeof(*w));

	if (!w)
		return AVA_ENOMEM;
	w->done = done;
	w->user = user;
	w->repeated = repeated;
	list_add(&p->waiters, &w->node);
	return 0;
}

static void tell_waiters(struct proposal *p, int rv, const struct ava_error *err)
{
	struct list all;

	list_init(&all);
	list_splice(&all, &p->waiters);
	LIST_EACH (&all, n, tmp) {
		struct waiter *w = LIST_ENTRY(n, struct waiter, node);

		list_del(n);
		if (rv == 0)
			reply(p, w->repeated, w->done, w->user);
		else
			w->done(rv, NULL, err, w->user);
		free(w);
	}
}

/* ---- life */

static void proposal_free(struct proposal *p)
{
	struct ava_error err = {.code = AVA_ECANCELED, .text = "the runtime stops"};

	tell_waiters(p, AVA_ECANCELED, &err);
	map_del(&p->core->proposals, p->id);
	list_del(&p->node);
	if (p->state != PROPOSAL_PENDING)
		p->core->nsettled--;
	os_timer_free(p->timer);
	spec_free(p->spec);
	free(p->quote);
	free(p->message);
	free(p->config);
	free(p);
}

void proposals_free(struct core *c)
{
	while (!list_empty(&c->proposal_order))
		proposal_free(LIST_FIRST(&c->proposal_order, struct proposal, node));
}

static void expire(void *user);

static struct proposal *proposal_new(struct core *c)
{
	struct proposal *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->core = c;
	list_init(&p->node);
	list_init(&p->waiters);
	p->timer = os_timer_new(c->loop, expire, p);
	if (!p->timer) {
		free(p);
		return NULL;
	}
	return p;
}

static int proposal_enlist(struct core *c, struct proposal *p)
{
	if (map_put(&c->proposals, p->id, p) != 0)
		return AVA_ENOMEM;
	list_add_front(&c->proposal_order, &p->node);
	return 0;
}

/* Answered ones are kept for a while, for whoever asks again: a day, and the
 * newest SETTLED_MAX of them. */
static void settle(struct proposal *p, enum proposal_state state)
{
	struct core *c = p->core;

	if (p->state == PROPOSAL_PENDING)
		c->npending--;
	p->state = state;
	os_timer_set(p->timer, REQUEST_AGE_MS);
	for (struct list *n = c->proposal_order.prev;
	     ++c->nsettled > SETTLED_MAX && n != &c->proposal_order;) {
		struct proposal *old = LIST_ENTRY(n, struct proposal, node);

		n = n->prev;
		c->nsettled--;
		if (old != p && old->state != PROPOSAL_PENDING && !old->writing)
			proposal_free(old);
	}
}

static const char *rationale(const struct run_spec *s)
{
	return s->role->summary;
}

static int make_texts(struct core *c, struct proposal *p)
{
	struct quote q;
	struct buf quote, text;

	quote_make(&c->sup.quotes, p->spec, &q);
	buf_init(&quote, 1u << 16);
	buf_init(&text, 1u << 16);
	quote_encode(&quote, &q, p->spec, rationale(p->spec));
	quote_text(&text, &q, p->spec);
	p->quote = buf_take(&quote, NULL);
	p->message = buf_take(&text, NULL);
	p->config = strndup(p->spec->config, p->spec->config_len);
	memcpy(p->hash, p->spec->hash, sizeof(p->hash));
	return p->quote && p->message && p->config ? 0 : AVA_ENOMEM;
}

/* ---- proposing */

static bool id_taken(const char *id, void *user)
{
	struct core *c = user;

	return nameset_has(&c->proposal_names, id) != 0;
}

static void write_proposed(struct core *c, struct draft *d, const struct proposal *p)
{
	struct buf b;
	struct jw w;

	buf_init(&b, 4u << 20);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "proposalId", p->id);
	jw_raw(&w, "quote", p->quote, strlen(p->quote));
	jw_raw(&w, "config", p->config, strlen(p->config));
	jw_str(&w, "configHash", p->hash);
	jw_str(&w, "requestId", p->spec->request_id);
	jw_end(&w);
	core_event(c, d, EVENT_SpawnProposed, p->spec->session_id, p->spec->user_id, &b);
}

/* After a failed sync nobody can say what a power cut now would leave. */
static void not_saved(struct ava_error *err, int rv, const char *what, const char *then)
{
	if (rv == AVA_EUNKNOWN)
		err_set(err, rv, "the disk failed while %s was saved: it may or may not hold; %s",
			what, then);
	else
		err_set(err, rv, "%s could not be saved (%s): %s", what, ava_strerror(rv), then);
}

static void proposed(int rv, void *user)
{
	struct proposal *p = user;
	struct ava_error err = {0};

	p->writing = false;
	if (rv == 0) {
		p->core->npending++;
		os_timer_set(p->timer, MAX(p->expires_ms - clock_wall_ms(), 0));
		tell_waiters(p, 0, NULL);
		return;
	}
	not_saved(&err, rv, "the proposal", "ask again");
	core_forget(p->core, p->spec->request_id);
	tell_waiters(p, rv, &err);
	proposal_free(p);
}

static int propose(struct core *c, const struct op_spawn *s, struct proposal **out,
		   struct ava_error *err)
{
	struct proposal *p = NULL;
	struct draft *d = NULL;
	int rv = core_ready(c, err);

	if (rv != 0)
		return rv;
	if (c->npending >= 1000)
		return err_set(err, AVA_EBUSY,
			       "1000 proposals wait for an answer: confirm or reject some");
	p = proposal_new(c);
	d = draft_new(&c->book);
	if (!p || !d) {
		rv = err_set(err, AVA_ENOMEM, "out of memory");
		goto fail;
	}
	rv = spec_build(&p->spec, s, &c->settings, c->model, c->redact, err);
	if (rv != 0)
		goto fail;
	id_short('P', id_taken, c, p->id);
	p->created_ms = clock_wall_ms();
	p->expires_ms = p->created_ms + c->settings.proposal_expiry_s * 1000;
	p->writing = true;
	rv = make_texts(c, p);
	if (rv == 0)
		rv = nameset_add(&c->proposal_names, p->id);
	if (rv == 0)
		rv = proposal_enlist(c, p);
	if (rv == 0)
		rv = core_remember(c, p->spec->request_id, p->created_ms, p->id, "", "");
	if (rv != 0) {
		err_set(err, rv, "out of memory");
		goto fail;
	}
	write_proposed(c, d, p);
	rv = draft_commit(d, JOURNAL_NOW, proposed, p, err);
	d = NULL;
	if (rv != 0) {
		core_forget(c, p->spec->request_id);
		goto fail;
	}
	*out = p;
	return 0;

fail:
	draft_free(d);
	if (p)
		proposal_free(p);
	return rv;
}

void ops_propose(struct core *c, const struct op_spawn *s, op_proposal_fn done, void *user)
{
	struct request *known = core_request(c, s->request_id);
	struct proposal *p =
		known && known->proposal[0] ? map_get(&c->proposals, known->proposal) : NULL;
	struct ava_error err = {0};

	if (known && !p) {
		err_set(&err, AVA_EEXIST, "request %s already started run %s", s->request_id,
			known->run[0] ? known->run : "(forgotten)");
		refuse(done, user, &err);
		return;
	}
	if (!p && propose(c, s, &p, &err) != 0) {
		refuse(done, user, &err);
		return;
	}
	if (known && !p->writing)
		reply(p, true, done, user);
	else if (add_waiter(p, done, user, known != NULL) != 0) {
		err_set(&err, AVA_ENOMEM, "out of memory");
		refuse(done, user, &err);
	}
}

/* ---- answering */

/* The run of a confirmation that certainly did not happen. */
static void unstart(struct proposal *p)
{
	struct request *q;

	if (!p->starting)
		return;
	p->spec = p->starting->spec;
	p->starting->spec = NULL;
	supervisor_discard(p->starting);
	p->starting = NULL;
	p->run[0] = p->trace[0] = 0;
	q = core_request(p->core, p->spec->request_id);
	if (q)
		q->run[0] = q->trace[0] = 0;
}

static void answered(int rv, void *user)
{
	struct proposal *p = user;
	struct ava_error err = {0};

	p->writing = false;
	if (rv != 0) {
		unstart(p);
		not_saved(&err, rv, "the answer",
			  "nothing was started now; look at `ava proposals` and answer again");
		tell_waiters(p, rv, &err);
		return;
	}
	settle(p, (enum proposal_state)p->writing_to);
	if (p->starting) {
		struct run *r = p->starting;

		p->starting = NULL;
		supervisor_start(r);
	}
	tell_waiters(p, 0, NULL);
}

/* What a person typed, without the secrets in it. */
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

static void write_text(struct core *c, struct draft *d, const struct proposal *p, const char *text)
{
	struct buf b;
	struct jw w;

	buf_init(&b, 65536);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	write_typed(c, &w, "text", text);
	jw_end(&w);
	core_event(c, d, EVENT_UserMessage, p->spec->session_id, p->spec->user_id, &b);
}

/* SpawnConfirmed, SpawnRejected or SpawnExpired. */
static void write_answer(struct core *c, struct draft *d, const struct proposal *p,
			 enum event_kind kind, const char *by, const char *reason)
{
	const char *session = p->spec ? p->spec->session_id : p->starting->spec->session_id;
	const char *user = p->spec ? p->spec->user_id : p->starting->spec->user_id;
	struct buf b;
	struct jw w;

	buf_init(&b, 65536);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "proposalId", p->id);
	if (kind != EVENT_SpawnExpired)
		write_typed(c, &w, "by", by);
	if (kind == EVENT_SpawnRejected)
		write_typed(c, &w, "reason", reason);
	if (kind == EVENT_SpawnConfirmed)
		jw_str(&w, "subagentId", p->run);
	jw_end(&w);
	core_event(c, d, kind, session, user, &b);
}

static int start_run(struct core *c, struct proposal *p, struct draft *d, struct ava_error *err)
{
	int rv = supervisor_spawn(&c->sup, p->spec, p->id, d, &p->starting, err);

	if (rv != 0)
		return rv;
	p->spec = NULL; /* the run has it */
	snprintf(p->run, sizeof(p->run), "%s", p->starting->id.text);
	snprintf(p->trace, sizeof(p->trace), "%s", p->starting->trace.text);
	rv = core_remember(c, p->starting->spec->request_id, p->created_ms, p->id, p->run,
			   p->trace);
	return rv == 0 ? 0 : err_set(err, rv, "out of memory");
}

/* Write the step to `state`; the waiters hear of it. */
static int step(struct proposal *p, enum proposal_state state, const char *text, const char *by,
		const char *reason, struct ava_error *err)
{
	static const enum event_kind kinds[] = {
		[PROPOSAL_CONFIRMED] = EVENT_SpawnConfirmed,
		[PROPOSAL_REJECTED] = EVENT_SpawnRejected,
		[PROPOSAL_EXPIRED] = EVENT_SpawnExpired,
	};
	struct core *c = p->core;
	struct draft *d;
	int rv = state == PROPOSAL_CONFIRMED ? core_ready(c, err) : 0;

	if (rv != 0)
		return rv;
	d = draft_new(&c->book);
	if (!d)
		return err_set(err, AVA_ENOMEM, "out of memory");
	if (text)
		write_text(c, d, p, text);
	if (state == PROPOSAL_CONFIRMED) {
		rv = start_run(c, p, d, err);
		if (rv != 0) {
			unstart(p);
			draft_free(d);
			return rv;
		}
	}
	write_answer(c, d, p, kinds[state], by, reason);
	p->writing_to = (int)state;
	p->writing = true;
	rv = draft_commit(d, JOURNAL_NOW, answered, p, err);
	if (rv != 0) {
		p->writing = false;
		unstart(p);
	}
	return rv;
}

static void expire(void *user)
{
	struct proposal *p = user;

	if (p->state != PROPOSAL_PENDING) {
		if (!p->writing)
			proposal_free(p);
		return;
	}
	if (p->writing)
		return; /* its answer came just in time */
	if (step(p, PROPOSAL_EXPIRED, NULL, "", "", NULL) != 0)
		os_timer_set(p->timer, 5000);
}

static struct proposal *find(struct core *c, const char *id, struct ava_error *err)
{
	struct proposal *p = map_get(&c->proposals, id);

	if (!p)
		err_set(err, AVA_ENOENT, "there is no proposal %.40s (ava proposals lists them)",
			id);
	return p;
}

/* What was answered before is answered again; the other way round is an error. */
static int already(const struct proposal *p, enum proposal_state wanted, struct ava_error *err)
{
	if (p->state == wanted || p->state == PROPOSAL_PENDING)
		return 0;
	if (p->state == PROPOSAL_EXPIRED)
		return err_set(err, AVA_EEXPIRED, "proposal %s has expired: ask for a new one",
			       p->id);
	if (p->state == PROPOSAL_REJECTED)
		return err_set(err, AVA_EREJECTED, "proposal %s was rejected: ask for a new one",
			       p->id);
	return err_set(err, AVA_EEXIST,
		       "proposal %s was confirmed already and runs as %s; "
		       "ava cancel %s stops it",
		       p->id, p->run, p->run);
}

static void decide(struct core *c, const char *id, enum proposal_state wanted, const char *text,
		   const char *by, const char *reason, op_proposal_fn done, void *user)
{
	struct ava_error err = {0};
	struct proposal *p = find(c, id, &err);

	if (!p || already(p, wanted, &err) != 0) {
		refuse(done, user, &err);
		return;
	}
	if (p->state == wanted && !p->writing) {
		reply(p, true, done, user);
		return;
	}
	if (p->writing && p->writing_to != PROPOSAL_PENDING && p->writing_to != (int)wanted) {
		err_set(&err, AVA_EBUSY, "proposal %s is being answered right now", p->id);
		refuse(done, user, &err);
		return;
	}
	if (!p->writing && step(p, wanted, text, by, reason, &err) != 0) {
		refuse(done, user, &err);
		return;
	}
	if (add_waiter(p, done, user, false) != 0) {
		err_set(&err, AVA_EUNKNOWN, "out of memory: ask again");
		refuse(done, user, &err);
	}
}

void ops_confirm(struct core *c, const char *proposal, const char *text, const char *by,
		 op_proposal_fn done, void *user)
{
	struct ava_error err = {0};

	switch (answer_parse(text ? text : "yes")) {
	case ANSWER_YES:
		decide(c, proposal, PROPOSAL_CONFIRMED, text, by, "", done, user);
		return;
	case ANSWER_NO:
		decide(c, proposal, PROPOSAL_REJECTED, text, by, text, done, user);
		return;
	case ANSWER_UNCLEAR:
		break;
	}
	if (!find(c, proposal, &err))
		refuse(done, user, &err);
	else {
		err_set(&err, AVA_EINVAL, "please answer yes or no");
		refuse(done, user, &err);
	}
}

void ops_reject(struct core *c, const char *proposal, const char *reason, const char *by,
		op_proposal_fn done, void *user)
{
	decide(c, proposal, PROPOSAL_REJECTED, NULL, by, reason ? reason : "", done, user);
}

int ops_proposals(struct core *c, bool all, void (*each)(const struct op_proposal *p, void *user),
		  void *user)
{
	struct op_proposal out;
	int n = 0;

	LIST_EACH (&c->proposal_order, node, tmp) {
		struct proposal *p = LIST_ENTRY(node, struct proposal, node);

		if (!all && p->state != PROPOSAL_PENDING)
			continue;
		show(p, false, &out);
		each(&out, user);
		n++;
	}
	return n;
}

int ops_proposal(struct core *c, const char *id,
		 void (*each)(const struct op_proposal *p, void *user), void *user,
		 struct ava_error *err)
{
	struct proposal *p = find(c, id, err);
	struct op_proposal out;

	if (!p)
		return AVA_ENOENT;
	show(p, false, &out);
	each(&out, user);
	return 0;
}

/* ---- after a restart */

static void restore_proposed(struct core *c, const struct ava_log_event *e, const json_t *event)
{
	const json_t *content = json_object_get(event, "content");
	const char *id = json_get_str(content, "proposalId");
	struct proposal *p = NULL;

	if (!id || !id_is_proposal(id) || nameset_add(&c->proposal_names, id) != 0)
		return;
	if (e->time_ms < clock_wall_ms() - REQUEST_AGE_MS || map_get(&c->proposals, id))
		return;
	p = proposal_new(c);
	if (!p)
		return;
	snprintf(p->id, sizeof(p->id), "%s", id);
	p->created_ms = e->time_ms;
	p->expires_ms = p->created_ms + c->settings.proposal_expiry_s * 1000;
	if (spec_from_json(&p->spec, json_object_get(content, "config"),
			   json_get_str(event, "sessionId"), json_get_str(content, "requestId"),
			   json_get_str(event, "userId"), NULL) != 0 ||
	    make_texts(c, p) != 0 || proposal_enlist(c, p) != 0) {
		proposal_free(p);
		return;
	}
	c->npending++;
	os_timer_set(p->timer, MAX(p->expires_ms - clock_wall_ms(), 0));
	core_remember(c, p->spec->request_id, p->created_ms, p->id, "", "");
}

static void restore_answer(struct core *c, const char *type, const json_t *event)
{
	const json_t *content = json_object_get(event, "content");
	const char *id = json_get_str(content, "proposalId");
	const char *run = json_get_str(content, "subagentId");
	struct proposal *p = id ? map_get(&c->proposals, id) : NULL;

	if (!p)
		return;
	if (run)
		snprintf(p->run, sizeof(p->run), "%s", run);
	settle(p, strcmp(type, "SpawnConfirmed") == 0  ? PROPOSAL_CONFIRMED
		  : strcmp(type, "SpawnRejected") == 0 ? PROPOSAL_REJECTED
						       : PROPOSAL_EXPIRED);
}

void proposals_restore(struct core *c)
{
	struct ava_log_query q = {
		.root = c->root,
		.types = "SpawnProposed,SpawnConfirmed,SpawnRejected,SpawnExpired",
	};
	struct ava_log_event e;
	struct ava_log *log;
	int rv;

	if (ava_log_open(&log, &q, NULL) != 0)
		return; /* no daily log yet */
	while ((rv = ava_log_next(log, &e, NULL)) == 1 || rv == AVA_ECORRUPT) {
		json_t *event = rv == 1 ? json_parse(e.line, e.len, NULL) : NULL;

		if (event && strcmp(e.type, "SpawnProposed") == 0)
			restore_proposed(c, &e, event);
		else if (event)
			restore_answer(c, e.type, event);
		json_decref(event);
	}
	ava_log_close(log);
}

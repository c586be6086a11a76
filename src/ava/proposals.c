/* Proposals: quoted, unconfirmed spawns; decide.c has their answers. Every step
 * is an event in Ava's daily log before anybody hears of it, and the log is
 * what brings open proposals back after a restart.
 *
 * While a step is being written nothing else happens to the proposal: whoever
 * asks meanwhile waits and gets the same answer. What can fail: the request
 * (spec.c says why), memory, the disk; then there is no proposal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/ended.h"
#include "ava/proposal.h"
#include "ava/resume.h"
#include "base/clock.h"
#include "base/error.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "subagent/resume.h"

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

static const char *said_of(const struct proposal *p)
{
	const char *s = p->state == PROPOSAL_PENDING ? p->instead : p->changes;

	return s ? s : "";
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
		.confirmed_hash = p->state == PROPOSAL_CONFIRMED ? p->confirmed_hash : "",
		.changes = said_of(p),
		.replaces = p->replaces,
		.replaced_by = p->replaced_by,
		.session_id = p->spec ? p->spec->session_id : "",
		.repeated = repeated,
		.group_id = p->group ? p->group->id : "",
	};
}

void proposal_reply(struct proposal *p, bool repeated, op_proposal_fn done, void *user)
{
	struct op_proposal out;

	show(p, repeated, &out);
	done(0, &out, NULL, user);
}

void proposal_refuse(op_proposal_fn done, void *user, const struct ava_error *err)
{
	done(err->code, NULL, err, user);
}

int proposal_add_waiter(struct proposal *p, op_proposal_fn done, void *user, bool repeated)
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

void proposal_tell_waiters(struct proposal *p, int rv, const struct ava_error *err)
{
	struct list all;

	list_init(&all);
	list_splice(&all, &p->waiters);
	LIST_EACH (&all, n, tmp) {
		struct waiter *w = LIST_ENTRY(n, struct waiter, node);

		list_del(n);
		if (rv == 0)
			proposal_reply(p, w->repeated, w->done, w->user);
		else
			w->done(rv, NULL, err, w->user);
		free(w);
	}
}

/* ---- life */

void proposal_free(struct proposal *p)
{
	struct ava_error err = {.code = AVA_ECANCELED, .text = "the runtime stops"};

	proposal_tell_waiters(p, AVA_ECANCELED, &err);
	strmap_del(&p->core->proposals, p->id);
	list_del(&p->node);
	if (p->state != PROPOSAL_PENDING)
		p->core->nsettled--;
	os_timer_free(p->timer);
	spec_free(p->spec);
	proposal_group_free(p);
	free(p->quote);
	free(p->message);
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

struct proposal *proposal_new(struct core *c)
{
	struct proposal *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->core = c;
	list_init(&p->node);
	list_init(&p->waiters);
	p->timer = os_timer_new(c->loop, decide_expire, p);
	if (!p->timer) {
		free(p);
		return NULL;
	}
	return p;
}

static int proposal_enlist(struct core *c, struct proposal *p)
{
	if (strmap_put(&c->proposals, p->id, p) != 0)
		return AVA_ENOMEM;
	list_add_front(&c->proposal_order, &p->node);
	return 0;
}

/* Answered ones are kept for a while, for whoever asks again: a day, and the
 * newest SETTLED_MAX of them. */
void proposal_settle(struct proposal *p, enum proposal_state state)
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

	if (p->group)
		return proposal_group_texts(c, p);
	quote_make(&c->sup.quotes, p->spec, &q);
	p->cost_microusd = q.cost_microusd;
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

void proposal_name(struct proposal *p)
{
	id_short('P', id_taken, p->core, p->id);
}

int proposal_begin(struct proposal *p, struct run_spec *spec)
{
	struct core *c = p->core;
	int rv;

	p->spec = spec;
	if (!p->id[0])
		proposal_name(p);
	p->created_ms = clock_wall_ms();
	p->expires_ms = p->created_ms + c->settings.proposal_expiry_s * 1000;
	p->writing = true;
	rv = make_texts(c, p);
	if (rv == 0)
		rv = nameset_add(&c->proposal_names, p->id);
	return rv == 0 ? proposal_enlist(c, p) : rv;
}

void proposal_write(struct draft *d, const struct proposal *p)
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
	if (p->replaces[0])
		jw_str(&w, "replaces", p->replaces);
	jw_end(&w);
	core_event(p->core, d, EVENT_SpawnProposed, p->spec->session_id, p->spec->user_id, &b);
}

void proposal_written(struct proposal *p)
{
	p->writing = false;
	p->core->npending++;
	os_timer_set(p->timer, MAX(p->expires_ms - clock_wall_ms(), 0));
}

void proposal_not_saved(struct ava_error *err, int rv, const char *what, const char *then)
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

	if (rv == 0) {
		proposal_written(p);
		decide_started(p, rv);
		proposal_tell_waiters(p, 0, NULL);
		return;
	}
	p->writing = false;
	decide_started(p, rv);
	proposal_not_saved(&err, rv, "the proposal", "ask again");
	core_forget(p->core, p->spec->request_id);
	proposal_tell_waiters(p, rv, &err);
	proposal_free(p);
}

/* Must a person be asked? What it costs is at most what was quoted. */
static bool asks(int64_t over_cents, int64_t cost_microusd)
{
	if (over_cents == SETTINGS_CONFIRM_ALWAYS || over_cents == SETTINGS_CONFIRM_NEVER)
		return over_cents == SETTINGS_CONFIRM_ALWAYS;
	return cost_microusd < 0 || cost_microusd > over_cents * 10000;
}

static int write_new(struct core *c, struct proposal *p, const char *policy, bool at_once,
		     struct ava_error *err)
{
	struct draft *d = draft_new(&c->book);
	int rv = 0;

	if (!d)
		return err_set(err, AVA_ENOMEM, "out of memory");
	proposal_write(d, p);
	if (at_once)
		rv = decide_at_once(p, d, policy, err);
	if (rv != 0) {
		draft_free(d);
		return rv;
	}
	if (p->spec) { /* it waits for a person: what it begins with is read again then */
		resumed_free(p->spec->resumed);
		p->spec->resumed = NULL;
	}
	rv = draft_commit(d, JOURNAL_NOW, proposed, p, err);
	if (rv != 0)
		decide_started(p, rv);
	return rv;
}

int proposal_may_begin(struct core *c, struct ava_error *err)
{
	int rv = core_ready(c, err);

	if (rv == 0 && c->npending >= 1000)
		rv = err_set(err, AVA_EBUSY,
			     "1000 proposals wait for an answer: confirm or reject some");
	return rv;
}

int proposal_open(struct proposal *p, struct run_spec *spec, const char *confirm,
		  struct ava_error *err)
{
	struct core *c = p->core;
	int64_t over = c->settings.confirm_over_cents;
	int rv = proposal_begin(p, spec);

	if (rv == 0)
		rv = core_remember(c, spec->request_id, p->created_ms, p->id, "", "");
	if (rv != 0)
		err_set(err, rv, "out of memory");
	else if (confirm)
		rv = settings_confirm("confirm", confirm, &over, err);
	if (rv == 0)
		rv = write_new(c, p, confirm ? "confirm of the request" : "confirm of the settings",
			       !asks(over, p->cost_microusd), err);
	if (rv == 0)
		return 0;
	core_forget(c, p->spec->request_id);
	proposal_free(p);
	return rv;
}

/* `spec` is *taken*. */
static int propose(struct core *c, struct run_spec *spec, const char *confirm,
		   struct proposal **out, struct ava_error *err)
{
	struct proposal *p = proposal_new(c);
	int rv;

	if (!p) {
		spec_free(spec);
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	rv = proposal_open(p, spec, confirm, err);
	if (rv == 0)
		*out = p;
	return rv;
}

bool proposal_asked_before(struct core *c, const char *request_id, op_proposal_fn done, void *user)
{
	struct request *known = core_request(c, request_id);
	struct proposal *p =
		known && known->proposal[0] ? strmap_get(&c->proposals, known->proposal) : NULL;
	struct ava_error err = {0};

	if (!known)
		return false;
	if (!p)
		err_set(&err, AVA_EEXIST, "request %s already started run %s", request_id,
			known->run[0] ? known->run : "(forgotten)");
	else if (p->writing && proposal_add_waiter(p, done, user, true) != 0)
		err_set(&err, AVA_ENOMEM, "out of memory");
	else if (!p->writing)
		proposal_reply(p, true, done, user);
	if (err.code)
		proposal_refuse(done, user, &err);
	return true;
}

/* rv: of making the spec. */
static void propose_spec(struct core *c, int rv, struct run_spec *spec, const char *confirm,
			 struct ava_error *err, op_proposal_fn done, void *user)
{
	struct proposal *p = NULL;

	if (rv == 0)
		rv = propose(c, spec, confirm, &p, err);
	if (rv == 0 && proposal_add_waiter(p, done, user, false) != 0)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	if (rv != 0)
		proposal_refuse(done, user, err);
}

struct proposing { /* while the record of an ended run is read */
	struct core *core;
	op_proposal_fn done;
	void *user;
};

static void propose_resumed(int rv, struct run_spec *spec, const struct op_spawn *s,
			    const struct ava_error *why, void *user)
{
	struct proposing w = *(struct proposing *)user;
	struct ava_error err = {0};

	free(user);
	if (rv != 0)
		err = *why;
	if (rv == 0 && !spec)
		ops_propose(w.core, s, w.done, w.user);
	else
		propose_spec(w.core, rv, spec, s->confirm, &err, w.done, w.user);
}

static int begin_resumed(struct core *c, const struct op_spawn *s, op_proposal_fn done, void *user,
			 struct ava_error *err)
{
	struct proposing *w = calloc(1, sizeof(*w));

	if (!w)
		return err_set(err, AVA_ENOMEM, "out of memory");
	*w = (struct proposing){.core = c, .done = done, .user = user};
	resume_begin(c, s, propose_resumed, w);
	return 0;
}

void ops_propose(struct core *c, const struct op_spawn *s, op_proposal_fn done, void *user)
{
	struct ava_error err = {0};
	struct run_spec *spec = NULL;
	int64_t over;
	int rv;

	if (proposal_asked_before(c, s->request_id, done, user))
		return;
	rv = proposal_may_begin(c, &err);
	if (rv == 0 && s->confirm)
		rv = settings_confirm("confirm", s->confirm, &over, &err);
	if (rv == 0 && resume_wanted(s)) {
		rv = begin_resumed(c, s, done, user, &err);
		if (rv == 0)
			return;
	} else if (rv == 0) {
		rv = spec_build(&spec, s, &c->settings, c->model, c->redact, &err);
	}
	propose_spec(c, rv, spec, s->confirm, &err, done, user);
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
	struct proposal *p = proposal_find(c, id, err);
	struct op_proposal out;

	if (!p)
		return AVA_ENOENT;
	show(p, false, &out);
	each(&out, user);
	return 0;
}

/* ---- after a restart */

static void copy_id(char *to, size_t size, const char *from)
{
	if (from)
		snprintf(to, size, "%s", from);
}

static int restore_spec(struct proposal *p, const json_t *event, const json_t *content)
{
	const json_t *config = json_object_get(content, "config");
	const char *session = json_get_str(event, "sessionId");
	const char *request = json_get_str(content, "requestId");
	const char *user = json_get_str(event, "userId");

	if (json_object_get(config, "members"))
		return proposal_group_restore(p, config, session, request, user);
	return spec_from_json(&p->spec, config, session, request, user, NULL);
}

static void restore_proposed(struct core *c, const struct ava_log_event *e, const json_t *event)
{
	const json_t *content = json_object_get(event, "content");
	const char *id = json_get_str(content, "proposalId");
	struct proposal *p = NULL;

	if (!id || !id_is_proposal(id) || nameset_add(&c->proposal_names, id) != 0)
		return;
	if (e->time_ms < clock_wall_ms() - REQUEST_AGE_MS || strmap_get(&c->proposals, id))
		return;
	p = proposal_new(c);
	if (!p)
		return;
	snprintf(p->id, sizeof(p->id), "%s", id);
	copy_id(p->replaces, sizeof(p->replaces), json_get_str(content, "replaces"));
	p->created_ms = e->time_ms;
	p->expires_ms = p->created_ms + c->settings.proposal_expiry_s * 1000;
	if (restore_spec(p, event, content) != 0 || make_texts(c, p) != 0 ||
	    proposal_enlist(c, p) != 0) {
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
	const char *changes = json_get_str(content, "changes");
	struct proposal *p = id ? strmap_get(&c->proposals, id) : NULL;

	if (!p)
		return;
	copy_id(p->run, sizeof(p->run), run);
	copy_id(p->replaced_by, sizeof(p->replaced_by), json_get_str(content, "replacedBy"));
	copy_id(p->confirmed_hash, sizeof(p->confirmed_hash), json_get_str(content, "configHash"));
	if (changes && !p->changes)
		p->changes = strdup(changes);
	proposal_settle(p, strcmp(type, "SpawnConfirmed") == 0  ? PROPOSAL_CONFIRMED
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

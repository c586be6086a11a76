/* Answers to proposals: yes, no, yes with something lowered, a change that is
 * quoted again, and none in time.
 *
 * Happy path: the words are understood (answer.h), what they change is carried
 * out on the quoted spec (change.h), and the answer, what it starts and who
 * gave it go to the disk as one commit; then the run starts. Two yeses from two
 * channels start one run: while an answer is being written the next one waits
 * for it, and the same answer later hears the same again.
 *
 * What can fail: words that are not understood and changes that cannot be
 * (AVA_EINVAL, and the proposal waits on), an answer after another one or after
 * the time (each its sentence), memory, the disk; then nothing was started. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/answer.h"
#include "ava/proposal.h"
#include "ava/resume.h"
#include "base/clock.h"
#include "base/error.h"
#include "codec/json.h"
#include "codec/redact.h"

/* One answer on its way. */
struct deciding {
	struct proposal *p;
	const char *text; /* what was said; NULL: nothing */
	bool said;        /* its UserMessage is written already */
	const char *by, *reason;
	bool yes;                /* with a change */
	struct run_spec *spec;   /* the quoted one with the change in it; owned */
	struct run_spec *quoted; /* borrowed, or `restored` */
	struct run_spec *restored;
	op_proposal_fn done;
	void *user;
};

/* ---- on its way to the disk */

/* The run of a confirmation that certainly did not happen. */
static void unstart(struct proposal *p)
{
	struct request *q;

	free(p->changes);
	p->changes = NULL;
	p->confirmed_hash[0] = 0;
	if (!p->starting)
		return;
	if (p->group)
		proposal_group_unstart(p);
	/* A changed spec goes with the run, the quoted one comes back. */
	if (!p->spec) {
		p->spec = p->starting->spec;
		p->starting->spec = NULL;
	}
	supervisor_discard(p->starting);
	p->starting = NULL;
	p->run[0] = p->trace[0] = 0;
	q = core_request(p->core, p->spec->request_id);
	if (q)
		q->run[0] = q->trace[0] = 0;
}

static void start(struct proposal *p)
{
	struct run *r = p->starting;

	p->starting = NULL;
	spec_free(p->spec); /* there when another one runs instead */
	p->spec = NULL;
	supervisor_start(r);
	sessions_answered(p->core, p, r->spec->session_id, r);
	if (p->group)
		proposal_group_start(p);
}

/* It waits on; its time may have come while the answer was being written. */
static void try_later(struct proposal *p)
{
	os_timer_set(p->timer, MAX(p->expires_ms - clock_wall_ms(), 5000));
}

static void answered(int rv, void *user)
{
	struct proposal *p = user;
	struct ava_error err = {0};

	p->writing = false;
	if (rv != 0) {
		unstart(p);
		try_later(p);
		proposal_not_saved(&err, rv, "the answer",
				   "nothing was started now; look at `ava proposals` and answer "
				   "again");
		proposal_tell_waiters(p, rv, &err);
		return;
	}
	proposal_settle(p, (enum proposal_state)p->writing_to);
	if (p->starting)
		start(p);
	else
		sessions_answered(p->core, p, p->spec->session_id, NULL);
	proposal_tell_waiters(p, 0, NULL);
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

/* The spec whose session and user an answer belongs to. */
static const struct run_spec *spec_of(const struct proposal *p)
{
	return p->spec ? p->spec : p->starting->spec;
}

static void write_text(struct core *c, struct draft *d, const struct proposal *p, const char *text)
{
	const struct run_spec *s = spec_of(p);
	struct buf b;
	struct jw w;

	buf_init(&b, 65536);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	write_typed(c, &w, "text", text);
	jw_end(&w);
	core_event(c, d, EVENT_UserMessage, s->session_id, s->user_id, &b);
}

/* What was confirmed: as quoted, or (both hashes) what of it. */
static void write_confirmed(struct jw *w, const struct proposal *p)
{
	const struct run_spec *runs = p->starting->spec;

	jw_str(w, "subagentId", p->run);
	if (p->group)
		jw_str(w, "groupId", p->group->id);
	jw_str(w, "configHash", p->group ? p->hash : runs->hash);
	if (!p->changes)
		return;
	jw_str(w, "quotedHash", p->hash);
	jw_str(w, "changes", p->changes);
	jw_raw(w, "config", runs->config, runs->config_len);
}

/* SpawnConfirmed, SpawnRejected or SpawnExpired. */
static void write_answer(struct core *c, struct draft *d, const struct proposal *p,
			 enum event_kind kind, const char *by, const char *reason)
{
	const struct run_spec *s = spec_of(p);
	struct buf b;
	struct jw w;

	buf_init(&b, 4u << 20);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "proposalId", p->id);
	if (kind != EVENT_SpawnExpired)
		write_typed(c, &w, "by", by);
	if (kind == EVENT_SpawnRejected)
		write_typed(c, &w, "reason", reason);
	if (kind == EVENT_SpawnRejected && p->successor)
		jw_str(&w, "replacedBy", p->successor->id);
	if (kind == EVENT_SpawnConfirmed)
		write_confirmed(&w, p);
	jw_end(&w);
	core_event(c, d, kind, s->session_id, s->user_id, &b);
}

/* ---- starting */

/* `changed` NULL: what was quoted; else it is *taken*, also on error. */
static int start_run(struct proposal *p, struct run_spec *changed, struct draft *d,
		     struct ava_error *err)
{
	struct core *c = p->core;
	struct run_spec *spec = changed ? changed : p->spec;
	int rv = supervisor_spawn(&c->sup, spec, p->id, d, &p->starting, err);

	if (rv != 0) {
		spec_free(changed);
		return rv;
	}
	if (!changed)
		p->spec = NULL; /* the run has it */
	snprintf(p->run, sizeof(p->run), "%s", p->starting->id.text);
	snprintf(p->trace, sizeof(p->trace), "%s", p->starting->trace.text);
	snprintf(p->confirmed_hash, sizeof(p->confirmed_hash), "%s",
		 p->group ? p->hash : spec->hash);
	if (p->group)
		rv = proposal_group_spawn(p, d, err);
	if (rv != 0)
		return rv;
	rv = core_remember(c, spec->request_id, p->created_ms, p->id, p->run, p->trace);
	return rv == 0 ? 0 : err_set(err, rv, "out of memory");
}

/* In words, *owned*; NULL: no memory. */
static char *tell_changes(const struct run_spec *quoted, const struct run_spec *changed)
{
	struct buf b;

	buf_init(&b, 65536);
	change_text(&b, quoted, changed);
	return buf_take(&b, NULL);
}

int decide_at_once(struct proposal *p, struct draft *d, const char *policy, struct ava_error *err)
{
	int rv = start_run(p, NULL, d, err);

	if (rv != 0) {
		unstart(p);
		return rv;
	}
	write_answer(p->core, d, p, EVENT_SpawnConfirmed, policy, "");
	sessions_answering(p->core, d, p, PROPOSAL_CONFIRMED, spec_of(p)->session_id);
	return 0;
}

void decide_started(struct proposal *p, int rv)
{
	if (rv != 0) {
		unstart(p);
	} else if (p->starting) {
		proposal_settle(p, PROPOSAL_CONFIRMED);
		start(p);
	}
}

/* ---- a yes to go on from an ended run: what it begins with is made first */

struct preparing {
	struct proposal *p;
	struct run_spec *changed; /* owned; NULL: what was quoted */
	struct deciding a;        /* its strings are those below */
	char *text, *by, *reason;
};

static void preparing_free(struct preparing *w)
{
	spec_free(w->changed);
	free(w->text);
	free(w->by);
	free(w->reason);
	free(w);
}

static int step(struct proposal *p, enum proposal_state state, const struct deciding *a,
		struct run_spec *changed, struct ava_error *err);

static void prepared(int rv, struct run_spec *spec, const struct op_spawn *s,
		     const struct ava_error *why, void *user)
{
	struct preparing *w = user;
	struct proposal *p = w->p;
	struct run_spec *changed = w->changed;
	struct ava_error err = {0};

	p->writing = false;
	if (rv == 0) {
		w->changed = NULL; /* taken */
		rv = step(p, PROPOSAL_CONFIRMED, &w->a, changed, &err);
	} else {
		err = *why;
		unstart(p);
	}
	preparing_free(w);
	if (rv == 0)
		return;
	try_later(p);
	proposal_tell_waiters(p, rv, &err);
}

/* As step: it is taken when that is done. */
static int prepare(struct proposal *p, const struct deciding *a, struct run_spec *changed,
		   struct ava_error *err)
{
	struct preparing *w = calloc(1, sizeof(*w));
	int rv = AVA_ENOMEM;

	if (w) {
		w->p = p;
		w->text = a->text ? strdup(a->text) : NULL;
		w->by = strdup(a->by ? a->by : "");
		w->reason = strdup(a->reason ? a->reason : "");
		w->a = (struct deciding){
			.p = p, .text = w->text, .said = a->said, .by = w->by, .reason = w->reason};
	}
	if (w && w->by && w->reason && (w->text || !a->text))
		rv = resume_again(p->core, changed ? changed : p->spec, prepared, w, err);
	else
		err_set(err, rv, "out of memory");
	if (rv != 0) {
		if (w)
			preparing_free(w);
		spec_free(changed);
		return rv;
	}
	w->changed = changed;
	p->writing_to = PROPOSAL_CONFIRMED;
	p->writing = true;
	/* Who says the same meanwhile waits for the same. */
	snprintf(p->confirmed_hash, sizeof(p->confirmed_hash), "%s",
		 changed ? changed->hash : p->hash);
	return 0;
}

static bool must_prepare(const struct run_spec *spec)
{
	return spec->resumed_from[0] && !spec->resumed;
}

/* Write the step to `state`; the waiters hear of it. `changed` as start_run. */
static int step(struct proposal *p, enum proposal_state state, const struct deciding *a,
		struct run_spec *changed, struct ava_error *err)
{
	static const enum event_kind kinds[] = {
		[PROPOSAL_CONFIRMED] = EVENT_SpawnConfirmed,
		[PROPOSAL_REJECTED] = EVENT_SpawnRejected,
		[PROPOSAL_EXPIRED] = EVENT_SpawnExpired,
	};
	struct core *c = p->core;
	struct draft *d = NULL;
	int rv = state == PROPOSAL_CONFIRMED ? core_ready(c, err) : 0;

	if (rv == 0 && state == PROPOSAL_CONFIRMED && must_prepare(changed ? changed : p->spec))
		return prepare(p, a, changed, err);
	if (rv == 0) {
		d = draft_new(&c->book);
		if (d && changed)
			p->changes = tell_changes(p->spec, changed);
		if (!d || (changed && !p->changes))
			rv = err_set(err, AVA_ENOMEM, "out of memory");
	}
	if (rv != 0) {
		draft_free(d);
		spec_free(changed);
		unstart(p);
		return rv;
	}
	if (a->text && !a->said)
		write_text(c, d, p, a->text);
	if (state == PROPOSAL_CONFIRMED) {
		rv = start_run(p, changed, d, err);
		if (rv != 0) {
			unstart(p);
			draft_free(d);
			return rv;
		}
	}
	write_answer(c, d, p, kinds[state], a->by, a->reason);
	sessions_answering(c, d, p, state, spec_of(p)->session_id);
	p->writing_to = (int)state;
	p->writing = true;
	rv = draft_commit(d, JOURNAL_NOW, answered, p, err);
	if (rv != 0) {
		p->writing = false;
		unstart(p);
	}
	return rv;
}

void decide_expire(void *user)
{
	struct proposal *p = user;
	struct deciding none = {.p = p, .by = "", .reason = ""};

	if (p->state != PROPOSAL_PENDING) {
		if (!p->writing)
			proposal_free(p);
		return;
	}
	if (p->writing)
		return; /* its answer came just in time */
	if (step(p, PROPOSAL_EXPIRED, &none, NULL, NULL) != 0)
		os_timer_set(p->timer, 5000);
}

/* ---- quoting again */

static void replaced(int rv, void *user)
{
	struct proposal *p = user, *q = p->successor;
	struct ava_error err = {0};

	p->writing = false;
	p->successor = NULL;
	if (rv != 0) {
		q->writing = false;
		try_later(p);
		proposal_not_saved(&err, rv, "the answer",
				   "look at `ava proposals` and answer again");
		proposal_tell_waiters(p, rv, &err);
		proposal_tell_waiters(q, rv, &err);
		proposal_free(q);
		return;
	}
	snprintf(p->replaced_by, sizeof(p->replaced_by), "%s", q->id);
	proposal_settle(p, PROPOSAL_REJECTED);
	proposal_written(q);
	/* Whoever repeats the request gets what stands for it now. Its entry is
	 * there, so that this asks for no memory. */
	(void)core_remember(p->core, q->spec->request_id, q->created_ms, q->id, "", "");
	sessions_answered(p->core, p, p->spec->session_id, NULL);
	proposal_tell_waiters(p, 0, NULL);
	proposal_tell_waiters(q, 0, NULL);
}

/* A new proposal with what is wanted ends this one; nothing runs. */
static int quote_again(struct deciding *a, struct ava_error *err)
{
	struct proposal *p = a->p, *q;
	struct core *c = p->core;
	struct draft *d;
	char reason[64];
	int rv = core_ready(c, err);

	if (rv != 0)
		return rv;
	q = proposal_new(c);
	d = draft_new(&c->book);
	rv = AVA_ENOMEM;
	if (q && d)
		q->instead = tell_changes(p->spec, a->spec);
	if (q && q->instead) {
		rv = proposal_begin(q, a->spec);
		a->spec = NULL;
	}
	if (rv != 0) {
		err_set(err, rv, "out of memory");
		goto fail;
	}
	snprintf(q->replaces, sizeof(q->replaces), "%s", p->id);
	snprintf(reason, sizeof(reason), "replaced by %s", q->id);
	p->successor = q;
	if (a->text && !a->said)
		write_text(c, d, p, a->text);
	write_answer(c, d, p, EVENT_SpawnRejected, a->by, reason);
	sessions_answering(c, d, p, PROPOSAL_REJECTED, p->spec->session_id);
	proposal_write(d, q);
	p->writing_to = PROPOSAL_REJECTED;
	p->writing = true;
	rv = draft_commit(d, JOURNAL_NOW, replaced, p, err);
	if (rv == 0)
		return proposal_add_waiter(q, a->done, a->user, false) == 0
			       ? 0
			       : err_set(err, AVA_EUNKNOWN, "out of memory: ask again");
	p->writing = false;
	p->successor = NULL;
	d = NULL;

fail:
	draft_free(d);
	if (q)
		proposal_free(q);
	return rv;
}

/* ---- plain answers */

/* What was answered before is answered again; the other way round is an error. */
static int already(const struct proposal *p, enum proposal_state wanted, struct ava_error *err)
{
	bool late;

	if (p->replaced_by[0])
		return err_set(err, AVA_EREJECTED,
			       "proposal %s was replaced by %s: answer that one", p->id,
			       p->replaced_by);
	/* The timer may be late, after a sleep of the machine for example. */
	late = p->state == PROPOSAL_PENDING && !p->writing && clock_wall_ms() >= p->expires_ms;
	if (!late && (p->state == wanted || p->state == PROPOSAL_PENDING))
		return 0;
	if (late || p->state == PROPOSAL_EXPIRED)
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

static int busy(const struct proposal *p, struct ava_error *err)
{
	return err_set(err, AVA_EBUSY, "proposal %s is being answered right now", p->id);
}

static void decide(struct core *c, const char *id, enum proposal_state wanted, struct deciding *a)
{
	struct ava_error err = {0};
	struct proposal *p = proposal_find(c, id, &err);

	a->p = p;
	if (!p || already(p, wanted, &err) != 0) {
		proposal_refuse(a->done, a->user, &err);
		return;
	}
	if (p->state == wanted && !p->writing) {
		proposal_reply(p, true, a->done, a->user);
		return;
	}
	if (p->writing && p->writing_to != PROPOSAL_PENDING &&
	    (p->writing_to != (int)wanted || p->successor)) {
		busy(p, &err);
		proposal_refuse(a->done, a->user, &err);
		return;
	}
	if (!p->writing && step(p, wanted, a, NULL, &err) != 0) {
		proposal_refuse(a->done, a->user, &err);
		return;
	}
	if (proposal_add_waiter(p, a->done, a->user, false) != 0) {
		err_set(&err, AVA_EUNKNOWN, "out of memory: ask again");
		proposal_refuse(a->done, a->user, &err);
	}
}

/* ---- answers with a change */

/* The quoted spec, also of a proposal whose run has it. */
static int find_quoted(struct deciding *a, struct ava_error *err)
{
	struct proposal *p = a->p;
	json_t *config;
	int rv;

	a->quoted = p->spec;
	if (a->quoted)
		return 0;
	config = json_parse(p->config, strlen(p->config), err);
	rv = config ? spec_from_json(&a->restored, config, "", "", "", err) : AVA_ECORRUPT;
	json_decref(config);
	a->quoted = a->restored;
	return rv;
}

/* The same answer again, after or while it is written: 1 when it was told. */
static int said_before(struct deciding *a)
{
	struct proposal *p = a->p, *q = p->successor;

	if (!q && p->replaced_by[0])
		q = proposal_find(p->core, p->replaced_by, NULL);
	if (q && strcmp(q->hash, a->spec->hash) == 0)
		p = q;
	else if (!a->yes || !p->confirmed_hash[0] || strcmp(p->confirmed_hash, a->spec->hash) != 0)
		return 0;
	if (!p->writing)
		proposal_reply(p, true, a->done, a->user);
	else if (proposal_add_waiter(p, a->done, a->user, true) != 0)
		return AVA_ENOMEM;
	return 1;
}

/* 0: `done` was called or will be. */
static int carry_out(struct deciding *a, struct ava_error *err)
{
	struct proposal *p = a->p;
	struct run_spec *changed;
	bool same = strcmp(a->spec->hash, p->hash) == 0;
	int rv = said_before(a);

	if (rv != 0)
		return rv > 0 ? 0 : err_set(err, rv, "out of memory: ask again");
	rv = already(p, PROPOSAL_PENDING, err);
	if (rv == 0 && p->writing)
		rv = busy(p, err);
	if (rv == 0 && same && !a->yes)
		rv = err_set(err, AVA_EINVAL,
			     "that is what proposal %s says already: answer yes or no", p->id);
	if (rv != 0)
		return rv;
	if (!a->yes || !change_lowers(a->quoted, a->spec))
		return quote_again(a, err);
	changed = same ? NULL : a->spec;
	if (changed)
		a->spec = NULL;
	rv = step(p, PROPOSAL_CONFIRMED, a, changed, err);
	if (rv == 0 && proposal_add_waiter(p, a->done, a->user, false) != 0)
		rv = err_set(err, AVA_EUNKNOWN, "out of memory: ask again");
	return rv;
}

static void decide_change(struct core *c, const char *id, const struct change *change,
			  struct deciding *a)
{
	struct ava_error err = {0}, other = {0};
	int rv;

	a->p = proposal_find(c, id, &err);
	if (a->p && a->p->group)
		err_set(&err, AVA_EINVAL,
			"%s is a group: answer yes or no, or propose it anew with what is wanted",
			a->p->id);
	rv = err.code ? err.code : a->p ? find_quoted(a, &err) : err.code;
	if (rv == 0)
		rv = change_spec(&a->spec, a->quoted, change, &c->settings, c->model, c->redact,
				 &err);
	/* That it was answered says more than what was wrong with the change. */
	if (rv != 0 && a->p && already(a->p, PROPOSAL_PENDING, &other) != 0)
		err = other;
	if (rv == 0)
		rv = carry_out(a, &err);
	if (rv != 0)
		proposal_refuse(a->done, a->user, &err);
	spec_free(a->spec);
	spec_free(a->restored);
}

/* ---- verbs */

static void ask_again(struct core *c, const char *id, op_proposal_fn done, void *user)
{
	struct ava_error err = {0};

	if (proposal_find(c, id, &err))
		err_set(&err, AVA_EINVAL, ANSWER_HELP);
	proposal_refuse(done, user, &err);
}

static void confirm(struct core *c, const char *proposal, const char *text,
		    const struct change *set, struct deciding *a)
{
	bool more = set && !change_none(set);
	struct change change;
	enum answer answer = answer_parse(text ? text : "yes", &change);

	if (more && (answer == ANSWER_NO || !change_add(&change, set)))
		answer = ANSWER_UNCLEAR;
	switch (answer) {
	case ANSWER_YES:
	case ANSWER_YES_WITH:
		a->yes = true;
		if (change_none(&change))
			decide(c, proposal, PROPOSAL_CONFIRMED, a);
		else
			decide_change(c, proposal, &change, a);
		return;
	case ANSWER_CHANGE:
		decide_change(c, proposal, &change, a);
		return;
	case ANSWER_NO:
		a->reason = text;
		decide(c, proposal, PROPOSAL_REJECTED, a);
		return;
	case ANSWER_UNCLEAR:
		break;
	}
	ask_again(c, proposal, a->done, a->user);
}

void ops_confirm(struct core *c, const char *proposal, const char *text, const struct change *set,
		 const char *by, op_proposal_fn done, void *user)
{
	struct deciding a = {.text = text, .by = by, .reason = "", .done = done, .user = user};

	confirm(c, proposal, text, set, &a);
}

void decide_said(struct core *c, const char *proposal, const char *text, const char *by,
		 op_proposal_fn done, void *user)
{
	struct deciding a = {
		.text = text, .said = true, .by = by, .reason = "", .done = done, .user = user};

	confirm(c, proposal, text, NULL, &a);
}

void ops_reject(struct core *c, const char *proposal, const char *reason, const char *by,
		op_proposal_fn done, void *user)
{
	struct deciding a = {.by = by, .reason = reason ? reason : "", .done = done, .user = user};

	decide(c, proposal, PROPOSAL_REJECTED, &a);
}

/* What is asked of proposals: to make one, of a run or of a group, and to answer it in
 * words. proposals.c has their machine.
 *
 * Happy path: the request is built (spec_build) and quoted; the words of the answer
 * are understood (answer.h), and what they change is carried out on the quoted spec
 * (change.h). A yes that only lowers runs; any other change is a new quote.
 *
 * What can fail: the request (the sentence says why, of a group also which run),
 * words that are not understood and changes that cannot be (AVA_EINVAL, and the
 * proposal waits on), an answer after another one or after the time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/answer.h"
#include "ava/ops.h"
#include "ava/proposal.h"
#include "ava/resume.h"
#include "base/clock.h"
#include "base/error.h"
#include "codec/json.h"

#define PENDING_MAX 1000
#define NOTE_MAX    (32u << 10)
#define NAMED_MAX   120 /* characters of another run's task */

static void proposal_refuse(op_proposal_fn done, void *user, const struct ava_error *err)
{
	done(err->code, NULL, err, user);
}

/* ---- proposing */

static int may_propose(struct core *c, struct ava_error *err)
{
	int rv = core_ready(c, err);

	if (rv == 0 && c->npending >= PENDING_MAX)
		rv = err_set(err, AVA_EBUSY,
			     "%d proposals wait for an answer: confirm or reject some",
			     PENDING_MAX);
	return rv;
}

/* The request was answered before, or is being: `done` is told. */
static bool asked_before(struct core *c, const char *request_id, op_proposal_fn done, void *user)
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
	else if (!proposal_at_work(p))
		proposal_reply(p, true, done, user);
	else if (proposal_wait(p, true, done, user) != 0)
		err_set(&err, AVA_ENOMEM, "out of memory");
	if (err.code)
		proposal_refuse(done, user, &err);
	return true;
}

/* ---- proposing one run */

/* `spec` is *taken*. */
static int propose_spec(struct core *c, struct run_spec *spec, const char *confirm,
			op_proposal_fn done, void *user, struct ava_error *err)
{
	struct proposal *p = proposal_new(c, NULL, 1, err);

	if (!p) {
		spec_free(spec);
		return AVA_ENOMEM;
	}
	p->specs[0] = spec;
	return proposal_open(p, confirm, done, user, err);
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
		proposal_refuse(w.done, w.user, why);
	else if (!spec)
		ops_propose(w.core, s, w.done, w.user);
	else if (propose_spec(w.core, spec, s->confirm, w.done, w.user, &err) != 0)
		proposal_refuse(w.done, w.user, &err);
}

void ops_propose(struct core *c, const struct op_spawn *s, op_proposal_fn done, void *user)
{
	struct ava_error err = {0};
	struct run_spec *spec = NULL;
	struct proposing *w;
	int64_t over;
	int rv;

	if (asked_before(c, s->request_id, done, user))
		return;
	rv = may_propose(c, &err);
	if (rv == 0 && s->confirm)
		rv = settings_confirm("confirm", s->confirm, &over, &err);
	if (rv == 0 && resume_wanted(s)) {
		w = calloc(1, sizeof(*w));
		if (w) {
			*w = (struct proposing){.core = c, .done = done, .user = user};
			resume_begin(c, s, propose_resumed, w);
			return;
		}
		rv = err_set(&err, AVA_ENOMEM, "out of memory");
	}
	if (rv == 0)
		rv = spec_build(&spec, s, &c->settings, c->model, c->redact, &err);
	if (rv == 0)
		rv = propose_spec(c, spec, s->confirm, done, user, &err);
	if (rv != 0)
		proposal_refuse(done, user, &err);
}

/* ---- proposing a group: each run is built as if it were asked for alone, with the
 * group in its spec */

/* What each may know of the others: where their results will be. */
static int sharing_note(struct buf *out, const struct op_group *o, size_t self)
{
	const char *context = o->runs[self].context;

	if (context && *context)
		buf_addf(out, "%s\n\n", context);
	buf_addf(out,
		 "You are run %zu of %zu that work side by side. What another one has found can be "
		 "read once it has ended: read_result with call_id \"sibling:N\".\n",
		 self + 1, o->nruns);
	for (size_t i = 0; i < o->nruns; i++)
		if (i != self && o->runs[i].task)
			buf_addf(out, "- sibling:%zu: %.*s\n", i + 1, NAMED_MAX, o->runs[i].task);
	return buf_check(out);
}

static int build_member(struct core *c, const struct op_group *o, size_t i, struct spec_group *g,
			struct run_spec **out, struct ava_error *err)
{
	struct op_spawn s = o->runs[i];
	struct buf note;
	int rv = 0;

	buf_init(&note, SPEC_CONTEXT_MAX + NOTE_MAX);
	g->index = (int)i + 1;
	s.group = g;
	s.session_id = o->session_id;
	s.user_id = o->user_id;
	s.origin = o->origin;
	s.request_id = i == 0 ? o->request_id : NULL;
	if (!s.cwd)
		s.cwd = o->cwd;
	if (g->share)
		rv = sharing_note(&note, o, i);
	if (rv == 0 && g->share)
		s.context = note.data;
	if (rv == 0)
		rv = spec_build(out, &s, &c->settings, c->model, c->redact, err);
	buf_fini(&note);
	return rv == 0 ? 0 : err_wrap(err, rv, "run %zu of the group", i + 1);
}

/* The first is built last: in a chain it carries the configs of those that follow.
 * The id of the group is that of its proposal with another letter, so it is known
 * before anything is written. */
static int build_members(struct proposal *p, const struct op_group *o, struct ava_error *err)
{
	char id[24];
	struct spec_group g = {
		.id = id,
		.cost_microusd = o->max_cost_microusd == AVA_DEFAULT ? -1 : o->max_cost_microusd,
		.time_ms = o->timeout_ms == AVA_DEFAULT ? 0 : o->timeout_ms,
		.size = (int)o->nruns,
		.share = o->share && !o->chain,
		.chain = o->chain,
	};
	struct buf then;
	int rv = 0;

	snprintf(id, sizeof(id), "G%s", p->id + 1);
	buf_init(&then, 64u << 20);
	for (size_t i = 1; rv == 0 && i < o->nruns; i++) {
		rv = build_member(p->core, o, i, &g, &p->specs[i], err);
		if (rv != 0)
			break;
		buf_adds(&then, i > 1 ? "," : "[");
		buf_add(&then, p->specs[i]->config, p->specs[i]->config_len);
	}
	if (rv == 0 && o->chain && o->nruns > 1) {
		if (buf_addc(&then, ']') != 0)
			rv = err_set(err, AVA_ENOMEM, "out of memory");
		g.then = then.data;
	}
	if (rv == 0)
		rv = build_member(p->core, o, 0, &g, &p->specs[0], err);
	buf_fini(&then);
	return rv;
}

static int check_group(const struct op_group *o, struct ava_error *err)
{
	if (o->nruns < 1 || o->nruns > SPEC_GROUP_MAX)
		return err_set(err, AVA_EINVAL, "a group has 1 to %d runs", SPEC_GROUP_MAX);
	if (o->max_cost_microusd != AVA_DEFAULT && o->max_cost_microusd < 0)
		return err_set(err, AVA_EINVAL, "the group's cost limit must be 0 or more");
	if (o->timeout_ms != AVA_DEFAULT && o->timeout_ms <= 0)
		return err_set(err, AVA_EINVAL, "the group's time limit must be above 0");
	return 0;
}

void ops_propose_group(struct core *c, const struct op_group *o, op_proposal_fn done, void *user)
{
	struct ava_error err = {0};
	struct proposal *p = NULL;
	int rv;

	if (asked_before(c, o->request_id, done, user))
		return;
	rv = check_group(o, &err);
	if (rv == 0)
		rv = may_propose(c, &err);
	if (rv == 0) {
		p = proposal_new(c, NULL, o->nruns, &err);
		rv = p ? build_members(p, o, &err) : AVA_ENOMEM;
	}
	if (rv == 0)
		rv = proposal_open(p, o->confirm, done, user, &err);
	else if (p)
		proposal_free(p);
	if (rv != 0)
		proposal_refuse(done, user, &err);
}

/* ---- answers: what was said, and what is there already */

/* One answer of somebody's. */
struct deciding {
	struct proposal *p;
	const char *text, *by, *reason;
	bool logged; /* its UserMessage is written already */
	bool yes;
	op_proposal_fn done;
	void *user;
};

/* What was answered before is answered again; the other way round is an error. */
static int check_open(const struct proposal *p, enum proposal_step wanted, struct ava_error *err)
{
	enum proposal_step step = p->step;

	/* The timer may be late, after a sleep of the machine for example. */
	if (step == STEP_PENDING && clock_wall_ms() >= p->expires_ms)
		step = STEP_EXPIRED;
	else if (step == wanted)
		return 0;
	switch (step) {
	case STEP_EXPIRED:
		return err_set(err, AVA_EEXPIRED, "proposal %s has expired: ask for a new one",
			       p->id);
	case STEP_REPLACED:
		return err_set(err, AVA_EREJECTED,
			       "proposal %s was replaced by %s: answer that one", p->id,
			       p->replaced_by);
	case STEP_REJECTED:
		return err_set(err, AVA_EREJECTED, "proposal %s was rejected: ask for a new one",
			       p->id);
	case STEP_CONFIRMED:
		return err_set(err, AVA_EEXIST,
			       "proposal %s was confirmed already and runs as %s; "
			       "ava cancel %s stops it",
			       p->id, p->run, p->run);
	case STEP_WRITING:
	case STEP_PENDING:
	case STEP_ANSWERING:
		break;
	}
	return 0;
}

static int answer_busy(const struct proposal *p, struct ava_error *err)
{
	return err_set(err, AVA_EBUSY, "proposal %s is being answered right now", p->id);
}

/* `lowered` and `successor` are *taken*. */
static int answer_now(const struct deciding *a, enum proposal_step to, struct run_spec *lowered,
		      struct proposal *successor, struct ava_error *err)
{
	char reason[64];
	struct proposal_answer *answer;

	snprintf(reason, sizeof(reason), "replaced by %s", successor ? successor->id : "");
	answer = proposal_answer_new(to, a->logged ? NULL : a->text, a->by,
				     successor ? reason : a->reason);
	if (answer) {
		answer->lowered = lowered;
		answer->successor = successor;
		return proposal_answer(a->p, answer, err);
	}
	spec_free(lowered);
	if (successor)
		proposal_free(successor);
	return err_set(err, AVA_ENOMEM, "out of memory");
}

/* Yes or no, to the quote as it stands. 0: `done` was called or will be. */
static int decide(struct deciding *a, enum proposal_step wanted, struct ava_error *err)
{
	struct proposal *p = a->p;
	int rv = check_open(p, wanted, err);

	if (rv != 0)
		return rv;
	if (p->step == wanted) {
		proposal_reply(p, true, a->done, a->user);
		return 0;
	}
	if (p->step == STEP_PENDING)
		rv = answer_now(a, wanted, NULL, NULL, err);
	else if (!p->answer || p->answer->to != wanted)
		rv = answer_busy(p, err);
	if (rv == 0 && proposal_wait(p, false, a->done, a->user) != 0)
		rv = err_set(err, AVA_EUNKNOWN, "out of memory: ask again");
	return rv;
}

/* The same answer again, after or while it is written: 1 when it was told. */
static int said_before(struct deciding *a, const struct run_spec *wanted)
{
	struct proposal *p = a->p;
	struct proposal *q =
		p->replaced_by[0] ? strmap_get(&p->core->proposals, p->replaced_by) : NULL;

	if (q && strcmp(q->hash, wanted->hash) == 0)
		p = q;
	else if (!a->yes || strcmp(p->confirmed_hash, wanted->hash) != 0)
		return 0;
	if (!proposal_at_work(p))
		proposal_reply(p, true, a->done, a->user);
	else if (proposal_wait(p, true, a->done, a->user) != 0)
		return AVA_ENOMEM;
	return 1;
}

/* A new proposal with what is wanted ends this one; nothing runs. `wanted` is *taken*. */
static int quote_again(struct deciding *a, struct run_spec *wanted, struct ava_error *err)
{
	struct proposal *p = a->p, *q = proposal_new(p->core, NULL, 1, err);
	int rv = AVA_ENOMEM;

	if (!q) {
		spec_free(wanted);
		return rv;
	}
	q->specs[0] = wanted;
	q->instead = proposal_changes(p->specs[0], wanted);
	if (!q->instead || proposal_enlist(q, clock_wall_ms()) != 0) {
		proposal_free(q);
		return err_set(err, rv, "out of memory");
	}
	snprintf(q->replaces, sizeof(q->replaces), "%s", p->id);
	rv = answer_now(a, STEP_REPLACED, NULL, q, err);
	if (rv == 0 && proposal_wait(q, false, a->done, a->user) != 0)
		rv = err_set(err, AVA_EUNKNOWN, "out of memory: ask again");
	return rv;
}

/* What was quoted with the change in it; *quoted is the quote, *kept the caller's to
 * free where a run has that. */
static int build_wanted(const struct deciding *a, const struct change *change,
			const struct run_spec **quoted, struct run_spec **kept,
			struct run_spec **wanted, struct ava_error *err)
{
	struct proposal *p = a->p;
	struct core *c = p->core;
	json_t *config;
	int rv;

	*quoted = p->specs[0];
	if (!*quoted) {
		config = json_parse(p->config, strlen(p->config), err);
		rv = config ? spec_from_json(kept, config, "", "", "", err) : AVA_ECORRUPT;
		json_decref(config);
		if (rv != 0)
			return rv;
		*quoted = *kept;
	}
	return change_spec(wanted, *quoted, change, &c->settings, c->model, c->redact, err);
}

/* Yes with a change, or a change alone. 0: `done` was called or will be. */
static int decide_change(struct deciding *a, const struct change *change, struct ava_error *err)
{
	struct proposal *p = a->p;
	struct run_spec *kept = NULL, *wanted = NULL;
	const struct run_spec *quoted = NULL;
	struct ava_error other = {0};
	bool same, lowers;
	int rv;

	if (p->group_id[0])
		return err_set(err, AVA_EINVAL,
			       "%s is a group: answer yes or no, or propose it anew with what is "
			       "wanted",
			       p->id);
	rv = build_wanted(a, change, &quoted, &kept, &wanted, err);
	if (rv == 0 && (rv = said_before(a, wanted)) != 0) {
		rv = rv > 0 ? 0 : err_set(err, rv, "out of memory: ask again");
		goto out;
	}
	/* That it was answered says more than what was wrong with the change. */
	if (check_open(p, STEP_PENDING, &other) != 0) {
		*err = other;
		rv = err->code;
	}
	if (rv == 0 && p->step != STEP_PENDING)
		rv = answer_busy(p, err);
	if (rv != 0)
		goto out;
	same = strcmp(wanted->hash, p->hash) == 0;
	lowers = a->yes && change_lowers(quoted, wanted);
	if (same && !a->yes) {
		rv = err_set(err, AVA_EINVAL,
			     "that is what proposal %s says already: answer yes or no", p->id);
	} else if (!lowers) {
		rv = quote_again(a, wanted, err);
		wanted = NULL;
	} else {
		rv = answer_now(a, STEP_CONFIRMED, same ? NULL : wanted, NULL, err);
		wanted = same ? wanted : NULL;
		if (rv == 0 && proposal_wait(p, false, a->done, a->user) != 0)
			rv = err_set(err, AVA_EUNKNOWN, "out of memory: ask again");
	}

out:
	spec_free(wanted);
	spec_free(kept);
	return rv;
}

/* ---- verbs */

static void confirm(struct core *c, const char *proposal, const struct change *set,
		    struct deciding *a)
{
	bool more = set && !change_none(set);
	struct ava_error err = {0};
	struct change change;
	enum answer answer = answer_parse(a->text ? a->text : "yes", &change);
	int rv;

	a->p = proposal_find(c, proposal, &err);
	rv = err.code;
	if (more && (answer == ANSWER_NO || !change_add(&change, set)))
		answer = ANSWER_UNCLEAR;
	a->yes = answer == ANSWER_YES || answer == ANSWER_YES_WITH;
	a->reason = answer == ANSWER_NO ? a->text : "";
	if (rv == 0 && answer == ANSWER_UNCLEAR)
		rv = err_set(&err, AVA_EINVAL, ANSWER_HELP);
	else if (rv == 0 && !change_none(&change))
		rv = decide_change(a, &change, &err);
	else if (rv == 0)
		rv = decide(a, a->yes ? STEP_CONFIRMED : STEP_REJECTED, &err);
	if (rv != 0)
		proposal_refuse(a->done, a->user, &err);
}

void ops_confirm(struct core *c, const char *proposal, const char *text, const struct change *set,
		 const char *by, op_proposal_fn done, void *user)
{
	struct deciding a = {.text = text, .by = by, .done = done, .user = user};

	confirm(c, proposal, set, &a);
}

void proposal_said(struct core *c, const char *proposal, const char *text, const char *by,
		   op_proposal_fn done, void *user)
{
	struct deciding a = {.text = text, .logged = true, .by = by, .done = done, .user = user};

	confirm(c, proposal, NULL, &a);
}

void ops_reject(struct core *c, const char *proposal, const char *reason, const char *by,
		op_proposal_fn done, void *user)
{
	struct ava_error err = {0};
	struct deciding a = {.p = proposal_find(c, proposal, &err),
			     .by = by,
			     .reason = reason,
			     .done = done,
			     .user = user};

	if (!a.p || decide(&a, STEP_REJECTED, &err) != 0)
		proposal_refuse(done, user, &err);
}

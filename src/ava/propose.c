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

/* The request was answered before, or is being: who asks is told. */
static bool asked_before(struct core *c, const char *request_id, struct asker *a)
{
	struct request *known = core_request(c, request_id);
	struct proposal *p =
		known && known->proposal[0] ? strmap_get(&c->proposals, known->proposal) : NULL;
	struct ava_error err = {0};

	if (!known)
		return false;
	if (p) {
		proposal_tell(p, a, true);
		return true;
	}
	err_set(&err, AVA_EEXIST, "request %s already started run %s", request_id,
		known->run[0] ? known->run : "(forgotten)");
	asker_refuse(a, &err);
	return true;
}

/* `spec` is *taken*. */
static int propose_spec(struct core *c, struct run_spec *spec, const char *confirm, struct asker *a,
			struct ava_error *err)
{
	struct proposal *p = proposal_new(c, NULL, 1, err);

	if (!p) {
		spec_free(spec);
		return AVA_ENOMEM;
	}
	p->specs[0] = spec;
	return proposal_open(p, confirm, a, err);
}

static void propose(struct core *c, const struct op_spawn *s, struct asker *a);

static void propose_resumed(int rv, struct run_spec *spec, const struct op_spawn *s,
			    const struct ava_error *why, void *user)
{
	struct asker *a = user;
	struct ava_error err = {0};

	if (rv != 0)
		asker_refuse(a, why);
	else if (!spec)
		propose(a->core, s, a);
	else if (propose_spec(a->core, spec, s->confirm, a, &err) != 0)
		asker_refuse(a, &err);
}

static void propose(struct core *c, const struct op_spawn *s, struct asker *a)
{
	struct ava_error err = {0};
	struct run_spec *spec = NULL;
	int64_t over;
	int rv;

	if (asked_before(c, s->request_id, a))
		return;
	rv = may_propose(c, &err);
	if (rv == 0 && s->confirm)
		rv = settings_confirm("confirm", s->confirm, &over, &err);
	if (rv == 0 && resume_wanted(s)) {
		resume_begin(c, s, propose_resumed, a);
		return;
	}
	if (rv == 0)
		rv = spec_build(&spec, s, &c->settings, c->model, c->redact, &err);
	if (rv == 0)
		rv = propose_spec(c, spec, s->confirm, a, &err);
	if (rv != 0)
		asker_refuse(a, &err);
}

void ops_propose(struct core *c, const struct op_spawn *s, op_proposal_fn done, void *user)
{
	struct asker *a = asker_new(c, done, user);

	if (a)
		propose(c, s, a);
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
	struct asker *a = asker_new(c, done, user);
	struct ava_error err = {0};
	struct proposal *p = NULL;
	int rv;

	if (!a || asked_before(c, o->request_id, a))
		return;
	rv = check_group(o, &err);
	if (rv == 0)
		rv = may_propose(c, &err);
	if (rv == 0) {
		p = proposal_new(c, NULL, o->nruns, &err);
		rv = p ? build_members(p, o, &err) : AVA_ENOMEM;
	}
	if (rv == 0)
		rv = proposal_open(p, o->confirm, a, &err);
	else if (p)
		proposal_free(p);
	if (rv != 0)
		asker_refuse(a, &err);
}

/* ---- answers */

/* One answer of somebody's. */
struct deciding {
	struct asker *asker;
	const char *text, *by, *reason;
	bool logged; /* its UserMessage is written already */
	bool yes;
};

/* Can it be answered? */
static int check_open(const struct proposal *p, struct ava_error *err)
{
	enum proposal_step step = p->step;

	/* The timer may be late, after a sleep of the machine for example. */
	if (step == STEP_PENDING && clock_wall_ms() >= p->expires_ms)
		step = STEP_EXPIRED;
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
	case STEP_ANSWERING:
		return err_set(err, AVA_EBUSY, "proposal %s is being answered right now", p->id);
	case STEP_PENDING:
		break;
	}
	return 0;
}

/* The proposal that says what was answered before, or is being: what is answered again
 * is told again, the other way round is an error. NULL: it was not. */
static struct proposal *answered_before(struct proposal *p, bool yes, const struct run_spec *wanted)
{
	enum proposal_step to = yes ? STEP_CONFIRMED : STEP_REJECTED;
	struct proposal *q =
		p->replaced_by[0] ? strmap_get(&p->core->proposals, p->replaced_by) : NULL;

	if (!wanted)
		return p->step == to || (p->answer && p->answer->to == to) ? p : NULL;
	if (q && strcmp(q->hash, wanted->hash) == 0)
		return q;
	return yes && strcmp(p->confirmed_hash, wanted->hash) == 0 ? p : NULL;
}

/* A new proposal of what is wanted, which is *taken*, instead of `p`. */
static int quote_again(struct proposal *p, struct run_spec *wanted, struct proposal **out,
		       struct ava_error *err)
{
	struct proposal *q = proposal_new(p->core, NULL, 1, err);

	if (!q) {
		spec_free(wanted);
		return AVA_ENOMEM;
	}
	q->specs[0] = wanted;
	q->instead = proposal_changes(p->specs[0], wanted);
	if (!q->instead || proposal_enlist(q, clock_wall_ms()) != 0) {
		proposal_free(q);
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	snprintf(q->replaces, sizeof(q->replaces), "%s", p->id);
	*out = q;
	return 0;
}

/* *wanted is what was quoted with the change in it, *lowers: a yes to the quote covers it. */
static int build_wanted(const struct proposal *p, const struct change *change,
			struct run_spec **wanted, bool *lowers, struct ava_error *err)
{
	struct core *c = p->core;
	struct run_spec *quoted = p->specs[0];
	json_t *config;
	int rv = 0;

	if (p->group_id[0])
		return err_set(err, AVA_EINVAL,
			       "%s is a group: answer yes or no, or propose it anew with what is "
			       "wanted",
			       p->id);
	if (!quoted) { /* a run has it */
		config = json_parse(p->config, strlen(p->config), err);
		rv = config ? spec_from_json(&quoted, config, "", "", "", err) : AVA_ECORRUPT;
		json_decref(config);
	}
	if (rv == 0)
		rv = change_spec(wanted, quoted, change, &c->settings, c->model, c->redact, err);
	if (rv == 0)
		*lowers = change_lowers(quoted, *wanted);
	if (quoted != p->specs[0])
		spec_free(quoted);
	return rv;
}

/* A yes that only lowers runs; any other change ends this proposal with a new one. On
 * error who asks is still the caller's. */
static int decide(const struct deciding *d, struct proposal *p, const struct change *change,
		  struct ava_error *err)
{
	struct proposal_answer *a = NULL;
	struct run_spec *wanted = NULL;
	struct proposal *told, *q = NULL;
	struct ava_error other = {0};
	char reason[64];
	bool lowers = true;
	int rv = change ? build_wanted(p, change, &wanted, &lowers, err) : 0;

	if (rv == 0 && (told = answered_before(p, d->yes, wanted)) != NULL) {
		proposal_tell(told, d->asker, true);
		goto out;
	}
	/* That it was answered says more than what was wrong with the change. */
	if (check_open(p, &other) != 0) {
		*err = other;
		rv = err->code;
	} else if (rv == 0 && wanted && strcmp(wanted->hash, p->hash) == 0) {
		spec_free(wanted);
		wanted = NULL;
		if (!d->yes)
			rv = err_set(err, AVA_EINVAL,
				     "that is what proposal %s says already: answer yes or no",
				     p->id);
	} else if (rv == 0 && wanted && !(d->yes && lowers)) {
		rv = quote_again(p, wanted, &q, err);
		wanted = NULL;
	}
	if (rv != 0)
		goto out;
	snprintf(reason, sizeof(reason), "replaced by %s", q ? q->id : "");
	a = proposal_answer_new(q        ? STEP_REPLACED
				: d->yes ? STEP_CONFIRMED
					 : STEP_REJECTED,
				d->logged ? NULL : d->text, d->by, q ? reason : d->reason);
	if (a) {
		a->lowered = wanted;
		a->successor = q;
		wanted = NULL;
		rv = proposal_answer(p, a, err);
	} else {
		rv = err_set(err, AVA_ENOMEM, "out of memory");
		if (q)
			proposal_free(q);
	}
	if (rv == 0)
		proposal_tell(q ? q : p, d->asker, false);

out:
	spec_free(wanted);
	return rv;
}

/* ---- verbs */

static void confirm(struct core *c, const char *proposal, const struct change *set,
		    struct deciding *d)
{
	struct ava_error err = {0};
	struct change change;
	enum answer answer = answer_parse(d->text ? d->text : "yes", &change);
	struct proposal *p = proposal_find(c, proposal, &err);

	if (set && !change_none(set) && (answer == ANSWER_NO || !change_add(&change, set)))
		answer = ANSWER_UNCLEAR;
	d->yes = answer == ANSWER_YES || answer == ANSWER_YES_WITH;
	d->reason = answer == ANSWER_NO ? d->text : "";
	if (p && answer == ANSWER_UNCLEAR)
		err_set(&err, AVA_EINVAL, ANSWER_HELP);
	else if (p)
		decide(d, p, change_none(&change) ? NULL : &change, &err);
	if (err.code)
		asker_refuse(d->asker, &err);
}

void ops_confirm(struct core *c, const char *proposal, const char *text, const struct change *set,
		 const char *by, op_proposal_fn done, void *user)
{
	struct deciding d = {.asker = asker_new(c, done, user), .text = text, .by = by};

	if (d.asker)
		confirm(c, proposal, set, &d);
}

void proposal_said(struct core *c, const char *proposal, const char *text, const char *by,
		   op_proposal_fn done, void *user)
{
	struct deciding d = {
		.asker = asker_new(c, done, user), .text = text, .logged = true, .by = by};

	if (d.asker)
		confirm(c, proposal, NULL, &d);
}

void ops_reject(struct core *c, const char *proposal, const char *reason, const char *by,
		op_proposal_fn done, void *user)
{
	struct deciding d = {.asker = asker_new(c, done, user), .by = by, .reason = reason};
	struct ava_error err = {0};
	struct proposal *p = d.asker ? proposal_find(c, proposal, &err) : NULL;

	if (d.asker && (!p || decide(&d, p, NULL, &err) != 0))
		asker_refuse(d.asker, &err);
}

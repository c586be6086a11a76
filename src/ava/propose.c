/* Requests about proposals: to make one, of a run or of a group, and to answer it in words.
 * proposals.c has their machine.
 *
 * Happy path: the request is built (spec_build) and quoted; the words of the answer are parsed
 * (answer.h), and a change is carried out on the quoted spec (change.h). A yes that only lowers
 * the quote starts the run; any other change is a new quote.
 *
 * What can fail: the request (the sentence says why, of a group also which run), unclear words and
 * impossible changes (AVA_EINVAL, and the proposal waits on), an answer after another one or after
 * the time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "ava/answer.h"
#include "ava/change.h"
#include "ava/ops.h"
#include "ava/proposal.h"
#include "ava/verbs.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "codec/json.h"
#include "provider/model.h"
#include "subagent/rights.h"
#include "subagent/spec.h"

#define PENDING_MAX   1000
#define PENDING_BYTES ((size_t)16 << 20)
#define NOTE_MAX      (32u << 10)
#define NAMED_MAX     120 /* characters of another run's task */

/* ---- proposing */

/* Bounds the memory of proposals: first drops the text of the oldest answered ones, then refuses
 * new ones. */
static bool proposals_fit(struct core *c)
{
	size_t open = 0, all = 0;
	char *less;

	LIST_EACH (&c->proposal_order, node, tmp) {
		struct proposal *p = LIST_ENTRY(node, struct proposal, node);
		size_t len = strlen(p->config);

		all += len;
		open += proposal_settled(p) ? 0 : len;
		if (all > PENDING_BYTES && len > PENDING_BYTES / PENDING_MAX &&
		    proposal_settled(p)) {
			memcpy(p->config, "{}", 3);
			less = realloc(p->config, 3);
			p->config = less ? less : p->config;
		}
	}
	return open <= PENDING_BYTES;
}

static int may_propose(struct core *c, struct ava_error *err)
{
	int rv = core_ready(c, err);

	if (rv == 0 && !proposals_fit(c))
		rv = err_set(err, AVA_EBUSY,
			     "the proposals that wait for an answer are %zu MB of text: confirm or "
			     "reject some",
			     PENDING_BYTES >> 20);
	if (rv == 0 && c->npending >= PENDING_MAX)
		rv = err_set(err, AVA_EBUSY,
			     "%d proposals wait for an answer: confirm or reject some",
			     PENDING_MAX);
	return rv;
}

/* The request was answered before, or is being answered: `a` gets the same answer. */
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

static void propose_propose(struct core *c, const struct op_spawn *s, struct asker *a);

static void propose_resumed(int rv, struct run_spec *spec, const struct op_spawn *s,
			    const struct ava_error *why, void *user)
{
	struct asker *a = user;
	struct ava_error err = {0};

	if (rv != 0)
		asker_refuse(a, why);
	else if (!spec)
		propose_propose(a->core, s, a);
	else if (propose_spec(a->core, spec, s->confirm, a, &err) != 0)
		asker_refuse(a, &err);
}

static void propose_propose(struct core *c, const struct op_spawn *s, struct asker *a)
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
		propose_propose(c, s, a);
}

/* ---- proposing a group: each run is built as if it were asked for alone, with the
 * group in its spec */

/* Tells a run where results of its siblings will be. */
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
	return rv;
}

/* Names all members that cannot be built, not only the first, so that the caller mends all at
 * once. */
static int members_failed(struct core *c, const struct op_group *o, size_t bad,
			  struct spec_group *g, struct ava_error *err)
{
	char which[200] = "";
	size_t n = 0, len = 0;

	for (size_t i = 0; i < o->nruns; i++) {
		struct ava_error other = {0};
		struct run_spec *spec = NULL;
		int rv;

		g->index = (int)i + 1;
		rv = i == bad ? 0 : build_member(c, o, i, g, &spec, &other);

		spec_free(spec);
		if (i != bad && (rv == 0 || strcmp(other.text, err->text) != 0))
			continue;
		if (len < sizeof(which) - 24)
			len += (size_t)snprintf(which + len, sizeof(which) - len, "%s%zu",
						n > 0 ? ", " : "", i + 1);
		n++;
	}
	if (n == o->nruns && n > 1)
		return err_wrap(err, err->code, "each run of the group");
	return err_wrap(err, err->code, "run%s %s of the group", n > 1 ? "s" : "", which);
}

typedef int (*member_fn)(void *user, size_t i, struct spec_group *g, struct run_spec **out,
			 struct ava_error *err);

/* Rights that each run gets from the others' results: from all that are before it, with `share`
 * from all. Each is built once without them to find out. */
static int list_given(size_t n, struct spec_group *g, const struct after_set *after,
		      member_fn build, void *user, unsigned given[SPEC_GROUP_MAX], size_t *at,
		      struct ava_error *err)
{
	unsigned own[SPEC_GROUP_MAX], all = 0;
	int order[AFTER_MAX];
	size_t count = after_order(after, n, order);
	bool any = g->share;

	memset(given, 0, SPEC_GROUP_MAX * sizeof(*given));
	for (size_t i = 0; i < n; i++)
		any = any || !after_none(&after[i]);
	for (size_t i = 0; any && i < n; i++) {
		struct run_spec *spec = NULL;
		int rv;

		*at = i;
		g->index = (int)i + 1;
		g->given = 0;
		g->after = after[i];
		rv = build(user, i, g, &spec, err);
		if (rv != 0)
			return rv;
		own[i] = spec->rights & RIGHTS_SEEN;
		all |= own[i];
		spec_free(spec);
	}
	for (size_t k = 0; any && k < count; k++)
		for (int before = 1; before <= (int)n; before++)
			if (g->share || after_has(&after[order[k] - 1], before))
				given[order[k] - 1] |=
					g->share ? all : own[before - 1] | given[before - 1];
	return 0;
}

/* *at: the one that failed. */
static int propose_build_list(struct run_spec **specs, size_t n, struct spec_group *g,
			      const struct after_set *after, member_fn build, void *user,
			      size_t *at, struct ava_error *err)
{
	unsigned given[SPEC_GROUP_MAX];
	int rv = list_given(n, g, after, build, user, given, at, err);

	for (size_t i = 0; rv == 0 && i < n; i++) {
		*at = i;
		g->index = (int)i + 1;
		g->given = given[i];
		g->after = after[i];
		rv = build(user, i, g, &specs[i], err);
	}
	return rv;
}

struct asked_group {
	struct core *core;
	const struct op_group *o;
};

/* The runs that each waits for: as the request says, or the one before it. */
static int asked_after(const struct op_group *o, struct after_set after[SPEC_GROUP_MAX],
		       struct ava_error *err)
{
	struct after_asked asked[SPEC_GROUP_MAX];
	int rv;

	for (size_t i = 0; i < o->nruns; i++) {
		const struct op_spawn *s = &o->runs[i];

		asked[i] = (struct after_asked){s->id, s->after, s->nafter};
		if (o->chain && s->nafter > 0)
			return err_set(
				err, AVA_EINVAL,
				"run %zu of the group: a chain is an order already, leave out "
				"chain or after",
				i + 1);
	}
	rv = after_read(after, asked, o->nruns, err);
	for (size_t i = 1; rv == 0 && o->chain && i < o->nruns; i++)
		after_add(&after[i], (int)i);
	return rv;
}

static int asked_member(void *user, size_t i, struct spec_group *g, struct run_spec **out,
			struct ava_error *err)
{
	struct asked_group *a = user;

	g->name = a->o->runs[i].id;
	return build_member(a->core, a->o, i, g, out, err);
}

/* A group's id is its proposal's with another letter, so it is known before anything is written. */
static void group_id(const struct proposal *p, char id[24])
{
	snprintf(id, 24, "G%.22s", p->id + 1);
}

static int build_members(struct proposal *p, const struct op_group *o, struct ava_error *err)
{
	struct asked_group asked = {p->core, o};
	char id[24];
	struct spec_group g = {
		.id = id,
		.cost_microusd = o->max_cost_microusd == AVA_DEFAULT ? -1 : o->max_cost_microusd,
		.time_ms = o->timeout_ms == AVA_DEFAULT ? 0 : o->timeout_ms,
		.size = (int)o->nruns,
		.share = o->share && !o->chain,
		.chain = o->chain,
	};
	struct after_set after[SPEC_GROUP_MAX];
	size_t at;
	int rv = asked_after(o, after, err);

	if (rv != 0)
		return rv;
	group_id(p, id);
	rv = propose_build_list(p->specs, o->nruns, &g, after, asked_member, &asked, &at, err);
	return rv == 0 ? 0 : members_failed(p->core, o, at, &g, err);
}

void ops_propose_group(struct core *c, const struct op_group *o, op_proposal_fn done, void *user)
{
	struct asker *a = asker_new(c, done, user);
	struct ava_error err = {0};
	struct proposal *p = NULL;
	int rv;

	if (!a || asked_before(c, o->request_id, a))
		return;
	if (o->nruns < 1 || o->nruns > SPEC_GROUP_MAX)
		rv = err_set(&err, AVA_EINVAL, "a group has 1 to %d runs", SPEC_GROUP_MAX);
	else if (o->max_cost_microusd != AVA_DEFAULT && o->max_cost_microusd < 0)
		rv = err_set(&err, AVA_EINVAL, "the group's cost limit must be 0 or more");
	else if (o->timeout_ms != AVA_DEFAULT && o->timeout_ms <= 0)
		rv = err_set(&err, AVA_EINVAL, "the group's time limit must be above 0");
	else
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

/* An answer of a person or a program. */
struct deciding {
	struct asker *asker;
	const char *text, *by, *origin, *reason;
	bool logged; /* the answer's UserMessage is written already */
	bool yes;
	bool all_three; /* the words allow all three rights */
};

/* 0: the proposal can be answered. */
static int check_open(const struct proposal *p, struct ava_error *err)
{
	enum proposal_step step = p->step;

	/* Compare the clock: the timer may be late, after a sleep of the machine for example. */
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

/* The quoted specs with a change in them: `n`, *owned*; NULL: no change is wanted. */
struct propose_wanted {
	struct run_spec **specs;
	unsigned n;
	char hash[HASH_HEX_LEN + 1];
	bool lowers; /* a yes covers the changed specs: they only lower the quote */
};

/* The proposal with the result of an earlier, or pending, equal answer; an opposite answer is an
 * error of the caller's. NULL: there was none. */
static struct proposal *answered_before(struct proposal *p, bool yes,
					const struct propose_wanted *w)
{
	enum proposal_step to = yes ? STEP_CONFIRMED : STEP_REJECTED;
	struct proposal *q =
		p->replaced_by[0] ? strmap_get(&p->core->proposals, p->replaced_by) : NULL;

	if (!w->specs)
		return p->step == to || (p->answer && p->answer->to == to) ? p : NULL;
	if (q && strcmp(q->hash, w->hash) == 0)
		return q;
	return yes && strcmp(p->confirmed_hash, w->hash) == 0 ? p : NULL;
}

struct changed_group {
	struct run_spec *const *quoted;
	unsigned n;
	struct change each;
	struct core *core;
};

static int changed_member(void *user, size_t i, struct spec_group *g, struct run_spec **out,
			  struct ava_error *err)
{
	struct changed_group *c = user;
	struct change change = c->each;

	/* "without X" applies to a run without X only if no other run has X. */
	change.nwithout = 0;
	for (unsigned k = 0; k < c->each.nwithout; k++) {
		const char *word = c->each.without[k];
		bool others = false;

		for (unsigned j = 0; j < c->n; j++)
			others = others || (j != i && change_finds(c->quoted[j], word));
		if (!others || change_finds(c->quoted[i], word))
			memcpy(change.without[change.nwithout++], word, sizeof(change.without[0]));
	}
	g->name = c->quoted[i]->group.name;
	return change_spec(out, c->quoted[i], &change, g, c->core, err);
}

/* Changed cost and time are totals of the group; any other change applies to each run. */
static int change_group(struct run_spec *const *quoted, unsigned n, const struct change *change,
			const char *id, struct core *core, struct run_spec **out,
			struct ava_error *err)
{
	struct changed_group c = {quoted, n, *change, core};
	struct spec_group g = quoted[0]->group;
	struct after_set after[SPEC_GROUP_MAX];
	size_t at;

	g.id = id;
	for (unsigned i = 0; i < n; i++)
		after[i] = quoted[i]->group.after;
	if (change->cost_microusd != CHANGE_KEEP)
		g.cost_microusd = change->cost_microusd;
	if (change->time_ms != CHANGE_KEEP)
		g.time_ms = change->time_ms;
	c.each.cost_microusd = c.each.time_ms = CHANGE_KEEP;
	return propose_build_list(out, n, &g, after, changed_member, &c, &at, err);
}

/* Makes a new proposal in place of `p` from `w`, which is *taken*. A group gets a new id, so its
 * runs are built anew. */
static int quote_again(struct proposal *p, struct propose_wanted *w, const struct change *change,
		       struct proposal **out, struct ava_error *err)
{
	struct proposal *q = proposal_new(p->core, NULL, w->n, err);
	char id[24];
	int rv = q ? 0 : AVA_ENOMEM;

	if (rv == 0 && p->group_id[0]) {
		group_id(q, id);
		rv = change_group(p->specs, p->n, change, id, p->core, q->specs, err);
	} else if (rv == 0) {
		q->specs[0] = w->specs[0];
		w->specs[0] = NULL;
	}
	if (rv == 0) {
		snprintf(q->replaces, sizeof(q->replaces), "%s", p->id);
		q->instead = change_words(p->specs, q->specs, p->n);
		if (!q->instead || proposal_enlist(q, clock_wall_ms()) != 0)
			rv = err_set(err, AVA_ENOMEM, "out of memory");
	}
	if (rv == 0)
		*out = q;
	else if (q)
		proposal_free(q);
	return rv;
}

static int build_changed(const struct proposal *p, const struct change *change,
			 struct propose_wanted *w, struct ava_error *err)
{
	struct run_spec *quoted = p->specs[0];
	json_t *config;
	int rv = 0;

	if (!quoted) { /* the spec belongs to a run now */
		config = json_parse(p->config, strlen(p->config), err);
		rv = config ? spec_from_json(&quoted, config, "", "", "", err) : AVA_ECORRUPT;
		json_decref(config);
	}
	if (rv == 0)
		rv = change_spec(&w->specs[0], quoted, change, NULL, p->core, err);
	if (rv == 0)
		w->lowers = change_lowers(quoted, w->specs[0]);
	if (quoted != p->specs[0])
		spec_free(quoted);
	return rv;
}

static int build_wanted(const struct proposal *p, const struct change *change,
			struct propose_wanted *w, struct ava_error *err)
{
	struct buf config;
	int rv;

	w->n = p->n;
	w->specs = calloc(p->n, sizeof(struct run_spec *));
	if (!w->specs)
		return err_set(err, AVA_ENOMEM, "out of memory");
	if (!p->group_id[0]) {
		rv = build_changed(p, change, w, err);
	} else if (!p->specs[0]) {
		rv = err_set(err, AVA_EEXIST, "%s was answered already", p->id);
	} else {
		rv = change_group(p->specs, p->n, change, p->group_id, p->core, w->specs, err);
		w->lowers = rv == 0 && group_lowers(&p->specs[0]->group, &w->specs[0]->group);
		for (unsigned i = 0; rv == 0 && i < p->n; i++)
			w->lowers = w->lowers && change_lowers(p->specs[i], w->specs[i]);
	}
	buf_init(&config, 64u << 20);
	if (rv == 0)
		rv = quote_config(&config, w->specs, w->n);
	if (rv == 0)
		hash_sha256_hex(config.data, config.len, w->hash);
	buf_fini(&config);
	return rv;
}

static void wanted_fini(struct propose_wanted *w)
{
	specs_free(w->specs, w->n);
	w->specs = NULL;
}

/* A plain yes does not allow all three rights, whoever says it: the error says which words do. */
static int propose_check_rights(const struct proposal *p, const struct propose_wanted *w,
				bool all_three, struct ava_error *err)
{
	struct run_spec *const *specs = w->specs ? w->specs : p->specs;

	if (all_three || !spec_asks_all_three(specs, p->n))
		return 0;
	return err_set(err, AVA_EINVAL,
		       "%s is not started: this " RIGHTS_SENTENCE
		       "; behind other words name it: \"yes, all three, %s\"",
		       p->id, p->id);
}

/* Are instruction files or skills of an open proposal others than those that were quoted? */
static bool guide_changed(const struct proposal *p)
{
	for (unsigned i = 0; p->step == STEP_PENDING && i < p->n; i++)
		if (p->specs[i] && spec_guide_changed(p->specs[i]))
			return true;
	return false;
}

/* A yes that only lowers the quote, while its instructions are as quoted, starts the run; any other
 * change ends this proposal with a new one. On error `d->asker` stays the caller's. */
static int propose_decide(const struct deciding *d, struct proposal *p, const struct change *change,
			  struct ava_error *err)
{
	const struct change anew = CHANGE_NONE; /* nothing but what its files say by now */
	struct proposal_answer *a = NULL;
	struct propose_wanted wanted = {0};
	struct proposal *told, *q = NULL;
	struct ava_error other = {0};
	char reason[64];
	int rv;

	if (!change && d->yes && guide_changed(p))
		change = &anew;
	rv = change ? build_wanted(p, change, &wanted, err) : 0;

	if (rv == 0 && (told = answered_before(p, d->yes, &wanted)) != NULL) {
		proposal_tell(told, d->asker, true);
		goto out;
	}
	/* "Answered already" is the better error than a fault of the change. */
	if (check_open(p, &other) != 0) {
		*err = other;
		rv = err->code;
	} else if (rv == 0 && wanted.specs && strcmp(wanted.hash, p->hash) == 0) {
		wanted_fini(&wanted);
		if (!d->yes)
			rv = err_set(err, AVA_EINVAL,
				     "that is how %s is quoted already: answer yes or no", p->id);
	} else if (rv == 0 && wanted.specs && !(d->yes && wanted.lowers)) {
		rv = quote_again(p, &wanted, change, &q, err);
		wanted_fini(&wanted);
	}
	if (rv == 0 && d->yes && !q)
		rv = propose_check_rights(p, &wanted, d->all_three, err);
	if (rv != 0)
		goto out;
	snprintf(reason, sizeof(reason), "replaced by %s", q ? q->id : "");
	a = proposal_answer_new(q        ? STEP_REPLACED
				: d->yes ? STEP_CONFIRMED
					 : STEP_REJECTED,
				d->logged ? NULL : d->text, d->by, q ? reason : d->reason);
	if (a) {
		p->said_here = d->logged;
		snprintf(a->origin, sizeof(a->origin), "%s", d->origin ? d->origin : "");
		a->all_three = d->yes && d->all_three;
		a->lowered = wanted.specs;
		a->nlowered = wanted.n;
		snprintf(a->hash, sizeof(a->hash), "%s", wanted.hash);
		a->successor = q;
		wanted.specs = NULL;
		rv = proposal_answer(p, a, err);
	} else {
		rv = err_set(err, AVA_ENOMEM, "out of memory");
		if (q)
			proposal_free(q);
	}
	if (rv == 0)
		proposal_tell(q ? q : p, d->asker, false);

out:
	wanted_fini(&wanted);
	return rv;
}

/* ---- carried out */

/* Says how to answer; "without TOOL" only where a tool can be left out. */
static int not_understood(const struct proposal *p, struct ava_error *err)
{
	const struct run_spec *s = p->specs[0];

	for (unsigned i = 0; s && !p->group_id[0] && i < s->agent.ntools; i++)
		if (!(s->tools[i]->flags & TOOL_ENDS))
			return err_set(err, AVA_EINVAL, ANSWER_HELP ", \"without %s\"",
				       s->tools[i]->name);
	return err_set(err, AVA_EINVAL, ANSWER_HELP);
}

static void propose_confirm(struct proposal *p, const struct answer_line *said, struct deciding *d,
			    struct ava_error *err)
{
	d->yes = said->verb == ANSWER_YES;
	d->all_three = said->change.all_three;
	d->reason = said->reason ? said->reason : said->verb == ANSWER_NO && d->text ? d->text : "";
	if (p)
		propose_decide(d, p, change_none(&said->change) ? NULL : &said->change, err);
	if (err->code)
		asker_refuse(d->asker, err);
}

void ops_confirm(struct core *c, const char *proposal, const char *text, const struct change *set,
		 const char *by, const char *origin, op_proposal_fn done, void *user)
{
	struct deciding d = {
		.asker = asker_new(c, done, user), .text = text, .by = by, .origin = origin};
	bool sets = set && !change_none(set);
	struct ava_error err = {0};
	struct answer_line said;
	char words[1024]; /* copied before this returns */
	struct proposal *p = d.asker ? proposal_find(c, proposal, &err) : NULL;
	bool is = answer_read(text ? text : "yes", &said);

	if (!d.asker)
		return;
	is = is && (!said.pick[0] || strcmp(said.pick, proposal) == 0) &&
	     (said.verb != ANSWER_NONE || !change_none(&said.change));
	if (p && (!is || (sets && (said.verb == ANSWER_NO || !change_add(&said.change, set)))))
		not_understood(p, &err);
	if (!text && sets) {
		change_said(set, words, sizeof(words));
		d.text = words;
	}
	propose_confirm(err.code ? NULL : p, &said, &d, &err);
}

void proposal_said(struct core *c, const char *proposal, const struct answer_line *said,
		   const char *by, const char *origin, op_proposal_fn done, void *user)
{
	struct deciding d = {
		.asker = asker_new(c, done, user), .logged = true, .by = by, .origin = origin};
	struct ava_error err = {0};

	if (d.asker)
		propose_confirm(proposal_find(c, proposal, &err), said, &d, &err);
}

void ops_reject(struct core *c, const char *proposal, const char *reason, const char *by,
		const char *origin, op_proposal_fn done, void *user)
{
	struct deciding d = {
		.asker = asker_new(c, done, user), .by = by, .origin = origin, .reason = reason};
	struct ava_error err = {0};
	struct proposal *p = d.asker ? proposal_find(c, proposal, &err) : NULL;

	if (d.asker && (!p || propose_decide(&d, p, NULL, &err) != 0))
		asker_refuse(d.asker, &err);
}

/* ---- verbs */

#define ANSWER_MAX 8192 /* bytes of an answer's text */
#define BY_MAX     200  /* bytes of who answered */

static void write_proposal(struct jw *w, struct proposal *p, bool whole)
{
	const char *changes = proposal_settled(p) ? p->changes : p->instead;

	jw_object(w, NULL);
	jw_str(w, "proposal_id", p->id);
	jw_str(w, "state", proposal_state(p));
	if (whole) {
		jw_int(w, "number", p->number);
		verb_time(w, "created_at", p->created_ms);
		verb_time(w, "expires_at", p->expires_ms);
	}
	jw_str(w, "subagent_id", p->run);
	if (p->order[0])
		jw_str(w, "order_id", p->order);
	jw_str(w, "trace_id", p->trace);
	if (whole) {
		jw_raw(w, "quote", p->quote, strlen(p->quote));
		jw_str(w, "message", p->message);
		jw_raw(w, "config", p->config, strlen(p->config));
	}
	jw_str(w, "config_hash", p->hash);
	jw_str(w, "confirmed_hash", p->step == STEP_CONFIRMED ? p->confirmed_hash : "");
	jw_str(w, "changes", changes ? changes : "");
	if (whole) {
		jw_str(w, "replaces", p->replaces);
		jw_str(w, "replaced_by", p->step == STEP_REPLACED ? p->replaced_by : "");
		jw_str(w, "session_id", p->specs[0] ? p->specs[0]->session_id : "");
	}
	if (p->group_id[0])
		jw_str(w, "group_id", p->group_id);
	jw_end(w);
}

static void send_proposal(struct verb_reply *r, int status, struct proposal *p, bool whole)
{
	struct verb_answer a;

	verb_begin(&a, r, 0, NULL);
	write_proposal(&a.w, p, whole);
	verb_send(&a, status);
}

void verb_proposed(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
		   void *user)
{
	if (rv == 0)
		send_proposal(user, repeated ? 200 : 201, p, true);
	else
		verb_fail(user, rv, err);
}

/* A short answer, unless the proposal was quoted again. */
static void answer_given(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
			 void *user)
{
	if (rv == 0)
		send_proposal(user, 200, p, !proposal_settled(p));
	else
		verb_fail(user, rv, err);
}

static void one_proposal(struct proposal *p, void *user)
{
	write_proposal(user, p, true);
}

static const struct arg proposals_args[] = {{"all", ARG_FLAG}, {NULL}};

static void verb_proposals(struct verb_call *v)
{
	struct verb_answer a;
	bool all = false;

	if (!verb_begin_args(&a, v, &all))
		return;
	jw_object(&a.w, NULL);
	jw_array(&a.w, "proposals");
	ops_proposals(v->core, all, one_proposal, &a.w);
	verb_send(&a, 200);
}

static void verb_proposal(struct verb_call *v)
{
	struct ava_error err = {0};
	struct proposal *p = proposal_find(v->core, v->id, &err);

	if (!verb_args(v, NULL))
		return;
	if (p)
		send_proposal(v->reply, 200, p, true);
	else
		verb_fail(v->reply, err.code, &err);
}

struct answer_args {
	const char *answer, *by, *hash;
	const json_t *set;
};
static const struct arg confirm_args[] = {
	{"answer", ARG_SAID, offsetof(struct answer_args, answer), .most = ANSWER_MAX},
	{"by", ARG_SAID, offsetof(struct answer_args, by), .most = BY_MAX},
	{"config_hash", ARG_SAID, offsetof(struct answer_args, hash), .most = HASH_HEX_LEN},
	{"set", ARG_ANY, offsetof(struct answer_args, set)},
	{NULL},
};
static const struct arg reject_args[] = {
	{"reason", ARG_SAID, offsetof(struct answer_args, answer), .most = ANSWER_MAX},
	{"by", ARG_SAID, offsetof(struct answer_args, by), .most = BY_MAX},
	{NULL},
};

/* An answer that names a hash must name the one that is quoted now. */
static int propose_check_seen(struct verb_call *v, const char *hash, struct ava_error *err)
{
	const struct proposal *p = hash ? proposal_find(v->core, v->id, err) : NULL;

	if (!hash || (p && strcmp(hash, p->hash) == 0))
		return 0;
	return p ? err_set(err, AVA_EBUSY, "%s is no longer what was shown: look at it again",
			   p->id)
		 : err->code;
}

static void verb_confirm(struct verb_call *v)
{
	struct answer_args a = {.by = v->caller->user};
	struct change set = CHANGE_NONE;
	struct ava_error err = {0};

	if (!verb_args(v, &a))
		return;
	if (propose_check_seen(v, a.hash, &err) != 0 ||
	    (a.set && change_read(a.set, &set, &v->mem, &err) != 0))
		verb_fail(v->reply, err.code, &err);
	else
		ops_confirm(v->core, v->id, a.answer, &set, a.by, v->caller->channel, answer_given,
			    v->reply);
}

static void verb_reject(struct verb_call *v)
{
	struct answer_args a = {.by = v->caller->user};

	if (verb_args(v, &a))
		ops_reject(v->core, v->id, a.answer, a.by, v->caller->channel, answer_given,
			   v->reply);
}

const struct verb verbs_about_proposals[] = {
	{"GET", "/api/v1/proposals", verb_proposals, proposals_args, false},
	{"GET", "/api/v1/proposals/{id}", verb_proposal, NULL, false, .where = VERB_AT_ASK},
	{"POST", "/api/v1/proposals/{id}/confirm", verb_confirm, confirm_args, true,
	 .where = VERB_AT_ASK},
	{"POST", "/api/v1/proposals/{id}/reject", verb_reject, reject_args, false,
	 .where = VERB_AT_ASK},
	{NULL},
};

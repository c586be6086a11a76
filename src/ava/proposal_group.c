/* Proposals of groups. One proposal, one quote, one yes: all runs of a group
 * are spawned in the commit of its confirmation, those of a chain but the first
 * when the one before has ended (subagent/group.c).
 *
 * Happy path: each run is built as if it were asked for alone, with the group
 * in its spec; the first one stands for the proposal. The id of the group is
 * that of its proposal with another letter, so it is known before anything is
 * written. What can fail: one of the requests (the sentence says which),
 * memory, the disk; then there is no proposal. */
#include "ava/proposal_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/groups.h"
#include "ava/proposal.h"
#include "base/error.h"
#include "codec/json.h"
#include "subagent/group.h"

#define NOTE_MAX  (32u << 10)
#define NAMED_MAX 120 /* characters of another run's task */

void proposal_group_free(struct proposal *p)
{
	struct proposal_group *g = p->group;

	for (unsigned i = 0; g && i < g->n; i++)
		spec_free(g->specs[i]);
	free(g);
	p->group = NULL;
}

/* ---- texts */

int proposal_group_texts(struct core *c, struct proposal *p)
{
	struct proposal_group *g = p->group;
	struct run_spec *all[SPEC_GROUP_MAX];
	struct quote_group q = {.specs = all,
				.n = g->n + 1,
				.cost_microusd = g->cost_microusd,
				.time_ms = g->time_ms,
				.chain = g->chain};
	struct quote sum;
	struct buf quote, text, config;

	all[0] = p->spec;
	memcpy(all + 1, g->specs, g->n * sizeof(all[0]));
	quote_group_make(&c->sup.quotes, &q, &sum);
	p->cost_microusd = sum.cost_microusd;
	buf_init(&quote, 4u << 20);
	buf_init(&text, 1u << 20);
	buf_init(&config, 64u << 20);
	quote_group_encode(&quote, &c->sup.quotes, &q);
	quote_group_text(&text, &c->sup.quotes, &q);
	if (quote_group_config(&config, &q) == 0)
		hash_sha256_hex(config.data, config.len, p->hash);
	p->quote = buf_take(&quote, NULL);
	p->message = buf_take(&text, NULL);
	p->config = buf_take(&config, NULL);
	return p->quote && p->message && p->config ? 0 : AVA_ENOMEM;
}

/* ---- building */

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

static int build_one(struct core *c, const struct op_group *o, size_t i, struct spec_group *g,
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

/* The configs of those that come after the first, as a text; NULL: no memory. */
static char *configs_behind(const struct proposal_group *g)
{
	struct buf b;

	buf_init(&b, 64u << 20);
	buf_addc(&b, '[');
	for (unsigned i = 0; i < g->n; i++) {
		buf_adds(&b, i ? "," : "");
		buf_add(&b, g->specs[i]->config, g->specs[i]->config_len);
	}
	buf_addc(&b, ']');
	return buf_take(&b, NULL);
}

static int build(struct core *c, const struct op_group *o, struct proposal *p,
		 struct run_spec **lead, struct ava_error *err)
{
	struct proposal_group *g = p->group;
	struct spec_group place = {
		.id = g->id,
		.cost_microusd = g->cost_microusd,
		.time_ms = g->time_ms,
		.size = (int)o->nruns,
		.share = o->share && !o->chain,
		.chain = o->chain,
	};
	char *then = NULL;
	int rv = 0;

	for (size_t i = 1; rv == 0 && i < o->nruns; i++) {
		rv = build_one(c, o, i, &place, &g->specs[g->n], err);
		g->n += rv == 0;
	}
	if (rv == 0 && o->chain && g->n > 0) {
		then = configs_behind(g);
		rv = then ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
		place.then = then;
	}
	if (rv == 0)
		rv = build_one(c, o, 0, &place, lead, err);
	free(then);
	return rv;
}

static int check(const struct op_group *o, struct ava_error *err)
{
	if (o->nruns < 1 || o->nruns > SPEC_GROUP_MAX)
		return err_set(err, AVA_EINVAL, "a group has 1 to %d runs", SPEC_GROUP_MAX);
	if (o->max_cost_microusd != AVA_DEFAULT && o->max_cost_microusd < 0)
		return err_set(err, AVA_EINVAL, "the group's cost limit must be 0 or more");
	if (o->timeout_ms != AVA_DEFAULT && o->timeout_ms <= 0)
		return err_set(err, AVA_EINVAL, "the group's time limit must be above 0");
	return 0;
}

static int propose_group(struct core *c, const struct op_group *o, struct proposal **out,
			 struct ava_error *err)
{
	struct run_spec *lead = NULL;
	struct proposal *p = NULL;
	int rv = check(o, err);

	if (rv == 0)
		rv = proposal_may_begin(c, err);
	if (rv != 0)
		return rv;
	p = proposal_new(c);
	if (p)
		p->group = calloc(1, sizeof(*p->group));
	if (!p || !p->group) {
		if (p)
			proposal_free(p);
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	proposal_name(p);
	snprintf(p->group->id, sizeof(p->group->id), "G%s", p->id + 1);
	p->group->chain = o->chain;
	p->group->cost_microusd = o->max_cost_microusd == AVA_DEFAULT ? -1 : o->max_cost_microusd;
	p->group->time_ms = o->timeout_ms == AVA_DEFAULT ? 0 : o->timeout_ms;
	rv = build(c, o, p, &lead, err);
	if (rv != 0) {
		spec_free(lead);
		proposal_free(p);
		return rv;
	}
	rv = proposal_open(p, lead, o->confirm, err);
	if (rv == 0)
		*out = p;
	return rv;
}

void ops_propose_group(struct core *c, const struct op_group *o, op_proposal_fn done, void *user)
{
	struct ava_error err = {0};
	struct proposal *p = NULL;

	if (proposal_asked_before(c, o->request_id, done, user))
		return;
	if (propose_group(c, o, &p, &err) != 0) {
		proposal_refuse(done, user, &err);
	} else if (proposal_add_waiter(p, done, user, false) != 0) {
		err_set(&err, AVA_ENOMEM, "out of memory");
		proposal_refuse(done, user, &err);
	}
}

int proposal_group_restore(struct proposal *p, const json_t *config, const char *session_id,
			   const char *request_id, const char *user_id)
{
	const json_t *list = json_object_get(config, "members"), *v;
	const json_t *group = json_object_get(config, "group");
	struct proposal_group *g;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) < 1 ||
	    json_array_size(list) > SPEC_GROUP_MAX || !json_get_str(group, "id"))
		return AVA_ECORRUPT;
	p->group = g = calloc(1, sizeof(*g));
	if (!g)
		return AVA_ENOMEM;
	snprintf(g->id, sizeof(g->id), "%s", json_get_str(group, "id"));
	g->chain = json_get_bool(group, "chain", false);
	g->cost_microusd = json_get_fixed(group, "costCents", 4, -1);
	g->time_ms = json_get_fixed(group, "seconds", 3, 0);
	json_array_foreach(list, i, v)
	{
		struct run_spec **spec = i == 0 ? &p->spec : &g->specs[i - 1];
		int rv = spec_from_json(spec, v, session_id, i == 0 ? request_id : "", user_id,
					NULL);

		if (rv != 0)
			return rv;
		g->n += i > 0;
	}
	return 0;
}

/* ---- starting */

int proposal_group_spawn(struct proposal *p, struct draft *d, struct ava_error *err)
{
	struct proposal_group *g = p->group;
	int rv = 0;

	for (unsigned i = 0; rv == 0 && !g->chain && i < g->n; i++) {
		rv = supervisor_spawn(&p->core->sup, g->specs[i], p->id, d, &g->runs[i], err);
		if (rv == 0)
			g->specs[i] = NULL; /* the run has it */
	}
	if (rv == 0)
		group_fork(p->starting, d);
	return rv;
}

void proposal_group_start(struct proposal *p)
{
	struct proposal_group *g = p->group;

	for (unsigned i = 0; i < g->n; i++) {
		struct run *r = g->runs[i];

		g->runs[i] = NULL;
		spec_free(g->specs[i]); /* of a chain: the first run has its config */
		g->specs[i] = NULL;
		if (!r)
			continue;
		supervisor_start(r);
		sessions_answered(p->core, p, r->spec->session_id, r);
	}
}

void proposal_group_unstart(struct proposal *p)
{
	struct proposal_group *g = p->group;

	for (unsigned i = 0; i < g->n; i++) {
		if (!g->runs[i])
			continue;
		g->specs[i] = g->runs[i]->spec;
		g->runs[i]->spec = NULL;
		supervisor_discard(g->runs[i]);
		g->runs[i] = NULL;
	}
}

/* Asks, found at their owners: proposals (ava/proposals.c), questions of runs
 * (subagent/person.c), what conversations ask about the memory (ava/talk_memory.c), and patches of
 * runs that have ended (ava/patches.c).
 *
 * Nothing is kept here, so nothing can disagree with them. */
#include "ava/ask.h"

#include <stdio.h>
#include <string.h>

#include "ava/patches.h"
#include "ava/proposal.h"
#include "ava/talk.h"
#include "base/clock.h"
#include "subagent/person.h"

void ask_of_quote(struct proposal *p, struct ask *out)
{
	*out = (struct ask){
		.kind = p->order[0] ? ASK_ORDER : ASK_QUOTE,
		.session = p->session,
		.since_ms = p->created_ms,
		.until_ms = p->expires_ms,
		.proposal = p,
	};
	snprintf(out->id, sizeof(out->id), "%s", p->id);
}

static bool ask_of_proposal(struct proposal *p, struct ask *out)
{
	if (!p || p->step != STEP_PENDING)
		return false;
	ask_of_quote(p, out);
	return true;
}

static bool ask_of_run(const struct run *r, struct ask *out)
{
	const struct question *q = r && !r->agent.ending ? person_question(r) : NULL;

	if (!q)
		return false;
	*out = (struct ask){
		.kind = q->quota                              ? ASK_QUOTA
			: q->approval && q->call_id[0] == 'i' ? ASK_LIMIT
			: q->approval                         ? ASK_APPROVAL
							      : ASK_QUESTION,
		.session = r->spec->session_id,
		.since_ms = q->asked_ms,
		.until_ms = q->until_ms,
		.run = r,
		.question = q,
	};
	snprintf(out->id, sizeof(out->id), "%s:%s", r->id.text, q->call_id);
	return true;
}

static bool ask_of_talk(struct talk *t, struct ask *out)
{
	const struct talk_ask *a = t->ask;

	if (!a || !a->said || clock_wall_ms() >= a->until_ms)
		return false;
	*out = (struct ask){
		.kind = a->forget ? ASK_FORGET : ASK_NOTE,
		.session = t->session->id,
		.since_ms = a->since_ms,
		.until_ms = a->until_ms,
		.talk = t,
	};
	snprintf(out->id, sizeof(out->id), "%s", a->id);
	return true;
}

void ask_of_patch(const struct patch_offer *o, struct ask *out)
{
	*out = (struct ask){
		.kind = ASK_APPLY,
		.session = o->session,
		.since_ms = o->since_ms,
		.until_ms = o->until_ms,
		.offer = o,
	};
	snprintf(out->id, sizeof(out->id), "%s:" PATCH_ASK, o->run);
}

static bool ask_of_offer(const struct patch_offer *o, struct ask *out)
{
	if (!o || o->answer || o->until_ms <= clock_wall_ms())
		return false;
	ask_of_patch(o, out);
	return true;
}

bool ask_find(struct core *c, const char *id, struct ask *out)
{
	const char *call = strchr(id, ':');
	char run[24];

	if (*id == 'P')
		return ask_of_proposal(strmap_get(&c->proposals, id), out);
	if (*id == 'M')
		LIST_EACH (&c->talks, n, tmp)
			if (ask_of_talk(LIST_ENTRY(n, struct talk, node), out) &&
			    strcmp(out->id, id) == 0)
				return true;
	if (*id != 'S')
		return false;
	snprintf(run, sizeof(run), "%.*s", (int)strcspn(id, ":"), id);
	if (ask_of_offer(patches_named(c, id), out))
		return true;
	return ask_of_run(supervisor_find(&c->sup, run), out) &&
	       (!call || strcmp(out->id, id) == 0);
}

void ask_each(struct core *c, const char *session, void (*each)(const struct ask *a, void *user),
	      void *user)
{
	struct ask a;

	for (struct list *n = c->proposal_order.prev; n != &c->proposal_order; n = n->prev)
		if (ask_of_proposal(LIST_ENTRY(n, struct proposal, node), &a) &&
		    (!session || strcmp(a.session, session) == 0))
			each(&a, user);
	LIST_EACH (&c->sup.live, n, tmp)
		if (ask_of_run(LIST_ENTRY(n, struct run, node), &a) &&
		    (!session || strcmp(a.session, session) == 0))
			each(&a, user);
	LIST_EACH (&c->talks, n, tmp)
		if (ask_of_talk(LIST_ENTRY(n, struct talk, node), &a) &&
		    (!session || strcmp(a.session, session) == 0))
			each(&a, user);
	LIST_EACH (&c->patches, n, tmp)
		if (ask_of_offer(LIST_ENTRY(n, struct patch_offer, node), &a) &&
		    (!session || strcmp(a.session, session) == 0))
			each(&a, user);
}

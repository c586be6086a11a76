/* Statements over the tables that machines share beside runs: loans of a budget (lend.c), wishes
 * (move.c, give.c), verbs and Asks (inbox.c), doors (porter.c), and what others read (read.c). As
 * in pgmap.c, a condition counts where its words stand; sums are as the statement has them. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "pgmap_doing.h"

#define HOUR_MS INT64_C(3600000)

/* A row more of a table that is an array. */
#define SHARED_ADD(rows, n) (assert((n) < PGMAP_SHARED), &(rows)[(n)++])
/* One less; the last takes its place. */
#define SHARED_DROP(rows, n, i) ((rows)[i] = (rows)[--(n)])

static struct pgmap_shared *shared(void)
{
	return &pgmap.now.shared;
}

static const char *keep_param(const struct pgmap_doing *d, size_t i)
{
	return pgmap_keep(d->p[i - 1].s, d->p[i - 1].len);
}

/* ---- lend.c */

static struct pgmap_budget *budget_row(const char *scope)
{
	for (unsigned i = 0; i < shared()->nbudgets; i++)
		if (strcmp(shared()->budgets[i].scope, scope) == 0)
			return &shared()->budgets[i];
	return NULL;
}

static struct pgmap_loan *loan_row(const char *scope, const char *node)
{
	for (unsigned i = 0; i < shared()->nloans; i++)
		if (strcmp(shared()->loans[i].scope, scope) == 0 &&
		    strcmp(shared()->loans[i].node, node) == 0)
			return &shared()->loans[i];
	return NULL;
}

static struct pgmap_loan *loan_new(const char *scope, const char *node)
{
	struct pgmap_loan *l = SHARED_ADD(shared()->loans, shared()->nloans);

	*l = (struct pgmap_loan){0};
	snprintf(l->scope, sizeof(l->scope), "%s", scope);
	snprintf(l->node, sizeof(l->node), "%s", node);
	return l;
}

static void do_scope(const struct pgmap_doing *d)
{
	const char *scope = pgmap_text(d, 4);
	struct pgmap_budget *b = budget_row(scope);
	int64_t cap = pgmap_int(d, 5);

	if (pgmap_me(d) == NULL)
		return;
	for (unsigned i = 0; i < shared()->nloans; i++) {
		const struct pgmap_loan *l = &shared()->loans[i];

		if (pgmap_says(d, "select min(cap) from ava_loan") &&
		    strcmp(l->scope, scope) == 0 && strcmp(l->node, pgmap_text(d, 1)) != 0)
			cap = MIN(cap, l->cap);
	}
	if (b == NULL) {
		b = SHARED_ADD(shared()->budgets, shared()->nbudgets);
		*b = (struct pgmap_budget){0};
		snprintf(b->scope, sizeof(b->scope), "%s", scope);
	}
	b->cap = cap;
}

/* Was the row told nothing newer than the parameter? */
static bool is_newer(const struct pgmap_doing *d, const struct pgmap_loan *l, size_t told)
{
	return l == NULL ||
	       pgmap_unless(d, "where ava_loan.told < excluded.told", l->told < pgmap_int(d, told));
}

static void do_lend(const struct pgmap_doing *d)
{
	const char *scope = pgmap_text(d, 4), *node = pgmap_text(d, 1);
	struct pgmap_budget *b = budget_row(scope);
	struct pgmap_loan *own = loan_row(scope, node);
	int64_t unused = 0, held = 0, micro = own != NULL ? own->micro : 0, most, least, fresh;
	struct pgmap_value *row;

	if (pgmap_me(d) == NULL || b == NULL || !is_newer(d, own, 11))
		return;
	for (unsigned i = 0; i < shared()->nloans; i++) {
		const struct pgmap_loan *l = &shared()->loans[i];

		if (strcmp(l->scope, scope) != 0 || l == own)
			continue;
		unused += l->micro - l->used;
		held += MAX(l->micro - l->used, INT64_C(0)) + l->held;
	}
	most = micro + MAX(b->cap - b->lent, INT64_C(0));
	least = held > 0 && pgmap_says(d, "case when held > 0 then $7 else $6 end")
			? pgmap_int(d, 7)
			: pgmap_int(d, 6);
	fresh = most < least                       ? 0
		: pgmap_says(d, "least($8, most)") ? MIN(pgmap_int(d, 8), most)
						   : pgmap_int(d, 8);
	if (pgmap_says(d, "greatest($5, "))
		fresh = MAX(fresh, pgmap_int(d, 5));
	if (own == NULL)
		own = loan_new(scope, node);
	*own = (struct pgmap_loan){.cap = pgmap_int(d, 9),
				   .micro = fresh,
				   .used = pgmap_int(d, 5),
				   .held = pgmap_int(d, 10),
				   .told = pgmap_int(d, 11)};
	snprintf(own->scope, sizeof(own->scope), "%s", scope);
	snprintf(own->node, sizeof(own->node), "%s", node);
	b->lent += fresh - micro;
	row = pgmap_row(d, 4);
	row[0] = pgmap_of_int(fresh);
	row[1] = pgmap_of_int(b->cap);
	row[2] = pgmap_of_int(b->lent - fresh - unused);
	row[3] = pgmap_of_int(held);
}

static void do_used(const struct pgmap_doing *d)
{
	struct pgmap_loan *l = loan_row(pgmap_text(d, 4), pgmap_text(d, 1));

	if (pgmap_me(d) == NULL || !is_newer(d, l, 8))
		return;
	if (l == NULL) {
		l = loan_new(pgmap_text(d, 4), pgmap_text(d, 1));
		l->cap = pgmap_int(d, 5);
	}
	l->used = pgmap_int(d, 6);
	l->held = pgmap_int(d, 7);
	l->told = pgmap_int(d, 8);
}

/* Which loans does a statement of LEND_SETTLE_SQL end? */
static bool is_settled(const struct pgmap_doing *d, const struct pgmap_loan *l)
{
	const struct pgmap_node *n = pgmap_node(l->node);

	if (pgmap_says(d, "exists (select 1 from me)") && pgmap_me(d) == NULL)
		return false;
	if (pgmap_says(d, "(select 1 from ava_node n where n.node = l.node"))
		return n == NULL || !pgmap_unless(d, "and n.lease_until > '-infinity'",
						  n->lease_until > INT64_MIN);
	if (strcmp(l->node, pgmap_text(d, 1)) != 0)
		return false;
	if (pgmap_says(d, "and scope <> $4"))
		return strcmp(l->scope, pgmap_text(d, 4)) != 0;
	for (unsigned i = 0; i < pgmap.now.nnodes; i++)
		if (strcmp(pgmap.now.nodes[i].token, pgmap_text(d, 2)) == 0)
			return true;
	return !pgmap_says(d, "from ava_node where token = $2");
}

static void do_settle(const struct pgmap_doing *d)
{
	for (unsigned i = 0; i < shared()->nloans;) {
		const struct pgmap_loan *l = &shared()->loans[i];
		struct pgmap_budget *b = budget_row(l->scope);

		if (!is_settled(d, l)) {
			i++;
			continue;
		}
		if (b != NULL)
			b->lent -= l->micro - (pgmap_says(d, "micro - used as rest") ? l->used : 0);
		SHARED_DROP(shared()->loans, shared()->nloans, i);
	}
}

/* ---- move.c, give.c */

static struct pgmap_wish *wish_row(const char *run)
{
	for (unsigned i = 0; i < shared()->nwishes; i++)
		if (strcmp(shared()->wishes[i].run, run) == 0)
			return &shared()->wishes[i];
	return NULL;
}

static void wish_drop(struct pgmap_wish *w)
{
	if (w != NULL)
		SHARED_DROP(shared()->wishes, shared()->nwishes, w - shared()->wishes);
}

static void do_wishes(const struct pgmap_doing *d)
{
	for (unsigned i = 0; i < shared()->nwishes; i++) {
		const struct pgmap_wish *w = &shared()->wishes[i];
		const struct pgmap_run *r = pgmap_run(w->run);
		struct pgmap_value *row;

		if (r == NULL || strcmp(r->node, pgmap_text(d, 1)) != 0 || r->state >= 9 ||
		    !pgmap_unless(d, "and w.why = ''", w->why[0] == '\0'))
			continue;
		row = pgmap_row(d, 4);
		row[0] = pgmap_of_text(d, w->run);
		row[1] = pgmap_of_text(d, w->node);
		row[2] = pgmap_of_int(pgmap_alive(w->node));
		row[3] = pgmap_of_int(w->without_copy);
	}
}

static void do_want(const struct pgmap_doing *d)
{
	struct pgmap_wish *w = wish_row(pgmap_text(d, 4));

	if (pgmap_me(d) == NULL)
		return;
	if (w == NULL)
		w = SHARED_ADD(shared()->wishes, shared()->nwishes);
	*w = (struct pgmap_wish){.without_copy = pgmap_int(d, 5) > 0, .why = ""};
	snprintf(w->run, sizeof(w->run), "%s", pgmap_text(d, 4));
	snprintf(w->node, sizeof(w->node), "%s", pgmap_text(d, 1));
}

/* By whoever wanted it. */
static void do_unwant(const struct pgmap_doing *d)
{
	struct pgmap_wish *w = wish_row(pgmap_text(d, 1));

	if (w != NULL && pgmap_unless(d, "and node = $2", strcmp(w->node, pgmap_text(d, 2)) == 0))
		wish_drop(w);
}

/* By the machine that has the run. */
static void do_answer_wish(const struct pgmap_doing *d)
{
	struct pgmap_wish *w = wish_row(pgmap_text(d, 4));

	if (pgmap_me(d) == NULL || w == NULL ||
	    !pgmap_unless(d, "and node = $5", strcmp(w->node, pgmap_text(d, 5)) == 0))
		return;
	if (pgmap_says(d, "set why = $6"))
		w->why = keep_param(d, 6);
	else
		wish_drop(w);
}

static void do_give_away(const struct pgmap_doing *d)
{
	struct pgmap_run *r = pgmap_run(pgmap_text(d, 4));
	const struct pgmap_node *to = pgmap_node(pgmap_text(d, 5));

	if (pgmap_me(d) == NULL || r == NULL || to == NULL ||
	    !pgmap_unless(d, "and r.node = $1", strcmp(r->node, pgmap_text(d, 1)) == 0) ||
	    !pgmap_unless(d, "and r.epoch = $2", r->epoch == pgmap_int(d, 2)) ||
	    !pgmap_unless(d, "and r.head = $6", r->head == pgmap_int(d, 6)) ||
	    !pgmap_unless(d, "and n.lease_until > clock_timestamp()", pgmap_alive(to->id)))
		return;
	snprintf(r->node, sizeof(r->node), "%s", to->id);
	r->epoch = to->epoch;
	r->moves++;
	r->takes = 0;
	pgmap.given++;
	d->out->affected = 1;
}

/* What nobody has at work comes to who wants it. */
static void do_fetch(const struct pgmap_doing *d)
{
	struct pgmap_run *r = pgmap_run(pgmap_text(d, 4));
	const struct pgmap_node *was = r != NULL ? pgmap_node(r->node) : NULL;

	if (pgmap_me(d) == NULL)
		return;
	wish_drop(wish_row(pgmap_text(d, 4)));
	if (r == NULL || !pgmap_unless(d, "and r.moves = $5", r->moves == pgmap_int(d, 5)) ||
	    !pgmap_unless(d, "and r.epoch = $6", r->epoch == pgmap_int(d, 6)) || r->state == 9 ||
	    (r->state == 0 && !pgmap_unless(d, "n.lease_until > '-infinity'",
					    was == NULL || was->lease_until == INT64_MIN)))
		return;
	r->moves += strcmp(r->node, pgmap_text(d, 1)) != 0;
	r->takes = r->state = 0;
	r->epoch = pgmap_int(d, 2);
	snprintf(r->node, sizeof(r->node), "%s", pgmap_text(d, 1));
	pgmap_row_of_run(d, r, true, 0, "");
	pgmap.fetched++;
}

/* The first chunk of its messages; its length is 0 where there is none. */
static struct pgmap_value first_messages(const struct pgmap_doing *d, const char *run)
{
	const struct pgmap_body *first = NULL;

	for (size_t i = 0; i < pgmap.now.nbodies; i++) {
		const struct pgmap_body *b = &pgmap.now.bodies[i];

		if (b->kind == 1 && strcmp(b->run, run) == 0 &&
		    (first == NULL || b->head < first->head))
			first = b;
	}
	return first != NULL ? pgmap_of_bytes(d, first->bytes, first->len) : pgmap_null;
}

static void do_wanted(const struct pgmap_doing *d)
{
	const struct pgmap_run *r = pgmap_run(pgmap_text(d, 1));
	const struct pgmap_node *n = r != NULL ? pgmap_node(r->node) : NULL;
	const struct pgmap_wish *w = r != NULL ? wish_row(r->id) : NULL;
	struct pgmap_value *row;

	if (r == NULL)
		return;
	row = pgmap_row(d, 10);
	row[0] = pgmap_of_int(strcmp(r->node, pgmap_text(d, 2)) == 0);
	row[1] = pgmap_of_int(r->state);
	row[2] = pgmap_of_text(d, n != NULL ? n->name : "gone");
	row[3] = pgmap_of_int(pgmap_alive(r->node));
	row[4] = pgmap_of_int(n == NULL || n->lease_until == INT64_MIN);
	row[5] = pgmap_of_int(r->moves);
	row[6] = pgmap_of_int(r->epoch);
	row[7] = pgmap_of_bytes(d, r->line, r->line_len);
	row[8] = first_messages(d, r->id);
	row[9] = w != NULL && strcmp(w->node, pgmap_text(d, 2)) == 0 ? pgmap_of_text(d, w->why)
								     : pgmap_null;
}

/* ---- inbox.c */

static struct pgmap_request *request_row(const char *id)
{
	for (unsigned i = 0; i < shared()->ninbox; i++)
		if (strcmp(shared()->inbox[i].id, id) == 0)
			return &shared()->inbox[i];
	return NULL;
}

static struct pgmap_ask *ask_row(const char *id)
{
	for (unsigned i = 0; i < shared()->nasks; i++)
		if (strcmp(shared()->asks[i].id, id) == 0)
			return &shared()->asks[i];
	return NULL;
}

static struct pgmap_claim *claim_row(const char *id)
{
	for (unsigned i = 0; i < shared()->nclaims; i++)
		if (strcmp(shared()->claims[i].id, id) == 0)
			return &shared()->claims[i];
	return NULL;
}

static void do_any_open(const struct pgmap_doing *d)
{
	for (unsigned i = 0; i < shared()->ninbox; i++)
		if (shared()->inbox[i].status == 0) {
			pgmap_row(d, 1)[0] = pgmap_of_int(1);
			return;
		}
}

static void do_answers(const struct pgmap_doing *d)
{
	for (unsigned i = 0; i < shared()->ninbox; i++) {
		const struct pgmap_request *q = &shared()->inbox[i];
		struct pgmap_value *row;

		if (q->status == 0 || !pgmap_is_in(&d->p[0], q->id))
			continue;
		row = pgmap_row(d, 4);
		row[0] = pgmap_of_text(d, q->id);
		row[1] = pgmap_of_int(q->status);
		row[2] = pgmap_of_int(q->code);
		row[3] = pgmap_of_bytes(d, q->answer, q->answer_len);
	}
}

static bool is_for(const struct pgmap_doing *d, const struct pgmap_request *q)
{
	const struct pgmap_run *r = pgmap_run(q->run);
	const char *node =
		r != NULL && pgmap_says(d, "coalesce(r.node, i.node)") ? r->node : q->node;

	return q->status == 0 && strcmp(node, pgmap_text(d, 1)) == 0 &&
	       !pgmap_is_in(&d->p[1], q->id);
}

/* In the order of their time, which is that of the rows but where one was asked for anew. */
static void do_came(const struct pgmap_doing *d)
{
	const struct pgmap_request *some[PGMAP_SHARED], *q;
	size_t n = 0;

	for (unsigned i = 0; i < shared()->ninbox; i++) {
		size_t k = n;

		q = &shared()->inbox[i];
		if (!is_for(d, q))
			continue;
		for (; k > 0 && some[k - 1]->at > q->at; k--)
			some[k] = some[k - 1];
		some[k] = q;
		n++;
	}
	for (size_t i = (size_t)pgmap_int(d, 4); i < n && d->out->n < pgmap_int(d, 3); i++) {
		struct pgmap_value *row = pgmap_row(d, 5);

		q = some[i];
		row[0] = pgmap_of_text(d, q->id);
		row[1] = pgmap_of_text(d, q->run);
		row[2] = pgmap_of_text(d, q->name);
		row[3] = pgmap_of_text(d, q->verb);
		row[4] = pgmap_of_bytes(d, q->body, q->body_len);
	}
}

/* Whose a verb is; NULL: nobody else's. */
static const char *verb_target(const struct pgmap_doing *d)
{
	const char *me = pgmap_text(d, 1);
	const struct pgmap_run *r = pgmap_run(pgmap_text(d, 5));
	const struct pgmap_ask *a = ask_row(pgmap_text(d, 7));
	const struct pgmap_claim *q = claim_row(pgmap_text(d, 10));
	const char *target = NULL;
	unsigned n = 0;

	if (r != NULL && strcmp(r->node, me) != 0 &&
	    (pgmap_int(d, 6) == 0 ? r->state == 0 || pgmap_alive(r->node)
				  : r->state == 0 && pgmap_alive(r->node))) {
		target = r->node;
		n++;
	}
	if (pgmap_text(d, 5)[0] == '\0' && a != NULL && strcmp(a->node, me) != 0 &&
	    pgmap_unless(d, "ava_ask a join ava_node n", pgmap_node(a->node) != NULL)) {
		target = a->node;
		n++;
	}
	if (q != NULL && strcmp(q->node, me) != 0) {
		target = q->node;
		n++;
	}
	if (n > 1)
		pgmap.wrong("%s is for two machines, which PostgreSQL refuses", pgmap_text(d, 4));
	return target;
}

static void verb_put(const struct pgmap_doing *d, const char *target)
{
	struct pgmap_request *q = request_row(pgmap_text(d, 4));

	if (q != NULL && !pgmap_unless(d, "where ava_inbox.status >= 400", q->status >= 400) &&
	    (!pgmap_says(d, "and ava_inbox.node <> excluded.node") || q->status != 0 ||
	     strcmp(q->node, target) == 0))
		return;
	if (q == NULL) {
		q = SHARED_ADD(shared()->inbox, shared()->ninbox);
		*q = (struct pgmap_request){.id = keep_param(d, 4),
					    .run = keep_param(d, 5),
					    .name = keep_param(d, 7),
					    .verb = keep_param(d, 8)};
		snprintf(q->door, sizeof(q->door), "%s", pgmap_text(d, 1));
	}
	q->status = q->code = 0;
	q->answer = NULL;
	q->body = keep_param(d, 9);
	q->body_len = d->p[8].len;
	q->at = pgmap_now_ms();
	snprintf(q->node, sizeof(q->node), "%s", target);
	pgmap.verbs++;
}

static void do_say(const struct pgmap_doing *d)
{
	bool me = pgmap_me(d) != NULL, claims = pgmap_text(d, 10)[0] != '\0';
	const char *target = verb_target(d);
	const struct pgmap_node *n = target != NULL ? pgmap_node(target) : NULL;
	const struct pgmap_run *r = pgmap_run(pgmap_text(d, 5));
	struct pgmap_value *row = pgmap_row(d, 4);

	if (me && claims && claim_row(pgmap_text(d, 10)) == NULL) {
		struct pgmap_claim *q = SHARED_ADD(shared()->claims, shared()->nclaims);

		*q = (struct pgmap_claim){.id = keep_param(d, 10), .at = pgmap_now_ms()};
		snprintf(q->node, sizeof(q->node), "%s", pgmap_text(d, 1));
	}
	if (me && target != NULL)
		verb_put(d, target);
	row[0] = pgmap_of_int(me);
	row[1] = target == NULL ? pgmap_null : pgmap_of_text(d, n != NULL ? n->name : "gone");
	row[2] = pgmap_of_int(!claims || claim_row(pgmap_text(d, 10)) != NULL);
	row[3] = pgmap_of_int(r != NULL && r->state == 0 && strcmp(r->node, pgmap_text(d, 1)) == 0);
}

static void do_told(const struct pgmap_doing *d)
{
	struct pgmap_request *q = request_row(pgmap_text(d, 4));
	bool me = pgmap_me(d) != NULL;

	if (me && q != NULL && pgmap_unless(d, "and status is null", q->status == 0)) {
		q->status = pgmap_int(d, 5);
		q->code = pgmap_int(d, 6);
		q->answer = keep_param(d, 7);
		q->answer_len = d->p[6].len;
	}
	pgmap_row(d, 1)[0] = pgmap_of_int(me);
}

static void do_prune_inbox(const struct pgmap_doing *d)
{
	int64_t now = pgmap_now_ms();

	for (unsigned i = 0; pgmap_me(d) != NULL && i < shared()->ninbox;) {
		const struct pgmap_request *q = &shared()->inbox[i];

		if (q->at < now - 24 * HOUR_MS || (q->status != 0 && q->at < now - HOUR_MS))
			SHARED_DROP(shared()->inbox, shared()->ninbox, i);
		else
			i++;
	}
}

static void do_prune_asks(const struct pgmap_doing *d)
{
	for (unsigned i = 0; pgmap_me(d) != NULL && i < shared()->nasks;) {
		const struct pgmap_ask *a = &shared()->asks[i];

		if ((a->body == NULL && a->at < pgmap_now_ms() - 24 * HOUR_MS) ||
		    pgmap_node(a->node) == NULL)
			SHARED_DROP(shared()->asks, shared()->nasks, i);
		else
			i++;
	}
}

static void do_prune_claims(const struct pgmap_doing *d)
{
	for (unsigned i = 0; pgmap_me(d) != NULL && i < shared()->nclaims;)
		if (shared()->claims[i].at < pgmap_now_ms() - 24 * HOUR_MS)
			SHARED_DROP(shared()->claims, shared()->nclaims, i);
		else
			i++;
}

static void do_take_claim(const struct pgmap_doing *d)
{
	struct pgmap_claim *q = claim_row(pgmap_text(d, 4));

	if (pgmap_me(d) != NULL && q != NULL)
		snprintf(q->node, sizeof(q->node), "%s", pgmap_text(d, 1));
}

static void do_prune_wishes(const struct pgmap_doing *d)
{
	for (unsigned i = 0; pgmap_me(d) != NULL && i < shared()->nwishes;) {
		const struct pgmap_run *r = pgmap_run(shared()->wishes[i].run);

		if (r == NULL || r->state >= 9)
			wish_drop(&shared()->wishes[i]);
		else
			i++;
	}
}

static void do_ask(const struct pgmap_doing *d)
{
	size_t n = d->p[3].nitems;
	const struct pgmap_value *ids = pgmap_list(d, 4, n), *runs = pgmap_list(d, 5, n),
				 *sessions = pgmap_list(d, 6, n), *bodies = pgmap_list(d, 7, n);

	for (size_t i = 0; pgmap_me(d) != NULL && i < n; i++) {
		struct pgmap_ask *a = ask_row(ids[i].s);

		if (a == NULL) {
			a = SHARED_ADD(shared()->asks, shared()->nasks);
			*a = (struct pgmap_ask){.id = pgmap_keep(ids[i].s, ids[i].len),
						.at = pgmap_now_ms()};
		}
		a->run = pgmap_keep(runs[i].s, runs[i].len);
		a->session = pgmap_keep(sessions[i].s, sessions[i].len);
		a->body = pgmap_keep(bodies[i].s, bodies[i].len);
		a->body_len = bodies[i].len;
		snprintf(a->node, sizeof(a->node), "%s", pgmap_text(d, 1));
	}
}

static void do_unask(const struct pgmap_doing *d)
{
	bool me = pgmap_me(d) != NULL;

	for (unsigned i = 0; me && i < shared()->nasks; i++) {
		struct pgmap_ask *a = &shared()->asks[i];

		if (strcmp(a->node, pgmap_text(d, 1)) != 0 || a->body == NULL ||
		    pgmap_is_in(&d->p[3], a->id) == (pgmap_int(d, 5) > 0))
			continue;
		a->body = NULL;
		a->at = pgmap_now_ms();
	}
	pgmap_row(d, 1)[0] = pgmap_of_int(me);
}

static void do_set_config(const struct pgmap_doing *d)
{
	pgmap_row(d, 1)[0] = pgmap_of_text(d, "off");
}

/* ---- porter.c */

static struct pgmap_door *door_row(const char *name)
{
	for (unsigned i = 0; i < shared()->ndoors; i++)
		if (strcmp(shared()->doors[i].name, name) == 0)
			return &shared()->doors[i];
	return NULL;
}

/* Has the machine of that row still the door? */
static bool door_is_held(const struct pgmap_doing *d, const struct pgmap_door *o)
{
	const struct pgmap_node *n = pgmap_node(o->node);

	return n != NULL && pgmap_unless(d, "and n.epoch = d.epoch", n->epoch == o->epoch) &&
	       pgmap_unless(d, "and n.lease_until > '-infinity'", n->lease_until > INT64_MIN) &&
	       pgmap_unless(d, "and not n.draining", !n->draining);
}

static void do_door(const struct pgmap_doing *d)
{
	struct pgmap_door *o = door_row(pgmap_text(d, 4));
	bool mine = o != NULL && strcmp(o->node, pgmap_text(d, 1)) == 0;

	if (pgmap_me(d) == NULL ||
	    (o != NULL && !mine && !pgmap_unless(d, "not exists", !door_is_held(d, o))))
		return;
	if (o == NULL) {
		o = SHARED_ADD(shared()->doors, shared()->ndoors);
		*o = (struct pgmap_door){.name = keep_param(d, 4), .given = keep_param(d, 5)};
	}
	if (mine)
		o->given = keep_param(d, 5);
	snprintf(o->node, sizeof(o->node), "%s", pgmap_text(d, 1));
	o->epoch = pgmap_int(d, 2);
}

static void do_whose_door(const struct pgmap_doing *d)
{
	const struct pgmap_door *o = door_row(pgmap_text(d, 1));
	const struct pgmap_node *n = o != NULL ? pgmap_node(o->node) : NULL;
	struct pgmap_value *row;

	if (o == NULL)
		return;
	row = pgmap_row(d, 4);
	row[0] = pgmap_of_text(d, o->name);
	row[1] =
		pgmap_of_int(strcmp(o->node, pgmap_text(d, 2)) == 0 && o->epoch == pgmap_int(d, 3));
	row[2] = pgmap_of_text(d, n != NULL ? n->name : "");
	row[3] = pgmap_of_text(d, o->given);
}

/* ---- read.c */

static int64_t chunk_bytes(const char *run)
{
	int64_t sum = 0;

	for (size_t i = 0; i < pgmap.now.nbodies; i++)
		if (pgmap.now.bodies[i].kind < 2 && strcmp(pgmap.now.bodies[i].run, run) == 0)
			sum += (int64_t)pgmap.now.bodies[i].len;
	return sum;
}

static void copy_row(const struct pgmap_doing *d, const struct pgmap_run *r,
		     const struct pgmap_body *b)
{
	const struct pgmap_node *n = pgmap_node(r->node);
	struct pgmap_value *row = pgmap_row(d, 13);

	row[0] = pgmap_of_int(strcmp(r->node, pgmap_text(d, 2)) == 0);
	row[1] = pgmap_of_text(d, n != NULL ? n->name : "gone");
	row[2] = pgmap_of_int(r->state);
	row[3] = pgmap_of_int(pgmap_alive(r->node));
	row[4] = pgmap_of_text(d, r->place);
	row[5] = pgmap_of_int(r->turn);
	row[6] = pgmap_of_int(r->tokens);
	row[7] = pgmap_of_int(r->micro);
	row[8] = pgmap_of_int(r->head);
	row[9] = pgmap_of_bytes(d, r->hash, r->hash_len);
	row[10] = b != NULL ? pgmap_of_int(b->kind) : pgmap_null;
	row[11] = b != NULL ? pgmap_of_int(b->head) : pgmap_null;
	row[12] = b != NULL ? pgmap_of_bytes(d, b->bytes, b->len) : pgmap_null;
}

static void do_copy(const struct pgmap_doing *d)
{
	const struct pgmap_run *r = pgmap_run(pgmap_text(d, 1));

	for (int kind = 0; r != NULL && kind < 2; kind++) {
		size_t n;
		const struct pgmap_body **list = pgmap_chunks(r->id, kind, &n);

		for (size_t i = 0; i < n && pgmap_int(d, 5) >= chunk_bytes(r->id); i++)
			if (list[i]->head > pgmap_int(d, kind == 0 ? 3 : 4))
				copy_row(d, r, list[i]);
		free(list);
	}
	if (r != NULL && d->out->n == 0)
		copy_row(d, r, NULL);
}

static void do_copy_size(const struct pgmap_doing *d)
{
	pgmap_row(d, 1)[0] = pgmap_of_int(chunk_bytes(pgmap_text(d, 1)));
}

static void do_copy_files(const struct pgmap_doing *d)
{
	const struct pgmap_run *r = pgmap_run(pgmap_text(d, 1));

	for (size_t i = 0; r != NULL && r->state == pgmap_int(d, 2) && i < pgmap.now.nbodies; i++) {
		const struct pgmap_body *b = &pgmap.now.bodies[i];
		struct pgmap_value *row;

		if (b->kind != 2 || strcmp(b->run, r->id) != 0)
			continue;
		row = pgmap_row(d, 2);
		row[0] = pgmap_of_text(d, b->path);
		row[1] = pgmap_of_bytes(d, b->bytes, b->len);
	}
}

/* ---- all of them */

const struct pgmap_known pgmap_share_known[] = {
	{"with", do_settle, " gone as (delete from ava_loan l where "},
	{"with me as (", do_scope, " insert into ava_budget (scope, cap, lent)"},
	{"with me as (", do_lend, " update ava_budget b set lent = b.lent + g.fresh - g.micro"},
	{"with me as (", do_used, " insert into ava_loan ("},
	{"select w.run, w.node,", do_wishes, "from ava_wish w join ava_run r"},
	{"with me as (", do_want, " insert into ava_wish "},
	{"delete from ava_wish where run = $1", do_unwant, NULL},
	{"with me as (", do_answer_wish, ") update ava_wish set why = $6 from me"},
	{"with me as (", do_answer_wish, ") delete from ava_wish using me"},
	{"with me as (", do_give_away, " update ava_run r set node = n.node, epoch = n.epoch"},
	{"with me as (", do_fetch, " set node = $1, epoch = $2, takes = 0, state = 0"},
	{"select (r.node = $2)::int::bigint, r.state::bigint, coalesce(n.name", do_wanted, NULL},
	{"select 1 from ava_inbox where status is null limit 1", do_any_open, NULL},
	{"select id, status::bigint, code::bigint, answer from ava_inbox", do_answers, NULL},
	{"select i.id, i.run, i.name, i.verb, i.body from ava_inbox i", do_came, NULL},
	{"with me as (", do_say, " put as (insert into ava_inbox "},
	{"with me as (", do_told, " told as (update ava_inbox set status = $5"},
	{"with me as (", do_prune_inbox, " delete from ava_inbox i using me"},
	{"with me as (", do_prune_asks, " delete from ava_ask a using me"},
	{"with me as (", do_prune_claims, " delete from ava_request q using me"},
	{"with me as (", do_take_claim, " update ava_request q set node = $1 from me"},
	{"with me as (", do_prune_wishes, " delete from ava_wish w using me"},
	{"with me as (", do_ask, " insert into ava_ask "},
	{"with me as (", do_unask, " gone as (update ava_ask a set body = null"},
	{"select set_config('synchronous_commit', 'off', true)", do_set_config, NULL},
	{"with me as (", do_door, " insert into ava_door as d "},
	{"select d.name, (d.node = $2 and d.epoch = $3)", do_whose_door, NULL},
	{"select (r.node = $2)::int::bigint, coalesce(n.name, 'gone')", do_copy, NULL},
	{"select sum(length(body))::bigint from ava_chunk", do_copy_size, NULL},
	{"select f.path, f.body from ava_file f join ava_run r", do_copy_files, NULL},
};
const size_t pgmap_nshare_known = ARRAY_LEN(pgmap_share_known);

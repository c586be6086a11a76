/* The standing orders of a runtime: their files, their timer, and what people say to them
 * (doc/ORDERS.md). order_turn.c says what becomes of a due time.
 *
 * Happy path: one timer looks at the wall clock, at the latest each minute. An order with a due
 * time is turned: a copy of its state is moved on, and one commit holds the events, the spawn of
 * the run and the order's file. When that is on disk the copy counts, and the run starts; when it
 * is not, the copy is dropped, and the next look comes to the same. So each time is done with once,
 * whatever is killed.
 *
 * What can fail: the disk (looked at again later; what is late by then is missed), and memory. */
#include "ava/orders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/proposal.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/words.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "subagent/budget.h"
#include "subagent/run.h"
#include "subagent/spec.h"

#define LOOK_MS  60000 /* the wall clock may be set, and the machine may sleep */
#define AGAIN_MS 5000  /* after the disk refused */
#define ASK_MS   86400000
#define FILE_MAX ((size_t)16 << 20)
#define KEPT_MAX (4 * ORDER_EXTRA) /* of all deliveries that wait for an order */

struct orders {
	struct core *core;
	struct list all; /* the oldest first */
	struct strmap by_id;
	struct os_timer *timer;
	unsigned n;
	int trouble; /* why orders are looked at again, as it was logged last; 0 */
	bool stops;
	struct buf unreadable; /* {"file","problem"} of each that does not fire, with commas */
};

/* Somebody who waits for a change of an order. */
struct order_call {
	order_done_fn done;
	void *user;
	char run[24]; /* the run that was started for it */
	/* Said when the change is on disk: what was wanted was not done. */
	struct ava_error err;
};

static const struct ava_error stopping = {.code = AVA_ECANCELED, .text = "the runtime stops"};

static void orders_arm(struct orders *all, int64_t least_ms);
static void order_look(struct standing *o);

/* ---- asking anew */

static void order_asked(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
			void *user)
{
	struct standing *o = user;

	(void)p;
	(void)repeated;
	if (rv != 0)
		core_log(o->core, "%s cannot be asked about anew: %s", o->plan.id, err->text);
}

struct proposal *order_asking(const struct standing *o)
{
	LIST_EACH (&o->core->proposal_order, node, tmp) {
		struct proposal *p = LIST_ENTRY(node, struct proposal, node);

		if (strcmp(p->order, o->plan.id) == 0 && !proposal_settled(p))
			return p;
	}
	return NULL;
}

/* A quote of what its runs would be now, with the difference. */
static int order_ask(struct standing *o, struct ava_error *err)
{
	struct run_spec *spec = NULL;
	struct proposal *p = NULL;
	struct asker *a;
	char why[ORDER_WHY];
	int rv;

	o->unasked = false;
	if (order_asking(o))
		return 0;
	rv = order_spec(o, NULL, true, &spec, why, err);
	if (rv != 0)
		return rv;
	a = asker_new(o->core, order_asked, o);
	p = a ? proposal_new(o->core, NULL, 1, err) : NULL;
	if (!p) {
		spec_free(spec);
		if (a)
			asker_refuse(a, err);
		return AVA_ENOMEM;
	}
	p->specs[0] = spec;
	p->instead = strdup(why);
	rv = proposal_open(p, NULL, a, err);
	if (rv != 0)
		asker_refuse(a, err);
	return rv;
}

/* Before an order goes: a yes to what it asks would make it anew. On disk before the removal, so
 * that a kill in between leaves an order that does not ask. AVA_EBUSY: its quote is being written.
 */
static int order_ask_over(struct standing *o, const char *by, struct ava_error *err)
{
	struct proposal *p = order_asking(o);
	struct proposal_answer *a;

	if (!p)
		return 0;
	if (p->step != STEP_PENDING)
		return err_set(err, AVA_EBUSY, "%s is being asked about: try again", o->plan.id);
	a = proposal_answer_new(STEP_REJECTED, NULL, by, "its order was removed");
	return a ? proposal_answer(p, a, err) : err_set(err, AVA_ENOMEM, "out of memory");
}

/* ---- a turn */

static int orders_busy(const struct standing *o, struct ava_error *err)
{
	return o->writing ? err_set(err, AVA_EBUSY, "%s is being written: ask again", o->plan.id)
			  : 0;
}

/* A clock that was ahead by more than a day was wrong: what it had passed would be due again only
 * when the right one comes there. */
static bool order_is_ahead(const struct standing *o)
{
	return o->now.last_ms > clock_wall_ms() + BUDGET_BACK_MS;
}

static int turn_begin(struct order_turn *t, struct standing *o, struct ava_error *err)
{
	char latest[11];

	*t = (struct order_turn){.o = o, .core = o->core, .n = &o->next, .now_ms = clock_wall_ms()};
	t->draft = draft_new(&o->core->book);
	clock_local_date(t->now_ms + BUDGET_BACK_MS, latest);
	if (strcmp(o->now.day, latest) > 0) /* what is counted stays counted */
		clock_local_date(t->now_ms, o->now.day);
	o->next = o->now;
	if (order_is_ahead(o)) {
		o->next.last_ms = t->now_ms;
		t->changed = true;
	}
	return t->draft ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
}

static void order_run_ended(struct run_wait *w, struct run *r)
{
	struct standing *o = CONTAINER_OF(w, struct standing, wait);

	if (!r->end.done || o->core->service.orders->stops)
		return;
	o->due_ms = 0;
	order_look(o);
}

/* The last run of an order until its cost is counted; NULL: there is none here. */
static struct run *order_run(const struct standing *o)
{
	return o->now.settled ? NULL : supervisor_find(&o->core->sup, o->now.run);
}

static void order_watch(struct standing *o)
{
	struct run *r = order_run(o);

	if (r && !r->end.done && list_empty(&o->wait.node)) {
		o->wait.ended = order_run_ended;
		run_wait(r, &o->wait);
	}
}

static void order_answer(struct standing *o, int rv, const struct ava_error *err)
{
	struct order_call *call = o->call;

	o->call = NULL;
	if (call && rv == 0 && call->err.code != 0)
		call->done(call->err.code, o, "", &call->err, call->user);
	else if (call)
		call->done(rv, o, call->run, err, call->user);
	free(call);
}

/* When it is to be looked at next. */
static int64_t order_due(const struct standing *o)
{
	const struct order_now *n = &o->now;
	const struct run *r = order_run(o);
	int64_t due;

	/* A run that ended while the order was being written is counted now. */
	if ((!n->settled && (!r || r->end.done)) ||
	    (n->nwaiting > 0 && n->settled && n->state == ORDER_ACTIVE))
		return 0;
	if (n->state != ORDER_ASKS && (n->state != ORDER_ACTIVE || order_counted_out(o, n)))
		return ORDER_NEVER;
	due = order_next(&o->plan, n->last_ms);
	return due == ORDER_NEVER && n->state == ORDER_ASKS ? o->plan.until_ms : due;
}

/* The runtime stops. */
static void order_refuse_held(struct standing *o)
{
	LIST_EACH (&o->held, node, tmp) {
		struct order_delivery *d = LIST_ENTRY(node, struct order_delivery, node);

		d->done(AVA_ECANCELED, o, "", &stopping, d->user);
	}
}

static void order_drop(struct standing *o)
{
	struct orders *all = o->core->service.orders;

	order_refuse_held(o);
	strmap_del(&all->by_id, o->plan.id);
	all->n--;
	order_free(o);
}

/* Deliveries that nothing waits for: they are run, or never came to the disk. */
static void order_forget(struct standing *o)
{
	LIST_EACH (&o->deliveries, node, tmp) {
		struct order_delivery *d = LIST_ENTRY(node, struct order_delivery, node);
		bool waits = false;

		for (unsigned i = 0; i < o->now.nwaiting; i++)
			waits = waits || o->now.waiting[i].delivery == d->number;
		if (!waits)
			order_delivery_free(d);
	}
}

/* Those who asked while the order was written. */
static void order_go_on(struct standing *o)
{
	order_forget(o);
	while (!o->writing && !o->core->service.orders->stops && !list_empty(&o->held)) {
		struct order_delivery *d = LIST_FIRST(&o->held, struct order_delivery, node);

		list_del(&d->node);
		orders_fire(o->core, o->plan.id, &d->fire, d->done, d->user);
		order_delivery_free(d);
	}
}

/* The change is on disk, or it is not. */
static void order_saved(int rv, void *user)
{
	struct standing *o = user;
	struct orders *all = o->core->service.orders;
	struct run *r = o->starting;
	struct ava_error err = {0};
	char path[64];

	o->writing = false;
	o->starting = NULL;
	if (rv != 0)
		err_set(&err, rv, "the disk failed while %s was saved (%s): look at it again",
			o->plan.id, ava_strerror(rv));
	if (rv != 0 && r) {
		core_forget(o->core, r->spec->request_id);
		supervisor_discard(r);
	} else if (r) {
		supervisor_start(r);
	}
	if (rv == 0)
		o->now = o->next;
	o->unasked = o->unasked && o->now.state == ORDER_ASKS;
	o->due_ms = order_due(o);
	order_watch(o);
	order_answer(o, rv, &err);
	order_go_on(o);
	if (o->now.state == ORDER_REMOVED) {
		snprintf(path, sizeof(path), ORDER_FILE, o->plan.id);
		(void)sys->unlinkat(o->core->root_fd, path, 0);
		order_drop(o);
	} else if (o->now.state == ORDER_ASKS && o->unasked) {
		(void)order_ask(o, &err);
	}
	orders_arm(all, rv == 0 ? 0 : AGAIN_MS);
}

/* Takes back the run of a commit that was not made. */
static void order_unstart(struct standing *o)
{
	if (!o->starting)
		return;
	core_forget(o->core, o->starting->spec->request_id);
	supervisor_discard(o->starting);
	o->starting = NULL;
}

/* Writes the change. The draft is *taken*, also on error: then nothing was changed. */
static int turn_commit(struct order_turn *t, struct ava_error *err)
{
	struct standing *o = t->o;
	char path[64];
	struct buf *b;
	int rv = AVA_ENOMEM;

	snprintf(path, sizeof(path), ORDER_FILE, o->plan.id);
	b = draft_part(t->draft, DRAFT_PUT, path);
	if (b)
		rv = order_file_write(b, o, t->n, o->config_next ? o->config_next : o->config,
				      o->config_next ? o->hash_next : o->hash);
	if (rv == 0) {
		o->writing = true;
		rv = draft_commit(t->draft, JOURNAL_NOW, order_saved, o, err);
		t->draft = NULL;
	}
	draft_free(t->draft);
	if (rv == 0)
		return 0;
	o->writing = false;
	order_unstart(o);
	return err && err->code ? rv : err_set(err, rv, "%s", ava_strerror(rv));
}

/* Does whatever is to be done for an order now. */
static void order_look(struct standing *o)
{
	struct orders *all = o->core->service.orders;
	struct order_turn t;
	struct ava_error err = {0};
	int rv;

	if (o->writing || o->now.state == ORDER_NEW || all->stops)
		return;
	if (o->due_ms > clock_wall_ms() && !o->unasked && !order_is_ahead(o))
		return;
	rv = core_ready(o->core, &err);
	if (rv == 0)
		rv = turn_begin(&t, o, &err);
	if (rv == 0) {
		turn_settle(&t);
		if (o->now.state == ORDER_ACTIVE) {
			turn_due(&t);
			rv = turn_next(&t);
		}
		turn_over(&t);
		if (t.n->state == ORDER_ASKS && o->now.state == ORDER_ASKS &&
		    order_next(&o->plan, t.n->last_ms) <= t.now_ms) {
			t.n->last_ms = t.now_ms;
			o->unasked = t.changed = true;
		}
		if (rv == 0 && t.changed) {
			rv = turn_commit(&t, &err);
		} else {
			draft_free(t.draft);
			order_unstart(o);
			if (rv == 0 && o->unasked)
				(void)order_ask(o, &err);
		}
	}
	if (rv != 0 && rv != all->trouble) /* once, not of each order every five seconds */
		core_log(o->core, "%s is looked at again: %s", o->plan.id, err.text);
	all->trouble = rv;
	if (rv != 0)
		orders_arm(all, AGAIN_MS);
}

/* ---- the timer */

static void orders_arm(struct orders *all, int64_t least_ms)
{
	int64_t now = clock_wall_ms(), wait = -1;

	LIST_EACH (&all->all, node, tmp) {
		const struct standing *o = LIST_ENTRY(node, struct standing, node);
		int64_t ms = o->due_ms == ORDER_NEVER ? -1 : MIN(MAX(o->due_ms - now, 0), LOOK_MS);

		if (!o->writing && o->unasked)
			ms = 0;
		if (ms >= 0 && (wait < 0 || ms < wait))
			wait = ms;
	}
	if (wait >= 0 && !all->stops)
		os_timer_set(all->timer, MAX(wait, least_ms));
	else
		os_timer_stop(all->timer);
}

static void orders_tick(void *user)
{
	struct orders *all = user;
	int64_t now = clock_wall_ms();

	orders_arm(all, 1000); /* who is refused arms it again, for later */
	LIST_EACH (&all->all, node, tmp) {
		struct standing *o = LIST_ENTRY(node, struct standing, node);

		if (o->due_ms <= now || o->unasked || order_is_ahead(o))
			order_look(o);
	}
}

/* ---- calls */

struct standing *orders_find(struct core *c, const char *id, struct ava_error *err)
{
	struct standing *o = strmap_get(&c->service.orders->by_id, id);

	if (o && o->now.state != ORDER_NEW && o->now.state != ORDER_REMOVED)
		return o;
	err_set(err, AVA_ENOENT, "there is no order %.40s here (ava schedule list)", id);
	return NULL;
}

const char *orders_unreadable(const struct core *c)
{
	const struct buf *b = &c->service.orders->unreadable;

	return buf_check(b) == 0 && b->data ? b->data : "";
}

void orders_each(struct core *c, void (*each)(struct standing *o, void *user), void *user)
{
	LIST_EACH (&c->service.orders->all, node, tmp) {
		struct standing *o = LIST_ENTRY(node, struct standing, node);

		if (o->now.state != ORDER_NEW && o->now.state != ORDER_REMOVED)
			each(o, user);
	}
}

static int order_call_new(struct standing *o, order_done_fn done, void *user, struct ava_error *err)
{
	struct order_call *call = calloc(1, sizeof(*call));

	if (!call)
		return err_set(err, AVA_ENOMEM, "out of memory");
	*call = (struct order_call){.done = done, .user = user};
	o->call = call;
	return 0;
}

/* Commits the turn of a call, whose answer follows; else answers it now. */
static void order_call_end(struct order_turn *t, int rv, struct ava_error *err)
{
	struct standing *o = t->o;

	if (rv == 0)
		rv = turn_commit(t, err);
	else
		draft_free(t->draft);
	if (rv == 0)
		return;
	order_unstart(o); /* memory ended behind its spawn */
	order_forget(o);
	order_answer(o, rv, err);
}

static int order_may_be(const struct standing *o, enum order_state to, struct ava_error *err)
{
	int rv = orders_busy(o, err);

	if (rv == 0 && o->now.state == ORDER_DONE && to != ORDER_REMOVED)
		rv = err_set(err, AVA_EEXIST, "%s is over: add a new order", o->plan.id);
	return rv;
}

void orders_set(struct core *c, const char *id, enum order_state to, const char *by,
		const char *origin, order_done_fn done, void *user)
{
	struct ava_error err = {0};
	struct standing *o = orders_find(c, id, &err);
	struct order_turn t;
	int rv = o ? order_may_be(o, to, &err) : err.code;

	if (rv == 0 && to == ORDER_REMOVED)
		rv = order_ask_over(o, by, &err);
	if (rv == 0 && to == ORDER_ACTIVE && o->now.state == ORDER_ASKS)
		rv = order_ask(o, &err);
	else if (rv == 0 && o->now.state != to && (rv = order_call_new(o, done, user, &err)) == 0) {
		rv = turn_begin(&t, o, &err);
		if (rv == 0 && to == ORDER_PAUSED && o->now.state == ORDER_ACTIVE) {
			turn_settle(&t);
			turn_due(&t); /* what was due before is told */
		}
		if (rv == 0 && to == ORDER_ACTIVE) /* the times of the pause are no missed ones */
			t.n->last_ms = MAX(t.n->last_ms, t.now_ms);
		if (rv == 0)
			turn_state(&t, to, by, origin, "");
		if (rv == 0)
			turn_over(&t); /* its time, or its count, was over meanwhile */
		order_call_end(&t, rv, &err);
		return;
	}
	done(rv, o, "", rv == 0 ? NULL : &err, user);
}

/* Is there room for one more delivery? */
static int order_has_room(const struct standing *o, const struct order_fire *f,
			  struct ava_error *err)
{
	size_t bytes = f->extra ? strlen(f->extra) : 0;

	LIST_EACH (&o->deliveries, node, tmp) {
		const char *extra = LIST_ENTRY(node, struct order_delivery, node)->fire.extra;

		bytes += extra ? strlen(extra) : 0;
	}
	if (o->now.nwaiting < ORDER_ALL && bytes <= KEPT_MAX)
		return 0;
	return err_set(err, AVA_EBUSY, "%u wait for %s already, and there is no room for more",
		       o->now.nwaiting, o->plan.id);
}

static bool order_keeps(const struct standing *o, const struct order_fire *f)
{
	return f->delivered && o->plan.overlap == ORDER_OVERLAP_QUEUE;
}

/* Does a fire wait behind those that wait and the run at work, or for what a person is asked? */
static bool order_queues(const struct standing *o, const struct order_fire *f)
{
	const struct run *r = order_run(o);

	return order_keeps(o, f) &&
	       (o->now.nwaiting > 0 || o->now.state == ORDER_ASKS || (r && !r->end.done));
}

static int order_may_fire(struct standing *o, const struct order_fire *f, bool queues,
			  struct ava_error *err)
{
	struct run *r = order_run(o);
	int rv = order_may_be(o, ORDER_ACTIVE, err);

	if (rv == 0)
		rv = core_check_request(o->core, f->request_id, err);
	if (rv == 0 && o->now.state == ORDER_PAUSED && f->delivered)
		rv = err_set(err, AVA_EEXIST, "%s is paused: nothing was started", o->plan.id);
	else if (rv == 0 && o->now.state == ORDER_ASKS && !queues)
		rv = err_set(err, AVA_EEXIST,
			     WORDS_WAITS(o->plan.id, ": what it does has changed"));
	else if (rv == 0 && order_counted_out(o, &o->now))
		rv = err_set(err, AVA_EEXIST, "%s has started as many runs as it may", o->plan.id);
	else if (rv == 0 && o->plan.until_ms < clock_wall_ms())
		rv = err_set(err, AVA_EEXIST, "the time of %s is over: nothing was started",
			     o->plan.id);
	else if (rv == 0 && f->extra && strlen(f->extra) > ORDER_EXTRA)
		rv = err_set(err, AVA_ETOOBIG, "at most %zu KB go into a run", ORDER_EXTRA >> 10);
	else if (rv == 0 && queues)
		rv = order_has_room(o, f, err);
	else if (rv == 0 && r && !r->end.done)
		rv = err_set(err, AVA_EBUSY, "%s is still at work: one run of %s at a time",
			     o->now.run, o->plan.id);
	return rv == 0 ? core_ready(o->core, err) : rv;
}

/* Puts a fire behind those of a list; secrets go to no disk. */
static struct order_delivery *order_keep_fire(struct list *to, const struct order_fire *f,
					      int64_t now_ms, const struct redact *redact)
{
	struct order_delivery *d = NULL;
	char due[CLOCK_ISO_LEN + 1];
	struct buf clean;

	buf_init(&clean, 4 * ORDER_EXTRA);
	clock_iso(now_ms, due);
	if (!f->extra || redact_text(redact, &clean, f->extra, strlen(f->extra)) >= 0)
		d = order_deliver(to, json_pack("{s:s,s:s*,s:s*,s:s*,s:s*}", "due", due, "by",
						f->by, "origin", f->origin, "request",
						f->request_id, "text", clean.data));
	buf_fini(&clean);
	return d;
}

/* Until the order can start its run. */
static int turn_keep(struct order_turn *t, struct ava_error *err)
{
	struct order_delivery *d =
		order_keep_fire(&t->o->deliveries, t->fire, t->now_ms, t->core->redact);

	if (!d)
		return err_set(err, AVA_ENOMEM, "out of memory");
	t->n->waiting[t->n->nwaiting++] = (struct order_waits){t->now_ms, d->number};
	if (t->n->state == ORDER_ASKS) /* the Ask may be over, and no time be due */
		t->o->unasked = true;
	return 0;
}

/* Is a delivery of that request kept already? */
static bool order_waits_for(const struct standing *o, const char *request_id)
{
	LIST_EACH (&o->deliveries, node, tmp) {
		const char *id = LIST_ENTRY(node, struct order_delivery, node)->fire.request_id;

		if (id && request_id && strcmp(id, request_id) == 0)
			return true;
	}
	return false;
}

/* Until what is being written is on disk. */
static int order_hold(struct standing *o, const struct order_fire *f, order_done_fn done,
		      void *user, struct ava_error *err)
{
	struct order_delivery *d = order_keep_fire(&o->held, f, clock_wall_ms(), o->core->redact);

	if (!d)
		return err_set(err, AVA_ENOMEM, "out of memory");
	d->fire.delivered = f->delivered;
	d->done = done;
	d->user = user;
	return 0;
}

void orders_fire(struct core *c, const char *id, const struct order_fire *f, order_done_fn done,
		 void *user)
{
	struct ava_error err = {0};
	struct standing *o = orders_find(c, id, &err);
	struct request *known = o ? core_request(c, f->request_id) : NULL;
	struct order_turn t;
	int rv = o ? 0 : err.code;
	bool queues;

	if (rv == 0 && o->writing && (rv = order_hold(o, f, done, user, &err)) == 0)
		return;
	if (rv == 0 && ((known && known->run[0]) || order_waits_for(o, f->request_id))) {
		done(0, o, known ? known->run : "", NULL, user);
		return;
	}
	queues = rv == 0 && order_queues(o, f);
	if (rv == 0)
		rv = order_may_fire(o, f, queues, &err);
	if (rv == 0)
		rv = order_call_new(o, done, user, &err);
	if (rv != 0) {
		done(rv, o, "", &err, user);
		return;
	}
	rv = turn_begin(&t, o, &err);
	if (rv == 0) {
		t.fire = f;
		t.err = &err;
		turn_settle(&t);
		rv = queues ? turn_keep(&t, &err) : turn_fire(&t, t.now_ms);
		if (rv == 0 && t.n->state == ORDER_ASKS && !queues && order_keeps(o, f)) {
			err = (struct ava_error){0};
			rv = turn_keep(&t, &err);
		}
	}
	o->call->err = rv == 0 ? err : (struct ava_error){0};
	if (rv == 0 && o->starting)
		snprintf(o->call->run, sizeof(o->call->run), "%s", o->starting->id.text);
	if (rv == 0)
		turn_over(&t);
	order_call_end(&t, rv, &err);
}

/* ---- a quote of an order is answered yes */

/* An order that is not there yet. NULL: no memory, or it is no order. */
static struct standing *order_new(struct core *c, const struct run_spec *spec,
				  struct ava_error *err)
{
	json_t *plan = json_parse(spec->order.plan, strlen(spec->order.plan), err);
	struct standing *o = order_alloc();
	int rv = o && plan ? 0 : AVA_ENOMEM;

	if (rv == 0) {
		o->core = c;
		o->due_ms = ORDER_NEVER;
		o->now.settled = true;
		o->made_ms = clock_wall_ms();
		rv = order_read(plan, &o->plan, err);
	}
	if (rv == 0) {
		o->now.last_ms = o->plan.from_ms;
		o->session = strdup(spec->session_id);
		o->user = strdup(spec->user_id);
		rv = o->session && o->user ? strmap_put(&c->service.orders->by_id, o->plan.id, o)
					   : AVA_ENOMEM;
	}
	json_decref(plan);
	if (rv != 0) {
		order_free(o);
		if (!err->code)
			err_set(err, rv, "%s", ava_strerror(rv));
		return NULL;
	}
	list_add(&c->service.orders->all, &o->node);
	c->service.orders->n++;
	return o;
}

static int orders_confirm(struct core *c, const struct run_spec *spec, const char *by,
			  const char *origin, struct draft *d, struct ava_error *err)
{
	struct standing *o = strmap_get(&c->service.orders->by_id, spec->order.id);
	struct order_turn t;
	char path[64];
	struct buf *b;
	int rv = AVA_ENOMEM;

	if (o && (orders_busy(o, err) != 0 || o->now.state != ORDER_ASKS))
		return err->code ? err->code
				 : err_set(err, AVA_EEXIST, "%s is %s", o->plan.id,
					   order_state_name(o->now.state));
	if (!o && c->service.orders->n >= ORDERS_MAX)
		return err_set(err, AVA_EBUSY, "there are %d orders: remove some", ORDERS_MAX);
	if (!o && !(o = order_new(c, spec, err)))
		return err->code;
	o->config_next = strndup(spec->config, spec->config_len);
	if (!o->config_next) {
		if (o->now.state == ORDER_NEW)
			order_drop(o);
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	o->writing = true;
	o->next = o->now;
	snprintf(o->hash_next, sizeof(o->hash_next), "%s", spec->hash);
	t = (struct order_turn){.o = o, .core = c, .n = &o->next, .draft = d};
	t.n->last_ms = MAX(t.n->last_ms, o->now.state == ORDER_NEW ? 0 : clock_wall_ms());
	turn_state(&t, ORDER_ACTIVE, by, origin, "");
	/* The only time that there was is the one it asked for: nothing else would be due. */
	if (o->now.state == ORDER_ASKS && o->plan.until_ms == ORDER_NEVER &&
	    !calendar_waits(o->plan.calendar) && !order_counted_out(o, t.n) &&
	    t.n->nwaiting < ORDER_ALL && order_next(&o->plan, t.n->last_ms) == ORDER_NEVER)
		t.n->waiting[t.n->nwaiting++] = (struct order_waits){o->now.last_ms, 0};
	turn_over(&t);
	snprintf(path, sizeof(path), ORDER_FILE, o->plan.id);
	b = draft_part(d, DRAFT_PUT, path);
	if (b)
		rv = order_file_write(b, o, t.n, o->config_next, o->hash_next);
	return rv == 0 ? 0 : err_set(err, rv, "out of memory");
}

static void orders_confirmed(struct core *c, const char *id, int rv)
{
	struct standing *o = strmap_get(&c->service.orders->by_id, id);

	if (!o || !o->config_next)
		return;
	if (rv == 0) {
		free(o->config);
		o->config = o->config_next;
		memcpy(o->hash, o->hash_next, sizeof(o->hash));
	} else {
		free(o->config_next);
	}
	o->config_next = NULL;
	if (rv != 0 && o->now.state == ORDER_NEW)
		order_drop(o);
	else
		order_saved(rv, o);
}

static int64_t orders_patience(struct core *c, const char *id, int64_t otherwise)
{
	const struct standing *o = strmap_get(&c->service.orders->by_id, id);

	return o && o->now.state == ORDER_ASKS ? MAX(otherwise, (int64_t)ASK_MS) : otherwise;
}

/* ---- life */

int orders_open(struct core *c, struct ava_error *err)
{
	struct orders *all = calloc(1, sizeof(*all));

	if (all)
		all->timer = os_timer_new(c->loop, orders_tick, all);
	if (!all || !all->timer) {
		free(all);
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	all->core = c;
	list_init(&all->all);
	strmap_init(&all->by_id);
	buf_init(&all->unreadable, 1u << 20);
	c->service.orders = all;
	c->on_proposal.order_yes = orders_confirm;
	c->on_proposal.order_saved = orders_confirmed;
	c->on_proposal.order_patience = orders_patience;
	return 0;
}

static void orders_found(const char *name, void *user)
{
	struct core *c = user;
	struct orders *all = c->service.orders;
	struct ava_error err = {0};
	struct standing *o = NULL;
	char path[300], *json = NULL;
	size_t len = 0, n = strlen(name);
	struct jw w;
	int rv;

	if (n < 5 || n > 200 || strcmp(name + n - 5, ".json") != 0)
		return;
	snprintf(path, sizeof(path), "orders/%s", name);
	rv = sys_read_file(c->root_fd, path, FILE_MAX, &json, &len, &err);
	if (rv == 0)
		rv = order_file_read(&o, json, len, &err);
	free(json);
	if (rv == 0 && o->now.state == ORDER_REMOVED) {
		(void)sys->unlinkat(c->root_fd, path, 0);
		order_free(o);
		return;
	}
	if (rv == 0 && (strlen(o->plan.id) != n - 5 || strncmp(name, o->plan.id, n - 5) != 0)) {
		rv = err_set(&err, AVA_ECORRUPT, "it is a copy of %s: remove it", o->plan.id);
		order_free(o);
	}
	if (rv == 0 && strmap_put(&all->by_id, o->plan.id, o) != 0) {
		order_free(o);
		rv = err_set(&err, AVA_ENOMEM, "out of memory");
	}
	if (rv != 0) {
		core_log(c, "%s: this order does not fire: %s", path, err.text);
		buf_adds(&all->unreadable, all->unreadable.len > 0 ? "," : "");
		jw_init(&w, &all->unreadable);
		jw_object(&w, NULL);
		jw_str(&w, "file", path);
		jw_str(&w, "problem", err.text);
		jw_end(&w);
		return;
	}
	o->core = c;
	o->unasked = o->now.state == ORDER_ASKS;
	o->due_ms = order_due(o);
	order_watch(o);
	list_add(&all->all, &o->node);
	all->n++;
}

void orders_restore(struct core *c)
{
	(void)sys->list(c->root_fd, "orders", orders_found, c);
	orders_arm(c->service.orders, 0);
}

bool orders_idle(const struct core *c)
{
	LIST_EACH (&c->service.orders->all, node, tmp) {
		const struct standing *o = LIST_ENTRY(node, struct standing, node);

		/* An order that asks and has no further time waits for an open Ask alone. */
		if (o->writing || o->unasked || o->now.state == ORDER_ACTIVE ||
		    (o->now.state == ORDER_ASKS && o->due_ms != ORDER_NEVER))
			return false;
	}
	return true;
}

void orders_quiesce(struct core *c)
{
	if (!c->service.orders)
		return;
	c->service.orders->stops = true;
	os_timer_stop(c->service.orders->timer);
}

bool orders_written(const struct core *c)
{
	if (!c->service.orders)
		return true; /* what was to be opened before it was not */
	LIST_EACH (&c->service.orders->all, node, tmp)
		if (LIST_ENTRY(node, struct standing, node)->writing)
			return false;
	return true;
}

void orders_close(struct core *c)
{
	struct orders *all = c->service.orders;

	if (!all)
		return;
	LIST_EACH (&all->all, node, tmp) {
		struct standing *o = LIST_ENTRY(node, struct standing, node);

		order_answer(o, AVA_ECANCELED, &stopping);
		order_refuse_held(o);
		order_free(o);
	}
	strmap_fini(&all->by_id);
	buf_fini(&all->unreadable);
	os_timer_free(all->timer);
	free(all);
	c->service.orders = NULL;
}

/* Standing orders in a runtime of their own: added, paused and removed as by people, started by the
 * clock and by deliveries. */
#ifndef UNIT_ORDER_RIG_H
#define UNIT_ORDER_RIG_H

#include "core_rig.h"

#include <stdatomic.h>

#include "ava/orders.h"
#include "ava/proposal.h"
#include "base/clock.h"
#include "moved_clock.h"

extern _Atomic int64_t test_wall_ahead_ms;

#define HOUR 3600000LL

static inline int set_up(void **state)
{
	struct world *w = core_world("offline");

	settings_load(&w->settings, NULL);
	/* Nine in the morning: hours go by in these tests, and no day ends unless one says so. */
	atomic_store(&test_wall_ahead_ms, 0);
	atomic_store(&test_wall_ahead_ms,
		     (33 * HOUR - clock_wall_ms() % (24 * HOUR)) % (24 * HOUR));
	open_core(w);
	*state = w;
	return 0;
}

static inline int tear_down_orders(void **state)
{
	atomic_store(&test_wall_ahead_ms, 0);
	return tear_down(state);
}

/* ---- adding */

struct quoted {
	int calls, rv;
	char id[24], order[24], text[4096];
};

static inline void quoted_cb(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
			     void *user)
{
	struct quoted *q = user;

	q->calls++;
	q->rv = rv;
	snprintf(q->text, sizeof(q->text), "%s", rv == 0 ? p->message : err->text);
	if (rv == 0) {
		snprintf(q->id, sizeof(q->id), "%s", p->id);
		snprintf(q->order, sizeof(q->order), "%s", p->order);
	}
}

static int64_t run_microusd = AVA_DEFAULT; /* what each run may, as somebody says */

/* `plan`: JSON with ' for ". `confirm`: as in a request. */
static inline struct quoted order_quote(struct world *w, const char *plan, const char *confirm,
					const char *role)
{
	struct op_spawn s = ask(w, "Where is parse_header defined?");
	struct quoted q = {0};
	char text[800];

	s.max_cost_microusd = run_microusd;
	snprintf(text, sizeof(text), "%s", plan);
	for (char *at = text; *at; at++)
		*at = *at == '\'' ? '"' : *at;
	s.order = json_parse(text, strlen(text), NULL);
	assert_non_null(s.order);
	s.confirm = confirm;
	if (role)
		s.role = role;
	ops_propose(w->core, &s, quoted_cb, &q);
	for (int i = 0; q.calls == 0 && i < 6000; i++)
		os_loop_step(w->loop, 10);
	assert_int_equal(q.calls, 1);
	json_decref((json_t *)s.order);
	return q;
}

static inline struct standing *order_add(struct world *w, const char *plan)
{
	struct quoted q = order_quote(w, plan, "never", NULL);
	struct standing *o;

	if (q.rv != 0)
		fail_msg("%s", q.text);
	o = orders_find(w->core, q.order, NULL);
	assert_non_null(o);
	return o;
}

/* A plan that began `hours` ago. */
static inline const char *since(int hours, const char *rest)
{
	static char plan[600];
	char iso[CLOCK_ISO_LEN + 1];

	clock_iso(clock_wall_ms() - hours * HOUR - 600000, iso);
	snprintf(plan, sizeof(plan), "{'from':'%s','zone':'UTC',%s}", iso, rest);
	return plan;
}

/* ---- waiting */

/* The wall clock is another one, and the timer looks. */
static inline void clock_moves(struct world *w, int64_t ms)
{
	atomic_fetch_add(&test_wall_ahead_ms, ms);
	test_clock_skip(60001);
	for (int i = 0; i < 20; i++)
		os_loop_step(w->loop, 1);
}

/* Until its run, and all that wait, have ended and are counted. */
static inline void order_rests(struct world *w, const struct standing *o)
{
	for (int i = 0; i < 6000; i++) {
		if (!o->writing && o->now.settled && o->now.nwaiting == 0)
			return;
		os_loop_step(w->loop, 10);
	}
	fail_msg("%s is still at work", o->plan.id);
}

/* Events of a kind about an order, of which `key` is `value` (NULL: any). */
static inline size_t order_told(struct world *w, const char *type, const char *key,
				const char *value)
{
	json_t *all = events(w, NULL, type), *one;
	size_t n = 0, i;

	json_array_foreach(all, i, one) n +=
		!key || !value || strcmp(json_str(one, key), value) == 0;
	json_decref(all);
	return n;
}

static inline size_t fired(struct world *w)
{
	return order_told(w, "OrderFired", NULL, NULL);
}

static inline void fire_cb(int rv, const struct standing *o, const char *run,
			   const struct ava_error *err, void *user)
{
	struct got *g = user;

	g->calls++;
	g->rv = rv;
	snprintf(g->id, sizeof(g->id), "%s", run);
	snprintf(g->text, sizeof(g->text), "%s", err ? err->text : "");
}

static inline struct got fire(struct world *w, const struct standing *o, const char *extra,
			      const char *request)
{
	struct order_fire f = {
		.by = "ben", .origin = "terminal", .extra = extra, .request_id = request};
	struct got g = {0};

	orders_fire(w->core, o->plan.id, &f, fire_cb, &g);
	until(w, &g);
	return g;
}

static inline struct got order_put(struct world *w, const struct standing *o, enum order_state to)
{
	struct got g = {0};

	orders_set(w->core, o->plan.id, to, "ben", "terminal", fire_cb, &g);
	until(w, &g);
	return g;
}

static inline void slow_model(struct world *w)
{
	static char id[400];

	write_file(w->dir, "slow.jsonl", "{\"text\":\"late\",\"delay_ms\":3600000}\n");
	snprintf(id, sizeof(id), "offline:%s/slow.jsonl", w->dir);
	w->model = id;
	reopen(w);
}

/* ---- deliveries */

static inline struct order_fire delivery(const char *extra, const char *request)
{
	return (struct order_fire){.by = "trigger push",
				   .origin = "trigger",
				   .extra = extra,
				   .request_id = request,
				   .delivered = true};
}

static inline struct got deliver(struct world *w, const struct standing *o, const char *extra,
				 const char *request)
{
	struct order_fire f = delivery(extra, request);
	struct got g = {0};

	orders_fire(w->core, o->plan.id, &f, fire_cb, &g);
	until(w, &g);
	return g;
}

static inline void told_of(struct world *w, const char *run, const char *words)
{
	char path[400], *file;
	size_t len;

	snprintf(path, sizeof(path), "%s/runs/%s/messages.jsonl", w->root, run);
	file = unit_read(path, &len);
	if (!strstr(file, words))
		fail_msg("%s is not told \"%s\"", run, words);
	free(file);
}

#endif

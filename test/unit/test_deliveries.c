/* What triggers deliver to a standing order: kept while it cannot start, once, and run behind that
 * (doc/TRIGGERS.md). Yeses to a changed order are in test_orders.c. */
#include "order_rig.h"

static void run_ends(struct world *w, const struct standing *o)
{
	char run[24];

	snprintf(run, sizeof(run), "%s", o->now.run);
	assert_int_equal(cancel(w, run).rv, 0);
	for (int i = 0; i < 400 && (o->writing || strcmp(o->now.run, run) == 0); i++)
		os_loop_step(w->loop, 5);
}

/* What comes while a run is at work is kept, once by its id, also over a restart and a pause, and
 * is run behind it, one after the other. */
TEST_OF(deliveries_wait, struct world *w)
{
	struct standing *o, *skip;
	struct got g;
	char id[24], skips[24];

	slow_model(w);
	o = order_add(w, "{'when':'@trigger','overlap':'queue'}");
	skip = order_add(w, "{'when':'@trigger'}");
	snprintf(id, sizeof(id), "%s", o->plan.id);
	snprintf(skips, sizeof(skips), "%s", skip->plan.id);
	assert_true(deliver(w, skip, "zero", "r-0").id[0] == 'S');
	assert_int_equal(deliver(w, skip, "one", "r-1").rv, AVA_EBUSY);
	assert_true(deliver(w, o, "zero", "r-2").id[0] == 'S');
	for (int i = 0; i < 2; i++) {
		g = deliver(w, o, "one\n\"", "r-3");
		assert_int_equal(g.rv, 0);
		assert_string_equal(g.id, "");
		assert_int_equal(o->now.nwaiting, 1);
	}
	assert_int_equal(deliver(w, o, "two", NULL).rv, 0);
	assert_int_equal(o->now.nwaiting, 2);
	assert_int_equal(order_put(w, o, ORDER_PAUSED).rv, 0);
	reopen(w);
	o = orders_find(w->core, id, NULL);
	assert_int_equal(o->now.nwaiting, 2);
	run_ends(w, o);
	assert_int_equal(o->now.fired, 1);
	assert_int_equal(order_put(w, o, ORDER_ACTIVE).rv, 0);
	for (int i = 0; i < 400 && o->now.fired < 2; i++)
		os_loop_step(w->loop, 5);
	assert_int_equal(o->now.fired, 2);
	told_of(w, o->now.run, "What trigger push brought");
	told_of(w, o->now.run, "> one\\n> \\\"");
	assert_string_equal(deliver(w, o, "one\n\"", "r-3").id, o->now.run);
	run_ends(w, o);
	assert_int_equal(o->now.fired, 3);
	told_of(w, o->now.run, "> two");
	assert_int_equal(o->now.nwaiting, 0);
	assert_true(list_empty(&o->deliveries));
	run_ends(w, o);
	run_ends(w, orders_find(w->core, skips, NULL));
}

/* What comes in the moment in which the order is written is answered behind that. */
TEST_OF(deliveries_meet, struct world *w)
{
	struct standing *o;
	struct order_fire f = delivery(NULL, NULL);
	struct got g[ORDER_ALL + 2] = {{0}};

	slow_model(w);
	o = order_add(w, "{'when':'@trigger','overlap':'queue'}");
	for (size_t i = 0; i < ARRAY_LEN(g); i++)
		orders_fire(w->core, o->plan.id, &f, fire_cb, &g[i]);
	for (size_t i = 0; i < ARRAY_LEN(g); i++) {
		for (int n = 0; n < 1000 && g[i].calls == 0; n++)
			os_loop_step(w->loop, 5);
		assert_int_equal(g[i].calls, 1);
		assert_int_equal(g[i].rv, i <= ORDER_ALL ? 0 : AVA_EBUSY);
		assert_int_equal(g[i].id[0], i == 0 ? 'S' : 0);
	}
	assert_int_equal(o->now.nwaiting, ORDER_ALL);
	/* One that is held as the order goes, or the runtime, is answered, too. */
	orders_set(w->core, o->plan.id, ORDER_REMOVED, "ben", "terminal", fire_cb, &g[0]);
	orders_fire(w->core, o->plan.id, &f, fire_cb, &g[1]);
	for (int n = 0; n < 1000 && g[1].calls < 2; n++)
		os_loop_step(w->loop, 5);
	assert_int_equal(g[1].rv, AVA_ENOENT);
	o = order_add(w, "{'when':'@trigger'}");
	orders_fire(w->core, o->plan.id, &f, fire_cb, &g[0]);
	orders_fire(w->core, o->plan.id, &f, fire_cb, &g[1]);
	core_close(w->core);
	w->core = NULL;
	assert_int_equal(g[1].calls, 3);
	assert_int_equal(g[1].rv, AVA_ECANCELED);
	open_core(w);
}

/* A pause that is on its way to the disk holds for what is delivered meanwhile; what was answered
 * before is answered so again. */
TEST_OF(deliveries_meet_a_pause, struct world *w)
{
	struct order_fire f = delivery("two", "r-2");
	struct got g[2] = {{0}};
	struct standing *o;

	slow_model(w);
	o = order_add(w, "{'when':'@trigger','overlap':'queue'}");
	orders_set(w->core, o->plan.id, ORDER_PAUSED, "ben", "terminal", fire_cb, &g[0]);
	orders_fire(w->core, o->plan.id, &f, fire_cb, &g[1]);
	until(w, &g[1]);
	assert_int_equal(g[1].rv, AVA_EEXIST);
	assert_int_equal(o->now.nwaiting, 0);
	assert_int_equal(order_put(w, o, ORDER_ACTIVE).rv, 0);
	assert_true(deliver(w, o, "zero", "r-0").id[0] == 'S');
	assert_int_equal(deliver(w, o, "one", "r-1").rv, 0);
	assert_int_equal(order_put(w, o, ORDER_PAUSED).rv, 0);
	assert_int_equal(deliver(w, o, "one", "r-1").rv, 0);
	assert_int_equal(deliver(w, o, "two", "r-2").rv, AVA_EEXIST);
	assert_int_equal(o->now.nwaiting, 1);
	run_ends(w, o);
}

/* What was not written is not kept, so that it can come again. */
TEST_OF(deliveries_without_memory, struct world *w)
{
	struct order_fire f = delivery("one", "r-1");
	struct standing *o;
	struct got g;

	slow_model(w);
	o = order_add(w, "{'when':'@trigger','overlap':'queue'}");
	assert_true(deliver(w, o, "zero", "r-0").id[0] == 'S');
	for (long k = 1; o->now.nwaiting == 0; k++) {
		g = (struct got){0};
		fault_alloc(k);
		orders_fire(w->core, o->plan.id, &f, fire_cb, &g);
		(void)fault_alloc_end();
		until(w, &g);
		assert_int_equal(g.rv, o->now.nwaiting > 0 ? 0 : AVA_ENOMEM);
	}
	run_ends(w, o);
}

UNIT_GROUP(.before = set_up, .after = tear_down_orders);

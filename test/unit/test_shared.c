/* What the world says of limits that a run shares with others, what it writes down of
 * it, and that a start knows it again. */
#include "restart_rig.h"

#include "agent/limit.h"
#include "subagent/run.h"

static struct run *in_group(struct world *w, struct left *l)
{
	struct spec_group group = {.id = "G-7f3a2b",
				   .cost_microusd = 1000000,
				   .time_ms = 600000,
				   .index = 1,
				   .size = 2};

	*l = queued_in(w, "", &group);
	return supervisor_find(&w->sup, l->id);
}

static struct agent_shared ask(struct run *r)
{
	struct agent_shared s;

	shared_ask(&r->agent, &s);
	r->agent.at.shares |= (uint16_t)s.near;
	return s;
}

static void written(struct world *w, struct run *r)
{
	commit_flush(r, JOURNAL_NOW, NULL);
	RIG_UNTIL(&w->r, outbox_empty(&r->rec.outbox));
}

WORLD_TEST(what_is_near)
{
	struct agent_shared s;
	struct left l;
	struct run *r;

	r = in_group(w, &l);
	s = ask(r);
	assert_int_equal(s.near, 0);
	assert_null(r->rec.draft); /* nothing to say: nothing is written */
	r->group->money.spent = 799999;
	assert_int_equal(ask(r).near, 0);
	r->group->money.spent = 800000;
	s = ask(r);
	assert_int_equal(s.near, 1u << SHARE_GROUP_COST);
	assert_int_equal(s.of[SHARE_GROUP_COST].used, 800000);
	assert_int_equal(s.of[SHARE_GROUP_COST].limit, 1000000);
	assert_int_equal(ask(r).near, 0); /* once */
	group_run_starts(r);
	r->group->started_ms = clock_mono_ms() - 480000;
	s = ask(r);
	assert_int_equal(s.near, 1u << SHARE_GROUP_TIME);
	assert_true(s.of[SHARE_GROUP_TIME].used >= 480000);
	r->call.hold.draws = w->sup.money.limited = 1;
	w->sup.money.all[0].limit = 5000000;
	w->sup.money.all[0].spent = 4000000;
	assert_int_equal(ask(r).near, 1u << SHARE_DAY_COST);
	written(w, r);
	assert_true(
		rig_holds(&w->r, l.log,
			  "\"shared\":[{\"limit\":\"group_cost\",\"used\":80.0,\"of\":100.0}]"));
	assert_true(
		rig_holds(&w->r, l.log, "{\"limit\":\"day_cost\",\"used\":400.0,\"of\":500.0}"));
}

/* Budgets of periods, and of one folder or tag: the one that is nearest its end is told of, with
 * whose it is. */
WORLD_TEST(whose_it_is)
{
	static const char *const names[] = {"", "", "/srv/site", "/srv/site", "client=acme"};
	struct agent_shared s;
	char text[300];
	struct left l = queued(w, "");
	struct run *r = supervisor_find(&w->sup, l.id);

	r->call.hold.draws = w->sup.money.limited = 0x1f;
	for (unsigned i = 0; i < 5; i++) {
		struct budget *b = &w->sup.money.all[i];

		budget_init(b, 5000000);
		b->of = names[i];
		b->period = i < 3 ? (enum clock_period)i : CLOCK_MONTH;
		b->spent = i == 3 ? 4500000 : i == 0 ? 0 : 4000000;
	}
	s = ask(r);
	assert_int_equal(s.near,
			 1u << SHARE_WEEK_COST | 1u << SHARE_FOLDER_COST | 1u << SHARE_TAG_COST);
	assert_int_equal(s.of[SHARE_FOLDER_COST].used, 4500000);
	shared_sentence(&r->agent, &s, SHARE_FOLDER_COST, text, sizeof(text));
	assert_non_null(strstr(text, "The limit of /srv/site for this month is near: 450 of 500 "));
	shared_sentence(&r->agent, &s, SHARE_WEEK_COST, text, sizeof(text));
	assert_non_null(strstr(text, "The limit of this week is near: 400 of 500 cents"));
	written(w, r);
	assert_true(rig_holds(&w->r, l.log,
			      "{\"limit\":\"folder_cost\",\"used\":450.0,\"of\":500.0,"
			      "\"whose\":\"/srv/site\",\"period\":\"month\"}"));
	for (unsigned i = 0; i < 5; i++) {
		r->call.hold.short_of = &w->sup.money.all[i];
		w->sup.money.all[i].spent = 5000000;
	}
	money_refused(r, text, sizeof(text));
	assert_string_equal(text,
			    "the budget of client=acme this month of 500 cents has 0 left, which "
			    "pays no further call: raise its month_cents in budget.tags of "
			    "config.yaml or go on next month");
	r->call.hold.short_of = &w->sup.money.all[1];
	money_refused(r, text, sizeof(text));
	assert_string_equal(text,
			    "this week's budget of 500 cents has 0 left, which pays no further "
			    "call: raise budget.week_cents (AVA_BUDGET_WEEK_CENTS) or go on next "
			    "week");
	money_waits(r, text, sizeof(text));
	assert_string_equal(text, "Waiting for the week's budget");
}

/* Calls under way count with the least they cost. */
WORLD_TEST(what_pays_one_call)
{
	struct left l;
	struct run *r;

	r = in_group(w, &l);
	r->spec->agent.price = (struct agent_price){3000000, 15000000, 300000, 3750000};
	assert_false(ask(r).last);
	r->group->money.reserved = 1000000; /* the most they may cost is no reason */
	assert_false(ask(r).last);
	r->group->money.sure = 990000;
	assert_true(ask(r).last);
	r->group->money.sure = 0;
	r->group->money.limit = BUDGET_NO_LIMIT;
	assert_false(ask(r).last);
	written(w, r);
	assert_true(rig_holds(&w->r, l.log, "\"shared\":[],\"last\":true"));
	r->group->money.reserved = 0;
}

WORLD_TEST(told_before_a_stop)
{
	struct left l;
	struct run *r;

	l = queued(w, "");
	asks_model(w, &l, 1, ",\"shares\":4", "");
	close_world(w);
	restart(w);
	r = carried(w, &l);
	assert_int_equal(r->agent.at.shares, 1u << SHARE_DAY_COST);
	r->call.hold.draws = w->sup.money.limited = 1;
	w->sup.money.all[0].limit = 5000000;
	w->sup.money.all[0].spent = 4500000;
	assert_int_equal(ask(r).near, 0);
}

/* The verbs about standing orders (ava/orders.h): list, look, pause, go on, run now, remove. A new
 * order is asked for as a run is (verbs_runs.c).
 *
 * What can fail: no such order, one that is over or asks, and the disk; the answer comes when the
 * change is on disk. */
#include <stdio.h>
#include <string.h>

#include "ava/orders.h"
#include "ava/proposal.h"
#include "ava/verbs.h"
#include "base/clock.h"
#include "base/error.h"
#include "cluster/cluster.h"
#include "codec/json.h"

#define REQUEST_MAX 200

static void write_money(struct jw *w, const struct standing *o)
{
	const struct order_now *n = &o->now;
	char day[11];

	clock_local_date(clock_wall_ms(), day);
	verb_cost(w, "day_cents", o->plan.day_microusd);
	verb_cost(w, "month_cents", o->plan.month_microusd);
	verb_cost(w, "spent_day_cents", strcmp(day, n->day) > 0 ? 0 : n->day_microusd);
	verb_cost(w, "spent_month_cents", strncmp(day, n->day, 7) > 0 ? 0 : n->month_microusd);
}

static void write_times(struct jw *w, const struct standing *o)
{
	const struct order_plan *p = &o->plan;
	int64_t due = MAX(o->now.last_ms, clock_wall_ms());
	struct buf text;

	jw_str(w, "when", p->when);
	jw_str(w, "zone", calendar_zone(p->calendar));
	buf_init(&text, 65536);
	calendar_text(p->calendar, &text);
	jw_str(w, "text", buf_check(&text) == 0 && text.data ? text.data : "");
	buf_fini(&text);
	jw_array(w, "next");
	for (int i = 0; i < 3 && (o->now.state == ORDER_ACTIVE || o->now.state == ORDER_ASKS);
	     i++) {
		due = order_next(p, due);
		if (due == ORDER_NEVER || (p->count > 0 && o->now.fired + i >= p->count))
			break;
		verb_time(w, NULL, due);
	}
	jw_end(w);
	if (p->until_ms != ORDER_NEVER)
		verb_time(w, "until", p->until_ms);
	if (p->count > 0)
		jw_int(w, "count", p->count);
	jw_str(w, "overlap", order_overlap_name(p->overlap));
	jw_str(w, "missed", order_missed_name(p->missed));
}

static void write_order(struct jw *w, const struct standing *o, bool whole)
{
	json_t *config = json_parse(o->config, strlen(o->config), NULL);
	const json_t *limits = json_object_get(config, "limits");
	const struct cluster *cluster = core_service(o->core)->cluster;
	const struct proposal *asked = order_asking(o);

	jw_object(w, NULL);
	jw_str(w, "order_id", o->plan.id);
	jw_str(w, "state", order_state_name(o->now.state));
	jw_str(w, "task", json_str(config, "task"));
	jw_str(w, "role", json_str(config, "role"));
	jw_str(w, "model", json_str(config, "model"));
	jw_str(w, "cwd", json_str(config, "cwd"));
	if (cluster)
		jw_str(w, "machine", cluster_node(cluster));
	write_times(w, o);
	verb_cost(w, "max_cost_cents", json_get_fixed(limits, "costCents", 4, -1));
	write_money(w, o);
	jw_int(w, "fired", o->now.fired);
	jw_int(w, "waiting", o->now.nwaiting);
	jw_str(w, "run", o->now.run);
	jw_str(w, "why", o->now.why);
	if (asked && asked->step == STEP_PENDING)
		jw_str(w, "ask", asked->id);
	jw_str(w, "session_id", o->session);
	jw_str(w, "user_id", o->user);
	jw_str(w, "config_hash", o->hash);
	verb_time(w, "made_at", o->made_ms);
	if (whole)
		jw_raw(w, "config", o->config, strlen(o->config));
	jw_end(w);
	json_decref(config);
}

static void one_order(struct standing *o, void *user)
{
	write_order(user, o, false);
}

static void verb_orders(struct verb_call *v)
{
	const char *unreadable = orders_unreadable(v->core);
	struct verb_answer a;

	if (!verb_begin_args(&a, v, NULL))
		return;
	jw_object(&a.w, NULL);
	jw_array(&a.w, "orders");
	orders_each(v->core, one_order, &a.w);
	jw_end(&a.w);
	if (*unreadable) {
		jw_array(&a.w, "unreadable");
		jw_raw(&a.w, NULL, unreadable, strlen(unreadable));
		jw_end(&a.w);
	}
	verb_send(&a, 200);
}

static void verb_order(struct verb_call *v)
{
	struct ava_error err = {0};
	struct standing *o = orders_find(v->core, v->id, &err);
	struct verb_answer a;

	if (!verb_args(v, NULL) || !verb_begin(&a, v->reply, o ? 0 : err.code, &err))
		return;
	write_order(&a.w, o, true);
	verb_send(&a, 200);
}

/* The order as it is now. */
static void order_changed(int rv, const struct standing *o, const char *run,
			  const struct ava_error *err, void *user)
{
	struct verb_answer a;

	(void)run;
	if (!verb_begin(&a, user, rv, err))
		return;
	write_order(&a.w, o, false);
	verb_send(&a, 200);
}

void verb_order_started(int rv, const struct standing *o, const char *run,
			const struct ava_error *err, void *user)
{
	struct verb_answer a;

	if (!verb_begin(&a, user, rv, err))
		return;
	jw_object(&a.w, NULL);
	jw_str(&a.w, "order_id", o->plan.id);
	if (*run)
		jw_str(&a.w, "subagent_id", run);
	verb_send(&a, *run ? 201 : 202); /* 202: it is kept */
}

/* A model cannot stop or start what a person confirmed. */
static void order_set(struct verb_call *v, enum order_state to)
{
	if (verb_args(v, NULL) && verb_by_person(v, "standing orders"))
		orders_set(v->core, v->id, to, v->caller->user, v->caller->channel, order_changed,
			   v->reply);
}

static void verb_order_pause(struct verb_call *v)
{
	order_set(v, ORDER_PAUSED);
}

static void verb_order_unpause(struct verb_call *v)
{
	order_set(v, ORDER_ACTIVE);
}

static void verb_order_rm(struct verb_call *v)
{
	order_set(v, ORDER_REMOVED);
}

static const struct arg order_run_args[] = {
	{"request_id", ARG_SAID, 0, .most = REQUEST_MAX},
	{NULL},
};

static void verb_order_run(struct verb_call *v)
{
	struct order_fire f = {.by = v->caller->user, .origin = v->caller->channel};
	const char *request = NULL;

	if (!verb_args(v, &request) || !verb_by_person(v, "standing orders"))
		return;
	f.request_id = request;
	orders_fire(v->core, v->id, &f, verb_order_started, v->reply);
}

const struct verb verbs_about_orders[] = {
	{"GET", "/api/v1/orders", verb_orders, NULL, false},
	{"GET", "/api/v1/orders/{id}", verb_order, NULL, false},
	{"POST", "/api/v1/orders/{id}/pause", verb_order_pause, NULL, false},
	{"POST", "/api/v1/orders/{id}/unpause", verb_order_unpause, NULL, true},
	{"POST", "/api/v1/orders/{id}/rm", verb_order_rm, NULL, false},
	{"POST", "/api/v1/orders/{id}/run", verb_order_run, order_run_args, true},
	{NULL},
};

/* The judge of standing orders (doc/ORDERS.md). Events of the daily logs, in the order in which
 * they were written, say what became of each order; its file says its calendar. Each time that was
 * due is fired once, or told, or passed while the order was paused or asked; its runs come one
 * after the other, cost no more than a day and a month may, and are as many as it may start. */
#include "standing.h"

#include <ava.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/order.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "lives.h"

#define DUES_MAX 4000
#define TOLD_MAX 20000
#define LATE_MS  120000

struct told {
	int64_t lsn, wall_ms, due_ms, times, number, cost;
	char order[24], run[24], change[16], day[11];
	bool fired, by_hand, ended; /* else it is a change */
};

struct due {
	int64_t ms;
	bool fired, told, free; /* free: nothing had to become of it */
};

static struct {
	struct lives *l;
	struct told all[TOLD_MAX];
	unsigned n;
	struct order_plan plans[LIVES_ORDERS];
	bool there[LIVES_ORDERS];
} judging;

/* An order while its events are read. */
struct reading {
	const struct lives_order *o;
	const struct order_plan *plan;
	char state[16], day[11], open[24];
	int64_t since_ms; /* when it came into that state */
	int64_t seen_ms;  /* the latest time that a clock has shown since */
	int64_t fired, day_cost, month_cost, ended_ms;
	struct due dues[DUES_MAX];
	unsigned n;
};

/* ---- what is there */

void standing_judge_begin(struct lives *l)
{
	judging.l = l;
	judging.n = 0;
	memset(judging.there, 0, sizeof(judging.there));
}

static int64_t time_of(const json_t *o, const char *key)
{
	const char *s = json_str(o, key);

	return *s ? clock_parse_iso(s, strlen(s)) : 0;
}

void standing_see(const json_t *event)
{
	const char *type = json_str(event, "eventType");
	const json_t *c = json_object_get(event, "content");
	struct told t = {
		.lsn = json_get_int(event, "lsn", 0),
		.wall_ms = time_of(event, "timestamp"),
		.due_ms = time_of(c, "due"),
		.times = json_get_int(c, "times", 1),
		.number = json_get_int(c, "number", 0),
		.cost = json_get_fixed(json_object_get(c, "totals"), "costCents", 4, 0),
		.by_hand = *json_str(c, "by") != '\0',
		.fired = strcmp(type, "OrderFired") == 0,
		.ended = strcmp(type, "SubagentComplete") == 0,
	};

	if (judging.n == TOLD_MAX)
		return;
	if (t.fired || strcmp(type, "OrderChanged") == 0)
		snprintf(t.order, sizeof(t.order), "%s", json_str(c, "orderId"));
	snprintf(t.run, sizeof(t.run), "%s", json_str(c, "subagentId"));
	snprintf(t.change, sizeof(t.change), "%s", json_str(c, "change"));
	snprintf(t.day, sizeof(t.day), "%.10s", json_str(event, "timestamp"));
	judging.all[judging.n++] = t;
}

void standing_see_file(const char *path, const char *b, size_t len)
{
	json_t *file = json_parse(b, len, NULL);
	const char *id = json_str(file, "id");
	struct ava_error err = {0};

	for (unsigned i = 0; i < judging.l->norders; i++) {
		if (strcmp(judging.l->orders[i].id, id) != 0 ||
		    strcmp(json_str(file, "state"), "removed") == 0)
			continue;
		judging.there[i] =
			order_read(json_object_get(json_object_get(file, "config"), "order"),
				   &judging.plans[i], &err) == 0;
		if (!judging.there[i])
			lives_wrong(judging.l, "%s: %s", path, err.text);
	}
	json_decref(file);
}

static int by_lsn(const void *a, const void *b)
{
	const struct told *x = a, *y = b;

	return (x->lsn > y->lsn) - (x->lsn < y->lsn);
}

/* ---- its times */

static void list_dues(struct reading *r)
{
	int64_t ms = r->plan->from_ms;

	while (r->n < DUES_MAX && (ms = order_next(r->plan, ms)) != ORDER_NEVER)
		r->dues[r->n++] = (struct due){.ms = ms};
}

/* Times up to `last`, as many as `times`, were told; 0: a time that was none. */
static bool tell_dues(struct reading *r, int64_t last, int64_t times)
{
	for (unsigned i = 0; i < r->n; i++)
		for (unsigned k = i; r->dues[i].ms == last && times > 0; times--) {
			r->dues[k].told = true;
			if (k-- == 0)
				return times == 1;
		}
	return times == 0;
}

static void free_dues(struct reading *r, int64_t after, int64_t to)
{
	for (unsigned i = 0; i < r->n; i++)
		r->dues[i].free |= r->dues[i].ms > after && r->dues[i].ms <= to;
}

static bool fire_due(struct reading *r, const struct told *t)
{
	struct due *d = NULL;
	bool exact = strcmp(r->o->missed, "skip") == 0 && strcmp(r->o->overlap, "skip") == 0;

	if (strcmp(r->state, "active") != 0)
		return lives_wrong(judging.l, "%s: %s fired as it was %s", r->o->id, t->run,
				   r->state);
	for (unsigned i = 0; i < r->n; i++)
		d = r->dues[i].ms == t->due_ms ? &r->dues[i] : d;
	if (d == NULL || d->fired)
		return lives_wrong(judging.l, "%s: %s fired for a time that %s", r->o->id, t->run,
				   d ? "has a run" : "is none of the calendar");
	if (exact && (t->wall_ms > d->ms + LATE_MS + 1000 || d->told))
		return lives_wrong(judging.l, "%s: %s fired for a time that was missed", r->o->id,
				   t->run);
	d->fired = true;
	return true;
}

/* ---- its money */

static void reach_day(struct reading *r, const char *day)
{
	if (strcmp(day, r->day) <= 0)
		return;
	r->day_cost = 0;
	if (strncmp(day, r->day, 7) != 0)
		r->month_cost = 0;
	memcpy(r->day, day, sizeof(r->day));
}

static bool fire_money(const struct reading *r, const struct told *t)
{
	int64_t most = r->o->run.cost_microusd;

	if (r->o->day_cents > 0 && r->day_cost + most > r->o->day_cents * 10000)
		return lives_wrong(judging.l, "%s: %s fired with %" PRId64 " spent on %s", r->o->id,
				   t->run, r->day_cost, r->day);
	if (r->o->month_cents > 0 && r->month_cost + most > r->o->month_cents * 10000)
		return lives_wrong(judging.l, "%s: %s fired with %" PRId64 " spent in the month",
				   r->o->id, t->run, r->month_cost);
	return true;
}

/* ---- its events */

static bool see_fired(struct reading *r, const struct told *t)
{
	if (r->open[0] != '\0')
		return lives_wrong(judging.l, "%s: %s fired while %s was at work", r->o->id, t->run,
				   r->open);
	if (t->number != ++r->fired || (r->o->count > 0 && r->fired > r->o->count))
		return lives_wrong(judging.l, "%s: %s is number %" PRId64 " of %" PRId64, r->o->id,
				   t->run, t->number, r->o->count);
	snprintf(r->open, sizeof(r->open), "%s", t->run);
	return (t->by_hand || judging.l->far_back > 0 || r->plan == NULL || fire_due(r, t)) &&
	       (judging.l->far_back > 0 || fire_money(r, t));
}

static bool see_change(struct reading *r, const struct told *t)
{
	if (t->due_ms > 0 && r->plan != NULL && judging.l->far_back == 0 &&
	    !tell_dues(r, t->due_ms, t->times))
		return lives_wrong(judging.l, "%s: %s told of %" PRId64 " times that were none",
				   r->o->id, t->change, t->times);
	if (t->due_ms > 0)
		return true;
	/* That it asks is said in place of the time. With as many that wait as it may still start
	 * no time is looked at; a pause leaves those out. */
	if (strcmp(t->change, "asks") == 0 || strcmp(r->state, "asks") == 0 ||
	    strcmp(r->state, "paused") == 0 ||
	    (strcmp(t->change, "paused") == 0 && r->o->count > 0))
		free_dues(r, r->since_ms, strcmp(r->state, "asks") == 0 ? r->seen_ms : t->wall_ms);
	snprintf(r->state, sizeof(r->state), "%s", t->change);
	r->since_ms = r->seen_ms = t->wall_ms;
	return true;
}

static bool see(struct reading *r, const struct told *t)
{
	bool own = strcmp(t->order, r->o->id) == 0;

	r->seen_ms = MAX(r->seen_ms, t->wall_ms);
	/* Its day is another one only where money is asked for or counted. */
	if ((own && (t->fired || strcmp(t->change, "budget") == 0)) ||
	    (t->ended && r->open[0] && strcmp(t->run, r->open) == 0))
		reach_day(r, t->day);
	if (t->ended && r->open[0] && strcmp(t->run, r->open) == 0) {
		r->open[0] = '\0';
		r->day_cost += t->cost;
		r->month_cost += t->cost;
	}
	return !own || (t->fired ? see_fired(r, t) : see_change(r, t));
}

/* All times up to its end, its pause, or the last run that it might start. */
static bool check_dues(const struct reading *r)
{
	int64_t to = r->since_ms;

	if (strcmp(r->state, "paused") == 0 && judging.l->days_back > 0)
		return true; /* it was paused at a time that comes again */
	if (r->o->count > 0 && r->fired >= r->o->count)
		return true;
	for (unsigned i = 0; i < r->n && r->dues[i].ms <= to; i++)
		if (!r->dues[i].fired && !r->dues[i].told && !r->dues[i].free) {
			char iso[CLOCK_ISO_LEN + 1];

			clock_iso(r->dues[i].ms, iso);
			return lives_wrong(judging.l, "%s: nothing became of %s", r->o->id, iso);
		}
	return true;
}

static bool judge_order(unsigned i)
{
	static struct reading r;

	r = (struct reading){.o = &judging.l->orders[i],
			     .plan = judging.there[i] ? &judging.plans[i] : NULL};
	if (r.plan != NULL)
		list_dues(&r);
	for (unsigned k = 0; k < judging.n; k++)
		if (!see(&r, &judging.all[k]))
			return false;
	if (r.state[0] == '\0' || r.open[0] != '\0' || strcmp(r.state, "active") == 0)
		return lives_wrong(judging.l, "%s: in the end it is %s, with %s at work", r.o->id,
				   r.state, r.open);
	return r.plan == NULL || judging.l->far_back > 0 || check_dues(&r);
}

bool standing_judge(struct lives *l)
{
	bool good = l->broken[0] == '\0';

	qsort(judging.all, judging.n, sizeof(judging.all[0]), by_lsn);
	for (unsigned i = 0; i < l->norders && good; i++)
		good = judge_order(i);
	for (unsigned i = 0; i < l->norders; i++)
		if (judging.there[i])
			order_fini(&judging.plans[i]);
	return good;
}

/* People and orders. Whatever is not acknowledged is asked for again under its request id: orders
 * at the next look of a client, a run beside the calendar at the next look of a person. */
#include "standing.h"

#include <assert.h>
#include <ava.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ava/core.h"
#include "ava/ops.h"
#include "ava/orders.h"
#include "ava/proposal.h"
#include "base/clock.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/util.h"
#include "clockwork.h"
#include "lives.h"

static struct lives *now;
static struct core *core;

static const char *const zones[] = {"Europe/Berlin", "America/New_York"};

static void copy_zone(const char *name)
{
	char path[100], bytes[8192];
	ssize_t len;
	FILE *f;
	int fd;

	snprintf(path, sizeof(path), "/usr/share/zoneinfo/%s", name);
	f = fopen(path, "r");
	assert(f != NULL);
	len = (ssize_t)fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
		*at = '\0';
		(void)sys->mkdirat(AT_FDCWD, path, 0700);
		*at = '/';
	}
	fd = sys->openat(AT_FDCWD, path, O_WRONLY | O_CREAT, 0600);
	assert(fd >= 0);
	if (sys->pwrite(fd, bytes, (size_t)len, 0) != len)
		abort();
	sys->close(fd);
}

void standing_zones(void)
{
	for (size_t i = 0; i < ARRAY_LEN(zones); i++)
		copy_zone(zones[i]);
}

/* ---- what is drawn */

static void draw_run(struct lives_run *r)
{
	r->kind = (enum lives_kind)sim_span(0, LIVES_TALKS);
	r->standing = r->tight = true; /* its own money may end it */
	r->tagged = sim_maybe(500);
	r->check = sim_maybe(200) ? (int)sim_span(0, 2) : -1;
	r->cost_microusd = sim_span(10, 60) * 10000;
	r->time_ms = sim_maybe(300) ? sim_span(60000, 1200000) : 600000000;
	r->tokens = 100000000;
	r->iterations = AVA_DEFAULT;
}

static void draw_order(struct lives_order *o)
{
	const struct {
		const char *when, *zone;
		int64_t least, most; /* minutes that it lasts */
	} calendars[] = {
		{"*/10 * * * *", "UTC", 14, 300},    {"every 13m", "UTC", 14, 300},
		{"*/20 * * * *", zones[0], 21, 400}, {"@hourly", "UTC", 61, 1500},
		{"every 100s", "UTC", 5, 80},        {"30 2 * * *", zones[0], 1441, 4000},
		{"at +40m", "UTC", 41, 160},         {"*:0/15", zones[1], 16, 400},
	};
	size_t i = (size_t)sim_span(0, ARRAY_LEN(calendars) - 1);
	int64_t cents;

	o->when = calendars[i].when;
	o->zone = calendars[i].zone;
	o->lasts_ms = sim_span(calendars[i].least, calendars[i].most) * 60000 + 60000;
	o->overlap = sim_maybe(500) ? "skip" : "queue";
	o->missed = sim_maybe(333) ? "once" : sim_maybe(500) ? "skip" : "all";
	draw_run(&o->run);
	cents = o->run.cost_microusd / 10000;
	o->day_cents = sim_maybe(500) ? cents * sim_span(1, 3) : 0;
	o->month_cents = sim_maybe(300) ? cents * sim_span(1, 5) : 0;
	o->count = sim_maybe(400) ? sim_span(1, 6) : 0;
}

void standing_draw(struct lives *l)
{
	l->norders = (unsigned)sim_span(sim_maybe(150) ? 0 : 1, LIVES_ORDERS);
	for (unsigned i = 0; i < l->norders; i++) {
		snprintf(l->orders[i].id, sizeof(l->orders[i].id), "O-0000000%u", i);
		draw_order(&l->orders[i]);
	}
	for (unsigned i = 0; i < l->nruns; i++) {
		l->runs[i].tagged = sim_maybe(300);
		l->runs[i].check = sim_maybe(150) ? (int)sim_span(0, 2) : -1;
	}
	l->edits = sim_maybe(300);
	l->week_cents = sim_maybe(200) ? sim_span(5, 400) : 0;
	l->month_cents = sim_maybe(200) ? sim_span(5, 600) : 0;
	for (int p = 0; p < 3; p++)
		l->tag_cents[p] = sim_maybe(150) ? sim_span(5, 300) : 0;
}

void standing_settings(const struct lives *l, struct settings *s)
{
	static struct settings_budget row;

	row = (struct settings_budget){.of = "nightly"};
	for (int p = 0; p < 3; p++)
		row.cents[p] = l->tag_cents[p];
	s->budget_week_cents = l->week_cents;
	s->budget_month_cents = l->month_cents;
	s->budgets = &row;
	s->nbudgets = 1;
}

/* ---- asking */

static void on_order(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
		     void *user)
{
	struct lives_order *o = user;

	(void)repeated;
	if (sim.dead)
		return;
	lives_note("%s: %s", o->id, rv == 0 ? p->order : err->text);
	if (rv == AVA_EINVAL || (rv == 0 && p->step != STEP_CONFIRMED))
		lives_wrong(now, "%s is not confirmed: %s", o->id, rv == 0 ? "" : err->text);
	o->asked = o->told = rv == 0;
}

static json_t *plan_of(const struct lives_order *o)
{
	json_t *plan = json_pack("{s:s, s:s, s:s, s:s, s:s}", "id", o->id, "when", o->when, "zone",
				 o->zone, "overlap", o->overlap, "missed", o->missed);
	char iso[CLOCK_ISO_LEN + 1];

	clock_iso(sim.now + sim.wall + o->lasts_ms, iso);
	json_object_set_new(plan, "until", json_string(iso));
	if (o->day_cents > 0)
		json_object_set_new(plan, "day_cents", json_integer(o->day_cents));
	if (o->month_cents > 0)
		json_object_set_new(plan, "month_cents", json_integer(o->month_cents));
	if (o->count > 0)
		json_object_set_new(plan, "count", json_integer(o->count));
	return plan;
}

void standing_ask(struct lives *l, struct core *c, unsigned i, const struct op_spawn *spawn)
{
	struct lives_order *o = &l->orders[i];
	struct op_spawn s = *spawn;
	json_t *plan = plan_of(o);
	char request[32];

	now = l;
	snprintf(request, sizeof(request), "r-order-%u", i);
	s.request_id = request;
	s.order = plan;
	s.confirm = "never";
	o->asked = true;
	lives_note("%s is asked for: %s %s, overlap %s, missed %s, %lld times", o->id, o->when,
		   o->zone, o->overlap, o->missed, (long long)o->count);
	ops_propose(c, &s, on_order, o);
	json_decref(plan);
}

/* ---- people */

static void on_changed(int rv, const struct standing *s, const char *run,
		       const struct ava_error *err, void *user)
{
	const struct lives_order *o = user;

	(void)run;
	if (!sim.dead)
		lives_note("%s: %s", o->id, rv == 0 ? order_state_name(s->now.state) : err->text);
}

static void on_started(int rv, const struct standing *s, const char *run,
		       const struct ava_error *err, void *user)
{
	struct lives_order *o = user;

	(void)s;
	if (sim.dead)
		return;
	lives_note("%s: by hand: %s", o->id, rv == 0 ? run : err->text);
	if (rv == 0 && o->started[0] && strcmp(o->started, run) != 0)
		lives_wrong(now, "%s: one request to start it is two runs: %s and %s", o->id,
			    o->started, run);
	if (rv == 0)
		snprintf(o->started, sizeof(o->started), "%s", run);
	else if (rv != AVA_EUNKNOWN && rv != AVA_ECANCELED && rv != AVA_EBUSY && !o->started[0])
		o->starts++; /* refused: what is asked for next is something else */
}

static void start_one(struct lives_order *o)
{
	char request[32];
	struct order_fire f = {.by = "ben", .origin = "sim", .request_id = request};

	/* A request is repeated until it is answered, and some once more; when a day has passed for
	 * the clock it would be forgotten. */
	if (o->started[0] && (sim_maybe(600) || now->jumps > o->start_jumps)) {
		o->starts++;
		o->started[0] = '\0';
	}
	o->start_jumps = now->jumps;
	snprintf(request, sizeof(request), "f-%s-%u", o->id, o->starts);
	lives_note("%s: %s is said", o->id, request);
	orders_fire(core, o->id, &f, on_started, o);
}

static void on_answered(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
			void *user)
{
	(void)repeated;
	(void)user;
	if (!sim.dead)
		lives_note("an order asked: %s", rv == 0 ? proposal_state(p) : err->text);
}

struct asked_of {
	char ids[8][24];
	unsigned n;
};

static void on_proposal(struct proposal *p, void *user)
{
	struct asked_of *a = user;

	if (p->order[0] && p->step == STEP_PENDING && a->n < ARRAY_LEN(a->ids))
		snprintf(a->ids[a->n++], sizeof(a->ids[0]), "%s", p->id);
}

ssize_t __real_sys_read_some(int fd, void *buf, size_t len, off_t at);
ssize_t __wrap_sys_read_some(int fd, void *buf, size_t len, off_t at);

/* Instructions are files of the real disk, read by a real descriptor. */
ssize_t __wrap_sys_read_some(int fd, void *buf, size_t len, off_t at)
{
	const struct sys_ops *was = sys;
	ssize_t n;

	sys = fcntl(fd, F_GETFD) < 0 ? was : &sys_real;
	n = __real_sys_read_some(fd, buf, len, at);
	sys = was;
	return n;
}

static void write_instructions(const char *work)
{
	char path[400];
	FILE *f;

	snprintf(path, sizeof(path), "%s/AGENTS.md", work);
	f = fopen(path, "w");
	assert(f != NULL);
	fprintf(f, "Be brief, as in version %lld.\n", (long long)sim_span(1, 1000000));
	fclose(f);
	lives_note("the instructions change");
}

static void look_at(struct lives_order *o)
{
	struct standing *s = orders_find(core, o->id, NULL);
	enum order_state to = ORDER_NEW;

	if (!s)
		return;
	if (s->now.run[0])
		snprintf(o->run.id, sizeof(o->run.id), "%s", s->now.run);
	if (s->now.state == ORDER_PAUSED && sim_maybe(250))
		to = ORDER_ACTIVE;
	else if (s->now.state != ORDER_PAUSED && sim_maybe(40))
		to = ORDER_PAUSED;
	else if (sim_maybe(5))
		to = ORDER_REMOVED;
	else if (sim_maybe(50))
		start_one(o);
	if (to == ORDER_NEW || sim.dead)
		return;
	lives_note("%s: shall be %s", o->id, order_state_name(to));
	orders_set(core, o->id, to, "ben", "sim", on_changed, o);
}

void standing_look(struct lives *l, struct core *c, const char *work)
{
	struct asked_of a = {.n = 0};

	now = l;
	core = c;
	if (l->edits && sim_maybe(30))
		write_instructions(work);
	for (unsigned i = 0; i < l->norders && !sim.dead; i++)
		look_at(&l->orders[i]);
	if (!sim.dead)
		ops_proposals(core, false, on_proposal, &a);
	for (unsigned i = 0; i < a.n && !sim.dead; i++)
		if (sim_maybe(300))
			ops_confirm(core, a.ids[i], sim_maybe(200) ? "no" : "yes", NULL, "ben",
				    "sim", on_answered, NULL);
}

void standing_end(const char *work)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/AGENTS.md", work);
	(void)unlink(path);
}

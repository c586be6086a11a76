/* Budgets of periods, for people: an alert at 50, 80 and 100 % of each, and what Ava's own turns
 * have cost when the daemon starts.
 *
 * Happy path: a settlement brings a budget over a mark. Behind this turn of the loop an event of
 * the daily log says so, in the conversation of the run that did it; its Item is a notice
 * (event/item.c, ava/delivery.c). That event is all that is kept: a start reads those of the
 * periods that are counted, and tells what a crash kept from being told. A mark is told once in a
 * period and for a limit; of several that are passed at once, the highest.
 *
 * What can fail: the disk, and the next settlement tells it; the log, which a start cannot read:
 * then a mark may be told twice. */
#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/state.h"
#include "base/clock.h"
#include "base/util.h"
#include "codec/json.h"
#include "event/event.h"
#include "journal/count.h"
#include "subagent/run.h"

#define ALERT_TYPE "budget.alert"

struct budget_alert {
	struct list node; /* in budgets.alerts until it is committed */
	struct core *core;
	struct budget *budget;
	uint8_t percent, before; /* the mark; the one told before it */
	char session[64], user[];
};

/* ---- telling */

static uint8_t alert_mark(const struct budget *b)
{
	static const uint8_t marks[] = {100, 80, 50};
	int64_t used = budget_used(b), cap = budget_cap(b);

	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (used >= cap / 100 * marks[i] + cap % 100 * marks[i] / 100)
			return marks[i];
	return 0;
}

static void alert_written(int rv, void *user)
{
	struct budget_alert *a = user;

	if (rv != 0 && a->budget->told == a->percent)
		a->budget->told = a->before;
	free(a);
}

static void alert_commit(struct budget_alert *a)
{
	const struct budget *b = a->budget;
	struct core *c = a->core;
	const struct core_telling t = {EVENT_Custom, a->session,    a->user,
				       JOURNAL_RIDE, alert_written, a};
	struct buf content;
	struct jw w;

	buf_init(&content, 4096);
	jw_init(&w, &content);
	jw_object(&w, NULL);
	jw_str(&w, "customType", ALERT_TYPE);
	jw_object(&w, "data");
	jw_str(&w, "of", b->of);
	jw_str(&w, "period", money_period(b));
	jw_str(&w, "since", c->sup.money.of[b->period].begins);
	jw_int(&w, "percent", a->percent);
	jw_fixed(&w, "usedCents", budget_used(b), 4);
	jw_fixed(&w, "cents", budget_cap(b), 4);
	jw_end(&w);
	jw_end(&w);
	if (core_tell(c, &t, &content, NULL) != 0)
		alert_written(AVA_EIO, a);
}

static void alerts_due(struct os_task *task)
{
	struct core *c = CONTAINER_OF(task, struct core, sup.money.alert);

	while (!list_empty(&c->sup.money.alerts)) {
		struct budget_alert *a =
			LIST_FIRST(&c->sup.money.alerts, struct budget_alert, node);

		list_del(&a->node);
		alert_commit(a);
	}
}

static void alert_look(struct core *c, struct budget *b, const char *session, const char *user)
{
	uint8_t mark = alert_mark(b);
	struct budget_alert *a;

	if (mark <= b->told)
		return;
	a = calloc(1, sizeof(*a) + strlen(user) + 1);
	if (!a)
		return; /* the next settlement tells it */
	a->core = c;
	a->budget = b;
	a->percent = mark;
	a->before = b->told;
	snprintf(a->session, sizeof(a->session), "%s", session);
	memcpy(a->user, user, strlen(user) + 1);
	b->told = mark;
	list_add(&c->sup.money.alerts, &a->node);
	os_defer(c->loop, &c->sup.money.alert);
}

/* supervisor.on_budget */
static void alerts_settled(struct run *r, void *user)
{
	BUDGET_EACH (&r->call.hold, b)
		if (b != r->call.hold.group)
			alert_look(user, b, r->spec->session_id, r->spec->user_id);
}

/* ---- a start */

/* Counts the cost of Ava's turns for the budgets of all calls, from InferEnd events of the daily
 * logs since the earliest of their periods began: the catalog has only runs. */
static void count_hers(struct core *c)
{
	struct budgets *m = &c->sup.money;
	char until[CLOCK_ISO_LEN + 1]; /* a clock that was ahead wrote what is later */
	char since[11] = "";
	struct ava_log_query q = {.root = c->root,
				  .types = "InferEnd",
				  .agent = "ava",
				  .since = since,
				  .until = until};
	struct ava_error err = {0};
	struct count days = {0};
	uint64_t hers = 0;
	int rv;

	for (unsigned i = 0; i < m->n; i++) {
		const char *begins = m->of[m->all[i].period].begins;

		if (!(m->limited >> i & 1) || m->all[i].of[0] || m->all[i].more)
			continue;
		hers |= UINT64_C(1) << i;
		if (!since[0] || strcmp(begins, since) < 0)
			snprintf(since, sizeof(since), "%s", begins);
	}
	if (hers == 0)
		return;
	clock_iso(clock_wall_ms() + BUDGET_BACK_MS, until);
	rv = count_events(&days, &q, COUNT_DAY, &(struct count_watch){0}, &err);
	if (rv != 0 && rv != AVA_ENOENT) /* ENOENT: no daily log yet */
		core_log(c, "what Ava has cost is not known: %s", err.text);
	for (unsigned i = 0; i < m->n; i++)
		for (size_t k = 0; (hers >> i & 1) && k < days.n; k++)
			if (strcmp(days.rows[k].key, m->of[m->all[i].period].begins) >= 0)
				m->all[i].spent = sum_to_max(m->all[i].spent,
							     (int64_t)days.rows[k].cost_microusd);
	count_fini(&days);
}

/* An alert of the period that is counted, for the limit that there is. */
static void alert_known(struct budgets *m, const json_t *data)
{
	for (unsigned i = 0; i < m->n; i++) {
		struct budget *b = &m->all[i];

		if (strcmp(b->of, json_str(data, "of")) == 0 &&
		    strcmp(money_period(b), json_str(data, "period")) == 0 &&
		    strcmp(m->of[b->period].begins, json_str(data, "since")) == 0 &&
		    json_get_fixed(data, "cents", 4, 0) == budget_cap(b))
			b->told = MAX(b->told, (uint8_t)json_get_int(data, "percent", 0));
	}
}

static void read_alerts(struct core *c)
{
	struct budgets *m = &c->sup.money;
	const struct ava_log_query q = {
		.root = c->root,
		.types = "Custom",
		.agent = "ava",
		.since = strcmp(m->of[CLOCK_WEEK].begins, m->of[CLOCK_MONTH].begins) < 0
				 ? m->of[CLOCK_WEEK].begins
				 : m->of[CLOCK_MONTH].begins,
		.search = ALERT_TYPE,
	};
	struct ava_error err = {0};
	struct ava_log_event e;
	struct ava_log *log = NULL;
	int rv = ava_log_open(&log, &q, &err);

	while (rv == 0 && ((rv = ava_log_next(log, &e, &err)) == 1 || rv == AVA_ECORRUPT)) {
		json_t *line = rv == 1 ? json_parse(e.line, e.len, NULL) : NULL;
		const json_t *content = json_object_get(line, "content");

		if (strcmp(json_str(content, "customType"), ALERT_TYPE) == 0)
			alert_known(m, json_object_get(content, "data"));
		json_decref(line);
		rv = 0;
	}
	if (rv < 0 && rv != AVA_ENOENT) /* ENOENT: no daily log yet */
		core_log(c, "which alerts of budgets were told is not known: %s", err.text);
	ava_log_close(log);
}

int budgets_open(struct core *c, struct ava_error *err)
{
	os_task_init(&c->sup.money.alert, alerts_due);
	return 0;
}

void budgets_restore(struct core *c)
{
	struct budgets *m = &c->sup.money;

	count_hers(c);
	if (m->limited)
		read_alerts(c);
	for (unsigned i = 0; i < m->n; i++)
		if (m->limited >> i & 1)
			alert_look(c, &m->all[i], "", "");
	c->sup.on_budget = alerts_settled;
}

void budgets_close(struct core *c)
{
	c->sup.on_budget = NULL;
	os_defer_cancel(c->loop, &c->sup.money.alert);
	while (!list_empty(&c->sup.money.alerts)) {
		struct budget_alert *a =
			LIST_FIRST(&c->sup.money.alerts, struct budget_alert, node);

		list_del(&a->node);
		free(a);
	}
}

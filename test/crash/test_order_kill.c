/* A standing order, killed at every call that changes the disk. A child confirms an order whose ten
 * last times were missed, and waits until it has made up for three of them, until its k-th such
 * call, where it is gone without a word. A second child goes on: it asks for the order only where
 * there is none. Then there is one order, done, with three runs for three different times, each
 * started once, in the commit that says that it fired, and ended once. */
#include "killdisk.h"

#include "ava/ops.h"
#include "ava/orders.h"
#include "ava/proposal.h"
#include "runs_now.h"

#define COUNT 3
#define HOUR  3600000LL

int64_t __real_clock_wall_ms(void);
int64_t __wrap_clock_wall_ms(void);

int64_t kill_ahead_ms;

int64_t __wrap_clock_wall_ms(void)
{
	return __real_clock_wall_ms() + kill_ahead_ms;
}

struct ordering {
	struct kill_life life;
	struct standing *order;
	int asked;
};

static void order_kill_asked(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
			     void *user)
{
	(void)repeated;
	(void)p;
	kill_must(rv, err, "propose");
	((struct ordering *)user)->asked++;
}

static void order_kill_found(struct standing *o, void *user)
{
	((struct ordering *)user)->order = o;
}

/* Asks for the order where it is not there yet; p->order is set. */
static void order_kill_use(struct ordering *p, const char *more)
{
	char plan[400];
	struct op_spawn s = spawn_usual("Find where parse_header is defined", p->life.src);

	snprintf(plan, sizeof(plan),
		 "{\"id\":\"O-5d09c41e\",\"when\":\"every 1h\",\"zone\":\"UTC\",%s}", more);
	orders_each(p->life.core, order_kill_found, p);
	if (!p->order) {
		s.order = json_parse(plan, strlen(plan), NULL);
		s.confirm = "never";
		s.request_id = "r-order";
		ops_propose(p->life.core, &s, order_kill_asked, p);
		while (!p->asked)
			kill_turn(&p->life);
		json_decref((json_t *)s.order);
	}
	for (; !p->order; kill_turn(&p->life))
		orders_each(p->life.core, order_kill_found, p);
}

static int order_kill_play(const char *dir, long k)
{
	struct ordering p = {0};

	if (k > 0)
		kill_arm(k);
	p.life = kill_open(dir, 0);
	order_kill_use(&p, "\"from\":\"2026-01-01T00:00:00.000Z\",\"missed\":\"all\",\"count\":3");
	while (p.order->now.state != ORDER_DONE || !p.order->now.settled || p.order->writing)
		kill_turn(&p.life);
	kill_close(&p.life);
	return 0;
}

/* Four lives: it is made; an hour later; two hours before; five hours later. */
static int order_kill_clocks(const char *dir, long k)
{
	static const struct {
		int64_t ahead_ms, fired;
	} lives[] = {{0, 0}, {HOUR, 1}, {-2 * HOUR, 1}, {5 * HOUR, 2}};
	char plan[200], iso[CLOCK_ISO_LEN + 1];

	if (k > 0)
		kill_arm(k);
	clock_iso(clock_wall_ms() - HOUR / 2, iso);
	snprintf(plan, sizeof(plan), "\"from\":\"%s\",\"missed\":\"once\"", iso);
	for (size_t i = 0; i < ARRAY_LEN(lives); i++) {
		struct ordering p = {0};

		kill_ahead_ms = lives[i].ahead_ms;
		p.life = kill_open(dir, 0);
		order_kill_use(&p, plan);
		for (int n = 0; n < 3; n++)
			kill_turn(&p.life);
		while (p.order->now.fired < lives[i].fired || !p.order->now.settled ||
		       p.order->writing)
			kill_turn(&p.life);
		kill_close(&p.life);
	}
	return 0;
}

/* ---- what must be there afterwards */

struct order_traces {
	unsigned fired, spawned, ended, added, done;
	char due[COUNT + 1][CLOCK_ISO_LEN + 1], run[COUNT + 1][24];
	long k;
};

static void order_kill_line(const json_t *o, void *user)
{
	struct order_traces *t = user;
	const char *type = json_get_str(o, "eventType");
	const json_t *content = json_object_get(o, "content");
	const char *change = json_str(content, "change");

	if (strcmp(type, "OrderFired") == 0) {
		for (unsigned i = 0; i < MIN(t->fired, (unsigned)COUNT); i++)
			if (strcmp(t->due[i], json_str(content, "due")) == 0)
				fail_msg("k = %ld: %s fired twice", t->k, t->due[i]);
		if (t->fired < COUNT) {
			snprintf(t->due[t->fired], sizeof(t->due[0]), "%s",
				 json_str(content, "due"));
			snprintf(t->run[t->fired], sizeof(t->run[0]), "%s",
				 json_str(content, "subagentId"));
		}
		t->fired++;
	}
	if (strcmp(type, "SubagentSpawn") == 0) {
		assert_string_equal(json_str(content, "order"), "O-5d09c41e");
		t->spawned++;
	}
	t->ended += strcmp(type, "SubagentComplete") == 0;
	t->added += strcmp(type, "OrderChanged") == 0 && strcmp(change, "active") == 0;
	t->done += strcmp(type, "OrderChanged") == 0 && strcmp(change, "done") == 0;
}

static void order_kill_check(const char *dir, long k)
{
	struct order_traces t = {.k = k};
	char path[700];
	size_t len;
	char *file;

	kill_each_day(dir, order_kill_line, &t);
	if (t.fired != COUNT || t.spawned != COUNT || t.ended != COUNT || t.added != 1 ||
	    t.done != 1)
		fail_msg("k = %ld: fired %u, spawned %u, ended %u, added %u, done %u", k, t.fired,
			 t.spawned, t.ended, t.added, t.done);
	snprintf(path, sizeof(path), "%s/data/orders/O-5d09c41e.json", dir);
	file = unit_read(path, &len);
	if (!strstr(file, "\"state\":\"done\"") || !strstr(file, "\"fired\":3,") ||
	    !strstr(file, "\"settled\":true") || !strstr(file, t.run[COUNT - 1]))
		fail_msg("k = %ld: the order says %.300s", k, file);
	free(file);
	kill_nothing_lost(dir, k);
}

TEST(order_untouched)
{
	const char *dir = kill_fresh();

	assert_int_equal(kill_child(order_kill_play, dir, 0), 0);
	order_kill_check(dir, 0);
	/* Another process finds it done. */
	assert_int_equal(kill_child(order_kill_play, dir, 0), 0);
	order_kill_check(dir, 0);
	unit_rmdir(dir);
}

TEST(order_killed)
{
	kill_at_each(order_kill_play, order_kill_check, kill_step("AVA_ORDER_KILL_STEP"),
		     getenv("AVA_SOAK") != NULL);
}

/* With clocks that are moved both ways two of the times have a run, whenever it is killed. */
static void order_kill_clocks_check(const char *dir, long k)
{
	struct order_traces t = {.k = k};

	kill_each_day(dir, order_kill_line, &t);
	if (t.fired != 2 || t.spawned != 2 || t.ended != 2 || t.added != 1 || t.done != 0)
		fail_msg("k = %ld: fired %u, spawned %u, ended %u, added %u, done %u", k, t.fired,
			 t.spawned, t.ended, t.added, t.done);
	kill_nothing_lost(dir, k);
}

TEST(order_killed_clocks)
{
	kill_at_each(order_kill_clocks, order_kill_clocks_check,
		     4 * kill_step("AVA_ORDER_KILL_STEP"), getenv("AVA_SOAK") != NULL);
}

UNIT_GROUP(.first = kill_in_memory);

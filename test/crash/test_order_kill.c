/* A standing order, killed at every call that changes the disk. A child confirms an order whose ten
 * last times were missed, and waits until it has made up for three of them, until its k-th such
 * call, where it is gone without a word. A second child goes on: it asks for the order only where
 * there is none. Then there is one order, done, with three runs for three different times, each
 * started once, in the commit that says that it fired, and ended once. */
#include "killdisk.h"

#include "ava/core.h"
#include "ava/ops.h"
#include "ava/orders.h"
#include "ava/proposal.h"
#include "base/clock.h"
#include "os/loop.h"
#include "runs_now.h"

#define PATIENCE_MS 120000
#define COUNT       3
#define HOUR        3600000LL

int64_t __real_clock_wall_ms(void);
int64_t __wrap_clock_wall_ms(void);

static int64_t wall_ahead_ms; /* of the machine's clock */

int64_t __wrap_clock_wall_ms(void)
{
	return __real_clock_wall_ms() + wall_ahead_ms;
}

struct ordering {
	struct os_loop *loop;
	struct core *core;
	char src[300];
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

static void order_kill_step(struct ordering *p, int64_t until)
{
	os_loop_step(p->loop, 5);
	if (clock_mono_ms() > until)
		_exit(4);
}

/* Asks for the order where it is not there yet; p->order is set. */
static void order_kill_use(struct ordering *p, const char *more)
{
	char plan[400];
	struct op_spawn s = spawn_usual("Find where parse_header is defined", p->src);
	int64_t until = clock_mono_ms() + PATIENCE_MS;

	snprintf(plan, sizeof(plan),
		 "{\"id\":\"O-5d09c41e\",\"when\":\"every 1h\",\"zone\":\"UTC\",%s}", more);
	orders_each(p->core, order_kill_found, p);
	if (!p->order) {
		s.order = json_parse(plan, strlen(plan), NULL);
		s.confirm = "never";
		s.request_id = "r-order";
		ops_propose(p->core, &s, order_kill_asked, p);
		while (!p->asked)
			order_kill_step(p, until);
		json_decref((json_t *)s.order);
	}
	for (; !p->order; order_kill_step(p, until))
		orders_each(p->core, order_kill_found, p);
}

static struct ordering order_kill_open(const char *dir)
{
	static struct settings settings;
	struct ordering p = {.loop = os_loop_new(NULL)};
	char root[300];
	struct core_options o = {
		.loop = p.loop, .root = root, .settings = &settings, .model = "offline"};
	struct ava_error err = {0};

	snprintf(root, sizeof(root), "%s/data", dir);
	snprintf(p.src, sizeof(p.src), "%s/src", dir);
	settings_defaults(&settings);
	settings.disk_free_min_mb = 0;
	settings.disk_ballast_mb = 0;
	kill_must(core_open(&p.core, &o, &err), &err, "core_open");
	return p;
}

static void order_kill_close(struct ordering *p)
{
	core_close(p->core);
	os_loop_free(p->loop);
}

static int order_kill_play(const char *dir, long k)
{
	struct ordering p;

	if (k > 0)
		kill_arm(k);
	p = order_kill_open(dir);
	order_kill_use(&p, "\"from\":\"2026-01-01T00:00:00.000Z\",\"missed\":\"all\",\"count\":3");
	while (p.order->now.state != ORDER_DONE || !p.order->now.settled || p.order->writing)
		order_kill_step(&p, clock_mono_ms() + PATIENCE_MS);
	order_kill_close(&p);
	return 0;
}

/* Four lives: it is made; an hour later; two hours before; five hours later. */
static int order_kill_clocks(const char *dir, long k)
{
	static const struct {
		int64_t ahead_ms, fired;
	} lives[] = {{0, 0}, {HOUR, 1}, {-2 * HOUR, 1}, {5 * HOUR, 2}};
	char plan[200], iso[CLOCK_ISO_LEN + 1];
	int64_t until = clock_mono_ms() + PATIENCE_MS;

	if (k > 0)
		kill_arm(k);
	clock_iso(clock_wall_ms() - HOUR / 2, iso);
	snprintf(plan, sizeof(plan), "\"from\":\"%s\",\"missed\":\"once\"", iso);
	for (size_t i = 0; i < ARRAY_LEN(lives); i++) {
		struct ordering p;

		wall_ahead_ms = lives[i].ahead_ms;
		p = order_kill_open(dir);
		order_kill_use(&p, plan);
		for (int n = 0; n < 3; n++)
			order_kill_step(&p, until);
		while (p.order->now.fired < lives[i].fired || !p.order->now.settled ||
		       p.order->writing)
			order_kill_step(&p, until);
		order_kill_close(&p);
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
	long by = kill_step("AVA_ORDER_KILL_STEP"), k;
	int rv = -1;

	for (k = 1; rv == -1; k += by) {
		const char *dir = kill_fresh();

		rv = kill_child(order_kill_play, dir, k);
		if (rv == -1 && kill_child(order_kill_play, dir, 0) != 0)
			fail_msg("k = %ld: what was left could not be gone on from", k);
		order_kill_check(dir, k);
		unit_rmdir(dir);
	}
	assert_int_equal(rv, 0);
	print_message("killed at each of %ld calls\n", k - by);
	assert_true(k > 60 / by);
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
	long by = 4 * kill_step("AVA_ORDER_KILL_STEP"), k;
	int rv = -1;

	for (k = 1; rv == -1; k += by) {
		const char *dir = kill_fresh();

		rv = kill_child(order_kill_clocks, dir, k);
		if (rv == -1 && kill_child(order_kill_clocks, dir, 0) != 0)
			fail_msg("k = %ld: what was left could not be gone on from", k);
		order_kill_clocks_check(dir, k);
		unit_rmdir(dir);
	}
	assert_int_equal(rv, 0);
	assert_true(k > 60 / by);
}

UNIT_GROUP(.first = kill_in_memory);

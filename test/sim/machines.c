/* The driver. Everything is an event of a machine or of the world: people who ask for runs, faults,
 * and a start behind a death. A machine that has to go down does so between two events, from here;
 * one that stops in an orderly way waits, and the others go on meanwhile. With each effect that
 * leaves a machine the database is asked whether it may. */
#include "machines.h"

#include <assert.h>
#include <ava.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "ava/core.h"
#include "ava/ops.h"
#include "ava/state.h"
#include "base/settings.h"
#include "base/util.h"
#include "cluster/cluster.h"
#include "cluster/member.h"
#include "clockwork.h"
#include "ledger.h"
#include "machines_people.h"
#include "memdisk.h"
#include "pgmap.h"
#include "pgwire.h"
#include "provider/head.h"
#include "service.h"

#define STEPS_MAX 3000000
/* After everything healed: a service may have asked for 9,000 s, which a run waits for by the wall
 * clocks of its machines, and those differ by two hours. */
#define END_MS INT64_C(18000000)
#define DAY_MS INT64_C(86400000)

struct machine {
	struct sim_process process;
	struct ledger ledger;
	struct memdisk *disk, *left; /* left: what a death leaves */
	struct core *core;           /* NULL: it is down */
	struct os_loop *loop;
	unsigned index;
	int64_t born_ms;
	bool stop, leaves, fenced;
	char url[24];
};

static struct machines *world;
static struct machine machines[MACHINES_MAX];
static char work[300];

/* ---- notes */

static const struct machine *machine_at_work(void)
{
	for (unsigned i = 0; i < MACHINES_MAX; i++)
		if (&machines[i].process == sim_at_work())
			return &machines[i];
	return NULL;
}

void machines_note(const char *fmt, ...)
{
	const struct machine *m = machine_at_work();
	char line[500];
	va_list ap;
	size_t was = world->trace.len;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	buf_addf(&world->trace, "%10lld ms  ", (long long)sim.now);
	if (m != NULL)
		buf_addf(&world->trace, "%c%s: ", 'A' + (int)m->index, sim.dead ? " (gone)" : "");
	buf_addf(&world->trace, "%s\n", line);
	for (size_t i = was; i < world->trace.len; i++)
		world->hash = (world->hash ^ (unsigned char)world->trace.data[i]) *
			      UINT64_C(0x100000001b3);
}

void machines_wrong(const char *fmt, ...)
{
	va_list ap;

	if (world->broken[0] != '\0')
		return;
	va_start(ap, fmt);
	vsnprintf(world->broken, sizeof(world->broken), fmt, ap);
	va_end(ap);
	machines_note("WRONG: %s", world->broken);
}

/* ---- effects */

/* May this machine do something for the run now? A machine that does not know yet that the database
 * went back may, until its lease ends. */
static void check_effect(const struct machine *m, const char *run, const char *what)
{
	const char *node = core_service(m->core)->cluster->who.node;
	const struct pgmap_node *n = pgmap_node(node);
	const struct pgmap_run *r = pgmap_run(run);

	if (pgmap.went_back > 0)
		return;
	if (r == NULL)
		machines_wrong("%s: %s before the database knows it", run, what);
	else if (n == NULL || n->lease_until <= pgmap_now_ms())
		machines_wrong("%s: %s by %c behind the end of its lease", run, what,
			       'A' + (int)m->index);
	else if (strcmp(r->node, node) != 0)
		machines_wrong("%s: %s by %c, and another machine has it", run, what,
			       'A' + (int)m->index);
}

static void count_start(const struct machine *m, const char *run, const char *call)
{
	struct machines_start *s = NULL;

	for (size_t i = 0; i < world->nstarts && s == NULL; i++)
		if (strcmp(world->starts[i].run, run) == 0 &&
		    strcmp(world->starts[i].call, call) == 0)
			s = &world->starts[i];
	if (s == NULL && world->nstarts == world->cap_starts) {
		world->cap_starts = world->cap_starts * 2 + 64;
		world->starts = realloc(world->starts, world->cap_starts * sizeof(*world->starts));
		assert(world->starts != NULL);
	}
	if (s == NULL) {
		s = &world->starts[world->nstarts++];
		*s = (struct machines_start){.machine = m->index};
		snprintf(s->run, sizeof(s->run), "%s", run);
		snprintf(s->call, sizeof(s->call), "%s", call);
	}
	if (++s->n == 1)
		return;
	world->twice++;
	if (pgmap.went_back == 0)
		machines_wrong("%s: %s was started by %c and again by %c", run, call,
			       'A' + (int)s->machine, 'A' + (int)m->index);
}

static void machines_tool_done(void *user)
{
	struct tool_call *c = user;

	(void)clockwork_touch();
	c->done(c);
}

static void machines_tool_start(struct tool_call *c)
{
	const struct run *r = c->env->user;
	const struct machine *m = machine_at_work();

	if (clockwork_touch()) {
		machines_note("%s: tool %s starts %s", r->id.text, c->tool->name, c->id);
		if (!(c->tool->flags & TOOL_REPEATABLE)) {
			check_effect(m, r->id.text, "a tool was started");
			count_start(m, r->id.text, c->id);
		}
	}
	c->success = true;
	c->error_class = "";
	buf_addf(&c->out, "%s of %s\n", c->id, r->id.text);
	sim_at(sim.now + (sim_maybe(300) ? 0 : sim_span(1, 5000)), machines_tool_done, c);
}

#define SCHEMA                                                                                     \
	"{\"type\":\"object\",\"properties\":{\"pattern\":{\"type\":\"string\"}},"                 \
	"\"required\":[\"pattern\"],\"additionalProperties\":false}"
static const struct tool machines_acts = {.name = "web_search",
					  .description = "Acts.",
					  .schema = SCHEMA,
					  .start = machines_tool_start};
static const struct tool machines_reads = {.name = "web_fetch",
					   .description = "Reads.",
					   .schema = SCHEMA,
					   .flags = TOOL_REPEATABLE,
					   .start = machines_tool_start};

const struct tool *__real_tool_find(const char *name);
const struct tool *__wrap_tool_find(const char *name);

const struct tool *__wrap_tool_find(const char *name)
{
	if (strcmp(name, machines_acts.name) == 0)
		return &machines_acts;
	return strcmp(name, machines_reads.name) == 0 ? &machines_reads : __real_tool_find(name);
}

static const char *const machine_plans[] = {
	"turns=2 calls=2 tool=web_search", "turns=4 calls=1 tool=web_search",
	"turns=2 calls=3 tool=web_fetch",  "turns=8 calls=1 tool=web_search",
	"turns=1 calls=1 tool=web_fetch",
};

/* The run of a request to the model is the one on this machine with that task. */
static void model_heard(const char *body, size_t len)
{
	const struct machine *m = machine_at_work();
	const char *at = memmem(body, len, "Work on number ", 15);
	char task[24];

	if (at == NULL || m == NULL || m->core == NULL)
		return;
	world->budget.held = 0;
	snprintf(task, sizeof(task), "%.17s", at);
	LIST_EACH (&m->core->sup.live, n, tmp) {
		const struct run *r = LIST_ENTRY(n, struct run, node);

		if (strstr(r->spec->task, task) == NULL)
			continue;
		machines_note("%s: a model is called", r->id.text);
		check_effect(m, r->id.text, "a model was called");
		world->budget.held = r->call.hold.held;
	}
}

/* A day costs no more than its budget, and that by which estimates were wrong. A reservation of the
 * day before is counted on the day that it is settled on. */
static void model_billed(struct service_bill *b)
{
	int64_t days = MAX(pgmap.now.shared.nbudgets, 1u), cap = world->budget.cents * 10000 * days;

	b->kept = MIN(b->cost_microusd, world->budget.held);
	world->budget.spent += b->kept;
	machines_note("which costs %lld, held %lld, spent %lld", (long long)b->cost_microusd,
		      (long long)world->budget.held, (long long)world->budget.spent);
	if (cap > 0 && world->budget.spent > cap && pgmap.went_back == 0)
		machines_wrong("%lld were spent of %lld", (long long)world->budget.spent,
			       (long long)cap);
}

/* An estimate is counted for it, but by a machine that lost its lease: then what was held is. */
static void model_broken(struct service_bill *b)
{
	const struct machine *m = machine_at_work();

	if (m != NULL && m->fenced)
		return;
	world->budget.spent -= b->kept;
	b->kept = 0;
}

/* ---- a machine */

/* Heads of requests are kept in memory, which machines do not share. */
static bool heads_kept;

int __real_head_keep(const char *text, size_t len, char name[HASH_HEX_LEN + 1],
		     struct hash_sha256 *prefix);
int __wrap_head_keep(const char *text, size_t len, char name[HASH_HEX_LEN + 1],
		     struct hash_sha256 *prefix);
int __real_head_add(struct buf *out, int root_fd, struct slice name, struct hash_sha256 *prefix,
		    struct ava_error *err);
int __wrap_head_add(struct buf *out, int root_fd, struct slice name, struct hash_sha256 *prefix,
		    struct ava_error *err);

int __wrap_head_keep(const char *text, size_t len, char name[HASH_HEX_LEN + 1],
		     struct hash_sha256 *prefix)
{
	heads_kept = true;
	return __real_head_keep(text, len, name, prefix);
}

int __wrap_head_add(struct buf *out, int root_fd, struct slice name, struct hash_sha256 *prefix,
		    struct ava_error *err)
{
	heads_kept = true;
	return __real_head_add(out, root_fd, name, prefix, err);
}

static void heads_forget(void)
{
	static unsigned salt;

	for (int i = 0; i < 64 && heads_kept; i++) {
		char text[16], name[HASH_HEX_LEN + 1];
		struct hash_sha256 prefix;

		snprintf(text, sizeof(text), "%u", ++salt);
		(void)__real_head_keep(text, strlen(text), name, &prefix);
	}
	heads_kept = false;
}

static void machine_entered(struct sim_process *p)
{
	struct machine *m = CONTAINER_OF(p, struct machine, process);
	static unsigned newest;

	if (newest != m->index)
		heads_forget();
	newest = m->index;
	memdisk_use(m->disk);
	ledger_use(&m->ledger);
}

/* While it is at work. */
static void machine_dies(void)
{
	struct machine *m = CONTAINER_OF(sim_at_work(), struct machine, process);

	machines_note("dies");
	m->left = ledger_left();
}

static void machine_kill(struct machine *m)
{
	struct sim_process *was = sim_enter(&m->process);

	if (m->core != NULL && !sim.dead) {
		machine_dies();
		sim.dead = true;
	}
	(void)sim_enter(was);
}

static void machine_log(const char *line, void *user)
{
	(void)user;
	machines_note("avad.log: %s", line);
}

static void machine_fenced(const char *why, void *user)
{
	struct machine *m = user;

	(void)why;
	m->stop = m->fenced = true;
}

static void machine_born(void *user)
{
	struct machine *m = user;
	struct settings s;
	struct core_options o = {.root = "/",
				 .settings = &s,
				 .log = machine_log,
				 .log_user = m,
				 .cluster = m->url,
				 .fenced = machine_fenced};
	struct ava_error err = {0};
	struct sim_process *was;

	if (world->over)
		return;
	was = sim_enter(&m->process);
	settings_defaults(&s);
	s.disk_free_min_mb = 0;
	s.disk_ballast_mb = 0;
	s.runs_max = 1 + (int64_t)((world->seed + m->index) % 4);
	s.seals_every_s = 3600;
	s.budget_day_cents = world->budget.cents;
	sim.dead = false;
	sim.left = !world->healed && sim_maybe(250) ? sim_span(0, 300) : -1;
	sim.touches = 0;
	sim.mono = sim_span(0, 1000000000);
	sim.wall = INT64_C(1795219200000) + sim_span(-3600000, 3600000);
	m->stop = m->leaves = m->fenced = false;
	m->born_ms = sim.now;
	world->births++;
	ledger_go_on(m->disk);
	m->loop = o.loop = os_loop_new(NULL);
	if (core_open(&m->core, &o, &err) != 0) {
		machines_wrong("core_open: %s", err.text);
		m->core = NULL;
		os_loop_free(m->loop);
	} else {
		machines_note("starts as %.8s", core_service(m->core)->cluster->who.node);
	}
	(void)sim_enter(was);
}

static void disk_new(struct machine *m)
{
	struct sim_process *was = sim_enter(&m->process);

	if (m->disk != NULL)
		memdisk_free(m->disk);
	m->disk = memdisk_new();
	memdisk_power_cut(m->disk, memdisk_all, NULL);
	memdisk_use(m->disk);
	ledger_open(m->disk);
	(void)sim_enter(was);
}

/* A machine that nobody needs any more: no run of the database depends on its disk. */
static bool disk_is_spare(const struct machine *m)
{
	size_t len;
	const char *file = memdisk_read(m->disk, "/cluster.json", &len);

	for (unsigned i = 0; i < world->nruns; i++)
		if (world->runs[i].asked == m->index && world->runs[i].here)
			return false;
	if (world->async)
		return false; /* it may have what the database loses */
	if (file == NULL)
		return true;
	for (unsigned i = 0; i < pgmap.now.nruns; i++) {
		const struct pgmap_run *r = &pgmap.now.runs[i];

		if (memmem(file, len, r->node, strlen(r->node)) != NULL && r->state != 9 &&
		    strcmp(r->place, "anywhere") != 0)
			return false;
	}
	return true;
}

/* The disk of a machine that is down is lost, or it left: it comes back as another one. What was
 * asked of it and not answered is asked for anew, and may be done twice. */
static void machine_replaced(struct machine *m)
{
	disk_new(m);
	for (unsigned i = 0; i < world->nruns; i++) {
		struct machines_run *r = &world->runs[i];

		if (r->asked != m->index || r->told)
			continue;
		r->asked = (unsigned)sim_span(0, world->nmachines - 1);
		r->anew++;
	}
}

static bool disk_has_result(struct memdisk *disk, const char *run)
{
	char path[80];
	size_t len;

	snprintf(path, sizeof(path), "/runs/%s/result.json", run);
	return memdisk_read(disk, path, &len) != NULL;
}

/* Has it met the database as it is now, and nothing to send? */
static bool machine_is_through(const struct machine *m)
{
	const struct cluster *c = core_service(m->core)->cluster;
	char timeline[12];
	unsigned runs;

	(void)cluster_lag(c, &runs);
	snprintf(timeline, sizeof(timeline), ".%08X", pgmap.timeline);
	return c->settled && runs == 0 && strstr(c->who.timeline, timeline) != NULL;
}

static void machine_down(struct machine *m)
{
	bool through = machine_is_through(m);
	struct sim_process *was = sim_enter(&m->process);
	bool killed, gone;
	size_t len;

	machines_note("goes down");
	core_close(m->core);
	people_leave(m->index);
	killed = sim.dead; /* before, or while it stopped */
	os_loop_free(m->loop);
	m->core = NULL;
	m->loop = NULL;
	sim.dead = false;
	(void)sim_enter(was);
	memdisk_use(NULL);
	if (killed) {
		memdisk_free(m->disk);
		m->disk = m->left;
		m->left = NULL;
		m->ledger.disk = m->disk;
	} else {
		memdisk_kill(m->disk);
	}
	memdisk_power_cut(m->disk, memdisk_all, NULL);
	for (unsigned i = 0; i < world->nruns; i++) {
		struct machines_run *r = &world->runs[i];

		r->waits = r->waits && r->asked != m->index;
		r->late = r->late || (r->told && disk_has_result(m->disk, r->id) &&
				      (pgmap_run(r->id) == NULL || pgmap_run(r->id)->state != 9));
		/* An end that came after the database lost the run stands on this disk, too. */
		r->excused = r->excused ||
			     (r->told && !through && pgmap_run(r->id) == NULL &&
			      (r->lost_by == (int)m->index || disk_has_result(m->disk, r->id)));
	}
	world->kills += killed;
	world->stops += !killed && !m->fenced;
	world->fences += !killed && m->fenced;
	gone = m->leaves && memdisk_read(m->disk, "/cluster.json", &len) == NULL;
	machines_note("%c is down: %s", 'A' + (int)m->index,
		      killed      ? "killed"
		      : gone      ? "left"
		      : m->fenced ? "fenced"
				  : "stopped");
	world->leaves += gone;
	if (gone) {
		world->lossy = world->lossy || world->async;
		machine_replaced(m);
	} else if (killed && !world->healed && sim_maybe(100) && disk_is_spare(m)) {
		machines_note("%c has lost its disk", 'A' + (int)m->index);
		world->lost_disks++;
		machine_replaced(m);
	}
	(void)sim_at(sim.now + (world->healed || m->fenced ? 100
				: sim_maybe(700)           ? sim_span(0, 5000)
							   : sim_span(0, 90000)),
		     machine_born, m);
}

/* ---- people who ask */

static void run_told(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	struct machines_run *r = user;

	if (sim.dead)
		return;
	machines_note("number %u: %s", (unsigned)(r - world->runs), rv == 0 ? s->id : err->text);
	r->waits = false;
	if (rv != 0)
		return;
	if (r->told && strcmp(r->id, s->id) != 0)
		machines_wrong("one request is two runs: %s and %s", r->id, s->id);
	r->told = true;
	snprintf(r->id, sizeof(r->id), "%s", s->id);
}

struct core *machines_core(unsigned machine)
{
	const struct machine *m = &machines[machine];

	return m->process.dead || m->stop || m->process.frozen_until > sim.now ? NULL : m->core;
}

void machines_within(unsigned machine, void (*run)(struct core *core, void *user), void *user)
{
	struct machine *m = &machines[machine];
	struct sim_process *was = sim_enter(&m->process);

	run(m->core, user);
	os_loop_step(m->loop, 0);
	(void)sim_enter(was);
}

static void run_asked(struct machine *m, struct machines_run *r)
{
	unsigned i = (unsigned)(r - world->runs);
	static const char numbers[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char task[200], request[32];
	struct op_spawn s = {.role = "researcher",
			     .task = task,
			     .cwd = r->here ? work : "",
			     .model = "anthropic/claude-haiku-4-5",
			     .origin = "test",
			     .session_id = "",
			     .user_id = "ben",
			     .request_id = request,
			     .timeout_ms = 600000000,
			     .max_cost_microusd = 100000000,
			     .max_tokens = 100000000,
			     .max_iterations = AVA_DEFAULT,
			     .extended_thinking = -1};
	struct sim_process *was = sim_enter(&m->process);

	/* A service knows a conversation by how it begins. */
	snprintf(task, sizeof(task), "Work on number %c. [[mock %s]]",
		 numbers[MIN(i + r->anew * MACHINES_RUNS, sizeof(numbers) - 2)],
		 machine_plans[r->plan]);
	snprintf(request, sizeof(request), "r-%u", i);
	machines_note("number %u is asked for", i);
	r->waits = true;
	ops_spawn(m->core, &s, run_told, r);
	os_loop_step(m->loop, 0);
	(void)sim_enter(was);
}

static bool all_told(void)
{
	for (unsigned i = 0; i < world->nruns; i++)
		if (!world->runs[i].told)
			return false;
	return true;
}

static void people_ask(void *user)
{
	(void)user;
	for (unsigned i = 0; i < world->nruns; i++) {
		struct machines_run *r = &world->runs[i];
		struct machine *m = &machines[r->asked];

		if (!r->told && !r->waits && m->core != NULL && !m->process.dead && !m->stop &&
		    m->process.frozen_until <= sim.now && sim_maybe(400))
			run_asked(m, r);
	}
	if (!all_told() && !world->over)
		(void)sim_at(sim.now + sim_span(0, 5000), people_ask, NULL);
}

/* A person frees the runs that were held, as doc/CLUSTER.md says. */
static void people_free(void *user)
{
	(void)user;
	for (unsigned i = 0; i < pgmap.now.nruns; i++) {
		struct pgmap_run *r = &pgmap.now.runs[i];

		if (r->state != 8)
			continue;
		machines_note("%s is freed", r->id);
		world->freed++;
		r->state = r->takes = 0;
	}
	if (!world->over)
		(void)sim_at(sim.now + 120000, people_free, NULL);
}

/* ---- faults */

static void machine_has_left(int rv, unsigned runs, const struct ava_error *err, void *user)
{
	struct machine *m = user;

	if (sim.dead)
		return;
	machines_note("leaves: %s (%u runs)", rv == 0 ? "yes" : err->text, runs);
	m->stop = m->leaves = rv == 0 || m->stop;
}

static void machine_leave(struct machine *m)
{
	struct sim_process *was = sim_enter(&m->process);
	struct ava_error err;

	if (cluster_leave(core_service(m->core)->cluster, machine_has_left, m, &err) != 0)
		machines_note("does not leave: %s", err.text);
	os_loop_step(m->loop, 0);
	(void)sim_enter(was);
}

static int64_t some_time(void)
{
	return sim_maybe(500) ? sim_span(0, 5000) : sim_span(0, 60000);
}

static void database_lags(void *user)
{
	(void)user;
	pgmap_lag();
	machines_note("the standby stops to follow");
}

/* Does the machine know the end of the run, and go on? Of an end that the database never had, it
 * says so itself. */
static bool machine_remembers(const struct machine *m, const struct pgmap_run *row)
{
	const struct cluster *c = m->core != NULL ? core_service(m->core)->cluster : NULL;

	if (c == NULL || m->process.dead || m->stop)
		return false;
	if (row->state != 9)
		return strmap_get(&c->by_id, row->id) != NULL;
	return m->born_ms <= row->ended_ms && strcmp(c->who.node, row->node) == 0;
}

/* The end of a run is sent again, if the database loses all of the run, by the machine that wrote
 * it, while that does not start anew. */
static void ends_remember(struct machines_run *r)
{
	const struct pgmap_run *row = r->told ? pgmap_run(r->id) : NULL;

	if (row == NULL || (row->state != 9 && !machines_have_result(r->id)))
		return;
	r->lost_by = -1;
	r->excused = true;
	for (unsigned i = 0; i < world->nmachines; i++) {
		if (r->late || !machine_remembers(&machines[i], row))
			continue;
		r->lost_by = (int)i;
		r->excused = false;
	}
}

static void database_fails_over(void *user)
{
	(void)user;
	if (world->healed)
		return;
	for (unsigned i = 0; i < world->nruns; i++)
		ends_remember(&world->runs[i]);
	pgmap_fail_over();
	machines_note("the standby takes over");
	pgwire_away(sim.now + sim_span(0, 3000));
}

static void database_fault(void)
{
	int64_t away = some_time();

	world->aways++;
	if (world->async && sim_maybe(600)) {
		database_lags(NULL);
		(void)sim_at(sim.now + (sim_maybe(800) ? sim_span(0, 5000) : sim_span(0, 40000)),
			     database_fails_over, NULL);
		return;
	}
	machines_note("the database is away for %lld ms", (long long)away);
	pgwire_away(sim.now + away);
}

static void machine_fault(struct machine *m)
{
	int64_t ms = some_time();

	switch (sim_span(0, 9)) {
	case 0:
	case 1:
	case 2:
		machine_kill(m);
		break;
	case 3:
	case 4:
		machines_note("%c freezes for %lld ms", 'A' + (int)m->index, (long long)ms);
		m->process.frozen_until = sim.now + ms;
		world->freezes++;
		break;
	case 5:
	case 6:
	case 7: {
		bool answers = sim_maybe(300);

		machines_note("%c is cut off for %lld ms%s", 'A' + (int)m->index, (long long)ms,
			      answers ? ", answers only" : "");
		pgwire_cut(m->index, sim.now + ms, answers);
		world->cuts++;
		break;
	}
	case 8:
		m->stop = true;
		break;
	default:
		if (sim_maybe(500))
			machine_leave(m);
		else
			m->process.left = sim_span(0, 40);
	}
}

static void fault(void *user)
{
	struct machine *m = &machines[sim_span(0, world->nmachines - 1)];

	(void)user;
	if (world->healed || world->over)
		return;
	if (sim_maybe(200))
		database_fault();
	else if (m->core != NULL && !m->process.dead && !m->stop && &m->process != sim_at_work() &&
		 m->process.frozen_until <= sim.now)
		machine_fault(m);
	(void)sim_at(sim.now + (sim_maybe(500) ? sim_span(0, 4000) : sim_span(0, 40000)), fault,
		     NULL);
}

static void heal(void *user)
{
	(void)user;
	machines_note("everything heals");
	world->healed = true;
	pgwire_heal();
	service_temper.refuse = service_temper.cut = 0;
	for (unsigned i = 0; i < world->nmachines; i++) {
		machines[i].process.frozen_until = 0;
		machines[i].process.left = -1;
	}
	people_free(NULL);
}

/* ---- a world */

static void machines_draw(struct machines *w)
{
	bool hard = sim_maybe(150);

	w->nmachines = (unsigned)sim_span(2, MACHINES_MAX);
	w->nruns = (unsigned)sim_span(1, MACHINES_RUNS);
	w->async = sim_maybe(300);
	w->heals_at = sim_span(20000, sim_maybe(700) ? 180000 : 600000);
	ledger_temper = (struct ledger_temper){.usual_ms = sim_span(0, 10)};
	ledger_temper.slow = sim_maybe(200) ? 20 : 0;
	ledger_temper.failing = sim_maybe(150) ? 30 : 0;
	pgwire_temper = (struct pgwire_temper){.usual_ms = sim_span(0, 30)};
	pgwire_temper.slow = sim_maybe(300) ? 30 : 0;
	service_temper = (struct service_temper){.edits = w->async, .heavy = 300};
	service_temper.refuse = hard ? 100 : 0;
	service_temper.cut = hard ? 50 : 0;
	for (unsigned i = 0; i < w->nruns; i++)
		w->runs[i] = (struct machines_run){
			.plan = (int)sim_span(0, (int64_t)ARRAY_LEN(machine_plans) - 1),
			.here = sim_maybe(150),
			.lost_by = -1,
			.asked = (unsigned)sim_span(0, w->nmachines - 1)};
	if (w->seed % 2 == 0) { /* other seeds are the worlds that they were without budgets */
		w->budget.cents = sim_maybe(500) ? sim_span(1, 20) : sim_span(20, 200);
		service_temper.heavy = 20000;
	}
}

/* One that is bound to a machine that left before the database went back waits for ever. */
static bool waits_for_nobody(const struct pgmap_run *r)
{
	return world->lossy && strcmp(r->place, "anywhere") != 0;
}

static bool all_ended(void)
{
	for (unsigned i = 0; i < pgmap.now.nruns; i++)
		if (pgmap.now.runs[i].state != 9 && !waits_for_nobody(&pgmap.now.runs[i]))
			return false;
	/* After a minute each machine has sent what the database may have lost. */
	return world->healed && sim.now >= world->heals_at + 60000 && all_told() &&
	       people_have_all();
}

static void check_time(const struct machines *w)
{
	if (!w->healed || sim.now < w->heals_at + END_MS)
		return;
	if (!all_told())
		machines_wrong("not all runs were accepted");
	for (unsigned i = 0; i < pgmap.now.nruns; i++) {
		const struct pgmap_run *r = &pgmap.now.runs[i];

		if (r->state != 9 && !waits_for_nobody(r))
			machines_wrong("%s does not end: state %lld, of %s, %lld takes", r->id,
				       (long long)r->state, r->node, (long long)r->takes);
	}
	if (!people_have_all())
		machines_wrong("not all results were given");
}

static void machines_begin(struct machines *w, uint64_t seed)
{
	*w = (struct machines){.seed = seed, .hash = UINT64_C(0xcbf29ce484222325)};
	world = w;
	buf_init(&w->trace, 256u << 20);
	clockwork_begin(seed);
	sim.died = machine_dies;
	pgmap_begin();
	pgmap.wrong = machines_wrong;
	pgwire_begin();
	service_begin();
	service_heard = model_heard;
	service_billed = model_billed;
	service_broken = model_broken;
	machines_draw(w);
	w->people = seed >= MACHINES_PEOPLE;
	people_begin(w);
	for (unsigned i = 0; i < w->nmachines; i++) {
		struct machine *m = &machines[i];

		heads_forget();
		*m = (struct machine){.index = i, .process.entered = machine_entered};
		snprintf(m->url, sizeof(m->url), "machine=%u", i);
		disk_new(m);
		(void)sim_at(sim_span(0, 2000), machine_born, m);
	}
	(void)sim_at(sim_span(0, 5000), people_ask, NULL);
	(void)sim_at(sim_span(0, 20000), fault, NULL);
	(void)sim_at(w->heals_at, heal, NULL);
}

/* All stop, for good, and what is on the way arrives. */
static void machines_stop(struct machines *w)
{
	w->over = true;
	for (unsigned i = 0; i < w->nmachines; i++) {
		struct machine *m = &machines[i];

		if (m->core == NULL)
			continue;
		if (w->broken[0] != '\0')
			machine_kill(m);
		machine_down(m);
	}
	while (sim_next() != INT64_MAX)
		sim_step();
}

void machines_play(struct machines *w, uint64_t seed)
{
	unsigned steps = 0;

	machines_begin(w, seed);
	while (w->broken[0] == '\0' && !all_ended()) {
		sim_step();
		for (unsigned i = 0; i < w->nmachines && w->broken[0] == '\0'; i++)
			if (machines[i].core != NULL &&
			    (machines[i].process.dead || machines[i].stop))
				machine_down(&machines[i]);
		check_time(w);
		if (++steps > STEPS_MAX)
			machines_wrong("it goes on for ever");
	}
	machines_stop(w);
	if (w->broken[0] == '\0' && service_refused()[0] != '\0')
		machines_wrong("%s", service_refused());
	if (w->broken[0] == '\0')
		machines_judge(w);
	service_heard = NULL;
	service_billed = NULL;
	service_broken = NULL;
}

void machines_end(struct machines *w)
{
	for (unsigned i = 0; i < w->nmachines; i++)
		memdisk_free(machines[i].disk);
	ledger_use(NULL);
	pgmap_end();
	service_end();
	free(w->starts);
	buf_fini(&w->trace);
}

static void machines_broken(const struct ava_finding *f, void *user)
{
	if (f->kind == AVA_BROKEN)
		machines_wrong("machine %u: %s: %s", *(const unsigned *)user, f->path, f->what);
}

/* Each disk holds what was sealed there, whoever has the runs by now. */
void machines_verify(void)
{
	for (unsigned i = 0; i < world->nmachines; i++) {
		const struct ava_verify o = {
			.root = "/", .finding = machines_broken, .user = &i, .threads = 1};
		struct ava_verified report;
		struct ava_error err = {0};

		memdisk_use(machines[i].disk);
		if (ava_log_verify(&o, &report, &err) != 0)
			machines_wrong("machine %u: %s", i, err.text);
		memdisk_use(NULL);
	}
}

bool machines_have_result(const char *run)
{
	for (unsigned i = 0; i < world->nmachines; i++)
		if (disk_has_result(machines[i].disk, run))
			return true;
	return false;
}

void machines_set_up(const char *folder)
{
	snprintf(work, sizeof(work), "%s", folder);
}

/* The driver. Two kinds of things are due: those of the process, which go with it,
 * and those of the world (people, clocks), which stay. The earlier one happens; after
 * each the driver looks whether the process is still there. When it is gone, what is
 * left of its memory is torn down without effect, and the next life begins on the
 * disk that was taken at that moment. */
#include "lives.h"

#include <assert.h>
#include <ava.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "ava/proposal.h"
#include "ava/core.h"
#include "ava/ops.h"
#include "base/settings.h"
#include "base/util.h"
#include "clockwork.h"
#include "ledger.h"
#include "memdisk.h"
#include "os/loop.h"
#include "service.h"
#include "subagent/person.h"
#include "subagent/run.h"
#include "runs_now.h"
#include "standing.h"

#define STEPS_MAX 400000
#define LOOKS_MAX 300
#define DAY_MS    INT64_C(86400000)

static struct lives *now; /* the one that is played */
static char work[300];
static struct memdisk *left; /* of the process that died */
static struct core *core;

void lives_note(const char *fmt, ...)
{
	char line[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	buf_addf(&now->trace, "%10lld ms  %s%s\n", (long long)sim.now, sim.dead ? "(gone) " : "",
		 line);
}

bool lives_wrong(struct lives *l, const char *fmt, ...)
{
	va_list ap;

	if (l->broken[0] != '\0')
		return false;
	va_start(ap, fmt);
	vsnprintf(l->broken, sizeof(l->broken), fmt, ap);
	va_end(ap);
	return false;
}

struct lives_run *lives_run_of(struct lives *l, int number)
{
	if (number >= LIVES_OF_ORDER && number < LIVES_OF_ORDER + (int)l->norders)
		return &l->orders[number - LIVES_OF_ORDER].run;
	return number >= 0 && number < (int)l->nruns ? &l->runs[number] : NULL;
}

/* ---- tools */

static struct lives_start *start_of(const char *run, const char *call, bool repeatable)
{
	struct lives *l = now;
	struct lives_start *s;

	for (size_t i = 0; i < l->nstarts; i++)
		if (strcmp(l->starts[i].run, run) == 0 && strcmp(l->starts[i].call, call) == 0)
			return &l->starts[i];
	if (l->nstarts == l->cap_starts) {
		l->cap_starts = l->cap_starts * 2 + 64;
		l->starts = realloc(l->starts, l->cap_starts * sizeof(*l->starts));
		assert(l->starts != NULL);
	}
	s = &l->starts[l->nstarts++];
	*s = (struct lives_start){.repeatable = repeatable};
	snprintf(s->run, sizeof(s->run), "%s", run);
	snprintf(s->call, sizeof(s->call), "%s", call);
	return s;
}

static void tool_done(void *user)
{
	struct tool_call *c = user;

	(void)clockwork_touch();
	c->done(c);
}

static void tool_start(struct tool_call *c)
{
	const struct run *r = c->env->user;
	int lines =
		(int)(c->id[1] * 7 + c->id[3]) % 5 == 0 ? 300 : 3; /* more than an event shows */

	if (clockwork_touch()) {
		start_of(r->id.text, c->id, c->tool->flags & TOOL_REPEATABLE)->n++;
		lives_note("%s: tool %s starts %s", r->id.text, c->tool->name, c->id);
	}
	c->success = true;
	c->error_class = "";
	buf_addf(&c->out, "%s of %s\n", c->id, r->id.text);
	for (int i = 0; i < lines; i++)
		buf_addf(&c->out, "line %d of what was found\n", i);
	sim_at(sim.now + (sim_maybe(300) ? 0 : sim_span(1, 5000)), tool_done, c);
}

#define SCHEMA                                                                                     \
	"{\"type\":\"object\",\"properties\":{\"pattern\":{\"type\":\"string\"}},"                 \
	"\"required\":[\"pattern\"],\"additionalProperties\":false}"
static const struct tool acts = {
	.name = "search_and_read", .description = "Acts.", .schema = SCHEMA, .start = tool_start};
static const struct tool reads = {.name = "read_file",
				  .description = "Reads.",
				  .schema = SCHEMA,
				  .flags = TOOL_REPEATABLE,
				  .start = tool_start};

/* The command of a check, which some results do not pass. */
static void check_start(struct tool_call *c)
{
	const struct run *r = c->env->user;

	c->success = true;
	c->error_class = "";
	c->exit = sim_maybe(450);
	if (sim_maybe(60)) {
		c->success = false;
		c->error_class = "sandbox";
		c->exit = -1;
	}
	(void)clockwork_touch();
	buf_addf(&c->out, "exit %d\n", c->exit);
	lives_note("%s: its check: %d", r->id.text, c->exit);
	sim_at(sim.now + sim_span(1, 20000), tool_done, c);
}

const struct tool __wrap_tool_check;
const struct tool __wrap_tool_check = {
	.name = "check", .description = "Checks.", .schema = SCHEMA, .start = check_start};

const struct tool *__real_tool_find(const char *name);
const struct tool *__wrap_tool_find(const char *name);

const struct tool *__wrap_tool_find(const char *name)
{
	if (strcmp(name, acts.name) == 0)
		return &acts;
	return strcmp(name, reads.name) == 0 ? &reads : __real_tool_find(name);
}

/* ---- what is drawn */

static const char *const plans[LIVES_KINDS] = {
	[LIVES_ACTS] = "turns=2 calls=2 tool=search_and_read",
	[LIVES_CHAINS] = "turns=4 calls=1 tool=search_and_read",
	[LIVES_READS] = "turns=2 calls=3 tool=read_file",
	[LIVES_READS_ON] = "turns=8 calls=2 window=9000 tool=read_file",
	[LIVES_ASKS] = "turns=1 calls=1 tool=ask_person args={\"question\":\"Shall_I_go_on?\"}",
};

static const char mixed[] =
	"{\"text\":\"I "
	"look.\",\"tool_calls\":[{\"name\":\"read_file\",\"args\":{\"pattern\":\"a\"}},"
	"{\"name\":\"search_and_read\",\"args\":{\"pattern\":\"b\"}},{\"name\":\"ask_person\","
	"\"args\":{\"question\":\"Which?\",\"default\":\"this\",\"timeout\":600}},"
	"{\"name\":\"search_and_read\",\"args\":{\"pattern\":\"c\"}}]}\n"
	"{\"tool_calls\":[{\"name\":\"search_and_read\",\"args\":{\"pattern\":\"d\"}}]}\n"
	"{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"summary\":\"done\","
	"\"confidence\":"
	"0.5}}]}\n";
static const char words[] = "{\"text\":\"I think about it.\"}\n"
			    "{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"summary\":"
			    "\"done\",\"confidence\":"
			    "0.5}}]}\n";

static void draw_limits(struct lives_run *r)
{
	r->cost_microusd = 100000000;
	r->time_ms = 600000000;
	r->tokens = 100000000;
	r->iterations = AVA_DEFAULT;
	r->tight = r->kind == LIVES_READS_ON || sim_maybe(300);
	if (!r->tight || r->kind == LIVES_READS_ON)
		return;
	r->ask_limit = sim_maybe(500);
	switch (sim_span(0, 3)) {
	case 0:
		r->cost_microusd = sim_span(20000, 300000);
		break;
	case 1:
		r->time_ms = sim_span(2000, 60000);
		break;
	case 2:
		r->tokens = sim_span(3000, 60000);
		break;
	default:
		r->iterations = sim_span(1, 4);
	}
}

/* Each run of the group may wait for some of those before it, or of those behind it. */
static void draw_after(struct lives *l)
{
	bool backwards = sim_maybe(300);

	for (unsigned i = l->nruns - l->ngrouped; i < l->nruns; i++)
		for (unsigned k = l->nruns - l->ngrouped; k < l->nruns; k++)
			if ((backwards ? k > i : k < i) && sim_maybe(400))
				l->runs[i].after |= 1u << k;
}

static void draw(struct lives *l)
{
	bool hard = sim_maybe(300), edits = sim_maybe(150); /* one draw a sequence point */

	ledger_temper = (struct ledger_temper){0};
	ledger_temper.usual_ms = sim_maybe(100) ? 2000 : 10;
	ledger_temper.usual_ms = sim_span(0, ledger_temper.usual_ms);
	ledger_temper.slow = sim_maybe(300) ? 20 : 0;
	ledger_temper.failing = sim_maybe(200) ? 50 : 0;
	service_temper = (struct service_temper){.edits = edits};
	service_temper.refuse = hard ? 300 : sim_maybe(500) ? 30 : 0;
	service_temper.cut = hard ? 200 : sim_maybe(300) ? 20 : 0;
	service_temper.slow = sim_maybe(300) ? 100 : 0;
	service_temper.heavy = sim_maybe(500) ? 300 : 20000;
	l->rough = hard;
	l->nruns = (unsigned)sim_span(1, LIVES_RUNS);
	l->ngrouped = l->nruns >= 2 && sim_maybe(600) ? (unsigned)sim_span(2, l->nruns) : 0;
	for (unsigned i = 0; i < l->nruns; i++) {
		struct lives_run *r = &l->runs[i];

		r->kind =
			(enum lives_kind)sim_span(0, edits ? LIVES_KINDS - 1 : LIVES_READS_ON - 1);
		r->grouped = i >= l->nruns - l->ngrouped;
		r->approval = sim_maybe(150);
		r->check = -1;
		draw_limits(r);
	}
	if (l->ngrouped > 0) {
		l->chain = sim_maybe(300);
		l->share = sim_maybe(300);
		l->group_cost = sim_maybe(500) ? sim_span(50000, 1000000) : 0;
		l->group_time = sim_maybe(200) ? sim_span(10000, 200000) : 0;
	}
	l->day_cents = sim_maybe(300) ? sim_span(5, 200) : 0;
	if (l->ngrouped > 0 && !l->chain && sim_maybe(500))
		draw_after(l);
	for (unsigned i = l->nruns - l->ngrouped + 1; l->chain && i < l->nruns; i++)
		l->runs[i].after = 1u << (i - 1);
	if (l->seed >= LIVES_STANDING)
		standing_draw(l);
}

/* ---- asking for runs */

static const char *const names[LIVES_RUNS] = {"a", "b", "c", "d", "e", "f", "g", "h"};

struct asking { /* strings of one request */
	char task[400], cwd[300];
	const char *ask_before[1], *after[LIVES_RUNS];
};

static struct op_spawn spawn_of(const struct lives_run *r, unsigned number, struct asking *a)
{
	static const char *const tags[] = {"nightly"};
	const char *script = r->kind == LIVES_MIXES ? "mixed" : "words";

	if (plans[r->kind] != NULL)
		snprintf(a->task, sizeof(a->task), "Work on number %u. [[mock %s]]", number,
			 plans[r->kind]);
	else
		snprintf(a->task, sizeof(a->task), "Work on number %u. [[mock script=%s/%s]]",
			 number, work, script);
	snprintf(a->cwd, sizeof(a->cwd), "%s", work);
	a->ask_before[0] = acts.name;
	return (struct op_spawn){.role = r->check >= 0 ? "code_reviewer" : "researcher",
				 .task = a->task,
				 .cwd = a->cwd,
				 .model = "anthropic/claude-haiku-4-5",
				 .origin = "test",
				 .session_id = "",
				 .user_id = "ben",
				 .timeout_ms = r->time_ms,
				 .max_cost_microusd = r->cost_microusd,
				 .max_tokens = r->tokens,
				 .max_iterations = r->iterations,
				 .extended_thinking = -1,
				 .check = r->check >= 0 ? "make test" : NULL,
				 .check_rounds = r->check >= 0 ? r->check : AVA_DEFAULT,
				 .ask_before = a->ask_before,
				 .nask_before = r->approval,
				 .tags = tags,
				 .ntags = r->tagged,
				 .on_limit = r->ask_limit ? "ask" : NULL};
}

static struct op_spawn group_spawn_of(struct lives *l, unsigned i, struct asking *a)
{
	struct op_spawn s = spawn_of(&l->runs[i], i, a);

	for (unsigned k = 0; !l->chain && k < l->nruns; k++)
		if (l->runs[i].after & 1u << k)
			a->after[s.nafter++] = names[k];
	s.id = names[i];
	s.after = a->after;
	return s;
}

static void on_spawn(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	struct lives_run *r = user;

	if (sim.dead)
		return;
	lives_note("number %u: %s", (unsigned)(r - now->runs), rv == 0 ? s->id : err->text);
	if (rv != 0) { /* the disk: ask again */
		r->asked = false;
		return;
	}
	if (r->told && strcmp(r->id, s->id) != 0)
		lives_wrong(now, "one request is two runs: %s and %s", r->id, s->id);
	r->told = true;
	snprintf(r->id, sizeof(r->id), "%s", s->id);
}

static void on_group(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
		     void *user)
{
	struct lives *l = user;

	if (sim.dead)
		return;
	lives_note("group: %s", rv == 0 ? p->run : err->text);
	if (rv != 0) {
		l->runs[l->nruns - 1].asked = false;
		return;
	}
	if (p->step != STEP_CONFIRMED)
		lives_wrong(l, "a group whose policy asks nobody is not confirmed");
	l->group_told = true;
}

static void ask_group(struct lives *l)
{
	struct asking strings[LIVES_RUNS];
	struct op_spawn runs[LIVES_RUNS];
	struct op_group g = {
		.runs = runs,
		.nruns = l->ngrouped,
		.max_cost_microusd = l->group_cost > 0 ? l->group_cost : AVA_DEFAULT,
		.timeout_ms = l->group_time > 0 ? l->group_time : AVA_DEFAULT,
		.chain = l->chain,
		.share = l->share,
		.session_id = "",
		.request_id = "r-group",
		.user_id = "ben",
		.origin = "test",
		.cwd = work,
		.confirm = "never",
	};

	for (unsigned i = 0; i < l->ngrouped; i++)
		runs[i] = group_spawn_of(l, l->nruns - l->ngrouped + i, &strings[i]);
	ops_propose_group(core, &g, on_group, l);
}

/* Whatever was not acknowledged is asked again, as clients do. */
static void ask(struct lives *l, unsigned i)
{
	struct lives_run *r = &l->runs[i];
	struct asking strings;
	struct op_spawn s;
	char request[32];

	if (r->asked || (r->grouped && i != l->nruns - 1))
		return;
	r->asked = true;
	lives_note("number %u is asked for", i);
	if (r->grouped) {
		ask_group(l);
		return;
	}
	s = spawn_of(r, i, &strings);
	snprintf(request, sizeof(request), "r-%u", i);
	s.request_id = request;
	ops_spawn(core, &s, on_spawn, r);
}

static void ask_order(struct lives *l, unsigned i)
{
	struct lives_order *o = &l->orders[i];
	struct asking strings;
	struct op_spawn s = spawn_of(&o->run, LIVES_OF_ORDER + i, &strings);

	if (!o->asked)
		standing_ask(l, core, i, &s);
}

/* ---- people */

static void on_steered(int rv, const struct op_steered *s, const struct ava_error *err, void *user)
{
	struct lives_steer *k = user;

	if (sim.dead)
		return;
	lives_note("said: %s %s", rv == 0 ? s->outcome : err->text, rv == 0 ? s->steer_id : "");
	if (k == NULL)
		return;
	k->told = rv != AVA_EUNKNOWN && rv != AVA_EFULL;
	if (rv == 0 && strcmp(s->outcome, "queued") == 0) {
		if (k->id[0] != '\0' && strcmp(k->id, s->steer_id) != 0)
			lives_wrong(now, "%s was said once and is %s and %s", k->request, k->id,
				    s->steer_id);
		snprintf(k->id, sizeof(k->id), "%s", s->steer_id);
	}
}

static void on_cancelled(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	struct lives_run *r = user;

	(void)err;
	if (sim.dead || rv != 0)
		return;
	lives_note("%s: its cancel is acknowledged", s->id);
	r->cancelled = (s->status == AVA_CANCELLED && !r->standing) || r->cancelled;
}

struct look {
	char id[32], call[16];
	bool approval, asks, quota, pausing;
	enum ava_status status;
};

static void on_look(const struct op_status *s, void *user)
{
	struct look *k = user;

	k->status = s->status;
	k->asks = s->asks != NULL;
	k->pausing = s->paused_until_ms > 0;
	if ((s->ended_ms != 0) != (s->status >= AVA_SUCCESS))
		lives_wrong(now, "%s: ended at %lld, but its status is %d", s->id,
			    (long long)s->ended_ms, (int)s->status);
	if (s->asks == NULL)
		return;
	k->approval = s->asks->approval;
	k->quota = s->asks->quota;
	snprintf(k->call, sizeof(k->call), "%s", s->asks->call_id);
}

/* The ids of a group's runs are seen in the list, as a person sees them. */
static void on_listed(const struct op_status *s, void *user)
{
	struct lives *l = user;
	const char *at = s->task != NULL ? strstr(s->task, "number ") : NULL;
	unsigned i = at != NULL ? (unsigned)atoi(at + 7) : LIVES_RUNS;

	if (i < l->nruns && l->runs[i].grouped)
		snprintf(l->runs[i].id, sizeof(l->runs[i].id), "%s", s->id);
}

static void answer(struct lives_run *r, const char *text, const char *call)
{
	struct op_steer s = {.run = r->id, .text = text, .call_id = call, .by = "ben"};

	ops_steer(core, &s, on_steered, NULL);
}

static void say(struct lives_steer *k)
{
	struct op_steer s = {.run = k->run,
			     .text = "Look at the other side, too.",
			     .request_id = k->request,
			     .by = "ben"};

	lives_note("%s: %s is said", k->run, k->request);
	ops_steer(core, &s, on_steered, k);
}

static void say_something(struct lives *l, struct lives_run *r)
{
	struct lives_steer *k = &l->steers[l->nsteers];

	if (l->nsteers == LIVES_STEERS)
		return;
	r->steered = true;
	snprintf(k->run, sizeof(k->run), "%s", r->id);
	snprintf(k->request, sizeof(k->request), "s-%u", l->nsteers++);
	say(k);
}

/* What was said and not acknowledged is said again, under its own request id. */
static void say_again(struct lives *l)
{
	for (unsigned i = 0; i < l->nsteers && !sim.dead; i++)
		if (!l->steers[i].told)
			say(&l->steers[i]);
}

static void on_paused(int rv, void *user)
{
	if (!sim.dead)
		lives_note("%s: its pause is %s", ((struct lives_run *)user)->id,
			   rv == 0 ? "kept" : "lost");
}

/* In some worlds people pause runs, and some of those they let go on before the time. */
static void pause_some(struct lives_run *r, bool pausing)
{
	struct run *run = supervisor_find(&core->sup, r->id);
	int64_t until = sim.now + sim.wall + sim_span(1, sim_maybe(500) ? 20000 : 7200000);
	struct ava_error err = {0};

	if (run == NULL || !run->durable || run->agent.ending || run->end.abandoned)
		return;
	if (pausing && sim_maybe(200))
		(void)run_unpause(run, "ben", "sim", on_paused, r, &err);
	else if (!pausing && sim_maybe(100) &&
		 run_pause(run, until, "ben", "sim", on_paused, r, &err) == 0)
		lives_note("%s: a pause", r->id);
}

static void look_at_run(struct lives *l, struct lives_run *r)
{
	struct ava_error err;
	struct look k = {0};

	if (r->id[0] == '\0' || run_now(core, r->id, on_look, &k, &err) != 0)
		return;
	if (k.asks && sim_maybe(k.quota ? 100 : 600)) {
		lives_note("%s: asks about %s", r->id, k.call);
		answer(r,
		       k.quota                        ? sim_maybe(500) ? "wait" : "now"
		       : k.approval && sim_maybe(200) ? "no"
						      : "yes",
		       k.call);
	} else if (!k.asks && k.status == AVA_RUNNING && sim_maybe(20)) {
		say_something(l, r);
	} else if (sim_maybe(4)) {
		lives_note("%s: a cancel", r->id);
		ops_cancel(core, r->id, NULL, NULL, on_cancelled, r);
	}
	if (l->seed >= LIVES_PAUSES && !sim.dead)
		pause_some(r, k.pausing);
}

static void look(struct lives *l)
{
	runs_now(core, false, 100, on_listed, l);
	for (unsigned i = 0; i < l->nruns && !sim.dead; i++)
		look_at_run(l, &l->runs[i]);
	if (l->seed < LIVES_STANDING || sim.dead)
		return;
	standing_look(l, core, work);
	for (unsigned i = 0; i < l->norders && !sim.dead; i++)
		look_at_run(l, &l->orders[i].run);
}

/* ---- clocks */

static void set_wall(struct lives *l, int64_t by)
{
	int64_t was = (sim.now + sim.wall) / DAY_MS;

	l->wall_most = MAX(l->wall_most, sim.now + sim.wall);
	sim.wall += by;
	l->jumps++;
	l->days_back += (sim.now + sim.wall) / DAY_MS < was;
	l->far_back += sim.now + sim.wall + DAY_MS < l->wall_most;
	lives_note("the clock jumps by %lld ms", (long long)by);
}

static bool all_told(const struct lives *l)
{
	for (unsigned i = 0; i < l->nruns; i++)
		if (!(l->runs[i].grouped ? l->group_told : l->runs[i].told))
			return false;
	for (unsigned i = 0; i < l->norders; i++)
		if (!l->orders[i].told)
			return false;
	return true;
}

/* A day later a request that was not answered is a new one: no jump goes there. */
static void jump(struct lives *l)
{
	int64_t wall = sim.now + sim.wall;

	if (l->seed >= LIVES_STANDING && all_told(l) && sim_maybe(150)) {
		set_wall(l,
			 sim_span(sim_maybe(300) ? -3 : 0, 35) * DAY_MS + sim_span(-60000, 60000));
		return;
	}
	switch (sim_span(all_told(l) ? 0 : 2, 4)) {
	case 3:
		set_wall(l, sim_span(-2000, 2000));
		break;
	case 1:
		set_wall(l, sim_span(-7200000, 0));
		break;
	case 2:
		set_wall(l, sim_span(0, 7200000));
		break;
	case 0: /* to just before, or over, midnight */
		set_wall(l, DAY_MS - wall % DAY_MS - sim_span(-3000, 3000));
		break;
	default: /* back over it */
		set_wall(l, -(wall % DAY_MS) - sim_span(1, 3000));
	}
}

/* ---- life and death */

static void on_death(void)
{
	left = ledger_left();
}

static void on_log(const char *line, void *user)
{
	(void)user;
	lives_note("avad.log: %s", line);
}

static void birth(struct lives *l, struct os_loop *loop, long touches)
{
	struct settings s = {0};
	struct core_options o = {.loop = loop, .root = "/", .settings = &s, .log = on_log};
	struct ava_error err = {0};

	settings_defaults(&s);
	s.disk_free_min_mb = 0;
	s.disk_ballast_mb = 0;
	s.runs_max = 1 + (int64_t)(l->seed % 4);
	s.seals_every_s = 3600;
	s.ask_timeout_s = 3600;
	s.budget_day_cents = l->day_cents;
	if (l->seed >= LIVES_STANDING)
		standing_settings(l, &s);
	sim.dead = false;
	sim.left = touches;
	sim.touches = 0;
	sim.mono = sim_span(0, 1000000000);
	l->lives++;
	lives_note("life %u begins", l->lives);
	ledger_go_on(l->disk);
	memdisk_use(l->disk);
	if (core_open(&core, &o, &err) != 0) {
		lives_wrong(l, "core_open: %s", err.text);
		core = NULL;
	}
}

/* A stop that is asked for keeps the disk; of a death what was taken stays. */
static void death(struct lives *l, bool over)
{
	bool killed;

	if (core != NULL)
		core_close(core);
	core = NULL;
	killed = sim.dead; /* before, or while it stopped */
	memdisk_use(NULL);
	if (killed) {
		memdisk_free(l->disk);
		l->disk = left;
		l->kills++;
	} else {
		memdisk_kill(l->disk);
		l->stops += !over;
	}
	memdisk_power_cut(l->disk, memdisk_all, NULL); /* it forgets what was not synced */
	sim.dead = false;
	lives_note("life %u is over: %s", l->lives, killed ? "killed" : "stopped");
}

enum { AT_ASK, AT_LOOK, AT_JUMP, NAT };

static void happen(struct lives *l, int what, int64_t at[NAT])
{
	sim.now = at[what];
	if (what == AT_ASK) {
		for (unsigned i = 0; i < l->nruns && !sim.dead; i++)
			if (sim_maybe(600))
				ask(l, i);
		for (unsigned i = 0; i < l->norders && !sim.dead; i++)
			if (sim_maybe(600))
				ask_order(l, i);
		at[AT_ASK] = all_told(l) ? INT64_MAX : sim.now + sim_span(0, 3000);
	} else if (what == AT_LOOK) {
		if (l->looks++ < LOOKS_MAX) /* then nobody is there any more */
			look(l);
		at[AT_LOOK] = sim.now + (sim_maybe(900) ? sim_span(1, 5000) : sim_span(1, 3000000));
	} else {
		jump(l);
		at[AT_JUMP] = sim_maybe(500) ? INT64_MAX : sim.now + sim_span(0, 60000);
	}
	os_loop_step(NULL, 0);
}

/* True: everything has ended. */
static bool live(struct lives *l, long stop_after)
{
	int64_t at[NAT] = {sim.now, sim.now + sim_span(0, 5000),
			   sim_maybe(400) ? sim.now + sim_span(0, 60000) : INT64_MAX};

	for (unsigned i = 0; i < l->nruns; i++)
		l->runs[i].asked = l->runs[i].grouped ? l->group_told : l->runs[i].told;
	for (unsigned i = 0; i < l->norders; i++)
		l->orders[i].asked = l->orders[i].told;
	if (core != NULL && !sim.dead)
		say_again(l);
	while (core != NULL && !sim.dead && l->broken[0] == '\0') {
		int first = at[AT_ASK] <= at[AT_LOOK] ? AT_ASK : AT_LOOK;

		first = at[first] <= at[AT_JUMP] ? first : AT_JUMP;
		if (at[first] <= sim_next())
			happen(l, first, at);
		else
			sim_step();
		if (stop_after >= 0 && stop_after-- == 0)
			return false;
		if (!sim.dead && all_told(l) && core_idle(core))
			return true;
		if (++l->steps > STEPS_MAX)
			return lives_wrong(l, "it goes on for ever");
	}
	return false;
}

static long draw_death(const struct lives *l)
{
	if (l->lives >= 8 || sim_maybe(80))
		return -1;
	return sim_maybe(500) ? sim_span(0, 30) : sim_span(0, 200);
}

void lives_play(struct lives *l, uint64_t seed)
{
	bool over = false;

	*l = (struct lives){.seed = seed, .disk = memdisk_new()};
	now = l;
	buf_init(&l->trace, 64u << 20);
	clockwork_begin(seed);
	sim.died = on_death;
	sim.wall = INT64_C(1795219200000) + sim_span(0, DAY_MS - 1);
	memdisk_power_cut(l->disk, memdisk_all, NULL);
	memdisk_use(l->disk);
	if (seed >= LIVES_STANDING)
		standing_zones();
	ledger_open(l->disk);
	service_begin();
	draw(l);
	while (!over && l->broken[0] == '\0') {
		struct os_loop *loop = os_loop_new(NULL);
		long touches = draw_death(l);
		bool stop = touches >= 0 && sim_maybe(100);

		birth(l, loop, stop ? -1 : touches);
		over = live(l, stop ? touches : -1);
		death(l, over);
		os_loop_free(loop);
		if (over)
			break;
		sim.now += sim_maybe(700) ? sim_span(0, 2000) : sim_span(0, 7200000);
		if (sim_maybe(200))
			jump(l);
	}
	standing_end(work);
	if (l->broken[0] == '\0' && service_refused()[0] != '\0')
		lives_wrong(l, "%s", service_refused());
}

void lives_end(struct lives *l)
{
	memdisk_free(l->disk);
	free(l->starts);
	buf_fini(&l->trace);
	service_end();
}

static void write_script(const char *name, const char *text)
{
	char path[400];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", work, name);
	f = fopen(path, "w");
	assert(f != NULL);
	fputs(text, f);
	fclose(f);
}

void lives_set_up(const char *folder)
{
	snprintf(work, sizeof(work), "%s", folder);
	write_script("mixed", mixed);
	write_script("words", words);
}

/* Runs that something holds, killed at every call that changes the disk: a check that sends two
 * results back, runs of a group that wait for each other, and runs that a person paused, by clocks
 * that are set both ways. A child asks for the group and waits for its end until its k-th such
 * call, where it is gone without a word; a second child asks the same and goes on, and is killed as
 * well; a third one finishes. Then each run has ended as without the kills, each turn was answered
 * and paid once, and
 *
 * - there is no success without a check that passed behind the last turn, and no round more than
 *   was quoted;
 * - a run that waits begins once, behind the end of the one before it, or is told once that it does
 *   not;
 * - no call is made for a run that is paused, and its pause is over once: by a person, by its time
 *   and not before that, or by a cancel. */
#include "killdisk.h"

#include "agent/tool.h"
#include "ava/ops.h"
#include "ava/proposal.h"
#include "ava/verbs.h"
#include "subagent/run.h"
#include "runs_now.h"

#define HOLD_MAX 5 /* runs of a group */
#define HOLD_MS  3600000LL

#define HOLD_PAID  2000 /* micro-USD of a turn */
#define HOLD_USAGE ",\"usage\":{\"input\":900,\"output\":40,\"cost_cents\":0.2}}\n"
#define HOLD_LOOK  "{\"tool_calls\":[{\"name\":\"list_files\"}]" HOLD_USAGE
#define HOLD_WRITE                                                                                 \
	"{\"tool_calls\":[{\"name\":\"write_file\",\"args\":{\"path\":\"mended.c\","               \
	"\"content\":\"int mended;\\n\"}}]" HOLD_USAGE
#define HOLD_SUBMIT                                                                                \
	"{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"summary\":\"I have it\","        \
	"\"confidence\":1}}]" HOLD_USAGE
#define HOLD_FAIL "{\"error\":{\"class\":\"invalid_request\",\"message\":\"no\"}}\n"

/* ---- a check: a line in a file for each start. It passes once the copy has a file that the model
 * writes. */

static char hold_checks[400];

static void hold_check_start(struct tool_call *c)
{
	const struct run *r = c->env->user;
	FILE *f;
	char path[600];

	kill_count();
	f = fopen(hold_checks, "ae");
	if (!f || fprintf(f, "%s\n", r->id.text) < 0 || fclose(f) != 0)
		_exit(5);
	kill_count();
	snprintf(path, sizeof(path), "%s/mended.c", c->env->copy);
	c->success = true;
	c->exit = access(path, F_OK) == 0 ? 0 : 1;
	buf_addf(&c->out, "exit %d, 0.0 s\n", c->exit);
	c->done(c);
}

extern const struct tool __wrap_tool_check;
const struct tool __wrap_tool_check = {.name = "check",
				       .description = "",
				       .schema = "{}",
				       .flags = TOOL_PROJECT,
				       .start = hold_check_start};

/* ---- the child */

struct hold_run {
	const char *name, *turns, *after, *check;
	int64_t rounds;
};

struct hold {
	struct kill_life life;
	char group[32], ids[HOLD_MAX][24];
	int n;
	bool waits;
};

static void hold_on_group(int rv, struct proposal *p, bool repeated, const struct ava_error *err,
			  void *user)
{
	struct hold *h = user;

	kill_must(rv, err, "propose");
	snprintf(h->group, sizeof(h->group), "%s", p->group_id);
}

static void hold_on_answer(struct verb_reply *r, int status, const struct buf *json,
			   const struct ava_error *err)
{
	struct hold *h = r->waits;
	json_t *o, *run;
	size_t i;

	kill_must(json ? 0 : -1, err, "call");
	o = json_parse(json->data, json->len, NULL);
	json_array_foreach(json_object_get(o, "runs"), i, run)
	{
		if (h->n < HOLD_MAX)
			snprintf(h->ids[h->n++], sizeof(h->ids[0]), "%s",
				 json_str(run, "subagent_id"));
	}
	json_decref(o);
	h->waits = false;
}

/* As a program calls it, by HTTP. */
static void hold_call(struct hold *h, const char *method, const char *path, const json_t *args)
{
	const struct caller ben = {.user = "ben", .channel = "test", .trust = CALLER_OWNER};
	struct verb_reply reply = {.done = hold_on_answer, .waits = h};
	char id[64], allowed[64];
	const struct verb *verb = verbs_find(method, path, id, allowed);

	h->waits = true;
	verbs_call(h->life.core, verb, &ben, id, args, &reply);
	while (h->waits)
		kill_turn(&h->life);
}

static struct op_spawn hold_spawn(const char *src, const struct hold_run *r, char script[400])
{
	static const char *const rw[] = {"rw"};
	struct op_spawn s = spawn_usual(r->name, src);

	snprintf(script, 400, "offline:%s-%s.jsonl", src, r->name);
	s.id = r->name;
	s.after = &r->after;
	s.nafter = r->after != NULL;
	s.model = script;
	s.check = r->check;
	s.check_rounds = r->check ? r->rounds : AVA_DEFAULT;
	s.grants = rw;
	s.ngrants = r->check != NULL;
	return s;
}

/* The same request in each life: it is there already, or it is made. The scripts are written before
 * a run of an earlier life reads them. */
static struct hold hold_open(const char *dir, const struct hold_run *runs, size_t n, int runs_max)
{
	struct hold h = {0};
	char scripts[HOLD_MAX][400], src[300], path[80];
	struct op_spawn spawns[HOLD_MAX];
	struct op_group g = {.runs = spawns,
			     .nruns = n,
			     .max_cost_microusd = AVA_DEFAULT,
			     .timeout_ms = AVA_DEFAULT,
			     .session_id = "s1",
			     .request_id = "r-held",
			     .user_id = "ben",
			     .origin = "test",
			     .cwd = src,
			     .confirm = "never"};

	snprintf(hold_checks, sizeof(hold_checks), "%s/checks", dir);
	snprintf(src, sizeof(src), "%s/src", dir);
	for (size_t i = 0; i < n; i++) {
		spawns[i] = hold_spawn(src, &runs[i], scripts[i]);
		unit_write(scripts[i] + strlen("offline:"), runs[i].turns, strlen(runs[i].turns));
	}
	h.life = kill_open(dir, runs_max);
	ops_propose_group(h.life.core, &g, hold_on_group, &h);
	while (!h.group[0])
		kill_turn(&h.life);
	snprintf(path, sizeof(path), "/api/v1/groups/%s", h.group);
	hold_call(&h, "GET", path, NULL);
	if (h.n != (int)n)
		_exit(6);
	return h;
}

static struct run *hold_live(const struct hold *h, int i)
{
	return supervisor_find(&h->life.core->sup, h->ids[i]);
}

static int hold_end(struct hold *h)
{
	for (int i = 0; i < h->n; i++)
		while (hold_live(h, i))
			kill_turn(&h->life);
	kill_close(&h->life);
	return 0;
}

/* ---- what must be there afterwards */

struct hold_seen {
	long k;
	char name[16], status[24], reason[24];
	int spawned, ended, starts, replies, cut, interrupted;
	int begun, outcomes, passed;
	int asked, rested, answered, expired, stopped, meanwhile;
	int64_t exact, estimated, total, first_lsn, end_lsn;
	bool paused, proved; /* now; the newest outcome of the check is that it passed */
};

static void hold_wait(struct hold_seen *s, const json_t *o, const json_t *content)
{
	const char *state = json_str(content, "state"), *until = json_str(content, "parkedUntil");

	assert_string_equal(json_str(content, "kind"), "pause");
	s->asked += strcmp(state, "asked") == 0;
	s->rested += strcmp(state, "paused") == 0;
	s->answered += strcmp(state, "answered") == 0;
	s->expired += strcmp(state, "expired") == 0;
	s->stopped += strcmp(state, "stopped") == 0;
	s->paused = s->asked > s->answered + s->expired + s->stopped;
	if (strcmp(state, "expired") == 0 && strcmp(json_str(o, "timestamp"), until) < 0)
		fail_msg("k = %ld: %s: paused until %s, over at %s", s->k, s->name, until,
			 json_str(o, "timestamp"));
}

static void hold_proof(struct hold_seen *s, const json_t *content)
{
	const char *outcome = json_str(content, "outcome");

	s->begun += !*outcome;
	s->outcomes += *outcome != '\0';
	s->proved = strcmp(outcome, "passed") == 0;
	s->passed += s->proved;
	if (*outcome && json_get_int(content, "round", 0) != s->outcomes)
		fail_msg("k = %ld: %s: outcome %d is of another round", s->k, s->name, s->outcomes);
}

static void hold_event(const json_t *o, void *user)
{
	struct hold_seen *s = user;
	const char *type = json_get_str(o, "eventType");
	const json_t *c = json_object_get(o, "content"), *m = json_object_get(o, "metadata");
	const char *class = json_str(c, "errorClass");

	if (strcmp(type, "SubagentSpawn") == 0) {
		s->spawned++;
		snprintf(s->name, sizeof(s->name), "%s", json_str(c, "task"));
	} else if (strcmp(type, "InferStart") == 0) {
		s->starts++;
		s->meanwhile += s->paused;
		s->proved = false;
		if (!s->first_lsn)
			s->first_lsn = json_get_int(o, "lsn", 0);
	} else if (strcmp(type, "InferEnd") == 0) {
		bool guess = json_get_bool(c, "estimated", false);
		int64_t cost = json_get_fixed(m, "costCents", 4, 0);

		s->replies += !*class;
		s->cut += strcmp(class, "interrupted") == 0;
		s->exact += guess ? 0 : cost;
		s->estimated += guess ? cost : 0;
	} else if (strcmp(type, "ToolResult") == 0) {
		s->interrupted += strcmp(class, "interrupted") == 0;
	} else if (strcmp(type, "Check") == 0) {
		hold_proof(s, c);
	} else if (strcmp(type, "Waiting") == 0) {
		hold_wait(s, o, c);
	} else if (strcmp(type, "SubagentComplete") == 0) {
		s->ended++;
		s->end_lsn = json_get_int(o, "lsn", 0);
		s->total = json_get_fixed(json_object_get(c, "totals"), "costCents", 4, -1);
		snprintf(s->status, sizeof(s->status), "%s", json_str(c, "status"));
		snprintf(s->reason, sizeof(s->reason), "%s", json_str(c, "stopReason"));
	}
}

struct hold_found {
	char ids[HOLD_MAX][24];
	int spawns, ends, forks, joins, told;
};

static void hold_row(const json_t *o, void *user)
{
	struct hold_found *f = user;
	bool spawn = strcmp(json_str(o, "row"), "spawn") == 0;

	if (spawn && f->spawns < HOLD_MAX)
		snprintf(f->ids[f->spawns], sizeof(f->ids[0]), "%s", json_str(o, "id"));
	f->spawns += spawn;
	f->ends += !spawn;
}

static void hold_day(const json_t *o, void *user)
{
	struct hold_found *f = user;
	const char *type = json_get_str(o, "eventType");

	f->forks += strcmp(type, "Fork") == 0;
	f->joins += strcmp(type, "Join") == 0;
	f->told += strcmp(type, "SubagentComplete") == 0;
}

static int hold_count(const char *path, const char *text)
{
	size_t len;
	int n = 0;
	char *data;

	if (access(path, F_OK) != 0)
		return 0;
	data = unit_read(path, &len);
	for (const char *at = data; (at = strstr(at, text)) != NULL; at++)
		n++;
	free(data);
	return n;
}

static int hold_in(const char *dir, const char *id, const char *file, const char *text)
{
	char path[500];

	snprintf(path, sizeof(path), "%s/data/runs/%s/%s", dir, id, file);
	return hold_count(path, text);
}

static int hold_kills(long k)
{
	return k > 0 ? KILLS : 0;
}

/* What holds for every run, and its end; how often it was answered. */
static void hold_run_check(const struct hold_seen *s, const char *dir, const char *id,
			   const char *status, const char *reason, int replies)
{
	char text[60];

	if (s->spawned != 1 || s->ended != 1 || strcmp(s->status, status) != 0 ||
	    strcmp(s->reason, reason) != 0)
		fail_msg("k = %ld: %s began %d times, ended %d times, as %s (%s)", s->k, s->name,
			 s->spawned, s->ended, s->status, s->reason);
	if (s->replies != replies || s->exact != HOLD_PAID * replies ||
	    s->total != s->exact + s->estimated || s->cut > hold_kills(s->k))
		fail_msg("k = %ld: %s: %d replies, %lld and %lld paid, %lld told, %d cut", s->k,
			 s->name, s->replies, (long long)s->exact, (long long)s->estimated,
			 (long long)s->total, s->cut);
	snprintf(text, sizeof(text), "\"status\":\"%s\"", status);
	if (hold_in(dir, id, "result.json", text) != 1)
		fail_msg("k = %ld: %s: its result says something else", s->k, s->name);
}

/* Reads all of the group; `seen` by number. */
static struct hold_found hold_read(const char *dir, long k, int n, struct hold_seen seen[HOLD_MAX])
{
	struct hold_found f = {0};
	char path[400];

	snprintf(path, sizeof(path), "%s/data/catalog.jsonl", dir);
	kill_each_line(path, hold_row, &f);
	kill_each_day(dir, hold_day, &f);
	if (f.spawns != n || f.ends != n || f.told != n || f.forks != 1 || f.joins != 1)
		fail_msg("k = %ld: %d spawns, %d ends, %d told, %d forks, %d joins", k, f.spawns,
			 f.ends, f.told, f.forks, f.joins);
	for (int i = 0; i < n; i++) {
		seen[i] = (struct hold_seen){.k = k};
		snprintf(path, sizeof(path), "%s/data/logs/subagents/%s.jsonl", dir, f.ids[i]);
		kill_each_line(path, hold_event, &seen[i]);
	}
	kill_nothing_lost(dir, k);
	return f;
}

/* Each third call; AVA_SOAK=1 or AVA_HOLD_KILL_STEP=1: every one. */
static long hold_step(void)
{
	bool said = getenv("AVA_SOAK") || getenv("AVA_HOLD_KILL_STEP");

	return said ? kill_step("AVA_HOLD_KILL_STEP") : 3 * KILL_STEP;
}

/* Undisturbed, then killed. */
static void hold_both(int (*play)(const char *dir, long k), void (*check)(const char *dir, long k))
{
	const char *dir = kill_fresh();

	for (int i = 0; i < 2; i++) { /* another process finds it done */
		assert_int_equal(kill_child(play, dir, 0), 0);
		check(dir, 0);
	}
	unit_rmdir(dir);
	kill_at_each(play, check, hold_step(), true);
}

/* ---- a check */

/* It mends that in its second turn; the others, where a kill came into the writing. */
#define HOLD_MENDS                                                                                 \
	HOLD_SUBMIT HOLD_WRITE HOLD_SUBMIT HOLD_WRITE HOLD_SUBMIT HOLD_WRITE HOLD_SUBMIT, NULL,    \
		"sh test.sh", 1 + KILLS

static const struct hold_run hold_checked[] = {
	{"mends", HOLD_MENDS},
	{"does_not", HOLD_SUBMIT HOLD_SUBMIT HOLD_SUBMIT, NULL, "sh test.sh", 1},
};

static int hold_check_play(const char *dir, long k)
{
	struct hold h;

	if (k > 0)
		kill_arm(k);
	h = hold_open(dir, hold_checked, 2, 2);
	return hold_end(&h);
}

static void hold_check_check(const char *dir, long k)
{
	struct hold_seen seen[HOLD_MAX], *s = seen;
	struct hold_found f = hold_read(dir, k, 2, seen);
	char path[400];

	hold_run_check(&s[0], dir, f.ids[0], "success", "submitted", 2 * s[0].outcomes - 1);
	hold_run_check(&s[1], dir, f.ids[1], "unproven", "check", 2);
	if (!s[0].proved || s[0].passed != 1 || s[0].outcomes > 2 + s[0].interrupted ||
	    s[1].passed != 0 || s[1].outcomes != 2)
		fail_msg("k = %ld: %d of %d checks passed, and %d of %d", k, s[0].passed,
			 s[0].outcomes, s[1].passed, s[1].outcomes);
	snprintf(path, sizeof(path), "%s/checks", dir);
	for (int i = 0; i < 2; i++) {
		int at_work = hold_count(path, f.ids[i]);

		if (at_work > s[i].begun || at_work < s[i].outcomes ||
		    s[i].begun > s[i].outcomes + hold_kills(k) || s[i].interrupted > hold_kills(k))
			fail_msg("k = %ld: %s: %d checks begun, %d at work, %d ended", k, s[i].name,
				 s[i].begun, at_work, s[i].outcomes);
		/* A failed check is told the model once, the last one of the second run nobody. */
		if (hold_in(dir, f.ids[i], "messages.jsonl", "did not pass (1 of") != 1 ||
		    hold_in(dir, f.ids[1], "messages.jsonl", "did not pass (2 of") != 0)
			fail_msg("k = %ld: %s: that its check failed was not told once", k,
				 s[i].name);
	}
	if (hold_in(dir, f.ids[0], "result.json", "\"passed\":true") != 1 ||
	    hold_in(dir, f.ids[1], "result.json", "\"passed\":false") != 1)
		fail_msg("k = %ld: a result says something else of its check", k);
}

TEST(hold_checked)
{
	hold_both(hold_check_play, hold_check_check);
}

/* ---- runs after others */

static const struct hold_run hold_chained[] = {
	{"first", HOLD_LOOK HOLD_SUBMIT, NULL, NULL, 0},
	{"second", HOLD_LOOK HOLD_FAIL, "first", NULL, 0},
	{"third", HOLD_LOOK HOLD_SUBMIT, "second", NULL, 0},
};

static int hold_after_play(const char *dir, long k)
{
	struct hold h;

	if (k > 0)
		kill_arm(k);
	h = hold_open(dir, hold_chained, 3, 2);
	return hold_end(&h);
}

static void hold_after_check(const char *dir, long k)
{
	struct hold_seen s[HOLD_MAX];
	struct hold_found f = hold_read(dir, k, 3, s);

	hold_run_check(&s[0], dir, f.ids[0], "success", "submitted", 2);
	hold_run_check(&s[1], dir, f.ids[1], "error", "model_error", 1);
	hold_run_check(&s[2], dir, f.ids[2], "not_started", "not_started", 0);
	if (s[1].first_lsn <= s[0].end_lsn || s[2].starts != 0)
		fail_msg("k = %ld: a run began before its time", k);
	/* In its spec, and in its only message. */
	if (hold_in(dir, f.ids[1], "messages.jsonl", "### The run before (") != 2 ||
	    hold_in(dir, f.ids[1], "messages.jsonl", "## Your Task") != 1)
		fail_msg("k = %ld: what the first run found was not told once", k);
	if (hold_in(dir, f.ids[2], "result.json", f.ids[1]) == 0)
		fail_msg("k = %ld: the third run does not say why it did not begin", k);
}

TEST(hold_after)
{
	hold_both(hold_after_play, hold_after_check);
}

/* ---- pauses */

/* Places in the group. The pause of the second one has an end; the last one waits for the cancelled
 * one, and never begins. */
enum { HOLD_UNPAUSED, HOLD_BY_TIME, HOLD_CANCELLED, HOLD_BLOCKED, HOLD_UNBEGUN, HOLD_PAUSED };

static const struct hold_run hold_paused[] = {
	{"checked", HOLD_MENDS},
	{"by_time", HOLD_LOOK HOLD_LOOK HOLD_LOOK HOLD_SUBMIT, NULL, NULL, 0},
	{"cancelled", HOLD_LOOK HOLD_LOOK HOLD_LOOK HOLD_SUBMIT, NULL, NULL, 0},
	{"blocked", HOLD_LOOK HOLD_SUBMIT, "checked", NULL, 0},
	{"unbegun", HOLD_LOOK HOLD_SUBMIT, "cancelled", NULL, 0},
};

static void hold_pause(struct hold *h, int i, bool on)
{
	char path[100];
	json_t *args = json_object();

	if (on && i == HOLD_BY_TIME)
		json_object_set_new(args, "until", json_string("1h"));
	snprintf(path, sizeof(path), "/api/v1/runs/%s/%s", h->ids[i], on ? "pause" : "unpause");
	hold_call(h, "POST", path, args);
	json_decref(args);
}

static bool hold_stands(const struct hold *h, int i, const struct run *r)
{
	bool before = hold_live(h, i == HOLD_BLOCKED ? HOLD_UNPAUSED : HOLD_CANCELLED) != NULL;

	return r->pause.resting || (i >= HOLD_BLOCKED && (r->agent.paused || before));
}

/* Once it has begun, or while it waits for another one, each is paused, unless its record says that
 * it was. Then it stands, or its pause is over and it ends. */
static void hold_pause_each(struct hold *h)
{
	for (int i = 0; i < h->n; i++) {
		struct run *r;

		for (; (r = hold_live(h, i)) && !(r->rec.types & event_bit(EVENT_Waiting));
		     kill_turn(&h->life))
			if (r->agent.at.iteration > 0 || i >= HOLD_BLOCKED) {
				hold_pause(h, i, true);
				break;
			}
	}
	for (int i = 0; i < h->n; i++)
		for (struct run *r; (r = hold_live(h, i)) && !hold_stands(h, i, r);)
			kill_turn(&h->life);
}

/* None goes on that was paused, but the one whose time has come. */
static void hold_pauses_stay(struct hold *h, bool time_comes)
{
	bool paused[HOLD_MAX];

	for (int i = 0; i < h->n; i++)
		paused[i] = hold_live(h, i) && hold_live(h, i)->agent.paused &&
			    (i != HOLD_UNBEGUN || hold_live(h, HOLD_CANCELLED));
	for (int i = 0; i < 5; i++)
		kill_turn(&h->life);
	for (int i = 0; i < h->n; i++)
		if (paused[i] && !(time_comes && i == HOLD_BY_TIME) &&
		    (!hold_live(h, i) || !hold_live(h, i)->agent.paused))
			_exit(7);
}

static void hold_cancelled(int rv, const struct op_status *s, const struct ava_error *err,
			   void *user)
{
	kill_must(rv, err, "cancel");
}

static void hold_unpause(struct hold *h, int i)
{
	if (hold_live(h, i) && hold_live(h, i)->agent.paused)
		hold_pause(h, i, false);
}

/* Let go on; the one that waits for another only behind that one's end. */
static void hold_pauses_end(struct hold *h)
{
	hold_unpause(h, HOLD_UNPAUSED);
	while (hold_live(h, HOLD_UNPAUSED))
		kill_turn(&h->life);
	hold_pauses_stay(h, true);
	hold_unpause(h, HOLD_BLOCKED);
	if (hold_live(h, HOLD_CANCELLED))
		ops_cancel(h->life.core, h->ids[HOLD_CANCELLED], "ben", "test", hold_cancelled, h);
	hold_end(h);
}

/* Three lives: all are paused; two hours before that; three hours after it. The runs have one slot,
 * which no paused one holds. */
static int hold_pause_play(const char *dir, long k)
{
	static const int64_t lives[] = {0, -2 * HOLD_MS, 3 * HOLD_MS};

	if (k > 0)
		kill_arm(k);
	for (size_t i = 0; i < ARRAY_LEN(lives); i++) {
		struct hold h;

		kill_ahead_ms = lives[i];
		h = hold_open(dir, hold_paused, HOLD_PAUSED, 1);
		if (i == 0)
			hold_pause_each(&h);
		hold_pauses_stay(&h, i == 2);
		if (i == 2)
			hold_pauses_end(&h);
		else
			kill_close(&h.life);
	}
	return 0;
}

static void hold_pause_check(const char *dir, long k)
{
	struct hold_seen seen[HOLD_MAX], *s = seen;
	struct hold_found f = hold_read(dir, k, HOLD_PAUSED, seen);

	hold_run_check(&s[0], dir, f.ids[0], "success", "submitted", 2 * s[0].outcomes - 1);
	hold_run_check(&s[1], dir, f.ids[1], "success", "submitted", 4);
	hold_run_check(&s[2], dir, f.ids[2], "cancelled", "cancelled", s[2].replies);
	hold_run_check(&s[3], dir, f.ids[3], "success", "submitted", 2);
	hold_run_check(&s[4], dir, f.ids[4], "not_started", "not_started", 0);
	if (!s[0].proved || s[0].outcomes < 2 || s[0].outcomes > 2 + s[0].interrupted)
		fail_msg("k = %ld: %d checks, the last one passed: %d", k, s[0].outcomes,
			 s[0].proved);
	if (s[3].first_lsn <= s[0].end_lsn)
		fail_msg("k = %ld: a run began before its time", k);
	for (; s < seen + HOLD_PAUSED; s++) {
		int i = (int)(s - seen);

		if (s->asked != 1 || s->rested > 1 || s->expired != (i == HOLD_BY_TIME) ||
		    s->stopped != (i == HOLD_CANCELLED || i == HOLD_UNBEGUN) ||
		    s->answered != (i == HOLD_UNPAUSED || i == HOLD_BLOCKED) || s->meanwhile)
			fail_msg("k = %ld: %s: asked %d, rested %d, answered %d, expired %d, "
				 "stopped %d, %d calls meanwhile",
				 k, s->name, s->asked, s->rested, s->answered, s->expired,
				 s->stopped, s->meanwhile);
	}
}

TEST(hold_paused)
{
	hold_both(hold_pause_play, hold_pause_check);
}

UNIT_GROUP(.first = kill_in_memory);

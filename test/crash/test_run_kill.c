/* A program that uses runs, killed at every call of theirs that changes the
 * disk. A child asks for a proposal and confirms it, and starts a run without
 * asking (`ava run --yes`), each with its request id, and waits for both
 * results, until its k-th such call, where it is gone without a word. A second
 * child does the same from the beginning, as a program that heard no answer
 * does. Then there is one proposal, confirmed once, and two runs, each started
 * once, ended once, with a result that says the same as its last event. */
#include "killdisk.h"

#include "ava/ops.h"
#include "ava/proposal.h"
#include "runs_now.h"

#define NRUNS 2

/* ---- the program */

struct program {
	struct kill_life life;
	char proposal[24], run[NRUNS][24];
	bool ended[NRUNS];
};

static void wait_until(struct program *p, const char *answer)
{
	while (!*answer)
		kill_turn(&p->life);
}

static void proposed(int rv, struct proposal *r, bool repeated, const struct ava_error *err,
		     void *user)
{
	struct program *p = user;

	kill_must(rv, err, "propose");
	snprintf(p->proposal, sizeof(p->proposal), "%s", r->id);
}

static void confirmed(int rv, struct proposal *r, bool repeated, const struct ava_error *err,
		      void *user)
{
	struct program *p = user;

	kill_must(rv, err, "confirm");
	snprintf(p->run[0], sizeof(p->run[0]), "%s", r->run);
}

static void started(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	struct program *p = user;

	kill_must(rv, err, "spawn");
	snprintf(p->run[1], sizeof(p->run[1]), "%s", s->id);
}

static void has_result(int rv, const char *json, size_t len, const struct ava_error *err,
		       void *user)
{
	kill_must(rv, err, "result");
	*(bool *)user = true;
}

static void use(struct program *p)
{
	struct op_spawn s = spawn_usual("Find where parse_header is defined", p->life.src);

	s.request_id = "r-proposed";
	ops_propose(p->life.core, &s, proposed, p);
	wait_until(p, p->proposal);
	ops_confirm(p->life.core, p->proposal, "yes", NULL, "api", "terminal", confirmed, p);
	s.request_id = "r-at-once";
	s.origin = "cli";
	ops_spawn(p->life.core, &s, started, p);
	wait_until(p, p->run[0]);
	wait_until(p, p->run[1]);
	for (int i = 0; i < NRUNS; i++)
		(void)ops_result(p->life.core, p->run[i], KILL_PATIENCE_MS, has_result,
				 &p->ended[i]);
	while (!(p->ended[0] && p->ended[1]))
		kill_turn(&p->life);
}

static int play(const char *dir, long k)
{
	struct program p = {0};

	if (k > 0)
		kill_arm(k);
	p.life = kill_open(dir, 0);
	use(&p);
	kill_close(&p.life);
	return 0;
}

/* ---- what must be there afterwards */

struct found {
	const char *dir;
	unsigned proposed, confirmed, spawned, ended; /* in the daily logs */
	unsigned rows_spawned, rows_ended, files;
	char runs[NRUNS + 1][24];
	long k;
};

static void day_line(const json_t *o, void *user)
{
	struct found *f = user;
	const char *type = json_get_str(o, "eventType");

	f->proposed += strcmp(type, "SpawnProposed") == 0;
	f->confirmed += strcmp(type, "SpawnConfirmed") == 0;
	f->spawned += strcmp(type, "SubagentSpawn") == 0;
	f->ended += strcmp(type, "SubagentComplete") == 0;
}

static void row_line(const json_t *o, void *user)
{
	struct found *f = user;
	bool spawn = strcmp(json_get_str(o, "row"), "spawn") == 0;

	if (spawn && f->rows_spawned < NRUNS)
		snprintf(f->runs[f->rows_spawned], sizeof(f->runs[0]), "%s", json_get_str(o, "id"));
	f->rows_spawned += spawn;
	f->rows_ended += !spawn;
}

static void see_file(const char *name, void *user)
{
	++((struct found *)user)->files;
}

struct one_run {
	unsigned lines, spawned, ended;
	char first[40], last[40], status[40];
};

static void run_line(const json_t *o, void *user)
{
	struct one_run *r = user;
	const char *type = json_get_str(o, "eventType");
	const char *status = json_get_str(json_object_get(o, "content"), "status");

	snprintf(r->last, sizeof(r->last), "%s", type);
	if (r->lines++ == 0)
		snprintf(r->first, sizeof(r->first), "%s", type);
	r->spawned += strcmp(type, "SubagentSpawn") == 0;
	r->ended += strcmp(type, "SubagentComplete") == 0;
	if (status)
		snprintf(r->status, sizeof(r->status), "%s", status);
}

static void check_run(const struct found *f, const char *run)
{
	char path[700];
	struct one_run r = {0};
	size_t len;
	char *data;
	json_auto_t *o = NULL;

	snprintf(path, sizeof(path), "%s/data/logs/subagents/%s.jsonl", f->dir, run);
	kill_each_line(path, run_line, &r);
	if (r.spawned != 1 || r.ended != 1 || strcmp(r.first, "SubagentSpawn") != 0 ||
	    strcmp(r.last, "SubagentComplete") != 0)
		fail_msg("k = %ld: %s began %u times, ended %u times, from %s to %s", f->k, run,
			 r.spawned, r.ended, r.first, r.last);
	snprintf(path, sizeof(path), "%s/data/runs/%s/result.json", f->dir, run);
	data = unit_read(path, &len);
	o = json_parse(data, len, NULL);
	assert_non_null(o);
	assert_string_equal(json_get_str(o, "status"), r.status);
	/* It was at work when the kill came, or it answered. */
	if (strcmp(r.status, "success") != 0 &&
	    (f->k == 0 || strcmp(json_get_str(o, "stop_reason"), "interrupted") != 0))
		fail_msg("k = %ld: %s ended as %s", f->k, run, r.status);
	free(data);
}

static void check(const char *dir, long k)
{
	struct found f = {.dir = dir, .k = k};
	char path[700];

	kill_each_day(dir, day_line, &f);
	snprintf(path, sizeof(path), "%s/data/catalog.jsonl", dir);
	kill_each_line(path, row_line, &f);
	snprintf(path, sizeof(path), "%s/data/logs/subagents", dir);
	assert_int_equal(sys->list(AT_FDCWD, path, see_file, &f), 0);
	if (f.proposed != 1 || f.confirmed != 1 || f.spawned != NRUNS || f.ended != NRUNS)
		fail_msg("k = %ld: proposed %u, confirmed %u, spawned %u, ended %u", k, f.proposed,
			 f.confirmed, f.spawned, f.ended);
	if (f.rows_spawned != NRUNS || f.rows_ended != NRUNS || f.files != NRUNS)
		fail_msg("k = %ld: rows of spawns %u, of ends %u, files %u", k, f.rows_spawned,
			 f.rows_ended, f.files);
	for (int i = 0; i < NRUNS; i++)
		check_run(&f, f.runs[i]);
	kill_nothing_lost(dir, k);
}

TEST(untouched)
{
	const char *dir = kill_fresh();

	assert_int_equal(kill_child(play, dir, 0), 0);
	check(dir, 0);
	/* Asked once more, by a program that forgot: nothing happens again. */
	assert_int_equal(kill_child(play, dir, 0), 0);
	check(dir, 0);
	unit_rmdir(dir);
}

TEST(killed)
{
	kill_at_each(play, check, kill_step("AVA_RUN_KILL_STEP"), getenv("AVA_SOAK") != NULL);
}

UNIT_GROUP(.first = kill_in_memory);

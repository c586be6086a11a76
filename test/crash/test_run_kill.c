/* A program that uses runs, killed at every call of theirs that changes the
 * disk. A child asks for a proposal and confirms it, and starts a run without
 * asking (`ava run --yes`), each with its request id, and waits for both
 * results, until its k-th such call, where it is gone without a word. A second
 * child does the same from the beginning, as a program that heard no answer
 * does. Then there is one proposal, confirmed once, and two runs, each started
 * once, ended once, with a result that says the same as its last event. */
#include "unit.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ava/core.h"
#include "ava/ops.h"
#include "ava/proposal.h"
#include "base/clock.h"
#include "base/sys.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "killdisk.h"
#include "os/loop.h"

#define PATIENCE_MS 120000
#define NRUNS       2

/* ---- the program */

struct program {
	struct os_loop *loop;
	struct core *core;
	char src[300], proposal[24], run[NRUNS][24];
	bool ended[NRUNS];
};

static void must(int rv, const struct ava_error *err, const char *what)
{
	if (rv == 0)
		return;
	fprintf(stderr, "%s: %s\n", what, err->text);
	_exit(3);
}

static void wait_until(struct program *p, const char *answer)
{
	int64_t until = clock_mono_ms() + PATIENCE_MS;

	while (!*answer) {
		os_loop_step(p->loop, 5);
		if (clock_mono_ms() > until)
			_exit(4);
	}
}

static void proposed(int rv, struct proposal *r, bool repeated, const struct ava_error *err,
		     void *user)
{
	struct program *p = user;

	must(rv, err, "propose");
	snprintf(p->proposal, sizeof(p->proposal), "%s", r->id);
}

static void confirmed(int rv, struct proposal *r, bool repeated, const struct ava_error *err,
		      void *user)
{
	struct program *p = user;

	must(rv, err, "confirm");
	snprintf(p->run[0], sizeof(p->run[0]), "%s", r->run);
}

static void started(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	struct program *p = user;

	must(rv, err, "spawn");
	snprintf(p->run[1], sizeof(p->run[1]), "%s", s->id);
}

static void has_result(int rv, const char *json, size_t len, const struct ava_error *err,
		       void *user)
{
	must(rv, err, "result");
	*(bool *)user = true;
}

static void use(struct program *p)
{
	struct op_spawn s = {.task = "Find where parse_header is defined",
			     .role = "code_reviewer",
			     .user_id = "ben",
			     .origin = "api",
			     .cwd = p->src,
			     .timeout_ms = AVA_DEFAULT,
			     .max_cost_microusd = AVA_DEFAULT,
			     .max_tokens = AVA_DEFAULT,
			     .max_iterations = AVA_DEFAULT};
	int64_t until = clock_mono_ms() + PATIENCE_MS;

	s.request_id = "r-proposed";
	ops_propose(p->core, &s, proposed, p);
	wait_until(p, p->proposal);
	ops_confirm(p->core, p->proposal, "yes", NULL, "api", "terminal", confirmed, p);
	s.request_id = "r-at-once";
	s.origin = "cli";
	ops_spawn(p->core, &s, started, p);
	wait_until(p, p->run[0]);
	wait_until(p, p->run[1]);
	for (int i = 0; i < NRUNS; i++)
		(void)ops_result(p->core, p->run[i], PATIENCE_MS, has_result, &p->ended[i]);
	while (!(p->ended[0] && p->ended[1])) {
		os_loop_step(p->loop, 5);
		if (clock_mono_ms() > until)
			_exit(4);
	}
}

static int play(const char *dir, long k)
{
	char root[300];
	struct settings settings;
	struct core_options o = {.root = root, .settings = &settings, .model = "offline"};
	struct ava_error err = {0};
	struct program p = {.loop = os_loop_new(NULL)};

	snprintf(root, sizeof(root), "%s/data", dir);
	snprintf(p.src, sizeof(p.src), "%s/src", dir);
	settings_defaults(&settings);
	settings.disk_free_min_mb = 0;
	o.loop = p.loop;
	if (k > 0)
		kill_arm(k);
	must(core_open(&p.core, &o, &err), &err, "core_open");
	use(&p);
	core_close(p.core);
	os_loop_free(p.loop);
	return 0;
}

/* 0, or what went wrong; -1: it was killed. */
static int child(const char *dir, long k)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(play(dir, k));
	status = kill_wait(pid);
	assert_true(status >= 0 || (status == -1 && k > 0));
	return status;
}

/* ---- what must be there afterwards */

struct found {
	const char *dir;
	unsigned proposed, confirmed, spawned, ended; /* in the daily logs */
	unsigned rows_spawned, rows_ended, files;
	char runs[NRUNS + 1][24];
	long k;
};

static void each_line(const char *path, void (*line)(struct found *f, const json_t *o),
		      struct found *f)
{
	const char *text;
	size_t len, at = 0, n;
	char *data = unit_read(path, &len);

	while (jsonl_next(data, len, &at, &text, &n) == 1) {
		json_t *o = json_parse(text, n, NULL);

		assert_non_null(o);
		line(f, o);
		json_decref(o);
	}
	free(data);
}

static void day_line(struct found *f, const json_t *o)
{
	const char *type = json_get_str(o, "eventType");

	f->proposed += strcmp(type, "SpawnProposed") == 0;
	f->confirmed += strcmp(type, "SpawnConfirmed") == 0;
	f->spawned += strcmp(type, "SubagentSpawn") == 0;
	f->ended += strcmp(type, "SubagentComplete") == 0;
}

static void see_day(const char *name, void *user)
{
	struct found *f = user;
	char path[700];

	snprintf(path, sizeof(path), "%s/data/logs/ava/%s", f->dir, name);
	each_line(path, day_line, f);
}

static void row_line(struct found *f, const json_t *o)
{
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

static void check_run(const struct found *f, const char *run)
{
	char path[700];
	struct one_run r = {0};
	const char *text;
	size_t len, at = 0, n;
	char *data;
	json_t *o;

	snprintf(path, sizeof(path), "%s/data/logs/subagents/%s.jsonl", f->dir, run);
	data = unit_read(path, &len);
	for (; jsonl_next(data, len, &at, &text, &n) == 1; r.lines++) {
		const char *type, *status;

		o = json_parse(text, n, NULL);
		assert_non_null(o);
		type = json_get_str(o, "eventType");
		status = json_get_str(json_object_get(o, "content"), "status");
		snprintf(r.last, sizeof(r.last), "%s", type);
		if (r.lines == 0)
			snprintf(r.first, sizeof(r.first), "%s", type);
		r.spawned += strcmp(type, "SubagentSpawn") == 0;
		r.ended += strcmp(type, "SubagentComplete") == 0;
		if (status)
			snprintf(r.status, sizeof(r.status), "%s", status);
		json_decref(o);
	}
	free(data);
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
	json_decref(o);
	free(data);
}

static void check(const char *dir, long k)
{
	struct found f = {.dir = dir, .k = k};
	char path[700];

	snprintf(path, sizeof(path), "%s/data/logs/ava", dir);
	assert_int_equal(sys->list(AT_FDCWD, path, see_day, &f), 0);
	snprintf(path, sizeof(path), "%s/data/catalog.jsonl", dir);
	each_line(path, row_line, &f);
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
	snprintf(path, sizeof(path), "%s/data/lost", dir);
	if (access(path, F_OK) == 0)
		fail_msg("k = %ld: recovery put something aside", k);
}

static const char *fresh(void)
{
	const char *dir = unit_tmpdir();
	char path[300];

	snprintf(path, sizeof(path), "%s/data", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/src", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/src/parser.c", dir);
	unit_write(path, "int parse_header(const char *s)\n{\n\treturn 0;\n}\n", 47);
	return dir;
}

TEST(untouched)
{
	const char *dir = fresh();

	(void)state;
	assert_int_equal(child(dir, 0), 0);
	check(dir, 0);
	/* Asked once more, by a program that forgot: nothing happens again. */
	assert_int_equal(child(dir, 0), 0);
	check(dir, 0);
	unit_rmdir(dir);
}

TEST(killed)
{
	long by = kill_step("AVA_RUN_KILL_STEP"), k;
	int rv = -1;

	(void)state;
	for (k = 1; rv == -1; k += by) {
		const char *dir = fresh();

		rv = child(dir, k);
		if (rv == -1 && child(dir, 0) != 0)
			fail_msg("k = %ld: what was left could not be gone on from", k);
		check(dir, k);
		unit_rmdir(dir);
	}
	assert_int_equal(rv, 0);
	print_message("killed at each of %ld calls\n", k - by);
	assert_true(k > 60 / by);
}

static int first(void **state)
{
	kill_in_memory();
	return 0;
}

UNIT_GROUP(.first = first);

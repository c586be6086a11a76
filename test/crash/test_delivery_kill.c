/* Delivery killed at every call that changes the disk. A child has a run's
 * conversation with Ava, shows what it is given, acknowledges it, and has a
 * command called for each notice, until its k-th such call, where it is gone
 * without a word. A second child takes up what it finds. Then:
 *
 * - every notice that the logs have was shown, and was taken by the command;
 * - what was shown or taken twice is what was not acknowledged when the kill
 *   came, and has the same reference; the command was told that it is again;
 * - a third child, that does nothing, is given nothing any more.
 *
 * The kill is also made between showing and acknowledging, and between taking
 * and ending, without any call of the disk there: the person and the command
 * write their own files. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ava/core.h"
#include "ava/delivery_state.h"
#include "ava/ops.h"
#include "ava/sessions.h"
#include "base/clock.h"
#include "base/sys.h"
#include "codec/json.h"
#include "codec/jsonl.h"
#include "killdisk.h"
#include "os/loop.h"

#define PATIENCE_MS 120000
#define ASK         "Find where parse_header is defined"

/* ---- the person and the client */

struct person {
	struct os_loop *loop;
	struct core *core;
	const char *dir;
	char session[64];
	bool busy, asked, offered, said_yes, told;
	unsigned sessions, unseen;
	int waiting; /* answers that are due */
	uint64_t lsn;
};

static void see_session(const struct op_session *s, void *user)
{
	struct person *p = user;

	p->sessions++;
	p->busy = s->busy || s->waiting > 0 || s->live_runs > 0;
	snprintf(p->session, sizeof(p->session), "%s", s->id);
}

static bool holds(const char *line, size_t len, const char *what)
{
	return memmem(line, len, what, strlen(what)) != NULL;
}

static void see_entry(const char *line, size_t len, void *user)
{
	struct person *p = user;

	p->asked = p->asked || holds(line, len, "\"text\":\"" ASK "\"");
	p->said_yes = p->said_yes || holds(line, len, "\"text\":\"yes\"");
	p->offered = p->offered || holds(line, len, "Shall it start?");
	p->told = p->told || holds(line, len, "has ended (");
}

static void head(const struct op_unseen *u, void *user)
{
	struct person *p = user;

	p->unseen = u->n;
	p->lsn = u->lsn;
}

static void no_item(const char *json, size_t len, void *user) {}

static void look(struct person *p)
{
	p->sessions = p->unseen = 0;
	p->busy = p->asked = p->offered = p->said_yes = p->told = false;
	ops_sessions(p->core, 10, see_session, p);
	if (!p->sessions)
		return;
	ops_session_entries(p->core, p->session, NULL, see_entry, p, NULL);
	ops_unseen(p->core, p->session, "terminal", head, no_item, p, NULL);
}

/* On the screen; it stays there whatever becomes of us. */
static void show(const char *json, size_t len, void *user)
{
	struct person *p = user;
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/shown", p->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, json, len) != (ssize_t)len || write(fd, "\n", 1) != 1)
		_exit(5);
	close(fd);
}

static void acked(int rv, unsigned n, unsigned left, const struct ava_error *err, void *user)
{
	struct person *p = user;

	if (rv != 0) {
		fprintf(stderr, "not acknowledged: %s\n", err->text);
		_exit(3);
	}
	p->waiting--;
}

static void said(int rv, const char *entry, const struct ava_error *err, void *user)
{
	struct person *p = user;

	if (rv != 0)
		_exit(3);
	p->waiting--;
}

static void begun(int rv, const struct op_session *s, const struct ava_error *err, void *user)
{
	struct person *p = user;

	if (rv != 0)
		_exit(3);
	snprintf(p->session, sizeof(p->session), "%s", s->id);
}

static void say(struct person *p, const char *text)
{
	struct op_say s = {.text = text, .user_id = "ben"};

	p->waiting++;
	ops_say(p->core, p->session, &s, said, p);
}

static void act(struct person *p, const char *src)
{
	struct op_session_new n = {.cwd = src, .user_id = "ben"};

	if (p->sessions == 0)
		ops_session_new(p->core, &n, begun, p);
	if (p->unseen > 0) {
		ops_unseen(p->core, p->session, "terminal", head, show, p, NULL);
		p->waiting++;
		ops_ack(p->core, p->session, "terminal", p->lsn, acked, p);
	} else if (!p->asked) {
		say(p, ASK);
	} else if (p->offered && !p->said_yes && !p->busy) {
		say(p, "yes");
	}
}

static bool finished(const struct person *p)
{
	return p->told && !p->busy && p->unseen == 0 && p->waiting == 0 && delivery_idle(p->core);
}

static struct core *open_core(struct os_loop *loop, const char *dir, struct settings *settings)
{
	static char root[300], notify[1000];
	struct core_options o = {
		.loop = loop, .root = root, .settings = settings, .model = "offline"};
	struct ava_error err = {0};
	struct core *core;
	int n;

	snprintf(root, sizeof(root), "%s/data", dir);
	n = snprintf(notify, sizeof(notify), "/bin/sh%c-c%ccat >>\"$0\"%c%s/took%c", 0, 0, 0, dir,
		     0);
	notify[n] = 0;
	o.notify = notify;
	settings_defaults(settings);
	settings->disk_free_min_mb = 0;
	settings->notify_retry_s = 0;
	settings->notify_attempts = 100;
	settings->notify_timeout_s = 120;
	if (core_open(&core, &o, &err) == 0) {
		core->delivery->trim_bytes = 150; /* it begins anew in the middle, too */
		return core;
	}
	fprintf(stderr, "core_open: %s\n", err.text);
	_exit(2);
}

static int play(const char *dir, long k)
{
	struct settings settings;
	struct person p = {.dir = dir, .loop = os_loop_new(NULL)};
	int64_t until = clock_mono_ms() + PATIENCE_MS;
	char src[300];

	snprintf(src, sizeof(src), "%s/src", dir);
	if (k > 0)
		kill_arm(k);
	p.core = open_core(p.loop, dir, &settings);
	for (look(&p); !finished(&p); look(&p)) {
		if (clock_mono_ms() > until) {
			fprintf(stderr, "stuck: told %d busy %d unseen %u waiting %d idle %d\n",
				p.told, p.busy, p.unseen, p.waiting, delivery_idle(p.core));
			return 4;
		}
		if (p.waiting == 0)
			act(&p, src);
		os_loop_step(p.loop, 5);
	}
	core_close(p.core);
	os_loop_free(p.loop);
	return 0;
}

/* Nothing is left to deliver. */
static int only_look(const char *dir)
{
	struct settings settings;
	struct person p = {.dir = dir, .loop = os_loop_new(NULL)};

	p.core = open_core(p.loop, dir, &settings);
	for (int i = 0; i < 10; i++)
		os_loop_step(p.loop, 0);
	look(&p);
	if (p.unseen > 0 || !delivery_idle(p.core))
		return 6;
	core_close(p.core);
	os_loop_free(p.loop);
	return 0;
}

/* 0, or what went wrong; -1: it was killed. */
static int child(const char *dir, long k, bool look_only)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(look_only ? only_look(dir) : play(dir, k));
	status = kill_wait(pid);
	assert_true(status >= 0 || (status == -1 && k > 0));
	return status;
}

/* ---- what must be there afterwards */

#define LSNS_MAX 200

struct lsns {
	uint64_t lsn[LSNS_MAX];
	unsigned times[LSNS_MAX], firsts[LSNS_MAX], n, twice;
	bool again_unsaid; /* two that say they are the first */
};

static unsigned times_of(const struct lsns *l, uint64_t lsn)
{
	for (unsigned i = 0; i < l->n; i++)
		if (l->lsn[i] == lsn)
			return l->times[i];
	return 0;
}

static void add(struct lsns *l, uint64_t lsn, int64_t attempt)
{
	for (unsigned i = 0; i < l->n; i++) {
		if (l->lsn[i] != lsn)
			continue;
		l->times[i]++;
		l->twice++;
		l->firsts[i] += attempt == 1;
		l->again_unsaid = l->again_unsaid || l->firsts[i] > 1;
		return;
	}
	assert_true(l->n < LSNS_MAX);
	l->lsn[l->n] = lsn;
	l->firsts[l->n] = attempt == 1;
	l->times[l->n++] = 1;
}

/* Lines that a kill cut have no end and are none. */
static void read_lines(const char *dir, const char *name, struct lsns *l)
{
	char path[700], *data;
	const char *line;
	size_t len, at = 0, n;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (access(path, R_OK) != 0)
		return;
	data = unit_read(path, &len);
	while (jsonl_next(data, len, &at, &line, &n) == 1) {
		json_t *o = json_parse(line, n, NULL);

		if (o)
			add(l, (uint64_t)json_get_int(o, "lsn", 0), json_get_int(o, "attempt", 2));
		json_decref(o);
	}
	free(data);
}

struct days {
	const char *dir;
	struct lsns notices;
};

static void see_day(const char *name, void *user)
{
	struct days *d = user;
	char path[700], *data;
	const char *line;
	size_t len, at = 0, n;

	snprintf(path, sizeof(path), "%s/data/logs/ava/%s", d->dir, name);
	data = unit_read(path, &len);
	while (jsonl_next(data, len, &at, &line, &n) == 1)
		if (holds(line, n, "\"eventType\":\"AssistantMessage\"") ||
		    holds(line, n, "\"eventType\":\"SubagentComplete\"")) {
			json_t *o = json_parse(line, n, NULL);

			assert_non_null(o);
			add(&d->notices, (uint64_t)json_get_int(o, "lsn", 0), 1);
			json_decref(o);
		}
	free(data);
}

static void check(const char *dir, long k, unsigned *shown_twice, unsigned *taken_twice)
{
	struct days *d = calloc(1, sizeof(*d));
	struct lsns *shown = calloc(1, sizeof(*shown)), *took = calloc(1, sizeof(*took));
	char path[400];

	d->dir = dir;
	snprintf(path, sizeof(path), "%s/data/logs/ava", dir);
	assert_int_equal(sys->list(AT_FDCWD, path, see_day, d), 0);
	read_lines(dir, "shown", shown);
	read_lines(dir, "took", took);
	assert_true(d->notices.n >= 3);
	for (unsigned i = 0; i < d->notices.n; i++) {
		uint64_t lsn = d->notices.lsn[i];
		unsigned s = times_of(shown, lsn), t = times_of(took, lsn);

		if (s < 1 || s > 2 || t < 1 || t > 2)
			fail_msg("k = %ld: notice %llu was shown %u times, taken %u times", k,
				 (unsigned long long)lsn, s, t);
	}
	/* Removing the older ledger is nothing that recovery would miss. */
	snprintf(path, sizeof(path), "%s/data/lost", dir);
	if (access(path, F_OK) == 0)
		fail_msg("k = %ld: recovery put something aside", k);
	/* One command is at work at a time, and it is told. */
	if (took->twice > 1 || took->again_unsaid)
		fail_msg("k = %ld: %u were taken twice%s", k, took->twice,
			 took->again_unsaid ? ", without a word" : "");
	if (k == 0 && (shown->twice || took->twice))
		fail_msg("told twice without a kill");
	*shown_twice += shown->twice;
	*taken_twice += took->twice;
	free(d);
	free(shown);
	free(took);
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

static void test_untouched(void **state)
{
	const char *dir = fresh();
	unsigned shown = 0, taken = 0;

	(void)state;
	assert_int_equal(child(dir, 0, false), 0);
	check(dir, 0, &shown, &taken);
	assert_int_equal(child(dir, 0, true), 0);
	unit_rmdir(dir);
}

static void test_killed(void **state)
{
	long by = kill_step("AVA_DELIVERY_KILL_STEP"), k;
	unsigned shown = 0, taken = 0;
	int rv = -1;

	(void)state;
	for (k = 1; rv == -1; k += by) {
		const char *dir = fresh();

		rv = child(dir, k, false);
		if (rv == -1 && child(dir, 0, false) != 0)
			fail_msg("k = %ld: what was left could not be gone on from", k);
		check(dir, k, &shown, &taken);
		if (child(dir, 0, true) != 0)
			fail_msg("k = %ld: something is still told", k);
		unit_rmdir(dir);
	}
	assert_int_equal(rv, 0);
	print_message("killed at each of %ld calls; shown twice %u, taken twice %u\n", k - by,
		      shown, taken);
	assert_true(k > 60 / by);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_untouched),
		cmocka_unit_test(test_killed),
	};

	kill_in_memory();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A conversation killed at every call that changes the disk: a request, its
 * proposal, the yes, the subagent, its result told. A child plays the person
 * until its k-th such call, where it is gone without a word; a second child
 * takes up what it finds, says again what it said, and plays on. Then there is one run, with one
 * start and one end in the session, each thing was said once, the result was told once, and the
 * chain of entries is whole. */
#include "unit.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ava/core.h"
#include "ava/ops.h"
#include "ava/sessions.h"
#include "base/clock.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/jsonl.h"
#include "killdisk.h"
#include "os/loop.h"
#include "provider/dialect.h"
#include "provider/messages.h"

#define PATIENCE_MS 60000
#define ASK         "Find where parse_header is defined"

/* ---- the person */

struct person {
	struct os_loop *loop;
	struct core *core;
	char session[64];
	bool busy, said_yes, asked, offered, told;
	bool sent_ask, sent_yes; /* in this life */
	unsigned sessions, entries;
	int saying; /* answers that are due */
};

static void see_session(const struct op_session *s, void *user)
{
	struct person *p = user;

	p->sessions++;
	p->busy = s->busy || s->waiting > 0 || s->live_runs > 0;
	snprintf(p->session, sizeof(p->session), "%s", s->id);
}

static const char *text_of(const json_t *entry, const char **role)
{
	const json_t *m = json_object_get(entry, "message"), *v;
	size_t i;

	*role = json_get_str(m, "role");
	json_array_foreach(json_object_get(m, "content"), i, v)
	{
		if (json_get_str(v, "text"))
			return json_get_str(v, "text");
	}
	return "";
}

static void see_entry(const char *line, size_t len, void *user)
{
	struct person *p = user;
	json_t *o = json_parse(line, len, NULL);
	const char *role, *text = text_of(o, &role);

	p->entries++;
	if (role && strcmp(role, "user") == 0) {
		p->asked = p->asked || strcmp(text, ASK) == 0;
		p->said_yes = p->said_yes || strcmp(text, "yes") == 0;
	} else if (role && strcmp(role, "assistant") == 0) {
		p->offered = p->offered || strstr(text, "Shall it start?") != NULL;
		p->told = p->told || strstr(text, "has ended (") != NULL;
	}
	json_decref(o);
}

static void look(struct person *p)
{
	p->sessions = p->entries = 0;
	p->busy = p->said_yes = p->asked = p->offered = p->told = false;
	ops_sessions(p->core, 10, see_session, p);
	if (p->sessions)
		ops_session_entries(p->core, p->session, NULL, see_entry, p, NULL);
}

static void said(int rv, const char *entry, const struct ava_error *err, void *user)
{
	struct person *p = user;

	if (rv != 0) {
		fprintf(stderr, "not said: %s\n", err->text);
		_exit(3);
	}
	p->saying--;
}

/* Whoever heard no answer says it again, with the id of before. */
static void say(struct person *p, const char *text)
{
	struct op_say s = {.text = text, .user_id = "ben", .request_id = text};

	p->saying++;
	ops_say(p->core, p->session, &s, said, p);
}

static void begun(int rv, const struct op_session *s, const struct ava_error *err, void *user)
{
	struct person *p = user;

	if (rv != 0) {
		fprintf(stderr, "no session: %s\n", err->text);
		_exit(3);
	}
	snprintf(p->session, sizeof(p->session), "%s", s->id);
}

static void act(struct person *p, const char *src)
{
	struct op_session_new n = {.cwd = src, .user_id = "ben"};

	if (p->sessions == 0)
		ops_session_new(p->core, &n, begun, p);
	if (!p->sent_ask) {
		p->sent_ask = true;
		say(p, ASK);
	} else if (p->offered && !p->sent_yes && !p->busy) {
		p->sent_yes = true;
		say(p, "yes");
	}
}

static bool anything_written(const char *dir)
{
	struct stat st;
	char path[400];

	snprintf(path, sizeof(path), "%s/data/sessions", dir);
	return stat(path, &st) == 0;
}

static int play(const char *dir, long k)
{
	char root[300], src[300];
	struct settings settings;
	struct core_options o = {.root = root, .settings = &settings, .model = "offline"};
	struct ava_error err = {0};
	struct person p = {0};
	int64_t until = clock_mono_ms() + PATIENCE_MS;

	snprintf(root, sizeof(root), "%s/data", dir);
	snprintf(src, sizeof(src), "%s/src", dir);
	settings_defaults(&settings);
	settings.disk_free_min_mb = 0;
	o.loop = p.loop = os_loop_new(NULL);
	if (k > 0)
		kill_arm(k);
	if (core_open(&p.core, &o, &err) != 0) {
		fprintf(stderr, "core_open: %s\n", err.text);
		return 2;
	}
	for (look(&p); !p.told || p.busy; look(&p)) {
		if (clock_mono_ms() > until) {
			fprintf(stderr, "stuck: asked %d offered %d yes %d busy %d told %d\n",
				p.asked, p.offered, p.said_yes, p.busy, p.told);
			return 4;
		}
		if (p.saying == 0)
			act(&p, src);
		os_loop_step(p.loop, 5);
	}
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
	char last[48], folder[300], name[300];
	unsigned files, entries, asks, yeses, starts, ends, told;
};

static void find_file(const char *name, void *user)
{
	struct found *f = user;

	if (strstr(name, ".messages.jsonl") || !strstr(name, ".jsonl"))
		return;
	f->files++;
	snprintf(f->name, sizeof(f->name), "%s", name);
}

static void find_folder(const char *name, void *user)
{
	struct found *f = user;

	snprintf(f->folder, sizeof(f->folder), "%s", name);
}

static void check_entry(struct found *f, const json_t *o, long k)
{
	const char *type = json_get_str(o, "type"), *id = json_get_str(o, "id");
	const char *parent = json_get_str(o, "parentId"), *role, *text = text_of(o, &role);
	const char *event = json_get_str(o, "eventType");

	assert_non_null(type);
	assert_non_null(id);
	if (strcmp(type, "session") == 0) {
		assert_int_equal(f->entries, 0);
		return;
	}
	f->entries++;
	if (f->last[0] == 0)
		assert_null(parent);
	else if (!parent || strcmp(parent, f->last) != 0)
		fail_msg("k = %ld: entry %s has parent %s, not %s", k, id, parent ? parent : "null",
			 f->last);
	snprintf(f->last, sizeof(f->last), "%s", id);
	if (role && strcmp(role, "user") == 0) {
		f->asks += strcmp(text, ASK) == 0;
		f->yeses += strcmp(text, "yes") == 0;
	} else if (role && strcmp(role, "assistant") == 0) {
		f->told += strstr(text, "has ended (") != NULL;
	}
	f->starts += event && strcmp(event, "subagent:start") == 0;
	f->ends += event && strcmp(event, "subagent:start") != 0;
}

static void check_messages(const char *path, long k)
{
	struct messages_info info;
	struct ava_error err = {0};
	struct buf body;
	size_t len;
	char *data = unit_read(path, &len);

	buf_init(&body, 64u << 20);
	if (messages_request(&body, data, len, &info, &err) != 0)
		fail_msg("k = %ld: %s", k, err.text);
	buf_adds(&body, ",{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}");
	if (dialect_offline.check(body.data + info.head_len, body.len - info.head_len, &err) != 0)
		fail_msg("k = %ld: %s", k, err.text);
	buf_fini(&body);
	free(data);
}

static unsigned occurrences(const char *dir, const char *file, const char *what)
{
	char path[700];
	unsigned n = 0;
	size_t len;
	char *data;

	snprintf(path, sizeof(path), "%s/data/%s", dir, file);
	data = unit_read(path, &len);
	for (const char *at = data; (at = strstr(at, what)) != NULL; at++)
		n++;
	free(data);
	return n;
}

static void check_days(const char *dir, long k);

static void check(const char *dir, long k)
{
	char path[1200];
	struct found f = {0};
	const char *line;
	size_t len, at = 0, n;
	char *data;

	snprintf(path, sizeof(path), "%s/data/sessions", dir);
	assert_int_equal(sys->list(AT_FDCWD, path, find_folder, &f), 0);
	snprintf(path, sizeof(path), "%s/data/sessions/%s", dir, f.folder);
	assert_int_equal(sys->list(AT_FDCWD, path, find_file, &f), 0);
	assert_int_equal(f.files, 1);
	snprintf(path, sizeof(path), "%s/data/sessions/%s/%s", dir, f.folder, f.name);
	data = unit_read(path, &len);
	while (jsonl_next(data, len, &at, &line, &n) == 1) {
		json_t *o = json_parse(line, n, NULL);

		assert_non_null(o);
		check_entry(&f, o, k);
		json_decref(o);
	}
	free(data);
	if (f.asks != 1 || f.yeses != 1 || f.starts != 1 || f.ends != 1 || f.told != 1)
		fail_msg("k = %ld: asked %u, yes %u, starts %u, ends %u, told %u", k, f.asks,
			 f.yeses, f.starts, f.ends, f.told);
	assert_int_equal(occurrences(dir, "catalog.jsonl", "\"row\":\"spawn\""), 1);
	assert_int_equal(occurrences(dir, "catalog.jsonl", "\"row\":\"end\""), 1);
	snprintf(path, sizeof(path), "%s/data/sessions/%s/%.*s.messages.jsonl", dir, f.folder,
		 (int)(strlen(f.name) - 6), f.name);
	check_messages(path, k);
	snprintf(path, sizeof(path), "sessions/%s/%.*s.messages.jsonl", f.folder,
		 (int)(strlen(f.name) - 6), f.name);
	if (occurrences(dir, path, "[ava] The person confirmed") != 1)
		fail_msg("k = %ld: that it was confirmed was told %u times", k,
			 occurrences(dir, path, "[ava] The person confirmed"));
	check_days(dir, k);
}

/* Ava's own calls: each intent in the daily log has its end. */
struct days {
	const char *dir;
	unsigned starts, ends;
};

static void see_day(const char *name, void *user)
{
	struct days *d = user;
	char path[400];

	snprintf(path, sizeof(path), "logs/ava/%s", name);
	d->starts += occurrences(d->dir, path, "\"InferStart\",\"agentId\":\"ava\"");
	d->ends += occurrences(d->dir, path, "\"InferEnd\",\"agentId\":\"ava\"");
}

static void check_days(const char *dir, long k)
{
	struct days d = {.dir = dir};
	char path[400];

	snprintf(path, sizeof(path), "%s/data/logs/ava", dir);
	assert_int_equal(sys->list(AT_FDCWD, path, see_day, &d), 0);
	if (d.starts < 4 || d.starts != d.ends)
		fail_msg("k = %ld: %u calls of Ava's began, %u ended", k, d.starts, d.ends);
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

	(void)state;
	assert_int_equal(child(dir, 0), 0);
	check(dir, 0);
	unit_rmdir(dir);
}

static void test_killed(void **state)
{
	long by = kill_step("AVA_TALK_KILL_STEP"), k;
	int rv = -1;

	(void)state;
	for (k = 1; rv == -1; k += by) {
		const char *dir = fresh();

		rv = child(dir, k);
		if (rv == -1 && !anything_written(dir)) {
			unit_rmdir(dir);
			continue; /* nothing of the conversation was there yet */
		}
		if (rv == -1 && child(dir, 0) != 0)
			fail_msg("k = %ld: what was left could not be gone on from", k);
		check(dir, k);
		unit_rmdir(dir);
	}
	assert_int_equal(rv, 0);
	print_message("killed at each of %ld calls\n", k - by);
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

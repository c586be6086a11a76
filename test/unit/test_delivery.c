/* Delivery through its verbs: real runs and conversations of the offline model
 * in a data root of their own, a client that acknowledges, a command that is
 * called; each over restarts, where what was settled stays settled. Kills are
 * in test/crash. */
#include "talk_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>

#include "ava/delivery.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/sys.h"
#include "codec/jscan.h"

static void close_core(struct world *w)
{
	core_close(w->core);
	w->core = NULL;
}

static const char *took_path(struct world *w)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s/took", w->dir);
	return path;
}

/* notify.exec: this shell script, with "$0" the file for what it took. */
static void set_notify(struct world *w, const char *script)
{
	char path[300];
	int n;

	snprintf(path, sizeof(path), "%s/notify.sh", w->dir);
	unit_write(path, script, strlen(script));
	n = snprintf(w->notify, sizeof(w->notify), "/bin/sh%c-c%c. %s%c%s%c", 0, 0, path, 0,
		     took_path(w), 0);
	assert_true(n > 0 && n < (int)sizeof(w->notify) - 1);
	w->notify[n] = 0;
}

/* Said, answered, and all runs have ended. */
static void tell_all(struct world *w, const char *session, const char *text)
{
	assert_int_equal(say(w, session, text), 1);
	wait_while(w, session, has_runs);
}

/* ---- a client */

struct view {
	char summary[200], types[2000], text[9000], title[300];
	uint64_t lsn, first;
	unsigned n;
	bool cut;
};

static void see_item(struct view *v, const json_t *o)
{
	size_t at = strlen(v->types);

	if (v->n++ == 0)
		v->first = (uint64_t)json_get_int(o, "lsn", 0);
	snprintf(v->types + at, sizeof(v->types) - at, "%.1s", json_get_str(o, "kind"));
	snprintf(v->text, sizeof(v->text), "%s", json_get_str(o, "text"));
	snprintf(v->title, sizeof(v->title), "%s", json_get_str(o, "title"));
	v->cut = json_get_bool(o, "cut", false);
}

static int look(struct world *w, const char *session, const char *channel, struct view *v)
{
	struct buf b;
	struct jw jw;
	json_t *o;
	int rv;

	*v = (struct view){.n = 0};
	buf_init(&b, 64u << 20);
	jw_init(&jw, &b);
	rv = ops_unseen(w->core, session, channel, &jw, NULL);
	o = rv == 0 ? json_parse(b.data, b.len, NULL) : NULL;
	snprintf(v->summary, sizeof(v->summary), "%s", json_str(o, "summary"));
	v->lsn = (uint64_t)json_get_int(o, "lsn", 0);
	for (size_t i = 0; i < json_array_size(json_object_get(o, "items")); i++)
		see_item(v, json_array_get(json_object_get(o, "items"), i));
	json_decref(o);
	buf_fini(&b);
	return rv;
}

static struct view unseen(struct world *w, const char *session)
{
	struct view v;

	assert_int_equal(look(w, session, "terminal", &v), 0);
	return v;
}

struct answer {
	int done;
	int rv;
	unsigned acknowledged, unseen;
	char text[300];
};

static void acked(int rv, unsigned acknowledged, unsigned left, const struct ava_error *err,
		  void *user)
{
	struct answer *a = user;

	*a = (struct answer){1, rv, acknowledged, left, ""};
	snprintf(a->text, sizeof(a->text), "%.290s", err ? err->text : "");
}

static struct answer ack(struct world *w, const char *session, const char *channel, uint64_t lsn)
{
	struct answer a = {0};

	ops_ack(w->core, session, channel, lsn, acked, &a);
	until(w, &a.done);
	return a;
}

/* ---- what a client gets */

TEST(seen_once)
{
	struct world *w = *state;
	struct view v;
	struct answer a;
	const char *id = begin(w, NULL), *other = begin(w, NULL);

	tell_all(w, other, "hello");
	assert_string_equal(unseen(w, id).summary, "");
	tell_all(w, id, ASK);
	v = unseen(w, id);
	assert_string_equal(v.types, "ps");
	assert_string_equal(v.summary, "1 message, 1 proposal waits while you were away");
	tell_all(w, id, "yes");
	/* The proposal is answered: no notice any more. */
	v = unseen(w, id);
	assert_null(strchr(v.types, 'p'));
	assert_non_null(strchr(v.types, 'r'));
	assert_non_null(strstr(v.summary, "1 run finished, "));
	a = ack(w, id, "terminal", v.first);
	assert_int_equal(a.rv, 0);
	assert_int_equal(a.acknowledged, 1);
	assert_int_equal(a.unseen, v.n - 1);
	reopen(w);
	assert_int_equal(unseen(w, id).n, v.n - 1);
	a = ack(w, id, "terminal", v.lsn);
	assert_int_equal(a.acknowledged, v.n - 1);
	assert_int_equal(a.unseen, 0);
	assert_int_equal(ack(w, id, "terminal", v.lsn).acknowledged, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(unseen(w, id).n, 0);
		assert_int_equal(unseen(w, other).n, 1); /* one does not acknowledge another */
		reopen(w);
	}
	for (int i = 0; i < 2; i++) {
		tell_all(w, other, ASK);
		tell_all(w, other, "yes");
	}
	assert_non_null(strstr(unseen(w, other).summary, "2 runs finished, "));
}

/* ---- a file that cannot be written for a while: the event of its commit comes late */

static struct sys_ops failing;
static atomic_bool fails;

static int failing_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	if (atomic_load(&fails) && (flags & O_CREAT) && strstr(path, "result.json")) {
		errno = EIO;
		return -1;
	}
	return sys_real.openat(dirfd, path, flags, mode);
}

static void result_fails(bool yes)
{
	failing = sys_real;
	failing.openat = failing_openat;
	atomic_store(&fails, yes);
	sys = yes ? &failing : &sys_real;
}

static unsigned ends_shown(struct world *w, const char *id)
{
	struct view v = unseen(w, id);

	return strchr(v.types, 'r') != NULL;
}

/* The end of a run is on disk and cannot be read yet; what is newer is acknowledged. Killed
 * there, the next start has the end, and tells it. */
TEST(late)
{
	struct world *w = *state;
	const char *id = begin(w, NULL), *other = begin(w, NULL);

	tell_all(w, id, ASK);
	ack(w, id, "terminal", unseen(w, id).lsn);
	result_fails(true);
	say(w, id, "yes");
	steps(w, 200); /* it ends, and for longer than a second is late */
	assert_int_equal(w->core->sup.nlive, 1);
	assert_int_equal(ends_shown(w, id), 0);
	tell_all(w, other, "hello");
	assert_int_equal(ack(w, other, "terminal", unseen(w, other).lsn).rv, 0);
	core_close(w->core);
	result_fails(false);
	open_core(w);
	assert_int_equal(w->core->sup.nlive, 0);
	assert_int_equal(ends_shown(w, id), 1);
	assert_int_equal(unseen(w, other).n, 0);
}

static void woken(void *user)
{
	(void)user;
}

/* Who reads the files while it is held back has it when it comes, once. */
TEST(late_is_given_once)
{
	struct world *w = *state;
	const char *id = begin(w, NULL);
	struct op_cursor *cur;
	struct op_event e;
	unsigned ends = 0;

	tell_all(w, id, ASK);
	result_fails(true);
	say(w, id, "yes");
	steps(w, 200);
	assert_int_equal(w->core->sup.nlive, 1);
	cur = ops_events_open(w->core, NULL, 0, woken, NULL, NULL);
	assert_non_null(cur);
	for (int i = 0; i < 1500 && (i < 100 || w->core->sup.nlive > 0); i++) {
		while (ops_events_next(cur, &e) == 1)
			ends += e.type_len == 16 && memcmp(e.type, "SubagentComplete", 16) == 0;
		os_loop_step(w->loop, 10);
		if (i == 50)
			atomic_store(&fails, false);
	}
	while (ops_events_next(cur, &e) == 1)
		ends += e.type_len == 16 && memcmp(e.type, "SubagentComplete", 16) == 0;
	assert_int_equal(w->core->sup.nlive, 0);
	assert_int_equal(ends, 1);
	ops_events_close(cur);
	close_core(w);
	result_fails(false);
}

TEST(expired)
{
	struct world *w = *state;
	const char *id = begin(w, NULL);
	struct view v;

	tell_all(w, id, ASK);
	test_clock_skip(w->settings.proposal_expiry_s * 1000);
	for (int i = 0; i < 6000 && !strchr(unseen(w, id).types, 'e'); i++)
		os_loop_step(w->loop, 10);
	v = unseen(w, id);
	assert_non_null(strchr(v.types, 'e'));
	assert_null(strchr(v.types, 'p'));
	assert_non_null(strstr(v.summary, "1 proposal expired"));
}

/* What a model says moves no cursor, hides nothing, and has an end. */
TEST(text)
{
	static const char evil[] = "{\"text\":\"a\\u001b[2Jb\\u202ec\\r\\nd\"}\n";
	struct world *w = *state;
	const char *id = begin(w, script(w, evil));
	char *lines = malloc(20000);
	struct view v;

	tell_all(w, id, "x");
	v = unseen(w, id);
	assert_null(strchr(v.text, '\033'));
	assert_null(strchr(v.text, '\r'));
	assert_null(strstr(v.text, "\u202e"));
	assert_non_null(strstr(v.text, "\\x1b[2Jb"));
	assert_non_null(strstr(v.text, "\nd"));
	assert_false(v.cut);
	snprintf(lines, 20000, "{\"text\":\"%02999d\"}\n", 7);
	id = begin(w, script(w, lines));
	tell_all(w, id, "x");
	v = unseen(w, id);
	assert_int_equal(strlen(v.text), 2000);
	assert_true(v.cut);
	free(lines);
}

TEST(refused)
{
	struct world *w = *state;
	struct answer a;
	struct view v;
	const char *id = begin(w, NULL);

	tell_all(w, id, "hello");
	assert_int_equal(look(w, "nobody", "terminal", &v), AVA_ENOENT);
	assert_int_equal(look(w, id, "pigeon", &v), AVA_EINVAL);
	assert_int_equal(ack(w, "nobody", "terminal", 1).rv, AVA_ENOENT);
	assert_int_equal(ack(w, id, "notify", 1).rv, AVA_EINVAL);
	a = ack(w, id, "terminal", UINT64_MAX / 4);
	assert_int_equal(a.rv, AVA_EINVAL);
	assert_non_null(strstr(a.text, "no event has that number yet"));
	assert_int_equal(unseen(w, id).n, 1);
}

/* Of the day that is on, once everything of it is written. */
static char *day_log(struct world *w, size_t *len)
{
	char path[400];

	journal_sync(w->core->journal);
	snprintf(path, sizeof(path), "%s/logs/ava/%s.jsonl", w->root, w->core->book.day);
	return unit_read(path, len);
}

/* ---- the command */

struct took {
	unsigned n, again, results, messages;
	int64_t last_attempt;
	char runs[200];
};

static struct took took(struct world *w)
{
	struct took t = {0};
	size_t len, at = 0, n;
	const char *line;
	char *data;

	if (access(took_path(w), R_OK) != 0)
		return t;
	data = unit_read(took_path(w), &len);
	while (jsonl_next(data, len, &at, &line, &n) == 1) {
		json_t *o = json_parse(line, n, NULL);
		const char *type = json_get_str(o, "kind");

		assert_non_null(type);
		assert_int_equal(json_get_int(o, "version", 0), 1);
		assert_string_equal(json_get_str(o, "channel"), "notify");
		assert_true(json_get_int(o, "lsn", 0) > 0);
		t.last_attempt = json_get_int(o, "attempt", 0);
		t.n++;
		t.again += t.last_attempt > 1;
		t.results += (strcmp(type, "result") == 0 || strcmp(type, "failed") == 0);
		t.messages += strcmp(type, "said") == 0;
		if ((strcmp(type, "result") == 0 || strcmp(type, "failed") == 0))
			snprintf(t.runs, sizeof(t.runs), "%s", json_get_str(o, "run"));
		json_decref(o);
	}
	free(data);
	return t;
}

static void deliver(struct world *w)
{
	for (int i = 0; !delivery_idle(w->core) && i < 12000; i++)
		os_loop_step(w->loop, 10);
	assert_true(delivery_idle(w->core));
}

TEST(command)
{
	struct world *w = *state;
	struct took t;
	const char *id;

	setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789", 1);
	set_notify(w, "test -z \"$ANTHROPIC_API_KEY\" && cat >>\"$0\"");
	reopen(w);
	unsetenv("ANTHROPIC_API_KEY");
	id = begin(w, NULL);
	tell_all(w, id, ASK);
	tell_all(w, id, "yes");
	deliver(w);
	t = took(w);
	assert_int_equal(t.results, 1);
	assert_true(t.messages >= 2);
	assert_int_equal(t.again, 0);
	reopen(w);
	deliver(w);
	assert_int_equal(took(w).n, t.n);
	/* Each channel for itself. */
	assert_true(unseen(w, id).n > 0);
	/* Without a command there is nothing that waits for one. */
	w->notify[0] = 0;
	reopen(w);
	tell_all(w, id, "hello");
	assert_true(delivery_idle(w->core));
	/* And one that is set later does not hear of before. */
	set_notify(w, "cat >>\"$0\"");
	reopen(w);
	deliver(w);
	assert_int_equal(took(w).n, t.n);
}

/* A run of nobody's conversation, and nobody is connected. */
TEST(run_alone)
{
	struct world *w = *state;
	struct op_spawn s = A_RUN(.task = ASK, .cwd = w->src, .request_id = "",
				  .session_id = "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31");
	char run[24];

	set_notify(w, "cat >>\"$0\"");
	reopen(w);
	spawn(w, &s, run);
	for (int i = 0; i < 12000 && !core_idle(w->core); i++)
		os_loop_step(w->loop, 10);
	deliver(w);
	assert_int_equal(took(w).results, 1);
	assert_string_equal(took(w).runs, run);
}

TEST(command_fails)
{
	struct world *w = *state;
	char path[400], *data;
	const char *id;
	size_t len;

	w->settings.notify_attempts = 3;
	set_notify(w, "cat >>\"$0\"; printf 'no \\033[2J way\\n'; exit 7");
	reopen(w);
	id = begin(w, NULL);
	tell_all(w, id, "hello");
	deliver(w);
	assert_int_equal(took(w).n, 3);
	assert_int_equal(took(w).last_attempt, 3);
	snprintf(path, sizeof(path), "%s/logs/ava/%s.jsonl", w->root, w->core->book.day);
	reopen(w);
	deliver(w);
	assert_int_equal(took(w).n, 3);
	data = unit_read(path, &len);
	assert_non_null(strstr(data, "\"customType\":\"delivery.gave_up\",\"data\":{\"channel\":"
				     "\"notify\",\"lsn\":"));
	assert_non_null(strstr(data, "\"attempts\":3,\"reason\":\"it ended with 7: no "
				     "\\\\x1b[2J way\"}"));
	free(data);
}

TEST(command_recovers)
{
	struct world *w = *state;
	const char *id;

	set_notify(w, "if [ -e \"$0.ok\" ]; then cat >>\"$0\"; else : >\"$0.ok\"; exit 1; fi");
	reopen(w);
	id = begin(w, NULL);
	tell_all(w, id, "hello");
	deliver(w);
	assert_int_equal(took(w).n, 1);
	assert_int_equal(took(w).last_attempt, 2);
}

/* The runtime stops while the command is at work: it is ended, and called again. */
TEST(command_cut)
{
	struct world *w = *state;
	char path[400];
	const char *id;

	set_notify(w, "if [ -e \"$0.ok\" ]; then cat >>\"$0\"; else : >\"$0.ok\"; sleep 1000; fi");
	snprintf(path, sizeof(path), "%s.ok", took_path(w));
	reopen(w);
	id = begin(w, NULL);
	tell_all(w, id, "hello");
	for (int i = 0; access(path, F_OK) != 0 && i < 12000; i++)
		os_loop_step(w->loop, 10);
	/* Ava goes on while it is at work. */
	tell_all(w, id, "hello again");
	assert_false(core_idle(w->core));
	reopen(w);
	deliver(w);
	assert_int_equal(took(w).n, 2);
	assert_int_equal(took(w).again, 1);
}

/* ---- what stands on disk */

static void put_state(struct world *w, const char *text, size_t len)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/delivery.json", w->root);
	unit_write(path, text, len);
}

/* A conversation of that id, empty. */
static void put_session(struct world *w, const char *id)
{
	char path[500];

	snprintf(path, sizeof(path), "%s/sessions", w->root);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/sessions/--work", w->root);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/sessions/--work/2026-11-21T08-00-00-123Z_%s.jsonl",
		 w->root, id);
	unit_write(path, "{\"type\":\"session\"}\n", 19);
}

/* An older day's log: what Ava said under these numbers, every second one, in conversations that
 * take turns. */
static void put_said(struct world *w, const char *const *sessions, int from, int to)
{
	char path[500], now[CLOCK_ISO_LEN + 1];
	const char *const *s = sessions;
	struct buf b;

	clock_iso(clock_wall_ms(), now);
	buf_init(&b, 4 << 20);
	for (int lsn = from; lsn <= to; lsn += 2, s = s[1] ? s + 1 : sessions)
		buf_addf(&b,
			 "{\"timestamp\":\"%s\",\"lsn\":%d,\"seq\":%d,\"eventType\":"
			 "\"AssistantMessage\",\"agentId\":\"ava\",\"sessionId\":\"%s\","
			 "\"traceId\":\"\",\"userId\":\"\",\"content\":{\"text\":\"old\"},"
			 "\"metadata\":{}}\n",
			 now, lsn, lsn, *s);
	snprintf(path, sizeof(path), "%s/logs/ava/2026-11-20.jsonl", w->root);
	unit_write(path, b.data, b.len);
	buf_fini(&b);
}

static const char none_open[] = "{\"version\":2,\"lsn\":1000,\"open\":{},\"late\":\"\"}\n";

static unsigned gave_up(struct world *w)
{
	static const char told[] = "{\"customType\":\"delivery.gave_up\",\"data\":{\"channel\":"
				   "\"terminal\",\"lsn\":1002,";
	unsigned n = 0;
	size_t len;
	char *data = day_log(w, &len);

	for (const char *at = data; (at = strstr(at, "delivery.gave_up")); at++)
		n++;
	assert_true(n == 0 || strstr(data, told));
	free(data);
	return n;
}

/* More than a conversation may hold: the oldest are given up, and that is told once. */
TEST(bound)
{
	struct world *w = *state;
	struct view v;
	const char *id[] = {begin(w, NULL), NULL};
	const int first = DELIVERY_SESSION_MAX / 2;

	tell_all(w, id[0], "hello");
	close_core(w);
	put_said(w, id, 1002, 1000 + 2 * first);
	put_state(w, none_open, sizeof(none_open) - 1);
	open_core(w);
	journal_lsn(w->core->journal, 6000); /* what follows is newer */
	assert_int_equal(unseen(w, id[0]).n, first);
	for (int i = first; i < DELIVERY_SESSION_MAX; i++)
		tell_all(w, id[0], "hello");
	assert_int_equal(unseen(w, id[0]).first, 1002);
	assert_int_equal(gave_up(w), 0);
	tell_all(w, id[0], "hello");
	tell_all(w, id[0], "hello again");
	for (int i = 0; i < 2; i++) {
		v = unseen(w, id[0]);
		assert_int_equal(v.n, DELIVERY_SESSION_MAX);
		assert_int_equal(v.first, 1006 + 2 * i);
		assert_string_not_equal(v.text, "old");
		assert_int_equal(gave_up(w), 1);
		reopen(w); /* without a word on disk of what was given up */
		assert_int_equal(unseen(w, id[0]).first, v.first);
		tell_all(w, id[0], "hello");
	}
}

static unsigned puts_of_state;

static int counting_renameat(int fromfd, const char *from, int tofd, const char *to)
{
	puts_of_state += strcmp(to, "delivery.json") == 0;
	return sys_real.renameat(fromfd, from, tofd, to);
}

static size_t state_bytes(struct world *w)
{
	char path[400];
	size_t len;

	journal_sync(w->core->journal);
	snprintf(path, sizeof(path), "%s/delivery.json", w->root);
	free(unit_read(path, &len));
	return len;
}

/* However many are open, a message writes nothing of them, and an acknowledgement a little. */
TEST(many)
{
	static const int sizes[] = {120, 1000, 4800};
	struct world *w = *state;
	const char *ids[41] = {0};
	struct sys_ops counting = sys_real;

	for (int i = 0; i < 40; i++)
		tell_all(w, ids[i] = begin(w, NULL), "hello");
	counting.renameat = counting_renameat;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		int n = sizes[i];

		close_core(w);
		put_said(w, ids, 1002, 1000 + 2 * n);
		put_state(w, none_open, sizeof(none_open) - 1);
		sys = &counting;
		open_core(w);
		journal_lsn(w->core->journal, 20000);
		assert_int_equal(w->core->delivery->nnotices,
				 n + (int)i); /* and the messages below */
		assert_in_range(state_bytes(w), 1, 200);
		puts_of_state = 0;
		tell_all(w, ids[1], "hello");
		state_bytes(w);
		assert_int_equal(puts_of_state, 0);
		ack(w, ids[0], "terminal", 1000 + 2 * (uint64_t)n);
		state_bytes(w);
		assert_int_equal(puts_of_state, 1);
		assert_in_range(state_bytes(w), 1, 200 + 12 * n / 40);
		sys = &sys_real;
		reopen(w);
		assert_int_equal(w->core->delivery->nnotices, n - n / 40 + (int)i + 1);
		assert_int_equal(unseen(w, ids[0]).n, 0);
		assert_true(unseen(w, ids[39]).n >= (unsigned)n / 40);
	}
}

/* doc/DELIVERY.md shows this file: what it names is open, with its attempts, and what
 * has a greater lsn; all else is settled. */
TEST(golden)
{
	static const char id[] = "0b5e2c4e-53a3-4b41-9d0b-3a8b8d8f7c11";
	struct world *w = *state;
	const struct notice *it;
	size_t len;
	char *text = unit_read_src("test/golden/delivery/delivery.json", &len);

	set_notify(w, "cat >>\"$0\"");
	reopen(w); /* makes the folders */
	close_core(w);
	put_session(w, id);
	put_state(w, text, len);
	free(text);
	put_said(w, (const char *const[]){id, NULL}, 90000, 90014);
	w->settings.notify_attempts = 3; /* none is left for that one: given up, not called */
	open_core(w);
	it = LIST_FIRST(&w->core->delivery->notices, struct notice, in[NOTICE_ALL]);
	assert_int_equal(it->item.lsn, 90004);
	assert_int_equal(it->tries[delivery_bit(DELIVERY_NOTIFY)].attempts, 3);
	assert_int_equal(it->open, DELIVERY_TERMINAL | DELIVERY_NOTIFY);
	assert_int_equal(unseen(w, id).n, 2); /* 90004 and 90014 */
	deliver(w);
	assert_int_equal(took(w).n, 3); /* 90008, 90010 and 90014 */
}

TEST(broken)
{
	struct world *w = *state;
	const char *id = begin(w, NULL);
	struct ava_error err = {0};
	static const char *const rubbish[] = {
		"",
		"not JSON\n",
		"[]\n",
		"{\"version\":2}\n",
		"{\"version\":2,\"lsn\":-1,\"open\":{},\"late\":\"\"}\n",
		"{\"version\":2,\"lsn\":9,\"open\":7,\"late\":\"\"}\n",
		"{\"version\":2,\"lsn\":9,\"open\":{\"terminal\":\"7 x\"},\"late\":\"\"}\n",
		"{\"version\":2,\"lsn\":9,\"open\":{\"terminal\":\"7 5\"},\"late\":\"\"}\n",
		"{\"version\":2,\"lsn\":9,\"open\":{\"terminal\":\"7-5\"},\"late\":\"\"}\n",
		"{\"version\":1,\"lsn\":99999,\"open\":[]}\n", /* an older form */
	};
	static const char newer[] = "{\"version\":3,\"lsn\":1}\n";

	tell_all(w, id, "hello");
	for (size_t i = 0; i < ARRAY_LEN(rubbish); i++) {
		ack(w, id, "terminal", unseen(w, id).lsn);
		assert_int_equal(unseen(w, id).n, 0);
		close_core(w);
		/* What it said is not known: what the last day had comes again. */
		put_state(w, rubbish[i], strlen(rubbish[i]));
		open_core(w);
		assert_int_equal(unseen(w, id).n, 1);
	}
	close_core(w);
	put_state(w, newer, sizeof(newer) - 1);
	assert_int_equal(try_open(w, &err), AVA_EFORMAT);
	assert_non_null(strstr(err.text, "newer ava"));
	w->core = NULL;
}

/* ---- without memory */

/* An acknowledgement without memory says so, and can be sent again. */
TEST(ack_without_memory)
{
	struct world *w = *state;
	struct answer a;
	uint64_t lsn;
	const char *id = begin(w, NULL);

	tell_all(w, id, "hello");
	lsn = unseen(w, id).lsn;
	for (long k = 0; unseen(w, id).n > 0; k++) {
		a = (struct answer){0};
		fault_alloc(k);
		ops_ack(w->core, id, "terminal", lsn, acked, &a);
		fault_alloc_end();
		until(w, &a.done);
		assert_true(a.rv == 0 ? unseen(w, id).n == 0 : unseen(w, id).n == 1);
		assert_true(k < 1000);
	}
	reopen(w);
	assert_int_equal(unseen(w, id).n, 0);
}

/* ---- the door of a messenger */

static void shown_on_disk(int rv, void *user)
{
	assert_int_equal(rv, 0);
	*(int *)user = 1;
}

/* Settles what is next for this person: its lsn; 0: nothing is. */
static uint64_t show_next(struct world *w, const char *user)
{
	const struct notice *it = delivery_next(w->core, DOORS_telegram, user);
	uint64_t lsn = it ? it->item.lsn : 0;
	struct draft *d;
	int done = 0;

	if (!it)
		return 0;
	d = draft_new(&w->core->book);
	assert_true(delivery_showing(w->core, d, DOORS_telegram, lsn, NULL));
	/* Nobody is given it while it is being settled. */
	assert_true(delivery_next(w->core, DOORS_telegram, user) == NULL ||
		    delivery_next(w->core, DOORS_telegram, user)->item.lsn != lsn);
	assert_int_equal(delivery_commit(d, shown_on_disk, &done), 0);
	until(w, &done);
	delivery_shown(w->core, DOORS_telegram, lsn, true);
	return lsn;
}

TEST(chat)
{
	struct world *w = *state;
	struct op_session_new n = {.user_id = "telegram:"
					      "77",
				   .cwd = w->src};
	const char *id = begin_with(w, &n), *other = begin(w, NULL);
	uint64_t first, second;
	unsigned spawns = 0;

	tell_all(w, other, ASK);
	tell_all(w, id, ASK);
	assert_null(delivery_next(w->core, DOORS_telegram,
				  "telegram:"
				  "78"));
	assert_null(delivery_next(w->core, DOORS_telegram, "telegram"));
	/* The quote is older, and stands behind what Ava says of it. */
	assert_int_equal(delivery_next(w->core, DOORS_telegram, n.user_id)->item.kind, ITEM_said);
	/* What was not settled comes again, what was does not, and not in a terminal either. */
	reopen(w);
	assert_int_equal(unseen(w, id).n, 2);
	first = show_next(w, n.user_id);
	assert_true(first > 0);
	assert_int_equal(unseen(w, id).n, 1);
	reopen(w);
	assert_int_equal(delivery_next(w->core, DOORS_telegram, n.user_id)->item.kind,
			 ITEM_proposed);
	second = show_next(w, n.user_id);
	assert_true(second > 0 && second < first);
	assert_int_equal(show_next(w, n.user_id), 0);
	assert_int_equal(unseen(w, id).n, 0);
	assert_int_equal(unseen(w, other).n, 2);
	assert_false(delivery_showing(w->core, NULL, DOORS_telegram, second, NULL));
	reopen(w);
	assert_null(delivery_next(w->core, DOORS_telegram, n.user_id));
	/* A run that has begun is told here alone, and behind what was said. */
	tell_all(w, id, "yes");
	assert_int_equal(delivery_next(w->core, DOORS_telegram, n.user_id)->item.kind, ITEM_said);
	reopen(w);
	for (const struct notice *it; (it = delivery_next(w->core, DOORS_telegram, n.user_id));
	     show_next(w, n.user_id))
		spawns += it->item.kind == ITEM_started;
	assert_int_equal(spawns, 1);
}

static int at_once(void **state)
{
	int rv = set_up(state);
	struct world *w = *state;

	w->settings.notify_retry_s = 0;
	w->settings.notify_timeout_s = 120;
	return rv;
}

UNIT_GROUP(.before = at_once, .after = tear_down);

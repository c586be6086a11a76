/* Delivery through its verbs: real runs and conversations of the offline model
 * in a data root of their own, a client that acknowledges, a command that is
 * called; each over restarts, where what was settled stays settled. Kills are
 * in test/crash. */
#include "delivery_rig.h"

/* ---- what a client gets */

static void test_seen_once(void **state)
{
	struct world *w = *state;
	char id[64];
	struct view v;
	struct answer a;

	open_core(w);
	begin(w, NULL, id);
	assert_string_equal(unseen(w, id).summary, "");
	tell(w, id, ASK);
	v = unseen(w, id);
	assert_string_equal(v.types, "PA");
	assert_string_equal(v.summary, "1 message, 1 proposal waits while you were away");
	tell(w, id, "yes");
	/* The proposal is answered: no notice any more. */
	v = unseen(w, id);
	assert_null(strchr(v.types, 'P'));
	assert_non_null(strchr(v.types, 'S'));
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
	for (int i = 0; i < 3; i++) {
		assert_int_equal(unseen(w, id).n, 0);
		reopen(w);
	}
}

static void test_away(void **state)
{
	struct world *w = *state;
	char id[64], other[64];
	struct view v;

	open_core(w);
	begin(w, NULL, id);
	begin(w, NULL, other);
	tell(w, other, "hello");
	for (int i = 0; i < 2; i++) {
		tell(w, id, ASK);
		tell(w, id, "yes");
	}
	reopen(w);
	v = unseen(w, id);
	assert_ptr_equal(strstr(v.summary, "2 runs finished"), v.summary);
	ack(w, id, "terminal", v.lsn);
	/* One conversation does not acknowledge another. */
	assert_int_equal(unseen(w, other).n, 1);
	reopen(w);
	assert_int_equal(unseen(w, other).n, 1);
	assert_int_equal(unseen(w, id).n, 0);
}

static void test_expired(void **state)
{
	struct world *w = *state;
	char id[64];
	struct view v;

	w->settings.proposal_expiry_s = 1;
	open_core(w);
	begin(w, NULL, id);
	tell(w, id, ASK);
	for (int i = 0; i < 6000 && !strchr(unseen(w, id).types, 'E'); i++)
		os_loop_step(w->loop, 10);
	v = unseen(w, id);
	assert_non_null(strchr(v.types, 'E'));
	assert_null(strchr(v.types, 'P'));
	assert_non_null(strstr(v.summary, "1 proposal expired"));
}

/* What a model says moves no cursor, hides nothing, and has an end. */
static void test_text(void **state)
{
	static const char evil[] = "{\"text\":\"a\\u001b[2Jb\\u202ec\\r\\nd\"}\n";
	struct world *w = *state;
	char id[64], *lines = malloc(20000);
	struct view v;

	open_core(w);
	begin(w, script(w, evil), id);
	tell(w, id, "x");
	v = unseen(w, id);
	assert_null(strchr(v.text, '\033'));
	assert_null(strchr(v.text, '\r'));
	assert_null(strstr(v.text, "\u202e"));
	assert_non_null(strstr(v.text, "\\x1b[2Jb"));
	assert_non_null(strstr(v.text, "\nd"));
	assert_false(v.cut);
	snprintf(lines, 20000, "{\"text\":\"%02999d\"}\n", 7);
	begin(w, script(w, lines), id);
	tell(w, id, "x");
	v = unseen(w, id);
	assert_int_equal(strlen(v.text), 2000);
	assert_true(v.cut);
	free(lines);
}

static void test_refused(void **state)
{
	struct world *w = *state;
	struct ava_error err = {0};
	struct answer a;
	struct view v = {.n = 0};
	char id[64];

	open_core(w);
	begin(w, NULL, id);
	tell(w, id, "hello");
	assert_int_equal(ops_unseen(w->core, "nobody", "terminal", see_head, see_item, &v, &err),
			 AVA_ENOENT);
	assert_int_equal(ops_unseen(w->core, id, "pigeon", see_head, see_item, &v, &err),
			 AVA_EINVAL);
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

	if (access(w->took, R_OK) != 0)
		return t;
	data = unit_read(w->took, &len);
	while (jsonl_next(data, len, &at, &line, &n) == 1) {
		json_t *o = json_parse(line, n, NULL);
		const char *type = json_get_str(o, "type");

		assert_non_null(type);
		assert_int_equal(json_get_int(o, "version", 0), 1);
		assert_string_equal(json_get_str(o, "channel"), "notify");
		assert_true(json_get_int(o, "lsn", 0) > 0);
		t.last_attempt = json_get_int(o, "attempt", 0);
		t.n++;
		t.again += t.last_attempt > 1;
		t.results += strcmp(type, "SubagentComplete") == 0;
		t.messages += strcmp(type, "AssistantMessage") == 0;
		if (strcmp(type, "SubagentComplete") == 0)
			snprintf(t.runs, sizeof(t.runs), "%s", json_get_str(o, "run_id"));
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

static void test_command(void **state)
{
	struct world *w = *state;
	struct took t;
	char id[64];

	set_notify(w, "cat >>\"$0\"");
	open_core(w);
	begin(w, NULL, id);
	tell(w, id, ASK);
	tell(w, id, "yes");
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
	tell(w, id, "hello");
	assert_true(delivery_idle(w->core));
	/* And one that is set later does not hear of before. */
	set_notify(w, "cat >>\"$0\"");
	reopen(w);
	deliver(w);
	assert_int_equal(took(w).n, t.n);
}

static void spawned(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	assert_int_equal(rv, 0);
	*(bool *)user = true;
}

/* A run of nobody's conversation, and nobody is connected. */
static void test_run_alone(void **state)
{
	struct world *w = *state;
	struct op_spawn s = {.role = "code_reviewer",
			     .task = ASK,
			     .cwd = w->src,
			     .session_id = "5f0c6a1e-3b7d-4c2a-9f10-7d2e8b4a6c31",
			     .user_id = "ben",
			     .request_id = "",
			     .origin = "test",
			     .timeout_ms = AVA_DEFAULT,
			     .max_cost_microusd = AVA_DEFAULT,
			     .max_tokens = AVA_DEFAULT,
			     .max_iterations = AVA_DEFAULT};
	bool done = false;

	set_notify(w, "cat >>\"$0\"");
	open_core(w);
	ops_spawn(w->core, &s, spawned, &done);
	step_while(w, &done, false);
	for (int i = 0; i < 12000 && !core_idle(w->core); i++)
		os_loop_step(w->loop, 10);
	deliver(w);
	assert_int_equal(took(w).results, 1);
	assert_int_equal(strncmp(took(w).runs, "S-", 2), 0);
}

static void test_command_fails(void **state)
{
	struct world *w = *state;
	char id[64], path[400], *data;
	size_t len;

	w->settings.notify_attempts = 3;
	set_notify(w, "cat >>\"$0\"; printf 'no \\033[2J way\\n'; exit 7");
	open_core(w);
	begin(w, NULL, id);
	tell(w, id, "hello");
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

static void test_command_recovers(void **state)
{
	struct world *w = *state;
	char id[64];

	set_notify(w, "if [ -e \"$0.ok\" ]; then cat >>\"$0\"; else : >\"$0.ok\"; exit 1; fi");
	open_core(w);
	begin(w, NULL, id);
	tell(w, id, "hello");
	deliver(w);
	assert_int_equal(took(w).n, 1);
	assert_int_equal(took(w).last_attempt, 2);
}

/* The runtime stops while the command is at work: it is ended, and called again. */
static void test_command_cut(void **state)
{
	struct world *w = *state;
	char id[64], path[400];

	set_notify(w, "if [ -e \"$0.ok\" ]; then cat >>\"$0\"; else : >\"$0.ok\"; sleep 1000; fi");
	snprintf(path, sizeof(path), "%s.ok", w->took);
	open_core(w);
	begin(w, NULL, id);
	tell(w, id, "hello");
	for (int i = 0; access(path, F_OK) != 0 && i < 12000; i++)
		os_loop_step(w->loop, 10);
	/* Ava goes on while it is at work. */
	tell(w, id, "hello again");
	assert_false(core_idle(w->core));
	reopen(w);
	deliver(w);
	assert_int_equal(took(w).n, 2);
	assert_int_equal(took(w).again, 1);
}

/* ---- the ledger */

static void put_ledger(struct world *w, const char *text, size_t len)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/delivery", w->root);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/delivery/00000001.jsonl", w->root);
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

/* More than a conversation may hold: the oldest are given up, and that is told. */
static void test_bound(void **state)
{
	struct world *w = *state;
	char now[CLOCK_ISO_LEN + 1], id[64], path[400], *data;
	struct view v;
	struct buf b;
	size_t len;

	open_core(w);
	begin(w, NULL, id);
	tell(w, id, "hello");
	core_close(w->core);
	buf_init(&b, 1 << 20);
	clock_iso(clock_wall_ms(), now);
	buf_adds(&b, "{\"row\":\"base\",\"version\":1,\"lsn\":5000,\"notify\":false}\n");
	for (int i = 1; i <= DELIVERY_SESSION_MAX; i++)
		buf_addf(&b,
			 "{\"row\":\"item\",\"channels\":[\"terminal\"],\"item\":{\"lsn\":%d,"
			 "\"type\":\"AssistantMessage\",\"time\":\"%s\",\"session_id\":\"%s\","
			 "\"proposal_id\":\"\",\"title\":\"Ava\",\"text\":\"old\"}}\n",
			 1000 + i, now, id);
	snprintf(path, sizeof(path), "%s/delivery/00000009.jsonl", w->root);
	unit_write(path, b.data, b.len);
	buf_fini(&b);
	open_core(w);
	journal_lsn(w->core->journal, 6000); /* what follows is newer */
	assert_int_equal(unseen(w, id).n, DELIVERY_SESSION_MAX);
	assert_int_equal(unseen(w, id).first, 1001);
	tell(w, id, "hello");
	tell(w, id, "hello again");
	v = unseen(w, id);
	assert_int_equal(v.n, DELIVERY_SESSION_MAX);
	assert_int_equal(v.first, 1003);
	assert_string_not_equal(v.text, "old");
	data = day_log(w, &len);
	assert_non_null(strstr(data, "{\"customType\":\"delivery.gave_up\",\"data\":{\"channel\":"
				     "\"terminal\",\"lsn\":1002,"));
	free(data);
	reopen(w);
	assert_int_equal(unseen(w, id).n, DELIVERY_SESSION_MAX);
	assert_int_equal(unseen(w, id).first, 1003);
}

static void test_golden(void **state)
{
	static const char id[] = "0b5e2c4e-53a3-4b41-9d0b-3a8b8d8f7c11";
	struct world *w = *state;
	const struct item *it;
	size_t len;
	char *text = unit_read_src("test/golden/delivery/00000001.jsonl", &len);
	struct view v;

	w->settings.notify_attempts = 1; /* none is left: given up, and not called */
	set_notify(w, "cat >>\"$0\"");
	put_session(w, id);
	put_ledger(w, text, len);
	open_core(w);
	if (clock_wall_ms() - clock_parse_iso("2026-11-21T07:59:01.123Z", 24) > DELIVERY_AGE_MS) {
		assert_int_equal(unseen(w, id).n, 0); /* too old by now */
	} else {
		it = LIST_FIRST(&w->core->delivery->items, struct item, node);
		assert_int_equal(it->lsn, 89960);
		assert_int_equal(it->attempts, 3);
		assert_int_equal(it->open, DELIVERY_TERMINAL | DELIVERY_NOTIFY);
		v = unseen(w, id);
		assert_int_equal(v.n, 1);
		assert_string_equal(v.text, "The parser is in json_read.c");
		assert_true(v.cut);
		deliver(w);
		assert_int_equal(took(w).n, 0);
		reopen(w);
		assert_int_equal(unseen(w, id).n, 1);
	}
	free(text);
}

static unsigned count_ledgers(struct world *w)
{
	unsigned n = 0;

	for (int i = 1; i < 30; i++) {
		char path[400];

		snprintf(path, sizeof(path), "%s/delivery/%08d.jsonl", w->root, i);
		n += access(path, F_OK) == 0;
	}
	return n;
}

/* How many there are once the older ones are removed. */
static unsigned ledgers(struct world *w)
{
	for (int i = 0; count_ledgers(w) != 1 && i < 6000; i++)
		os_loop_step(w->loop, 10);
	return count_ledgers(w);
}

/* One file after each start, and older ones do no harm. */
static void test_generations(void **state)
{
	struct world *w = *state;
	char id[64], from[400], to[400], *data;
	size_t len;

	open_core(w);
	begin(w, NULL, id);
	tell(w, id, "hello");
	ack(w, id, "terminal", unseen(w, id).lsn);
	tell(w, id, "hello");
	snprintf(from, sizeof(from), "%s/delivery/00000001.jsonl", w->root);
	data = unit_read(from, &len);
	for (int i = 0; i < 4; i++) {
		reopen(w);
		assert_int_equal(unseen(w, id).n, 1);
		assert_int_equal(ledgers(w), 1);
	}
	/* An older one beside it, as a crash before its removal leaves it. */
	core_close(w->core);
	snprintf(to, sizeof(to), "%s/delivery/00000002.jsonl", w->root);
	unit_write(to, data, len);
	open_core(w);
	assert_int_equal(unseen(w, id).n, 1);
	assert_int_equal(ledgers(w), 1);
	free(data);
}

/* It begins anew while the runtime is at work, and what is open stays open. */
static void test_trimmed(void **state)
{
	struct world *w = *state;
	char id[64], waits[64];

	open_core(w);
	w->core->delivery->trim_bytes = 100;
	begin(w, NULL, id);
	begin(w, NULL, waits);
	tell(w, waits, "hello");
	for (int i = 0; w->core->delivery->generation < 3 && i < 200; i++) {
		tell(w, id, "hello");
		assert_int_equal(ack(w, id, "terminal", unseen(w, id).lsn).rv, 0);
	}
	assert_true(w->core->delivery->generation >= 3);
	/* It rides on the next commit that is waited for. */
	w->core->delivery->trim_bytes = 1 << 20;
	tell(w, id, "hello");
	assert_int_equal(ack(w, id, "terminal", unseen(w, id).lsn).rv, 0);
	for (int i = 0; w->core->delivery->beginning && i < 1000; i++)
		os_loop_step(w->loop, 10);
	assert_true(count_ledgers(w) <= 2); /* the one before stays until the next */
	assert_int_equal(unseen(w, waits).n, 1);
	assert_int_equal(unseen(w, id).n, 0);
	tell(w, id, "hello");
	reopen(w);
	assert_int_equal(unseen(w, waits).n, 1);
	assert_int_equal(unseen(w, id).n, 1);
	assert_int_equal(ledgers(w), 1);
}

static void test_broken(void **state)
{
	struct world *w = *state;
	char id[64], path[400];
	struct ava_error err = {0};
	static const char rubbish[] =
		"{\"row\":\"ack\",\"channel\":\"terminal\",\"lsns\":[\"x\",-1,{}]}\nnot JSON\n[]\n"
		"{\"row\":\"item\",\"item\":7}\n{\"row\":\"what\"}\n{\"row\":\"send\"}\n{\"row\":1";
	static const char newer[] = "{\"row\":\"base\",\"version\":2,\"lsn\":1}\n";

	open_core(w);
	begin(w, NULL, id);
	tell(w, id, "hello");
	ack(w, id, "terminal", unseen(w, id).lsn);
	core_close(w->core);
	w->core = NULL;
	/* No base is left: what the last day had comes again. */
	snprintf(path, sizeof(path), "%s/delivery/00000001.jsonl", w->root);
	unit_write(path, rubbish, sizeof(rubbish) - 1);
	open_core(w);
	assert_int_equal(unseen(w, id).n, 1);
	core_close(w->core);
	w->core = NULL;
	snprintf(path, sizeof(path), "%s/delivery/00000009.jsonl", w->root);
	unit_write(path, newer, sizeof(newer) - 1);
	assert_int_equal(try_open(w, &err), AVA_EFORMAT);
	assert_non_null(strstr(err.text, "newer ava"));
	w->core = NULL;
}

/* ---- without memory */

static void test_no_memory(void **state)
{
	static const char line[] =
		"{\"timestamp\":\"2026-11-21T08:00:09.096Z\",\"lsn\":9,\"seq\":1,\"eventType\":"
		"\"AssistantMessage\",\"agentId\":\"ava\",\"sessionId\":\"x\",\"traceId\":\"\","
		"\"userId\":\"\",\"content\":{\"text\":\"hello\"},\"metadata\":{}}";
	struct item *it;

	FAULT_LOOP(k, {
		it = NULL;
		if (item_from_event(&it, "AssistantMessage", line, sizeof(line) - 1) == 0)
			item_free(it);
	});
	assert_int_equal(item_from_event(&it, "ToolCall", line, sizeof(line) - 1), AVA_ENOENT);
	assert_int_equal(item_from_event(&it, "SpawnProposed", line, sizeof(line) - 1), AVA_ENOENT);
}

/* An acknowledgement without memory says so, and can be sent again. */
static void test_ack_without_memory(void **state)
{
	struct world *w = *state;
	struct answer a;
	char id[64];
	uint64_t lsn;

	open_core(w);
	begin(w, NULL, id);
	tell(w, id, "hello");
	lsn = unseen(w, id).lsn;
	for (long k = 0; unseen(w, id).n > 0; k++) {
		a = (struct answer){false};
		fault_alloc(k);
		ops_ack(w->core, id, "terminal", lsn, acked, &a);
		fault_alloc_end();
		step_while(w, &a.done, false);
		assert_true(a.rv == 0 ? unseen(w, id).n == 0 : unseen(w, id).n == 1);
		assert_true(k < 1000);
	}
	reopen(w);
	assert_int_equal(unseen(w, id).n, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(test_seen_once),
		T(test_away),
		T(test_expired),
		T(test_text),
		T(test_refused),
		T(test_bound),
		T(test_command),
		T(test_run_alone),
		T(test_command_fails),
		T(test_command_recovers),
		T(test_command_cut),
		T(test_golden),
		T(test_generations),
		T(test_trimmed),
		T(test_broken),
		T(test_no_memory),
		T(test_ack_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

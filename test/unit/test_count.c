/* Counting on two threads gives what counting one by one gives, whatever the
 * size of the pieces; copies count once; broken lines are told once each. */
#include "logs_root.h"

#include "journal/count.h"

#define EVENTS 60000 /* more than two pieces of a file */

static void encode(struct buf *b, uint64_t lsn, enum event_kind kind, const char *agent)
{
	struct event_head head = head_of(lsn, kind, agent);
	struct event_meta meta = EVENT_META_NONE;
	char content[700];

	if (kind == EVENT_InferEnd) {
		meta.input_tokens = 10;
		meta.output_tokens = 3;
		meta.cost_microusd = lsn % 2 == 0 ? 12345 : -1;
		meta.model_id = "m/a";
	}
	memset(content, 'x', sizeof(content));
	memcpy(content, "{\"t\":\"", 6);
	memcpy(content + 100 + lsn % 500, "\"}", 2);
	assert_int_equal(event_encode(b, &head, content, 102 + lsn % 500, &meta), 0);
}

static unsigned told;

static void on_broken(const struct ava_error *err, void *user)
{
	assert_int_equal(err->code, AVA_ECORRUPT);
	told++;
}

static const struct count_row *find(const struct count *c, const char *key)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->rows[i].key, key) == 0)
			return &c->rows[i];
	return NULL;
}

static void count(struct count *c, enum count_by by, const struct ava_log_query *q)
{
	struct count_watch watch = {.broken = on_broken};
	struct ava_log_query query = *q;
	struct ava_error err = {0};

	query.root = root;
	told = 0;
	assert_int_equal(count_events(c, &query, by, &watch, &err), 0);
}

TEST(big_file)
{
	static const enum event_kind kinds[] = {EVENT_ToolCall, EVENT_InferEnd, EVENT_Error};
	const struct count_row *row;
	struct count c;
	TEST_BUF(b, 64 << 20);

	for (uint64_t i = 1; i <= EVENTS; i++) {
		encode(&b, i, kinds[i % 3], i % 2 == 0 ? "ava" : "S-7f3a2b");
		if (i % 1000 == 0)
			buf_adds(&b, "broken\n");
	}
	unit_write(path_of("logs/ava/2026-11-21.jsonl"), b.data, b.len);
	count(&c, COUNT_TYPE, &(struct ava_log_query){0});
	assert_int_equal(c.n, 3);
	assert_int_equal(told, EVENTS / 1000);
	assert_int_equal(find(&c, "Error")->events, EVENTS / 3);
	row = find(&c, "InferEnd");
	assert_int_equal(row->events, EVENTS / 3);
	assert_int_equal(row->input_tokens, 10 * EVENTS / 3);
	assert_int_equal(row->output_tokens, 3 * EVENTS / 3);
	assert_int_equal(row->uncosted, EVENTS / 6);
	assert_int_equal(row->cost_microusd, UINT64_C(12345) * (EVENTS / 6));
	count_fini(&c);
	count(&c, COUNT_AGENT, &(struct ava_log_query){.types = "error", .after = 3});
	assert_int_equal(c.n, 2);
	assert_int_equal(c.rows[0].events + c.rows[1].events, EVENTS / 3 - 1);
	count_fini(&c);
	count(&c, COUNT_ALL, &(struct ava_log_query){.last = 50});
	assert_int_equal(c.rows[0].events, 50);
	count_fini(&c);
}

static void add(struct buf *b, uint64_t lsn, enum event_kind kind)
{
	encode(b, lsn, kind, "S-7f3a2b");
}

TEST(copies)
{
	struct count c;
	TEST_BUF(b, 1 << 20);

	add(&b, 1, EVENT_SubagentSpawn);
	add(&b, 2, EVENT_ToolCall);
	add(&b, 3, EVENT_SubagentComplete);
	add(&b, 5, EVENT_Waiting);
	unit_write(path_of("logs/subagents/S-7f3a2b.jsonl"), b.data, b.len);
	buf_reset(&b);
	add(&b, 1, EVENT_SubagentSpawn);
	add(&b, 3, EVENT_SubagentComplete);
	add(&b, 4, EVENT_SubagentSpawn);
	add(&b, 5, EVENT_Waiting);
	unit_write(path_of("logs/ava/2026-11-21.jsonl"), b.data, b.len);
	count(&c, COUNT_TYPE, &(struct ava_log_query){.everything = 1});
	assert_int_equal(find(&c, "SubagentSpawn")->events, 2);
	assert_int_equal(find(&c, "SubagentComplete")->events, 1);
	assert_int_equal(find(&c, "ToolCall")->events, 1);
	assert_int_equal(find(&c, "Waiting")->events, 1);
	count_fini(&c);
	count(&c, COUNT_DAY, &(struct ava_log_query){.everything = 1});
	assert_int_equal(c.n, 1);
	assert_int_equal(c.rows[0].events, 5);
	count_fini(&c);
}

/* The copy of an event was changed: it is one event, of one of both kinds. */
TEST(copies_differ)
{
	struct count c;
	TEST_BUF(b, 1 << 20);

	add(&b, 1, EVENT_SubagentSpawn);
	unit_write(path_of("logs/subagents/S-7f3a2b.jsonl"), b.data, b.len);
	memcpy(strstr(b.data, "SubagentSpawn"), "XubagentSpawn", 13);
	unit_write(path_of("logs/ava/2026-11-21.jsonl"), b.data, b.len);
	count(&c, COUNT_TYPE, &(struct ava_log_query){.everything = 1});
	assert_int_equal(c.n, 1);
	assert_int_equal(c.rows[0].events, 1);
	count_fini(&c);
}

static void print_count(struct buf *out, enum count_by by, const struct ava_log_query *q)
{
	struct count c;

	count(&c, by, q);
	for (size_t i = 0; i < c.n; i++)
		buf_addf(out, "%s %llu %llu %llu %llu %llu\n", c.rows[i].key,
			 (unsigned long long)c.rows[i].events,
			 (unsigned long long)c.rows[i].input_tokens,
			 (unsigned long long)c.rows[i].output_tokens,
			 (unsigned long long)c.rows[i].cost_microusd,
			 (unsigned long long)c.rows[i].uncosted);
	count_fini(&c);
}

/* What an index has summed up is what reading all gives, copies and all. */
TEST(index)
{
	static const enum event_kind kinds[] = {EVENT_ToolCall, EVENT_InferEnd, EVENT_Error,
						EVENT_InferEnd, EVENT_SubagentSpawn};
	static const struct ava_log_query questions[] = {
		{.everything = 1},
		{.everything = 0},
		{.everything = 1, .types = "infer,spawn,sub"},
		{.everything = 1, .since = "@1795248010", .until = "@1795248035"},
		{.everything = 1, .agent = "ava", .types = "tool,inferend"},
		{.everything = 1, .after = 777, .types = "sub"},
		{.everything = 1, .search = "no such text"},
	};
	static const enum count_by bys[] = {COUNT_ALL, COUNT_TYPE, COUNT_AGENT, COUNT_MODEL,
					    COUNT_DAY};
	TEST_BUF(got, 1 << 20);
	TEST_BUF(plain, 1 << 20);
	TEST_BUF(run, 64 << 20);
	TEST_BUF(day, 64 << 20);
	struct sys_ops ops = without_folders();

	for (uint64_t i = 1; i <= EVENTS; i++) {
		encode(&day, i, kinds[i % 5], i % 2 == 0 ? "ava" : "S-7f3a2b");
		if (i % 100 == 4)
			encode(&run, i, kinds[i % 5], i % 2 == 0 ? "ava" : "S-7f3a2b");
	}
	unit_write(path_of("logs/ava/2026-11-21.jsonl"), day.data, day.len);
	unit_write(path_of("logs/subagents/S-7f3a2b.jsonl"), run.data, run.len);
	for (int round = 0; round < 2; round++) {
		/* First no index can be stored. */
		sys = round == 0 ? &ops : &sys_real;
		for (size_t i = 0; i < ARRAY_LEN(questions); i++)
			for (size_t j = 0; j < ARRAY_LEN(bys); j++)
				print_count(round == 0 ? &plain : &got, bys[j], &questions[i]);
	}
	assert_int_equal(access(path_of("logs/index/feed"), F_OK), 0);
	assert_string_equal(got.data, plain.data);
}

/* The last kind and the names of a newer ava have one number in the index. */
TEST(unknown_kinds)
{
	static const struct ava_log_query questions[] = {
		{.everything = 1, .types = "Waiting"},
		{.everything = 1, .types = "ToolCall,Waiting"},
		{.everything = 1, .types = "ToolCall"},
		{.everything = 1},
	};
	static const size_t events[] = {EVENTS / 3, 2 * EVENTS / 3, EVENTS / 3, EVENTS};
	struct count c;
	TEST_BUF(b, 64 << 20);

	for (uint64_t i = 1; i <= EVENTS; i++) {
		size_t from = b.len;

		encode(&b, i, i % 3 == 0 ? EVENT_ToolCall : EVENT_Waiting, "ava");
		if (i % 3 == 1) /* as long, and no kind */
			memcpy(strstr(b.data + from, "Waiting"), "Walking", 7);
	}
	unit_write(path_of("logs/ava/2026-11-21.jsonl"), b.data, b.len);
	for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
		count(&c, COUNT_TYPE, &questions[i]);
		assert_int_equal(c.n, i == 3 ? 3 : i == 1 ? 2 : 1);
		for (size_t j = 0; j < c.n; j++)
			assert_int_equal(c.rows[j].events, EVENTS / 3);
		count_fini(&c);
		count(&c, COUNT_ALL, &questions[i]);
		assert_int_equal(c.rows[0].events, events[i]);
		count_fini(&c);
	}
	assert_int_equal(access(path_of("logs/index/feed"), F_OK), 0);
}

static int count_all(void)
{
	struct count_watch watch = {.broken = on_broken};
	struct ava_log_query q = {.root = root, .everything = 1};
	struct count c;
	int rv = count_events(&c, &q, COUNT_ROLE, &watch, NULL);

	if (rv == 0)
		count_fini(&c);
	return rv;
}

TEST(no_memory)
{
	static const char rows[] = "{\"row\":\"spawn\",\"id\":\"S-7f3a2b\",\"role\":\"r\"}\n";
	int rv = 0;

	test_copies(state);
	unit_write(path_of("catalog.jsonl"), rows, sizeof(rows) - 1);
	FAULT_LOOP(k, rv = count_all());
	assert_int_equal(rv, 0);
}

UNIT_GROUP(.before = make_root, .after = remove_root);

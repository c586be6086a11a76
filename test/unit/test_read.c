/* Reading logs without a daemon: merging by lsn, the last N from the end,
 * torn tails, broken lines, continuations, following while others write. */
#include "logs_root.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "journal/catalog.h"
#include "journal/wal.h"
#include "journal/read_root.h"

#define RUN     "S-7f3a2b"
#define RUN_LOG "logs/subagents/S-7f3a2b.jsonl"

/* The line of one event; `fill` bytes of text in its content. */
static void encode(struct buf *b, uint64_t lsn, enum event_kind kind, size_t fill)
{
	struct event_head head = head_of(lsn, kind, RUN);
	struct event_meta meta = EVENT_META_NONE;
	TEST_BUF(content, 64 << 20);

	head.trace_id = "brave-otter";
	buf_adds(&content, "{\"text\":\"");
	for (size_t i = 0; i < fill; i++)
		buf_addc(&content, 'x');
	buf_adds(&content, "\"}");
	assert_int_equal(event_encode(b, &head, content.data, content.len, &meta), 0);
}

static void add_kind(const char *name, uint64_t lsn, enum event_kind kind, size_t fill)
{
	TEST_BUF(b, 64 << 20);

	encode(&b, lsn, kind, fill);
	unit_append(path_of(name), b.data, b.len);
}

static void add(const char *name, uint64_t lsn)
{
	add_kind(name, lsn, EVENT_Activity, 10);
}

/* Everything a query gives, as "1 2 3", broken lines as "!". */
static const char *read_all(const struct ava_log_query *q)
{
	static char out[65536];
	struct ava_log_query query = *q;
	struct ava_log_event e;
	struct ava_error err = {0};
	struct ava_log *log;
	size_t len = 0;
	int rv;

	query.root = root;
	out[0] = '\0';
	rv = ava_log_open(&log, &query, &err);
	if (rv != 0) {
		snprintf(out, sizeof(out), "%s", err.text);
		return out;
	}
	while ((rv = ava_log_next(log, &e, &err)) != 0) {
		assert_true(rv == 1 || rv == AVA_ECORRUPT);
		if (rv == 1)
			len += (size_t)snprintf(out + len, sizeof(out) - len, "%s%llu",
						len > 0 ? " " : "", (unsigned long long)e.lsn);
		else
			len += (size_t)snprintf(out + len, sizeof(out) - len, "%s!",
						len > 0 ? " " : "");
	}
	assert_int_equal(ava_log_next(log, &e, &err), 0); /* the end stays the end */
	ava_log_close(log);
	return out;
}

TEST(one_file)
{
	struct ava_log_event e;
	struct ava_log *log;
	char *text;
	size_t len;

	for (uint64_t i = 1; i <= 3; i++)
		add(RUN_LOG, i);
	assert_string_equal(read_all(&(struct ava_log_query){.run = RUN}), "1 2 3");
	assert_string_equal(read_all(&(struct ava_log_query){.run = RUN, .after = 2}), "3");
	assert_string_equal(read_all(&(struct ava_log_query){.run = RUN, .after = 9}), "");

	/* The bytes are the file's, and the offset finds them again. */
	assert_int_equal(
		ava_log_open(&log, &(struct ava_log_query){.root = root, .run = RUN}, NULL), 0);
	text = unit_read(path_of(RUN_LOG), &len);
	while (ava_log_next(log, &e, NULL) == 1) {
		assert_memory_equal(text + e.offset, e.line, e.len);
		assert_int_equal(text[e.offset + e.len], '\n');
		assert_string_equal(e.type, "Activity");
		assert_string_equal(e.file, RUN_LOG);
		assert_int_equal(e.time_ms, 1795248000000 + (int64_t)e.lsn);
	}
	ava_log_close(log);
	free(text);
}

TEST(questions_refused)
{
	assert_string_equal(read_all(&(struct ava_log_query){.run = "S-x"}),
			    "\"S-x\" is not a run id (S-...)");
	assert_string_equal(read_all(&(struct ava_log_query){.run = RUN}),
			    "there is no log of S-7f3a2b");
	assert_string_equal(read_all(&(struct ava_log_query){0}), "nothing has been logged yet");
	assert_string_equal(read_all(&(struct ava_log_query){.types = "ToolCall,Nonsense"}),
			    "there is no event type \"Nonsense\"");
	unit_write(path_of("FORMAT"), "1\n", 2);
	assert_string_equal(
		read_all(&(struct ava_log_query){.run = RUN}),
		"the data root has format 1, this ava knows 2: use the one that wrote it");
	unit_write(path_of("FORMAT"), "x\n", 2);
	assert_string_equal(read_all(&(struct ava_log_query){.run = RUN}),
			    "the data root's FORMAT file holds no number");
}

TEST(merge)
{
	static const struct {
		const char *file;
		uint64_t lsn[5];
	} files[] = {
		{"logs/ava/2026-11-20.jsonl", {1, 2, 3}},
		{"logs/ava/2026-11-21.jsonl", {7, 8, 20}},
		{"logs/ava/2026-11-21.2.jsonl", {21}},
		{"logs/subagents/S-aaaaaa.jsonl", {2, 5, 9, 19}},
		{"logs/subagents/S-bbbbbb.jsonl", {4, 6, 20}},
		{"logs/subagents/notes.txt", {99}},
	};

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		for (size_t k = 0; k < 5 && files[i].lsn[k] != 0; k++)
			add_kind(files[i].file, files[i].lsn[k],
				 files[i].lsn[k] == 2 || files[i].lsn[k] == 20 ? EVENT_SubagentSpawn
									       : EVENT_Activity,
				 10);
	assert_string_equal(read_all(&(struct ava_log_query){0}), "1 2 3 7 8 20 21");
	/* The copies of 2 and 20 come once. */
	assert_string_equal(read_all(&(struct ava_log_query){.everything = 1}),
			    "1 2 3 4 5 6 7 8 9 19 20 21");
	assert_string_equal(read_all(&(struct ava_log_query){.everything = 1, .last = 4}),
			    "9 19 20 21");
	assert_string_equal(read_all(&(struct ava_log_query){.last = 1}), "21");
	assert_string_equal(read_all(&(struct ava_log_query){.last = 3}), "8 20 21");
	assert_string_equal(read_all(&(struct ava_log_query){.last = 5}), "3 7 8 20 21");
	assert_string_equal(read_all(&(struct ava_log_query){.last = 100}), "1 2 3 7 8 20 21");
}

/* Runs of one time are merged with few descriptors. */
TEST(many_runs)
{
	struct rlimit was, few;
	char name[64];

	for (uint64_t i = 1; i <= 200; i++) {
		snprintf(name, sizeof(name), "logs/subagents/S-%06x.jsonl", (unsigned)i);
		add(name, i);
		add(name, 1000 - i);
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = (struct rlimit){.rlim_cur = 60, .rlim_max = was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_string_equal(read_all(&(struct ava_log_query){.everything = 1, .last = 3}),
			    "997 998 999");
	assert_int_equal(strncmp(read_all(&(struct ava_log_query){.everything = 1}), "1 2 3 4 ", 8),
			 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
}

/* What is behind an lsn is found by halving the file, also around lines that
 * are broken or long. */
TEST(after_in_big)
{
	static const uint64_t afters[] = {1, 2, 700, 1499, 1500, 1501, 2222, 2998, 2999, 3000};

	for (uint64_t i = 1; i <= 3000; i++) {
		add_kind(RUN_LOG, i, EVENT_Activity, i == 1200 ? 300000 : 150);
		if (i == 1500)
			unit_append(path_of(RUN_LOG), "broken\n", 7);
	}
	for (size_t i = 0; i < ARRAY_LEN(afters); i++) {
		struct ava_log_query q = {.root = root, .run = RUN, .after = afters[i]};
		struct ava_log_event e;
		struct ava_log *log;
		uint64_t next = afters[i] + 1;
		int rv;

		assert_int_equal(ava_log_open(&log, &q, NULL), 0);
		while ((rv = ava_log_next(log, &e, NULL)) != 0)
			if (rv == 1)
				assert_int_equal(e.lsn, next++);
			else
				assert_int_equal(rv, AVA_ECORRUPT);
		assert_int_equal(next, 3001);
		ava_log_close(log);
	}
}

/* Filters are those of test_query.c; here: that they reach every file, and
 * that a literal is found across the borders of what is read at once. */
TEST(filters)
{
	char line[64], expected[64];

	for (uint64_t i = 1; i <= 300; i++)
		add_kind(i % 2 == 0 ? "logs/ava/2026-11-20.jsonl" : RUN_LOG, i, EVENT_Activity,
			 (size_t)i * 37 % 3000);
	snprintf(line, sizeof(line), ":00.%dZ", 211);
	snprintf(expected, sizeof(expected), "%d", 211);
	assert_string_equal(read_all(&(struct ava_log_query){.everything = 1, .search = line}),
			    expected);
	assert_string_equal(
		read_all(&(struct ava_log_query){.everything = 1, .regex = "\"lsn\":(7|29[78]),"}),
		"7 297 298");
	assert_string_equal(read_all(&(struct ava_log_query){
				    .everything = 1, .search = "xxx", .after = 297, .last = 2}),
			    "299 300");
	assert_string_equal(read_all(&(struct ava_log_query){.everything = 1,
							     .agent = "brave-otter",
							     .since = "2026-11-21T08:00:00.299Z"}),
			    "299 300");
	assert_string_equal(read_all(&(struct ava_log_query){.everything = 1, .agent = "ava"}), "");
	/* The day is left out unread: it is older than what is asked for. */
	unit_write(path_of("logs/ava/2026-11-01.jsonl"), "broken\n", 7);
	assert_string_equal(read_all(&(struct ava_log_query){.since = "2026-11-21T08:00:00.300Z"}),
			    "300");
	assert_string_equal(read_all(&(struct ava_log_query){.since = "2026-11-02T08:00:00.000Z",
							     .search = ":00.300Z"}),
			    "! 300");
}

TEST(continuations)
{
	add(RUN_LOG, 1);
	add("logs/subagents/S-7f3a2b.2.jsonl", 5);
	add("logs/subagents/S-7f3a2b.3.jsonl", 7);
	add("logs/subagents/S-7f3a2bc.jsonl", 3); /* another run */
	assert_string_equal(read_all(&(struct ava_log_query){.run = RUN}), "1 5 7");
	assert_string_equal(read_all(&(struct ava_log_query){.run = RUN, .last = 2}), "5 7");
	assert_int_equal(unlink(path_of(RUN_LOG)), 0); /* a person removed the first part */
	assert_string_equal(read_all(&(struct ava_log_query){.run = RUN}), "! 5 7");
	assert_string_equal(read_all(&(struct ava_log_query){.run = RUN, .last = 1}), "! 7");
	/* What a recovery made, with nothing in it yet. */
	assert_int_equal(unlink(path_of("logs/subagents/S-7f3a2b.3.jsonl")), 0);
	assert_int_equal(truncate(path_of("logs/subagents/S-7f3a2b.2.jsonl"), 0), 0);
	assert_string_equal(read_all(&(struct ava_log_query){.run = RUN}), "!");
}

/* `ava prune` removes a log that is being read: said once, not for each of its lines. */
TEST(removed_while_it_is_read)
{
	static const char other[] = "logs/subagents/S-00000a.jsonl";
	struct ava_log_query q = {.root = root, .everything = 1};
	struct ava_log_event e;
	struct ava_error err;
	struct ava_log *log;

	for (uint64_t i = 1; i <= 6; i++)
		add(i % 2 ? RUN_LOG : other, i);
	assert_int_equal(ava_log_open(&log, &q, &err), 0);
	assert_int_equal(unlink(path_of(other)), 0);
	assert_int_equal(ava_log_next(log, &e, &err), 1);
	assert_int_equal(e.lsn, 1);
	assert_int_equal(ava_log_next(log, &e, &err), AVA_ECORRUPT);
	assert_string_equal(err.text, "logs/subagents/S-00000a.jsonl is not there any more: it was "
				      "pruned, or removed, while it was read");
	for (uint64_t i = 3; i <= 5; i += 2) {
		assert_int_equal(ava_log_next(log, &e, &err), 1);
		assert_int_equal(e.lsn, i);
	}
	assert_int_equal(ava_log_next(log, &e, &err), 0);
	ava_log_close(log);
	assert_string_equal(read_all(&(struct ava_log_query){.everything = 1}), "1 3 5");
}

TEST(broken)
{
	static const char *const broken[] = {
		"\n",
		"nonsense\n",
		"{}\n",
		"{\"timestamp\":\"2026\n",
		"{\"timestamp\":\"2026-11-21T08:00:00.123Z\",\"lsn\":7,\"seq\":1,\"eventType\":"
		"\"Activity\"}\n",
		"{\"timestamp\":\"2026-11-21T08:00:00.123Z\",\"lsn\":,\"seq\":1,\"eventType\":"
		"\"Activity\"\n",
	};
	struct ava_log_event e;
	struct ava_error err;
	struct ava_log *log;
	char want[128];
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
		add(RUN_LOG, 1);
		stat(path_of(RUN_LOG), &st);
		unit_append(path_of(RUN_LOG), broken[i], strlen(broken[i]));
		add(RUN_LOG, 2);
		assert_string_equal(read_all(&(struct ava_log_query){.run = RUN}), "1 ! 2");
		/* Also when a filter would not have wanted it. */
		assert_string_equal(read_all(&(struct ava_log_query){.run = RUN, .types = "Error"}),
				    "!");
		assert_int_equal(
			ava_log_open(&log, &(struct ava_log_query){.root = root, .run = RUN}, &err),
			0);
		assert_int_equal(ava_log_next(log, &e, &err), 1);
		assert_int_equal(ava_log_next(log, &e, &err), AVA_ECORRUPT);
		snprintf(want, sizeof(want), RUN_LOG ":%llu: ", (unsigned long long)st.st_size);
		assert_memory_equal(err.text, want, strlen(want));
		ava_log_close(log);
		unlink(path_of(RUN_LOG));
	}
}

/* A log cut at every byte: exactly the whole lines, and a word on the rest. */
TEST(torn_everywhere)
{
	char *text;
	size_t len, first;

	add(RUN_LOG, 1);
	add(RUN_LOG, 2);
	text = unit_read(path_of(RUN_LOG), &len);
	first = (size_t)((char *)memchr(text, '\n', len) - text) + 1;
	for (size_t cut = 0; cut <= len; cut++) {
		const char *want = cut == 0       ? ""
				   : cut < first  ? "!"
				   : cut == first ? "1"
				   : cut < len    ? "1 !"
						  : "1 2";

		unit_write(path_of(RUN_LOG), text, cut);
		assert_string_equal(read_all(&(struct ava_log_query){.run = RUN}), want);
	}
	free(text);
}

/* Lines of all lengths around the block size, and one of several blocks. */
TEST(last_of_big)
{
	static const size_t fills[] = {0, 100, 65300, 65400, 65536, 131072, 1 << 20, 3, 70000};
	char want[4096];
	uint64_t n = 0;

	for (int round = 0; round < 40; round++)
		for (size_t i = 0; i < ARRAY_LEN(fills); i++)
			add_kind(RUN_LOG, ++n, i % 2 == 0 ? EVENT_ToolCall : EVENT_Activity,
				 round % 10 == 0 ? fills[i] : fills[i] / 100);
	for (uint64_t last = 1; last < 30; last++) {
		size_t len = 0;

		for (uint64_t i = n - last + 1; i <= n; i++)
			len += (size_t)snprintf(want + len, sizeof(want) - len, "%s%llu",
						len > 0 ? " " : "", (unsigned long long)i);
		assert_string_equal(read_all(&(struct ava_log_query){.run = RUN, .last = last}),
				    want);
	}
	assert_string_equal(
		read_all(&(struct ava_log_query){.run = RUN, .last = 3, .types = "Activity"}),
		"355 357 359");
}

static uint64_t next_lsn(struct ava_log *log)
{
	struct ava_log_event e;
	struct ava_error err;
	int rv;

	for (int tries = 0; tries < 50; tries++) {
		rv = ava_log_next(log, &e, &err);
		assert_true(rv >= 0);
		if (rv == 1)
			return e.lsn;
		ava_log_wait(log, 200);
	}
	return 0;
}

TEST(follow_run)
{
	struct ava_log_query q = {.root = root, .run = RUN, .follow = 1, .last = 1};
	struct ava_log_event e;
	struct ava_log *log;
	TEST_BUF(b, 1 << 20);

	add(RUN_LOG, 1);
	add(RUN_LOG, 2);
	assert_int_equal(ava_log_open(&log, &q, NULL), 0);
	assert_int_equal(next_lsn(log), 2);
	assert_int_equal(ava_log_next(log, &e, NULL), 0);
	assert_int_equal(ava_log_wait(log, 0), 0);
	add(RUN_LOG, 3);
	assert_int_equal(next_lsn(log), 3);
	/* Half a line is waited for, without a word. */
	encode(&b, 4, EVENT_Activity, 5);
	unit_append(path_of(RUN_LOG), b.data, 50);
	assert_int_equal(ava_log_next(log, &e, NULL), 0);
	unit_append(path_of(RUN_LOG), b.data + 50, b.len - 50);
	assert_int_equal(next_lsn(log), 4);
	/* After a recovery the run goes on in another file. */
	add("logs/subagents/S-7f3a2b.2.jsonl", 9);
	assert_int_equal(next_lsn(log), 9);
	add("logs/subagents/S-7f3a2b.2.jsonl", 10);
	add("logs/subagents/S-7f3a2b.3.jsonl", 11);
	assert_int_equal(next_lsn(log), 10);
	assert_int_equal(next_lsn(log), 11);
	ava_log_close(log);
}

TEST(follow_days)
{
	struct ava_log_query q = {.root = root, .follow = 1};
	struct ava_log_event e;
	struct ava_log *log;

	assert_int_equal(ava_log_open(&log, &q, NULL), 0); /* nothing yet */
	assert_int_equal(ava_log_next(log, &e, NULL), 0);
	add("logs/ava/2026-11-20.jsonl", 1);
	assert_int_equal(next_lsn(log), 1);
	add("logs/ava/2026-11-21.jsonl", 2); /* midnight */
	assert_int_equal(next_lsn(log), 2);
	add("logs/ava/2026-11-21.jsonl", 3);
	assert_int_equal(next_lsn(log), 3);
	ava_log_close(log);
}

/* All of it, through new runs and midnight; the copies of a spawn come once. */
TEST(follow_everything)
{
	struct ava_log_query q = {
		.root = root, .follow = 1, .everything = 1, .types = "sub,act,wait"};
	struct ava_log_event e;
	struct ava_log *log;

	add("logs/ava/2026-11-20.jsonl", 1);
	assert_int_equal(ava_log_open(&log, &q, NULL), 0);
	assert_int_equal(next_lsn(log), 1);
	assert_int_equal(ava_log_next(log, &e, NULL), 0);
	add_kind("logs/ava/2026-11-20.jsonl", 2, EVENT_SubagentSpawn, 1);
	assert_int_equal(next_lsn(log), 2);
	add("logs/ava/2026-11-20.jsonl", 3);
	assert_int_equal(next_lsn(log), 3);
	add_kind(RUN_LOG, 2, EVENT_SubagentSpawn, 1);
	add_kind(RUN_LOG, 4, EVENT_Error, 1);
	add_kind(RUN_LOG, 4, EVENT_Waiting, 1);
	add(RUN_LOG, 5);
	assert_int_equal(next_lsn(log), 4);
	assert_int_equal(next_lsn(log), 5);
	add_kind("logs/ava/2026-11-21.jsonl", 4, EVENT_Waiting, 1);
	add("logs/ava/2026-11-21.jsonl", 6);
	assert_int_equal(next_lsn(log), 6);
	add(RUN_LOG, 7); /* a file that was closed meanwhile */
	assert_int_equal(next_lsn(log), 7);
	add("logs/ava/2026-11-21.jsonl", 8);
	assert_int_equal(next_lsn(log), 8);
	ava_log_close(log);
}

/* In the day and in the run with one lsn: a run that waits, as its spawn and
 * its end. Others with one lsn were not written by us, and are all given. */
TEST(copies)
{
	struct ava_log_query q = {.root = root, .everything = 1};
	struct ava_log_event e;
	struct ava_log *log;

	add_kind("logs/ava/2026-11-20.jsonl", 1, EVENT_SubagentSpawn, 1);
	add_kind("logs/ava/2026-11-20.jsonl", 2, EVENT_Waiting, 1);
	add_kind("logs/ava/2026-11-20.jsonl", 3, EVENT_Activity, 1);
	add_kind(RUN_LOG, 1, EVENT_SubagentSpawn, 1);
	add_kind(RUN_LOG, 2, EVENT_Waiting, 1);
	add_kind(RUN_LOG, 3, EVENT_Error, 1);
	assert_int_equal(ava_log_open(&log, &q, NULL), 0);
	for (uint64_t lsn = 1; lsn <= 3; lsn++)
		assert_int_equal(next_lsn(log), lsn);
	assert_int_equal(next_lsn(log), 3);
	assert_int_equal(ava_log_next(log, &e, NULL), 0);
	ava_log_close(log);
}

TEST(follow_shortened)
{
	struct ava_log_query q = {.root = root, .run = RUN, .follow = 1};
	struct ava_log_event e;
	struct ava_error err;
	struct ava_log *log;

	add(RUN_LOG, 1);
	add(RUN_LOG, 2);
	assert_int_equal(ava_log_open(&log, &q, NULL), 0);
	assert_int_equal(next_lsn(log), 1);
	assert_int_equal(next_lsn(log), 2);
	assert_int_equal(truncate(path_of(RUN_LOG), 0), 0);
	assert_int_equal(ava_log_next(log, &e, &err), AVA_ECORRUPT);
	assert_non_null(strstr(err.text, "was cut to 0 bytes"));
	add(RUN_LOG, 3);
	assert_int_equal(next_lsn(log), 3);
	ava_log_close(log);
}

static int read_two_days(void)
{
	struct ava_log_query q = {.root = root, .last = 2};
	struct ava_log_event e;
	struct ava_log *log;
	int rv = ava_log_open(&log, &q, NULL);

	if (rv != 0)
		return rv;
	do
		rv = ava_log_next(log, &e, NULL);
	while (rv == 1);
	ava_log_close(log);
	return rv;
}

TEST(no_memory)
{
	int rv = 0;

	add("logs/ava/2026-11-20.jsonl", 1);
	add("logs/ava/2026-11-21.jsonl", 2);
	FAULT_LOOP(k, rv = read_two_days());
	assert_int_equal(rv, 0);
}

TEST(find_trace)
{
	struct catalog_row row = {.kind = CATALOG_SPAWN, .status = AVA_RUNNING};
	struct run_id run;
	struct ava_error err;
	int dirfd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	TEST_BUF(rows, 1 << 16);

	assert_int_equal(read_find_trace(dirfd, "brave-otter", &run, &err), AVA_ENOENT);
	for (row.lsn = 1; row.lsn <= 2; row.lsn++) {
		row.id = row.lsn == 1 ? "S-aaaaaa" : "S-bbbbbb";
		row.trace_id = row.lsn == 1 ? "brave-otter" : "brave-otter-2";
		assert_int_equal(catalog_encode(&rows, &row), 0);
	}
	unit_write(path_of("catalog.jsonl"), rows.data, rows.len);
	assert_int_equal(read_find_trace(dirfd, "brave-otter", &run, &err), 0);
	assert_string_equal(run.text, "S-aaaaaa");
	assert_int_equal(read_find_trace(dirfd, "brave-otter-2", &run, &err), 0);
	assert_string_equal(run.text, "S-bbbbbb");
	assert_int_equal(read_find_trace(dirfd, "brave-otter-3", &run, &err), AVA_ENOENT);
	assert_int_equal(read_find_trace(dirfd, "\",\"", &run, &err), AVA_ENOENT);
	close(dirfd);
}

static void mark_at(int dirfd, bool clean, uint64_t at)
{
	TEST_BUF(b, 65536);

	checkpoint_head(&b, clean, (struct wal_pos){8, at}, 7);
	assert_int_equal(checkpoint_end(&b), 0);
	assert_int_equal(checkpoint_write(dirfd, &b), 0);
}

static void mark(int dirfd, bool clean)
{
	mark_at(dirfd, clean, 12288);
}

/* A segment file with this number; 0: one that is not in use. */
static void segment(uint64_t seq)
{
	unsigned char page[WAL_BEGIN] = {0};

	if (seq > 0)
		wal_segment_put(page, &(struct wal_segment){.seq = seq, .size = 1 << 20});
	unit_write(path_of("wal/0000000000000001.seg"), page, sizeof(page));
}

TEST(clean_mark)
{
	int dirfd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_false(read_is_clean(dirfd));
	mark(dirfd, true);
	assert_true(read_is_clean(dirfd));
	segment(7); /* before the checkpoint */
	assert_true(read_is_clean(dirfd));
	segment(9); /* a daemon has begun one since */
	assert_false(read_is_clean(dirfd));
	segment(8); /* the one it ended in */
	assert_true(read_is_clean(dirfd));
	mark_at(dirfd, true, WAL_BEGIN); /* the next one is to be 8 */
	assert_false(read_is_clean(dirfd));
	segment(7);
	assert_true(read_is_clean(dirfd));
	segment(0);
	assert_true(read_is_clean(dirfd));
	mark(dirfd, false);
	assert_false(read_is_clean(dirfd));
	mark(dirfd, true);
	unit_append(path_of("wal/checkpoint"), "x", 1); /* its checksum is wrong now */
	assert_false(read_is_clean(dirfd));
	close(dirfd);
}

UNIT_GROUP(.before = make_root, .after = remove_root);

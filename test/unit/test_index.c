/* The index of the logs: stored and used it gives what the logs give; what
 * grew, came, went or was cut is seen; a line that is not what its row tells
 * of is told; damage of the index is never an answer. */
#include "logs_root.h"

#include <dirent.h>
#include <fcntl.h>

#include "base/sys.h"
#include "journal/read.h"

#define RUNS   70 /* more than are worth storing */
#define EVENTS 30000
#define DAY    "logs/ava/2026-11-21.jsonl"

static void encode(struct buf *b, uint64_t lsn, enum event_kind kind, const char *agent)
{
	char content[40];
	struct event_head head = head_of(lsn, kind, agent);
	struct event_meta meta = EVENT_META_NONE;

	head.session_id = lsn % 2 == 0 ? "even" : "odd";
	snprintf(content, sizeof(content), "{\"t\":\"n%llu\"}", (unsigned long long)lsn);
	assert_int_equal(event_encode(b, &head, content, strlen(content), &meta), 0);
}

static void run_name(unsigned run, char out[40])
{
	snprintf(out, 40, "logs/subagents/S-%06x.jsonl", 0xa00000 + run);
}

static void add(const char *name, uint64_t lsn, enum event_kind kind)
{
	TEST_BUF(b, 1 << 20);

	encode(&b, lsn, kind, "S-added1");
	unit_append(path_of(name), b.data, b.len);
}

/* EVENTS events in one day and RUNS runs, in turn; every other run has ended. */
static int setup(void **state)
{
	struct buf logs[RUNS + 1];
	char name[40];

	make_root(state);
	for (size_t i = 0; i <= RUNS; i++)
		buf_init(&logs[i], 64 << 20);
	for (uint64_t lsn = 1; lsn <= EVENTS; lsn++) {
		snprintf(name, sizeof(name), "S-%06x", (unsigned)(lsn % (RUNS + 1)));
		encode(&logs[lsn % (RUNS + 1)], lsn, lsn % 500 == 0 ? EVENT_Error : EVENT_Activity,
		       name);
	}
	for (unsigned i = 0; i < RUNS; i++) {
		if (i % 2 == 0)
			encode(&logs[i], EVENTS + i + 1, EVENT_SubagentComplete, "S-x");
		run_name(i, name);
		unit_append(path_of(name), logs[i].data, logs[i].len);
	}
	unit_append(path_of(DAY), logs[RUNS].data, logs[RUNS].len);
	for (size_t i = 0; i <= RUNS; i++)
		buf_fini(&logs[i]);
	return 0;
}

/* How many events, and lines that are told, a question has; a sum of their lsn. */
struct answer {
	uint64_t events, told, sum;
};

static struct answer ask(const struct ava_log_query *q)
{
	struct ava_log_query query = *q;
	struct ava_log_event e;
	struct ava_error err;
	struct answer a = {0};
	struct ava_log *log;
	uint64_t before = 0;
	int rv;

	query.root = root;
	query.everything = 1;
	assert_int_equal(ava_log_open(&log, &query, &err), 0);
	while ((rv = ava_log_next(log, &e, &err)) != 0) {
		assert_true(rv == 1 || rv == AVA_ECORRUPT);
		a.told += rv != 1;
		if (rv != 1)
			continue;
		assert_true(e.lsn > before);
		before = e.lsn;
		a.events++;
		a.sum += e.lsn;
	}
	ava_log_close(log);
	return a;
}

static bool stored(void)
{
	return access(path_of("logs/index/feed"), F_OK) == 0;
}

static void check_same(const struct answer *a, const struct answer *b)
{
	assert_int_equal(a->events, b->events);
	assert_int_equal(a->told, b->told);
	assert_int_equal(a->sum, b->sum);
}

static const struct ava_log_query questions[] = {
	{.types = "error"},
	{.types = "error,subagentcomplete", .last = 5},
	{.session = "odd", .since = "@1795248010", .until = "@1795248012"},
	{.agent = "S-000007"},
	{.search = "\"n29999\""},
	{.regex = "\"n(77|8123)\""},
	{.after = EVENTS - 10},
	{.since = "@0"},
};

TEST_WITH(stored_and_not, setup, remove_root)
{
	struct answer plain[ARRAY_LEN(questions)], got;
	struct sys_ops ops = without_folders();

	sys = &ops;
	for (size_t i = 0; i < ARRAY_LEN(questions); i++)
		plain[i] = ask(&questions[i]);
	sys = &sys_real;
	assert_int_equal(plain[0].events, EVENTS / 500);
	assert_int_equal(plain[7].events, EVENTS + RUNS / 2);
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
			got = ask(&questions[i]);
			check_same(&got, &plain[i]);
			assert_true(stored());
		}
}

TEST_WITH(what_changes, setup, remove_root)
{
	static const struct ava_log_query errors = {.types = "error"};
	struct answer a = ask(&errors), b;
	char name[40];

	run_name(1, name); /* goes on */
	add(name, EVENTS + 1000, EVENT_Error);
	b = ask(&errors);
	assert_int_equal(b.events, a.events + 1);
	add("logs/subagents/S-b00000.jsonl", EVENTS + 1001, EVENT_Error); /* comes */
	b = ask(&errors);
	assert_int_equal(b.events, a.events + 2);
	assert_int_equal(unlink(path_of("logs/subagents/S-b00000.jsonl")), 0); /* goes */
	b = ask(&errors);
	assert_int_equal(b.events, a.events + 1);
	assert_int_equal(truncate(path_of(name), 0), 0); /* is cut */
	add(name, EVENTS + 1002, EVENT_Error);
	b = ask(&(struct ava_log_query){.types = "error", .after = EVENTS});
	assert_int_equal(b.events, 1);
	assert_int_equal(b.told, 0);
}

/* A line of a run that has ended, changed by hand: told, then made anew. */
TEST_WITH(changed_line, setup, remove_root)
{
	static const struct ava_log_query errors = {.types = "error"};
	struct answer a = ask(&errors), b;
	uint64_t events, files;
	struct ava_error err;
	char name[40], *text;
	size_t len;

	run_name(1000 % (RUNS + 1), name); /* one that has ended, with an error */
	text = unit_read(path_of(name), &len);
	for (char *p = text; (p = strstr(p, "\"Error\"")) != NULL; p++)
		memcpy(p, "\"error\"", 7);
	unit_write(path_of(name), text, len);
	free(text);
	b = ask(&errors);
	assert_true(b.told > 0);
	assert_int_equal(b.told, a.events - b.events);
	assert_false(stored());
	assert_int_equal(read_reindex(root, &events, &files, &err), 0);
	assert_int_equal(events, EVENTS + RUNS / 2);
	assert_int_equal(files, RUNS + 1);
	assert_true(stored());
	b = ask(&errors);
	assert_int_equal(b.told, 0);
}

/* A byte of the index is another, anywhere, or its end is missing. */
TEST_WITH(damage, setup, remove_root)
{
	static const struct ava_log_query all = {.since = "@0"};
	struct answer plain = ask(&all), got;
	char *head;
	size_t len;

	head = unit_read(path_of("logs/index/feed"), &len);
	for (size_t at = 0; at < len; at += 1 + len / 16) {
		head[at] ^= 1;
		unit_write(path_of("logs/index/feed"), head, len);
		head[at] ^= 1;
		got = ask(&all);
		check_same(&got, &plain);
		unit_write(path_of("logs/index/feed"), head, len - at % 7 - 1);
		got = ask(&all);
		check_same(&got, &plain);
	}
	free(head);
}

TEST_WITH(damaged_rows, setup, remove_root)
{
	static const struct ava_log_query all = {.since = "@0"};
	struct answer plain = ask(&all), got;
	char path[600], *rows;
	struct {
		char magic[8];
		uint64_t generation;
	} head;
	size_t len;
	int fd = open(path_of("logs/index/feed"), O_RDONLY | O_CLOEXEC);

	assert_int_equal(read(fd, &head, sizeof(head)), sizeof(head));
	close(fd);
	snprintf(path, sizeof(path), "%s/logs/index/rows-%016llx", root,
		 (unsigned long long)head.generation);
	rows = unit_read(path, &len);
	rows[100] ^= 1; /* a kind of the first chunk */
	unit_write(path, rows, len);
	free(rows);
	got = ask(&all);
	check_same(&got, &plain);
	got = ask(&all);
	check_same(&got, &plain);
}

/* The index takes less than a twentieth of the logs, when lines are as long as real ones. */
TEST_WITH(small, make_root, remove_root)
{
	static const struct ava_log_query all = {.since = "@0"};
	struct event_meta meta = EVENT_META_NONE;
	char content[400], name[80];
	struct buf b;
	DIR *folder;
	struct stat st;
	off_t size = 0;

	snprintf(content, sizeof(content), "{\"t\":\"%0200d\"}", 7);
	buf_init(&b, 64 << 20);
	for (uint64_t lsn = 1; lsn <= 3 * INDEX_CHUNK; lsn++) {
		struct event_head head;

		snprintf(name, sizeof(name), "S-%06x", (unsigned)(lsn % 1000));
		head = head_of(lsn, EVENT_Activity, name);
		assert_int_equal(event_encode(&b, &head, content, strlen(content), &meta), 0);
	}
	unit_append(path_of(DAY), b.data, b.len);
	assert_int_equal(ask(&all).events, 3 * INDEX_CHUNK);
	folder = opendir(path_of("logs/index"));
	assert_non_null(folder);
	for (struct dirent *e; (e = readdir(folder));) {
		snprintf(name, sizeof(name), "logs/index/%.60s", e->d_name);
		assert_int_equal(stat(path_of(name), &st), 0);
		size += S_ISREG(st.st_mode) ? st.st_size : 0;
	}
	closedir(folder);
	assert_in_range(size, 100000, b.len / 20);
	buf_fini(&b);
}

/* The daemon's thread makes it too. */
TEST_WITH(kept, setup, remove_root)
{
	index_keep(root);
	for (int i = 0; i < 3000 && !stored(); i++)
		usleep(10000);
	assert_true(stored());
}

static uint64_t bytes_read;

static ssize_t pread_counted(int fd, void *buf, size_t len, off_t from)
{
	ssize_t n = sys_real.pread(fd, buf, len, from);

	bytes_read += n > 0 ? (uint64_t)n : 0;
	return n;
}

typedef int (*open_fn)(struct ava_log **, const struct ava_log_query *, struct ava_error *);

/* The events of a question to the daily logs: a digit each, the day that it is of. */
static uint64_t ask_days(open_fn open_days, const struct ava_log_query *q, char out[64])
{
	struct ava_log_query query = *q;
	struct ava_log_event e;
	struct ava_log *log;
	size_t n = 0;

	query.root = root;
	bytes_read = 0;
	assert_int_equal(open_days(&log, &query, NULL), 0);
	while (n < 63 && ava_log_next(log, &e, NULL) == 1)
		out[n++] = (char)('0' + e.lsn / 1000 % 10);
	out[n] = '\0';
	ava_log_close(log);
	return bytes_read;
}

/* Daily logs are read as far back as the question asks, however many there are. */
TEST_WITH(days_as_far_back_as_asked, make_root, remove_root)
{
	static struct sys_ops ops;
	uint64_t since = 0, after = 0, far, events, files, n;
	char got[64];

	ops = sys_real;
	ops.pread = pread_counted;
	sys = &ops;
	for (unsigned day = 20; day > 0; day--) {
		TEST_BUF(b, 1 << 20);
		char name[40];

		for (unsigned i = 0; i < 300; i++) {
			struct event_head head = head_of(day * 1000 + i, EVENT_Activity, "ava");
			struct event_meta meta = EVENT_META_NONE;

			head.kind = i >= 295 ? EVENT_Error : EVENT_Activity;
			head.wall_ms = 1793520000000 + day * INT64_C(86400000) + i * 1000;
			assert_int_equal(event_encode(&b, &head, "{}", 2, &meta), 0);
		}
		snprintf(name, sizeof(name), "logs/ava/2026-11-%02u.jsonl", day + 1);
		unit_append(path_of(name), b.data, b.len);
		if (day != 15 && day != 10 && day != 5)
			continue;
		n = ask_days(
			read_open_near,
			&(struct ava_log_query){.types = "error", .since = "2026-11-20T09:00:00Z"},
			got);
		assert_string_equal(got, "00000");
		assert_true(since == 0 || n == since);
		since = n;
		n = ask_days(read_open_near,
			     &(struct ava_log_query){.types = "error", .after = 20297}, got);
		assert_string_equal(got, "00");
		/* The end of each day tells that it is older: one block, read twice. */
		assert_true(after == 0 || n <= after + 5 * 2 * 4096);
		after = n;
		ask_days(read_open_near, &(struct ava_log_query){.types = "error", .after = 18298},
			 got);
		assert_string_equal(got, "89999900000");
	}
	/* Whoever asks for what may be far finds it by the stored index. */
	assert_int_equal(read_reindex(root, &events, &files, NULL), 0);
	assert_int_equal(events, 20 * 300);
	far = ask_days(read_open_near, &(struct ava_log_query){.types = "seal", .after = 1}, got);
	n = ask_days(ava_log_open, &(struct ava_log_query){.types = "seal", .after = 1}, got);
	assert_true(n < far / 3);
	sys = &sys_real;
}

/* What doc/QUERY.md says of its bytes. */
TEST(sizes)
{
	assert_int_equal(sizeof(struct index_file), 32);
	assert_int_equal(sizeof(struct index_who), 16);
	assert_int_equal(sizeof(struct index_chunk), 112);
	assert_int_equal(sizeof(struct index_row), 88);
	assert_int_equal(INDEX_CHUNK, 8192);
	assert_int_equal(INDEX_OTHER, 62);
	assert_int_equal(INDEX_BROKEN, 63);
}

static int ask_some(void)
{
	struct ava_log_query q = {.root = root, .everything = 1, .types = "error", .last = 2};
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

TEST_WITH(no_memory, setup, remove_root)
{
	int rv = 0;

	ask(&questions[0]);
	FAULT_LOOP(k, rv = ask_some());
	assert_int_equal(rv, 0);
}

/* The table of small logs: what it leaves out has nothing wanted in it,
 * whatever is done to the table or to the logs. */
#include "unit.h"

#include <ava.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/sys.h"
#include "base/util.h"
#include "event/event.h"
#include "journal/query_small.h"

#define FILES  80 /* more than QUERY_SMALL_LEAST */
#define T0     INT64_C(1795248000000)
#define CHUNKS (FILES / 4)

static char root[256];
static int rootfd;

/* A file system's clock of the tests' own, as old as it says; a changed file
 * gets another time by `versions`. */
static struct sys_ops aged;
static bool settled;
static int64_t versions[FILES];
static ino_t inodes[FILES];

static void age(struct stat *st)
{
	st->st_ctim.tv_sec = settled ? 1000000000 : clock_wall_ms() / 1000 + 1;
	st->st_ctim.tv_nsec = 7;
	for (size_t i = 0; i < FILES; i++)
		if (inodes[i] == st->st_ino)
			st->st_ctim.tv_sec += versions[i];
}

static int aged_fstat(int fd, struct stat *st)
{
	int rv = sys_real.fstat(fd, st);

	age(st);
	return rv;
}

static int aged_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	int rv = sys_real.fstatat(dirfd, path, st, flags);

	age(st);
	return rv;
}

static const char *path_of(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static const char *log_of(size_t i)
{
	static char name[64];

	snprintf(name, sizeof(name), "logs/subagents/S-%06zx.jsonl", i);
	return name;
}

static void add_event(struct buf *b, uint64_t lsn, size_t i, enum event_kind kind)
{
	char agent[24], session[24];
	struct event_head head = {.kind = kind,
				  .wall_ms = T0 + (int64_t)i * 60000 + (int64_t)lsn,
				  .lsn = lsn,
				  .seq = lsn,
				  .agent_id = agent,
				  .session_id = session,
				  .trace_id = i == 3 ? "brave-otter" : "calm-fox",
				  .user_id = "ben"};
	struct event_meta meta = EVENT_META_NONE;
	char content[3000];

	snprintf(agent, sizeof(agent), "S-%06zx", i);
	snprintf(session, sizeof(session), "s-%zu", i % 7);
	/* Some logs are long enough for a chunk. */
	snprintf(content, sizeof(content), "{\"a\":\"%0*zu\"}", i % 4 == 0 ? 2900 : 1, i);
	assert_int_equal(event_encode(b, &head, content, strlen(content), &meta), 0);
}

static void write_log(size_t i, enum event_kind kind, const char *more)
{
	struct stat st;
	struct buf b;

	buf_init(&b, 1 << 20);
	add_event(&b, i * 10 + 1, i, EVENT_SubagentSpawn);
	add_event(&b, i * 10 + 2, i, kind);
	add_event(&b, i * 10 + 3, i, i % 5 == 0 ? EVENT_Error : EVENT_Activity);
	buf_adds(&b, more);
	unit_write(path_of(log_of(i)), b.data, b.len);
	buf_fini(&b);
	assert_int_equal(stat(path_of(log_of(i)), &st), 0);
	inodes[i] = st.st_ino;
	versions[i]++;
}

static int setup(void **state)
{
	static const char *const dirs[] = {"logs", "logs/ava", "logs/subagents"};

	snprintf(root, sizeof(root), "%s", unit_tmpdir());
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		assert_int_equal(mkdir(path_of(dirs[i]), 0700), 0);
	rootfd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(rootfd >= 0);
	memset(versions, 0, sizeof(versions));
	for (size_t i = 0; i < FILES; i++)
		write_log(i, EVENT_ToolCall, "");
	aged = sys_real;
	aged.fstat = aged_fstat;
	aged.fstatat = aged_fstatat;
	sys = &aged;
	settled = true;
	return 0;
}

static int teardown(void **state)
{
	sys = &sys_real;
	close(rootfd);
	unit_rmdir(root);
	return 0;
}

static const struct ava_log_query questions[] = {
	{.everything = 1, .types = "Error"},
	{.everything = 1, .agent = "S-000013"},
	{.everything = 1, .agent = "brave-otter", .types = "tool"},
	{.everything = 1, .session = "s-3", .user = "ben"},
	{.everything = 1, .user = "nobody"},
	{.everything = 1, .since = "@1795249000", .until = "@1795249200"},
	{.everything = 1, .types = "ToolCall", .last = 5},
	{.everything = 1, .search = "calm-fox", .session = "s-1"},
	{.everything = 1},
};

/* Every event and every complaint. */
static char *answer(const struct ava_log_query *question)
{
	struct ava_log_query q = *question;
	struct ava_log_event e;
	struct ava_error err = {0};
	struct ava_log *log;
	struct buf out;
	int rv;

	buf_init(&out, 1 << 20);
	q.root = root;
	assert_int_equal(ava_log_open(&log, &q, &err), 0);
	while ((rv = ava_log_next(log, &e, &err)) != 0) {
		assert_true(rv == 1 || rv == AVA_ECORRUPT);
		if (rv == 1)
			buf_addf(&out, "%s:%llu %.*s\n", e.file, (unsigned long long)e.offset,
				 (int)e.len, e.line);
		else
			buf_addf(&out, "%s\n", err.text);
	}
	ava_log_close(log);
	assert_int_equal(buf_check(&out), 0);
	return buf_take(&out, NULL);
}

/* The answers without a table, which cannot be stored where a file is. */
static void plain(char *out[ARRAY_LEN(questions)])
{
	bool had = renameat(rootfd, "logs/index", rootfd, "aside") == 0;

	unit_write(path_of("logs/index"), "x", 1);
	for (size_t i = 0; i < ARRAY_LEN(questions); i++)
		out[i] = answer(&questions[i]);
	assert_int_equal(unlink(path_of("logs/index")), 0);
	if (had)
		assert_int_equal(renameat(rootfd, "aside", rootfd, "logs/index"), 0);
}

static void compare(char *want[ARRAY_LEN(questions)])
{
	for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
		char *got = answer(&questions[i]);

		assert_string_equal(got, want[i]);
		free(got);
	}
}

static void check(void)
{
	char *want[ARRAY_LEN(questions)];

	plain(want);
	compare(want);
	compare(want); /* now that there is a table */
	for (size_t i = 0; i < ARRAY_LEN(questions); i++)
		free(want[i]);
}

/* How many files the table leaves out for the question. */
static size_t left_out(const struct ava_log_query *question)
{
	struct query_spec spec = {.types = question->types,
				  .agent = question->agent,
				  .session = question->session,
				  .user = question->user,
				  .since = question->since,
				  .until = question->until};
	char paths[FILES][64];
	struct query_small *t;
	struct query q;
	struct query_small_told told;
	size_t n = 0;

	assert_int_equal(query_init(&q, &spec, NULL), 0);
	q.after = 1; /* so that no table is made */
	t = query_small_open(rootfd, &q, true);
	assert_non_null(t);
	for (size_t i = 0; i < FILES; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s", log_of(i));
		query_small_add(t, paths[i]);
	}
	query_small_find(t);
	for (size_t i = 0; i < FILES; i++) {
		query_small_tell(t, i, &told);
		n += told.left_out;
	}
	query_small_close(t);
	query_fini(&q);
	return n;
}

static void test_leaves_out(void **state)
{
	static const struct ava_log_query steering = {.types = "Steering"};

	assert_int_equal(left_out(&questions[1]), 0);
	check();
	assert_int_equal(left_out(&steering), FILES);
	assert_int_equal(left_out(&questions[0]), FILES - FILES / 5);
	assert_true(left_out(&questions[1]) >= FILES - 3); /* by chance one more fits */
	assert_true(left_out(&questions[5]) >= FILES - 4);
}

static void test_logs_change(void **state)
{
	check();
	write_log(5, EVENT_Steering, "");
	write_log(6, EVENT_Error, "no event\n");
	write_log(7, EVENT_Error, "{\"timestamp\":\"2026-");
	assert_int_equal(unlink(path_of(log_of(8))), 0);
	assert_int_equal(unlink(path_of(log_of(9))), 0);
	write_log(9, EVENT_Limit, "");
	check();
	for (size_t i = 0; i < FILES; i++)
		write_log(i, i % 2 == 0 ? EVENT_Error : EVENT_Limit, i == 20 ? "{}\n" : "");
	check();
	assert_int_equal(left_out(&questions[0]), 32); /* 40 Limit, 8 of them with an Error */
}

/* Files that changed just now are read, and get no row. */
static void test_unsettled(void **state)
{
	settled = false;
	check();
	assert_int_equal(left_out(&questions[4]), 0);
	assert_int_not_equal(access(path_of(QUERY_SMALL_PATH), F_OK), 0);
}

/* What an interrupted command left behind goes away with the next table; what
 * another is writing now does not. */
static void test_swept(void **state)
{
	static const char left[] = QUERY_SMALL_PATH ".1-1.tmp",
			  young[] = QUERY_SMALL_PATH ".1-2.tmp";
	struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};

	check();
	unit_write(path_of(left), "x", 1);
	unit_write(path_of(young), "x", 1);
	assert_int_equal(utimensat(AT_FDCWD, path_of(left), old, 0), 0);
	check(); /* nothing is missing: nothing is written */
	assert_int_equal(access(path_of(left), F_OK), 0);
	assert_int_equal(unlink(path_of(QUERY_SMALL_PATH)), 0);
	check();
	assert_int_equal(access(path_of(QUERY_SMALL_PATH), F_OK), 0);
	assert_int_not_equal(access(path_of(left), F_OK), 0);
	assert_int_equal(access(path_of(young), F_OK), 0);
}

/* Each byte of the table changed, one at a time. */
static void test_every_byte(void **state)
{
	size_t len, least;
	char *table, *want[ARRAY_LEN(questions)];
	int fd;

	check();
	plain(want);
	least = left_out(&questions[0]);
	table = unit_read(path_of(QUERY_SMALL_PATH), &len);
	assert_true(len > QUERY_SMALL_HEAD + FILES * QUERY_SMALL_ROW + CHUNKS * QUERY_INDEX_HEAD);
	fd = open(path_of(QUERY_SMALL_PATH), O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	for (size_t at = 0; at < len; at++) {
		char changed = (char)(table[at] ^ (1 << at % 8));

		assert_int_equal(pwrite(fd, &changed, 1, (off_t)at), 1);
		assert_true(left_out(&questions[0]) <= least);
		if (at > QUERY_SMALL_HEAD && at % 97 == 50) /* the table stays */
			compare(want);
		assert_int_equal(pwrite(fd, table + at, 1, (off_t)at), 1);
	}
	for (size_t cut = len; cut > 97; cut -= 97) {
		assert_int_equal(ftruncate(fd, (off_t)cut), 0);
		assert_true(left_out(&questions[0]) <= least);
	}
	close(fd);
	check();
	assert_int_equal(left_out(&questions[0]), least);
	for (size_t i = 0; i < ARRAY_LEN(questions); i++)
		free(want[i]);
	free(table);
}

/* Rows of files that were not asked about stay. */
static void test_days_alone(void **state)
{
	static const struct ava_log_query days = {.types = "Error"};
	struct ava_log_query q = days;
	struct ava_error err;
	struct ava_log *log;
	size_t before;

	check();
	before = left_out(&questions[0]);
	for (unsigned i = 0; i < QUERY_SMALL_LEAST; i++) {
		char name[64];
		struct buf b;

		buf_init(&b, 1 << 20);
		add_event(&b, 5000 + i, 1, EVENT_ToolCall);
		snprintf(name, sizeof(name), "logs/ava/20%02u-01-01.jsonl", i);
		unit_write(path_of(name), b.data, b.len);
		buf_fini(&b);
	}
	q.root = root;
	assert_int_equal(ava_log_open(&log, &q, &err), 0);
	ava_log_close(log);
	assert_int_equal(left_out(&questions[0]), before);
	check();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_leaves_out, setup, teardown),
		cmocka_unit_test_setup_teardown(test_logs_change, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unsettled, setup, teardown),
		cmocka_unit_test_setup_teardown(test_swept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_byte, setup, teardown),
		cmocka_unit_test_setup_teardown(test_days_alone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Questions whose lines are read ahead get what reading every line on its own
 * gives: the same lines in the order of their lsn, each once, and the same
 * complaints. With and without indexes, with logs that are damaged, with more
 * than is held, without memory. */
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
#include "journal/count.h"
#include "journal/query.h"
#include "journal/query_small.h"
#include "journal/read_scan.h"
#include "journal/read_wave.h"

#define LONGEST   ((size_t)14 << 20) /* so that a thread takes too much */
#define T0        INT64_C(1795248000000)
#define RUNS      90 /* more than QUERY_SMALL_LEAST */
#define LINES     2400
#define DAY       "logs/ava/2026-11-21.jsonl"
#define MAX_LINES 20000

static char root[256];

/* Logs look as if they had rested for long, so that indexes are made. */
static struct sys_ops aged;

static int aged_fstat(int fd, struct stat *st)
{
	int rv = sys_real.fstat(fd, st);

	st->st_ctim.tv_sec = 1000000000;
	return rv;
}

static int aged_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	int rv = sys_real.fstatat(dirfd, path, st, flags);

	st->st_ctim.tv_sec = 1000000000;
	return rv;
}

/* What a question opens and reads of the logs of runs. */
static unsigned runs_opened;
static uint64_t bytes_read;

static int counted_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	if (strstr(path, "S-") != NULL)
		__atomic_fetch_add(&runs_opened, 1, __ATOMIC_RELAXED);
	return sys_real.openat(dirfd, path, flags, mode);
}

static ssize_t counted_pread(int fd, void *buf, size_t len, off_t at)
{
	ssize_t n = sys_real.pread(fd, buf, len, at);

	if (n > 0)
		__atomic_fetch_add(&bytes_read, (uint64_t)n, __ATOMIC_RELAXED);
	return n;
}

static const char *path_of(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static const char *run_of(size_t i)
{
	static char name[64];

	snprintf(name, sizeof(name), "logs/subagents/S-%06zx.jsonl", i);
	return name;
}

static int setup(void **state)
{
	static const char *const dirs[] = {"logs", "logs/ava", "logs/subagents"};

	snprintf(root, sizeof(root), "%s", unit_tmpdir());
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		assert_int_equal(mkdir(path_of(dirs[i]), 0700), 0);
	aged = sys_real;
	aged.fstat = aged_fstat;
	aged.fstatat = aged_fstatat;
	aged.openat = counted_openat;
	aged.pread = counted_pread;
	sys = &aged;
	return 0;
}

static int teardown(void **state)
{
	sys = &sys_real;
	unit_rmdir(root);
	return 0;
}

static void add_event(struct buf *b, uint64_t lsn, const char *agent, enum event_kind kind,
		      size_t fill)
{
	static char content[LONGEST + 100];
	struct event_head head = {.kind = kind,
				  .wall_ms = T0 + (int64_t)lsn * 1000,
				  .lsn = lsn,
				  .seq = lsn,
				  .agent_id = agent,
				  .session_id = lsn % 3 == 0 ? "s-0" : "s-1",
				  .trace_id = agent,
				  .user_id = "ben"};
	struct event_meta meta = EVENT_META_NONE;

	memset(content, 'x', fill);
	snprintf(content + fill, sizeof(content) - fill, "%s\"}",
		 lsn % 131 == 0 ? " Xylophone" : "");
	memcpy(content, "{\"t\":\"", 6);
	assert_int_equal(event_encode(b, &head, content, strlen(content), &meta), 0);
}

static const enum event_kind kinds[] = {EVENT_SubagentSpawn, EVENT_ToolCall, EVENT_InferEnd,
					EVENT_Error,         EVENT_Activity, EVENT_ToolResult};

/* Every third event is the day's, of 8 KB and more so that it has chunks; the
 * others of a run each; spawns stand in both. All runs overlap. */
static void make_logs(void)
{
	struct buf day, run[RUNS];

	buf_init(&day, 64 << 20);
	for (size_t i = 0; i < RUNS; i++)
		buf_init(&run[i], 1 << 20);
	for (uint64_t lsn = 1; lsn <= LINES; lsn++) {
		size_t i = (size_t)(lsn / 3) % RUNS;
		enum event_kind kind = kinds[lsn % ARRAY_LEN(kinds)];
		char agent[24];

		snprintf(agent, sizeof(agent), "S-%06zx", i);
		if (lsn % 3 == 0 || kind == EVENT_SubagentSpawn)
			add_event(&day, lsn, lsn % 3 == 0 ? "ava" : agent, kind, 12000);
		if (lsn % 3 != 0)
			add_event(&run[i], lsn, agent, kind,
				  kind == EVENT_SubagentSpawn ? 12000 : 20 + i * 9);
	}
	unit_write(path_of(DAY), day.data, day.len);
	for (size_t i = 0; i < RUNS; i++) {
		if (run[i].len > 0)
			unit_write(path_of(run_of(i)), run[i].data, run[i].len);
		buf_fini(&run[i]);
	}
	buf_fini(&day);
}

/* ---- the same, read without any of it */

struct naive {
	struct {
		uint64_t lsn;
		char *line;
	} v[MAX_LINES];
	size_t n, broken;
};

static void naive_file(struct naive *out, const char *name, const struct query *q)
{
	struct event_view v;
	size_t len;
	char *text = unit_read(path_of(name), &len), *end;

	for (char *line = text; line < text + len; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text + len - line));
		if (end == NULL || event_view(line, (size_t)(end - line), &v) != 0) {
			out->broken++;
			if (end == NULL)
				break;
			continue;
		}
		if (query_line(q, line, (size_t)(end - line), false, &v) != QUERY_YES)
			continue;
		assert_true(out->n < MAX_LINES);
		*end = '\0';
		out->v[out->n].lsn = v.lsn;
		out->v[out->n++].line = strdup(line);
	}
	free(text);
}

static int by_lsn(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static char *naive_answer(const struct ava_log_query *question, size_t *broken)
{
	static struct naive all;
	struct query_spec spec = {.types = question->types,
				  .agent = question->agent,
				  .session = question->session,
				  .user = question->user,
				  .since = question->since,
				  .until = question->until,
				  .search = question->search,
				  .regex = question->regex,
				  .after = question->after,
				  .now_ms = clock_wall_ms()};
	struct query q;
	struct buf out;

	all.n = all.broken = 0;
	buf_init(&out, 128 << 20);
	assert_int_equal(query_init(&q, &spec, NULL), 0);
	if (access(path_of(DAY), F_OK) == 0)
		naive_file(&all, DAY, &q);
	for (size_t i = 0; i < RUNS; i++)
		if (access(path_of(run_of(i)), F_OK) == 0)
			naive_file(&all, run_of(i), &q);
	query_fini(&q);
	qsort(all.v, all.n, sizeof(*all.v), by_lsn);
	for (size_t i = 0; i < all.n; i++) {
		if (i == 0 || all.v[i].lsn != all.v[i - 1].lsn)
			buf_addf(&out, "%s\n", all.v[i].line);
		free(all.v[i].line);
	}
	*broken = all.broken;
	assert_int_equal(buf_check(&out), 0);
	return buf_take(&out, NULL);
}

/* ---- the reader */

static bool in_file(const struct ava_log_event *e)
{
	static char text[LONGEST + 1000]; /* no malloc: it may be one that fails */
	int fd = open(path_of(e->file), O_RDONLY | O_CLOEXEC);
	bool same = fd >= 0 && e->len <= sizeof(text) &&
		    pread(fd, text, e->len, (off_t)e->offset) == (ssize_t)e->len &&
		    memcmp(text, e->line, e->len) == 0;

	close(fd);
	return same;
}

/* 0 or a code; *broken: how many complaints. */
static int answer(const struct ava_log_query *question, struct buf *out, size_t *broken)
{
	struct ava_log_query q = *question;
	struct ava_error err = {0};
	struct ava_log_event e;
	struct ava_log *log;
	int rv;

	q.root = root;
	*broken = 0;
	rv = ava_log_open(&log, &q, &err);
	if (rv != 0)
		return rv;
	while ((rv = ava_log_next(log, &e, &err)) == 1 || rv == AVA_ECORRUPT) {
		if (rv == AVA_ECORRUPT)
			(*broken)++;
		else
			buf_addf(out, "%.*s\n", (int)e.len, e.line);
		if (rv == 1)
			assert_true(in_file(&e));
	}
	ava_log_close(log);
	return rv;
}

static const struct ava_log_query questions[] = {
	{.everything = 1, .types = "Error"},
	{.everything = 1, .types = "spawn,tool"},
	{.everything = 1, .agent = "S-000013"},
	{.everything = 1, .agent = "ava", .types = "tool"},
	{.everything = 1, .session = "s-0", .user = "ben"},
	{.everything = 1, .user = "ben"},
	{.everything = 1, .user = "nobody"},
	{.everything = 1, .since = "@1795248900", .until = "@1795249500"},
	{.everything = 1, .search = "xylophone"},
	{.everything = 1, .search = "Xylophone", .types = "error,infer"},
	{.everything = 1, .regex = "Xylo[a-z]+\"", .after = 700},
	{.everything = 1, .types = "Error", .after = 1203},
};

static void compare(void)
{
	for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
		size_t want_broken, got_broken;
		char *want = naive_answer(&questions[i], &want_broken);
		struct buf got;

		buf_init(&got, 128 << 20);
		assert_int_equal(answer(&questions[i], &got, &got_broken), 0);
		assert_string_equal(got.len > 0 ? got.data : "", want);
		assert_int_equal(got_broken, want_broken);
		buf_fini(&got);
		free(want);
	}
}

/* Without indexes, with what the first question makes, and with all of it. */
static void check(void)
{
	unit_write(path_of("logs/index"), "x", 1); /* no folder can be made */
	compare();
	assert_int_equal(unlink(path_of("logs/index")), 0);
	compare();
	compare();
	assert_int_equal(access(path_of("logs/index/small"), F_OK), 0);
}

static void test_same(void **state)
{
	make_logs();
	check();
}

static void append(const char *name, const char *text)
{
	int fd = open(path_of(name), O_WRONLY | O_APPEND | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void spoil(const char *name, off_t at)
{
	int fd = open(path_of(name), O_RDWR | O_CLOEXEC);
	char text[16 << 10], *nl;

	assert_true(fd >= 0);
	assert_true(pread(fd, text, sizeof(text), at) > 0);
	nl = memchr(text, '\n', sizeof(text));
	assert_non_null(nl); /* the byte that begins the next line */
	assert_int_equal(pwrite(fd, "?", 1, at + (nl - text) + 1), 1);
	close(fd);
}

static void test_damaged(void **state)
{
	make_logs();
	spoil(DAY, 5 << 20);
	spoil(run_of(7), 0);
	append(run_of(11), "{\"timestamp\":\"2026-11-2");
	append(run_of(12), "no event\n");
	append(DAY, "{\"timestamp\":");
	check();
}

/* A log that changes when its index is known is read as it is then. */
static void test_changed(void **state)
{
	struct buf b;

	make_logs();
	check();
	buf_init(&b, 1 << 20);
	add_event(&b, LINES + 1, "S-000013", EVENT_Error, 200);
	append(run_of(0x13), b.data);
	buf_reset(&b);
	add_event(&b, LINES + 2, "ava", EVENT_Error, 200);
	append(DAY, b.data);
	buf_fini(&b);
	assert_int_equal(unlink(path_of(run_of(3))), 0);
	compare();
}

/* More wanted lines than one batch may hold. */
static void test_too_much(void **state)
{
	const struct ava_log_query question = {.everything = 1, .search = "xxx"};
	size_t broken, want_broken;
	char *want;
	struct buf b, got;

	buf_init(&b, 256 << 20);
	buf_init(&got, 256 << 20);
	for (uint64_t lsn = 1; b.len < 2 * READ_AHEAD_MAX + (20 << 20); lsn++)
		add_event(&b, lsn, "ava", EVENT_ToolCall, LONGEST);
	unit_write(path_of(DAY), b.data, b.len);
	buf_fini(&b);
	want = naive_answer(&question, &want_broken);
	for (int i = 0; i < 2; i++) {
		buf_reset(&got);
		assert_int_equal(answer(&question, &got, &broken), 0);
		assert_int_equal(broken, want_broken);
		assert_true(strcmp(got.data, want) == 0); /* 80 MB: not to be printed */
	}
	buf_fini(&got);
	free(want);
}

struct seen {
	uint64_t done, total;
};

static void on_progress(uint64_t done, uint64_t total, void *user)
{
	assert_true(done <= total);
	*(struct seen *)user = (struct seen){done, total};
}

/* Reads all, with so many bytes of lines held elsewhere. Did others wait? */
static bool read_counted(const struct ava_log_query *question, size_t held)
{
	struct ava_log_query q = *question;
	struct seen seen = {0, 0};
	struct ava_error err = {0};
	struct ava_log_event e;
	struct ava_log *log;
	bool more = false;
	int rv;

	q.root = root;
	assert_int_equal(ava_log_open(&log, &q, &err), 0);
	log->held = held;
	read_progress(log, on_progress, &seen);
	while ((rv = ava_log_next(log, &e, &err)) == 1 || rv == AVA_ECORRUPT)
		more = more || log->held > held;
	assert_int_equal(rv, 0);
	assert_int_equal(log->held, held); /* what was held is let go of */
	assert_true(!more || held <= READ_HELD);
	/* It is told every 256 KB. */
	assert_true(seen.done + (256 << 10) >= seen.total);
	ava_log_close(log);
	return more;
}

/* What waits of a large log counts like what waits of small ones, and what is
 * told of the way is the way. */
static void test_held(void **state)
{
	static const struct ava_log_query days[] = {{.search = "xxx", .types = "Error"},
						    {.regex = "xx+"}};
	size_t held[] = {0, READ_HELD + 1};

	make_logs();
	compare(); /* the indexes are there */
	spoil(run_of(11), 0);
	spoil(run_of(13), 0);
	for (size_t i = 0; i < ARRAY_LEN(held); i++) {
		for (size_t j = 0; j < ARRAY_LEN(days); j++)
			assert_int_equal(read_counted(&days[j], held[i]), i == 0);
		for (size_t j = 0; j < ARRAY_LEN(questions); j++)
			if (questions[j].user == NULL || strcmp(questions[j].user, "nobody") != 0)
				read_counted(&questions[j], held[i]);
	}
	spoil(DAY, 5 << 20);
	for (size_t j = 0; j < ARRAY_LEN(days); j++)
		read_counted(&days[j], 0);
}

/* Runs whose log is long enough for a chunk. */
static unsigned chunked(void)
{
	struct stat st;
	unsigned n = 0;

	for (size_t i = 0; i < RUNS; i++)
		n += stat(path_of(run_of(i)), &st) == 0 &&
		     (uint64_t)st.st_size >= QUERY_SMALL_CHUNK;
	return n;
}

/* Counting opens no log whose index has the sums, copies of spawns included;
 * and of the others not all is read when one kind of line is wanted. */
static void test_little_is_read(void **state)
{
	static const struct ava_log_query all = {.everything = 1};
	static const struct ava_log_query calls = {.everything = 1, .types = "ToolCall"};
	struct count_watch watch = {0};
	struct ava_log_query q = all;
	struct ava_error err = {0};
	struct count c;
	size_t broken;
	struct stat st;
	uint64_t logs = 0;
	struct buf got;

	make_logs();
	compare(); /* the indexes are there */
	for (size_t i = 0; i < RUNS; i++)
		if (stat(path_of(run_of(i)), &st) == 0)
			logs += st.st_size >= (off_t)QUERY_SMALL_CHUNK ? (uint64_t)st.st_size : 0;
	q.root = root;
	runs_opened = 0;
	assert_int_equal(count_events(&c, &q, COUNT_TYPE, &watch, &err), 0);
	assert_int_equal(runs_opened, RUNS - chunked());
	for (size_t i = 0; i < c.n; i++)
		if (strcmp(c.rows[i].key, "SubagentSpawn") == 0)
			assert_int_equal(c.rows[i].events, LINES / ARRAY_LEN(kinds));
	count_fini(&c);

	buf_init(&got, 64 << 20);
	bytes_read = 0;
	assert_int_equal(answer(&calls, &got, &broken), 0);
	/* Lines between them that are nearer than 8 KB are read along. */
	assert_true(got.len > 0 && bytes_read < logs / 4 * 3);
	buf_fini(&got);
}

static void test_without_memory(void **state)
{
	static const struct ava_log_query question = {
		.everything = 1, .types = "Error", .user = "ben"};
	size_t broken;
	char *want;

	make_logs();
	compare(); /* the indexes are there */
	want = naive_answer(&question, &broken);
	FAULT_LOOP(k, {
		struct buf got;
		int rv;

		buf_init(&got, 64 << 20);
		rv = answer(&question, &got, &broken);
		if (rv == 0 && buf_check(&got) == 0)
			assert_string_equal(got.data, want);
		else
			assert_true(rv == AVA_ENOMEM || buf_check(&got) == AVA_ENOMEM);
		buf_fini(&got);
	});
	free(want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_same, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_changed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_much, setup, teardown),
		cmocka_unit_test_setup_teardown(test_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_little_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

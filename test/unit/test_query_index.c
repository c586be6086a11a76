/* The block index of a log: its bytes are those of the golden file, what it
 * leaves out is never wanted, and whatever is done to it or to the log, the
 * answers are those of reading all. */
#include "unit.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "event/event.h"
#include "journal/query_build.h"
#include "journal/query_cover.h"
#include "journal/query_store.h"
#include "journal/read_file.h"

#define LOG       "logs/ava/2026-11-21.jsonl"
#define INDEX     "logs/index/ava+2026-11-21.jsonl.ix"
#define T0        INT64_C(1795248000000)
#define BIG       ((size_t)1 << 20)
#define GOLDEN_AT 8388608
#define OUT_MAX   ((size_t)1 << 20)

static char root[256];
static int rootfd;

/* A file system's clock of the tests' own: what was changed has a time that
 * was not there before, and all of it long ago or right now. */
static struct sys_ops aged;
static int64_t version;
static bool settled;

static int aged_fstat(int fd, struct stat *st)
{
	int rv = sys_real.fstat(fd, st);

	st->st_ctim.tv_sec = settled ? 1000000000 + version : clock_wall_ms() / 1000 + 1;
	st->st_ctim.tv_nsec = 7;
	return rv;
}

static const char *path_of(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static int setup(void **state)
{
	static const char *const dirs[] = {"logs", "logs/ava", "logs/subagents"};

	snprintf(root, sizeof(root), "%s", unit_tmpdir());
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		assert_int_equal(mkdir(path_of(dirs[i]), 0700), 0);
	rootfd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(rootfd >= 0);
	aged = sys_real;
	aged.fstat = aged_fstat;
	sys = &aged;
	settled = true;
	version = 1;
	return 0;
}

static int teardown(void **state)
{
	sys = &sys_real;
	close(rootfd);
	unit_rmdir(root);
	return 0;
}

/* ---- logs */

static const enum event_kind some_kinds[] = {EVENT_ToolCall, EVENT_ToolResult, EVENT_InferEnd,
					     EVENT_Error, EVENT_Activity};

static void add_event(struct buf *b, uint64_t lsn, size_t fill)
{
	char agent[24], session[24];
	struct event_head head = {.kind = some_kinds[lsn * 7 % 11 % ARRAY_LEN(some_kinds)],
				  .wall_ms = T0 + (int64_t)lsn * 1000,
				  .lsn = lsn,
				  .seq = lsn,
				  .agent_id = agent,
				  .session_id = session,
				  .trace_id = lsn % 3 == 0 ? "brave-otter" : "calm-fox",
				  .user_id = "ben"};
	struct event_meta meta = EVENT_META_NONE;
	struct buf content;

	snprintf(agent, sizeof(agent), "S-%06u", (unsigned)(lsn % 5));
	snprintf(session, sizeof(session), "s-%u", (unsigned)(lsn % 2));
	buf_init(&content, 4 * BIG);
	buf_addf(&content, "{\"text\":\"%s", lsn % 13 == 0 ? "Xylophone " : "");
	for (size_t i = 0; i < fill; i++)
		buf_addc(&content, 'x');
	buf_adds(&content, "\"}");
	assert_int_equal(event_encode(b, &head, content.data, content.len, &meta), 0);
	buf_fini(&content);
}

static void append(const char *name, const void *bytes, size_t len)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
	version++;
}

static void poke(const char *name, off_t at, const void *bytes, size_t len)
{
	int fd = open(path_of(name), O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, len, at), len);
	close(fd);
	version++;
}

/* Two chunks and a rest, of few lines, so that the index is small. The rest is
 * a third chunk as soon as the log rests. */
static void add_events(uint64_t from, size_t small, size_t big)
{
	struct buf b;

	buf_init(&b, 64 * BIG);
	for (size_t i = 0; i < small + big; i++)
		add_event(&b, from + i, i < small ? 40 : BIG);
	append(LOG, b.data, b.len);
	buf_fini(&b);
}

static void make_log(void)
{
	add_events(1, 30, 4);
	add_events(35, 20, 5);
}

/* ---- answers */

static const struct query_spec questions[] = {
	{.types = "Error"},
	{.agent = "S-000003"},
	{.agent = "brave-otter", .types = "tool"},
	{.session = "s-1", .user = "ben"},
	{.session = "s-2"},
	{.since = "@1795248040", .until = "@1795248050"},
	{.search = "xylophone"},
	{.search = "Xylophone", .types = "Activity,InferEnd"},
	{.regex = "Xylo[a-z]+"},
	{.until = "@1795247999"},
};

enum how { PLAIN, USE, MAKE };

/* Every line and every complaint, in order, with its place. */
static char *answer(const struct query_spec *spec, enum how how)
{
	struct ava_error err = {0};
	struct read_line line;
	struct read_file f;
	struct query q;
	struct buf out;
	int rv;

	buf_init(&out, OUT_MAX);
	assert_int_equal(query_init(&q, spec, &err), 0);
	assert_int_equal(read_file_open(&f, rootfd, LOG, false, &err), 0);
	if (how != PLAIN)
		read_file_use_index(&f, rootfd, &q, how == MAKE);
	while ((rv = read_file_next(&f, &q, &line, &err)) != 0) {
		if (rv == 1)
			buf_addf(&out, "%llu+%zu %08x\n", (unsigned long long)line.offset, line.len,
				 crc32c(0, line.text, line.len));
		else
			buf_addf(&out, "%s\n", err.text);
	}
	buf_addf(&out, "torn %zu at %llu\n", read_file_torn(&f), (unsigned long long)f.offset);
	read_file_close(&f);
	query_fini(&q);
	assert_int_equal(buf_check(&out), 0);
	return buf_take(&out, NULL);
}

/* Where the last n wanted lines begin, how many there are, and their lsn. */
static char *answer_last(const struct query_spec *spec, uint64_t n, enum how how)
{
	struct ava_error err = {0};
	struct read_lsns lsns = {0};
	struct read_file f;
	struct query q;
	struct buf out;
	uint64_t count, first;

	buf_init(&out, OUT_MAX);
	assert_int_equal(query_init(&q, spec, &err), 0);
	assert_int_equal(read_file_open(&f, rootfd, LOG, false, &err), 0);
	if (how != PLAIN)
		read_file_use_index(&f, rootfd, &q, how == MAKE);
	assert_int_equal(read_file_last(&f, &q, n, 0, &count, &first, &lsns, &err), 0);
	buf_addf(&out, "%llu at %llu, lsn %llu:", (unsigned long long)count,
		 (unsigned long long)f.offset, (unsigned long long)(count > 0 ? first : 0));
	for (size_t i = 0; i < lsns.n; i++)
		buf_addf(&out, " %llu", (unsigned long long)lsns.v[i]);
	free(lsns.v);
	read_file_close(&f);
	query_fini(&q);
	return buf_take(&out, NULL);
}

static void check_last(enum how how)
{
	static const uint64_t counts[] = {1, 2, 7, 1000};

	for (size_t i = 0; i < ARRAY_LEN(questions); i++)
		for (size_t j = 0; j < ARRAY_LEN(counts); j++) {
			char *plain = answer_last(&questions[i], counts[j], PLAIN);
			char *got = answer_last(&questions[i], counts[j], how);

			assert_string_equal(got, plain);
			free(plain);
			free(got);
		}
}

static void check(enum how how)
{
	for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
		char *plain = answer(&questions[i], PLAIN), *got = answer(&questions[i], how);

		assert_string_equal(got, plain);
		free(plain);
		free(got);
	}
}

/* Chunks in the stored index, and whether it names the log as it is now. */
static size_t look(bool *marked)
{
	struct query_cover c = {.fd = open(path_of(INDEX), O_RDONLY | O_CLOEXEC)};
	struct query_mark mark = {0};
	struct stat st;
	size_t n;

	assert_int_equal(stat(path_of(LOG), &st), 0);
	if (c.fd >= 0)
		query_store_load(&c, (uint64_t)st.st_size, &mark);
	n = c.n;
	*marked = mark.inode == st.st_ino && mark.size == (uint64_t)st.st_size;
	if (c.fd >= 0)
		close(c.fd);
	free(c.chunks);
	return n;
}

static void expect(size_t chunks, bool marked)
{
	bool got;

	assert_int_equal(look(&got), chunks);
	assert_int_equal(got, marked);
}

static void make_index(void)
{
	check(MAKE);
	expect(3, true);
}

/* ---- tests */

static void test_golden(void **state)
{
	size_t len, hex_len;
	char *log = unit_read_src("test/golden/index/log.jsonl", &len), text[3];
	char *hex = unit_read_src("test/golden/index/chunk.hex", &hex_len);
	struct query_index_head head, again;
	struct buf made, got;

	buf_init(&made, BIG);
	buf_init(&got, BIG);
	assert_int_equal(query_build(&made, log, len, GOLDEN_AT, QUERY_INDEX_BLOCK), 0);
	for (size_t i = 0; i < made.len; i++) {
		snprintf(text, sizeof(text), "%02x", (unsigned char)made.data[i]);
		buf_adds(&got, text);
		if (i % 32 == 31 || i + 1 == made.len)
			buf_addc(&got, '\n');
	}
	assert_string_equal(got.data, hex);
	assert_true(query_index_head_get((unsigned char *)made.data, &head));
	assert_int_equal(query_index_size(&head), made.len);
	query_index_head_put((unsigned char *)got.data, &head);
	assert_true(query_index_head_get((unsigned char *)got.data, &again));
	assert_memory_equal(got.data, made.data, QUERY_INDEX_HEAD);
	buf_fini(&made);
	buf_fini(&got);
	free(log);
	free(hex);
}

static void test_made_and_used(void **state)
{
	make_log();
	check(USE);
	expect(0, false);
	make_index();
	check(USE);
	check_last(USE);
}

/* Nothing is read twice for a question that the index answers with "no". */
static uint64_t bytes_read;
static void count_bytes(size_t bytes, void *user)
{
	bytes_read += bytes;
}

static void test_spares(void **state)
{
	struct query_spec none = {.session = "nobody"};
	struct ava_error err = {0};
	struct read_line line;
	struct read_file f;
	struct query q;
	struct query_gap gap;
	struct query_walk w;
	struct query_cover *c;

	make_log();
	make_index();
	assert_int_equal(query_init(&q, &none, &err), 0);
	assert_int_equal(read_file_open(&f, rootfd, LOG, false, &err), 0);
	c = query_cover_open(rootfd, LOG, f.fd, false);
	assert_non_null(c);
	query_walk_init(&w, c, &q);
	query_walk_next(&w, 0, &gap);
	assert_true(gap.from >= 8 * BIG && gap.to == UINT64_MAX);
	query_walk_fini(&w);
	query_cover_close(c);
	read_file_use_index(&f, rootfd, &q, false);
	f.on_block = count_bytes;
	bytes_read = 0;
	assert_int_equal(read_file_next(&f, &q, &line, &err), 0);
	assert_int_equal(bytes_read, f.end); /* told of all, read or not */
	read_file_close(&f);
	query_fini(&q);
}

/* A log that changed just now is compared each time, and stays right. */
static void test_unsettled(void **state)
{
	make_log();
	settled = false;
	check(MAKE);
	expect(2, false);
	poke(LOG, 20, "9", 1); /* the year of the first line's time */
	check(USE);
	check(MAKE);
	expect(2, false);
	settled = true;
	check(MAKE);
	expect(3, true);
}

static void test_log_grows(void **state)
{
	make_log();
	make_index();
	add_events(70, 3, 0);
	check(USE);
	add_events(73, 3, 9);
	check(USE);
	expect(3, false);
	check(MAKE);
	expect(5, true);
	check(USE);
	check_last(USE);
}

static void test_log_edited(void **state)
{
	static const char error[] = "\"eventType\":\"Error\"";
	size_t len;
	char *log, *at;

	make_log();
	make_index();
	log = unit_read(path_of(LOG), &len);
	at = memmem(log, len, error, strlen(error));
	assert_non_null(at);
	poke(LOG, at - log + 13, "Limit", 5); /* no Error any more, a Limit */
	check(USE);
	check(MAKE);
	expect(3, true);
	poke(LOG, at - log + 12, "x", 1); /* and now no event: told to everybody */
	check(USE);
	check(MAKE);
	check(USE);
	expect(3, true);
	free(log);
}

static void test_log_replaced_or_cut(void **state)
{
	struct stat st;

	make_log();
	make_index();
	assert_int_equal(stat(path_of(LOG), &st), 0);
	assert_int_equal(truncate(path_of(LOG), st.st_size - (off_t)BIG - 100), 0);
	version++;
	check(USE);
	check(MAKE);
	assert_int_equal(unlink(path_of(LOG)), 0);
	add_events(500, 9, 9);
	check(USE);
	check(MAKE);
	check(USE);
}

/* The wanted and the broken lines of a question. */
struct wanted {
	struct query q;
	uint64_t from[64], to[64];
	size_t n;
};

static void find_wanted(struct wanted *w, const struct query_spec *spec)
{
	size_t len;
	char *log = unit_read(path_of(LOG), &len);
	struct event_view v;

	w->n = 0;
	assert_int_equal(query_init(&w->q, spec, NULL), 0);
	for (size_t at = 0, to; at < len; at = to) {
		to = (size_t)((char *)memchr(log + at, '\n', len - at) + 1 - log);
		if (query_line(&w->q, log + at, to - 1 - at, false, &v) == QUERY_NO)
			continue;
		assert_true(w->n < ARRAY_LEN(w->from));
		w->from[w->n] = at;
		w->to[w->n++] = to;
	}
	free(log);
	assert_true(w->n > 0);
}

/* Nothing of it is left out by the index as it stands; the log is not read. */
static void check_wanted(const struct wanted *w)
{
	int fd = open(path_of(LOG), O_RDONLY | O_CLOEXEC);
	struct query_cover *c = query_cover_open(rootfd, LOG, fd, false);
	struct query_gap gap = {0};
	struct query_walk walk;

	assert_true(fd >= 0);
	close(fd);
	if (c == NULL)
		return; /* all is read */
	query_walk_init(&walk, c, &w->q);
	for (size_t i = 0; i < w->n; i++) {
		while (gap.to <= w->from[i])
			query_walk_next(&walk, gap.to, &gap);
		assert_true(gap.from <= w->from[i] && w->to[i] <= gap.to);
	}
	query_walk_fini(&walk);
	query_cover_close(c);
}

/* Each byte of the index changed, one at a time, and the index cut at each:
 * no line is missed. */
static void test_every_byte(void **state)
{
	static const struct query_spec asked[] = {
		{.agent = "S-000003", .types = "tool"},
		{.types = "Error", .since = "@1795248030"},
	};
	struct wanted wanted[ARRAY_LEN(asked)];
	size_t len;
	char *index;
	int fd;

	make_log();
	make_index();
	index = unit_read(path_of(INDEX), &len);
	assert_true(len > 1000 && len < 20000);
	for (size_t i = 0; i < ARRAY_LEN(asked); i++)
		find_wanted(&wanted[i], &asked[i]);
	fd = open(path_of(INDEX), O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	for (size_t at = 0; at < len; at++) {
		char changed = (char)(index[at] ^ (1 << at % 8));

		assert_int_equal(pwrite(fd, &changed, 1, (off_t)at), 1);
		check_wanted(&wanted[0]);
		check_wanted(&wanted[1]);
		assert_int_equal(pwrite(fd, index + at, 1, (off_t)at), 1);
	}
	expect(3, true); /* as it was */
	for (size_t cut = len - 1; cut > QUERY_STORE_HEAD; cut--) {
		assert_int_equal(ftruncate(fd, (off_t)cut), 0);
		check_wanted(&wanted[cut % 2]);
	}
	close(fd);
	for (size_t i = 0; i < ARRAY_LEN(asked); i++)
		query_fini(&wanted[i].q);
	free(index);
}

/* The same of some bytes, with all that is answered. */
static void test_some_bytes(void **state)
{
	static const struct query_spec asked = {.agent = "S-000003", .types = "tool"};
	char *plain, *got, *index;
	size_t len;
	int fd;

	make_log();
	make_index();
	index = unit_read(path_of(INDEX), &len);
	plain = answer(&asked, PLAIN);
	fd = open(path_of(INDEX), O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	for (size_t at = 0; at < len; at += 211) {
		char changed = (char)(index[at] ^ (1 << at % 8));

		assert_int_equal(pwrite(fd, &changed, 1, (off_t)at), 1);
		got = answer(&asked, USE);
		assert_string_equal(got, plain);
		free(got);
		assert_int_equal(pwrite(fd, index + at, 1, (off_t)at), 1);
	}
	assert_int_equal(ftruncate(fd, (off_t)len / 2), 0);
	close(fd);
	check(USE);
	check(MAKE);
	free(plain);
	free(index);
}

/* The index of another log, and one with its chunks in another order. */
static void test_index_of_another(void **state)
{
	struct query_mark mark, of_other;
	struct query_cover c = {0};
	size_t len, first;
	uint32_t chunks;
	char *index, *other;

	make_log();
	make_index();
	index = unit_read(path_of(INDEX), &len);
	assert_true(query_store_head_get((unsigned char *)index, &mark, &chunks));
	assert_int_equal(unlink(path_of(LOG)), 0);
	add_events(400, 30, 4);
	add_events(435, 20, 5);
	version = 50;
	check(USE); /* stale: the log is another */
	check(MAKE);
	expect(3, true);
	other = unit_read(path_of(INDEX), &first);
	assert_true(query_store_head_get((unsigned char *)other, &of_other, &chunks));
	assert_int_not_equal(mark.ctime_ns, of_other.ctime_ns);

	c.fd = open(path_of(INDEX), O_RDONLY | O_CLOEXEC);
	assert_true(query_store_load(&c, UINT64_MAX, &mark));
	first = query_index_size(&c.chunks[0].head);
	memcpy(index, other, QUERY_STORE_HEAD);
	memcpy(index + QUERY_STORE_HEAD, other + QUERY_STORE_HEAD + first,
	       query_index_size(&c.chunks[1].head));
	unit_write(path_of(INDEX), index, len);
	check(USE);
	close(c.fd);
	free(c.chunks);
	free(index);
	free(other);
}

static void test_broken_lines(void **state)
{
	make_log();
	append(LOG, "this is no event\n{}\n\n", 20);
	add_events(100, 5, 9);
	append(LOG, "{\"timestamp\":\"2026-11-", 22); /* never finished */
	check(MAKE);
	check(USE);
	check_last(USE);
	expect(4, true);
}

/* Where nothing can be written, and where the name is taken by something else. */
static void test_cannot_store(void **state)
{
	make_log();
	unit_write(path_of("logs/index"), "a file\n", 7);
	check(MAKE);
	assert_int_equal(unlink(path_of("logs/index")), 0);
	assert_int_equal(mkdir(path_of("logs/index"), 0700), 0);
	assert_int_equal(mkdir(path_of(INDEX), 0700), 0);
	assert_int_equal(mkdir(path_of(INDEX "/x"), 0700), 0);
	check(MAKE);
	check(USE);
}

static int read_only_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	if ((flags & O_ACCMODE) == O_RDONLY)
		return sys_real.openat(dirfd, path, flags, mode);
	errno = EROFS;
	return -1;
}

/* A root that cannot be written is asked as well, with the index it has. */
static void test_read_only(void **state)
{
	make_log();
	aged.openat = read_only_openat;
	check(MAKE);
	expect(0, false);
	aged.openat = sys_real.openat;
	make_index();
	aged.openat = read_only_openat;
	check(MAKE);
	check(USE);
	add_events(70, 3, 9);
	check(MAKE); /* stale, and cannot be renewed */
	expect(3, false);
}

/* Those of logs that are gone, and what a crash left, go away. */
static void test_swept(void **state)
{
	static const char gone[] = "logs/index/ava+2020-01-01.jsonl.ix";
	static const char left[] = "logs/index/ava+2026-11-21.jsonl.ix.1-1.tmp";
	struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};

	assert_int_equal(mkdir(path_of("logs/index"), 0700), 0);
	unit_write(path_of(gone), "x", 1);
	unit_write(path_of(left), "x", 1);
	assert_int_equal(utimensat(AT_FDCWD, path_of(left), old, 0), 0);
	make_log();
	make_index();
	assert_int_not_equal(access(path_of(gone), F_OK), 0);
	assert_int_not_equal(access(path_of(left), F_OK), 0);
	expect(3, true);
}

static void test_without_memory(void **state)
{
	char *plain, *got;

	make_log();
	plain = answer(&questions[2], PLAIN);
	make_index();
	FAULT_LOOP(k, {
		struct ava_error err = {0};
		struct read_line line;
		struct read_file f;
		struct query q;
		int rv = query_init(&q, &questions[2], &err);

		if (rv == 0)
			rv = read_file_open(&f, rootfd, LOG, false, &err);
		if (rv == 0) {
			read_file_use_index(&f, rootfd, &q, false);
			while ((rv = read_file_next(&f, &q, &line, &err)) == 1)
				;
			assert_true(rv == 0 || rv == AVA_ENOMEM);
			read_file_close(&f);
		}
		query_fini(&q);
	});
	got = answer(&questions[2], USE);
	assert_string_equal(got, plain);
	free(plain);
	free(got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_golden, setup, teardown),
		cmocka_unit_test_setup_teardown(test_made_and_used, setup, teardown),
		cmocka_unit_test_setup_teardown(test_spares, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unsettled, setup, teardown),
		cmocka_unit_test_setup_teardown(test_log_grows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_log_edited, setup, teardown),
		cmocka_unit_test_setup_teardown(test_log_replaced_or_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_byte, setup, teardown),
		cmocka_unit_test_setup_teardown(test_some_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_index_of_another, setup, teardown),
		cmocka_unit_test_setup_teardown(test_broken_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cannot_store, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read_only, setup, teardown),
		cmocka_unit_test_setup_teardown(test_swept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

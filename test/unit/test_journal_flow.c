/* The journal on a real disk: levels and order, long and many bytes, few
 * descriptors, segments, checkpoints beside commits. */
#include "journal_help.h"

#include <fcntl.h>
#include <sys/file.h>
#include <dirent.h>
#include <pthread.h>

RIG_OF_FILE;

/* ---- levels and order */

struct order {
	unsigned n;
	uint64_t last;
	bool in_order;
};

struct numbered {
	struct order *o;
	uint64_t lsn;
};

static void in_order_cb(int rv, void *user)
{
	struct numbered *c = user;

	c->o->in_order = c->o->in_order && rv == 0 && c->lsn > c->o->last;
	c->o->last = c->lsn;
	c->o->n++;
}

TEST(answers_in_order)
{
	static struct numbered all[2000];
	struct order o = {.in_order = true};

	rig_open(&rig);
	for (int i = 0; i < 2000; i++) {
		char path[32], line[32];
		struct journal_op op = {.kind = JOURNAL_APPEND, .path = path, .bytes = line};

		snprintf(path, sizeof(path), "v%d.jsonl", i % 7);
		op.len = (size_t)snprintf(line, sizeof(line), "%d\n", i);
		all[i] = (struct numbered){&o, journal_lsn(rig.j, 1 + i % 3)};
		assert_int_equal(journal_commit(rig.j, &op, 1, i % 5 ? JOURNAL_RIDE : JOURNAL_NOW,
						in_order_cb, &all[i]),
				 0);
		if (i % 100 == 0)
			journal_drain(rig.j);
	}
	assert_int_equal(journal_sync(rig.j), 0);
	assert_int_equal(o.n, 2000);
	assert_true(o.in_order);
	for (int v = 0; v < 7; v++) {
		char path[32], *got;
		int n = v, used;
		size_t len;

		snprintf(path, sizeof(path), "v%d.jsonl", v);
		got = unit_read(rig_path(&rig, path), &len);
		for (char *p = got; *p != '\0'; p += used, n += 7) {
			int is;

			assert_int_equal(sscanf(p, "%d\n%n", &is, &used), 1);
			assert_int_equal(is, n);
		}
		assert_true(n >= 2000);
		free(got);
	}
}

static void wait_answers(struct rig *r, unsigned n)
{
	while (r->answered < n) {
		usleep(200);
		journal_drain(r->j);
	}
}

TEST(ride_waits_for_company)
{
	const struct journal_op op = {
		.kind = JOURNAL_APPEND, .path = "a.jsonl", .bytes = "x\n", .len = 2};
	struct journal_stats s;

	rig.o.pace_us = 60 * 1000000; /* so long that only company can end it */
	rig_open(&rig);
	rig_append(&rig, "a.jsonl", "x\n");
	journal_stats(rig.j, &s);
	assert_int_equal(s.flushes, 1);
	for (int i = 0; i < 10; i++)
		assert_int_equal(journal_commit(rig.j, &op, 1, JOURNAL_RIDE, rig_done, &rig), 0);
	journal_drain(rig.j);
	assert_int_equal(rig.answered, 1);
	rig_put(&rig, JOURNAL_APPEND, "a.jsonl", "now\n");
	wait_answers(&rig, 12);
	journal_stats(rig.j, &s);
	assert_int_equal(s.flushes, 2);
}

TEST(ride_goes_when_enough)
{
	static char line[4096];
	const struct journal_op op = {
		.kind = JOURNAL_APPEND, .path = "a.jsonl", .bytes = line, .len = sizeof(line)};

	memset(line, 'x', sizeof(line));
	rig.o.pace_us = 60 * 1000000;
	rig_open(&rig);
	for (int i = 0; i < 16; i++)
		assert_int_equal(journal_commit(rig.j, &op, 1, JOURNAL_RIDE, rig_done, &rig), 0);
	wait_answers(&rig, 16);
	/* and a few that wait leave with the close */
	for (int i = 0; i < 3; i++)
		assert_int_equal(journal_commit(rig.j, &op, 1, JOURNAL_RIDE, rig_done, &rig), 0);
	rig_close(&rig);
	assert_int_equal(rig.answered, 19);
	assert_int_equal(rig.last_rv, 0);
}

TEST(ride_goes_by_the_clock)
{
	const struct journal_op op = {
		.kind = JOURNAL_APPEND, .path = "a.jsonl", .bytes = "x\n", .len = 2};

	rig.o.pace_us = 3000;
	rig_open(&rig);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(journal_commit(rig.j, &op, 1, JOURNAL_RIDE, rig_done, &rig), 0);
		wait_answers(&rig, i + 1);
	}
}

static void notified(void *user)
{
	__atomic_fetch_add((unsigned *)user, 1, __ATOMIC_RELEASE);
}

/* One call wakes the owner for all that is ready. */
TEST(notify)
{
	unsigned calls = 0;

	rig.o.notify = notified;
	rig.o.user = &calls;
	rig_open(&rig);
	for (int i = 0; i < 20; i++)
		rig_put(&rig, JOURNAL_APPEND, "a.jsonl", "x\n");
	while (rig.answered < 20) {
		while (__atomic_load_n(&calls, __ATOMIC_ACQUIRE) == 0)
			usleep(50);
		__atomic_store_n(&calls, 0, __ATOMIC_RELEASE);
		journal_drain(rig.j);
	}
	rig_close(&rig);
	assert_int_equal(__atomic_load_n(&calls, __ATOMIC_ACQUIRE), 0);
}

/* ---- big ones, many, long */

TEST(long_bytes)
{
	size_t big = 300 << 10;
	char *text = malloc(big + 1);
	struct journal_op ops[3];

	memset(text, 'z', big);
	text[big - 1] = '\n';
	text[big] = '\0';
	rig_open(&rig);
	rig_append(&rig, "a.jsonl", "before\n");
	ops[0] = (struct journal_op){
		.kind = JOURNAL_APPEND, .path = "a.jsonl", .bytes = text, .len = big};
	ops[1] = (struct journal_op){.kind = JOURNAL_PUT, .path = "p", .bytes = text, .len = big};
	ops[2] = (struct journal_op){
		.kind = JOURNAL_APPEND, .path = "a.jsonl", .bytes = "after\n", .len = 6};
	assert_int_equal(journal_commit(rig.j, ops, 3, JOURNAL_NOW, rig_done, &rig), 0);
	assert_int_equal(journal_sync(rig.j), 0);
	assert_int_equal(rig.last_rv, 0);
	assert_int_equal(rig_wal_files(&rig, "blob-"), 2);
	rig_holds(&rig, "p", text);
	text[big - 1] = '\0';
	{
		size_t len;
		char *got = unit_read(rig_path(&rig, "a.jsonl"), &len);

		assert_int_equal(len, 7 + big + 6);
		assert_memory_equal(got, "before\n", 7);
		assert_memory_equal(got + 7, text, big - 1);
		assert_string_equal(got + 7 + big, "after\n");
		free(got);
	}
	assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
	assert_int_equal(rig_wal_files(&rig, "blob-"), 0);
	free(text);
}

/* More than a segment holds: what is long enough leaves the batch. */
TEST(wide_commit)
{
	enum { N = 500 };
	static struct journal_op ops[N];
	static char line[2000];
	size_t len;
	char *got;

	memset(line, 'w', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	for (int i = 0; i < N; i++)
		ops[i] = (struct journal_op){.kind = JOURNAL_APPEND,
					     .path = "a.jsonl",
					     .bytes = line,
					     .len = sizeof(line)};
	rig_open(&rig);
	assert_int_equal(journal_commit(rig.j, ops, N, JOURNAL_NOW, rig_done, &rig), 0);
	assert_int_equal(journal_sync(rig.j), 0);
	assert_int_equal(rig.last_rv, 0);
	got = unit_read(rig_path(&rig, "a.jsonl"), &len);
	assert_int_equal(len, N * sizeof(line));
	free(got);
	/* what cannot be made to fit is refused whole */
	for (int i = 0; i < N; i++)
		ops[i].len = 30;
	{
		static struct journal_op many[4000];

		for (int i = 0; i < 4000; i++)
			many[i] = ops[0];
		assert_int_equal(journal_commit(rig.j, many, 4000, JOURNAL_NOW, rig_done, &rig),
				 AVA_ETOOBIG);
	}
}

TEST(queue_is_bounded)
{
	size_t big = 60 << 20;
	char *text = calloc(1, big);
	struct journal_op op = {.kind = JOURNAL_PUT, .path = "p", .bytes = text, .len = big};
	unsigned taken = 0;
	int rv;

	rig_open(&rig);
	while ((rv = journal_commit(rig.j, &op, 1, JOURNAL_NOW, rig_done, &rig)) == 0)
		taken++;
	assert_int_equal(rv, AVA_EBUSY);
	assert_int_equal(taken, 4);
	assert_int_equal(journal_sync(rig.j), 0);
	assert_int_equal(rig.answered, taken);
	assert_int_equal(rig.last_rv, 0);
	assert_int_equal(journal_commit(rig.j, &op, 1, JOURNAL_NOW, rig_done, &rig), 0);
	journal_sync(rig.j);
	op.len = (size_t)300 << 20;
	assert_int_equal(journal_commit(rig.j, &op, 1, JOURNAL_NOW, rig_done, &rig), AVA_ETOOBIG);
	free(text);
}

/* Somebody holds the lock of a session file: other work is taken, however much, and in the
 * end what waits for that file is put aside. */
TEST(a_locked_session)
{
	static const char session[] = "{\"type\":\"session\",\"id\":\"s\"}\n",
			  entry[] = "{\"type\":\"message\",\"id\":\"e1\",\"parentId\":null}";
	struct journal_op op = {.kind = JOURNAL_ENTRY,
				.path = "sessions/--x--/s.jsonl",
				.bytes = entry,
				.len = sizeof(entry) - 1,
				.id = "e1"};
	char *line = malloc(64 << 10), *got;
	struct rig mine;
	size_t len;
	int fd;

	memset(line, 'l', 64 << 10);
	memcpy(line + (64 << 10) - 2, "\n", 2);
	rig.o.checkpoint_bytes = 256 << 10;
	rig.o.checkpoint_ms = 20;
	rig_open(&rig);
	mine = rig;
	mkdir(rig_path(&rig, "sessions"), 0700);
	mkdir(rig_path(&rig, "sessions/--x--"), 0700);
	unit_write(rig_path(&rig, op.path), session, strlen(session));
	fd = open(rig_path(&rig, op.path), O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(journal_commit(rig.j, &op, 1, JOURNAL_NOW, rig_done, &mine), 0);
	for (int i = 0; i < 64; i++) {
		assert_int_equal(journal_ready(rig.j, NULL), 0);
		rig_append(&rig, "a.jsonl", line);
	}
	for (int i = 0; i < 6000 && mine.answered == 0; i++) {
		journal_drain(rig.j);
		usleep(10000);
	}
	assert_int_equal(mine.answered, 1);
	assert_int_equal(mine.last_rv, 0);
	got = unit_read(rig_path(&rig, "lost/sessions+--x--+s.jsonl"), &len);
	assert_non_null(strstr(got, "\"id\":\"e1\""));
	free(got);
	rig_holds(&rig, op.path, session);
	close(fd);
	free(line);
}

TEST(few_descriptors)
{
	char path[32], line[32];
	struct journal_stats s;

	rig.o.fd_cache = 5;
	rig_open(&rig);
	for (int i = 0; i < 300; i++) {
		snprintf(path, sizeof(path), "d/%d.jsonl", i * 7 % 50);
		snprintf(line, sizeof(line), "%d\n", i);
		rig_append(&rig, path, line);
	}
	journal_stats(rig.j, &s);
	assert_int_equal(s.open_fds, 5);
	assert_int_equal(s.views, 50);
	assert_int_equal(s.commits, 300);
	rig_holds(&rig, "d/0.jsonl", "0\n50\n100\n150\n200\n250\n");
	rig_holds(&rig, "d/7.jsonl", "1\n51\n101\n151\n201\n251\n");
}

static uint64_t highest_segment(const struct rig *r)
{
	DIR *dir = opendir(rig_path(r, "wal"));
	struct dirent *e;
	uint64_t high = 0;

	while ((e = readdir(dir)) != NULL)
		if (strstr(e->d_name, ".seg") != NULL && strtoull(e->d_name, NULL, 16) > high)
			high = strtoull(e->d_name, NULL, 16);
	closedir(dir);
	return high;
}

TEST(segments_roll_and_return)
{
	static char line[1000];
	size_t len;

	memset(line, 'l', sizeof(line));
	line[998] = '\n';
	line[999] = '\0';
	rig.o.segment_bytes = 64 << 10;
	rig_open(&rig);
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < 1500; i++)
			assert_int_equal(rig_put(&rig, JOURNAL_APPEND, "a.jsonl", line), 0);
		assert_int_equal(journal_sync(rig.j), 0);
		assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
		assert_true(rig_wal_files(&rig, ".seg") <= 16 + 3);
	}
	assert_true(highest_segment(&rig) > 100);
	free(unit_read(rig_path(&rig, "a.jsonl"), &len));
	assert_int_equal(len, 6 * 1500 * 999);
	rig_close(&rig);
	/* another size of segments: the old ones are of no use, and go */
	rig.o.segment_bytes = 128 << 10;
	rig_open(&rig);
	assert_true(rig.rec.clean);
	rig_append(&rig, "a.jsonl", "end\n");
	assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
	assert_true(rig_wal_files(&rig, ".seg") <= 6);
}

/* ---- checkpoints while commits go on */

static void *checkpoint_main(void *arg)
{
	struct rig *r = arg;
	long failed = 0;

	for (int i = 0; i < 40; i++)
		failed += journal_checkpoint(r->j, NULL) != 0;
	return (void *)failed;
}

TEST(checkpoint_beside_commits)
{
	pthread_t t;
	struct journal_stats s;
	unsigned sent = 0;
	void *failed;

	rig.o.segment_bytes = 64 << 10;
	rig.o.checkpoint_ms = 5;
	rig.o.checkpoint_bytes = 256 << 10;
	rig_open(&rig);
	assert_int_equal(pthread_create(&t, NULL, checkpoint_main, &rig), 0);
	for (int i = 0; i < 300; i++) {
		for (int k = 0; k < 40; k++) {
			char path[32];

			snprintf(path, sizeof(path), "v/%d.jsonl", (i * 40 + k) % 37);
			assert_int_equal(
				rig_put(&rig, JOURNAL_APPEND, path, "a line of some length\n"), 0);
			sent++;
		}
		if (i % 10 == 9)
			assert_int_equal(rig_put(&rig, JOURNAL_DROP, "v/5.jsonl", ""), 0), sent++;
		journal_sync(rig.j);
	}
	pthread_join(t, &failed);
	assert_null(failed);
	assert_int_equal(rig.answered, sent);
	journal_stats(rig.j, &s);
	assert_true(s.checkpoints >= 40);
	rig_close(&rig);
	rig_open(&rig);
	assert_true(rig.rec.clean);
	for (int v = 0; v < 37; v++) {
		char path[32];
		size_t len, lines = (size_t)(12000 - v + 36) / 37;

		snprintf(path, sizeof(path), "v/%d.jsonl", v);
		free(unit_read(rig_path(&rig, path), &len));
		assert_int_equal(len, lines * 22);
	}
}

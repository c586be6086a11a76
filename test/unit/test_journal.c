/* The journal on a real disk: its life, every operation, what is refused, what
 * a person does to its files meanwhile. */
#include "journal_help.h"

#include <dirent.h>
#include <stdatomic.h>

#include "base/sys.h"
#include "base/util.h"

/* ---- life */

TEST(commit_and_read)
{
	struct rig r;

	rig_init(&r);
	rig_open(&r);
	assert_true(r.rec.clean);
	assert_string_equal(r.rec.problems, "[]");
	rig_append(&r, "logs/a.jsonl", "one\n");
	rig_append(&r, "logs/a.jsonl", "two\n");
	rig_append(&r, "b.jsonl", "b\n");
	rig_holds(&r, "logs/a.jsonl", "one\ntwo\n");
	rig_holds(&r, "b.jsonl", "b\n");
	rig_close(&r);
	rig_holds(&r, "FORMAT", "ava 1\n");
	rig_open(&r);
	assert_true(r.rec.clean);
	assert_int_equal(r.rec.redone_batches, 0);
	rig_append(&r, "logs/a.jsonl", "three\n");
	rig_holds(&r, "logs/a.jsonl", "one\ntwo\nthree\n");
	rig_fini(&r);
}

static unsigned wal_files(const struct rig *r)
{
	DIR *dir = opendir(rig_path(r, "wal"));
	struct dirent *e;
	unsigned n = 0;

	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL)
		n += strstr(e->d_name, ".seg") != NULL;
	closedir(dir);
	return n;
}

TEST(open_and_close_again)
{
	struct rig r;
	uint64_t lsn = 0;
	char line[32], want[1024] = "";

	rig_init(&r);
	for (int i = 0; i < 30; i++) {
		uint64_t next;

		rig_open(&r);
		assert_true(r.rec.clean);
		next = journal_lsn(r.j, 1);
		assert_true(next > lsn); /* never given twice */
		lsn = next;
		if (i % 3 != 0) {
			snprintf(line, sizeof(line), "%d\n", i);
			strcat(want, line);
			rig_append(&r, "a.jsonl", line);
		}
		rig_close(&r);
	}
	rig_holds(&r, "a.jsonl", want);
	assert_true(wal_files(&r) <= 6);
	rig_fini(&r);
}

/* ---- the first start makes its own name durable, and those of folders made for it */

static ino_t above;
static int above_synced;

static int count_fsync(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && st.st_ino == above)
		above_synced++;
	return sys_real.fsync(fd);
}

TEST(folders_above)
{
	struct sys_ops ops = sys_real;
	struct stat st;
	char parent[300];
	struct rig r;

	rig_init(&r);
	snprintf(parent, sizeof(parent), "%s/..", r.root);
	assert_int_equal(stat(parent, &st), 0);
	above = st.st_ino;
	above_synced = 0;
	ops.fsync = count_fsync;
	sys = &ops;
	rig_open(&r);
	assert_int_equal(above_synced, 1);
	rig_close(&r);
	rig_open(&r);
	assert_int_equal(above_synced, 1); /* later ones need not */
	rig_close(&r);
	sys = &sys_real;
	rig_fini(&r);
}

/* ---- what was written and closed is synced through a descriptor that was open since: one
 * opened afresh does not hear of an error before it */

static atomic_bool in_checkpoint;
static atomic_int opened_afresh, synced;

static int watch_openat(int dir, const char *path, int flags, mode_t mode)
{
	if (in_checkpoint && strstr(path, "result.json") != NULL)
		opened_afresh++;
	return sys_real.openat(dir, path, flags, mode);
}

static int watch_fsync(int fd)
{
	synced += in_checkpoint;
	return sys_real.fsync(fd);
}

TEST(closed_files_are_known)
{
	struct sys_ops ops = sys_real;
	struct rig r;

	rig_init(&r);
	ops.openat = watch_openat;
	ops.fsync = watch_fsync;
	sys = &ops;
	rig_open(&r);
	for (int i = 0; i < 2; i++) {
		rig_do(&r, JOURNAL_PUT, "result.json", i ? "2" : "1", 0);
		in_checkpoint = true;
		assert_int_equal(journal_checkpoint(r.j, NULL), 0);
		in_checkpoint = false;
		assert_true(synced > 0);
		assert_int_equal(opened_afresh, 0);
	}
	rig_close(&r);
	sys = &sys_real;
	rig_fini(&r);
}

TEST(newer_format)
{
	static const char *const others[] = {"ava 2\n", "ava 10\n", "", "ava 1", "ava 1\nx"};
	struct ava_error err;
	struct rig r;

	rig_init(&r);
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		unit_write(rig_path(&r, "FORMAT"), others[i], strlen(others[i]));
		assert_int_equal(journal_open(&r.j, &r.o, &r.rec, &err), AVA_EFORMAT);
		assert_non_null(strstr(err.text, "FORMAT"));
		assert_null(r.j);
		rig_holds(&r, "FORMAT", others[i]);
	}
	rig_fini(&r);
}

TEST(open_refuses)
{
	struct ava_error err;
	struct rig r;

	rig_init(&r);
	r.o.segment_bytes = 5000;
	assert_int_equal(journal_open(&r.j, &r.o, &r.rec, &err), AVA_EINVAL);
	r.o.segment_bytes = 64 << 10;
	r.o.root = "/nonexistent/root";
	assert_int_equal(journal_open(&r.j, &r.o, &r.rec, &err), AVA_ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/root"));
	r.o.root = r.root;
	unit_write(rig_path(&r, "wal"), "", 0); /* a file where the folder should be */
	assert_true(journal_open(&r.j, &r.o, &r.rec, &err) < 0);
	rig_fini(&r);
}

/* ---- operations */

TEST(put)
{
	struct rig r;

	rig_init(&r);
	rig_open(&r);
	rig_do(&r, JOURNAL_PUT, "runs/S-1/result.json", "first, and longer", 0);
	rig_do(&r, JOURNAL_PUT, "runs/S-1/result.json", "second", 0);
	rig_holds(&r, "runs/S-1/result.json", "second");
	rig_do(&r, JOURNAL_PUT, "runs/S-1/result.json", "", 0);
	rig_holds(&r, "runs/S-1/result.json", "");
	assert_false(rig_exists(&r, "runs/S-1/result.json.tmp"));
	/* what is no file is not replaced */
	rig_append(&r, "dir/x.jsonl", "x\n");
	rig_do(&r, JOURNAL_PUT, "dir", "no", AVA_EIO);
	rig_fini(&r);
}

TEST(create)
{
	struct rig r;
	struct stat st;

	rig_init(&r);
	rig_open(&r);
	rig_do(&r, JOURNAL_CREATE, "logs/a.jsonl", "", 0);
	rig_holds(&r, "logs/a.jsonl", "");
	assert_int_equal(stat(rig_path(&r, "logs/a.jsonl"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(rig_path(&r, "logs"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	rig_do(&r, JOURNAL_CREATE, "logs/a.jsonl", "", AVA_EEXIST);
	rig_append(&r, "b.jsonl", "b\n");
	rig_do(&r, JOURNAL_CREATE, "b.jsonl", "", AVA_EEXIST);
	unit_write(rig_path(&r, "c.jsonl"), "a person's\n", 11);
	rig_do(&r, JOURNAL_CREATE, "c.jsonl", "", AVA_EEXIST);
	rig_holds(&r, "c.jsonl", "a person's\n");
	rig_fini(&r);
}

/* A commit that fails has done nothing, wherever in it the fault is. */
TEST(all_or_nothing)
{
	struct rig r;

	rig_init(&r);
	rig_open(&r);
	rig_append(&r, "a.jsonl", "one\n");
	for (unsigned bad = 0; bad < 4; bad++) {
		struct journal_op ops[4] = {
			{.kind = JOURNAL_APPEND, .path = "a.jsonl", .bytes = "no\n", .len = 3},
			{.kind = JOURNAL_PUT, .path = "p", .bytes = "no", .len = 2},
			{.kind = JOURNAL_APPEND, .path = "b.jsonl", .bytes = "no\n", .len = 3},
			{.kind = JOURNAL_CREATE, .path = "c.jsonl"},
		};
		unsigned before = r.answered;

		ops[bad] = (struct journal_op){.kind = JOURNAL_CREATE, .path = "a.jsonl"};
		assert_int_equal(journal_commit(r.j, ops, 4, JOURNAL_NOW, rig_done, &r), 0);
		journal_sync(r.j);
		assert_int_equal(r.answered, before + 1);
		assert_int_equal(r.last_rv, AVA_EEXIST);
		rig_holds(&r, "a.jsonl", "one\n");
		assert_false(rig_exists(&r, "p"));
		assert_false(rig_exists(&r, "b.jsonl"));
		assert_false(rig_exists(&r, "c.jsonl"));
	}
	rig_append(&r, "a.jsonl", "two\n"); /* offsets were taken back */
	rig_append(&r, "b.jsonl", "b\n");
	rig_holds(&r, "a.jsonl", "one\ntwo\n");
	rig_holds(&r, "b.jsonl", "b\n");
	rig_fini(&r);
}

TEST(create_and_append_in_one)
{
	const struct journal_op ops[] = {
		{.kind = JOURNAL_CREATE, .path = "a.jsonl"},
		{.kind = JOURNAL_APPEND, .path = "a.jsonl", .bytes = "1\n", .len = 2},
		{.kind = JOURNAL_APPEND, .path = "a.jsonl", .bytes = "2\n", .len = 2},
		{.kind = JOURNAL_DROP, .path = "a.jsonl"},
	};
	struct rig r;

	rig_init(&r);
	rig_open(&r);
	assert_int_equal(journal_commit(r.j, ops, 4, JOURNAL_NOW, rig_done, &r), 0);
	journal_sync(r.j);
	assert_int_equal(r.last_rv, 0);
	rig_holds(&r, "a.jsonl", "1\n2\n");
	rig_fini(&r);
}

TEST(drop_forgets)
{
	struct journal_stats s;
	struct rig r;

	rig_init(&r);
	rig_open(&r);
	rig_append(&r, "keep.jsonl", "x\n");
	for (int i = 0; i < 50; i++) {
		char path[32];

		snprintf(path, sizeof(path), "logs/%d.jsonl", i);
		rig_append(&r, path, "x\n");
		rig_do(&r, JOURNAL_DROP, path, "", 0);
	}
	journal_stats(r.j, &s);
	assert_int_equal(s.views, 51);
	assert_int_equal(s.open_fds, 1);
	assert_int_equal(journal_checkpoint(r.j, NULL), 0);
	journal_drain(r.j);
	journal_stats(r.j, &s);
	assert_int_equal(s.views, 1);
	rig_append(&r, "logs/7.jsonl", "again\n"); /* against the rule, but no harm */
	rig_holds(&r, "logs/7.jsonl", "x\nagain\n");
	assert_int_equal(journal_checkpoint(r.j, NULL), 0);
	rig_fini(&r);
}

/* ---- session entries */

static void entry(struct rig *r, const char *id, const char *line)
{
	struct journal_op op = {.kind = JOURNAL_ENTRY,
				.path = "sessions/s.jsonl",
				.bytes = line,
				.len = strlen(line),
				.id = id};
	unsigned before = r->answered;

	assert_int_equal(journal_commit(r->j, &op, 1, JOURNAL_NOW, rig_done, r), 0);
	while (r->answered == before)
		journal_sync(r->j);
	assert_int_equal(r->last_rv, 0);
}

static void add_foreign(struct rig *r, const char *text)
{
	FILE *f = fopen(rig_path(r, "sessions/s.jsonl"), "a");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

TEST(entries)
{
	struct rig r;

	rig_init(&r);
	rig_open(&r);
	/* an empty session: no parent */
	entry(&r, "e1", "{\"type\":\"agent_event\",\"id\":\"e1\",\"parentId\":null,\"n\":1}\n");
	/* the entry before is ours */
	entry(&r, "e2", "{\"type\":\"agent_event\",\"id\":\"e2\",\"parentId\":null,\"n\":2}\n");
	/* the entry before is another program's, and holds another "id" inside */
	add_foreign(&r, "{\"type\":\"message\",\"id\":\"p\\\"1\",\"parentId\":\"e2\",\"m\":{\"id\":"
			"\"x\"}}\n");
	entry(&r, "e3", "{\"id\":\"e3\",\"parentId\":null}");
	/* somebody left a line without its end: it gets one, and the one before is the
	 * parent */
	add_foreign(&r, "{\"id\":\"half");
	entry(&r, "e4", "{\"id\":\"e4\",\"parentId\":null}\n");
	rig_holds(&r, "sessions/s.jsonl",
		  "{\"type\":\"agent_event\",\"id\":\"e1\",\"parentId\":null,\"n\":1}\n"
		  "{\"type\":\"agent_event\",\"id\":\"e2\",\"parentId\":\"e1\",\"n\":2}\n"
		  "{\"type\":\"message\",\"id\":\"p\\\"1\",\"parentId\":\"e2\",\"m\":{\"id\":\"x\"}"
		  "}\n"
		  "{\"id\":\"e3\",\"parentId\":\"p\\\"1\"}\n"
		  "{\"id\":\"half\n"
		  "{\"id\":\"e4\",\"parentId\":\"e3\"}\n");
	rig_fini(&r);
}

TEST(entry_after_header)
{
	static const char header[] = "{\"type\":\"session\",\"version\":3,\"id\":\"u-u-i-d\"}\n";
	struct rig r;

	rig_init(&r);
	rig_open(&r);
	assert_int_equal(mkdir(rig_path(&r, "sessions"), 0700), 0);
	unit_write(rig_path(&r, "sessions/s.jsonl"), header, sizeof(header) - 1);
	entry(&r, "e1", "{\"id\":\"e1\",\"parentId\":null}\n");
	rig_holds(&r, "sessions/s.jsonl",
		  "{\"type\":\"session\",\"version\":3,\"id\":\"u-u-i-d\"}\n"
		  "{\"id\":\"e1\",\"parentId\":null}\n");
	rig_fini(&r);
}

/* ---- what is refused */

TEST(bad_commits)
{
	static const char *const paths[] = {"",       "/abs", "a/",     "a//b", "..",
					    "a/../b", "./a",  "a b",    "a\nb", "a\xc3\xa9",
					    "wal/x",  "wal",  "FORMAT", "a/."};
	char longest[600];
	struct rig r;

	rig_init(&r);
	rig_open(&r);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		assert_int_equal(rig_put(&r, JOURNAL_APPEND, paths[i], "x\n"), AVA_EINVAL);
	assert_int_equal(rig_put(&r, JOURNAL_APPEND, NULL, "x\n"), AVA_EINVAL);
	memset(longest, 'a', sizeof(longest));
	longest[599] = '\0';
	assert_int_equal(rig_put(&r, JOURNAL_APPEND, longest, "x\n"), AVA_EINVAL);
	longest[201] = '\0'; /* one component */
	assert_int_equal(rig_put(&r, JOURNAL_APPEND, longest, "x\n"), AVA_EINVAL);
	longest[200] = '\0';
	rig_append(&r, longest, "x\n");
	assert_int_equal(rig_put(&r, (enum journal_op_kind)9, "a", ""), AVA_EINVAL);
	assert_int_equal(rig_put(&r, JOURNAL_CREATE, "a", "bytes"), AVA_EINVAL);
	assert_int_equal(rig_put(&r, JOURNAL_ENTRY, "a", "no id"), AVA_EINVAL);
	assert_int_equal(journal_commit(r.j, NULL, 0, JOURNAL_NOW, rig_done, &r), AVA_EINVAL);
	/* one path is used one way */
	rig_append(&r, "v.jsonl", "x\n");
	assert_int_equal(rig_put(&r, JOURNAL_PUT, "v.jsonl", "x"), AVA_EINVAL);
	assert_int_equal(r.answered, 2);
	rig_fini(&r);
}

TEST(no_memory)
{
	struct rig r;
	char path[64];
	long k = 0;
	int rv;
	bool hit;

	rig_init(&r);
	rig_open(&r);
	rig_append(&r, "warm.jsonl", "x\n");
	do {
		snprintf(path, sizeof(path), "m/%ld.jsonl", k);
		fault_alloc(k++);
		rv = rig_put(&r, JOURNAL_APPEND, path, "x\n");
		hit = fault_alloc_end();
		assert_true(rv == 0 || rv == AVA_ENOMEM);
	} while (hit && k < 50);
	assert_true(k > 2 && rv == 0);
	journal_sync(r.j);
	rig_append(&r, "warm.jsonl", "y\n");
	rig_holds(&r, "warm.jsonl", "x\ny\n");
	rig_close(&r);
	k = 0;
	do {
		fault_alloc(k++);
		rv = journal_open(&r.j, &r.o, &r.rec, NULL);
		if (rv == 0)
			rig_close(&r);
		hit = fault_alloc_end();
		assert_true(rv == 0 || rv == AVA_ENOMEM || rv == AVA_EIO);
	} while (hit && k < 500);
	assert_true(k > 10 && rv == 0);
	rig_open(&r);
	rig_append(&r, "warm.jsonl", "z\n");
	rig_holds(&r, "warm.jsonl", "x\ny\nz\n");
	rig_fini(&r);
}

/* ---- what a person does while the journal runs */

TEST(view_path)
{
	char out[64];
	struct rig r;

	rig_init(&r);
	rig_open(&r);
	assert_string_equal(journal_view_path(r.j, "a.jsonl", out, sizeof(out)), "a.jsonl");
	unit_write(rig_path(&r, "a.jsonl"), "whole\nhal", 9);
	rig_append(&r, "a.jsonl", "mine\n");
	rig_holds(&r, "a.jsonl", "whole\nhal");
	rig_holds(&r, "a.jsonl.broken", "hal");
	rig_holds(&r, "a.2.jsonl", "mine\n");
	assert_string_equal(journal_view_path(r.j, "a.jsonl", out, sizeof(out)), "a.2.jsonl");
	rig_close(&r);
	rig_open(&r);
	assert_string_equal(journal_view_path(r.j, "a.jsonl", out, sizeof(out)), "a.2.jsonl");
	rig_append(&r, "a.jsonl", "more\n");
	rig_holds(&r, "a.2.jsonl", "mine\nmore\n");
	assert_string_equal(journal_view_path(r.j, "../x", out, sizeof(out)), "");
	rig_fini(&r);
}

/* One descriptor for two views: each append looks at its file anew. */
TEST(changed_while_open)
{
	struct rig r;
	char new[600];

	rig_init(&r);
	r.o.fd_cache = 1;
	rig_open(&r);
	rig_append(&r, "gone.jsonl", "1\n");
	rig_append(&r, "short.jsonl", "1\n");
	rig_append(&r, "longer.jsonl", "1\n");
	rig_append(&r, "other.jsonl", "1\n");
	assert_int_equal(unlink(rig_path(&r, "gone.jsonl")), 0);
	assert_int_equal(truncate(rig_path(&r, "short.jsonl"), 0), 0);
	unit_write(rig_path(&r, "longer.jsonl"), "1\nmine\n", 7);
	unit_write(rig_path(&r, "new"), "1\n", 2);
	snprintf(new, sizeof(new), "%s", rig_path(&r, "new"));
	assert_int_equal(rename(new, rig_path(&r, "other.jsonl")), 0);
	rig_append(&r, "gone.jsonl", "2\n");
	rig_append(&r, "short.jsonl", "2\n");
	rig_append(&r, "longer.jsonl", "2\n");
	rig_append(&r, "other.jsonl", "2\n");
	assert_false(rig_exists(&r, "gone.jsonl"));
	rig_holds(&r, "gone.2.jsonl", "2\n");
	rig_holds(&r, "short.jsonl", "");
	rig_holds(&r, "short.2.jsonl", "2\n");
	rig_holds(&r, "longer.jsonl", "1\nmine\n");
	rig_holds(&r, "longer.2.jsonl", "2\n");
	rig_holds(&r, "other.jsonl", "1\n");
	rig_holds(&r, "other.2.jsonl", "2\n");
	rig_append(&r, "gone.jsonl", "3\n");
	rig_holds(&r, "gone.2.jsonl", "2\n3\n");
	rig_close(&r);
	rig_open(&r);
	rig_append(&r, "other.jsonl", "3\n");
	rig_holds(&r, "other.2.jsonl", "2\n3\n");
	rig_fini(&r);
}

TEST(no_regular_file)
{
	struct rig r;

	rig_init(&r);
	rig_open(&r);
	assert_int_equal(mkdir(rig_path(&r, "dir.jsonl"), 0700), 0);
	assert_int_equal(mkfifo(rig_path(&r, "fifo.jsonl"), 0600), 0);
	assert_int_equal(symlink("/dev/null", rig_path(&r, "link.jsonl")), 0);
	for (int i = 0; i < 2; i++) { /* they stay, and writing goes on beside them */
		rig_append(&r, "dir.jsonl", "x\n");
		rig_append(&r, "fifo.jsonl", "x\n");
		rig_append(&r, "link.jsonl", "x\n");
		assert_int_equal(journal_health(r.j, NULL), 0);
		rig_close(&r);
		rig_open(&r);
	}
	rig_holds(&r, "dir.2.jsonl", "x\nx\n");
	rig_holds(&r, "fifo.2.jsonl", "x\nx\n");
	rig_holds(&r, "link.2.jsonl", "x\nx\n");
	rig_append(&r, "a.jsonl", "x\n");
	rig_fini(&r);
}

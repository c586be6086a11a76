/* The journal on a real disk: its life, every operation, what is refused, what
 * a person does to its files meanwhile. */
#include "journal_help.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>

#include "base/sys.h"
#include "base/util.h"
#include "journal/ballast.h"

RIG_OF_FILE;

/* ---- life */

TEST(open_and_close_again)
{
	uint64_t lsn = 0;
	char line[32], want[1024] = "";

	for (int i = 0; i < 30; i++) {
		uint64_t next;

		rig_open(&rig);
		assert_true(rig.rec.clean);
		assert_int_equal(rig.rec.redone_batches, 0);
		next = journal_lsn(rig.j, 1);
		assert_true(next > lsn); /* never given twice */
		lsn = next;
		if (i % 3 != 0) {
			snprintf(line, sizeof(line), "%d\n", i);
			strcat(want, line);
			rig_append(&rig, "a.jsonl", line);
		}
		rig_close(&rig);
	}
	rig_holds(&rig, "a.jsonl", want);
	rig_holds(&rig, "FORMAT", "ava 2\n");
	assert_true(rig_wal_files(&rig, ".seg") <= 6);
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

	snprintf(parent, sizeof(parent), "%s/..", rig.root);
	assert_int_equal(stat(parent, &st), 0);
	above = st.st_ino;
	above_synced = 0;
	ops.fsync = count_fsync;
	sys = &ops;
	rig_open(&rig);
	assert_int_equal(above_synced, 1);
	rig_close(&rig);
	rig_open(&rig);
	assert_int_equal(above_synced, 1); /* later ones need not */
	rig_close(&rig);
	sys = &sys_real;
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

	ops.openat = watch_openat;
	ops.fsync = watch_fsync;
	sys = &ops;
	rig_open(&rig);
	for (int i = 0; i < 2; i++) {
		rig_do(&rig, JOURNAL_PUT, "result.json", i ? "2" : "1", 0);
		in_checkpoint = true;
		assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
		in_checkpoint = false;
		assert_true(synced > 0);
		assert_int_equal(opened_afresh, 0);
	}
	rig_close(&rig);
	sys = &sys_real;
}

TEST(newer_format)
{
	static const char *const others[] = {"ava 1\n", "ava 20\n", "", "ava 2", "ava 2\nx"};
	struct ava_error err;

	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		unit_write(rig_path(&rig, "FORMAT"), others[i], strlen(others[i]));
		assert_int_equal(journal_open(&rig.j, &rig.o, &rig.rec, &err), AVA_EFORMAT);
		assert_non_null(strstr(err.text, "FORMAT"));
		assert_null(rig.j);
		rig_holds(&rig, "FORMAT", others[i]);
	}
}

TEST(open_refuses)
{
	struct ava_error err;

	rig.o.segment_bytes = 5000;
	assert_int_equal(journal_open(&rig.j, &rig.o, &rig.rec, &err), AVA_EINVAL);
	rig.o.segment_bytes = 64 << 10;
	rig.o.root = "/nonexistent/root";
	assert_int_equal(journal_open(&rig.j, &rig.o, &rig.rec, &err), AVA_ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/root"));
	rig.o.root = rig.root;
}

/* A file where the folder should be, and a folder where FORMAT should be, are put aside. */
TEST(odd_files)
{
	unit_write(rig_path(&rig, "wal"), "a person's\n", 11);
	assert_int_equal(mkdir(rig_path(&rig, "FORMAT"), 0700), 0);
	rig_open(&rig);
	rig_append(&rig, "a.jsonl", "a\n");
	rig_holds(&rig, "wal.broken", "a person's\n");
	rig_holds(&rig, "FORMAT", "ava 2\n");
	assert_true(rig_exists(&rig, "FORMAT.broken"));
}

/* ---- operations */

TEST(put)
{
	rig_open(&rig);
	rig_do(&rig, JOURNAL_PUT, "runs/S-1/result.json", "first, and longer", 0);
	rig_do(&rig, JOURNAL_PUT, "runs/S-1/result.json", "second", 0);
	rig_holds(&rig, "runs/S-1/result.json", "second");
	rig_do(&rig, JOURNAL_PUT, "runs/S-1/result.json", "", 0);
	rig_holds(&rig, "runs/S-1/result.json", "");
	assert_false(rig_exists(&rig, "runs/S-1/result.json.tmp"));
	/* what is no file is put aside */
	assert_int_equal(mkdir(rig_path(&rig, "dir"), 0700), 0);
	rig_do(&rig, JOURNAL_PUT, "dir", "ours", 0);
	rig_holds(&rig, "dir", "ours");
	assert_true(rig_exists(&rig, "dir.broken"));
}

TEST(create)
{
	struct stat st;

	rig_open(&rig);
	rig_do(&rig, JOURNAL_CREATE, "logs/a.jsonl", "", 0);
	rig_holds(&rig, "logs/a.jsonl", "");
	assert_int_equal(stat(rig_path(&rig, "logs/a.jsonl"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(rig_path(&rig, "logs"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	rig_do(&rig, JOURNAL_CREATE, "logs/a.jsonl", "", AVA_EEXIST);
	rig_append(&rig, "b.jsonl", "b\n");
	rig_do(&rig, JOURNAL_CREATE, "b.jsonl", "", AVA_EEXIST);
	unit_write(rig_path(&rig, "c.jsonl"), "a person's\n", 11);
	rig_do(&rig, JOURNAL_CREATE, "c.jsonl", "", AVA_EEXIST);
	rig_holds(&rig, "c.jsonl", "a person's\n");
}

/* A commit that fails has done nothing, wherever in it the fault is. */
TEST(all_or_nothing)
{
	rig_open(&rig);
	rig_append(&rig, "a.jsonl", "one\n");
	for (unsigned bad = 0; bad < 4; bad++) {
		struct journal_op ops[4] = {
			{.kind = JOURNAL_APPEND, .path = "a.jsonl", .bytes = "no\n", .len = 3},
			{.kind = JOURNAL_PUT, .path = "p", .bytes = "no", .len = 2},
			{.kind = JOURNAL_APPEND, .path = "b.jsonl", .bytes = "no\n", .len = 3},
			{.kind = JOURNAL_CREATE, .path = "c.jsonl"},
		};
		unsigned before = rig.answered;

		ops[bad] = (struct journal_op){.kind = JOURNAL_CREATE, .path = "a.jsonl"};
		assert_int_equal(journal_commit(rig.j, ops, 4, JOURNAL_NOW, rig_done, &rig), 0);
		journal_sync(rig.j);
		assert_int_equal(rig.answered, before + 1);
		assert_int_equal(rig.last_rv, AVA_EEXIST);
		rig_holds(&rig, "a.jsonl", "one\n");
		assert_false(rig_exists(&rig, "p"));
		assert_false(rig_exists(&rig, "b.jsonl"));
		assert_false(rig_exists(&rig, "c.jsonl"));
	}
	rig_append(&rig, "a.jsonl", "two\n"); /* offsets were taken back */
	rig_append(&rig, "b.jsonl", "b\n");
	rig_holds(&rig, "a.jsonl", "one\ntwo\n");
	rig_holds(&rig, "b.jsonl", "b\n");
}

TEST(drop_forgets)
{
	struct journal_stats s;

	rig_open(&rig);
	rig_append(&rig, "keep.jsonl", "x\n");
	for (int i = 0; i < 50; i++) {
		char path[32];

		snprintf(path, sizeof(path), "logs/%d.jsonl", i);
		rig_append(&rig, path, "x\n");
		rig_do(&rig, JOURNAL_DROP, path, "", 0);
	}
	journal_stats(rig.j, &s);
	assert_int_equal(s.views, 51);
	assert_int_equal(s.open_fds, 1);
	assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
	journal_drain(rig.j);
	journal_stats(rig.j, &s);
	assert_int_equal(s.views, 1);
	rig_append(&rig, "logs/7.jsonl", "again\n"); /* against the rule, but no harm */
	rig_holds(&rig, "logs/7.jsonl", "x\nagain\n");
	assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
}

/* ---- what is refused */

TEST(bad_commits)
{
	static const char *const paths[] = {"",       "/abs", "a/",     "a//b", "..",
					    "a/../b", "./a",  "a b",    "a\nb", "a\xc3\xa9",
					    "wal/x",  "wal",  "FORMAT", "a/."};
	char longest[600];

	rig_open(&rig);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		assert_int_equal(rig_put(&rig, JOURNAL_APPEND, paths[i], "x\n"), AVA_EINVAL);
	assert_int_equal(rig_put(&rig, JOURNAL_APPEND, NULL, "x\n"), AVA_EINVAL);
	memset(longest, 'a', sizeof(longest));
	longest[599] = '\0';
	assert_int_equal(rig_put(&rig, JOURNAL_APPEND, longest, "x\n"), AVA_EINVAL);
	longest[201] = '\0'; /* one component */
	assert_int_equal(rig_put(&rig, JOURNAL_APPEND, longest, "x\n"), AVA_EINVAL);
	longest[200] = '\0';
	rig_append(&rig, longest, "x\n");
	assert_int_equal(rig_put(&rig, (enum journal_op_kind)9, "a", ""), AVA_EINVAL);
	assert_int_equal(rig_put(&rig, JOURNAL_CREATE, "a", "bytes"), AVA_EINVAL);
	assert_int_equal(rig_put(&rig, JOURNAL_ENTRY, "a", "no id"), AVA_EINVAL);
	assert_int_equal(journal_commit(rig.j, NULL, 0, JOURNAL_NOW, rig_done, &rig), AVA_EINVAL);
	/* one path is used one way */
	rig_append(&rig, "v.jsonl", "x\n");
	assert_int_equal(rig_put(&rig, JOURNAL_PUT, "v.jsonl", "x"), AVA_EINVAL);
	assert_int_equal(rig.answered, 2);
}

TEST(no_memory)
{
	char path[64];
	long k = 0;
	int rv;
	bool hit;

	rig_open(&rig);
	rig_append(&rig, "warm.jsonl", "x\n");
	do {
		snprintf(path, sizeof(path), "m/%ld.jsonl", k);
		fault_alloc(k++);
		rv = rig_put(&rig, JOURNAL_APPEND, path, "x\n");
		hit = fault_alloc_end();
		assert_true(rv == 0 || rv == AVA_ENOMEM);
	} while (hit && k < 50);
	assert_true(k > 2 && rv == 0);
	journal_sync(rig.j);
	rig_append(&rig, "warm.jsonl", "y\n");
	rig_holds(&rig, "warm.jsonl", "x\ny\n");
	rig_close(&rig);
	k = 0;
	do {
		fault_alloc(k++);
		rv = journal_open(&rig.j, &rig.o, &rig.rec, NULL);
		if (rv == 0)
			rig_close(&rig);
		hit = fault_alloc_end();
		assert_true(rv == 0 || rv == AVA_ENOMEM || rv == AVA_EIO);
	} while (hit && k < 500);
	assert_true(k > 10 && rv == 0);
	rig_open(&rig);
	rig_append(&rig, "warm.jsonl", "z\n");
	rig_holds(&rig, "warm.jsonl", "x\ny\nz\n");
}

/* ---- room of its own */

static void rig_checkpoint(void)
{
	rig_open(&rig);
	assert_int_equal(journal_checkpoint(rig.j, NULL), 0); /* behind a look at the ballast */
	rig_close(&rig);
}

/* Pieces are given up for want of room alone, one by one; removed where none are wanted. */
TEST(ballast)
{
	int fd = open(rig.root, O_RDONLY | O_DIRECTORY);

	rig.o.ballast_mb = 3;
	rig_checkpoint();
	assert_int_equal(rig_wal_files(&rig, "ballast"), 3);
	assert_false(ballast_give(fd, EIO));
	assert_true(ballast_give(fd, ENOSPC));
	assert_true(ballast_give(fd, EDQUOT));
	assert_int_equal(errno, EDQUOT);
	assert_int_equal(rig_wal_files(&rig, "ballast"), 1);
	assert_true(ballast_give(fd, ENOSPC));
	assert_false(ballast_give(fd, ENOSPC));
	close(fd);
	rig_checkpoint();
	assert_int_equal(rig_wal_files(&rig, "ballast"), 3);
	rig.o.ballast_mb = 0;
	rig_checkpoint();
	assert_int_equal(rig_wal_files(&rig, "ballast"), 0);
}

/* ---- what a person does while the journal runs */

TEST(view_path)
{
	char out[64];

	rig_open(&rig);
	assert_string_equal(journal_view_path(rig.j, "a.jsonl", out, sizeof(out)), "a.jsonl");
	unit_write(rig_path(&rig, "a.jsonl"), "whole\nhal", 9);
	rig_append(&rig, "a.jsonl", "mine\n");
	rig_holds(&rig, "a.jsonl", "whole\nhal");
	rig_holds(&rig, "a.jsonl.broken", "hal");
	rig_holds(&rig, "a.2.jsonl", "mine\n");
	assert_string_equal(journal_view_path(rig.j, "a.jsonl", out, sizeof(out)), "a.2.jsonl");
	rig_close(&rig);
	rig_open(&rig);
	assert_string_equal(journal_view_path(rig.j, "a.jsonl", out, sizeof(out)), "a.2.jsonl");
	rig_append(&rig, "a.jsonl", "more\n");
	rig_holds(&rig, "a.2.jsonl", "mine\nmore\n");
	assert_string_equal(journal_view_path(rig.j, "../x", out, sizeof(out)), "");
}

/* One descriptor for two views: each append looks at its file anew. */
TEST(changed_while_open)
{
	char new[600];

	rig.o.fd_cache = 1;
	rig_open(&rig);
	rig_append(&rig, "gone.jsonl", "1\n");
	rig_append(&rig, "short.jsonl", "1\n");
	rig_append(&rig, "longer.jsonl", "1\n");
	rig_append(&rig, "other.jsonl", "1\n");
	assert_int_equal(unlink(rig_path(&rig, "gone.jsonl")), 0);
	assert_int_equal(truncate(rig_path(&rig, "short.jsonl"), 0), 0);
	unit_write(rig_path(&rig, "longer.jsonl"), "1\nmine\n", 7);
	unit_write(rig_path(&rig, "new"), "1\n", 2);
	snprintf(new, sizeof(new), "%s", rig_path(&rig, "new"));
	assert_int_equal(rename(new, rig_path(&rig, "other.jsonl")), 0);
	rig_append(&rig, "gone.jsonl", "2\n");
	rig_append(&rig, "short.jsonl", "2\n");
	rig_append(&rig, "longer.jsonl", "2\n");
	rig_append(&rig, "other.jsonl", "2\n");
	assert_false(rig_exists(&rig, "gone.jsonl"));
	rig_holds(&rig, "gone.2.jsonl", "2\n");
	rig_holds(&rig, "short.jsonl", "");
	rig_holds(&rig, "short.2.jsonl", "2\n");
	rig_holds(&rig, "longer.jsonl", "1\nmine\n");
	rig_holds(&rig, "longer.2.jsonl", "2\n");
	rig_holds(&rig, "other.jsonl", "1\n");
	rig_holds(&rig, "other.2.jsonl", "2\n");
	rig_append(&rig, "gone.jsonl", "3\n");
	rig_holds(&rig, "gone.2.jsonl", "2\n3\n");
	rig_close(&rig);
	rig_open(&rig);
	rig_append(&rig, "other.jsonl", "3\n");
	rig_holds(&rig, "other.2.jsonl", "2\n3\n");
}

TEST(no_regular_file)
{
	rig_open(&rig);
	assert_int_equal(mkdir(rig_path(&rig, "dir.jsonl"), 0700), 0);
	assert_int_equal(mkfifo(rig_path(&rig, "fifo.jsonl"), 0600), 0);
	assert_int_equal(symlink("/dev/null", rig_path(&rig, "link.jsonl")), 0);
	for (int i = 0; i < 2; i++) { /* they stay, and writing goes on beside them */
		rig_append(&rig, "dir.jsonl", "x\n");
		rig_append(&rig, "fifo.jsonl", "x\n");
		rig_append(&rig, "link.jsonl", "x\n");
		assert_int_equal(journal_health(rig.j, NULL), 0);
		rig_close(&rig);
		rig_open(&rig);
	}
	rig_holds(&rig, "dir.2.jsonl", "x\nx\n");
	rig_holds(&rig, "fifo.2.jsonl", "x\nx\n");
	rig_holds(&rig, "link.2.jsonl", "x\nx\n");
	rig_append(&rig, "a.jsonl", "x\n");
}

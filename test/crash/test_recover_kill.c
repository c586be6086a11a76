/* Death at every call to the disk. First of a working journal: whatever was
 * answered is there afterwards, and what is there is a prefix of what was
 * asked for. Then of recovery itself: killed at any call and started again it
 * ends in the same files. After each death the disk is taken as a kill leaves
 * it, and as power cuts may. */
#include "crash.h"

#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/buf.h"

#define COMMITS 40
#define CUTS    6 /* power cuts tried after each death */

/* ---- the work */

static char long_line[70001];

/* What commit i does; `expect` NULL: it is committed; else what it does to the
 * content of file `name` is done to *expect. */
static void script(int i, struct journal_op ops[2], unsigned *n, char text[2][64],
		   char paths[2][32])
{
	*n = 1;
	for (int k = 0; k < 2; k++)
		ops[k] = (struct journal_op){
			.kind = JOURNAL_APPEND, .path = paths[k], .bytes = text[k]};
	snprintf(text[0], 64, "line %d\n", i);
	snprintf(paths[0], 32, "d/v%d.jsonl", i % 3);
	if (i % 8 == 0) {
		snprintf(paths[0], 32, "c/%d.jsonl", i);
		ops[1] = ops[0];
		ops[0] = (struct journal_op){.kind = JOURNAL_CREATE, .path = paths[0]};
		*n = 2;
	} else if (i % 8 == 3) {
		snprintf(paths[1], 32, "d/v%d.jsonl", (i + 1) % 3);
		snprintf(text[1], 64, "also %d\n", i);
		*n = 2;
	} else if (i % 8 == 4) {
		ops[0].kind = JOURNAL_PUT;
		snprintf(paths[0], 32, "p/result.json");
	} else if (i % 8 == 5) {
		ops[0].kind = JOURNAL_ENTRY;
		ops[0].id = text[1];
		snprintf(text[1], 64, "e%d", i);
		snprintf(text[0], 64, "{\"id\":\"e%d\",\"parentId\":null}\n", i);
		snprintf(paths[0], 32, "s.jsonl");
	} else if (i == 14) {
		ops[0].bytes = long_line;
	}
	for (unsigned k = 0; k < *n; k++)
		if (ops[k].kind != JOURNAL_CREATE)
			ops[k].len = strlen(ops[k].bytes);
}

/* How many commits were answered well before the disk died. */
static int work(struct rig *r)
{
	char text[2][64], paths[2][32];
	struct journal_op ops[2];
	unsigned n;
	int i;

	for (i = 0; i < COMMITS; i++) {
		unsigned before = r->answered;

		script(i, ops, &n, text, paths);
		if (journal_commit(r->j, ops, n, JOURNAL_NOW, rig_done, r) != 0)
			break;
		if (journal_sync(r->j) != 0 || r->answered == before || r->last_rv != 0)
			break;
		if (i % 10 == 9 && journal_checkpoint(r->j, NULL) != 0)
			return i + 1;
	}
	return i;
}

/* ---- what must be there */

struct file {
	const char *path;
	struct buf want;
};

#define FILES 10
static const char *const file_names[FILES] = {
	"/d/v0.jsonl", "/d/v1.jsonl", "/d/v2.jsonl", "/c/0.jsonl",     "/c/8.jsonl",
	"/c/16.jsonl", "/c/24.jsonl", "/c/32.jsonl", "/p/result.json", "/s.jsonl"};

static void expect(struct file f[FILES], int commits)
{
	char text[2][64], paths[2][32], parent[16] = "null";
	struct journal_op ops[2];
	unsigned n;

	for (int i = 0; i < FILES; i++)
		buf_reset(&f[i].want);
	for (int i = 0; i < commits; i++) {
		script(i, ops, &n, text, paths);
		for (unsigned k = 0; k < n; k++)
			for (int x = 0; x < FILES; x++) {
				if (strcmp(f[x].path + 1, ops[k].path) != 0)
					continue;
				if (ops[k].kind == JOURNAL_PUT)
					buf_reset(&f[x].want);
				if (ops[k].kind != JOURNAL_ENTRY) {
					buf_add(&f[x].want, ops[k].bytes, ops[k].len);
					continue;
				}
				buf_addf(&f[x].want, "{\"id\":\"%s\",\"parentId\":%s}\n", ops[k].id,
					 parent);
				snprintf(parent, sizeof(parent), "\"%s\"", ops[k].id);
			}
	}
}

static bool as_expected(struct rig *r, struct file f[FILES])
{
	for (int i = 0; i < FILES; i++) {
		size_t len;
		const char *got = memdisk_read(r->d, f[i].path, &len);

		if (got == NULL ? f[i].want.len != 0
				: len != f[i].want.len ||
					  (len != 0 && memcmp(got, f[i].want.data, len) != 0))
			return false;
	}
	return true;
}

static void check_tree(struct rig *r, int answered, long k, int cut)
{
	struct file f[FILES];
	bool good = false;

	for (int i = 0; i < FILES; i++) {
		f[i].path = file_names[i];
		buf_init(&f[i].want, 1 << 20);
	}
	for (int n = answered; n <= answered + 1 && n <= COMMITS && !good; n++) {
		expect(f, n);
		good = as_expected(r, f);
	}
	if (!good || r->rec.nproblems != 0 || r->rec.damaged_batches != 0)
		fail_msg("call %ld, cut %d, %d answered: %s", k, cut, answered, r->rec.problems);
	for (int i = 0; i < FILES; i++)
		buf_fini(&f[i].want);
}

/* The disk as it may be now; `cut` 0: a kill, else a power cut. */
static struct memdisk *after(const struct memdisk *d, int cut, long k)
{
	uint64_t random = (uint64_t)(k * 100 + cut + 1) * 0x9e3779b97f4a7c15u;
	struct memdisk *left = memdisk_clone(d);

	if (cut == 1)
		memdisk_power_cut(left, memdisk_none, NULL);
	else if (cut == 2)
		memdisk_power_cut(left, memdisk_all, NULL);
	else if (cut > 2)
		memdisk_power_cut(left, crash_pick, &random);
	return left;
}

/* ---- killed at work */

static void check_all_cuts(struct rig *r, int answered, long k)
{
	struct memdisk *dead = r->d;

	for (int cut = 0; cut < CUTS; cut++) {
		r->d = after(dead, cut, k);
		memdisk_use(r->d);
		rig_open(r);
		check_tree(r, answered, k, cut);
		rig_append(r, "d/v0.jsonl", "and it goes on\n");
		rig_close(r);
		memdisk_free(r->d);
	}
	r->d = dead;
	memdisk_use(dead);
}

TEST(killed_at_work)
{
	bool hit = true;
	long k;

	memset(long_line, 'x', sizeof(long_line) - 2);
	long_line[sizeof(long_line) - 2] = '\n';
	for (k = 0; hit; k++) {
		struct rig r;
		int answered = 0;

		rig_init(&r);
		memdisk_fail(r.d, k, MEMDISK_FOREVER, EIO);
		if (journal_open(&r.j, &r.o, &r.rec, NULL) == 0) {
			answered = work(&r);
			rig_close(&r);
		}
		hit = memdisk_fail_end(r.d);
		assert_true(hit || answered == COMMITS);
		check_all_cuts(&r, answered, k);
		rig_fini(&r);
	}
	print_message("%ld calls\n", k);
	assert_true(k > 200);
}

/* ---- killed in recovery */

static void collect(const char *path, const char *bytes, size_t len, void *user)
{
	struct buf *b = user;

	if (strncmp(path, "/wal/", 5) == 0)
		return;
	buf_addf(b, "%s %zu ", path, len);
	buf_add(b, bytes != NULL ? bytes : "", len);
	buf_addc(b, '\0');
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every file with its content, in order of names. */
static void picture(struct memdisk *d, struct buf *out)
{
	const char *names[64];
	struct buf all;
	size_t n = 0;

	buf_init(&all, 8 << 20);
	memdisk_walk(d, collect, &all);
	for (size_t at = 0; at < all.len; at += strlen(all.data + at) + 1) {
		assert_true(n < 64);
		names[n++] = all.data + at;
	}
	qsort(names, n, sizeof(names[0]), by_name);
	for (size_t i = 0; i < n; i++)
		buf_addf(out, "%s\n", names[i]);
	assert_int_equal(buf_check(out), 0);
	buf_fini(&all);
}

/* A crash with everything in it: lines to redo, a put, an entry, a blob, and
 * views that a person deleted, edited, replaced and added to. */
static void accident(struct rig *r)
{
	rig_init(r);
	rig_open(r);
	rig_settle(r);
	for (int i = 0; i < 5; i++) {
		char path[16];

		snprintf(path, sizeof(path), "x/%d.jsonl", i);
		rig_append(r, path, "released\n");
	}
	assert_int_equal(journal_checkpoint(r->j, NULL), 0);
	assert_int_equal(work(r), COMMITS);
	for (int i = 0; i < 5; i++) {
		char path[16];

		snprintf(path, sizeof(path), "x/%d.jsonl", i);
		rig_append(r, path, "pending\n");
	}
	rig_crash(r);
	memdisk_remove(r->d, "/x/0.jsonl");
	memdisk_poke(r->d, "/x/1.jsonl", 12, 0x01);
	memdisk_remove(r->d, "/x/2.jsonl");
	memdisk_write(r->d, "/x/2.jsonl", "released\npending\n", 17);
	memdisk_write(r->d, "/x/3.jsonl", "released\npending\nmine\n", 22);
	memdisk_write(r->d, "/p/result.json", "a person's", 10);
	memdisk_remove(r->d, "/d"); /* the journal has these whole, or from a checkpoint */
	memdisk_power_cut(r->d, memdisk_all, NULL);
}

static void recover_and_look(struct rig *r, struct buf *seen)
{
	rig_open(r);
	rig_close(r);
	picture(r->d, seen);
}

TEST(killed_in_recovery)
{
	struct memdisk *base;
	struct buf want, got;
	struct rig r;
	bool hit = true;
	long k;

	buf_init(&want, 8 << 20);
	buf_init(&got, 8 << 20);
	accident(&r);
	base = memdisk_clone(r.d);
	recover_and_look(&r, &want);
	assert_non_null(strstr(want.data, "/x/0.2.jsonl"));
	assert_non_null(strstr(want.data, "/x/3.jsonl.broken"));
	assert_non_null(strstr(want.data, "/lost/x+2."));
	memdisk_use(NULL);
	memdisk_free(r.d);
	for (k = 0; hit; k++) {
		struct memdisk *d = memdisk_clone(base);

		memdisk_use(d);
		memdisk_fail(d, k, MEMDISK_FOREVER, EIO);
		if (journal_open(&r.j, &r.o, &r.rec, NULL) == 0)
			rig_close(&r);
		hit = memdisk_fail_end(d);
		memdisk_kill(d);
		for (int cut = 0; cut < CUTS; cut++) {
			r.d = after(d, cut, k);
			memdisk_use(r.d);
			buf_reset(&got);
			recover_and_look(&r, &got);
			if (strcmp(want.data, got.data) != 0)
				fail_msg("call %ld, cut %d:\n%s\nnot\n%s", k, cut, got.data,
					 want.data);
			memdisk_free(r.d);
		}
		memdisk_free(d);
	}
	print_message("%ld calls\n", k);
	assert_true(k > 50);
	memdisk_use(NULL);
	memdisk_free(base);
	buf_fini(&want);
	buf_fini(&got);
}

/* ---- a file that was made and not written yet, when a checkpoint looks */

static struct sys_ops slow;
static sem_t is_made, may_write;
static atomic_int made_fd;

static int slow_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	int fd = memdisk_ops.openat(dirfd, path, flags, mode);

	if ((flags & O_CREAT) != 0 && strstr(path, "new.jsonl") != NULL)
		atomic_store(&made_fd, fd);
	return fd;
}

static ssize_t slow_pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	if (fd == atomic_load(&made_fd)) {
		sem_post(&is_made);
		sem_wait(&may_write);
	}
	return memdisk_ops.pwrite(fd, bytes, len, at);
}

/* Power is lost behind that checkpoint, and the recovery is killed everywhere:
 * the file that the recovery made is ours, although it is another one. */
TEST(checkpoint_between_making_and_writing)
{
	struct memdisk *base;
	struct rig r;
	bool hit = true;

	assert_int_equal(sem_init(&is_made, 0, 0) | sem_init(&may_write, 0, 0), 0);
	atomic_store(&made_fd, -1);
	rig_init(&r);
	slow = memdisk_ops;
	slow.openat = slow_openat;
	slow.pwrite = slow_pwrite;
	sys = &slow;
	rig_open(&r);
	assert_int_equal(rig_put(&r, JOURNAL_APPEND, "d/new.jsonl", "one\n"), 0);
	sem_wait(&is_made);
	assert_int_equal(journal_checkpoint(r.j, NULL), 0);
	base = memdisk_clone(r.d);
	memdisk_power_cut(base, memdisk_none, NULL);
	sem_post(&may_write);
	rig_fini(&r);
	for (long k = 0; hit; k++) {
		r.d = memdisk_clone(base);
		memdisk_use(r.d);
		memdisk_fail(r.d, k, MEMDISK_FOREVER, EIO);
		if (journal_open(&r.j, &r.o, &r.rec, NULL) == 0)
			rig_close(&r);
		hit = memdisk_fail_end(r.d);
		memdisk_kill(r.d);
		rig_open(&r);
		if (r.rec.nproblems != 0)
			fail_msg("call %ld: %s", k, r.rec.problems);
		rig_holds(&r, "/d/new.jsonl", "one\n");
		rig_fini(&r);
	}
	memdisk_free(base);
	sem_destroy(&is_made);
	sem_destroy(&may_write);
}

/* One call fails and the process lives: the open fails with a sentence, or it
 * did not matter; the next one ends in the same files. */
TEST(fault_in_recovery)
{
	struct memdisk *base;
	struct buf want, got;
	struct rig r;
	bool hit = true;

	buf_init(&want, 8 << 20);
	buf_init(&got, 8 << 20);
	accident(&r);
	base = memdisk_clone(r.d);
	recover_and_look(&r, &want);
	memdisk_use(NULL);
	memdisk_free(r.d);
	for (long k = 0; hit; k++) {
		struct ava_error err = {0};
		int rv;

		r.d = memdisk_clone(base);
		memdisk_use(r.d);
		memdisk_fail(r.d, k, MEMDISK_ONCE, k % 2 == 0 ? ENOSPC : EIO);
		rv = journal_open(&r.j, &r.o, &r.rec, &err);
		if (rv == 0)
			rig_close(&r);
		else
			assert_true(err.text[0] != '\0' && strchr(err.text, '\n') == NULL);
		hit = memdisk_fail_end(r.d);
		buf_reset(&got);
		recover_and_look(&r, &got);
		if (strcmp(want.data, got.data) != 0)
			fail_msg("call %ld (%s):\n%s\nnot\n%s", k, err.text, got.data, want.data);
		memdisk_use(NULL);
		memdisk_free(r.d);
	}
	memdisk_free(base);
	buf_fini(&want);
	buf_fini(&got);
}

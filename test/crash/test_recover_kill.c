/* Death at every call of a recovery that has everything to do, also behind people: killed
 * at any call and started again it ends in the same files. After each death the disk is
 * taken as a kill leaves it, and as power cuts may. */
#include "crash.h"

#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "life.h"

/* ---- killed in recovery */

static void work(struct rig *r)
{
	const struct story s = {7, 46}; /* 14 of them behind its last checkpoint */
	struct story_step st;

	story_step_init(&st);
	for (int i = 0; i < s.commits; i++) {
		story_step(&s, i, &st);
		assert_int_equal(journal_commit(r->j, st.ops, st.n, JOURNAL_NOW, rig_done, r), 0);
		assert_int_equal(journal_sync(r->j), 0);
		assert_int_equal(r->last_rv, 0);
		if (st.checkpoint)
			assert_int_equal(journal_checkpoint(r->j, NULL), 0);
	}
	story_step_fini(&st);
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
	work(r);
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
	memdisk_write(r->d, "/p/0.json", "a person's", 10);
	memdisk_remove(r->d, "/d"); /* the journal has these whole, or from a checkpoint */
	memdisk_power_cut(r->d, memdisk_all, NULL);
}

static uint64_t recover_and_look(struct rig *r)
{
	memdisk_use(r->d);
	rig_open(r);
	rig_close(r);
	return story_picture(r->d);
}

static void is_put_aside(const char *path, const char *bytes, size_t len, void *user)
{
	*(bool *)user = *(bool *)user || strncmp(path, "/lost/x+2.", 10) == 0;
}

/* The disk of an accident, and what becomes of it. */
static struct memdisk *after_accident(uint64_t *want)
{
	struct memdisk *base;
	bool aside = false;
	struct rig r;

	accident(&r);
	base = memdisk_clone(r.d);
	*want = recover_and_look(&r);
	assert_true(rig_has(&r, "/x/0.2.jsonl") && rig_has(&r, "/x/3.jsonl.broken"));
	memdisk_walk(r.d, is_put_aside, &aside);
	assert_true(aside);
	memdisk_use(NULL);
	memdisk_free(r.d);
	return base;
}

TEST(killed_in_recovery)
{
	uint64_t want;
	struct memdisk *base = after_accident(&want);
	struct rig r = {.o = {.root = "/", .segment_bytes = 64 << 10}};
	bool hit = true;
	long k;

	for (k = 0; hit; k++) {
		struct memdisk *d = memdisk_clone(base);

		memdisk_use(d);
		memdisk_fail(d, k, MEMDISK_FOREVER, EIO);
		if (journal_open(&r.j, &r.o, &r.rec, NULL) == 0)
			rig_close(&r);
		hit = memdisk_fail_end(d);
		memdisk_kill(d);
		for (int cut = 0; cut < CUTS; cut++) {
			r.d = cut_disk(d, (enum cut)cut, (uint64_t)k);
			if (recover_and_look(&r) != want)
				fail_msg("call %ld, %s: other files", k, cut_names[cut]);
			memdisk_free(r.d);
		}
		memdisk_free(d);
	}
	print_message("%ld calls\n", k);
	assert_true(k > 50);
	memdisk_use(NULL);
	memdisk_free(base);
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
	uint64_t want;
	struct memdisk *base = after_accident(&want);
	struct rig r = {.o = {.root = "/", .segment_bytes = 64 << 10}};
	bool hit = true;

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
		if (recover_and_look(&r) != want)
			fail_msg("call %ld (%s): other files", k, err.text);
		memdisk_use(NULL);
		memdisk_free(r.d);
	}
	memdisk_free(base);
}

/* A checkpoint beside the journal's thread and beside what people do to its files: the
 * helper is held in the middle of one while the others go on. Then power is lost, with all
 * that was not synced, and nothing that was answered may be gone. */
#include "crash.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

/* ---- the helper is held in its first sync of a file, once it is `armed` */

static struct sys_ops held;
static sem_t reached, go_on;
static atomic_bool armed;
static pthread_t checkpoint;

static int held_fdatasync(int fd)
{
	if (atomic_exchange(&armed, false)) {
		sem_post(&reached);
		sem_wait(&go_on);
	}
	return memdisk_ops.fdatasync(fd);
}

/* One descriptor for all logs: who comes again looks at its file again. */
static void beside_begin(struct rig *r)
{
	assert_int_equal(sem_init(&reached, 0, 0) | sem_init(&go_on, 0, 0), 0);
	rig_init(r);
	r->o.fd_cache = 1;
	held = memdisk_ops;
	held.fdatasync = held_fdatasync;
	sys = &held;
}

static void beside_init(struct rig *r)
{
	beside_begin(r);
	rig_open(r);
}

static void beside_fini(struct rig *r)
{
	rig_fini(r);
	sem_destroy(&reached);
	sem_destroy(&go_on);
}

static void *make_checkpoint(void *rig)
{
	struct rig *r = rig;

	assert_int_equal(journal_checkpoint(r->j, NULL), 0);
	return NULL;
}

static void checkpoint_begins(struct rig *r)
{
	armed = true;
	assert_int_equal(pthread_create(&checkpoint, NULL, make_checkpoint, r), 0);
	sem_wait(&reached);
}

static void checkpoint_goes_on(void)
{
	sem_post(&go_on);
	pthread_join(checkpoint, NULL);
}

static void lose_power(struct rig *r)
{
	struct memdisk *left = memdisk_clone(r->d);

	rig_close(r);
	memdisk_free(r->d);
	r->d = left;
	memdisk_power_cut(left, memdisk_none, NULL);
	memdisk_use(left);
	rig_open(r);
}

static void edit(struct rig *r, const char *path, const char *text)
{
	memdisk_write(r->d, path, text, strlen(text));
}

/* ---- a log that a person edited goes on in its next part */

/* One mark for what was written to both parts. */
TEST(went_on_before)
{
	struct rig r;

	beside_init(&r);
	rig_append(&r, "a.jsonl", "1\n");
	rig_append(&r, "b.jsonl", "1\n");
	edit(&r, "/a.jsonl", "1\ntheirs\n");
	rig_append(&r, "a.jsonl", "2\n");
	assert_int_equal(journal_checkpoint(r.j, NULL), 0);
	lose_power(&r);
	rig_holds(&r, "/a.jsonl", "1\ntheirs\n");
	rig_holds(&r, "/a.2.jsonl", "2\n");
	beside_fini(&r);
}

/* Between the look at its mark and its sync. */
TEST(goes_on_meanwhile)
{
	struct rig r;

	beside_init(&r);
	rig_append(&r, "a.jsonl", "1\n");
	rig_append(&r, "b.jsonl", "1\n"); /* the newest log is synced first */
	assert_int_equal(journal_checkpoint(r.j, NULL), 0);
	rig_append(&r, "b.jsonl", "2\n");
	rig_append(&r, "a.jsonl", "2\n");
	checkpoint_begins(&r);
	edit(&r, "/a.jsonl", "1\n2\ntheirs\n");
	rig_append(&r, "c.jsonl", "1\n");
	rig_append(&r, "a.jsonl", "3\n");
	checkpoint_goes_on();
	lose_power(&r);
	rig_holds(&r, "/a.jsonl", "1\n2\ntheirs\n");
	rig_holds(&r, "/b.jsonl", "1\n2\n");
	beside_fini(&r);
}

/* ---- a file that a person moved away, with another one in its place or none, or its folder */

static void move(const char *from, const char *to)
{
	assert_int_equal(sys->renameat(AT_FDCWD, from, AT_FDCWD, to), 0);
}

TEST(moved_away)
{
	struct rig r;

	for (int replaced = 0; replaced < 2; replaced++) {
		beside_init(&r);
		rig_append(&r, "a.jsonl", "1\n");
		move("/a.jsonl", "/saved.jsonl");
		if (replaced)
			edit(&r, "/a.jsonl", "theirs\n");
		assert_int_equal(journal_checkpoint(r.j, NULL), 0);
		lose_power(&r);
		rig_holds(&r, "/saved.jsonl", "1\n");
		beside_fini(&r);
	}
}

TEST(folder_moved_away)
{
	struct ava_error err = {0};
	struct rig r;

	for (int removed = 0; removed < 2; removed++) {
		beside_init(&r);
		rig_do(&r, JOURNAL_PUT, "runs/1/result.json", "{}\n", 0);
		if (removed)
			memdisk_remove(r.d, "/runs/1");
		else
			move("/runs/1", "/saved");
		if (journal_checkpoint(r.j, &err) != 0)
			fail_msg("%s", err.text);
		lose_power(&r);
		if (!removed)
			rig_holds(&r, "/saved/result.json", "{}\n");
		beside_fini(&r);
	}
}

/* ---- a log that is closed meanwhile. An error of writing it back is told to who has had it
 * open since; opened afresh it may not be known any more. */

static atomic_int open_fd, unheard;

static int watched_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	int fd = memdisk_ops.openat(dirfd, path, flags, mode);

	if (strcmp(path, "a.jsonl") != 0 || fd < 0)
		return fd;
	if ((flags & O_ACCMODE) != O_RDONLY)
		open_fd = fd;
	else if (open_fd < 0)
		unheard++;
	return fd;
}

static int watched_close(int fd)
{
	int its = fd;

	atomic_compare_exchange_strong(&open_fd, &its, -1);
	return memdisk_ops.close(fd);
}

/* Behind the look at its mark and before its sync; and written once more during that. */
TEST(closed_meanwhile)
{
	struct rig r;

	for (int behind = 0; behind < 2; behind++) {
		beside_begin(&r);
		open_fd = -1;
		unheard = 0;
		held.openat = watched_openat;
		held.close = watched_close;
		rig_open(&r);
		if (behind) /* the newest is synced first */
			rig_append(&r, "b.jsonl", "1\n");
		rig_append(&r, "a.jsonl", "1\n");
		rig_append(&r, "b.jsonl", "2\n");
		assert_int_equal(journal_checkpoint(r.j, NULL), 0);
		rig_append(&r, "b.jsonl", "3\n");
		rig_append(&r, "a.jsonl", "2\n");
		checkpoint_begins(&r);
		if (behind)
			rig_append(&r, "a.jsonl", "3\n");
		rig_append(&r, "c.jsonl", "1\n");
		checkpoint_goes_on();
		assert_int_equal(journal_checkpoint(r.j, NULL), 0);
		assert_int_equal(unheard, 0);
		beside_fini(&r);
	}
}

/* ---- a log that a person put there: its name may not be durable */

TEST(put_there)
{
	struct rig r;

	beside_init(&r);
	rig_append(&r, "d/b.jsonl", "1\n");
	assert_int_equal(journal_checkpoint(r.j, NULL), 0);
	edit(&r, "/d/a.jsonl", "theirs\n");
	rig_append(&r, "d/a.jsonl", "1\n");
	assert_int_equal(journal_checkpoint(r.j, NULL), 0);
	lose_power(&r);
	rig_holds(&r, "/d/a.jsonl", "theirs\n1\n");
	beside_fini(&r);
}

/* ---- an entry whose session a person removed: no checkpoint knows the file it goes to */

TEST(entry_put_aside)
{
	static const char entry[] = "{\"id\":\"e1\",\"parentId\":null}\n";
	struct rig r;

	for (int redone = 0; redone < 2; redone++) {
		beside_init(&r);
		rig_do(&r, JOURNAL_ENTRY, "sessions/--x/s.jsonl", entry, 0);
		if (redone)
			lose_power(&r);
		else
			assert_int_equal(journal_checkpoint(r.j, NULL), 0);
		lose_power(&r);
		rig_holds(&r, "/lost/sessions+--x+s.jsonl", entry);
		beside_fini(&r);
	}
}

/* ---- a blob that is made while the helper looks for those to be removed */

static int slow_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	if (strncmp(path, "blob-", 5) == 0 && atomic_exchange(&armed, false)) {
		sem_post(&reached);
		sem_wait(&go_on);
	}
	return memdisk_ops.openat(dirfd, path, flags, mode);
}

TEST(blob_made_meanwhile)
{
	size_t big = 70000;
	char *text = malloc(big + 1);
	struct rig r;

	memset(text, 'x', big);
	text[big - 1] = '\n';
	text[big] = '\0';
	beside_begin(&r);
	held.openat = slow_openat;
	rig_open(&r);
	armed = true;
	assert_int_equal(rig_put(&r, JOURNAL_APPEND, "a.jsonl", text), 0);
	sem_wait(&reached);
	assert_int_equal(journal_checkpoint(r.j, NULL), 0);
	sem_post(&go_on);
	rig_wait(&r, 1);
	assert_true(rig_has(&r, "/wal/blob-1-0"));
	assert_int_equal(journal_checkpoint(r.j, NULL), 0);
	assert_false(rig_has(&r, "/wal/blob-1-0"));
	free(text);
	beside_fini(&r);
}

/* ---- a file that is put twice in one flush */

static void put_twice(struct rig *r, long fails_at)
{
	beside_init(r);
	rig_do(r, JOURNAL_PUT, "result.json", "0", 0);
	armed = true; /* what comes while the log is synced is one flush */
	assert_int_equal(rig_put(r, JOURNAL_APPEND, "a.jsonl", "1\n"), 0);
	sem_wait(&reached);
	assert_int_equal(rig_put(r, JOURNAL_PUT, "result.json", "1"), 0);
	assert_int_equal(rig_put(r, JOURNAL_PUT, "result.json", "2"), 0);
	memdisk_fail_name(r->d, "result.json", MEMDISK_WRITES);
	memdisk_fail(r->d, fails_at, MEMDISK_FOREVER, ENOSPC);
	sem_post(&go_on);
}

/* The second one is held, behind a checkpoint: what stands there is ours. */
TEST(second_put_is_held)
{
	struct rig r;

	put_twice(&r, 3); /* behind making, writing and renaming the first */
	rig_wait(&r, 3);
	assert_int_equal(journal_checkpoint(r.j, NULL), 0);
	rig_holds(&r, "/result.json", "1");
	rig_crash(&r);
	rig_open(&r);
	assert_string_equal(r.rec.problems, "[]");
	rig_holds(&r, "/result.json", "2");
	beside_fini(&r);
}

/* Both are done, and a person edits the file: that is kept. */
TEST(edited_behind_the_second)
{
	struct rig r;

	put_twice(&r, 6);
	rig_wait(&r, 4);
	edit(&r, "/result.json", "theirs");
	rig_crash(&r);
	rig_open(&r);
	rig_holds(&r, "/result.json", "2");
	rig_holds(&r, "/result.json.broken", "theirs");
	beside_fini(&r);
}

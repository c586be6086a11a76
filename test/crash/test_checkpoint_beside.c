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

RIG_OF_FILE;

/* One descriptor for all logs: who comes again looks at its file again. */
static void beside_begin(struct rig *r)
{
	rig_again(r);
	r->o.fd_cache = 1;
	held = memdisk_ops;
	held.fdatasync = held_fdatasync;
	sys = &held;
	assert_int_equal(sem_init(&reached, 0, 0) | sem_init(&go_on, 0, 0), 0);
}

static void beside_open(struct rig *r)
{
	beside_begin(r);
	rig_open(r);
}

static void *make_checkpoint(void *r)
{
	assert_int_equal(journal_checkpoint(((struct rig *)r)->j, NULL), 0);
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

static void edit(struct rig *r, const char *path, const char *text)
{
	memdisk_write(r->d, path, text, strlen(text));
}

/* ---- a log that a person edited goes on in its next part */

/* One mark for what was written to both parts. */
TEST(went_on_before)
{
	beside_open(&rig);
	rig_append(&rig, "a.jsonl", "1\n");
	rig_append(&rig, "b.jsonl", "1\n");
	edit(&rig, "/a.jsonl", "1\ntheirs\n");
	rig_append(&rig, "a.jsonl", "2\n");
	assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
	rig_lose_power(&rig);
	rig_holds(&rig, "/a.jsonl", "1\ntheirs\n");
	rig_holds(&rig, "/a.2.jsonl", "2\n");
}

/* Between the look at its mark and its sync. */
TEST(goes_on_meanwhile)
{
	beside_open(&rig);
	rig_append(&rig, "a.jsonl", "1\n");
	rig_append(&rig, "b.jsonl", "1\n"); /* the newest log is synced first */
	assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
	rig_append(&rig, "b.jsonl", "2\n");
	rig_append(&rig, "a.jsonl", "2\n");
	checkpoint_begins(&rig);
	edit(&rig, "/a.jsonl", "1\n2\ntheirs\n");
	rig_append(&rig, "c.jsonl", "1\n");
	rig_append(&rig, "a.jsonl", "3\n");
	checkpoint_goes_on();
	rig_lose_power(&rig);
	rig_holds(&rig, "/a.jsonl", "1\n2\ntheirs\n");
	rig_holds(&rig, "/b.jsonl", "1\n2\n");
}

/* ---- a file that a person moved away, with another one in its place or none, or its folder */

static void move(const char *from, const char *to)
{
	assert_int_equal(sys->renameat(AT_FDCWD, from, AT_FDCWD, to), 0);
}

TEST(moved_away)
{
	for (int replaced = 0; replaced < 2; replaced++) {
		beside_open(&rig);
		rig_append(&rig, "a.jsonl", "1\n");
		move("/a.jsonl", "/saved.jsonl");
		if (replaced)
			edit(&rig, "/a.jsonl", "theirs\n");
		assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
		rig_lose_power(&rig);
		rig_holds(&rig, "/saved.jsonl", "1\n");
	}
}

TEST(folder_moved_away)
{
	struct ava_error err = {0};

	for (int removed = 0; removed < 2; removed++) {
		beside_open(&rig);
		rig_do(&rig, JOURNAL_PUT, "runs/1/result.json", "{}\n", 0);
		if (removed)
			memdisk_remove(rig.d, "/runs/1");
		else
			move("/runs/1", "/saved");
		if (journal_checkpoint(rig.j, &err) != 0)
			fail_msg("%s", err.text);
		rig_lose_power(&rig);
		if (!removed)
			rig_holds(&rig, "/saved/result.json", "{}\n");
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
	for (int behind = 0; behind < 2; behind++) {
		beside_begin(&rig);
		open_fd = -1;
		unheard = 0;
		held.openat = watched_openat;
		held.close = watched_close;
		rig_open(&rig);
		if (behind) /* the newest is synced first */
			rig_append(&rig, "b.jsonl", "1\n");
		rig_append(&rig, "a.jsonl", "1\n");
		rig_append(&rig, "b.jsonl", "2\n");
		assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
		rig_append(&rig, "b.jsonl", "3\n");
		rig_append(&rig, "a.jsonl", "2\n");
		checkpoint_begins(&rig);
		if (behind)
			rig_append(&rig, "a.jsonl", "3\n");
		rig_append(&rig, "c.jsonl", "1\n");
		checkpoint_goes_on();
		assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
		assert_int_equal(unheard, 0);
	}
}

/* ---- a log that a person put there: its name may not be durable */

TEST(put_there)
{
	beside_open(&rig);
	rig_append(&rig, "d/b.jsonl", "1\n");
	assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
	edit(&rig, "/d/a.jsonl", "theirs\n");
	rig_append(&rig, "d/a.jsonl", "1\n");
	assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
	rig_lose_power(&rig);
	rig_holds(&rig, "/d/a.jsonl", "theirs\n1\n");
}

/* ---- an entry whose session a person removed: no checkpoint knows the file it goes to */

TEST(entry_put_aside)
{
	static const char entry[] = "{\"id\":\"e1\",\"parentId\":null}\n";

	for (int redone = 0; redone < 2; redone++) {
		beside_open(&rig);
		rig_do(&rig, JOURNAL_ENTRY, "sessions/--x/s.jsonl", entry, 0);
		if (redone)
			rig_lose_power(&rig);
		else
			assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
		rig_lose_power(&rig);
		rig_holds(&rig, "/lost/sessions+--x+s.jsonl", entry);
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
	beside_begin(&rig);
	held.openat = slow_openat;
	rig_open(&rig);
	armed = true;
	assert_int_equal(rig_put(&rig, JOURNAL_APPEND, "a.jsonl", rig_line(70000)), 0);
	sem_wait(&reached);
	assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
	sem_post(&go_on);
	rig_wait(&rig, 1);
	assert_true(rig_has(&rig, "/wal/blob-1-0"));
	assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
	assert_false(rig_has(&rig, "/wal/blob-1-0"));
}

/* ---- a file that is put twice in one flush */

static void put_twice(struct rig *r, long fails_at)
{
	beside_open(r);
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
	put_twice(&rig, 3); /* behind making, writing and renaming the first */
	rig_wait(&rig, 3);
	assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
	rig_holds(&rig, "/result.json", "1");
	rig_crash(&rig);
	rig_open(&rig);
	assert_string_equal(rig.rec.problems, "[]");
	rig_holds(&rig, "/result.json", "2");
}

/* Both are done, and a person edits the file: that is kept. */
TEST(edited_behind_the_second)
{
	put_twice(&rig, 6);
	rig_wait(&rig, 4);
	edit(&rig, "/result.json", "theirs");
	rig_crash(&rig);
	rig_open(&rig);
	rig_holds(&rig, "/result.json", "2");
	rig_holds(&rig, "/result.json.broken", "theirs");
}

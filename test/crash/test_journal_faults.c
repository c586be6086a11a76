/* A disk that fails under a running journal: what is answered, what the person
 * is told, that it goes on by itself, and what a crash right then leaves. */
#include "crash.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

RIG_OF_FILE;

/* ---- the segment */

/* Again and again until new work is taken; refusals are in clear words. */
static void put_when_well_op(struct rig *r, enum journal_op_kind kind, const char *path,
			     const char *text)
{
	struct ava_error err;
	int rv;

	while ((rv = rig_put(r, kind, path, text)) != 0) {
		assert_true(rv == AVA_EIO || rv == AVA_EFULL);
		if (journal_health(r->j, &err) != 0)
			assert_non_null(strstr(err.text, "journal cannot be written"));
		usleep(1000);
	}
}

static void put_when_well(struct rig *r, const char *path, const char *text)
{
	put_when_well_op(r, JOURNAL_APPEND, path, text);
}

/* Every call on segments fails once in turn. What was answered unknown never
 * happens, also not after a crash; what was answered 0 has happened. */
TEST(segment_fails_once)
{
	static const int errors[] = {EIO, ENOSPC};
	bool hit = true;

	for (long k = 0; hit; k++) {
		char want[64] = "one\n";

		rig_again(&rig);
		rig_open(&rig);
		rig_append(&rig, "a.jsonl", "one\n");
		memdisk_fail_name(rig.d, ".seg", MEMDISK_ANY);
		memdisk_fail(rig.d, k, MEMDISK_ONCE, errors[k % 2]);
		for (int i = 0; i < 3; i++) {
			char line[16];
			unsigned before = rig.answered;

			snprintf(line, sizeof(line), "two-%d\n", i);
			put_when_well(&rig, "a.jsonl", line);
			rig_wait(&rig, before + 1);
			assert_true(rig.last_rv == 0 || rig.last_rv == AVA_EUNKNOWN);
			if (rig.last_rv == 0)
				strcat(want, line);
		}
		hit = memdisk_fail_end(rig.d);
		put_when_well(&rig, "a.jsonl", "end\n");
		rig_wait(&rig, 5);
		assert_int_equal(rig.last_rv, 0);
		strcat(want, "end\n");
		assert_int_equal(journal_health(rig.j, NULL), 0);
		rig_holds(&rig, "/a.jsonl", want);
		rig_crash(&rig);
		memdisk_remove(rig.d, "/a.jsonl");
		rig_open(&rig);
		rig_holds(&rig, "/a.jsonl", want);
		assert_int_equal(rig.rec.damaged_batches, 0);
		assert_string_equal(rig.rec.problems, "[]");
		assert_true(k < 100);
	}
}

/* Several wait when the sync fails; several more are in the queue. */
TEST(failed_flush_of_many)
{
	rig_open(&rig);
	rig_append(&rig, "a.jsonl", "first\n");
	memdisk_fail_name(rig.d, ".seg", MEMDISK_ANY);
	memdisk_fail(rig.d, 1, MEMDISK_ONCE, EIO);
	for (int i = 0; i < 400; i++) {
		char line[32], path[16];

		snprintf(line, sizeof(line), "%d\n", i);
		snprintf(path, sizeof(path), "v%d.jsonl", i % 5);
		put_when_well(&rig, path, line);
	}
	rig_wait(&rig, 401);
	assert_true(memdisk_fail_end(rig.d));
	for (int i = 400; i < 405; i++) { /* those at the least are there */
		char line[32], path[16];

		snprintf(line, sizeof(line), "%d\n", i);
		snprintf(path, sizeof(path), "v%d.jsonl", i % 5);
		put_when_well(&rig, path, line);
	}
	rig_wait(&rig, 406);
	assert_int_equal(rig.last_rv, 0);
	for (int v = 0; v < 5; v++) { /* whole lines, in order, without a hole */
		char path[16];
		const char *got;
		size_t len;
		int last = -1, n, used;

		snprintf(path, sizeof(path), "/v%d.jsonl", v);
		got = memdisk_read(rig.d, path, &len);
		assert_non_null(got);
		assert_int_equal(strlen(got), len);
		for (; *got != '\0'; got += used, last = n) {
			assert_int_equal(sscanf(got, "%d\n%n", &n, &used), 1);
			assert_true(n > last && n % 5 == v);
		}
		assert_int_equal(last, 400 + v);
	}
	rig_crash(&rig);
	rig_open(&rig);
	assert_string_equal(rig.rec.problems, "[]");
}

TEST(segment_fails_for_long)
{
	struct ava_error err;
	int rv;

	rig_open(&rig);
	rig_append(&rig, "a.jsonl", "one\n");
	memdisk_fail_name(rig.d, ".seg", MEMDISK_ANY);
	memdisk_fail(rig.d, 0, MEMDISK_FOREVER, EIO);
	rig_do(&rig, JOURNAL_APPEND, "a.jsonl", "lost\n", AVA_EUNKNOWN);
	assert_int_equal(rig_put(&rig, JOURNAL_APPEND, "a.jsonl", "no\n"), AVA_EIO);
	assert_int_equal(journal_health(rig.j, &err), AVA_EIO);
	assert_non_null(strstr(err.text, "no new work"));
	assert_null(strchr(err.text, '\n'));
	usleep(350000); /* it has tried again, and failed again */
	assert_int_equal(rig_put(&rig, JOURNAL_APPEND, "a.jsonl", "no\n"), AVA_EIO);
	assert_true(memdisk_fail_end(rig.d));
	while ((rv = rig_put(&rig, JOURNAL_APPEND, "a.jsonl", "two\n")) != 0)
		usleep(1000);
	rig_wait(&rig, 3);
	assert_int_equal(rig.last_rv, 0);
	assert_int_equal(journal_health(rig.j, &err), 0);
	assert_string_equal(err.text, "");
	rig_holds(&rig, "/a.jsonl", "one\ntwo\n");
	rig_crash(&rig);
	memdisk_remove(rig.d, "/a.jsonl");
	rig_open(&rig);
	rig_holds(&rig, "/a.jsonl", "one\ntwo\n");
}

TEST(close_while_it_fails)
{
	rig_open(&rig);
	rig_append(&rig, "a.jsonl", "one\n");
	memdisk_fail(rig.d, 0, MEMDISK_FOREVER, EIO);
	assert_int_equal(rig_put(&rig, JOURNAL_APPEND, "a.jsonl", "two\n"), 0);
	rig_close(&rig);
	assert_int_equal(rig.answered, 2);
	assert_true(rig.last_rv == AVA_EUNKNOWN || rig.last_rv == AVA_EIO);
	memdisk_fail_end(rig.d);
	rig_open(&rig);
	assert_false(rig.rec.clean);
	rig_append(&rig, "a.jsonl", "three\n");
}

/* ---- a view */

TEST(full_view_is_held)
{
	struct ava_error err;

	rig_open(&rig);
	rig_append(&rig, "a.jsonl", "1\n");
	memdisk_fail_name(rig.d, "a.jsonl", MEMDISK_WRITES);
	memdisk_fail(rig.d, 0, MEMDISK_FOREVER, ENOSPC);
	assert_int_equal(rig_put(&rig, JOURNAL_APPEND, "a.jsonl", "2\n"), 0);
	assert_int_equal(rig_put(&rig, JOURNAL_APPEND, "a.jsonl", "3\n"), 0);
	rig_append(&rig, "b.jsonl", "b\n"); /* others go on */
	assert_int_equal(rig.answered, 2);
	rig_holds(&rig, "/b.jsonl", "b\n");
	assert_int_equal(journal_sync(rig.j), AVA_EFULL); /* does not wait for ever */
	assert_int_equal(journal_health(rig.j, &err), AVA_EFULL);
	assert_non_null(strstr(err.text, "a.jsonl"));
	assert_non_null(strstr(err.text, "2 commits wait"));
	assert_int_equal(rig_put(&rig, JOURNAL_DROP, "a.jsonl", ""), 0);
	assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
	memdisk_fail_end(rig.d);
	rig_wait(&rig, 5);
	assert_int_equal(rig.last_rv, 0);
	rig_holds(&rig, "/a.jsonl", "1\n2\n3\n");
	assert_int_equal(journal_health(rig.j, NULL), 0);
}

/* The checkpoint must not release what a held view still needs. */
TEST(crash_while_held)
{
	for (int gone = 0; gone < 2; gone++) {
		rig_again(&rig);
		rig_open(&rig);
		rig_append(&rig, "a.jsonl", "1\n");
		memdisk_fail_name(rig.d, "a.jsonl", MEMDISK_WRITES);
		memdisk_fail(rig.d, 0, MEMDISK_FOREVER, EIO);
		assert_int_equal(rig_put(&rig, JOURNAL_APPEND, "a.jsonl", "2\n"), 0);
		for (int i = 0; i < 3; i++) {
			rig_append(&rig, "b.jsonl", rig_line(30000));
			assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
		}
		assert_int_equal(rig.answered, 4);
		if (gone) {
			rig_close(&rig); /* answers it: not readable */
			assert_int_equal(rig.answered, 5);
			assert_int_equal(rig.last_rv, AVA_EUNKNOWN);
			memdisk_fail_end(rig.d);
		} else {
			rig_crash(&rig);
		}
		rig_open(&rig);
		assert_false(rig.rec.clean);
		rig_holds(&rig, "/a.jsonl", "1\n2\n");
		assert_string_equal(rig.rec.problems, "[]");
	}
}

TEST(too_much_held)
{
	const char *text = rig_line(2 << 20);
	unsigned taken = 0;
	int rv;

	rig.o.segment_bytes = 16 << 20;
	rig_open(&rig);
	rig_append(&rig, "a.jsonl", "1\n");
	memdisk_fail_name(rig.d, "a.jsonl", MEMDISK_WRITES);
	memdisk_fail(rig.d, 0, MEMDISK_FOREVER, ENOSPC);
	while ((rv = rig_put(&rig, JOURNAL_APPEND, "a.jsonl", text)) == 0) {
		taken++;
		assert_int_equal(journal_sync(rig.j), AVA_EFULL);
		assert_true(taken < 20);
	}
	assert_int_equal(rv, AVA_EFULL);
	assert_int_equal(taken, 8); /* over 16 MB */
	memdisk_fail_end(rig.d);
	rig_wait(&rig, 1 + taken);
	assert_int_equal(rig.last_rv, 0);
	rig_append(&rig, "a.jsonl", "2\n");
}

/* The journal is full behind a log that is held: when that one can be written again, a
 * checkpoint makes room without anybody asking. */
TEST(full_behind_a_held_view)
{
	const char *line = rig_line(1000);
	unsigned taken = 0;

	rig.o.checkpoint_bytes = 64 << 10;
	rig.o.checkpoint_ms = 20;
	rig_open(&rig);
	memdisk_fail_name(rig.d, "a.jsonl", MEMDISK_WRITES);
	memdisk_fail(rig.d, 0, MEMDISK_FOREVER, ENOSPC);
	assert_int_equal(rig_put(&rig, JOURNAL_APPEND, "a.jsonl", "1\n"), 0);
	for (; rig_put(&rig, JOURNAL_APPEND, "b.jsonl", line) == 0; taken++)
		rig_wait(&rig, taken + 1);
	assert_true(taken > 100);
	usleep(200000); /* the checkpoints that what was written asked for */
	assert_true(memdisk_fail_end(rig.d));
	rig_wait(&rig, taken + 1);
	for (int i = 0; i < 1000 && journal_health(rig.j, NULL) != 0; i++)
		usleep(10000);
	rig_append(&rig, "b.jsonl", "2\n");
}

/* A log that cannot be written gives way; then the process is killed and the log can be
 * written again: what stands in its next part is not written to it as well. */
TEST(killed_behind_a_next_part)
{
	unsigned lines = 150; /* over half of what may wait */
	const char *line = rig_line(1000);

	rig.o.checkpoint_bytes = 64 << 10;
	rig_open(&rig);
	rig_append(&rig, "a.jsonl", "1\n");
	memdisk_fail_name(rig.d, "a.jsonl", MEMDISK_WRITES);
	memdisk_fail(rig.d, 0, MEMDISK_FOREVER, EACCES);
	assert_int_equal(rig_put(&rig, JOURNAL_APPEND, "a.jsonl", "2\n"), 0);
	assert_int_equal(rig_put(&rig, JOURNAL_APPEND, "a.jsonl", "3\n"), 0);
	for (unsigned i = 0; i < lines; i++)
		rig_do(&rig, JOURNAL_APPEND, "b.jsonl", line, 0);
	rig_wait(&rig, 1 + 2 + lines);
	assert_true(memdisk_fail_end(rig.d));
	rig_append(&rig, "a.jsonl", "4\n");
	for (int i = 0; i < 2; i++) {
		rig_crash(&rig);
		rig_open(&rig);
		assert_string_equal(rig.rec.problems, "[]");
		rig_holds(&rig, "/a.jsonl", "1\n");
		rig_holds(&rig, "/a.2.jsonl", "2\n3\n4\n");
	}
}

/* A full disk takes a part of a line; the rest follows, nothing twice. */
TEST(disk_fills_up)
{
	for (size_t room = 0; room < 40; room++) {
		rig_again(&rig);
		rig_open(&rig);
		rig_append(&rig, "a.jsonl", "0123456789\n");
		rig_append(&rig, "warm.jsonl", "x\n"); /* segments are there: */
		/* who makes them makes checkpoints, too, and after that rests */
		assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
		memdisk_limit(rig.d, 0);
		memdisk_limit(rig.d, memdisk_used(rig.d) + room);
		for (int i = 0; i < 3; i++)
			assert_int_equal(rig_put(&rig, JOURNAL_APPEND, "a.jsonl", "abcdefghij\n"),
					 0);
		if (room >= 33)
			rig_wait(&rig, 5);
		else
			assert_int_equal(journal_sync(rig.j), AVA_EFULL);
		memdisk_limit(rig.d, SIZE_MAX);
		rig_wait(&rig, 5);
		assert_int_equal(rig.last_rv, 0);
		rig_holds(&rig, "/a.jsonl", "0123456789\nabcdefghij\nabcdefghij\nabcdefghij\n");
	}
}

/* A full disk takes a part of a line, and somebody writes the file anew before the rest is
 * written: the next part has the line whole. */
TEST(rewritten_behind_half_a_line)
{
	rig_open(&rig);
	rig_append(&rig, "a.jsonl", "0123456789\n");
	rig_append(&rig, "warm.jsonl", "x\n");
	assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
	memdisk_limit(rig.d, 0);
	memdisk_limit(rig.d, memdisk_used(rig.d) + strlen("abcdefghij\nabcd"));
	for (int i = 0; i < 3; i++)
		assert_int_equal(rig_put(&rig, JOURNAL_APPEND, "a.jsonl", "abcdefghij\n"), 0);
	assert_int_equal(journal_sync(rig.j), AVA_EFULL);
	rig_holds(&rig, "/a.jsonl", "0123456789\nabcdefghij\nabcd");
	memdisk_fail_name(rig.d, "a.jsonl", MEMDISK_WRITES);
	memdisk_fail(rig.d, 0, MEMDISK_FOREVER, EIO);
	memdisk_limit(rig.d, SIZE_MAX);
	memdisk_write(rig.d, "/a.jsonl", "mine\n", 5);
	rig_wait(&rig, 5); /* it looks at the file again after a second */
	assert_true(memdisk_fail_end(rig.d));
	assert_int_equal(rig.last_rv, 0);
	rig_holds(&rig, "/a.jsonl", "mine\n");
	rig_holds(&rig, "/a.2.jsonl", "abcdefghij\nabcdefghij\n");
}

/* What it wrote stands in the first segment. */
static void crashed_behind_a_line(void)
{
	rig_open(&rig);
	rig_settle(&rig);
	rig_append(&rig, "a.jsonl", "one\n");
	rig_crash(&rig);
}

/* A start needs no room for a new segment: those that its recovery has given
 * up serve again. */
TEST(start_on_a_full_disk)
{
	crashed_behind_a_line();
	rig_no_spares(&rig, 2);
	memdisk_limit(rig.d, memdisk_used(rig.d) + rig.o.segment_bytes / 2);
	rig_open(&rig);
	assert_int_equal(rig.rec.redone_batches, 1);
	rig_append(&rig, "a.jsonl", "two\n");
	assert_int_equal(journal_health(rig.j, NULL), 0);
	rig_close(&rig);
	rig_open(&rig);
	assert_true(rig.rec.clean);
	rig_append(&rig, "a.jsonl", "three\n");
	rig_holds(&rig, "/a.jsonl", "one\ntwo\nthree\n");
}

/* No room for another segment, but for everything else: those that are applied
 * serve again without being asked for, also when there is only one. */
TEST(segments_serve_again)
{
	static char text[8 << 10];

	memset(text, 'x', sizeof(text) - 1);
	for (size_t segments = 1; segments <= 3; segments++) {
		unsigned asked = 0;
		size_t len;

		rig_again(&rig);
		rig.o.checkpoint_ms = 3600000; /* none by the clock */
		memdisk_limit(rig.d, segments * rig.o.segment_bytes + (48 << 10));
		rig_open(&rig);
		for (unsigned i = 0; i < 40;) {
			text[0] = (char)('A' + i % 26);
			put_when_well_op(&rig, JOURNAL_PUT, "result.json", text);
			rig_wait(&rig, ++asked);
			i += rig.last_rv == 0;
		}
		rig_crash(&rig);
		rig_open(&rig);
		assert_string_equal(rig.rec.problems, "[]");
		assert_int_equal(memdisk_read(rig.d, "/result.json", &len)[0], text[0]);
		assert_int_equal(len, sizeof(text) - 1);
		rig_append(&rig, "a.jsonl", "one\n");
	}
}

/* Not even for the checkpoint is there room: spare segments make it. Without
 * one the start is refused in one sentence and changes nothing. */
TEST(recovery_on_a_full_disk)
{
	for (int spare = 0; spare < 2; spare++) {
		struct ava_error err = {0};

		rig_again(&rig);
		crashed_behind_a_line();
		rig_no_spares(&rig, 2 + (unsigned)spare);
		memdisk_remove(rig.d, "/a.jsonl");
		memdisk_limit(rig.d, memdisk_used(rig.d));
		if (spare == 0) {
			assert_int_equal(journal_open(&rig.j, &rig.o, NULL, &err), AVA_EFULL);
			assert_non_null(strstr(err.text, "make room and start again"));
			assert_null(strchr(err.text, '\n'));
			assert_true(rig_has(&rig, "/wal/0000000000000001.seg"));
			memdisk_limit(rig.d, SIZE_MAX);
		}
		rig_open(&rig);
		assert_int_equal(rig.rec.redone_batches, 1);
		assert_string_equal(rig.rec.problems, "[]");
		rig_holds(&rig, "/a.jsonl", "one\n");
		rig_append(&rig, "a.jsonl", "two\n");
		rig_close(&rig);
		memdisk_limit(rig.d, SIZE_MAX);
		rig_open(&rig);
		rig_holds(&rig, "/a.jsonl", "one\ntwo\n");
	}
}

/* A crash while a segment was made has left a part of it, in all the room that there was. */
TEST(recovery_beside_half_a_segment)
{
	static const char half[32 << 10];

	crashed_behind_a_line();
	rig_no_spares(&rig, 2);
	memdisk_write(rig.d, "/wal/fresh.tmp", half, sizeof(half));
	memdisk_limit(rig.d, memdisk_used(rig.d));
	rig_open(&rig);
	assert_int_equal(rig.rec.redone_batches, 1);
	assert_false(rig_has(&rig, "/wal/fresh.tmp"));
	rig_holds(&rig, "/a.jsonl", "one\n");
	memdisk_limit(rig.d, SIZE_MAX);
	rig_append(&rig, "a.jsonl", "two\n");
}

TEST(put_and_create_are_held)
{
	static const enum journal_op_kind kinds[] = {JOURNAL_PUT, JOURNAL_CREATE};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		rig_again(&rig);
		rig_open(&rig);
		rig_append(&rig, "b.jsonl", "b\n");
		memdisk_fail_name(rig.d, "held", MEMDISK_ANY);
		memdisk_fail(rig.d, 0, MEMDISK_FOREVER, EACCES);
		assert_int_equal(rig_put(&rig, kinds[i], "held", i == 0 ? "text" : ""), 0);
		assert_int_equal(journal_sync(rig.j), AVA_EIO);
		assert_false(rig_has(&rig, "/held"));
		memdisk_fail_end(rig.d);
		rig_wait(&rig, 2);
		rig_holds(&rig, "/held", i == 0 ? "text" : "");
	}
}

/* ---- blobs, checkpoints */

TEST(blob_fails)
{
	bool hit = true;

	for (long k = 0; hit; k++) {
		rig_again(&rig);
		rig_open(&rig);
		rig_append(&rig, "a.jsonl", "1\n");
		memdisk_fail_name(rig.d, "blob-", MEMDISK_ANY);
		memdisk_fail(rig.d, k, MEMDISK_ONCE, ENOSPC);
		assert_int_equal(rig_put(&rig, JOURNAL_APPEND, "a.jsonl", rig_line(100000)), 0);
		rig_wait(&rig, 2);
		hit = memdisk_fail_end(rig.d);
		assert_int_equal(rig.last_rv, hit ? AVA_EFULL : 0);
		if (hit)
			rig_holds(&rig, "/a.jsonl", "1\n"); /* certainly not done */
		rig_append(&rig, "a.jsonl", "2\n");
		rig_crash(&rig);
		rig_open(&rig);
		assert_string_equal(rig.rec.problems, "[]");
	}
}

/* A crash comes between a checkpoint and the removal of its blobs: the next one removes them. */
TEST(blob_left_by_a_crash)
{
	rig_open(&rig);
	rig_append(&rig, "a.jsonl", rig_line(70000));
	memdisk_fail_name(rig.d, "blob-", MEMDISK_WRITES);
	memdisk_fail(rig.d, 0, MEMDISK_FOREVER, EIO);
	assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
	rig_crash(&rig);
	rig_open(&rig);
	assert_true(rig_has(&rig, "/wal/blob-1-0"));
	rig_append(&rig, "a.jsonl", "1\n");
	assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
	assert_false(rig_has(&rig, "/wal/blob-1-0"));
}

/* A flush that failed and reached the disk all the same, in a segment that it began: behind
 * a checkpoint, which removes its blob, it is not done, neither whole nor in part. */
TEST(failed_blob_behind_a_checkpoint)
{
	struct journal_op ops[] = {
		{.kind = JOURNAL_APPEND, .path = "a.jsonl", .bytes = rig_line(70000), .len = 70000},
		{.kind = JOURNAL_APPEND, .path = "b.jsonl", .bytes = "1\n", .len = 2},
	};

	rig_open(&rig);
	memdisk_fail_name(rig.d, ".seg", MEMDISK_SYNCS);
	memdisk_fail(rig.d, 0, MEMDISK_FOREVER, EIO);
	assert_int_equal(journal_commit(rig.j, ops, 2, JOURNAL_NOW, rig_done, &rig), 0);
	rig_wait(&rig, 1);
	assert_int_equal(rig.last_rv, AVA_EUNKNOWN);
	assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
	rig_crash(&rig);
	rig_open(&rig);
	assert_string_equal(rig.rec.problems, "[]");
	assert_false(rig_has(&rig, "/a.jsonl"));
	assert_false(rig_has(&rig, "/b.jsonl"));
	rig_append(&rig, "b.jsonl", "2\n");
	rig_holds(&rig, "/b.jsonl", "2\n");
}

TEST(checkpoint_file_fails)
{
	struct ava_error err = {0};
	bool hit = true;

	for (long k = 0; hit; k++) {
		int rv;

		rig_again(&rig);
		rig_open(&rig);
		rig_append(&rig, "a.jsonl", "1\n");
		memdisk_fail_name(rig.d, "checkpoint", MEMDISK_ANY);
		memdisk_fail(rig.d, k, MEMDISK_ONCE, ENOSPC);
		rv = journal_checkpoint(rig.j, &err);
		hit = memdisk_fail_end(rig.d);
		assert_int_equal(rv, hit ? AVA_EFULL : 0);
		if (hit)
			assert_non_null(strstr(err.text, "checkpoint"));
		rig_append(&rig, "a.jsonl", "2\n"); /* nobody else minds */
		assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
		rig_crash(&rig);
		rig_open(&rig);
		rig_holds(&rig, "/a.jsonl", "1\n2\n");
	}
}

/* A view that cannot be synced: the kernel may have dropped its pages. Nothing
 * is released any more, and the next start writes them again. */
TEST(view_sync_fails)
{
	struct ava_error err = {0};

	for (int many = 0; many < 2; many++) {
		rig_again(&rig);
		rig_open(&rig);
		if (many)
			rig_append_many(&rig);
		rig_append(&rig, "a.jsonl", "1\n");
		if (!many)
			memdisk_fail_name(rig.d, "a.jsonl", MEMDISK_SYNCS);
		/* with many, syncfs fails and then each file's own sync */
		memdisk_fail(rig.d, 0, many ? MEMDISK_FOREVER : MEMDISK_ONCE, EIO);
		assert_int_equal(journal_checkpoint(rig.j, &err), AVA_EIO);
		assert_true(memdisk_fail_end(rig.d));
		assert_non_null(strstr(err.text, "restart"));
		assert_int_equal(rig_put(&rig, JOURNAL_APPEND, "a.jsonl", "2\n"), AVA_EIO);
		assert_int_equal(journal_health(rig.j, &err), AVA_EIO);
		assert_non_null(strstr(err.text, "restart"));
		/* what the failed sync dropped */
		memdisk_cut(rig.d, "/a.jsonl", 0);
		assert_int_equal(journal_checkpoint(rig.j, NULL), AVA_EIO);
		rig_close(&rig);
		rig_open(&rig);
		assert_false(rig.rec.clean);
		rig_holds(&rig, "/a.jsonl", "1\n");
		rig_append(&rig, "a.jsonl", "2\n");
	}
}

/* A sync that failed leaves what it was for in memory only: it looks written, and a later
 * sync has nothing to do. */

static char in_memory[64]; /* the file that is so; another of its name is not */
static ino_t its_inode;

static bool is_in_memory(int fd)
{
	struct stat st;

	return memdisk_ops.fstat(fd, &st) == 0 && st.st_ino == its_inode;
}

static int dropping_fsync(int fd)
{
	struct stat st, its;

	if (its_inode == 0 && memdisk_ops.fstat(fd, &st) == 0 &&
	    memdisk_ops.fstatat(AT_FDCWD, in_memory, &its, 0) == 0 && st.st_ino == its.st_ino) {
		its_inode = st.st_ino;
		errno = EIO;
		return -1;
	}
	return is_in_memory(fd) ? 0 : memdisk_ops.fsync(fd);
}

static ssize_t dropping_pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	if (is_in_memory(fd)) /* it is to be written back again */
		its_inode = UINT32_MAX;
	return memdisk_ops.pwrite(fd, bytes, len, at);
}

TEST(written_again_behind_a_failed_sync)
{
	static const char entry[] = "{\"type\":\"message\",\"id\":\"e1\"}\n";
	struct sys_ops ops = memdisk_ops;

	ops.fsync = dropping_fsync;
	ops.pwrite = dropping_pwrite;
	for (int put = 0; put < 2; put++) {
		const char *path = put ? "d/result.json" : "d/s.jsonl";

		snprintf(in_memory, sizeof(in_memory), "/%s", path);
		its_inode = 0;
		rig_again(&rig);
		sys = &ops;
		rig_open(&rig);
		rig_do(&rig, put ? JOURNAL_PUT : JOURNAL_ENTRY, path, entry, 0);
		assert_int_equal(journal_checkpoint(rig.j, NULL), AVA_EIO);
		rig_close(&rig);
		rig_open(&rig);
		assert_string_equal(rig.rec.problems, "[]");
		rig_lose_power(&rig);
		rig_holds(&rig, in_memory, entry);
	}
}

/* The helper has nothing to do any more, and does not turn in a circle. */
TEST(helper_rests_behind_a_failure)
{
	clock_t began;

	rig.o.checkpoint_ms = 20;
	memdisk_fail_name(rig.d, "a.jsonl", MEMDISK_SYNCS);
	memdisk_fail(rig.d, 0, MEMDISK_FOREVER, EIO);
	rig_open(&rig);
	rig_append(&rig, "a.jsonl", "1\n");
	while (journal_health(rig.j, NULL) == 0)
		usleep(1000);
	began = clock();
	usleep(400000);
	assert_true(clock() - began < CLOCKS_PER_SEC / 10);
	assert_true(memdisk_fail_end(rig.d));
}

/* syncfs also fails for files that are not ours: then ours are asked. */
TEST(somebody_elses_error)
{
	rig_open(&rig);
	rig_append_many(&rig);
	memdisk_fail(rig.d, 0, MEMDISK_ONCE, EIO);
	assert_int_equal(journal_checkpoint(rig.j, NULL), 0);
	assert_true(memdisk_fail_end(rig.d));
	rig_append(&rig, "v1.jsonl", "y\n");
}

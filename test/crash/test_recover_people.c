/* Recovery of files that a person touched between the crash and the start:
 * nothing of theirs is written over, nothing of ours is lost, it is reported,
 * and writing goes on. Then a lost checkpoint, torn flushes and lines whose
 * batch is gone. */
#include "crash.h"

#include <fcntl.h>

#include "base/buf.h"
#include "event/event.h"
#include "journal/wal.h"
#include "life.h"

RIG_OF_FILE;

/* "one" is in the checkpoint; "two" and "three" have to be redone. */
static void prepare(struct rig *r)
{
	rig_again(r);
	rig_open(r);
	rig_append(r, "logs/a.jsonl", "one\n");
	rig_append(r, "other.jsonl", "o\n");
	assert_int_equal(journal_checkpoint(r->j, NULL), 0);
	rig_append(r, "logs/a.jsonl", "two\n");
	rig_append(r, "logs/a.jsonl", "three\n");
	rig_append(r, "other.jsonl", "p\n");
	rig_crash(r);
}

/* As the next start finds it, and as the one after that does. */
static void recovered(struct rig *r)
{
	rig_open(r);
	assert_false(r->rec.clean);
}

static void goes_on_in(struct rig *r, const char *file)
{
	char out[64], line[] = "four\n", want[64];
	const char *got;
	size_t len;

	assert_string_equal(journal_view_path(r->j, "logs/a.jsonl", out, sizeof(out)), file + 1);
	got = memdisk_read(r->d, file, &len);
	snprintf(want, sizeof(want), "%s%s", got != NULL ? got : "", line);
	rig_append(r, "logs/a.jsonl", line);
	rig_holds(r, file, want);
	rig_close(r);
	rig_open(r); /* and nothing of it comes again */
	assert_true(r->rec.clean);
	assert_string_equal(r->rec.problems, "[]");
	rig_append(r, "logs/a.jsonl", "five\n");
	strcat(want, "five\n");
	rig_holds(r, file, want);
	rig_holds(r, "/other.jsonl", "o\np\n");
}

static void reported(struct rig *r, const char *problem, uint64_t lost, const char *continues)
{
	char want[256];

	assert_int_equal(r->rec.nproblems, 1);
	assert_int_equal(r->rec.lost_bytes, lost);
	snprintf(want, sizeof(want),
		 "[{\"path\":\"logs/a.jsonl\",\"problem\":\"%s\",\"lostBytes\":%llu,"
		 "\"continuesIn\":\"%s\"}]",
		 problem, (unsigned long long)lost, continues);
	assert_string_equal(r->rec.problems, want);
}

TEST(untouched)
{
	prepare(&rig);
	recovered(&rig);
	assert_string_equal(rig.rec.problems, "[]");
	assert_int_equal(rig.rec.redone_batches, 3);
	assert_int_equal(rig.rec.redone_bytes, 4 + 6 + 2);
	rig_holds(&rig, "/logs/a.jsonl", "one\ntwo\nthree\n");
	goes_on_in(&rig, "/logs/a.jsonl");
}

/* Every state between "nothing applied" and "everything applied", also with
 * NULs where a power cut took the data but not the size. */
TEST(partly_applied)
{
	static const char full[] = "one\ntwo\nthree\n";

	for (size_t len = 4; len < sizeof(full); len++)
		for (size_t nul = 4; nul <= len; nul++) {
			char text[32];

			prepare(&rig);
			memcpy(text, full, len);
			memset(text + nul, 0, len - nul);
			memdisk_cut(rig.d, "/logs/a.jsonl", len);
			for (size_t i = nul; i < len; i++)
				memdisk_poke(rig.d, "/logs/a.jsonl", i, (unsigned char)full[i]);
			recovered(&rig);
			assert_string_equal(rig.rec.problems, "[]");
			rig_holds(&rig, "/logs/a.jsonl", full);
		}
}

TEST(gone)
{
	static const char *const removed[] = {"/logs/a.jsonl", "/logs", "/logs/a.jsonl"};

	for (int i = 0; i < 3; i++) { /* the log, its folder; a folder in the log's place */

		prepare(&rig);
		memdisk_remove(rig.d, removed[i]);
		if (i == 2)
			assert_int_equal(sys->mkdirat(AT_FDCWD, "/logs/a.jsonl", 0700), 0);
		recovered(&rig);
		reported(&rig, i < 2 ? "is missing" : "is another file than it was", 10,
			 "logs/a.2.jsonl");
		assert_false(rig_has(&rig, "/logs/a.jsonl"));
		rig_holds(&rig, "/lost/logs+a.3.jsonl", "two\nthree\n");
		goes_on_in(&rig, "/logs/a.2.jsonl");
	}
}

/* The journal still has it from its first byte: no hole, so it comes again. */
TEST(deleted_but_known_whole)
{
	rig_open(&rig);
	rig_append(&rig, "logs/a.jsonl", "one\n");
	rig_append(&rig, "logs/a.jsonl", "two\n");
	rig_crash(&rig);
	memdisk_remove(rig.d, "/logs");
	recovered(&rig);
	assert_string_equal(rig.rec.problems, "[]");
	rig_holds(&rig, "/logs/a.jsonl", "one\ntwo\n");
}

TEST(shortened)
{
	for (size_t len = 0; len < 4; len++) {
		char kept[8] = "one\n";

		prepare(&rig);
		memdisk_cut(rig.d, "/logs/a.jsonl", len);
		kept[len] = '\0';
		recovered(&rig);
		reported(&rig, "is shorter than it was", 10, "logs/a.2.jsonl");
		rig_holds(&rig, "/logs/a.jsonl", kept);
		rig_holds(&rig, "/lost/logs+a.3.jsonl", "two\nthree\n");
		goes_on_in(&rig, "/logs/a.2.jsonl");
	}
}

TEST(edited)
{
	static const struct {
		const char *text, *lost, *broken;
		bool replaced;
	} cases[] = {
		/* one byte, in the first or the second line that is redone */
		{"one\ntwX\nthree\n", "two\n", "twX\nthree\n", false},
		{"one\ntwo\nthrEe\n", "three\n", "two\nthrEe\n", false},
		/* a line taken out: everything behind it moved */
		{"one\nthree\n", "two\nthree\n", "three\n", false},
		/* a word put in */
		{"one\ntwo and a half\nthree\n", "two\nthree\n", "two and a half\nthree\n", false},
		/* emptied behind what is released, then something else */
		{"one\nmine\n", "two\nthree\n", "mine\n", false},
		/* another file, even if it reads the same */
		{"one\ntwo\nthree\n", "two\nthree\n", "two\nthree\n", true},
		/* appended to: nothing is lost */
		{"one\ntwo\nthree\nmine\n", "", "mine\n", false},
		{"one\ntwo\nthree\nno end", "", "no end", false},
		{"one\ntwo\nthree\n{\"json\":1}\n", "", "{\"json\":1}\n", false},
		{"one\ntwo\nthree\n\n", "", "\n", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *lost = cases[i].lost;

		prepare(&rig);
		if (cases[i].replaced)
			memdisk_remove(rig.d, "/logs/a.jsonl");
		memdisk_write(rig.d, "/logs/a.jsonl", cases[i].text, strlen(cases[i].text));
		recovered(&rig);
		reported(&rig,
			 cases[i].replaced ? "is another file than it was; its end is kept in "
					     "logs/a.jsonl.broken"
					   : "was changed by somebody else; its end is kept in "
					     "logs/a.jsonl.broken",
			 strlen(lost), "logs/a.2.jsonl");
		rig_holds(&rig, "/logs/a.jsonl", cases[i].text);
		rig_holds(&rig, "/logs/a.jsonl.broken", cases[i].broken);
		if (lost[0] == '\0')
			assert_false(rig_has(&rig, "/lost"));
		else
			rig_holds(&rig,
				  lost[1] == 'h' ? "/lost/logs+a.4.jsonl" : "/lost/logs+a.3.jsonl",
				  lost);
		goes_on_in(&rig, "/logs/a.2.jsonl");
	}
}

/* What the checkpoint released is the person's to change. */
TEST(released_part_is_theirs)
{
	prepare(&rig);
	memdisk_write(rig.d, "/logs/a.jsonl", "ONE\n", 4);
	recovered(&rig);
	assert_string_equal(rig.rec.problems, "[]");
	rig_holds(&rig, "/logs/a.jsonl", "ONE\ntwo\nthree\n");
}

/* A second accident after the first: the next part is looked after as well. */
TEST(twice)
{
	prepare(&rig);
	memdisk_remove(rig.d, "/logs/a.jsonl");
	recovered(&rig);
	rig_append(&rig, "logs/a.jsonl", "four\n");
	rig_crash(&rig);
	memdisk_write(rig.d, "/logs/a.2.jsonl", "nonsense", 8);
	recovered(&rig);
	assert_int_equal(rig.rec.nproblems, 1);
	assert_non_null(strstr(rig.rec.problems, "\"continuesIn\":\"logs/a.3.jsonl\""));
	rig_holds(&rig, "/logs/a.2.jsonl", "nonsense");
	goes_on_in(&rig, "/logs/a.3.jsonl");
}

/* ---- files that are put, sessions */

TEST(put)
{
	static const struct {
		const char *found, *broken;
	} cases[] = {
		{NULL, NULL},                 /* never applied */
		{"second", NULL},             /* applied */
		{"first", NULL},              /* the one before */
		{"", NULL},                   /* a power cut before it was synced */
		{"sec", NULL},                /* the same */
		{"a person's", "a person's"}, /* kept */
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		rig_again(&rig);
		rig_open(&rig);
		rig_do(&rig, JOURNAL_PUT, "p/result.json", "first", 0);
		rig_do(&rig, JOURNAL_PUT, "p/result.json", "second", 0);
		rig_crash(&rig);
		if (cases[i].found != NULL)
			memdisk_write(rig.d, "/p/result.json", cases[i].found,
				      strlen(cases[i].found));
		else
			memdisk_remove(rig.d, "/p");
		recovered(&rig);
		rig_holds(&rig, "/p/result.json", "second");
		if (cases[i].broken != NULL)
			rig_holds(&rig, "/p/result.json.broken", cases[i].broken);
		else
			assert_false(rig_has(&rig, "/p/result.json.broken"));
		assert_int_equal(rig.rec.nproblems, cases[i].broken != NULL);
	}
}

TEST(session_entry)
{
	static const char line[] = "{\"id\":\"e1\",\"parentId\":null}\n";
	static const char both[] = "{\"id\":\"x\"}\n{\"id\":\"e1\",\"parentId\":\"x\"}\n";
	static const char *const found[] = {both, "{\"id\":\"x\"}\n"};

	for (size_t i = 0; i < ARRAY_LEN(found); i++) {
		rig_again(&rig);
		rig_open(&rig);
		rig_do(&rig, JOURNAL_ENTRY, "s.jsonl", line, 0);
		rig_crash(&rig);
		memdisk_write(rig.d, "/s.jsonl", found[i], strlen(found[i]));
		recovered(&rig);
		rig_holds(&rig, "/s.jsonl", both);
		assert_string_equal(rig.rec.problems, "[]");
	}
}

/* ---- a folder that is linked from another file system: a sync of ours does not reach it */

static bool far[1 << 16]; /* by descriptor */
static unsigned far_synced;

static int far_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	int fd = memdisk_ops.openat(dirfd, path, flags, mode);

	if (fd >= 0)
		far[fd % ARRAY_LEN(far)] = strncmp(path, "far/", 4) == 0;
	return fd;
}

static int far_fsync(int fd)
{
	far_synced += far[fd % ARRAY_LEN(far)];
	return memdisk_ops.fsync(fd);
}

static int far_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	int rv = memdisk_ops.fstatat(dirfd, path, st, flags);

	if (rv == 0 && strncmp(path, "far/", 4) == 0)
		st->st_dev++;
	return rv;
}

TEST(linked_folder)
{
	static struct sys_ops ops; /* the rig goes behind this */
	char path[32];

	rig_open(&rig);
	for (int i = 0; i < 40; i++) {
		snprintf(path, sizeof(path), "%s/%d.jsonl", i % 2 ? "far" : "near", i);
		rig_append(&rig, path, "1\n");
	}
	rig_crash(&rig);
	ops = memdisk_ops;
	ops.openat = far_openat;
	ops.fsync = far_fsync;
	ops.fstatat = far_fstatat;
	sys = &ops;
	far_synced = 0;
	rig_open(&rig);
	assert_int_equal(far_synced, 20);
}

/* ---- the checkpoint file */

TEST(checkpoint_lost)
{
	static const char path[] = "/wal/checkpoint";
	size_t len;

	prepare(&rig);
	assert_non_null(memdisk_read(rig.d, path, &len));
	for (size_t at = 0; at <= len; at++) { /* each byte flipped; at the end: no file */
		prepare(&rig);
		if (at < len)
			memdisk_poke(rig.d, path, at, 0x04);
		else
			memdisk_remove(rig.d, path);
		recovered(&rig);
		rig_holds(&rig, "/logs/a.jsonl", "one\ntwo\nthree\n");
		rig_holds(&rig, "/other.jsonl", "o\np\n");
		assert_int_equal(rig.rec.nproblems, at < len);
		if (at < len)
			assert_non_null(strstr(rig.rec.problems, "wal/checkpoint"));
		goes_on_in(&rig, "/logs/a.jsonl");
	}
}

/* ---- lines that the views have and the journal lost */

static void event(struct buf *b, uint64_t seq)
{
	struct event_head head = {.kind = EVENT_Activity, .wall_ms = 1, .lsn = seq, .seq = seq};
	struct event_meta meta = EVENT_META_NONE;

	buf_reset(b);
	assert_int_equal(event_encode(b, &head, "{}", 2, &meta), 0);
}

/* Cut the segment of the last `batches` commits, keep the views: the lines go
 * on in number, so they are ours. */
TEST(lines_are_adopted)
{
	for (int lost = 1; lost <= 5; lost++) {
		size_t len, at = WAL_BEGIN, ends[8] = {0}, n = 0, want_len;
		struct wal_segment head;
		const unsigned char *seg;
		struct wal_batch b;
		TEST_BUF(line, 4096);
		char *want;

		rig_again(&rig);
		rig_open(&rig);
		rig_settle(&rig);
		for (uint64_t seq = 1; seq <= 5; seq++) {
			event(&line, seq);
			rig_append(&rig, "a.jsonl", line.data);
		}
		rig_crash(&rig);
		want = strdup(memdisk_read(rig.d, "/a.jsonl", &want_len));
		seg = (const unsigned char *)memdisk_read(rig.d, "/wal/0000000000000001.seg", &len);
		wal_segment_get(seg, 1, &head);
		for (; wal_batch_get(seg, len, at, head.salt, &b); at += WAL_BATCH_HEAD + b.len)
			if (b.len > 0)
				ends[n++] = at;
		assert_int_equal(n, 5);
		memdisk_cut(rig.d, "/wal/0000000000000001.seg", ends[5 - lost]);
		rig_open(&rig);
		assert_string_equal(rig.rec.problems, "[]");
		rig_holds(&rig, "/a.jsonl", want);
		assert_true(journal_lsn(rig.j, 1) > 5); /* above what the lines say */
		event(&line, 6);
		rig_append(&rig, "a.jsonl", line.data);
		assert_true(rig_has(&rig, "/a.jsonl") && !rig_has(&rig, "/a.2.jsonl"));
		free(want);
	}
}

TEST(lines_that_do_not_go_on)
{
	struct buf line, file;

	for (uint64_t next = 0; next < 6; next++) {
		if (next == 2)
			continue; /* that one goes on */
		buf_init(&line, 4096);
		buf_init(&file, 8192);
		rig_again(&rig);
		rig_open(&rig);
		event(&line, 1);
		rig_append(&rig, "a.jsonl", line.data);
		rig_crash(&rig);
		buf_add(&file, line.data, line.len);
		event(&line, next);
		buf_add(&file, line.data, line.len);
		memdisk_write(rig.d, "/a.jsonl", file.data, file.len);
		recovered(&rig);
		assert_int_equal(rig.rec.nproblems, 1);
		rig_holds(&rig, "/a.jsonl", file.data);
		rig_holds(&rig, "/a.jsonl.broken", line.data);
		buf_fini(&line);
		buf_fini(&file);
	}
}

/* ---- a flush of many, cut by a power failure */

/* Pages of the last flush are there or not in any combination. None of it was
 * acknowledged: what is kept is a prefix, nothing is called damage, and no
 * view goes on elsewhere. */
TEST(torn_flush)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		uint64_t random = seed * 0x9e3779b97f4a7c15u;
		size_t len;
		int n = 0;

		rig_again(&rig);
		rig.o.pace_us = 60 * 1000000;
		rig_open(&rig);
		rig_append(&rig, "a.jsonl", "acknowledged\n");
		memdisk_fail_name(rig.d, ".seg", MEMDISK_SYNCS);
		memdisk_fail(rig.d, 0, MEMDISK_FOREVER, EIO); /* written, and not synced */
		for (int i = 0; i < 50; i++) {
			char line[300], path[16];
			struct journal_op op = {.path = path, .bytes = line};

			snprintf(path, sizeof(path), "v%d.jsonl", i % 3);
			op.len = (size_t)snprintf(line, sizeof(line), "%d %.*s\n", i, i * 5, "ab");
			journal_commit(rig.j, &op, 1, i == 49 ? JOURNAL_NOW : JOURNAL_RIDE,
				       rig_done, &rig);
		}
		/* Those of the flush that failed are answered together: all of them, unless this
		 * thread stood still for so long that some were flushed before others came. */
		rig_wait(&rig, 2);
		rig_crash(&rig);
		memdisk_power_cut(rig.d, cut_pick, &random);
		rig_open(&rig);
		assert_string_equal(rig.rec.problems, "[]");
		assert_int_equal(rig.rec.damaged_batches, 0);
		rig_holds(&rig, "/a.jsonl", "acknowledged\n");
		for (int i = 0; i < 50; i++) { /* which of them are there: the first n */
			char path[16], line[16];
			const char *got;

			snprintf(path, sizeof(path), "/v%d.jsonl", i % 3);
			snprintf(line, sizeof(line), "%d ", i);
			got = memdisk_read(rig.d, path, &len);
			for (; got != NULL && strncmp(got, line, strlen(line)) != 0;
			     got = strchr(got, '\n'), got = got != NULL ? got + 1 : NULL)
				;
			if (got != NULL)
				assert_int_equal(n++, i);
		}
		assert_int_equal(rig.rec.redone_batches, 1 + n);
	}
}

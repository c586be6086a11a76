/* One small root, golden in every byte, and what a start makes of it.
 *
 * test/golden/journal/recover: segment 1 (the lines of a hexdump that are not
 * zero; 64 KB in all) holds one commit, lsn 2, that appends "two\n" to
 * logs/a.jsonl at byte 4 and puts runs/a/result.json, and a mark of a later
 * flush behind it; the checkpoint knows the view with its first 4 bytes. Each
 * test changes one thing in it. */
#include "journal_help.h"

#include <fcntl.h>

#include "base/util.h"
#include "journal/segments.h"
#include "journal/wal.h"

#define GOLDEN   "test/golden/journal/recover/"
#define SEGMENT  "wal/0000000000000001.seg"
#define VIEW     "logs/a.jsonl"
#define PART     "logs/a.2.jsonl"
#define RESULT   "runs/a/result.json"
#define SEG_SIZE 65536u
#define SALT     0x5a17c0deu
#define BATCH    8192u /* begins here */
#define MARK     8320u
#define END      8352u

static struct rig rig;
static unsigned char *segment; /* as the crash left it, but for what the test changes */

/* The segment its hexdump says. */
static unsigned char *load_segment(void)
{
	unsigned char *out = calloc(1, SEG_SIZE);
	size_t len;
	char *text = unit_read_src(GOLDEN "segment.hex", &len), *at = text;

	assert_non_null(out);
	for (unsigned lines = 0; *at != '\0'; lines++) {
		unsigned long pos = strtoul(at, &at, 16);

		assert_true(pos % 16 == 0 && pos < SEG_SIZE && lines < SEG_SIZE / 16);
		for (unsigned i = 0; i < 16; i++)
			out[pos + i] = (unsigned char)strtoul(at, &at, 16);
		assert_int_equal(*at++, '\n');
	}
	free(text);
	return out;
}

static int scene_begin(void **state)
{
	segment = load_segment();
	rig_init(&rig);
	rig.o.segment_bytes = SEG_SIZE;
	return 0;
}

static int scene_end(void **state)
{
	rig_fini(&rig);
	free(segment);
	return 0;
}

static void scene_again(void)
{
	scene_end(NULL);
	scene_begin(NULL);
}

static void put(const struct rig *r, const char *path, const void *data, size_t len)
{
	unit_mkdirs(r->root, path);
	unit_write(rig_path(r, path), data, len);
}

static void start(void)
{
	size_t len;
	char *checkpoint = unit_read_src(GOLDEN "checkpoint", &len);

	put(&rig, SEGMENT, segment, SEG_SIZE);
	put(&rig, "wal/checkpoint", checkpoint, len);
	put(&rig, VIEW, "one\n", 4);
	free(checkpoint);
	rig_open(&rig);
	assert_false(rig.rec.clean);
}

static void holds_golden(const char *path, const char *golden)
{
	size_t len;
	char *text = unit_read_src(golden, &len);

	rig_holds(&rig, path, text);
	free(text);
}

/* Everything of the commit is there. */
static void is_redone(void)
{
	holds_golden(VIEW, GOLDEN "a.jsonl");
	holds_golden(RESULT, GOLDEN "result.json");
	assert_int_equal(rig.rec.redone_batches, 1);
	assert_int_equal(rig.rec.redone_bytes, 7);
	assert_int_equal(rig.rec.lost_bytes, 0);
	assert_false(rig_exists(&rig, PART));
	assert_false(rig_exists(&rig, "lost"));
}

/* Nothing of it is, and nothing else was touched. */
static void is_not_done(void)
{
	rig_holds(&rig, VIEW, "one\n");
	assert_false(rig_exists(&rig, RESULT));
	assert_false(rig_exists(&rig, PART));
	assert_int_equal(rig.rec.redone_batches, 0);
}

static void has_problem(const char *what)
{
	assert_int_equal(rig.rec.nproblems, 1);
	if (strstr(rig.rec.problems, what) == NULL)
		fail_msg("no \"%s\" in %s", what, rig.rec.problems);
}

static void no_problem(void)
{
	assert_int_equal(rig.rec.nproblems, 0);
	assert_string_equal(rig.rec.problems, "[]");
	assert_int_equal(rig.rec.damaged_batches, 0);
	assert_int_equal(rig.rec.torn_bytes, 0);
	assert_int_equal(rig.rec.aborted_batches, 0);
}

/* ---- the bytes */

static void put_commit(unsigned char *batch, uint32_t salt, uint64_t lsn, uint64_t offset)
{
	const struct wal_op append = {.kind = WAL_APPEND,
				      .part = 1,
				      .path = VIEW,
				      .path_len = strlen(VIEW),
				      .bytes = (const unsigned char *)"two\n",
				      .len = 4,
				      .offset = offset};
	const struct wal_op result = {.kind = WAL_PUT,
				      .part = 1,
				      .path = RESULT,
				      .path_len = strlen(RESULT),
				      .bytes = (const unsigned char *)"{}\n",
				      .len = 3};
	unsigned char *at = batch + WAL_BATCH_HEAD;

	at = wal_op_put(at, &append);
	at = wal_op_put(at, &result);
	assert_true(at <= batch + (MARK - BATCH) && at > batch + (MARK - BATCH) - WAL_ALIGN);
	wal_batch_put(batch, &(struct wal_batch){.len = MARK - BATCH - WAL_BATCH_HEAD,
						 .salt = salt,
						 .first_lsn = lsn,
						 .lsn_count = 1,
						 .at = BATCH,
						 .flush = BATCH});
}

TEST(made_of_its_values)
{
	unsigned char *golden = load_segment(), *ours = calloc(1, SEG_SIZE);

	assert_non_null(ours);
	wal_segment_put(ours, &(struct wal_segment){
				      .seq = 1, .size = SEG_SIZE, .first_lsn = 2, .salt = SALT});
	put_commit(ours + BATCH, SALT, 2, 4);
	wal_batch_put(ours + MARK,
		      &(struct wal_batch){.salt = SALT, .first_lsn = 3, .at = MARK, .flush = MARK});
	assert_memory_equal(ours, golden, SEG_SIZE);
	free(ours);
	free(golden);
}

/* The segment in use of a root, alone there; returns its header. */
static struct wal_segment used_segment(const struct rig *r, unsigned char **bytes)
{
	struct wal_segment head = {0};
	char name[SEGMENTS_NAME], path[64];
	size_t len;

	for (uint64_t seq = 1; seq < 16; seq++) {
		segments_name(seq, name);
		snprintf(path, sizeof(path), "wal/%s", name);
		if (!rig_exists(r, path))
			continue;
		*bytes = (unsigned char *)unit_read(rig_path(r, path), &len);
		assert_int_equal(len, r->o.segment_bytes);
		if (wal_segment_get(*bytes, seq, &head) == 2)
			return head;
		free(*bytes);
	}
	fail_msg("no segment is in use");
	return head;
}

/* The journal writes what the golden bytes say, but for the salt it drew. */
TEST(written_so)
{
	unsigned char *bytes = NULL, ours[MARK] = {0};
	const struct journal_op ops[] = {
		{.kind = JOURNAL_APPEND, .path = VIEW, .bytes = "two\n", .len = 4},
		{.kind = JOURNAL_PUT, .path = RESULT, .bytes = "{}\n", .len = 3},
	};
	struct wal_segment head;

	put(&rig, VIEW, "one\n", 4);
	rig_open(&rig);
	assert_int_equal(journal_commit(rig.j, ops, 2, JOURNAL_NOW, rig_done, &rig), 0);
	assert_int_equal(journal_sync(rig.j), 0);
	assert_int_equal(rig.last_rv, 0);
	head = used_segment(&rig, &bytes);
	assert_int_equal(head.first_lsn, 1);
	assert_int_equal(head.prev.seq, 0);
	wal_segment_put(ours, &head);
	put_commit(ours + BATCH, head.salt, 1, 4);
	assert_memory_equal(bytes, ours, MARK);
	free(bytes);
	rig_holds(&rig, VIEW, "one\ntwo\n");
}

/* ---- what a start makes of it */

TEST(redone)
{
	start();
	is_redone();
	no_problem();
	assert_int_equal(journal_lsn(rig.j, 1), 3);
	rig_close(&rig);
	rig_open(&rig);
	holds_golden(VIEW, GOLDEN "a.jsonl");
	rig_append(&rig, VIEW, "three\n");
	rig_holds(&rig, VIEW, "one\ntwo\nthree\n");
	rig_close(&rig);
	rig_open(&rig);
	assert_true(rig.rec.clean);
	assert_int_equal(rig.rec.redone_batches, 0);
	rig_holds(&rig, VIEW, "one\ntwo\nthree\n");
}

/* Nothing follows: the crash cut the flush, which nobody was told of. */
TEST(flipped_at_the_end_is_torn)
{
	for (uint32_t at = BATCH; at < MARK; at++) {
		scene_again();
		memset(segment + MARK, 0, END - MARK);
		segment[at] ^= 0x10;
		start();
		is_not_done();
		assert_int_equal(rig.rec.nproblems, 0);
		assert_int_equal(rig.rec.damaged_batches, 0);
		assert_true(rig.rec.torn_bytes > 0 && rig.rec.torn_bytes <= MARK - BATCH);
		assert_true(journal_lsn(rig.j, 1) > 3); /* what was cut may have used more */
	}
}

static void lose_headers(bool first, bool second)
{
	memset(segment, 0, first ? WAL_PAGE : 0);
	memset(segment + WAL_HEAD_COPY, 0, second ? WAL_PAGE : 0);
}

/* A page that is lost takes one copy with it at the most. */
TEST(lost_page_of_the_header)
{
	for (int second = 0; second < 2; second++) {
		scene_again();
		lose_headers(second == 0, second == 1);
		start();
		is_redone();
		has_problem("\"" SEGMENT "\",\"problem\":\"damaged copy of the header");
	}
}

/* The batches of the newest segment say what it is, when they can: a later
 * flush shows that the first one, and the header with it, was synced. */
TEST(lost_header)
{
	lose_headers(true, true);
	start();
	is_redone();
	has_problem("\"" SEGMENT "\",\"problem\":\"both copies of the header are damaged");
	assert_int_equal(rig.rec.damaged_batches, 1);
	assert_true(journal_lsn(rig.j, 1) > 3);
	rig_close(&rig);
	rig_open(&rig);
	holds_golden(VIEW, GOLDEN "a.jsonl");
	assert_int_equal(rig.rec.redone_batches, 0);

	scene_again();
	lose_headers(true, true);
	memset(segment + MARK, 0, END - MARK);
	start();
	is_not_done();
	no_problem();
}

/* A second file without headers, lsn `lsn` in it, above the golden segment. */
static void start_with_second(uint64_t lsn)
{
	unsigned char *second = calloc(1, SEG_SIZE);

	assert_non_null(second);
	scene_again();
	put_commit(second + BATCH, SALT + 1, lsn, 8);
	wal_batch_put(second + MARK,
		      &(struct wal_batch){
			      .salt = SALT + 1, .first_lsn = lsn + 1, .at = MARK, .flush = MARK});
	put(&rig, "wal/0000000000000002.seg", second, SEG_SIZE);
	free(second);
	start();
}

TEST(lost_header_behind_another)
{
	start_with_second(3);
	rig_holds(&rig, VIEW, "one\ntwo\ntwo\n");
	has_problem("\"wal/0000000000000002.seg\",\"problem\":\"both copies");
	assert_int_equal(rig.rec.redone_batches, 2);

	start_with_second(1); /* a spare file: what it held is long done */
	is_redone();
	no_problem();
}

/* An orderly end without any work leaves the position where recovery put it:
 * the next start reads nothing again, least of all over what a person did. */
TEST(idle_after_recovery)
{
	start();
	is_redone();
	rig_close(&rig);
	assert_int_equal(unlink(rig_path(&rig, RESULT)), 0);
	rig_open(&rig);
	assert_true(rig.rec.clean);
	assert_int_equal(rig.rec.redone_batches, 0);
	assert_false(rig_exists(&rig, RESULT));
}

UNIT_GROUP(.before = scene_begin, .after = scene_end);

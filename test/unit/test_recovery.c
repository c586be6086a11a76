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
#define LOST     "lost/logs+a.2.jsonl"
#define RESULT   "runs/a/result.json"
#define SEG_SIZE 65536u
#define SALT     0x5a17c0deu
#define BATCH    8192u /* begins here */
#define MARK     8320u
#define END      8352u

struct scene {
	struct rig rig;
	unsigned char *segment;
	char *checkpoint;
	size_t checkpoint_len;
	const char *view; /* NULL: there is none */
	size_t view_len;
	const char *result; /* the same */
};

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

static void scene_init(struct scene *s)
{
	*s = (struct scene){.segment = load_segment(), .view = "one\n", .view_len = 4};
	s->checkpoint = unit_read_src(GOLDEN "checkpoint", &s->checkpoint_len);
	rig_init(&s->rig);
	s->rig.o.segment_bytes = SEG_SIZE;
}

static void put(const struct rig *r, const char *path, const void *data, size_t len)
{
	char *full = strdup(rig_path(r, path));

	assert_non_null(full);
	for (char *p = full + strlen(r->root) + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		mkdir(full, 0700);
		*p = '/';
	}
	unit_write(full, data, len);
	free(full);
}

/* As a crash leaves it. */
static void lay(const struct scene *s)
{
	put(&s->rig, SEGMENT, s->segment, SEG_SIZE);
	if (s->checkpoint_len > 0)
		put(&s->rig, "wal/checkpoint", s->checkpoint, s->checkpoint_len);
	if (s->view != NULL)
		put(&s->rig, VIEW, s->view, s->view_len);
	if (s->result != NULL)
		put(&s->rig, RESULT, s->result, strlen(s->result));
}

static void start(struct scene *s)
{
	lay(s);
	rig_open(&s->rig);
	assert_false(s->rig.rec.clean);
}

static void scene_fini(struct scene *s)
{
	rig_fini(&s->rig);
	free(s->segment);
	free(s->checkpoint);
}

static void holds_golden(const struct scene *s, const char *path, const char *golden)
{
	size_t len;
	char *text = unit_read_src(golden, &len);

	rig_holds(&s->rig, path, text);
	free(text);
}

/* Everything of the commit is there. */
static void is_redone(const struct scene *s)
{
	holds_golden(s, VIEW, GOLDEN "a.jsonl");
	holds_golden(s, RESULT, GOLDEN "result.json");
	assert_int_equal(s->rig.rec.redone_batches, 1);
	assert_int_equal(s->rig.rec.redone_bytes, 7);
	assert_int_equal(s->rig.rec.lost_bytes, 0);
	assert_false(rig_exists(&s->rig, PART));
	assert_false(rig_exists(&s->rig, "lost"));
}

/* Nothing of it is, and nothing else was touched. */
static void is_not_done(const struct scene *s)
{
	rig_holds(&s->rig, VIEW, "one\n");
	assert_false(rig_exists(&s->rig, RESULT));
	assert_false(rig_exists(&s->rig, PART));
	assert_int_equal(s->rig.rec.redone_batches, 0);
}

static void has_problem(const struct scene *s, const char *what)
{
	assert_int_equal(s->rig.rec.nproblems, 1);
	if (strstr(s->rig.rec.problems, what) == NULL)
		fail_msg("no \"%s\" in %s", what, s->rig.rec.problems);
}

static void no_problem(const struct scene *s)
{
	assert_int_equal(s->rig.rec.nproblems, 0);
	assert_string_equal(s->rig.rec.problems, "[]");
	assert_int_equal(s->rig.rec.damaged_batches, 0);
	assert_int_equal(s->rig.rec.torn_bytes, 0);
	assert_int_equal(s->rig.rec.aborted_batches, 0);
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

	(void)state;
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
	struct rig r;

	(void)state;
	rig_init(&r);
	r.o.segment_bytes = SEG_SIZE;
	put(&r, VIEW, "one\n", 4);
	rig_open(&r);
	assert_int_equal(journal_commit(r.j, ops, 2, JOURNAL_NOW, rig_done, &r), 0);
	assert_int_equal(journal_sync(r.j), 0);
	assert_int_equal(r.last_rv, 0);
	head = used_segment(&r, &bytes);
	assert_int_equal(head.first_lsn, 1);
	assert_int_equal(head.prev.seq, 0);
	wal_segment_put(ours, &head);
	put_commit(ours + BATCH, head.salt, 1, 4);
	assert_memory_equal(bytes, ours, MARK);
	free(bytes);
	rig_holds(&r, VIEW, "one\ntwo\n");
	rig_fini(&r);
}

/* ---- what a start makes of it */

TEST(redone)
{
	struct scene s;

	(void)state;
	scene_init(&s);
	start(&s);
	is_redone(&s);
	no_problem(&s);
	assert_int_equal(journal_lsn(s.rig.j, 1), 3);
	rig_close(&s.rig);
	rig_open(&s.rig);
	holds_golden(&s, VIEW, GOLDEN "a.jsonl");
	rig_append(&s.rig, VIEW, "three\n");
	rig_holds(&s.rig, VIEW, "one\ntwo\nthree\n");
	rig_close(&s.rig);
	rig_open(&s.rig);
	assert_true(s.rig.rec.clean);
	assert_int_equal(s.rig.rec.redone_batches, 0);
	rig_holds(&s.rig, VIEW, "one\ntwo\nthree\n");
	scene_fini(&s);
}

/* A crash while recovery ran: some of it is there already, or zeros of blocks
 * whose bytes never reached the disk. */
TEST(redone_over_a_part)
{
	static const struct {
		const char *view;
		size_t len;
		const char *result;
	} cases[] = {
		{"one\ntwo\n", 8, NULL}, {"one\ntwo\n", 8, "{}\n"}, {"one\nt", 5, NULL},
		{"one\ntwo", 7, "{}"},   {"one\n\0\0\0\0", 8, ""},  {"one\ntw\0\0", 8, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct scene s;

		scene_init(&s);
		s.view = cases[i].view;
		s.view_len = cases[i].len;
		s.result = cases[i].result;
		start(&s);
		is_redone(&s);
		no_problem(&s);
		scene_fini(&s);
	}
}

TEST(without_checkpoint)
{
	struct scene s;

	(void)state;
	scene_init(&s);
	s.checkpoint_len = 0;
	start(&s);
	is_redone(&s);
	no_problem(&s);
	scene_fini(&s);

	scene_init(&s);
	s.checkpoint[20] ^= 1;
	start(&s);
	is_redone(&s);
	has_problem(&s, "wal/checkpoint");
	scene_fini(&s);
}

/* A later flush follows, so this one was synced and may have been answered:
 * wherever the flip is, it is named and nothing of the commit happens. */
TEST(flipped_is_damage)
{
	for (uint32_t at = BATCH; at < MARK; at++) {
		struct scene s;

		scene_init(&s);
		s.segment[at] ^= 0x10;
		start(&s);
		is_not_done(&s);
		has_problem(&s,
			    "\"" SEGMENT "\",\"problem\":\"damaged batch at 8192, lsn 2 to 2\"");
		assert_int_equal(s.rig.rec.damaged_batches, 1);
		assert_int_equal(s.rig.rec.torn_bytes, 0);
		scene_fini(&s);
	}
}

/* Nothing follows: the crash cut the flush, which nobody was told of. */
TEST(flipped_at_the_end_is_torn)
{
	for (uint32_t at = BATCH; at < MARK; at++) {
		struct scene s;

		scene_init(&s);
		memset(s.segment + MARK, 0, END - MARK);
		s.segment[at] ^= 0x10;
		start(&s);
		is_not_done(&s);
		assert_int_equal(s.rig.rec.nproblems, 0);
		assert_int_equal(s.rig.rec.damaged_batches, 0);
		assert_true(s.rig.rec.torn_bytes > 0 && s.rig.rec.torn_bytes <= MARK - BATCH);
		assert_true(journal_lsn(s.rig.j, 1) > 3); /* what was cut may have used more */
		scene_fini(&s);
	}
}

/* One copy of the header is enough; the other is named. */
TEST(flipped_header)
{
	static const uint32_t places[] = {0,    8,    12,   16,   24,   32,   40,   48,   1000,
					  4092, 4095, 4096, 4104, 4108, 4112, 5000, 8188, 8191};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct scene s;

		scene_init(&s);
		s.segment[places[i]] ^= 0x10;
		start(&s);
		is_redone(&s);
		has_problem(&s, "damaged copy of the header");
		scene_fini(&s);
	}
}

static void lose_headers(unsigned char *segment, bool first, bool second)
{
	memset(segment, 0, first ? WAL_PAGE : 0);
	memset(segment + WAL_HEAD_COPY, 0, second ? WAL_PAGE : 0);
}

/* A page that is lost takes one copy with it at the most. */
TEST(lost_page_of_the_header)
{
	for (int second = 0; second < 2; second++) {
		struct scene s;

		scene_init(&s);
		lose_headers(s.segment, second == 0, second == 1);
		start(&s);
		is_redone(&s);
		has_problem(&s, "\"" SEGMENT "\",\"problem\":\"damaged copy of the header");
		scene_fini(&s);
	}
}

/* The batches of the newest segment say what it is, when they can: a later
 * flush shows that the first one, and the header with it, was synced. */
TEST(lost_header)
{
	struct scene s;

	(void)state;
	scene_init(&s);
	lose_headers(s.segment, true, true);
	start(&s);
	is_redone(&s);
	has_problem(&s, "\"" SEGMENT "\",\"problem\":\"both copies of the header are damaged");
	assert_int_equal(s.rig.rec.damaged_batches, 1);
	assert_true(journal_lsn(s.rig.j, 1) > 3);
	rig_close(&s.rig);
	rig_open(&s.rig);
	holds_golden(&s, VIEW, GOLDEN "a.jsonl");
	assert_int_equal(s.rig.rec.redone_batches, 0);
	scene_fini(&s);

	scene_init(&s);
	lose_headers(s.segment, true, true);
	memset(s.segment + MARK, 0, END - MARK);
	start(&s);
	is_not_done(&s);
	no_problem(&s);
	scene_fini(&s);
}

/* A second file without headers, lsn `lsn` in it, above the golden segment. */
static void start_with_second(struct scene *s, uint64_t lsn)
{
	unsigned char *second = calloc(1, SEG_SIZE);

	assert_non_null(second);
	scene_init(s);
	put_commit(second + BATCH, SALT + 1, lsn, 8);
	wal_batch_put(second + MARK,
		      &(struct wal_batch){
			      .salt = SALT + 1, .first_lsn = lsn + 1, .at = MARK, .flush = MARK});
	put(&s->rig, "wal/0000000000000002.seg", second, SEG_SIZE);
	free(second);
	start(s);
}

TEST(lost_header_behind_another)
{
	struct scene s;

	(void)state;
	start_with_second(&s, 3);
	rig_holds(&s.rig, VIEW, "one\ntwo\ntwo\n");
	has_problem(&s, "\"wal/0000000000000002.seg\",\"problem\":\"both copies");
	assert_int_equal(s.rig.rec.redone_batches, 2);
	scene_fini(&s);

	start_with_second(&s, 1); /* a spare file: what it held is long done */
	is_redone(&s);
	no_problem(&s);
	scene_fini(&s);
}

/* An orderly end without any work leaves the position where recovery put it:
 * the next start reads nothing again, least of all over what a person did. */
TEST(idle_after_recovery)
{
	struct scene s;

	(void)state;
	scene_init(&s);
	start(&s);
	is_redone(&s);
	rig_close(&s.rig);
	assert_int_equal(unlink(rig_path(&s.rig, RESULT)), 0);
	rig_open(&s.rig);
	assert_true(s.rig.rec.clean);
	assert_int_equal(s.rig.rec.redone_batches, 0);
	assert_false(rig_exists(&s.rig, RESULT));
	scene_fini(&s);
}

/* ---- what a person did */

/* The view is left as it is; its bytes go to lost/, writing to the next part. */
static void is_put_aside(struct scene *s, const char *why)
{
	char path[64];

	has_problem(s, why);
	rig_holds(&s->rig, LOST, "two\n");
	rig_holds(&s->rig, PART, "");
	holds_golden(s, RESULT, GOLDEN "result.json");
	assert_int_equal(s->rig.rec.lost_bytes, 4);
	assert_string_equal(journal_view_path(s->rig.j, VIEW, path, sizeof(path)), PART);
	rig_append(&s->rig, VIEW, "three\n");
	rig_holds(&s->rig, PART, "three\n");
	if (s->view == NULL)
		assert_false(rig_exists(&s->rig, VIEW));
	else
		rig_holds(&s->rig, VIEW, s->view);
}

TEST(missing)
{
	struct scene s;

	(void)state;
	scene_init(&s);
	s.view = NULL;
	start(&s);
	is_put_aside(&s, "is missing");
	scene_fini(&s);
}

TEST(shorter)
{
	struct scene s;

	(void)state;
	scene_init(&s);
	s.view = "on";
	s.view_len = 2;
	start(&s);
	is_put_aside(&s, "is shorter than it was");
	scene_fini(&s);
}

TEST(edited)
{
	struct scene s;

	(void)state;
	scene_init(&s);
	s.view = "one\nmine\n";
	s.view_len = 9;
	start(&s);
	is_put_aside(&s, "was changed by somebody else");
	rig_holds(&s.rig, VIEW ".broken", "mine\n");
	scene_fini(&s);
}

TEST(result_edited)
{
	struct scene s;

	(void)state;
	scene_init(&s);
	s.result = "mine";
	start(&s);
	is_redone(&s);
	has_problem(&s, "kept in .broken");
	rig_holds(&s.rig, RESULT ".broken", "mine");
	scene_fini(&s);
}

/* Killed before its checkpoint, a recovery that put something aside leaves
 * one copy of it when it is done again. */
TEST(put_aside_twice)
{
	struct scene s;

	(void)state;
	scene_init(&s);
	s.view = "one\nmine\n";
	s.view_len = 9;
	start(&s);
	rig_close(&s.rig);
	start(&s);
	is_put_aside(&s, "was changed by somebody else");
	assert_false(rig_exists(&s.rig, VIEW ".broken.2"));
	assert_false(rig_exists(&s.rig, "logs/a.3.jsonl"));
	scene_fini(&s);
}

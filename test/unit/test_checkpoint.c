/* wal/checkpoint: its bytes, and that nothing but those bytes is believed. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ava.h>

#include "base/hash.h"
#include "journal/wal.h"

#define GOLDEN   "test/golden/journal/recover/checkpoint"
#define TEXT_MAX ((size_t)1 << 20)

static char root[256], file[300]; /* of each test, and the checkpoint in it */
static int rootfd;

static int place_begin(void **state)
{
	snprintf(root, sizeof(root), "%s", unit_tmpdir());
	snprintf(file, sizeof(file), "%s/" CHECKPOINT_PATH, root);
	unit_mkdirs(root, CHECKPOINT_PATH);
	rootfd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return rootfd < 0;
}

static int place_end(void **state)
{
	close(rootfd);
	unit_rmdir(root);
	return 0;
}

/* What stands there reads as `want`. */
static void reads(int want)
{
	struct checkpoint c;
	struct ava_error err = {0};

	assert_int_equal(checkpoint_read(rootfd, &c, &err), want);
	if (want == 0)
		checkpoint_fini(&c);
	else
		assert_null(c.text);
}

/* The body with a good checksum behind it reads as `want`. */
static void body_reads(const char *body, int want)
{
	char text[1024];
	int len = snprintf(text, sizeof(text), "%scrc32c %08x\n", body,
			   (unsigned)crc32c(0, body, strlen(body)));

	assert_true(len > 0 && (size_t)len < sizeof(text));
	unit_write(file, text, (size_t)len);
	reads(want);
}

static int write_example(struct buf *text)
{
	buf_init(text, TEXT_MAX);
	checkpoint_head(text, false, (struct wal_pos){1, 8192}, 2);
	checkpoint_add(text,
		       &(struct checkpoint_view){.part = 1, .size = 4, .path = "logs/a.jsonl"});
	return checkpoint_end(text);
}

TEST(golden)
{
	struct buf text;
	size_t len;
	char *golden = unit_read_src(GOLDEN, &len);

	assert_int_equal(write_example(&text), 0);
	assert_int_equal(text.len, len);
	assert_memory_equal(text.data, golden, len);
	buf_fini(&text);
	free(golden);
}

TEST(golden_is_read)
{
	struct checkpoint c;
	struct ava_error err = {0};
	size_t len;
	char *golden = unit_read_src(GOLDEN, &len);

	unit_write(file, golden, len);
	assert_int_equal(checkpoint_read(rootfd, &c, &err), 0);
	assert_false(c.clean);
	assert_int_equal(c.pos.seq, 1);
	assert_int_equal(c.pos.at, 8192);
	assert_int_equal(c.lsn, 2);
	assert_int_equal(c.nviews, 1);
	assert_int_equal(c.views[0].part, 1);
	assert_int_equal(c.views[0].size, 4);
	assert_int_equal(c.views[0].inode, 0);
	assert_string_equal(c.views[0].path, "logs/a.jsonl");
	checkpoint_fini(&c);
	free(golden);
}

/* Numbers as large as they get, many views, the clean mark; and the second
 * write takes the place of the first. */
TEST(there_and_back)
{
	struct checkpoint c;
	struct buf text;
	struct ava_error err = {0};
	char path[32];

	assert_int_equal(write_example(&text), 0);
	assert_int_equal(checkpoint_write(rootfd, &text), 0);
	buf_reset(&text);
	checkpoint_head(&text, true, (struct wal_pos){UINT64_MAX, UINT64_MAX - 1}, UINT64_MAX - 2);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(path, sizeof(path), "logs/%u.jsonl", i);
		checkpoint_add(&text, &(struct checkpoint_view){i + 1, UINT64_MAX - i, i, path});
	}
	assert_int_equal(checkpoint_end(&text), 0);
	assert_int_equal(checkpoint_write(rootfd, &text), 0);
	assert_int_equal(checkpoint_read(rootfd, &c, &err), 0);
	assert_true(c.clean);
	assert_true(c.pos.seq == UINT64_MAX && c.pos.at == UINT64_MAX - 1);
	assert_true(c.lsn == UINT64_MAX - 2);
	assert_int_equal(c.nviews, 1000);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(path, sizeof(path), "logs/%u.jsonl", i);
		assert_string_equal(c.views[i].path, path);
		assert_int_equal(c.views[i].part, i + 1);
		assert_true(c.views[i].size == UINT64_MAX - i);
		assert_int_equal(c.views[i].inode, i);
	}
	checkpoint_fini(&c);
	buf_fini(&text);
}

TEST(every_flipped_bit_and_cut)
{
	size_t len;
	char *golden = unit_read_src(GOLDEN, &len);

	for (size_t i = 0; i < len * 8; i++) {
		golden[i / 8] ^= (char)(1 << i % 8);
		unit_write(file, golden, len);
		reads(AVA_ECORRUPT);
		golden[i / 8] ^= (char)(1 << i % 8);
	}
	for (size_t cut = 0; cut < len; cut++) {
		unit_write(file, golden, cut);
		reads(AVA_ECORRUPT);
	}
	unit_write(file, golden, len);
	reads(0);
	free(golden);
}

/* The checksum is good and the text is not ours all the same. */
TEST(not_ours)
{
#define HEAD "ava checkpoint 1\nclean 0\nposition 0000000000000001 4096\nlsn 2\n"
	static const char *const bad[] = {
		"",
		"ava checkpoint 2\nclean 0\nposition 0000000000000001 4096\nlsn 2\n",
		"ava checkpoint 1\nposition 0000000000000001 4096\nlsn 2\n",
		"ava checkpoint 1\nclean 0\nposition 0000000000000001\nlsn 2\n",
		"ava checkpoint 1\nclean 0\nposition 0000000000000001 4096\nlsn x\n",
		"ava checkpoint 1\nclean 0\nposition 0000000000000001 4096\nlsn 2 3\n",
		HEAD "view 1 4 0 ../a.jsonl\n",
		HEAD "view 1 4 0 /a.jsonl\n",
		HEAD "view 1 4 0 \n",
		HEAD "view 1 4 0 a b\n",
		HEAD "view 0 4 0 a.jsonl\n",
		HEAD "view 1 4 a.jsonl\n",
		HEAD "view 1 4 0 a.jsonl",
		HEAD "look 1 4 0 a.jsonl\n",
		HEAD "\n",
	};

	body_reads(HEAD, 0);
	body_reads(HEAD "view 1 4 0 a.jsonl\n", 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		body_reads(bad[i], AVA_ECORRUPT);
#undef HEAD
}

TEST(absent)
{
	reads(AVA_ENOENT);
}

static void read_somehow(void)
{
	struct checkpoint c;
	struct ava_error err = {0};
	int rv = checkpoint_read(rootfd, &c, &err);

	assert_true(rv == 0 || rv == AVA_ENOMEM);
	if (rv == 0)
		checkpoint_fini(&c);
}

static void write_somehow(void)
{
	struct buf text;
	int rv = write_example(&text);

	assert_true(rv == 0 || rv == AVA_ENOMEM);
	buf_fini(&text);
}

TEST(no_memory)
{
	size_t len;
	char *golden = unit_read_src(GOLDEN, &len);

	unit_write(file, golden, len);
	FAULT_LOOP(k, read_somehow());
	FAULT_LOOP(k, write_somehow());
	free(golden);
}

UNIT_GROUP(.before = place_begin, .after = place_end);

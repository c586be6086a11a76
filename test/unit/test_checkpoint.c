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

struct place {
	char root[256], file[300];
	int fd;
};

static void place_init(struct place *p)
{
	char wal[300];

	snprintf(p->root, sizeof(p->root), "%s", unit_tmpdir());
	snprintf(wal, sizeof(wal), "%s/wal", p->root);
	snprintf(p->file, sizeof(p->file), "%s/" CHECKPOINT_PATH, p->root);
	assert_int_equal(mkdir(wal, 0700), 0);
	p->fd = open(p->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p->fd >= 0);
}

static void place_fini(struct place *p)
{
	close(p->fd);
	unit_rmdir(p->root);
}

/* What stands there reads as `want`. */
static void reads(struct place *p, int want)
{
	struct checkpoint c;
	struct ava_error err = {0};

	assert_int_equal(checkpoint_read(p->fd, &c, &err), want);
	if (want == 0)
		checkpoint_fini(&c);
	else
		assert_null(c.text);
}

/* The body with a good checksum behind it reads as `want`. */
static void body_reads(struct place *p, const char *body, int want)
{
	char text[1024];
	int len = snprintf(text, sizeof(text), "%scrc32c %08x\n", body,
			   (unsigned)crc32c(0, body, strlen(body)));

	assert_true(len > 0 && (size_t)len < sizeof(text));
	unit_write(p->file, text, (size_t)len);
	reads(p, want);
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
	struct place p;
	struct checkpoint c;
	struct ava_error err = {0};
	size_t len;
	char *golden = unit_read_src(GOLDEN, &len);

	place_init(&p);
	unit_write(p.file, golden, len);
	assert_int_equal(checkpoint_read(p.fd, &c, &err), 0);
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
	place_fini(&p);
}

/* Numbers as large as they get, many views, the clean mark; and the second
 * write takes the place of the first. */
TEST(there_and_back)
{
	struct place p;
	struct checkpoint c;
	struct buf text;
	struct ava_error err = {0};
	char path[32];

	place_init(&p);
	assert_int_equal(write_example(&text), 0);
	assert_int_equal(checkpoint_write(p.fd, &text), 0);
	buf_reset(&text);
	checkpoint_head(&text, true, (struct wal_pos){UINT64_MAX, UINT64_MAX - 1}, UINT64_MAX - 2);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(path, sizeof(path), "logs/%u.jsonl", i);
		checkpoint_add(&text, &(struct checkpoint_view){i + 1, UINT64_MAX - i, i, path});
	}
	assert_int_equal(checkpoint_end(&text), 0);
	assert_int_equal(checkpoint_write(p.fd, &text), 0);
	assert_int_equal(checkpoint_read(p.fd, &c, &err), 0);
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
	place_fini(&p);
}

TEST(every_flipped_bit_and_cut)
{
	struct place p;
	size_t len;
	char *golden = unit_read_src(GOLDEN, &len);

	place_init(&p);
	for (size_t i = 0; i < len * 8; i++) {
		golden[i / 8] ^= (char)(1 << i % 8);
		unit_write(p.file, golden, len);
		reads(&p, AVA_ECORRUPT);
		golden[i / 8] ^= (char)(1 << i % 8);
	}
	for (size_t cut = 0; cut < len; cut++) {
		unit_write(p.file, golden, cut);
		reads(&p, AVA_ECORRUPT);
	}
	unit_write(p.file, golden, len);
	reads(&p, 0);
	free(golden);
	place_fini(&p);
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
	struct place p;

	place_init(&p);
	body_reads(&p, HEAD, 0);
	body_reads(&p, HEAD "view 1 4 0 a.jsonl\n", 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		body_reads(&p, bad[i], AVA_ECORRUPT);
	place_fini(&p);
#undef HEAD
}

TEST(absent)
{
	struct place p;

	place_init(&p);
	reads(&p, AVA_ENOENT);
	place_fini(&p);
}

static void read_somehow(struct place *p)
{
	struct checkpoint c;
	struct ava_error err = {0};
	int rv = checkpoint_read(p->fd, &c, &err);

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
	struct place p;
	size_t len;
	char *golden = unit_read_src(GOLDEN, &len);

	place_init(&p);
	unit_write(p.file, golden, len);
	FAULT_LOOP(k, read_somehow(&p));
	FAULT_LOOP(k, write_somehow());
	free(golden);
	place_fini(&p);
}

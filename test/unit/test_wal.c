/* The bytes of segments and batches: the example of doc/JOURNAL.md, a golden
 * segment, every flipped bit of a batch, lengths that lie. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "journal/wal.h"

/* ---- the worked example */

static size_t read_hex(const char *doc, const char *fence, unsigned char *out, size_t size)
{
	const char *p = strstr(doc, fence);
	size_t n = 0;
	unsigned byte;
	int used;

	assert_non_null(p);
	for (p = strchr(p, '\n'); sscanf(p, " %2x%n", &byte, &used) == 1; p += used) {
		assert_true(n < size);
		out[n++] = (unsigned char)byte;
	}
	assert_int_equal(strncmp(p, "\n```", 4), 0);
	return n;
}

TEST(worked_example)
{
	unsigned char seg[WAL_BEGIN + 256] = {0}, want[WAL_BEGIN];
	size_t len;
	char *doc = unit_read_src("doc/JOURNAL.md", &len);
	size_t head = read_hex(doc, "```segment", seg, WAL_HEAD_COPY);
	size_t batch = read_hex(doc, "```batch", seg + WAL_BEGIN, 256);
	const unsigned char *p = seg + WAL_BEGIN + WAL_BATCH_HEAD;
	struct wal_segment s;
	struct wal_batch b;
	struct wal_op op;

	memcpy(seg + WAL_PAGE - 4, "\xce\x45\x4e\x92", 4);
	assert_int_equal(head, 56);
	assert_int_equal(wal_segment_get(seg, 0, &s), 1);
	assert_int_equal(s.seq, 3);
	assert_int_equal(s.salt, 0x5eed1234);
	assert_int_equal(s.size, 65536);
	assert_int_equal(s.first_lsn, 41);
	assert_int_equal(s.prev.seq, 2);
	assert_int_equal(s.prev.at, 61440);
	memcpy(seg + WAL_HEAD_COPY, seg, WAL_PAGE);
	wal_segment_put(want, &s);
	assert_memory_equal(seg, want, WAL_BEGIN);

	assert_true(wal_batch_get(seg, WAL_BEGIN + batch, WAL_BEGIN, s.salt, &b));
	assert_int_equal(b.first_lsn, 41);
	assert_int_equal(b.lsn_count, 1);
	assert_int_equal(b.flush, WAL_BEGIN);
	assert_int_equal(wal_op_next(&p, p + b.len, &op), 1);
	assert_int_equal(op.kind, WAL_APPEND);
	assert_int_equal(op.part, 1);
	assert_int_equal(op.offset, 128);
	assert_int_equal(op.path_len, 12);
	assert_memory_equal(op.path, "logs/a.jsonl", 12);
	assert_int_equal(op.len, 4);
	assert_memory_equal(op.bytes, "one\n", 4);
	assert_int_equal(wal_op_next(&p, seg + WAL_BEGIN + batch, &op), 1);
	assert_int_equal(op.kind, WAL_PUT);
	assert_int_equal(op.path_len, 18);
	assert_memory_equal(op.path, "runs/a/result.json", 18);
	assert_int_equal(op.len, 3);
	assert_memory_equal(op.bytes, "{}\n", 3);
	assert_int_equal(wal_op_next(&p, seg + WAL_BEGIN + batch, &op), 0);
	assert_int_equal(batch, WAL_BATCH_HEAD + b.len);
	free(doc);
}

/* ---- the golden segment: one of each operation, as version 1 wrote it */

static const unsigned char hash[WAL_HASH] = "0123456789abcdef0123456789abcde";

#define BYTES(s) (const unsigned char *)(s), .len = sizeof(s) - 1
static const struct wal_op golden_ops[] = {
	{.kind = WAL_APPEND, .part = 1, .path = "a.jsonl", .bytes = BYTES("one\n")},
	{.kind = WAL_APPEND, .part = 2, .path = "a.jsonl", .bytes = BYTES("two\n"), .offset = 7},
	{.kind = WAL_PUT, .part = 1, .path = "runs/S-1/result.json", .bytes = BYTES("{}\n")},
	{.kind = WAL_ENTRY, .part = 1, .path = "s.jsonl", .id = "9f1c2ab4", .bytes = BYTES("{}\n")},
	{.kind = WAL_CREATE, .part = 1, .path = "b.jsonl"},
	{.kind = WAL_DROP, .part = 1, .path = "a.jsonl"},
	{.kind = WAL_APPEND, .part = 1, .path = "c", .blob = true, .bytes = hash, .len = 100000},
};
#define NGOLDEN (sizeof(golden_ops) / sizeof(golden_ops[0]))

static struct wal_op golden_op(size_t i)
{
	struct wal_op op = golden_ops[i];

	op.path_len = strlen(op.path);
	op.id_len = op.id != NULL ? strlen(op.id) : 0;
	return op;
}

/* Header, one batch an operation, a batch with all of them, a mark. */
static size_t write_golden(unsigned char *seg)
{
	struct wal_segment s = {
		.seq = 17, .size = 65536, .first_lsn = 100, .salt = 0xfeedbeef, .prev = {16, 8192}};
	size_t at = WAL_BEGIN, end;

	wal_segment_put(seg, &s);
	for (size_t i = 0; i < NGOLDEN + 2; i++) {
		size_t from = i < NGOLDEN ? i : 0, to = i < NGOLDEN ? i + 1 : NGOLDEN;
		unsigned char *p = seg + at + WAL_BATCH_HEAD;
		struct wal_batch b = {.salt = s.salt,
				      .first_lsn = 100 + i,
				      .lsn_count = i <= NGOLDEN,
				      .at = (uint32_t)at,
				      .flush = (uint32_t)at};

		for (; from < to && i <= NGOLDEN; from++) {
			struct wal_op op = golden_op(from);

			p = wal_op_put(p, &op);
		}
		end = (size_t)(p - seg + WAL_ALIGN - 1) / WAL_ALIGN * WAL_ALIGN;
		b.len = (uint32_t)(end - at - WAL_BATCH_HEAD);
		wal_batch_put(seg + at, &b);
		at = end;
	}
	return at;
}

TEST(golden_segment)
{
	static unsigned char seg[WAL_BEGIN + WAL_PAGE];
	size_t len = write_golden(seg), golden_len;
	char *golden;

	if (getenv("WRITE_GOLDEN") != NULL) /* only when FORMAT changes */
		unit_write(getenv("WRITE_GOLDEN"), seg, len);
	golden = unit_read_src("test/golden/journal/segment.seg", &golden_len);
	assert_int_equal(len, golden_len);
	assert_memory_equal(seg, golden, len);
	free(golden);
}

TEST(golden_is_read)
{
	size_t len, at = WAL_BEGIN, n = 0;
	unsigned char *seg =
		(unsigned char *)unit_read_src("test/golden/journal/segment.seg", &len);
	struct wal_segment s;
	struct wal_batch b;

	assert_int_equal(wal_segment_get(seg, 0, &s), 2);
	for (; at < len; at += WAL_BATCH_HEAD + b.len, n++) {
		const unsigned char *p = seg + at + WAL_BATCH_HEAD;
		size_t i = n < NGOLDEN ? n : 0, count = 0;
		struct wal_op op, want;

		assert_true(wal_batch_get(seg, len, at, s.salt, &b));
		assert_int_equal(b.first_lsn, 100 + n);
		while (wal_op_next(&p, seg + at + WAL_BATCH_HEAD + b.len, &op) == 1) {
			want = golden_op(i + count++);
			assert_int_equal(op.kind, want.kind);
			assert_int_equal(op.part, want.part);
			assert_int_equal(op.offset, want.offset);
			assert_int_equal(op.len, want.len);
			assert_int_equal(op.blob, want.blob);
			assert_int_equal(op.path_len, want.path_len);
			assert_memory_equal(op.path, want.path, want.path_len);
			assert_int_equal(op.id_len, want.id_len);
			if (want.id_len > 0)
				assert_memory_equal(op.id, want.id, want.id_len);
			if (op.len > 0)
				assert_memory_equal(op.bytes, want.bytes,
						    op.blob ? WAL_HASH : op.len);
		}
		assert_int_equal(count, n < NGOLDEN ? 1 : n == NGOLDEN ? NGOLDEN : 0);
	}
	assert_int_equal(n, NGOLDEN + 2);
	free(seg);
}

/* ---- damage */

TEST(every_flipped_bit)
{
	static unsigned char seg[WAL_BEGIN + WAL_PAGE];
	struct wal_segment s;
	struct wal_batch b;
	size_t len = write_golden(seg), end;

	wal_segment_get(seg, 0, &s);
	assert_true(wal_batch_get(seg, len, WAL_BEGIN, s.salt, &b));
	end = WAL_BEGIN + WAL_BATCH_HEAD + b.len;
	for (size_t bit = WAL_BEGIN * 8; bit < end * 8; bit++) {
		seg[bit / 8] ^= (unsigned char)(1 << bit % 8);
		assert_false(wal_batch_get(seg, len, WAL_BEGIN, s.salt, &b));
		seg[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	assert_true(wal_batch_get(seg, len, WAL_BEGIN, s.salt, &b));
	for (size_t bit = 0; bit < WAL_BEGIN * 8; bit++) {
		seg[bit / 8] ^= (unsigned char)(1 << bit % 8);
		assert_int_equal(wal_segment_get(seg, 0, &s), 1);
		assert_int_equal(s.seq, 17);
		seg[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
}

TEST(not_a_batch)
{
	static unsigned char seg[WAL_BEGIN + WAL_PAGE], copy[WAL_BEGIN + WAL_PAGE];
	size_t len = write_golden(seg);
	struct wal_segment s;
	struct wal_batch b;

	wal_segment_get(seg, 0, &s);
	/* cut off; of another use of the file; moved to another place */
	assert_false(wal_batch_get(seg, WAL_BEGIN + WAL_BATCH_HEAD - 1, WAL_BEGIN, s.salt, &b));
	assert_false(wal_batch_get(seg, WAL_BEGIN + WAL_BATCH_HEAD + 15, WAL_BEGIN, s.salt, &b));
	assert_false(wal_batch_get(seg, len, WAL_BEGIN, s.salt + 1, &b));
	memcpy(copy + 16, seg, sizeof(seg) - 16);
	assert_false(wal_batch_get(copy, len + 16, WAL_BEGIN + 16, s.salt, &b));
	assert_false(wal_batch_get(seg, len, len + 16, s.salt, &b));
	memset(copy, 0, sizeof(copy));
	assert_false(wal_batch_get(copy, sizeof(copy), WAL_BEGIN, s.salt, &b));
	assert_int_equal(wal_segment_get(copy, 0, &s), 0);
}

/* Payloads that the checksum lets through must still not be overread. */
TEST(malformed_payload)
{
	unsigned char buf[128] = {0};
	struct wal_op op, put = {.kind = WAL_APPEND,
				 .part = 1,
				 .path = "a",
				 .path_len = 1,
				 .bytes = (const unsigned char *)"xyz",
				 .len = 3};
	size_t len = (size_t)(wal_op_put(buf, &put) - buf);
	const unsigned char *p;

	for (size_t cut = 1; cut < len; cut++) {
		p = buf;
		assert_int_equal(wal_op_next(&p, buf + cut, &op), -1);
	}
	p = buf;
	assert_int_equal(wal_op_next(&p, buf + len, &op), 1);
	assert_int_equal(wal_op_next(&p, buf + len, &op), 0);
	for (size_t field = 2; field < 16; field++) {
		if (field == 6 || field == 7)
			continue; /* the part may be anything */
		p = buf;
		buf[field] ^= 0x80;
		assert_int_equal(wal_op_next(&p, buf + len, &op), -1);
		buf[field] ^= 0x80;
	}
	p = buf;
	buf[0] = WAL_ABORT + 1;
	assert_int_equal(wal_op_next(&p, buf + len, &op), -1);
}

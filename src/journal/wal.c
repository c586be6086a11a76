/* The bytes of a segment; see wal.h and doc/JOURNAL.md.
 *
 * A batch is trusted when its salt is the segment's, it has the place where it was found, and
 * its checksum holds over head and payload. Bytes of an older use of the file fail the first, a
 * copy of WAL bytes inside of some payload the second, damage the third. Reading never leaves
 * the given bytes, whatever they say. */
#include "journal/wal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/le.h"
#include "base/sys.h"
#include "journal/files.h"

static const char magic[8] = {'A', 'V', 'A', 'W', 'A', 'L', '1', '\n'};

#define HEAD_CRC  (WAL_PAGE - 4) /* in each copy of the segment header */
#define BATCH_CRC (WAL_BATCH_HEAD - 4)

void wal_segment_put(unsigned char head[WAL_BEGIN], const struct wal_segment *s)
{
	memset(head, 0, WAL_PAGE);
	memcpy(head, magic, sizeof(magic));
	put32(head + 8, WAL_VERSION);
	put32(head + 12, s->salt);
	put64(head + 16, s->seq);
	put64(head + 24, s->size);
	put64(head + 32, s->first_lsn);
	put64(head + 40, s->prev.seq);
	put64(head + 48, s->prev.at);
	put32(head + HEAD_CRC, crc32c(0, head, HEAD_CRC));
	memcpy(head + WAL_HEAD_COPY, head, WAL_PAGE);
}

static bool head_get(const unsigned char *p, struct wal_segment *s)
{
	if (memcmp(p, magic, sizeof(magic)) != 0 || get32(p + 8) != WAL_VERSION ||
	    get32(p + HEAD_CRC) != crc32c(0, p, HEAD_CRC))
		return false;
	s->salt = get32(p + 12);
	s->seq = get64(p + 16);
	s->size = get64(p + 24);
	s->first_lsn = get64(p + 32);
	s->prev.seq = get64(p + 40);
	s->prev.at = get64(p + 48);
	return true;
}

int wal_segment_get(const unsigned char head[WAL_BEGIN], uint64_t seq, struct wal_segment *s)
{
	struct wal_segment copy;
	int good = 0;

	for (size_t at = 0; at < WAL_BEGIN; at += WAL_HEAD_COPY) {
		if (!head_get(head + at, &copy) || (seq != 0 && copy.seq != seq))
			continue;
		if (good++ == 0 || copy.seq > s->seq)
			*s = copy;
	}
	return good;
}

void wal_batch_put(unsigned char *batch, const struct wal_batch *b)
{
	uint32_t crc;

	assert(b->len % WAL_ALIGN == 0 && b->at % WAL_ALIGN == 0);
	put32(batch, b->len);
	put32(batch + 4, b->salt);
	put64(batch + 8, b->first_lsn);
	put32(batch + 16, b->lsn_count);
	put32(batch + 20, b->at);
	put32(batch + 24, b->flush);
	crc = crc32c(0, batch, BATCH_CRC);
	put32(batch + BATCH_CRC, crc32c(crc, batch + WAL_BATCH_HEAD, b->len));
}

bool wal_batch_get(const unsigned char *segment, size_t len, uint64_t at, uint32_t salt,
		   struct wal_batch *b)
{
	const unsigned char *p = segment + at;
	uint32_t crc;

	if (at > len || len - at < WAL_BATCH_HEAD || get32(p + 4) != salt || get32(p + 20) != at)
		return false;
	*b = (struct wal_batch){
		.len = get32(p),
		.salt = salt,
		.first_lsn = get64(p + 8),
		.lsn_count = get32(p + 16),
		.at = get32(p + 20),
		.flush = get32(p + 24),
	};
	if (b->len % WAL_ALIGN != 0 || b->len > len - at - WAL_BATCH_HEAD)
		return false;
	crc = crc32c(0, p, BATCH_CRC);
	return crc32c(crc, p + WAL_BATCH_HEAD, b->len) == get32(p + BATCH_CRC);
}

uint32_t wal_batch_salt(const unsigned char *segment, uint64_t at)
{
	return get32(segment + at + 4);
}

size_t wal_op_size(size_t path_len, size_t id_len, size_t len, bool blob)
{
	return WAL_OP_HEAD + path_len + id_len + (blob ? WAL_HASH : len);
}

unsigned char *wal_op_put(unsigned char *p, const struct wal_op *op)
{
	size_t stored = op->blob ? WAL_HASH : op->len;

	assert(op->path_len <= UINT16_MAX && op->id_len <= UINT16_MAX && op->part <= UINT16_MAX);
	p[0] = (unsigned char)op->kind;
	p[1] = op->blob;
	put16(p + 2, (uint16_t)op->path_len);
	put16(p + 4, (uint16_t)op->id_len);
	put16(p + 6, (uint16_t)op->part);
	put64(p + 8, op->len);
	put64(p + 16, op->offset);
	p += WAL_OP_HEAD;
	if (op->path_len != 0)
		memcpy(p, op->path, op->path_len);
	p += op->path_len;
	if (op->id_len != 0)
		memcpy(p, op->id, op->id_len);
	p += op->id_len;
	if (stored != 0 && op->bytes != NULL)
		memcpy(p, op->bytes, stored);
	return p + stored;
}

void wal_op_place(unsigned char *op, unsigned part, uint64_t offset)
{
	put16(op + 6, (uint16_t)part);
	put64(op + 16, offset);
}

int wal_op_next(const unsigned char **p, const unsigned char *end, struct wal_op *op)
{
	const unsigned char *at = *p;
	uint64_t left = (uint64_t)(end - at), stored;

	if (left == 0 || at[0] == WAL_END)
		return 0;
	if (left < WAL_OP_HEAD || at[0] > WAL_ABORT || at[1] > 1)
		return -1;
	*op = (struct wal_op){
		.kind = (enum wal_kind)at[0],
		.blob = at[1] != 0,
		.path_len = get16(at + 2),
		.id_len = get16(at + 4),
		.part = get16(at + 6),
		.len = get64(at + 8),
		.offset = get64(at + 16),
	};
	stored = op->blob ? WAL_HASH : op->len;
	left -= WAL_OP_HEAD;
	if (op->path_len > left || op->id_len > left - op->path_len ||
	    stored > left - op->path_len - op->id_len)
		return -1;
	op->path = (const char *)at + WAL_OP_HEAD;
	op->id = op->path + op->path_len;
	op->bytes = (const unsigned char *)op->id + op->id_len;
	*p = op->bytes + stored;
	return 1;
}

/* ---- The file wal/checkpoint.
 *
 * The file is replaced as a whole, so a reader sees the last one or the one before, never half
 * of one. The checksum in its last line shows damage; the journal then replays from the oldest
 * segment it still has, which is slower and knows less about the views, but loses nothing. */

#define TEXT_MAX ((size_t)256 << 20)
#define CRC_LINE 16 /* "crc32c 01234567\n" */

static const char first_line[] = "ava checkpoint 1\n";

void checkpoint_head(struct buf *out, bool clean, struct wal_pos pos, uint64_t lsn)
{
	buf_addf(out, "%sclean %d\nposition %016" PRIx64 " %" PRIu64 "\nlsn %" PRIu64 "\n",
		 first_line, clean, pos.seq, pos.at, lsn);
}

void checkpoint_add(struct buf *out, const struct checkpoint_view *v)
{
	buf_addf(out, "view %u %" PRIu64 " %" PRIu64 " %s\n", v->part, v->size, v->inode, v->path);
}

int checkpoint_end(struct buf *out)
{
	if (buf_check(out) == 0)
		buf_addf(out, "crc32c %08" PRIx32 "\n", crc32c(0, out->data, out->len));
	return buf_check(out);
}

int checkpoint_write(int rootfd, const struct buf *text)
{
	return files_replace(rootfd, CHECKPOINT_PATH, text->data, text->len, true);
}

static bool crc_good(const char *text, size_t len)
{
	char line[CRC_LINE + 1];

	if (len < CRC_LINE)
		return false;
	snprintf(line, sizeof(line), "crc32c %08" PRIx32 "\n", crc32c(0, text, len - CRC_LINE));
	return memcmp(text + len - CRC_LINE, line, CRC_LINE) == 0;
}

static bool parse_head(struct checkpoint *c, char **at)
{
	int clean, used = 0;

	if (strncmp(*at, first_line, sizeof(first_line) - 1) != 0)
		return false;
	*at += sizeof(first_line) - 1;
	if (sscanf(*at, "clean %d\nposition %" SCNx64 " %" SCNu64 "\nlsn %" SCNu64 "%n", &clean,
		   &c->pos.seq, &c->pos.at, &c->lsn, &used) != 4 ||
	    (*at)[used] != '\n')
		return false;
	c->clean = clean != 0;
	*at += used + 1;
	return true;
}

/* The path is cut off where its line ends. */
static bool parse_view(struct checkpoint_view *v, char **at)
{
	char *end = strchr(*at, '\n');
	int used = 0;

	if (end == NULL)
		return false;
	*end = '\0'; /* before the scan, which looks for the end of the text first */
	if (sscanf(*at, "view %u %" SCNu64 " %" SCNu64 " %n", &v->part, &v->size, &v->inode,
		   &used) != 3)
		return false;
	v->path = *at + used;
	*at = end + 1;
	return v->part >= 1 && files_path_ok(v->path);
}

static int wal_parse(struct checkpoint *c, size_t len)
{
	char *at = c->text, *end;
	size_t lines = 0;

	if (!crc_good(c->text, len) || !parse_head(c, &at))
		return AVA_ECORRUPT;
	end = c->text + len - CRC_LINE;
	*end = '\0';
	for (const char *p = at; (p = strchr(p, '\n')) != NULL; p++)
		lines++;
	c->views = calloc(lines + 1, sizeof(c->views[0]));
	if (c->views == NULL)
		return AVA_ENOMEM;
	while (at < end)
		if (!parse_view(&c->views[c->nviews++], &at))
			return AVA_ECORRUPT;
	return 0;
}

int checkpoint_read(int rootfd, struct checkpoint *c, struct ava_error *err)
{
	size_t len;
	int rv;

	*c = (struct checkpoint){0};
	rv = sys_read_file(rootfd, CHECKPOINT_PATH, TEXT_MAX, &c->text, &len, err);
	if (rv != 0)
		return rv;
	rv = wal_parse(c, len);
	if (rv == 0)
		return 0;
	checkpoint_fini(c);
	return err_set(err, rv, "%s: %s", CHECKPOINT_PATH, ava_strerror(rv));
}

void checkpoint_fini(struct checkpoint *c)
{
	free(c->views);
	free(c->text);
	*c = (struct checkpoint){0};
}

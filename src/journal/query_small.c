/* What is in small logs; query_small.h.
 *
 * Happy path: the table's rows are read; each file's row is found by its
 * inode, and counts when the file has the times and the size it had then. When
 * enough files have none they are read, which makes for each a chunk of an
 * index and the row that speaks of it, and a new table takes the place of the
 * old one.
 *
 * What can fail: anything, and the file in question is read like one without
 * a row. */
#include "journal/query_small.h"

#include <ava.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/crew.h"
#include "base/hash.h"
#include "base/le.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/query_build.h"

#define MAGIC    "avasmal2"
#define ROWS_MAX 250000
#define OPAQUE   (UINT64_C(1) << 63)
#define CHUNK_AT 128
#define CRC_AT   (QUERY_SMALL_ROW - 4)
#define HEAD_CRC (QUERY_SMALL_HEAD - 4)
#define BLOCK    ((size_t)8 << 10)   /* fewer lines in one that fits a time */
#define AT_ONCE  256                 /* files that are looked at by one thread */
#define PENDING  ((size_t)1 << 20)   /* bytes that are written at once */
#define CHUNKS   ((uint64_t)1 << 30) /* bytes of chunks; logs above it have none */
#define NIDS     4

struct entry {
	const char *path;
	struct query_mark now; /* all 0: it has no row, whatever happens */
	struct query_small_row row;
	bool known;
};

struct query_small {
	int rootfd, fd; /* fd: the table's file; -1: none */
	const struct query *want;
	bool all, failed;     /* failed: without memory for all files; none is known */
	unsigned char *table; /* owned; rows, as stored */
	size_t nrows;
	uint32_t *slots; /* owned; row + 1 by inode; 0: free */
	size_t nslots;
	struct entry *v; /* owned */
	size_t n, cap;
};

/* ---- rows */

bool query_small_row_get(const unsigned char *p, struct query_small_row *r)
{
	uint64_t kinds = get64(p + 40);

	if (get32(p + CRC_AT) != crc32c(0, p, CRC_AT))
		return false;
	r->mark = (struct query_mark){get64(p), get64(p + 8), get64(p + 16), get64(p + 24)};
	r->first = get64(p + 32);
	r->kinds = (uint32_t)kinds;
	r->opaque = (kinds & OPAQUE) != 0;
	memcpy(r->earliest, p + 48, CLOCK_ISO_LEN);
	memcpy(r->latest, p + 72, CLOCK_ISO_LEN);
	memcpy(r->ids, p + 96, sizeof(r->ids));
	r->chunk = (struct query_small_place){get64(p + CHUNK_AT), get32(p + CHUNK_AT + 8)};
	return true;
}

void query_small_row_put(unsigned char *p, const struct query_small_row *r)
{
	memset(p, 0, QUERY_SMALL_ROW);
	put64(p, r->mark.inode);
	put64(p + 8, r->mark.ctime_ns);
	put64(p + 16, r->mark.mtime_ns);
	put64(p + 24, r->mark.size);
	put64(p + 32, r->first);
	put64(p + 40, r->kinds | (r->opaque ? OPAQUE : 0));
	memcpy(p + 48, r->earliest, CLOCK_ISO_LEN);
	memcpy(p + 72, r->latest, CLOCK_ISO_LEN);
	memcpy(p + 96, r->ids, sizeof(r->ids));
	put64(p + CHUNK_AT, r->chunk.at);
	put32(p + CHUNK_AT + 8, r->chunk.size);
	put32(p + CRC_AT, crc32c(0, p, CRC_AT));
}

/* The two bits of the i-th of an event's four ids. */
static void bits_of(uint32_t hash, uint32_t i, unsigned bits[2])
{
	hash += i * 0x9e3779b9u;
	bits[0] = hash & 255;
	bits[1] = hash >> 16 & 255;
}

static void add_id(struct query_small_row *r, uint32_t hash, uint32_t i)
{
	unsigned bits[2];

	bits_of(hash, i, bits);
	for (int j = 0; j < 2; j++)
		r->ids[bits[j] / 8] |= (unsigned char)(1u << bits[j] % 8);
}

static bool has_id(const struct query_small_row *r, const struct query_id *id, uint32_t i)
{
	unsigned bits[2];

	bits_of(query_index_hash(id->text, id->len), i, bits);
	return (r->ids[bits[0] / 8] & 1u << bits[0] % 8) != 0 &&
	       (r->ids[bits[1] / 8] & 1u << bits[1] % 8) != 0;
}

int query_small_row_of(struct query_small_row *r, const char *data, size_t len, struct buf *chunk)
{
	struct query_index_head h = {.opaque = true};
	size_t from = chunk->len;
	const unsigned char *who;
	int rv = 0;

	if (len > 0 && data[len - 1] == '\n')
		rv = query_build(chunk, data, len, 0, BLOCK);
	if (rv == 0 && chunk->len > from)
		query_index_head_get((unsigned char *)chunk->data + from, &h);
	r->opaque = h.opaque;
	r->kinds = h.kinds;
	memcpy(r->earliest, h.earliest, CLOCK_ISO_LEN);
	memcpy(r->latest, h.latest, CLOCK_ISO_LEN);
	memset(r->ids, 0, sizeof(r->ids));
	if (!query_lsn(data, len, &r->first))
		r->first = 0;
	for (uint32_t i = 0; i < h.whos * NIDS; i++) {
		who = (unsigned char *)chunk->data + from + QUERY_INDEX_HEAD +
		      query_index_part_size(&h, QUERY_INDEX_BLOCKS) + 4 * (size_t)i;
		add_id(r, get32(who), i % NIDS);
	}
	return rv;
}

bool query_small_row_fits(const struct query_small_row *r, const struct query *q)
{
	if (r->opaque)
		return true;
	if (q->types != 0 && (r->kinds & q->types) == 0)
		return false;
	if (q->since[0] != '\0' && memcmp(r->latest, q->since, CLOCK_ISO_LEN) < 0)
		return false;
	if (q->until[0] != '\0' && memcmp(r->earliest, q->until, CLOCK_ISO_LEN) >= 0)
		return false;
	if (q->agent.len > 0 && !has_id(r, &q->agent, 0) && !has_id(r, &q->agent, 2))
		return false;
	if (q->session.len > 0 && !has_id(r, &q->session, 1))
		return false;
	return q->user.len == 0 || has_id(r, &q->user, 3);
}

/* ---- the table */

static size_t slot_of(const struct query_small *t, uint64_t inode)
{
	return (size_t)(inode * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (t->nslots - 1);
}

static bool fill_slots(struct query_small *t)
{
	for (t->nslots = 64; t->nslots < 2 * t->nrows;)
		t->nslots *= 2;
	t->slots = calloc(t->nslots, sizeof(*t->slots));
	if (t->slots == NULL)
		return false;
	for (size_t i = 0; i < t->nrows; i++) {
		size_t at = slot_of(t, get64(t->table + i * QUERY_SMALL_ROW));

		while (t->slots[at] != 0)
			at = (at + 1) & (t->nslots - 1);
		t->slots[at] = (uint32_t)i + 1;
	}
	return true;
}

/* Where the rows stand, and how many. */
static bool head_get(const unsigned char *p, uint64_t *at, uint64_t *rows)
{
	*rows = get64(p + 8);
	*at = get64(p + 16);
	return memcmp(p, MAGIC, 8) == 0 && get32(p + HEAD_CRC) == crc32c(0, p, HEAD_CRC) &&
	       *rows > 0 && *rows <= ROWS_MAX;
}

static void head_put(unsigned char *p, uint64_t at, uint64_t rows)
{
	memset(p, 0, QUERY_SMALL_HEAD);
	memcpy(p, MAGIC, 8);
	put64(p + 8, rows);
	put64(p + 16, at);
	put32(p + HEAD_CRC, crc32c(0, p, HEAD_CRC));
}

static void load(struct query_small *t)
{
	unsigned char head[QUERY_SMALL_HEAD];
	uint64_t rows, at;

	t->fd = files_open(t->rootfd, QUERY_SMALL_PATH, O_RDONLY);
	if (t->fd < 0 || sys_read_all(t->fd, head, sizeof(head), 0) != 0 ||
	    !head_get(head, &at, &rows))
		return;
	t->table = malloc((size_t)rows * QUERY_SMALL_ROW);
	if (t->table != NULL &&
	    sys_read_all(t->fd, t->table, (size_t)rows * QUERY_SMALL_ROW, (off_t)at) == 0)
		t->nrows = (size_t)rows;
}

struct query_small *query_small_open(int rootfd, const struct query *want, bool all)
{
	struct query_small *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	*t = (struct query_small){.rootfd = rootfd, .fd = -1, .want = want, .all = all};
	load(t);
	if (fill_slots(t))
		return t;
	query_small_close(t);
	return NULL;
}

void query_small_close(struct query_small *t)
{
	if (t == NULL)
		return;
	files_close(&t->fd);
	free(t->table);
	free(t->slots);
	free(t->v);
	free(t);
}

static bool find_row(const struct query_small *t, struct entry *e)
{
	for (size_t at = slot_of(t, e->now.inode); t->slots[at] != 0;
	     at = (at + 1) & (t->nslots - 1)) {
		const unsigned char *row = t->table + (size_t)(t->slots[at] - 1) * QUERY_SMALL_ROW;

		if (get64(row) == e->now.inode)
			return query_small_row_get(row, &e->row) &&
			       query_store_same(&e->row.mark, &e->now);
	}
	return false;
}

void query_small_add(struct query_small *t, const char *path)
{
	size_t cap = t->cap == 0 ? 256 : t->cap * 2;
	struct entry *grown;

	if (!t->failed && t->n == t->cap) {
		grown = realloc(t->v, cap * sizeof(*grown));
		if (grown == NULL) {
			t->failed = true;
			return;
		}
		t->v = grown;
		t->cap = cap;
	}
	if (!t->failed)
		t->v[t->n++] = (struct entry){.path = path};
}

static bool look_at_some(size_t piece, unsigned thread, void *user)
{
	struct query_small *t = user;
	struct stat st;

	(void)thread;
	for (size_t i = piece * AT_ONCE; i < MIN((piece + 1) * AT_ONCE, t->n); i++) {
		struct entry *e = &t->v[i];

		if (sys->fstatat(t->rootfd, e->path, &st, 0) != 0 || !S_ISREG(st.st_mode) ||
		    st.st_size == 0 || (uint64_t)st.st_size >= QUERY_COVER_LEAST)
			continue;
		e->now = query_store_mark(&st);
		e->known = find_row(t, e);
	}
	return true;
}

void query_small_tell(const struct query_small *t, size_t i, struct query_small_told *out)
{
	const struct query_small_row *row;

	*out = (struct query_small_told){0};
	if (t->failed || !t->v[i].known)
		return;
	row = &t->v[i].row;
	*out = (struct query_small_told){!query_small_row_fits(row, t->want), row->first,
					 row->mark.size, row->chunk};
}

int query_small_take_file(struct query_small *t)
{
	int fd = t->fd;

	t->fd = -1;
	return fd;
}

struct query_cover *query_small_cover(int fd, const struct query_small_place *place)
{
	struct query_cover *c = calloc(1, sizeof(*c));
	struct query_chunk chunk = {.pos = 0};

	if (c == NULL)
		return NULL;
	c->fd = -1;
	c->bytes = malloc((size_t)place->size + 1);
	if (c->bytes != NULL && place->size >= QUERY_INDEX_HEAD &&
	    sys_read_all(fd, c->bytes, place->size, (off_t)place->at) == 0 &&
	    query_index_head_get(c->bytes, &chunk.head) && chunk.head.at == 0 &&
	    query_index_size(&chunk.head) == place->size && query_store_add(c, &chunk) == 0)
		return c;
	query_cover_close(c);
	return NULL;
}

/* ---- making rows */

/* A new table: chunks as they come, then the rows. */
struct making {
	const struct query_small *t;
	int fd;
	uint64_t at;        /* bytes of the file that are written */
	struct buf pending; /* chunks that are not yet */
	struct buf rows;
	bool failed;
};

static void flush(struct making *m)
{
	if (buf_check(&m->pending) != 0 ||
	    sys_write_all(m->fd, m->pending.data, m->pending.len, (off_t)m->at) != 0)
		m->failed = true;
	m->at += m->pending.len;
	buf_reset(&m->pending);
}

/* The chunk that was appended to m->pending at `from` is kept for this row, or dropped. */
static void keep_chunk(struct making *m, struct query_small_row *r, size_t from)
{
	uint64_t at = m->at + from;

	r->chunk = (struct query_small_place){0};
	if (buf_check(&m->pending) != 0 || m->pending.len == from || r->opaque ||
	    r->mark.size < QUERY_SMALL_CHUNK || at > CHUNKS)
		m->pending.len = from;
	else
		r->chunk = (struct query_small_place){at, (uint32_t)(m->pending.len - from)};
}

static void add_row(struct making *m, const struct query_small_row *r)
{
	unsigned char row[QUERY_SMALL_ROW];

	query_small_row_put(row, r);
	buf_add(&m->rows, row, sizeof(row));
	if (m->pending.len >= PENDING)
		flush(m);
}

/* A row that stays, and its chunk: from the old table. */
static void move_row(struct making *m, struct query_small_row *r)
{
	struct query_small_place old = r->chunk;
	struct query_cover *c = old.size > 0 ? query_small_cover(m->t->fd, &old) : NULL;
	size_t from = m->pending.len;

	if (c != NULL)
		buf_add(&m->pending, c->bytes, old.size);
	query_cover_close(c);
	keep_chunk(m, r, from);
	add_row(m, r);
}

static bool can_be_made(const struct entry *e)
{
	return !e->known && e->now.size > 0 && query_store_settled(&e->now);
}

static void make_row(struct making *m, struct entry *e, char *data)
{
	int fd = files_open(m->t->rootfd, e->path, O_RDONLY);
	size_t from = m->pending.len;
	struct query_mark after;

	if (fd < 0)
		return;
	e->row.mark = e->now;
	if (sys_read_all(fd, data, e->now.size, 0) == 0 &&
	    query_small_row_of(&e->row, data, e->now.size, &m->pending) == 0)
		e->known = query_store_look(fd, &after) && query_store_same(&e->now, &after);
	files_close(&fd);
	if (!e->known) {
		m->pending.len = from;
		return;
	}
	keep_chunk(m, &e->row, from);
	add_row(m, &e->row);
}

static bool was_added(const unsigned char *row, const uint64_t *sorted, size_t n)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (sorted[mid] < get64(row))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && sorted[lo] == get64(row);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Rows of files that were not asked about now, but may be again. */
static void keep_others(struct making *m)
{
	const struct query_small *t = m->t;
	uint64_t *inodes = malloc((t->n + 1) * sizeof(*inodes));
	struct query_small_row r;

	if (inodes == NULL)
		return;
	for (size_t i = 0; i < t->n; i++)
		inodes[i] = t->v[i].now.inode;
	qsort(inodes, t->n, sizeof(*inodes), by_number);
	for (size_t i = 0; i < t->nrows; i++) {
		const unsigned char *row = t->table + i * QUERY_SMALL_ROW;

		if (!was_added(row, inodes, t->n) && query_small_row_get(row, &r))
			move_row(m, &r);
	}
	free(inodes);
}

/* The rows behind the chunks, and last the head: without it it is no table. */
static bool finish(struct making *m)
{
	unsigned char head[QUERY_SMALL_HEAD];
	uint64_t rows = m->rows.len / QUERY_SMALL_ROW;

	flush(m);
	head_put(head, m->at, rows);
	return !m->failed && buf_check(&m->rows) == 0 && rows <= ROWS_MAX &&
	       sys_write_all(m->fd, m->rows.data, m->rows.len, (off_t)m->at) == 0 &&
	       sys_write_all(m->fd, head, sizeof(head), 0) == 0;
}

static bool make_table(struct query_small *t, int fd)
{
	struct making m = {.t = t, .fd = fd, .at = QUERY_SMALL_HEAD};
	char *data = malloc(QUERY_COVER_LEAST);
	bool fine = data != NULL;

	buf_init(&m.pending, PENDING + 16 * QUERY_COVER_LEAST);
	buf_init(&m.rows, (size_t)ROWS_MAX * QUERY_SMALL_ROW);
	for (size_t i = 0; fine && i < t->n; i++)
		if (t->v[i].known)
			move_row(&m, &t->v[i].row);
		else if (can_be_made(&t->v[i]))
			make_row(&m, &t->v[i], data);
	if (fine && !t->all)
		keep_others(&m);
	fine = fine && finish(&m);
	buf_fini(&m.pending);
	buf_fini(&m.rows);
	free(data);
	return fine;
}

/* They may have been those of a table that is none now. */
static void forget_chunks(struct query_small *t)
{
	for (size_t i = 0; i < t->n; i++)
		t->v[i].row.chunk = (struct query_small_place){0};
}

static bool pays(const struct query_small *t)
{
	const struct query *q = t->want;

	if (q->after != 0)
		return false;
	return query_cover_pays(q) || (t->all && q->text.needle == NULL && q->text.regex == NULL);
}

void query_small_find(struct query_small *t)
{
	struct query_store_new s;
	size_t missing = 0;

	if (t->failed)
		return;
	crew_run((t->n + AT_ONCE - 1) / AT_ONCE, look_at_some, t);
	for (size_t i = 0; i < t->n; i++)
		missing += can_be_made(&t->v[i]);
	/* All of it is written again: not for a few among many. */
	if (missing < MAX((size_t)QUERY_SMALL_LEAST, t->n / 64) || t->n > ROWS_MAX || !pays(t) ||
	    !query_store_create(&s, t->rootfd, QUERY_SMALL_PATH))
		return;
	if (!make_table(t, s.fd) || !query_store_put(&s)) {
		query_store_drop(&s);
		files_close(&s.fd);
		forget_chunks(t);
		return;
	}
	files_close(&t->fd);
	t->fd = s.fd;
	query_cover_sweep(t->rootfd);
}

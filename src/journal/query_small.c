/* What is in small logs; query_small.h.
 *
 * Happy path: the table is read whole; each file's row is found by its inode,
 * and counts when the file has the times and the size it had then. When enough
 * files have none they are read, which makes the row as it makes a chunk of an
 * index, and a new table takes the place of the old one.
 *
 * What can fail: anything, and the file in question is read like one without
 * a row. */
#include "journal/query_small.h"

#include <ava.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/query_build.h"

#define MAGIC    "avasmal1"
#define ROWS_MAX 250000
#define OPAQUE   (UINT64_C(1) << 63)
#define CRC_AT   132
#define NIDS     4

struct entry {
	const char *path;
	struct query_mark now; /* all 0: it has no row, whatever happens */
	struct query_small_row row;
	bool known;
};

struct query_small {
	int rootfd;
	const struct query *want;
	bool all, failed;     /* failed: without memory for all files; none is known */
	unsigned char *table; /* owned; rows, as stored */
	size_t nrows;
	uint32_t *slots; /* owned; row + 1 by inode; 0: free */
	size_t nslots;
	struct entry *v; /* owned */
	size_t n, cap;
};

static void put64(unsigned char *p, uint64_t n)
{
	for (int i = 0; i < 8; i++)
		p[i] = (unsigned char)(n >> 8 * i);
}

static uint64_t get64(const unsigned char *p)
{
	uint64_t n = 0;

	for (int i = 7; i >= 0; i--)
		n = n << 8 | p[i];
	return n;
}

/* ---- rows */

bool query_small_row_get(const unsigned char *p, struct query_small_row *r)
{
	uint64_t kinds = get64(p + 40);

	if ((uint32_t)get64(p + CRC_AT) != crc32c(0, p, CRC_AT))
		return false;
	r->mark = (struct query_mark){get64(p), get64(p + 8), get64(p + 16), get64(p + 24)};
	r->first = get64(p + 32);
	r->kinds = (uint32_t)kinds;
	r->opaque = (kinds & OPAQUE) != 0;
	memcpy(r->earliest, p + 48, CLOCK_ISO_LEN);
	memcpy(r->latest, p + 72, CLOCK_ISO_LEN);
	memcpy(r->ids, p + 96, sizeof(r->ids));
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
	put64(p + CRC_AT, crc32c(0, p, CRC_AT));
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

int query_small_row_of(struct query_small_row *r, const char *data, size_t len)
{
	struct query_index_head h = {.opaque = true};
	const unsigned char *who;
	struct buf chunk;
	int rv = 0;

	buf_init(&chunk, 16 * len + 65536);
	if (len > 0 && data[len - 1] == '\n')
		rv = query_build(&chunk, data, len, 0);
	if (rv == 0 && chunk.len > 0)
		query_index_head_get((unsigned char *)chunk.data, &h);
	r->opaque = h.opaque;
	r->kinds = h.kinds;
	memcpy(r->earliest, h.earliest, CLOCK_ISO_LEN);
	memcpy(r->latest, h.latest, CLOCK_ISO_LEN);
	memset(r->ids, 0, sizeof(r->ids));
	if (!query_lsn(data, len, &r->first))
		r->first = 0;
	for (uint32_t i = 0; i < h.whos * NIDS; i++) {
		who = (unsigned char *)chunk.data + QUERY_INDEX_HEAD +
		      query_index_part_size(&h, QUERY_INDEX_BLOCKS) + 4 * (size_t)i;
		add_id(r, who[0] | who[1] << 8 | who[2] << 16 | (uint32_t)who[3] << 24, i % NIDS);
	}
	buf_fini(&chunk);
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

static void load(struct query_small *t)
{
	unsigned char head[QUERY_SMALL_HEAD];
	int fd = files_open(t->rootfd, QUERY_SMALL_PATH, O_RDONLY);
	uint64_t rows;

	if (fd < 0)
		return;
	if (sys_read_all(fd, head, sizeof(head), 0) == 0 && memcmp(head, MAGIC, 8) == 0) {
		rows = get64(head + 8);
		if (rows > 0 && rows <= ROWS_MAX)
			t->table = malloc((size_t)rows * QUERY_SMALL_ROW);
		if (t->table != NULL && sys_read_all(fd, t->table, (size_t)rows * QUERY_SMALL_ROW,
						     QUERY_SMALL_HEAD) == 0)
			t->nrows = (size_t)rows;
	}
	files_close(&fd);
}

struct query_small *query_small_open(int rootfd, const struct query *want, bool all)
{
	struct query_small *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	*t = (struct query_small){.rootfd = rootfd, .want = want, .all = all};
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
	struct stat st;

	if (!t->failed && t->n == t->cap) {
		grown = realloc(t->v, cap * sizeof(*grown));
		if (grown == NULL) {
			t->failed = true;
			return;
		}
		t->v = grown;
		t->cap = cap;
	}
	if (t->failed)
		return;
	t->v[t->n] = (struct entry){.path = path};
	if (sys->fstatat(t->rootfd, path, &st, 0) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
	    (uint64_t)st.st_size < QUERY_COVER_LEAST) {
		t->v[t->n].now = query_store_mark(&st);
		t->v[t->n].known = find_row(t, &t->v[t->n]);
	}
	t->n++;
}

bool query_small_leaves_out(const struct query_small *t, size_t i, uint64_t *first)
{
	if (t->failed || !t->v[i].known)
		return false;
	*first = t->v[i].row.first;
	return !query_small_row_fits(&t->v[i].row, t->want);
}

/* ---- making rows */

static bool can_be_made(const struct entry *e)
{
	return !e->known && e->now.size > 0 && query_store_settled(&e->now);
}

static void make_row(struct query_small *t, struct entry *e, char *data)
{
	int fd = files_open(t->rootfd, e->path, O_RDONLY);
	struct query_mark after;

	if (fd < 0)
		return;
	e->row.mark = e->now;
	if (sys_read_all(fd, data, e->now.size, 0) == 0 &&
	    query_small_row_of(&e->row, data, e->now.size) == 0)
		e->known = query_store_look(fd, &after) && query_store_same(&e->now, &after);
	files_close(&fd);
}

static void add_row(struct buf *out, const struct query_small_row *r)
{
	unsigned char row[QUERY_SMALL_ROW];

	query_small_row_put(row, r);
	buf_add(out, row, sizeof(row));
}

static bool was_added(const struct query_small *t, const unsigned char *row, const uint64_t *sorted,
		      size_t n)
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
static void keep_others(const struct query_small *t, struct buf *out)
{
	uint64_t *inodes = malloc((t->n + 1) * sizeof(*inodes));

	if (inodes == NULL)
		return;
	for (size_t i = 0; i < t->n; i++)
		inodes[i] = t->v[i].now.inode;
	qsort(inodes, t->n, sizeof(*inodes), by_number);
	for (size_t i = 0; i < t->nrows; i++) {
		const unsigned char *row = t->table + i * QUERY_SMALL_ROW;

		if (!was_added(t, row, inodes, t->n))
			buf_add(out, row, QUERY_SMALL_ROW);
	}
	free(inodes);
}

static bool store(const struct query_small *t, int fd)
{
	struct buf out;
	bool fine;

	buf_init(&out, (size_t)ROWS_MAX * QUERY_SMALL_ROW + QUERY_SMALL_HEAD);
	buf_add(&out, MAGIC "\0\0\0\0\0\0\0", QUERY_SMALL_HEAD);
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].known)
			add_row(&out, &t->v[i].row);
	if (!t->all)
		keep_others(t, &out);
	fine = buf_check(&out) == 0;
	if (fine) {
		put64((unsigned char *)out.data + 8,
		      (out.len - QUERY_SMALL_HEAD) / QUERY_SMALL_ROW);
		fine = sys_write_all(fd, out.data, out.len, 0) == 0;
	}
	buf_fini(&out);
	return fine;
}

void query_small_make(struct query_small *t)
{
	struct query_store_new s;
	size_t missing = 0;
	char *data;

	for (size_t i = 0; i < t->n; i++)
		missing += can_be_made(&t->v[i]);
	if (t->failed || missing < QUERY_SMALL_LEAST || t->n > ROWS_MAX || t->want->after != 0 ||
	    !query_cover_pays(t->want) || !query_store_create(&s, t->rootfd, QUERY_SMALL_PATH))
		return;
	data = malloc(QUERY_COVER_LEAST);
	for (size_t i = 0; data != NULL && i < t->n; i++)
		if (can_be_made(&t->v[i]))
			make_row(t, &t->v[i], data);
	if (data == NULL || !store(t, s.fd) || !query_store_put(&s))
		query_store_drop(&s);
	files_close(&s.fd);
	free(data);
}

/* The index of the logs; index.h.
 *
 * Happy path: the head is read (one file), folders whose time of change is the
 * known one are not listed, and only logs that may have grown are looked at:
 * those of runs without an end, and the days. When the last daemon of the
 * root ended in order and the feed has seen that end, logs that rested are not
 * looked at either. What was written since is read and taken apart, line by
 * line, into rows; sorted by lsn they make chunks of columns.
 *
 * Storing: full chunks are appended to the file of rows, which the head names
 * by a number of its own; then the head is replaced. A lock file lets one
 * process do it; others go on with what they have in memory. Nothing is
 * synced: each column and the head bear a CRC32C, and what does not fit it is
 * made anew.
 *
 * What can fail: memory, reading a log. A log that is shorter than its rows,
 * or another file, makes the whole feed anew. Without room or rights nothing
 * is stored. */
#include "journal/index.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/checkpoint.h"
#include "journal/files.h"
#include "journal/read_root.h"

#define MAGIC       "avaindx3"
#define LOCK        "logs/index/lock"
#define HEAD_MAX    ((size_t)4 << 30)
#define STRING_MAX  4096u             /* bytes of an id that are kept */
#define ROWS_MAX    ((size_t)1 << 20) /* rows in memory before they become chunks */
#define BLOCK       ((size_t)256 << 10)
#define STORE_BYTES ((uint64_t)1 << 20) /* read for a question: worth being stored */
#define STORE_FILES 64
#define ROOM_LEAST  ((uint64_t)1 << 30) /* free bytes that storing leaves alone */
#define SETTLED_MS  2000                /* what changed later may change unseen */
#define MAX_FILES   1000000

struct index_head {
	char magic[8];
	uint64_t generation, rows_size, quiet;
	int64_t dir_ns[2];
	uint64_t nfiles, nwhos, nchunks, nrows, nstrings;
	uint32_t sizes; /* of the structs below: another build's are made anew */
	uint32_t crc;   /* of all behind the head, then of the head before here */
};
#define HEAD_SIZES                                                                                 \
	((uint32_t)(sizeof(struct index_file) | sizeof(struct index_who) << 8 |                    \
		    sizeof(struct index_row) << 16) ^                                              \
	 (uint32_t)sizeof(struct index_chunk) << 4)

static const uint8_t column_size[INDEX_NCOLUMNS] = {
	1, 4, 8, 8, 4, 8, 4, 4, sizeof(struct index_cost)};

static void *index_room(void *array, size_t *cap, size_t want, size_t size)
{
	size_t more = *cap == 0 ? 64 : *cap;
	void *grown;

	if (want <= *cap)
		return array;
	while (more < want)
		more *= 2;
	grown = realloc(array, more * size);
	if (grown != NULL)
		*cap = more;
	return grown;
}

#define ROOM(f, field, n)                                                                          \
	({                                                                                         \
		void *room_ = index_room((f)->field, &(f)->field##_cap, n, sizeof(*(f)->field));   \
		if (room_ != NULL)                                                                 \
			(f)->field = room_;                                                        \
		room_ != NULL;                                                                     \
	})

/* ---- strings and whos, each once */

size_t index_string_len(const struct log_index *f, uint32_t at)
{
	uint16_t len;

	memcpy(&len, f->strings + at, sizeof(len));
	return len;
}

static bool slots_grow(uint32_t **slots, size_t *room, size_t n)
{
	if (*room >= 2 * (n + 1))
		return true;
	free(*slots);
	*room = 1024;
	while (*room < 4 * (n + 1))
		*room *= 2;
	*slots = calloc(*room, sizeof(**slots));
	if (*slots == NULL)
		*room = 0;
	return *slots != NULL;
}

static size_t string_slot(const struct log_index *f, const char *s, size_t len)
{
	size_t at = crc32c(0, s, len) & (f->string_room - 1);

	while (f->string_slots[at] != 0 &&
	       (index_string_len(f, f->string_slots[at]) != len ||
		memcmp(index_string(f, f->string_slots[at]), s, len) != 0))
		at = (at + 1) & (f->string_room - 1);
	return at;
}

/* There are less strings than a fourth of their bytes: the table never fills. */
static bool strings_index(struct log_index *f)
{
	if (f->string_room >= f->nstrings / 2 && f->string_room > 0)
		return true;
	if (!slots_grow(&f->string_slots, &f->string_room, f->nstrings / 4))
		return false;
	for (uint32_t at = 0; at < f->nstrings; at += (uint32_t)index_string_len(f, at) + 3)
		if (at > 0)
			f->string_slots[string_slot(f, index_string(f, at),
						    index_string_len(f, at))] = at;
	return true;
}

/* Where the string is; UINT32_MAX: no memory. "" is at 0. */
static uint32_t string_add(struct log_index *f, const char *s, size_t len)
{
	uint16_t length;
	uint32_t at = (uint32_t)f->nstrings;
	size_t slot;

	len = MIN(len, STRING_MAX);
	if (len == 0)
		return 0;
	if (!strings_index(f))
		return UINT32_MAX;
	slot = string_slot(f, s, len);
	if (f->string_slots[slot] != 0)
		return f->string_slots[slot];
	if (f->nstrings + len + 3 > UINT32_MAX / 2 || !ROOM(f, strings, f->nstrings + len + 3))
		return UINT32_MAX;
	length = (uint16_t)len;
	memcpy(f->strings + at, &length, 2);
	memcpy(f->strings + at + 2, s, len);
	f->strings[at + 2 + len] = '\0';
	f->nstrings += len + 3;
	f->string_slots[slot] = at;
	return at;
}

static bool who_same(const struct index_who *a, const struct index_who *b)
{
	return a->agent == b->agent && a->session == b->session && a->trace == b->trace &&
	       a->user == b->user;
}

static size_t who_slot(const struct log_index *f, const struct index_who *w)
{
	size_t at = crc32c(0, w, sizeof(*w)) & (f->who_room - 1);

	while (f->who_slots[at] != 0 && !who_same(&f->whos[f->who_slots[at] - 1], w))
		at = (at + 1) & (f->who_room - 1);
	return at;
}

static uint32_t who_add(struct log_index *f, const struct index_who *w)
{
	size_t slot;

	if (f->who_room < 2 * (f->nwhos + 1)) {
		if (!slots_grow(&f->who_slots, &f->who_room, f->nwhos))
			return UINT32_MAX;
		for (size_t i = 0; i < f->nwhos; i++)
			f->who_slots[who_slot(f, &f->whos[i])] = (uint32_t)i + 1;
	}
	slot = who_slot(f, w);
	if (f->who_slots[slot] != 0)
		return f->who_slots[slot] - 1;
	if (!ROOM(f, whos, f->nwhos + 1))
		return UINT32_MAX;
	f->whos[f->nwhos] = *w;
	f->who_slots[slot] = (uint32_t)++f->nwhos;
	return (uint32_t)f->nwhos - 1;
}

/* ---- what a line says */

static const char *line_meta(const struct event_view *v, const char *key, size_t len)
{
	const char *at = memmem(v->metadata.s, v->metadata.len, key, len);

	return at != NULL ? at + len : NULL;
}

#define META(v, key) line_meta(v, "\"" key "\":", sizeof(key) + 2)

static uint64_t whole_number(const char *s)
{
	uint64_t n = 0;

	for (; s != NULL && *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
			return 0;
	return n;
}

/* Decimal cents with four decimals at the most. */
static uint64_t microusd(const char *s)
{
	uint64_t n = whole_number(s);
	unsigned scale = 1000;

	s += strspn(s, "0123456789");
	if (__builtin_mul_overflow(n, 10000, &n))
		return 0;
	if (*s++ != '.')
		return n;
	for (; *s >= '0' && *s <= '9' && scale > 0; s++, scale /= 10)
		n += (uint64_t)(*s - '0') * scale;
	return n;
}

static struct index_cost line_cost(const struct event_view *v)
{
	const char *cost = META(v, "costCents");

	return (struct index_cost){
		.input = whole_number(META(v, "inputTokens")),
		.output = whole_number(META(v, "outputTokens")),
		.microusd = cost != NULL ? microusd(cost) : 0,
		.unknown = cost == NULL,
	};
}

/* False: no memory. */
static bool row_add(struct log_index *f, uint32_t file, const char *line, size_t len,
		    uint64_t offset)
{
	struct index_file *owner = &f->files[file];
	struct index_row *r;
	struct event_view v;
	struct index_who who;
	const char *model;

	if (!ROOM(f, rows, f->nrows + 1))
		return false;
	r = &f->rows[f->nrows++];
	*r = (struct index_row){.lsn = owner->last_lsn,
				.offset = offset,
				.len = (uint32_t)len,
				.file = file,
				.kind = INDEX_BROKEN};
	owner->flags &= ~(unsigned)INDEX_OVER;
	if (len > INDEX_LINE || event_view(line, len, &v) != 0)
		return true;
	r->lsn = owner->last_lsn = v.lsn;
	r->wall_ms = v.wall_ms;
	r->kind = v.kind >= 0 ? (uint32_t)v.kind : INDEX_OTHER;
	if (v.kind == EVENT_InferEnd)
		r->cost = line_cost(&v);
	if (v.kind == EVENT_SubagentComplete && (owner->flags & INDEX_IS_DAY) == 0)
		owner->flags |= INDEX_OVER;
	who.agent = string_add(f, v.agent_id.s, v.agent_id.len);
	who.session = string_add(f, v.session_id.s, v.session_id.len);
	who.trace = string_add(f, v.trace_id.s, v.trace_id.len);
	who.user = string_add(f, v.user_id.s, v.user_id.len);
	model = META(&v, "modelId");
	if (model != NULL && *model == '"') /* a model's name needs no escape */
		r->model = string_add(f, model + 1, strcspn(model + 1, "\"\n"));
	if (who.agent == UINT32_MAX || who.session == UINT32_MAX || who.trace == UINT32_MAX ||
	    who.user == UINT32_MAX || r->model == UINT32_MAX)
		return false;
	r->who = who_add(f, &who);
	return r->who != UINT32_MAX;
}

/* ---- chunks */

static int row_order(const void *a, const void *b)
{
	const struct index_row *x = a, *y = b;

	if (x->lsn != y->lsn)
		return x->lsn < y->lsn ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static size_t column_bytes(const struct index_chunk *c, unsigned column)
{
	return (size_t)column_size[column] * (column == INDEX_COST ? c->ncosts : c->n);
}

static void put_column(void **columns, unsigned column, size_t i, const struct index_row *r)
{
	switch ((enum index_column)column) {
	case INDEX_KIND:
		((uint8_t *)columns[column])[i] = (uint8_t)r->kind;
		return;
	case INDEX_WHO:
		((uint32_t *)columns[column])[i] = r->who;
		return;
	case INDEX_TIME:
		((int64_t *)columns[column])[i] = r->wall_ms;
		return;
	case INDEX_LSN:
		((uint64_t *)columns[column])[i] = r->lsn;
		return;
	case INDEX_FILE:
		((uint32_t *)columns[column])[i] = r->file;
		return;
	case INDEX_OFFSET:
		((uint64_t *)columns[column])[i] = r->offset;
		return;
	case INDEX_LEN:
		((uint32_t *)columns[column])[i] = r->len;
		return;
	case INDEX_MODEL:
		((uint32_t *)columns[column])[i] = r->model;
		return;
	case INDEX_COST:
	case INDEX_NCOLUMNS:
		return;
	}
}

/* Appends a chunk of memory of these rows, which are in order. False: no memory. */
static bool chunk_add(struct log_index *f, const struct index_row *rows, uint32_t n)
{
	struct index_chunk c = {.n = n,
				.lsn_min = rows[0].lsn,
				.lsn_max = rows[n - 1].lsn,
				.time_min = INT64_MAX,
				.time_max = INT64_MIN};
	void **columns, **grown;
	struct index_cost *costs;
	size_t cap = f->chunks_cap;

	if (!ROOM(f, chunks, f->nchunks + 1))
		return false;
	if (cap != f->chunks_cap || f->columns == NULL) {
		grown = realloc(f->columns, f->chunks_cap * INDEX_NCOLUMNS * sizeof(*grown));
		if (grown == NULL) {
			f->chunks_cap = cap;
			return false;
		}
		f->columns = grown;
	}
	for (uint32_t i = 0; i < n; i++)
		c.ncosts += rows[i].kind == EVENT_InferEnd;
	columns = f->columns + f->nchunks * INDEX_NCOLUMNS;
	memset(columns, 0, INDEX_NCOLUMNS * sizeof(*columns));
	f->nchunks++;
	f->chunks[f->nchunks - 1] = (struct index_chunk){0};
	for (unsigned k = 0; k < INDEX_NCOLUMNS; k++) {
		columns[k] = malloc(column_bytes(&c, k) + 1);
		if (columns[k] == NULL)
			return false;
	}
	costs = columns[INDEX_COST];
	for (uint32_t i = 0; i < n; i++) {
		const struct index_row *r = &rows[i];

		for (unsigned k = 0; k < INDEX_NCOLUMNS; k++)
			put_column(columns, k, i, r);
		if (r->kind == EVENT_InferEnd)
			*costs++ = r->cost;
		c.kinds |= UINT64_C(1) << r->kind;
		c.bytes += r->len + 1;
		if (r->kind != INDEX_BROKEN) {
			c.time_min = MIN(c.time_min, r->wall_ms);
			c.time_max = MAX(c.time_max, r->wall_ms);
		}
	}
	f->chunks[f->nchunks - 1] = c;
	return true;
}

/* Rows that are in no chunk yet into chunks of memory. */
static int chunk_rows(struct log_index *f, struct ava_error *err)
{
	struct index_row *rows = f->rows + f->chunked;
	size_t n = f->nrows - f->chunked;
	bool sorted = true;

	for (size_t i = 1; i < n && sorted; i++)
		sorted = row_order(&rows[i - 1], &rows[i]) < 0;
	if (!sorted)
		qsort(rows, n, sizeof(*rows), row_order);
	for (size_t at = 0; at < n; at += INDEX_CHUNK)
		if (!chunk_add(f, rows + at, (uint32_t)MIN(n - at, INDEX_CHUNK)))
			return err_set(err, AVA_ENOMEM, "no memory for the index");
	f->chunked = f->nrows;
	return 0;
}

const void *index_column(struct log_index *f, size_t chunk, enum index_column column)
{
	void **slot = &f->columns[chunk * INDEX_NCOLUMNS + column];
	const struct index_chunk *c = &f->chunks[chunk];
	uint64_t pos = c->pos;
	size_t len = column_bytes(c, column);
	char *bytes;

	if (*slot != NULL)
		return *slot;
	for (unsigned k = 0; k < column; k++)
		pos += column_bytes(c, k);
	bytes = malloc(len + 1);
	if (bytes == NULL || sys_read_all(f->rowsfd, bytes, len, (off_t)pos) != 0 ||
	    crc32c(0, bytes, len) != c->crc[column]) {
		free(bytes);
		return NULL;
	}
	*slot = bytes;
	return bytes;
}

static void chunk_drop(struct log_index *f, size_t chunk)
{
	for (unsigned k = 0; k < INDEX_NCOLUMNS; k++) {
		free(f->columns[chunk * INDEX_NCOLUMNS + k]);
		f->columns[chunk * INDEX_NCOLUMNS + k] = NULL;
	}
}

void index_release(struct log_index *f, size_t chunk)
{
	if (chunk < f->nstored)
		chunk_drop(f, chunk);
}

/* ---- empty, and from the head */

static void index_reset(struct log_index *f)
{
	for (size_t i = 0; i < f->nchunks; i++)
		chunk_drop(f, i);
	files_close(&f->rowsfd);
	free(f->files);
	free(f->whos);
	free(f->chunks);
	free(f->columns);
	free(f->strings);
	free(f->rows);
	free(f->string_slots);
	free(f->who_slots);
	free(f->file_slots);
	free(f->torn);
	*f = (struct log_index){.rootfd = f->rootfd,
				.rowsfd = -1,
				.scope = f->scope,
				.run = f->run,
				.follow = f->follow};
}

static int index_init(struct log_index *f, struct ava_error *err)
{
	index_reset(f);
	if (!ROOM(f, strings, 64))
		return err_set(err, AVA_ENOMEM, "no memory for the index");
	memset(f->strings, 0, 3); /* "" */
	f->nstrings = 3;
	return 0;
}

static void rows_path(uint64_t generation, char out[64])
{
	snprintf(out, 64, "logs/index/rows-%016llx", (unsigned long long)generation);
}

/* A copy of n elements at *at of the head's bytes. False: no memory. */
static bool head_take(void *array, size_t *count, size_t *cap, size_t n, size_t size,
		      const char **at)
{
	void *copy = malloc(n * size + 64);

	if (copy == NULL)
		return false;
	memcpy(copy, *at, n * size);
	*at += n * size;
	free(*(void **)array);
	*(void **)array = copy;
	*count = n;
	*cap = n;
	return true;
}

static bool head_sound(const struct index_head *h, const char *data, size_t len)
{
	uint64_t want = sizeof(*h);

	if (memcmp(h->magic, MAGIC, 8) != 0 || h->sizes != HEAD_SIZES || h->nfiles > MAX_FILES ||
	    h->nwhos > HEAD_MAX || h->nchunks > HEAD_MAX || h->nrows > HEAD_MAX ||
	    h->nstrings > HEAD_MAX || h->nstrings < 3)
		return false;
	want += h->nfiles * sizeof(struct index_file) + h->nwhos * sizeof(struct index_who) +
		h->nchunks * sizeof(struct index_chunk) + h->nrows * sizeof(struct index_row) +
		h->nstrings;
	return want == len && crc32c(crc32c(0, data + sizeof(*h), len - sizeof(*h)), data,
				     offsetof(struct index_head, crc)) == h->crc;
}

static bool string_sound(const struct log_index *f, uint32_t at)
{
	return (size_t)at + 3 <= f->nstrings && at + 3 + index_string_len(f, at) <= f->nstrings;
}

/* Does nothing point out of it? Checksums keep out accidents; this keeps a
 * head that somebody made out of the memory of others. */
static bool index_sound(const struct log_index *f)
{
	bool sound = index_string_len(f, 0) == 0;

	for (size_t i = 0; i < f->nfiles && sound; i++)
		sound = string_sound(f, f->files[i].path) &&
			index_string_len(f, f->files[i].path) > sizeof(INDEX_DAYS) &&
			index_string(f, f->files[i].path)[index_string_len(f, f->files[i].path)] ==
				0;
	for (size_t i = 0; i < f->nwhos && sound; i++)
		sound = string_sound(f, f->whos[i].agent) && string_sound(f, f->whos[i].session) &&
			string_sound(f, f->whos[i].trace) && string_sound(f, f->whos[i].user);
	for (size_t i = 0; i < f->nchunks && sound; i++)
		sound = f->chunks[i].n <= INDEX_CHUNK && f->chunks[i].ncosts <= f->chunks[i].n;
	for (size_t i = 0; i < f->nrows && sound; i++)
		sound = f->rows[i].kind <= INDEX_BROKEN && f->rows[i].file < f->nfiles &&
			string_sound(f, f->rows[i].model);
	return sound;
}

/* What is stored. False: nothing that can be used; then *f is empty. */
static bool index_load(struct log_index *f)
{
	char *data = NULL, path[64];
	const char *at;
	struct index_head h;
	size_t len, cap;
	struct stat st;

	if (sys_read_file(f->rootfd, INDEX_HEAD, HEAD_MAX, &data, &len, NULL) != 0)
		return false;
	if (len < sizeof(h))
		goto none;
	memcpy(&h, data, sizeof(h));
	if (!head_sound(&h, data, len))
		goto none;
	at = data + sizeof(h);
	if (!head_take(&f->files, &f->nfiles, &f->files_cap, h.nfiles, sizeof(*f->files), &at) ||
	    !head_take(&f->whos, &f->nwhos, &f->whos_cap, h.nwhos, sizeof(*f->whos), &at) ||
	    !head_take(&f->chunks, &f->nchunks, &cap, h.nchunks, sizeof(*f->chunks), &at))
		goto none;
	f->chunks_cap = cap;
	f->nstored = f->nchunks;
	f->columns = calloc(f->nchunks * INDEX_NCOLUMNS + 1, sizeof(*f->columns));
	if (f->columns == NULL)
		goto none;
	if (!head_take(&f->rows, &f->nrows, &f->rows_cap, h.nrows, sizeof(*f->rows), &at) ||
	    !head_take(&f->strings, &f->nstrings, &f->strings_cap, h.nstrings, 1, &at))
		goto none;
	if (!index_sound(f))
		goto none;
	f->generation = h.generation;
	f->rows_size = h.rows_size;
	f->quiet = h.quiet;
	f->loaded_crc = (uint64_t)1 << 32 | h.crc;
	memcpy(f->dir_ns, h.dir_ns, sizeof(f->dir_ns));
	rows_path(f->generation, path);
	f->rowsfd = f->nchunks > 0 ? files_open(f->rootfd, path, O_RDONLY) : -1;
	if (f->nchunks > 0 && (f->rowsfd < 0 || sys->fstat(f->rowsfd, &st) != 0 ||
			       (uint64_t)st.st_size < f->rows_size))
		goto none;
	free(data);
	return true;

none:
	free(data);
	f->nchunks = f->columns == NULL ? 0 : f->nchunks;
	return false;
}

/* ---- storing */

static int head_write(struct log_index *f)
{
	struct index_head h = {.magic = MAGIC,
			       .generation = f->generation,
			       .rows_size = f->rows_size,
			       .quiet = f->quiet,
			       .dir_ns = {f->dir_ns[0], f->dir_ns[1]},
			       .nfiles = f->nfiles,
			       .nwhos = f->nwhos,
			       .nchunks = f->nchunks,
			       .nrows = f->nrows,
			       .nstrings = f->nstrings,
			       .sizes = HEAD_SIZES};
	struct buf b;
	int rv = -1;

	buf_init(&b, HEAD_MAX);
	buf_add(&b, &h, sizeof(h));
	buf_add(&b, f->files, f->nfiles * sizeof(*f->files));
	buf_add(&b, f->whos, f->nwhos * sizeof(*f->whos));
	buf_add(&b, f->chunks, f->nchunks * sizeof(*f->chunks));
	buf_add(&b, f->rows, f->nrows * sizeof(*f->rows));
	buf_add(&b, f->strings, f->nstrings);
	if (buf_check(&b) == 0) {
		h.crc = crc32c(crc32c(0, b.data + sizeof(h), b.len - sizeof(h)), &h,
			       offsetof(struct index_head, crc));
		memcpy(b.data, &h, sizeof(h));
		rv = files_replace(f->rootfd, INDEX_HEAD, b.data, b.len, false);
		f->loaded_crc = (uint64_t)1 << 32 | h.crc;
	}
	buf_fini(&b);
	return rv;
}

/* Chunk `i`, of memory, to the file of rows. */
static bool chunk_store(struct log_index *f, size_t i)
{
	struct index_chunk *c = &f->chunks[i];
	void **columns = &f->columns[i * INDEX_NCOLUMNS];

	c->pos = f->rows_size;
	for (unsigned k = 0; k < INDEX_NCOLUMNS; k++) {
		size_t len = column_bytes(c, k);

		c->crc[k] = crc32c(0, columns[k], len);
		if (sys_write_all(f->rowsfd, columns[k], len, (off_t)f->rows_size) != 0)
			return false;
		f->rows_size += len;
	}
	return true;
}

/* Is what is stored still what was read? */
static bool head_same(const struct log_index *f)
{
	struct index_head h;
	bool same = f->loaded_crc == 0;
	int fd = files_open(f->rootfd, INDEX_HEAD, O_RDONLY);

	if (fd >= 0 && sys_read_all(fd, &h, sizeof(h), 0) == 0)
		same = f->loaded_crc == 0 || f->loaded_crc == ((uint64_t)1 << 32 | h.crc);
	files_close(&fd);
	return same;
}

static void sweep_name(const char *name, void *user)
{
	const struct log_index *f = user;
	char path[64 + FILES_NAME_MAX], ours[64];

	rows_path(f->generation, ours);
	snprintf(path, sizeof(path), "logs/index/%.*s", FILES_NAME_MAX, name);
	if (strcmp(path, INDEX_HEAD) != 0 && strcmp(path, LOCK) != 0 && strcmp(path, ours) != 0)
		sys->unlinkat(f->rootfd, path, 0);
}

/* Sorted rows: full chunks go to the file, the rest into the head. Best effort:
 * what cannot be stored stays in memory, and nothing is stored by this feed
 * any more. Nobody reads its chunks yet. */
static void store_rows(struct log_index *f, bool anew)
{
	size_t at = 0;

	qsort(f->rows, f->nrows, sizeof(*f->rows), row_order);
	while (f->nchunks > f->nstored)
		chunk_drop(f, --f->nchunks);
	f->chunked = 0;
	for (; f->nrows - at >= INDEX_CHUNK; at += INDEX_CHUNK) {
		if (!chunk_add(f, f->rows + at, INDEX_CHUNK))
			break;
		if (!f->in_memory && chunk_store(f, f->nchunks - 1)) {
			chunk_drop(f, f->nchunks - 1);
			f->nstored++;
		} else {
			f->in_memory = true;
		}
	}
	f->nrows -= at;
	memmove(f->rows, f->rows + at, f->nrows * sizeof(*f->rows));
	if (!f->in_memory && head_write(f) == 0 && anew)
		sys->list(f->rootfd, "logs/index", sweep_name, f);
}

static void index_store(struct log_index *f)
{
	char path[64];
	struct statvfs v;
	int lock = f->in_memory ? -1 : files_open(f->rootfd, LOCK, O_RDWR | O_CREAT), fd;
	bool anew = f->nstored == 0;

	if (lock < 0)
		return;
	if (sys->flock(lock, LOCK_EX | LOCK_NB) != 0 || !head_same(f) || fstatvfs(lock, &v) != 0 ||
	    (uint64_t)v.f_bavail * v.f_frsize < ROOM_LEAST)
		goto out;
	if (anew) {
		f->generation = (uint64_t)clock_wall_ms() << 16 | ((uint64_t)getpid() & 0xffff);
		f->rows_size = 0;
	}
	rows_path(f->generation, path);
	fd = files_open(f->rootfd, path, O_RDWR | (anew ? O_CREAT | O_TRUNC : 0));
	if (fd >= 0) {
		files_close(&f->rowsfd);
		f->rowsfd = fd;
		store_rows(f, anew);
	}
out:
	files_close(&lock);
}

void index_forget(int rootfd)
{
	sys->unlinkat(rootfd, INDEX_HEAD, 0);
}

/* ---- files */

static size_t file_slot(const struct log_index *f, uint32_t path)
{
	size_t at = crc32c(0, &path, sizeof(path)) & (f->file_room - 1);

	while (f->file_slots[at] != 0 && f->files[f->file_slots[at] - 1].path != path)
		at = (at + 1) & (f->file_room - 1);
	return at;
}

static bool files_index(struct log_index *f)
{
	if (f->file_room >= 2 * (f->nfiles + 1))
		return true;
	if (!slots_grow(&f->file_slots, &f->file_room, f->nfiles))
		return false;
	for (size_t i = 0; i < f->nfiles; i++)
		f->file_slots[file_slot(f, f->files[i].path)] = (uint32_t)i + 1;
	return true;
}

long index_find_file(struct log_index *f, const char *path)
{
	size_t slot;

	if (!strings_index(f) || !files_index(f))
		return -1;
	slot = string_slot(f, path, strlen(path));
	return f->string_slots[slot] == 0
		       ? -1
		       : (long)f->file_slots[file_slot(f, f->string_slots[slot])] - 1;
}

/* The file of that path, added if need be; -1: no memory. */
static long file_add(struct log_index *f, const char *path, unsigned flags)
{
	long found = index_find_file(f, path);
	uint32_t string;

	if (found >= 0)
		return found;
	string = string_add(f, path, strlen(path));
	if (string == UINT32_MAX || f->nfiles >= MAX_FILES || !ROOM(f, files, f->nfiles + 1))
		return -1;
	f->files[f->nfiles] = (struct index_file){.path = string, .flags = flags};
	f->nfiles++;
	f->added++;
	f->file_room = f->file_room < 2 * (f->nfiles + 1) ? 0 : f->file_room;
	if (f->file_room > 0)
		f->file_slots[file_slot(f, string)] = (uint32_t)f->nfiles;
	return files_index(f) ? (long)f->nfiles - 1 : -1;
}

struct listing {
	struct log_index *feed;
	const char *dir;
	unsigned flags;
	bool *seen; /* of the files that were known before */
	size_t known;
	bool failed;
};

static void list_name(const char *name, void *user)
{
	struct listing *l = user;
	char path[FILES_BUF];
	size_t len = strlen(name);
	long file;

	if (l->failed || len < 7 || len > FILES_NAME_MAX || strcmp(name + len - 6, ".jsonl") != 0)
		return;
	snprintf(path, sizeof(path), "%s/%s", l->dir, name);
	file = file_add(l->feed, path, l->flags);
	l->failed = file < 0;
	if (file >= 0 && (size_t)file < l->known)
		l->seen[file] = true;
}

static int list_dir(struct log_index *f, unsigned which, struct ava_error *err)
{
	struct listing l = {.feed = f,
			    .dir = which == 0 ? INDEX_DAYS : INDEX_RUNS,
			    .flags = which == 0 ? INDEX_IS_DAY : 0,
			    .known = f->nfiles};
	int64_t changed = 0, now = clock_wall_ms();
	struct stat st;

	if (sys->fstatat(f->rootfd, l.dir, &st, 0) == 0)
		changed = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	if (changed != 0 && changed == f->dir_ns[which])
		return 0;
	l.seen = calloc(l.known + 1, sizeof(*l.seen));
	l.failed = l.seen == NULL;
	if (!l.failed && sys->list(f->rootfd, l.dir, list_name, &l) != 0 && errno != ENOENT) {
		free(l.seen);
		return err_sys(err, "list %s", l.dir);
	}
	for (size_t i = 0; i < l.known && !l.failed; i++) {
		if ((f->files[i].flags & INDEX_IS_DAY) != l.flags)
			continue;
		if (!l.seen[i])
			f->files[i].flags |= INDEX_GONE;
		else if ((f->files[i].flags & INDEX_GONE) != 0) /* another of that name */
			f->files[i].covered = UINT64_MAX;
	}
	free(l.seen);
	if (l.failed)
		return err_set(err, AVA_ENOMEM, "%s: too many files for the memory there is",
			       l.dir);
	f->dir_ns[which] = changed / 1000000 + SETTLED_MS < now ? changed : 0;
	return 0;
}

/* S-x.jsonl, then S-x.2.jsonl and so on; the next number is asked for until
 * one is missing, so that a folder of a hundred thousand runs is not listed.
 * The first may be gone: a file that a person removed is never made again. */
static int list_run(struct log_index *f, struct ava_error *err)
{
	char base[64], path[FILES_BUF];
	struct stat st;

	snprintf(base, sizeof(base), INDEX_RUNS "/%s.jsonl", f->run);
	for (unsigned part = MAX(f->part, 1u);; part++) {
		files_part_name(base, part, path);
		if (sys->fstatat(f->rootfd, path, &st, 0) != 0) {
			if (errno != ENOENT)
				return err_sys(err, "%s", path);
			if (part == 1)
				continue;
			return 0;
		}
		if (file_add(f, path, 0) < 0)
			return err_set(err, AVA_ENOMEM, "no memory to read %s", path);
		f->first_gone = f->first_gone || (f->part == 0 && part > 1);
		f->part = part + 1;
	}
}

/* ---- lines */

struct scan {
	int fd;
	char *data; /* owned; [from, to) stand at `offset` of the file */
	size_t cap, from, to;
	uint64_t offset;
	bool skipping; /* inside a line that is over INDEX_LINE */
};

static int scan_fill(struct scan *s, uint64_t end)
{
	uint64_t at = s->offset + (s->to - s->from);
	ssize_t n;

	if (s->from > 0) {
		memmove(s->data, s->data + s->from, s->to - s->from);
		s->to -= s->from;
		s->from = 0;
	}
	if (s->to == s->cap) {
		size_t cap = s->cap > 0 ? s->cap * 2 : BLOCK;
		char *more = realloc(s->data, cap);

		if (more == NULL)
			return AVA_ENOMEM;
		s->data = more;
		s->cap = cap;
	}
	if (at >= end)
		return 0;
	do
		n = sys->pread(s->fd, s->data + s->to, (size_t)MIN(s->cap - s->to, end - at),
			       (off_t)at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return AVA_EIO;
	s->to += (size_t)n;
	return n > 0;
}

/* Lines up to `end` into rows; what is behind the last newline stays. */
static int scan_lines(struct log_index *f, uint32_t file, struct scan *s, uint64_t end)
{
	size_t seen = 0;
	int rv;

	for (;;) {
		const char *line = s->data + s->from;
		const char *nl = s->to > s->from + seen
					 ? memchr(line + seen, '\n', s->to - s->from - seen)
					 : NULL;

		if (nl == NULL) {
			seen = s->to - s->from;
			if (seen > INDEX_LINE) { /* told once, with its beginning */
				if (!s->skipping &&
				    !row_add(f, file, "", INDEX_LINE + 1, s->offset))
					return AVA_ENOMEM;
				s->skipping = true;
				s->offset += seen;
				s->from = s->to;
				seen = 0;
			}
			rv = scan_fill(s, end);
			if (rv <= 0)
				return rv;
			continue;
		}
		if (!s->skipping && !row_add(f, file, line, (size_t)(nl - line), s->offset))
			return AVA_ENOMEM;
		s->skipping = false;
		s->offset += (size_t)(nl + 1 - line);
		s->from += (size_t)(nl + 1 - line);
		seen = 0;
	}
}

static int torn_add(struct log_index *f, uint32_t file, uint64_t at, uint32_t len)
{
	struct index_torn *grown = realloc(f->torn, (f->ntorn + 1) * sizeof(*grown));

	if (grown == NULL)
		return AVA_ENOMEM;
	f->torn = grown;
	f->torn[f->ntorn++] = (struct index_torn){file, len, at};
	return 0;
}

static int open_file(struct log_index *f, const char *path, struct stat *st, struct ava_error *err)
{
	/* NONBLOCK: opening a fifo must not wait for its writer. */
	int fd = sys->openat(f->rootfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
	int rv = 0;

	if (fd < 0)
		return err_sys(err, "%s", path);
	if (sys->fstat(fd, st) != 0)
		rv = err_sys(err, "%s", path);
	else if (!S_ISREG(st->st_mode))
		rv = err_set(err, AVA_EIO, "%s: not a regular file", path);
	if (rv != 0)
		files_close(&fd);
	return rv != 0 ? rv : fd;
}

/* What was written behind what is covered. */
static int scan_file(struct log_index *f, uint32_t file, struct ava_error *err)
{
	char path[FILES_BUF];
	struct index_file *own = &f->files[file];
	struct scan s = {.offset = own->covered};
	struct stat st;
	uint64_t end;
	int rv;

	snprintf(path, sizeof(path), "%s", index_string(f, own->path));
	s.fd = open_file(f, path, &st, err);
	if (s.fd < 0)
		return s.fd == AVA_ENOENT ? 0 : s.fd;
	end = (uint64_t)st.st_size;
	for (int tries = 0;; tries++) {
		rv = scan_lines(f, file, &s, end);
		/* Perhaps its writer is at it: the bytes of one write. */
		if (rv != 0 || s.to == s.from || f->follow || tries == 10)
			break;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		end += 65536;
	}
	own = &f->files[file];
	f->scanned += s.offset - own->covered;
	own->covered = s.offset;
	own->inode = (uint64_t)st.st_ino;
	own->flags &= ~(unsigned)(INDEX_RESTED | INDEX_GONE);
	if ((int64_t)st.st_mtim.tv_sec * 1000 + SETTLED_MS < clock_wall_ms())
		own->flags |= INDEX_RESTED;
	if (rv == 0 && s.to > s.from) {
		own->flags &= ~(unsigned)(INDEX_OVER | INDEX_RESTED);
		rv = torn_add(f, file, s.offset, (uint32_t)(s.to - s.from));
	}
	if (rv == AVA_ENOMEM)
		err_set(err, rv, "%s: no memory to read it", path);
	else if (rv != 0)
		err_sys(err, "%s: read", path);
	free(s.data);
	sys->close(s.fd);
	return rv;
}

enum { LOOK_ANEW = 1 }; /* what the feed tells of is not there any more */

static int look_file(struct log_index *f, uint32_t file, struct ava_error *err)
{
	struct index_file *own = &f->files[file];
	struct stat st;
	uint64_t was = own->covered;

	if (sys->fstatat(f->rootfd, index_string(f, own->path), &st, 0) != 0) {
		if (errno != ENOENT)
			return err_sys(err, "%s", index_string(f, own->path));
		own->flags |= INDEX_GONE;
		return 0;
	}
	if (was > 0 && ((uint64_t)st.st_size < was || (uint64_t)st.st_ino != own->inode)) {
		if (!f->follow)
			return LOOK_ANEW;
		own->covered = (uint64_t)st.st_ino != own->inode ? 0 : (uint64_t)st.st_size;
		own->inode = (uint64_t)st.st_ino;
		return err_set(err, AVA_ECORRUPT,
			       "%s:%llu: the file was cut to %llu bytes while it was read",
			       index_string(f, own->path), (unsigned long long)was,
			       (unsigned long long)st.st_size);
	}
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size == was) {
		own->flags |= (int64_t)st.st_mtim.tv_sec * 1000 + SETTLED_MS < clock_wall_ms()
				      ? INDEX_RESTED
				      : 0;
		own->inode = (uint64_t)st.st_ino;
		return 0;
	}
	return scan_file(f, file, err);
}

/* Has the daemon that wrote last ended in order, and which end was it? 0: it
 * has not, or one is at work; 1: there never was one. */
static uint64_t quiet_end(int rootfd)
{
	struct stat st;
	char *text = NULL;
	uint64_t end = 0;
	size_t len;

	if (sys->fstatat(rootfd, "wal", &st, 0) != 0)
		return 1;
	if (read_is_clean(rootfd) &&
	    sys_read_file(rootfd, CHECKPOINT_PATH, (size_t)64 << 20, &text, &len, NULL) == 0)
		end = (uint64_t)2 << 32 | crc32c(0, text, len);
	free(text);
	return end;
}

static bool look_all_files(const struct log_index *f, const struct index_file *file, bool quiet)
{
	if ((file->flags & INDEX_IS_DAY) == 0 && f->scope == INDEX_OF_DAYS)
		return false;
	if ((file->flags & INDEX_GONE) != 0)
		return file->covered == UINT64_MAX;
	return (file->flags & INDEX_OVER) == 0 && (!quiet || (file->flags & INDEX_RESTED) == 0);
}

static int look_all(struct log_index *f, struct ava_error *err)
{
	uint64_t end = f->scope == INDEX_OF_RUN ? 0 : quiet_end(f->rootfd);
	bool quiet = end != 0 && end == f->quiet && !f->follow;
	int rv = 0;

	f->ntorn = 0;
	if (f->scope == INDEX_OF_RUN)
		rv = list_run(f, err);
	else
		rv = list_dir(f, 0, err);
	if (rv == 0 && f->scope == INDEX_OF_ALL)
		rv = list_dir(f, 1, err);
	for (size_t i = 0; i < f->nfiles && rv == 0; i++) {
		if (!look_all_files(f, &f->files[i], quiet))
			continue;
		rv = look_file(f, (uint32_t)i, err);
		if (rv == 0 && f->nrows >= ROWS_MAX && !f->follow) { /* a bound for memory */
			rv = chunk_rows(f, err);
			if (rv == 0 && f->scope == INDEX_OF_ALL)
				index_store(f);
			if (rv == 0 && f->nrows > 0 && f->chunked == f->nrows) {
				f->nrows = f->chunked = 0;
				f->in_memory = true;
			}
		}
	}
	if (rv == 0)
		f->quiet = end;
	return rv;
}

int index_look(struct log_index *f, long file, struct ava_error *err)
{
	int rv = file >= 0 ? look_file(f, (uint32_t)file, err) : look_all(f, err);
	int chunks = chunk_rows(f, err);

	return rv != 0 ? rv : chunks;
}

void index_consumed(struct log_index *f)
{
	while (f->nchunks > 0)
		chunk_drop(f, --f->nchunks);
	f->nrows = f->chunked = f->nstored = 0;
	f->in_memory = true;
}

int index_open(struct log_index **out, int rootfd, enum index_scope scope, const char *run,
	       bool anew, struct ava_error *err)
{
	struct log_index *f = calloc(1, sizeof(*f));
	uint64_t was;
	int rv;

	*out = NULL;
	if (f == NULL)
		return err_set(err, AVA_ENOMEM, "no memory for the index");
	*f = (struct log_index){.rootfd = rootfd, .rowsfd = -1, .scope = scope, .run = run};
	rv = index_init(f, err);
	if (anew)
		index_forget(rootfd);
	if (rv == 0 && !anew && scope != INDEX_OF_RUN && !index_load(f))
		rv = index_init(f, err);
	was = f->quiet;
	if (rv == 0)
		rv = look_all(f, err);
	if (rv == LOOK_ANEW) {
		index_forget(rootfd);
		rv = index_init(f, err);
		was = 0;
		if (rv == 0)
			rv = look_all(f, err);
		if (rv == LOOK_ANEW)
			rv = err_set(err, AVA_EIO, "logs change while they are read: try again");
	}
	if (rv == 0 && scope == INDEX_OF_ALL &&
	    (anew || f->scanned >= STORE_BYTES || f->added >= STORE_FILES ||
	     (f->nfiles >= STORE_FILES && f->quiet != 0 && f->quiet != was)))
		index_store(f);
	if (rv == 0)
		rv = chunk_rows(f, err);
	if (rv != 0) {
		index_close(f);
		return rv;
	}
	*out = f;
	return 0;
}

void index_close(struct log_index *f)
{
	if (f == NULL)
		return;
	index_reset(f);
	free(f);
}

/* The index of the logs: its rows, and how they are stored; index.h.
 *
 * Happy path: the head is read, one file. Added rows are sorted by lsn and make chunks of
 * columns in memory; storing appends full chunks to the file of rows, which the head names by a
 * number, and replaces the head. A lock file lets one process store; others go on in memory.
 * Nothing is synced: each column and the head bear a CRC32C, and a mismatch makes the index
 * anew.
 *
 * What can fail: memory. Without room or rights nothing is stored. */
#include "journal/index.h"

#include <ava.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/files.h"

#define MAGIC      "avaindx5"
#define LOCK       "logs/index/lock"
#define HEAD_MAX   ((size_t)4 << 30)
#define STRING_MAX 4096u               /* bytes of an id that are kept */
#define ROOM_LEAST ((uint64_t)1 << 30) /* free bytes that storing leaves alone */
#define MAX_FILES  1000000

struct index_head {
	char magic[8];
	uint64_t generation, rows_size, quiet;
	int64_t dir_ns[2];
	uint64_t nfiles, nwhos, nchunks, nrows, nstrings;
	uint32_t sizes; /* sizes of the structs below: another build's head is made anew */
	uint32_t crc;   /* checksum of the bytes behind the head, then of the head up to here */
};
#define HEAD_SIZES                                                                                 \
	((uint32_t)(sizeof(struct index_file) | sizeof(struct index_who) << 8 |                    \
		    sizeof(struct index_row) << 16) ^                                              \
	 (uint32_t)sizeof(struct index_chunk) << 4)

static const struct {
	uint8_t size, at; /* at: place of the member in a row */
} columns_of[INDEX_NCOLUMNS] = {
#define COLUMN(member)                                                                             \
	{                                                                                          \
		sizeof(((struct index_row *)0)->member), offsetof(struct index_row, member)        \
	}
	[INDEX_KIND] = COLUMN(kind), [INDEX_WHO] = COLUMN(who),     [INDEX_TIME] = COLUMN(wall_ms),
	[INDEX_LSN] = COLUMN(lsn),   [INDEX_FILE] = COLUMN(file),   [INDEX_OFFSET] = COLUMN(offset),
	[INDEX_LEN] = COLUMN(len),   [INDEX_MODEL] = COLUMN(model), [INDEX_COST] = COLUMN(cost),
};

/* ---- strings and whos, each once */

size_t index_string_len(const struct log_index *f, uint32_t at)
{
	uint16_t len;

	memcpy(&len, f->strings + at, sizeof(len));
	return len;
}

static bool slots_grow(struct index_slots *slots, size_t n)
{
	free(slots->v);
	slots->room = 1024;
	while (slots->room < 4 * (n + 1))
		slots->room *= 2;
	slots->v = calloc(slots->room, sizeof(*slots->v));
	if (slots->v == NULL)
		slots->room = 0;
	return slots->v != NULL;
}

static size_t string_slot(const struct log_index *f, const char *s, size_t len)
{
	size_t at = crc32c(0, s, len) & (f->string_slots.room - 1);

	while (f->string_slots.v[at] != 0 &&
	       (index_string_len(f, f->string_slots.v[at]) != len ||
		memcmp(index_string(f, f->string_slots.v[at]), s, len) != 0))
		at = (at + 1) & (f->string_slots.room - 1);
	return at;
}

/* There are fewer strings than a fourth of their bytes: the table never fills. */
static bool strings_index(struct log_index *f)
{
	if (f->string_slots.room >= f->nstrings / 2 && f->string_slots.room > 0)
		return true;
	if (!slots_grow(&f->string_slots, f->nstrings / 4))
		return false;
	for (uint32_t at = 0; at < f->nstrings; at += (uint32_t)index_string_len(f, at) + 3)
		if (at > 0)
			f->string_slots
				.v[string_slot(f, index_string(f, at), index_string_len(f, at))] =
				at;
	return true;
}

/* Offset of the string, added if need be; UINT32_MAX: no memory. "" is at 0. */
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
	if (f->string_slots.v[slot] != 0)
		return f->string_slots.v[slot];
	if (f->nstrings + len + 3 > UINT32_MAX / 2 ||
	    !ARRAY_ROOM(f->strings, f->strings_cap, f->nstrings + len + 3))
		return UINT32_MAX;
	length = (uint16_t)len;
	memcpy(f->strings + at, &length, 2);
	memcpy(f->strings + at + 2, s, len);
	f->strings[at + 2 + len] = '\0';
	f->nstrings += len + 3;
	f->string_slots.v[slot] = at;
	return at;
}

static size_t who_slot(const struct log_index *f, const struct index_who *w)
{
	size_t at = crc32c(0, w, sizeof(*w)) & (f->who_slots.room - 1);

	while (f->who_slots.v[at] != 0 &&
	       memcmp(&f->whos[f->who_slots.v[at] - 1], w, sizeof(*w)) != 0)
		at = (at + 1) & (f->who_slots.room - 1);
	return at;
}

static uint32_t who_add(struct log_index *f, const struct index_who *w)
{
	size_t slot;

	if (f->who_slots.room < 2 * (f->nwhos + 1)) {
		if (!slots_grow(&f->who_slots, f->nwhos))
			return UINT32_MAX;
		for (size_t i = 0; i < f->nwhos; i++)
			f->who_slots.v[who_slot(f, &f->whos[i])] = (uint32_t)i + 1;
	}
	slot = who_slot(f, w);
	if (f->who_slots.v[slot] != 0)
		return f->who_slots.v[slot] - 1;
	if (!ARRAY_ROOM(f->whos, f->whos_cap, f->nwhos + 1))
		return UINT32_MAX;
	f->whos[f->nwhos] = *w;
	f->who_slots.v[slot] = (uint32_t)++f->nwhos;
	return (uint32_t)f->nwhos - 1;
}

/* ---- what a line says */

/* Behind the key: within a string its quotes would be escaped. */
static const char *line_number(const char *s, size_t len, const char *key)
{
	const char *at = memmem(s, len, key, strlen(key));

	return at != NULL ? at + strlen(key) : NULL;
}

#define META(v, key) line_number((v)->metadata.s, (v)->metadata.len, "\"" key "\":")

static uint64_t whole_number(const char *s)
{
	uint64_t n = 0;

	for (; s != NULL && *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
			return 0;
	return n;
}

/* Decimal cents with at most four decimals. */
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

/* False: no memory. */
bool index_row_add(struct log_index *f, uint32_t file, const char *line, size_t len,
		   uint64_t offset)
{
	struct index_file *owner = &f->files[file];
	struct index_row *r;
	struct event_view v;
	struct index_who who;
	const char *model, *cost;

	if (!ARRAY_ROOM(f->rows, f->rows_cap, f->nrows + 1))
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
	if (v.kind == EVENT_InferEnd) {
		cost = META(&v, "costCents");
		r->cost.input = whole_number(META(&v, "inputTokens"));
		r->cost.output = whole_number(META(&v, "outputTokens"));
		r->cost.microusd = cost != NULL ? microusd(cost) : 0;
		r->cost.unknown = cost == NULL;
		r->cost.cached =
			whole_number(line_number(v.content.s, v.content.len, "\"cacheRead\":"));
	}
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
	int order = order_of(x->lsn, y->lsn);

	order = order != 0 ? order : order_of(x->file, y->file);
	return order != 0 ? order : order_of(x->offset, y->offset);
}

static size_t column_bytes(const struct index_chunk *c, unsigned column)
{
	return (size_t)columns_of[column].size * (column == INDEX_COST ? c->ncosts : c->n);
}

/* Bytes of a number of the column: a cost is five of them. */
static size_t number_bytes(unsigned column)
{
	return MIN(columns_of[column].size, sizeof(uint64_t));
}

/* Bytes of a column in the file of rows: its least number, then what each is above that. */
static size_t stored_bytes(const struct index_chunk *c, unsigned column)
{
	size_t n = column_bytes(c, column) / number_bytes(column);

	return n == 0 ? 0 : sizeof(uint64_t) + n * c->width[column];
}

/* Append the column to `out` as it is stored. */
static void column_pack(struct index_chunk *c, unsigned column, const char *from, struct buf *out)
{
	size_t size = number_bytes(column), n = column_bytes(c, column) / size;
	uint64_t least = UINT64_MAX, most = 0, v = 0;
	char *to;

	for (size_t i = 0; i < n; i++) {
		memcpy(&v, from + i * size, size);
		least = MIN(least, v);
		most = MAX(most, v);
	}
	c->width[column] = most > least ? (uint8_t)((71 - __builtin_clzll(most - least)) / 8) : 0;
	least = c->width[column] == size ? 0 : least;
	to = buf_reserve(out, stored_bytes(c, column) + sizeof(v));
	if (n == 0 || to == NULL)
		return;
	memcpy(to, &least, sizeof(least));
	to += sizeof(least);
	for (size_t i = 0; i < n; i++, to += c->width[column]) {
		memcpy(&v, from + i * size, size);
		v -= least;
		memcpy(to, &v, sizeof(v)); /* what is too much is written over */
	}
	out->len += stored_bytes(c, column);
	out->data[out->len] = 0;
}

/* A constant size makes moves of the copies, not calls. */
static inline void numbers_unpack(char *to, size_t size, size_t n, const char *from, size_t width)
{
	uint64_t least, v, mask = width > 0 ? UINT64_MAX >> (64 - 8 * width) : 0;

	memcpy(&least, from, sizeof(least));
	from += sizeof(least);
	for (size_t i = 0; i < n; i++) {
		memcpy(&v, from + i * width, sizeof(v));
		v = (v & mask) + least;
		memcpy(to + i * size, &v, size);
	}
}

/* The numbers of a stored column; eight bytes behind it can be read. */
static void column_unpack(const struct index_chunk *c, unsigned column, const char *from, char *to)
{
	size_t size = number_bytes(column), n = column_bytes(c, column) / size;
	size_t width = c->width[column];

	if (width == size) /* as they are: above 0 */
		memcpy(to, from + sizeof(uint64_t), n * size);
	else if (size == 4 && width == 2)
		numbers_unpack(to, 4, n, from, 2);
	else if (size == 4)
		numbers_unpack(to, 4, n, from, width);
	else if (size == 8)
		numbers_unpack(to, 8, n, from, width);
	else
		numbers_unpack(to, 1, n, from, width);
}

/* Copy one column out of rows; of costs only those that exist. */
static void put_column(char *column, enum index_column which, const struct index_row *rows,
		       uint32_t n)
{
	size_t size = columns_of[which].size;

	for (uint32_t i = 0; i < n; i++) {
		const char *from = (const char *)&rows[i] + columns_of[which].at;

		if (which == INDEX_COST && rows[i].kind != EVENT_InferEnd)
			continue;
		switch (size) { /* constant sizes compile to moves, not to calls */
		case 1:
			memcpy(column, from, 1);
			break;
		case 4:
			memcpy(column, from, 4);
			break;
		case 8:
			memcpy(column, from, 8);
			break;
		default:
			memcpy(column, from, size);
			break;
		}
		column += size;
	}
}

/* Append a chunk of these rows, which are in order, in memory. False: no memory. */
static bool chunk_add(struct log_index *f, const struct index_row *rows, uint32_t n)
{
	struct index_chunk c = {.n = n,
				.lsn_min = rows[0].lsn,
				.lsn_max = rows[n - 1].lsn,
				.time_min = INT64_MAX,
				.time_max = INT64_MIN};
	void **columns, **grown;
	size_t cap = f->chunks_cap;

	if (!ARRAY_ROOM(f->chunks, f->chunks_cap, f->nchunks + 1))
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
		put_column(columns[k], (enum index_column)k, rows, n);
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct index_row *r = &rows[i];

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

/* Make chunks in memory of rows that are in no chunk yet. */
int index_chunk_rows(struct log_index *f, struct ava_error *err)
{
	size_t n = f->nrows - f->chunked;
	struct index_row *rows = n > 0 ? f->rows + f->chunked : NULL;
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
	size_t len = stored_bytes(c, column);
	char *stored, *bytes = NULL;

	if (*slot != NULL)
		return *slot;
	for (unsigned k = 0; k < column; k++)
		pos += stored_bytes(c, k);
	stored = malloc(len + 2 * sizeof(uint64_t));
	if (stored != NULL && sys_read_all(f->rowsfd, stored, len, (off_t)pos) == 0 &&
	    crc32c(0, stored, len) == c->crc[column])
		bytes = malloc(column_bytes(c, column) + 1);
	if (bytes != NULL)
		column_unpack(c, column, stored, bytes);
	free(stored);
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

void index_reset(struct log_index *f)
{
	struct log_index kept = {.rootfd = f->rootfd,
				 .rowsfd = -1,
				 .scope = f->scope,
				 .run = f->run,
				 .follow = f->follow,
				 .bounds = f->bounds};

	for (size_t i = 0; i < f->nchunks; i++)
		chunk_drop(f, i);
	files_close(&f->rowsfd);
	free(f->files);
	free(f->whos);
	free(f->chunks);
	free(f->columns);
	free(f->strings);
	free(f->rows);
	free(f->string_slots.v);
	free(f->who_slots.v);
	free(f->file_slots.v);
	free(f->torn);
	*f = kept;
}

int index_init(struct log_index *f, struct ava_error *err)
{
	index_reset(f);
	if (!ARRAY_ROOM(f->strings, f->strings_cap, 64))
		return err_set(err, AVA_ENOMEM, "no memory for the index");
	memset(f->strings, 0, 3); /* the first string is "" */
	f->nstrings = 3;
	return 0;
}

static void rows_path(uint64_t generation, char out[64])
{
	snprintf(out, 64, "logs/index/rows-%016llx", (unsigned long long)generation);
}

/* Read the next section of the head into an array of its own. False: no memory, or the head is
 * cut. */
static bool head_take(void *array, size_t *count, size_t *cap, uint64_t n, size_t size, int fd,
		      uint64_t *at, uint32_t *crc)
{
	void *bytes = n <= HEAD_MAX / size ? malloc(n * size + 64) : NULL;

	if (bytes == NULL)
		return false;
	free(*(void **)array);
	*(void **)array = bytes;
	if (sys_read_all(fd, bytes, n * size, (off_t)*at) != 0)
		return false;
	*crc = crc32c(*crc, bytes, n * size);
	*at += n * size;
	*count = *cap = n;
	return true;
}

#define TAKE(field)                                                                                \
	head_take(&f->field, &f->n##field, &f->field##_cap, h.n##field, sizeof(*f->field), fd,     \
		  &at, &crc)

static bool string_sound(const struct log_index *f, uint32_t at)
{
	return (size_t)at + 3 <= f->nstrings && at + 3 + index_string_len(f, at) <= f->nstrings;
}

/* Do all references stay inside? Checksums only detect accidents; a forged head must not reach
 * the memory of others. */
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
	for (size_t i = 0; i < f->nchunks && sound; i++) {
		sound = f->chunks[i].n <= INDEX_CHUNK && f->chunks[i].ncosts <= f->chunks[i].n;
		for (unsigned k = 0; k < INDEX_NCOLUMNS; k++)
			sound = sound && f->chunks[i].width[k] <= number_bytes(k);
	}
	for (size_t i = 0; i < f->nrows && sound; i++)
		sound = f->rows[i].kind <= INDEX_BROKEN && f->rows[i].file < f->nfiles &&
			string_sound(f, f->rows[i].model);
	return sound;
}

/* Load the stored index. False: nothing usable. */
bool index_load(struct log_index *f)
{
	int fd = files_open(f->rootfd, INDEX_HEAD, O_RDONLY);
	struct index_head h;
	uint64_t at = sizeof(h);
	uint32_t crc = 0;
	bool sound = fd >= 0 && sys_read_all(fd, &h, sizeof(h), 0) == 0 &&
		     memcmp(h.magic, MAGIC, 8) == 0 && h.sizes == HEAD_SIZES &&
		     h.nfiles <= MAX_FILES && h.nstrings >= 3 && TAKE(files) && TAKE(whos);
	char path[64];
	struct stat st;

	if (sound) {
		f->columns = calloc(h.nchunks * INDEX_NCOLUMNS + 1, sizeof(*f->columns));
		sound = f->columns != NULL && TAKE(chunks) && TAKE(rows) && TAKE(strings) &&
			sys->fstat(fd, &st) == 0 && (uint64_t)st.st_size == at &&
			crc32c(crc, &h, offsetof(struct index_head, crc)) == h.crc &&
			index_sound(f);
	}
	files_close(&fd);
	if (!sound)
		return false;
	for (size_t i = 0; i < f->nfiles; i++)
		f->files[i].flags &= ~(unsigned)INDEX_UNREAD;
	f->nstored = f->nchunks;
	f->generation = h.generation;
	f->rows_size = h.rows_size;
	f->quiet = h.quiet;
	f->loaded_crc = (uint64_t)1 << 32 | h.crc;
	memcpy(f->dir_ns, h.dir_ns, sizeof(f->dir_ns));
	if (f->nchunks == 0)
		return true;
	rows_path(f->generation, path);
	f->rowsfd = files_open(f->rootfd, path, O_RDONLY);
	return f->rowsfd >= 0 && sys->fstat(f->rowsfd, &st) == 0 &&
	       (uint64_t)st.st_size >= f->rows_size;
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

/* Append chunk `i`, in memory until now, to the file of rows. */
static bool chunk_store(struct log_index *f, size_t i)
{
	struct index_chunk *c = &f->chunks[i];
	void **columns = &f->columns[i * INDEX_NCOLUMNS];
	struct buf b;
	bool stored;

	buf_init(&b, HEAD_MAX);
	for (unsigned k = 0; k < INDEX_NCOLUMNS; k++) {
		size_t at = b.len;

		column_pack(c, k, columns[k], &b);
		c->crc[k] = crc32c(0, b.len > at ? b.data + at : "", b.len - at);
	}
	stored = buf_check(&b) == 0 &&
		 sys_write_all(f->rowsfd, b.data, b.len, (off_t)f->rows_size) == 0;
	c->pos = f->rows_size;
	f->rows_size += stored ? b.len : 0;
	buf_fini(&b);
	return stored;
}

/* Is the stored head still the one that was read? */
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

/* Store sorted rows: full chunks to the file, the rest into the head. Best effort: on failure
 * rows stay in memory, and this feed stores nothing any more. Nobody reads its chunks yet. */
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

void index_store(struct log_index *f)
{
	char path[64];
	struct statvfs v;
	struct stat st;
	/* Another user's root is only read: its own daemon could not write our files. */
	bool ours = sys->fstat(f->rootfd, &st) == 0 && st.st_uid == geteuid();
	int lock = f->in_memory || !ours ? -1 : files_open(f->rootfd, LOCK, O_RDWR | O_CREAT), fd;
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

/* ---- files by their path */

static size_t file_slot(const struct log_index *f, uint32_t path)
{
	size_t at = crc32c(0, &path, sizeof(path)) & (f->file_slots.room - 1);

	while (f->file_slots.v[at] != 0 && f->files[f->file_slots.v[at] - 1].path != path)
		at = (at + 1) & (f->file_slots.room - 1);
	return at;
}

static bool files_index(struct log_index *f)
{
	if (f->file_slots.room >= 2 * (f->nfiles + 1))
		return true;
	if (!slots_grow(&f->file_slots, f->nfiles))
		return false;
	for (size_t i = 0; i < f->nfiles; i++)
		f->file_slots.v[file_slot(f, f->files[i].path)] = (uint32_t)i + 1;
	return true;
}

long index_find_file(struct log_index *f, const char *path)
{
	size_t slot;

	if (!strings_index(f) || !files_index(f))
		return -1;
	slot = string_slot(f, path, strlen(path));
	return f->string_slots.v[slot] == 0
		       ? -1
		       : (long)f->file_slots.v[file_slot(f, f->string_slots.v[slot])] - 1;
}

/* The file of this path, added if need be; -1: no memory. */
long index_file_add(struct log_index *f, const char *path, unsigned flags)
{
	long found = index_find_file(f, path);
	uint32_t string;

	if (found >= 0)
		return found;
	string = string_add(f, path, strlen(path));
	if (string == UINT32_MAX || f->nfiles >= MAX_FILES ||
	    !ARRAY_ROOM(f->files, f->files_cap, f->nfiles + 1))
		return -1;
	f->files[f->nfiles] = (struct index_file){.path = string, .flags = flags};
	f->nfiles++;
	f->added++;
	f->file_slots.room = f->file_slots.room < 2 * (f->nfiles + 1) ? 0 : f->file_slots.room;
	if (f->file_slots.room > 0)
		f->file_slots.v[file_slot(f, string)] = (uint32_t)f->nfiles;
	return files_index(f) ? (long)f->nfiles - 1 : -1;
}

void index_consumed(struct log_index *f)
{
	while (f->nchunks > 0)
		chunk_drop(f, --f->nchunks);
	f->nrows = f->chunked = f->nstored = 0;
	f->in_memory = true;
}

/* The file of a block index; query_store.h.
 *
 * Happy path: the log is cut into chunks at the first newline behind each
 * 4 MB; a crew reads them, and makes or check what the index has of them.
 *
 * What can fail: reading, writing, memory, a line so long that a chunk would
 * not end: what is there by then stays, the rest of the log has no index. */
#include "journal/query_store.h"

#include <ava.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/crew.h"
#include "base/hash.h"
#include "base/le.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/query_build.h"

#define MAGIC      "avaindx2"
#define CRC_AT     (QUERY_STORE_HEAD - 4)
#define CHUNKS_MAX 65536                   /* 256 GB of a log */
#define CHUNK_MAX  (4 * QUERY_INDEX_CHUNK) /* bytes, when its last line is long */
#define MADE_MAX   (2 * CHUNK_MAX)         /* bytes of an index's chunk */
#define BATCH      32                      /* chunks that are made before they are written */
#define ROOM_LEAST (UINT64_C(1) << 30)     /* bytes free, to store an index */
#define NS         1000000000u
#define COPY       ((size_t)1 << 20)

bool query_store_head_get(const unsigned char *p, struct query_mark *mark, uint32_t *chunks)
{
	*mark = (struct query_mark){0};
	if (memcmp(p, MAGIC, 8) != 0 || get32(p + CRC_AT) != crc32c(0, p, CRC_AT))
		return false;
	*mark = (struct query_mark){get64(p + 8), get64(p + 16), get64(p + 24), get64(p + 32)};
	*chunks = (uint32_t)get64(p + 40);
	return *chunks <= CHUNKS_MAX;
}

void query_store_head_put(unsigned char *p, const struct query_mark *mark, uint32_t chunks)
{
	memset(p, 0, QUERY_STORE_HEAD);
	memcpy(p, MAGIC, 8);
	put64(p + 8, mark->inode);
	put64(p + 16, mark->ctime_ns);
	put64(p + 24, mark->mtime_ns);
	put64(p + 32, mark->size);
	put64(p + 40, chunks);
	put32(p + CRC_AT, crc32c(0, p, CRC_AT));
}

/* ---- files */

bool query_store_look(int fd, struct query_mark *m)
{
	struct stat st;

	if (sys->fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return false;
	*m = query_store_mark(&st);
	return true;
}

struct query_mark query_store_mark(const struct stat *st)
{
	return (struct query_mark){
		.inode = st->st_ino,
		.ctime_ns = (uint64_t)st->st_ctim.tv_sec * NS + (uint64_t)st->st_ctim.tv_nsec,
		.mtime_ns = (uint64_t)st->st_mtim.tv_sec * NS + (uint64_t)st->st_mtim.tv_nsec,
		.size = (uint64_t)st->st_size,
	};
}

bool query_store_same(const struct query_mark *a, const struct query_mark *b)
{
	return a->inode == b->inode && a->ctime_ns == b->ctime_ns && a->mtime_ns == b->mtime_ns &&
	       a->size == b->size;
}

bool query_store_settled(const struct query_mark *m)
{
	return m->ctime_ns / 1000000 + QUERY_COVER_SETTLED_MS < (uint64_t)clock_wall_ms();
}

/* Disk space is for the record first. */
static bool has_room(int fd)
{
	struct statvfs v;

	return fstatvfs(fd, &v) == 0 && (uint64_t)v.f_bavail * v.f_frsize > ROOM_LEAST;
}

bool query_store_create(struct query_store_new *s, int rootfd, const char *path)
{
	static unsigned count;

	s->rootfd = rootfd;
	snprintf(s->path, sizeof(s->path), "%s", path);
	snprintf(s->temp, sizeof(s->temp), "%s.%d-%u.tmp", path, (int)getpid(),
		 __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED));
	s->fd = files_open(rootfd, s->temp, O_RDWR | O_CREAT | O_EXCL);
	if (s->fd < 0 || has_room(s->fd))
		return s->fd >= 0;
	query_store_drop(s);
	files_close(&s->fd);
	return false;
}

bool query_store_put(const struct query_store_new *s)
{
	return sys->renameat(s->rootfd, s->temp, s->rootfd, s->path) == 0;
}

void query_store_drop(const struct query_store_new *s)
{
	sys->unlinkat(s->rootfd, s->temp, 0);
}

/* ---- chunks */

int query_store_add(struct query_cover *c, const struct query_chunk *chunk)
{
	size_t cap = c->cap == 0 ? 64 : c->cap * 2;
	struct query_chunk *grown;

	if (c->n == c->cap) {
		grown = realloc(c->chunks, cap * sizeof(*grown));
		if (grown == NULL)
			return AVA_ENOMEM;
		c->chunks = grown;
		c->cap = cap;
	}
	c->chunks[c->n++] = *chunk;
	return 0;
}

int query_store_read(const struct query_cover *c, void *bytes, size_t len, uint64_t at)
{
	if (c->bytes == NULL)
		return sys_read_all(c->fd, bytes, len, (off_t)at) == 0 ? 0 : AVA_EIO;
	memcpy(bytes, c->bytes + at, len);
	return 0;
}

/* Where in the log the next chunk begins. */
static uint64_t covered(const struct query_cover *c)
{
	return c->n == 0 ? 0 : c->chunks[c->n - 1].head.at + c->chunks[c->n - 1].head.bytes;
}

static uint64_t stored(const struct query_cover *c)
{
	const struct query_chunk *last = c->n > 0 ? &c->chunks[c->n - 1] : NULL;

	return last == NULL ? QUERY_STORE_HEAD : last->pos + query_index_size(&last->head);
}

bool query_store_load(struct query_cover *c, uint64_t size, struct query_mark *mark)
{
	unsigned char bytes[QUERY_INDEX_HEAD];
	struct query_chunk chunk;
	uint32_t chunks;

	*mark = (struct query_mark){0};
	if (sys_read_all(c->fd, bytes, QUERY_STORE_HEAD, 0) != 0 ||
	    !query_store_head_get(bytes, mark, &chunks))
		return false;
	for (uint32_t i = 0; i < chunks; i++) {
		chunk.pos = stored(c);
		if (sys_read_all(c->fd, bytes, sizeof(bytes), (off_t)chunk.pos) != 0 ||
		    !query_index_head_get(bytes, &chunk.head) || chunk.head.at != covered(c) ||
		    size - chunk.head.at < chunk.head.bytes || query_store_add(c, &chunk) != 0)
			break;
	}
	return true;
}

/* ---- work on chunks */

struct task {
	uint64_t at;
	size_t bytes;
	uint32_t crc;   /* checking: what it should be */
	struct buf out; /* making */
	bool fine;
};

struct work {
	int fd;
	bool make;
	struct task *tasks;
	struct {
		char *data; /* owned */
		size_t cap;
	} read[CREW_THREADS];
};

static void do_task(const struct work *w, struct task *t, char *data)
{
	if (sys_read_all(w->fd, data, t->bytes, (off_t)t->at) != 0)
		return;
	if (w->make)
		t->fine = data[t->bytes - 1] == '\n' &&
			  query_build(&t->out, data, t->bytes, t->at, QUERY_INDEX_BLOCK) == 0;
	else
		t->fine = crc32c(0, data, t->bytes) == t->crc;
}

static bool work(size_t i, unsigned thread, void *user)
{
	struct work *w = user;
	struct task *t = &w->tasks[i];
	char **data = &w->read[thread].data;

	if (t->bytes > w->read[thread].cap) {
		free(*data);
		*data = malloc(t->bytes);
		w->read[thread].cap = *data != NULL ? t->bytes : 0;
	}
	if (*data != NULL) /* else it is not fine */
		do_task(w, t, *data);
	return true;
}

static void work_all(int fd, bool make, struct task *tasks, size_t n)
{
	struct work w = {.fd = fd, .make = make, .tasks = tasks};

	crew_run(n, work, &w);
	for (size_t i = 0; i < CREW_THREADS; i++)
		free(w.read[i].data);
}

size_t query_store_verify(const struct query_cover *c, int fd)
{
	struct task *tasks = calloc(c->n + 1, sizeof(*tasks));
	size_t good = 0;

	if (tasks == NULL)
		return 0;
	for (size_t i = 0; i < c->n; i++)
		tasks[i] = (struct task){.at = c->chunks[i].head.at,
					 .bytes = c->chunks[i].head.bytes,
					 .crc = c->chunks[i].head.crc};
	work_all(fd, false, tasks, c->n);
	while (good < c->n && tasks[good].fine)
		good++;
	free(tasks);
	return good;
}

/* The rest of a log that rests, as a chunk. 0: it ends within a line. */
static size_t rest_chunk(int fd, uint64_t at, uint64_t size)
{
	char last;

	if (size - at < QUERY_INDEX_BLOCK || size - at > CHUNK_MAX ||
	    sys_read_all(fd, &last, 1, (off_t)size - 1) != 0)
		return 0;
	return last == '\n' ? (size_t)(size - at) : 0;
}

/* How long the chunk that begins at `at` is; 0: it is not complete. */
static size_t next_chunk(int fd, uint64_t at, uint64_t size, char *piece)
{
	uint64_t end = at + QUERY_INDEX_CHUNK - 1;

	while (end < size && end - at < CHUNK_MAX - QUERY_INDEX_BLOCK) {
		size_t len = MIN(QUERY_INDEX_BLOCK, size - end);
		const char *nl;

		if (sys_read_all(fd, piece, len, (off_t)end) != 0)
			return 0;
		nl = memchr(piece, '\n', len);
		if (nl != NULL)
			return (size_t)(end - at) + (size_t)(nl - piece) + 1;
		end += len;
	}
	return 0;
}

/* The next chunks of the log, at most BATCH. */
static size_t plan(struct task *tasks, int fd, uint64_t at, uint64_t size, bool rests, char *piece)
{
	size_t n = 0, bytes;

	while (n < BATCH && at < size) {
		bytes = next_chunk(fd, at, size, piece);
		if (bytes == 0 && rests)
			bytes = rest_chunk(fd, at, size);
		if (bytes == 0)
			break;
		tasks[n] = (struct task){.at = at, .bytes = bytes};
		buf_init(&tasks[n].out, MADE_MAX);
		at += bytes;
		n++;
	}
	return n;
}

static int put_chunk(struct query_cover *c, const struct buf *made, int out)
{
	struct query_chunk chunk = {.pos = stored(c)};
	bool fine = query_index_head_get((const unsigned char *)made->data, &chunk.head);

	if (!fine || sys_write_all(out, made->data, made->len, (off_t)chunk.pos) != 0)
		return AVA_EIO;
	return query_store_add(c, &chunk);
}

int query_store_copy(const struct query_cover *c, int out)
{
	uint64_t end = stored(c);
	char *piece = malloc(COPY);
	int rv = piece != NULL ? 0 : AVA_ENOMEM;

	for (uint64_t at = QUERY_STORE_HEAD; at < end && rv == 0;) {
		size_t len = MIN(COPY, end - at);

		if (sys_read_all(c->fd, piece, len, (off_t)at) != 0 ||
		    sys_write_all(out, piece, len, (off_t)at) != 0)
			rv = AVA_EIO;
		at += len;
	}
	free(piece);
	return rv;
}

int query_store_make(struct query_cover *c, int fd, uint64_t size, bool rests, int out)
{
	struct task *tasks = calloc(BATCH, sizeof(*tasks));
	char *piece = malloc(QUERY_INDEX_BLOCK);
	size_t n = 1;
	int rv = tasks != NULL && piece != NULL ? 0 : AVA_ENOMEM;

	while (rv == 0 && n > 0 && c->n < CHUNKS_MAX - BATCH) {
		n = plan(tasks, fd, covered(c), size, rests, piece);
		work_all(fd, true, tasks, n);
		for (size_t i = 0; i < n; i++) {
			if (rv == 0)
				rv = tasks[i].fine ? put_chunk(c, &tasks[i].out, out) : AVA_EIO;
			buf_fini(&tasks[i].out);
		}
	}
	free(piece);
	free(tasks);
	return rv;
}

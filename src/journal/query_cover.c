/* The block index of one log; query_cover.h.
 *
 * Happy path: the index names the log it fits by inode, times and size. When
 * they are those of now, nothing has changed since its chunks were read, and
 * they are used. When they are not, each chunk is checked against the log's
 * bytes; what fits is kept, what is missing is made, and the whole is written
 * to a new file that takes the place of the old one: an index file is never
 * changed, so that whoever has it open reads on undisturbed.
 *
 * What can fail: anything, and then there is no index for this question, or
 * one that ends earlier. A log that changed within the last two seconds may
 * change again without another time: the index is stored without its mark,
 * and checked again the next time. */
#include "journal/query_cover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/files.h"
#include "journal/query_store.h"

#define LOGS   "logs/"
#define INDEX  "logs/index/"
#define ENDING ".ix"

#define MORE_LEAST ((uint64_t)256 << 10) /* bytes without an index that are worth another file */

bool query_cover_path(const char *path, char *out, size_t size)
{
	int n;

	if (strncmp(path, LOGS, sizeof(LOGS) - 1) != 0)
		return false;
	n = snprintf(out, size, INDEX "%s" ENDING, path + sizeof(LOGS) - 1);
	if (n < 0 || (size_t)n >= size)
		return false;
	for (char *p = out + sizeof(INDEX) - 1; *p != '\0'; p++)
		if (*p == '/')
			*p = '+';
	return true;
}

bool query_cover_helps(const struct query *q)
{
	return query_narrows(q);
}

bool query_cover_pays(const struct query *q)
{
	return q->types != 0 || q->since[0] != '\0' || q->until[0] != '\0' || q->agent.len > 0 ||
	       q->user.len > 0 || q->session.len > 0;
}

/* ---- storing */

/* Files that a crash or an interrupt left, of an hour ago and older, and
 * indexes of logs that are gone. Best effort. */
static void sweep_name(const char *name, void *user)
{
	const int *rootfd = user;
	size_t len = strlen(name), end = sizeof(ENDING) - 1;
	char path[FILES_BUF], log[FILES_BUF], *plus;
	struct stat st;

	if (len > FILES_NAME_MAX || snprintf(path, sizeof(path), INDEX "%s", name) < 0)
		return;
	if (len > 4 && strcmp(name + len - 4, ".tmp") == 0) {
		if (sys->fstatat(*rootfd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    (int64_t)st.st_mtime + 3600 < clock_wall_ms() / 1000)
			sys->unlinkat(*rootfd, path, 0);
		return;
	}
	plus = strchr(name, '+');
	if (len <= end || strcmp(name + len - end, ENDING) != 0 || plus == NULL)
		return;
	snprintf(log, sizeof(log), LOGS "%.*s/%.*s", (int)(plus - name), name,
		 (int)(len - end - (size_t)(plus + 1 - name)), plus + 1);
	if (sys->fstatat(*rootfd, log, &st, 0) != 0 && errno == ENOENT)
		sys->unlinkat(*rootfd, path, 0);
}

void query_cover_sweep(int rootfd)
{
	sys->list(rootfd, "logs/index", sweep_name, &rootfd);
}

/* The head is written last: without it the file is no index. */
static bool finish(const struct query_store_new *s, const struct query_cover *c,
		   const struct query_mark *mark)
{
	unsigned char head[QUERY_STORE_HEAD];

	query_store_head_put(head, mark, (uint32_t)c->n);
	return sys_write_all(s->fd, head, sizeof(head), 0) == 0 && query_store_put(s);
}

/* A new file in the place of the old one; without it *c is as before, or has
 * more in a file without a name. */
static void renew(struct query_cover *c, int rootfd, const char *path, int fd,
		  const struct query_mark *before)
{
	struct query_mark after, none = {0};
	struct query_store_new s;
	bool settled = query_store_settled(before), first = c->n == 0, fine;

	if (!query_store_create(&s, rootfd, path))
		return;
	if (c->n > 0 && c->chunks[c->n - 1].head.bytes < QUERY_INDEX_CHUNK)
		c->n--; /* it becomes part of a longer one */
	if (query_store_copy(c, s.fd) != 0) {
		query_store_drop(&s);
		files_close(&s.fd);
		return;
	}
	files_close(&c->fd);
	c->fd = s.fd;
	fine = query_store_make(c, fd, before->size, settled, s.fd) == 0;
	settled = settled && query_store_look(fd, &after) && query_store_same(before, &after);
	if (!fine || !finish(&s, c, settled ? before : &none))
		query_store_drop(&s);
	else if (first)
		query_cover_sweep(rootfd);
}

/* ---- open */

static uint64_t end_of(const struct query_cover *c)
{
	return c->n == 0 ? 0 : c->chunks[c->n - 1].head.at + c->chunks[c->n - 1].head.bytes;
}

static void prepare(struct query_cover *c, int rootfd, const char *path, int fd, bool make,
		    const struct query_mark *now)
{
	struct query_mark mark = {0};
	bool fits, more;

	c->fd = files_open(rootfd, path, O_RDONLY);
	if (c->fd >= 0)
		query_store_load(c, now->size, &mark);
	fits = query_store_same(&mark, now);
	if (!fits && c->n > 0)
		c->n = query_store_verify(c, fd);
	more = now->size - end_of(c) >=
	       (query_store_settled(now) ? MORE_LEAST : MAX(QUERY_COVER_LEAST, end_of(c) / 64));
	if (make && (more || (!fits && query_store_settled(now))))
		renew(c, rootfd, path, fd, now);
}

struct query_cover *query_cover_open(int rootfd, const char *path, int fd, bool make)
{
	struct query_mark now;
	struct query_cover *c;
	char where[FILES_BUF];

	if (!query_store_look(fd, &now) || now.size < QUERY_COVER_LEAST ||
	    !query_cover_path(path, where, sizeof(where)))
		return NULL;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return NULL;
	c->fd = -1;
	prepare(c, rootfd, where, fd, make, &now);
	if (c->n > 0)
		return c;
	query_cover_close(c);
	return NULL;
}

void query_cover_close(struct query_cover *c)
{
	if (c == NULL)
		return;
	if (c->fd >= 0)
		sys->close(c->fd);
	free(c->bytes);
	free(c->chunks);
	free(c);
}

const struct query_index_head *query_cover_chunk(const struct query_cover *c, size_t i)
{
	return i < c->n ? &c->chunks[i].head : NULL;
}

unsigned char *query_cover_part(const struct query_cover *c, const struct query_index_head *h,
				enum query_index_part part)
{
	const struct query_chunk *chunk = CONTAINER_OF(h, struct query_chunk, head);
	size_t len = query_index_part_size(h, part);
	uint64_t at = chunk->pos + QUERY_INDEX_HEAD;
	unsigned char *bytes = malloc(len + 1);

	for (int i = 0; i < (int)part; i++)
		at += query_index_part_size(h, (enum query_index_part)i);
	if (bytes != NULL && query_store_read(c, bytes, len, at) == 0 &&
	    crc32c(0, bytes, len) == h->part_crc[part])
		return bytes;
	free(bytes);
	return NULL;
}

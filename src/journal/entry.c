/* Entries of session files; see entry.h.
 *
 * A pi session is a chain: each entry names the one before as its parent, and
 * an entry with a wrong parent hides the conversation from the program that
 * reads it. So the last entry's id is read under the same lock under which the
 * new one is written. A line that somebody left without its end gets one
 * first, and lines that are no entries (torn ones) are nobody's parent. A short
 * write is taken back, so that trying again is safe. */
#include "journal/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"
#include "journal/files.h"

#define LINE_MAX_BYTES ((uint64_t)16 << 20)
#define CHUNK          ((uint64_t)64 << 10)
#define LINES_BACK     1000 /* that are no entries; behind more the chain begins anew */

static const char sessions[] = "sessions/--";
static const char null_parent[] = "\"parentId\":null";

/* Where the line that ends before `end` begins. */
static int line_start(int fd, uint64_t end, uint64_t *start)
{
	uint64_t at = end, n;
	char *chunk = malloc(CHUNK), *nl = NULL;
	int rv = 0;

	if (chunk == NULL) {
		errno = ENOMEM;
		return -1;
	}
	while (rv == 0 && nl == NULL && at > 0 && end - at <= LINE_MAX_BYTES) {
		n = MIN(at, CHUNK);
		at -= n;
		rv = sys_read_all(fd, chunk, n, (off_t)at);
		nl = rv == 0 ? memrchr(chunk, '\n', n) : NULL;
	}
	*start = nl != NULL ? at + (uint64_t)(nl - chunk) + 1 : at;
	free(chunk);
	if (rv == 0 && end - *start > LINE_MAX_BYTES) {
		errno = EFBIG;
		rv = -1;
	}
	return rv;
}

int entry_last_line(int fd, uint64_t size, char **line, size_t *len)
{
	uint64_t start;
	char last;

	*line = NULL;
	if (size > 0 && sys_read_all(fd, &last, 1, (off_t)size - 1) != 0)
		return -1;
	if (size > 0 && last == '\n')
		size--;
	if (line_start(fd, size, &start) != 0)
		return -1;
	*len = (size_t)(size - start);
	*line = malloc(*len + 1);
	if (*line == NULL) {
		errno = ENOMEM;
		return -1;
	}
	if (sys_read_all(fd, *line, *len, (off_t)start) != 0) {
		free(*line);
		*line = NULL;
		return -1;
	}
	(*line)[*len] = '\0';
	return 0;
}

/* The text that stands for the parent: null, or "id" with its quotes. The
 * header of a session has an id too, but it is not an entry. False: the line is
 * no entry, the one before it may be. */
static bool take_parent(const char *line, size_t len, struct buf *out)
{
	json_t *last = json_parse(line, len, NULL);
	const char *type = json_get_str(last, "type"), *id = json_get_str(last, "id");

	if (id != NULL && type != NULL && strcmp(type, "session") == 0)
		buf_adds(out, "null");
	else if (id != NULL)
		json_escape(out, id, strlen(id));
	json_decref(last);
	return id != NULL;
}

static int find_parent(int fd, uint64_t size, struct buf *out)
{
	uint64_t end = size;

	for (unsigned i = 0; i < LINES_BACK && end > 0; i++) {
		char *line, last;
		size_t len;
		bool found;

		if (sys_read_all(fd, &last, 1, (off_t)end - 1) != 0 ||
		    entry_last_line(fd, end, &line, &len) != 0)
			return -1;
		found = take_parent(line, len, out);
		free(line);
		if (found)
			return 0;
		end -= len + (last == '\n');
	}
	buf_adds(out, "null");
	return 0;
}

/* The line as it is to be written: with its parent, with its end, and with an
 * end for an unfinished line before it. */
static int build(int fd, uint64_t size, const char *bytes, size_t len, struct buf *out)
{
	const char *gap = memmem(bytes, len, null_parent, sizeof(null_parent) - 1);
	const char *rest = gap != NULL ? gap + sizeof(null_parent) - 1 : bytes;
	char last = '\n';

	if (size > 0 && sys_read_all(fd, &last, 1, (off_t)size - 1) != 0)
		return -1;
	if (last != '\n')
		buf_addc(out, '\n');
	if (gap != NULL) {
		buf_add(out, bytes, (size_t)(rest - bytes) - 4); /* "null" */
		if (find_parent(fd, size, out) != 0)
			return -1;
	}
	buf_add(out, rest, len - (size_t)(rest - bytes));
	if (len == 0 || bytes[len - 1] != '\n')
		buf_addc(out, '\n');
	if (buf_check(out) == 0)
		return 0;
	errno = ENOMEM;
	return -1;
}

/* ---- doing it again */

static int read_whole(int fd, size_t size, char **data)
{
	*data = malloc(size + 1);
	if (*data == NULL) {
		errno = ENOMEM;
		return -1;
	}
	if (sys_read_all(fd, *data, size, 0) == 0)
		return 0;
	free(*data);
	*data = NULL;
	return -1;
}

static bool has_entry(const char *data, size_t size, const char *id)
{
	bool found = false;

	for (const char *at = data, *end = data + size; !found && at < end;) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((nl != NULL ? nl : end) - at);

		if (memmem(at, len, id, strlen(id)) != NULL) {
			json_t *o = json_parse(at, len, NULL);
			const char *its = json_get_str(o, "id");

			found = its != NULL && strcmp(its, id) == 0;
			json_decref(o);
		}
		at += len + 1;
	}
	return found;
}

/* Where the first line begins that has no end or holds zeros, as a power cut
 * leaves one; `size`: none does. */
static size_t cut_line(const char *data, size_t size)
{
	size_t at = 0;

	while (at < size) {
		const char *nl = memchr(data + at, '\n', size - at);
		size_t len = nl != NULL ? (size_t)(nl - data) - at : size - at;

		if (nl == NULL || memchr(data + at, '\0', len) != NULL)
			return at;
		at += len + 1;
	}
	return size;
}

/* Where the entry goes, which `out` gets: over what is left of it, or to the
 * end. 1; 0: it is there already; -1 and errno. */
static int place_again(int fd, size_t size, const void *bytes, size_t len, const char *id,
		       struct buf *out, size_t *at)
{
	char *data;
	int rv = 1;

	if (read_whole(fd, size, &data) != 0)
		return -1;
	*at = size;
	if (has_entry(data, size, id))
		rv = 0;
	else if ((*at = cut_line(data, size)) < size) {
		rv = build(fd, *at, bytes, len, out) == 0 ? 1 : -1;
		if (rv == 1 && !files_cut_of(out->data, data + *at, MIN(out->len, size - *at))) {
			buf_reset(out); /* somebody else's */
			*at = size;
		}
	}
	if (rv == 1 && *at == size && build(fd, size, bytes, len, out) != 0)
		rv = -1;
	free(data);
	return rv;
}

/* ---- appending */

/* 0, or -1 and errno. Room that was there already is not cut off again. */
static int write_line(int fd, const struct buf *line, size_t at, size_t size)
{
	ssize_t n;
	int saved;

	do
		n = sys->pwrite(fd, line->data, line->len, (off_t)at);
	while (n < 0 && errno == EINTR);
	if (n >= 0 && (size_t)n < line->len) {
		saved = n == 0 ? EIO : ENOSPC;
		sys->ftruncate(fd, (off_t)size);
		errno = saved;
		n = -1;
	}
	return n < 0 ? -1 : 0;
}

static int append_locked(int fd, const void *bytes, size_t len, const char *id,
			 enum entry_mode mode)
{
	struct buf line;
	struct stat st;
	size_t size, at;
	int rv = -1, saved;

	buf_init(&line, len + LINE_MAX_BYTES);
	if (sys->fstat(fd, &st) != 0)
		goto fail;
	at = size = (size_t)st.st_size;
	if (mode == ENTRY_REDO)
		rv = place_again(fd, size, bytes, len, id, &line, &at);
	else
		rv = build(fd, size, bytes, len, &line) == 0 ? 1 : -1;
	if (rv == 1)
		rv = write_line(fd, &line, at, size);

fail:
	saved = errno;
	buf_fini(&line);
	errno = saved;
	return rv;
}

/* ---- which file */

/* pi takes a session without its header for empty, and empties it: a file that
 * a person removed, or emptied, is not begun again in the middle. -1 and errno;
 * 1: `path` is such a file and the entry none that begins one. */
static int homeless(int rootfd, const char *path, const char *bytes, size_t len)
{
	struct stat st;

	if (strncmp(path, sessions, sizeof(sessions) - 1) != 0 ||
	    memmem(bytes, len, null_parent, sizeof(null_parent) - 1) == NULL)
		return 0;
	if (sys->fstatat(rootfd, path, &st, 0) == 0)
		return st.st_size == 0;
	return errno == ENOENT ? 1 : -1;
}

/* "lost/sessions+…": a path has no +, so that no two files meet. */
static void lost_name(const char *path, char out[FILES_BUF])
{
	snprintf(out, FILES_BUF, "lost/%s", path);
	for (char *p = out + strlen("lost/"); *p != '\0'; p++)
		if (*p == '/')
			*p = '+';
}

/* In the file itself, or aside. What a crash left of an entry is written over: not with
 * O_APPEND. */
static int append_to(int rootfd, const char *path, const void *bytes, size_t len, const char *id,
		     enum entry_mode mode, bool aside)
{
	int fd = files_open(rootfd, path, O_RDWR | O_CREAT | (mode == ENTRY_REDO ? 0 : O_APPEND));
	int rv = -1;

	if (fd < 0)
		return -1;
	if (sys->flock(fd, LOCK_EX | LOCK_NB) == 0)
		rv = append_locked(fd, bytes, len, id, mode);
	if (rv == 0 && aside) /* no checkpoint knows this file */
		rv = sys->fsync(fd);
	files_close(&fd); /* and with it the lock */
	return rv;
}

int entry_append(int rootfd, const char *path, const void *bytes, size_t len, const char *id,
		 enum entry_mode mode)
{
	char aside[FILES_BUF];
	int lost = homeless(rootfd, path, bytes, len), rv;

	if (lost < 0)
		return -1;
	if (lost)
		lost_name(path, aside);
	rv = append_to(rootfd, lost ? aside : path, bytes, len, id, mode, lost);
	return rv == 0 ? lost : rv;
}

int entry_put_aside(int rootfd, const char *path, const void *bytes, size_t len, const char *id)
{
	char aside[FILES_BUF], kept[FILES_BUF];

	lost_name(path, aside);
	return id == NULL ? files_keep(rootfd, aside, bytes, len, kept)
			  : append_to(rootfd, aside, bytes, len, id, ENTRY_NEW, true);
}

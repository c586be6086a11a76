/* Small durable steps on files below the data root; see files.h.
 *
 * A name is durable once its folder is synced, bytes once their file is. A replaced file is
 * never seen half: an open gives the old or the new one. The next replacement of a file removes
 * the temporary one that a crash left behind. */
#include "journal/files.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "journal/ballast.h"

#define KEEP_MAX   1000 /* copies kept of one file */
#define HOLE_LEAST ((off_t)64 << 30)

#define MESSAGES_MAX ((size_t)1 << 30)

static bool component_ok(const char *s, size_t len)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";

	return len > 0 && len <= FILES_NAME_MAX && strspn(s, allowed) >= len &&
	       !(len == 1 && s[0] == '.') && !(len == 2 && s[0] == '.' && s[1] == '.');
}

bool files_path_ok(const char *path)
{
	size_t len;

	if (path == NULL || strlen(path) > FILES_PATH_MAX)
		return false;
	for (;;) {
		len = strcspn(path, "/");
		if (!component_ok(path, len))
			return false;
		if (path[len] == '\0')
			return true;
		path += len + 1;
	}
}

const char *files_part_name(const char *path, unsigned part, char out[FILES_BUF])
{
	static const char ending[] = ".jsonl";
	size_t len = strlen(path), tail = sizeof(ending) - 1;

	if (part <= 1)
		snprintf(out, FILES_BUF, "%s", path);
	else if (len > tail && strcmp(path + len - tail, ending) == 0)
		snprintf(out, FILES_BUF, "%.*s.%u%s", (int)(len - tail), path, part, ending);
	else
		snprintf(out, FILES_BUF, "%s.%u", path, part);
	return out;
}

int files_apart(int rootfd, const char *path)
{
	struct stat root, st;

	if (sys->fstat(rootfd, &root) != 0 ||
	    sys->fstatat(rootfd, path, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return -1;
	return st.st_dev != root.st_dev;
}

bool files_is_part(const char *path)
{
	size_t len = strlen(path);
	const char *dot;

	if (len < 7 || strcmp(path + len - 6, ".jsonl") != 0)
		return false;
	dot = memrchr(path, '.', len - 6);
	return dot != NULL && strchr(dot, '/') == NULL && dot[1] >= '1' && dot[1] <= '9' &&
	       dot + 1 + strspn(dot + 1, "0123456789") == path + len - 6;
}

int files_by_day(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	int order = strncmp(x, y, 10);
	unsigned long i = strlen(x) > 11 ? strtoul(x + 11, NULL, 10) : 0,
		      k = strlen(y) > 11 ? strtoul(y + 11, NULL, 10) : 0;

	return order != 0 ? order : i != k ? (i > k) - (i < k) : strcmp(x, y);
}

void files_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		sys->close(*fd);
	*fd = -1;
	errno = saved;
}

int files_mkdir(int rootfd, const char *dir)
{
	struct stat st;

	if (sys->mkdirat(rootfd, dir, 0700) == 0)
		return 0;
	if (errno != EEXIST)
		return -1;
	/* A folder may be a link to one; a link to nowhere is none. */
	if (sys->fstatat(rootfd, dir, &st, 0) != 0) {
		if (errno != ENOENT && errno != ELOOP)
			return -1;
	} else if (S_ISDIR(st.st_mode)) {
		return 0;
	}
	return sys_put_aside(rootfd, dir) == 0 ? sys->mkdirat(rootfd, dir, 0700) : -1;
}

/* Every folder of `path` above the file; mostly the last one alone is missing. */
static int files_mkdirs(int rootfd, const char *path)
{
	char dir[FILES_BUF];
	const char *slash = strrchr(path, '/');

	if (slash != NULL) {
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
		if (sys->mkdirat(rootfd, dir, 0700) == 0)
			return 0;
	}
	slash = path;
	while ((slash = strchr(slash, '/')) != NULL) {
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
		if (files_mkdir(rootfd, dir) != 0)
			return -1;
		slash++;
	}
	return 0;
}

/* Restore the mode of a file of ours, and of the folders above it, that lacks r or w. */
static void files_reopen_modes(int rootfd, const char *path)
{
	char part[FILES_BUF];

	for (const char *slash = path; (slash = strchr(slash, '/')) != NULL; slash++) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		if (faccessat(rootfd, part, R_OK | W_OK | X_OK, 0) != 0)
			(void)fchmodat(rootfd, part, 0700, 0);
	}
	(void)fchmodat(rootfd, path, 0600, 0);
}

bool files_is_file(const struct stat *st)
{
	return S_ISREG(st->st_mode) &&
	       (st->st_size < HOLE_LEAST || st->st_blocks >= st->st_size / 512 / 64);
}

bool files_is_foreign(int rootfd, const char *name, int why)
{
	struct stat st;

	return why == AVA_ETOOBIG || why == AVA_EDENIED ||
	       (sys->fstatat(rootfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode));
}

static int open_ours(int rootfd, const char *path, int flags)
{
	int fd = sys->openat(rootfd, path, flags, 0600);
	struct stat st;

	if (fd >= 0 && (flags & O_EXCL) == 0 && sys->fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    !files_is_file(&st)) {
		sys->close(fd);
		errno = ENXIO;
		return -1;
	}
	return fd;
}

int files_open(int rootfd, const char *path, int flags)
{
	int fd;

	flags |= O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	fd = open_ours(rootfd, path, flags);
	if (fd < 0 && errno == EACCES) {
		files_reopen_modes(rootfd, path);
		fd = open_ours(rootfd, path, flags);
	}
	if (fd >= 0 || (flags & O_CREAT) == 0 ||
	    (errno != ENOENT && errno != ENOTDIR && errno != ELOOP))
		return fd;
	if (files_mkdirs(rootfd, path) != 0)
		return -1;
	return open_ours(rootfd, path, flags);
}

int files_sync_dir(int dirfd, const char *path)
{
	int fd = sys->openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), rv;

	if (fd < 0)
		return -1;
	rv = sys->fsync(fd);
	files_close(&fd);
	return rv;
}

int files_sync_parents(int rootfd, const char *path)
{
	char dir[FILES_BUF];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	while ((slash = strrchr(dir, '/')) != NULL) {
		*slash = '\0';
		if (files_sync_dir(rootfd, dir) != 0)
			return -1;
	}
	return files_sync_dir(rootfd, ".");
}

/* A file of the temporary name is left by a crash, maybe inside the rename, and may then be the
 * very file that was put under its final name: remove it, never write to it. */
static int open_temp(int rootfd, const char *temp)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL, fd = files_open(rootfd, temp, flags);

	if (fd < 0 && errno == EEXIST &&
	    (sys->unlinkat(rootfd, temp, 0) == 0 || sys_put_aside(rootfd, temp) == 0))
		fd = files_open(rootfd, temp, flags);
	return fd;
}

/* The descriptor of the new content, or -1. */
static int replace_once(int rootfd, const char *path, const void *bytes, size_t len, bool durable)
{
	char temp[FILES_BUF];
	int fd, saved;

	snprintf(temp, sizeof(temp), "%s.tmp", path);
	fd = open_temp(rootfd, temp);
	if (fd < 0)
		return -1;
	if (sys_write_all(fd, bytes, len, 0) != 0 || (durable && sys->fsync(fd) != 0) ||
	    sys->renameat(rootfd, temp, rootfd, path) != 0) {
		files_close(&fd);
		saved = errno;
		sys->unlinkat(rootfd, temp, 0);
		errno = saved;
	} else if (durable && files_sync_parents(rootfd, path) != 0) {
		files_close(&fd);
	}
	return fd;
}

int files_put(int rootfd, const char *path, const void *bytes, size_t len, bool durable)
{
	int fd;

	do
		fd = replace_once(rootfd, path, bytes, len, durable);
	while (fd < 0 && ballast_give(rootfd, errno));
	return fd;
}

int files_replace(int rootfd, const char *path, const void *bytes, size_t len, bool durable)
{
	int fd = files_put(rootfd, path, bytes, len, durable);
	bool done = fd >= 0;

	files_close(&fd);
	return done ? 0 : -1;
}

void files_drop_temp(int rootfd, const char *path)
{
	char temp[FILES_BUF];

	snprintf(temp, sizeof(temp), "%s.tmp", path);
	sys->unlinkat(rootfd, temp, 0);
}

/* Does `fd`, an open file of the same size, hold these bytes? */
static int files_same_bytes(int fd, const char *bytes, size_t len)
{
	size_t chunk = 64 * 1024, n;
	char *got = malloc(chunk);
	int rv = 1;

	if (got == NULL) {
		errno = ENOMEM;
		return -1;
	}
	for (size_t at = 0; at < len && rv == 1; at += n) {
		n = len - at < chunk ? len - at : chunk;
		if (sys_read_all(fd, got, n, (off_t)at) != 0)
			rv = errno == ENODATA ? 0 : -1;
		else
			rv = memcmp(got, bytes + at, n) == 0;
	}
	free(got);
	return rv;
}

int files_equal(int rootfd, const char *path, const void *bytes, size_t len)
{
	int fd = files_open(rootfd, path, O_RDONLY), rv;
	struct stat st;

	if (fd < 0)
		return -1;
	if (sys->fstat(fd, &st) != 0)
		rv = -1;
	else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != len)
		rv = 0;
	else
		rv = files_same_bytes(fd, bytes, len);
	files_close(&fd);
	return rv;
}

int files_rewrite(int rootfd, const char *path, const void *bytes, size_t len)
{
	int fd = files_open(rootfd, path, O_WRONLY), rv;

	rv = fd < 0 ? -1 : sys_write_all(fd, bytes, len, 0);
	files_close(&fd);
	if (rv == 0)
		files_drop_temp(rootfd, path);
	return rv;
}

int files_keep(int rootfd, const char *path, const void *bytes, size_t len, char out[FILES_BUF])
{
	for (int i = 1; i <= KEEP_MAX; i++) {
		int rv;

		snprintf(out, FILES_BUF, i == 1 ? "%s" : "%s.%d", path, i);
		rv = files_equal(rootfd, out, bytes, len);
		if (rv == 1) {
			files_drop_temp(rootfd, out);
			return files_sync_parents(rootfd, out);
		}
		if (rv < 0 && errno == ENOENT)
			return files_replace(rootfd, out, bytes, len, true);
		if (rv < 0)
			return -1;
	}
	errno = EEXIST;
	return -1;
}

bool files_cut_of(const void *ours, const void *data, size_t len)
{
	const char *a = ours, *b = data;

	for (size_t i = 0; i < len; i++)
		if (b[i] != a[i] && b[i] != '\0')
			return false;
	return true;
}

/* ---- lists of names */

int files_hash(int rootfd, const char *path, uint64_t *size, char hex[HASH_HEX_LEN + 1])
{
	int fd = files_open(rootfd, path, O_RDONLY);
	unsigned char buf[65536];
	struct hash_sha256 h;
	ssize_t n = -1;

	hash_sha256_init(&h);
	*size = 0;
	while (fd >= 0 && (n = sys->pread(fd, buf, sizeof(buf), (off_t)*size)) > 0) {
		hash_sha256_add(&h, buf, (size_t)n);
		*size += (uint64_t)n;
	}
	files_close(&fd);
	hash_sha256_with(&h, "", 0, hex);
	return n == 0 ? 0 : AVA_EIO;
}

bool files_named_by_hash(int rootfd, const char *path, const char *name)
{
	char hash[HASH_HEX_LEN + 1];
	struct stat st;
	uint64_t size;

	return strlen(name) != HASH_HEX_LEN ||
	       (files_hash(rootfd, path, &size, hash) == 0 && strcmp(hash, name) == 0) ||
	       (sys->fstatat(rootfd, path, &st, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT);
}

bool files_lost_head(int rootfd, const char *path, uint64_t upto, char head[FILES_BUF])
{
	char *data = NULL;
	struct slice name;
	size_t len = 0, at = 0;
	bool lost = false;
	struct stat st;

	if (strncmp(path, "runs/", 5) != 0 ||
	    sys_read_file(rootfd, path, MESSAGES_MAX, &data, &len, NULL) != 0)
		return false;
	while (!lost && head_next(data, (size_t)MIN(len, upto), &at, &name)) {
		snprintf(head, FILES_BUF, "heads/%.*s", (int)name.len, name.s);
		lost = sys->fstatat(rootfd, head, &st, 0) != 0 && errno == ENOENT &&
		       sys->fstatat(rootfd, path, &st, 0) == 0;
	}
	free(data);
	return lost;
}

int files_names_add(struct files_names *l, const char *name)
{
	if (!ARRAY_ROOM(l->names, l->cap, l->n + 1))
		return AVA_ENOMEM;
	l->names[l->n] = strdup(name);
	return l->names[l->n] != NULL ? (l->n++, 0) : AVA_ENOMEM;
}

void files_names_fini(struct files_names *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->names[i]);
	free(l->names);
	*l = (struct files_names){0};
}

struct files_listing {
	struct files_names *names;
	const char *ending;
	int rv;
};

static void files_list_name(const char *name, void *user)
{
	struct files_listing *l = user;
	size_t len = strlen(name), end = strlen(l->ending);

	if (l->rv == 0 && len > end && strcmp(name + len - end, l->ending) == 0)
		l->rv = files_names_add(l->names, name);
}

static int files_by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int files_list(struct files_names *l, int rootfd, const char *dir, const char *ending,
	       struct ava_error *err)
{
	struct files_listing listing = {.names = l, .ending = ending};

	if (sys->list(rootfd, dir, files_list_name, &listing) != 0 && errno != ENOENT)
		return err_sys(err, "%s", dir);
	if (listing.rv != 0)
		return err_set(err, listing.rv, "out of memory");
	if (l->n > 0)
		qsort(l->names, l->n, sizeof(l->names[0]), files_by_name);
	return 0;
}

/* ---- Lines with their places. A log of any size is read through one buffer, which grows for a
 * line that does not fit; of a line longer than LOGLINES_MAX, which no writer of ours makes,
 * only the length is kept. */

#define READ_FIRST ((size_t)256 << 10)

void loglines_init(struct loglines *l, int fd, uint64_t from, uint64_t end)
{
	*l = (struct loglines){.fd = fd, .offset = from, .end = end, .line = 1};
}

void loglines_fini(struct loglines *l)
{
	free(l->data);
	l->data = NULL;
}

/* Read more bytes behind the buffered ones: 1; 0: end of the file. */
static int loglines_fill(struct loglines *l)
{
	uint64_t at = l->offset + (l->to - l->from);
	ssize_t n;

	if (at >= l->end)
		return 0;
	if (l->from > 0) {
		memmove(l->data, l->data + l->from, l->to - l->from);
		l->to -= l->from;
		l->from = 0;
	}
	if (l->to == l->cap) {
		size_t cap = l->cap > 0 ? l->cap * 2 : READ_FIRST;
		char *more = realloc(l->data, cap);

		if (more == NULL)
			return AVA_ENOMEM;
		l->data = more;
		l->cap = cap;
	}
	do
		n = sys->pread(l->fd, l->data + l->to, (size_t)MIN(l->cap - l->to, l->end - at),
			       (off_t)at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return AVA_EIO;
	l->to += (size_t)n;
	return n > 0;
}

int loglines_next(struct loglines *l, const char **line, size_t *len)
{
	size_t seen = 0, dropped = 0;
	const char *nl = NULL;

	for (;;) {
		int rv;

		if (l->to > l->from + seen)
			nl = memchr(l->data + l->from + seen, '\n', l->to - l->from - seen);
		if (nl != NULL)
			break;
		seen = l->to - l->from;
		if (seen >= LOGLINES_MAX) {
			dropped += seen;
			l->offset += seen;
			l->from = l->to;
			seen = 0;
		}
		rv = loglines_fill(l);
		if (rv < 0)
			return rv;
		if (rv == 0) {
			if (seen + dropped == 0)
				return 0;
			l->torn = true;
			nl = l->data + l->to - 1;
			break;
		}
	}
	*line = dropped == 0 ? l->data + l->from : NULL;
	*len = (size_t)(nl + 1 - (l->data + l->from));
	l->from += *len;
	l->offset += *len;
	*len += dropped;
	l->line++;
	return 1;
}

char *files_last_line(int fd, uint64_t from, uint64_t upto, size_t *len)
{
	size_t n = (size_t)MIN(upto - from, FILES_LAST_MAX);
	char *bytes = n > 0 ? malloc(n) : NULL;
	const char *nl;

	if (bytes == NULL || sys_read_all(fd, bytes, n, (off_t)(upto - n)) != 0) {
		free(bytes);
		return NULL;
	}
	nl = memrchr(bytes, '\n', n - 1);
	*len = n - (nl != NULL ? (size_t)(nl + 1 - bytes) : 0);
	memmove(bytes, bytes + n - *len, *len);
	return bytes;
}

/* The real disk behind the seam, and loops that every caller needs; sys.h.
 *
 * The operations are the system calls themselves, wrapped only where types differ. A short
 * transfer is continued, EINTR is tried again; other errors are the disk's and the caller's to
 * judge. */
#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h> /* renameat */
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/util.h"

#define INODES_FEW ((uint64_t)1000)

#define ASIDE_MAX 1000 /* files kept under one name */

/* Open without blocking: a person may have put a pipe in a file's place. For regular files
 * O_NONBLOCK changes nothing. */
static int real_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	return openat(dirfd, path, flags | O_NONBLOCK | O_NOCTTY, mode);
}

static int real_list(int dirfd, const char *path, void (*name)(const char *name, void *user),
		     void *user)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), saved;
	struct dirent *e;
	DIR *dir;

	if (fd < 0)
		return -1;
	dir = fdopendir(fd);
	if (dir == NULL) {
		saved = errno;
		close(fd);
		errno = saved;
		return -1;
	}
	while (errno = 0, (e = readdir(dir)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			name(e->d_name, user);
	saved = errno;
	closedir(dir);
	errno = saved;
	return saved == 0 ? 0 : -1;
}

static int real_write_range(int fd, off_t at, off_t len)
{
	return sync_file_range(fd, at, len,
			       SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
				       SYNC_FILE_RANGE_WAIT_AFTER);
}

const struct sys_ops sys_real = {
	.openat = real_openat,
	.close = close,
	.pread = pread,
	.pwrite = pwrite,
	.pwritev = pwritev,
	.fdatasync = fdatasync,
	.fsync = fsync,
	.syncfs = syncfs,
	.ftruncate = ftruncate,
	.fallocate = fallocate,
	.fstat = fstat,
	.fstatat = fstatat,
	.renameat = renameat,
	.unlinkat = unlinkat,
	.mkdirat = mkdirat,
	.flock = flock,
	.list = real_list,
	.write_range = real_write_range,
};

const struct sys_ops *sys = &sys_real;

int sys_write_all(int fd, const void *buf, size_t len, off_t at)
{
	const char *p = buf;

	while (len > 0) {
		ssize_t n = sys->pwrite(fd, p, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0) { /* the device takes nothing, without an error */
			errno = EIO;
			return -1;
		}
		p += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

ssize_t sys_read_some(int fd, void *buf, size_t len, off_t at)
{
	size_t got = 0;
	ssize_t n = 1;

	while (got < len && n != 0) {
		n = sys->pread(fd, (char *)buf + got, len - got, at + (off_t)got);
		if (n < 0 && errno != EINTR)
			return -1;
		got += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)got;
}

int sys_read_all(int fd, void *buf, size_t len, off_t at)
{
	ssize_t n = sys_read_some(fd, buf, len, at);

	if (n >= 0 && (size_t)n < len)
		errno = ENODATA;
	return n == (ssize_t)len ? 0 : -1;
}

/* Size of an open file that may be read whole. */
static int readable_size(int fd, size_t max, size_t *size, struct ava_error *err)
{
	struct stat st;

	if (sys->fstat(fd, &st) != 0)
		return err_sys(err, "look at it");
	if (!S_ISREG(st.st_mode))
		return err_set(err, AVA_EINVAL, "not a regular file");
	if (st.st_size < 0 || (uint64_t)st.st_size > max)
		return err_set(err, AVA_ETOOBIG, "%lld bytes, at most %zu are read",
			       (long long)st.st_size, max);
	*size = (size_t)st.st_size;
	return 0;
}

int sys_read_file(int dirfd, const char *path, size_t max, char **data, size_t *len,
		  struct ava_error *err)
{
	char *bytes = NULL;
	size_t size = 0;
	int fd, rv;

	/* NONBLOCK: opening a fifo must not wait for its writer. */
	fd = sys->openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(err, "open %s", path);
	rv = readable_size(fd, max, &size, err);
	if (rv != 0)
		goto fail;
	bytes = malloc(size + 1);
	if (bytes == NULL) {
		rv = err_set(err, AVA_ENOMEM, "no memory for %zu bytes", size);
		goto fail;
	}
	if (sys_read_all(fd, bytes, size, 0) != 0) {
		rv = err_sys(err, "read it");
		goto fail;
	}
	bytes[size] = '\0';
	sys->close(fd);
	*data = bytes;
	*len = size;
	return 0;

fail:
	free(bytes);
	sys->close(fd);
	return err_wrap(err, rv, "read %s", path);
}

void (*sys_aside_told)(const char *path, const char *to);

int sys_put_aside(int dirfd, const char *path)
{
	char to[PATH_MAX];
	struct stat st;
	int rv;

	for (int i = 1; i <= ASIDE_MAX; i++) {
		snprintf(to, sizeof(to), i == 1 ? "%.*s.broken" : "%.*s.broken.%d", PATH_MAX - 32,
			 path, i);
		if (sys->fstatat(dirfd, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		rv = errno == ENOENT ? sys->renameat(dirfd, path, dirfd, to) : -1;
		if (rv == 0 && sys_aside_told != NULL)
			sys_aside_told(path, to);
		return rv;
	}
	errno = EEXIST;
	return -1;
}

int sys_make_folders(const char *path, bool whole)
{
	char *copy = strdup(path), *at = copy;
	int rv = copy != NULL ? 0 : -1;

	while (rv == 0 && at != NULL) {
		at = strchr(at + (*at != '\0'), '/');
		if (at == NULL && !whole)
			break;
		if (at != NULL)
			*at = '\0';
		rv = mkdir(copy, 0700) == 0 || errno == EEXIST ? 0 : -1;
		if (at != NULL)
			*at = '/';
	}
	free(copy);
	return rv;
}

int sys_room(int fd, struct sys_room *r)
{
	struct statvfs v;

	if (fstatvfs(fd, &v) != 0)
		return -1;
	*r = (struct sys_room){.mb = (uint64_t)v.f_bavail * v.f_frsize >> 20,
			       .inodes = v.f_files > 0 ? v.f_favail : UINT64_MAX};
	r->few_inodes = MIN(INODES_FEW, (uint64_t)v.f_files / 16);
	return 0;
}

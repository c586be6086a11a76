/* Every call looks up its folder anew, from the root down: a kept descriptor's folder could have
 * been moved meanwhile. What can fail: refusals by the file system, and links in the way; the
 * sentences suit a model and a person alike, and name the path as it was given. */
#include "base/below.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sys.h"

static int open_part(int fd, const char *name, bool make)
{
	int next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (next < 0 && errno == ENOENT && make &&
	    (mkdirat(fd, name, 0777) == 0 || errno == EEXIST))
		next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0 && errno == ENOTDIR && fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISLNK(st.st_mode))
		errno = ELOOP;
	return next;
}

int below_open_parent(int root_fd, const char *path, bool make, const char **name)
{
	int fd = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), saved;

	for (const char *at = path; fd >= 0;) {
		size_t n = strcspn(at, "/");
		char part[NAME_MAX + 1];
		int next = -1;

		if (n == 0 || n > NAME_MAX || (n <= 2 && strncmp(at, "..", n) == 0)) {
			errno = n > NAME_MAX ? ENAMETOOLONG : EINVAL;
		} else if (at[n] == '\0') {
			*name = at;
			return fd;
		} else {
			memcpy(part, at, n);
			part[n] = '\0';
			next = open_part(fd, part, make);
		}
		saved = errno;
		close(fd);
		errno = saved;
		fd = next;
		at += n + 1;
	}
	return -1;
}

static int below_fail(const char *path, struct ava_error *err)
{
	switch (errno) {
	case ENOENT:
	case ENOTDIR:
		return err_set(err, AVA_ENOENT, "there is no file %.300s", path);
	case ELOOP:
		return err_set(err, AVA_EDENIED,
			       "%.300s passes through a symbolic link, and none is followed", path);
	case EACCES:
	case EPERM:
	case EROFS:
		return err_set(err, AVA_EDENIED, "no permission to change %.300s", path);
	case EINVAL:
		return err_set(err, AVA_EDENIED, "%.300s is no path below the folder", path);
	default:
		return err_sys(err, "%.300s", path);
	}
}

static int read_open(int fd, const char *path, size_t max, char **data, size_t *len,
		     struct stat *st, struct ava_error *err)
{
	if (fstat(fd, st) != 0)
		return err_sys(err, "%.300s", path);
	if (!S_ISREG(st->st_mode))
		return err_set(err, AVA_EDENIED, "%.300s is no regular file", path);
	if ((size_t)st->st_size > max)
		return err_set(err, AVA_ETOOBIG, "%.300s has more than %zu bytes", path, max);
	*len = (size_t)st->st_size;
	*data = malloc(*len + 1);
	if (!*data)
		return err_set(err, AVA_ENOMEM, "out of memory");
	if (sys_read_all(fd, *data, *len, 0) != 0) {
		free(*data);
		*data = NULL;
		return err_sys(err, "read %.300s", path);
	}
	(*data)[*len] = '\0';
	return 0;
}

int below_read(int root_fd, const char *path, size_t max, char **data, size_t *len, struct stat *st,
	       struct ava_error *err)
{
	const char *name;
	int dir = below_open_parent(root_fd, path, false, &name), fd, rv;

	*data = NULL;
	if (dir < 0)
		return below_fail(path, err);
	/* O_NONBLOCK: opening a FIFO must not wait. */
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	rv = fd < 0 ? below_fail(path, err) : read_open(fd, path, max, data, len, st, err);
	if (fd >= 0)
		close(fd);
	close(dir);
	return rv;
}

int below_write(int root_fd, const char *path, const char *spare, const char *data, size_t len,
		mode_t mode, struct ava_error *err)
{
	const char *name;
	int dir = below_open_parent(root_fd, path, true, &name), fd = -1, rv = 0;

	if (dir >= 0 && unlinkat(dir, spare, 0) != 0 && errno != ENOENT)
		rv = below_fail(path, err);
	if (dir >= 0 && rv == 0)
		fd = openat(dir, spare, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (rv == 0 && fd < 0)
		rv = below_fail(path, err);
	if (rv == 0 &&
	    (sys_write_all(fd, data, len, 0) != 0 || fchmod(fd, mode) != 0 || fsync(fd) != 0))
		rv = err_sys(err, "write %.300s", path);
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && rv != 0)
		unlinkat(dir, spare, 0);
	if (dir >= 0)
		close(dir);
	return rv;
}

int below_rename(int root_fd, const char *path, const char *spare, struct ava_error *err)
{
	const char *name;
	int dir = below_open_parent(root_fd, path, false, &name), rv = 0;

	/* A rename replaces a link, it does not follow one. */
	if (dir < 0 || renameat(dir, spare, dir, name) != 0 || fsync(dir) != 0)
		rv = below_fail(path, err);
	if (dir >= 0)
		close(dir);
	return rv;
}

int below_remove(int root_fd, const char *path, const char *spare, struct ava_error *err)
{
	const char *name;
	int dir = below_open_parent(root_fd, path, false, &name), rv = 0;

	if (dir < 0 || (unlinkat(dir, spare ? spare : name, 0) != 0 || fsync(dir) != 0))
		rv = errno == ENOENT ? 0 : below_fail(path, err);
	if (dir >= 0)
		close(dir);
	return rv;
}

void below_remove_empty(int root_fd, const char *path)
{
	char at[PATH_MAX];
	char *slash;

	if ((size_t)snprintf(at, sizeof(at), "%s", path) >= sizeof(at))
		return;
	while ((slash = strrchr(at, '/')) != NULL) {
		const char *name;
		int dir, rv;

		*slash = '\0';
		dir = below_open_parent(root_fd, at, false, &name);
		rv = dir < 0 ? -1 : unlinkat(dir, name, AT_REMOVEDIR);
		if (dir >= 0)
			close(dir);
		if (rv != 0)
			return;
	}
}

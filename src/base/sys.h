/* The one seam to the disk. Everything durable (journal, views, catalog,
 * checkpoint, recovery) goes through `sys`, so that tests can put an
 * in-memory disk or an injected fault behind it. Same contracts as the
 * system calls: -1 and errno. Never changed while a daemon runs. */
#ifndef BASE_SYS_H
#define BASE_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

struct sys_ops {
	int (*openat)(int dirfd, const char *path, int flags, mode_t mode);
	int (*close)(int fd);
	ssize_t (*pread)(int fd, void *buf, size_t len, off_t at);
	ssize_t (*pwrite)(int fd, const void *buf, size_t len, off_t at);
	ssize_t (*pwritev)(int fd, const struct iovec *iov, int n, off_t at);
	int (*fdatasync)(int fd);
	int (*fsync)(int fd); /* also of directories */
	int (*syncfs)(int fd);
	int (*ftruncate)(int fd, off_t len);
	int (*fallocate)(int fd, int mode, off_t at, off_t len);
	int (*fstat)(int fd, struct stat *st);
	int (*fstatat)(int dirfd, const char *path, struct stat *st, int flags);
	int (*renameat)(int fromfd, const char *from, int tofd, const char *to);
	int (*unlinkat)(int dirfd, const char *path, int flags);
	int (*mkdirat)(int dirfd, const char *path, mode_t mode);
	int (*flock)(int fd, int operation);
	/* List a directory: `name` is called once for each name but "." and ".."; returns -1 or
	 * 0. */
	int (*list)(int dirfd, const char *path, void (*name)(const char *name, void *user),
		    void *user);
	/* Write the dirty pages of a range and wait. Nothing becomes durable by it, but an error
	 * it returns is not reported again elsewhere. */
	int (*write_range)(int fd, off_t at, off_t len);
};

extern const struct sys_ops sys_real;
extern const struct sys_ops *sys; /* &sys_real outside of tests */

/* Write or read all `len` bytes, over EINTR and short transfers. 0 or -1 with errno; a read that
 * ends early fails with ENODATA. */
int sys_write_all(int fd, const void *buf, size_t len, off_t at);
int sys_read_all(int fd, void *buf, size_t len, off_t at);
/* Read as many bytes as the file has, up to `len`; -1 and errno. */
ssize_t sys_read_some(int fd, void *buf, size_t len, off_t at);
/* Make the folders above `path`, and with `whole` itself, 0700. 0, or -1 and errno. */
int sys_make_folders(const char *path, bool whole);
/* Rename an entry in the way of a file or folder of ours to x.broken (x.broken.2, …), for a
 * person to look at; its content is not touched. 0, or -1 and errno. */
int sys_put_aside(int dirfd, const char *path);
/* Called for each renamed entry (on any thread), or NULL. Set before anything is opened. */
extern void (*sys_aside_told)(const char *path, const char *to);
/* Read a whole file into fresh memory (free()), NUL-terminated; AVA_ETOOBIG above `max`; regular
 * files only. */
struct ava_error;
int sys_read_file(int dirfd, const char *path, size_t max, char **data, size_t *len,
		  struct ava_error *err);

/* Room on the file system of `fd` for all users but root. -1 and errno. */
struct sys_room {
	uint64_t mb, inodes; /* inodes: UINT64_MAX when not counted */
	uint64_t few_inodes; /* with fewer inodes no new work is taken */
};
int sys_room(int fd, struct sys_room *r);

#endif

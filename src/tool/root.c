/* Opening below the working folder; see root.h.
 *
 * openat2 with RESOLVE_BENEATH lets the kernel itself keep a lookup inside,
 * so a link or folder swapped half-way changes nothing. A file is opened
 * twice: first as a mere handle (O_PATH) to see what it is, because opening a
 * device can already do something; then for reading, with O_NONBLOCK so that
 * a FIFO put there in between cannot hold us, and it is checked again.
 *
 * Kernels before 5.6 and some containers have no openat2: then each part is
 * opened with O_NOFOLLOW. That refuses links it could follow, never follows
 * one it should refuse. */
#include "tool/root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/util.h"

#define OPEN_TRIES 128 /* lookups that raced with a rename (EAGAIN) */
#define READ_FLAGS (O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)

enum { OPENAT2_UNKNOWN, OPENAT2_YES, OPENAT2_NO };
static atomic_int have_openat2 = OPENAT2_UNKNOWN;

void root_use_openat2(bool on)
{
	atomic_store(&have_openat2, on ? OPENAT2_UNKNOWN : OPENAT2_NO);
}

/* ---- paths */

/* Append a part to the `len` bytes of `out`; ".." takes one off again. */
static int add_part(char *out, size_t *len, const char *part, size_t n)
{
	if (n == 0 || (n == 1 && part[0] == '.'))
		return 0;
	if (n == 2 && part[0] == '.' && part[1] == '.') {
		const char *slash = memrchr(out, '/', *len);

		if (*len == 0)
			return AVA_EDENIED;
		*len = slash != NULL ? (size_t)(slash - out) : 0;
		return 0;
	}
	if (*len + n + 2 > PATH_MAX)
		return AVA_EINVAL;
	if (*len != 0)
		out[(*len)++] = '/';
	memcpy(out + *len, part, n);
	*len += n;
	return 0;
}

/* What is behind the folder's own path, or NULL when it is another path. */
static const char *below_cwd(const char *cwd, const char *arg)
{
	size_t len = strlen(cwd);

	while (len != 0 && cwd[len - 1] == '/')
		len--;
	if (strncmp(arg, cwd, len) != 0 || (arg[len] != '/' && arg[len] != '\0'))
		return NULL;
	return arg + len;
}

int root_path(const struct root *root, const char *arg, char out[PATH_MAX], struct ava_error *err)
{
	const char *at = arg;
	size_t len = 0;
	int rv;

	for (const char *p = arg; *p != '\0'; p++) {
		/* Results are lines that begin with a path. */
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return err_set(err, AVA_EINVAL, "the path holds a control character");
	}
	if (arg[0] == '/')
		at = below_cwd(root->cwd, arg);
	if (at == NULL)
		return err_set(err, AVA_EDENIED,
			       "%s is outside %s: this run may only read below it; give a path "
			       "relative to it",
			       arg, root->cwd);
	while (*at != '\0') {
		size_t n = strcspn(at, "/");

		rv = add_part(out, &len, at, n);
		if (rv == AVA_EDENIED)
			return err_set(err, rv,
				       "%s leads outside %s: this run may only read "
				       "below it",
				       arg, root->cwd);
		if (rv != 0)
			return err_set(err, rv, "the path is longer than %d bytes", PATH_MAX);
		at += n;
		at += *at == '/';
	}
	if (len == 0)
		out[len++] = '.';
	out[len] = '\0';
	return 0;
}

/* ---- lookups; -1 and errno */

static int openat2_once(int fd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t)flags,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
	};

	return (int)syscall(SYS_openat2, fd, path, &how, sizeof(how));
}

static int beneath_once(int fd, const char *path, int flags)
{
	return openat2_once(fd, path, flags, 0);
}

/* Some container filters answer EPERM instead of ENOSYS, so ask once with
 * something that cannot be refused for another reason. */
static bool can_openat2(int fd)
{
	int have = atomic_load(&have_openat2), probe;

	if (have == OPENAT2_UNKNOWN) {
		probe = beneath_once(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (probe < 0 && errno != ENOSYS && errno != EPERM && errno != EINVAL)
			return true; /* says nothing about the call */
		if (probe >= 0)
			close(probe);
		have = probe >= 0 ? OPENAT2_YES : OPENAT2_NO;
		atomic_store(&have_openat2, have);
	}
	return have == OPENAT2_YES;
}

/* Without openat2: one part after the other, links refused with ELOOP. */
static int by_parts(int fd, const char *path, int flags)
{
	int at = fd, saved;

	for (;;) {
		size_t n = strcspn(path, "/");
		bool last = path[n] == '\0';
		char part[NAME_MAX + 1];
		struct stat st;
		int next;

		if (n > NAME_MAX) {
			errno = ENAMETOOLONG;
			next = -1;
		} else {
			memcpy(part, path, n);
			part[n] = '\0';
			next = openat(at, part, (last ? flags : O_PATH | O_CLOEXEC) | O_NOFOLLOW);
		}
		saved = errno;
		if (at != fd)
			close(at);
		errno = saved;
		if (next < 0)
			return -1;
		if (fstat(next, &st) == 0 && S_ISLNK(st.st_mode)) {
			close(next);
			errno = ELOOP;
			return -1;
		}
		if (last)
			return next;
		at = next;
		path += n + 1;
	}
}

static int open_below(const struct root *root, const char *path, int flags)
{
	int fd = -1;

	if (!can_openat2(root->fd))
		return by_parts(root->fd, path, flags);
	for (int i = 0; i < OPEN_TRIES; i++) {
		fd = beneath_once(root->fd, path, flags);
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return fd;
}

int root_open_entry(int dirfd, const char *name, bool dir)
{
	return openat(dirfd, name, READ_FLAGS | O_NOFOLLOW | (dir ? O_DIRECTORY : 0));
}

/* ---- sentences */

static int open_error(const struct root *root, const char *path, struct ava_error *err)
{
	switch (errno) {
	case ENOENT:
	case ENOTDIR:
	case ENAMETOOLONG:
		return err_set(err, AVA_ENOENT, "no file %s below %s; search_codebase can find it",
			       path, root->cwd);
	case EXDEV:
		return err_set(err, AVA_EDENIED,
			       "%s passes through a symbolic link that leads outside %s", path,
			       root->cwd);
	case ELOOP:
		return err_set(err, AVA_EDENIED,
			       "%s passes through symbolic links that cannot be followed", path);
	case EACCES:
	case EPERM:
		return err_set(err, AVA_EDENIED, "no permission to read %s", path);
	case EAGAIN:
		return err_set(err, AVA_EIO, "%s changes too fast to be opened; try again", path);
	default:
		return err_sys(err, "open %s", path);
	}
}

static const char *kind_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "a folder";
	case S_IFIFO:
		return "a FIFO";
	case S_IFSOCK:
		return "a socket";
	case S_IFCHR:
	case S_IFBLK:
		return "a device";
	default:
		return "no regular file";
	}
}

bool root_is_pseudo(int fd)
{
	static const unsigned long magic[] = {
		PROC_SUPER_MAGIC,   SYSFS_MAGIC,         DEBUGFS_MAGIC,
		TRACEFS_MAGIC,      BPF_FS_MAGIC,        SECURITYFS_MAGIC,
		CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEVPTS_SUPER_MAGIC,
	};
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return true; /* not knowing is no reason to read it */
	for (size_t i = 0; i < ARRAY_LEN(magic); i++) {
		if ((unsigned long)fs.f_type == magic[i])
			return true;
	}
	return false;
}

static int check_file(int fd, const char *path, struct stat *st, struct ava_error *err)
{
	if (fstat(fd, st) != 0)
		return err_sys(err, "open %s", path);
	if (S_ISDIR(st->st_mode))
		return err_set(err, AVA_EDENIED,
			       "%s is a folder: name a file, or search it with search_codebase "
			       "(path \"%s\")",
			       path, path);
	if (!S_ISREG(st->st_mode))
		return err_set(err, AVA_EDENIED, "%s is %s: only regular files can be read", path,
			       kind_name(st->st_mode));
	if (root_is_pseudo(fd))
		return err_set(err, AVA_EDENIED, "%s belongs to the system, not to the project",
			       path);
	return 0;
}

/* ---- opening */

int root_open_file(const struct root *root, const char *path, struct stat *st,
		   struct ava_error *err)
{
	int fd = open_below(root, path, O_PATH | O_CLOEXEC), rv;

	if (fd < 0)
		return open_error(root, path, err);
	rv = check_file(fd, path, st, err);
	close(fd);
	if (rv != 0)
		return rv;
	fd = open_below(root, path, READ_FLAGS);
	if (fd < 0)
		return open_error(root, path, err);
	rv = check_file(fd, path, st, err);
	if (rv != 0) {
		close(fd);
		return rv;
	}
	return fd;
}

int root_open_cached(const struct root *root, const char *path, struct stat *st)
{
	int fd;

	if (!can_openat2(root->fd))
		return -1;
	fd = openat2_once(root->fd, path, O_PATH | O_CLOEXEC, RESOLVE_CACHED);
	if (fd < 0)
		return -1;
	if (fstat(fd, st) != 0 || !S_ISREG(st->st_mode)) {
		close(fd);
		return -1;
	}
	close(fd);
	fd = openat2_once(root->fd, path, READ_FLAGS, RESOLVE_CACHED);
	if (fd >= 0 && (fstat(fd, st) != 0 || !S_ISREG(st->st_mode) || root_is_pseudo(fd))) {
		close(fd);
		return -1;
	}
	return fd;
}

int root_open_dir(const struct root *root, const char *path, struct ava_error *err)
{
	int fd = open_below(root, path, READ_FLAGS | O_DIRECTORY);

	if (fd < 0)
		return open_error(root, path, err);
	if (root_is_pseudo(fd)) {
		close(fd);
		return err_set(err, AVA_EDENIED, "%s belongs to the system, not to the project",
			       path);
	}
	return fd;
}

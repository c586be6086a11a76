/* The lock of a data root.
 *
 * Happy path: open ava.lock, look at the file system, flock without waiting,
 * check that the name still means the file we locked, write our pid into it.
 *
 * What can fail: NFS (refused: its locks may be lost with a lease, and two
 * daemons on one journal destroy it), another holder, a root that cannot be
 * written. The pid in the file is advice: between a daemon's flock and its
 * write an older number may be read, so a killed daemon's number is checked
 * to be alive before it is shown. */
#include "os/lock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sys.h"
#include "base/unix_sock.h"

#define NFS_MAGIC 0x6969

static pid_t read_pid(int fd)
{
	char text[24] = "";
	ssize_t n = sys->pread(fd, text, sizeof(text) - 1, 0);
	long pid = n > 0 ? strtol(text, NULL, 10) : 0;

	if (pid <= 0 || pid > INT32_MAX || (kill((pid_t)pid, 0) != 0 && errno == ESRCH))
		return -1;
	return (pid_t)pid;
}

static int write_pid(int fd, struct ava_error *err)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

	if (sys->ftruncate(fd, 0) != 0 || sys_write_all(fd, text, (size_t)n, 0) != 0)
		return err_sys(err, "write %s", LOCK_NAME);
	return 0;
}

/* Someone may have deleted the file between our open and our flock: then the
 * next daemon would lock another file of the same name. */
static bool still_there(int rootfd, int fd)
{
	struct stat ours, named;

	return sys->fstat(fd, &ours) == 0 && sys->fstatat(rootfd, LOCK_NAME, &named, 0) == 0 &&
	       ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
}

static int busy(int fd, struct ava_error *err)
{
	pid_t pid = read_pid(fd);

	if (pid > 0)
		return err_set(err, AVA_EBUSY, "the data root is in use by process %ld", (long)pid);
	return err_set(err, AVA_EBUSY, "the data root is in use by another process");
}

static int refuse_nfs(int fd, struct ava_error *err)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return err_sys(err, "%s", LOCK_NAME);
	if (fs.f_type == NFS_MAGIC)
		return err_set(err, AVA_EUNSUPPORTED,
			       "the data root is on NFS, whose locks are not safe: set "
			       "AVA_DATA_ROOT to a local folder");
	return 0;
}

static int take_once(struct lock *l, int rootfd, struct ava_error *err)
{
	int rv;

	l->fd = sys->openat(rootfd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (l->fd < 0)
		return err_sys(err, "open %s", LOCK_NAME);
	rv = refuse_nfs(l->fd, err);
	if (rv != 0)
		return rv;
	if (sys->flock(l->fd, LOCK_EX | LOCK_NB) != 0)
		return errno == EWOULDBLOCK ? busy(l->fd, err) : err_sys(err, "lock %s", LOCK_NAME);
	return 0;
}

int lock_take(struct lock *l, int rootfd, struct ava_error *err)
{
	int rv;

	for (int tries = 0;; tries++) {
		*l = (struct lock)LOCK_CLOSED;
		rv = take_once(l, rootfd, err);
		if (rv != 0)
			goto fail;
		if (still_there(rootfd, l->fd))
			break;
		if (tries == 10) {
			rv = err_set(err, AVA_EBUSY, "%s is being replaced all the time",
				     LOCK_NAME);
			goto fail;
		}
		sys->close(l->fd);
	}
	rv = write_pid(l->fd, err);
	if (rv != 0)
		goto fail;
	return 0;

fail:
	if (l->fd >= 0)
		sys->close(l->fd);
	*l = (struct lock)LOCK_CLOSED;
	return rv;
}

bool lock_held(const struct lock *l)
{
	return l->fd >= 0;
}

void lock_drop(struct lock *l)
{
	if (l->fd < 0)
		return;
	/* The number must not outlive us. The file stays: deleting it would
	 * let two processes lock two files of one name. */
	if (sys->ftruncate(l->fd, 0) != 0)
		errno = 0; /* only advice, see read_pid */
	sys->close(l->fd);
	*l = (struct lock)LOCK_CLOSED;
}

int lock_listen(const struct lock *l, int rootfd, int *fd, struct ava_error *err)
{
	assert(lock_held(l));
	return unix_sock_listen(rootfd, UNIX_SOCK_NAME, fd, err);
}

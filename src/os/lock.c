/* The lock of a data root.
 *
 * Happy path: open the folder once more, look at the file system, flock it, write our pid into
 * ava.lock. The folder itself is locked, so that removing a file takes no lock away. A killed
 * daemon closes its connections before its folders, so a starter that saw it go may find the
 * folder locked for some milliseconds more: wait up to a second.
 *
 * What can fail: NFS (refused: its locks may be lost with a lease, and two daemons on one
 * journal destroy it), another holder, a root that cannot be written. The pid in the file is
 * advice: between a daemon's flock and its write an older number may be read, so a killed
 * daemon's number is checked to be alive before it is shown. */
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
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/unix_sock.h"

#define NFS_MAGIC 0x6969
#define WAIT_MS   1000

static int open_name(int rootfd, int flags)
{
	return sys->openat(rootfd, LOCK_NAME, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
}

static int busy(int rootfd, struct ava_error *err)
{
	int fd = open_name(rootfd, O_RDONLY);
	char text[24] = "";
	ssize_t n = fd >= 0 ? sys->pread(fd, text, sizeof(text) - 1, 0) : 0;
	long pid = n > 0 ? strtol(text, NULL, 10) : 0;

	if (fd >= 0)
		sys->close(fd);
	if (pid > 0 && pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno != ESRCH))
		return err_set(err, AVA_EBUSY, "the data root is in use by process %ld", pid);
	return err_set(err, AVA_EBUSY, "the data root is in use by another process");
}

/* `pid` 0: nobody. Padded with line ends and never cut, so that it needs no room on a full disk. */
static int write_pid(int rootfd, long pid, int flags, struct ava_error *err)
{
	int fd = open_name(rootfd, O_WRONLY | flags), n = 0, rv = 0;
	char text[24];

	if (fd < 0 && errno != EMFILE && errno != ENFILE && errno != ENOSPC &&
	    sys_put_aside(rootfd, LOCK_NAME) == 0)
		fd = open_name(rootfd, O_WRONLY | O_CREAT);
	if (fd < 0)
		return err_sys(err, "open %s", LOCK_NAME);
	memset(text, '\n', sizeof(text));
	if (pid > 0)
		n = snprintf(text, sizeof(text), "%ld", pid);
	text[n] = '\n';
	if (sys_write_all(fd, text, sizeof(text), 0) != 0)
		rv = err_sys(err, "write %s", LOCK_NAME);
	sys->close(fd);
	return rv;
}

static int refuse_nfs(int fd, struct ava_error *err)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return err_sys(err, "look at its file system");
	if (fs.f_type != NFS_MAGIC)
		return 0;
	return err_set(err, AVA_EUNSUPPORTED,
		       "the data root is on NFS, whose locks are not safe: set AVA_DATA_ROOT to a "
		       "local folder");
}

static int lock_try(struct lock *l, int rootfd, struct ava_error *err)
{
	int64_t until = clock_mono_ms() + WAIT_MS;
	int rv;

	l->fd = sys->openat(rootfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (l->fd < 0)
		return err_sys(err, "open it");
	rv = refuse_nfs(l->fd, err);
	if (rv != 0)
		return rv;
	while (sys->flock(l->fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK)
			return err_sys(err, "lock it");
		if (clock_mono_ms() >= until)
			return busy(rootfd, err);
		(void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
	rv = write_pid(rootfd, (long)getpid(), O_CREAT, err);
	return rv == AVA_EFULL ? 0 : rv; /* a full disk is fine: only the flock counts */
}

int lock_take(struct lock *l, int rootfd, struct ava_error *err)
{
	int rv;

	*l = (struct lock)LOCK_CLOSED;
	rv = lock_try(l, rootfd, err);
	if (rv != 0 && l->fd >= 0)
		sys->close(l->fd);
	if (rv != 0)
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
	(void)write_pid(l->fd, 0, 0, NULL); /* the number must not outlive us */
	sys->close(l->fd);
	*l = (struct lock)LOCK_CLOSED;
}

int lock_listen(const struct lock *l, int rootfd, int *fd, struct ava_error *err)
{
	assert(lock_held(l));
	return unix_sock_listen(rootfd, UNIX_SOCK_NAME, fd, err);
}

/* A disk that kills: the process is gone without a word before its k-th call
 * that changes or syncs something. For programs whose main thread forked: the
 * child arms it, the parent lives on. */
#ifndef CRASH_KILLDISK_H
#define CRASH_KILLDISK_H

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"

/* Every call; under a sanitiser, where the same calls take longer, each tenth. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KILL_STEP 10
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KILL_STEP 10
#endif
#endif
#ifndef KILL_STEP
#define KILL_STEP 1
#endif

static struct sys_ops killing;
static atomic_long calls_left;

static inline void kill_count(void)
{
	if (atomic_fetch_sub(&calls_left, 1) == 1)
		kill(getpid(), SIGKILL);
}

static inline ssize_t kill_pwrite(int fd, const void *buf, size_t len, off_t at)
{
	kill_count();
	return sys_real.pwrite(fd, buf, len, at);
}

static inline ssize_t kill_pwritev(int fd, const struct iovec *iov, int n, off_t at)
{
	kill_count();
	return sys_real.pwritev(fd, iov, n, at);
}

static inline int kill_fdatasync(int fd)
{
	kill_count();
	return sys_real.fdatasync(fd);
}

static inline int kill_fsync(int fd)
{
	kill_count();
	return sys_real.fsync(fd);
}

static inline int kill_ftruncate(int fd, off_t len)
{
	kill_count();
	return sys_real.ftruncate(fd, len);
}

static inline int kill_renameat(int fromfd, const char *from, int tofd, const char *to)
{
	kill_count();
	return sys_real.renameat(fromfd, from, tofd, to);
}

static inline int kill_unlinkat(int dirfd, const char *path, int flags)
{
	kill_count();
	return sys_real.unlinkat(dirfd, path, flags);
}

static inline int kill_mkdirat(int dirfd, const char *path, mode_t mode)
{
	kill_count();
	return sys_real.mkdirat(dirfd, path, mode);
}

static inline int kill_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	if (flags & O_CREAT)
		kill_count();
	return sys_real.openat(dirfd, path, flags, mode);
}

static inline void kill_arm(long k)
{
	killing = sys_real;
	killing.pwrite = kill_pwrite;
	killing.pwritev = kill_pwritev;
	killing.fdatasync = kill_fdatasync;
	killing.fsync = kill_fsync;
	killing.ftruncate = kill_ftruncate;
	killing.renameat = kill_renameat;
	killing.unlinkat = kill_unlinkat;
	killing.mkdirat = kill_mkdirat;
	killing.openat = kill_openat;
	atomic_store(&calls_left, k);
	sys = &killing;
}

/* The k of the test's next life; `variable` names another step. */
static inline long kill_step(const char *variable)
{
	const char *step = getenv(variable);

	return step && atol(step) > 0 ? atol(step) : KILL_STEP;
}

/* How the child ended: -1 it was killed, else its exit code; -2: neither. */
static inline int kill_wait(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -2;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

/* A kill loses nothing that was written, so memory is as good as a disk here,
 * and ten times as fast. */
static inline void kill_in_memory(void)
{
	struct statvfs vfs;

	if (!getenv("TMPDIR") && statvfs("/dev/shm", &vfs) == 0 &&
	    (uint64_t)vfs.f_bavail * vfs.f_frsize > (512u << 20))
		setenv("TMPDIR", "/dev/shm", 1);
}

#endif

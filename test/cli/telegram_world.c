/* Preloaded into the daemon: a disk that a test turns. The file $AVA_TEST_DISK has the errno of
 * every write to it, 0: none. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int refused(void)
{
	char text[20] = "0";
	int fd = open(getenv("AVA_TEST_DISK"), O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && syscall(SYS_read, fd, text, sizeof(text) - 1) < 0)
		text[0] = '0';
	if (fd >= 0)
		close(fd);
	return atoi(text);
}

static int refuses(int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return 0;
	errno = refused();
	return errno != 0;
}

int fdatasync(int fd)
{
	return refuses(fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
	return refuses(fd) ? -1 : (int)syscall(SYS_fsync, fd);
}

ssize_t write(int fd, const void *data, size_t n)
{
	return refuses(fd) ? -1 : syscall(SYS_write, fd, data, n);
}

ssize_t pwrite64(int fd, const void *data, size_t n, off_t at)
{
	return refuses(fd) ? -1 : syscall(SYS_pwrite64, fd, data, n, at);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
	return pwrite64(fd, data, n, at);
}

ssize_t pwritev64(int fd, const struct iovec *v, int n, off_t at)
{
	return refuses(fd) ? -1 : syscall(SYS_pwritev, fd, v, n, at, 0);
}

ssize_t pwritev(int fd, const struct iovec *v, int n, off_t at)
{
	return pwritev64(fd, v, n, at);
}

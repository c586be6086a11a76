/* In front of what ava calls of libc: the k-th open, read, allocation or thread fails, counted from
 * when a driver asks for it (faulty.py). The driver and the daemon share a page, the file
 * $AVA_FAULTY; without it nothing fails. Linked into a daemon of its own (-Wl,--wrap); libraries
 * of others call libc as always. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the linker calls them */

enum kind { OPEN, READ, MEMORY, THREAD };

struct shared {
	int32_t armed;  /* kind + 1; 0: nothing fails */
	int32_t left;   /* calls that go well before; below 0: it was hit */
	int32_t error;  /* errno of it */
	int32_t always; /* from then on each */
};

void __sanitizer_print_stack_trace(void) __attribute__((weak)); /* with a sanitiser: where it was */

static struct shared *shared;

static __attribute__((constructor)) void begin(void)
{
	const char *path = getenv("AVA_FAULTY");
	int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *page;

	if (fd < 0)
		return;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page != MAP_FAILED)
		shared = page;
}

static bool fails(enum kind kind)
{
	if (shared == NULL ||
	    __atomic_load_n(&shared->armed, __ATOMIC_ACQUIRE) != (int32_t)kind + 1)
		return false;
	if (__atomic_fetch_sub(&shared->left, 1, __ATOMIC_ACQ_REL) > 0)
		return false;
	if (shared->left < -1 && !shared->always)
		return false;
	if (__sanitizer_print_stack_trace != NULL && getenv("AVA_FAULTY_WHERE") != NULL)
		__sanitizer_print_stack_trace();
	errno = shared->error;
	return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
int __real_open64(const char *path, int flags, ...);
int __real_openat64(int dirfd, const char *path, int flags, ...);
DIR *__real_opendir(const char *path);
DIR *__real_fdopendir(int fd);
FILE *__real_fopen64(const char *path, const char *mode);
ssize_t __real_read(int fd, void *buf, size_t n);
ssize_t __real_pread64(int fd, void *buf, size_t n, off_t at);
ssize_t __real_preadv64v2(int fd, const struct iovec *iov, int n, off_t at, int flags);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*f)(void *), void *arg);
long __real_syscall(long n, ...);

void *__wrap_malloc(size_t size)
{
	return fails(MEMORY) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails(MEMORY) ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails(MEMORY) ? NULL : __real_realloc(p, size);
}

char *__wrap_strdup(const char *s)
{
	return fails(MEMORY) ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n)
{
	return fails(MEMORY) ? NULL : __real_strndup(s, n);
}

int __wrap_open64(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(ap, int) : 0;
	va_end(ap);
	return fails(OPEN) ? -1 : __real_open64(path, flags, mode);
}

int __wrap_openat64(int dirfd, const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(ap, int) : 0;
	va_end(ap);
	return fails(OPEN) ? -1 : __real_openat64(dirfd, path, flags, mode);
}

/* openat2 is called by its number. Whoever gave fewer arguments has what stands behind them read.
 */
__attribute__((no_sanitize("address"))) long __wrap_syscall(long n, ...)
{
	va_list ap;
	long a[6];

	va_start(ap, n);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (n == 437 && fails(OPEN))
		return -1;
	return __real_syscall(n, a[0], a[1], a[2], a[3], a[4], a[5]);
}

DIR *__wrap_opendir(const char *path)
{
	return fails(OPEN) ? NULL : __real_opendir(path);
}

DIR *__wrap_fdopendir(int fd)
{
	return fails(MEMORY) ? NULL : __real_fdopendir(fd);
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	return fails(OPEN) ? NULL : __real_fopen64(path, mode);
}

ssize_t __wrap_read(int fd, void *buf, size_t n)
{
	return fails(READ) ? -1 : __real_read(fd, buf, n);
}

ssize_t __wrap_pread64(int fd, void *buf, size_t n, off_t at)
{
	return fails(READ) ? -1 : __real_pread64(fd, buf, n, at);
}

ssize_t __wrap_preadv64v2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
	return fails(READ) ? -1 : __real_preadv64v2(fd, iov, n, at, flags);
}

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*f)(void *), void *arg)
{
	return fails(THREAD) ? EAGAIN : __real_pthread_create(t, attr, f, arg);
}

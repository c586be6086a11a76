/* The real disk, and the loops against a disk that misbehaves. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sys.h"

static const char *dir;
static int dirfd_;

static int setup(void **state)
{
	dir = unit_tmpdir();
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dirfd_ < 0;
}

static int teardown(void **state)
{
	sys = &sys_real;
	close(dirfd_);
	unit_rmdir(dir);
	return 0;
}

/* ---- a disk that interrupts, transfers single bytes and then fails */

static int calls, fail_after;

static ssize_t slow_pwrite(int fd, const void *buf, size_t len, off_t at)
{
	calls++;
	if (calls % 3 == 0) {
		errno = EINTR;
		return -1;
	}
	if (fail_after > 0 && calls > fail_after) {
		errno = ENOSPC;
		return -1;
	}
	return pwrite(fd, buf, len > 0 ? 1 : 0, at);
}

static ssize_t slow_pread(int fd, void *buf, size_t len, off_t at)
{
	if (++calls % 3 == 0) {
		errno = EINTR;
		return -1;
	}
	return pread(fd, buf, len > 0 ? 1 : 0, at);
}

static ssize_t zero_pwrite(int fd, const void *buf, size_t len, off_t at)
{
	return 0;
}

TEST(short_transfers)
{
	struct sys_ops slow = sys_real;
	char back[10];
	int fd = openat(dirfd_, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	slow.pwrite = slow_pwrite;
	slow.pread = slow_pread;
	sys = &slow;
	calls = fail_after = 0;
	assert_int_equal(sys_write_all(fd, "0123456789", 10, 5), 0);
	assert_int_equal(calls, 14);
	assert_int_equal(sys_read_all(fd, back, 10, 5), 0);
	assert_memory_equal(back, "0123456789", 10);
	calls = 0;
	fail_after = 4;
	assert_int_equal(sys_write_all(fd, "0123456789", 10, 0), -1);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(sys_read_all(fd, back, 10, 6), -1);
	assert_int_equal(errno, ENODATA);
	slow.pwrite = zero_pwrite;
	assert_int_equal(sys_write_all(fd, "x", 1, 0), -1);
	assert_int_equal(errno, EIO);
	close(fd);
}

static void count_cb(const char *name, void *user)
{
	int *bits = user;

	if (strcmp(name, "a") == 0)
		*bits |= 1;
	else if (strcmp(name, "b") == 0)
		*bits |= 2;
	else
		*bits |= 4;
}

TEST(list)
{
	int bits = 0;

	assert_int_equal(sys->mkdirat(dirfd_, "d", 0700), 0);
	assert_int_equal(sys->list(dirfd_, "d", count_cb, &bits), 0);
	assert_int_equal(bits, 0);
	close(openat(dirfd_, "d/a", O_WRONLY | O_CREAT, 0600));
	assert_int_equal(sys->mkdirat(dirfd_, "d/b", 0700), 0);
	assert_int_equal(sys->list(dirfd_, "d", count_cb, &bits), 0);
	assert_int_equal(bits, 3);
	assert_int_equal(sys->list(dirfd_, "none", count_cb, &bits), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(sys->list(dirfd_, "d/a", count_cb, &bits), -1);
	assert_int_equal(errno, ENOTDIR);
}

static void put(const char *name, const char *bytes, size_t len)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unit_write(path, bytes, len);
}

TEST(read_file)
{
	struct ava_error err = {0};
	char *data;
	size_t len;

	put("f", "a\0b", 3);
	assert_int_equal(sys_read_file(dirfd_, "f", 3, &data, &len, &err), 0);
	assert_int_equal(len, 3);
	assert_memory_equal(data, "a\0b", 4);
	free(data);
	put("empty", "", 0);
	assert_int_equal(sys_read_file(dirfd_, "empty", 0, &data, &len, &err), 0);
	assert_string_equal(data, "");
	free(data);
	assert_int_equal(sys_read_file(dirfd_, "f", 2, &data, &len, &err), AVA_ETOOBIG);
	assert_string_equal(err.text, "read f: 3 bytes, at most 2 are read");
	assert_int_equal(sys_read_file(dirfd_, "no", 2, &data, &len, &err), AVA_ENOENT);
	assert_int_equal(sys_read_file(dirfd_, ".", 9, &data, &len, &err), AVA_EINVAL);
	assert_string_equal(err.text, "read .: not a regular file");
}

/* A fifo without a writer must not hold the reader. */
TEST(read_fifo)
{
	char *data;
	size_t len;

	assert_int_equal(mkfifoat(dirfd_, "pipe", 0600), 0);
	assert_int_equal(sys_read_file(dirfd_, "pipe", 9, &data, &len, NULL), AVA_EINVAL);
}

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 64; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void read_without_memory(long k)
{
	int before = open_fds(), rv;
	char *data = NULL;
	size_t len;

	rv = sys_read_file(dirfd_, "f", 100, &data, &len, NULL);
	assert_true(rv == 0 || rv == AVA_ENOMEM);
	assert_int_equal(open_fds(), before);
	free(data);
}

TEST(read_out_of_memory)
{
	put("f", "abc", 3);
	FAULT_LOOP(k, read_without_memory(k));
}

UNIT_GROUP(.before = setup, .after = teardown);

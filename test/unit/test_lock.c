/* The lock of a data root and the socket in it: one holder, its pid, long
 * paths, stale sockets. */
#include "unit.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/unix_sock.h"
#include "os/lock.h"

static char root[4200];
static int rootfd;

static int setup(void **state)
{
	snprintf(root, sizeof(root), "%s", unit_tmpdir());
	rootfd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return rootfd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	test_clock_go();
	close(rootfd);
	unit_rmdir(root);
	return 0;
}

static int later_flock(int fd, int how)
{
	test_clock_skip(200);
	return flock(fd, how);
}

/* It is held, and stays so: the second that it is waited for goes with the attempts. */
static int take_in_vain(struct lock *l, struct ava_error *err)
{
	struct sys_ops ops = sys_real;
	int rv;

	ops.flock = later_flock;
	sys = &ops;
	rv = lock_take(l, rootfd, err);
	sys = &sys_real;
	return rv;
}

/* A child that takes the lock and waits to be killed; returns its pid. */
static pid_t holder(void)
{
	int ready[2];
	char c = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		struct lock l;
		int fd = open(root, O_RDONLY | O_DIRECTORY);

		c = lock_take(&l, fd, NULL) == 0 ? 'y' : 'n';
		if (write(ready[1], &c, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(c, 'y');
	close(ready[0]);
	close(ready[1]);
	return pid;
}

TEST_WITH(busy, setup, teardown)
{
	struct ava_error err;
	struct lock l;
	char want[64];
	pid_t pid = holder();

	assert_int_equal(take_in_vain(&l, &err), AVA_EBUSY);
	snprintf(want, sizeof(want), "the data root is in use by process %d", (int)pid);
	assert_string_equal(err.text, want);
	assert_false(lock_held(&l));
	kill(pid, SIGKILL); /* the kernel drops the lock with the holder */
	waitpid(pid, NULL, 0);
	assert_int_equal(lock_take(&l, rootfd, &err), 0);
	assert_true(lock_held(&l));
	lock_drop(&l);
	lock_drop(&l);
	assert_int_equal(lock_take(&l, rootfd, &err), 0); /* again, after a drop */
	lock_drop(&l);
}

/* A holder that goes when somebody has found it there three times. */
static pid_t ending;
static int found;

static int flock_until_it_ends(int fd, int operation)
{
	int rv = flock(fd, operation), error = errno;

	if (rv != 0 && error == EWOULDBLOCK && ++found == 3) {
		kill(ending, SIGKILL);
		waitpid(ending, NULL, 0);
	}
	errno = error;
	return rv;
}

/* Somebody who saw the last daemon go, and is there before the kernel has closed all of it. */
TEST_WITH(holder_is_ending, setup, teardown)
{
	struct sys_ops ops = sys_real;
	struct lock l;

	ending = holder();
	found = 0;
	ops.flock = flock_until_it_ends;
	sys = &ops;
	test_clock_stop(); /* it is waited for, but not longer than a second */
	assert_int_equal(lock_take(&l, rootfd, NULL), 0);
	sys = &sys_real;
	assert_int_equal(found, 3);
	lock_drop(&l);
}

TEST_WITH(pid_is_written, setup, teardown)
{
	struct lock l;
	char text[32] = "", want[32];
	int fd;

	assert_int_equal(lock_take(&l, rootfd, NULL), 0);
	fd = openat(rootfd, LOCK_NAME, O_RDONLY);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	snprintf(want, sizeof(want), "%d\n", (int)getpid());
	text[strcspn(text, "\n") + 1] = 0;
	assert_string_equal(text, want);
	lock_drop(&l);
	assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
	assert_int_equal(strspn(text, "\n"), strlen(text)); /* the number does not outlive us */
	close(fd);
}

/* A holder that died without cleaning up: its number is not shown. */
TEST_WITH(stale_pid, setup, teardown)
{
	struct ava_error err;
	struct lock a, b;
	char path[4300];
	pid_t dead = fork();

	if (dead == 0)
		_exit(0);
	waitpid(dead, NULL, 0);
	assert_int_equal(lock_take(&a, rootfd, &err), 0);
	snprintf(path, sizeof(path), "%s/%s", root, LOCK_NAME);
	{
		char text[32];
		int n = snprintf(text, sizeof(text), "%d\n", (int)dead);

		unit_write(path, text, (size_t)n);
	}
	assert_int_equal(take_in_vain(&b, &err), AVA_EBUSY);
	assert_string_equal(err.text, "the data root is in use by another process");
	lock_drop(&a);
}

/* Without its file the folder is locked all the same. */
TEST_WITH(removed_file, setup, teardown)
{
	struct ava_error err;
	struct lock a, b;

	assert_int_equal(lock_take(&a, rootfd, &err), 0);
	assert_int_equal(unlinkat(rootfd, LOCK_NAME, 0), 0);
	assert_int_equal(take_in_vain(&b, &err), AVA_EBUSY);
	lock_drop(&a);
	assert_int_equal(lock_take(&b, rootfd, &err), 0);
	lock_drop(&b);
}

/* What somebody put in the place of the file is put aside; a link is not followed. */
TEST_WITH(odd_files, setup, teardown)
{
	char aside[] = LOCK_NAME ".broken";
	struct ava_error err;
	struct stat st;
	struct lock l;

	assert_int_equal(symlinkat("elsewhere", rootfd, LOCK_NAME), 0);
	assert_int_equal(lock_take(&l, rootfd, &err), 0);
	assert_int_equal(faccessat(rootfd, "elsewhere", F_OK, 0), -1);
	assert_int_equal(fstatat(rootfd, aside, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISLNK(st.st_mode));
	lock_drop(&l);
	assert_int_equal(unlinkat(rootfd, LOCK_NAME, 0), 0);
	assert_int_equal(mkdirat(rootfd, LOCK_NAME, 0700), 0);
	assert_int_equal(lock_take(&l, rootfd, &err), 0);
	assert_int_equal(fstatat(rootfd, LOCK_NAME ".broken.2", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISDIR(st.st_mode));
	lock_drop(&l);
}

static void say(int from, int to)
{
	char c = 0;

	assert_int_equal(send(from, "x", 1, MSG_NOSIGNAL), 1);
	assert_int_equal(recv(to, &c, 1, 0), 1);
	assert_int_equal(c, 'x');
}

/* Listen in `dirfd`, connect, and talk. */
static void round_trip(int dirfd, const struct lock *l)
{
	struct unix_peer peer;
	struct stat st;
	int server, client, accepted;

	assert_int_equal(lock_listen(l, dirfd, &server, NULL), 0);
	assert_int_equal(fstatat(dirfd, UNIX_SOCK_NAME, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(unix_sock_connect(dirfd, UNIX_SOCK_NAME, 1000, &client, NULL), 0);
	accepted = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	assert_true(accepted >= 0);
	say(client, accepted);
	say(accepted, client);
	assert_int_equal(unix_sock_peer(accepted, &peer), 0);
	assert_int_equal(peer.uid, getuid());
	assert_int_equal(peer.pid, getpid());
	close(accepted);
	close(client);
	close(server);
}

TEST_WITH(socket, setup, teardown)
{
	struct ava_error err;
	struct lock l;
	mode_t mask = umask(0); /* the mode does not depend on it */
	int fd;

	assert_int_equal(unix_sock_connect(rootfd, UNIX_SOCK_NAME, 100, &fd, &err), AVA_ENOENT);
	assert_int_equal(lock_take(&l, rootfd, NULL), 0);
	round_trip(rootfd, &l);
	/* The socket of a dead daemon: nobody listens, and it is replaced. */
	assert_int_equal(unix_sock_connect(rootfd, UNIX_SOCK_NAME, 100, &fd, &err), AVA_ECONNECT);
	assert_int_equal(fd, -1);
	round_trip(rootfd, &l);
	assert_int_equal(unlinkat(rootfd, UNIX_SOCK_NAME, 0), 0);
	/* Someone's file is put aside. */
	fd = openat(rootfd, UNIX_SOCK_NAME, O_CREAT | O_WRONLY, 0600);
	close(fd);
	round_trip(rootfd, &l);
	assert_int_equal(faccessat(rootfd, UNIX_SOCK_NAME ".broken", F_OK, 0), 0);
	lock_drop(&l);
	umask(mask);
}

/* A root whose path is 4,000 bytes long: addresses hold 107. */
TEST_WITH(long_path, setup, teardown)
{
	char name[201];
	struct lock l;
	int at = dup(rootfd), next;

	memset(name, 'd', 200);
	name[200] = '\0';
	for (int i = 0; i < 20; i++) {
		assert_int_equal(mkdirat(at, name, 0700), 0);
		next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(at);
		at = next;
	}
	assert_int_equal(lock_take(&l, at, NULL), 0);
	round_trip(at, &l);
	lock_drop(&l);
	close(at);
}

/* A full queue of connections is a timeout, not a hang. */
TEST_WITH(backlog, setup, teardown)
{
	struct ava_error err;
	struct lock l;
	int server, fds[4096], n = 0, rv = 0;

	assert_int_equal(lock_take(&l, rootfd, NULL), 0);
	assert_int_equal(lock_listen(&l, rootfd, &server, NULL), 0);
	assert_int_equal(listen(server, 1), 0); /* shorten it */
	while (n < 4096 && rv == 0) {
		rv = unix_sock_connect(rootfd, UNIX_SOCK_NAME, 30, &fds[n], &err);
		n += rv == 0;
	}
	assert_int_equal(rv, AVA_ETIMEOUT);
	while (n > 0)
		close(fds[--n]);
	close(server);
	lock_drop(&l);
}

TEST(peer_of_other_things)
{
	struct unix_peer peer;
	int tcp = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(unix_sock_peer(tcp, &peer), AVA_EINVAL);
	close(tcp);
	assert_int_equal(unix_sock_peer(-1, &peer), AVA_EINVAL);
}

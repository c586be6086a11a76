/* Running avad for an answer; see helper.h.
 *
 * Happy path: its output comes down one pipe, its complaint down another; both
 * are read to their ends before it is waited for. What can fail: no avad, a
 * start that does not succeed, and what avad says. */
#include "cli/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/root.h"
#include "client/start.h"

#define WORDS_MAX 8

extern char **environ;

static int start(char **argv, int out, int complaint, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	int rv = posix_spawn_file_actions_init(&files);

	if (rv != 0)
		return rv;
	rv = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	if (rv == 0)
		rv = posix_spawn_file_actions_adddup2(&files, out, 1);
	if (rv == 0)
		rv = posix_spawn_file_actions_adddup2(&files, complaint, 2);
	if (rv == 0)
		rv = posix_spawn(pid, argv[0], &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	return rv;
}

/* false: that one has come to its end. */
static bool take(int fd, struct buf *b)
{
	char piece[4096];
	ssize_t n = read(fd, piece, sizeof(piece));

	if (n > 0)
		buf_add(b, piece, (size_t)n);
	return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

static void read_both(int out_fd, int complaint_fd, struct buf *out, struct buf *complaint)
{
	struct pollfd fds[] = {{.fd = out_fd, .events = POLLIN},
			       {.fd = complaint_fd, .events = POLLIN}};

	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return;
		if (fds[0].revents && !take(out_fd, out))
			fds[0].fd = -1;
		if (fds[1].revents && !take(complaint_fd, complaint))
			fds[1].fd = -1;
	}
}

/* The sentence behind "avad: ", one line. */
static int failed(struct buf *complaint, struct ava_error *err)
{
	char *s = complaint->data ? complaint->data : (char *)"";

	if (strncmp(s, "avad: ", 6) == 0)
		s += 6;
	return err_set(err, AVA_EIO, "%.*s", *s ? (int)strcspn(s, "\n") : 28,
		       *s ? s : "avad ended without a reason");
}

int helper_run(const char *const *words, struct buf *out, struct ava_error *err)
{
	char avad[ROOT_PATH_MAX], *argv[WORDS_MAX + 2] = {avad};
	int one[2] = {-1, -1}, two[2] = {-1, -1}, status = -1;
	int rv = start_find(avad, sizeof(avad), err);
	struct buf complaint;
	pid_t pid = -1;

	buf_init(&complaint, 8192);
	for (size_t i = 0; i < WORDS_MAX && words[i]; i++)
		argv[i + 1] = (char *)words[i];
	if (rv == 0 && (pipe2(one, O_CLOEXEC) != 0 || pipe2(two, O_CLOEXEC) != 0))
		rv = err_sys(err, "pipe");
	if (rv == 0 && (errno = start(argv, one[1], two[1], &pid)) != 0)
		rv = err_sys(err, "%s", avad);
	for (int i = 1; i >= 0; i--) {
		if (i == 0 && rv == 0)
			read_both(one[0], two[0], out, &complaint);
		if (one[i] >= 0)
			close(one[i]);
		if (two[i] >= 0)
			close(two[i]);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (rv == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
		rv = failed(&complaint, err);
	if (rv == 0 && buf_check(out) != 0)
		rv = err_set(err, buf_check(out), "the answer of avad cannot be kept");
	buf_fini(&complaint);
	return rv;
}

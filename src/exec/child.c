/* Happy path: the input goes into a sealed file in memory, posix_spawn starts
 * the program on it, the loop polls pipe and pidfd; when the pidfd says that
 * it has ended, what is left of its group is killed, the rest of the pipe is
 * read, it is reaped, and `done` is told.
 *
 * What can fail: descriptors and memory, the program (not there, not ours to
 * run). Time and output over their bounds kill the group; the end is then told
 * as that. A process outside of the group may hold the pipe open: only what is
 * in it at the end is read. */
#include "exec/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "os/loop.h"

#define KILL_WAIT_MS 1000

struct exec_child {
	struct os_loop *loop;
	struct os_poll *out, *end;
	struct os_timer *timer;
	pid_t pid;
	int pidfd, pipe;
	size_t written, output_max;
	struct buf kept;
	bool killed;
	enum exec_how why; /* when killed */
	exec_done_fn done;
	void *user;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void child_free(struct exec_child *c)
{
	os_poll_free(c->out);
	os_poll_free(c->end);
	os_timer_free(c->timer);
	close_fd(&c->pidfd);
	close_fd(&c->pipe);
	buf_fini(&c->kept);
	free(c);
}

/* Before it is reaped: until then nobody else can have its number. */
static void kill_group(struct exec_child *c)
{
	(void)pidfd_send_signal(c->pidfd, SIGKILL, NULL, 0);
	(void)kill(-c->pid, SIGKILL);
}

static void stop(struct exec_child *c, enum exec_how why)
{
	if (c->killed)
		return;
	c->killed = true;
	c->why = why;
	kill_group(c);
}

static void take(struct exec_child *c, const char *bytes, size_t len)
{
	c->written += len;
	(void)buf_add(&c->kept, bytes, MIN(len, c->kept.max - c->kept.len));
	if (c->written > c->output_max)
		stop(c, EXEC_OUTPUT);
}

/* A few blocks; false: there is no more for ever. */
static bool read_some(struct exec_child *c)
{
	char block[4096];

	for (int i = 0; i < 16; i++) {
		ssize_t n = read(c->pipe, block, sizeof(block));

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		if (n == 0)
			return false;
		take(c, block, (size_t)n);
	}
	return true;
}

static void readable(int events, void *user)
{
	struct exec_child *c = user;

	if (!read_some(c))
		os_poll_set(c->out, 0);
}

static void time_up(void *user)
{
	stop(user, EXEC_TIMEOUT);
}

/* It was killed or has ended. One that cannot die yet (a dead network disk) is
 * left to whoever reaps us. */
static void reap(struct exec_child *c, siginfo_t *info)
{
	struct pollfd p = {.fd = c->pidfd, .events = POLLIN};

	while (poll(&p, 1, KILL_WAIT_MS) < 0 && errno == EINTR)
		;
	(void)waitid(P_PIDFD, (id_t)c->pidfd, info, WEXITED | WNOHANG);
}

static void ended(int events, void *user)
{
	struct exec_child *c = user;
	siginfo_t info = {0};
	struct exec_end end;

	if (waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
	    info.si_pid == 0)
		return;
	kill_group(c); /* what it left behind */
	(void)read_some(c);
	reap(c, &info);
	end = (struct exec_end){
		.how = c->killed                    ? c->why
		       : info.si_code == CLD_EXITED ? EXEC_EXITED
						    : EXEC_SIGNALLED,
		.code = info.si_status,
		.output = c->kept.data ? c->kept.data : "",
		.output_len = c->kept.len,
	};
	c->done(&end, c->user);
	child_free(c);
}

/* ---- starting */

/* Where the child's own 0 to 2 go, none of ours may stand. */
static int move_up(int *fd)
{
	int up;

	if (*fd > 2)
		return 0;
	up = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
	if (up < 0)
		return -1;
	close(*fd);
	*fd = up;
	return 0;
}

static int make_input(const struct exec_options *o, int *fd, struct ava_error *err)
{
	size_t at = 0;

	*fd = memfd_create("ava-input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0 || move_up(fd) != 0)
		return err_sys(err, "memory for the input of %.200s", o->argv[0]);
	while (at < o->input_len) {
		ssize_t n = pwrite(*fd, (const char *)o->input + at, o->input_len - at, (off_t)at);

		if (n < 0 && errno != EINTR)
			return err_sys(err, "the input of %.200s", o->argv[0]);
		at += n > 0 ? (size_t)n : 0;
	}
	(void)fcntl(*fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	return 0;
}

static int spawn(struct exec_child *c, const struct exec_options *o, int input, int output)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	sigset_t none, all;
	int rv;

	sigemptyset(&none);
	sigfillset(&all);
	if (posix_spawn_file_actions_init(&fa) != 0)
		return ENOMEM;
	if (posix_spawnattr_init(&at) != 0) {
		posix_spawn_file_actions_destroy(&fa);
		return ENOMEM;
	}
	posix_spawnattr_setflags(&at, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
					      POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&at, 0);
	posix_spawnattr_setsigmask(&at, &none);
	posix_spawnattr_setsigdefault(&at, &all);
	rv = posix_spawn_file_actions_adddup2(&fa, input, 0);
	rv = rv ? rv : posix_spawn_file_actions_adddup2(&fa, output, 1);
	rv = rv ? rv : posix_spawn_file_actions_adddup2(&fa, output, 2);
	rv = rv ? rv : posix_spawn_file_actions_addclosefrom_np(&fa, 3);
	rv = rv ? rv : posix_spawn_file_actions_addchdir_np(&fa, "/");
	rv = rv ? rv
		: posix_spawn(&c->pid, o->argv[0], &fa, &at, (char *const *)o->argv,
			      (char *const *)o->env);
	posix_spawnattr_destroy(&at);
	posix_spawn_file_actions_destroy(&fa);
	return rv;
}

static int not_run(struct ava_error *err, const char *program)
{
	int e = errno;

	if (e == EACCES || e == EPERM)
		return err_set(err, AVA_EDENIED, "%.300s may not be run: %s", program, strerror(e));
	if (e == ENOENT || e == ENOTDIR)
		return err_set(err, AVA_ENOENT, "there is no program %.300s", program);
	return err_sys(err, "run %.300s", program);
}

/* It runs; what is missing to watch it ends it. */
static int watch(struct exec_child *c, const struct exec_options *o, struct ava_error *err)
{
	siginfo_t info;

	c->pidfd = pidfd_open(c->pid, 0);
	if (c->pidfd < 0) {
		err_sys(err, "watch %.300s", o->argv[0]);
		(void)kill(-c->pid, SIGKILL);
		(void)waitpid(c->pid, NULL, 0);
		return err->code;
	}
	c->out = os_poll_new(c->loop, c->pipe, readable, c);
	c->end = os_poll_new(c->loop, c->pidfd, ended, c);
	c->timer = os_timer_new(c->loop, time_up, c);
	if (c->out && c->end && c->timer) {
		os_poll_set(c->out, OS_READ);
		os_poll_set(c->end, OS_READ);
		os_timer_set(c->timer, o->timeout_ms);
		return 0;
	}
	kill_group(c);
	reap(c, &info);
	return err_set(err, AVA_ENOMEM, "out of memory");
}

int exec_start(struct exec_child **child, struct os_loop *loop, const struct exec_options *o,
	       exec_done_fn done, void *user, struct ava_error *err)
{
	struct exec_child *c = calloc(1, sizeof(*c));
	int input = -1, pipes[2] = {-1, -1}, rv;

	if (!c)
		return err_set(err, AVA_ENOMEM, "out of memory");
	*c = (struct exec_child){.loop = loop,
				 .pidfd = -1,
				 .pipe = -1,
				 .output_max = o->output_max,
				 .done = done,
				 .user = user};
	buf_init(&c->kept, o->keep);
	rv = make_input(o, &input, err);
	if (rv == 0 && (pipe2(pipes, O_CLOEXEC) != 0 || move_up(&pipes[1]) != 0))
		rv = err_sys(err, "a pipe for %.300s", o->argv[0]);
	c->pipe = pipes[0];
	if (rv == 0 && (errno = spawn(c, o, input, pipes[1])) != 0)
		rv = not_run(err, o->argv[0]);
	if (rv == 0)
		rv = watch(c, o, err);
	close_fd(&input);
	close_fd(&pipes[1]);
	if (rv != 0) {
		child_free(c);
		return rv;
	}
	*child = c;
	return 0;
}

void exec_kill(struct exec_child *c)
{
	siginfo_t info;

	kill_group(c);
	reap(c, &info);
	child_free(c);
}

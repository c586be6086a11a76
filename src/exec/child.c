/* Happy path: the input goes into a sealed file in memory, posix_spawn starts
 * the program on it, the loop polls pipe and pidfd; when the pidfd says that
 * it has ended, what is left of its group is killed, the rest of the pipe is
 * read, it is reaped, and `done` is told. One that is talked with has two more
 * pipes, in the place of input and output.
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
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "exec/cgroup.h"
#include "os/loop.h"

#define KILL_WAIT_MS 1000
/* Commands run at lower priority than the loop, which all other runs wait for, and than the
 * person's programs: a hundred commands at once held the loop for many of their slices. */
#define NICER      10
#define READ_BLOCK 4096

struct exec_child {
	struct os_loop *loop;
	struct os_poll *out, *end;
	struct os_timer *timer; /* fires at the time limit; after a kill, a second for its tree */
	pid_t pid;
	int pidfd, pipe;
	/* a child to talk with; else -1 and NULL */
	int to, from; /* the daemon's ends of two pipes */
	struct os_poll *reads, *says;
	struct buf unread;
	void (*said)(const char *bytes, size_t len, void *user);
	int told; /* second pipe of a sandbox; -1: none */
	struct cgroup group;
	uint64_t written, kept_of; /* bytes of output so far; bytes offered to `kept` and `tail` */
	size_t output_max, keep_tail;
	struct buf kept, tail;
	bool killed;
	enum exec_how why; /* reason of the kill */
	void (*output)(const char *bytes, size_t len, void *user);
	exec_done_fn done;
	void *user;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_talk(struct exec_child *c)
{
	os_poll_free(c->reads);
	os_poll_free(c->says);
	c->reads = c->says = NULL;
	close_fd(&c->to);
	close_fd(&c->from);
}

static void child_free(struct exec_child *c)
{
	close_talk(c);
	os_poll_free(c->out);
	os_poll_free(c->end);
	os_timer_free(c->timer);
	close_fd(&c->pidfd);
	close_fd(&c->pipe);
	close_fd(&c->told);
	cgroup_remove(&c->group);
	buf_fini(&c->kept);
	buf_fini(&c->tail);
	buf_fini(&c->unread);
	free(c);
}

/* Kill before reaping, while no other process can have its number. A sandbox ends its own tree. */
static void kill_group(struct exec_child *c)
{
	cgroup_kill(&c->group);
	(void)pidfd_send_signal(c->pidfd, c->told >= 0 ? SIGTERM : SIGKILL, NULL, 0);
	if (c->told < 0)
		(void)kill(-c->pid, SIGKILL);
}

static void child_stop(struct exec_child *c, enum exec_how why)
{
	if (c->killed)
		return;
	c->killed = true;
	c->why = why;
	kill_group(c);
	os_timer_set(c->timer, KILL_WAIT_MS);
}

void exec_keep(struct exec_child *c, const char *bytes, size_t len)
{
	size_t first = MIN(len, c->kept.max - c->kept.len), last = MIN(len - first, c->keep_tail);

	c->kept_of += len;
	(void)buf_add(&c->kept, bytes, first);
	(void)buf_add(&c->tail, bytes + len - last, last);
	if (c->tail.len > 2 * c->keep_tail)
		buf_drop(&c->tail, c->tail.len - c->keep_tail);
}

/* Read a few blocks of a pipe; false: the pipe has ended. */
static bool child_read_some(struct exec_child *c, int fd)
{
	char block[READ_BLOCK];

	for (int i = 0; i < 16; i++) {
		ssize_t n = read(fd, block, sizeof(block));

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		if (n == 0)
			return false;
		if (fd != c->pipe) {
			c->said(block, (size_t)n, c->user);
			continue;
		}
		c->written += (size_t)n;
		if (c->output)
			c->output(block, (size_t)n, c->user);
		else
			exec_keep(c, block, (size_t)n);
		if (c->written > c->output_max)
			child_stop(c, EXEC_OUTPUT);
	}
	return true;
}

static void readable(int events, void *user)
{
	struct exec_child *c = user;

	if (!child_read_some(c, c->pipe))
		os_poll_set(c->out, 0);
}

static void says(int events, void *user)
{
	struct exec_child *c = user;

	if (!child_read_some(c, c->from))
		os_poll_set(c->says, 0);
}

static void reads(int events, void *user)
{
	struct exec_child *c = user;
	ssize_t n = write(c->to, c->unread.data, c->unread.len);

	if (n < 0 && errno != EAGAIN && errno != EINTR) /* the child reads no more and may end */
		n = (ssize_t)c->unread.len;
	if (n > 0)
		buf_drop(&c->unread, (size_t)n);
	if (c->unread.len == 0)
		os_poll_set(c->reads, 0);
}

int exec_say(struct exec_child *c, const char *text, size_t len)
{
	if (len > c->unread.max - c->unread.len)
		return AVA_ETOOBIG;
	if (buf_add(&c->unread, text, len) != 0)
		return AVA_ENOMEM;
	os_poll_set(c->reads, OS_WRITE);
	return 0;
}

void exec_hang_up(struct exec_child *c, int64_t ms)
{
	close_talk(c);
	if (!c->killed)
		os_timer_set(c->timer, ms);
}

static void child_finish(struct exec_child *c, bool left)
{
	char told[256] = "";
	siginfo_t info = {0};
	struct exec_end end;

	(void)child_read_some(c, c->pipe);
	if (c->output)
		c->output("", 0, c->user);
	if (c->from >= 0)
		(void)child_read_some(c, c->from);
	if (c->told >= 0 && read(c->told, told, sizeof(told) - 1) < 0)
		told[0] = 0; /* the sandbox told nothing */
	(void)waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED | WNOHANG);
	if (c->tail.len > c->keep_tail)
		buf_drop(&c->tail, c->tail.len - c->keep_tail);
	end = (struct exec_end){
		.how = c->killed                    ? c->why
		       : info.si_code == CLD_EXITED ? EXEC_EXITED
						    : EXEC_SIGNALLED,
		.code = info.si_status,
		.output = c->kept.data ? c->kept.data : "",
		.output_len = c->kept.len,
		.tail = c->tail.data ? c->tail.data : "",
		.tail_len = c->tail.len,
		.written = c->kept_of,
		.told = told,
		.left = left,
	};
	c->done(&end, c->user);
	child_free(c);
}

static void child_ended(int events, void *user)
{
	struct exec_child *c = user;

	kill_group(c); /* processes left in the child's group */
	child_finish(c, false);
}

/* The time limit, or the second after a kill, is over. A child that cannot die yet (a dead network
 * disk) is left to whoever reaps us. After a pause of this process the end may be noticed later
 * than the limit. */
static void time_up(void *user)
{
	struct exec_child *c = user;
	struct pollfd p = {.fd = c->pidfd, .events = POLLIN};

	if (poll(&p, 1, 0) == 1)
		child_ended(OS_READ, c);
	else if (c->killed)
		child_finish(c, true);
	else
		child_stop(c, EXEC_TIMEOUT);
}

void exec_stop(struct exec_child *c)
{
	child_stop(c, EXEC_STOPPED);
}

/* ---- starting */

/* Move a descriptor out of 0 to 2, which the child's own will take. */
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

/* Make the pipes of a talk; `input` and `said` are the child's ends. */
static int make_talk(struct exec_child *c, const struct exec_options *o, int *input, int *said,
		     struct ava_error *err)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1};
	bool made = pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 &&
		    move_up(&in[0]) == 0 && move_up(&out[1]) == 0;

	*input = in[0];
	c->to = in[1];
	c->from = out[0];
	*said = out[1];
	return made ? 0 : err_sys(err, "pipes for %.300s", o->argv[0]);
}

/* Start the program with its descriptors 0 to 3. */
static int child_spawn(struct exec_child *c, const struct exec_options *o, int input, int said,
		       int output, int told)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	sigset_t none, all;
	int rv;

	sigemptyset(&none);
	sigfillset(&all);
	if (posix_spawn_file_actions_init(&fa) != 0 || posix_spawnattr_init(&at) != 0)
		return ENOMEM;
	posix_spawnattr_setflags(&at, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
					      POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&at, 0);
	posix_spawnattr_setsigmask(&at, &none);
	posix_spawnattr_setsigdefault(&at, &all);
	rv = posix_spawn_file_actions_adddup2(&fa, input, 0);
	rv = rv ? rv : posix_spawn_file_actions_adddup2(&fa, said, 1);
	rv = rv ? rv : posix_spawn_file_actions_adddup2(&fa, output, 2);
	if (o->sandboxed) {
		rv = rv ? rv : posix_spawn_file_actions_adddup2(&fa, told, 3);
		if (c->group.procs >= 0)
			rv = rv ? rv : posix_spawn_file_actions_adddup2(&fa, c->group.procs, 4);
	}
	rv = rv ? rv
		: posix_spawn_file_actions_addclosefrom_np(&fa, 3 + o->sandboxed +
									(c->group.procs >= 0));
	rv = rv ? rv : posix_spawn_file_actions_addchdir_np(&fa, "/");
	rv = rv ? rv
		: posix_spawn(&c->pid, o->argv[0], &fa, &at, (char *const *)o->argv,
			      (char *const *)o->env);
	posix_spawnattr_destroy(&at);
	posix_spawn_file_actions_destroy(&fa);
	if (rv == 0)
		(void)setpriority(PRIO_PGRP, (id_t)c->pid, getpriority(PRIO_PROCESS, 0) + NICER);
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

/* Kill the child and wait, a second at the most. */
static void end_now(struct exec_child *c)
{
	struct pollfd p = {.fd = c->pidfd, .events = POLLIN};
	siginfo_t info;

	kill_group(c);
	while (poll(&p, 1, KILL_WAIT_MS) < 0 && errno == EINTR)
		;
	(void)waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED | WNOHANG);
}

/* Watch a running child; if that cannot be set up, end it. */
static int child_watch(struct exec_child *c, const struct exec_options *o, struct ava_error *err)
{
	c->pidfd = pidfd_open(c->pid, 0);
	if (c->pidfd < 0) {
		err_sys(err, "watch %.300s", o->argv[0]);
		(void)kill(-c->pid, o->sandboxed ? SIGTERM : SIGKILL);
		(void)waitpid(c->pid, NULL, 0);
		return err->code;
	}
	c->out = os_poll_new(c->loop, c->pipe, readable, c);
	c->end = os_poll_new(c->loop, c->pidfd, child_ended, c);
	c->timer = os_timer_new(c->loop, time_up, c);
	if (o->said) {
		c->reads = os_poll_new(c->loop, c->to, reads, c);
		c->says = os_poll_new(c->loop, c->from, says, c);
	}
	if (c->out && c->end && c->timer && (!o->said || (c->reads && c->says))) {
		os_poll_set(c->out, OS_READ);
		if (c->says)
			os_poll_set(c->says, OS_READ);
		os_poll_set(c->end, OS_READ);
		if (o->timeout_ms > 0)
			os_timer_set(c->timer, o->timeout_ms);
		return 0;
	}
	end_now(c);
	return err_set(err, AVA_ENOMEM, "out of memory");
}

int exec_start(struct exec_child **child, struct os_loop *loop, const struct exec_options *o,
	       exec_done_fn done, void *user, struct ava_error *err)
{
	struct exec_child *c = calloc(1, sizeof(*c));
	int input = -1, said = -1, pipes[2] = {-1, -1}, news[2] = {-1, -1}, rv;

	if (!c)
		return err_set(err, AVA_ENOMEM, "out of memory");
	*c = (struct exec_child){.loop = loop,
				 .pidfd = -1,
				 .pipe = -1,
				 .to = -1,
				 .from = -1,
				 .told = -1,
				 .group = {.dir = -1, .procs = -1},
				 .output_max = o->output_max,
				 .keep_tail = o->keep_tail,
				 .output = o->output,
				 .said = o->said,
				 .done = done,
				 .user = user};
	buf_init(&c->kept, o->keep);
	buf_init(&c->tail, 3 * o->keep_tail);
	buf_init(&c->unread, o->unread_max);
	rv = o->said ? make_talk(c, o, &input, &said, err) : make_input(o, &input, err);
	if (rv == 0 && (pipe2(pipes, O_CLOEXEC) != 0 || move_up(&pipes[1]) != 0))
		rv = err_sys(err, "a pipe for %.300s", o->argv[0]);
	c->pipe = pipes[0];
	if (rv == 0 && o->sandboxed &&
	    (pipe2(news, O_CLOEXEC | O_NONBLOCK) != 0 || move_up(&news[1]) != 0))
		rv = err_sys(err, "a pipe for %.300s", o->argv[0]);
	c->told = news[0];
	if (rv == 0 && o->sandboxed)
		cgroup_make(&c->group);
	if (rv == 0 &&
	    (errno = child_spawn(c, o, input, o->said ? said : pipes[1], pipes[1], news[1])) != 0)
		rv = not_run(err, o->argv[0]);
	if (rv == 0)
		rv = child_watch(c, o, err);
	close_fd(&input);
	close_fd(&said);
	close_fd(&pipes[1]);
	close_fd(&news[1]);
	if (rv != 0) {
		child_free(c);
		return rv;
	}
	*child = c;
	return 0;
}

void exec_kill(struct exec_child *c)
{
	end_now(c);
	child_free(c);
}

/* Starting avad: found, detached, and waited for until it serves.
 *
 * Happy path: make a pipe, fork twice (the daemon must not be our child: it
 * would be a zombie of a program that lives on), become a session leader, set
 * descriptors 0-2 to /dev/null and 3 to the pipe, close all others, exec
 * "avad --ready-fd 3" with AVA_DATA_ROOT set; then read the ready line.
 *
 * What can fail: no avad anywhere, exec, and whatever avad reports. A failed
 * exec is told through the same pipe. Between fork and exec only calls that
 * are safe in a child of a program with threads. */
#include "client/start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/keys.h"
#include "base/ready.h"
#include "base/util.h"

extern char **environ;

#define READY_FD 3

/* ---- finding it */

static bool program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool try_join(char *out, size_t size, const char *dir, size_t dir_len, const char *rest)
{
	int n = snprintf(out, size, "%.*s/%s", (int)dir_len, dir, rest);

	return n > 0 && (size_t)n < size && out[0] == '/' && program(out);
}

static bool beside_self(char *out, size_t size)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *slash;

	if (n <= 0)
		return false;
	self[n] = '\0';
	slash = strrchr(self, '/');
	return slash && (try_join(out, size, self, (size_t)(slash - self), "avad") ||
			 try_join(out, size, self, (size_t)(slash - self), "../libexec/ava/avad"));
}

bool start_in_path(const char *name, char *out, size_t size)
{
	for (const char *p = getenv("PATH"); p; p = *p ? p + 1 : NULL) {
		size_t len = strcspn(p, ":");

		if (len > 0 && try_join(out, size, p, len, name))
			return true;
		p += len;
	}
	return false;
}

int start_find(char *out, size_t size, struct ava_error *err)
{
	const char *named = getenv("AVA_AVAD");

	if (named && named[0]) {
		char *real = realpath(named, NULL);
		bool good = real && program(real) && strlen(real) < size;

		if (good)
			memcpy(out, real, strlen(real) + 1);
		free(real);
		return good ? 0
			    : err_set(err, AVA_ENOENT, "AVA_AVAD is %.300s, which is no program",
				      named);
	}
	if (beside_self(out, size) || start_in_path("avad", out, size))
		return 0;
	return err_set(err, AVA_ENOENT,
		       "the daemon's program avad is not installed beside ava: set AVA_AVAD "
		       "to its path");
}

/* ---- starting it */

static bool decides(const char *name, size_t len)
{
	static const char *const ours[] = {"AVA_DATA_ROOT", "AVA_AVAD"};
	bool is = len > 4 && memcmp(name, "AVA_", 4) == 0;

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (strlen(ours[i]) == len && memcmp(name, ours[i], len) == 0)
			return false;
	for (size_t i = 0; keys_known[i] && !is; i++)
		is = strlen(keys_known[i]) == len && memcmp(name, keys_known[i], len) == 0;
	return is;
}

void start_for_others(void)
{
	char name[256];

	for (size_t i = 0; environ && environ[i];) {
		size_t len = strcspn(environ[i], "=");

		if (len >= sizeof(name) || !decides(environ[i], len)) {
			i++;
			continue;
		}
		memcpy(name, environ[i], len);
		name[len] = '\0';
		if (unsetenv(name) != 0) /* unsetenv moves later entries down */
			i++;
	}
}

struct launch {
	char program[PATH_MAX];
	char **env; /* owned, as is the string at [0]; the others are the process' */
	int null_fd, read_fd, write_fd;
};

/* Our environment with AVA_DATA_ROOT replaced. */
static int start_make_env(struct launch *l, const char *root, struct ava_error *err)
{
	static const char name[] = "AVA_DATA_ROOT=";
	size_t n = 0, k = 1, size = sizeof(name) + strlen(root);

	while (environ && environ[n])
		n++;
	l->env = calloc(n + 2, sizeof(*l->env));
	if (l->env)
		l->env[0] = malloc(size);
	if (!l->env || !l->env[0])
		return err_set(err, AVA_ENOMEM, "out of memory");
	snprintf(l->env[0], size, "%s%s", name, root);
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], name, sizeof(name) - 1) != 0)
			l->env[k++] = environ[i];
	return 0;
}

/* Above the numbers the child gives out, so that none is overwritten. */
static int raise_fd(int fd)
{
	int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 10);

	if (fd >= 0)
		close(fd);
	return high;
}

static int open_pipe(struct launch *l, struct ava_error *err)
{
	int fd[2];

	l->null_fd = raise_fd(open("/dev/null", O_RDWR | O_CLOEXEC));
	if (l->null_fd < 0)
		return err_sys(err, "/dev/null");
	if (pipe2(fd, O_CLOEXEC) != 0)
		return err_sys(err, "pipe");
	l->read_fd = raise_fd(fd[0]);
	l->write_fd = raise_fd(fd[1]);
	if (l->read_fd < 0 || l->write_fd < 0)
		return err_sys(err, "pipe");
	return 0;
}

/* The daemon's process up to exec; does not return. */
static void become_daemon(const struct launch *l)
{
	char *argv[] = {(char *)"avad", (char *)"--ready-fd", (char *)"3", NULL};
	static const char failed[] = "unreachable: its program cannot be run\n";
	struct sigaction plain = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		sigaction(s, &plain, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	umask(077);
	if (chdir("/") != 0 || dup2(l->null_fd, 0) < 0 || dup2(l->null_fd, 1) < 0 ||
	    dup2(l->null_fd, 2) < 0 || dup2(l->write_fd, READY_FD) < 0)
		_exit(1);
	close_range(READY_FD + 1, ~0u, 0);
	execve(l->program, argv, l->env);
	if (write(READY_FD, failed, sizeof(failed) - 1) < 0)
		_exit(2);
	_exit(1);
}

static int fork_twice(const struct launch *l, struct ava_error *err)
{
	sigset_t all, before;
	pid_t pid, got;

	/* No handler of ours may run in the child. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0) {
		setsid();
		pid = fork();
		if (pid == 0)
			become_daemon(l);
		_exit(pid < 0);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		return err_sys(err, "fork");
	do
		got = waitpid(pid, NULL, 0);
	while (got < 0 && errno == EINTR);
	return 0;
}

int start_daemon(const char *root, long long deadline_ms, bool (*go_on)(void *user), void *user,
		 struct ava_error *err)
{
	struct launch l = {.null_fd = -1, .read_fd = -1, .write_fd = -1};
	int rv = start_find(l.program, sizeof(l.program), err);

	if (rv == 0)
		rv = start_make_env(&l, root, err);
	if (rv == 0)
		rv = open_pipe(&l, err);
	if (rv == 0)
		rv = fork_twice(&l, err);
	if (rv == 0) {
		close(l.write_fd); /* the child's death ends our wait */
		l.write_fd = -1;
		rv = ready_wait(l.read_fd, deadline_ms, go_on, user, err);
	}
	for (int *fd = (int[]){l.null_fd, l.read_fd, l.write_fd, -2}; *fd != -2; fd++)
		if (*fd >= 0)
			close(*fd);
	if (l.env)
		free(l.env[0]);
	free(l.env);
	return rv;
}

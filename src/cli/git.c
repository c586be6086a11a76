/* Output of a program comes through a pipe, its errors and its input lie in files in memory, so
 * that neither side waits for the other. What can fail: there is no such program, or it says no;
 * then its last line of errors is the reason. */
#include "cli/git.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"

#define GIT_WORDS 20
#define GIT_WORST 400 /* bytes of errors that a sentence repeats */

extern char **environ;

/* The person's settings stay: who commits, keys, certificates, proxies, and configuration, which is
 * theirs wherever it stands (doc/OUTCOMES.md). All else of git's decides which repository it is. */
static bool git_keeps(const char *variable)
{
	static const char *const kept[] = {
		"GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG_",        "GIT_SSH",
		"GIT_SSL_",    "GIT_HTTP_",      "GIT_PROXY_",         "GIT_ASKPASS",
		"GIT_EDITOR=", "GIT_TERMINAL_",  "GIT_ALLOW_PROTOCOL="};

	if (strncmp(variable, "GIT_", 4) != 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		if (strncmp(variable, kept[i], strlen(kept[i])) == 0)
			return true;
	return false;
}

/* *Owned* (free), its strings are environ's. */
static char **git_environment(void)
{
	size_t n = 0, kept = 0;
	char **env;

	while (environ[n])
		n++;
	env = calloc(n + 1, sizeof(*env));
	for (size_t i = 0; env && i < n; i++)
		if (git_keeps(environ[i]))
			env[kept++] = environ[i];
	return env;
}

static int git_memory(const char *bytes, size_t len)
{
	int fd = memfd_create("ava-git", MFD_CLOEXEC);

	if (fd >= 0 && len > 0 && write(fd, bytes, len) != (ssize_t)len) {
		close(fd);
		return -1;
	}
	if (fd >= 0)
		(void)lseek(fd, 0, SEEK_SET);
	return fd;
}

/* The program's own reason: its last line that is not empty. */
static void git_reason(int fd, char out[GIT_WORST])
{
	char text[8 * GIT_WORST];
	off_t end = lseek(fd, 0, SEEK_END);
	ssize_t n = pread(fd, text, sizeof(text) - 1, MAX(end - (off_t)sizeof(text) + 1, (off_t)0));
	char *at;

	n = MAX(n, (ssize_t)0);
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
		n--;
	text[n] = '\0';
	/* Advice stands behind the reason. */
	while ((at = strrchr(text, '\n')) != NULL &&
	       (strncmp(at + 1, "hint: ", 6) == 0 || at[1] == '\t' || at[1] == '\0'))
		*at = '\0';
	at = at ? at + 1 : text;
	if (strncmp(at, "fatal: ", 7) == 0 || strncmp(at, "error: ", 7) == 0)
		at += 7;
	snprintf(out, GIT_WORST, "%.*s", GIT_WORST - 1, at);
}

/* "add" of `git -c NAME=VALUE --literal-pathspecs add`. */
static const char *git_verb(const char *const *argv)
{
	size_t at = 1;

	while (argv[at] && argv[at][0] == '-')
		at += strcmp(argv[at], "-c") == 0 && argv[at + 1] ? 2 : 1;
	return argv[at] ? argv[at] : "";
}

static int git_spawn(const struct git_call *c, int in, int out, int told, pid_t *pid)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	char **env = git_environment();
	sigset_t none;
	int rv;

	sigemptyset(&none);
	if (!env || posix_spawn_file_actions_init(&fa) != 0 || posix_spawnattr_init(&at) != 0) {
		free(env);
		return ENOMEM;
	}
	posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&at, &none);
	rv = posix_spawn_file_actions_addchdir_np(&fa, c->dir);
	rv = rv || in < 0 ? rv : posix_spawn_file_actions_adddup2(&fa, in, 0);
	rv = rv ? rv : posix_spawn_file_actions_adddup2(&fa, out, 1);
	rv = rv ? rv : posix_spawn_file_actions_adddup2(&fa, told, 2);
	rv = rv ? rv : posix_spawnp(pid, c->argv[0], &fa, &at, (char *const *)c->argv, env);
	posix_spawnattr_destroy(&at);
	posix_spawn_file_actions_destroy(&fa);
	free(env);
	return rv;
}

static void git_take(int fd, struct buf *out)
{
	char piece[4096];
	ssize_t n;

	while ((n = read(fd, piece, sizeof(piece))) != 0 && (n > 0 || errno == EINTR))
		if (n > 0 && buf_add(out, piece, (size_t)n) != 0)
			break;
	if (out->len > 0 && out->data[out->len - 1] == '\n')
		out->len--;
	if (out->data)
		out->data[out->len] = '\0';
}

int git_call(const struct git_call *c, struct ava_error *err)
{
	int pipes[2] = {-1, -1}, told = STDERR_FILENO, status = 0, rv = 0;
	/* A program whose words are shown may also ask, for a passphrase. */
	int in = c->in || c->out ? git_memory(c->in, c->len) : STDIN_FILENO;
	char reason[GIT_WORST] = "";
	pid_t pid = 0;

	if (c->out)
		told = pipe2(pipes, O_CLOEXEC) == 0 ? git_memory(NULL, 0) : -1;
	if (in < 0 || told < 0)
		rv = err_sys(err, "run %s", c->argv[0]);
	errno = rv ? 0 : git_spawn(c, in, c->out ? pipes[1] : STDERR_FILENO, told, &pid);
	if (rv == 0 && errno == ENOENT)
		rv = err_set(err, AVA_ENOENT, "there is no program %s, or no folder %.300s",
			     c->argv[0], c->dir);
	else if (rv == 0 && errno != 0)
		rv = err_sys(err, "run %s", c->argv[0]);
	if (c->out)
		close(pipes[1]);
	if (rv == 0 && c->out)
		git_take(pipes[0], c->out);
	if (c->out)
		close(pipes[0]); /* who still writes ends */
	while (rv == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (rv == 0 && status != 0) {
		if (c->out)
			git_reason(told, reason);
		rv = err_set(err, AVA_EIO, "%s %s: %s", c->argv[0], git_verb(c->argv),
			     reason[0] ? reason : "it said no");
	}
	if (c->out)
		close(told);
	if (in > STDERR_FILENO)
		close(in);
	return rv;
}

static int git_vsay(const char *dir, struct buf *out, struct ava_error *err, va_list ap)
{
	/* A call that nobody sees runs nothing of the repository's: its hooks may lie among files
	 * that a run has changed. */
	static const char *const quiet[] = {"-c", "core.hooksPath=/dev/null", "-c",
					    "core.fsmonitor=false"};
	const char *argv[GIT_WORDS] = {"git"};
	size_t first = 1;

	if (out) {
		memcpy(argv + 1, quiet, sizeof(quiet));
		first += ARRAY_LEN(quiet);
	}
	for (size_t n = first; n + 1 < GIT_WORDS && (argv[n] = va_arg(ap, const char *)) != NULL;)
		n++;
	return git_call(&(struct git_call){.dir = dir, .argv = argv, .out = out}, err);
}

int git_say(const char *dir, struct buf *out, struct ava_error *err, ...)
{
	va_list ap;
	int rv;

	va_start(ap, err);
	rv = git_vsay(dir, out, err, ap);
	va_end(ap);
	return rv;
}

int git_word(const char *dir, char *out, size_t size, struct ava_error *err, ...)
{
	struct buf said;
	va_list ap;
	int rv;

	buf_init(&said, size);
	va_start(ap, err);
	rv = git_vsay(dir, &said, err, ap);
	va_end(ap);
	if (rv == 0 && buf_check(&said) != 0)
		rv = err_set(err, AVA_EIO, "git says more than it should");
	snprintf(out, size, "%s", rv == 0 && said.data ? said.data : "");
	buf_fini(&said);
	return rv;
}

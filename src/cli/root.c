/* Recovery before reading; root.h.
 *
 * A daemon that answers has recovered already, and one that ended in order left
 * a mark. Else avad is run once to redo what the views lack: it takes the lock
 * of the root itself, so two readers, or a daemon that starts meanwhile, do
 * not get in each other's way: who comes second waits a moment for the other. */
#include "cli/root.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/unix_sock.h"
#include "base/util.h"
#include "cli/cli.h"
#include "client/start.h"
#include "journal/read.h"

#define IN_USE      3 /* exit code of `avad --recover` */
#define IN_USE_MS   100
#define IN_USE_WAIT 3 /* times; a program that embeds ava keeps its root for ever */

extern char **environ;

static bool has_journal(int rootfd)
{
	struct stat st;

	return fstatat(rootfd, "wal", &st, 0) == 0;
}

static bool served(int rootfd)
{
	int fd;

	if (unix_sock_connect(rootfd, UNIX_SOCK_NAME, 1000, &fd, NULL) != 0)
		return false;
	close(fd);
	return true;
}

/* Exit code of `avad --recover` for this root, -1 when it could not run. */
static int run_recovery(const char *avad)
{
	char *argv[] = {(char *)avad, "--recover", NULL};
	posix_spawn_file_actions_t files;
	int status = -1, rv;
	pid_t pid;

	if (posix_spawn_file_actions_init(&files) != 0)
		return -1;
	rv = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	for (int fd = 1; rv == 0 && fd <= 2; fd++)
		rv = posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_WRONLY, 0);
	if (rv == 0)
		rv = posix_spawn(&pid, avad, &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	if (rv != 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Exit code as above; 0 also when somebody else did it. */
static int recover_in_turn(int rootfd, const char *avad)
{
	const struct timespec moment = {.tv_nsec = IN_USE_MS * 1000000L};
	int code = run_recovery(avad);

	for (int i = 0; code == IN_USE && i < IN_USE_WAIT; i++) {
		nanosleep(&moment, NULL);
		if (read_is_clean(rootfd) || served(rootfd))
			return 0;
		code = run_recovery(avad);
	}
	return code;
}

static void recover(int rootfd)
{
	char avad[ROOT_PATH_MAX];
	struct ava_error err;
	int code;

	if (!has_journal(rootfd) || read_is_clean(rootfd) || served(rootfd))
		return;
	if (start_find(avad, sizeof(avad), &err) != 0) {
		cli_note("reading without recovery: %s", err.text);
		return;
	}
	code = recover_in_turn(rootfd, avad);
	/* A daemon may have started meanwhile: it has the lock and recovered. */
	if (code != 0 && code != IN_USE && !served(rootfd))
		cli_note("recovery before reading did not succeed; `avad --recover` says why");
}

int root_prepare(char path[ROOT_PATH_MAX], struct ava_error *err)
{
	int rv = settings_data_root(path, ROOT_PATH_MAX, err), rootfd;

	if (rv != 0)
		return rv;
	rootfd = read_open_root(path, err);
	if (rootfd < 0)
		return rootfd;
	recover(rootfd);
	close(rootfd);
	return 0;
}

/* ---- a log of its own */

#define FOREIGN_MAX ((size_t)2 << 30)

static char foreign[256]; /* the folder; "": none */
static const char *const laid[] = {"logs", "logs/ava", "logs/ava/0000-00-00.jsonl", "logs/index"};

/* Calls nothing that a handler of signals must not. */
static void clear_away(void)
{
	int fd = foreign[0] ? open(foreign, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	for (size_t i = ARRAY_LEN(laid); i > 0; i--)
		if (unlinkat(fd, laid[i - 1], 0) != 0)
			unlinkat(fd, laid[i - 1], AT_REMOVEDIR);
	close(fd);
	rmdir(foreign);
	foreign[0] = '\0';
}

static void on_end(int signo)
{
	clear_away();
	signal(signo, SIG_DFL);
	raise(signo);
}

static int lay_out(const char *data, size_t len)
{
	int dir = open(foreign, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1, index = -1, rv = -1;

	if (dir >= 0 && mkdirat(dir, laid[0], 0700) == 0 && mkdirat(dir, laid[1], 0700) == 0)
		fd = openat(dir, laid[2], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0 && sys_write_all(fd, data, len, 0) == 0)
		/* A file, so that no index is made of what is read once. */
		index = openat(dir, laid[3], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	rv = index >= 0 ? 0 : -1;
	if (index >= 0)
		close(index);
	if (fd >= 0)
		close(fd);
	if (dir >= 0)
		close(dir);
	return rv;
}

int root_of_file(const char *file, char path[ROOT_PATH_MAX], struct ava_error *err)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	const struct sigaction sa = {.sa_handler = on_end};
	const char *tmp = getenv("TMPDIR");
	char *data = NULL;
	size_t len;
	int rv = sys_read_file(AT_FDCWD, file, FOREIGN_MAX, &data, &len, err);

	if (rv != 0)
		return err_wrap(err, rv, "%s", file);
	if (snprintf(foreign, sizeof(foreign), "%s/ava-log.XXXXXX",
		     tmp && tmp[0] == '/' ? tmp : "/tmp") >= (int)sizeof(foreign) ||
	    !mkdtemp(foreign)) {
		foreign[0] = '\0';
		rv = err_sys(err, "a folder for temporary files");
	} else {
		atexit(clear_away);
		for (size_t i = 0; i < ARRAY_LEN(ends); i++)
			sigaction(ends[i], &sa, NULL);
		if (lay_out(data, len) != 0)
			rv = err_sys(err, "%s", foreign);
	}
	free(data);
	snprintf(path, ROOT_PATH_MAX, "%s", foreign);
	return rv;
}

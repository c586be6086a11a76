/* Recovery before reading; root.h.
 *
 * A daemon that answers has recovered already, and one that ended in order left
 * a mark. Else avad is run once to redo what the views lack: it takes the lock
 * of the root itself, so two readers, or a daemon that starts meanwhile, do
 * not get in each other's way: who comes second waits a moment for the other. */
#include "cli/root.h"

#include <errno.h>
#include <fcntl.h>
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
#include "base/unix_sock.h"
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

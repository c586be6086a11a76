/* See service.h. The two protocols are small enough to need no library: variables with a number of
 * descriptors from 3 on, and a datagram to a socket of the manager.
 *
 * What can fail: variables that are meant for another process (LISTEN_PID says so) or are nonsense,
 * descriptors of another kind. All that is as if there were none. */
#include "os/service.h"

#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/settings.h"
#include "base/unix_sock.h"

#define FIRST_FD 3
#define FDS_MAX  16

int service_socket(int family)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	long n = fds ? strtol(fds, NULL, 10) : 0;

	if (!pid || strtol(pid, NULL, 10) != getpid() || n > FDS_MAX)
		return -1;
	for (int fd = FIRST_FD; fd < FIRST_FD + n; fd++) {
		struct sockaddr_storage a;
		socklen_t len = sizeof(a), size = sizeof(int);
		int listens = 0;

		if (getsockname(fd, (struct sockaddr *)&a, &len) == 0 && a.ss_family == family &&
		    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens &&
		    fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0)
			return fd;
	}
	return -1;
}

/* A daemon that was started by hand puts its socket in the place of the held one, which nobody
 * reaches from then on. A queue that is full is one that somebody has. */
static bool service_reached(int held, int dirfd, const char *name)
{
	struct unix_peer ours = {0}, there = {0};
	int fd, rv = unix_sock_connect(dirfd, name, 1, &fd, NULL);

	if (rv == 0)
		rv = unix_sock_peer(held, &ours) != 0 || unix_sock_peer(fd, &there) != 0 ||
		     ours.pid != there.pid; /* of those that listen */
	if (fd >= 0)
		close(fd);
	return rv == 0 || rv == AVA_ETIMEOUT;
}

int service_socket_at(int dirfd, const char *name, bool *other)
{
	int fd = service_socket(AF_UNIX);
	struct sockaddr_un a = {0};
	socklen_t len = sizeof(a) - 1;
	struct stat named, ours;
	bool is = fd >= 0 && getsockname(fd, (struct sockaddr *)&a, &len) == 0 &&
		  stat(a.sun_path, &named) == 0 && fstatat(dirfd, name, &ours, 0) == 0 &&
		  named.st_ino == ours.st_ino && named.st_dev == ours.st_dev &&
		  service_reached(fd, dirfd, name);

	*other = fd >= 0 && !is;
	return is ? fd : -1;
}

void service_tell(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (len < 2 || len >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@') /* a name that is no file's */
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

/* The socket itself stays in the root: the runtime folder goes at the last logout, which a daemon
 * may outlive, and commands of cron know no such folder. */
void service_lead(const char *root, const char *name, bool make)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	char folder[PATH_MAX], path[PATH_MAX], temp[PATH_MAX], to[PATH_MAX], is[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (!run || run[0] != '/' || strlen(run) > PATH_MAX / 2 || !settings_root_is_usual(root) ||
	    stat(run, &st) != 0 || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		return;
	snprintf(folder, sizeof(folder), "%s/ava", run);
	snprintf(path, sizeof(path), "%s/ava/%s", run, name);
	snprintf(temp, sizeof(temp), "%s/ava/.%d", run, getpid());
	n = snprintf(to, sizeof(to), "%s/%s", root, name);
	if (make && n < (ssize_t)sizeof(to)) {
		(void)mkdir(folder, 0700);
		if (symlink(to, temp) == 0 && rename(temp, path) != 0)
			(void)unlink(temp);
		return;
	}
	n = readlink(path, is, sizeof(is) - 1); /* another root's is not ours to take */
	if (n > 0 && strncmp(is, to, (size_t)n) == 0 && to[n] == '\0')
		(void)unlink(path);
}

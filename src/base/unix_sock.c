/* Unix sockets by directory descriptor.
 *
 * Happy path: build the short address, socket, then connect or bind+listen. The mode is set on
 * the socket before bind, which Linux takes over for the file, so others can connect at no
 * moment.
 *
 * What can fail: no socket file, nobody listening, a full backlog, a file of another kind under
 * the name, /proc not mounted. */
#include "base/unix_sock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sys.h"

#define BACKLOG 256

static int address(int dirfd, const char *name, struct sockaddr_un *addr, struct ava_error *err)
{
	int n;

	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(addr->sun_path, sizeof(addr->sun_path), "/proc/self/fd/%d/%s", dirfd, name);
	if (n < 0 || (size_t)n >= sizeof(addr->sun_path))
		return err_set(err, AVA_EINVAL, "the socket name %.40s... is too long", name);
	return 0;
}

static int connect_error(int errnum, const char *name, struct ava_error *err)
{
	switch (errnum) {
	case ENOENT:
		if (access("/proc/self/fd", F_OK) != 0)
			return err_set(err, AVA_ECONNECT,
				       "/proc is not mounted: mount it to reach the daemon");
		return err_set(err, AVA_ENOENT, "there is no %s here", name);
	case ECONNREFUSED:
		return err_set(err, AVA_ECONNECT, "nobody listens on %s", name);
	case EAGAIN:
		return err_set(err, AVA_ETIMEOUT, "%s does not accept connections", name);
	case EINTR:
		return err_set(err, AVA_ECANCELED, "interrupted");
	default:
		errno = errnum;
		return err_sys(err, "connect to %s", name);
	}
}

int unix_sock_connect(int dirfd, const char *name, int timeout_ms, int *fd, struct ava_error *err)
{
	struct timeval limit = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
	struct timeval none = {0};
	struct sockaddr_un addr;
	int s, saved, rv;

	*fd = -1;
	rv = address(dirfd, name, &addr, err);
	if (rv != 0)
		return rv;
	s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s < 0)
		return err_sys(err, "socket");
	/* Bounds the wait for room in the listener's queue. */
	setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(s, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
		saved = errno;
		close(s);
		return connect_error(saved, name, err);
	}
	setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof(none));
	*fd = s;
	return 0;
}

static int remove_stale(int dirfd, const char *name, struct ava_error *err)
{
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : err_sys(err, "%s", name);
	if (!S_ISSOCK(st.st_mode)) /* a file of another kind is put aside */
		return sys_put_aside(dirfd, name) == 0 ? 0 : err_sys(err, "put %s aside", name);
	if (unlinkat(dirfd, name, 0) != 0 && errno != ENOENT)
		return err_sys(err, "replace %s", name);
	return 0;
}

int unix_sock_listen(int dirfd, const char *name, int *fd, struct ava_error *err)
{
	struct sockaddr_un addr;
	int s, rv;

	*fd = -1;
	rv = address(dirfd, name, &addr, err);
	if (rv == 0)
		rv = remove_stale(dirfd, name, err);
	if (rv != 0)
		return rv;
	s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s < 0)
		return err_sys(err, "socket");
	if (fchmod(s, 0600) != 0 || bind(s, (struct sockaddr *)&addr, sizeof(addr)) != 0 ||
	    listen(s, BACKLOG) != 0) {
		rv = err_sys(err, "listen on %s", name);
		close(s);
		return rv;
	}
	*fd = s;
	return 0;
}

int unix_sock_peer(int fd, struct unix_peer *peer)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	struct ucred cred;

	if (getsockname(fd, (struct sockaddr *)&addr, &len) != 0 || addr.ss_family != AF_UNIX)
		return AVA_EINVAL;
	len = sizeof(cred);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return AVA_EINVAL;
	peer->uid = cred.uid;
	peer->pid = cred.pid;
	return 0;
}

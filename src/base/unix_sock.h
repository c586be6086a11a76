/* Unix sockets inside an open directory: the address is /proc/self/fd/<dirfd>/<name>, so that
 * the length of the directory's path does not matter (an address holds 107 bytes). No loop in
 * here: the client uses it as well. */
#ifndef BASE_UNIX_SOCK_H
#define BASE_UNIX_SOCK_H

#include <sys/types.h>

struct ava_error;

#define UNIX_SOCK_NAME "ava.sock" /* in the data root */

struct unix_peer {
	uid_t uid;
	pid_t pid; /* 0 when it cannot be seen from our namespace */
};

/* Connect to `name` in `dirfd`. On success *fd is a blocking, close-on-exec
 * descriptor, owned by the caller. AVA_ENOENT: no socket there;
 * AVA_ECONNECT: nobody listens; AVA_ETIMEOUT: the listener's queue stayed
 * full for `timeout_ms`. */
int unix_sock_connect(int dirfd, const char *name, int timeout_ms, int *fd, struct ava_error *err);

/* Bind and listen on `name` in `dirfd`, mode 0600, replacing an existing socket: the caller must
 * know that nobody serves it. Any other file is put aside. *fd is non-blocking. */
int unix_sock_listen(int dirfd, const char *name, int *fd, struct ava_error *err);

/* Credentials of the process at the other end of an accepted or connected Unix socket, as of the
 * connection. AVA_EINVAL when `fd` is another kind. */
int unix_sock_peer(int fd, struct unix_peer *peer);

#endif

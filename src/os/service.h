/* The manager of services that runs this process (systemd): sockets that it holds for us, and what
 * it wants to be told (sd_listen_fds(3), sd_notify(3)). Without one nothing here does anything. */
#ifndef OS_SERVICE_H
#define OS_SERVICE_H

#include <stdbool.h>

/* The first socket of `family` (AF_UNIX, AF_INET) that was handed to this process and listens:
 * non-blocking, closed on exec, and for as long as the process lives; whoever closes it uses a
 * duplicate. -1: none. */
int service_socket(int family);
/* The same of AF_UNIX, where who connects to the file `name` in `dirfd` reaches it. `other`: there
 * is one that is reached otherwise, or not at all. The caller has the lock of `dirfd`. */
int service_socket_at(int dirfd, const char *name, bool *other);
/* "READY=1", "WATCHDOG=1", "STOPPING=1". What cannot be told is not: there is nobody to tell it. */
void service_tell(const char *state);
/* Make or take away the link $XDG_RUNTIME_DIR/ava/`name`, by which others find the socket `name` of
 * the data root, where that is the usual one. What cannot be done is not: nothing of ours asks
 * there. */
void service_lead(const char *root, const char *name, bool make);

#endif

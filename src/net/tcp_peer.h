/* The user at the other end of a connection within this machine. */
#ifndef NET_TCP_PEER_H
#define NET_TCP_PEER_H

#include <sys/types.h>

/* The user of the process at the other end of `fd`, a connected IPv4 socket of the loopback
 * address. (uid_t)-1: nobody holds that end any more. AVA_EUNSUPPORTED: the kernel does not say. */
int tcp_peer_uid(int fd, uid_t *uid);

#endif

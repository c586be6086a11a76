/* See tcp_peer.h.
 *
 * The kernel's table of sockets is asked for the one whose addresses are ours turned round
 * (NETLINK_SOCK_DIAG, one message each way). A socket without an inode has been closed: what the
 * table has for its owner is 0 then, which is nobody's word. "There is none" is also what a kernel
 * without this table says, so that our own end is asked for before that is believed. */
#include "net/tcp_peer.h"

#include <arpa/inet.h>
#include <ava.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PEER_LISTENS 10 /* TCP_LISTEN: a listener is found by its port alone */

struct peer_question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 ask;
};

/* Ask for the socket of `here` and `there`; 0 with what is known of it, else an errno. */
static int peer_ask(int table, const struct sockaddr_in *here, const struct sockaddr_in *there,
		    struct inet_diag_msg *found)
{
	struct peer_question q = {
		.head = {.nlmsg_len = sizeof(q),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST},
		.ask = {.sdiag_family = AF_INET,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = ~0u},
	};
	union {
		struct nlmsghdr head;
		char bytes[1024];
	} got;
	ssize_t n;

	q.ask.id.idiag_sport = here->sin_port;
	q.ask.id.idiag_dport = there->sin_port;
	q.ask.id.idiag_src[0] = here->sin_addr.s_addr;
	q.ask.id.idiag_dst[0] = there->sin_addr.s_addr;
	q.ask.id.idiag_cookie[0] = q.ask.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	if (send(table, &q, sizeof(q), 0) != (ssize_t)sizeof(q))
		return errno;
	n = recv(table, &got, sizeof(got), MSG_DONTWAIT);
	if (n >= (ssize_t)NLMSG_LENGTH(sizeof(int)) && got.head.nlmsg_type == NLMSG_ERROR)
		return -*(const int *)NLMSG_DATA(&got.head);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(*found)) || got.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return EPROTO;
	memcpy(found, NLMSG_DATA(&got.head), sizeof(*found));
	return found->idiag_state == PEER_LISTENS ? ENOENT : 0;
}

int tcp_peer_uid(int fd, uid_t *uid)
{
	struct sockaddr_in here, there;
	socklen_t nhere = sizeof(here), nthere = sizeof(there);
	struct inet_diag_msg found;
	int table, rv;

	if (getsockname(fd, (struct sockaddr *)&here, &nhere) != 0 || here.sin_family != AF_INET)
		return AVA_EUNSUPPORTED;
	*uid = (uid_t)-1;
	if (getpeername(fd, (struct sockaddr *)&there, &nthere) != 0)
		return errno == ENOTCONN ? 0 : AVA_EUNSUPPORTED;
	table = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (table < 0) /* a lack of room says nothing about the kernel */
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? 0 : AVA_EUNSUPPORTED;
	rv = peer_ask(table, &there, &here, &found);
	if (rv == 0 && found.idiag_inode != 0)
		*uid = found.idiag_uid;
	else if (rv == ENOENT)
		rv = peer_ask(table, &here, &there, &found);
	close(table);
	return rv == 0 ? 0 : AVA_EUNSUPPORTED;
}

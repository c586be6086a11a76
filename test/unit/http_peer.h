/* The other side of an HTTP client under test: a loopback listener on the same
 * loop, whose connections a handler answers byte by byte as the test likes. */
#ifndef UNIT_HTTP_PEER_H
#define UNIT_HTTP_PEER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/list.h"
#include "os/loop.h"

struct peer_conn {
	struct list node;
	struct peer *peer;
	int fd;
	struct os_poll *poll;
	struct buf in;   /* what came and was not consumed */
	struct buf out;  /* what waits to be written */
	size_t requests; /* whole ones seen on this connection */
	bool closing;    /* when `out` is empty */
	void *user;
};

struct peer {
	struct os_loop *loop;
	int fd, port;
	struct os_poll *poll;
	struct list conns;
	size_t accepted, requests;
	/* Bytes came and are in c->in; NULL: whole requests go to `request`. */
	void (*bytes)(struct peer_conn *c);
	/* `head` ends with the blank line; both are NUL-terminated. */
	void (*request)(struct peer_conn *c, const char *head, const char *body, size_t len);
	void *user;
};

void peer_start(struct peer *p, struct os_loop *loop);
void peer_stop(struct peer *p);
const char *peer_url(const struct peer *p); /* good until the next call */

void peer_send(struct peer_conn *c, const void *data, size_t len);
void peer_sends(struct peer_conn *c, const char *s);
void peer_sendf(struct peer_conn *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void peer_close(struct peer_conn *c); /* after what waits is written */
void peer_reset(struct peer_conn *c); /* RST, at once; `c` is gone */

#endif

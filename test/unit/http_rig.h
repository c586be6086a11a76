/* What the tests of the HTTP client share: a client, a pool and a peer on one
 * loop, and calls that write down what they are told and do as they are bid. */
#ifndef UNIT_HTTP_RIG_H
#define UNIT_HTTP_RIG_H

#include "unit.h"

#include <ava.h>

#include "base/buf.h"
#include "http_peer.h"
#include "net/http_client.h"
#include "os/loop.h"

struct addrinfo;
/* The name look-up of the whole program, libcurl's too, is rig_resolve where that is set. */
typedef int rig_resolve_fn(const char *host, const char *port, const struct addrinfo *hints,
			   struct addrinfo **out);
extern rig_resolve_fn *rig_resolve;
rig_resolve_fn rig_getaddrinfo; /* the real one */

#define CHUNKED  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define OK_REPLY "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

enum act { NOTHING, STOP, STOP_OTHER, RESTART, FREE_POOL, LIVES };

struct fixture;

struct got {
	struct http_call call;
	struct fixture *f;
	int heads, dones, rv;
	char text[512], kept[64]; /* of `done`: the sentence, retry-after */
	struct buf body;
	bool progress; /* what `data` answers */
	enum act in_head, in_data, in_done;
	struct got *other;
};

struct fixture {
	struct os_loop *loop;
	struct http_client *client;
	struct http_pool *pool;
	struct peer peer;
	/* what the peer does */
	const char *reply;
	size_t reply_len; /* 0: all of it */
	bool hang_up, reset, silent;
	bool reset_once;
	/* what it saw */
	char head[8192];
	char *body;
	size_t body_len;
	struct peer_conn *last;
};

void got_init(struct got *g, struct fixture *f);
void got_fini(struct got *g);
void got_start(struct got *g);
void got_wait(struct got *g);             /* until it is done, once */
void got_run(struct got *g);              /* both */
void got_body(struct got *g, size_t len); /* so much is sent */

void rig_answer(struct peer_conn *c, const char *head, const char *body, size_t len);
/* Another pool than the one before; of the peer, where no URL is given. */
void rig_pool(struct fixture *f, struct http_pool_options o);
void rig_wait_requests(struct fixture *f, size_t requests);
void rig_stop_clock(struct fixture *f); /* it goes on in rig_teardown */
int rig_setup(void **state);
int rig_teardown(void **state);

#endif

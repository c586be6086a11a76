/* The mock's network: one epoll loop with timers, listeners, connections
 * (plain or TLS), HTTP/1.1 (http1.c) and HTTP/2 (http2.c). What is answered is
 * none of its business: it hands whole requests to serve.c. */
#ifndef MOCK_CONN_H
#define MOCK_CONN_H

#include <openssl/ssl.h>

#include "ask.h"
#include "base/list.h"
#include "reply.h"

struct loop;
struct conn;
struct exchange;
struct serve;

/* ---- timers: one shot, in ms, embedded; inactive when not set */
struct timer {
	struct list node;
	int64_t due_ms;
	void (*fire)(struct timer *t);
};
struct loop *loop_new(void);
void loop_free(struct loop *l);
void loop_run(struct loop *l); /* until loop_stop */
void loop_stop(struct loop *l);
int64_t loop_now(const struct loop *l); /* cached, monotonic */
void timer_init(struct timer *t, void (*fire)(struct timer *t));
void timer_set(struct loop *l, struct timer *t, int64_t due_ms);
void timer_stop(struct loop *l, struct timer *t);

/* Listen on 127.0.0.1; `port` 0: any. Returns the port, or -1. `tls` may be
 * NULL; `tls_fault`: connections are answered with bytes that are no TLS. */
int loop_listen(struct loop *l, struct serve *s, int port, SSL_CTX *tls, bool tls_fault);

/* ---- one request and its reply */
struct exchange {
	struct list node; /* of the connection */
	struct conn *conn;
	int32_t stream;  /* HTTP/2; 0: HTTP/1.1 */
	struct ask *ask; /* until the reply is rendered; owned */
	struct buf body;
	/* the reply: played out by serve.c, sent by http1.c or http2.c */
	struct reply reply;
	size_t sent, released; /* bytes of reply.bytes: handed on, may be handed on */
	bool whole;            /* the end of the reply may be sent when all is */
	bool headed, ended;
	/* serve.c */
	struct timer timer;
	struct convo *convo;
	unsigned step, steps;
	int64_t start_ms, first_ms, latency_ms, delay_ms;
	enum fault_kind fault;
	size_t stop_at; /* where cut, stall and eof strike */
	uint32_t row;   /* of the account */
};

/* serve.c: a whole request arrived. */
void serve_request(struct serve *s, struct exchange *x);
/* serve.c: the exchange ends, `whole` or not; it is freed right after. */
void serve_gone(struct serve *s, struct exchange *x);

/* ---- for serve.c: how a reply goes out */
enum ending {
	END_WHOLE, /* as the protocol ends a body */
	END_CUT,   /* the connection (HTTP/2: the stream) breaks off */
	END_RESET, /* TCP reset */
};
/* `lines`: "name: value\n", lower case. A length of -1: not told. */
void exchange_head(struct exchange *x, int status, const char *lines, int64_t length);
void exchange_release(struct exchange *x, size_t upto);
/* May free `x`. */
void exchange_end(struct exchange *x, enum ending how);
/* HTTP/1.1: half a head, then a reset. */
void exchange_half_head(struct exchange *x);
struct loop *exchange_loop(struct exchange *x);
/* The address of who asks; 0.0.0.0 where it has gone. */
void exchange_peer(const struct exchange *x, char address[16]);

/* ---- between the files of the network */
struct conn {
	struct list node; /* all, or to be reaped */
	struct loop *loop;
	struct serve *serve;
	int fd;
	SSL *ssl; /* NULL: plain */
	void *h2; /* nghttp2_session; NULL: HTTP/1.1 */
	struct buf in, out;
	size_t out_at; /* of out, already written */
	struct list exchanges;
	bool receiving; /* inside nghttp2's parser: sending waits */
	bool handshaking, dead, want_write, close_when_sent, reset, garbage;
};

struct exchange *exchange_new(struct conn *c, int32_t stream);
void exchange_free(struct exchange *x); /* tells serve.c */
void conn_flush(struct conn *c);
void conn_kill(struct conn *c, bool reset); /* reaped at the end of the turn */
/* A header of the request. */
void ask_header(struct ask *a, const char *name, size_t nlen, const char *value, size_t vlen);
void ask_target(struct ask *a, const char *target, size_t len);

void http1_input(struct conn *c); /* bytes came into c->in */
void http1_head(struct exchange *x, int status, const char *lines, int64_t length);
void http1_data(struct exchange *x);
void http1_end(struct exchange *x);

bool http2_start(struct conn *c);
void http2_input(struct conn *c, const char *data, size_t len);
void http2_head(struct exchange *x, int status, const char *lines, int64_t length);
void http2_data(struct exchange *x);
void http2_reset(struct exchange *x);
void http2_stop(struct conn *c);

#define BODY_MAX (32u << 20) /* as the Messages API: 32 MB */

#endif

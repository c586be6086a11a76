/* HTTP client on the loop (libcurl multi inside) for model providers: few
 * hosts, many long streamed replies at once. One pool per provider keeps its
 * own connections and caps.
 *
 * Everything belongs to the loop thread. Callbacks come from the loop, never
 * from inside a call into this file; inside one, calls may be started and
 * stopped and any struct http_call whose call is over or stopped be freed. */
#ifndef NET_HTTP_CLIENT_H
#define NET_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct ava_error;
struct http_call_impl;
struct http_client;
struct http_pool;
struct os_loop;

/* NULL with err. Cheap: libcurl wakes up with the first pool. */
struct http_client *http_client_new(struct os_loop *loop, struct ava_error *err);
/* Every pool was freed. NULL is fine. */
void http_client_free(struct http_client *c);
/* Starts libcurl, with memory that is wiped: before anything else of it is used. AVA_ENOMEM. */
int http_client_start(struct http_client *c, struct ava_error *err);
/* The file of CA certificates of this machine; NULL: none was found. */
const char *http_client_ca(void);

struct http_pool_options {
	const char *base_url;     /* "https://api.example.com/v1"; http only to loopback */
	unsigned connections_max; /* 0: 100 with http2, else 10,000; calls above it wait */
	bool http2;               /* over TLS only; falls back to what the server speaks */
	const char *ca_file;      /* NULL: $SSL_CERT_FILE, else the system's */
	int64_t idle_ms;          /* 0: 90,000; without calls connections are closed then */
	/* A request may have an effect: each has a connection of its own, since one that died of
	 * old age as the request went out would make libcurl send it again. */
	bool once;
};

/* A proxy of the environment (https_proxy, all_proxy, no_proxy and their upper
 * case) is read here, once; loopback never takes one. `o` is *read during the
 * call*. NULL with AVA_EINVAL (the address), AVA_EDENIED (http to elsewhere),
 * AVA_ENOENT (no CA certificates) or AVA_ENOMEM. */
struct http_pool *http_pool_new(struct http_client *c, const struct http_pool_options *o,
				struct ava_error *err);
/* Every call is done or stopped. Connections are closed. NULL is fine; safe
 * inside a callback of its calls. */
void http_pool_free(struct http_pool *p);

struct http_pool_stats {
	unsigned calls, waiting; /* started and not over; of those: not yet handed to libcurl */
	unsigned connections;    /* sockets open now, idle ones too */
	uint64_t opened;         /* since the pool is there */
};
void http_pool_stats(const struct http_pool *p, struct http_pool_stats *out);

/* 0: the default. `connect` counts from when the call leaves the queue to when
 * its request can be written (name, TCP, TLS); `first` from there to the first
 * progress, or from the newest http_call_lives; `idle` between two; `total` from
 * http_call_start. */
struct http_timers {
	int64_t connect_ms, first_ms, idle_ms, total_ms; /* 5,000 120,000 60,000 1,800,000 */
};

#define HTTP_HEADERS_MAX  (64 * 1024)        /* bytes of a response's headers */
#define HTTP_RESPONSE_MAX (64 * 1024 * 1024) /* bytes of a response's body */

/* The caller's; zero what is not used. Lives until `done` is called or
 * http_call_stop returned. */
struct http_call {
	const char *path;           /* "/v1/messages", after the pool's base_url; copied */
	const char *method;         /* NULL: "POST"; else "GET" or "POST" */
	const char *const *headers; /* "Name: value"; copied, wiped as soon as they are sent */
	unsigned nheaders;
	struct buf body; /* taken by http_call_start when it succeeds; freed once sent */
	struct http_timers timers;
	/* All headers arrived (of the response itself, not of a 1xx). May be NULL. */
	void (*head)(struct http_call *c, int status);
	/* Bytes of the body. true: this was progress. NULL: they go into `answer`. */
	bool (*data)(struct http_call *c, const char *s, size_t n);
	/* *Borrowed*; buf_check says whether all fitted. NULL: the body is dropped. */
	struct buf *answer;
	/* Exactly once, unless stopped. 0: the whole response arrived, whatever
	 * its status; libcurl 7.88 says that of some reset HTTP/2 streams too, so
	 * that a body has to show its own end. AVA_ETIMEOUT: a timer ran out. AVA_ECONNECT: no
	 * connection came about. AVA_EIO: it broke, before or amid the response. AVA_EPROTO: the
	 * other side does not speak HTTP. AVA_ETOOBIG: HTTP_*_MAX. AVA_EDENIED: the certificate was
	 * refused. AVA_ENOMEM. `err`, never NULL, is borrowed and says in a sentence what to do or
	 * which timer. */
	void (*done)(struct http_call *c, int rv, const struct ava_error *err);
	void *user;
	/* Set here, not by the caller: */
	int status;                  /* 0 until `head` */
	bool framed;                 /* in `done`: the body had an end of its own, and it came */
	struct http_call_impl *impl; /* NULL: not started, or over */
	const char *kept;            /* see http_call_header */
};

/* On error nothing was started, `body` is still the caller's and `done` is not
 * called: AVA_EINVAL (a header or path with a control character), AVA_ENOMEM. */
int http_call_start(struct http_pool *p, struct http_call *c, struct ava_error *err);
/* Closes the stream; no callback comes any more. A call that is not running
 * is left alone. */
void http_call_stop(struct http_call *c);
/* In `data`: the body is about to end; from now on it may be silent for so long only. */
void http_call_ends(struct http_call *c, int64_t ms);
/* In `data`: no progress, but a sign of life; before the first progress its wait begins anew. */
void http_call_lives(struct http_call *c);
/* From `head` until `done` returns: a header of the response, of those that
 * are kept: request-id, x-request-id, x-generation-id, retry-after,
 * retry-after-ms, x-should-retry, content-type, date, mcp-session-id, location, and those with
 * "ratelimit-" in their name. NULL: absent. */
const char *http_call_header(const struct http_call *c, const char *name);

#endif

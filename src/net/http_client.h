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
/* Free the client after all its pools. NULL is fine. */
void http_client_free(struct http_client *c);
/* Start libcurl with memory that is wiped, before its first use. AVA_ENOMEM. */
int http_client_start(struct http_client *c, struct ava_error *err);
/* The file of CA certificates of this machine; NULL: none was found. */
const char *http_client_ca(void);

struct http_pool_options {
	const char *base_url;     /* "https://api.example.com/v1"; http only to loopback */
	unsigned connections_max; /* 0: 100 with http2, else 10,000; further calls wait */
	bool http2;               /* over TLS only; falls back to the server's version */
	const char *ca_file;      /* NULL: $SSL_CERT_FILE, else the system's */
	int64_t idle_ms;          /* 0: 90,000; without calls for so long connections are closed */
	/* Requests have effects: each gets a connection of its own, as libcurl repeats a request
	 * whose kept connection died as it went out. */
	bool once;
};

/* A proxy of the environment (https_proxy, all_proxy, no_proxy and their upper
 * case) is read here, once; loopback never takes one. `o` is *read during the
 * call*. NULL with AVA_EINVAL (the address), AVA_EDENIED (http to elsewhere),
 * AVA_ENOENT (no CA certificates) or AVA_ENOMEM. */
struct http_pool *http_pool_new(struct http_client *c, const struct http_pool_options *o,
				struct ava_error *err);
/* Free a pool whose calls are all done or stopped, and close its connections. NULL is fine; safe
 * inside a callback of its calls. */
void http_pool_free(struct http_pool *p);

struct http_pool_stats {
	unsigned calls, waiting; /* started and not over; waiting: not yet in libcurl */
	unsigned connections;    /* open sockets, idle ones too */
	uint64_t opened;         /* connections opened since the pool was made */
};
void http_pool_stats(const struct http_pool *p, struct http_pool_stats *out);

/* 0: the default. `connect` counts from when the call leaves the queue to when
 * its request can be written (name, TCP, TLS); `first` from there to the first
 * progress, or from the newest http_call_lives; `idle` between two; `total` from
 * http_call_start. */
struct http_timers {
	int64_t connect_ms, first_ms, idle_ms, total_ms; /* 5,000 120,000 60,000 1,800,000 */
};

#define HTTP_HEADERS_MAX  (64 * 1024)        /* most bytes of a response's headers */
#define HTTP_RESPONSE_MAX (64 * 1024 * 1024) /* most bytes of a response's body */

/* A call, the caller's; unused fields are zero. It lives until `done` is called or http_call_stop
 * returned. */
struct http_call {
	const char *path;           /* "/v1/messages", after the pool's base_url; copied */
	const char *method;         /* NULL: "POST"; else "GET", "POST" or "PUT" */
	const char *const *headers; /* "Name: value"; copied, wiped once sent */
	unsigned nheaders;
	struct buf body; /* taken by http_call_start when it succeeds; freed once sent */
	struct http_timers timers;
	/* All headers of the response arrived (not of a 1xx). May be NULL. */
	void (*head)(struct http_call *c, int status);
	/* Bytes of the body. Returns whether they are progress. NULL: the bytes go into
	 * `answer`. */
	bool (*data)(struct http_call *c, const char *s, size_t n);
	/* Gets the body; *borrowed*; buf_check tells whether it fitted. NULL: the body is
	 * dropped. */
	struct buf *answer;
	/* The call is over: called exactly once, unless the call is stopped. 0: the whole response
	 * arrived, whatever its status; libcurl 7.88 says that of some reset HTTP/2 streams too, so
	 * that a body has to show its own end. AVA_ETIMEOUT: a timer ran out. AVA_ECONNECT: no
	 * connection came about. AVA_EIO: it broke, before or amid the response. AVA_EPROTO: the
	 * other side does not speak HTTP. AVA_ETOOBIG: HTTP_*_MAX. AVA_EDENIED: the certificate was
	 * refused. AVA_ENOMEM. `err`, never NULL, is borrowed and says in a sentence what to do or
	 * which timer. */
	void (*done)(struct http_call *c, int rv, const struct ava_error *err);
	void *user;
	/* Results, not set by the caller: */
	int status;  /* status of HTTP; 0 until `head` */
	bool framed; /* in `done`: the body's own end came (its last chunk or its length) */
	struct http_call_impl *impl; /* NULL: not started, or over */
	const char *kept;            /* the headers that http_call_header gives */
};

/* Start a call. On error nothing was started, `body` is still the caller's and `done` is not
 * called: AVA_EINVAL (a header or path with a control character), AVA_ENOMEM. */
int http_call_start(struct http_pool *p, struct http_call *c, struct ava_error *err);
/* Stop the call; no callback follows. Does nothing for a call that is not running. */
void http_call_stop(struct http_call *c);
/* Called in `data`: the body is about to end, so silence is allowed for `ms` only from now on. */
void http_call_ends(struct http_call *c, int64_t ms);
/* Called in `data`: a sign of life without progress; before the first progress the wait for it
 * begins anew. */
void http_call_lives(struct http_call *c);
/* A header of the response, from `head` until `done` returns, if it is one that is kept:
 * request-id, x-request-id, x-generation-id, retry-after, retry-after-ms, x-should-retry,
 * content-type, date, mcp-session-id, location, and those with "ratelimit-" in their name. NULL:
 * absent. */
const char *http_call_header(const struct http_call *c, const char *name);

#endif

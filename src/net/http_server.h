/* HTTP/1.1 server on the loop (libmicrohttpd inside): Unix sockets and
 * loopback TCP alike. The handler sees whole requests. It answers at once,
 * or keeps the request and answers later, or starts a stream.
 *
 * Everything here belongs to the loop thread. Callbacks (`gone`, `drained`)
 * come at the end of a turn, never from inside a call into this file. */
#ifndef NET_HTTP_SERVER_H
#define NET_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ava_error;
struct os_loop;
struct http_server;
struct http_stream;

struct http_request {       /* read only; valid until it is answered or gone */
	const char *method; /* "GET" */
	const char *path;   /* decoded, without the query; %00 stays undecoded */
	const char *body;   /* NUL-terminated; "" when none */
	size_t body_len;
	/* the peer's user is known; over TCP (uid_t)-1 once its end is closed */
	bool has_peer;
	uid_t peer_uid;
	pid_t peer_pid;                     /* Unix sockets only */
	const unsigned char *target_sha256; /* TCP: hash of the raw target; NULL: no memory */
	void *user;                         /* for the handler; NULL at first */
};

/* Called once per complete request. It must lead to exactly one of
 * http_reply, http_reply_with and http_stream_start, now or later (unless the
 * request is gone first). */
typedef void (*http_handler_fn)(struct http_request *req, void *user);

struct http_server_options {      /* 0: the default */
	size_t body_max;          /* 2 MB: most bytes of a request's body; above: 413 */
	unsigned connections_max; /* 1,200: most connections; further ones wait to be accepted */
	int64_t idle_ms;          /* 60,000: a connection without progress is closed */
	int64_t heartbeat_ms;     /* 15,000: silence after which a stream gets a heartbeat */
};

/* Serve connections to `listen_fd`, which is *taken* also on error, and closed by http_server_stop.
 * NULL with err. `options` is read during the call; NULL: all defaults. */
struct http_server *http_server_new(struct os_loop *loop, int listen_fd,
				    const struct http_server_options *options,
				    http_handler_fn handler, void *user, struct ava_error *err);
/* Refuse new connections from now on; open ones go on. */
void http_server_quiesce(struct http_server *s);
/* Number of open connections, with idle ones and streams. */
unsigned http_server_connections(const struct http_server *s);
/* Number of requests not yet answered to the last byte, and streams. */
unsigned http_server_busy(const struct http_server *s);
/* Tell every kept request and stream that it is gone, close all and free `s`. Not from inside a
 * handler or callback of `s`; NULL is fine. */
void http_server_stop(struct http_server *s);

/* ---- requests. Names are compared without case for headers, exactly for the
 * query. NULL when absent (a query key without "=": ""). Valid like `req`. */
const char *http_header(const struct http_request *req, const char *name);
const char *http_query(const struct http_request *req, const char *name);
/* Call `each` for each query argument in order; its non-zero return stops and is returned. For
 * routes that refuse arguments they do not know. */
int http_query_each(const struct http_request *req,
		    int (*each)(const char *name, const char *value, void *user), void *user);

/* Set the hook of a kept request: called once if the peer hangs up (or the server stops) before the
 * answer; `req` is invalid afterwards. NULL: no hook; an answer to a peer that has gone is then
 * dropped. */
void http_on_gone(struct http_request *req, void (*gone)(struct http_request *req, void *user),
		  void *user);

struct http_field {
	const char *name, *value;
};

struct http_answer {
	int status;
	const char *content_type; /* NULL: none */
	const void *body;         /* copied, unless `fixed` */
	size_t len;
	bool fixed;                      /* `body` outlives the server (page assets) */
	const struct http_field *fields; /* further header fields; copied */
	size_t nfields;
};

/* Answer and give `req` up. Out of memory closes the connection. */
void http_reply(struct http_request *req, int status, const char *content_type, const void *body,
		size_t len);
void http_reply_with(struct http_request *req, const struct http_answer *answer);

/* ---- streams (SSE, long listings). A stream copies what is written into a
 * queue that is empty, and takes no memory, while nothing waits. */
#define HTTP_STREAM_HIGH (32 * 1024)       /* bytes waiting at which the writer shall stop */
#define HTTP_STREAM_MAX  (8 * 1024 * 1024) /* most bytes that may wait */

struct http_stream_hooks {
	/* Called after a write returned 1: the queue is short again. May be NULL. */
	void (*drained)(struct http_stream *st, void *user);
	/* Called when the peer hung up or the server stops: `st` is invalid. May be NULL. */
	void (*gone)(struct http_stream *st, void *user);
	void *user;
	bool heartbeat; /* SSE: send a comment after 15 s without bytes */
};

/* Send `head`, then its body if any, and keep the stream open. `req` is given up either way; NULL:
 * out of memory (the connection is closed, no hook is called). */
struct http_stream *http_stream_start(struct http_request *req, const struct http_answer *head,
				      const struct http_stream_hooks *hooks);
/* Write whole frames: a heartbeat may come between two writes.
 * 0; 1: taken, but HTTP_STREAM_HIGH is reached: wait for `drained`;
 * AVA_ETOOBIG or AVA_ENOMEM: nothing of it was taken. */
int http_stream_write(struct http_stream *st, const void *data, size_t len);
size_t http_stream_waiting(const struct http_stream *st); /* bytes in the queue */
/* Send the waiting bytes, then end the stream; `st` is invalid at once. */
void http_stream_end(struct http_stream *st);
/* Break the stream off, which the peer can tell from an end. Calls `gone`. */
void http_stream_abort(struct http_stream *st);

#endif

/* One CURLM on the loop. A pool has several: libcurl searches a host's
 * connections one by one, so that a multi with thousands of HTTP/1.1
 * connections would make each new call slow. */
#ifndef NET_HTTP_MULTI_H
#define NET_HTTP_MULTI_H

#include "net/http_pool.h"

#define HTTP_MULTI_CALLS 128 /* without multiplexing */
#define HTTP_STREAMS     100 /* a connection, with */

struct http_multi {
	struct list node; /* pool->multis */
	struct http_pool *pool;
	CURLM *curl;
	struct os_timer *timer;
	struct list calls;  /* http_call_impl.node */
	struct list dead;   /* stopped while libcurl ran; taken out right after */
	struct list unsent; /* http_call_impl.unsent */
	struct list socks;  /* http_sock.node: connections by their local port */
	unsigned ncalls;    /* of both lists */
	unsigned nsent;     /* past HTTP_DIALING */
	unsigned ndialled;  /* have a socket of their own under way */
	unsigned nsocks;
	unsigned cap; /* connections, as libcurl was told */
	unsigned inside;
	bool retired; /* takes no new calls; freed when it has none */
	struct deadline tune_due;
	unsigned tune_sent; /* nsent when it was set: no change, so they are stuck */
};

struct http_multi *http_multi_new(struct http_pool *p); /* NULL: no memory */
void http_multi_free(struct http_multi *m);             /* has no calls */
bool http_multi_has_room(const struct http_multi *m);

/* im->easy is set up. 0 or AVA_ENOMEM. */
int http_multi_add(struct http_multi *m, struct http_call_impl *im);
/* Take it out of libcurl, at once or as soon as libcurl returns; `im` is
 * freed then (http_call_free). */
void http_multi_drop(struct http_multi *m, struct http_call_impl *im);
/* Take it out at once; libcurl is not running. It stays the caller's. */
void http_multi_take(struct http_multi *m, struct http_call_impl *im);
/* Its request can be written. */
void http_multi_sent(struct http_multi *m, struct http_call_impl *im);

/* Its request goes out from this local port: how long that connection had been
 * silent. 0: it is new, or unknown. */
int64_t http_multi_idle_ms(struct http_call_impl *im, int port);

/* For CURLOPT_OPENSOCKETFUNCTION and its like, set by http_call.c. */
curl_socket_t http_multi_open(void *impl, curlsocktype purpose, struct curl_sockaddr *addr);
int http_multi_close(void *multi, curl_socket_t fd);

#endif

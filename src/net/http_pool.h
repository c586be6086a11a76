/* What the two rooms of the HTTP client share: a client with its pools and their queues
 * (http_pool.c), and calls that are inside libcurl (http_call.c). http_client.h is the
 * face. */
#ifndef NET_HTTP_POOL_H
#define NET_HTTP_POOL_H

#include <curl/curl.h>

#include "base/list.h"
#include "net/http_client.h"
#include "net/http_target.h"
#include "os/loop.h"

/* Easy handles kept for the next calls: runs that began together also end their
 * turns together. A call of its own holds one too, so these are not more. */
#define HTTP_SPARES 256

#define HTTP_MULTI_CALLS  128   /* without multiplexing */
#define HTTP_STREAMS      100   /* a connection, with */
#define HTTP_UPLOAD_BYTES 16384 /* CURLOPT_UPLOAD_BUFFERSIZE: libcurl's least */

struct http_sock;

struct http_client {
	struct os_loop *loop;
	struct http_sock **socks; /* by descriptor; NULL: not of libcurl */
	size_t nsocks;
	unsigned pools;
	bool curl; /* libcurl was started */
};

struct http_pool {
	struct http_client *client;
	struct http_target target;
	char *ca_file; /* NULL: plain http */
	bool http2, once;
	unsigned connections_max;
	int64_t idle_ms;
	struct list waiting; /* http_call_impl.node, oldest first */
	struct list multis;  /* http_multi.node */
	unsigned ncalls, nwaiting;
	struct os_timer *idle;  /* drop connections and handles */
	struct os_timer *again; /* the pump goes on in the next turn */
	CURL *spares[HTTP_SPARES];
	unsigned nspares;
	struct os_task pump;
	unsigned inside; /* callbacks of its calls may be running */
	bool dying;      /* http_pool_free came from inside */
	unsigned connections;
	uint64_t opened;
	char known[400];          /* "+host:port:address" that a connection had; "": none */
	int64_t names_amiss_till; /* a look-up hung or failed: until then `known` is used */
};

/* One CURLM on the loop. A pool has several: libcurl searches a host's
 * connections one by one, so that a multi with thousands of HTTP/1.1
 * connections would make each new call slow. */
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
	struct os_timer *tune;
	bool tuning;        /* it is set; then: */
	unsigned tune_sent; /* nsent at that time: no change, so they are stuck */
};

enum http_phase {
	HTTP_WAITING, /* in the pool's queue */
	HTTP_DIALING, /* handed to libcurl; its request cannot be written yet */
	HTTP_SENT,    /* no progress yet */
	HTTP_FLOWING,
};

struct http_call_impl {
	struct http_call *call; /* NULL: stopped, nobody is told anything */
	struct http_pool *pool;
	struct http_multi *multi; /* from HTTP_DIALING on */
	CURL *easy;
	struct list node; /* pool->waiting, multi->calls or multi->dead */
	struct os_timer *timer;
	int64_t timer_at; /* when it fires; a later end is found out then */
	enum http_phase phase;
	int64_t phase_at; /* when the phase's own time is over */
	int64_t hold_at;  /* until then the request is kept for a repetition; 0: it is not */
	int64_t total_at;
	struct http_timers timers; /* with defaults filled in */
	struct buf body;
	size_t sent; /* of the body, handed to libcurl */
	size_t body_len;
	struct curl_slist *headers; /* one block with the strings; NULL: wiped */
	size_t headers_size;
	struct curl_slist *resolve; /* libcurl reads it; NULL: names are looked up */
	char *url;                  /* until handed to libcurl */
	void *upload;               /* libcurl's buffer that still holds the body's end */
	struct list unsent;         /* multi->unsent while it does */
	bool get, heads_over, dialled;
	bool moved; /* to another multi, once */
	int fd;     /* socket last opened for it */
	int fault;  /* enum of http_call.c: why we broke it off; 0: we did not */
	size_t head_bytes, data_bytes;
	struct buf kept; /* "name\0value\0"..., see http_call_header */
	char text[CURL_ERROR_SIZE];
};

/* ---- http_pool.c */

/* Something changed that may let calls go on. */
void http_pool_wake(struct http_pool *p);
void http_pool_enter(struct http_pool *p);
void http_pool_leave(struct http_pool *p); /* `p` may be gone afterwards */
/* It is in no list and libcurl does not have it: tell the caller, free it. */
void http_call_over(struct http_call_impl *im, int rv, const struct ava_error *err);
void http_call_free(struct http_call_impl *im);
/* It was taken out of libcurl and is to be sent again: it waits, before the others. */
void http_call_again(struct http_call_impl *im);
/* The request is with libcurl to the last byte, or will never be. */
void http_call_forget(struct http_call_impl *im);

/* Is `at` inside an upload buffer of libcurl's that belongs to one transfer alone? */
bool http_is_upload(const void *at);
/* The kernel gets its pages back; it reads as zeroes and stays allocated. */
void http_upload_empty(void *at);

/* ---- http_call.c */

/* Options that are the same for all calls of a pool. 0 or AVA_ENOMEM. */
int http_easy_init(const struct http_pool *p, CURL *easy);
/* Hand it, which has im->easy, to libcurl. 0 or AVA_ENOMEM. */
int http_call_dial(struct http_call_impl *im, struct http_multi *m);
/* The end of its time may have come, or of a part of it. */
void http_call_late(void *impl);

struct http_multi *http_multi_new(struct http_pool *p); /* NULL: no memory */
void http_multi_free(struct http_multi *m);             /* has no calls */
/* Take a call out of libcurl, at once or as soon as libcurl returns; `im` is
 * freed then. */
void http_multi_drop(struct http_multi *m, struct http_call_impl *im);

#endif

/* Shared by the two parts of the HTTP client: clients with their pools and queues (http_pool.c),
 * and calls inside libcurl (http_call.c). http_client.h is the public header. */
#ifndef NET_HTTP_POOL_H
#define NET_HTTP_POOL_H

#include <curl/curl.h>

#include "base/list.h"
#include "net/http_client.h"
#include "net/http_target.h"
#include "os/loop.h"

/* Easy handles kept for the next calls: runs that began together also end their turns together.
 * A call under way holds one, too, so there are no more spares than there were calls at once. */
#define HTTP_SPARES 256

#define HTTP_MULTI_CALLS  128   /* most calls of a multi without multiplexing */
#define HTTP_STREAMS      100   /* most streams of a multiplexed connection */
#define HTTP_UPLOAD_BYTES 16384 /* CURLOPT_UPLOAD_BUFFERSIZE: libcurl's least */

struct http_sock;

struct http_client {
	struct os_loop *loop;
	struct http_sock **socks; /* the sockets by descriptor; NULL: not libcurl's */
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
	struct os_timer *idle;  /* drops connections and handles when no call came for idle_ms */
	struct os_timer *again; /* runs the pump in the next turn */
	CURL *spares[HTTP_SPARES];
	unsigned nspares;
	struct os_task pump;
	unsigned inside; /* > 0: callbacks of the pool's calls may be running */
	bool dying;      /* http_pool_free was called from inside */
	unsigned connections;
	uint64_t opened;
	char known[400];          /* "+host:port:address" of the newest connection; "": none */
	int64_t names_amiss_till; /* a look-up hung or failed: use `known` until then */
};

/* One CURLM on the loop. A pool has several, since libcurl searches a host's connections one by
 * one: thousands of HTTP/1.1 connections in one multi would make each new call slow. */
struct http_multi {
	struct list node; /* the multi's place in pool->multis */
	struct http_pool *pool;
	CURLM *curl;
	struct os_timer *timer;
	struct list calls;  /* http_call_impl.node */
	struct list dead;   /* calls stopped while libcurl ran; removed right after */
	struct list unsent; /* http_call_impl.unsent */
	struct list socks;  /* http_sock.node: connections by their local port */
	unsigned ncalls;    /* number of calls in `calls` and `dead` */
	unsigned nsent;     /* number of calls past HTTP_DIALING */
	unsigned ndialled;  /* number of calls with a connection under way */
	unsigned nsocks;
	unsigned cap; /* most connections allowed in libcurl */
	unsigned inside;
	bool retired; /* takes no new calls; freed after the last one */
	struct os_timer *tune;
	bool tuning;        /* the timer `tune` runs; then also: */
	unsigned tune_sent; /* nsent when `tune` was set: when unchanged, calls are stuck */
};

enum http_phase {
	HTTP_WAITING, /* the call is in the pool's queue */
	HTTP_DIALING, /* the call is in libcurl; the request cannot be written yet */
	HTTP_SENT,    /* the request is sent, no progress yet */
	HTTP_FLOWING,
};

struct http_call_impl {
	struct http_call *call; /* NULL: the call was stopped, no callback follows */
	struct http_pool *pool;
	struct http_multi *multi; /* set from HTTP_DIALING on */
	CURL *easy;
	struct list node; /* place in pool->waiting, multi->calls or multi->dead */
	struct os_timer *timer;
	int64_t timer_at; /* when `timer` fires; it finds a later deadline then */
	enum http_phase phase;
	int64_t phase_at; /* deadline of the phase */
	int64_t hold_at;  /* the request is kept for a repetition until then; 0: not kept */
	int64_t total_at;
	struct http_timers timers; /* the call's timers, with defaults filled in */
	struct buf body;
	size_t sent; /* bytes of the request's body that libcurl has */
	size_t body_len;
	struct curl_slist *headers; /* the list and its strings in one block; NULL: wiped */
	size_t headers_size;
	struct curl_slist *resolve; /* addresses for libcurl; NULL: names are looked up */
	char *url;                  /* until handed to libcurl */
	void *upload;               /* libcurl's buffer while it holds the body's end */
	struct list unsent;         /* multi->unsent while `upload` is set */
	bool get, put, heads_over, dialled;
	bool moved; /* to another multi, once */
	int fd;     /* socket opened last for the call */
	int fault;  /* enum of http_call.c: why the call was broken off; 0: it was not */
	size_t head_bytes, data_bytes;
	struct buf kept; /* headers for http_call_header: "name\0value\0"... */
	char text[CURL_ERROR_SIZE];
};

/* ---- http_pool.c */

/* Look again whether waiting calls can go on. */
void http_pool_wake(struct http_pool *p);
void http_pool_enter(struct http_pool *p);
void http_pool_leave(struct http_pool *p); /* may free `p` */
/* Tell the caller and free the call, which is in no list and not in libcurl. */
void http_call_over(struct http_call_impl *im, int rv, const struct ava_error *err);
void http_call_free(struct http_call_impl *im);
/* Queue a call that was taken out of libcurl again, before the others. */
void http_call_again(struct http_call_impl *im);
/* Free the request: libcurl has its last byte, or it will never be sent. */
void http_call_forget(struct http_call_impl *im);

/* CURLOPT_BUFFERSIZE. When a buffer is filled, libcurl reads on in another turn of the loop, so it
 * should hold a short reply; each waiting call has one. */
long http_buffer_bytes(void);
/* Is `at` in an upload buffer of libcurl that belongs to one transfer alone? */
bool http_is_upload(const void *at);
/* Wipe the buffer, which stays allocated: its pages go back to the kernel when many have some. */
void http_upload_empty(void *at);

/* ---- http_call.c */

/* Set the options that all calls of a pool share. 0 or AVA_ENOMEM. */
int http_easy_init(const struct http_pool *p, CURL *easy);
/* Hand a call with im->easy to libcurl. 0 or AVA_ENOMEM. */
int http_call_dial(struct http_call_impl *im, struct http_multi *m);
/* Check whether the call, or a phase of it, is out of time. */
void http_call_late(void *impl);

struct http_multi *http_multi_new(struct http_pool *p); /* NULL: no memory */
void http_multi_free(struct http_multi *m);             /* the multi has no calls */
/* Take a call out of libcurl, at once or as soon as libcurl returns; `im` is
 * freed then. */
void http_multi_drop(struct http_multi *m, struct http_call_impl *im);

#endif

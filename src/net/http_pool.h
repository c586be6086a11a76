/* What the files of the HTTP client share: the client, its pools and the
 * calls in them. http_client.h is the face. */
#ifndef NET_HTTP_POOL_H
#define NET_HTTP_POOL_H

#include <curl/curl.h>

#include "base/list.h"
#include "net/deadline.h"
#include "net/http_client.h"
#include "net/http_names.h"
#include "net/http_target.h"
#include "os/loop.h"

/* Easy handles kept for the next calls: runs that began together also end their
 * turns together. A call of its own holds one too, so these are not more. */
#define HTTP_SPARES 256

struct http_sock;

struct http_client {
	struct os_loop *loop;
	struct os_timer *timer; /* for the first deadline */
	int64_t armed_at;       /* INT64_MAX: not armed */
	struct deadlines deadlines;
	struct http_sock **socks; /* by descriptor; NULL: not of libcurl */
	size_t nsocks;
	http_lookup_fn lookup;
	unsigned pools;
	bool curl; /* libcurl was started */
};

struct http_pool {
	struct http_client *client;
	struct http_target target;
	char *ca_file; /* NULL: plain http */
	bool http2;
	unsigned connections_max;
	int64_t idle_ms;
	struct list waiting; /* http_call_impl.node, oldest first */
	struct list multis;  /* http_multi.node */
	unsigned ncalls, nwaiting;
	struct http_names *names;  /* NULL: nothing to look up */
	struct deadline names_due; /* while waiting calls need a lookup */
	struct deadline idle_due;  /* drop connections and handles */
	struct deadline pump_due;  /* the pump goes on in the next turn */
	int64_t idle_since;        /* when the last call was over */
	CURL *spares[HTTP_SPARES];
	unsigned nspares;
	struct os_task pump;
	unsigned inside; /* callbacks of its calls may be running */
	bool dying;      /* http_pool_free came from inside */
	unsigned connections;
	uint64_t opened, lookups;
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
	struct http_addresses *addresses;
	struct list node; /* pool->waiting, multi->calls or multi->dead */
	struct deadline due;
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
	char *url;          /* until handed to libcurl */
	void *upload;       /* libcurl's buffer that still holds the body's end */
	struct list unsent; /* multi->unsent while it does */
	bool get, heads_over, dialled;
	bool moved; /* to another multi, once */
	int fd;     /* socket last opened for it */
	int fault;  /* enum of http_call.c: why we broke it off */
	size_t head_bytes, data_bytes;
	struct buf kept; /* "name\0value\0"..., see http_call_header */
	char text[CURL_ERROR_SIZE];
};

/* ---- http_pool.c */

/* Something changed that may let calls go on. */
void http_pool_wake(struct http_pool *p);
void http_pool_enter(struct http_pool *p);
void http_pool_leave(struct http_pool *p); /* `p` may be gone afterwards */
CURL *http_pool_easy(struct http_pool *p); /* NULL: no memory */
void http_pool_easy_put(struct http_pool *p, CURL *easy);
void http_pool_call_over(struct http_pool *p);
/* It was taken out of libcurl and is to be sent again: it waits, before the others. */
void http_pool_again(struct http_pool *p, struct http_call_impl *im);

/* ---- http_client.c */

/* Adds or moves `d`; AVA_ENOMEM only when it adds. */
int http_client_due(struct http_client *c, struct deadline *d, int64_t at);

#endif

/* Shared by the two parts of the guarded fetcher: hosts, their queues and rules (web_fetch_host.c),
 * and calls inside libcurl (web_fetch_call.c). web_fetch.h is the public header. */
#ifndef NET_WEB_FETCH_HOST_H
#define NET_WEB_FETCH_HOST_H

#include <curl/curl.h>
#include <sys/socket.h>

#include "base/list.h"
#include "net/address.h"
#include "net/web_fetch.h"
#include "os/loop.h"

struct robots;

#define FETCH_OWN_MAX 64 /* most public addresses of this machine */

enum host_rules { RULES_NONE, RULES_ASKED, RULES_HAVE };

struct web_fetch_host {
	struct list node; /* in fetcher->hosts, where the last used is first */
	struct fetcher *fetcher;
	struct address_url root;
	struct list waiting; /* web_fetch_impl.node */
	unsigned running;
	int64_t next_at; /* when the next fetch may start */
	enum host_rules rules;
	/* why nothing of the host may be fetched; FETCH_OK: `robots` says what may */
	enum web_fetch_fault robots_fault;
	struct robots *robots; /* NULL with RULES_HAVE: everything is allowed */
	int64_t rules_until;
	struct web_fetch asked; /* the fetch of robots.txt */
};

struct fetcher {
	struct os_loop *loop;
	CURLM *curl; /* NULL: libcurl is not needed now */
	struct os_timer *timer, *again, *idle;
	struct list socks, hosts;
	struct list running; /* web_fetch_impl.node of fetches inside libcurl */
	struct os_task pump;
	unsigned nrunning, nhosts, ncalls;
	unsigned inside; /* > 0: libcurl is on the stack */
	bool robots;
	unsigned parallel, per_host;
	int64_t gap_ms;
	struct web_fetch_limits limits;
	const char *ca_file;
	char **listed; /* services that a person allowed, "host:port"; NULL ends it */
	struct curl_slist *resolve;
	struct sockaddr_storage own[FETCH_OWN_MAX]; /* public addresses of this machine */
	size_t nown;
	int64_t own_until;
};

struct web_fetch_impl {
	struct web_fetch *fetch;
	struct fetcher *fetcher;
	struct web_fetch_host *host; /* NULL: the fetch is between two hosts */
	struct list node;            /* place in host->waiting or fetcher->running */
	struct address_url url;
	CURL *easy; /* NULL: the fetch waits */
	struct os_timer *timer;
	struct curl_slist *headers;
	char *accept, *language;
	bool listed;  /* a person allowed this host and port */
	bool blocked; /* an address of the host was refused */
	bool encoded, heads_over;
	enum web_fetch_fault fault;
	size_t head_bytes, body_max;
	char text[CURL_ERROR_SIZE];
};

static inline int64_t web_fetch_now(const struct fetcher *fr)
{
	return os_now_ms(fr->loop);
}

static inline bool web_fetch_is_redirect(int status)
{
	return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* ---- web_fetch_host.c */

/* libcurl has finished the call: free the fetch, or let it wait again. */
void web_fetch_call_over(struct web_fetch_impl *im, enum web_fetch_fault fault);

/* ---- web_fetch_call.c */

/* Hand a fetch to libcurl. FETCH_OK, or a fault, and nothing was done. */
enum web_fetch_fault web_fetch_call_start(struct web_fetch_impl *im);
/* Take a fetch out of libcurl; does nothing when it is not inside. Not to call from inside
 * libcurl. */
void web_fetch_call_end(struct web_fetch_impl *im);
/* A timer of libcurl is due. */
void web_fetch_call_timer(void *fetcher);
/* Close all connections; no call may be inside. */
void web_fetch_call_close(struct fetcher *fr);

#endif

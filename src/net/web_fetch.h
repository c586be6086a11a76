/* Fetching what a model asks for, from the public network and from nowhere else. Its libcurl
 * multi, connections and name cache are its own and are never those of the services that ava
 * itself talks to (http_client.h).
 *
 * Whatever a URL or a name says, the address that is about to be connected decides, and again
 * the one that a kept connection has. Redirects are followed here, each as a URL of its own.
 * Time, headers, bytes as sent and bytes unpacked have bounds; no proxy, login or netrc is
 * ever used; a cookie is sent back within the fetch in which it was set, and then gone. robots.txt
 * is kept to, and a host is asked by so many at once and so often only. doc/SECURITY.md,
 * "Fetching", says what it is against.
 *
 * Loop thread only. `done` comes from the loop, never from inside a call into this file; inside
 * it, other fetches may be started and stopped. */
#ifndef NET_WEB_FETCH_H
#define NET_WEB_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct ava_error;
struct curl_slist;
struct web_fetch_impl;
struct fetcher;
struct http_client;
struct os_loop;

/* Outcomes: name, class, sentence that says what to do. A model is told no more about a failure, so
 * that it does not learn what stands where in a network. */
#define FETCH_FAULTS(X)                                                                            \
	X(FETCH_OK, "", "")                                                                        \
	X(FETCH_BAD_URL, "bad_url", "that is no URL that can be fetched")                          \
	X(FETCH_BLOCKED, "blocked_address",                                                        \
	  "that host is not of the public network, and none other is fetched from")                \
	X(FETCH_ROBOTS, "robots",                                                                  \
	  "the site's robots.txt does not allow it, or cannot be read: use another source")        \
	X(FETCH_UNREACHABLE, "unreachable",                                                        \
	  "the host is not there: check the name, or go on "                                       \
	  "without it")                                                                            \
	X(FETCH_TLS, "bad_certificate",                                                            \
	  "the host does not show a good certificate: use another "                                \
	  "source")                                                                                \
	X(FETCH_TIMEOUT, "timeout", "the host took too long: go on without it")                    \
	X(FETCH_TOO_LARGE, "too_large",                                                            \
	  "there is more than may be fetched at once: use a smaller "                              \
	  "page")                                                                                  \
	X(FETCH_REDIRECTS, "too_many_redirects",                                                   \
	  "it redirects in a circle, or too often: use "                                           \
	  "another source")                                                                        \
	X(FETCH_BAD_REDIRECT, "bad_redirect",                                                      \
	  "it redirects to what is not fetched (another scheme, from https to http, a host that "  \
	  "is not of the public network)")                                                         \
	X(FETCH_TYPE, "content_type", "it is of a type that cannot be read as text")               \
	X(FETCH_BROKEN, "broken",                                                                  \
	  "the answer broke off, or is no HTTP: try once more, or go on "                          \
	  "without it")                                                                            \
	X(FETCH_NO_MEMORY, "io", "out of memory")

enum web_fetch_fault {
#define X(name, class, sentence) name,
	FETCH_FAULTS(X)
#undef X
};
const char *web_fetch_class(enum web_fetch_fault fault); /* static, as is the next */
const char *web_fetch_sentence(enum web_fetch_fault fault);

struct web_fetch_limits {   /* 0: the default */
	int64_t connect_ms; /* 5,000: for name, TCP and TLS */
	int64_t total_ms;   /* 30,000: for one URL from its turn on, with redirects */
	int64_t slow_s;     /* 15: seconds that it may stay under 1 KB/s */
	size_t head_max;    /* 64 KB of headers */
};

struct fetcher_options {
	const char *const *inside; /* "host:port" of services that may be fetched although they are
				      not public; *copied*; NULL ends it; or NULL */
	bool robots;               /* keep to robots.txt */
	unsigned parallel;         /* most fetches at once; 0: 64 */
	unsigned per_host;         /* most fetches at once at one host; 0: 4 */
	int64_t host_gap_ms;       /* least time between two starts at one host */
	const char *ca_file;       /* NULL: as http_client.h finds it */
	struct web_fetch_limits limits;
	/* For tests: the addresses of names, in rows as of CURLOPT_RESOLVE; *copied*; NULL: names
	 * are looked up. */
	const char *const *resolve;
};

/* Make a fetcher. `client` (*borrowed* until fetcher_free) starts libcurl; its connections are not
 * shared. NULL with err: AVA_ENOMEM, AVA_EINVAL (an entry of `inside`). */
struct fetcher *fetcher_new(struct http_client *client, struct os_loop *loop,
			    const struct fetcher_options *o, struct ava_error *err);
void fetcher_free(struct fetcher *f); /* after every fetch is done or stopped; NULL is fine */

/* A fetch, the caller's; unused fields are zero. It lives until `done` is called or web_fetch_stop
 * returned. */
struct web_fetch {
	const char *url;          /* *copied* */
	const char *accept;       /* NULL: anything; not sent to other hosts; *copied* */
	const char *language;     /* header Accept-Language, likewise */
	const char *const *types; /* content types taken: "text/" a beginning, "+xml" an end, else
				   * the word; NULL ends it; NULL: all. *Borrowed*. */
	size_t body_max;          /* most bytes of the body, unpacked; 0: 2 MB */
	const char *big_type;     /* a type that may have big_max bytes; NULL: none; *borrowed* */
	size_t big_max;
	int64_t wait_ms; /* longest time of wait and fetch together; 0: 60,000 */
	void (*done)(struct web_fetch *f);
	void *user;
	/* Results, from `done` on: */
	enum web_fetch_fault fault;
	int status;       /* status of HTTP; with FETCH_OK too it may be one of an error */
	char *final_url;  /* malloc'd; URL of the body or of the failure; NULL: nowhere */
	char type[80];    /* content type in small letters, "text/html"; "": none */
	char charset[40]; /* charset as the server names it; "": none */
	struct buf body;  /* the caller's to buf_fini; with FETCH_TOO_LARGE the beginning */
	/* Private: */
	bool plain; /* the fetch is of robots.txt itself, whose rules do not hold for it */
	/* Redirects so far, time of the fetch's first turn (0: not yet), and cookies to send back:
	 * kept while the fetch goes on. */
	int hops;
	int64_t began_ms;
	struct curl_slist *cookies;
	struct web_fetch_impl *impl;
};

/* Start a fetch. On error nothing was started: AVA_EINVAL and AVA_EDENIED with a sentence about the
 * URL, AVA_ENOMEM. f->final_url is the URL in the form that is fetched, also when the fetch fails
 * later. */
int web_fetch_start(struct fetcher *fr, struct web_fetch *f, struct ava_error *err);
/* `f` is done, and its page leads on to `to` (an absolute URL): continue there as after a redirect;
 * `done` comes again. Else returns why not, without `done`. */
enum web_fetch_fault web_fetch_follow(struct fetcher *fr, struct web_fetch *f, const char *to);
/* Stop the fetch: `done` does not come, and f's memory is freed, also of a fetch that is not
 * running. */
void web_fetch_stop(struct web_fetch *f);
/* Free final_url, body and cookies. */
void web_fetch_fini(struct web_fetch *f);

#endif

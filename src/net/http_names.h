/* The addresses of one host, looked up on a thread of its own: one lookup at
 * a time however many calls wait, and none that keeps the loop from ending. */
#ifndef NET_HTTP_NAMES_H
#define NET_HTTP_NAMES_H

#include <curl/curl.h>
#include <stdint.h>

#include "net/http_client.h"

#define HTTP_NAMES_FRESH_MS 60000

/* Addresses in the form of CURLOPT_RESOLVE; freed with the last user. */
struct http_addresses {
	struct curl_slist entry;
	unsigned refs;
	char text[];
};
void http_addresses_put(struct http_addresses *a); /* NULL is fine */

struct http_names;
/* `ready` is called from the loop after each lookup. NULL: no memory. `host`
 * is copied. */
struct http_names *http_names_new(struct os_loop *loop, const char *host, unsigned port,
				  void (*ready)(void *user), void *user);
void http_names_free(struct http_names *n); /* NULL is fine; a lookup is left to itself */

/* 0: *out is theirs to use, with a reference for the caller. 1: a lookup goes
 * on; `ready` comes. AVA_ECONNECT, AVA_ENOMEM: it failed, and there are no
 * older addresses to fall back on; the next call tries again. */
int http_names_get(struct http_names *n, http_lookup_fn lookup, struct http_addresses **out,
		   struct ava_error *err);
/* A connection failed: look up anew before the next. */
void http_names_stale(struct http_names *n);

#endif

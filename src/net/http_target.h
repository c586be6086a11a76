/* The target of a pool's calls: the base address taken apart and judged, and the proxy of the
 * environment. No connection is made here. */
#ifndef NET_HTTP_TARGET_H
#define NET_HTTP_TARGET_H

#include <stdbool.h>

struct ava_error;

struct http_target {
	char *url;   /* without a slash at the end; owned */
	char *host;  /* for sentences: "api.example.com"; owned */
	char *proxy; /* NULL: none; may hold a password: never shown; owned */
	bool tls;
	bool loopback; /* a literal loopback address or localhost */
};

/* Take a base address apart. AVA_EINVAL, AVA_EDENIED (http to a host that is not loopback),
 * AVA_ENOMEM; *t is then empty. */
int http_target_init(struct http_target *t, const char *base_url, struct ava_error *err);
void http_target_fini(struct http_target *t);

/* Does `list` (no_proxy) name `host`? Entries are separated by commas or blanks; "*" names all;
 * "example.com" and ".example.com" name it and its subdomains; an address names itself; a ":port"
 * is cut off. */
bool http_target_no_proxy(const char *list, const char *host);

#endif

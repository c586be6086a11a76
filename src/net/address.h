/* Rules for what may be fetched on behalf of a model: network addresses, and URLs. Pure; no name is
 * looked up and nothing is connected here. A URL that passes says nothing about where its name
 * leads: each address is judged before it is connected (web_fetch_call.c). */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

struct Curl_URL; /* CURLU */
struct ava_error;
struct sockaddr;

enum address_kind {
	ADDRESS_PUBLIC,
	ADDRESS_INSIDE, /* loopback and private networks: a setting may allow a service there */
	ADDRESS_NEVER, /* link-local (clouds keep keys there), multicast, one inside another, … */
};

enum address_kind address_judge(const struct sockaddr *sa);

#define ADDRESS_URL_MAX 4096 /* most bytes of a URL */

struct address_url {
	struct Curl_URL *handle; /* what is fetched, as it is, so that no text is parsed twice */
	char *text;              /* the URL without fragment, as libcurl writes it */
	char *host;              /* the host in small letters, no brackets, no dot at its end */
	uint16_t port;
	bool tls;
};

/* Parse an http or https URL once, by libcurl's own parser; `base` (or NULL): what a relative URL
 * is resolved against. AVA_EINVAL (no such URL), AVA_EDENIED (a login in it, a port or a name that
 * is not of the public network), AVA_ENOMEM; *u is then empty. `inside` ("host:port", NULL ends it;
 * or NULL) lists services that a person allowed by the configuration: only their names and ports
 * are free. */
int address_url_parse(struct address_url *u, const char *text, const struct address_url *base,
		      const char *const *inside, struct ava_error *err);
void address_url_fini(struct address_url *u); /* an empty one is fine */

/* Does `inside` list the URL's host and port? */
bool address_is_listed(const char *const *inside, const struct address_url *u);
/* Is the text a valid entry of such a list: "host:port", "[::1]:8080"? */
bool address_is_entry(const char *entry);
bool address_same_origin(const struct address_url *a, const struct address_url *b);

#endif

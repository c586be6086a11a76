/* The door for browsers: HTTP on the loopback address, for people who have signed in.
 *
 * `ava dashboard` asks over the Unix socket for an address with a code in it, which is good for
 * one sign-in within a minute; from that the page and the daemon make keys, with which the page
 * signs each request (gateway/web_keys.h). The keys of open tabs and the port stand in web.json of
 * the data root, so that a page that is open goes on when the daemon comes back. doc/SECURITY.md
 * says what each check is against. MCP clients have a path and a token of their own
 * (gateway/mcp.h). Loop thread only. */
#ifndef GATEWAY_WEB_H
#define GATEWAY_WEB_H

#include <stdbool.h>

struct ava_error;
struct routes;
struct web;

/* Listens at once when somebody is signed in, else when a sign-in is asked for. `routes` is
 * *borrowed* until web_free, `log` is told of what can be done without. AVA_ENOMEM. */
int web_new(struct web **out, struct routes *routes, int root_fd,
	    void (*log)(const char *line, void *user), void *user, struct ava_error *err);
/* Take no new connections and end streams; requests under way go on. */
void web_quiesce(struct web *w);
unsigned web_busy(const struct web *w);
unsigned web_connections(const struct web *w);
void web_free(struct web *w); /* NULL is fine */

/* The page's files, compressed; generated from web/ (else a page that says how to make it). `path`
 * NULL ends the list. */
struct web_asset {
	const char *path, *type;
	const unsigned char *gzip;
	unsigned len;
};
extern const struct web_asset web_assets[];
extern const bool web_assets_made; /* false: only the page that says how */
const char *web_lacks(void);       /* why the page is missing; "": it is there */

#endif

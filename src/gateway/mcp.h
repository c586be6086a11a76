/* The door for MCP clients (modelcontextprotocol.io, 2026-07-28 and the versions with a
 * handshake): one JSON-RPC message in, its answer out, as JSON or as a stream of events.
 *
 * Every request counts as a model's: it may use the rows of mcp_tools.h, none of which starts a
 * run. A person speaks only through a form that the client has shown: as an answer to
 * elicitation/create, or with a requestState that was given out for this very call.
 * Loop thread only. */
#ifndef GATEWAY_MCP_H
#define GATEWAY_MCP_H

#include <stdbool.h>

struct ava_error;
struct buf;
struct core;
struct http_request;
struct mcp;

/* `streams`: how many are open is counted there; *borrowed until mcp_free*. AVA_ENOMEM. */
int mcp_new(struct mcp **out, struct core *core, unsigned *streams, struct ava_error *err);
/* After http_server_stop and the end of the runtime, when no request comes and no verb will answer.
 * NULL is fine. */
void mcp_free(struct mcp *m);
/* A request to /mcp, for `user`, who may ask. `far`: it came by network, and says in its header
 * what the message says; else (ava mcp) its query may have the folder of the client (cwd), the
 * id under which the same message may come again (id), and that it does (again). */
void mcp_serve(struct mcp *m, struct http_request *req, const char *user, bool far);
/* Does the value of Authorization hold the token? */
bool mcp_allows(struct mcp *m, const char *authorization);
/* The token, made when there is none yet, or anew with `renew`: then streams of clients with the
 * old token break off. */
int mcp_token(struct mcp *m, bool renew, struct buf *token, struct ava_error *err);

#endif

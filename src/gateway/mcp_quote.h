/* A proposal on its way to a person and back: as a form where the client has forms, else as a quote
 * with how to confirm it. A model cannot confirm: a yes is only what a form brings back. */
#ifndef GATEWAY_MCP_QUOTE_H
#define GATEWAY_MCP_QUOTE_H

#include <jansson.h>

struct ava_error;
struct mcp;
struct mcp_call;
struct rpc;

/* What a verb says of a proposal, as mcp_then_fn: it is shown, told, or has become a run. */
void mcp_quote_told(struct mcp_call *c, json_t *proposal, const struct ava_error *err);
/* The call comes again, with the state of its form. */
void mcp_quote_returned(struct mcp_call *c, const char *state);
/* A response of a client that was asked on a stream. To what is not asked (any more) nothing is
 * said. */
void mcp_quote_response(struct mcp *m, const struct rpc *r, const char *session);

#endif

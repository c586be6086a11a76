/* The MCP door's secrets, in mcp.json of the data root (0600): the token that clients of the
 * loopback port send, and the key that proves ids and states which clients carry to be ours, also
 * after a restart. Made when first needed. Loop thread only. */
#ifndef GATEWAY_MCP_SECRET_H
#define GATEWAY_MCP_SECRET_H

#include <stdbool.h>

struct ava_error;

#define MCP_TOKEN_LEN 64 /* hex digits */
#define MCP_SEAL_LEN  32 /* hex digits */

struct mcp_secret {
	int root_fd;
	bool known; /* token and key are read or made */
	char token[MCP_TOKEN_LEN + 1];
	unsigned char key[32];
};

/* AVA_EIO and others: mcp.json cannot be read or written; the next call tries again. `renew`: make
 * a new token, which ends the old one. */
int mcp_secret_have(struct mcp_secret *s, bool renew, struct ava_error *err);
/* Is the value of Authorization "Bearer " and the token? Never makes a token. */
bool mcp_secret_allows(struct mcp_secret *s, const char *authorization);
/* A code for `text` that only the key can make; needs `known`. */
void mcp_secret_seal(const struct mcp_secret *s, const char *text, char out[MCP_SEAL_LEN + 1]);
bool mcp_secret_is_seal(const struct mcp_secret *s, const char *text, const char *seal);

#endif

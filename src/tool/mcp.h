/* MCP servers, and their tools as tools of ours: `mcp__SERVER__TOOL`.
 *
 * Which there are is said in mcp.json beside config.yaml (doc/MCP-SERVERS.md), by the person alone;
 * a working folder has no say. One is started when a quote or a call needs it, is shared by runs,
 * and ended when nobody has used it for a while. Its tools are in the tool set from its first
 * start on, as it lists them now; a run keeps the definitions that it was confirmed with, in its
 * spec. What a server says of itself decides nothing: rights are what the person's entry says.
 * Loop thread only. */
#ifndef TOOL_MCP_H
#define TOOL_MCP_H

#include <stddef.h>
#include <stdint.h>

#include "agent/tool.h"

struct mcp_client;
struct os_loop;
struct redact;
struct ava_error;

/* Read mcp.json at `path`, which need not be there; start nothing; *out stays unchanged where there
 * is no server. Servers write to mcp/NAME below `root`, ava's data root; the rest of `root` and the
 * folder of `path` are hidden from them. Secrets in the file are added to `redact` (NULL is fine),
 * which is *borrowed*, and are removed from what a failed server says. A bad entry disables its
 * server, a bad file all, with the reason. AVA_ENOMEM. */
int mcp_client_new(struct mcp_client **out, struct os_loop *loop, const char *path,
		   const char *root, struct redact *redact, struct ava_error *err);
/* MB of the disk that servers' files must leave free. NULL is fine. */
void mcp_client_keep_free(struct mcp_client *m, uint64_t mb);
/* End all waits: the runtime stops. NULL is fine. */
void mcp_client_quiesce(struct mcp_client *m);
/* End the servers, in two seconds at the most; no call may be under way. NULL is fine. */
void mcp_client_free(struct mcp_client *m);

/* The server that a role's wish names ("mcp__fs__read", "mcp__fs__*", "mcp__fs"), as a bit; 0: no
 * such wish, or no such server. */
uint32_t mcp_client_wanted(const struct mcp_client *m, const char *wish);

/* 0, or the first failure, with a sentence; called once, never from inside mcp_client_ready. */
typedef void (*mcp_client_ready_fn)(int rv, const struct ava_error *err, void *user);
/* Start these servers (not 0) where needed and read their lists: `done` reports. It is not called
 * after AVA_EBUSY, AVA_ENOMEM. */
int mcp_client_ready(struct mcp_client *m, uint32_t servers, mcp_client_ready_fn done, void *user,
		     struct ava_error *err);

struct mcp_server_state {
	const char *name, *how; /* "stdio", "http" */
	const char *version;    /* version of the protocol; "": unknown */
	const char *why;        /* why the server could not be used last time; "": it could */
	size_t tools, left_out;
};
/* Server i, *borrowed* as long as the loop does not turn; NULL behind the last. */
const struct mcp_server_state *mcp_client_look(const struct mcp_client *m, size_t i);

/* Template row of all tools of servers, without name, description and schema: records make the
 * tools again from it, and calls find the server by the name. */
extern const struct tool tool_mcp;

#endif

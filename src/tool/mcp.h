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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/tool.h"

struct mcp_client;
struct os_loop;
struct redact;
struct ava_error;

/* Reads mcp.json at `path`, which need not be there; starts nothing; *out stays as it is where
 * there is no server. What servers write is in mcp/NAME below `root`, ava's data root; else none of
 * it, and of the folder of `path`, is shown to one. Secrets in the file are added to `redact` (NULL
 * is fine), which is *borrowed*: what a server says why it failed is told without them. A server
 * whose entry is wrong, and each where the file is, cannot be had, with the reason. AVA_ENOMEM. */
int mcp_client_new(struct mcp_client **out, struct os_loop *loop, const char *path,
		   const char *root, struct redact *redact, struct ava_error *err);
/* So many MB of the disk stay free of what servers write. NULL is fine. */
void mcp_client_keep_free(struct mcp_client *m, uint64_t mb);
/* Whoever waits is told that the runtime stops, and nobody waits any more. NULL is fine. */
void mcp_client_quiesce(struct mcp_client *m);
/* No call is under way. Servers end: two seconds at the most. NULL is fine. */
void mcp_client_free(struct mcp_client *m);

/* The server that a wish of a role is about ("mcp__fs__read", "mcp__fs__*", "mcp__fs"), as a bit;
 * 0: no such wish, or no such server. */
uint32_t mcp_client_wanted(const struct mcp_client *m, const char *wish);

/* 0, or the first that went wrong, with a sentence; once, and never from inside mcp_client_ready.
 */
typedef void (*mcp_client_ready_fn)(int rv, const struct ava_error *err, void *user);
/* These servers (not 0) are started, where they are not, and list their tools: `done` says so. It
 * is not called after AVA_EBUSY, AVA_ENOMEM. */
int mcp_client_ready(struct mcp_client *m, uint32_t servers, mcp_client_ready_fn done, void *user,
		     struct ava_error *err);

struct mcp_server_state {
	const char *name, *how; /* "stdio", "http" */
	const char *version;    /* of the protocol; "": not known */
	const char *why;        /* why it could not be had last time; "": it could */
	size_t tools, left_out;
};
/* Server i, *borrowed* as long as the loop does not turn; NULL behind the last. */
const struct mcp_server_state *mcp_client_look(const struct mcp_client *m, size_t i);

/* What the row of each of their tools is like, without name, description and schema: by it a
 * record's tools are made again, and their calls find the server by the name. */
extern const struct tool tool_mcp;

#endif

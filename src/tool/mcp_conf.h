/* mcp.json: which MCP servers there are, how each is reached and what it is given
 * (doc/MCP-SERVERS.md). Read once. */
#ifndef TOOL_MCP_CONF_H
#define TOOL_MCP_CONF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

#define MCP_SERVERS_MAX 32 /* each is a bit of a set (tool/mcp.h) */

struct ava_error;
struct redact;

struct mcp_conf {
	const char *name;
	const char *broken; /* what is wrong with the entry; then only `name` is set beside it */
	const char *const *argv, *const *env; /* of a process; NULL: the server is over HTTP */
	const char *start;                    /* folder in which the process starts */
	const char *url, *path; /* up to the host's name, and the rest; only over HTTP */
	const char *const *headers;
	const char *const *reads, *const *writes; /* absolute paths; NULL at the end */
	bool network;
	unsigned rights;                /* set of TOOL_PRIVATE and TOOL_OUT */
	int call_ms, start_ms, idle_ms; /* limits of a call, of a start, and of idle time */
};

struct mcp_confs {
	struct mcp_conf *v;
	size_t n;
	bool broken;      /* the file is bad: the one entry stands for all in it */
	struct arena mem; /* holds all texts */
};

/* Read the file; a missing one has no servers. A fault, or a file that others could write, disables
 * the entry or all of them, and nothing else. Texts that look like secrets are added to `redact`,
 * which may be NULL. AVA_ENOMEM. `mem` is the caller's to end, also then. */
int mcp_confs_read(struct mcp_confs *out, const char *path, struct redact *redact,
		   struct ava_error *err);

#endif

/* A data root that is held and the runtime in it, as avad and an embedding program open
 * it: configuration, folder, lock, loop, secrets, runtime. */
#ifndef AVA_HOUSE_H
#define AVA_HOUSE_H

#include "ava/config.h"
#include "ava/core.h"
#include "os/lock.h"

struct house {
	struct config config;
	char root[4096];
	int root_fd;
	struct lock lock;
	struct os_loop *loop;
	struct redact *redact;
	struct mcp_client *mcp; /* of mcp.json beside config.yaml */
	struct core *core;
};

#define HOUSE_CLOSED                                                                               \
	{                                                                                          \
		.root_fd = -1, .lock = LOCK_CLOSED                                                 \
	}

/* The folder `root` (NULL: the one of the settings), made with 0700 when it is missing and
 * `make` says so, and its lock. */
int house_hold(struct house *h, const char *root, bool make, struct ava_error *err);
/* A loop with its pool, and what must not be shown. */
int house_loop(struct house *h, struct ava_error *err);
/* The name of the search service that is configured; NULL: none. */
const char *house_search(const struct config *c);
/* The MCP servers that the configuration has; *out stays as it is where it can have none. */
int house_mcp(struct mcp_client **out, struct os_loop *loop, const char *root,
	      struct redact *redact, struct ava_error *err);
/* What can be known of the options is filled in, then the runtime is opened. */
int house_open(struct house *h, struct core_options *o, struct ava_error *err);
/* The runtime closes; the loop may still be turned. */
void house_stop(struct house *h);
/* The rest, what was opened of it; stops first. */
void house_close(struct house *h);

#endif

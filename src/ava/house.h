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
	struct mcp_client *mcp; /* the servers of mcp.json beside config.yaml */
	struct core *core;
};

#define HOUSE_CLOSED                                                                               \
	{                                                                                          \
		.root_fd = -1, .lock = LOCK_CLOSED                                                 \
	}

/* Opens the folder `root` (NULL: that of the settings) and takes its lock. `make`: a missing folder
 * is made with 0700. */
int house_hold(struct house *h, const char *root, bool make, struct ava_error *err);
/* Makes the loop with its pool, and the table of secrets. */
int house_loop(struct house *h, struct ava_error *err);
/* The name of the configured search service; NULL: none. */
const char *house_search(const struct config *c);
/* The MCP servers of the configuration; *out keeps its value when there is no home. */
int house_mcp(struct mcp_client **out, struct os_loop *loop, const char *root,
	      struct redact *redact, struct ava_error *err);
/* Fills in the options that the configuration decides, then opens the runtime. */
int house_open(struct house *h, struct core_options *o, struct ava_error *err);
/* Asks the database of the cluster (cluster_command). `word` try: status, with the URL of the
 * environment alone. */
int house_cluster(const char *word, struct os_loop *loop, struct buf *out, struct ava_error *err);
/* Closes the runtime; the loop may still be turned. */
void house_stop(struct house *h);
/* Stops, and closes all that was opened. */
void house_close(struct house *h);

#endif

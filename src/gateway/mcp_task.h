/* Runs as tasks of MCP (io.modelcontextprotocol/tasks). The id of a task is the id of its run with
 * our seal, so that it cannot be guessed and holds after a restart of client and daemon. */
#ifndef GATEWAY_MCP_TASK_H
#define GATEWAY_MCP_TASK_H

#include <jansson.h>

struct mcp_call;
struct op_status;

/* The task of c->run, a new reference; `status` NULL: it has just begun. The secret is there. */
json_t *mcp_task(const struct mcp_call *c, const struct op_status *status);
/* The methods. */
void mcp_task_get(struct mcp_call *c);
void mcp_task_update(struct mcp_call *c);
void mcp_task_cancel(struct mcp_call *c);

#endif

/* What a request needs of MCP servers before it can be quoted: those that its role names are
 * started first, since the quote says which tools they have. */
#ifndef AVA_SERVERS_H
#define AVA_SERVERS_H

#include <jansson.h>
#include <stdint.h>

struct core;

/* As bits (tool/mcp.h), by the arguments of a verb: the role that they name, that of each run of a
 * group, that of a change. Not those whose tools the request leaves out. */
uint32_t servers_of(const struct core *c, const json_t *args);

#endif

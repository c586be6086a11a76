/* ava mcp install and uninstall: the entry of ava in the settings of a program that uses MCP
 * servers. */
#ifndef CLI_MCP_INSTALL_H
#define CLI_MCP_INSTALL_H

#include <stdbool.h>

/* `client`: "claude", "codex", "cursor" or "zed". With `http` the entry has an address and the
 * token instead of a command; without `in` it is taken out. Says what was done. Returns enum
 * cli_exit. */
int mcp_install(const char *client, bool in, bool http);

#endif

/* The tools of one MCP server, as it lists them, as rows of the tool set. Names, texts and schemas
 * are a stranger's: what cannot be a tool is left out and counted. Loop thread only. */
#ifndef TOOL_MCP_ROWS_H
#define TOOL_MCP_ROWS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/tool.h"
#include "base/arena.h"
#include "base/buf.h"

struct mcp_row;

struct mcp_rows { /* zero: none */
	struct arena mem;
	struct mcp_row *v[128];
	size_t n;
	unsigned left_out;
	bool headers; /* it would want arguments repeated in headers of HTTP: such are left out */
};

/* One of its list; `like`: what its row is like beside name, text and schema. false: no memory. */
bool mcp_rows_take(struct mcp_rows *t, const struct tool *like, const char *server,
		   const json_t *o);
/* The list is whole: by name, into the tool set. */
void mcp_rows_add(struct mcp_rows *t);
/* What the server calls it; NULL: it has none of that full name. *same: its description and schema
 * are those of `as`, too. */
const char *mcp_rows_name(const struct mcp_rows *t, const struct tool *as, bool *same);
void mcp_rows_free(struct mcp_rows *t); /* out of the tool set as well */

/* A result for the model: its texts; what is no text is named, and what is only data is JSON. As
 * much as fits into `out`. */
void mcp_result_text(struct buf *out, const json_t *result);

#endif

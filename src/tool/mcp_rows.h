/* The tools of one MCP server, as it lists them, as rows of the tool set. Names, texts and schemas
 * are a stranger's: an entry that cannot be a tool is left out and counted. Loop thread only. */
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
	bool headers; /* over HTTP a tool may want arguments in headers: such tools are left out */
};

/* Take an entry of the list. `like`: the row to make, without name, text and schema. false: no
 * memory. */
bool mcp_rows_take(struct mcp_rows *t, const struct tool *like, const char *server,
		   const json_t *o);
/* Add the whole list to the tool set, sorted by name. */
void mcp_rows_add(struct mcp_rows *t);
/* The server's own name of a tool; NULL: no tool of that full name. *same: its description and
 * schema equal those of `as`. */
const char *mcp_rows_name(const struct mcp_rows *t, const struct tool *as, bool *same);
void mcp_rows_free(struct mcp_rows *t); /* also from the tool set */

/* A result as text for the model: its texts; other parts are named, and mere data is JSON. Cut to
 * the room in `out`. */
void mcp_result_text(struct buf *out, const json_t *result);

#endif

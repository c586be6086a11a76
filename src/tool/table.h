/* The rows of tool_table (agent/tool.h), one a file of the same name. */
#ifndef TOOL_TABLE_H
#define TOOL_TABLE_H

#include "agent/tool.h"

extern const struct tool tool_ask_person;
extern const struct tool tool_read_file;
extern const struct tool tool_read_result;
extern const struct tool tool_search_and_read;
extern const struct tool tool_search_codebase;
extern const struct tool tool_submit_result;

#endif

/* Every tool of this program, one row each. A new tool is a file of its own
 * with a `const struct tool`, its line in table.h, and a row here. Roles pick
 * from these by name; a name that is not here does not exist. */
#include "tool/table.h"

#include <string.h>

/* clang-format off */
const struct tool *const tool_table[] = {
	&tool_ask_person,
	&tool_read_file,
	&tool_read_result,
	&tool_search_and_read,
	&tool_search_codebase,
	&tool_submit_result,
	NULL,
};
/* clang-format on */

const struct tool *tool_find(const char *name)
{
	for (const struct tool *const *t = tool_table; *t != NULL; t++) {
		if (strcmp((*t)->name, name) == 0)
			return *t;
	}
	return NULL;
}

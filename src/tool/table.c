/* Every tool of this program, one row each. A new tool is a file of its own
 * with a `const struct tool`, its line in table.h, and a row here; the runtime may
 * add others while it runs. Roles pick
 * from these by name; a name that is not here does not exist. */
#include "tool/table.h"

#include <ava.h>
#include <string.h>

#define ADDED_MAX 256u

static const struct tool *added[ADDED_MAX];
static unsigned nadded;

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
	for (unsigned i = 0; i < nadded; i++) {
		if (strcmp(added[i]->name, name) == 0)
			return added[i];
	}
	return NULL;
}

int tool_add(const struct tool *t)
{
	if (tool_find(t->name) != NULL)
		return AVA_EEXIST;
	if (nadded == ADDED_MAX)
		return AVA_EBUSY;
	added[nadded++] = t;
	return 0;
}

void tool_remove(const struct tool *t)
{
	for (unsigned i = 0; i < nadded; i++) {
		if (added[i] == t) {
			added[i] = added[--nadded];
			return;
		}
	}
}

bool tool_granted(const struct tool_env *env, const char *grant)
{
	for (size_t i = 0; i < env->ngrants; i++) {
		if (strcmp(env->grants[i], grant) == 0)
			return true;
	}
	return false;
}

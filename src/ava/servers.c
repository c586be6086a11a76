/* Which MCP servers a request is about; see servers.h.
 *
 * Roles are looked up as the quote will, and their wishes are compared with the servers that there
 * are. A role that cannot be found is for the verb to say: nothing fails here. */
#include "ava/servers.h"

#include <string.h>

#include "ava/state.h"
#include "codec/json.h"
#include "subagent/rolebook.h"
#include "tool/mcp.h"

/* Is it among those that were asked for? `tools` NULL: all are. */
static bool asked_for(const json_t *tools, const char *wish)
{
	size_t len = strcspn(wish, "*"), i;
	const json_t *v;

	if (!json_is_array(tools))
		return true;
	json_array_foreach(tools, i, v) if (json_is_string(v) && strncmp(json_string_value(v), wish,
									 len) == 0) return true;
	return false;
}

static uint32_t of_role(const struct core *c, const json_t *o, const char *cwd)
{
	const char *name = json_str(o, "role"), *own = json_get_str(o, "cwd");
	const struct role *r = *name ? role_find(name, own ? own : cwd, NULL) : NULL;
	uint32_t servers = 0;

	for (size_t i = 0; r && r->tools[i]; i++)
		if (asked_for(json_object_get(o, "tools"), r->tools[i]))
			servers |= mcp_client_wanted(c->sup.mcp, r->tools[i]);
	role_release(r);
	return servers;
}

uint32_t servers_of(const struct core *c, const json_t *args)
{
	const char *cwd = json_get_str(args, "cwd");
	uint32_t servers = 0;
	const json_t *one;
	size_t i;

	if (!c->sup.mcp || !args)
		return 0;
	servers = of_role(c, args, cwd) | of_role(c, json_object_get(args, "set"), cwd);

	json_array_foreach(json_object_get(args, "runs"), i, one) servers |= of_role(c, one, cwd);
	return servers;
}

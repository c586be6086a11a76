/* The four built-in roles as a table; the tool lists are wishes, cut down to
 * what src/tool/table.c really has. A role whose core tool is missing is shown
 * but refused, with the sentence that names the tool. */
#include "subagent/role.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "agent/tool.h"
#include "base/error.h"
#include "base/util.h"

static const struct role web_crawler = {
	.name = "web_crawler",
	.display = "WebCrawler",
	.summary = "deep research on web pages",
	.model = "claude-haiku",
	.tools = {"web_search", "read_webpages", "http_get", "python_exec"},
	.core = {"read_webpages"},
	.timeout_s = 600,
	.cost_cents = 50,
	.thinking = true,
};

static const struct role code_reviewer = {
	.name = "code_reviewer",
	.display = "CodeReviewer",
	.summary = "reads a source tree and answers with path:line",
	.model = "claude-opus",
	.tools = {"read_file", "search_codebase", "search_and_read", "run_bash"},
	.core = {"read_file", "search_codebase"},
	.timeout_s = 300,
	.cost_cents = 100,
};

static const struct role data_extractor = {
	.name = "data_extractor",
	.display = "DataExtractor",
	.summary = "structured data out of pages and documents",
	.model = "claude-haiku",
	.tools = {"read_webpages", "http_get", "python_exec"},
	.core = {"read_webpages"},
	.timeout_s = 600,
	.cost_cents = 50,
};

static const struct role researcher = {
	.name = "researcher",
	.display = "Researcher",
	.summary = "general research in the web and in local files",
	.model = "claude-sonnet",
	.tools = {"web_search", "read_webpages", "read_file", "search_codebase", "search_and_read"},
	.timeout_s = 600,
	.cost_cents = 50,
	.thinking = true,
};

const struct role *const role_table[] = {&web_crawler, &code_reviewer, &data_extractor, &researcher,
					 NULL};

static const char *const common_tools[] = {"read_result", "memory_search", "ask_person",
					   "submit_result"};

static bool same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		char x = *a == '-' ? '_' : *a, y = *b == '-' ? '_' : *b;

		if (x != y)
			return false;
	}
	return *a == *b;
}

const struct role *role_find(const char *name)
{
	for (size_t i = 0; role_table[i]; i++)
		if (same_name(name, role_table[i]->name) ||
		    strcasecmp(name, role_table[i]->display) == 0)
			return role_table[i];
	return NULL;
}

static unsigned add_tool(const char *name, bool files, const struct tool **out, unsigned n)
{
	const struct tool *t = tool_find(name);

	if (t && n < ROLE_MAX_TOOLS && (files || !(t->flags & TOOL_FILES)))
		out[n++] = t;
	return n;
}

unsigned role_tools(const struct role *r, bool files, const struct tool **out)
{
	unsigned n = 0;

	for (size_t i = 0; i < ROLE_MAX_TOOLS && r->tools[i]; i++)
		n = add_tool(r->tools[i], files, out, n);
	for (size_t i = 0; i < ARRAY_LEN(common_tools); i++)
		n = add_tool(common_tools[i], files, out, n);
	return n;
}

int role_usable(const struct role *r, bool files, struct ava_error *err)
{
	for (size_t i = 0; i < ARRAY_LEN(r->core) && r->core[i]; i++) {
		const struct tool *t = tool_find(r->core[i]);

		if (!t)
			return err_set(
				err, AVA_EUNSUPPORTED,
				"role %s needs the tool %s, which this version does not have; "
				"use code_reviewer or researcher",
				r->name, r->core[i]);
		if ((t->flags & TOOL_FILES) && !files)
			return err_set(err, AVA_EINVAL,
				       "role %s works on files: give it a working folder (cwd)",
				       r->name);
	}
	return 0;
}

/* list_files: what is listed, what is left out, and where it ends. */
#include "tool_unit.h"

static const char *lists(const char *args)
{
	return tool_unit_ok("list_files", args);
}

TEST(paths)
{
	assert_string_equal(lists("{}"), "0 files\n");
	put("b.c", "x");
	put("a/deep/c.h", "x");
	put("a/d.c", "x");
	put("out/e.c", "x");
	put(".gitignore", "out/\n");
	assert_string_equal(lists("{}"), ".gitignore\na/d.c\na/deep/c.h\nb.c\n4 files\n");
	assert_string_equal(lists("{'path':'a'}"), "a/d.c\na/deep/c.h\n2 files\n");
	assert_string_equal(lists("{'glob':'*.c'}"), "a/d.c\nb.c\n2 files\n");
	assert_string_equal(lists("{'glob':'deep/*.h','path':'a'}"), "a/deep/c.h\n1 file\n");
	assert_string_equal(lists("{'max_results':2}"),
			    ".gitignore\na/d.c\n2 files; there are more: narrow it with path or "
			    "glob, or raise max_results\n");
	assert_string_equal(lists("{'max_results':4}"),
			    ".gitignore\na/d.c\na/deep/c.h\nb.c\n4 files\n");
}

/* Nothing outside of the folder is seen, whatever a path says. */
TEST(outside)
{
	assert_holds(tool_unit_fails("list_files", "{'path':'../..'}", "denied"), "outside");
	assert_holds(tool_unit_fails("list_files", "{'path':'none'}", "not_found"), "none");
}

UNIT_GROUP(.before = tool_unit_open, .after = tool_unit_close);

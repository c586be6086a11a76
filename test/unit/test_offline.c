/* The offline model over whole runs: requests are made and answered as the
 * world does it, tools are played by a small tree in memory. In every run each
 * request passes the check, extends the one before byte for byte, and gets the
 * same answer twice; every citation stands in the tree. */
#include "unit.h"

#include <ava.h>
#include <jansson.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/tool.h"
#include "base/clock.h"
#include "base/util.h"
#include "codec/json.h"
#include "provider/dialect.h"

#define TURNS_MAX 6

/* ---- the tree */

static char long_function[6000];

static struct {
	const char *path, *text;
} tree[] = {
	{"src/pool.h",
	 "/* A pool of connections. */\n#ifndef POOL_H\n#define POOL_H\n\nstruct pool;\n\n"
	 "/* Give every connection back and wait until all are closed. */\n"
	 "int pool_drain(struct pool *p, int timeout_ms);\n\n#endif\n"},
	{"src/pool.c",
	 "/* The pool: connections are kept open between requests.\n * A drained pool stays empty. "
	 "*/\n"
	 "#include \"pool.h\"\n\n#define POOL_SIZE 16\n\nstruct pool {\n\tint n;\n\tchar "
	 "*name;\n};\n\n"
	 "struct pool *pool_new(const char *name)\n{\n\tstruct pool *p = malloc(sizeof(*p));\n\n"
	 "\tif (p == NULL)\n\t\treturn NULL;\n\tp->name = malloc(strlen(name) + 1);\n"
	 "\tstrcpy(p->name, name);\n\tp->n = 0;\n\tp->a = 0;\n\tp->b = 0;\n\tp->c = 0;\n\tp->d = "
	 "0;\n\tp->e = 0;\n"
	 "\tp->f = 0;\n\tp->g = 0;\n\treturn p;\n}\n\n"
	 "/* Connections in use are waited for; the timeout is for all of them. */\n"
	 "int pool_drain(struct pool *p, int timeout_ms)\n{\n\t/* TODO: wake the waiters "
	 "*/\n\treturn p->n;\n}\n"},
	{"src/main.c", "#include \"pool.h\"\n\nint main(void)
	 {const struct CMUnitTest tests[] = {
		  cmocka_unit_test(test_every_task),
		  cmocka_unit_test(test_find),
		  cmocka_unit_test(test_how),
		  cmocka_unit_test(test_list),
		  cmocka_unit_test(test_named_file),
		  cmocka_unit_test(test_review),
		  cmocka_unit_test(test_nothing_found),
		  cmocka_unit_test(test_no_tools),
		  cmocka_unit_test(test_other_tools),
		  cmocka_unit_test(test_forced),
		  cmocka_unit_test(test_notice),
		  cmocka_unit_test(test_small_output),
		  cmocka_unit_test(test_all_fail),
		  cmocka_unit_test(test_hostile),
		  cmocka_unit_test(test_huge),
	  };

return cmocka_run_group_tests(tests, set_up, NULL);
}

/* The cursor of ava logs: the form of doc/QUERY.md, events in any order, what
 * is no cursor. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cli/logcursor.h"

#define NOW INT64_C(1795248000000)

static char dir[256], path[300];
static struct logcursor c;

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "%s", unit_tmpdir());
	snprintf(path, sizeof(path), "%s/cursor", dir);
	assert_int_equal(logcursor_load(&c, path, NULL), 0);
	return 0;
}

static int teardown(void **state)
{
	unit_rmdir(dir);
	return 0;
}

static void reload(void)
{
	assert_int_equal(logcursor_save(&c, NULL), 0);
	assert_int_equal(logcursor_load(&c, path, NULL), 0);
}

TEST(form)
{
	size_t len;
	char *doc = unit_read_src("doc/QUERY.md", &len), *text, *end;

	text = strstr(doc, "```cursor\n");
	assert_non_null(text);
	text += strlen("```cursor\n");
	end = strstr(text, "```");
	assert_non_null(end);
	unit_write(path, text, (size_t)(end - text));
	assert_int_equal(logcursor_load(&c, path, NULL), 0);
	assert_true(c.known);
	assert_int_equal(c.after, 90417);
	assert_int_equal(c.n, 2);
	assert_true(logcursor_has(&c, 90417) && logcursor_has(&c, 1) && logcursor_has(&c, 90420));
	assert_false(logcursor_has(&c, 90418) || logcursor_has(&c, 90421));
	/* Cut anywhere it is no cursor, and never half of one. */
	for (size_t cut = 0; cut < (size_t)(end - text); cut++) {
		unit_write(path, text, cut);
		assert_int_equal(logcursor_load(&c, path, NULL), AVA_ECORRUPT);
	}
	free(doc);
}

TEST(any_order)
{
	logcursor_add(&c, 10, NOW);
	logcursor_add(&c, 13, NOW);
	logcursor_add(&c, 11, NOW);
	reload();
	assert_int_equal(c.after, 9);
	assert_true(logcursor_has(&c, 10) && logcursor_has(&c, 11) && logcursor_has(&c, 13));
	assert_false(logcursor_has(&c, 12)); /* comes late, and is given then */
	logcursor_add(&c, 12, NOW);
	reload();
	assert_true(logcursor_has(&c, 12));
	/* What is older than a minute is settled, with all below it. */
	logcursor_look(&c, NOW);
	logcursor_add(&c, 12, NOW - 61000);
	logcursor_add(&c, 14, NOW - 61000);
	reload();
	assert_int_equal(c.after, 14);
	assert_int_equal(c.n, 0);
}

/* While a slow reader takes what there is, files that were looked at before
 * get more, and others are opened: what is given of those settles nothing,
 * however long ago it is by then. */
TEST(slow_reader)
{
	logcursor_look(&c, NOW);
	logcursor_add(&c, 10, NOW - 3600000);
	logcursor_add(&c, 13, NOW + 5000); /* 12 went into a file that was read by then */
	reload();
	assert_int_equal(c.after, 10);
	assert_false(logcursor_has(&c, 12));
	assert_true(logcursor_has(&c, 13));
	logcursor_look(&c, NOW + 600000);
	logcursor_add(&c, 12, NOW + 4999);
	logcursor_add(&c, 14, NOW + 5001);
	reload();
	assert_int_equal(c.after, 14);
}

TEST(many)
{
	for (uint64_t i = 1; i <= 20000; i++)
		logcursor_add(&c, 2 * i, NOW);
	reload();
	assert_true(c.n <= LOGCURSOR_GIVEN);
	for (uint64_t i = 1; i <= 20000; i++)
		assert_true(logcursor_has(&c, 2 * i));
	assert_false(logcursor_has(&c, 39999) || logcursor_has(&c, 40002));
}

TEST(nothing_given)
{
	assert_int_equal(logcursor_save(&c, NULL), 0);
	assert_int_equal(logcursor_load(&c, path, NULL), 0);
	assert_false(c.known || logcursor_has(&c, 1));
}

UNIT_GROUP(.before = setup, .after = teardown);

/* The history file: what is kept, what is not, and whose it is. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/line_history.h"

static char dir[256], path[4096];

struct seen {
	unsigned n;
	char first[LINE_HISTORY_ENTRY + 1], last[LINE_HISTORY_ENTRY + 1];
};

static void keep(const char *text, void *user)
{
	struct seen *s = user;

	if (s->n++ == 0)
		snprintf(s->first, sizeof(s->first), "%s", text);
	snprintf(s->last, sizeof(s->last), "%s", text);
}

static void load(struct seen *s)
{
	memset(s, 0, sizeof(*s));
	assert_int_equal(line_history_load(path, keep, s, NULL), 0);
}

static void test_path(void **state)
{
	char state_dir[4000];
	struct stat st;

	snprintf(state_dir, sizeof(state_dir), "%s/state", dir);
	setenv("XDG_STATE_HOME", state_dir, 1);
	assert_int_equal(line_history_path(path, sizeof(path), NULL), 0);
	assert_non_null(strstr(path, "/state/ava/history"));
	*strrchr(path, '/') = '\0';
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_true(line_history_path(path, 10, NULL) < 0);
	assert_int_equal(line_history_path(path, sizeof(path), NULL), 0);
}

static void test_round_trip(void **state)
{
	static const char odd[] = "two\nlines \\n and \\ back";
	char big[LINE_HISTORY_ENTRY + 2];
	struct stat st;
	struct seen s;

	load(&s);
	assert_int_equal(s.n, 0); /* no file yet */
	assert_int_equal(line_history_add(path, "first", NULL), 0);
	assert_int_equal(line_history_add(path, odd, NULL), 0);
	assert_int_equal(line_history_add(path, " a secret", NULL), 0);
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(line_history_add(path, big, NULL), 0);
	load(&s);
	assert_int_equal(s.n, 2);
	assert_string_equal(s.first, "first");
	assert_string_equal(s.last, odd);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_bounds(void **state)
{
	char line[600];
	struct stat st;
	struct seen s;

	for (int i = 0; i < 1500; i++) {
		snprintf(line, sizeof(line), "%d %0500d", i, i);
		assert_int_equal(line_history_add(path, line, NULL), 0);
	}
	load(&s);
	assert_int_equal(s.n, LINE_HISTORY_ENTRIES);
	assert_int_equal(atoi(s.first), 500);
	assert_int_equal(atoi(s.last), 1499);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size < 600 * LINE_HISTORY_ENTRIES); /* it was rewritten */
	assert_int_equal(st.st_mode & 0777, 0600);
	load(&s);
	assert_int_equal(s.n, LINE_HISTORY_ENTRIES);
}

static void test_odd_files(void **state)
{
	FILE *f = fopen(path, "w");
	struct seen s;

	fputs("whole\n\n\\", f); /* a last line without an end is not an entry */
	fclose(f);
	load(&s);
	assert_int_equal(s.n, 1);
	unlink(path);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_true(line_history_load(path, keep, &s, NULL) < 0);
	assert_true(line_history_add(path, "x", NULL) < 0);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_odd_files),
	};

	int failed;

	snprintf(dir, sizeof(dir), "%s", unit_tmpdir());
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unit_rmdir(dir);
	return failed;
}

/* Entries appended to a file that others write to as well: whose child each is. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "journal/entry.h"

static const char entry[] = "{\"type\":\"message\",\"id\":\"0000002a\",\"parentId\":null,\"x\":1}";

/* The file `before`, then with an entry behind it: what came to be added. */
static char *append_to(const char *before)
{
	char dir[256], path[300], *data, *added;
	size_t len;
	int fd;

	snprintf(dir, sizeof(dir), "%s", unit_tmpdir());
	snprintf(path, sizeof(path), "%s/s.jsonl", dir);
	unit_write(path, before, strlen(before));
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_true(fd >= 0);
	assert_int_equal(
		entry_append(fd, "s.jsonl", entry, sizeof(entry) - 1, "0000002a", ENTRY_NEW), 0);
	close(fd);
	data = unit_read(path, &len);
	assert_memory_equal(data, before, strlen(before));
	added = strdup(data + strlen(before));
	free(data);
	unit_rmdir(dir);
	return added;
}

#define HEADER "{\"type\":\"session\",\"version\":3,\"id\":\"0b5e\"}\n"
#define FIRST  "{\"type\":\"message\",\"id\":\"aaaa0001\",\"parentId\":null}\n"
#define CHILD  "{\"type\":\"message\",\"id\":\"0000002a\",\"parentId\":\"aaaa0001\",\"x\":1}\n"
#define ROOT   "{\"type\":\"message\",\"id\":\"0000002a\",\"parentId\":null,\"x\":1}\n"

static void test_parents(void **state)
{
	static const struct {
		const char *before, *added;
	} rows[] = {
		{"", ROOT},
		{HEADER, ROOT},
		{HEADER FIRST, CHILD},
		/* without its end, and whole */
		{HEADER "{\"type\":\"message\",\"id\":\"aaaa0001\"}", "\n" CHILD},
		/* torn, somebody's own, empty: nobody's parent */
		{HEADER FIRST "{\"type\":\"message\",\"id\":\"aaaa0002\",\"par", "\n" CHILD},
		{HEADER FIRST "{\"type\":\"mess\n", CHILD},
		{HEADER FIRST "\n\nnot JSON\n{\"type\":\"note\"}\n[1]\n", CHILD},
		{HEADER "{\"type\":\"mess\n", ROOT},
		{"{\"type\":\"mess", "\n" ROOT},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *added = append_to(rows[i].before);

		assert_string_equal(added, rows[i].added);
		free(added);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_parents)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

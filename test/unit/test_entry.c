/* Entries appended to a file that others write to as well: whose child each is. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "journal/view.h"

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

TEST(parents)
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
		/* another program's, and another "id" inside */
		{"{\"type\":\"message\",\"id\":\"p\\\"1\",\"parentId\":null,\"m\":{\"id\":\"x\"}}"
		 "\n",
		 "{\"type\":\"message\",\"id\":\"0000002a\",\"parentId\":\"p\\\"1\",\"x\":1}\n"},
		{"{\"type\":\"mess", "\n" ROOT},
		/* what pi reads, ava's strict reader does not: half an emoji, a number over 64
		 * bits, a byte that is none, a doubled key */
		{HEADER "{\"type\":\"message\",\"id\":\"aaaa0001\",\"t\":\"\\ud83d\"}\n", CHILD},
		{HEADER "{\"type\":\"message\",\"id\":\"aaaa0001\",\"n\":18446744073709551615}\n",
		 CHILD},
		{HEADER "{\"type\":\"message\",\"t\":\"\xff\",\"id\":\"aaaa0001\"}\r\n", CHILD},
		{HEADER "{\"type\":\"message\",\"id\":\"b\",\"id\":\"aaaa0001\"}\n", CHILD},
		/* and what it does not: a control character in a text, NaN, a NUL, a BOM */
		{HEADER FIRST "{\"type\":\"message\",\"id\":\"b\",\"t\":\"\x01\"}\n", CHILD},
		{HEADER FIRST "{\"type\":\"message\",\"id\":\"b\",\"t\":NaN}\n", CHILD},
		{HEADER FIRST "{\"type\":\"message\",\"id\":\"b\",\"t\":\"\\x\"}\n", CHILD},
		{HEADER FIRST "{\"type\":\"message\",\"id\":\"b\",\"n\":01}\n", CHILD},
		{HEADER FIRST "\xef\xbb\xbf{\"type\":\"message\",\"id\":\"b\"}\n", CHILD},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *added = append_to(rows[i].before);

		assert_string_equal(added, rows[i].added);
		free(added);
	}
}

/* A parent has no length, and is found behind any number of lines that are none. */
TEST(parents_far)
{
	TEST_BUF(before, 64u << 20);
	char *added;

	buf_adds(&before, HEADER "{\"type\":\"message\",\"image\":\"");
	while (before.len < 20u << 20)
		buf_adds(&before,
			 "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
	buf_adds(&before, "\",\"id\":\"aaaa0001\"}\n");
	added = append_to(before.data);
	assert_string_equal(added, CHILD);
	free(added);
	for (int i = 0; i < 5000; i++)
		buf_adds(&before, "{torn\n");
	added = append_to(before.data);
	assert_string_equal(added, CHILD);
	free(added);
}

/* A session begins with its header: pi would empty what begins without. */
TEST(a_removed_session)
{
	static const char path[] = "sessions/--w--/t_1.jsonl";
	static const char aside[] = "lost/sessions+--w--+t_1.jsonl";
	static const char child[] = "{\"id\":\"0000002b\",\"parentId\":null}";
	const char *dir = unit_tmpdir();
	int fd = open(dir, O_RDONLY | O_DIRECTORY);
	char file[300], *data;
	size_t len;

	assert_true(fd >= 0);
	assert_int_equal(entry_append(fd, path, HEADER, strlen(HEADER), "0b5e", ENTRY_NEW), 0);
	assert_int_equal(entry_append(fd, path, entry, sizeof(entry) - 1, "0000002a", ENTRY_NEW),
			 0);
	assert_int_equal(unlinkat(fd, path, 0), 0);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(
			entry_append(fd, path, entry, sizeof(entry) - 1, "0000002a", ENTRY_REDO),
			1);
		assert_int_equal(
			entry_append(fd, path, child, sizeof(child) - 1, "0000002b", ENTRY_REDO),
			1);
	}
	assert_int_equal(faccessat(fd, path, F_OK, 0), -1);
	snprintf(file, sizeof(file), "%s/%s", dir, aside);
	data = unit_read(file, &len);
	assert_string_equal(data, ROOT "{\"id\":\"0000002b\",\"parentId\":\"0000002a\"}\n");
	free(data);
	/* Emptied is as removed. */
	snprintf(file, sizeof(file), "%s/%s", dir, path);
	unit_write(file, "", 0);
	assert_int_equal(entry_append(fd, path, child, sizeof(child) - 1, "0000002c", ENTRY_NEW),
			 1);
	data = unit_read(file, &len);
	assert_int_equal(len, 0);
	free(data);
	close(fd);
	unit_rmdir(dir);
}

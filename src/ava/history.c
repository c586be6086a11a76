/* Blocks are read backwards and lines taken off their end; the beginning of a
 * line that a block cuts is kept for the block before it. A part that cannot
 * be read, or a line longer than a row can be, ends that part: a listing is
 * then short, and the start has already said why. */
#include "ava/history.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "ava/state.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/files.h"

#define BLOCK_BYTES (64u << 10)
#define LINE_MAX    (1u << 20)

struct back {
	char *buf; /* BLOCK_BYTES before LINE_MAX for what is kept */
	bool (*each)(const struct catalog_row *row, void *user);
	void *user;
	bool ends, enough;
};

static void give(struct back *b, const char *line, size_t len)
{
	struct catalog_row row;

	static const char spawn[] = "{\"row\":\"spawn\",";

	if (b->ends && len > sizeof(spawn) && memcmp(line, spawn, sizeof(spawn) - 1) == 0)
		return;
	if (len == 0 || catalog_parse(line, len, &row, NULL) != 0)
		return;
	b->enough = !b->each(&row, b->user);
	catalog_row_fini(&row);
}

/* The whole lines in [0, len) of `text`, the last one first; returns how many
 * bytes at its beginning are a line whose start is not there yet. */
static size_t take_lines(struct back *b, const char *text, size_t len, bool at_start)
{
	while (len > 0 && !b->enough) {
		const char *nl = memrchr(text, '\n', len);
		size_t from = nl ? (size_t)(nl - text) + 1 : 0;

		if (!nl && !at_start)
			return len;
		give(b, text + from, len - from);
		len = nl ? from - 1 : 0;
	}
	return 0;
}

/* The part is [0, size) of `fd`, up to the end of its last line. */
static void read_back(struct back *b, int fd, off_t size)
{
	size_t kept = 0;

	while (size > 0 && !b->enough && kept < LINE_MAX) {
		size_t n = (size_t)MIN(size, (off_t)BLOCK_BYTES);

		memmove(b->buf + n, b->buf, kept);
		size -= (off_t)n;
		if (sys_read_all(fd, b->buf, n, size) != 0)
			return;
		kept = take_lines(b, b->buf, n + kept, size == 0);
	}
}

void history_each(struct core *c, bool ends,
		  bool (*each)(const struct catalog_row *row, void *user), void *user)
{
	struct back b = {
		.buf = malloc(BLOCK_BYTES + LINE_MAX), .each = each, .user = user, .ends = ends};
	char name[FILES_BUF];
	unsigned parts = 1;
	struct stat st;

	while (sys->fstatat(c->root_fd, files_part_name(CATALOG_PATH, parts + 1, name), &st, 0) ==
	       0)
		parts++;
	for (; parts > 0 && b.buf && !b.enough; parts--) {
		int fd = sys->openat(c->root_fd, files_part_name(CATALOG_PATH, parts, name),
				     O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);

		if (fd < 0)
			continue;
		if (sys->fstat(fd, &st) == 0)
			read_back(&b, fd, st.st_size);
		sys->close(fd);
	}
	free(b.buf);
}

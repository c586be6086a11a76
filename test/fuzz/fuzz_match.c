/* Search patterns: input is a byte of flags, a pattern, a NUL, and a text.
 * Lines come in order and inside the text; a regular expression finds the same
 * lines in blocks as line by line ("(?=)" forces that); and it ends. */
#include "fuzz.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "tool/job.h"
#include "tool/scan.h"

#define LINES 512

/* Begins of the lines that match, at most LINES; their number or a code. */
static int lines_of(const char *pattern, unsigned flags, const char *text, size_t len,
		    size_t starts[LINES])
{
	static atomic_bool stop;
	struct gate gate = {.stop = &stop, .deadline_ms = clock_mono_ms() + 500};
	struct match_line line;
	struct match *m;
	size_t from = 0, last = 0;
	int rv = match_new(&m, pattern, flags, &gate, NULL), n = 0;

	while (rv == 0 && n < LINES && (rv = match_next(m, text, len, &from, &line, NULL)) == 1) {
		CHECK(line.start <= line.at && line.at <= line.end && line.end <= len);
		CHECK(line.start == 0 || text[line.start - 1] == '\n');
		CHECK(memchr(text + line.start, '\n', line.end - line.start) == NULL);
		CHECK(n == 0 || line.start > last);
		CHECK(from > line.end);
		last = line.start;
		starts[n++] = line.start;
		rv = 0;
	}
	match_free(m);
	return rv < 0 ? rv : n;
}

FUZZ_TARGET(match, size)
{
	static size_t a[LINES], b[LINES];
	const char *pattern = (const char *)data + 1;
	size_t len, rest;
	char wrapped[1100], *text;
	unsigned flags;
	int n, again;

	if (size < 3)
		return;
	len = strnlen(pattern, size - 1);
	if (len == size - 1 || len > 100)
		return;
	rest = size - len - 2;
	text = fuzz_copy(pattern + len + 1, rest);
	flags = data[0] & (MATCH_REGEX | MATCH_IGNORE_CASE | MATCH_NO_JIT);
	n = lines_of(pattern, flags, text, rest, a);
	snprintf(wrapped, sizeof(wrapped), "(?=)(?:%s)", pattern);
	again = flags & MATCH_REGEX ? lines_of(wrapped, flags, text, rest, b) : -1;
	if (n >= 0 && again >= 0) {
		CHECK(n == again);
		CHECK(memcmp(a, b, (size_t)n * sizeof(*a)) == 0);
	}
	free(text);
}

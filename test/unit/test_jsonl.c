/* Whole lines, and the tail that has no newline. */
#include "unit.h"

#include <string.h>

#include "base/util.h"
#include "codec/jscan.h"

static const struct {
	const char *name, *bytes;
	size_t lines, good; /* whole lines; bytes they take */
	int end;            /* what comes after them */
	size_t torn;        /* bytes of the tail */
} cases[] = {
	{"empty file", "", 0, 0, 0, 0},
	{"one line", "{\"n\":1}\n", 1, 8, 0, 0},
	{"torn tail", "{\"n\":1}\n{\"n\":", 1, 8, -1, 5},
	{"no newline", "{\"n\":1}", 0, 0, -1, 7},
	{"empty lines count", "\n\na\n", 3, 4, 0, 0},
	{"carriage return stays", "a\r\n", 1, 3, 0, 0},
};

TEST(lines)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *bytes = cases[i].bytes, *line;
		size_t at = 0, n = 0, len = strlen(bytes), line_len = 0, sum = 0;
		int rv;

		print_message("%s\n", cases[i].name);
		while ((rv = jsonl_next(bytes, len, &at, &line, &line_len)) == 1) {
			assert_ptr_equal(line, bytes + sum);
			assert_null(memchr(line, '\n', line_len));
			sum += line_len + 1;
			n++;
		}
		assert_int_equal(n, cases[i].lines);
		assert_int_equal(at, cases[i].good);
		assert_int_equal(jsonl_count(bytes, len), cases[i].lines);
		assert_int_equal(rv, cases[i].end);
		if (rv < 0) {
			assert_int_equal(line_len, cases[i].torn);
			assert_ptr_equal(line, bytes + at);
		}
	}
}

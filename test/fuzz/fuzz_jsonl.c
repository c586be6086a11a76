/* The lines and the tail together are the input, no line has a newline. */
#include "fuzz.h"

#include "codec/jscan.h"

FUZZ_TARGET(jsonl, len)
{
	const char *bytes = (const char *)data, *line = NULL;
	size_t at = 0, line_len = 0, sum = 0;
	int rv;

	while ((rv = jsonl_next(bytes, len, &at, &line, &line_len)) == 1) {
		CHECK(line == bytes + sum && line_len < len - sum);
		CHECK(line_len == 0 || memchr(line, '\n', line_len) == NULL);
		CHECK(line[line_len] == '\n');
		sum += line_len + 1;
		CHECK(at == sum);
	}
	CHECK(at == sum);
	if (rv == 0)
		CHECK(sum == len);
	else
		CHECK(rv == -1 && line == bytes + sum && line_len == len - sum && line_len > 0);
}

/* Lines of a JSONL file; see jsonl.h.
 *
 * Only a line with its newline is whole: what a crash cut off has none.
 * Nothing here can fail. */
#include "codec/jsonl.h"

#include <string.h>

int jsonl_next(const char *data, size_t len, size_t *at, const char **line, size_t *line_len)
{
	const char *from, *end;

	if (*at >= len)
		return 0;
	from = data + *at;
	end = memchr(from, '\n', len - *at);
	*line = from;
	if (end == NULL) {
		*line_len = len - *at;
		return -1;
	}
	*line_len = (size_t)(end - from);
	*at += *line_len + 1;
	return 1;
}

uint32_t jsonl_count(const char *data, size_t len)
{
	const char *nl;
	uint32_t n = 0;

	while (len > 0 && (nl = memchr(data, '\n', len)) != NULL) {
		len -= (size_t)(nl + 1 - data);
		data = nl + 1;
		n++;
	}
	return n;
}

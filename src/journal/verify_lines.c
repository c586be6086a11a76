/* Lines with their places, for the verifier: nothing is left out, a last line
 * without its newline is one too. A line over VERIFY_LINE_MAX is an error.
 * See verify_state.h. */
#include <ava.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "base/util.h"
#include "journal/verify_state.h"

#define READ_FIRST (1u << 20)

void verify_lines_init(struct verify_lines *l, int fd, uint64_t from, uint64_t end)
{
	*l = (struct verify_lines){.fd = fd, .offset = from, .end = end, .line = 1};
}

void verify_lines_fini(struct verify_lines *l)
{
	free(l->data);
	l->data = NULL;
}

/* More bytes behind what is there: 1; 0: there are none. */
static int fill(struct verify_lines *l)
{
	uint64_t at = l->offset + (l->to - l->from);
	ssize_t n;

	if (at >= l->end)
		return 0;
	if (l->from > 0) {
		memmove(l->data, l->data + l->from, l->to - l->from);
		l->to -= l->from;
		l->from = 0;
	}
	if (l->to == l->cap) {
		size_t cap = l->cap > 0 ? l->cap * 2 : READ_FIRST;
		char *more = cap <= VERIFY_LINE_MAX ? realloc(l->data, cap) : NULL;

		if (more == NULL)
			return cap <= VERIFY_LINE_MAX ? AVA_ENOMEM : AVA_ETOOBIG;
		l->data = more;
		l->cap = cap;
	}
	do
		n = sys->pread(l->fd, l->data + l->to, (size_t)MIN(l->cap - l->to, l->end - at),
			       (off_t)at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return AVA_EIO;
	l->to += (size_t)n;
	return n > 0;
}

int verify_lines_next(struct verify_lines *l, const char **line, size_t *len)
{
	size_t seen = 0;
	const char *nl = NULL;

	for (;;) {
		int rv;

		if (l->to > l->from + seen)
			nl = memchr(l->data + l->from + seen, '\n', l->to - l->from - seen);
		if (nl != NULL)
			break;
		seen = l->to - l->from;
		rv = fill(l);
		if (rv < 0)
			return rv;
		if (rv == 0) {
			if (seen == 0)
				return 0;
			l->torn = true;
			nl = l->data + l->to - 1;
			break;
		}
	}
	*line = l->data + l->from;
	*len = (size_t)(nl + 1 - *line);
	l->from += *len;
	l->offset += *len;
	l->line++;
	return 1;
}

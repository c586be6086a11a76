/* Lines with their places; loglines.h. A log of any size is read through one buffer, which grows
 * for a line that does not fit; of a line longer than LOGLINES_MAX, which no writer of ours
 * makes, only the length is kept. */
#include "journal/loglines.h"

#include <ava.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "base/util.h"

#define READ_FIRST ((size_t)256 << 10)

void loglines_init(struct loglines *l, int fd, uint64_t from, uint64_t end)
{
	*l = (struct loglines){.fd = fd, .offset = from, .end = end, .line = 1};
}

void loglines_fini(struct loglines *l)
{
	free(l->data);
	l->data = NULL;
}

/* More bytes behind what is there: 1; 0: there are none. */
static int loglines_fill(struct loglines *l)
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
		char *more = realloc(l->data, cap);

		if (more == NULL)
			return AVA_ENOMEM;
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

int loglines_next(struct loglines *l, const char **line, size_t *len)
{
	size_t seen = 0, dropped = 0;
	const char *nl = NULL;

	for (;;) {
		int rv;

		if (l->to > l->from + seen)
			nl = memchr(l->data + l->from + seen, '\n', l->to - l->from - seen);
		if (nl != NULL)
			break;
		seen = l->to - l->from;
		if (seen >= LOGLINES_MAX) {
			dropped += seen;
			l->offset += seen;
			l->from = l->to;
			seen = 0;
		}
		rv = loglines_fill(l);
		if (rv < 0)
			return rv;
		if (rv == 0) {
			if (seen + dropped == 0)
				return 0;
			l->torn = true;
			nl = l->data + l->to - 1;
			break;
		}
	}
	*line = dropped == 0 ? l->data + l->from : NULL;
	*len = (size_t)(nl + 1 - (l->data + l->from));
	l->from += *len;
	l->offset += *len;
	*len += dropped;
	l->line++;
	return 1;
}

/* Lines of a file with their places, for all that read whole logs: the
 * verifier, the Seals, the index. Nothing is left out; a last line without its
 * newline is one too. */
#ifndef JOURNAL_LOGLINES_H
#define JOURNAL_LOGLINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOGLINES_MAX ((size_t)128 << 20)

struct loglines {
	int fd; /* *borrowed* */
	char *data;
	size_t cap, from, to;
	uint64_t offset, end; /* of data[from]; where to stop */
	uint64_t line;        /* number of the next line */
	bool torn;            /* the last one had no newline */
};

void loglines_init(struct loglines *l, int fd, uint64_t from, uint64_t end);
void loglines_fini(struct loglines *l);
/* 1: a line with its newline, at l->offset - len; NULL when it is longer than
 * LOGLINES_MAX. 0: the end; or AVA_EIO, AVA_ENOMEM. */
int loglines_next(struct loglines *l, const char **line, size_t *len);

#endif

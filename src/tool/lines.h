/* Numbered lines of a text that arrives in pieces: "LINE\ttext". */
#ifndef TOOL_LINES_H
#define TOOL_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define LINES_CUT 4000 /* bytes of one line that are shown */

struct lines {
	int64_t first, last; /* wanted, from 1 */
	const char *needle;  /* only lines that hold it, in one piece; NULL: all; borrowed */
	struct buf body;
	struct buf line;   /* the line being collected, at most LINES_CUT bytes */
	uint64_t line_len; /* its whole length so far */
	int64_t at;        /* number of the line the next byte belongs to */
	int64_t from, to;  /* first and last line in the body; 0: none */
	int64_t shown;     /* lines in the body */
	bool full;         /* a wanted line did not fit */
	bool hit;          /* the line being collected holds the needle */
	bool no_memory;
};

/* At most `max_bytes` of body. `needle` *borrowed*. */
void lines_init(struct lines *l, int64_t first, int64_t last, const char *needle, size_t max_bytes);
void lines_fini(struct lines *l);
void lines_feed(struct lines *l, const char *data, size_t len);
/* The last line, when nothing ended it. 0, AVA_ENOMEM. */
int lines_end(struct lines *l);
int64_t lines_total(const struct lines *l); /* after lines_end */

/* `s` as it is shown in one line of output: no \r at its end, valid UTF-8, at
 * most `max` bytes, with " … [+N bytes]" where `whole` bytes were more. */
int lines_text(struct buf *out, const char *s, size_t len, size_t max, uint64_t whole);

#endif

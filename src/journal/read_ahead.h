/* Wanted lines of many pieces of logs, read by a crew ahead of whoever takes
 * them, in the order of their lsn. Inside of read.c. doc/QUERY.md. */
#ifndef JOURNAL_READ_AHEAD_H
#define JOURNAL_READ_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/crew.h"
#include "journal/read_piece.h"

#define READ_AHEAD_MAX    ((size_t)32 << 20) /* bytes of lines that a thread holds */
#define READ_AHEAD_PIECES 8                  /* at once, of one log */

struct read_ahead_line {
	uint64_t lsn, seq, offset; /* offset: in its log */
	int64_t wall_ms;
	const char *text; /* set when all is read */
	size_t at;        /* of the text among those of its thread */
	uint32_t len, piece;
	uint32_t type, type_len; /* where its type stands in the line */
	int kind;
};

/* Zero-initialised is empty; read_ahead_fini. */
struct read_ahead {
	struct read_pieces pieces;     /* added by the caller, before the first fill */
	size_t batch;                  /* so many at once; set by the caller */
	size_t from, next;             /* the last fill read pieces [from, next) */
	struct read_ahead_line *lines; /* owned */
	size_t n, given;
	struct buf texts[CREW_THREADS];
};

struct read_ahead_from {
	int rootfd, smallfd;                    /* smallfd: as read_piece_small */
	const struct query *want[CREW_THREADS]; /* for each thread its own, if it has an
						   expression */
};

/* Reads the next batch, in the place of the last. left[i]: the i-th piece of
 * the batch is to be read by other means, and no line of it is here:
 * something is wrong in it, or with reading it, which is told then. False:
 * all of them are to be, and a->next is where it was. */
bool read_ahead_fill(struct read_ahead *a, const struct read_ahead_from *from, bool *left);
/* The next line; borrowed until the next fill; its view has no ids, content
 * and metadata. False: no more. */
bool read_ahead_next(struct read_ahead *a, struct read_line *line, size_t *piece);
size_t read_ahead_held(const struct read_ahead *a); /* bytes of memory for lines */
void read_ahead_fini(struct read_ahead *a);

#endif

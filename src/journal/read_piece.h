/* Logs cut into pieces that several threads read at once: chunks of an index
 * where there is one, else 4 MB. Inside of read and count. */
#ifndef JOURNAL_READ_PIECE_H
#define JOURNAL_READ_PIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "journal/query_cover.h"
#include "journal/query_small.h"
#include "journal/read_file.h"

struct read_piece {
	const char *path;                /* relative to the root; *borrowed* */
	uint64_t from, to;               /* lines that begin in there; from > 0: after a newline */
	bool whole;                      /* `from` is where a line begins */
	const struct query_cover *cover; /* *borrowed*; NULL: no index */
	const struct query_index_head *head; /* of the chunk that it is; NULL: none */
	struct query_small_place small;      /* where its index is, if it is a small log's */
};

/* Zero-initialised is empty; read_pieces_fini. */
struct read_pieces {
	struct read_piece *v;
	size_t n, cap;
	uint64_t total; /* bytes */
};

/* Bytes [from, size) of a log; what its index says nothing of `want` is in is
 * left out. 0, AVA_ENOMEM. */
int read_pieces_cut(struct read_pieces *p, const char *path, uint64_t from, uint64_t size,
		    const struct query_cover *cover, const struct query *want);
int read_pieces_add(struct read_pieces *p, const struct read_piece *piece); /* 0, AVA_ENOMEM */
void read_pieces_fini(struct read_pieces *p);

/* A small log's index, for as long as the piece is read: sets p->cover and
 * p->head. The caller closes what it returns. */
struct query_cover *read_piece_small(struct read_piece *p, int smallfd);

/* To the first line that begins in it. 0 or a code. */
int read_piece_seek(struct read_file *f, const struct read_piece *p, struct ava_error *err);

/* Told of each wanted line, which is *borrowed*, and of what is broken:
 * 0, or a code that ends it, with `err` set. */
struct read_piece_do {
	int (*line)(const struct read_line *line, void *user, struct ava_error *err);
	int (*broken)(struct ava_error *err, void *user);
	void *user;
};
/* 0, a code of those, or of reading. */
int read_piece(int rootfd, const struct read_piece *p, const struct query *want,
	       const struct read_piece_do *tell, struct ava_error *err);

#endif

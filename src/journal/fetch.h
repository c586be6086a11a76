/* The lines that rows of the index tell of, read by a crew, file by file, so
 * that a file is opened once for a batch. Inside of read.c. */
#ifndef JOURNAL_FETCH_H
#define JOURNAL_FETCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/crew.h"
#include "journal/index.h"
#include "journal/query.h"

struct hit { /* a row that fits, but for text */
	uint64_t lsn, offset;
	uint32_t len, file, chunk;
	uint16_t row;
	uint8_t kind, unused;
};

enum got_state {
	GOT_NOTHING, /* the text is not in it */
	GOT_LINE,
	GOT_BROKEN, /* its row says that it is no event */
	GOT_OTHER,  /* it is not what its row tells of */
	GOT_GONE,   /* its file is not there any more */
	GOT_COSTLY, /* the expression costs too much on it */
	GOT_UNREAD
};

struct got {       /* what was found at a hit's place */
	size_t at; /* GOT_LINE: in kept[thread] */
	uint64_t seq;
	int64_t wall_ms;
	uint8_t thread, state; /* state: enum got_state */
};

struct fetch {
	const struct query *want; /* *borrowed* */
	struct log_index *index;  /* *borrowed*; of the last batch */
	const struct hit *hits;   /* *borrowed*, as this */
	struct got *got;          /* owned; of each of them */
	struct place {
		uint64_t offset;
		uint32_t len, file, hit;
	} * places; /* owned; the batch by where it stands */
	struct piece {
		size_t from, to; /* of places */
	} * pieces;              /* owned */
	size_t npieces, cap;
	uint8_t *fits; /* *borrowed*; of fetch_search */
	struct buf kept[CREW_THREADS];
	char *scratch[CREW_THREADS];
	size_t scratch_cap[CREW_THREADS];
};

void fetch_init(struct fetch *f, const struct query *want);
void fetch_fini(struct fetch *f);
/* f->got for each hit, in the place of the last batch. 0 or AVA_ENOMEM. */
int fetch_lines(struct fetch *f, struct log_index *index, const struct hit *hits, size_t n,
		struct ava_error *err);

/* Clears fits[i] of the files that have the question's literal nowhere. */
void fetch_search(struct fetch *f, struct log_index *index, uint8_t *fits);

#endif

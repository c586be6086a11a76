/* Lines that the index's rows point to, read by a crew, file by file, so that a file is opened
 * once for a batch. Private to read.c. */
#ifndef JOURNAL_FETCH_H
#define JOURNAL_FETCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/crew.h"
#include "journal/index.h"
#include "journal/query.h"

struct hit { /* a row that fits the query, the text of its line not yet compared */
	uint64_t lsn, offset;
	uint32_t len, file, chunk;
	uint16_t row;
	uint8_t kind, unused;
};

enum got_state {
	GOT_NOTHING, /* the line does not have the text */
	GOT_LINE,
	GOT_BROKEN, /* the row marks a line that is no event */
	GOT_OTHER,  /* the line is not the event its row describes */
	GOT_GONE,   /* the line's file is missing */
	GOT_COSTLY, /* the regular expression costs too much on the line */
	GOT_UNREAD
};

struct got {       /* result for one hit */
	size_t at; /* GOT_LINE: where the line begins in kept[thread] */
	uint64_t seq;
	int64_t wall_ms;
	uint8_t thread, state; /* state: enum got_state */
};

struct fetch {
	const struct query *want; /* *borrowed* */
	struct log_index *index;  /* *borrowed*; the index that the last batch's rows are in */
	const struct hit *hits;   /* *borrowed*; the hits of the last batch */
	struct got *got;          /* owned; one for each hit */
	struct place {
		uint64_t offset;
		uint32_t len, file, hit;
	} * places; /* owned; the batch sorted by file and offset */
	struct piece {
		size_t from, to; /* range of `places`; one thread reads it */
	} * pieces;              /* owned */
	size_t npieces, cap;
	uint8_t *fits; /* *borrowed*; fetch_search's, one for each file */
	struct buf kept[CREW_THREADS];
	char *scratch[CREW_THREADS];
	size_t scratch_cap[CREW_THREADS];
};

void fetch_init(struct fetch *f, const struct query *want);
void fetch_fini(struct fetch *f);
/* Read the lines of these hits: f->got has the result of each, in place of the last batch's. 0 or
 * AVA_ENOMEM. */
int fetch_lines(struct fetch *f, struct log_index *index, const struct hit *hits, size_t n,
		struct ava_error *err);

/* Clear fits[i] of each file that nowhere has the question's literal. */
void fetch_search(struct fetch *f, struct log_index *index, uint8_t *fits);

#endif

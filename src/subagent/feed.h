/* The live end of the journal: a bounded ring of the newest acknowledged
 * event lines, for whoever watches (SSE, waits, the page). A reader is a
 * position in the ring; one that falls behind is told so and catches up from
 * the files. Nobody owns a queue. Loop thread only.
 *
 * Lines come in the order of their commits. That is the order of one run, but
 * not of all: while a run waits for the disk another one may commit events
 * with greater lsn. Who reads everything and may come again "behind lsn n"
 * needs the order of lsn, so for those readers a line is held until every
 * lower lsn has been published or given up (feed_settle). */
#ifndef SUBAGENT_FEED_H
#define SUBAGENT_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define FEED_MAX_LINES 8192
#define FEED_MAX_BYTES (4u << 20)

struct feed_line {
	uint64_t lsn;
	bool in_run;  /* it stands in a run's file (not the day's) */
	char run[24]; /* whose event it is; "" for Ava's own */
	uint32_t len;
	char *bytes; /* without \n */
};

struct feed_held {
	uint64_t lsn, at; /* `at`: position in the ring */
};

struct feed {
	struct feed_line *ring; /* FEED_MAX_LINES places */
	uint64_t first, next;   /* positions of the oldest line and the next one */
	size_t bytes;
	uint64_t *order;        /* FEED_MAX_LINES places: positions, in order of lsn */
	uint64_t order_next;    /* place of the next one */
	struct feed_held *held; /* by lsn: in the ring, not yet in order */
	size_t nheld;
	uint64_t low; /* every line with a lower lsn is in order, or comes late */
	struct list readers;
};

struct feed_reader {
	struct list node;
	bool ordered; /* by lsn; set before feed_join */
	uint64_t at;  /* position of the next line to read; ordered: its place */
	void (*wake)(struct feed_reader *r);
};

int feed_init(struct feed *f);
void feed_fini(struct feed *f);
/* Every whole line in `bytes`; wakes readers that are not ordered. Out of
 * memory drops the ring: readers that are behind then catch up from the files. */
void feed_publish(struct feed *f, const char *bytes, size_t len, bool in_run);
/* No line below `low` will be published any more, but late ones: those go to
 * the ordered readers as they come. Wakes these. */
void feed_settle(struct feed *f, uint64_t low);

void feed_join(struct feed *f, struct feed_reader *r); /* from now on */
void feed_leave(struct feed_reader *r);
/* 1 and the line (borrowed until the loop turn ends), 0: none, -1: fell behind;
 * the reader is then moved: to the oldest line, or ordered to the end, and may
 * read up to `low` in the files before it goes on. */
int feed_next(struct feed *f, struct feed_reader *r, const struct feed_line **line);

#endif

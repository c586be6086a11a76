/* The feed: a bounded ring of the newest acknowledged event lines, for watchers (SSE,
 * waits, the page). A reader is a position in the ring, not a queue; a reader that falls behind
 * is told so and catches up from the files.
 *
 * Lines come in the order of lsn, except that a commit held back by an unwritable file comes
 * once the file can be written. */
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
	bool in_run;  /* the line stands in a run's file, not in the daily log */
	char run[24]; /* run of the event; "": an event of Ava's own */
	uint32_t len;
	char *bytes; /* without \n */
};

struct feed {
	struct feed_line *ring; /* FEED_MAX_LINES places */
	uint64_t first, next;   /* positions of the oldest line and the next one */
	size_t bytes;
	struct list readers;
	unsigned catching_up; /* readers that read the files */
};

struct feed_reader {
	struct list node;
	uint64_t at; /* position of the next line to read */
	void (*wake)(struct feed_reader *r);
};

void feed_join(struct feed *f, struct feed_reader *r); /* from now on */
void feed_leave(struct feed_reader *r);
/* 1 and the line (borrowed until the loop turn ends), 0: none, -1: fell behind;
 * the reader is then moved to the end, and reads the files before it goes on. */
int feed_next(struct feed *f, struct feed_reader *r, const struct feed_line **line);

/* ---- for the logbook */
struct feed_line *feed_place(struct feed *f, uint64_t at);
/* A whole line with its \n, *copied*. Out of memory drops the ring: readers that are behind then
 * catch up from the files. */
void feed_publish(struct feed *f, const char *line, size_t len, bool in_run);
void feed_wake(struct feed *f); /* calls each reader */
void feed_fini(struct feed *f);

#endif

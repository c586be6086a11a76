/* The load on our own journal. */
#ifndef BENCH_JOURNAL_LOAD_H
#define BENCH_JOURNAL_LOAD_H

#include "journal/journal.h"
#include "journal_meter.h"

#define LOAD_WRITERS_MAX 100000

struct load {
	unsigned writers;  /* closed loop: each has one commit in flight; 0: open */
	double per_second; /* open loop: arrivals, whatever is answered meanwhile */
	enum journal_level level;
	int64_t duration_us;
};

struct bench_journal;

/* A fresh journal in `root` (made) with `views` views, all of them known to it
 * and on disk. Dies when that fails, as do the others. */
struct bench_journal *load_open(const char *root, unsigned views);
/* One round. The file system is quiet when it begins. */
struct sample load_run(struct bench_journal *b, const struct load *l);
/* Closes it, compares the files with what was acknowledged, removes `root`. */
void load_close(struct bench_journal *b);

#endif

/* What a reader of logs holds, and finding its files. Inside of read.c and
 * read_scan.c. */
#ifndef JOURNAL_READ_SCAN_H
#define JOURNAL_READ_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strmap.h"
#include "journal/query.h"
#include "journal/query_small.h"
#include "journal/read.h"
#include "journal/read_ahead.h"
#include "journal/read_file.h"

#define READ_RUNS   "logs/subagents"
#define READ_DAYS   "logs/ava"
#define READ_COPIES 256

enum source_state { SOURCE_WAITING, SOURCE_READY, SOURCE_DRAINED, SOURCE_CLOSED };

struct source {
	char path[96];                  /* relative to the root */
	uint64_t first;                 /* lsn of its first event */
	uint64_t start;                 /* where to begin reading */
	uint64_t size;                  /* of a small log whose row is in the table; else 0 */
	struct query_small_place chunk; /* its index in log->smallfd */
	enum source_state state;
	unsigned torn_tries;
	bool changed; /* drained, and there may be more now */
	struct read_file file;
	struct read_line line;    /* its next one, while in the heap */
	struct read_ahead *ahead; /* owned; NULL: its lines are read one by one */
	struct source *wave;      /* whose lines are read with those of others; NULL: none */
	struct source **members;  /* owned; of a wave: the logs whose lines it has */
	const char *line_path;    /* of a wave: where `line` stands */
};

struct progress {
	read_progress_fn fn; /* NULL: nobody asks */
	void *user;
	uint64_t done, told, total; /* bytes */
};

struct ava_log {
	int rootfd, inotify;
	int smallfd;          /* the table of small logs; -1: none */
	int days_wd, runs_wd; /* watched folders; -1: none */
	char run[24];         /* "": days */
	bool everything, follow;
	bool reads_ahead;
	struct query want, want2; /* the same; for a second thread */
	struct source **src;      /* sorted by first lsn while waiting */
	size_t nsrc, cap, opened; /* src[0..opened) have left SOURCE_WAITING */
	struct source **heap;
	size_t nheap;
	struct source **waves; /* owned, and what they point to */
	size_t nwaves, held;   /* held: bytes of memory for lines that are read ahead */
	struct source *given;  /* its line is with the caller; reads on next */
	struct progress progress;
	struct strmap names;          /* sources by path */
	uint64_t copied;              /* lsn of the last event given that may come again */
	uint64_t copies[READ_COPIES]; /* the same, of several: when following */
	unsigned ncopies;
	size_t drained; /* where the next look at drained files begins */
	unsigned part;  /* of the run's file, looked for next; 0: its first */
	bool gone;      /* the first is missing though a next one is there; not told yet */
};

/* Files of the question that are not known yet, into log->src, which is sorted
 * by first lsn from log->opened on. Those in which nothing can be wanted, as far as
 * the table of small logs knows, are SOURCE_CLOSED. 0 or a code. */
int read_scan_files(struct ava_log *log, struct ava_error *err);
int read_scan_by_first(const void *a, const void *b); /* of struct source *const */

#endif

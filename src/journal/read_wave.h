/* Sources of lines that are read ahead: a large log in batches of its chunks,
 * and small logs many at once, as waves. Inside of read.c. */
#ifndef JOURNAL_READ_WAVE_H
#define JOURNAL_READ_WAVE_H

#include "journal/read_scan.h"

#define READ_WAVE_LEAST 64 /* logs of the first; each has twice as many, up to */
#define READ_WAVE_LOGS  1024
#define READ_WAVE_BYTES ((uint64_t)32 << 20) /* of logs, so that their lines fit */
#define READ_HELD       ((size_t)256 << 20)  /* of lines; with more no other log is read ahead */

/* log->src, which is sorted and of which nothing is opened yet, into waves.
 * Without memory for them there are none. */
void read_waves_plan(struct ava_log *log);
/* The wave that `s` is of is due: reads it. Those of its logs that cannot be
 * read so are waiting with no wave, the others are closed. *first: the wave,
 * when it has a line, which is in it; else NULL. */
void read_wave_open(struct ava_log *log, struct source *s, struct source **first);
/* An opened log that is long enough is read ahead from s->start on. */
void read_batches_plan(struct ava_log *log, struct source *s);
/* The next line of a source with s->ahead: 1, or 0: no more; or it has none
 * any more (then s->file stands where reading line by line goes on). Or a code. */
int read_batch_next(struct ava_log *log, struct source *s, struct ava_error *err);
void read_progress_add(struct ava_log *log, uint64_t bytes);
void read_batch_end(struct ava_log *log, struct source *s); /* frees what it holds */

#endif

/* The read half of the journal, the archive ava_read: what programs need that
 * read a data root without a daemon. read.c implements ava_log_open, _next,
 * _wait and _close, which ava.h declares; the rest is here. */
#ifndef JOURNAL_READ_H
#define JOURNAL_READ_H

#include <ava.h>

#include "journal/query.h"
#include "journal/query_small.h"
#include "journal/read_root.h"

/* The question of `q` compiled; times count from `now_ms`. */
int read_compile(struct query *out, const struct ava_log_query *q, int64_t now_ms,
		 struct ava_error *err);

/* Is it a question at all? What ava_log_open would find wrong with it. */
int read_check(const struct ava_log_query *q, struct ava_error *err);

/* The files of an opened reader, for those who go through them on their own:
 * its root, the path of the i-th and where in it the wanted lines begin.
 * False: there are no more. `after` is what remains of "the last N". */
struct read_part {
	const char *path; /* *borrowed until close* */
	uint64_t start;
	bool left_out;                  /* nothing wanted is in it */
	uint64_t size;                  /* of a small log that was looked at; 0: look */
	struct query_small_place chunk; /* its index, in read_smallfd */
};
int read_rootfd(const struct ava_log *log);
int read_smallfd(const struct ava_log *log); /* -1: there is none */
uint64_t read_after(const struct ava_log *log);
bool read_part(const struct ava_log *log, size_t i, struct read_part *out);

/* Called from ava_log_next every few hundred KB with the bytes read so far
 * and those there were at the beginning. */
typedef void (*read_progress_fn)(uint64_t done, uint64_t total, void *user);
void read_progress(struct ava_log *log, read_progress_fn fn, void *user);

#endif
